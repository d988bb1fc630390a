/* SPDX-License-Identifier: Apache-2.0 */
/* qnn_blocks.c: qnn.dense_blocks: products with weights of 4 or 8 bits that
 * have a scale and a zero point for each block, on the kernels of
 * kernels/codes.h.
 *   x (..., K), codes (N, blocks, bytes), scales (N, blocks) -> (..., N)
 * Constant weights are packed once, and never converted to floats as a whole.
 */
#include "kernel.h"

#include "kernels/codes.h"

enum { X, CODES, SCALE, ZERO };

/* The description of a call, and the sizes of the buffers in its scratch. */
struct dense_blocks {
    struct byi_f32_codes codes;
    struct byi_f32_codes_from from;
    int64_t m; /* rows of x */
    uint64_t packed_bytes, x_bytes, y_bytes, scratch_bytes;
};

/* Describe the weights, without reading x, for byi_dense_blocks_pack. */
static struct dense_blocks describe_weights(const struct byi_call *call)
{
    const struct byi_tensor *codes = &call->in[CODES];
    const struct byi_tensor *zero = &call->in[ZERO];
    const bool is_scalar = zero->rank == 0;
    const int64_t size = byi_attr_int(call->attrs, "block_size");
    return (struct dense_blocks){
        .codes = {.kernels = byi_f32_kernels_of(byi_simd_isa()),
                  .bits = (int)byi_attr_int(call->attrs, "bits"),
                  .n = codes->dims[0],
                  .k = codes->dims[1] * size,
                  .block = size},
        .from = {.codes = codes->data,
                 .scales = call->in[SCALE].data,
                 .type = byi_f32_type_of(call->in[SCALE].dtype),
                 .zeros = is_scalar ? NULL : zero->data,
                 .zero = is_scalar && zero->data ? *(const uint8_t *)zero->data
                                                 : 0}};
}

static struct dense_blocks describe(const struct byi_call *call)
{
    const struct byi_tensor *x = &call->in[X];
    struct dense_blocks d = describe_weights(call);
    d.codes.k = x->dims[x->rank - 1];
    d.m = byi_span(x, 0, x->rank - 1);
    if (!call->packed)
        d.packed_bytes = byi_align_bytes(byi_f32_codes_packed(&d.codes));
    if (byi_dtype_is_half(x->dtype)) {
        d.x_bytes =
            byi_align_bytes((uint64_t)(d.m * d.codes.k) * sizeof(float));
        d.y_bytes =
            byi_align_bytes((uint64_t)(d.m * d.codes.n) * sizeof(float));
    }
    d.scratch_bytes = byi_f32_codes_scratch(&d.codes, (int)call->threads);
    return d;
}

static uint64_t dense_blocks_scratch(const struct byi_call *call)
{
    const struct dense_blocks d = describe(call);
    return d.packed_bytes + d.x_bytes + d.y_bytes + d.scratch_bytes;
}

uint64_t byi_dense_blocks_pack(const struct byi_call *call, void *to)
{
    const struct dense_blocks d = describe_weights(call);
    if (to)
        byi_f32_codes_pack(&d.codes, &d.from, to);
    return byi_f32_codes_packed(&d.codes);
}

static enum byoc_status dense_blocks_run(const struct byi_call *call,
                                         struct byoc_error *err)
{
    const struct dense_blocks d = describe(call);
    const struct byi_f32_kernels *k = d.codes.kernels;
    const enum byi_f32_type type = byi_f32_type_of(call->in[X].dtype);
    char *scratch = call->scratch;
    const void *packed = d.packed_bytes ? scratch : call->packed;
    const float *x = call->in[X].data;
    float *y = call->out->data;
    (void)err;
    if (d.packed_bytes)
        byi_f32_codes_pack(&d.codes, &d.from, scratch);
    scratch += d.packed_bytes;
    if (type) {
        float *wide = (float *)(void *)scratch;
        k->widen[type - 1](call->in[X].data, wide, d.m * d.codes.k);
        x = wide;
        y = (float *)(void *)(scratch + d.x_bytes);
    }
    byi_f32_codes_run(&d.codes, packed, d.m, x, y,
                      scratch + d.x_bytes + d.y_bytes, (int)call->threads);
    if (type)
        k->narrow[type - 1](y, call->out->data, d.m * d.codes.n);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(qnn_blocks, {BYI_OP_QNN_DENSE_BLOCKS,
                             {dense_blocks_run, dense_blocks_scratch}})
