/* SPDX-License-Identifier: Apache-2.0 */
/* rules.c: byi_infer_type, and the helpers of the type rules (rules.h). A rule
 * reads types and known values, and gives the exact result type; dims that
 * depend on unknown values are new symbols. If all values are known a rule is
 * the shape function, so rules never guess.
 */
#include "rules.h"

#include <assert.h>
#include <string.h>

enum byoc_status byi_rule_fail(const struct byi_infer *t, const char *fmt, ...)
{
    char text[512];
    BYI_FORMAT(text, fmt);
    return byi_fail(t->err, BYOC_ETYPE, "%s: %s", t->op->name, text);
}

int64_t byi_rule_new_symbol(const struct byi_infer *t)
{
    const int64_t dim = t->new_symbol ? t->new_symbol(t->symbol_ctx) : -1;
    assert(BYI_IS_SYMBOL(dim));
    return dim;
}

/* Whether the known dims fit the limit. A dim of 0 counts as 1, so that the
 * product of any of the dims cannot overflow either. */
static bool fits_limit(uint32_t rank, const int64_t *dims)
{
    int64_t product = 1;
    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] <= 0)
            continue;
        if (dims[i] > BYI_MAX_ELEMENTS / product)
            return false;
        product *= dims[i];
    }
    return true;
}

enum byoc_status byi_rule_result(struct byi_infer *t,
                                 const struct byi_type *type)
{
    t->out = type;
    return BYOC_OK;
}

enum byoc_status byi_rule_tensor(struct byi_infer *t, enum byoc_dtype dtype,
                                 uint32_t rank, const int64_t *dims)
{
    if (rank > BYI_MAX_RANK)
        return byi_rule_fail(t, "the result has rank %u, expected at most %d",
                             rank, BYI_MAX_RANK);
    if (!fits_limit(rank, dims)) {
        char text[256];
        bool empty = false;
        for (uint32_t i = 0; i < rank; i++)
            empty = empty || dims[i] == 0;
        return byi_rule_fail(t,
                             "the result %s has more than 2^40 elements%s, "
                             "expected at most that many; use smaller shapes",
                             byi_dims_text(text, sizeof text, rank, dims),
                             empty ? ", counting a size of 0 as 1" : "");
    }
    return byi_rule_result(t, byi_type_tensor(t->arena, dtype, rank, dims));
}

enum byoc_status byi_rule_tensors(struct byi_infer *t, uint32_t n,
                                  const struct byi_rule_field *fields)
{
    const struct byi_type *types[BYI_MAX_RANK];
    for (uint32_t i = 0; i < n; i++) {
        BYI_TRY(byi_rule_tensor(t, fields[i].dtype, fields[i].rank,
                                fields[i].dims));
        types[i] = t->out;
    }
    return byi_rule_result(t, byi_type_tuple(t->arena, n, types));
}

enum byoc_status byi_rule_like(struct byi_infer *t, enum byoc_dtype dtype)
{
    const struct byi_type *in = t->in[0];
    if (dtype == in->dtype)
        return byi_rule_result(t, in);
    return byi_rule_tensor(t, dtype, in->rank, in->dims);
}

/* The element types of `mask`, for messages. Returns a text, which may be buf.
 */
static const char *mask_text(char *buf, size_t n, unsigned mask)
{
    size_t used = 0;
    static const struct {
        unsigned mask;
        const char *text;
    } names[] = {
        {BYI_FLOATS, "a floating-point type"},
        {BYI_INTS, "an integer type"},
        {BYI_SIGNED, "a signed numeric type"},
        {BYI_NUMERIC, "a numeric type"},
        {BYI_BOOLEAN, "bool"},
        {BYI_VALUES, "a numeric type or bool"},
        {BYI_INDEX, "int32 or int64"},
        {BYI_BIT(BYOC_I64), "int64"},
        {BYI_BIT(BYOC_I32), "int32"},
        {BYI_BIT(BYOC_F32), "float32"},
        {BYI_BIT(BYOC_STRING), "string"},
        {BYI_INDEX | BYI_BIT(BYOC_STRING), "int32, int64 or string"},
        {BYI_VALUES | BYI_BIT(BYOC_STRING), "a numeric type, bool or string"},
    };
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        if (names[i].mask == mask)
            return names[i].text;
    const char *begin = mask & (mask - 1) ? "one of " : "";
    for (unsigned d = 0; d <= BYI_LAST_DTYPE && used < n; d++)
        if (BYI_BIT(d) & mask)
            used += (size_t)snprintf(buf + used, n - used, "%s%s",
                                     used ? ", " : begin,
                                     byoc_dtype_name((enum byoc_dtype)d));
    return buf;
}

static const char *dtype_text(enum byoc_dtype dtype)
{
    const char *name = byoc_dtype_name(dtype);
    return name ? name : "an unknown type";
}

enum byoc_status byi_want_dtype(const struct byi_infer *t, uint32_t i,
                                unsigned mask, const char *name)
{
    const enum byoc_dtype dtype = t->in[i]->dtype;
    char types[400] = "";
    if ((unsigned)dtype < 32 && (BYI_BIT(dtype) & mask))
        return BYOC_OK;
    return byi_rule_fail(t, "%s has type %s, expected %s", name,
                         dtype_text(dtype),
                         mask_text(types, sizeof types, mask));
}

enum byoc_status byi_want_rank(const struct byi_infer *t, uint32_t i,
                               uint32_t rank, const char *name)
{
    if (t->in[i]->rank == rank)
        return BYOC_OK;
    return byi_rule_fail(t, "%s has rank %u, expected %u", name, t->in[i]->rank,
                         rank);
}

enum byoc_status byi_want_min_rank(const struct byi_infer *t, uint32_t i,
                                   uint32_t rank, const char *name)
{
    if (t->in[i]->rank >= rank)
        return BYOC_OK;
    return byi_rule_fail(t, "%s has rank %u, expected at least %u", name,
                         t->in[i]->rank, rank);
}

enum byoc_status byi_want_same_dtype(const struct byi_infer *t, uint32_t i,
                                     uint32_t j, const char *name)
{
    if (t->in[i]->dtype == t->in[j]->dtype)
        return BYOC_OK;
    return byi_rule_fail(t, "%s has type %s, expected %s", name,
                         dtype_text(t->in[i]->dtype),
                         dtype_text(t->in[j]->dtype));
}

enum byoc_status byi_want_scalar(const struct byi_infer *t, uint32_t i,
                                 const char *name)
{
    const struct byi_type *in = t->in[i];
    if (in->rank == 0 || (in->rank == 1 && byi_dims_agree(in->dims[0], 1)))
        return BYOC_OK;
    char text[256];
    return byi_rule_fail(t, "%s has shape %s, expected a scalar", name,
                         byi_dims_text(text, sizeof text, in->rank, in->dims));
}

enum byoc_status byi_want_ints(const struct byi_infer *t, uint32_t i, int64_t n,
                               const char *name)
{
    BYI_TRY(byi_want_dtype(t, i, BYI_INDEX, name));
    BYI_TRY(byi_want_rank(t, i, 1, name));
    if (n < 0 || byi_dims_agree(t->in[i]->dims[0], n))
        return BYOC_OK;
    return byi_rule_fail(t, "%s has %lld elements, expected %lld", name,
                         (long long)t->in[i]->dims[0], (long long)n);
}

enum byoc_status byi_want_channels(const struct byi_infer *t, uint32_t i,
                                   int64_t n, const char *name)
{
    BYI_TRY(byi_want_same_dtype(t, i, 0, name));
    BYI_TRY(byi_want_rank(t, i, 1, name));
    if (byi_dims_agree(t->in[i]->dims[0], n))
        return BYOC_OK;
    return byi_rule_fail(
        t, "%s has %lld elements, expected %lld, the channels of data", name,
        (long long)t->in[i]->dims[0], (long long)n);
}

enum byoc_status byi_want_list(const struct byi_infer *t, const char *name,
                               uint32_t n, int64_t min, int64_t max,
                               const int64_t **list)
{
    uint32_t found;
    *list = byi_attr_ints(t->attrs, name, &found);
    if (found != n)
        return byi_rule_fail(t, "%s has %u entries, expected %u", name, found,
                             n);
    for (uint32_t i = 0; i < n; i++)
        if ((*list)[i] < min || (*list)[i] > max)
            return byi_rule_fail(t, "%s[%u] is %lld, expected %lld to %lld",
                                 name, i, (long long)(*list)[i], (long long)min,
                                 (long long)max);
    return BYOC_OK;
}

enum byoc_status byi_want_word(const struct byi_infer *t, const char *name,
                               const char *words)
{
    const char *found = byi_attr_string(t->attrs, name);
    const size_t n = strlen(found);
    for (const char *at = words; *at;) {
        const size_t length = strcspn(at, "|");
        if (length == n && memcmp(at, found, n) == 0)
            return BYOC_OK;
        at += length + (at[length] == '|');
    }
    return byi_rule_fail(t, "%s is \"%.40s\", expected one of %s", name, found,
                         words);
}

enum byoc_status byi_want_axis(const struct byi_infer *t, int64_t axis,
                               uint32_t rank, uint32_t *out)
{
    const int64_t r = rank;
    if (axis < -r || axis >= r)
        return byi_rule_fail(
            t, "axis %lld is out of range for rank %u, expected %lld to %lld",
            (long long)axis, rank, (long long)-r, (long long)r - 1);
    *out = (uint32_t)(axis < 0 ? axis + r : axis);
    return BYOC_OK;
}

enum byoc_status byi_want_axes(const struct byi_infer *t, const char *name,
                               uint32_t rank, bool flags[BYI_MAX_RANK],
                               uint32_t *n)
{
    const int64_t *axes = byi_attr_ints(t->attrs, name, n);
    return byi_want_axis_list(t, name, axes, *n, rank, flags);
}

enum byoc_status byi_want_axis_list(const struct byi_infer *t, const char *name,
                                    const int64_t *axes, uint32_t n,
                                    uint32_t rank, bool flags[BYI_MAX_RANK])
{
    memset(flags, 0, BYI_MAX_RANK * sizeof *flags);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t axis = 0;
        BYI_TRY(byi_want_axis(t, axes[i], rank, &axis));
        if (flags[axis])
            return byi_rule_fail(t, "%s names axis %u twice, expected it once",
                                 name, axis);
        flags[axis] = true;
    }
    return BYOC_OK;
}

enum byoc_status byi_want_axis_operand(const struct byi_infer *t,
                                       int64_t axes[BYI_MAX_RANK], uint32_t *n,
                                       bool *known)
{
    BYI_TRY(byi_want_ints(t, 1, -1, "axes"));
    const int64_t count = t->in[1]->dims[0];
    if (BYI_IS_SYMBOL(count))
        return byi_rule_fail(t, "the number of axes is not known, expected a "
                                "vector of known length");
    if (count > BYI_MAX_RANK)
        return byi_rule_fail(t, "found %lld axes, expected at most %d",
                             (long long)count, BYI_MAX_RANK);
    *known = byi_known_ints(t, 1, BYI_MAX_RANK, axes, n);
    *n = (uint32_t)count;
    return BYOC_OK;
}

const struct byi_tensor *byi_known_value(const struct byi_infer *t, uint32_t i)
{
    return t->value && i < t->n_in ? t->value[i] : NULL;
}

bool byi_known_ints(const struct byi_infer *t, uint32_t i, uint32_t max,
                    int64_t *values, uint32_t *n)
{
    const struct byi_tensor *known = byi_known_value(t, i);
    if (!known)
        return false;
    const int64_t elements = byi_elements(known->rank, known->dims);
    if (elements < 0 || elements > max)
        return false;
    *n = (uint32_t)elements;
    for (uint32_t k = 0; k < *n; k++)
        values[k] = byi_tensor_int(known, k);
    return true;
}

bool byi_dims_agree(int64_t a, int64_t b)
{
    return a == b || BYI_IS_SYMBOL(a) || BYI_IS_SYMBOL(b);
}

int64_t byi_dim_unify(int64_t a, int64_t b)
{
    return BYI_IS_SYMBOL(a) && !BYI_IS_SYMBOL(b) ? b : a;
}

int64_t byi_dim_add(const struct byi_infer *t, int64_t a, int64_t b)
{
    if (a == 0)
        return b;
    if (b == 0)
        return a;
    if (BYI_IS_SYMBOL(a) || BYI_IS_SYMBOL(b))
        return byi_rule_new_symbol(t);
    return a > BYI_MAX_ELEMENTS - b ? BYI_MAX_ELEMENTS + 1 : a + b;
}

int64_t byi_dim_mul(const struct byi_infer *t, int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    if (a == 1)
        return b;
    if (b == 1)
        return a;
    if (BYI_IS_SYMBOL(a) || BYI_IS_SYMBOL(b))
        return byi_rule_new_symbol(t);
    return a > BYI_MAX_ELEMENTS / b ? BYI_MAX_ELEMENTS + 1 : a * b;
}

int64_t byi_dim_product(const struct byi_infer *t, uint32_t n,
                        const int64_t *dims)
{
    int64_t number = 1, symbol = 1;
    uint32_t symbols = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (BYI_IS_SYMBOL(dims[i])) {
            symbol = dims[i];
            symbols++;
        } else {
            number = byi_dim_mul(t, number, dims[i]);
        }
    }
    if (number == 0 || symbols == 0)
        return number;
    return symbols == 1 && number == 1 ? symbol : byi_rule_new_symbol(t);
}

/* One dim of a broadcast; false if the two dims are incompatible. */
static bool broadcast_dim(const struct byi_infer *t, int64_t a, int64_t b,
                          int64_t *out)
{
    if (a == b || b == 1) {
        *out = a;
    } else if (a == 1) {
        *out = b;
    } else if (BYI_IS_SYMBOL(a) && BYI_IS_SYMBOL(b)) {
        *out = byi_rule_new_symbol(t);
    } else if (BYI_IS_SYMBOL(a) || BYI_IS_SYMBOL(b)) {
        *out = byi_dim_unify(a, b);
    } else {
        return false;
    }
    return true;
}

enum byoc_status byi_dims_broadcast(const struct byi_infer *t, uint32_t ra,
                                    const int64_t *a, uint32_t rb,
                                    const int64_t *b, uint32_t *rank,
                                    int64_t *dims)
{
    const uint32_t n = ra > rb ? ra : rb;
    int64_t result[BYI_MAX_RANK];
    assert(n <= BYI_MAX_RANK);
    for (uint32_t i = 0; i < n; i++) {
        const int64_t da = i + ra >= n ? a[i + ra - n] : 1;
        const int64_t db = i + rb >= n ? b[i + rb - n] : 1;
        if (!broadcast_dim(t, da, db, &result[i])) {
            char sa[256], sb[256];
            return byi_rule_fail(t,
                                 "shapes %s and %s do not broadcast at axis "
                                 "%u, expected equal dims or 1",
                                 byi_dims_text(sa, sizeof sa, ra, a),
                                 byi_dims_text(sb, sizeof sb, rb, b), i);
        }
    }
    memcpy(dims, result, n * sizeof *dims);
    *rank = n;
    return BYOC_OK;
}

enum byoc_status byi_infer_type(struct byi_infer *t,
                                const struct byi_type **out)
{
    const struct byi_op *op = t->op;
    if (t->n_in < op->min_in || t->n_in > op->max_in)
        return byi_rule_fail(t, "found %u operands, expected %u to %u", t->n_in,
                             op->min_in, op->max_in);
    for (uint32_t i = 0; i < t->n_in; i++) {
        const struct byi_type *in = t->in[i];
        if (in->kind != BYI_TENSOR && op->traits & BYI_TRAIT_LIST)
            continue;
        if (in->kind != BYI_TENSOR)
            return byi_rule_fail(t, "operand %u is %s, expected a tensor", i,
                                 byi_type_kind_text(in->kind));
        if (in->rank > BYI_MAX_RANK)
            return byi_rule_fail(t,
                                 "operand %u has rank %u, expected at most %d",
                                 i, in->rank, BYI_MAX_RANK);
        if (!fits_limit(in->rank, in->dims)) {
            char text[256];
            return byi_rule_fail(
                t,
                "operand %u, %s, has more than 2^40 elements, expected at most "
                "that many; use smaller shapes",
                i, byi_dims_text(text, sizeof text, in->rank, in->dims));
        }
    }
    const bool is_pair = op->kind == BYI_BROADCAST && op->max_in == 2;
    if (op->types != BYI_RULE)
        BYI_TRY(byi_want_dtype(t, 0, op->types, is_pair ? "a" : "x"));
    BYI_TRY(op->rule(t));
    *out = t->out;
    return BYOC_OK;
}

bool byi_reads_only_shapes(const struct byi_op *op)
{
    return op->id == BYI_OP_SHAPE_OF || op->id == BYI_OP_SIZE_OF ||
           op->id == BYI_OP_ARANGE_LIKE;
}

bool byi_follows_from_sizes(const struct byi_op *op, uint32_t n_in,
                            const struct byi_tensor *const *value,
                            const struct byi_type *result)
{
    const bool reads_shapes = byi_reads_only_shapes(op);
    if (n_in == 0 || op->traits & (BYI_TRAIT_RANDOM | BYI_TRAIT_LIST) ||
        result->kind != BYI_TENSOR || result->dtype == BYOC_STRING ||
        byi_elements(result->rank, result->dims) > BYI_MAX_KNOWN)
        return false;
    for (uint32_t i = 0; i < n_in && !reads_shapes; i++)
        if (!value[i])
            return false;
    return true;
}
