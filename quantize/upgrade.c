/* SPDX-License-Identifier: Apache-2.0 */
/* upgrade.c: converts a model of opset 9 to opset 10, the first one with
 * QuantizeLinear, DequantizeLinear and QLinearConv. Three operators differ in
 * opset 10:
 *
 *   Slice(x), starts, ends, axes      Slice(x, starts, ends, axes)
 *   TopK(x), k                        TopK(x, k)
 *   Upsample(x, scales), mode         Resize(x, scales), mode
 */
#include "quantize/model.h"

#include <string.h>

enum { OLD_OPSET = 9, NEW_OPSET = 10 };

/* A model that is converted, and the names of its tensors. */
struct quant_upgrade {
    struct quant_model *m;
    struct byi_name_table names;
    Onnx__TensorProto **tensors; /* the initializers */
    uint32_t n_tensors, cap_tensors;
};

static const struct {
    const char *type, *new_type;
    const char *attrs[4]; /* attributes that become inputs, in this order */
} changed_ops[] = {
    {"Slice", "Slice", {"starts", "ends", "axes"}},
    {"TopK", "TopK", {"k"}},
    {"Upsample", "Resize", {NULL}},
};

static void add_tensor(struct quant_upgrade *u, Onnx__TensorProto *t)
{
    if (u->n_tensors == u->cap_tensors)
        u->tensors = byi_arena_grow(u->m->arena, u->tensors, &u->cap_tensors,
                                    sizeof(*u->tensors));
    u->tensors[u->n_tensors++] = t;
}

/* Record the names that new tensors must not have, and the initializers. */
static void collect_names(struct quant_upgrade *u)
{
    const Onnx__GraphProto *g = u->m->graph;
    struct byi_arena *arena = u->m->arena;
    for (size_t i = 0; i < g->n_initializer; i++) {
        byi_name_intern(&u->names, arena, g->initializer[i]->name);
        add_tensor(u, g->initializer[i]);
    }
    for (size_t i = 0; i < g->n_input; i++)
        byi_name_intern(&u->names, arena, g->input[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++)
            byi_name_intern(&u->names, arena, g->node[i]->output[k]);
}

/* Make a constant of the attribute, a number or a list. Returns its name. */
static char *make_tensor(struct quant_upgrade *u, const Onnx__NodeProto *node,
                         const Onnx__AttributeProto *a)
{
    struct byi_arena *arena = u->m->arena;
    Onnx__TensorProto *t = byi_arena_alloc(arena, sizeof *t);
    const int64_t n = a->n_ints ? (int64_t)a->n_ints : 1;
    onnx__tensor_proto__init(t);
    t->name = byi_arena_printf(arena, "%s_%s", node->output[0], a->name);
    for (uint32_t i = 1; byi_name_find(&u->names, t->name) != UINT32_MAX; i++)
        t->name =
            byi_arena_printf(arena, "%s_%s_%u", node->output[0], a->name, i);
    byi_name_intern(&u->names, arena, t->name);
    t->has_data_type = true;
    t->data_type = BYOC_I64;
    t->n_dims = 1;
    t->dims = byi_arena_copy(arena, &n, sizeof n);
    t->n_int64_data = (size_t)n;
    t->int64_data = byi_arena_copy(arena, a->n_ints ? a->ints : &a->i,
                                   (size_t)n * sizeof a->i);
    add_tensor(u, t);
    return t->name;
}

/* Remove attribute `name` from the node and return it, or NULL if the node does
 * not have it. */
static const Onnx__AttributeProto *take_attribute(Onnx__NodeProto *node,
                                                  const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (!a->name || strcmp(a->name, name) != 0)
            continue;
        node->attribute[i] = node->attribute[--node->n_attribute];
        return a;
    }
    return NULL;
}

static void upgrade_node(struct quant_upgrade *u, Onnx__NodeProto *node)
{
    struct byi_arena *arena = u->m->arena;
    if (!byi_quant_is_standard(node->domain) || node->n_output == 0)
        return;
    for (size_t i = 0; i < BYI_COUNT(changed_ops); i++) {
        if (strcmp(node->op_type, changed_ops[i].type) != 0)
            continue;
        char **inputs = byi_arena_calloc(
            arena, node->n_input + BYI_COUNT(changed_ops[i].attrs),
            sizeof *inputs);
        for (size_t k = 0; k < node->n_input; k++)
            inputs[k] = node->input[k];
        node->op_type = byi_arena_str(arena, changed_ops[i].new_type);
        for (const char *const *name = changed_ops[i].attrs; *name; name++) {
            const Onnx__AttributeProto *a = take_attribute(node, *name);
            if (a)
                inputs[node->n_input++] = make_tensor(u, node, a);
        }
        node->input = inputs;
        return;
    }
}

static bool has_body(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i]->g || node->attribute[i]->n_graphs)
            return true;
    return false;
}

enum byoc_status byi_quant_upgrade(struct quant_model *m,
                                   struct byoc_error *err)
{
    Onnx__GraphProto *g = m->graph;
    Onnx__ModelProto *p = m->proto;
    struct quant_upgrade u = {.m = m};
    bool has_bodies = false;
    if (m->opset >= NEW_OPSET)
        return BYOC_OK;
    for (size_t i = 0; i < g->n_node; i++)
        has_bodies |= has_body(g->node[i]);
    if (m->opset < OLD_OPSET || has_bodies)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found opset %lld%s, expected %d or newer; convert "
                        "the model, for example with onnx.version_converter",
                        m->path, (long long)m->opset,
                        has_bodies ? " with If, Loop or Scan" : "",
                        has_bodies ? NEW_OPSET : OLD_OPSET);
    collect_names(&u);
    for (size_t i = 0; i < g->n_node; i++)
        upgrade_node(&u, g->node[i]);
    g->initializer = u.tensors;
    g->n_initializer = u.n_tensors;
    for (size_t i = 0; i < p->n_opset_import; i++)
        if (p->opset_import[i]->version == m->opset &&
            byi_quant_is_standard(p->opset_import[i]->domain))
            p->opset_import[i]->version = NEW_OPSET;
    m->opset = NEW_OPSET;
    return BYOC_OK;
}
