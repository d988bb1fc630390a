/* SPDX-License-Identifier: Apache-2.0 */
/* bare_provider.h: what bench/provider.c and bench/bare_provider.c share. */
#ifndef BYI_BENCH_BARE_PROVIDER_H
#define BYI_BENCH_BARE_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

#define BARE_NAME "BareExecutionProvider"

enum { BARE_OUTPUTS = 16, BARE_RANK = 8 };

/* What the kernel does. Its address, as a decimal number, is the option
 * "call". */
struct bare_call {
    void (*run)(void *arg);
    void *arg;
    size_t n_out;
    struct bare_output { /* in any order */
        const char *name;
        size_t rank;
        int64_t dims[BARE_RANK];
    } out[BARE_OUTPUTS];
};

#endif
