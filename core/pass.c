/* pass.c: the pass manager: which passes run, in which order, watched by
 * instruments and checked by the verifier.
 */
#include "core.h"

#include <assert.h>
#include <string.h>

enum progress { NOT_YET, RUNNING, DONE };

struct run {
    struct byi_module *m;
    const struct byi_pass *const *passes;
    uint32_t n;
    struct byi_pass_context *ctx;
    enum progress *progress; /* of each pass; a pass listed twice is known by
                                its first place */
    struct byoc_error *err;
};

static bool is_listed(const char *const *names, const char *name)
{
    for (; names && *names; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* The gate: disabled, then required, then opt level. */
static bool passes_gate(const struct byi_pass_context *ctx,
                        const struct byi_pass *pass)
{
    if (is_listed(ctx->disabled, pass->name))
        return false;
    return is_listed(ctx->required, pass->name) ||
           pass->opt_level <= ctx->opt_level;
}

static bool instruments_agree(const struct run *run,
                              const struct byi_pass *pass)
{
    for (uint32_t i = 0; i < run->ctx->n_instruments; i++) {
        const struct byi_instrument *in = &run->ctx->instruments[i];
        if (in->should_run && !in->should_run(in->ctx, pass, run->m))
            return false;
    }
    return true;
}

static enum byoc_status run_funcs(const struct run *run,
                                  const struct byi_pass *pass)
{
    uint32_t n = run->m->funcs.n; /* not those that the pass adds */

    for (uint32_t i = 0; i < n; i++) {
        const struct byi_func *f = run->m->funcs.at[i];
        struct byi_arena *scratch = NULL;
        enum byoc_status status;
        if (f->dead || f->attr.compiler || f->attr.composite)
            continue;
        scratch = byi_arena_new();
        status = pass->run_func(run->m, i, run->ctx, scratch, run->err);
        byi_arena_free(&scratch);
        if (status != BYOC_OK)
            return status;
    }
    return BYOC_OK;
}

static enum byoc_status run_body(const struct run *run,
                                 const struct byi_pass *pass)
{
    struct byi_arena *scratch = NULL;
    enum byoc_status status;

    assert(!pass->run_module != !pass->run_func);
    if (pass->run_func)
        return run_funcs(run, pass);
    scratch = byi_arena_new();
    status = pass->run_module(run->m, run->ctx, scratch, run->err);
    byi_arena_free(&scratch);
    return status;
}

static enum byoc_status check(const struct run *run,
                              const struct byi_pass *pass)
{
    struct byoc_error found = {0};

    if (!run->ctx->verify || byi_verify(run->m, &found) == BYOC_OK)
        return BYOC_OK;
    return byi_fail(run->err, BYOC_EINTERNAL, "%s left a broken module: %.900s",
                    pass->name, found.text);
}

static enum byoc_status run_one(const struct run *run,
                                const struct byi_pass *pass)
{
    const struct byi_pass_context *ctx = run->ctx;
    enum byoc_status status;

    for (uint32_t i = 0; i < ctx->n_instruments; i++)
        if (ctx->instruments[i].before)
            ctx->instruments[i].before(ctx->instruments[i].ctx, pass, run->m);
    status = run_body(run, pass);
    if (status != BYOC_OK) {
        byi_prefix(run->err, "%s", pass->name);
        return status;
    }
    for (uint32_t i = 0; i < ctx->n_instruments; i++)
        if (ctx->instruments[i].after)
            ctx->instruments[i].after(ctx->instruments[i].ctx, pass, run->m);
    return check(run, pass);
}

static uint32_t find_pass(const struct run *run, const char *name)
{
    uint32_t i = 0;

    while (i < run->n && strcmp(run->passes[i]->name, name) != 0)
        i++;
    return i;
}

/* What stands between a pass and something it needs; NULL when nothing. */
static const char *obstacle(const struct run *run, uint32_t need,
                            const char *name)
{
    if (need == run->n)
        return "is not in the list";
    if (run->progress[need] == RUNNING)
        return "needs it in turn";
    if (run->progress[need] == NOT_YET && is_listed(run->ctx->disabled, name))
        return "is disabled; disable both or none";
    return NULL;
}

/* Recursion is as deep as the table of passes has needs of needs. A pass that
 * is needed runs whatever the opt level. */
static enum byoc_status run_with_needs(const struct run *run, uint32_t index)
{
    const struct byi_pass *pass = run->passes[index];
    uint32_t first = find_pass(run, pass->name);

    if (!instruments_agree(run, pass)) {
        run->progress[first] = DONE;
        return BYOC_OK;
    }
    run->progress[first] = RUNNING;
    for (const char *const *name = pass->needs; name && *name; name++) {
        uint32_t need = find_pass(run, *name);
        const char *why = obstacle(run, need, *name);
        if (why)
            return byi_fail(run->err, BYOC_EINVAL, "%s needs %s, which %s",
                            pass->name, *name, why);
        if (run->progress[need] == NOT_YET)
            BYI_TRY(run_with_needs(run, need));
    }
    BYI_TRY(run_one(run, pass));
    run->progress[first] = DONE;
    return BYOC_OK;
}

enum byoc_status byi_run_passes(struct byi_module *m,
                                const struct byi_pass *const *passes,
                                uint32_t n, struct byi_pass_context *ctx,
                                struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct run run = {
        .m = m,
        .passes = passes,
        .n = n,
        .ctx = ctx,
        .progress = byi_arena_calloc(arena, n, sizeof *run.progress),
        .err = err,
    };
    enum byoc_status status = BYOC_OK;

    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        bool ahead = run.progress[i] == DONE; /* ran as a need, before its
                                                 own turn */
        if (!ahead && passes_gate(ctx, passes[i]))
            status = run_with_needs(&run, i);
    }
    byi_arena_free(&arena);
    return status;
}
