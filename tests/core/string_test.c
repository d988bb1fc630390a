/* SPDX-License-Identifier: Apache-2.0 */
/* string_test.c: tests packing strings, and converting the case of letters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/base.h"

#include <cmocka.h>

static void test_pack(void **state)
{
    const char *const in[] = {"", "a", "\xc3\xa9t\xc3\xa9", ""};
    const char *out[4];
    struct byi_text text = {0};
    (void)state;
    byi_strings_pack(in, 4, &text);
    assert_int_equal(text.n, 1 + 2 + 6 + 1);
    assert_true(byi_strings_unpack(text.at, text.n, 4, out));
    for (int i = 0; i < 4; i++)
        assert_string_equal(in[i], out[i]);
    assert_false(byi_strings_unpack(text.at, text.n, 3, out));
    assert_false(byi_strings_unpack(text.at, text.n - 1, 4, out));
    assert_false(byi_strings_unpack(text.at, text.n, 5, out));
    assert_true(byi_strings_unpack(text.at, 0, 0, out));
    byi_text_free(&text);
}

static void test_case(void **state)
{
    static const struct {
        const char *from, *lower, *upper;
    } rows[] = {
        {"", "", ""},
        {"Monday 7", "monday 7", "MONDAY 7"},
        {"\xc3\x89t\xc3\xa9", "\xc3\xa9t\xc3\xa9", "\xc3\x89T\xc3\x89"},
        {"\xd0\x96\xe2\x82\xac\xf0\x9f\x98\x80", /* Zhe, euro, a face */
         "\xd0\xb6\xe2\x82\xac\xf0\x9f\x98\x80",
         "\xd0\x96\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"A\xff\xc3", "a\xff\xc3", "A\xff\xc3"}, /* not UTF-8: unchanged */
    };
    const locale_t c = byi_string_locale("");
    char out[64];
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const char *from = rows[i].from;
        size_t n = byi_string_case(from, BYI_CASE_LOWER, c, NULL);
        assert_int_equal(n, strlen(rows[i].lower));
        byi_string_case(from, BYI_CASE_LOWER, c, out);
        assert_string_equal(out, rows[i].lower);
        byi_string_case(from, BYI_CASE_UPPER, c, out);
        assert_string_equal(out, rows[i].upper);
        assert_true(byi_string_equal(rows[i].lower, rows[i].upper, true, c));
        assert_true(byi_string_equal(from, from, false, c));
    }
    assert_false(byi_string_equal("a", "A", false, c));
    assert_false(byi_string_equal("a", "ab", true, c));
    assert_false(byi_string_equal("ab", "a", true, c));
    assert_false(byi_string_equal("\xff", "\xfe", true, c));
    freelocale(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_case),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
