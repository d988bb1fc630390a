/* SPDX-License-Identifier: Apache-2.0 */
/* broken.c: the backend of ref.c with one fault that checks of its struct
 * cannot find; -DBROKEN selects it. tests/cli/broken.sh and
 * tests/cli/conform.sh have the expected messages.
 */
#define REF_IS_A_PART
#include "../ref.c"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* The faults. */
enum {
    CRASH_IN_MATCH,
    HANG_IN_COMPILE,
    FAILS_TO_BUILD,
    WRONG_NUMBERS,
    RACES,
    LEAKS,
    WRITES_PAST,
    KEEPS_POINTER,
    DESCRIBES_NOTHING,
    SIGNAL_ON_UNLOAD,
    FORGETS,
    THREADS_AT_LOAD
};

static struct byoc_backend broken;

static void *wait_for_work(void *arg)
{
    for (;;)
        pause();
    return arg;
}

/* Start threads when the library is loaded, as OpenBLAS and MKL do. */
__attribute__((constructor)) static void start_threads(void)
{
    pthread_t thread;
    if (BROKEN == THREADS_AT_LOAD &&
        pthread_create(&thread, NULL, wait_for_work, NULL) == 0)
        pthread_detach(thread);
}

/* Read the data of an operand "bias" that the pattern does not have: the host
 * returns NULL, and the read crashes.
 */
static const char *accept_crash(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    const volatile int64_t *dims =
        (const volatile int64_t *)host->match_const(m, "bias", &(uint64_t){0});
    return dims[0] ? NULL : "no bias";
}

static struct byoc_fail *compile_hang(const struct byoc_host *host,
                                      const struct byoc_region *region,
                                      struct byoc_blob *blob)
{
    static volatile int ready;
    (void)host, (void)region, (void)blob;
    while (!ready)
        usleep(1000);
    return NULL;
}

static struct byoc_fail *load_fails(const struct byoc_host *host,
                                    const struct byoc_region *region,
                                    void **compiled)
{
    (void)region, (void)compiled;
    return host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                      "no kernel was built for this shape");
}

/* Each load() leaks a block of the host's memory. */
static struct byoc_fail *load_leaks(const struct byoc_host *host,
                                    const struct byoc_region *region,
                                    void **compiled)
{
    if (!host->acquire(host->ctx, 1000))
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    return load(host, region, compiled);
}

/* Each load() leaks a block of malloc(), which the host does not see. */
static struct byoc_fail *load_forgets(const struct byoc_host *host,
                                      const struct byoc_region *region,
                                      void **compiled)
{
    char *volatile forgotten = malloc(1000);
    if (forgotten)
        forgotten[0] = 1;
    return load(host, region, compiled);
}

/* Replace the last number x of the first output by 2x + 1. */
static struct byoc_fail *run_wrong(const struct byoc_host *host, void *compiled,
                                   void *state,
                                   const struct byoc_run_args *args)
{
    struct byoc_fail *fail = run(host, compiled, state, args);
    float *out = args->outputs[0].data;
    const uint64_t n = args->outputs[0].bytes / sizeof *out;
    if (!fail && n)
        out[n - 1] = 2 * out[n - 1] + 1;
    return fail;
}

/* All runs of a loaded region use the state of its first run: runs in two
 * threads write to the same memory.
 */
static struct byoc_fail *run_races(const struct byoc_host *host, void *compiled,
                                   void *state,
                                   const struct byoc_run_args *args)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void *owner, *shared;
    pthread_mutex_lock(&lock);
    if (owner != compiled) {
        owner = compiled;
        shared = state;
    }
    pthread_mutex_unlock(&lock);
    return run(host, compiled, shared, args);
}

/* Write one number past the end of the first output. */
static struct byoc_fail *run_past(const struct byoc_host *host, void *compiled,
                                  void *state, const struct byoc_run_args *args)
{
    struct byoc_fail *fail = run(host, compiled, state, args);
    float *out = args->outputs[0].data;
    if (!fail)
        out[args->outputs[0].bytes / sizeof *out] = 0;
    return fail;
}

/* All runs of a loaded region read through the array of views of its first
 * run, which was valid for that run only.
 */
static struct byoc_fail *run_keeps(const struct byoc_host *host, void *compiled,
                                   void *state,
                                   const struct byoc_run_args *args)
{
    static const struct byoc_view *first_inputs;
    static void *owner;
    struct byoc_run_args changed_args = *args;
    if (owner != compiled) {
        owner = compiled;
        first_inputs = args->inputs;
    }
    changed_args.inputs = first_inputs;
    return run(host, compiled, state, &changed_args);
}

/* Report a step without its implementation and its source nodes. */
static void describe_nothing(const struct byoc_host *host, const void *compiled,
                             byoc_trace_fn say, void *ctx)
{
    (void)host, (void)compiled;
    say(ctx, "add", NULL, NULL, 0, 0);
}

static void quiesce_signal(const struct byoc_host *host)
{
    (void)host;
    raise(SIGABRT);
}

static const struct byoc_backend *query_broken(const struct byoc_host *host,
                                               char *why, uint32_t why_bytes)
{
    broken = *query(host, why, why_bytes);
    switch (BROKEN) {
    case CRASH_IN_MATCH:
        for (uint32_t i = 0; i < broken.n_patterns; i++)
            patterns[i].accept = accept_crash;
        break;
    case HANG_IN_COMPILE:
        broken.compile = compile_hang;
        break;
    case FAILS_TO_BUILD:
        broken.probe = NULL;
        broken.load = load_fails;
        break;
    case WRONG_NUMBERS:
        broken.run = run_wrong;
        break;
    case RACES:
        broken.run = run_races;
        break;
    case LEAKS:
        broken.load = load_leaks;
        break;
    case FORGETS:
        broken.load = load_forgets;
        break;
    case WRITES_PAST:
        broken.run = run_past;
        break;
    case KEEPS_POINTER:
        broken.run = run_keeps;
        break;
    case THREADS_AT_LOAD:
        break;
    case DESCRIBES_NOTHING:
        broken.describe = describe_nothing;
        break;
    case SIGNAL_ON_UNLOAD:
        broken.quiesce = quiesce_signal;
        break;
    }
    return &broken;
}

BYOC_BACKEND_DEFINE(query_broken)
