/* SPDX-License-Identifier: Apache-2.0 */
/* workloads.c: times workloads, or finds their times in the cost table. */
#include "workloads.h"

#include "runtime_native/native.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* --- keys ----------------------------------------------------------------- */

static void add_text(struct byi_sha256 *s, const char *text)
{
    byi_sha256_add(s, text ? text : "", strlen(text ? text : "") + 1);
}

/* Add the line "model name : ..." of the first CPU to the hash. */
static void add_cpu_model(struct byi_sha256 *s)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0) {
            add_text(s, line);
            break;
        }
    if (f)
        fclose(f);
}

static enum byoc_status hash_base(struct byi_workloads *d,
                                  struct byoc_error *err)
{
    struct byi_sha256 *s = &d->base;
    uint32_t threads;
    BYI_TRY(byoc_internal_threads(d->meter.threads, &threads, err));
    byi_sha256_init(s);
    add_text(s, "byoc cost 1");
    add_text(s, byoc_version());
    add_text(s, byoc_internal_cpu());
    add_text(s, getenv("BYOC_MAX_ISA"));
    add_cpu_model(s);
    byi_sha256_add(s, &threads, sizeof threads);
    byi_sha256_add(s, &d->ctx->opt_level, sizeof d->ctx->opt_level);
    const char *const *lists[] = {d->ctx->disabled, d->ctx->required,
                                  d->ctx->options};
    for (size_t i = 0; i < BYI_COUNT(lists); i++) {
        for (const char *const *name = lists[i]; name && *name; name++)
            add_text(s, *name);
        add_text(s, "");
    }
    return BYOC_OK;
}

const char *byi_workloads_label(const struct byi_workloads *d, uint32_t label)
{
    return label ? d->backends->at[label - 1].name : "native";
}

void byi_workloads_hash_backend(const struct byi_workloads *d, uint32_t label,
                                struct byi_sha256 *s)
{
    const struct byoc_backend *b = d->backends->at[label - 1].api;
    add_text(s, b->name);
    add_text(s, b->version);
    add_text(s, b->compat);
    add_text(s, d->backends->forbid_ref ? "no reference kernels" : "");
    add_text(s, d->backends->keep_nan ? "no masking kernels" : "");
    add_text(s, d->backends->exact ? "exact" : "");
}

/* Set `key` to the key in the cost table of the workload's time with this
 * label.
 */
static void label_key(const struct byi_workloads *d,
                      const struct byi_workload *p, uint32_t label,
                      char key[65])
{
    struct byi_sha256 s;
    byi_sha256_init(&s);
    add_text(&s, p->key);
    add_text(&s, label ? "backend" : "native");
    if (label)
        byi_workloads_hash_backend(d, label, &s);
    byi_sha256_hex(&s, key);
}

/* --- workloads ------------------------------------------------------------ */

static struct byi_workload *find_workload(const struct byi_workloads *d,
                                          const char *key)
{
    BYI_INDEX_EACH (&d->by_key, byi_hash(0, key, 64), i)
        if (strcmp(d->list.at[i].key, key) == 0)
            return &d->list.at[i];
    return NULL;
}

uint32_t byi_workloads_add(struct byi_workloads *d,
                           const struct byi_subgraph *subgraph, uint64_t labels)
{
    struct byi_workload fresh = {.subgraph = *subgraph};
    struct byi_sha256 s = d->base;
    byi_subgraph_hash(d->work, subgraph, &s);
    byi_sha256_hex(&s, fresh.key);
    struct byi_workload *workload = find_workload(d, fresh.key);
    if (!workload) {
        fresh.us = byi_arena_calloc(d->arena, d->n_labels, sizeof *fresh.us);
        for (uint32_t l = 0; l < d->n_labels; l++)
            fresh.us[l] = (double)NAN;
        byi_index_add(&d->by_key, byi_hash(0, fresh.key, 64), d->list.n);
        BYI_PUSH(&d->list, fresh);
        workload = &d->list.at[d->list.n - 1];
    }
    workload->labels |= labels;
    return (uint32_t)(workload - d->list.at);
}

bool byi_workload_is_known(const struct byi_workloads *d,
                           const struct byi_workload *p)
{
    for (uint32_t l = 0; l < d->n_labels; l++)
        if (byi_workload_wants(p, l) && isnan(p->us[l]))
            return false;
    return true;
}

static void look_up_times(struct byi_workloads *d, struct byi_workload *p)
{
    char key[65];
    for (uint32_t l = 0; l < d->n_labels; l++) {
        label_key(d, p, l, key);
        if (byi_workload_wants(p, l) &&
            !byi_cost_get(&d->table, key, &p->us[l]))
            p->us[l] = (double)NAN;
    }
}

/* Put the known times into the cost table, and use them as the table rounds
 * them. */
static void keep_times(struct byi_workloads *d, const struct byi_workload *p)
{
    char key[65];
    for (uint32_t l = 0; l < d->n_labels; l++) {
        if (!byi_workload_wants(p, l) || isnan(p->us[l]))
            continue;
        struct byi_text label = {0};
        byi_text_addf(&label, "%s: ", byi_workloads_label(d, l));
        byi_subgraph_name(d->work, &p->subgraph, &label);
        label_key(d, p, l, key);
        byi_cost_put(&d->table, key, p->us[l], label.at);
        byi_cost_get(&d->table, key, &p->us[l]);
        byi_text_free(&label);
    }
}

/* --- timing --------------------------------------------------------------- */

/* Partition a workload for one backend and load it. If the backend takes no
 * node, *m becomes NULL and *a is not loaded. */
static enum byoc_status open_backend(struct byi_workloads *d,
                                     const struct byi_workload *p,
                                     uint32_t label, struct byi_module **m,
                                     struct byi_alternative *a,
                                     struct byoc_error *err)
{
    static const struct byi_compiled_groups none;
    struct byi_backends only = {.n = 1,
                                .at = &d->backends->at[label - 1],
                                .forbid_ref = d->backends->forbid_ref,
                                .keep_nan = d->backends->keep_nan,
                                .exact = d->backends->exact,
                                .cache = d->backends->cache};
    *m = byi_module_new();
    enum byoc_status status =
        byi_subgraph_add(d->work, &p->subgraph, *m, "main", err);
    if (status == BYOC_OK)
        status = byi_meter_passes(&d->meter, *m, &only, err);
    if (status == BYOC_OK && byi_has_region(*m, NULL))
        return byi_alternative_open(&d->meter, *m, &none, a, err);
    byi_module_free(m);
    return status;
}

/* The alternatives of a workload. running[] are the n that can run, in the
 * order of labels, and label[] their labels; running[0] is native. */
struct workload_alternatives {
    struct byi_alternative at[1 + BYI_MAX_COST_BACKENDS]; /* indexed by label */
    /* indexed by label */
    struct byi_module *modules[1 + BYI_MAX_COST_BACKENDS];
    struct byi_alternative *running[1 + BYI_MAX_COST_BACKENDS];
    uint32_t label[1 + BYI_MAX_COST_BACKENDS];
    uint32_t n;
};

static void drop_alternative(struct workload_alternatives *f, uint32_t i)
{
    f->n--;
    memmove(&f->running[i], &f->running[i + 1],
            (f->n - i) * sizeof *f->running);
    memmove(&f->label[i], &f->label[i + 1], (f->n - i) * sizeof *f->label);
}

/* Time the alternatives. The time of one that cannot run becomes INFINITY. If
 * the native one cannot run, or the times do not show which is the fastest, the
 * workload's native time stays unknown. */
static void time_alternatives(struct byi_workloads *d, struct byi_workload *p,
                              struct workload_alternatives *f)
{
    const double seconds_each = 0.015;
    struct byoc_error err;
    uint32_t failed;
    while (f->n > 1 &&
           byi_alternatives_time(f->running, f->n, seconds_each * f->n, &failed,
                                 &err) != BYOC_OK) {
        if (failed == 0)
            return;
        p->us[f->label[failed]] = (double)INFINITY;
        drop_alternative(f, failed);
    }
    if (f->n == 1 &&
        byi_alternatives_time(f->running, 1, seconds_each, &failed, &err))
        return;
    d->n_timed++;
    if (!byi_alternatives_are_decided(f->running, f->n)) {
        d->n_undecided++;
        return;
    }
    for (uint32_t i = 0; i < f->n; i++)
        p->us[f->label[i]] = f->running[i]->us;
    for (uint32_t l = 1; l < d->n_labels; l++)
        if (byi_workload_wants(p, l) && isnan(p->us[l]))
            p->us[l] = p->us[0]; /* the backend takes no node of it */
}

static void time_workload(struct byi_workloads *d, struct byi_workload *p,
                          struct byi_module *native_module,
                          const struct byi_compiled_groups *groups,
                          const char *entry)
{
    struct byoc_error err;
    struct workload_alternatives *f = byi_arena_alloc(d->arena, sizeof *f);
    for (uint32_t l = 0; l < d->n_labels; l++)
        p->us[l] = (double)NAN;
    if (byi_module_entry_set(native_module, entry, "workloads", &err) !=
            BYOC_OK ||
        byi_alternative_open(&d->meter, native_module, groups, &f->at[0], &err))
        return;
    f->running[f->n++] = &f->at[0];
    for (uint32_t l = 1; l < d->n_labels; l++) {
        if (!byi_workload_wants(p, l))
            continue;
        const enum byoc_status status =
            open_backend(d, p, l, &f->modules[l], &f->at[l], &err);
        if (status != BYOC_OK) {
            p->us[l] = (double)INFINITY;
        } else if (f->modules[l]) {
            f->label[f->n] = l;
            f->running[f->n++] = &f->at[l];
        }
    }
    time_alternatives(d, p, f);
    for (uint32_t l = 0; l < d->n_labels; l++) {
        byi_alternative_close(&f->at[l]);
        byi_module_free(&f->modules[l]);
    }
    if (!isnan(p->us[0]))
        keep_times(d, p);
}

static void report_progress(struct byi_workloads *d)
{
    if (d->progress)
        d->progress(d->progress_ctx, "measuring", d->n_done, d->n_total);
}

static bool is_looked_up(const struct byi_workload *p)
{
    return (p->labels & ~p->looked_up) == 0;
}

/* Look up the times of the workloads in the table, if that was not done before.
 * List in `missing` the workloads whose times are not all known, and add a
 * function for each to `native_module`. The times of a workload that cannot
 * become a function stay unknown. Returns the number of missing workloads. */
static uint32_t find_missing(struct byi_workloads *d,
                             struct byi_module *native_module,
                             uint32_t *missing)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < d->list.n; i++) {
        struct byi_workload *p = &d->list.at[i];
        struct byoc_error why;
        if (is_looked_up(p))
            continue;
        look_up_times(d, p);
        p->looked_up = p->labels;
        char entry[32];
        snprintf(entry, sizeof entry, "workload%u", i);
        if (!byi_workload_is_known(d, p) && byi_now() < d->deadline &&
            byi_subgraph_add(d->work, &p->subgraph, native_module, entry,
                             &why) == BYOC_OK)
            missing[n++] = i;
    }
    return n;
}

static enum byoc_status time_missing(struct byi_workloads *d,
                                     struct byi_module *native_module,
                                     const uint32_t *missing, uint32_t n,
                                     struct byoc_error *err)
{
    struct byi_compiled_groups groups = {0};
    char entry[32];
    /* the plan needs an entry function, which may be any workload; it is set
     * after the passes, since these would drop the other functions */
    BYI_TRY(byi_meter_passes(&d->meter, native_module, NULL, err));
    snprintf(entry, sizeof entry, "workload%u", missing[0]);
    BYI_TRY(byi_module_entry_set(native_module, entry, "workloads", err));
    byi_meter_compile(&d->meter, native_module, &groups);
    d->n_total += n;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(entry, sizeof entry, "workload%u", missing[i]);
        if (byi_now() < d->deadline)
            time_workload(d, &d->list.at[missing[i]], native_module, &groups,
                          entry);
        d->n_done++;
        report_progress(d);
    }
    byi_compiled_groups_free(&groups);
    return BYOC_OK;
}

enum byoc_status byi_workloads_time(struct byi_workloads *d,
                                    struct byoc_error *err)
{
    struct byi_module *native_module = byi_module_new();
    uint32_t *missing = byi_arena_calloc(d->arena, d->list.n, sizeof *missing);
    const uint32_t n = find_missing(d, native_module, missing);
    enum byoc_status status =
        n ? time_missing(d, native_module, missing, n, err) : BYOC_OK;
    byi_module_free(&native_module);
    return status;
}

/* --- the interface -------------------------------------------------------- */

enum byoc_status byi_workloads_open(struct byi_workloads *d, const char *path,
                                    struct byi_text *note,
                                    struct byoc_error *err)
{
    d->n_labels = 1 + d->backends->n;
    byi_cost_table_open(&d->table, path, note);
    return hash_base(d, err);
}

void byi_workloads_close(struct byi_workloads *d)
{
    byi_text_free(&d->meter.why_none);
    byi_vec_free(d->list.at);
    byi_cost_table_close(&d->table);
}
