/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c: plans a function as a list of steps over flat values, which the
 * runtime executes (docs/plan.md). Resolves tuples, inlines calls of function
 * literals, turns reshapes into aliases, and writes results directly to the
 * outputs. A function that is known at compile time and only called gets no
 * value.
 */
#include "plan.h"

#include <assert.h>

enum { MAX_STEPS = 16 << 20 /* of one function */ };

struct closure;

/* The values of a node: a range of byi_planned_func.flat. */
struct value_range {
    uint32_t first, n;
    struct closure *known; /* a known function, which has no values yet */
};

/* A known function with the values of its captures. */
struct closure {
    uint32_t func;  /* of the module */
    uint32_t value; /* 1 + its value; 0: it has no value yet */
    const struct byi_node *node;
    const struct value_range *captures;
    uint32_t pos; /* next capture that find_missing_value looks at */
};

/* A function body being planned; the bodies below it on the stack continue with
 * its result. */
struct byi_plan_walk {
    const struct byi_func *f;
    struct value_range *range_of; /* for each node: its values */
    byi_id pos;                   /* the next node */
    byi_id call;                  /* the waiting call in the body below */
};

static const char *node_name(const struct byi_planner *b,
                             const struct byi_node *node)
{
    if (node->sources->n == 0)
        return "(no source)";
    return b->m->sources.at[node->sources->at[0]].name;
}

/* --- values ------------------------------------------------------------- */

static uint32_t add_value(struct byi_planner *b,
                          enum byi_planned_value_kind kind,
                          const struct byi_type *type, uint32_t index)
{
    struct byi_planned_value v = {.kind = kind,
                                  .index = index,
                                  .type = type,
                                  .fixed = byi_type_is_static(type)};
    BYI_PUSH(&b->out.values, v);
    return b->out.values.n - 1;
}

/* Refuse an input of the model that is a function. */
static enum byoc_status check_leaf(struct byi_planner *b,
                                   const struct byi_type *type,
                                   enum byi_planned_value_kind kind,
                                   const char *name)
{
    if (type->kind == BYI_FUNC && kind == BYI_P_INPUT && b->out_index == 0)
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "@%s: found an input that is a function, expected a "
                        "tensor, sequence or optional; choose another "
                        "--function",
                        name);
    return BYOC_OK;
}

/* Add a value for `type`, or for every type in it that is not a tuple, from
 * left to right, to the flat list, and set *range to them. `name` is for
 * messages. */
static enum byoc_status push_leaves(struct byi_planner *b,
                                    const struct byi_type *type,
                                    enum byi_planned_value_kind kind,
                                    const char *name, struct value_range *range)
{
    *range = (struct value_range){.first = b->out.flat.n};
    b->types.n = 0;
    BYI_PUSH(&b->types, type);
    while (b->types.n > 0) {
        const struct byi_type *t = b->types.at[--b->types.n];
        if (t->kind == BYI_TUPLE) {
            for (uint32_t i = t->n_fields; i-- > 0;)
                BYI_PUSH(&b->types, t->fields[i]);
            continue;
        }
        BYI_TRY(check_leaf(b, t, kind, name));
        uint32_t index = kind == BYI_P_INPUT ? b->out.inputs.n : 0;
        uint32_t v = add_value(b, kind, t, index);
        if (kind == BYI_P_INPUT)
            BYI_PUSH(&b->out.inputs, v);
        BYI_PUSH(&b->out.flat, v);
    }
    range->n = b->out.flat.n - range->first;
    return BYOC_OK;
}

/* The value, in the function being planned, of a constant of the module. */
static uint32_t const_value(struct byi_planner *b, uint32_t constant)
{
    if (b->const_seen[constant] != b->out_index + 1) {
        b->const_seen[constant] = b->out_index + 1;
        b->const_at[constant] =
            add_value(b, BYI_P_CONST, b->m->consts.at[constant].type,
                      byi_plan_const(b, constant));
    }
    return b->const_at[constant];
}

/* Make a value of node `id` if it is a constant. This happens at its first
 * reader: its position among the nodes has no meaning (docs/text.md), and must
 * not affect the plan. */
static void visit_const(struct byi_planner *b, const struct byi_plan_walk *w,
                        byi_id id)
{
    const struct byi_node *node = &w->f->nodes.at[id];
    struct value_range *range = &w->range_of[id];
    if (node->kind != BYI_CONST || range->n)
        return;
    const uint32_t value = const_value(b, node->index);
    range->first = b->out.flat.n;
    range->n = 1;
    BYI_PUSH(&b->out.flat, value);
}

static enum byoc_status add_step(struct byi_planner *b,
                                 enum byi_planned_step_kind kind,
                                 const struct byi_node *node, uint32_t callee,
                                 struct value_range in, struct value_range out)
{
    if (b->out.steps.n >= MAX_STEPS)
        return byi_fail(
            b->err, BYOC_ELIMIT,
            "%s: found too many steps in the plan of %s, expected at most %d",
            node_name(b, node), b->out.name, MAX_STEPS);
    struct byi_planned_step step = {.kind = kind,
                                    .node = node,
                                    .callee = callee,
                                    .in = in.first,
                                    .n_in = in.n,
                                    .out = out.first,
                                    .n_out = out.n};
    BYI_PUSH(&b->out.steps, step);
    return BYOC_OK;
}

/* --- known functions as values ------------------------------------------- */

/* 1 + the function that capture i of `func` always is, or 0. The captures of
 * that function are passed instead of a value. */
static uint32_t known_capture(const struct byi_planner *b, uint32_t func,
                              uint32_t i)
{
    const uint32_t *known = b->captures[func].known;
    return known ? known[i] : 0;
}

/* Append the values of a range of the flat list to the flat list. */
static void append_range(struct byi_planner *b, const struct value_range *range)
{
    for (uint32_t k = 0; k < range->n; k++) {
        uint32_t v = b->out.flat.at[range->first + k];
        BYI_PUSH(&b->out.flat, v);
    }
}

/* Append the captures of `c` to the flat list; captured functions that need a
 * value already have one. Recursion is bounded by byi_planned_captures.depth.
 */
static void append_captures(struct byi_planner *b, const struct closure *c)
{
    const struct byi_func *f = b->m->funcs.at[c->func];
    for (uint32_t i = 0; i < f->n_captures; i++) {
        const struct value_range *range = &c->captures[i];
        if (!range->known)
            append_range(b, range);
        else if (known_capture(b, c->func, i))
            append_captures(b, range->known);
        else
            BYI_PUSH(&b->out.flat, range->known->value - 1);
    }
}

/* The next capture of `c`, from c->pos on, that is a known function and still
 * needs a value, or NULL. */
static struct closure *find_missing_value(const struct byi_planner *b,
                                          struct closure *c)
{
    const struct byi_func *f = b->m->funcs.at[c->func];
    for (; c->pos < f->n_captures; c->pos++) {
        struct closure *inner = c->captures[c->pos].known;
        if (!inner)
            continue;
        if (known_capture(b, c->func, c->pos))
            inner = find_missing_value(b, inner);
        else if (inner->value)
            inner = NULL;
        if (inner)
            return inner;
    }
    c->pos = 0; /* all captures have values; a later search starts again */
    return NULL;
}

/* Add a step that makes a function value of `c`, whose captures have values. */
static enum byoc_status make_closure(struct byi_planner *b, struct closure *c)
{
    static const struct byi_type function_type = {.kind = BYI_FUNC};
    struct value_range in = {.first = b->out.flat.n}, out = {.n = 1};
    append_captures(b, c);
    in.n = b->out.flat.n - in.first;
    out.first = b->out.flat.n;
    c->value = add_value(b, BYI_P_TEMP, &function_type, 0) + 1;
    BYI_PUSH(&b->out.flat, c->value - 1);
    return add_step(b, BYI_P_CLOSURE, c->node, byi_plan_func(b, c->func), in,
                    out);
}

typedef BYI_VEC(struct closure *) closures;

/* Make values of the functions on the stack `open`, each after the functions
 * that it captures. The search is not recursive, since captures may be nested
 * as deeply as the text form allows. */
static enum byoc_status make_needed(struct byi_planner *b, closures *open)
{
    while (open->n > 0) {
        struct closure *c = open->at[open->n - 1];
        struct closure *inner = c->value ? NULL : find_missing_value(b, c);
        if (inner) {
            BYI_PUSH(open, inner);
            continue;
        }
        if (!c->value)
            BYI_TRY(make_closure(b, c));
        open->n--;
    }
    return BYOC_OK;
}

/* Make values of known functions: of those that `c` captures and, if `itself`,
 * of c. */
static enum byoc_status make_values(struct byi_planner *b, struct closure *c,
                                    bool itself)
{
    closures open = {0};
    enum byoc_status status = BYOC_OK;
    struct closure *next = itself ? c : find_missing_value(b, c);
    while (next && status == BYOC_OK && !(itself && c->value)) {
        BYI_PUSH(&open, next);
        status = make_needed(b, &open);
        next = itself ? NULL : find_missing_value(b, c);
    }
    byi_vec_free(open.at);
    return status;
}

/* Append the values of args[from..] to the flat list, and set *range to them.
 */
static enum byoc_status join_args(struct byi_planner *b,
                                  const struct byi_plan_walk *w,
                                  const struct byi_node *node, uint32_t from,
                                  struct value_range *range)
{
    for (uint32_t i = from; i < node->n_args; i++) {
        struct closure *known = w->range_of[node->args[i]].known;
        if (known)
            BYI_TRY(make_values(b, known, true));
    }
    *range = (struct value_range){.first = b->out.flat.n};
    for (uint32_t i = from; i < node->n_args; i++) {
        struct value_range arg = w->range_of[node->args[i]];
        if (arg.known)
            BYI_PUSH(&b->out.flat, arg.known->value - 1);
        else
            append_range(b, &arg);
    }
    range->n = b->out.flat.n - range->first;
    return BYOC_OK;
}

/* The closure of a function literal or named function. */
static struct closure *known_function(struct byi_planner *b,
                                      const struct byi_plan_walk *w,
                                      const struct byi_node *node)
{
    struct closure *c = byi_arena_alloc(b->arena, sizeof *c);
    struct value_range *captures =
        byi_arena_calloc(b->arena, node->n_args, sizeof *captures);
    for (uint32_t i = 0; i < node->n_args; i++)
        captures[i] = w->range_of[node->args[i]];
    c->func = node->index;
    c->node = node;
    c->captures = captures;
    return c;
}

/* Make inputs for capture i of `func`, a function that is planned separately.
 * If the capture is a known function, these are inputs for its own captures.
 * The recursion is bounded by byi_planned_captures.depth. */
static enum byoc_status push_capture(struct byi_planner *b, uint32_t func,
                                     uint32_t i, struct value_range *range)
{
    const struct byi_func *f = b->m->funcs.at[func];
    byi_id param = f->params.at[f->params.n - f->n_captures + i];
    uint32_t known = known_capture(b, func, i);
    if (!known)
        return push_leaves(b, f->nodes.at[param].type, BYI_P_INPUT, b->out.name,
                           range);
    const struct byi_func *g = b->m->funcs.at[known - 1];
    struct closure *c = byi_arena_alloc(b->arena, sizeof *c);
    struct value_range *captures =
        byi_arena_calloc(b->arena, g->n_captures, sizeof *captures);
    for (uint32_t k = 0; k < g->n_captures; k++)
        BYI_TRY(push_capture(b, known - 1, k, &captures[k]));
    *c = (struct closure){
        .func = known - 1, .node = &f->nodes.at[param], .captures = captures};
    *range = (struct value_range){.known = c};
    return BYOC_OK;
}

static enum byoc_status visit_param(struct byi_planner *b, uint32_t func,
                                    byi_id id, struct value_range *range)
{
    const struct byi_func *f = b->m->funcs.at[func];
    const struct byi_node *node = &f->nodes.at[id];
    uint32_t n_declared = f->params.n - f->n_captures;
    if (node->index < n_declared)
        return push_leaves(b, node->type, BYI_P_INPUT, b->out.name, range);
    return push_capture(b, func, node->index - n_declared, range);
}

/* --- nodes -------------------------------------------------------------- */

static enum byoc_status visit_op(struct byi_planner *b,
                                 const struct byi_plan_walk *w,
                                 const struct byi_node *node,
                                 struct value_range *range)
{
    struct value_range in;
    BYI_TRY(join_args(b, w, node, 0, &in));
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), range));
    if (byi_op_has(node->op, BYI_TRAIT_VIEW)) {
        uint32_t from = b->out.flat.at[in.first];
        uint32_t to = b->out.flat.at[range->first];
        b->out.values.at[to].kind = BYI_P_ALIAS;
        const uint32_t root = byi_planned_func_root(&b->out, from);
        b->out.values.at[to].index = root;
        if (b->out.values.at[to].fixed && b->out.values.at[root].fixed)
            return BYOC_OK; /* nothing to do at run time */
    }
    return add_step(b, BYI_P_OP, node, 0, in, *range);
}

static enum byoc_status visit_get(const struct byi_plan_walk *w,
                                  const struct byi_node *node,
                                  struct value_range *range)
{
    const struct byi_type *type = w->f->nodes.at[node->args[0]].type;
    *range = w->range_of[node->args[0]];
    for (uint32_t i = 0; i < node->index; i++)
        range->first += byi_plan_leaves(type->fields[i]);
    range->n = byi_plan_leaves(type->fields[node->index]);
    return BYOC_OK;
}

/* Plan the body of a function literal in place of its call. */
static void enter_literal(struct byi_planner *b, uint32_t caller, byi_id call,
                          const struct closure *c)
{
    const struct byi_plan_walk *w = &b->stack.at[caller];
    const struct byi_node *node = &w->f->nodes.at[call];
    const struct byi_func *body = b->m->funcs.at[c->func];
    struct byi_plan_walk inner = {.f = body, .call = call};
    inner.range_of =
        byi_arena_calloc(b->arena, body->nodes.n, sizeof *inner.range_of);
    uint32_t n_declared = body->params.n - body->n_captures;
    for (uint32_t i = 0; i < body->params.n; i++)
        inner.range_of[body->params.at[i]] =
            i < n_declared ? w->range_of[node->args[1 + i]]
                           : c->captures[i - n_declared];
    b->inlined += body->nodes.n;
    BYI_PUSH(&b->stack, inner);
}

/* Set *in to the operands args[1..] and the captures of `c`. */
static enum byoc_status join_call(struct byi_planner *b,
                                  const struct byi_plan_walk *w,
                                  const struct byi_node *node,
                                  struct closure *c, struct value_range *in)
{
    BYI_TRY(make_values(b, c, false));
    BYI_TRY(join_args(b, w, node, 1, in));
    append_captures(b, c);
    in->n = b->out.flat.n - in->first;
    return BYOC_OK;
}

static enum byoc_status visit_apply(struct byi_planner *b,
                                    const struct byi_plan_walk *w,
                                    const struct byi_node *node,
                                    struct value_range *range)
{
    struct value_range in;
    BYI_TRY(join_args(b, w, node, 0, &in));
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), range));
    return add_step(b, BYI_P_APPLY, node, 0, in, *range);
}

/* Append the caller's value for node `id` of a group, a constant or parameter.
 */
static void push_member(struct byi_planner *b, const struct byi_plan_walk *w,
                        const struct byi_node *call,
                        const struct byi_func *group, byi_id id)
{
    const struct byi_node *node = &group->nodes.at[id];
    if (node->kind == BYI_CONST) {
        const uint32_t value = const_value(b, node->index);
        BYI_PUSH(&b->out.flat, value);
        return;
    }
    assert(node->kind == BYI_PARAM);
    append_range(b, &w->range_of[call->args[1 + node->index]]);
}

/* Add one step for a call of a group that consists of an operator and its
 * epilogue; its operands are those of both. */
static enum byoc_status visit_epilogue(struct byi_planner *b,
                                       const struct byi_plan_walk *w,
                                       const struct byi_node *call,
                                       const struct byi_func *group,
                                       struct value_range *range)
{
    const byi_id head = byi_epilogue_head(group);
    const struct byi_node *node = &group->nodes.at[head];
    struct value_range in = {.first = b->out.flat.n};
    byi_id operand;
    for (uint32_t i = 0; i < node->n_args; i++)
        push_member(b, w, call, group, node->args[i]);
    for (byi_id id = head; id != group->result;) {
        id = byi_epilogue_next(group, head, id, &operand);
        if (operand != BYI_NO_ID)
            push_member(b, w, call, group, operand);
    }
    in.n = b->out.flat.n - in.first;
    BYI_TRY(push_leaves(b, call->type, BYI_P_TEMP, node_name(b, call), range));
    BYI_TRY(add_step(b, BYI_P_OP, call, 0, in, *range));
    b->out.steps.at[b->out.steps.n - 1].group = group;
    return BYOC_OK;
}

static enum byoc_status visit_call(struct byi_planner *b, uint32_t at,
                                   byi_id id, struct value_range *range)
{
    const struct byi_plan_walk *w = &b->stack.at[at];
    const struct byi_node *node = &w->f->nodes.at[id];
    struct closure *c = w->range_of[node->args[0]].known;
    if (!c)
        return visit_apply(b, w, node, range);
    const struct byi_func *body = b->m->funcs.at[c->func];
    bool fused = b->code && b->code->kernel_of[c->func];
    if (byi_epilogue_head(body) != BYI_NO_ID)
        return visit_epilogue(b, w, node, body, range);
    if (!body->name && !b->captures[c->func].is_recursive && !fused &&
        b->inlined + body->nodes.n <= b->may_inline) {
        enter_literal(b, at, id, c);
        return BYOC_OK;
    }
    struct value_range in;
    BYI_TRY(join_call(b, w, node, c, &in));
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), range));
    if (fused)
        return add_step(b, BYI_P_KERNEL, node, b->code->kernel_of[c->func] - 1,
                        in, *range);
    if (b->region_of[c->func])
        return add_step(b, BYI_P_REGION, node, b->region_of[c->func] - 1, in,
                        *range);
    return add_step(b, BYI_P_CALL, node, byi_plan_func(b, c->func), in, *range);
}

/* Add steps for an `if` whose branches are not both known: choose a function
 * value, and call it. */
static enum byoc_status visit_choice(struct byi_planner *b,
                                     const struct byi_plan_walk *w,
                                     const struct byi_node *node,
                                     struct value_range *range)
{
    const struct byi_type *branch = w->f->nodes.at[node->args[1]].type;
    struct value_range in, chosen;
    BYI_TRY(join_args(b, w, node, 0, &in));
    BYI_TRY(push_leaves(b, branch, BYI_P_TEMP, node_name(b, node), &chosen));
    BYI_TRY(add_step(b, BYI_P_CHOOSE, node, 0, in, chosen));
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), range));
    return add_step(b, BYI_P_APPLY, node, 0, chosen, *range);
}

/* Add a step for an `if`; its operands are the condition, the captures of the
 * `then` branch, and the captures of the `else` branch. */
static enum byoc_status visit_if(struct byi_planner *b,
                                 const struct byi_plan_walk *w,
                                 const struct byi_node *node,
                                 struct value_range *range)
{
    struct closure *then_branch = w->range_of[node->args[1]].known;
    struct closure *else_branch = w->range_of[node->args[2]].known;
    if (!then_branch || !else_branch)
        return visit_choice(b, w, node, range);
    BYI_TRY(make_values(b, then_branch, false));
    BYI_TRY(make_values(b, else_branch, false));
    struct value_range in = {.first = b->out.flat.n};
    append_range(b, &w->range_of[node->args[0]]);
    append_captures(b, then_branch);
    append_captures(b, else_branch);
    in.n = b->out.flat.n - in.first;
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), range));
    uint32_t callee = byi_plan_func(b, then_branch->func);
    uint32_t else_func = byi_plan_func(b, else_branch->func);
    BYI_TRY(add_step(b, BYI_P_IF, node, callee, in, *range));
    b->out.steps.at[b->out.steps.n - 1].else_func = else_func;
    return BYOC_OK;
}

/* Plan node `id` of the body at stack[at]; `func` is the function being
 * planned.
 */
static enum byoc_status visit_node(struct byi_planner *b, uint32_t func,
                                   uint32_t at, byi_id id)
{
    const struct byi_plan_walk *w = &b->stack.at[at];
    const struct byi_node *node = &w->f->nodes.at[id];
    struct value_range range = {0};
    for (uint32_t i = 0; i < node->n_args; i++)
        visit_const(b, w, node->args[i]);
    switch (node->kind) {
    case BYI_PARAM:
        if (at > 0)
            return BYOC_OK; /* bound by enter_literal */
        BYI_TRY(visit_param(b, func, id, &range));
        break;
    case BYI_CONST:
        return BYOC_OK; /* see visit_const */
    case BYI_CALL_OP:
        BYI_TRY(visit_op(b, w, node, &range));
        break;
    case BYI_CALL:
        BYI_TRY(visit_call(b, at, id, &range));
        break;
    case BYI_MAKE_TUPLE:
        BYI_TRY(join_args(b, w, node, 0, &range));
        break;
    case BYI_GET:
        BYI_TRY(visit_get(w, node, &range));
        break;
    case BYI_GLOBAL:
    case BYI_FN:
        range.known = known_function(b, w, node);
        break;
    case BYI_IF:
        BYI_TRY(visit_if(b, w, node, &range));
        break;
    }
    b->stack.at[at].range_of[id] = range;
    return BYOC_OK;
}

/* --- a function --------------------------------------------------------- */

/* List the outputs, and let steps compute them in the caller's memory if
 * possible; the runtime copies the others at the end of a run. */
static enum byoc_status place_outputs(struct byi_planner *b,
                                      struct value_range result)
{
    if (result.known) {
        struct closure *c = result.known;
        BYI_TRY(make_values(b, c, true));
        result = (struct value_range){.first = b->out.flat.n, .n = 1};
        BYI_PUSH(&b->out.flat, c->value - 1);
    }
    for (uint32_t i = 0; i < result.n; i++) {
        uint32_t v = b->out.flat.at[result.first + i];
        BYI_PUSH(&b->out.outputs, v);
        struct byi_planned_value *root =
            &b->out.values.at[byi_planned_func_root(&b->out, v)];
        bool object = root->type->kind != BYI_TENSOR;
        if (root->type->kind == BYI_FUNC && b->out_index == 0)
            return byi_fail(b->err, BYOC_EUNSUPPORTED,
                            "@%s: result %u: found a function, expected a "
                            "tensor, sequence or optional; call the function, "
                            "or choose another --function",
                            b->out.name, i);
        bool in_place = root->fixed == b->out.values.at[v].fixed &&
                        (root->fixed || root == &b->out.values.at[v]);
        if (root->kind != BYI_P_TEMP || !in_place || object)
            continue;
        root->kind = BYI_P_OUTPUT;
        root->index = i;
    }
    return BYOC_OK;
}

enum byoc_status byi_plan_body(struct byi_planner *b, uint32_t func)
{
    const struct byi_func *f = b->m->funcs.at[func];
    const struct byi_func *holder = b->m->funcs.at[b->captures[func].holder];
    b->out.name = f->name ? f->name
                          : byi_arena_printf(b->arena, "%s.%u", holder->name,
                                             b->out_index);
    struct byi_plan_walk top = {.f = f, .call = BYI_NO_ID};
    top.range_of = byi_arena_calloc(b->arena, f->nodes.n, sizeof *top.range_of);
    b->stack.n = 0;
    BYI_PUSH(&b->stack, top);
    struct value_range result;
    for (;;) {
        uint32_t at = b->stack.n - 1;
        struct byi_plan_walk *w = &b->stack.at[at];
        if (w->pos < w->f->nodes.n) {
            BYI_TRY(visit_node(b, func, at, w->pos++));
            continue;
        }
        visit_const(b, w, w->f->result);
        result = w->range_of[w->f->result];
        byi_id call = w->call;
        b->stack.n--;
        if (b->stack.n == 0)
            break;
        b->stack.at[b->stack.n - 1].range_of[call] = result;
    }
    BYI_TRY(place_outputs(b, result));
    byi_plan_memory(&b->out);
    return BYOC_OK;
}
