/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/group.h: a fused group on its way to a C function: its values as
 * expressions of loop variables (group.c), the C of one value (expr.c), the
 * loops around them (nest.c).
 */
#ifndef BYI_GROUP_H
#define BYI_GROUP_H

#include "core/ir/ir.h"

enum {
    BYI_MAX_LOOPS = 24,
    BYI_MAX_GROUP = 512,      /* nodes of a group                       */
    BYI_SMALL_WORK = 1 << 15, /* elements that are not worth a thread   */
};

/* Of one tensor: what indices of 64 bits reach at ease. */
#define BYI_MAX_C_BYTES (UINT64_C(1) << 44)

/* base + sum of coef[k] times loop variable k. */
struct byi_affine {
    int64_t base, coef[BYI_MAX_LOOPS];
};

/* A loop: over an axis of the result, or over one that a reduction removes.
 * An axis may have several, from the outermost on. */
struct byi_loop {
    byi_id owner; /* the reduction's node; BYI_NO_ID: the result */
    uint32_t axis;
    int64_t extent;
    int64_t from, full; /* the steps are from .. from + extent of `full` */
};

/* A part of a result's elements, with loops of its own: where a concatenation
 * ends one operand and begins the next, the result is cut. */
struct byi_part {
    struct byi_loop loops[BYI_MAX_LOOPS];
    uint32_t n_loops;
};

enum byi_gkind {
    BYI_G_LOAD,   /* an element of parameter `index`, at `offset`      */
    BYI_G_SCALAR, /* a constant                                        */
    BYI_G_ALIAS,  /* that of args[0]: a movement's                     */
    BYI_G_OP,     /* computed from args                                */
    BYI_G_REDUCE  /* args[0] over the loops its node owns              */
};

/* A node's value at one index: what one C variable holds. */
struct byi_gvalue {
    enum byi_gkind kind;
    byi_id node;
    enum byoc_dtype dtype;
    uint32_t index;
    uint32_t rank;
    struct byi_affine at[BYI_MAX_RANK]; /* which element of the node */
    struct byi_affine offset;
    uint32_t n_args;
    uint32_t *args; /* values */
    uint64_t loops; /* bits: the loops it varies with */
    uint32_t nest;  /* 0: the result's loops; else the value of a reduction
                       whose loops are the innermost it stands in, plus 1  */
    uint32_t level; /* loops of that nest that are open where it stands */
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
    const char *refused; /* why there is no code; NULL: there is */
    bool cut;            /* the loops must be cut in two: see cut_loop */
    uint32_t cut_loop;
    int64_t cut_at; /* steps of the first part */
};

/* --- group.c ------------------------------------------------------------ */

/* Understand function `f` over g->loops (none: all of it), or say in
 * g->refused why not, or set g->cut: byi_group_cut then gives two parts to read
 * instead. g->values is freed by the caller (byi_vec_free). */
void byi_group_read(struct byi_group *g);
void byi_group_cut(const struct byi_group *g, struct byi_part *first,
                   struct byi_part *second);

/* The value an alias stands for; itself when it is none. */
uint32_t byi_group_root(const struct byi_group *g, uint32_t value);

/* --- place.c ------------------------------------------------------------ */

/* Order and join g->loops, set loops, nest and level of every value. */
void byi_group_place(struct byi_group *g);
/* The loops of a nest, outermost first; their number. */
uint32_t byi_group_nest(const struct byi_group *g, uint32_t nest,
                        uint32_t loops[BYI_MAX_LOOPS]);

/* --- expr.c ------------------------------------------------------------- */

const char *byi_c_type(enum byoc_dtype dtype); /* NULL: not in generated C */
/* Whether there is C for this operator on these types. */
bool byi_expr_has(const struct byi_node *node, enum byoc_dtype operand);
/* Whether that C computes one of the prelude's longer functions. */
bool byi_expr_calls(const struct byi_node *node, enum byoc_dtype operand);
/* Add the C of `node`, with operands by name. */
void byi_expr_print(const struct byi_node *node, enum byoc_dtype operand,
                    const char *const *args, struct byi_text *out);
/* The one element of a constant as a C literal. */
void byi_expr_literal(const struct byi_tensor *t, struct byi_text *out);

/* A reduction in C. The texts are filled in by byi_fold_print. */
struct byi_fold {
    const char *type;   /* of the accumulator                          */
    const char *start;  /* its first value                             */
    const char *step;   /* a statement: what an element does to it     */
    const char *merge;  /* "+", "*", "max", "min": OpenMP's name of it */
    const char *finish; /* the result                                  */
    bool by_blocks;     /* floats, added up in `type` block by block   */
};
struct byi_fold_names {
    const char *sum, *sum_type, *value, *type;
    int64_t count;
};
/* false: there is no C for this reduction of this type. */
bool byi_fold_of(enum byi_op_id op, enum byoc_dtype dtype,
                 struct byi_fold *fold);
void byi_fold_print(const char *text, const struct byi_fold_names *names,
                    struct byi_text *out);

/* --- nest.c ------------------------------------------------------------- */

/* Why loops over this part would not be good; NULL: they are. */
const char *byi_nest_refuse(const struct byi_group *part);
/* The body of a function of these parts. */
void byi_nest_print(const struct byi_group *parts, uint32_t n,
                    struct byi_text *out);

/* --- prelude.c.in ------------------------------------------------------- */

/* What every file of kernels starts with. */
extern const char byi_prelude[];

#endif
