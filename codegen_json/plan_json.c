/* SPDX-License-Identifier: Apache-2.0 */
/* plan_json.c: prints a plan (docs/plan.md): one line for each value and each
 * step, with members always in the same order.
 */
#include "plan.h"
#include "core/base/json_write.h"

static const char *const kind_names[] = {
    [BYI_P_INPUT] = "input",   [BYI_P_CONST] = "const", [BYI_P_TEMP] = "temp",
    [BYI_P_OUTPUT] = "output", [BYI_P_ALIAS] = "alias",
};

/* The JSON member that has a value's index, by kind. */
static const char *const index_names[] = {
    [BYI_P_INPUT] = "input",   [BYI_P_CONST] = "const", [BYI_P_TEMP] = NULL,
    [BYI_P_OUTPUT] = "output", [BYI_P_ALIAS] = "of",
};

void byi_list_type_print(const struct byi_type *type, struct byi_text *json)
{
    uint32_t n = 0;
    for (; byi_type_is_list(type); type = type->fields[0], n++)
        byi_text_addf(json, "\"dtype\": \"%s\", \"of\": {",
                      type->kind == BYI_SEQ ? "sequence" : "optional");
    byi_text_addf(
        json, "\"dtype\": \"%s\", \"shape\": ", byoc_dtype_name(type->dtype));
    if (type->kind != BYI_TENSOR)
        byi_text_addf(json, "\"%s\"",
                      type->kind == BYI_ANY_TENSOR ? "any" : "none");
    for (uint32_t i = 0; type->kind == BYI_TENSOR && i < type->rank; i++)
        byi_text_addf(json, "%s%lld", i ? ", " : "[",
                      type->dims[i] == BYI_ANY_DIM ? -1LL
                                                   : (long long)type->dims[i]);
    if (type->kind == BYI_TENSOR)
        byi_text_addf(json, type->rank ? "]" : "[]");
    while (n-- > 0)
        byi_text_put(json, "}");
}

static void print_type(const struct byi_module *m, const struct byi_type *type,
                       struct byi_text *json)
{
    if (byi_type_is_list(type)) {
        byi_list_type_print(type, json);
        return;
    }
    if (type->kind == BYI_FUNC) {
        byi_text_put(json, "\"dtype\": \"function\"");
        return;
    }
    byi_text_addf(json, "\"dtype\": \"%s\", \"shape\": [",
                  byoc_dtype_name(type->dtype));
    for (uint32_t i = 0; i < type->rank; i++) {
        byi_text_put(json, i ? ", " : "");
        if (BYI_IS_SYMBOL(type->dims[i]))
            byi_json_quote(json, byi_symbol_name(m, type->dims[i]));
        else
            byi_text_int(json, type->dims[i]);
    }
    byi_text_put(json, "]");
}

static void print_value(const struct byi_module *m,
                        const struct byi_planned_value *v,
                        struct byi_text *json)
{
    byi_text_put(json, "{");
    print_type(m, v->type, json);
    byi_text_addf(json, ", \"kind\": \"%s\"", kind_names[v->kind]);
    if (index_names[v->kind])
        byi_text_addf(json, ", \"%s\": %u", index_names[v->kind], v->index);
    if (v->kind == BYI_P_TEMP && v->fixed)
        byi_text_addf(json, ", \"offset\": %llu",
                      (unsigned long long)v->offset);
    byi_text_put(json, "}");
}

static void print_list(const char *name, const uint32_t *at, uint32_t n,
                       struct byi_text *json)
{
    byi_text_addf(json, "\"%s\": [", name);
    for (uint32_t i = 0; i < n; i++) {
        byi_text_put(json, i ? ", " : "");
        byi_text_int(json, at[i]);
    }
    byi_text_put(json, "]");
}

/* The first member of a step names its kind. */
static const struct {
    const char *key;
    /* the member's value; BOTH: callee and else_func; COUNT: number of operands
     * minus one */
    enum { NAME, CALLEE, BOTH, COUNT } value;
} step_names[] = {
    [BYI_P_OP] = {"op", NAME},           [BYI_P_REGION] = {"region", CALLEE},
    [BYI_P_KERNEL] = {"kernel", CALLEE}, [BYI_P_CALL] = {"call", CALLEE},
    [BYI_P_IF] = {"if", BOTH},           [BYI_P_CLOSURE] = {"closure", CALLEE},
    [BYI_P_APPLY] = {"apply", COUNT},    [BYI_P_CHOOSE] = {"choose", COUNT},
};

static void print_attrs(const struct byi_node *node, struct byi_text *json)
{
    if (node->attrs->n == 0)
        return;
    struct byi_arena *arena = byi_arena_new();
    byi_text_put(json, ", \"attrs\": ");
    byi_json_print(byi_attrs_to_json(arena, node->attrs), json);
    byi_arena_free(&arena);
}

static void print_epilogue(const struct byi_func *group, struct byi_text *json)
{
    const byi_id head = byi_epilogue_head(group);
    byi_id operand;
    byi_text_put(json, ", \"epilogue\": [");
    for (byi_id id = head; id != group->result;) {
        byi_text_put(json, id == head ? "" : ", ");
        id = byi_epilogue_next(group, head, id, &operand);
        const struct byi_node *node = &group->nodes.at[id];
        byi_text_addf(json, "{\"op\": \"%s\"", byi_op(node->op)->name);
        print_attrs(node, json);
        byi_text_put(json, "}");
    }
    byi_text_put(json, "]");
}

static void print_step(const struct byi_module *m,
                       const struct byi_planned_func *f,
                       const struct byi_planned_step *step,
                       struct byi_text *json)
{
    const struct byi_node *node =
        step->group ? &step->group->nodes.at[byi_epilogue_head(step->group)]
                    : step->node;
    byi_text_addf(json, "{\"%s\": ", step_names[step->kind].key);
    switch (step_names[step->kind].value) {
    case NAME:
        byi_text_addf(json, "\"%s\", ", byi_op(node->op)->name);
        break;
    case CALLEE:
        byi_text_addf(json, "%u, ", step->callee);
        break;
    case BOTH:
        byi_text_addf(json, "[%u, %u], ", step->callee, step->else_func);
        break;
    case COUNT:
        byi_text_addf(json, "%u, ", step->n_in - 1);
        break;
    }
    print_list("in", f->flat.at + step->in, step->n_in, json);
    byi_text_put(json, ", ");
    print_list("out", f->flat.at + step->out, step->n_out, json);
    if (step->kind == BYI_P_OP)
        print_attrs(node, json);
    if (step->group)
        print_epilogue(step->group, json);
    node = step->node;
    byi_text_put(json, ", \"source\": [");
    for (uint32_t i = 0; i < node->sources->n; i++) {
        byi_text_put(json, i ? ", " : "");
        byi_json_quote(json, m->sources.at[node->sources->at[i]].name);
    }
    byi_text_put(json, "]}");
}

void byi_plan_print_func(const struct byi_module *m,
                         const struct byi_planned_func *f,
                         struct byi_text *json)
{
    byi_text_put(json, "{\"name\": ");
    byi_json_quote(json, f->name);
    byi_text_put(json, ", \"values\": [");
    for (uint32_t i = 0; i < f->values.n; i++) {
        byi_text_put(json, i ? ",\n" : "\n");
        print_value(m, &f->values.at[i], json);
    }
    byi_text_put(json, "],\n");
    print_list("inputs", f->inputs.at, f->inputs.n, json);
    byi_text_put(json, ", ");
    print_list("outputs", f->outputs.at, f->outputs.n, json);
    byi_text_put(json, ", \"steps\": [");
    for (uint32_t i = 0; i < f->steps.n; i++) {
        byi_text_put(json, i ? ",\n" : "\n");
        print_step(m, f, &f->steps.at[i], json);
    }
    byi_text_addf(json, "],\n\"arena\": %llu}", (unsigned long long)f->arena);
}

void byi_plan_print_consts(const struct byi_module *m,
                           const struct byi_plan *plan, struct byi_text *json)
{
    byi_text_put(json, "\"consts\": [");
    for (uint32_t i = 0; i < plan->consts.n; i++) {
        const struct byi_placed_const *p = &plan->consts.at[i];
        const struct byi_const *c = &m->consts.at[p->constant];
        byi_text_addf(json, "%s\n{\"offset\": %llu, \"bytes\": %llu, ",
                      i ? "," : "", (unsigned long long)p->offset,
                      (unsigned long long)p->bytes);
        print_type(m, c->type, json);
        if (p->stored)
            byi_text_addf(json, ", \"stored\": \"%s\"",
                          byoc_dtype_name(p->stored));
        if (p->stored == BYOC_I8)
            byi_text_addf(json, ", \"axis\": %u", p->axis);
        byi_text_put(json, "}");
    }
    byi_text_put(json, "]");
}
