/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_signal_test.c: tests importing windows, Fourier transforms, unpooling,
 * batch statistics, Unique with chosen outputs, and the refusal of training
 * operators.
 */
#include "models.h"

static void windows(void **state)
{
    struct build b = begin(17);
    (void)state;

    int_input(&b, "n", "");
    node(&b, "HannWindow", "n", "a");
    node(&b, "HammingWindow", "n", "b");
    attr_int(&b, node(&b, "BlackmanWindow", "n", "c"), "periodic", 0);
    output(&b, "a");
    output(&b, "b");
    output(&b, "c");
    EXPECT(&b, "arange(0.0f64, ", "cos(", "-0.5f64", "0.5f64",
           "dtype=\"float32\"", "cos(", "-0.45652173913043476f64",
           "0.5434782608695652f64", "maximum(", "cos(", "0.42f64", "0.08f64");
}

static void transforms(void **state)
{
    struct build b = begin(17);
    (void)state;

    input(&b, "x", "2 64 1");
    input(&b, "w", "16");
    int_input(&b, "n", "");
    Onnx__NodeProto *dft = node(&b, "DFT", "x n", "a");
    attr_int(&b, dft, "onesided", 1);
    attr_int(&b, node(&b, "DFT", "a", "b"), "inverse", 1);
    node(&b, "STFT", "x n w", "c");
    input(&b, "real", "2 64");
    node(&b, "STFT", "real n w", "d");
    output(&b, "b");
    output(&b, "c");
    output(&b, "d");
    EXPECT(&b, "dft(%x, %n, onesided=true)", "inverse=true", "take(%x, ",
           "axis=1)", "multiply(", "axis=2, onesided=true)",
           "expand_dims(%real, axis=[2])", "axis=2, onesided=true)");
}

static void bad_transforms(void **state)
{
    static const struct {
        const char *dims, *op, *in, *why;
        enum byoc_status status;
    } cases[] = {
        {"2 64 3", "DFT", "x", "the last axis of x has size 3, expected 1",
         BYOC_ETYPE},
        {"64", "STFT", "x n - n", "found a signal of rank 1, expected 2 (batch",
         BYOC_ETYPE},
        {"2 64 1", "STFT", "x n", "neither a window nor a frame_length",
         BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin(17);
        input(&b, "x", cases[i].dims);
        int_input(&b, "n", "");
        node(&b, cases[i].op, cases[i].in, "y");
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

static void unpooled(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "1 1 2 3");
    int_input(&b, "i", "1 1 2 3");
    Onnx__NodeProto *n = node(&b, "MaxUnpool", "x i", "y");
    attr_ints(&b, n, "kernel_shape", 2, (const int64_t[]){2, 3});
    attr_ints(&b, n, "strides", 2, (const int64_t[]){2, 2});
    output(&b, "y");
    EXPECT(&b, "multiply(%0, [1, 1, 2, 2])", "add(%1, [0, 0, 0, 1])", "prod(",
           "scatter_elements(", "reshape(%8, %2, allowzero=true)");
    b = begin(11);
    input(&b, "x", "1 1 2 3");
    node(&b, "MaxUnpool", "x x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "attribute 'kernel_shape' is missing");
}

static void batch_statistics(void **state)
{
    struct build b = begin(15);
    (void)state;

    input(&b, "x", "4 2 3");
    floats(&b, "s", 1, (const int64_t[]){2});
    attr_int(&b, node(&b, "BatchNormalization", "x s s s s", "y m v"),
             "training_mode", 1);
    output(&b, "y");
    output(&b, "m");
    output(&b, "v");
    EXPECT(&b, "mean(%x, axis=[0, 2])", "mean(%x, axis=[0, 2], keepdims=false)",
           "nn.batch_norm(%x, ");
}

static void unique_outputs(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "4 2");
    attr_int(&b, node(&b, "Unique", "x", "y - i"), "sorted", 0);
    output(&b, "y");
    output(&b, "i");
    EXPECT(&b, "unique(%x, flat=true, sorted=false)", ".0", ".2");
}

static void training_operator(void **state)
{
    struct build b = begin(15);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Adam", "x x x x", "y")->domain =
        byi_arena_str(b.arena, "ai.onnx.preview.training");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "operator Adam (domain ai.onnx.preview.training, opset 0) is not "
           "supported: it is a training operator");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),           cmocka_unit_test(transforms),
        cmocka_unit_test(bad_transforms),    cmocka_unit_test(unpooled),
        cmocka_unit_test(batch_statistics),  cmocka_unit_test(unique_outputs),
        cmocka_unit_test(training_operator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
