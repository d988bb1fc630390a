/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.c: qnn.lookup: y[i] = table[x[i]] of bytes. */
#include "kernel.h"

#include "kernels/lookup.h"

/* byi_simd has no table for SSE4.2: if it uses the baseline table, the CPU may
 * still have SSE4.2. */
static const struct byi_lookup *choose(void)
{
    const enum byi_isa widest = byi_simd_isa();
    return byi_lookup_of(widest > 0 ? widest : byi_isa_widest());
}

static enum byoc_status lookup_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    enum { CHUNK = 32768 };
    const struct byi_lookup *lookup = choose();
    const uint8_t *x = call->in[0].data, *table = call->in[1].data;
    uint8_t *y = call->out->data;
    const int64_t n = byi_count(call->in);
    const int team = byi_team(call, n / 8);
    (void)err;
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += CHUNK)
        lookup->run(x + at, table, y + at, byi_min(CHUNK, n - at));
    return BYOC_OK;
}

BYI_KERNEL_ROWS(lookup, {BYI_OP_LOOKUP, {lookup_run, NULL}})
