/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/prim_fast.c: creates primitives that byoc's own kernels run
 * (kernels/). These are convolutions and products of float32, float16 and
 * bfloat16, and recurrent layers of float32, with constant weights. They have
 * the same interface as oneDNN's: arguments, packed weights, scratch memory. */
#include "runtime_dnnl/prim_fast.h"

#include <string.h>

#include "core/base/openmp.h"

bool byi_dn_is_dense_last(const struct byi_desc *desc, enum byoc_dtype dtype)
{
    int64_t stride = 1;
    if (desc->kind != BYI_DESC_STRIDED || desc->dtype != dtype)
        return false;
    for (uint32_t n = 0; n < desc->rank; n++) {
        /* axes from the innermost one: 1, then the last to the second, then 0
         */
        const uint32_t axis = n == 0               ? 1
                              : n < desc->rank - 1 ? desc->rank - n
                                                   : 0;
        if (desc->dims[axis] != 1 && desc->strides[axis] != stride)
            return false;
        stride *= desc->dims[axis];
    }
    return true;
}

/* --- epilogues ------------------------------------------------------------ */

/* The operator that computes an elementwise post-op; BYI_OP_NONE if these
 * kernels have none. Sets to->p0 and to->p1 to the operator's parameters. */
static enum byi_op_id translate_elt(const struct byi_post *post,
                                    struct byi_f32_epilogue_op *to)
{
    static const enum byi_op_id ops[] = {
        [BYI_ELT_RELU] = BYI_OP_NN_LEAKY_RELU,
        [BYI_ELT_CLIP] = BYI_OP_CLIP,
        [BYI_ELT_ABS] = BYI_OP_ABS,
        [BYI_ELT_ELU] = BYI_OP_NN_ELU,
        [BYI_ELT_EXP] = BYI_OP_EXP,
        [BYI_ELT_GELU_ERF] = BYI_OP_NN_GELU,
        [BYI_ELT_GELU_TANH] = BYI_OP_NN_GELU,
        [BYI_ELT_HARDSIGMOID] = BYI_OP_NN_HARD_SIGMOID,
        [BYI_ELT_HARDSWISH] = BYI_OP_NN_HARD_SWISH,
        [BYI_ELT_MISH] = BYI_OP_NN_MISH,
        [BYI_ELT_SIGMOID] = BYI_OP_SIGMOID,
        [BYI_ELT_SOFTPLUS] = BYI_OP_NN_SOFTPLUS,
        [BYI_ELT_SQRT] = BYI_OP_SQRT,
        [BYI_ELT_SWISH] = BYI_OP_NN_SILU,
        [BYI_ELT_TANH] = BYI_OP_TANH,
    };
    const bool gelu =
        post->alg == BYI_ELT_GELU_ERF || post->alg == BYI_ELT_GELU_TANH;
    to->p0 = gelu ? post->alg == BYI_ELT_GELU_TANH : post->alpha;
    to->p1 = post->beta;
    if (post->alg == BYI_ELT_RELU && post->alpha == 0)
        return BYI_OP_NN_RELU;
    if (post->alg == BYI_ELT_SWISH && post->alpha != 1)
        return BYI_OP_NONE;
    return (size_t)post->alg < BYI_COUNT(ops) ? ops[post->alg] : BYI_OP_NONE;
}

/* Find how to read the operand of a binary post-op by position and channel of
 * the result `dst`. Both have the channel in axis 1; for a product, that is the
 * last of two axes. False if the kernels cannot read it. */
static bool read_operand(const struct byi_desc *dst,
                         const struct byi_desc *desc,
                         struct byi_f32_epilogue_op *to)
{
    bool whole = true, image = true, vector = true, position = true;
    int64_t positions = 1;
    if (desc->kind != BYI_DESC_STRIDED || desc->dtype != dst->dtype ||
        desc->rank != dst->rank)
        return false;
    for (uint32_t i = 0; i < dst->rank; i++) {
        const bool equal = desc->dims[i] == dst->dims[i],
                   is_one = desc->dims[i] == 1;
        if (i >= 2)
            positions *= dst->dims[i];
        whole &= equal;
        vector &= i == 1 ? equal : is_one;
        image &= i < 2 ? equal : is_one;
        position &= i == 1 ? is_one : equal;
    }
    to->repeat = 1;
    to->column = 1;
    if (whole && byi_dn_is_dense_last(desc, dst->dtype)) {
        to->row = dst->dims[1];
        return true;
    }
    to->column = desc->dims[1] != 1;
    if (vector && (!to->column || desc->strides[1] == 1))
        return true; /* one row for all positions: row stays 0 */
    if (image && (!to->column || desc->strides[1] == 1)) {
        to->repeat = positions;
        to->row = desc->strides[0];
        return true;
    }
    to->row = 1;
    return position && byi_dn_is_dense_last(desc, dst->dtype);
}

/* Whether the next two post-ops compute clip(alpha x + beta, 0, 1), which
 * stands for hard_sigmoid in versions of oneDNN that lack it. */
static bool is_hard_sigmoid(const struct byi_post *post, uint32_t n)
{
    return n > 1 && post[0].kind == BYI_POST_ELT &&
           post[0].alg == BYI_ELT_LINEAR && post[1].kind == BYI_POST_ELT &&
           post[1].alg == BYI_ELT_CLIP && post[1].alpha == 0 &&
           post[1].beta == 1;
}

enum byi_f32_binary byi_dn_fast_binary(const struct byi_post *post)
{
    static const enum byi_f32_binary binaries[] = {
        [BYI_BIN_ADD] = BYI_F32_ADD, [BYI_BIN_SUB] = BYI_F32_SUB,
        [BYI_BIN_MUL] = BYI_F32_MUL, [BYI_BIN_DIV] = BYI_F32_DIV,
        [BYI_BIN_MAX] = BYI_F32_MAX, [BYI_BIN_MIN] = BYI_F32_MIN};
    return binaries[post->alg];
}

uint32_t byi_dn_fast_unary(const struct byi_posts *posts, uint32_t first,
                           struct byi_f32_epilogue_op *to)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    const struct byi_post *post = &posts->at[first];
    if (is_hard_sigmoid(post, posts->n - first)) {
        to->p0 = post->alpha;
        to->p1 = post->beta;
        to->unary = kernels->unary[BYI_OP_NN_HARD_SIGMOID];
        return 2;
    }
    to->unary = kernels->unary[translate_elt(post, to)];
    return to->unary ? 1 : 0;
}

bool byi_dn_fast_posts(const struct byi_posts *posts,
                       const struct byi_desc *dst, struct byi_dn_fast *fast)
{
    const struct byi_f32_kernels *kernels = byi_f32_kernels();
    struct byi_f32_conv *conv = &fast->conv;
    const uint32_t n = posts ? posts->n : 0;
    if (n > BYI_F32_EPILOGUE_OPS)
        return false;
    conv->n_epilogue = 0;
    for (uint32_t i = 0, read = 1; i < n; i += read) {
        const struct byi_post *post = &posts->at[i];
        struct byi_f32_epilogue_op *to = &conv->epilogue[conv->n_epilogue++];
        to->operand = i;
        read = 1;
        switch (post->kind) {
        case BYI_POST_SUM: /* dst is read before it is written */
            if (i > 0)
                return false;
            fast->sums = true;
            to->binary = kernels->binary[BYI_F32_ADD];
            to->row = dst->dims[1];
            to->column = to->repeat = 1;
            break;
        case BYI_POST_ELT:
            read = byi_dn_fast_unary(posts, i, to);
            if (!read)
                return false;
            break;
        case BYI_POST_BIN:
            to->binary = kernels->binary[byi_dn_fast_binary(post)];
            if (!read_operand(dst, &post->desc, to))
                return false;
            break;
        case BYI_POST_PRELU:
            to->binary = kernels->binary[BYI_F32_PRELU];
            if (!read_operand(dst, &post->desc, to))
                return false;
            break;
        }
    }
    return true;
}

/* --- kinds --------------------------------------------------------------- */

static const char *conv_name(const struct byi_dn_fast *fast)
{
    return byi_f32_conv_name(&fast->conv);
}

static uint64_t conv_scratch(const struct byi_dn_fast *fast)
{
    return byi_f32_conv_scratch(&fast->conv, fast->threads);
}

static uint64_t conv_packed(const struct byi_dn_fast *fast, int arg)
{
    (void)arg;
    return byi_f32_conv_packed(&fast->conv);
}

static void pack_conv(const struct byi_dn_fast *fast, int arg,
                      const struct byi_desc *src, const void *from, void *to)
{
    /* axes: groups if there are several, outputs, channels, taps */
    const bool product = src->rank == 2, groups = fast->conv.groups > 1;
    const uint32_t n = src->rank - 2 - groups, skip = BYI_F32_AXES - n;
    struct byi_f32_weights weights = {.at = from,
                                      .group = src->strides[0],
                                      .output = src->strides[product + groups],
                                      .channel =
                                          src->strides[!product + groups]};
    for (uint32_t i = 0; i < n; i++)
        weights.tap[skip + i] = src->strides[src->rank - n + i];
    (void)arg;
    byi_f32_conv_pack(&fast->conv, &weights, to, fast->threads);
}

static bool convs_pack_alike(const struct byi_dn_fast *a,
                             const struct byi_dn_fast *b)
{
    return byi_f32_conv_packs_alike(&a->conv, &b->conv);
}

void byi_dn_fast_fill(const struct byi_dn_fast *fast, uint32_t n,
                      const struct byi_dn_fast_slot *slots,
                      struct byi_f32_conv_run *run)
{
    *run = (struct byi_f32_conv_run){
        .conv = &fast->conv,
        .x = byi_dn_fast_find(n, slots, BYI_ARG_SRC),
        .weights = byi_dn_fast_find(n, slots, BYI_ARG_WEIGHTS),
        .bias = byi_dn_fast_find(n, slots, BYI_ARG_BIAS),
        .y = byi_dn_fast_find(n, slots, BYI_ARG_DST)};
    byi_f32_binary_fn *const prelu = fast->conv.kernels->binary[BYI_F32_PRELU];
    for (uint32_t i = 0; i < fast->conv.n_epilogue; i++) {
        const uint32_t at = fast->conv.epilogue[i].operand;
        const bool is_prelu = fast->conv.epilogue[i].binary == prelu;
        run->operands[at] =
            fast->sums && at == 0
                ? run->y
                : byi_dn_fast_find(n, slots,
                                   (is_prelu ? BYI_ARG_SLOPE : BYI_ARG_POST) +
                                       (int)at);
    }
}

static bool conv_reads(const struct byi_dn_fast *fast, int arg,
                       const struct byi_desc *desc)
{
    return arg == BYI_ARG_WEIGHTS && byi_f32_conv_reads_in_place(&fast->conv) &&
           desc->kind == BYI_DESC_STRIDED &&
           byi_f32_type_of(desc->dtype) == fast->conv.weight_type &&
           desc->rank == 2 &&
           desc->strides[1] == fast->conv.weight_strides[0] &&
           desc->strides[0] == fast->conv.weight_strides[1];
}

static void run_conv(const struct byi_dn_fast *fast, uint32_t n,
                     const struct byi_dn_fast_slot *slots, void *scratch,
                     int threads)
{
    struct byi_f32_conv_run run;
    byi_dn_fast_fill(fast, n, slots, &run);
    run.scratch = scratch;
    run.threads = threads;
    struct byi_f32_source sources[BYI_MAX_GATHERED];
    for (uint32_t i = 0; i < fast->n_gathered; i++)
        sources[i] = (struct byi_f32_source){
            byi_dn_fast_find(n, slots, BYI_ARG_MULTI + (int)i),
            fast->source_channels[i]};
    if (fast->n_gathered) {
        run.x = sources[0].x;
        run.sources = sources;
        run.n_sources = fast->n_gathered;
        run.scale = byi_dn_fast_find(n, slots, BYI_ARG_SCALE);
        run.shift = byi_dn_fast_find(n, slots, BYI_ARG_SHIFT);
    }
    byi_f32_conv_run(&run);
}

static const struct byi_dn_fast_kind conv_kind = {
    .name = conv_name,
    .scratch = conv_scratch,
    .packed = conv_packed,
    .pack = pack_conv,
    .packs_alike = convs_pack_alike,
    .reads = conv_reads,
    .run = run_conv,
};

static const char *recurrent_name(const struct byi_dn_fast *fast)
{
    return fast->recurrent.kernels->recurrent_name;
}

static uint64_t recurrent_scratch(const struct byi_dn_fast *fast)
{
    return byi_f32_recurrent_scratch(&fast->recurrent, fast->threads);
}

static uint64_t recurrent_packed(const struct byi_dn_fast *fast, int arg)
{
    return byi_f32_recurrent_packed(&fast->recurrent, arg == BYI_ARG_RECURRENT);
}

/* weights (1, D, rows, gates, units) */
static void pack_recurrent(const struct byi_dn_fast *fast, int arg,
                           const struct byi_desc *src, const void *from,
                           void *to)
{
    byi_f32_recurrent_pack(&fast->recurrent, arg == BYI_ARG_RECURRENT, from,
                           src->strides + 1, to);
}

static bool recurrents_pack_alike(const struct byi_dn_fast *a,
                                  const struct byi_dn_fast *b)
{
    return byi_f32_recurrent_packs_alike(&a->recurrent, &b->recurrent);
}

static void run_recurrent(const struct byi_dn_fast *fast, uint32_t n,
                          const struct byi_dn_fast_slot *slots, void *scratch,
                          int threads)
{
    const struct byi_f32_recurrent_run run = {
        .layer = &fast->recurrent,
        .x = byi_dn_fast_find(n, slots, BYI_ARG_SRC),
        .weights = byi_dn_fast_find(n, slots, BYI_ARG_WEIGHTS),
        .recurrent = byi_dn_fast_find(n, slots, BYI_ARG_RECURRENT),
        .bias = byi_dn_fast_find(n, slots, BYI_ARG_BIAS),
        .h = byi_dn_fast_find(n, slots, BYI_ARG_SRC_H),
        .c = byi_dn_fast_find(n, slots, BYI_ARG_SRC_C),
        .y = byi_dn_fast_find(n, slots, BYI_ARG_DST),
        .y_h = byi_dn_fast_find(n, slots, BYI_ARG_DST_H),
        .y_c = byi_dn_fast_find(n, slots, BYI_ARG_DST_C),
        .scratch = scratch,
        .threads = threads};
    byi_f32_recurrent_run(&run);
}

static const struct byi_dn_fast_kind recurrent_kind = {
    .name = recurrent_name,
    .scratch = recurrent_scratch,
    .packed = recurrent_packed,
    .pack = pack_recurrent,
    .packs_alike = recurrents_pack_alike,
    .run = run_recurrent,
};

/* --- descriptors ---------------------------------------------------------- */

/* Whether the tensor is dense and row-major. */
static bool is_row_major(const struct byi_desc *desc)
{
    return desc->kind == BYI_DESC_STRIDED && byi_dn_is_row_major(desc);
}

static bool is_row_major_f32(const struct byi_desc *desc)
{
    return desc->dtype == BYOC_F32 && is_row_major(desc);
}

/* Whether all tensors have the same type of floats, and the result is
 * channels-last. */
static bool have_float_type(const struct byi_desc *src,
                            const struct byi_desc *weights,
                            const struct byi_desc *bias,
                            const struct byi_desc *dst)
{
    const enum byoc_dtype dtype = src->dtype;
    return byi_dn_is_float(dtype) && weights->dtype == dtype &&
           byi_dn_is_dense_last(dst, dtype) &&
           (bias->kind == BYI_DESC_ABSENT || bias->dtype == dtype);
}

/* Read the sources that a pointwise convolution gathers. Returns false if the
 * convolution does not read every position exactly once. */
static bool read_gather(const struct byi_dnnl_conv *p, struct byi_dn_fast *fast)
{
    const struct byi_dnnl_gather *g = &p->gather;
    struct byi_f32_conv *conv = &fast->conv;
    const bool scales = g->n == 1 && g->scale.kind != BYI_DESC_ABSENT &&
                        g->shift.kind == BYI_DESC_ABSENT && !g->relu;
    if (g->n > BYI_MAX_GATHERED || conv->groups != 1 ||
        (conv->type && !scales) || byi_f32_product_of(conv->size) != 1 ||
        memcmp(conv->in, conv->out, sizeof conv->in) != 0)
        return false;
    for (int i = 0; i < BYI_F32_AXES; i++)
        if (conv->stride[i] != 1 || conv->pad[i] != 0)
            return false;
    fast->n_gathered = g->n;
    memcpy(fast->source_channels, g->channels, sizeof fast->source_channels);
    conv->gathers = !conv->type;
    conv->rectifies = g->relu;
    conv->scales = scales;
    if (g->scale.kind != BYI_DESC_ABSENT && g->scale.dims[0] > 1)
        conv->scale_image = conv->channels;
    return true;
}

static bool read_conv(const struct byi_dnnl_conv *p, struct byi_f32_conv *conv)
{
    const struct byi_dnnl_window *w = &p->window;
    const uint32_t n = w->n, skip = BYI_F32_AXES - n;
    const bool grouped = p->weights.rank == n + 3;
    conv->transposed = p->deconv;
    if (n > BYI_F32_AXES || p->weights.kind != BYI_DESC_ANY ||
        !have_float_type(&p->src, &p->weights, &p->bias, &p->dst))
        return false;
    conv->type = byi_f32_type_of(p->src.dtype);
    conv->images = p->src.dims[0];
    conv->channels = p->src.dims[1];
    conv->outputs = p->dst.dims[1];
    conv->groups = grouped ? p->weights.dims[0] : 1;
    for (uint32_t i = 0; i < BYI_F32_AXES; i++) {
        conv->in[i] = conv->out[i] = conv->size[i] = 1;
        conv->stride[i] = conv->dilation[i] = 1;
    }
    for (uint32_t i = 0; i < n; i++) {
        conv->in[skip + i] = p->src.dims[2 + i];
        conv->out[skip + i] = p->dst.dims[2 + i];
        conv->size[skip + i] = w->kernel[i];
        conv->stride[skip + i] = w->stride[i];
        conv->dilation[skip + i] = w->dilation[i];
        conv->pad[skip + i] = w->begin[i];
        if (w->begin[i] < 0)
            return false;
    }
    conv->bias = p->bias.kind != BYI_DESC_ABSENT;
    /* one channel has both layouts; with several, a channels-first source is
     * the caller's choice */
    const bool last = byi_dn_is_dense_last(&p->src, p->src.dtype);
    conv->planar = is_row_major(&p->src) && !p->banded &&
                   byi_f32_planar_suits(conv) &&
                   (!last || byi_f32_planar_pays(conv));
    return conv->planar || last;
}

static bool read_matmul(const struct byi_dnnl_matmul *p,
                        struct byi_f32_conv *conv)
{
    if (p->weights.kind != BYI_DESC_ANY || p->weights.rank != 2 ||
        p->src.rank != 2 || p->dst.rank != 2 ||
        !byi_dn_is_dense_last(&p->src, p->src.dtype) ||
        !have_float_type(&p->src, &p->weights, &p->bias, &p->dst))
        return false;
    *conv = (struct byi_f32_conv){
        .images = p->src.dims[0],
        .in = {1, 1, 1},
        .out = {1, 1, 1},
        .channels = p->src.dims[1],
        .outputs = p->dst.dims[1],
        .groups = 1,
        .size = {1, 1, 1},
        .stride = {1, 1, 1},
        .dilation = {1, 1, 1},
        .weight_strides = {p->weights.strides[1], p->weights.strides[0]},
        .bias = p->bias.kind != BYI_DESC_ABSENT,
        .type = byi_f32_type_of(p->src.dtype),
        .weight_type = byi_f32_type_of(p->weights.dtype)};
    return true;
}

/* Read the post-ops, and plan the convolution or product. False if these
 * kernels lack a post-op. */
static bool plan_conv(const struct byi_posts *posts, const struct byi_desc *dst,
                      bool exact, struct byi_dn_fast *fast)
{
    if (byi_elements(dst->rank, dst->dims) <= 0 ||
        !byi_dn_fast_posts(posts, dst, fast))
        return false;
    fast->threads = omp_get_max_threads();
    byi_f32_conv_plan(&fast->conv, exact);
    return true;
}

/* Read and plan a convolution, without a comparison with oneDNN. */
static bool describe_conv(const struct byi_dnnl_conv *p,
                          const struct byi_posts *posts,
                          struct byi_dn_fast *fast)
{
    *fast = (struct byi_dn_fast){.kind = &conv_kind};
    return read_conv(p, &fast->conv) &&
           (p->gather.n == 0 || read_gather(p, fast)) &&
           plan_conv(posts, &p->dst, p->exact, fast);
}

bool byi_dn_fast_conv(const struct byi_dnnl_conv *p,
                      const struct byi_posts *posts, struct byi_dn_fast *fast)
{
    return describe_conv(p, posts, fast) &&
           ((p->banded && fast->conv.type == BYI_F32_WIDE) ||
            byi_f32_conv_pays(&fast->conv));
}

bool byi_dn_own_conv(const struct byi_dnnl_conv *p,
                     const struct byi_posts *posts, struct byi_dn_fast *fast)
{
    return describe_conv(p, posts, fast) && byi_f32_conv_runs(&fast->conv);
}

bool byi_dn_fast_matmul(const struct byi_dnnl_matmul *p,
                        const struct byi_posts *posts, struct byi_dn_fast *fast)
{
    *fast = (struct byi_dn_fast){.kind = &conv_kind};
    return read_matmul(p, &fast->conv) &&
           plan_conv(posts, &p->dst, true, fast) &&
           byi_f32_conv_pays(&fast->conv);
}

bool byi_dn_fast_bands(uint32_t n, const struct byi_dn_fast *const *fast,
                       struct byi_f32_bands *bands)
{
    if (n < 2 || n > BYI_F32_MAX_BAND_CONVS)
        return false;
    *bands = (struct byi_f32_bands){.n = n};
    for (uint32_t i = 0; i < n; i++) {
        if (!fast[i] || fast[i]->kind != &conv_kind || fast[i]->packs)
            return false;
        bands->convs[i] = &fast[i]->conv;
    }
    return byi_f32_bands_plan(bands);
}

bool byi_dn_fast_rnn(const struct byi_dnnl_rnn *p, struct byi_dn_fast *fast)
{
    const struct byi_desc *const tensors[] = {
        &p->src, &p->src_h, &p->src_c, &p->bias, &p->dst, &p->dst_h, &p->dst_c};
    *fast = (struct byi_dn_fast){.kind = &recurrent_kind};
    if ((p->kind != BYI_RNN_LSTM && p->kind != BYI_RNN_GRU_LINEAR) ||
        p->bias.kind == BYI_DESC_ABSENT ||
        byi_elements(p->dst.rank, p->dst.dims) <= 0)
        return false;
    for (size_t i = 0; i < BYI_COUNT(tensors); i++)
        if (tensors[i]->kind != BYI_DESC_ABSENT &&
            !is_row_major_f32(tensors[i]))
            return false;
    fast->threads = omp_get_max_threads();
    fast->recurrent =
        (struct byi_f32_recurrent){.gru = p->kind == BYI_RNN_GRU_LINEAR,
                                   .time = p->src.dims[0],
                                   .batch = p->src.dims[1],
                                   .input = p->src.dims[2],
                                   .hidden = p->recurrent.dims[2],
                                   .directions = 1 + p->bidirectional,
                                   .reverse = !p->bidirectional && p->reverse};
    byi_f32_recurrent_plan(&fast->recurrent);
    return byi_f32_recurrent_pays(&fast->recurrent);
}

/* --- interface ------------------------------------------------------------ */

void byi_dn_fast_pack(const struct byi_dn_fast *user, int arg,
                      const struct byi_desc *src, struct byi_dn_fast *pack)
{
    *pack = *user;
    pack->packs = arg;
    pack->src = *src;
}

bool byi_dn_fast_needs(const struct byi_dn_fast *fast, int arg,
                       const struct byi_desc *desc)
{
    return fast->kind->reads && fast->kind->reads(fast, arg, desc);
}

const char *byi_dn_fast_impl(const struct byi_dn_fast *fast)
{
    return fast->packs ? "pack" : fast->kind->name(fast);
}

uint64_t byi_dn_fast_scratch(const struct byi_dn_fast *fast)
{
    if (fast->packs) /* narrow weights as float32 */
        return byi_dtype_is_half(fast->src.dtype)
                   ? (uint64_t)byi_desc_span(&fast->src) * sizeof(float)
                   : 0;
    return fast->kind->scratch ? fast->kind->scratch(fast) : 0;
}

uint64_t byi_dn_fast_packed(const struct byi_dn_fast *fast, int arg)
{
    return fast->kind->packed
               ? fast->kind->packed(fast, fast->packs ? fast->packs : arg)
               : 0;
}

bool byi_dn_fast_same(const struct byi_dn_fast *a, int arg_a,
                      const struct byi_dn_fast *b, int arg_b)
{
    return a->kind == b->kind &&
           (a->packs ? a->packs : arg_a) == (b->packs ? b->packs : arg_b) &&
           !(a->packs && b->packs && !byi_dn_same_layout(&a->src, &b->src)) &&
           a->kind->packs_alike(a, b);
}

void *byi_dn_fast_find(uint32_t n, const struct byi_dn_fast_slot *slots,
                       int arg)
{
    for (uint32_t i = 0; i < n; i++)
        if (slots[i].arg == arg)
            return slots[i].data;
    return NULL;
}

void byi_dn_fast_run(const struct byi_dn_fast *fast, uint32_t n,
                     const struct byi_dn_fast_slot *slots, void *scratch)
{
    if (fast->packs) {
        const void *src = byi_dn_fast_find(n, slots, BYI_ARG_SRC);
        if (byi_dtype_is_half(fast->src.dtype)) {
            byi_f32_kernels()->widen[fast->src.dtype == BYOC_BF16](
                src, scratch, byi_desc_span(&fast->src));
            src = scratch;
        }
        fast->kind->pack(fast, fast->packs, &fast->src, src,
                         byi_dn_fast_find(n, slots, BYI_ARG_DST));
        return;
    }
    const int team = omp_get_max_threads();
    fast->kind->run(fast, n, slots, scratch,
                    team < fast->threads ? team : fast->threads);
}
