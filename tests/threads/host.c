/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: a process that runs models on several threads, as a user's would; the
 * first argument says how. Does not link byoc: it opens and closes the runtime.
 * Built twice, once with its own OpenMP. Exits with 0 on success; otherwise
 * prints a message. Run by threads.sh.
 */
#include <byoc/runtime.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_IO = 16, RUNS = 20, STATES = 3, SECONDS = 60 };

#define MUST(what, ...)                                                        \
    do {                                                                       \
        if (!(what)) {                                                         \
            fprintf(stderr, __VA_ARGS__);                                      \
            fprintf(stderr, "\n");                                             \
            exit(1);                                                           \
        }                                                                      \
    } while (0)

/* --- the runtime ---------------------------------------------------------- */

static struct {
    void *library;
    __typeof__(&byoc_model_load) load;
    __typeof__(&byoc_model_free) free_model;
    __typeof__(&byoc_model_n_inputs) n_inputs;
    __typeof__(&byoc_model_n_outputs) n_outputs;
    __typeof__(&byoc_model_input) input;
    __typeof__(&byoc_model_threads) threads;
    __typeof__(&byoc_state_new) new_state;
    __typeof__(&byoc_state_free) free_state;
    __typeof__(&byoc_run) run;
} rt;

static void open_runtime(const char *path)
{
    rt.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(rt.library, "%s", dlerror());
    *(void **)&rt.load = dlsym(rt.library, "byoc_model_load");
    *(void **)&rt.free_model = dlsym(rt.library, "byoc_model_free");
    *(void **)&rt.n_inputs = dlsym(rt.library, "byoc_model_n_inputs");
    *(void **)&rt.n_outputs = dlsym(rt.library, "byoc_model_n_outputs");
    *(void **)&rt.input = dlsym(rt.library, "byoc_model_input");
    *(void **)&rt.threads = dlsym(rt.library, "byoc_model_threads");
    *(void **)&rt.new_state = dlsym(rt.library, "byoc_state_new");
    *(void **)&rt.free_state = dlsym(rt.library, "byoc_state_free");
    *(void **)&rt.run = dlsym(rt.library, "byoc_run");
}

static unsigned count_tasks(void)
{
    unsigned n = 0;
    DIR *tasks = opendir("/proc/self/task");
    MUST(tasks, "no /proc/self/task");
    for (struct dirent *e = readdir(tasks); e; e = readdir(tasks))
        n += e->d_name[0] != '.';
    closedir(tasks);
    return n;
}

static double sum_of(const DLTensor *t)
{
    double sum = 0, n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= (double)t->shape[i];
    for (int64_t i = 0; i < (int64_t)n; i++)
        sum += ((const float *)t->data)[i] * (double)(i % 7 + 1);
    return sum;
}

/* A model, and a state of it that computes the same each time. */
struct job {
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor in[MAX_IO], out[MAX_IO];
    uint32_t n_in, n_out;
    double sums[MAX_IO];
};

static void fill(DLTensor *t, const struct byoc_io *io)
{
    size_t n = 1;
    for (uint32_t d = 0; d < io->rank; d++)
        n *= (size_t)io->dims[d];
    *t = (DLTensor){.data = malloc(n * sizeof(float)),
                    .device = {kDLCPU, 0},
                    .ndim = (int)io->rank,
                    .dtype = {kDLFloat, 32, 1},
                    .shape = (int64_t *)(uintptr_t)io->dims};
    MUST(t->data, "no memory");
    for (size_t i = 0; i < n; i++)
        ((float *)t->data)[i] = (float)(i * 2654435761u % 1000) / 1000 - 0.5f;
}

static void start(struct job *j, const char *path,
                  const struct byoc_load_params *params)
{
    struct byoc_error err;
    *j = (struct job){0};
    MUST(!rt.load(path, params, &j->model, &err), "load: %s", err.text);
    MUST(!rt.new_state(j->model, &j->state, &err), "state: %s", err.text);
    j->n_in = rt.n_inputs(j->model);
    j->n_out = rt.n_outputs(j->model);
    MUST(j->n_in <= MAX_IO && j->n_out <= MAX_IO, "too many inputs, outputs");
    for (uint32_t i = 0; i < j->n_in; i++)
        fill(&j->in[i], rt.input(j->model, i));
}

static void run(struct job *j)
{
    struct byoc_error err;
    for (uint32_t i = 0; i < j->n_out; i++)
        j->out[i] = (DLTensor){0};
    MUST(!rt.run(j->state, j->in, j->n_in, j->out, j->n_out, &err), "run: %s",
         err.text);
    for (uint32_t i = 0; i < j->n_out; i++) {
        const double sum = sum_of(&j->out[i]);
        MUST(isfinite(sum), "output %u is not finite", i);
        if (j->sums[i] == 0)
            j->sums[i] = sum;
        MUST(fabs(sum - j->sums[i]) <= 1e-4 * (1 + fabs(sum)),
             "output %u sums up to %g, before to %g", i, sum, j->sums[i]);
    }
}

static void run_often(struct job *j)
{
    for (int i = 0; i < RUNS; i++)
        run(j);
}

static void finish(struct job *j)
{
    for (uint32_t i = 0; i < j->n_in; i++)
        free(j->in[i].data);
    rt.free_state(&j->state);
    rt.free_model(&j->model);
}

static void expect_threads(const struct job *j, uint32_t n)
{
    const char *why;
    const uint32_t got = rt.threads(j->model, &why);
    MUST(got == n, "%u threads (%s), expected %u", got, why, n);
}

/* --- threads that cannot be made ------------------------------------------ */

static _Atomic bool exhausted;
static _Atomic unsigned refused;

/* Stands before the C library's for every library of the process. */
__attribute__((visibility("default"))) int pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
    void *arg)
{
    static __typeof__(&pthread_create) next;
    if (exhausted) {
        refused++;
        return EAGAIN;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attr, fn, arg);
}

static void check_exhaustion(const char *path)
{
    struct job j;
    exhausted = true;
    start(&j, path, NULL);
    MUST(refused > 0, "no thread was asked for");
    expect_threads(&j, 1);
    run_often(&j);
    finish(&j);
}

/* --- fork ----------------------------------------------------------------- */

/* Runs in parent and child, which has threads of its own. */
static void check_fork(const char *path)
{
    struct job j;
    start(&j, path, NULL);
    run_often(&j);
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();
        MUST(pid >= 0, "fork: %s", strerror(errno));
        if (pid == 0) {
            alarm(SECONDS);
            exhausted = i == 2; /* a child may get no threads */
            run_often(&j);
            const unsigned tasks = count_tasks();
            MUST(i == 2 || tasks == 2, "a child runs on %u threads", tasks);
            finish(&j);
            exit(0);
        }
        run_often(&j);
        int status;
        MUST(waitpid(pid, &status, 0) == pid && status == 0,
             "child %d ended with status %#x", i, status);
    }
    run_often(&j);
    finish(&j);
}

/* --- the rest ------------------------------------------------------------- */

/* No thread stays behind when the runtime goes. */
static void check_close(const char *path)
{
    const unsigned before = count_tasks();
    struct job j;
    start(&j, path, NULL);
    expect_threads(&j, 2);
    run_often(&j);
    MUST(count_tasks() == before + 1, "%u threads, %u before; expected 1 more",
         count_tasks(), before);
    finish(&j);
    MUST(dlclose(rt.library) == 0, "%s", dlerror());
    for (int i = 0; i < 100 && count_tasks() != before; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    MUST(count_tasks() == before, "%u threads stay behind",
         count_tasks() - before);
}

static void check_affinity(const char *path)
{
    cpu_set_t mask, one;
    struct job j;
    const unsigned before = count_tasks();
    MUST(sched_getaffinity(0, sizeof mask, &mask) == 0, "no affinity");
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mask))
            CPU_SET(cpu, &one);
    MUST(sched_setaffinity(0, sizeof one, &one) == 0, "cannot set affinity");
    const struct byoc_load_params four = {.threads = 4};
    start(&j, path, &four);
    expect_threads(&j, 1);
    run_often(&j);
    MUST(count_tasks() == before, "a thread more than the mask has CPUs");
    finish(&j);
}

static void *run_state(void *arg)
{
    run_often(arg);
    return NULL;
}

/* Several models with several states each, all at once, share the workers. */
static void check_states(const char *path)
{
    struct job jobs[STATES];
    pthread_t threads[STATES];
    static const enum byoc_wait waits[] = {BYOC_WAIT_BRIEF, BYOC_WAIT_SLEEP,
                                           BYOC_WAIT_SPIN};
    const unsigned before = count_tasks();
    (void)before;
    for (int i = 0; i < STATES; i++) {
        const struct byoc_load_params params = {.wait = waits[i]};
        start(&jobs[i], path, &params);
        run(&jobs[i]);
    }
    for (int i = 0; i < STATES; i++)
        MUST(pthread_create(&threads[i], NULL, run_state, &jobs[i]) == 0,
             "no thread");
    for (int i = 0; i < STATES; i++)
        pthread_join(threads[i], NULL);
#ifndef _OPENMP /* whose library makes a team for each thread that calls it */
    MUST(count_tasks() <= before + 1, "%u workers for 2 CPUs",
         count_tasks() - before);
#endif
    for (int i = 0; i < STATES; i++) {
        MUST(jobs[i].sums[0] == jobs[0].sums[0], "models differ");
        finish(&jobs[i]);
    }
}

struct counts {
    _Atomic unsigned calls, parts;
};

/* Backwards and one after the other, as a host may. */
static void count_parts(void *ctx, uint32_t n, void (*fn)(void *, uint32_t),
                        void *arg)
{
    struct counts *c = ctx;
    c->calls++;
    c->parts += n;
    for (uint32_t i = n; i-- > 0;)
        fn(arg, i);
}

static void check_hook(const char *path)
{
    struct counts counts = {0};
    struct job j;
    const unsigned before = count_tasks();
    const struct byoc_load_params params = {.parallel_for = count_parts,
                                            .parallel_ctx = &counts};
    start(&j, path, &params);
    const unsigned loading = counts.calls;
    run_often(&j);
    MUST(counts.calls >= loading + RUNS && counts.parts > counts.calls,
         "the host's parallel_for ran %u regions of %u parts in all",
         counts.calls, counts.parts);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    MUST(count_tasks() == before, "%u threads beside the host's",
         count_tasks() - before);
    finish(&j);
}

/* Loads are refused that ask for a policy there is not. */
static void check_policy(const char *path)
{
    struct byoc_error err;
    struct byoc_model *model;
    const struct byoc_load_params odd = {.wait = (enum byoc_wait)9};
    MUST(rt.load(path, &odd, &model, &err) == BYOC_EINVAL &&
             strstr(err.text, "enum byoc_wait"),
         "wait = 9 is taken");
    setenv("BYOC_WAIT_POLICY", "forever", 1);
    MUST(rt.load(path, NULL, &model, &err) == BYOC_EINVAL &&
             strstr(err.text, "\"sleep\""),
         "BYOC_WAIT_POLICY=forever is taken");
    setenv("BYOC_WAIT_POLICY", "sleep", 1);
    struct job j;
    start(&j, path, NULL);
    run_often(&j);
    finish(&j);
}

#ifdef _OPENMP
/* A host that has an OpenMP library keeps it; oneDNN then uses that. */
static unsigned own_threads(void)
{
    unsigned n = 0;
#pragma omp parallel num_threads(2) reduction(+ : n)
    n++;
    return n;
}
#endif

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*check)(const char *path);
    } checks[] = {
        {"fork", check_fork},
        {"close", check_close},
        {"affinity", check_affinity},
        {"states", check_states},
        {"exhaustion", check_exhaustion},
        {"hook", check_hook},
        {"policy", check_policy},
    };
    MUST(argc == 4, "usage: host CHECK RUNTIME MODEL.so");
    alarm(2 * SECONDS);
    open_runtime(argv[2]);
#ifdef _OPENMP
    MUST(own_threads() == 2, "OpenMP does not work");
#endif
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strcmp(argv[1], checks[i].name) == 0) {
            checks[i].check(argv[3]);
#ifdef _OPENMP
            MUST(own_threads() == 2, "OpenMP does not work any more");
#endif
            return 0;
        }
    MUST(false, "no check %s", argv[1]);
}
