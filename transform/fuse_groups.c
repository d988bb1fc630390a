/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_groups.c: see fuse_groups.h. Operators are fused into their immediate
 * post-dominator if every node on the paths there allows it. So only the last
 * node of a group has readers outside the group (Chen et al., "TVM", OSDI 2018,
 * section 3; Roesch et al., "Relay", 2019, section 4.4).
 *
 * A group has at most one anchor, a node of kind OUT_FUSABLE such as a
 * convolution. The kind of a group is OUT_FUSABLE if it has an anchor,
 * otherwise the kind of its last node. There are three phases, each over all
 * nodes. The first fuses anchors and pointwise operators, so that a convolution
 * gets its epilogue. The second fuses injective operators, the third the fields
 * of tuples that were fused into an injective reader.
 */
#include "fuse_groups.h"

#include "dominators.h"

#include "core/ops/epilogue.h"

#include <string.h>

/* Kinds of nodes and edges: the kinds of operators below BYI_OPAQUE, then
 * tuples, then opaque nodes. */
enum { KIND_TUPLE = BYI_OPAQUE, KIND_OPAQUE };

enum phase { POINTWISE, INJECTIVE, FIELDS, N_PHASES };

/* A set of nodes. Members other than `parent` and `next` are valid at its
 * representative only. */
struct fuse_group {
    uint32_t parent; /* of the union-find forest */
    uint32_t size;
    uint32_t next;  /* the next node of the set, in a ring */
    uint64_t reads; /* operands of all members: a bound on its parameters */
    uint8_t kind;
};

/* The state of the search for groups. */
struct grouper {
    const struct byi_func *f;
    const struct byi_uses *uses;
    const struct byi_fuse_limits *limits;
    uint8_t *kind; /* indexed by node */
    struct byi_dominator *tree;
    struct fuse_group *groups; /* indexed by node */
    /* for each node: the number of the last walk that visited it, or the
     * complement of that number once count_params has counted it */
    uint32_t *seen;
    /* for each representative: number of the last walk that visited the group
     */
    uint32_t *seen_group;
    uint32_t walk;
    BYI_VEC(byi_id) path;   /* from a node to its dominator, both included */
    BYI_VEC(byi_id) joined; /* the groups on the path */
};

/* --- kinds --------------------------------------------------------------- */

bool byi_fuse_embeds(const struct byi_func *f, const struct byi_node *reader,
                     uint32_t i)
{
    const struct byi_node *operand = &f->nodes.at[reader->args[i]];
    if (operand->kind != BYI_CONST || reader->kind != BYI_CALL_OP)
        return false;
    return byi_elements(operand->type->rank, operand->type->dims) == 1 ||
           byi_op_reads_value(reader->op, i) ||
           /* generated C holds a constant grid as tables */
           (reader->op == BYI_OP_GRID_SAMPLE && i == 1);
}

/* Whether the node's sizes or indices are computed at run time: its loop bounds
 * are then unknown. */
static bool has_computed_shape(const struct byi_func *f,
                               const struct byi_node *node)
{
    for (uint32_t i = 0; i < node->n_args; i++)
        if (byi_op_reads_value(node->op, i) &&
            f->nodes.at[node->args[i]].kind != BYI_CONST)
            return true;
    return false;
}

static uint8_t op_kind(const struct grouper *g, byi_id id)
{
    const struct byi_node *node = &g->f->nodes.at[id];
    uint8_t kind = (uint8_t)byi_op(node->op)->kind;
    if (kind == BYI_OPAQUE || has_computed_shape(g->f, node) ||
        (g->limits->is_fusable && !g->limits->is_fusable(g->f, id)))
        return KIND_OPAQUE;
    /* Interpolation reads several elements for each result. */
    if (node->op == BYI_OP_RESIZE &&
        strcmp(byi_attr_string(node->attrs, "mode"), "nearest") != 0)
        kind = BYI_OUT_FUSABLE;
    return kind == BYI_OUT_FUSABLE && !g->limits->anchors ? KIND_OPAQUE : kind;
}

static bool holds_tensors(const struct byi_type *tuple)
{
    for (uint32_t i = 0; i < tuple->n_fields; i++)
        if (tuple->fields[i]->kind != BYI_TENSOR)
            return false;
    return true;
}

static uint8_t node_kind(const struct grouper *g, byi_id id)
{
    const struct byi_node *node = &g->f->nodes.at[id];
    if (node->backend || node->region)
        return KIND_OPAQUE; /* marked for a backend */
    if (node->kind == BYI_CALL_OP)
        return op_kind(g, id);
    if (node->kind == BYI_MAKE_TUPLE && holds_tensors(node->type))
        return KIND_TUPLE;
    if (node->kind != BYI_GET ||
        !holds_tensors(g->f->nodes.at[node->args[0]].type))
        return KIND_OPAQUE;
    const uint8_t tuple = g->kind[node->args[0]];
    return tuple == KIND_TUPLE || tuple <= BYI_INJECTIVE ? BYI_INJECTIVE
                                                         : KIND_OPAQUE;
}

/* The kind of an edge is its reader's, except that a broadcast operator is
 * elementwise in an operand of the result's shape. */
static uint8_t edge_kind(const void *ctx, byi_id value, byi_id reader)
{
    const struct grouper *g = ctx;
    const struct byi_type *from = g->f->nodes.at[value].type;
    const struct byi_type *to = g->f->nodes.at[reader].type;
    const uint8_t kind = g->kind[reader];
    if (kind == KIND_TUPLE)
        return BYI_INJECTIVE;
    if (kind == BYI_BROADCAST && from->kind == BYI_TENSOR &&
        to->kind == BYI_TENSOR &&
        byi_dims_equal(from->rank, from->dims, to->rank, to->dims))
        return BYI_ELEMWISE;
    return kind;
}

/* --- groups -------------------------------------------------------------- */

static uint32_t find_group(struct grouper *g, byi_id id)
{
    while (g->groups[id].parent != id) {
        const uint32_t up = g->groups[id].parent;
        g->groups[id].parent = g->groups[up].parent;
        id = up;
    }
    return id;
}

/* Unite two groups. Returns the representative. */
static uint32_t join_groups(struct grouper *g, uint32_t a, uint32_t b)
{
    const bool a_larger = g->groups[a].size > g->groups[b].size;
    struct fuse_group *big = &g->groups[a_larger ? a : b];
    struct fuse_group *small = &g->groups[a_larger ? b : a];
    const uint32_t next = big->next;
    small->parent = a_larger ? a : b;
    big->size += small->size;
    big->reads += small->reads;
    big->next = small->next;
    small->next = next;
    return small->parent;
}

/* Record a node of the walk and its group; false if the group would become too
 * large. */
static bool record_visit(struct grouper *g, byi_id id, uint32_t *size)
{
    const uint32_t group = find_group(g, id);
    BYI_PUSH(&g->path, id);
    g->seen[id] = g->walk;
    if (g->seen_group[group] == g->walk)
        return true;
    g->seen_group[group] = g->walk;
    BYI_PUSH(&g->joined, group);
    *size += g->groups[group].size;
    return *size <= g->limits->max_depth;
}

/* Collect the paths from `from` to its dominator. False if a node between has a
 * kind above `inner`, or the dominator one above `last`, or the resulting group
 * would be too large. Time: linear in the size of the resulting group, which is
 * at most max_depth. */
static bool walk_path(struct grouper *g, byi_id from, byi_id to, uint8_t inner,
                      uint8_t last)
{
    uint32_t size = 0;
    g->walk++;
    g->path.n = g->joined.n = 0;
    if (g->groups[find_group(g, to)].kind > last ||
        !record_visit(g, to, &size) || !record_visit(g, from, &size))
        return false;
    for (uint32_t i = 1; i < g->path.n; i++) {
        const byi_id id = g->path.at[i];
        for (uint32_t u = g->uses->first[id]; u < g->uses->first[id + 1]; u++) {
            const byi_id reader = g->uses->at[u];
            if (g->seen[reader] == g->walk)
                continue;
            if (g->groups[find_group(g, reader)].kind > inner ||
                !record_visit(g, reader, &size))
                return false;
        }
    }
    return true;
}

/* Whether node `id` is in a group of the last walk. */
static bool is_inside(struct grouper *g, byi_id id)
{
    return g->seen_group[find_group(g, id)] == g->walk;
}

/* Returns the number of values that the groups of the last walk read from
 * outside. */
static uint32_t count_params(struct grouper *g)
{
    uint32_t n = 0;
    const uint32_t walk = g->walk;
    for (uint32_t i = 0; i < g->joined.n; i++) {
        byi_id id = g->joined.at[i];
        do {
            const struct byi_node *node = &g->f->nodes.at[id];
            for (uint32_t a = 0; a < node->n_args; a++) {
                const byi_id arg = node->args[a];
                /* the field of an outside tuple is itself a parameter */
                const byi_id value = node->kind == BYI_GET ? id : arg;
                if (is_inside(g, arg) || byi_fuse_embeds(g->f, node, a) ||
                    g->seen[value] == ~walk)
                    continue;
                g->seen[value] = ~walk;
                n++;
            }
            id = g->groups[id].next;
        } while (id != g->joined.at[i]);
    }
    return n;
}

/* Whether the union of the groups of the last walk has at most max_args
 * parameters and results. */
static bool args_fit(struct grouper *g, byi_id last)
{
    const struct byi_type *type = g->f->nodes.at[last].type;
    const uint32_t results = type->kind == BYI_TUPLE ? type->n_fields : 1;
    uint64_t reads = 0;
    for (uint32_t i = 0; i < g->joined.n; i++)
        reads += g->groups[g->joined.at[i]].reads;
    return reads + results <= g->limits->max_args ||
           count_params(g) + results <= g->limits->max_args;
}

/* Fuse node `from` into its dominator if the paths there allow it. */
static void try_fuse(struct grouper *g, byi_id from, byi_id to, uint8_t inner,
                     uint8_t last)
{
    if (!walk_path(g, from, to, inner, last) || !args_fit(g, to))
        return;
    uint8_t kind = g->groups[find_group(g, to)].kind;
    uint32_t group = g->joined.at[0];
    for (uint32_t i = 0; i < g->joined.n; i++)
        if (g->groups[g->joined.at[i]].kind == BYI_OUT_FUSABLE)
            kind = BYI_OUT_FUSABLE;
    for (uint32_t i = 1; i < g->joined.n; i++)
        group = join_groups(g, group, g->joined.at[i]);
    g->groups[group].kind = kind;
}

/* --- phases -------------------------------------------------------------- */

/* Fuse the field of a tuple, if the tuple is in an injective group. */
static void fuse_field(struct grouper *g, byi_id id, byi_id tuple)
{
    if (g->kind[tuple] == KIND_TUPLE &&
        g->groups[find_group(g, id)].kind <= BYI_INJECTIVE)
        try_fuse(g, id, tuple, BYI_INJECTIVE, BYI_INJECTIVE);
}

/* Fuse node `id` into its immediate post-dominator, if this phase does that. */
static void fuse_node(struct grouper *g, enum phase phase, byi_id id)
{
    const byi_id to = g->tree[id].parent;
    const uint8_t path_kind = g->tree[id].kind;
    if (g->kind[id] == KIND_OPAQUE || to == g->f->nodes.n ||
        g->kind[to] == KIND_OPAQUE || find_group(g, id) == find_group(g, to))
        return;
    const uint8_t kind = g->groups[find_group(g, id)].kind;
    if (phase == FIELDS) {
        fuse_field(g, id, to);
        return;
    }
    if (g->kind[to] == KIND_TUPLE)
        return;
    if (kind == BYI_OUT_FUSABLE && phase == POINTWISE &&
        path_kind == BYI_ELEMWISE)
        try_fuse(g, id, to, BYI_BROADCAST, BYI_BROADCAST);
    else if (kind <= BYI_BROADCAST && path_kind <= BYI_REDUCE)
        try_fuse(g, id, to, BYI_INJECTIVE, BYI_OUT_FUSABLE);
    else if ((kind == BYI_INJECTIVE || kind == KIND_TUPLE) &&
             phase == INJECTIVE)
        try_fuse(g, id, to, BYI_INJECTIVE, BYI_INJECTIVE);
}

/* --- epilogues ------------------------------------------------------------ */

bool byi_fuse_has_epilogue(const struct byi_func *f, byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];
    return node->kind == BYI_CALL_OP && !node->backend && !node->region &&
           node->n_args >= 2 &&
           byi_epilogue_is_supported(node->op, node->attrs, node->n_args,
                                     f->nodes.at[node->args[1]].type,
                                     node->type);
}

byi_id byi_fuse_next_in_epilogue(const struct byi_func *f,
                                 const struct byi_uses *uses, byi_id head,
                                 byi_id id)
{
    const struct byi_node *first = &f->nodes.at[head];
    const struct byi_node *node = &f->nodes.at[id];
    const uint32_t use = uses->first[id];
    if (uses->first[id + 1] != use + 1 || id == f->result)
        return BYI_NO_ID;
    const byi_id next = uses->at[use];
    const struct byi_node *reader = &f->nodes.at[next];
    const bool commutes = reader->kind == BYI_CALL_OP &&
                          byi_op_has(reader->op, BYI_TRAIT_COMMUTES);
    if (reader->kind != BYI_CALL_OP || reader->backend || reader->region ||
        reader->n_args == 0 || reader->n_args > 2 ||
        (reader->args[0] != id && !commutes) ||
        !byi_type_equal(reader->type, node->type))
        return BYI_NO_ID;
    const struct byi_type *operand =
        reader->n_args == 2
            ? f->nodes.at[reader->args[reader->args[0] == id]].type
            : NULL;
    const uint32_t axis =
        byi_epilogue_axis(first->op, first->attrs, first->type->rank);
    return byi_epilogue_allows(reader->op, node->type, axis, operand)
               ? next
               : BYI_NO_ID;
}

/* Group node `id` with its epilogue, and keep other nodes out of the group. */
static void join_epilogue(struct grouper *g, byi_id id)
{
    if (!byi_fuse_has_epilogue(g->f, id))
        return;
    byi_id last = id, next;
    for (uint32_t n = 1;
         n <= BYI_EPILOGUE_OPS && n < g->limits->max_depth &&
         (next = byi_fuse_next_in_epilogue(g->f, g->uses, id, last)) !=
             BYI_NO_ID &&
         g->groups[find_group(g, next)].size == 1;
         n++) {
        join_groups(g, find_group(g, last), find_group(g, next));
        g->kind[next] = KIND_OPAQUE;
        last = next;
    }
    g->kind[id] = KIND_OPAQUE;
    g->groups[find_group(g, id)].kind = KIND_OPAQUE;
}

static void init_groups(struct grouper *g, struct byi_arena *scratch)
{
    const uint32_t n = g->f->nodes.n;
    g->kind = byi_arena_calloc(scratch, n, sizeof *g->kind);
    g->groups = byi_arena_calloc(scratch, n, sizeof *g->groups);
    g->seen = byi_arena_calloc(scratch, n, sizeof *g->seen);
    g->seen_group = byi_arena_calloc(scratch, n, sizeof *g->seen_group);
    for (byi_id id = 0; id < n; id++) {
        g->kind[id] = node_kind(g, id);
        g->groups[id] = (struct fuse_group){.parent = id,
                                            .size = 1,
                                            .next = id,
                                            .reads = g->f->nodes.at[id].n_args,
                                            .kind = g->kind[id]};
    }
    for (byi_id id = 0; id < n && g->limits->epilogues; id++)
        join_epilogue(g, id);
    g->tree =
        byi_post_dominators(g->f, g->uses, edge_kind, g, KIND_OPAQUE, scratch);
}

const uint32_t *byi_fuse_groups(const struct byi_func *f,
                                const struct byi_uses *uses,
                                const struct byi_fuse_limits *limits,
                                struct byi_arena *scratch)
{
    struct grouper g = {.f = f, .uses = uses, .limits = limits};
    init_groups(&g, scratch);
    for (enum phase phase = POINTWISE; phase < N_PHASES; phase++)
        for (byi_id id = 0; id < f->nodes.n; id++)
            fuse_node(&g, phase, id);
    uint32_t *groups =
        byi_arena_calloc(scratch, f->nodes.n + 1, sizeof *groups);
    for (byi_id id = 0; id < f->nodes.n; id++)
        groups[id] = find_group(&g, id);
    byi_vec_free(g.path.at);
    byi_vec_free(g.joined.at);
    return groups;
}
