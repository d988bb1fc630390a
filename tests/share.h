/* SPDX-License-Identifier: Apache-2.0 */
/* tests/share.h: how many of its random or sampled cases a test tries, and
 * which.
 *
 * Sanitizers report the first invalid access, which any case of its kind shows.
 * So they need every kind of case, but few cases of each kind. A plain build
 * tries all cases; a build with sanitizers, which takes many times as long,
 * tries one of eight. BYOC_TEST_SHARE=N in the environment makes every build
 * try one of N; 1: all. ctest sets it for tests that are scripts.
 */
#ifndef BYI_TESTS_SHARE_H
#define BYI_TESTS_SHARE_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { TEST_SHARE = 8 };
#else
enum { TEST_SHARE = 1 };
#endif

/* A test tries one of this many cases; at least 1. */
static inline int test_share(void)
{
    const char *text = getenv("BYOC_TEST_SHARE");
    const int share = text ? atoi(text) : TEST_SHARE;
    return share > 0 ? share : 1;
}

/* How many of n cases a test tries, rounded up. */
static inline int test_share_of(int n)
{
    return (n + test_share() - 1) / test_share();
}

/* The number that an environment variable has; `default_value` if it is not
 * set. */
static inline uint64_t number_from(const char *variable, uint64_t default_value)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : default_value;
}

#endif
