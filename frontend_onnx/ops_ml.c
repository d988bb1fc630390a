/* SPDX-License-Identifier: Apache-2.0 */
/* ops_ml.c: converts operators of ai.onnx.ml that prepare features (scalers,
 * imputers, encoders, extractors), and linear models, to simpler operators.
 * Scalers and linear models compute in float32.
 */
#include "frontend_onnx/import.h"

#include <math.h>
#include <string.h>

/* --- helper functions ----------------------------------------------------- */

static byi_id add_vector(struct byi_import *o, enum byoc_dtype dtype, size_t n,
                         const float *values)
{
    const size_t size = byoc_dtype_size(dtype);
    struct byi_tensor t = {.data = byi_arena_calloc(o->scratch, n + 1, size),
                           .dtype = dtype,
                           .rank = 1,
                           .dims = {(int64_t)n}};

    for (size_t i = 0; i < n; i++)
        byi_tensor_set(&t, (int64_t)i, (double)values[i]);
    return byi_import_const(o, &t, false);
}

/* Add the numbers of attribute `name` as a vector. Returns BYI_NO_ID and sets
 * *n to 0 if it is absent. */
static byi_id add_numbers(struct byi_import *o, const char *name,
                          enum byoc_dtype dtype, uint32_t *n)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

    *n = 0;
    if (!a || a->n_floats > UINT32_MAX)
        return BYI_NO_ID;
    *n = (uint32_t)a->n_floats;
    return add_vector(o, dtype, a->n_floats, a->floats);
}

byi_id byi_ml_matrix(struct byi_import *o, uint32_t i, enum byoc_dtype dtype)
{
    const byi_id x = byi_import_in(o, i);
    const uint32_t rank = byi_import_rank(o, x);

    if (byi_import_ok(o) && rank != 1 && rank != 2)
        byi_import_fail(o, BYOC_ETYPE, "input %u has rank %u, expected 1 or 2",
                        i, rank);
    return byi_import_cast(o, byi_import_add_axes(o, x, 0, rank == 1 ? 1 : 0),
                           dtype);
}

byi_id byi_ml_labels(struct byi_import *o, const char *ints, uint32_t *n)
{
    const int64_t *numbers = byi_import_ints(o, ints, n);

    if (numbers && *n)
        return byi_import_vector(o, *n, numbers);
    const char *const *texts = byi_import_strings(o, "classlabels_strings", n);
    if (texts && *n)
        return byi_import_array(o, BYOC_STRING, *n, texts);
    byi_import_fail(o, BYOC_EPARSE,
                    "found no class labels, expected %s or classlabels_strings",
                    ints);
    return BYI_NO_ID;
}

byi_id byi_ml_take(struct byi_import *o, byi_id values, byi_id indices)
{
    return byi_import_take(o, values, byi_import_cast(o, indices, BYOC_I64), 0);
}

byi_id byi_ml_argmax(struct byi_import *o, byi_id scores)
{
    return byi_import_emit(o, BYI_OP_ARGMAX, ARGS(scores),
                           ATTRS(AN_INT("axis", 1), A_BOOL("keepdims", false)));
}

byi_id byi_ml_above(struct byi_import *o, byi_id score, double limit)
{
    return byi_import_template(
        o, "fn (%score) { squeeze(greater(%score, limit), axis=[1]) }",
        ARGS(score), ATTRS(A_FLOAT("limit", limit)));
}

byi_id byi_ml_two_columns(struct byi_import *o, byi_id first, byi_id second)
{
    return byi_import_concat(o, first, second, 1);
}

byi_id byi_ml_complement(struct byi_import *o, byi_id p)
{
    return byi_import_template(o, "fn (%p) { subtract(1, %p) }", ARGS(p),
                               NO_ATTRS);
}

/* --- post transforms ------------------------------------------------------ */

/* Softmax over the non-zero scores. As in ONNX Runtime, a score within 1e-7 of
 * 0 becomes score * exp(-max) / sum. */
static const char softmax_zero[] =
    "fn (%x) {"
    "  %some = greater(abs(%x), 1e-7);"
    "  %most = max(%x, axis=[1], keepdims=true);"
    "  %e = exp(subtract(%x, %most));"
    "  %kept = where(%some, %e, 0);"
    "  %tiny = multiply(%x, exp(negative(%most)));"
    "  divide(where(%some, %e, %tiny), sum(%kept, axis=[1], keepdims=true))"
    "}";

/* sqrt(2) erfinv(2 p - 1), with erfinv by Winitzki's approximation (A handy
 * approximation for the error function and its inverse, 2008), a = 0.147:
 *   l = ln(1 - x^2), v = 2 / (pi a) + l / 2
 *   erfinv(x) = sgn(x) sqrt(sqrt(v^2 - l / a) - v)
 */
static const char probit[] =
    "fn (%p) {"
    "  %x = subtract(multiply(%p, 2), 1);"
    "  %l = log(multiply(subtract(1, %x), add(1, %x)));"
    "  %v = add(multiply(%l, 0.5), two_by_pi_a);"
    "  %root = sqrt(subtract(multiply(%v, %v), multiply(%l, one_by_a)));"
    "  multiply(multiply(sign(%x), sqrt(subtract(%root, %v))), 1.41421356)"
    "}";

byi_id byi_ml_post_transform(struct byi_import *o, byi_id scores,
                             const char *name)
{
    if (strcmp(name, "NONE") == 0)
        return scores;
    if (strcmp(name, "LOGISTIC") == 0)
        return byi_import_call(o, BYI_OP_SIGMOID, scores);
    if (strcmp(name, "SOFTMAX") == 0)
        return byi_import_call(o, BYI_OP_NN_SOFTMAX, scores);
    if (strcmp(name, "SOFTMAX_ZERO") == 0)
        return byi_import_template(o, softmax_zero, ARGS(scores), NO_ATTRS);
    if (strcmp(name, "PROBIT") == 0)
        return byi_import_template(
            o, probit, ARGS(scores),
            ATTRS(A_FLOAT("two_by_pi_a", 2 / (3.14159 * 0.147)),
                  A_FLOAT("one_by_a", 1 / 0.147)));
    byi_import_refuse(o,
                      "post_transform is '%s', expected NONE, LOGISTIC, "
                      "SOFTMAX, SOFTMAX_ZERO or PROBIT",
                      name);
    return BYI_NO_ID;
}

/* --- scaling -------------------------------------------------------------- */

/* (x - offset) scale, for each feature */
static void convert_scaler(struct byi_import *o)
{
    uint32_t n = 0;
    byi_id x = byi_import_cast(o, byi_import_in(o, 0), BYOC_F32);
    const byi_id offset = add_numbers(o, "offset", BYOC_F32, &n);
    const byi_id scale = add_numbers(o, "scale", BYOC_F32, &n);

    if (offset != BYI_NO_ID)
        x = byi_import_call(o, BYI_OP_SUBTRACT, x, offset);
    if (scale != BYI_NO_ID)
        x = byi_import_call(o, BYI_OP_MULTIPLY, x, scale);
    o->out[0] = x;
}

/* Divide each row by its maximum, L1 norm or L2 norm; rows whose norm is 0 are
 * unchanged. */
static void convert_normalizer(struct byi_import *o)
{
    const char *norm = byi_import_string(o, "norm", "MAX");
    const byi_id x = byi_import_cast(o, byi_import_in(o, 0), BYOC_F32);
    const int64_t last[] = {(int64_t)byi_import_rank(o, x) - 1};
    enum byi_op_id op = BYI_OP_MAX;

    if (strcmp(norm, "L1") == 0)
        op = BYI_OP_L1;
    else if (strcmp(norm, "L2") == 0)
        op = BYI_OP_L2;
    else if (strcmp(norm, "MAX") != 0)
        byi_import_refuse(o, "norm is '%s', expected MAX, L1 or L2", norm);
    const byi_id size = byi_import_emit(
        o, op, ARGS(x),
        ATTRS(SOME_INTS("axis", 1, last), A_BOOL("keepdims", true)));
    o->out[0] = byi_import_template(
        o, "fn (%x, %size) { divide(%x, where(equal(%size, 0), 1, %size)) }",
        ARGS(x, size), NO_ATTRS);
}

/* An integer is above the threshold if it is above the threshold's floor, which
 * is an integer too. */
static void convert_binarizer(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const double threshold = byi_import_float(o, "threshold", 0);
    const bool is_int = byi_dtype_is_int(byi_import_dtype(o, x));

    o->out[0] = byi_import_template(
        o, "fn (%x) { cast(greater(%x, threshold), dtype=%x) }", ARGS(x),
        ATTRS(A_FLOAT("threshold", is_int ? floor(threshold) : threshold)));
}

/* Replace elements equal to replaced_value by the imputed value of their
 * feature. */
static void convert_imputer(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const enum byoc_dtype dtype = byi_import_dtype(o, x);
    const bool is_int = byi_dtype_is_int(dtype);
    const double old_float = byi_import_float(o, "replaced_value_float", 0);
    const int64_t old_int = byi_import_int(o, "replaced_value_int64", 0);
    uint32_t n = 0, n_ints = 0;
    const int64_t *ints = byi_import_ints(o, "imputed_value_int64s", &n_ints);
    byi_id imputed =
        add_numbers(o, "imputed_value_floats", is_int ? BYOC_F32 : dtype, &n);

    if (is_int)
        imputed =
            ints ? byi_import_cast(o, byi_import_vector(o, n_ints, ints), dtype)
                 : BYI_NO_ID;
    if (imputed == BYI_NO_ID)
        byi_import_fail(o, BYOC_EPARSE,
                        "found no imputed values, expected %s for x of type %s",
                        is_int ? "imputed_value_int64s"
                               : "imputed_value_floats",
                        byoc_dtype_name(dtype));
    byi_id is_replaced;
    if (!is_int && isnan(old_float))
        is_replaced = byi_import_call(o, BYI_OP_ISNAN, x);
    else
        is_replaced = byi_import_call(
            o, BYI_OP_EQUAL, x,
            is_int
                ? byi_import_cast(
                      o,
                      byi_import_const(o,
                                       &(struct byi_tensor){
                                           .data = (void *)(uintptr_t)&old_int,
                                           .dtype = BYOC_I64},
                                       false),
                      dtype)
                : byi_import_scalar(o, dtype, old_float));
    o->out[0] = byi_import_call(o, BYI_OP_WHERE, is_replaced, imputed, x);
}

/* --- features ------------------------------------------------------------- */

/* The columns of x with the given indices; a vector is one row. */
static void convert_array_feature(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const byi_id index =
        byi_import_reshape_to(o, byi_import_in(o, 1), INTS(-1));
    const byi_id y =
        byi_import_take(o, x, index, (int64_t)byi_import_rank(o, x) - 1);

    o->out[0] =
        byi_import_add_axes(o, y, 0, byi_import_rank(o, x) == 1 ? 1 : 0);
}

/* Encode each element as one-hot in a new last axis: look up the number of its
 * category, which is n for an unknown one. */
static void convert_one_hot(struct byi_import *o)
{
    const byi_id x = byi_import_in(o, 0);
    const bool is_text = byi_import_dtype(o, x) == BYOC_STRING;
    uint32_t n = 0, n_texts = 0;
    const int64_t *ints = byi_import_ints(o, "cats_int64s", &n);
    const char *const *texts = byi_import_strings(o, "cats_strings", &n_texts);

    if (byi_import_int(o, "zeros", 1) == 0)
        byi_import_refuse(
            o, "zeros is 0, so that unknown categories are errors, expected 1");
    if ((is_text ? n_texts : n) == 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "found no categories of x's type, expected %s",
                        is_text ? "cats_strings" : "cats_int64s");
    if (!byi_import_ok(o))
        return;
    n = is_text ? n_texts : n;
    int64_t *numbers = byi_arena_alloc(o->scratch, n * sizeof *numbers);
    for (uint32_t i = 0; i < n; i++)
        numbers[i] = i;
    const byi_id known = is_text ? byi_import_array(o, BYOC_STRING, n, texts)
                                 : byi_import_vector(o, n, ints);
    const byi_id depth = byi_import_scalar(o, BYOC_I64, n);
    const byi_id number = byi_import_call(
        o, BYI_OP_ML_MAP, is_text ? x : byi_import_cast(o, x, BYOC_I64), known,
        byi_import_vector(o, n, numbers), depth);
    o->out[0] = byi_import_call(
        o, BYI_OP_ONE_HOT, number, depth,
        byi_import_array(o, BYOC_F32, 2, (const float[]){0, 1}));
}

/* --- label encoders ------------------------------------------------------- */

/* Add attribute STEM_tensor, STEM_strings, STEM_int64s or STEM_floats as a
 * vector. Returns BYI_NO_ID if all are absent. */
static byi_id read_any_list(struct byi_import *o, const char *stem)
{
    uint32_t n = 0;
    const char *name = byi_arena_printf(o->scratch, "%s_tensor", stem);
    struct byi_tensor t;

    if (byi_import_tensor(o, name, &t))
        return byi_import_const(o, &t, false);
    name = byi_arena_printf(o->scratch, "%s_floats", stem);
    if (byi_import_has_attr(o, name))
        return add_numbers(o, name, BYOC_F32, &n);
    name = byi_arena_printf(o->scratch, "%s_int64s", stem);
    if (byi_import_has_attr(o, name)) {
        const int64_t *ints = byi_import_ints(o, name, &n);
        return byi_import_vector(o, n, ints);
    }
    name = byi_arena_printf(o->scratch, "%s_strings", stem);
    const char *const *texts = byi_import_strings(o, name, &n);
    return texts ? byi_import_array(o, BYOC_STRING, n, texts) : BYI_NO_ID;
}

/* Refuse keys and values that are not vectors of the same length. */
static void check_pairs(struct byi_import *o, byi_id keys, byi_id values)
{
    if (keys == BYI_NO_ID || values == BYI_NO_ID) {
        byi_import_fail(o, BYOC_EPARSE,
                        "found no %s, expected an attribute with them",
                        keys == BYI_NO_ID ? "keys" : "values");
        return;
    }
    const uint32_t rank = byi_import_rank(o, keys);
    const uint32_t rank_of_values = byi_import_rank(o, values);
    if (rank != 1 || rank_of_values != 1) {
        byi_import_fail(
            o, BYOC_EPARSE,
            "keys have rank %u and values rank %u, expected vectors", rank,
            rank_of_values);
        return;
    }
    const int64_t n = byi_import_dim(o, keys, 0);
    const int64_t n_values = byi_import_dim(o, values, 0);
    if (n == 0 || n != n_values)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %lld keys and %lld values, expected vectors of "
                        "the same length, at least 1",
                        (long long)n, (long long)n_values);
}

/* Emit values[i] where keys[i] == x, or the node's default of the values' type.
 */
static byi_id map_keys(struct byi_import *o, byi_id x, byi_id keys,
                       byi_id values)
{
    const int64_t default_int = byi_import_int(o, "default_int64", -1);
    const double default_float = byi_import_float(o, "default_float", -0.0);
    const char *default_text =
        byi_import_string(o, "default_string", "_Unused");
    const struct byi_tensor number = {.data = (void *)(uintptr_t)&default_int,
                                      .dtype = BYOC_I64};
    const struct byi_tensor text = {.data = (void *)(uintptr_t)&default_text,
                                    .dtype = BYOC_STRING};
    const enum byoc_dtype dtype =
        values == BYI_NO_ID ? BYOC_NONE : byi_import_dtype(o, values);
    struct byi_tensor tensor;
    byi_id default_value;

    check_pairs(o, keys, values);
    if (byi_import_tensor(o, "default_tensor", &tensor)) {
        if (byi_elements(tensor.rank, tensor.dims) != 1)
            byi_import_fail(o, BYOC_EPARSE,
                            "default_tensor has %lld elements, expected 1",
                            (long long)byi_elements(tensor.rank, tensor.dims));
        tensor.rank = 0;
        default_value = byi_import_const(o, &tensor, false);
    } else if (dtype == BYOC_STRING || dtype == BYOC_I64)
        default_value =
            byi_import_const(o, dtype == BYOC_I64 ? &number : &text, false);
    else
        default_value = byi_import_scalar(
            o, dtype,
            byi_dtype_is_int(dtype) ? (double)default_int : default_float);
    /* before version 4 a NaN equals no key, not even NaN */
    if (o->opset < 4 && byi_import_ok(o) &&
        byi_dtype_is_float(byi_import_dtype(o, keys)))
        values = byi_import_call(o, BYI_OP_WHERE,
                                 byi_import_call(o, BYI_OP_ISNAN, keys),
                                 default_value, values);
    return byi_import_call(o, BYI_OP_ML_MAP, x, keys, values, default_value);
}

static void convert_label_encoder(struct byi_import *o)
{
    const byi_id keys = read_any_list(o, "keys"),
                 values = read_any_list(o, "values");

    o->out[0] = map_keys(o, byi_import_in(o, 0), keys, values);
}

/* Map strings to their integers, or integers to their strings. */
static void map_labels(struct byi_import *o, byi_id texts, byi_id numbers)
{
    const byi_id x = byi_import_in(o, 0);
    const bool forward = byi_import_dtype(o, x) == BYOC_STRING;

    o->out[0] =
        map_keys(o, x, forward ? texts : numbers, forward ? numbers : texts);
}

static void convert_label_encoder_1(struct byi_import *o)
{
    const byi_id texts = read_any_list(o, "classes");
    const int64_t n = texts == BYI_NO_ID ? 0 : byi_import_dim(o, texts, 0);

    if (byi_import_ok(o))
        map_labels(o, texts, byi_import_series(o, (uint32_t)n, 0, 1));
}

static void convert_category_mapper(struct byi_import *o)
{
    uint32_t n = 0, n_texts = 0;
    const int64_t *ints = byi_import_ints(o, "cats_int64s", &n);
    const char *const *texts = byi_import_strings(o, "cats_strings", &n_texts);

    if (!byi_import_ok(o))
        return;
    const byi_id numbers = byi_import_vector(o, n, ints);
    map_labels(o, byi_import_array(o, BYOC_STRING, n_texts, texts), numbers);
}

/* Refuse input i, a matrix, unless it has `width` columns. */
static void check_columns(struct byi_import *o, uint32_t i, byi_id matrix,
                          int64_t width)
{
    const int64_t columns = byi_import_dim(o, matrix, 1);

    if (columns < 0)
        byi_import_refuse(o,
                          "input %u has a symbolic number of columns, expected "
                          "%lld as in inputdimensions; set it with --dim",
                          i, (long long)width);
    else if (columns != width)
        byi_import_refuse(
            o, "input %u has %lld columns, expected %lld as in inputdimensions",
            i, (long long)columns, (long long)width);
}

/* Concatenate the columns of all inputs. */
static void convert_feature_vectorizer(struct byi_import *o)
{
    uint32_t n = 0;
    const int64_t *widths = byi_import_ints(o, "inputdimensions", &n);
    byi_id *parts = byi_arena_calloc(o->scratch, o->n_in + 1, sizeof *parts);

    if (n != o->n_in)
        byi_import_fail(o, BYOC_EPARSE,
                        "inputdimensions has %u entries, expected %u", n,
                        o->n_in);
    for (uint32_t i = 0; i < o->n_in && byi_import_ok(o); i++) {
        parts[i] = byi_ml_matrix(o, i, BYOC_F32);
        check_columns(o, i, parts[i], widths[i]);
    }
    o->out[0] = byi_import_emit(o, BYI_OP_CONCATENATE, o->n_in, parts,
                                ATTRS(AN_INT("axis", 1)));
}

/* --- linear models -------------------------------------------------------- */

/* Emit x coefficients^T + intercepts, for `n` targets. */
static byi_id emit_linear(struct byi_import *o, uint32_t n)
{
    const byi_id x = byi_ml_matrix(o, 0, BYOC_F32);
    uint32_t n_weights = 0, n_intercepts = 0;
    const byi_id flat = add_numbers(o, "coefficients", BYOC_F32, &n_weights);
    const byi_id intercepts =
        add_numbers(o, "intercepts", BYOC_F32, &n_intercepts);

    if (n == 0 || n_weights % n || n_weights == 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u coefficients, expected a positive multiple "
                        "of %u, the number of targets or scores",
                        n_weights, n);
    if (n_intercepts && n_intercepts != n)
        byi_import_fail(o, BYOC_EPARSE, "found %u intercepts, expected %u",
                        n_intercepts, n);
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const byi_id y =
        byi_import_call(o, BYI_OP_NN_DENSE, x,
                        byi_import_reshape_to(o, flat, INTS(n, n_weights / n)));
    return n_intercepts ? byi_import_call(o, BYI_OP_ADD, y, intercepts) : y;
}

static void convert_linear_regressor(struct byi_import *o)
{
    const int64_t targets = byi_import_int(o, "targets", 1);
    const char *transform = byi_import_string(o, "post_transform", "NONE");

    if (targets < 1 || targets > UINT32_MAX)
        byi_import_fail(o, BYOC_EPARSE,
                        "targets is %lld, expected 1 to 2^32 - 1",
                        (long long)targets);
    o->out[0] =
        byi_ml_post_transform(o, emit_linear(o, (uint32_t)targets), transform);
}

/* There are as many scores as intercepts or, without intercepts, as labels; a
 * single score means two classes. */
static void convert_linear_classifier(struct byi_import *o)
{
    const char *transform = byi_import_string(o, "post_transform", "NONE");
    uint32_t n_labels = 0, n = 0;
    const byi_id labels = byi_ml_labels(o, "classlabels_ints", &n_labels);

    byi_import_int(o, "multi_class", 0);
    add_numbers(o, "intercepts", BYOC_F32, &n);
    n = n ? n : n_labels;
    if (n_labels != (n == 1 ? 2 : n))
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u class labels, expected %u: one for each "
                        "score, or two for a single score",
                        n_labels, n == 1 ? 2 : n);
    const byi_id scores = emit_linear(o, n);
    if (n > 1) {
        o->out[0] = byi_ml_take(o, labels, byi_ml_argmax(o, scores));
        o->out[1] = byi_ml_post_transform(o, scores, transform);
        return;
    }
    if (strcmp(transform, "PROBIT") == 0)
        byi_import_refuse(o, "found PROBIT of one score for two classes, "
                             "expected another post_transform");
    /* a single score is not a distribution: softmax does not apply, as in
     * ONNX Runtime */
    const bool softmax = strncmp(transform, "SOFTMAX", 7) == 0;
    const byi_id y =
        byi_ml_post_transform(o, scores, softmax ? "NONE" : transform);
    o->out[0] = byi_ml_take(o, labels, byi_ml_above(o, scores, 0));
    o->out[1] = byi_ml_two_columns(o, byi_ml_complement(o, y), y);
}

/* clang-format off */
BYI_ONNX_ROWS(ml_linear, BYI_ML,
    {"ArrayFeatureExtractor", 1, 2, 2, convert_array_feature, BYI_OP_NONE},
    {"Binarizer", 1, 1, 1, convert_binarizer, BYI_OP_NONE},
    {"CategoryMapper", 1, 1, 1, convert_category_mapper, BYI_OP_NONE},
    {"FeatureVectorizer", 1, 1, BYI_MAX_ARGS, convert_feature_vectorizer, BYI_OP_NONE},
    {"Imputer", 1, 1, 1, convert_imputer, BYI_OP_NONE},
    {"LabelEncoder", 1, 1, 1, convert_label_encoder_1, BYI_OP_NONE},
    {"LabelEncoder", 2, 1, 1, convert_label_encoder, BYI_OP_NONE},
    {"LinearClassifier", 1, 1, 1, convert_linear_classifier, BYI_OP_NONE},
    {"LinearRegressor", 1, 1, 1, convert_linear_regressor, BYI_OP_NONE},
    {"Normalizer", 1, 1, 1, convert_normalizer, BYI_OP_NONE},
    {"OneHotEncoder", 1, 1, 1, convert_one_hot, BYI_OP_NONE},
    {"Scaler", 1, 1, 1, convert_scaler, BYI_OP_NONE})
/* clang-format on */
