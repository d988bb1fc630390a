/* SPDX-License-Identifier: Apache-2.0 */
/* wrap.c: the forms of a case: its node with operands of open sizes or with
 * constant operands, at another opset of the same row of the importer, or
 * inside the branches of an If, the body of a Loop or a function of the model.
 */
#include "fuzz.h"

#include "frontend_onnx/import.h"

#include <string.h>

int64_t wrap_opset(uint64_t seed)
{
    const char *domain = op_now->domain ? op_now->domain : BYI_ONNX;
    int64_t low = op_now->opset, high = low;
    const struct byi_onnx_op *row = byi_onnx_find(domain, op_now->op, low);

    if (op_now->domain || seed % 3 != 0)
        return low;
    while (low > 7 && byi_onnx_find(domain, op_now->op, low - 1) == row)
        low--;
    while (high < 26 && byi_onnx_find(domain, op_now->op, high + 1) == row)
        high++;
    return low + (int64_t)(seed / 3 % (uint64_t)(high - low + 1));
}

void wrap_operands(struct draw *d, uint64_t seed)
{
    d->open = seed % 4 == 1 || seed % 16 == 3;
    d->partly_open = d->open && seed / 32 % 2;
    d->weights = d->weights || seed % 4 == 2 || (d->open && seed / 16 % 2);
    d->all_constant = seed % 8 == 6;
    d->compiled = seed % 4 != 0;
}

/* --- bodies --------------------------------------------------------------- */

/* Returns the names of the node's results, each after `prefix`, separated by
 * blanks. */
static const char *prefixed(struct draw *d, const char *prefix)
{
    const char *text = "";

    for (size_t i = 0; i < d->node->n_output; i++)
        text = byi_arena_printf(d->arena, "%s%s%s%s", text, i ? " " : "",
                                prefix, d->node->output[i]);
    return text;
}

/* Add a copy of the node, whose results are called PREFIXy0 and so on, to a
 * body. */
static void add_copy(struct draw *d, Onnx__GraphProto *body,
                     const Onnx__NodeProto *node, const char *prefix)
{
    draw_node(d, body, node->op_type, "", prefixed(d, prefix));
    d->at->domain = node->domain;
    d->at->n_input = node->n_input;
    d->at->input = node->input;
    d->at->n_attribute = node->n_attribute;
    d->at->attribute = node->attribute;
}

/* Make `outer` the graph's node, which contains `inner`. The case's node stays
 * `inner`, for explained.c. */
static void place(struct draw *d, Onnx__NodeProto *outer,
                  Onnx__NodeProto *inner)
{
    outer->n_output = inner->n_output;
    outer->output = inner->output;
    d->node = outer;
    draw_place_node(d);
    d->node = inner;
}

/* Add an operand that the case's node does not read. Returns its name. */
static const char *add_scalar(struct draw *d, enum byoc_dtype dtype, int64_t v)
{
    draw_ints(d, dtype, -1, &v, d->all_constant);
    return d->node->input[--d->node->n_input];
}

static void wrap_if(struct draw *d)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    Onnx__NodeProto *inner = d->node, *outer = draw_new_node(d, "If");

    outer->n_input = 1;
    outer->input = byi_arena_calloc(d->arena, 1, sizeof *outer->input);
    outer->input[0] =
        (char *)(uintptr_t)add_scalar(d, BYOC_BOOL, draw_int(d, 0, 1));
    for (int i = 0; i < 2; i++) {
        const char *prefix = i == 0 ? "then_" : "else_";
        d->node = outer;
        Onnx__GraphProto *body = draw_body(d, names[i], "", "");
        d->node = inner;
        draw_body_results(d, body, prefixed(d, prefix));
        add_copy(d, body, inner, prefix);
    }
    place(d, outer, inner);
}

/* A loop without states, whose scan outputs are the node's results. */
static void wrap_loop(struct draw *d)
{
    Onnx__NodeProto *inner = d->node, *outer = draw_new_node(d, "Loop");
    const char *results =
        byi_arena_printf(d->arena, "go_on %s", prefixed(d, "row_"));

    outer->n_input = 2;
    outer->input = byi_arena_calloc(d->arena, 2, sizeof *outer->input);
    outer->input[0] =
        (char *)(uintptr_t)add_scalar(d, BYOC_I64, draw_int(d, 1, 3));
    outer->input[1] = byi_arena_str(d->arena, "");
    d->node = outer;
    Onnx__GraphProto *body = draw_body(d, "body", "step go", results);
    d->node = inner;
    draw_body_type(d, body, 0, BYOC_I64, 0);
    draw_body_type(d, body, 1, BYOC_BOOL, 0);
    draw_node(d, body, "Identity", "go", "go_on");
    add_copy(d, body, inner, "row_");
    place(d, outer, inner);
}

/* --- functions ------------------------------------------------------------ */

/* Make the node's attributes parameters of the function. */
static void refer_to_attributes(struct draw *d, Onnx__FunctionProto *f,
                                Onnx__NodeProto *inner, Onnx__NodeProto *call)
{
    static const Onnx__AttributeProto proto = ONNX__ATTRIBUTE_PROTO__INIT;
    const size_t n = inner->n_attribute;

    call->n_attribute = f->n_attribute = n;
    call->attribute = inner->attribute;
    f->attribute = byi_arena_calloc(d->arena, n + 1, sizeof *f->attribute);
    inner->attribute = byi_arena_calloc(d->arena, n + 1, sizeof *f->attribute);
    for (size_t i = 0; i < n; i++) {
        Onnx__AttributeProto *a =
            byi_arena_copy(d->arena, &proto, sizeof proto);
        a->name = a->ref_attr_name = f->attribute[i] = call->attribute[i]->name;
        a->has_type = 1;
        a->type = call->attribute[i]->type;
        inner->attribute[i] = a;
    }
}

/* A function of the model, whose inputs and outputs are the node's. */
static void wrap_function(struct draw *d)
{
    static const Onnx__FunctionProto proto = ONNX__FUNCTION_PROTO__INIT;
    Onnx__FunctionProto *f = byi_arena_copy(d->arena, &proto, sizeof proto);
    Onnx__NodeProto *call = d->node, *inner = draw_new_node(d, call->op_type);

    *inner = *call;
    f->name = byi_arena_str(d->arena, "Wrapped");
    f->domain = byi_arena_str(d->arena, "fuzz");
    f->n_opset_import = d->model->n_opset_import;
    f->opset_import = d->model->opset_import;
    f->input = byi_arena_calloc(d->arena, d->n + 1, sizeof *f->input);
    for (size_t i = 0; i < inner->n_input; i++)
        if (inner->input[i][0] != '\0')
            f->input[f->n_input++] = inner->input[i];
    f->n_output = inner->n_output;
    f->output = inner->output;
    f->n_node = 1;
    f->node = byi_arena_copy(d->arena, &inner, sizeof inner);
    Onnx__NodeProto *outer = draw_new_node(d, f->name);
    outer->domain = f->domain;
    outer->n_input = f->n_input;
    outer->input = f->input;
    if (draw_chance(d, 60))
        refer_to_attributes(d, f, inner, outer);
    d->model->n_functions = 1;
    d->model->functions = byi_arena_copy(d->arena, &f, sizeof f);
    draw_opset(d, "fuzz", 1);
    place(d, outer, call);
}

/* Whether the node has bodies. They may read values of the enclosing graph,
 * which they cannot inside a function. */
static bool has_body(const struct draw *d)
{
    for (size_t i = 0; i < d->node->n_attribute; i++)
        if (d->node->attribute[i]->g)
            return true;
    return false;
}

void wrap_node(struct draw *d, uint64_t seed)
{
    static void (*const wraps[])(struct draw *) = {wrap_if, wrap_loop,
                                                   wrap_function};
    const uint64_t n = has_body(d) ? 2 : 3;

    if (seed % 4 == 3 && !d->placed && d->graph->n_node == 0 &&
        d->n + 1 < MAX_OPERANDS)
        wraps[seed / 16 % n](d);
}
