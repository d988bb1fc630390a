/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/backend.c: implements the plug-in's query function and the
 * byoc_backend that it returns. Turns statuses into the host's failures, and
 * runs oneDNN on the host's threads during each call. load() accepts a region
 * as JSON, or as the C that compile() wrote for a host that compiles C. */
#define BYOC_BACKEND_NEEDS BYOC_ABI(1, 4) /* for the scratch memory */
#include <byoc/graph.h>

#include "core/base/guard.h"
#include "runtime_dnnl/build.h"
#include "runtime_dnnl/threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct byoc_fail *make_fail(const struct byoc_host *host,
                                   enum byoc_status status,
                                   const struct byoc_error *err)
{
    static const uint32_t codes[] = {
        [BYOC_EINVAL] = BYOC_FAIL_INVALID,
        [BYOC_EPARSE] = BYOC_FAIL_INVALID,
        [BYOC_ETYPE] = BYOC_FAIL_INVALID,
        [BYOC_EUNSUPPORTED] = BYOC_FAIL_UNSUPPORTED,
        [BYOC_ENOMEM] = BYOC_FAIL_RESOURCE,
        [BYOC_EIO] = BYOC_FAIL_RESOURCE,
        [BYOC_EINCOMPATIBLE] = BYOC_FAIL_INCOMPATIBLE,
        [BYOC_EBACKEND] = BYOC_FAIL_INTERNAL,
        [BYOC_ELIMIT] = BYOC_FAIL_RESOURCE,
        [BYOC_EINTERNAL] = BYOC_FAIL_INTERNAL,
        [BYOC_ECANCELLED] = BYOC_FAIL_CANCELLED,
    };
    return host->fail(host->ctx, codes[status], err->text);
}

static enum byoc_status build_graph(const struct byoc_host *host,
                                    const struct byoc_region *region,
                                    const struct byoc_graph *graph,
                                    enum byi_purpose purpose,
                                    struct byi_program **program,
                                    struct byoc_error *err)
{
    BYI_BORDER(err);
    const struct byi_dnnl *lib = byi_dnnl_open(err);
    if (!lib)
        return BYOC_EBACKEND;
    struct byi_dn_threads threads;
    byi_dn_threads_enter(&threads, host);
    const enum byoc_status status =
        byi_dn_build(lib, host, graph, region, purpose, program, err);
    byi_dn_threads_leave(&threads);
    return status;
}

static struct byoc_fail *make_program(const struct byoc_host *host,
                                      const struct byoc_region *region,
                                      enum byi_purpose purpose,
                                      struct byi_program **program)
{
    struct byoc_error err = {0};
    struct byoc_graph *graph;
    struct byoc_fail *fail = byoc_graph_read(host, region, &graph);
    if (fail)
        return fail;
    const enum byoc_status status =
        build_graph(host, region, graph, purpose, program, &err);
    byoc_graph_free(host, graph);
    return status == BYOC_OK ? NULL : make_fail(host, status, &err);
}

/* Set result->impl to the program's implementations in order, joined by "+", or
 * to "view" if it has none. Set result->reference if one of them is a reference
 * implementation. Leaves out reorders unless the region consists of reorders
 * only. */
static void describe_probed_program(const struct byi_program *p,
                                    struct byoc_probe *result)
{
    size_t n = 0;
    bool reorders_only = true;
    for (uint32_t i = 0; i < p->steps.n; i++)
        reorders_only &= strcmp(p->steps.at[i].name, "reorder") == 0;
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const struct byi_dnnl_step *step = &p->steps.at[i];
        if (strcmp(step->name, "reorder") == 0 && !reorders_only)
            continue;
        const struct byi_prim *prim = p->prims.at[i];
        if (byi_prim_is_ref(prim))
            result->reference = 1;
        if (n < sizeof result->impl)
            n += (size_t)snprintf(result->impl + n, sizeof result->impl - n,
                                  "%s%s", n ? "+" : "", byi_prim_impl(prim));
    }
    if (n == 0)
        snprintf(result->impl, sizeof result->impl, "view");
}

static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *region,
                               struct byoc_probe *result)
{
    struct byi_program *program = NULL;
    struct byoc_fail *fail = make_program(host, region, BYI_TO_PROBE, &program);
    if (fail)
        return fail;
    describe_probed_program(program, result);
    byi_dn_program_free(&program);
    return NULL;
}

static enum byoc_status find_layouts(const struct byi_dnnl *lib,
                                     const struct byoc_graph *g,
                                     struct byoc_layout *preferred,
                                     struct byoc_error *err)
{
    BYI_BORDER(err);
    for (uint32_t i = 0; i < g->n_kernels; i++) {
        const struct byoc_graph_step *step = &g->steps[g->kernels[i].first];
        if (g->kernels[i].n_steps && byi_dn_is_conv(step))
            return byi_dn_conv_layouts(lib, g, step, preferred->data,
                                       preferred->kernel,
                                       sizeof preferred->data, err);
    }
    return BYOC_OK;
}

static struct byoc_fail *layout(const struct byoc_host *host,
                                const struct byoc_region *region,
                                struct byoc_layout *preferred)
{
    struct byoc_error err = {0};
    const struct byi_dnnl *lib = byi_dnnl_open(&err);
    if (!lib)
        return make_fail(host, BYOC_EBACKEND, &err);
    struct byoc_graph *graph;
    struct byoc_fail *fail = byoc_graph_read(host, region, &graph);
    if (fail)
        return fail;
    struct byi_dn_threads threads;
    byi_dn_threads_enter(&threads, host);
    const enum byoc_status status = find_layouts(lib, graph, preferred, &err);
    byi_dn_threads_leave(&threads);
    byoc_graph_free(host, graph);
    return status == BYOC_OK ? NULL : make_fail(host, status, &err);
}

static struct byoc_fail *check_compat(const struct byoc_host *host,
                                      const char *compat)
{
    if (strcmp(compat, byi_dnnl_compat()) == 0)
        return NULL;
    struct byoc_error err;
    byi_fail(&err, BYOC_EINCOMPATIBLE,
             "found regions compiled for %s, expected %s; compile the model "
             "again",
             compat, byi_dnnl_compat());
    return make_fail(host, BYOC_EINCOMPATIBLE, &err);
}

static bool is_identifier(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    return *name && (*name < '0' || *name > '9') &&
           name[strspn(name, letters)] == '\0';
}

/* Write the program as C. Leaves `text` empty if that is impossible. */
static enum byoc_status write_program(const struct byi_program *program,
                                      const char *symbol, struct byi_text *text,
                                      struct byoc_error *err)
{
    struct byi_text out = {0};
    BYI_BORDER(err);
    byi_dn_write(program, symbol, &out);
    *text = out;
    return BYOC_OK;
}

/* Write the region as C if the host requests C and the program can be written;
 * otherwise leave `text` empty. */
static struct byoc_fail *write_region(const struct byoc_host *host,
                                      const struct byoc_region *region,
                                      struct byi_text *text)
{
    struct byi_program *program = NULL;
    struct byoc_error err = {0};
    if (!region->symbol)
        return NULL;
    if (!is_identifier(region->symbol)) {
        byi_fail(&err, BYOC_EINVAL,
                 "found symbol \"%.40s\", expected a C identifier",
                 region->symbol);
        return make_fail(host, BYOC_EINVAL, &err);
    }
    struct byoc_fail *fail = make_program(host, region, BYI_TO_WRITE, &program);
    if (fail)
        return fail;
    const enum byoc_status status =
        write_program(program, region->symbol, text, &err);
    byi_dn_program_free(&program);
    return status == BYOC_OK ? NULL : make_fail(host, status, &err);
}

/* Bytes of JSON up to which a region may be declined. A larger region has at
 * least about a thousand operators, and reading it again takes longer than
 * declining saves. */
enum { MAX_TO_DECLINE = 256 << 10 };

/* Decline the region if the host allows it and native kernels are faster. */
static struct byoc_fail *decline(const struct byoc_host *host,
                                 const struct byoc_region *region)
{
    struct byoc_graph *graph;
    if (region->json_bytes > MAX_TO_DECLINE ||
        !byoc_ext_find(region->ext, BYOC_EXT_MAY_DECLINE,
                       sizeof(struct byoc_ext)))
        return NULL;
    struct byoc_fail *fail = byoc_graph_read(host, region, &graph);
    if (fail)
        return fail;
    if (byi_dn_declines(graph))
        fail = host->fail(host->ctx, BYOC_FAIL_SLOWER,
                          "native kernels run this region faster");
    byoc_graph_free(host, graph);
    return fail;
}

/* If a region is not written as C, its blob is its JSON, from which load()
 * builds the program. */
static struct byoc_fail *compile(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_blob *blob)
{
    struct byi_text text = {0};
    struct byoc_fail *fail = decline(host, region);
    if (!fail)
        fail = write_region(host, region, &text);
    if (fail)
        return fail;
    const char *from = text.n ? text.at : region->json;
    blob->bytes = text.n ? text.n : region->json_bytes;
    blob->kind = text.n ? BYOC_BLOB_C : BYOC_BLOB_DATA;
    blob->data = host->acquire(host->ctx, blob->bytes);
    if (blob->data)
        memcpy(blob->data, from, blob->bytes);
    else
        fail = host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                          "out of memory for the region");
    byi_text_free(&text);
    return fail;
}

static enum byoc_status load_unit(const struct byoc_host *host,
                                  const struct byoc_region *region,
                                  struct byi_program **program,
                                  struct byoc_error *err)
{
    const struct byi_dnnl *lib = byi_dnnl_open(err);
    if (!lib)
        return BYOC_EBACKEND;
    struct byi_dn_threads threads;
    byi_dn_threads_enter(&threads, host);
    const enum byoc_status status =
        byi_dn_unit_load(lib, host, region, program, err);
    byi_dn_threads_leave(&threads);
    return status;
}

/* When a thread first uses a library's thread-local data, the C library
 * allocates them, and ends the process if that fails. Check that there is
 * enough memory for oneDNN's. */
static struct byoc_fail *check_memory(const struct byoc_host *host)
{
    enum { BYTES = 1 << 16 };
    void *volatile memory = malloc(BYTES);
    const bool has_memory = memory;
    free(memory);
    return has_memory
               ? NULL
               : host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                            "out of memory for oneDNN's thread-local data");
}

static struct byoc_fail *load(const struct byoc_host *host,
                              const struct byoc_region *region, void **compiled)
{
    struct byoc_error err = {0};
    struct byi_program *program = NULL;
    struct byoc_fail *fail = check_memory(host);
    if (fail)
        return fail;
    if (!region->code)
        fail = make_program(host, region, BYI_TO_RUN, &program);
    else {
        const enum byoc_status status = load_unit(host, region, &program, &err);
        fail = status == BYOC_OK ? NULL : make_fail(host, status, &err);
    }
    if (!fail && !byi_dn_consts_end(program)) {
        byi_dn_program_free(&program);
        fail = host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                          "out of memory for the region's constants");
    }
    if (!fail)
        *compiled = program;
    return fail;
}

static void unload(const struct byoc_host *host, void *compiled)
{
    (void)host;
    struct byi_program *program = compiled;
    byi_dn_program_free(&program);
}

static struct byoc_fail *state_new(const struct byoc_host *host, void *compiled,
                                   void **state)
{
    struct byoc_error err = {0};
    struct byi_exec *exec = NULL;
    struct byoc_fail *fail = check_memory(host);
    if (fail)
        return fail;
    const enum byoc_status status = byi_dn_exec_new(compiled, &exec, &err);
    if (status != BYOC_OK)
        return make_fail(host, status, &err);
    *state = exec;
    return NULL;
}

static void state_free(const struct byoc_host *host, void *compiled,
                       void *state)
{
    (void)host;
    (void)compiled;
    struct byi_exec *exec = state;
    byi_dn_exec_free(&exec);
}

/* Check that the numbers and sizes of the host's buffers are those of the
 * region's inputs and outputs. */
static enum byoc_status check_args(const struct byi_program *p,
                                   const struct byoc_run_args *args,
                                   struct byoc_error *err)
{
    if (args->n_inputs != p->n_inputs || args->n_outputs != p->n_outputs)
        return byi_fail(
            err, BYOC_EINVAL,
            "%s: found %u inputs and %u outputs, expected %u and %u", p->name,
            args->n_inputs, args->n_outputs, p->n_inputs, p->n_outputs);
    for (uint32_t i = 0; i < p->n_inputs; i++)
        if (args->inputs[i].bytes != p->input_bytes[i])
            return byi_fail(
                err, BYOC_EINVAL, "%s: input %u has %llu bytes, expected %llu",
                p->name, i, (unsigned long long)args->inputs[i].bytes,
                (unsigned long long)p->input_bytes[i]);
    for (uint32_t i = 0; i < p->n_outputs; i++)
        if (args->outputs[i].bytes != p->output_bytes[i])
            return byi_fail(
                err, BYOC_EINVAL, "%s: output %u has %llu bytes, expected %llu",
                p->name, i, (unsigned long long)args->outputs[i].bytes,
                (unsigned long long)p->output_bytes[i]);
    return BYOC_OK;
}

static uint64_t scratch_bytes(const struct byoc_host *host,
                              const void *compiled)
{
    (void)host;
    return byi_dn_exec_bytes(compiled);
}

static struct byoc_fail *run(const struct byoc_host *host, void *compiled,
                             void *state, const struct byoc_run_args *args)
{
    struct byoc_error err;
    enum byoc_status status = check_args(compiled, args, &err);
    if (status == BYOC_OK) {
        struct byi_dn_threads threads;
        byi_dn_threads_enter(&threads, host);
        status = byi_dn_exec_run(state, args, &err);
        byi_dn_threads_leave(&threads);
    }
    return status == BYOC_OK ? NULL : make_fail(host, status, &err);
}

static void describe(const struct byoc_host *host, const void *compiled,
                     byoc_trace_fn report, void *ctx)
{
    const struct byi_program *p = compiled;
    (void)host;
    for (uint32_t i = 0; i < p->steps.n; i++) {
        const struct byi_dnnl_step *step = &p->steps.at[i];
        const char *impl = byi_dn_step_impl(p, i);
        if (impl && strcmp(step->name, "reorder") != 0)
            report(ctx, step->name, impl, step->sources, 0, 0);
    }
}

/* There is no quiesce(). oneDNN has no function that frees its per-thread and
 * per-process state, such as the code of cached primitives. So the library
 * stays mapped. */
static struct byoc_backend backend = {
    .struct_size = sizeof(struct byoc_backend),
    .name = "dnnl",
    .patterns = byi_dnnl_patterns,
    .flags = BYOC_BACKEND_USES_OPENMP | BYOC_BACKEND_COPIES_CONSTS |
             BYOC_BACKEND_READS_CODES,
    .probe = probe,
    .layout = layout,
    .compile = compile,
    .check_compat = check_compat,
    .load = load,
    .unload = unload,
    .state_new = state_new,
    .state_free = state_free,
    .run = run,
    .describe = describe,
    .scratch_bytes = scratch_bytes,
};

/* Set the members whose values are not constant expressions. */
static void complete_backend(void)
{
    backend.version = byi_dnnl_version();
    backend.compat = byi_dnnl_compat();
    backend.n_patterns = byi_dnnl_n_patterns;
}

static const struct byoc_backend *query(const struct byoc_host *host, char *why,
                                        uint32_t why_bytes)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct byoc_error err = {0};
    (void)host;
    if (byi_dnnl_open(&err)) {
        pthread_once(&once, complete_backend);
        return &backend;
    }
    if (why_bytes)
        snprintf(why, why_bytes, "%s", err.text);
    return NULL;
}

BYOC_BACKEND_DEFINE(query)
