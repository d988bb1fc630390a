/* SPDX-License-Identifier: Apache-2.0 */
/* det.c: computes determinants of square matrices, by Gaussian elimination with
 * partial pivoting in double.
 *   x (..., n, n) -> (...)
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

/* Compute the determinant of m (n, n), which is overwritten. */
static double det_of(double *m, int64_t n)
{
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t pivot = k;
        for (int64_t i = k + 1; i < n; i++)
            if (fabs(m[i * n + k]) > fabs(m[pivot * n + k]))
                pivot = i;
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

BYI_FLOAT_KERNEL(det, det_run_f32, det_scratch_f32)

BYI_KERNEL_ROWS(det, {BYI_OP_DET, {det_run, det_scratch}})
