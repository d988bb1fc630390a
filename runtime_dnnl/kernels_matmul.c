/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/kernels_matmul.c: builds nn.dense, nn.matmul and attention.
 * Transposed and permuted operands (attention's heads) are read in place; a
 * batch that shares one weight matrix is folded into M. */
#include "runtime_dnnl/build.h"

/* The parameters and arguments of a product. */
struct matmul {
    struct byi_dnnl_matmul p;
    struct byi_dnnl_view src, weights, bias;
    bool pack; /* the weights are constant, so they are packed at load */
};

/* List all axes in order, except the last two, which are swapped. */
static void list_swapped(uint32_t rank, uint32_t *axes)
{
    for (uint32_t i = 0; i < rank; i++)
        axes[i] = i;
    axes[rank - 1] = rank - 2;
    axes[rank - 2] = rank - 1;
}

/* Swap the last two axes. */
static struct byi_desc swap_last(const struct byi_desc *desc)
{
    uint32_t axes[BYI_MAX_RANK];
    list_swapped(desc->rank, axes);
    return byi_dn_permute_desc(desc, axes);
}

/* Describe an operand as matrices of `rank` axes. Adds the missing axis of a
 * vector, which is a row of the first operand (`first`) or a column of the
 * second. If `transposed`, swaps the last two axes. */
static struct byi_desc describe_matrix(const struct byi_desc *desc, bool first,
                                       bool transposed, uint32_t rank)
{
    struct byi_desc d = *desc;
    if (d.rank == 1)
        d = byi_dn_with_rank(&d, 2);
    if (desc->rank == 1 ? !first : transposed)
        d = swap_last(&d);
    return byi_dn_with_rank(&d, rank);
}

/* Whether the product can read the descriptor. It must be dense, one of the
 * last two axes must be contiguous, and with oneDNN 3.x the batch axes must be
 * in order. */
static bool is_usable(const struct byi_desc *desc)
{
    uint32_t order[BYI_MAX_RANK];
    const struct byi_desc d = byi_dn_regular(desc);
    if (byi_dnnl_major() >= 3 && byi_desc_permutes_batch(&d))
        return false;
    byi_dn_order(&d, order);
    const uint32_t inner = order[d.rank - 1];
    return byi_dn_is_dense(desc) && inner + 2 >= d.rank;
}

/* An operand, and how the product reads it. */
struct product_operand {
    struct byi_dnnl_value *value;
    bool first, transposed; /* as for describe_matrix() */
    uint32_t rank;          /* rank of the product */
    bool fold;              /* fold the batch into M: two axes */
};

/* Set *out to the descriptor with which the product reads a view `desc` of the
 * operand; false if it cannot read the view. */
static bool try_view(const struct product_operand *s,
                     const struct byi_desc *desc, struct byi_desc *out)
{
    const struct byi_desc m =
        describe_matrix(desc, s->first, s->transposed, s->rank);
    if (!s->fold) {
        *out = byi_dn_regular(&m);
        return is_usable(&m);
    }
    const int64_t last = m.dims[m.rank - 1];
    const int64_t dims[2] = {byi_elements(m.rank, m.dims) / last, last};
    struct byi_desc flat;
    if (!byi_dn_reshape_desc(&m, 2, dims, &flat) || !is_usable(&flat))
        return false;
    *out = byi_dn_regular(&flat);
    return true;
}

/* The layout that an operand gets, in the axes of the graph's value, if the
 * product can read none of its views. It is row-major for the product if the
 * batch is folded, otherwise row-major for the value. */
static struct byi_desc row_major_matrix(const struct product_operand *s)
{
    const struct byi_desc *d = &s->value->views[0].desc;
    uint32_t order[BYI_MAX_RANK];
    if (!s->transposed || !s->fold || d->rank < 2)
        return byi_dn_dense(d->dtype, d->rank, d->dims, NULL);
    list_swapped(d->rank, order);
    return byi_dn_dense(d->dtype, d->rank, d->dims, order);
}

static enum byoc_status get_operand(struct byi_build *b,
                                    const struct product_operand *s,
                                    struct byi_dnnl_view *view)
{
    struct byi_desc desc = s->value->views[0].desc;
    if (byi_elements(desc.rank, desc.dims) <= 0)
        return byi_dn_refuse(
            b, "%s: found an empty operand, expected at least one element",
            byi_dn_step0(b)->name);
    for (uint32_t i = 0; i < s->value->n_views; i++) {
        if (!try_view(s, &s->value->views[i].desc, &desc))
            continue;
        *view = s->value->views[i];
        view->desc = desc;
        return BYOC_OK;
    }
    const struct byi_desc row_major = row_major_matrix(s);
    BYI_TRY(byi_dn_get_view(b, s->value, &row_major, view));
    if (!try_view(s, &row_major, &desc))
        return byi_dn_refuse(b,
                             "%s: found an operand in no layout that oneDNN's "
                             "matmul reads, expected dense matrices",
                             byi_dn_step0(b)->name);
    view->desc = desc;
    return BYOC_OK;
}

/* If the only reader transposes the result, choose the layout in which the
 * transposed result is row-major. Attention's (B, H, S, D) becomes (B, S, H D)
 * without a copy. */
static struct byi_desc choose_dst(const struct byi_build *b,
                                  const struct byoc_graph_value *type)
{
    const struct byi_desc row_major =
        byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
    const uint32_t reader = b->reader[b->kernel->outs[0]];
    if (reader == BYI_NO_INDEX)
        return row_major;
    const struct byoc_graph_kernel *k = &b->graph->kernels[reader];
    const struct byoc_graph_step *step = &b->graph->steps[k->first];
    if (k->n_steps != 1 || !byi_dn_is(step, "transpose"))
        return row_major;
    uint32_t n, order[BYI_MAX_RANK];
    const int64_t *axes = byoc_graph_list(step, "axes", &n);
    if (n != type->rank)
        return row_major;
    for (uint32_t i = 0; i < n; i++)
        order[i] = (uint32_t)(axes[i] < 0 ? axes[i] + n : axes[i]);
    if (order[n - 1] != n - 1)
        return row_major;
    const struct byi_desc permuted =
        byi_dn_dense(type->dtype, n, type->dims, order);
    const bool misplaced =
        byi_dnnl_major() >= 3 && byi_desc_permutes_batch(&permuted);
    return misplaced ? row_major : permuted; /* see byi_fault_matmul */
}

static enum byoc_status get_operands(struct byi_build *b, struct matmul *m,
                                     bool transpose_a, bool transpose_b,
                                     bool *fold)
{
    struct product_operand a = {.value = byi_dn_operand(b, byi_dn_arg0(b, 0)),
                                .first = true,
                                .transposed = transpose_a};
    struct product_operand w = {.value = byi_dn_operand(b, byi_dn_arg0(b, 1)),
                                .transposed = transpose_b};
    const struct byi_desc *da = &a.value->views[0].desc;
    const struct byi_desc *dw = &w.value->views[0].desc;
    if (!byi_dn_is_float(da->dtype) || dw->dtype != da->dtype)
        return byi_dn_refuse(b,
                             "%s: found dtypes %s and %s, expected the same "
                             "dtype for both: float32, float16 or bfloat16",
                             byi_dn_step0(b)->name, byoc_dtype_name(da->dtype),
                             byoc_dtype_name(dw->dtype));
    uint32_t rank = da->rank > dw->rank ? da->rank : dw->rank;
    rank = rank < 2 ? 2 : rank;
    *fold = dw->rank <= 2 || byi_elements(dw->rank - 2, dw->dims) == 1;
    a.rank = w.rank = rank;
    a.fold = w.fold = *fold;
    BYI_TRY(get_operand(b, &a, &m->src));
    BYI_TRY(get_operand(b, &w, &m->weights));
    m->pack = byi_dn_is_constant(b, m->weights.buf);
    m->p.src = m->src.desc;
    m->p.weights = m->weights.desc;
    if (m->pack)
        m->p.weights.kind = BYI_DESC_ANY;
    return BYOC_OK;
}

/* The result's descriptor in the primitive's axes. */
static struct byi_desc product_desc(const struct matmul *m)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t n = m->p.src.rank;
    for (uint32_t i = 0; i < n; i++)
        dims[i] = m->p.src.dims[i] > m->p.weights.dims[i]
                      ? m->p.src.dims[i]
                      : m->p.weights.dims[i];
    dims[n - 2] = m->p.src.dims[n - 2];
    dims[n - 1] = m->p.weights.dims[n - 1];
    return byi_dn_dense(m->p.src.dtype, n, dims, NULL);
}

static enum byoc_status build_product(struct byi_build *b, bool transpose_a,
                                      bool transpose_b)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    struct matmul m = {0};
    bool fold = false;
    BYI_TRY(get_operands(b, &m, transpose_a, transpose_b, &fold));
    m.p.dst = product_desc(&m);
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, b->kernel->n_steps, 0, &chain));
    struct byi_core core = {.make = byi_dn_make_matmul,
                            .params = &m.p,
                            .is_fast = byi_matmul_is_fast,
                            .n_args = 1,
                            .args = {{BYI_ARG_WEIGHTS, &m.weights, m.pack},
                                     {BYI_ARG_BIAS, &m.bias, false}},
                            .src = m.src,
                            .dst = m.p.dst,
                            .terms = m.p.src.dims[m.p.src.rank - 1],
                            .folded = fold};
    const bool vector =
        byi_dn_operand(b, byi_dn_arg0(b, 0))->views[0].desc.rank < 2 ||
        byi_dn_operand(b, byi_dn_arg0(b, 1))->views[0].desc.rank < 2;
    uint32_t next = 0;
    core.dst = byi_dn_dense(type->dtype, type->rank, type->dims, NULL);
    if (vector) { /* the result lacks axis M or N */
        core.elt_only = true;
        return byi_dn_emit_chain(b, &core, &chain, next);
    }
    /* oneDNN runs a scalar bias only in its reference implementation */
    if (type->dims[type->rank - 1] > 1)
        BYI_TRY(byi_dn_chain_bias(b, &chain, &core.dst, type->rank - 1, &m.bias,
                                  &next));
    if (next) {
        m.p.bias = byi_dn_with_rank(&m.bias.desc, m.p.dst.rank);
        core.n_args = 2;
    }
    if (!fold && next == chain.n) {
        core.dst = choose_dst(b, type);
        m.p.dst = core.dst;
    }
    return byi_dn_emit_chain(b, &core, &chain, next);
}

/* Build the product on integers with byoc's own kernels, if its data are
 * dequantised; otherwise BYOC_EUNSUPPORTED. Weights are (K, N), or (N, K) if
 * transposed. */
static enum byoc_status try_integers(struct byi_build *b, bool transposed)
{
    const struct byoc_graph_value *type = byi_dn_result(b);
    const struct byi_desc dst =
        byi_dn_dense(BYOC_F32, type->rank, type->dims, NULL);
    const uint32_t last = type->rank - 1;
    struct byi_dnnl_value *w = byi_dn_operand(b, byi_dn_arg0(b, 1));
    struct byi_dnnl_view weights, src;
    struct byi_integer_kernel x;
    if (w->views[0].desc.rank != 2 || type->rank < 2 ||
        byi_dn_operand(b, byi_dn_arg0(b, 0))->views[0].desc.rank != type->rank)
        return BYOC_EUNSUPPORTED;
    BYI_TRY(byi_dn_get_row_major(b, w, &weights));
    BYI_TRY(byi_dn_integer_open(b, &weights, !transposed, &dst, last, &x));
    BYI_TRY(byi_dn_get_row_major(b, x.src, &src));
    const int64_t k = src.desc.dims[last], n = type->dims[last];
    const int64_t m = byi_elements(type->rank, type->dims) / n;
    struct byi_dnnl_qconv p = {
        .src = byi_dn_dense(src.desc.dtype, 2, (int64_t[]){m, k}, NULL),
        .weights = byi_dn_dense(BYOC_I8, 2, (int64_t[]){n, k}, NULL),
        .dst = byi_dn_dense(BYOC_F32, 2, (int64_t[]){m, n}, NULL)};
    return byi_dn_integer_emit(b, &x, &src, &p, &dst);
}

enum byoc_status byi_dn_build_dense(struct byi_build *b)
{
    const enum byoc_status status = try_integers(b, true);
    return status == BYOC_EUNSUPPORTED ? build_product(b, false, true) : status;
}

enum byoc_status byi_dn_build_matmul(struct byi_build *b)
{
    const struct byoc_graph_step *step = byi_dn_step0(b);
    const bool transpose_a = byoc_graph_int(step, "transpose_a", 0) != 0;
    const bool transpose_b = byoc_graph_int(step, "transpose_b", 0) != 0;
    const enum byoc_status status =
        transpose_a ? BYOC_EUNSUPPORTED : try_integers(b, transpose_b);
    return status == BYOC_EUNSUPPORTED
               ? build_product(b, transpose_a, transpose_b)
               : status;
}

/* --- attention ------------------------------------------------------------ */

/* The parameters and arguments of an attention. */
struct attention {
    struct byi_dnnl_attention p;
    struct byi_dnnl_view src, keys, values;
    bool result_transposed; /* the result is values' x weights' */
    struct byi_desc dst;    /* the result's, in the graph's dims */
    struct byi_posts posts;
    struct byi_post post[BYI_MAX_POSTS];
    struct byi_dnnl_view operands[BYI_MAX_POSTS];
};

/* Get a value as matrices in the layout that its producer stored: the kernel
 * reads rows and columns with any strides. */
static enum byoc_status get_matrices(struct byi_build *b, uint32_t value,
                                     bool transposed, uint32_t rank,
                                     struct byi_dnnl_view *view)
{
    *view = byi_dn_operand(b, value)->views[0];
    if (view->desc.rank < 2)
        return byi_dn_refuse(
            b, "attention: found an operand of rank %u, expected matrices",
            view->desc.rank);
    view->desc = describe_matrix(&view->desc, false, transposed, rank);
    return BYOC_OK;
}

/* Read the operations on the scores, which are steps [1, softmax). */
static enum byoc_status read_scores(struct byi_build *b, uint32_t softmax,
                                    uint32_t rank, struct attention *a)
{
    struct byi_chain chain;
    BYI_TRY(byi_dn_chain_read(b, 1, softmax, 0, &chain));
    a->posts.at = a->post;
    if (chain.n > BYI_MAX_POSTS)
        return byi_dn_refuse(
            b, "attention: found %u operations on scores, expected at most %d",
            chain.n, BYI_MAX_POSTS);
    for (uint32_t i = 0; i < chain.n; i++) {
        const struct byi_chain_item *item = &chain.at[i];
        a->post[i] = (struct byi_post){.kind = BYI_POST_ELT, .alg = item->alg};
        if (item->kind == BYI_ITEM_ELT && item->alg == BYI_ELT_TANH)
            continue;
        if (item->kind != BYI_ITEM_BIN)
            return byi_dn_refuse(b,
                                 "attention: found %s on scores, expected an "
                                 "operation of two tensors, such as add",
                                 byi_dn_step(b, item->step)->name);
        BYI_TRY(byi_dn_get_row_major(b, byi_dn_operand(b, item->operand),
                                     &a->operands[i]));
        a->post[i].kind = BYI_POST_BIN;
        a->post[i].desc = byi_dn_with_rank(&a->operands[i].desc, rank);
    }
    a->posts.n = chain.n;
    return BYOC_OK;
}

/* Refuse scores that an operand, such as a mask, broadcasts to more elements
 * than the product has. */
static enum byoc_status check_shapes(struct byi_build *b, uint32_t softmax)
{
    const struct byoc_graph_value *v = b->graph->values;
    const struct byoc_graph_value *from = &v[byi_dn_step0(b)->outs[0]];
    for (uint32_t i = 1; i < softmax; i++) {
        const struct byoc_graph_value *to = &v[byi_dn_step(b, i)->outs[0]];
        if (!byi_dims_equal(from->rank, from->dims, to->rank, to->dims))
            return byi_dn_refuse(b,
                                 "attention: found %s that broadcasts scores, "
                                 "expected the shape of the product",
                                 byi_dn_step(b, i)->name);
    }
    return BYOC_OK;
}

static bool is_along_last_axis(const struct byi_build *b,
                               const struct byoc_graph_step *softmax)
{
    const int64_t axis = byoc_graph_int(softmax, "axis", -1);
    const uint32_t rank = b->graph->values[softmax->outs[0]].rank;
    return axis == -1 || axis == (int64_t)rank - 1;
}

static enum byoc_status emit_attention(struct byi_build *b,
                                       const struct attention *a)
{
    struct byi_emit e = {.name = byi_dn_joined_name(b)};
    struct byi_dnnl_view dst = {.desc = a->dst};
    BYI_TRY(
        byi_dn_attention_new(b, &a->p, a->posts.n ? &a->posts : NULL, &e.prim));
    dst.buf = byi_dn_temp(b, byi_dn_desc_bytes(&dst.desc));
    byi_dn_use(&e, BYI_ARG_SRC, &a->src);
    byi_dn_use(&e, BYI_ARG_WEIGHTS, &a->keys);
    byi_dn_use(&e, BYI_ARG_SRC1, &a->values);
    for (uint32_t i = 0; i < a->posts.n; i++)
        if (a->post[i].kind == BYI_POST_BIN)
            byi_dn_use(&e, BYI_ARG_POST + (int)i, &a->operands[i]);
    byi_dn_use(&e, BYI_ARG_DST, &dst);
    BYI_TRY(byi_dn_emit(b, &e));
    byi_dn_define(b, 0, &dst);
    return BYOC_OK;
}

/* Read the last step, the product with the values: weights x values, or its
 * transpose, values' x weights'. False if it is neither. */
static bool read_last(const struct byoc_graph_step *last, uint32_t weights,
                      bool *result_transposed, bool *transposed)
{
    const bool transpose_a = byoc_graph_int(last, "transpose_a", 0) != 0;
    const bool transpose_b = byoc_graph_int(last, "transpose_b", 0) != 0;
    *result_transposed = last->args[0] != weights;
    *transposed = *result_transposed ? !transpose_a : transpose_b;
    return byi_dn_is(last, "nn.matmul") &&
           (*result_transposed ? last->args[1] == weights && transpose_b
                               : !transpose_a);
}

/* The layout of a transposed result in which the rows that attention computes
 * are dense. If the result is an image (N, C, H W), this is channels last. */
static struct byi_desc transposed_dst(const struct byoc_graph_value *type)
{
    uint32_t order[BYI_MAX_RANK];
    list_swapped(type->rank, order);
    return byi_dn_dense(type->dtype, type->rank, type->dims, order);
}

enum byoc_status byi_dn_build_attention(struct byi_build *b)
{
    const uint32_t n = b->kernel->n_steps;
    const struct byoc_graph_step *scores = byi_dn_step0(b);
    const struct byoc_graph_step *weights =
        n < 3 ? NULL : byi_dn_step(b, n - 2);
    const struct byoc_graph_step *last = byi_dn_step(b, n - 1);
    struct attention a = {0};
    bool transposed = false;
    /* weights that are NaN become 0: isnan and where follow the softmax */
    const bool zero_nan = n >= 5 && byi_dn_is(weights, "where");
    const uint32_t at = n - (zero_nan ? 4 : 2);
    const struct byoc_graph_step *softmax = weights ? byi_dn_step(b, at) : NULL;
    if (!softmax || !byi_dn_is(softmax, "nn.softmax") ||
        !read_last(last, weights->outs[0], &a.result_transposed, &transposed))
        return byi_dn_refuse(b,
                             "attention: found %u steps, the last being %s, "
                             "expected nn.softmax and the product of its "
                             "result with the values at the end",
                             n, last->name);
    const struct byoc_graph_value *type = &b->graph->values[last->outs[0]];
    const uint32_t rank = type->rank;
    if (!is_along_last_axis(b, softmax))
        return byi_dn_refuse(b,
                             "nn.softmax: found axis %lld of rank %u, expected "
                             "the last axis of scores",
                             (long long)byoc_graph_int(softmax, "axis", -1),
                             b->graph->values[softmax->outs[0]].rank);
    BYI_TRY(get_matrices(b, last->args[!a.result_transposed], transposed, rank,
                         &a.values));
    BYI_TRY(get_matrices(b, scores->args[0],
                         byoc_graph_int(scores, "transpose_a", 0) != 0, rank,
                         &a.src));
    BYI_TRY(get_matrices(b, scores->args[1],
                         byoc_graph_int(scores, "transpose_b", 0) != 0, rank,
                         &a.keys));
    BYI_TRY(check_shapes(b, at));
    BYI_TRY(read_scores(b, at, rank, &a));
    a.dst = a.result_transposed ? transposed_dst(type) : choose_dst(b, type);
    a.p = (struct byi_dnnl_attention){
        .src = a.src.desc,
        .weights = a.keys.desc,
        .src1 = a.values.desc,
        .dst = a.result_transposed ? swap_last(&a.dst) : a.dst,
        .zero_nan = zero_nan};
    return emit_attention(b, &a);
}
