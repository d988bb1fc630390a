/* onnx.c: mutations of a model's fields. Bytes changed at random mostly break
 * the encoding; these leave a file that reads, and says strange things.
 */
#include "fuzz.h"

#include "onnx.pb-c.h"

/* What is unpacked lives in an arena: fields can be replaced and forgotten. */
static void *arena_take(void *arena, size_t n)
{
    return byi_arena_alloc(arena, n ? n : 1);
}

static void arena_give(void *arena, void *memory)
{
    (void)arena, (void)memory;
}

struct edit {
    struct fuzz_rng *rng;
    struct byi_arena *arena;
    Onnx__GraphProto *g;
};

static uint64_t below(const struct edit *e, uint64_t n)
{
    return fuzz_below(e->rng, n);
}

/* The name of some value of the graph. */
static char *pick_value(const struct edit *e)
{
    const Onnx__GraphProto *g = e->g;
    uint64_t pick = below(e, 8);
    if (pick == 0)
        return byi_arena_str(e->arena, "");
    if (pick == 1 && g->n_input)
        return g->input[below(e, g->n_input)]->name;
    if (pick == 2 && g->n_initializer)
        return g->initializer[below(e, g->n_initializer)]->name;
    if (g->n_node) {
        const Onnx__NodeProto *n = g->node[below(e, g->n_node)];
        if (pick < 6 && n->n_output)
            return n->output[below(e, n->n_output)];
        if (n->n_input)
            return n->input[below(e, n->n_input)];
    }
    return byi_arena_str(e->arena, "x");
}

static char *some_value(const struct edit *e)
{
    char *name = pick_value(e); /* NULL: the field is absent */
    return name ? name : byi_arena_str(e->arena, "");
}

static void edit_operator(const struct edit *e, Onnx__NodeProto *n)
{
    static const char *const operators[] = {
        "Add",
        "Mul",
        "Relu",
        "Conv",
        "MatMul",
        "Gemm",
        "Reshape",
        "Concat",
        "Split",
        "Slice",
        "Gather",
        "Transpose",
        "Softmax",
        "ReduceMean",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "BatchNormalization",
        "Pad",
        "Resize",
        "Expand",
        "Tile",
        "Squeeze",
        "Unsqueeze",
        "Flatten",
        "Shape",
        "Range",
        "Where",
        "Cast",
        "Clip",
        "LayerNormalization",
        "ConvTranspose",
        "NonZero",
        "TopK",
        "ScatterND",
        "GatherND",
        "Einsum",
        "If",
        "Loop",
        "Constant",
        "ConstantOfShape",
        "OneHot",
        "CumSum",
        "QuantizeLinear",
        "DequantizeLinear",
        "DepthToSpace",
        "Identity",
        "LSTM",
        "NoSuchOperator",
        "ArgMax",
        "LRN",
        "InstanceNormalization",
        "GridSample",
        "RoiAlign",
        "NonMaxSuppression",
        "Compress",
        "Trilu",
        "EyeLike",
        "ReverseSequence",
        "GatherElements",
        "ScatterElements",
        "Mod",
        "BitShift",
        "Det",
        "Size",
        "Hardmax",
        "PRelu",
        "Sum",
        "Max",
    };
    if (e->g->n_node && below(e, 3) == 0)
        n->op_type = e->g->node[below(e, e->g->n_node)]->op_type;
    else
        n->op_type =
            byi_arena_str(e->arena, operators[below(e, BYI_COUNT(operators))]);
}

static void edit_inputs(const struct edit *e, Onnx__NodeProto *n)
{
    uint64_t pick = below(e, 5);
    if (pick == 0 && n->n_input) {
        n->n_input--;
    } else if (pick == 1) {
        char **more = byi_arena_calloc(e->arena, n->n_input + 1, sizeof *more);
        for (size_t i = 0; i < n->n_input; i++)
            more[i] = n->input[i];
        more[n->n_input] = some_value(e);
        n->input = more;
        n->n_input++;
    } else if (pick == 2 && n->n_input > 1) {
        size_t a = below(e, n->n_input), b = below(e, n->n_input);
        char *swap = n->input[a];
        n->input[a] = n->input[b];
        n->input[b] = swap;
    } else if (pick == 3 && n->n_output) {
        n->output[below(e, n->n_output)] = some_value(e);
    } else if (n->n_input) {
        n->input[below(e, n->n_input)] = some_value(e);
    }
}

static void edit_attribute(const struct edit *e, Onnx__NodeProto *n)
{
    static const char *const names[] = {
        "axis",           "axes",
        "kernel_shape",   "strides",
        "pads",           "dilations",
        "group",          "auto_pad",
        "keepdims",       "alpha",
        "perm",           "to",
        "value",          "mode",
        "ceil_mode",      "epsilon",
        "split",          "output_shape",
        "output_padding", "blocksize",
        "num_outputs",    "noop_with_empty_axes",
    };
    if (!n->n_attribute)
        return;
    size_t at = below(e, n->n_attribute);
    Onnx__AttributeProto *a = n->attribute[at];
    switch (below(e, 8)) {
    case 0:
        n->attribute[at] = n->attribute[--n->n_attribute];
        return;
    case 1:
        a->name = byi_arena_str(e->arena, names[below(e, BYI_COUNT(names))]);
        return;
    case 2:
        a->type = (Onnx__AttributeProto__AttributeType)below(e, 15);
        return;
    case 3:
        if (a->n_ints)
            a->n_ints--;
        return;
    default:
        if (a->has_i)
            a->i = fuzz_number(e->rng);
        if (a->has_f)
            a->f = (float)fuzz_number(e->rng);
        if (a->n_ints)
            a->ints[below(e, a->n_ints)] = fuzz_number(e->rng);
        if (a->n_floats)
            a->floats[below(e, a->n_floats)] = (float)fuzz_number(e->rng);
        if (a->has_s && a->s.len)
            a->s.len = below(e, a->s.len);
    }
}

static void edit_tensor(const struct edit *e, Onnx__TensorProto *t)
{
    switch (below(e, 5)) {
    case 0:
        t->data_type = (int32_t)below(e, 22);
        return;
    case 1:
        if (t->n_dims)
            t->n_dims--;
        return;
    case 2:
        if (t->n_dims)
            t->dims[below(e, t->n_dims)] = fuzz_number(e->rng);
        return;
    case 3:
        if (t->raw_data.len)
            t->raw_data.len = below(e, t->raw_data.len);
        return;
    default: /* its values: shapes and axes are such */
        if (t->raw_data.len) {
            size_t at = below(e, t->raw_data.len) & ~(size_t)7;
            int64_t number = fuzz_number(e->rng);
            for (size_t i = 0; i < 8 && at + i < t->raw_data.len; i++)
                t->raw_data.data[at + i] = (uint8_t)(number >> (8 * i));
        }
        if (t->n_int64_data)
            t->int64_data[below(e, t->n_int64_data)] = fuzz_number(e->rng);
        if (t->n_int32_data)
            t->int32_data[below(e, t->n_int32_data)] =
                (int32_t)fuzz_number(e->rng);
        if (t->n_float_data)
            t->float_data[below(e, t->n_float_data)] =
                (float)fuzz_number(e->rng);
    }
}

static void edit_value(const struct edit *e, Onnx__ValueInfoProto *v)
{
    Onnx__TypeProto *type = v->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        below(e, 8) == 0) {
        v->name = some_value(e);
        return;
    }
    Onnx__TypeProto__Tensor *t = type->tensor_type;
    if (below(e, 4) == 0) {
        t->elem_type = (int32_t)below(e, 22);
        return;
    }
    if (!t->shape || !t->shape->n_dim || below(e, 8) == 0) {
        t->shape = NULL;
        return;
    }
    if (below(e, 6) == 0) {
        t->shape->n_dim--;
        return;
    }
    Onnx__TensorShapeProto__Dimension *d =
        t->shape->dim[below(e, t->shape->n_dim)];
    if (below(e, 3) == 0) {
        d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        d->dim_param = byi_arena_str(e->arena, below(e, 2) ? "N" : "M");
        return;
    }
    d->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
    d->dim_value = fuzz_number(e->rng);
}

static void edit_nodes(const struct edit *e)
{
    Onnx__GraphProto *g = e->g;
    if (!g->n_node)
        return;
    size_t a = below(e, g->n_node), b = below(e, g->n_node);
    Onnx__NodeProto *node = g->node[a];
    if (below(e, 2)) {
        g->node[a] = g->node[b]; /* another order */
        g->node[b] = node;
    } else {
        g->node[a] = g->node[--g->n_node];
    }
}

static void edit_model(const struct edit *e, Onnx__ModelProto *model)
{
    Onnx__GraphProto *g = e->g;
    Onnx__NodeProto *node = g->n_node ? g->node[below(e, g->n_node)] : NULL;
    uint64_t pick = below(e, 16);
    if (pick < 2 && node)
        edit_operator(e, node);
    else if (pick < 5 && node)
        edit_inputs(e, node);
    else if (pick < 9 && node)
        edit_attribute(e, node);
    else if (pick < 11 && g->n_initializer)
        edit_tensor(e, g->initializer[below(e, g->n_initializer)]);
    else if (pick < 14 && g->n_input)
        edit_value(e, g->input[below(e, g->n_input)]);
    else if (pick == 14 && model->n_opset_import)
        model->opset_import[0]->version = (int64_t)below(e, 24);
    else if (pick == 15 && g->n_output)
        edit_value(e, g->output[below(e, g->n_output)]);
    else
        edit_nodes(e);
}

bool fuzz_onnx(struct fuzz_rng *rng, struct byi_text *bytes)
{
    struct byi_arena *arena = byi_arena_new();
    ProtobufCAllocator allocator = {
        .alloc = arena_take, .free = arena_give, .allocator_data = arena};
    Onnx__ModelProto *model = onnx__model_proto__unpack(
        &allocator, bytes->n, (const uint8_t *)bytes->at);
    bool good = model && model->graph;
    if (good) {
        struct edit e = {.rng = rng, .arena = arena, .g = model->graph};
        do {
            edit_model(&e, model);
        } while (below(&e, 2));
        size_t n = onnx__model_proto__get_packed_size(model);
        uint8_t *packed = byi_arena_alloc(arena, n + 1);
        onnx__model_proto__pack(model, packed);
        bytes->n = 0;
        byi_text_add(bytes, (const char *)packed, n);
    }
    byi_arena_free(&arena);
    return good;
}
