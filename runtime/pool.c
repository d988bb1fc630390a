/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c: allocates blocks for values whose size is known only during the run.
 * The pool keeps blocks from run to run, so that repeated shapes need no new
 * memory. Free blocks are in lists by the logarithm of their size, so taking
 * one needs constant time, however many blocks a recursion holds.
 */
#include "state.h"

#include <stdlib.h>

enum {
    SIZES_PER_DOUBLING = 8, /* block sizes from one power of two to the next */
    IDLE_RUNS = 8, /* a block is released if this many runs did not use it */
    MAX_TRIED_BLOCKS = 16 /* number of blocks of a list that are tried */
};

/* The number of the list for blocks of this size: its logarithm to base 2. */
static uint32_t class_of(uint64_t bytes)
{
    return 63 - (uint32_t)__builtin_clzll(bytes | 1);
}

/* Release the block's memory; its slot becomes empty. */
static void drop_block(struct byi_pool *pool, uint32_t block)
{
    struct byi_block *b = &pool->at[block];
    byi_memory_release(pool->memory, b->at);
    pool->bytes -= b->bytes;
    *b = (struct byi_block){.next = pool->empty};
    pool->empty = block + 1;
}

/* Add the block to the list of free blocks of its size. */
static void list_block(struct byi_pool *pool, uint32_t block)
{
    struct byi_block *b = &pool->at[block];
    pool->idle += b->bytes;
    uint32_t *list = &pool->free[class_of(b->bytes)];
    b->n_refs = 0;
    b->next = *list;
    *list = block + 1;
}

void byi_pool_reset(struct byi_pool *pool)
{
    pool->run++;
    pool->idle = 0;
    pool->used = 0;
    pool->most_used -= pool->most_used / IDLE_RUNS;
    for (uint32_t c = 0; c < BYI_POOL_CLASSES; c++)
        pool->free[c] = 0;
    for (uint32_t i = pool->n; i-- > 0;) {
        if (!pool->at[i].at)
            continue;
        if (pool->at[i].kept)
            pool->at[i].kept = false;
        else if (pool->at[i].run + IDLE_RUNS < pool->run)
            drop_block(pool, i);
        else
            list_block(pool, i);
    }
}

void byi_pool_keep(struct byi_pool *pool, const void *data)
{
    for (uint32_t i = 0; i < pool->n; i++)
        if (pool->at[i].at == data)
            pool->at[i].kept = true;
}

/* Take the smallest block of at least `bytes` and at most about twice as many
 * bytes, among the first MAX_TRIED_BLOCKS of a list. Returns 1 + its number; 0:
 * none.
 */
static uint32_t take_listed(struct byi_pool *pool, uint32_t *list,
                            uint64_t bytes)
{
    uint32_t *best = NULL;
    uint32_t *link = list;
    for (int i = 0; *link && i < MAX_TRIED_BLOCKS; i++) {
        struct byi_block *b = &pool->at[*link - 1];
        if (b->bytes >= bytes && b->bytes / 2 <= bytes + 4096 &&
            (!best || b->bytes < pool->at[*best - 1].bytes))
            best = link;
        link = &b->next;
    }
    if (!best)
        return 0;
    uint32_t block = *best;
    *best = pool->at[block - 1].next;
    pool->idle -= pool->at[block - 1].bytes;
    return block;
}

/* Take a listed block of at least `bytes` bytes, and at most about twice as
 * many. Returns its number, or UINT32_MAX. */
static uint32_t take_block(struct byi_pool *pool, uint64_t bytes)
{
    uint32_t last = class_of(2 * (bytes + 4096));
    for (uint32_t c = class_of(bytes); c <= last; c++) {
        uint32_t block = take_listed(pool, &pool->free[c], bytes);
        if (block)
            return block - 1;
    }
    return UINT32_MAX;
}

/* Find a slot without memory; adds one if there is none. UINT32_MAX if an
 * allocation fails. */
static uint32_t find_slot(struct byi_pool *pool)
{
    if (pool->empty) {
        uint32_t slot = pool->empty - 1;
        pool->empty = pool->at[slot].next;
        return slot;
    }
    if (pool->n == pool->cap) {
        uint32_t cap = pool->cap ? 2 * pool->cap : 32;
        void *at = byi_realloc(pool->at, cap, sizeof *pool->at);
        if (!at)
            return UINT32_MAX;
        pool->at = at;
        pool->cap = cap;
    }
    pool->at[pool->n] = (struct byi_block){0};
    return pool->n++;
}

static void drop_free_blocks(struct byi_pool *pool)
{
    for (uint32_t c = 0; c < BYI_POOL_CLASSES; c++)
        while (pool->free[c]) {
            uint32_t block = pool->free[c] - 1;
            pool->free[c] = pool->at[block].next;
            pool->idle -= pool->at[block].bytes;
            drop_block(pool, block);
        }
}

enum byoc_status byi_pool_charge(struct byi_pool *pool, uint64_t bytes,
                                 struct byoc_error *err)
{
    if (bytes > pool->limit || pool->bytes > pool->limit - bytes)
        drop_free_blocks(pool);
    if (bytes > pool->limit || pool->bytes > pool->limit - bytes)
        return byi_fail(err, BYOC_ELIMIT,
                        "run: found %llu bytes for values of varying size and "
                        "nested calls, expected at most the memory of the "
                        "machine or the cgroup, %llu bytes; use smaller "
                        "inputs, and check that a recursion ends",
                        (unsigned long long)(pool->bytes + bytes),
                        (unsigned long long)pool->limit);
    pool->bytes += bytes;
    return BYOC_OK;
}

void byi_pool_refund(struct byi_pool *pool, uint64_t bytes)
{
    pool->bytes -= bytes;
}

/* Round up the size of a new block to one of SIZES_PER_DOUBLING sizes for each
 * power of two. A value that grows in a loop then rarely needs a new block. */
static uint64_t round_up(const struct byi_pool *pool, uint64_t bytes)
{
    const uint64_t step = (UINT64_C(1) << class_of(bytes)) / SIZES_PER_DOUBLING;
    if (step <= BYI_ALIGN ||
        bytes > pool->limit - pool->limit / SIZES_PER_DOUBLING)
        return bytes;
    return (bytes + step - 1) / step * step;
}

/* Allocate a block. Before that, release all free blocks if they have more
 * bytes than recent runs used at the same time. A growing value outgrows many
 * blocks. Without this limit the pool could become more than twice as large as
 * a run needs. */
static enum byoc_status make_block(struct byi_pool *pool, uint64_t bytes,
                                   uint32_t *block, struct byoc_error *err)
{
    bytes = round_up(pool, bytes);
    if (pool->idle > pool->most_used)
        drop_free_blocks(pool);
    BYI_TRY(byi_pool_charge(pool, bytes, err));
    void *at = byi_memory_allocate(pool->memory, bytes);
    if (!at && pool->idle) {
        drop_free_blocks(pool);
        at = byi_memory_allocate(pool->memory, bytes);
    }
    uint32_t i = at ? find_slot(pool) : UINT32_MAX;
    if (i == UINT32_MAX) {
        byi_memory_release(pool->memory, at);
        byi_pool_refund(pool, bytes);
        return byi_fail(
            err, BYOC_ENOMEM,
            "out of memory for %llu bytes of a value of varying size",
            (unsigned long long)bytes);
    }
    pool->at[i].at = at;
    pool->at[i].bytes = bytes;
    *block = i;
    return BYOC_OK;
}

enum byoc_status byi_pool_take(struct byi_pool *pool, uint64_t bytes,
                               uint32_t *block, struct byoc_error *err)
{
    if (bytes > UINT64_MAX / 4)
        bytes = UINT64_MAX / 4; /* exceeds any limit, so charging fails */
    const uint64_t filled = bytes;
    bytes = (bytes + BYI_ALIGN) / BYI_ALIGN * BYI_ALIGN; /* never 0 */
    uint32_t i = take_block(pool, bytes);
    if (i == UINT32_MAX)
        BYI_TRY(make_block(pool, bytes, &i, err));
    pool->at[i].n_refs = 1;
    pool->at[i].filled = filled;
    pool->at[i].run = pool->run;
    pool->used += pool->at[i].bytes;
    if (pool->used > pool->most_used)
        pool->most_used = pool->used;
    *block = i;
    return BYOC_OK;
}

void byi_pool_share(struct byi_pool *pool, uint32_t block)
{
    pool->at[block].n_refs++;
}

bool byi_pool_extend(struct byi_pool *pool, uint32_t block, uint64_t from,
                     uint64_t to)
{
    struct byi_block *b = &pool->at[block];
    if (b->filled != from || to > b->bytes)
        return false;
    b->filled = to;
    b->n_refs++;
    return true;
}

void byi_pool_drop(struct byi_pool *pool, uint32_t block)
{
    if (--pool->at[block].n_refs > 0)
        return;
    pool->used -= pool->at[block].bytes;
    list_block(pool, block);
}

void byi_pool_free(struct byi_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++)
        byi_memory_release(pool->memory, pool->at[i].at);
    free(pool->at);
    *pool = (struct byi_pool){0};
}
