/* SPDX-License-Identifier: Apache-2.0 */
/* NarrowWeights: narrow large float32 weights if the user requests it.
 * requires: nothing; best after FoldConstant, which makes weights constant
 *
 *   to=int8, int4: blocks along the summed axis, each with a scale
 *     nn.dense(%x, const[w])      ==>   qnn.dense_blocks(%x, const[codes],
 *     nn.matmul(%x, const[w])             const[scales], const[zero points])
 *   to=fp16, bf16: weights rounded to that type's values
 *     nn.conv2d(%x, const[w])     ==>   nn.conv2d(%x, const[w'])
 *     and products, transposed convolutions
 *
 * The rounded weights stay float32 constants, so that every backend and kernel
 * supports them; the artifact stores such constants as 16 bits (struct
 * byi_plan_params). A weight that the type cannot hold is unchanged. A compile
 * runs this before partitioning.
 */
#include "narrow_weights.h"
#include "code_blocks.h"
#include "transform.h"

#include <math.h>

const struct byi_context_key byi_narrow_list_key = {"narrowing"};

enum narrow_form { FORM_NONE, FORM_FP16, FORM_BF16, FORM_INT8, FORM_INT4 };

static const char *const forms[] = {[FORM_NONE] = "none",
                                    [FORM_FP16] = "fp16",
                                    [FORM_BF16] = "bf16",
                                    [FORM_INT8] = "int8",
                                    [FORM_INT4] = "int4"};

/* The list and the options of the pass. */
struct narrowing_state {
    struct byi_narrow_list *list;
    enum narrow_form form;
    int64_t least, block; /* the options of these names */
};

/* A weight matrix (n, k) of float32: its element (i, j) is float
 * i * ns + j * ks of `data`, which need not be aligned. */
struct wide_matrix {
    const void *data;
    int64_t n, k, ns, ks;
};

static float weight_at(const struct wide_matrix *w, int64_t n, int64_t k)
{
    return byi_float_at(w->data, n * w->ns + k * w->ks);
}

/* --- errors --------------------------------------------------------------- */

/* The largest magnitude and the sum of squares of the weights and of their
 * errors. */
struct error_sums {
    double largest, largest_error, squares, error_squares;
};

static void add_error(struct error_sums *s, float wide, float narrow)
{
    const double error = (double)wide - (double)narrow;
    s->largest = fmax(s->largest, fabs((double)wide));
    s->largest_error = fmax(s->largest_error, fabs(error));
    s->squares += (double)wide * (double)wide;
    s->error_squares += error * error;
}

static void set_error(const struct error_sums *s,
                      struct byi_narrowed_weight *weight)
{
    weight->largest = s->largest > 0 ? s->largest_error / s->largest : 0;
    weight->rms = s->squares > 0 ? sqrt(s->error_squares / s->squares) : 0;
}

/* --- 16 bits -------------------------------------------------------------- */

static float round_weight(float w, enum narrow_form form)
{
    const enum byoc_dtype dtype = form == FORM_FP16 ? BYOC_F16 : BYOC_BF16;
    return byi_half_to_f32(byi_f32_to_half(w, dtype), dtype);
}

static bool is_16_bit(enum narrow_form form)
{
    return form == FORM_FP16 || form == FORM_BF16;
}

/* Returns why the form cannot hold the n weights, or NULL if it can. The text
 * is static or in the module's arena. */
static const char *find_obstacle(struct byi_module *m, const void *at,
                                 int64_t n, enum narrow_form form)
{
    for (int64_t i = 0; i < n; i++) {
        const float w = byi_float_at(at, i);
        if (!isfinite(w))
            return "it has a value that is infinite or not a number";
        if (is_16_bit(form) && !isfinite(round_weight(w, form)))
            return byi_arena_printf(m->arena,
                                    "its value %s is beyond the range of %s",
                                    BYI_FLOAT_TEXT((double)w),
                                    form == FORM_FP16 ? "float16" : "bfloat16");
    }
    return NULL;
}

/* Add the rounded weights as a constant, weight->rounded. False if it would
 * exceed the module's budget of constants. */
static bool round_weights(struct byi_rewrite *rw, const struct byi_tensor *view,
                          enum narrow_form form,
                          struct byi_narrowed_weight *weight)
{
    const int64_t n = byi_elements(view->rank, view->dims);
    struct error_sums sums = {0};
    struct byi_tensor t;
    if (!byi_rw_alloc(rw, weight->type, &t))
        return false;
    float *to = t.data;
    for (int64_t i = 0; i < n; i++) {
        const float w = byi_float_at(view->data, i);
        to[i] = round_weight(w, form);
        add_error(&sums, w, to[i]);
    }
    set_error(&sums, weight);
    weight->rounded = byi_const_add(rw->m, weight->type, to, true);
    weight->narrow = weight->bytes / 2;
    return true;
}

/* --- blocks of codes ------------------------------------------------------ */

/* A block of codes from `least` to `most`, which stand for the weights
 * (code - zero) * scale. */
struct code_block {
    float scale;
    int zero, least, most;
};

/* Choose scale and zero point for the weights from .. to - 1 of row n. 8-bit
 * codes are symmetric around 128. 4-bit codes cover the range of the weights,
 * extended to 0, and represent 0 exactly. */
static struct code_block find_scale(const struct wide_matrix *w, int64_t n,
                                    int64_t from, int64_t to, int bits)
{
    double low = 0, high = 0;
    for (int64_t k = from; k < to; k++) {
        const double x = (double)weight_at(w, n, k);
        low = fmin(low, x);
        high = fmax(high, x);
    }
    if (bits == 8)
        return (struct code_block){(float)(fmax(-low, high) / 127), 128, 1,
                                   255};
    struct code_block b = {(float)((high - low) / 15), 0, 0, 15};
    if (b.scale > 0)
        b.zero = (int)fmin(rint(-low / (double)b.scale), 15);
    return b;
}

static int code_of(const struct code_block *b, float w)
{
    if (!(b->scale > 0))
        return b->zero;
    const double code = rint((double)w / (double)b->scale) + b->zero;
    return (int)fmin(fmax(code, b->least), b->most);
}

static void encode_block(const struct wide_matrix *w,
                         const struct byi_code_blocks *c, int64_t n, int64_t b,
                         struct error_sums *sums)
{
    const int64_t at = n * c->blocks + b, from = b * c->block;
    const int64_t to = byi_min(from + c->block, w->k);
    const struct code_block block = find_scale(w, n, from, to, c->bits);
    ((float *)c->scales.data)[at] = block.scale;
    if (!c->one_zero)
        ((uint8_t *)c->zeros.data)[at] = (uint8_t)block.zero;
    for (int64_t k = from; k < from + c->block; k++) {
        const float weight = k < to ? weight_at(w, n, k) : 0;
        const int code = code_of(&block, weight);
        byi_code_blocks_set(c, at, k - from, code);
        if (k < to)
            add_error(sums, weight, (float)(code - block.zero) * block.scale);
    }
}

/* Emit the product with codes. Returns BYI_NO_ID if they would exceed the
 * module's budget of constants. */
static byi_id encode_product(struct byi_rewrite *rw, byi_id x,
                             const struct wide_matrix *w,
                             struct byi_narrowed_weight *weight)
{
    const struct narrowing_state *s = rw->state;
    const bool is_int8 = s->form == FORM_INT8;
    struct byi_code_blocks c = {.n = w->n,
                                .blocks = byi_ceil_div(w->k, s->block),
                                .block = s->block,
                                .bits = is_int8 ? 8 : 4,
                                .one_zero = is_int8,
                                .dtype = BYOC_F32};
    struct error_sums sums = {0};
    if (!byi_code_blocks_alloc(rw, &c))
        return BYI_NO_ID;
    if (is_int8)
        *(uint8_t *)c.zeros.data = 128;
    /* n is the inner loop: lines of weights (k, n) stay in the cache */
    for (int64_t b = 0; b < c.blocks; b++)
        for (int64_t n = 0; n < w->n; n++)
            encode_block(w, &c, n, b, &sums);
    set_error(&sums, weight);
    weight->narrow = byi_tensor_bytes(&c.codes) + byi_tensor_bytes(&c.scales) +
                     byi_tensor_bytes(&c.zeros);
    return byi_code_blocks_product(rw, &c, x);
}

/* Read the weights of a product as a matrix. False if the node is not a
 * product, if its weights have another rank than 2, or if it transposes its
 * left operand. */
static bool read_matrix(const struct byi_node *node,
                        const struct byi_tensor *view, struct wide_matrix *w)
{
    const bool dense = node->op == BYI_OP_NN_DENSE;
    if ((!dense && node->op != BYI_OP_NN_MATMUL) || view->rank != 2)
        return false;
    if (!dense && byi_attr_int(node->attrs, "transpose_a"))
        return false;
    const bool transposed = dense || byi_attr_int(node->attrs, "transpose_b");
    *w = (struct wide_matrix){
        view->data, view->dims[!transposed], view->dims[transposed],
        transposed ? view->dims[1] : 1, transposed ? 1 : view->dims[1]};
    return true;
}

/* --- the pass ------------------------------------------------------------- */

/* Returns the entry of a constant, or of a constant that became this rounded
 * constant; NULL if the list has no such entry. */
static struct byi_narrowed_weight *find_weight(struct byi_narrow_list *list,
                                               uint32_t constant)
{
    BYI_INDEX_EACH (&list->places, constant, i)
        if (list->weights.at[i].constant == constant ||
            list->weights.at[i].rounded == constant)
            return &list->weights.at[i];
    return NULL;
}

static void add_weight(struct byi_narrow_list *list,
                       const struct byi_narrowed_weight *weight)
{
    byi_index_add(&list->places, weight->constant, list->weights.n);
    if (weight->rounded != weight->constant)
        byi_index_add(&list->places, weight->rounded, list->weights.n);
    BYI_PUSH(&list->weights, *weight);
}

void byi_narrow_list_free(struct byi_narrow_list *list)
{
    byi_vec_free(list->weights.at);
    byi_index_free(&list->places);
    *list = (struct byi_narrow_list){0};
}

/* Emit the same node with constant `rounded` as its weights. */
static byi_id emit_with_weights(struct byi_rewrite *rw, byi_id at,
                                uint32_t rounded)
{
    byi_id args[8];
    const struct byi_node *node = byi_rw_node(rw, at);
    const uint32_t n = node->n_args;
    if (n > BYI_COUNT(args))
        return BYI_NO_ID;
    memcpy(args, node->args, n * sizeof *args);
    args[1] = byi_add_const(rw->m, rw->f, rounded, NULL);
    return byi_rw_call_like(rw, at, args);
}

static byi_id narrow_weights(struct byi_rewrite *rw, byi_id at,
                             const struct byi_tensor *view,
                             struct byi_narrowed_weight *weight)
{
    const struct narrowing_state *s = rw->state;
    const bool to_codes = !is_16_bit(s->form);
    const struct byi_node *node = byi_rw_node(rw, at);
    struct wide_matrix w = {0};
    byi_id id = BYI_NO_ID;
    weight->kept = find_obstacle(rw->m, view->data,
                                 byi_elements(view->rank, view->dims), s->form);
    if (!weight->kept && to_codes && !read_matrix(node, view, &w))
        weight->kept = "int8 and int4 need a product with a matrix; fp16 "
                       "and bf16 narrow it";
    if (weight->kept)
        return BYI_NO_ID;
    if (to_codes)
        id = encode_product(rw, node->args[0], &w, weight);
    else if (round_weights(rw, view, s->form, weight))
        id = emit_with_weights(rw, at, weight->rounded);
    if (id == BYI_NO_ID)
        weight->kept = "another constant would exceed the limit of constants";
    return id;
}

static byi_id narrow_node(struct byi_rewrite *rw, byi_id at)
{
    const struct narrowing_state *s = rw->state;
    const struct byi_node *node = byi_rw_node(rw, at);
    struct byi_tensor view;
    if (node->type->kind != BYI_TENSOR || node->type->dtype != BYOC_F32 ||
        !byi_rw_view(rw, node->args[1], &view) || view.dtype != BYOC_F32 ||
        byi_elements(view.rank, view.dims) < s->least)
        return BYI_NO_ID;
    const struct byi_node *constant = byi_rw_node(rw, node->args[1]);
    struct byi_narrowed_weight weight = {.to = forms[s->form],
                                         .sources = node->sources,
                                         .type = constant->type,
                                         .bytes = byi_tensor_bytes(&view),
                                         .constant = constant->index,
                                         .rounded = constant->index};
    const struct byi_narrowed_weight *seen =
        find_weight(s->list, constant->index);
    if (seen && (seen->kept ||
                 (is_16_bit(s->form) && seen->rounded == constant->index)))
        return BYI_NO_ID;
    if (seen && is_16_bit(s->form))
        return emit_with_weights(rw, at, seen->rounded);
    const byi_id id = narrow_weights(rw, at, &view, &weight);
    if (!seen)
        add_weight(s->list, &weight);
    return id;
}

static const struct byi_rule rules[] = {
    {BYI_OP_NN_DENSE, narrow_node},
    {BYI_OP_NN_MATMUL, narrow_node},
    {BYI_OP_NN_CONV1D, narrow_node},
    {BYI_OP_NN_CONV2D, narrow_node},
    {BYI_OP_NN_CONV3D, narrow_node},
    {BYI_OP_NN_CONV1D_TRANSPOSE, narrow_node},
    {BYI_OP_NN_CONV2D_TRANSPOSE, narrow_node},
    {BYI_OP_NN_CONV3D_TRANSPOSE, narrow_node},
};

static enum byoc_status read_options(const struct byi_pass_context *ctx,
                                     struct narrowing_state *s,
                                     struct byoc_error *err)
{
    const char *to = byi_option_string(ctx, "NarrowWeights.to");
    uint32_t form = 0;
    s->least = byi_option_int(ctx, "NarrowWeights.least");
    s->block = byi_option_int(ctx, "NarrowWeights.block");
    while (form < BYI_COUNT(forms) && strcmp(forms[form], to) != 0)
        form++;
    if (form == BYI_COUNT(forms))
        return byi_fail(
            err, BYOC_EINVAL,
            "to is '%.40s', expected none, fp16, bf16, int8 or int4", to);
    if (s->least < 1)
        return byi_fail(err, BYOC_EINVAL,
                        "least is %lld, expected a positive number",
                        (long long)s->least);
    if (s->block < 8 || s->block > 4096 || s->block % 8)
        return byi_fail(err, BYOC_EINVAL,
                        "block is %lld, expected a multiple of 8 from 8 to "
                        "4096",
                        (long long)s->block);
    s->form = (enum narrow_form)form;
    return BYOC_OK;
}

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    struct byi_narrow_list local_list = {0};
    struct narrowing_state s = {.list = byi_narrow_list_of(ctx)};
    BYI_TRY(read_options(ctx, &s, err));
    if (s.form == FORM_NONE)
        return BYOC_OK;
    s.list = s.list ? s.list : &local_list;
    const enum byoc_status status =
        byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, &s, err);
    byi_narrow_list_free(&local_list);
    return status;
}

static const struct byi_pass_option options[] = {
    {"to", BYI_ATTR_STRING, "none", "none, fp16, bf16, int8 or int4"},
    {"least", BYI_ATTR_INT, "16384",
     "fewest elements of a weight that is narrowed"},
    {"block", BYI_ATTR_INT, "32",
     "number of weights that share a scale, for int8 and int4"},
    {0},
};

const struct byi_pass byi_pass_narrow_weights = {
    .name = "NarrowWeights",
    .summary = "narrow large float32 weights, if the user requests it",
    .options = options,
    .run_func = run,
};
