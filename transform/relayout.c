/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.c: finds the plan: which values are other values in another layout,
 * and which layouts readers need; then coordinate descent minimises the cost of
 * conversions.
 */
#include "relayout.h"

#include <assert.h>
#include <string.h>

#include "core/ops/layout.h"

enum {
    ROUNDS = 3,          /* of a sweep down and a sweep up           */
    MAX_CANDIDATES = 16, /* states that are priced for one node      */
    MAX_LISTED = 32,     /* needs of one value that are read         */
    UNKNOWN_DIM = 32,    /* assumed size of a symbolic dim           */
    FEW_NEEDS = 8,       /* needs of one value before they are hashed */
    CALL_COST = 4096     /* cost of a conversion besides its bytes   */
};

/* --- needs --------------------------------------------------------------- */

/* The needs of a root are a list; a long list (FEW_NEEDS or more) is also in
 * the hash table. */
static bool is_long(const struct byi_relayout *rl, byi_id root)
{
    return rl->needs.at[rl->first_need[root]].depth >= FEW_NEEDS;
}

/* Returns the index of the need, or 0 if it does not exist. */
static uint32_t find_need(const struct byi_relayout *rl, byi_id root,
                          byi_rl_layout_id layout)
{
    if (!is_long(rl, root)) {
        uint32_t at = rl->first_need[root];
        while (at && rl->needs.at[at].layout != layout)
            at = rl->needs.at[at].next;
        return at;
    }
    BYI_INDEX_EACH (&rl->long_needs, byi_rl_hash(root, layout), i)
        if (rl->needs.at[i].root == root && rl->needs.at[i].layout == layout)
            return i;
    return 0;
}

/* Count one more reader that needs `root` in this layout. A list that reaches
 * FEW_NEEDS is hashed as a whole; later needs are hashed one by one. */
static void add_need(struct byi_relayout *rl, byi_id root,
                     byi_rl_layout_id layout)
{
    const uint32_t found = find_need(rl, root, layout);
    if (found) {
        rl->needs.at[found].count++;
        return;
    }
    const uint32_t index = rl->needs.n, next = rl->first_need[root];
    const uint32_t depth = rl->needs.at[next].depth + 1;
    BYI_PUSH(&rl->needs, ((struct byi_need){root, layout, 1, next, depth}));
    rl->first_need[root] = index;
    if (depth < FEW_NEEDS)
        return;
    for (uint32_t at = index; at; at = rl->needs.at[at].next) {
        byi_index_add(&rl->long_needs,
                      byi_rl_hash(root, rl->needs.at[at].layout), at);
        if (depth > FEW_NEEDS)
            break;
    }
}

/* Add (by = 1) or remove (by = -1) the needs of node `id` in that state. */
static void count_needs(struct byi_relayout *rl, byi_id id, uint32_t state,
                        int by)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    for (uint32_t i = 0; i < node->n_args; i++) {
        const byi_rl_layout_id need = byi_rl_need(rl, id, state, i);
        const byi_rl_layout_id layout =
            byi_rl_at_origin(rl, node->args[i], need);
        const byi_id root = rl->sites[node->args[i]].root;
        if (by > 0)
            add_need(rl, root, layout);
        else
            rl->needs.at[find_need(rl, root, layout)].count--;
    }
}

/* --- cost ---------------------------------------------------------------- */

/* Returns the bytes of a value, at most 2^40; symbolic dims count as
 * UNKNOWN_DIM. */
static uint64_t bytes_of(const struct byi_type *type)
{
    uint64_t bytes = 0;
    if (type->kind == BYI_TENSOR) {
        bytes = byoc_dtype_size(type->dtype);
        for (uint32_t i = 0; i < type->rank && bytes < UINT64_C(1) << 40; i++)
            bytes *= BYI_IS_SYMBOL(type->dims[i]) ? UNKNOWN_DIM
                                                  : (uint64_t)type->dims[i];
    }
    for (uint32_t i = 0; type->kind == BYI_TUPLE && i < type->n_fields; i++)
        bytes += bytes_of(type->fields[i]);
    return bytes < UINT64_C(1) << 40 ? bytes : UINT64_C(1) << 40;
}

/* Returns the cost of converting `root` from one layout to another: 0 for a
 * constant, 1 for a conversion that moves no elements. */
static uint64_t conversion_cost(const struct byi_relayout *rl, byi_id root,
                                byi_rl_layout_id from, byi_rl_layout_id to)
{
    const struct byi_node *node = byi_rl_node(rl, root);
    if (from == to || node->kind == BYI_CONST)
        return 0;
    const struct byi_type *type = byi_rl_type(rl, root);
    if (type && byi_type_is_static(type)) {
        const struct byi_rl_layout a =
            byi_rl_layout_at(&rl->layouts, from, type->rank);
        const struct byi_rl_layout b =
            byi_rl_layout_at(&rl->layouts, to, type->rank);
        if (byi_rl_layout_same_order(&a, &b, type))
            return 1;
    }
    return rl->sites[root].move_cost;
}

static byi_rl_layout_id layout_of(struct byi_relayout *rl, byi_id root)
{
    return byi_rl_out(rl, root, rl->sites[root].state);
}

/* Returns the conversion cost of the readers of `id` if its result has layout
 * `out`. */
static uint64_t readers_cost(const struct byi_relayout *rl, byi_id id,
                             byi_rl_layout_id out)
{
    uint64_t cost = 0;
    uint32_t at = rl->first_need[id];
    for (int i = 0; at && i < MAX_LISTED; i++, at = rl->needs.at[at].next)
        if (rl->needs.at[at].count > 0)
            cost += conversion_cost(rl, id, out, rl->needs.at[at].layout);
    return cost;
}

/* Returns the cost of aligning a broadcast operand of lower rank with the
 * state. The cost is 0 if the operand is a constant or if only axes of size 1
 * move. */
static uint64_t alignment_cost(const struct byi_relayout *rl, byi_id id,
                               uint32_t i, uint32_t state)
{
    const byi_id arg = byi_rl_node(rl, id)->args[i];
    const struct byi_type *type = byi_rl_type(rl, arg);
    const uint32_t rank = byi_rl_type(rl, id)->rank;
    uint32_t last = 0, lead = rank - type->rank;
    bool moves = false;
    if (state == 0 || byi_rl_node(rl, rl->sites[arg].root)->kind == BYI_CONST)
        return 0;
    const struct byi_rl_layout layout =
        byi_rl_layout_at(&rl->layouts, state, rank);
    for (uint32_t k = 0; k < rank; k++) {
        const uint32_t axis = layout.at[k];
        if (axis < lead || type->dims[axis - lead] == 1)
            continue;
        moves |= axis < last || (layout.block && axis == layout.block_axis);
        last = axis;
    }
    return moves ? rl->sites[rl->sites[arg].root].move_cost : 0;
}

/* Returns the conversion cost of the operands if node `id`, whose needs are not
 * counted, is in this state. Needs are added temporarily, so that operands
 * share conversions. */
static uint64_t operands_cost(struct byi_relayout *rl, byi_id id,
                              uint32_t state)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    uint64_t cost = 0;
    for (uint32_t i = 0; i < node->n_args; i++) {
        const byi_id arg = node->args[i], root = rl->sites[arg].root;
        const byi_rl_layout_id layout =
            byi_rl_at_origin(rl, arg, byi_rl_need(rl, id, state, i));
        const uint32_t found = find_need(rl, root, layout);
        if (!found || rl->needs.at[found].count == 0)
            cost += conversion_cost(rl, root, layout_of(rl, root), layout);
        if (byi_rl_has_lower_rank(rl, id, i))
            cost += alignment_cost(rl, id, i, state);
        add_need(rl, root, layout);
    }
    count_needs(rl, id, state, -1);
    return cost;
}

static uint64_t cost_of(struct byi_relayout *rl, byi_id id, uint32_t state)
{
    return readers_cost(rl, id, byi_rl_out(rl, id, state)) +
           operands_cost(rl, id, state);
}

/* --- sweeps -------------------------------------------------------------- */

/* The states that are priced for a node. */
struct layout_candidates {
    uint32_t n;
    uint32_t states[MAX_CANDIDATES];
};

static void propose(const struct byi_relayout *rl, struct layout_candidates *c,
                    byi_id id, uint32_t state)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->states[i] == state)
            return;
    if (c->n < MAX_CANDIDATES && byi_rl_allows(rl, id, state))
        c->states[c->n++] = state;
}

static void propose_operands(struct byi_relayout *rl,
                             struct layout_candidates *c, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    if (rl->sites[id].rule == BYI_RL_MATMUL) {
        propose(rl, c, id, rl->sites[id].state);
        for (uint32_t state = 0; state < 4; state++)
            propose(rl, c, id, state);
        return;
    }
    for (uint32_t i = 0; i < node->n_args && i < MAX_CANDIDATES / 2; i++) {
        const struct byi_site *arg = &rl->sites[node->args[i]];
        const byi_rl_layout_id layout = layout_of(rl, arg->root);
        const struct byi_type *type = byi_rl_type(rl, node->args[i]);
        if (!type)
            continue;
        /* the layout that the origin has now, as a layout of this value */
        const byi_rl_layout_id inverse =
            arg->rel ? byi_rl_layout_inverse(&rl->layouts, arg->rel, type->rank)
                     : 0;
        const byi_rl_layout_id seen_layout =
            byi_rl_layout_compose(&rl->layouts, inverse, layout, type->rank);
        propose(rl, c, id, byi_rl_from_operand(rl, id, i, seen_layout));
    }
}

static void propose_readers(struct byi_relayout *rl,
                            struct layout_candidates *c, byi_id id)
{
    uint32_t at = rl->first_need[id];
    for (int i = 0; at && i < MAX_LISTED; i++, at = rl->needs.at[at].next)
        if (rl->needs.at[at].count > 0)
            propose(rl, c, id,
                    byi_rl_from_result(rl, id, rl->needs.at[at].layout));
}

/* Move node `id` to its cheapest state. Returns the saved cost. Ties go to the
 * layout of the operands if `down`, otherwise to that of the readers. */
static uint64_t improve(struct byi_relayout *rl, byi_id id, bool down)
{
    struct byi_site *site = &rl->sites[id];
    struct layout_candidates c = {0};
    if (down)
        propose_operands(rl, &c, id);
    else
        propose_readers(rl, &c, id);
    propose(rl, &c, id, site->state);
    if (down)
        propose_readers(rl, &c, id);
    else
        propose_operands(rl, &c, id);
    propose(rl, &c, id, 0);
    if (c.n == 1)
        return 0;
    count_needs(rl, id, site->state, -1);
    const uint64_t now = cost_of(rl, id, site->state);
    uint64_t least = UINT64_MAX;
    for (uint32_t i = 0; i < c.n; i++) {
        const uint64_t cost = cost_of(rl, id, c.states[i]);
        if (cost < least) {
            least = cost;
            site->state = c.states[i];
        }
    }
    count_needs(rl, id, site->state, 1);
    assert(least <= now);
    return now - least;
}

/* Whether the plan may choose the state of node `id`. */
static bool is_free(const struct byi_relayout *rl, byi_id id)
{
    const struct byi_site *site = &rl->sites[id];
    return site->live && site->origin == id && !site->pinned &&
           site->rule != BYI_RL_FIXED;
}

static uint64_t total_cost(struct byi_relayout *rl)
{
    uint64_t cost = 0;
    for (uint32_t i = 1; i < rl->needs.n; i++) {
        const struct byi_need *need = &rl->needs.at[i];
        if (need->count > 0)
            cost += conversion_cost(rl, need->root, layout_of(rl, need->root),
                                    need->layout);
    }
    return cost;
}

/* Move a node to the layout of its operands, regardless of its readers. Sweeps
 * that start from there escape local minima around the original function. */
static void follow_operands(struct byi_relayout *rl, byi_id id)
{
    struct layout_candidates c = {0};
    uint64_t least = UINT64_MAX;
    propose_operands(rl, &c, id);
    propose(rl, &c, id, 0);
    count_needs(rl, id, rl->sites[id].state, -1);
    for (uint32_t k = 0; k < c.n; k++) {
        const uint64_t cost = operands_cost(rl, id, c.states[k]);
        if (cost < least) {
            least = cost;
            rl->sites[id].state = c.states[k];
        }
    }
    count_needs(rl, id, rl->sites[id].state, 1);
}

/* Sweep until nothing is saved, at most ROUNDS times. Returns the plan's cost.
 * The last sweep runs down, so that ties give operators the layout of their
 * operands. */
static uint64_t descend(struct byi_relayout *rl)
{
    const uint32_t n = rl->old->nodes.n;
    uint64_t saved = 1;
    for (int round = 0; round < ROUNDS && saved; round++) {
        saved = 0;
        for (byi_id id = 0; id < n; id++)
            if (is_free(rl, id))
                saved += improve(rl, id, true);
        for (byi_id id = n; id-- > 0;)
            if (is_free(rl, id))
                saved += improve(rl, id, false);
    }
    for (byi_id id = 0; id < n; id++)
        if (is_free(rl, id))
            improve(rl, id, true);
    return total_cost(rl);
}

static void set_state(struct byi_relayout *rl, byi_id id, uint32_t state)
{
    count_needs(rl, id, rl->sites[id].state, -1);
    rl->sites[id].state = state;
    count_needs(rl, id, state, 1);
}

/* Descend from the original function, and from the one in which every node
 * follows its operands; keep the cheaper plan. Returns its cost. */
static uint64_t find_plan(struct byi_relayout *rl)
{
    const uint32_t n = rl->old->nodes.n;
    uint32_t *first_states =
        byi_arena_calloc(rl->scratch, n + 1, sizeof *first_states);
    const uint64_t first_cost = descend(rl);
    for (byi_id id = 0; id < n; id++)
        first_states[id] = rl->sites[id].state;
    for (byi_id id = 0; id < n; id++)
        if (is_free(rl, id))
            follow_operands(rl, id);
    const uint64_t second_cost = descend(rl);
    if (second_cost < first_cost)
        return second_cost;
    for (byi_id id = 0; id < n; id++)
        if (is_free(rl, id))
            set_state(rl, id, first_states[id]);
    return first_cost;
}

/* --- the original function ----------------------------------------------- */

/* Whether node `id` only permutes axes: a transpose, or a layout_transform
 * without blocks. *layout: the permutation. */
static bool is_transposition(const struct byi_relayout *rl, byi_id id,
                             struct byi_rl_layout *layout)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    int64_t axes[BYI_MAX_RANK];
    struct byi_layout src, dst;
    if (node->kind != BYI_CALL_OP)
        return false;
    const uint32_t rank = byi_rl_type(rl, id) ? byi_rl_type(rl, id)->rank : 0;
    *layout = (struct byi_rl_layout){.rank = (uint8_t)rank};
    if (node->op == BYI_OP_LAYOUT_TRANSFORM) {
        const char *from = byi_attr_find(node->attrs, "src_layout")->s;
        const char *to = byi_attr_find(node->attrs, "dst_layout")->s;
        if (byi_layout_parse(from, &src) || byi_layout_parse(to, &dst) ||
            !byi_layout_permutation(&src, &dst, axes))
            return false;
        for (uint32_t i = 0; i < rank; i++)
            layout->at[i] = (uint8_t)axes[i];
        return true;
    }
    if (node->op != BYI_OP_TRANSPOSE)
        return false;
    uint32_t n;
    const int64_t *list = byi_attr_ints(node->attrs, "axes", &n);
    for (uint32_t i = 0; i < rank; i++)
        layout->at[i] = n ? (uint8_t)(list[i] < 0 ? list[i] + rank : list[i])
                          : (uint8_t)(rank - 1 - i);
    return true;
}

static void analyse_node(struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    struct byi_rl_layout layout;
    site->origin = site->root = id;
    site->move_cost = bytes_of(node->type) + CALL_COST;
    if (is_transposition(rl, id, &layout)) {
        const struct byi_site *arg = &rl->sites[node->args[0]];
        const byi_rl_layout_id permutation =
            byi_rl_layout_intern(&rl->layouts, &layout);
        site->origin = arg->origin;
        site->root = arg->root;
        site->rel = byi_rl_layout_compose(&rl->layouts, arg->rel, permutation,
                                          layout.rank);
        return;
    }
    if (node->kind == BYI_GET && byi_rl_type(rl, id) &&
        byi_rl_node(rl, node->args[0])->kind == BYI_CALL_OP)
        site->root = node->args[0];
    byi_rl_classify(rl, id);
}

static void mark_live(struct byi_relayout *rl)
{
    rl->sites[rl->old->result].live = true;
    for (byi_id id = rl->old->nodes.n; id-- > 0;) {
        const struct byi_node *node = byi_rl_node(rl, id);
        rl->sites[id].live |= node->kind == BYI_PARAM;
        for (uint32_t i = 0; rl->sites[id].live && i < node->n_args; i++)
            rl->sites[node->args[i]].live = true;
    }
}

/* Mark values that have a reader that is not an nn.dense with constant weights.
 */
static void mark_mixed(struct byi_relayout *rl)
{
    rl->sites[rl->old->result].mixed = true;
    for (byi_id id = 0; id < rl->old->nodes.n; id++) {
        const struct byi_node *node = byi_rl_node(rl, id);
        const bool dense = node->kind == BYI_CALL_OP &&
                           node->op == BYI_OP_NN_DENSE &&
                           byi_rl_node(rl, node->args[1])->kind == BYI_CONST;
        for (uint32_t i = 0; rl->sites[id].live && i < node->n_args; i++)
            rl->sites[node->args[i]].mixed |= !dense || i != 0;
    }
}

/* Pin value `id`, which is read as a whole, if it is a tuple: it cannot be
 * converted. */
static void pin_tuple(struct byi_relayout *rl, byi_id id)
{
    if (byi_rl_node(rl, id)->type->kind != BYI_TENSOR)
        rl->sites[id].pinned = true;
}

/* Whether node `id` needs its operands in some layout. A transpose does not,
 * since it is itself a layout; a field has the layout of its tuple. */
static bool has_needs(const struct byi_relayout *rl, byi_id id)
{
    const struct byi_site *site = &rl->sites[id];
    return site->live && site->origin == id && site->root == id;
}

static void analyse_nodes(struct byi_relayout *rl)
{
    const struct byi_func *old = rl->old;
    for (byi_id id = 0; id < old->nodes.n; id++)
        analyse_node(rl, id);
    for (byi_id id = 0; id < old->nodes.n; id++) {
        const struct byi_node *node = byi_rl_node(rl, id);
        const struct byi_site *site = &rl->sites[id];
        if (site->live && site->origin != id) {
            const byi_rl_layout_id from = rl->sites[node->args[0]].rel;
            const uint64_t now =
                conversion_cost(rl, site->origin, from, site->rel);
            /* a transpose that moves nothing costs more than its conversion,
             * so that a plan without it is cheaper */
            rl->original_cost += now > 1 ? now : now + 1;
        }
        for (uint32_t i = 0; has_needs(rl, id) && i < node->n_args; i++)
            pin_tuple(rl, node->args[i]);
    }
    pin_tuple(rl, old->result);
}

void byi_relayout_init(struct byi_relayout *rl, struct byi_module *m,
                       uint32_t func, struct byi_pass_context *ctx,
                       struct byi_arena *scratch)
{
    const uint32_t n = m->funcs.at[func]->nodes.n;
    *rl = (struct byi_relayout){
        .m = m, .ctx = ctx, .scratch = scratch, .old = m->funcs.at[func]};
    rl->sites = byi_arena_calloc(scratch, n + 1, sizeof *rl->sites);
    rl->first_need = byi_arena_calloc(scratch, n + 1, sizeof(uint32_t));
    rl->long_needs.arena = scratch;
    BYI_PUSH(&rl->needs, ((struct byi_need){0})); /* index 0 means none */
    mark_live(rl);
    mark_mixed(rl);
    analyse_nodes(rl);
}

void byi_relayout_free(struct byi_relayout *rl)
{
    byi_rl_layouts_free(&rl->layouts);
    byi_vec_free(rl->needs.at);
    byi_vec_free(rl->conversions.at);
    byi_vec_free(rl->pending.at);
}

/* --- pins ---------------------------------------------------------------- */

/* Returns layout `to` of a tensor that is in layout `from`, which has no
 * blocks; BYI_RL_NO_LAYOUT if it has, their letters differ or `to` has more
 * than one block. */
static byi_rl_layout_id layout_between(struct byi_relayout *rl,
                                       const char *from, const char *to)
{
    struct byi_layout a, b;
    struct byi_rl_layout layout = {0};
    if (byi_layout_parse(from, &a) || byi_layout_parse(to, &b) ||
        !byi_layout_is_plain(&a))
        return BYI_RL_NO_LAYOUT;
    for (uint32_t i = 0; i < b.n; i++) {
        const int at = byi_layout_find(&a, b.at[i].letter);
        if (at < 0 || layout.block)
            return BYI_RL_NO_LAYOUT;
        if (b.at[i].block) {
            layout.block = (uint8_t)b.at[i].block;
            layout.block_axis = (uint8_t)at;
        } else {
            layout.at[layout.rank++] = (uint8_t)at;
        }
    }
    return layout.rank == a.n ? byi_rl_layout_intern(&rl->layouts, &layout)
                              : BYI_RL_NO_LAYOUT;
}

bool byi_relayout_pin(struct byi_relayout *rl, byi_id id, const char *data,
                      const char *kernel)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    const struct byi_attr *now = byi_attr_find(node->attrs, "data_layout");
    const struct byi_attr *weights =
        byi_attr_find(node->attrs, "kernel_layout");
    if (!now)
        now = byi_attr_find(node->attrs, "layout");
    const byi_rl_layout_id layout = layout_between(rl, now->s, data);
    if (layout == BYI_RL_NO_LAYOUT || !byi_rl_allows(rl, id, layout))
        return false;
    site->pinned = true;
    site->state = layout;
    rl->changed |= layout != 0;
    if (!kernel || !weights || strcmp(kernel, weights->s) == 0)
        return true;
    const byi_rl_layout_id order = layout_between(rl, weights->s, kernel);
    const bool is_permutation = order != BYI_RL_NO_LAYOUT && order != 0 &&
                                rl->layouts.list.at[order].block == 0;
    site->kernel = kernel;
    site->kernel_layout = is_permutation ? order : 0;
    rl->changed = true;
    return true;
}

enum byoc_status byi_relayout_run(struct byi_relayout *rl, uint32_t func,
                                  struct byoc_error *err)
{
    if (!rl->changed && rl->original_cost == 0)
        return BYOC_OK;
    for (byi_id id = 0; id < rl->old->nodes.n; id++)
        if (has_needs(rl, id))
            count_needs(rl, id, rl->sites[id].state, 1);
    const struct byi_site *result = &rl->sites[rl->old->result];
    add_need(rl, result->root, result->rel);
    if (find_plan(rl) >= rl->original_cost && !rl->changed)
        return BYOC_OK;
    BYI_TRY(byi_rl_emit(rl, err));
    byi_func_replace(rl->m, func, rl->f);
    return BYOC_OK;
}
