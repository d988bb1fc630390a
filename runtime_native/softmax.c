/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: nn.softmax, nn.log_softmax, nn.hardmax along an axis.
 *   x (outer, n, inner) -> the same
 * The maximum of a slice of n elements is subtracted first, so that
 * exponentials do not overflow. Sums are double, except for float32: those of
 * contiguous slices are float32 (kernels/softmax.inc), and so are those of
 * ROWS elements of other slices. */
#include "kernel.h"

#include "kernels/f32.h"

enum {
    COLUMNS = 256, /* most columns of a task */
    FEW = 64,      /* columns of a task if there are few tasks */
    ROWS = 64      /* most rows that are summed in float32 */
};

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
        for (int64_t i = 0; i < s->n; i++)                                     \
            sum += exp((double)x[i * step] - top);                             \
        for (int64_t i = 0; i < s->n; i++) {                                   \
            const double v = (double)x[i * step] - top;                        \
            y[i * step] = (type)(s->op == BYI_OP_NN_SOFTMAX ? exp(v) / sum     \
                                                            : v - log(sum));   \
        }                                                                      \
    }
BYI_EACH_FLOAT(PLAIN)

/* --- float32, inner 1: rows --------------------------------------------- */

static void fast_row(const struct softmax_slices *s, int64_t row)
{
    const bool log_of = s->op == BYI_OP_NN_LOG_SOFTMAX;
    byi_f32_kernels_of(byi_simd_isa())
        ->softmax[log_of]((const float *)s->x + row * s->n,
                          (float *)s->y + row * s->n, s->n);
}

static void hard_row(const struct softmax_slices *s, int64_t row)
{
    float *y = (float *)s->y + row * s->n;
    const int64_t index =
        byi_extreme_index((const float *)s->x + row * s->n, s->n, true, false);
    memset(y, 0, (size_t)s->n * sizeof *y);
    y[index] = 1;
}

/* --- float32, inner > 1: some columns at a time --------------------------- */

/* y = e^(x - top) for rows [k, end), whose sum is added to *sum. */
static void exp_rows(const struct softmax_slices *s, int64_t at, int64_t k,
                     int64_t end, int64_t n, const float *top, double *sum)
{
    static const float none[4];
    const struct byi_simd *simd = byi_simd();
    float shifted[COLUMNS], some[COLUMNS] = {0};
    for (; k < end; k++) {
        float *y = (float *)s->y + at + k * s->inner;
        simd->binary[BYI_OP_SUBTRACT]((const float *)s->x + at + k * s->inner,
                                      1, top, 1, shifted, n);
        simd->unary[BYI_OP_EXP](shifted, y, n, none);
        simd->slide_add(y, 1, some, n);
    }
    for (int64_t i = 0; i < n; i++)
        sum[i] += (double)some[i];
}

/* Multiply each row of y by `last`, or, for the logarithm, set it to x - top -
 * last. */
static void finish_rows(const struct softmax_slices *s, int64_t at, int64_t n,
                        const float *top, const float *last)
{
    const struct byi_simd *simd = byi_simd();
    float shifted[COLUMNS];
    for (int64_t k = 0; k < s->n; k++) {
        const float *x = (const float *)s->x + at + k * s->inner;
        float *y = (float *)s->y + at + k * s->inner;
        if (s->op == BYI_OP_NN_SOFTMAX) {
            simd->binary[BYI_OP_MULTIPLY](y, 1, last, 1, y, n);
        } else {
            simd->binary[BYI_OP_SUBTRACT](x, 1, top, 1, shifted, n);
            simd->binary[BYI_OP_SUBTRACT](shifted, 1, last, 1, y, n);
        }
    }
}

static void fast_columns(const struct softmax_slices *s, int64_t at, int64_t n)
{
    const float *x = (const float *)s->x + at;
    float top[COLUMNS], last[COLUMNS];
    double sum[COLUMNS] = {0};
    memcpy(top, x, (size_t)n * sizeof *top);
    byi_simd()->extreme_rows[0][BYOC_F32](x, s->n, s->inner, top, n);
    for (int64_t k = 0; k < s->n; k += ROWS)
        exp_rows(s, at, k, byi_min(k + ROWS, s->n), n, top, sum);
    for (int64_t i = 0; i < n; i++)
        last[i] =
            (float)(s->op == BYI_OP_NN_SOFTMAX ? 1 / sum[i] : log(sum[i]));
    finish_rows(s, at, n, top, last);
}

/* --- the kernel --------------------------------------------------------- */

static void run_columns(const struct softmax_slices *s, int team)
{
    int64_t parts = byi_ceil_div(s->inner, COLUMNS);
    if (team > 1 && s->outer * parts < 2 * team)
        parts = byi_ceil_div(s->inner, FEW);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < s->outer * parts; task++) {
        const int64_t from = s->inner * (task % parts) / parts;
        const int64_t end = s->inner * (task % parts + 1) / parts;
        fast_columns(s, task / parts * s->n * s->inner + from, end - from);
    }
}

static enum byoc_status run_softmax(const struct byi_call *call, bool fast,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    const struct softmax_slices s = {
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
    const bool hard = s.op == BYI_OP_NN_HARDMAX;
    fast = fast && x->dtype == BYOC_F32 && !(hard && s.inner > 1);
    if (fast && s.inner > 1) {
        run_columns(&s, team);
        return BYOC_OK;
    }
    void (*run)(const struct softmax_slices *, int64_t) =
        x->dtype == BYOC_F64 ? plain_F64 : plain_F32;
    if (fast)
        run = hard ? hard_row : fast_row;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t slice = 0; slice < s.outer * s.inner; slice++)
        run(&s, slice);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(softmax)

BYI_FLOAT_KERNEL(softmax, softmax_run_f32, NULL)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_SOFTMAX, {softmax_run, softmax_scratch}},
    {BYI_OP_NN_LOG_SOFTMAX, {softmax_run, softmax_scratch}},
    {BYI_OP_NN_HARDMAX, {softmax_run, softmax_scratch}},
};
const struct byi_kernel_rows byi_rows_softmax = {rows, BYI_COUNT(rows)};
