/* SPDX-License-Identifier: Apache-2.0 */
/* dft.c: the discrete Fourier transform along one axis: a mixed-radix Stockham
 * FFT, in double, whose stages have radix 4, or a prime factor of the length.
 *   x (..., n, ..., 1 or 2) -> (..., length, ..., 2)
 * Lines of a vector are transformed side by side (dft.inc). Which lines these
 * are does not depend on the number of threads.
 */
#include "kernel.h"

/* Longer lines are transformed one by one: the buffers of several would not be
 * in the cache. */
enum { MAX_SIDE_BY_SIDE = 4096 };

/* A transform of every line of x. */
struct dft {
    const struct byi_tensor *x, *y;
    int64_t length, x_size; /* length of the transform; size of x's axis */
    int64_t bins;           /* size of y's axis */
    int64_t inner;        /* number of lines that begin at adjacent elements */
    int64_t components;   /* numbers per element of x: 2 if it is complex */
    int64_t lines, lanes; /* number of lines; of lines side by side */
    double scale;
    const struct byi_complex *twiddle; /* e^(-+2 pi i k / length) */
};

/* The radix of the next stage: 4 or the smallest prime factor of n. */
static int64_t next_radix(int64_t n)
{
    if (n % 4 == 0)
        return 4;
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* Transform a[], with b[] as the second buffer; returns the buffer that has the
 * result. */
static double *transform(const struct dft *d, double *a, double *b)
{
    struct byi_dft_stage stage = {.length = d->length, .twiddle = d->twiddle};
    for (stage.size = 1; stage.size < d->length; stage.size *= stage.radix) {
        stage.radix = next_radix(d->length / stage.size);
        stage.from = a;
        stage.to = b;
        byi_simd()->dft_stage[d->lanes > 1](&stage);
        b = a;
        a = stage.to;
    }
    return a;
}

/* The index of the first element of a line of a tensor (outer, size, inner). */
static int64_t line_begin(const struct dft *d, int64_t line, int64_t size)
{
    return line / d->inner * size * d->inner + line % d->inner;
}

/* Define load_ID(), which loads a line of x (outer, x_size, inner, components)
 * into lane l of the buffer, cut to the length of the transform or padded with
 * zeros, and store_ID(), which stores lane l to y (outer, bins, inner, 2). */
#define DFT_TYPE(id, type)                                                     \
    static void load_##id(const struct dft *d, int64_t line, int64_t l,        \
                          double *buffer)                                      \
    {                                                                          \
        const int64_t n = byi_min(d->length, d->x_size), lanes = d->lanes;     \
        const bool complex = d->components == 2;                               \
        const type *x = (const type *)d->x->data +                             \
                        line_begin(d, line, d->x_size) * d->components;        \
        for (int64_t k = 0; k < n; k++, x += d->inner * d->components) {       \
            buffer[2 * k * lanes + l] = (double)x[0];                          \
            buffer[(2 * k + 1) * lanes + l] = complex ? (double)x[1] : 0;      \
        }                                                                      \
        for (int64_t k = 2 * n; k < 2 * d->length; k++)                        \
            buffer[k * lanes + l] = 0;                                         \
    }                                                                          \
    static void store_##id(const struct dft *d, int64_t line, int64_t l,       \
                           const double *result)                               \
    {                                                                          \
        type *y = (type *)d->y->data + line_begin(d, line, d->bins) * 2;       \
        const int64_t lanes = d->lanes;                                        \
        for (int64_t k = 0; k < d->bins; k++, y += d->inner * 2) {             \
            y[0] = (type)(result[2 * k * lanes + l] * d->scale);               \
            y[1] = (type)(result[(2 * k + 1) * lanes + l] * d->scale);         \
        }                                                                      \
    }
BYI_EACH_FLOAT(DFT_TYPE)

/* Transform the next d->lanes lines, from `line` on, or those that are left.
 * `buffer` has room for the numbers of twice d->lanes lines. */
static void transform_lines(const struct dft *d, int64_t line, double *buffer)
{
    const bool f64 = d->x->dtype == BYOC_F64;
    const int64_t n = byi_min(d->lanes, d->lines - line);
    double *const second = buffer + 2 * d->length * d->lanes;
    if (n < d->lanes)
        memset(buffer, 0, (size_t)(2 * d->length * d->lanes) * sizeof *buffer);
    for (int64_t l = 0; l < n; l++)
        (f64 ? load_F64 : load_F32)(d, line + l, l, buffer);
    const double *result = transform(d, buffer, second);
    for (int64_t l = 0; l < n; l++)
        (f64 ? store_F64 : store_F32)(d, line + l, l, result);
}

/* An upper bound of the transform's length, which is known only at run time. */
static int64_t max_length(const struct byi_call *call)
{
    const uint32_t axis = byi_attr_axis(call->attrs, call->out->rank);
    const int64_t bins = call->out->dims[axis];
    return byi_attr_int(call->attrs, "onesided") ? 2 * bins : bins;
}

/* Bytes of a thread's two buffers. */
static uint64_t buffer_bytes(const struct byi_call *call)
{
    const int64_t length = max_length(call);
    const int64_t side_by_side =
        byi_min(length, MAX_SIDE_BY_SIDE) * byi_simd()->dft_lanes;
    return byi_align_bytes((uint64_t)byi_max(length, side_by_side) * 2 *
                           sizeof(struct byi_complex));
}

static uint64_t twiddle_bytes(const struct byi_call *call)
{
    return byi_align_bytes((uint64_t)max_length(call) *
                           sizeof(struct byi_complex));
}

static uint64_t dft_scratch_f32(const struct byi_call *call)
{
    return twiddle_bytes(call) + buffer_bytes(call) * call->threads;
}

/* Set twiddle[k] to e^(-+2 pi i k / length). If the length is even, the second
 * half has the negated numbers of the first one. */
static void fill_twiddles(const struct dft *d, bool inverse,
                          struct byi_complex *twiddle)
{
    const double pi = 3.14159265358979323846;
    const int64_t half = d->length % 2 ? d->length : d->length / 2;
    for (int64_t k = 0; k < half; k++) {
        const double angle = 2 * pi * (double)k / (double)d->length;
        twiddle[k].re = cos(angle);
        twiddle[k].im = inverse ? sin(angle) : -sin(angle);
    }
    for (int64_t k = half; k < d->length; k++) {
        twiddle[k].re = -twiddle[k - half].re;
        twiddle[k].im = -twiddle[k - half].im;
    }
}

static enum byoc_status dft_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const bool inverse = byi_attr_int(call->attrs, "inverse") != 0;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    struct byi_complex *twiddle = call->scratch;
    char *const buffers = (char *)call->scratch + twiddle_bytes(call);
    const uint64_t bytes = buffer_bytes(call);
    struct dft d = {
        .x = x,
        .y = y,
        .length =
            call->n_in > 1 ? byi_tensor_int(&call->in[1], 0) : x->dims[axis],
        .x_size = x->dims[axis],
        .bins = y->dims[axis],
        .inner = byi_span(x, axis + 1, x->rank - 1),
        .components = x->dims[x->rank - 1],
        .twiddle = twiddle,
    };
    BYI_TRY(byi_check_wide(call, x->dtype, err));
    d.scale = inverse ? 1 / (double)d.length : 1;
    d.lines = byi_span(x, 0, axis) * d.inner;
    d.lanes =
        d.length <= MAX_SIDE_BY_SIDE && d.lines > 1 ? byi_simd()->dft_lanes : 1;
    fill_twiddles(&d, inverse, twiddle);
    const int64_t blocks = byi_ceil_div(d.lines, d.lanes);
    const int64_t parts = byi_min(blocks, byi_team(call, 32 * byi_count(y)));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) {
        double *buffer = (void *)(buffers + (uint64_t)p * bytes);
        const int64_t end = blocks * (p + 1) / parts;
        for (int64_t b = blocks * p / parts; b < end; b++)
            transform_lines(&d, b * d.lanes, buffer);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(dft, dft_run_f32, dft_scratch_f32)

BYI_KERNEL_ROWS(dft, {BYI_OP_DFT, {dft_run, dft_scratch}})
