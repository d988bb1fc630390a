/* SPDX-License-Identifier: Apache-2.0 */
/* fuse_test.c: tests of FuseOps that goldens cannot express. Graphs of 100,000
 * nodes have shapes for which a non-linear algorithm would be slow. Also
 * compiles and runs every golden of FuseOps, and compares the results with
 * those of the interpreter.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <byoc/byoc.h>

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "interp/interp.h"
#include "transform/transform.h"
#include "tests/compare.h"

enum { N_NODES = 100000, MAX_IO = 16, MAX_WORDS = 8 };

/* --- large graphs -------------------------------------------------------- */

/* A graph that is being built. */
struct graph {
    struct byi_module *m;
    struct byi_func *f;
    byi_id x;
    clock_t begin; /* CPU time at which building it began */
};

static struct graph new_graph(void)
{
    const int64_t dim = 4;
    struct graph g = {.m = byi_module_new(), .begin = clock()};
    const uint32_t index = byi_func_new(g.m, "main");
    g.f = g.m->funcs.at[index];
    g.x = byi_add_param(g.m, g.f, "x",
                        byi_type_tensor(g.m->arena, BYOC_F32, 1, &dim));
    return g;
}

static byi_id add_call(struct graph *g, enum byi_op_id op, byi_id a, byi_id b)
{
    byi_id id = BYI_NO_ID;
    const byi_id args[] = {a, b};
    assert_int_equal(byi_add_op(g->m, g->f, op, args, b == BYI_NO_ID ? 1 : 2,
                                NULL, NULL, &id, NULL),
                     BYOC_OK);
    return id;
}

/* Fuse, and count the groups, and the operators in and outside of them. Fusion
 * in quadratic time would take hundreds of times as long as building. The ratio
 * of CPU times does not depend on the machine or a sanitizer. */
static void fuse(struct graph *g, uint32_t *n_groups, uint32_t *n_ops)
{
    static const struct byi_pass *const passes[] = {&byi_pass_fuse_ops};
    struct byoc_error err = {0};
    struct byi_pass_context ctx = {.opt_level = 2};
    const clock_t begin = clock();
    if (byi_run_passes(g->m, passes, 1, &ctx, &err))
        fail_msg("%s", err.text);
    const double ratio =
        (double)(clock() - begin) / (double)(begin - g->begin + 1);
    if (ratio > 100)
        fail_msg("found that fusing took %.0f times as long as building, "
                 "expected at most 100",
                 ratio);
    if (byi_verify(g->m, &err))
        fail_msg("%s", err.text);
    *n_groups = *n_ops = 0;
    for (uint32_t i = 0; i < g->m->funcs.n; i++) {
        const struct byi_func *f = g->m->funcs.at[i];
        uint32_t n_calls = 0;
        for (byi_id id = 0; id < f->nodes.n; id++)
            n_calls += f->nodes.at[id].kind == BYI_CALL_OP;
        if (f->attr.primitive)
            assert_in_range(n_calls, 2, 256);
        *n_groups += f->attr.primitive;
        *n_ops += n_calls;
    }
    byi_module_free(&g->m);
}

static void a_chain_is_cut_at_the_depth(void **state)
{
    (void)state;
    struct graph g = new_graph();
    byi_id at = g.x;
    for (uint32_t i = 0; i < N_NODES; i++)
        at = add_call(&g, i % 2 ? BYI_OP_EXP : BYI_OP_NN_RELU, at, BYI_NO_ID);
    g.f->result = at;
    uint32_t n_groups, n_ops;
    fuse(&g, &n_groups, &n_ops);
    assert_int_equal(n_groups, (N_NODES + 255) / 256);
    assert_int_equal(n_ops, N_NODES);
}

/* One value with very many readers, whose results are added pair by pair. */
static void a_wide_diamond_meets_again(void **state)
{
    (void)state;
    struct graph g = new_graph();
    BYI_VEC(byi_id) row = {0};
    const byi_id top = add_call(&g, BYI_OP_EXP, g.x, BYI_NO_ID);
    for (uint32_t i = 0; i < N_NODES / 2; i++)
        BYI_PUSH(&row, add_call(&g, BYI_OP_NN_RELU, top, BYI_NO_ID));
    for (uint32_t n = row.n; n > 1; n = (n + 1) / 2)
        for (uint32_t i = 0; i < n; i += 2)
            row.at[i / 2] =
                i + 1 < n ? add_call(&g, BYI_OP_ADD, row.at[i], row.at[i + 1])
                          : row.at[i];
    g.f->result = row.at[0];
    byi_vec_free(row.at);
    uint32_t n_groups, n_ops;
    fuse(&g, &n_groups, &n_ops);
    assert_in_range(n_groups, N_NODES / 256, N_NODES / 16);
    assert_int_equal(n_ops, N_NODES);
}

/* A ladder: two chains, and each rung reads both. All paths meet only at the
 * end, so that only the last rungs are close enough to be one group. */
static void a_ladder_has_one_end(void **state)
{
    (void)state;
    struct graph g = new_graph();
    byi_id left = g.x, right = g.x;
    for (uint32_t i = 0; i < N_NODES / 2; i++) {
        const byi_id sum = add_call(&g, BYI_OP_ADD, left, right);
        right = add_call(&g, BYI_OP_MULTIPLY, left, right);
        left = sum;
    }
    g.f->result = add_call(&g, BYI_OP_ADD, left, right);
    uint32_t n_groups, n_ops;
    fuse(&g, &n_groups, &n_ops);
    assert_int_equal(n_groups, 1);
    assert_int_equal(n_ops, N_NODES + 1);
}

/* A chain whose last operator reads every one of its values in turn, through a
 * second chain: dominators are as deep as the graph. */
static void a_comb_has_deep_dominators(void **state)
{
    (void)state;
    struct graph g = new_graph();
    BYI_VEC(byi_id) spine = {0};
    byi_id at = g.x;
    for (uint32_t i = 0; i < N_NODES / 2; i++)
        BYI_PUSH(&spine, at = add_call(&g, BYI_OP_EXP, at, BYI_NO_ID));
    for (uint32_t i = spine.n - 1; i-- > 0;)
        at = add_call(&g, BYI_OP_ADD, at, spine.at[i]);
    g.f->result = at;
    byi_vec_free(spine.at);
    uint32_t n_groups, n_ops;
    fuse(&g, &n_groups, &n_ops);
    assert_in_range(n_groups, 1, N_NODES / 4);
    assert_int_equal(n_ops, N_NODES - 1);
}

/* --- goldens by the runtime ---------------------------------------------- */

/* The options of "// RUN: byoc opt --passes=A,B -O0 --pass-option=P.n=4 %s". */
struct run {
    struct byi_arena *arena;
    const char *passes[MAX_WORDS], *options[MAX_WORDS];
    uint32_t n_passes, n_options;
    int opt_level;
};

static void read_run(struct run *run, const char *text)
{
    run->opt_level = 2;
    while (*text != '\n') {
        const size_t n = strcspn(text, " \n"), equals = strcspn(text, "=");
        const char *value =
            n > equals
                ? byi_arena_strn(run->arena, text + equals + 1, n - equals - 1)
                : NULL;
        assert_true(run->n_passes + 1 < MAX_WORDS &&
                    run->n_options + 1 < MAX_WORDS);
        if (strncmp(text, "--passes=", equals + 1) == 0)
            run->passes[run->n_passes++] = value;
        else if (strncmp(text, "--pass-option=", equals + 1) == 0)
            run->options[run->n_options++] = value;
        else if (strncmp(text, "-O", 2) == 0)
            run->opt_level = text[2] - '0';
        text += n + strspn(text + n, " ");
    }
}

static uint32_t interpret(const struct byi_module *m, struct byi_arena *arena,
                          struct byi_tensor in[MAX_IO], uint32_t *n_in,
                          struct byi_tensor out[MAX_IO])
{
    struct byoc_error err = {0};
    const uint32_t func = byi_func_find(m, "main");
    const struct byi_func *f = m->funcs.at[func];
    uint32_t n_out = 0;
    *n_in = f->params.n;
    assert_in_range(*n_in, 1, MAX_IO);
    for (uint32_t i = 0; i < *n_in; i++)
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type, i + 1,
                                      arena, &in[i]));
    if (byi_interp_run(m, func, in, *n_in, arena, out, MAX_IO, &n_out, &err))
        fail_msg("%s", err.text);
    return n_out;
}

static void run_compiled(const char *path, const struct run *run,
                         struct byi_tensor *in, uint32_t n_in,
                         const struct byi_tensor *expected, uint32_t n_expected)
{
    static const char *const none[] = {NULL};
    struct byoc_error err = {0};
    struct byoc_compiled *compiled = NULL;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    DLTensor inputs[MAX_IO], outputs[MAX_IO] = {0};
    const struct byoc_compile_params params = {.backends = none,
                                               .add_passes = run->passes,
                                               .options = run->options,
                                               .opt_level = run->opt_level,
                                               .exact = 1,
                                               .verify = 1};
    const struct byoc_load_params load = {.threads = 1};
    for (uint32_t i = 0; i < n_in; i++)
        inputs[i] = (DLTensor){.data = in[i].data,
                               .device = {kDLCPU, 0},
                               .ndim = (int)in[i].rank,
                               .dtype = byoc_dtype_dlpack(in[i].dtype),
                               .shape = in[i].dims};
    const enum byoc_status status =
        byoc_compile(path, &params, &compiled, &err);
    if (status || byoc_compiled_load(compiled, &load, &model, &err) ||
        byoc_state_new(model, &state, &err) ||
        byoc_run(state, inputs, n_in, outputs, n_expected, &err))
        fail_msg("%s: %s", path, err.text);
    for (uint32_t i = 0; i < n_expected; i++) {
        struct byi_tensor found = expected[i];
        found.rank = (uint32_t)outputs[i].ndim;
        memcpy(found.dims, outputs[i].shape, found.rank * sizeof *found.dims);
        found.data = outputs[i].data;
        if (compare_tensors(&found, &expected[i], 1e-4, 1e-5, &err))
            fail_msg("%s: result %u: %s", path, i, err.text);
    }
    byoc_state_free(&state);
    byoc_model_free(&model);
    byoc_compiled_free(&compiled);
}

static void check_golden(const char *path)
{
    struct byoc_error err = {0};
    struct byi_module *m = NULL;
    struct byi_tensor in[MAX_IO], expected[MAX_IO];
    struct run run = {.arena = byi_arena_new()};
    const void *map;
    uint32_t n_in;
    size_t n;
    assert_int_equal(byi_map_file(path, &map, &n, &err), BYOC_OK);
    const char *text = byi_arena_strn(run.arena, map, n);
    byi_unmap(map, n);
    read_run(&run, text);
    if (byi_parse_module(text, n, path, NULL, &m, &err))
        fail_msg("%s", err.text);
    const uint32_t n_expected = interpret(m, run.arena, in, &n_in, expected);
    run_compiled(path, &run, in, n_in, expected, n_expected);
    byi_module_free(&m);
    byi_arena_free(&run.arena);
}

static bool is_refused(const char *path)
{
    char err_path[512];
    snprintf(err_path, sizeof err_path, "%.*s.err",
             (int)(strlen(path) - strlen(".ir")), path);
    return access(err_path, F_OK) == 0;
}

static void goldens_run_compiled(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob(TEST_DIR "/transform/fuse_ops/*.ir", 0, NULL, &found),
                     0);
    assert_int_equal(
        glob(TEST_DIR "/transform/paper/*.ir", GLOB_APPEND, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        if (!is_refused(found.gl_pathv[i]))
            check_golden(found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_is_cut_at_the_depth),
        cmocka_unit_test(a_wide_diamond_meets_again),
        cmocka_unit_test(a_ladder_has_one_end),
        cmocka_unit_test(a_comb_has_deep_dominators),
        cmocka_unit_test(goldens_run_compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
