/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/plan_memory.c: places a region's temporaries in one block,
 * largest first, each at the lowest offset where it overlaps no buffer that is
 * live at the same time. This is Greedy by Size (Pisarchyk and Lee, "Efficient
 * memory management for deep neural net inference", 2020).
 */
#include "runtime_dnnl/build.h"

#include <stdlib.h>

static uint64_t padded_bytes(const struct byi_buf *buf)
{
    return byi_align_bytes(buf->bytes + BYI_DNNL_SLACK);
}

static int larger_first(const void *a, const void *b)
{
    const struct byi_buf *x = *(struct byi_buf *const *)a;
    const struct byi_buf *y = *(struct byi_buf *const *)b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x < y ? -1 : x > y; /* equal sizes in order of creation */
}

static bool lifetimes_overlap(const struct byi_buf *a, const struct byi_buf *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Place `buf` in the lowest gap among the n placed buffers, which are sorted by
 * offset; returns its position in that order. */
static uint32_t place_buffer(struct byi_buf *buf, struct byi_buf *const *placed,
                             uint32_t n)
{
    const uint64_t size = padded_bytes(buf);
    buf->offset = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!lifetimes_overlap(buf, placed[i]))
            continue;
        if (placed[i]->offset >= buf->offset + size)
            break;
        const uint64_t end = placed[i]->offset + padded_bytes(placed[i]);
        if (end > buf->offset)
            buf->offset = end;
    }
    uint32_t at = n;
    while (at > 0 && placed[at - 1]->offset > buf->offset)
        at--;
    return at;
}

enum byoc_status byi_dn_plan_temps(struct byi_build *b)
{
    const uint32_t n = b->bufs.n;
    uint64_t *bytes = &b->program->temp_bytes;
    struct byi_buf **temps = byi_arena_calloc(b->arena, n, sizeof *temps);
    struct byi_buf **placed = byi_arena_calloc(b->arena, n, sizeof *placed);
    uint32_t n_temps = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct byi_buf *buf = &b->bufs.at[i];
        if (buf->kind == BYI_BUF_TEMP && buf->first != UINT32_MAX)
            temps[n_temps++] = buf;
    }
    qsort(temps, n_temps, sizeof *temps, larger_first);
    for (uint32_t i = 0; i < n_temps; i++) {
        const uint32_t at = place_buffer(temps[i], placed, i);
        for (uint32_t j = i; j > at; j--)
            placed[j] = placed[j - 1];
        placed[at] = temps[i];
        const uint64_t end = temps[i]->offset + padded_bytes(temps[i]);
        if (end > INT64_MAX / 2)
            return byi_fail(b->err, BYOC_ELIMIT,
                            "the region's temporaries need %llu bytes, "
                            "expected less than 2^62",
                            (unsigned long long)end);
        *bytes = end > *bytes ? end : *bytes;
    }
    return BYOC_OK;
}
