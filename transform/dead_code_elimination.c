/* SPDX-License-Identifier: Apache-2.0 */
/* DeadCodeElimination: drop nodes and functions that no result needs.
 * requires: nothing
 * breaks:   ToBasicBlockNormalForm
 * leaves:   only nodes that are reachable from the result of their function,
 *           also among the nodes that `let` binds and those of nested
 *           functions; only functions that are reachable from @main or, without
 *           @main, from any named function.
 *           Parameters stay, except unread captures of branches and function
 *           literals, and unread parameters without symbolic dims of a function
 *           literal that its function only calls directly.
 *
 *   def @main(%x) {                         def @main(%x) {
 *     %0 = exp(%x);                           %1 = fn (%a) { abs(%a) };
 *     %1 = fn (%a, %b) { abs(%a) };   ==>     %1(%x)
 *     %1(%x, %0)                            }
 *   }
 *   def @unused(%x) { abs(%x) }
 */
#include "transform.h"

#include "call_graph.h"
#include "rewrite.h"

/* The state of the pass for one module. */
struct sweeper {
    struct byi_module *m;
    struct byi_arena *scratch;
    struct byi_call_graph graph;
    /* for each function: whether each parameter is unread; NULL: the function
     * keeps all parameters */
    bool **unread;
};

/* --- parameters ----------------------------------------------------------- */

/* Whether parameters of `func` may be removed: it is a literal or branch to
 * which one node refers, apart from its references to itself. */
static bool may_lose_params(const struct sweeper *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    uint32_t self_references = 0;
    if (f->name || s->graph.closed[func] || f->attr.operands)
        return false;
    for (byi_id id = 0; f->refers && id < f->nodes.n; id++)
        self_references +=
            f->nodes.at[id].kind == BYI_FN && f->nodes.at[id].index == func;
    return s->graph.n_fns[func] - self_references == 1;
}

/* Find the parameters without readers. Captures that a function only passes to
 * itself count as unread. */
static bool *find_unread(const struct sweeper *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    bool *is_read = byi_arena_calloc(s->scratch, f->nodes.n, sizeof *is_read);
    bool *unread = byi_arena_calloc(s->scratch, f->params.n, sizeof *unread);
    is_read[f->result] = true;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_FN && node->index == func)
            continue;
        for (uint32_t i = 0; i < node->n_args; i++)
            is_read[node->args[i]] = true;
    }
    for (uint32_t i = 0; i < f->params.n; i++)
        unread[i] = !is_read[f->params.at[i]];
    return unread;
}

/* Remove operands first + i with drop[i], i < n, from a node. */
static void drop_args(struct byi_module *m, struct byi_node *node,
                      uint32_t first, const bool *drop, uint32_t n)
{
    byi_id *args = byi_args_new(m, node->n_args);
    uint32_t n_left = 0;
    for (uint32_t i = 0; i < node->n_args; i++)
        if (i < first || i - first >= n || !drop[i - first])
            args[n_left++] = node->args[i];
    node->args = args;
    node->n_args = n_left;
}

/* Remove the parameters i with drop[i]. Their nodes, which have no readers,
 * become empty tuples, so that byi_sweep removes them. */
static void drop_params(struct sweeper *s, uint32_t func, const bool *drop)
{
    struct byi_func *f = s->m->funcs.at[func];
    const uint32_t n = f->params.n, n_declared = n - f->n_captures;
    uint32_t n_left = 0, n_captures = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (f->nodes.at[id].kind == BYI_FN && f->nodes.at[id].index == func)
            drop_args(s->m, &f->nodes.at[id], 0, drop + n_declared,
                      n - n_declared);
    for (uint32_t i = 0; i < n; i++) {
        struct byi_node *node = &f->nodes.at[f->params.at[i]];
        if (drop[i]) {
            node->kind = BYI_MAKE_TUPLE;
            continue;
        }
        n_captures += i >= n_declared;
        node->index = n_left;
        f->params.at[n_left] = f->params.at[i];
        f->param_names.at[n_left++] = f->param_names.at[i];
    }
    f->params.n = f->param_names.n = n_left;
    f->n_captures = n_captures;
    byi_sweep(s->m, f, s->scratch);
}

/* --- literals in their functions ------------------------------------------ */

/* Returns, by node of f, whether it is a literal that f only calls directly. */
static bool *find_called(const struct sweeper *s, const struct byi_func *f)
{
    bool *called = byi_arena_calloc(s->scratch, f->nodes.n, sizeof *called);
    for (byi_id id = 0; id < f->nodes.n; id++)
        called[id] = f->nodes.at[id].kind == BYI_FN;
    called[f->result] = false;
    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            if (i > 0 || f->nodes.at[id].kind != BYI_CALL)
                called[f->nodes.at[id].args[i]] = false;
    return called;
}

/* Remove the unread parameters of the literal `fn`. Returns whether there were
 * any. */
static bool trim_literal(struct sweeper *s, struct byi_node *fn, bool called)
{
    struct byi_func *g = s->m->funcs.at[fn->index];
    bool *drop = s->unread[fn->index];
    const uint32_t n_declared = g->params.n - g->n_captures;
    bool any = false;
    for (uint32_t i = 0; i < g->params.n; i++) {
        const struct byi_type *type = g->nodes.at[g->params.at[i]].type;
        drop[i] = drop[i] &&
                  (i >= n_declared || (called && byi_type_is_static(type) &&
                                       !s->graph.recursive[fn->index]));
        any = any || drop[i];
    }
    if (!any)
        return false;
    drop_args(s->m, fn, 0, drop + n_declared, g->n_captures);
    drop_params(s, fn->index, drop);
    fn->type = byi_func_type(s->m, fn->index);
    return true;
}

/* Remove unread parameters of the literals of `func` and the arguments of their
 * calls. Returns whether there were any. */
static bool trim_literals(struct sweeper *s, uint32_t func)
{
    struct byi_func *f = s->m->funcs.at[func];
    if (!f->refers)
        return false;
    const bool *called = find_called(s, f);
    bool any = false;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_FN && node->index != func &&
            s->unread[node->index])
            any = trim_literal(s, node, called[id]) || any;
        if (node->kind != BYI_CALL)
            continue;
        const struct byi_node *fn = &f->nodes.at[node->args[0]];
        if (fn->kind == BYI_FN && called[node->args[0]] && fn->index != func &&
            s->unread[fn->index])
            drop_args(s->m, node, 1, s->unread[fn->index], node->n_args - 1);
    }
    return any;
}

/* Process nested functions first, so that enclosing functions then drop the
 * values that were passed only to removed parameters. */
static void sweep_functions(struct sweeper *s)
{
    for (uint32_t i = 0; i < s->graph.n; i++) {
        const uint32_t func = s->graph.order[i];
        struct byi_func *f = s->m->funcs.at[func];
        byi_sweep(s->m, f, s->scratch);
        if (!s->graph.closed[func] && trim_literals(s, func))
            byi_sweep(s->m, f, s->scratch);
        if (may_lose_params(s, func))
            s->unread[func] = find_unread(s, func);
    }
}

/* --- functions ------------------------------------------------------------ */

static void drop_functions(struct byi_module *m, struct byi_arena *scratch)
{
    const uint32_t main_func = byi_module_entry(m);
    bool *needed = byi_arena_calloc(scratch, m->funcs.n, sizeof *needed);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        needed[i] = !m->funcs.at[i]->dead &&
                    (main_func == UINT32_MAX ? m->funcs.at[i]->name != NULL
                                             : i == main_func);
    byi_call_graph_drop(m, needed, scratch);
}

static enum byoc_status run(struct byi_module *m, struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    (void)ctx;
    (void)err;
    struct sweeper s = {
        .m = m,
        .scratch = scratch,
        .graph = byi_call_graph(m, scratch),
        .unread = byi_arena_calloc(scratch, m->funcs.n, sizeof(bool *)),
    };
    sweep_functions(&s);
    drop_functions(m, scratch);
    return BYOC_OK;
}

/* After an argument is dropped, all remaining readers of its value may be in a
 * lower scope. */
static const char *const breaks[] = {"ToBasicBlockNormalForm", NULL};

const struct byi_pass byi_pass_dead_code_elimination = {
    .name = "DeadCodeElimination",
    .summary = "drop nodes, captures and functions that no result needs",
    .opt_level = 0,
    .breaks = breaks,
    .run_module = run,
};
