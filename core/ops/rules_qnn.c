/* SPDX-License-Identifier: Apache-2.0 */
/* rules_qnn.c: type rules of products of 8-bit integers. Dims are as for
 * floats; the number of operands selects how the sums are scaled.
 */
#include "layout.h"
#include "rules.h"

enum { X, WEIGHTS, X_ZERO, WEIGHTS_ZERO, BIAS, SCALE, ZERO };

static const unsigned bytes = BYI_BIT(BYOC_I8) | BYI_BIT(BYOC_U8);

/* Operand i is one number, or one for each of `channels`. */
static enum byoc_status want_each(const struct byi_infer *t, uint32_t i,
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
    BYI_TRY(byi_want_dtype(t, X, bytes, "data"));
    BYI_TRY(byi_want_dtype(t, WEIGHTS, bytes, "weights"));
    BYI_TRY(byi_want_same_dtype(t, X_ZERO, X, "zero point of data"));
    BYI_TRY(byi_want_scalar(t, X_ZERO, "zero point of data"));
    return byi_want_same_dtype(t, WEIGHTS_ZERO, WEIGHTS,
                               "zero point of weights");
}

/* The result of a product whose sums have the dims of `sums`. */
static enum byoc_status give(const struct byi_infer *t,
                             const struct byi_type *sums, int64_t channels,
                             const struct byi_type **out)
{
    const int64_t low = byi_attr_int(t->attrs, "a_min");
    const int64_t high = byi_attr_int(t->attrs, "a_max");
    enum byoc_dtype dtype = BYOC_I32;
    BYI_TRY(want_each(t, WEIGHTS_ZERO, channels, "zero point of weights"));
    if (t->n_in > BIAS) {
        BYI_TRY(byi_want_dtype(t, BIAS, BYI_BIT(BYOC_I32), "bias"));
        BYI_TRY(want_each(t, BIAS, channels, "bias"));
    }
    if (t->n_in > SCALE) {
        BYI_TRY(byi_want_dtype(t, SCALE, BYI_BIT(BYOC_F32), "scale"));
        BYI_TRY(want_each(t, SCALE, channels, "scale"));
        dtype = BYOC_F32;
    }
    if (t->n_in > ZERO) {
        BYI_TRY(byi_want_dtype(t, ZERO, bytes, "zero point"));
        BYI_TRY(byi_want_scalar(t, ZERO, "zero point"));
        dtype = t->in[ZERO]->dtype;
    } else if (low != INT8_MIN || high != UINT8_MAX) {
        return byi_rule_fail(t, "a_min and a_max are of results of 8 bits, "
                                "expected a zero point of the result");
    }
    if (low < INT8_MIN || high > UINT8_MAX || low > high)
        return byi_rule_fail(t,
                             "a_min is %lld and a_max %lld, expected -128 to "
                             "255, in order",
                             (long long)low, (long long)high);
    return byi_rule_tensor(t, dtype, sums->rank, sums->dims, out);
}

enum byoc_status byi_rule_qnn_conv(struct byi_infer *t,
                                   const struct byi_type **out)
{
    const uint32_t n = (uint32_t)(t->op->id - BYI_OP_QNN_CONV1D) + 1;
    const struct byi_type *sums;
    BYI_TRY(want_product(t));
    if (!byi_layout_is_default(t->op, t->attrs))
        return byi_rule_fail(t,
                             "data_layout is %s and kernel_layout %s, expected "
                             "the plain ones",
                             byi_attr_string(t->attrs, "data_layout"),
                             byi_attr_string(t->attrs, "kernel_layout"));
    BYI_TRY(byi_infer_conv(t, n, &sums));
    return give(t, sums, t->in[WEIGHTS]->dims[0], out);
}

enum byoc_status byi_rule_qnn_matmul(struct byi_infer *t,
                                     const struct byi_type **out)
{
    const struct byi_type *b = t->in[WEIGHTS], *sums;
    BYI_TRY(want_product(t));
    BYI_TRY(byi_infer_matmul(t, &sums));
    const bool turned = byi_attr_int(t->attrs, "transpose_b") != 0;
    const int64_t columns =
        b->rank > 1 ? b->dims[b->rank - (turned ? 2 : 1)] : 1;
    return give(t, sums, columns, out);
}
