/* SPDX-License-Identifier: Apache-2.0 */
/* function_test.c: tests importing model-local functions. */
#include "models.h"

enum { FLOAT_ATTR = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT };

/* Make a function of domain "mine" of the nodes that were added since enter().
 * It imports that domain and ONNX's operators of the given opset. */
static Onnx__FunctionProto *end_function(struct build *b,
                                         Onnx__GraphProto *outer,
                                         const char *name, int64_t opset,
                                         const char *in, const char *out)
{
    static const Onnx__FunctionProto proto = ONNX__FUNCTION_PROTO__INIT;
    Onnx__FunctionProto *f = byi_arena_copy(b->arena, &proto, sizeof proto);

    f->name = byi_arena_str(b->arena, name);
    f->domain = byi_arena_str(b->arena, "mine");
    f->n_node = b->graph->n_node;
    f->node = b->graph->node;
    f->input = names(b, in, &f->n_input);
    f->output = names(b, out, &f->n_output);
    f->opset_import = list_add(b->arena, NULL, &f->n_opset_import,
                               opset_id(b->arena, "", opset));
    f->opset_import = list_add(b->arena, f->opset_import, &f->n_opset_import,
                               opset_id(b->arena, "mine", 1));
    b->model->functions =
        list_add(b->arena, b->model->functions, &b->model->n_functions, f);
    b->graph = outer;
    return f;
}

static Onnx__NodeProto *call(struct build *b, const char *op, const char *in,
                             const char *out)
{
    Onnx__NodeProto *n = node(b, op, in, out);

    n->domain = byi_arena_str(b->arena, "mine");
    return n;
}

static void attr_ref(struct build *b, Onnx__NodeProto *n, const char *name,
                     const char *to)
{
    attr(b, n, name, FLOAT_ATTR)->ref_attr_name = byi_arena_str(b->arena, to);
}

static struct build begin_mine(void)
{
    struct build b = begin(17);

    import_opset(&b, "mine", 1);
    return b;
}

/* leaky(x) with its slope as attribute `slope`. */
static Onnx__FunctionProto *add_leaky(struct build *b)
{
    Onnx__GraphProto *outer = enter(b);

    attr_ref(b, node(b, "LeakyRelu", "x", "y"), "alpha", "slope");
    Onnx__FunctionProto *f = end_function(b, outer, "Leaky", 17, "x", "y");
    f->attribute = names(b, "slope", &f->n_attribute);
    return f;
}

static void body_in_place_of_the_call(void **state)
{
    struct build b = begin_mine();
    (void)state;

    Onnx__GraphProto *outer = enter(&b);
    node(&b, "MatMul", "x w", "t")->name = byi_arena_str(b.arena, "product");
    node(&b, "Relu", "t", "y");
    end_function(&b, outer, "Layer", 17, "x w", "y");
    input(&b, "x", "N 8");
    floats(&b, "w", 2, (const int64_t[]){8, 8});
    call(&b, "Layer", "x w", "t")->name = byi_arena_str(b.arena, "first");
    call(&b, "Layer", "t w", "y");
    output(&b, "y");
    EXPECT(&b, "nn.matmul(%x, ", "#[\"first/product\": \"MatMul\"]",
           "nn.relu(%1) #[\"first/Relu_1\": \"Relu\"]", "nn.matmul(%2, ",
           "#[\"Layer_1/product\": \"MatMul\"]", "nn.relu(%3)");
}

static void attribute_references_resolve_to_the_call(void **state)
{
    struct build b = begin_mine();
    (void)state;

    add_leaky(&b);
    Onnx__GraphProto *outer = enter(&b);
    attr_ref(&b, call(&b, "Leaky", "x", "y"), "slope", "outer_slope");
    Onnx__FunctionProto *f = end_function(&b, outer, "Twice", 17, "x", "y");
    f->attribute = names(&b, "outer_slope", &f->n_attribute);
    input(&b, "x", "4");
    attr_float(&b, call(&b, "Leaky", "x", "a"), "slope", 0.3f);
    call(&b, "Leaky", "a", "b");
    attr_float(&b, call(&b, "Twice", "b", "y"), "outer_slope", 0.7f);
    output(&b, "y");
    EXPECT(&b, "nn.leaky_relu(%x, alpha=0.3)", "nn.leaky_relu(%0)",
           "nn.leaky_relu(%1, alpha=0.7)",
           "\"Twice_2/Leaky_0/LeakyRelu_0\": \"LeakyRelu\"");
}

/* Default values of attributes, FunctionProto.attribute_proto. They are stored
 * as an unknown field, as if onnx.proto were older than ONNX 1.13, which added
 * it: see read_defaults() in function.c. */
static void attributes_with_a_default(void **state)
{
    enum { ATTRIBUTE_PROTO = 11 }; /* the field's number */
    struct build b = begin_mine();
    (void)state;

    Onnx__FunctionProto *f = add_leaky(&b);
    f->n_attribute = 0;
    Onnx__NodeProto *holder = node(&b, "Relu", "x", "r");
    attr_float(&b, holder, "slope", 0.25f);
    uint8_t *bytes = byi_arena_calloc(b.arena, 128, 1);
    const size_t n =
        onnx__attribute_proto__pack(holder->attribute[0], bytes + 1);
    bytes[0] = (uint8_t)n; /* the length comes first */
    holder->n_attribute = 0;
    ProtobufCMessageUnknownField *field =
        byi_arena_calloc(b.arena, 1, sizeof *field);
    field->tag = ATTRIBUTE_PROTO;
    field->wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    field->len = n + 1;
    field->data = bytes;
    f->base.unknown_fields = field;
    f->base.n_unknown_fields = 1;
    input(&b, "x", "4");
    call(&b, "Leaky", "r", "a");
    attr_float(&b, call(&b, "Leaky", "a", "y"), "slope", 0.5f);
    output(&b, "y");
    EXPECT(&b, "nn.leaky_relu(%0, alpha=0.25)", "alpha=0.5");
}

/* Softmax has another meaning before opset 13. */
static void own_opsets(void **state)
{
    struct build b = begin_mine();
    (void)state;

    Onnx__GraphProto *outer = enter(&b);
    node(&b, "Softmax", "x", "y");
    end_function(&b, outer, "Old", 12, "x", "y");
    input(&b, "x", "2 3 4");
    call(&b, "Old", "x", "a");
    node(&b, "Softmax", "a", "y");
    output(&b, "y");
    EXPECT(&b, "nn.flatten(%x)", "nn.softmax(%0, axis=1)", "reshape(%1, ",
           "nn.softmax(%3)");
}

/* Names are local to the function; an input that the call omits is omitted
 * inside, in branches as well. */
static void inputs_left_out(void **state)
{
    struct build b = begin_mine();
    (void)state;

    Onnx__GraphProto *outer = enter(&b), *mine = enter(&b);
    node(&b, "Clip", "x low high", "t");
    output(&b, "t");
    Onnx__GraphProto *then = leave(&b, mine);
    enter(&b);
    node(&b, "Neg", "x", "e");
    output(&b, "e");
    Onnx__GraphProto *otherwise = leave(&b, mine);
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    attr_graph(&b, n, "then_branch", then);
    attr_graph(&b, n, "else_branch", otherwise);
    end_function(&b, outer, "Choose", 17, "c x low high", "y");
    typed_input(&b, "c", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, "");
    input(&b, "x", "4");
    input(&b, "low", "");
    call(&b, "Choose", "c x low", "t"); /* t is a name inside as well */
    output(&b, "t");
    EXPECT(&b, "fn (", "maximum(%x, %low)", "}", "negative(%x)", "if (%c)");
}

static void calls_itself(void **state)
{
    struct build b = begin_mine();
    (void)state;

    Onnx__GraphProto *outer = enter(&b);
    call(&b, "B", "x", "y");
    end_function(&b, outer, "A", 17, "x", "y");
    outer = enter(&b);
    call(&b, "A", "x", "y");
    end_function(&b, outer, "B", 17, "x", "y");
    input(&b, "x", "4");
    call(&b, "A", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EUNSUPPORTED,
           "node A_0/B_0/A_0: operator A (domain mine, opset 1) is not "
           "supported: the model defines it as a function that calls itself, "
           "expected no recursion");
}

/* `depth` functions, each of which calls the next one `times` times. Nodes
 * have names of this length; 0: none. */
static struct build nested_named(int depth, int times, int length)
{
    struct build b = begin_mine();
    char name[16], next[16], from[16], to[16];

    for (int i = 0; i < depth; i++) {
        Onnx__GraphProto *outer = enter(&b);
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, "F%d", i + 1);
        for (int k = 0; k < times; k++) {
            snprintf(from, sizeof from, "v%d", k);
            snprintf(to, sizeof to, "v%d", k + 1);
            Onnx__NodeProto *n = i + 1 < depth ? call(&b, next, from, to)
                                               : node(&b, "Relu", from, to);
            n->name =
                length ? byi_arena_printf(b.arena, "%0*d", length, k) : n->name;
        }
        end_function(&b, outer, name, 17, "v0", to);
    }
    input(&b, "x", "4");
    call(&b, "F0", "x", "y");
    output(&b, "y");
    return b;
}

static struct build nested(int depth, int times)
{
    return nested_named(depth, times, 0);
}

/* `depth` functions, each of which calls the next one twice; both nodes of the
 * last one are a Sum of this many operands. */
static struct build nested_wide(int depth, int operands)
{
    struct build b = nested(depth, 2);
    Onnx__FunctionProto *last = b.model->functions[depth - 1];

    for (size_t i = 0; i < last->n_node; i++) {
        Onnx__NodeProto *n = last->node[i];
        char *from = n->input[0];
        n->op_type = byi_arena_str(b.arena, "Sum");
        n->n_input = (size_t)operands;
        n->input = byi_arena_alloc(b.arena, n->n_input * sizeof *n->input);
        for (size_t k = 0; k < n->n_input; k++)
            n->input[k] = from;
    }
    return b;
}

static void nesting_is_bounded(void **state)
{
    struct build b = nested(31, 1);
    (void)state;

    EXPECT(&b, "nn.relu(%x)");
    b = nested(40, 1);
    refuse(&b, BYOC_ELIMIT,
           "found functions nested in 33 levels, expected at most 32");
    b = nested(4, 40);
    refuse(&b, BYOC_ELIMIT, "nodes, expected at most 524288; nest fewer calls");
    b = nested_named(18, 1, 60000);
    EXPECT(&b, "nn.relu(%x)");
    b = nested_named(18, 2, 60000);
    refuse(&b, BYOC_ELIMIT,
           "MiB, expected at most 64 MiB in all; give nodes shorter");
    b = nested_wide(17, 4000);
    refuse(&b, BYOC_ELIMIT, "MiB, expected at most 512 MiB; nest fewer calls");
}

static void calls_that_do_not_fit(void **state)
{
    static const struct {
        const char *in, *out, *attribute, *why;
        enum byoc_status status;
    } cases[] = {
        {"x x", "y", NULL, "found 2 inputs and 1 outputs, expected at most 1",
         BYOC_EPARSE},
        {"x", "y z", NULL, "found 1 inputs and 2 outputs", BYOC_EPARSE},
        {"x", "y", "slipe",
         "found attribute 'slipe', expected one that its function has",
         BYOC_EUNSUPPORTED},
        {"-", "y", NULL, "input 0 is omitted by the call", BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_mine();
        add_leaky(&b);
        input(&b, "x", "4");
        Onnx__NodeProto *n = call(&b, "Leaky", cases[i].in, cases[i].out);
        if (cases[i].attribute)
            attr_float(&b, n, cases[i].attribute, 1);
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
    struct build b = begin_mine();
    add_leaky(&b);
    add_leaky(&b);
    input(&b, "x", "4");
    node(&b, "Relu", "x", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "function Leaky of domain mine is defined twice");
    b = begin_mine();
    input(&b, "x", "4");
    attr_ref(&b, node(&b, "LeakyRelu", "x", "y"), "alpha", "slope");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "has ref_attr_name 'slope', expected none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(body_in_place_of_the_call),
        cmocka_unit_test(attribute_references_resolve_to_the_call),
        cmocka_unit_test(attributes_with_a_default),
        cmocka_unit_test(own_opsets),
        cmocka_unit_test(inputs_left_out),
        cmocka_unit_test(calls_itself),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(calls_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
