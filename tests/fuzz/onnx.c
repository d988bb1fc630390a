/* SPDX-License-Identifier: Apache-2.0 */
/* onnx.c: mutates fields of an ONNX model. Random bytes mostly break the
 * encoding; these mutations leave a file that parses, with unusual content.
 */
#include "fuzz.h"

#include "onnx.pb-c.h"

/* An unpacked model is allocated in an arena, so that replaced fields need not
 * be freed. */
static void *arena_alloc(void *arena, size_t n)
{
    return byi_arena_alloc(arena, n ? n : 1);
}

static void ignore_free(void *arena, void *memory)
{
    (void)arena, (void)memory;
}

/* The graphs of a model. */
struct graphs {
    BYI_VEC(Onnx__GraphProto *) list;
};

/* A mutation of a model. */
struct edit {
    struct fuzz_rng *rng;
    struct byi_arena *arena;
    Onnx__GraphProto *g; /* the graph to change, which may be a body */
    struct graphs all;   /* the graphs of the model                  */
    struct graphs
        other_graphs; /* graphs of another model, whose nodes are copied */
};

static uint64_t below(const struct edit *e, uint64_t n)
{
    return fuzz_below(e->rng, n);
}

/* The name of a random value of the graph. */
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

/* The graph and every graph in attributes of its nodes. */
static struct graphs find_graphs(Onnx__GraphProto *root)
{
    struct graphs graphs = {0};
    BYI_PUSH(&graphs.list, root);
    for (uint32_t i = 0; i < graphs.list.n && i < 1000; i++) {
        const Onnx__GraphProto *g = graphs.list.at[i];
        for (size_t k = 0; k < g->n_node; k++)
            for (size_t j = 0; j < g->node[k]->n_attribute; j++)
                if (g->node[k]->attribute[j]->g)
                    BYI_PUSH(&graphs.list, g->node[k]->attribute[j]->g);
    }
    return graphs;
}

/* A node of the other model, or NULL if it has none. */
static Onnx__NodeProto *other_node(const struct edit *e)
{
    if (!e->other_graphs.list.n)
        return NULL;
    const Onnx__GraphProto *g =
        e->other_graphs.list.at[below(e, e->other_graphs.list.n)];
    return g->n_node ? g->node[below(e, g->n_node)] : NULL;
}

/* Change the node's operator; now and then also its attributes. */
static void edit_operator(const struct edit *e, Onnx__NodeProto *n)
{
    const Onnx__NodeProto *other = other_node(e);
    if (!other || below(e, 4) == 0)
        other = e->g->node[below(e, e->g->n_node)];
    n->op_type = other->op_type;
    n->domain = other->domain;
    if (below(e, 2) == 0) {
        n->n_attribute = other->n_attribute;
        n->attribute = other->attribute;
    }
}

/* Add a node of the other model, which reads values of this graph. Its first
 * result becomes an output of the graph, so that the node is not dead. */
static void add_node(const struct edit *e)
{
    const Onnx__NodeProto *other = other_node(e);
    Onnx__GraphProto *g = e->g;
    if (!other || g->n_node > 200)
        return;
    Onnx__NodeProto *n = byi_arena_copy(e->arena, other, sizeof *n);
    n->input = byi_arena_calloc(e->arena, n->n_input + 1, sizeof *n->input);
    n->output = byi_arena_calloc(e->arena, n->n_output + 1, sizeof *n->output);
    for (size_t i = 0; i < n->n_input; i++)
        n->input[i] = some_value(e);
    for (size_t i = 0; i < n->n_output; i++)
        n->output[i] =
            byi_arena_printf(e->arena, "new%llu_%u",
                             (unsigned long long)below(e, 100), (unsigned)i);
    Onnx__NodeProto **nodes =
        byi_arena_calloc(e->arena, g->n_node + 1, sizeof *nodes);
    const size_t at = below(e, 4) ? g->n_node : below(e, g->n_node + 1);
    for (size_t i = 0; i < g->n_node; i++)
        nodes[i + (i >= at)] = g->node[i];
    nodes[at] = n;
    g->node = nodes;
    g->n_node++;
    if (g->n_output && n->n_output && below(e, 2))
        g->output[below(e, g->n_output)]->name = n->output[0];
}

static void edit_inputs(const struct edit *e, Onnx__NodeProto *n)
{
    uint64_t pick = below(e, 7);
    if (pick == 0 && n->n_input) {
        n->n_input--;
    } else if (pick == 5 && n->n_input) { /* omit the input */
        n->input[below(e, n->n_input)] = byi_arena_str(e->arena, "");
    } else if (pick == 6 && n->n_output) {
        if (below(e, 2))
            n->output[below(e, n->n_output)] = byi_arena_str(e->arena, "");
        else
            n->n_output--;
    } else if (pick == 1) {
        char **grown =
            byi_arena_calloc(e->arena, n->n_input + 1, sizeof *grown);
        for (size_t i = 0; i < n->n_input; i++)
            grown[i] = n->input[i];
        grown[n->n_input] = some_value(e);
        n->input = grown;
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

static void edit_tensor(const struct edit *e, Onnx__TensorProto *t)
{
    if (t->n_external_data && below(e, 3)) {
        Onnx__StringStringEntryProto *x =
            t->external_data[below(e, t->n_external_data)];
        x->value = below(e, 4)
                       ? byi_arena_printf(e->arena, "%lld",
                                          (long long)fuzz_number(e->rng))
                       : x->key;
        return;
    }
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
    default: /* its values, which may be shapes and axes */
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

/* Copy the node's attributes, which it may share with the node that they come
 * from: a change of shared ones could make two graphs contain each other. */
static void copy_attributes(const struct edit *e, Onnx__NodeProto *n)
{
    Onnx__AttributeProto **copies =
        byi_arena_calloc(e->arena, n->n_attribute + 1, sizeof *copies);
    for (size_t i = 0; i < n->n_attribute; i++)
        copies[i] = byi_arena_copy(e->arena, n->attribute[i], sizeof **copies);
    n->attribute = copies;
}

static void edit_attribute(const struct edit *e, Onnx__NodeProto *n)
{
    copy_attributes(e, n);
    const Onnx__NodeProto *other = other_node(e);
    if (other && other->n_attribute &&
        below(e, 3) == 0) { /* add an attribute */
        Onnx__AttributeProto **grown =
            byi_arena_calloc(e->arena, n->n_attribute + 1, sizeof *grown);
        for (size_t i = 0; i < n->n_attribute; i++)
            grown[i] = n->attribute[i];
        grown[n->n_attribute++] = byi_arena_copy(
            e->arena, other->attribute[below(e, other->n_attribute)],
            sizeof **grown);
        n->attribute = grown;
    }
    if (!n->n_attribute)
        return;
    size_t at = below(e, n->n_attribute);
    Onnx__AttributeProto *a = n->attribute[at];
    switch (below(e, 8)) {
    case 0:
        n->attribute[at] = n->attribute[--n->n_attribute];
        return;
    case 1:
        if (other && other->n_attribute)
            a->name = other->attribute[below(e, other->n_attribute)]->name;
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
        if (a->t)
            edit_tensor(e, a->t);
        if (a->g && e->other_graphs.list.n && below(e, 4) == 0)
            a->g = e->other_graphs.list.at[below(e, e->other_graphs.list.n)];
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
        g->node[a] = g->node[b]; /* swap two nodes */
        g->node[b] = node;
    } else if (below(e, 2)) {
        g->node[a] = g->node[b]; /* list a node twice */
    } else {
        g->node[a] = g->node[--g->n_node];
    }
}

/* Remove an input or output of the graph, or repeat one. */
static void edit_interface(const struct edit *e)
{
    Onnx__GraphProto *g = e->g;
    const bool out = below(e, 2);
    size_t *n = out ? &g->n_output : &g->n_input;
    Onnx__ValueInfoProto ***at = out ? &g->output : &g->input;
    if (*n && below(e, 2)) {
        (*n)--;
    } else if (*n) {
        Onnx__ValueInfoProto **grown =
            byi_arena_calloc(e->arena, *n + 1, sizeof *grown);
        for (size_t i = 0; i < *n; i++)
            grown[i] = (*at)[i];
        grown[*n] =
            byi_arena_copy(e->arena, (*at)[below(e, *n)], sizeof **grown);
        if (below(e, 2))
            grown[*n]->name = some_value(e);
        *at = grown;
        (*n)++;
    }
}

static void edit_model(struct edit *e, Onnx__ModelProto *model)
{
    e->g = e->all.list.at[below(e, e->all.list.n)];
    Onnx__GraphProto *g = e->g;
    Onnx__NodeProto *node = g->n_node ? g->node[below(e, g->n_node)] : NULL;
    uint64_t pick = below(e, 21);
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
    else if (pick == 16)
        edit_interface(e);
    else if (pick < 20)
        add_node(e);
    else
        edit_nodes(e);
}

static Onnx__ModelProto *unpack(struct byi_arena *arena,
                                const struct byi_text *bytes)
{
    ProtobufCAllocator allocator = {
        .alloc = arena_alloc, .free = ignore_free, .allocator_data = arena};
    return onnx__model_proto__unpack(&allocator, bytes->n,
                                     (const uint8_t *)bytes->at);
}

static bool edit_fields(struct fuzz_rng *rng, struct byi_text *bytes,
                        const struct byi_text *other)
{
    struct byi_arena *arena = byi_arena_new();
    Onnx__ModelProto *model = unpack(arena, bytes);
    Onnx__ModelProto *other_model = unpack(arena, other);
    bool good = model && model->graph;
    if (good) {
        struct edit e = {
            .rng = rng, .arena = arena, .all = find_graphs(model->graph)};
        if (other_model && other_model->graph)
            e.other_graphs = find_graphs(other_model->graph);
        do {
            edit_model(&e, model);
        } while (below(&e, 2));
        byi_vec_free(e.all.list.at);
        byi_vec_free(e.other_graphs.list.at);
        size_t n = onnx__model_proto__get_packed_size(model);
        uint8_t *packed = byi_arena_alloc(arena, n + 1);
        onnx__model_proto__pack(model, packed);
        bytes->n = 0;
        byi_text_add(bytes, (const char *)packed, n);
    }
    byi_arena_free(&arena);
    return good;
}

void fuzz_onnx(struct fuzz_rng *rng, struct byi_text *bytes,
               const struct byi_text *other)
{
    if (fuzz_below(rng, 5) == 0 || !edit_fields(rng, bytes, other))
        fuzz_bytes(rng, bytes, other);
}
