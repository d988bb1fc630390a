/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: nn.softmax, nn.log_softmax, nn.hardmax along an axis.
 *   x (outer, n, inner) -> the same
 * The maximum of a slice of n elements is subtracted first, so that
 * exponentials do not overflow. Sums are double. Of float32, sums of long
 * contiguous slices are float32 (kernels/softmax.inc), and so are sums of up to
 * PARTIAL_ROWS elements of other slices, which are computed in columns. If
 * inner is small, several rows of columns are joined to one row. If n is small,
 * too, blocks of slices are transposed first. */
#include "kernel.h"

#include "kernels/f32.h"

enum {
    COLUMNS = 256,    /* most columns of a task, and of joined rows */
    FEW_COLUMNS = 64, /* columns of a task if there are few tasks */
    PARTIAL_ROWS = 64 /* most rows that are summed in float32 */
};

/* Slices of n elements along the middle axis of x (outer, n, inner). */
struct softmax_slices {
    enum byi_op_id op;
    int64_t outer, n, inner;
    const void *x;
    void *y;
};

/* --- plain: one slice at a time, its elements `inner` apart -------------- */

#define PLAIN(id, type)                                                        \
    static type largest_##id(const type *x, int64_t n, int64_t step,           \
                             int64_t *where)                                   \
    {                                                                          \
        *where = 0;                                                            \
        for (int64_t i = 1; i < n; i++) {                                      \
            const type v = x[i * step], best = x[*where * step];               \
            if (v > best || (v != v && best == best))                          \
                *where = i;                                                    \
        }                                                                      \
        return x[*where * step];                                               \
    }                                                                          \
    static void plain_##id(const struct softmax_slices *s, int64_t slice)      \
    {                                                                          \
        const int64_t at =                                                     \
            slice / s->inner * s->n * s->inner + slice % s->inner;             \
        const int64_t step = s->inner;                                         \
        const type *x = (const type *)s->x + at;                               \
        type *y = (type *)s->y + at;                                           \
        int64_t where;                                                         \
        const double top = (double)largest_##id(x, s->n, step, &where);        \
        if (s->op == BYI_OP_NN_HARDMAX) {                                      \
            for (int64_t i = 0; i < s->n; i++)                                 \
                y[i * step] = i == where;                                      \
            return;                                                            \
        }                                                                      \
        double sum = 0;                                                        \
        for (int64_t i = 0; i < s->n; i++) {                                   \
            const double v = (double)x[i * step] - top, power = exp(v);        \
            sum += power;                                                      \
            y[i * step] = (type)(s->op == BYI_OP_NN_SOFTMAX ? power : v);      \
        }                                                                      \
        const double shift = log(sum);                                         \
        for (int64_t i = 0; i < s->n; i++)                                     \
            y[i * step] = (type)(s->op == BYI_OP_NN_SOFTMAX                    \
                                     ? (double)y[i * step] / sum               \
                                     : (double)y[i * step] - shift);           \
    }
BYI_EACH_FLOAT(PLAIN)

/* --- float32, inner 1: rows --------------------------------------------- */

static void fast_row(const struct softmax_slices *s, int64_t row)
{
    const bool is_log = s->op == BYI_OP_NN_LOG_SOFTMAX;
    byi_f32_kernels_of(byi_simd_isa())
        ->softmax[is_log]((const float *)s->x + row * s->n,
                          (float *)s->y + row * s->n, s->n);
}

/* --- float32: some columns at a time -------------------------------------- */

/* `rows` rows of n columns, `pitch` elements apart; y may be x. */
struct softmax_columns {
    enum byi_op_id op;
    const float *x;
    float *y;
    int64_t rows, pitch, n;
};

/* Add the sums of the columns of e^(x - top) to sum[], and, for nn.softmax, set
 * y to these powers. */
static void exp_rows(const struct softmax_columns *c, const float *top,
                     double *sum)
{
    float partial[COLUMNS], unused[COLUMNS];
    for (int64_t k = 0; k < c->rows; k += PARTIAL_ROWS) {
        memset(partial, 0, (size_t)c->n * sizeof *partial);
        for (int64_t row = k; row < byi_min(k + PARTIAL_ROWS, c->rows); row++)
            byi_simd()->exp_rows(
                c->x + row * c->pitch, top,
                c->op == BYI_OP_NN_SOFTMAX ? c->y + row * c->pitch : unused,
                partial, c->n);
        for (int64_t i = 0; i < c->n; i++)
            sum[i] += (double)partial[i];
    }
}

/* For nn.softmax, multiply each row of y by `normalizer`, which is 1 / sum; for
 * nn.log_softmax, set it to x - top - normalizer, which is log(sum). */
static void finish_rows(const struct softmax_columns *c, const float *top,
                        const float *normalizer)
{
    const struct byi_simd *simd = byi_simd();
    float shifted[COLUMNS];
    for (int64_t k = 0; k < c->rows; k++) {
        const float *x = c->x + k * c->pitch;
        float *y = c->y + k * c->pitch;
        if (c->op == BYI_OP_NN_SOFTMAX) {
            simd->binary[BYI_OP_MULTIPLY](y, 1, normalizer, 1, y, c->n);
        } else {
            simd->binary[BYI_OP_SUBTRACT](x, 1, top, 1, shifted, c->n);
            simd->binary[BYI_OP_SUBTRACT](shifted, 1, normalizer, 1, y, c->n);
        }
    }
}

/* The last rows of x, which do not fill a group, joined to one row. */
static struct softmax_columns rest_of(const struct softmax_columns *c,
                                      int64_t group)
{
    const int64_t whole = c->rows / group * group;
    struct softmax_columns rest = *c;
    rest.x += whole * c->n;
    rest.y += whole * c->n;
    rest.n = c->rows % group * c->n;
    rest.rows = rest.n > 0;
    return rest;
}

static void repeat_group(float *v, int64_t group, int64_t n)
{
    for (int64_t i = 1; i < group; i++)
        memcpy(v + i * n, v, (size_t)n * sizeof *v);
}

/* Compute columns whose rows are `group` joined rows of x. */
static void softmax_of_columns(const struct softmax_columns *c, int64_t group)
{
    const struct softmax_columns rest = rest_of(c, group);
    struct softmax_columns joined = *c;
    float top[COLUMNS], normalizer[COLUMNS];
    double sum[COLUMNS] = {0};
    joined.rows /= group;
    joined.n *= group;
    joined.pitch *= group;
    void (*const larger)(const void *, int64_t, int64_t, void *, int64_t) =
        byi_simd()->extreme_rows[0][BYOC_F32];
    memcpy(top, c->x, (size_t)joined.n * sizeof *top);
    larger(joined.x, joined.rows, joined.pitch, top, joined.n);
    larger(rest.x, rest.rows, 0, top, rest.n);
    larger(top + c->n, group - 1, c->n, top, c->n);
    repeat_group(top, group, c->n);
    exp_rows(&joined, top, sum);
    exp_rows(&rest, top, sum);
    for (int64_t i = c->n; i < joined.n; i++)
        sum[i % c->n] += sum[i];
    for (int64_t i = 0; i < c->n; i++)
        normalizer[i] =
            (float)(c->op == BYI_OP_NN_SOFTMAX ? 1 / sum[i] : log(sum[i]));
    repeat_group(normalizer, group, c->n);
    finish_rows(&joined, top, normalizer);
    finish_rows(&rest, top, normalizer);
}

/* Compute the blocks (n, inner) [from, from + lanes), transposed. */
static void softmax_of_lanes(const struct softmax_slices *s, int64_t from,
                             int64_t lanes)
{
    const int64_t block_size = s->n * s->inner;
    _Alignas(64) float block[BYI_BLOCK_BYTES / sizeof(float)];
    byi_transpose(sizeof *block, (const float *)s->x + from * block_size,
                  block_size, lanes, block_size, block, lanes);
    const struct softmax_columns c = {
        s->op, block, block, s->n, lanes * s->inner, lanes * s->inner};
    softmax_of_columns(&c, 1);
    byi_transpose(sizeof *block, block, lanes, block_size, lanes,
                  (float *)s->y + from * block_size, block_size);
}

/* --- the kernel --------------------------------------------------------- */

static void run_slices(const struct softmax_slices *s,
                       void (*run)(const struct softmax_slices *, int64_t),
                       int team)
{
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t slice = 0; slice < s->outer * s->inner; slice++)
        run(s, slice);
}

static void run_lanes(const struct softmax_slices *s, int64_t lanes, int team)
{
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t from = 0; from < s->outer; from += lanes)
        softmax_of_lanes(s, from, byi_min(lanes, s->outer - from));
}

static void run_columns(const struct softmax_slices *s, int team)
{
    int64_t parts = byi_ceil_div(s->inner, COLUMNS), group = 1;
    if (team > 1 && s->outer * parts < 2 * team)
        parts = byi_ceil_div(s->inner, FEW_COLUMNS);
    if (s->inner < FEW_COLUMNS &&
        s->n >= 4) /* a group of few rows costs more */
        group = byi_min(s->n / 4, COLUMNS / s->inner);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < s->outer * parts; task++) {
        const int64_t from = s->inner * (task % parts) / parts;
        const int64_t end = s->inner * (task % parts + 1) / parts;
        const int64_t at = task / parts * s->n * s->inner + from;
        const struct softmax_columns c = {s->op,
                                          (const float *)s->x + at,
                                          (float *)s->y + at,
                                          s->n,
                                          s->inner,
                                          end - from};
        softmax_of_columns(&c, group);
    }
}

/* nn.hardmax: 1 at the first largest number of each slice, 0 elsewhere. */
static void run_hardmax(const struct softmax_slices *s, int64_t *index,
                        int team)
{
    const struct byi_index_search p = {
        .dtype = BYOC_F32,
        .outer = s->outer,
        .n = s->n,
        .inner = s->inner,
        .largest = true,
        .x = s->x,
    };
    byi_index_search_run(&p, team, index);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t outer = 0; outer < s->outer; outer++) {
        float *y = (float *)s->y + outer * s->n * s->inner;
        memset(y, 0, (size_t)(s->n * s->inner) * sizeof *y);
        for (int64_t i = 0; i < s->inner; i++)
            y[index[outer * s->inner + i] * s->inner + i] = 1;
    }
}

/* Bytes of the indices that run_hardmax() finds. */
static uint64_t softmax_scratch_f32(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in;
    if (call->op->id != BYI_OP_NN_HARDMAX || x->dtype != BYOC_F32)
        return 0;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    const int64_t n = x->rank ? x->dims[axis] : 1;
    return n ? (uint64_t)(byi_count(x) / n) * sizeof(int64_t) : 0;
}

static void run_float(const struct byi_call *call,
                      const struct softmax_slices *s, int team)
{
    const int64_t lanes =
        byi_lanes(s->outer, s->n, s->inner, sizeof(float),
                  s->inner > 1 ? 4 * BYI_NARROW : BYI_NARROW / 2);
    if (s->op == BYI_OP_NN_HARDMAX)
        run_hardmax(s, call->scratch, team);
    else if (lanes > 1)
        run_lanes(s, byi_min(lanes, COLUMNS / s->inner), team);
    else if (s->inner > 1)
        run_columns(s, team);
    else
        run_slices(s, fast_row, team);
}

static enum byoc_status run_softmax(const struct byi_call *call, bool fast,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    struct softmax_slices s = {
        .op = call->op->id,
        .outer = byi_span(x, 0, axis),
        .n = x->rank ? x->dims[axis] : 1,
        .inner = x->rank ? byi_span(x, axis + 1, x->rank) : 1,
        .x = x->data,
        .y = call->out->data,
    };
    BYI_TRY(byi_check_wide(call, x->dtype, err));
    const int64_t count = byi_count(x);
    const int team = byi_team(call, count * 4);
    if (count == 0)
        return BYOC_OK;
    if (s.n == 1) { /* slices of one element are columns */
        s.inner *= s.outer;
        s.outer = 1;
    }
    if (fast && x->dtype == BYOC_F32)
        run_float(call, &s, team);
    else
        run_slices(&s, x->dtype == BYOC_F64 ? plain_F64 : plain_F32, team);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(softmax)

BYI_FLOAT_KERNEL(softmax, softmax_run_fast, softmax_scratch_f32)

BYI_KERNEL_ROWS(softmax, {BYI_OP_NN_SOFTMAX, {softmax_run, softmax_scratch}},
                {BYI_OP_NN_LOG_SOFTMAX, {softmax_run, softmax_scratch}},
                {BYI_OP_NN_HARDMAX, {softmax_run, softmax_scratch}})
