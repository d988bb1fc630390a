/* SPDX-License-Identifier: Apache-2.0 */
/* call_graph.c: finds the strongly connected components of the references
 * between functions (Tarjan, "Depth-first search and linear graph algorithms",
 * 1972), with an explicit stack instead of recursion.
 */
#include "call_graph.h"

/* A function whose nodes are being visited. */
struct call_visit {
    uint32_t func;
    byi_id next; /* the next node to visit */
};

/* The state of Tarjan's algorithm. */
struct scc_finder {
    const struct byi_module *m;
    struct byi_call_graph g;
    uint32_t n_visited;
    /* for each function: its place in the order of visits, from 1; 0: not
     * visited */
    uint32_t *number;
    uint32_t *lowlink;         /* Tarjan's lowlink */
    bool *on_stack;            /* for each function: it is on `stack` */
    struct call_visit *visits; /* unfinished ones, from the root downwards */
    uint32_t n_visits;
    uint32_t *stack; /* Tarjan's stack: visited, not in a component yet */
    uint32_t n_on_stack;
};

static void open_visit(struct scc_finder *s, uint32_t func)
{
    s->number[func] = s->lowlink[func] = ++s->n_visited;
    s->g.reached[func] = true;
    s->stack[s->n_on_stack++] = func;
    s->on_stack[func] = true;
    s->visits[s->n_visits++] = (struct call_visit){func, 0};
}

/* All references of `func` are visited: pop its component if `func` is the root
 * of one, then continue with the function that referred to it. */
static void close_visit(struct scc_finder *s, uint32_t func)
{
    if (s->lowlink[func] == s->number[func]) {
        const bool has_others = s->stack[s->n_on_stack - 1] != func;
        uint32_t at;
        do {
            at = s->stack[--s->n_on_stack];
            s->on_stack[at] = false;
            s->g.recursive[at] = s->g.recursive[at] || has_others;
            s->g.order[s->g.n++] = at;
        } while (at != func);
    }
    s->n_visits--;
    if (s->n_visits > 0) {
        const uint32_t outer = s->visits[s->n_visits - 1].func;
        if (s->lowlink[func] < s->lowlink[outer])
            s->lowlink[outer] = s->lowlink[func];
    }
}

static void follow_reference(struct scc_finder *s, uint32_t func,
                             const struct byi_node *node)
{
    const uint32_t to = node->index;
    if (node->kind == BYI_FN)
        s->g.n_fns[to]++;
    else
        s->g.n_globals[to]++;
    if (to == func)
        s->g.recursive[to] = true;
    if (!s->number[to]) {
        if (node->kind == BYI_FN)
            s->g.root[to] = s->g.root[func];
        open_visit(s, to);
    } else if (s->on_stack[to] && s->number[to] < s->lowlink[func]) {
        s->lowlink[func] = s->number[to];
    }
}

static void visit_from(struct scc_finder *s, uint32_t root)
{
    open_visit(s, root);
    while (s->n_visits > 0) {
        struct call_visit *v = &s->visits[s->n_visits - 1];
        const struct byi_func *f = s->m->funcs.at[v->func];
        if (!f->refers)
            v->next = f->nodes.n;
        while (v->next < f->nodes.n && !byi_node_refers(&f->nodes.at[v->next]))
            v->next++;
        if (v->next == f->nodes.n)
            close_visit(s, v->func);
        else
            follow_reference(s, v->func, &f->nodes.at[v->next++]);
    }
}

/* Mark the functions nested in closed functions as closed. Enclosing functions
 * come later in the order, so the walk is backwards. */
static void close_nested(struct scc_finder *s)
{
    for (uint32_t i = s->g.n; i-- > 0;) {
        const uint32_t func = s->g.order[i];
        const struct byi_func *f = s->m->funcs.at[func];
        s->g.closed[func] = s->g.closed[func] || byi_is_closed(f);
        for (byi_id id = 0; s->g.closed[func] && f->refers && id < f->nodes.n;
             id++)
            if (f->nodes.at[id].kind == BYI_FN)
                s->g.closed[f->nodes.at[id].index] = true;
    }
}

struct byi_call_graph byi_call_graph(const struct byi_module *m,
                                     struct byi_arena *arena)
{
    const size_t n = m->funcs.n;
    struct scc_finder s = {
        .m = m,
        .g = {.order = byi_arena_calloc(arena, n, sizeof(uint32_t)),
              .reached = byi_arena_calloc(arena, n, sizeof(bool)),
              .recursive = byi_arena_calloc(arena, n, sizeof(bool)),
              .closed = byi_arena_calloc(arena, n, sizeof(bool)),
              .n_fns = byi_arena_calloc(arena, n, sizeof(uint32_t)),
              .n_globals = byi_arena_calloc(arena, n, sizeof(uint32_t)),
              .root = byi_arena_calloc(arena, n, sizeof(uint32_t))},
        .number = byi_arena_calloc(arena, n, sizeof(uint32_t)),
        .lowlink = byi_arena_calloc(arena, n, sizeof(uint32_t)),
        .on_stack = byi_arena_calloc(arena, n, sizeof(bool)),
        .visits = byi_arena_calloc(arena, n, sizeof(struct call_visit)),
        .stack = byi_arena_calloc(arena, n, sizeof(uint32_t)),
    };
    for (uint32_t i = 0; i < n; i++)
        s.g.root[i] = i;
    for (uint32_t i = 0; i < n; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->name && !s.number[i])
            visit_from(&s, i);
    close_nested(&s);
    return s.g;
}

struct byi_numbers byi_call_graph_number(const struct byi_module *m,
                                         const struct byi_call_graph *graph,
                                         struct byi_arena *arena)
{
    struct byi_numbers v = {
        .base = byi_arena_calloc(arena, m->funcs.n, sizeof *v.base)};
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        v.base[i] = v.n;
        v.n += graph->reached[i] ? m->funcs.at[i]->nodes.n : 0;
    }
    v.owner = byi_arena_calloc(arena, v.n, sizeof *v.owner);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        for (byi_id id = 0; graph->reached[i] && id < m->funcs.at[i]->nodes.n;
             id++)
            v.owner[v.base[i] + id] = i;
    return v;
}

void byi_call_graph_drop(struct byi_module *m, bool *needed,
                         struct byi_arena *scratch)
{
    uint32_t *pending = byi_arena_calloc(scratch, m->funcs.n, sizeof *pending);
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (needed[i])
            pending[n++] = i;
    while (n > 0) {
        const struct byi_func *f = m->funcs.at[pending[--n]];
        for (byi_id id = 0; f->refers && id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if ((node->kind != BYI_GLOBAL && node->kind != BYI_FN) ||
                needed[node->index])
                continue;
            needed[node->index] = true;
            pending[n++] = node->index;
        }
    }
    for (uint32_t i = 0; i < m->funcs.n; i++)
        m->funcs.at[i]->dead = m->funcs.at[i]->dead || !needed[i];
}
