/* SPDX-License-Identifier: Apache-2.0 */
/* cases_test.c: tests models with operators that are not ONNX's own, compared
 * with the results of ONNX Runtime (cases/, which scripts/ort-cases writes).
 * Inputs and results are initializers that no node reads, "input NAME" and
 * "output NAME". The results for maps follow the standard, since ONNX Runtime's
 * C interface returns maps one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glob.h>
#include <string.h>

#include "frontend_onnx/import.h"
#include "interp/interp.h"
#include "runtime_native/native.h"
#include "tests/compare.h"

enum { MAX_VALUES = 128 };

static const char folder[] = TEST_DIR "/frontend_onnx/cases/";

/* The initializer "KIND NAME" of the file. */
static struct byi_tensor find_tensor(struct byi_onnx_file *file,
                                     const char *kind, const char *name)
{
    const Onnx__GraphProto *graph = file->model->graph;
    const char *full_name = byi_arena_printf(file->arena, "%s %s", kind, name);
    struct byi_tensor t = {0};
    struct byoc_error err = {0};

    for (size_t i = 0; i < graph->n_initializer; i++)
        if (strcmp(graph->initializer[i]->name, full_name) == 0) {
            if (byi_onnx_decode(file, graph->initializer[i], &file->raw.at[i],
                                &t, &err) != BYOC_OK)
                fail_msg("%s", err.text);
            return t;
        }
    fail_msg("found no initializer '%s', expected one", full_name);
    return t;
}

/* Run @main on the stored inputs and compare with the stored outputs. 8-bit
 * integers may differ by one, since the reference also rounds between steps. */
static void compare(const char *path, const struct byi_module *m,
                    struct byi_onnx_file *file)
{
    const struct byi_func *f = m->funcs.at[0];
    struct byi_tensor in[MAX_VALUES], out[MAX_VALUES];
    struct byoc_error err = {0};
    uint32_t n_out = 0;

    assert_in_range(f->params.n, 1, MAX_VALUES);
    for (uint32_t i = 0; i < f->params.n; i++)
        in[i] = find_tensor(file, "input", f->param_names.at[i]);
    if (byi_interp_run(m, 0, in, f->params.n, file->arena, out, MAX_VALUES,
                       &n_out, &err) != BYOC_OK)
        fail_msg("%s: %s", path, err.text);
    assert_int_equal(n_out, f->result_names.n);
    for (uint32_t i = 0; i < n_out; i++) {
        const char *name = f->result_names.at[i];
        const struct byi_tensor expected = find_tensor(file, "output", name);
        const bool bytes =
            expected.dtype == BYOC_U8 || expected.dtype == BYOC_I8;
        if (compare_tensors(&out[i], &expected, bytes ? 0 : 1e-4,
                            bytes ? 1 : 1e-5, &err) != BYOC_OK)
            fail_msg("%s, output %s: %s", path, name, err.text);
    }
}

static void run_case(const char *path)
{
    const struct byi_onnx_params params = {.eval = byi_kernel_eval};
    struct byi_arena *arena = byi_arena_new();
    struct byi_onnx_file file;
    struct byi_module *m = NULL;
    struct byoc_error err = {0};

    if (byi_onnx_open(path, arena, &file, &err) != BYOC_OK ||
        byi_onnx_import(path, &params, &m, &err) != BYOC_OK)
        fail_msg("%s: %s", path, err.text);
    if (byi_verify(m, &err) != BYOC_OK)
        fail_msg("%s: %s", path, err.text);
    compare(path, m, &file);
    byi_module_free(&m);
    byi_onnx_close(&file);
    byi_arena_free(&arena);
}

static void all_cases(void **state)
{
    char pattern[sizeof folder + 8];
    glob_t found;
    (void)state;

    snprintf(pattern, sizeof pattern, "%s*.onnx", folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_true(found.gl_pathc >= 10);
    for (size_t i = 0; i < found.gl_pathc; i++)
        run_case(found.gl_pathv[i]);
    globfree(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
