/* SPDX-License-Identifier: Apache-2.0 */
/* FuseOps: put operators that one loop nest can compute into one function.
 * requires: nothing
 * leaves:   function literals with Primitive=1 and no captures, each called
 *           directly, once; no annotation.stop_fusion
 *
 *   %0 = add(%x, %y);                     %0 = fn (%p0, %p1, Primitive=1) {
 *   exp(%0)                                 %1 = add(%p0, %p1);
 *                                  ==>      exp(%1)
 *                                         };
 *                                         %0(%x, %y)
 *
 * fuse_groups.c finds the groups. At level 0 every operator becomes a function.
 * At higher levels a group with only one operator that computes (views do not)
 * stays unfused, unless FuseOps.singles is set, or FuseOps.generated is set and
 * C is generated for that operator alone. A function's parameters are %p0, %p1,
 * ... in the order in which its body reads them, each value once.
 * Constants of one element and constants that sizes depend on are embedded in
 * the body. The nodes of a group keep their sources; the call has their union.
 */
#include "transform.h"

#include "fuse_groups.h"
#include "rewrite.h"

/* The state of the pass for one function. */
struct fuser {
    struct byi_module *m;
    const struct byi_pass_context *ctx;
    const struct byi_func *f;
    struct byi_func *new_func;
    struct byi_arena *scratch;
    struct byoc_error *err;
    const uint32_t *groups; /* indexed by node */
    uint32_t *mark; /* for each node: 1 + its group; 0: not in a new function */
    uint32_t *last; /* for each group: its last node */
    /* for each group g: its nodes are members[first[g]..first[g + 1]) */
    uint32_t *first;
    byi_id *members;
    /* for each node: its copy in the body of group copied_to - 1 */
    byi_id *copy;
    /* for each node: 1 + the group with that copy; 0: none */
    uint32_t *copied_to;
    byi_id *map; /* for each node: its copy in new_func */
};

/* --- choosing groups ----------------------------------------------------- */

static bool is_op(const struct byi_func *f, byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    return node->kind == BYI_CALL_OP && node->op != BYI_OP_STOP_FUSION &&
           !node->backend && !node->region;
}

/* Whether node `id` computes something, unlike a view; if `singles`, views
 * count too. */
static bool computes(const struct byi_func *f, byi_id id, bool singles)
{
    return is_op(f, id) &&
           (singles || !byi_op_has(f->nodes.at[id].op, BYI_TRAIT_VIEW));
}

/* Whether C is generated for node `id` even if its group has no other node. */
static bool is_kernel(const struct fuser *s, byi_id id)
{
    return s->ctx->generates_alone && is_op(s->f, id) &&
           s->ctx->generates_alone(s->m, s->f, id);
}

/* Whether node `id` is an operator with one operand and several results, such
 * as split, at the end of its group. */
static bool ends_in_tuple(const struct fuser *s, byi_id id)
{
    const struct byi_node *node = &s->f->nodes.at[id];
    return s->last[s->groups[id]] == id && node->kind == BYI_CALL_OP &&
           node->type->kind == BYI_TUPLE && node->n_args == 1;
}

/* Choose the groups with enough operators that compute. A field whose tuple is
 * outside leaves its group. If C is generated, a group must return one tensor,
 * so a split at its end leaves it. */
static void choose_groups(struct fuser *s, bool singles, bool generated)
{
    const uint32_t n = s->f->nodes.n, min_work = singles ? 1 : 2;
    uint32_t *work = byi_arena_calloc(s->scratch, n, sizeof *work);
    s->mark = byi_arena_calloc(s->scratch, n, sizeof *s->mark);
    s->last = byi_arena_calloc(s->scratch, n, sizeof *s->last);
    for (byi_id id = 0; id < n; id++) {
        work[s->groups[id]] += computes(s->f, id, singles);
        if (generated && is_kernel(s, id))
            work[s->groups[id]] += min_work;
        s->last[s->groups[id]] = id;
    }
    for (byi_id id = 0; id < n; id++) {
        const struct byi_node *node = &s->f->nodes.at[id];
        const uint32_t group = s->groups[id];
        if (generated && ends_in_tuple(s, id)) {
            s->last[group] = node->args[0];
            work[group]--;
        }
    }
    for (byi_id id = 0; id < n; id++) {
        const struct byi_node *node = &s->f->nodes.at[id];
        const uint32_t group = s->groups[id];
        const bool leaves =
            (node->kind == BYI_GET && s->groups[node->args[0]] != group) ||
            id > s->last[group];
        if (work[group] >= min_work && !leaves)
            s->mark[id] = group + 1;
    }
}

/* Sort the nodes by group (counting sort). While it runs, first[mark] is the
 * next free position of group mark - 1; finally it is the end of that group. */
static void list_members(struct fuser *s)
{
    const uint32_t n = s->f->nodes.n;
    s->first = byi_arena_calloc(s->scratch, (size_t)n + 2, sizeof *s->first);
    s->members = byi_arena_calloc(s->scratch, n, sizeof *s->members);
    for (byi_id id = 0; id < n; id++)
        if (s->mark[id])
            s->first[s->mark[id] + 1]++;
    for (uint32_t i = 1; i <= n + 1; i++)
        s->first[i] += s->first[i - 1];
    for (byi_id id = 0; id < n; id++)
        if (s->mark[id])
            s->members[s->first[s->mark[id]]++] = id;
}

/* --- the function of a group --------------------------------------------- */

/* Mark the constants that the body embeds. Such a constant is embedded for all
 * its readers in the group. */
static void mark_constants(struct fuser *s, const byi_id *members, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_node *node = &s->f->nodes.at[members[i]];
        for (uint32_t a = 0; a < node->n_args; a++) {
            if (!byi_fuse_embeds(s->f, node, a))
                continue;
            s->copied_to[node->args[a]] = s->mark[members[i]];
            s->copy[node->args[a]] = BYI_NO_ID;
        }
    }
}

/* Add the parameters of the body. *args becomes the arguments of its call, in
 * the scratch arena. Returns their number. */
static uint32_t add_params(struct fuser *s, struct byi_func *body,
                           const byi_id *members, uint32_t n, byi_id **args)
{
    const uint32_t mark = s->mark[members[0]];
    BYI_VEC(byi_id) list = {0};
    mark_constants(s, members, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_node *node = &s->f->nodes.at[members[i]];
        for (uint32_t a = 0; a < node->n_args; a++) {
            const byi_id value = node->args[a];
            if (s->mark[value] == mark || s->copied_to[value] == mark)
                continue;
            const char *name = byi_arena_printf(s->m->arena, "p%u", list.n);
            s->copied_to[value] = mark;
            s->copy[value] =
                byi_add_param(s->m, body, name, s->f->nodes.at[value].type);
            BYI_PUSH(&list, s->map[value]);
        }
    }
    *args = byi_arena_copy(s->scratch, list.at, list.n * sizeof **args);
    byi_vec_free(list.at);
    return (uint32_t)body->params.n;
}

/* Add a node of the group to its body. It keeps its type, since its operands'
 * types do not change. */
static enum byoc_status add_member(struct fuser *s, struct byi_func *body,
                                   byi_id id)
{
    const struct byi_node *node = &s->f->nodes.at[id];
    const uint32_t mark = s->mark[id];
    for (uint32_t a = 0; a < node->n_args; a++) {
        const byi_id arg = node->args[a];
        const struct byi_node *constant = &s->f->nodes.at[arg];
        if (s->copied_to[arg] == mark && s->copy[arg] == BYI_NO_ID)
            s->copy[arg] =
                byi_add_const(s->m, body, constant->index, constant->sources);
    }
    if (node->kind == BYI_MAKE_TUPLE)
        return BYOC_OK; /* only its fields are read */
    if (node->kind == BYI_GET &&
        s->f->nodes.at[node->args[0]].kind == BYI_MAKE_TUPLE) {
        const struct byi_node *tuple = &s->f->nodes.at[node->args[0]];
        s->copy[id] = s->copy[tuple->args[node->index]];
        return BYOC_OK;
    }
    BYI_TRY(byi_add_moved(s->m, body, s->f, id, s->copy, &s->copy[id], s->err));
    body->nodes.at[s->copy[id]].type = node->type;
    return BYOC_OK;
}

static enum byoc_status make_group(struct fuser *s, byi_id last)
{
    const uint32_t mark = s->mark[last];
    const byi_id *members = &s->members[s->first[mark - 1]];
    const uint32_t n = s->first[mark] - s->first[mark - 1];
    const uint32_t func = byi_func_new(s->m, NULL);
    struct byi_func *body = s->m->funcs.at[func];
    byi_id *args;
    const uint32_t n_args = add_params(s, body, members, n, &args);
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(add_member(s, body, members[i]));
    body->result = s->copy[last];
    body->attr.primitive = true;
    const byi_id fn = byi_add_fn(s->m, s->new_func, func, NULL, 0, NULL);
    return byi_add_apply(s->m, s->new_func, fn, args, n_args,
                         byi_sources_of_nodes(s->m, s->f, members, n),
                         &s->map[last], s->err);
}

/* --- the enclosing function ---------------------------------------------- */

/* Remove annotation.stop_fusion; the operand inherits its sources. */
static void drop_stop(struct fuser *s, byi_id id)
{
    const struct byi_node *stop = &s->f->nodes.at[id];
    s->map[id] = s->map[stop->args[0]];
    struct byi_node *node = &s->new_func->nodes.at[s->map[id]];
    if (node->kind != BYI_PARAM)
        node->sources = byi_sources_join(s->m, node->sources, stop->sources);
}

static enum byoc_status rebuild(struct fuser *s)
{
    const uint32_t n = s->f->nodes.n;
    s->map = byi_arena_calloc(s->scratch, n, sizeof *s->map);
    s->copy = byi_arena_calloc(s->scratch, n, sizeof *s->copy);
    s->copied_to = byi_arena_calloc(s->scratch, n, sizeof *s->copied_to);
    s->new_func = byi_func_like(s->m, s->f, s->map);
    for (byi_id id = 0; id < n; id++) {
        const struct byi_node *node = &s->f->nodes.at[id];
        if (node->kind == BYI_PARAM)
            continue;
        if (node->kind == BYI_CALL_OP && node->op == BYI_OP_STOP_FUSION)
            drop_stop(s, id);
        else if (!s->mark[id])
            BYI_TRY(byi_add_copy(s->m, s->new_func, s->f, id, s->map,
                                 &s->map[id], s->err));
        else if (s->last[s->mark[id] - 1] == id)
            BYI_TRY(make_group(s, id));
    }
    s->new_func->result = s->map[s->f->result];
    return BYOC_OK;
}

/* Give every node a group of its own. The array is in `scratch`. */
static const uint32_t *split_all(const struct byi_func *f,
                                 struct byi_arena *scratch)
{
    uint32_t *groups =
        byi_arena_calloc(scratch, f->nodes.n + 1, sizeof *groups);
    for (byi_id id = 0; id < f->nodes.n; id++)
        groups[id] = id;
    return groups;
}

static enum byoc_status read_limits(const struct byi_pass_context *ctx,
                                    struct byi_fuse_limits *limits,
                                    struct byoc_error *err)
{
    const int64_t depth = byi_option_int(ctx, "FuseOps.max_depth");
    const int64_t args = byi_option_int(ctx, "FuseOps.max_args");
    if (depth < 1 || depth > UINT32_MAX)
        return byi_fail(err, BYOC_EINVAL,
                        "max_depth is %lld, expected 1 to 2^32 - 1",
                        (long long)depth);
    if (args < 0)
        return byi_fail(err, BYOC_EINVAL,
                        "max_args is %lld, expected at least 0 (no limit)",
                        (long long)args);
    *limits = (struct byi_fuse_limits){
        .max_depth = (uint32_t)depth,
        .max_args =
            args == 0 || args > BYI_MAX_ARGS ? BYI_MAX_ARGS : (uint32_t)args,
        .anchors = byi_option_bool(ctx, "FuseOps.anchors"),
        .epilogues = byi_option_bool(ctx, "FuseOps.epilogues"),
        .is_fusable =
            byi_option_bool(ctx, "FuseOps.generated") ? ctx->generates : NULL};
    return BYOC_OK;
}

static enum byoc_status fuse_function(struct byi_module *m, uint32_t func,
                                      struct byi_pass_context *ctx,
                                      struct byi_arena *scratch,
                                      struct byoc_error *err)
{
    struct byi_fuse_limits limits;
    BYI_TRY(read_limits(ctx, &limits, err));
    byi_sweep(m, m->funcs.at[func], scratch); /* drop nodes without readers */
    struct fuser s = {.m = m,
                      .ctx = ctx,
                      .f = m->funcs.at[func],
                      .scratch = scratch,
                      .err = err};
    const int64_t option = byi_option_int(ctx, "FuseOps.level");
    const int64_t level = option < 0 ? ctx->opt_level : option;
    const struct byi_uses uses = byi_uses_of(s.f, scratch);
    s.groups = level == 0 ? split_all(s.f, scratch)
                          : byi_fuse_groups(s.f, &uses, &limits, scratch);
    choose_groups(&s, level == 0 || byi_option_bool(ctx, "FuseOps.singles"),
                  limits.is_fusable != NULL);
    list_members(&s);
    BYI_TRY(rebuild(&s));
    byi_sweep(m, s.new_func, scratch); /* drop constants that moved to bodies */
    byi_func_replace(m, func, s.new_func);
    return BYOC_OK;
}

static const struct byi_pass_option options[] = {
    {"level", BYI_ATTR_INT, "-1",
     "0: a function for every operator; 1: fuse; -1: the opt level"},
    {"max_depth", BYI_ATTR_INT, "256", "largest number of nodes of a group"},
    {"max_args", BYI_ATTR_INT, "0",
     "largest number of parameters and results of a group; 0: no limit"},
    {"anchors", BYI_ATTR_BOOL, "true",
     "fuse epilogues into convolutions, pooling and similar operators"},
    {"epilogues", BYI_ATTR_BOOL, "false",
     "first fuse native convolutions and products with their epilogues"},
    {"generated", BYI_ATTR_BOOL, "false",
     "fuse only operators that C is generated for"},
    {"singles", BYI_ATTR_BOOL, "false",
     "also make functions of single operators"},
    {0},
};

const struct byi_pass byi_pass_fuse_ops = {
    .name = "FuseOps",
    .summary = "put operators that one loop computes into one function",
    .opt_level = 0,
    .options = options,
    .run_func = fuse_function,
};
