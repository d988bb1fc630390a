/* SPDX-License-Identifier: Apache-2.0 */
/* det.c: computes determinants and inverses of square matrices, by Gaussian
 * and Gauss-Jordan elimination with partial pivoting in double.
 *   det(x (..., n, n)) -> (...)
 *   inverse(x (..., n, n)) -> (..., n, n)
 */
#include "kernel.h"

static uint64_t det_scratch_f32(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in;
    const uint64_t n = (uint64_t)x->dims[x->rank - 1];
    return byi_align_bytes(n * n * sizeof(double));
}

static void swap_rows(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const double t = a[i];
        a[i] = b[i];
        b[i] = t;
    }
}

/* Returns the row from k on with the largest element in column k. */
static int64_t pivot_row(const double *m, int64_t n, int64_t pitch, int64_t k)
{
    int64_t pivot = k;

    for (int64_t i = k + 1; i < n; i++)
        if (fabs(m[i * pitch + k]) > fabs(m[pivot * pitch + k]))
            pivot = i;
    return pivot;
}

/* Compute the determinant of m (n, n), which is overwritten. */
static double det_of(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t pivot = pivot_row(m, n, n, k);
        if (pivot != k) {
            swap_rows(m + pivot * n, m + k * n, n);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0)
            return det;
        for (int64_t i = k + 1; i < n; i++) {
            const double f = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= f * m[k * n + j];
        }
    }
    return det;
}

static enum byoc_status det_run_f32(const struct byi_call *call,
                                    struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t n = x->dims[x->rank - 1];
    double *m = call->scratch;
    BYI_TRY(byi_check_wide(call, x->dtype, err));
    for (int64_t batch = 0; batch < byi_count(call->out); batch++) {
        for (int64_t i = 0; i < n * n; i++)
            m[i] = byi_tensor_float(x, batch * n * n + i);
        byi_tensor_set(call->out, batch, det_of(m, n));
    }
    return BYOC_OK;
}

/* --- inverse -------------------------------------------------------------- */

/* Columns that are eliminated together, before the other columns change;
 * elements to which rows are padded, since products read whole vectors. */
enum { BLOCK = 16, PADDING = 8 };

/* A matrix that is inverted in place: column k of the inverse replaces column k
 * as soon as that has been eliminated. */
struct inversion {
    int64_t n, pitch;
    double *m;       /* (n, pitch) */
    double *rows;    /* (BLOCK, pitch): rows of m that others are changed by */
    double *factors; /* (n): multiples of such a row */
    int64_t *order;  /* (n): the number that row k of m has in the input */
};

/* Lay out the arrays at `base`, or only count *bytes if that is NULL. */
static struct inversion inversion_at(char *base, int64_t n, uint64_t *bytes)
{
    const int64_t pitch = byi_ceil_div(n, PADDING) * PADDING;
    const uint64_t row = (uint64_t)pitch * sizeof(double);
    struct inversion v = {.n = n, .pitch = pitch};
    *bytes = 0;
    v.m = byi_take_bytes(base, bytes, (uint64_t)n * row);
    v.rows = byi_take_bytes(base, bytes, BLOCK * row);
    v.factors = byi_take_bytes(base, bytes, row);
    v.order = byi_take_bytes(base, bytes, (uint64_t)n * sizeof *v.order);
    return v;
}

static uint64_t inverse_scratch_f32(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in;
    uint64_t bytes;
    inversion_at(NULL, x->dims[x->rank - 1], &bytes);
    return bytes * call->threads;
}

/* Add factors (n, count), `pitch` apart, times the first `count` of v->rows to
 * columns j .. end - 1 of m. */
static void add_rows(const struct inversion *v, const double *factors,
                     int64_t pitch, int64_t count, int64_t j, int64_t end)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t most = simd->panel_bytes / (int64_t)sizeof(double);
    for (; j < end; j += most) {
        const struct byi_panel panel = {.a = factors,
                                        .b = v->rows + j,
                                        .c = v->m + j,
                                        .m = v->n,
                                        .n = byi_min(most, end - j),
                                        .k = count,
                                        .a_rs = pitch,
                                        .a_cs = 1,
                                        .b_rs = v->pitch,
                                        .c_rs = v->pitch,
                                        .add = true};
        simd->product_panel[BYOC_F64](&panel);
    }
}

/* Move columns [j, end) of m's row k to row `i` of v->rows; zeros remain. */
static void take_row(const struct inversion *v, int64_t k, int64_t i, int64_t j,
                     int64_t end)
{
    const size_t bytes = (size_t)(end - j) * sizeof(double);
    memcpy(v->rows + i * v->pitch + j, v->m + k * v->pitch + j, bytes);
    memset(v->m + k * v->pitch + j, 0, bytes);
}

/* Eliminate column k in columns [j, end) of m. */
static void eliminate_column(const struct inversion *v, int64_t k, int64_t j,
                             int64_t end)
{
    double *column = v->m + k;
    const double factor = 1 / column[k * v->pitch];

    take_row(v, k, 0, j, end);
    v->rows[k] = 1;
    for (int64_t i = 0; i < v->n; i++) {
        v->factors[i] = -column[i * v->pitch] * factor;
        column[i * v->pitch] = 0;
    }
    v->factors[k] = factor;
    add_rows(v, v->factors, 1, 1, j, end);
}

/* Swap row k of m with the row from k on that has the largest element in column
 * k. */
static void choose_pivot(const struct inversion *v, int64_t k)
{
    const int64_t pivot = pivot_row(v->m, v->n, v->pitch, k);
    const int64_t number = v->order[k];

    if (pivot == k)
        return;
    swap_rows(v->m + pivot * v->pitch, v->m + k * v->pitch, v->n);
    v->order[k] = v->order[pivot];
    v->order[pivot] = number;
}

/* Replace m by the inverse of its rows in the order v->order, by Gauss-Jordan
 * elimination. Elements of the inverse of a singular matrix are infinite or
 * NaN. */
static void invert(const struct inversion *v)
{
    const int64_t n = v->n, pitch = v->pitch;
    for (int64_t j = 0; j < n; j += BLOCK) {
        const int64_t end = byi_min(n, j + BLOCK);
        for (int64_t k = j; k < end; k++) {
            choose_pivot(v, k);
            eliminate_column(v, k, j, end);
        }
        for (int64_t k = j; k < end; k++) {
            take_row(v, k, k - j, 0, j);
            take_row(v, k, k - j, end, n);
        }
        add_rows(v, v->m + j, pitch, end - j, 0, j);
        add_rows(v, v->m + j, pitch, end - j, end, n);
    }
}

/* Set y (n, n), from element `at` on, to the inverse of x. Swapping rows of a
 * matrix swaps columns of its inverse. */
static void invert_one(const struct inversion *v, const struct byi_tensor *x,
                       const struct byi_tensor *y, int64_t at)
{
    const int64_t n = v->n;

    for (int64_t i = 0; i < n; i++, at += n) {
        v->order[i] = i;
        for (int64_t j = 0; j < n; j++)
            v->m[i * v->pitch + j] = byi_get_real(x, at + j);
    }
    invert(v);
    at -= n * n;
    for (int64_t i = 0; i < n; i++, at += n)
        for (int64_t j = 0; j < n; j++)
            byi_put_real(y, at + v->order[j], v->m[i * v->pitch + j]);
}

static enum byoc_status inverse_run_f32(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t n = x->dims[x->rank - 1], size = byi_max(1, n * n);
    const int64_t matrices = byi_count(x) / size;
    const int team = byi_team_of_products(call, byi_count(x) * n);

    BYI_TRY(byi_check_wide(call, x->dtype, err));
#pragma omp parallel num_threads(team) if (team > 1)
    {
        uint64_t bytes;
        inversion_at(NULL, n, &bytes);
        const struct inversion v = inversion_at(
            (char *)call->scratch + (uint64_t)byi_part_number() * bytes, n,
            &bytes);
#pragma omp for
        for (int64_t i = 0; i < matrices; i++)
            invert_one(&v, x, call->out, i * size);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(det, det_run_f32, det_scratch_f32)
BYI_FLOAT_KERNEL(inverse, inverse_run_f32, inverse_scratch_f32)

BYI_KERNEL_ROWS(det, {BYI_OP_DET, {det_run, det_scratch}},
                {BYI_OP_INVERSE, {inverse_run, inverse_scratch}})
