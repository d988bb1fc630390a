/* SPDX-License-Identifier: Apache-2.0 */
/* suite.c: runs ONNX's own cases, if they are installed. A case is a model of
 * one operator, with inputs and expected outputs.
 */
#include "groups.h"

#include <byoc/byoc.h>

#include "driver/feed.h"
#include "driver/compiled.h"
#include "partition/partition.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 4096 };

/* as in scripts/onnx-suite */
static const struct byi_tolerance tolerance = {.atol = 1e-7, .rtol = 1e-3};

/* Run one data set. Returns whether the outputs are as expected; if not, err
 * has the reason. */
static bool run_set(const struct byoc_model *model, const char *folder,
                    struct byi_arena *arena, struct byoc_error *err)
{
    const struct byi_feed_params params = {.data = folder, .seed = 1};
    struct byi_feed in, expected, out = byi_feed_outputs(model, arena);
    struct byoc_state *state = NULL;
    bool found = false;
    enum byoc_status status = byi_feed_inputs(model, &params, arena, &in, err);
    if (status == BYOC_OK)
        status =
            byi_feed_expected(model, &params, arena, &expected, &found, err);
    if (status == BYOC_OK)
        status = byoc_state_new(model, &state, err);
    if (status == BYOC_OK)
        status = byoc_run(state, in.views, in.n, out.views, out.n, err);
    for (uint32_t i = 0; status == BYOC_OK && found && i < out.n; i++) {
        struct byi_tensor t = byi_feed_tensor(&out.views[i]);
        struct byi_difference d;
        if (byoc_model_output(model, i)->dtype == BYOC_BOOL)
            t.dtype = BYOC_BOOL;
        status = byi_compare_tensors(&t, &expected.at[i], &tolerance, &d, err);
        if (status == BYOC_OK && d.n_bad)
            status = byi_fail(err, BYOC_EINTERNAL,
                              "output %u, element %lld: found %.9g, expected "
                              "%.9g",
                              i, (long long)d.worst, d.found, d.expected);
    }
    byoc_state_free(&state);
    return status == BYOC_OK;
}

/* The value of byoc_load_params.plugins and byoc_compile_params.plugins that
 * loads this plug-in and no others. */
static const char *only_this_plugin(const struct byi_kit *kit)
{
    static char list[PATH_BYTES + 8];
    snprintf(list, sizeof list, "only:%.*s", PATH_BYTES, kit->path);
    return list;
}

/* Run every data set of the case, on the plug-in or on native kernels. Returns
 * whether all outputs are as expected; if not, err has the reason. */
static bool run_case(struct byoc_compiled *compiled, const struct byi_kit *kit,
                     const char *folder, bool native, struct byoc_error *err)
{
    const struct byoc_load_params params = {.threads = 2,
                                            .plugins = only_this_plugin(kit),
                                            .native_only = native,
                                            .require_backends = !native};
    struct byoc_model *model = NULL;
    if (byoc_compiled_load(compiled, &params, &model, err) != BYOC_OK)
        return false;
    struct byi_arena *arena = byi_arena_new();
    bool is_expected = true;
    for (uint32_t i = 0; is_expected; i++) {
        char set[PATH_BYTES];
        snprintf(set, sizeof set, "%s/test_data_set_%u", folder, i);
        DIR *dir = opendir(set);
        if (!dir)
            break;
        closedir(dir);
        is_expected = run_set(model, set, arena, err);
    }
    byi_arena_free(&arena);
    byoc_model_free(&model);
    return is_expected;
}

void byi_kit_try_suite(struct byi_kit *kit, const struct byi_kit_case *c)
{
    const char *backends[] = {byi_kit_backend(kit)->name, NULL};
    const struct byoc_compile_params params = {.backends = backends,
                                               .plugins = only_this_plugin(kit),
                                               .threads = 2,
                                               .codegen = kit->codegen};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err, why;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/model.onnx", c->row);
    byi_child_step(NULL, "compiling %s", c->name);
    if (byoc_compile(path, &params, &compiled, &err) != BYOC_OK)
        byi_kit_end(kit, BYI_UNTESTED, 0, "%s", err.text);
    if (!byi_has_region(byi_compiled_module(compiled), NULL))
        byi_kit_end(kit, BYI_REFUSED, 0,
                    "the plug-in runs no node of the case's model");
    byi_child_step(NULL, "running %s", c->name);
    if (run_case(compiled, kit, c->row, false, &err))
        byi_kit_end(kit, BYI_PASSED, 0, "%s", "");
    if (!run_case(compiled, kit, c->row, true, &why))
        byi_kit_end(kit, BYI_UNTESTED, 0, "native kernels: %s", why.text);
    byi_kit_failed(kit, BYI_RULE_SUITE, "%s", err.text);
}

/* Implements scandir()'s order. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Implements scandir()'s filter: each folder is a case. */
static int is_case(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

uint32_t byi_suite_list(const char *data,
                        void (*use)(void *ctx, const char *name,
                                    const char *folder),
                        void *ctx)
{
    static const char *const groups[] = {"node", "simple", "pytorch-converted",
                                         "pytorch-operator"};
    uint32_t count = 0;
    for (size_t p = 0; p < BYI_COUNT(groups); p++) {
        struct dirent **entries;
        char folder[PATH_BYTES], name[PATH_BYTES], path[2 * PATH_BYTES];
        snprintf(folder, sizeof folder, "%s/%s", data, groups[p]);
        const int n = scandir(folder, &entries, is_case, by_name);
        for (int i = 0; i < n; i++) {
            snprintf(name, sizeof name, "onnx/%s/%s", groups[p],
                     entries[i]->d_name);
            snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
            use(ctx, name, path);
            count++;
            free(entries[i]);
        }
        if (n >= 0)
            free(entries);
    }
    return count;
}
