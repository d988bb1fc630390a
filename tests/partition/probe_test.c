/* SPDX-License-Identifier: Apache-2.0 */
/* probe_test.c: tests probes: byoc asks a backend about each composite with its
 * real shapes, once for equal composites. The answers are in the ledger, and a
 * node stays native if the backend refuses it, or would use a forbidden
 * reference implementation.
 */
#include <byoc/byoc.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <dlfcn.h>

#include <cmocka.h>

enum { ANY = 1000 }; /* for check(): any number of probes */

static const char plugin[] = PLUGIN_DIR "/choosy.so";

/* Compile `text`. Returns the number of probes. */
static unsigned probe(const char *text, int forbid_reference,
                      struct byoc_compiled **compiled)
{
    const char *path = BUILD_DIR "/probe.ir";
    const struct byoc_compile_params params = {
        .plugins = plugin, .forbid_reference = forbid_reference};
    struct byoc_error err;
    unsigned (*probes)(void);
    void *library = dlopen(plugin, RTLD_NOW);
    FILE *file = fopen(path, "w");
    assert_non_null(library);
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    *(void **)&probes = dlsym(library, "choosy_probes");
    const unsigned before = probes();
    if (byoc_compile(path, &params, compiled, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    const unsigned n = probes() - before;
    dlclose(library);
    return n;
}

static void expect_text(struct byoc_compiled *compiled, const char *what)
{
    const char *ledger = byoc_compiled_ledger(compiled);
    if (!strstr(ledger, what))
        fail_msg("found no %s in\n%s", what, ledger);
}

/* Check the number of probes, and that the ledger contains the texts, which
 * NULL ends. */
static void check(const char *text, int forbid_reference, unsigned probes,
                  const char *const *texts)
{
    struct byoc_compiled *compiled;
    const unsigned n = probe(text, forbid_reference, &compiled);
    assert_true(probes == ANY || probes == n);
    for (; *texts; texts++)
        expect_text(compiled, *texts);
    byoc_compiled_free(&compiled);
}

static void equal_composites_are_probed_once(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(4), float32], %y: Tensor[(2, 4), float32]) {\n"
          "  %0 = add(%x, %x) #[\"a\": \"Add\"];\n"
          "  %1 = add(%0, %0) #[\"b\": \"Add\"];\n" /* as %0 */
          "  %2 = add(%1, %y) #[\"c\": \"Add\"];\n" /* other shapes */
          "  %3 = add(%0, %y) #[\"d\": \"Add\"];\n" /* as %2 */
          "  %4 = multiply(%2, %3) #[\"e\": \"Mul\"];\n"
          "  %5 = add(%1, %1) #[\"f\": \"Add\"];\n" /* as %0 */
          "  (%4, %5)\n"
          "}\n",
          0, 3,
          (const char *const[]){"\"offloaded\": 6,", "\"impl\": \"ref:plain\"",
                                NULL});
}

/* A backend may read the values of small constants. */
static void other_constants_are_probed_again(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(4), float32]) {\n"
          "  %0 = add(%x, [1.0, 2.0, 3.0, 4.0]) #[\"a\": \"Add\"];\n"
          "  %1 = add(%x, [1.0, 2.0, 3.0, 5.0]) #[\"b\": \"Add\"];\n"
          "  %2 = multiply(%0, %1) #[\"c\": \"Mul\"];\n"
          "  %3 = exp(%2);\n"
          "  add(%3, [1.0, 2.0, 3.0, 5.0]) #[\"d\": \"Add\"]\n" /* as %1 */
          "}\n",
          0, 3, (const char *const[]){"\"offloaded\": 4,", NULL});
}

/* The longer row is refused, and a shorter one is probed instead. */
static void a_refused_match_is_not_offloaded(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(11), float32]) {\n"
          "  %0 = multiply(%x, %x) #[\"a\": \"Mul\"];\n"
          "  %1 = add(%0, %x) #[\"b\": \"Add\"];\n"
          "  nn.relu(%1) #[\"c\": \"Relu\"]\n"
          "}\n",
          0, ANY, /* the operands of a sum are tried in both orders */
          (const char *const[]){"\"offloaded\": 2,",
                                "\"reason\": \"probe-refused\"",
                                "11 numbers and an addition", NULL});
}

static const char slow[] = "def @main(%x: Tensor[(7), float32]) {\n"
                           "  %0 = nn.relu(%x) #[\"a\": \"Relu\"];\n"
                           "  %1 = multiply(%0, %x) #[\"b\": \"Mul\"];\n"
                           "  %2 = exp(%1) #[\"c\": \"Exp\"];\n"
                           "  add(%2, %x) #[\"d\": \"Add\"]\n"
                           "}\n";

static void a_reference_kernel_is_accepted_by_default(void **state)
{
    (void)state;
    check(slow, 0, 3,
          (const char *const[]){"\"offloaded\": 3,", "\"impl\": \"ref:slow\"",
                                NULL});
}

static void a_forbidden_reference_kernel_is_refused(void **state)
{
    (void)state;
    struct byoc_compiled *compiled;
    check(slow, 1, ANY,
          (const char *const[]){"\"offloaded\": 2,",
                                "\"reason\": \"reference-kernel\"",
                                "\"detail\": \"ref:slow\"", NULL});
    probe(slow, 1, &compiled);
    assert_null(strstr(byoc_compiled_ledger(compiled), "\"impl\": \"ref:slow"));
    byoc_compiled_free(&compiled);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_composites_are_probed_once),
        cmocka_unit_test(other_constants_are_probed_again),
        cmocka_unit_test(a_refused_match_is_not_offloaded),
        cmocka_unit_test(a_reference_kernel_is_accepted_by_default),
        cmocka_unit_test(a_forbidden_reference_kernel_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
