/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, extremes and norms over axes. Floats are summed in double,
 * integers in 64 bits modulo 2^64. Two fast paths compute many results at a
 * time (reduce_columns.c), or one result from long rows. No result depends on
 * how results are split between threads. */
#include "reduce.h"

enum { EXPS = 512 }; /* powers of e in a buffer */

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

/* The shift of log-sum-exp, with which sums of e^(x - shift) do not overflow:
 * the maximum, or 0 if that is infinite or NaN. */
static double shift_of(double largest)
{
    return isfinite(largest) ? largest : 0;
}

#define TO_DOUBLE(v) ((double)(v))
#define FLOAT_FOLDS(id, type)                                                  \
    FOLD(add, id, type, double, 0, acc + TO_DOUBLE(v))                         \
    FOLD(largest, id, type, double, -INFINITY,                                 \
         TO_DOUBLE(v) > acc || v != v ? TO_DOUBLE(v) : acc)                    \
    FOLD(least, id, type, double, INFINITY,                                    \
         TO_DOUBLE(v) < acc || v != v ? TO_DOUBLE(v) : acc)                    \
    FOLD(times, id, type, double, 1, acc *TO_DOUBLE(v))                        \
    FOLD(add_abs, id, type, double, 0, acc + fabs(TO_DOUBLE(v)))               \
    FOLD(add_square, id, type, double, 0, acc + TO_DOUBLE(v) * TO_DOUBLE(v))   \
    FOLD(add_exp, id, type, double, 0, acc + exp(TO_DOUBLE(v) - shift))        \
    FOLD_TABLE(id, type, double)                                               \
    static void plain_##id(const struct axes_reduction *r, int64_t out)        \
    {                                                                          \
        const type *x =                                                        \
            (const type *)r->x + byi_box_offset(&r->axes.kept, out);           \
        double shift = 0;                                                      \
        if (r->fold == ADD_EXP)                                                \
            shift = shift_of(largest_##id(r, x, 0));                           \
        double acc = folds_##id[r->fold](r, x, shift);                         \
        ((type *)r->y)[out] = (type)byi_reduction_finish(                      \
            r->op, acc, shift, r->axes.reduced.count);                         \
    }
BYI_EACH_FLOAT(FLOAT_FOLDS)

/* For integers, `wide` is the 64-bit type of the same signedness, for
 * comparisons; sums and products are unsigned, so that they wrap. */
#define TO_U64(v) ((uint64_t)(v))
#define INT_FOLDS(id, type, wide, low, high)                                   \
    FOLD(add, id, type, wide, 0, (wide)(TO_U64(acc) + TO_U64(v)))              \
    FOLD(largest, id, type, wide, low, (wide)v > acc ? (wide)v : acc)          \
    FOLD(least, id, type, wide, high, (wide)v < acc ? (wide)v : acc)           \
    FOLD(times, id, type, wide, 1, (wide)(TO_U64(acc) * TO_U64(v)))            \
    FOLD(add_abs, id, type, wide, 0,                                           \
         (wide)(v > 0 ? TO_U64(acc) + TO_U64(v) : TO_U64(acc) - TO_U64(v)))    \
    FOLD(add_square, id, type, wide, 0,                                        \
         (wide)(TO_U64(acc) + TO_U64(v) * TO_U64(v)))                          \
    FOLD(add_exp, id, type, wide, 0,                                           \
         (wide)(TO_DOUBLE(acc) + exp(TO_DOUBLE(v))))                           \
    FOLD_TABLE(id, type, wide)                                                 \
    static void plain_##id(const struct axes_reduction *r, int64_t out)        \
    {                                                                          \
        const type *x =                                                        \
            (const type *)r->x + byi_box_offset(&r->axes.kept, out);           \
        struct byi_tensor y = {.data = r->y, .dtype = BYOC_##id};              \
        wide acc;                                                              \
        if (r->op == BYI_OP_LOG_SUM_EXP) {                                     \
            double sum = 0;                                                    \
            FOR_REDUCED(r, type, x, v, { sum += exp(TO_DOUBLE(v)); })          \
            byi_tensor_set(&y, out, log(sum));                                 \
            return;                                                            \
        }                                                                      \
        acc = folds_##id[r->fold](r, x, 0);                                    \
        if (r->op == BYI_OP_MEAN && r->axes.reduced.count)                     \
            acc = acc / (wide)r->axes.reduced.count;                           \
        if (r->op == BYI_OP_L2 || r->op == BYI_OP_LOG_SUM)                     \
            byi_tensor_set(&y, out,                                            \
                           byi_reduction_finish(r->op, TO_DOUBLE(acc), 0, 1)); \
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

static const reduce_one_fn plain[BYI_DTYPES] = {
#define ROW(id, type) [BYOC_##id] = plain_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

/* --- rows of many elements ------------------------------------------------ */

/* Set *best to the extreme of the elements that are reduced from x on. */
static void extreme_of(const struct axes_reduction *r, enum fold fold,
                       const void *x, void *best)
{
    const struct byi_box *reduced = &r->axes.reduced;
    const int64_t n = reduced->dims[reduced->rank - 1];
    byi_copy_element(best, x, (size_t)r->size);
    for (int64_t i = 0; i < reduced->count; i += n)
        byi_simd()->extreme_row[fold == MIN][r->dtype](
            (const char *)x + byi_box_offset(reduced, i) * r->size, n, best);
}

static void extreme_row(const struct axes_reduction *r, int64_t out)
{
    extreme_of(r, r->fold,
               (const char *)r->x +
                   byi_box_offset(&r->axes.kept, out) * r->size,
               (char *)r->y + out * r->size);
}

/* The sum of a row of n elements. */
static double sum_contiguous(const struct axes_reduction *r, const float *x,
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
        float exps[EXPS];
        double sum = 0;
        for (int64_t i = 0; i < n; i += EXPS)
            sum += simd->exp_sum(x + i, exps, byi_min(EXPS, n - i), shift);
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
        r->plain(r, out);
        return;
    }
    double acc = 0;
    for (int64_t row = 0; row < rows; row++)
        acc +=
            sum_contiguous(r, x + byi_box_offset(reduced, row * n), n, shift);
    *y = (float)byi_reduction_finish(r->op, acc, (double)shift, reduced->count);
}

/* sum_row() for float64. */
static void sum_row_f64(const struct axes_reduction *r, int64_t out)
{
    const struct byi_box_rows rows = byi_box_rows(&r->axes.reduced);
    const double *x = (const double *)r->x + byi_box_offset(&r->axes.kept, out);
    double acc = 0, sum;
    for (int64_t i = 0; i < rows.rows; i++, acc += sum)
        byi_simd()->fold_each_row[sum_of(r->fold)][BYOC_F64](
            x + byi_box_offset(&r->axes.reduced, i * rows.n), 1, rows.n, &sum);
    ((double *)r->y)[out] =
        byi_reduction_finish(r->op, acc, 0, r->axes.reduced.count);
}

/* Whether the innermost axis is reduced, so that elements are in rows. */
static bool reduces_innermost(const struct axes_reduction *r)
{
    const struct byi_box *reduced = &r->axes.reduced;
    return reduced->rank && reduced->strides[reduced->rank - 1] == 1;
}

/* --- the kernel of reductions ------------------------------------------- */

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
                     const struct axes_reduction *r, reduce_one_fn reduce)
{
    const int team = byi_team(call, r->axes.kept.count * r->axes.reduced.count);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t out = 0; out < r->axes.kept.count; out++)
        reduce(r, out);
}

/* The loop for one result whose elements are in long rows; NULL if there is
 * none. */
static reduce_one_fn row_loop(const struct axes_reduction *r)
{
    if (!reduces_innermost(r))
        return NULL;
    if (is_extreme(r->fold))
        return extreme_row;
    if (r->dtype == BYOC_F64 &&
        byi_simd()->fold_each_row[sum_of(r->fold)][BYOC_F64])
        return sum_row_f64;
    return has_partial_sums(r, r->fold) ? sum_row : NULL;
}

/* Whether each result is a copy of the only element that is reduced to it. */
static bool copies(const struct axes_reduction *r)
{
    return r->axes.reduced.count == 1 &&
           (r->op == BYI_OP_SUM || r->op == BYI_OP_MEAN ||
            r->op == BYI_OP_PROD || is_extreme(r->fold));
}

static void run_fast(const struct byi_call *call,
                     const struct axes_reduction *r)
{
    const int team = byi_team(call, byi_count(call->in));
    if (copies(r))
        memcpy(r->y, r->x, (size_t)(r->axes.kept.count * r->size));
    else if (byi_reduction_run_blocks(r, team))
        return;
    else if (row_loop(r))
        run_each(call, r, row_loop(r));
    else
        byi_reduction_run_columns(r, team);
}

static enum byoc_status run_reduce(const struct byi_call *call, bool fast,
                                   struct byoc_error *err)
{
    const enum byi_op_id op = function_of(call);
    struct axes_reduction r = {
        .op = op,
        .fold = fold_of(op),
        .dtype = call->in->dtype,
        .size = (int64_t)byoc_dtype_size(call->in->dtype),
        .x = call->in->data,
        .y = call->out->data,
        .plain = plain[call->in->dtype],
    };
    BYI_TRY(read_axes(call, &r, err));
    if (!r.plain)
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    if (fast && byi_count(call->in) > 0 && byi_reduction_has_columns(&r))
        run_fast(call, &r);
    else
        run_each(call, &r, r.plain);
    return BYOC_OK;
}

BYI_PLAIN_AND_FAST(reduce)

BYI_FLOAT_KERNEL(reduce, reduce_run_fast, NULL)

#define REDUCE(id)                                                             \
    {                                                                          \
        BYI_OP_##id,                                                           \
        {                                                                      \
            reduce_run, reduce_scratch                                         \
        }                                                                      \
    }
BYI_KERNEL_ROWS(reduce, REDUCE(SUM), REDUCE(MEAN), REDUCE(MAX), REDUCE(MIN),
                REDUCE(PROD), REDUCE(L1), REDUCE(L2), REDUCE(LOG_SUM),
                REDUCE(LOG_SUM_EXP), REDUCE(SUM_SQUARE), REDUCE(DYN_REDUCE))
