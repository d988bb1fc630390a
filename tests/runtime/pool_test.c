/* SPDX-License-Identifier: Apache-2.0 */
/* pool_test.c: tests the pool of memory blocks for values whose size varies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "runtime/state.h"

static void test_block_reuse(void **state)
{
    (void)state;
    struct byi_pool pool = {.limit = 1 << 20};
    struct byoc_error err;
    uint32_t a, b, c;
    byi_pool_reset(&pool);
    assert_int_equal(byi_pool_take(&pool, 1000, &a, &err), BYOC_OK);
    assert_int_equal(byi_pool_take(&pool, 2000, &b, &err), BYOC_OK);
    byi_pool_drop(&pool, a);
    assert_int_equal(byi_pool_take(&pool, 900, &c, &err), BYOC_OK);
    assert_int_equal(c, a);
    assert_int_equal(byi_pool_take(&pool, 1 << 20, &c, &err), BYOC_ELIMIT);
    uint64_t bytes = pool.bytes;
    for (int i = 0; i < 20; i++)
        byi_pool_reset(&pool);
    assert_true(bytes > 0 && pool.bytes == 0);
    byi_pool_free(&pool);
}

/* A value can be extended in place only if it is the longest in its block, and
 * only up to the end of the block. */
static void test_extend(void **state)
{
    (void)state;
    struct byi_pool pool = {.limit = 1 << 20};
    struct byoc_error err;
    uint32_t block, other;
    assert_int_equal(byi_pool_take(&pool, 1000, &block, &err), BYOC_OK);
    const uint64_t capacity = pool.at[block].bytes;
    assert_false(byi_pool_extend(&pool, block, 1000, capacity + 1));
    assert_false(byi_pool_extend(&pool, block, 999, capacity));
    assert_true(byi_pool_extend(&pool, block, 1000, 1010));
    assert_false(byi_pool_extend(&pool, block, 1000, 1010));
    assert_true(byi_pool_extend(&pool, block, 1010, capacity));
    for (int i = 0; i < 2; i++) {
        byi_pool_drop(&pool, block); /* one reader is left */
        assert_int_equal(byi_pool_take(&pool, 1000, &other, &err), BYOC_OK);
        assert_int_not_equal(other, block);
    }
    byi_pool_drop(&pool, block);
    assert_int_equal(byi_pool_take(&pool, 900, &other, &err), BYOC_OK);
    assert_int_equal(other, block);
    assert_false(byi_pool_extend(&pool, block, 1000, 1010));
    assert_true(byi_pool_extend(&pool, block, 900, 1010));
    byi_pool_free(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block_reuse),
        cmocka_unit_test(test_extend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
