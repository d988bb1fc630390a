/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_test.c: tests plug-ins that fail, each in its own way and with its own
 * message, and one that works, whose regions are compared with the interpreter.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plan.h"
#include "tests/fixture.h"
#include "tests/folder.h"

#define REF PLUGIN_DIR "/libbyoc_backend_ref.so"

static void check_open_fails(const char *path, enum byoc_status status,
                             const char *word)
{
    struct byoc_error err;
    struct byi_plugin *plugin = NULL;
    assert_int_equal(byoc_internal_plugin_open(path, 1, &plugin, &err), status);
    assert_null(plugin);
    if (!strstr(err.text, word) || !strstr(err.text, path))
        fail_msg("found \"%s\", expected \"%s\" and the path in it", err.text,
                 word);
}

static void test_failures(void **state)
{
    (void)state;
    check_open_fails("libbyoc_backend_ref.so", BYOC_EINVAL, "relative");
    check_open_fails(PLUGIN_DIR "/none.so", BYOC_EIO, "No such file");
    check_open_fails(TEST_DIR "/CMakeLists.txt", BYOC_EPARSE,
                     "not a shared library");
    check_open_fails(PLUGIN_DIR, BYOC_EPARSE, "not a shared library");
    check_open_fails(PLUGIN_DIR "/bad_missing.so", BYOC_EBACKEND,
                     "byoc_test_undefined");
    check_open_fails(PLUGIN_DIR "/bad_entry.so", BYOC_EBACKEND,
                     "byoc_backend_query_v1");
    check_open_fails(PLUGIN_DIR "/bad_entry.so", BYOC_EBACKEND,
                     "; a backend ends with BYOC_BACKEND_DEFINE(query)");
    check_open_fails(PLUGIN_DIR "/bad_refuses.so", BYOC_EBACKEND,
                     "no licence found");
    check_open_fails(PLUGIN_DIR "/bad_descriptor.so", BYOC_EINCOMPATIBLE,
                     "byoc_backend_descriptor_v1");
    check_open_fails(PLUGIN_DIR "/bad_abi.so", BYOC_EINCOMPATIBLE,
                     "version 77.0");
    check_open_fails(PLUGIN_DIR "/bad_needs.so", BYOC_EINCOMPATIBLE,
                     "needs version 1.999");
    check_open_fails(PLUGIN_DIR "/bad_sanitizer.so", BYOC_EINCOMPATIBLE,
                     "the memory sanitizer");
    check_open_fails(PLUGIN_DIR "/bad_state.so", BYOC_EBACKEND, "state_bytes");
    check_open_fails(PLUGIN_DIR "/bad_size.so", BYOC_EINCOMPATIBLE,
                     "struct_size");
    check_open_fails(PLUGIN_DIR "/bad_member.so", BYOC_EBACKEND, "member run");
    check_open_fails(PLUGIN_DIR "/bad_name.so", BYOC_EBACKEND, "\"Bad Name\"");
    check_open_fails(PLUGIN_DIR "/bad_patterns.so", BYOC_EBACKEND, "patterns");
    check_open_fails(PLUGIN_DIR "/bad_pattern.so", BYOC_EBACKEND,
                     "has no pattern");
    check_open_fails(PLUGIN_DIR "/bad_ext.so", BYOC_EBACKEND,
                     "more than 256 extensions");
    check_open_fails(PLUGIN_DIR "/bad_prefix.so", BYOC_EBACKEND, "dnnl.relu");
}

/* Make a file of this name in the test's folder. Returns its descriptor. */
static int make_file(const char *name, char path[TEST_PATH + 8])
{
    snprintf(path, TEST_PATH + 8, "%s/%s", make_test_folder(NULL), name);
    const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* Libraries whose operator breaks a rule of byoc/custom.h. */
static void test_bad_operators(void **state)
{
    (void)state;
    static const struct {
        const char *file, *word;
    } rows[] = {{"size", "struct_size"},       {"name", "found no name"},
                {"run", "found no run()"},     {"make", "make() and drop()"},
                {"inputs", "0 to 64"},         {"results", "1 to 16"},
                {"kind", "has kind"},          {"duplicate", "are both called"},
                {"json", "default values of"}, {"type", "default values of"},
                {"table", "NULL as the table"}};
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/bad_operator_%s.so", PLUGIN_DIR,
                 rows[i].file);
        check_open_fails(path, BYOC_EBACKEND, rows[i].word);
    }
}

/* A file that everybody may write is not loaded. */
static void test_world_writable(void **state)
{
    (void)state;
    char path[TEST_PATH + 8];
    const int fd = make_file("open", path);
    assert_int_equal(write(fd, "\177ELF", 4), 4);
    assert_int_equal(fchmod(fd, 0666), 0);
    close(fd);
    check_open_fails(path, BYOC_EINVAL, "chmod");
}

/* A library for another processor, and one whose descriptor was cut off. */
static void test_other_machine(void **state)
{
    (void)state;
    struct byoc_error err;
    const void *at;
    size_t n;
    char path[TEST_PATH + 8];
    const int fd = make_file("machine", path);
    assert_int_equal(byi_map_file(REF, &at, &n, &err), BYOC_OK);
    char *copy = malloc(n);
    memcpy(copy, at, n);
    byi_unmap(at, n);
    const char machine = copy[18];
    copy[18] = 40; /* e_machine: EM_ARM */
    assert_int_equal(write(fd, copy, n), n);
    check_open_fails(path, BYOC_EINCOMPATIBLE,
                     "another processor (ELF machine 40");
    copy[18] = machine;
    char *magic = memmem(copy, n, BYOC_BACKEND_MAGIC, 8);
    assert_non_null(magic);
    magic[7] = '!';
    assert_int_equal(pwrite(fd, copy, n, 0), n);
    check_open_fails(path, BYOC_EPARSE, "is damaged");
    assert_int_equal(ftruncate(fd, 4096), 0);
    check_open_fails(path, BYOC_EPARSE, "truncated");
    free(copy);
    close(fd);
}

/* byoc detects two OpenMP runtimes, or copies of oneDNN, and names them. */
static void test_duplicate_libraries(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_plugin *p = NULL;
    struct byi_text text = {0};
    assert_int_equal(
        byoc_internal_plugin_open(PLUGIN_DIR "/second_copy.so", 1, &p, &err),
        BYOC_OK);
    byoc_internal_copies(&text);
    assert_non_null(strstr(text.at, "2 OpenMP runtimes in this process: "));
    assert_non_null(strstr(text.at, "2 copies of oneDNN in this process: "));
    assert_non_null(strstr(text.at, "second_copy.so"));
    byi_text_free(&text);
    byoc_internal_plugin_close(&p);
}

static void test_open_twice(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_plugin *a = NULL, *b = NULL;
    assert_int_equal(byoc_internal_plugin_open(REF, 3, &a, &err), BYOC_OK);
    assert_int_equal(byoc_internal_plugin_open(REF, 5, &b, &err), BYOC_OK);
    assert_ptr_equal(a->backend, b->backend);
    assert_int_equal(a->host.threads(a->host.ctx), 3);
    assert_int_equal(b->host.threads(b->host.ctx), 5);
    byoc_internal_plugin_close(&a);
    assert_string_equal(b->backend->name, "ref");
    byoc_internal_plugin_close(&b);
    assert_int_equal(byoc_internal_plugin_open(REF, 0, &a, &err), BYOC_OK);
    assert_true(a->host.threads(a->host.ctx) > 0);
    byoc_internal_plugin_close(&a);
}

static void count(void *arg, uint32_t i)
{
    ((uint32_t *)arg)[i]++;
}

static void test_host_services(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_plugin *p = NULL;
    assert_int_equal(byoc_internal_plugin_open(REF, 2, &p, &err), BYOC_OK);
    const struct byoc_host *host = &p->host;
    void *memory = host->acquire(host->ctx, 100);
    assert_int_equal((uintptr_t)memory % 64, 0);
    host->release(host->ctx, memory);
    host->release(host->ctx, NULL);
    uint32_t counts[100] = {0};
    host->parallel_for(host->ctx, 100, count, counts);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(counts[i], 1);
    struct byoc_fail *fail =
        (host->fail)(host->ctx, BYOC_FAIL_RESOURCE, "no device");
    assert_string_equal(host->fail_text(fail), "no device");
    assert_int_equal(host->fail_code(fail), BYOC_FAIL_RESOURCE);
    assert_int_equal(byi_plugin_status(fail, p, "ref_0", &err), BYOC_ENOMEM);
    assert_string_equal(err.text, "ref: ref_0: no device");
    for (int i = 0; i < 2; i++) {
        fail = (host->fail)(host->ctx, BYOC_FAIL_INVALID, i ? "" : NULL);
        assert_string_equal(host->fail_text(fail), "(no reason given)");
        host->fail_free(fail);
    }
    byoc_internal_plugin_close(&p);
}

static void test_paths(void **state)
{
    (void)state;
    struct byoc_error err;
    struct byi_text paths = {0};
    assert_int_equal(byoc_internal_plugin_list("only:" PLUGIN_DIR
                                               ":/some/file.so",
                                               &paths, NULL, &err),
                     BYOC_OK);
    assert_string_equal(paths.at, REF "\n/some/file.so\n");
    byi_text_free(&paths);
    assert_int_equal(byoc_internal_plugin_list("plugins", &paths, NULL, &err),
                     BYOC_EINVAL);
    assert_non_null(strstr(err.text, "absolute"));
    struct byi_plugin *p = NULL;
    setenv("BYOC_PLUGIN_PATH", PLUGIN_DIR, 1);
    assert_int_equal(byoc_internal_plugin_find(NULL, "ref", 1, &p, &err),
                     BYOC_OK);
    byoc_internal_plugin_close(&p);
    assert_int_equal(byoc_internal_plugin_find(NULL, "other", 1, &p, &err),
                     BYOC_EIO);
    assert_non_null(strstr(err.text, "libbyoc_backend_other.so"));
    unsetenv("BYOC_PLUGIN_PATH");
    assert_int_equal(byoc_internal_plugin_find(PLUGIN_DIR "/bad_load.so", "ref",
                                               1, &p, &err),
                     BYOC_EIO); /* it opens, but is another backend */
    assert_null(p);
}

/* --- models with regions -------------------------------------------------- */

#define REGION(name, backend)                                                  \
    "def @" name "(%a: Tensor[(2, 3), float32], %b: Tensor[(3), float32],"     \
    " Compiler=\"" backend "\", global_symbol=\"" name "\") {\n"               \
    "  %f = fn (%a: Tensor[(2, 3), float32], %b: Tensor[(3), float32],"        \
    " Composite=\"" backend ".add_relu\") {\n"                                 \
    "    %0 = add(%a, %b);\n"                                                  \
    "    nn.relu(%0)\n"                                                        \
    "  };\n"                                                                   \
    "  %g = fn (%a: Tensor[(2, 3), float32],"                                  \
    " Composite=\"" backend ".multiply\", Operands=\"b\") {\n"                 \
    "    multiply(%a, Tensor[(3), float32] {2.0, 0.5, -1.0})\n"                \
    "  };\n"                                                                   \
    "  %1 = %f(%a, %b);\n"                                                     \
    "  %2 = %g(%1);\n"                                                         \
    "  (%2, %1)\n"                                                             \
    "}\n"

#define MAIN                                                                   \
    "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32]) {\n"     \
    "  %0 = exp(%x);\n"                                                        \
    "  %1 = @r0(%0, %y);\n"                                                    \
    "  %2 = tanh(%1.0);\n"                                                     \
    "  %3 = @r1(%2, %y);\n"                                                    \
    "  (%3.0, %1.1, %3.1)\n"                                                   \
    "}\n"

static const char two_regions[] = REGION("r0", "ref") REGION("r1", "ref") MAIN;

static struct byoc_model *open_model(struct fixture *x, const char *ir,
                                     const struct byoc_load_params *params)
{
    struct byoc_error err;
    struct byoc_model *model = NULL;
    if (fixture_open(x, ir, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (byoc_internal_model_open(&x->image, params, &model, &err) != BYOC_OK)
        fail_msg("%s\n%s", err.text, x->plan.json.at);
    return model;
}

static void check_runs(struct fixture *x, const struct byoc_model *model)
{
    struct byoc_error err;
    struct byoc_state *s = NULL;
    if (byoc_state_new(model, &s, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    for (uint64_t seed = 0; seed < 3; seed++)
        if (fixture_run(x, s, seed * 10, seed != 1, &err) != BYOC_OK)
            fail_msg("%s", err.text);
    byoc_state_free(&s);
}

static void test_regions(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_model *model = open_model(
        &x, two_regions, &(struct byoc_load_params){.plugins = PLUGIN_DIR});
    assert_string_equal(byoc_model_warnings(model), "");
    assert_true(model->base.regions[0].plugin && model->base.regions[1].plugin);
    check_runs(&x, model);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_native_only(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_model *model = open_model(
        &x, two_regions,
        &(struct byoc_load_params){.plugins = PLUGIN_DIR, .native_only = 1});
    assert_string_equal(byoc_model_warnings(model), "");
    assert_true(!model->base.regions[0].plugin &&
                !model->base.regions[1].plugin);
    check_runs(&x, model);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void keep_line(void *ctx, enum byoc_severity severity, const char *line)
{
    assert_in_range(severity, BYOC_INFO, BYOC_WARNING);
    snprintf(ctx, 1024, "%s", line);
}

/* The last line that was logged. */
struct log_entry {
    enum byoc_severity severity;
    char line[64];
};

static void keep_severity(void *ctx, enum byoc_severity severity,
                          const char *line)
{
    struct log_entry *entry = ctx;
    entry->severity = severity;
    snprintf(entry->line, sizeof entry->line, "%s", line);
}

/* Messages of a backend are logged only for debugging. */
static void test_backend_log(void **state)
{
    (void)state;
    struct fixture x;
    struct log_entry entry = {0};
    struct byoc_load_params params = {.struct_size = sizeof params,
                                      .plugins = PLUGIN_DIR,
                                      .log = keep_severity,
                                      .log_ctx = &entry};
    for (int debug = 0; debug <= 1; debug++) {
        params.log_severity = debug ? BYOC_DEBUG : (enum byoc_severity)0;
        struct byoc_model *model = open_model(&x, two_regions, &params);
        const struct byoc_host *host = &model->base.regions[0].plugin->host;
        assert_int_equal(entry.severity, BYOC_INFO);
        entry = (struct log_entry){0};
        host->log(host->ctx, "a line");
        assert_int_equal(entry.severity, debug ? BYOC_DEBUG : 0);
        assert_string_equal(entry.line, debug ? "a line" : "");
        byoc_model_free(&model);
        fixture_close(&x);
    }
}

/* A missing backend: the twin runs, with a warning. */
static void test_missing_backend(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    char line[1024] = "";
    struct byoc_load_params params = {
        .plugins = "/nowhere.so", .log = keep_line, .log_ctx = line};
    struct byoc_model *model = open_model(&x, two_regions, &params);
    const char *warnings = byoc_model_warnings(model);
    assert_non_null(strstr(warnings, "r0 runs its native twin: /nowhere.so"));
    assert_non_null(strstr(warnings, "\nregion r1 "));
    assert_non_null(strstr(line, "r1"));
    check_runs(&x, model);
    byoc_model_free(&model);
    params.require_backends = 1;
    assert_int_equal(byoc_internal_model_open(&x.image, &params, &model, &err),
                     BYOC_EBACKEND);
    assert_non_null(strstr(err.text, "/nowhere.so"));
    assert_null(model);
    fixture_close(&x);
}

/* One region loads; the backend of the other refuses it at load. */
static void test_load_fails(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_model *model =
        open_model(&x, REGION("r0", "ref") REGION("r1", "bad") MAIN,
                   &(struct byoc_load_params){.plugins = REF ":" PLUGIN_DIR
                                                             "/bad_load.so"});
    assert_string_equal(byoc_model_warnings(model),
                        "region r1 runs its native twin: bad: r1: this "
                        "backend builds nothing\n");
    assert_true(model->base.regions[0].plugin &&
                !model->base.regions[1].plugin);
    check_runs(&x, model);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* A run that is cancelled before it begins fails, and the next run is not
 * cancelled. */
static void test_cancel(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_state *s = NULL;
    struct byoc_model *model =
        open_model(&x, two_regions, &(struct byoc_load_params){.plugins = REF});
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    byoc_state_cancel(s);
    assert_int_equal(fixture_run(&x, s, 1, true, &err), BYOC_ECANCELLED);
    assert_non_null(strstr(err.text, "cancelled in @main, after 0 of"));
    assert_int_equal(fixture_run(&x, s, 1, true, &err), BYOC_OK);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

static uint32_t count_maps(const char *word)
{
    char line[4096];
    uint32_t n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps))
        n += strstr(line, word) != NULL;
    fclose(maps);
    return n;
}

/* The library is opened and closed with its models, and leaves neither a
 * mapping nor memory, which the leak checker would report at the end. */
static void test_open_and_close_repeatedly(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    const struct byoc_load_params params = {.plugins = REF, .threads = 1};
    struct byoc_model *model = open_model(&x, two_regions, &params);
    uint32_t n_maps = 0;
    assert_true(count_maps("libbyoc_backend_ref.so") > 0);
    byoc_model_free(&model);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(
            byoc_internal_model_open(&x.image, &params, &model, &err), BYOC_OK);
        assert_true(model->base.regions[0].plugin != NULL);
        if (i % 100 == 0)
            check_runs(&x, model);
        byoc_model_free(&model);
        if (i == 100)
            n_maps = count_maps("");
    }
    assert_int_equal(count_maps("libbyoc_backend_ref.so"), 0);
    if (count_maps("vgpreload") == 0) /* valgrind maps memory of its own */
        assert_true(count_maps("") <= n_maps);
    fixture_close(&x);
}

static void test_trace(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_state *s = NULL;
    struct byoc_model *model =
        open_model(&x, two_regions, &(struct byoc_load_params){.plugins = REF});
    char path[TEST_PATH + 8];
    close(make_file("trace", path));
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    assert_int_equal(byoc_state_trace(s, path, &err), BYOC_OK);
    assert_int_equal(fixture_run(&x, s, 1, true, &err), BYOC_OK);
    byoc_state_free(&s); /* closes the trace */
    const void *text;
    size_t n;
    struct cJSON *json = NULL;
    assert_int_equal(byi_map_file(path, &text, &n, &err), BYOC_OK);
    assert_int_equal(byi_json_parse(text, n, 1 << 20, &json, &err), BYOC_OK);
    assert_non_null(memmem(text, n, "ref:plain", 9));
    byi_json_free(&json);
    byi_unmap(text, n);
    byoc_model_free(&model);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_bad_operators),
        cmocka_unit_test(test_world_writable),
        cmocka_unit_test(test_open_twice),
        cmocka_unit_test(test_host_services),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_native_only),
        cmocka_unit_test(test_backend_log),
        cmocka_unit_test(test_missing_backend),
        cmocka_unit_test(test_load_fails),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_open_and_close_repeatedly),
        cmocka_unit_test(test_other_machine),
        cmocka_unit_test(test_duplicate_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
