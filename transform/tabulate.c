/* SPDX-License-Identifier: Apache-2.0 */
/* Tabulate: replace a function from 8 bits to 8 bits by a look-up table of 256
 * entries.
 * requires: nothing
 *
 *   %0 = qnn.dequantize(%x, const, const);
 *   %1 = sigmoid(%0);                        ==>  qnn.lookup(%x, const)
 *   qnn.quantize(%1, const, const)
 *
 * The function consists of elementwise operators and of scalar constants, and
 * its values are read nowhere else. It may read its argument more than once, as
 * x sigmoid(x) does, also if the sigmoid is quantised. Scales and zero points
 * are scalars.
 * The operators' kernels compute the table, so results are identical bit for
 * bit. A compile runs this before partitioning. A backend would compute in
 * float32, which is slower than a look-up, and could not fuse the function into
 * its convolutions anyway.
 */
#include "transform.h"

#include <string.h>

#include "rewrite.h"

enum { ENTRIES = 256, MAX_STEPS = 32, MAX_OPERANDS = 4 };

/* A function of one byte: the nodes between the quantize, nodes[0], and its
 * argument, whose ids decrease, so that operands follow their readers. */
struct table_function {
    byi_id nodes[MAX_STEPS];
    uint32_t n;
    byi_id x; /* the argument, a tensor of bytes */
};

static bool is_byte(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_tensor(rw, id);
    return type && (type->dtype == BYOC_I8 || type->dtype == BYOC_U8);
}

/* Whether operand i of the node is the same for all elements: a constant of one
 * element, or a table. */
static bool is_shared(const struct byi_rewrite *rw, const struct byi_node *node,
                      uint32_t i)
{
    struct byi_tensor t;
    return byi_rw_view(rw, node->args[i], &t) &&
           (byi_elements(t.rank, t.dims) == 1 ||
            (node->op == BYI_OP_LOOKUP && i == 1));
}

/* Whether the node computes each element from the elements at the same place of
 * its operands that are not shared, of which there is at least one. */
static bool is_step(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    bool varies = false;
    if (node->kind != BYI_CALL_OP || node->type->kind != BYI_TENSOR ||
        node->n_args > MAX_OPERANDS || byi_op(node->op)->kind > BYI_BROADCAST)
        return false;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_type *from = byi_rw_tensor(rw, node->args[i]);
        if (is_shared(rw, node, i))
            continue;
        if (!from || !byi_dims_equal(from->rank, from->dims, node->type->rank,
                                     node->type->dims))
            return false;
        varies = true;
    }
    return varies;
}

/* Insert `id` into the decreasing ids from `first` on, unless it is there.
 * False if there are too many. */
static bool insert_node(struct table_function *f, uint32_t first, byi_id id)
{
    uint32_t at = first;
    while (at < f->n && f->nodes[at] > id)
        at++;
    if (at < f->n && f->nodes[at] == id)
        return true;
    if (f->n == MAX_STEPS)
        return false;
    memmove(f->nodes + at + 1, f->nodes + at, (f->n++ - at) * sizeof *f->nodes);
    f->nodes[at] = id;
    return true;
}

/* Whether no other node reads the nodes of the function, except dequantised
 * arguments, which others may read. */
static bool has_only_inner_readers(const struct byi_rewrite *rw,
                                   const struct table_function *f)
{
    byi_id inner[MAX_STEPS];
    uint32_t n = 0;
    for (uint32_t i = 1; i < f->n; i++)
        if (!byi_rw_is(rw, f->nodes[i], BYI_OP_DEQUANTIZE) ||
            byi_rw_arg(rw, f->nodes[i], 0) != f->x)
            inner[n++] = f->nodes[i];
    return byi_rw_has_only_inner_readers(rw, f->nodes[0], inner, n);
}

/* Find the function that ends at the quantize `at`: the nodes down to the first
 * tensor of bytes on which alone the result depends. False if there is none: a
 * node is not a step or has other readers, or there are too many. */
static bool read_function(const struct byi_rewrite *rw, byi_id at,
                          struct table_function *f)
{
    *f = (struct table_function){.nodes = {at}, .n = 1};
    if (!is_byte(rw, at))
        return false;
    for (uint32_t i = 0; i < f->n; i++) {
        f->x = f->nodes[i];
        if (i > 0 && i + 1 == f->n && is_byte(rw, f->x)) {
            f->n = i;
            return true;
        }
        if (!is_step(rw, f->x))
            return false;
        const struct byi_node *node = byi_rw_node(rw, f->x);
        for (uint32_t k = 0; k < node->n_args; k++)
            if (!is_shared(rw, node, k) &&
                !insert_node(f, i + 1, node->args[k]))
                return false;
    }
    return false;
}

/* Compute the node's results for all ENTRIES arguments, in scratch memory.
 * values[i] are those of f->nodes[i], values[f->n] the arguments. False if the
 * kernel fails. */
static bool apply_node(struct byi_rewrite *rw, const struct table_function *f,
                       uint32_t at, struct byi_tensor *values)
{
    const struct byi_node *node = byi_rw_node(rw, f->nodes[at]);
    struct byi_tensor in[MAX_OPERANDS], *out = &values[at];
    *out = (struct byi_tensor){
        .dtype = node->type->dtype, .rank = 1, .dims = {ENTRIES}};
    const uint32_t size = byoc_dtype_size(out->dtype);
    if (!size)
        return false;
    for (uint32_t i = 0; i < node->n_args; i++) {
        if (is_shared(rw, node, i)) {
            byi_rw_view(rw, node->args[i], &in[i]);
            if (byi_elements(in[i].rank, in[i].dims) == 1)
                in[i].rank = 0;
            continue;
        }
        uint32_t from = at + 1;
        while (from < f->n && f->nodes[from] != node->args[i])
            from++;
        in[i] = values[from];
    }
    out->data = byi_arena_alloc(rw->scratch, (size_t)ENTRIES * size);
    return rw->ctx->eval(byi_op(node->op), node->attrs, node->n_args, in, 1,
                         out, NULL) == BYOC_OK;
}

static byi_id tabulate(struct byi_rewrite *rw, byi_id at)
{
    struct table_function f;
    uint8_t bytes[ENTRIES];
    struct byi_tensor values[MAX_STEPS + 1], table;
    if (!rw->ctx->eval || !read_function(rw, at, &f) ||
        !has_only_inner_readers(rw, &f))
        return BYI_NO_ID;
    values[f.n] = (struct byi_tensor){.data = bytes,
                                      .dtype = byi_rw_tensor(rw, f.x)->dtype,
                                      .rank = 1,
                                      .dims = {ENTRIES}};
    for (uint32_t i = 0; i < ENTRIES; i++)
        bytes[i] = (uint8_t)i;
    for (uint32_t i = f.n; i-- > 0;)
        if (!apply_node(rw, &f, i, values))
            return BYI_NO_ID;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, values[0].dtype, 1, values[0].dims);
    if (!byi_rw_alloc(rw, type, &table))
        return BYI_NO_ID;
    memcpy(table.data, values[0].data, ENTRIES);
    return byi_rw_op2(rw, BYI_OP_LOOKUP, f.x, byi_rw_const(rw, type, &table));
}

BYI_RULES_PASS(tabulate, "Tabulate", 1,
               "replace functions from 8 bits to 8 bits by look-up tables",
               {BYI_OP_QUANTIZE, tabulate})
