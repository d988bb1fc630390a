/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: a hash table from keys to positions (index.h). */
#include "core/base/index.h"

#include <assert.h>

#include "core/base/guard.h"

enum { FIRST_SLOTS = 64 };

static uint32_t fold_hash(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

static void put_slot(struct byi_index *index, struct byi_index_slot slot)
{
    uint32_t i = slot.hash & (index->cap - 1);
    while (index->slots[i].position)
        i = (i + 1) & (index->cap - 1);
    index->slots[i] = slot;
}

/* Allocates first: if that fails, control jumps to the caller's guard (guard.h)
 * and the index is unchanged. */
static void grow_index(struct byi_index *index)
{
    const struct byi_index old = *index;
    const uint32_t cap = old.cap ? old.cap * 2 : FIRST_SLOTS;
    assert(cap > old.cap);
    index->slots = old.arena
                       ? byi_arena_calloc(old.arena, cap, sizeof *index->slots)
                       : byi_own(cap, sizeof *index->slots, NULL);
    index->cap = cap;
    for (uint32_t i = 0; i < old.cap; i++)
        if (old.slots[i].position)
            put_slot(index, old.slots[i]);
    if (!old.arena)
        byi_vec_free(old.slots);
}

void byi_index_add(struct byi_index *index, uint64_t hash, uint32_t position)
{
    if (index->n >= index->cap / 2)
        grow_index(index);
    put_slot(index, (struct byi_index_slot){fold_hash(hash), position + 1});
    index->n++;
}

uint32_t byi_index_next(const struct byi_index *index, uint64_t hash,
                        uint32_t *at)
{
    const uint32_t h = fold_hash(hash), mask = index->cap - 1;
    if (index->cap == 0)
        return UINT32_MAX;
    uint32_t i = (*at == UINT32_MAX ? h : *at + 1) & mask;
    while (index->slots[i].position && index->slots[i].hash != h)
        i = (i + 1) & mask;
    *at = i;
    return index->slots[i].position ? index->slots[i].position - 1 : UINT32_MAX;
}

void byi_index_free(struct byi_index *index)
{
    if (!index->arena)
        byi_vec_free(index->slots);
    *index = (struct byi_index){.arena = index->arena};
}
