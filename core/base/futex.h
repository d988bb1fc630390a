/* SPDX-License-Identifier: Apache-2.0 */
/* futex.h: sleeps until a word changes (man 2 futex), or waits briefly without
 * sleeping.
 */
#ifndef BYI_FUTEX_H
#define BYI_FUTEX_H

#include "core/base/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Sleep while *word is `value`, at most `ns` nanoseconds; 0: no limit. May
 * return early. */
static inline void byi_futex_wait(_Atomic uint32_t *word, uint32_t value,
                                  uint64_t ns)
{
    const struct timespec limit = {(time_t)(ns / 1000000000),
                                   (long)(ns % 1000000000)};
    syscall(SYS_futex, (void *)word, FUTEX_WAIT_PRIVATE, value,
            ns ? &limit : NULL, NULL, 0);
}

/* Wake at most n threads that sleep on the word. */
static inline void byi_futex_wake(_Atomic uint32_t *word, int n)
{
    syscall(SYS_futex, (void *)word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

/* Tell the CPU that this is a spin loop. */
static inline void byi_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Spin while *word is `value`, at most about `ns` nanoseconds. Returns whether
 * it changed. */
static inline bool byi_spin_while(_Atomic uint32_t *word, uint32_t value,
                                  uint64_t ns)
{
    enum { CHECKS = 16 }; /* iterations between two readings of the clock */
    if (ns == 0)
        return atomic_load_explicit(word, memory_order_acquire) != value;
    const uint64_t end = byi_now_ns() + ns;
    do {
        for (int i = 0; i < CHECKS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != value)
                return true;
            byi_relax();
        }
    } while (byi_now_ns() < end);
    return false;
}

#endif
