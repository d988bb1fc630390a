/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: tests damaged artifacts. It changes every byte of an artifact, one at
 * a time, and cuts the file at every length. Unless opening refuses the damaged
 * file, it is loaded and run in a process of its own, with limits on time and
 * memory. The test fails if such a process crashes or takes too long.
 *
 *   flips [--stride N] [--seconds S] [--mask XOR] MODEL...
 *
 * Exits with 1 if the test fails, 2 if a model does not run, or for usage.
 *
 * --stride   change every N-th byte; without it, as many bytes as --seconds
 *            (default 10) allow, evenly spread
 * --mask     XOR the byte with this number (default 0xff)
 *
 * The ways to damage the file, in the first column of the output:
 * as it is   one byte changes
 * no sum     one byte changes, and the sum at the end is cut off
 * forged     one byte of what the runtime reads itself (descriptor, manifest,
 *            plan, regions, weights, tables of code) changes, and hashes and
 *            the sum are made to agree, so that only the readers' own checks
 *            remain. Code, relocations and headers are left out: whoever can
 *            forge their sum can run any code.
 * cut        the file ends early
 */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <byoc/byoc.h>

#include "core/base/clock.h"
#include "core/base/descriptor.h"
#include "runtime/internal.h"
#include "runtime/state.h"
#include "tests/folder.h"
#include "tests/watchdog.h"

/* CPU time and memory of the children that took most of them. */
static struct {
    double ms;
    long mb;
} peak;

static void note_usage(const struct rusage *u)
{
    const double ms = (double)(u->ru_utime.tv_sec + u->ru_stime.tv_sec) * 1e3 +
                      (double)(u->ru_utime.tv_usec + u->ru_stime.tv_usec) / 1e3;
    if (ms > peak.ms)
        peak.ms = ms;
    if (u->ru_maxrss / 1024 > peak.mb)
        peak.mb = u->ru_maxrss / 1024;
}

/* How a trial of a damaged file ends. SAME and DIFFERENT: it runs, and its
 * results equal those of the undamaged artifact, or do not. */
enum outcome { REFUSED, SAME, DIFFERENT, TOO_LONG, CRASHED, N_OUTCOMES };
/* A changed constant may be the trip count of a loop: such a program requests
 * 2^40 calls, and ends at this limit here (elsewhere at 10^8). */
enum { MAX_CALLS = 20000 };
enum { MAX_RANGES = 8, MAX_INPUTS = 8, MAX_ELEMENTS = 4096 };

struct range {
    size_t at, n;
};

/* An artifact to damage. */
struct subject {
    const char *path;                  /* of the model */
    char whole[300], damaged[300];     /* paths of the artifacts */
    char *bytes;                       /* of the undamaged artifact */
    size_t n;                          /* number of bytes */
    struct range readable[MAX_RANGES]; /* the bytes that `forged` changes */
    uint32_t n_readable;
    struct range weights;
    char hashes[3][65]; /* of plan, ledger and blobs, as in the manifest */
    uint64_t results;   /* hash of the results, as of load_and_run() */
};

struct options {
    uint64_t stride;
    double seconds;
    int mask;
};

/* --- loading and running -------------------------------------------------- */

static struct byoc_error err;
static const struct byoc_load_params loading = {.threads = 1};

static void make_tensor(const struct byoc_io *io, struct byoc_value *value,
                        int64_t *dims)
{
    static double numbers[MAX_ELEMENTS];
    static const char *strings[MAX_ELEMENTS];
    for (uint32_t i = 0; i < MAX_ELEMENTS; i++)
        strings[i] = "text";
    const uint32_t rank = io->rank > 8 ? 1 : io->rank;
    int64_t elements = 1;
    for (uint32_t d = 0; d < rank; d++) {
        dims[d] = io->rank > 8 || io->dims[d] < 0 ? 3 : io->dims[d];
        if (dims[d] > MAX_ELEMENTS / elements)
            _exit(REFUSED); /* a shape that the model did not have */
        elements *= dims[d] ? dims[d] : 1;
    }
    *value = (struct byoc_value){
        .tensor = {.data = io->dtype == BYOC_STRING ? (void *)strings : numbers,
                   .device = {kDLCPU, 0},
                   .ndim = (int)rank,
                   .dtype = byoc_dtype_dlpack(io->dtype),
                   .shape = dims}};
}

static uint64_t hash_value(uint64_t hash, const struct byoc_value *value)
{
    const DLTensor *t = &value->tensor;
    uint64_t n = 1;
    for (uint32_t i = 0; value->kind != BYOC_TENSOR && i < value->n; i++)
        hash = hash_value(hash, &value->elements[i]);
    if (value->kind != BYOC_TENSOR)
        return hash;
    for (int d = 0; d < t->ndim; d++)
        n *= (uint64_t)t->shape[d];
    if (t->dtype.code != kDLOpaqueHandle)
        return byi_hash(hash, t->data, n * t->dtype.bits / 8);
    for (uint64_t i = 0; i < n; i++) {
        const char *text = ((const char *const *)t->data)[i];
        hash = byi_hash(hash, text, strlen(text));
    }
    return hash;
}

/* Set *results to the hash of the results. Returns false if the file is
 * refused.
 */
static bool load_and_run(const char *path, uint64_t *results)
{
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    struct byoc_value in[MAX_INPUTS], elements[MAX_INPUTS][2], out[16] = {0};
    int64_t dims[MAX_INPUTS][8];
    bool done = byoc_model_load(path, &loading, &model, &err) == BYOC_OK &&
                byoc_state_new(model, &state, &err) == BYOC_OK &&
                byoc_model_n_inputs(model) <= MAX_INPUTS &&
                byoc_model_n_outputs(model) <= 16;
    if (state)
        state->max_calls = MAX_CALLS;
    for (uint32_t i = 0; done && i < byoc_model_n_inputs(model); i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        make_tensor(io->element ? io->element : io, &in[i], dims[i]);
        if (!io->element)
            continue;
        elements[i][0] = elements[i][1] = in[i];
        in[i] = (struct byoc_value){.kind = io->kind,
                                    .n = io->kind == BYOC_SEQUENCE ? 2 : 1,
                                    .elements = elements[i]};
    }
    done =
        done && byoc_run_values(state, in, byoc_model_n_inputs(model), out,
                                byoc_model_n_outputs(model), &err) == BYOC_OK;
    *results = 1;
    for (uint32_t i = 0; done && i < byoc_model_n_outputs(model); i++)
        *results = hash_value(*results, &out[i]);
    byoc_state_free(&state);
    byoc_model_free(&model);
    return done;
}

/* --- damaging ------------------------------------------------------------- */

static bool write_bytes(const char *path, const char *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f)
        return false;
    const bool good = fwrite(bytes, 1, n, f) == n;
    return fclose(f) == 0 && good;
}

/* Write the bytes to the damaged artifact, and open, load and run it. `what`
 * and `at`, the kind and place of the damage, are for messages. */
static enum outcome try_bytes(const struct subject *s, const char *bytes,
                              size_t n, const char *what, size_t at)
{
    struct byi_artifact a;
    struct rusage usage = {0};
    int status;
    if (!write_bytes(s->damaged, bytes, n))
        exit(2);
    if (byoc_internal_artifact_open(s->damaged, &a, &err) != BYOC_OK)
        return REFUSED;
    byoc_internal_artifact_close(&a);
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit memory = {UINT64_C(8) << 30, UINT64_C(8) << 30};
        uint64_t results;
        setrlimit(RLIMIT_AS, &memory);
        watch_process(20);
        if (!load_and_run(s->damaged, &results))
            _exit(REFUSED);
        _exit(results == s->results ? SAME : DIFFERENT);
    }
    wait4(child, &status, 0, &usage);
    note_usage(&usage);
    if (WIFEXITED(status))
        return WEXITSTATUS(status) < N_OUTCOMES
                   ? (enum outcome)WEXITSTATUS(status)
                   : CRASHED;
    fprintf(stderr, "%s: %s: byte %zu: signal %d\n", s->path, what, at,
            WTERMSIG(status));
    return WTERMSIG(status) == SIGALRM || WTERMSIG(status) == SIGXCPU ? TOO_LONG
                                                                      : CRASHED;
}

static void sha256_hex(const char *at, size_t n, char hex[65])
{
    struct byi_sha256 sha;
    byi_sha256_init(&sha);
    byi_sha256_add(&sha, at, n);
    byi_sha256_hex(&sha, hex);
}

/* Replace the manifest's hash of section k, if it has one, by `hex`. */
static void forge_hash(const struct subject *s, char *bytes, uint32_t k,
                       const char *hex)
{
    char *at = memmem(bytes, s->n, s->hashes[k], 64);
    if (at)
        memcpy(at, hex, 64);
}

static void forge_sum(const struct subject *s, char *bytes)
{
    struct byi_sha256 sha;
    char hex[65];
    const size_t end = s->n - BYI_SUM_BYTES;
    const size_t after = s->weights.at + s->weights.n;
    byi_sha256_init(&sha);
    byi_sha256_add(&sha, bytes, s->weights.at);
    byi_sha256_add(&sha, bytes + after, end - after);
    byi_sha256_hex(&sha, hex);
    memcpy(bytes + end + strlen(BYI_SUM_MAGIC), hex, 64);
}

static size_t forgeable_bytes(const struct subject *s)
{
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_readable; i++)
        n += s->readable[i].n;
    return n;
}

/* The offset in the file of byte `at` of the readable ranges. */
static size_t place_of(const struct subject *s, size_t at)
{
    uint32_t i = 0;
    while (at >= s->readable[i].n)
        at -= s->readable[i++].n;
    return s->readable[i].at + at;
}

enum way { AS_IS, NO_SUM, FORGED, CUT, N_WAYS };
static const char *const ways[] = {"as it is", "no sum", "forged", "cut"};
/* Indices of the first of subject.readable[]. */
enum { MANIFEST, PLAN, LEDGER, BLOBS };

static enum outcome damage(const struct subject *s, enum way way, size_t at,
                           int mask, char *bytes)
{
    char hex[65];
    if (way == CUT)
        return try_bytes(s, s->bytes, at, ways[way], at);
    const size_t place = way == FORGED ? place_of(s, at) : at;
    memcpy(bytes, s->bytes, s->n);
    bytes[place] = (char)(bytes[place] ^ mask);
    for (uint32_t k = 0; way == FORGED && k < 3; k++) {
        const struct range *r = &s->readable[PLAN + k];
        sha256_hex(bytes + r->at, r->n, hex);
        forge_hash(s, bytes, k, hex);
    }
    if (way == FORGED)
        forge_sum(s, bytes);
    return try_bytes(s, bytes, s->n - (way == NO_SUM ? BYI_SUM_BYTES : 0),
                     ways[way], place);
}

/* --- artifacts ------------------------------------------------------------ */

static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

static bool try_way(const struct subject *s, enum way way,
                    const struct options *o, uint32_t n_models)
{
    const size_t n = way == FORGED   ? forgeable_bytes(s)
                     : way == NO_SUM ? s->n - BYI_SUM_BYTES
                                     : s->n;
    /* steps of a number that is coprime to n reach every byte once; with n
     * times the golden ratio, any number of steps is spread evenly */
    uint64_t step = o->stride ? o->stride : (uint64_t)((double)n * 0.618) | 1;
    while (!o->stride && gcd(n, step) != 1)
        step++;
    const uint64_t max_flips = o->stride ? (n + step - 1) / step : n;
    const double end = byi_now() + o->seconds / N_WAYS / n_models;
    memset(&peak, 0, sizeof peak);
    uint64_t found[N_OUTCOMES] = {0}, n_damaged = 0;
    char *bytes = malloc(s->n);
    for (; n_damaged < max_flips && (o->stride || byi_now() < end); n_damaged++)
        found[damage(s, way, n_damaged * step % n, o->mask, bytes)]++;
    free(bytes);
    const char *name = strrchr(s->path, '/');
    printf("%-14.14s %-9s %8zu %8llu", name ? name + 1 : s->path, ways[way], n,
           (unsigned long long)n_damaged);
    for (uint32_t i = 0; i < N_OUTCOMES; i++)
        printf(" %8llu", (unsigned long long)found[i]);
    printf(" %8.0f %8ld\n", peak.ms, peak.mb);
    return found[CRASHED] == 0 && found[TOO_LONG] == 0;
}

static void add_range(struct subject *s, const void *at, const void *map,
                      uint64_t n)
{
    if (at && n)
        s->readable[s->n_readable++] =
            (struct range){(size_t)((const char *)at - (const char *)map), n};
}

static void fail(const char *path)
{
    fprintf(stderr, "%s: %s\n", path, err.text);
    exit(2);
}

/* Read the whole artifact, and find its parts and hashes. */
static void open_whole(struct subject *s)
{
    struct byi_artifact a;
    if (byoc_internal_artifact_open(s->whole, &a, &err) != BYOC_OK)
        fail(s->path);
    const struct byi_image *image = &a.image;
    const char *base = (const char *)a.descriptor;
    s->n = a.map_bytes;
    s->bytes = malloc(s->n);
    memcpy(s->bytes, a.map, s->n);
    add_range(s, image->manifest, a.map, image->manifest_bytes);
    add_range(s, image->plan, a.map, image->plan_bytes);
    add_range(s, image->ledger, a.map, image->ledger_bytes);
    add_range(s, image->blobs, a.map, image->blobs_bytes);
    if (s->n_readable < 4) /* without regions, [BLOBS] is an empty range */
        s->readable[s->n_readable++] = (struct range){0};
    add_range(s, base, a.map, sizeof *a.descriptor);
    add_range(s, image->weights, a.map, image->weights_bytes);
    add_range(s, a.code_bytes ? base + a.code : NULL, a.map, a.code_bytes);
    add_range(s, a.units_bytes ? base + a.units : NULL, a.map, a.units_bytes);
    s->weights = (struct range){s->n - BYI_SUM_BYTES, 0};
    if (image->weights)
        s->weights = (struct range){
            (size_t)((const char *)image->weights - (const char *)a.map),
            image->weights_bytes};
    for (uint32_t k = 0; k < 3; k++)
        sha256_hex(s->bytes + s->readable[PLAN + k].at, s->readable[PLAN + k].n,
                   s->hashes[k]);
    byoc_internal_artifact_close(&a);
}

static bool try_model(const char *path, const char *folder,
                      const struct options *o, uint32_t n_models)
{
    struct subject s = {.path = path};
    struct byoc_compiled *c = NULL;
    const struct byoc_compile_params params = {.threads = 1};
    bool passed = true;
    snprintf(s.whole, sizeof s.whole, "%s/whole.so", folder);
    snprintf(s.damaged, sizeof s.damaged, "%s/damaged.so", folder);
    if (byoc_compile(path, &params, &c, &err) != BYOC_OK ||
        byoc_compiled_write(c, s.whole, &err) != BYOC_OK)
        fail(path);
    byoc_compiled_free(&c);
    if (!load_and_run(s.whole, &s.results))
        fail(path);
    open_whole(&s);
    for (enum way way = 0; way < N_WAYS; way++)
        passed = try_way(&s, way, o, n_models) && passed;
    free(s.bytes);
    return passed;
}

int main(int argc, char **argv)
{
    struct options o = {.seconds = 10, .mask = 0xff};
    int first = 1;
    bool passed = true;
    for (; first + 1 < argc && strncmp(argv[first], "--", 2) == 0; first += 2) {
        if (strcmp(argv[first], "--stride") == 0)
            o.stride = strtoull(argv[first + 1], NULL, 10);
        else if (strcmp(argv[first], "--seconds") == 0)
            o.seconds = strtod(argv[first + 1], NULL);
        else if (strcmp(argv[first], "--mask") == 0)
            o.mask = (int)strtol(argv[first + 1], NULL, 0);
        else
            break;
    }
    if (first >= argc || argv[first][0] == '-') {
        fprintf(stderr, "usage: flips [--stride N] [--seconds S] [--mask XOR] "
                        "MODEL...\n");
        return 2;
    }
    const char *folder = make_test_folder(NULL);
    if (!folder)
        return 2;
    printf("%-14s %-9s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "artifact",
           "damage", "bytes", "tried", "refused", "same", "differ", "too long",
           "crashed", "most ms", "most MB");
    for (int i = first; i < argc; i++)
        passed =
            try_model(argv[i], folder, &o, (uint32_t)(argc - first)) && passed;
    return !passed;
}
