/* SPDX-License-Identifier: Apache-2.0 */
/* coupling.c: class probabilities by pairwise coupling.
 *
 * r_ij is the probability of class i given that it is i or j. The p with sum 1
 * that minimises sum_ij (r_ji p_i - r_ij p_j)^2 makes all elements of Q p equal
 * to p' Q p, where
 *   Q_ii = sum_j r_ji^2,  Q_ij = -r_ji r_ij
 * (Wu, Lin and Weng, Probability Estimates for Multi-class Classification by
 * Pairwise Coupling, 2004, algorithm 2). The iteration adjusts one class after
 * the other until all elements of Q p are within 0.005 / classes of p' Q p, in
 * at most max(100, classes) rounds. Every r is clamped into (0, 1). */
#include "kernel.h"

static uint64_t coupling_scratch_f32(const struct byi_call *call)
{
    const uint64_t n = (uint64_t)call->out->dims[1];
    return byi_align_bytes((n * n + 2 * n) * sizeof(double));
}

/* Compute Q of one row of pairs. */
static void fill_q(const struct byi_tensor *r, int64_t row, int64_t n,
                   double *q)
{
    const int64_t pairs = n * (n - 1) / 2;
    int64_t pair = row * pairs;

    for (int64_t i = 0; i < n; i++)
        q[i * n + i] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++) {
            const double probability = byi_tensor_float(r, pair++);
            const double r_ij = fmin(fmax(probability, 1e-7), 1 - 1e-7);
            const double r_ji = 1 - r_ij;
            q[i * n + i] += r_ji * r_ji;
            q[j * n + j] += r_ij * r_ij;
            q[i * n + j] = q[j * n + i] = -r_ji * r_ij;
        }
}

/* qp = Q p; returns p' Q p. */
static double product(const double *q, const double *p, int64_t n, double *qp)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++) {
        qp[i] = 0;
        for (int64_t j = 0; j < n; j++)
            qp[i] += q[i * n + j] * p[j];
        sum += p[i] * qp[i];
    }
    return sum;
}

/* Set p_i so that (Q p)_i = p' Q p, and rescale p to sum 1. Returns the new
 * p' Q p. */
static double adjust(const double *q, int64_t i, int64_t n, double sum,
                     double *p, double *qp)
{
    const double step = (sum - qp[i]) / q[i * n + i], scale = 1 + step;

    sum = (sum + step * (step * q[i * n + i] + 2 * qp[i])) / (scale * scale);
    p[i] += step;
    for (int64_t j = 0; j < n; j++) {
        qp[j] = (qp[j] + step * q[i * n + j]) / scale;
        p[j] /= scale;
    }
    return sum;
}

static bool converged(const double *qp, double sum, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (fabs(qp[i] - sum) >= 0.005 / (double)n)
            return false;
    return true;
}

/* Compute p; qp has n numbers. */
static void couple(const double *q, int64_t n, double *p, double *qp)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = 1 / (double)n;
    for (int64_t round = 0; round < byi_max(100, n); round++) {
        double sum = product(q, p, n, qp);
        if (converged(qp, sum, n))
            return;
        for (int64_t i = 0; i < n; i++)
            sum = adjust(q, i, n, sum, p, qp);
    }
}

/* pairs (rows, n * (n - 1) / 2) -> (rows, n) */
static enum byoc_status coupling_run_f32(const struct byi_call *call,
                                         struct byoc_error *err)
{
    const struct byi_tensor *r = call->in;
    const int64_t n = call->out->dims[1];
    double *q = call->scratch, *p = q + n * n, *qp = p + n;
    BYI_TRY(byi_check_wide(call, r->dtype, err));
    for (int64_t row = 0; row < call->out->dims[0]; row++) {
        fill_q(r, row, n, q);
        couple(q, n, p, qp);
        for (int64_t i = 0; i < n; i++)
            byi_tensor_set(call->out, row * n + i, p[i]);
    }
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(coupling, coupling_run_f32, coupling_scratch_f32)

BYI_KERNEL_ROWS(coupling,
                {BYI_OP_ML_COUPLING, {coupling_run, coupling_scratch}})
