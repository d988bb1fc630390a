/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the time of CLOCK_MONOTONIC. */
#ifndef BYI_CLOCK_H
#define BYI_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since a fixed time in the past. */
static inline uint64_t byi_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The same in seconds. */
static inline double byi_now(void)
{
    return 1e-9 * (double)byi_now_ns();
}

#endif
