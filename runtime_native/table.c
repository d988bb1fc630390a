/* SPDX-License-Identifier: Apache-2.0 */
/* table.c: finds an operator's kernel, and runs a kernel on its own. The search
 * goes through all families: it happens once for each step of a plan, at load,
 * and needs no shared state. */
#include "kernel.h"

static const struct byi_kernel_rows *const families[] = {
#define ROWS_OF(name) &byi_rows_##name,
    BYI_FAMILIES(ROWS_OF)
#undef ROWS_OF
};

const struct byi_kernel *byi_kernel_of(enum byi_op_id op)
{
    const struct byi_kernel *kernel = NULL;
    for (uint32_t f = 0; f < BYI_COUNT(families) && !kernel; f++)
        kernel = byi_kernel_in(families[f], op);
    return kernel;
}

const struct byi_packing *byi_packing_of(enum byi_op_id op)
{
    /* the operands are bit masks: 2 is operand 1, 6 is 1 and 2, 10 is 1 and 3,
     * 14 is 1 to 3 */
    static const struct byi_packing packings[] = {
        {BYI_OP_NN_CONV1D, 2, byi_conv_pack},
        {BYI_OP_NN_CONV2D, 2, byi_conv_pack},
        {BYI_OP_NN_CONV3D, 2, byi_conv_pack},
        {BYI_OP_NN_CONV1D_TRANSPOSE, 2, byi_conv_transpose_pack},
        {BYI_OP_NN_CONV2D_TRANSPOSE, 2, byi_conv_transpose_pack},
        {BYI_OP_NN_CONV3D_TRANSPOSE, 2, byi_conv_transpose_pack},
        {BYI_OP_NN_DENSE, 2, byi_matmul_pack},
        {BYI_OP_NN_MATMUL, 2, byi_matmul_pack},
        {BYI_OP_QNN_CONV1D, 10, byi_qnn_conv_pack},
        {BYI_OP_QNN_CONV2D, 10, byi_qnn_conv_pack},
        {BYI_OP_QNN_CONV3D, 10, byi_qnn_conv_pack},
        {BYI_OP_QNN_MATMUL, 10, byi_qnn_matmul_pack},
        {BYI_OP_QNN_DENSE_BLOCKS, 14, byi_dense_blocks_pack},
        {BYI_OP_GRID_SAMPLE, 2, byi_grid_sample_pack},
        {BYI_OP_ML_MAP, 2, byi_map_pack},
        {BYI_OP_TEXT_TF_IDF, 0, byi_tf_idf_pack},
        {BYI_OP_NN_SPARSE_DENSE, 2, byi_sparse_pack},
        {BYI_OP_NN_SPARSE_CONV2D, 2, byi_sparse_pack},
        {BYI_OP_NN_RNN, 6, byi_recurrent_pack},
        {BYI_OP_NN_GRU, 6, byi_recurrent_pack},
        {BYI_OP_NN_LSTM, 6, byi_recurrent_pack},
    };
    for (uint32_t i = 0; i < BYI_COUNT(packings); i++)
        if (packings[i].op == op)
            return &packings[i];
    return NULL;
}

const char *byi_algorithm_of(const struct byi_call *call)
{
    switch (call->op->cost) {
    case BYI_COST_CONV:
        return call->op->layout == BYI_LAYOUT_SENSITIVE
                   ? byi_conv_algorithm(call)
                   : NULL;
    case BYI_COST_CONV_TRANSPOSE:
        return byi_conv_transpose_algorithm(call);
    case BYI_COST_ATTENTION:
        return byi_attention_algorithm(call);
    case BYI_COST_MATMUL:
        return call->op->id == BYI_OP_NN_DENSE ||
                       call->op->id == BYI_OP_NN_MATMUL
                   ? byi_matmul_algorithm(call)
                   : NULL;
    default:
        return NULL;
    }
}

/* Whether the elements are aligned, as kernels need them. Constants of a mapped
 * model file may be unaligned. */
static bool is_aligned(const struct byi_tensor *t)
{
    const uint32_t size = byoc_dtype_size(t->dtype);
    return size < 2 || (uintptr_t)t->data % (size < 8 ? size : 8) == 0;
}

static uint64_t copy_bytes(uint32_t n_in, const struct byi_tensor *in)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n_in; i++)
        if (!is_aligned(&in[i]))
            bytes += byi_align_bytes(byi_tensor_bytes(&in[i]));
    return bytes ? bytes + byi_align_bytes(n_in * sizeof *in) : 0;
}

/* Write the list of operands to `to`, followed by copies of the unaligned
 * operands, which the list refers to. */
static const struct byi_tensor *align_operands(uint32_t n_in,
                                               const struct byi_tensor *in,
                                               char *to)
{
    struct byi_tensor *list = (struct byi_tensor *)(void *)to;
    to += byi_align_bytes(n_in * sizeof *in);
    for (uint32_t i = 0; i < n_in; i++) {
        list[i] = in[i];
        if (is_aligned(&in[i]))
            continue;
        const uint64_t bytes = byi_tensor_bytes(&in[i]);
        list[i].data = memcpy(to, in[i].data, bytes);
        to += byi_align_bytes(bytes);
    }
    return list;
}

enum byoc_status byoc_internal_kernel_eval(
    const struct byi_op *op, const struct byi_attrs *attrs, uint32_t n_in,
    const struct byi_tensor *in, uint32_t n_out, struct byi_tensor *out,
    uint32_t threads, struct byoc_error *err)
{
    const struct byi_kernel *kernel = byi_kernel_of(op->id);
    if (!kernel)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: this build has no native kernel for the "
                        "operator; offload it to a backend",
                        op->name);

    struct byi_call call = {
        .op = op,
        .attrs = attrs,
        .n_in = n_in,
        .n_out = n_out,
        .in = in,
        .out = out,
        .exact = true,
        .threads = threads ? threads : 1,
    };
    const uint64_t scratch =
        kernel->scratch ? byi_align_bytes(kernel->scratch(&call)) : 0;
    const uint64_t copies = copy_bytes(n_in, in);
    char *memory = NULL;
    if (scratch + copies) {
        memory = byi_acquire(scratch + copies);
        if (!memory)
            return byi_fail(err, BYOC_ENOMEM,
                            "%s: out of memory for %llu bytes of scratch",
                            op->name, (unsigned long long)(scratch + copies));
        call.scratch = memory;
    }
    if (copies)
        call.in = align_operands(n_in, in, memory + scratch);
    const enum byoc_status status = kernel->run(&call, err);
    byi_release(memory);
    return status;
}
