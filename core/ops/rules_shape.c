/* SPDX-License-Identifier: Apache-2.0 */
/* rules_shape.c: type rules of the operators that change a shape, return a
 * shape as data (shape_of, size_of) or make a tensor of a given shape (full,
 * arange, random.*). Symbols are kept if the result provably has the same dim.
 */
#include "rules.h"

/* --- reshape ------------------------------------------------------------ */

/* A product of dims: a number, and symbols that may be cancelled. */
struct product {
    int64_t number;
    int64_t symbols[BYI_MAX_RANK];
    uint32_t n;
};

/* Multiply p by a dim. A number above BYI_MAX_ELEMENTS becomes
 * BYI_MAX_ELEMENTS + 1, which a dim of 0 still makes 0. */
static void multiply_product(struct product *p, int64_t dim)
{
    if (BYI_IS_SYMBOL(dim))
        p->symbols[p->n++] = dim;
    else if (dim > 0 && p->number > BYI_MAX_ELEMENTS / dim)
        p->number = BYI_MAX_ELEMENTS + 1;
    else
        p->number *= dim;
}

static void cancel_symbols(struct product *a, struct product *b)
{
    for (uint32_t i = 0; i < a->n;) {
        uint32_t k = 0;
        while (k < b->n && b->symbols[k] != a->symbols[i])
            k++;
        if (k == b->n) {
            i++;
            continue;
        }
        a->symbols[i] = a->symbols[--a->n];
        b->symbols[k] = b->symbols[--b->n];
    }
}

/* Fail because x has another number of elements than `shape`. */
static enum byoc_status fail_shape(const struct byi_infer *t, uint32_t n,
                                   const int64_t *shape)
{
    char sx[256], text[256];
    const struct byi_type *x = t->in[0];
    size_t used = 0;
    for (uint32_t i = 0; i < n && used < sizeof text; i++) {
        const int wrote = snprintf(text + used, sizeof text - used, "%s%lld",
                                   i ? ", " : "", (long long)shape[i]);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    return byi_rule_fail(t,
                         "x of shape %s does not fit shape (%s), expected "
                         "the same number of elements",
                         byi_dims_text(sx, sizeof sx, x->rank, x->dims),
                         n ? text : "");
}

/* Find the dim that -1 stands for: the elements of x, `of_x`, divided by the
 * product of the other entries, `of_shape`. Returns false if the quotient is
 * known not to be an integer. */
static bool infer_rest(const struct byi_infer *t, const struct product *of_x,
                       const struct product *of_shape, int64_t *dim)
{
    if (of_shape->n > 0) {
        *dim = byi_rule_new_symbol(t);
        return true;
    }
    if (of_shape->number == 0 || of_x->number % of_shape->number)
        return of_x->n > 0 && of_shape->number != 0
                   ? (*dim = byi_rule_new_symbol(t), true)
                   : false;
    const int64_t rest = of_x->number / of_shape->number;
    *dim = of_x->n == 0                ? rest
           : of_x->n == 1 && rest == 1 ? of_x->symbols[0]
           : rest == 0                 ? 0
                                       : byi_rule_new_symbol(t);
    return true;
}

/* Compute the dims of x reshaped to the n known entries of `shape`. */
static enum byoc_status infer_reshape(const struct byi_infer *t, uint32_t n,
                                      const int64_t *shape, int64_t *dims)
{
    const struct byi_type *x = t->in[0];
    const bool copy = !byi_attr_int(t->attrs, "allowzero");
    struct product of_x = {.number = 1}, of_shape = {.number = 1};
    uint32_t inferred = UINT32_MAX;
    bool empty = false; /* a copied dim is 0: so are both numbers of elements */
    for (uint32_t i = 0; i < n; i++) {
        dims[i] = shape[i];
        if (shape[i] == -1 && inferred == UINT32_MAX)
            inferred = i;
        else if (shape[i] < 0)
            return byi_rule_fail(
                t, "shape[%u] is %lld, expected 0 or more, or a single -1", i,
                (long long)shape[i]);
        else if (shape[i] > 0 || !copy)
            multiply_product(&of_shape, shape[i]);
        if (shape[i] == 0 && copy) {
            if (i >= x->rank)
                return byi_rule_fail(t,
                                     "shape[%u] is 0 and x has rank %u, "
                                     "expected an axis to copy",
                                     i, x->rank);
            dims[i] = x->dims[i];
            empty = empty || dims[i] == 0;
        }
    }
    /* A copied dim is on both sides and cancels. If it is 0, the other dims may
     * be any numbers, but -1 still stands for the quotient of the others. */
    for (uint32_t i = 0; i < x->rank; i++)
        if (!(copy && i < n && shape[i] == 0))
            multiply_product(&of_x, x->dims[i]);
    cancel_symbols(&of_x, &of_shape);
    if (inferred != UINT32_MAX)
        return infer_rest(t, &of_x, &of_shape, &dims[inferred])
                   ? BYOC_OK
                   : fail_shape(t, n, shape);
    if (!empty && of_x.n == 0 && of_shape.n == 0 &&
        of_x.number != of_shape.number)
        return fail_shape(t, n, shape);
    return BYOC_OK;
}

/* Set the dims that operand i, a shape of unknown value, stands for: a new
 * symbol for each entry. */
static enum byoc_status set_unknown_shape(const struct byi_infer *t, uint32_t i,
                                          uint32_t *rank, int64_t *dims)
{
    const int64_t n = t->in[i]->dims[0];
    if (BYI_IS_SYMBOL(n))
        return byi_rule_fail(t, "the length of shape is symbolic, expected a "
                                "number, the rank of the result");
    if (n > BYI_MAX_RANK)
        return byi_rule_fail(t, "shape has %lld entries, expected at most %d",
                             (long long)n, BYI_MAX_RANK);
    *rank = (uint32_t)n;
    for (uint32_t k = 0; k < *rank; k++)
        dims[k] = byi_rule_new_symbol(t);
    return BYOC_OK;
}

enum byoc_status byi_rule_reshape(struct byi_infer *t)
{
    int64_t shape[BYI_MAX_RANK], dims[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_ints(t, 1, -1, "shape"));
    if (byi_known_ints(t, 1, BYI_MAX_RANK, shape, &n))
        BYI_TRY(infer_reshape(t, n, shape, dims));
    else
        BYI_TRY(set_unknown_shape(t, 1, &n, dims));
    return byi_rule_tensor(t, t->in[0]->dtype, n, dims);
}

/* --- axes of size 1, order of axes -------------------------------------- */

/* x without the flagged axes, which have size 1. */
static enum byoc_status infer_squeeze(struct byi_infer *t, const bool *flags)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (flags[i] && !byi_dims_agree(x->dims[i], 1))
            return byi_rule_fail(t, "axis %u has size %lld, expected 1", i,
                                 (long long)x->dims[i]);
        if (!flags[i])
            dims[rank++] = x->dims[i];
    }
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

enum byoc_status byi_rule_squeeze(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    bool flags[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_axes(t, "axis", x->rank, flags, &n));
    const bool exact = byi_attr_int(t->attrs, "exact") != 0;
    for (uint32_t i = 0; n == 0 && !exact && i < x->rank; i++)
        flags[i] = x->dims[i] == 1;
    for (uint32_t i = 0; exact && i < x->rank; i++)
        if (!flags[i] && x->dims[i] == 1)
            return byi_rule_fail(
                t,
                "axis %u has size 1: Squeeze without axes would remove it, and "
                "the rank would depend on the size, expected another size; "
                "compile the model for size 1, or give axes",
                i);
    return infer_squeeze(t, flags);
}

/* Set *rank to the rank of x with n more axes of size 1. */
static enum byoc_status expanded_rank(const struct byi_infer *t, uint32_t n,
                                      uint32_t *rank)
{
    const uint32_t r = t->in[0]->rank;
    if (n > BYI_MAX_RANK - r)
        return byi_rule_fail(t, "the result has rank %u, expected at most %d",
                             n + r, BYI_MAX_RANK);
    *rank = n + r;
    return BYOC_OK;
}

/* x with axes of size 1 inserted at the flags. */
static enum byoc_status expand_dims(struct byi_infer *t, uint32_t rank,
                                    const bool *flags)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t i = 0, k = 0; i < rank; i++)
        dims[i] = flags[i] ? 1 : x->dims[k++];
    return byi_rule_tensor(t, x->dtype, rank, dims);
}

enum byoc_status byi_rule_expand_dims(struct byi_infer *t)
{
    bool flags[BYI_MAX_RANK];
    uint32_t n, rank = 0;
    byi_attr_ints(t->attrs, "axis", &n);
    BYI_TRY(expanded_rank(t, n, &rank));
    BYI_TRY(byi_want_axes(t, "axis", rank, flags, &n));
    return expand_dims(t, rank, flags);
}

/* A result of known rank; every dim is a new symbol. */
static enum byoc_status result_of_rank(struct byi_infer *t, uint32_t rank)
{
    int64_t dims[BYI_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = byi_rule_new_symbol(t);
    return byi_rule_tensor(t, t->in[0]->dtype, rank, dims);
}

enum byoc_status byi_rule_dyn_squeeze(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t axes[BYI_MAX_RANK];
    bool flags[BYI_MAX_RANK], known = false;
    uint32_t n = 0;
    BYI_TRY(byi_want_axis_operand(t, axes, &n, &known));
    if (n > x->rank)
        return byi_rule_fail(t, "found %u axes, expected at most %u, x's rank",
                             n, x->rank);
    if (!known)
        return result_of_rank(t, x->rank - n);
    BYI_TRY(byi_want_axis_list(t, "axes", axes, n, x->rank, flags));
    return infer_squeeze(t, flags);
}

enum byoc_status byi_rule_dyn_expand_dims(struct byi_infer *t)
{
    int64_t axes[BYI_MAX_RANK];
    bool flags[BYI_MAX_RANK], known = false;
    uint32_t n = 0, rank = 0;
    BYI_TRY(byi_want_axis_operand(t, axes, &n, &known));
    BYI_TRY(expanded_rank(t, n, &rank));
    if (!known)
        return result_of_rank(t, rank);
    BYI_TRY(byi_want_axis_list(t, "axes", axes, n, rank, flags));
    return expand_dims(t, rank, flags);
}

enum byoc_status byi_rule_flatten(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const int64_t r = x->rank;
    int64_t axis = byi_attr_int(t->attrs, "axis");
    if (axis < -r || axis > r)
        return byi_rule_fail(
            t, "axis %lld is out of range for rank %u, expected %lld to %lld",
            (long long)axis, x->rank, (long long)-r, (long long)r);
    axis += axis < 0 ? r : 0;
    const uint32_t split = (uint32_t)axis;
    const int64_t dims[] = {
        byi_dim_product(t, split, x->dims),
        byi_dim_product(t, x->rank - split, x->dims + split),
    };
    return byi_rule_tensor(t, x->dtype, 2, dims);
}

enum byoc_status byi_rule_transpose(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t dims[BYI_MAX_RANK];
    bool flags[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_axes(t, "axes", x->rank, flags, &n));
    const int64_t *axes = byi_attr_ints(t->attrs, "axes", &n);
    if (n != 0 && n != x->rank)
        return byi_rule_fail(t, "axes has %u entries, expected %u or none", n,
                             x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        uint32_t from = x->rank - 1 - i;
        if (n)
            BYI_TRY(byi_want_axis(t, axes[i], x->rank, &from));
        dims[i] = x->dims[from];
    }
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

/* --- broadcast, tile ---------------------------------------------------- */

enum byoc_status byi_rule_broadcast_to(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t shape[BYI_MAX_RANK], dims[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_ints(t, 1, -1, "shape"));
    if (!byi_known_ints(t, 1, BYI_MAX_RANK, shape, &n))
        BYI_TRY(set_unknown_shape(t, 1, &n, shape));
    else
        for (uint32_t i = 0; i < n; i++)
            if (shape[i] < 0)
                return byi_rule_fail(t, "shape[%u] is %lld, expected 0 or more",
                                     i, (long long)shape[i]);
    BYI_TRY(byi_dims_broadcast(t, x->rank, x->dims, n, shape, &n, dims));
    return byi_rule_tensor(t, x->dtype, n, dims);
}

enum byoc_status byi_rule_tile(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    int64_t repeats[BYI_MAX_RANK], dims[BYI_MAX_RANK];
    uint32_t n;
    BYI_TRY(byi_want_ints(t, 1, x->rank, "repeats"));
    const bool known =
        byi_known_ints(t, 1, BYI_MAX_RANK, repeats, &n) && n == x->rank;
    for (uint32_t i = 0; i < x->rank; i++) {
        if (known && repeats[i] < 0)
            return byi_rule_fail(t, "repeats[%u] is %lld, expected 0 or more",
                                 i, (long long)repeats[i]);
        dims[i] = known ? byi_dim_mul(t, x->dims[i], repeats[i])
                        : byi_rule_new_symbol(t);
    }
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

/* --- shapes as data, data from shapes ----------------------------------- */

enum byoc_status byi_rule_shape_of(struct byi_infer *t)
{
    const int64_t r = t->in[0]->rank;
    int64_t ends[2] = {byi_attr_int(t->attrs, "start"),
                       byi_attr_int(t->attrs, "end")};
    for (int i = 0; i < 2; i++) {
        if (ends[i] < 0)
            ends[i] = ends[i] < -r ? 0 : ends[i] + r;
        if (ends[i] > r)
            ends[i] = r;
    }
    const int64_t n = ends[1] > ends[0] ? ends[1] - ends[0] : 0;
    return byi_rule_tensor(t, BYOC_I64, 1, &n);
}

enum byoc_status byi_rule_size_of(struct byi_infer *t)
{
    return byi_rule_tensor(t, BYOC_I64, 0, NULL);
}

/* The name of a dtype in messages, also of one that does not exist. */
static const char *dtype_text(enum byoc_dtype dtype)
{
    const char *name = byoc_dtype_name(dtype);
    return name ? name : "unknown";
}

enum byoc_status byi_rule_full(struct byi_infer *t)
{
    const enum byoc_dtype dtype =
        (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    int64_t dims[BYI_MAX_RANK];
    uint32_t n;
    if ((unsigned)dtype >= 32 || !(BYI_BIT(dtype) & (BYI_VALUES | BYI_NARROW)))
        return byi_rule_fail(t, "dtype is %s, expected a numeric type or bool",
                             dtype_text(dtype));
    BYI_TRY(byi_want_ints(t, 0, -1, "shape"));
    if (!byi_known_ints(t, 0, BYI_MAX_RANK, dims, &n))
        BYI_TRY(set_unknown_shape(t, 0, &n, dims));
    else
        for (uint32_t i = 0; i < n; i++)
            if (dims[i] < 0)
                return byi_rule_fail(t, "shape[%u] is %lld, expected 0 or more",
                                     i, (long long)dims[i]);
    return byi_rule_tensor(t, dtype, n, dims);
}

enum byoc_status byi_rule_random_fill(struct byi_infer *t)
{
    const enum byoc_dtype dtype =
        (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    if (!byi_dtype_is_float(dtype))
        return byi_rule_fail(t, "dtype is %s, expected a floating-point type",
                             dtype_text(dtype));
    return byi_rule_full(t);
}

enum byoc_status byi_rule_random_multinomial(struct byi_infer *t)
{
    const enum byoc_dtype dtype =
        (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    const int64_t size = byi_attr_int(t->attrs, "sample_size");
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "logits"));
    BYI_TRY(byi_want_rank(t, 0, 2, "logits"));
    if (dtype != BYOC_I32 && dtype != BYOC_I64)
        return byi_rule_fail(t, "dtype is %s, expected int32 or int64",
                             dtype_text(dtype));
    if (size < 1 || size > BYI_MAX_ELEMENTS)
        return byi_rule_fail(t, "sample_size is %lld, expected 1 to 2^40",
                             (long long)size);
    if (t->in[0]->dims[1] == 0)
        return byi_rule_fail(t, "logits has 0 classes, expected 1 or more");
    const int64_t dims[] = {t->in[0]->dims[0], size};
    return byi_rule_tensor(t, dtype, 2, dims);
}

enum byoc_status byi_rule_eye_like(struct byi_infer *t)
{
    const enum byoc_dtype dtype =
        (enum byoc_dtype)byi_attr_int(t->attrs, "dtype");
    if ((unsigned)dtype >= 32 || !(BYI_BIT(dtype) & BYI_VALUES))
        return byi_rule_fail(t,
                             "dtype is %s, expected a numeric type of 8 bits "
                             "or more, or bool",
                             dtype_text(dtype));
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_rank(t, 0, 2, "x"));
    return byi_rule_like(t, dtype);
}

/* Count the elements of start, start + delta, ... before limit; -1 if an
 * operand is NaN, or they exceed BYI_MAX_ELEMENTS. Exact for integers. `delta`
 * is not 0. */
static int64_t count_range(const struct byi_tensor *start,
                           const struct byi_tensor *limit,
                           const struct byi_tensor *delta)
{
    if (byi_dtype_is_int(start->dtype)) {
        const __int128 span =
            (__int128)byi_tensor_int(limit, 0) - byi_tensor_int(start, 0);
        const __int128 step = byi_tensor_int(delta, 0);
        if ((span > 0) != (step > 0) || span == 0)
            return 0;
        const __int128 n = (span + step + (step > 0 ? -1 : 1)) / step;
        return n > BYI_MAX_ELEMENTS ? -1 : (int64_t)n;
    }
    const double n = __builtin_ceil(
        (byi_tensor_float(limit, 0) - byi_tensor_float(start, 0)) /
        byi_tensor_float(delta, 0));
    if (!(n <= (double)BYI_MAX_ELEMENTS))
        return -1;
    return n > 0 ? (int64_t)n : 0;
}

enum byoc_status byi_rule_arange(struct byi_infer *t)
{
    static const char *const names[] = {"start", "limit", "delta"};
    int64_t n = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "start"));
    for (uint32_t i = 0; i < 3; i++) {
        BYI_TRY(byi_want_same_dtype(t, i, 0, names[i]));
        BYI_TRY(byi_want_scalar(t, i, names[i]));
    }
    if (byi_known_value(t, 0) && byi_known_value(t, 1) &&
        byi_known_value(t, 2)) {
        if (byi_tensor_float(byi_known_value(t, 2), 0) == 0)
            return byi_rule_fail(t, "delta is 0, expected another number");
        n = count_range(byi_known_value(t, 0), byi_known_value(t, 1),
                        byi_known_value(t, 2));
        if (n < 0)
            return byi_rule_fail(
                t,
                "found the numbers from %s to %s by %s, expected at most 2^40 "
                "elements, and no NaN",
                BYI_FLOAT_TEXT(byi_tensor_float(byi_known_value(t, 0), 0)),
                BYI_FLOAT_TEXT(byi_tensor_float(byi_known_value(t, 1), 0)),
                BYI_FLOAT_TEXT(byi_tensor_float(byi_known_value(t, 2), 0)));
    } else {
        n = byi_rule_new_symbol(t);
    }
    return byi_rule_tensor(t, t->in[0]->dtype, 1, &n);
}

/* The result's dim is that axis of x, even if it is a symbol. The result of
 * arange with a value from shape_of(x) would have a new symbol. */
enum byoc_status byi_rule_arange_like(struct byi_infer *t)
{
    uint32_t axis;
    BYI_TRY(byi_want_dtype(t, 0, BYI_ANY, "x"));
    BYI_TRY(byi_want_axis(t, byi_attr_int(t->attrs, "axis"), t->in[0]->rank,
                          &axis));
    return byi_rule_tensor(t, BYOC_I64, 1, &t->in[0]->dims[axis]);
}
