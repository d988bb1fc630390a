/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_json/plan.h: a plan being built. plan_funcs.c finds the functions
 * that it needs, plan.c plans each of them, memory.c chooses the offsets of
 * temporaries, plan_json.c prints the result.
 */
#ifndef BYI_PLAN_H
#define BYI_PLAN_H

#include "codegen_json.h"

enum byi_planned_value_kind {
    BYI_P_INPUT, /* index: of the input */
    BYI_P_CONST, /* index: of the constant */
    BYI_P_TEMP,
    BYI_P_OUTPUT, /* index: of the output; written in place */
    /* index: of the value whose memory it shares, which is not an alias */
    BYI_P_ALIAS
};

struct byi_planned_value {
    enum byi_planned_value_kind kind;
    uint32_t index;
    const struct byi_type *type;
    bool fixed;      /* no dim varies; false for functions */
    uint64_t offset; /* of a fixed temporary */
};

enum byi_planned_step_kind {
    BYI_P_OP,
    BYI_P_REGION,
    BYI_P_KERNEL, /* a fused kernel */
    BYI_P_CALL,
    BYI_P_IF,
    BYI_P_CLOSURE, /* the callee with its captures, as a value */
    BYI_P_APPLY,   /* in: a function value, its operands                    */
    BYI_P_CHOOSE   /* in: condition, two function values */
};

/* in and out are ranges of byi_planned_func.flat. */
struct byi_planned_step {
    enum byi_planned_step_kind kind;
    const struct byi_node *node;
    const struct byi_func
        *group;      /* OP: an operator with an epilogue, or NULL */
    uint32_t callee; /* region, kernel or function; IF: then    */
    uint32_t other;  /* IF: the else branch                     */
    uint32_t in, n_in, out, n_out;
};

struct byi_planned_func {
    const char *name;
    BYI_VEC(struct byi_planned_value) values;
    BYI_VEC(uint32_t) inputs;  /* values */
    BYI_VEC(uint32_t) outputs; /* values */
    BYI_VEC(struct byi_planned_step) steps;
    BYI_VEC(uint32_t) flat; /* values; nodes and steps own ranges of it */
    uint64_t arena;         /* bytes of the fixed temporaries */
};

/* The value that owns the memory of `v`. */
static inline uint32_t byi_planned_func_root(const struct byi_planned_func *f,
                                             uint32_t v)
{
    return f->values.at[v].kind == BYI_P_ALIAS ? f->values.at[v].index : v;
}

/* Facts about nested functions (by module function): captures that are always
 * the same function are passed as its own captures instead of a function value.
 */
struct byi_planned_captures {
    const uint32_t *func; /* by capture: 1 + module function; NULL: all 0 */
    uint32_t leaves;      /* number of values of all captures */
    uint32_t depth;       /* nesting depth of known functions */
    uint32_t home;        /* the named function that contains it */
    bool recursive;       /* contains a literal of itself */
};

struct byi_plan_walk;
struct byi_planner {
    const struct byi_module *m;
    struct byi_arena *arena;
    struct byoc_error *err;
    struct byi_plan *plan;
    const struct byi_plan_code *code; /* NULL: nothing is fused */
    bool exact;
    enum byoc_dtype store;
    uint32_t *placed; /* by module constant: 1 + its index in the plan */
    /* by module constant: its value, if const_seen is this function */
    uint32_t *const_at;
    /* by module constant: 1 + the last function that read it */
    uint32_t *const_seen;
    uint32_t *func_index; /* by module function: 1 + plan function, or 0 */
    uint32_t *region_of;  /* by module function: 1 + region, or 0 */
    struct byi_planned_captures *captures; /* by module function */
    BYI_VEC(uint32_t) order; /* module functions, by plan function */
    BYI_VEC(struct byi_plan_walk) stack;
    BYI_VEC(const struct byi_type *) types; /* scratch of push_leaves */
    struct byi_planned_func out;
    uint32_t out_index;
    uint64_t inlined, may_inline; /* nodes of literals that were inlined */
};

/* plan.c: plan module function `func` into b->out. */
enum byoc_status byi_plan_body(struct byi_planner *b, uint32_t func);

/* plan_funcs.c */
/* The function of the plan that runs module function `func`, created on demand.
 */
uint32_t byi_plan_func(struct byi_planner *b, uint32_t func);
/* The index of a constant in the plan. */
uint32_t byi_plan_const(struct byi_planner *b, uint32_t constant);
/* The number of tensors and functions in a type. */
uint32_t byi_plan_leaves(const struct byi_type *type);

/* stored.c: how the weights store the constant: sets placed->bytes, stored and
 * axis. `store`: as in struct byi_plan_params. */
void byi_stored_find(const struct byi_const *c, enum byoc_dtype store,
                     struct byi_placed *placed);
/* The bytes that are stored: the constant's own, or a copy in `arena`. */
const void *byi_stored_data(const struct byi_const *c,
                            const struct byi_placed *placed,
                            struct byi_arena *arena);

/* epilogue.c: returns the operator that follows node `from` in a group's
 * epilogue, and sets *operand to its other operand (BYI_NO_ID if it is unary).
 * Returns BYI_NO_ID if the next operator cannot be in the epilogue. */
byi_id byi_epilogue_next(const struct byi_func *group, byi_id from,
                         byi_id *operand);

/* memory.c: choose the offsets of fixed temporaries, and set f->arena. */
void byi_plan_memory(struct byi_planned_func *f);

/* plan_json.c */
/* Print the members of a sequence's or optional's type. */
void byi_list_type_print(const struct byi_type *type, struct byi_text *json);
/* Append a function of the plan, or the member "consts". */
void byi_plan_print_func(const struct byi_module *m,
                         const struct byi_planned_func *f,
                         struct byi_text *json);
void byi_plan_print_consts(const struct byi_module *m,
                           const struct byi_plan *plan, struct byi_text *json);

#endif
