/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c: allocates the large memory of a model and its states. Uses the
 * application's allocator if there is one, counts the bytes, and keeps them
 * within the limit of the load parameters.
 *
 *     | unused | size (8 bytes) | the caller's bytes |
 *     |<---- head_bytes() ---->^ the address returned
 *
 * Large memory begins at the offset 0 of a page. A loop that reads x[i] and
 * then writes y[i] would otherwise often read bytes at the same offset in a
 * page as those that it has just written. The processor compares only these
 * offsets at first, and delays the read until the write is done (4 KiB
 * aliasing): computing exp of 1,000,000 numbers took 1.6 times as long. Inputs
 * of a caller have other offsets: malloc() gives 16 and posix_memalign() 64.
 */
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* While weights are packed, the file's pages are dropped each time that this
 * many bytes have been allocated. */
enum { DROP_EVERY_BYTES = 2 << 20 };
/* bytes of a page, and of the smallest large memory */
enum { PAGE_BYTES = 4096, LARGE_BYTES = 1 << 16 };

struct byi_memory *byi_memory_new(const struct byoc_load_params *params)
{
    struct byi_memory *m = byi_alloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->allocate = params->allocate;
    m->release = params->release;
    m->ctx = params->allocate_ctx;
    m->limit = params->memory_bytes ? params->memory_bytes : UINT64_MAX;
    return m;
}

void byi_memory_free(struct byi_memory **memory)
{
    free(*memory);
    *memory = NULL;
}

/* Add the bytes to m->allocated; returns false, without adding them, if that
 * would exceed the limit. */
static bool charge(struct byi_memory *m, uint64_t bytes)
{
    uint64_t allocated =
        atomic_load_explicit(&m->allocated, memory_order_relaxed);
    do {
        if (allocated > m->limit || bytes > m->limit - allocated)
            return false;
    } while (!atomic_compare_exchange_weak(&m->allocated, &allocated,
                                           allocated + bytes));
    uint64_t peak = atomic_load_explicit(&m->peak, memory_order_relaxed);
    while (peak < allocated + bytes &&
           !atomic_compare_exchange_weak(&m->peak, &peak, allocated + bytes))
        ;
    return true;
}

static void drop_pages(const void *at, uint64_t bytes)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = ((uintptr_t)at + page - 1) / page * page;
    const uintptr_t to = ((uintptr_t)at + bytes) / page * page;
    if (from < to)
        madvise((void *)from, to - from, MADV_DONTNEED);
}

void byi_image_drop_const(const struct byi_image *image, const void *at,
                          uint64_t bytes)
{
    const char *from = at, *weights = image->weights;
    if (image->weights_mapped && from >= weights &&
        from < weights + image->weights_bytes)
        drop_pages(at, bytes);
}

void byi_memory_set_packing(struct byi_memory *m, bool packs)
{
    if (packs)
        atomic_fetch_add(&m->packers, 1);
    else
        atomic_fetch_sub(&m->packers, 1);
}

/* While weights are packed: count allocated bytes, and drop the file's pages
 * once DROP_EVERY_BYTES bytes are counted. */
static void drop_file_pages(struct byi_memory *m, uint64_t bytes)
{
    if (!m->file || atomic_load(&m->packers) == 0 ||
        atomic_fetch_add(&m->undropped, bytes) + bytes < DROP_EVERY_BYTES)
        return;
    atomic_store(&m->undropped, 0);
    drop_pages(m->file, m->file_bytes);
}

/* Bytes of a block before the address that the caller gets. byi_acquire()
 * aligns LARGE_BYTES bytes or more to a page; a host's allocator is only asked
 * for BYI_ALIGN. */
static uint64_t head_bytes(const struct byi_memory *m, uint64_t bytes)
{
    return bytes < LARGE_BYTES || (m && m->allocate) ? BYI_ALIGN : PAGE_BYTES;
}

static void *allocate(const struct byi_memory *m, uint64_t bytes)
{
    return m && m->allocate ? m->allocate(m->ctx, bytes, BYI_ALIGN)
                            : byi_acquire(bytes);
}

void *byi_memory_allocate(struct byi_memory *m, uint64_t bytes)
{
    const uint64_t head = head_bytes(m, bytes), block_bytes = bytes + head;
    if (block_bytes < bytes || (m && !charge(m, block_bytes)))
        return NULL;
    char *at = allocate(m, block_bytes);
    if (!at) {
        if (m)
            atomic_fetch_sub(&m->allocated, block_bytes);
        return NULL;
    }
    if (m)
        drop_file_pages(m, block_bytes);
    memcpy(at + head - sizeof bytes, &bytes, sizeof bytes);
    return at + head;
}

uint64_t byi_memory_release(struct byi_memory *m, void *at)
{
    uint64_t bytes;
    if (!at)
        return 0;
    memcpy(&bytes, (char *)at - sizeof bytes, sizeof bytes);
    const uint64_t head = head_bytes(m, bytes);
    char *block = (char *)at - head;
    if (m && m->release)
        m->release(m->ctx, block, bytes + head);
    else
        byi_release(block);
    if (m)
        atomic_fetch_sub(&m->allocated, bytes + head);
    return bytes;
}

uint64_t byoc_model_memory(const struct byoc_model *model, uint64_t *peak)
{
    const struct byi_memory *m = model->memory;
    if (peak)
        *peak = atomic_load(&m->peak);
    return atomic_load(&m->allocated);
}

enum byoc_status byi_memory_explain(const struct byi_memory *m,
                                    enum byoc_status status,
                                    struct byoc_error *err)
{
    if (status == BYOC_ENOMEM && err && m->limit != UINT64_MAX) {
        const size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n,
                 "; memory_bytes limits the model to %llu bytes",
                 (unsigned long long)m->limit);
    }
    return status;
}
