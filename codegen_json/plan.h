/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_json/plan.h: declares a plan and the functions that build it.
 * plan_funcs.c finds the functions that it needs, plan.c plans each of them,
 * memory.c chooses the offsets of temporaries, plan_json.c prints the result.
 */
#ifndef BYI_PLAN_H
#define BYI_PLAN_H

#include "codegen_json.h"

/* The memory of a value. */
enum byi_planned_value_kind {
    BYI_P_INPUT, /* index: of the input */
    BYI_P_CONST, /* index: of the constant */
    BYI_P_TEMP,
    BYI_P_OUTPUT, /* index: of the output; computed in the caller's memory */
    /* index: of the value whose memory it shares, which is not an alias */
    BYI_P_ALIAS
};

/* A value of a function of the plan. */
struct byi_planned_value {
    enum byi_planned_value_kind kind;
    uint32_t index;
    const struct byi_type *type;
    bool fixed;      /* a tensor whose dims are all known */
    uint64_t offset; /* of a fixed temporary */
};

/* The kind of work of a step. */
enum byi_planned_step_kind {
    BYI_P_OP,
    BYI_P_REGION,
    BYI_P_KERNEL, /* a fused kernel */
    BYI_P_CALL,   /* of a function of the plan */
    BYI_P_IF,
    BYI_P_CLOSURE, /* the callee with its captures, as a value */
    BYI_P_APPLY,   /* call a function value; in: this value, its operands */
    BYI_P_CHOOSE   /* in: condition, two function values */
};

/* A step. `in` and `out` are the first indices of ranges of
 * byi_planned_func.flat, of n_in and n_out values. */
struct byi_planned_step {
    enum byi_planned_step_kind kind;
    const struct byi_node *node;
    /* OP: the fused group of an operator with an epilogue, or NULL */
    const struct byi_func *group;
    uint32_t callee;    /* region, kernel or function; IF: the `then` branch */
    uint32_t else_func; /* IF: the `else` branch */
    uint32_t in, n_in, out, n_out;
};

/* A function of the plan. */
struct byi_planned_func {
    const char *name;
    BYI_VEC(struct byi_planned_value) values;
    BYI_VEC(uint32_t) inputs;  /* values */
    BYI_VEC(uint32_t) outputs; /* values */
    BYI_VEC(struct byi_planned_step) steps;
    BYI_VEC(uint32_t) flat; /* values; nodes and steps refer to ranges of it */
    uint64_t arena;         /* bytes of the fixed temporaries */
};

/* The value that owns the memory of `v`. */
static inline uint32_t byi_planned_func_root(const struct byi_planned_func *f,
                                             uint32_t v)
{
    return f->values.at[v].kind == BYI_P_ALIAS ? f->values.at[v].index : v;
}

/* The captures of a nested function. A captured function that is always the
 * same is not passed as a value; its own captures are passed instead. */
struct byi_planned_captures {
    /* for each capture: 1 + the module function that it always is, or 0; NULL:
     * all 0 */
    const uint32_t *known;
    uint32_t leaves;   /* number of values of all captures */
    uint32_t depth;    /* nesting depth of known functions */
    uint32_t holder;   /* the named function that contains this one */
    bool is_recursive; /* it contains a literal of itself */
};

struct byi_plan_walk;
/* The state of byi_plan_write. */
struct byi_planner {
    const struct byi_module *m;
    struct byi_arena *arena;
    struct byoc_error *err;
    struct byi_plan *plan;
    const struct byi_plan_code *code; /* NULL: nothing is fused */
    bool exact;
    enum byoc_dtype store;
    /* for each module constant: 1 + its index in the plan, or 0 */
    uint32_t *const_index;
    /* for each module constant: its value, if const_seen is this function */
    uint32_t *const_at;
    /* for each module constant: 1 + the last function that read it */
    uint32_t *const_seen;
    /* for each module function: 1 + plan function, or 0 */
    uint32_t *func_index;
    uint32_t *region_of; /* for each module function: 1 + region, or 0 */
    struct byi_planned_captures *captures; /* indexed by module function */
    BYI_VEC(uint32_t) order; /* module functions, by plan function */
    BYI_VEC(struct byi_plan_walk) stack;
    BYI_VEC(const struct byi_type *) types; /* scratch of push_leaves */
    struct byi_planned_func out;            /* the function being planned */
    uint32_t out_index;                     /* its index in the plan */
    uint64_t inlined;    /* nodes of literals that were inlined so far */
    uint64_t may_inline; /* limit of `inlined` */
};

/* plan.c: plan module function `func` into b->out. Errors: those of
 * byi_plan_write. */
enum byoc_status byi_plan_body(struct byi_planner *b, uint32_t func);

/* plan_funcs.c */
/* The index in the plan of the function that runs module function `func`; adds
 * it if it is missing. */
uint32_t byi_plan_func(struct byi_planner *b, uint32_t func);
/* The index in the plan of a module constant; adds it if it is missing. */
uint32_t byi_plan_const(struct byi_planner *b, uint32_t constant);
/* The number of values of a type: 1, or for a tuple, the number of types in it
 * that are not tuples. */
uint32_t byi_plan_leaves(const struct byi_type *type);

/* stored.c: decide how the weights store the constant: set placed->bytes,
 * stored and axis. `store`: as in struct byi_plan_params. */
void byi_stored_find(const struct byi_const *c, enum byoc_dtype store,
                     struct byi_placed_const *placed);
/* The bytes that are stored: the constant's own, or a copy in `arena`. */
const void *byi_stored_data(const struct byi_const *c,
                            const struct byi_placed_const *placed,
                            struct byi_arena *arena);

/* epilogue.c: returns the operator that follows node `from` in the epilogue of
 * `head`, and sets *operand to its other operand (BYI_NO_ID if it is unary).
 * Returns BYI_NO_ID if the next operator cannot be in the epilogue. */
byi_id byi_epilogue_next(const struct byi_func *group, byi_id head, byi_id from,
                         byi_id *operand);

/* memory.c: choose the offsets of fixed temporaries, and set f->arena. */
void byi_plan_memory(struct byi_planned_func *f);

/* plan_json.c */
/* Append the JSON members "dtype" and "of" of a sequence's or optional's type.
 */
void byi_list_type_print(const struct byi_type *type, struct byi_text *json);
/* Append a function of the plan; append the plan's member "consts". */
void byi_plan_print_func(const struct byi_module *m,
                         const struct byi_planned_func *f,
                         struct byi_text *json);
void byi_plan_print_consts(const struct byi_module *m,
                           const struct byi_plan *plan, struct byi_text *json);

#endif
