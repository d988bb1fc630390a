/* SPDX-License-Identifier: Apache-2.0 */
/* needs.h: skips tests of steps for which oneDNN has kernels only on x86-64,
 * such as most convolutions. On other machines it has only reference
 * implementations, which byoc refuses above BYI_REF_TERMS products. */
#ifndef BYI_TESTS_NEEDS_H
#define BYI_TESTS_NEEDS_H

#include <stdbool.h>
#include <stddef.h>

/* Whether oneDNN has kernels on this processor. */
static inline bool has_kernels(void)
{
#ifdef __x86_64__
    return true;
#else
    return false;
#endif
}

/* Skip the test if oneDNN has no such kernels. */
static inline void needs_kernels(void)
{
    if (has_kernels())
        return;
    print_message("skipped: oneDNN has no kernel for this step here\n");
    skip();
}

#endif
