/* SPDX-License-Identifier: Apache-2.0 */
/* epilogue.c: describes the epilogues of native calls for kernels/
 * (epilogue.h). */
#include "epilogue.h"

static const enum byi_f32_binary binaries[BYI_N_OPS] = {
    [BYI_OP_ADD] = BYI_F32_ADD,
    [BYI_OP_SUBTRACT] = BYI_F32_SUB,
    [BYI_OP_MULTIPLY] = BYI_F32_MUL,
    [BYI_OP_DIVIDE] = BYI_F32_DIV,
};

uint32_t byi_epilogue_operands(const struct byi_call *call)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < call->n_epilogue; i++)
        n += byi_epilogue_is_binary(call->epilogue[i].op->id);
    return n;
}

static float attr_of(const struct byi_attrs *attrs, uint32_t i)
{
    return i < attrs->n ? (float)byi_attr_number(&attrs->at[i]) : 0;
}

/* Describe one operator of the epilogue, and how its operand is read: like the
 * result, as one row, or as one number. */
static struct byi_f32_epilogue_op kernel_op_of(
    const struct byi_f32_kernels *kernels, const struct byi_epilogue_op *op,
    const struct byi_tensor *operand, int64_t outputs)
{
    if (!operand)
        return (struct byi_f32_epilogue_op){.unary = kernels->unary[op->op->id],
                                            .p0 = attr_of(op->attrs, 0),
                                            .p1 = attr_of(op->attrs, 1)};
    const int64_t n = byi_count(operand);
    return (struct byi_f32_epilogue_op){
        .binary = kernels->binary[binaries[op->op->id]],
        .row = n == 1 || n == outputs ? 0 : outputs,
        .column = n != 1,
        .repeat = 1};
}

/* Append the operators of the epilogue to conv->epilogue. If `bias`, a leading
 * bias addition sets conv->bias and data->bias instead. */
static void read_epilogue(const struct byi_call *call, bool bias,
                          struct byi_f32_conv *conv,
                          struct byi_epilogue_data *data)
{
    uint32_t at = call->n_in - byi_epilogue_operands(call);
    for (uint32_t i = 0; i < call->n_epilogue; i++) {
        const struct byi_epilogue_op *op = &call->epilogue[i];
        const struct byi_tensor *operand =
            byi_epilogue_is_binary(op->op->id) ? &call->in[at++] : NULL;
        if (bias && i == 0 && op->op->id == BYI_OP_ADD &&
            byi_count(operand) == conv->outputs) {
            conv->bias = true;
            data->bias = operand->data;
            continue;
        }
        struct byi_f32_epilogue_op *to = &conv->epilogue[conv->n_epilogue];
        *to = kernel_op_of(conv->kernels, op, operand, conv->outputs);
        to->operand = conv->n_epilogue;
        data->operands[conv->n_epilogue++] = operand ? operand->data : NULL;
    }
}

void byi_epilogue_read(const struct byi_call *call, bool bias,
                       struct byi_f32_conv *conv,
                       struct byi_epilogue_data *data)
{
    _Static_assert((int)BYI_EPILOGUE_OPS <= (int)BYI_F32_EPILOGUE_OPS,
                   "BYI_F32_EPILOGUE_OPS is too small");
    *data = (struct byi_epilogue_data){0};
    read_epilogue(call, bias, conv, data);
}

enum byoc_status byi_epilogue_check(const struct byi_call *call,
                                    struct byoc_error *err)
{
    if (call->n_epilogue == 0)
        return BYOC_OK;
    const struct byi_tensor *out = call->out;
    const uint32_t axis =
        byi_epilogue_axis(call->op->id, call->attrs, out->rank);
    char found[128], expected[128];
    for (uint32_t i = call->n_in - byi_epilogue_operands(call); i < call->n_in;
         i++) {
        const struct byi_tensor *t = &call->in[i];
        if (byi_epilogue_is_row(t->rank, t->dims, out->rank, out->dims, axis) ||
            (axis + 1 == out->rank &&
             byi_dims_equal(t->rank, t->dims, out->rank, out->dims)))
            continue;
        return byi_fail(
            err, BYOC_ETYPE,
            "%s: operand %u has shape %s, expected the result's "
            "shape %s, its channels, or one element; check the "
            "inputs' shapes",
            call->op->name, i,
            byi_dims_text(found, sizeof found, t->rank, t->dims),
            byi_dims_text(expected, sizeof expected, out->rank, out->dims));
    }
    return BYOC_OK;
}

void byi_epilogue_set_row(const struct byi_f32_conv *conv,
                          const struct byi_epilogue_data *data, int64_t row,
                          struct byi_f32_conv_run *run)
{
    run->bias = data->bias;
    for (uint32_t i = 0; i < conv->n_epilogue; i++)
        run->operands[i] = data->operands[i]
                               ? data->operands[i] + row * conv->epilogue[i].row
                               : NULL;
}

/* Apply the epilogue to a result whose channels are not last. All elements of a
 * plane, which belongs to one channel, have the same operands. */
static void apply_planes(const struct byi_call *call, int64_t channels)
{
    const int64_t n = byi_count(call->out);
    const int64_t planes = call->out->dims[0] * channels;
    struct byi_f32_conv conv = {.kernels = byi_f32_kernels_of(byi_simd_isa()),
                                .outputs = channels};
    struct byi_epilogue_data data = {0};
    read_epilogue(call, false, &conv, &data);
    bool has_row[BYI_F32_EPILOGUE_OPS] = {false};
    for (uint32_t k = 0; k < conv.n_epilogue; k++) {
        has_row[k] = conv.epilogue[k].column;
        conv.epilogue[k].column = 0;
    }
    conv.outputs = n / planes;
    const int team = byi_team(call, n * call->n_epilogue);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < planes; i++) {
        struct byi_f32_conv_run run = {
            .conv = &conv, .y = (float *)call->out->data + i * conv.outputs};
        for (uint32_t k = 0; k < conv.n_epilogue; k++)
            run.operands[k] = data.operands[k] && has_row[k]
                                  ? data.operands[k] + i % channels
                                  : data.operands[k];
        byi_f32_epilogue_run(&run, 0, 0, 1, 0, conv.outputs);
    }
}

void byi_epilogue_apply(const struct byi_call *call, int64_t columns)
{
    const uint32_t rank = call->out->rank;
    if (call->n_epilogue && byi_count(call->out) &&
        byi_epilogue_axis(call->op->id, call->attrs, rank) + 1 < rank) {
        apply_planes(call, columns);
        return;
    }
    /* treat one column as one row, whose loop is vectorised */
    const int64_t n = byi_count(call->out);
    const bool is_column = columns == 1;
    struct byi_f32_conv conv = {.kernels = byi_f32_kernels_of(byi_simd_isa()),
                                .outputs = is_column ? n : columns};
    struct byi_epilogue_data data = {0};
    struct byi_f32_conv_run run = {.conv = &conv, .y = call->out->data};
    const int64_t rows = columns ? n / columns : 0;
    if (call->n_epilogue == 0 || rows == 0)
        return;
    read_epilogue(call, false, &conv, &data);
    byi_epilogue_set_row(&conv, &data, 0, &run);
    const int team = byi_team(call, n * call->n_epilogue);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++) {
        const int64_t begin = rows * i / team, end = rows * (i + 1) / team;
        if (is_column)
            byi_f32_epilogue_run(&run, 0, 0, 1, begin, end - begin);
        else
            byi_f32_epilogue_run(&run, 0, begin, end - begin, 0, columns);
    }
}
