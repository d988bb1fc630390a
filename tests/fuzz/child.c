/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: runs inputs in child processes, with limits on time and memory, and
 * reports how they ended.
 */
#include "job.h"

#include <ctype.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MAX_SECONDS = 10,       /* of CPU time, for one input */
    MAX_WALL_SECONDS = 60,  /* of wall time, for one input */
    KEPT_MEMORY = 16 << 20, /* bytes */
    EXIT_LEAK = 92
};
#define MAX_MEMORY ((size_t)3 << 29) /* 1.5 GB allocated at a time */
#define MAX_SPACE ((rlim_t)8 << 30)  /* without a sanitizer        */

/* Functions of the sanitizers; NULL in other builds. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
int __sanitizer_install_malloc_and_free_hooks(
    void (*malloc_hook)(const volatile void *, size_t),
    void (*free_hook)(const volatile void *)) __attribute__((weak));
size_t __sanitizer_get_allocated_size(const volatile void *)
    __attribute__((weak));
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__ubsan_default_options(
    void);

const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1024:allocator_may_return_null=1:"
           "detect_leaks=1:intercept_tls_get_addr=0:detect_stack_use_after_"
           "return=0:quarantine_size_mb=32:handle_abort=1:"
           "detect_odr_violation=0"; /* the plug-in is linked as well */
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

int64_t fuzz_milliseconds(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- the child ------------------------------------------------------------ */

static size_t allocated;

static void write_error(const char *text)
{
    if (write(2, text, strlen(text)) < 0)
        abort();
}

static void on_malloc(const volatile void *at, size_t n)
{
    (void)at;
    if (__atomic_add_fetch(&allocated, n, __ATOMIC_RELAXED) <= MAX_MEMORY)
        return;
    __atomic_store_n(&allocated, 0, __ATOMIC_RELAXED);
    write_error("ERROR: more than 1.5 GB are allocated\n");
    abort();
}

static void on_free(const volatile void *at)
{
    if (at)
        __atomic_sub_fetch(&allocated, __sanitizer_get_allocated_size(at),
                           __ATOMIC_RELAXED);
}

/* The handler of crashes in builds without a sanitizer: print a backtrace. */
static void on_crash(int number)
{
    void *frames[32];
    write_error("ERROR: signal\n");
    backtrace_symbols_fd(frames, backtrace(frames, 32), 2);
    signal(number, SIG_DFL);
    raise(number);
}

static void set_limits(void)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit no_core = {0, 0}, space = {MAX_SPACE, MAX_SPACE};
    setrlimit(RLIMIT_CORE, &no_core);
    if (__sanitizer_install_malloc_and_free_hooks) {
        allocated = 0;
        __sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
        return;
    }
    setrlimit(RLIMIT_AS, &space);
    /* keep freed pages: the next input needs as many */
    mallopt(M_TRIM_THRESHOLD, KEPT_MEMORY);
    mallopt(M_MMAP_THRESHOLD, KEPT_MEMORY);
    for (uint32_t i = 0; i < BYI_COUNT(crashes); i++)
        signal(crashes[i], on_crash);
}

static _Noreturn void child(struct fuzz_job *job, const char *log,
                            void (*work)(struct fuzz_job *, void *), void *ctx)
{
    struct fuzz_shared *s = job->shared;
    const int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd >= 0)
        dup2(fd, 2);
    set_limits();
    work(job, ctx);
    s->wall = fuzz_milliseconds(CLOCK_MONOTONIC);
    s->cpu = fuzz_milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    s->done = true;
    if (job->leaks && __lsan_do_recoverable_leak_check &&
        __lsan_do_recoverable_leak_check())
        _exit(EXIT_LEAK);
    _exit(0);
}

/* --- the parent ----------------------------------------------------------- */

/* Whether the process sleeps: it neither waits for a CPU nor was stopped. */
static bool sleeps(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    const bool known = f && fscanf(f, "%*d %*s %c", &state) == 1;
    if (f)
        fclose(f);
    return known && (state == 'S' || state == 'D');
}

static bool too_long(pid_t pid, const struct fuzz_shared *s)
{
    clockid_t clock;
    const int64_t now = fuzz_milliseconds(CLOCK_MONOTONIC);
    if (now - s->wall > MAX_WALL_SECONDS * 1000 && sleeps(pid))
        return true;
    return clock_getcpuclockid(pid, &clock) == 0 &&
           fuzz_milliseconds(clock) - s->cpu > MAX_SECONDS * 1000;
}

/* Wait for the child. Returns true if it took too long and was ended: by
 * SIGABRT first, so that it prints a backtrace. */
static bool wait_for(pid_t pid, const struct fuzz_shared *s, int *status)
{
    int64_t aborted_at = 0;
    while (waitpid(pid, status, WNOHANG) == 0) {
        const struct timespec pause = {.tv_nsec = 2000000};
        const int64_t now = fuzz_milliseconds(CLOCK_MONOTONIC);
        nanosleep(&pause, NULL);
        if (!aborted_at && too_long(pid, s)) {
            aborted_at = now;
            kill(pid, SIGABRT);
        } else if (aborted_at && now - aborted_at > 5000) {
            kill(pid, SIGKILL);
        }
    }
    return aborted_at != 0;
}

/* --- the key of a defect -------------------------------------------------- */

/* Append a line to the key without digits and quoted parts, which differ
 * between inputs. '%' also begins or ends a quoted part. */
static void add_normalised(char *key, size_t key_bytes, const char *text)
{
    size_t n = strlen(key);
    bool quoted = false;
    for (; *text && *text != '\n' && n + 1 < key_bytes; text++) {
        quoted ^= *text == '\'' || *text == '"' || *text == '%';
        if (!quoted && !isdigit((unsigned char)*text))
            key[n++] = *text;
    }
    key[n] = '\0';
}

/* Add the function of a sanitizer's frame, "    #1 0x.. in f path:65", if it is
 * in this tree outside of the tests; ccache may have made the path relative. */
static bool add_frame(char *key, size_t key_bytes, const char *line)
{
    const char *name = strstr(line, " in ");
    const char *path = name ? strchr(name + 4, ' ') : NULL;
    if (!path || !strstr(path, ".c:") || strstr(path, "/tests/") ||
        strstr(path, "sysdeps") ||
        (!strstr(path, SOURCE_DIR) && strncmp(path, " ../", 4) != 0))
        return false;
    name += 4;
    const size_t n = strlen(key), k = strcspn(name, " \n");
    snprintf(key + n, key_bytes - n, " %.*s", (int)k, name);
    return true;
}

/* Kinds of reports; the rest of the line is part of the key. */
static const char *const marks[] = {
    "ERROR: AddressSanitizer: ", "runtime error: ", "Assertion ",
    "ERROR: more than",          "ERROR: signal",   "ERROR: LeakSanitizer"};

/* Append the kind of the report in the file `log` to the key, and the first
 * three frames of its backtrace that are byoc's. */
static void add_report(char *key, size_t key_bytes, const char *log)
{
    char line[1024];
    bool marked = false;
    uint32_t frames = 0;
    FILE *f = fopen(log, "r");
    while (f && fgets(line, sizeof line, f) && frames < 3) {
        for (uint32_t i = 0; i < BYI_COUNT(marks) && !marked; i++) {
            const char *at = strstr(line, marks[i]);
            if (!at)
                continue;
            char *address = strstr(line, " on ");
            if (address)
                *address = '\0';
            add_normalised(key, key_bytes / 2, at);
            marked = true;
        }
        if (marked)
            frames += add_frame(key, key_bytes, line);
        /* glibc's lines of a backtrace: program(+0x12345) */
        const char *offset = strstr(line, "(+0x");
        if (marked && offset) {
            frames++;
            const size_t n = strlen(key);
            snprintf(key + n, key_bytes - n, " %.*s", (int)strcspn(offset, ")"),
                     offset);
        }
    }
    if (f)
        fclose(f);
}

/* The verdict on a child that ended with this status of waitpid(), by
 * wait_for()'s signal if timed_out. */
static struct fuzz_verdict judge(struct fuzz_job *job, int status,
                                 bool timed_out, const char *log)
{
    const struct fuzz_shared *s = job->shared;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    struct fuzz_verdict v = {.bad = true};
    if (code == 0)
        return (struct fuzz_verdict){0};
    if (code == FUZZ_EXIT_WRONG) {
        add_normalised(v.key, sizeof v.key / 2, s->why);
        snprintf(v.what, sizeof v.what, "wrong: %s", s->why);
        return v;
    }
    if (s->done && code >= 0 && code != EXIT_LEAK) {
        /* GCC 12's leak checker itself crashes now and then */
        return (struct fuzz_verdict){0};
    }
    v.leaked = code == EXIT_LEAK;
    if (s->mutating && !s->done)
        snprintf(v.key, sizeof v.key, "in the mutator: ");
    else if (timed_out)
        snprintf(v.key, sizeof v.key, "too slow: ");
    add_report(v.key, sizeof v.key, log);
    if (WIFSIGNALED(status))
        snprintf(v.what, sizeof v.what, "%ssignal %d: %s",
                 timed_out ? "takes too long, ended by " : "", WTERMSIG(status),
                 v.key);
    else
        snprintf(v.what, sizeof v.what, "exit code %d: %s", code, v.key);
    return v;
}

struct fuzz_verdict fuzz_in_child(struct fuzz_job *job,
                                  void (*work)(struct fuzz_job *, void *),
                                  void *ctx)
{
    char log[512];
    int status = 0;
    struct fuzz_shared *s = job->shared;
    snprintf(log, sizeof log, "%s/log", job->temp);
    s->why[0] = '\0';
    s->cpu = 0;
    s->done = false;
    s->mutating = false;
    s->wall = fuzz_milliseconds(CLOCK_MONOTONIC);
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0)
        child(job, log, work, ctx);
    if (pid < 0) {
        struct fuzz_verdict v = {.bad = true, .key = "no process"};
        snprintf(v.what, sizeof v.what, "cannot fork: %s", strerror(errno));
        return v;
    }
    const bool timed_out = wait_for(pid, s, &status);
    return judge(job, status, timed_out, log);
}

/* An input to run alone. */
struct single_input {
    const char *bytes;
    uint32_t n, origin;
};

static void run_alone(struct fuzz_job *job, void *ctx)
{
    const struct single_input *a = ctx;
    fuzz_run_input(job, a->bytes, a->n, a->origin);
}

struct fuzz_verdict fuzz_probe(struct fuzz_job *job, const char *bytes,
                               uint32_t n, uint32_t origin)
{
    struct single_input input = {bytes, n, origin};
    return fuzz_in_child(job, run_alone, &input);
}

void fuzz_print_log(const struct fuzz_job *job)
{
    char line[512], log[512];
    int frames = 0;
    snprintf(log, sizeof log, "%s/log", job->temp);
    FILE *f = fopen(log, "r");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        const bool frame = strstr(line, "    #") || strstr(line, "(+0x");
        if (strstr(line, "ERROR:") || strstr(line, "runtime error") ||
            strstr(line, "Assertion") || strstr(line, "SUMMARY") ||
            (frame && frames < 14)) {
            frames += frame;
            printf("    %s", line);
        }
    }
    fclose(f);
}
