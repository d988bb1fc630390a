/* SPDX-License-Identifier: Apache-2.0 */
/* shapes.c: runs a model with random sizes of its symbolic dims. Prints the
 * size of its cache of specialisations, the share of hits, and the peak memory.
 *
 *     shapes MODEL.so [NAME=MIN..MAX]... [OPTION=N]...
 *
 * Dims that are not given get sizes from 1 to 16. Options: runs (10000),
 * threads (1), shapes and bytes (the cache's limits; 0: the defaults), seed
 * (1). float32 inputs are random; int32 and int64 inputs are 0 or 1, other
 * numbers 0. Exits with 1 if the cache exceeds its limit after the runs, or a
 * run fails. Exits with 2 for wrong arguments or a model that it cannot run,
 * with 3 if memory or threads run out.
 */
#include <byoc/runtime.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_IO = 64, MAX_RANK = 16, MAX_RANGES = 64, MAX_THREADS = 256 };
enum { MAX_DIMS = MAX_IO * MAX_RANK }; /* of all inputs of a run */

/* The sizes of a symbolic dim. */
struct shapes_range {
    const char *name; /* the name is the first n bytes; no NUL follows */
    size_t n;
    long long min, max;
};

static struct shapes_options {
    long long runs, threads, shapes, bytes, seed;
    struct shapes_range ranges[MAX_RANGES];
    int n_ranges;
} options = {.runs = 10000, .threads = 1, .seed = 1};

/* A thread that runs the model with a state of its own. */
struct shapes_client {
    const struct byoc_model *model;
    uint64_t seed;         /* the state of next_random() */
    long long runs;        /* to do */
    struct byoc_error err; /* if it failed */
    bool failed;
};

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static int64_t pick_size(const char *name, uint64_t *seed)
{
    struct shapes_range r = {.min = 1, .max = 16};
    for (int i = 0; i < options.n_ranges; i++)
        if (strlen(name) == options.ranges[i].n &&
            strncmp(name, options.ranges[i].name, options.ranges[i].n) == 0)
            r = options.ranges[i];
    return r.min + (int64_t)(next_random(seed) % (uint64_t)(r.max - r.min + 1));
}

static void fill(void *data, enum byoc_dtype dtype, int64_t n, uint64_t *seed)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = next_random(seed);
        if (dtype == BYOC_F32)
            ((float *)data)[i] = (float)(bits >> 40) / (1 << 23) - 1;
        else if (dtype == BYOC_I64)
            ((int64_t *)data)[i] = (int64_t)(bits >> 63);
        else if (dtype == BYOC_I32)
            ((int32_t *)data)[i] = (int32_t)(bits >> 63);
    }
}

/* Make one input of a run. names and sizes hold the symbolic dims that have a
 * size in this run; a dim that is not among them gets a random size and is
 * appended. dims and data become the input's sizes and elements. */
static void make_input(const struct byoc_io *io, const char **names,
                       int64_t *sizes, int *n_names, uint64_t *seed,
                       DLTensor *in, int64_t *dims, void **data)
{
    int64_t n = 1;
    for (uint32_t d = 0; d < io->rank; d++) {
        dims[d] = io->dims[d];
        for (int k = 0; k < *n_names && dims[d] < 0; k++)
            if (strcmp(names[k], io->dim_names[d]) == 0)
                dims[d] = sizes[k];
        if (dims[d] < 0) {
            names[*n_names] = io->dim_names[d];
            dims[d] = sizes[(*n_names)++] = pick_size(io->dim_names[d], seed);
        }
        n *= dims[d];
    }
    *data = realloc(*data, (size_t)n * byoc_dtype_size(io->dtype) + 64);
    if (!*data) {
        fprintf(stderr, "shapes: out of memory for an input of %lld elements\n",
                (long long)n);
        exit(3);
    }
    memset(*data, 0, (size_t)n * byoc_dtype_size(io->dtype));
    fill(*data, io->dtype, n, seed);
    *in = (DLTensor){.data = *data,
                     .device = {kDLCPU, 0},
                     .ndim = (int)io->rank,
                     .dtype = byoc_dtype_dlpack(io->dtype),
                     .shape = dims};
}

static void *run_client(void *ctx)
{
    struct shapes_client *c = ctx;
    static _Thread_local int64_t dims[MAX_IO][MAX_RANK];
    void *data[MAX_IO] = {0};
    struct byoc_state *state = NULL;
    const uint32_t n_in = byoc_model_n_inputs(c->model);
    const uint32_t n_out = byoc_model_n_outputs(c->model);
    c->failed = byoc_state_new(c->model, &state, &c->err) != BYOC_OK;
    for (long long i = 0; i < c->runs && !c->failed; i++) {
        DLTensor in[MAX_IO], out[MAX_IO] = {0};
        const char *names[MAX_DIMS];
        int64_t sizes[MAX_DIMS];
        int n_names = 0;
        for (uint32_t k = 0; k < n_in; k++)
            make_input(byoc_model_input(c->model, k), names, sizes, &n_names,
                       &c->seed, &in[k], dims[k], &data[k]);
        c->failed = byoc_run(state, in, n_in, out, n_out, &c->err) != BYOC_OK;
    }
    byoc_state_free(&state);
    for (uint32_t k = 0; k < n_in; k++)
        free(data[k]);
    return NULL;
}

static bool read_option(const char *text)
{
    const struct {
        const char *name;
        long long *to;
    } numbers[] = {{"runs", &options.runs},
                   {"threads", &options.threads},
                   {"shapes", &options.shapes},
                   {"bytes", &options.bytes},
                   {"seed", &options.seed}};
    const char *value = strchr(text, '=');
    if (!value)
        return false;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strncmp(text, numbers[i].name, strlen(numbers[i].name)) == 0 &&
            text[strlen(numbers[i].name)] == '=')
            return sscanf(value + 1, "%lld", numbers[i].to) == 1;
    if (options.n_ranges == MAX_RANGES)
        return false;
    struct shapes_range *r = &options.ranges[options.n_ranges++];
    r->name = text;
    r->n = (size_t)(value - text);
    return sscanf(value + 1, "%lld..%lld", &r->min, &r->max) == 2 &&
           r->min >= 0 && r->min <= r->max;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int report(const struct byoc_model *model, double seconds)
{
    struct byoc_cache_stats s;
    struct rusage usage;
    byoc_model_cache(model, &s);
    getrusage(RUSAGE_SELF, &usage);
    const double runs = (double)(s.hits + s.misses);
    printf("runs       %10.0f in %.1f s\n", runs, seconds);
    printf("hit rate   %10.1f %%\n",
           runs > 0 ? 100 * (double)s.hits / runs : 0);
    printf("builds     %10llu\n", (unsigned long long)s.builds);
    printf("refusals   %10llu\n", (unsigned long long)s.refusals);
    printf("evictions  %10llu\n", (unsigned long long)s.evictions);
    printf("shapes     %10u of %u\n", s.shapes, s.max_shapes);
    printf("cache      %10.1f MB of %.1f, peak %.1f\n", (double)s.bytes / 1e6,
           (double)s.max_bytes / 1e6, (double)s.peak_bytes / 1e6);
    printf("process    %10.1f MB peak\n", (double)usage.ru_maxrss * 1024 / 1e6);
    return s.shapes <= s.max_shapes && s.bytes <= s.max_bytes ? 0 : 1;
}

static int run_all(const struct byoc_model *model)
{
    static struct shapes_client clients[MAX_THREADS];
    static pthread_t threads[MAX_THREADS];
    const double start = now();
    int code = 0;
    for (int i = 0; i < (int)options.threads; i++) {
        clients[i] =
            (struct shapes_client){.model = model,
                                   .seed = (uint64_t)(options.seed * 1000 + i),
                                   .runs = options.runs / options.threads};
        const int error =
            pthread_create(&threads[i], NULL, run_client, &clients[i]);
        if (error) {
            fprintf(stderr,
                    "shapes: cannot create thread %d of %lld: %s; try fewer "
                    "threads\n",
                    i + 1, options.threads, strerror(error));
            return 3;
        }
    }
    for (int i = 0; i < (int)options.threads; i++) {
        pthread_join(threads[i], NULL);
        if (clients[i].failed) {
            fprintf(stderr, "shapes: %s\n", clients[i].err.text);
            code = 1;
        }
    }
    return report(model, now() - start) | code;
}

/* Whether the arrays of run_client() can hold the inputs and outputs, and no
 * input has strings; prints why not. */
static bool is_supported(const char *path, const struct byoc_model *model)
{
    const uint32_t n_in = byoc_model_n_inputs(model);
    const uint32_t n_out = byoc_model_n_outputs(model);
    if (n_in > MAX_IO || n_out > MAX_IO) {
        fprintf(stderr, "shapes: %s: found %u %s, expected at most %d\n", path,
                n_in > MAX_IO ? n_in : n_out,
                n_in > MAX_IO ? "inputs" : "outputs", MAX_IO);
        return false;
    }
    for (uint32_t i = 0; i < n_in; i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        if (io->rank > MAX_RANK) {
            fprintf(stderr,
                    "shapes: %s: input %s: found rank %u, expected at most "
                    "%d\n",
                    path, io->name, io->rank, MAX_RANK);
            return false;
        }
        if (io->dtype == BYOC_STRING) {
            fprintf(stderr,
                    "shapes: %s: input %s: found strings, expected numbers\n",
                    path, io->name);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct byoc_error err;
    struct byoc_model *model = NULL;
    bool valid = argc >= 2;
    for (int i = 2; i < argc && valid; i++) {
        valid = read_option(argv[i]);
        if (!valid)
            fprintf(stderr,
                    "shapes: found '%s', expected NAME=MIN..MAX with 0 <= MIN "
                    "<= MAX, or OPTION=N\n",
                    argv[i]);
    }
    if (options.threads < 1 || options.threads > MAX_THREADS) {
        fprintf(stderr, "shapes: found threads=%lld, expected 1 to %d\n",
                (long long)options.threads, MAX_THREADS);
        return 2;
    }
    if (!valid) {
        fprintf(stderr, "usage: shapes MODEL.so [NAME=MIN..MAX]... [runs=N] "
                        "[threads=N] [shapes=N] [bytes=N] [seed=N]\n");
        return 2;
    }
    const struct byoc_load_params params = {
        .threads = options.threads > 1 ? 1 : 0,
        .cache_shapes = (uint32_t)options.shapes,
        .cache_bytes = (uint64_t)options.bytes};
    if (byoc_model_load(argv[1], &params, &model, &err) != BYOC_OK) {
        fprintf(stderr, "shapes: %s\n", err.text);
        return 2;
    }
    const int code = is_supported(argv[1], model) ? run_all(model) : 2;
    byoc_model_free(&model);
    return code;
}
