/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/cover.h: which edges of the code under test an input reached, and
 * with which numbers the code compared it. The compiler inserts the calls
 * (-fsanitize-coverage=trace-pc,trace-cmp); a build without them has no
 * coverage, and all runs look the same.
 */
#ifndef BYI_FUZZ_COVER_H
#define BYI_FUZZ_COVER_H

#include "fuzz.h"

/* Edges are counted in a map of FUZZ_MAP bytes, at a hash of the edge. */
enum { FUZZ_MAP_BITS = 18, FUZZ_MAP = 1 << FUZZ_MAP_BITS };

/* Whether instrumented code has run in this process. */
bool fuzz_covered(void);
/* Forget the edges of the last input. */
void fuzz_cover_reset(void);
/* Add the edges since the reset to `seen`, a byte for each edge with a bit for
 * each range of hit counts (1, 2, 3, 4-7, ...: as in AFL). Returns how many
 * bits are new; *edges counts edges that are new altogether. */
uint32_t fuzz_cover_merge(uint8_t seen[FUZZ_MAP], uint64_t *edges);

/* A comparison that failed: `found` is the side that may come from the input,
 * `wanted` the other one. */
struct fuzz_hint {
    uint64_t found, wanted;
};
/* Set *hint to a random one of the recorded comparisons. Returns false if there
 * are none. */
bool fuzz_pick_hint(struct fuzz_rng *rng, struct fuzz_hint *hint);

#endif
