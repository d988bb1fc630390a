/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/computed_memory.c: allocates memory for constants that are
 * computed at load. A program with many constants puts them in large blocks,
 * because the host uses huge pages for large blocks. Weights are then read
 * from memory up to 1.6 times as fast.
 *     | header | constant's bytes |
 *              ^ the address returned
 */
#include "core/base/guard.h"
#include "runtime_dnnl/build.h"

#include <stdatomic.h>

enum {
    HEADER_BYTES = BYI_ALIGN,
    /* with the host's own header of one page, a block fills four huge pages */
    BLOCK_BYTES = (8 << 20) - 4096,
    LARGE_BYTES =
        4 << 20, /* bytes from which a constant is not put in a block */
    MIN_BLOCKED = 1 << 20 /* bytes of constants after which blocks are used */
};

/* A block's header, which the constants follow. */
struct byi_computed_block {
    atomic_uint n_refs; /* number of its constants, plus one while a program
                         * puts constants in it */
    uint64_t used;      /* bytes */
};

/* Precedes the bytes of a constant. */
struct computed_header {
    struct byi_computed_block *block; /* NULL: the constant is not in a block */
};

_Static_assert(sizeof(struct computed_header) <= HEADER_BYTES,
               "a header fits in one line");
_Static_assert(sizeof(struct byi_computed_block) <= HEADER_BYTES,
               "a block's header fits in one line");

static void drop_block(const struct byoc_host *host,
                       struct byi_computed_block *block)
{
    if (atomic_fetch_sub(&block->n_refs, 1) == 1)
        host->release(host->ctx, block);
}

/* The program's block if it has room for the bytes, otherwise a new one. NULL
 * if an allocation fails. */
static struct byi_computed_block *provide_block(struct byi_program *p,
                                                uint64_t bytes)
{
    const struct byoc_host *host = p->host;
    if (p->block && bytes <= BLOCK_BYTES - p->block->used)
        return p->block;
    struct byi_computed_block *block = host->acquire(host->ctx, BLOCK_BYTES);
    if (!block)
        return NULL;
    atomic_init(&block->n_refs, 1);
    block->used = HEADER_BYTES;
    if (p->block)
        drop_block(host, p->block);
    return p->block = block;
}

void *byi_dn_computed_alloc(struct byi_program *p, uint64_t bytes, bool brief)
{
    const uint64_t total =
        HEADER_BYTES + (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
    struct byi_computed_block *block = NULL;
    if (total < bytes)
        return NULL;
    if (total < LARGE_BYTES && p->unblocked_bytes >= MIN_BLOCKED && !brief)
        block = provide_block(p, total);
    /* if a memory limit forbids a block, it may still allow the constant */
    char *at = block ? (char *)block + block->used
                     : p->host->acquire(p->host->ctx, total);
    if (!at)
        return NULL;
    if (block) {
        block->used += total;
        atomic_fetch_add(&block->n_refs, 1);
    } else if (!brief) {
        p->unblocked_bytes += total;
    }
    ((struct computed_header *)(void *)at)->block = block;
    return at + HEADER_BYTES;
}

void byi_dn_computed_free(const struct byoc_host *host, void *data)
{
    if (!data)
        return;
    struct computed_header *header = (void *)((char *)data - HEADER_BYTES);
    if (header->block)
        drop_block(host, header->block);
    else
        host->release(host->ctx, header);
}

void byi_dn_computed_end(struct byi_program *p)
{
    if (p->block)
        drop_block(p->host, p->block);
    p->block = NULL;
}
