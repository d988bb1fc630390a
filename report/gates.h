/* SPDX-License-Identifier: Apache-2.0 */
/* report/gates.h: checks gates: the smallest shares of the model that must be
 * offloaded.
 */
#ifndef BYI_GATES_H
#define BYI_GATES_H

#include <byoc/byoc.h>

#include "report/ledger.h"

/* Record in a closed ledger each gate that the user set, and whether it
 * passes. */
void byi_gates_check(struct byi_ledger *ledger,
                     const struct byoc_compile_params *params);
/* The message about the first failed gate of a ledger's JSON, in `arena`. NULL
 * if all pass, or if the JSON is not a valid ledger. */
const char *byi_gates_verdict(const struct byi_text *ledger_json,
                              struct byi_arena *arena);

#endif
