/* SPDX-License-Identifier: Apache-2.0 */
/* FakeQuantizationToInteger: rewrite products between dequantize and quantize
 * (QDQ) to integer products.
 * requires: nothing
 *
 *   %0 = qnn.dequantize(%x, const, const);
 *   %1 = nn.conv2d(%0, const[w]);            qnn.conv2d(%x, const[integers],
 *   %2 = add(%1, const[b]);            ==>       const, const, const[bias],
 *   %3 = nn.relu(%2);                            const[scale], const, a_min=0)
 *   qnn.quantize(%3, const, const)
 *
 * Weights that were dequantised are integers times a scale per output channel,
 * exactly or, if a batch normalization was folded into them, within a few
 * roundings; the pass recovers these integers. Without the quantize the result
 * is float32. Products of int32 whose operands are 8-bit integers minus a zero
 * point (MatMulInteger, ConvInteger) become 8-bit products too, and absorb the
 * scale that multiplies their result. Integer sums are exact where float32
 * rounds, so 8-bit results may differ by 1. The bias is rounded to a multiple
 * of the sums' unit, if the error is below TOLERANCE of the result's scale. A
 * compile runs this after partitioning, since backends match the QDQ pattern.
 *
 * ScaleIntegerProducts, the second pass of this file, only lets products of
 * int32 absorb the scale that multiplies their result. A compile runs it before
 * partitioning, so that a backend cannot take the multiplication alone.
 */
#include "transform.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quantized.h"

#include "core/base/row_codes.h"
#include "core/ops/layout.h"

#define TOLERANCE (1.0 / 64)

/* Operands of qnn.conv2d and similar operators. */
enum { X, WEIGHTS, X_ZERO, WEIGHTS_ZERO, BIAS, SCALE, ZERO, OPERANDS };

/* --- constants ------------------------------------------------------------ */

/* Emit a constant vector of n values; n < 0: a scalar. */
static byi_id make_const(struct byi_rewrite *rw, enum byoc_dtype dtype,
                         int64_t n, const double *values)
{
    struct byi_tensor t;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, dtype, n < 0 ? 0 : 1, &n);
    if (!byi_rw_alloc(rw, type, &t))
        return BYI_NO_ID;
    for (int64_t i = 0; i < (n < 0 ? 1 : n); i++)
        byi_tensor_set(&t, i, values[i]);
    return byi_rw_const(rw, type, &t);
}

static byi_id make_number(struct byi_rewrite *rw, enum byoc_dtype dtype,
                          double value)
{
    return make_const(rw, dtype, -1, &value);
}

/* --- products ------------------------------------------------------------- */

/* A product and its integer counterpart. The result's channels are axis 1 of
 * images, the last axis of matrices. */
struct quant_product {
    enum byi_op_id op, integer;
    bool image;
};

static const struct quant_product products[] = {
    {BYI_OP_NN_CONV1D, BYI_OP_QNN_CONV1D, true},
    {BYI_OP_NN_CONV2D, BYI_OP_QNN_CONV2D, true},
    {BYI_OP_NN_CONV3D, BYI_OP_QNN_CONV3D, true},
    {BYI_OP_NN_DENSE, BYI_OP_QNN_MATMUL, false},
    {BYI_OP_NN_MATMUL, BYI_OP_QNN_MATMUL, false},
};

static const struct quant_product *find_product(const struct byi_rewrite *rw,
                                                byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    for (size_t i = 0; i < BYI_COUNT(products); i++)
        if (products[i].op == node->op &&
            byi_layout_is_default(byi_op(node->op), node->attrs))
            return &products[i];
    return NULL;
}

/* The weights of a product: element (channel o, i) is at index
 * o outer_stride + i inner_stride. */
struct quant_weights {
    const void *data;
    int64_t channels, n; /* n: weights of a channel */
    int64_t outer_stride, inner_stride;
};

static bool transposes_right(const struct byi_node *node)
{
    return node->op == BYI_OP_NN_DENSE ||
           byi_attr_int(node->attrs, "transpose_b");
}

/* Describe constant weights t of a product. False unless they are float32, not
 * empty and, for a matrix product, of rank 2. */
static bool find_weights(const struct byi_node *node, bool image,
                         const struct byi_tensor *t, struct quant_weights *w)
{
    const int64_t n_weights = byi_elements(t->rank, t->dims);
    if (t->dtype != BYOC_F32 || n_weights <= 0 || (!image && t->rank != 2))
        return false;
    const bool rows = image || transposes_right(node);
    w->data = t->data;
    w->channels = t->dims[rows ? 0 : 1];
    w->n = n_weights / w->channels;
    w->outer_stride = rows ? w->n : 1;
    w->inner_stride = rows ? 1 : w->channels;
    return true;
}

/* --- recovering the integers of dequantised weights ----------------------- */

/* The integers of all channels, stored as the weights are, and the scale of
 * each channel. */
struct weight_integers {
    int16_t *values;
    double *scales;  /* indexed by channel */
    int low, high;   /* the integers and 0 are between these */
    int64_t max_sum; /* largest sum of the absolute values of one channel */
};

/* Find the integers and scales of all channels; the arrays are in the scratch
 * arena. False if the weights of a channel are not integers times a scale. Also
 * false if the integers of all channels do not fit in 8 bits with one zero
 * point. */
static bool find_integers(struct byi_rewrite *rw, const struct quant_weights *w,
                          struct weight_integers *q)
{
    float scale = 1;
    int16_t *row = byi_arena_alloc(rw->scratch, (size_t)w->n * sizeof *row + 1);
    q->values = byi_arena_alloc(rw->scratch, (size_t)(w->n * w->channels) *
                                                 sizeof *q->values);
    q->scales =
        byi_arena_calloc(rw->scratch, (size_t)w->channels, sizeof *q->scales);
    for (int64_t o = 0; o < w->channels; o++) {
        int64_t sum = 0;
        if (!byi_find_scale((const float *)w->data + o * w->outer_stride, w->n,
                            w->inner_stride, scale, true, &scale, row))
            return false;
        for (int64_t i = 0; i < w->n; i++) {
            q->values[o * w->outer_stride + i * w->inner_stride] = row[i];
            q->low = row[i] < q->low ? row[i] : q->low;
            q->high = row[i] > q->high ? row[i] : q->high;
            sum += abs(row[i]);
        }
        q->scales[o] = (double)scale;
        q->max_sum = sum > q->max_sum ? sum : q->max_sum;
    }
    return q->high - q->low <= UINT8_MAX;
}

/* Emit the integers as a constant of 8 bits, signed if they fit, in the shape
 * of t. *zero_point becomes a constant with their zero point. Returns BYI_NO_ID
 * if the module's budget of constants is exhausted. */
static byi_id store_integers(struct byi_rewrite *rw, const struct byi_tensor *t,
                             const struct weight_integers *q,
                             byi_id *zero_point)
{
    const bool fits = q->low >= INT8_MIN && q->high <= INT8_MAX;
    const enum byoc_dtype dtype = fits ? BYOC_I8 : BYOC_U8;
    const int zero = fits ? 0 : -q->low;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, dtype, t->rank, t->dims);
    struct byi_tensor stored_values;
    if (!byi_rw_alloc(rw, type, &stored_values))
        return BYI_NO_ID;
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        ((uint8_t *)stored_values.data)[i] = (uint8_t)(q->values[i] + zero);
    *zero_point = make_number(rw, dtype, zero);
    return byi_rw_const(rw, type, &stored_values);
}

/* --- integer products ----------------------------------------------------- */

/* Sums up to this and a bias of the same size fit in int32. */
#define MAX_SUM (INT32_MAX / 2)

/* Emit product `at` as operator `op`, with operands `args`, the attributes
 * `extra`, and those attributes of `at` that `op` has too. */
static byi_id emit_product(struct byi_rewrite *rw, byi_id at, enum byi_op_id op,
                           const byi_id *args, uint32_t n,
                           const struct byi_attr *extra, uint32_t n_extra)
{
    enum { MAX_ATTRS = 16 };
    static const struct byi_attr transposed = {
        .name = "transpose_b", .kind = BYI_ATTR_BOOL, .i = true};
    const struct byi_node *node = byi_rw_node(rw, at);
    const struct byi_op *to = byi_op(op);
    struct byi_attr attrs[MAX_ATTRS];
    uint32_t n_attrs = 0;
    for (uint32_t i = 0; i < n_extra; i++)
        attrs[n_attrs++] = extra[i];
    if (node->op == BYI_OP_NN_DENSE)
        attrs[n_attrs++] = transposed;
    for (uint32_t i = 0; i < to->n_attrs; i++) {
        const struct byi_attr *same =
            byi_attr_find(node->attrs, to->attrs[i].name);
        bool is_set = !same;
        for (uint32_t k = 0; k < n_extra; k++)
            is_set = is_set || strcmp(same->name, extra[k].name) == 0;
        if (!is_set)
            attrs[n_attrs++] = *same;
    }
    return byi_rw_call(rw, op, args, n, attrs, n_attrs);
}

/* Split constant weights into integers and the scale of the sums. False if the
 * weights are not integers times a scale, or if sums may overflow. */
static bool split_weights(struct byi_rewrite *rw, byi_id at, bool image,
                          const struct byi_quantized *x, byi_id *args)
{
    struct byi_tensor t;
    struct quant_weights w;
    struct weight_integers q = {0};
    if (!byi_rw_view(rw, byi_rw_arg(rw, at, 1), &t) ||
        !find_weights(byi_rw_node(rw, at), image, &t, &w) ||
        !find_integers(rw, &w, &q) || q.max_sum * UINT8_MAX > MAX_SUM)
        return false;
    args[WEIGHTS] = store_integers(rw, &t, &q, &args[WEIGHTS_ZERO]);
    for (int64_t o = 0; o < w.channels; o++)
        q.scales[o] *= x->scale;
    args[SCALE] = make_const(rw, BYOC_F32, w.channels, q.scales);
    return true;
}

/* Use 8-bit values that are dequantised at run time as the weights. False if
 * the right operand is not such a value, or if sums may overflow. */
static bool take_weights(struct byi_rewrite *rw, byi_id at,
                         const struct byi_quantized *x, byi_id *args)
{
    const struct byi_type *a = byi_rw_tensor(rw, byi_rw_arg(rw, at, 0));
    struct byi_quantized b;
    if (byi_rw_is(rw, at, BYI_OP_NN_DENSE) || a->rank < 2 ||
        !byi_read_quantized(rw, byi_rw_arg(rw, at, 1), BYI_OP_DEQUANTIZE, &b))
        return false;
    const bool transposed =
        byi_attr_int(byi_rw_node(rw, at)->attrs, "transpose_a");
    const int64_t depth = a->dims[a->rank - (transposed ? 2 : 1)];
    if (BYI_IS_SYMBOL(depth) || depth * UINT8_MAX * UINT8_MAX > MAX_SUM)
        return false;
    args[WEIGHTS] = b.integers;
    args[WEIGHTS_ZERO] = byi_rw_arg(rw, byi_rw_arg(rw, at, 1), 2);
    args[SCALE] = make_number(rw, BYOC_F32, x->scale * b.scale);
    return true;
}

/* Rewrite a product of dequantised values. */
static byi_id rewrite_float_product(struct byi_rewrite *rw, byi_id at)
{
    const struct quant_product *row = find_product(rw, at);
    byi_id args[OPERANDS];
    struct byi_quantized x;
    if (!row ||
        !byi_read_quantized(rw, byi_rw_arg(rw, at, 0), BYI_OP_DEQUANTIZE, &x))
        return BYI_NO_ID;
    args[X] = x.integers;
    args[X_ZERO] = byi_rw_arg(rw, byi_rw_arg(rw, at, 0), 2);
    if (!split_weights(rw, at, row->image, &x, args) &&
        (row->image || !take_weights(rw, at, &x, args)))
        return BYI_NO_ID;
    args[BIAS] = make_number(rw, BYOC_I32, 0);
    return emit_product(rw, at, row->integer, args, ZERO, NULL, 0);
}

/* --- requantised results -------------------------------------------------- */

/* An integer product and the operations between it and a quantize. */
struct quant_chain {
    byi_id product, bias; /* bias: BYI_NO_ID if there is none */
    double low, high;     /* bounds of the result */
};

/* Whether the node is an integer product with float32 results and without a
 * bias. */
static bool is_product(const struct byi_rewrite *rw, byi_id at)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    return node->kind == BYI_CALL_OP && node->op >= BYI_OP_QNN_CONV1D &&
           node->op <= BYI_OP_QNN_MATMUL && node->n_args == ZERO &&
           byi_rw_is_value(rw, node->args[BIAS], 0);
}

/* Clip the bounds of the chain to [low, high]. */
static void clip_bounds(struct quant_chain *c, double low, double high)
{
    c->low = fmin(fmax(low, c->low), c->high);
    c->high = fmin(fmax(high, c->low), c->high);
}

/* Follow first operands from `at` through bounds and at most one bias to an
 * integer product; false if there is another node or another reader. */
static bool read_chain(const struct byi_rewrite *rw, byi_id at,
                       struct quant_chain *c)
{
    *c = (struct quant_chain){
        .bias = BYI_NO_ID, .low = -INFINITY, .high = INFINITY};
    for (; byi_rw_has_one_reader(rw, at); at = byi_rw_arg(rw, at, 0)) {
        const struct byi_node *node = byi_rw_node(rw, at);
        if (is_product(rw, at)) {
            c->product = at;
            return true;
        }
        if (c->bias != BYI_NO_ID)
            return false;
        if (byi_rw_is(rw, at, BYI_OP_NN_RELU))
            clip_bounds(c, 0, INFINITY);
        else if (byi_rw_is(rw, at, BYI_OP_CLIP))
            clip_bounds(c, byi_attr_float(node->attrs, "a_min"),
                        byi_attr_float(node->attrs, "a_max"));
        else if (byi_rw_is(rw, at, BYI_OP_ADD))
            c->bias = byi_rw_arg(rw, at, 1);
        else
            return false;
    }
    return false;
}

/* Read a bias; false unless it is a float32 constant with one element, or one
 * for each channel. Channels are axis `from_back` of results, counted from the
 * end. */
static bool read_bias(const struct byi_rewrite *rw, byi_id id, int64_t channels,
                      uint32_t from_back, struct byi_tensor *t)
{
    if (!byi_rw_view(rw, id, t) || t->dtype != BYOC_F32)
        return false;
    const int64_t n = byi_elements(t->rank, t->dims);
    return n == 1 || (n == channels && t->rank >= from_back &&
                      t->dims[t->rank - from_back] == channels);
}

/* Set the operands of the bias, in units of the sums, and of the scale from
 * sums to the result's integers. False if the bias cannot be rounded or
 * read_bias rejects it. Also false if the scale is not constant, or the number
 * of channels is symbolic or too large. */
static bool scale_bias(struct byi_rewrite *rw, const struct quant_chain *c,
                       double result_scale, byi_id *args)
{
    const struct byi_node *node = byi_rw_node(rw, c->product);
    const bool image = node->op != BYI_OP_QNN_MATMUL;
    struct byi_tensor scale, bias;
    if (!byi_rw_view(rw, node->args[SCALE], &scale) ||
        (image && node->type->rank < 2) || node->type->rank == 0)
        return false;
    const uint32_t rank = node->type->rank, axis = image ? 1 : rank - 1;
    const int64_t channels = node->type->dims[axis];
    if (BYI_IS_SYMBOL(channels) ||
        !byi_consts_can_grow(rw->m, (uint64_t)channels * sizeof(double)) ||
        (c->bias != BYI_NO_ID &&
         !read_bias(rw, c->bias, channels, rank - axis, &bias)))
        return false;
    const bool same_scale = byi_elements(scale.rank, scale.dims) == 1;
    double *units = byi_arena_calloc(rw->scratch, (size_t)channels + 1, 8);
    double *factors = byi_arena_calloc(rw->scratch, (size_t)channels + 1, 8);
    for (int64_t o = 0; o < channels; o++) {
        const double unit = byi_tensor_float(&scale, same_scale ? 0 : o);
        factors[o] = unit / result_scale;
        if (c->bias == BYI_NO_ID)
            continue;
        const bool same_bias = byi_elements(bias.rank, bias.dims) == 1;
        const double quotient =
            byi_tensor_float(&bias, same_bias ? 0 : o) / unit;
        units[o] = rint(quotient);
        if (!(fabs(units[o]) < MAX_SUM) ||
            fabs(quotient - units[o]) * factors[o] > TOLERANCE)
            return false;
    }
    args[BIAS] = c->bias == BYI_NO_ID
                     ? node->args[BIAS]
                     : make_const(rw, BYOC_I32, channels, units);
    args[SCALE] =
        make_const(rw, BYOC_F32,
                   same_scale && c->bias == BYI_NO_ID ? -1 : channels, factors);
    return true;
}

/* Make the attribute of a bound of the result: quantised with the result's
 * scale. */
static struct byi_attr make_bound(const char *name, double value,
                                  const struct byi_quantized *y)
{
    const float units = rintf((float)value / (float)y->scale);
    return (struct byi_attr){
        .name = name,
        .kind = BYI_ATTR_INT,
        .i = (int64_t)fmin(fmax((double)units + y->zero, INT8_MIN), UINT8_MAX)};
}

static byi_id requantize_product(struct byi_rewrite *rw, byi_id at)
{
    struct byi_quantized y;
    struct quant_chain c;
    byi_id args[OPERANDS];
    if (!byi_read_quantized(rw, at, BYI_OP_QUANTIZE, &y) ||
        !read_chain(rw, byi_rw_arg(rw, at, 0), &c))
        return BYI_NO_ID;
    memcpy(args, byi_rw_node(rw, c.product)->args, ZERO * sizeof *args);
    if (!scale_bias(rw, &c, y.scale, args))
        return BYI_NO_ID;
    args[ZERO] = byi_rw_arg(rw, at, 2);
    const struct byi_attr bounds[] = {make_bound("a_min", c.low, &y),
                                      make_bound("a_max", c.high, &y)};
    return emit_product(rw, c.product, byi_rw_node(rw, c.product)->op, args,
                        OPERANDS, bounds, BYI_COUNT(bounds));
}

/* --- products of int32 ---------------------------------------------------- */

/* Match int32 values that are 8-bit integers minus a scalar zero point. *x
 * becomes the integers and *zero their zero point, both of the same dtype. */
static bool read_centred(struct byi_rewrite *rw, byi_id id, byi_id *x,
                         byi_id *zero)
{
    const bool has_zero = byi_rw_is(rw, id, BYI_OP_SUBTRACT);
    const byi_id int32 = has_zero ? byi_rw_arg(rw, id, 0) : id;
    if (!byi_rw_is(rw, int32, BYI_OP_CAST))
        return false;
    *x = byi_rw_arg(rw, int32, 0);
    const struct byi_type *type = byi_rw_tensor(rw, *x);
    if (!type || !byi_is_bytes(type->dtype))
        return false;
    const enum byoc_dtype dtype = type->dtype;
    double value = 0;
    *zero = has_zero ? byi_rw_arg(rw, id, 1) : BYI_NO_ID;
    if (!has_zero || byi_read_number(rw, *zero, &value)) {
        const double low = dtype == BYOC_I8 ? INT8_MIN : 0;
        *zero = make_number(rw, dtype, value);
        return value >= low && value <= low + UINT8_MAX;
    }
    if (!byi_rw_is(rw, *zero, BYI_OP_CAST))
        return false;
    *zero = byi_rw_arg(rw, *zero, 0);
    const struct byi_type *point = byi_rw_tensor(rw, *zero);
    return point && point->dtype == dtype && point->rank <= 1 &&
           byi_elements(point->rank, point->dims) == 1;
}

/* Narrow constant int32 weights to 8 bits with a zero point, if they fit. */
static bool narrow_weights(struct byi_rewrite *rw, byi_id id, byi_id *args)
{
    struct byi_tensor t;
    struct weight_integers q = {0};
    if (!byi_rw_view(rw, id, &t) || t.dtype != BYOC_I32)
        return false;
    const int32_t *at = t.data;
    const int64_t n = byi_elements(t.rank, t.dims);
    q.values = byi_arena_alloc(rw->scratch, (size_t)n * sizeof *q.values + 1);
    for (int64_t i = 0; i < n; i++) {
        if (at[i] < -UINT8_MAX || at[i] > UINT8_MAX)
            return false;
        q.values[i] = (int16_t)at[i];
        q.low = at[i] < q.low ? at[i] : q.low;
        q.high = at[i] > q.high ? at[i] : q.high;
    }
    if (q.high - q.low > UINT8_MAX)
        return false;
    args[WEIGHTS] = store_integers(rw, &t, &q, &args[WEIGHTS_ZERO]);
    return true;
}

/* Read the operands of a product of int32 values that are 8-bit integers minus
 * zero points. Returns the row of the node's operator, or NULL if the node is
 * not such a product. */
static const struct quant_product *read_integers(struct byi_rewrite *rw,
                                                 byi_id at, byi_id *args)
{
    const struct quant_product *row = find_product(rw, at);
    const struct byi_type *type = byi_rw_tensor(rw, at);
    if (!row || !type || type->dtype != BYOC_I32 ||
        !read_centred(rw, byi_rw_arg(rw, at, 0), &args[X], &args[X_ZERO]) ||
        (!narrow_weights(rw, byi_rw_arg(rw, at, 1), args) &&
         !read_centred(rw, byi_rw_arg(rw, at, 1), &args[WEIGHTS],
                       &args[WEIGHTS_ZERO])))
        return NULL;
    return row;
}

static byi_id rewrite_int32_product(struct byi_rewrite *rw, byi_id at)
{
    byi_id args[OPERANDS];
    const struct quant_product *row = read_integers(rw, at, args);
    return row ? emit_product(rw, at, row->integer, args, BIAS, NULL, 0)
               : BYI_NO_ID;
}

/* Read the operands of a product with int32 sums. Returns the operator that
 * computes it from 8-bit integers, or BYI_OP_NONE if the node is not such a
 * product. */
static enum byi_op_id read_sums(struct byi_rewrite *rw, byi_id sums,
                                byi_id *args)
{
    const struct byi_node *node = byi_rw_node(rw, sums);
    if (node->kind != BYI_CALL_OP || !byi_rw_has_one_reader(rw, sums))
        return BYI_OP_NONE;
    if (node->op < BYI_OP_QNN_CONV1D || node->op > BYI_OP_QNN_MATMUL) {
        const struct quant_product *row = read_integers(rw, sums, args);
        return row ? row->integer : BYI_OP_NONE;
    }
    if (node->n_args != BIAS)
        return BYI_OP_NONE;
    memcpy(args, node->args, BIAS * sizeof *args);
    return node->op;
}

/* Whether `scale` is one float32 number, or one for each column of the sums of
 * a matrix product. */
static bool is_scale_of_sums(const struct byi_rewrite *rw, byi_id scale,
                             enum byi_op_id op, byi_id sums)
{
    const struct byi_type *scale_type = byi_rw_tensor(rw, scale);
    const struct byi_type *type = byi_rw_tensor(rw, sums);
    if (!scale_type || !type || scale_type->dtype != BYOC_F32 ||
        scale_type->rank > 1)
        return false;
    return byi_elements(scale_type->rank, scale_type->dims) == 1 ||
           (op == BYI_OP_QNN_MATMUL && type->rank > 0 &&
            type->dims[type->rank - 1] == scale_type->dims[0]);
}

/* Rewrite cast(sums) times a scale, per-tensor or per-column, to a product with
 * that scale. */
static byi_id scale_sums(struct byi_rewrite *rw, byi_id at)
{
    for (uint32_t i = 0; i < 2; i++) {
        const byi_id float_sums = byi_rw_arg(rw, at, i);
        const byi_id scale = byi_rw_arg(rw, at, 1 - i);
        byi_id args[OPERANDS];
        if (!byi_rw_is(rw, float_sums, BYI_OP_CAST) ||
            !byi_rw_has_one_reader(rw, float_sums))
            continue;
        const byi_id sums = byi_rw_arg(rw, float_sums, 0);
        const enum byi_op_id op = read_sums(rw, sums, args);
        if (op == BYI_OP_NONE || !is_scale_of_sums(rw, scale, op, sums))
            continue;
        args[BIAS] = make_number(rw, BYOC_I32, 0);
        args[SCALE] = scale;
        return emit_product(rw, sums, op, args, ZERO, NULL, 0);
    }
    return BYI_NO_ID;
}

BYI_RULES_PASS(fake_quantization_to_integer, "FakeQuantizationToInteger", 1,
               "replace products of dequantised numbers by 8-bit products",
               {BYI_OP_NN_CONV1D, rewrite_float_product},
               {BYI_OP_NN_CONV2D, rewrite_float_product},
               {BYI_OP_NN_CONV3D, rewrite_float_product},
               {BYI_OP_NN_DENSE, rewrite_float_product},
               {BYI_OP_NN_MATMUL, rewrite_float_product},
               {BYI_OP_NN_CONV1D, rewrite_int32_product},
               {BYI_OP_NN_CONV2D, rewrite_int32_product},
               {BYI_OP_NN_CONV3D, rewrite_int32_product},
               {BYI_OP_NN_MATMUL, rewrite_int32_product},
               {BYI_OP_MULTIPLY, scale_sums},
               {BYI_OP_QUANTIZE, requantize_product})

BYI_RULES_PASS(scale_integer_products, "ScaleIntegerProducts", 1,
               "fold the scale of the sums into products of 8-bit integers",
               {BYI_OP_MULTIPLY, scale_sums})
