/* SPDX-License-Identifier: Apache-2.0 */
/* conform/groups.h: the functions that run the cases of each group
 * (docs/conform.md), for byi_kit_case.run. A case passes if its function
 * returns. A function may also end the process itself, with a verdict.
 */
#ifndef BYI_GROUPS_H
#define BYI_GROUPS_H

#include "kit.h"

/* groups.c: cases of one row */
byi_kit_case_fn byi_kit_try_numerics, byi_kit_try_states, byi_kit_try_memory,
    byi_kit_try_heap, byi_kit_try_blob, byi_kit_try_threads, byi_kit_try_cancel;

/* groups.c: a case of several rows */
byi_kit_case_fn byi_kit_try_region;
/* chains.c: a case of BYI_CHAINS chains; the first one has the number
 * c->number * BYI_CHAINS */
enum { BYI_CHAINS = 100 };
byi_kit_case_fn byi_kit_try_chains;

/* suite.c: one of ONNX's own cases; c->row is its folder */
byi_kit_case_fn byi_kit_try_suite;
/* Call use() for each of ONNX's cases in the folder `data`, with its name, such
 * as onnx/node/test_add, and its folder. Both strings are valid only during the
 * call. Returns the number of cases, which is 0 if `data` does not exist. */
uint32_t byi_suite_list(const char *data,
                        void (*use)(void *ctx, const char *name,
                                    const char *folder),
                        void *ctx);

/* entry.c: cases of the plug-in as a whole; byi_kit_try_row and
 * byi_kit_try_manners are cases of one row. byi_kit_try_reason_buffer tests
 * that the reason for refusing a host fits buffers of 1 to 64 bytes. */
byi_kit_case_fn byi_kit_try_compat, byi_kit_try_open, byi_kit_try_query,
    byi_kit_try_old_host, byi_kit_try_new_host, byi_kit_try_reason_buffer,
    byi_kit_try_row, byi_kit_try_manners, byi_kit_try_reload,
    byi_kit_try_unload;

#endif
