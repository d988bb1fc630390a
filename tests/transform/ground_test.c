/* ground_test.c: every golden of a pass, executed. Each .ir file beside this
 * is parsed, run on random inputs, changed by the passes its first line
 * names, and run again: the results are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <glob.h>
#include <string.h>

#include "tests/interp.h"
#include "transform/transform.h"

enum { MAX_PASSES = 8, MAX_IO = 16 };

static const struct byi_pass *const known[] = {
    &byi_pass_fold_constant,      &byi_pass_dead_code_elimination,
    &byi_pass_simplify_inference, &byi_pass_simplify_expr,
    &byi_pass_canonicalize_ops,   &byi_pass_recompose,
    &byi_pass_eliminate_common_subexpr,
};

/* The passes of "// RUN: byoc opt --passes=A,B %s". */
static uint32_t read_passes(const char *text,
                            const struct byi_pass *passes[MAX_PASSES])
{
    const char *at = strstr(text, "--passes=");
    uint32_t n = 0;
    if (!at || strncmp(text, "// RUN:", 7) != 0)
        return 0;
    at += strlen("--passes=");
    while (n < MAX_PASSES) {
        const size_t length = strcspn(at, ", \n");
        for (size_t i = 0; i < BYI_COUNT(known); i++)
            if (strlen(known[i]->name) == length &&
                memcmp(known[i]->name, at, length) == 0)
                passes[n++] = known[i];
        if (at[length] != ',')
            break;
        at += length + 1;
    }
    return n;
}

static void run_main(const struct byi_module *m, struct byi_arena *arena,
                     uint64_t seed, struct byi_tensor *out, uint32_t *n)
{
    struct byoc_error err = {0};
    struct byi_tensor in[MAX_IO];
    const uint32_t func = byi_func_find(m, "main");
    assert_true(func != UINT32_MAX);
    const struct byi_func *f = m->funcs.at[func];
    assert_true(f->params.n <= MAX_IO);
    for (uint32_t i = 0; i < f->params.n; i++)
        assert_true(interp_random(f->nodes.at[f->params.at[i]].type, seed + i,
                                  arena, &in[i]));
    if (interp_run(m, func, in, f->params.n, arena, out, MAX_IO, n, &err))
        fail_msg("%s", err.text);
}

static void check_file(const char *path)
{
    struct byoc_error err = {0};
    struct byi_module *m = NULL;
    const struct byi_pass *passes[MAX_PASSES];
    struct byi_tensor before[MAX_IO], after[MAX_IO];
    struct byi_arena *arena = byi_arena_new();
    const void *map;
    uint32_t n_before, n_after;
    size_t n;

    assert_int_equal(byi_map_file(path, &map, &n, &err), BYOC_OK);
    const char *text = byi_arena_strn(arena, map, n);
    byi_unmap(map, n);
    const uint32_t n_passes = read_passes(text, passes);
    if (n_passes == 0)
        fail_msg("%s: the first line names no pass", path);
    if (byi_parse_module(text, n, path, NULL, &m, &err))
        fail_msg("%s", err.text);
    run_main(m, arena, 1, before, &n_before);
    struct byi_pass_context ctx = {
        .opt_level = 3, .verify = true, .eval = interp_eval};
    if (byi_run_passes(m, passes, n_passes, &ctx, &err))
        fail_msg("%s: %s", path, err.text);
    run_main(m, arena, 1, after, &n_after);
    assert_int_equal(n_before, n_after);
    for (uint32_t i = 0; i < n_before; i++)
        if (interp_compare(&after[i], &before[i], 1e-4, 1e-5, &err))
            fail_msg("%s: result %u: %s", path, i, err.text);
    byi_module_free(&m);
    byi_arena_free(&arena);
}

static void goldens_compute_the_same(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(TEST_DIR "/transform/*.ir", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        check_file(found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens_compute_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
