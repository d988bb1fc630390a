/* SPDX-License-Identifier: Apache-2.0 */
/* make.h: shared by the files of the generator of random programs. make.c has
 * scopes, functions and control flow, make_ops.c and make_net.c the operators.
 *
 * A scope is a function that is being written: @global, literal or branch.
 * Values of the scopes around it may be used too; each becomes a captured
 * parameter of every function between.
 */
#ifndef BYI_TESTS_MAKE_H
#define BYI_TESTS_MAKE_H

#include "programs.h"

/* A value and an approximate bound of its elements. Values that get too large
 * are squashed, so that results stay comparable. */
struct bounded_value {
    byi_id id;
    double bound;
};

/* A function that is being written. */
struct scope {
    struct scope *outer; /* NULL: a @global */
    struct byi_func *f;
    uint32_t func;
    uint32_t depth;
    uint32_t steps;      /* still to write                          */
    double cost, budget; /* nodes that one call executes, at most  */
    BYI_VEC(struct bounded_value) values;
    BYI_VEC(byi_id) captures; /* ids in the outer function */
    BYI_VEC(uint32_t)
    imported; /* of each capture: its index in outer->values */
};

/* A finished @global. */
struct global {
    uint32_t func;
    double cost;
};

/* The state of making a program. */
struct maker {
    struct byi_module *m;
    uint64_t state;
    int64_t batch; /* the first axis of parameters: 1, or a symbol */
    BYI_VEC(struct global) globals;
    uint32_t n_names, n_sources;
    bool lets; /* some nodes are bound by let */
};

/* --- make.c ------------------------------------------------------ */

enum { MAX_DEPTH = 4, MAX_ELEMENTS = 256, N_SYMBOL = 4 };
/* The cost bound of any function value, since a caller does not know which one
 * it calls. */
#define VALUE_COST 100.0

/* A random number from 0 to n - 1. */
uint32_t make_pick(struct maker *k, uint32_t n);
const struct byi_type *make_type_of(const struct scope *s, byi_id id);
/* A random visible value whose type is accepted, more often a recent one; NULL
 * if there is none. Values of outer scopes are captured. */
typedef bool (*make_accepts_fn)(const struct byi_type *type, const void *ctx);
const struct bounded_value *make_find(struct maker *k, struct scope *s,
                                      make_accepts_fn accepts, const void *ctx);
/* A value of this type, found or written; BYI_NO_ID if none can be written,
 * since no visible value has a symbolic dim of the type. */
byi_id make_value(struct maker *k, struct scope *s,
                  const struct byi_type *type);
/* Let later statements of the scope read node `id`, whose elements are at most
 * `bound`. make_bound() returns the bound of a value, 4 if it has none. */
void make_push(struct scope *s, byi_id id, double bound);
double make_bound(const struct scope *s, byi_id id);

/* --- make_ops.c: operators. Every maker may do nothing. ---------- */

extern void (*const make_ops[])(struct maker *k, struct scope *s);
extern const uint32_t n_make_ops;
/* Add a call, and push it as a value. Returns BYI_NO_ID if its types do not
 * fit, or its result is large. Floats beyond the bound are squashed. */
byi_id make_call(struct maker *k, struct scope *s, enum byi_op_id op,
                 const byi_id *args, uint32_t n, const struct byi_attr *attrs,
                 uint32_t n_attrs, double bound);
/* Add a constant: of random numbers, pushed as a value, or BYI_NO_ID if it is
 * large; of one number; a vector of int64. */
byi_id make_const(struct maker *k, struct scope *s, enum byoc_dtype dtype,
                  uint32_t rank, const int64_t *dims);
byi_id make_number(struct maker *k, struct scope *s, enum byoc_dtype dtype,
                   double value);
byi_id make_ints(struct maker *k, struct scope *s, const int64_t *values,
                 uint32_t n);
/* A scalar bool to branch on. */
byi_id make_condition(struct maker *k, struct scope *s);
/* Predicates for make_find(): a float32 tensor; a float32 tensor of rank 4. */
bool make_is_float32(const struct byi_type *type, const void *unused);
bool make_is_image(const struct byi_type *type, const void *unused);
/* The number of elements; symbolic dims count as N_SYMBOL. */
int64_t make_elements(const struct byi_type *type);

/* --- make_net.c: parts of networks ------------------------------- */

extern void (*const make_nets[])(struct maker *k, struct scope *s);
extern const uint32_t n_make_nets;

#endif
