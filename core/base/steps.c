/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: recovers the integers of dequantised weights (steps.h). */
#include "steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The floats of a row. */
struct step_row {
    const float *at;
    int64_t n, stride;
};

/* Elements that are tested together, so that compilers use vectors. */
enum { BLOCK = 256 };

/* Elements [i, i + n) of the row, in place or copied to `own`. */
static const float *read_block(const struct step_row *row, int64_t i, int n,
                               float *own)
{
    const float *at = row->at + i * row->stride;
    if (row->stride == 1)
        return at;
    for (int k = 0; k < n; k++)
        own[k] = at[k * row->stride];
    return own;
}

/* Round x to an integer, halves to even; |x| must be below 2^22. */
static inline float round_even(float x)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23 */
    return (x + magic) - magic;
}

static bool is_block_multiple(const float *x, int n, float step,
                              int16_t *integers)
{
    float whole[BLOCK];
    int bad = 0;
    for (int i = 0; i < n; i++)
        whole[i] = round_even(x[i] / step);
    for (int i = 0; i < n; i++)
        bad |= !(fabsf(whole[i]) <= UINT8_MAX) | (whole[i] * step != x[i]);
    if (bad)
        return false;
    for (int i = 0; i < n; i++)
        integers[i] = (int16_t)(int32_t)whole[i];
    return true;
}

/* Whether the row equals integers up to 255 times `step`, bit for bit. */
static bool is_multiple(const struct step_row *row, float step,
                        int16_t *integers)
{
    float own[BLOCK];
    for (int64_t i = 0; i < row->n; i += BLOCK) {
        const int n = (int)byi_min(BLOCK, row->n - i);
        if (!is_block_multiple(read_block(row, i, n, own), n, step,
                               integers + i))
            return false;
    }
    return true;
}

/* The largest absolute value; not finite if an element is not. */
static float largest_magnitude(const struct step_row *row)
{
    float own[BLOCK], most;
    /* positive floats order like the integers of their bits */
    int32_t bits = 0;
    for (int64_t i = 0; i < row->n; i += BLOCK) {
        const int n = (int)byi_min(BLOCK, row->n - i);
        const float *x = read_block(row, i, n, own);
        for (int k = 0; k < n; k++) {
            int32_t v;
            memcpy(&v, &x[k], sizeof v);
            v &= INT32_MAX;
            bits = v > bits ? v : bits;
        }
    }
    memcpy(&most, &bits, sizeof most);
    return most;
}

/* Multiply the step by the greatest common divisor of the integers (Euclid's
 * algorithm), unless the product is rounded and no longer fits. */
static void make_coarse(const struct step_row *row, float *step,
                        int16_t *integers)
{
    int common = 0;
    for (int64_t i = 0; i < row->n && common != 1; i++)
        for (int rest = abs(integers[i]); rest;) {
            const int last = common;
            common = rest;
            rest = last % rest;
        }
    if (common > 1 && is_multiple(row, *step * (float)common, integers))
        *step *= (float)common;
    else if (common > 1)
        is_multiple(row, *step, integers);
}

/* Find a step such that the largest element is a multiple of it. Tries `guess`,
 * then the largest element divided by each integer up to 255. Also tries the
 * two floats next to each quotient, since it may be rounded. */
static bool try_steps(const struct step_row *row, float guess, float *step,
                      int16_t *integers)
{
    const float most = largest_magnitude(row);
    *step = guess;
    if (!isfinite(most) || is_multiple(row, *step, integers))
        return isfinite(most);
    for (int i = 0; i < UINT8_MAX; i++) {
        /* from 128, the largest magnitude of an int8, down to 1, then from 255
         * down to 129 */
        const int count = (INT8_MAX + UINT8_MAX - i) % UINT8_MAX + 1;
        const float near = most / (float)count;
        const float tries[] = {near, nextafterf(near, 0), nextafterf(near, 1)};
        for (size_t k = 0; k < BYI_COUNT(tries); k++) {
            *step = tries[k];
            if (*step > 0 && is_multiple(row, *step, integers))
                return true;
        }
    }
    return false;
}

bool byi_find_step(const float *at, int64_t n, int64_t stride, float guess,
                   float *step, int16_t *integers)
{
    const struct step_row row = {at, n, stride};
    if (!try_steps(&row, guess, step, integers))
        return false;
    make_coarse(&row, step, integers);
    return true;
}

/* --- matrices ------------------------------------------------------------- */

static uint64_t steps_bytes(int64_t rows)
{
    return byi_align_bytes((uint64_t)rows * sizeof(float));
}

uint64_t byi_row_codes_bytes(int64_t rows, int64_t columns)
{
    return steps_bytes(rows) + (uint64_t)(rows * columns);
}

struct byi_row_codes byi_row_codes_at(const void *at, int64_t rows,
                                      int64_t columns, bool transposed)
{
    return (struct byi_row_codes){.rows = rows,
                                  .columns = columns,
                                  .transposed = transposed,
                                  .steps = at,
                                  .codes =
                                      (const int8_t *)at + steps_bytes(rows)};
}

/* Whether 8-bit codes of these integers reproduce the row bit for bit,
 * including -0. */
static bool is_exact(const struct step_row *row, float step,
                     const int16_t *integers)
{
    for (int64_t i = 0; i < row->n; i++) {
        const float back = (float)integers[i] * step;
        if (integers[i] < INT8_MIN || integers[i] > INT8_MAX ||
            memcmp(&back, &row->at[i * row->stride], sizeof back) != 0)
            return false;
    }
    return true;
}

bool byi_row_codes_find(const float *at, int64_t rows, int64_t columns,
                        bool transposed, int16_t *row, void *to)
{
    float *steps = to;
    int8_t *codes = (int8_t *)to + steps_bytes(rows);
    const int64_t begin = transposed ? 1 : columns,
                  inner = transposed ? rows : 1;
    float step = 1;
    for (int64_t r = 0; r < rows; r++) {
        const struct step_row from = {at + r * begin, columns, inner};
        if (!byi_find_step(from.at, columns, inner, step, &step, row) ||
            !is_exact(&from, step, row))
            return false;
        steps[r] = step;
        for (int64_t i = 0; i < columns; i++)
            codes[r * begin + i * inner] = (int8_t)row[i];
    }
    return true;
}

static void widen_row(const int8_t *codes, int64_t n, float step, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)codes[i] * step;
}

void byi_row_codes_widen(const struct byi_row_codes *c, float *to)
{
    for (int64_t r = 0; r < c->rows && !c->transposed; r++)
        widen_row(c->codes + r * c->columns, c->columns, c->steps[r],
                  to + r * c->columns);
    for (int64_t i = 0; i < c->columns && c->transposed; i++)
        for (int64_t r = 0; r < c->rows; r++)
            to[i * c->rows + r] =
                (float)c->codes[i * c->rows + r] * c->steps[r];
}
