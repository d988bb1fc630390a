/* SPDX-License-Identifier: Apache-2.0 */
/* image.c: builds an image: the blobs of the regions, the plan and the
 * manifest. */
#include "image.h"

#include "core/base/guard.h"

#include "core/base/child.h"

#include <string.h>

/* --- regions -------------------------------------------------------------- */

static struct byoc_region region_of(const struct byi_built_region *r,
                                    const struct byoc_view *consts)
{
    return (struct byoc_region){.struct_size = sizeof(struct byoc_region),
                                .n_consts = r->n_consts,
                                .json = r->blob.at,
                                .json_bytes = r->blob.n,
                                .consts = consts,
                                .symbol = r->symbol,
                                .code = r->code ? r->code->function : NULL};
}

/* Tells compile() that it may decline the region. */
static const struct byoc_ext may_decline = {.type = BYOC_EXT_MAY_DECLINE,
                                            .size = sizeof may_decline};

/* Copy the text of a failure to `arena`, and free the failure. */
static const char *take_message(const struct byi_plugin *plugin,
                                struct byoc_fail *fail, struct byi_arena *arena)
{
    const char *why = byi_arena_str(arena, plugin->host.fail_text(fail));
    plugin->host.fail_free(fail);
    return why;
}

/* Whether a region has symbolic dims: it stays JSON, which the runtime
 * specialises and passes to the backend. */
static bool has_symbolic_inputs(const struct byi_module *m, uint32_t func)
{
    const struct byi_func *f = m->funcs.at[func];
    for (uint32_t i = 0; i < f->params.n; i++)
        if (!byi_type_is_static(f->nodes.at[f->params.at[i]].type))
            return true;
    return false;
}

static const struct byi_plugin *plugin_of(
    const struct byi_module *m, const struct byi_found_backends *found,
    uint32_t func)
{
    return byi_plugin_of_backend(found, m->funcs.at[func]->attr.compiler);
}

/* Make a backend's result the region's blob. If `symbol` is not NULL, the
 * result is C that defines this function: compile it, and keep the JSON as blob
 * if that fails. */
static void take_blob(const struct byi_found_backends *found,
                      struct byi_built_region *r, const char *symbol,
                      const void *data, uint64_t bytes)
{
    r->symbol = symbol;
    if (symbol) {
        r->code = byi_code_get(found->codes, symbol, data, bytes);
        r->fault = r->code->fault;
        r->reason = BYI_REASON_SOURCE;
    }
    if (!r->fault) {
        byi_text_free(&r->blob);
        byi_text_add(&r->blob, data, bytes);
    }
}

/* Use the backend's result for region `name` from another process, if there is
 * one. */
static void take_answer(const struct byi_found_backends *found,
                        struct byi_built_region *r, const char *name)
{
    for (uint32_t i = 0; i < found->n_answers; i++)
        if (strcmp(found->answers[i].region, name) == 0)
            take_blob(found, r, found->answers[i].symbol,
                      found->answers[i].data, found->answers[i].bytes);
}

/* The memory of a result of compile(), which came from the host's acquire(). */
struct blob_memory {
    const struct byoc_host *host;
    void *data;
};

static void release_blob(void *data)
{
    struct blob_memory *memory = data;
    if (memory->data)
        memory->host->release(memory->host->ctx, memory->data);
    byi_vec_free(memory);
}

/* Call the backend's compile(), if it has one, and set the region's blob, or
 * its fault and reason. */
static void compile_region(const struct byi_module *m,
                           const struct byi_found_backends *found,
                           struct byi_arena *arena, struct byi_built_region *r)
{
    const struct byi_plugin *plugin = plugin_of(m, found, r->func);
    r->reason = BYI_REASON_NOT_BUILT;
    if (!plugin->backend->compile)
        return;
    struct byoc_region region =
        region_of(r, byi_const_views(m, r->consts, r->n_consts, arena));
    if (!r->varies && byi_backend_writes_c(found, plugin->backend))
        region.symbol = byi_code_symbol(m, r->func, arena);
    region.ext = &may_decline;
    struct byoc_blob blob;
    struct blob_memory *memory = byi_own(1, sizeof *memory, release_blob);
    byi_child_step(plugin->backend->name, "compile()");
    struct byoc_fail *fail =
        byoc_internal_plugin_compile(plugin, &region, &blob);
    byi_child_step_end();
    *memory = (struct blob_memory){&plugin->host, blob.data};
    if (fail) {
        release_blob(memory);
        if (plugin->host.fail_code(fail) == BYOC_FAIL_SLOWER)
            r->reason = BYI_REASON_CHEAPER;
        r->fault = take_message(plugin, fail, arena);
        return;
    }
    if (blob.kind != BYOC_BLOB_DATA &&
        !(blob.kind == BYOC_BLOB_C && region.symbol))
        r->fault = byi_arena_printf(
            arena, "compile() returned a blob of kind %u, expected %d%s",
            blob.kind, BYOC_BLOB_DATA, region.symbol ? " or C" : "");
    else
        take_blob(found, r, blob.kind == BYOC_BLOB_C ? region.symbol : NULL,
                  blob.data, blob.bytes);
    release_blob(memory);
}

/* Initialise *r, and write the blob of region `func`. A backend without a
 * plug-in consists only of patterns. */
static enum byoc_status write_region(const struct byi_module *m, uint32_t func,
                                     const struct byi_found_backends *found,
                                     struct byi_arena *arena,
                                     struct byi_built_region *r,
                                     struct byoc_error *err)
{
    const struct byi_plugin *plugin = plugin_of(m, found, func);
    *r = (struct byi_built_region){.func = func};
    BYI_TRY(byi_region_write(m, func, arena, &r->blob, &r->consts, &r->n_consts,
                             err));
    r->varies = has_symbolic_inputs(m, func);
    if (found->answers)
        take_answer(found, r, m->funcs.at[func]->name);
    else if (plugin && !r->varies)
        compile_region(m, found, arena, r);
    else if (plugin && plugin->backend->flags & BYOC_BACKEND_WRITES_C)
        r->fault = "its sizes vary, and C is compiled before they are known; "
                   "fix them with --dim or --shape";
    return BYOC_OK;
}

/* Copy the blobs to one block of memory, without gaps, from an aligned address,
 * as in an artifact. (Loading copies blobs that are not aligned.) */
static void pack_blobs(struct byi_built_model *b)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < b->regions.n; i++)
        bytes += b->regions.at[i].blob.n;
    b->packed = byi_own(1, bytes + BYI_ALIGN, NULL);
    b->blobs = (char *)b->packed + (-(uintptr_t)b->packed & (BYI_ALIGN - 1));
    b->blobs_bytes = bytes;
    char *at = b->blobs;
    for (uint32_t i = 0; i < b->regions.n; i++) {
        struct byi_text *blob = &b->regions.at[i].blob;
        const size_t n = blob->n;
        if (n)
            memcpy(at, blob->at, n);
        byi_text_free(blob);
        *blob = (struct byi_text){.at = at, .n = n};
        at += n;
    }
}

static enum byoc_status write_regions(const struct byi_module *m,
                                      const struct byi_found_backends *found,
                                      struct byi_arena *arena,
                                      struct byi_built_model *b,
                                      struct byoc_error *err)
{
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < m->funcs.n && status == BYOC_OK; i++) {
        const struct byi_func *f = m->funcs.at[i];
        if (f->dead || !f->attr.compiler)
            continue;
        const struct byi_built_region empty_region = {0};
        BYI_PUSH(&b->regions, empty_region);
        status = write_region(m, i, found, arena,
                              &b->regions.at[b->regions.n - 1], err);
    }
    pack_blobs(b);
    return status;
}

/* Copy unaligned constants to aligned memory. Those of a mapped model file may
 * be unaligned, while the runtime passes aligned ones to load(). copies[i] is
 * the copy of constant i, or NULL. The caller releases it with byi_release. */
static enum byoc_status align_consts(struct byoc_view *views, uint32_t n,
                                     void **copies, struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        if ((uintptr_t)views[i].data % BYI_ALIGN == 0)
            continue;
        copies[i] = byi_acquire(views[i].bytes);
        if (!copies[i])
            return byi_fail_memory(err, views[i].bytes, "a constant");
        views[i].data = memcpy(copies[i], views[i].data, views[i].bytes);
    }
    return BYOC_OK;
}

/* The state of byi_describe_region. */
struct region_description {
    struct byi_built_step **end; /* where to store the next step */
    struct byi_arena *arena;
    bool out_of_memory; /* an allocation failed */
};

static bool add_step(struct region_description *to, const char *impl,
                     const char *sources)
{
    BYI_BORDER_ELSE(false);
    struct byi_built_step *step = byi_arena_alloc(to->arena, sizeof *step);
    *step =
        (struct byi_built_step){.impl = byi_arena_str(to->arena, impl),
                                .sources = byi_arena_str(to->arena, sources)};
    *to->end = step;
    to->end = &step->next;
    return true;
}

/* A failed allocation must not unwind the backend's frames. */
static void list_step(void *ctx, const char *name, const char *impl,
                      const char *sources, uint64_t begin, uint64_t end)
{
    struct region_description *to = ctx;
    (void)name, (void)begin, (void)end;
    if (impl && sources && !add_step(to, impl, sources))
        to->out_of_memory = true;
}

enum byoc_status byi_describe_region(
    struct byi_built_region *r, struct byi_arena *arena,
    void (*describe)(const void *ctx, byoc_trace_fn say, void *to),
    const void *ctx, struct byoc_error *err)
{
    struct region_description to = {.end = &r->steps, .arena = arena};
    r->steps = NULL;
    describe(ctx, list_step, &to);
    return to.out_of_memory ? byi_fail(err, BYOC_ENOMEM, "out of memory")
                            : BYOC_OK;
}

/* A region that its plug-in has loaded; `compiled` is the result of load(). */
struct loaded_region {
    const struct byi_plugin *plugin;
    const void *compiled;
};

static void describe_loaded(const void *ctx, byoc_trace_fn say, void *to)
{
    const struct loaded_region *l = ctx;
    if (l->plugin->backend->describe)
        l->plugin->backend->describe(&l->plugin->host, l->compiled, say, to);
}

enum byoc_status byi_load_region(const struct byi_module *m,
                                 const struct byi_found_backends *found,
                                 struct byi_arena *arena,
                                 struct byi_built_region *r,
                                 struct byoc_error *err)
{
    const struct byi_plugin *plugin = plugin_of(m, found, r->func);
    if (r->code)
        BYI_TRY(byi_code_map(r->code, err));
    struct byoc_view *views = byi_const_views(m, r->consts, r->n_consts, arena);
    void **copies = byi_arena_calloc(arena, r->n_consts, sizeof *copies);
    enum byoc_status status = align_consts(views, r->n_consts, copies, err);
    if (status == BYOC_OK) {
        const struct byoc_region region = region_of(r, views);
        void *compiled = NULL;
        byi_child_step(plugin->backend->name, "load or unload()");
        struct byoc_fail *fail =
            byoc_internal_plugin_load(plugin, &region, &compiled);
        if (fail) {
            r->fault = take_message(plugin, fail, arena);
        } else {
            const struct loaded_region l = {plugin, compiled};
            byi_child_step(plugin->backend->name, "describe()");
            status = byi_describe_region(r, arena, describe_loaded, &l, err);
            byi_child_step(plugin->backend->name, "load or unload()");
            plugin->backend->unload(&plugin->host, compiled);
        }
        byi_child_step_end();
    }
    for (uint32_t i = 0; i < r->n_consts; i++)
        byi_release(copies[i]);
    return status;
}

/* Replace all symbolic dims in the region's JSON by one size that the region
 * accepts. Returns false if it accepts none of the sizes tried. */
static bool fix_dims(const struct byi_module *m, struct byi_arena *arena,
                     struct byi_built_region *r)
{
    static const int64_t sizes[] = {2, 64, 1};
    const struct byi_func *f = m->funcs.at[r->func];
    const struct byi_region_consts consts = {
        r->n_consts, byi_const_views(m, r->consts, r->n_consts, arena), NULL};
    const struct byi_type **types =
        byi_arena_calloc(arena, f->params.n, sizeof *types);
    for (size_t s = 0; s < BYI_COUNT(sizes); s++) {
        for (uint32_t i = 0; i < f->params.n; i++) {
            const struct byi_type *type = f->nodes.at[f->params.at[i]].type;
            int64_t dims[BYI_MAX_RANK];
            for (uint32_t d = 0; d < type->rank; d++)
                dims[d] =
                    BYI_IS_SYMBOL(type->dims[d]) ? sizes[s] : type->dims[d];
            types[i] = byi_type_tensor(arena, type->dtype, type->rank, dims);
        }
        struct byi_sized sized;
        if (byoc_internal_region_bind(r->blob.at, r->blob.n, &consts,
                                      f->params.n, types, arena, &sized,
                                      NULL) != BYOC_OK)
            continue;
        r->blob.n = 0;
        byi_text_add(&r->blob, sized.json, sized.json_bytes);
        return true;
    }
    return false;
}

enum byoc_status byi_try_region(const struct byi_module *m, uint32_t func,
                                const struct byi_found_backends *found,
                                struct byi_arena *arena, const char **why,
                                struct byoc_error *err)
{
    struct byi_built_region r;
    enum byoc_status status = write_region(m, func, found, arena, &r, err);
    bool has_sizes = status == BYOC_OK && !r.varies;
    if (status == BYOC_OK && r.varies && fix_dims(m, arena, &r)) {
        has_sizes = true;
        compile_region(m, found, arena, &r);
    }
    if (has_sizes && !r.fault)
        status = byi_load_region(m, found, arena, &r, err);
    byi_text_free(&r.blob);
    *why = r.fault;
    return status;
}

/* --- plan and manifest ---------------------------------------------------- */

enum byoc_status byi_built_model_plan(
    const struct byi_module *m, const struct byi_built_model *built,
    const struct byi_kernels *kernels, enum byoc_dtype store,
    struct byi_arena *arena, struct byi_plan *plan, struct byoc_error *err)
{
    const uint32_t n = built->regions.n;
    struct byi_plan_region *regions =
        byi_arena_calloc(arena, n, sizeof *regions);
    for (uint32_t i = 0; i < n; i++)
        regions[i] =
            (struct byi_plan_region){.blob_bytes = built->regions.at[i].blob.n,
                                     .code = built->regions.at[i].symbol,
                                     .consts = built->regions.at[i].consts,
                                     .n_consts = built->regions.at[i].n_consts};
    struct byi_plan_code code = {0};
    if (kernels)
        code = (struct byi_plan_code){.n = kernels->list.n,
                                      .at = kernels->list.at,
                                      .kernel_of = kernels->kernel_of};
    const struct byi_plan_params params = {.regions = regions,
                                           .n_regions = n,
                                           .code = code.n ? &code : NULL,
                                           .exact = built->exact,
                                           .store = store};
    return byi_plan_write(m, &params, plan, err);
}

/* Set `operators` of the entries of the plug-ins whose operators the module
 * calls; append the plug-ins that are not among the n entries of `list`.
 * Returns the new number of entries. */
static uint32_t list_operators(const struct byi_module *m,
                               const struct byi_found_backends *found,
                               struct byi_arena *arena,
                               struct byi_manifest_backend *list, uint32_t n)
{
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; !f->dead && id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind != BYI_CALL_OP || node->op != BYI_OP_CUSTOM)
                continue;
            const char *op = byi_attr_string(node->attrs, "op");
            const char *name = byi_arena_strn(arena, op, strcspn(op, "."));
            const struct byi_plugin *plugin =
                byi_plugin_of_backend(found, name);
            uint32_t at = 0;
            while (at < n && strcmp(list[at].name, name) != 0)
                at++;
            if (at == n && n < found->plugins.n + m->backends.n)
                list[n++] = (struct byi_manifest_backend){
                    .name = name,
                    .version = plugin ? plugin->backend->version : "",
                    .compat = plugin ? plugin->backend->compat : ""};
            list[at].operators = true;
        }
    }
    return n;
}

enum byoc_status byi_built_model_manifest(
    const struct byi_module *m, const struct byi_found_backends *found,
    const struct byi_image *image, bool hashes, struct byi_arena *arena,
    struct byi_text *text, struct byoc_error *err)
{
    struct byi_manifest_backend *backends = byi_arena_calloc(
        arena, m->backends.n + found->plugins.n + 1u, sizeof *backends);
    uint32_t n = 0;
    for (uint32_t t = 0; t < m->backends.n; t++) {
        const struct byi_plugin *plugin =
            byi_plugin_of_backend(found, m->backends.at[t]);
        bool used = false;
        for (uint32_t i = 0; i < m->funcs.n && !used; i++) {
            const struct byi_func *f = m->funcs.at[i];
            used = !f->dead && f->attr.compiler &&
                   strcmp(f->attr.compiler, m->backends.at[t]) == 0;
        }
        if (!used)
            continue;
        backends[n++] = (struct byi_manifest_backend){
            .name = m->backends.at[t],
            .version = plugin ? plugin->backend->version : "",
            .compat = plugin ? plugin->backend->compat : ""};
    }
    n = list_operators(m, found, arena, backends, n);
    const struct byi_manifest manifest = {.name = byi_module_entry_name(m),
                                          .backends = backends,
                                          .n_backends = n,
                                          .warm = found->warm,
                                          .hashes = hashes};
    return byi_manifest_write(m, &manifest, image, text, err);
}

/* --- building ------------------------------------------------------------- */

void byi_built_model_free(struct byi_built_model *built)
{
    byi_vec_free(built->regions.at);
    byi_vec_free(built->packed);
    byi_text_free(&built->manifest);
    byi_plan_free(&built->plan);
    *built = (struct byi_built_model){0};
}

struct byi_image byi_built_model_image(const struct byi_built_model *built)
{
    return (struct byi_image){.manifest = built->manifest.at,
                              .manifest_bytes = built->manifest.n,
                              .plan = built->plan.json.at,
                              .plan_bytes = built->plan.json.n,
                              .blobs = built->blobs,
                              .blobs_bytes = built->blobs_bytes,
                              .weights_bytes = built->plan.weights_bytes,
                              .spans = built->spans,
                              .n_spans = built->plan.consts.n,
                              .functions = built->functions};
}

/* --- code ----------------------------------------------------------------- */

/* Make built->functions, all NULL, and built->sources. */
static void list_code(struct byi_built_model *built, struct byi_arena *arena)
{
    const uint32_t n = built->regions.n;
    built->functions =
        byi_arena_calloc(arena, n + 1u, sizeof *built->functions);
    built->sources = byi_arena_calloc(arena, n + 1u, sizeof *built->sources);
    for (uint32_t i = 0; i < n; i++)
        if (built->regions.at[i].code)
            built->sources[built->n_sources++] =
                &built->regions.at[i].code->unit;
}

enum byoc_status byi_built_model_map(struct byi_built_model *built,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < built->regions.n; i++) {
        struct byi_code *code = built->regions.at[i].code;
        if (!code)
            continue;
        BYI_TRY(byi_code_map(code, err));
        built->functions[i] = code->function;
    }
    return BYOC_OK;
}

enum byoc_status byi_built_model_make(const struct byi_module *m,
                                      const struct byi_found_backends *found,
                                      const struct byi_kernels *kernels,
                                      struct byi_arena *arena,
                                      struct byi_built_model *built,
                                      struct byoc_error *err)
{
    byi_built_model_free(built);
    built->exact = found->backends.exact;
    BYI_TRY(write_regions(m, found, arena, built, err));
    BYI_TRY(byi_built_model_plan(m, built, kernels, BYOC_NONE, arena,
                                 &built->plan, err));
    built->spans = byi_plan_spans(m, &built->plan, arena);
    list_code(built, arena);
    if (!found->answers)
        BYI_TRY(byi_built_model_map(built, err));
    const struct byi_image image = byi_built_model_image(built);
    return byi_built_model_manifest(m, found, &image, false, arena,
                                    &built->manifest, err);
}
