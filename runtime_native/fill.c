/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c: kernels that create data from shapes (shape_of, size_of) or from
 * parameters (full, arange, arange_like, eye_like, one_hot). */
#include "move.h"

/* y = dims start .. end - 1 of x */
static enum byoc_status shape_of_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    (void)err;
    const int64_t rank = call->in->rank;
    int64_t start = byi_attr_int(call->attrs, "start");
    start = start < 0 ? byi_max(start + rank, 0) : byi_min(start, rank);
    if (call->out->dims[0] > 0)
        memcpy(call->out->data, call->in->dims + start,
               (size_t)call->out->dims[0] * sizeof *call->in->dims);
    return BYOC_OK;
}

static enum byoc_status size_of_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    (void)err;
    const int64_t n = byi_count(call->in);
    memcpy(call->out->data, &n, sizeof n);
    return BYOC_OK;
}

/* Fill y with one number. */
static void fill_number(struct byi_tensor *y, double value)
{
    const int64_t n = byi_count(y);
    if (n == 0)
        return;
    byi_tensor_set(y, 0, value);
    const size_t size = byi_dtype_bytes(y->dtype);
    byi_fill((char *)y->data + size, y->data, n - 1, size);
}

static enum byoc_status full_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    (void)err;
    fill_number(call->out, byi_attr_float(call->attrs, "value"));
    return BYOC_OK;
}

/* y (rows, cols): 1 where col = row + k, otherwise 0 */
static enum byoc_status eye_like_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    (void)err;
    struct byi_tensor *y = call->out;
    const int64_t rows = y->dims[0], cols = y->dims[1];
    const int64_t k = byi_attr_int(call->attrs, "k");
    fill_number(y, 0);
    if (k >= cols || k <= -rows)
        return BYOC_OK;
    for (int64_t i = byi_max(0, -k); i < rows && i + k < cols; i++)
        byi_tensor_set(y, i * cols + i + k, 1);
    return BYOC_OK;
}

/* y[i] = start + i * delta. Integers are computed as unsigned numbers; the
 * results are in range, since limit has the same type. */
#define RANGE_INT(id, T)                                                       \
    static void range_##id(const struct byi_call *call)                        \
    {                                                                          \
        const uint64_t start = (uint64_t)number_bits(&call->in[0]);            \
        const uint64_t delta = (uint64_t)number_bits(&call->in[2]);            \
        T *y = call->out->data;                                                \
        for (int64_t i = 0; i < call->out->dims[0]; i++)                       \
            y[i] = (T)(start + (uint64_t)i * delta);                           \
    }

/* The value of an integer scalar; a uint64 as the int64 with the same bits. */
static int64_t number_bits(const struct byi_tensor *t)
{
    if (t->dtype != BYOC_U64)
        return byi_tensor_int(t, 0);
    int64_t bits;
    memcpy(&bits, t->data, sizeof bits);
    return bits;
}
BYI_EACH_INT(RANGE_INT)

typedef void (*range_fn)(const struct byi_call *call);

/* Operands start, limit, delta. The limit is not read, since y has the right
 * length. */
static enum byoc_status arange_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    static const range_fn ranges[BYI_DTYPES] = {
#define ENTRY(id, T) [BYOC_##id] = range_##id,
        BYI_EACH_INT(ENTRY)
#undef ENTRY
    };
    (void)err;
    if (ranges[call->out->dtype]) {
        ranges[call->out->dtype](call);
        return BYOC_OK;
    }
    const double start = byi_tensor_float(&call->in[0], 0);
    const double delta = byi_tensor_float(&call->in[2], 0);
    for (int64_t i = 0; i < call->out->dims[0]; i++)
        byi_tensor_set(call->out, i, start + (double)i * delta);
    return BYOC_OK;
}

static enum byoc_status arange_like_run(const struct byi_call *call,
                                        struct byoc_error *err)
{
    int64_t *y = call->out->data;
    (void)err;
    for (int64_t i = 0; i < call->out->dims[0]; i++)
        y[i] = i;
    return BYOC_OK;
}

enum { ONE_HOT_BLOCK = 4096 }; /* elements that are filled at a time */

/* indices (outer, inner), values (off, on): y (outer, depth, inner). Indices
 * -depth .. -1 count from the end; an index out of range sets no element. */
static enum byoc_status one_hot_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    (void)err;
    const struct byi_tensor *idx = call->in, *y = call->out;
    const uint32_t axis = byi_attr_axis(call->attrs, y->rank);
    const int64_t size = (int64_t)byi_dtype_bytes(y->dtype);
    const int64_t depth = y->dims[axis];
    const int64_t outer = byi_span(y, 0, axis);
    const int64_t inner = byi_span(y, axis + 1, y->rank);
    const char *off = call->in[2].data, *on = off + size;
    const int team = byi_team(call, outer * depth * inner);
    const int64_t block = ONE_HOT_BLOCK / byi_max(depth * inner, 1) + 1;
    const int64_t blocks = byi_ceil_div(outer, block);
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t b = 0; b < blocks; b++) {
        const int64_t first = b * block, stop = byi_min(first + block, outer);
        char *dst = (char *)y->data + first * depth * inner * size;
        byi_fill(dst, off, (stop - first) * depth * inner, (size_t)size);
        for (int64_t o = first; o < stop; o++, dst += depth * inner * size)
            for (int64_t i = 0; i < inner; i++) {
                const int64_t index = byi_tensor_int(idx, o * inner + i);
                if (index < -depth || index >= depth)
                    continue;
                const int64_t at = byi_wrap(index, depth) * inner + i;
                byi_copy_element(dst + at * size, on, (size_t)size);
            }
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(fill, {BYI_OP_SHAPE_OF, {shape_of_run, NULL}},
                {BYI_OP_SIZE_OF, {size_of_run, NULL}},
                {BYI_OP_FULL, {full_run, NULL}},
                {BYI_OP_EYE_LIKE, {eye_like_run, NULL}},
                {BYI_OP_ARANGE, {arange_run, NULL}},
                {BYI_OP_ARANGE_LIKE, {arange_like_run, NULL}},
                {BYI_OP_ONE_HOT, {one_hot_run, NULL}})
