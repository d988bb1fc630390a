/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/i8_results.c: copies results of an 8-bit convolution from a buffer to
 * y, and computes those that are activated. */
#include "kernels/i8_shape.h"

#include <string.h>

/* Copy n bytes, at most 2 * 16: with two moves that overlap if n is large
 * enough. A call of memcpy() takes longer than a row of results. */
static void copy_short(char *to, const char *from, int64_t n)
{
    char first[16], last[16];
    if (n >= 16) {
        memcpy(first, from, 16);
        memcpy(last, from + n - 16, 16);
        memcpy(to, first, 16);
        memcpy(to + n - 16, last, 16);
    } else if (n >= 8) {
        memcpy(first, from, 8);
        memcpy(last, from + n - 8, 8);
        memcpy(to, first, 8);
        memcpy(to + n - 8, last, 8);
    } else {
        for (int64_t i = 0; i < n; i++)
            to[i] = from[i];
    }
}

void i8_copy_rows(char *to, int64_t ldto, const char *from, int64_t ld,
                  int64_t n, int64_t rows)
{
    for (int64_t r = 0; r < rows; r++, to += ldto, from += ld)
        if (n <= 32)
            copy_short(to, from, n);
        else
            memcpy(to, from, (size_t)n);
}

void i8_activate(const struct byi_i8_conv_run *run, float *x, int64_t ld,
                 int64_t rows, int64_t n, char *y, int64_t ldy)
{
    const struct byi_i8_activation *a = run->activation;
    const struct byi_f32_block block = {.y = x, .rows = 1, .n = rows * ld};
    uint8_t bytes[I8_ACTIVATED];
    const bool dense = ld == n && ldy == n;
    for (int i = 0; i < a->n; i++)
        a->functions[i].unary(&block, a->functions[i].p0, a->functions[i].p1);
    run->conv->kernels->quantize(x, block.n, a->scale, run->low, run->high,
                                 run->zero, dense ? (uint8_t *)y : bytes);
    if (!dense)
        i8_copy_rows(y, ldy, (const char *)bytes, ld, n, rows);
}
