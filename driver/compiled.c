/* SPDX-License-Identifier: Apache-2.0 */
/* compiled.c: the API of a compiled model: writes the artifact, loads the model
 * from memory, and reports on it.
 */
#include "compiled.h"

#include "core/base/guard.h"

#include "runtime/internal.h"

#include <string.h>

struct byi_image byi_compiled_image(const struct byoc_compiled *c)
{
    struct byi_image image = byi_built_model_image(&c->built);
    image.machine = c->found.machine;
    image.ledger = c->ledger_json.at;
    image.ledger_bytes = c->ledger_json.n;
    return image;
}

/* --- writing the artifact ------------------------------------------------- */

/* Fail if the compile ended without a plan, as with `passes` or `stop_after`.
 */
static enum byoc_status check_plan(const struct byoc_compiled *c,
                                   struct byoc_error *err)
{
    if (c->built.plan.json.at)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "compiled up to a pass only, so there is no plan to run; "
                    "compile without passes and stop_after");
}

static enum byoc_status keep_file(const struct byoc_compiled *c,
                                  const char *name, const struct byi_text *text,
                                  struct byoc_error *err)
{
    struct byi_file file;
    const char *path = byi_arena_printf(c->arena, "%s/%s", c->keep_c, name);
    BYI_TRY(byi_file_create(path, &file, err));
    if (text->n)
        fwrite(text->at, 1, text->n, file.stream);
    else
        fprintf(file.stream, "/* this model has no fused kernels */\n");
    return byi_file_commit(&file, err);
}

/* Write the C of the fused kernels and of backends to the folder keep_c. */
static enum byoc_status keep_source(const struct byoc_compiled *c,
                                    const struct byi_kernels *kernels,
                                    struct byoc_error *err)
{
    if (!c->keep_c)
        return BYOC_OK;
    BYI_TRY(byi_folder_create(c->keep_c, err));
    for (uint32_t i = 0; i < c->built.n_sources; i++) {
        const struct byi_c_unit *unit = c->built.sources[i];
        BYI_TRY(keep_file(c, byi_arena_printf(c->arena, "%s.c", unit->symbol),
                          &unit->source, err));
    }
    return keep_file(c, "kernels.c", &kernels->source, err);
}

/* Write the artifact, with a plan and manifest for its compiled kernels, which
 * the caller frees. */
static enum byoc_status write_artifact(const struct byoc_compiled *c,
                                       const struct byi_kernels *kernels,
                                       struct byi_plan *plan,
                                       struct byi_text *manifest,
                                       const char *path, struct byoc_error *err)
{
    BYI_TRY(keep_source(c, kernels, err));
    BYI_TRY(byi_built_model_plan(c->m, &c->built, kernels, c->store, c->arena,
                                 plan, err));
    struct byi_image image = byi_compiled_image(c);
    image.plan = plan->json.at;
    image.plan_bytes = plan->json.n;
    image.weights_bytes = plan->weights_bytes;
    image.spans = byi_plan_spans(c->m, plan, c->arena);
    image.n_spans = plan->consts.n;
    image.source = kernels->source.at;
    image.source_bytes = kernels->source.n;
    image.n_kernels = kernels->list.n;
    image.sources = c->built.sources;
    image.n_sources = c->built.n_sources;
    BYI_TRY(byi_built_model_manifest(c->m, &c->found, &image, true, c->arena,
                                     manifest, err));
    image.manifest = manifest->at;
    image.manifest_bytes = manifest->n;
    return byi_artifact_write(path, &image, c->cc, err);
}

enum byoc_status byoc_compiled_write(const struct byoc_compiled *c,
                                     const char *path, struct byoc_error *err)
{
    struct byi_text manifest = {0};
    struct byi_plan plan = {0};
    struct byi_kernels kernels;
    BYI_BORDER(err);
    BYI_TRY(check_plan(c, err));
    byi_kernels_write(c->m, &kernels);
    enum byoc_status status =
        write_artifact(c, &kernels, &plan, &manifest, path, err);
    byi_text_free(&manifest);
    byi_plan_free(&plan);
    byi_kernels_free(&kernels);
    return status;
}

/* --- loading from memory -------------------------------------------------- */

/* Whether the model that try_regions loaded has the parameters `p`. */
static bool fits_preloaded(const struct byoc_compiled *c,
                           const struct byoc_load_params *p)
{
    const bool same_plugins =
        p->plugins && c->preloaded_plugins
            ? strcmp(p->plugins, c->preloaded_plugins) == 0
            : p->plugins == c->preloaded_plugins;
    return c->preloaded && same_plugins && p->threads == c->preloaded_threads &&
           !p->native_only && !p->allocate && !p->memory_bytes &&
           p->runners <= 1 && !p->parallel_for && !p->wait &&
           !p->cache_shapes && !p->cache_bytes;
}

enum byoc_status byoc_compiled_load(struct byoc_compiled *c,
                                    const struct byoc_load_params *params,
                                    struct byoc_model **model,
                                    struct byoc_error *err)
{
    struct byoc_load_params load;
    *model = NULL;
    BYI_BORDER(err);
    BYI_TRY(byi_load_params_read(&load, params, err));
    BYI_TRY(check_plan(c, err));
    if (fits_preloaded(c, &load)) {
        *model = c->preloaded;
        c->preloaded = NULL;
        byoc_internal_model_adopt(*model, &load);
        return BYOC_OK;
    }
    BYI_TRY(byi_built_model_map(&c->built, err));
    const struct byi_image image = byi_compiled_image(c);
    return byoc_internal_model_open(&image, &load, model, err);
}

/* --- reports -------------------------------------------------------------- */

const char *byoc_compiled_verdict(const struct byoc_compiled *c)
{
    return c->verdict;
}

const struct byi_module *byi_compiled_module(const struct byoc_compiled *c)
{
    return c->m;
}

const struct byi_coverage *byi_compiled_coverage(const struct byoc_compiled *c)
{
    return &c->coverage;
}

const char *byoc_compiled_ledger(const struct byoc_compiled *c)
{
    return c->ledger_json.at;
}

const char *byoc_compiled_ir(struct byoc_compiled *c)
{
    struct byi_text ir = {0};
    BYI_BORDER_ELSE(NULL);
    if (!c->ir.at) {
        byi_print_module(c->m, &ir, NULL);
        c->ir = ir;
    }
    return c->ir.at;
}

const char *byoc_compiled_warnings(const struct byoc_compiled *c)
{
    return c->warnings.n ? c->warnings.at : "";
}

uint32_t byoc_compiled_timed(const struct byoc_compiled *c)
{
    return c->by_cost.n_timed;
}

const char *byoc_compiled_times(struct byoc_compiled *c)
{
    struct byi_text times = {0};
    BYI_BORDER_ELSE(NULL);
    if (!c->times.at) {
        byi_timing_print(&c->timing, &times);
        c->times = times;
    }
    return c->times.at;
}

enum byoc_status byoc_compiled_consts(const struct byoc_compiled *c,
                                      const char *path, struct byoc_error *err)
{
    struct byi_text text = {0};
    struct byi_file file;
    BYI_BORDER(err);
    BYI_TRY(byi_file_create(path, &file, err));
    byi_print_module(c->m, &text, file.stream);
    byi_text_free(&text);
    return byi_file_commit(&file, err);
}

void byoc_compiled_free(struct byoc_compiled **compiled)
{
    struct byoc_compiled *c = *compiled;
    if (!c)
        return;
    *compiled = NULL;
    byoc_model_free(&c->preloaded);
    byi_built_model_free(&c->built);
    byi_text_free(&c->by_cost.notes);
    byi_text_free(&c->ledger_json);
    byi_text_free(&c->ir);
    byi_text_free(&c->times);
    byi_text_free(&c->warnings);
    byi_timing_free(&c->timing);
    byi_vec_free(c->pass_list.passes.at);
    byi_narrow_list_free(&c->narrowing);
    byi_found_backends_free(&c->found);
    byi_ledger_free(&c->ledger);
    byi_module_free(&c->m);
    struct byi_arena *arena = c->arena;
    byi_arena_free(&arena);
}
