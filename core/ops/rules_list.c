/* SPDX-License-Identifier: Apache-2.0 */
/* rules_list.c: type rules of operators on sequences and optionals. The
 * elements of a sequence have one dtype; their ranks and sizes are known as far
 * as all elements agree.
 */
#include "rules.h"

static enum byoc_status want_kind(const struct byi_infer *t, uint32_t i,
                                  enum byi_type_kind kind)
{
    if (t->in[i]->kind == kind)
        return BYOC_OK;
    return byi_rule_fail(t, "operand %u is %s, expected %s", i,
                         byi_type_kind_text(t->in[i]->kind),
                         byi_type_kind_text(kind));
}

/* Check that operand i is a position: one integer. */
static enum byoc_status want_position(const struct byi_infer *t, uint32_t i)
{
    BYI_TRY(want_kind(t, i, BYI_TENSOR));
    BYI_TRY(byi_want_dtype(t, i, BYI_INDEX, "position"));
    return byi_want_scalar(t, i, "position");
}

/* The sequence `list` with an element of the type of operand i. */
static enum byoc_status add_element(struct byi_infer *t,
                                    const struct byi_type *list, uint32_t i)
{
    BYI_TRY(want_kind(t, i, BYI_TENSOR));
    t->out = byi_type_join(t->arena, list,
                           byi_type_list(t->arena, BYI_SEQ, t->in[i]));
    if (t->out)
        return BYOC_OK;
    return byi_rule_fail(
        t, "operand %u has type %s, expected %s, as the sequence's elements", i,
        byoc_dtype_name(t->in[i]->dtype),
        byoc_dtype_name(list->fields[0]->dtype));
}

static enum byoc_status attr_dtype(const struct byi_infer *t,
                                   enum byoc_dtype *dtype)
{
    *dtype = (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    if (byoc_dtype_name(*dtype) && *dtype != BYOC_NONE)
        return BYOC_OK;
    return byi_rule_fail(t, "dtype is number %d, expected an element type",
                         (int)*dtype);
}

enum byoc_status byi_rule_sequence_make(struct byi_infer *t)
{
    enum byoc_dtype dtype = BYOC_NONE;
    BYI_TRY(attr_dtype(t, &dtype));
    if (t->n_in)
        dtype = t->in[0]->dtype;
    t->out = byi_type_list(t->arena, BYI_SEQ,
                           byi_type_of_any(t->arena, BYI_NO_TENSOR, dtype));
    for (uint32_t i = 0; i < t->n_in; i++)
        BYI_TRY(add_element(t, t->out, i));
    return BYOC_OK;
}

enum byoc_status byi_rule_sequence_insert(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_SEQ));
    if (t->n_in > 2)
        BYI_TRY(want_position(t, 2));
    return add_element(t, t->in[0], 1);
}

enum byoc_status byi_rule_sequence_erase(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_SEQ));
    if (t->n_in > 1)
        BYI_TRY(want_position(t, 1));
    return byi_rule_result(t, t->in[0]);
}

/* The type of an element that is taken out of its list: sizes that may differ
 * become new symbols. */
static enum byoc_status take_element(struct byi_infer *t,
                                     const struct byi_type *element)
{
    int64_t dims[BYI_MAX_RANK];
    t->out = element;
    if (byi_type_is_list(element))
        return BYOC_OK;
    if (element->kind != BYI_TENSOR)
        return byi_rule_fail(t,
                             "the rank of operand 0's elements is not known, "
                             "expected one rank for all; insert tensors of "
                             "one rank, or declare their shape");
    for (uint32_t d = 0; d < element->rank; d++)
        dims[d] = element->dims[d] == BYI_ANY_DIM ? byi_rule_new_symbol(t)
                                                  : element->dims[d];
    return byi_rule_tensor(t, element->dtype, element->rank, dims);
}

enum byoc_status byi_rule_sequence_at(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_SEQ));
    BYI_TRY(want_position(t, 1));
    return take_element(t, t->in[0]->fields[0]);
}

enum byoc_status byi_rule_sequence_length(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_SEQ));
    return byi_rule_tensor(t, BYOC_I64, 0, NULL);
}

enum byoc_status byi_rule_sequence_split(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const bool keeps_axis =
        t->n_in > 1 || byi_attr_int(t->attrs, "keepdims") != 0;
    int64_t dims[BYI_MAX_RANK];
    uint32_t axis = 0, rank = 0;
    BYI_TRY(want_kind(t, 0, BYI_TENSOR));
    BYI_TRY(byi_want_min_rank(t, 0, 1, "x"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    if (t->n_in > 1) {
        BYI_TRY(want_kind(t, 1, BYI_TENSOR));
        BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "sizes"));
        if (t->in[1]->rank > 1)
            return byi_rule_fail(t, "sizes have rank %u, expected 0 or 1",
                                 t->in[1]->rank);
    }
    for (uint32_t d = 0; d < x->rank; d++)
        if (d != axis || keeps_axis)
            dims[rank++] = d != axis     ? x->dims[d]
                           : t->n_in > 1 ? BYI_ANY_DIM
                                         : 1;
    return byi_rule_result(
        t, byi_type_list(t->arena, BYI_SEQ,
                         byi_type_tensor(t->arena, x->dtype, rank, dims)));
}

enum byoc_status byi_rule_sequence_concatenate(struct byi_infer *t)
{
    const bool stacked = byi_attr_int(t->attrs, "new_axis") != 0;
    const struct byi_type *x = NULL;
    int64_t dims[BYI_MAX_RANK + 1];
    uint32_t axis = 0, k = 0;
    BYI_TRY(want_kind(t, 0, BYI_SEQ));
    BYI_TRY(take_element(t, t->in[0]->fields[0]));
    x = t->out;
    if (x->kind != BYI_TENSOR)
        return byi_rule_fail(t,
                             "an element of operand 0 is %s, expected a tensor",
                             byi_type_kind_text(x->kind));
    const uint32_t rank = x->rank + stacked;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), rank, &axis));
    for (uint32_t d = 0; d < rank; d++) {
        const bool joined = d == axis;
        const int64_t size = stacked && joined ? 0 : x->dims[k++];
        dims[d] = joined ? byi_rule_new_symbol(t) : size;
    }
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

enum byoc_status byi_rule_optional_make(struct byi_infer *t)
{
    if (t->in[0]->kind != BYI_TENSOR && t->in[0]->kind != BYI_SEQ)
        return byi_rule_fail(t,
                             "operand 0 is %s, expected a tensor or a sequence",
                             byi_type_kind_text(t->in[0]->kind));
    return byi_rule_result(t, byi_type_list(t->arena, BYI_OPTIONAL, t->in[0]));
}

enum byoc_status byi_rule_optional_none(struct byi_infer *t)
{
    enum byoc_dtype dtype = BYOC_NONE;
    BYI_TRY(attr_dtype(t, &dtype));
    t->out = byi_type_of_any(t->arena, BYI_NO_TENSOR, dtype);
    if (byi_attr_int(t->attrs, "sequence"))
        t->out = byi_type_list(t->arena, BYI_SEQ, t->out);
    return byi_rule_result(t, byi_type_list(t->arena, BYI_OPTIONAL, t->out));
}

enum byoc_status byi_rule_optional_has(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_OPTIONAL));
    return byi_rule_tensor(t, BYOC_BOOL, 0, NULL);
}

enum byoc_status byi_rule_optional_get(struct byi_infer *t)
{
    BYI_TRY(want_kind(t, 0, BYI_OPTIONAL));
    return take_element(t, t->in[0]->fields[0]);
}
