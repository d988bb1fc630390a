/* SPDX-License-Identifier: Apache-2.0 */
/* compute.c: runs a built model as a fused node. ONNX Runtime may run the same
 * node on several threads at once. Each run takes a state from a list, or
 * creates one. byoc reads inputs in place. If the sizes of the inputs determine
 * the size of an output, ONNX Runtime allocates the output before the run, and
 * byoc writes to it. Other outputs and strings are copied once.
 */
#include "onnxruntime/provider.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A dim of an output: a number, or equal to a dim of an input. */
struct byi_ep_dim {
    int64_t fixed; /* -1: the dim of `axis` of input `input` */
    uint32_t input, axis;
};

/* An input or output of the model. */
struct byi_ep_port {
    size_t index; /* its index among the fused node's inputs or outputs */
    const struct byoc_io *io;
    DLDataType type;
    size_t bytes;            /* of an input; 0: its size may vary, or it is of
                              * strings */
    struct byi_ep_dim *dims; /* of an output; NULL: unknown before the run */
};

/* The memory of a run; one run at a time uses it. */
struct byi_ep_run {
    struct byi_ep_run *next;
    struct byoc_state *state;
    struct byi_arena *strings;
    DLTensor *in, *out;
    OrtValue **values; /* for each output: allocated before the run, or NULL */
    int64_t (*dims)[BYI_MAX_RANK]; /* of the inputs, then of the outputs */
};

/* The object that runs a fused node. */
struct byi_ep_kernel {
    OrtNodeComputeInfo base;
    const OrtApi *ort;
    struct byi_ep_build *build;
    struct byi_arena *arena;
    uint32_t n_in, n_out;
    struct byi_ep_port *in, *out;
    struct byi_ep_constant_input *constant_inputs;
    uint32_t n_constant_inputs;
    bool has_strings; /* among the inputs */
    pthread_mutex_t lock;
    struct byi_ep_run *idle; /* list of unused runs, guarded by `lock` */
};

/* --- states --------------------------------------------------------------- */

static void free_run(struct byi_ep_run *run)
{
    if (!run)
        return;
    byoc_state_free(&run->state);
    byi_arena_free(&run->strings);
    free(run->in);
    free(run->out);
    free(run->values);
    free(run->dims);
    free(run);
}

/* Create the memory of a run, with a state. Returns NULL and sets *err on
 * failure. */
static struct byi_ep_run *new_run(const struct byi_ep_kernel *k,
                                  struct byoc_error *err)
{
    struct byi_ep_run *run = byi_alloc(1, sizeof *run);
    if (run) {
        run->in = byi_alloc(k->n_in + 1, sizeof *run->in);
        run->out = byi_alloc(k->n_out + 1, sizeof *run->out);
        run->values = byi_alloc(k->n_out + 1, sizeof *run->values);
        run->dims = byi_alloc(k->n_in + k->n_out + 1, sizeof *run->dims);
    }
    if (!run || !run->in || !run->out || !run->values || !run->dims) {
        byi_fail(err, BYOC_ENOMEM, "out of memory for a run");
        free_run(run);
        return NULL;
    }
    if (byoc_state_new(k->build->model, &run->state, err) != BYOC_OK) {
        free_run(run);
        return NULL;
    }
    return run;
}

static struct byi_ep_run *take_run(struct byi_ep_kernel *k,
                                   struct byoc_error *err)
{
    pthread_mutex_lock(&k->lock);
    struct byi_ep_run *run = k->idle;
    if (run)
        k->idle = run->next;
    pthread_mutex_unlock(&k->lock);
    return run ? run : new_run(k, err);
}

static void return_run(struct byi_ep_kernel *k, struct byi_ep_run *run)
{
    pthread_mutex_lock(&k->lock);
    run->next = k->idle;
    k->idle = run;
    pthread_mutex_unlock(&k->lock);
}

/* --- a run ---------------------------------------------------------------- */

/* Read rank and dims of an input, and check its element type; dims[] has room
 * for BYI_MAX_RANK entries. Errors: BYOC_ELIMIT, BYOC_ETYPE. */
static enum byoc_status read_dims(const OrtApi *ort, const OrtValue *value,
                                  const struct byoc_io *io, int64_t *dims,
                                  int32_t *rank, struct byoc_error *err)
{
    OrtTensorTypeAndShapeInfo *info;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t n = 0;
    BYI_ORT(ort, GetTensorTypeAndShape(value, &info));
    OrtStatus *status = ort->GetDimensionsCount(info, &n);
    if (!status)
        status = ort->GetTensorElementType(info, &type);
    if (!status && n <= BYI_MAX_RANK)
        status = ort->GetDimensions(info, dims, n);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    BYI_TRY(byi_ep_status(ort, status, err));
    if (n > BYI_MAX_RANK)
        return byi_fail(err, BYOC_ELIMIT,
                        "input %s has rank %zu, expected at most %d", io->name,
                        n, BYI_MAX_RANK);
    if (byi_ep_dtype(type) != io->dtype)
        return byi_fail(err, BYOC_ETYPE, "input %s is %s, expected %s",
                        io->name, byoc_dtype_name(byi_ep_dtype(type)),
                        byoc_dtype_name(io->dtype));
    *rank = (int32_t)n;
    return BYOC_OK;
}

/* Set *answer to whether the input has the size of its fixed dims. ONNX Runtime
 * has checked type and dims. Unlike read_dims, this does not make ONNX Runtime
 * allocate memory. */
static enum byoc_status has_fixed_size(const OrtApi *ort,
                                       const struct byi_ep_port *port,
                                       const OrtValue *value, bool *answer,
                                       struct byoc_error *err)
{
    size_t bytes = 0;
    if (port->bytes > 0)
        BYI_ORT(ort, GetTensorSizeInBytes(value, &bytes));
    *answer = bytes > 0 && bytes == port->bytes;
    return BYOC_OK;
}

static enum byoc_status bind_input(const struct byi_ep_kernel *k,
                                   struct byi_ep_run *run, uint32_t i,
                                   const OrtKernelContext *context,
                                   struct byoc_error *err)
{
    const struct byi_ep_port *port = &k->in[i];
    DLTensor *t = &run->in[i];
    const OrtApi *ort = k->ort;
    const OrtValue *value = NULL;
    const void *data = NULL;
    bool fixed;
    BYI_ORT(ort, KernelContext_GetInput(context, port->index, &value));
    if (!value)
        return byi_fail(err, BYOC_EINVAL,
                        "input %s has no value, expected a tensor",
                        port->io->name);
    *t = (DLTensor){.device = {kDLCPU, 0},
                    .dtype = port->type,
                    .ndim = (int32_t)port->io->rank,
                    .shape = (int64_t *)port->io->dims};
    BYI_TRY(has_fixed_size(ort, port, value, &fixed, err));
    if (!fixed) {
        t->shape = run->dims[i];
        BYI_TRY(read_dims(ort, value, port->io, t->shape, &t->ndim, err));
    }
    if (port->io->dtype != BYOC_STRING) {
        BYI_ORT(ort, GetTensorData(value, &data));
        t->data = (void *)data;
        return BYOC_OK;
    }
    const int64_t n = byi_elements((uint32_t)t->ndim, run->dims[i]);
    const char **at = byi_arena_calloc(run->strings, (size_t)n + 1, sizeof *at);
    t->data = at;
    return byi_ep_read_strings(ort, value, (size_t)n, run->strings, at, err);
}

/* Let ONNX Runtime allocate an output if its dims are known before the run.
 * Otherwise the state provides the memory, and copy_output copies it. */
static enum byoc_status bind_output(const struct byi_ep_kernel *k,
                                    struct byi_ep_run *run, uint32_t i,
                                    OrtKernelContext *context,
                                    struct byoc_error *err)
{
    const struct byi_ep_port *port = &k->out[i];
    int64_t *dims = run->dims[k->n_in + i];
    const OrtApi *ort = k->ort;
    DLTensor *t = &run->out[i];
    *t = (DLTensor){.device = {kDLCPU, 0}};
    run->values[i] = NULL;
    if (!port->dims || port->io->dtype == BYOC_STRING)
        return BYOC_OK;
    for (uint32_t d = 0; d < port->io->rank; d++) {
        const struct byi_ep_dim *dim = &port->dims[d];
        dims[d] =
            dim->fixed >= 0 ? dim->fixed : run->dims[dim->input][dim->axis];
    }
    BYI_ORT(ort, KernelContext_GetOutput(context, port->index, dims,
                                         port->io->rank, &run->values[i]));
    t->dtype = port->type;
    t->ndim = (int32_t)port->io->rank;
    t->shape = dims;
    BYI_ORT(ort, GetTensorMutableData(run->values[i], &t->data));
    return BYOC_OK;
}

/* Copy an output from the state's memory to memory that ONNX Runtime allocates.
 */
static enum byoc_status copy_output(const struct byi_ep_kernel *k,
                                    const struct byi_ep_run *run, uint32_t i,
                                    OrtKernelContext *context,
                                    struct byoc_error *err)
{
    const struct byi_ep_port *port = &k->out[i];
    const DLTensor *t = &run->out[i];
    const OrtApi *ort = k->ort;
    const int64_t n = byi_elements((uint32_t)t->ndim, t->shape);
    OrtValue *value;
    void *to = NULL;
    BYI_ORT(ort, KernelContext_GetOutput(context, port->index, t->shape,
                                         (size_t)t->ndim, &value));
    if (port->io->dtype == BYOC_STRING) {
        BYI_ORT(ort, FillStringTensor(value, t->data, (size_t)n));
        return BYOC_OK;
    }
    BYI_ORT(ort, GetTensorMutableData(value, &to));
    if (n > 0)
        memcpy(to, (const char *)t->data + t->byte_offset,
               (size_t)n * byoc_dtype_size(port->io->dtype));
    return BYOC_OK;
}

static enum byoc_status run_kernel(struct byi_ep_kernel *k,
                                   struct byi_ep_run *run,
                                   OrtKernelContext *context,
                                   struct byoc_error *err)
{
    BYI_BORDER(err);
    if (!run->strings) {
        struct byi_arena *strings = byi_arena_new();
        byi_keep(strings);
        run->strings = strings;
    }
    if (k->has_strings)
        byi_arena_reset(run->strings);
    BYI_TRY(byi_ep_constant_inputs_check(k->ort, k->constant_inputs,
                                         k->n_constant_inputs, context, err));
    for (uint32_t i = 0; i < k->n_in; i++)
        BYI_TRY(bind_input(k, run, i, context, err));
    for (uint32_t i = 0; i < k->n_out; i++)
        BYI_TRY(bind_output(k, run, i, context, err));
    const OrtKernelContext *outer = byi_ep_threads_enter(context);
    const enum byoc_status status =
        byoc_run(run->state, run->in, k->n_in, run->out, k->n_out, err);
    byi_ep_threads_leave(outer);
    BYI_TRY(status);
    for (uint32_t i = 0; i < k->n_out; i++)
        if (!run->values[i])
            BYI_TRY(copy_output(k, run, i, context, err));
    return BYOC_OK;
}

/* OrtNodeComputeInfo's Compute: runs the node. */
static OrtStatus *ORT_API_CALL compute(OrtNodeComputeInfo *info, void *state,
                                       OrtKernelContext *context)
{
    struct byi_ep_kernel *k = (struct byi_ep_kernel *)info;
    struct byoc_error err = {0};
    (void)state;
    struct byi_ep_run *run = take_run(k, &err);
    if (!run)
        return byi_ep_fail(k->ort, err.status ? err.status : BYOC_ENOMEM, &err);
    const enum byoc_status status = run_kernel(k, run, context, &err);
    return_run(k, run);
    return byi_ep_fail(k->ort, status, &err);
}

/* OrtNodeComputeInfo's CreateState. ONNX Runtime's state is the kernel itself,
 * which owns byoc's states. */
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

/* --- construction --------------------------------------------------------- */

/* Set *index to the index of a name among the fused node's n names. Errors:
 * BYOC_EINTERNAL (it is not among them). */
static enum byoc_status find_index(const char *name, const char *const *names,
                                   size_t n, size_t *index,
                                   struct byoc_error *err)
{
    for (*index = 0; *index < n; ++*index)
        if (strcmp(names[*index], name) == 0)
            return BYOC_OK;
    return byi_fail(err, BYOC_EINTERNAL,
                    "found the input or output '%.200s' of the model, expected "
                    "it among the %zu of the fused node",
                    name, n);
}

/* Set *dim to a dim of an input that is this symbol. Returns false if no input
 * has it. */
static bool find_symbol(const struct byi_ep_kernel *k, const char *symbol,
                        struct byi_ep_dim *dim)
{
    for (uint32_t i = 0; symbol && i < k->n_in; i++) {
        const struct byoc_io *io = k->in[i].io;
        for (uint32_t d = 0; d < io->rank; d++)
            if (io->dims[d] < 0 && io->dim_names[d] &&
                strcmp(io->dim_names[d], symbol) == 0) {
                *dim = (struct byi_ep_dim){-1, i, d};
                return true;
            }
    }
    return false;
}

/* Describe the dims of an output in terms of the inputs' dims. Returns NULL if
 * they are unknown before the run. */
static struct byi_ep_dim *find_dims(const struct byi_ep_kernel *k,
                                    const struct byoc_io *io)
{
    struct byi_ep_dim *dims =
        byi_arena_calloc(k->arena, io->rank + 1, sizeof *dims);
    for (uint32_t d = 0; d < io->rank; d++) {
        dims[d].fixed = io->dims[d];
        if (io->dims[d] < 0 && !find_symbol(k, io->dim_names[d], &dims[d]))
            return NULL;
    }
    return dims;
}

/* The bytes of a tensor whose dims are fixed and that is not of strings;
 * otherwise 0. */
static size_t fixed_bytes(const struct byoc_io *io)
{
    if (io->dtype == BYOC_STRING)
        return 0;
    for (uint32_t d = 0; d < io->rank; d++)
        if (io->dims[d] < 0)
            return 0;
    return (size_t)byi_elements(io->rank, io->dims) *
           byoc_dtype_size(io->dtype);
}

static enum byoc_status fill_kernel(struct byi_ep_kernel *k,
                                    const struct byi_ep_graph *graph,
                                    const char *const *inputs, size_t n_in,
                                    const char *const *outputs, size_t n_out,
                                    struct byoc_error *err)
{
    const struct byoc_model *model = k->build->model;
    k->arena = byi_arena_new();
    byi_keep(k->arena);
    k->n_in = byoc_model_n_inputs(model);
    k->n_out = byoc_model_n_outputs(model);
    k->in = byi_arena_calloc(k->arena, k->n_in + 1, sizeof *k->in);
    k->out = byi_arena_calloc(k->arena, k->n_out + 1, sizeof *k->out);
    for (uint32_t i = 0; i < k->n_in; i++) {
        struct byi_ep_port *port = &k->in[i];
        port->io = byoc_model_input(model, i);
        port->type = byoc_dtype_dlpack(port->io->dtype);
        port->bytes = fixed_bytes(port->io);
        k->has_strings |= port->io->dtype == BYOC_STRING;
        BYI_TRY(find_index(port->io->name, inputs, n_in, &port->index, err));
    }
    for (uint32_t i = 0; i < k->n_out; i++) {
        struct byi_ep_port *port = &k->out[i];
        port->io = byoc_model_output(model, i);
        port->type = byoc_dtype_dlpack(port->io->dtype);
        port->dims = find_dims(k, port->io);
        BYI_TRY(find_index(port->io->name, outputs, n_out, &port->index, err));
    }
    return byi_ep_constant_inputs_list(graph, inputs, n_in, k->arena,
                                       &k->constant_inputs,
                                       &k->n_constant_inputs, err);
}

enum byoc_status byi_ep_kernel_new(struct byi_ep *ep,
                                   const struct byi_ep_graph *graph,
                                   struct byi_ep_build *build,
                                   const char *const *inputs, size_t n_in,
                                   const char *const *outputs, size_t n_out,
                                   OrtNodeComputeInfo **kernel,
                                   struct byoc_error *err)
{
    struct byi_ep_kernel *k = byi_alloc(1, sizeof *k);
    if (!k) {
        byi_ep_build_free(&build);
        return byi_fail(err, BYOC_ENOMEM, "out of memory for a kernel");
    }
    k->base = (OrtNodeComputeInfo){.ort_version_supported = ORT_API_VERSION,
                                   .CreateState = create_state,
                                   .Compute = compute,
                                   .ReleaseState = release_state};
    k->ort = ep->ort;
    k->build = build;
    byi_keep(build);
    pthread_mutex_init(&k->lock, NULL);
    *kernel = &k->base;
    return fill_kernel(k, graph, inputs, n_in, outputs, n_out, err);
}

void byi_ep_kernel_free(OrtNodeComputeInfo *kernel)
{
    struct byi_ep_kernel *k = (struct byi_ep_kernel *)kernel;
    if (!k)
        return;
    while (k->idle) {
        struct byi_ep_run *run = k->idle;
        k->idle = run->next;
        free_run(run);
    }
    byi_ep_build_free(&k->build);
    byi_arena_free(&k->arena);
    pthread_mutex_destroy(&k->lock);
    free(k);
}
