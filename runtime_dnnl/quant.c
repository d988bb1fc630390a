/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/quant.c: builds quantised models. Each dequantised value refers
 * to the integer value it came from. A convolution or matrix product of such a
 * value runs in int8 (kernels/i8.h) if its weights can be quantised per output
 * channel. It writes 8-bit results if the only reader of the result is a
 * quantize step. walk.c drops float32 steps whose results are no longer read;
 * other kernels run in float32. */
#include "core/base/row_codes.h"
#include "runtime_dnnl/build.h"

#include <math.h>

/* --- scales and zero points ---------------------------------------------- */

static bool read_const_number(const struct byoc_graph_value *v, double *number)
{
    if (!v->data || v->count != 1)
        return false;
    const struct byi_tensor t = {.dtype = v->dtype,
                                 .data = (void *)(uintptr_t)v->data};
    *number = byi_tensor_float(&t, 0);
    return true;
}

/* Read the scale and zero point of a quantize or dequantize step for integers
 * of `dtype`. Returns false unless each is a constant scalar and `dtype` is
 * uint8 or int8. */
static bool read_quant(const struct byi_build *b,
                       const struct byoc_graph_step *step,
                       enum byoc_dtype dtype, struct byi_quant *q)
{
    const struct byoc_graph_value *values = b->graph->values;
    double scale, zero;
    if ((dtype != BYOC_U8 && dtype != BYOC_I8) ||
        !read_const_number(&values[step->args[1]], &scale) ||
        !read_const_number(&values[step->args[2]], &zero))
        return false;
    *q = (struct byi_quant){
        .dtype = dtype, .scale = (float)scale, .zero = (float)zero};
    return true;
}

bool byi_dn_is_same_quant(const struct byi_quant *a, const struct byi_quant *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

/* --- conversion between integers and floats ------------------------------- */

/* The range of the integers minus their zero point. */
static void read_range(const struct byi_quant *q, float *low, float *high)
{
    const bool is_signed = q->dtype == BYOC_I8;
    *low = (float)(is_signed ? INT8_MIN : 0) - q->zero;
    *high = (float)(is_signed ? INT8_MAX : UINT8_MAX) - q->zero;
}

/* Emit one primitive on one or two tensors of equal layout, whose result is
 * *dst. Sets their descriptors in `p`. */
static enum byoc_status emit_qelementwise(struct byi_build *b, const char *name,
                                          struct byi_dnnl_qelementwise *p,
                                          const struct byi_dnnl_view *src,
                                          const struct byi_dnnl_view *src1,
                                          enum byoc_dtype dtype,
                                          struct byi_dnnl_view *dst)
{
    struct byi_emit e = {.name = name};
    *dst = (struct byi_dnnl_view){.desc = src->desc};
    dst->desc.dtype = dtype;
    p->src = src->desc;
    p->dst = dst->desc;
    if (src1)
        p->src1 = src1->desc;
    BYI_TRY(byi_dn_qelementwise_new(b, p, NULL, &e.prim));
    dst->buf = byi_dn_temp(b, byi_dn_desc_bytes(&dst->desc));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    if (src1)
        byi_dn_use(&e, BYI_ARG_SRC1, src1);
    byi_dn_use(&e, BYI_ARG_DST, dst);
    return byi_dn_emit(b, &e);
}

/* Emit one primitive whose result is the kernel's. */
static enum byoc_status define_qelementwise(struct byi_build *b,
                                            struct byi_dnnl_qelementwise *p,
                                            const struct byi_dnnl_view *src,
                                            const struct byi_dnnl_view *src1,
                                            enum byoc_dtype dtype)
{
    struct byi_dnnl_view dst;
    BYI_TRY(
        emit_qelementwise(b, byi_dn_joined_name(b), p, src, src1, dtype, &dst));
    byi_dn_define(b, 0, &dst);
    return BYOC_OK;
}

static enum byoc_status refuse_quant(struct byi_build *b, enum byoc_dtype dtype)
{
    const struct byoc_graph_value *scale = &b->graph->values[byi_dn_arg0(b, 1)];
    return byi_dn_refuse(b,
                         "%s: found %s with %llu %s scales, expected 8-bit "
                         "integers with one constant scale and zero point per "
                         "tensor",
                         byi_dn_step0(b)->name, byoc_dtype_name(dtype),
                         (unsigned long long)scale->count,
                         scale->data ? "constant" : "computed");
}

enum byoc_status byi_dn_build_dequantize(struct byi_build *b)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_get_dense(b, value, &src));
    if (!read_quant(b, byi_dn_step0(b), src.desc.dtype, &result->quant))
        return refuse_quant(b, src.desc.dtype);
    result->integers = value;
    struct byi_dnnl_qelementwise p = {.kind = BYI_QELEMENTWISE_DEQUANTIZE,
                                      .src_zero = (int64_t)result->quant.zero,
                                      .src_scale = result->quant.scale};
    return define_qelementwise(b, &p, &src, NULL, BYOC_F32);
}

enum byoc_status byi_dn_build_quantize(struct byi_build *b)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_quant q;
    if (!read_quant(b, byi_dn_step0(b), byi_dn_result(b)->dtype, &q))
        return refuse_quant(b, byi_dn_result(b)->dtype);
    if (value->integers && byi_dn_is_same_quant(&value->quant, &q)) {
        b->values[b->kernel->outs[0]].qconv = value->integers->qconv;
        for (uint32_t i = 0; i < value->integers->n_views; i++)
            byi_dn_define(b, 0, &value->integers->views[i]);
        return BYOC_OK;
    }
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_get_dense(b, value, &src));
    struct byi_dnnl_qelementwise p = {.kind = BYI_QELEMENTWISE_QUANTIZE,
                                      .zero = (int64_t)q.zero,
                                      .scale = q.scale};
    read_range(&q, &p.low, &p.high);
    return define_qelementwise(b, &p, &src, NULL, q.dtype);
}

enum byoc_status byi_dn_requantize(struct byi_build *b,
                                   const struct byi_dnnl_value *value,
                                   const struct byi_quant *q,
                                   struct byi_dnnl_value **to)
{
    *to = value->integers;
    if (byi_dn_is_same_quant(&value->quant, q))
        return BYOC_OK;
    struct byi_dnnl_view src, *dst = byi_arena_alloc(b->arena, sizeof *dst);
    BYI_TRY(byi_dn_get_dense(b, value->integers, &src));
    struct byi_dnnl_qelementwise p = {.kind = BYI_QELEMENTWISE_REQUANTIZE,
                                      .src_zero = (int64_t)value->quant.zero,
                                      .src_scale = value->quant.scale,
                                      .zero = (int64_t)q->zero,
                                      .scale = q->scale};
    read_range(q, &p.low, &p.high);
    BYI_TRY(emit_qelementwise(b, byi_dn_step0(b)->name, &p, &src, NULL,
                              q->dtype, dst));
    *to = byi_arena_alloc(b->arena, sizeof **to);
    **to = (struct byi_dnnl_value){.n_views = 1, .cap_views = 1, .views = dst};
    return BYOC_OK;
}

enum byoc_status byi_dn_build_lookup(struct byi_build *b)
{
    struct byi_dnnl_value *table = byi_dn_operand(b, byi_dn_arg0(b, 1));
    struct byi_dnnl_qelementwise p = {.kind = BYI_QELEMENTWISE_LOOKUP};
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_get_dense(b, byi_dn_operand(b, byi_dn_arg0(b, 0)), &src));
    return define_qelementwise(b, &p, &src, &table->views[0],
                               byi_dn_result(b)->dtype);
}

/* --- products ------------------------------------------------------------- */

/* Whether the weights, operand 1, are float32 constants. They may be stored as
 * codes. */
static bool has_const_weights(const struct byi_build *b)
{
    const struct byoc_graph_value *w = &b->graph->values[byi_dn_arg0(b, 1)];
    return w->kind == BYOC_GRAPH_CONST && w->dtype == BYOC_F32;
}

bool byi_dn_is_quantized_after(const struct byi_build *b, struct byi_quant *q)
{
    const struct byoc_graph *g = b->graph;
    const uint32_t reader = b->reader[b->kernel->outs[0]];
    if (reader == BYI_NO_INDEX)
        return false;
    const struct byoc_graph_step *step = &g->steps[g->kernels[reader].first];
    return byi_dn_is(step, "qnn.quantize") &&
           read_quant(b, step, g->values[step->outs[0]].dtype, q);
}

/* Clamp the range [low, high], in units of `scale`, by the items of a chain
 * from `next` on. False if one is not a clamp. */
static bool read_clamps(const struct byi_chain *chain, uint32_t next,
                        float scale, float *low, float *high)
{
    for (; next < chain->n; next++) {
        const struct byi_chain_item *item = &chain->at[next];
        const bool relu = item->alg == BYI_ELT_RELU && item->alpha == 0;
        if (item->kind != BYI_ITEM_ELT || (!relu && item->alg != BYI_ELT_CLIP))
            return false;
        *low = fminf(fmaxf(*low, item->alpha / scale), *high);
        if (!relu)
            *high = fmaxf(fminf(*high, item->beta / scale), *low);
    }
    return true;
}

/* Read the items of a chain from `next` on as post-ops of the product. False if
 * it cannot compute them. */
static bool read_posts(struct byi_build *b, const struct byi_chain *chain,
                       uint32_t next, struct byi_posts *posts)
{
    struct byi_post *at = byi_arena_alloc(b->arena, chain->n * sizeof *at + 1);
    *posts = (struct byi_posts){.at = at};
    for (; next < chain->n; next++) {
        const struct byi_chain_item *item = &chain->at[next];
        if (item->kind != BYI_ITEM_ELT)
            return false;
        at[posts->n++] = (struct byi_post){.kind = BYI_POST_ELT,
                                           .alg = item->alg,
                                           .alpha = item->alpha,
                                           .beta = item->beta};
    }
    return byi_qconv_has_posts(posts);
}

/* Let the product write bytes: read the scale and zero point from the quantize
 * step that alone reads the kernel's result, and the bias and the functions of
 * the kernel's chain. Errors: BYOC_EUNSUPPORTED if no quantize step is the only
 * reader, or if 8-bit kernels lack a function of the chain. */
static enum byoc_status read_int8_result(struct byi_build *b,
                                         struct byi_integer_kernel *x,
                                         const struct byi_desc *dst,
                                         uint32_t axis, struct byi_integers *p)
{
    struct byi_dnnl_view bias;
    uint32_t next = 0;
    if (!byi_dn_is_quantized_after(b, &x->out))
        return BYOC_EUNSUPPORTED;
    BYI_TRY(byi_dn_chain_bias(b, &x->chain, dst, axis, &bias, &next));
    if (next) {
        p->bias = byi_dn_place(b, &bias);
        p->n_bias = dst->dims[axis];
        if (p->bias.kind != BYI_BUF_CONST)
            return BYOC_EUNSUPPORTED;
    }
    read_range(&x->out, &x->low, &x->high);
    p->result = x->out.scale;
    if (read_clamps(&x->chain, next, x->out.scale, &x->low, &x->high))
        return BYOC_OK;
    read_range(&x->out, &x->low, &x->high);
    p->posts = true;
    return read_posts(b, &x->chain, next, &x->posts) ? BYOC_OK
                                                     : BYOC_EUNSUPPORTED;
}

enum byoc_status byi_dn_integer_open(struct byi_build *b,
                                     const struct byi_dnnl_view *w,
                                     bool transposed,
                                     const struct byi_desc *dst, uint32_t axis,
                                     struct byi_integer_kernel *x)
{
    struct byi_dnnl_value *src = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const int64_t n = (int64_t)b->graph->values[byi_dn_arg0(b, 1)].count;
    *x = (struct byi_integer_kernel){.quant = src->quant};
    if (!src->integers || b->program->purpose == BYI_TO_PROBE ||
        !has_const_weights(b))
        return BYOC_EUNSUPPORTED;
    const int64_t rows = dst->dims[axis];
    const struct byi_integers f32_result = {.from = byi_dn_place(b, w),
                                            .rows = rows,
                                            .columns = n / rows,
                                            .transposed = transposed,
                                            .scale = src->quant.scale};
    struct byi_integers int8_result = f32_result;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &x->chain));
    enum byoc_status status = read_int8_result(b, x, dst, axis, &int8_result);
    if (status == BYOC_OK)
        status = byi_dn_make_integers(b->program, &int8_result, b->err);
    x->int8_result = status == BYOC_OK;
    if (status == BYOC_EUNSUPPORTED) /* retry without the bias */
        status = byi_dn_make_integers(b->program, &f32_result, b->err);
    BYI_TRY(status);
    const uint32_t computed = b->program->computed.n - 3;
    x->weights.buf = byi_dn_computed_buf(b, computed);
    x->scale.buf = byi_dn_computed_buf(b, computed + 1);
    x->bias.buf = byi_dn_computed_buf(b, computed + 2);
    x->src = src->integers;
    return BYOC_OK;
}

/* An emitted integer convolution or matrix product. */
struct byi_qconv_step {
    struct byi_dnnl_qconv p;
    struct byi_quant out;
    uint32_t index;      /* of its step in b->emitted */
    struct byi_desc dst; /* in the graph's dims */
};

/* Record that the views of the kernel's result hold integers. */
static void mark_integers(struct byi_build *b, const struct byi_quant *q)
{
    struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
    result->integers = result;
    result->quant = *q;
}

enum byoc_status byi_dn_integer_emit(struct byi_build *b,
                                     struct byi_integer_kernel *x,
                                     const struct byi_dnnl_view *src,
                                     struct byi_dnnl_qconv *p,
                                     const struct byi_desc *dst)
{
    struct byi_dnnl_view y = {.desc = *dst};
    struct byi_emit e = {.name = x->int8_result ? byi_dn_joined_name(b)
                                                : byi_dn_step0(b)->name};
    y.desc.dtype = p->dst.dtype = x->int8_result ? x->out.dtype : BYOC_F32;
    p->src_zero = (int64_t)x->quant.zero;
    p->zero = (int64_t)x->out.zero;
    p->low = rintf(x->low);
    p->high = rintf(x->high);
    p->scale = x->out.scale;
    const struct byi_posts *posts =
        x->int8_result && x->posts.n ? &x->posts : NULL;
    BYI_TRY(byi_dn_qconv_new(b, p, posts, &e.prim));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    x->weights.desc = p->weights;
    const enum byoc_status status = byi_dn_get_packed(
        b, &x->weights, e.prim, BYI_ARG_WEIGHTS, &e.uses[e.n++]);
    if (status != BYOC_OK) {
        byi_dn_abandon(b, &e.prim);
        return status;
    }
    byi_dn_drop_computed(b->program, b->bufs.at[x->weights.buf].index);
    byi_dn_use(&e, BYI_ARG_BIAS, &x->bias);
    byi_dn_use(&e, BYI_ARG_SCALE, &x->scale);
    y.buf = byi_dn_temp(b, byi_dn_desc_bytes(&y.desc));
    byi_dn_use(&e, BYI_ARG_DST, &y);
    BYI_TRY(byi_dn_emit(b, &e));
    if (!x->int8_result)
        return byi_dn_emit_items(b, &x->chain, 0, y);
    byi_dn_define(b, 0, &y);
    mark_integers(b, &x->out);
    if (p->src.dims[1] == p->weights.dims[1] && !posts) {
        struct byi_qconv_step *step = byi_arena_alloc(b->arena, sizeof *step);
        *step = (struct byi_qconv_step){
            .p = *p, .out = x->out, .index = b->emitted.n - 1, .dst = y.desc};
        b->values[b->kernel->outs[0]].qconv = step;
    }
    return BYOC_OK;
}

/* --- elementwise ---------------------------------------------------------- */

/* Whether the buffer has its final contents before step `index`, since neither
 * that step nor a later one writes it. Returns false without looking if there
 * are too many later steps. */
static bool is_complete_before(const struct byi_build *b, uint32_t buf,
                               uint32_t index)
{
    enum { MAX_STEPS_TO_SUM = 64 };
    if (b->emitted.n - index > MAX_STEPS_TO_SUM)
        return false;
    for (uint32_t i = index; i < b->emitted.n; i++)
        for (uint32_t k = 0; k < b->emitted.at[i].n; k++)
            if (b->emitted.at[i].uses[k].arg == BYI_ARG_DST &&
                b->emitted.at[i].uses[k].buf == buf)
                return false;
    return true;
}

/* An operand of an elementwise step on integers. */
struct integer_operand {
    uint32_t value; /* of the graph, floats */
    struct byi_dnnl_value *integers;
    struct byi_quant quant;
};

/* Fuse the sum `p` of the two operands into the product that computed operand
 * `index`. Errors: BYOC_EUNSUPPORTED, for example if that operand has other
 * readers. */
static enum byoc_status add_in_product(struct byi_build *b,
                                       const struct byi_dnnl_qelementwise *p,
                                       const struct integer_operand operands[2],
                                       uint32_t index)
{
    const struct byi_dnnl_value *integers = operands[index].integers,
                                *summand = operands[1 - index].integers;
    if (!integers->qconv ||
        !byi_dn_is_same_quant(&operands[index].quant, &integers->qconv->out) ||
        b->reader[operands[index].value] == BYI_NO_INDEX ||
        b->reader[integers - b->values] == BYI_NO_INDEX)
        return BYOC_EUNSUPPORTED;
    struct byi_emitted_step *emitted = &b->emitted.at[integers->qconv->index];
    struct byi_dnnl_qconv conv = integers->qconv->p;
    struct byi_desc like = integers->qconv->dst;
    like.dtype = summand->views[0].desc.dtype;
    const struct byi_dnnl_view *existing = byi_dn_find(summand, &like);
    if (!existing ||
        !is_complete_before(b, existing->buf, integers->qconv->index))
        return BYOC_EUNSUPPORTED;
    conv.add = *p;
    conv.add.src_zero = 0;
    if (index == 1) {
        conv.add.src = p->src1;
        conv.add.src1 = p->src;
        conv.add.src1_zero = p->src_zero;
        conv.add.src_scale = p->src1_scale;
        conv.add.src1_scale = p->src_scale;
    }
    struct byi_emit e = {.n = 0};
    struct byi_dnnl_view y = {.desc = like};
    y.desc.dtype = conv.dst.dtype = p->dst.dtype;
    BYI_TRY(byi_dn_qconv_new(b, &conv, NULL, &e.prim));
    for (uint32_t i = 0; i < emitted->n; i++)
        if (emitted->uses[i].arg != BYI_ARG_DST)
            e.uses[e.n++] = emitted->uses[i];
    y.buf = byi_dn_temp(b, byi_dn_desc_bytes(&y.desc));
    byi_dn_use(&e, BYI_ARG_SRC1, existing);
    byi_dn_use(&e, BYI_ARG_DST, &y);
    byi_dn_abandon(b, &emitted->prim);
    emitted->prim = e.prim;
    emitted->n = e.n;
    emitted->uses = byi_arena_copy(b->arena, e.uses, e.n * sizeof e.uses[0]);
    emitted->name = byi_arena_printf(b->program->arena, "%s+%s", emitted->name,
                                     byi_dn_joined_name(b));
    emitted->sources = byi_arena_printf(b->program->arena, "%s,%s",
                                        emitted->sources, b->kernel->source);
    byi_dn_define(b, 0, &y);
    return BYOC_OK;
}

/* Find the quantisation of n floats that are dequantised bytes. Their zero
 * point is unknown: zero if they fit int8, otherwise the one of uint8 at which
 * the smallest is representable. False if they are not, or without memory. */
static bool find_quant(const float *floats, int64_t n, struct byi_quant *q)
{
    int16_t *integers = byi_alloc((size_t)n, sizeof *integers);
    int low = 0, high = 0;
    const bool found =
        integers && byi_find_scale(floats, n, 1, 1, false, &q->scale, integers);
    for (int64_t i = 0; found && i < n; i++) {
        low = integers[i] < low ? integers[i] : low;
        high = integers[i] > high ? integers[i] : high;
    }
    byi_release(integers);
    const bool is_signed = low >= INT8_MIN && high <= INT8_MAX;
    q->dtype = is_signed ? BYOC_I8 : BYOC_U8;
    q->zero = is_signed ? 0 : (float)-low;
    return found && high - low <= UINT8_MAX;
}

/* Describe a dense row-major tensor of `dims` as if it were broadcast to the
 * dims of `to`. */
static struct byi_desc broadcast_desc(const struct byi_desc *from,
                                      const struct byi_desc *to)
{
    struct byi_desc desc = byi_dn_dense(from->dtype, to->rank, to->dims, NULL);
    const uint32_t skip = to->rank - from->rank;
    for (uint32_t i = 0; i < to->rank; i++)
        desc.strides[i] = i < skip || from->dims[i - skip] != to->dims[i]
                              ? 0
                              : from->strides[i - skip];
    return desc;
}

/* Make the integers of an operand that is a constant: FoldConstant replaced the
 * dequantize step by its floats, which take three passes. The constant has the
 * dims `to`. Errors: BYOC_EUNSUPPORTED if it is not dequantised bytes. */
static enum byoc_status recover_integers(struct byi_build *b,
                                         const struct byi_desc *to,
                                         struct integer_operand *operand)
{
    enum { MAX_BYTES = 1 << 24 }; /* of a constant that is broadcast */
    const struct byi_dnnl_view *view =
        &byi_dn_operand(b, operand->value)->views[0];
    enum byoc_dtype dtype;
    int64_t n;
    const int64_t bytes = byi_elements(to->rank, to->dims);
    if (b->program->purpose == BYI_TO_PROBE)
        return BYOC_EUNSUPPORTED;
    const float *floats = byi_dn_const_data(b, operand->value, &dtype, &n);
    if (!floats || dtype != BYOC_F32 || n <= 0 ||
        (bytes > n && bytes > MAX_BYTES) || view->desc.rank > to->rank ||
        !find_quant(floats, n, &operand->quant))
        return BYOC_EUNSUPPORTED;
    const struct byi_bytes p = {.from = byi_dn_place(b, view),
                                .src = broadcast_desc(&view->desc, to),
                                .dtype = operand->quant.dtype,
                                .scale = operand->quant.scale,
                                .zero = (int64_t)operand->quant.zero};
    BYI_TRY(byi_dn_make_bytes(b->program, &p, b->err));
    const struct byi_dnnl_view made = {
        .buf = byi_dn_computed_buf(b, b->program->computed.n - 1),
        .desc = byi_dn_dense(p.dtype, to->rank, to->dims, NULL)};
    operand->integers =
        byi_arena_calloc(b->arena, 1, sizeof *operand->integers);
    byi_dn_add_view(b, operand->integers, &made);
    return BYOC_OK;
}

/* Find the integers of both operands. At most one is a constant, which becomes
 * the second one: the other one decides the layout. */
static enum byoc_status read_integers(struct byi_build *b,
                                      struct integer_operand operands[2])
{
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t arg = byi_dn_arg0(b, i);
        struct byi_dnnl_value *value = byi_dn_operand(b, arg);
        operands[i] = (struct integer_operand){
            .value = arg, .integers = value->integers, .quant = value->quant};
    }
    if (!operands[0].integers) {
        const struct integer_operand constant = operands[0];
        operands[0] = operands[1];
        operands[1] = constant;
    }
    struct byi_dnnl_value *main = operands[0].integers;
    if (!main || main->n_views == 0)
        return BYOC_EUNSUPPORTED;
    const struct byi_desc *dims = &main->views[0].desc;
    if (!operands[1].integers)
        BYI_TRY(recover_integers(b, dims, &operands[1]));
    const struct byi_dnnl_value *second = operands[1].integers;
    return second->n_views > 0 && byi_dims_equal(dims->rank, dims->dims,
                                                 second->views[0].desc.rank,
                                                 second->views[0].desc.dims)
               ? BYOC_OK
               : BYOC_EUNSUPPORTED;
}

/* Emit an add or multiply step, and the quantize step that reads it, as one
 * step on the integers of both operands. Only a constant is broadcast. */
enum byoc_status byi_dn_integer_elementwise(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const bool multiplies = byi_dn_is(step, "multiply");
    struct byi_dnnl_qelementwise p = {
        .kind = multiplies ? BYI_QELEMENTWISE_MUL : BYI_QELEMENTWISE_ADD};
    struct integer_operand operands[2];
    struct byi_dnnl_view src[2];
    struct byi_quant out;
    struct byi_chain chain;
    if ((!byi_dn_is(step, "add") && !multiplies) ||
        !byi_dn_is_quantized_after(b, &out))
        return BYOC_EUNSUPPORTED;
    read_range(&out, &p.low, &p.high);
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    if (!read_clamps(&chain, 0, out.scale, &p.low, &p.high))
        return BYOC_EUNSUPPORTED;
    BYI_TRY(read_integers(b, operands));
    const struct byi_quant *q[] = {&operands[0].quant, &operands[1].quant};
    BYI_TRY(byi_dn_get_dense(b, operands[0].integers, &src[0]));
    struct byi_desc like = src[0].desc;
    like.dtype = q[1]->dtype;
    BYI_TRY(byi_dn_get_view(b, operands[1].integers, &like, &src[1]));
    p.src_zero = (int64_t)q[0]->zero;
    p.src1_zero = (int64_t)q[1]->zero;
    p.zero = (int64_t)out.zero;
    p.src_scale = q[0]->scale;
    p.src1_scale = q[1]->scale;
    p.scale = out.scale;
    p.src = src[0].desc;
    p.src1 = src[1].desc;
    p.dst = src[0].desc;
    p.dst.dtype = out.dtype;
    enum byoc_status status = BYOC_EUNSUPPORTED;
    for (uint32_t i = 2; i-- > 0 && !multiplies && status == BYOC_EUNSUPPORTED;)
        status = add_in_product(b, &p, operands, i);
    if (status == BYOC_EUNSUPPORTED)
        status = define_qelementwise(b, &p, &src[0], &src[1], out.dtype);
    if (status == BYOC_OK)
        mark_integers(b, &out);
    return status;
}
