/* SPDX-License-Identifier: Apache-2.0 */
/* relayout_emit.c: builds the function that a plan describes. Each value is
 * emitted in the layout of its node's state; a conversion to another layout is
 * emitted once, for its first reader.
 */
#include "relayout.h"

#include <assert.h>
#include <string.h>

#include "rewrite.h"

enum { MAX_ATTRS = 16 };
/* Set in the ids of layouts of weights that are not interned. */
#define KERNEL_LAYOUTS ((byi_rl_layout_id)1 << 31)

/* --- sources ------------------------------------------------------------- */

/* Queue the sources of the transposes that value `id` replaces, unless another
 * node took them over. */
static void claim_sources(struct byi_relayout *rl, byi_id id)
{
    while (rl->sites[id].origin != id && !rl->sites[id].claimed) {
        const struct byi_node *node = byi_rl_node(rl, id);
        rl->sites[id].claimed = true;
        for (uint32_t i = 0; i < node->sources->n; i++)
            BYI_PUSH(&rl->pending, node->sources->at[i]);
        id = node->args[0];
    }
}

/* Move the pending sources from index `first` on to the new node `id`. If it is
 * a parameter, which cannot have sources, drop them. */
static void move_sources(struct byi_relayout *rl, byi_id id, uint32_t first)
{
    struct byi_node *node = &rl->f->nodes.at[id];
    if (rl->pending.n == first || node->kind == BYI_PARAM) {
        rl->pending.n = first;
        return;
    }
    for (uint32_t i = 0; i < node->sources->n; i++)
        BYI_PUSH(&rl->pending, node->sources->at[i]);
    node->sources =
        byi_sources_of(rl->m, rl->pending.at + first, rl->pending.n - first);
    rl->pending.n = first;
}

/* --- conversions --------------------------------------------------------- */

/* Fold the call just added if its operands are constants. */
static byi_id fold_call(struct byi_relayout *rl, byi_id call)
{
    const struct byi_node node = rl->f->nodes.at[call];
    const struct byi_sources *sources = rl->f->nodes.at[node.args[0]].sources;
    struct byi_tensor in[2], out;
    if (!rl->ctx->eval || node.n_args > 2)
        return call;
    for (uint32_t i = 0; i < node.n_args; i++)
        if (!byi_const_view(rl->m, rl->f, node.args[i], &in[i]))
            return call;
    if (!byi_const_alloc(rl->m, node.type, &out) ||
        rl->ctx->eval(byi_op(node.op), node.attrs, node.n_args, in, 1, &out,
                      NULL) != BYOC_OK)
        return call;
    assert(call + 1 == rl->f->nodes.n);
    rl->f->nodes.n--;
    const uint32_t index = byi_const_add(rl->m, node.type, out.data, true);
    return byi_add_const(rl->m, rl->f, index, sources);
}

static byi_id add_ints(struct byi_relayout *rl, const int64_t *values,
                       uint32_t n)
{
    const int64_t dim = n;
    const struct byi_type *type =
        byi_type_tensor(rl->m->arena, BYOC_I64, 1, &dim);
    return byi_add_const(rl->m, rl->f,
                         byi_const_add(rl->m, type, values, false), NULL);
}

static enum byoc_status add_reshape(struct byi_relayout *rl, byi_id x,
                                    const struct byi_type *to, byi_id *id,
                                    struct byoc_error *err)
{
    const struct byi_attr allow = {
        .name = "allowzero", .kind = BYI_ATTR_BOOL, .i = 1};
    const byi_id args[] = {x, add_ints(rl, to->dims, to->rank)};
    const bool empty = byi_elements(to->rank, to->dims) == 0;
    BYI_TRY(byi_add_call(rl->m, rl->f, BYI_OP_RESHAPE, args, 2, &allow,
                         empty ? 1 : 0, NULL, id, err));
    *id = fold_call(rl, *id);
    return BYOC_OK;
}

static enum byoc_status add_transpose(struct byi_relayout *rl, byi_id x,
                                      const struct byi_rl_layout *from,
                                      const struct byi_rl_layout *to,
                                      byi_id *id, struct byoc_error *err)
{
    int64_t axes[BYI_MAX_RANK];
    for (uint32_t i = 0; i < to->rank; i++)
        axes[i] = byi_rl_layout_place(from, to->at[i]);
    const struct byi_attr attr = {
        .name = "axes", .kind = BYI_ATTR_INTS, .n = to->rank, .ints = axes};
    BYI_TRY(byi_add_call(rl->m, rl->f, BYI_OP_TRANSPOSE, &x, 1, &attr, 1, NULL,
                         id, err));
    *id = fold_call(rl, *id);
    return BYOC_OK;
}

static enum byoc_status add_layout_transform(struct byi_relayout *rl, byi_id x,
                                             const char *from, const char *to,
                                             byi_id *id, struct byoc_error *err)
{
    const struct byi_attr attrs[] = {
        {.name = "src_layout", .kind = BYI_ATTR_STRING, .s = from},
        {.name = "dst_layout", .kind = BYI_ATTR_STRING, .s = to}};
    BYI_TRY(byi_add_call(rl->m, rl->f, BYI_OP_LAYOUT_TRANSFORM, &x, 1, attrs, 2,
                         NULL, id, err));
    *id = fold_call(rl, *id);
    return BYOC_OK;
}

/* Returns the conventional letters of the axes of images. */
static const char *letters_of(uint32_t rank)
{
    static const char *const letters[] = {
        [2] = "NC", [3] = "NCW", [4] = "NCHW", [5] = "NCDHW"};
    return rank < BYI_COUNT(letters) ? letters[rank] : NULL;
}

/* Convert the new node x, whose type before any layout is `type`, between two
 * layouts. */
static enum byoc_status convert(struct byi_relayout *rl, byi_id x,
                                const struct byi_type *type,
                                const struct byi_rl_layout *from,
                                const struct byi_rl_layout *to, byi_id *id,
                                struct byoc_error *err)
{
    char src[BYI_RL_LAYOUT_NAME], dst[BYI_RL_LAYOUT_NAME];
    if (byi_type_is_static(type) && byi_rl_layout_same_order(from, to, type))
        return add_reshape(rl, x, byi_rl_layout_type(rl->scratch, to, type), id,
                           err);
    if (!from->block && !to->block)
        return add_transpose(rl, x, from, to, id, err);
    /* an axis of size 1 needs no blocks */
    struct byi_rl_layout a = *from, b = *to;
    a.block = type->dims[a.block_axis] == 1 ? 0 : a.block;
    b.block = type->dims[b.block_axis] == 1 ? 0 : b.block;
    if (a.block != from->block || b.block != to->block) {
        if (a.block != from->block)
            BYI_TRY(add_reshape(
                rl, x, byi_rl_layout_type(rl->scratch, &a, type), &x, err));
        BYI_TRY(convert(rl, x, type, &a, &b, id, err));
        if (b.block != to->block)
            BYI_TRY(add_reshape(
                rl, *id, byi_rl_layout_type(rl->scratch, to, type), id, err));
        return BYOC_OK;
    }
    const char *letters = letters_of(type->rank);
    return add_layout_transform(rl, x, byi_rl_layout_name(from, letters, src),
                                byi_rl_layout_name(to, letters, dst), id, err);
}

/* Returns the conversion of `origin` to `layout`, or NULL if there is none yet.
 */
static const struct byi_relayout_value *find_conversion(
    const struct byi_relayout *rl, byi_id origin, byi_rl_layout_id layout)
{
    BYI_INDEX_EACH (&rl->conversion_index, byi_rl_hash(origin, layout), i)
        if (rl->conversions.at[i].origin == origin &&
            rl->conversions.at[i].layout == layout)
            return &rl->conversions.at[i];
    return NULL;
}

static void add_conversion(struct byi_relayout *rl, byi_id origin,
                           byi_rl_layout_id layout, byi_id node)
{
    byi_index_add(&rl->conversion_index, byi_rl_hash(origin, layout),
                  rl->conversions.n);
    BYI_PUSH(&rl->conversions,
             ((struct byi_relayout_value){origin, layout, node}));
}

/* Set *out to the new node of value `id` of the old function in layout
 * `need`; emit a conversion if there is none yet. */
static enum byoc_status fetch(struct byi_relayout *rl, byi_id id,
                              byi_rl_layout_id need, byi_id *out,
                              struct byoc_error *err)
{
    const byi_id origin = rl->sites[id].origin;
    const struct byi_site *site = &rl->sites[origin];
    const byi_rl_layout_id layout = byi_rl_at_origin(rl, id, need);
    const uint32_t first = rl->pending.n;
    claim_sources(rl, id);
    *out = site->base;
    if (layout == site->base_layout)
        return BYOC_OK;
    const struct byi_relayout_value *converted =
        find_conversion(rl, origin, layout);
    if (converted) {
        *out = converted->node;
        return BYOC_OK;
    }
    const struct byi_type *type = byi_rl_type(rl, origin);
    const struct byi_rl_layout from =
        byi_rl_layout_at(&rl->layouts, site->base_layout, type->rank);
    const struct byi_rl_layout to =
        byi_rl_layout_at(&rl->layouts, layout, type->rank);
    BYI_TRY(convert(rl, site->base, type, &from, &to, out, err));
    move_sources(rl, *out, first);
    add_conversion(rl, origin, layout, *out);
    return BYOC_OK;
}

/* --- calls in another state ---------------------------------------------- */

/* A call being built: its operands in the new function, its attributes. */
struct relayout_call {
    byi_id old;                  /* its node in the old function */
    struct byi_rl_layout layout; /* of the state */
    byi_id *args;
    enum byi_op_id op;
    uint32_t n_attrs;
    struct byi_attr attrs[MAX_ATTRS];
    int64_t axes[BYI_MAX_RANK];   /* memory of attribute `axis` */
    double roi[2 * BYI_MAX_RANK]; /* memory of attribute `roi` */
};

static struct byi_attr *attr_of(struct relayout_call *call, const char *name)
{
    for (uint32_t i = 0; i < call->n_attrs; i++)
        if (strcmp(call->attrs[i].name, name) == 0)
            return &call->attrs[i];
    return NULL;
}

/* Returns the storage position of an axis of the state; an axis out of range
 * stays. */
static int64_t place_axis(const struct relayout_call *call, int64_t axis)
{
    const int64_t rank = call->layout.rank;
    const int64_t normal = axis < 0 ? axis + rank : axis;
    return normal < 0 || normal >= rank
               ? axis
               : byi_rl_layout_place(&call->layout, (uint32_t)normal);
}

static void rewrite_axis(struct relayout_call *call)
{
    struct byi_attr *attr = attr_of(call, "axis");
    if (!attr)
        return;
    if (attr->kind == BYI_ATTR_INT) {
        attr->i = place_axis(call, attr->i);
        return;
    }
    if (attr->n > BYI_MAX_RANK)
        return;
    for (uint32_t i = 0; i < attr->n; i++) {
        const int64_t axis = place_axis(call, attr->ints[i]);
        uint32_t at = i;
        for (; at > 0 && call->axes[at - 1] > axis; at--)
            call->axes[at] = call->axes[at - 1];
        call->axes[at] = axis;
    }
    attr->ints = call->axes;
}

/* Permute operand 1: `groups` lists with one entry per axis each. False if it
 * is not such a constant. */
static bool permute_list(struct byi_relayout *rl, struct relayout_call *call,
                         uint32_t groups)
{
    const uint32_t rank = call->layout.rank;
    struct byi_tensor from, to;
    const struct byi_type *type = rl->f->nodes.at[call->args[1]].type;
    if (!byi_const_view(rl->m, rl->f, call->args[1], &from) ||
        byi_elements(from.rank, from.dims) != groups * rank ||
        !byi_const_alloc(rl->m, type, &to))
        return false;
    const size_t size = byoc_dtype_size(from.dtype);
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t k = 0; k < rank; k++)
            memcpy((char *)to.data + (g * rank + k) * size,
                   (const char *)from.data +
                       (g * rank + call->layout.at[k]) * size,
                   size);
    call->args[1] =
        byi_add_const(rl->m, rl->f, byi_const_add(rl->m, type, to.data, true),
                      rl->f->nodes.at[call->args[1]].sources);
    return true;
}

/* Rename the axes that operand i lists. False if it is not constant. */
static bool rename_axes(struct byi_relayout *rl, struct relayout_call *call,
                        uint32_t i)
{
    struct byi_tensor from, to;
    const struct byi_type *type = rl->f->nodes.at[call->args[i]].type;
    if (!byi_const_view(rl->m, rl->f, call->args[i], &from) ||
        !byi_const_alloc(rl->m, type, &to))
        return false;
    const int64_t n = byi_elements(from.rank, from.dims);
    for (int64_t k = 0; k < n; k++)
        byi_tensor_set(&to, k,
                       (double)place_axis(call, byi_tensor_int(&from, k)));
    call->args[i] =
        byi_add_const(rl->m, rl->f, byi_const_add(rl->m, type, to.data, true),
                      rl->f->nodes.at[call->args[i]].sources);
    return true;
}

/* Permute the region of a resize, which lists begins, then ends. */
static void permute_roi(struct relayout_call *call)
{
    struct byi_attr *roi = attr_of(call, "roi");
    const uint32_t rank = call->layout.rank;
    if (roi->n != 2 * rank)
        return;
    for (uint32_t k = 0; k < rank; k++) {
        call->roi[k] = roi->floats[call->layout.at[k]];
        call->roi[rank + k] = roi->floats[rank + call->layout.at[k]];
    }
    roi->floats = call->roi;
}

static bool rewrite_perm(struct byi_relayout *rl, struct relayout_call *call)
{
    switch (call->op) {
    case BYI_OP_NN_PAD:
        return permute_list(rl, call, 2);
    case BYI_OP_RESIZE:
        permute_roi(call);
        return permute_list(rl, call, 1);
    case BYI_OP_TILE:
    case BYI_OP_BROADCAST_TO:
        return permute_list(rl, call, 1);
    case BYI_OP_STRIDED_SLICE:
        return rename_axes(rl, call, 3);
    default:
        rewrite_axis(call);
        return true;
    }
}

static void rewrite_matmul(struct relayout_call *call, uint32_t state)
{
    struct byi_attr *a = attr_of(call, "transpose_a");
    struct byi_attr *b = attr_of(call, "transpose_b");
    if (a) {
        a->i ^= state & 1;
        b->i ^= state >> 1 & 1;
        return;
    }
    call->op = BYI_OP_NN_MATMUL; /* nn.dense is a matmul with transpose_b */
    call->attrs[call->n_attrs++] = (struct byi_attr){
        .name = "transpose_a", .kind = BYI_ATTR_BOOL, .i = state & 1};
    call->attrs[call->n_attrs++] = (struct byi_attr){
        .name = "transpose_b", .kind = BYI_ATTR_BOOL, .i = !(state >> 1 & 1)};
}

/* Convert the weights to their pinned layout, which has blocks and is not
 * interned: these conversions have ids above the ids of layouts. Constants are
 * shared by content. */
static enum byoc_status fetch_kernel(struct byi_relayout *rl,
                                     struct relayout_call *call,
                                     const char *from, struct byoc_error *err)
{
    const char *to = rl->sites[call->old].kernel;
    const uint64_t hash = byi_hash_text(to);
    const byi_rl_layout_id number = (byi_rl_layout_id)hash | KERNEL_LAYOUTS;
    const byi_id origin = rl->sites[byi_rl_node(rl, call->old)->args[1]].origin;
    const struct byi_relayout_value *converted =
        find_conversion(rl, origin, number);
    byi_id *x = &call->args[1];
    if (converted) {
        const struct byi_node *node = &rl->f->nodes.at[converted->node];
        if (node->args[0] == *x &&
            strcmp(byi_attr_find(node->attrs, "dst_layout")->s, to) == 0 &&
            strcmp(byi_attr_find(node->attrs, "src_layout")->s, from) == 0) {
            *x = converted->node;
            return BYOC_OK;
        }
    }
    BYI_TRY(add_layout_transform(rl, *x, from, to, x, err));
    if (!converted && rl->f->nodes.at[*x].kind == BYI_CALL_OP)
        add_conversion(rl, origin, number, *x);
    return BYOC_OK;
}

static enum byoc_status rewrite_layout(struct byi_relayout *rl,
                                       struct relayout_call *call,
                                       struct byoc_error *err)
{
    const struct byi_site *site = &rl->sites[call->old];
    struct byi_attr *data = attr_of(call, "layout");
    struct byi_attr *kernel = attr_of(call, "kernel_layout");
    char name[BYI_RL_LAYOUT_NAME];
    if (!data)
        data = attr_of(call, "data_layout");
    if (site->state)
        data->s = byi_arena_str(
            rl->m->arena, byi_rl_layout_name(&call->layout, data->s, name));
    if (!site->kernel)
        return BYOC_OK;
    if (!site->kernel_layout)
        BYI_TRY(fetch_kernel(rl, call, kernel->s, err));
    kernel->s = byi_arena_str(rl->m->arena, site->kernel);
    return BYOC_OK;
}

/* Whether a layout without blocks leaves the first `lead` axes in place. *inner
 * becomes the layout of the other axes. */
static bool keeps_lead(const struct byi_rl_layout *layout, uint32_t lead,
                       struct byi_rl_layout *inner)
{
    *inner = (struct byi_rl_layout){.rank = (uint8_t)(layout->rank - lead)};
    for (uint32_t i = 0; i < layout->rank; i++) {
        if (i < lead && layout->at[i] != i)
            return false;
        if (i >= lead)
            inner->at[i - lead] = (uint8_t)(layout->at[i] - lead);
    }
    return layout->block == 0;
}

/* Align operand i, whose rank is lower than the result's, with a result in the
 * state's layout. Leading axes of size 1 are omitted. */
static enum byoc_status align_operand(struct byi_relayout *rl,
                                      struct relayout_call *call, uint32_t i,
                                      struct byoc_error *err)
{
    const struct byi_type *type =
        byi_rl_type(rl, byi_rl_node(rl, call->old)->args[i]);
    const uint32_t rank = call->layout.rank, lead = rank - type->rank;
    int64_t dims[BYI_MAX_RANK], axes[BYI_MAX_RANK];
    if (type->rank == 0)
        return BYOC_OK;
    for (uint32_t k = 0; k < rank; k++) {
        dims[k] = k < lead ? 1 : type->dims[k - lead];
        axes[k] = k;
    }
    const struct byi_type *aligned =
        byi_type_tensor(rl->scratch, type->dtype, rank, dims);
    const struct byi_rl_layout identity =
        byi_rl_layout_at(&rl->layouts, 0, rank);
    if (!byi_rl_layout_fits(&call->layout, aligned))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "operand %u of %s has %lld elements along its blocked "
                        "axis, expected a multiple of %u",
                        i, byi_op(call->op)->name,
                        (long long)dims[call->layout.block_axis],
                        call->layout.block);
    byi_id *x = &call->args[i];
    const bool same =
        byi_type_is_static(aligned) &&
        byi_rl_layout_same_order(&identity, &call->layout, aligned);
    struct byi_rl_layout inner;
    if (!same && keeps_lead(&call->layout, lead, &inner)) {
        const struct byi_rl_layout as_is =
            byi_rl_layout_at(&rl->layouts, 0, type->rank);
        return convert(rl, *x, type, &as_is, &inner, x, err);
    }
    if (!same) {
        const struct byi_attr axis = {
            .name = "axis", .kind = BYI_ATTR_INTS, .n = lead, .ints = axes};
        BYI_TRY(byi_add_call(rl->m, rl->f, BYI_OP_EXPAND_DIMS, x, 1, &axis, 1,
                             NULL, x, err));
        *x = fold_call(rl, *x);
        BYI_TRY(convert(rl, *x, aligned, &identity, &call->layout, x, err));
    }
    if (!byi_type_is_static(aligned))
        return BYOC_OK;
    const struct byi_type *stored_type =
        byi_rl_layout_type(rl->scratch, &call->layout, aligned);
    uint32_t first = 0;
    while (first < stored_type->rank && stored_type->dims[first] == 1)
        first++;
    stored_type =
        byi_type_tensor(rl->scratch, type->dtype, stored_type->rank - first,
                        stored_type->dims + first);
    if (byi_type_equal(stored_type, rl->f->nodes.at[*x].type))
        return BYOC_OK;
    return add_reshape(rl, *x, stored_type, x, err);
}

/* Returns the site of the reshape that computes operand 0 of call `id` with its
 * elements in another order, or NULL if operand 0 is another value. */
static const struct byi_site *unrolled_operand(const struct byi_relayout *rl,
                                               byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    if (node->kind != BYI_CALL_OP || node->op != BYI_OP_NN_DENSE)
        return NULL;
    const struct byi_site *site = &rl->sites[node->args[0]];
    return site->rule == BYI_RL_UNROLL && site->state ? site : NULL;
}

/* Reorder the weights (N, K) of an nn.dense. Its data (M, K) are a reshape of a
 * value (M, axes of K) in another layout; K gets the order of those axes. */
static enum byoc_status unroll_weights(struct byi_relayout *rl,
                                       struct relayout_call *call,
                                       struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, call->old);
    const struct byi_site *site = unrolled_operand(rl, call->old);
    const struct byi_type *data =
        byi_rl_type(rl, byi_rl_node(rl, node->args[0])->args[0]);
    const struct byi_type *weights = byi_rl_type(rl, node->args[1]);
    const struct byi_rl_layout identity =
        byi_rl_layout_at(&rl->layouts, 0, data->rank);
    const struct byi_rl_layout layout =
        byi_rl_layout_at(&rl->layouts, site->state, data->rank);
    int64_t dims[BYI_MAX_RANK];
    byi_id *w = &call->args[1];
    memcpy(dims, data->dims, data->rank * sizeof *dims);
    dims[0] = weights->dims[0];
    const struct byi_type *unrolled =
        byi_type_tensor(rl->scratch, weights->dtype, data->rank, dims);
    BYI_TRY(add_reshape(rl, *w, unrolled, w, err));
    BYI_TRY(convert(rl, *w, unrolled, &identity, &layout, w, err));
    return add_reshape(rl, *w, weights, w, err);
}

static enum byoc_status rewrite_call(struct byi_relayout *rl,
                                     struct relayout_call *call,
                                     struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, call->old);
    const struct byi_site *site = &rl->sites[call->old];
    if (site->rule == BYI_RL_MATMUL) {
        if (unrolled_operand(rl, call->old))
            BYI_TRY(unroll_weights(rl, call, err));
        if (site->state)
            rewrite_matmul(call, site->state);
        return BYOC_OK;
    }
    switch (byi_op(node->op)->layout) {
    case BYI_LAYOUT_SENSITIVE:
        return rewrite_layout(rl, call, err);
    case BYI_LAYOUT_BROADCAST:
        for (uint32_t i = 0; i < node->n_args; i++)
            if (byi_rl_has_lower_rank(rl, call->old, i))
                BYI_TRY(align_operand(rl, call, i, err));
        return BYOC_OK;
    case BYI_LAYOUT_PERM:
        return rewrite_perm(rl, call)
                   ? BYOC_OK
                   : byi_fail(err, BYOC_EUNSUPPORTED,
                              "%s has a computed list of axes or sizes, "
                              "expected a constant one",
                              byi_op(call->op)->name);
    default:
        rewrite_axis(call);
        return BYOC_OK;
    }
}

/* Whether the new node's type is the old type in that layout. */
static bool is_stored(struct byi_relayout *rl, const struct byi_type *type,
                      const struct byi_type *old, byi_rl_layout_id layout)
{
    if (type->kind != old->kind)
        return false;
    if (old->kind == BYI_TENSOR) {
        const struct byi_rl_layout stored_layout =
            byi_rl_layout_at(&rl->layouts, layout, old->rank);
        return byi_type_equal(
            type, byi_rl_layout_type(rl->scratch, &stored_layout, old));
    }
    if (type->n_fields != old->n_fields)
        return false;
    for (uint32_t i = 0; i < old->n_fields; i++)
        if (!is_stored(rl, type->fields[i], old->fields[i], layout))
            return false;
    return true;
}

/* Returns the number of axes that a state orders. */
static uint32_t state_rank(const struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    const bool result = rl->sites[id].rule == BYI_RL_INSERT ||
                        byi_op(node->op)->layout == BYI_LAYOUT_BROADCAST;
    return byi_rl_type(rl, result ? id : node->args[0])->rank;
}

/* Copy the annotations of the old node, and add its sources. */
static void copy_annotations(struct byi_relayout *rl, byi_id id,
                             const struct byi_node *old)
{
    struct byi_node *node = &rl->f->nodes.at[id];
    node->backend = old->backend;
    node->region = old->region;
    node->let = old->let;
    node->sources = byi_sources_join(rl->m, node->sources, old->sources);
}

/* Emit a reshape of groups of axes in another order. */
static enum byoc_status emit_groups(struct byi_relayout *rl, byi_id id,
                                    struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    byi_id x;
    BYI_TRY(
        fetch(rl, node->args[0], byi_rl_need(rl, id, site->state, 0), &x, err));
    site->base_layout = byi_rl_out(rl, id, site->state); /* 0 for UNROLL */
    const struct byi_rl_layout layout =
        byi_rl_layout_at(&rl->layouts, site->base_layout, node->type->rank);
    const struct byi_type *to =
        byi_rl_layout_type(rl->scratch, &layout, node->type);
    BYI_TRY(add_reshape(rl, x, to, &site->base, err));
    copy_annotations(rl, site->base, node);
    return BYOC_OK;
}

/* Emit node `id` in its state. Sets *fits to false if that is impossible: a
 * list is not constant, or the result would have another type than planned,
 * such as new symbolic dims. */
static enum byoc_status emit_state(struct byi_relayout *rl, byi_id id,
                                   bool *fits, struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    const bool matmul = site->rule == BYI_RL_MATMUL;
    *fits = site->rule == BYI_RL_GROUP || site->rule == BYI_RL_UNROLL;
    if (*fits)
        return emit_groups(rl, id, err);
    struct relayout_call call = {
        .old = id, .op = node->op, .n_attrs = node->attrs->n};
    byi_id new_id = BYI_NO_ID;
    assert(node->attrs->n + 2 <= MAX_ATTRS);
    call.layout = byi_rl_layout_at(&rl->layouts, matmul ? 0 : site->state,
                                   state_rank(rl, id));
    call.args = byi_arena_calloc(rl->scratch, node->n_args, sizeof(byi_id));
    if (node->attrs->n)
        memcpy(call.attrs, node->attrs->at,
               node->attrs->n * sizeof *call.attrs);
    for (uint32_t i = 0; i < node->n_args; i++)
        BYI_TRY(fetch(rl, node->args[i], byi_rl_need(rl, id, site->state, i),
                      &call.args[i], err));
    if (rewrite_call(rl, &call, NULL) != BYOC_OK ||
        byi_add_call(rl->m, rl->f, call.op, call.args, node->n_args, call.attrs,
                     call.n_attrs, NULL, &new_id, NULL) != BYOC_OK)
        return BYOC_OK;
    struct byi_node *new_node = &rl->f->nodes.at[new_id];
    if (!is_stored(rl, new_node->type, node->type,
                   byi_rl_out(rl, id, site->state))) {
        rl->f->nodes.n--;
        return BYOC_OK;
    }
    copy_annotations(rl, new_id, node);
    site->base = new_id;
    site->base_layout = byi_rl_out(rl, id, site->state);
    *fits = true;
    return BYOC_OK;
}

/* --- nodes as they are --------------------------------------------------- */

/* Emit a view whose operand has the same element order in both layouts as a
 * reshape of the unconverted operand. False if `id` is another node. */
static bool emit_view(struct byi_relayout *rl, byi_id id)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    if (node->kind != BYI_CALL_OP || !byi_op_has(node->op, BYI_TRAIT_VIEW) ||
        node->op == BYI_OP_COPY || !byi_type_is_static(node->type))
        return false;
    const byi_id origin = rl->sites[node->args[0]].origin;
    const struct byi_site *site = &rl->sites[origin];
    const struct byi_type *type = byi_rl_type(rl, origin);
    const byi_rl_layout_id need = byi_rl_at_origin(rl, node->args[0], 0);
    if (need == site->base_layout || !type || !byi_type_is_static(type))
        return false;
    const struct byi_rl_layout a =
        byi_rl_layout_at(&rl->layouts, site->base_layout, type->rank);
    const struct byi_rl_layout b =
        byi_rl_layout_at(&rl->layouts, need, type->rank);
    byi_id reshape;
    if (!byi_rl_layout_same_order(&a, &b, type) ||
        add_reshape(rl, site->base, node->type, &reshape, NULL) != BYOC_OK)
        return false;
    claim_sources(rl, node->args[0]);
    rl->f->nodes.at[reshape].sources = byi_sources_join(
        rl->m, rl->f->nodes.at[reshape].sources, node->sources);
    rl->sites[id].base = reshape;
    return true;
}

static enum byoc_status emit_unchanged(struct byi_relayout *rl, byi_id id,
                                       struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    site->base_layout = 0;
    if (emit_view(rl, id))
        return BYOC_OK;
    for (uint32_t i = 0; i < node->n_args; i++)
        BYI_TRY(fetch(rl, node->args[i], 0, &rl->map[node->args[i]], err));
    return byi_add_copy(rl->m, rl->f, rl->old, id, rl->map, &site->base, err);
}

static enum byoc_status emit_node(struct byi_relayout *rl, byi_id id,
                                  struct byoc_error *err)
{
    const struct byi_node *node = byi_rl_node(rl, id);
    struct byi_site *site = &rl->sites[id];
    const uint32_t first = rl->pending.n;
    bool done = false;
    if (site->root != id) { /* a field, in its tuple's layout */
        site->base_layout = rl->sites[site->root].base_layout;
        BYI_TRY(byi_add_get(rl->m, rl->f, rl->sites[site->root].base,
                            node->index, node->sources, &site->base, err));
        return BYOC_OK;
    }
    if (site->state || site->kernel || unrolled_operand(rl, id))
        BYI_TRY(emit_state(rl, id, &done, err));
    if (!done && unrolled_operand(rl, id))
        return byi_fail(err, BYOC_EINTERNAL,
                        "the weights of an nn.dense could not be converted "
                        "to the layout of its data");
    if (!done)
        BYI_TRY(emit_unchanged(rl, id, err));
    move_sources(rl, site->base, first);
    return BYOC_OK;
}

enum byoc_status byi_rl_emit(struct byi_relayout *rl, struct byoc_error *err)
{
    const struct byi_func *old = rl->old;
    rl->map = byi_arena_calloc(rl->scratch, old->nodes.n + 1, sizeof *rl->map);
    rl->f = byi_func_like(rl->m, old, rl->map);
    rl->conversion_index.arena = rl->scratch;
    for (byi_id id = 0; id < old->nodes.n; id++) {
        struct byi_site *site = &rl->sites[id];
        if (byi_rl_node(rl, id)->kind == BYI_PARAM)
            site->base = rl->map[id];
        else if (site->live && site->origin == id)
            BYI_TRY(emit_node(rl, id, err));
    }
    BYI_TRY(fetch(rl, old->result, 0, &rl->f->result, err));
    move_sources(rl, rl->f->result, 0);
    byi_sweep(rl->m, rl->f, rl->scratch);
    return BYOC_OK;
}
