/* SPDX-License-Identifier: Apache-2.0 */
/* row_codes_test.c: tests storing a matrix as codes and scales: it is restored
 * bit for bit, or refused; and finding inexact multiples of a scale.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/row_codes.h"

#include <cmocka.h>

enum { ROWS = 5, COLUMNS = 300, ALL = ROWS * COLUMNS };

static const float scales[ROWS] = {0.0123f, 1e-5f, 3, 0.7f, 1.0f / 3};

/* Element i of row r is w[r * COLUMNS + i], or w[i * ROWS + r] if transposed.
 */
static void fill(float *w, bool transposed)
{
    for (int i = 0; i < COLUMNS; i++)
        for (int r = 0; r < ROWS; r++)
            w[transposed ? i * ROWS + r : r * COLUMNS + i] =
                (float)((i * 37 + r) % 256 - 128) * scales[r];
}

/* Store the matrix in `to`, which has room for its codes and scales. Returns
 * false if codes cannot give every element. */
static bool store_codes(const float *w, bool transposed, void *to)
{
    static int16_t row[COLUMNS];
    return byi_row_codes_find(w, ROWS, COLUMNS, transposed, row, to);
}

static void test_exact(void **state)
{
    (void)state;
    static float w[ALL], back[ALL];
    void *to = aligned_alloc(
        BYI_ALIGN, byi_align_bytes(byi_row_codes_bytes(ROWS, COLUMNS)));
    for (int transposed = 0; transposed < 2; transposed++) {
        fill(w, transposed);
        assert_true(store_codes(w, transposed, to));
        const struct byi_row_codes c =
            byi_row_codes_at(to, ROWS, COLUMNS, transposed);
        byi_row_codes_dequantize(&c, back);
        assert_memory_equal(w, back, sizeof w);
        assert_int_equal(c.codes[0], -128);
    }
    free(to);
}

static void test_refused(void **state)
{
    (void)state;
    static const float other[] = {-0.0f, 0.1f, 128 * 0.7f};
    static float w[ALL];
    void *to = aligned_alloc(
        BYI_ALIGN, byi_align_bytes(byi_row_codes_bytes(ROWS, COLUMNS)));
    for (size_t i = 0; i < BYI_COUNT(other); i++) {
        fill(w, false);
        w[3 * COLUMNS + 7] = other[i];
        assert_false(store_codes(w, false, to));
    }
    free(to);
}

/* Weights that were multiplied by a number after they were dequantised are
 * integers times a scale within a few roundings, unless one is changed. */
static void test_inexact(void **state)
{
    (void)state;
    static float w[ALL];
    int16_t integers[COLUMNS];
    fill(w, false);
    for (int r = 0; r < ROWS; r++) {
        float *row = w + r * COLUMNS, scale = 0;
        for (int i = 0; i < COLUMNS; i++)
            row[i] *= 0.7318376f;
        assert_false(
            byi_find_scale(row, COLUMNS, 1, 1, false, &scale, integers));
        assert_true(byi_find_scale(row, COLUMNS, 1, 1, true, &scale, integers));
        for (int i = 0; i < COLUMNS; i++)
            assert_int_equal(integers[i], (i * 37 + r) % 256 - 128);
        row[7] *= 1 + 8 * BYI_SCALE_TOLERANCE;
        assert_false(
            byi_find_scale(row, COLUMNS, 1, 1, true, &scale, integers));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_inexact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
