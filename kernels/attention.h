/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/attention.h: attention in float32, one head after the other, of
 * float32 data or of float32 copies of a head's narrow data (float16 or
 * bfloat16):
 *
 *     y = softmax(f(q k)) v
 *
 * where f applies elementwise functions, such as a scale and a mask, to the
 * scores. The scores of some rows of q are computed at a time, so that they
 * stay in the second-level cache. An additive mask, such as a causal one, may
 * give the last keys weight 0 in all of these rows. Then their scores and
 * products are not computed, and their values are not read, even if they are
 * NaN. The caller provides all memory; nothing here allocates or fails. */
#ifndef BYI_F32_ATTENTION_H
#define BYI_F32_ATTENTION_H

#include "kernels/conv.h"

enum { BYI_F32_BATCH_AXES = 6 };

/* Strides in elements: between matrices along each batch axis (0 repeats the
 * same matrix), between the rows of a matrix, and between its columns. */
struct byi_f32_strides {
    int64_t batch[BYI_F32_BATCH_AXES], row, column;
};

/* A function of the scores, without parameters, or a binary one of the scores
 * and an operand, whose column stride is 0 or 1. */
struct byi_f32_score {
    byi_f32_unary_fn *unary; /* NULL if it is binary */
    byi_f32_binary_fn *binary;
    struct byi_f32_strides operand;
};

/* Attention of one shape. The caller sets the members before `kernels`. */
struct byi_f32_attention {
    int64_t batch[BYI_F32_BATCH_AXES]; /* numbers of heads; unused leading axes
                                        * are 1 */
    /* q (rows, depth), k (depth, keys), v (keys, columns), y (rows, columns) */
    int64_t rows, depth, keys, columns;
    struct byi_f32_strides q, k, v, y; /* y.column is 1 */
    uint32_t n_scores;
    struct byi_f32_score scores[BYI_F32_EPILOGUE_OPS];
    enum byi_f32_type type; /* of all arguments */
    float scale;            /* of the products of q and k; 0 stands for 1 */
    bool zero_nan;          /* results of the softmax that are NaN become 0 */
    /* byi_f32_attention_plan() sets these; `kernels` only if it is NULL */
    const struct byi_f32_kernels *kernels;
    int64_t task_rows; /* most rows of a task */
    int64_t scores_ld; /* floats from one row of scores to the next */
};

/* The arguments of a run. If the attention's type is narrow, the pointers to
 * float point to uint16_t. */
struct byi_f32_attention_run {
    const struct byi_f32_attention *attention;
    const float *q, *k, *v, *operands[BYI_F32_EPILOGUE_OPS];
    float *y;      /* must not overlap an input */
    void *scratch; /* aligned for floats */
    int threads;   /* at most the number for which the scratch was sized */
};

/* Choose the kernels, unless they are set, and the sizes of a task. If a head
 * has one row, this may turn heads that share keys and values into rows of one
 * head, which changes members that the caller set. */
void byi_f32_attention_plan(struct byi_f32_attention *attention);
/* Bytes of scratch for a run with at most `threads` threads. */
uint64_t byi_f32_attention_scratch(const struct byi_f32_attention *attention,
                                   int threads);
/* Compute y. The result does not depend on the number of threads. */
void byi_f32_attention_run(const struct byi_f32_attention_run *run);

#endif
