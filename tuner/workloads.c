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
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "model name", 10) == 0) {
            add_text(s, line);
            break;
        }
    if (file)
        fclose(file);
}

static enum byoc_status hash_base(struct byi_workloads *workloads,
                                  struct byoc_error *err)
{
    struct byi_sha256 *s = &workloads->base;
    uint32_t threads;
    BYI_TRY(byoc_internal_threads(workloads->meter.threads, &threads, err));
    byi_sha256_init(s);
    add_text(s, "byoc cost 1");
    add_text(s, byoc_version());
    add_text(s, byoc_internal_cpu());
    add_text(s, getenv("BYOC_MAX_ISA"));
    add_cpu_model(s);
    byi_sha256_add(s, &threads, sizeof threads);
    byi_sha256_add(s, &workloads->ctx->opt_level,
                   sizeof workloads->ctx->opt_level);
    const char *const *lists[] = {workloads->ctx->disabled,
                                  workloads->ctx->required,
                                  workloads->ctx->options};
    for (size_t i = 0; i < BYI_COUNT(lists); i++) {
        for (const char *const *name = lists[i]; name && *name; name++)
            add_text(s, *name);
        add_text(s, "");
    }
    return BYOC_OK;
}

const char *byi_workloads_label(const struct byi_workloads *workloads,
                                uint32_t label)
{
    return label ? workloads->backends->at[label - 1].name : "native";
}

void byi_workloads_hash_backend(const struct byi_workloads *workloads,
                                uint32_t label, struct byi_sha256 *s)
{
    const struct byoc_backend *b = workloads->backends->at[label - 1].api;
    add_text(s, b->name);
    add_text(s, b->version);
    add_text(s, b->compat);
    add_text(s, workloads->backends->forbid_ref ? "no reference kernels" : "");
    add_text(s, workloads->backends->keep_nan ? "no masking kernels" : "");
    add_text(s, workloads->backends->exact ? "exact" : "");
}

/* Set `key` to the key in the cost table of the workload's time with this
 * label.
 */
static void label_key(const struct byi_workloads *workloads,
                      const struct byi_workload *workload, uint32_t label,
                      char key[65])
{
    struct byi_sha256 s;
    byi_sha256_init(&s);
    add_text(&s, workload->key);
    add_text(&s, label ? "backend" : "native");
    if (label)
        byi_workloads_hash_backend(workloads, label, &s);
    byi_sha256_hex(&s, key);
}

/* --- workloads ------------------------------------------------------------ */

static struct byi_workload *find_workload(const struct byi_workloads *workloads,
                                          const char *key)
{
    BYI_INDEX_EACH (&workloads->by_key, byi_hash(0, key, 64), i)
        if (strcmp(workloads->list.at[i].key, key) == 0)
            return &workloads->list.at[i];
    return NULL;
}

uint32_t byi_workloads_add(struct byi_workloads *workloads,
                           const struct byi_subgraph *subgraph, uint64_t labels)
{
    struct byi_workload new_workload = {.subgraph = *subgraph};
    struct byi_sha256 s = workloads->base;
    byi_subgraph_hash(workloads->work, subgraph, &s);
    byi_sha256_hex(&s, new_workload.key);
    struct byi_workload *workload = find_workload(workloads, new_workload.key);
    if (!workload) {
        new_workload.us = byi_arena_calloc(
            workloads->arena, workloads->n_labels, sizeof *new_workload.us);
        for (uint32_t l = 0; l < workloads->n_labels; l++)
            new_workload.us[l] = (double)NAN;
        byi_index_add(&workloads->by_key, byi_hash(0, new_workload.key, 64),
                      workloads->list.n);
        BYI_PUSH(&workloads->list, new_workload);
        workload = &workloads->list.at[workloads->list.n - 1];
    }
    workload->labels |= labels;
    return (uint32_t)(workload - workloads->list.at);
}

bool byi_workload_is_known(const struct byi_workloads *workloads,
                           const struct byi_workload *workload)
{
    for (uint32_t l = 0; l < workloads->n_labels; l++)
        if (byi_workload_wants(workload, l) && isnan(workload->us[l]))
            return false;
    return true;
}

static void look_up_times(struct byi_workloads *workloads,
                          struct byi_workload *workload)
{
    char key[65];
    for (uint32_t l = 0; l < workloads->n_labels; l++) {
        label_key(workloads, workload, l, key);
        if (byi_workload_wants(workload, l) &&
            !byi_cost_get(&workloads->table, key, &workload->us[l]))
            workload->us[l] = (double)NAN;
    }
}

/* Put the known times into the cost table, and use them as the table rounds
 * them. */
static void keep_times(struct byi_workloads *workloads,
                       const struct byi_workload *workload)
{
    char key[65];
    for (uint32_t l = 0; l < workloads->n_labels; l++) {
        if (!byi_workload_wants(workload, l) || isnan(workload->us[l]))
            continue;
        struct byi_text description = {0};
        byi_text_addf(&description, "%s: ", byi_workloads_label(workloads, l));
        byi_subgraph_name(workloads->work, &workload->subgraph, &description);
        label_key(workloads, workload, l, key);
        byi_cost_put(&workloads->table, key, workload->us[l], description.at);
        byi_cost_get(&workloads->table, key, &workload->us[l]);
        byi_text_free(&description);
    }
}

/* --- timing --------------------------------------------------------------- */

/* Partition a workload for one backend and load it. If the backend takes no
 * node, *m becomes NULL and *a is not loaded. */
static enum byoc_status open_backend(struct byi_workloads *workloads,
                                     const struct byi_workload *workload,
                                     uint32_t label, struct byi_module **m,
                                     struct byi_alternative *a,
                                     struct byoc_error *err)
{
    static const struct byi_compiled_groups none;
    struct byi_backends only = {.n = 1,
                                .at = &workloads->backends->at[label - 1],
                                .forbid_ref = workloads->backends->forbid_ref,
                                .keep_nan = workloads->backends->keep_nan,
                                .exact = workloads->backends->exact,
                                .cache = workloads->backends->cache};
    *m = byi_module_new();
    enum byoc_status status =
        byi_subgraph_add(workloads->work, &workload->subgraph, *m, "main", err);
    if (status == BYOC_OK)
        status = byi_meter_passes(&workloads->meter, *m, &only, err);
    if (status == BYOC_OK && byi_has_region(*m, NULL))
        return byi_alternative_open(&workloads->meter, *m, &none, a, err);
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

static void drop_alternative(struct workload_alternatives *alternatives,
                             uint32_t i)
{
    alternatives->n--;
    memmove(&alternatives->running[i], &alternatives->running[i + 1],
            (alternatives->n - i) * sizeof *alternatives->running);
    memmove(&alternatives->label[i], &alternatives->label[i + 1],
            (alternatives->n - i) * sizeof *alternatives->label);
}

/* Time the alternatives. The time of one that cannot run becomes INFINITY. If
 * the native one cannot run, or the times do not show which is the fastest, the
 * workload's native time stays unknown. */
static void time_alternatives(struct byi_workloads *workloads,
                              struct byi_workload *workload,
                              struct workload_alternatives *alternatives)
{
    const double seconds_each = 0.015;
    struct byoc_error err;
    uint32_t failed;
    while (alternatives->n > 1 &&
           byi_alternatives_time(alternatives->running, alternatives->n,
                                 seconds_each * alternatives->n, &failed,
                                 &err) != BYOC_OK) {
        if (failed == 0)
            return;
        workload->us[alternatives->label[failed]] = (double)INFINITY;
        drop_alternative(alternatives, failed);
    }
    if (alternatives->n == 1 &&
        byi_alternatives_time(alternatives->running, 1, seconds_each, &failed,
                              &err))
        return;
    workloads->n_timed++;
    if (!byi_alternatives_are_decided(alternatives->running, alternatives->n)) {
        workloads->n_undecided++;
        return;
    }
    for (uint32_t i = 0; i < alternatives->n; i++)
        workload->us[alternatives->label[i]] = alternatives->running[i]->us;
    for (uint32_t l = 1; l < workloads->n_labels; l++)
        if (byi_workload_wants(workload, l) && isnan(workload->us[l]))
            workload->us[l] =
                workload->us[0]; /* the backend takes no node of it */
}

static void time_workload(struct byi_workloads *workloads,
                          struct byi_workload *workload,
                          struct byi_module *native_module,
                          const struct byi_compiled_groups *groups,
                          const char *entry)
{
    struct byoc_error err;
    struct workload_alternatives *alternatives =
        byi_arena_alloc(workloads->arena, sizeof *alternatives);
    for (uint32_t l = 0; l < workloads->n_labels; l++)
        workload->us[l] = (double)NAN;
    if (byi_module_entry_set(native_module, entry, "workloads", &err) !=
            BYOC_OK ||
        byi_alternative_open(&workloads->meter, native_module, groups,
                             &alternatives->at[0], &err))
        return;
    alternatives->running[alternatives->n++] = &alternatives->at[0];
    for (uint32_t l = 1; l < workloads->n_labels; l++) {
        if (!byi_workload_wants(workload, l))
            continue;
        const enum byoc_status status =
            open_backend(workloads, workload, l, &alternatives->modules[l],
                         &alternatives->at[l], &err);
        if (status != BYOC_OK) {
            workload->us[l] = (double)INFINITY;
        } else if (alternatives->modules[l]) {
            alternatives->label[alternatives->n] = l;
            alternatives->running[alternatives->n++] = &alternatives->at[l];
        }
    }
    time_alternatives(workloads, workload, alternatives);
    for (uint32_t l = 0; l < workloads->n_labels; l++) {
        byi_alternative_close(&alternatives->at[l]);
        byi_module_free(&alternatives->modules[l]);
    }
    if (!isnan(workload->us[0]))
        keep_times(workloads, workload);
}

static void report_progress(struct byi_workloads *workloads)
{
    if (workloads->progress)
        workloads->progress(workloads->progress_ctx, "measuring",
                            workloads->n_done, workloads->n_total);
}

static bool is_looked_up(const struct byi_workload *workload)
{
    return (workload->labels & ~workload->looked_up) == 0;
}

/* Look up the times of the workloads in the table, if that was not done before.
 * List in `missing` the workloads whose times are not all known, and add a
 * function for each to `native_module`. The times of a workload that cannot
 * become a function stay unknown. Returns the number of missing workloads. */
static uint32_t find_missing(struct byi_workloads *workloads,
                             struct byi_module *native_module,
                             uint32_t *missing)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < workloads->list.n; i++) {
        struct byi_workload *workload = &workloads->list.at[i];
        struct byoc_error why;
        if (is_looked_up(workload))
            continue;
        look_up_times(workloads, workload);
        workload->looked_up = workload->labels;
        char entry[32];
        snprintf(entry, sizeof entry, "workload%u", i);
        if (!byi_workload_is_known(workloads, workload) &&
            byi_now() < workloads->deadline &&
            byi_subgraph_add(workloads->work, &workload->subgraph,
                             native_module, entry, &why) == BYOC_OK)
            missing[n++] = i;
    }
    return n;
}

static enum byoc_status time_missing(struct byi_workloads *workloads,
                                     struct byi_module *native_module,
                                     const uint32_t *missing, uint32_t n,
                                     struct byoc_error *err)
{
    struct byi_compiled_groups groups = {0};
    char entry[32];
    /* the plan needs an entry function, which may be any workload; it is set
     * after the passes, since these would drop the other functions */
    BYI_TRY(byi_meter_passes(&workloads->meter, native_module, NULL, err));
    snprintf(entry, sizeof entry, "workload%u", missing[0]);
    BYI_TRY(byi_module_entry_set(native_module, entry, "workloads", err));
    byi_meter_compile(&workloads->meter, native_module, &groups);
    workloads->n_total += n;
    for (uint32_t i = 0; i < n; i++) {
        snprintf(entry, sizeof entry, "workload%u", missing[i]);
        if (byi_now() < workloads->deadline)
            time_workload(workloads, &workloads->list.at[missing[i]],
                          native_module, &groups, entry);
        workloads->n_done++;
        report_progress(workloads);
    }
    byi_compiled_groups_free(&groups);
    return BYOC_OK;
}

enum byoc_status byi_workloads_time(struct byi_workloads *workloads,
                                    struct byoc_error *err)
{
    struct byi_module *native_module = byi_module_new();
    uint32_t *missing =
        byi_arena_calloc(workloads->arena, workloads->list.n, sizeof *missing);
    const uint32_t n = find_missing(workloads, native_module, missing);
    enum byoc_status status =
        n ? time_missing(workloads, native_module, missing, n, err) : BYOC_OK;
    byi_module_free(&native_module);
    return status;
}

/* --- the interface -------------------------------------------------------- */

enum byoc_status byi_workloads_open(struct byi_workloads *workloads,
                                    const char *path, struct byi_text *note,
                                    struct byoc_error *err)
{
    workloads->n_labels = 1 + workloads->backends->n;
    byi_cost_table_open(&workloads->table, path, note);
    return hash_base(workloads, err);
}

void byi_workloads_close(struct byi_workloads *workloads)
{
    byi_text_free(&workloads->meter.compiler_error);
    byi_vec_free(workloads->list.at);
    byi_cost_table_close(&workloads->table);
}
