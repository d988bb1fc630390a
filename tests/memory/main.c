/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: every allocation of a phase fails, one at a time, in a process of its
 * own. Each time the phase must succeed, or return BYOC_ENOMEM with a sentence.
 * No memory may leak. A second attempt must succeed, with the results of a
 * process in which no allocation failed.
 *
 *   memory [--stride N] [--in-a-row N] [--all] [--seconds S] [--only PHASE]
 *          [--at N] MODEL...
 *
 * --stride     every N-th allocation; without it, as many as --seconds allow,
 *              evenly spread
 * --seconds    for all models together (default 20)
 * --in-a-row   N allocations in a row fail
 * --all        allocations of oneDNN, OpenMP and the loader fail as well
 * --only       one phase, by its name in `phases`, or "1st comp"
 * --at         only allocation N fails, in this process: for a debugger
 *
 * Exits with 1 if an attempt ends in another way, 2 if a model does not run, or
 * for usage.
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <byoc/byoc.h>

#include "core/base/clock.h"
#include "heap.h"
#include "tests/folder.h"
#include "tests/watchdog.h"

enum { MAX_IO = 16, MAX_ELEMENTS = 1 << 16, KEPT_MEMORY = 16 << 20 };

/* The finding of a process, as its exit code. */
enum outcome {
    OK,
    FALLBACK, /* of a compile: the ledger lists nodes that run natively instead
               */
    REPORTED_ENOMEM,
    BAD_STATUS,
    LEAK,
    RETRY_FAILED,
    DIFFERENT,
    CRASHED
};
static const char *const outcome_names[] = {
    "ok",           "ok, natively", "ENOMEM",
    "other status", "leak",         "the second attempt fails",
    "different",    "crashed"};
enum { N_OUTCOMES = sizeof outcome_names / sizeof *outcome_names };

/* The model under test, and what the phases make of it. */
struct subject {
    const char *path;     /* ONNX or text               */
    const char *artifact; /* path of its artifact       */
    struct byoc_model *model;
    struct byoc_state *state;
    struct byoc_compiled *compiled;
    uint64_t hash;   /* of its results             */
    uint64_t ledger; /* its hash, of a compile in which nothing failed */
    int64_t blocks;  /* heap.blocks without the model, state and compiled */
    const char *why; /* the first error             */
};

static struct byoc_error err;

/* --- phases --------------------------------------------------------------- */

static const struct byoc_load_params load_params = {.threads = 1};
static const struct byoc_compile_params compile_params = {.threads = 1};

/* Inputs of every kind that the models have: numbers, strings and lists of
 * these; sizes that vary are 3. All from static memory. */
static struct byoc_value inputs[MAX_IO], elements[MAX_IO][2], outputs[MAX_IO];
static int64_t dims[MAX_IO][8];
static double numbers[MAX_ELEMENTS];
static const char *strings[MAX_ELEMENTS];

static void make_tensor(const struct byoc_io *io, uint32_t i,
                        struct byoc_value *value)
{
    const uint32_t rank = io->rank > 8 ? 1 : io->rank;
    for (uint32_t d = 0; d < rank; d++)
        dims[i][d] = io->rank > 8 || io->dims[d] < 0 ? 3 : io->dims[d];
    void *data = io->dtype == BYOC_STRING ? (void *)strings : (void *)numbers;
    *value =
        (struct byoc_value){.kind = BYOC_TENSOR,
                            .tensor = {.data = data,
                                       .device = {kDLCPU, 0},
                                       .ndim = (int)rank,
                                       .dtype = byoc_dtype_dlpack(io->dtype),
                                       .shape = dims[i]}};
}

static void make_inputs(const struct byoc_model *model)
{
    static const char *const words[] = {"a", "few", "words"};
    for (uint32_t i = 0; i < MAX_ELEMENTS; i++)
        strings[i] = words[i % 3];
    for (uint32_t i = 0; i < byoc_model_n_inputs(model); i++) {
        const struct byoc_io *io = byoc_model_input(model, i);
        if (io->kind == BYOC_TENSOR) {
            make_tensor(io, i, &inputs[i]);
            continue;
        }
        make_tensor(io->element, i, &elements[i][0]);
        elements[i][1] = elements[i][0];
        inputs[i] = (struct byoc_value){.kind = io->kind,
                                        .n = io->kind == BYOC_SEQUENCE ? 2 : 1,
                                        .elements = elements[i]};
    }
}

static uint64_t hash_bytes(uint64_t hash, const void *data, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const unsigned char *)data)[i]) * 0x100000001b3;
    return hash;
}

static uint64_t hash_value(uint64_t hash, const struct byoc_value *value)
{
    int64_t n = 1;
    for (uint32_t i = 0; value->kind != BYOC_TENSOR && i < value->n; i++)
        hash = hash_value(hash, &value->elements[i]);
    if (value->kind != BYOC_TENSOR)
        return hash;
    for (int d = 0; d < value->tensor.ndim; d++)
        n *= value->tensor.shape[d];
    hash = hash_bytes(hash, value->tensor.shape,
                      (size_t)value->tensor.ndim * sizeof(int64_t));
    const bool string = value->tensor.dtype.code == kDLOpaqueHandle;
    for (int64_t i = 0; string && i < n; i++) {
        const char *at = ((const char *const *)value->tensor.data)[i];
        hash = hash_bytes(hash, at, strlen(at) + 1);
    }
    return string ? hash
                  : hash_bytes(hash, value->tensor.data,
                               (size_t)n * value->tensor.dtype.bits / 8);
}

static enum byoc_status run_once(struct subject *s)
{
    const uint32_t n = byoc_model_n_outputs(s->model);
    memset(outputs, 0, sizeof outputs);
    const enum byoc_status status = byoc_run_values(
        s->state, inputs, byoc_model_n_inputs(s->model), outputs, n, &err);
    s->hash = 0xcbf29ce484222325;
    for (uint32_t i = 0; status == BYOC_OK && i < n; i++)
        s->hash = hash_value(s->hash, &outputs[i]);
    return status;
}

static enum byoc_status load(struct subject *s)
{
    return byoc_model_load(s->artifact, &load_params, &s->model, &err);
}

static enum byoc_status load_fd(struct subject *s)
{
    const int fd = open(s->artifact, O_RDONLY | O_CLOEXEC);
    const enum byoc_status status =
        byoc_model_load_fd(fd, &load_params, &s->model, &err);
    close(fd);
    return status;
}

static const void *map(const char *path, size_t *n)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fstat(fd, &st) != 0)
        exit(2);
    *n = (size_t)st.st_size;
    void *at = mmap(NULL, *n, PROT_READ, MAP_PRIVATE, fd, 0);
    close(fd);
    return at;
}

static enum byoc_status load_memory(struct subject *s)
{
    size_t n;
    const void *at = map(s->artifact, &n);
    const enum byoc_status status =
        byoc_model_load_memory(at, n, &load_params, &s->model, &err);
    munmap((void *)at, n);
    return status;
}

static void *allocate(void *ctx, uint64_t bytes, uint64_t alignment)
{
    void *at = NULL;
    (void)ctx;
    return posix_memalign(&at, alignment, bytes) ? NULL : at;
}

static void release(void *ctx, void *memory, uint64_t bytes)
{
    (void)ctx, (void)bytes;
    free(memory);
}

static enum byoc_status load_allocate(struct subject *s)
{
    struct byoc_load_params params = load_params;
    params.allocate = allocate;
    params.release = release;
    return byoc_model_load(s->artifact, &params, &s->model, &err);
}

static enum byoc_status new_state(struct subject *s)
{
    return byoc_state_new(s->model, &s->state, &err);
}

static enum byoc_status first_run(struct subject *s)
{
    const enum byoc_status status = new_state(s);
    return status == BYOC_OK ? run_once(s) : status;
}

static struct byoc_binding in_bindings[MAX_IO], out_bindings[MAX_IO];

/* A request for the first `n` outputs. */
static struct byoc_request request_of(const struct subject *s, uint32_t n)
{
    const struct byoc_request request = {.struct_size = sizeof request,
                                         .n_inputs =
                                             byoc_model_n_inputs(s->model),
                                         .inputs = in_bindings,
                                         .n_outputs = n,
                                         .outputs = out_bindings};
    memset(out_bindings, 0, sizeof out_bindings);
    for (uint32_t i = 0; i < request.n_inputs; i++)
        in_bindings[i].value = inputs[i];
    return request;
}

static void hash_bindings(struct subject *s, uint32_t n)
{
    s->hash = 0xcbf29ce484222325;
    for (uint32_t i = 0; i < n; i++)
        s->hash = hash_value(s->hash, &out_bindings[i].value);
}

/* Run for one output, then for all outputs. */
static enum byoc_status run_request(struct subject *s)
{
    const uint32_t n = byoc_model_n_outputs(s->model);
    struct byoc_request request = request_of(s, 1);
    enum byoc_status status = byoc_run_request(s->state, &request, &err);
    request = request_of(s, n);
    if (status == BYOC_OK)
        status = byoc_run_request(s->state, &request, &err);
    if (status == BYOC_OK)
        hash_bindings(s, n);
    return status;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static void on_end(void *ctx, struct byoc_state *state, enum byoc_status status,
                   const struct byoc_error *why)
{
    enum byoc_status *found = ctx;
    (void)state;
    pthread_mutex_lock(&lock);
    if (status != BYOC_OK)
        err = *why;
    *found = status;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static enum byoc_status run_async(struct subject *s)
{
    const enum byoc_status pending = (enum byoc_status) - 1;
    const uint32_t n = byoc_model_n_outputs(s->model);
    const struct byoc_request request = request_of(s, n);
    enum byoc_status found = pending;
    const enum byoc_status status =
        byoc_run_async(s->state, &request, on_end, &found, &err);
    if (status != BYOC_OK)
        return status;
    pthread_mutex_lock(&lock);
    while (found == pending)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    if (found == BYOC_OK)
        hash_bindings(s, n);
    return found;
}

static void use_event(void *ctx, const struct byoc_event *event)
{
    (void)ctx, (void)event;
}

static enum byoc_status profile(struct subject *s)
{
    enum byoc_status status =
        byoc_state_profile(s->state, use_event, NULL, &err);
    if (status == BYOC_OK)
        status = run_once(s);
    return status == BYOC_OK ? byoc_state_profile(s->state, NULL, NULL, &err)
                             : status;
}

static enum byoc_status compile(struct subject *s)
{
    return byoc_compile(s->path, &compile_params, &s->compiled, &err);
}

static enum byoc_status compile_memory(struct subject *s)
{
    size_t n;
    const void *at = map(s->path, &n);
    const enum byoc_status status = byoc_compile_memory(
        at, n, s->path, &compile_params, &s->compiled, &err);
    munmap((void *)at, n);
    return status;
}

static void drop(struct subject *s)
{
    byoc_state_free(&s->state);
    byoc_model_free(&s->model);
    byoc_compiled_free(&s->compiled);
}

static void drop_state(struct subject *s)
{
    byoc_state_free(&s->state);
}

/* For phases that run the same state again: free nothing. */
static void keep(struct subject *s)
{
    (void)s;
}

static enum byoc_status load_and_run(struct subject *s)
{
    if (!s->model && load(s) != BYOC_OK)
        return err.status;
    return first_run(s);
}

static enum byoc_status do_nothing(struct subject *s)
{
    (void)s;
    return BYOC_OK;
}

static enum byoc_status run_compiled(struct subject *s)
{
    if (byoc_compiled_load(s->compiled, &load_params, &s->model, &err) !=
        BYOC_OK)
        return err.status;
    return first_run(s);
}

static enum byoc_status compile_natively(struct subject *s)
{
    static const char *const no_backends[] = {NULL};
    struct byoc_compile_params params = compile_params;
    params.backends = no_backends;
    return byoc_compile(s->path, &params, &s->compiled, &err);
}

static enum byoc_status load_compiled(struct subject *s)
{
    return byoc_compiled_load(s->compiled, &load_params, &s->model, &err);
}

/* Returns BYOC_OK and adds the text to the hash, or BYOC_ENOMEM for the NULL of
 * a function that has no status. */
static enum byoc_status use_text(struct subject *s, const char *text)
{
    if (!text) {
        err = (struct byoc_error){BYOC_ENOMEM, "found no text"};
        return BYOC_ENOMEM;
    }
    s->hash = hash_bytes(s->hash, text, strlen(text));
    return BYOC_OK;
}

/* The IR, and its constants as a file. */
static enum byoc_status write_ir(struct subject *s)
{
    char path[300];
    snprintf(path, sizeof path, "%s.consts", s->artifact);
    s->hash = 0;
    const enum byoc_status status = use_text(s, byoc_compiled_ir(s->compiled));
    return status == BYOC_OK ? byoc_compiled_consts(s->compiled, path, &err)
                             : status;
}

/* The table of passes; its times differ between processes. */
static enum byoc_status list_passes(struct subject *s)
{
    const enum byoc_status status =
        use_text(s, byoc_compiled_times(s->compiled));
    s->hash = 0;
    return status;
}

/* Use the text that a function returned with `status`, and free it. */
static enum byoc_status use_and_free(struct subject *s, enum byoc_status status,
                                     char *text)
{
    if (status == BYOC_OK)
        status = use_text(s, text);
    byoc_string_free(text);
    return status;
}

/* The ledger as text, with its changes from itself. */
static enum byoc_status read_ledger(struct subject *s)
{
    const char *json = byoc_compiled_ledger(s->compiled);
    char *text = NULL;
    int worse;
    s->hash = 0;
    enum byoc_status status = byoc_ledger_text(json, 1, &text, &err);
    status = use_and_free(s, status, text);
    if (status != BYOC_OK)
        return status;
    status = byoc_ledger_diff(json, json, 0, 0, &worse, &text, &err);
    return use_and_free(s, status, text);
}

/* A backend that runs out of memory refuses its regions, so that the shares
 * differ. */
static enum byoc_status advise(struct subject *s)
{
    char *text = NULL;
    enum byoc_status status =
        byoc_advise(s->path, &compile_params, 1, &text, &err);
    status = use_and_free(s, status, text);
    s->hash = 0;
    return status;
}

static enum byoc_status write_artifact(struct subject *s)
{
    return byoc_compiled_write(s->compiled, s->artifact, &err);
}

static bool has_dim(const struct byoc_dim *at, uint32_t n, const char *name)
{
    while (n > 0 && strcmp(at[n - 1].name, name) != 0)
        n--;
    return n > 0;
}

static enum byoc_status warm(struct subject *s)
{
    struct byoc_dim sizes[MAX_IO];
    uint32_t n = 0;
    for (uint32_t i = 0; i < byoc_model_n_inputs(s->model); i++) {
        const struct byoc_io *io = byoc_model_input(s->model, i);
        for (uint32_t d = 0; io->dim_names && d < io->rank && n < MAX_IO; d++)
            if (io->dim_names[d] && !has_dim(sizes, n, io->dim_names[d]))
                sizes[n++] = (struct byoc_dim){io->dim_names[d], 3};
    }
    return n ? byoc_model_warm(s->model, sizes, n, &err) : BYOC_OK;
}

static enum byoc_status trace(struct subject *s)
{
    char path[300];
    snprintf(path, sizeof path, "%s.trace", s->artifact);
    enum byoc_status status = byoc_state_trace(s->state, path, &err);
    if (status == BYOC_OK)
        status = run_once(s);
    return status == BYOC_OK ? byoc_state_trace(s->state, NULL, &err) : status;
}

static void use_row(void *ctx, const char *row, const char *finding)
{
    use_text(ctx, row);
    if (finding)
        use_text(ctx, finding);
}

static enum byoc_status lint(struct subject *s)
{
    s->hash = 0;
    return byoc_patterns_lint(NULL, NULL, use_row, s, &err);
}

static void use_plugin(void *ctx, const char *path, const char *name,
                       const char *version, const char *verdict)
{
    (void)path, (void)version, (void)verdict;
    if (name)
        use_text(ctx, name);
}

/* It has no status: a plug-in may be missing or unusable, but only then. */
static enum byoc_status list_plugins(struct subject *s)
{
    byoc_backends_list(NULL, use_plugin, s);
    s->hash = 0;
    return BYOC_OK;
}

/* before: prepares the phase once, without failures. act: runs the phase, any
 * number of times. undo: frees the results of act. after: reads the results. */
static const struct phase {
    const char *name;
    enum byoc_status (*before)(struct subject *s);
    enum byoc_status (*act)(struct subject *s);
    void (*undo)(struct subject *s);
    enum byoc_status (*after)(struct subject *s);
    int share; /* of the time */
} phases[] = {
    {"load", do_nothing, load, drop, load_and_run, 2},
    {"first run", load, first_run, drop_state, do_nothing, 2},
    {"run", load_and_run, run_once, keep, do_nothing, 1},
    {"compile", do_nothing, compile, drop, run_compiled, 4},
    {"load_fd", do_nothing, load_fd, drop, load_and_run, 1},
    {"load_mem", do_nothing, load_memory, drop, load_and_run, 1},
    {"allocate", do_nothing, load_allocate, drop, load_and_run, 1},
    {"request", load_and_run, run_request, keep, do_nothing, 1},
    {"async", load_and_run, run_async, keep, do_nothing, 1},
    {"profile", load_and_run, profile, keep, do_nothing, 1},
    {"comp_mem", do_nothing, compile_memory, drop, run_compiled, 1},
    {"write", compile, write_artifact, keep, load_and_run, 1},
    {"ir", compile, write_ir, keep, do_nothing, 1},
    {"passes", compile, list_passes, keep, do_nothing, 1},
    {"ledger", compile, read_ledger, keep, do_nothing, 1},
    {"advise", do_nothing, advise, keep, do_nothing, 1},
    {"warm", load, warm, keep, first_run, 1},
    {"trace", load_and_run, trace, keep, do_nothing, 1},
    {"lint", do_nothing, lint, keep, do_nothing, 1},
    {"list", do_nothing, list_plugins, keep, do_nothing, 1},
};
enum { N_PHASES = sizeof phases / sizeof *phases };

/* A compile in a process that has not compiled before, which also allocates
 * what every process allocates once and keeps. Native only: oneDNN is not
 * loaded yet, so its allocations could not be spared. */
static const struct phase first_compile = {
    "1st comp", do_nothing, compile_natively, drop, load_compiled, 1};

/* --- one allocation fails ------------------------------------------------- */

static uint64_t ledger_hash(const struct subject *s)
{
    const char *text = byoc_compiled_ledger(s->compiled);
    return hash_bytes(0, text, strlen(text));
}

/* Whether the next run finds a kept specialisation that runs a native twin. */
static bool keeps_twin(struct subject *s)
{
    struct byoc_cache_stats before, now;
    if (!s->model)
        return false;
    byoc_model_cache(s->model, &before);
    if (before.refusals == 0)
        return false;
    if (run_once(s) != BYOC_OK || run_once(s) != BYOC_OK)
        return true;
    byoc_model_cache(s->model, &now);
    return now.refusals > before.refusals || now.builds == before.builds;
}

/* Run the phase in this process, and let `in_a_row` allocations fail from
 * number `at` on; `expected` is the hash of the results of a process in which
 * none failed.
 */
static enum outcome attempt(const struct phase *p, struct subject *s,
                            uint64_t expected, uint64_t at, uint64_t in_a_row)
{
    heap.calls = 0;
    heap.fail_at = at;
    heap.fail_n = in_a_row;
    heap.armed = 1;
    const enum byoc_status status = p->act(s);
    heap.armed = 0;
    enum outcome outcome = status == BYOC_OK ? OK : REPORTED_ENOMEM;
    if (status != BYOC_OK &&
        (status != BYOC_ENOMEM || err.status != status || !*err.text)) {
        s->why = err.text;
        return BAD_STATUS;
    }
    if (status != BYOC_OK)
        p->undo(s);
    if ((status != BYOC_OK && p->act(s) != BYOC_OK) || p->after(s) != BYOC_OK) {
        s->why = err.text;
        return RETRY_FAILED;
    }
    if (s->compiled && ledger_hash(s) != s->ledger)
        outcome = FALLBACK;
    else if (s->hash != expected)
        return DIFFERENT;
    if (keeps_twin(s))
        return RETRY_FAILED;
    drop(s);
    return heap.blocks > s->blocks ? LEAK : outcome;
}

/* The counts of a process in which no allocation failed. */
struct heap_counts {
    uint64_t calls, ledger, hash;
    int64_t blocks; /* of the heap, at the end */
};

static struct heap_counts count_calls(const struct phase *p, struct subject *s)
{
    struct heap_counts counts;
    heap.calls = 0;
    heap.fail_at = UINT64_MAX;
    heap.armed = 1;
    const enum byoc_status status = p->act(s);
    heap.armed = 0;
    if (status != BYOC_OK || p->after(s) != BYOC_OK) {
        fprintf(stderr, "%s: %s: %s\n", s->path, p->name, err.text);
        exit(2);
    }
    counts.calls = heap.calls;
    counts.ledger = s->compiled ? ledger_hash(s) : 0;
    counts.hash = s->hash;
    drop(s);
    counts.blocks = heap.blocks;
    return counts;
}

/* The command line; the usage above describes it. */
struct options {
    uint64_t stride, in_a_row, at;
    double seconds;
    bool all;
    const char *only;
};

static enum outcome fork_attempt(const struct phase *p, struct subject *s,
                                 uint64_t expected, uint64_t at,
                                 const struct options *o)
{
    fflush(stdout);
    const pid_t child = fork();
    int status;
    if (child == 0) {
        watch_process(30);
        enum outcome outcome = attempt(p, s, expected, at, o->in_a_row);
        if (outcome > REPORTED_ENOMEM)
            fprintf(stderr, "%s: %s: allocation %llu: %s%s%s\n", s->path,
                    p->name, (unsigned long long)at, outcome_names[outcome],
                    s->why ? ": " : "", s->why ? s->why : "");
        _exit(outcome);
    }
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) < N_OUTCOMES)
        return (enum outcome)WEXITSTATUS(status);
    fprintf(stderr, "%s: %s: allocation %llu: signal %d\n", s->path, p->name,
            (unsigned long long)at, WTERMSIG(status));
    return CRASHED;
}

/* The greatest common divisor, by Euclid's algorithm. */
static uint64_t gcd(uint64_t a, uint64_t b)
{
    return b ? gcd(b, a % b) : a;
}

/* A step whose multiples, modulo `calls`, spread over all allocations however
 * early the test ends: about the golden section. */
static uint64_t golden_step(uint64_t calls)
{
    uint64_t step = (uint64_t)((double)calls * 0.618) | 1;
    while (calls > 1 && gcd(calls, step) != 1)
        step++;
    return step;
}

/* The phase's share of the seconds that one model has. */
static double seconds_of(const struct options *o, const struct phase *p,
                         uint32_t n_models)
{
    int shares = first_compile.share;
    for (uint32_t i = 0; i < N_PHASES; i++)
        shares += phases[i].share;
    return o->seconds * p->share / shares / n_models;
}

/* Let allocations of a phase fail, each in a child process, and print a line
 * with the numbers of outcomes. The allocations are counted in a child as well,
 * so that this does not change the heap of the processes under test. Returns
 * whether every outcome is allowed; exits if the phase fails without them.
 */
static bool try_phase(const struct phase *p, struct subject *s,
                      const struct options *o, uint32_t n_models)
{
    uint64_t n[N_OUTCOMES] = {0}, attempts = 0;
    s->blocks = heap.blocks;
    if (p->before(s) != BYOC_OK) {
        fprintf(stderr, "%s: %s: %s\n", s->path, p->name, err.text);
        exit(2);
    }
    int ends[2];
    struct heap_counts counts = {0};
    if (pipe(ends) != 0)
        exit(2);
    if (fork() == 0) {
        counts = count_calls(p, s);
        _exit(write(ends[1], &counts, sizeof counts) != sizeof counts);
    }
    if (read(ends[0], &counts, sizeof counts) != sizeof counts)
        exit(2);
    const uint64_t calls = counts.calls;
    if (p == &first_compile) {
        s->ledger = counts.ledger;
        s->blocks = counts.blocks;
    }
    wait(NULL);
    close(ends[0]);
    close(ends[1]);
    if (o->at != UINT64_MAX)
        exit((int)attempt(p, s, counts.hash, o->at, o->in_a_row));
    const uint64_t step = o->stride ? o->stride : golden_step(calls);
    const uint64_t max_attempts = o->stride ? (calls + step - 1) / step : calls;
    const double end = byi_now() + seconds_of(o, p, n_models);
    for (; attempts < max_attempts && (o->stride || byi_now() < end);
         attempts++)
        n[fork_attempt(p, s, counts.hash, attempts * step % calls, o)]++;
    drop(s);
    const char *name = strrchr(s->path, '/');
    printf("%-14.14s %-10s %8llu %7llu", name ? name + 1 : s->path, p->name,
           (unsigned long long)calls, (unsigned long long)attempts);
    for (uint32_t i = 0; i < N_OUTCOMES; i++)
        printf(" %7llu", (unsigned long long)n[i]);
    printf("\n");
    return n[OK] + n[FALLBACK] + n[REPORTED_ENOMEM] == attempts;
}

static void prepare(struct subject *s)
{
    if (compile(s) == BYOC_OK &&
        byoc_compiled_write(s->compiled, s->artifact, &err) == BYOC_OK &&
        load(s) == BYOC_OK) {
        make_inputs(s->model);
        s->ledger = ledger_hash(s);
        if (first_run(s) == BYOC_OK) {
            drop(s);
            return;
        }
    }
    fprintf(stderr, "%s: %s\n", s->path, err.text);
    exit(2);
}

static bool try_first_compile(const char *path, const struct options *o)
{
    struct subject s = {.path = path};
    return (o->only && strcmp(o->only, first_compile.name) != 0) ||
           try_phase(&first_compile, &s, o, 1);
}

static bool try_model(const char *path, const char *folder,
                      const struct options *o, uint32_t n_models)
{
    char artifact[300];
    bool ok = true;
    snprintf(artifact, sizeof artifact, "%s/model.so", folder);
    struct subject s = {.path = path, .artifact = artifact};
    prepare(&s); /* from here on, all objects that a process makes once exist */
    heap.all = o->all;
    heap_spare();
    for (uint32_t i = 0; i < N_PHASES; i++)
        if (!o->only || strcmp(o->only, phases[i].name) == 0)
            ok = try_phase(&phases[i], &s, o, n_models) && ok;
    return ok;
}

int main(int argc, char **argv)
{
    struct options o = {.in_a_row = 1, .seconds = 20, .at = UINT64_MAX};
    int first = 1;
    bool ok = true;
    setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0", 1);
    setenv("DNNL_PRIMITIVE_CACHE_CAPACITY", "0", 1);
    /* thousands of processes need the same pages again */
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
    for (; first < argc && strncmp(argv[first], "--", 2) == 0; first++) {
        const char *name = argv[first] + 2;
        if (strcmp(name, "all") == 0) {
            o.all = true;
            continue;
        }
        if (++first == argc)
            break;
        if (strcmp(name, "stride") == 0)
            o.stride = strtoull(argv[first], NULL, 10);
        else if (strcmp(name, "in-a-row") == 0)
            o.in_a_row = strtoull(argv[first], NULL, 10);
        else if (strcmp(name, "at") == 0)
            o.at = strtoull(argv[first], NULL, 10);
        else if (strcmp(name, "seconds") == 0)
            o.seconds = strtod(argv[first], NULL);
        else if (strcmp(name, "only") == 0)
            o.only = argv[first];
        else
            first = argc;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: memory [--stride N] [--in-a-row N] [--all] "
                        "[--seconds S] [--only PHASE] [--at N] MODEL...\n");
        return 2;
    }
    const char *folder = make_test_folder(NULL);
    if (!folder)
        return 2;
    printf("%-14s %-10s %8s %7s %7s %7s %7s %7s %7s %7s %7s %7s\n", "model",
           "phase", "calls", "attempts", "ok", "native", "ENOMEM", "other",
           "leak", "retry", "differ", "crash");
    ok = try_first_compile(argv[first], &o);
    for (int i = first; i < argc; i++)
        ok = try_model(argv[i], folder, &o, (uint32_t)(argc - first)) && ok;
    return !ok;
}
