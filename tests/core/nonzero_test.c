/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero_test.c: tests finding elements that are not zero, against a plain
 * loop. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/nonzero.h"

#include <cmocka.h>

static uint32_t draw(uint32_t n)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

/* Fill n elements: most bytes are zero; floats are also -0 and NaN. */
static void fill(enum byoc_dtype dtype, int64_t n, uint8_t *x)
{
    static const float odd[] = {-0.0f, NAN, 1e-45f};
    const size_t size = byi_dtype_bytes(dtype);
    for (int64_t i = 0; i < n * (int64_t)size; i++)
        x[i] = draw(12) ? 0 : dtype == BYOC_BOOL ? 1 : (uint8_t)draw(256);
    for (int64_t i = 0; dtype == BYOC_F32 && i < n; i++)
        if (draw(3) == 0)
            memcpy(x + 4 * i, &odd[draw(3)], 4);
    for (int64_t i = 0; dtype == BYOC_F64 && i < n; i++)
        if (draw(3) == 0)
            memcpy(x + 8 * i, &(double){-0.0}, 8);
}

static void try_type(enum byoc_dtype dtype)
{
    const int64_t n = draw(4) ? draw(200) : 64 * draw(4);
    uint8_t *x = calloc((size_t)n + 1, byi_dtype_bytes(dtype));
    fill(dtype, n, x);
    const struct byi_tensor t = {
        .data = x, .dtype = dtype, .rank = 1, .dims = {n}};
    struct byi_nonzero reader = byi_nonzero_begin(&t);
    int64_t count = 0;
    for (int64_t first = 0; reader.n > 0; first += 64) {
        const uint64_t bits = byi_nonzero_next(&reader);
        for (int64_t i = 0; i < 64; i++) {
            const bool set =
                first + i < n && byi_tensor_float(&t, first + i) != 0;
            assert_int_equal(bits >> i & 1, set);
            count += set;
        }
    }
    assert_int_equal(byi_nonzero_count(&t), count);
    free(x);
}

static void test_types(void **state)
{
    static const enum byoc_dtype types[] = {
        BYOC_BOOL, BYOC_I8,  BYOC_U8,  BYOC_I16, BYOC_U16,  BYOC_I32, BYOC_U32,
        BYOC_I64,  BYOC_U64, BYOC_F16, BYOC_F32, BYOC_BF16, BYOC_F64};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(types); i++)
        for (int round = 0; round < 100; round++)
            try_type(types[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
