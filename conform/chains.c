/* SPDX-License-Identifier: Apache-2.0 */
/* chains.c: implements the cases that run many short chains in one process. In
 * a chain, each row reads the result of the previous one. Many rows move
 * elements, so that the next kernels must handle unusual strides and sizes. The
 * first chain that fails ends the case. A case begins no chain after a fifth of
 * its time limit. A backend that calls a C compiler for each chain may not have
 * time for all.
 */
#include "groups.h"

#include "core/base/clock.h"

/* Build and run one chain, unless the backend rejects it, and check results and
 * that the backend freed what it acquired. */
static void try_chain(struct byi_kit *kit, const struct byi_sample *sample,
                      uint64_t seed)
{
    struct byi_session s;
    const char *why;
    const struct byi_host_records before = byi_host_records();
    if (!byi_session_try(kit, sample, &s, &why))
        return;
    void *state = byi_kit_state_open(kit, &s);
    byi_kit_run_checked(kit, &s, state, seed, seed % 2 ? BYI_ALIGN : 0);
    byi_kit_state_close(kit, &s, state);
    byi_session_close(kit, &s);
    byi_host_check_balance(kit, &before, "unload()");
    kit->verdict->n_ran++;
}

void byi_kit_try_chains(struct byi_kit *kit, const struct byi_kit_case *c)
{
    byi_zones_watch(kit);
    byi_host_serial();
    const uint64_t end = byi_now_ns() + (uint64_t)(kit->seconds * 0.2e9);
    for (uint32_t i = 0; i < BYI_CHAINS && byi_now_ns() < end; i++) {
        const uint64_t number = (uint64_t)c->number * BYI_CHAINS + i;
        struct byi_sample sample;
        kit->verdict->n_chains++;
        byi_child_step(NULL, "the kit, generating chain %llu",
                       (unsigned long long)number);
        if (!byi_sample_chain(kit, number, &sample))
            continue;
        try_chain(kit, &sample, byi_kit_seed(kit, "inputs", number));
        byi_sample_free(&sample);
    }
    if (!kit->verdict->n_ran)
        byi_kit_end(kit, BYI_REFUSED, 0,
                    "the plug-in accepted none of %u chains",
                    kit->verdict->n_chains);
}
