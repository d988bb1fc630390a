/* SPDX-License-Identifier: Apache-2.0 */
/* row_codes.c: recovers the integers and the scales of dequantised weights. */
#include "row_codes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The n floats of a row, which are `stride` floats apart. */
struct codes_row {
    const float *at;
    int64_t n, stride;
};

/* Elements tested in loops without exits, which compilers vectorise. */
enum { BLOCK = 256 };

/* Elements [i, i + n) of the row, in place or copied to `copy`. */
static const float *read_block(const struct codes_row *row, int64_t i, int n,
                               float *copy)
{
    const float *at = row->at + i * row->stride;
    if (row->stride == 1)
        return at;
    for (int k = 0; k < n; k++)
        copy[k] = at[k * row->stride];
    return copy;
}

/* Round x to an integer, halves to even; |x| must be below 2^22. */
static inline float round_even(float x)
{
    const float rounder = 12582912.0f; /* 1.5 * 2^23 */
    return (x + rounder) - rounder;
}

static bool is_block_multiple(const float *x, int n, float scale,
                              float tolerance, int16_t *integers)
{
    float rounded[BLOCK];
    int bad = 0;
    for (int i = 0; i < n; i++)
        rounded[i] = round_even(x[i] / scale);
    for (int i = 0; i < n; i++)
        bad |= !(fabsf(rounded[i]) <= UINT8_MAX) |
               !(fabsf(rounded[i] * scale - x[i]) <= tolerance * fabsf(x[i]));
    if (bad)
        return false;
    for (int i = 0; i < n; i++)
        integers[i] = (int16_t)(int32_t)rounded[i];
    return true;
}

/* Whether each element differs from an integer up to 255 times `scale` by at
 * most `tolerance` times its magnitude; 0: they are equal, bit for bit. */
static bool is_multiple(const struct codes_row *row, float scale,
                        float tolerance, int16_t *integers)
{
    float copy[BLOCK];
    for (int64_t i = 0; i < row->n; i += BLOCK) {
        const int n = (int)byi_min(BLOCK, row->n - i);
        if (!is_block_multiple(read_block(row, i, n, copy), n, scale, tolerance,
                               integers + i))
            return false;
    }
    return true;
}

/* The largest absolute value; not finite if an element is not. */
static float largest_magnitude(const struct codes_row *row)
{
    float copy[BLOCK], largest;
    /* positive floats order like the integers of their bits */
    int32_t bits = 0;
    for (int64_t i = 0; i < row->n; i += BLOCK) {
        const int n = (int)byi_min(BLOCK, row->n - i);
        const float *x = read_block(row, i, n, copy);
        for (int k = 0; k < n; k++) {
            int32_t v;
            memcpy(&v, &x[k], sizeof v);
            v &= INT32_MAX;
            bits = v > bits ? v : bits;
        }
    }
    memcpy(&largest, &bits, sizeof largest);
    return largest;
}

/* Multiply the scale by the greatest common divisor of the integers (Euclid's
 * algorithm), unless the product is rounded and no longer fits. */
static void coarsen_scale(const struct codes_row *row, float tolerance,
                          float *scale, int16_t *integers)
{
    int common = 0;
    for (int64_t i = 0; i < row->n && common != 1; i++)
        for (int rest = abs(integers[i]); rest;) {
            const int last = common;
            common = rest;
            rest = last % rest;
        }
    if (common > 1 &&
        is_multiple(row, *scale * (float)common, tolerance, integers))
        *scale *= (float)common;
    else if (common > 1)
        is_multiple(row, *scale, tolerance, integers);
}

/* Whether the row is integers times `near`, or times one of the two floats next
 * to it, bit for bit. Sets the scale. */
static bool is_exact_near(const struct codes_row *row, float near, float *scale,
                          int16_t *integers)
{
    const float candidates[] = {near, nextafterf(near, 0), nextafterf(near, 1)};
    for (size_t k = 0; k < BYI_COUNT(candidates); k++) {
        *scale = candidates[k];
        if (*scale > 0 && is_multiple(row, *scale, 0, integers))
            return true;
    }
    return false;
}

/* Find a scale such that the largest element is a multiple of it. Tries
 * `guess`, then the largest element divided by each integer up to 255. The
 * quotient may be rounded. So all elements are compared with its multiples
 * within a tolerance first, then with those of the floats nearby bit for bit.
 */
static bool try_scales(const struct codes_row *row, float guess, bool inexact,
                       float *scale, int16_t *integers)
{
    const float largest = largest_magnitude(row);
    *scale = guess;
    if (!isfinite(largest) || is_multiple(row, *scale, 0, integers))
        return isfinite(largest);
    for (int i = 0; i < UINT8_MAX; i++) {
        /* from 128, the largest magnitude of an int8, down to 1, then from 255
         * down to 129 */
        const int count = (INT8_MAX + UINT8_MAX - i) % UINT8_MAX + 1;
        const float quotient = largest / (float)count;
        if (!is_multiple(row, quotient, BYI_SCALE_TOLERANCE, integers))
            continue;
        if (is_exact_near(row, quotient, scale, integers))
            return true;
        *scale = quotient;
        if (inexact && quotient > 0)
            return is_multiple(row, quotient, BYI_SCALE_TOLERANCE, integers);
    }
    return false;
}

bool byi_find_scale(const float *at, int64_t n, int64_t stride, float guess,
                    bool inexact, float *scale, int16_t *integers)
{
    const struct codes_row row = {at, n, stride};
    if (!try_scales(&row, guess, inexact, scale, integers))
        return false;
    coarsen_scale(&row, inexact ? BYI_SCALE_TOLERANCE : 0, scale, integers);
    return true;
}

/* --- matrices ------------------------------------------------------------- */

static uint64_t scales_bytes(int64_t rows)
{
    return byi_align_bytes((uint64_t)rows * sizeof(float));
}

uint64_t byi_row_codes_bytes(int64_t rows, int64_t columns)
{
    return scales_bytes(rows) + (uint64_t)(rows * columns);
}

struct byi_row_codes byi_row_codes_at(const void *at, int64_t rows,
                                      int64_t columns, bool transposed)
{
    return (struct byi_row_codes){.rows = rows,
                                  .columns = columns,
                                  .transposed = transposed,
                                  .scales = at,
                                  .codes =
                                      (const int8_t *)at + scales_bytes(rows)};
}

/* Whether 8-bit codes of these integers reproduce the row bit for bit,
 * including -0. */
static bool is_exact(const struct codes_row *row, float scale,
                     const int16_t *integers)
{
    for (int64_t i = 0; i < row->n; i++) {
        const float product = (float)integers[i] * scale;
        if (integers[i] < INT8_MIN || integers[i] > INT8_MAX ||
            memcmp(&product, &row->at[i * row->stride], sizeof product) != 0)
            return false;
    }
    return true;
}

bool byi_row_codes_find(const float *at, int64_t rows, int64_t columns,
                        bool transposed, int16_t *scratch, void *to)
{
    float *scales = to;
    int8_t *codes = (int8_t *)to + scales_bytes(rows);
    const int64_t row_stride = transposed ? 1 : columns;
    const int64_t stride = transposed ? rows : 1; /* of elements in a row */
    float scale = 1;
    for (int64_t r = 0; r < rows; r++) {
        const struct codes_row from = {at + r * row_stride, columns, stride};
        if (!byi_find_scale(from.at, columns, stride, scale, false, &scale,
                            scratch) ||
            !is_exact(&from, scale, scratch))
            return false;
        scales[r] = scale;
        for (int64_t i = 0; i < columns; i++)
            codes[r * row_stride + i * stride] = (int8_t)scratch[i];
    }
    return true;
}

static void widen_row(const int8_t *codes, int64_t n, float scale, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)codes[i] * scale;
}

void byi_row_codes_dequantize(const struct byi_row_codes *c, float *to)
{
    for (int64_t r = 0; r < c->rows && !c->transposed; r++)
        widen_row(c->codes + r * c->columns, c->columns, c->scales[r],
                  to + r * c->columns);
    for (int64_t i = 0; i < c->columns && c->transposed; i++)
        for (int64_t r = 0; r < c->rows; r++)
            to[i * c->rows + r] =
                (float)c->codes[i * c->rows + r] * c->scales[r];
}
