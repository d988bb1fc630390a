/* SPDX-License-Identifier: Apache-2.0 */
/* softmax.c: nn.softmax, nn.log_softmax, nn.hardmax along an axis.
 *   x (outer, n, inner) -> the same
 * The maximum of a slice of n elements is subtracted first, so that
 * exponentials do not overflow. Sums are double, except in kernels/softmax.inc,
 * which computes contiguous slices of float32. */
#include "kernel.h"

#include "kernels/f32.h"

enum { COLUMNS = 64 };

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
    const int64_t place =
        byi_extreme_place((const float *)s->x + row * s->n, s->n, true, false);
    memset(y, 0, (size_t)s->n * sizeof *y);
    y[place] = 1;
}

/* --- float32, inner > 1: COLUMNS columns at a time ----------------------- */

static void exp_columns(const float *x, const float *top, float *y, int64_t n)
{
    static const float none[4];
    float shifted[COLUMNS];
    for (int64_t i = 0; i < n; i++)
        shifted[i] = x[i] - top[i];
    byi_simd()->unary[BYI_OP_EXP](shifted, y, n, none);
}

static void fast_columns(const struct softmax_slices *s, int64_t at, int64_t n)
{
    const float *x = (const float *)s->x + at;
    float *y = (float *)s->y + at;
    float top[COLUMNS];
    double sum[COLUMNS] = {0};
    memcpy(top, x, (size_t)n * sizeof *top);
    for (int64_t k = 1; k < s->n; k++)
        byi_simd()->slide_max(x + k * s->inner, 1, top, n);
    for (int64_t k = 0; k < s->n; k++) {
        exp_columns(x + k * s->inner, top, y + k * s->inner, n);
        for (int64_t i = 0; i < n; i++)
            sum[i] += (double)y[k * s->inner + i];
    }
    const bool soft = s->op == BYI_OP_NN_SOFTMAX;
    for (int64_t i = 0; i < n; i++)
        sum[i] = soft ? 1 / sum[i] : (double)top[i] + log(sum[i]);
    for (int64_t k = 0; k < s->n; k++)
        for (int64_t i = 0; i < n; i++) {
            const int64_t j = k * s->inner + i;
            y[j] =
                (float)(soft ? (double)y[j] * sum[i] : (double)x[j] - sum[i]);
        }
}

/* --- the kernel --------------------------------------------------------- */

static void run_columns(const struct softmax_slices *s, int team)
{
    const int64_t parts = byi_ceil_div(s->inner, COLUMNS);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < s->outer * parts; task++) {
        const int64_t from = task % parts * COLUMNS;
        fast_columns(s, task / parts * s->n * s->inner + from,
                     byi_min(COLUMNS, s->inner - from));
    }
}

static enum byoc_status run_softmax(const struct byi_call *call, bool fast,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const uint32_t axis = byi_axis(byi_attr_int(call->attrs, "axis"), x->rank);
    const struct softmax_slices s = {
        .op = call->op->id,
        .outer = byi_span(x, 0, axis),
        .n = x->rank ? x->dims[axis] : 1,
        .inner = x->rank ? byi_span(x, axis + 1, x->rank) : 1,
        .x = x->data,
        .y = call->out->data,
    };
    if (x->dtype != BYOC_F32 && x->dtype != BYOC_F64)
        return byi_bad_dtype(call, x->dtype,
                             "float16, bfloat16, float32 or float64", err);
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

enum byoc_status byi_softmax_plain(const struct byi_call *call,
                                   struct byoc_error *err)
{
    return run_softmax(call, false, err);
}

static enum byoc_status softmax_run_f32(const struct byi_call *call,
                                        struct byoc_error *err)
{
    return run_softmax(call, true, err);
}

BYI_FLOAT_KERNEL(softmax, softmax_run_f32, NULL)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_NN_SOFTMAX, {softmax_run, softmax_scratch}},
    {BYI_OP_NN_LOG_SOFTMAX, {softmax_run, softmax_scratch}},
    {BYI_OP_NN_HARDMAX, {softmax_run, softmax_scratch}},
};
const struct byi_kernel_rows byi_rows_softmax = {rows, BYI_COUNT(rows)};
