/* EliminateCommonSubexpr: compute once what is computed twice.
 * requires: nothing
 * leaves:   no two nodes of one function with the same operator, attributes
 *           and operands (in either order where that does not matter).
 *           Constants are the same by content, which the module shares; their
 *           nodes stay apart, so that each keeps its own sources. Function
 *           literals and `if` stay.
 *
 *   %0 = exp(%x);
 *   %1 = exp(%x);      ==>   %0 = exp(%x);
 *   add(%0, %1)              add(%0, %0)
 */
#include "transform.h"

#include "rewrite.h"

/* Nodes seen, in a table with open addressing; ids plus one, 0 is empty. */
struct seen {
    uint32_t *at;
    uint32_t mask;
};

static bool commutes(enum byi_op_id op)
{
    static const enum byi_op_id list[] = {
        BYI_OP_ADD,         BYI_OP_MULTIPLY,   BYI_OP_MAXIMUM,
        BYI_OP_MINIMUM,     BYI_OP_EQUAL,      BYI_OP_NOT_EQUAL,
        BYI_OP_LOGICAL_AND, BYI_OP_LOGICAL_OR, BYI_OP_LOGICAL_XOR,
    };
    for (size_t i = 0; i < BYI_COUNT(list); i++)
        if (list[i] == op)
            return true;
    return false;
}

static bool shareable(const struct byi_node *node)
{
    switch (node->kind) {
    case BYI_CALL_OP:
    case BYI_GLOBAL:
    case BYI_MAKE_TUPLE:
    case BYI_GET:
    case BYI_CALL:
        return true;
    case BYI_PARAM:
    case BYI_CONST:
    case BYI_FN:
    case BYI_IF:
        return false;
    }
    byi_unreachable();
}

/* What an operand is: a constant by its index, anything else by its id. */
static uint64_t key_of(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    return node->kind == BYI_CONST ? (uint64_t)node->index << 32 : id + 1;
}

static bool swapped(const struct byi_rewrite *rw, const struct byi_node *node)
{
    return node->kind == BYI_CALL_OP && node->n_args == 2 &&
           commutes(node->op) &&
           key_of(rw, node->args[0]) > key_of(rw, node->args[1]);
}

/* Attributes are compared in full; their number and integers are hashed. */
static uint64_t hash_attrs(uint64_t h, const struct byi_attrs *attrs)
{
    for (uint32_t i = 0; attrs && i < attrs->n; i++) {
        const struct byi_attr *a = &attrs->at[i];
        if (a->kind == BYI_ATTR_INT || a->kind == BYI_ATTR_BOOL ||
            a->kind == BYI_ATTR_DTYPE)
            h = byi_hash(h, &a->i, sizeof a->i);
        else if (a->kind == BYI_ATTR_INTS && a->n > 0)
            h = byi_hash(h, a->ints, a->n * sizeof *a->ints);
    }
    return h;
}

static uint64_t hash_node(const struct byi_rewrite *rw,
                          const struct byi_node *node)
{
    const uint32_t head[] = {(uint32_t)node->kind, (uint32_t)node->op,
                             node->index, node->n_args};
    const bool swap = swapped(rw, node);
    uint64_t h = byi_hash(0, head, sizeof head);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const uint64_t key = key_of(rw, node->args[swap ? 1 - i : i]);
        h = byi_hash(h, &key, sizeof key);
    }
    return hash_attrs(h, node->attrs);
}

static bool same(const struct byi_rewrite *rw, const struct byi_node *a,
                 const struct byi_node *b)
{
    if (a->kind != b->kind || a->op != b->op || a->index != b->index ||
        a->n_args != b->n_args || (a->attrs == NULL) != (b->attrs == NULL))
        return false;
    const bool swap = swapped(rw, a) != swapped(rw, b);
    for (uint32_t i = 0; i < a->n_args; i++)
        if (key_of(rw, a->args[i]) != key_of(rw, b->args[swap ? 1 - i : i]))
            return false;
    return !a->attrs || byi_attrs_equal(a->attrs, b->attrs);
}

static byi_id find_equal(struct byi_rewrite *rw, byi_id at)
{
    struct seen *seen = rw->state;
    const struct byi_node *node = byi_rw_node(rw, at);
    if (!shareable(node))
        return BYI_NO_ID;
    uint64_t slot = hash_node(rw, node) & seen->mask;
    for (; seen->at[slot]; slot = (slot + 1) & seen->mask)
        if (same(rw, byi_rw_node(rw, seen->at[slot] - 1), node))
            return seen->at[slot] - 1;
    seen->at[slot] = at + 1;
    return BYI_NO_ID;
}

static const struct byi_rule rules[] = {{BYI_OP_NONE, find_equal}};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    const uint32_t n = m->funcs.at[func]->nodes.n;
    struct seen seen = {0};
    uint32_t slots = 16;
    while (slots / 2 < n)
        slots *= 2;
    seen.mask = slots - 1;
    seen.at = byi_arena_calloc(scratch, slots, sizeof *seen.at);
    return byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, &seen,
                       err);
}

const struct byi_pass byi_pass_eliminate_common_subexpr = {
    .name = "EliminateCommonSubexpr",
    .summary = "compute once what is computed twice",
    .opt_level = 2,
    .run_func = run,
};
