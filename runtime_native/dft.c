/* SPDX-License-Identifier: Apache-2.0 */
/* dft.c: the discrete Fourier transform along one axis: a mixed-radix Stockham
 * FFT over the prime factors of the length, in double.
 *   x (..., n, ..., 1 or 2) -> (..., length, ..., 2)
 */
#include "kernel.h"

struct complex_number {
    double re, im;
};

/* A transform of every line of x. */
struct dft {
    const struct byi_tensor *x, *y;
    int64_t length, x_size; /* length of the transform; size of x's axis */
    int64_t bins;           /* size of y's axis */
    int64_t inner;      /* number of lines that begin at adjacent elements */
    int64_t components; /* numbers per element of x: 2 if it is complex */
    double scale;
    const struct complex_number *twiddle; /* e^(-+2 pi i k / length) */
};

/* The smallest prime factor of n. */
static int64_t smallest_factor(int64_t n)
{
    for (int64_t p = 2; p * p <= n; p++)
        if (n % p == 0)
            return p;
    return n;
}

/* One stage combines p transforms of `size` numbers into one of size * p, for
 * each of the groups of size * p numbers.
 * from[j * size + k] is element k of the transform of the inputs j, j + length
 * / size, ...; to[] is the same for size * p. */
static void run_stage(const struct dft *d, int64_t size, int64_t p,
                      const struct complex_number *from,
                      struct complex_number *to)
{
    const int64_t wide = size * p, groups = d->length / wide;
    for (int64_t j = 0; j < groups; j++)
        for (int64_t at = 0; at < wide; at++) {
            const struct complex_number *v = from + j * size + at % size;
            struct complex_number sum = *v;
            int64_t twiddle = at;
            for (int64_t s = 1; s < p; s++) {
                const struct complex_number w = d->twiddle[twiddle * groups];
                v += groups * size;
                sum.re += v->re * w.re - v->im * w.im;
                sum.im += v->re * w.im + v->im * w.re;
                twiddle += at;
                twiddle -= twiddle >= wide ? wide : 0;
            }
            to[j * wide + at] = sum;
        }
}

/* Transform a[], with b[] as the second buffer; returns the buffer that has the
 * result. */
static struct complex_number *transform(const struct dft *d,
                                        struct complex_number *a,
                                        struct complex_number *b)
{
    for (int64_t size = 1; size < d->length;) {
        const int64_t p = smallest_factor(d->length / size);
        struct complex_number *result = b;
        run_stage(d, size, p, a, b);
        b = a;
        a = result;
        size *= p;
    }
    return a;
}

/* Transform line (o, i) of x (outer, x_size, inner, components), cut to the
 * length of the transform or padded with zeros. `buffer` has room for twice as
 * many numbers. */
static void transform_line(const struct dft *d, int64_t line,
                           struct complex_number *buffer)
{
    const int64_t o = line / d->inner, i = line % d->inner;
    for (int64_t k = 0; k < d->length; k++) {
        const int64_t at = ((o * d->x_size + k) * d->inner + i) * d->components;
        const bool inside = k < d->x_size;
        buffer[k].re = inside ? byi_get_real(d->x, at) : 0;
        buffer[k].im =
            inside && d->components == 2 ? byi_get_real(d->x, at + 1) : 0;
    }
    const struct complex_number *result =
        transform(d, buffer, buffer + d->length);
    for (int64_t k = 0; k < d->bins; k++) {
        const int64_t at = ((o * d->bins + k) * d->inner + i) * 2;
        byi_put_real(d->y, at, result[k].re * d->scale);
        byi_put_real(d->y, at + 1, result[k].im * d->scale);
    }
}

/* An upper bound of the transform's length, which is known only at run time. */
static uint64_t max_length(const struct byi_call *call)
{
    const uint32_t axis = byi_attr_axis(call->attrs, call->out->rank);
    const uint64_t bins = (uint64_t)call->out->dims[axis];
    return byi_attr_int(call->attrs, "onesided") ? 2 * bins : bins;
}

static uint64_t dft_scratch_f32(const struct byi_call *call)
{
    const uint64_t bytes = max_length(call) * sizeof(struct complex_number);
    return byi_align_bytes(bytes) + byi_align_bytes(2 * bytes) * call->threads;
}

static void fill_twiddles(const struct dft *d, bool inverse,
                          struct complex_number *twiddle)
{
    const double pi = 3.14159265358979323846;
    for (int64_t k = 0; k < d->length; k++) {
        const double angle = 2 * pi * (double)k / (double)d->length;
        twiddle[k].re = cos(angle);
        twiddle[k].im = inverse ? sin(angle) : -sin(angle);
    }
}

static enum byoc_status dft_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const bool inverse = byi_attr_int(call->attrs, "inverse") != 0;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    const uint64_t bytes = max_length(call) * sizeof(struct complex_number);
    struct complex_number *twiddle = call->scratch;
    char *const buffers = (char *)call->scratch + byi_align_bytes(bytes);
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
    fill_twiddles(&d, inverse, twiddle);
    const int64_t lines = byi_span(x, 0, axis) * d.inner;
    const int64_t parts = byi_min(lines, byi_team(call, 64 * byi_count(y)));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t p = 0; p < parts; p++) {
        struct complex_number *buffer =
            (void *)(buffers + (uint64_t)p * byi_align_bytes(2 * bytes));
        for (int64_t l = lines * p / parts; l < lines * (p + 1) / parts; l++)
            transform_line(&d, l, buffer);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(dft, dft_run_f32, dft_scratch_f32)

BYI_KERNEL_ROWS(dft, {BYI_OP_DFT, {dft_run, dft_scratch}})
