/* SPDX-License-Identifier: Apache-2.0 */
/* layout_test.c: tests layouts by name: valid and invalid names, and conversion
 * of dims.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/layout.h"

#include <cmocka.h>

static struct byi_layout parse(const char *text)
{
    struct byi_layout l;
    assert_null(byi_layout_parse(text, &l));
    return l;
}

static void test_parse(void **state)
{
    (void)state;
    const struct byi_layout l = parse("OIHW4i16o");
    assert_int_equal(l.n, 6);
    assert_int_equal(byi_layout_find(&l, 'H'), 2);
    assert_int_equal(byi_layout_find(&l, 'C'), -1);
    assert_int_equal(byi_layout_block(&l, 'I'), 4);
    assert_int_equal(byi_layout_block(&l, 'O'), 16);
    assert_int_equal(byi_layout_block(&l, 'W'), 1);
    assert_false(byi_layout_is_plain(&l));
}

static void test_refused_names(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "has no axes"},
        {"nchw", "upper-case"},
        {"NC HW", "upper-case"},
        {"NCHC", "the same letter"},
        {"NCHW16", "lower-case axis letter"},
        {"NCHW16C", "lower-case axis letter"},
        {"16cNCHW", "not named before"},
        {"NHW16c", "not named before"},
        {"NCHW0c", "0 elements, expected 1 to 64"},
        {"NCHW99999999999999999999c", "more than 64"},
        {"NCHW1c1c", "two blocks"},
        {"ABCDEFGHIJKLM", "more than 12 axes"},
        {"ABCDEFGHIJKL2a", "more than 12 axes"},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        struct byi_layout l;
        const char *why = byi_layout_parse(cases[i].text, &l);
        if (!why || !strstr(why, cases[i].why))
            fail_msg("%s: found \"%s\", expected \"%s\" in it", cases[i].text,
                     why ? why : "no error", cases[i].why);
    }
}

static void test_permutation(void **state)
{
    (void)state;
    const struct byi_layout first = parse("NCHW"), last = parse("NHWC");
    const struct byi_layout blocked = parse("NCHW8c"), other = parse("OIHW");
    int64_t axes[BYI_MAX_RANK];
    assert_true(byi_layout_permutation(&first, &last, axes));
    assert_memory_equal(axes, ((int64_t[]){0, 2, 3, 1}), 4 * sizeof *axes);
    assert_true(byi_layout_permutation(&last, &first, axes));
    assert_memory_equal(axes, ((int64_t[]){0, 3, 1, 2}), 4 * sizeof *axes);
    assert_false(byi_layout_permutation(&first, &blocked, axes));
    assert_false(byi_layout_permutation(&first, &other, axes));
}

static void test_dims(void **state)
{
    (void)state;
    const struct byi_layout first = parse("NCHW"), blocked = parse("NHWC8c");
    int64_t dims[BYI_MAX_RANK], back[BYI_MAX_RANK];
    char why[BYI_LAYOUT_WHY];
    assert_true(byi_layout_dims(&first, &blocked, (int64_t[]){-1, 24, 5, -2},
                                dims, why));
    assert_memory_equal(dims, ((int64_t[]){-1, 5, -2, 3, 8}), 5 * sizeof *dims);
    assert_true(byi_layout_dims(&blocked, &first, dims, back, why));
    assert_memory_equal(back, ((int64_t[]){-1, 24, 5, -2}), 4 * sizeof *dims);
    assert_false(byi_layout_dims(
        &blocked, &first, (int64_t[]){1, 1, 1, INT64_MAX / 4, 8}, dims, why));
    assert_non_null(strstr(why, "at most 2^63 - 1 elements"));
    assert_false(
        byi_layout_dims(&first, &blocked, (int64_t[]){1, 20, 5, 5}, dims, why));
    assert_string_equal(why, "axis C has 20 elements, expected a multiple of "
                             "the block, 8");
}

static void test_accepted_layouts(void **state)
{
    static const struct {
        const char *text, *first; /* the layout; that with channels first */
        bool data, kernel;        /* whether it is accepted for them */
    } cases[] = {
        {"NCHW", "NCHW", true, false},     {"NHWC", "NCHW", true, false},
        {"NCHW16c", "NCHW", true, false},  {"NHWC16c", "NCHW", false, false},
        {"NCHW2n", "NCHW", false, false},  {"NCHW4c2n", "NCHW", false, false},
        {"CHWN", "NCHW", false, false},    {"NWC", "NCW", true, false},
        {"NWC", "NCHW", false, false},     {"NDHWC", "NCDHW", true, false},
        {"OIHW", "OIHW", false, true},     {"HWOI", "OIHW", false, true},
        {"IHWO", "IOHW", false, true},     {"OHIW", "OIHW", false, false},
        {"WHIO", "OIHW", false, false},    {"HWIO8i8o", "OIHW", false, true},
        {"O8oIHW", "OIHW", false, false},  {"OIHW2w", "OIHW", false, false},
        {"OIDHW", "OIHW", false, false},   {"OIW", "OIHW", false, false},
        {"OIDHW4o", "OIDHW", false, true}, {"WIO", "OIW", false, true},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        const struct byi_layout l = parse(cases[i].text);
        const bool data = cases[i].first[0] == 'N';
        const bool expected = data ? cases[i].data : cases[i].kernel;
        if ((data ? byi_layout_is_data(&l, cases[i].first)
                  : byi_layout_is_kernel(&l, cases[i].first)) != expected)
            fail_msg("layout %s instead of %s: found %s, expected %s",
                     cases[i].text, cases[i].first,
                     expected ? "refused" : "accepted",
                     expected ? "accepted" : "refused");
    }
}

static bool is_default(enum byi_op_id op, const struct byi_attr *list,
                       uint32_t n)
{
    struct byi_arena *arena = byi_arena_new();
    const struct byi_attrs *attrs;
    assert_int_equal(byi_attrs_make(arena, byi_op(op), list, n, &attrs, NULL),
                     BYOC_OK);
    const bool answer = byi_layout_is_default(byi_op(op), attrs);
    byi_arena_free(&arena);
    return answer;
}

static void test_default(void **state)
{
    (void)state;
    struct byi_attr attr = {.name = "kernel_layout", .kind = BYI_ATTR_STRING};
    assert_true(is_default(BYI_OP_NN_CONV2D, NULL, 0));
    attr.s = "OIHW";
    assert_true(is_default(BYI_OP_NN_CONV2D, &attr, 1));
    assert_false(is_default(BYI_OP_NN_CONV2D_TRANSPOSE, &attr, 1));
    attr.s = "OIH";
    assert_false(is_default(BYI_OP_NN_CONV2D, &attr, 1));
    assert_true(is_default(BYI_OP_NN_RELU, NULL, 0));
    const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INT, .i = -1};
    assert_true(is_default(BYI_OP_NN_BATCH_NORM, NULL, 0));
    assert_false(is_default(BYI_OP_NN_BATCH_NORM, &axis, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_refused_names),
        cmocka_unit_test(test_permutation),
        cmocka_unit_test(test_dims),
        cmocka_unit_test(test_accepted_layouts),
        cmocka_unit_test(test_default),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
