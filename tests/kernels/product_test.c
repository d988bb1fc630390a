/* SPDX-License-Identifier: Apache-2.0 */
/* product_test.c: tests kernels/product.h and transpositions under every
 * instruction set that the machine has, against sums in float64, with any
 * number of threads.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/product.h"
#include "tests/share.h"

#include <cmocka.h>

static uint64_t seed = 1;

static int64_t draw(int64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)(seed >> 33) % n;
}

static float *random_floats(int64_t n)
{
    float *at = malloc((size_t)(n + 1) * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[i] = (float)draw(20001) / 10000 - 1;
    return at;
}

/* Matrices of a batch follow one another. */
struct batches {
    struct byi_f32_matrices first;
    int64_t a, b, c; /* elements from one matrix to the next */
    int64_t ldc;
};

static struct byi_f32_matrices matrices_of(const void *ctx, int64_t batch)
{
    const struct batches *batches = ctx;
    return (struct byi_f32_matrices){batches->first.a + batch * batches->a,
                                     batches->first.b + batch * batches->b,
                                     batches->first.c + batch * batches->c};
}

/* Add 1 to the block, to count how often it is finished. */
static void add_one(const void *ctx, const struct byi_f32_part *part)
{
    const struct batches *batches = ctx;
    float *c = matrices_of(ctx, part->batch).c;
    for (int64_t i = part->row; i < part->row + part->rows; i++)
        for (int64_t j = part->column; j < part->column + part->columns; j++)
            c[i * batches->ldc + j] += 1;
}

static void check(const struct byi_f32_product *p,
                  const struct batches *batches)
{
    for (int64_t i = 0; i < p->batches * p->m * p->n; i++) {
        const struct byi_f32_matrices at =
            matrices_of(batches, i / p->n / p->m);
        const int64_t row = i / p->n % p->m, column = i % p->n;
        double sum = p->finish ? 1 : 0, size = 1;
        for (int64_t k = 0; k < p->k; k++) {
            const double product = (double)at.a[row * p->a_rs + k * p->a_cs] *
                                   (double)at.b[k * p->b_rs + column * p->b_cs];
            sum += product;
            size += fabs(product);
        }
        if (!(fabs((double)at.c[row * p->ldc + column] - sum) <= 1e-6 * size))
            fail_msg("%s: %lld x %lld x %lld: element %lld is %g, expected %g",
                     p->kernels->name, (long long)p->m, (long long)p->n,
                     (long long)p->k, (long long)i,
                     (double)at.c[row * p->ldc + column], sum);
    }
}

static void try_product(const struct byi_f32_kernels *kernels)
{
    const bool large = draw(8) == 0;
    struct byi_f32_product p = {.kernels = kernels,
                                .batches = 1 + draw(3),
                                .m = draw(large ? 200 : 40),
                                .n = draw(large ? 300 : 80),
                                .k = draw(large ? 1200 : 60),
                                .at = matrices_of};
    if (draw(4) == 0)
        p.k = 512;
    if (draw(6) == 0) /* a column */
        p.n = 1;
    p.whole = draw(2) != 0;
    if (draw(2))
        p.finish = add_one;
    p.a_rs = p.a_cs = p.b_rs = p.b_cs = 1;
    *(draw(2) ? &p.a_rs : &p.a_cs) = 0;
    *(draw(2) ? &p.b_rs : &p.b_cs) = 0;
    p.a_rs = p.a_rs ? p.a_rs : p.k + draw(2);
    p.a_cs = p.a_cs ? p.a_cs : p.m;
    p.b_rs = p.b_rs ? p.b_rs : p.n + draw(2);
    p.b_cs = p.b_cs ? p.b_cs : p.k;
    p.ldc = p.n + (draw(2) ? draw(3) : 0);
    struct batches batches = {.a = (p.m + 1) * (p.k + 2),
                              .b = (p.n + 2) * (p.k + 1),
                              .c = p.m * p.ldc,
                              .ldc = p.ldc};
    batches.first =
        (struct byi_f32_matrices){random_floats(p.batches * batches.a),
                                  random_floats(p.batches * batches.b),
                                  random_floats(p.batches * batches.c)};
    p.ctx = &batches;
    const size_t bytes = (size_t)(p.batches * batches.c) * sizeof(float);
    float *first = malloc(bytes + 1);
    void *scratch = malloc(byi_f32_product_scratch(3));
    for (int threads = 1; threads <= 3; threads++) {
        byi_f32_product_run(&p, threads, scratch);
        if (threads == 1)
            memcpy(first, batches.first.c, bytes);
        assert_memory_equal(first, batches.first.c, bytes);
    }
    check(&p, &batches);
    free(scratch);
    free(first);
    free((void *)(uintptr_t)batches.first.a);
    free((void *)(uintptr_t)batches.first.b);
    free(batches.first.c);
}

static void test_products(void **state)
{
    (void)state;
    for (enum byi_isa isa = 0; isa < BYI_N_ISAS; isa++)
        for (int i = 0; byi_isa_runs(isa) && i < test_share_of(300); i++)
            try_product(byi_f32_kernels_of(isa));
}

static void test_transpose(void **state)
{
    (void)state;
    for (int i = 0; i < test_share_of(3000); i++) {
        const enum byi_isa isa = (enum byi_isa)draw(BYI_N_ISAS);
        const int64_t rows = draw(70), columns = draw(i % 8 ? 60 : 300);
        const int64_t stride = columns + draw(3), pitch = rows + draw(3);
        if (!byi_isa_runs(isa))
            continue;
        float *from = random_floats(rows * stride),
              *to = random_floats(columns * pitch);
        float *previous = malloc((size_t)(columns * pitch + 1) * sizeof *to);
        memcpy(previous, to, (size_t)(columns * pitch) * sizeof *to);
        byi_f32_transpose(byi_f32_kernels_of(isa), from, stride, rows, columns,
                          to, pitch);
        for (int64_t k = 0; k < columns * pitch; k++) {
            const int64_t c = k / pitch, r = k % pitch;
            assert_true(to[k] ==
                        (r < rows ? from[r * stride + c] : previous[k]));
        }
        free(from);
        free(to);
        free(previous);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_transpose),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
