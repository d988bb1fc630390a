/* SPDX-License-Identifier: Apache-2.0 */
/* domain.c: chooses the values of operands: numbers at which the operator is
 * defined, and indices that are in range.
 */
#include "generate.h"

#include <math.h>

/* Domains of many operators. */
static const struct byi_domain any_number = {-2.0, 2.0}, positive = {0.5, 2.5},
                               unit = {-0.9, 0.9};

/* The domains of operands that do not accept all numbers, or whose results are
 * inaccurate outside. */
static const struct {
    enum byi_op_id op;
    int operand;
    const struct byi_domain *domain;
} domains[] = {
    {BYI_OP_LOG, 0, &positive},
    {BYI_OP_SQRT, 0, &positive},
    {BYI_OP_RSQRT, 0, &positive},
    {BYI_OP_RECIPROCAL, 0, &positive},
    {BYI_OP_LOG_SUM, 0, &positive},
    {BYI_OP_POWER, 0, &positive},
    {BYI_OP_DIVIDE, 1, &positive},
    {BYI_OP_MOD, 1, &positive},
    {BYI_OP_ASIN, 0, &unit},
    {BYI_OP_ACOS, 0, &unit},
    {BYI_OP_ATANH, 0, &unit},
    {BYI_OP_ACOSH, 0, &(const struct byi_domain){1.1, 3.0}},
    {BYI_OP_TAN, 0, &unit},
    {BYI_OP_NN_BATCH_NORM, 4, &positive},
    {BYI_OP_QUANTIZE, 1, &(const struct byi_domain){0.01, 0.02}},
    {BYI_OP_DEQUANTIZE, 1, &(const struct byi_domain){0.01, 0.02}},
};

/* The attribute `axis`, counted from the front; 0 if it is missing. */
static int64_t axis_of(const struct byi_attrs *attrs, uint32_t rank)
{
    const struct byi_attr *axis = byi_attr_find(attrs, "axis");
    const int64_t a = axis && axis->kind == BYI_ATTR_INT ? axis->i : 0;
    return a < 0 ? a + (int64_t)rank : a;
}

/* Whether the operand has indices into the first operand. */
static bool is_index(enum byi_op_id op, uint32_t operand)
{
    return operand == 1 &&
           (op == BYI_OP_TAKE || op == BYI_OP_GATHER ||
            op == BYI_OP_GATHER_ND || op == BYI_OP_SCATTER_ELEMENTS ||
            op == BYI_OP_SCATTER_ND);
}

struct byi_domain byi_domain_of(const struct byi_op *op,
                                const struct byi_attrs *attrs,
                                const struct byi_type *const *types, uint32_t n,
                                uint32_t operand)
{
    if (is_index(op->id, operand)) {
        const int64_t axis = axis_of(attrs, types[0]->rank);
        const int64_t size = axis >= 0 && axis < (int64_t)types[0]->rank
                                 ? types[0]->dims[axis]
                                 : 1;
        const bool is_along_axis = op->id == BYI_OP_TAKE ||
                                   op->id == BYI_OP_GATHER ||
                                   op->id == BYI_OP_SCATTER_ELEMENTS;
        return (struct byi_domain){
            0.0, is_along_axis && size > 0 ? (double)size - 1.0 : 0.0};
    }
    if (operand == 4 && n > 4 &&
        (op->id == BYI_OP_NN_RNN || op->id == BYI_OP_NN_GRU ||
         op->id == BYI_OP_NN_LSTM)) /* sequence_lens: all steps */
        return (struct byi_domain){1.0, 1.0};
    if (operand == 2 &&
        (op->id == BYI_OP_QUANTIZE || op->id == BYI_OP_DEQUANTIZE))
        return (struct byi_domain){0.0, 7.0};
    if (operand == 0 && op->id == BYI_OP_DEQUANTIZE)
        return (struct byi_domain){1.0, 0.0};
    for (size_t i = 0; i < BYI_COUNT(domains); i++)
        if (domains[i].op == op->id && domains[i].operand == (int)operand)
            return *domains[i].domain;
    return any_number;
}

struct byi_domain byi_domain_of_param(const struct byi_func *f, uint32_t param)
{
    struct byi_domain domain = any_number;
    bool seen = false;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const struct byi_type *types[BYI_MAX_ARGS];
        if (node->kind != BYI_CALL_OP || node->n_args > BYI_COUNT(types))
            continue;
        for (uint32_t i = 0; i < node->n_args; i++)
            types[i] = f->nodes.at[node->args[i]].type;
        for (uint32_t i = 0; i < node->n_args; i++) {
            if (node->args[i] != f->params.at[param])
                continue;
            const struct byi_domain d = byi_domain_of(
                byi_op(node->op), node->attrs, types, node->n_args, i);
            if (!seen)
                domain = d;
            domain.low = fmax(domain.low, d.low);
            domain.high = fmin(domain.high, d.high);
            seen = true;
        }
    }
    return domain;
}

/* Map r in [0, 1) to all integers of an 8-bit type, or to 200 integers of
 * another type. */
static double whole_range(enum byoc_dtype dtype, double r)
{
    switch (dtype) {
    case BYOC_U8:
        return floor(256.0 * r);
    case BYOC_I8:
        return floor(256.0 * r) - 128.0;
    default:
        return floor(200.0 * r) - (byi_dtype_is_signed(dtype) ? 100.0 : 0.0);
    }
}

void byi_domain_fill(struct byi_tensor *t, struct byi_domain domain,
                     uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    const int64_t n = byi_elements(t->rank, t->dims);
    const bool full_range = domain.low > domain.high;
    for (int64_t i = 0; i < n; i++) {
        const double r = (double)byi_draw(&state) * 0x1p-53;
        const double span = domain.high - domain.low;
        double x = domain.low + span * r;
        if (t->dtype == BYOC_BOOL)
            x = r < 0.5;
        else if (!byi_dtype_is_float(t->dtype))
            /* 0.999: floor() then also gives the upper end, but no more */
            x = full_range
                    ? whole_range(t->dtype, r)
                    : floor(fmax(domain.low, 0.0) +
                            (domain.high - fmax(domain.low, 0.0) + 0.999) * r);
        else if (full_range)
            x = 4.0 * r - 2.0;
        byi_tensor_set(t, i, x);
    }
}
