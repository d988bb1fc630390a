/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/group.h: translates a fused group to a C function: its values as
 * expressions of loop variables (group.c, place.c), the C of one value
 * (expr.c), and the loop nests (decide.c, nest.c).
 */
#ifndef BYI_GROUP_H
#define BYI_GROUP_H

#include "core/ir/ir.h"

enum {
    BYI_MAX_LOOPS = 24,
    BYI_MAX_GROUP = 512,      /* nodes of a group                       */
    BYI_SMALL_WORK = 1 << 15, /* elements of work for one thread        */
};

/* The most bytes of a tensor; 64-bit index arithmetic cannot overflow then. */
#define BYI_MAX_C_BYTES (UINT64_C(1) << 44)

/* base + sum of coef[k] times loop variable k. */
struct byi_affine {
    int64_t base, coef[BYI_MAX_LOOPS];
};

/* A loop over an axis of the result, or over an axis that a reduction removes.
 * An axis may have several loops, outermost first. */
struct byi_loop {
    byi_id owner; /* the reduction's node; BYI_NO_ID: the result */
    uint32_t axis;
    int64_t extent;
    int64_t from,
        full; /* iterates from .. from + extent - 1 of 0 .. full - 1 */
};

/* A part of the result, with separate loops. A concatenation cuts the result
 * where one operand ends and the next begins. */
struct byi_group_part {
    struct byi_loop loops[BYI_MAX_LOOPS];
    uint32_t n_loops;
};

enum byi_gkind {
    BYI_G_LOAD,   /* an element of parameter `index`, at `offset`      */
    BYI_G_SCALAR, /* a constant                                        */
    BYI_G_ALIAS,  /* args[0], behind an operator that moves data       */
    BYI_G_OP,     /* computed from args                                */
    BYI_G_REDUCE  /* args[0] reduced over the loops that its node owns */
};

/* A node's value at one index: one variable in C. */
struct byi_gvalue {
    enum byi_gkind kind;
    byi_id node;
    enum byoc_dtype dtype;
    uint32_t index;
    uint32_t rank;
    struct byi_affine at[BYI_MAX_RANK]; /* index of the node's element */
    struct byi_affine offset;
    uint32_t n_args;
    uint32_t *args; /* values */
    uint64_t loops; /* bit k: it varies with loop k */
    /* 0: computed in the result's loops; else in those of the reduction with
     * value nest - 1 */
    uint32_t nest;
    uint32_t level; /* depth in that nest where it is computed */
};

struct byi_group {
    const struct byi_module *m;
    const struct byi_func *f;
    struct byi_arena *arena;
    struct byi_loop loops[BYI_MAX_LOOPS];
    uint32_t n_loops;
    BYI_VEC(struct byi_gvalue *) values; /* operands before their readers */
    uint32_t result;                     /* value */
    struct byi_affine store;             /* of the result's elements */
    const char *refused; /* why no code can be generated; NULL: it can */
    bool cut;            /* the loops must be cut in two, at cut_loop */
    uint32_t cut_loop;
    int64_t cut_at; /* iterations of the first part */
};

/* --- group.c ------------------------------------------------------------ */

/* Translate function `f` over g->loops (none: the whole result) to values. If
 * that fails, set g->refused, or g->cut: then read the two parts of
 * byi_group_cut instead. The caller frees g->values (byi_vec_free). */
void byi_group_read(struct byi_group *g);
void byi_group_cut(const struct byi_group *g, struct byi_group_part *first,
                   struct byi_group_part *second);

/* --- place.c ------------------------------------------------------------ */

/* Order and fuse g->loops; set loops, nest and level of every value. */
void byi_group_place(struct byi_group *g);
/* The loops of a nest, outermost first; their number. */
uint32_t byi_group_nest(const struct byi_group *g, uint32_t nest,
                        uint32_t loops[BYI_MAX_LOOPS]);

/* --- expr.c ------------------------------------------------------------- */

const char *byi_c_type(enum byoc_dtype dtype); /* NULL: not in generated C */
/* Whether there is C for this operator on these types. */
bool byi_expr_has(const struct byi_node *node, enum byoc_dtype operand);
/* Whether that C calls one of the prelude's math functions. */
bool byi_expr_calls(const struct byi_node *node, enum byoc_dtype operand);
/* Append the C of `node`; args: the operands' names. */
void byi_expr_print(const struct byi_node *node, enum byoc_dtype operand,
                    const char *const *args, struct byi_text *out);
/* Append the element of a one-element constant as a C literal. */
void byi_expr_literal(const struct byi_tensor *t, struct byi_text *out);

/* A reduction in C. byi_fold_print expands the texts. */
struct byi_fold {
    const char *type;   /* of the accumulator                          */
    const char *start;  /* its initial value                           */
    const char *step;   /* the statement that adds an element          */
    const char *merge;  /* "+", "*", "max", "min": OpenMP's operator   */
    const char *finish; /* the result                                  */
    bool by_blocks;     /* sum blocks in float, and their sums in type */
};
struct byi_fold_names {
    const char *sum, *sum_type, *value, *type;
    int64_t count;
};
/* False: there is no C for this reduction of this type. */
bool byi_fold_of(enum byi_op_id op, enum byoc_dtype dtype,
                 struct byi_fold *fold);
void byi_fold_print(const char *text, const struct byi_fold_names *names,
                    struct byi_text *out);

/* --- nest.c ------------------------------------------------------------- */

/* Why generated loops over this part would be slow; NULL: they would not. */
const char *byi_nest_refuse(const struct byi_group *part);
/* Append the body of the function of these parts. */
void byi_nest_print(const struct byi_group *parts, uint32_t n,
                    struct byi_text *out);

/* --- prelude.c.in ------------------------------------------------------- */

/* The text at the start of every file of kernels. */
extern const char byi_prelude[];

#endif
