/* SPDX-License-Identifier: Apache-2.0 */
/* taps.h: the inputs that each position of a resized axis reads, and their
 * weights. Generated code contains a copy of this file. Needs stdint.h.
 */
#ifndef BYI_TAPS_H
#define BYI_TAPS_H

/* Position j of `out` reads the n inputs from first[j] on, all of them within
 * `in`. The weight of input first[j] + t is weight[j * stride_j + t *
 * stride_t]; an input of weight 0 is not read. `weight` is NULL if n is 1 and
 * all weights are 1. Both lists are padded to a multiple of 16 positions. */
struct byi_taps {
    int64_t in, out; /* sizes of the axis before and after */
    int64_t n;
    const int32_t *first;
    const float *weight; /* doubles if the tensor is float64 */
    int64_t stride_j, stride_t;
    /* bits 8 and 16: bit W is set if the taps of W positions, beginning at any
     * multiple of W, are among the 2 W inputs from the first position's `first`
     * on, and n is at most 8 */
    uint32_t fits;
};

/* A resize of two axes: x (planes, high.in, wide.in, inner) becomes y (planes,
 * high.out, wide.out, inner). An axis without taps (n = 0) is not resized. */
struct byi_planes {
    struct byi_taps high, wide;
    int64_t planes, inner;
    int64_t floats;     /* scratch memory of one thread, in floats */
    uint8_t high_first; /* resize `high` first, which computes less */
};

#endif
