/* SPDX-License-Identifier: Apache-2.0 */
/* inline.h: a macro for functions of the kernels of which each caller gets a
 * specialised copy. */
#ifndef BYI_INLINE_H
#define BYI_INLINE_H

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

#endif
