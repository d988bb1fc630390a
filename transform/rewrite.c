/* SPDX-License-Identifier: Apache-2.0 */
/* rewrite.c: the loop of all rewriting passes. A note per new node counts its
 * readers: the new ones, and the readers in the old function that are not
 * copied yet. When a replacement removes the last reader of a node, the node is
 * dead. Its operands lose a reader, and its sources are linked to the
 * replacement. At the end the links are converted to sets of sources.
 */
#include "rewrite.h"

#include <assert.h>

enum {
    MAX_ROUNDS = 16, /* rule applications per node, against cycles */
    MAX_SHARERS = 16 /* new nodes that share a replaced node's sources */
};

/* A node whose sources another node takes over. */
struct source_link {
    byi_id from;
    struct source_link *next;
};

/* What is recorded about a new node. */
struct byi_note {
    uint32_t readers;
    struct source_link *merged; /* nodes whose sources this one takes over */
};

/* --- queries ------------------------------------------------------------- */

const struct byi_node *byi_rw_node(const struct byi_rewrite *rw, byi_id id)
{
    assert(id < rw->f->nodes.n);
    return &rw->f->nodes.at[id];
}

bool byi_rw_is(const struct byi_rewrite *rw, byi_id id, enum byi_op_id op)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    return node->kind == BYI_CALL_OP && node->op == op;
}

byi_id byi_rw_arg(const struct byi_rewrite *rw, byi_id id, uint32_t i)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    assert(i < node->n_args);
    return node->args[i];
}

const struct byi_type *byi_rw_tensor(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_node(rw, id)->type;
    return type->kind == BYI_TENSOR ? type : NULL;
}

bool byi_rw_is_float(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_tensor(rw, id);
    return type && byi_dtype_is_float(type->dtype);
}

bool byi_rw_has_one_reader(const struct byi_rewrite *rw, byi_id id)
{
    return rw->notes.at[id].readers == 1;
}

static uint32_t count_reads(const struct byi_node *reader, byi_id id)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < reader->n_args; i++)
        n += reader->args[i] == id;
    return n;
}

bool byi_rw_has_only_inner_readers(const struct byi_rewrite *rw, byi_id root,
                                   const byi_id *inner, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t reads = count_reads(byi_rw_node(rw, root), inner[i]);
        for (uint32_t k = 0; k < n; k++)
            reads += count_reads(byi_rw_node(rw, inner[k]), inner[i]);
        if (reads != rw->notes.at[inner[i]].readers)
            return false;
    }
    return true;
}

bool byi_rw_view(const struct byi_rewrite *rw, byi_id id,
                 struct byi_tensor *view)
{
    return byi_const_view(rw->m, rw->f, id, view);
}

bool byi_rw_splat(const struct byi_rewrite *rw, byi_id id, double *value)
{
    struct byi_tensor t;
    if (!byi_rw_view(rw, id, &t))
        return false;
    if (!byi_dtype_is_float(t.dtype) && !byi_dtype_is_int(t.dtype) &&
        t.dtype != BYOC_BOOL)
        return false;
    const int64_t n = byi_elements(t.rank, t.dims);
    if (n < 1)
        return false;
    *value = byi_tensor_float(&t, 0);
    for (int64_t i = 1; i < n; i++)
        if (!(byi_tensor_float(&t, i) == *value))
            return false;
    return true;
}

bool byi_rw_is_value(const struct byi_rewrite *rw, byi_id id, double value)
{
    double found;
    return byi_rw_splat(rw, id, &found) && found == value;
}

bool byi_rw_ints(const struct byi_rewrite *rw, byi_id id, int64_t *values,
                 uint32_t max, uint32_t *n)
{
    struct byi_tensor t;
    if (!byi_rw_view(rw, id, &t) || !byi_dtype_is_int(t.dtype) || t.rank > 1)
        return false;
    const int64_t count = byi_elements(t.rank, t.dims);
    if (count < 0 || count > (int64_t)max)
        return false;
    for (int64_t i = 0; i < count; i++)
        values[i] = byi_tensor_int(&t, i);
    *n = (uint32_t)count;
    return true;
}

/* --- emitting ------------------------------------------------------------ */

byi_id byi_rw_call(struct byi_rewrite *rw, enum byi_op_id op,
                   const byi_id *args, uint32_t n, const struct byi_attr *attrs,
                   uint32_t n_attrs)
{
    for (uint32_t i = 0; i < n; i++)
        if (args[i] == BYI_NO_ID)
            return BYI_NO_ID;
    byi_id id = BYI_NO_ID;
    if (byi_add_call(rw->m, rw->f, op, args, n, attrs, n_attrs, NULL, &id,
                     NULL) != BYOC_OK)
        return BYI_NO_ID;
    return id;
}

byi_id byi_rw_op1(struct byi_rewrite *rw, enum byi_op_id op, byi_id a)
{
    return byi_rw_call(rw, op, &a, 1, NULL, 0);
}

byi_id byi_rw_op2(struct byi_rewrite *rw, enum byi_op_id op, byi_id a, byi_id b)
{
    return byi_rw_call(rw, op, (byi_id[]){a, b}, 2, NULL, 0);
}

byi_id byi_rw_call_like(struct byi_rewrite *rw, byi_id at, const byi_id *args)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    assert(node->kind == BYI_CALL_OP);
    for (uint32_t i = 0; i < node->n_args; i++)
        if (args[i] == BYI_NO_ID)
            return BYI_NO_ID;
    byi_id id = BYI_NO_ID;
    if (byi_add_op(rw->m, rw->f, node->op, args, node->n_args, node->attrs,
                   NULL, &id, NULL) != BYOC_OK)
        return BYI_NO_ID;
    return id;
}

bool byi_rw_alloc(struct byi_rewrite *rw, const struct byi_type *type,
                  struct byi_tensor *out)
{
    return byi_const_alloc(rw->m, type, out);
}

byi_id byi_rw_const(struct byi_rewrite *rw, const struct byi_type *type,
                    const struct byi_tensor *t)
{
    const uint32_t index = byi_const_add(rw->m, type, t->data, true);
    return byi_add_const(rw->m, rw->f, index, NULL);
}

byi_id byi_rw_int_vector(struct byi_rewrite *rw, const int64_t *values,
                         uint32_t n)
{
    const int64_t dim = (int64_t)n;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, BYOC_I64, 1, &dim);
    const uint32_t index = byi_const_add(rw->m, type, values, false);
    return byi_add_const(rw->m, rw->f, index, NULL);
}

byi_id byi_rw_const_as(struct byi_rewrite *rw, byi_id constant, uint32_t rank,
                       const int64_t *dims)
{
    struct byi_tensor t;
    if (!byi_rw_view(rw, constant, &t) ||
        byi_elements(rank, dims) != byi_elements(t.rank, t.dims))
        return BYI_NO_ID;
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, t.dtype, rank, dims);
    return byi_rw_const(rw, type, &t);
}

void byi_rw_undo(struct byi_rewrite *rw, byi_id before)
{
    rw->f->nodes.n = before;
    if (rw->notes.n > before)
        rw->notes.n = before;
}

void byi_rw_merge(struct byi_rewrite *rw, byi_id to, byi_id from)
{
    while (rw->notes.n < rw->f->nodes.n)
        BYI_PUSH(&rw->notes, ((struct byi_note){0}));
    if (to == from || byi_rw_node(rw, to)->kind == BYI_PARAM)
        return;
    if (!rw->notes.at[from].merged && !byi_rw_node(rw, from)->sources->n)
        return;
    struct source_link *l = byi_arena_alloc(rw->scratch, sizeof *l);
    *l = (struct source_link){from, rw->notes.at[to].merged};
    rw->notes.at[to].merged = l;
    rw->merged = true;
}

/* --- reachable nodes ----------------------------------------------------- */

/* The prefetch distance in nodes: this walk is bound by memory. */
enum { PREFETCH = 32 };

/* Returns, by node, whether it is live: a parameter, or needed by the result.
 * *n_live becomes the number of live nodes. Operands come before their readers,
 * so one walk backwards finds all live nodes. */
static bool *mark_live(const struct byi_func *f, struct byi_arena *scratch,
                       uint32_t *n_live)
{
    uint32_t n = 0;
    bool *live = byi_arena_calloc(scratch, f->nodes.n + 1, sizeof *live);
    live[f->result] = true;
    for (uint32_t id = f->nodes.n; id-- > 0;) {
        const struct byi_node *node = &f->nodes.at[id];
        if (id >= PREFETCH) {
            __builtin_prefetch(node - PREFETCH);
            __builtin_prefetch(node[-(PREFETCH / 2)].args);
        }
        if (node->kind == BYI_PARAM)
            live[id] = true;
        n += live[id];
        for (uint32_t i = 0; live[id] && i < node->n_args; i++)
            live[node->args[i]] = true;
    }
    *n_live = n;
    return live;
}

static void rename_args(struct byi_module *m, struct byi_node *node,
                        const byi_id *map)
{
    bool same = true;
    for (uint32_t i = 0; i < node->n_args; i++)
        same = same && map[node->args[i]] == node->args[i];
    if (same)
        return;
    byi_id *args = byi_args_new(m, node->n_args);
    for (uint32_t i = 0; i < node->n_args; i++)
        args[i] = map[node->args[i]];
    node->args = args;
}

void byi_sweep(struct byi_module *m, struct byi_func *f,
               struct byi_arena *scratch)
{
    uint32_t n_live, n = 0;
    const bool *live = mark_live(f, scratch, &n_live);
    if (n_live == f->nodes.n)
        return;
    byi_id *map = byi_arena_calloc(scratch, f->nodes.n + 1, sizeof *map);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        if (!live[id])
            continue;
        struct byi_node node = f->nodes.at[id];
        rename_args(m, &node, map);
        map[id] = n;
        f->nodes.at[n++] = node;
    }
    f->nodes.n = n;
    for (uint32_t i = 0; i < f->params.n; i++)
        f->params.at[i] = map[f->params.at[i]];
    f->result = map[f->result];
}

/* --- sources ------------------------------------------------------------- */

typedef BYI_VEC(uint32_t) ids_vec;

/* Turn the links of every live node into its set of sources. `seen` holds
 * the node for which an id was last visited, plus one. */
static void resolve_sources(struct byi_rewrite *rw)
{
    struct byi_func *f = rw->f;
    if (!rw->merged)
        return;
    uint32_t n_live;
    const bool *live = mark_live(f, rw->scratch, &n_live);
    uint32_t *seen = byi_arena_calloc(rw->scratch, f->nodes.n, sizeof *seen);
    const struct byi_sources **resolved =
        byi_arena_calloc(rw->scratch, f->nodes.n, sizeof(void *));
    ids_vec stack = {0}, sources_found = {0};
    for (byi_id id = 0; id < f->nodes.n; id++) {
        if (!live[id] || !rw->notes.at[id].merged)
            continue;
        sources_found.n = 0;
        BYI_PUSH(&stack, id);
        seen[id] = id + 1;
        while (stack.n > 0) {
            const byi_id at = stack.at[--stack.n];
            const struct byi_sources *sources = f->nodes.at[at].sources;
            for (uint32_t i = 0; i < sources->n; i++)
                BYI_PUSH(&sources_found, sources->at[i]);
            for (struct source_link *l = rw->notes.at[at].merged; l;
                 l = l->next) {
                if (seen[l->from] == id + 1)
                    continue;
                seen[l->from] = id + 1;
                BYI_PUSH(&stack, l->from);
            }
        }
        resolved[id] = byi_sources_of(rw->m, sources_found.at, sources_found.n);
    }
    for (byi_id id = 0; id < f->nodes.n; id++)
        if (resolved[id])
            f->nodes.at[id].sources = resolved[id];
    byi_vec_free(stack.at);
    byi_vec_free(sources_found.at);
}

/* --- the loop ------------------------------------------------------------ */

/* Whether `out` may replace `at`: it has the same type, or `at` is an `if` and
 * `out` has more static dims. Other nodes must not get more static dims: a
 * symbolic dim does not broadcast, but a dim of 1 would. */
static bool may_replace(const struct byi_rewrite *rw, byi_id at, byi_id out)
{
    const struct byi_node *a = byi_rw_node(rw, at);
    const struct byi_type *from = a->type, *to = byi_rw_node(rw, out)->type;
    return byi_type_equal(from, to) ||
           (a->kind == BYI_IF && byi_type_refines(to, from));
}

/* Node `dead` lost its last reader: take it from its operands' readers, and
 * release operands that lose their last reader too. Of the nodes first .. end -
 * 1 the ones that have readers inherit the sources. A constant inherits them
 * only if it is node end - 1. */
static void release_node(struct byi_rewrite *rw, byi_id dead, byi_id first,
                         byi_id end)
{
    ids_vec stack = {0};
    BYI_PUSH(&stack, dead);
    while (stack.n > 0) {
        const byi_id id = stack.at[--stack.n];
        const struct byi_node *node = byi_rw_node(rw, id);
        for (byi_id heir = first; heir < end; heir++)
            if (rw->notes.at[heir].readers > 0 &&
                (heir + 1 == end || byi_rw_node(rw, heir)->kind != BYI_CONST))
                byi_rw_merge(rw, heir, id);
        for (uint32_t i = 0; i < node->n_args; i++) {
            struct byi_note *arg = &rw->notes.at[node->args[i]];
            assert(arg->readers > 0);
            if (--arg->readers == 0 &&
                byi_rw_node(rw, node->args[i])->kind != BYI_PARAM)
                BYI_PUSH(&stack, node->args[i]);
        }
    }
    byi_vec_free(stack.at);
}

/* Whether the node is an atom, which a let cannot bind. */
static bool is_atom(const struct byi_node *node)
{
    return node->kind == BYI_PARAM || node->kind == BYI_CONST ||
           node->kind == BYI_GLOBAL;
}

/* Replace `at` by `out`; nodes from `before` on are new. */
static void replace_node(struct byi_rewrite *rw, byi_id at, byi_id out,
                         byi_id before)
{
    const byi_id end = rw->f->nodes.n;
    while (rw->notes.n < end)
        BYI_PUSH(&rw->notes, ((struct byi_note){0}));
    for (byi_id id = before; id < end; id++) {
        const struct byi_node *node = byi_rw_node(rw, id);
        for (uint32_t i = 0; i < node->n_args; i++)
            rw->notes.at[node->args[i]].readers++;
    }
    if (out >= before && !is_atom(byi_rw_node(rw, out)))
        rw->f->nodes.at[out].let = byi_rw_node(rw, at)->let;
    rw->notes.at[out].readers += rw->notes.at[at].readers;
    rw->notes.at[at].readers = 0;
    /* In ascending order: a dead node's operands come before it. */
    for (byi_id id = before; id < end; id++)
        if (rw->notes.at[id].readers == 0)
            release_node(rw, id, 0, 0);
    /* Up to MAX_SHARERS new nodes share the sources of the replaced node; of
     * more (an inlined branch) only the last one inherits them. */
    const bool shares = out >= before && out - before < MAX_SHARERS;
    release_node(rw, at, shares ? before : out, out + 1);
}

/* Apply the first rule that replaces `at`. Returns the replacement, or
 * BYI_NO_ID. Drops the nodes of failed rules. */
static byi_id try_rules(struct byi_rewrite *rw, const struct byi_rule *rules,
                        uint32_t n, byi_id at)
{
    const byi_id before = rw->f->nodes.n;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_node *node = byi_rw_node(rw, at);
        if (rules[i].op != BYI_OP_NONE &&
            (node->kind != BYI_CALL_OP || node->op != rules[i].op))
            continue;
        const byi_id out = rules[i].apply(rw, at);
        if (out != BYI_NO_ID && out != at && may_replace(rw, at, out))
            return out;
        byi_rw_undo(rw, before);
    }
    return BYI_NO_ID;
}

static byi_id rewrite_node(struct byi_rewrite *rw, const struct byi_rule *rules,
                           uint32_t n, byi_id at)
{
    for (int round = 0; round < MAX_ROUNDS; round++) {
        const byi_id before = rw->f->nodes.n;
        const byi_id out = try_rules(rw, rules, n, at);
        if (out == BYI_NO_ID)
            break;
        replace_node(rw, at, out, before);
        at = out;
        if (out < before)
            break;
    }
    return at;
}

/* Count the live readers of each node of the old function; dead nodes have 0.
 * The walk is backwards, so readers come first. */
static uint32_t *count_readers(const struct byi_func *f,
                               struct byi_arena *scratch)
{
    uint32_t *readers =
        byi_arena_calloc(scratch, f->nodes.n + 1, sizeof *readers);
    readers[f->result]++;
    for (byi_id id = f->nodes.n; id-- > 0;) {
        const struct byi_node *node = &f->nodes.at[id];
        for (uint32_t i = 0; readers[id] && i < node->n_args; i++)
            readers[node->args[i]]++;
    }
    return readers;
}

static enum byoc_status rebuild(struct byi_rewrite *rw,
                                const struct byi_rule *rules, uint32_t n,
                                struct byoc_error *err)
{
    const struct byi_func *old = rw->old;
    const uint32_t *readers = count_readers(old, rw->scratch);
    while (rw->notes.n < rw->f->nodes.n)
        BYI_PUSH(&rw->notes, ((struct byi_note){0}));
    for (byi_id id = 0; id < old->nodes.n; id++) {
        const bool copied = old->nodes.at[id].kind != BYI_PARAM;
        if (copied && !readers[id])
            continue;
        byi_id at = rw->map[id];
        if (copied)
            BYI_TRY(byi_add_copy(rw->m, rw->f, old, id, rw->map, &at, err));
        while (rw->notes.n < rw->f->nodes.n)
            BYI_PUSH(&rw->notes, ((struct byi_note){0}));
        rw->notes.at[at].readers += readers[id];
        rw->map[id] = copied ? rewrite_node(rw, rules, n, at) : at;
    }
    rw->f->result = rw->map[old->result];
    return BYOC_OK;
}

enum byoc_status byi_rewrite(struct byi_module *m, uint32_t func,
                             const struct byi_rule *rules, uint32_t n_rules,
                             struct byi_pass_context *ctx,
                             struct byi_arena *scratch, void *state,
                             struct byoc_error *err)
{
    struct byi_rewrite rw = {.m = m,
                             .ctx = ctx,
                             .scratch = scratch,
                             .state = state,
                             .old = m->funcs.at[func]};
    rw.map = byi_arena_calloc(scratch, rw.old->nodes.n + 1, sizeof *rw.map);
    rw.f = byi_func_like(m, rw.old, rw.map);
    const enum byoc_status status = rebuild(&rw, rules, n_rules, err);
    if (status == BYOC_OK) {
        resolve_sources(&rw);
        byi_sweep(m, rw.f, scratch);
        byi_func_replace(m, func, rw.f);
    }
    byi_vec_free(rw.notes.at);
    return status;
}

enum byoc_status byi_rules_run(struct byi_module *m, uint32_t func,
                               struct byi_pass_context *ctx,
                               struct byi_arena *scratch,
                               struct byoc_error *err)
{
    const struct byi_rule *rules = ctx->pass->data;
    uint32_t n = 0;
    while (rules[n].apply)
        n++;
    return byi_rewrite(m, func, rules, n, ctx, scratch, NULL, err);
}
