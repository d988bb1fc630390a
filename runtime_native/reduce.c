/* SPDX-License-Identifier: Apache-2.0 */
/* reduce.c: sums, extremes and norms over axes. Floats are summed in double,
 * integers in 64 bits modulo 2^64. Two fast paths compute many results at a
 * time (columns), or one result from long rows. No result depends on how
 * results are split between threads. */
#include "move.h"

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

struct axes_reduction {
    enum byi_op_id op;
    enum fold fold;
    enum byoc_dtype dtype;
    int64_t size; /* bytes of an element */
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
        plain_F32(r, out);
        return;
    }
    double acc = 0;
    for (int64_t row = 0; row < rows; row++)
        acc += sum_of_line(r, x + byi_box_offset(reduced, row * n), n, shift);
    *y = (float)finish(r->op, acc, (double)shift, reduced->count);
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

/* --- fast: many results at a time ----------------------------------------- */

/* Results are computed in columns: their accumulators are adjacent, and the
 * elements that one step adds to them are, too. Columns come from a tensor
 * (.., outer, n, inner), of which n is reduced, in one of three ways:
 *   direct       the `inner` elements of a row (n, inner) are the columns
 *   lanes        inner is short, and so is n: blocks (lanes, n * inner) are
 *                transposed to (n, inner, lanes), or if inner is 1 their rows
 *                are folded to one row first
 *   groups       inner is short and n is not: `group` rows (n, inner) are one
 *                row of more columns, whose accumulators are added at the end
 */

enum { GROUPED = 64 }; /* columns that groups make: few, as they are folded */

/* Number of rows that are summed in float before their sum is added to the
 * total in double. */
enum { SUMMED_ROWS = 32 };

/* Accumulators of n columns. */
struct columns {
    union {
        double floats[BYI_COLUMNS];
        int64_t ints[BYI_COLUMNS];
        uint64_t uints[BYI_COLUMNS];
        char extremes[BYI_COLUMNS * sizeof(int64_t)]; /* of the type of x */
    } acc;
    float partial[BYI_COLUMNS], shift[BYI_COLUMNS];
    int64_t n;
    int64_t n_partial; /* number of rows in partial[] */
    bool empty;        /* no element was added to extremes[] */
};

/* The columns of results [out, out + lanes * inner). */
struct tile {
    int64_t out, lanes, inner, group;
    const char *x; /* the first element of the first result */
    struct byi_box_rows lines;
};

static bool is_extreme(enum fold fold)
{
    return fold == MAX || fold == MIN;
}

/* Whether the accumulators are the partial sums of struct columns. */
static bool has_partial_sums(const struct axes_reduction *r, enum fold fold)
{
    return r->dtype == BYOC_F32 && !is_extreme(fold) && fold != MUL;
}

static enum byi_sum sum_of(enum fold fold)
{
    return fold == MUL ? BYI_TIMES : (enum byi_sum)fold;
}

/* Whether there are loops for columns of the operator and type. */
static bool has_columns(const struct axes_reduction *r)
{
    const struct byi_simd *simd = byi_simd();
    if (is_extreme(r->fold))
        return simd->extreme_rows[0][r->dtype] != NULL;
    return has_partial_sums(r, r->fold) ||
           simd->accumulate_wide[sum_of(r->fold)][r->dtype] != NULL;
}

static void start_columns(const struct axes_reduction *r, enum fold fold,
                          struct columns *c, int64_t n)
{
    c->n = n;
    c->n_partial = 0;
    c->empty = true;
    if (is_extreme(fold)) /* the first row replaces them */
        return;
    memset(c->partial, 0, (size_t)n * sizeof *c->partial);
    memset(&c->acc, 0, (size_t)n * sizeof *c->acc.ints);
    for (int64_t i = 0; i < n && fold == MUL; i++)
        if (byi_dtype_is_float(r->dtype))
            c->acc.floats[i] = 1;
        else
            c->acc.ints[i] = 1;
}

static void add_partial_sums(struct columns *c)
{
    for (int64_t i = 0; i < c->n; i++) {
        c->acc.floats[i] += (double)c->partial[i];
        c->partial[i] = 0;
    }
    c->n_partial = 0;
}

/* Add n > 0 columns of `rows` > 0 rows x, `pitch` elements apart. */
static void add_rows(const struct axes_reduction *r, enum fold fold,
                     struct columns *c, const void *x, int64_t rows,
                     int64_t pitch, int64_t n)
{
    const struct byi_simd *simd = byi_simd();
    if (is_extreme(fold)) {
        if (c->empty)
            memcpy(c->acc.extremes, x, (size_t)(n * r->size));
        c->empty = false;
        simd->extreme_rows[fold == MIN][r->dtype](x, rows, pitch,
                                                  c->acc.extremes, n);
        return;
    }
    if (!has_partial_sums(r, fold)) {
        simd->accumulate_wide[sum_of(fold)][r->dtype](x, rows, pitch, &c->acc,
                                                      n);
        return;
    }
    const float *at = x;
    for (int64_t i = 0, count = 0; i < rows; i += count) {
        count = byi_min(rows - i, SUMMED_ROWS - c->n_partial);
        simd->accumulate[fold](at + i * pitch, count, pitch, c->shift,
                               c->partial, n);
        c->n_partial += count;
        if (c->n_partial == SUMMED_ROWS)
            add_partial_sums(c);
    }
}

/* The loop that folds rows of n float32 numbers; NULL if there is none, or rows
 * are so short that they are transposed. */
static void (*lines_loop(const struct axes_reduction *r, enum fold fold,
                         int64_t n))(const float *, int64_t, int64_t, float *)
{
    const struct byi_simd *simd = byi_simd();
    if (r->dtype != BYOC_F32 || n < simd->lanes)
        return NULL;
    return is_extreme(fold) ? simd->extreme_lines[fold == MIN]
                            : simd->fold_lines[sum_of(fold)];
}

/* Add a line of elements (lanes, n, inner) from x on. */
static void add_line(const struct axes_reduction *r, enum fold fold,
                     const struct tile *t, struct columns *c, const char *x)
{
    const int64_t n = t->lines.n, columns = t->lanes * t->inner;
    _Alignas(64) char block[BYI_BLOCK_BYTES];
    if (t->lanes > 1 && t->inner == 1 && lines_loop(r, fold, n)) {
        lines_loop(r, fold, n)((const float *)(const void *)x, t->lanes, n,
                               (float *)(void *)block);
        add_rows(r, is_extreme(fold) ? fold : ADD, c, block, 1, 0, columns);
    } else if (t->lanes > 1) {
        byi_transpose((size_t)r->size, x, n * t->inner, t->lanes, n * t->inner,
                      block, t->lanes);
        add_rows(r, fold, c, block, n, columns, columns);
    } else if (t->group > 1) {
        const int64_t whole = n / t->group, wide = t->group * columns;
        add_rows(r, fold, c, x, whole, wide, wide);
        if (n % t->group)
            add_rows(r, fold, c, x + whole * wide * r->size, 1, 0,
                     n % t->group * columns);
    } else {
        add_rows(r, fold, c, x, n, t->lines.stride, columns);
    }
}

/* Fold the columns of `group` rows to those of one, which has n, by halves. */
static void fold_groups(const struct axes_reduction *r, enum fold fold,
                        struct columns *c, int64_t group, int64_t n)
{
    const struct byi_simd *simd = byi_simd();
    const enum byoc_dtype wide =
        byi_dtype_is_float(r->dtype) ? BYOC_F64 : BYOC_I64;
    const enum byi_sum sum = fold == MUL ? BYI_TIMES : BYI_ADD;
    for (int64_t half; group > 1; group = half) {
        half = (group + 1) / 2;
        const int64_t at = half * n, count = (group - half) * n;
        if (is_extreme(fold))
            simd->extreme_rows[fold == MIN][r->dtype](
                c->acc.extremes + at * r->size, 1, 0, c->acc.extremes, count);
        else
            simd->accumulate_wide[sum][wide](c->acc.ints + at, 1, 0,
                                             c->acc.ints, count);
    }
}

/* Compute the accumulators of a tile. */
static void fold_tile(const struct axes_reduction *r, enum fold fold,
                      const struct tile *t, struct columns *c)
{
    start_columns(r, fold, c, t->lanes * t->inner * t->group);
    for (int64_t line = 0; line < t->lines.rows; line++)
        add_line(r, fold, t, c,
                 t->x + byi_box_offset(&r->axes.reduced, line * t->lines.n) *
                            r->size);
    if (has_partial_sums(r, fold))
        add_partial_sums(c);
    if (t->group > 1)
        fold_groups(r, fold, c, t->group, t->lanes * t->inner);
}

/* Set c->shift[] to the maxima, for each group. */
static void find_shifts(const struct axes_reduction *r, const struct tile *t,
                        struct columns *c)
{
    const int64_t n = t->lanes * t->inner;
    fold_tile(r, MAX, t, c);
    for (int64_t i = 0; i < t->group; i++)
        memcpy(c->shift + i * n, c->acc.extremes, (size_t)n * sizeof *c->shift);
}

/* acc / count, truncated. The quotient of doubles is never rounded up to the
 * next integer if the operands have at most 52 bits. */
static int64_t mean_of_signed(int64_t acc, int64_t count)
{
    const uint64_t bound = (uint64_t)1 << 51;
    return U(acc) + bound < 2 * bound ? (int64_t)((double)acc / (double)count)
                                      : acc / count;
}

static uint64_t mean_of_unsigned(uint64_t acc, int64_t count)
{
    return acc < (uint64_t)1 << 51
               ? (uint64_t)(int64_t)((double)(int64_t)acc / (double)count)
               : acc / U(count);
}

static double mean_of_floats(double acc, int64_t count)
{
    return acc / (double)count;
}

/* Define the function that sets y[] to sums, means or products. */
#define FINISH(id, type, from, mean_of)                                        \
    static void finish_##id(const struct axes_reduction *r,                    \
                            const struct columns *c, void *to, int64_t n)      \
    {                                                                          \
        const int64_t count = r->axes.reduced.count;                           \
        type *y = to;                                                          \
        if (r->op == BYI_OP_MEAN)                                              \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = (type)mean_of(c->acc.from[i], count);                   \
        else                                                                   \
            for (int64_t i = 0; i < n; i++)                                    \
                y[i] = (type)c->acc.from[i];                                   \
    }
FINISH(F32, float, floats, mean_of_floats)
FINISH(F64, double, floats, mean_of_floats)
FINISH(I32, int32_t, ints, mean_of_signed)
FINISH(I64, int64_t, ints, mean_of_signed)
FINISH(U32, uint32_t, uints, mean_of_unsigned)
FINISH(U64, uint64_t, uints, mean_of_unsigned)

/* Set y[] to results that are functions of the accumulators. */
static void finish_functions(const struct axes_reduction *r,
                             const struct columns *c, void *to, int64_t n)
{
    const int64_t count = r->axes.reduced.count;
    struct byi_tensor y = {.data = to, .dtype = r->dtype};
    const bool floats = byi_dtype_is_float(r->dtype);
    if (r->op == BYI_OP_L2 && r->dtype == BYOC_F32) { /* vectorised */
        for (int64_t i = 0; i < n; i++)
            ((float *)to)[i] = (float)sqrt(c->acc.floats[i]);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double acc = floats                          ? c->acc.floats[i]
                           : byi_dtype_is_signed(r->dtype) ? D(c->acc.ints[i])
                                                           : D(c->acc.uints[i]);
        byi_tensor_set(&y, i, finish(r->op, acc, D(c->shift[i]), count));
    }
}

static void finish_columns(const struct axes_reduction *r,
                           const struct columns *c, void *y, int64_t n)
{
    static void (*const finishes[BYI_DTYPES])(const struct axes_reduction *,
                                              const struct columns *, void *,
                                              int64_t) = {
        [BYOC_F32] = finish_F32, [BYOC_F64] = finish_F64,
        [BYOC_I32] = finish_I32, [BYOC_I64] = finish_I64,
        [BYOC_U32] = finish_U32, [BYOC_U64] = finish_U64,
    };
    if (is_extreme(r->fold))
        memcpy(y, c->acc.extremes, (size_t)(n * r->size));
    else if (r->op == BYI_OP_L2 || r->op == BYI_OP_LOG_SUM ||
             r->op == BYI_OP_LOG_SUM_EXP)
        finish_functions(r, c, y, n);
    else
        finishes[r->dtype](r, c, y, n);
}

/* Compute the results of a tile. Columns are in the order (inner, lanes). */
static void run_tile(const struct axes_reduction *r, const struct tile *t)
{
    const int64_t n = t->lanes * t->inner;
    char *y = (char *)r->y + t->out * r->size;
    _Alignas(8) char turned[BYI_COLUMNS * sizeof(int64_t)];
    struct columns c;
    memset(c.shift, 0, (size_t)n * sizeof *c.shift);
    if (r->fold == ADD_EXP)
        find_shifts(r, t, &c);
    fold_tile(r, r->fold, t, &c);
    if (t->lanes == 1 || t->inner == 1) {
        finish_columns(r, &c, y, n);
    } else {
        finish_columns(r, &c, turned, n);
        byi_transpose((size_t)r->size, turned, t->lanes, t->inner, t->lanes, y,
                      t->inner);
    }
    for (int64_t i = 0; i < n && r->fold == ADD_EXP; i++)
        if (!isfinite(c.shift[i]))
            plain_F32(r, t->out + i % t->lanes * t->inner + i / t->lanes);
}

/* How the results are split into tiles. */
struct tiling {
    struct byi_box_rows lines;
    int64_t inner; /* adjacent results of a row (n, inner) */
    int64_t outer; /* adjacent blocks (n, inner) */
    int64_t lanes; /* blocks that are transposed together; 1: none */
    int64_t group;
    int64_t wide; /* most columns of a tile without lanes */
};

static struct tiling tiling_of(const struct axes_reduction *r)
{
    const struct byi_box *kept = &r->axes.kept;
    const bool inside = keeps_innermost(r);
    struct tiling t = {.lines = byi_box_rows(&r->axes.reduced),
                       .inner = inside ? kept->dims[kept->rank - 1] : 1,
                       .outer = 1,
                       .group = 1};
    if (kept->rank > (uint32_t)inside)
        t.outer = kept->dims[kept->rank - 1 - inside];
    /* elements that are not of 4 bytes are transposed one by one */
    t.lanes = byi_lanes(t.outer, t.lines.n, t.inner, (size_t)r->size,
                        r->size == sizeof(float) ? 256 : BYI_NARROW);
    if (t.lanes == 1 && t.inner < BYI_NARROW && t.lines.stride == t.inner)
        t.group = byi_min(t.lines.n, GROUPED / t.inner);
    return t;
}

static void run_lanes(const struct axes_reduction *r, const struct tiling *t,
                      int team)
{
    const int64_t outer = r->axes.kept.count / t->inner;
    const int64_t tasks = byi_ceil_div(t->outer, t->lanes);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < outer / t->outer * tasks; task++) {
        const int64_t from = task % tasks * t->lanes;
        const int64_t out = (task / tasks * t->outer + from) * t->inner;
        run_tile(r, &(struct tile){
                        .out = out,
                        .lanes = byi_min(t->lanes, t->outer - from),
                        .inner = t->inner,
                        .group = 1,
                        .x = (const char *)r->x +
                             byi_box_offset(&r->axes.kept, out) * r->size,
                        .lines = t->lines,
                    });
    }
}

static void run_columns(const struct axes_reduction *r, const struct tiling *t,
                        int team)
{
    const int64_t outer = r->axes.kept.count / t->inner;
    const int64_t share =
        outer % team == 0 ? t->inner : byi_ceil_div(t->inner, team);
    const int64_t wide = byi_min(BYI_COLUMNS, byi_ceil_div(share, 64) * 64);
    const int64_t tasks = byi_ceil_div(t->inner, wide);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < outer * tasks; task++) {
        const int64_t from = task % tasks * wide;
        const int64_t out = task / tasks * t->inner + from;
        run_tile(r, &(struct tile){
                        .out = out,
                        .lanes = 1,
                        .inner = byi_min(wide, t->inner - from),
                        .group = t->group,
                        .x = (const char *)r->x +
                             byi_box_offset(&r->axes.kept, out) * r->size,
                        .lines = t->lines,
                    });
    }
}

/* Whether the results are extremes of the rows of adjacent small blocks (n,
 * inner), or of long rows. */
static bool has_blocks(const struct axes_reduction *r, const struct tiling *t)
{
    const int64_t n = t->lines.n;
    if (!is_extreme(r->fold) || r->axes.reduced.rank != 1)
        return false;
    return t->inner == 1
               ? t->lanes == 1 && t->lines.stride == 1
               : n < BYI_NARROW && n * t->inner * r->size <= BYI_BLOCK_BYTES;
}

static void run_blocks(const struct axes_reduction *r, const struct tiling *t,
                       int team)
{
    const int64_t blocks = r->axes.kept.count / t->inner;
    const int64_t bytes = t->inner * r->size;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t part = 0; part < team; part++) {
        const int64_t first = blocks * part / team;
        byi_simd()->extreme_blocks[r->fold == MIN][r->dtype](
            (const char *)r->x + first * t->lines.n * bytes,
            blocks * (part + 1) / team - first, t->lines.n, t->inner,
            (char *)r->y + first * bytes);
    }
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
                     const struct axes_reduction *r, one_fn reduce)
{
    const int team = byi_team(call, r->axes.kept.count * r->axes.reduced.count);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t out = 0; out < r->axes.kept.count; out++)
        reduce(r, out);
}

/* The loop for one result whose elements are in long rows; NULL if there is
 * none. */
static one_fn row_loop(const struct axes_reduction *r)
{
    if (!reduces_innermost(r))
        return NULL;
    if (is_extreme(r->fold))
        return extreme_row;
    return has_partial_sums(r, r->fold) ? sum_row : NULL;
}

/* Whether results are the elements: one element is reduced to each. */
static bool copies(const struct axes_reduction *r)
{
    return r->axes.reduced.count == 1 &&
           (r->op == BYI_OP_SUM || r->op == BYI_OP_MEAN ||
            r->op == BYI_OP_PROD || is_extreme(r->fold));
}

static void run_fast(const struct byi_call *call,
                     const struct axes_reduction *r)
{
    const struct tiling t = tiling_of(r);
    const int team = byi_team(call, byi_count(call->in));
    if (copies(r))
        memcpy(r->y, r->x, (size_t)(r->axes.kept.count * r->size));
    else if (has_blocks(r, &t))
        run_blocks(r, &t, team);
    else if (t.lanes > 1)
        run_lanes(r, &t, team);
    else if (row_loop(r))
        run_each(call, r, row_loop(r));
    else
        run_columns(r, &t, team);
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
    };
    BYI_TRY(read_axes(call, &r, err));
    if (!plain[call->in->dtype])
        return byi_bad_dtype(call, call->in->dtype,
                             "a float or an integer type", err);
    if (fast && byi_count(call->in) > 0 && has_columns(&r))
        run_fast(call, &r);
    else
        run_each(call, &r, plain[r.dtype]);
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
static const struct byi_kernel_row rows[] = {
    REDUCE(SUM),        REDUCE(MEAN),       REDUCE(MAX),
    REDUCE(MIN),        REDUCE(PROD),       REDUCE(L1),
    REDUCE(L2),         REDUCE(LOG_SUM),    REDUCE(LOG_SUM_EXP),
    REDUCE(SUM_SQUARE), REDUCE(DYN_REDUCE),
};
const struct byi_kernel_rows byi_rows_reduce = {rows, BYI_COUNT(rows)};
