/* SPDX-License-Identifier: Apache-2.0 */
/* inline.h: functions of the kernels that their callers specialise. */
#ifndef BYI_INLINE_H
#define BYI_INLINE_H

/* Starts a function that is inlined into each caller, whose constant arguments
 * unroll its loops. The copies take most of the time to compile a kernel.
 * Nothing is unrolled without optimisation, and sanitizers need to check each
 * line of the source once: both get one function, which runs the same lines. */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) &&                 \
    !defined(__SANITIZE_THREAD__)
#define BYI_ALWAYS_INLINE static inline __attribute__((always_inline))
#else
#define BYI_ALWAYS_INLINE static inline
#endif

#endif
