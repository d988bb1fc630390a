/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: from an artifact or an image to a model that can run: manifest,
 * plan, constants, vendors. What a vendor cannot do here its regions' native
 * twins do, and the model says so.
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/guard.h"

/* --- warnings ----------------------------------------------------------- */

/* A warning that there is no memory to keep is logged all the same: between a
 * plug-in that was opened and the list it belongs to nothing may fail. */
static void warn(struct byoc_model *model, const char *text)
{
    struct byi_guard guard;
    if (!byi_guard_enter(&guard))
        byi_text_addf(&model->warnings, "%s\n", text);
    byi_guard_leave(&guard);
    byi_log(&model->log, BYOC_WARNING, "%s", text);
}

static void say_threads(const struct byoc_model *model)
{
    byi_log(&model->log, BYOC_INFO, "threads %s", model->threads_why);
}

static void say_plugin(const struct byoc_model *model,
                       const struct byi_plugin *plugin)
{
    byi_log(&model->log, BYOC_INFO, "backend %s %s from %s",
            plugin->backend->name, plugin->backend->version, plugin->path);
}

void byoc_internal_model_adopt(struct byoc_model *model,
                               const struct byoc_load_params *params)
{
    model->require_vendors = params->require_vendors != 0;
    byi_log_init(&model->log, params);
    say_threads(model);
    for (struct byi_plugin *p = model->plugins; p; p = p->next) {
        p->log = model->log;
        say_plugin(model, p);
    }
}

/* --- signature ---------------------------------------------------------- */

/* The manifest is for people and tools, the plan is what runs: they must say
 * the same. */
static enum byoc_status check_io(const struct byi_plan_tables *plan,
                                 const struct byi_fact_io *io, uint32_t v,
                                 const char *what, struct byoc_error *err)
{
    const struct byi_type *type = plan->funcs[0].values[v].type;
    bool same =
        io->dtype == type->dtype && io->rank == type->rank &&
        (io->list ? byi_type_equal(io->list, type) : type->kind == BYI_TENSOR);
    for (uint32_t d = 0; same && d < io->rank; d++) {
        if (BYI_IS_SYMBOL(type->dims[d]))
            same = io->dim_names[d] &&
                   strcmp(io->dim_names[d],
                          plan->symbols[-1 - type->dims[d]]) == 0;
        else
            same = io->dims[d] == type->dims[d];
    }
    if (same)
        return BYOC_OK;
    return byi_fail(err, BYOC_EPARSE,
                    "manifest: %s \"%.100s\" has another type than the plan's",
                    what, io->name);
}

/* What the values of a sequence or optional are. */
static struct byoc_io *make_element(struct byi_arena *arena,
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

static struct byoc_io *make_ios(struct byi_arena *arena,
                                const struct byi_fact_io *facts, uint32_t n)
{
    struct byoc_io *ios = byi_arena_calloc(arena, n + 1u, sizeof *ios);
    for (uint32_t i = 0; i < n; i++)
        ios[i] = (struct byoc_io){.name = facts[i].name,
                                  .dtype = facts[i].dtype,
                                  .rank = facts[i].rank,
                                  .dims = facts[i].dims,
                                  .dim_names = facts[i].dim_names};
    for (uint32_t i = 0; i < n; i++) {
        if (!facts[i].list)
            continue;
        ios[i] = *make_element(arena, facts[i].list);
        ios[i].name = facts[i].name;
    }
    return ios;
}

static enum byoc_status set_signature(struct byoc_model *model,
                                      const struct byi_facts *facts,
                                      struct byoc_error *err)
{
    const struct byi_plan_func *f = &model->plan->funcs[0];
    if (facts->n_inputs != f->n_inputs || facts->n_outputs != f->n_outputs)
        return byi_fail(err, BYOC_EPARSE,
                        "manifest: %u inputs and %u outputs, but the plan has "
                        "%u and %u",
                        facts->n_inputs, facts->n_outputs, f->n_inputs,
                        f->n_outputs);
    for (uint32_t i = 0; i < f->n_inputs; i++)
        BYI_TRY(check_io(model->plan, &facts->inputs[i], f->inputs[i], "input",
                         err));
    for (uint32_t i = 0; i < f->n_outputs; i++)
        BYI_TRY(check_io(model->plan, &facts->outputs[i], f->outputs[i],
                         "output", err));
    model->inputs = make_ios(model->arena, facts->inputs, facts->n_inputs);
    model->outputs = make_ios(model->arena, facts->outputs, facts->n_outputs);
    model->metadata = facts->metadata;
    model->n_metadata = facts->n_metadata;
    return BYOC_OK;
}

/* The symbols of the inputs' shapes, each once. */
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

/* --- constants ---------------------------------------------------------- */

/* Constants of an image may lie where a model file left them; a kernel wants
 * them aligned to their elements. Those that are not move. */
static enum byoc_status align_consts(struct byoc_model *model,
                                     struct byoc_error *err)
{
    struct byi_plan_tables *plan = model->plan;
    uint64_t need = 0;
    for (uint32_t pass = 0; pass < 2; pass++) {
        uint64_t at = 0;
        for (uint32_t i = 0; i < plan->n_consts; i++) {
            struct byi_tensor *t = &plan->consts[i].view;
            uint64_t bytes = byi_tensor_bytes(t);
            uint64_t align = byi_dtype_bytes(t->dtype);
            if ((uintptr_t)t->data % align == 0)
                continue;
            if (pass == 1) {
                void *to = (char *)model->copied + at;
                memcpy(to, t->data, bytes);
                t->data = to;
            }
            at += (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
        }
        need = at;
        if (pass == 1 || need == 0)
            break;
        model->copied = byi_memory_take(model->memory, need);
        if (!model->copied)
            return byi_fail(err, BYOC_ENOMEM,
                            "no memory for %llu bytes of constants",
                            (unsigned long long)need);
    }
    return BYOC_OK;
}

/* --- vendors ------------------------------------------------------------ */

static const struct byi_fact_vendor *find_fact(const struct byi_facts *facts,
                                               const char *name)
{
    for (uint32_t i = 0; i < facts->n_vendors; i++)
        if (strcmp(facts->vendors[i].name, name) == 0)
            return &facts->vendors[i];
    return NULL;
}

/* Does what was compiled with `compat` run? Where it would run better compiled
 * again, that is a warning. */
static enum byoc_status check_compat(struct byoc_model *model,
                                     const struct byi_plugin *p,
                                     const char *compat, struct byoc_error *err)
{
    const struct byoc_backend *b = p->backend;
    if (!b->check_compat) {
        if (strcmp(compat, b->compat) == 0)
            return BYOC_OK;
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: made for \"%.80s\", but this is \"%.80s\"; "
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
    warn(model, text);
    return BYOC_OK;
}

/* Open the vendor's plug-in and ask whether the artifact suits it. */
static enum byoc_status open_vendor(struct byoc_model *model,
                                    const struct byoc_load_params *params,
                                    const struct byi_facts *facts,
                                    const char *name,
                                    struct byi_plugin **plugin,
                                    struct byoc_error *err)
{
    BYI_TRY(byoc_internal_plugin_find(params->plugins, name, model->threads,
                                      plugin, err));
    struct byi_plugin *p = *plugin;
    p->log = model->log;
    p->memory = model->memory;
    const struct byi_fact_vendor *fact = find_fact(facts, name);
    enum byoc_status status = BYOC_OK;
    if (!fact)
        status = byi_fail(err, BYOC_EPARSE,
                          "manifest: vendors does not list \"%.40s\", whose "
                          "regions the plan has",
                          name);
    else
        status = check_compat(model, p, fact->compat, err);
    if (status != BYOC_OK)
        byoc_internal_plugin_close(plugin);
    return status;
}

const struct byoc_view *byi_region_consts(const struct byoc_model *model,
                                          const struct byi_plan_part *part,
                                          struct byi_arena *arena)
{
    struct byoc_view *consts =
        byi_arena_calloc(arena, part->n_consts + 1u, sizeof *consts);
    for (uint32_t k = 0; k < part->n_consts; k++) {
        const struct byi_tensor *t = &model->plan->consts[part->consts[k]].view;
        consts[k] = (struct byoc_view){.dtype = t->dtype,
                                       .rank = t->rank,
                                       .dims = t->dims,
                                       .data = t->data,
                                       .bytes = byi_tensor_bytes(t)};
    }
    return consts;
}

static enum byoc_status load_blob(const struct byi_plugin *plugin,
                                  const char *symbol,
                                  const struct byoc_region *from,
                                  struct byi_region *region,
                                  struct byoc_error *err)
{
    void *compiled = NULL;
    struct byoc_fail *fail = byoc_internal_plugin_load(plugin, from, &compiled);
    BYI_TRY(byi_plugin_status(fail, plugin, symbol, err));
    region->plugin = plugin;
    region->compiled = compiled;
    return BYOC_OK;
}

enum byoc_status byi_region_load(const struct byi_plugin *plugin,
                                 const char *symbol,
                                 const struct byi_region_consts *consts,
                                 const char *json, size_t n,
                                 struct byi_region *region,
                                 struct byoc_error *err)
{
    struct byoc_region from = {.struct_size = sizeof from,
                               .n_consts = consts->n,
                               .json = json,
                               .json_bytes = n,
                               .consts = consts->at};
    struct byoc_blob blob = {.struct_size = sizeof blob};
    if (!plugin->backend->compile)
        return load_blob(plugin, symbol, &from, region, err);
    BYI_TRY(
        byi_plugin_status(plugin->backend->compile(&plugin->host, &from, &blob),
                          plugin, symbol, err));
    from.json = blob.data;
    from.json_bytes = blob.bytes;
    enum byoc_status status =
        blob.kind == BYOC_BLOB_DATA
            ? load_blob(plugin, symbol, &from, region, err)
            : byi_fail(err, BYOC_EUNSUPPORTED,
                       "%s: the vendor's answer for sizes that vary is C, "
                       "which only a compile can take",
                       symbol);
    plugin->host.release(plugin->host.ctx, blob.data);
    return status;
}

/* A region that varies waits for sizes: its blob is JSON. */
static enum byoc_status load_region(struct byoc_model *model, uint32_t i,
                                    const struct byi_plugin *plugin,
                                    struct byoc_error *err)
{
    const struct byi_plan_part *part = &model->plan->parts[i];
    if (part->varies) {
        model->own.regions[i].plugin = plugin;
        return BYOC_OK;
    }
    if (part->code && !model->functions[i])
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: its code was compiled for instruction sets that "
                        "this machine does not have",
                        part->symbol);
    struct byi_arena *scratch = byi_arena_new();
    const struct byoc_region region = {
        .struct_size = sizeof region,
        .n_consts = part->n_consts,
        .json = model->image.blobs + part->blob,
        .json_bytes = part->blob_bytes,
        .consts = byi_region_consts(model, part, scratch),
        .symbol = part->code,
        .code = model->functions[i]};
    enum byoc_status status =
        load_blob(plugin, part->symbol, &region, &model->own.regions[i], err);
    byi_arena_free(&scratch);
    return status;
}

/* Load the regions of one vendor: from `first` on, those of the same name. */
static enum byoc_status load_vendor(struct byoc_model *model,
                                    const struct byoc_load_params *params,
                                    const struct byi_facts *facts,
                                    uint32_t first, bool *seen,
                                    struct byoc_error *err)
{
    const struct byi_plan_tables *plan = model->plan;
    const char *name = plan->parts[first].backend;
    struct byi_plugin *plugin = NULL;
    struct byoc_error why;
    enum byoc_status missing =
        open_vendor(model, params, facts, name, &plugin, &why);
    if (plugin) {
        plugin->next = model->plugins;
        model->plugins = plugin;
    }
    if (plugin)
        say_plugin(model, plugin);
    for (uint32_t i = first; i < plan->n_parts; i++) {
        if (strcmp(plan->parts[i].backend, name) != 0)
            continue;
        seen[i] = true;
        enum byoc_status status =
            missing == BYOC_OK ? load_region(model, i, plugin, &why) : missing;
        if (status == BYOC_OK)
            continue;
        if (status == BYOC_ENOMEM) /* no reason to run the twin for good */
            return byi_fail(err, status, "%s", why.text);
        if (params->require_vendors)
            return byi_fail(err, BYOC_EBACKEND, "%s", why.text);
        char text[1200];
        model->own.regions[i].fault = byi_arena_str(model->arena, why.text);
        snprintf(text, sizeof text, "region %s runs its native twin: %s",
                 plan->parts[i].symbol, why.text);
        warn(model, text);
    }
    return BYOC_OK;
}

/* Vendors bring libraries; two of a kind are a warning each. */
static void warn_copies(struct byoc_model *model)
{
    struct byi_text copies = {0};
    if (model->plugins)
        byoc_internal_copies(&copies);
    char *rest = NULL;
    for (char *line = copies.at ? strtok_r(copies.at, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        warn(model, line);
    byi_text_free(&copies);
}

static enum byoc_status load_vendors(struct byoc_model *model,
                                     const struct byoc_load_params *params,
                                     const struct byi_facts *facts,
                                     struct byoc_error *err)
{
    uint32_t n = model->plan->n_parts;
    model->own.regions = byi_alloc(n + 1u, sizeof *model->own.regions);
    bool *seen = byi_alloc(n + 1u, sizeof *seen);
    enum byoc_status status = BYOC_OK;
    if (!model->own.regions || !seen)
        status = byi_fail(err, BYOC_ENOMEM, "no memory for %u regions", n);
    for (uint32_t i = 0; i < n && status == BYOC_OK && !params->native_only;
         i++)
        if (!seen[i])
            status = load_vendor(model, params, facts, i, seen, err);
    free(seen);
    warn_copies(model);
    return status;
}

/* Where no input varies, what does depends on data: the twins run. */
static void settle_varying(struct byoc_model *model)
{
    for (uint32_t i = 0; i < model->plan->n_parts; i++) {
        struct byi_region *region = &model->own.regions[i];
        if (!model->plan->parts[i].varies || !region->plugin)
            continue;
        region->plugin = NULL;
        region->fault = "its sizes depend on data";
    }
}

/* What the artifact says it will be run with; a size that fails is a warning,
 * for runs with others do not need it. */
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
            warn(model, why.text);
    }
    return BYOC_OK;
}

/* --- a model ------------------------------------------------------------ */

static enum byoc_status make_workers(struct byoc_model *model,
                                     const struct byoc_load_params *params,
                                     struct byoc_error *err)
{
    const uint32_t wanted = model->threads;
    model->ways = (struct byi_ways){.threads = wanted,
                                    .parallel_for = params->parallel_for,
                                    .ctx = params->parallel_ctx,
                                    .pace = &model->pace};
    BYI_TRY(byi_wait_decide(params->wait, &model->ways.spin_ns,
                            &model->ways.adapts, err));
    if (params->parallel_for)
        return BYOC_OK;
    const uint32_t got = byi_workers_reserve(wanted);
    if (got < wanted) {
        model->threads = got;
        snprintf(model->threads_why, sizeof model->threads_why,
                 "%u: the system makes no more threads, %u are wanted", got,
                 wanted);
    }
    model->ways.threads = model->threads;
    return BYOC_OK;
}

struct opening {
    struct byoc_model *model;
    const struct byi_image *image;
    const struct byoc_load_params *params;
};

/* Everything that needs no workers, and the workers. A body for byi_guarded. */
static enum byoc_status init_model(void *arg, struct byoc_error *err)
{
    const struct opening *o = arg;
    struct byoc_model *model = o->model;
    model->image = *o->image;
    model->require_vendors = o->params->require_vendors != 0;
    byi_log_init(&model->log, o->params);
    model->arena = byi_arena_new();
    byi_text_add(&model->warnings, "", 0);
    model->memory = byi_memory_new(o->params);
    model->runners = byi_runners_new(o->params->runners);
    if (!model->memory || !model->runners)
        return byi_fail(err, BYOC_ENOMEM, "no memory for a model");
    BYI_TRY(byi_threads_decide(o->params->threads, &model->threads,
                               model->threads_why, sizeof model->threads_why,
                               err));
    BYI_TRY(make_workers(model, o->params, err));
    say_threads(model);
    return BYOC_OK;
}

/* Everything else, on the model's workers. A body for byi_guarded. */
static enum byoc_status fill_model(void *arg, struct byoc_error *err)
{
    const struct opening *o = arg;
    struct byoc_model *model = o->model;
    const struct byi_image *image = o->image;
    const struct byoc_load_params *params = o->params;
    struct byi_facts facts;
    BYI_TRY(byi_manifest_read(image->manifest, image->manifest_bytes,
                              model->arena, &facts, err));
    BYI_TRY(byi_plan_read(image, &model->plan, err));
    model->own.model = model;
    model->own.plan = model->plan;
    BYI_TRY(set_signature(model, &facts, err));
    find_keys(model);
    BYI_TRY(align_consts(model, err));
    BYI_TRY(byi_code_bind(model, image, err));
    BYI_TRY(load_vendors(model, params, &facts, err));
    if (model->n_keys == 0)
        settle_varying(model);
    BYI_TRY(byi_prepack(model, err));
    if (model->n_keys == 0)
        return BYOC_OK;
    BYI_TRY(byi_cache_new(model, params, err));
    return warm_up(model, &facts.warm, err);
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
        return byi_fail(err, BYOC_ENOMEM, "no memory for a model");
    struct opening o = {m, image, params ? params : &defaults};
    struct byi_guard guard, filling = {0};
    enum byoc_status status = byi_guarded(&guard, init_model, &o, err);
    if (status == BYOC_OK) {
        struct byi_turn turn;
        byi_workers_enter(&turn, &m->ways);
        status = byi_guarded(&filling, fill_model, &o, err);
        byi_workers_leave(&turn); /* also when memory ran out */
    }
    if (status != BYOC_OK)
        byoc_model_free(&m);
    byi_guard_leave(&filling);
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
    for (uint32_t i = 0; m->plan && m->own.regions && i < m->plan->n_parts;
         i++) {
        const struct byi_region *region = &m->own.regions[i];
        if (region->plugin && !m->plan->parts[i].varies)
            region->plugin->backend->unload(&region->plugin->host,
                                            region->compiled);
    }
    while (m->plugins) {
        struct byi_plugin *next = m->plugins->next;
        byoc_internal_plugin_close(&m->plugins);
        m->plugins = next;
    }
    free(m->own.regions);
    free(m->kernels);
    free(m->functions);
    byi_plan_tables_free(&m->plan);
    byi_arena_free(&m->arena);
    byi_text_free(&m->warnings);
    byi_memory_give(m->memory, m->copied);
    byi_memory_give(m->memory, m->packed);
    byi_memory_free(&m->memory);
    byoc_internal_library_unmap(&m->library);
    if (m->artifact.map)
        byoc_internal_artifact_close(&m->artifact);
    free(m);
}

/* --- questions ---------------------------------------------------------- */

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

struct byi_memory *byi_memory_of(const struct byoc_model *model)
{
    return model->memory;
}

uint32_t byoc_model_threads(const struct byoc_model *model, const char **why)
{
    if (why)
        *why = model->threads_why;
    return model->threads;
}

const char *byoc_internal_region_fault(const struct byoc_model *model,
                                       uint32_t region)
{
    return region < model->plan->n_parts ? model->own.regions[region].fault
                                         : NULL;
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
    if (region >= plan->n_parts)
        return byi_fail(err, BYOC_EINVAL,
                        "no region %u: the model has %u, counted from 0",
                        region, plan->n_parts);
    const struct byi_plan_part *part = &plan->parts[region];
    const struct byi_tensor **consts =
        byi_arena_calloc(arena, part->n_consts + 1, sizeof *consts);
    for (uint32_t i = 0; i < part->n_consts; i++)
        consts[i] = &plan->consts[part->consts[i]].view;
    *facts = (struct byi_region_facts){
        .vendor = part->backend,
        .symbol = part->symbol,
        .blob = model->artifact.map ? model->artifact.image.blobs + part->blob
                                    : NULL,
        .blob_bytes = model->artifact.map ? part->blob_bytes : 0,
        .n_consts = part->n_consts,
        .consts = consts};
    return BYOC_OK;
}
