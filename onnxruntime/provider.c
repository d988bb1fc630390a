/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: implements the entry points of the library, the factory of
 * providers (OrtEpFactory), and the provider of one session (OrtEp).
 */
#include "onnxruntime/provider.h"

#include <stdlib.h>
#include <string.h>

static const char *ORT_API_CALL name_of_ep(const OrtEp *ep)
{
    (void)ep;
    return BYI_EP_NAME;
}

/* --- Compile -------------------------------------------------------------- */

/* Set *names to the names of the values, "" for omitted ones; the list is in
 * `arena`, and the names belong to ONNX Runtime. */
static enum byoc_status read_names(const OrtApi *ort,
                                   const OrtValueInfo *const *values, size_t n,
                                   struct byi_arena *arena,
                                   const char *const **names,
                                   struct byoc_error *err)
{
    const char **out = byi_arena_calloc(arena, n + 1, sizeof *out);
    for (size_t i = 0; i < n; i++) {
        out[i] = "";
        if (values[i])
            BYI_ORT(ort, GetValueInfoName(values[i], &out[i]));
    }
    *names = out;
    return BYOC_OK;
}

/* Write the ledger of a fused node to REPORT/NAME.json. */
static enum byoc_status write_ledger(const struct byi_ep *ep, const char *name,
                                     const struct byi_ep_build *build,
                                     struct byi_arena *arena,
                                     struct byoc_error *err)
{
    if (!ep->options.report_dir || !build->ledger)
        return BYOC_OK;
    char *path =
        byi_arena_printf(arena, "%s/%s.json", ep->options.report_dir, name);
    for (char *c = path + strlen(ep->options.report_dir) + 1; *c; c++)
        if (*c == '/')
            *c = '_';
    return byi_file_write(path, build->ledger, strlen(build->ledger), err);
}

/* Take the model that GetCapability built for these nodes, or build it. */
static enum byoc_status take_build(struct byi_ep *ep,
                                   const struct byi_ep_model *model,
                                   struct byi_ep_build **build,
                                   struct byoc_error *err)
{
    char digest[65];
    byi_ep_model_digest(model, ep->options.artifact_key, false, digest);
    for (struct byi_ep_build **at = &ep->builds; *at; at = &(*at)->next)
        if (strcmp((*at)->digest, digest) == 0) {
            *build = *at;
            *at = (*at)->next;
            byi_adopt(*build);
            return BYOC_OK;
        }
    byi_ep_log(ep, ORT_LOGGING_LEVEL_INFO,
               "byoc: a group differs from the one that was claimed; it is "
               "compiled again");
    return byi_ep_build_new(ep, model, build, err);
}

/* Create the kernel of one fused node. */
static enum byoc_status compile_graph(struct byi_ep *ep, const OrtGraph *graph,
                                      const OrtNode *fused,
                                      struct byi_arena *arena,
                                      OrtNodeComputeInfo **kernel,
                                      struct byoc_error *err)
{
    const OrtApi *ort = ep->ort;
    struct byi_ep_graph g = {.arena = arena,
                             .constant_inputs = ep->options.constant_inputs};
    const char *const *inputs, *const *outputs, *name;
    struct byi_ep_build *build = NULL;
    struct byi_ep_model model;
    size_t n_in, n_out;
    BYI_TRY(byi_ep_graph_read(ort, graph, NULL, 0, &g, err));
    bool *within = byi_arena_calloc(arena, g.n_nodes + 1, sizeof *within);
    memset(within, true, g.n_nodes * sizeof *within);
    BYI_TRY(byi_ep_write_subset(&g, within, &model, err));
    BYI_ORT(ort, Node_GetName(fused, &name));
    BYI_ORT(ort, Node_GetNumInputs(fused, &n_in));
    BYI_ORT(ort, Node_GetNumOutputs(fused, &n_out));
    const OrtValueInfo **values =
        byi_arena_calloc(arena, n_in + n_out + 1, sizeof *values);
    BYI_ORT(ort, Node_GetInputs(fused, values, n_in));
    BYI_ORT(ort, Node_GetOutputs(fused, values + n_in, n_out));
    BYI_TRY(read_names(ort, values, n_in, arena, &inputs, err));
    BYI_TRY(read_names(ort, values + n_in, n_out, arena, &outputs, err));
    BYI_TRY(take_build(ep, &model, &build, err));
    const enum byoc_status status = write_ledger(ep, name, build, arena, err);
    if (status != BYOC_OK) {
        byi_ep_build_free(&build);
        return status;
    }
    return byi_ep_kernel_new(ep, &g, build, inputs, n_in, outputs, n_out,
                             kernel, err);
}

static enum byoc_status compile_guarded(struct byi_ep *ep,
                                        const OrtGraph *graph,
                                        const OrtNode *fused,
                                        OrtNodeComputeInfo **kernel,
                                        struct byoc_error *err)
{
    BYI_BORDER(err);
    struct byi_arena *arena = byi_arena_new();
    const enum byoc_status status =
        compile_graph(ep, graph, fused, arena, kernel, err);
    byi_arena_free(&arena);
    return status;
}

static void free_builds(struct byi_ep *ep)
{
    while (ep->builds) {
        struct byi_ep_build *build = ep->builds;
        ep->builds = build->next;
        byi_ep_build_free(&build);
    }
}

static OrtStatus *ORT_API_CALL compile_graphs(OrtEp *base,
                                              const OrtGraph **graphs,
                                              const OrtNode **fused, size_t n,
                                              OrtNodeComputeInfo **kernels,
                                              OrtNode **ep_context_nodes)
{
    struct byi_ep *ep = (struct byi_ep *)base;
    struct byoc_error err = {0};
    enum byoc_status status = BYOC_OK;
    (void)ep_context_nodes;
    memset(kernels, 0, n * sizeof(OrtNodeComputeInfo *));
    for (size_t i = 0; i < n && status == BYOC_OK; i++)
        status = compile_guarded(ep, graphs[i], fused[i], &kernels[i], &err);
    for (size_t i = 0; i < n && status != BYOC_OK; i++) {
        byi_ep_kernel_free(kernels[i]);
        kernels[i] = NULL;
    }
    return byi_ep_fail(ep->ort, status, &err);
}

static void ORT_API_CALL free_kernels(OrtEp *ep, OrtNodeComputeInfo **kernels,
                                      size_t n)
{
    (void)ep;
    for (size_t i = 0; i < n; i++)
        byi_ep_kernel_free(kernels[i]);
}

/* --- the provider --------------------------------------------------------- */

/* Compile a model of one operator with the options, so that a wrong option
 * fails here. ONNX Runtime passes the message of this failure to the
 * application. */
static enum byoc_status try_options(struct byi_ep *ep, struct byoc_error *err)
{
    static const char model[] = "def @main(%x: Tensor[(1), float32]) {\n"
                                "  nn.relu(%x)\n}\n";
    struct byoc_compile_params params = {.struct_size = sizeof params,
                                         .backends = ep->options.backends};
    struct byoc_compiled *compiled = NULL;
    const enum byoc_status status = byoc_compile_memory(
        model, sizeof model - 1, "options.ir", &params, &compiled, err);
    byoc_compiled_free(&compiled);
    return status;
}

static enum byoc_status fill_ep(struct byi_ep *ep,
                                const OrtSessionOptions *session,
                                struct byoc_error *err)
{
    BYI_BORDER(err);
    ep->arena = byi_arena_new();
    byi_keep(ep->arena);
    BYI_TRY(
        byi_ep_options_read(ep->ort, session, ep->arena, &ep->options, err));
    return try_options(ep, err);
}

static void free_ep(OrtEp *base)
{
    struct byi_ep *ep = (struct byi_ep *)base;
    if (!ep)
        return;
    free_builds(ep);
    byi_arena_free(&ep->arena);
    free(ep);
}

static OrtStatus *new_ep(const struct byi_ep_factory *factory,
                         const OrtSessionOptions *session,
                         const OrtLogger *logger, OrtEp **out)
{
    struct byoc_error err = {0};
    struct byi_ep *ep = byi_alloc(1, sizeof *ep);
    if (!ep)
        return factory->ort->CreateStatus(ORT_FAIL,
                                          "byoc: out of memory for a provider");
    ep->base = (OrtEp){.ort_version_supported = ORT_API_VERSION,
                       .GetName = name_of_ep,
                       .GetCapability = byi_ep_claim,
                       .Compile = compile_graphs,
                       .ReleaseNodeComputeInfos = free_kernels};
    ep->factory = factory;
    ep->ort = factory->ort;
    ep->api = factory->api;
    ep->logger = logger;
    const enum byoc_status status = fill_ep(ep, session, &err);
    if (status != BYOC_OK) {
        free_ep(&ep->base);
        return byi_ep_fail(factory->ort, status, &err);
    }
    *out = &ep->base;
    return NULL;
}

/* --- the factory ---------------------------------------------------------- */

static const char *ORT_API_CALL name_of_factory(const OrtEpFactory *factory)
{
    (void)factory;
    return BYI_EP_NAME;
}

static const char *ORT_API_CALL vendor(const OrtEpFactory *factory)
{
    (void)factory;
    return "byoc";
}

static uint32_t ORT_API_CALL vendor_id(const OrtEpFactory *factory)
{
    (void)factory;
    return 0; /* byoc has no PCI vendor id */
}

static const char *ORT_API_CALL version(const OrtEpFactory *factory)
{
    (void)factory;
    return byoc_version();
}

static OrtStatus *ORT_API_CALL list_devices(
    OrtEpFactory *base, const OrtHardwareDevice *const *devices, size_t n,
    OrtEpDevice **ep_devices, size_t max, size_t *n_ep_devices)
{
    const struct byi_ep_factory *factory = (struct byi_ep_factory *)base;
    *n_ep_devices = 0;
    for (size_t i = 0; i < n && *n_ep_devices < max; i++) {
        if (factory->ort->HardwareDevice_Type(devices[i]) !=
            OrtHardwareDeviceType_CPU)
            continue;
        OrtStatus *status = factory->api->CreateEpDevice(
            base, devices[i], NULL, NULL, &ep_devices[*n_ep_devices]);
        if (status)
            return status;
        ++*n_ep_devices;
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL
create_ep(OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
          const OrtKeyValuePairs *const *metadata, size_t n,
          const OrtSessionOptions *session, const OrtLogger *logger, OrtEp **ep)
{
    (void)devices;
    (void)metadata;
    (void)n;
    return new_ep((struct byi_ep_factory *)factory, session, logger, ep);
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep)
{
    (void)factory;
    free_ep(ep);
}

/* Return no allocator: the provider uses ONNX Runtime's CPU memory. */
static OrtStatus *ORT_API_CALL create_allocator(OrtEpFactory *factory,
                                                const OrtMemoryInfo *info,
                                                const OrtKeyValuePairs *options,
                                                OrtAllocator **allocator)
{
    (void)factory;
    (void)info;
    (void)options;
    *allocator = NULL;
    return NULL;
}

static void ORT_API_CALL release_allocator(OrtEpFactory *factory,
                                           OrtAllocator *allocator)
{
    (void)factory;
    (void)allocator;
}

static OrtStatus *ORT_API_CALL create_transfer(OrtEpFactory *factory,
                                               OrtDataTransferImpl **transfer)
{
    (void)factory;
    *transfer = NULL;
    return NULL;
}

static bool ORT_API_CALL is_stream_aware(const OrtEpFactory *factory)
{
    (void)factory;
    return false;
}

/* --- the library ---------------------------------------------------------- */

/* Minor versions of ONNX Runtime 1.x from which on the provider claims more
 * nodes. */
enum {
    /* The first version known to run fused nodes in bodies. 1.23.2 cannot (pull
     * request 28608 and others fix it); versions between were not tested. */
    FIRST_WITH_BODIES = 30,
    /* The first whose plug-in ABI distinguishes scalars from unknown ranks. */
    FIRST_WITH_SCALARS = 24
};

/* Whether a version such as "1.30.0" is at least 1.MINOR. */
static bool is_at_least(const char *text, long minor)
{
    char *end;
    const long major = strtol(text, &end, 10);
    return major > 1 || (*end == '.' && strtol(end + 1, NULL, 10) >= minor);
}

__attribute__((visibility("default"))) OrtStatus *CreateEpFactories(
    const char *registered_name, const OrtApiBase *base,
    const OrtLogger *default_logger, OrtEpFactory **factories,
    size_t max_factories, size_t *n_factories);
__attribute__((visibility("default"))) OrtStatus *ReleaseEpFactory(
    OrtEpFactory *factory);

OrtStatus *CreateEpFactories(const char *registered_name,
                             const OrtApiBase *base,
                             const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories,
                             size_t *n_factories)
{
    enum { FIRST_TABLE = 1 }; /* the API version that every release has */
    const OrtApi *ort = base->GetApi(ORT_API_VERSION);
    char text[200];
    (void)registered_name;
    (void)default_logger;
    *n_factories = 0;
    if (!ort) {
        snprintf(text, sizeof text,
                 BYI_EP_NAME
                 ": found ONNX Runtime %s, expected 1.%d or newer; update ONNX "
                 "Runtime",
                 base->GetVersionString(), ORT_API_VERSION);
        return base->GetApi(FIRST_TABLE)->CreateStatus(ORT_EP_FAIL, text);
    }
    if (max_factories < 1)
        return ort->CreateStatus(ORT_INVALID_ARGUMENT,
                                 "byoc: the array has no entry for a factory, "
                                 "expected at least one");
    struct byi_ep_factory *factory = byi_alloc(1, sizeof *factory);
    if (!factory)
        return ort->CreateStatus(ORT_FAIL, "byoc: out of memory for a factory");
    factory->base = (OrtEpFactory){.ort_version_supported = ORT_API_VERSION,
                                   .GetName = name_of_factory,
                                   .GetVendor = vendor,
                                   .GetSupportedDevices = list_devices,
                                   .CreateEp = create_ep,
                                   .ReleaseEp = release_ep,
                                   .GetVendorId = vendor_id,
                                   .GetVersion = version,
                                   .CreateAllocator = create_allocator,
                                   .ReleaseAllocator = release_allocator,
                                   .CreateDataTransfer = create_transfer,
                                   .IsStreamAware = is_stream_aware};
    factory->ort = ort;
    factory->fuses_in_bodies =
        is_at_least(base->GetVersionString(), FIRST_WITH_BODIES);
    factory->knows_scalars =
        is_at_least(base->GetVersionString(), FIRST_WITH_SCALARS);
    factory->api = ort->GetEpApi();
    factories[0] = &factory->base;
    *n_factories = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    free(factory);
    return NULL;
}
