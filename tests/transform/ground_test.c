/* SPDX-License-Identifier: Apache-2.0 */
/* ground_test.c: runs the golden of every pass. Each .ir file in the folders
 * next to this file is parsed, run on random inputs, transformed by the passes
 * in its first line, and run again. The results must be equal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "compile/passes.h"
#include "interp/interp.h"
#include "partition/partition.h"
#include "runtime/internal.h"
#include "runtime_native/native.h"
#include "tests/compare.h"

enum { MAX_IO = 16, MAX_WORDS = 16 };

/* A list of words. */
struct words {
    const char *at[MAX_WORDS + 1]; /* ends in NULL */
    uint32_t n;
};
/* The options of "// RUN: byoc opt --passes=A,[B] -O3 --pass-option=A.n=4 %s".
 */
struct run {
    struct byi_arena *arena;
    struct words passes, disabled, required, options, plugins;
    int opt_level;
};

/* If `word` is "NAME=VALUE" with this name, add the value to the list. Returns
 * whether it is. */
static bool add_option(struct run *run, struct words *to, const char *name,
                       const char *word)
{
    const size_t n = strlen(name);
    if (strncmp(word, name, n) != 0)
        return false;
    assert_true(to->n < MAX_WORDS);
    to->at[to->n++] = byi_arena_str(run->arena, word + n);
    return true;
}

/* "--desired=X" is "--pass-option=ConvertLayout.desired=X". */
static bool add_desired(struct run *run, const char *word)
{
    if (strncmp(word, "--desired=", strlen("--desired=")) != 0)
        return false;
    return add_option(run, &run->options, "--pass-option=",
                      byi_arena_printf(run->arena,
                                       "--pass-option=ConvertLayout.%s",
                                       word + 2));
}

static void read_run(struct run *run, const char *text)
{
    static const char opening[] = "// RUN: byoc opt ";
    run->opt_level = 2;
    assert_int_equal(strncmp(text, opening, strlen(opening)), 0);
    text += strlen(opening);
    while (*text != '\n') {
        const size_t n = strcspn(text, " \n");
        const char *word = byi_arena_strn(run->arena, text, n);
        text += n + strspn(text + n, " ");
        if (strncmp(word, "-O", 2) == 0)
            run->opt_level = word[2] - '0';
        else if (!add_option(run, &run->passes, "--passes=", word) &&
                 !add_option(run, &run->disabled, "--disable-pass=", word) &&
                 !add_option(run, &run->required, "--require-pass=", word) &&
                 !add_option(run, &run->options, "--pass-option=", word) &&
                 strncmp(word, "--print-", strlen("--print-")) != 0 &&
                 !add_desired(run, word) &&
                 !add_option(run, &run->plugins, "--plugin=%P/", word) &&
                 strcmp(word, "%s") != 0 && strcmp(word, "2>&1") != 0 &&
                 strcmp(word, "--native") != 0)
            fail_msg("found option '%s' in a RUN line, expected one that this "
                     "test knows",
                     word);
    }
}

/* The backend that the line names, if any. */
static struct byi_plugin *open_backend(const struct run *run,
                                       struct byi_backends *backends)
{
    struct byoc_error err = {0};
    struct byi_plugin *plugin = NULL;
    if (run->plugins.n == 0)
        return NULL;
    const char *path =
        byi_arena_printf(run->arena, PLUGIN_DIR "/%s", run->plugins.at[0]);
    if (byoc_internal_plugin_open(path, 1, &plugin, &err))
        fail_msg("%s", err.text);
    byi_match_host(&plugin->host);
    const struct byoc_host *host = &plugin->host;
    if (byi_backends_init(backends, &plugin->backend, &host, 1, &err))
        fail_msg("%s", err.text);
    return plugin;
}

static void run_passes(struct byi_module *m, struct run *run, const char *path)
{
    struct byoc_error err = {0};
    struct byi_pass_list list = {0};
    struct byi_backends backends = {0};
    struct byi_plugin *plugin = open_backend(run, &backends);
    struct byi_pass_context ctx = {
        .opt_level = run->opt_level,
        .disabled = run->disabled.at,
        .required = run->required.at,
        .options = run->options.at,
        .known = byi_passes_known(),
        .runs_all = true,
        .verify = true,
        .entries = {byi_backends_entry(plugin ? &backends : NULL)},
        .eval = byi_kernel_eval};
    if (run->passes.n == 0)
        fail_msg("%s: found no pass in the first line, expected one", path);
    for (uint32_t i = 0; i < run->passes.n; i++)
        if (byi_passes_parse(run->passes.at[i], run->arena, &list, &err))
            fail_msg("%s: %s", path, err.text);
    if (byi_run_passes(m, list.passes.at, list.passes.n, &ctx, &err))
        fail_msg("%s: %s", path, err.text);
    byi_vec_free(list.passes.at);
    byi_backends_free(&backends);
    byoc_internal_plugin_close(&plugin);
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
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type,
                                      seed + i, arena, &in[i]));
    if (byi_interp_run(m, func, in, f->params.n, arena, out, MAX_IO, n, &err))
        fail_msg("%s", err.text);
}

/* The error of a result relative to its terms: of float32, or of the type in
 * which ToMixedPrecision computes. */
static double relative_error(const struct run *run)
{
    double error = 1e-4;
    for (uint32_t i = 0; i < run->options.n; i++)
        error = strcmp(run->options.at[i], "ToMixedPrecision.to=fp16") == 0
                    ? 4e-3
                : strcmp(run->options.at[i], "ToMixedPrecision.to=bf16") == 0
                    ? 3e-2
                    : error;
    return error;
}

/* The absolute tolerance of a result: errors of sums whose terms nearly cancel
 * are in proportion to the terms. */
static double tolerance(const struct byi_tensor *t, double relative)
{
    const bool number = byi_dtype_is_float(t->dtype);
    const int64_t n = number ? byi_elements(t->rank, t->dims) : 0;
    double largest = 1;
    for (int64_t i = 0; i < n; i++) {
        const double x = fabs(byi_tensor_float(t, i));
        largest = isfinite(x) && x > largest ? x : largest;
    }
    return relative / 10 * largest;
}

static void check_file(const char *path)
{
    struct byoc_error err = {0};
    struct byi_module *m = NULL;
    struct byi_tensor before[MAX_IO], after[MAX_IO];
    struct byi_arena *arena = byi_arena_new();
    struct run run = {.arena = arena};
    const void *map;
    uint32_t n_before, n_after;
    size_t n;

    assert_int_equal(byi_map_file(path, &map, &n, &err), BYOC_OK);
    const char *text = byi_arena_strn(arena, map, n);
    byi_unmap(map, n);
    read_run(&run, text);
    if (byi_parse_module(text, n, path, NULL, &m, &err))
        fail_msg("%s", err.text);
    run_main(m, arena, 1, before, &n_before);
    const double relative = relative_error(&run);
    run_passes(m, &run, path);
    run_main(m, arena, 1, after, &n_after);
    assert_int_equal(n_before, n_after);
    for (uint32_t i = 0; i < n_before; i++)
        if (compare_tensors(&after[i], &before[i], relative,
                            tolerance(&before[i], relative), &err))
            fail_msg("%s: result %u: %s", path, i, err.text);
    byi_module_free(&m);
    byi_arena_free(&arena);
}

/* A golden that expects an error has nothing to run after its passes. */
static bool is_refused(const char *path)
{
    char err_path[512];
    snprintf(err_path, sizeof err_path, "%.*s.err",
             (int)(strlen(path) - strlen(".ir")), path);
    return access(err_path, F_OK) == 0;
}

static void goldens_compute_the_same(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(TEST_DIR "/transform/*/*.ir", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!is_refused(found.gl_pathv[i]))
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
