/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c: inserts QuantizeLinear and DequantizeLinear, and replaces weights
 * by 8-bit integers.
 *
 *   x -> Conv(w, b) -> y     x -> Q -> DQ -> Conv(DQ(w8), DQ(b32)) -> y
 *
 * Activations are uint8 with a zero point. Weights are int8 from -127 to 127
 * with a scale per output channel; a bias is int32 in units of the sums.
 */
#include "quantize/model.h"

#include <math.h>
#include <string.h>

#define MAX_BIAS 1e9 /* sums stay far from the ends of int32 */
/* a smaller scale becomes 1: all values then round to 0 */
#define MIN_SCALE 0x1p-100f

/* ONNX has scales per channel from this opset on. Operators of this domain have
 * them in models of every opset. */
enum { CHANNELS_OPSET = 13 };
#define MICROSOFT_DOMAIN "com.microsoft"

/* The graph's new lists of nodes and constants. */
struct quant_rewrite {
    struct quant_model *m;
    struct byi_arena *arena;
    Onnx__NodeProto **nodes;
    uint32_t n_nodes, cap_nodes;
    Onnx__TensorProto **tensors;
    uint32_t n_tensors, cap_tensors;
};

/* --- protobuf messages ---------------------------------------------------- */

/* Returns a new name that begins with `stem` and that the model does not have.
 */
static char *new_name(struct quant_rewrite *r, const char *stem,
                      const char *suffix)
{
    char *name = byi_arena_printf(r->arena, "%s_%s", stem, suffix);
    for (uint32_t i = 1;; i++) {
        const uint32_t n = r->m->names.n;
        if (byi_name_intern(&r->m->names, r->arena, name) == n)
            return name;
        name = byi_arena_printf(r->arena, "%s_%s_%u", stem, suffix, i);
    }
}

static void add_node(struct quant_rewrite *r, Onnx__NodeProto *node)
{
    if (r->n_nodes == r->cap_nodes)
        r->nodes = byi_arena_grow(r->arena, r->nodes, &r->cap_nodes,
                                  sizeof(*r->nodes));
    r->nodes[r->n_nodes++] = node;
}

/* Add a constant, whose elements are at `data` in r->arena. Returns its name.
 */
static char *add_tensor(struct quant_rewrite *r, const char *stem,
                        const char *suffix, enum byoc_dtype dtype, size_t rank,
                        const int64_t *dims, void *data)
{
    Onnx__TensorProto *t = byi_arena_alloc(r->arena, sizeof *t);
    onnx__tensor_proto__init(t);
    t->name = new_name(r, stem, suffix);
    t->has_data_type = true;
    t->data_type = (int32_t)dtype;
    t->n_dims = rank;
    t->dims = byi_arena_copy(r->arena, dims, rank * sizeof *dims);
    t->has_raw_data = true;
    t->raw_data.data = data;
    t->raw_data.len =
        (size_t)byi_elements((uint32_t)rank, dims) * byoc_dtype_size(dtype);
    if (r->n_tensors == r->cap_tensors)
        r->tensors = byi_arena_grow(r->arena, r->tensors, &r->cap_tensors,
                                    sizeof(*r->tensors));
    r->tensors[r->n_tensors++] = t;
    return t->name;
}

/* Add a QuantizeLinear or DequantizeLinear. Returns the name of the node, which
 * is also the name of its output. `axis` is the axis of the scales, or -1 if
 * there is only one scale. */
static char *add_qdq_node(struct quant_rewrite *r, const char *type,
                          const char *stem, char *x, char *scale, char *zero,
                          int64_t axis)
{
    Onnx__NodeProto *node = byi_arena_alloc(r->arena, sizeof *node);
    onnx__node_proto__init(node);
    char **names = byi_arena_calloc(r->arena, 4, sizeof *names);
    names[0] = x;
    names[1] = scale;
    names[2] = zero;
    names[3] = new_name(r, stem, type);
    node->op_type = byi_arena_str(r->arena, type);
    if (r->m->opset < CHANNELS_OPSET)
        node->domain = byi_arena_str(r->arena, MICROSOFT_DOMAIN);
    node->name = names[3];
    node->n_input = 3;
    node->input = names;
    node->n_output = 1;
    node->output = names + 3;
    if (axis >= 0) {
        Onnx__AttributeProto *a = byi_arena_alloc(r->arena, sizeof *a);
        onnx__attribute_proto__init(a);
        a->name = byi_arena_str(r->arena, "axis");
        a->has_type = true;
        a->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        a->has_i = true;
        a->i = axis;
        node->n_attribute = 1;
        node->attribute = byi_arena_copy(r->arena, &a, sizeof a);
    }
    add_node(r, node);
    return names[3];
}

/* --- activations ---------------------------------------------------------- */

/* Returns the tensor that has the range of `v`. */
static const struct quant_value *range_root(const struct quant_value *v)
{
    while (v->range_of)
        v = v->range_of;
    return v;
}

/* Set scale and zero point from the range. */
static void set_scale(struct quant_value *v)
{
    const struct quant_value *root = range_root(v);
    const float width = root->high - root->low;
    v->scale = width > 0 && isfinite(width / UINT8_MAX) ? width / UINT8_MAX : 1;
    if (!(v->scale >= MIN_SCALE))
        v->scale = 1;
    v->zero = (int32_t)fminf(fmaxf(rintf(-root->low / v->scale), 0), UINT8_MAX);
}

/* Quantise a tensor after its producer; readers read the result. */
static void quantize_value(struct quant_rewrite *r, struct quant_value *v)
{
    char *name = byi_arena_str(r->arena, v->name);
    uint8_t *zero = byi_arena_alloc(r->arena, 1);
    float *scale = byi_arena_alloc(r->arena, sizeof *scale);
    *zero = (uint8_t)v->zero;
    *scale = v->scale;
    char *scale_name = add_tensor(r, name, "scale", BYOC_F32, 0, NULL, scale);
    char *zero_name = add_tensor(r, name, "zero_point", BYOC_U8, 0, NULL, zero);
    char *bytes = add_qdq_node(r, "QuantizeLinear", name, name, scale_name,
                               zero_name, -1);
    v->dequantized = add_qdq_node(r, "DequantizeLinear", name, bytes,
                                  scale_name, zero_name, -1);
}

static void quantize_results(struct quant_rewrite *r,
                             const Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_output; k++) {
        struct quant_value *v = byi_quant_value(r->m, node->output[k]);
        if (v && v->to_quantize)
            quantize_value(r, v);
    }
}

/* --- weights -------------------------------------------------------------- */

double byi_quant_decibels(double signal, double noise)
{
    return noise > 0 ? 10 * log10(signal / noise) : INFINITY;
}

/* Quantise the weights. Returns the scales, one for each of *n channels, and
 * sets *name to the name of the dequantised weights. */
static float *quantize_weights(struct quant_rewrite *r,
                               struct quant_layer *layer, char **name,
                               int64_t *n)
{
    const Onnx__TensorProto *t = layer->weights->constant;
    int64_t n_weights, inner = 1;
    const float *w = byi_quant_floats(t, &n_weights);
    *n = t->dims[layer->axis];
    for (size_t i = (size_t)layer->axis + 1; i < t->n_dims; i++)
        inner *= t->dims[i];
    int8_t *q = byi_arena_alloc(r->arena, (size_t)n_weights);
    float *scales = byi_arena_calloc(r->arena, (size_t)*n, sizeof *scales);
    int8_t *zeros = byi_arena_calloc(r->arena, (size_t)*n, 1);
    for (int64_t i = 0; i < n_weights; i++)
        scales[i / inner % *n] =
            fmaxf(scales[i / inner % *n], fabsf(w[i]) / INT8_MAX);
    for (int64_t c = 0; c < *n; c++)
        if (!(scales[c] >= MIN_SCALE) || !isfinite(scales[c]))
            scales[c] = 1;
    double signal = 0, noise = 0;
    for (int64_t i = 0; i < n_weights; i++) {
        const float scale = scales[i / inner % *n];
        const float steps = rintf(w[i] / scale);
        q[i] = (int8_t)fminf(fmaxf(steps, -INT8_MAX), INT8_MAX);
        const double difference = (double)w[i] - (double)((float)q[i] * scale);
        signal += (double)w[i] * (double)w[i];
        noise += difference * difference;
    }
    layer->weights_snr = byi_quant_decibels(signal, noise);
    const char *stem = layer->weights->name;
    char *bytes =
        add_tensor(r, stem, "quantized", BYOC_I8, t->n_dims, t->dims, q);
    char *scale = add_tensor(r, stem, "scale", BYOC_F32, 1, n, scales);
    char *zero = add_tensor(r, stem, "zero_point", BYOC_I8, 1, n, zeros);
    *name = add_qdq_node(r, "DequantizeLinear", stem, bytes, scale, zero,
                         layer->axis);
    return scales;
}

/* Quantise the bias with the scales of the sums. Returns the name of the
 * dequantised bias, or NULL if an element reaches MAX_BIAS steps. */
static char *quantize_bias(struct quant_rewrite *r,
                           const struct quant_layer *layer, const float *scales,
                           int64_t n)
{
    int64_t count;
    const float *b = byi_quant_floats(layer->bias->constant, &count);
    int32_t *q = byi_arena_calloc(r->arena, (size_t)n, sizeof *q);
    int32_t *zeros = byi_arena_calloc(r->arena, (size_t)n, sizeof *zeros);
    float *units = byi_arena_calloc(r->arena, (size_t)n, sizeof *units);
    for (int64_t c = 0; c < n; c++) {
        units[c] = layer->x->scale * scales[c];
        const double steps = (double)b[c] / (double)units[c];
        if (!(fabs(steps) < MAX_BIAS))
            return NULL;
        q[c] = (int32_t)rint(steps);
    }
    const char *stem = layer->bias->name;
    char *bytes = add_tensor(r, stem, "quantized", BYOC_I32, 1, &n, q);
    char *scale = add_tensor(r, stem, "scale", BYOC_F32, 1, &n, units);
    char *zero = add_tensor(r, stem, "zero_point", BYOC_I32, 1, &n, zeros);
    return add_qdq_node(r, "DequantizeLinear", stem, bytes, scale, zero, 0);
}

static void quantize_layer(struct quant_rewrite *r, struct quant_layer *layer)
{
    char *weights, *bias = NULL;
    int64_t n;
    const float *scales = quantize_weights(r, layer, &weights, &n);
    if (layer->bias)
        bias = quantize_bias(r, layer, scales, n);
    layer->node->input[1] = weights;
    if (bias)
        layer->node->input[2] = bias;
}

/* --- the graph ------------------------------------------------------------ */

/* A stack of graphs whose names are still to be marked. */
struct quant_bodies {
    BYI_VEC(const Onnx__GraphProto *) list;
};

static void add_bodies(struct quant_bodies *b, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *a = node->attribute[i];
        if (a->g)
            BYI_PUSH(&b->list, a->g);
        for (size_t k = 0; k < a->n_graphs; k++)
            BYI_PUSH(&b->list, a->graphs[k]);
    }
}

/* Set read[] for the name, if the main graph has it. */
static void mark_name(struct quant_model *m, const char *name, bool *read)
{
    const struct quant_value *v = byi_quant_value(m, name);
    if (v)
        read[v - m->values] = true;
}

/* Mark the names that nodes, also those in bodies of control flow, refer to,
 * and the outputs. */
static void mark_read(struct quant_model *m, bool *read)
{
    struct quant_bodies b = {0};
    const Onnx__GraphProto *main = m->graph;
    BYI_PUSH(&b.list, main);
    while (b.list.n > 0) {
        const Onnx__GraphProto *g = b.list.at[--b.list.n];
        for (size_t i = 0; i < g->n_node; i++) {
            add_bodies(&b, g->node[i]);
            for (size_t k = 0; k < g->node[i]->n_input; k++)
                mark_name(m, g->node[i]->input[k], read);
        }
        for (size_t i = 0; i < g->n_output; i++)
            mark_name(m, g->output[i]->name, read);
    }
    byi_vec_free(b.list.at);
}

/* Drop the initializers that no node reads any more, and add the new constants.
 */
static void replace_initializers(struct quant_rewrite *r)
{
    Onnx__GraphProto *g = r->m->graph;
    bool *read = byi_arena_calloc(r->arena, r->m->n_values, sizeof *read);
    Onnx__TensorProto **list = byi_arena_calloc(
        r->arena, g->n_initializer + r->n_tensors, sizeof *list);
    size_t n = 0;
    mark_read(r->m, read);
    for (size_t i = 0; i < g->n_initializer; i++)
        if (read[byi_name_intern(&r->m->names, r->arena,
                                 g->initializer[i]->name)])
            list[n++] = g->initializer[i];
    for (uint32_t i = 0; i < r->n_tensors; i++)
        list[n++] = r->tensors[i];
    g->initializer = list;
    g->n_initializer = n;
}

/* Declare the domain of the nodes that were added. */
static void import_domain(struct quant_rewrite *r)
{
    Onnx__ModelProto *p = r->m->proto;
    const size_t n = p->n_opset_import;
    if (r->m->opset >= CHANNELS_OPSET)
        return;
    for (size_t i = 0; i < n; i++)
        if (p->opset_import[i]->domain &&
            strcmp(p->opset_import[i]->domain, MICROSOFT_DOMAIN) == 0)
            return;
    Onnx__OperatorSetIdProto *id = byi_arena_alloc(r->arena, sizeof *id);
    onnx__operator_set_id_proto__init(id);
    id->domain = byi_arena_str(r->arena, MICROSOFT_DOMAIN);
    id->has_version = true;
    id->version = 1;
    Onnx__OperatorSetIdProto **list =
        byi_arena_calloc(r->arena, n + 1, sizeof(*list));
    for (size_t i = 0; i < n; i++)
        list[i] = p->opset_import[i];
    list[n] = id;
    p->opset_import = list;
    p->n_opset_import = n + 1;
}

/* Let the node read dequantised tensors. */
static void rename_inputs(struct quant_rewrite *r, Onnx__NodeProto *node)
{
    for (size_t k = 0; k < node->n_input; k++) {
        const struct quant_value *v = byi_quant_value(r->m, node->input[k]);
        if (v && v->dequantized)
            node->input[k] = v->dequantized;
    }
}

void byi_quant_rewrite(struct quant_model *m)
{
    struct quant_rewrite r = {.m = m, .arena = m->arena};
    Onnx__GraphProto *g = m->graph;
    uint32_t next = 0;
    for (uint32_t i = 0; i < m->n_values; i++)
        if (m->values[i].to_quantize)
            set_scale(&m->values[i]);
    for (uint32_t i = 0; i < m->n_values; i++)
        if (m->values[i].to_quantize && !m->values[i].producer)
            quantize_value(&r, &m->values[i]);
    for (size_t i = 0; i < g->n_node; i++) {
        Onnx__NodeProto *node = g->node[i];
        if (next < m->n_layers && m->layers[next].node == node) {
            if (!m->layers[next].kept)
                quantize_layer(&r, &m->layers[next]);
            next++;
        }
        rename_inputs(&r, node);
        add_node(&r, node);
        quantize_results(&r, node);
    }
    g->node = r.nodes;
    g->n_node = r.n_nodes;
    replace_initializers(&r);
    import_domain(&r);
}
