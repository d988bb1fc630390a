/* SPDX-License-Identifier: Apache-2.0 */
/* SparseWeights: use sparse products for pruned weights.
 * requires: nothing; best after FoldConstant, which makes weights constant
 *
 *   nn.dense(%x, const[w])        ==>     nn.sparse_dense(%x, const[w])
 *   nn.matmul(%x, const[w])       ==>     nn.sparse_dense(%x, const[w^T])
 *   nn.conv2d(%x, const[w])       ==>     nn.sparse_conv2d(%x, const[w])
 *
 * Rewrites products of float32 if a sparse product is faster. The sparse
 * product computes 4 outputs together, and reads a data element for them only
 * if one of its 4 weights is not zero. These reads cost much more than the
 * multiply-adds. Results are equal up to the order of sums, also if the data
 * has infinities or NaN. A compile runs this before partitioning: backends do
 * not inspect the values of constants.
 */
#include "transform.h"
#include "rewrite.h"

#include "core/ops/layout.h"

enum {
    OUTPUTS_PER_READ = 4, /* outputs that share a read of the data     */
    MIN_WEIGHTS = 4096,   /* for smaller weights, sparse is not faster */
    MIN_COLUMNS = 16,     /* with fewer, memory bounds both products   */
    IM2COL_OUTPUTS = 40,  /* im2col costs as much as this many outputs */
};

/* Weights (m, k) of float32: element (row, column) is float row * rs +
 * column * cs of `data`, which need not be aligned. */
struct pruned_weights {
    const void *data;
    int64_t m, k, rs, cs;
};

/* Whether the weights are multiplied with enough columns of data: the product
 * of dims first .. end - 1 of the result. A symbolic number counts as enough.
 */
static bool has_columns(const struct byi_type *type, uint32_t first,
                        uint32_t end)
{
    int64_t n = 1;
    for (uint32_t i = first; i < end; i++) {
        if (BYI_IS_SYMBOL(type->dims[i]))
            return true;
        n = n < MIN_COLUMNS ? n * type->dims[i] : n;
    }
    return n >= MIN_COLUMNS;
}

/* Whether a sparse product is faster. The weights must be large, and its reads
 * at most SparseWeights.most percent of a dense product's. `im2col_outputs`:
 * the cost of im2col in outputs; 0 if it is not needed. */
static bool is_faster_sparse(const struct byi_rewrite *rw,
                             const struct pruned_weights *w,
                             int64_t im2col_outputs)
{
    const int64_t max_percent = byi_option_int(rw->ctx, "SparseWeights.most");
    int64_t sparse_reads = 0, dense_reads = 0;
    for (int64_t m0 = 0; m0 < w->m; m0 += OUTPUTS_PER_READ)
        for (int64_t k = 0; k < w->k; k++, dense_reads++) {
            bool is_read = false;
            for (int64_t m = m0; m < m0 + OUTPUTS_PER_READ && m < w->m; m++)
                is_read = is_read ||
                          byi_float_at(w->data, m * w->rs + k * w->cs) != 0;
            sparse_reads += is_read;
        }
    const double share = (double)sparse_reads / (double)dense_reads +
                         (double)im2col_outputs / (double)w->m;
    return w->m * w->k >= MIN_WEIGHTS && share <= (double)max_percent / 100;
}

/* Read the weights of node `at`; false unless they are a float32 constant of
 * rank 2 or more. */
static bool read_weights(const struct byi_rewrite *rw, byi_id at,
                         struct byi_tensor *view)
{
    const struct byi_node *node = byi_rw_node(rw, at);
    return node->type->kind == BYI_TENSOR && node->type->dtype == BYOC_F32 &&
           byi_rw_view(rw, node->args[1], view) && view->rank >= 2;
}

static byi_id rewrite_dense(struct byi_rewrite *rw, byi_id at)
{
    struct byi_tensor view;
    const struct byi_type *type = byi_rw_tensor(rw, at);
    if (!read_weights(rw, at, &view) || !has_columns(type, 0, 1))
        return BYI_NO_ID;
    const struct pruned_weights w = {view.data, view.dims[0], view.dims[1],
                                     view.dims[1], 1};
    if (!is_faster_sparse(rw, &w, 0))
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_NN_SPARSE_DENSE, byi_rw_arg(rw, at, 0),
                      byi_rw_arg(rw, at, 1));
}

/* Emit the weights (m, k) as a contiguous constant. Returns BYI_NO_ID if it
 * exceeds the module's budget of constants. */
static byi_id emit_transposed_weights(struct byi_rewrite *rw,
                                      const struct pruned_weights *w)
{
    const int64_t dims[] = {w->m, w->k};
    const struct byi_type *type =
        byi_type_tensor(rw->m->arena, BYOC_F32, 2, dims);
    struct byi_tensor t;
    if (!byi_rw_alloc(rw, type, &t))
        return BYI_NO_ID;
    float *to = t.data;
    for (int64_t m = 0; m < w->m; m++)
        for (int64_t k = 0; k < w->k; k++)
            *to++ = byi_float_at(w->data, m * w->rs + k * w->cs);
    return byi_rw_const(rw, type, &t);
}

static byi_id rewrite_matmul(struct byi_rewrite *rw, byi_id at)
{
    struct byi_tensor view;
    const struct byi_node *node = byi_rw_node(rw, at);
    const struct byi_type *type = node->type;
    if (!read_weights(rw, at, &view) || view.rank != 2 || type->rank < 2 ||
        byi_attr_int(node->attrs, "transpose_a") ||
        !has_columns(type, 0, type->rank - 1))
        return BYI_NO_ID;
    const bool transposed = byi_attr_int(node->attrs, "transpose_b") != 0;
    const byi_id x = node->args[0], constant = node->args[1];
    const struct pruned_weights w = {
        view.data, view.dims[!transposed], view.dims[transposed],
        transposed ? view.dims[1] : 1, transposed ? 1 : view.dims[1]};
    if (!is_faster_sparse(rw, &w, 0))
        return BYI_NO_ID;
    return byi_rw_op2(rw, BYI_OP_NN_SPARSE_DENSE, x,
                      transposed ? constant : emit_transposed_weights(rw, &w));
}

static byi_id rewrite_conv(struct byi_rewrite *rw, byi_id at)
{
    struct byi_tensor view;
    const struct byi_node *node = byi_rw_node(rw, at);
    if (!read_weights(rw, at, &view) ||
        byi_attr_int(node->attrs, "groups") != 1 ||
        !byi_layout_is_default(byi_op(node->op), node->attrs) ||
        !has_columns(node->type, 2, node->type->rank))
        return BYI_NO_ID;
    const int64_t k = byi_elements(view.rank - 1, view.dims + 1);
    const struct pruned_weights w = {view.data, view.dims[0], k, k, 1};
    const bool has_im2col = k != view.dims[1];
    if (!is_faster_sparse(rw, &w, has_im2col ? IM2COL_OUTPUTS : 0))
        return BYI_NO_ID;
    const byi_id args[] = {node->args[0], node->args[1]};
    return byi_rw_call(rw, BYI_OP_NN_SPARSE_CONV2D, args, 2, node->attrs->at,
                       node->attrs->n);
}

static const struct byi_rule rules[] = {
    {BYI_OP_NN_DENSE, rewrite_dense},
    {BYI_OP_NN_MATMUL, rewrite_matmul},
    {BYI_OP_NN_CONV2D, rewrite_conv},
};

static enum byoc_status run(struct byi_module *m, uint32_t func,
                            struct byi_pass_context *ctx,
                            struct byi_arena *scratch, struct byoc_error *err)
{
    const int64_t max_percent = byi_option_int(ctx, "SparseWeights.most");
    if (max_percent < 0 || max_percent > 100)
        return byi_fail(err, BYOC_EINVAL,
                        "most is %lld, expected a percentage from 0 to 100",
                        (long long)max_percent);
    return byi_rewrite(m, func, rules, BYI_COUNT(rules), ctx, scratch, NULL,
                       err);
}

static const struct byi_pass_option options[] = {
    {"most", BYI_ATTR_INT, "60",
     "use a sparse product if it makes at most this percentage of a dense "
     "product's reads"},
    {0},
};

const struct byi_pass byi_pass_sparse_weights = {
    .name = "SparseWeights",
    .summary = "use sparse products for pruned weights",
    .opt_level = 1,
    .options = options,
    .run_func = run,
};
