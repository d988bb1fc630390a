/* SPDX-License-Identifier: Apache-2.0 */
/* abi_test.c: tests the ABI matrix: plug-ins built with every released
 * byoc/backend.h, and with possible future ones, against this byoc; and the
 * current plug-in against other hosts. Compatible ones compile a model and run
 * it; incompatible ones are refused with a message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <byoc/byoc.h>

#include "runtime/internal.h"

#define PLUGIN(name) PLUGIN_DIR "/abi_" name ".so"

/* --- plug-ins against this host ------------------------------------------- */

static const struct {
    const char *name;
    const char *what;    /* a comment: the version of its backend.h */
    const char *refusal; /* part of the message; NULL: the plug-in works */
} plugins[] = {
    {"draft1", "the first draft", "byoc_backend_descriptor_v1"},
    {"draft2", "failures can be read, types of operators", "before 1.0"},
    {"draft3", "layout()", "before 1.0"},
    {"draft4", "predicates say what they found", "before 1.0"},
    {"draft5", "match_find()", "before 1.0"},
    {"v1.0", "version 1.0", NULL},
    {"v1.1", "BYOC_BACKEND_WRITES_C", NULL},
    {"v1.2", "graph_open() and graph_close()", NULL},
    {"v1.3", "byoc_region_codes and describe()", NULL},
    {"this", "the header of this tree", NULL},
    {"newer", "version 1.9, each struct that grows has grown", NULL},
    {"needs", "version 1.9, needs such a host", "needs version 1.9"},
    {"major", "version 2.0", "version 2.0 of byoc/backend.h"},
    {"moved", "a member amid a struct",
     "struct byoc_region: member 'json' at offset 16, here 8"},
    {"retyped", "a member of another size",
     "struct byoc_probe: member 'impl' of 56 bytes, here 120"},
    {"gone", "a member is missing",
     "struct byoc_run_args: member 'trace_ctx' at offset 40 is only here"},
    {"view", "struct byoc_view has grown",
     "struct byoc_view: 40 bytes, here 32, and its size is fixed"},
};

static void check_run(struct byoc_compiled *c, const char *path)
{
    struct byoc_error err;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    float in[10], out[10] = {0};
    int64_t shape[] = {2, 5};
    for (int i = 0; i < 10; i++)
        in[i] = (float)(i - 4);
    const struct byoc_load_params load = {.plugins = path,
                                          .require_backends = 1};
    const DLTensor from = {.data = in,
                           .device = {kDLCPU, 0},
                           .ndim = 2,
                           .dtype = byoc_dtype_dlpack(BYOC_F32),
                           .shape = shape};
    DLTensor to = from;
    to.data = out;
    if (byoc_compiled_load(c, &load, &model, &err) ||
        byoc_state_new(model, &state, &err) ||
        byoc_run(state, &from, 1, &to, 1, &err))
        fail_msg("%s", err.text);
    for (int i = 0; i < 10; i++)
        assert_true(out[i] == (in[i] < 0 ? 0 : in[i]));
    byoc_state_free(&state);
    byoc_model_free(&model);
}

static void check_works(const char *path)
{
    struct byoc_error err;
    struct byoc_compiled *c = NULL;
    const char *const backends[] = {"abi", NULL};
    const struct byoc_compile_params params = {
        .plugins = path, .backends = backends, .threads = 2};
    if (byoc_compile(TEST_DIR "/abi/relu.ir", &params, &c, &err))
        fail_msg("%s", err.text);
    assert_non_null(strstr(byoc_compiled_ir(c), "Compiler=\"abi\""));
    check_run(c, path);
    byoc_compiled_free(&c);
}

static void test_plugins(void **state)
{
    (void)state;
    printf("plug-in built with                                  this byoc\n");
    for (size_t i = 0; i < sizeof plugins / sizeof *plugins; i++) {
        char path[1024];
        struct byoc_error err = {0};
        struct byi_plugin *plugin = NULL;
        snprintf(path, sizeof path, PLUGIN("%s"), plugins[i].name);
        const enum byoc_status status =
            byoc_internal_plugin_open(path, 1, &plugin, &err);
        const size_t skip = strlen(path) + 2;
        printf("%-51s %s\n", plugins[i].what,
               status == BYOC_OK         ? "works"
               : strlen(err.text) > skip ? err.text + skip
                                         : err.text);
        if (plugins[i].refusal) {
            assert_int_equal(status, BYOC_EINCOMPATIBLE);
            if (!strstr(err.text, plugins[i].refusal))
                fail_msg("found '%s', expected '%s' in it", err.text,
                         plugins[i].refusal);
            continue;
        }
        if (status != BYOC_OK)
            fail_msg("%s", err.text);
        byoc_internal_plugin_close(&plugin);
        check_works(path);
    }
}

/* --- the plug-in of today against other hosts ----------------------------- */

/* Hosts: the first struct_size bytes of a real host. No memory follows them, so
 * that a sanitizer reports a read past them. */
static const struct {
    const char *what;
    uint32_t struct_size, abi;
    bool works;
} hosts[] = {
    {"a draft's", 120, 1, false},
    {"nothing but its size", 4, BYOC_BACKEND_ABI, false},
    {"version 0.9", sizeof(struct byoc_host), BYOC_ABI(0, 9), false},
    {"version 1.0", sizeof(struct byoc_host), BYOC_ABI(1, 0), true},
    {"version 1.9, with more services", sizeof(struct byoc_host) + 64,
     BYOC_ABI(1, 9), true},
    {"version 2.0", sizeof(struct byoc_host), BYOC_ABI(2, 0), false},
};

static void test_hosts(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_plugin *plugin = NULL;
    void *symbol = NULL;
    byoc_backend_query_fn query;
    if (byoc_internal_plugin_open(PLUGIN("this"), 1, &plugin, &err) ||
        byoc_internal_library_find(PLUGIN("this"), BYOC_BACKEND_QUERY, &symbol,
                                   &err))
        fail_msg("%s", err.text);
    memcpy(&query, &symbol, sizeof query);
    printf(
        "\nhost                                                the plug-in of "
        "this tree\n");
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        const uint32_t size = hosts[i].struct_size;
        const size_t host_bytes = sizeof plugin->host;
        char why[200] = "", *host = calloc(1, size);
        memcpy(host, &plugin->host, size < host_bytes ? size : host_bytes);
        memcpy(host, &size, sizeof size);
        if (size >= 8)
            memcpy(host + 4, &hosts[i].abi, 4);
        const struct byoc_backend *b =
            query((const struct byoc_host *)(const void *)host, why, 200);
        printf("%-51s %s\n", hosts[i].what, b ? "works" : why);
        assert_true((b != NULL) == hosts[i].works);
        assert_true(b || strstr(why, "another version"));
        why[0] = '\1';
        b = query((const struct byoc_host *)(const void *)host, why, 1);
        assert_true(b || why[0] == '\0'); /* room for the NUL only */
        free(host);
    }
    byoc_internal_plugin_close(&plugin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plugins),
        cmocka_unit_test(test_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
