/* SPDX-License-Identifier: Apache-2.0 */
/* transform/to_mixed_precision.h: the counts of operators that ToMixedPrecision
 * narrowed or kept, for the ledger.
 */
#ifndef BYI_TO_MIXED_PRECISION_H
#define BYI_TO_MIXED_PRECISION_H

#include "core/ir/ir.h"

/* The numbers of operators that had a float32 result before the pass, casts
 * excepted. Owned by the caller of the passes. */
struct byi_mixed_precision {
    const char *to;   /* the option ToMixedPrecision.to; NULL: it did not run */
    uint32_t narrow;  /* operators that now compute in `to` */
    uint32_t float32; /* operators that still compute in float32 */
};
BYI_CONTEXT_ENTRY(mixed_precision)

#endif
