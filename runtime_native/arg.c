/* SPDX-License-Identifier: Apache-2.0 */
/* arg.c: argmax and argmin along an axis: x (outer, n, inner) -> (outer,
 * inner). There are fast paths: rows, if inner is 1; columns; and, for a small
 * inner, several blocks (n, inner) at a time. */
#include "kernel.h"

#define NAN_OF(v) ((v) != (v))
#define NEVER(v) false
/* Find the first or the last extreme; NaN counts as an extreme. */
#define INDEX(id, type, is_nan)                                                \
    static int64_t index_##id(const struct byi_index_search *p, int64_t out)   \
    {                                                                          \
        const type *x = (const type *)p->x +                                   \
                        out / p->inner * p->n * p->inner + out % p->inner;     \
        type best = x[0];                                                      \
        int64_t at = 0;                                                        \
        for (int64_t i = 1; i < p->n; i++) {                                   \
            const type v = x[i * p->inner];                                    \
            const bool better = p->largest ? v > best : v < best;              \
            const bool same = v == best || (is_nan(v) && is_nan(best));        \
            const bool first_nan = is_nan(v) && !is_nan(best);                 \
            if (better || first_nan || (same && p->last)) {                    \
                best = v;                                                      \
                at = i;                                                        \
            }                                                                  \
        }                                                                      \
        return at;                                                             \
    }
INDEX(F32, float, NAN_OF)
INDEX(F64, double, NAN_OF)
#define INDEX_INT(id, type) INDEX(id, type, NEVER)
BYI_EACH_INT(INDEX_INT)

static int64_t index_row(const struct byi_index_search *p, int64_t row)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t bytes = p->n * (int64_t)byoc_dtype_size(p->dtype);
    const char *x = (const char *)p->x + row * bytes;
    _Alignas(8) char best[8];
    memcpy(best, x, byoc_dtype_size(p->dtype));
    simd->extreme_row[!p->largest][p->dtype](x, p->n, best);
    return simd->find[p->dtype](x, p->n, best, p->last);
}

/* Compute n adjacent results of rows x, `pitch` elements apart. */
static void index_columns(const struct byi_index_search *p, const char *x,
                          int64_t pitch, int64_t *y, int64_t n)
{
    const int64_t size = (int64_t)byoc_dtype_size(p->dtype);
    _Alignas(8) char best[BYI_COLUMNS * sizeof(int64_t)];
    int32_t index[BYI_COLUMNS];
    memcpy(best, x, (size_t)(n * size));
    byi_simd()->extreme_rows[!p->largest][p->dtype](x, p->n, pitch, best, n);
    for (int64_t i = 0; i < n; i++)
        index[i] = -1;
    for (int64_t k = 0; k < p->n; k++)
        byi_simd()->mark[p->dtype](x + k * pitch * size, best, (int32_t)k,
                                   p->last, index, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = index[i];
}

/* How many adjacent rows of few columns to treat as one long row, so that at
 * least 8 long rows remain. */
static int64_t folded_rows(const struct byi_index_search *p)
{
    return byi_min(BYI_COLUMNS / p->inner, p->n / 8);
}

/* Set y[] to the row in which each of few columns has its extreme best[], in
 * the first p->n / fold long rows of `fold` rows each. Leaves y[i], which is a
 * row or -1, if the extreme is not in these rows. */
static void find_folded(const struct byi_index_search *p, const char *x,
                        const char *best, int64_t fold, int64_t *y)
{
    const int64_t size = (int64_t)byoc_dtype_size(p->dtype);
    const int64_t folded_size = fold * p->inner;
    int32_t index[BYI_COLUMNS];
    for (int64_t i = 0; i < folded_size; i++)
        index[i] = -1;
    for (int64_t k = 0; k < p->n / fold; k++)
        byi_simd()->mark[p->dtype](x + k * folded_size * size, best, (int32_t)k,
                                   p->last, index, folded_size);
    for (int64_t row = 0, i = 0; row < fold; row++)
        for (int64_t *to = y; to < y + p->inner; to++, i++) {
            const int64_t at = index[i] * fold + row;
            if (index[i] >= 0 && (*to < 0 || (p->last ? at > *to : at < *to)))
                *to = at;
        }
}

/* Compute the results of a block (n, inner) of few columns: fold rows to rows
 * of about BYI_COLUMNS columns. */
static void index_folded(const struct byi_index_search *p, const char *x,
                         int64_t *y)
{
    void (*const extremes)(const void *, int64_t, int64_t, void *, int64_t) =
        byi_simd()->extreme_rows[!p->largest][p->dtype];
    const int64_t bytes = p->inner * (int64_t)byoc_dtype_size(p->dtype);
    const int64_t fold = folded_rows(p), whole = p->n / fold * fold;
    _Alignas(8) char long_row[BYI_COLUMNS * sizeof(int64_t)];
    _Alignas(8) char best[BYI_COLUMNS * sizeof(int64_t)];
    memcpy(long_row, x, (size_t)(fold * bytes));
    extremes(x, whole / fold, fold * p->inner, long_row, fold * p->inner);
    memcpy(best, long_row, (size_t)bytes);
    extremes(long_row, fold, p->inner, best, p->inner);
    if (whole < p->n)
        extremes(x + whole * bytes, p->n - whole, p->inner, best, p->inner);
    for (int64_t i = 1; i < fold; i++)
        memcpy(best + i * bytes, best, (size_t)bytes);
    for (int64_t i = 0; i < p->inner; i++)
        y[i] = -1;
    find_folded(p, x, best, fold, y);
    struct byi_index_search rest = *p;
    int64_t others[BYI_COLUMNS];
    rest.n = p->n - whole;
    for (int64_t i = 0; i < p->inner; i++)
        others[i] = -1;
    find_folded(&rest, x + whole * bytes, best, 1, others);
    for (int64_t i = 0; i < p->inner; i++)
        if (others[i] >= 0 && (p->last || y[i] < 0))
            y[i] = whole + others[i];
}

static void run_columns(const struct byi_index_search *p, int team, int64_t *y)
{
    const int64_t parts = byi_ceil_div(p->inner, BYI_COLUMNS);
    const int64_t size = (int64_t)byoc_dtype_size(p->dtype);
    const bool folds = folded_rows(p) > 1;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < p->outer * parts; task++) {
        const int64_t outer = task / parts, from = task % parts * BYI_COLUMNS;
        const char *x =
            (const char *)p->x + (outer * p->n * p->inner + from) * size;
        int64_t *to = y + outer * p->inner + from;
        if (folds)
            index_folded(p, x, to);
        else
            index_columns(p, x, p->inner, to,
                          byi_min(BYI_COLUMNS, p->inner - from));
    }
}

/* Compute the results of `lanes` blocks (n, inner) at a time, transposed so
 * that each block is a column of every row. */
static void run_lanes(const struct byi_index_search *p, int64_t lanes, int team,
                      int64_t *y)
{
    const size_t size = byoc_dtype_size(p->dtype);
    const int64_t block_size = p->n * p->inner;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t at = 0; at < p->outer; at += lanes) {
        const int64_t count = byi_min(lanes, p->outer - at);
        _Alignas(64) char block[BYI_BLOCK_BYTES];
        int64_t results[BYI_COLUMNS];
        byi_transpose(size,
                      (const char *)p->x + at * block_size * (int64_t)size,
                      block_size, count, block_size, block, count);
        index_columns(p, block, count * p->inner, results, count * p->inner);
        byi_transpose(sizeof *y, results, count, p->inner, count,
                      y + at * p->inner, p->inner);
    }
}

static int64_t (*const plain[BYI_DTYPES])(const struct byi_index_search *,
                                          int64_t) = {
#define ROW(id, type) [BYOC_##id] = index_##id,
    BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
};

void byi_index_search_run(const struct byi_index_search *p, int team,
                          int64_t *y)
{
    const bool fast = byi_simd()->find[p->dtype] != NULL && p->n <= INT32_MAX;
    const size_t size = byoc_dtype_size(p->dtype);
    const int64_t lanes =
        byi_lanes(p->outer, p->n, p->inner, size,
                  size == sizeof(float) ? 4 * BYI_NARROW : BYI_NARROW);
    if (p->n == 1) {
        memset(y, 0, (size_t)(p->outer * p->inner) * sizeof *y);
        return;
    }
    if (fast && lanes > 1) {
        run_lanes(p, lanes, team, y);
        return;
    }
    if (fast && p->inner > 1) {
        run_columns(p, team, y);
        return;
    }
    int64_t (*const find)(const struct byi_index_search *, int64_t) =
        fast ? index_row : plain[p->dtype];
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t out = 0; out < p->outer * p->inner; out++)
        y[out] = find(p, out);
}

static enum byoc_status arg_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    if (!plain[x->dtype])
        return byi_bad_dtype(call, x->dtype, "a float or an integer type", err);
    const struct byi_index_search p = {
        .dtype = x->dtype,
        .outer = byi_span(x, 0, axis),
        .n = x->rank ? x->dims[axis] : 1,
        .inner = x->rank ? byi_span(x, axis + 1, x->rank) : 1,
        .largest = call->op->id == BYI_OP_ARGMAX,
        .last = byi_attr_int(call->attrs, "select_last_index") != 0,
        .x = x->data,
    };
    if (byi_count(call->out) > 0)
        byi_index_search_run(&p, byi_team(call, byi_count(x)), call->out->data);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(arg, arg_run_f32, NULL)

BYI_KERNEL_ROWS(arg, {BYI_OP_ARGMAX, {arg_run, arg_scratch}},
                {BYI_OP_ARGMIN, {arg_run, arg_scratch}})
