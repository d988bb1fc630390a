/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c: the table of `byoc bench --profile`: the time of each step of a
 * run, the median over all runs.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* One event of a run, the same in every run. */
struct profile_row {
    const char *name, *impl, *sources; /* in the arena */
    BYI_VEC(double) times;             /* seconds */
};

struct byi_profile {
    struct byi_arena *arena;
    BYI_VEC(struct profile_row) rows;
    uint32_t at;  /* events of this run so far */
    uint32_t n;   /* runs                      */
    bool differs; /* a run had other events    */
};

struct byi_profile *byi_profile_new(struct byi_arena *arena)
{
    struct byi_profile *p = byi_arena_calloc(arena, 1, sizeof *p);
    p->arena = arena;
    return p;
}

/* A region is the sum of its primitives, a run that of its steps. */
static bool is_sum(const char *kind)
{
    static const char *const sums[] = {"region", "run", "call", "if",
                                       "specialise"};
    for (size_t i = 0; i < BYI_COUNT(sums); i++)
        if (strcmp(kind, sums[i]) == 0)
            return true;
    return false;
}

void byi_profile_event(void *ctx, const struct byoc_event *event)
{
    struct byi_profile *p = ctx;
    if (strcmp(event->kind, "run") == 0) {
        p->differs |= p->at != p->rows.n;
        p->at = 0;
        p->n++;
    }
    if (is_sum(event->kind))
        return;
    if (p->at == p->rows.n && p->n == 0) {
        const struct profile_row row = {
            .name = byi_arena_str(p->arena, event->name),
            .impl = byi_arena_str(p->arena, event->impl),
            .sources = byi_arena_str(p->arena, event->sources)};
        BYI_PUSH(&p->rows, row);
    }
    if (p->at >= p->rows.n ||
        strcmp(p->rows.at[p->at].name, event->name) != 0) {
        p->differs = true;
        return;
    }
    struct profile_row *row = &p->rows.at[p->at++];
    BYI_PUSH(&row->times, 1e-9 * (double)(event->end_ns - event->begin_ns));
}

static int by_time(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(struct profile_row *row)
{
    qsort(row->times.at, row->times.n, sizeof *row->times.at, by_time);
    return row->times.n ? row->times.at[row->times.n / 2] : 0;
}

void byi_profile_print(struct byi_profile *p)
{
    double all = 0;
    for (uint32_t i = 0; i < p->rows.n; i++)
        all += median(&p->rows.at[i]);
    printf("\n%10s %6s  %-24s  %-32s  %s\n", "median us", "share",
           "implementation", "operators", "nodes");
    for (uint32_t i = 0; i < p->rows.n; i++) {
        struct profile_row *row = &p->rows.at[i];
        const double time = median(row);
        printf("%10.1f %5.1f%%  %-24s  %-32s  %s\n", 1e6 * time,
               all > 0 ? 100 * time / all : 0, row->impl, row->name,
               row->sources);
    }
    printf("%10.1f 100.0%%  in %u steps, over %u runs%s\n", 1e6 * all,
           p->rows.n, p->n,
           p->differs ? "; some runs had other steps, which are left out" : "");
}

void byi_profile_free(struct byi_profile *p)
{
    for (uint32_t i = 0; p && i < p->rows.n; i++)
        byi_vec_free(p->rows.at[i].times.at);
    if (p)
        byi_vec_free(p->rows.at);
}
