/* SPDX-License-Identifier: Apache-2.0 */
/* LambdaLift: turn function literals into global functions.
 * requires: nothing
 * leaves:   function literals as globals (@lifted_main_0 for the first one in
 *           @main), with the captures as their last parameters, which direct
 *           calls pass. A literal that is also used as a value becomes the
 *           @global if it captures nothing, else a closure: a literal whose
 *           body only calls the @global with its parameters and captures.
 *           Recursive literals become recursive globals. Not lifted: branches,
 *           composites, fused groups, closures as above, and literals that
 *           two nodes share. If a function would have more than BYI_MAX_ARGS
 *           parameters, the module is unchanged.
 *
 *   def @main(%x, %k) {                    def @main(%x, %k) {
 *     %f = fn (%a) { add(%a, %k) };          @lifted_main_0(%x, %k)
 *     %f(%x)                        ==>    }
 *   }                                      def @lifted_main_0(%a, %c0) {
 *                                            add(%a, %c0)
 *                                          }
 *
 * Johnsson, "Lambda lifting: transforming programs to recursive equations",
 * 1985.
 */
#include "transform.h"

#include "call_graph.h"

#include <assert.h>
#include <string.h>

typedef uint32_t value; /* base[func] + id */

/* A list of n values. */
struct value_list {
    uint32_t n;
    const uint32_t *at;
};

/* A function whose literals are being visited. */
struct lift_visit {
    uint32_t func;
    byi_id next;
};

/* Arrays are by function or by value. */
struct lifter {
    struct byi_module *m;
    struct byi_arena *scratch;
    struct byi_call_graph graph;
    struct byi_numbers values;
    /* for each function: one node refers to it, apart from its own references
     */
    bool *inner;
    bool *lift;        /* for each function: `inner`, and it becomes a global */
    const char **name; /* for each function: the name of that global */
    /* for each value: the outer value that a capture stands for, else itself */
    value *def;
    /* for each value: a literal that is read as a value, not only called */
    bool *read_as_value;
    /* for each function: the values of enclosing functions that it reads */
    struct value_list *captures;
    /* for each function: the enclosing functions that it calls, whose captures
     * it needs but which are not known yet */
    struct value_list *outer_calls;
    /* for each value and function: 1 + the last function that recorded it */
    uint32_t *seen, *seen_func;
    /* for each value: its node in the function that is being built */
    byi_id *local;
    /* for each function: the function that replaces it */
    struct byi_func **new_funcs;
    uint32_t *order; /* functions, nested ones before their holder */
    uint32_t n_order;
    BYI_VEC(value) reads; /* of the function being visited */
    BYI_VEC(uint32_t) calls;
};

static const struct byi_node *node_of(const struct lifter *s, value v)
{
    return byi_numbers_node(s->m, &s->values, v);
}

/* --- choosing the functions ----------------------------------------------- */

/* Whether the function only calls a global with its parameters: already lifted.
 */
static bool is_closure(const struct byi_func *f)
{
    if (f->nodes.n != f->params.n + 2 || f->result != f->params.n + 1)
        return false;
    const struct byi_node *call = &f->nodes.at[f->result];
    if (call->kind != BYI_CALL || call->n_args != f->params.n + 1 ||
        f->nodes.at[call->args[0]].kind != BYI_GLOBAL)
        return false;
    for (uint32_t i = 0; i < f->params.n; i++)
        if (call->args[i + 1] != f->params.at[i])
            return false;
    return true;
}

static bool is_ordinary_literal(const struct byi_func *f)
{
    return !f->name && !f->attr.from_pattern && !f->attr.global_symbol &&
           !f->attr.operands && f->result_names.n == 0;
}

/* Set `inner` and `lift` of a function; keep_branches corrects `lift`. */
static void classify_function(struct lifter *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    uint32_t self_references = 0;
    for (byi_id id = 0; f->refers && id < f->nodes.n; id++)
        self_references +=
            f->nodes.at[id].kind == BYI_FN && f->nodes.at[id].index == func;
    s->inner[func] = !f->name && !s->graph.closed[func] &&
                     s->graph.n_fns[func] - self_references == 1;
    s->lift[func] = s->inner[func] && is_ordinary_literal(f) && !is_closure(f);
}

static void keep_branches(struct lifter *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    for (byi_id id = 0; f->refers && id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 1; node->kind == BYI_IF && i < 3; i++)
            if (f->nodes.at[node->args[i]].kind == BYI_FN)
                s->lift[f->nodes.at[node->args[i]].index] = false;
    }
}

/* --- the order, and definitions of captures ------------------------------- */

/* Name the global of a lifted function. next[f] is the number of the next name
 * for literals in the named function f. */
static void name_function(struct lifter *s, uint32_t func, uint32_t *next)
{
    const uint32_t root = s->graph.root[func];
    do
        s->name[func] =
            byi_arena_printf(s->scratch, "lifted_%s_%u",
                             s->m->funcs.at[root]->name, next[root]++);
    while (byi_func_find(s->m, s->name[func]) != UINT32_MAX);
}

/* Define the captures of the literal `fn` of `outer`, and name its global. */
static void enter_literal(struct lifter *s, uint32_t outer,
                          const struct byi_node *fn, uint32_t *next)
{
    const struct byi_func *body = s->m->funcs.at[fn->index];
    const uint32_t n_declared = body->params.n - body->n_captures;
    for (uint32_t i = 0; i < fn->n_args; i++)
        s->def[s->values.base[fn->index] + body->params.at[n_declared + i]] =
            s->def[s->values.base[outer] + fn->args[i]];
    if (s->lift[fn->index])
        name_function(s, fn->index, next);
}

/* Append the literals nested in `root` to s->order, inner ones first, then
 * root. `visits` has room for all functions. */
static void visit_from(struct lifter *s, uint32_t root, uint32_t *next,
                       struct lift_visit *visits)
{
    uint32_t n = 0;
    visits[n++] = (struct lift_visit){root, 0};
    while (n > 0) {
        struct lift_visit *v = &visits[n - 1];
        const struct byi_func *f = s->m->funcs.at[v->func];
        if (v->next == f->nodes.n) {
            s->order[s->n_order++] = v->func;
            n--;
            continue;
        }
        const struct byi_node *node = &f->nodes.at[v->next++];
        if (node->kind != BYI_FN || node->index == v->func ||
            !s->inner[node->index])
            continue;
        enter_literal(s, v->func, node, next);
        visits[n++] = (struct lift_visit){node->index, 0};
    }
}

/* --- captures ------------------------------------------------------------- */

/* Record that `func` reads v, once, unless v is its own value. */
static void record_read(struct lifter *s, uint32_t func, value v)
{
    if (s->values.owner[v] == func || s->seen[v] == func + 1)
        return;
    s->seen[v] = func + 1;
    BYI_PUSH(&s->reads, v);
}

static void record_captures(struct lifter *s, uint32_t func, uint32_t of)
{
    for (uint32_t i = 0; i < s->captures[of].n; i++)
        record_read(s, func, s->captures[of].at[i]);
}

/* `func` needs the captures of `of`, an enclosing function or itself. */
static void record_outer_call(struct lifter *s, uint32_t func, uint32_t of)
{
    if (of == func || s->seen_func[of] == func + 1)
        return;
    s->seen_func[of] = func + 1;
    BYI_PUSH(&s->calls, of);
}

/* `func` needs the captures of the literal `of`. */
static void record_literal(struct lifter *s, uint32_t func, uint32_t of)
{
    record_captures(s, func, of);
    for (uint32_t i = 0; i < s->outer_calls[of].n; i++)
        record_outer_call(s, func, s->outer_calls[of].at[i]);
}

/* Returns the lifted function that node `call` of func calls directly, or
 * UINT32_MAX. A call whose arguments have other types than the parameters does
 * not count if the function has captures. A symbol that an argument binds must
 * not be bound by a capture too. */
static uint32_t callee_of(const struct lifter *s, uint32_t func,
                          const struct byi_node *call)
{
    if (call->kind != BYI_CALL)
        return UINT32_MAX;
    const struct byi_func *f = s->m->funcs.at[func];
    const struct byi_node *fn =
        node_of(s, s->def[s->values.base[func] + call->args[0]]);
    if (fn->kind != BYI_FN || !s->lift[fn->index])
        return UINT32_MAX;
    const struct byi_func *body = s->m->funcs.at[fn->index];
    for (uint32_t i = 1; body->n_captures > 0 && i < call->n_args; i++)
        if (!byi_type_equal(f->nodes.at[call->args[i]].type,
                            body->nodes.at[body->params.at[i - 1]].type))
            return UINT32_MAX;
    return fn->index;
}

static void record_node_reads(struct lifter *s, uint32_t func,
                              const struct byi_node *node)
{
    const value base = s->values.base[func];
    if (node->kind == BYI_FN && node->index == func)
        return; /* a self reference needs the function's own captures */
    if (node->kind == BYI_FN && s->inner[node->index]) {
        record_literal(s, func, node->index);
        return;
    }
    const uint32_t callee = callee_of(s, func, node);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const value v = s->def[base + node->args[i]];
        if (i > 0 || callee == UINT32_MAX) {
            s->read_as_value[v] = true;
            record_read(s, func, v);
        } else if (s->values.owner[v] == callee) {
            record_outer_call(s, func, callee);
        } else {
            record_literal(s, func, callee);
        }
    }
}

static struct value_list copy_list(struct lifter *s, const uint32_t *at,
                                   uint32_t n)
{
    return (struct value_list){n,
                               byi_arena_copy(s->scratch, at, n * sizeof *at)};
}

static void find_captures(struct lifter *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    s->reads.n = s->calls.n = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        record_node_reads(s, func, &f->nodes.at[id]);
    const value result = s->def[s->values.base[func] + f->result];
    s->read_as_value[result] = true;
    record_read(s, func, result);
    s->captures[func] = copy_list(s, s->reads.at, s->reads.n);
    s->outer_calls[func] = copy_list(s, s->calls.at, s->calls.n);
}

/* Add the captures of enclosing functions, from the outside in. False if a
 * function would have more than BYI_MAX_ARGS parameters. */
static bool add_outer_captures(struct lifter *s)
{
    for (uint32_t i = s->n_order; i-- > 0;) {
        const uint32_t func = s->order[i];
        const struct byi_func *f = s->m->funcs.at[func];
        const struct value_list captures = s->captures[func];
        if (s->outer_calls[func].n > 0) {
            s->reads.n = 0;
            for (uint32_t k = 0; k < captures.n; k++) {
                s->seen[captures.at[k]] = func + 1;
                BYI_PUSH(&s->reads, captures.at[k]);
            }
            for (uint32_t k = 0; k < s->outer_calls[func].n; k++)
                record_captures(s, func, s->outer_calls[func].at[k]);
            s->captures[func] = copy_list(s, s->reads.at, s->reads.n);
        }
        if (f->params.n - f->n_captures + s->captures[func].n > BYI_MAX_ARGS)
            return false;
    }
    return true;
}

/* --- building ------------------------------------------------------------- */

static void set_local(struct lifter *s, uint32_t func, value v, byi_id id)
{
    s->seen[v] = func + 1;
    s->local[v] = id;
}

static byi_id node_in_func(const struct lifter *s, uint32_t func, value v)
{
    (void)func;
    assert(s->seen[v] == func + 1);
    return s->local[v];
}

/* Returns the next of the names c0, c1, ... that none of the function's
 * `n_declared` first parameters has. */
static const char *capture_name(struct lifter *s, const struct byi_func *f,
                                uint32_t n_declared, uint32_t *next)
{
    for (;;) {
        const char *name = byi_arena_printf(s->scratch, "c%u", (*next)++);
        uint32_t i = 0;
        while (i < n_declared && strcmp(f->param_names.at[i], name) != 0)
            i++;
        if (i == n_declared)
            return name;
    }
}

/* Append the captures to the parameters of the lifted function. */
static void add_captures(struct lifter *s, uint32_t func, struct byi_func *f)
{
    const uint32_t n_declared = f->params.n;
    uint32_t next = 0;
    for (uint32_t i = 0; i < s->captures[func].n; i++) {
        const value v = s->captures[func].at[i];
        byi_add_param(s->m, f, capture_name(s, f, n_declared, &next),
                      node_of(s, v)->type);
    }
}

static const struct byi_type *global_type(struct lifter *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    const uint32_t n_declared = f->params.n - f->n_captures;
    const uint32_t n = n_declared + s->captures[func].n;
    const struct byi_type **types =
        byi_arena_calloc(s->scratch, n, sizeof *types);
    for (uint32_t i = 0; i < n_declared; i++)
        types[i] = f->nodes.at[f->params.at[i]].type;
    for (uint32_t i = n_declared; i < n; i++)
        types[i] = node_of(s, s->captures[func].at[i - n_declared])->type;
    return byi_type_func(s->m->arena, n, types, f->nodes.at[f->result].type);
}

static byi_id add_global(struct lifter *s, struct byi_func *f, uint32_t func)
{
    const struct byi_node node = {.kind = BYI_GLOBAL,
                                  .index = func,
                                  .type = global_type(s, func),
                                  .sources = byi_sources_none()};
    return byi_add_like(f, &node, NULL, 0);
}

/* Make the literal fn (own parameters) { @lifted(own parameters, captures) }.
 * Returns its function. */
static uint32_t make_closure(struct lifter *s, uint32_t func)
{
    const struct byi_func *old = s->m->funcs.at[func];
    const uint32_t n_declared = old->params.n - old->n_captures;
    const uint32_t index = byi_func_new(s->m, NULL);
    struct byi_func *f = s->m->funcs.at[index];
    for (uint32_t i = 0; i < n_declared; i++)
        byi_add_param(s->m, f, old->param_names.at[i],
                      old->nodes.at[old->params.at[i]].type);
    add_captures(s, func, f);
    f->n_captures = f->params.n - n_declared;
    const struct byi_node call = {.kind = BYI_CALL,
                                  .type = old->nodes.at[old->result].type,
                                  .sources = byi_sources_none()};
    byi_id *args = byi_args_new(s->m, f->params.n + 1);
    args[0] = add_global(s, f, func);
    for (uint32_t i = 0; i < f->params.n; i++)
        args[i + 1] = f->params.at[i];
    f->result = byi_add_like(f, &call, args, f->params.n + 1);
    return index;
}

/* Returns the values that `func` passes for the captures of `of`, after n
 * arguments. */
static byi_id *pass_captures(struct lifter *s, uint32_t func, uint32_t of,
                             uint32_t n)
{
    const struct value_list *captures = &s->captures[of];
    byi_id *args = byi_args_new(s->m, n + captures->n);
    for (uint32_t i = 0; i < captures->n; i++)
        args[n + i] = node_in_func(s, func, captures->at[i]);
    return args;
}

static void build_literal(struct lifter *s, uint32_t func, value v,
                          const struct byi_node *fn)
{
    struct byi_func *f = s->new_funcs[func];
    const uint32_t n = s->captures[fn->index].n;
    if (s->lift[fn->index] && !s->read_as_value[v])
        return;
    if (s->lift[fn->index] && n == 0) {
        set_local(s, func, v, add_global(s, f, fn->index));
        return;
    }
    struct byi_node node = *fn;
    if (s->lift[fn->index])
        node.index = make_closure(s, fn->index);
    set_local(s, func, v,
              byi_add_like(f, &node, pass_captures(s, func, fn->index, 0), n));
}

static void build_call(struct lifter *s, uint32_t func, value v,
                       const struct byi_node *call, uint32_t callee)
{
    struct byi_func *f = s->new_funcs[func];
    byi_id *args = pass_captures(s, func, callee, call->n_args);
    args[0] = add_global(s, f, callee);
    for (uint32_t i = 1; i < call->n_args; i++)
        args[i] =
            node_in_func(s, func, s->def[s->values.base[func] + call->args[i]]);
    set_local(
        s, func, v,
        byi_add_like(f, call, args, call->n_args + s->captures[callee].n));
}

static void build_node(struct lifter *s, uint32_t func, byi_id id)
{
    const struct byi_node *node = &s->m->funcs.at[func]->nodes.at[id];
    const value base = s->values.base[func];
    if (node->kind == BYI_PARAM)
        return;
    if (node->kind == BYI_FN && s->inner[node->index]) {
        build_literal(s, func, base + id, node);
        return;
    }
    const uint32_t callee = callee_of(s, func, node);
    if (callee != UINT32_MAX) {
        build_call(s, func, base + id, node, callee);
        return;
    }
    byi_id *args = byi_args_new(s->m, node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++)
        args[i] = node_in_func(s, func, s->def[base + node->args[i]]);
    set_local(s, func, base + id,
              byi_add_like(s->new_funcs[func], node, args, node->n_args));
}

static void build_function(struct lifter *s, uint32_t func)
{
    const struct byi_func *old = s->m->funcs.at[func];
    struct byi_func *f = byi_func_like(s->m, old, NULL);
    s->new_funcs[func] = f;
    uint32_t n_declared = f->params.n;
    if (s->inner[func]) {
        n_declared -= old->n_captures;
        f->nodes.n = f->params.n = f->param_names.n = n_declared;
        add_captures(s, func, f);
        f->n_captures = s->lift[func] ? 0 : s->captures[func].n;
    }
    for (uint32_t i = 0; i < n_declared; i++)
        set_local(s, func, s->values.base[func] + old->params.at[i],
                  f->params.at[i]);
    for (uint32_t i = n_declared; i < f->params.n; i++)
        set_local(s, func, s->captures[func].at[i - n_declared],
                  f->params.at[i]);
    for (byi_id id = 0; id < old->nodes.n; id++)
        build_node(s, func, id);
    f->result =
        node_in_func(s, func, s->def[s->values.base[func] + old->result]);
    if (s->lift[func])
        f->name = byi_arena_str(s->m->arena, s->name[func]);
}

/* --- the pass ------------------------------------------------------------- */

static void set_up_functions(struct lifter *s)
{
    const size_t funcs = s->m->funcs.n;
    struct byi_arena *a = s->scratch;
    s->graph = byi_call_graph(s->m, a);
    s->inner = byi_arena_calloc(a, funcs, sizeof *s->inner);
    s->lift = byi_arena_calloc(a, funcs, sizeof *s->lift);
}

/* Allocate the tables that only a module with literals needs. */
static void set_up_values(struct lifter *s)
{
    const size_t funcs = s->m->funcs.n;
    struct byi_arena *a = s->scratch;
    s->values = byi_call_graph_number(s->m, &s->graph, a);
    const size_t n = s->values.n;
    s->name = byi_arena_calloc(a, funcs, sizeof *s->name);
    s->captures = byi_arena_calloc(a, funcs, sizeof *s->captures);
    s->outer_calls = byi_arena_calloc(a, funcs, sizeof *s->outer_calls);
    s->seen_func = byi_arena_calloc(a, funcs, sizeof *s->seen_func);
    s->new_funcs = byi_arena_calloc(a, funcs, sizeof *s->new_funcs);
    s->order = byi_arena_calloc(a, funcs, sizeof *s->order);
    s->read_as_value = byi_arena_calloc(a, n, sizeof *s->read_as_value);
    s->seen = byi_arena_calloc(a, n, sizeof *s->seen);
    s->local = byi_arena_calloc(a, n, sizeof *s->local);
    s->def = byi_arena_calloc(a, n, sizeof *s->def);
    for (value v = 0; v < n; v++)
        s->def[v] = v;
}

/* Find the literals to lift. Returns whether there are any. */
static bool find_literals(struct lifter *s)
{
    bool any = false;
    for (uint32_t i = 0; i < s->graph.n; i++)
        classify_function(s, s->graph.order[i]);
    for (uint32_t i = 0; i < s->graph.n; i++)
        keep_branches(s, s->graph.order[i]);
    for (uint32_t i = 0; i < s->graph.n; i++)
        any = any || s->lift[s->graph.order[i]];
    return any;
}

static void lift_all(struct lifter *s)
{
    uint32_t *next = byi_arena_calloc(s->scratch, s->m->funcs.n, sizeof *next);
    struct lift_visit *visits =
        byi_arena_calloc(s->scratch, s->m->funcs.n, sizeof *visits);
    const uint32_t n = s->m->funcs.n;
    for (uint32_t i = 0; i < n; i++)
        if (s->graph.reached[i] && !s->graph.closed[i] && !s->inner[i])
            visit_from(s, i, next, visits);
    for (uint32_t i = 0; i < s->n_order; i++)
        find_captures(s, s->order[i]);
    if (!add_outer_captures(s))
        return;
    memset(s->seen, 0, s->values.n * sizeof *s->seen);
    for (uint32_t i = 0; i < s->n_order; i++)
        build_function(s, s->order[i]);
    for (uint32_t i = 0; i < s->n_order; i++)
        byi_func_replace(s->m, s->order[i], s->new_funcs[s->order[i]]);
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    (void)err;
    struct lifter s = {.m = m, .scratch = scratch};
    set_up_functions(&s);
    if (find_literals(&s)) {
        set_up_values(&s);
        lift_all(&s);
    }
    byi_vec_free(s.reads.at);
    byi_vec_free(s.calls.at);
    return BYOC_OK;
}

const struct byi_pass byi_pass_lambda_lift = {
    .name = "LambdaLift",
    .summary = "turn function literals into globals",
    .opt_level = 1,
    .run_module = run,
};
