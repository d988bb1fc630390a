/* SPDX-License-Identifier: Apache-2.0 */
/* EliminateCommonSubexpr: common subexpression elimination (CSE).
 * requires: nothing
 * leaves:   no two nodes of one function with the same operator, attributes,
 *           annotations and operands (in either order if the operator is
 *           commutative): calls (except of operators that draw random
 *           numbers), globals, tuples, tuple fields, ifs, and function literals
 *           with parameters. Constants are equal if their content is; their
 *           nodes are not merged, so that each keeps its sources. Function
 *           literals are equal if their bodies are, node by node; nested
 *           literals must be identical.
 *
 *   %0 = exp(%x);
 *   %1 = exp(%x);      ==>   %0 = exp(%x);
 *   add(%0, %1)              add(%0, %0)
 */
#include "transform.h"

#include <string.h>

#include "rewrite.h"

/* The nodes seen, in a hash table with open addressing. Part of the hash is
 * stored next to the id, so that a probe reads a node only if it probably
 * matches. Equal nodes have the same newest operand, from which byi_hash_probe
 * chooses the slots to try first. */
struct cse_slot {
    uint32_t id;   /* 1 + the node's id; 0: the slot is empty */
    uint32_t hash; /* the upper half of the node's hash */
};

/* The hash table; its size is a power of 2. */
struct cse_table {
    struct cse_slot *at;
    uint32_t mask; /* size of `at` minus 1 */
    uint32_t n;    /* nodes of the old function */
};

static bool is_shareable(const struct byi_module *m,
                         const struct byi_node *node)
{
    switch (node->kind) {
    case BYI_CALL_OP:
        return !byi_op_has(node->op, BYI_TRAIT_RANDOM);
    case BYI_GLOBAL:
    case BYI_MAKE_TUPLE:
    case BYI_GET:
    case BYI_CALL:
    case BYI_IF:
        return true;
    case BYI_FN: /* branches stay with their `if` */
        return m->funcs.at[node->index]->params.n > node->n_args;
    case BYI_PARAM:
    case BYI_CONST:
        return false;
    }
    byi_unreachable();
}

/* Returns an operand's key: a constant's index, or any other node's id. */
static uint64_t key_of(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    return node->kind == BYI_CONST ? (uint64_t)node->index << 32 : id + 1;
}

/* Whether the operands of a commutative operator are not in the order of their
 * keys. */
static bool is_swapped(const struct byi_rewrite *rw,
                       const struct byi_node *node)
{
    return node->kind == BYI_CALL_OP && node->n_args == 2 &&
           byi_op_has(node->op, BYI_TRAIT_COMMUTES) &&
           key_of(rw, node->args[0]) > key_of(rw, node->args[1]);
}

static uint64_t hash_attr(uint64_t h, const struct byi_attr *a)
{
    switch (a->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        return byi_hash(h, &a->i, sizeof a->i);
    case BYI_ATTR_FLOAT:
        return byi_hash(h, &a->f, sizeof a->f);
    case BYI_ATTR_STRING:
        return byi_hash(h, a->s, strlen(a->s));
    case BYI_ATTR_INTS:
        return a->n ? byi_hash(h, a->ints, a->n * sizeof *a->ints) : h;
    case BYI_ATTR_FLOATS:
        return a->n ? byi_hash(h, a->floats, a->n * sizeof *a->floats) : h;
    case BYI_ATTR_STRINGS:
        return h; /* not hashed, only compared */
    }
    byi_unreachable();
}

static uint64_t hash_attrs(uint64_t h, const struct byi_attrs *attrs)
{
    for (uint32_t i = 0; attrs && i < attrs->n; i++)
        h = hash_attr(h, &attrs->at[i]);
    return h;
}

/* --- function literals --------------------------------------------------- */

/* Whether the function was made neither by partitioning nor by fusion. */
static bool is_ordinary(const struct byi_func *f)
{
    return !f->attr.compiler && !f->attr.composite && !f->attr.from_pattern &&
           !f->attr.global_symbol && !f->attr.operands && !f->attr.primitive;
}

static uint64_t hash_body(const struct byi_func *f)
{
    uint64_t h = byi_hash(0, &f->nodes.n, sizeof f->nodes.n);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        const uint32_t head[] = {(uint32_t)node->kind, (uint32_t)node->op,
                                 node->index, node->n_args};
        h = byi_hash(h, head, sizeof head);
        if (node->n_args)
            h = byi_hash(h, node->args, node->n_args * sizeof *node->args);
        h = hash_attrs(h, node->attrs);
    }
    return h;
}

static bool has_same_attrs(const struct byi_attrs *a, const struct byi_attrs *b)
{
    return a && b ? byi_attrs_equal(a, b) : a == b;
}

static bool is_same_node(const struct byi_node *a, const struct byi_node *b)
{
    if (a->kind != b->kind || a->op != b->op || a->index != b->index ||
        a->n_args != b->n_args || a->backend != b->backend ||
        a->region != b->region || !has_same_attrs(a->attrs, b->attrs) ||
        !byi_type_equal(a->type, b->type))
        return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (a->args[i] != b->args[i])
            return false;
    return true;
}

static bool has_same_body(const struct byi_module *m, uint32_t x, uint32_t y)
{
    const struct byi_func *a = m->funcs.at[x], *b = m->funcs.at[y];
    if (x == y)
        return true;
    if (!is_ordinary(a) || !is_ordinary(b) || a->nodes.n != b->nodes.n ||
        a->params.n != b->params.n || a->n_captures != b->n_captures ||
        a->result != b->result)
        return false;
    for (byi_id id = 0; id < a->nodes.n; id++)
        if (!is_same_node(&a->nodes.at[id], &b->nodes.at[id]))
            return false;
    return true;
}

static uint64_t hash_literal(const struct byi_rewrite *rw,
                             const struct byi_node *fn)
{
    uint64_t h = hash_body(rw->m->funcs.at[fn->index]);
    for (uint32_t i = 0; i < fn->n_args; i++) {
        const uint64_t key = key_of(rw, fn->args[i]);
        h = byi_hash(h, &key, sizeof key);
    }
    return h;
}

static bool is_same_literal(const struct byi_rewrite *rw,
                            const struct byi_node *a, const struct byi_node *b)
{
    if (a->n_args != b->n_args)
        return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (key_of(rw, a->args[i]) != key_of(rw, b->args[i]))
            return false;
    return has_same_body(rw->m, a->index, b->index);
}

/* --- the table ----------------------------------------------------------- */

/* Returns operand i of node if the operand is a branch of an `if`, which is
 * compared by its content; otherwise NULL. */
static const struct byi_node *branch_of(const struct byi_rewrite *rw,
                                        const struct byi_node *node, uint32_t i)
{
    const struct byi_node *arg = byi_rw_node(rw, node->args[i]);
    return node->kind == BYI_IF && arg->kind == BYI_FN ? arg : NULL;
}

static uint64_t hash_node(const struct byi_rewrite *rw,
                          const struct byi_node *node)
{
    if (node->kind == BYI_FN)
        return hash_literal(rw, node);
    const uint32_t head[] = {(uint32_t)node->kind, (uint32_t)node->op,
                             node->index, node->n_args};
    const bool swap = is_swapped(rw, node);
    uint64_t h = byi_hash(0, head, sizeof head);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const uint32_t at = swap ? 1 - i : i;
        const struct byi_node *branch = branch_of(rw, node, at);
        const uint64_t key =
            branch ? hash_literal(rw, branch) : key_of(rw, node->args[at]);
        h = byi_hash(h, &key, sizeof key);
    }
    return hash_attrs(h, node->attrs);
}

/* Whether two nodes of the new function have the same value. */
static bool has_same_value(const struct byi_rewrite *rw,
                           const struct byi_node *a, const struct byi_node *b)
{
    if (a->kind != b->kind || a->op != b->op || a->n_args != b->n_args ||
        a->backend != b->backend || a->region != b->region ||
        !has_same_attrs(a->attrs, b->attrs))
        return false;
    if (a->kind == BYI_FN)
        return is_same_literal(rw, a, b);
    const bool swap = is_swapped(rw, a) != is_swapped(rw, b);
    for (uint32_t i = 0; i < a->n_args; i++) {
        const uint32_t k = swap ? 1 - i : i;
        const struct byi_node *x = branch_of(rw, a, i),
                              *y = branch_of(rw, b, k);
        if (x && y ? !is_same_literal(rw, x, y)
                   : key_of(rw, a->args[i]) != key_of(rw, b->args[k]))
            return false;
    }
    return a->index == b->index;
}

/* Returns the newest operand that is neither a constant nor a literal, which
 * may be equal without being identical. Returns 0 if there is no such operand.
 */
static byi_id newest_operand(const struct byi_rewrite *rw,
                             const struct byi_node *node)
{
    byi_id newest = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const byi_id arg = node->args[i];
        const enum byi_node_kind kind = byi_rw_node(rw, arg)->kind;
        if (arg > newest && kind != BYI_CONST && kind != BYI_FN)
            newest = arg;
    }
    return newest;
}

static byi_id find_equal(struct byi_rewrite *rw, byi_id at)
{
    const struct cse_table *seen = rw->state;
    const struct byi_node *node = byi_rw_node(rw, at);
    if (!is_shareable(rw->m, node))
        return BYI_NO_ID;
    const uint64_t hash = hash_node(rw, node);
    const uint32_t high_hash = (uint32_t)(hash >> 32);
    const struct byi_hash_probe probe =
        byi_hash_probe(newest_operand(rw, node), seen->n, hash, seen->mask);
    for (uint32_t i = 0;; i++) {
        struct cse_slot *slot = &seen->at[byi_hash_slot(&probe, i)];
        if (!slot->id) {
            *slot = (struct cse_slot){at + 1, high_hash};
            return BYI_NO_ID;
        }
        if (slot->hash == high_hash &&
            has_same_value(rw, byi_rw_node(rw, slot->id - 1), node))
            return slot->id - 1;
    }
}

static const struct byi_rule rules[] = {{BYI_OP_NONE, find_equal}};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    const uint32_t n = m->funcs.at[func]->nodes.n;
    struct cse_table seen = {.n = n};
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
    .summary = "merge equal subexpressions",
    .opt_level = 2,
    .run_func = run,
};
