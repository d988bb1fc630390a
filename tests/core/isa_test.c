/* SPDX-License-Identifier: Apache-2.0 */
/* isa_test.c: tests the effect of BYOC_MAX_ISA on the choice of an instruction
 * set.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/isa.h"

#include <cmocka.h>

/* Linux grants no tiles to a process with an alternate signal stack that is too
 * small for them. */
static void test_small_stack(void **state)
{
    (void)state;
    int status = 0;
    unsetenv("BYOC_MAX_ISA");
    const pid_t child = fork();
    if (child == 0) {
        static char small[8192];
        const stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
        const bool set = sigaltstack(&stack, NULL) == 0;
        const enum byi_isa isa = byi_isa_widest();
        _exit(set && strcmp(byi_isa_name(isa), "avx512_amx") != 0 &&
                      byi_isa_runs(isa)
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_limits(void **state)
{
    struct byoc_error err;
    (void)state;
    unsetenv("BYOC_MAX_ISA");
    const enum byi_isa widest = byi_isa_widest();
    assert_true(byi_isa_runs(widest));
    assert_int_equal(byi_isa_check(&err), BYOC_OK);
    for (int i = 0; i < BYI_N_ISAS; i++) {
        const enum byi_isa isa = (enum byi_isa)i;
        setenv("BYOC_MAX_ISA", byi_isa_name(isa), 1);
        const enum byi_isa found = byi_isa_widest();
        assert_true(found <= isa && found <= widest && byi_isa_runs(found));
        if (byi_isa_runs(isa))
            assert_int_equal(found, isa);
        assert_int_equal(byi_isa_check(&err), BYOC_OK);
    }
}

static void test_unknown_name(void **state)
{
    struct byoc_error err;
    (void)state;
    unsetenv("BYOC_MAX_ISA");
    const enum byi_isa widest = byi_isa_widest();
    setenv("BYOC_MAX_ISA", "", 1);
    assert_int_equal(byi_isa_check(&err), BYOC_OK);
    assert_int_equal(byi_isa_widest(), widest);
    setenv("BYOC_MAX_ISA", "avx1024", 1);
    assert_int_equal(byi_isa_widest(), widest);
    assert_int_equal(byi_isa_check(&err), BYOC_EINVAL);
    assert_non_null(strstr(err.text, "\"avx1024\""));
    assert_non_null(strstr(err.text, byi_isa_name((enum byi_isa)0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_stack), /* before tiles are requested */
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
