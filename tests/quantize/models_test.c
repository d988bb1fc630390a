/* SPDX-License-Identifier: Apache-2.0 */
/* models_test.c: tests the quantisation of models with bodies, and of models of
 * old opsets, which it converts first. If TopK selects the outputs,
 * quantisation measures the noise of TopK's operand.
 */
#include "tests/frontend_onnx/models.h"

#include <byoc/byoc.h>

#include "npy/npy.h"
#include "quantize/quantize.h"

enum { SIDE = 16, CHANNELS = 32 };

/* A convolution of "x" with result "c", and a sample of "x". */
static struct build begin_conv(int64_t opset)
{
    struct build b = begin(opset);
    struct byoc_error err;
    char path[TEST_PATH + 32];
    const int64_t weights[] = {CHANNELS, CHANNELS, 3, 3};
    const int64_t dims[] = {1, CHANNELS, SIDE, SIDE};
    struct byi_tensor t = {.dtype = BYOC_F32, .rank = 4};
    const int64_t n = byi_elements(4, dims);
    float *x = byi_arena_alloc(b.arena, (size_t)n * sizeof *x);

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i * 37 % 101 - 50) / 50;
    t.data = x;
    memcpy(t.dims, dims, sizeof dims);
    snprintf(path, sizeof path, "%s/input_0.npy", b.folder);
    assert_int_equal(byi_npy_write(path, &t, &err), BYOC_OK);
    input(&b, "x", "1 32 16 16");
    floats(&b, "w", 4, weights);
    node(&b, "Conv", "x w", "c");
    return b;
}

/* Quantise the model, calibrated with the sample of begin_conv. */
static enum byoc_status quantize(struct build *b,
                                 struct byi_quantize_report *report,
                                 struct byoc_error *err)
{
    const struct byi_quantize_params params = {.samples = b->folder};
    char to[TEST_PATH + 32];

    save(b);
    snprintf(to, sizeof to, "%s/q.onnx", b->folder);
    return byi_quantize(b->path, &params, to, b->arena, report, err);
}

/* Check that the weights become bytes, and the outputs change little. */
static void check(struct build *b, bool selected)
{
    struct byi_quantize_report report;
    struct byoc_error err;

    if (quantize(b, &report, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(report.n_layers, 1);
    assert_false(report.layers[0].kept);
    assert_int_equal(report.selected, selected);
    assert_true(report.output_snr > 30);
    assert_true(report.bytes[1] < report.bytes[0] / 3);
    end(b);
}

/* Opset 9 with IR version 3, in which initializers must also be inputs;
 * `domain` is ONNX's domain in either spelling. */
static void check_opset_9(char *domain)
{
    struct build b = begin_conv(9);
    static const int64_t starts[] = {1, 2}, ends[] = {9, 10}, axes[] = {2, 3};

    b.model->ir_version = 3;
    b.model->opset_import[0]->domain = domain;
    input(&b, "w", "32 32 3 3");
    Onnx__NodeProto *slice = node(&b, "Slice", "c", "y");
    attr_ints(&b, slice, "starts", 2, starts);
    attr_ints(&b, slice, "ends", 2, ends);
    attr_ints(&b, slice, "axes", 2, axes);
    slice->domain = domain;
    output(&b, "y");
    check(&b, false);
}

static void test_opset_9(void **state)
{
    char empty[] = "", name[] = "ai.onnx";
    (void)state;

    check_opset_9(empty);
    check_opset_9(name);
}

/* A model older than opset 9 is refused, with advice. */
static void test_opset_8_is_refused(void **state)
{
    struct build b = begin_conv(8);
    struct byi_quantize_report report;
    struct byoc_error err;
    (void)state;

    output(&b, "c");
    assert_int_equal(quantize(&b, &report, &err), BYOC_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "opset 8"));
    assert_non_null(strstr(err.text, "onnx.version_converter"));
    end(&b);
}

/* TopK's order and indices may change much with little noise; its operand does
 * not. */
static void test_topk(void **state)
{
    struct build b = begin_conv(9);
    (void)state;

    Onnx__NodeProto *top = node(&b, "TopK", "c", "y i");
    attr_int(&b, top, "k", 3);
    node(&b, "Cast", "i", "z");
    attr_int(&b, b.graph->node[2], "to", 1);
    output(&b, "y");
    output(&b, "z");
    check(&b, true);
}

/* A body that reads a tensor of the graph: the float32 weights are removed
 * nevertheless. */
static void test_if_bodies(void **state)
{
    struct build b = begin_conv(13);
    static const int64_t one = 1;
    static const uint8_t yes = 1;
    (void)state;

    Onnx__TensorProto *condition =
        tensor(&b, "if", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, 1, &one);
    raw(&b, condition, &yes, 1);
    weight(&b, condition);
    floats(&b, "more", 1, &one);
    Onnx__NodeProto *choice = node(&b, "If", "if", "y");
    for (int i = 0; i < 2; i++) {
        Onnx__GraphProto *outer = enter(&b);
        node(&b, i ? "Sub" : "Add", "c more", "r");
        output(&b, "r");
        attr_graph(&b, choice, i ? "else_branch" : "then_branch",
                   leave(&b, outer));
    }
    output(&b, "y");
    check(&b, false);
}

/* The scale of a tensor in the quantised model. */
static float scale_of(const struct build *b, const char *name)
{
    char path[TEST_PATH + 32], scale_name[32];
    const void *bytes;
    size_t n;
    float scale = 0;

    snprintf(path, sizeof path, "%s/q.onnx", b->folder);
    snprintf(scale_name, sizeof scale_name, "%s_scale", name);
    assert_int_equal(byi_map_file(path, &bytes, &n, NULL), BYOC_OK);
    Onnx__ModelProto *m = onnx__model_proto__unpack(NULL, n, bytes);
    assert_non_null(m);
    for (size_t i = 0; i < m->graph->n_initializer; i++)
        if (strcmp(m->graph->initializer[i]->name, scale_name) == 0)
            memcpy(&scale, m->graph->initializer[i]->raw_data.data,
                   sizeof scale);
    onnx__model_proto__free_unpacked(m, NULL);
    byi_unmap(bytes, n);
    assert_true(scale > 0);
    return scale;
}

/* A concatenation gives its range to the operands that only it reads. */
static void test_concat(void **state)
{
    struct build b = begin_conv(13);
    struct byi_quantize_report report;
    struct byoc_error err;
    static const int64_t weights[] = {8, CHANNELS + 16, 1, 1},
                         narrow[] = {8, CHANNELS, 1, 1};
    (void)state;

    floats(&b, "w1", 4, narrow);
    node(&b, "Conv", "c w1", "d");
    node(&b, "Conv", "c w1", "e");
    node(&b, "Tanh", "c", "t");
    node(&b, "Relu", "t", "r");
    Onnx__NodeProto *join = node(&b, "Concat", "d e t", "j");
    attr_int(&b, join, "axis", 1);
    floats(&b, "w2", 4, weights);
    node(&b, "Conv", "j w2", "y");
    output(&b, "y");
    output(&b, "r");
    if (quantize(&b, &report, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_true(scale_of(&b, "d") == scale_of(&b, "j"));
    assert_true(scale_of(&b, "e") == scale_of(&b, "j"));
    assert_true(scale_of(&b, "t") < scale_of(&b, "j"));
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opset_9),
        cmocka_unit_test(test_opset_8_is_refused),
        cmocka_unit_test(test_topk),
        cmocka_unit_test(test_if_bodies),
        cmocka_unit_test(test_concat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
