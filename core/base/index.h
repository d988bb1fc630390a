/* SPDX-License-Identifier: Apache-2.0 */
/* index.h: a hash table from keys to positions in an array. The caller's array
 * holds the keys; the index holds hashes and positions, and the caller compares
 * keys. Open addressing with linear probing, at most half full. Entries are
 * never removed, and an index cannot be iterated, so that no result depends on
 * the order of hashes.
 *
 *     BYI_INDEX_EACH(&index, hash, i)
 *         if (strcmp(names[i], name) == 0)
 *             return i;
 *     byi_index_add(&index, hash, n_names);
 */
#ifndef BYI_INDEX_H
#define BYI_INDEX_H

#include "core/base/base.h"

/* A place in the table, for one position. */
struct byi_index_slot {
    uint32_t hash;
    uint32_t position; /* 1 + the caller's; 0: the slot is empty */
};

/* A zeroed struct is an empty index. */
struct byi_index {
    struct byi_index_slot *slots;
    uint32_t cap, n; /* cap is a power of two */
    /* holds the slots; NULL: they are on the heap, in a block of the current
     * guard (byi_own) */
    struct byi_arena *arena;
};

/* Add `position` under `hash`, even if the index has it already. If an
 * allocation fails, control jumps to the caller's guard (guard.h), and the
 * index is unchanged. */
void byi_index_add(struct byi_index *index, uint64_t hash, uint32_t position);
/* The next position under `hash`; *at is UINT32_MAX before the first. Returns
 * UINT32_MAX at the end. Positions of other hashes may be among them. */
uint32_t byi_index_next(const struct byi_index *index, uint64_t hash,
                        uint32_t *at);
/* Free the slots, if they are on the heap, and empty the index. */
void byi_index_free(struct byi_index *index);

#define BYI_INDEX_EACH(index, hash, i)                                         \
    for (uint32_t i##_at = UINT32_MAX,                                         \
                  i = byi_index_next(index, hash, &i##_at);                    \
         i != UINT32_MAX; i = byi_index_next(index, hash, &i##_at))

#endif
