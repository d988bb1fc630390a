/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/quant.c: quantised models. A dequantised value keeps a reference
 * to the integers it came from. A convolution or product that reads it runs on
 * those if its weights are integers times a scale per output channel, and
 * writes integers if its only reader quantises. Scales, zero points and bias
 * are float32 post-ops, which both majors of oneDNN have alike. walk.c drops
 * the float32 steps that are no longer read; kernels for which int8 does not
 * apply run in float32.
 */
#include "runtime_dnnl/build.h"

#include <math.h>
#include <string.h>

/* --- constants ----------------------------------------------------------- */

/* Constant `made` of the program as a value: a float32 vector of n along `axis`
 * of `rank` axes (a scalar if n is 1). */
static struct byi_dnnl_value *vector_value(struct byi_build *b, uint32_t made,
                                           uint32_t rank, uint32_t axis,
                                           int64_t n)
{
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? n : 1;
    struct byi_dnnl_view *view = byi_arena_alloc(b->arena, sizeof *view);
    *view = (struct byi_dnnl_view){
        .buf = byi_dn_made_buf(b, made),
        .desc = byi_dn_dense(BYOC_F32, rank, dims, NULL)};
    struct byi_dnnl_value *value = byi_arena_alloc(b->arena, sizeof *value);
    *value =
        (struct byi_dnnl_value){.n_views = 1, .cap_views = 1, .views = view};
    return value;
}

/* --- scales and zero points ---------------------------------------------- */

static bool const_number(const struct byoc_graph_value *v, double *number)
{
    if (!v->data || v->count != 1)
        return false;
    const struct byi_tensor t = {.dtype = v->dtype,
                                 .data = (void *)(uintptr_t)v->data};
    *number = byi_tensor_float(&t, 0);
    return true;
}

/* The scale and zero point of a quantize or dequantize kernel for integers of
 * `dtype`; false unless each is a constant scalar. */
static bool read_quant(const struct byi_build *b,
                       const struct byoc_graph_step *step,
                       enum byoc_dtype dtype, struct byi_quant *q)
{
    const struct byoc_graph_value *values = b->graph->values;
    double scale, zero;
    if ((dtype != BYOC_U8 && dtype != BYOC_I8) ||
        !const_number(&values[step->args[1]], &scale) ||
        !const_number(&values[step->args[2]], &zero))
        return false;
    *q = (struct byi_quant){
        .dtype = dtype, .scale = (float)scale, .zero = (float)zero};
    return true;
}

static bool same_quant(const struct byi_quant *a, const struct byi_quant *b)
{
    return a->dtype == b->dtype && a->scale == b->scale && a->zero == b->zero;
}

/* --- conversion between integers and floats ------------------------------- */

/* The range of the integers, less their zero point. */
static void read_range(const struct byi_quant *q, float *low, float *high)
{
    const bool is_signed = q->dtype == BYOC_I8;
    *low = (float)(is_signed ? INT8_MIN : 0) - q->zero;
    *high = (float)(is_signed ? INT8_MAX : UINT8_MAX) - q->zero;
}

/* One primitive on one or two tensors of equal layout; `p` lacks their
 * descriptors. */
static enum byoc_status emit_qpoint(struct byi_build *b,
                                    struct byi_dnnl_qpoint *p,
                                    const struct byi_dnnl_view *src,
                                    const struct byi_dnnl_view *src1,
                                    enum byoc_dtype dtype)
{
    struct byi_emit e = {.name = byi_dn_joined_name(b)};
    struct byi_dnnl_view dst = {.desc = src->desc};
    dst.desc.dtype = dtype;
    p->src = src->desc;
    p->dst = dst.desc;
    if (src1)
        p->src1 = src1->desc;
    BYI_TRY(byi_dn_qpoint_new(b, p, NULL, &e.prim));
    dst.buf = byi_dn_temp(b, byi_dn_desc_bytes(&dst.desc));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    if (src1)
        byi_dn_use(&e, BYI_ARG_SRC1, src1);
    byi_dn_use(&e, BYI_ARG_DST, &dst);
    BYI_TRY(byi_dn_emit(b, &e));
    byi_dn_define(b, 0, &dst);
    return BYOC_OK;
}

static enum byoc_status refuse_quant(struct byi_build *b)
{
    return byi_dn_refuse(b,
                         "%s: expected 8-bit integers with one constant scale "
                         "and zero point per tensor",
                         byi_dn_step0(b)->name);
}

enum byoc_status byi_dn_build_dequantize(struct byi_build *b)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_want_dense(b, value, &src));
    if (!read_quant(b, byi_dn_step0(b), src.desc.dtype, &result->quant))
        return refuse_quant(b);
    result->integers = value;
    struct byi_dnnl_qpoint p = {.kind = BYI_QPOINT_DEQUANTIZE,
                                .src_zero = (int64_t)result->quant.zero,
                                .src_scale = result->quant.scale};
    return emit_qpoint(b, &p, &src, NULL, BYOC_F32);
}

enum byoc_status byi_dn_build_quantize(struct byi_build *b)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_quant q;
    if (!read_quant(b, byi_dn_step0(b), byi_dn_result(b)->dtype, &q))
        return refuse_quant(b);
    if (value->integers && same_quant(&value->quant, &q)) {
        b->values[b->kernel->outs[0]].qconv = value->integers->qconv;
        for (uint32_t i = 0; i < value->integers->n_views; i++)
            byi_dn_define(b, 0, &value->integers->views[i]);
        return BYOC_OK;
    }
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_want_dense(b, value, &src));
    struct byi_dnnl_qpoint p = {
        .kind = BYI_QPOINT_QUANTIZE, .zero = (int64_t)q.zero, .scale = q.scale};
    read_range(&q, &p.low, &p.high);
    return emit_qpoint(b, &p, &src, NULL, q.dtype);
}

/* --- weights ------------------------------------------------------------- */

/* Does the processor multiply u8 by s8 without intermediate saturation? */
static bool has_int8(void)
{
    static const char *const marks[] = {"vnni", "bf16", "amx", "fp16"};
    for (size_t i = 0; i < BYI_COUNT(marks); i++)
        if (strstr(byi_dnnl_isa(), marks[i]))
            return true;
    return false;
}

/* Are the weights, operand 1, float32 constants? Their floats may be codes. */
static bool has_const_weights(const struct byi_build *b)
{
    const struct byoc_graph_value *w = &b->graph->values[byi_dn_arg0(b, 1)];
    return w->kind == BYOC_GRAPH_CONST && w->dtype == BYOC_F32;
}

/* Split the weights, operand 1, into int8 rows, one per output channel, their
 * scales and, for data with a zero point, its contribution to each result. */
static enum byoc_status split_weights(struct byi_build *b, struct byi_int8 *x,
                                      uint32_t rank, uint32_t axis)
{
    const struct byi_dnnl_value *w = byi_dn_operand(b, byi_dn_arg0(b, 1));
    const int64_t n =
        byi_elements(w->views[0].desc.rank, w->views[0].desc.dims);
    const int64_t rows = x->weights.desc.dims[0];
    const struct byi_integers p = {.from = byi_dn_place(b, &w->views[0]),
                                   .rows = rows,
                                   .columns = n / rows,
                                   .scale = x->quant.scale,
                                   .zero = x->quant.zero};
    BYI_TRY(byi_dn_make_integers(b->program, &p, b->err));
    const uint32_t made = b->program->made.n - 3;
    x->weights.buf = byi_dn_made_buf(b, made);
    x->scale = vector_value(b, made + 1, rank, axis, rows);
    x->shift = vector_value(b, made + 2, rank, axis, rows);
    return BYOC_OK;
}

enum byoc_status byi_dn_int8_open(struct byi_build *b, const struct byi_desc *w,
                                  uint32_t rank, uint32_t axis, bool padded,
                                  struct byi_int8 *x)
{
    struct byi_dnnl_value *src = byi_dn_operand(b, byi_dn_arg0(b, 0));
    *x = (struct byi_int8){0};
    if (!src->integers || b->program->purpose == BYI_TO_PROBE || !has_int8() ||
        !has_const_weights(b) || (padded && src->quant.zero != 0.0f))
        return BYOC_OK;
    x->quant = src->quant;
    x->weights.desc = byi_dn_dense(BYOC_I8, w->rank, w->dims, NULL);
    const enum byoc_status status = split_weights(b, x, rank, axis);
    if (status == BYOC_OK)
        x->src = src->integers;
    return status == BYOC_EUNSUPPORTED ? BYOC_OK : status;
}

/* --- the epilogue --------------------------------------------------------- */

/* The quantisation of this kernel's result, if its only reader quantises. */
static bool quantised_after(struct byi_build *b, struct byi_quant *q)
{
    const struct byoc_graph *g = b->graph;
    const uint32_t reader = b->reader[b->kernel->outs[0]];
    if (reader == BYI_NOBODY)
        return false;
    const struct byoc_graph_step *step = &g->steps[g->kernels[reader].first];
    return byi_dn_is(step, "qnn.quantize") &&
           read_quant(b, step, g->values[step->outs[0]].dtype, q);
}

enum byoc_status byi_dn_int8_chain(struct byi_build *b, struct byi_int8 *x,
                                   struct byi_chain *chain)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    struct byi_chain own;
    BYI_TRY(byi_dn_chain_read(b, 1, 0, &own));
    chain->n = 0;
    chain->at = byi_arena_calloc(b->arena, own.n + 3, sizeof *chain->at);
    const struct byi_chain_item scale = {.kind = BYI_ITEM_BIN,
                                         .alg = BYI_BIN_MUL,
                                         .own = x->scale,
                                         .type = type};
    chain->at[chain->n++] = scale;
    if (x->quant.zero != 0.0f) {
        chain->at[chain->n] = scale;
        chain->at[chain->n].alg = BYI_BIN_ADD;
        chain->at[chain->n++].own = x->shift;
    }
    for (uint32_t i = 0; i < own.n; i++)
        chain->at[chain->n++] = own.at[i];
    x->narrow = quantised_after(b, &x->out);
    if (x->narrow)
        chain->at[chain->n++] =
            (struct byi_chain_item){.kind = BYI_ITEM_ELT,
                                    .alg = BYI_ELT_LINEAR,
                                    .alpha = 1.0f / x->out.scale,
                                    .beta = x->out.zero,
                                    .step = b->kernel->n_steps - 1,
                                    .type = type};
    return BYOC_OK;
}

enum byoc_status byi_dn_int8_emit(struct byi_build *b, const struct byi_int8 *x,
                                  struct byi_core *core, enum byoc_dtype *dtype,
                                  const struct byi_chain *chain)
{
    core->whole = true;
    core->dst.dtype = *dtype = x->narrow ? x->out.dtype : BYOC_F32;
    enum byoc_status status = byi_dn_emit_chain(b, core, chain, 0);
    if (status == BYOC_OK && x->narrow) {
        struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
        result->integers = result;
        result->quant = x->out;
    }
    if (status != BYOC_EUNSUPPORTED || !x->narrow)
        return status;
    /* the result stays float; a later kernel quantises it */
    const struct byi_chain wide = {.n = chain->n - 1, .at = chain->at};
    core->dst.dtype = *dtype = BYOC_F32;
    return byi_dn_emit_chain(b, core, &wide, 0);
}

/* --- byoc's own kernels --------------------------------------------------- */

/* oneDNN's kernels on AMX tiles multiply faster than vectors do. */
static bool has_tiles(void)
{
    return strstr(byi_dnnl_isa(), "amx");
}

/* Narrow [low, high], in steps of the result, by the items of a chain from
 * `next` on. False if one is not a clamp. */
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

/* The bias of a chain that ends in bytes; n is 0 if it has none. */
static enum byoc_status read_bias(struct byi_build *b,
                                  const struct byi_exact *x,
                                  const struct byi_desc *dst, uint32_t axis,
                                  uint32_t *next, struct byi_integers *p)
{
    struct byi_dnnl_view bias;
    BYI_TRY(byi_dn_chain_bias(b, &x->chain, dst, axis, &bias, next));
    if (!*next)
        return BYOC_OK;
    p->bias = byi_dn_place(b, &bias);
    p->n_bias = dst->dims[axis];
    return p->bias.kind == BYI_BUF_CONST ? BYOC_OK : BYOC_EUNSUPPORTED;
}

enum byoc_status byi_dn_exact_open(struct byi_build *b,
                                   const struct byi_dnnl_view *w, bool turned,
                                   const struct byi_desc *dst, uint32_t axis,
                                   struct byi_exact *x)
{
    struct byi_dnnl_value *src = byi_dn_operand(b, byi_dn_arg0(b, 0));
    const int64_t n = (int64_t)b->graph->values[byi_dn_arg0(b, 1)].count;
    *x = (struct byi_exact){.quant = src->quant};
    if (!src->integers || b->program->purpose == BYI_TO_PROBE || has_tiles() ||
        !has_const_weights(b))
        return BYOC_EUNSUPPORTED;
    const int64_t rows = dst->dims[axis];
    struct byi_integers p = {.from = byi_dn_place(b, w),
                             .rows = rows,
                             .columns = n / rows,
                             .turned = turned,
                             .scale = src->quant.scale,
                             .exact = true};
    uint32_t next = 0;
    BYI_TRY(byi_dn_chain_read(b, 1, 0, &x->chain));
    if (quantised_after(b, &x->out)) {
        read_range(&x->out, &x->low, &x->high);
        BYI_TRY(read_bias(b, x, dst, axis, &next, &p));
        x->narrow =
            read_clamps(&x->chain, next, x->out.scale, &x->low, &x->high);
    }
    p.result = x->narrow ? x->out.scale : 0;
    p.n_bias = x->narrow ? p.n_bias : 0;
    BYI_TRY(byi_dn_make_integers(b->program, &p, b->err));
    const uint32_t made = b->program->made.n - 3;
    x->weights.buf = byi_dn_made_buf(b, made);
    x->scale.buf = byi_dn_made_buf(b, made + 1);
    x->bias.buf = byi_dn_made_buf(b, made + 2);
    x->src = src->integers;
    return BYOC_OK;
}

/* A convolution or product that was emitted. */
struct byi_qconv_step {
    struct byi_dnnl_qconv p;
    struct byi_quant out;
    uint32_t draft;
    struct byi_desc dst; /* in the graph's dims */
};

/* The kernel's result is integers. */
static void mark_integers(struct byi_build *b, const struct byi_quant *q)
{
    struct byi_dnnl_value *result = &b->values[b->kernel->outs[0]];
    result->integers = result;
    result->quant = *q;
}

enum byoc_status byi_dn_exact_emit(struct byi_build *b, struct byi_exact *x,
                                   const struct byi_dnnl_view *src,
                                   struct byi_dnnl_qconv *p,
                                   const struct byi_desc *dst)
{
    struct byi_dnnl_view y = {.desc = *dst};
    struct byi_emit e = {.name = x->narrow ? byi_dn_joined_name(b)
                                           : byi_dn_step0(b)->name};
    y.desc.dtype = p->dst.dtype = x->narrow ? x->out.dtype : BYOC_F32;
    p->src_zero = (int64_t)x->quant.zero;
    p->zero = (int64_t)x->out.zero;
    p->low = rintf(x->low);
    p->high = rintf(x->high);
    BYI_TRY(byi_dn_qconv_new(b, p, NULL, &e.prim));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    x->weights.desc = p->weights;
    const enum byoc_status status = byi_dn_want_packed(
        b, &x->weights, e.prim, BYI_ARG_WEIGHTS, &e.uses[e.n++]);
    if (status != BYOC_OK) {
        byi_dn_abandon(b, &e.prim);
        return status;
    }
    byi_dn_drop(b->program, b->bufs.at[x->weights.buf].index);
    byi_dn_use(&e, BYI_ARG_BIAS, &x->bias);
    byi_dn_use(&e, BYI_ARG_SCALE, &x->scale);
    y.buf = byi_dn_temp(b, byi_dn_desc_bytes(&y.desc));
    byi_dn_use(&e, BYI_ARG_DST, &y);
    BYI_TRY(byi_dn_emit(b, &e));
    if (!x->narrow)
        return byi_dn_emit_items(b, &x->chain, 0, y);
    byi_dn_define(b, 0, &y);
    mark_integers(b, &x->out);
    if (p->src.dims[1] == p->weights.dims[1]) {
        struct byi_qconv_step *step = byi_arena_alloc(b->arena, sizeof *step);
        *step = (struct byi_qconv_step){
            .p = *p, .out = x->out, .draft = b->drafts.n - 1, .dst = y.desc};
        b->values[b->kernel->outs[0]].qconv = step;
    }
    return BYOC_OK;
}

/* --- elementwise ---------------------------------------------------------- */

/* Is the buffer written before step `draft`? */
static bool is_written_before(const struct byi_build *b, uint32_t buf,
                              uint32_t draft)
{
    enum { FAR = 64 }; /* steps between a product and its sum, at most */
    if (b->drafts.n - draft > FAR)
        return false;
    for (uint32_t i = draft; i < b->drafts.n; i++)
        for (uint32_t k = 0; k < b->drafts.at[i].n; k++)
            if (b->drafts.at[i].uses[k].arg == BYI_ARG_DST &&
                b->drafts.at[i].uses[k].buf == buf)
                return false;
    return true;
}

/* Let the product that made operand `which` of the sum `p` add the other
 * operand, if the sum is its only reader. */
static enum byoc_status add_in_product(struct byi_build *b,
                                       const struct byi_dnnl_qpoint *p,
                                       uint32_t which)
{
    const struct byi_dnnl_value *real =
                                    byi_dn_operand(b, byi_dn_arg0(b, which)),
                                *own = real->integers;
    const struct byi_dnnl_value *other =
        byi_dn_operand(b, byi_dn_arg0(b, 1 - which))->integers;
    if (!own->qconv || !same_quant(&real->quant, &own->qconv->out) ||
        b->reader[real - b->values] == BYI_NOBODY ||
        b->reader[own - b->values] == BYI_NOBODY)
        return BYOC_EUNSUPPORTED;
    struct byi_draft_step *d = &b->drafts.at[own->qconv->draft];
    struct byi_dnnl_qconv conv = own->qconv->p;
    struct byi_desc like = own->qconv->dst;
    like.dtype = other->views[0].desc.dtype;
    const struct byi_dnnl_view *found = byi_dn_find(other, &like);
    if (!found || !is_written_before(b, found->buf, own->qconv->draft))
        return BYOC_EUNSUPPORTED;
    conv.more = *p;
    conv.more.src_zero = 0;
    if (which == 1) {
        conv.more.src = p->src1;
        conv.more.src1 = p->src;
        conv.more.src1_zero = p->src_zero;
        conv.more.src_scale = p->src1_scale;
        conv.more.src1_scale = p->src_scale;
    }
    struct byi_emit e = {.n = 0};
    struct byi_dnnl_view y = {.desc = like};
    y.desc.dtype = conv.dst.dtype = p->dst.dtype;
    BYI_TRY(byi_dn_qconv_new(b, &conv, NULL, &e.prim));
    for (uint32_t i = 0; i < d->n; i++)
        if (d->uses[i].arg != BYI_ARG_DST)
            e.uses[e.n++] = d->uses[i];
    y.buf = byi_dn_temp(b, byi_dn_desc_bytes(&y.desc));
    byi_dn_use(&e, BYI_ARG_SRC1, found);
    byi_dn_use(&e, BYI_ARG_DST, &y);
    byi_dn_abandon(b, &d->prim);
    d->prim = e.prim;
    d->n = e.n;
    d->uses = byi_arena_copy(b->arena, e.uses, e.n * sizeof e.uses[0]);
    d->name = byi_arena_printf(b->program->arena, "%s+%s", d->name,
                               byi_dn_joined_name(b));
    d->sources = byi_arena_printf(b->program->arena, "%s,%s", d->sources,
                                  b->kernel->source);
    byi_dn_define(b, 0, &y);
    return BYOC_OK;
}

/* The integers of a sum or product of two dequantised values of one shape,
 * whose only reader quantises. */
enum byoc_status byi_dn_exact_point(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const bool multiplies = byi_dn_is(step, "multiply");
    struct byi_dnnl_view src[2];
    struct byi_quant q[2], out;
    struct byi_chain chain;
    if ((!byi_dn_is(step, "add") && !multiplies) || !quantised_after(b, &out))
        return BYOC_EUNSUPPORTED;
    for (uint32_t i = 0; i < 2; i++) {
        struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, i));
        if (!value->integers || value->integers->n_views == 0)
            return BYOC_EUNSUPPORTED;
        q[i] = value->quant;
        if (i == 0)
            BYI_TRY(byi_dn_want_dense(b, value->integers, &src[0]));
    }
    struct byi_dnnl_value *other =
        byi_dn_operand(b, byi_dn_arg0(b, 1))->integers;
    const struct byi_desc *dims = &other->views[0].desc;
    if (!byi_dims_equal(dims->rank, dims->dims, src[0].desc.rank,
                        src[0].desc.dims))
        return BYOC_EUNSUPPORTED;
    struct byi_desc like = src[0].desc;
    like.dtype = q[1].dtype;
    BYI_TRY(byi_dn_want(b, other, &like, &src[1]));
    struct byi_dnnl_qpoint p = {.kind = multiplies ? BYI_QPOINT_MUL
                                                   : BYI_QPOINT_ADD,
                                .src_zero = (int64_t)q[0].zero,
                                .src1_zero = (int64_t)q[1].zero,
                                .zero = (int64_t)out.zero,
                                .src_scale = q[0].scale,
                                .src1_scale = q[1].scale,
                                .scale = out.scale};
    read_range(&out, &p.low, &p.high);
    BYI_TRY(byi_dn_chain_read(b, 1, 0, &chain));
    if (!read_clamps(&chain, 0, out.scale, &p.low, &p.high))
        return BYOC_EUNSUPPORTED;
    p.src = src[0].desc;
    p.src1 = src[1].desc;
    p.dst = src[0].desc;
    p.dst.dtype = out.dtype;
    enum byoc_status status = BYOC_EUNSUPPORTED;
    for (uint32_t i = 2; i-- > 0 && !multiplies && status == BYOC_EUNSUPPORTED;)
        status = add_in_product(b, &p, i);
    if (status == BYOC_EUNSUPPORTED)
        status = emit_qpoint(b, &p, &src[0], &src[1], out.dtype);
    if (status == BYOC_OK)
        mark_integers(b, &out);
    return status;
}
