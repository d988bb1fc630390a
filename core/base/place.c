/* SPDX-License-Identifier: Apache-2.0 */
/* place.c: chooses offsets in one block of memory for values that are live
 * during some steps of a list. Runs two algorithms and takes the smaller
 * result. The first is best fit in the order of the steps, with a list of
 * holes. A step's results take the smallest hole that fits before its operands
 * are freed, so that results never overlap operands. The second is Greedy by
 * Size (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
 * Inference", 2020). It places the largest value first, at the lowest offset
 * that is free for its whole lifetime. It usually needs less memory, but takes
 * quadratic time.
 */
#include "base.h"

#include <stdlib.h>
#include <string.h>

/* With more values, only the first algorithm runs. */
enum { MAX_BY_SIZE = 4096 };

/* Free memory: `bytes` bytes from offset `at` on. */
struct hole {
    uint64_t at, bytes;
};

/* The memory below `end`, whose free parts are the holes. */
struct placer {
    BYI_VEC(struct hole) holes; /* ascending, never adjacent */
    uint64_t end;
};

static void remove_hole(struct placer *p, uint32_t i)
{
    memmove(p->holes.at + i, p->holes.at + i + 1,
            (p->holes.n - i - 1) * sizeof *p->holes.at);
    p->holes.n--;
}

/* Take `bytes` from the smallest hole that is large enough; if there is none,
 * from the end. */
static uint64_t take_place(struct placer *p, uint64_t bytes)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < p->holes.n; i++)
        if (p->holes.at[i].bytes >= bytes &&
            (best == UINT32_MAX ||
             p->holes.at[i].bytes < p->holes.at[best].bytes))
            best = i;
    if (best != UINT32_MAX) {
        struct hole *h = &p->holes.at[best];
        uint64_t at = h->at;
        h->at += bytes;
        h->bytes -= bytes;
        if (h->bytes == 0)
            remove_hole(p, best);
        return at;
    }
    uint64_t at = p->end;
    if (p->holes.n > 0) { /* begin in the last hole if it touches the end */
        struct hole *h = &p->holes.at[p->holes.n - 1];
        if (h->at + h->bytes == p->end) {
            at = h->at;
            p->holes.n--;
        }
    }
    p->end = at + bytes;
    return at;
}

/* Add a range that became free, and join it with adjacent holes. */
static void add_hole(struct placer *p, uint64_t at, uint64_t bytes)
{
    uint32_t lo = 0, hi = p->holes.n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (p->holes.at[mid].at < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    struct hole *next = lo < p->holes.n ? &p->holes.at[lo] : NULL;
    struct hole *prev = lo > 0 ? &p->holes.at[lo - 1] : NULL;
    if (prev && prev->at + prev->bytes == at) {
        prev->bytes += bytes;
        if (next && at + bytes == next->at) {
            prev->bytes += next->bytes;
            remove_hole(p, lo);
        }
        return;
    }
    if (next && at + bytes == next->at) {
        next->at = at;
        next->bytes += bytes;
        return;
    }
    struct hole new_hole = {at, bytes};
    BYI_PUSH(&p->holes, new_hole);
    memmove(p->holes.at + lo + 1, p->holes.at + lo,
            (p->holes.n - 1 - lo) * sizeof new_hole);
    p->holes.at[lo] = new_hole;
}

/* --- in order of the steps ------------------------------------------------ */

/* When a lifetime ends. */
struct lifetime_end {
    uint32_t step, lifetime; /* the last step of lifetimes[lifetime] */
};

static int by_last_step(const void *a, const void *b)
{
    const struct lifetime_end *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->lifetime < y->lifetime ? -1 : 1;
}

static uint64_t place_in_order(struct byi_lifetime *lifetimes, uint32_t n,
                               struct byi_arena *scratch)
{
    struct placer p = {0};
    struct lifetime_end *ends = byi_arena_calloc(scratch, n, sizeof *ends);
    for (uint32_t i = 0; i < n; i++)
        ends[i] = (struct lifetime_end){lifetimes[i].last, i};
    qsort(ends, n, sizeof *ends, by_last_step);
    for (uint32_t i = 0, d = 0; i < n; i++) {
        for (; d < n && ends[d].step < lifetimes[i].first; d++) {
            const struct byi_lifetime *ended = &lifetimes[ends[d].lifetime];
            if (ended->bytes > 0)
                add_hole(&p, ended->at, ended->bytes);
        }
        lifetimes[i].at = take_place(&p, lifetimes[i].bytes);
    }
    byi_vec_free(p.holes.at);
    return p.end;
}

/* --- the largest first ---------------------------------------------------- */

/* A lifetime, sorted together with its index. */
struct indexed_lifetime {
    uint32_t index; /* in the caller's array */
    struct byi_lifetime lifetime;
};

static int by_size(const void *a, const void *b)
{
    const struct indexed_lifetime *x = a, *y = b;
    if (x->lifetime.bytes != y->lifetime.bytes)
        return x->lifetime.bytes > y->lifetime.bytes ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

/* Put the item at the lowest offset that no item live at the same time uses.
 * Insert it into placed[0..n), which is ascending by offset. */
static void place_item(struct indexed_lifetime *placed, uint32_t n,
                       struct indexed_lifetime item)
{
    struct byi_lifetime *lifetime = &item.lifetime;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_lifetime *p = &placed[i].lifetime;
        if (p->last < lifetime->first || lifetime->last < p->first)
            continue;
        if (lifetime->at + lifetime->bytes <= p->at)
            break;
        if (p->at + p->bytes > lifetime->at)
            lifetime->at = p->at + p->bytes;
    }
    uint32_t to = n;
    for (; to > 0 && placed[to - 1].lifetime.at > lifetime->at; to--)
        placed[to] = placed[to - 1];
    placed[to] = item;
}

/* Place the largest value first. Replaces the offsets only if the result needs
 * fewer than `end` bytes. Returns the bytes needed. */
static uint64_t place_by_size(struct byi_lifetime *lifetimes, uint32_t n,
                              uint64_t end, struct byi_arena *scratch)
{
    struct indexed_lifetime *items =
        byi_arena_calloc(scratch, n, sizeof *items);
    struct indexed_lifetime *placed =
        byi_arena_calloc(scratch, n, sizeof *placed);
    uint64_t highest = 0;
    for (uint32_t i = 0; i < n; i++) {
        items[i] = (struct indexed_lifetime){i, lifetimes[i]};
        items[i].lifetime.at = 0;
    }
    qsort(items, n, sizeof *items, by_size);
    for (uint32_t i = 0; i < n; i++)
        place_item(placed, i, items[i]);
    for (uint32_t i = 0; i < n; i++)
        if (placed[i].lifetime.at + placed[i].lifetime.bytes > highest)
            highest = placed[i].lifetime.at + placed[i].lifetime.bytes;
    if (highest >= end)
        return end;
    for (uint32_t i = 0; i < n; i++)
        lifetimes[placed[i].index].at = placed[i].lifetime.at;
    return highest;
}

uint64_t byi_assign_offsets(struct byi_lifetime *lifetimes, uint32_t n)
{
    struct byi_arena *scratch = byi_arena_new();
    for (uint32_t i = 0; i < n; i++)
        lifetimes[i].bytes = byi_align_bytes(lifetimes[i].bytes);
    uint64_t end = place_in_order(lifetimes, n, scratch);
    if (n > 0 && n <= MAX_BY_SIZE)
        end = place_by_size(lifetimes, n, end, scratch);
    byi_arena_free(&scratch);
    return end;
}
