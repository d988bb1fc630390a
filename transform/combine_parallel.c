/* SPDX-License-Identifier: Apache-2.0 */
/* combine_parallel.c: see combine_parallel.h. A hash table groups the operators
 * that may be combined, in the order of the function. Elementwise operators
 * that follow all members of a group in the same way, each the only reader of
 * its operand, join the group. The rebuild emits a group at the position of its
 * first member, where all its operands exist.
 */
#include "combine_parallel.h"

#include <assert.h>
#include <string.h>

#include "rewrite.h"

enum { MAX_BRANCHES = 128 }; /* of one group; the next one starts a new group */

/* One operator of every branch: at[i] in branch i. Its result is an operand of
 * the step `next`, or of the split if `next` is NULL. */
struct parallel_step {
    const byi_id *at;
    struct parallel_step *next;
};

/* An operator that may be combined, and the next one of its group. */
struct parallel_member {
    byi_id id;
    uint32_t next; /* its index in `members`; undefined for the last one */
    struct byi_channels channels;
};

/* Operators that become one operator, and the steps after them. */
struct parallel_group {
    struct byi_channels channels;
    byi_id first;  /* node of the first member */
    uint32_t from; /* index of the first member in `members` */
    uint32_t last; /* index of the last member */
    uint32_t n;
    struct parallel_step *steps; /* the members, then their followers */
};

/* The state of the pass for one function. */
struct combine_work {
    struct byi_module *m;
    const struct byi_func *f;
    byi_combine_fn is_combinable;
    struct byi_arena *scratch;
    struct byi_uses uses;
    BYI_VEC(struct parallel_member) members;
    BYI_VEC(struct parallel_group) groups;
    /* for each node: 1 + the index of its group, or 0; NULL while there is no
     * group to combine */
    uint32_t *group_of;
    uint32_t *slots; /* of the hash table: 1 + a group's index */
    uint32_t mask;
};

static const struct byi_node *node_of(const struct combine_work *w, byi_id id)
{
    return &w->f->nodes.at[id];
}

/* --- members ------------------------------------------------------------- */

static bool have_joinable_weights(const struct byi_type *a,
                                  const struct byi_type *b, uint32_t axis)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (i != axis && a->dims[i] != b->dims[i])
            return false;
    return true;
}

static bool is_same_group(const struct combine_work *w, byi_id a, byi_id b,
                          uint32_t axis)
{
    const struct byi_node *x = node_of(w, a), *y = node_of(w, b);
    return x->op == y->op && x->args[0] == y->args[0] &&
           x->backend == y->backend && x->region == y->region &&
           byi_attrs_equal(x->attrs, y->attrs) &&
           have_joinable_weights(node_of(w, x->args[1])->type,
                                 node_of(w, y->args[1])->type, axis);
}

static uint64_t hash_member(const struct combine_work *w, byi_id id,
                            uint32_t axis)
{
    const struct byi_node *node = node_of(w, id);
    const struct byi_type *weights = node_of(w, node->args[1])->type;
    const uint32_t head[] = {(uint32_t)node->op, node->args[0],
                             (uint32_t)weights->dtype, weights->rank};
    uint64_t h = byi_hash(0, head, sizeof head);
    for (uint32_t i = 0; i < weights->rank; i++)
        if (i != axis)
            h = byi_hash(h, &weights->dims[i], sizeof weights->dims[i]);
    for (uint32_t i = 0; i < node->attrs->n; i++) {
        const struct byi_attr *a = &node->attrs->at[i];
        if (a->kind == BYI_ATTR_INTS && a->n)
            h = byi_hash(h, a->ints, a->n * sizeof *a->ints);
        else if (a->kind == BYI_ATTR_INT || a->kind == BYI_ATTR_BOOL)
            h = byi_hash(h, &a->i, sizeof a->i);
    }
    return h;
}

/* Whether each dim of the result is static or a dim of the operand. A symbol
 * that only this result has would not exist in the joined result. */
static bool has_known_sizes(const struct combine_work *w, byi_id id)
{
    const struct byi_type *type = node_of(w, id)->type;
    const struct byi_type *x = node_of(w, node_of(w, id)->args[0])->type;
    for (uint32_t i = 0; i < type->rank; i++) {
        bool known = !BYI_IS_SYMBOL(type->dims[i]);
        for (uint32_t k = 0; k < x->rank; k++)
            known = known || x->dims[k] == type->dims[i];
        if (!known)
            return false;
    }
    return true;
}

static void add_member(struct combine_work *w, uint32_t index)
{
    const byi_id id = w->members.at[index].id;
    const struct byi_channels channels = w->members.at[index].channels;
    const struct byi_hash_probe probe =
        byi_hash_probe(node_of(w, id)->args[0], w->f->nodes.n,
                       hash_member(w, id, channels.weight_axis), w->mask);
    uint32_t i = 0, slot;
    for (; w->slots[slot = byi_hash_slot(&probe, i)]; i++) {
        struct parallel_group *g = &w->groups.at[w->slots[slot] - 1];
        if (!is_same_group(w, g->first, id, channels.weight_axis))
            continue;
        if (g->n == MAX_BRANCHES)
            break;
        w->members.at[g->last].next = index;
        g->last = index;
        g->n++;
        return;
    }
    BYI_PUSH(&w->groups, ((struct parallel_group){.channels = channels,
                                                  .first = id,
                                                  .from = index,
                                                  .last = index,
                                                  .n = 1}));
    w->slots[slot] = w->groups.n;
}

static void find_groups(struct combine_work *w)
{
    for (byi_id id = 0; id < w->f->nodes.n; id++) {
        struct byi_channels channels;
        if (w->is_combinable(w->m, w->f, id, &channels) &&
            has_known_sizes(w, id))
            BYI_PUSH(&w->members, ((struct parallel_member){
                                      .id = id, .channels = channels}));
    }
    uint32_t slots = 16;
    while (slots / 2 < w->members.n)
        slots *= 2;
    w->mask = slots - 1;
    w->slots = byi_arena_calloc(w->scratch, slots, sizeof *w->slots);
    for (uint32_t i = 0; i < w->members.n; i++)
        add_member(w, i);
}

/* --- elementwise followers ----------------------------------------------- */

/* Returns the only reader of `id`; BYI_NO_ID if there are several. */
static byi_id only_reader(const struct combine_work *w, byi_id id)
{
    const uint32_t first = w->uses.first[id];
    return id != w->f->result && w->uses.first[id + 1] == first + 1
               ? w->uses.at[first]
               : BYI_NO_ID;
}

/* Whether constant `id` has one element, or one per channel of `type`. */
static bool fits_channels(const struct combine_work *w, byi_id id,
                          const struct byi_type *type, uint32_t axis)
{
    struct byi_tensor t;
    const uint32_t from_back = type->rank - axis;
    if (!byi_const_view(w->m, w->f, id, &t) || t.dtype == BYOC_STRING)
        return false;
    for (uint32_t i = 0; i < t.rank; i++)
        if (t.dims[i] != 1 &&
            (t.rank - i != from_back || t.dims[i] != type->dims[axis]))
            return false;
    return true;
}

/* Whether node `id` may follow `x` in a group: an elementwise operator on x and
 * perhaps a constant. *side: the index of operand x. */
static bool may_follow(const struct combine_work *w, byi_id id, byi_id x,
                       uint32_t axis, uint32_t *side)
{
    const struct byi_node *node = node_of(w, id);
    const struct byi_type *type = node_of(w, x)->type;
    if (node->kind != BYI_CALL_OP || node->type->kind != BYI_TENSOR ||
        !byi_dims_equal(node->type->rank, node->type->dims, type->rank,
                        type->dims))
        return false;
    *side = node->args[0] == x ? 0 : 1;
    if (byi_op(node->op)->kind == BYI_ELEMWISE)
        return node->n_args == 1;
    return byi_op(node->op)->kind == BYI_BROADCAST &&
           byi_op(node->op)->cost == BYI_COST_ELEMENT && node->n_args == 2 &&
           fits_channels(w, node->args[1 - *side], type, axis);
}

/* Returns the next common step of all branches; NULL if there is none: a value
 * does not have exactly one reader, a reader cannot join, or readers differ. */
static struct parallel_step *next_step(const struct combine_work *w,
                                       const struct parallel_group *g,
                                       const struct parallel_step *end)
{
    byi_id *at = byi_arena_calloc(w->scratch, g->n, sizeof *at);
    uint32_t side = 0, side_of_i;
    for (uint32_t i = 0; i < g->n; i++) {
        at[i] = only_reader(w, end->at[i]);
        if (at[i] == BYI_NO_ID ||
            !may_follow(w, at[i], end->at[i], g->channels.axis,
                        i ? &side_of_i : &side))
            return NULL;
        const struct byi_node *a = node_of(w, at[0]), *b = node_of(w, at[i]);
        if (i &&
            (side_of_i != side || a->op != b->op || a->backend != b->backend ||
             a->region != b->region || !byi_attrs_equal(a->attrs, b->attrs)))
            return NULL;
    }
    struct parallel_step *step = byi_arena_alloc(w->scratch, sizeof *step);
    *step = (struct parallel_step){.at = at};
    return step;
}

/* Find the steps of a group: its members, then their common followers.
 * Allocates the tables for the first group, since most functions have none. */
static void find_steps(struct combine_work *w, uint32_t group)
{
    if (!w->group_of) {
        const size_t n = w->f->nodes.n;
        w->group_of = byi_arena_calloc(w->scratch, n, sizeof *w->group_of);
        w->uses = byi_uses_of(w->f, w->scratch);
    }
    struct parallel_group *g = &w->groups.at[group];
    byi_id *members = byi_arena_calloc(w->scratch, g->n, sizeof *members);
    uint32_t index = g->from;
    for (uint32_t i = 0; i < g->n; i++, index = w->members.at[index].next)
        members[i] = w->members.at[index].id;
    struct parallel_step *step = byi_arena_alloc(w->scratch, sizeof *step);
    *step = (struct parallel_step){.at = members};
    g->steps = step;
    for (; step; step = step->next) {
        for (uint32_t i = 0; i < g->n; i++)
            w->group_of[step->at[i]] = group + 1;
        step->next = next_step(w, g, step);
    }
}

/* --- the rebuild --------------------------------------------------------- */

/* Emit the concatenation of tensors along `axis`; their types differ in it
 * only. Returns BYI_NO_ID if it exceeds the module's budget of constants. */
static byi_id emit_joined(struct combine_work *w, struct byi_func *new_func,
                          const struct byi_tensor *parts, uint32_t n,
                          uint32_t axis)
{
    int64_t dims[BYI_MAX_RANK], outer = 1, inner = 1;
    struct byi_tensor out;
    memcpy(dims, parts[0].dims, sizeof dims);
    for (uint32_t i = 1; i < n; i++)
        dims[axis] += parts[i].dims[axis];
    const struct byi_type *type =
        byi_type_tensor(w->m->arena, parts[0].dtype, parts[0].rank, dims);
    if (!byi_const_alloc(w->m, type, &out))
        return BYI_NO_ID;
    for (uint32_t i = 0; i < parts[0].rank; i++)
        *(i < axis ? &outer : &inner) *= i == axis ? 1 : dims[i];
    const size_t row = (size_t)inner * byoc_dtype_size(out.dtype);
    char *dst = out.data;
    for (int64_t o = 0; o < outer; o++)
        for (uint32_t i = 0; i < n; i++) {
            const size_t bytes = (size_t)parts[i].dims[axis] * row;
            if (bytes)
                memcpy(dst, (const char *)parts[i].data + (size_t)o * bytes,
                       bytes);
            dst += bytes;
        }
    return byi_add_const(w->m, new_func,
                         byi_const_add(w->m, type, out.data, true), NULL);
}

static struct byi_tensor view_of(const struct combine_work *w, byi_id id)
{
    struct byi_tensor t = {0};
    const bool found = byi_const_view(w->m, w->f, id, &t);
    assert(found);
    (void)found;
    return t;
}

/* Emit operand `side` of a step's nodes as one constant with a value per
 * channel of the joined type. If all branches read the same scalar, it is that
 * constant. Returns BYI_NO_ID like emit_joined. */
static byi_id emit_channels(struct combine_work *w, struct byi_func *new_func,
                            const struct parallel_group *g,
                            const struct parallel_step *step, uint32_t side)
{
    const uint32_t rank = node_of(w, step->at[0])->type->rank;
    const uint32_t axis = g->channels.axis;
    const uint32_t index =
        node_of(w, node_of(w, step->at[0])->args[side])->index;
    struct byi_tensor *parts =
        byi_arena_calloc(w->scratch, g->n, sizeof *parts);
    bool same_scalar = true;
    for (uint32_t i = 0; i < g->n; i++) {
        const byi_id id = node_of(w, step->at[i])->args[side];
        const struct byi_tensor t = view_of(w, id);
        const size_t size = byoc_dtype_size(t.dtype);
        const int64_t n = node_of(w, step->at[i])->type->dims[axis];
        const bool splat = byi_elements(t.rank, t.dims) == 1;
        char *data = byi_arena_alloc(w->scratch, (size_t)n * size + 1);
        for (int64_t k = 0; k < n; k++)
            memcpy(data + (size_t)k * size,
                   (const char *)t.data + (splat ? 0 : (size_t)k * size), size);
        parts[i] = (struct byi_tensor){
            .data = data, .dtype = t.dtype, .rank = rank - axis, .dims = {n}};
        for (uint32_t k = 1; k < rank - axis; k++)
            parts[i].dims[k] = 1;
        same_scalar = same_scalar && splat && node_of(w, id)->index == index;
    }
    if (same_scalar)
        return byi_add_const(w->m, new_func, index, NULL);
    return emit_joined(w, new_func, parts, g->n, 0);
}

/* Emit one node for a step of all branches. *x is the node of the step before,
 * and becomes the new node. */
static enum byoc_status emit_step(struct combine_work *w,
                                  struct byi_func *new_func,
                                  const struct parallel_group *g,
                                  const struct parallel_step *step, byi_id *x,
                                  struct byoc_error *err)
{
    const struct byi_node node = *node_of(w, step->at[0]);
    byi_id args[2] = {*x, BYI_NO_ID};
    if (step == g->steps) {
        struct byi_tensor *parts =
            byi_arena_calloc(w->scratch, g->n, sizeof *parts);
        for (uint32_t i = 0; i < g->n; i++)
            parts[i] = view_of(w, node_of(w, step->at[i])->args[1]);
        args[1] =
            emit_joined(w, new_func, parts, g->n, g->channels.weight_axis);
    } else if (node.n_args == 2) {
        const uint32_t side = node_of(w, node.args[0])->kind == BYI_CONST;
        args[side] = *x;
        args[1 - side] = emit_channels(w, new_func, g, step, 1 - side);
    }
    if (node.n_args == 2 && (args[0] == BYI_NO_ID || args[1] == BYI_NO_ID))
        return byi_const_refuse(w->m, node.op, "joined", err);
    BYI_TRY(byi_add_op(w->m, new_func, node.op, args, node.n_args, node.attrs,
                       byi_sources_of_nodes(w->m, w->f, step->at, g->n), x,
                       err));
    new_func->nodes.at[*x].backend = node.backend;
    new_func->nodes.at[*x].region = node.region;
    return BYOC_OK;
}

static enum byoc_status emit_group(struct combine_work *w,
                                   struct byi_func *new_func,
                                   const struct parallel_group *g, byi_id *map,
                                   struct byoc_error *err)
{
    const struct parallel_step *end = g->steps;
    byi_id x = map[node_of(w, g->first)->args[0]], parts;
    int64_t *sizes = byi_arena_calloc(w->scratch, g->n, sizeof *sizes);
    for (const struct parallel_step *s = g->steps; s; s = s->next) {
        BYI_TRY(emit_step(w, new_func, g, s, &x, err));
        end = s;
    }
    for (uint32_t i = 0; i < g->n; i++)
        sizes[i] = node_of(w, end->at[i])->type->dims[g->channels.axis];
    const struct byi_attr attrs[] = {
        {.name = "sizes", .kind = BYI_ATTR_INTS, .n = g->n, .ints = sizes},
        {.name = "axis", .kind = BYI_ATTR_INT, .i = g->channels.axis},
    };
    BYI_TRY(byi_add_call(w->m, new_func, BYI_OP_SPLIT, &x, 1, attrs, 2, NULL,
                         &parts, err));
    for (uint32_t i = 0; i < g->n; i++)
        BYI_TRY(
            byi_add_get(w->m, new_func, parts, i, NULL, &map[end->at[i]], err));
    return BYOC_OK;
}

static enum byoc_status rebuild(struct combine_work *w, uint32_t func,
                                struct byoc_error *err)
{
    byi_id *map = byi_arena_calloc(w->scratch, w->f->nodes.n + 1, sizeof *map);
    struct byi_func *new_func = byi_func_like(w->m, w->f, map);
    for (byi_id id = 0; id < w->f->nodes.n; id++) {
        const uint32_t index = w->group_of[id];
        if (node_of(w, id)->kind == BYI_PARAM)
            continue;
        if (!index)
            BYI_TRY(byi_add_copy(w->m, new_func, w->f, id, map, &map[id], err));
        else if (w->groups.at[index - 1].first == id)
            BYI_TRY(
                emit_group(w, new_func, &w->groups.at[index - 1], map, err));
    }
    new_func->result = map[w->f->result];
    byi_sweep(w->m, new_func, w->scratch);
    byi_func_replace(w->m, func, new_func);
    return BYOC_OK;
}

enum byoc_status byi_combine_parallel(struct byi_module *m, uint32_t func,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err)
{
    const struct byi_combine *pass_data = ctx->pass->data;
    const int64_t min_branches = byi_option_int(ctx, pass_data->min_branches);
    struct combine_work w = {
        .m = m, .is_combinable = pass_data->is_combinable, .scratch = scratch};
    enum byoc_status status = BYOC_OK;
    byi_sweep(m, m->funcs.at[func], scratch);
    w.f = m->funcs.at[func];
    find_groups(&w);
    for (uint32_t i = 0; i < w.groups.n; i++)
        if (w.groups.at[i].n >= 2 && (int64_t)w.groups.at[i].n >= min_branches)
            find_steps(&w, i);
    if (w.group_of)
        status = rebuild(&w, func, err);
    byi_vec_free(w.members.at);
    byi_vec_free(w.groups.at);
    return status;
}
