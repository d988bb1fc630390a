/* SPDX-License-Identifier: Apache-2.0 */
/* c_unit_test.c: tests compiling the C of backends. Every instruction set has
 * the function, and the same source makes the same bytes. A copy of the library
 * can be mapped and called many times. Damaged objects are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen_c/cc.h"
#include "codegen_c/codegen_c.h"
#include "tests/open_files.h"

static const char source[] = "#include <math.h>\n"
                             "static const double half = 0.5;\n"
                             "double f(double x);\n"
                             "double f(double x)\n"
                             "{\n"
                             "    return half * sin(x);\n"
                             "}\n";

static struct byi_c_unit unit_of(const char *text)
{
    struct byi_c_unit unit = {.symbol = "f"};
    byi_text_add(&unit.source, text, strlen(text));
    return unit;
}

static struct byi_c_unit compile_source(void)
{
    struct byoc_error err;
    struct byi_c_unit unit = unit_of(source);
    if (byi_c_unit_compile(&unit, NULL, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    return unit;
}

static void test_same_bytes(void **state)
{
    (void)state;
    struct byi_c_unit a = compile_source(), b = compile_source();
    for (uint32_t i = 0; i < BYI_N_CODE_LEVELS; i++) {
        assert_int_equal(a.objects[i].n, b.objects[i].n);
        assert_memory_equal(a.objects[i].at, b.objects[i].at, a.objects[i].n);
    }
    assert_int_equal(a.library.n, b.library.n);
    assert_memory_equal(a.library.at, b.library.at, a.library.n);
    byi_c_unit_free(&a);
    byi_c_unit_free(&b);
}

static void test_every_level(void **state)
{
    (void)state;
    struct byi_c_unit unit = compile_source();
    struct byi_memory_library library;
    struct byoc_error err;
    char name[256];
    assert_int_equal(byoc_internal_library_map(unit.library.at, unit.library.n,
                                               &library, &err),
                     BYOC_OK);
    for (uint32_t i = 0; i < byi_code_levels(BYI_N_CODE_LEVELS); i++) {
        double (*f)(double) =
            (double (*)(double))byoc_internal_library_function(
                &library, byi_c_unit_name("f", i, name, sizeof name));
        assert_non_null(f);
        const double y = f(1.5707963267948966);
        assert_true(y > 0.49999 && y < 0.50001);
    }
    assert_null(byoc_internal_library_function(&library, "f"));
    byoc_internal_library_unmap(&library);
    assert_null(library.handle);
    byi_c_unit_free(&unit);
}

static void test_many_mappings(void **state)
{
    (void)state;
    struct byi_c_unit unit = compile_source();
    struct byoc_error err;
    char name[256];
    const int n_open = count_open_files();
    for (int i = 0; i < 1000; i++) {
        struct byi_memory_library a, b;
        assert_int_equal(byoc_internal_library_map(unit.library.at,
                                                   unit.library.n, &a, &err),
                         BYOC_OK);
        assert_int_equal(byoc_internal_library_map(unit.library.at,
                                                   unit.library.n, &b, &err),
                         BYOC_OK);
        byi_c_unit_name("f", 0, name, sizeof name);
        assert_ptr_not_equal(byoc_internal_library_function(&a, name),
                             byoc_internal_library_function(&b, name));
        byoc_internal_library_unmap(&a);
        byoc_internal_library_unmap(&b);
    }
    assert_int_equal(count_open_files(), n_open);
    byi_c_unit_free(&unit);
}

static void test_not_a_library(void **state)
{
    (void)state;
    struct byi_memory_library library;
    struct byoc_error err;
    assert_int_equal(byoc_internal_library_map("nothing", 7, &library, &err),
                     BYOC_EBACKEND);
    assert_non_null(strstr(err.text, "the loader says"));
    assert_null(library.handle);
}

/* --- refusals ------------------------------------------------------------- */

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message; /* the error must contain `message` */
    } bad[] = {
        {"", "it is empty"},
        {"int f(void) { return 1 }", "f.c:1:"},
        {"int g(void) { return 1; }", "it defines g with external linkage"},
        {"int f(void) { return 1; } int g;", "it defines g with external"},
        {"static int f(void) { return 1; } int *p(void);", "does not define"},
        {"int h(void); int f(void) { return h(); }", "`h'"},
        {"const char *f(void) { return __TIME__; }", "error"},
        {"int f;", "is not a function"},
        {"#error \"quoted\" %s %n\nint f(void);", "%s %n"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct byi_c_unit unit = unit_of(bad[i].text);
        struct byoc_error err = {0};
        assert_int_not_equal(byi_c_unit_compile(&unit, NULL, &err), BYOC_OK);
        if (!strstr(err.text, bad[i].message))
            fail_msg("'%s': found '%s', expected '%s'", bad[i].text, err.text,
                     bad[i].message);
        byi_c_unit_free(&unit);
    }
}

static void test_no_compiler(void **state)
{
    (void)state;
    struct byi_c_unit unit = unit_of(source);
    struct byoc_error err;
    assert_int_equal(byi_c_unit_compile(&unit, "/nonexistent/cc", &err),
                     BYOC_EIO);
    assert_non_null(strstr(err.text, "cannot run the compiler driver"));
    byi_c_unit_free(&unit);
    unit = unit_of(source);
    assert_int_not_equal(byi_c_unit_compile(&unit, "false", &err), BYOC_OK);
    assert_non_null(strstr(err.text, "it does not compile: \"false\" failed"));
    byi_c_unit_free(&unit);
    unit = unit_of(source);
    assert_int_not_equal(byi_c_unit_compile(&unit, "true", &err), BYOC_OK);
    assert_non_null(
        strstr(err.text, "\"true\" succeeded without writing its output"));
    byi_c_unit_free(&unit);
}

/* A compiler that hangs is killed, with its children. */
static void test_slow_compiler(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_cc cc = {.seconds = 0.2, .bytes = UINT64_C(1) << 30};
    struct byi_cc_run run = {.output = "out", .log = "log"};
    assert_int_equal(byi_cc_open(&cc, "/tmp/byoc-", "sh", &err), BYOC_OK);
    assert_int_equal(byi_cc_write(&cc, "slow", "sleep 1000", 10, &err),
                     BYOC_OK);
    assert_int_equal(byi_cc_start(&cc, "slow", &run, &err), BYOC_OK);
    assert_int_equal(byi_cc_finish(&cc, &run, BYOC_OK, &err), BYOC_EIO);
    assert_string_equal(err.text,
                        "\"sh\" ran too long, expected at most 0.2 s");
    byi_cc_close(&cc);
}

/* --- damaged objects ------------------------------------------------------ */

static void test_damaged_objects(void **state)
{
    (void)state;
    struct byi_c_unit unit = compile_source();
    const struct byi_text *object = &unit.objects[0];
    struct byoc_error err;
    uint64_t random = 1, n_accepted[2] = {0};
    assert_int_equal(byi_object_check(object, "f_0", &err), BYOC_OK);
    assert_int_not_equal(byi_object_check(object, "f", &err), BYOC_OK);
    for (int i = 0; i < 20000; i++) {
        struct byi_text copy = {0};
        random = random * 6364136223846793005u + 1442695040888963407u;
        const size_t n = i % 2 ? object->n : (random >> 33) % object->n;
        char *exact = malloc(n + 1); /* so that a sanitizer sees its end */
        memcpy(exact, object->at, n);
        for (int k = 0; k < 3 && i % 2; k++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const size_t at = i % 4 == 1 ? (random >> 33) % 64 : random % n;
            exact[at] = (char)(random >> 40);
        }
        copy.at = exact;
        copy.n = n;
        n_accepted[i % 2] += byi_object_check(&copy, "f_0", &err) == BYOC_OK;
        free(exact);
    }
    assert_int_equal(n_accepted[0], 0); /* truncated ones */
    assert_true(n_accepted[1] < 7500);  /* with other bytes */
    byi_c_unit_free(&unit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_every_level),
        cmocka_unit_test(test_many_mappings),
        cmocka_unit_test(test_not_a_library),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_compiler),
        cmocka_unit_test(test_slow_compiler),
        cmocka_unit_test(test_damaged_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
