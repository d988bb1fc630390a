/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c: recover the integers of dequantised weights. */
#include "steps.h"

#include <math.h>
#include <stdlib.h>

/* The floats of a row. */
struct step_row {
    const float *at;
    int64_t n, stride;
};

/* Whether the row equals integers up to 255 times `step`, bit for bit. */
static bool is_multiple(const struct step_row *row, float step,
                        int16_t *integers)
{
    for (int64_t i = 0; i < row->n; i++) {
        const float x = row->at[i * row->stride], whole = rintf(x / step);
        if (!(fabsf(whole) <= UINT8_MAX) || whole * step != x)
            return false;
        integers[i] = (int16_t)whole;
    }
    return true;
}

/* Replace the step by the largest one that also fits. */
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

/* Find a step: the largest element is an integer number of steps. Tries `guess`
 * first, and neighbours of each candidate because of rounding. */
static bool try_steps(const struct step_row *row, float guess, float *step,
                      int16_t *integers)
{
    float most = 0;
    for (int64_t i = 0; i < row->n; i++)
        most = fmaxf(most, fabsf(row->at[i * row->stride]));
    *step = guess;
    if (!isfinite(most) || is_multiple(row, *step, integers))
        return isfinite(most);
    for (int i = 0; i < UINT8_MAX; i++) {
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
