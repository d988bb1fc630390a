/* onnx_test.c: models built here, byte by byte known, and what they import
 * to; then models that are wrong, and what is said about them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frontend_onnx/onnx.h"
#include "onnx.pb-c.h"

/* --- building models ------------------------------------------------------ */

struct build {
    struct byi_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    char folder[64], path[96];
};

static void *list_add(struct byi_arena *arena, void *list, size_t *n,
                      const void *item)
{
    void **longer = byi_arena_calloc(arena, *n + 1, sizeof *longer);

    if (list)
        memcpy(longer, list, *n * sizeof *longer);
    memcpy(&longer[(*n)++], &item, sizeof item);
    return longer;
}

static struct build begin(int64_t opset)
{
    static const Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    static const Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    static const Onnx__OperatorSetIdProto id =
        ONNX__OPERATOR_SET_ID_PROTO__INIT;
    struct build b = {.arena = byi_arena_new()};

    b.model = byi_arena_copy(b.arena, &model, sizeof model);
    b.graph = byi_arena_copy(b.arena, &graph, sizeof graph);
    Onnx__OperatorSetIdProto *set = byi_arena_copy(b.arena, &id, sizeof id);
    set->has_version = 1;
    set->version = opset;
    b.model->opset_import =
        list_add(b.arena, NULL, &b.model->n_opset_import, set);
    b.model->has_ir_version = 1;
    b.model->ir_version = 8;
    b.model->graph = b.graph;
    strcpy(b.folder, "onnx_test_XXXXXX"); /* where the test runs */
    assert_non_null(mkdtemp(b.folder));
    snprintf(b.path, sizeof b.path, "%s/model.onnx", b.folder);
    return b;
}

static void end(struct build *b)
{
    char command[128];

    snprintf(command, sizeof command, "rm -r '%s'", b->folder);
    assert_int_equal(system(command), 0);
    byi_arena_free(&b->arena);
}

static Onnx__ValueInfoProto *value(struct build *b, const char *name, int dtype,
                                   const char *dims)
{
    static const Onnx__ValueInfoProto info = ONNX__VALUE_INFO_PROTO__INIT;
    static const Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    static const Onnx__TypeProto__Tensor tensor =
        ONNX__TYPE_PROTO__TENSOR__INIT;
    static const Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    static const Onnx__TensorShapeProto__Dimension dim =
        ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    Onnx__ValueInfoProto *v = byi_arena_copy(b->arena, &info, sizeof info);

    v->name = byi_arena_str(b->arena, name);
    v->type = byi_arena_copy(b->arena, &type, sizeof type);
    v->type->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    v->type->tensor_type = byi_arena_copy(b->arena, &tensor, sizeof tensor);
    v->type->tensor_type->has_elem_type = 1;
    v->type->tensor_type->elem_type = dtype;
    if (!dims)
        return v;
    Onnx__TensorShapeProto *s = byi_arena_copy(b->arena, &shape, sizeof shape);
    v->type->tensor_type->shape = s;
    char *text = byi_arena_str(b->arena, dims), *rest = NULL;
    for (char *word = strtok_r(text, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest)) {
        Onnx__TensorShapeProto__Dimension *d =
            byi_arena_copy(b->arena, &dim, sizeof dim);
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        if (*word >= '0' && *word <= '9') {
            d->dim_value = atoll(word);
        } else {
            d->value_case =
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
            d->dim_param = word;
        }
        s->dim = list_add(b->arena, s->dim, &s->n_dim, d);
    }
    return v;
}

static void input(struct build *b, const char *name, const char *dims)
{
    b->graph->input =
        list_add(b->arena, b->graph->input, &b->graph->n_input,
                 value(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, dims));
}

static void output(struct build *b, const char *name)
{
    b->graph->output =
        list_add(b->arena, b->graph->output, &b->graph->n_output,
                 value(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, NULL));
}

/* Names are separated by blanks; '-' is a name left out. */
static char **names(struct build *b, const char *text, size_t *n)
{
    char *copy = byi_arena_str(b->arena, text), *rest = NULL;
    char **list = NULL;

    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        list = list_add(b->arena, list, n, strcmp(word, "-") ? word : "");
    return list;
}

static Onnx__NodeProto *node(struct build *b, const char *op, const char *in,
                             const char *out)
{
    static const Onnx__NodeProto proto = ONNX__NODE_PROTO__INIT;
    Onnx__NodeProto *n = byi_arena_copy(b->arena, &proto, sizeof proto);

    n->op_type = byi_arena_str(b->arena, op);
    n->input = names(b, in, &n->n_input);
    n->output = names(b, out, &n->n_output);
    b->graph->node = list_add(b->arena, b->graph->node, &b->graph->n_node, n);
    return n;
}

static Onnx__AttributeProto *attr(struct build *b, Onnx__NodeProto *n,
                                  const char *name, int type)
{
    static const Onnx__AttributeProto proto = ONNX__ATTRIBUTE_PROTO__INIT;
    Onnx__AttributeProto *a = byi_arena_copy(b->arena, &proto, sizeof proto);

    a->name = byi_arena_str(b->arena, name);
    a->has_type = 1;
    a->type = (Onnx__AttributeProto__AttributeType)type;
    n->attribute = list_add(b->arena, n->attribute, &n->n_attribute, a);
    return a;
}

static void attr_int(struct build *b, Onnx__NodeProto *n, const char *name,
                     int64_t v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    a->has_i = 1;
    a->i = v;
}

static void attr_string(struct build *b, Onnx__NodeProto *n, const char *name,
                        const char *v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

    a->has_s = 1;
    a->s.len = strlen(v);
    a->s.data = (uint8_t *)byi_arena_str(b->arena, v);
}

static void attr_ints(struct build *b, Onnx__NodeProto *n, const char *name,
                      size_t count, const int64_t *v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

    a->n_ints = count;
    a->ints = byi_arena_copy(b->arena, v, count * sizeof *v);
}

static Onnx__TensorProto *tensor(struct build *b, const char *name, int dtype,
                                 uint32_t rank, const int64_t *dims)
{
    static const Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    Onnx__TensorProto *t = byi_arena_copy(b->arena, &proto, sizeof proto);

    t->name = byi_arena_str(b->arena, name);
    t->has_data_type = 1;
    t->data_type = dtype;
    t->n_dims = rank;
    t->dims = byi_arena_copy(b->arena, dims, rank * sizeof *dims);
    return t;
}

static void weight(struct build *b, Onnx__TensorProto *t)
{
    b->graph->initializer =
        list_add(b->arena, b->graph->initializer, &b->graph->n_initializer, t);
}

static void raw(struct build *b, Onnx__TensorProto *t, const void *data,
                size_t n)
{
    t->has_raw_data = 1;
    t->raw_data.len = n;
    t->raw_data.data = byi_arena_copy(b->arena, data, n);
}

/* `n` floats 0, 1, 2, ... as raw data. */
static Onnx__TensorProto *floats(struct build *b, const char *name,
                                 uint32_t rank, const int64_t *dims)
{
    Onnx__TensorProto *t =
        tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, rank, dims);
    const size_t n = (size_t)byi_elements(rank, dims);
    float *values = byi_arena_calloc(b->arena, n + 1, sizeof *values);

    for (size_t i = 0; i < n; i++)
        values[i] = (float)i;
    raw(b, t, values, n * sizeof *values);
    weight(b, t);
    return t;
}

static void ints(struct build *b, const char *name, int64_t n,
                 const int64_t *values)
{
    Onnx__TensorProto *t =
        tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, &n);

    raw(b, t, values, (size_t)n * sizeof *values);
    weight(b, t);
}

static void external(struct build *b, Onnx__TensorProto *t, const char *key,
                     const char *text)
{
    static const Onnx__StringStringEntryProto proto =
        ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    Onnx__StringStringEntryProto *e =
        byi_arena_copy(b->arena, &proto, sizeof proto);

    e->key = byi_arena_str(b->arena, key);
    e->value = byi_arena_str(b->arena, text);
    t->external_data =
        list_add(b->arena, t->external_data, &t->n_external_data, e);
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->has_raw_data = 0;
}

static void write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static size_t save(struct build *b)
{
    const size_t n = onnx__model_proto__get_packed_size(b->model);
    uint8_t *bytes = byi_arena_alloc(b->arena, n);

    assert_int_equal(onnx__model_proto__pack(b->model, bytes), n);
    write_file(b->path, bytes, n);
    return n;
}

/* --- checks --------------------------------------------------------------- */

/* The model imports to a @main whose text has every piece, in order. */
static void expect_with(struct build *b, const struct byi_onnx_params *params,
                        const char *const *pieces)
{
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    struct byi_text text = {0};

    save(b);
    if (byi_onnx_import(b->path, params, &m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (byi_verify(m, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_print_module(m, &text, NULL);
    const char *at = text.at;
    for (uint32_t i = 0; pieces[i]; i++) {
        at = strstr(at, pieces[i]);
        if (!at)
            fail_msg("no '%s' in:\n%s", pieces[i], text.at);
        at += strlen(pieces[i]);
    }
    byi_text_free(&text);
    byi_module_free(&m);
    end(b);
}

#define EXPECT(b, ...)                                                         \
    expect_with((b), NULL, (const char *const[]){__VA_ARGS__, NULL})

static void refuse_with(struct build *b, const struct byi_onnx_params *params,
                        enum byoc_status status, const char *text)
{
    struct byi_module *m = NULL;
    struct byoc_error err = {0};

    save(b);
    assert_int_equal(byi_onnx_import(b->path, params, &m, &err), status);
    assert_int_equal(err.status, status);
    assert_null(m);
    if (!strstr(err.text, text))
        fail_msg("found '%s', expected '%s'", err.text, text);
    end(b);
}

static void refuse(struct build *b, enum byoc_status status, const char *text)
{
    refuse_with(b, NULL, status, text);
}

/* --- what imports --------------------------------------------------------- */

static void conv_with_bias(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "1 3 8 8");
    floats(&b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    floats(&b, "b", 1, (const int64_t[]){4});
    Onnx__NodeProto *conv = node(&b, "Conv", "x w b", "c");
    attr_string(&b, conv, "auto_pad", "SAME_UPPER");
    attr_ints(&b, conv, "strides", 2, (const int64_t[]){2, 2});
    node(&b, "Relu", "c", "y");
    output(&b, "y");
    EXPECT(&b, "%x: Tensor[(1, 3, 8, 8), float32]", "Outputs=[\"y\"]",
           "nn.conv2d(%x, const[", "strides=[2, 2], padding=[0, 0, 1, 1])",
           "#[\"Conv_0\": \"Conv\"]",
           "add(%0, Tensor[(4, 1, 1), float32] {0.0, 1.0, 2.0, 3.0})",
           "nn.relu(%1)");
}

static void gemm_is_dense(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 8");
    floats(&b, "w", 2, (const int64_t[]){4, 8});
    floats(&b, "b", 1, (const int64_t[]){4});
    Onnx__NodeProto *gemm = node(&b, "Gemm", "x w b", "y");
    attr_int(&b, gemm, "transB", 1);
    gemm->name = byi_arena_str(b.arena, "fc1");
    output(&b, "y");
    EXPECT(&b, "%x: Tensor[(N, 8), float32]", "-> Tensor[(N, 4), float32]",
           "nn.dense(%x, ", "#[\"fc1\": \"Gemm\"]", "add(");
}

static void gemm_scales(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "8 2");
    input(&b, "w", "8 4");
    Onnx__NodeProto *gemm = node(&b, "Gemm", "x w", "y");
    attr_int(&b, gemm, "transA", 1);
    Onnx__AttributeProto *alpha =
        attr(&b, gemm, "alpha", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    alpha->has_f = 1;
    alpha->f = 0.1f;
    output(&b, "y");
    EXPECT(&b, "nn.matmul(%x, %w, transpose_a=true)", "multiply(%0, 0.1f)");
}

static void fixed_dims(void **state)
{
    const struct byi_onnx_params params = {
        .dims = (const char *const[]){"N=5", NULL},
        .shapes = (const char *const[]){"z=5x7", NULL},
    };
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 2");
    input(&b, "z", "M 2");
    node(&b, "Concat", "x z", "y");
    attr_int(&b, b.graph->node[0], "axis", -1);
    output(&b, "y");
    expect_with(
        &b, &params,
        (const char *const[]){"-> Tensor[(5, 9), float32]", "axis=1", NULL});
}

static void fixed_value(void **state)
{
    float data[] = {1, 2};
    const struct byi_onnx_value value_of_b = {
        "b", {.data = data, .dtype = BYOC_F32, .rank = 1, .dims = {2}}};
    const struct byi_onnx_params params = {.values = &value_of_b,
                                           .n_values = 1};
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "3 2");
    input(&b, "b", "2");
    node(&b, "Add", "x b", "y");
    output(&b, "y");
    expect_with(&b, &params,
                (const char *const[]){"@main(%x: Tensor[(3, 2), float32], Out",
                                      "add(%x, [1.0, 2.0])", NULL});
}

static void two_outputs(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "6 2");
    node(&b, "Split", "x", "l r");
    output(&b, "r");
    output(&b, "l");
    EXPECT(&b, "Outputs=[\"r\", \"l\"]", "split(%x, sizes=[3, 3])", "%0.0",
           "%0.1", "(%2, %1)");
}

/* Opset 18: the last part may be smaller, pads may name their axes. */
static void opset_18(void **state)
{
    struct build b = begin(18);
    (void)state;

    input(&b, "x", "7 2");
    ints(&b, "pads", 2, (const int64_t[]){1, 2});
    ints(&b, "last", 1, (const int64_t[]){-1});
    attr_int(&b, node(&b, "Split", "x", "l r"), "num_outputs", 2);
    node(&b, "Pad", "r pads - last", "p");
    node(&b, "ReduceMax", "p last", "y");
    output(&b, "y");
    EXPECT(&b, "split(%x, sizes=[4, 3])", "[0, 1, 0, 2]", "axis=[1]");
}

static void dropout_and_identity_vanish(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "6 2");
    node(&b, "Dropout", "x", "d mask");
    node(&b, "Identity", "d", "i");
    node(&b, "Tanh", "i", "y");
    output(&b, "y");
    EXPECT(&b, "tanh(%x)");
}

static void old_softmax_is_flat(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "2 3 4");
    node(&b, "Softmax", "x", "y");
    output(&b, "y");
    EXPECT(&b, "nn.flatten(%x)", "nn.softmax(%0, axis=1)", "[2, 3, 4]",
           "reshape(");
}

static void old_softmax_is_plain_on_the_last_axis(void **state)
{
    struct build b = begin(11);
    (void)state;

    input(&b, "x", "2 3 1 1");
    node(&b, "Softmax", "x", "y");
    output(&b, "y");
    EXPECT(&b, "nn.softmax(%x, axis=1)");
}

static void old_add_lines_up(void **state)
{
    struct build b = begin(6);
    (void)state;

    input(&b, "x", "2 3 4");
    input(&b, "b", "3");
    Onnx__NodeProto *add = node(&b, "Add", "x b", "y");
    attr_int(&b, add, "broadcast", 1);
    attr_int(&b, add, "axis", 1);
    output(&b, "y");
    EXPECT(&b, "expand_dims(%b, axis=[1])", "add(%x, %0)");
}

static void clip_bounds(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    input(&b, "high", "");
    floats(&b, "low", 0, NULL);
    node(&b, "Clip", "x low", "c");
    node(&b, "Clip", "c - high", "y");
    output(&b, "y");
    EXPECT(&b, "clip(%x, a_min=0", "minimum(%0, %high)");
}

/* Shape -> Gather gives a number although the batch varies. */
static void shapes_fold(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 3 4");
    ints(&b, "two", 1, (const int64_t[]){2});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s two", "n");
    node(&b, "Reshape", "c n", "y");
    floats(&b, "c", 2, (const int64_t[]){2, 2});
    output(&b, "y");
    EXPECT(&b, "[4]", "reshape(");
}

/* reshape(x, [N, -1 or numbers]) with N from shape_of(x). */
static void batches_may_vary(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "N 6 4");
    ints(&b, "zero", 1, (const int64_t[]){0});
    ints(&b, "rest", 2, (const int64_t[]){3, 8});
    ints(&b, "one", 1, (const int64_t[]){1});
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s zero", "n");
    Onnx__NodeProto *join = node(&b, "Concat", "n rest", "t");
    attr_int(&b, join, "axis", 0);
    node(&b, "Reshape", "x t", "r");
    node(&b, "Shape", "r", "s2");
    node(&b, "Slice", "s2 zero one", "n2");
    Onnx__NodeProto *again = node(&b, "Concat", "n2 one one", "t2");
    attr_int(&b, again, "axis", 0);
    node(&b, "Expand", "r t2", "y");
    output(&b, "y");
    EXPECT(&b, "-> Tensor[(N, 3, 8), float32]", "reshape(%x, [0, 3, 8])",
           "broadcast_to(", "[1, 1, 1]");
}

static void names_are_made_unique(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Exp", "x", "a")->name = byi_arena_str(b.arena, "same");
    node(&b, "Exp", "a", "y")->name = byi_arena_str(b.arena, "same");
    output(&b, "y");
    EXPECT(&b, "#[\"same\": \"Exp\"]", "#[\"same", ": \"Exp\"]");
}

/* --- tensors -------------------------------------------------------------- */

static void import_one_weight(struct build *b, Onnx__TensorProto *t,
                              const char *text)
{
    weight(b, t);
    node(b, "Identity", "w", "y");
    output(b, "y");
    EXPECT(b, text);
}

static void typed_data(void **state)
{
    const int64_t two[] = {2};
    struct build b = begin(13);
    (void)state;

    Onnx__TensorProto *t =
        tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, 1, two);
    t->n_float_data = 2;
    t->float_data = (float[]){1.5f, -2};
    import_one_weight(&b, t, "[1.5, -2.0]");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__INT8, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){-128, 127};
    import_one_weight(&b, t, "Tensor[(2), int8] {-128, 127}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT16, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){0x3c00, 0xc000};
    import_one_weight(&b, t, "Tensor[(2), float16] {1.0, -2.0}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__BFLOAT16, 1, two);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){0x3f80, 0xc000};
    import_one_weight(&b, t, "Tensor[(2), bfloat16] {1.0, -2.0}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__UINT32, 1, two);
    t->n_uint64_data = 2;
    t->uint64_data = (uint64_t[]){0, 4294967295u};
    import_one_weight(&b, t, "Tensor[(2), uint32] {0, 4294967295}");
    b = begin(13);
    t = tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE, 1, two);
    t->n_double_data = 2;
    t->double_data = (double[]){0.25, 1e300};
    import_one_weight(&b, t, "Tensor[(2), float64] {0.25, ");
}

/* Large weights stay in the mapped file, and say the same. */
static void mapped_weights(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byi_tensor t = {0};
    (void)state;

    floats(&b, "small", 1, (const int64_t[]){3});
    floats(&b, "big", 2, (const int64_t[]){50, 100});
    floats(&b, "last", 1, (const int64_t[]){1});
    node(&b, "Concat", "big big", "y");
    attr_int(&b, b.graph->node[0], "axis", 0);
    output(&b, "y");
    save(&b);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, NULL), BYOC_OK);
    assert_true(byi_const_view(m, m->funcs.at[0], 0, &t));
    assert_int_equal(t.rank, 2);
    for (int64_t i = 0; i < 5000; i++) {
        float found;
        memcpy(&found, (const char *)t.data + i * 4, 4);
        assert_true(found == (float)i);
    }
    byi_module_free(&m);
    end(&b);
}

static void wrong_tensors(void **state)
{
    const int64_t dims[] = {2, 2}, huge[] = {INT64_MAX, 4}, below[] = {-1};
    struct build b = begin(13);
    (void)state;

    floats(&b, "w", 2, dims)->raw_data.len = 12;
    node(&b, "Exp", "w", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE,
           "tensor 'w': found 12 bytes, expected 16 for float32 of dims "
           "(2, 2)");
    for (uint32_t i = 0; i < 2; i++) {
        b = begin(13);
        Onnx__TensorProto *t =
            tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, i ? 1 : 2,
                   i ? below : huge);
        weight(&b, t);
        node(&b, "Exp", "w", "y");
        output(&b, "y");
        refuse(&b, BYOC_EPARSE, "tensor 'w' has impossible dims");
    }
    b = begin(13);
    Onnx__TensorProto *t =
        tensor(&b, "w", ONNX__TENSOR_PROTO__DATA_TYPE__UINT8, 1, dims);
    t->n_int32_data = 2;
    t->int32_data = (int32_t[]){1, 300};
    weight(&b, t);
    node(&b, "Exp", "w", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "element 1 is 300, which does not fit uint8");
}

static void external_data(void **state)
{
    const float data[] = {7, 8, 9};
    struct build b = begin(13);
    char path[128];
    (void)state;

    snprintf(path, sizeof path, "%s/w.bin", b.folder);
    write_file(path, data, sizeof data);
    Onnx__TensorProto *t = floats(&b, "w", 1, (const int64_t[]){2});
    external(&b, t, "location", "w.bin");
    external(&b, t, "offset", "4");
    external(&b, t, "length", "8");
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    EXPECT(&b, "[8.0, 9.0]");
}

static void refuse_external(const char *location, const char *offset,
                            enum byoc_status status, const char *text)
{
    struct build b = begin(13);
    char path[128];

    snprintf(path, sizeof path, "%s/w.bin", b.folder);
    write_file(path, "12345678", 8);
    snprintf(path, sizeof path, "%s/link", b.folder);
    assert_int_equal(symlink("/dev/null", path), 0);
    Onnx__TensorProto *t = floats(&b, "w", 1, (const int64_t[]){2});
    external(&b, t, "location", location);
    external(&b, t, "offset", offset);
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    refuse(&b, status, text);
}

static void wrong_external_data(void **state)
{
    (void)state;
    refuse_external("/etc/passwd", "0", BYOC_EUNSUPPORTED, "relative path");
    refuse_external("a/../../x", "0", BYOC_EUNSUPPORTED, "without '..'");
    refuse_external("link", "0", BYOC_EUNSUPPORTED, "a link out of");
    refuse_external("none", "0", BYOC_EIO, "cannot be read");
    refuse_external("w.bin", "4", BYOC_EPARSE, "inside a file of 8");
    refuse_external("w.bin", "18446744073709551615", BYOC_EPARSE,
                    "inside a file of 8");
    refuse_external("w.bin", "-1", BYOC_EPARSE, "is not a number");
}

static void tensor_files(void **state)
{
    struct build b = begin(13);
    struct byi_tensor t = {0};
    struct byoc_error err = {0};
    const char *name = NULL;
    (void)state;

    Onnx__TensorProto *proto =
        tensor(&b, "words", ONNX__TENSOR_PROTO__DATA_TYPE__STRING, 1,
               (const int64_t[]){2});
    ProtobufCBinaryData words[] = {{3, (uint8_t *)"one"}, {0, NULL}};
    proto->n_string_data = 2;
    proto->string_data = words;
    uint8_t bytes[256];
    const size_t n = onnx__tensor_proto__pack(proto, bytes);
    write_file(b.path, bytes, n);
    assert_int_equal(byi_onnx_tensor(b.path, b.arena, &t, &name, &err),
                     BYOC_OK);
    assert_string_equal(name, "words");
    assert_string_equal(((const char **)t.data)[0], "one");
    assert_string_equal(((const char **)t.data)[1], "");
    write_file(b.path, bytes, n - 1);
    assert_int_equal(byi_onnx_tensor(b.path, b.arena, &t, &name, &err),
                     BYOC_EPARSE);
    end(&b);
}

/* --- what is refused ------------------------------------------------------ */

static void unknown_operator(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Frobnicate", "x", "y")->domain = byi_arena_str(b.arena, "acme");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "node Frobnicate_0: operator Frobnicate (domain acme, opset 0) is "
           "not supported");
}

static void newer_operator(void **state)
{
    struct build b = begin(8);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Erf", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "operator Erf (domain ai.onnx, opset 8) is not supported");
}

static void unknown_attribute(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    attr_int(&b, node(&b, "Exp", "x", "y"), "base", 2);
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, "no attribute 'base'");
}

static void attribute_of_another_type(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    attr_string(&b, node(&b, "Softmax", "x", "y"), "axis", "0");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE,
           "node Softmax_0 (Softmax): attribute 'axis' is not an int");
}

static void shapes_that_do_not_fit(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4 2");
    input(&b, "z", "3 5");
    node(&b, "MatMul", "x z", "y")->name = byi_arena_str(b.arena, "mm");
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "node mm (MatMul): ");
}

static void cycles(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Add", "x c", "a");
    node(&b, "Exp", "a", "c");
    output(&b, "c");
    refuse(&b, BYOC_EPARSE,
           "node Add_0 (Add): its value 'c' is not defined before it");
}

static void names_twice(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Exp", "x", "x");
    output(&b, "x");
    refuse(&b, BYOC_EPARSE, "its output 'x' is defined twice");
    b = begin(13);
    input(&b, "x", "4");
    input(&b, "x", "4");
    output(&b, "x");
    refuse(&b, BYOC_EPARSE, "input 'x' has no name, or one that is taken");
}

static void axes_that_vary(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4 1");
    b.graph->input =
        list_add(b.arena, b.graph->input, &b.graph->n_input,
                 value(&b, "axes", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "1"));
    node(&b, "Squeeze", "x axes", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED, "its input 'axes' is not a constant");
}

static void optional_output(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "1 2 3");
    floats(&b, "s", 1, (const int64_t[]){2});
    node(&b, "BatchNormalization", "x s s s s", "y mean");
    node(&b, "Exp", "mean", "z");
    output(&b, "z");
    refuse(&b, BYOC_EUNSUPPORTED,
           "node BatchNormalization_0: operator BatchNormalization (domain "
           "ai.onnx, opset 13) is not supported, output 'mean'");
}

static void wrong_arity(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "4");
    node(&b, "Add", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "found 1 inputs, expected 2 to 2");
}

static void wrong_params(void **state)
{
    const struct byi_onnx_params no_dim = {
        .dims = (const char *const[]){"M=5", NULL}};
    const struct byi_onnx_params bad_dim = {
        .dims = (const char *const[]){"N=-5", NULL}};
    const struct byi_onnx_params bad_shape = {
        .shapes = (const char *const[]){"x=1x", NULL}};
    const struct byi_onnx_params *const all[] = {&no_dim, &bad_dim, &bad_shape};
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(all); i++) {
        struct build b = begin(13);
        input(&b, "x", "N");
        output(&b, "x");
        refuse_with(&b, all[i], BYOC_EINVAL, i == 2 ? "shape" : "dim");
    }
}

static void new_opset(void **state)
{
    struct build b = begin(99);
    (void)state;

    input(&b, "x", "4");
    output(&b, "x");
    refuse(&b, BYOC_EUNSUPPORTED, "opset 99 of ai.onnx");
}

/* --- files that are no models --------------------------------------------- */

static void truncated(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    (void)state;

    input(&b, "x", "1 3 8 8");
    floats(&b, "w", 4, (const int64_t[]){4, 3, 3, 3});
    node(&b, "Conv", "x w", "y");
    output(&b, "y");
    const size_t n = save(&b);
    uint8_t *bytes = byi_arena_alloc(b.arena, n);
    FILE *file = fopen(b.path, "rb");
    assert_int_equal(fread(bytes, 1, n, file), n);
    fclose(file);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(b.path, bytes, cut);
        assert_int_not_equal(byi_onnx_import(b.path, NULL, &m, NULL), BYOC_OK);
        assert_null(m);
    }
    end(&b);
}

/* Model, graph, node, attribute, graph, node, ...: deeper than any stack. */
static void nested(void **state)
{
    enum { LEVELS = 40000 };
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    static const uint8_t tags[] = {1 << 3 | 2, 5 << 3 | 2, 6 << 3 | 2};
    uint8_t *bytes = byi_arena_alloc(b.arena, LEVELS * 18 + 16);
    size_t at = LEVELS * 18 + 16, n = 0;
    (void)state;

    for (uint32_t i = 0; i < 3 * LEVELS + 1; i++) {
        uint8_t header[6];
        size_t k = 0;
        header[k++] = i == 3 * LEVELS ? 7 << 3 | 2 : tags[2 - i % 3];
        size_t length = n;
        do
            header[k++] = (uint8_t)(length & 0x7f) | (length > 0x7f ? 0x80 : 0);
        while (length >>= 7);
        at -= k;
        n += k;
        memcpy(bytes + at, header, k);
    }
    write_file(b.path, bytes + at, n);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_ELIMIT);
    assert_non_null(strstr(err.text, "nested deeper"));
    end(&b);
}

static void no_model(void **state)
{
    struct build b = begin(13);
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    (void)state;

    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EIO);
    assert_int_equal(byi_onnx_import(b.folder, NULL, &m, &err), BYOC_EIO);
    write_file(b.path, "", 0);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EPARSE);
    write_file(b.path, "hello, world", 12);
    assert_int_equal(byi_onnx_import(b.path, NULL, &m, &err), BYOC_EPARSE);
    assert_null(m);
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conv_with_bias),
        cmocka_unit_test(gemm_is_dense),
        cmocka_unit_test(gemm_scales),
        cmocka_unit_test(fixed_dims),
        cmocka_unit_test(fixed_value),
        cmocka_unit_test(two_outputs),
        cmocka_unit_test(opset_18),
        cmocka_unit_test(dropout_and_identity_vanish),
        cmocka_unit_test(old_softmax_is_flat),
        cmocka_unit_test(old_softmax_is_plain_on_the_last_axis),
        cmocka_unit_test(old_add_lines_up),
        cmocka_unit_test(clip_bounds),
        cmocka_unit_test(shapes_fold),
        cmocka_unit_test(batches_may_vary),
        cmocka_unit_test(names_are_made_unique),
        cmocka_unit_test(typed_data),
        cmocka_unit_test(mapped_weights),
        cmocka_unit_test(wrong_tensors),
        cmocka_unit_test(external_data),
        cmocka_unit_test(wrong_external_data),
        cmocka_unit_test(tensor_files),
        cmocka_unit_test(unknown_operator),
        cmocka_unit_test(newer_operator),
        cmocka_unit_test(unknown_attribute),
        cmocka_unit_test(attribute_of_another_type),
        cmocka_unit_test(shapes_that_do_not_fit),
        cmocka_unit_test(cycles),
        cmocka_unit_test(names_twice),
        cmocka_unit_test(axes_that_vary),
        cmocka_unit_test(optional_output),
        cmocka_unit_test(wrong_arity),
        cmocka_unit_test(wrong_params),
        cmocka_unit_test(new_opset),
        cmocka_unit_test(truncated),
        cmocka_unit_test(nested),
        cmocka_unit_test(no_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
