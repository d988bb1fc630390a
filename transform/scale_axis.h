/* SPDX-License-Identifier: Apache-2.0 */
/* transform/scale_axis.h: shared by the two directions of FoldScaleAxis. A
 * scale has one factor per index of an axis. The limits of a value are the
 * scales that it could absorb. This file tells how both propagate through
 * operators, and which constant operands and weights absorb scales.
 *
 * Each direction works in two walks over the nodes, as Relay's pass does.
 * The first finds for every value which scales could be moved into it (its
 * limits); the second moves them and records one edit per node. The rebuild is
 * common. All three are linear in nodes, edges and constants.
 */
#ifndef BYI_SCALE_AXIS_H
#define BYI_SCALE_AXIS_H

#include "core/ir/ir.h"

/* Sources of the multiplications in a scale: the first node that absorbs the
 * scale inherits them. */
struct byi_scale_sources {
    const struct byi_sources *list;
    struct byi_scale_sources
        *next[2];    /* sources of two joined scales, or NULL */
    bool is_claimed; /* a node has inherited them */
};

/* Factors for a tensor: one for all (axis -1), or one per index of `axis`. */
struct byi_scale {
    int axis;
    int64_t n;
    const double *values;
    /* min of the values; least and most of their magnitudes */
    double min, least, most;
    struct byi_scale_sources *sources;
};

/* The scales that a value can absorb. Bit a of `axes`: one factor per index of
 * axis a. */
struct byi_scale_limits {
    uint32_t axes;
    bool nonnegative;   /* factors must not be negative */
    double least, most; /* bounds of the factors' magnitudes */
};
#define BYI_ALL_AXES (1u << BYI_MAX_RANK) /* one factor for all */

/* The limits of a value that can absorb no scale, and of one that can absorb
 * every scale. */
extern const struct byi_scale_limits byi_scale_limits_none,
    byi_scale_limits_any;
/* Returns the scales within both limits. */
struct byi_scale_limits byi_scale_limits_both(struct byi_scale_limits a,
                                              struct byi_scale_limits b);
/* Whether a value with these limits can absorb the scale. */
bool byi_scale_limits_fit(const struct byi_scale_limits *limits,
                          const struct byi_scale *s);

/* How a node propagates a scale of one operand to its result. */
enum byi_scale_how {
    BYI_SCALE_BLOCKS,  /* does not propagate scales                      */
    BYI_SCALE_PASSES,  /* f(s x) = s f(x); with `nonnegative`, for s >= 0    */
    BYI_SCALE_WEIGHTS, /* linear in constant weights                      */
    BYI_SCALE_ADDS,    /* add or subtract                                 */
    BYI_SCALE_PRODUCT, /* multiply, or divide by operand 1                */
    BYI_SCALE_CONCATS, /* concatenate                                     */
};

/* A linear operator with constant weights. Weight (i, j, ...) connects channel
 * i of one side, the output if rows_are_out, with channel j of the other side,
 * counted from the first channel of i's group. */
struct byi_weights {
    struct byi_tensor view;
    bool rows_are_out;
    int64_t groups;
    /* axis of channels in the data; in the result */
    uint32_t in_axis, out_axis;
};

/* The edit of a node; s is the scale `by`. */
enum byi_scale_edit_kind {
    BYI_EDIT_NONE,
    BYI_EDIT_REMOVE,      /* the node goes, x takes its place        */
    BYI_EDIT_WEIGHTS_OUT, /* output channels of the weights times s */
    BYI_EDIT_WEIGHTS_IN,  /* input channels of the weights times s  */
    BYI_EDIT_TIMES,       /* constant operand c becomes c s         */
    BYI_EDIT_OVER,        /* constant operand c becomes c / s       */
    BYI_EDIT_UNDER,       /* x / c becomes x (s / c)                */
};

struct byi_scale_edit {
    enum byi_scale_edit_kind kind;
    byi_id x; /* REMOVE */
    const struct byi_scale *by;
};

/* The work on one function in one direction. Scales and edits are in `scratch`.
 */
struct byi_scaling {
    struct byi_module *m;
    const struct byi_func *f; /* swept: every node is live       */
    struct byi_arena *scratch;
    /* for each constant: its largest magnitude; 0: not computed */
    double *largest;
    uint32_t n_largest;
    struct byi_scale_edit *edits; /* indexed by node */
};

static inline const struct byi_node *byi_scale_node(const struct byi_scaling *s,
                                                    byi_id id)
{
    return &s->f->nodes.at[id];
}

/* Record the edit of node `id`. */
static inline void byi_scale_edit(struct byi_scaling *s, byi_id id,
                                  enum byi_scale_edit_kind kind, byi_id x,
                                  const struct byi_scale *by)
{
    s->edits[id] = (struct byi_scale_edit){.kind = kind, .x = x, .by = by};
}

/* Sweep function `func` and prepare to scale it. Tables are in `scratch`. */
struct byi_scaling byi_scaling_begin(struct byi_module *m, uint32_t func,
                                     struct byi_arena *scratch);
/* Whether the function has a product with a constant; otherwise its weights
 * need not be read. */
bool byi_scaling_is_needed(const struct byi_scaling *s);
/* Rebuild the function with its edits. Errors: BYOC_ELIMIT (a constant exceeds
 * the budget of byi_consts_can_grow); the function is then unchanged. */
enum byoc_status byi_scaling_end(struct byi_scaling *s, uint32_t func,
                                 struct byoc_error *err);

/* Returns how node `id` propagates a scale. *nonnegative: only factors that
 * are not negative. */
enum byi_scale_how byi_scale_how(const struct byi_scaling *s, byi_id id,
                                 bool *nonnegative);
/* Returns the limits of the weights of node `id`, for a scale of the result if
 * `out`, otherwise of the data. */
struct byi_scale_limits byi_scale_weights_limits(struct byi_scaling *s,
                                                 byi_id id, bool out);
/* Returns the index of the float constant operand of an add, subtract, multiply
 * or divide that scales may change; -1 if there is none. */
int byi_scale_const_arg(struct byi_scaling *s, byi_id id);
/* Returns the limits of the operand that byi_scale_const_arg finds. It can be
 * scaled along an axis if it has all indices of that axis, or only one element.
 */
struct byi_scale_limits byi_scale_const_limits(struct byi_scaling *s,
                                               byi_id id);
/* Returns the scale of a multiplication or division by a constant; *x: the
 * scaled operand. NULL for other nodes, if the constant varies along several
 * axes, or if a factor is not finite. */
const struct byi_scale *byi_scale_of(struct byi_scaling *s, byi_id id,
                                     byi_id *x);
/* Returns the product a b; NULL if a and b vary along different axes, or if a
 * factor is not finite. Either may be NULL, which stands for 1. */
const struct byi_scale *byi_scale_times(struct byi_scaling *s,
                                        const struct byi_scale *a,
                                        const struct byi_scale *b);
/* Returns factors first .. first + n - 1 of the scale, for a part of its axis.
 */
const struct byi_scale *byi_scale_part(struct byi_scaling *s,
                                       const struct byi_scale *scale,
                                       int64_t first, int64_t n);
/* Returns a scale of n factors along `axis` (-1: one factor); NULL if a factor
 * is not finite. The factors are not copied. */
const struct byi_scale *byi_scale_make(struct byi_scaling *s, int axis,
                                       int64_t n, const double *values,
                                       struct byi_scale_sources *sources);
/* Join a node's sources with those of two scales, which may be NULL. */
struct byi_scale_sources *byi_scale_sources_join(
    struct byi_scaling *s, const struct byi_sources *node_sources,
    struct byi_scale_sources *a, struct byi_scale_sources *b);

/* Translate limits or a scale of a node's result to its operand `arg`, and
 * back. Limits lose the axes that have no counterpart; a scale's axis must have
 * one.
 */
struct byi_scale_limits byi_scale_limits_to_arg(const struct byi_scaling *s,
                                                byi_id id, uint32_t arg,
                                                struct byi_scale_limits limits);
struct byi_scale_limits byi_scale_limits_to_result(
    const struct byi_scaling *s, byi_id id, uint32_t arg,
    struct byi_scale_limits limits);
const struct byi_scale *byi_scale_to_arg(struct byi_scaling *s, byi_id id,
                                         uint32_t arg,
                                         const struct byi_scale *scale);
const struct byi_scale *byi_scale_to_result(struct byi_scaling *s, byi_id id,
                                            uint32_t arg,
                                            const struct byi_scale *scale);

#endif
