/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/transpose.c: transposes float32 matrices of any size. */
#include "kernels/conv.h"

#include <string.h>

typedef float quad __attribute__((vector_size(16)));
typedef int quad_ids __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) BYI_SHUFFLE(quad_ids, a, b, __VA_ARGS__)
/* lane numbers that interleave two rows, and that combine their halves */
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#define FIRST 0, 1, 4, 5
#define SECOND 2, 3, 6, 7
typedef float quad_any __attribute__((vector_size(16), aligned(4), may_alias));

/* to[c * pitch + r] = from[r][c] for four rows. Reads along the rows, which are
 * long, and writes columns, which stay in the cache. If `overreads`, reads up
 * to three elements after each row, which must exist. */
static void transpose_four(const float *const from[4], int64_t columns,
                           bool overreads, float *to, int64_t pitch)
{
    int64_t c = 0;
    for (; overreads ? c < columns : c + 4 <= columns; c += 4) {
        const quad a = *(const quad_any *)(from[0] + c);
        const quad b = *(const quad_any *)(from[1] + c);
        const quad d = *(const quad_any *)(from[2] + c);
        const quad e = *(const quad_any *)(from[3] + c);
        const quad ab0 = SHUFFLE(a, b, LOW);
        const quad ab1 = SHUFFLE(a, b, HIGH);
        const quad de0 = SHUFFLE(d, e, LOW);
        const quad de1 = SHUFFLE(d, e, HIGH);
        const int64_t n = columns - c;
        float *dst = to + c * pitch;
        *(quad_any *)dst = SHUFFLE(ab0, de0, FIRST);
        if (n > 1)
            *(quad_any *)(dst + pitch) = SHUFFLE(ab0, de0, SECOND);
        if (n > 2)
            *(quad_any *)(dst + 2 * pitch) = SHUFFLE(ab1, de1, FIRST);
        if (n > 3)
            *(quad_any *)(dst + 3 * pitch) = SHUFFLE(ab1, de1, SECOND);
    }
    for (; c < columns; c++)
        for (int64_t i = 0; i < 4; i++)
            to[c * pitch + i] = from[i][c];
}

/* to[c * pitch + r] = the element of column c in row a (r = 0) or b (r = 1). */
static void transpose_two(const float *a, const float *b, int64_t columns,
                          float *to, int64_t pitch)
{
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
        const quad x = *(const quad_any *)(a + c);
        const quad y = *(const quad_any *)(b + c);
        const quad pairs[] = {SHUFFLE(x, y, LOW), SHUFFLE(x, y, HIGH)};
        for (int64_t i = 0; i < 4; i++)
            memcpy(to + (c + i) * pitch, (const float *)pairs + 2 * i,
                   2 * sizeof *to);
    }
    for (; c < columns; c++) {
        to[c * pitch] = a[c];
        to[c * pitch + 1] = b[c];
    }
}

void byi_f32_transpose(const struct byi_f32_kernels *kernels, const float *from,
                       int64_t stride, int64_t rows, int64_t columns, float *to,
                       int64_t pitch)
{
    if (rows >= kernels->width && columns >= kernels->width) {
        kernels->transpose(from, stride, rows, columns, to, pitch);
        return;
    }
    if ((rows == 2 || rows == 3) && pitch == rows) { /* such as colour images */
        const float *const row_pointers[] = {from, from + stride,
                                             from + (rows - 1) * stride};
        kernels->interleave_rows[rows - 2](row_pointers, columns, to);
        return;
    }
    int64_t r = 0;
    const int64_t rest = -columns & 3;
    for (; r + 4 <= rows; r += 4) {
        const float *at = from + r * stride;
        const float *quad_rows[] = {at, at + stride, at + 2 * stride,
                                    at + 3 * stride};
        transpose_four(quad_rows, columns, (rows - 4 - r) * stride >= rest,
                       to + r, pitch);
    }
    for (; r + 2 <= rows; r += 2)
        transpose_two(from + r * stride, from + (r + 1) * stride, columns,
                      to + r, pitch);
    for (; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * pitch + r] = from[r * stride + c];
}

void byi_f32_gather(const struct byi_f32_kernels *kernels, const float *from,
                    int64_t rs, int64_t cs, int64_t n, int64_t k, float *to,
                    int64_t pitch)
{
    if (cs == 1)
        byi_f32_transpose(kernels, from, rs, n, k, to, pitch);
    else if (rs == 1 && n == BYI_F32_PANEL)
        for (int64_t j = 0; j < k; j++)
            memcpy(to + j * pitch, from + j * cs, BYI_F32_PANEL * sizeof *to);
    else if (rs == 1)
        for (int64_t j = 0; j < k; j++)
            memcpy(to + j * pitch, from + j * cs, (size_t)n * sizeof(float));
    else
        for (int64_t j = 0; j < k; j++)
            for (int64_t i = 0; i < n; i++)
                to[j * pitch + i] = from[i * rs + j * cs];
}
