/* SPDX-License-Identifier: Apache-2.0 */
/* by_estimate.c: assigns each candidate that several backends can run to the
 * backend whose cost() is lowest. Runs no kernels.
 */
#include "by_cost.h"

#include "measure.h"

#include "core/base/child.h"
#include "partition/cost.h"

#include <math.h>

/* The state of byi_decide_by_estimate. */
struct estimator {
    struct byi_cost_partition *by_cost;
    struct byi_backends *backends;
    struct byi_pass_context ctx;
    struct byi_module *work; /* a clone, on which backends match */
    struct byi_meter meter;
    struct byi_arena *arena;
    struct byi_candidates candidates;
};

/* Returns the backend's estimate for function `func` of m, one of its regions,
 * in microseconds; NAN if it has no estimate. */
static double estimate_function(struct estimator *e,
                                const struct byi_backend *backend,
                                const struct byi_module *m, uint32_t func)
{
    struct byi_text json = {0};
    struct byoc_error err;
    uint32_t *consts = NULL, n = 0;
    double us = (double)NAN;
    if (byi_region_write(m, func, e->arena, &json, &consts, &n, &err) ==
        BYOC_OK) {
        const struct byoc_region region = {
            .struct_size = sizeof region,
            .n_consts = n,
            .json = json.at,
            .json_bytes = json.n,
            .consts = byi_const_views(m, consts, n, e->arena)};
        uint64_t ns = 0;
        byi_child_step(backend->name, "cost()");
        struct byoc_fail *fail =
            backend->api->cost(backend->host, &region, &ns);
        byi_child_step_end();
        if (fail)
            backend->host->fail_free(fail);
        else
            us = 1e-3 * (double)ns;
    }
    byi_text_free(&json);
    return us;
}

/* Whether backends run all operators of main. */
static bool is_offloaded(const struct byi_module *m)
{
    const struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_CALL_OP || node->kind == BYI_IF)
            return false;
        if (node->kind != BYI_CALL)
            continue;
        const struct byi_node *called = &f->nodes.at[node->args[0]];
        if (called->kind != BYI_GLOBAL ||
            !m->funcs.at[called->index]->attr.compiler)
            return false;
    }
    return true;
}

/* Returns the backend's estimate for a candidate as a separate model, in
 * microseconds. Returns NAN if the backend has no estimate or cannot run the
 * whole candidate. */
static double estimate_candidate(struct estimator *e,
                                 const struct byi_candidate *candidate,
                                 struct byi_backend *backend)
{
    struct byi_backends only = {.n = 1,
                                .at = backend,
                                .forbid_ref = e->backends->forbid_ref,
                                .keep_nan = e->backends->keep_nan,
                                .exact = e->backends->exact,
                                .cache = e->backends->cache};
    const struct byi_subgraph subgraph = {candidate->func, candidate->n,
                                          candidate->at};
    struct byi_module *alone = byi_module_new();
    struct byoc_error err;
    double us = (double)NAN;
    if (backend->api->cost &&
        byi_subgraph_add(e->work, &subgraph, alone, "main", &err) == BYOC_OK &&
        byi_meter_passes(&e->meter, alone, &only, &err) == BYOC_OK &&
        is_offloaded(alone)) {
        us = 0;
        for (uint32_t i = 0; i < alone->funcs.n; i++)
            if (!alone->funcs.at[i]->dead && alone->funcs.at[i]->attr.compiler)
                us += estimate_function(e, backend, alone, i);
    }
    byi_module_free(&alone);
    return us;
}

/* Assign a candidate that several backends can run to the backend with the
 * lowest estimate. If the first of them has no estimate, it keeps the
 * candidate, since nothing can be compared with it. */
static void assign_candidate(struct estimator *e,
                             const struct byi_candidate *candidate,
                             struct byi_assignment *a)
{
    struct byi_text estimates = {0};
    const char *best = NULL;
    double lowest_us = (double)NAN;
    uint32_t n = 0;
    for (uint32_t v = 0; v < e->backends->n; v++) {
        if (!(candidate->backends >> v & 1))
            continue;
        const double us = estimate_candidate(e, candidate, &e->backends->at[v]);
        byi_text_addf(&estimates, "%s%s ", n++ ? ", " : "",
                      e->backends->at[v].name);
        byi_text_addf(&estimates, isnan(us) ? "has no estimate" : "%.1f us",
                      us);
        if (!best || us < lowest_us) {
            best = e->backends->at[v].name;
            lowest_us = us;
        }
    }
    const char *why = byi_arena_printf(e->by_cost->arena, "estimated: %s",
                                       estimates.n ? estimates.at : "");
    for (uint32_t i = 0; n > 1 && i < candidate->n; i++)
        byi_assign(a, candidate->func, candidate->at[i], best, why);
    byi_text_free(&estimates);
}

enum byoc_status byi_decide_by_estimate(void *by_cost, struct byi_module *m,
                                        struct byi_pass_context *ctx,
                                        struct byoc_error *err)
{
    struct byi_cost_partition *cost = by_cost;
    struct byi_backends *backends = byi_backends_of(ctx);
    if (backends->n < 2)
        return BYOC_OK;
    if (backends->n > BYI_MAX_COST_BACKENDS)
        return byi_fail(err, BYOC_ELIMIT,
                        "found %u backends to ask, expected at most %d; name "
                        "some with --backend",
                        backends->n, BYI_MAX_COST_BACKENDS);
    struct estimator e = {.by_cost = cost,
                          .backends = backends,
                          .ctx = *ctx,
                          .work = byi_module_clone(m),
                          .arena = byi_arena_new()};
    byi_context_put(&e.ctx, byi_ledger_entry(NULL));
    e.meter = (struct byi_meter){
        .found = cost->found, .ctx = &e.ctx, .arena = e.arena};
    const enum byoc_status status =
        byi_candidates_find(e.work, &e.ctx, e.arena, &e.candidates, err);
    if (status == BYOC_OK) {
        struct byi_assignment *a = byi_assignment_new(m, cost->arena);
        for (uint32_t u = 0; u < e.candidates.list.n; u++)
            assign_candidate(&e, &e.candidates.list.at[u], a);
        backends->assignment = a;
    }
    byi_candidates_free(&e.candidates);
    byi_module_free(&e.work);
    byi_arena_free(&e.arena);
    return status;
}
