/* memory.c: where temporaries live. Walks the steps in order with a list of
 * holes: a step's results take the smallest hole that fits before its dead
 * operands give theirs back, so a kernel's results never overlap its operands.
 * Values whose size varies are no business of this file.
 */
#include "plan.h"

#include <string.h>

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

void byi_plan_memory(struct byi_pfunc *f)
{
    struct byi_arena *arena = byi_arena_new();
    struct planner p = {.f = f};
    p.last = byi_arena_calloc(arena, f->values.n + 1, sizeof *p.last);
    find_last(&p);
    for (uint32_t s = 0; s < f->steps.n; s++)
        plan_step(&p, s);
    f->arena = p.end;
    byi_vec_free(p.holes.at);
    byi_arena_free(&arena);
}
