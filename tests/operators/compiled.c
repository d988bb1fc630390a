/* SPDX-License-Identifier: Apache-2.0 */
/* compiled.c: runs a model as a user would: imports it, runs every pass, and
 * executes it on native kernels or a backend.
 */
#include "fuzz.h"

#include "byoc/byoc.h"

#include <string.h>

/* Copy a result and its strings to the arena: the state that owns them is freed
 * before the results are compared. */
static void copy_result(const DLTensor *from, enum byoc_dtype dtype,
                        struct byi_arena *arena, struct byi_tensor *to)
{
    *to = (struct byi_tensor){.dtype = dtype, .rank = (uint32_t)from->ndim};
    if (to->rank > 0)
        memcpy(to->dims, from->shape, to->rank * sizeof *to->dims);
    const size_t bytes = (size_t)byi_tensor_bytes(to);
    to->data = byi_arena_alloc(arena, bytes + 8);
    if (bytes)
        memcpy(to->data, from->data, bytes);
    if (to->dtype != BYOC_STRING)
        return;
    for (int64_t i = 0; i < byi_elements(to->rank, to->dims); i++) {
        const char **at = (const char **)to->data;
        at[i] = byi_arena_str(arena, at[i]);
    }
}

static enum byoc_status run(const struct byoc_model *model,
                            const struct byi_tensor *inputs, uint32_t n_inputs,
                            struct byi_arena *arena, struct byi_tensor *out,
                            uint32_t *n_out, struct byoc_error *err)
{
    struct byoc_state *state = NULL;
    DLTensor in[MAX_OPERANDS], found[MAX_RESULTS] = {0};

    *n_out = byoc_model_n_outputs(model);
    BYI_TRY(byoc_state_new(model, &state, err));
    for (uint32_t i = 0; i < n_inputs; i++)
        in[i] = (DLTensor){.data = inputs[i].data,
                           .device = {kDLCPU, 0},
                           .ndim = (int)inputs[i].rank,
                           .dtype = byoc_dtype_dlpack(inputs[i].dtype),
                           .shape = (int64_t *)(uintptr_t)inputs[i].dims};
    const enum byoc_status status =
        byoc_run(state, in, n_inputs, found, *n_out, err);
    for (uint32_t i = 0; i < *n_out && status == BYOC_OK; i++)
        copy_result(&found[i], byoc_model_output(model, i)->dtype, arena,
                    &out[i]);
    byoc_state_free(&state);
    return status;
}

enum byoc_status compiled_run(const char *path, struct draw *d,
                              const struct byi_tensor *inputs,
                              uint32_t n_inputs, struct byi_tensor *out,
                              uint32_t *n_out, struct byoc_error *err)
{
    static const char *const none[] = {NULL};
    const char *plugins = plugin_now ? plugin_now : "";
    const struct byoc_compile_params params = {.backends =
                                                   plugin_now ? NULL : none,
                                               .plugins = plugins,
                                               .keep_nan = any_nan(d)};
    const struct byoc_load_params load = {.threads = 1, .plugins = plugins};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    enum byoc_status status = byoc_compile(path, &params, &compiled, err);

    if (status == BYOC_OK)
        status = byoc_compiled_load(compiled, &load, &model, err);
    if (status == BYOC_OK)
        status = run(model, inputs, n_inputs, d->arena, out, n_out, err);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
    return status;
}
