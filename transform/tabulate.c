/* SPDX-License-Identifier: Apache-2.0 */
/* Tabulate: replace a function from 8 bits to 8 bits by a look-up table of 256
 * entries.
 * requires: nothing
 *
 *   %0 = qnn.dequantize(%x, const, const);
 *   %1 = sigmoid(%0);                        ==>  qnn.lookup(%x, const)
 *   qnn.quantize(%1, const, const)
 *
 * The chain consists of operators with one operand, besides scalar constants;
 * the values between have no other readers. Scales and zero points are scalars.
 * The operators' kernels compute the table, so results are identical bit for
 * bit. A compile runs this before partitioning. A backend would compute in
 * float32, which is slower than a look-up, and could not fuse the chain into
 * its convolutions anyway.
 */
#include "transform.h"

#include <string.h>

#include "rewrite.h"

enum { ENTRIES = 256, MAX_STEPS = 32, MAX_OPERANDS = 4 };

/* The nodes from the quantize back to the dequantize, and for each of them the
 * index of the operand that leads to the next node. */
struct table_chain {
    byi_id nodes[MAX_STEPS];
    uint32_t operand[MAX_STEPS], n;
};

static bool is_number(const struct byi_rewrite *rw, byi_id id)
{
    struct byi_tensor t;
    return byi_rw_view(rw, id, &t) && byi_elements(t.rank, t.dims) == 1;
}

static bool is_byte(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_tensor(rw, id);
    return type && (type->dtype == BYOC_I8 || type->dtype == BYOC_U8);
}

/* Whether all operands of node `id` except one, *operand, are constants of one
 * element, and the result has the shape of that operand. */
static bool is_step(const struct byi_rewrite *rw, byi_id id, uint32_t *operand)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    uint32_t n = 0;
    if (node->kind != BYI_CALL_OP || node->type->kind != BYI_TENSOR ||
        node->n_args > MAX_OPERANDS || byi_op(node->op)->kind > BYI_BROADCAST)
        return false;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (!is_number(rw, node->args[i])) {
            *operand = i;
            n++;
        }
    const struct byi_type *from =
        n == 1 ? byi_rw_tensor(rw, node->args[*operand]) : NULL;
    return from && byi_dims_equal(from->rank, from->dims, node->type->rank,
                                  node->type->dims);
}

/* Find the chain that ends at the quantize `at`. False if there is none: a node
 * is not a step or has other readers, or it has more than MAX_STEPS nodes. */
static bool read_chain(const struct byi_rewrite *rw, byi_id at,
                       struct table_chain *chain)
{
    chain->n = 0;
    if (!is_byte(rw, at))
        return false;
    while (chain->n < MAX_STEPS) {
        uint32_t operand;
        if ((chain->n && !byi_rw_has_one_reader(rw, at)) ||
            !is_step(rw, at, &operand))
            return false;
        chain->nodes[chain->n] = at;
        chain->operand[chain->n++] = operand;
        const bool last = byi_rw_is(rw, at, BYI_OP_DEQUANTIZE);
        at = byi_rw_arg(rw, at, operand);
        if (last)
            return operand == 0 && is_byte(rw, at);
    }
    return false;
}

/* Replace the ENTRIES values of operand `operand` by the node's results for
 * them, in scratch memory. False if the kernel fails. */
static bool apply_node(struct byi_rewrite *rw, const struct byi_node *node,
                       uint32_t operand, struct byi_tensor *values)
{
    struct byi_tensor in[MAX_OPERANDS];
    struct byi_tensor out = {
        .dtype = node->type->dtype, .rank = 1, .dims = {ENTRIES}};
    const uint32_t size = byoc_dtype_size(out.dtype);
    if (!size)
        return false;
    for (uint32_t i = 0; i < node->n_args; i++) {
        if (i != operand && !byi_rw_view(rw, node->args[i], &in[i]))
            return false;
        in[i].rank = 0;
    }
    in[operand] = *values;
    out.data = byi_arena_alloc(rw->scratch, (size_t)ENTRIES * size);
    *values = out;
    return rw->ctx->eval(byi_op(node->op), node->attrs, node->n_args, in, 1,
                         values, NULL) == BYOC_OK;
}

static byi_id tabulate(struct byi_rewrite *rw, byi_id at)
{
    struct table_chain chain;
    uint8_t bytes[ENTRIES];
    if (!rw->ctx->eval || !read_chain(rw, at, &chain))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, chain.nodes[chain.n - 1], 0);
    struct byi_tensor values = {.data = bytes,
                                .dtype = byi_rw_tensor(rw, x)->dtype,
                                .rank = 1,
                                .dims = {ENTRIES}};
    for (uint32_t i = 0; i < ENTRIES; i++)
        bytes[i] = (uint8_t)i;
    for (uint32_t i = chain.n; i-- > 0;)
        if (!apply_node(rw, byi_rw_node(rw, chain.nodes[i]), chain.operand[i],
                        &values))
            return BYI_NO_ID;
    struct byi_tensor table;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, values.dtype, 1, values.dims);
    if (!byi_rw_alloc(rw, type, &table))
        return BYI_NO_ID;
    memcpy(table.data, values.data, ENTRIES);
    return byi_rw_op2(rw, BYI_OP_LOOKUP, x, byi_rw_const(rw, type, &table));
}

BYI_RULES_PASS(tabulate, "Tabulate", 1,
               "replace functions from 8 bits to 8 bits by look-up tables",
               {BYI_OP_QUANTIZE, tabulate})
