/* SPDX-License-Identifier: Apache-2.0 */
/* transform/rewrite.h: rebuild a function node by node, with rules.
 *
 * Every reachable node is copied to a new function, operands first. Rules see
 * the copy, whose operands are already rewritten, and may return another node
 * to replace it. A node without readers is dropped at once, so a rule can query
 * the number of readers, and its sources pass to its replacement. Time: linear
 * in nodes and edges.
 */
#ifndef BYI_REWRITE_H
#define BYI_REWRITE_H

#include "core/ir/ir.h"

#include <string.h>

struct byi_note;

/* The rebuild of one function. */
struct byi_rewrite {
    struct byi_module *m;
    struct byi_func *f; /* the new function              */
    struct byi_pass_context *ctx;
    struct byi_arena *scratch;
    void *state; /* of the pass                   */
    const struct byi_func *old;
    BYI_VEC(struct byi_note) notes; /* by new id                     */
    byi_id *map;                    /* old id -> new id              */
    bool merged;                    /* sources moved to other nodes  */
};

/* A rule inspects node `at` of rw->f and returns its replacement, or BYI_NO_ID
 * if it does not match. The replacement is a node that it emitted with the
 * functions below, or an existing one. A replacement of another type than `at`
 * is rejected (except for an `if`), so rules need not check for broadcasting.
 * Rules are tried in order, and again on a replacement. */
struct byi_rule {
    enum byi_op_id op; /* BYI_OP_NONE: every node */
    byi_id (*apply)(struct byi_rewrite *rw, byi_id at);
};

/* Rebuild function `func` with the rules, which find `state` in rw->state. On
 * an error the function is unchanged. */
enum byoc_status byi_rewrite(struct byi_module *m, uint32_t func,
                             const struct byi_rule *rules, uint32_t n_rules,
                             struct byi_pass_context *ctx,
                             struct byi_arena *scratch, void *state,
                             struct byoc_error *err);
/* The run_func of a pass whose data are rules that need no state; the rule
 * after the last one is zero. */
enum byoc_status byi_rules_run(struct byi_module *m, uint32_t func,
                               struct byi_pass_context *ctx,
                               struct byi_arena *scratch,
                               struct byoc_error *err);
/* Define byi_pass_ID, the pass `name_` of an optimisation level with the given
 * rules, which need no state. */
#define BYI_RULES_PASS(id, name_, level, summary_, ...)                        \
    const struct byi_pass byi_pass_##id = {                                    \
        .name = (name_),                                                       \
        .summary = (summary_),                                                 \
        .opt_level = (level),                                                  \
        .data = (const struct byi_rule[]){__VA_ARGS__, {0}},                   \
        .run_func = byi_rules_run};
/* Drop the nodes of f that its result does not need, except parameters. The ids
 * of the remaining nodes change. */
void byi_sweep(struct byi_module *m, struct byi_func *f,
               struct byi_arena *scratch);

/* --- queries ------------------------------------------------------------- */

/* Returns node id of rw->f. Valid until the next emission. */
const struct byi_node *byi_rw_node(const struct byi_rewrite *rw, byi_id id);
/* Whether node id is a call of operator `op`. */
bool byi_rw_is(const struct byi_rewrite *rw, byi_id id, enum byi_op_id op);
/* Returns operand i of node id. */
byi_id byi_rw_arg(const struct byi_rewrite *rw, byi_id id, uint32_t i);
/* Returns the type of node id; NULL if it is not a tensor. */
const struct byi_type *byi_rw_tensor(const struct byi_rewrite *rw, byi_id id);
/* Whether node id is a tensor of floats. */
bool byi_rw_is_float(const struct byi_rewrite *rw, byi_id id);
/* Whether id has exactly one reader. */
bool byi_rw_has_one_reader(const struct byi_rewrite *rw, byi_id id);
/* Whether all readers of the n inner nodes are inner nodes or the root. */
bool byi_rw_has_only_inner_readers(const struct byi_rewrite *rw, byi_id root,
                                   const byi_id *inner, uint32_t n);
/* Whether id is a constant; if so, *view borrows its data, which are valid as
 * long as the module. */
bool byi_rw_view(const struct byi_rewrite *rw, byi_id id,
                 struct byi_tensor *view);
/* Whether id is a numeric constant with at least one element whose elements are
 * all the same; if so, sets *value. */
bool byi_rw_splat(const struct byi_rewrite *rw, byi_id id, double *value);
/* Whether id is a numeric constant with at least one element, all equal to
 * `value`. */
bool byi_rw_is_value(const struct byi_rewrite *rw, byi_id id, double value);
/* Whether id is an integer constant of rank 0 or 1 with at most `max` elements;
 * if so, sets values[] and *n. */
bool byi_rw_ints(const struct byi_rewrite *rw, byi_id id, int64_t *values,
                 uint32_t max, uint32_t *n);

/* --- emitting. BYI_NO_ID operands or a type error return BYI_NO_ID -------- */

/* Emit a call with n operands; attributes that are not given have their
 * defaults. */
byi_id byi_rw_call(struct byi_rewrite *rw, enum byi_op_id op,
                   const byi_id *args, uint32_t n, const struct byi_attr *attrs,
                   uint32_t n_attrs);
/* Emit a call with one or two operands and default attributes. */
byi_id byi_rw_op1(struct byi_rewrite *rw, enum byi_op_id op, byi_id a);
byi_id byi_rw_op2(struct byi_rewrite *rw, enum byi_op_id op, byi_id a,
                  byi_id b);
/* Emit a call with the operator and attributes of call `at`, and the operands
 * args[], of which there are as many as `at` has. */
byi_id byi_rw_call_like(struct byi_rewrite *rw, byi_id at, const byi_id *args);
/* Allocate the data of a constant in the module's arena, as *out. False if the
 * type has symbolic dims, or the data exceed the budget of byi_consts_can_grow.
 */
bool byi_rw_alloc(struct byi_rewrite *rw, const struct byi_type *type,
                  struct byi_tensor *out);
/* Add a constant with the data of t, which are not copied: they must be in the
 * module's arena. */
byi_id byi_rw_const(struct byi_rewrite *rw, const struct byi_type *type,
                    const struct byi_tensor *t);
/* Add an int64 constant of shape (n) with a copy of the values. */
byi_id byi_rw_int_vector(struct byi_rewrite *rw, const int64_t *values,
                         uint32_t n);
/* Add a constant with the elements of another constant and other dims. Returns
 * BYI_NO_ID if `constant` is not a constant or has another number of
 * elements. */
byi_id byi_rw_const_as(struct byi_rewrite *rw, byi_id constant, uint32_t rank,
                       const int64_t *dims);
/* Drop the nodes from `before` on, which have no readers. */
void byi_rw_undo(struct byi_rewrite *rw, byi_id before);
/* Add the sources of node `from` to those of node `to`. */
void byi_rw_merge(struct byi_rewrite *rw, byi_id to, byi_id from);

#endif
