/* SPDX-License-Identifier: Apache-2.0 */
/* index.c: kernels that move data by indices: take, gather, gather_nd and the
 * scatters. An index is checked before the element that it selects is copied.
 */
#include "move.h"

/* x (outer, size, inner), indices (any): y (outer, indices, inner) */
static enum byoc_status take_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *idx = &call->in[1];
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    const int64_t n = byi_count(idx), size = x->dims[axis];
    const int64_t outer = byi_span(x, 0, axis);
    const int64_t inner = byi_span(x, axis + 1, x->rank);
    const size_t element = byi_dtype_bytes(x->dtype);
    const int64_t slice_bytes = inner * (int64_t)element;
    BYI_TRY(byi_check_indices(call, idx, size, err));
    const int team = byi_team(call, outer * n * inner);
    const char *src = x->data;
    char *dst = call->out->data;
#pragma omp parallel for collapse(2) num_threads(team) if (team > 1)           \
    schedule(static)
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t at = byi_wrap(byi_index_at(idx, i), size);
            byi_copy_elements(dst + (o * n + i) * slice_bytes,
                              src + (o * size + at) * slice_bytes, inner,
                              element);
        }
    return BYOC_OK;
}

/* The rows of `idx` along its last axis, and another tensor of the same rank (x
 * or y), in which an index replaces the position along `axis`. */
struct elements {
    const struct byi_tensor *idx;
    uint32_t axis;
    int64_t size;                  /* size of `axis` in the other tensor */
    int64_t strides[BYI_MAX_RANK]; /* of the other tensor; 0 along `axis` */
    int64_t axis_stride;
    int64_t n_rows, row_length; /* of idx */
};

static struct elements describe_elements(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in, *idx = &call->in[1];
    struct elements e = {.idx = idx};
    e.axis = byi_attr_axis(call->attrs, x->rank);
    e.size = x->dims[e.axis];
    byi_dense_strides(x->rank, x->dims, e.strides);
    e.axis_stride = e.strides[e.axis];
    e.strides[e.axis] = 0;
    e.row_length = idx->dims[idx->rank - 1];
    e.n_rows = byi_span(idx, 0, idx->rank - 1);
    return e;
}

/* Offset in the other tensor (see struct elements) of row r of idx, without the
 * contribution of `axis`. */
static int64_t row_offset(const struct elements *e, int64_t r)
{
    int64_t at[BYI_MAX_RANK];
    return byi_seek(e->idx->rank - 1, e->idx->dims, e->strides, r, at);
}

/* Compute the offsets in the other tensor of n elements, from element i on, of
 * row `row`, whose offset is `base`. Returns true if an index is out of range.
 */
static bool offsets_of(const struct elements *e, int64_t base, int64_t row,
                       int64_t i, int64_t n, int64_t *to)
{
    const struct byi_index_strides strides = {.size = e->size,
                                              .stride = e->axis_stride,
                                              .step =
                                                  e->strides[e->idx->rank - 1]};
    const bool is_i64 = e->idx->dtype == BYOC_I64;
    const char *at = (const char *)e->idx->data +
                     (row * e->row_length + i) * (is_i64 ? 8 : 4);
    return byi_simd()->offsets[is_i64](at, &strides, base + i * strides.step, n,
                                       to);
}

enum {
    ELEMENTS = 256, /* number of offsets that are computed together */
    SHORT_ROW = 32  /* rows of fewer elements are computed several at a time */
};

/* Compute the offsets of all elements of rows [row, row + n), as offsets_of()
 * does for a part of a row. */
static bool offsets_of_rows(const struct elements *e, int64_t row, int64_t n,
                            int64_t *to)
{
    int64_t at[BYI_MAX_RANK];
    const uint32_t lead = e->idx->rank - 1;
    const int64_t *dims = e->idx->dims, step = e->strides[lead];
    int64_t base = byi_seek(lead, dims, e->strides, row, at);
    bool outside = false;
    for (int64_t r = row; r < row + n; r++) {
        for (int64_t i = 0; i < e->row_length; i++) {
            const int64_t k =
                byi_wrap(byi_index_at(e->idx, r * e->row_length + i), e->size);
            outside = outside || (uint64_t)k >= (uint64_t)e->size;
            *to++ = (int64_t)((uint64_t)base +
                              (uint64_t)k * (uint64_t)e->axis_stride +
                              (uint64_t)(i * step));
        }
        for (uint32_t axis = lead; axis-- > 0; at[axis] = 0) {
            base += e->strides[axis];
            if (++at[axis] < dims[axis])
                break;
            base -= e->strides[axis] * dims[axis];
        }
    }
    return outside;
}

void byi_gather_elements(char *dst, const char *src, const int64_t *at,
                         int64_t n, size_t size)
{
#define ELEMENTS_OF(bytes)                                                     \
    case bytes:                                                                \
        for (int64_t k = 0; k < n; k++)                                        \
            memcpy(dst + k * bytes, src + at[k] * bytes, bytes);               \
        break;
    switch (size) {
        ELEMENTS_OF(1)
        ELEMENTS_OF(2)
        ELEMENTS_OF(4)
        ELEMENTS_OF(8)
    default:
        for (int64_t k = 0; k < n; k++)
            memcpy(dst + k * (int64_t)size, src + at[k] * (int64_t)size, size);
    }
}

/* Gather rows [r, r + rows) of idx: one row, or some that are short. Returns
 * true if an index is out of range. */
static bool gather_rows(const struct byi_call *call, const struct elements *e,
                        int64_t r, int64_t rows)
{
    const size_t size = byi_dtype_bytes(call->in->dtype);
    const char *x = call->in->data;
    char *y = (char *)call->out->data + r * e->row_length * (int64_t)size;
    int64_t at[ELEMENTS];
    if (e->row_length < SHORT_ROW) {
        if (offsets_of_rows(e, r, rows, at))
            return true;
        byi_gather_elements(y, x, at, rows * e->row_length, size);
        return false;
    }
    const int64_t base = row_offset(e, r);
    for (int64_t i = 0; i < e->row_length; i += ELEMENTS) {
        const int64_t n = byi_min(ELEMENTS, e->row_length - i);
        if (offsets_of(e, base, r, i, n, at))
            return true;
        byi_gather_elements(y + i * (int64_t)size, x, at, n, size);
    }
    return false;
}

/* y[.., i, ..] = x[.., indices[.., i, ..], ..] along axis */
static enum byoc_status gather_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    const struct elements e = describe_elements(call);
    bool outside = false;
    if (byi_count(e.idx) == 0)
        return BYOC_OK;
    const int team = byi_team(call, e.n_rows * e.row_length);
    const int64_t group =
        e.row_length < SHORT_ROW ? ELEMENTS / e.row_length : 1;
    /* indices are checked in this loop, since there may be more of them than
     * elements of x, so that a separate pass would be slow */
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)      \
    reduction(||                                                               \
              : outside)
    for (int64_t r = 0; r < e.n_rows; r += group)
        outside =
            outside || gather_rows(call, &e, r, byi_min(group, e.n_rows - r));
    return outside ? byi_check_indices(call, e.idx, e.size, err) : BYOC_OK;
}

/* --- indices into several axes ------------------------------------------- */

/* Tuples of `depth` indices, each of which selects a slice of a tensor whose
 * axes are (batch, tuple axes, slice). */
struct tuples {
    const struct byi_tensor *x, *idx;
    uint32_t batch, depth; /* number of batch axes; indices of a tuple */
    int64_t n, per_batch;  /* number of tuples; tuples of a batch entry */
    int64_t slice, block;  /* elements of a slice; elements of a batch entry */
};

static struct tuples describe_tuples(const struct byi_call *call,
                                     uint32_t batch)
{
    const struct byi_tensor *x = call->in, *idx = &call->in[1];
    struct tuples s = {.x = x, .idx = idx, .batch = batch};
    s.depth = (uint32_t)idx->dims[idx->rank - 1];
    s.n = byi_span(idx, 0, idx->rank - 1);
    s.per_batch = byi_span(idx, batch, idx->rank - 1);
    s.slice = byi_span(x, batch + s.depth, x->rank);
    s.block = byi_span(x, batch, x->rank);
    return s;
}

/* Compute the offsets of the slices that tuples [first, first + n) select.
 * Returns true if an index is out of range. */
static bool tuple_offsets(const struct tuples *s, int64_t first, int64_t n,
                          int64_t *to)
{
    const int64_t *dims = s->x->dims + s->batch;
    int64_t in_batch = first % s->per_batch;
    int64_t base = first / s->per_batch * s->block;
    bool outside = false;
    for (int64_t i = 0; i < n; i++, in_batch++) {
        int64_t at = 0;
        if (in_batch == s->per_batch) {
            in_batch = 0;
            base += s->block;
        }
        for (uint32_t k = 0; k < s->depth; k++) {
            const int64_t index = byi_wrap(
                byi_index_at(s->idx, (first + i) * s->depth + k), dims[k]);
            outside |= (uint64_t)index >= (uint64_t)dims[k];
            at = (int64_t)((uint64_t)at * (uint64_t)dims[k] + (uint64_t)index);
        }
        to[i] = (int64_t)((uint64_t)base + (uint64_t)at * (uint64_t)s->slice);
    }
    return outside;
}

/* Report the first index of tuple i that is out of range. */
static enum byoc_status bad_tuple(const struct byi_call *call,
                                  const struct tuples *s, int64_t i,
                                  struct byoc_error *err)
{
    int64_t index = 0, dim = 0;
    uint32_t k = 0;
    for (; k < s->depth; k++) {
        dim = s->x->dims[s->batch + k];
        index = byi_index_at(s->idx, i * s->depth + k);
        if (index < -dim || index >= dim)
            break;
    }
    return byi_fail(err, BYOC_EINVAL,
                    "%s: index tuple %lld is out of range: found %lld for axis "
                    "%u, expected %lld to %lld",
                    call->op->name, (long long)i, (long long)index,
                    s->batch + k, -(long long)dim, (long long)dim - 1);
}

static enum byoc_status check_tuples(const struct byi_call *call,
                                     const struct tuples *s,
                                     struct byoc_error *err)
{
    int64_t at[ELEMENTS];
    for (int64_t i = 0; i < s->n; i += ELEMENTS) {
        const int64_t n = byi_min(ELEMENTS, s->n - i);
        int64_t bad = 0;
        if (!tuple_offsets(s, i, n, at))
            continue;
        while (!tuple_offsets(s, i + bad, 1, at))
            bad++;
        return bad_tuple(call, s, i + bad, err);
    }
    return BYOC_OK;
}

static enum byoc_status gather_nd_run(const struct byi_call *call,
                                      struct byoc_error *err)
{
    const struct tuples s = describe_tuples(
        call, (uint32_t)byi_attr_int(call->attrs, "batch_dims"));
    const int64_t size = (int64_t)byi_dtype_bytes(s.x->dtype);
    BYI_TRY(check_tuples(call, &s, err));
    const int team = byi_team(call, s.n * s.slice);
    const int64_t share = byi_max(1, byi_ceil_div(s.n, team));
    const int64_t chunk = byi_min(ELEMENTS, share);
    const char *src = s.x->data;
    char *dst = call->out->data;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t i = 0; i < s.n; i += chunk) {
        const int64_t n = byi_min(chunk, s.n - i);
        int64_t at[ELEMENTS];
        tuple_offsets(&s, i, n, at);
        if (s.slice == 1)
            byi_gather_elements(dst + i * size, src, at, n, (size_t)size);
        for (int64_t k = 0; s.slice != 1 && k < n; k++)
            byi_copy_elements(dst + (i + k) * s.slice * size,
                              src + at[k] * size, s.slice, (size_t)size);
    }
    return BYOC_OK;
}

/* --- scatters ----------------------------------------------------------- */

enum reduction { NONE, ADD, MUL, MAX, MIN };

static enum reduction reduction_of(const struct byi_call *call)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    const char *name = byi_attr_string(call->attrs, "reduction");
    uint32_t i = 0;
    while (strcmp(names[i], name) != 0)
        i++; /* the type rule rejects all other names */
    return (enum reduction)i;
}

/* Run EACH(T, expr) with the expression that combines a and b. Sums and
 * products of integers wrap, so they are computed in `wide`, an unsigned type
 * or a float.
 */
#define COMBINE(EACH, T, wide)                                                 \
    switch (r) {                                                               \
    case ADD:                                                                  \
        EACH(T, (T)((wide)a + (wide)b))                                        \
        break;                                                                 \
    case MUL:                                                                  \
        EACH(T, (T)((wide)a * (wide)b))                                        \
        break;                                                                 \
    case MAX:                                                                  \
        EACH(T, a < b ? b : a)                                                 \
        break;                                                                 \
    default:                                                                   \
        EACH(T, b < a ? b : a)                                                 \
        break;                                                                 \
    }

#define EACH_ELEMENT(T, expr)                                                  \
    if (at)                                                                    \
        for (int64_t i = 0; i < n; i++) {                                      \
            const T a = y[at[i]], b = u[i];                                    \
            y[at[i]] = expr;                                                   \
        }                                                                      \
    else                                                                       \
        _Pragma("omp simd") for (int64_t i = 0; i < n; i++)                    \
        {                                                                      \
            const T a = y[i], b = u[i];                                        \
            y[i] = expr;                                                       \
        }

/* Define reduce_ID(), which combines n elements of src with those of dst. `at`
 * has the indices of the elements in dst; if it is NULL, the elements are
 * contiguous. */
#define REDUCE(id, T, wide)                                                    \
    static void reduce_##id(char *dst, const int64_t *at, const char *src,     \
                            int64_t n, enum reduction r)                       \
    {                                                                          \
        T *restrict y = (T *)(void *)dst;                                      \
        const T *restrict u = (const T *)(const void *)src;                    \
        COMBINE(EACH_ELEMENT, T, wide)                                         \
    }
REDUCE(U8, uint8_t, uint64_t)
REDUCE(I8, int8_t, uint64_t)
REDUCE(U16, uint16_t, uint64_t)
REDUCE(I16, int16_t, uint64_t)
REDUCE(U32, uint32_t, uint64_t)
REDUCE(I32, int32_t, uint64_t)
REDUCE(U64, uint64_t, uint64_t)
REDUCE(I64, int64_t, uint64_t)
REDUCE(F32, float, float)
REDUCE(F64, double, double)

#define ASSIGN(T, expr) a = expr;
#define REDUCE_HALF(id, widen, narrow)                                         \
    static void reduce_##id(char *dst, const int64_t *at, const char *src,     \
                            int64_t n, enum reduction r)                       \
    {                                                                          \
        for (int64_t i = 0; i < n; i++) {                                      \
            char *to = dst + (at ? at[i] : i) * 2;                             \
            uint16_t bits[2];                                                  \
            memcpy(&bits[0], to, 2);                                           \
            memcpy(&bits[1], src + i * 2, 2);                                  \
            float a = widen(bits[0]), b = widen(bits[1]);                      \
            COMBINE(ASSIGN, float, float)                                      \
            bits[0] = narrow(a);                                               \
            memcpy(to, &bits[0], 2);                                           \
        }                                                                      \
    }
REDUCE_HALF(F16, byi_f16_to_f32, byi_f32_to_f16)
REDUCE_HALF(BF16, byi_bf16_to_f32, byi_f32_to_bf16)

typedef void (*reduce_fn)(char *, const int64_t *, const char *, int64_t,
                          enum reduction);

static const reduce_fn reducers[BYI_DTYPES] = {
#define ENTRY(id, T) [BYOC_##id] = reduce_##id,
    BYI_EACH_INT(ENTRY) BYI_EACH_FLOAT(ENTRY) ENTRY(F16, ) ENTRY(BF16, )
#undef ENTRY
};

/* Combine n elements of the update, from `from` on, with those of the result
 * from `to` on. */
static void combine(const struct byi_tensor *y, enum reduction r, int64_t to,
                    const struct byi_tensor *u, int64_t from, int64_t n)
{
    const int64_t size = (int64_t)byi_dtype_bytes(y->dtype);
    char *dst = (char *)y->data + to * size;
    const char *src = (const char *)u->data + from * size;
    if (r == NONE)
        byi_copy_elements(dst, src, n, (size_t)size);
    else
        reducers[y->dtype](dst, NULL, src, n, r);
}

/* Combine n elements of the update, from `from` on, with the elements of the
 * result that have the indices at[]. */
static void combine_at(const struct byi_tensor *y, enum reduction r,
                       const int64_t *at, const struct byi_tensor *u,
                       int64_t from, int64_t n)
{
    const int64_t size = (int64_t)byi_dtype_bytes(y->dtype);
    const char *src = (const char *)u->data + from * size;
    if (r != NONE) {
        reducers[y->dtype](y->data, at, src, n, r);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        byi_copy_element((char *)y->data + at[i] * size, src + i * size,
                         (size_t)size);
}

/* Copy x to y, and set *r. The callers then apply the updates in order, so that
 * the last update of an element counts. */
static enum byoc_status begin_scatter(const struct byi_call *call,
                                      enum reduction *r, struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    *r = reduction_of(call);
    if (*r != NONE && !reducers[x->dtype])
        return byi_bad_dtype(call, x->dtype, "a numeric type", err);
    if (call->out->data != x->data) /* computed in place: y is x */
        byi_copy_bytes(call, call->out->data, x->data,
                       (size_t)byi_count(x) * byi_dtype_bytes(x->dtype));
    return BYOC_OK;
}

static enum byoc_status scatter_run(const struct byi_call *call,
                                    struct byoc_error *err)
{
    enum reduction r = NONE;
    const struct elements e = describe_elements(call);
    if (byi_count(e.idx) > 0)
        BYI_TRY(byi_check_indices(call, e.idx, e.size, err));
    BYI_TRY(begin_scatter(call, &r, err));
    if (byi_count(e.idx) == 0)
        return BYOC_OK;
    const int64_t group =
        e.row_length < SHORT_ROW ? ELEMENTS / e.row_length : 1;
    for (int64_t i = 0; i < e.n_rows; i += group) {
        const int64_t base = row_offset(&e, i);
        const int64_t elements = byi_min(group, e.n_rows - i) * e.row_length;
        int64_t at[ELEMENTS];
        for (int64_t k = 0; k < elements; k += ELEMENTS) {
            const int64_t n = byi_min(ELEMENTS, elements - k);
            if (e.row_length < SHORT_ROW)
                offsets_of_rows(&e, i, n / e.row_length, at);
            else
                offsets_of(&e, base, i, k, n, at);
            combine_at(call->out, r, at, &call->in[2], i * e.row_length + k, n);
        }
    }
    return BYOC_OK;
}

/* Apply the updates of tuples [first, first + n) to elements [from, from +
 * part_size) of the slices at[]. */
static void scatter_slices(const struct byi_call *call, const struct tuples *s,
                           enum reduction r, int64_t first, int64_t n,
                           const int64_t *at, int64_t from, int64_t part_size)
{
    if (s->slice == 1) {
        combine_at(call->out, r, at, &call->in[2], first, n);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        combine(call->out, r, at[i] + from, &call->in[2],
                (first + i) * s->slice + from, part_size);
}

static enum byoc_status scatter_nd_run(const struct byi_call *call,
                                       struct byoc_error *err)
{
    enum reduction r = NONE;
    const struct tuples s = describe_tuples(call, 0);
    BYI_TRY(check_tuples(call, &s, err));
    BYI_TRY(begin_scatter(call, &r, err));
    /* Each thread updates its part of every slice, in order. */
    const int team = byi_team(call, s.n * s.slice);
    const int64_t part_size = byi_max(64, byi_ceil_div(s.slice, team));
    const int64_t parts = byi_ceil_div(s.slice, part_size);
#pragma omp parallel for num_threads(team) if (parts > 1)
    for (int64_t part = 0; part < parts; part++) {
        const int64_t from = part * part_size;
        int64_t at[ELEMENTS];
        for (int64_t i = 0; i < s.n; i += ELEMENTS) {
            const int64_t n = byi_min(ELEMENTS, s.n - i);
            tuple_offsets(&s, i, n, at);
            scatter_slices(call, &s, r, i, n, at, from,
                           byi_min(part_size, s.slice - from));
        }
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(index, {BYI_OP_TAKE, {take_run, NULL}},
                {BYI_OP_GATHER, {gather_run, NULL}},
                {BYI_OP_GATHER_ND, {gather_nd_run, NULL}},
                {BYI_OP_SCATTER_ELEMENTS, {scatter_run, NULL}},
                {BYI_OP_SCATTER_ND, {scatter_nd_run, NULL}})
