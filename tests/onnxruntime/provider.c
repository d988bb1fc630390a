/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: tests the execution provider in ONNX Runtime.
 *
 *     provider LIBONNXRUNTIME.so LIBBYOC_ONNXRUNTIME.so [PATTERN]
 *
 * PATTERN selects tests by their names; * and ? stand for any characters.
 * Most tests run a model in two sessions, one of which has the provider.
 */
#include "tests/onnxruntime/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/stat.h>

#include <byoc/byoc.h>

#include "npy/npy.h"
#include "tests/folder.h"
#include "tests/open_files.h"

#define FLOAT ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
#define INT64 ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64
#define STRING ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING
#define BOOL ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL

static const char *provider_path;

/* --- models --------------------------------------------------------------- */

/* An operator that ONNX Runtime supports and byoc does not. */
static void sample_op(struct build *b, const char *in, const char *out)
{
    node(b, "SampleOp", in, out)->domain = "com.microsoft";
}

static const float square[] = {4, 1, 0, 2, 5, 1, 0, 3, 6};
static const struct session_value square_x = {"x", FLOAT, 2, {3, 3}, square};

/* y = softmax(x) w: two nodes that byoc runs. */
static struct build small_model(void)
{
    struct build b = start();
    input(&b, "x", "3 3");
    floats(&b, "w", 2, (int64_t[]){3, 3});
    node(&b, "Softmax", "x", "a");
    node(&b, "MatMul", "a w", "y");
    typed_output(&b, "y", FLOAT, "3 3");
    return b;
}

/* --- claimed nodes -------------------------------------------------------- */

static void all_nodes_claimed(void **state)
{
    struct build b = small_model();
    (void)state;
    expect_claimed(&b, &square_x, 1, 2, 2);
}

static void unsupported_node(void **state)
{
    struct build b = start();
    (void)state;
    input(&b, "x", "3 3");
    sample_op(&b, "x", "y");
    typed_output(&b, "y", FLOAT, "3 3");
    expect_claimed(&b, &square_x, 1, 0, 1);
}

/* Two SampleOp nodes, which byoc does not support, are between the others, so
 * byoc claims two groups of nodes: Softmax and Exp, Mul and Sub. The edge from
 * Exp to Sub must not join them to one group. The path from Softmax by way of
 * SampleOp to Mul would leave that group and return, which is a cycle. */
static void nodes_around_unsupported_ones(void **state)
{
    struct build b = start();
    (void)state;
    input(&b, "x", "3 3");
    node(&b, "Softmax", "x", "a");
    node(&b, "Exp", "a", "e");
    sample_op(&b, "x", "i");
    sample_op(&b, "a", "j");
    node(&b, "Mul", "i j", "m");
    node(&b, "Sub", "m e", "y");
    typed_output(&b, "y", FLOAT, "3 3");
    expect_claimed(&b, &square_x, 1, 4, 6);
}

/* A sequence cannot be an input or output of a fused node, but may be within
 * one. */
static void sequences(void **state)
{
    struct build b = start();
    (void)state;
    input(&b, "x", "3 3");
    int64_t one[] = {1};
    ints(&b, "at", 1, one);
    node(&b, "Softmax", "x", "a");
    node(&b, "SequenceConstruct", "a x", "list");
    node(&b, "SequenceInsert", "list a", "longer");
    node(&b, "ConcatFromSequence", "longer", "rows")->n_attribute = 0;
    attr_int(&b, b.graph->node[3], "axis", 0);
    node(&b, "Exp", "rows", "y");
    typed_output(&b, "y", FLOAT, NULL);
    expect_claimed(&b, &square_x, 1, 5, 5);

    b = start();
    input(&b, "x", "3 3");
    node(&b, "Softmax", "x", "a");
    node(&b, "SequenceConstruct", "a x", "list");
    b.graph->output = list_add(b.arena, b.graph->output, &b.graph->n_output,
                               value(&b, "list", FLOAT, "3 3"));
    static Onnx__TypeProto__Sequence sequence =
        ONNX__TYPE_PROTO__SEQUENCE__INIT;
    static Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    sequence.elem_type = b.graph->output[0]->type;
    type.value_case = ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE;
    type.sequence_type = &sequence;
    b.graph->output[0]->type = &type;
    expect_claimed(&b, &square_x, 1, 1, 2);
}

/* --- sizes, strings, bodies ----------------------------------------------- */

static void sizes_vary(void **state)
{
    static float data[64 * 5];
    struct build b = start();
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(data); i++)
        data[i] = (float)(i % 7) - 3;
    input(&b, "x", "N 5");
    floats(&b, "w", 2, (int64_t[]){5, 4});
    node(&b, "MatMul", "x w", "y"); /* (N, 4): known before the run */
    node(&b, "NonZero", "x", "z");  /* known after it               */
    typed_output(&b, "y", FLOAT, "N 4");
    typed_output(&b, "z", INT64, "2 M");
    OrtSession *reference = session_of(&b, NULL);
    OrtSession *byoc = session_of(&b, NO_OPTIONS);
    static const int64_t sizes[] = {1, 7, 64, 0, 7};
    for (size_t i = 0; i < BYI_COUNT(sizes); i++)
        expect_same(reference, byoc,
                    &(struct session_value){"x", FLOAT, 2, {sizes[i], 5}, data},
                    1);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    end(&b);
}

static void strings(void **state)
{
    static const char *const left[] = {"", "a", "longer than short, \xc3\xa4"};
    static const char *const right[] = {"x", "", "y"};
    static const struct session_value in[] = {{"l", STRING, 1, {3}, left},
                                              {"r", STRING, 1, {3}, right}};
    struct build b = start();
    (void)state;
    b.model->opset_import[0]->version = 20;
    b.model->ir_version = 9;
    typed_input(&b, "l", STRING, "3");
    typed_input(&b, "r", STRING, "3");
    node(&b, "StringConcat", "l r", "y");
    node(&b, "Equal", "l r", "e");
    typed_output(&b, "y", STRING, "3");
    typed_output(&b, "e", BOOL, "3");
    expect_claimed(&b, in, 2, 2, 2);
}

/* Add a Loop of three iterations, with q = softmax(s) * w - x, where x is from
 * outside of the body: the next s is -q, or SampleOp(q) if with_sample_op, and
 * the row that an iteration adds to the result is exp(softmax(s)). */
static void add_loop(struct build *b, bool with_sample_op)
{
    static const int64_t three[] = {3}, scalar[] = {0};
    Onnx__TensorProto *trips =
        tensor(b, "trips", ONNX__TENSOR_PROTO__DATA_TYPE__INT64, 0, scalar);
    raw(b, trips, three, sizeof three);
    weight(b, trips);
    floats(b, "w", 2, (int64_t[]){3, 3});
    Onnx__NodeProto *loop = node(b, "Loop", "trips - x", "last rows");
    Onnx__GraphProto *outer = enter(b);
    typed_input(b, "i", INT64, "");
    typed_input(b, "go", BOOL, "");
    input(b, "s", "3 3");
    node(b, "Softmax", "s", "a");
    node(b, "Mul", "a w", "p");
    node(b, "Sub", "p x", "q");
    if (with_sample_op)
        sample_op(b, "q", "next");
    else
        node(b, "Neg", "q", "next");
    node(b, "Identity", "go", "goes");
    node(b, "Exp", "a", "row");
    typed_output(b, "goes", BOOL, "");
    typed_output(b, "next", FLOAT, "3 3");
    typed_output(b, "row", FLOAT, "3 3");
    attr_graph(b, loop, "body", leave(b, outer));
    typed_output(b, "last", FLOAT, "3 3");
    typed_output(b, "rows", FLOAT, NULL);
}

static void loops(void **state)
{
    struct build b = start();
    (void)state;
    input(&b, "x", "3 3");
    add_loop(&b, false);
    expect_claimed(&b, &square_x, 1, 1, 1);
}

/* The Loop is left to ONNX Runtime, but byoc runs the nodes of its body except
 * SampleOp, if ONNX Runtime can run fused nodes there. */
static void loop_body_claimed_in_part(void **state)
{
    struct build b = start();
    (void)state;
    input(&b, "x", "3 3");
    add_loop(&b, true);
    node(&b, "Exp", "last", "y");
    typed_output(&b, "y", FLOAT, "3 3");
    if (sessions_have_bodies())
        expect_claimed(&b, &square_x, 1, 5 + 1, 6 + 2);
    else
        expect_claimed(&b, &square_x, 1, 1, 2);
}

static void branches(void **state)
{
    static const bool choices[] = {true, false};
    struct build b = start();
    (void)state;
    typed_input(&b, "c", BOOL, "");
    input(&b, "x", "3 3");
    floats(&b, "w", 2, (int64_t[]){3, 3});
    Onnx__NodeProto *n = node(&b, "If", "c", "y");
    Onnx__GraphProto *outer = enter(&b);
    node(&b, "MatMul", "x w", "t");
    typed_output(&b, "t", FLOAT, "3 3");
    attr_graph(&b, n, "then_branch", leave(&b, outer));
    outer = enter(&b);
    node(&b, "Sub", "x w", "s");
    typed_output(&b, "s", FLOAT, "3 3");
    attr_graph(&b, n, "else_branch", leave(&b, outer));
    typed_output(&b, "y", FLOAT, "3 3");
    OrtSession *reference = session_of(&b, NULL);
    OrtSession *byoc = session_of(&b, WITH("report", b.folder));
    for (int i = 0; i < 2; i++)
        expect_same(reference, byoc,
                    (const struct session_value[]){
                        {"c", BOOL, 0, {0}, &choices[i]}, square_x},
                    2);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    const struct session_value in[] = {{"c", BOOL, 0, {0}, choices}, square_x};
    expect_claimed(&b, in, 2, sessions_have_bodies(), 1);
}

/* y = Relu(c ? squeeze(x) : x), as PyTorch exports it: c decides the rank. */
static void add_rank_choice(struct build *b)
{
    const int64_t axis = 0;
    Onnx__NodeProto *n = node(b, "If", "c", "r");
    Onnx__GraphProto *outer = enter(b);
    ints(b, "axis", 1, &axis);
    node(b, "Squeeze", "x axis", "q");
    typed_output(b, "q", FLOAT, "3");
    attr_graph(b, n, "then_branch", leave(b, outer));
    outer = enter(b);
    node(b, "Identity", "x", "i");
    typed_output(b, "i", FLOAT, "n 3");
    attr_graph(b, n, "else_branch", leave(b, outer));
    node(b, "Relu", "r", "y");
    typed_output(b, "y", FLOAT, NULL);
}

static const struct session_value row_x = {"x", FLOAT, 2, {1, 3}, square};

/* A value whose rank is unknown before the run cannot be an input of a fused
 * node. */
static void unknown_rank(void **state)
{
    static const bool choices[] = {true, false};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct build b = start();
        typed_input(&b, "c", BOOL, "");
        input(&b, "x", "n 3");
        add_rank_choice(&b);
        expect_claimed(&b,
                       (const struct session_value[]){
                           {"c", BOOL, 0, {0}, &choices[i]}, row_x},
                       2, 0, 2);
    }
}

/* byoc claims the If and its bodies if it also claims the nodes that compute
 * the condition. */
static void rank_from_claimed_nodes(void **state)
{
    struct build b = start();
    const int64_t zero = 0, one = 1;
    (void)state;
    input(&b, "x", "n 3");
    ints(&b, "zero", 1, &zero);
    ints(&b, "one", 1, &one);
    node(&b, "Shape", "x", "s");
    node(&b, "Gather", "s zero", "d");
    node(&b, "Equal", "d one", "c");
    add_rank_choice(&b);
    expect_claimed(&b, &row_x, 1, 5, 5);
}

/* --- the digits ----------------------------------------------------------- */

/* The model of examples/digits, and a batch of images. */
struct digits {
    struct byi_arena *arena;
    const void *model; /* the mapped file */
    size_t n;          /* its bytes */
    struct byi_tensor images;
    struct session_value in;
};

static void open_digits(struct digits *d)
{
    struct byoc_error err;
    const char *folder = TEST_DIR "/../examples/digits";
    char path[512];
    d->arena = byi_arena_new();
    snprintf(path, sizeof path, "%s/digits.onnx", folder);
    assert_int_equal(byi_map_file(path, &d->model, &d->n, &err), BYOC_OK);
    snprintf(path, sizeof path, "%s/batch0.input_0.npy", folder);
    assert_int_equal(byi_npy_read(path, d->arena, &d->images, &err), BYOC_OK);
    d->in = (struct session_value){
        "image", FLOAT, d->images.rank, {0}, d->images.data};
    memcpy(d->in.dims, d->images.dims, d->images.rank * sizeof *d->in.dims);
}

static void close_digits(struct digits *d)
{
    byi_unmap(d->model, d->n);
    byi_arena_free(&d->arena);
}

/* Set `path` to the only file in a folder whose name matches the pattern. */
static void only_file(const char *folder, const char *pattern, char path[300])
{
    char files[300];
    glob_t found;
    snprintf(files, sizeof files, "%s/%s", folder, pattern);
    assert_int_equal(glob(files, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(path, 300, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* The report has a ledger that byoc reads. */
static void report_has_a_ledger(void **state)
{
    struct digits d;
    char folder[TEST_PATH], path[300], *text = NULL;
    const void *json;
    size_t n;
    struct byoc_error err;
    (void)state;
    open_digits(&d);
    assert_non_null(make_inner_folder(folder));
    OrtSession *reference = session_open(d.model, d.n, NULL);
    OrtSession *byoc = session_open(d.model, d.n, WITH("report", folder));
    expect_same(reference, byoc, &d.in, 1);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    only_file(folder, "Byoc*.json", path);
    assert_int_equal(byi_map_file(path, &json, &n, &err), BYOC_OK);
    char *copy = strndup(json, n);
    assert_int_equal(byoc_ledger_text(copy, 0, &text, &err), BYOC_OK);
    if (!strstr(text, "15 nodes in the model") || !strstr(text, "dnnl"))
        fail_msg("found the ledger:\n%s\nexpected 15 nodes, some on dnnl",
                 text);
    byoc_string_free(text);
    free(copy);
    byi_unmap(json, n);
    close_digits(&d);
}

/* Values of options that must not change the results. */
static void options(void **state)
{
    static const char *const values[][2] = {
        {"backends", "none"},
        {"backends", "dnnl"},
        {"backends", "all"},
        {"threads", "1"},
        {"threads", "2"},
        {"thread_pool", "byoc"},
        {"thread_pool", "onnxruntime"},
        {"partition_by", "greedy"},
        {"partition_by", "estimated"},
        {"cache_dir", ""},
        {"cache_dir", "/proc/self"}, /* cannot be written */
    };
    struct digits d;
    (void)state;
    open_digits(&d);
    OrtSession *reference = session_open(d.model, d.n, NULL);
    for (size_t i = 0; i < BYI_COUNT(values); i++) {
        OrtSession *byoc =
            session_open(d.model, d.n, WITH(values[i][0], values[i][1]));
        expect_same(reference, byoc, &d.in, 1);
        ort->ReleaseSession(byoc);
    }
    ort->ReleaseSession(reference);
    close_digits(&d);
}

/* Without a C compiler the model runs all the same. */
static void no_compiler(void **state)
{
    struct digits d;
    (void)state;
    open_digits(&d);
    OrtSession *reference = session_open(d.model, d.n, NULL);
    assert_int_equal(setenv("CC", "/nowhere/cc", 1), 0);
    OrtSession *byoc = session_open(d.model, d.n, NO_OPTIONS);
    assert_int_equal(unsetenv("CC"), 0);
    expect_same(reference, byoc, &d.in, 1);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    close_digits(&d);
}

static void wrong_options(void **state)
{
    static const char *const wrong[][3] = {
        {"thread", "2", "did you mean threads"},
        {"treads", "2", "has no option 'treads'"},
        {"threads", "many", "a number from 0"},
        {"threads", "-1", "a number from 0"},
        {"threads", "1025", "a number from 0"},
        {"threads", "", "a number from 0"},
        {"backends", "nowhere", "nowhere"},
        {"backends", "", "'all' or 'none'"},
        {"backends", "dnnl,", "'all' or 'none'"},
        {"partition_by", "luck", "greedy, estimated or measured"},
        {"thread_pool", "mine", "onnxruntime or byoc"},
        {"initializers", "fixed", "replaceable or constant"},
        {"cache_dir", "/proc/none/cache", "cannot create the folder"},
        {"report", "/dev/null", "expected a folder"},
        {"ep.context_enable", "1", "use the option cache_dir"},
    };
    struct digits d;
    char why[2048];
    (void)state;
    open_digits(&d);
    for (size_t i = 0; i < BYI_COUNT(wrong); i++) {
        assert_null(session_try(d.model, d.n,
                                WITH(wrong[i][0], wrong[i][1],
                                     "ep.context_file_path", "nowhere.onnx"),
                                why));
        if (!strstr(why, wrong[i][2]))
            fail_msg("%s=%s: found \"%s\", expected \"%s\" in it", wrong[i][0],
                     wrong[i][1], why, wrong[i][2]);
    }
    close_digits(&d);
}

/* Weights that are inputs as well: a run may replace them, unless the session
 * has the option initializers=constant. */
static void fixed_weights(void **state)
{
    struct build b = small_model();
    struct session_value in[] = {square_x, square_x};
    float weights[9];
    OrtValue *out;
    (void)state;
    input(&b, "w", "3 3");
    OrtSession *reference = session_of(&b, NULL);
    OrtSession *usual = session_of(&b, NO_OPTIONS);
    OrtSession *fixed = session_of(&b, WITH("initializers", "constant"));
    in[1].name = "w";
    for (int i = 0; i < 2; i++) {
        expect_same(reference, usual, in, 1);
        expect_same(reference, usual, in, 2);
        expect_same(reference, fixed, in, 1);
        char *why = session_try_run(fixed, in, 2, &out, 1);
        assert_non_null(why);
        assert_non_null(strstr(why, "input w: found another value"));
        free(why);
    }
    memcpy(weights, b.graph->initializer[0]->raw_data.data, sizeof weights);
    in[1].data = weights;
    expect_same(reference, fixed, in, 2);
    weights[4] += 1; /* the same buffer, filled again */
    char *why = session_try_run(fixed, in, 2, &out, 1);
    assert_non_null(why);
    assert_non_null(strstr(why, "input w: found another value"));
    free(why);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(usual);
    ort->ReleaseSession(fixed);
    end(&b);
}

/* --- the cache ------------------------------------------------------------ */

static void run_cached(const struct digits *d, const char *folder,
                       const char *backends)
{
    OrtSession *reference = session_open(d->model, d->n, NULL);
    OrtSession *byoc = session_open(
        d->model, d->n, WITH("cache_dir", folder, "backends", backends));
    expect_same(reference, byoc, &d->in, 1);
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
}

/* Truncate the file to `length` bytes, or, if it is negative, overwrite 64
 * bytes from `at` on. The next session must replace the file and give the same
 * results. */
static void expect_replaced(const struct digits *d, const char *folder,
                            const char *path, off_t at, off_t length)
{
    struct stat before, after;
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseeko(file, at, SEEK_SET), 0);
    for (int i = 0; i < 64 && length < 0; i++)
        fputc(0xa5, file);
    fclose(file);
    if (length >= 0)
        assert_int_equal(truncate(path, length), 0);
    assert_int_equal(stat(path, &before), 0);
    run_cached(d, folder, "all");
    assert_int_equal(stat(path, &after), 0);
    assert_int_not_equal(before.st_ino, after.st_ino);
}

static void artifacts_are_cached(void **state)
{
    struct digits d;
    struct stat first, second;
    char folder[TEST_PATH], path[300];
    (void)state;
    open_digits(&d);
    assert_non_null(make_inner_folder(folder));
    run_cached(&d, folder, "all");
    only_file(folder, "*.so", path);
    assert_int_equal(stat(path, &first), 0);
    run_cached(&d, folder, "all");
    only_file(folder, "*.so", path);
    assert_int_equal(stat(path, &second), 0);
    assert_int_equal(first.st_ino, second.st_ino);
    assert_int_equal(first.st_mtim.tv_nsec, second.st_mtim.tv_nsec);

    expect_replaced(&d, folder, path, first.st_size / 2, -1);
    expect_replaced(&d, folder, path, 16, -1);
    expect_replaced(&d, folder, path, 0, first.st_size / 3);
    expect_replaced(&d, folder, path, 0, 0);
    only_file(folder, "*.so", path);

    run_cached(&d, folder, "none"); /* other options, another entry */
    assert_int_equal(unlink(path), 0);
    only_file(folder, "*.so", path);
    close_digits(&d);
}

/* --- failures of runs ----------------------------------------------------- */

static void failing_run(void **state)
{
    static const int64_t good[] = {2}, bad[] = {9};
    struct build b = start();
    OrtValue *out;
    (void)state;
    input(&b, "x", "3 3");
    typed_input(&b, "at", INT64, "1");
    node(&b, "Gather", "x at", "g");
    node(&b, "Exp", "g", "y");
    typed_output(&b, "y", FLOAT, "1 3");
    OrtSession *reference = session_of(&b, NULL);
    OrtSession *byoc = session_of(&b, NO_OPTIONS);
    struct session_value in[] = {square_x, {"at", INT64, 1, {1}, bad}};
    for (int i = 0; i < 3; i++) {
        char *why = session_try_run(byoc, in, 2, &out, 1);
        assert_non_null(why);
        assert_non_null(strstr(why, "byoc: "));
        assert_non_null(strstr(why, "found index 9"));
        free(why);
        in[1].data = good;
        expect_same(reference, byoc, in, 2);
        in[1].data = bad;
    }
    ort->ReleaseSession(reference);
    ort->ReleaseSession(byoc);
    end(&b);
}

static void wrong_library(void **state)
{
    OrtStatus *status = ort->RegisterExecutionProviderLibrary(
        ort_env, "nothing", "/nowhere/libbyoc_onnxruntime.so");
    (void)state;
    assert_non_null(status);
    ort->ReleaseStatus(status);
}

/* An ONNX Runtime that does not have the table of version 1.23. */
static const OrtApi *older_api(uint32_t version)
{
    return version < 23 ? ort : NULL;
}

static const char *older_version(void)
{
    return "1.22.0";
}

static void older_runtime(void **state)
{
    static const OrtApiBase base = {older_api, older_version};
    CreateEpApiFactoriesFn create;
    OrtEpFactory *factory = NULL;
    size_t n = 7;
    (void)state;
    void *library = dlopen(provider_path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    void *symbol = dlsym(library, "CreateEpFactories");
    memcpy(&create, &symbol, sizeof create);
    OrtStatus *status = create("byoc", &base, NULL, &factory, 1, &n);
    assert_non_null(status);
    assert_non_null(strstr(ort->GetErrorMessage(status), "1.22.0"));
    ort->ReleaseStatus(status);
    assert_int_equal(n, 0);
    assert_null(factory);
    dlclose(library);
}

/* --- many threads, many sessions ------------------------------------------ */

enum { THREADS = 8, RUNS = 40 };

/* A thread that runs a session, and its number of wrong results. */
struct caller {
    pthread_t thread;
    OrtSession *session;
    unsigned seed;
    int n_wrong;
};

/* Run with values of x that differ from those of all other threads, and check
 * that the results belong to them. */
static void *call(void *arg)
{
    struct caller *c = arg;
    const int64_t n = 1 + c->seed % 5;
    float x[8 * 3];
    for (int run = 0; run < RUNS; run++) {
        OrtValue *out = NULL;
        void *data;
        for (int i = 0; i < n * 3; i++)
            x[i] = (float)((int)c->seed * 100 + run + i);
        char *why = session_try_run(
            c->session, &(struct session_value){"x", FLOAT, 2, {n, 3}, x}, 1,
            &out, 1);
        if (why) {
            free(why);
            c->n_wrong++;
            continue;
        }
        must(ort->GetTensorMutableData(out, &data));
        for (int i = 0; i < n * 3; i++)
            c->n_wrong += ((float *)data)[i] != x[i] * 2 + (float)(i % 3);
        ort->ReleaseValue(out);
    }
    return NULL;
}

static void many_threads(void **state)
{
    struct caller callers[THREADS];
    struct build b = start();
    (void)state;
    input(&b, "x", "N 3");
    floats(&b, "w", 1, (int64_t[]){3});
    node(&b, "Add", "x x", "d");
    node(&b, "Add", "d w", "y");
    typed_output(&b, "y", FLOAT, "N 3");
    OrtSession *session = session_of(&b, NO_OPTIONS);
    for (unsigned i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.session = session, .seed = i};
        assert_int_equal(
            pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(callers[i].thread, NULL);
        assert_int_equal(callers[i].n_wrong, 0);
    }
    ort->ReleaseSession(session);
    end(&b);
}

/* The number of mappings of files. Other mappings vary with the threads' heaps.
 */
static unsigned count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned n = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        n += strchr(line, '/') != NULL;
    fclose(file);
    return n;
}

/* Open, run and close a number of sessions, without the provider if `folder`,
 * that of the cache, is NULL. Returns by how many bytes the heap grew. */
static size_t open_sessions(const void *model, size_t n, int times,
                            const char *folder, OrtSession *reference)
{
    const size_t n_before = mallinfo2().uordblks;
    for (int i = 0; i < times; i++) {
        const char *cache_dir = i % 10 ? folder : "";
        OrtSession *session = session_open(
            model, n, folder ? WITH("cache_dir", cache_dir) : NULL);
        expect_same(reference, session, &square_x, 1);
        ort->ReleaseSession(session);
    }
    const size_t n_after = mallinfo2().uordblks;
    return n_after > n_before ? n_after - n_before : 0;
}

static int by_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* Bytes by which the heap grows in a block of sessions. This is the median of
 * several blocks, since a leak shows in each, but caches of ONNX Runtime only
 * in a few. */
enum { BLOCKS = 7, TIMES = 15 };
static size_t median_growth(const void *model, size_t n, const char *folder,
                            OrtSession *reference)
{
    size_t growth[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        growth[i] = open_sessions(model, n, TIMES, folder, reference);
    qsort(growth, BLOCKS, sizeof *growth, by_size);
    return growth[BLOCKS / 2];
}

/* Creating and freeing sessions leaves no mapping and no open file. The heap
 * grows by at most SLACK bytes more than without the provider. Each session of
 * ONNX Runtime 1.30 leaks 7 KB, and 1.5 KB more if it has any provider. */
static void many_sessions(void **state)
{
    enum { SLACK = 4096 * TIMES };
    struct build b = small_model();
    char folder[TEST_PATH];
    (void)state;
    assert_non_null(make_inner_folder(folder));
    const size_t n = onnx__model_proto__get_packed_size(b.model);
    uint8_t *model = byi_arena_alloc(b.arena, n);
    onnx__model_proto__pack(b.model, model);
    OrtSession *reference = session_open(model, n, NULL);
    const size_t usual_bytes = median_growth(model, n, NULL, reference);
    open_sessions(model, n, TIMES, folder, reference);
    const unsigned mappings = count_mappings();
    const int files = count_open_files();
    const size_t growth = median_growth(model, n, folder, reference);
    if (growth > usual_bytes + SLACK)
        fail_msg("%d sessions: found the heap grown by %zu bytes, expected at "
                 "most %zu",
                 TIMES, growth, (size_t)(usual_bytes + SLACK));
    assert_int_equal(count_mappings(), mappings);
    assert_int_equal(count_open_files(), files);
    ort->ReleaseSession(reference);
    end(&b);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_nodes_claimed),
        cmocka_unit_test(unsupported_node),
        cmocka_unit_test(nodes_around_unsupported_ones),
        cmocka_unit_test(sequences),
        cmocka_unit_test(sizes_vary),
        cmocka_unit_test(strings),
        cmocka_unit_test(loops),
        cmocka_unit_test(loop_body_claimed_in_part),
        cmocka_unit_test(branches),
        cmocka_unit_test(unknown_rank),
        cmocka_unit_test(rank_from_claimed_nodes),
        cmocka_unit_test(report_has_a_ledger),
        cmocka_unit_test(options),
        cmocka_unit_test(no_compiler),
        cmocka_unit_test(wrong_options),
        cmocka_unit_test(artifacts_are_cached),
        cmocka_unit_test(failing_run),
        cmocka_unit_test(wrong_library),
        cmocka_unit_test(older_runtime),
        cmocka_unit_test(many_threads),
        cmocka_unit_test(many_sessions),
        cmocka_unit_test(fixed_weights),
    };
    if (argc < 3) {
        fprintf(stderr,
                "usage: %s LIBONNXRUNTIME LIBBYOC_ONNXRUNTIME [PATTERN]\n",
                argv[0]);
        return 2;
    }
    if (argc > 3)
        cmocka_set_test_filter(argv[3]);
    provider_path = argv[2];
    sessions_begin(argv[1], argv[2]);
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    sessions_end();
    return failed;
}
