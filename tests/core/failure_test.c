/* SPDX-License-Identifier: Apache-2.0 */
/* failure_test.c: tests that failures keep code and text, even when an
 * allocation fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/base/failure.h"

#include <cmocka.h>

static void keeps_text(void **state)
{
    char longest[5000];
    (void)state;
    struct byoc_fail *fail = byi_failure_new(BYOC_FAIL_INVALID, "no");
    assert_int_equal(byi_failure_code(fail), BYOC_FAIL_INVALID);
    assert_string_equal(byi_failure_text(fail), "no");
    byi_failure_free(fail);
    memset(longest, 'x', sizeof longest);
    longest[sizeof longest - 1] = 0;
    fail = byi_failure_new(BYOC_FAIL_STALE, longest);
    assert_int_equal(strlen(byi_failure_text(fail)), 4096);
    byi_failure_free(fail);
}

/* A sanitizer's allocator does not return NULL. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static void survives_no_memory(void **state)
{
    struct rlimit before, none;
    void *blocks = NULL;
    (void)state;
    if (getenv("BYOC_EMULATED")) /* qemu lets a program set no such limit */
        skip();
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    for (void **more; (more = malloc(sizeof *more)); blocks = more)
        *more = blocks;
    struct byoc_fail *fail = byi_failure_new(BYOC_FAIL_INVALID, "no");
    const uint32_t code = byi_failure_code(fail);
    byi_failure_free(fail);
    while (blocks) {
        void *next = *(void **)blocks;
        free(blocks);
        blocks = next;
    }
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(code, BYOC_FAIL_RESOURCE);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_text),
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
        cmocka_unit_test(survives_no_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
