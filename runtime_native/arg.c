/* SPDX-License-Identifier: Apache-2.0 */
/* arg.c: argmax and argmin along an axis: x (outer, n, inner) -> (outer,
 * inner). float32 and integers have two fast paths: rows, if inner is 1, and
 * columns. */
#include "kernel.h"

enum { COLUMNS = 512 }; /* results that are computed together */

struct arg_search {
    enum byoc_dtype dtype;
    int64_t n, inner;
    bool largest, last;
    const void *x;
    int64_t *y;
};

#define NAN_OF(v) ((v) != (v))
#define NEVER(v) false
/* Find the first or the last extreme; NaN counts as an extreme. */
#define INDEX(id, type, is_nan)                                                \
    static void index_##id(const struct arg_search *p, int64_t out)            \
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
        p->y[out] = at;                                                        \
    }
INDEX(F32, float, NAN_OF)
INDEX(F64, double, NAN_OF)
#define INDEX_INT(id, type) INDEX(id, type, NEVER)
BYI_EACH_INT(INDEX_INT)

static int64_t index_in_row(enum byoc_dtype dtype, const void *x, int64_t n,
                            bool largest, bool last)
{
    const struct byi_simd *simd = byi_simd();
    _Alignas(8) char best[8];
    memcpy(best, x, byoc_dtype_size(dtype));
    simd->extreme_row[!largest][dtype](x, n, best);
    return simd->find[dtype](x, n, best, last);
}

int64_t byi_extreme_index(const float *x, int64_t n, bool largest, bool last)
{
    return index_in_row(BYOC_F32, x, n, largest, last);
}

static void index_row(const struct arg_search *p, int64_t out)
{
    const int64_t bytes = p->n * (int64_t)byoc_dtype_size(p->dtype);
    p->y[out] = index_in_row(p->dtype, (const char *)p->x + out * bytes, p->n,
                             p->largest, p->last);
}

/* Compute n adjacent results, from y on, of one outer index; x is the first
 * element of the first one. */
static void index_columns(const struct arg_search *p, const char *x, int64_t *y,
                          int64_t n)
{
    const int64_t size = (int64_t)byoc_dtype_size(p->dtype);
    _Alignas(8) char best[COLUMNS * 8];
    int32_t index[COLUMNS];
    memcpy(best, x, (size_t)(n * size));
    byi_simd()->extreme_rows[!p->largest][p->dtype](x, p->n, p->inner, best, n);
    for (int64_t i = 0; i < n; i++)
        index[i] = -1;
    for (int64_t k = 0; k < p->n; k++)
        byi_simd()->mark[p->dtype](x + k * p->inner * size, best, (int32_t)k,
                                   p->last, index, n);
    for (int64_t i = 0; i < n; i++)
        y[i] = index[i];
}

static void run_arg_columns(const struct arg_search *p, int64_t results,
                            int team)
{
    const int64_t parts = byi_ceil_div(p->inner, COLUMNS);
    const int64_t size = (int64_t)byoc_dtype_size(p->dtype);
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t task = 0; task < results / p->inner * parts; task++) {
        const int64_t outer = task / parts, from = task % parts * COLUMNS;
        index_columns(
            p, (const char *)p->x + (outer * p->n * p->inner + from) * size,
            p->y + outer * p->inner + from, byi_min(COLUMNS, p->inner - from));
    }
}

static enum byoc_status arg_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    static void (*const index[BYI_DTYPES])(const struct arg_search *,
                                           int64_t) = {
#define ROW(id, type) [BYOC_##id] = index_##id,
        BYI_EACH_FLOAT(ROW) BYI_EACH_INT(ROW)
#undef ROW
    };
    const struct byi_tensor *x = call->in;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    if (!index[x->dtype])
        return byi_bad_dtype(call, x->dtype, "a float or an integer type", err);
    const struct arg_search p = {
        .dtype = x->dtype,
        .n = x->rank ? x->dims[axis] : 1,
        .inner = x->rank ? byi_span(x, axis + 1, x->rank) : 1,
        .largest = call->op->id == BYI_OP_ARGMAX,
        .last = byi_attr_int(call->attrs, "select_last_index") != 0,
        .x = x->data,
        .y = call->out->data,
    };
    const int64_t results = byi_count(call->out);
    const int team = byi_team(call, results * p.n);
    const bool fast = byi_simd()->find[x->dtype] != NULL;
    if (fast && p.inner > 1 && p.n <= INT32_MAX) {
        run_arg_columns(&p, results, team);
        return BYOC_OK;
    }
    void (*const one)(const struct arg_search *, int64_t) =
        fast && p.inner == 1 ? index_row : index[x->dtype];
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t out = 0; out < results; out++)
        one(&p, out);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(arg, arg_run_f32, NULL)

static const struct byi_kernel_row rows[] = {
    {BYI_OP_ARGMAX, {arg_run, arg_scratch}},
    {BYI_OP_ARGMIN, {arg_run, arg_scratch}},
};
const struct byi_kernel_rows byi_rows_arg = {rows, BYI_COUNT(rows)};
