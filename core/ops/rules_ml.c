/* SPDX-License-Identifier: Apache-2.0 */
/* rules_ml.c: type rules of the operators of classical machine learning. */
#include "rules.h"

/* Check that operand i is a vector of `n` elements (a number or a symbol). */
static enum byoc_status want_vector(const struct byi_infer *t, uint32_t i,
                                    int64_t n, const char *name)
{
    BYI_TRY(byi_want_rank(t, i, 1, name));
    if (byi_dims_agree(t->in[i]->dims[0], n))
        return BYOC_OK;
    return byi_rule_fail(t, "%s has %lld elements, expected %lld", name,
                         (long long)t->in[i]->dims[0], (long long)n);
}

enum byoc_status byi_rule_tree_ensemble(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *splits = t->in[2];
    const int64_t targets = byi_attr_int(t->attrs, "targets");
    BYI_TRY(byi_want_dtype(t, 0, BYI_BIT(BYOC_F32) | BYI_BIT(BYOC_F64), "x"));
    BYI_TRY(byi_want_rank(t, 0, 2, "x"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_BIT(BYOC_I32), "roots"));
    BYI_TRY(byi_want_rank(t, 1, 1, "roots"));
    BYI_TRY(byi_want_dtype(t, 2, BYI_BIT(BYOC_I32), "splits"));
    BYI_TRY(byi_want_rank(t, 2, 2, "splits"));
    if (!byi_dims_agree(splits->dims[1], 2))
        return byi_rule_fail(t, "splits have %lld columns, expected 2",
                             (long long)splits->dims[1]);
    BYI_TRY(byi_want_same_dtype(t, 3, 0, "thresholds"));
    BYI_TRY(want_vector(t, 3, splits->dims[0], "thresholds"));
    BYI_TRY(byi_want_dtype(t, 4, BYI_BIT(BYOC_U8), "modes"));
    BYI_TRY(byi_want_rank(t, 4, 1, "modes"));
    if (t->in[4]->dims[0] != 0)
        BYI_TRY(want_vector(t, 4, splits->dims[0], "modes"));
    BYI_TRY(byi_want_dtype(t, 5, BYI_BIT(BYOC_I32), "targets"));
    BYI_TRY(byi_want_rank(t, 5, 1, "targets"));
    BYI_TRY(byi_want_same_dtype(t, 6, 0, "weights"));
    BYI_TRY(want_vector(t, 6, t->in[5]->dims[0], "weights"));
    BYI_TRY(byi_want_word(t, "aggregate", "sum|average|min|max"));
    if (targets < 1)
        return byi_rule_fail(t, "targets is %lld, expected at least 1",
                             (long long)targets);
    return byi_rule_tensor(t, x->dtype, 2, (int64_t[]){x->dims[0], targets});
}

enum byoc_status byi_rule_map(struct byi_infer *t)
{
    const unsigned keys = BYI_INTS | BYI_BOOLEAN | BYI_BIT(BYOC_F32) |
                          BYI_BIT(BYOC_F64) | BYI_BIT(BYOC_STRING);
    BYI_TRY(byi_want_dtype(t, 0, keys, "x"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "keys"));
    BYI_TRY(byi_want_rank(t, 1, 1, "keys"));
    BYI_TRY(byi_want_dtype(t, 2, BYI_COMPARABLE, "values"));
    BYI_TRY(want_vector(t, 2, t->in[1]->dims[0], "values"));
    BYI_TRY(byi_want_same_dtype(t, 3, 2, "otherwise"));
    BYI_TRY(byi_want_rank(t, 3, 0, "otherwise"));
    return byi_rule_like(t, t->in[2]->dtype);
}

enum byoc_status byi_rule_coupling(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t classes = 2;
    BYI_TRY(byi_want_rank(t, 0, 2, "x"));
    while (classes < 1 << 16 && classes * (classes - 1) / 2 < x->dims[1])
        classes++;
    if (classes * (classes - 1) / 2 != x->dims[1])
        return byi_rule_fail(t,
                             "x has %lld columns, expected one for each pair "
                             "of classes: n (n - 1) / 2 for n classes",
                             (long long)x->dims[1]);
    return byi_rule_tensor(t, x->dtype, 2, (int64_t[]){x->dims[0], classes});
}
