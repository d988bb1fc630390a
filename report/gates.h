/* SPDX-License-Identifier: Apache-2.0 */
/* report/gates.h: what is asked of a result: shares that vendors must run. */
#ifndef BYI_GATES_H
#define BYI_GATES_H

#include <byoc/byoc.h>

#include "report/ledger.h"

/* Note in a closed ledger each gate that was asked for, and whether it holds.
 */
void byi_gates_check(struct byi_ledger *ledger,
                     const struct byoc_compile_params *params);
/* The sentence about the first gate of a ledger's JSON that does not hold, in
 * `arena`; NULL when all do. */
const char *byi_gates_verdict(const struct byi_text *ledger_json,
                              struct byi_arena *arena);

#endif
