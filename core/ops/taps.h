/* SPDX-License-Identifier: Apache-2.0 */
/* taps.h: the inputs that each position of a resized axis reads, and their
 * weights. Generated code contains a copy of this file. Needs stdint.h.
 */
#ifndef BYI_TAPS_H
#define BYI_TAPS_H

/* Position j of `out` reads the n inputs from first[j] on, all of them within
 * `in`. How much of input first[j] + t: weight[j at_j + t at_t]; what weighs
 * nothing is not read. weight is NULL where n is 1 and all of it counts.
 * Both lists go on to a multiple of 16 positions. */
struct byi_taps {
    int64_t in, out, n;
    const int32_t *first;
    const float *weight; /* doubles where the tensor is float64 */
    int64_t at_j, at_t;
    /* bit W: any W positions, from a multiple of W on, read no further than 2 W
     * inputs from the first one's on */
    uint32_t fits;
};

/* x (planes, high.in, wide.in, inner) to y (planes, high.out, wide.out, inner):
 * `high` without taps (n = 0) is an axis that stays, so is `wide`. */
struct byi_planes {
    struct byi_taps high, wide;
    int64_t planes, inner;
    int64_t room;       /* floats that one thread needs */
    uint8_t high_first; /* which axis goes first: what computes less */
};

#endif
