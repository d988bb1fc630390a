/* SPDX-License-Identifier: Apache-2.0 */
/* conform/groups.h: one function for each group of cases (docs/conform.md), to
 * use as byi_kit_case.run. It returns if the case passes, and ends the process
 * with a verdict otherwise.
 */
#ifndef BYI_GROUPS_H
#define BYI_GROUPS_H

#include "kit.h"

/* groups.c: cases of one row */
void byi_kit_try_numerics(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_states(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_memory(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_heap(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_blob(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_threads(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_cancel(struct byi_kit *kit, const struct byi_kit_case *c);

/* groups.c: a case of several rows */
void byi_kit_try_region(struct byi_kit *kit, const struct byi_kit_case *c);
/* chains.c: a case of BYI_CHAINS chains; the first one has the number
 * c->number * BYI_CHAINS */
enum { BYI_CHAINS = 100 };
void byi_kit_try_chains(struct byi_kit *kit, const struct byi_kit_case *c);

/* suite.c: one of ONNX's own cases; c->row is its folder */
void byi_kit_try_suite(struct byi_kit *kit, const struct byi_kit_case *c);
/* Call use() for each of ONNX's cases in the folder `data`, with its name and
 * folder. Returns their number. */
uint32_t byi_suite_list(const char *data,
                        void (*use)(void *ctx, const char *name,
                                    const char *folder),
                        void *ctx);

/* entry.c: cases of the whole library; byi_kit_try_row and byi_kit_try_process
 * are cases of one row */
void byi_kit_try_compat(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_open(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_query(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_old_host(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_new_host(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_why(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_row(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_process(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_reload(struct byi_kit *kit, const struct byi_kit_case *c);
void byi_kit_try_unload(struct byi_kit *kit, const struct byi_kit_case *c);

#endif
