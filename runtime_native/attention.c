/* SPDX-License-Identifier: Apache-2.0 */
/* attention.c: nn.attention, by kernels/attention.h. */
#include "kernels/attention.h"

#include "kernel.h"

enum { Q, K, V, MASK };

/* The strides of operand or result t, whose first `planes->axes` axes are those
 * of planes unless the pitch is 0. Axes of size 1 get stride 0, so that they
 * broadcast. */
static struct byi_f32_strides strides_of(const struct byi_tensor *t,
                                         const struct byi_head_planes *planes)
{
    struct byi_f32_strides s = {0};
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0;) {
        if (planes && planes->pitch && i + 1 == planes->axes)
            stride = (int64_t)(planes->pitch / byoc_dtype_size(t->dtype));
        const int64_t step = t->dims[i] == 1 ? 0 : stride;
        if (i + 1 == t->rank)
            s.column = step;
        else if (i + 2 == t->rank)
            s.row = step;
        else
            s.batch[BYI_F32_BATCH_AXES + 2 + i - t->rank] = step;
        stride *= t->dims[i];
    }
    return s;
}

static struct byi_f32_strides transposed(struct byi_f32_strides s)
{
    const int64_t row = s.row;
    s.row = s.column;
    s.column = row;
    return s;
}

/* The size of an axis of the scores, given the sizes of two operands along it;
 * an operand of size 1 is repeated. */
static int64_t broadcast_size(int64_t a, int64_t b)
{
    return a == 1 ? b : a;
}

/* Describe the cap of the scores, which is two operations, and the masks. */
static void describe_scores(const struct byi_call *call,
                            struct byi_f32_attention *a)
{
    const struct byi_tensor *in = call->in;
    a->zero_nan = byi_attr_int(call->attrs, "zero_nan") != 0;
    if (byi_attr_float(call->attrs, "cap") != 0) {
        a->scores[a->n_scores++].unary = a->kernels->unary[BYI_OP_TANH];
        a->scores[a->n_scores++].binary = a->kernels->binary[BYI_F32_MUL];
    }
    for (uint32_t i = MASK; i < call->n_in; i++) {
        struct byi_f32_score *score = &a->scores[a->n_scores++];
        score->binary = a->kernels->binary[BYI_F32_ADD];
        score->operand = strides_of(&in[i], NULL);
        a->keys = broadcast_size(a->keys, in[i].dims[in[i].rank - 1]);
    }
}

static struct byi_f32_attention describe(const struct byi_call *call,
                                         const struct byi_head_planes *planes)
{
    const struct byi_tensor *in = call->in, *y = call->out;
    const bool transposes = byi_attr_int(call->attrs, "transpose_k") != 0;
    struct byi_f32_attention a = {
        .kernels = byi_f32_kernels_of(byi_simd_isa()),
        .rows = y->dims[y->rank - 2],
        .depth = in[Q].dims[in[Q].rank - 1],
        .keys = in[V].dims[in[V].rank - 2],
        .columns = y->dims[y->rank - 1],
        .q = strides_of(&in[Q], NULL),
        .k = strides_of(&in[K], planes ? &planes[0] : NULL),
        .v = strides_of(&in[V], planes ? &planes[1] : NULL),
        .y = strides_of(y, NULL),
        .type = byi_f32_type_of(y->dtype),
        .scale = (float)byi_attr_float(call->attrs, "scale")};
    if (transposes)
        a.k = transposed(a.k);
    a.keys =
        broadcast_size(a.keys, in[K].dims[in[K].rank - (transposes ? 2 : 1)]);
    describe_scores(call, &a);
    for (int i = 0; i < BYI_F32_BATCH_AXES; i++) {
        const int64_t at = (int64_t)y->rank - 2 + i - BYI_F32_BATCH_AXES;
        a.batch[i] = at < 0 ? 1 : y->dims[at];
    }
    byi_f32_attention_plan(&a);
    return a;
}

void byi_attention_run(const struct byi_call *call,
                       const struct byi_head_planes planes[2])
{
    const struct byi_f32_attention a = describe(call, planes);
    const float cap = (float)byi_attr_float(call->attrs, "cap");
    struct byi_f32_attention_run run = {.attention = &a,
                                        .q = call->in[Q].data,
                                        .k = call->in[K].data,
                                        .v = call->in[V].data,
                                        .y = call->out->data,
                                        .scratch = call->scratch,
                                        .threads = (int)call->threads};
    uint32_t at = 0;
    if (cap != 0) {
        run.operands[1] = &cap;
        at = 2;
    }
    for (uint32_t i = MASK; i < call->n_in; i++)
        run.operands[at++] = call->in[i].data;
    byi_f32_attention_run(&run);
}

const char *byi_attention_algorithm(const struct byi_call *call)
{
    (void)call;
    return byi_f32_kernels_of(byi_simd_isa())->attention_name;
}

static enum byoc_status attention_run(const struct byi_call *call,
                                      struct byoc_error *err)
{
    (void)err;
    byi_attention_run(call, NULL);
    return BYOC_OK;
}

static uint64_t attention_scratch(const struct byi_call *call)
{
    const struct byi_f32_attention a = describe(call, NULL);
    return byi_f32_attention_scratch(&a, (int)call->threads);
}

BYI_KERNEL_ROWS(attention,
                {BYI_OP_NN_ATTENTION, {attention_run, attention_scratch}})
