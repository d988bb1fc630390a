/* SPDX-License-Identifier: Apache-2.0 */
/* rules_signal.c: type rules of operators on signals. */
#include "dct.h"
#include "rules.h"

#include <string.h>

/* Set *length to the length of a transform: the value of operand 1, or without
 * that operand the size of x's axis. */
static enum byoc_status transform_length(const struct byi_infer *t,
                                         uint32_t axis, int64_t *length)
{
    const struct byi_tensor *known = byi_known_value(t, 1);
    *length = t->in[0]->dims[axis];
    if (t->n_in > 1) {
        BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "length"));
        BYI_TRY(byi_want_scalar(t, 1, "length"));
        *length = known ? byi_tensor_int(known, 0) : byi_rule_new_symbol(t);
        if (known && (*length < 1 || *length > BYI_MAX_ELEMENTS))
            return byi_rule_fail(t, "length is %lld, expected 1 to 2^40",
                                 (long long)*length);
    }
    if (*length == 0)
        return byi_rule_fail(t, "axis %u has size 0, expected 1 or more", axis);
    return BYOC_OK;
}

enum byoc_status byi_rule_idct8(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    uint32_t n = 0, axis = 0, seen = 0;
    const int64_t *axes = byi_attr_ints(t->attrs, "axes", &n);
    BYI_TRY(byi_want_min_rank(t, 0, 1, "x"));
    for (uint32_t i = 0; i < n; i++) {
        BYI_TRY(byi_want_axis(t, axes[i], x->rank, &axis));
        if (axis + 2 < x->rank || seen >> axis & 1)
            return byi_rule_fail(t,
                                 "axis %u is %s, expected each of the last two "
                                 "axes at most once",
                                 axis,
                                 axis + 2 < x->rank ? "not one of the last two"
                                                    : "given twice");
        if (x->dims[axis] != BYI_DCT)
            return byi_rule_fail(t, "axis %u has size %lld, expected 8", axis,
                                 (long long)x->dims[axis]);
        seen |= 1u << axis;
    }
    if (n == 0)
        return byi_rule_fail(t, "axes is empty, expected one or two axes");
    return byi_rule_tensor(t, x->dtype, x->rank, x->dims);
}

enum byoc_status byi_rule_dft(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const bool half = byi_attr_int(t->attrs, "onesided") != 0;
    int64_t dims[BYI_MAX_RANK], length = 0;
    uint32_t axis = 0;
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    const int64_t parts = x->dims[x->rank - 1];
    if (!byi_dims_agree(parts, 1) && parts != 2)
        return byi_rule_fail(t,
                             "the last axis of x has size %lld, expected 1 "
                             "(real numbers) or 2 (complex ones)",
                             (long long)parts);
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    if (axis == x->rank - 1)
        return byi_rule_fail(t,
                             "axis %u is the last, which holds real and "
                             "imaginary parts, expected an axis before it",
                             axis);
    if (half && (byi_attr_int(t->attrs, "inverse") || parts == 2))
        return byi_rule_fail(t, "onesided is true for %s, expected false",
                             parts == 2 ? "complex numbers"
                                        : "an inverse transform");
    BYI_TRY(transform_length(t, axis, &length));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[axis] = !half                   ? length
                 : BYI_IS_SYMBOL(length) ? byi_rule_new_symbol(t)
                                         : length / 2 + 1;
    dims[x->rank - 1] = 2;
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}
