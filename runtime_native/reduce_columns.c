/* SPDX-License-Identifier: Apache-2.0 */
/* reduce_columns.c: reductions that compute many results at a time. No result
 * depends on how results are split between threads. */
#include "reduce.h"

#define TO_DOUBLE(v) ((double)(v))
#define TO_U64(v) ((uint64_t)(v))

/* Whether the innermost axis is kept, so that results are in columns. */
static bool keeps_innermost(const struct axes_reduction *r)
{
    const struct byi_box *kept = &r->axes.kept;
    return kept->rank && kept->strides[kept->rank - 1] == 1;
}

/* Results are computed in columns: their accumulators are adjacent, and the
 * elements that one step adds to them are, too. Columns come from a tensor
 * (.., outer, n, inner), of which n is reduced, in one of four ways:
 *   direct       the `inner` elements of a row (n, inner) are the columns
 *   joined       an axis outside of `outer` is reduced, too: adjacent blocks
 *                (n, inner) are one row of columns, whose accumulators are
 *                transposed and added at the end
 *   lanes        inner is short, and so is n: blocks (lanes, n * inner) are
 *                transposed to (n, inner, lanes), or if inner is 1 their rows
 *                are folded to one row first
 *   groups       inner is short and n is not: `group` rows (n, inner) are one
 *                row of more columns, whose accumulators are added at the end
 */

enum { GROUP_COLUMNS = 64 }; /* columns of a group's row, which are folded */

/* Number of rows that are summed in float before their sum is added to the
 * total in double. */
enum { MAX_PARTIAL_ROWS = 32 };

/* Accumulators of n columns. */
struct columns {
    union {
        double floats[BYI_COLUMNS];
        int64_t ints[BYI_COLUMNS];
        uint64_t uints[BYI_COLUMNS];
        char extremes[BYI_COLUMNS * sizeof(int64_t)]; /* of the type of x */
    } acc;
    float partial[BYI_COLUMNS]; /* sums of rows that are not in `acc` yet */
    float shift[BYI_COLUMNS];   /* of log-sum-exp */
    int64_t n;
    int64_t n_partial; /* number of rows added to partial[] */
    bool empty;        /* no element was added to extremes[] */
};

/* The columns of results [out, out + lanes * inner). */
struct tile {
    int64_t out, lanes, inner, group;
    bool joined;
    const char *x; /* the first element of the first result */
    struct byi_box_rows lines;
};

bool byi_reduction_has_columns(const struct axes_reduction *r)
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
        count = byi_min(rows - i, MAX_PARTIAL_ROWS - c->n_partial);
        simd->accumulate[fold](at + i * pitch, count, pitch, c->shift,
                               c->partial, n);
        c->n_partial += count;
        if (c->n_partial == MAX_PARTIAL_ROWS)
            add_partial_sums(c);
    }
}

/* The loop that folds rows of n floats; NULL if there is none, or rows are so
 * short that they are transposed. */
static void (*each_row_loop(const struct axes_reduction *r, enum fold fold,
                            int64_t n))(const void *, int64_t, int64_t, void *)
{
    const struct byi_simd *simd = byi_simd();
    if (n < (r->dtype == BYOC_F64 ? BYI_NARROW / 4 : simd->lanes))
        return NULL;
    if (is_extreme(fold))
        return r->dtype == BYOC_F32 ? simd->extreme_each_row[fold == MIN]
                                    : NULL;
    return simd->fold_each_row[sum_of(fold)][r->dtype];
}

/* Add a line of elements (lanes, n, inner) from x on. */
static void add_line(const struct axes_reduction *r, enum fold fold,
                     const struct tile *t, struct columns *c, const char *x)
{
    const int64_t n = t->lines.n, columns = t->lanes * t->inner;
    _Alignas(64) char block[BYI_BLOCK_BYTES];
    if (t->lanes > 1 && t->inner == 1 && each_row_loop(r, fold, n)) {
        each_row_loop(r, fold, n)(x, t->lanes, n, block);
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

/* Fold `rows` rows of accumulators, `pitch` apart, into the n accumulators at
 * `to`. */
static void fold_accumulators(const struct axes_reduction *r, enum fold fold,
                              const void *from, int64_t rows, int64_t pitch,
                              void *to, int64_t n)
{
    const struct byi_simd *simd = byi_simd();
    const enum byoc_dtype wide =
        byi_dtype_is_float(r->dtype) ? BYOC_F64 : BYOC_I64;
    const enum byi_sum sum = fold == MUL ? BYI_TIMES : BYI_ADD;
    if (is_extreme(fold))
        simd->extreme_rows[fold == MIN][r->dtype](from, rows, pitch, to, n);
    else
        simd->accumulate_wide[sum][wide](from, rows, pitch, to, n);
}

/* The bytes of an accumulator. */
static int64_t accumulator_bytes(const struct axes_reduction *r, enum fold fold)
{
    return is_extreme(fold) ? r->size : (int64_t)sizeof(int64_t);
}

/* Fold the accumulators of `group` rows of n columns to those of one row, by
 * halves. */
static void fold_groups(const struct axes_reduction *r, enum fold fold,
                        struct columns *c, int64_t group, int64_t n)
{
    char *acc = c->acc.extremes;
    for (int64_t half; group > 1; group = half) {
        half = (group + 1) / 2;
        fold_accumulators(r, fold, acc + half * n * accumulator_bytes(r, fold),
                          1, 0, acc, (group - half) * n);
    }
}

/* Add the blocks (lanes, n, inner) of a tile, whose elements are the columns,
 * and fold these to columns (inner, lanes). */
static void fold_joined(const struct axes_reduction *r, enum fold fold,
                        const struct tile *t, struct columns *c)
{
    const struct byi_box *reduced = &r->axes.reduced;
    const int64_t outer = reduced->rank - 2, n = t->lines.n;
    const int64_t rows = reduced->dims[outer], columns = t->lanes * t->inner;
    const int64_t bytes = accumulator_bytes(r, fold);
    _Alignas(64) char block[BYI_COLUMNS * sizeof(int64_t)];
    for (int64_t line = 0; line < t->lines.rows; line += rows)
        add_rows(r, fold, c, t->x + byi_box_offset(reduced, line * n) * r->size,
                 rows, reduced->strides[outer], n * columns);
    if (has_partial_sums(r, fold))
        add_partial_sums(c);
    byi_transpose((size_t)bytes, &c->acc, n * t->inner, t->lanes, n * t->inner,
                  block, t->lanes);
    memcpy(&c->acc, block, (size_t)(columns * bytes));
    fold_accumulators(r, fold, block + columns * bytes, n - 1, columns, &c->acc,
                      columns);
    c->n = columns;
}

/* Compute the accumulators of a tile. */
static void fold_tile(const struct axes_reduction *r, enum fold fold,
                      const struct tile *t, struct columns *c)
{
    start_columns(r, fold, c,
                  t->lanes * t->inner * (t->joined ? t->lines.n : t->group));
    if (t->joined) {
        fold_joined(r, fold, t, c);
        return;
    }
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
    return TO_U64(acc) + bound < 2 * bound
               ? (int64_t)((double)acc / (double)count)
               : acc / count;
}

static uint64_t mean_of_unsigned(uint64_t acc, int64_t count)
{
    return acc < (uint64_t)1 << 51
               ? (uint64_t)(int64_t)((double)(int64_t)acc / (double)count)
               : acc / TO_U64(count);
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
        const double acc = floats ? c->acc.floats[i]
                           : byi_dtype_is_signed(r->dtype)
                               ? TO_DOUBLE(c->acc.ints[i])
                               : TO_DOUBLE(c->acc.uints[i]);
        byi_tensor_set(
            &y, i,
            byi_reduction_finish(r->op, acc, TO_DOUBLE(c->shift[i]), count));
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
    _Alignas(8) char results[BYI_COLUMNS * sizeof(int64_t)];
    struct columns c;
    memset(c.shift, 0, (size_t)n * sizeof *c.shift);
    if (r->fold == ADD_EXP)
        find_shifts(r, t, &c);
    fold_tile(r, r->fold, t, &c);
    if (t->lanes == 1 || t->inner == 1) {
        finish_columns(r, &c, y, n);
    } else {
        finish_columns(r, &c, results, n);
        byi_transpose((size_t)r->size, results, t->lanes, t->inner, t->lanes, y,
                      t->inner);
    }
    for (int64_t i = 0; i < n && r->fold == ADD_EXP; i++)
        if (!isfinite(c.shift[i]))
            r->plain(r, t->out + i % t->lanes * t->inner + i / t->lanes);
}

/* How the results are split into tiles. */
struct tiling {
    struct byi_box_rows lines;
    int64_t inner; /* adjacent results of a row (n, inner) */
    int64_t outer; /* adjacent blocks (n, inner) */
    int64_t lanes; /* blocks that are transposed together; 1: none */
    bool joined;
    int64_t group;
};

static struct tiling tiling_of(const struct axes_reduction *r, int team)
{
    const struct byi_box *kept = &r->axes.kept;
    const bool inner_kept = keeps_innermost(r);
    struct tiling t = {.lines = byi_box_rows(&r->axes.reduced),
                       .inner = inner_kept ? kept->dims[kept->rank - 1] : 1,
                       .outer = 1,
                       .group = 1};
    if (kept->rank > (uint32_t)inner_kept)
        t.outer = kept->dims[kept->rank - 1 - inner_kept];
    const int64_t most = BYI_COLUMNS / (t.lines.n * t.inner);
    t.joined = r->axes.reduced.rank > 1 && r->fold != ADD_EXP && most > 1;
    if (t.joined) {
        t.lanes = byi_min(most, byi_ceil_div(t.outer, team));
        return t;
    }
    /* elements that are not of 4 bytes are transposed one by one */
    t.lanes = byi_lanes(t.outer, t.lines.n, t.inner, (size_t)r->size,
                        r->size == sizeof(float) ? 256 : BYI_NARROW);
    if (t.lanes == 1 && t.inner < BYI_NARROW && t.lines.stride == t.inner)
        t.group = byi_min(t.lines.n, GROUP_COLUMNS / t.inner);
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
                        .joined = t->joined,
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

static void run_extremes(const struct axes_reduction *r, const struct tiling *t,
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

bool byi_reduction_run_blocks(const struct axes_reduction *r, int team)
{
    const struct tiling t = tiling_of(r, team);
    if (has_blocks(r, &t))
        run_extremes(r, &t, team);
    else if (t.lanes > 1 || t.joined)
        run_lanes(r, &t, team);
    else
        return false;
    return true;
}

void byi_reduction_run_columns(const struct axes_reduction *r, int team)
{
    const struct tiling tiling = tiling_of(r, team), *t = &tiling;
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
