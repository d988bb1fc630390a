/* SPDX-License-Identifier: Apache-2.0 */
/* constant_inputs.c: checks that runs do not replace the values of initializers
 * that are also inputs of the model. With the option initializers=constant
 * these initializers are compiled as constants, and a run that replaces one
 * fails. ONNX Runtime does not report whether a run replaces values. Therefore
 * a run compares the digest of the bytes when their address has changed. As
 * long as no run replaces the values, the address is memory of the session. The
 * caller may also fill the same buffer again, so each run compares samples of
 * the bytes. Reading all weights would take longer than many runs. A value that
 * differs from the model's only between the samples is not noticed. */
#include "onnxruntime/provider.h"

#include <string.h>

enum { N_SAMPLES = 64, SAMPLE_BYTES = 64 /* of one sample */ };

static uint64_t hash_samples(const char *data, size_t bytes)
{
    uint64_t hash = 0;
    if (bytes <= N_SAMPLES * SAMPLE_BYTES)
        return byi_hash(0, data, bytes);
    for (size_t i = 0; i < N_SAMPLES; i++)
        hash =
            byi_hash(hash, data + (bytes - SAMPLE_BYTES) / (N_SAMPLES - 1) * i,
                     SAMPLE_BYTES);
    return hash;
}

static enum byoc_status read_value(const OrtApi *ort, const OrtValue *value,
                                   const void **data, size_t *bytes,
                                   struct byoc_error *err)
{
    BYI_ORT(ort, GetTensorSizeInBytes(value, bytes));
    BYI_ORT(ort, GetTensorData(value, data));
    return BYOC_OK;
}

enum byoc_status byi_ep_constant_inputs_list(
    const struct byi_ep_graph *graph, const char *const *inputs, size_t n_in,
    struct byi_arena *arena, struct byi_ep_constant_input **list, uint32_t *n,
    struct byoc_error *err)
{
    *n = 0;
    *list = byi_arena_calloc(arena, n_in + 1, sizeof **list);
    for (size_t i = 0; i < n_in; i++)
        for (uint32_t v = 0; v < graph->names.n; v++) {
            const struct byi_ep_value *value = &graph->values[v];
            if (!value->is_input || !value->constant ||
                strcmp(value->name, inputs[i]) != 0)
                continue;
            struct byi_ep_constant_input *input = &(*list)[(*n)++];
            input->name = byi_arena_str(arena, inputs[i]);
            input->index = i;
            const void *data;
            size_t bytes;
            BYI_TRY(
                read_value(graph->ort, value->constant, &data, &bytes, err));
            byi_sha256_hex_of(data, bytes, input->digest);
            input->sample_hash = hash_samples(data, bytes);
        }
    return BYOC_OK;
}

static enum byoc_status check_initializer(const OrtApi *ort,
                                          struct byi_ep_constant_input *input,
                                          const OrtKernelContext *context,
                                          struct byoc_error *err)
{
    const OrtValue *value = NULL;
    const void *data = NULL;
    size_t bytes = 0;
    char digest[65];
    BYI_ORT(ort, KernelContext_GetInput(context, input->index, &value));
    if (!value)
        return BYOC_OK;
    BYI_TRY(read_value(ort, value, &data, &bytes, err));
    if (data == atomic_load_explicit(&input->address, memory_order_relaxed) &&
        hash_samples(data, bytes) == input->sample_hash)
        return BYOC_OK;
    byi_sha256_hex_of(data, bytes, digest);
    if (strcmp(digest, input->digest) != 0)
        return byi_fail(err, BYOC_EINVAL,
                        "input %s: found another value than the model's, "
                        "expected the model's value or none, because of the "
                        "option initializers=constant; try "
                        "initializers=replaceable",
                        input->name);
    atomic_store_explicit(&input->address, data, memory_order_relaxed);
    return BYOC_OK;
}

enum byoc_status byi_ep_constant_inputs_check(
    const OrtApi *ort, struct byi_ep_constant_input *list, uint32_t n,
    const OrtKernelContext *context, struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(check_initializer(ort, &list[i], context, err));
    return BYOC_OK;
}
