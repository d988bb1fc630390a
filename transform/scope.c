/* SPDX-License-Identifier: Apache-2.0 */
/* scope.c: finds the scope of each value and moves the value there. The scope
 * is the lowest common ancestor of the scopes of its readers. A backward walk
 * visits readers first and enters the branches of an `if` once the `if` has a
 * scope. So the tree of scopes grows only at leaves, and skew-binary jump
 * pointers find ancestors (Myers, "An applicative random-access stack", 1983).
 * A capture is not a reader: readers inside the branch count as readers of the
 * value outside.
 */
#include "scope.h"

#include <assert.h>

enum {
    NOWHERE = 0, /* no reader yet; scopes count from 1 */
    /* an `if` is not moved deeper, since the text form and other walks of
     * nested functions limit the depth */
    MAX_DEPTH = 64
};

/* A value of the module, by the number of its node: base[func] + id. */
typedef uint32_t value;

/* A scope in the tree of scopes; `jump` is an ancestor. */
struct scope_entry {
    uint32_t func, parent, jump, depth;
    uint32_t n_captures;
    const value *captures;
    struct byi_func *new_func;
};

/* A function whose nodes are being visited. */
struct scope_walk {
    uint32_t func;
    byi_id next; /* nodes below this one are not visited yet */
};

/* All scopes of a module. */
struct byi_scopes {
    const struct byi_module *m;
    struct byi_module *rebuilt; /* the same module, when it is rebuilt */
    struct byi_arena *scratch;
    struct byi_call_graph graph;
    bool *branch; /* for each function: it is a branch of an `if` */
    struct byi_numbers values;
    /* for each value: the value that a capture stands for, otherwise itself */
    value *def;
    uint32_t *scope_of;         /* for each value: the scope it belongs to */
    uint32_t *scope_of_func;    /* for each function: its scope */
    struct scope_entry *scopes; /* from 1 */
    uint32_t n_scopes;
    uint32_t first; /* the scope of the function that is being assigned   */
    value *order;   /* that function's values, readers before their operands */
    uint32_t n_order;
    struct scope_walk *walks;
    uint32_t n_walks;
    /* for the rebuild, by value: the last scope that got a copy of it, and the
     * copy */
    uint32_t *seen, *seen_atom;
    byi_id *local, *local_atom;
    bool *shared; /* for each value: a function or branch captures it */
    value *members, *member_ends; /* see sort_members() */
};

static const struct byi_node *node_of(const struct byi_scopes *s, value v)
{
    return byi_numbers_node(s->m, &s->values, v);
}

/* Whether the node is copied to each scope that reads it, instead of moved. */
static bool is_atom(const struct byi_node *node)
{
    return node->kind == BYI_CONST || node->kind == BYI_GLOBAL;
}

/* Whether the node is a function's reference to itself, which cannot move. */
static bool is_self(const struct byi_node *node, uint32_t func)
{
    return node->kind == BYI_FN && node->index == func;
}

static bool is_branch(const struct byi_scopes *s, const struct byi_node *node)
{
    return node->kind == BYI_FN && s->branch[node->index];
}

/* --- which functions are branches ---------------------------------------- */

static bool can_be_branch(const struct byi_func *f)
{
    return f->params.n == f->n_captures && !byi_is_closed(f) &&
           !f->attr.from_pattern && !f->attr.global_symbol &&
           !f->attr.operands && !f->attr.inlined && f->result_names.n == 0;
}

/* Find the function literals whose only reader is one `if`, as its branch. */
static void find_branches(struct byi_scopes *s, uint32_t func)
{
    const struct byi_func *f = s->m->funcs.at[func];
    if (!f->refers)
        return;
    uint32_t *reads = byi_arena_calloc(s->scratch, f->nodes.n, sizeof *reads);
    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            reads[f->nodes.at[id].args[i]]++;
    reads[f->result]++;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 1; node->kind == BYI_IF && i < 3; i++) {
            const struct byi_node *fn = &f->nodes.at[node->args[i]];
            if (fn->kind == BYI_FN && !fn->let && reads[node->args[i]] == 1 &&
                s->graph.n_fns[fn->index] == 1)
                s->branch[fn->index] = can_be_branch(s->m->funcs.at[fn->index]);
        }
    }
}

/* --- setting up ----------------------------------------------------------- */

struct byi_scopes *byi_scopes_new(const struct byi_module *m,
                                  struct byi_arena *scratch)
{
    struct byi_scopes *s = byi_arena_alloc(scratch, sizeof *s);
    const size_t funcs = m->funcs.n;
    s->m = m;
    s->scratch = scratch;
    s->graph = byi_call_graph(m, scratch);
    s->branch = byi_arena_calloc(scratch, funcs, sizeof *s->branch);
    s->scope_of_func =
        byi_arena_calloc(scratch, funcs, sizeof *s->scope_of_func);
    s->scopes = byi_arena_calloc(scratch, funcs + 1, sizeof *s->scopes);
    s->walks = byi_arena_calloc(scratch, funcs, sizeof *s->walks);
    s->values = byi_call_graph_number(m, &s->graph, scratch);
    const size_t n = s->values.n;
    s->def = byi_arena_calloc(scratch, n, sizeof *s->def);
    for (value v = 0; v < n; v++)
        s->def[v] = v;
    s->scope_of = byi_arena_calloc(scratch, n, sizeof *s->scope_of);
    s->order = byi_arena_calloc(scratch, n, sizeof *s->order);
    s->members = byi_arena_calloc(scratch, n, sizeof *s->members);
    s->member_ends =
        byi_arena_calloc(scratch, funcs + 2, sizeof *s->member_ends);
    s->seen = byi_arena_calloc(scratch, n, sizeof *s->seen);
    s->seen_atom = byi_arena_calloc(scratch, n, sizeof *s->seen_atom);
    s->local = byi_arena_calloc(scratch, n, sizeof *s->local);
    s->local_atom = byi_arena_calloc(scratch, n, sizeof *s->local_atom);
    s->shared = byi_arena_calloc(scratch, n, sizeof *s->shared);
    for (uint32_t i = 0; i < s->graph.n; i++)
        if (!s->graph.closed[s->graph.order[i]])
            find_branches(s, s->graph.order[i]);
    return s;
}

bool byi_scopes_is_root(const struct byi_scopes *s, uint32_t func)
{
    return s->graph.reached[func] && !s->graph.closed[func] && !s->branch[func];
}

uint32_t byi_scopes_holder(const struct byi_scopes *s, uint32_t func)
{
    return s->graph.root[func];
}

/* --- assigning scopes ----------------------------------------------------- */

/* Returns the lowest common ancestor of two scopes. */
static uint32_t common_ancestor(const struct byi_scopes *s, uint32_t a,
                                uint32_t b)
{
    const struct scope_entry *at = s->scopes;
    if (at[a].depth < at[b].depth) {
        const uint32_t c = a;
        a = b;
        b = c;
    }
    while (at[a].depth > at[b].depth)
        a = at[at[a].jump].depth >= at[b].depth ? at[a].jump : at[a].parent;
    while (a != b) {
        const bool can_jump = at[a].jump != at[b].jump;
        a = can_jump ? at[a].jump : at[a].parent;
        b = can_jump ? at[b].jump : at[b].parent;
    }
    return a;
}

/* Record that node `id` of `func` has a reader in `scope`. */
static void record_reader(struct byi_scopes *s, uint32_t func, byi_id id,
                          uint32_t scope)
{
    if (is_atom(&s->m->funcs.at[func]->nodes.at[id]))
        return; /* an atom moves with its reader */
    const value v = s->def[s->values.base[func] + id];
    s->scope_of[v] = s->scope_of[v] == NOWHERE
                         ? scope
                         : common_ancestor(s, s->scope_of[v], scope);
}

/* Add the scope of `func` below scope `parent`; NOWHERE: as a root. */
static void enter_scope(struct byi_scopes *s, uint32_t func, uint32_t parent)
{
    const uint32_t scope = ++s->n_scopes;
    struct scope_entry *at = s->scopes;
    if (parent == NOWHERE) {
        at[scope] =
            (struct scope_entry){.func = func, .parent = scope, .jump = scope};
    } else {
        const uint32_t jump = at[parent].jump;
        const bool merge = at[parent].depth - at[jump].depth ==
                           at[jump].depth - at[at[jump].jump].depth;
        at[scope] = (struct scope_entry){.func = func,
                                         .parent = parent,
                                         .jump = merge ? at[jump].jump : parent,
                                         .depth = at[parent].depth + 1};
    }
    s->scope_of_func[func] = scope;
    const struct byi_func *f = s->m->funcs.at[func];
    s->walks[s->n_walks++] = (struct scope_walk){func, f->nodes.n};
    record_reader(s, func, f->result, scope);
}

static void enter_branch(struct byi_scopes *s, uint32_t outer,
                         const struct byi_node *fn, uint32_t parent)
{
    const struct byi_func *body = s->m->funcs.at[fn->index];
    for (uint32_t i = 0; i < fn->n_args; i++)
        s->def[s->values.base[fn->index] + body->params.at[i]] =
            s->def[s->values.base[outer] + fn->args[i]];
    enter_scope(s, fn->index, parent);
}

/* Node `id` has its scope: record it as a reader of its operands. */
static void record_reads(struct byi_scopes *s, uint32_t func, byi_id id)
{
    const struct byi_func *f = s->m->funcs.at[func];
    const struct byi_node *node = &f->nodes.at[id];
    const value v = s->values.base[func] + id;
    if (s->scope_of[v] == NOWHERE || node->kind == BYI_PARAM || is_atom(node) ||
        is_branch(s, node))
        return;
    if (is_self(node, func) ||
        (node->kind == BYI_IF && s->scopes[s->scope_of[v]].depth >= MAX_DEPTH))
        s->scope_of[v] = s->scope_of_func[func];
    const uint32_t scope = s->scope_of[v];
    s->order[s->n_order++] = v;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_node *arg = &f->nodes.at[node->args[i]];
        if (node->kind == BYI_IF && i > 0 && is_branch(s, arg))
            enter_branch(s, func, arg, scope);
        else
            record_reader(s, func, node->args[i], scope);
    }
}

void byi_scopes_assign(struct byi_scopes *s, uint32_t func)
{
    assert(byi_scopes_is_root(s, func));
    s->n_order = 0;
    s->first = s->n_scopes + 1;
    enter_scope(s, func, NOWHERE);
    while (s->n_walks > 0) {
        struct scope_walk *w = &s->walks[s->n_walks - 1];
        if (w->next == 0)
            s->n_walks--;
        else
            record_reads(s, w->func, --w->next);
    }
}

bool byi_scopes_find_misplaced(const struct byi_scopes *s,
                               struct byi_misplaced_value *out)
{
    for (uint32_t i = s->n_order; i-- > 0;) {
        const value v = s->order[i];
        const uint32_t func = s->values.owner[v];
        if (s->scope_of[v] == s->scope_of_func[func])
            continue;
        *out = (struct byi_misplaced_value){.func = func,
                                            .id = v - s->values.base[func],
                                            .into =
                                                s->scopes[s->scope_of[v]].func};
        return true;
    }
    return false;
}

/* --- captures ------------------------------------------------------------- */

/* Returns the scope that holds a value. Parameters and captured constants do
 * not move. */
static uint32_t scope_holding(const struct byi_scopes *s, value v)
{
    const struct byi_node *node = node_of(s, v);
    if (node->kind == BYI_PARAM || is_atom(node))
        return s->scope_of_func[s->values.owner[v]];
    return s->scope_of[v];
}

/* Sort the values of the function by scope, operands before readers. The values
 * of scope i end at member_ends[i - first]. */
static void sort_members(struct byi_scopes *s)
{
    value *ends = s->member_ends;
    const uint32_t n = s->n_scopes + 1 - s->first;
    for (uint32_t i = 0; i <= n; i++)
        ends[i] = 0;
    for (uint32_t i = 0; i < s->n_order; i++)
        ends[s->scope_of[s->order[i]] - s->first + 1]++;
    for (uint32_t i = 0; i < n; i++)
        ends[i + 1] += ends[i];
    for (uint32_t i = s->n_order; i-- > 0;)
        s->members[ends[s->scope_of[s->order[i]] - s->first]++] = s->order[i];
}

static uint32_t first_member(const struct byi_scopes *s, uint32_t scope)
{
    return scope == s->first ? 0 : s->member_ends[scope - s->first - 1];
}

typedef BYI_VEC(value) value_vec;

/* Add v to the captures of `scope`, once, unless the scope holds v. */
static void add_capture(struct byi_scopes *s, uint32_t scope, value v,
                        value_vec *list)
{
    if (scope_holding(s, v) == scope || s->seen[v] == scope)
        return;
    s->seen[v] = scope;
    s->shared[v] = true;
    BYI_PUSH(list, v);
}

/* Capture the value of node `id` of `func` in `scope`, unless the value moves
 * there.
 */
static void capture_arg(struct byi_scopes *s, uint32_t scope, uint32_t func,
                        byi_id id, value_vec *list)
{
    if (!is_atom(&s->m->funcs.at[func]->nodes.at[id]))
        add_capture(s, scope, s->def[s->values.base[func] + id], list);
}

static void capture_node(struct byi_scopes *s, uint32_t scope, value v,
                         value_vec *list)
{
    const uint32_t func = s->values.owner[v];
    const struct byi_func *f = s->m->funcs.at[func];
    const struct byi_node *node = node_of(s, v);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_node *arg = &f->nodes.at[node->args[i]];
        if (node->kind == BYI_IF && i > 0 && is_branch(s, arg)) {
            const struct scope_entry *inner =
                &s->scopes[s->scope_of_func[arg->index]];
            for (uint32_t k = 0; k < inner->n_captures; k++)
                add_capture(s, scope, inner->captures[k], list);
            continue;
        }
        capture_arg(s, scope, func, node->args[i], list);
        if (node->kind == BYI_FN && !is_atom(arg))
            s->shared[s->def[s->values.base[func] + node->args[i]]] = true;
    }
}

/* Find the values that each branch captures, inner branches first. False if a
 * branch captures more than BYI_MAX_ARGS. */
static bool find_captures(struct byi_scopes *s)
{
    value_vec list = {0};
    bool fits = true;
    for (uint32_t i = s->n_scopes; fits && i > s->first; i--) {
        struct scope_entry *scope = &s->scopes[i];
        list.n = 0;
        for (uint32_t k = first_member(s, i); k < s->member_ends[i - s->first];
             k++)
            capture_node(s, i, s->members[k], &list);
        capture_arg(s, i, scope->func, s->m->funcs.at[scope->func]->result,
                    &list);
        scope->n_captures = list.n;
        scope->captures =
            byi_arena_copy(s->scratch, list.at, list.n * sizeof *list.at);
        fits = list.n <= BYI_MAX_ARGS;
    }
    for (uint32_t k = 0; k < s->member_ends[0]; k++)
        capture_node(s, s->first, s->members[k], &list);
    byi_vec_free(list.at);
    return fits;
}

/* --- rebuilding ----------------------------------------------------------- */

static void set_local(struct byi_scopes *s, uint32_t scope, value v, byi_id id)
{
    s->seen[v] = scope;
    s->local[v] = id;
}

/* Create the function of scope i, with its parameters. */
static void begin_function(struct byi_scopes *s, uint32_t i)
{
    struct scope_entry *scope = &s->scopes[i];
    const struct byi_func *old = s->m->funcs.at[scope->func];
    struct byi_func *f = byi_func_like(s->rebuilt, old, NULL);
    scope->new_func = f;
    if (i == s->first) {
        for (uint32_t k = 0; k < f->params.n; k++)
            set_local(s, i, s->values.base[scope->func] + old->params.at[k],
                      f->params.at[k]);
        return;
    }
    f->nodes.n = f->params.n = f->param_names.n = 0;
    f->n_captures = scope->n_captures;
    for (uint32_t k = 0; k < scope->n_captures; k++) {
        const value v = scope->captures[k];
        char name[16];
        snprintf(name, sizeof name, "c%u", k);
        set_local(s, i, v,
                  byi_add_param(s->rebuilt, f, name, node_of(s, v)->type));
    }
}

static byi_id atom_in(struct byi_scopes *s, uint32_t scope, value v)
{
    if (s->seen_atom[v] != scope) {
        s->seen_atom[v] = scope;
        s->local_atom[v] =
            byi_add_like(s->scopes[scope].new_func, node_of(s, v), NULL, 0);
    }
    return s->local_atom[v];
}

/* Returns the node that holds value v in `scope`. */
static byi_id value_in(struct byi_scopes *s, uint32_t scope, value v)
{
    if (is_atom(node_of(s, v)) && scope_holding(s, v) == scope)
        return atom_in(s, scope, v);
    assert(s->seen[v] == scope);
    return s->local[v];
}

static byi_id arg_in(struct byi_scopes *s, uint32_t scope, uint32_t func,
                     byi_id id)
{
    const value v = s->values.base[func] + id;
    if (is_atom(node_of(s, v)))
        return atom_in(s, scope, v);
    return value_in(s, scope, s->def[v]);
}

static byi_id make_branch(struct byi_scopes *s, uint32_t scope,
                          const struct byi_node *fn)
{
    const struct scope_entry *inner = &s->scopes[s->scope_of_func[fn->index]];
    byi_id *args = byi_args_new(s->rebuilt, inner->n_captures);
    for (uint32_t i = 0; i < inner->n_captures; i++)
        args[i] = value_in(s, scope, inner->captures[i]);
    return byi_add_like(s->scopes[scope].new_func, fn, args, inner->n_captures);
}

static void make_node(struct byi_scopes *s, uint32_t scope, value v,
                      enum byi_let let)
{
    const uint32_t func = s->values.owner[v];
    const struct byi_func *f = s->m->funcs.at[func];
    const struct byi_node *node = node_of(s, v);
    byi_id *args = byi_args_new(s->rebuilt, node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const struct byi_node *arg = &f->nodes.at[node->args[i]];
        args[i] = node->kind == BYI_IF && i > 0 && is_branch(s, arg)
                      ? make_branch(s, scope, arg)
                      : arg_in(s, scope, func, node->args[i]);
    }
    struct byi_func *new_func = s->scopes[scope].new_func;
    const byi_id id = byi_add_like(new_func, node, args, node->n_args);
    if (!is_self(node, func) && (let == BYI_LET_ALL || s->shared[v]))
        new_func->nodes.at[id].let = true;
    set_local(s, scope, v, id);
}

/* Rebuild the functions whose values have scopes. Returns false if a branch
 * would capture too many values; nothing has changed then. */
static bool rebuild_assigned(struct byi_scopes *s, struct byi_module *m,
                             enum byi_let let)
{
    assert(m == s->m);
    s->rebuilt = m;
    sort_members(s);
    if (!find_captures(s))
        return false;
    for (uint32_t i = s->n_scopes; i >= s->first; i--) {
        const struct scope_entry *scope = &s->scopes[i];
        begin_function(s, i);
        for (uint32_t k = first_member(s, i); k < s->member_ends[i - s->first];
             k++)
            make_node(s, i, s->members[k], let);
        scope->new_func->result =
            arg_in(s, i, scope->func, s->m->funcs.at[scope->func]->result);
    }
    for (uint32_t i = s->first; i <= s->n_scopes; i++)
        byi_func_replace(m, s->scopes[i].func, s->scopes[i].new_func);
    return true;
}

enum byoc_status byi_scopes_normalize(struct byi_module *m,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err)
{
    const enum byi_let *let = ctx->pass->data;
    (void)err;
    struct byi_scopes *s = byi_scopes_new(m, scratch);
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        if (!byi_scopes_is_root(s, i))
            continue;
        byi_scopes_assign(s, i);
        rebuild_assigned(s, m, *let);
    }
    return BYOC_OK;
}
