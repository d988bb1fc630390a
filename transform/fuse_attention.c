/* SPDX-License-Identifier: Apache-2.0 */
/* FuseAttention: replace the products and the softmax of attention by one
 * operator, whose kernel keeps the scores in the cache.
 * requires: nothing
 *
 *   %0 = nn.matmul(%q, %k, transpose_b=true);
 *   %1 = multiply(%0, const 0.125);
 *   %2 = add(%1, %mask);                 ==>  nn.attention(%q, %k, %v, %mask,
 *   %3 = nn.softmax(%2);                                   scale=0.125)
 *   nn.matmul(%3, %v)
 *
 * The values between have no other readers. The scale, a soft cap (the product
 * of a number and tanh), up to 4 masks, and the replacement of weights that are
 * NaN by 0 are optional. Between the products, views may split or join batch
 * axes, as exporters do for query heads that share a head of keys, if the last
 * product has the batch axes of the first; masks then have none. A compile runs
 * this after partitioning: backends find attention by patterns of their own.
 */
#include "transform.h"

#include "rewrite.h"

enum { MASKS = 4 };

/* The result of the walk from the last product to the first one. */
struct attention_match {
    byi_id product; /* q k */
    uint32_t n_masks;
    byi_id masks[MASKS]; /* the last one is added first */
    double scale, cap;   /* cap 0: none */
    bool viewed;         /* views are between the products */
    bool zero_nan;
};

/* Whether the node is a view of its operand that keeps the last two axes. */
static bool keeps_matrices(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_node *node = byi_rw_node(rw, id);
    if (node->kind != BYI_CALL_OP || !byi_op_has(node->op, BYI_TRAIT_VIEW))
        return false;
    const struct byi_type *to = byi_rw_tensor(rw, id);
    const struct byi_type *from = byi_rw_tensor(rw, node->args[0]);
    return to && from && to->dtype == from->dtype && to->rank >= 2 &&
           from->rank >= 2 &&
           byi_dims_equal(2, to->dims + to->rank - 2, 2,
                          from->dims + from->rank - 2);
}

/* Returns the operand of a scaling of the scores, and multiplies *scale by its
 * factor. Returns BYI_NO_ID if the node is not a scaling. */
static byi_id scaled_operand(const struct byi_rewrite *rw, byi_id id,
                             double *scale)
{
    const bool divides = byi_rw_is(rw, id, BYI_OP_DIVIDE);
    double value;
    if (!divides && !byi_rw_is(rw, id, BYI_OP_MULTIPLY))
        return BYI_NO_ID;
    const byi_id x = byi_rw_arg(rw, id, 0), by = byi_rw_arg(rw, id, 1);
    const struct byi_type *type = byi_rw_tensor(rw, id);
    const struct byi_type *from = byi_rw_tensor(rw, x);
    if (!byi_rw_splat(rw, by, &value) || value == 0 ||
        !byi_type_equal(type, from))
        return BYI_NO_ID;
    *scale *= divides ? 1 / value : value;
    return x;
}

/* Returns the operand of an operation on scores, which is a scaling, a tanh or
 * a view, and records the operation in *m. Returns BYI_NO_ID for another
 * node. */
static byi_id step_operand(const struct byi_rewrite *rw, byi_id at,
                           struct attention_match *m)
{
    const byi_id next = scaled_operand(rw, at, &m->scale);
    if (next != BYI_NO_ID)
        return next;
    if (m->cap == 0 && byi_rw_is(rw, at, BYI_OP_TANH) &&
        byi_rw_tensor(rw, at)->dtype == BYOC_F32) {
        m->cap = m->scale;
        m->scale = 1;
        return byi_rw_arg(rw, at, 0);
    }
    if (!keeps_matrices(rw, at))
        return BYI_NO_ID;
    m->viewed = true;
    return byi_rw_arg(rw, at, 0);
}

/* Walk over masks, then other steps, from scores `at` to their product. Bit i
 * of `sides` is the operand of sum i that is scores. False if the walk ends
 * elsewhere, or at a value with other readers. */
static bool find_product(const struct byi_rewrite *rw, byi_id at,
                         unsigned sides, struct attention_match *m)
{
    for (; byi_rw_has_one_reader(rw, at) && m->n_masks < MASKS;
         m->n_masks++, sides >>= 1) {
        while (byi_rw_has_one_reader(rw, at) && keeps_matrices(rw, at)) {
            m->viewed = true;
            at = byi_rw_arg(rw, at, 0);
        }
        if (!byi_rw_is(rw, at, BYI_OP_ADD))
            break;
        m->masks[m->n_masks] = byi_rw_arg(rw, at, 1 - (sides & 1));
        const struct byi_type *mask = byi_rw_tensor(rw, m->masks[m->n_masks]);
        if (!mask || mask->rank < 2 || !byi_rw_has_one_reader(rw, at))
            return false;
        at = byi_rw_arg(rw, at, sides & 1);
    }
    while (at != BYI_NO_ID && byi_rw_has_one_reader(rw, at) &&
           !byi_rw_is(rw, at, BYI_OP_NN_MATMUL))
        at = step_operand(rw, at, m);
    m->product = at;
    return at != BYI_NO_ID && byi_rw_has_one_reader(rw, at);
}

/* Whether the node's batch axes have size 1. */
static bool is_one_matrix(const struct byi_rewrite *rw, byi_id id)
{
    const struct byi_type *type = byi_rw_tensor(rw, id);
    bool has_ones = type != NULL;
    for (uint32_t i = 0; has_ones && i + 2 < type->rank; i++)
        has_ones = type->dims[i] == 1;
    return has_ones;
}

/* Find the product in the softmax's operand. Any operand of a sum may be the
 * scores. */
static bool find_scores(const struct byi_rewrite *rw, byi_id at,
                        struct attention_match *m)
{
    const struct attention_match start = *m;
    unsigned n_sides = 1;
    for (unsigned sides = 0; sides < n_sides; sides++) {
        *m = start;
        if (find_product(rw, at, sides, m))
            return true;
        n_sides = (unsigned)byi_max(n_sides, 1u << m->n_masks);
    }
    return false;
}

/* Returns the softmax whose NaN results `at`, a `where`, replaces by 0. Returns
 * `at` if it is another node, and BYI_NO_ID if the results have other readers.
 */
static byi_id skip_nan_replacement(const struct byi_rewrite *rw, byi_id at,
                                   struct attention_match *m)
{
    if (!byi_rw_is(rw, at, BYI_OP_WHERE) || !byi_rw_has_one_reader(rw, at))
        return at;
    const byi_id test = byi_rw_arg(rw, at, 0), x = byi_rw_arg(rw, at, 2);
    const byi_id inner[] = {x, test};
    m->zero_nan = byi_rw_is(rw, test, BYI_OP_ISNAN) &&
                  byi_rw_arg(rw, test, 0) == x &&
                  byi_rw_is_value(rw, byi_rw_arg(rw, at, 1), 0) &&
                  byi_rw_has_only_inner_readers(rw, at, inner, 2);
    return m->zero_nan ? x : BYI_NO_ID;
}

/* Walk over views from the weights `at` to the softmax's operand; BYI_NO_ID if
 * there is none. */
static byi_id find_softmax(const struct byi_rewrite *rw, byi_id at,
                           struct attention_match *m)
{
    while (byi_rw_has_one_reader(rw, at) && keeps_matrices(rw, at)) {
        m->viewed = true;
        at = byi_rw_arg(rw, at, 0);
    }
    at = skip_nan_replacement(rw, at, m);
    if (at == BYI_NO_ID || !byi_rw_is(rw, at, BYI_OP_NN_SOFTMAX) ||
        (!m->zero_nan && !byi_rw_has_one_reader(rw, at)))
        return BYI_NO_ID;
    const struct byi_node *node = byi_rw_node(rw, at);
    const int64_t axis = byi_attr_int(node->attrs, "axis");
    return axis == -1 || axis == (int64_t)node->type->rank - 1 ? node->args[0]
                                                               : BYI_NO_ID;
}

/* Whether views between the products keep the batch axes: the two products have
 * the same ones, and masks have none. */
static bool has_batch_axes(const struct byi_rewrite *rw, byi_id at,
                           const struct attention_match *m)
{
    const struct byi_type *a = byi_rw_tensor(rw, m->product);
    const struct byi_type *b = byi_rw_tensor(rw, at);
    if (a->rank < 2 || b->rank < 2)
        return false;
    bool fits = !m->viewed ||
                byi_dims_equal(a->rank - 2, a->dims, b->rank - 2, b->dims);
    for (uint32_t i = 0; i < m->n_masks && m->viewed; i++)
        fits = fits && is_one_matrix(rw, m->masks[i]);
    return fits;
}

static byi_id emit_attention(struct byi_rewrite *rw, byi_id at,
                             const struct attention_match *m)
{
    const struct byi_node *product = byi_rw_node(rw, m->product);
    byi_id args[3 + MASKS] = {product->args[0], product->args[1],
                              byi_rw_arg(rw, at, 1)};
    for (uint32_t i = 0; i < m->n_masks; i++)
        args[3 + i] = m->masks[m->n_masks - 1 - i];
    const struct byi_attr attrs[] = {
        {.name = "scale", .kind = BYI_ATTR_FLOAT, .f = m->scale},
        {.name = "transpose_k",
         .kind = BYI_ATTR_BOOL,
         .i = byi_attr_int(product->attrs, "transpose_b")},
        {.name = "cap", .kind = BYI_ATTR_FLOAT, .f = m->cap},
        {.name = "zero_nan", .kind = BYI_ATTR_BOOL, .i = m->zero_nan}};
    const int64_t first_new = -1 - (int64_t)rw->m->symbols.n;
    const byi_id out = byi_rw_call(rw, BYI_OP_NN_ATTENTION, args,
                                   3 + m->n_masks, attrs, BYI_COUNT(attrs));
    if (out == BYI_NO_ID)
        return out;
    /* the sizes of broadcast axes are those of the replaced node */
    const struct byi_type *type = byi_rw_node(rw, at)->type;
    if (byi_type_fits(type, byi_rw_node(rw, out)->type, first_new))
        rw->f->nodes.at[out].type = type;
    return out;
}

static byi_id fuse_at_product(struct byi_rewrite *rw, byi_id at)
{
    struct attention_match m = {.scale = 1};
    const struct byi_node *node = byi_rw_node(rw, at);
    if (byi_attr_int(node->attrs, "transpose_a") ||
        byi_attr_int(node->attrs, "transpose_b"))
        return BYI_NO_ID;
    const byi_id scores = find_softmax(rw, node->args[0], &m);
    if (scores == BYI_NO_ID || !find_scores(rw, scores, &m) ||
        byi_attr_int(byi_rw_node(rw, m.product)->attrs, "transpose_a") ||
        !has_batch_axes(rw, at, &m))
        return BYI_NO_ID;
    return emit_attention(rw, at, &m);
}

BYI_RULES_PASS(fuse_attention, "FuseAttention", 1,
               "replace products and softmax of attention by one operator",
               {BYI_OP_NN_MATMUL, fuse_at_product})
