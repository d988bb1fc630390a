/* SPDX-License-Identifier: Apache-2.0 */
/* codes.c: times products with 4096 x 4096 weights of 4 and 8 bits
 * (kernels/codes.h). Prints the speed for one row as a share of the speed of
 * reading the weights alone, and for 128 rows as a share of the peak of
 * multiply-adds. For one row the weights come from memory: each run uses the
 * next of several sets, which exceed the caches.
 *
 *     [BYOC_MAX_ISA=NAME] build/codes
 *
 * If the CPU lacks the instruction set that BYOC_MAX_ISA names (see
 * core/base/isa.h), the widest one below it is timed. Exits with 1 if memory
 * runs out, and with 2 for an unknown instruction set.
 */
#include "core/base/clock.h"
#include "kernels/codes.h"

#include "core/base/isa.h"
#include "runtime/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4096, SETS = 8, ROWS = 128, ROUNDS = 40 };

typedef uint64_t words8 __attribute__((vector_size(64), aligned(8), may_alias));

/* Read n bytes as four streams, as the kernels do. The caller uses the result,
 * so the compiler keeps the reads. */
static uint64_t read_all(const char *at, uint64_t n)
{
    enum { STREAMS = 4, AHEAD = 2048 };
    words8 sum[STREAMS] = {0};
    const uint64_t stream_bytes = n / STREAMS / sizeof *sum * sizeof *sum;
    for (uint64_t i = 0; i < stream_bytes; i += sizeof *sum)
        for (uint64_t j = 0; j < STREAMS; j++) {
            const char *from = at + j * stream_bytes + i;
            __builtin_prefetch(from + AHEAD);
            sum[j] ^= *(const words8 *)(const void *)from;
        }
    for (int j = 1; j < STREAMS; j++)
        sum[0] ^= sum[j];
    return sum[0][0] ^ sum[0][7];
}

static double minimum(double a, double b)
{
    return a < b ? a : b;
}

static void measure(int bits, int64_t block, char *packed, float *x, float *y)
{
    const struct byi_f32_codes c = {.kernels = byi_f32_kernels(),
                                    .bits = bits,
                                    .n = SIZE,
                                    .k = SIZE,
                                    .block = block};
    const uint64_t bytes = byi_f32_codes_packed(&c);
    void *scratch = malloc(byi_f32_codes_scratch(&c, 1));
    double one_row = 1e9, all_rows = 1e9, reading_alone = 1e9;
    uint64_t bits_read = 0; /* printed, so that the compiler keeps the reads */
    for (int i = 0; scratch && i < ROUNDS; i++) {
        double from = byi_now();
        byi_f32_codes_run(&c, packed + bytes * (uint64_t)(i % SETS), 1, x, y,
                          scratch, 1);
        one_row = minimum(one_row, byi_now() - from);
        from = byi_now();
        bits_read ^=
            read_all(packed + bytes * (uint64_t)((i + 3) % SETS), bytes);
        reading_alone = minimum(reading_alone, byi_now() - from);
    }
    for (int i = 0; scratch && i < 3; i++) {
        const double from = byi_now();
        byi_f32_codes_run(&c, packed, ROWS, x, y, scratch, 1);
        all_rows = minimum(all_rows, byi_now() - from);
    }
    const double peak = byoc_internal_peak_flops(1);
    printf("%-6s %d bits, blocks of %3lld: %6.3f ms %5.1f GB/s, %3.0f%% of a "
           "read (%llx); %d rows %7.2f ms, %3.0f%% of the peak\n",
           c.kernels->name, bits, (long long)block, 1e3 * one_row,
           1e-9 * (double)bytes / one_row, 100 * reading_alone / one_row,
           (unsigned long long)(bits_read & 0xf), ROWS, 1e3 * all_rows,
           100 * 2.0 * ROWS * SIZE * SIZE / all_rows / peak);
    free(scratch);
}

int main(void)
{
    struct byoc_error err;
    if (byi_isa_check(&err) != BYOC_OK)
        return fprintf(stderr, "codes: %s\n", err.text), 2;
    const struct byi_f32_codes largest = {
        .bits = 8, .n = SIZE, .k = SIZE, .block = 32};
    const uint64_t bytes = byi_f32_codes_packed(&largest) * SETS;
    char *packed = aligned_alloc(64, bytes);
    float *x = malloc((size_t)ROWS * SIZE * sizeof *x);
    float *y = malloc((size_t)ROWS * SIZE * sizeof *y);
    const float scale = 0.01f; /* its bytes fill scales and codes alike */
    if (!packed || !x || !y)
        return fprintf(stderr, "codes: out of memory\n"), 1;
    for (uint64_t i = 0; i < bytes; i += sizeof scale)
        memcpy(packed + i, &scale, sizeof scale);
    for (int i = 0; i < ROWS * SIZE; i++)
        x[i] = (float)(i % 7 - 3);
    for (int bits = 4; bits <= 8; bits += 4)
        for (int64_t block = 32; block <= 128; block *= 4)
            measure(bits, block, packed, x, y);
    free(packed);
    free(x);
    free(y);
    return 0;
}
