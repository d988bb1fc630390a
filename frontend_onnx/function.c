/* SPDX-License-Identifier: Apache-2.0 */
/* function.c: inlines calls of model-local functions (FunctionProto), with
 * sources "CALL/NODE". A function has its own names and opsets; its attributes
 * may refer to attributes of the call.
 *
 * A model-local function takes precedence over the importer's operator of the
 * same name: its body defines the operator in this model. Inlining recurses
 * once per nested call; the depth is limited and recursive functions are
 * refused.
 */
#include "frontend_onnx/import.h"

#include <string.h>

enum {
    MAX_DEPTH = 32,
    MAX_EXPANDED = 1 << 19,     /* nodes of a model, all calls inlined */
    MAX_MIB = 512,              /* of memory that inlining takes */
    MAX_NAMES_MIB = 64,         /* a compile takes 8 times as much for names */
    FIELD_ATTRIBUTE_PROTO = 11, /* of FunctionProto, from ONNX 1.13 on */
};

/* --- lookup --------------------------------------------------------------- */

static const char *key_of(struct byi_import *o, const char *domain,
                          const char *name)
{
    return byi_arena_printf(o->scratch, "%s\n%s", byi_onnx_domain(domain),
                            byi_text_or(name, ""));
}

enum byoc_status byi_functions_open(struct byi_import *o)
{
    const Onnx__ModelProto *model = o->file->model;

    if (model->n_functions == 0)
        return BYOC_OK;
    o->functions = byi_arena_alloc(o->scratch, sizeof *o->functions);
    *o->functions = (struct byi_functions){.names = byi_names_new(o->scratch)};
    for (size_t i = 0; i < model->n_functions; i++) {
        const Onnx__FunctionProto *f = model->functions[i];
        struct byi_name *entry =
            byi_names_add(&o->functions->names, key_of(o, f->domain, f->name));
        if (!entry)
            return byi_fail(
                &o->err, BYOC_EPARSE,
                "function %s of domain %s is defined twice, expected once",
                byi_text_or(f->name, "(none)"), byi_onnx_domain(f->domain));
        entry->index = (uint32_t)i;
    }
    return BYOC_OK;
}

const Onnx__FunctionProto *byi_function_find(struct byi_import *o,
                                             const Onnx__NodeProto *node)
{
    if (!o->functions)
        return NULL;
    const struct byi_name *entry = byi_names_find(
        &o->functions->names, key_of(o, node->domain, node->op_type));
    return entry ? o->file->model->functions[entry->index] : NULL;
}

/* --- attributes ----------------------------------------------------------- */

static const Onnx__AttributeProto *find_attribute(
    size_t n, Onnx__AttributeProto *const *list, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(byi_text_or(list[i]->name, ""), name) == 0)
            return list[i];
    return NULL;
}

/* Read the defaults of a function's attributes (attribute_proto), a field that
 * this program's onnx.proto may not have. */
static void read_defaults(struct byi_import *o, struct byi_expansion *e)
{
    const ProtobufCMessage *message = &e->function->base;

    e->defaults = byi_arena_calloc(o->scratch, message->n_unknown_fields + 1,
                                   sizeof(Onnx__AttributeProto *));
    for (unsigned i = 0; i < message->n_unknown_fields && byi_import_ok(o);
         i++) {
        const ProtobufCMessageUnknownField *f = &message->unknown_fields[i];
        if (f->tag != FIELD_ATTRIBUTE_PROTO)
            continue;
        o->status = byi_onnx_attribute(o->file, f->data, f->len,
                                       &e->defaults[e->n_defaults], &o->err);
        e->n_defaults += byi_import_ok(o);
    }
}

/* Returns a copy of the call's attribute that `a` refers to, with the name of
 * a; NULL if the call omits it and it has no default. */
static Onnx__AttributeProto *resolve_attribute(struct byi_import *o,
                                               const Onnx__AttributeProto *a)
{
    const struct byi_expansion *e = o->expansion;
    const Onnx__NodeProto *call = e->node;
    const Onnx__AttributeProto *found =
        find_attribute(call->n_attribute, call->attribute, a->ref_attr_name);

    if (!found)
        found = find_attribute(e->n_defaults, e->defaults, a->ref_attr_name);
    if (!found)
        return NULL;
    if (found->g || found->n_graphs)
        byi_import_refuse(o,
                          "attribute '%s' passes a graph to a function, "
                          "expected another kind of attribute",
                          byi_text_or(a->name, ""));
    Onnx__AttributeProto *copy =
        byi_arena_copy(o->scratch, found, sizeof *found);
    copy->name = a->name;
    return copy;
}

const Onnx__NodeProto *byi_function_node(struct byi_import *o,
                                         const Onnx__NodeProto *node)
{
    const Onnx__AttributeProto *reference = NULL;

    for (size_t i = 0; i < node->n_attribute; i++)
        if (*byi_text_or(node->attribute[i]->ref_attr_name, "") != '\0')
            reference = node->attribute[i];
    if (!reference)
        return node;
    if (!o->expansion) {
        byi_import_fail(o, BYOC_EPARSE,
                        "attribute '%s' has ref_attr_name '%s', expected none "
                        "outside of functions",
                        byi_text_or(reference->name, ""),
                        reference->ref_attr_name);
        return node;
    }
    Onnx__NodeProto *copy = byi_arena_copy(o->scratch, node, sizeof *node);
    copy->attribute = byi_arena_calloc(o->scratch, node->n_attribute,
                                       sizeof *copy->attribute);
    copy->n_attribute = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = node->attribute[i];
        if (*byi_text_or(a->ref_attr_name, "") != '\0')
            a = resolve_attribute(o, a);
        if (a)
            copy->attribute[copy->n_attribute++] = a;
    }
    return copy;
}

/* --- inlining ------------------------------------------------------------- */

static uint64_t memory_of(const struct byi_import *o)
{
    return byi_arena_bytes(o->m->arena) + byi_arena_bytes(o->scratch);
}

void byi_function_check_limits(struct byi_import *o)
{
    o->functions->name_bytes += strlen(o->name);
    if (o->functions->name_bytes > (uint64_t)MAX_NAMES_MIB << 20)
        byi_import_fail(o, BYOC_ELIMIT,
                        "the names of nodes in the model's functions, with "
                        "those of the calls, take %llu MiB, expected at most "
                        "%d MiB in all; give nodes shorter names",
                        (unsigned long long)(o->functions->name_bytes >> 20),
                        MAX_NAMES_MIB);
    const uint64_t bytes =
        o->functions->bytes + memory_of(o) - o->expansion->before;

    if (bytes > (uint64_t)MAX_MIB << 20)
        byi_import_fail(o, BYOC_ELIMIT,
                        "the calls of the model's functions expand to %llu "
                        "MiB, expected at most %d MiB; nest fewer calls",
                        (unsigned long long)(bytes >> 20), MAX_MIB);
}

static void check_call(struct byi_import *o, const struct byi_expansion *e)
{
    const Onnx__FunctionProto *f = e->function;
    const Onnx__NodeProto *call = e->node;

    for (const struct byi_expansion *up = o->expansion; up; up = up->outer)
        if (up->function == f)
            byi_import_refuse(o, "the model defines it as a function that "
                                 "calls itself, expected no recursion");
    if (e->depth > MAX_DEPTH)
        byi_import_fail(o, BYOC_ELIMIT,
                        "found functions nested in %u levels, expected at most "
                        "%d; inline some of them",
                        e->depth, MAX_DEPTH);
    if (o->m->sources.n > MAX_EXPANDED)
        byi_import_fail(o, BYOC_ELIMIT,
                        "with its functions inlined the model has %u nodes, "
                        "expected at most %d; nest fewer calls",
                        o->m->sources.n, MAX_EXPANDED);
    if (call->n_input > f->n_input || call->n_output > f->n_output)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %zu inputs and %zu outputs, expected at most "
                        "%zu and %zu as in its function",
                        call->n_input, call->n_output, f->n_input, f->n_output);
    for (size_t i = 0; i < call->n_attribute; i++) {
        const char *name = byi_text_or(call->attribute[i]->name, "");
        bool known = find_attribute(e->n_defaults, e->defaults, name) != NULL;
        for (size_t k = 0; k < f->n_attribute; k++)
            known |= strcmp(f->attribute[k], name) == 0;
        if (!known)
            byi_import_refuse(
                o, "found attribute '%s', expected one that its function has",
                name);
    }
}

/* Make a graph of the function, in the scratch arena, without inputs: the
 * caller binds the names of the function's inputs to the call's operands. */
static Onnx__GraphProto *make_graph(struct byi_import *o,
                                    const Onnx__FunctionProto *f)
{
    static const Onnx__GraphProto empty_graph = ONNX__GRAPH_PROTO__INIT;
    static const Onnx__ValueInfoProto empty_value =
        ONNX__VALUE_INFO_PROTO__INIT;
    Onnx__GraphProto *graph =
        byi_arena_copy(o->scratch, &empty_graph, sizeof empty_graph);
    const size_t n = o->node->n_output; /* only the outputs of the call */

    graph->name = f->name;
    graph->n_node = f->n_node;
    graph->node = f->node;
    graph->output = byi_arena_calloc(o->scratch, n + 1, sizeof *graph->output);
    for (size_t i = 0; i < n; i++) {
        Onnx__ValueInfoProto *v =
            byi_arena_copy(o->scratch, &empty_value, sizeof empty_value);
        v->name = f->output[i];
        graph->output[i] = v;
    }
    graph->n_output = n;
    return graph;
}

void byi_function_expand(struct byi_import *o, const Onnx__FunctionProto *f,
                         uint32_t source)
{
    struct byi_expansion e = {
        .function = f,
        .node = o->node,
        .name = o->name,
        .source = source,
        .depth = o->expansion ? o->expansion->depth + 1 : 1,
        .before = o->expansion ? o->expansion->before : memory_of(o),
        .outer = o->expansion,
    };

    read_defaults(o, &e);
    check_call(o, &e);
    if (!byi_import_ok(o))
        return;
    struct byi_scope scope = {.graph = make_graph(o, f)};
    o->status = byi_scope_open(o, &scope);
    for (uint32_t i = 0; i < f->n_input && byi_import_ok(o); i++) {
        if (!byi_names_bind(&scope.names, f->input[i], byi_import_in(o, i))) {
            byi_import_fail(o, BYOC_EPARSE,
                            "its function has two inputs '%s', expected one",
                            f->input[i]);
            return;
        }
    }
    byi_import_inline_scope(o, &scope, &e, o->out);
    if (!o->expansion)
        o->functions->bytes += memory_of(o) - e.before;
}
