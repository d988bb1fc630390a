/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/group.h: translates a fused group to a C function. group.c and
 * place.c express its values in terms of loop variables, expr.c gives the C of
 * one value, decide.c chooses the form of loop nests, and nest.c prints them.
 */
#ifndef BYI_GROUP_H
#define BYI_GROUP_H

#include "core/ir/ir.h"

enum {
    BYI_MAX_LOOPS = 24,
    BYI_MAX_GROUP = 512,      /* nodes of a group */
    BYI_SMALL_WORK = 1 << 15, /* least number of steps for one thread */
};

/* The largest tensor; 64-bit index arithmetic on it cannot overflow. */
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
    /* the whole loop has iterations 0 .. full - 1; this domain has the
     * iterations from .. from + extent - 1 */
    int64_t from, full;
};

/* An iteration domain: loops over a box of the result. A concatenation or
 * padding cuts a domain in two at the border between two operands (index-set
 * splitting). */
struct byi_group_domain {
    struct byi_loop loops[BYI_MAX_LOOPS];
    uint32_t n_loops;
};

/* How a value of a group is computed. */
enum byi_group_value_kind {
    BYI_GROUP_LOAD,   /* an element of parameter `index`, at `offset` */
    BYI_GROUP_SCALAR, /* a constant */
    BYI_GROUP_ALIAS,  /* the same as args[0]: its operator moves data */
    BYI_GROUP_OP,     /* computed from args */
    BYI_GROUP_REDUCE  /* args[0] reduced over the loops that its node owns */
};

/* A node's value at one index: one variable in C. */
struct byi_group_value {
    enum byi_group_value_kind kind;
    byi_id node;
    enum byoc_dtype dtype;
    uint32_t index;
    uint32_t rank;
    struct byi_affine at[BYI_MAX_RANK]; /* index of the node's element */
    struct byi_affine offset;           /* of a load, in elements */
    uint32_t n_args;
    uint32_t *args; /* indices of values */
    uint64_t loops; /* bit k: it varies with loop k */
    /* 0: computed in the result's loops; otherwise in the loops of the
     * reduction whose value is nest - 1 */
    uint32_t nest;
    uint32_t level; /* number of that nest's loops around it */
};

/* A group over one iteration domain: its loops, and the values in them. */
struct byi_group {
    const struct byi_module *m;
    const struct byi_func *f;
    struct byi_arena *arena;
    struct byi_loop loops[BYI_MAX_LOOPS];
    uint32_t n_loops;
    BYI_VEC(struct byi_group_value *)
    values;                  /* operands before their readers */
    uint32_t result;         /* index of the result's value */
    struct byi_affine store; /* offset of the result's element */
    const char *refusal;     /* why no code can be generated; NULL: it can */
    bool cut;                /* loop cut_loop must be cut in two */
    uint32_t cut_loop;
    int64_t cut_at; /* number of iterations in the first domain */
};

/* --- group.c -------------------------------------------------------------- */

/* Translate function `f`, over g->loops (none: the whole result), to values.
 * Sets g->refusal if that is not possible. Sets g->cut if the domain has to be
 * cut: then read the two domains of byi_group_cut instead. The caller frees
 * g->values.at with byi_vec_free. */
void byi_group_read(struct byi_group *g);
/* Cut the domain of g at g->cut_at. */
void byi_group_cut(const struct byi_group *g, struct byi_group_domain *first,
                   struct byi_group_domain *second);

/* --- place.c ------------------------------------------------------------ */

/* Order and fuse g->loops; set the members loops, nest and level of every
 * value.
 */
void byi_group_place(struct byi_group *g);
/* Set loops[] to the loops of a nest, outermost first. Returns their number. */
uint32_t byi_group_nest(const struct byi_group *g, uint32_t nest,
                        uint32_t loops[BYI_MAX_LOOPS]);

/* --- expr.c ------------------------------------------------------------- */

/* The C type of an element type; NULL: generated C does not support it. */
const char *byi_c_type(enum byoc_dtype dtype);
/* Whether there is a C expression for this operator, if its first operand has
 * this element type. */
bool byi_expr_has(const struct byi_node *node, enum byoc_dtype operand);
/* Whether that expression, which must exist, calls one of the prelude's math
 * functions. */
bool byi_expr_calls(const struct byi_node *node, enum byoc_dtype operand);
/* Append the expression of `node`, which must exist. args[]: the names of its
 * operands; operand: element type of the first one. */
void byi_expr_print(const struct byi_node *node, enum byoc_dtype operand,
                    const char *const *args, struct byi_text *out);
/* Append the element of a one-element constant as a C literal. */
void byi_expr_literal(const struct byi_tensor *t, struct byi_text *out);

/* A reduction in C. In the texts, $s is the accumulator, $w its type, $v the
 * element, @ the element's type, and # the number of elements. */
struct byi_reduction {
    const char *type;   /* of the accumulator */
    const char *start;  /* its initial value */
    const char *step;   /* the statement that adds an element */
    const char *merge;  /* OpenMP's operator: "+", "*", "max", "min" */
    const char *finish; /* the expression of the result */
    bool by_blocks;     /* sum blocks in float, and these sums in type */
};
/* The texts that stand for $s, $w, $v, @ and #. */
struct byi_reduction_names {
    const char *sum, *sum_type, *value, *type;
    int64_t count;
};
/* Set *reduction to the C of a reduction operator. Returns false if there is
 * none for this element type. */
bool byi_reduction_find(enum byi_op_id op, enum byoc_dtype dtype,
                        struct byi_reduction *reduction);
/* Append a text of struct byi_reduction, with these names for its marks. */
void byi_reduction_print(const char *text,
                         const struct byi_reduction_names *names,
                         struct byi_text *out);

/* --- nest.c ------------------------------------------------------------- */

/* decide.c: the reason why generated loops over this domain would be slow;
 * NULL: they are not. */
const char *byi_nest_refuse(const struct byi_group *domain);
/* Append the body of the function that computes these n domains. */
void byi_nest_print(const struct byi_group *domains, uint32_t n,
                    struct byi_text *out);

/* --- prelude.c.in ------------------------------------------------------- */

/* The text at the start of every file of kernels. */
extern const char byi_prelude[];

#endif
