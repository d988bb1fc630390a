/* import.c: from an unpacked model to @main.
 *
 *   inputs        parameters; a dim_param is a symbol, params may fix it
 *   initialisers  constants, made when a node first reads them
 *   nodes         converted in the order of the file, which must be
 *                 topological, each by its row in the tables of ops_*.c
 *   outputs       the result
 * Inferred shapes in the file (value_info) are not read: the type rules know
 * better.
 */
#include "frontend_onnx/import.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MIN_OPSET = 1, MAX_OPSET = 18 };

bool byi_o_ok(const struct byi_import *o)
{
    return o->status == BYOC_OK;
}

static const char *text_or(const char *text, const char *fallback)
{
    return text && *text ? text : fallback;
}

/* --- params: "N=1", "x=1x3x224x224" --------------------------------------- */

/* The value of `name` among entries "name=value"; marks it as used. */
static const char *param_of(const char *const *params, const char *name,
                            bool *used)
{
    const size_t n = strlen(name);

    for (uint32_t i = 0; params && params[i]; i++) {
        const char *equal = strrchr(params[i], '=');
        if (equal && (size_t)(equal - params[i]) == n &&
            memcmp(params[i], name, n) == 0) {
            used[i] = true;
            return equal + 1;
        }
    }
    return NULL;
}

static bool read_dim(const char **text, int64_t *dim)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *dim = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* "1x3x224x224"; "" is a scalar. */
static bool read_shape(const char *text, uint32_t *rank, int64_t *dims)
{
    *rank = 0;
    if (*text == '\0')
        return true;
    while (*rank < BYI_MAX_RANK && read_dim(&text, &dims[*rank])) {
        ++*rank;
        if (*text == '\0')
            return true;
        if (*text++ != 'x')
            return false;
    }
    return false;
}

struct used {
    bool *dims, *shapes;
};

static uint32_t count(const char *const *list)
{
    uint32_t n = 0;

    while (list && list[n])
        n++;
    return n;
}

static enum byoc_status check_used(struct byi_import *o,
                                   const struct used *used)
{
    const char *const *dims = o->params->dims;
    const char *const *shapes = o->params->shapes;

    for (uint32_t i = 0; i < count(dims); i++)
        if (!used->dims[i])
            return byi_fail(&o->err, BYOC_EINVAL,
                            "dim '%s': expected NAME=NUMBER, where NAME is a "
                            "symbolic dim of the model's inputs",
                            dims[i]);
    for (uint32_t i = 0; i < count(shapes); i++)
        if (!used->shapes[i])
            return byi_fail(&o->err, BYOC_EINVAL,
                            "shape '%s': expected NAME=1x3x224x224, where "
                            "NAME is an input of the model",
                            shapes[i]);
    return BYOC_OK;
}

/* --- inputs --------------------------------------------------------------- */

/* A dim_param may be any text, a symbol of the IR is an identifier: other
 * characters become '_', and a hash keeps two such names apart. */
static int64_t symbol_of(struct byi_import *o, const char *param)
{
    char *name = byi_arena_str(o->scratch, param);
    bool changed = isdigit((unsigned char)*name) != 0;

    for (char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_') {
            *c = '_';
            changed = true;
        }
    if (!changed)
        return byi_symbol(o->m, name);
    const unsigned hash = (unsigned)byi_hash(0, param, strlen(param));
    return byi_symbol(
        o->m, byi_arena_printf(o->scratch, "d%s_%04x", name, hash & 0xffffU));
}

static enum byoc_status read_dims(struct byi_import *o,
                                  const Onnx__TensorShapeProto *shape,
                                  const struct used *used, int64_t *dims)
{
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        const char *param = "";
        if (d->value_case ==
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM)
            param = d->dim_param;
        dims[i] = -1;
        if (d->value_case ==
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            dims[i] = d->dim_value;
        const char *fixed = param_of(o->params->dims, param, used->dims);
        if (*param && fixed && (!read_dim(&fixed, &dims[i]) || *fixed != '\0'))
            return byi_fail(&o->err, BYOC_EINVAL,
                            "dim '%s': the value is not a number >= 0", param);
        if (*param && !fixed)
            dims[i] = symbol_of(o, param);
        else if (dims[i] < 0) /* unnamed, or exporters' -1 */
            dims[i] = byi_symbol_fresh(o->m);
    }
    return BYOC_OK;
}

static enum byoc_status input_dims(struct byi_import *o, const char *input,
                                   const Onnx__TensorShapeProto *shape,
                                   const struct used *used, uint32_t *rank,
                                   int64_t *dims)
{
    const char *given = param_of(o->params->shapes, input, used->shapes);

    if (given && !read_shape(given, rank, dims))
        return byi_fail(&o->err, BYOC_EINVAL,
                        "shape of '%s': found '%s', expected numbers with 'x' "
                        "between, at most %d",
                        input, given, BYI_MAX_RANK);
    if (given && shape && shape->n_dim != *rank)
        return byi_fail(&o->err, BYOC_EINVAL,
                        "shape of '%s': found rank %u, the model's input has "
                        "rank %zu",
                        input, *rank, shape->n_dim);
    if (given)
        return BYOC_OK;
    if (!shape)
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "input '%s' has no shape; give one, such as "
                        "%s=1x3x224x224",
                        input, input);
    if (shape->n_dim > BYI_MAX_RANK)
        return byi_fail(&o->err, BYOC_ELIMIT,
                        "input '%s' has rank %zu, the limit is %d", input,
                        shape->n_dim, BYI_MAX_RANK);
    *rank = (uint32_t)shape->n_dim;
    return read_dims(o, shape, used, dims);
}

static const struct byi_onnx_value *value_of(const struct byi_import *o,
                                             const char *name)
{
    for (uint32_t i = 0; i < o->params->n_values; i++)
        if (strcmp(o->params->values[i].name, name) == 0)
            return &o->params->values[i];
    return NULL;
}

/* Sequences and the like: say what it is, and which operator wants it. */
static enum byoc_status refuse_input(struct byi_import *o, const char *name,
                                     const Onnx__TypeProto *type)
{
    static const char *const kinds[] = {
        [ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE] = "a sequence",
        [ONNX__TYPE_PROTO__VALUE_MAP_TYPE] = "a map",
        [ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE] = "an optional",
        [ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE] = "a sparse tensor",
    };
    const Onnx__GraphProto *graph = o->file.model->graph;
    const unsigned which = type ? (unsigned)type->value_case : 0;
    const char *kind =
        which < BYI_COUNT(kinds) && kinds[which] ? kinds[which] : "untyped";

    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            if (strcmp(graph->node[i]->input[k], name) == 0)
                return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                                "input '%s' of operator %s is %s; only "
                                "tensors are supported",
                                name, text_or(graph->node[i]->op_type, "?"),
                                kind);
    return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                    "input '%s' is %s; only tensors are supported", name, kind);
}

static enum byoc_status add_input(struct byi_import *o,
                                  const Onnx__ValueInfoProto *info,
                                  const struct used *used)
{
    const char *name = text_or(info->name, "");
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = 0;

    const struct byi_name *known = byi_names_find(&o->names, name);
    if (known && known->initializer != UINT32_MAX)
        return BYOC_OK; /* a weight, listed as an input before IR version 4 */
    struct byi_name *entry = *name ? byi_names_add(&o->names, name) : NULL;
    if (!entry)
        return byi_fail(&o->err, BYOC_EPARSE,
                        "input '%s' has no name, or one that is taken", name);
    if (!info->type ||
        info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return refuse_input(o, name, info->type);
    const Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    const enum byoc_dtype dtype = (enum byoc_dtype)tensor->elem_type;
    if (!tensor->has_elem_type || !byoc_dtype_name(dtype))
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "input '%s' has the unknown element type %d", name,
                        tensor->elem_type);
    const struct byi_onnx_value *value = value_of(o, name);
    if (value) {
        if (value->tensor.dtype != dtype)
            return byi_fail(&o->err, BYOC_EINVAL,
                            "the value of input '%s' is %s, the model has %s",
                            name, byoc_dtype_name(value->tensor.dtype),
                            byoc_dtype_name(dtype));
        entry->id = byi_o_const(o, &value->tensor, false);
        return o->status;
    }
    BYI_TRY(input_dims(o, name, tensor->shape, used, &rank, dims));
    entry->id = byi_add_param(o->m, o->f, byi_arena_str(o->m->arena, name),
                              byi_type_tensor(o->m->arena, dtype, rank, dims));
    return BYOC_OK;
}

static enum byoc_status add_inputs(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file.model->graph;
    const struct used used = {
        byi_arena_calloc(o->scratch, count(o->params->dims) + 1, 1),
        byi_arena_calloc(o->scratch, count(o->params->shapes) + 1, 1),
    };

    for (size_t i = 0; i < graph->n_input; i++)
        BYI_TRY(add_input(o, graph->input[i], &used));
    for (uint32_t i = 0; i < o->params->n_values; i++)
        if (!byi_names_find(&o->names, o->params->values[i].name))
            return byi_fail(&o->err, BYOC_EINVAL,
                            "value of '%s': the model has no such input",
                            o->params->values[i].name);
    return check_used(o, &used);
}

static enum byoc_status add_initializers(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file.model->graph;

    if (graph->n_sparse_initializer)
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "the model has sparse initialisers");
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = text_or(graph->initializer[i]->name, "");
        struct byi_name *entry = *name ? byi_names_add(&o->names, name) : NULL;
        if (!entry)
            return byi_fail(&o->err, BYOC_EPARSE,
                            "initialiser '%s' has no name, or one that is "
                            "taken",
                            name);
        entry->initializer = (uint32_t)i;
    }
    return BYOC_OK;
}

/* --- nodes ---------------------------------------------------------------- */

/* The value called `text`, as an operand of the current node or a result. */
static byi_id read_name(struct byi_import *o, const char *text,
                        const char *reader)
{
    struct byi_name *entry = byi_names_find(&o->names, text);
    struct byi_tensor t = {0};

    if (!entry) {
        o->status = byi_fail(&o->err, BYOC_EPARSE,
                             "%s: its value '%s' is not defined before it; "
                             "the graph may have a cycle, or is not sorted",
                             reader, text);
        return BYI_NO_ID;
    }
    if (entry->producer) {
        o->status = byi_fail(&o->err, BYOC_EUNSUPPORTED,
                             "%s, output '%s': this output is not supported",
                             entry->producer, text);
        return BYI_NO_ID;
    }
    if (entry->id != BYI_NO_ID)
        return entry->id;
    const uint32_t i = entry->initializer;
    o->status = byi_onnx_decode(&o->file, o->file.model->graph->initializer[i],
                                &o->file.raw.at[i], &t, &o->err);
    if (!byi_o_ok(o))
        return BYI_NO_ID;
    entry->id = byi_o_const(o, &t, true);
    return entry->id;
}

static int64_t opset_of(const struct byi_import *o, const char *domain)
{
    const Onnx__ModelProto *model = o->file.model;

    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const char *name = text_or(model->opset_import[i]->domain, "");
        if (strcmp(strcmp(name, "ai.onnx") == 0 ? "" : name, domain) == 0)
            return model->opset_import[i]->version;
    }
    /* before IR version 3 there was one opset and no need to name it */
    return *domain == '\0' && model->ir_version < 3 ? 1 : 0;
}

/* Set everything of `o` that is about one node. */
static void begin_node(struct byi_import *o, size_t index,
                       const Onnx__NodeProto *node)
{
    const char *type = text_or(node->op_type, "(none)");
    const char *name = text_or(node->name, "");
    const char *domain = text_or(node->domain, "");

    if (*name == '\0')
        name = byi_arena_printf(o->scratch, "%s_%zu", type, index);
    const uint32_t source =
        byi_source_new(o->m, byi_arena_str(o->m->arena, name),
                       byi_arena_str(o->m->arena, type));
    o->node = node;
    o->name = o->m->sources.at[source].name;
    o->sources = byi_sources_one(o->m, source);
    o->opset = opset_of(o, domain);
    o->seen = 0;
    o->row = NULL;
    if (*domain == '\0' || strcmp(domain, "ai.onnx") == 0)
        o->row = byi_onnx_find(type, o->opset);
}

static void read_operands(struct byi_import *o)
{
    const Onnx__NodeProto *node = o->node;

    o->n_in = (uint32_t)node->n_input;
    o->in = byi_arena_calloc(o->scratch, node->n_input + 1, sizeof *o->in);
    for (uint32_t i = 0; i < o->n_in; i++)
        o->in[i] = BYI_NO_ID;
    for (uint32_t i = 0; i < o->n_in && byi_o_ok(o); i++)
        if (*node->input[i])
            o->in[i] = read_name(o, node->input[i],
                                 byi_arena_printf(o->scratch, "node %s (%s)",
                                                  o->name, o->row->type));
    o->n_out = (uint32_t)node->n_output;
    o->out = byi_arena_calloc(o->scratch, node->n_output + 1, sizeof *o->out);
    for (uint32_t i = 0; i < o->n_out; i++)
        o->out[i] = BYI_NO_ID;
}

static bool arity_ok(struct byi_import *o)
{
    const struct byi_onnx_op *row = o->row;

    if (o->node->n_input > row->max_in || o->node->n_input < row->min_in) {
        byi_o_fail(o, BYOC_EPARSE, "found %zu inputs, expected %u to %u",
                   o->node->n_input, row->min_in, row->max_in);
        return false;
    }
    for (uint32_t i = 0; i < row->min_in; i++)
        if (*o->node->input[i] == '\0') {
            byi_o_fail(o, BYOC_EPARSE, "input %u must not be left out", i);
            return false;
        }
    if (o->node->n_output == 0)
        byi_o_fail(o, BYOC_EPARSE, "found no outputs, expected one");
    if (o->node->n_attribute > 64) /* bits of o->seen */
        byi_o_fail(o, BYOC_ELIMIT, "found %zu attributes, the limit is 64",
                   o->node->n_attribute);
    return byi_o_ok(o);
}

/* An attribute that the converter did not look at would be ignored, so what
 * it asks for would be computed wrong: refuse. */
static void check_attributes(struct byi_import *o)
{
    for (size_t i = 0; i < o->node->n_attribute; i++) {
        const char *name = text_or(o->node->attribute[i]->name, "");
        if (o->seen >> i & 1 || strcmp(name, "consumed_inputs") == 0)
            continue;
        byi_o_refuse(o, "it has no attribute '%s' that is known", name);
    }
}

static void bind_outputs(struct byi_import *o)
{
    for (uint32_t i = 0; i < o->n_out && byi_o_ok(o); i++) {
        const char *text = o->node->output[i];
        if (*text == '\0')
            continue;
        struct byi_name *entry = byi_names_add(&o->names, text);
        if (!entry) {
            byi_o_fail(o, BYOC_EPARSE, "its output '%s' is defined twice",
                       text);
            return;
        }
        entry->id = o->out[i];
        if (entry->id == BYI_NO_ID)
            entry->producer = byi_arena_printf(
                o->scratch,
                "node %s: operator %s (domain ai.onnx, opset %lld) is not "
                "supported",
                o->name, o->row->type, (long long)o->opset);
    }
}

static enum byoc_status convert_node(struct byi_import *o, size_t index,
                                     const Onnx__NodeProto *node)
{
    begin_node(o, index, node);
    if (!o->row)
        byi_o_refuse(o, NULL);
    if (byi_o_ok(o) && arity_ok(o))
        read_operands(o);
    if (byi_o_ok(o))
        o->row->convert(o);
    if (byi_o_ok(o))
        check_attributes(o);
    if (byi_o_ok(o))
        bind_outputs(o);
    return o->status;
}

/* --- the whole ------------------------------------------------------------ */

static enum byoc_status add_result(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file.model->graph;
    const size_t n = graph->n_output;
    byi_id *ids = byi_arena_calloc(o->scratch, n + 1, sizeof *ids);

    if (n == 0 || n > BYI_MAX_ARGS)
        return byi_fail(&o->err, BYOC_EPARSE,
                        "the graph has %zu outputs, expected 1 to %d", n,
                        BYI_MAX_ARGS);
    o->sources = byi_sources_none();
    for (size_t i = 0; i < n; i++) {
        const char *name = text_or(graph->output[i]->name, "");
        ids[i] = read_name(o, name, "the graph's outputs");
        if (!byi_o_ok(o))
            return o->status;
        BYI_PUSH(&o->f->result_names, byi_arena_str(o->m->arena, name));
    }
    o->f->result =
        n == 1 ? ids[0]
               : byi_add_tuple(o->m, o->f, ids, (uint32_t)n, o->sources);
    return BYOC_OK;
}

static enum byoc_status check_model(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file.model->graph;
    const int64_t opset = opset_of(o, "");

    if (graph->n_node > UINT32_MAX / 16)
        return byi_fail(&o->err, BYOC_ELIMIT, "the graph has %zu nodes",
                        graph->n_node);
    if (opset != 0 && (opset < MIN_OPSET || opset > MAX_OPSET))
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "the model uses opset %lld of ai.onnx, opsets %d to "
                        "%d are supported; export it with one of these",
                        (long long)opset, MIN_OPSET, MAX_OPSET);
    return BYOC_OK;
}

static size_t count_names(const Onnx__GraphProto *graph)
{
    size_t n = graph->n_input + graph->n_initializer;

    for (size_t i = 0; i < graph->n_node; i++)
        n += graph->node[i]->n_output;
    return n;
}

static enum byoc_status import(struct byi_import *o, const char *path)
{
    BYI_TRY(byi_onnx_open(path, o->m->arena, &o->file, &o->err));
    const Onnx__GraphProto *graph = o->file.model->graph;
    BYI_TRY(check_model(o));
    o->names = byi_names_new(o->scratch, count_names(graph));
    const uint32_t main = byi_func_new(o->m, "main");
    o->f = o->m->funcs.at[main];
    o->sources = byi_sources_none();
    BYI_TRY(add_initializers(o));
    BYI_TRY(add_inputs(o));
    for (size_t i = 0; i < graph->n_node; i++)
        BYI_TRY(convert_node(o, i, graph->node[i]));
    return add_result(o);
}

enum byoc_status byi_onnx_import(const char *path,
                                 const struct byi_onnx_params *params,
                                 struct byi_module **module,
                                 struct byoc_error *err)
{
    static const struct byi_onnx_params defaults;
    struct byi_import o = {
        .params = params ? params : &defaults,
        .m = byi_module_new(),
        .scratch = byi_arena_new(),
    };

    *module = NULL;
    const enum byoc_status status = import(&o, path);
    byi_onnx_close(&o.file);
    byi_vec_free(o.items.at);
    byi_arena_free(&o.scratch);
    if (status != BYOC_OK) {
        byi_module_free(&o.m);
        if (err)
            *err = o.err;
        return status;
    }
    *module = o.m;
    return BYOC_OK;
}
