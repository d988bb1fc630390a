/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/lookup.h: looks up bytes in a table of 256 bytes. */
#ifndef BYI_LOOKUP_H
#define BYI_LOOKUP_H

#include "core/base/isa.h"

#include <stdbool.h>
#include <stdint.h>

/* A loop y[i] = table[x[i]]. runs() tells whether the CPU has all that the loop
 * needs besides `isa`. */
struct byi_lookup {
    enum byi_isa isa;
    bool (*runs)(void);
    void (*run)(const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n);
};
/* Widest first. */
extern const struct byi_lookup byi_lookups[];
extern const uint32_t byi_n_lookups;
/* The first loop that the CPU runs and whose `isa` is at most `widest`. */
const struct byi_lookup *byi_lookup_of(enum byi_isa widest);

#endif
