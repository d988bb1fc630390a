/* SPDX-License-Identifier: Apache-2.0 */
/* bare_provider.h: the interface of bench/bare_provider.c for
 * bench/provider.c. */
#ifndef BYI_BENCH_BARE_PROVIDER_H
#define BYI_BENCH_BARE_PROVIDER_H

#include <stddef.h>
#include <stdint.h>

/* The name under which the provider is registered and selected. */
#define BARE_NAME "BareExecutionProvider"

enum { BARE_MAX_OUTPUTS = 16, BARE_MAX_RANK = 8 };

/* The function run() that the provider's kernel calls, and the outputs that
 * ONNX Runtime allocates before the call. run() does not write to them. The
 * provider's option "call" is the address of this struct as a decimal number.
 * The session reads the struct, so the struct must outlive the session. */
struct bare_call {
    void (*run)(void *arg);
    void *arg;
    size_t n_out;        /* at most BARE_MAX_OUTPUTS */
    struct bare_output { /* in any order */
        const char *name;
        size_t rank;
        int64_t dims[BARE_MAX_RANK];
    } out[BARE_MAX_OUTPUTS];
};

#endif
