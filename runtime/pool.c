/* pool.c: blocks for values whose size is only known as the run goes. Blocks
 * are kept from run to run, so that runs with the same shapes come to need
 * nothing new; the number of blocks is that of such values alive at once.
 */
#include "plan.h"

#include <stdlib.h>

enum { IDLE_RUNS = 8 }; /* a block nobody wanted for so long goes */

static void drop_block(struct byi_pool *pool, uint32_t block)
{
    byi_release(pool->at[block].at);
    pool->bytes -= pool->at[block].bytes;
    pool->at[block].at = NULL;
    pool->at[block].bytes = 0;
    pool->at[block].used = false;
}

void byi_pool_reset(struct byi_pool *pool)
{
    pool->run++;
    for (uint32_t i = 0; i < pool->n; i++) {
        pool->at[i].used = false;
        if (pool->at[i].at && pool->at[i].run + IDLE_RUNS < pool->run)
            drop_block(pool, i);
    }
}

/* The smallest free block that is large enough and not wastefully so. */
static uint32_t find_block(const struct byi_pool *pool, uint64_t bytes)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < pool->n; i++) {
        const struct byi_block *b = &pool->at[i];
        if (b->used || !b->at || b->bytes < bytes ||
            b->bytes / 2 > bytes + 4096)
            continue;
        if (best == UINT32_MAX || b->bytes < pool->at[best].bytes)
            best = i;
    }
    return best;
}

/* A slot without memory, at the end if there is no other. */
static uint32_t find_slot(struct byi_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++)
        if (!pool->at[i].at)
            return i;
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

static void drop_free(struct byi_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++)
        if (pool->at[i].at && !pool->at[i].used)
            drop_block(pool, i);
}

enum byoc_status byi_pool_take(struct byi_pool *pool, uint64_t bytes,
                               uint32_t *block, struct byoc_error *err)
{
    bytes = (bytes + BYI_ALIGN) / BYI_ALIGN * BYI_ALIGN; /* never 0 */
    uint32_t i = find_block(pool, bytes);
    if (i == UINT32_MAX) {
        if (bytes > pool->limit || pool->bytes > pool->limit - bytes)
            drop_free(pool);
        if (bytes > pool->limit || pool->bytes > pool->limit - bytes)
            return byi_fail(err, BYOC_ELIMIT,
                            "%llu bytes for values of varying size, but the "
                            "limit is the machine's memory, %llu bytes; use "
                            "smaller inputs",
                            (unsigned long long)(pool->bytes + bytes),
                            (unsigned long long)pool->limit);
        i = find_slot(pool);
        void *at = i == UINT32_MAX ? NULL : byi_acquire(bytes);
        if (!at)
            return byi_fail(err, BYOC_ENOMEM,
                            "no memory for %llu bytes of a value of varying "
                            "size",
                            (unsigned long long)bytes);
        pool->at[i].at = at;
        pool->at[i].bytes = bytes;
        pool->bytes += bytes;
    }
    pool->at[i].used = true;
    pool->at[i].run = pool->run;
    *block = i;
    return BYOC_OK;
}

void byi_pool_give(struct byi_pool *pool, uint32_t block)
{
    pool->at[block].used = false;
}

void byi_pool_free(struct byi_pool *pool)
{
    for (uint32_t i = 0; i < pool->n; i++)
        byi_release(pool->at[i].at);
    free(pool->at);
    *pool = (struct byi_pool){0};
}
