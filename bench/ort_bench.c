/* SPDX-License-Identifier: Apache-2.0 */
/* ort_bench.c: times ONNX Runtime as `byoc bench` times byoc: load, first run,
 * further runs, peak memory. Prints one line of JSON.
 *
 *     ort_bench LIBRARY MODEL.onnx PREFIX. THREADS SECONDS
 *
 * Opens the library at run time, so that it can be built without ONNX Runtime.
 * Calls it through its versioned function table (OrtGetApiBase, ABI version 1,
 * to which new versions only append). Inputs are PREFIX.input_K.npy. The
 * session uses all graph optimisations and sequential execution. Exits with 1
 * if the model cannot be loaded or run, and with 2 for wrong arguments.
 */
#include "core/base/clock.h"
#include "npy/npy.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MAX_IO = 16, CPU_ARENA = 1, DEFAULT_MEMORY = 0, OPTIMIZE_ALL = 99 };

/* Indices of functions in the table of version 1. */
enum {
    GET_ERROR_MESSAGE = 2,
    CREATE_ENV = 3,
    CREATE_SESSION = 7,
    RUN = 9,
    CREATE_SESSION_OPTIONS = 10,
    SET_OPTIMIZATION_LEVEL = 23,
    SET_INTRA_THREADS = 24,
    SET_INTER_THREADS = 25,
    GET_INPUT_COUNT = 30,
    GET_OUTPUT_COUNT = 31,
    GET_INPUT_NAME = 36,
    GET_OUTPUT_NAME = 37,
    CREATE_TENSOR = 49,
    CREATE_CPU_MEMORY_INFO = 69,
    GET_DEFAULT_ALLOCATOR = 78,
    RELEASE_VALUE = 96
};

typedef void *(*ort_fn)(); /* functions have different parameters */

struct ort_base {
    const ort_fn *(*get_api)(uint32_t version);
    const char *(*get_version)(void);
};

static const ort_fn *api;

static void check_ort(void *status)
{
    if (!status)
        return;
    fprintf(stderr, "ort_bench: %s\n",
            (const char *)api[GET_ERROR_MESSAGE](status));
    exit(1);
}

/* A session with its inputs. The pointers without a type are objects of ONNX
 * Runtime, which live until the process ends. */
struct session {
    void *session;
    size_t n_in, n_out;
    char *in_names[MAX_IO], *out_names[MAX_IO];
    void *in[MAX_IO];
};

static void open_session(struct session *s, const char *model, int threads)
{
    void *env, *options, *allocator;
    check_ort(api[CREATE_ENV](3, "bench", &env));
    check_ort(api[CREATE_SESSION_OPTIONS](&options));
    check_ort(api[SET_OPTIMIZATION_LEVEL](options, OPTIMIZE_ALL));
    check_ort(api[SET_INTRA_THREADS](options, threads));
    check_ort(api[SET_INTER_THREADS](options, 1));
    check_ort(api[CREATE_SESSION](env, model, options, &s->session));
    check_ort(api[GET_DEFAULT_ALLOCATOR](&allocator));
    check_ort(api[GET_INPUT_COUNT](s->session, &s->n_in));
    check_ort(api[GET_OUTPUT_COUNT](s->session, &s->n_out));
    if (s->n_in > MAX_IO || s->n_out > MAX_IO) {
        fprintf(stderr,
                "ort_bench: %s: found %zu inputs and %zu outputs, expected at "
                "most %d of each\n",
                model, s->n_in, s->n_out, MAX_IO);
        exit(1);
    }
    for (size_t i = 0; i < s->n_in; i++)
        check_ort(
            api[GET_INPUT_NAME](s->session, i, allocator, &s->in_names[i]));
    for (size_t i = 0; i < s->n_out; i++)
        check_ort(
            api[GET_OUTPUT_NAME](s->session, i, allocator, &s->out_names[i]));
}

static void read_inputs(struct session *s, const char *prefix)
{
    struct byi_arena *arena = byi_arena_new(); /* until the process ends */
    void *info;
    check_ort(api[CREATE_CPU_MEMORY_INFO](CPU_ARENA, DEFAULT_MEMORY, &info));
    for (size_t i = 0; i < s->n_in; i++) {
        struct byi_tensor *t = byi_arena_alloc(arena, sizeof *t);
        struct byoc_error err;
        const char *path =
            byi_arena_printf(arena, "%sinput_%zu.npy", prefix, i);
        if (byi_npy_read(path, arena, t, &err) != BYOC_OK) {
            fprintf(stderr, "ort_bench: %s\n", err.text);
            exit(1);
        }
        check_ort(api[CREATE_TENSOR](info, t->data, (size_t)byi_tensor_bytes(t),
                                     t->dims, (size_t)t->rank, (int)t->dtype,
                                     &s->in[i]));
    }
}

static double run_once(const struct session *s)
{
    void *out[MAX_IO] = {0};
    double start = byi_now();
    check_ort(api[RUN](s->session, (void *)0, s->in_names, s->in, s->n_in,
                       s->out_names, s->n_out, out));
    double seconds_of_run = byi_now() - start;
    for (size_t i = 0; i < s->n_out; i++)
        api[RELEASE_VALUE](out[i]);
    return seconds_of_run;
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: ort_bench LIBRARY MODEL.onnx PREFIX. THREADS "
                        "SECONDS\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const struct ort_base *(*base)(void);
    void *symbol = library ? dlsym(library, "OrtGetApiBase") : NULL;
    if (!symbol) {
        fprintf(stderr, "ort_bench: %s\n", dlerror());
        return 1;
    }
    memcpy(&base, &symbol, sizeof base);
    api = base()->get_api(1);
    struct session s = {0};
    double start = byi_now();
    open_session(&s, argv[2], atoi(argv[4]));
    double load = byi_now() - start, seconds = atof(argv[5]);
    read_inputs(&s, argv[3]);
    double first = run_once(&s);
    for (int i = 1; i < 5; i++)
        run_once(&s);
    BYI_VEC(double) runs = {0};
    for (start = byi_now(); runs.n < 10 || byi_now() - start < seconds;)
        BYI_PUSH(&runs, run_once(&s));
    double sum = 0;
    for (uint32_t i = 0; i < runs.n; i++)
        sum += runs.at[i];
    qsort(runs.at, runs.n, sizeof *runs.at, byi_compare_doubles);
    const double p99 = runs.at[(runs.n * 99 + 99) / 100 - 1];
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("{\"load_ms\":%.6g,\"first_ms\":%.6g,\"min_ms\":%.6g,"
           "\"median_ms\":%.6g,\"mean_ms\":%.6g,\"p99_ms\":%.6g,\"peak_mb\":%."
           "6g,\"runs\":%u,"
           "\"version\":\"%s\"}\n",
           1e3 * load, 1e3 * first, 1e3 * runs.at[0], 1e3 * runs.at[runs.n / 2],
           1e3 * sum / runs.n, 1e3 * p99, (double)usage.ru_maxrss * 1024 / 1e6,
           runs.n, base()->get_version());
    fflush(stdout);
    _exit(0); /* skip the library's destructors */
}
