/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/quant.c: quantised models. A dequantised value keeps a reference
 * to the integers it came from. A convolution or product that reads it runs on
 * those if its weights are integers times a scale per output channel, and
 * writes integers if its only reader quantises. Scales, zero points and bias
 * are float32 post-ops, which both majors of oneDNN have alike. build.c drops
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

/* One primitive: dst = post(src `alg` number). */
static enum byoc_status convert(struct byi_build *b,
                                const struct byi_dnnl_view *src,
                                enum byi_bin alg, float number,
                                const struct byi_post *post,
                                const struct byi_dnnl_view *dst)
{
    const struct byi_fill fill = {.n = 1, .value = number};
    BYI_TRY(byi_dn_make_fill(b->program, &fill, b->err));
    const struct byi_dnnl_value *value =
        vector_value(b, b->program->made.n - 1, src->desc.rank, 0, 1);
    const struct byi_posts posts = {.n = 1, .at = post};
    const struct byi_dnnl_binary p = {.alg = alg,
                                      .src = src->desc,
                                      .src1 = value->views[0].desc,
                                      .dst = dst->desc};
    struct byi_emit e = {.name = byi_dn_step0(b)->name};
    BYI_TRY(byi_dn_binary_new(b, &p, &posts, &e.prim));
    BYI_TRY(byi_prim_check(
        &e.prim, e.name, byi_elements(src->desc.rank, src->desc.dims), b->err));
    byi_dn_use(&e, BYI_ARG_SRC, src);
    byi_dn_use(&e, BYI_ARG_SRC1, &value->views[0]);
    byi_dn_use(&e, BYI_ARG_DST, dst);
    BYI_TRY(byi_dn_emit(b, &e));
    byi_dn_define(b, 0, dst);
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
    /* (q - zero) scale: a binary primitive of mixed types is reference only */
    struct byi_desc desc = src.desc;
    struct byi_dnnl_view dst;
    desc.dtype = BYOC_F32;
    BYI_TRY(byi_dn_reorder(b, &src, &desc, &dst));
    const struct byi_post scale = {.kind = BYI_POST_ELT,
                                   .alg = BYI_ELT_LINEAR,
                                   .alpha = result->quant.scale};
    return convert(b, &dst, BYI_BIN_SUB, result->quant.zero, &scale, &dst);
}

enum byoc_status byi_dn_build_quantize(struct byi_build *b)
{
    struct byi_dnnl_value *value = byi_dn_operand(b, byi_dn_arg0(b, 0));
    struct byi_quant q;
    if (!read_quant(b, byi_dn_step0(b), byi_dn_result(b)->dtype, &q))
        return refuse_quant(b);
    if (value->integers && same_quant(&value->quant, &q)) {
        for (uint32_t i = 0; i < value->integers->n_views; i++)
            byi_dn_define(b, 0, &value->integers->views[i]);
        return BYOC_OK;
    }
    struct byi_dnnl_view src;
    BYI_TRY(byi_dn_want_dense(b, value, &src));
    struct byi_dnnl_view dst = {.desc = src.desc};
    dst.desc.dtype = q.dtype;
    dst.buf = byi_dn_temp(b, byi_dn_desc_bytes(&dst.desc));
    const struct byi_post zero = {.kind = BYI_POST_ELT,
                                  .alg = BYI_ELT_LINEAR,
                                  .alpha = 1,
                                  .beta = q.zero};
    return convert(b, &src, BYI_BIN_DIV, q.scale, &zero, &dst);
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
    enum byoc_dtype dtype;
    int64_t n;
    *x = (struct byi_int8){0};
    if (!src->integers || b->program->purpose == BYI_TO_PROBE || !has_int8() ||
        !byi_dn_const_data(b, byi_dn_arg0(b, 1), &dtype, &n) ||
        dtype != BYOC_F32 || (padded && src->quant.zero != 0.0f))
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
