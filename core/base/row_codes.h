/* SPDX-License-Identifier: Apache-2.0 */
/* row_codes.h: recognises floats that are integers times a scale, as
 * dequantised weights are, and stores a matrix of them as 8-bit codes and a
 * scale per row.
 */
#ifndef BYI_ROW_CODES_H
#define BYI_ROW_CODES_H

#include "base.h"

/* The largest relative error that byi_find_scale() accepts if `inexact`: a few
 * roundings of float32. */
#define BYI_SCALE_TOLERANCE 0x1p-21f

/* Find a scale such that each of the n floats is an integer from -255 to 255
 * times the scale, bit for bit except for the sign of zero. If `inexact`, also
 * accept a scale if each float x differs from such a product by at most
 * BYI_SCALE_TOLERANCE * |x|: a batch normalization that was folded into
 * dequantised weights has rounded them again. The floats are `stride` floats
 * apart. Tries `guess` first. Multiplies the scale by the greatest
 * common divisor of the integers, unless rounding prevents it. Writes the scale
 * and the n integers. Returns false if it finds no scale. */
bool byi_find_scale(const float *at, int64_t n, int64_t stride, float guess,
                    bool inexact, float *scale, int16_t *integers);

/* A float32 matrix as 8-bit integers and a scale per row: element i of row r is
 * codes[r * columns + i] * scales[r], or codes[i * rows + r] * scales[r] if the
 * matrix is stored transposed. In memory the scales come first:
 *
 *     | rows floats, padded to BYI_ALIGN | rows * columns codes | */
struct byi_row_codes {
    int64_t rows, columns;
    bool transposed;
    const float *scales;
    const int8_t *codes;
};
/* The size in bytes of a matrix's scales and codes in memory. */
uint64_t byi_row_codes_bytes(int64_t rows, int64_t columns);
/* The codes and scales that are stored at this address, which must outlive the
 * result. */
struct byi_row_codes byi_row_codes_at(const void *at, int64_t rows,
                                      int64_t columns, bool transposed);
/* Write the scales and codes of a float32 matrix to `to`, which has
 * byi_row_codes_bytes() bytes. `scratch` has room for a row of integers.
 * Returns false if it finds no codes that give the floats bit for bit. */
bool byi_row_codes_find(const float *at, int64_t rows, int64_t columns,
                        bool transposed, int16_t *scratch, void *to);
/* Write the codes times their scales to `to`, in the order of the codes. */
void byi_row_codes_dequantize(const struct byi_row_codes *c, float *to);

#endif
