/* SPDX-License-Identifier: Apache-2.0 */
/* quantize.c: qnn.quantize and qnn.dequantize.
 *   x (outer, n, inner), one scale and zero point, or n along the axis
 *   quantize    saturate(round(x / scale) + zero point), half to even
 *   dequantize  (x - zero point) * scale
 * With blocks, scale and zero point have shape (outer, ceil(n / block), inner).
 * If the result is a float of 4 or 8 bits, x / scale is not rounded to an
 * integer. */
#include "kernels/i8.h"

#include "kernel.h"

/* A call; a row is the `inner` elements at one position of the axes before
 * them.
 */
struct quant {
    int64_t n, inner; /* n is 1 for a single scale */
    int64_t block;    /* 0: no blocks */
    bool saturate;
    const struct byi_tensor *x, *scale, *zero;
    struct byi_tensor *y;
};

static struct quant describe(const struct byi_call *call)
{
    const struct byi_tensor *x = &call->in[0], *scale = &call->in[1];
    struct quant q = {
        .n = 1,
        .inner = byi_count(x),
        .x = x,
        .scale = scale,
        .zero = &call->in[2],
        .y = call->out,
        .block = byi_attr_int(call->attrs, "block_size"),
        .saturate = call->op->id == BYI_OP_QUANTIZE &&
                    byi_attr_int(call->attrs, "saturate") != 0,
    };
    if (byi_count(scale) == 1 && !q.block)
        return q;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    q.n = x->dims[axis];
    q.inner = byi_span(x, axis + 1, x->rank);
    return q;
}

/* Convert elements [from, from + n) of row `row` of x. */
typedef void (*row_fn)(const struct quant *q, int64_t row, int64_t from,
                       int64_t n);

/* --- quantize ----------------------------------------------------------- */

/* With vectorised loops, quantize_bytes converts float32 to 8 bits,
 * quantize_fast converts it to 16 bits, and dequantize_fast converts either
 * back to float32. */
static void quantize_bytes(const struct quant *q, int64_t row, int64_t from,
                           int64_t n)
{
    const int64_t at = row * q->inner + from, c = row % q->n;
    const int32_t least = q->y->dtype == BYOC_I8 ? INT8_MIN : 0;
    const int32_t zero = (int32_t)byi_tensor_float(q->zero, c);
    byi_i8_kernels_of(byi_simd_isa())
        ->quantize((const float *)q->x->data + at, n,
                   ((const float *)q->scale->data)[c], (float)(least - zero),
                   (float)(least + UINT8_MAX - zero), zero,
                   (uint8_t *)q->y->data + at);
}

static void quantize_fast(const struct quant *q, int64_t row, int64_t from,
                          int64_t n)
{
    const int64_t at = row * q->inner + from, c = row % q->n;
    const enum byoc_dtype dtype = q->y->dtype;
    byi_simd()->quantize[dtype]((const float *)q->x->data + at,
                                (char *)q->y->data +
                                    at * byoc_dtype_size(dtype),
                                n, ((const float *)q->scale->data)[c],
                                (float)byi_tensor_float(q->zero, c));
}

static void dequantize_fast(const struct quant *q, int64_t row, int64_t from,
                            int64_t n)
{
    const int64_t at = row * q->inner + from, c = row % q->n;
    const enum byoc_dtype dtype = q->x->dtype;
    byi_simd()->dequantize[dtype](
        (const char *)q->x->data + at * byoc_dtype_size(dtype),
        (float *)q->y->data + at, n, ((const float *)q->scale->data)[c],
        (float)byi_tensor_float(q->zero, c));
}

/* The index of the scale of element `inner` of row `row`. */
static int64_t scale_at(const struct quant *q, int64_t row, int64_t inner)
{
    const int64_t c = row % q->n;
    if (!q->block)
        return c;
    const int64_t blocks = byi_ceil_div(q->n, q->block);
    return (row / q->n * blocks + c / q->block) * q->inner + inner;
}

/* Quantize to any type; byi_tensor_set saturates. */
static void quantize_any(const struct quant *q, int64_t row, int64_t from,
                         int64_t n)
{
    const enum byoc_dtype to = q->y->dtype;
    const bool to_float = byi_narrow_is_float(to);
    for (int64_t i = from; i < from + n; i++) {
        const int64_t at = row * q->inner + i, s = scale_at(q, row, i);
        const double quotient =
            byi_tensor_float(q->x, at) / byi_tensor_float(q->scale, s);
        const double zero = byi_tensor_float(q->zero, s);
        if (to_float)
            ((uint8_t *)q->y->data)[at] = byi_f32_to_narrow(
                to, (float)(quotient + zero), q->saturate, BYI_ROUND_NEAREST);
        else
            byi_tensor_set(q->y, at, rint(quotient) + zero);
    }
}

/* --- dequantize --------------------------------------------------------- */

#define DEQUANTIZE(id, type)                                                   \
    static void dequantize_##id(const struct quant *q, int64_t row,            \
                                int64_t from, int64_t n)                       \
    {                                                                          \
        const int64_t at = row * q->inner + from, c = row % q->n;              \
        const type *x = (const type *)q->x->data + at;                         \
        const uint64_t zero = (uint64_t)((const type *)q->zero->data)[c];      \
        if (q->y->dtype == BYOC_F64) {                                         \
            double *restrict y = (double *)q->y->data + at;                    \
            const double scale = ((const double *)q->scale->data)[c];          \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = (double)(int64_t)((uint64_t)x[i] - zero) * scale;       \
            return;                                                            \
        }                                                                      \
        float *restrict y = (float *)q->y->data + at;                          \
        const float scale = ((const float *)q->scale->data)[c];                \
        for (int64_t i = 0; i < n; i++)                                        \
            y[i] = (float)(int64_t)((uint64_t)x[i] - zero) * scale;            \
    }
BYI_EACH_INT(DEQUANTIZE)

/* Dequantize types narrower than 8 bits, 8-bit floats, and blocks of any type.
 */
static void dequantize_any(const struct quant *q, int64_t row, int64_t from,
                           int64_t n)
{
    for (int64_t i = from; i < from + n; i++) {
        const int64_t at = row * q->inner + i, s = scale_at(q, row, i);
        const double x =
            byi_tensor_float(q->x, at) - byi_tensor_float(q->zero, s);
        byi_put_real(q->y, at, x * byi_tensor_float(q->scale, s));
    }
}

/* --- short rows of float32 ------------------------------------------------ */

/* The scale and zero point of each element of some adjacent rows are listed
 * once, and then used for these rows of every slice (n, inner). */
enum {
    SHORT_ROW = 64,    /* rows with fewer elements are short */
    MAX_LISTED = 1024, /* most elements that are listed */
    /* the lists of small slices are repeated, up to so many elements */
    REPEAT_UP_TO = 256
};

static bool has_short_rows(const struct quant *q)
{
    return q->n > 1 && q->inner > 0 && q->inner < SHORT_ROW;
}

/* Rows [row, row + rows) of each slice (n, inner) of x. If these are all rows
 * of a slice, the lists cover `slices` adjacent slices. */
struct listed_rows {
    const struct quant *q;
    int64_t row, rows, slices;
    float scale[MAX_LISTED], zero[MAX_LISTED];
};

static void list_rows(struct listed_rows *l)
{
    const struct quant *q = l->q;
    const enum byoc_dtype dtype = q->zero->dtype;
    const float *scale = (const float *)q->scale->data + l->row;
    const char *zeros =
        (const char *)q->zero->data + l->row * (int64_t)byoc_dtype_size(dtype);
    const int64_t n = l->rows * q->inner;
    float zero[MAX_LISTED], *s = l->scale, *z = l->zero;
    byi_simd()->dequantize[dtype](zeros, zero, l->rows, 1.0f, 0.0f);
    for (int64_t c = 0; c < l->rows; c++)
        for (int64_t i = 0; i < q->inner; i++) {
            *s++ = scale[c];
            *z++ = zero[c];
        }
    for (int64_t i = n; i < l->slices * n; i++, s++, z++) {
        *s = s[-n];
        *z = z[-n];
    }
}

/* Convert the listed rows of slices [from, end). */
static void run_listed(const struct listed_rows *l, bool quantizes,
                       int64_t from, int64_t end)
{
    const struct quant *q = l->q;
    const struct byi_simd *simd = byi_simd();
    const int64_t in = (int64_t)byoc_dtype_size(q->x->dtype);
    const int64_t out = (int64_t)byoc_dtype_size(q->y->dtype);
    for (int64_t b = from; b < end; b += l->slices) {
        const int64_t at = (b * q->n + l->row) * q->inner;
        const int64_t n = byi_min(l->slices, end - b) * l->rows * q->inner;
        const void *x = (const char *)q->x->data + at * in;
        void *y = (char *)q->y->data + at * out;
        if (quantizes)
            simd->quantize_each[q->y->dtype](x, y, n, l->scale, l->zero);
        else
            simd->dequantize_each[q->x->dtype](x, y, n, l->scale, l->zero);
    }
}

static void run_short_rows(const struct byi_call *call, const struct quant *q,
                           bool quantizes)
{
    const int64_t slice = q->n * q->inner, outer = byi_count(q->x) / slice;
    const int64_t rows = byi_min(q->n, MAX_LISTED / q->inner);
    const int64_t slices = byi_max(1, REPEAT_UP_TO / slice);
    const int64_t parts = byi_ceil_div(q->n, rows);
    const int team = byi_team(call, byi_count(q->x));
    const int64_t shares = parts >= team ? 1 : team;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < parts * shares; task++) {
        const int64_t row = task / shares * rows, share = task % shares;
        struct listed_rows l;
        l.q = q;
        l.row = row;
        l.rows = byi_min(rows, q->n - row);
        l.slices = byi_min(slices, outer);
        list_rows(&l);
        run_listed(&l, quantizes, outer * share / shares,
                   outer * (share + 1) / shares);
    }
}

/* --- the kernels --------------------------------------------------------- */

static void run_rows(const struct byi_call *call, const struct quant *q,
                     row_fn run)
{
    enum { CHUNK = 8192 }; /* elements of a task */
    if (byi_count(q->x) == 0)
        return;
    const int64_t rows = byi_count(q->x) / q->inner;
    const int64_t chunks = byi_ceil_div(q->inner, CHUNK);
    const int team = byi_team(call, byi_count(q->x));
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < rows * chunks; task++) {
        const int64_t from = task % chunks * CHUNK;
        run(q, task / chunks, from, byi_min(CHUNK, q->inner - from));
    }
}

static enum byoc_status quantize_run_f32(const struct byi_call *call,
                                         struct byoc_error *err)
{
    const struct quant q = describe(call);
    if (!byi_dtype_is_int(q.y->dtype) && !byi_narrow_bits(q.y->dtype))
        return byi_bad_dtype(call, q.y->dtype,
                             "an integer or a type of at most 8 bits", err);
    const bool fast =
        !q.block && q.x->dtype == BYOC_F32 && q.scale->dtype == BYOC_F32;
    const bool bytes = q.y->dtype == BYOC_U8 || q.y->dtype == BYOC_I8;
    if (fast && has_short_rows(&q) && byi_simd()->quantize_each[q.y->dtype]) {
        run_short_rows(call, &q, true);
        return BYOC_OK;
    }
    run_rows(call, &q,
             fast && bytes                              ? quantize_bytes
             : fast && byi_simd()->quantize[q.y->dtype] ? quantize_fast
                                                        : quantize_any);
    return BYOC_OK;
}

enum byoc_status byi_quantize_plain(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct quant q = describe(call);
    (void)err;
    run_rows(call, &q, quantize_any);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(quantize, quantize_run_f32, NULL)

static enum byoc_status dequantize_run_f32(const struct byi_call *call,
                                           struct byoc_error *err)
{
    static const row_fn typed[BYI_DTYPES] = {
#define ROW(id, type) [BYOC_##id] = dequantize_##id,
        BYI_EACH_INT(ROW)
#undef ROW
    };
    const struct quant q = describe(call);
    const bool uses_any = q.block || byi_narrow_bits(q.x->dtype);
    if (!typed[q.x->dtype] && !uses_any)
        return byi_bad_dtype(call, q.x->dtype,
                             "an integer or a type of at most 8 bits", err);
    BYI_TRY(byi_check_wide(call, q.y->dtype, err));
    const bool fast = !uses_any && q.y->dtype == BYOC_F32 &&
                      q.scale->dtype == BYOC_F32 &&
                      byi_simd()->dequantize[q.x->dtype];
    if (fast && has_short_rows(&q)) {
        run_short_rows(call, &q, false);
        return BYOC_OK;
    }
    run_rows(call, &q,
             fast       ? dequantize_fast
             : uses_any ? dequantize_any
                        : typed[q.x->dtype]);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(dequantize, dequantize_run_f32, NULL)

BYI_KERNEL_ROWS(quantize, {BYI_OP_QUANTIZE, {quantize_run, quantize_scratch}},
                {BYI_OP_DEQUANTIZE, {dequantize_run, dequantize_scratch}})
