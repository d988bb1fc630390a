/* SPDX-License-Identifier: Apache-2.0 */
/* rules_qnn.c: type rules of products of 8-bit integers, and of floats by
 * block-quantised weights. The rules for dims are those of the float operators.
 * The number of operands of an integer product selects how its sums are scaled.
 */
#include "layout.h"
#include "rules.h"

#include <string.h>

enum { X, WEIGHTS, X_ZERO, WEIGHTS_ZERO, BIAS, SCALE, ZERO };

static const unsigned int8_dtypes = BYI_BIT(BYOC_I8) | BYI_BIT(BYOC_U8);

/* Check that operand i is one number, or one for each of `channels`. */
static enum byoc_status want_per_channel(const struct byi_infer *t, uint32_t i,
                                         int64_t channels, const char *name)
{
    const struct byi_type *type = t->in[i];
    if (type->rank == 0 ||
        (type->rank == 1 &&
         (type->dims[0] == 1 || byi_dims_agree(type->dims[0], channels))))
        return BYOC_OK;
    if (type->rank > 1)
        return byi_rule_fail(t, "%s has rank %u, expected 0 or 1", name,
                             type->rank);
    return byi_rule_fail(t, "%s has %lld elements, expected 1 or %lld", name,
                         (long long)type->dims[0], (long long)channels);
}

static enum byoc_status want_product(const struct byi_infer *t)
{
    BYI_TRY(byi_want_dtype(t, X, int8_dtypes, "data"));
    BYI_TRY(byi_want_dtype(t, WEIGHTS, int8_dtypes, "weights"));
    BYI_TRY(byi_want_same_dtype(t, X_ZERO, X, "zero point of data"));
    BYI_TRY(byi_want_scalar(t, X_ZERO, "zero point of data"));
    return byi_want_same_dtype(t, WEIGHTS_ZERO, WEIGHTS,
                               "zero point of weights");
}

/* The result of a product whose sums have the dims of `sums`. */
static enum byoc_status product_result(struct byi_infer *t,
                                       const struct byi_type *sums,
                                       int64_t channels)
{
    const int64_t low = byi_attr_int(t->attrs, "a_min");
    const int64_t high = byi_attr_int(t->attrs, "a_max");
    enum byoc_dtype dtype = BYOC_I32;
    BYI_TRY(
        want_per_channel(t, WEIGHTS_ZERO, channels, "zero point of weights"));
    if (t->n_in > BIAS) {
        BYI_TRY(byi_want_dtype(t, BIAS, BYI_BIT(BYOC_I32), "bias"));
        BYI_TRY(want_per_channel(t, BIAS, channels, "bias"));
    }
    if (t->n_in > SCALE) {
        BYI_TRY(byi_want_dtype(t, SCALE, BYI_BIT(BYOC_F32), "scale"));
        BYI_TRY(want_per_channel(t, SCALE, channels, "scale"));
        dtype = BYOC_F32;
    }
    if (t->n_in > ZERO) {
        BYI_TRY(byi_want_dtype(t, ZERO, int8_dtypes, "zero point"));
        BYI_TRY(byi_want_scalar(t, ZERO, "zero point"));
        dtype = t->in[ZERO]->dtype;
    } else if (low != INT8_MIN || high != UINT8_MAX) {
        return byi_rule_fail(t,
                             "a_min is %lld and a_max %lld, but only 8-bit "
                             "results are clamped, expected a zero point of "
                             "the result",
                             (long long)low, (long long)high);
    }
    if (low < INT8_MIN || high > UINT8_MAX || low > high)
        return byi_rule_fail(t,
                             "a_min is %lld and a_max %lld, expected -128 <= "
                             "a_min <= a_max <= 255",
                             (long long)low, (long long)high);
    return byi_rule_tensor(t, dtype, sums->rank, sums->dims);
}

enum byoc_status byi_rule_qnn_conv(struct byi_infer *t)
{
    const uint32_t n = (uint32_t)(t->op->id - BYI_OP_QNN_CONV1D) + 1;
    BYI_TRY(want_product(t));
    if (!byi_layout_is_default(t->op, t->attrs))
        return byi_rule_fail(t,
                             "data_layout is %s and kernel_layout %s, expected "
                             "their defaults",
                             byi_attr_string(t->attrs, "data_layout"),
                             byi_attr_string(t->attrs, "kernel_layout"));
    BYI_TRY(byi_infer_conv(t, n));
    return product_result(t, t->out, t->in[WEIGHTS]->dims[0]);
}

enum byoc_status byi_rule_qnn_matmul(struct byi_infer *t)
{
    const struct byi_type *b = t->in[WEIGHTS];
    BYI_TRY(want_product(t));
    BYI_TRY(byi_infer_matmul(t));
    const bool transposed = byi_attr_int(t->attrs, "transpose_b") != 0;
    const int64_t columns =
        b->rank > 1 ? b->dims[b->rank - (transposed ? 2 : 1)] : 1;
    return product_result(t, t->out, columns);
}

/* Check that codes have 4 or 8 bits, and that a block fills whole 32-bit words.
 */
static enum byoc_status want_blocks(const struct byi_infer *t)
{
    const int64_t bits = byi_attr_int(t->attrs, "bits");
    const int64_t size = byi_attr_int(t->attrs, "block_size");
    const int64_t *dims = t->in[1]->dims;
    if (bits != 4 && bits != 8)
        return byi_rule_fail(t, "bits is %lld, expected 4 or 8",
                             (long long)bits);
    if (size < 1 || size > INT32_MAX || size * bits % 32)
        return byi_rule_fail(
            t, "block_size is %lld, expected a positive multiple of %lld",
            (long long)size, (long long)(32 / bits));
    if (dims[2] != size * bits / 8)
        return byi_rule_fail(t,
                             "codes have %lld bytes per block, expected %lld",
                             (long long)dims[2], (long long)(size * bits / 8));
    return BYOC_OK;
}

enum byoc_status byi_rule_qnn_dense_blocks(struct byi_infer *t)
{
    const unsigned floats =
        BYI_BIT(BYOC_F32) | BYI_BIT(BYOC_F16) | BYI_BIT(BYOC_BF16);
    const struct byi_type *x = t->in[0], *codes = t->in[1];
    int64_t dims[BYI_MAX_RANK];
    BYI_TRY(byi_want_dtype(t, 0, floats, "x"));
    BYI_TRY(byi_want_min_rank(t, 0, 1, "x"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_BIT(BYOC_U8), "codes"));
    BYI_TRY(byi_want_rank(t, 1, 3, "codes"));
    BYI_TRY(byi_want_same_dtype(t, 2, 0, "scale"));
    BYI_TRY(byi_want_dtype(t, 3, BYI_BIT(BYOC_U8), "zero point"));
    BYI_TRY(want_blocks(t));
    for (uint32_t i = 2; i < 4; i++) {
        if (i == 3 && t->in[i]->rank == 0)
            continue;
        BYI_TRY(byi_want_rank(t, i, 2, i == 2 ? "scale" : "zero point"));
        if (t->in[i]->dims[0] != codes->dims[0] ||
            t->in[i]->dims[1] != codes->dims[1])
            return byi_rule_fail(
                t, "%s is (%lld, %lld), expected (%lld, %lld)",
                i == 2 ? "scale" : "zero point", (long long)t->in[i]->dims[0],
                (long long)t->in[i]->dims[1], (long long)codes->dims[0],
                (long long)codes->dims[1]);
    }
    const int64_t k = x->dims[x->rank - 1];
    const int64_t size = byi_attr_int(t->attrs, "block_size");
    if (!BYI_IS_SYMBOL(k) && codes->dims[1] != byi_ceil_div(k, size))
        return byi_rule_fail(
            t, "codes have %lld blocks, expected %lld for %lld columns of x",
            (long long)codes->dims[1], (long long)byi_ceil_div(k, size),
            (long long)k);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank - 1] = codes->dims[0];
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}
