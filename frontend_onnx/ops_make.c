/* SPDX-License-Identifier: Apache-2.0 */
/* ops_make.c: converts operators that create values: constants, fills, ranges,
 * shapes.
 */
#include "frontend_onnx/import.h"

#include <math.h>

/* --- Constant ------------------------------------------------------------- */

static void decode_attribute(struct byi_import *o,
                             const Onnx__TensorProto *proto,
                             struct byi_tensor *t)
{
    if (!byi_import_ok(o))
        return;
    o->status = byi_onnx_decode(o->file, proto, NULL, t, &o->err);
    if (!byi_import_ok(o))
        byi_prefix(&o->err, "node %.200s (%.100s)", o->name, o->row->type);
}

static byi_id add_string_vector(struct byi_import *o)
{
    uint32_t n = 0;
    const char *const *values = byi_import_strings(o, "value_strings", &n);

    return byi_import_array(o, BYOC_STRING, n, values);
}

static byi_id add_sparse(struct byi_import *o)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, "sparse_value",
                        ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR);
    struct byi_tensor t = {0};

    if (!a || !byi_import_ok(o))
        return BYI_NO_ID;
    o->status = byi_onnx_decode_sparse(o->file, a->sparse_tensor, &t, &o->err);
    if (byi_import_ok(o))
        return byi_import_const_of(o, &t, true, o->sources);
    byi_prefix(&o->err, "node %.200s (%.100s)", o->name, o->row->type);
    return BYI_NO_ID;
}

/* Exactly one attribute holds the value. */
static void convert_constant(struct byi_import *o)
{
    enum {
        FLOATS = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS,
        TENSOR = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR
    };
    struct byi_tensor t = {0};
    uint32_t n = 0;

    if (o->node->n_attribute != 1) {
        byi_import_fail(o, BYOC_EPARSE, "found %zu attributes, expected one",
                        o->node->n_attribute);
    } else if (byi_import_has_attr(o, "value")) {
        const Onnx__AttributeProto *a = byi_import_attr(o, "value", TENSOR);
        if (a)
            decode_attribute(o, a->t, &t);
        o->out[0] = byi_import_const_of(o, &t, true, o->sources);
    } else if (byi_import_has_attr(o, "sparse_value")) {
        o->out[0] = add_sparse(o);
    } else if (byi_import_has_attr(o, "value_int")) {
        int64_t value = byi_import_int(o, "value_int", 0);
        t = (struct byi_tensor){.data = &value, .dtype = BYOC_I64};
        o->out[0] = byi_import_const(o, &t, false);
    } else if (byi_import_has_attr(o, "value_float")) {
        o->out[0] = byi_import_scalar(o, BYOC_F32,
                                      byi_import_float(o, "value_float", 0));
    } else if (byi_import_has_attr(o, "value_ints")) {
        const int64_t *values = byi_import_ints(o, "value_ints", &n);
        o->out[0] = byi_import_vector(o, n, values);
    } else if (byi_import_has_attr(o, "value_floats")) {
        const Onnx__AttributeProto *a =
            byi_import_attr(o, "value_floats", FLOATS);
        if (a && a->n_floats <= UINT32_MAX)
            o->out[0] =
                byi_import_array(o, BYOC_F32, (uint32_t)a->n_floats, a->floats);
    } else if (byi_import_has_attr(o, "value_string")) {
        const char *value = byi_import_string(o, "value_string", "");
        t = (struct byi_tensor){.data = &value, .dtype = BYOC_STRING};
        o->out[0] = byi_import_const(o, &t, false);
    } else if (byi_import_has_attr(o, "value_strings")) {
        o->out[0] = add_string_vector(o);
    } else {
        byi_import_refuse(
            o, "found attribute '%s', expected value, value_int or similar",
            byi_text_or(o->node->attribute[0]->name, ""));
    }
}

/* --- fills ---------------------------------------------------------------- */

/* full(shape) if a double holds the value exactly, otherwise
 * broadcast_to(value). */
static void convert_constant_of_shape(struct byi_import *o)
{
    const Onnx__AttributeProto *a = byi_import_attr(
        o, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);
    const byi_id shape = byi_import_cast(o, byi_import_in(o, 0), BYOC_I64);
    float zero = 0;
    struct byi_tensor t = {.data = &zero, .dtype = BYOC_F32};

    if (a)
        decode_attribute(o, a->t, &t);
    if (!byi_import_ok(o))
        return;
    if (byi_elements(t.rank, t.dims) != 1 || byoc_dtype_size(t.dtype) == 0 ||
        byoc_dtype_size(t.dtype) > 8) {
        byi_import_refuse(
            o,
            "attribute 'value' has %lld elements of type %s, expected "
            "one number",
            (long long)byi_elements(t.rank, t.dims), byoc_dtype_name(t.dtype));
        return;
    }
    const double value = byi_tensor_float(&t, 0);
    if (byi_dtype_is_float(t.dtype) || fabs(value) < 0x1p53) {
        o->out[0] = byi_import_emit(
            o, BYI_OP_FULL, ARGS(shape),
            ATTRS(A_FLOAT("value", value), A_DTYPE("dtype", t.dtype)));
        return;
    }
    t.rank = 0;
    o->out[0] = byi_import_call(o, BYI_OP_BROADCAST_TO,
                                byi_import_const(o, &t, false), shape);
}

static void convert_eye_like(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype =
        byi_import_dtype_attr(o, "dtype", byi_import_dtype(o, x));

    o->out[0] = byi_import_same(o, BYI_OP_EYE_LIKE, ARGS(x),
                                ATTRS(A_DTYPE("dtype", dtype)));
}

byi_id byi_import_length(struct byi_import *o, byi_id id, int64_t axis)
{
    return byi_import_as_scalar(
        o,
        byi_import_emit(o, BYI_OP_SHAPE_OF, ARGS(id),
                        ATTRS(AN_INT("start", axis), AN_INT("end", axis + 1))));
}

/* Whether an int64 scalar is the constant `value`. */
static bool is_number(struct byi_import *o, byi_id id, int64_t value)
{
    uint32_t n = 0;
    const struct byi_dim_item *item = byi_import_items(o, id, &n);

    return item && n == 1 && item->kind == BYI_NUMBER && item->value == value;
}

/* arange(0, n, 1), where n is a dim of a tensor, is arange_like of the tensor:
 * then the result's dim is the same symbol as the tensor's, not a new one. */
static byi_id emit_range(struct byi_import *o, byi_id start, byi_id end,
                         byi_id step)
{
    uint32_t n = 0;
    const struct byi_dim_item *limit = byi_import_items(o, end, &n);

    if (limit && n == 1 && limit->kind == BYI_SYMBOL && limit->func == o->f &&
        is_number(o, start, 0) && is_number(o, step, 1))
        return byi_import_emit(o, BYI_OP_ARANGE_LIKE, ARGS(limit->tensor),
                               ATTRS(AN_INT("axis", limit->axis)));
    return byi_import_call(o, BYI_OP_ARANGE, start, end, step);
}

byi_id byi_import_arange(struct byi_import *o, byi_id start, byi_id end)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, end);
    const byi_id first =
        start == BYI_NO_ID ? byi_import_scalar(o, dtype, 0) : start;

    return emit_range(o, first, end, byi_import_scalar(o, dtype, 1));
}

/* In com.microsoft's Range, delta is optional. */
static void convert_range(struct byi_import *o)
{
    const byi_id start = byi_import_in(o, 0), delta = byi_import_in(o, 2);

    o->out[0] = emit_range(
        o, start, byi_import_in(o, 1),
        delta == BYI_NO_ID ? byi_import_scalar(o, byi_import_dtype(o, start), 1)
                           : delta);
}

#define SAME byi_import_convert_same
/* clang-format off */
BYI_ONNX_ROWS(onnx_make, BYI_ONNX,
    {"Constant", 1, 0, 0, convert_constant, BYI_OP_NONE},
    {"ConstantOfShape", 9, 1, 1, convert_constant_of_shape, BYI_OP_NONE},
    {"EyeLike", 9, 1, 1, convert_eye_like, BYI_OP_NONE},
    {"Range", 11, 3, 3, convert_range, BYI_OP_ARANGE},
    {"Shape", 1, 1, 1, SAME, BYI_OP_SHAPE_OF},
    {"Size", 1, 1, 1, SAME, BYI_OP_SIZE_OF})

BYI_ONNX_ROWS(microsoft_make, BYI_MICROSOFT,
    {"Range", 1, 2, 3, convert_range, BYI_OP_NONE})
/* clang-format on */
