/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c: the pass manager: runs passes in order, with instruments and the
 * verifier. A list of passes and every sequence in it are run in the same way.
 * It records which passes ran in this call, so that needs run only once.
 */
#include "pass.h"

#include <assert.h>
#include <string.h>

enum progress { NOT_YET, RUNNING, DONE };

/* The record of a pass in this call. */
struct pass_record {
    const struct byi_pass *pass;
    enum progress progress;
    bool ahead; /* ran as a need, before its place in the list */
};

/* A call of byi_run_passes. */
struct pass_run {
    struct byi_module *m;
    struct byi_pass_context *ctx;
    struct byi_arena *scratch; /* reset after each pass and function */
    const struct byi_pass *const *list;
    uint32_t n;
    BYI_VEC(struct pass_record) records;
    bool stopped; /* ctx->stop_after ran */
    struct byoc_error *err;
};

static bool is_listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The record of the pass, which is added if new. It is valid until the next
 * call. */
static struct pass_record *record_of(struct pass_run *run,
                                     const struct byi_pass *pass)
{
    for (uint32_t i = 0; i < run->records.n; i++)
        if (run->records.at[i].pass == pass)
            return &run->records.at[i];
    struct pass_record new_record = {.pass = pass};
    BYI_PUSH(&run->records, new_record);
    return &run->records.at[run->records.n - 1];
}

static const struct byoc_module *as_module(const struct pass_run *run)
{
    return (const struct byoc_module *)run->m;
}

/* --- whether a pass runs -------------------------------------------------- */

static bool instruments_agree(const struct pass_run *run,
                              const struct byi_pass *pass)
{
    for (uint32_t i = 0; i < run->ctx->n_instruments; i++) {
        const struct byoc_instrument *in = &run->ctx->instruments[i];
        if (in->should_run &&
            !in->should_run(in->ctx, pass->name, as_module(run)))
            return false;
    }
    return true;
}

/* Whether a pass at its place in a list runs. Checks disabled, then required,
 * then opt level, then the instruments. */
static bool is_enabled(const struct pass_run *run, const struct byi_pass *pass)
{
    if (is_listed(run->ctx->disabled, pass->name))
        return false;
    return is_listed(run->ctx->required, pass->name) ||
           (pass->opt_level <= run->ctx->opt_level &&
            instruments_agree(run, pass));
}

/* --- one pass ------------------------------------------------------------- */

/* A function in a depth-first search over references. */
struct descent {
    uint32_t func;
    byi_id at; /* the next node to visit */
};

/* Order the functions with callees before callers, except in recursion: if a
 * pass refines a function's result type, its callers see that. */
static uint32_t *callees_first(const struct byi_module *m,
                               struct byi_arena *arena)
{
    uint32_t *order = byi_arena_calloc(arena, m->funcs.n, sizeof *order);
    bool *seen = byi_arena_calloc(arena, m->funcs.n, sizeof *seen);
    struct descent *stack = byi_arena_calloc(arena, m->funcs.n, sizeof *stack);
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->funcs.n; i++) {
        uint32_t depth = 0;
        if (!seen[i])
            stack[depth++] = (struct descent){.func = i};
        seen[i] = true;
        while (depth > 0) {
            struct descent *top = &stack[depth - 1];
            const struct byi_func *f = m->funcs.at[top->func];
            if (top->at == f->nodes.n || !f->refers) {
                order[n++] = top->func;
                depth--;
                continue;
            }
            const struct byi_node *node = &f->nodes.at[top->at++];
            if (!byi_node_refers(node) || seen[node->index])
                continue;
            seen[node->index] = true;
            stack[depth++] = (struct descent){.func = node->index};
        }
    }
    assert(n == m->funcs.n);
    return order;
}

/* Whether function passes work on f. */
static bool works_on(const struct byi_func *f)
{
    return !f->dead && !byi_is_closed(f);
}

/* List the functions that a pass works on, and maybe others; returns their
 * number. Usually that is one function among very many composites, which needs
 * no order. */
static uint32_t order_funcs(struct byi_module *m, struct byi_arena *arena,
                            const uint32_t **order)
{
    uint32_t n_open = 0, n = 0;
    const uint32_t *open = byi_open_funcs(m, &n_open);
    uint32_t *open_func = byi_arena_calloc(arena, 1, sizeof *open_func);

    for (uint32_t i = 0; i < n_open && n < 2; i++) {
        if (!works_on(m->funcs.at[open[i]]))
            continue;
        *open_func = open[i];
        n++;
    }
    *order = n < 2 ? open_func : callees_first(m, arena);
    return n < 2 ? n : m->funcs.n;
}

/* Prefetch the nodes of the next functions, which are scattered in memory. */
static void fetch_ahead(const struct byi_module *m, const uint32_t *order,
                        uint32_t i, uint32_t n)
{
    /* how many functions ahead the struct and its nodes are fetched */
    enum { HEAD = 16, NODES = 8 };

    if (i + HEAD < n)
        __builtin_prefetch(m->funcs.at[order[i + HEAD]]);
    if (i + NODES < n)
        __builtin_prefetch(m->funcs.at[order[i + NODES]]->nodes.at, 1);
}

static enum byoc_status run_funcs(const struct pass_run *run,
                                  const struct byi_pass *pass)
{
    struct byi_arena *arena = byi_arena_new();
    const uint32_t *order = NULL;
    /* without the functions that the pass adds */
    const uint32_t n = order_funcs(run->m, arena, &order);
    enum byoc_status status = BYOC_OK;

    if (n > 0 && pass->prepare)
        status = pass->prepare(pass, &run->ctx->prepared, run->err);
    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        fetch_ahead(run->m, order, i, n);
        if (!works_on(run->m->funcs.at[order[i]]))
            continue;
        status =
            pass->run_func(run->m, order[i], run->ctx, run->scratch, run->err);
        byi_arena_reset(run->scratch);
    }
    run->ctx->prepared = NULL;
    byi_arena_free(&arena);
    return status;
}

static enum byoc_status run_members(struct pass_run *run,
                                    const struct byi_pass *sequence);

static enum byoc_status run_body(struct pass_run *run,
                                 const struct byi_pass *pass)
{
    enum byoc_status status;

    assert(!!pass->run_module + !!pass->run_func + !!pass->sequence == 1);
    if (pass->sequence)
        return run_members(run, pass);
    run->ctx->pass = pass;
    if (pass->run_func)
        return run_funcs(run, pass);
    status = pass->run_module(run->m, run->ctx, run->scratch, run->err);
    byi_arena_reset(run->scratch);
    return status;
}

/* Run the verifier, if the caller requested it, after a pass. */
static enum byoc_status verify_after(const struct pass_run *run,
                                     const struct byi_pass *pass)
{
    struct byoc_error found = {0};

    if (!run->ctx->verify || pass->sequence ||
        byi_verify(run->m, &found) == BYOC_OK)
        return BYOC_OK;
    return byi_fail(run->err, BYOC_EINTERNAL, "%s left a broken module: %.900s",
                    pass->name, found.text);
}

/* Run the pass between the hooks of the instruments. */
static enum byoc_status run_watched(struct pass_run *run,
                                    const struct byi_pass *pass)
{
    const struct byi_pass_context *ctx = run->ctx;
    enum byoc_status status;

    for (uint32_t i = 0; i < ctx->n_instruments; i++) {
        const struct byoc_instrument *in = &ctx->instruments[i];
        if (in->before)
            BYI_TRY(in->before(in->ctx, pass->name, as_module(run), run->err));
    }
    status = run_body(run, pass);
    if (status != BYOC_OK) {
        byi_prefix(run->err, "%s", pass->name);
        return status;
    }
    BYI_TRY(verify_after(run, pass));
    for (uint32_t i = 0; i < ctx->n_instruments; i++) {
        const struct byoc_instrument *in = &ctx->instruments[i];
        if (in->after)
            BYI_TRY(in->after(in->ctx, pass->name, as_module(run), run->err));
    }
    return BYOC_OK;
}

/* --- needs ---------------------------------------------------------------- */

static const struct byi_pass *find_pass(const struct byi_pass *const *passes,
                                        uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n && passes[i]; i++)
        if (strcmp(passes[i]->name, name) == 0)
            return passes[i];
    return NULL;
}

static const struct byi_pass *find_need(const struct pass_run *run,
                                        const char *name)
{
    const struct byi_pass *need = find_pass(run->list, run->n, name);

    if (!need && run->ctx->known)
        need = find_pass(run->ctx->known, UINT32_MAX, name);
    return need;
}

/* Why a needed pass cannot run, as the end of a message; NULL: it can run. */
static const char *obstacle(struct pass_run *run, const struct byi_pass *need,
                            const char *name)
{
    if (!need)
        return "is not in the list";
    if (record_of(run, need)->progress == RUNNING)
        return "needs it in turn";
    if (record_of(run, need)->progress == NOT_YET &&
        is_listed(run->ctx->disabled, name))
        return "is disabled; disable both or none";
    return NULL;
}

/* The depth of recursion is bounded by the nesting of needs and sequences in
 * the table of passes. A needed pass runs at any level. */
static enum byoc_status run_with_needs(struct pass_run *run,
                                       const struct byi_pass *pass)
{
    record_of(run, pass)->progress = RUNNING;
    for (const char *const *name = pass->needs; name && *name; name++) {
        const struct byi_pass *need = find_need(run, *name);
        const char *why = obstacle(run, need, *name);
        if (why)
            return byi_fail(run->err, BYOC_EINVAL, "%s needs %s, which %s",
                            pass->name, *name, why);
        if (record_of(run, need)->progress == DONE)
            continue;
        BYI_TRY(run_with_needs(run, need));
        record_of(run, need)->ahead = true;
    }
    BYI_TRY(run_watched(run, pass));
    record_of(run, pass)->progress = DONE;
    run->stopped = run->stopped || (run->ctx->stop_after &&
                                    !strcmp(pass->name, run->ctx->stop_after));
    for (const char *const *name = pass->breaks; name && *name; name++)
        for (uint32_t i = 0; i < run->records.n; i++)
            if (strcmp(run->records.at[i].pass->name, *name) == 0)
                run->records.at[i].progress = NOT_YET;
    return BYOC_OK;
}

/* --- lists of passes ------------------------------------------------------ */

/* Run the pass at its place in a list, unless it has run ahead of it. If
 * `may_skip` is set, skip a pass that is not enabled. */
static enum byoc_status run_listed(struct pass_run *run,
                                   const struct byi_pass *pass, bool may_skip)
{
    struct pass_record *record = record_of(run, pass);
    bool ran_early = record->ahead && record->progress == DONE;

    record->ahead = false;
    if (ran_early || run->stopped || (may_skip && !is_enabled(run, pass)))
        return BYOC_OK;
    return run_with_needs(run, pass);
}

static enum byoc_status run_members(struct pass_run *run,
                                    const struct byi_pass *sequence)
{
    for (uint32_t i = 0; sequence->sequence[i]; i++)
        BYI_TRY(run_listed(run, sequence->sequence[i], true));
    return BYOC_OK;
}

static enum byoc_status run_list(struct pass_run *run)
{
    for (uint32_t i = 0; i < run->n; i++)
        BYI_TRY(run_listed(run, run->list[i], !run->ctx->runs_all));
    return BYOC_OK;
}

enum byoc_status byi_run_passes(struct byi_module *m,
                                const struct byi_pass *const *passes,
                                uint32_t n, struct byi_pass_context *ctx,
                                struct byoc_error *err)
{
    struct byoc_error unread = {0};
    struct pass_run run = {
        .m = m, .ctx = ctx, .list = passes, .n = n, .err = err ? err : &unread};
    uint32_t entered = 0;
    enum byoc_status status = byi_options_check(passes, n, ctx, run.err);

    while (status == BYOC_OK && entered < ctx->n_instruments) {
        const struct byoc_instrument *in = &ctx->instruments[entered];
        if (in->enter)
            status = in->enter(in->ctx, run.err);
        entered += status == BYOC_OK;
    }
    run.scratch = byi_arena_new();
    if (status == BYOC_OK)
        status = run_list(&run);
    byi_arena_free(&run.scratch);
    for (uint32_t i = 0; i < entered; i++)
        if (ctx->instruments[i].exit)
            ctx->instruments[i].exit(ctx->instruments[i].ctx);
    byi_vec_free(run.records.at);
    ctx->pass = NULL;
    return status;
}

void *byi_context_find(const struct byi_pass_context *ctx,
                       const struct byi_context_key *key)
{
    for (uint32_t i = 0; i < BYI_CONTEXT_ENTRIES && ctx->entries[i].key; i++)
        if (ctx->entries[i].key == key)
            return ctx->entries[i].value;
    return NULL;
}

void byi_context_put(struct byi_pass_context *ctx,
                     struct byi_context_entry entry)
{
    uint32_t i = 0;

    while (ctx->entries[i].key && ctx->entries[i].key != entry.key) {
        i++;
        assert(i < BYI_CONTEXT_ENTRIES);
    }
    ctx->entries[i] = entry;
}
