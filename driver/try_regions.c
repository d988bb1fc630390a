/* SPDX-License-Identifier: Apache-2.0 */
/* try_regions.c: loads the image of a compile, to find the regions that their
 * backend cannot build. Probes see one composite at a time; only loading shows
 * combinations that a backend cannot build. */
#include "compiled.h"

#include "runtime/internal.h"
#include "runtime_native/native.h"

/* Load every region, in the child of an isolated compile. Meanwhile
 * byi_child_step() records the backend, so that a crash is attributed to it. */
static enum byoc_status try_isolated(struct byoc_compiled *c,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < c->built.regions.n; i++) {
        struct byi_built_region *r = &c->built.regions.at[i];
        const struct byi_func *f = c->m->funcs.at[r->func];
        const struct byi_plugin *plugin =
            byi_plugin_of_backend(&c->found, f->attr.compiler);
        if (!plugin || r->fault)
            continue;
        if (r->varies)
            BYI_TRY(byi_try_region(c->m, r->func, &c->found, c->arena,
                                   &r->fault, err));
        else
            BYI_TRY(byi_load_region(c->m, &c->found, c->arena, r, err));
        r->reason = BYI_REASON_NOT_BUILT;
        if (r->fault) /* worded as when the runtime loads a model */
            r->fault =
                byi_arena_printf(c->arena, "%s: %s: %s", plugin->backend->name,
                                 f->name, r->fault);
    }
    return BYOC_OK;
}

/* Ask the runtime which regions with symbolic dims it could specialise, for the
 * sizes of --warm, otherwise for one sample size of each symbol. A region that
 * the runtime refuses gets a fault, and is not counted as offloaded. Sets
 * *accepted if the model accepts some of the sizes. */
static enum byoc_status ask_runtime(struct byoc_compiled *c,
                                    const struct byoc_model *model,
                                    bool *accepted, struct byoc_error *err)
{
    const uint32_t n = c->built.regions.n;
    const struct byi_pass_context ctx = {.eval = byi_kernel_eval,
                                         .sizes = &c->found.sizes};
    const char **faults = byi_arena_calloc(c->arena, n, sizeof *faults);
    struct byi_warm_set sample = {0};
    struct byi_warm sets = c->found.warm;
    struct byoc_error why;
    bool any_varies = false;
    for (uint32_t i = 0; i < n; i++)
        any_varies = any_varies || c->built.regions.at[i].varies;
    if (any_varies && sets.n == 0) {
        sample.n = byi_sample_dims(byi_samples_new(c->m, &ctx, c->arena),
                                   &sample.dims);
        sets = (struct byi_warm){.n = sample.n > 0, .at = &sample};
    }
    for (uint32_t s = 0; any_varies && s < sets.n; s++) {
        const enum byoc_status status = byoc_internal_region_faults(
            model, sets.at[s].dims, sets.at[s].n, c->arena, faults, &why);
        if (status == BYOC_ENOMEM)
            return byi_fail(err, status, "%s", why.text);
        *accepted = *accepted || status == BYOC_OK;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct byi_built_region *r = &c->built.regions.at[i];
        const struct byi_plugin *plugin = byi_plugin_of_backend(
            &c->found, c->m->funcs.at[r->func]->attr.compiler);
        if (!r->varies || r->fault || !faults[i] || !plugin)
            continue;
        r->fault = faults[i];
        r->reason = BYI_REASON_NOT_BUILT;
    }
    return BYOC_OK;
}

/* A region of the model that byi_try_regions loaded. */
struct preloaded_region {
    const struct byoc_model *model;
    uint32_t region;
};

static void describe_preloaded(const void *ctx, byoc_trace_fn say, void *to)
{
    const struct preloaded_region *at = ctx;
    byoc_internal_region_describe(at->model, at->region, say, to);
}

enum byoc_status byi_try_regions(struct byoc_compiled *c,
                                 const struct byoc_compile_params *params,
                                 struct byoc_error *err)
{
    const struct byoc_load_params load = {.threads = params->threads,
                                          .plugins = params->plugins,
                                          .native_only = c->found.isolated};
    const struct byi_image image = byi_compiled_image(c);
    struct byoc_model *model = NULL;
    if (!c->built.regions.n)
        return BYOC_OK;
    BYI_TRY(byoc_internal_model_open(&image, &load, &model, err));
    c->preloaded = model;
    bool accepted = false;
    enum byoc_status status = ask_runtime(c, model, &accepted, err);
    if (c->found.isolated || status != BYOC_OK) {
        byoc_model_free(&c->preloaded);
        return status == BYOC_OK ? try_isolated(c, err) : status;
    }
    bool all_load = true;
    for (uint32_t i = 0; i < c->built.regions.n && status == BYOC_OK; i++) {
        struct byi_built_region *r = &c->built.regions.at[i];
        const char *fault = byoc_internal_region_fault(model, i);
        all_load =
            all_load && !fault && !r->fault; /* compile() may have refused */
        const struct byi_plugin *plugin = byi_plugin_of_backend(
            &c->found, c->m->funcs.at[r->func]->attr.compiler);
        if (!plugin || r->fault)
            continue; /* backends without a plug-in are never loaded */
        r->reason = BYI_REASON_NOT_BUILT;
        if (fault)
            r->fault = byi_arena_str(c->arena, fault);
        else if (r->varies && !accepted)
            status = byi_try_region(c->m, r->func, &c->found, c->arena,
                                    &r->fault, err);
        else if (!r->varies)
            status =
                byi_describe_region(r, c->arena, describe_preloaded,
                                    &(struct preloaded_region){model, i}, err);
        all_load = all_load && !r->fault;
    }
    if (!all_load || status != BYOC_OK)
        byoc_model_free(&c->preloaded);
    c->preloaded_threads = params->threads;
    c->preloaded_plugins =
        params->plugins ? byi_arena_str(c->arena, params->plugins) : NULL;
    return status;
}
