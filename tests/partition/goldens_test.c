/* SPDX-License-Identifier: Apache-2.0 */
/* goldens_test.c: executes the goldens of partitioning. Each .ir file in this
 * folder, except those that expect an error (.err), is compiled by the command
 * in its first line and run in the interpreter before and after, on the same
 * random inputs. Then it is compiled by the whole pipeline and run by the
 * runtime. The second line says how many composites are called and how many
 * regions there are afterwards:
 *     // RUN: byoc opt --native --pattern 'a.add=add(%a, %b)' --passes=... %s
 *     // EXPECT: composites=1 regions=0
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <byoc/byoc.h>

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "interp/interp.h"
#include "tests/ledger_check.h"
#include "tests/compare.h"

enum { MAX_WORDS = 32, MAX_IO = 16 };

/* The arguments of a RUN line. */
struct run {
    struct byi_arena *arena;
    const char *patterns[MAX_WORDS], *exclude[MAX_WORDS], *passes[MAX_WORDS];
    const char *backends[MAX_WORDS];
    const char *only[MAX_WORDS];
    uint32_t n_patterns, n_exclude, n_passes, n_backends, n_only;
    uint32_t min_region_nodes, max_regions;
    double min_region_flops;
    unsigned composites, regions;
};

static void split(struct run *run, const char *list, const char **words,
                  uint32_t *n)
{
    while (*list && *n + 1 < MAX_WORDS) {
        const size_t length = strcspn(list, ",");
        words[(*n)++] = byi_arena_strn(run->arena, list, length);
        list += length + (list[length] == ',');
    }
}

static void read_option(struct run *run, const char *name, const char *value)
{
    if (strcmp(name, "--pattern") == 0)
        run->patterns[run->n_patterns++] = value;
    else if (strcmp(name, "--exclude") == 0)
        run->exclude[run->n_exclude++] = value;
    else if (strcmp(name, "--passes") == 0)
        run->passes[run->n_passes++] = value;
    else if (strcmp(name, "--backend") == 0)
        split(run, value, run->backends, &run->n_backends);
    else if (strcmp(name, "--only") == 0)
        run->only[run->n_only++] = value;
    else if (strcmp(name, "--min-region-nodes") == 0)
        run->min_region_nodes = (uint32_t)atoi(value);
    else if (strcmp(name, "--min-region-flops") == 0)
        run->min_region_flops = atof(value);
    else if (strcmp(name, "--max-regions") == 0)
        run->max_regions = (uint32_t)atoi(value);
    else
        fail_msg("found option '%s' in a RUN line, expected one that "
                 "read_option() knows",
                 name);
}

/* The next word of a command line, without quotes around it. */
static const char *next_word(struct run *run, const char **at)
{
    const char *from = *at + strspn(*at, " ");
    const bool quoted = *from == '\'';
    from += quoted;
    const size_t n = strcspn(from, quoted ? "'\n" : " \n");
    *at = from + n + (quoted && from[n] == '\'');
    return n ? byi_arena_strn(run->arena, from, n) : NULL;
}

static void read_run(struct run *run, const char *text)
{
    static const char opening[] = "// RUN: byoc opt ";
    const char *expect = strstr(text, "\n// EXPECT: "), *word;
    assert_int_equal(strncmp(text, opening, strlen(opening)), 0);
    text += strlen(opening);
    while ((word = next_word(run, &text))) {
        const char *equals = strchr(word, '=');
        if (!strcmp(word, "--native") || !strcmp(word, "%s"))
            continue;
        if (equals)
            read_option(
                run, byi_arena_strn(run->arena, word, (size_t)(equals - word)),
                equals + 1);
        else
            read_option(run, word, next_word(run, &text));
    }
    if (!expect || sscanf(expect, "\n// EXPECT: composites=%u regions=%u",
                          &run->composites, &run->regions) != 2)
        fail_msg(
            "expected the line // EXPECT: composites=N regions=M, found none");
}

static struct byoc_compile_params params_of(const struct run *run)
{
    return (struct byoc_compile_params){
        .backends = run->backends,
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so",
        .exclude = run->exclude,
        .patterns = run->patterns,
        .only = run->only,
        .min_region_nodes = run->min_region_nodes,
        .min_region_flops = run->min_region_flops,
        .max_regions = run->max_regions,
        .verify = 1};
}

/* Check the numbers of composites that are called and of regions: functions
 * with Compiler or, before PartitionGraph, region numbers of nodes. */
static void check_counts(const struct byi_module *m, const struct run *run)
{
    unsigned composites = 0, regions = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++) {
        const struct byi_func *f = m->funcs.at[i];
        uint32_t last = 0;
        if (f->dead)
            continue;
        regions += f->attr.compiler != NULL;
        for (byi_id id = 0; id < f->nodes.n; id++) {
            const struct byi_node *node = &f->nodes.at[id];
            last = node->region > last ? node->region : last;
            if (node->kind != BYI_CALL)
                continue;
            const struct byi_node *fn = &f->nodes.at[node->args[0]];
            composites += fn->kind == BYI_FN &&
                          m->funcs.at[fn->index]->attr.composite != NULL;
        }
        regions += last;
    }
    if (composites != run->composites || regions != run->regions)
        fail_msg("found composites=%u regions=%u, expected composites=%u "
                 "regions=%u",
                 composites, regions, run->composites, run->regions);
}

/* Check that no constant of more than 8 bytes is all zeros, which would hide a
 * kernel that does not read its weights. */
static void check_data(const struct byi_module *m)
{
    for (uint32_t i = 0; i < m->consts.n; i++) {
        const struct byi_const *c = &m->consts.at[i];
        const char *bytes = c->data;
        uint64_t at = 0;
        while (at < c->bytes && !bytes[at])
            at++;
        if (c->bytes > 8 && at == c->bytes)
            fail_msg("constant %u: found %llu bytes that are all zero, "
                     "expected one that is not",
                     i, (unsigned long long)c->bytes);
    }
}

static void random_inputs(const struct byi_module *m, struct byi_arena *arena,
                          struct byi_tensor in[MAX_IO], uint32_t *n)
{
    const struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    *n = f->params.n;
    assert_true(*n <= MAX_IO);
    for (uint32_t i = 0; i < *n; i++)
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type, i + 1,
                                      arena, &in[i]));
}

static uint32_t interpret(const struct byi_module *m, struct byi_arena *arena,
                          struct byi_tensor out[MAX_IO])
{
    struct byoc_error err = {0};
    struct byi_tensor in[MAX_IO];
    uint32_t n_in, n = 0;
    random_inputs(m, arena, in, &n_in);
    if (byi_interp_run(m, byi_func_find(m, "main"), in, n_in, arena, out,
                       MAX_IO, &n, &err))
        fail_msg("%s", err.text);
    return n;
}

static void expect_same(const struct byi_tensor *found, uint32_t n_found,
                        const struct byi_tensor *expected, uint32_t n)
{
    struct byoc_error err;
    assert_int_equal(n_found, n);
    for (uint32_t i = 0; i < n; i++)
        if (compare_tensors(&found[i], &expected[i], 1e-4, 1e-5, &err))
            fail_msg("result %u: %s", i, err.text);
}

static struct byi_tensor tensor_of(const DLTensor *view,
                                   const struct byi_tensor *like)
{
    struct byi_tensor t = *like;
    t.rank = (uint32_t)view->ndim;
    memcpy(t.dims, view->shape, t.rank * sizeof *t.dims);
    t.data = view->data;
    return t;
}

/* Compile the file by the whole pipeline, run it by the runtime with the
 * backends' code, and compare the results with `expected` and the ledger with
 * `run`. */
static void run_compiled(const char *path, const struct run *run,
                         const struct byi_module *m,
                         const struct byi_tensor *expected, uint32_t n_expected)
{
    struct byoc_error err = {0};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    struct byi_tensor in[MAX_IO], found[MAX_IO];
    DLTensor inputs[MAX_IO], outputs[MAX_IO] = {0};
    uint32_t n_in;
    const struct byoc_compile_params params = params_of(run);
    const struct byoc_load_params load = {.plugins = params.plugins,
                                          .threads = 1};
    random_inputs(m, run->arena, in, &n_in);
    for (uint32_t i = 0; i < n_in; i++)
        inputs[i] = view_of(&in[i]);
    enum byoc_status status = byoc_compile(path, &params, &compiled, &err);
    if (status == BYOC_OK) {
        char why[512];
        const char *fault =
            ledger_check(byoc_compiled_ledger(compiled), why, sizeof why);
        if (fault)
            fail_msg("ledger: %s", fault);
    }
    if (status || byoc_compiled_load(compiled, &load, &model, &err) ||
        byoc_state_new(model, &state, &err) ||
        byoc_run(state, inputs, n_in, outputs, n_expected, &err))
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < n_expected; i++)
        found[i] = tensor_of(&outputs[i], &expected[i]);
    expect_same(found, n_expected, expected, n_expected);
    byoc_state_free(&state);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
}

static bool exists(const char *path, const char *suffix)
{
    char name[512];
    snprintf(name, sizeof name, "%.*s%s", (int)(strlen(path) - 3), path,
             suffix);
    return access(name, R_OK) == 0;
}

static struct byi_module *parse(const char *text, size_t n, const char *path)
{
    struct byoc_error err = {0};
    struct byi_module *m = NULL;
    if (byi_parse_module(text, n, path, NULL, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static void check_file(const char *path)
{
    struct byoc_error err = {0};
    struct run run = {.arena = byi_arena_new()};
    struct byoc_compiled *compiled = NULL;
    struct byi_tensor before[MAX_IO], after[MAX_IO];
    const void *text;
    size_t n;
    if (byi_map_file(path, &text, &n, &err))
        fail_msg("%s", err.text);
    read_run(&run, byi_arena_strn(run.arena, text, n));
    struct byi_module *m = parse(text, n, path);
    byi_unmap(text, n);
    check_data(m);
    struct byoc_compile_params params = params_of(&run);
    params.passes = run.passes;
    if (byoc_compile(path, &params, &compiled, &err))
        fail_msg("%s", err.text);
    const char *ir = byoc_compiled_ir(compiled);
    struct byi_module *partitioned = parse(ir, strlen(ir), path);
    check_counts(partitioned, &run);
    const uint32_t n_before = interpret(m, run.arena, before);
    const uint32_t n_after = interpret(partitioned, run.arena, after);
    expect_same(after, n_after, before, n_before);
    run_compiled(path, &run, m, before, n_before);
    byi_module_free(&partitioned);
    byoc_compiled_free(&compiled);
    byi_module_free(&m);
    byi_arena_free(&run.arena);
}

static void golden_computes_the_same(void **state)
{
    check_file(*state);
}

int main(void)
{
    glob_t found;
    if (glob(TEST_DIR "/partition/*.ir", 0, NULL, &found) != 0)
        return 1;
    struct CMUnitTest *tests = calloc(found.gl_pathc, sizeof *tests);
    size_t n = 0;
    for (size_t i = 0; tests && i < found.gl_pathc; i++)
        if (!exists(found.gl_pathv[i], ".err"))
            tests[n++] =
                (struct CMUnitTest){.name = strrchr(found.gl_pathv[i], '/') + 1,
                                    .test_func = golden_computes_the_same,
                                    .initial_state = found.gl_pathv[i]};
    int failed = _cmocka_run_group_tests("goldens", tests, n, NULL, NULL);
    free(tests);
    globfree(&found);
    return failed;
}
