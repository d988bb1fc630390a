/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c: random numbers, shapes, operands and attributes of one node. */
#include "fuzz.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* xorshift64* (Vigna 2014) */
static uint64_t random_bits(struct draw *d)
{
    d->seed ^= d->seed >> 12;
    d->seed ^= d->seed << 25;
    d->seed ^= d->seed >> 27;
    return d->seed * 2685821657736338717u;
}

int64_t draw_int(struct draw *d, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(d) % (uint64_t)(high - low + 1));
}

bool draw_chance(struct draw *d, int percent)
{
    return draw_int(d, 0, 99) < percent;
}

uint32_t draw_shape(struct draw *d, uint32_t low, uint32_t high, int64_t *dims)
{
    const bool deep = high == 4 && draw_chance(d, 8);
    const uint32_t rank = (uint32_t)draw_int(d, low, deep ? 8 : high);
    const bool large = draw_chance(d, 10), empty = draw_chance(d, 6);

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = draw_chance(d, 15) ? 1 : draw_int(d, 1, rank > 4 ? 3 : 7);
    if (rank && large)
        dims[draw_int(d, 0, rank - 1)] = draw_int(d, 8, 70);
    if (rank && empty)
        dims[draw_int(d, 0, rank - 1)] = 0;
    return rank;
}

/* --- elements ------------------------------------------------------------- */

static double special_float(struct draw *d, enum byoc_dtype dtype)
{
    const double smallest = dtype == BYOC_F64   ? 5e-324
                            : dtype == BYOC_F16 ? 6e-8
                                                : 1.4e-45;
    const double largest = dtype == BYOC_F64   ? DBL_MAX
                           : dtype == BYOC_F16 ? 65504
                                               : (double)FLT_MAX;
    const double special[] = {NAN,      INFINITY,  -INFINITY, 0.0,      -0.0,
                              smallest, -smallest, largest,   -largest, 1e-30};

    return special[draw_int(d, 0, BYI_COUNT(special) - 1)];
}

static void set_int(struct draw *d, struct byi_tensor *t, int64_t i,
                    enum distribution distribution)
{
    const uint32_t width = 8 * byoc_dtype_size(t->dtype);
    const bool is_signed = t->dtype == BYOC_I8 || t->dtype == BYOC_I16 ||
                           t->dtype == BYOC_I32 || t->dtype == BYOC_I64;
    uint64_t v = (uint64_t)draw_int(d, is_signed ? -9 : 0, 9);

    if (distribution == POSITIVE || distribution == UNIT)
        v = (uint64_t)draw_int(d, 1, 9);
    else if (distribution == EXTREME && draw_chance(d, 12))
        v = draw_chance(d, 50) ? (uint64_t)1 << (width - 1)
                               : ((uint64_t)1 << (width - 1)) - 1;
    else if (distribution == EXTREME && draw_chance(d, 12))
        v = random_bits(d);
    memcpy((char *)t->data + (size_t)i * (width / 8), &v, width / 8);
}

/* A random string out of a few, so that some are equal; one is long. */
static const char *word(struct draw *d)
{
    static const char *const words[] = {"",
                                        "a",
                                        "A",
                                        "The",
                                        "the",
                                        "10",
                                        "\xc3\xa9t\xc3\xa9",
                                        "zebra crossing"};

    return words[draw_int(d, 0, BYI_COUNT(words) - 1)];
}

/* Fill a tensor with random elements. */
static void fill(struct draw *d, struct byi_tensor *t,
                 enum distribution distribution)
{
    const int64_t n = byi_elements(t->rank, t->dims);

    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == BYOC_STRING)
            ((const char **)t->data)[i] = word(d);
        else if (t->dtype == BYOC_BOOL)
            ((uint8_t *)t->data)[i] = (uint8_t)draw_int(d, 0, 1);
        else if (!byi_dtype_is_float(t->dtype))
            set_int(d, t, i, distribution);
        else if (distribution == EXTREME && draw_chance(d, 12))
            byi_tensor_set(t, i, special_float(d, t->dtype));
        else if (distribution == UNIT)
            byi_tensor_set(t, i, (double)draw_int(d, 1, 255) / 256);
        else if (distribution == POSITIVE)
            byi_tensor_set(t, i, (double)draw_int(d, 16, 1024) / 256);
        else
            byi_tensor_set(t, i,
                           draw_chance(d, 30)
                               ? (double)draw_int(d, -8, 8) / 2
                               : (double)draw_int(d, -4096, 4096) / 1024);
    }
}

/* --- shapes and axes ------------------------------------------------------ */

uint32_t draw_narrower(struct draw *d, uint32_t rank, const int64_t *to,
                       int64_t *dims)
{
    const uint32_t drop =
        draw_chance(d, 30) ? (uint32_t)draw_int(d, 0, rank) : 0;

    for (uint32_t i = drop; i < rank; i++)
        dims[i - drop] = draw_chance(d, 25) ? 1 : to[i];
    return rank - drop;
}

int64_t draw_axis(struct draw *d, uint32_t rank)
{
    return draw_int(d, -(int64_t)rank, (int64_t)rank - 1);
}

/* --- the model ------------------------------------------------------------ */

static void *list_add(struct draw *d, void *list, size_t *n, const void *item)
{
    void **longer = byi_arena_calloc(d->arena, *n + 1, sizeof *longer);

    if (list)
        memcpy(longer, list, *n * sizeof *longer);
    memcpy(&longer[(*n)++], &item, sizeof item);
    return longer;
}

/* A tensor's type, with this percentage of the sizes; the others are open. */
static Onnx__TypeProto *type_of(struct draw *d, const struct byi_tensor *t,
                                int percent)
{
    static const Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    static const Onnx__TypeProto__Tensor tensor =
        ONNX__TYPE_PROTO__TENSOR__INIT;
    static const Onnx__TensorShapeProto shape = ONNX__TENSOR_SHAPE_PROTO__INIT;
    static const Onnx__TensorShapeProto__Dimension dim =
        ONNX__TENSOR_SHAPE_PROTO__DIMENSION__INIT;
    Onnx__TypeProto *result = byi_arena_copy(d->arena, &type, sizeof type);

    result->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    result->tensor_type = byi_arena_copy(d->arena, &tensor, sizeof tensor);
    result->tensor_type->has_elem_type = 1;
    result->tensor_type->elem_type = (int32_t)t->dtype;
    Onnx__TensorShapeProto *s = byi_arena_copy(d->arena, &shape, sizeof shape);
    result->tensor_type->shape = s;
    for (uint32_t i = 0; i < t->rank; i++) {
        Onnx__TensorShapeProto__Dimension *x =
            byi_arena_copy(d->arena, &dim, sizeof dim);
        if (draw_chance(d, percent))
            x->value_case =
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        x->dim_value = t->dims[i];
        s->dim = list_add(d, s->dim, &s->n_dim, x);
    }
    return result;
}

static void add_input(struct draw *d, const char *name,
                      const struct byi_tensor *t)
{
    static const Onnx__ValueInfoProto info = ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__ValueInfoProto *v = byi_arena_copy(d->arena, &info, sizeof info);

    v->name = byi_arena_str(d->arena, name);
    v->type = type_of(d, t, !d->open ? 100 : d->partly_open ? 60 : 0);
    d->graph->input = list_add(d, d->graph->input, &d->graph->n_input, v);
}

static Onnx__TensorProto *tensor_of(struct draw *d, const char *name,
                                    const struct byi_tensor *t)
{
    static const Onnx__TensorProto proto = ONNX__TENSOR_PROTO__INIT;
    Onnx__TensorProto *w = byi_arena_copy(d->arena, &proto, sizeof proto);

    w->name = byi_arena_str(d->arena, name);
    w->has_data_type = 1;
    w->data_type = (int32_t)t->dtype;
    w->n_dims = t->rank;
    w->dims = byi_arena_copy(d->arena, t->dims, t->rank * sizeof *t->dims);
    if (t->dtype != BYOC_STRING) {
        w->has_raw_data = 1;
        w->raw_data.len = (size_t)byi_tensor_bytes(t);
        w->raw_data.data = t->data;
        return w;
    }
    w->n_string_data = (size_t)byi_elements(t->rank, t->dims);
    w->string_data = byi_arena_calloc(d->arena, w->n_string_data + 1,
                                      sizeof *w->string_data);
    for (size_t i = 0; i < w->n_string_data; i++) {
        const char *text = ((const char *const *)t->data)[i];
        w->string_data[i].len = strlen(text);
        w->string_data[i].data = (uint8_t *)byi_arena_str(d->arena, text);
    }
    return w;
}

static void add_weight(struct draw *d, const char *name,
                       const struct byi_tensor *t)
{
    Onnx__TensorProto *w = tensor_of(d, name, t);

    d->graph->initializer =
        list_add(d, d->graph->initializer, &d->graph->n_initializer, w);
}

/* If the case is a float32 reference (d->wide), the numbers of a float16 or
 * bfloat16 tensor in float32; otherwise the tensor. */
static struct byi_tensor widened(struct draw *d, const struct byi_tensor *t)
{
    struct byi_tensor wide = *t;

    if (!d->wide || (t->dtype != BYOC_F16 && t->dtype != BYOC_BF16))
        return wide;
    wide.dtype = BYOC_F32;
    wide.data =
        byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&wide) + 8, 1);
    for (int64_t i = 0; i < byi_elements(t->rank, t->dims); i++)
        byi_tensor_set(&wide, i, byi_tensor_float(t, i));
    return wide;
}

static struct byi_tensor *add_operand(struct draw *d,
                                      const struct byi_tensor *operand,
                                      bool constant)
{
    const char *name = byi_arena_printf(d->arena, "x%u", d->n);
    const struct byi_tensor wide = widened(d, operand), *t = &wide;

    constant = constant || d->all_constant || (d->weights && d->n > 0);
    d->node->input = list_add(d, d->node->input, &d->node->n_input, name);
    if (constant)
        add_weight(d, name, t);
    else
        add_input(d, name, t);
    d->in[d->n] = *t;
    d->constant[d->n] = constant;
    return &d->in[d->n++];
}

struct byi_tensor *draw_operand(struct draw *d, enum byoc_dtype dtype,
                                uint32_t rank, const int64_t *dims,
                                enum distribution distribution)
{
    struct byi_tensor t = {.dtype = dtype, .rank = rank};

    if (rank > 0) /* dims of a scalar may be NULL */
        memcpy(t.dims, dims, rank * sizeof *dims);
    t.data = byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&t) + 8, 1);
    fill(d, &t, distribution);
    return add_operand(d, &t, false);
}

void draw_ints(struct draw *d, enum byoc_dtype dtype, int64_t n,
               const int64_t *values, bool constant)
{
    struct byi_tensor t = {.dtype = dtype, .rank = n < 0 ? 0 : 1, .dims = {n}};
    const int64_t count = n < 0 ? 1 : n;

    t.data = byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&t) + 8, 1);
    for (int64_t i = 0; i < count; i++)
        byi_tensor_set(&t, i, (double)values[i]);
    add_operand(d, &t, constant);
}

struct byi_tensor *draw_floats(struct draw *d, int64_t n, const double *values,
                               bool constant)
{
    struct byi_tensor t = {
        .dtype = BYOC_F32, .rank = n < 0 ? 0 : 1, .dims = {n}};
    const int64_t count = n < 0 ? 1 : n;

    t.data = byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&t) + 8, 1);
    for (int64_t i = 0; i < count; i++)
        byi_tensor_set(&t, i, values[i]);
    return add_operand(d, &t, constant);
}

void draw_scale(struct draw *d, float value)
{
    const int64_t one = 1;
    struct byi_tensor *t =
        draw_operand(d, BYOC_F32, draw_chance(d, 20), &one, POSITIVE);

    byi_tensor_set(t, 0, (double)value);
}

void draw_zero_point(struct draw *d)
{
    const int64_t zero =
        d->dtype == BYOC_U8 ? draw_int(d, 100, 140) : draw_int(d, -9, 9);

    draw_ints(d, d->dtype, draw_chance(d, 20) ? 1 : -1, &zero,
              draw_chance(d, 70));
}

void draw_nothing(struct draw *d)
{
    d->node->input = list_add(d, d->node->input, &d->node->n_input, "");
}

/* Add an attribute without a value to the current node. */
static Onnx__AttributeProto *attr(struct draw *d, const char *name, int type)
{
    static const Onnx__AttributeProto proto = ONNX__ATTRIBUTE_PROTO__INIT;
    Onnx__AttributeProto *a = byi_arena_copy(d->arena, &proto, sizeof proto);

    a->name = byi_arena_str(d->arena, name);
    a->has_type = 1;
    a->type = (Onnx__AttributeProto__AttributeType)type;
    d->at->attribute = list_add(d, d->at->attribute, &d->at->n_attribute, a);
    return a;
}

void draw_attr_int(struct draw *d, const char *name, int64_t v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = v;
}

void draw_attr_float(struct draw *d, const char *name, float v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    a->has_f = 1;
    a->f = v;
}

void draw_attr_string(struct draw *d, const char *name, const char *v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(v);
    a->s.data = (uint8_t *)byi_arena_str(d->arena, v);
}

void draw_attr_ints(struct draw *d, const char *name, size_t n,
                    const int64_t *v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
    a->n_ints = n;
    a->ints = byi_arena_copy(d->arena, v, n * sizeof *v);
}

void draw_attr_floats(struct draw *d, const char *name, size_t n,
                      const float *v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    a->n_floats = n;
    a->floats = byi_arena_copy(d->arena, v, n * sizeof *v);
}

void draw_attr_words(struct draw *d, const char *name, size_t n,
                     const char *const *v)
{
    Onnx__AttributeProto *a =
        attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    a->n_strings = n;
    a->strings = byi_arena_calloc(d->arena, n + 1, sizeof *a->strings);
    for (size_t i = 0; i < n; i++) {
        a->strings[i].len = strlen(v[i]);
        a->strings[i].data = (uint8_t *)byi_arena_str(d->arena, v[i]);
    }
}

void draw_attr_tensor(struct draw *d, const char *name, enum byoc_dtype dtype,
                      uint32_t rank, const int64_t *dims,
                      enum distribution distribution)
{
    struct byi_tensor t = {.dtype = dtype, .rank = rank};

    if (rank > 0)
        memcpy(t.dims, dims, rank * sizeof *dims);
    t.data = byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&t) + 8, 1);
    fill(d, &t, distribution);
    t = widened(d, &t);
    attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
        tensor_of(d, name, &t);
}

void draw_attr_vector(struct draw *d, const char *name, enum byoc_dtype dtype,
                      int64_t n, const double *values)
{
    struct byi_tensor t = {.dtype = dtype, .rank = 1, .dims = {n}};

    t.data = byi_arena_calloc(d->arena, (size_t)byi_tensor_bytes(&t) + 8, 1);
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(&t, i, values[i]);
    attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR)->t =
        tensor_of(d, name, &t);
}

/* --- other nodes, and bodies ---------------------------------------------- */

/* Split a text at blanks to names; "-" is the empty name. */
static char **names(struct draw *d, const char *text, size_t *n)
{
    char **list = NULL, *rest = NULL;

    *n = 0;
    for (char *word = strtok_r(byi_arena_str(d->arena, text), " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        list = list_add(d, list, n, strcmp(word, "-") == 0 ? "" : word);
    return list;
}

Onnx__NodeProto *draw_new_node(struct draw *d, const char *op)
{
    static const Onnx__NodeProto proto = ONNX__NODE_PROTO__INIT;
    Onnx__NodeProto *node = byi_arena_copy(d->arena, &proto, sizeof proto);

    node->op_type = byi_arena_str(d->arena, op);
    node->domain = byi_arena_str(d->arena, "");
    return node;
}

void draw_node(struct draw *d, Onnx__GraphProto *graph, const char *op,
               const char *in, const char *out)
{
    d->at = draw_new_node(d, op);
    d->at->input = names(d, in, &d->at->n_input);
    d->at->output = names(d, out, &d->at->n_output);
    graph->node = list_add(d, graph->node, &graph->n_node, d->at);
}

void draw_place_node(struct draw *d)
{
    d->graph->node = list_add(d, d->graph->node, &d->graph->n_node, d->node);
    d->placed = true;
}

void draw_set_names(struct draw *d, const char *in, const char *out)
{
    d->at = d->node;
    if (in)
        d->node->input = names(d, in, &d->node->n_input);
    if (out)
        d->node->output = names(d, out, &d->node->n_output);
}

void draw_body_type(struct draw *d, Onnx__GraphProto *graph, uint32_t input,
                    enum byoc_dtype dtype, uint32_t rank)
{
    Onnx__ValueInfoProto *v = graph->input[input];
    const struct byi_tensor t = {.dtype = dtype, .rank = rank};
    const struct byi_tensor wide = widened(d, &t);

    v->type = type_of(d, &wide, 0);
}

/* Returns a list of values without types; blanks separate their names. */
static void *values_without_types(struct draw *d, const char *text, size_t *n)
{
    static const Onnx__ValueInfoProto proto = ONNX__VALUE_INFO_PROTO__INIT;
    size_t n_names = 0;
    char **list = names(d, text, &n_names);
    void *infos = NULL;

    for (size_t i = 0; i < n_names; i++) {
        Onnx__ValueInfoProto *v =
            byi_arena_copy(d->arena, &proto, sizeof proto);
        v->name = list[i];
        infos = list_add(d, infos, n, v);
    }
    return infos;
}

Onnx__GraphProto *draw_body(struct draw *d, const char *name, const char *in,
                            const char *out)
{
    static const Onnx__GraphProto proto = ONNX__GRAPH_PROTO__INIT;
    Onnx__GraphProto *g = byi_arena_copy(d->arena, &proto, sizeof proto);

    g->name = byi_arena_str(d->arena, name);
    g->input = values_without_types(d, in, &g->n_input);
    g->output = values_without_types(d, out, &g->n_output);
    d->at = d->node;
    attr(d, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = g;
    return g;
}

void draw_body_results(struct draw *d, Onnx__GraphProto *body, const char *out)
{
    body->n_output = 0;
    body->output = values_without_types(d, out, &body->n_output);
}

void draw_opset(struct draw *d, const char *domain, int64_t version)
{
    static const Onnx__OperatorSetIdProto id =
        ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *opset = byi_arena_copy(d->arena, &id, sizeof id);

    opset->domain = byi_arena_str(d->arena, domain);
    opset->has_version = 1;
    opset->version = version;
    d->model->opset_import =
        list_add(d, d->model->opset_import, &d->model->n_opset_import, opset);
}

void draw_begin(struct draw *d, uint64_t seed, const char *op, int64_t opset,
                const char *domain, enum byoc_dtype dtype, bool wide,
                uint32_t results)
{
    static const Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    static const Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    static const Onnx__ValueInfoProto info = ONNX__VALUE_INFO_PROTO__INIT;

    *d = (struct draw){.seed = seed * 2654435769u + 88172645463325252u,
                       .arena = byi_arena_new(),
                       .dtype = dtype,
                       .wide = wide,
                       .weights = plugin_now && seed % 2 == 0};
    d->model = byi_arena_copy(d->arena, &model, sizeof model);
    d->graph = byi_arena_copy(d->arena, &graph, sizeof graph);
    d->at = d->node = draw_new_node(d, op);
    d->model->has_ir_version = 1;
    d->model->ir_version = 8;
    d->model->graph = d->graph;
    d->graph->name = byi_arena_str(d->arena, "fuzz");
    d->node->domain = byi_arena_str(d->arena, domain ? domain : "");
    draw_opset(d, "", domain ? 17 : opset);
    if (domain)
        draw_opset(d, domain, opset);
    for (uint32_t i = 0; i < results; i++) {
        char *name = byi_arena_printf(d->arena, "y%u", i);
        Onnx__ValueInfoProto *v = byi_arena_copy(d->arena, &info, sizeof info);
        v->name = name;
        d->node->output =
            list_add(d, d->node->output, &d->node->n_output, name);
        d->graph->output =
            list_add(d, d->graph->output, &d->graph->n_output, v);
    }
    for (int i = 0; i < 8; i++)
        random_bits(d);
}

uint8_t *draw_pack(struct draw *d, size_t *n)
{
    if (!d->placed)
        draw_place_node(d);
    *n = onnx__model_proto__get_packed_size(d->model);
    uint8_t *bytes = byi_arena_alloc(d->arena, *n + 1);

    onnx__model_proto__pack(d->model, bytes);
    return bytes;
}

void draw_end(struct draw *d)
{
    byi_arena_free(&d->arena);
}

void draw_same(struct draw *d)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = draw_shape(d, 0, 4, dims);

    draw_operand(d, d->dtype, rank, dims, op_now->distribution);
}
