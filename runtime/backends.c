/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c: opens the plug-ins of a model's backends, and lets them build its
 * regions. Native twins run the regions that a backend cannot run
 * here, with a warning.
 */
#include "plan.h"
#include "core/base/row_codes.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/guard.h"

/* --- warnings ----------------------------------------------------------- */

/* Logs the warning even if there is no memory to keep it. Never fails, since
 * callers may be between opening a plug-in and adding it to the model's list.
 */
void byi_model_warn(struct byoc_model *model, const char *text)
{
    struct byi_guard guard;
    if (!byi_guard_enter(&guard))
        byi_text_addf(&model->warnings, "%s\n", text);
    byi_guard_leave(&guard);
    byi_log(&model->log, BYOC_WARNING, "%s", text);
}

void byi_model_log_plugin(const struct byoc_model *model,
                          const struct byi_plugin *plugin)
{
    byi_log(&model->log, BYOC_INFO, "backend %s %s from %s",
            plugin->backend->name, plugin->backend->version, plugin->path);
}

/* --- plug-ins ------------------------------------------------------------- */

/* The manifest's record of backend `name`; NULL if it has none. */
static const struct byi_image_backend *find_backend(
    const struct byi_image_manifest *manifest, const char *name)
{
    for (uint32_t i = 0; i < manifest->n_backends; i++)
        if (strcmp(manifest->backends[i].name, name) == 0)
            return &manifest->backends[i];
    return NULL;
}

/* Fail unless this backend can run code that was compiled with `compat`. Warn
 * if compiling again would make the code faster. */
static enum byoc_status check_compat(struct byoc_model *model,
                                     const struct byi_plugin *p,
                                     const char *compat, struct byoc_error *err)
{
    const struct byoc_backend *b = p->backend;
    if (!b->check_compat) {
        if (strcmp(compat, b->compat) == 0)
            return BYOC_OK;
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: found code for \"%.80s\", expected \"%.80s\"; "
                        "compile the model again",
                        b->name, compat, b->compat);
    }
    struct byoc_fail *fail = b->check_compat(&p->host, compat);
    if (!fail || p->host.fail_code(fail) != BYOC_FAIL_STALE)
        return byi_plugin_status(fail, p, "check_compat", err);
    char text[1200];
    snprintf(text, sizeof text, "%s: %s; compile the model again", b->name,
             p->host.fail_text(fail));
    p->host.fail_free(fail);
    byi_model_warn(model, text);
    return BYOC_OK;
}

/* Open the backend's plug-in, and check that it accepts the artifact. */
static enum byoc_status open_backend(struct byoc_model *model,
                                     const struct byoc_load_params *params,
                                     const struct byi_image_manifest *manifest,
                                     const char *name,
                                     struct byi_plugin **plugin,
                                     struct byoc_error *err)
{
    BYI_TRY(byoc_internal_plugin_find(params->plugins, name, model->threads,
                                      plugin, err));
    struct byi_plugin *p = *plugin;
    p->log = model->log;
    p->memory = model->memory;
    const struct byi_image_backend *record = find_backend(manifest, name);
    enum byoc_status status = BYOC_OK;
    if (!record)
        status = byi_fail(err, BYOC_EPARSE,
                          "manifest.backends: found no \"%.40s\", expected "
                          "every backend whose regions the plan has; compile "
                          "the model again",
                          name);
    else
        status = check_compat(model, p, record->compat, err);
    if (status != BYOC_OK)
        byoc_internal_plugin_close(plugin);
    return status;
}

/* The constants that the backend receives while it loads a region. */
struct lent_consts {
    struct byoc_region_codes codes; /* passed as the region's extension */
    const struct byoc_model *model;
    const struct byi_region_row *entry;
};

/* Implements byoc_region_codes.widen. */
static const void *widen(void *ctx, uint32_t index)
{
    const struct lent_consts *consts = ctx;
    struct byoc_error err;
    if (index >= consts->entry->n_consts ||
        byi_consts_widen(consts->model, &consts->entry->consts[index], 1,
                         &err) != BYOC_OK)
        return NULL;
    return byi_const_data(consts->model, consts->entry->consts[index]);
}

/* Make the extension through which the backend reads the int8 codes of the
 * constants that are stored as codes. */
static const struct byoc_ext *lend_codes(const struct byoc_model *model,
                                         const struct byi_region_row *entry,
                                         struct byi_arena *arena)
{
    struct lent_consts *consts = byi_arena_alloc(arena, sizeof *consts);
    struct byoc_codes *at =
        byi_arena_calloc(arena, entry->n_consts + 1u, sizeof *at);
    for (uint32_t k = 0; k < entry->n_consts; k++) {
        struct byi_row_codes c;
        if (byi_const_get_codes(&model->plan->consts[entry->consts[k]], &c))
            at[k] = (struct byoc_codes){.at = c.codes,
                                        .scales = c.scales,
                                        .rows = (uint64_t)c.rows,
                                        .transposed = c.transposed};
    }
    *consts =
        (struct lent_consts){.codes = {.head = {.type = BYOC_EXT_CODES,
                                                .size = sizeof consts->codes},
                                       .at = at,
                                       .ctx = consts,
                                       .widen = widen},
                             .model = model,
                             .entry = entry};
    return &consts->codes.head;
}

/* Widen the region's constants that are stored narrow, except int8 constants if
 * the backend reads their codes. */
static enum byoc_status widen_consts(const struct byoc_model *model,
                                     const struct byi_region_row *entry,
                                     bool reads_codes, struct byoc_error *err)
{
    uint32_t *list = byi_alloc(entry->n_consts + 1u, sizeof *list), n = 0;
    if (!list)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for %u constants",
                        entry->n_consts);
    for (uint32_t k = 0; k < entry->n_consts; k++)
        if (!reads_codes ||
            model->plan->consts[entry->consts[k]].stored != BYOC_I8)
            list[n++] = entry->consts[k];
    const enum byoc_status status = byi_consts_widen(model, list, n, err);
    free(list);
    return status;
}

enum byoc_status byi_region_consts(const struct byoc_model *model,
                                   const struct byi_region_row *entry,
                                   const struct byi_plugin *plugin,
                                   struct byi_arena *arena,
                                   struct byi_region_consts *consts,
                                   struct byoc_error *err)
{
    const bool codes =
        plugin && plugin->backend->flags & BYOC_BACKEND_READS_CODES;
    struct byoc_view *at =
        byi_arena_calloc(arena, entry->n_consts + 1u, sizeof *at);
    BYI_TRY(widen_consts(model, entry, codes, err));
    for (uint32_t k = 0; k < entry->n_consts; k++) {
        const struct byi_tensor *t =
            &model->plan->consts[entry->consts[k]].view;
        at[k] =
            (struct byoc_view){.dtype = t->dtype,
                               .rank = t->rank,
                               .dims = t->dims,
                               .data = byi_const_data(model, entry->consts[k]),
                               .bytes = byi_tensor_bytes(t)};
    }
    *consts = (struct byi_region_consts){
        entry->n_consts, at, codes ? lend_codes(model, entry, arena) : NULL};
    return BYOC_OK;
}

/* Call the backend's load() with the blob in `source`, and set the region's
 * plug-in and result of load(). */
static enum byoc_status load_blob(const struct byi_plugin *plugin,
                                  const char *symbol,
                                  const struct byoc_region *source,
                                  struct byi_region *region,
                                  struct byoc_error *err)
{
    void *compiled = NULL;
    struct byoc_fail *fail =
        byoc_internal_plugin_load(plugin, source, &compiled);
    BYI_TRY(byi_plugin_status(fail, plugin, symbol, err));
    region->plugin = plugin;
    region->compiled = compiled;
    return BYOC_OK;
}

/* If a backend uses the process's OpenMP library, let that library's threads
 * run all parallel regions: workers that spin would compete with them. */
static void choose_openmp(struct byoc_model *model)
{
    for (uint32_t i = 0; i < model->plan->n_regions; i++) {
        const struct byi_plugin *plugin = model->base.regions[i].plugin;
        if (plugin && plugin->openmp)
            model->parallelism.openmp = plugin->openmp;
    }
}

enum byoc_status byi_region_load(const struct byi_plugin *plugin,
                                 const char *symbol,
                                 const struct byi_region_consts *consts,
                                 const char *json, size_t n,
                                 struct byi_region *region,
                                 struct byoc_error *err)
{
    struct byoc_region source = {.struct_size = sizeof source,
                                 .n_consts = consts->n,
                                 .json = json,
                                 .json_bytes = n,
                                 .consts = consts->at,
                                 .ext = consts->ext};
    struct byoc_blob blob;
    if (!plugin->backend->compile)
        return load_blob(plugin, symbol, &source, region, err);
    BYI_TRY(
        byi_plugin_status(byoc_internal_plugin_compile(plugin, &source, &blob),
                          plugin, symbol, err));
    source.json = blob.data;
    source.json_bytes = blob.bytes;
    enum byoc_status status =
        blob.kind == BYOC_BLOB_DATA
            ? load_blob(plugin, symbol, &source, region, err)
            : byi_fail(err, BYOC_EUNSUPPORTED,
                       "%s: the backend's compile() returned C for new sizes, "
                       "expected data, since a run cannot build C",
                       symbol);
    plugin->host.release(plugin->host.ctx, blob.data);
    return status;
}

/* Load a region whose dims are numbers. A region with symbolic dims has JSON as
 * its blob, which is specialised when a run has set the sizes. */
static enum byoc_status load_region(struct byoc_model *model, uint32_t i,
                                    const struct byi_plugin *plugin,
                                    struct byoc_error *err)
{
    const struct byi_region_row *entry = &model->plan->regions[i];
    if (entry->varies) {
        model->base.regions[i].plugin = plugin;
        return BYOC_OK;
    }
    if (entry->code && !model->functions[i])
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: found code for instruction sets that this machine "
                        "does not have; compile the model again",
                        entry->symbol);
    struct byi_arena *scratch = byi_arena_new();
    struct byi_region_consts consts;
    enum byoc_status status =
        byi_region_consts(model, entry, plugin, scratch, &consts, err);
    if (status == BYOC_OK) {
        const struct byoc_region region = {.struct_size = sizeof region,
                                           .n_consts = entry->n_consts,
                                           .json =
                                               model->image.blobs + entry->blob,
                                           .json_bytes = entry->blob_bytes,
                                           .consts = consts.at,
                                           .symbol = entry->code,
                                           .code = model->functions[i],
                                           .ext = consts.ext};
        status = load_blob(plugin, entry->symbol, &region,
                           &model->base.regions[i], err);
    }
    byi_arena_free(&scratch);
    return status;
}

enum byoc_status byi_operators_open(struct byoc_model *model,
                                    const struct byoc_load_params *params,
                                    const struct byi_image_manifest *manifest,
                                    struct byoc_error *err)
{
    for (uint32_t i = 0; i < manifest->n_backends; i++) {
        struct byi_plugin *plugin = NULL;
        if (!manifest->backends[i].operators)
            continue;
        if (open_backend(model, params, manifest, manifest->backends[i].name,
                         &plugin, err) != BYOC_OK)
            return byi_prefix(err,
                              "the model calls operators of the plug-in '%s'",
                              manifest->backends[i].name);
        plugin->next = model->plugins;
        model->plugins = plugin;
        byi_model_log_plugin(model, plugin);
    }
    return BYOC_OK;
}

/* Open the backend of region `first`, let it load all of its regions, and set
 * seen[i] for each of them. A region that it cannot load gets a fault, or is an
 * error with require_backends. */
static enum byoc_status load_backend(struct byoc_model *model,
                                     const struct byoc_load_params *params,
                                     const struct byi_image_manifest *manifest,
                                     uint32_t first, bool *seen,
                                     struct byoc_error *err)
{
    const struct byi_plan_tables *plan = model->plan;
    const char *name = plan->regions[first].backend;
    struct byi_plugin *plugin = NULL;
    struct byoc_error why;
    enum byoc_status open_status =
        open_backend(model, params, manifest, name, &plugin, &why);
    if (plugin) {
        plugin->next = model->plugins;
        model->plugins = plugin;
    }
    if (plugin)
        byi_model_log_plugin(model, plugin);
    for (uint32_t i = first; i < plan->n_regions; i++) {
        if (strcmp(plan->regions[i].backend, name) != 0)
            continue;
        seen[i] = true;
        enum byoc_status status = open_status == BYOC_OK
                                      ? load_region(model, i, plugin, &why)
                                      : open_status;
        if (status == BYOC_OK)
            continue;
        if (status == BYOC_ENOMEM) /* a retry may succeed */
            return byi_fail(err, status, "%s", why.text);
        if (params->require_backends)
            return byi_fail(err, BYOC_EBACKEND, "%s", why.text);
        char text[1200];
        model->base.regions[i].fault = byi_arena_str(model->arena, why.text);
        snprintf(text, sizeof text, "region %s runs its native twin: %s",
                 plan->regions[i].symbol, why.text);
        byi_model_warn(model, text);
    }
    return BYOC_OK;
}

/* Warn about each kind of library that this process has loaded more than once.
 */
static void warn_copies(struct byoc_model *model)
{
    struct byi_text copies = {0};
    if (model->plugins)
        byoc_internal_copies(&copies);
    char *rest = NULL;
    for (char *line = copies.at ? strtok_r(copies.at, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        byi_model_warn(model, line);
    byi_text_free(&copies);
}

enum byoc_status byi_backends_load(struct byoc_model *model,
                                   const struct byoc_load_params *params,
                                   const struct byi_image_manifest *manifest,
                                   struct byoc_error *err)
{
    uint32_t n = model->plan->n_regions;
    model->base.regions = byi_alloc(n + 1u, sizeof *model->base.regions);
    bool *seen = byi_arena_calloc(model->arena, n + 1u, sizeof *seen);
    enum byoc_status status = BYOC_OK;
    if (!model->base.regions)
        status = byi_fail(err, BYOC_ENOMEM, "out of memory for %u regions", n);
    for (uint32_t i = 0; i < n && status == BYOC_OK && !params->native_only;
         i++)
        if (!seen[i])
            status = load_backend(model, params, manifest, i, seen, err);
    if (status == BYOC_OK)
        choose_openmp(model);
    warn_copies(model);
    return status;
}

void byi_backends_drop_consts(const struct byi_specialisation *specialisation)
{
    for (uint32_t i = 0; i < specialisation->plan->n_regions; i++) {
        const struct byi_region_row *entry = &specialisation->plan->regions[i];
        const struct byi_region *region = &specialisation->regions[i];
        if (!region->plugin || region->lent ||
            !(region->plugin->backend->flags & BYOC_BACKEND_COPIES_CONSTS))
            continue;
        for (uint32_t k = 0; k < entry->n_consts; k++) {
            const struct byi_plan_const *c =
                &specialisation->plan->consts[entry->consts[k]];
            if (c->narrow)
                byi_image_drop_const(&specialisation->model->image, c->narrow,
                                     c->narrow_bytes);
            else
                byi_image_drop_const(&specialisation->model->image,
                                     c->view.data, byi_tensor_bytes(&c->view));
        }
    }
}
