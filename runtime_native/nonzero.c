/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero.c: kernels that select elements by a condition (nonzero, compress).
 */
#include "move.h"

#include "core/base/nonzero.h"

enum byoc_status byi_lower_dim(const struct byi_call *call, uint32_t axis,
                               int64_t found, struct byoc_error *err)
{
    if (found > call->out->dims[axis])
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found %lld elements for the result, expected at "
                        "most %lld, the size that its memory was planned for; "
                        "please report this as a bug in byoc",
                        call->op->name, (long long)found,
                        (long long)call->out->dims[axis]);
    call->out->dims[axis] = found;
    return BYOC_OK;
}

/* Divide n positions by `dim`, and set coordinate[] to the remainders. If
 * `small`, all positions fit into int32. */
static void split_axis(int64_t *at, int64_t n, int64_t dim, bool small,
                       int64_t *restrict coordinate)
{
    const double reciprocal = 1 / (double)dim;
    for (int64_t i = 0; i < n && !small; i++) {
        coordinate[i] = at[i] % dim;
        at[i] /= dim;
    }
    /* Multiply by the reciprocal, since vectors have no integer division.
     * Adding 1/2 keeps rounding errors from crossing a whole number. */
    for (int64_t i = 0; i < n && small; i++) {
        const int32_t position = (int32_t)at[i];
        const int32_t quotient =
            (int32_t)(((double)position + 0.5) * reciprocal);
        at[i] = quotient;
        coordinate[i] = position - quotient * (int32_t)dim;
    }
}

/* positions that are split together, in the first-level cache */
enum { SPLIT = 512 };

/* The first n elements of y (rank, n) are positions; replace them by the
 * coordinates of these elements of x. */
static void split_positions(const struct byi_tensor *x, int64_t n, int64_t *y)
{
    const bool small = byi_count(x) <= INT32_MAX;
    for (int64_t c = 0; x->rank > 1 && c < n; c += SPLIT)
        for (uint32_t d = x->rank - 1; d > 0; d--)
            split_axis(y + c, byi_min(SPLIT, n - c), x->dims[d], small,
                       y + d * n + c);
}

/* y (rank, count): column c holds the coordinates of the c-th nonzero */
static enum byoc_status nonzero_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t bound = call->out->dims[1];
    struct byi_nonzero reader = byi_nonzero_begin(x);
    int64_t *y = call->out->data, count = 0;
    for (int64_t i = 0; reader.n > 0; i += 64) {
        uint64_t set = byi_nonzero_next(&reader);
        const int64_t next = count + __builtin_popcountll(set);
        /* a scalar has no coordinates; byi_lower_dim() fails beyond the bound
         */
        if (x->rank > 0 && next <= bound)
            for (int64_t *to = y + count; set; set &= set - 1)
                *to++ = i + __builtin_ctzll(set);
        count = next;
    }
    BYI_TRY(byi_lower_dim(call, 1, count, err));
    split_positions(x, count, y);
    return BYOC_OK;
}

enum { POSITIONS = 1024 }; /* slices that are listed once for all rows */

/* Compute compress for at most POSITIONS slices of `bytes` along the axis. */
static void compress_by_list(const struct byi_tensor *condition,
                             const char *src, int64_t outer, int64_t size,
                             int64_t bytes, char *dst)
{
    int64_t at[POSITIONS], n = 0;
    const char *flags = condition->data;
    for (int64_t i = 0; i < byi_min(condition->dims[0], size); i++)
        if (flags[i])
            at[n++] = i;
    for (int64_t o = 0; o < outer; o++)
        byi_gather_elements(dst + o * n * bytes, src + o * size * bytes, at, n,
                            (size_t)bytes);
}

/* x (outer, size, inner): copies the slices along the axis whose condition is
 * true */
static enum byoc_status compress_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *condition = &call->in[1];
    const bool flat = byi_attr_int(call->attrs, "flat") != 0;
    const uint32_t axis = flat ? 0 : byi_attr_axis(call->attrs, x->rank);
    const int64_t size = flat ? byi_count(x) : x->dims[axis];
    const int64_t outer = flat ? 1 : byi_span(x, 0, axis);
    const int64_t inner = flat ? 1 : byi_span(x, axis + 1, x->rank);
    const size_t element = byi_dtype_bytes(x->dtype);
    const int64_t slice_bytes = inner * (int64_t)element;
    const int64_t n = byi_min(condition->dims[0], size);
    const char *src = x->data;
    char *dst = call->out->data;
    BYI_TRY(byi_lower_dim(call, axis, byi_nonzero_count(condition), err));
    if (slice_bytes == 0 || byi_count(call->out) == 0)
        return BYOC_OK;
    if (outer > 1 && n <= POSITIONS && condition->dims[0] <= size) {
        compress_by_list(condition, src, outer, size, slice_bytes, dst);
        return BYOC_OK;
    }
    for (int64_t o = 0; o < outer; o++, src += size * slice_bytes) {
        struct byi_nonzero reader = byi_nonzero_begin(condition);
        for (int64_t i = 0; i < n; i += 64) {
            uint64_t set = byi_nonzero_next(&reader);
            for (; set && i + __builtin_ctzll(set) < n; set &= set - 1) {
                const char *slice =
                    src + (i + __builtin_ctzll(set)) * slice_bytes;
                byi_copy_elements(dst, slice, inner, element);
                dst += slice_bytes;
            }
        }
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(nonzero, {BYI_OP_NONZERO, {nonzero_run, NULL}},
                {BYI_OP_COMPRESS, {compress_run, NULL}})
