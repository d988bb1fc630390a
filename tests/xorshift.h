/* SPDX-License-Identifier: Apache-2.0 */
/* xorshift.h: the random numbers of a test, which sets `rng` to a seed. */
#ifndef TESTS_XORSHIFT_H
#define TESTS_XORSHIFT_H

#include <stdint.h>

static uint64_t rng;

/* Returns a number below n. */
static uint32_t draw(uint32_t n)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)(rng >> 33) % n;
}

#endif
