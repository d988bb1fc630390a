/* SPDX-License-Identifier: Apache-2.0 */
/* bare_provider.c: an execution provider that claims all nodes of a graph. Its
 * kernel lets ONNX Runtime allocate the outputs, then calls bare_call.run(),
 * which does not write to them. In bench/provider.c this function runs byoc. A
 * run takes longer than byoc alone; the difference is the overhead that ONNX
 * Runtime adds to any provider.
 */
#include "bare_provider.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <onnxruntime_c_api.h>

enum { MAX_NODES = 4096 };

/* Return from the function if this call of ONNX Runtime fails. */
#define TRY(call)                                                              \
    do {                                                                       \
        OrtStatus *status_ = ort->call;                                        \
        if (status_)                                                           \
            return status_;                                                    \
    } while (0)

static const OrtApi *ort;
static const OrtEpApi *ep_api;

__attribute__((format(printf, 1, 2))) static OrtStatus *fail(const char *format,
                                                             ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return ort->CreateStatus(ORT_FAIL, text);
}

struct bare_ep {
    OrtEp base;
    const struct bare_call *call;
};

struct bare_kernel {
    OrtNodeComputeInfo base;
    const struct bare_call *call;
    const struct bare_output *out[BARE_MAX_OUTPUTS]; /* in the node's order */
};

/* --- the kernel ----------------------------------------------------------- */

static OrtStatus *ORT_API_CALL create_state(OrtNodeComputeInfo *info,
                                            OrtNodeComputeContext *context,
                                            void **state)
{
    (void)context;
    *state = info;
    return NULL;
}

static void ORT_API_CALL release_state(OrtNodeComputeInfo *info, void *state)
{
    (void)info;
    (void)state;
}

static OrtStatus *ORT_API_CALL compute(OrtNodeComputeInfo *info, void *state,
                                       OrtKernelContext *context)
{
    const struct bare_kernel *k = (struct bare_kernel *)info;
    OrtValue *value;
    (void)state;
    for (size_t i = 0; i < k->call->n_out; i++)
        TRY(KernelContext_GetOutput(context, i, k->out[i]->dims,
                                    k->out[i]->rank, &value));
    k->call->run(k->call->arg);
    return NULL;
}

/* --- the provider --------------------------------------------------------- */

static const char *ORT_API_CALL name_of_ep(const OrtEp *ep)
{
    (void)ep;
    return BARE_NAME;
}

static OrtStatus *ORT_API_CALL claim(OrtEp *ep, const OrtGraph *graph,
                                     OrtEpGraphSupportInfo *info)
{
    const OrtNodeFusionOptions options = {.ort_version_supported =
                                              ORT_API_VERSION,
                                          .drop_constant_initializers = true};
    const OrtNode *nodes[MAX_NODES], *parent;
    size_t n;
    (void)ep;
    TRY(Graph_GetParentNode(graph, &parent));
    TRY(Graph_GetNumNodes(graph, &n));
    if (parent || n == 0) /* the nodes of subgraphs run inside their parents */
        return NULL;
    if (n > MAX_NODES)
        return fail(BARE_NAME ": found a graph of %zu nodes, expected at most "
                              "%d",
                    n, MAX_NODES);
    TRY(Graph_GetNodes(graph, nodes, n));
    return ep_api->EpGraphSupportInfo_AddNodesToFuse(info, nodes, n, &options);
}

static OrtStatus *find_outputs(struct bare_kernel *k, const OrtNode *fused)
{
    const OrtValueInfo *values[BARE_MAX_OUTPUTS];
    size_t n;
    TRY(Node_GetNumOutputs(fused, &n));
    if (n != k->call->n_out)
        return fail(BARE_NAME ": found %zu outputs of the graph, expected %zu",
                    n, k->call->n_out);
    TRY(Node_GetOutputs(fused, values, n));
    for (size_t i = 0; i < n; i++) {
        const char *name;
        TRY(GetValueInfoName(values[i], &name));
        for (size_t j = 0; j < n; j++)
            if (strcmp(k->call->out[j].name, name) == 0)
                k->out[i] = &k->call->out[j];
        if (!k->out[i])
            return fail(BARE_NAME ": found the output \"%s\", expected the "
                                  "outputs that option \"call\" names",
                        name);
    }
    return NULL;
}

static OrtStatus *ORT_API_CALL compile(OrtEp *ep, const OrtGraph **graphs,
                                       const OrtNode **fused, size_t n,
                                       OrtNodeComputeInfo **kernels,
                                       OrtNode **ep_context_nodes)
{
    (void)graphs;
    (void)ep_context_nodes;
    for (size_t i = 0; i < n; i++) {
        struct bare_kernel *k = calloc(1, sizeof *k);
        if (!k)
            return fail(BARE_NAME ": out of memory");
        k->base = (OrtNodeComputeInfo){.ort_version_supported = ORT_API_VERSION,
                                       .CreateState = create_state,
                                       .Compute = compute,
                                       .ReleaseState = release_state};
        k->call = ((struct bare_ep *)ep)->call;
        kernels[i] = &k->base;
        OrtStatus *status = find_outputs(k, fused[i]);
        if (status)
            return status;
    }
    return NULL;
}

static void ORT_API_CALL free_kernels(OrtEp *ep, OrtNodeComputeInfo **kernels,
                                      size_t n)
{
    (void)ep;
    for (size_t i = 0; i < n; i++)
        free(kernels[i]);
}

/* The address that the option "call" gives; NULL if the option is missing. */
static const struct bare_call *read_call(const OrtKeyValuePairs *pairs)
{
    const char *const *keys, *const *values;
    size_t n;
    ort->GetKeyValuePairs(pairs, &keys, &values, &n);
    for (size_t i = 0; i < n; i++)
        if (strcasecmp(keys[i], "ep." BARE_NAME ".call") == 0)
            return (const struct bare_call *)strtoull(values[i], NULL, 10);
    return NULL;
}

static OrtStatus *ORT_API_CALL create_ep(
    OrtEpFactory *factory, const OrtHardwareDevice *const *devices,
    const OrtKeyValuePairs *const *metadata, size_t n,
    const OrtSessionOptions *session, const OrtLogger *logger, OrtEp **out)
{
    OrtKeyValuePairs *pairs;
    (void)factory;
    (void)devices;
    (void)metadata;
    (void)n;
    (void)logger;
    TRY(GetSessionOptionsConfigEntries(session, &pairs));
    const struct bare_call *call = read_call(pairs);
    ort->ReleaseKeyValuePairs(pairs);
    if (!call)
        return fail(BARE_NAME
                    ": found no option \"call\", expected the address "
                    "of a struct bare_call");
    struct bare_ep *ep = calloc(1, sizeof *ep);
    if (!ep)
        return fail(BARE_NAME ": out of memory");
    ep->base = (OrtEp){.ort_version_supported = ORT_API_VERSION,
                       .GetName = name_of_ep,
                       .GetCapability = claim,
                       .Compile = compile,
                       .ReleaseNodeComputeInfos = free_kernels};
    ep->call = call;
    *out = &ep->base;
    return NULL;
}

static void ORT_API_CALL release_ep(OrtEpFactory *factory, OrtEp *ep)
{
    (void)factory;
    free(ep);
}

/* --- the factory ---------------------------------------------------------- */

static const char *ORT_API_CALL name_of_factory(const OrtEpFactory *factory)
{
    (void)factory;
    return BARE_NAME;
}

static const char *ORT_API_CALL version(const OrtEpFactory *factory)
{
    (void)factory;
    return "1.0.0";
}

static uint32_t ORT_API_CALL vendor_id(const OrtEpFactory *factory)
{
    (void)factory;
    return 0;
}

/* Set no allocator: tensors are in ONNX Runtime's own CPU memory. */
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

static OrtStatus *ORT_API_CALL list_devices(
    OrtEpFactory *factory, const OrtHardwareDevice *const *devices, size_t n,
    OrtEpDevice **ep_devices, size_t max, size_t *n_ep_devices)
{
    *n_ep_devices = 0;
    for (size_t i = 0; i < n && *n_ep_devices < max; i++) {
        if (ort->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU)
            continue;
        OrtStatus *status = ep_api->CreateEpDevice(
            factory, devices[i], NULL, NULL, &ep_devices[*n_ep_devices]);
        if (status)
            return status;
        ++*n_ep_devices;
    }
    return NULL;
}

OrtStatus *CreateEpFactories(const char *registered_name,
                             const OrtApiBase *base,
                             const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories,
                             size_t *n_factories);
OrtStatus *ReleaseEpFactory(OrtEpFactory *factory);

OrtStatus *CreateEpFactories(const char *registered_name,
                             const OrtApiBase *base,
                             const OrtLogger *default_logger,
                             OrtEpFactory **factories, size_t max_factories,
                             size_t *n_factories)
{
    static OrtEpFactory factory = {.ort_version_supported = ORT_API_VERSION,
                                   .GetName = name_of_factory,
                                   .GetVendor = name_of_factory,
                                   .GetVendorId = vendor_id,
                                   .GetVersion = version,
                                   .CreateAllocator = create_allocator,
                                   .ReleaseAllocator = release_allocator,
                                   .CreateDataTransfer = create_transfer,
                                   .IsStreamAware = is_stream_aware,
                                   .GetSupportedDevices = list_devices,
                                   .CreateEp = create_ep,
                                   .ReleaseEp = release_ep};
    (void)registered_name;
    (void)default_logger;
    ort = base->GetApi(ORT_API_VERSION);
    *n_factories = 0;
    if (!ort || max_factories < 1)
        return NULL;
    ep_api = ort->GetEpApi();
    factories[0] = &factory;
    *n_factories = 1;
    return NULL;
}

OrtStatus *ReleaseEpFactory(OrtEpFactory *factory)
{
    (void)factory;
    return NULL;
}
