/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.h: a reduction as reduce.c and reduce_columns.c compute it. */
#ifndef BYI_REDUCE_H
#define BYI_REDUCE_H

#include "move.h"

/* The operation that adds an element to the accumulator. */
enum fold {
    ADD = BYI_ADD,
    ADD_ABS = BYI_ADD_ABS,
    ADD_SQUARE = BYI_ADD_SQUARE,
    ADD_EXP = BYI_ADD_EXP,
    MAX,
    MIN,
    MUL,
    FOLDS
};

struct axes_reduction;

/* Compute result `out`. */
typedef void (*reduce_one_fn)(const struct axes_reduction *r, int64_t out);

/* A reduction of x to y over some of its axes. */
struct axes_reduction {
    enum byi_op_id op;
    enum fold fold;
    enum byoc_dtype dtype;
    int64_t size; /* bytes of an element */
    struct byi_axes axes;
    const void *x;
    void *y;
    reduce_one_fn plain; /* element by element */
};

static inline bool is_extreme(enum fold fold)
{
    return fold == MAX || fold == MIN;
}

/* The term of a fold that is not an extreme, for the loops of byi_simd. */
static inline enum byi_sum sum_of(enum fold fold)
{
    return fold == MUL ? BYI_TIMES : (enum byi_sum)fold;
}

/* Whether terms are first added to partial sums in float32, which are then
 * added in double. */
static inline bool has_partial_sums(const struct axes_reduction *r,
                                    enum fold fold)
{
    return r->dtype == BYOC_F32 && !is_extreme(fold) && fold != MUL;
}

/* Compute the result from the accumulator of `count` elements; `shift` is that
 * of log-sum-exp. */
static inline double byi_reduction_finish(enum byi_op_id op, double acc,
                                          double shift, int64_t count)
{
    switch (op) {
    case BYI_OP_MEAN:
        return acc / (double)count;
    case BYI_OP_L2:
        return sqrt(acc);
    case BYI_OP_LOG_SUM:
        return log(acc);
    case BYI_OP_LOG_SUM_EXP:
        return shift + log(acc);
    default:
        return acc;
    }
}

/* --- reduce_columns.c ----------------------------------------------------- */

/* Whether there are loops for columns of the operator and type. */
bool byi_reduction_has_columns(const struct axes_reduction *r);
/* Compute the results of small blocks on `team` threads; return false, and
 * compute nothing, if the elements of a result are in long rows or columns. */
bool byi_reduction_run_blocks(const struct axes_reduction *r, int team);
/* Compute the results in columns, on `team` threads. */
void byi_reduction_run_columns(const struct axes_reduction *r, int team);

#endif
