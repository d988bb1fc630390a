/* SPDX-License-Identifier: Apache-2.0 */
/* models.h: shared by the tests of the importer: builds models in memory,
 * writes them to a temporary folder, and checks the imported modules.
 */
#ifndef BYI_TEST_MODELS_H
#define BYI_TEST_MODELS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "frontend_onnx/onnx.h"
#include "onnx.pb-c.h"
#include "tests/folder.h"

/* --- building models ------------------------------------------------------ */

/* A model that is being built. end() frees it. Its files are in the folder of
 * the test program, which is removed when the program ends. */
struct build {
    struct byi_arena *arena;
    Onnx__ModelProto *model;
    Onnx__GraphProto *graph;
    char folder[TEST_PATH], path[TEST_PATH + 32];
};

/* A copy of a list of *n pointers, with one more, `item`. Adds 1 to *n. */
static inline void *list_add(struct byi_arena *arena, void *list, size_t *n,
                             const void *item)
{
    void **longer = byi_arena_calloc(arena, *n + 1, sizeof *longer);

    if (list)
        memcpy(longer, list, *n * sizeof *longer);
    memcpy(&longer[(*n)++], &item, sizeof item);
    return longer;
}

/* A version of the operators of a domain, in the arena. */
static inline Onnx__OperatorSetIdProto *opset_id(struct byi_arena *arena,
                                                 const char *domain,
                                                 int64_t version)
{
    static const Onnx__OperatorSetIdProto proto =
        ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *id = byi_arena_copy(arena, &proto, sizeof proto);

    id->domain = byi_arena_str(arena, domain);
    id->has_version = 1;
    id->version = version;
    return id;
}

/* Let the model use a version of the operators of a domain. */
static inline void import_opset(struct build *b, const char *domain,
                                int64_t version)
{
    b->model->opset_import =
        list_add(b->arena, b->model->opset_import, &b->model->n_opset_import,
                 opset_id(b->arena, domain, version));
}

/* A model of version `opset` of ONNX's operators. */
static inline struct build begin(int64_t opset)
{
    static const Onnx__ModelProto model = ONNX__MODEL_PROTO__INIT;
    static const Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    struct build b = {.arena = byi_arena_new()};

    b.model = byi_arena_copy(b.arena, &model, sizeof model);
    b.graph = byi_arena_copy(b.arena, &graph, sizeof graph);
    import_opset(&b, "", opset);
    b.model->has_ir_version = 1;
    b.model->ir_version = 8;
    b.model->graph = b.graph;
    assert_non_null(make_inner_folder(b.folder));
    snprintf(b.path, sizeof b.path, "%s/model.onnx", b.folder);
    return b;
}

/* Free the model. */
static inline void end(struct build *b)
{
    byi_arena_free(&b->arena);
}

/* A named value. `dtype` is a TensorProto.DataType. `dims` are its sizes and
 * symbolic dims, separated by blanks; NULL: without a shape. */
static inline Onnx__ValueInfoProto *value(struct build *b, const char *name,
                                          int dtype, const char *dims)
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

/* Add an input or an output to the present graph; `dims` as for value(). */
static inline void typed_input(struct build *b, const char *name, int dtype,
                               const char *dims)
{
    b->graph->input = list_add(b->arena, b->graph->input, &b->graph->n_input,
                               value(b, name, dtype, dims));
}

static inline void typed_output(struct build *b, const char *name, int dtype,
                                const char *dims)
{
    b->graph->output = list_add(b->arena, b->graph->output, &b->graph->n_output,
                                value(b, name, dtype, dims));
}

/* Add an input of float32, one of int64, or an output of float32. */
static inline void input(struct build *b, const char *name, const char *dims)
{
    typed_input(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, dims);
}

static inline void int_input(struct build *b, const char *name,
                             const char *dims)
{
    typed_input(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, dims);
}

static inline void output(struct build *b, const char *name)
{
    typed_output(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT, NULL);
}

/* Add nodes, inputs and outputs to an inner graph from now on, until leave(),
 * which gets the outer graph that this returns. */
static inline Onnx__GraphProto *enter(struct build *b)
{
    static const Onnx__GraphProto graph = ONNX__GRAPH_PROTO__INIT;
    Onnx__GraphProto *outer = b->graph;

    b->graph = byi_arena_copy(b->arena, &graph, sizeof graph);
    b->graph->name = byi_arena_str(b->arena, "inner");
    return outer;
}

/* Return to the outer graph. Returns the inner one. */
static inline Onnx__GraphProto *leave(struct build *b, Onnx__GraphProto *outer)
{
    Onnx__GraphProto *inner = b->graph;

    b->graph = outer;
    return inner;
}

/* Split a text at blanks to names; '-' is the empty name. Adds their number to
 * *n. */
static inline char **names(struct build *b, const char *text, size_t *n)
{
    char *copy = byi_arena_str(b->arena, text), *rest = NULL;
    char **list = NULL;

    for (char *word = strtok_r(copy, " ", &rest); word;
         word = strtok_r(NULL, " ", &rest))
        list = list_add(b->arena, list, n, strcmp(word, "-") ? word : "");
    return list;
}

/* Add a node to the present graph. `in` and `out`: as for names(). */
static inline Onnx__NodeProto *node(struct build *b, const char *op,
                                    const char *in, const char *out)
{
    static const Onnx__NodeProto proto = ONNX__NODE_PROTO__INIT;
    Onnx__NodeProto *n = byi_arena_copy(b->arena, &proto, sizeof proto);

    n->op_type = byi_arena_str(b->arena, op);
    n->input = names(b, in, &n->n_input);
    n->output = names(b, out, &n->n_output);
    b->graph->node = list_add(b->arena, b->graph->node, &b->graph->n_node, n);
    return n;
}

/* Add an attribute without a value to a node. */
static inline Onnx__AttributeProto *attr(struct build *b, Onnx__NodeProto *n,
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

/* Add an attribute with a value to a node; the model copies strings and
 * lists, and keeps pointers to graphs. */
static inline void attr_int(struct build *b, Onnx__NodeProto *n,
                            const char *name, int64_t v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    a->has_i = 1;
    a->i = v;
}

static inline void attr_float(struct build *b, Onnx__NodeProto *n,
                              const char *name, float v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    a->has_f = 1;
    a->f = v;
}

static inline void attr_graph(struct build *b, Onnx__NodeProto *n,
                              const char *name, Onnx__GraphProto *graph)
{
    attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH)->g = graph;
}

static inline void attr_string(struct build *b, Onnx__NodeProto *n,
                               const char *name, const char *v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

    a->has_s = 1;
    a->s.len = strlen(v);
    a->s.data = (uint8_t *)byi_arena_str(b->arena, v);
}

static inline void attr_ints(struct build *b, Onnx__NodeProto *n,
                             const char *name, size_t count, const int64_t *v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

    a->n_ints = count;
    a->ints = byi_arena_copy(b->arena, v, count * sizeof *v);
}

static inline void attr_floats(struct build *b, Onnx__NodeProto *n,
                               const char *name, size_t count, const float *v)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

    a->n_floats = count;
    a->floats = byi_arena_copy(b->arena, v, count * sizeof *v);
}

/* A list of strings, which blanks separate in `text`. */
static inline void attr_strings(struct build *b, Onnx__NodeProto *n,
                                const char *name, const char *text)
{
    Onnx__AttributeProto *a =
        attr(b, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    char **list = names(b, text, &a->n_strings);

    a->strings =
        byi_arena_calloc(b->arena, a->n_strings + 1, sizeof *a->strings);
    for (size_t i = 0; i < a->n_strings; i++) {
        a->strings[i].len = strlen(list[i]);
        a->strings[i].data = (uint8_t *)list[i];
    }
}

/* A tensor without data. */
static inline Onnx__TensorProto *tensor(struct build *b, const char *name,
                                        int dtype, uint32_t rank,
                                        const int64_t *dims)
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

/* Add an initializer to the present graph. */
static inline void weight(struct build *b, Onnx__TensorProto *t)
{
    b->graph->initializer =
        list_add(b->arena, b->graph->initializer, &b->graph->n_initializer, t);
}

/* Set the tensor's data to a copy of n bytes. */
static inline void raw(struct build *b, Onnx__TensorProto *t, const void *data,
                       size_t n)
{
    t->has_raw_data = 1;
    t->raw_data.len = n;
    t->raw_data.data = byi_arena_copy(b->arena, data, n);
}

/* Add an initializer of float32 with the elements 0, 1, 2, ... */
static inline Onnx__TensorProto *floats(struct build *b, const char *name,
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

/* Add an initializer of int64 with one axis of n elements. */
static inline void ints(struct build *b, const char *name, int64_t n,
                        const int64_t *values)
{
    Onnx__TensorProto *t =
        tensor(b, name, ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 1, &n);

    raw(b, t, values, (size_t)n * sizeof *values);
    weight(b, t);
}

/* Set an entry of the tensor's external data, instead of raw data. */
static inline void external(struct build *b, Onnx__TensorProto *t,
                            const char *key, const char *text)
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

/* Write n bytes to a file; a failure ends the test. */
static inline void write_file(const char *path, const void *data, size_t n)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Write the model to b->path. Returns the size of the file. */
static inline size_t save(struct build *b)
{
    const size_t n = onnx__model_proto__get_packed_size(b->model);
    uint8_t *bytes = byi_arena_alloc(b->arena, n);

    assert_int_equal(onnx__model_proto__pack(b->model, bytes), n);
    write_file(b->path, bytes, n);
    return n;
}

/* --- checks --------------------------------------------------------------- */

/* Import the model, and check that the text of @main contains every piece, in
 * order. Ends `b`. */
static inline void expect_with(struct build *b,
                               const struct byi_onnx_params *params,
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
            fail_msg("found no '%s' in:\n%s", pieces[i], text.at);
        at += strlen(pieces[i]);
    }
    byi_text_free(&text);
    byi_module_free(&m);
    end(b);
}

#define EXPECT(b, ...)                                                         \
    expect_with((b), NULL, (const char *const[]){__VA_ARGS__, NULL})

/* Check that importing the model fails with this status and a message that
 * contains `text`. Ends `b`. */
static inline void refuse_with(struct build *b,
                               const struct byi_onnx_params *params,
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

/* refuse_with() without params. */
static inline void refuse(struct build *b, enum byoc_status status,
                          const char *text)
{
    refuse_with(b, NULL, status, text);
}

#endif
