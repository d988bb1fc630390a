/* SPDX-License-Identifier: Apache-2.0 */
/* bounds.c: computes the error bound of a composite or region, the sum of the
 * bounds of its operators (core/ops/ops.def). Each is in units of its element
 * type's epsilon, relative to the largest element of the results.
 */
#include "kit.h"

#include <float.h>
#include <math.h>

double byi_kit_epsilon(enum byoc_dtype dtype)
{
    switch (dtype) {
    case BYOC_F64:
        return 0x1p-52;
    case BYOC_F16:
        return 0x1p-10;
    case BYOC_BF16:
        return 0x1p-7;
    default:
        return 0x1p-23;
    }
}

/* For an operator that subtracts a mean, returns an upper bound of the number
 * of elements in one mean. It is 1 if the mean is an operand. Returns 0 for
 * other operators. */
static double mean_elements(const struct byi_func *f,
                            const struct byi_node *node)
{
    const struct byi_type *in = f->nodes.at[node->args[0]].type;
    const struct byi_type *gamma =
        node->n_args > 1 ? f->nodes.at[node->args[1]].type : in;
    const double n = (double)byi_elements(in->rank, in->dims);
    switch (node->op) {
    case BYI_OP_NN_LAYER_NORM:
        return (double)byi_elements(gamma->rank, gamma->dims);
    case BYI_OP_NN_INSTANCE_NORM:
    case BYI_OP_NN_GROUP_NORM:
        return fmax(1, n / fmax(1, (double)in->dims[0]));
    case BYI_OP_NN_BATCH_NORM:
        return 1;
    case BYI_OP_MVN:
        return fmax(1, n);
    default:
        return 0;
    }
}

/* An estimate of the number of terms in one result. It is the number of all
 * weights (an upper bound) or, for operators without weights, the number of
 * operand elements for each result element. */
static double terms_of(const struct byi_func *f, const struct byi_node *node)
{
    const struct byi_type *out = node->type;
    const struct byi_type *in = f->nodes.at[node->args[0]].type;
    if (out->kind != BYI_TENSOR)
        out = out->fields[0];
    const double n_out = (double)byi_elements(out->rank, out->dims);
    const double n_in = (double)byi_elements(in->rank, in->dims);
    const enum byi_op_cost cost = byi_op(node->op)->cost;
    if (n_out <= 0 || n_in <= 0)
        return 1;
    if (cost == BYI_COST_CONV || cost == BYI_COST_CONV_TRANSPOSE ||
        cost == BYI_COST_MATMUL || cost == BYI_COST_RECURRENT) {
        const struct byi_type *w = f->nodes.at[node->args[1]].type;
        return fmax(1, (double)byi_elements(w->rank, w->dims));
    }
    return fmax(1, n_in / n_out);
}

/* The epsilon of the least precise type that the node computes with. */
static double epsilon_at(const struct byi_func *f, const struct byi_node *node)
{
    double eps = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *type = f->nodes.at[node->args[i]].type;
        if (type->kind == BYI_TENSOR && byi_dtype_is_float(type->dtype))
            eps = fmax(eps, byi_kit_epsilon(type->dtype));
    }
    if (node->type->kind == BYI_TENSOR && byi_dtype_is_float(node->type->dtype))
        eps = fmax(eps, byi_kit_epsilon(node->type->dtype));
    return eps;
}

/* The relative error bound of one operator. ops.def has one bound for float32
 * and float64, and one for the 16-bit types. */
static double relative_of(const struct byi_func *f, const struct byi_node *node)
{
    const double eps = epsilon_at(f, node);
    const bool is_16_bit = eps > byi_kit_epsilon(BYOC_F32);
    return byi_op(node->op)->ulps[is_16_bit] * eps * sqrt(terms_of(f, node));
}

/* The share of elements that may jump if an operator is not continuous, such as
 * a rounding: errors move few operands across the places where it jumps. */
#define MAX_JUMPS 0.02

/* Add the bounds of all operators of a function and of its branches to *p, and
 * set p->share if an operator is not continuous. */
static void add_function(const struct byi_module *m, uint32_t func,
                         struct byi_precision *p)
{
    const struct byi_func *f = m->funcs.at[func];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_FN)
            add_function(m, node->index, p);
        if (node->kind != BYI_CALL_OP)
            continue;
        const double relative = relative_of(f, node);
        if (byi_op_has(node->op, BYI_TRAIT_DISCONTINUOUS) &&
            (p->relative > 0 || relative > 0))
            p->share = MAX_JUMPS;
        p->relative += relative;
    }
}

struct byi_precision byi_precision_of(const struct byi_module *m, uint32_t func,
                                      enum byoc_dtype dtype)
{
    struct byi_precision p = {0};
    add_function(m, func, &p);
    p.absolute = p.relative;
    if (!byi_dtype_is_float(dtype))
        p.relative = p.absolute = 0;
    return p;
}

/* Whether `found` is within the tolerance. An expected NaN matches any number.
 */
static bool is_close(double found, double expected, double tolerance)
{
    return found == expected || isnan(expected) || isinf(tolerance) ||
           fabs(found - expected) <= tolerance;
}

/* The largest finite absolute value. */
static double largest_magnitude(const struct byi_tensor *t, int64_t n)
{
    double largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = fabs(byi_tensor_float(t, i));
        if (isfinite(x) && x > largest)
            largest = x;
    }
    return largest;
}

bool byi_perturbation_draw_up(struct byi_perturbation *s)
{
    return (byi_draw_below(&s->state, 2) != 0) != s->mirrored;
}

/* A random number in [0, 1). */
static double draw_fraction(struct byi_perturbation *s)
{
    return byi_draw_below(&s->state, 1 << 20) * 0x1p-20;
}

/* Move each number up or down by its bound, or (with s->zeros) to 0 or -0 if
 * zero is within the bound. s->zeros also applies to exact operators. For
 * example, a ReLU may give 0 or -0, and a division by its result shows the
 * difference. Infinities stay. */
static void perturb(struct byi_tensor *t, double relative,
                    struct byi_perturbation *s)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    if (!byi_dtype_is_float(t->dtype) || !(relative > 0 || s->zeros))
        return;
    const double largest = largest_magnitude(t, n);
    for (int64_t i = 0; i < n; i++) {
        const double x = byi_tensor_float(t, i);
        const double max_change = relative * (fabs(x) + largest + 1);
        const double change =
            s->fractional ? max_change * draw_fraction(s) : max_change;
        const bool up = byi_perturbation_draw_up(s);
        if (!isfinite(x))
            continue;
        byi_tensor_set(t, i,
                       s->zeros && fabs(x) <= max_change ? (up ? 0.0 : -0.0)
                       : up                              ? x + change
                                                         : x - change);
    }
}

static bool has_nan(const struct byi_tensor *t)
{
    for (int64_t i = byi_elements(t->rank, t->dims); i-- > 0;)
        if (byi_dtype_is_float(t->dtype) && isnan(byi_tensor_float(t, i)))
            return true;
    return false;
}

/* Whether the cube of LRN's divisor overflows float32. Implementations compute
 * the divisor's power of 3/4 as two square roots of the cube; if that is
 * infinite, their results are zero. */
static bool cube_overflows(const struct byi_node *node, double largest)
{
    const double divisor =
        byi_attr_float(node->attrs, "bias") +
        byi_attr_float(node->attrs, "alpha") * largest * largest;
    return divisor * divisor * divisor > (double)FLT_MAX;
}

/* Whether the operator computes squares that overflow float32, so that results
 * depend on the type in which an implementation computes them. */
static bool overflows(const struct byi_node *node, const struct byi_tensor *in)
{
    static const enum byi_op_id squaring[] = {
        BYI_OP_NN_LRN,        BYI_OP_NN_LAYER_NORM, BYI_OP_NN_INSTANCE_NORM,
        BYI_OP_NN_GROUP_NORM, BYI_OP_MVN,           BYI_OP_L2,
        BYI_OP_LP_NORMALIZE,
    };
    const int64_t n = byi_elements(in->rank, in->dims);
    for (size_t i = 0; i < BYI_COUNT(squaring); i++)
        if (squaring[i] == node->op) {
            const double x = largest_magnitude(in, n);
            return x * x * (double)n > (double)FLT_MAX ||
                   (node->op == BYI_OP_NN_LRN && cube_overflows(node, x));
        }
    return false;
}

/* Operators whose formula, as some implementations write it, multiplies an
 * operand by a number that may be zero: infinity times zero is NaN. */
static const struct finite_operand {
    enum byi_op_id op;
    uint32_t operand;
    bool not_nan; /* must not be NaN either: native kernels may ignore it */
} finite_operands[] = {
    /* x times a polynomial and exp(-x^2) (oneDNN 3.12) */
    {BYI_OP_NN_GELU, 0, false},
    /* max(x, 0) + slope min(x, 0) (oneDNN 2.6 and 3.12) */
    {BYI_OP_NN_PRELU, 1, true},
};

/* Whether an operand in finite_operands[] has an infinity (or a NaN that it
 * must not have). */
static bool has_infinite_factor(const struct byi_node *node,
                                const struct byi_tensor *operands)
{
    for (size_t k = 0; k < BYI_COUNT(finite_operands); k++) {
        const struct finite_operand *row = &finite_operands[k];
        const struct byi_tensor *in = &operands[row->operand];
        if (node->op != row->op)
            continue;
        for (int64_t i = byi_elements(in->rank, in->dims); i-- > 0;) {
            const float x = (float)byi_tensor_float(in, i);
            if (isinf(x) || (row->not_nan && isnan(x)))
                return true;
        }
    }
    return false;
}

/* A row of a layer norm's operand may be constant except for rounding errors
 * (at most LEVEL_EPSILONS epsilons, since errors of earlier operators add up).
 * Its deviation is then about zero, and the norm divides rounding errors by it.
 * Replace the results of this row by the results of a constant row: beta, or 0
 * or -0. */
static void replace_constant_rows(const struct byi_func *f,
                                  const struct byi_node *node,
                                  const struct byi_tensor *operands,
                                  struct byi_tensor *result,
                                  struct byi_perturbation *s)
{
    enum { LEVEL_EPSILONS = 1024 };
    const struct byi_tensor *in = &operands[0];
    const int64_t length = (int64_t)mean_elements(f, node);
    const int64_t n = byi_elements(in->rank, in->dims);
    const double share = LEVEL_EPSILONS * epsilon_at(f, node);
    for (int64_t at = 0; at + length <= n && length > 0; at += length) {
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = at; i < at + length; i++) {
            low = fmin(low, byi_tensor_float(in, i));
            high = fmax(high, byi_tensor_float(in, i));
        }
        const double largest = fmax(fabs(low), fabs(high)) + 1;
        for (int64_t i = 0; i < length && high - low <= share * largest; i++)
            byi_tensor_set(result, at + i,
                           node->n_args > 2 ? byi_tensor_float(&operands[2], i)
                           : byi_perturbation_draw_up(s) ? 0.0
                                                         : -0.0);
    }
}

/* The interpreter calls this before each operator (`results` is NULL) and after
 * it. After it, perturb the results by the operator's bound. Before it, perturb
 * the operand of an operator that subtracts a mean. The mean may be far larger
 * than the differences, which amplifies the operand's errors. */
void byi_kit_perturb(void *ctx, const struct byi_func *f,
                     const struct byi_node *node, struct byi_tensor *operands,
                     struct byi_tensor *results, uint32_t n_results)
{
    struct byi_perturbation *s = ctx;
    if (!results && node->n_args && mean_elements(f, node) > 0)
        perturb(&operands[0],
                epsilon_at(f, node) * sqrt(mean_elements(f, node)), s);
    if (!results && node->n_args &&
        (overflows(node, &operands[0]) || has_infinite_factor(node, operands)))
        s->undefined = true;
    for (uint32_t i = 0; i < n_results; i++) {
        if (!byi_dtype_is_float(results[i].dtype) && has_nan(&operands[0]))
            s->undefined = true;
        perturb(&results[i], relative_of(f, node), s);
    }
    if (n_results && s->zeros && node->op == BYI_OP_NN_LAYER_NORM)
        replace_constant_rows(f, node, operands, &results[0], s);
}

enum byoc_status byi_kit_compare_output(const struct byi_tensor *found,
                                        const struct byi_tensor *expected,
                                        const double *slack,
                                        const struct byi_precision *bound,
                                        struct byoc_error *err)
{
    const int64_t n = byi_elements(expected->rank, expected->dims);
    const double largest = largest_magnitude(expected, n);
    const int64_t n_allowed =
        bound->share > 0 ? 1 + (int64_t)(bound->share * (double)n) : 0;
    int64_t n_wrong = 0, worst_index = 0;
    double max_difference = -1, limit = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = byi_tensor_float(found, i);
        const double y = byi_tensor_float(expected, i);
        const double tolerance =
            bound->relative * (fabs(y) + largest) + bound->absolute + slack[i];
        if (is_close(x, y, tolerance))
            continue;
        const double d = fabs(x - y);
        if (n_wrong++ == 0 || d > max_difference || isnan(d)) {
            worst_index = i;
            max_difference = d;
            limit = tolerance;
        }
    }
    if (n_wrong <= n_allowed)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINTERNAL,
                    "%lld of %lld elements are wrong; element %lld: found "
                    "%.9g, expected %.9g, or a difference of at most %.3g",
                    (long long)n_wrong, (long long)n, (long long)worst_index,
                    byi_tensor_float(found, worst_index),
                    byi_tensor_float(expected, worst_index), limit);
}
