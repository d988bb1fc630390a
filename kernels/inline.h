/* SPDX-License-Identifier: Apache-2.0 */
/* inline.h: a macro for kernel functions that are specialised for the constant
 * arguments of each caller, and a function that prefetches rows. */
#ifndef BYI_INLINE_H
#define BYI_INLINE_H

#include <stdbool.h>
#include <stdint.h>

/* Starts a function that is inlined into each caller, whose constant arguments
 * unroll its loops. The copies take most of the time to compile a kernel.
 * Without optimisation nothing is unrolled, and sanitizers need to check each
 * line of the source once; such builds get one function, not copies. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define BYI_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define BYI_ALWAYS_INLINE static inline
#endif

/* Prefetch `rows` rows of `columns` floats, which are `ld` floats apart; for
 * writing if `write`, otherwise for reading. */
BYI_ALWAYS_INLINE void byi_f32_prefetch(const float *at, int64_t ld, int rows,
                                        int64_t columns, bool write)
{
    enum { LINE = 16 }; /* floats of a cache line */
    for (int r = 0; r < rows; r++)
        for (int64_t j = 0; j < columns; j += LINE)
            if (write)
                __builtin_prefetch(at + r * ld + j, 1);
            else
                __builtin_prefetch(at + r * ld + j, 0);
}

#endif
