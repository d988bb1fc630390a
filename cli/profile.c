/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c: prints the tables of `byoc bench --profile`. They show the median
 * time of each step over all runs, and its work relative to the peak of the
 * machine.
 */
#include "cli.h"

#include "core/base/isa.h"
#include "runtime/internal.h"

#include <cjson/cJSON.h>

#include <stdlib.h>
#include <string.h>

/* A step of a run, with its times in all runs; or the sum of several steps. */
struct profile_row {
    const char *name, *impl, *sources; /* in the arena */
    double flops, bytes, constant_bytes;
    BYI_VEC(double) times; /* seconds */
    double time;           /* their median */
    uint32_t steps;        /* number of steps in a sum */
};

/* The rows of all steps, and the state of the current run. */
struct byi_profile {
    struct byi_arena *arena;
    BYI_VEC(struct profile_row) rows; /* in the order of execution */
    BYI_VEC(struct profile_row)
    sums;                /* one for each operator; most time first */
    uint32_t next_row;   /* index of the next row in this run */
    uint32_t primitives; /* events of primitives since the last other event */
    uint32_t n_runs;
    bool differs;     /* the runs' events differ */
    uint32_t threads; /* of a run */
    double peak;      /* FLOP/s; 0: not measured */
    /* bytes/s of reading as many bytes as all constants have; 0: no constants
     */
    double bandwidth;
    double time; /* sum of all rows' medians */
};

struct byi_profile *byi_profile_new(struct byi_arena *arena)
{
    struct byi_profile *p = byi_arena_calloc(arena, 1, sizeof *p);
    p->arena = arena;
    return p;
}

void byi_profile_measure_peak(struct byi_profile *p, uint32_t threads)
{
    const double peak = byoc_internal_peak_flops(threads);
    p->peak = peak > p->peak ? peak : p->peak;
    p->threads = threads;
}

/* --- events --------------------------------------------------------------- */

/* Whether an event is the sum of others. A run is the sum of its steps. A
 * region is the sum of its primitives, if its backend reports any. */
static bool is_sum(const struct byi_profile *p, const char *kind)
{
    static const char *const sums[] = {"run", "call", "if", "specialise"};
    for (size_t i = 0; i < BYI_COUNT(sums); i++)
        if (strcmp(kind, sums[i]) == 0)
            return true;
    return strcmp(kind, "region") == 0 && p->primitives > 0;
}

void byi_profile_event(void *ctx, const struct byoc_event *event)
{
    struct byi_profile *p = ctx;
    const bool sum = is_sum(p, event->kind);
    p->primitives =
        strcmp(event->kind, "primitive") == 0 ? p->primitives + 1 : 0;
    if (strcmp(event->kind, "run") == 0) {
        p->differs |= p->next_row != p->rows.n;
        p->next_row = 0;
        p->n_runs++;
    }
    if (sum)
        return;
    if (p->next_row == p->rows.n && p->n_runs == 0) {
        const struct profile_row row = {
            .name = byi_arena_str(p->arena, event->name),
            .impl = byi_arena_str(p->arena, event->impl),
            .sources = byi_arena_str(p->arena, event->sources),
            .flops = event->flops,
            .bytes = event->bytes,
            .constant_bytes = event->constant_bytes,
            .steps = 1};
        BYI_PUSH(&p->rows, row);
    }
    if (p->next_row >= p->rows.n ||
        strcmp(p->rows.at[p->next_row].name, event->name) != 0) {
        p->differs = true;
        return;
    }
    struct profile_row *row = &p->rows.at[p->next_row++];
    BYI_PUSH(&row->times, 1e-9 * (double)(event->end_ns - event->begin_ns));
}

/* --- sums ----------------------------------------------------------------- */

static double median(struct profile_row *row)
{
    qsort(row->times.at, row->times.n, sizeof *row->times.at,
          byi_compare_doubles);
    return row->times.n ? row->times.at[row->times.n / 2] : 0;
}

/* The sum for a step's operator, which is created if it does not exist. A fused
 * kernel "a+b" counts under "a". */
static struct profile_row *get_sum(struct byi_profile *p, const char *name)
{
    const size_t n = strcspn(name, "+");
    for (uint32_t i = 0; i < p->sums.n; i++)
        if (strncmp(p->sums.at[i].name, name, n) == 0 && !p->sums.at[i].name[n])
            return &p->sums.at[i];
    const struct profile_row sum = {
        .name = byi_arena_printf(p->arena, "%.*s", (int)n, name)};
    BYI_PUSH(&p->sums, sum);
    return &p->sums.at[p->sums.n - 1];
}

static int most_time_first(const void *a, const void *b)
{
    const struct profile_row *x = a, *y = b;
    return x->time != y->time ? (x->time < y->time) - (x->time > y->time)
                              : strcmp(x->name, y->name);
}

/* Compute medians and sums, once. */
static void compute_sums(struct byi_profile *p)
{
    double constants = 0;
    if (p->sums.n)
        return;
    for (uint32_t i = 0; i < p->rows.n; i++) {
        struct profile_row *row = &p->rows.at[i];
        struct profile_row *sum = get_sum(p, row->name);
        row->time = median(row);
        p->time += row->time;
        constants += row->constant_bytes;
        sum->time += row->time;
        sum->flops += row->flops;
        sum->bytes += row->bytes;
        sum->constant_bytes += row->constant_bytes;
        sum->steps++;
    }
    qsort(p->sums.at, p->sums.n, sizeof *p->sums.at, most_time_first);
    if (constants > 0)
        p->bandwidth = byoc_internal_peak_read((uint64_t)constants, p->threads);
}

/* --- text ----------------------------------------------------------------- */

static double ratio(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* Print a number, or "-" if it is unknown or has no meaning. */
static void print_number(int width, int digits, const char *unit, double value)
{
    if (value > 0)
        printf(" %*.*f%s", width, digits, value, unit);
    else
        printf(" %*s", width + (int)strlen(unit), "-");
}

static void print_row(const struct byi_profile *p,
                      const struct profile_row *row)
{
    printf("%10.1f %5.1f%%", 1e6 * row->time, 100 * ratio(row->time, p->time));
    print_number(8, 1, "", 1e-9 * ratio(row->flops, row->time));
    print_number(6, 1, "%", 100 * ratio(row->flops, row->time * p->peak));
    print_number(8, 3, "", 1e-6 * row->bytes);
    print_number(7, 1, "", 1e-9 * ratio(row->bytes, row->time));
}

static void print_head(void)
{
    printf("\n%10s %6s %8s %7s %8s %7s", "median us", "share", "GFLOP/s",
           "of peak", "MB", "GB/s");
}

void byi_profile_print(struct byi_profile *p)
{
    compute_sums(p);
    printf("peak    %10.1f GFLOP/s of multiply-adds (%s)\n", 1e-9 * p->peak,
           byi_isa_name(byi_isa_widest()));
    if (p->bandwidth > 0)
        printf("read    %10.1f GB/s of a buffer as large as the constants\n",
               1e-9 * p->bandwidth);
    print_head();
    printf("  %-24s  %-32s  %s\n", "implementation", "operators", "nodes");
    for (uint32_t i = 0; i < p->rows.n; i++) {
        const struct profile_row *row = &p->rows.at[i];
        print_row(p, row);
        printf("  %-24s  %-32s  %s\n", row->impl, row->name, row->sources);
    }
    print_head();
    printf("  %5s  %s\n", "steps", "operator");
    struct profile_row total = {.time = p->time, .steps = p->rows.n};
    for (uint32_t i = 0; i < p->sums.n; i++) {
        const struct profile_row *sum = &p->sums.at[i];
        total.flops += sum->flops;
        total.bytes += sum->bytes;
        print_row(p, sum);
        printf("  %5u  %s\n", sum->steps, sum->name);
    }
    print_row(p, &total);
    printf("  %5u  all, over %u runs%s\n", total.steps, p->n_runs,
           p->differs
               ? "; some runs executed different steps; these are left out"
               : "");
}

/* --- JSON ----------------------------------------------------------------- */

/* Add a row's time, and its work as far as it is known. */
static void add_work(const struct byi_profile *p, const struct profile_row *row,
                     cJSON *to)
{
    const struct {
        const char *name;
        double value;
        bool known;
    } members[] = {
        {"median_us", 1e6 * row->time, true},
        {"share", ratio(row->time, p->time), true},
        {"flops", row->flops, row->flops > 0},
        {"gflops", 1e-9 * ratio(row->flops, row->time), row->flops > 0},
        {"of_peak", ratio(row->flops, row->time * p->peak), row->flops > 0},
        {"bytes", row->bytes, row->bytes > 0},
        {"constant_bytes", row->constant_bytes, row->bytes > 0},
        {"gbps", 1e-9 * ratio(row->bytes, row->time), row->bytes > 0},
    };
    for (size_t i = 0; i < BYI_COUNT(members); i++)
        if (members[i].known)
            cJSON_AddNumberToObject(to, members[i].name, members[i].value);
}

void byi_profile_add_json(struct byi_profile *p, cJSON *root)
{
    compute_sums(p);
    cJSON *profile = cJSON_AddObjectToObject(root, "profile");
    cJSON_AddStringToObject(profile, "isa", byi_isa_name(byi_isa_widest()));
    cJSON_AddNumberToObject(profile, "peak_gflops", 1e-9 * p->peak);
    cJSON_AddNumberToObject(profile, "read_gbps", 1e-9 * p->bandwidth);
    cJSON_AddNumberToObject(profile, "runs", p->n_runs);
    cJSON_AddBoolToObject(profile, "differs", p->differs);
    cJSON *steps = cJSON_AddArrayToObject(profile, "steps");
    for (uint32_t i = 0; i < p->rows.n; i++) {
        const struct profile_row *row = &p->rows.at[i];
        cJSON *step = cJSON_CreateObject();
        cJSON_AddStringToObject(step, "operators", row->name);
        cJSON_AddStringToObject(step, "implementation", row->impl);
        cJSON_AddStringToObject(step, "nodes", row->sources);
        add_work(p, row, step);
        cJSON_AddItemToArray(steps, step);
    }
    cJSON *sums = cJSON_AddArrayToObject(profile, "operators");
    for (uint32_t i = 0; i < p->sums.n; i++) {
        cJSON *sum = cJSON_CreateObject();
        cJSON_AddStringToObject(sum, "operator", p->sums.at[i].name);
        cJSON_AddNumberToObject(sum, "steps", p->sums.at[i].steps);
        add_work(p, &p->sums.at[i], sum);
        cJSON_AddItemToArray(sums, sum);
    }
}

void byi_profile_free(struct byi_profile *p)
{
    for (uint32_t i = 0; p && i < p->rows.n; i++)
        byi_vec_free(p->rows.at[i].times.at);
    if (p) {
        byi_vec_free(p->rows.at);
        byi_vec_free(p->sums.at);
    }
}
