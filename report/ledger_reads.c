/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_reads.c: finds which model nodes each model node reads, in a module as
 * imported. A value without a model node is replaced by the values that it
 * stands for. These are the tuple's operand for a field, the operands of the
 * function's calls for a parameter, and the result for a function.
 */
#include "ledger_internal.h"

#include <stdlib.h>

/* Following long chains of such values takes quadratic time. No importer
 * creates them, but text may. Reads beyond this many steps are omitted. */
enum { MAX_STEPS = 1 << 24 };

/* A model node, and a model node that it reads. */
struct read_pair {
    uint32_t reader, read;
};

/* Values are numbered through all functions: base[function] + id. */
struct reads_finder {
    const struct byi_module *m;
    struct byi_arena *scratch;
    uint32_t *base; /* of each function; base[n] is the total */
    uint32_t *func; /* of each value */
    struct byi_number_sets captured; /* of each parameter: captured values */
    /* of each parameter: captured values, and operands of calls */
    struct byi_number_sets bound;
    uint32_t *seen; /* of each value: the last reader it was visited for */
    uint32_t steps;
    BYI_VEC(uint32_t) stack;
    BYI_VEC(struct read_pair) pairs;
};

static void add_pair(struct reads_finder *r, uint32_t reader, uint32_t read)
{
    const struct read_pair pair = {reader, read};
    BYI_PUSH(&r->pairs, pair);
}

static int compare_pairs(const void *a, const void *b)
{
    const struct read_pair *x = a, *y = b;
    if (x->reader != y->reader)
        return x->reader < y->reader ? -1 : 1;
    return (x->read > y->read) - (x->read < y->read);
}

/* Turn the pairs into sets, one for each reader, and clear the pairs. */
static struct byi_number_sets take_sets(struct reads_finder *r, uint32_t n,
                                        struct byi_arena *arena)
{
    uint32_t *first = byi_arena_calloc(arena, (size_t)n + 1, sizeof *first);
    uint32_t *at = byi_arena_calloc(arena, r->pairs.n, sizeof *at), n_at = 0;
    if (r->pairs.n)
        qsort(r->pairs.at, r->pairs.n, sizeof *r->pairs.at, compare_pairs);
    for (uint32_t i = 0; i < r->pairs.n; i++) {
        const struct read_pair *pair = &r->pairs.at[i];
        if (i && compare_pairs(pair, pair - 1) == 0)
            continue;
        at[n_at++] = pair->read;
        first[pair->reader + 1]++;
    }
    for (uint32_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    r->pairs.n = 0;
    return (struct byi_number_sets){.n = n, .first = first, .at = at};
}

static const struct byi_node *node_of(const struct reads_finder *r,
                                      uint32_t value)
{
    const uint32_t func = r->func[value];
    return &r->m->funcs.at[func]->nodes.at[value - r->base[func]];
}

/* The node BYI_FN or BYI_GLOBAL of a function value, captured or not; NULL if
 * it is unknown. */
static const struct byi_node *fn_of(const struct reads_finder *r,
                                    uint32_t value)
{
    enum { MAX_SCOPES = 256 };
    const struct byi_node *node = node_of(r, value);
    for (uint32_t i = 0; i < MAX_SCOPES && node->kind == BYI_PARAM; i++) {
        const uint32_t *first = &r->captured.first[value];
        if (first[1] - first[0] != 1)
            return NULL;
        value = r->captured.at[first[0]];
        node = node_of(r, value);
    }
    return byi_node_refers(node) ? node : NULL;
}

/* Set base[], func[] and seen[]. */
static void number_values(struct reads_finder *r)
{
    const struct byi_module *m = r->m;
    r->base =
        byi_arena_calloc(r->scratch, (size_t)m->funcs.n + 1, sizeof *r->base);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        r->base[i + 1] = r->base[i] + m->funcs.at[i]->nodes.n;
    const uint32_t n = r->base[m->funcs.n];
    r->func = byi_arena_calloc(r->scratch, n, sizeof *r->func);
    r->seen = byi_arena_calloc(r->scratch, n, sizeof *r->seen);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        for (uint32_t v = r->base[i]; v < r->base[i + 1]; v++)
            r->func[v] = i;
}

/* Bind the parameters of function `func`, from number `first` on, to the values
 * `args` of function `caller`. */
static void bind_params(struct reads_finder *r, uint32_t caller, uint32_t func,
                        uint32_t first, const byi_id *args, uint32_t n)
{
    const struct byi_func *to = r->m->funcs.at[func];
    for (uint32_t i = 0; i < n && first + i < to->params.n; i++)
        add_pair(r, r->base[func] + to->params.at[first + i],
                 r->base[caller] + args[i]);
}

/* List the values of each parameter: captures and, if `calls`, also operands of
 * calls, for which captured callees must be known. */
static struct byi_number_sets list_param_values(struct reads_finder *r,
                                                bool calls)
{
    const struct byi_module *m = r->m;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        for (byi_id id = 0; id < f->nodes.n && !f->dead; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            if (node->kind == BYI_FN) {
                const struct byi_func *to = m->funcs.at[node->index];
                bind_params(r, i, node->index, to->params.n - to->n_captures,
                            node->args, node->n_args);
            }
            const struct byi_node *fn =
                calls && node->kind == BYI_CALL
                    ? fn_of(r, r->base[i] + node->args[0])
                    : NULL;
            if (fn)
                bind_params(r, i, fn->index, 0, node->args + 1,
                            node->n_args - 1);
        }
    }
    return take_sets(r, r->base[m->funcs.n], r->scratch);
}

/* Push a value to visit for this reader, unless it was pushed before. */
static void push_value(struct reads_finder *r, uint32_t value, uint32_t reader)
{
    if (r->seen[value] == reader + 1 || r->steps == MAX_STEPS)
        return;
    r->seen[value] = reader + 1;
    r->steps++;
    BYI_PUSH(&r->stack, value);
}

/* Push the values that `value` reads or stands for. */
static void follow_value(struct reads_finder *r, uint32_t value,
                         uint32_t reader)
{
    const struct byi_node *node = node_of(r, value);
    const uint32_t base = r->base[r->func[value]];
    uint32_t n = node->n_args;
    if (node->kind == BYI_PARAM)
        for (uint32_t i = r->bound.first[value]; i < r->bound.first[value + 1];
             i++)
            push_value(r, r->bound.at[i], reader);
    if (byi_node_refers(node)) {
        const struct byi_func *fn = r->m->funcs.at[node->index];
        if (fn->result < fn->nodes.n)
            push_value(r, r->base[node->index] + fn->result, reader);
        return; /* captures are bound to parameters */
    }
    if (node->kind == BYI_GET) {
        const struct byi_node *tuple = node_of(r, base + node->args[0]);
        if (tuple->kind == BYI_MAKE_TUPLE && !tuple->sources->n) {
            push_value(r, base + tuple->args[node->index], reader);
            return;
        }
    }
    if (node->kind == BYI_CALL && !node->sources->n &&
        fn_of(r, base + node->args[0]))
        n = 1; /* operands are bound to parameters */
    for (uint32_t i = 0; i < n; i++)
        push_value(r, base + node->args[i], reader);
}

/* Add the model nodes that the model nodes of this value read. */
static void read_value(struct reads_finder *r, uint32_t value)
{
    const struct byi_sources *to = node_of(r, value)->sources;
    if (!to->n)
        return;
    follow_value(r, value, value);
    while (r->stack.n) {
        const uint32_t read = r->stack.at[--r->stack.n];
        const struct byi_sources *from = node_of(r, read)->sources;
        for (uint32_t i = 0; i < to->n; i++)
            for (uint32_t k = 0; k < from->n && r->steps < MAX_STEPS; k++) {
                if (to->at[i] == from->at[k])
                    continue;
                add_pair(r, to->at[i], from->at[k]);
                r->steps++;
            }
        if (!from->n)
            follow_value(r, read, value);
    }
}

struct byi_number_sets byi_sources_reads(const struct byi_module *m,
                                         struct byi_arena *arena)
{
    struct reads_finder r = {.m = m, .scratch = byi_arena_new()};
    number_values(&r);
    r.captured = list_param_values(&r, false);
    r.bound = list_param_values(&r, true);
    for (uint32_t i = 0; i < m->funcs.n; i++)
        for (uint32_t v = r.base[i]; v < r.base[i + 1]; v++)
            if (!m->funcs.at[i]->dead)
                read_value(&r, v);
    const struct byi_number_sets reads = take_sets(&r, m->sources.n, arena);
    byi_vec_free(r.stack.at);
    byi_vec_free(r.pairs.at);
    byi_arena_free(&r.scratch);
    return reads;
}
