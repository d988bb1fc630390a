/* SPDX-License-Identifier: Apache-2.0 */
/* codes_test.c: tests products with weights of 4 and 8 bits against sums in
 * float64, under every instruction set of the machine. Uses any sizes, blocks,
 * zero points and numbers of threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/codes.h"

#include <cmocka.h>

#include "isas.h"
#include "random.h"

static float *random_floats(int64_t n)
{
    float *at = malloc((size_t)n * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)draw(20001) / 10000 - 1;
    return at;
}

static uint8_t *random_bytes(int64_t n, uint32_t below)
{
    uint8_t *at = malloc((size_t)n);
    for (int64_t i = 0; i < n; i++)
        at[i] = (uint8_t)draw(below);
    return at;
}

/* A product with its weights; `blocks` is the number of blocks of a row. */
struct codes_case {
    struct byi_f32_codes c;
    struct byi_f32_codes_from from;
    int64_t blocks;
};

/* The weight of output j and column k. */
static double weight(const struct codes_case *t, int64_t j, int64_t k)
{
    const struct byi_f32_codes *c = &t->c;
    const int64_t block = j * t->blocks + k / c->block;
    const int64_t bit = k % c->block * c->bits;
    const uint8_t *codes = t->from.codes + block * c->block * c->bits / 8;
    const int code = codes[bit / 8] >> bit % 8 & ((1 << c->bits) - 1);
    const int zero = t->from.zeros ? t->from.zeros[block] : t->from.zero;
    return (code - zero) * (double)((const float *)t->from.scales)[block];
}

/* Compare y, the product of m rows of x, with sums in float64. */
static void check(const struct codes_case *t, int64_t m, const float *x,
                  const float *y)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < t->c.n; j++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < t->c.k; k++) {
                const double w = weight(t, j, k), v = x[i * t->c.k + k];
                sum += w * v;
                /* a code and its zero point are multiplied separately */
                size += fabs(v) * 256 * 0.01;
            }
            const double found = y[i * t->c.n + j];
            if (!(fabs(found - sum) <= 1e-6 * (size + 1)))
                fail_msg("%s, %d bits, %lld x %lld x %lld, block %lld: element "
                         "%lld, %lld is %g, expected %g",
                         t->c.kernels->name, t->c.bits, (long long)m,
                         (long long)t->c.k, (long long)t->c.n,
                         (long long)t->c.block, (long long)i, (long long)j,
                         found, sum);
        }
}

static void random_products(void)
{
    for (int round = 0; round < 250; round++) {
        const int bits = draw(2) ? 4 : 8;
        struct codes_case t = {
            .c = {.kernels = byi_f32_kernels(),
                  .bits = bits,
                  .n = 1 + draw(150),
                  .k = 1 + draw(draw(4) ? 300 : 1300),
                  .block = (1 + draw(6)) * (draw(2) ? 8 : 32)}};
        const bool tall = draw(40) == 0; /* several groups of tiles */
        const int64_t m = tall ? 500 + draw(300) : 1 + draw(draw(3) ? 9 : 40);
        if (tall)
            t.c.n = 1 + draw(40);
        t.blocks = byi_ceil_div(t.c.k, t.c.block);
        const int64_t n_blocks = t.c.n * t.blocks;
        uint8_t *codes = random_bytes(n_blocks * t.c.block * bits / 8, 256);
        uint8_t *zeros = draw(2) ? random_bytes(n_blocks, 1u << bits) : NULL;
        float *scales = random_floats(n_blocks), *x = random_floats(m * t.c.k);
        float *y = random_floats(m * t.c.n),
              *y_threads = random_floats(m * t.c.n);
        for (int64_t i = 0; i < n_blocks; i++)
            scales[i] *= 0.01f;
        t.from = (struct byi_f32_codes_from){
            .codes = codes, .scales = scales, .zeros = zeros, .zero = 8};
        void *packed =
            aligned_alloc(64, (byi_f32_codes_packed(&t.c) + 63) / 64 * 64);
        byi_f32_codes_pack(&t.c, &t.from, packed);
        void *scratch = malloc(byi_f32_codes_scratch(&t.c, 3));
        byi_f32_codes_run(&t.c, packed, m, x, y, scratch, 1);
        check(&t, m, x, y);
        byi_f32_codes_run(&t.c, packed, m, x, y_threads, scratch,
                          2 + (int)draw(2));
        assert_memory_equal(y, y_threads, (size_t)(m * t.c.n) * sizeof *y);
        free(codes);
        free(zeros);
        free(scales);
        free(x);
        free(y);
        free(y_threads);
        free(packed);
        free(scratch);
    }
}

static void test_random(void **state)
{
    (void)state;
    seed = 1;
    with_each_f32_kernels(random_products);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
