/* SPDX-License-Identifier: Apache-2.0 */
/* bad_state.c: a backend with both state_bytes() and state_new(). */
#include "bad.h"

static uint64_t state_bytes(const struct byoc_host *host, const void *compiled)
{
    (void)host, (void)compiled;
    return 64;
}

static const struct byoc_backend backend = {GOOD_BACKEND,
                                            .state_bytes = state_bytes};

PLUGIN(&backend)
