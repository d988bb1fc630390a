/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_types_test.c: tests importing operators with unusual element types: the
 * importer inserts casts or other operators, or refuses the node. Also tests
 * batch normalisation with statistics for each element, and initializers of 4
 * bits.
 */
#include "models.h"

static void integers_are_cast(void **state)
{
    struct build b = begin(16);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "1 1 2 2");
    input(&b, "grid", "1 2 2 2");
    node(&b, "Erf", "x", "y");
    attr_string(&b, node(&b, "GridSample", "x grid", "z"), "mode", "nearest");
    output(&b, "y");
    output(&b, "z");
    EXPECT(&b, "cast(%x, dtype=\"float64\")", "erf(", "dtype=\"int64\"",
           "cast(%grid, dtype=\"float64\")", "image.grid_sample(",
           "mode=\"nearest\"", "dtype=\"int64\"");
}

static void operators_of_strings(void **state)
{
    struct build b = begin(14);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, "2 3");
    node(&b, "NonZero", "x", "y");
    node(&b, "Trilu", "x", "z");
    output(&b, "y");
    output(&b, "z");
    EXPECT(&b, "Tensor[(2, 3), string])", "not_equal(%x, ", "nonzero(",
           "trilu(%x)");
}

/* Statistics are float32 and data float16: intermediate values are not rounded
 * to float16. */
static void mixed_statistics(void **state)
{
    struct build b = begin(15);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, "2 3");
    input(&b, "p", "3");
    node(&b, "BatchNormalization", "x p p p p", "y");
    output(&b, "y");
    EXPECT(&b, "cast(%x, dtype=\"float32\")", "nn.batch_norm(%",
           ", %p, %p, %p, %p)", "dtype=\"float16\"");
}

static void statistics_of_elements(void **state)
{
    struct build b = begin(7);
    (void)state;

    input(&b, "x", "N 3 4");
    input(&b, "p", "3 4");
    attr_int(&b, node(&b, "BatchNormalization", "x p p p p", "y"), "spatial",
             0);
    output(&b, "y");
    EXPECT(&b, "add(%p, 1e-05f)", "rsqrt(", "multiply(%p, ",
           "subtract(%x, %p)");
}

static void strings_have_no_erf(void **state)
{
    struct build b = begin(13);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, "1 1 2 2");
    node(&b, "Erf", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "erf: x has type string");
}

static void strings_are_not_interpolated(void **state)
{
    struct build b = begin(16);
    (void)state;

    typed_input(&b, "x", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, "1 1 2 2");
    input(&b, "grid", "1 2 2 2");
    node(&b, "GridSample", "x grid", "y");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE,
           "image.grid_sample: x has type string, expected a floating-point");
}

enum { ONNX_UINT4 = 21, ONNX_INT4 = 22 }; /* older onnx.proto lack them */

/* An initializer of n elements, cast to int32. */
static void cast_packed(struct build *b, const char *name, int dtype, int64_t n,
                        const char *data)
{
    char result[32];
    Onnx__TensorProto *t = tensor(b, name, dtype, 1, &n);
    raw(b, t, data, (size_t)(n + 1) / 2);
    weight(b, t);
    snprintf(result, sizeof result, "%s32", name);
    attr_int(b, node(b, "Cast", name, result), "to",
             ONNX__TENSOR_PROTO__DATA_TYPE__INT32);
    output(b, result);
}

/* Two 4-bit elements share a byte. If the number of elements is odd, the high
 * half of the last byte is ignored. */
static void packed_elements(void **state)
{
    struct build b = begin(21);
    (void)state;

    cast_packed(&b, "a", ONNX_INT4, 1, "\x0d");
    cast_packed(&b, "b", ONNX_UINT4, 1, "\xff");
    cast_packed(&b, "c", ONNX_INT4, 3, "\xd2\xf8");
    EXPECT(&b, "Tensor[(1), int4] {-3}", "Tensor[(1), uint4] {15}",
           "Tensor[(3), int4] {2, -3, -8}");
}

/* A scale and a zero point may differ in rank if they have one element, which
 * may be known only at run time, and x then needs no axis for them. */
static void scale_of_one(void **state)
{
    static const char *const sizes[][2] = {
        {"N", "4 8"}, {"1", "4"}, {"N", "4"}};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(sizes); i++) {
        struct build b = begin(17);
        input(&b, "x", sizes[i][1]);
        input(&b, "s", sizes[i][0]);
        typed_input(&b, "z", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, "");
        node(&b, "QuantizeLinear", "x s z", "y");
        output(&b, "y");
        EXPECT(&b, "reshape(%s, ", "qnn.quantize(%x, ");
    }
}

/* The divisor 255 of the scale is not a constant operand of the division, for
 * which passes would multiply by its rounded reciprocal. */
static void dynamic_scale_is_divided(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "4");
    node(&b, "DynamicQuantizeLinear", "x", "y s z");
    output(&b, "y");
    EXPECT(&b, "equal(", "where(", ", 255.0f)", "divide(%", "qnn.quantize(%x");
}

/* QLinearMatMul with a scale and a zero point for each column of each matrix,
 * or for each column. */
static void scale_of_stack(void **state)
{
    static const char *const scales[][2] = {{"2 1 4", "multiply("},
                                            {"1 1 4", "qnn.dequantize(%b"}};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(scales); i++) {
        struct build b = begin(21);
        typed_input(&b, "a", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, "2 5 3");
        typed_input(&b, "b", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, "2 3 4");
        input(&b, "s", "");
        typed_input(&b, "z", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, "");
        input(&b, "t", scales[i][0]);
        typed_input(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8,
                    scales[i][0]);
        node(&b, "QLinearMatMul", "a s z b t w s z", "y");
        output(&b, "y");
        EXPECT(&b, "qnn.dequantize(%a", scales[i][1], "nn.matmul(",
               "qnn.quantize(");
    }
}

/* Channels and numbers of pads that are known only at run time. */
static void sizes_known_at_run_time(void **state)
{
    struct build b = begin(20);
    (void)state;

    input(&b, "x", "2 C 8");
    input(&b, "g", "3");
    int_input(&b, "p", "N");
    int_input(&b, "a", "2");
    attr_int(&b, node(&b, "GroupNormalization", "x g g", "n"), "num_groups", 3);
    node(&b, "Pad", "n p - a", "y");
    output(&b, "y");
    EXPECT(&b, "nn.group_norm(%x", "num_groups=3", "nn.pad(");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scale_of_one),
        cmocka_unit_test(dynamic_scale_is_divided),
        cmocka_unit_test(scale_of_stack),
        cmocka_unit_test(sizes_known_at_run_time),
        cmocka_unit_test(integers_are_cast),
        cmocka_unit_test(operators_of_strings),
        cmocka_unit_test(mixed_statistics),
        cmocka_unit_test(statistics_of_elements),
        cmocka_unit_test(strings_have_no_erf),
        cmocka_unit_test(strings_are_not_interpolated),
        cmocka_unit_test(packed_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
