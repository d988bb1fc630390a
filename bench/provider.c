/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: compares ONNX Runtime, ONNX Runtime with byoc's execution
 * provider, and byoc. They run in turns in one process, so that other load
 * disturbs all of them alike. A fourth turn is the floor: ONNX Runtime calls
 * byoc through a provider that does nothing else (bare_provider.c). Prints for
 * each model how many nodes the provider claimed, and the largest difference of
 * its outputs from ONNX Runtime's, relative to the largest value. Then come
 * medians: milliseconds of each turn, and the ratios of the provider to byoc
 * and to the floor. The last column is the ratio of the provider's fastest run
 * to byoc's. At the end prints the geometric mean of these last ratios.
 *
 *     provider [--threads N] [--rounds N] [--option KEY=VALUE]...
 *         LIBONNXRUNTIME LIBBYOC_ONNXRUNTIME MODEL.onnx...
 *
 * Each engine has N threads. Inputs are NAME.input_K.npy beside NAME.onnx. A
 * round runs each engine once to warm up, then at least three times and for at
 * least 40 ms. Options go to byoc's execution provider. With one thread, times
 * are CPU time. Exits with 2 for wrong arguments, or if an engine fails.
 */
#include <dlfcn.h>
#include <glob.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <byoc/byoc.h>
#include <onnxruntime_c_api.h>

#include "bare_provider.h"
#include "npy/npy.h"

enum { MAX_IO = 16, MAX_OPTIONS = 16, MAX_ROUNDS = 101 };
/* The first three are sessions of ONNX Runtime, so arrays of sessions have BYOC
 * elements. difference() compares ALONE and PROVIDER, so its arrays have FLOOR
 * elements. */
enum engine { ALONE, PROVIDER, FLOOR, BYOC, ENGINES };

static const OrtApi *ort;
static OrtEnv *env;
static const OrtEpDevice *device, *bare_device;
/* options of byoc's provider; open_session() adds one after these */
static const char *keys[MAX_OPTIONS], *values[MAX_OPTIONS];
static size_t n_options;
static uint32_t threads = 2, rounds = 9;

__attribute__((format(printf, 1, 2))) static _Noreturn void fail(
    const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("provider: ", stderr);
    vfprintf(stderr, format, args);
    fputs("\n", stderr);
    va_end(args);
    exit(2);
}

static void check_ort(OrtStatus *status)
{
    if (!status)
        return;
    fprintf(stderr, "provider: %s\n", ort->GetErrorMessage(status));
    exit(2);
}

static void check_byoc(enum byoc_status status, const struct byoc_error *err)
{
    if (status == BYOC_OK)
        return;
    fprintf(stderr, "provider: %s\n", err->text);
    exit(2);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double median(double *list, size_t n)
{
    qsort(list, n, sizeof *list, byi_compare_doubles);
    return list[n / 2];
}

/* --- one model ------------------------------------------------------------ */

/* A model in each engine, with its inputs and outputs. close_trial() frees all
 * of it. */
struct trial {
    struct byi_arena *arena;
    char folder[32]; /* for the artifact and the provider's reports */
    OrtSession *sessions[BYOC];
    struct byoc_model *model;
    struct byoc_state *state;
    size_t n_in, n_out;
    struct byi_tensor in[MAX_IO];
    char *in_names[MAX_IO], *out_names[MAX_IO];
    OrtValue *ort_inputs[MAX_IO], *ort_results[BYOC][MAX_IO];
    DLTensor views[MAX_IO], results[MAX_IO]; /* of byoc's runs */
    struct bare_call call;                   /* for the session FLOOR */
};

static OrtSession *open_session(const struct trial *t, const char *path,
                                enum engine engine)
{
    OrtSessionOptions *options;
    OrtSession *session;
    check_ort(ort->CreateSessionOptions(&options));
    check_ort(ort->SetIntraOpNumThreads(options, (int)threads));
    if (engine == FLOOR) {
        static const char *const key = "call";
        const char *address =
            byi_arena_printf(t->arena, "%zu", (size_t)&t->call);
        check_ort(ort->SessionOptionsAppendExecutionProvider_V2(
            options, env, &bare_device, 1, &key, &address, 1));
    } else if (engine == PROVIDER) {
        keys[n_options] = "report";
        values[n_options] = t->folder;
        check_ort(ort->SessionOptionsAppendExecutionProvider_V2(
            options, env, &device, 1, keys, values, n_options + 1));
    }
    check_ort(ort->CreateSession(env, path, options, &session));
    ort->ReleaseSessionOptions(options);
    return session;
}

static void open_byoc(struct trial *t, const char *path)
{
    struct byoc_error err;
    struct byoc_compiled *compiled = NULL;
    const struct byoc_load_params params = {.struct_size = sizeof params,
                                            .threads = threads};
    const char *file = byi_arena_printf(t->arena, "%s/model.so", t->folder);
    check_byoc(byoc_compile(path, NULL, &compiled, &err), &err);
    check_byoc(byoc_compiled_write(compiled, file, &err), &err);
    byoc_compiled_free(&compiled);
    check_byoc(byoc_model_load(file, &params, &t->model, &err), &err);
    check_byoc(byoc_state_new(t->model, &t->state, &err), &err);
}

static void read_inputs(struct trial *t, const char *path)
{
    OrtAllocator *allocator;
    OrtMemoryInfo *memory;
    OrtSession *session = t->sessions[ALONE];
    struct byoc_error err;
    check_ort(ort->GetAllocatorWithDefaultOptions(&allocator));
    check_ort(ort->CreateCpuMemoryInfo(OrtArenaAllocator, OrtMemTypeDefault,
                                       &memory));
    check_ort(ort->SessionGetInputCount(session, &t->n_in));
    check_ort(ort->SessionGetOutputCount(session, &t->n_out));
    if (t->n_in > MAX_IO || t->n_out > MAX_IO)
        fail(
            "%s: found %zu inputs and %zu outputs, expected at most %d of each",
            path, t->n_in, t->n_out, MAX_IO);
    for (size_t i = 0; i < t->n_in; i++) {
        const char *file = byi_arena_printf(t->arena, "%.*s.input_%zu.npy",
                                            (int)(strlen(path) - 5), path, i);
        struct byi_tensor *x = &t->in[i];
        check_byoc(byi_npy_read(file, t->arena, x, &err), &err);
        check_ort(
            ort->SessionGetInputName(session, i, allocator, &t->in_names[i]));
        check_ort(ort->CreateTensorWithDataAsOrtValue(
            memory, x->data, (size_t)byi_tensor_bytes(x), x->dims, x->rank,
            (ONNXTensorElementDataType)x->dtype, &t->ort_inputs[i]));
    }
    for (size_t i = 0; i < t->n_out; i++)
        check_ort(
            ort->SessionGetOutputName(session, i, allocator, &t->out_names[i]));
    ort->ReleaseMemoryInfo(memory);
}

/* Set views of the inputs in the order of byoc's model. */
static void bind_inputs(struct trial *t)
{
    for (size_t i = 0; i < t->n_in; i++) {
        struct byi_tensor *x = &t->in[i];
        const uint32_t at = byoc_model_input_index(t->model, t->in_names[i]);
        if (at >= t->n_in)
            fail("input %s: found in ONNX Runtime's session, expected it among "
                 "the inputs of byoc's model",
                 t->in_names[i]);
        t->views[at] = (DLTensor){.data = x->data,
                                  .device = {kDLCPU, 0},
                                  .ndim = (int32_t)x->rank,
                                  .dtype = byoc_dtype_dlpack(x->dtype),
                                  .shape = x->dims};
    }
}

static void run_byoc(void *arg)
{
    struct trial *t = arg;
    struct byoc_error err;
    check_byoc(byoc_run(t->state, t->views, (uint32_t)t->n_in, t->results,
                        (uint32_t)t->n_out, &err),
               &err);
}

static void run(struct trial *t, enum engine engine)
{
    if (engine == BYOC) {
        run_byoc(t);
        return;
    }
    for (size_t i = 0; i < t->n_out; i++) {
        ort->ReleaseValue(t->ort_results[engine][i]);
        t->ort_results[engine][i] = NULL;
    }
    check_ort(ort->Run(
        t->sessions[engine], NULL, (const char *const *)t->in_names,
        (const OrtValue *const *)t->ort_inputs, t->n_in,
        (const char *const *)t->out_names, t->n_out, t->ort_results[engine]));
}

/* Open the session of the floor: its outputs are as large as ONNX Runtime's. */
static void open_floor(struct trial *t, const char *path)
{
    t->call = (struct bare_call){run_byoc, t, .n_out = t->n_out};
    run(t, ALONE);
    for (size_t i = 0; i < t->n_out; i++) {
        OrtTensorTypeAndShapeInfo *info;
        struct bare_output *out = &t->call.out[i];
        out->name = t->out_names[i];
        check_ort(ort->GetTensorTypeAndShape(t->ort_results[ALONE][i], &info));
        check_ort(ort->GetDimensionsCount(info, &out->rank));
        if (out->rank > BARE_MAX_RANK)
            fail("output %s: found rank %zu, expected at most %d", out->name,
                 out->rank, BARE_MAX_RANK);
        check_ort(ort->GetDimensions(info, out->dims, out->rank));
        ort->ReleaseTensorTypeAndShapeInfo(info);
    }
    t->sessions[FLOOR] = open_session(t, path, FLOOR);
}

/* The median time of a run in seconds, over at least three runs and 40 ms.
 * Lowers *shortest to the time of the fastest run if that is less. */
static double time_engine(struct trial *t, enum engine engine, double *shortest)
{
    enum { MAX_RUNS = 1000 };
    static double list[MAX_RUNS];
    size_t n = 0;
    double total = 0;
    usleep(20000); /* until threads of the previous engine sleep */
    run(t, engine);
    while (n < MAX_RUNS && (n < 3 || total < 0.04)) {
        const double start = now();
        run(t, engine);
        list[n] = now() - start;
        total += list[n++];
    }
    const double median_time = median(list, n);
    *shortest = fmin(*shortest, list[0]);
    return median_time;
}

/* --- reporting ------------------------------------------------------------ */

/* The largest difference between the outputs of ONNX Runtime and of the
 * provider, relative to the output's largest value. Infinite if their numbers
 * of elements differ. Outputs are float or int64. */
static double difference(const struct trial *t)
{
    double maximum = 0;
    for (size_t i = 0; i < t->n_out; i++) {
        OrtTensorTypeAndShapeInfo *info[FLOOR];
        ONNXTensorElementDataType type;
        void *data[FLOOR];
        size_t n[FLOOR];
        for (int k = 0; k < FLOOR; k++) {
            check_ort(
                ort->GetTensorTypeAndShape(t->ort_results[k][i], &info[k]));
            check_ort(ort->GetTensorShapeElementCount(info[k], &n[k]));
            check_ort(
                ort->GetTensorMutableData(t->ort_results[k][i], &data[k]));
        }
        check_ort(ort->GetTensorElementType(info[0], &type));
        ort->ReleaseTensorTypeAndShapeInfo(info[0]);
        ort->ReleaseTensorTypeAndShapeInfo(info[1]);
        if (n[0] != n[1])
            return INFINITY;
        double largest = 1e-30, max_difference = 0;
        for (size_t e = 0; e < n[0]; e++) {
            double x[FLOOR];
            for (int k = 0; k < FLOOR; k++)
                x[k] = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT
                           ? (double)((float *)data[k])[e]
                           : (double)((int64_t *)data[k])[e];
            largest = fmax(largest, fabs(x[0]));
            max_difference = fmax(max_difference, fabs(x[0] - x[1]));
        }
        maximum = fmax(maximum, max_difference / largest);
    }
    return maximum;
}

/* The number of occurrences of `word` in the reports graph-*.json. */
static unsigned count_words(const struct trial *t, const char *word)
{
    unsigned n = 0;
    glob_t found;
    struct byoc_error err;
    const void *data;
    size_t bytes;
    if (glob(byi_arena_printf(t->arena, "%s/graph-*.json", t->folder), 0, NULL,
             &found) != 0)
        return 0;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        check_byoc(byi_map_file(found.gl_pathv[i], &data, &bytes, &err), &err);
        const char *text = byi_arena_strn(t->arena, data, bytes);
        for (const char *at = text; (at = strstr(at, word)); at++)
            n++;
        byi_unmap(data, bytes);
    }
    globfree(&found);
    return n;
}

static void close_trial(struct trial *t)
{
    for (size_t i = 0; i < t->n_in; i++)
        ort->ReleaseValue(t->ort_inputs[i]);
    for (int k = 0; k < BYOC; k++) {
        for (size_t i = 0; i < t->n_out; i++)
            ort->ReleaseValue(t->ort_results[k][i]);
        ort->ReleaseSession(t->sessions[k]);
    }
    byoc_state_free(&t->state);
    byoc_model_free(&t->model);
    if (system(byi_arena_printf(t->arena, "rm -r '%s'", t->folder)) != 0)
        fail("%s: cannot remove the folder", t->folder);
    byi_arena_free(&t->arena);
}

/* Time one model and print a line. Returns the provider's fastest run divided
 * by byoc's. */
static double try_model(const char *path)
{
    static double list[ENGINES][MAX_ROUNDS], ratios[2][MAX_ROUNDS];
    struct trial t = {.arena = byi_arena_new()};
    double shortest[ENGINES] = {INFINITY, INFINITY, INFINITY, INFINITY};
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    strcpy(t.folder, "/tmp/byoc-bench-XXXXXX");
    if (!mkdtemp(t.folder))
        fail("/tmp/byoc-bench-XXXXXX: cannot create the folder: %m");
    t.sessions[ALONE] = open_session(&t, path, ALONE);
    t.sessions[PROVIDER] = open_session(&t, path, PROVIDER);
    open_byoc(&t, path);
    read_inputs(&t, path);
    bind_inputs(&t);
    open_floor(&t, path);
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t k = 0; k < ENGINES; k++) {
            const enum engine engine = (enum engine)((k + r) % ENGINES);
            list[engine][r] = time_engine(&t, engine, &shortest[engine]);
        }
        ratios[0][r] = list[PROVIDER][r] / list[BYOC][r];
        ratios[1][r] = list[PROVIDER][r] / list[FLOOR][r];
    }
    printf("%-30.*s %4u/%-4u %8.1e %9.3f %9.3f %9.3f %9.3f %7.3f %7.3f %7.3f\n",
           (int)strlen(name) - 5, name, count_words(&t, "\"group\""),
           count_words(&t, "\"operator\""), difference(&t),
           1e3 * median(list[ALONE], rounds),
           1e3 * median(list[PROVIDER], rounds),
           1e3 * median(list[FLOOR], rounds), 1e3 * median(list[BYOC], rounds),
           median(ratios[0], rounds), median(ratios[1], rounds),
           shortest[PROVIDER] / shortest[BYOC]);
    fflush(stdout);
    close_trial(&t);
    return shortest[PROVIDER] / shortest[BYOC];
}

static void open_runtime(const char *library, const char *provider)
{
    const OrtApiBase *(*base)(void);
    const OrtEpDevice *const *devices;
    size_t n;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *symbol = handle ? dlsym(handle, "OrtGetApiBase") : NULL;
    if (!symbol) {
        fprintf(stderr, "provider: %s\n", dlerror());
        exit(2);
    }
    memcpy(&base, &symbol, sizeof base);
    ort = base()->GetApi(ORT_API_VERSION);
    if (!ort)
        fail("%s: found ONNX Runtime %s, expected API version %d", library,
             base()->GetVersionString(), ORT_API_VERSION);
    check_ort(ort->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
    check_ort(ort->RegisterExecutionProviderLibrary(env, "byoc", provider));
    check_ort(
        ort->RegisterExecutionProviderLibrary(env, "bare", BARE_PROVIDER));
    check_ort(ort->GetEpDevices(env, &devices, &n));
    for (size_t i = 0; i < n; i++)
        if (strcmp(ort->EpDevice_EpVendor(devices[i]), "byoc") == 0)
            device = devices[i];
        else if (strcmp(ort->EpDevice_EpName(devices[i]), BARE_NAME) == 0)
            bare_device = devices[i];
    printf("ONNX Runtime %s, %u threads\n"
           "%-30s %9s %8s %9s %9s %9s %9s %7s %7s %7s\n",
           base()->GetVersionString(), threads, "model", "nodes", "max diff",
           "alone ms", "provider", "floor", "byoc", "/ byoc", "/ floor",
           "fastest");
}

static void add_option(const char *key, const char *value)
{
    if (n_options == MAX_OPTIONS - 1)
        fail("--option %s: found more options than the limit, expected at most "
             "%d",
             key, MAX_OPTIONS - 2);
    keys[n_options] = key;
    values[n_options++] = value;
}

static void read_option(char *pair)
{
    char *equal = strchr(pair, '=');
    if (!equal)
        fail("--option: found %s, expected KEY=VALUE", pair);
    *equal = '\0';
    add_option(pair, equal + 1);
}

int main(int argc, char **argv)
{
    double product = 1;
    int at = 1, n = 0;
    for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
        if (strcmp(argv[at], "--option") == 0)
            read_option(argv[at + 1]);
        else if (strcmp(argv[at], "--threads") == 0)
            threads = (uint32_t)strtoul(argv[at + 1], NULL, 10);
        else if (strcmp(argv[at], "--rounds") == 0)
            rounds = (uint32_t)strtoul(argv[at + 1], NULL, 10);
        else
            break;
    }
    if (argc - at < 3 || strncmp(argv[at], "--", 2) == 0 || rounds < 1 ||
        rounds > MAX_ROUNDS || threads < 1) {
        fprintf(stderr,
                "usage: %s [--threads N] [--rounds N] [--option KEY=VALUE]... "
                "LIBONNXRUNTIME LIBBYOC_ONNXRUNTIME MODEL.onnx...\n",
                argv[0]);
        return 2;
    }
    char number[16];
    snprintf(number, sizeof number, "%u", threads);
    add_option("threads", number);
    open_runtime(argv[at], argv[at + 1]);
    for (at += 2; at < argc; at++, n++)
        product *= try_model(argv[at]);
    printf("geometric mean of the fastest: %.3f\n", pow(product, 1.0 / n));
    ort->ReleaseEnv(env);
    return 0;
}
