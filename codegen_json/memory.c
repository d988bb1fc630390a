/* memory.c: where temporaries live. Two ways, of which the smaller result
 * counts. In order of the steps, with a list of holes: a step's results take
 * the smallest hole that fits before its dead operands give theirs back, so a
 * kernel's results never overlap its operands. Or the largest value first, at
 * the lowest place free for all its life (Pisarchyk and Lee, "Efficient Memory
 * Management for Deep Neural Net Inference", 2020): better as a rule, but
 * quadratic. Values whose size varies are no business of this file.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_BY_SIZE = 4096 }; /* values */

struct hole {
    uint64_t at, bytes;
};

struct planner {
    struct byi_pfunc *f;
    uint32_t *last;             /* by value: the step that reads it last */
    BYI_VEC(struct hole) holes; /* ascending, never adjacent */
    uint64_t end;
};

static uint64_t padded_bytes(const struct byi_pvalue *v)
{
    uint64_t bytes = byi_type_bytes(v->type);
    return (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
}

static bool is_planned(const struct byi_pvalue *v)
{
    return v->kind == BYI_P_TEMP && v->fixed;
}

static void remove_hole(struct planner *p, uint32_t i)
{
    memmove(p->holes.at + i, p->holes.at + i + 1,
            (p->holes.n - i - 1) * sizeof *p->holes.at);
    p->holes.n--;
}

/* Take `bytes` from the smallest hole that has them, else from the end. */
static uint64_t take(struct planner *p, uint64_t bytes)
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
    if (p->holes.n > 0) { /* grow the last hole when it touches the end */
        struct hole *h = &p->holes.at[p->holes.n - 1];
        if (h->at + h->bytes == p->end) {
            at = h->at;
            p->holes.n--;
        }
    }
    p->end = at + bytes;
    return at;
}

static void give(struct planner *p, uint64_t at, uint64_t bytes)
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
    struct hole fresh = {at, bytes};
    BYI_PUSH(&p->holes, fresh);
    memmove(p->holes.at + lo + 1, p->holes.at + lo,
            (p->holes.n - 1 - lo) * sizeof fresh);
    p->holes.at[lo] = fresh;
}

/* last[v]: the last step that reads v or an alias of it; a value nobody reads
 * dies with the step that makes it; outputs never die. */
static void find_last(struct planner *p)
{
    const struct byi_pfunc *f = p->f;
    for (uint32_t s = 0; s < f->steps.n; s++) {
        const struct byi_pstep *step = &f->steps.at[s];
        for (uint32_t i = 0; i < step->n_out; i++)
            p->last[byi_pfunc_root(f, f->flat.at[step->out + i])] = s;
        for (uint32_t i = 0; i < step->n_in; i++)
            p->last[byi_pfunc_root(f, f->flat.at[step->in + i])] = s;
    }
    for (uint32_t i = 0; i < f->outputs.n; i++)
        p->last[byi_pfunc_root(f, f->outputs.at[i])] = UINT32_MAX;
}

static void plan_step(struct planner *p, uint32_t s)
{
    struct byi_pfunc *f = p->f;
    const struct byi_pstep *step = &f->steps.at[s];
    for (uint32_t i = 0; i < step->n_out; i++) {
        struct byi_pvalue *v = &f->values.at[f->flat.at[step->out + i]];
        if (is_planned(v))
            v->offset = take(p, padded_bytes(v));
    }
    for (uint32_t i = 0; i < step->n_in + step->n_out; i++) {
        uint32_t flat =
            i < step->n_in ? step->in + i : step->out + i - step->n_in;
        uint32_t root = byi_pfunc_root(f, f->flat.at[flat]);
        const struct byi_pvalue *v = &f->values.at[root];
        if (!is_planned(v) || p->last[root] != s)
            continue;
        p->last[root] = UINT32_MAX; /* given back once */
        if (padded_bytes(v) > 0)
            give(p, v->offset, padded_bytes(v));
    }
}

/* --- the largest first --------------------------------------------------- */

struct item {
    uint32_t value, first, last; /* steps it lives from and to */
    uint64_t bytes, at;
};

static int by_size(const void *a, const void *b)
{
    const struct item *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    return x->value < y->value ? -1 : 1;
}

/* The planned values, with their lives; `last` as find_last left it. */
static uint32_t list_items(const struct byi_pfunc *f, const uint32_t *last,
                           struct item *items)
{
    uint32_t n = 0;
    for (uint32_t s = 0; s < f->steps.n; s++) {
        const struct byi_pstep *step = &f->steps.at[s];
        for (uint32_t i = 0; i < step->n_out; i++) {
            uint32_t v = f->flat.at[step->out + i];
            if (!is_planned(&f->values.at[v]))
                continue;
            if (items && n < MAX_BY_SIZE)
                items[n] = (struct item){v, s, last[v],
                                         padded_bytes(&f->values.at[v]), 0};
            n++;
        }
    }
    return n;
}

/* Put items[n] at the lowest place that nobody alive with it has, and in
 * among placed[0..n), which is ascending by place. */
static void place_item(struct item *placed, uint32_t n, struct item item)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct item *p = &placed[i];
        if (p->last < item.first || item.last < p->first)
            continue;
        if (item.at + item.bytes <= p->at)
            break;
        if (p->at + p->bytes > item.at)
            item.at = p->at + p->bytes;
    }
    uint32_t to = n;
    for (; to > 0 && placed[to - 1].at > item.at; to--)
        placed[to] = placed[to - 1];
    placed[to] = item;
}

static void plan_by_size(struct byi_pfunc *f, const uint32_t *last,
                         struct byi_arena *arena)
{
    uint32_t n = list_items(f, last, NULL);
    if (n == 0 || n > MAX_BY_SIZE)
        return;
    struct item *items = byi_arena_calloc(arena, n, sizeof *items);
    list_items(f, last, items);
    qsort(items, n, sizeof *items, by_size);
    uint64_t end = 0;
    struct item *placed = byi_arena_calloc(arena, n, sizeof *placed);
    for (uint32_t i = 0; i < n; i++)
        place_item(placed, i, items[i]);
    for (uint32_t i = 0; i < n; i++)
        if (placed[i].at + placed[i].bytes > end)
            end = placed[i].at + placed[i].bytes;
    if (end >= f->arena)
        return;
    f->arena = end;
    for (uint32_t i = 0; i < n; i++)
        f->values.at[placed[i].value].offset = placed[i].at;
}

void byi_plan_memory(struct byi_pfunc *f)
{
    struct byi_arena *arena = byi_arena_new();
    struct planner p = {.f = f};
    uint32_t n = f->values.n + 1;
    p.last = byi_arena_calloc(arena, n, sizeof *p.last);
    find_last(&p);
    uint32_t *last = byi_arena_copy(arena, p.last, n * sizeof *last);
    for (uint32_t s = 0; s < f->steps.n; s++)
        plan_step(&p, s);
    f->arena = p.end;
    byi_vec_free(p.holes.at);
    plan_by_size(f, last, arena);
    byi_arena_free(&arena);
}
