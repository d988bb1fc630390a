/* SPDX-License-Identifier: Apache-2.0 */
/* run_test.c: runs every program of this folder, except those that must fail
 * (bad_*.ir): by the interpreter; compiled with only the required passes, in
 * memory; and compiled with the whole pipeline, in memory and from an artifact.
 * The results must be equal; the goldens have the numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <byoc/byoc.h>

#include "interp/interp.h"
#include "tests/compare.h"
#include "tests/folder.h"

enum { MAX_IO = 16 };

/* A program, its inputs, and the interpreter's results. */
struct program {
    const char *path;
    struct byi_arena *arena;
    struct byi_module *m;
    struct byi_tensor in[MAX_IO], expected[MAX_IO];
    uint32_t n_in, n_out;
};

static void interpret(struct program *p)
{
    struct byoc_error err;
    const void *text;
    size_t n;
    p->arena = byi_arena_new();
    assert_int_equal(byi_map_file(p->path, &text, &n, &err), BYOC_OK);
    if (byi_parse_module(text, n, p->path, NULL, &p->m, &err))
        fail_msg("%s", err.text);
    byi_unmap(text, n);
    const uint32_t func = byi_func_find(p->m, "main");
    const struct byi_func *f = p->m->funcs.at[func];
    p->n_in = f->params.n;
    assert_true(p->n_in <= MAX_IO);
    for (uint32_t i = 0; i < p->n_in; i++)
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type, 7 + i,
                                      p->arena, &p->in[i]));
    if (byi_interp_run(p->m, func, p->in, p->n_in, p->arena, p->expected,
                       MAX_IO, &p->n_out, &err))
        fail_msg("%s: %s", p->path, err.text);
}

static void compare(const struct program *p, const DLTensor *found,
                    const char *how)
{
    for (uint32_t i = 0; i < p->n_out; i++) {
        struct byoc_error err;
        struct byi_tensor t = p->expected[i];
        assert_int_equal(found[i].ndim, (int)t.rank);
        for (uint32_t d = 0; d < t.rank; d++)
            t.dims[d] = found[i].shape[d];
        t.data = found[i].data;
        if (compare_tensors(&t, &p->expected[i], 1e-5, 1e-6, &err))
            fail_msg("%s, %s: result %u: %s", p->path, how, i, err.text);
    }
}

/* Run twice with one state: a run must not affect the next one. */
static void run_model(struct program *p, const struct byoc_model *model,
                      const char *how)
{
    struct byoc_error err;
    struct byoc_state *state = NULL;
    DLTensor in[MAX_IO], out[MAX_IO];
    if (byoc_state_new(model, &state, &err))
        fail_msg("%s, %s: %s", p->path, how, err.text);
    for (uint32_t i = 0; i < p->n_in; i++)
        in[i] = (DLTensor){.data = p->in[i].data,
                           .device = {kDLCPU, 0},
                           .ndim = (int)p->in[i].rank,
                           .dtype = byoc_dtype_dlpack(p->in[i].dtype),
                           .shape = p->in[i].dims};
    for (int times = 0; times < 2; times++) {
        memset(out, 0, sizeof out);
        if (byoc_run(state, in, p->n_in, out, p->n_out, &err))
            fail_msg("%s, %s: %s", p->path, how, err.text);
        compare(p, out, how);
    }
    byoc_state_free(&state);
}

static void run_compiled(struct program *p, int level, bool file)
{
    static const char *const none[] = {NULL};
    const struct byoc_compile_params params = {
        .backends = none,
        .opt_level = (enum byoc_opt)((int)BYOC_O0 + level),
        .threads = 1,
        .verify = 1};
    const struct byoc_load_params load = {.threads = 1};
    struct byoc_error err;
    struct byoc_compiled *c = NULL;
    struct byoc_model *model = NULL;
    char how[32];
    snprintf(how, sizeof how, "-O%d in memory", level);
    if (byoc_compile(p->path, &params, &c, &err) ||
        byoc_compiled_load(c, &load, &model, &err))
        fail_msg("%s, %s: %s", p->path, how, err.text);
    run_model(p, model, how);
    byoc_model_free(&model);
    if (file) {
        char path[TEST_PATH + 8];
        snprintf(path, sizeof path, "%s/m.so", make_test_folder(NULL));
        if (byoc_compiled_write(c, path, &err) ||
            byoc_model_load(path, &load, &model, &err))
            fail_msg("%s: %s", p->path, err.text);
        run_model(p, model, "from an artifact");
        byoc_model_free(&model);
    }
    byoc_compiled_free(&c);
}

static void programs_run_the_same(void **unused)
{
    (void)unused;
    glob_t found;
    uint32_t n = 0;
    assert_int_equal(glob(TEST_DIR "/run/*.ir", 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        struct program p = {.path = found.gl_pathv[i]};
        if (strstr(p.path, "/run/bad_"))
            continue;
        n++;
        interpret(&p);
        run_compiled(&p, 0, false);
        run_compiled(&p, 3, true);
        byi_module_free(&p.m);
        byi_arena_free(&p.arena);
    }
    assert_true(n > 15);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(programs_run_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
