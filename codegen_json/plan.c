/* plan.c: a module as a list of steps over flat values: what the runtime
 * executes (docs/plan.md). Tuples are resolved here, calls of function
 * literals are taken apart, reshapes become aliases, results are written
 * straight into the outputs. plan_json.c prints what is built here.
 */
#include "plan.h"

#include <string.h>

enum {
    MAX_STEPS = 16 << 20, /* of one function                       */
    MAX_VISITS = 64 << 20 /* nodes, counting a literal at each call */
};

/* The values a node gives: a run of the function's flat list. */
struct run {
    uint32_t first, n;
};

/* One function body being walked; the ones below it on the stack wait for its
 * result. */
struct walk {
    const struct byi_func *f;
    struct run *of; /* by node */
    byi_id pos;
    byi_id call; /* the waiting call in the body below */
};

struct builder {
    const struct byi_module *m;
    struct byi_arena *arena;
    struct byoc_error *err;
    struct byi_plan *plan;
    const struct byi_plan_code *code; /* NULL: nothing is fused */
    uint32_t *placed;     /* by module constant: 1 + index in the plan */
    uint32_t *const_at;   /* by module constant: value, if of this function */
    uint32_t *const_seen; /* by module constant: 1 + the last function */
    uint32_t *func_index; /* by module function: plan function + 1, or 0 */
    uint32_t *region_of;  /* by module function: region + 1, or 0 */
    BYI_VEC(uint32_t) order; /* functions of the plan, callers first */
    BYI_VEC(struct walk) stack;
    BYI_VEC(const struct byi_type *) types; /* scratch of push_leaves */
    struct byi_pfunc out;
    uint32_t out_index;
    uint32_t visits;
};

static const char *node_name(const struct builder *b,
                             const struct byi_node *node)
{
    if (node->sources->n == 0)
        return "(no source)";
    return b->m->sources.at[node->sources->at[0]].name;
}

/* --- values ------------------------------------------------------------- */

static uint32_t add_value(struct builder *b, enum byi_pvalue_kind kind,
                          const struct byi_type *type, uint32_t index)
{
    struct byi_pvalue v = {.kind = kind,
                           .index = index,
                           .type = type,
                           .fixed = byi_type_static(type)};
    BYI_PUSH(&b->out.values, v);
    return b->out.values.n - 1;
}

/* A value for every tensor of `type`, left to right. */
static enum byoc_status push_leaves(struct builder *b,
                                    const struct byi_type *type,
                                    enum byi_pvalue_kind kind, const char *name,
                                    struct run *run)
{
    run->first = b->out.flat.n;
    b->types.n = 0;
    BYI_PUSH(&b->types, type);
    while (b->types.n > 0) {
        const struct byi_type *t = b->types.at[--b->types.n];
        if (t->kind == BYI_FUNC)
            return byi_fail(b->err, BYOC_EUNSUPPORTED,
                            "%s: a function as a value cannot run; only "
                            "functions that are called directly can",
                            name);
        if (t->kind == BYI_TUPLE) {
            for (uint32_t i = t->n_fields; i-- > 0;)
                BYI_PUSH(&b->types, t->fields[i]);
            continue;
        }
        if (byoc_dtype_size(t->dtype) == 0)
            return byi_fail(b->err, BYOC_EUNSUPPORTED,
                            "%s: tensors of %s cannot run; only elements of "
                            "fixed size can",
                            name, byoc_dtype_name(t->dtype));
        uint32_t index = kind == BYI_P_INPUT ? b->out.inputs.n : 0;
        uint32_t v = add_value(b, kind, t, index);
        if (kind == BYI_P_INPUT)
            BYI_PUSH(&b->out.inputs, v);
        BYI_PUSH(&b->out.flat, v);
    }
    run->n = b->out.flat.n - run->first;
    return BYOC_OK;
}

static uint32_t count_leaves(struct builder *b, const struct byi_type *type)
{
    uint32_t n = 0;
    b->types.n = 0;
    BYI_PUSH(&b->types, type);
    while (b->types.n > 0) {
        const struct byi_type *t = b->types.at[--b->types.n];
        n += t->kind != BYI_TUPLE;
        for (uint32_t i = 0; t->kind == BYI_TUPLE && i < t->n_fields; i++)
            BYI_PUSH(&b->types, t->fields[i]);
    }
    return n;
}

static uint32_t place_const(struct builder *b, uint32_t constant)
{
    if (b->placed[constant] == 0) {
        struct byi_placed p = {constant, b->plan->weights_bytes};
        uint64_t bytes = b->m->consts.at[constant].bytes;
        b->plan->weights_bytes +=
            (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
        BYI_PUSH(&b->plan->consts, p);
        b->placed[constant] = b->plan->consts.n;
    }
    return b->placed[constant] - 1;
}

static enum byoc_status visit_const(struct builder *b,
                                    const struct byi_node *node,
                                    struct run *run)
{
    const struct byi_type *type = b->m->consts.at[node->index].type;
    if (byoc_dtype_size(type->dtype) == 0)
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "%s: a constant of %s cannot run; only elements of "
                        "fixed size can",
                        node_name(b, node), byoc_dtype_name(type->dtype));
    if (b->const_seen[node->index] != b->out_index + 1) {
        b->const_seen[node->index] = b->out_index + 1;
        b->const_at[node->index] =
            add_value(b, BYI_P_CONST, type, place_const(b, node->index));
    }
    run->first = b->out.flat.n;
    run->n = 1;
    BYI_PUSH(&b->out.flat, b->const_at[node->index]);
    return BYOC_OK;
}

/* --- nodes -------------------------------------------------------------- */

/* The values of args[from..], one after the other. */
static struct run join_args(struct builder *b, const struct walk *w,
                            const struct byi_node *node, uint32_t from)
{
    struct run run = {b->out.flat.n, 0};
    for (uint32_t i = from; i < node->n_args; i++) {
        struct run arg = w->of[node->args[i]];
        for (uint32_t k = 0; k < arg.n; k++) {
            uint32_t v = b->out.flat.at[arg.first + k];
            BYI_PUSH(&b->out.flat, v);
        }
    }
    run.n = b->out.flat.n - run.first;
    return run;
}

static enum byoc_status add_step(struct builder *b, enum byi_pstep_kind kind,
                                 const struct byi_node *node, uint32_t callee,
                                 struct run in, struct run out)
{
    if (b->out.steps.n >= MAX_STEPS)
        return byi_fail(b->err, BYOC_ELIMIT,
                        "%s: the plan of %s has more than %d steps",
                        node_name(b, node), b->out.name, MAX_STEPS);
    struct byi_pstep step = {.kind = kind,
                             .node = node,
                             .callee = callee,
                             .in = in.first,
                             .n_in = in.n,
                             .out = out.first,
                             .n_out = out.n};
    BYI_PUSH(&b->out.steps, step);
    return BYOC_OK;
}

static enum byoc_status visit_op(struct builder *b, const struct walk *w,
                                 const struct byi_node *node, struct run *run)
{
    struct run in = join_args(b, w, node, 0);
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), run));
    if (byi_op_is_view(node->op)) {
        uint32_t from = b->out.flat.at[in.first];
        uint32_t to = b->out.flat.at[run->first];
        b->out.values.at[to].kind = BYI_P_ALIAS;
        b->out.values.at[to].index = byi_pfunc_root(&b->out, from);
        if (b->out.values.at[to].fixed && b->out.values.at[from].fixed)
            return BYOC_OK; /* nothing to do at run time */
    }
    return add_step(b, BYI_P_OP, node, 0, in, *run);
}

static enum byoc_status visit_get(struct builder *b, const struct walk *w,
                                  const struct byi_node *node, struct run *run)
{
    const struct byi_type *type = w->f->nodes.at[node->args[0]].type;
    *run = w->of[node->args[0]];
    for (uint32_t i = 0; i < node->index; i++)
        run->first += count_leaves(b, type->fields[i]);
    run->n = count_leaves(b, type->fields[node->index]);
    return BYOC_OK;
}

/* Walk the body of a function literal in place of its call. */
static void enter_literal(struct builder *b, uint32_t caller, byi_id call)
{
    const struct walk *w = &b->stack.at[caller];
    const struct byi_node *node = &w->f->nodes.at[call];
    const struct byi_node *fn = &w->f->nodes.at[node->args[0]];
    const struct byi_func *body = b->m->funcs.at[fn->index];
    struct walk in = {.f = body, .call = call};
    in.of = byi_arena_calloc(b->arena, body->nodes.n, sizeof *in.of);
    uint32_t own = body->params.n - body->n_captures;
    for (uint32_t i = 0; i < body->params.n; i++) {
        byi_id arg = i < own ? node->args[1 + i] : fn->args[i - own];
        in.of[body->params.at[i]] = w->of[arg];
    }
    BYI_PUSH(&b->stack, in);
}

static enum byoc_status visit_call(struct builder *b, uint32_t at, byi_id id,
                                   struct run *run)
{
    const struct walk *w = &b->stack.at[at];
    const struct byi_node *node = &w->f->nodes.at[id];
    const struct byi_node *callee = &w->f->nodes.at[node->args[0]];
    if (callee->kind == BYI_FN && b->code && b->code->of[callee->index]) {
        struct run in = join_args(b, w, node, 1);
        BYI_TRY(
            push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), run));
        return add_step(b, BYI_P_KERNEL, node,
                        b->code->of[callee->index] - 1, in, *run);
    }
    if (callee->kind == BYI_FN) {
        enter_literal(b, at, id);
        return BYOC_OK;
    }
    if (callee->kind != BYI_GLOBAL)
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "%s: a call of a computed function cannot run; only "
                        "@functions and function literals can be called",
                        node_name(b, node));
    struct run in = join_args(b, w, node, 1);
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), run));
    if (b->region_of[callee->index])
        return add_step(b, BYI_P_REGION, node, b->region_of[callee->index] - 1,
                        in, *run);
    if (b->func_index[callee->index] < b->out_index + 2)
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "@%s calls @%s; a vendor function can only call "
                        "composites",
                        b->out.name, b->m->funcs.at[callee->index]->name);
    return add_step(b, BYI_P_CALL, node, b->func_index[callee->index] - 1, in,
                    *run);
}

/* A branch as a function of the plan; its captures are its inputs. */
static enum byoc_status find_branch(struct builder *b, const struct walk *w,
                                    const struct byi_node *node, uint32_t arg,
                                    uint32_t *index)
{
    const struct byi_node *fn = &w->f->nodes.at[node->args[arg]];
    if (fn->kind != BYI_FN || b->func_index[fn->index] < b->out_index + 2)
        return byi_fail(b->err, BYOC_EUNSUPPORTED,
                        "%s: a branch that is computed, or in a vendor's "
                        "function, cannot run; only function literals can",
                        node_name(b, node));
    *index = b->func_index[fn->index] - 1;
    return BYOC_OK;
}

/* Operands: the condition, what `then` captures, what `else` captures. */
static enum byoc_status visit_if(struct builder *b, const struct walk *w,
                                 const struct byi_node *node, struct run *run)
{
    uint32_t then, otherwise;
    BYI_TRY(find_branch(b, w, node, 1, &then));
    BYI_TRY(find_branch(b, w, node, 2, &otherwise));
    struct run in = {b->out.flat.n, 0};
    struct byi_node cond = *node;
    cond.n_args = 1;
    join_args(b, w, &cond, 0);
    join_args(b, w, &w->f->nodes.at[node->args[1]], 0);
    join_args(b, w, &w->f->nodes.at[node->args[2]], 0);
    in.n = b->out.flat.n - in.first;
    BYI_TRY(push_leaves(b, node->type, BYI_P_TEMP, node_name(b, node), run));
    BYI_TRY(add_step(b, BYI_P_IF, node, then, in, *run));
    b->out.steps.at[b->out.steps.n - 1].other = otherwise;
    return BYOC_OK;
}

static enum byoc_status visit(struct builder *b, uint32_t at, byi_id id)
{
    const struct walk *w = &b->stack.at[at];
    const struct byi_node *node = &w->f->nodes.at[id];
    struct run run = {0, 0};
    if (++b->visits > MAX_VISITS)
        return byi_fail(b->err, BYOC_ELIMIT,
                        "%s: the plan visits more than %d nodes",
                        node_name(b, node), MAX_VISITS);
    switch (node->kind) {
    case BYI_PARAM:
        if (at > 0)
            return BYOC_OK; /* bound by enter_literal */
        BYI_TRY(push_leaves(b, node->type, BYI_P_INPUT, b->out.name, &run));
        break;
    case BYI_CONST:
        BYI_TRY(visit_const(b, node, &run));
        break;
    case BYI_CALL_OP:
        BYI_TRY(visit_op(b, w, node, &run));
        break;
    case BYI_CALL:
        BYI_TRY(visit_call(b, at, id, &run));
        break;
    case BYI_MAKE_TUPLE:
        run = join_args(b, w, node, 0);
        break;
    case BYI_GET:
        BYI_TRY(visit_get(b, w, node, &run));
        break;
    case BYI_GLOBAL:
    case BYI_FN:
        break; /* seen by their calls */
    case BYI_IF:
        BYI_TRY(visit_if(b, w, node, &run));
        break;
    }
    b->stack.at[at].of[id] = run;
    return BYOC_OK;
}

/* --- a function --------------------------------------------------------- */

/* Let results be computed in the caller's memory where nothing forbids it;
 * the runtime copies the others at the end. */
static void claim_outputs(struct builder *b, struct run result)
{
    for (uint32_t i = 0; i < result.n; i++) {
        uint32_t v = b->out.flat.at[result.first + i];
        BYI_PUSH(&b->out.outputs, v);
        struct byi_pvalue *root = &b->out.values.at[byi_pfunc_root(&b->out, v)];
        bool in_place = root->fixed == b->out.values.at[v].fixed &&
                        (root->fixed || root == &b->out.values.at[v]);
        if (root->kind != BYI_P_TEMP || !in_place)
            continue;
        root->kind = BYI_P_OUTPUT;
        root->index = i;
    }
}

static enum byoc_status build_func(struct builder *b, uint32_t func)
{
    const struct byi_func *f = b->m->funcs.at[func];
    b->out.name =
        f->name ? f->name : byi_arena_printf(b->arena, "branch.%u", func);
    struct walk top = {.f = f, .call = BYI_NO_ID};
    top.of = byi_arena_calloc(b->arena, f->nodes.n, sizeof *top.of);
    b->stack.n = 0;
    BYI_PUSH(&b->stack, top);
    struct run result;
    for (;;) {
        uint32_t at = b->stack.n - 1;
        struct walk *w = &b->stack.at[at];
        if (w->pos < w->f->nodes.n) {
            BYI_TRY(visit(b, at, w->pos++));
            continue;
        }
        result = w->of[w->f->result];
        byi_id call = w->call;
        b->stack.n--;
        if (b->stack.n == 0)
            break;
        b->stack.at[b->stack.n - 1].of[call] = result;
    }
    claim_outputs(b, result);
    byi_plan_memory(&b->out);
    return BYOC_OK;
}

static void free_func(struct byi_pfunc *f)
{
    byi_vec_free(f->values.at);
    byi_vec_free(f->inputs.at);
    byi_vec_free(f->outputs.at);
    byi_vec_free(f->steps.at);
    byi_vec_free(f->flat.at);
    *f = (struct byi_pfunc){0};
}

/* --- the order of functions --------------------------------------------- */

struct visit_func {
    uint32_t func;
    byi_id pos;
};

/* The literal bodies a function contains, itself first: calls in them are
 * calls of its own. */
static void list_bodies(const struct byi_module *m, uint32_t func,
                        struct byi_arena *arena, uint32_t **bodies, uint32_t *n)
{
    BYI_VEC(uint32_t) list = {0};
    bool *seen = byi_arena_calloc(arena, m->funcs.n, sizeof *seen);
    BYI_PUSH(&list, func);
    for (uint32_t i = 0; i < list.n; i++) {
        const struct byi_func *f = m->funcs.at[list.at[i]];
        for (byi_id id = 0; id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind != BYI_FN || seen[node->index])
                continue;
            seen[node->index] = true;
            BYI_PUSH(&list, node->index);
        }
    }
    *bodies = byi_arena_copy(arena, list.at, list.n * sizeof *list.at);
    *n = list.n;
    byi_vec_free(list.at);
}

/* The functions that `func` calls, or branches to, and that run natively. */
static void list_callees(const struct builder *b, uint32_t func,
                         uint32_t **callees, uint32_t *n)
{
    uint32_t *bodies, n_bodies;
    list_bodies(b->m, func, b->arena, &bodies, &n_bodies);
    BYI_VEC(uint32_t) list = {0};
    for (uint32_t k = 0; k < n_bodies; k++) {
        const struct byi_func *f = b->m->funcs.at[bodies[k]];
        for (byi_id id = 0; id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind == BYI_GLOBAL && !b->region_of[node->index])
                BYI_PUSH(&list, node->index);
            for (uint32_t i = 1; node->kind == BYI_IF && i < 3; i++)
                if (f->nodes.at[node->args[i]].kind == BYI_FN)
                    BYI_PUSH(&list, f->nodes.at[node->args[i]].index);
        }
    }
    *callees = byi_arena_copy(b->arena, list.at, list.n * sizeof *list.at);
    *n = list.n;
    byi_vec_free(list.at);
}

struct open_func {
    uint32_t func, pos, n_callees, *callees;
};

/* Depth-first from main, callees first, then turned round. `state` by module
 * function: 0 not seen, 1 open, 2 done. */
static enum byoc_status order_funcs(struct builder *b, uint32_t main)
{
    uint8_t *state = byi_arena_calloc(b->arena, b->m->funcs.n, 1);
    BYI_VEC(struct open_func) open = {0};
    struct open_func first = {.func = main};
    list_callees(b, main, &first.callees, &first.n_callees);
    BYI_PUSH(&open, first);
    state[main] = 1;
    enum byoc_status status = BYOC_OK;
    while (open.n > 0 && status == BYOC_OK) {
        struct open_func *top = &open.at[open.n - 1];
        if (top->pos == top->n_callees) {
            state[top->func] = 2;
            BYI_PUSH(&b->order, top->func);
            open.n--;
            continue;
        }
        struct open_func next = {.func = top->callees[top->pos++]};
        if (state[next.func] == 1)
            status = byi_fail(b->err, BYOC_EUNSUPPORTED,
                              "@%s calls itself; recursion cannot run in "
                              "this version",
                              b->m->funcs.at[next.func]->name);
        if (state[next.func] != 0)
            continue;
        state[next.func] = 1;
        list_callees(b, next.func, &next.callees, &next.n_callees);
        BYI_PUSH(&open, next);
    }
    byi_vec_free(open.at);
    for (uint32_t i = 0; i < b->order.n / 2; i++) {
        uint32_t *a = &b->order.at[i];
        uint32_t *z = &b->order.at[b->order.n - 1 - i];
        uint32_t kept = *a;
        *a = *z;
        *z = kept;
    }
    for (uint32_t i = 0; i < b->order.n; i++)
        b->func_index[b->order.at[i]] = i + 1;
    return status;
}

/* --- the whole ---------------------------------------------------------- */

static enum byoc_status find_regions(struct builder *b, uint32_t n_regions,
                                     uint32_t *main)
{
    *main = byi_func_find(b->m, "main");
    if (*main == UINT32_MAX)
        return byi_fail(b->err, BYOC_EINVAL,
                        "the module has no function @main to plan");
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->m->funcs.n; i++)
        if (!b->m->funcs.at[i]->dead && b->m->funcs.at[i]->attr.compiler)
            b->region_of[i] = ++n;
    if (n != n_regions)
        return byi_fail(b->err, BYOC_EINVAL,
                        "the module has %u vendor functions, but %u regions "
                        "were given",
                        n, n_regions);
    return BYOC_OK;
}

static enum byoc_status build_funcs(struct builder *b)
{
    struct byi_text *json = &b->plan->json;
    byi_text_addf(json, "\"functions\": [");
    for (uint32_t i = 0; i < b->order.n; i++) {
        b->out_index = i;
        BYI_TRY(build_func(b, b->order.at[i]));
        byi_text_addf(json, "%s\n", i ? "," : "");
        byi_plan_print_func(b->m, &b->out, json);
        free_func(&b->out);
    }
    byi_text_addf(json, "],\n");
    return BYOC_OK;
}

static void print_regions(struct builder *b, uint32_t first_twin,
                          const struct byi_plan_region *regions, uint32_t n)
{
    struct byi_text *json = &b->plan->json;
    uint64_t offset = 0;
    byi_text_addf(json, "\"regions\": [");
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_func *f = b->m->funcs.at[b->order.at[first_twin + i]];
        byi_text_addf(json, "%s\n{\"backend\": ", i ? "," : "");
        byi_json_quote(json, f->attr.compiler);
        byi_text_addf(json, ", \"symbol\": ");
        byi_json_quote(json, f->name);
        byi_text_addf(
            json, ", \"blob\": [%llu, %llu], \"twin\": %u, \"consts\": [",
            (unsigned long long)offset,
            (unsigned long long)regions[i].blob_bytes, first_twin + i);
        for (uint32_t k = 0; k < regions[i].n_consts; k++)
            byi_text_addf(json, "%s%u", k ? ", " : "",
                          place_const(b, regions[i].consts[k]));
        byi_text_addf(json, "]}");
        offset += regions[i].blob_bytes;
    }
    byi_text_addf(json, "],\n");
}

static void print_kernels(struct builder *b, uint32_t first_twin)
{
    struct byi_text *json = &b->plan->json;
    byi_text_addf(json, "\"kernels\": [");
    for (uint32_t i = 0; i < b->code->n; i++) {
        byi_text_addf(json, "%s\n{\"symbol\": ", i ? "," : "");
        byi_json_quote(json, b->code->at[i].symbol);
        byi_text_addf(json, ", \"twin\": %u}", first_twin + i);
    }
    byi_text_addf(json, "],\n");
}

static enum byoc_status write_plan(struct builder *b,
                                   const struct byi_plan_region *regions,
                                   uint32_t n_regions)
{
    uint32_t main;
    BYI_TRY(find_regions(b, n_regions, &main));
    BYI_TRY(order_funcs(b, main));
    uint32_t first_twin = b->order.n;
    for (uint32_t i = 0; i < b->m->funcs.n; i++)
        if (b->region_of[i])
            BYI_PUSH(&b->order, i);
    uint32_t first_group = b->order.n;
    for (uint32_t i = 0; b->code && i < b->code->n; i++)
        BYI_PUSH(&b->order, b->code->at[i].func);
    byi_text_addf(&b->plan->json,
                  "{\"format\": \"byoc-plan\", \"version\": %d,\n",
                  BYI_PLAN_VERSION);
    BYI_TRY(build_funcs(b));
    print_regions(b, first_twin, regions, n_regions);
    if (b->code)
        print_kernels(b, first_group);
    byi_plan_print_consts(b->m, b->plan, &b->plan->json);
    byi_text_addf(&b->plan->json, "}\n");
    return BYOC_OK;
}

enum byoc_status byi_plan_write(const struct byi_module *m,
                                const struct byi_plan_region *regions,
                                uint32_t n_regions,
                                const struct byi_plan_code *code,
                                struct byi_plan *plan, struct byoc_error *err)
{
    *plan = (struct byi_plan){0};
    struct builder b = {.m = m,
                        .arena = byi_arena_new(),
                        .err = err,
                        .plan = plan,
                        .code = code};
    b.placed = byi_arena_calloc(b.arena, m->consts.n + 1, sizeof *b.placed);
    b.const_at = byi_arena_calloc(b.arena, m->consts.n + 1, sizeof *b.placed);
    b.const_seen = byi_arena_calloc(b.arena, m->consts.n + 1, sizeof *b.placed);
    b.func_index = byi_arena_calloc(b.arena, m->funcs.n + 1, sizeof *b.placed);
    b.region_of = byi_arena_calloc(b.arena, m->funcs.n + 1, sizeof *b.placed);
    enum byoc_status status = write_plan(&b, regions, n_regions);
    if (status != BYOC_OK)
        byi_plan_free(plan);
    free_func(&b.out);
    byi_vec_free(b.order.at);
    byi_vec_free(b.stack.at);
    byi_vec_free(b.types.at);
    byi_arena_free(&b.arena);
    return status;
}

void byi_plan_free(struct byi_plan *plan)
{
    byi_text_free(&plan->json);
    byi_vec_free(plan->consts.at);
    *plan = (struct byi_plan){0};
}

const struct byi_span *byi_plan_spans(const struct byi_module *m,
                                      const struct byi_plan *plan,
                                      struct byi_arena *arena)
{
    struct byi_span *spans =
        byi_arena_calloc(arena, plan->consts.n + 1, sizeof *spans);
    for (uint32_t i = 0; i < plan->consts.n; i++) {
        const struct byi_const *c = &m->consts.at[plan->consts.at[i].constant];
        spans[i] = (struct byi_span){
            .data = c->data,
            .bytes = c->bytes,
            .offset = plan->consts.at[i].offset,
        };
    }
    return spans;
}
