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
static int64_t pivot_row(const double *m, int64_t n, int64_t k)
{
    int64_t pivot = k;

    for (int64_t i = k + 1; i < n; i++)
        if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
            pivot = i;
    return pivot;
}

/* Compute the determinant of m (n, n), which is overwritten. */
static double det_of(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        const int64_t pivot = pivot_row(m, n, k);
        if (pivot != k) {
            swap_rows(m + pivot * n, m + k * n, n);
            det = -det;
        }
        det *= m[k * n + k];
        if (m[k * n + k] == 0)
            return det;
        for (int64_t i = k + 1; i < n; i++) {
            const double factor = m[i * n + k] / m[k * n + k];
            for (int64_t j = k; j < n; j++)
                m[i * n + j] -= factor * m[k * n + j];
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

static uint64_t inverse_scratch_f32(const struct byi_call *call)
{
    return 2 * det_scratch_f32(call);
}

/* Subtract multiples of row k of m and of inv from the other rows, so that
 * column k of m becomes that of the identity. */
static void eliminate_column(double *m, double *inv, int64_t n, int64_t k)
{
    const double pivot = m[k * n + k];

    for (int64_t j = 0; j < n; j++) {
        m[k * n + j] /= pivot;
        inv[k * n + j] /= pivot;
    }
    for (int64_t i = 0; i < n; i++) {
        const double factor = m[i * n + k];
        for (int64_t j = 0; j < n && i != k; j++) {
            m[i * n + j] -= factor * m[k * n + j];
            inv[i * n + j] -= factor * inv[k * n + j];
        }
    }
}

/* Compute the inverse of m (n, n), which is overwritten. Elements of the
 * inverse of a singular matrix are infinite or NaN. */
static void invert(double *m, double *inv, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        inv[i] = i % (n + 1) == 0;
    for (int64_t k = 0; k < n; k++) {
        const int64_t pivot = pivot_row(m, n, k);
        if (pivot != k) {
            swap_rows(m + pivot * n, m + k * n, n);
            swap_rows(inv + pivot * n, inv + k * n, n);
        }
        eliminate_column(m, inv, n, k);
    }
}

static enum byoc_status inverse_run_f32(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t n = x->dims[x->rank - 1], size = n * n;
    double *m = call->scratch, *inv = m + size;

    BYI_TRY(byi_check_wide(call, x->dtype, err));
    for (int64_t at = 0; at < byi_count(call->out); at += size) {
        for (int64_t i = 0; i < size; i++)
            m[i] = byi_tensor_float(x, at + i);
        invert(m, inv, n);
        for (int64_t i = 0; i < size; i++)
            byi_tensor_set(call->out, at + i, inv[i]);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(det, det_run_f32, det_scratch_f32)
BYI_FLOAT_KERNEL(inverse, inverse_run_f32, inverse_scratch_f32)

BYI_KERNEL_ROWS(det, {BYI_OP_DET, {det_run, det_scratch}},
                {BYI_OP_INVERSE, {inverse_run, inverse_scratch}})
