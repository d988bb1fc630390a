/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: makes a runnable model from an artifact or an image. Reads the
 * manifest and the plan, aligns the constants, and loads the backends
 * (backends.c). */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/guard.h"

/* --- log ------------------------------------------------------------------ */

static void log_threads(const struct byoc_model *model)
{
    byi_log(&model->log, BYOC_INFO, "threads %s", model->threads_why);
}

void byoc_internal_model_adopt(struct byoc_model *model,
                               const struct byoc_load_params *params)
{
    model->require_backends = params->require_backends != 0;
    byi_log_init(&model->log, params);
    log_threads(model);
    for (struct byi_plugin *p = model->plugins; p; p = p->next) {
        p->log = model->log;
        byi_model_log_plugin(model, p);
    }
}

/* --- signature ---------------------------------------------------------- */

/* Check that the manifest, which users and tools read, declares the same type
 * for an input or output as the plan, which runs. */
static enum byoc_status check_io(const struct byi_plan_tables *plan,
                                 const struct byi_image_io *io, uint32_t v,
                                 const char *what, struct byoc_error *err)
{
    const struct byi_type *type = plan->funcs[0].values[v].type;
    bool is_same =
        io->dtype == type->dtype && io->rank == type->rank &&
        (io->list ? byi_type_equal(io->list, type) : type->kind == BYI_TENSOR);
    for (uint32_t d = 0; is_same && d < io->rank; d++) {
        if (BYI_IS_SYMBOL(type->dims[d]))
            is_same = io->dim_names[d] &&
                      strcmp(io->dim_names[d],
                             plan->symbols[-1 - type->dims[d]]) == 0;
        else
            is_same = io->dims[d] == type->dims[d];
    }
    if (is_same)
        return BYOC_OK;
    return byi_fail(err, BYOC_EPARSE,
                    "manifest: found another type of %s \"%.100s\" than in the "
                    "plan, expected the same; compile the model again",
                    what, io->name);
}

/* Describe an input or output that is a sequence or optional, and its elements.
 */
static struct byoc_io *describe_list(struct byi_arena *arena,
                                     const struct byi_type *type)
{
    struct byoc_io *first = byi_arena_alloc(arena, sizeof *first), *io = first;
    for (; byi_type_is_list(type); type = type->fields[0]) {
        struct byoc_io *next = byi_arena_alloc(arena, sizeof *next);
        *io = (struct byoc_io){.name = "", .element = next};
        io->kind = type->kind == BYI_SEQ ? BYOC_SEQUENCE : BYOC_OPTIONAL;
        io = next;
    }
    int64_t *dims = byi_arena_calloc(arena, type->rank + 1u, sizeof *dims);
    for (uint32_t d = 0; d < type->rank; d++)
        dims[d] = BYI_IS_SYMBOL(type->dims[d]) ? -1 : type->dims[d];
    *io = (struct byoc_io){
        .name = "",
        .dtype = type->dtype,
        .rank = type->kind == BYI_TENSOR ? type->rank : UINT32_MAX,
        .dims = dims,
        .dim_names = byi_arena_calloc(arena, type->rank + 1u, sizeof(char *)),
    };
    return first;
}

/* The public descriptions of n inputs or outputs, in `arena`. */
static struct byoc_io *make_ios(struct byi_arena *arena,
                                const struct byi_image_io *records, uint32_t n)
{
    struct byoc_io *ios = byi_arena_calloc(arena, n + 1u, sizeof *ios);
    for (uint32_t i = 0; i < n; i++)
        ios[i] = (struct byoc_io){.name = records[i].name,
                                  .dtype = records[i].dtype,
                                  .rank = records[i].rank,
                                  .dims = records[i].dims,
                                  .dim_names = records[i].dim_names};
    for (uint32_t i = 0; i < n; i++) {
        if (!records[i].list)
            continue;
        ios[i] = *describe_list(arena, records[i].list);
        ios[i].name = records[i].name;
    }
    return ios;
}

static enum byoc_status set_signature(struct byoc_model *model,
                                      const struct byi_image_manifest *manifest,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    if (manifest->n_inputs != f->n_inputs ||
        manifest->n_outputs != f->n_outputs)
        return byi_fail(err, BYOC_EPARSE,
                        "manifest: found %u inputs and %u outputs, expected %u "
                        "and %u as in the plan",
                        manifest->n_inputs, manifest->n_outputs, f->n_inputs,
                        f->n_outputs);
    for (uint32_t i = 0; i < f->n_inputs; i++)
        BYI_TRY(check_io(model->plan, &manifest->inputs[i], f->inputs[i],
                         "input", err));
    for (uint32_t i = 0; i < f->n_outputs; i++)
        BYI_TRY(check_io(model->plan, &manifest->outputs[i], f->outputs[i],
                         "output", err));
    model->inputs =
        make_ios(model->arena, manifest->inputs, manifest->n_inputs);
    model->outputs =
        make_ios(model->arena, manifest->outputs, manifest->n_outputs);
    model->metadata = manifest->metadata;
    model->n_metadata = manifest->n_metadata;
    return BYOC_OK;
}

/* List the symbols of the inputs' shapes, each once. */
static void find_keys(struct byoc_model *model)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    const uint32_t n = model->plan->n_symbols;
    bool *seen = byi_arena_calloc(model->arena, n + 1u, sizeof *seen);
    model->keys = byi_arena_calloc(model->arena, n + 1u, sizeof *model->keys);
    for (uint32_t i = 0; i < f->n_inputs; i++) {
        const struct byi_type *type = f->values[f->inputs[i]].type;
        for (uint32_t d = 0; type->kind == BYI_TENSOR && d < type->rank; d++) {
            if (!BYI_IS_SYMBOL(type->dims[d]) || seen[-1 - type->dims[d]])
                continue;
            seen[-1 - type->dims[d]] = true;
            model->keys[model->n_keys++] = (uint32_t)(-1 - type->dims[d]);
        }
    }
}

/* --- sizes ------------------------------------------------------------- */

/* Let regions with symbolic dims run their twins, in a model whose inputs have
 * no symbolic dims: the sizes of such regions depend on data. */
static void use_twins_of_varying(struct byoc_model *model)
{
    for (uint32_t i = 0; i < model->plan->n_regions; i++) {
        struct byi_region *region = &model->base.regions[i];
        if (!model->plan->regions[i].varies || !region->plugin)
            continue;
        region->plugin = NULL;
        region->fault = "its sizes depend on data";
    }
}

/* Prepare specialisations for the sizes listed in the artifact. A failure other
 * than BYOC_ENOMEM and BYOC_EINVAL is only a warning, since runs with other
 * sizes still work. */
static enum byoc_status warm_up(struct byoc_model *model,
                                const struct byi_warm *sets,
                                struct byoc_error *err)
{
    struct byoc_error why;
    for (uint32_t i = 0; i < sets->n; i++) {
        const struct byi_warm_set *set = &sets->at[i];
        enum byoc_status status =
            byoc_model_warm(model, set->dims, set->n, &why);
        if (status == BYOC_ENOMEM || status == BYOC_EINVAL)
            return byi_fail(err, status, "%s", why.text);
        if (status != BYOC_OK)
            byi_model_warn(model, why.text);
    }
    return BYOC_OK;
}

/* --- loading ------------------------------------------------------------ */

/* Set how the model runs parallel regions: with the host's parallel_for if it
 * has one, otherwise on workers, as many as the system grants. */
static enum byoc_status set_parallelism(struct byoc_model *model,
                                        const struct byoc_load_params *params,
                                        struct byoc_error *err)
{
    const uint32_t requested = model->threads;
    model->parallelism =
        (struct byi_parallelism){.threads = requested,
                                 .parallel_for = params->parallel_for,
                                 .ctx = params->parallel_ctx,
                                 .run_times = &model->run_times};
    BYI_TRY(byi_wait_decide(params->wait, &model->parallelism.spin_ns,
                            &model->parallelism.adapts, err));
    if (params->parallel_for)
        return BYOC_OK;
    const uint32_t reserved = byi_workers_reserve(requested);
    if (reserved < requested) {
        model->threads = reserved;
        snprintf(model->threads_why, sizeof model->threads_why,
                 "%u: the system refused more threads; requested %u", reserved,
                 requested);
    }
    model->parallelism.threads = model->threads;
    return BYOC_OK;
}

/* The arguments of init_model and fill_model. */
struct opening {
    struct byoc_model *model;
    const struct byi_image *image;
    const struct byoc_load_params *params;
};

/* The first part of loading: sets the members that need no workers, and creates
 * the workers. byi_guarded calls this. */
static enum byoc_status init_model(void *arg, struct byoc_error *err)
{
    const struct opening *o = arg;
    struct byoc_model *model = o->model;
    model->image = *o->image;
    model->require_backends = o->params->require_backends != 0;
    byi_log_init(&model->log, o->params);
    model->arena = byi_arena_new();
    byi_text_add(&model->warnings, "", 0);
    model->memory = byi_memory_new(o->params);
    model->runners = byi_runners_new(o->params->runners);
    if (!model->memory || !model->runners)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a model");
    BYI_TRY(byi_threads_decide(o->params->threads, &model->threads,
                               model->threads_why, sizeof model->threads_why,
                               err));
    BYI_TRY(set_parallelism(model, o->params, err));
    log_threads(model);
    return BYOC_OK;
}

/* Load the regions, pack weights, create the cache, and prepare
 * specialisations. */
static enum byoc_status prepare_runs(struct byoc_model *model,
                                     const struct byoc_load_params *params,
                                     struct byi_image_manifest *manifest,
                                     struct byoc_error *err)
{
    BYI_TRY(byi_backends_load(model, params, manifest, err));
    if (model->n_keys == 0)
        use_twins_of_varying(model);
    BYI_TRY(byi_consts_read(&model->base, model->plan->consts, err));
    BYI_TRY(byi_prepack(model, err));
    if (model->n_keys == 0)
        return BYOC_OK;
    BYI_TRY(byi_cache_new(model, params, err));
    return warm_up(model, &manifest->warm, err);
}

/* The rest of loading, on the model's workers. byi_guarded calls this. */
static enum byoc_status fill_model(void *arg, struct byoc_error *err)
{
    const struct opening *o = arg;
    struct byoc_model *model = o->model;
    const struct byi_image *image = o->image;
    const struct byoc_load_params *params = o->params;
    struct byi_image_manifest manifest;
    BYI_TRY(byi_manifest_read(image->manifest, image->manifest_bytes,
                              model->arena, &manifest, err));
    BYI_TRY(byi_operators_open(model, params, &manifest, err));
    BYI_TRY(byi_plan_read(image, &model->plan, err));
    model->base.model = model;
    model->base.plan = model->plan;
    BYI_TRY(set_signature(model, &manifest, err));
    find_keys(model);
    byi_append_find(model);
    BYI_TRY(byi_consts_open(model, err));
    BYI_TRY(byi_code_bind(model, image, err));
    if (image->weights_mapped) {
        model->memory->file = image->weights;
        model->memory->file_bytes = image->weights_bytes;
    }
    byi_memory_set_packing(model->memory, true);
    const enum byoc_status status = prepare_runs(model, params, &manifest, err);
    byi_memory_set_packing(model->memory, false);
    if (status == BYOC_OK)
        byi_backends_drop_consts(&model->base);
    return status;
}

enum byoc_status byoc_internal_model_open(const struct byi_image *image,
                                          const struct byoc_load_params *params,
                                          struct byoc_model **model,
                                          struct byoc_error *err)
{
    static const struct byoc_load_params defaults;
    *model = NULL;
    struct byoc_model *m = byi_alloc(1, sizeof *m);
    if (!m)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a model");
    struct opening o = {m, image, params ? params : &defaults};
    struct byi_guard guard, fill_guard = {0};
    enum byoc_status status = byi_guarded(&guard, init_model, &o, err);
    if (status == BYOC_OK) {
        struct byi_turn turn;
        byi_workers_enter(&turn, &m->parallelism);
        status = byi_guarded(&fill_guard, fill_model, &o, err);
        if (status == BYOC_OK)
            status = byi_workers_check_fork(err);
        byi_workers_leave(&turn); /* reached after a failed allocation, too */
    }
    if (status != BYOC_OK)
        byoc_model_free(&m);
    byi_guard_leave(&fill_guard);
    byi_guard_leave(&guard);
    *model = m;
    return status;
}

void byoc_model_free(struct byoc_model **model)
{
    struct byoc_model *m = *model;
    *model = NULL;
    if (!m)
        return;
    byi_runners_free(&m->runners);
    byi_cache_free(m);
    for (uint32_t i = 0; m->plan && m->base.regions && i < m->plan->n_regions;
         i++) {
        const struct byi_region *region = &m->base.regions[i];
        if (region->plugin && !m->plan->regions[i].varies)
            byi_plugin_unload(region->plugin, region->compiled);
    }
    while (m->plugins) {
        struct byi_plugin *next = m->plugins->next;
        byoc_internal_plugin_close(&m->plugins);
        m->plugins = next;
    }
    free(m->base.regions);
    free(m->kernels);
    free(m->functions);
    byi_consts_close(m);
    byi_plan_tables_free(&m->plan);
    byi_arena_free(&m->arena);
    byi_text_free(&m->warnings);
    byi_memory_release(m->memory, m->packed);
    byi_memory_free(&m->memory);
    byoc_internal_library_unmap(&m->library);
    if (m->artifact.map)
        byoc_internal_artifact_close(&m->artifact);
    free(m);
}

/* --- accessors ---------------------------------------------------------- */

uint32_t byoc_model_n_inputs(const struct byoc_model *model)
{
    return model->plan->funcs[0].n_inputs;
}

uint32_t byoc_model_n_outputs(const struct byoc_model *model)
{
    return model->plan->funcs[0].n_outputs;
}

const struct byoc_io *byoc_model_input(const struct byoc_model *model,
                                       uint32_t index)
{
    return index < byoc_model_n_inputs(model) ? &model->inputs[index] : NULL;
}

const struct byoc_io *byoc_model_output(const struct byoc_model *model,
                                        uint32_t index)
{
    return index < byoc_model_n_outputs(model) ? &model->outputs[index] : NULL;
}

const struct byoc_metadata *byoc_model_metadata(const struct byoc_model *model,
                                                uint32_t *n)
{
    *n = model->n_metadata;
    return model->metadata;
}

const char *byoc_model_metadata_value(const struct byoc_model *model,
                                      const char *key)
{
    for (uint32_t i = 0; i < model->n_metadata; i++)
        if (strcmp(model->metadata[i].key, key) == 0)
            return model->metadata[i].value;
    return NULL;
}

const char *byoc_model_ledger(const struct byoc_model *model, uint64_t *bytes)
{
    const struct byi_image *image = &model->artifact.image;
    *bytes = model->artifact.map ? image->ledger_bytes : 0;
    return *bytes ? image->ledger : NULL;
}

uint32_t byoc_model_threads(const struct byoc_model *model, const char **why)
{
    if (why)
        *why = model->threads_why;
    return model->threads;
}

const char *byoc_internal_region_name(const struct byoc_model *model,
                                      uint32_t region)
{
    return region < model->plan->n_regions ? model->plan->regions[region].symbol
                                           : NULL;
}

const char *byoc_internal_region_fault(const struct byoc_model *model,
                                       uint32_t region)
{
    return region < model->plan->n_regions ? model->base.regions[region].fault
                                           : NULL;
}

void byoc_internal_region_describe(const struct byoc_model *model,
                                   uint32_t region, byoc_trace_fn on_step,
                                   void *ctx)
{
    if (region >= model->plan->n_regions || model->plan->regions[region].varies)
        return;
    const struct byi_region *r = &model->base.regions[region];
    const struct byoc_backend *b = r->plugin ? r->plugin->backend : NULL;
    if (b && b->describe)
        b->describe(&r->plugin->host, r->compiled, on_step, ctx);
}

const char *byoc_model_warnings(const struct byoc_model *model)
{
    return model->warnings.at ? model->warnings.at : "";
}

/* --- regions, for tools --------------------------------------------------- */

enum byoc_status byoc_internal_region(const struct byoc_model *model,
                                      uint32_t region, struct byi_arena *arena,
                                      struct byi_region_facts *facts,
                                      struct byoc_error *err)
{
    const struct byi_plan_tables *plan = model->plan;
    BYI_BORDER(err);
    if (region >= plan->n_regions)
        return byi_fail(err, BYOC_EINVAL,
                        "found region %u, expected a number below %u, the "
                        "model's number of regions",
                        region, plan->n_regions);
    const struct byi_region_row *entry = &plan->regions[region];
    const struct byi_tensor **consts =
        byi_arena_calloc(arena, entry->n_consts + 1, sizeof *consts);
    BYI_TRY(byi_consts_widen(model, entry->consts, entry->n_consts, err));
    for (uint32_t i = 0; i < entry->n_consts; i++) {
        struct byi_tensor *t = byi_arena_alloc(arena, sizeof *t);
        *t = plan->consts[entry->consts[i]].view;
        t->data = byi_const_data(model, entry->consts[i]);
        consts[i] = t;
    }
    *facts = (struct byi_region_facts){
        .backend = entry->backend,
        .symbol = entry->symbol,
        .blob = model->artifact.map ? model->artifact.image.blobs + entry->blob
                                    : NULL,
        .blob_bytes = model->artifact.map ? entry->blob_bytes : 0,
        .n_consts = entry->n_consts,
        .consts = consts};
    return BYOC_OK;
}
