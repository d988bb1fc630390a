/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, extremes and norms over axes. Floats are summed in double,
 * integers in 64 bits modulo 2^64. float32 and extremes of
 * integers have two fast paths: rows, for a reduced innermost axis, and
 * columns, for a kept one. No result depends on how columns are split. */
#include "kernel.h"

/* The operation that adds an element to the accumulator. */
enum fold {
    ADD = BYI_ADD,
    ADD_ABS = BYI_ADD_ABS,
    ADD_SQUARE = BYI_ADD_SQUARE,
    ADD_EXP = BYI_ADD_EXP,
    MAX,
    MIN,
    MUL,
    FOLDS
};

enum { COLUMNS = 512 }; /* results that are computed together */

static enum fold fold_of(enum byi_op_id op)
{
    static const struct {
        enum byi_op_id op;
        enum fold fold;
    } folds[] = {
        {BYI_OP_SUM, ADD},
        {BYI_OP_MEAN, ADD},
        {BYI_OP_LOG_SUM, ADD},
        {BYI_OP_MAX, MAX},
        {BYI_OP_MIN, MIN},
        {BYI_OP_PROD, MUL},
        {BYI_OP_L1, ADD_ABS},
        {BYI_OP_L2, ADD_SQUARE},
        {BYI_OP_SUM_SQUARE, ADD_SQUARE},
        {BYI_OP_LOG_SUM_EXP, ADD_EXP},
    };
    for (uint32_t i = 0; i < BYI_COUNT(folds); i++)
        if (folds[i].op == op)
            return folds[i].fold;
    byi_unreachable();
}

struct axes_reduction {
    enum byi_op_id op;
    enum fold fold;
    enum byoc_dtype dtype;
    struct byi_axes axes;
    const void *x;
    void *y;
};

/* Compute result `out`. */
typedef void (*one_fn)(const struct axes_reduction *r, int64_t out);

/* --- plain: one result at a time ---------------------------------------- */

/* Run `body` once for each reduced element v. */
#define FOR_REDUCED(r, type, base, v, body)                                    \
    BYI_FOR_BOX(&(r)->axes.reduced, at_, {                                     \
        const type v = (base)[at_];                                            \
        body                                                                   \
    });

/* Define a function that folds the elements v of one result into `acc`. */
#define FOLD(name, id, type, wide, init, step)                                 \
    static wide name##_##id(const struct axes_reduction *r, const type *x,     \
                            wide shift)                                        \
    {                                                                          \
        wide acc = init;                                                       \
        (void)shift;                                                           \
        FOR_REDUCED(r, type, x, v, { acc = step; })                            \
        return acc;                                                            \
    }

#define FOLD_TABLE(id, type, wide)                                             \
    static wide (*const folds_##id[FOLDS])(const struct axes_reduction *,      \
                                           const type *, wide) = {             \
        [ADD] = add_##id,         [MAX] = largest_##id,                        \
        [MIN] = least_##id,       [MUL] = times_##id,                          \
        [ADD_ABS] = add_abs_##id, [ADD_SQUARE] = add_square_##id,              \
        [ADD_EXP] = add_exp_##id,                                              \
    };

/* Compute the result from the accumulator of `count` elements. */
static double finish(enum byi_op_id op, double acc, double shift, int64_t count)
{
    switch (op) {
    case BYI_OP_MEAN:
        return acc / (double)count;
    case BYI_OP_L2:
        return sqrt(acc);
    case BYI_OP_LOG_SUM:
        return log(acc);
    case BYI_OP_LOG_SUM_EXP:
        return shift + log(acc);
    default:
        return acc;
    }
}

/* The shift of log-sum-exp, with which sums of e^(x - shift) do not overflow:
 * the maximum, or 0 if that is infinite or NaN. */
static double shift_of(double largest)
{
    return isfinite(largest) ? largest : 0;
}

#define D(v) ((double)(v))
#define FLOAT_FOLDS(id, type)                                                  \
    FOLD(add, id, type, double, 0, acc + D(v))                                 \
    FOLD(largest, id, type, double, -INFINITY,                                 \
         D(v) > acc || v != v ? D(v) : acc)                                    \
    FOLD(least, id, type, double, INFINITY, D(v) < acc || v != v ? D(v) : acc) \
    FOLD(times, id, type, double, 1, acc *D(v))                                \
    FOLD(add_abs, id, type, double, 0, acc + fabs(D(v)))                       \
    FOLD(add_square, id, type, double, 0, acc + D(v) * D(v))                   \
    FOLD(add_exp, id, type, double, 0, acc + exp(D(v) - shift))                \
    FOLD_TABLE(id, type, double)                                               \
    static void plain_##id(const struct axes_reduction *r, int64_t out)        \
    {                                                                          \
        const type *x =                                                        \
            (const type *)r->x + byi_box_offset(&r->axes.kept, out);           \
        double shift = 0;                                                      \
        if (r->fold == ADD_EXP)                                                \
            shift = shift_of(largest_##id(r, x, 0));                           \
        double acc = folds_##id[r->fold](r, x, shift);                         \
        ((type *)r->y)[out] =                                                  \
            (type)finish(r->op, acc, shift, r->axes.reduced.count);            \
    }
BYI_EACH_FLOAT(FLOAT_FOLDS)

/* For integers, `wide` is the 64-bit type of the same signedness, for
 * comparisons; sums and products are unsigned, so that they wrap. */
#define U(v) ((uint64_t)(v))
#define INT_FOLDS(id, type, wide, low, high)                                   \
    FOLD(add, id, type, wide, 0, (wide)(U(acc) + U(v)))                        \
    FOLD(largest, id, type, wide, low, (wide)v > acc ? (wide)v : acc)          \
    FOLD(least, id, type, wide, high, (wide)v < acc ? (wide)v : acc)           \
    FOLD(times, id, type, wide, 1, (wide)(U(acc) * U(v)))                      \
    FOLD(add_abs, id, type, wide, 0,                                           \
         (wide)(v > 0 ? U(acc) + U(v) : U(acc) - U(v)))                        \
    FOLD(add_square, id, type, wide, 0, (wide)(U(acc) + U(v) * U(v)))          \
    FOLD(add_exp, id, type, wide, 0, (wide)(D(acc) + exp(D(v))))               \
    FOLD_TABLE(id, type, wide)                                                 \
    static void plain_##id(const struct axes_reduction *r, int64_t out)        \
    {                                                                          \
        const type *x =                                                        \
            (const type *)r->x + byi_box_offset(&r->axes.kept, out);           \
        struct byi_tensor y = {.data = r->y, .dtype = BYOC_##id};              \
        wide acc;                                                              \
        if (r->op == BYI_OP_LOG_SUM_EXP) {                                     \
            double sum = 0;                                                    \
            FOR_REDUCED(r, type, x, v, { sum += exp(D(v)); })                  \
            byi_tensor_set(&y, out, log(sum));                                 \
            return;                                                            \
        }                                                                      \
        acc = folds_##id[r->fold](r, x, 0);                                    \
        if (r->op == BYI_OP_MEAN && r->axes.reduced.count)                     \
            acc = acc / (wide)r->axes.reduced.count;                           \
        if (r->op == BYI_OP_L2 || r->op == BYI_OP_LOG_SUM)                     \
            byi_tensor_set(&y, out, finish(r->op, D(acc), 0, 1));              \
        else                                                                   \
            ((type *)r->y)[out] = (type)acc;                                   \
    }
INT_FOLDS(U8, uint8_t, uint64_t, 0, UINT8_MAX)
INT_FOLDS(I8, int8_t, int64_t, INT8_MIN, INT8_MAX)
INT_FOLDS(U16, uint16_t, uint64_t, 0, UINT16_MAX)
INT_FOLDS(I16, int16_t, int64_t, INT16_MIN, INT16_MAX)
INT_FOLDS(U32, uint32_t, uint64_t, 0, UINT32_MAX)
INT_FOLDS(I32, int32_t, int64_t, INT32_MIN, INT32_MAX)
INT_FOLDS(U64, uint64_t, uint64_t, 0, UINT64_MAX)
INT_FOLDS(I64, int64_t, int64_t, INT64_MIN, INT64_MAX)

static const one_fn plain[BYI_DTYPES] = {
#define ROW(id, type) [BYOC_##id] = plain_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

/* --- extremes of float32 and integers ------------------------------------ */

/* The address of the first element that is reduced to result `out`; sets *at to
 * the address of the result. */
static const char *first_of(const struct axes_reduction *r, int64_t out,
                            char **at)
{
    const int64_t size = (int64_t)byoc_dtype_size(r->dtype);
    *at = (char *)r->y + out * size;
    return (const char *)r->x + byi_box_offset(&r->axes.kept, out) * size;
}

/* Set *best to the extreme of the elements that are reduced from x on. */
static void extreme_of(const struct axes_reduction *r, enum fold fold,
                       const void *x, void *best)
{
    const struct byi_box *reduced = &r->axes.reduced;
    const int64_t size = (int64_t)byoc_dtype_size(r->dtype);
    const int64_t n = reduced->dims[reduced->rank - 1];
    memcpy(best, x, (size_t)size);
    for (int64_t i = 0; i < reduced->count; i += n)
        byi_simd()->extreme_row[fold == MIN][r->dtype](
            (const char *)x + byi_box_offset(reduced, i) * size, n, best);
}

/* Set best[] to the extremes of n adjacent columns, from x on. */
static void extremes_of(const struct axes_reduction *r, enum fold fold,
                        const void *x, void *best, int64_t n)
{
    const struct byi_box *reduced = &r->axes.reduced;
    const struct byi_box_rows lines = byi_box_rows(reduced);
    const int64_t size = (int64_t)byoc_dtype_size(r->dtype);
    memcpy(best, x, (size_t)(n * size));
    for (int64_t line = 0; line < lines.rows; line++)
        byi_simd()->extreme_rows[fold == MIN][r->dtype](
            (const char *)x + byi_box_offset(reduced, line * lines.n) * size,
            lines.n, lines.stride, best, n);
}

static void extreme_row(const struct axes_reduction *r, int64_t out)
{
    char *y;
    const char *x = first_of(r, out, &y);
    extreme_of(r, r->fold, x, y);
}

/* Compute n adjacent results from `out` on. */
static void extreme_columns(const struct axes_reduction *r, int64_t out,
                            int64_t n)
{
    char *y;
    const char *x = first_of(r, out, &y);
    extremes_of(r, r->fold, x, y, n);
}

/* --- float32, innermost axis reduced ------------------------------------- */

/* The sum of a row of n elements. */
static double sum_of_line(const struct axes_reduction *r, const float *x,
                          int64_t n, float shift)
{
    const struct byi_simd *simd = byi_simd();
    switch (r->fold) {
    case ADD:
        return simd->sum(x, n);
    case ADD_SQUARE:
        return simd->sum_squares(x, n, 0.0f);
    case ADD_ABS:
        return simd->sum_abs(x, n);
    default: {
        float exps[COLUMNS];
        double sum = 0;
        for (int64_t i = 0; i < n; i += COLUMNS)
            sum += simd->exp_sum(x + i, exps, byi_min(COLUMNS, n - i), shift);
        return sum;
    }
    }
}

static void sum_row(const struct axes_reduction *r, int64_t out)
{
    const struct byi_box *reduced = &r->axes.reduced;
    const float *x = (const float *)r->x + byi_box_offset(&r->axes.kept, out);
    const int64_t n = reduced->dims[reduced->rank - 1];
    const int64_t rows = reduced->count / n;
    float *y = (float *)r->y + out;
    float shift = 0;
    if (r->fold == ADD_EXP)
        extreme_of(r, MAX, x, &shift);
    if (!isfinite(shift)) {
        plain_F32(r, out);
        return;
    }
    double acc = 0;
    for (int64_t row = 0; row < rows; row++)
        acc += sum_of_line(r, x + byi_box_offset(reduced, row * n), n, shift);
    *y = (float)finish(r->op, acc, (double)shift, reduced->count);
}

/* --- float32, innermost axis kept ---------------------------------------- */

/* Number of rows that are summed in float before their sum is added to the
 * total in double. */
enum { SUMMED_ROWS = 32 };

static void add_part(double *acc, float *part, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        acc[i] += (double)part[i];
        part[i] = 0;
    }
}

/* Set acc[] to the sums of n columns over all reduced rows. */
static void column_sums(const struct axes_reduction *r, const float *x,
                        const float *shift, double *acc, int64_t n)
{
    const struct byi_box_rows lines = byi_box_rows(&r->axes.reduced);
    int64_t held = 0; /* number of rows in part[] */
    float part[COLUMNS];
    memset(acc, 0, (size_t)n * sizeof *acc);
    memset(part, 0, (size_t)n * sizeof *part);
    for (int64_t line = 0; line < lines.rows; line++) {
        const float *at = x + byi_box_offset(&r->axes.reduced, line * lines.n);
        for (int64_t i = 0, some = 0; i < lines.n; i += some) {
            some = byi_min(lines.n - i, SUMMED_ROWS - held);
            byi_simd()->accumulate[r->fold](at + i * lines.stride, some,
                                            lines.stride, shift, part, n);
            held = (held + some) % SUMMED_ROWS;
            if (held == 0)
                add_part(acc, part, n);
        }
    }
    add_part(acc, part, n);
}

static void column_products(const struct axes_reduction *r, const float *x,
                            double *acc, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        acc[i] = 1;
    for (int64_t k = 0; k < r->axes.reduced.count; k++) {
        const float *row = x + byi_box_offset(&r->axes.reduced, k);
        for (int64_t i = 0; i < n; i++)
            acc[i] *= (double)row[i];
    }
}

/* Set y[] to the results that finish() computes. */
static void finish_columns(const struct axes_reduction *r, const double *acc,
                           const float *shift, float *y, int64_t n)
{
    const int64_t count = r->axes.reduced.count;
    if (r->op == BYI_OP_SUM)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)acc[i];
    else if (r->op == BYI_OP_MEAN)
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)(acc[i] / (double)count);
    else
        for (int64_t i = 0; i < n; i++)
            y[i] = (float)finish(r->op, acc[i], (double)shift[i], count);
}

/* Compute n adjacent results from `out` on. */
static void sum_columns(const struct axes_reduction *r, int64_t out, int64_t n)
{
    const float *x = (const float *)r->x + byi_box_offset(&r->axes.kept, out);
    float *y = (float *)r->y + out;
    float shift[COLUMNS] = {0};
    double acc[COLUMNS];
    if (r->fold == ADD_EXP)
        extremes_of(r, MAX, x, shift, n);
    if (r->fold == MUL)
        column_products(r, x, acc, n);
    else
        column_sums(r, x, shift, acc, n);
    finish_columns(r, acc, shift, y, n);
    for (int64_t i = 0; i < n && r->fold == ADD_EXP; i++)
        if (!isfinite(shift[i]))
            plain_F32(r, out + i);
}

/* --- the kernel of reductions ------------------------------------------- */

/* Compute n adjacent results from `out` on. */
typedef void (*columns_fn)(const struct axes_reduction *r, int64_t out,
                           int64_t n);

static void run_columns(const struct byi_call *call,
                        const struct axes_reduction *r, columns_fn columns)
{
    const struct byi_box *kept = &r->axes.kept;
    const int64_t inner = kept->dims[kept->rank - 1];
    const int64_t outer = kept->count / inner;
    const int team = byi_team(call, kept->count * r->axes.reduced.count);
    const int64_t share = outer % team == 0 ? inner : byi_ceil_div(inner, team);
    const int64_t wide = byi_min(COLUMNS, byi_ceil_div(share, 64) * 64);
    const int64_t parts = byi_ceil_div(inner, wide);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < outer * parts; task++) {
        const int64_t from = task % parts * wide;
        columns(r, task / parts * inner + from, byi_min(wide, inner - from));
    }
}

static enum byoc_status read_axes(const struct byi_call *call,
                                  struct axes_reduction *r,
                                  struct byoc_error *err)
{
    const bool dyn = call->op->id == BYI_OP_DYN_REDUCE;
    bool reduced[BYI_MAX_RANK] = {false};
    uint32_t n = 0, axis = 0;
    const int64_t *list = dyn ? NULL : byi_attr_ints(call->attrs, "axis", &n);
    if (dyn)
        n = (uint32_t)call->in[1].dims[0];
    for (uint32_t i = 0; i < n; i++) {
        if (dyn)
            BYI_TRY(byi_axis_operand(call, i, call->in->rank, &axis, err));
        reduced[dyn ? axis : byi_axis(list[i], call->in->rank)] = true;
    }
    if (n == 0 && !byi_attr_int(call->attrs, "noop_empty"))
        memset(reduced, true, sizeof reduced);
    byi_axes_split(call->in, reduced, &r->axes);
    return BYOC_OK;
}

/* The reduction: the call's operator, or for dyn.reduce the operator that the
 * attribute "function" names. */
static enum byi_op_id function_of(const struct byi_call *call)
{
    if (call->op->id != BYI_OP_DYN_REDUCE)
        return call->op->id;
    const char *name = byi_attr_string(call->attrs, "function");
    return byi_op_of_name(name, strlen(name))->id;
}

static void run_each(const struct byi_call *call,
                     const struct axes_reduction *r, one_fn one)
{
    const int team = byi_team(call, r->axes.kept.count * r->axes.reduced.count);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t out = 0; out < r->axes.kept.count; out++)
        one(r, out);
}

/* Whether the innermost axis is reduced, so that elements are in rows. */
static bool reduces_innermost(const struct axes_reduction *r)
{
    const struct byi_box *reduced = &r->axes.reduced;
    return reduced->rank && reduced->strides[reduced->rank - 1] == 1;
}

/* Whether the innermost axis is kept, so that results are in columns. */
static bool keeps_innermost(const struct axes_reduction *r)
{
    const struct byi_box *kept = &r->axes.kept;
    return kept->rank && kept->strides[kept->rank - 1] == 1;
}

static bool is_fast_extreme(const struct axes_reduction *r)
{
    return (r->fold == MAX || r->fold == MIN) &&
           byi_simd()->extreme_row[0][r->dtype];
}

/* The loop for one result whose elements are in rows, and the loop for columns;
 * NULL if there is none. */
static one_fn row_loop(const struct axes_reduction *r)
{
    if (is_fast_extreme(r))
        return extreme_row;
    return r->dtype == BYOC_F32 && r->fold != MUL ? sum_row : NULL;
}

static columns_fn columns_loop(const struct axes_reduction *r)
{
    if (is_fast_extreme(r))
        return extreme_columns;
    return r->dtype == BYOC_F32 ? sum_columns : NULL;
}

static enum byoc_status run_reduce(const struct byi_call *call, bool fast,
                                   struct byoc_error *err)
{
    const enum byi_op_id op = function_of(call);
    struct axes_reduction r = {
        .op = op,
        .fold = fold_of(op),
        .dtype = call->in->dtype,
        .x = call->in->data,
        .y = call->out->data,
    };
    BYI_TRY(read_axes(call, &r, err));
    if (!plain[call->in->dtype])
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    fast = fast && r.axes.reduced.count > 0 && r.axes.kept.count > 0;
    const one_fn one = fast && reduces_innermost(&r) ? row_loop(&r) : NULL;
    const columns_fn columns =
        fast && keeps_innermost(&r) ? columns_loop(&r) : NULL;
    if (columns)
        run_columns(call, &r, columns);
    else
        run_each(call, &r, one ? one : plain[r.dtype]);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(reduce)

BYI_FLOAT_KERNEL(reduce, reduce_run_f32, NULL)

#define REDUCE(id)                                                             \
    {                                                                          \
        BYI_OP_##id,                                                           \
        {                                                                      \
            reduce_run, reduce_scratch                                         \
        }                                                                      \
    }
static const struct byi_kernel_row rows[] = {
    REDUCE(SUM),        REDUCE(MEAN),       REDUCE(MAX),
    REDUCE(MIN),        REDUCE(PROD),       REDUCE(L1),
    REDUCE(L2),         REDUCE(LOG_SUM),    REDUCE(LOG_SUM_EXP),
    REDUCE(SUM_SQUARE), REDUCE(DYN_REDUCE),
};
const struct byi_kernel_rows byi_rows_reduce = {rows, BYI_COUNT(rows)};
