/* SPDX-License-Identifier: Apache-2.0 */
/* by_measurement.c: partitions by measured times, in three steps:
 *
 *   candidates  times each candidate natively and by each backend, and assigns
 *               it to the fastest
 *   regions     times the regions of this assignment against native kernels,
 *               and reverts the regions that are slower by more than `noise`
 *   the whole   times the whole model all native, greedily partitioned and as
 *               assigned, and takes the fastest; the assignment only if it is
 *               faster by more than `noise`
 *
 * Times are kept under a hash of everything they depend on (cost_table.c).
 */
#include "by_cost.h"

#include "workloads.h"

#include <math.h>
#include <string.h>

/* The state of byi_decide_by_measurement. A label is 0 for native kernels, 1 +
 * v for backend v.
 */
struct decider {
    struct byi_cost_partition *by_cost;
    struct byi_module *m;
    struct byi_arena *arena;
    struct byi_pass_context ctx;
    struct byi_backends *backends;
    uint32_t n_labels;
    /* their nodes are in a clone of m, in which patterns are matched */
    struct byi_workloads workloads;
    struct byi_candidates candidates;
    uint32_t *candidate_workload; /* indexed by candidate */
};

static const struct byi_workload *workload_of(const struct decider *d,
                                              uint32_t candidate)
{
    return &d->workloads.list.at[d->candidate_workload[candidate]];
}

/* --- the choice ----------------------------------------------------------- */

static struct byi_subgraph subgraph_of(const struct byi_candidate *candidate)
{
    return (struct byi_subgraph){candidate->func, candidate->n, candidate->at};
}

static enum byoc_status time_candidates(struct decider *d,
                                        struct byoc_error *err)
{
    const struct byi_candidate *candidates = d->candidates.list.at;
    const uint32_t n = d->candidates.list.n;
    d->candidate_workload =
        byi_arena_calloc(d->arena, n, sizeof *d->candidate_workload);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_subgraph subgraph = subgraph_of(&candidates[i]);
        d->candidate_workload[i] = byi_workloads_add(
            &d->workloads, &subgraph, candidates[i].backends << 1 | 1);
    }
    return byi_workloads_time(&d->workloads, err);
}

/* The relative error of a measurement. A candidate goes to a backend, as in
 * greedy partitioning, unless native kernels are faster by more than this. */
static const double noise = 0.05;

/* Returns the label with the shortest time for a candidate; the times of
 * backends count less by `noise`. A candidate that was not measured goes to the
 * first backend that takes it, as in greedy partitioning. */
static uint32_t choose_label(const struct decider *d, uint32_t c)
{
    const struct byi_workload *p = workload_of(d, c);
    const uint64_t backends = d->candidates.list.at[c].backends;
    const bool is_known =
        byi_workload_is_known(&d->workloads, p) && !isnan(p->us[0]);
    uint32_t best = 0;
    double shortest = is_known ? p->us[0] : (double)INFINITY;
    for (uint32_t l = 1; l < d->n_labels; l++) {
        const double us = is_known ? (1 - noise) * p->us[l] : 0;
        if (backends >> (l - 1) & 1 && us < shortest) {
            best = l;
            shortest = us;
        }
    }
    return best;
}

/* Returns a workload's known times as text, such as "native 12.3 us, dnnl
 * 40.1 us", in the caller's arena; "" if no time is known. */
static const char *times_text(const struct decider *d,
                              const struct byi_workload *p)
{
    struct byi_text text = {0};
    for (uint32_t l = 0; l < d->n_labels; l++) {
        if (!byi_workload_wants(p, l) || isnan(p->us[l]))
            continue;
        byi_text_addf(&text, "%s%s ", text.n ? ", " : "",
                      byi_workloads_label(&d->workloads, l));
        if (isfinite(p->us[l]))
            byi_text_addf(&text, "%.1f us", p->us[l]);
        else
            byi_text_addf(&text, "cannot run it");
    }
    const char *times = byi_arena_str(d->by_cost->arena, text.n ? text.at : "");
    byi_text_free(&text);
    return times;
}

static void assign_candidate(struct decider *d, struct byi_assignment *a,
                             uint32_t c, uint32_t label, const char *why)
{
    const struct byi_candidate *candidate = &d->candidates.list.at[c];
    for (uint32_t i = 0; i < candidate->n; i++)
        byi_assign(a, candidate->func, candidate->at[i],
                   label ? byi_workloads_label(&d->workloads, label) : NULL,
                   why);
}

static void assign_candidates(struct decider *d, struct byi_assignment *a,
                              const uint32_t *label)
{
    for (uint32_t c = 0; c < d->candidates.list.n; c++) {
        const struct byi_workload *p = workload_of(d, c);
        const char *why = times_text(d, p);
        assign_candidate(d, a, c, label[c], *why ? why : "not measured");
    }
}

/* --- regions -------------------------------------------------------------- */

/* A clone whose operators are identified by their sources: base + k is the k-th
 * operator. */
struct marked_module {
    struct byi_module *m;
    uint32_t base;
    BYI_VEC(struct {
        uint32_t func;
        byi_id id;
    })
    ops;
};

static void mark_operators(struct decider *d, struct marked_module *t)
{
    t->m = byi_module_clone(d->m);
    t->base = t->m->sources.n;
    for (uint32_t i = 0; i < t->m->funcs.n; i++) {
        struct byi_func *f = t->m->funcs.at[i];
        for (byi_id id = 0; !f->dead && id < f->nodes.n; id++) {
            struct byi_node *node = &f->nodes.at[id];
            node->sources = byi_sources_none();
            if (node->kind != BYI_CALL_OP)
                continue;
            char name[32];
            snprintf(name, sizeof name, "%u:%u", i, id);
            node->sources =
                byi_sources_one(t->m, byi_source_new(t->m, name, "op"));
            BYI_PUSH(&t->ops, ((__typeof__(*t->ops.at)){i, id}));
        }
    }
}

/* Returns the nodes of the module that a region of the marked clone comes from;
 * none if the input module already had the region. */
static struct byi_subgraph find_origin(struct decider *d,
                                       const struct marked_module *t,
                                       const struct byi_func *region)
{
    const struct byi_sources *sources = byi_sources_none();
    for (byi_id id = 0; id < region->nodes.n; id++)
        if (region->nodes.at[id].kind == BYI_CALL)
            sources =
                byi_sources_join(t->m, sources, region->nodes.at[id].sources);
    struct byi_subgraph subgraph = {0};
    BYI_VEC(byi_id) list = {0};
    for (uint32_t i = 0; i < sources->n; i++)
        if (sources->at[i] >= t->base) {
            subgraph.func = t->ops.at[sources->at[i] - t->base].func;
            BYI_PUSH(&list, t->ops.at[sources->at[i] - t->base].id);
        }
    const struct byi_func *f = d->workloads.work->funcs.at[subgraph.func];
    const uint32_t n_ops = list.n;
    bool *inside = byi_arena_calloc(d->arena, f->nodes.n, sizeof *inside);
    for (uint32_t i = 0; i < n_ops; i++)
        inside[list.at[i]] = true;
    for (byi_id id = 0; id < f->nodes.n && n_ops; id++)
        if (f->nodes.at[id].kind == BYI_GET && inside[f->nodes.at[id].args[0]])
            BYI_PUSH(&list, id);
    subgraph.n = byi_ids_sort(list.at, list.n);
    subgraph.at =
        byi_arena_copy(d->arena, list.at, subgraph.n * sizeof *list.at);
    byi_vec_free(list.at);
    return subgraph;
}

/* Returns the label of a backend; n_labels if the context has no such backend.
 */
static uint32_t label_of(const struct decider *d, const char *backend)
{
    uint32_t l = 1;
    while (l < d->n_labels &&
           strcmp(byi_workloads_label(&d->workloads, l), backend) != 0)
        l++;
    return l;
}

/* A region of a trial: the name of its function in the clone, its nodes in the
 * module, and its workload, which equal regions share. */
struct trial_region {
    const char *name;
    struct byi_subgraph subgraph;
    uint32_t label, workload;
};
/* A trial of an assignment: a clone that is partitioned as assigned, and the
 * regions that result. */
struct cost_trial {
    struct marked_module marked; /* the clone */
    BYI_VEC(struct trial_region) regions;
};

static void free_trial(struct cost_trial *t)
{
    byi_vec_free(t->regions.at);
    byi_vec_free(t->marked.ops.at);
    byi_module_free(&t->marked.m);
    *t = (struct cost_trial){0};
}

/* Partition a clone as assigned, and time its regions. */
static enum byoc_status try_regions(struct decider *d,
                                    const struct byi_assignment *a,
                                    struct cost_trial *t,
                                    struct byoc_error *err)
{
    struct byi_backends backends = *d->backends;
    backends.decide = NULL;
    backends.assignment = byi_assignment_copy(a, d->arena);
    free_trial(t);
    mark_operators(d, &t->marked);
    BYI_TRY(byi_meter_passes(&d->workloads.meter, t->marked.m, &backends, err));
    for (uint32_t i = 0; i < t->marked.m->funcs.n; i++) {
        const struct byi_func *f = t->marked.m->funcs.at[i];
        if (f->dead || !f->attr.compiler)
            continue;
        const uint32_t label = label_of(d, f->attr.compiler);
        const struct byi_subgraph subgraph = find_origin(d, &t->marked, f);
        if (label == d->n_labels || !subgraph.n)
            continue; /* a region that the input module already had */
        const struct trial_region region = {
            .name = byi_arena_str(d->arena, f->name),
            .subgraph = subgraph,
            .label = label,
            .workload = byi_workloads_add(&d->workloads, &subgraph,
                                          UINT64_C(1) << label | UINT64_C(1))};
        BYI_PUSH(&t->regions, region);
    }
    return byi_workloads_time(&d->workloads, err);
}

/* Make native the nodes of each region that is slower than native kernels by
 * more than `noise`. Returns whether there was such a region. */
static bool revert_slower(struct decider *d, struct byi_assignment *a,
                          const struct cost_trial *t)
{
    bool reverted = false;
    for (uint32_t i = 0; i < t->regions.n; i++) {
        const struct trial_region *r = &t->regions.at[i];
        const struct byi_workload *p = &d->workloads.list.at[r->workload];
        if (isnan(p->us[0]) || !((1 - noise) * p->us[r->label] > p->us[0]))
            continue;
        const char *why = byi_arena_printf(d->by_cost->arena, "as a region: %s",
                                           times_text(d, p));
        for (uint32_t k = 0; k < r->subgraph.n; k++)
            byi_assign(a, r->subgraph.func, r->subgraph.at[k], NULL, why);
        reverted = true;
    }
    return reverted;
}

/* Partition again until no region is slower than native kernels by more than
 * `noise`, or MAX_ROUNDS times: the nodes of a reverted region change the
 * regions around it. */
static enum byoc_status revert_slow_regions(struct decider *d,
                                            struct byi_assignment *a,
                                            struct cost_trial *t,
                                            struct byoc_error *err)
{
    enum { MAX_ROUNDS = 8 };
    for (uint32_t round = 0; round < MAX_ROUNDS; round++) {
        BYI_TRY(try_regions(d, a, t, err));
        if (!revert_slower(d, a, t))
            break;
    }
    return BYOC_OK;
}

/* --- the whole model ------------------------------------------------------ */

enum { ALL_NATIVE, GREEDY, ASSIGNED, N_PLACEMENTS };
static const char *const placement_names[] = {"native", "greedy", "measured"};

/* A placement of the whole model, and its time. */
struct model_placement {
    struct byi_module *m; /* a clone, partitioned */
    struct byi_compiled_groups groups;
    struct byi_alternative alternative;
    char key[65];
    double us;
    uint32_t same; /* index of the first placement with this key */
};

/* Set p->m to a clone that is partitioned for `backends`, and p->key to its key
 * in the cost table. */
static enum byoc_status make_placement(struct decider *d,
                                       struct model_placement *p,
                                       struct byi_backends *backends,
                                       struct byoc_error *err)
{
    struct byi_sha256 s = d->workloads.base;
    p->m = byi_module_clone(d->m);
    BYI_TRY(byi_meter_passes(&d->workloads.meter, p->m, backends, err));
    byi_sha256_add(&s, "whole", sizeof "whole");
    byi_module_hash(p->m, &s);
    for (uint32_t l = 1; l < d->n_labels; l++)
        if (byi_has_region(p->m, byi_workloads_label(&d->workloads, l)))
            byi_workloads_hash_backend(&d->workloads, l, &s);
    byi_sha256_hex(&s, p->key);
    return BYOC_OK;
}

/* Time the placements, running them in turn. If the times do not show which one
 * is the fastest, they are not kept: the next compile measures again. */
static enum byoc_status compare_placements(struct decider *d,
                                           struct model_placement *placements,
                                           struct byoc_error *err)
{
    const double seconds_each = 0.1;
    struct byi_alternative *to_time[N_PLACEMENTS];
    uint32_t n = 0, failed;
    for (uint32_t i = 0; i < N_PLACEMENTS; i++) {
        struct model_placement *p = &placements[i];
        if (p->same != i)
            continue;
        byi_meter_compile(&d->workloads.meter, p->m, &p->groups);
        BYI_TRY(byi_alternative_open(&d->workloads.meter, p->m, &p->groups,
                                     &p->alternative, err));
        to_time[n++] = &p->alternative;
    }
    BYI_TRY(byi_alternatives_time(to_time, n, seconds_each * n, &failed, err));
    d->by_cost->n_timed++;
    const bool decided = byi_alternatives_are_decided(to_time, n);
    if (!decided)
        byi_text_addf(&d->by_cost->notes,
                      "the machine is too busy to tell which placement of the "
                      "whole model is the fastest; measure again\n");
    for (uint32_t i = 0; i < N_PLACEMENTS; i++) {
        struct model_placement *p = &placements[i];
        p->us = placements[p->same].alternative.us;
        if (p->same != i || !decided)
            continue;
        char description[64];
        snprintf(description, sizeof description, "%s: a whole model",
                 placement_names[i]);
        byi_cost_put(&d->workloads.table, p->key, p->alternative.us,
                     description);
    }
    return BYOC_OK;
}

/* Set the times of the three placements: from the table if it has all of them;
 * otherwise measure all three. */
static enum byoc_status time_placements(struct decider *d,
                                        struct model_placement *placements,
                                        const struct byi_assignment *a,
                                        struct byoc_error *err)
{
    struct byi_backends greedy = *d->backends, assigned = *d->backends;
    greedy.decide = assigned.decide = NULL;
    assigned.assignment = byi_assignment_copy(a, d->arena);
    struct byi_backends *const backends[] = {NULL, &greedy, &assigned};
    bool is_known = true;
    for (uint32_t i = 0; i < N_PLACEMENTS; i++) {
        struct model_placement *p = &placements[i];
        BYI_TRY(make_placement(d, p, backends[i], err));
        p->same = 0;
        while (strcmp(placements[p->same].key, p->key) != 0)
            p->same++;
        is_known =
            byi_cost_get(&d->workloads.table, p->key, &p->us) && is_known;
    }
    if (!is_known)
        BYI_TRY(compare_placements(d, placements, err));
    /* use the times as the table keeps them, as the next compile does */
    for (uint32_t i = 0; i < N_PLACEMENTS; i++)
        byi_cost_get(&d->workloads.table, placements[i].key, &placements[i].us);
    return BYOC_OK;
}

/* Returns the better of native and greedy, unless the assignment is faster by
 * more than `noise` or makes the same module. Measuring must not make the model
 * slower. */
static uint32_t best_of(const struct model_placement *placements)
{
    const struct model_placement *assigned = &placements[ASSIGNED];
    const uint32_t baseline = placements[GREEDY].us <= placements[ALL_NATIVE].us
                                  ? GREEDY
                                  : ALL_NATIVE;
    if (assigned->same == placements[baseline].same ||
        assigned->us <= (1 - noise) * placements[baseline].us)
        return ASSIGNED;
    return baseline;
}

/* --- results -------------------------------------------------------------- */

/* Returns a time as the ledger records it: -1 if it is unknown or infinite. */
static double us_or_minus_one(double us)
{
    return isfinite(us) ? us : -1;
}

/* Record the times of each candidate for its nodes. These are the native time,
 * and the time of its backend or, if it is native, of the fastest backend. */
static void note_candidates(struct decider *d, const uint32_t *label)
{
    for (uint32_t c = 0; c < d->candidates.list.n; c++) {
        const struct byi_candidate *candidate = &d->candidates.list.at[c];
        const struct byi_workload *p = workload_of(d, c);
        const struct byi_func *f = d->m->funcs.at[candidate->func];
        const struct byi_sources *sources = byi_sources_none();
        double backend = label[c] ? p->us[label[c]] : (double)INFINITY;
        for (uint32_t l = 1; l < d->n_labels && !label[c]; l++)
            if (byi_workload_wants(p, l) && p->us[l] < backend)
                backend = p->us[l];
        for (uint32_t i = 0; i < candidate->n; i++)
            sources = byi_sources_join(d->m, sources,
                                       f->nodes.at[candidate->at[i]].sources);
        byi_ledger_set_node_times(d->by_cost->ledger, sources,
                                  us_or_minus_one(backend),
                                  us_or_minus_one(p->us[0]));
    }
}

static void note_regions(struct decider *d, const struct cost_trial *t)
{
    for (uint32_t i = 0; i < t->regions.n; i++) {
        const struct trial_region *r = &t->regions.at[i];
        const struct byi_workload *p = &d->workloads.list.at[r->workload];
        byi_ledger_set_region_times(d->by_cost->ledger, r->name,
                                    us_or_minus_one(p->us[r->label]),
                                    us_or_minus_one(p->us[0]));
    }
}

/* Assign all candidates to native kernels, since the whole model is fastest
 * natively. */
static void assign_native(struct decider *d, struct byi_assignment *a,
                          const struct model_placement *placements)
{
    const char *why = byi_arena_printf(
        d->by_cost->arena,
        "the whole model: native %.1f us, greedy %.1f us, measured %.1f us",
        placements[ALL_NATIVE].us, placements[GREEDY].us,
        placements[ASSIGNED].us);
    for (uint32_t c = 0; c < d->candidates.list.n; c++)
        assign_candidate(d, a, c, 0, why);
}

/* Time the whole model and return the fastest placement, such as GREEDY. If the
 * model cannot run, the times of the candidates and regions decide. */
static uint32_t pick_placement(struct decider *d, struct byi_assignment *a)
{
    struct model_placement placements[N_PLACEMENTS] = {{0}};
    struct byoc_error err;
    uint32_t best = ASSIGNED;
    if (time_placements(d, placements, a, &err) == BYOC_OK) {
        best = best_of(placements);
        const struct byi_placement_times measured = {
            .native_us = placements[ALL_NATIVE].us,
            .greedy_us = placements[GREEDY].us,
            .measured_us = placements[ASSIGNED].us,
            .chosen = placement_names[placements[best].same]};
        byi_ledger_set_measured(d->by_cost->ledger, &measured);
    } else {
        byi_text_addf(&d->by_cost->notes,
                      "the whole model could not be timed, so the times of its "
                      "candidates and regions decide: %s\n",
                      err.text);
    }
    if (best == ALL_NATIVE)
        assign_native(d, a, placements);
    for (uint32_t i = 0; i < N_PLACEMENTS; i++) {
        byi_alternative_close(&placements[i].alternative);
        byi_compiled_groups_free(&placements[i].groups);
        byi_module_free(&placements[i].m);
    }
    return best;
}

static enum byoc_status decide(struct decider *d, struct byoc_error *err)
{
    BYI_TRY(byi_candidates_find(d->workloads.work, &d->ctx, d->arena,
                                &d->candidates, err));
    if (!d->candidates.list.n)
        return BYOC_OK;
    BYI_TRY(time_candidates(d, err));
    uint32_t *label =
        byi_arena_calloc(d->arena, d->candidates.list.n, sizeof *label);
    for (uint32_t c = 0; c < d->candidates.list.n; c++)
        label[c] = choose_label(d, c);
    struct byi_assignment *a = byi_assignment_new(d->m, d->by_cost->arena);
    assign_candidates(d, a, label);
    struct cost_trial t = {0};
    enum byoc_status status = revert_slow_regions(d, a, &t, err);
    if (status == BYOC_OK) {
        const uint32_t best = pick_placement(d, a);
        d->backends->assignment = best == GREEDY ? NULL : a;
        note_candidates(d, label);
        if (best == ASSIGNED)
            note_regions(d, &t);
    }
    free_trial(&t);
    return status;
}

/* Check that all backends are plug-ins, since backends that are only patterns
 * run nothing, and that there are not too many. */
static enum byoc_status check_backends(const struct decider *d,
                                       struct byoc_error *err)
{
    for (uint32_t v = 0; v < d->backends->n; v++)
        if (!byi_plugin_of_backend(d->by_cost->found, d->backends->at[v].name))
            return byi_fail(err, BYOC_EINVAL,
                            "backend '%s' consists of patterns only and cannot "
                            "be timed, expected a plug-in; give its path with "
                            "--plugin, or use --partition-by=greedy",
                            d->backends->at[v].name);
    if (d->backends->n > BYI_MAX_COST_BACKENDS)
        return byi_fail(err, BYOC_ELIMIT,
                        "found %u backends to measure, expected at most %d; "
                        "name some with --backend",
                        d->backends->n, BYI_MAX_COST_BACKENDS);
    return BYOC_OK;
}

/* Add notes about times that are unknown or not kept, save the cost table, and
 * free *d. */
static void finish_decider(struct decider *d)
{
    struct byoc_error err;
    const struct byi_meter *meter = &d->workloads.meter;
    d->by_cost->n_timed += d->workloads.n_timed;
    if (d->workloads.n_undecided)
        byi_text_addf(&d->by_cost->notes,
                      "the machine is too busy: the times of %u of %u "
                      "candidates and regions do not tell where they run "
                      "faster; these get their greedy placement; measure "
                      "again\n",
                      d->workloads.n_undecided, d->workloads.n_timed);
    if (meter->no_compiler)
        byi_text_addf(&d->by_cost->notes,
                      "fused groups were timed operator by operator, and the "
                      "times are not kept: %s\n",
                      meter->compiler_error.at);
    else if (byi_cost_table_save(&d->workloads.table, &err) != BYOC_OK)
        byi_text_addf(&d->by_cost->notes, "the cost table is not kept: %s\n",
                      err.text);
    byi_candidates_free(&d->candidates);
    byi_workloads_close(&d->workloads);
    byi_module_free(&d->workloads.work);
    byi_arena_free(&d->arena);
}

enum byoc_status byi_decide_by_measurement(void *by_cost, struct byi_module *m,
                                           struct byi_pass_context *ctx,
                                           struct byoc_error *err)
{
    struct byi_cost_partition *cost = by_cost;
    struct byi_backends *backends = byi_backends_of(ctx);
    if (!backends->n)
        return BYOC_OK;
    struct decider d = {.by_cost = cost,
                        .m = m,
                        .arena = byi_arena_new(),
                        .ctx = *ctx,
                        .backends = backends,
                        .n_labels = 1 + backends->n};
    byi_context_put(&d.ctx, byi_ledger_entry(NULL));
    d.workloads = (struct byi_workloads){
        .work = byi_module_clone(m),
        .backends = backends,
        .ctx = &d.ctx,
        .meter = {.found = cost->found,
                  .ctx = &d.ctx,
                  .threads = cost->threads,
                  .plugins = cost->plugins,
                  .cc = cost->cc,
                  .arena = d.arena},
        .arena = d.arena,
        .by_key.arena = d.arena,
        .deadline = byi_now() + (cost->seconds > 0 ? cost->seconds : 60),
        .progress = cost->progress,
        .progress_ctx = cost->progress_ctx};
    enum byoc_status status = check_backends(&d, err);
    if (status == BYOC_OK)
        status =
            byi_workloads_open(&d.workloads, cost->table, &cost->notes, err);
    if (status == BYOC_OK)
        status = decide(&d, err);
    finish_decider(&d);
    return status;
}
