/* SPDX-License-Identifier: Apache-2.0 */
/* idct.c: signal.idct8, the inverse of the transform of core/ops/dct.h along
 * the last axis, the second to last, or both. The float32 loops skip zero
 * coefficients, the majority in compressed images (idct.inc); float64 has plain
 * loops. The error of a float32 element is at most 20 * 2^-24 times the sum of
 * the absolute values of its terms (coefficient times basis value). */
#include "kernel.h"

#include "core/ops/dct.h"

/* x as blocks (outer, 8, inner), and the axes to transform. */
struct idct_blocks {
    int64_t outer, inner;
    bool rows, columns; /* transform the last axis; the second to last */
};

static struct idct_blocks describe(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in;
    struct idct_blocks d = {0};
    uint32_t n = 0;
    const int64_t *axes = byi_attr_ints(call->attrs, "axes", &n);
    for (uint32_t i = 0; i < n; i++)
        if (byi_axis(axes[i], x->rank) == x->rank - 1)
            d.rows = true;
        else
            d.columns = true;
    d.inner = d.columns ? x->dims[x->rank - 1] : 1;
    d.outer = byi_count(x) / byi_max(BYI_DCT * d.inner, 1);
    return d;
}

/* --- plain ---------------------------------------------------------------- */

/* Compute element (i, j) of a block of the result. */
static double sum_at(const struct byi_tensor *x, const struct idct_blocks *d,
                     int64_t block, int64_t i, int64_t j)
{
    double sum = 0;
    const int64_t from = block * BYI_DCT * d->inner;
    for (int64_t u = 0; u < BYI_DCT && d->columns; u++) {
        double row = 0;
        for (int64_t v = 0; v < BYI_DCT && d->rows; v++)
            row += byi_dct[v][j] * byi_get_real(x, from + u * d->inner + v);
        if (!d->rows)
            row = byi_get_real(x, from + u * d->inner + j);
        sum += byi_dct[u][i] * row;
    }
    for (int64_t v = 0; v < BYI_DCT && !d->columns; v++)
        sum += byi_dct[v][i] * byi_get_real(x, from + v);
    return sum;
}

enum byoc_status byi_idct8_plain(const struct byi_call *call,
                                 struct byoc_error *err)
{
    const struct idct_blocks d = describe(call);
    BYI_TRY(byi_check_wide(call, call->in->dtype, err));
    for (int64_t block = 0; block < d.outer; block++)
        for (int64_t i = 0; i < BYI_DCT; i++)
            for (int64_t j = 0; j < d.inner; j++)
                byi_put_real(call->out, (block * BYI_DCT + i) * d.inner + j,
                             sum_at(call->in, &d, block, i, j));
    return BYOC_OK;
}

/* --- float32 -------------------------------------------------------------- */

/* Transform blocks [begin, end). */
static void run_part(const struct byi_call *call, const struct idct_blocks *d,
                     int64_t begin, int64_t end)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t size = BYI_DCT * d->inner;
    const float *x = (const float *)call->in->data + begin * size;
    float *y = (float *)call->out->data + begin * size;
    if (!d->columns)
        simd->idct_rows(x, y, end - begin);
    else if (d->rows)
        simd->idct_blocks(x, y, end - begin);
    for (int64_t b = begin; b < end && !d->rows; b++, x += size, y += size)
        simd->idct_columns(x, y, d->inner, d->inner);
}

static enum byoc_status idct8_f32(const struct byi_call *call,
                                  struct byoc_error *err)
{
    if (call->in->dtype != BYOC_F32)
        return byi_idct8_plain(call, err);
    const struct idct_blocks d = describe(call);
    const int64_t parts =
        byi_min(d.outer, byi_team(call, 4 * byi_count(call->in)));
#pragma omp parallel for num_threads((int)parts) if (parts > 1)
    for (int64_t i = 0; i < parts; i++)
        run_part(call, &d, d.outer * i / parts, d.outer * (i + 1) / parts);
    return BYOC_OK;
}

BYI_FLOAT_KERNEL(idct8, idct8_f32, NULL)

BYI_KERNEL_ROWS(idct, {BYI_OP_IDCT8, {idct8_run, idct8_scratch}})
