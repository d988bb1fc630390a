/* SPDX-License-Identifier: Apache-2.0 */
/* params_test.c: tests structs from callers whose struct_size differs from that
 * of this build.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/base.h"

/* A struct of the API, to which a later version added `newer`. */
struct sample {
    uint32_t first;
    uint32_t struct_size;
    uint64_t old;   /* the last member before struct_size */
    uint64_t newer; /* and one that came later            */
};

static enum byoc_status read_sample(struct sample *to, const void *from,
                                    struct byoc_error *err)
{
    return byi_params_read(to, BYI_PARAMS_SIZE(sample, old), from, err);
}

static void test_sizes(void **state)
{
    (void)state;
    struct sample from = {.first = 1, .old = 2, .newer = 3}, to;
    struct byoc_error err;
    assert_int_equal(read_sample(&to, NULL, &err), BYOC_OK);
    assert_true(!to.first && !to.old && !to.newer);
    assert_int_equal(to.struct_size, sizeof to);

    /* from before struct_size: memory after it is not read */
    assert_int_equal(read_sample(&to, &from, &err), BYOC_OK);
    assert_true(to.first == 1 && to.old == 2 && to.newer == 0);
    assert_int_equal(to.struct_size, sizeof to);

    from.struct_size = BYI_UP_TO(struct sample, old);
    assert_int_equal(read_sample(&to, &from, &err), BYOC_OK);
    assert_true(to.old == 2 && to.newer == 0);

    from.struct_size = sizeof from;
    assert_int_equal(read_sample(&to, &from, &err), BYOC_OK);
    assert_true(to.old == 2 && to.newer == 3);
}

static void test_sizes_too_small(void **state)
{
    (void)state;
    struct sample from = {.struct_size = 4}, to;
    struct byoc_error err;
    assert_int_equal(read_sample(&to, &from, &err), BYOC_EINVAL);
    assert_string_equal(err.text,
                        "sample: struct_size is 4, expected at least 16; set "
                        "it to the sizeof of the struct");
}

/* A struct that was never set to zero. */
static void test_sizes_of_garbage(void **state)
{
    (void)state;
    struct sample from = {.struct_size = 0xbebebebe}, to;
    struct byoc_error err;
    assert_int_equal(read_sample(&to, &from, &err), BYOC_EINVAL);
    assert_non_null(strstr(err.text, "expected at most 4096"));
}

/* A program that is newer than the library is accepted if the members that the
 * library does not know are zero. */
static void test_newer_callers(void **state)
{
    (void)state;
    struct {
        struct sample known;
        uint64_t unknown;
    } from = {.known = {.newer = 3}};
    struct sample to;
    struct byoc_error err;
    from.known.struct_size = sizeof from;
    assert_int_equal(read_sample(&to, &from, &err), BYOC_OK);
    assert_int_equal(to.newer, 3);
    assert_int_equal(to.struct_size, sizeof to);
    from.unknown = UINT64_C(1) << 32;
    assert_int_equal(read_sample(&to, &from, &err), BYOC_EINVAL);
    assert_non_null(strstr(err.text, "byte 28 is set"));
}

static void test_enums(void **state)
{
    (void)state;
    const struct byoc_load_params from = {
        .struct_size = sizeof from, .log_severity = (enum byoc_severity)5};
    struct byoc_load_params to;
    struct byoc_error err;
    assert_int_equal(byi_load_params_read(&to, &from, &err), BYOC_EINVAL);
    assert_string_equal(err.text, "log_severity: found 5, expected 0 to 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_too_small),
        cmocka_unit_test(test_sizes_of_garbage),
        cmocka_unit_test(test_newer_callers),
        cmocka_unit_test(test_enums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
