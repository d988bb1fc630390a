/* SPDX-License-Identifier: Apache-2.0 */
/* host.c: a host program that runs models on several threads; the first
 * argument selects how. It does not link byoc: it opens and closes the runtime.
 * It is built twice, once with its own OpenMP. Exits with 0 on success, with 77
 * if the machine does not allow the check; otherwise prints a message.
 * threads.sh runs it.
 */
#include <byoc/runtime.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_IO = 16, RUNS = 20, STATES = 3, SECONDS = 600 };

/* Print the message and exit with 1 unless the condition holds. */
#define MUST(condition, ...)                                                   \
    do {                                                                       \
        if (!(condition)) {                                                    \
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
    MUST(tasks, "/proc/self/task: %s", strerror(errno));
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

/* A model and a state, whose runs must all give the same sums of the outputs.
 */
struct job {
    struct byoc_model *model;
    struct byoc_state *state;
    DLTensor in[MAX_IO], out[MAX_IO];
    uint32_t n_in, n_out;
    double sums[MAX_IO];
};

/* Allocate an input, and fill it with numbers; symbolic dims become 4. */
static void fill(DLTensor *t, const struct byoc_io *io)
{
    size_t n = 1;
    int64_t *shape = calloc(io->rank + 1, sizeof *shape);
    MUST(shape, "out of memory for an input");
    for (uint32_t d = 0; d < io->rank; d++)
        n *= (size_t)(shape[d] = io->dims[d] < 0 ? 4 : io->dims[d]);
    *t = (DLTensor){.data = malloc(n * sizeof(float)),
                    .device = {kDLCPU, 0},
                    .ndim = (int)io->rank,
                    .dtype = {kDLFloat, 32, 1},
                    .shape = shape};
    MUST(t->data, "out of memory for an input");
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
    MUST(j->n_in <= MAX_IO && j->n_out <= MAX_IO,
         "found %u inputs and %u outputs, expected at most %d of each", j->n_in,
         j->n_out, MAX_IO);
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
        MUST(isfinite(sum),
             "output %u: found a sum of %g, expected a finite one", i, sum);
        if (j->sums[i] == 0)
            j->sums[i] = sum;
        MUST(fabs(sum - j->sums[i]) <= 1e-4 * (1 + fabs(sum)),
             "output %u: found the sum %g, expected %g as in the first run", i,
             sum, j->sums[i]);
    }
}

static void run_often(struct job *j)
{
    for (int i = 0; i < RUNS; i++)
        run(j);
}

static void finish(struct job *j)
{
    for (uint32_t i = 0; i < j->n_in; i++) {
        free(j->in[i].data);
        free(j->in[i].shape);
    }
    rt.free_state(&j->state);
    rt.free_model(&j->model);
}

static void expect_threads(const struct job *j, uint32_t n)
{
    const char *why;
    const uint32_t found = rt.threads(j->model, &why);
    MUST(found == n, "found %u threads (%s), expected %u", found, why, n);
}

/* --- refused threads ------------------------------------------------------ */

static _Atomic bool refuse_threads;
static _Atomic unsigned n_refused;

/* This function replaces the C library's for every library of the process. */
__attribute__((visibility("default"))) int pthread_create(
    pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
    void *arg)
{
    static __typeof__(&pthread_create) next;
    if (refuse_threads) {
        n_refused++;
        return EAGAIN;
    }
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return next(thread, attr, fn, arg);
}

static void check_exhaustion(const char *path)
{
    struct job j;
    refuse_threads = true;
    start(&j, path, NULL);
    MUST(n_refused > 0,
         "found no request for a thread, expected one that is refused");
    expect_threads(&j, 1);
    run_often(&j);
    finish(&j);
}

/* --- fork ----------------------------------------------------------------- */

/* Parent and child can both run; the child starts threads of its own. */
static void check_fork(const char *path)
{
    struct job j;
    /* under other load, the default may leave the workers asleep */
    const struct byoc_load_params params = {.wait = BYOC_WAIT_SPIN};
    start(&j, path, &params);
    run_often(&j);
    for (int i = 0; i < 3; i++) {
        const pid_t pid = fork();
        MUST(pid >= 0, "fork: %s", strerror(errno));
        if (pid == 0) {
            alarm(SECONDS);
            refuse_threads = i == 2; /* a child may get no threads */
            run_often(&j);
            const unsigned tasks = count_tasks();
            MUST(i == 2 || tasks == 2, "child: found %u threads, expected 2",
                 tasks);
            finish(&j);
            exit(0);
        }
        run_often(&j);
        int status;
        MUST(waitpid(pid, &status, 0) == pid && status == 0,
             "child %d: found status %#x, expected 0", i, status);
    }
    run_often(&j);
    finish(&j);
}

static _Atomic bool stop;

/* Load and free a model, so that locks are held, and specialisations are built,
 * at any moment. */
static void *load_often(void *path)
{
    while (!stop) {
        struct job j;
        start(&j, path, NULL);
        run(&j);
        finish(&j);
    }
    return NULL;
}

/* A child can load and run models, regardless of what its parent's other
 * threads do at the time of the fork. */
static void check_fork_while_loading(const char *path)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, load_often,
                            (void *)(uintptr_t)path) == 0,
             "pthread_create failed");
    for (int i = 0; i < 100; i++) {
        int status;
        nanosleep(&(struct timespec){0, 1000000 + i * 10007}, NULL);
        const pid_t pid = fork();
        MUST(pid >= 0, "fork: %s", strerror(errno));
        if (pid == 0) {
            struct job j;
            alarm(SECONDS);
            start(&j, path, NULL);
            run(&j);
            finish(&j);
            _exit(0);
        }
        MUST(waitpid(pid, &status, 0) == pid && status == 0,
             "child %d: found status %#x, expected 0", i, status);
    }
    stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static _Atomic bool walks_slowly, walking;

/* The arguments of a call of dl_iterate_phdr(). */
struct walk {
    int (*visit)(struct dl_phdr_info *, size_t, void *);
    void *ctx;
};

static int visit_slowly(struct dl_phdr_info *info, size_t size, void *ctx)
{
    const struct walk *walk = ctx;
    if (!atomic_exchange(&walking, true))
        nanosleep(&(struct timespec){0, 200000000}, NULL);
    return walk->visit(info, size, walk->ctx);
}

/* This function replaces the C library's for every library of the process. */
__attribute__((visibility("default"))) int dl_iterate_phdr(
    int (*visit)(struct dl_phdr_info *, size_t, void *), void *ctx)
{
    __typeof__(&dl_iterate_phdr) next;
    struct walk walk = {visit, ctx};
    *(void **)&next = dlsym(RTLD_NEXT, "dl_iterate_phdr");
    return walks_slowly ? next(visit_slowly, &walk) : next(visit, ctx);
}

static void *load_once(void *path)
{
    struct job j;
    start(&j, path, NULL);
    finish(&j);
    return NULL;
}

/* A fork waits for a thread that iterates over the libraries, since the
 * loader's lock would stay locked in the child. */
static void check_library_walk(const char *path)
{
    pthread_t thread;
    int status;
    walks_slowly = true;
    MUST(pthread_create(&thread, NULL, load_once, (void *)(uintptr_t)path) == 0,
         "pthread_create failed");
    for (int i = 0; i < 10000 && !walking; i++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    MUST(walking, "found no walk over the libraries within 10 s, expected one "
                  "by the load");
    const pid_t pid = fork();
    MUST(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        alarm(SECONDS / 10);
        load_once((void *)(uintptr_t)path);
        _exit(0);
    }
    MUST(waitpid(pid, &status, 0) == pid && status == 0,
         "child: found status %#x, expected 0", status);
    pthread_join(thread, NULL);
}

/* --- the kernel's own limits ---------------------------------------------- */

#define SKIP(...)                                                              \
    do {                                                                       \
        fprintf(stderr, __VA_ARGS__);                                          \
        fprintf(stderr, "\n");                                                 \
        exit(77);                                                              \
    } while (0)

static void *do_nothing(void *unused)
{
    return unused;
}

/* Load and run a model where the kernel refuses threads. */
static void expect_one_thread(const char *path)
{
    struct job j;
    pthread_t thread;
    if (pthread_create(&thread, NULL, do_nothing, NULL) == 0)
        SKIP("the kernel grants threads beyond the limit");
    start(&j, path, NULL);
    expect_threads(&j, 1);
    run_often(&j);
    finish(&j);
}

/* Root has no such limit, so switch to a user without processes. */
static void check_nproc(const char *path)
{
    const uid_t user = getuid() ? getuid() : 61234;
    const struct rlimit one = {1, 1};
    if (getuid() == 0 && (setgid(user) || setuid(user)))
        SKIP("cannot become a user other than root: %s", strerror(errno));
    if (access(path, R_OK) || access("/proc/self/exe", R_OK))
        SKIP("another user may not read the build");
    MUST(setrlimit(RLIMIT_NPROC, &one) == 0, "setrlimit: %s", strerror(errno));
    expect_one_thread(path);
}

static rlim_t address_space(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    MUST(f && fscanf(f, "%lu", &pages) == 1,
         "/proc/self/statm: found no number of pages, expected one");
    fclose(f);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static void limit_address_space(rlim_t bytes)
{
    const struct rlimit space = {bytes, RLIM_INFINITY};
    MUST(setrlimit(RLIMIT_AS, &space) == 0, "setrlimit: %s", strerror(errno));
}

/* Allocate all memory that this process can get without more address space, so
 * that later allocations need new address space. The blocks are never freed. */
static void use_up_memory(void)
{
    enum { SMALLEST = 1 << 14 };
    limit_address_space(address_space());
    for (size_t size = 1 << 24; size >= SMALLEST;) {
        /* without `volatile`, compilers may omit the call */
        void *volatile block = malloc(size);
        if (!block)
            size /= 2;
    }
}

/* Whether another model loads and runs in so many more bytes of address space.
 * If not, the status must be the one for exhausted memory. */
static bool runs_in(struct job *inputs, const char *path, rlim_t bytes)
{
    struct byoc_error err;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    use_up_memory();
    limit_address_space(address_space() + bytes);
    enum byoc_status status = rt.load(path, NULL, &model, &err);
    if (status == BYOC_OK)
        status = rt.new_state(model, &state, &err);
    for (int i = 0; status == BYOC_OK && i < 3; i++) {
        DLTensor out[MAX_IO] = {0};
        status =
            rt.run(state, inputs->in, inputs->n_in, out, inputs->n_out, &err);
    }
    MUST(status == BYOC_OK || status == BYOC_ENOMEM,
         "found status %d: %s; expected %d", (int)status, err.text,
         (int)BYOC_ENOMEM);
    rt.free_state(&state);
    rt.free_model(&model);
    return status == BYOC_OK;
}

/* Load with more and more address space, from too little for the library to
 * enough for the runs. */
static void check_address_space(const char *path)
{
    struct job j;
    unsigned n_ran = 0, n_too_little = 0;
    start(&j, path, NULL);
    for (rlim_t extra = 1 << 18; extra <= (rlim_t)1 << 30; extra += extra / 4) {
        const pid_t pid = fork();
        int status;
        MUST(pid >= 0, "fork: %s", strerror(errno));
        if (pid == 0)
            _exit(runs_in(&j, path, extra) ? 0 : 3);
        MUST(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
        MUST(WIFEXITED(status) &&
                 (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3),
             "with %llu bytes: found status %#x, expected exit code 0 or 3",
             (unsigned long long)extra, status);
        *(WEXITSTATUS(status) ? &n_too_little : &n_ran) += 1;
    }
    MUST(n_ran > 0 && n_too_little > 0,
         "found %u sizes that ran and %u that were refused, expected some of "
         "each",
         n_ran, n_too_little);
    finish(&j);
}

/* Put this process into a new cgroup with a limit: below the first of the two
 * folders (cgroup version 1, version 2) that allows it. Returns false if
 * neither does. */
static bool enter_cgroup(const char *const folders[2],
                         const char *const files[2],
                         const char *const limits[2], char folder[128])
{
    for (int v = 0; v < 2; v++) {
        char path[256];
        snprintf(folder, 128, "%s/byoc-test-%d", folders[v], (int)getpid());
        if (mkdir(folder, 0755) != 0)
            continue;
        bool entered = true;
        for (int k = 0; k < 2 && entered; k++) {
            snprintf(path, sizeof path, "%s/%s", folder,
                     k == 0 ? files[v] : "cgroup.procs");
            FILE *f = fopen(path, "w");
            entered = f && fputs(k == 0 ? limits[v] : "0", f) >= 0;
            entered = f && fclose(f) == 0 && entered;
        }
        if (entered)
            return true;
        rmdir(folder);
    }
    return false;
}

/* Run `check` in a child, in a cgroup of its own. */
static void in_cgroup(const char *const folders[2], const char *const files[2],
                      const char *const limits[2],
                      void (*check)(const char *path), const char *path)
{
    int status, pipe_of[2];
    char folder[128] = "";
    MUST(pipe(pipe_of) == 0, "pipe: %s", strerror(errno));
    const pid_t pid = fork();
    MUST(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        if (!enter_cgroup(folders, files, limits, folder))
            SKIP("cannot make a cgroup with %s", files[0]);
        MUST(write(pipe_of[1], folder, sizeof folder) > 0, "write: %s",
             strerror(errno));
        check(path);
        exit(0);
    }
    close(pipe_of[1]);
    const bool created = read(pipe_of[0], folder, sizeof folder) > 0;
    MUST(waitpid(pid, &status, 0) == pid, "waitpid: %s", strerror(errno));
    MUST(!created || rmdir(folder) == 0, "rmdir %s: %s", folder,
         strerror(errno));
    if (status != 0)
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

static void run_in_quota(const char *path)
{
    const struct byoc_load_params four = {.threads = 4};
    struct job j;
    start(&j, path, &four);
    expect_threads(&j, 1);
    run_often(&j);
    finish(&j);
}

/* A cgroup whose quota is the time of one CPU, while two CPUs are allowed. */
static void check_quota(const char *path)
{
    static const char *const folders[] = {"/sys/fs/cgroup/cpu",
                                          "/sys/fs/cgroup"},
                             *const files[] = {"cpu.cfs_quota_us", "cpu.max"},
                             *const limits[] = {"100000", "100000 100000"};
    in_cgroup(folders, files, limits, run_in_quota, path);
}

static void check_pids(const char *path)
{
    static const char *const
        folders[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"},
        *const files[] = {"pids.max", "pids.max"}, *const limits[] = {"1", "1"};
    in_cgroup(folders, files, limits, expect_one_thread, path);
}

/* --- closing, affinity, states, hooks, waiting ---------------------------- */

/* No thread remains after the runtime is closed. */
static void check_close(const char *path)
{
    const unsigned n_before = count_tasks();
    struct job j;
    start(&j, path, NULL);
    expect_threads(&j, 2);
    run_often(&j);
    MUST(count_tasks() == n_before + 1, "found %u threads, expected %u",
         count_tasks(), n_before + 1);
    finish(&j);
    MUST(dlclose(rt.library) == 0, "%s", dlerror());
    for (int i = 0; i < 100 && count_tasks() != n_before; i++)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    MUST(count_tasks() == n_before,
         "found %u threads after dlclose(), expected %u", count_tasks(),
         n_before);
}

static void check_affinity(const char *path)
{
    cpu_set_t mask, one;
    struct job j;
    const unsigned n_before = count_tasks();
    MUST(sched_getaffinity(0, sizeof mask, &mask) == 0, "sched_getaffinity: %s",
         strerror(errno));
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mask))
            CPU_SET(cpu, &one);
    MUST(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity: %s",
         strerror(errno));
    const struct byoc_load_params four = {.threads = 4};
    start(&j, path, &four);
    expect_threads(&j, 1);
    run_often(&j);
    MUST(count_tasks() == n_before,
         "found %u threads, expected %u, since the mask has one CPU",
         count_tasks(), n_before);
    finish(&j);
}

static void *run_state(void *arg)
{
    run_often(arg);
    return NULL;
}

/* Several models, each with one state, run at the same time and share the
 * workers. */
static void check_states(const char *path)
{
    struct job jobs[STATES];
    pthread_t threads[STATES];
    static const enum byoc_wait waits[] = {BYOC_WAIT_BRIEF, BYOC_WAIT_SLEEP,
                                           BYOC_WAIT_SPIN};
    const unsigned n_before = count_tasks();
    (void)n_before;
    for (int i = 0; i < STATES; i++) {
        const struct byoc_load_params params = {.wait = waits[i]};
        start(&jobs[i], path, &params);
        run(&jobs[i]);
    }
    for (int i = 0; i < STATES; i++)
        MUST(pthread_create(&threads[i], NULL, run_state, &jobs[i]) == 0,
             "pthread_create failed");
    for (int i = 0; i < STATES; i++)
        pthread_join(threads[i], NULL);
#ifndef _OPENMP /* OpenMP's library makes a team of threads for each caller */
    MUST(count_tasks() <= n_before + 1,
         "found %u workers for 2 CPUs, expected at most 1",
         count_tasks() - n_before);
#endif
    for (int i = 0; i < STATES; i++) {
        MUST(jobs[i].sums[0] == jobs[0].sums[0],
             "model %d: found the sum %g, expected %g as of model 0", i,
             jobs[i].sums[0], jobs[0].sums[0]);
        finish(&jobs[i]);
    }
}

/* Numbers of calls of a host's parallel_for, and of parts in all of them. */
struct counts {
    _Atomic unsigned calls, parts;
};

/* A host's parallel_for: runs the parts one after the other, from the last to
 * the first. */
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
    const unsigned n_before = count_tasks();
    const struct byoc_load_params params = {.parallel_for = count_parts,
                                            .parallel_ctx = &counts};
    start(&j, path, &params);
    const unsigned load_calls = counts.calls;
    run_often(&j);
    MUST(counts.calls >= load_calls + RUNS && counts.parts > counts.calls,
         "the host's parallel_for: found %u calls with %u parts in all, "
         "expected %u calls or more, of several parts",
         counts.calls, counts.parts, load_calls + RUNS);
    nanosleep(&(struct timespec){0, 20000000}, NULL);
    MUST(count_tasks() == n_before,
         "found %u threads, expected the host's %u alone", count_tasks(),
         n_before);
    finish(&j);
}

/* A load with an unknown wait policy is refused. */
static void check_policy(const char *path)
{
    struct byoc_error err = {0};
    struct byoc_model *model;
    const struct byoc_load_params params = {.wait = (enum byoc_wait)9};
    MUST(rt.load(path, &params, &model, &err) == BYOC_EINVAL &&
             strstr(err.text, "enum byoc_wait"),
         "wait = 9: found \"%s\", expected a message with enum byoc_wait",
         err.text);
    setenv("BYOC_WAIT_POLICY", "forever", 1);
    MUST(rt.load(path, NULL, &model, &err) == BYOC_EINVAL &&
             strstr(err.text, "\"sleep\""),
         "BYOC_WAIT_POLICY=forever: found \"%s\", expected the valid values",
         err.text);
    setenv("BYOC_WAIT_POLICY", "sleep", 1);
    struct job j;
    start(&j, path, NULL);
    run_often(&j);
    finish(&j);
}

/* Returns the CPU time of byoc's workers, in nanoseconds. */
static unsigned long long worker_time(void)
{
    unsigned long long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    MUST(tasks, "/proc/self/task: %s", strerror(errno));
    for (struct dirent *e = readdir(tasks); e; e = readdir(tasks)) {
        char path[320], name[32] = "";
        unsigned long long ns = 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        FILE *file = fopen(path, "r");
        if (!file)
            continue;
        const bool known = fscanf(file, "%31s", name) == 1;
        fclose(file);
        if (!known || strcmp(name, "byoc-worker") != 0)
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", e->d_name);
        file = fopen(path, "r");
        if (!file)
            continue;
        sum += fscanf(file, "%llu", &ns) == 1 ? ns : 0;
        fclose(file);
    }
    closedir(tasks);
    return sum;
}

/* If oneDNN is bound to the host's OpenMP library, workers would compete with
 * that library's threads, so they must sleep. */
static void check_rivals(const char *path)
{
    struct job j;
    start(&j, path, NULL);
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    const unsigned long long before = worker_time();
    run_often(&j);
    const unsigned long long after = worker_time();
    MUST(after == before,
         "byoc's workers: found %llu ns of CPU time beside OpenMP's threads, "
         "expected 0",
         after - before);
    finish(&j);
}

#ifdef _OPENMP
/* Returns the number of threads of a parallel region of the host's own OpenMP
 * library, which oneDNN uses too. */
static unsigned omp_team_size(void)
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
        {"busy", check_fork_while_loading},
        {"walk", check_library_walk},
        {"close", check_close},
        {"affinity", check_affinity},
        {"states", check_states},
        {"exhaustion", check_exhaustion},
        {"nproc", check_nproc},
        {"space", check_address_space},
        {"quota", check_quota},
        {"pids", check_pids},
        {"hook", check_hook},
        {"policy", check_policy},
        {"rivals", check_rivals},
    };
    MUST(argc == 4, "usage: host CHECK RUNTIME MODEL.so");
    alarm(2 * SECONDS);
    open_runtime(argv[2]);
#ifdef _OPENMP
    MUST(omp_team_size() == 2, "OpenMP: found a team of 1 thread, expected 2");
#endif
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (strcmp(argv[1], checks[i].name) == 0) {
            checks[i].check(argv[3]);
#ifdef _OPENMP
            MUST(omp_team_size() == 2, "OpenMP, after the check: found a team "
                                       "of 1 thread, expected 2");
#endif
            return 0;
        }
    MUST(false, "found check '%s', expected one of the names in main()",
         argv[1]);
}
