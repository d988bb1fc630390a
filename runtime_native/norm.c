/* SPDX-License-Identifier: Apache-2.0 */
/* norm.c: normalisations. Mean and variance are computed in double, the
 * variance from differences from the mean. Batch, instance, group and layer
 * normalisation all scale and shift rows:
 *   batch     A row is the spatial axes of image n and channel c; the call has
 *             the statistics of each channel. With channels last, a row is the
 *             channels of one position.
 *   instance  A row is the spatial axes of image n and channel c.
 *   group     A row is C/G channels of image n and their spatial axes.
 *   layer     A row is the axes from `axis` on.
 * Except for batch normalisation, statistics are those of the row. */
#include "kernel.h"

/* Element i of an operand with one element per channel. */
static double channel_param(const struct byi_tensor *t, int64_t i)
{
    return byi_tensor_float(t, i);
}

/* y = x * mul + add for n elements from `at` on. */
static void affine(const struct byi_call *call, int64_t at, int64_t n,
                   double mul, double add)
{
    if (call->in->dtype == BYOC_F32) {
        byi_simd()->affine((const float *)call->in->data + at,
                           (float *)call->out->data + at, n, (float)mul,
                           (float)add);
        return;
    }
    const double *x = (const double *)call->in->data + at;
    double *y = (double *)call->out->data + at;
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * mul + add;
}

/* The mean, and 1 / sqrt(variance + epsilon), of n elements. */
struct row_stats {
    double mean, scale;
};

static struct row_stats stats_of(const struct byi_call *call, int64_t at,
                                 int64_t n, double epsilon)
{
    double sum = 0, squares = 0;
    if (call->in->dtype == BYOC_F32) {
        const float *x = (const float *)call->in->data + at;
        sum = byi_simd()->sum(x, n);
        /* shifted by the mean rounded to float, which is corrected below */
        const float shift = (float)(sum / (double)n);
        const double rounding = sum / (double)n - (double)shift;
        squares = byi_simd()->sum_squares(x, n, shift) -
                  rounding * rounding * (double)n;
    } else {
        const double *x = (const double *)call->in->data + at;
        for (int64_t i = 0; i < n; i++)
            sum += x[i];
        for (int64_t i = 0; i < n; i++)
            squares += (x[i] - sum / (double)n) * (x[i] - sum / (double)n);
    }
    /* a sum below 0 is a rounding error and becomes 0; NaN stays NaN */
    const double variance = squares < 0 ? 0 : squares / (double)n;
    return (struct row_stats){sum / (double)n, 1 / sqrt(variance + epsilon)};
}

/* --- batch -------------------------------------------------------------- */

/* With channels last, or channels of few elements, the factors and summands of
 * channels are repeated for adjacent elements, and the elements of several
 * channels are computed in one loop:
 *   x    c0 c0 c0 c1 c1 c1 c2 c2 c2 c0 c0 c0 ..
 *   mul  m0 m0 m0 m1 m1 m1 m2 m2 m2 m0 m0 m0 ..
 * Float16 and bfloat16 are widened in blocks. */
enum {
    FEW = 64,       /* channels of fewer elements than this are repeated */
    PERIOD = 1024,  /* the least number of repeated factors */
    PIECE = 1 << 14 /* elements that a thread computes at a time */
};

struct batch_norm {
    const struct byi_call *call;
    struct byi_tensor params[4]; /* gamma, beta, mean, variance; 16-bit ones as
                                  * float32 */
    double epsilon;
    int64_t channels;
    int64_t space;  /* adjacent elements of one channel */
    int64_t count;  /* elements of x */
    int64_t period; /* number of repeated factors; 0: none are repeated */
    /* the repeated factors and summands: double if x is float64, otherwise
     * float */
    const void *mul, *add;
};

static struct batch_norm read_batch(const struct byi_call *call)
{
    const struct byi_tensor *in = call->in;
    const uint32_t axis = byi_attr_axis(call->attrs, in->rank);
    struct batch_norm b = {
        .call = call,
        .epsilon = byi_attr_float(call->attrs, "epsilon"),
        .channels = in->dims[axis],
        .space = byi_span(in, axis + 1, in->rank),
        .count = byi_count(in),
    };
    const int64_t image = b.channels * b.space;
    if (b.space < FEW && b.count > 0)
        b.period = byi_min(b.count, byi_ceil_div(PERIOD, image) * image);
    return b;
}

/* Bytes of the parameters' float32 copies. */
static uint64_t param_bytes(const struct batch_norm *b)
{
    return byi_align_bytes(4 * sizeof(float) * (uint64_t)b->channels);
}

/* Set b->params; copies are at `to`. */
static void read_params(struct batch_norm *b, float *to)
{
    for (int i = 0; i < 4; i++, to += b->channels) {
        struct byi_tensor *t = &b->params[i];
        *t = b->call->in[i + 1];
        if (!byi_dtype_is_half(t->dtype))
            continue;
        byi_widen(t->dtype, t->data, to, b->channels);
        t->dtype = BYOC_F32;
        t->data = to;
    }
}

/* The factor and the summand of channel c. */
static void find_factors(const struct batch_norm *b, int64_t c, double *mul,
                         double *add)
{
    const struct byi_tensor *p = b->params;
    *mul = channel_param(&p[0], c) / sqrt(channel_param(&p[3], c) + b->epsilon);
    *add = channel_param(&p[1], c) - channel_param(&p[2], c) * *mul;
}

/* Define repeat_ID(): store the repeated factors at `to`, the summands behind.
 */
#define REPEAT(id, type)                                                       \
    static void repeat_##id(struct batch_norm *b, void *to)                    \
    {                                                                          \
        const int64_t image = b->channels * b->space;                          \
        type *mul = to, *add = mul + b->period;                                \
        for (int64_t c = 0, i = 0; c < b->channels; c++) {                     \
            double factor, summand;                                            \
            find_factors(b, c, &factor, &summand);                             \
            for (const int64_t end = i + b->space; i < end; i++) {             \
                mul[i] = (type)factor;                                         \
                add[i] = (type)summand;                                        \
            }                                                                  \
        }                                                                      \
        for (int64_t i = image; i < b->period; i++) {                          \
            mul[i] = mul[i - image];                                           \
            add[i] = add[i - image];                                           \
        }                                                                      \
        b->mul = mul;                                                          \
        b->add = add;                                                          \
    }
BYI_EACH_FLOAT(REPEAT)

/* y = x * mul + add for n floats from element `at` on. */
static void affine_floats(const struct batch_norm *b, int64_t at,
                          const float *x, float *y, int64_t n)
{
    const int64_t row = b->period ? b->period : b->space;
    for (int64_t i = 0, take; i < n; i += take) {
        const int64_t from = (at + i) % row;
        take = byi_min(n - i, row - from);
        if (b->period) {
            byi_simd()->normalize(x + i, y + i, take, 0, 1,
                                  (const float *)b->mul + from,
                                  (const float *)b->add + from);
            continue;
        }
        double mul, add;
        find_factors(b, (at + i) / b->space % b->channels, &mul, &add);
        byi_simd()->affine(x + i, y + i, take, (float)mul, (float)add);
    }
}

static void affine_doubles(const struct batch_norm *b, int64_t at, int64_t n)
{
    const double *x = b->call->in->data;
    double *y = b->call->out->data, mul, add;
    if (b->period == 0) {
        find_factors(b, at / b->space % b->channels, &mul, &add);
        for (int64_t i = at; i < at + n; i++)
            y[i] = x[i] * mul + add;
        return;
    }
    for (int64_t i = at; i < at + n; i++)
        y[i] = x[i] * ((const double *)b->mul)[i % b->period] +
               ((const double *)b->add)[i % b->period];
}

/* Normalise n elements from `at` on. If x is float64 and no factors are
 * repeated, they must be of one channel. */
static void batch_piece(const struct batch_norm *b, int64_t at, int64_t n)
{
    enum { BLOCK = 1024 };
    const enum byoc_dtype dtype = b->call->in->dtype;
    const uint16_t *x = b->call->in->data;
    uint16_t *y = b->call->out->data;
    if (dtype == BYOC_F64) {
        affine_doubles(b, at, n);
        return;
    }
    if (dtype == BYOC_F32) {
        affine_floats(b, at, (const float *)b->call->in->data + at,
                      (float *)b->call->out->data + at, n);
        return;
    }
    float in[BLOCK], out[BLOCK];
    for (const int64_t end = at + n; at < end; at += BLOCK) {
        n = byi_min(BLOCK, end - at);
        byi_widen(dtype, x + at, in, n);
        affine_floats(b, at, in, out, n);
        byi_narrow(dtype, out, y + at, n);
    }
}

static uint64_t batch_scratch(const struct byi_call *call)
{
    const size_t size =
        call->in->dtype == BYOC_F64 ? sizeof(double) : sizeof(float);
    const struct batch_norm b = read_batch(call);
    return param_bytes(&b) + 2 * size * (uint64_t)b.period;
}

static enum byoc_status batch_run(const struct byi_call *call,
                                  struct byoc_error *err)
{
    struct batch_norm b = read_batch(call);
    const enum byoc_dtype dtype = call->in->dtype;
    if (!byi_dtype_is_float(dtype))
        return byi_check_wide(call, dtype, err);
    char *factors = (char *)call->scratch + param_bytes(&b);
    read_params(&b, call->scratch);
    if (b.period && dtype == BYOC_F64)
        repeat_F64(&b, factors);
    else if (b.period)
        repeat_F32(&b, factors);
    const int64_t step = b.period || dtype != BYOC_F64 ? PIECE : b.space;
    const int team = byi_team(call, b.count);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t at = 0; at < b.count; at += step)
        batch_piece(&b, at, byi_min(step, b.count - at));
    return BYOC_OK;
}

/* --- many slices at a time ------------------------------------------------ */

/* n adjacent slices, the first of which is number `first` of the call; each has
 * the elements of the box. */
struct norm_columns {
    const struct byi_call *call;
    const struct byi_box *reduced;
    const char *x;
    char *y;
    int64_t n, first;
};

typedef void (*columns_fn)(const struct norm_columns *c);

/* The offset of row i of the slices' elements, in bytes. */
static int64_t row_offset(const struct norm_columns *c, int64_t i)
{
    return byi_box_offset(c->reduced, i * byi_box_rows(c->reduced).n) *
           (int64_t)byoc_dtype_size(c->call->in->dtype);
}

/* Add the terms of all elements of the columns to sum[]: the elements, or for
 * other values of `kind` their magnitudes or squares. */
static void add_columns(const struct norm_columns *c, enum byi_sum kind,
                        double *sum)
{
    const struct byi_box_rows rows = byi_box_rows(c->reduced);
    const enum byoc_dtype dtype = c->call->in->dtype;
    for (int64_t i = 0; i < rows.rows; i++)
        byi_simd()->accumulate_wide[kind][dtype](
            c->x + row_offset(c, i), rows.n, rows.stride, sum, c->n);
}

/* Set mean[], and squares[] to the sums of squared differences from it. For
 * float32. */
static void column_stats(const struct norm_columns *c, double *restrict mean,
                         double *restrict squares)
{
    const struct byi_box_rows rows = byi_box_rows(c->reduced);
    const double count = (double)c->reduced->count;
    memset(mean, 0, (size_t)c->n * sizeof *mean);
    memset(squares, 0, (size_t)c->n * sizeof *squares);
    add_columns(c, BYI_ADD, mean);
    for (int64_t i = 0; i < c->n; i++)
        mean[i] /= count;
    for (int64_t i = 0; i < rows.rows; i++)
        byi_simd()->accumulate_squares(
            (const float *)(const void *)(c->x + row_offset(c, i)), rows.n,
            rows.stride, mean, squares, c->n);
}

/* y = x * mul + add */
static void affine_columns(const struct norm_columns *c, const double *mul,
                           const double *add)
{
    const struct byi_box_rows rows = byi_box_rows(c->reduced);
    const enum byoc_dtype dtype = c->call->in->dtype;
    for (int64_t i = 0; i < rows.rows; i++) {
        const int64_t at = row_offset(c, i);
        byi_simd()->affine_rows[dtype](c->x + at, rows.n, rows.stride, mul, add,
                                       c->y + at, c->n);
    }
}

static void mvn_columns(const struct norm_columns *c)
{
    double mul[BYI_COLUMNS], add[BYI_COLUMNS];
    column_stats(c, add, mul);
    for (int64_t i = 0; i < c->n; i++) {
        /* 1e-9: as in mvn_ID() below */
        mul[i] = 1 / (sqrt(mul[i] / (double)c->reduced->count) + 1e-9);
        add[i] *= -mul[i];
    }
    affine_columns(c, mul, add);
}

static void instance_columns(const struct norm_columns *c)
{
    const struct byi_tensor *in = c->call->in;
    const double epsilon = byi_attr_float(c->call->attrs, "epsilon");
    const double count = (double)c->reduced->count;
    const float *gamma = in[1].data, *beta = in[2].data;
    double mul[BYI_COLUMNS], add[BYI_COLUMNS];
    int64_t channel = c->first % in->dims[1];
    column_stats(c, add, mul);
    for (int64_t i = 0; i < c->n; i++)
        mul[i] = 1 / sqrt(mul[i] / count + epsilon);
    for (int64_t i = 0; i < c->n; i++, channel++) {
        channel = channel < in->dims[1] ? channel : 0;
        mul[i] *= (double)gamma[channel];
        add[i] = (double)beta[channel] - add[i] * mul[i];
    }
    affine_columns(c, mul, add);
}

static void unit_columns(const struct norm_columns *c)
{
    const bool absolute = byi_attr_int(c->call->attrs, "p") == 1;
    double norm[BYI_COLUMNS] = {0}, zeros[BYI_COLUMNS] = {0};
    const double no_params[2] = {0};
    add_columns(c, absolute ? BYI_ADD_ABS : BYI_ADD_SQUARE, norm);
    if (!absolute)
        byi_simd()->unary_f64[BYI_OP_SQRT](norm, norm, c->n, no_params);
    for (int64_t i = 0; i < c->n; i++) /* slices of zeros stay zeros */
        norm[i] = norm[i] == 0 ? 1 : norm[i];
    byi_simd()->unary_f64[BYI_OP_RECIPROCAL](norm, norm, c->n, no_params);
    affine_columns(c, norm, zeros);
}

/* Normalise short rows of x (rows, n), transposed, `lanes` at a time. */
static void run_lanes(const struct byi_call *call, int64_t rows, int64_t n,
                      int64_t lanes, columns_fn run, int team)
{
    const size_t size = byoc_dtype_size(call->in->dtype);
    const int64_t bytes = n * (int64_t)size;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t row = 0; row < rows; row += lanes) {
        const int64_t count = byi_min(lanes, rows - row);
        const struct byi_box box = {1, {n}, {count}, n};
        _Alignas(64) char block[BYI_BLOCK_BYTES];
        byi_transpose(size, (const char *)call->in->data + row * bytes, n,
                      count, n, block, count);
        run(&(struct norm_columns){call, &box, block, block, count, row});
        byi_transpose(size, block, count, n, count,
                      (char *)call->out->data + row * bytes, n);
    }
}

/* Normalise slices whose elements are rows of columns. */
static void run_columns(const struct byi_call *call,
                        const struct byi_axes *axes, columns_fn run, int team)
{
    const struct byi_box *kept = &axes->kept;
    const int64_t inner = kept->dims[kept->rank - 1];
    const int64_t size = (int64_t)byoc_dtype_size(call->in->dtype);
    const int64_t part_columns =
        byi_min(BYI_COLUMNS, byi_max(64, byi_ceil_div(inner, team)));
    const int64_t parts = byi_ceil_div(inner, part_columns);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < kept->count / inner * parts; task++) {
        const int64_t from = task % parts * part_columns;
        const int64_t first = task / parts * inner + from;
        const int64_t at = byi_box_offset(kept, first) * size;
        run(&(struct norm_columns){call, &axes->reduced,
                                   (const char *)call->in->data + at,
                                   (char *)call->out->data + at,
                                   byi_min(part_columns, inner - from), first});
    }
}

/* --- instance and group ------------------------------------------------- */

static enum byoc_status group_run_f32(const struct byi_call *call,
                                      struct byoc_error *err)
{
    const struct byi_tensor *in = call->in;
    const double epsilon = byi_attr_float(call->attrs, "epsilon");
    const int64_t space = byi_span(in, 2, in->rank);
    const int64_t groups = call->op->id == BYI_OP_NN_GROUP_NORM
                               ? byi_attr_int(call->attrs, "num_groups")
                               : in->dims[1];
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    if (byi_count(in) == 0)
        return BYOC_OK;
    const int64_t channels = in->dims[1] / groups;
    const int team = byi_team(call, byi_count(in) * 2);
    const int64_t lanes = space == 1 ? BYI_COLUMNS
                                     : byi_lanes(in->dims[0] * groups, space, 1,
                                                 sizeof(float), BYI_NARROW);
    if (in->dtype == BYOC_F32 && channels == 1 && lanes > 1) {
        run_lanes(call, in->dims[0] * groups, space, lanes, instance_columns,
                  team);
        return BYOC_OK;
    }
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t row = 0; row < in->dims[0] * groups; row++) {
        const int64_t at = row * channels * space;
        const struct row_stats s =
            stats_of(call, at, channels * space, epsilon);
        if (in->dtype == BYOC_F32 && space == 1) { /* a row of channels */
            const int64_t c = row % groups * channels;
            byi_simd()->normalize(
                (const float *)in->data + at, (float *)call->out->data + at,
                channels, (float)s.mean, (float)s.scale,
                (const float *)in[1].data + c, (const float *)in[2].data + c);
            continue;
        }
        for (int64_t i = 0; i < channels; i++) {
            const int64_t c = row % groups * channels + i;
            const double mul = s.scale * channel_param(&in[1], c);
            affine(call, at + i * space, space, mul,
                   channel_param(&in[2], c) - s.mean * mul);
        }
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(group, group_run_f32, NULL)

/* --- layer -------------------------------------------------------------- */

/* Normalise a row of n elements from `at` on. */
static void layer_row(const struct byi_call *call, int64_t at, int64_t n,
                      struct row_stats s)
{
    const void *beta = call->n_in > 2 ? call->in[2].data : NULL;
    if (call->in->dtype == BYOC_F32) {
        byi_simd()->normalize((const float *)call->in->data + at,
                              (float *)call->out->data + at, n, (float)s.mean,
                              (float)s.scale, call->in[1].data, beta);
        return;
    }
    const double *x = (const double *)call->in->data + at;
    const double *gamma = call->in[1].data, *add = beta;
    double *y = (double *)call->out->data + at;
    for (int64_t i = 0; i < n; i++)
        y[i] = (x[i] - s.mean) * s.scale * gamma[i] + (add ? add[i] : 0);
}

static enum byoc_status layer_run_f32(const struct byi_call *call,
                                      struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const double epsilon = byi_attr_float(call->attrs, "epsilon");
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    const int64_t rows = byi_span(x, 0, axis);
    const int64_t n = byi_span(x, axis, x->rank);
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    if (n == 0)
        return BYOC_OK;
    const int team = byi_team(call, rows * n * 2);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t row = 0; row < rows; row++) {
        const struct row_stats s = stats_of(call, row * n, n, epsilon);
        layer_row(call, row * n, n, s);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(layer, layer_run_f32, NULL)

/* --- local response normalisation: over neighbouring channels ------------- */

/* A call. The neighbours of a channel are `before` channels before it, and
 * `after` channels after it; a plane has `space` elements. */
struct lrn {
    int64_t channels, space, before, after;
    double alpha, beta, bias; /* alpha is already divided by the size */
    const struct byi_call *call;
};

/* Normalise plane `at`, whose neighbours are planes [from, to) of x. */
#define LRN_PLANE(id, type)                                                    \
    static void lrn_##id(const struct lrn *l, int64_t at, int64_t from,        \
                         int64_t to)                                           \
    {                                                                          \
        const type *x = l->call->in->data;                                     \
        type *y = (type *)l->call->out->data + at * l->space;                  \
        for (int64_t i = 0; i < l->space; i++) {                               \
            double sum = 0;                                                    \
            for (int64_t c = from; c < to; c++) {                              \
                const double v = (double)x[c * l->space + i];                  \
                sum += v * v;                                                  \
            }                                                                  \
            const double base = l->bias + l->alpha * sum;                      \
            const double power = l->beta == 0.75                               \
                                     ? sqrt(base) * sqrt(sqrt(base))           \
                                     : pow(base, l->beta);                     \
            y[i] = (type)((double)x[at * l->space + i] / power);               \
        }                                                                      \
    }
BYI_EACH_FLOAT(LRN_PLANE)

static void lrn_plane(const struct lrn *l, int64_t at, int64_t from, int64_t to)
{
    const struct byi_tensor *x = l->call->in;
    if (x->dtype == BYOC_F64) {
        lrn_F64(l, at, from, to);
    } else if (l->beta != 0.75) {
        lrn_F32(l, at, from, to);
    } else {
        const float *planes = x->data;
        byi_simd()->lrn(planes + from * l->space, l->space, to - from,
                        planes + at * l->space,
                        (float *)l->call->out->data + at * l->space, l->space,
                        (float)l->alpha, (float)l->bias);
    }
}

static enum byoc_status lrn_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t size = byi_attr_int(call->attrs, "size");
    const struct lrn l = {
        .channels = x->dims[1],
        .space = byi_span(x, 2, x->rank),
        .before = (size - 1) / 2,
        .after = size / 2,
        .alpha = byi_attr_float(call->attrs, "alpha") / (double)size,
        .beta = byi_attr_float(call->attrs, "beta"),
        .bias = byi_attr_float(call->attrs, "bias"),
        .call = call,
    };
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    const int64_t planes = x->dims[0] * l.channels;
    const int team = byi_team(call, byi_count(x) * 16);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t plane = 0; plane < planes; plane++) {
        const int64_t c = plane % l.channels, first = plane - c;
        const int64_t from = first + byi_max(0, c - byi_min(c, l.before));
        const int64_t following = l.channels - 1 - c;
        const int64_t to = plane + byi_min(following, l.after) + 1;
        lrn_plane(&l, plane, from, to);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(lrn, lrn_run_f32, NULL)

/* --- p-norm along an axis, mean and variance over axes -------------------- */

/* Normalise the slice at x + base, whose elements are in the box `reduced`:
 * unit_ID() divides it by its p-norm, mvn_ID() subtracts the mean and divides
 * by the standard deviation. If the norm is 0, all elements are 0 and stay 0.
 */
#define SLICES(id, type)                                                       \
    static void unit_##id(const struct byi_call *call,                         \
                          const struct byi_box *reduced, int64_t base,         \
                          int64_t p)                                           \
    {                                                                          \
        const type *x = (const type *)call->in->data + base;                   \
        type *y = (type *)call->out->data + base;                              \
        double sum = 0;                                                        \
        BYI_FOR_BOX(reduced, at, {                                             \
            const double v = (double)x[at];                                    \
            sum += p == 1 ? fabs(v) : v * v;                                   \
        });                                                                    \
        const double norm = p == 1 ? sum : sqrt(sum);                          \
        BYI_FOR_BOX(reduced, at, {                                             \
            y[at] = (type)(norm == 0 ? 0 : (double)x[at] / norm);              \
        });                                                                    \
    }                                                                          \
    static void mvn_##id(const struct byi_call *call,                          \
                         const struct byi_box *reduced, int64_t base,          \
                         int64_t unused)                                       \
    {                                                                          \
        const type *x = (const type *)call->in->data + base;                   \
        type *y = (type *)call->out->data + base;                              \
        double sum = 0, squares = 0;                                           \
        (void)unused;                                                          \
        BYI_FOR_BOX(reduced, at, { sum += (double)x[at]; });                   \
        const double mean = sum / (double)reduced->count;                      \
        BYI_FOR_BOX(reduced, at, {                                             \
            const double v = (double)x[at] - mean;                             \
            squares += v * v;                                                  \
        });                                                                    \
        /* the ONNX function adds 1e-9 to the standard deviation */            \
        const double scale =                                                   \
            1 / (sqrt(squares / (double)reduced->count) + 1e-9);               \
        BYI_FOR_BOX(reduced, at,                                               \
                    { y[at] = (type)(((double)x[at] - mean) * scale); });      \
    }
BYI_EACH_FLOAT(SLICES)

/* Normalise a slice that is a contiguous row of float32. A norm that is not a
 * normal float is computed again by unit_F32, in double. */
static void unit_row(const struct byi_call *call, const struct byi_box *reduced,
                     int64_t base, int64_t p)
{
    const struct byi_simd *simd = byi_simd();
    const float *x = (const float *)call->in->data + base;
    float *y = (float *)call->out->data + base;
    const int64_t n = reduced->count;
    const double norm =
        p == 1 ? simd->sum_abs(x, n) : sqrt(simd->sum_squares(x, n, 0.0f));
    const float divisor = (float)norm;
    if (isnormal(divisor) || norm == 0)
        for (int64_t i = 0; i < n; i++)
            y[i] = norm == 0 ? 0 : x[i] / divisor;
    else
        unit_F32(call, reduced, base, p);
}

/* Normalise `rows` <= BYI_COLUMNS adjacent rows, from x + base on. The norms of
 * all are computed first. A row whose sum may have lost bits, or whose norm has
 * no normal reciprocal, is computed again by unit_ID. */
#define UNIT_ADJACENT(id, type, root, least, most)                             \
    static void unit_adjacent_##id(const struct byi_call *call,                \
                                   const struct byi_box *reduced,              \
                                   int64_t base, int64_t rows, int64_t p)      \
    {                                                                          \
        const type *x = (const type *)call->in->data + base;                   \
        type *y = (type *)call->out->data + base, sums[BYI_COLUMNS];           \
        const enum byi_sum kind = p == 1 ? BYI_ADD_ABS : BYI_ADD_SQUARE;       \
        const int64_t n = reduced->count;                                      \
        byi_simd()->fold_each_row[kind][BYOC_##id](x, rows, n, sums);          \
        for (int64_t r = 0; r < rows; r++, x += n, y += n) {                   \
            const type factor = 1 / (p == 1 ? sums[r] : root(sums[r]));        \
            if (!(sums[r] >= least && sums[r] <= most))                        \
                unit_##id(call, reduced, base + r * n, p);                     \
            else                                                               \
                for (int64_t i = 0; i < n; i++)                                \
                    y[i] = x[i] * factor;                                      \
        }                                                                      \
    }
UNIT_ADJACENT(F32, float, sqrtf, 1e-30f, 1e30f)
UNIT_ADJACENT(F64, double, sqrt, 1e-250, 1e250)

/* Normalise a slice of float32 that consists of contiguous rows. */
static void mvn_rows(const struct byi_call *call, const struct byi_box *reduced,
                     int64_t base, int64_t unused)
{
    const struct byi_simd *simd = byi_simd();
    const float *x = (const float *)call->in->data + base;
    float *y = (float *)call->out->data + base;
    const struct byi_box_rows rows = byi_box_rows(reduced);
    double sum = 0, squares = 0;
    (void)unused;
    for (int64_t i = 0; i < rows.rows; i++)
        sum += simd->sum(x + byi_box_offset(reduced, i * rows.n), rows.n);
    const double count = (double)reduced->count, mean = sum / count;
    const double rounding = mean - (double)(float)mean;
    for (int64_t i = 0; i < rows.rows; i++)
        squares += simd->sum_squares(x + byi_box_offset(reduced, i * rows.n),
                                     rows.n, (float)mean);
    squares = squares - rounding * rounding * count;
    const double scale = 1 / (sqrt(squares < 0 ? 0 : squares / count) + 1e-9);
    for (int64_t i = 0; i < rows.rows; i++) {
        const int64_t at = byi_box_offset(reduced, i * rows.n);
        simd->standardize(x + at, rows.n, mean, scale, y + at);
    }
}

typedef void (*slice_fn)(const struct byi_call *call,
                         const struct byi_box *reduced, int64_t base,
                         int64_t p);

typedef void (*adjacent_fn)(const struct byi_call *call,
                            const struct byi_box *reduced, int64_t base,
                            int64_t rows, int64_t p);

/* The loops that normalise a slice of contiguous rows, any slice, columns, and
 * adjacent rows, of float32 and [1] float64. */
struct slice_loops {
    slice_fn rows[2], any[2];
    columns_fn columns[2];   /* NULL: there is none */
    adjacent_fn adjacent[2]; /* NULL: there is none */
};

/* Whether the slices are adjacent rows, short ones if they are float32: the
 * loops of long rows add up in double. */
static bool are_adjacent_rows(const struct byi_axes *axes, bool is_f64)
{
    const struct byi_box *kept = &axes->kept, *reduced = &axes->reduced;
    return kept->rank == 1 && reduced->rank == 1 && reduced->strides[0] == 1 &&
           kept->strides[0] == reduced->count &&
           (is_f64 || reduced->count <= BYI_NARROW);
}

static void run_slices(const struct byi_call *call, const bool *reduced,
                       const struct slice_loops *loops, int64_t p)
{
    struct byi_axes axes;
    byi_axes_split(call->in, reduced, &axes);
    const struct byi_box *kept = &axes.kept;
    const struct byi_box_rows rows = byi_box_rows(&axes.reduced);
    const bool is_f64 = call->in->dtype == BYOC_F64;
    const columns_fn columns = loops->columns[is_f64];
    if (axes.reduced.count == 0 || kept->count == 0)
        return;
    const int team = byi_team(call, byi_count(call->in) * 4);
    const int64_t lanes =
        byi_lanes(kept->count, rows.n, 1, byoc_dtype_size(call->in->dtype),
                  is_f64 ? BYI_NARROW / 4 : BYI_NARROW);
    if (columns && kept->rank && kept->strides[kept->rank - 1] == 1) {
        run_columns(call, &axes, columns, team);
        return;
    }
    if (loops->adjacent[is_f64] && are_adjacent_rows(&axes, is_f64)) {
        const int64_t n_rows =
            byi_min(BYI_COLUMNS, byi_ceil_div(kept->count, team));
#pragma omp parallel for num_threads(team) if (team > 1)
        for (int64_t i = 0; i < kept->count; i += n_rows)
            loops->adjacent[is_f64](call, &axes.reduced, i * rows.n,
                                    byi_min(n_rows, kept->count - i), p);
        return;
    }
    if (columns && rows.rows == 1 && lanes > 1) {
        run_lanes(call, kept->count, rows.n, lanes, columns, team);
        return;
    }
    const slice_fn run =
        rows.stride == 1 ? loops->rows[is_f64] : loops->any[is_f64];
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t i = 0; i < kept->count; i++)
        run(call, &axes.reduced, byi_box_offset(kept, i), p);
}

static enum byoc_status unit_run_f32(const struct byi_call *call,
                                     struct byoc_error *err)
{
    static const struct slice_loops loops = {
        {unit_row, unit_F64},
        {unit_F32, unit_F64},
        {unit_columns, unit_columns},
        {unit_adjacent_F32, unit_adjacent_F64}};
    bool reduced[BYI_MAX_RANK] = {false};
    reduced[byi_attr_axis(call->attrs, call->in->rank)] = true;
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    run_slices(call, reduced, &loops, byi_attr_int(call->attrs, "p"));
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(unit, unit_run_f32, NULL)

static enum byoc_status mvn_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    static const struct slice_loops loops = {{mvn_rows, mvn_F64},
                                             {mvn_F32, mvn_F64},
                                             {mvn_columns, NULL},
                                             {NULL, NULL}};
    bool reduced[BYI_MAX_RANK] = {false};
    uint32_t n;
    const int64_t *axis = byi_attr_ints(call->attrs, "axis", &n);
    for (uint32_t i = 0; i < n; i++)
        reduced[byi_axis(axis[i], call->in->rank)] = true;
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    run_slices(call, reduced, &loops, 0);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(mvn, mvn_run_f32, NULL)

BYI_KERNEL_ROWS(norm, {BYI_OP_NN_BATCH_NORM, {batch_run, batch_scratch}},
                {BYI_OP_NN_LAYER_NORM, {layer_run, layer_scratch}},
                {BYI_OP_NN_INSTANCE_NORM, {group_run, group_scratch}},
                {BYI_OP_NN_GROUP_NORM, {group_run, group_scratch}},
                {BYI_OP_NN_LRN, {lrn_run, lrn_scratch}},
                {BYI_OP_LP_NORMALIZE, {unit_run, unit_scratch}},
                {BYI_OP_MVN, {mvn_run, mvn_scratch}})
