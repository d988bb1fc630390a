/* SPDX-License-Identifier: Apache-2.0 */
/* rules_movement.c: type rules of the operators that move data: concatenate,
 * split, slices, gathers and scatters, selections.
 */
#include "rules.h"

#include "core/base/nonzero.h"

#include <string.h>

enum byoc_status byi_rule_concatenate(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    uint32_t axis = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "operand 0"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (uint32_t i = 1; i < t->n_in; i++) {
        const struct byi_type *in = t->in[i];
        char name[24];
        snprintf(name, sizeof name, "operand %u", i);
        BYI_TRY(byi_want_same_dtype(t, i, 0, name));
        BYI_TRY(byi_want_rank(t, i, x->rank, name));
        for (uint32_t k = 0; k < x->rank; k++) {
            if (k == axis)
                continue;
            if (!byi_dims_agree(dims[k], in->dims[k]))
                return byi_rule_fail(
                    t, "operand %u has size %lld on axis %u, expected %lld", i,
                    (long long)in->dims[k], k, (long long)dims[k]);
            dims[k] = byi_dim_unify(dims[k], in->dims[k]);
        }
        dims[axis] = byi_dim_add(t, dims[axis], in->dims[axis]);
    }
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

/* The types of n parts of x along axis; sizes NULL: their sizes are unknown. */
static enum byoc_status split_axis(struct byi_infer *t, int64_t n,
                                   const int64_t *sizes)
{
    const struct byi_type *x = t->in[0];
    uint32_t axis = 0;
    int64_t dims[BYI_MAX_RANK], total = 0;
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    if (n < 1 || n > BYI_MAX_ARGS)
        return byi_rule_fail(t, "sizes has %lld entries, expected 1 to %d",
                             (long long)n, BYI_MAX_ARGS);
    for (int64_t i = 0; sizes && i < n; i++) {
        if (sizes[i] < 0 || sizes[i] > BYI_MAX_ELEMENTS)
            return byi_rule_fail(t, "sizes[%lld] is %lld, expected 0 to 2^40",
                                 (long long)i, (long long)sizes[i]);
        total += sizes[i];
    }
    if (sizes && !byi_dims_agree(x->dims[axis], total))
        return byi_rule_fail(
            t, "sizes sum to %lld, expected %lld, the size of axis %u",
            (long long)total, (long long)x->dims[axis], axis);
    const struct byi_type **fields =
        byi_arena_calloc(t->arena, (size_t)n, sizeof(*fields));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    for (int64_t i = 0; i < n; i++) {
        dims[axis] = sizes ? sizes[i] : byi_rule_new_symbol(t);
        BYI_TRY(byi_rule_tensor(t, x->dtype, x->rank, dims));
        fields[i] = t->out;
    }
    return byi_rule_result(t, byi_type_tuple(t->arena, (uint32_t)n, fields));
}

enum byoc_status byi_rule_split(struct byi_infer *t)
{
    uint32_t n;
    const int64_t *sizes = byi_attr_ints(t->attrs, "sizes", &n);
    return split_axis(t, n, sizes);
}

enum byoc_status byi_rule_dyn_split(struct byi_infer *t)
{
    int64_t sizes[BYI_MAX_ARGS];
    uint32_t n;
    BYI_TRY(byi_want_ints(t, 1, -1, "sizes"));
    if (byi_known_ints(t, 1, BYI_MAX_ARGS, sizes, &n))
        return split_axis(t, n, sizes);
    if (BYI_IS_SYMBOL(t->in[1]->dims[0]))
        return byi_rule_fail(t, "the number of parts is not known, expected "
                                "sizes of known length");
    return split_axis(t, t->in[1]->dims[0], NULL);
}

/* --- strided_slice ------------------------------------------------------ */

/* Count begin, begin + stride, ... before end in an axis of size dim. Negative
 * positions count from the end, and all are clamped (ONNX Slice). */
static int64_t count_slice(int64_t dim, int64_t begin, int64_t end,
                           int64_t stride)
{
    if (dim == 0)
        return 0;
    begin = begin < -dim ? -dim - 1 : begin;
    end = end < -dim ? -dim - 1 : end;
    begin += begin < 0 ? dim : 0;
    end += end < 0 ? dim : 0;
    if (stride > 0) {
        begin = byi_clamp(begin, 0, dim);
        end = byi_clamp(end, 0, dim);
        return end <= begin ? 0 : (end - begin - 1) / stride + 1;
    }
    begin = byi_clamp(begin, 0, dim - 1);
    end = byi_clamp(end, -1, dim - 1);
    /* for INT64_MIN, -stride would overflow, but -(stride + 1) does not */
    return end >= begin ? 0
                        : (int64_t)((uint64_t)(begin - end - 1) /
                                    ((uint64_t)(-(stride + 1)) + 1)) +
                              1;
}

/* Whether the slice takes the whole axis for any size of it. */
static bool takes_all(int64_t begin, int64_t end, int64_t stride)
{
    return (stride == 1 && begin == 0 && end >= INT32_MAX) ||
           (stride == -1 && begin == -1 && end <= -INT32_MAX);
}

enum byoc_status byi_rule_strided_slice(struct byi_infer *t)
{
    static const char *const names[] = {"x", "begin", "end", "axes", "strides"};
    enum { BEGIN = 1, END, AXES, STRIDES };
    const struct byi_type *x = t->in[0];
    int64_t v[5][BYI_MAX_RANK], dims[BYI_MAX_RANK];
    bool known[5], seen[BYI_MAX_RANK] = {false};
    uint32_t n, n_axes = 0;
    for (uint32_t i = BEGIN; i <= STRIDES; i++)
        BYI_TRY(byi_want_ints(t, i, t->in[BEGIN]->dims[0], names[i]));
    known[AXES] = byi_known_ints(t, AXES, BYI_MAX_RANK, v[AXES], &n_axes);
    for (uint32_t i = BEGIN; i <= STRIDES; i++)
        if (i != AXES)
            known[i] = byi_known_ints(t, i, BYI_MAX_RANK, v[i], &n) &&
                       known[AXES] && n == n_axes;
    if (t->in[BEGIN]->dims[0] > x->rank)
        return byi_rule_fail(
            t, "found %lld axes, expected at most %u, the rank of x",
            (long long)t->in[BEGIN]->dims[0], x->rank);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    if (!known[AXES]) {
        for (uint32_t i = 0; i < x->rank; i++)
            dims[i] = byi_rule_new_symbol(t);
        return byi_rule_tensor(t, x->dtype, x->rank, dims);
    }
    for (uint32_t i = 0; i < n_axes; i++) {
        uint32_t axis = 0;
        BYI_TRY(byi_want_axis(t, v[AXES][i], x->rank, &axis));
        if (seen[axis])
            return byi_rule_fail(t, "axes name axis %u twice, expected it once",
                                 axis);
        seen[axis] = true;
        if (known[STRIDES] && v[STRIDES][i] == 0)
            return byi_rule_fail(
                t, "strides[%u] is 0, expected a positive or negative step", i);
        const bool all_known = known[BEGIN] && known[END] && known[STRIDES];
        if (all_known && !BYI_IS_SYMBOL(dims[axis]))
            dims[axis] =
                count_slice(dims[axis], v[BEGIN][i], v[END][i], v[STRIDES][i]);
        else if (!all_known ||
                 !takes_all(v[BEGIN][i], v[END][i], v[STRIDES][i]))
            dims[axis] = byi_rule_new_symbol(t);
    }
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

/* --- gathers and scatters ----------------------------------------------- */

enum byoc_status byi_rule_take(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *idx = t->in[1];
    int64_t dims[2 * BYI_MAX_RANK];
    uint32_t axis = 0, rank = 0;
    BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "indices"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    for (uint32_t i = 0; i < axis; i++)
        dims[rank++] = x->dims[i];
    for (uint32_t i = 0; i < idx->rank; i++)
        dims[rank++] = idx->dims[i];
    for (uint32_t i = axis + 1; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

/* Check that indices have x's rank, and are not larger than x except on axis.
 */
static enum byoc_status want_element_indices(const struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *idx = t->in[1];
    uint32_t axis = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "indices"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    BYI_TRY(byi_want_rank(t, 1, x->rank, "indices"));
    for (uint32_t i = 0; i < x->rank; i++)
        if (i != axis && !BYI_IS_SYMBOL(x->dims[i]) &&
            idx->dims[i] > x->dims[i])
            return byi_rule_fail(t,
                                 "indices have size %lld on axis %u, expected "
                                 "at most %lld, as x has",
                                 (long long)idx->dims[i], i,
                                 (long long)x->dims[i]);
    return BYOC_OK;
}

enum byoc_status byi_rule_gather(struct byi_infer *t)
{
    BYI_TRY(want_element_indices(t));
    return byi_rule_tensor(t, t->in[0]->dtype, t->in[1]->rank, t->in[1]->dims);
}

/* Check indices that are tuples along their last axis: one index for each of
 * the *depth axes of x that follow its `batch` leading axes. */
static enum byoc_status want_tuples(const struct byi_infer *t, uint32_t batch,
                                    uint32_t *depth)
{
    const struct byi_type *x = t->in[0], *idx = t->in[1];
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "indices"));
    BYI_TRY(byi_want_min_rank(t, 0, batch + 1, "x"));
    BYI_TRY(byi_want_min_rank(t, 1, batch + 1, "indices"));
    const int64_t last = idx->dims[idx->rank - 1];
    if (BYI_IS_SYMBOL(last))
        return byi_rule_fail(t, "the last dim of indices is not known, "
                                "expected a number");
    if (last < 1 || last > x->rank - batch)
        return byi_rule_fail(
            t, "indices hold positions of %lld axes, expected 1 to %u",
            (long long)last, x->rank - batch);
    *depth = (uint32_t)last;
    return BYOC_OK;
}

enum byoc_status byi_rule_gather_nd(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *idx = t->in[1];
    const int64_t batch_dims = byi_attr_int(t->attrs, "batch_dims");
    int64_t dims[2 * BYI_MAX_RANK];
    uint32_t depth, rank = 0;
    if (batch_dims < 0 || batch_dims >= BYI_MAX_RANK)
        return byi_rule_fail(t, "batch_dims is %lld, expected 0 to %d",
                             (long long)batch_dims, BYI_MAX_RANK - 1);
    const uint32_t batch = (uint32_t)batch_dims;
    BYI_TRY(want_tuples(t, batch, &depth));
    for (uint32_t i = 0; i + 1 < idx->rank; i++) {
        if (i < batch && !byi_dims_agree(x->dims[i], idx->dims[i]))
            return byi_rule_fail(t,
                                 "batch axis %u has size %lld in x and "
                                 "%lld in indices, expected the same",
                                 i, (long long)x->dims[i],
                                 (long long)idx->dims[i]);
        dims[rank++] =
            i < batch ? byi_dim_unify(x->dims[i], idx->dims[i]) : idx->dims[i];
    }
    for (uint32_t i = batch + depth; i < x->rank; i++)
        dims[rank++] = x->dims[i];
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

/* Check the dims of scatter_nd's updates: indices' leading axes, then x's
 * remaining ones. */
static enum byoc_status want_nd_updates(const struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *idx = t->in[1], *u = t->in[2];
    uint32_t depth;
    BYI_TRY(want_tuples(t, 0, &depth));
    const uint32_t lead = idx->rank - 1;
    BYI_TRY(byi_want_rank(t, 2, lead + x->rank - depth, "updates"));
    for (uint32_t i = 0; i < u->rank; i++) {
        const int64_t expected =
            i < lead ? idx->dims[i] : x->dims[depth + i - lead];
        if (!byi_dims_agree(u->dims[i], expected))
            return byi_rule_fail(
                t, "updates have size %lld on axis %u, expected %lld",
                (long long)u->dims[i], i, (long long)expected);
    }
    return BYOC_OK;
}

static enum byoc_status want_element_updates(const struct byi_infer *t)
{
    const struct byi_type *idx = t->in[1], *u = t->in[2];
    BYI_TRY(want_element_indices(t));
    BYI_TRY(byi_want_rank(t, 2, idx->rank, "updates"));
    for (uint32_t i = 0; i < u->rank; i++)
        if (!byi_dims_agree(u->dims[i], idx->dims[i]))
            return byi_rule_fail(
                t,
                "updates have size %lld on axis %u, expected %lld, as indices "
                "have",
                (long long)u->dims[i], i, (long long)idx->dims[i]);
    return BYOC_OK;
}

enum byoc_status byi_rule_scatter(struct byi_infer *t)
{
    BYI_TRY(byi_want_word(t, "reduction", "none|add|mul|max|min"));
    if (strcmp(byi_attr_string(t->attrs, "reduction"), "none") != 0)
        BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "x"));
    BYI_TRY(byi_want_same_dtype(t, 2, 0, "updates"));
    if (t->op->id == BYI_OP_SCATTER_ND)
        BYI_TRY(want_nd_updates(t));
    else
        BYI_TRY(want_element_updates(t));
    return byi_rule_result(t, t->in[0]);
}

/* --- caches ------------------------------------------------------------- */

/* Set *rows to the rows of the result: the rows of past, or `total` if that is
 * more and the result may grow. */
static enum byoc_status cache_rows(const struct byi_infer *t, int64_t *rows)
{
    const bool grows = byi_attr_int(t->attrs, "grows") != 0;
    const int64_t past = t->in[0]->dims[2];
    int64_t total;
    uint32_t n;
    *rows = past;
    if (!byi_known_ints(t, 3, 1, &total, &n) || BYI_IS_SYMBOL(past)) {
        *rows = grows ? byi_rule_new_symbol(t) : past;
        return BYOC_OK;
    }
    if (!grows && total > past)
        return byi_rule_fail(t,
                             "total is %lld, expected at most %lld, the rows "
                             "of past, since the result has as many",
                             (long long)total, (long long)past);
    *rows = total > past ? total : past;
    return BYOC_OK;
}

enum byoc_status byi_rule_cache_append(struct byi_infer *t)
{
    const struct byi_type *past = t->in[0], *new_rows = t->in[1];
    int64_t dims[4];
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "past"));
    BYI_TRY(byi_want_rank(t, 0, 4, "past"));
    BYI_TRY(byi_want_rank(t, 1, 4, "new"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "new"));
    BYI_TRY(byi_want_ints(t, 2, past->dims[0], "lengths"));
    BYI_TRY(byi_want_dtype(t, 3, BYI_INDEX, "total"));
    BYI_TRY(byi_want_scalar(t, 3, "total"));
    for (uint32_t i = 0; i < 4; i++) {
        if (i != 2 && !byi_dims_agree(past->dims[i], new_rows->dims[i]))
            return byi_rule_fail(t, "axis %u of new is %lld, expected %lld", i,
                                 (long long)new_rows->dims[i],
                                 (long long)past->dims[i]);
        dims[i] = byi_dim_unify(past->dims[i], new_rows->dims[i]);
    }
    BYI_TRY(cache_rows(t, &dims[2]));
    return byi_rule_tensor(t, past->dtype, 4, dims);
}

/* --- selections --------------------------------------------------------- */

enum byoc_status byi_rule_one_hot(struct byi_infer *t)
{
    const struct byi_type *idx = t->in[0];
    int64_t dims[BYI_MAX_RANK + 1];
    uint32_t axis = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "indices"));
    BYI_TRY(byi_want_dtype(t, 1, BYI_NUMERIC, "depth"));
    BYI_TRY(byi_want_scalar(t, 1, "depth"));
    BYI_TRY(byi_want_dtype(t, 2, BYI_ANY, "values"));
    BYI_TRY(byi_want_rank(t, 2, 1, "values"));
    if (!byi_dims_agree(t->in[2]->dims[0], 2))
        return byi_rule_fail(t,
                             "values have %lld elements, expected 2: off and "
                             "on",
                             (long long)t->in[2]->dims[0]);
    BYI_TRY(
        byi_want_axis(t, byi_attr_int(t->attrs, "axis"), idx->rank + 1, &axis));
    const struct byi_tensor *known = byi_known_value(t, 1);
    for (uint32_t i = 0; i < idx->rank; i++)
        dims[i < axis ? i : i + 1] = idx->dims[i];
    if (!known) {
        dims[axis] = byi_rule_new_symbol(t);
    } else {
        const double depth = byi_tensor_float(known, 0);
        if (!(depth >= 0 && depth <= (double)BYI_MAX_ELEMENTS))
            return byi_rule_fail(t, "depth is %s, expected 0 to 2^40",
                                 BYI_FLOAT_TEXT(depth));
        dims[axis] = (int64_t)depth;
    }
    return byi_rule_tensor(t, t->in[2]->dtype, idx->rank + 1, dims);
}

enum byoc_status byi_rule_topk(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    uint32_t axis = 0;
    BYI_TRY(byi_want_dtype(t, 1, BYI_INDEX, "k"));
    BYI_TRY(byi_want_scalar(t, 1, "k"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    const struct byi_tensor *known = byi_known_value(t, 1);
    if (!known) {
        dims[axis] = byi_rule_new_symbol(t);
    } else {
        const int64_t k = byi_tensor_int(known, 0);
        if (k < 0 || (!BYI_IS_SYMBOL(dims[axis]) && k > dims[axis]))
            return byi_rule_fail(
                t, "k is %lld, expected 0 to the %lld elements of axis %u",
                (long long)k, (long long)dims[axis], axis);
        dims[axis] = k;
    }
    return byi_rule_tensors(
        t, 2,
        (struct byi_rule_field[]){{x->dtype, x->rank, dims},
                                  {BYOC_I64, x->rank, dims}});
}

enum byoc_status byi_rule_nonzero(struct byi_infer *t)
{
    const struct byi_tensor *known = byi_known_value(t, 0);
    const int64_t dims[] = {
        t->in[0]->rank,
        known ? byi_nonzero_count(known) : byi_rule_new_symbol(t),
    };
    return byi_rule_tensor(t, BYOC_I64, 2, dims);
}

enum byoc_status byi_rule_compress(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const bool flat = byi_attr_int(t->attrs, "flat") != 0;
    const struct byi_tensor *known = byi_known_value(t, 1);
    int64_t dims[BYI_MAX_RANK];
    uint32_t axis = 0, rank = x->rank;
    BYI_TRY(byi_want_dtype(t, 1, BYI_BOOLEAN, "condition"));
    BYI_TRY(byi_want_rank(t, 1, 1, "condition"));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    if (flat) {
        dims[0] = byi_dim_product(t, x->rank, x->dims);
        rank = 1;
    } else {
        BYI_TRY(
            byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    }
    if (!BYI_IS_SYMBOL(dims[axis]) && t->in[1]->dims[0] > dims[axis])
        return byi_rule_fail(
            t, "condition has %lld elements, expected at most %lld, as x has",
            (long long)t->in[1]->dims[0], (long long)dims[axis]);
    dims[axis] = known ? byi_nonzero_count(known) : byi_rule_new_symbol(t);
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

/* Only the kernel finds the number of distinct slices, even if x is known. */
enum byoc_status byi_rule_unique(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const bool flat = byi_attr_int(t->attrs, "flat") != 0;
    int64_t dims[BYI_MAX_RANK];
    uint32_t axis = 0;
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    if (flat)
        dims[0] = byi_dim_product(t, x->rank, x->dims);
    else
        BYI_TRY(
            byi_want_axis(t, byi_attr_int(t->attrs, "axis"), x->rank, &axis));
    const int64_t slices = dims[axis];
    if (!t->bounds)
        dims[axis] = byi_rule_new_symbol(t);
    const int64_t count = dims[axis];
    return byi_rule_tensors(
        t, 4,
        (struct byi_rule_field[]){{x->dtype, flat ? 1 : x->rank, dims},
                                  {BYOC_I64, 1, &count},
                                  {BYOC_I64, 1, &slices},
                                  {BYOC_I64, 1, &count}});
}
