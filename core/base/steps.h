/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h: recognises floats that are integers times a step, as dequantised
 * weights are.
 */
#ifndef BYI_STEPS_H
#define BYI_STEPS_H

#include "base.h"

/* Find the largest step such that each of the n floats is an integer from -255
 * to 255 times the step, bit for bit except for the sign of zero. The floats
 * are `stride` floats apart. Writes the step and the n integers. Tries `guess`,
 * and multiples of it, first. Returns false if it finds no step. */
bool byi_find_step(const float *at, int64_t n, int64_t stride, float guess,
                   float *step, int16_t *integers);

/* A float32 matrix as 8-bit integers and a step per row: element i of row r is
 * codes[r * columns + i] * steps[r], or codes[i * rows + r] * steps[r] if the
 * matrix is stored transposed. In memory the steps come first:
 *
 *     | rows floats, padded to BYI_ALIGN | rows * columns codes | */
struct byi_row_codes {
    int64_t rows, columns;
    bool transposed;
    const float *steps;
    const int8_t *codes;
};
/* The size in bytes of a matrix's steps and codes in memory. */
uint64_t byi_row_codes_bytes(int64_t rows, int64_t columns);
/* The codes and steps that are stored at this address, which must outlive the
 * result. */
struct byi_row_codes byi_row_codes_at(const void *at, int64_t rows,
                                      int64_t columns, bool transposed);
/* Write the steps and codes of a float32 matrix to `to`, which has
 * byi_row_codes_bytes() bytes. `row` is scratch for `columns` integers. Returns
 * false if it finds no codes that give the floats bit for bit. */
bool byi_row_codes_find(const float *at, int64_t rows, int64_t columns,
                        bool transposed, int16_t *row, void *to);
/* Write the codes times their steps to `to`, in the order of the codes. */
void byi_row_codes_widen(const struct byi_row_codes *c, float *to);

#endif
