/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero.h: finds the elements of a tensor that are not zero, 64 at a time:
 *
 *     struct byi_nonzero reader = byi_nonzero_begin(t);
 *     for (int64_t first = 0; reader.n > 0; first += 64)
 *         for (uint64_t bits = byi_nonzero_next(&reader); bits;
 *              bits &= bits - 1)
 *             ... element first + __builtin_ctzll(bits) is not zero ...
 */
#ifndef BYI_NONZERO_H
#define BYI_NONZERO_H

#include "core/base/base.h"

/* A reader of a tensor's elements. */
struct byi_nonzero {
    const char *x; /* the next element */
    int64_t n;     /* elements that are not read yet */
    size_t size;   /* bytes of an element */
    uint64_t mask; /* the bits of an element that make it not zero */
};

/* Begin to read a dense tensor of numbers or bool. -0 is zero, NaN is not. */
struct byi_nonzero byi_nonzero_begin(const struct byi_tensor *t);
/* Read the next 64 elements: bit i is 1 if element i of them is not zero. Bits
 * beyond the last element are 0. */
uint64_t byi_nonzero_next(struct byi_nonzero *reader);
/* Count all elements that are not zero. */
int64_t byi_nonzero_count(const struct byi_tensor *t);

#endif
