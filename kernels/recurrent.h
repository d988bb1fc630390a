/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/recurrent.h: float32 LSTM, and GRU whose reset gate is applied to the
 * recurrent product (linear_before_reset), with constant weights. Weights are
 * packed once; then any number of threads may run the layer at the same time.
 * The caller provides all memory; nothing here allocates or fails. */
#ifndef BYI_F32_RECURRENT_H
#define BYI_F32_RECURRENT_H

#include "kernels/conv.h"

/* A layer: x (time, batch, input), y (time, batch, directions * hidden), states
 * (directions, batch, hidden), all dense. Gates are in the order i, f, g, o for
 * LSTM; z, r, n for GRU, whose last bias belongs to n's recurrent product. */
struct byi_f32_recurrent {
    bool gru;
    int64_t time, batch, input, hidden, directions;
    /* the first direction runs from the last step to the first, as the second
     * direction always does */
    bool reverse;
    /* byi_f32_recurrent_plan() sets these */
    const struct byi_f32_kernels *kernels;
    int64_t gates, groups;       /* `groups` of kernels->width hidden units */
    struct byi_f32_conv product; /* the product of the inputs of all steps */
};

/* Arguments of a run. */
struct byi_f32_recurrent_run {
    const struct byi_f32_recurrent *layer;
    const float *x, *weights, *recurrent; /* `weights` and `recurrent` are
                                           * packed */
    const float *bias;                    /* (directions, 4, hidden)      */
    const float *h, *c;                   /* initial states; NULL: zero   */
    float *y, *y_h, *y_c;                 /* y_h and y_c may be NULL */
    void *scratch;                        /* aligned for pointers */
    int threads; /* at most the number for which the scratch was sized */
};

/* Set the kernels, the widest that the CPU allows, and the sizes. */
void byi_f32_recurrent_plan(struct byi_f32_recurrent *layer);
/* Whether these kernels are faster than oneDNN's for this layer. */
bool byi_f32_recurrent_pays(const struct byi_f32_recurrent *layer);
/* Bytes of a packed matrix: the recurrent weights or, if not `recurrent`, the
 * input's weights. */
uint64_t byi_f32_recurrent_packed(const struct byi_f32_recurrent *layer,
                                  bool recurrent);
/* Pack a matrix, whose element (direction d, row k, gate g, unit u) is from[d *
 * strides[0] + k * strides[1] + g * strides[2] + u * strides[3]]. */
void byi_f32_recurrent_pack(const struct byi_f32_recurrent *layer,
                            bool recurrent, const float *from,
                            const int64_t strides[4], float *to);
/* Whether `a` and `b` pack the same matrices to the same bytes. */
bool byi_f32_recurrent_packs_alike(const struct byi_f32_recurrent *a,
                                   const struct byi_f32_recurrent *b);
/* Bytes of scratch for a run with at most `threads` threads. */
uint64_t byi_f32_recurrent_scratch(const struct byi_f32_recurrent *layer,
                                   int threads);
/* Compute y, y_h and y_c. The layer must be planned, and its weights packed. */
void byi_f32_recurrent_run(const struct byi_f32_recurrent_run *run);

#endif
