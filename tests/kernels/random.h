/* SPDX-License-Identifier: Apache-2.0 */
/* random.h: the random numbers of a test. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

/* The state of draw(); the same seed gives the same numbers. */
static uint64_t seed;

/* Returns a number below n. */
static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

#endif
