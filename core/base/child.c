/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: runs functions in child processes. */
#include "child.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "futex.h"
#include "guard.h"
#include "temp.h"

/* The memory that the child writes and the parent reads. */
struct child_word {
    _Atomic uint64_t began; /* when the current step began; 0: no step */
    bool returned, exhausted;
    char who[4096];
    char text[256];
};

static struct child_word *word; /* in a child; NULL elsewhere */
static uint64_t bytes_left; /* that its steps may still allocate; 0: no limit */
static uint64_t bytes_before; /* before the current step */

void *byi_shared_new(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void byi_shared_free(void *memory, size_t bytes)
{
    if (memory)
        munmap(memory, bytes);
}

/* --- steps ---------------------------------------------------------------- */

static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    if (statm && fscanf(statm, "%llu", &pages) != 1)
        pages = 0;
    if (statm)
        fclose(statm);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void limit_space(rlim_t bytes)
{
    struct rlimit space;
    getrlimit(RLIMIT_AS, &space);
    space.rlim_cur = bytes < space.rlim_max ? bytes : space.rlim_max;
    setrlimit(RLIMIT_AS, &space);
}

void byi_step_end(void)
{
    if (!word || !word->began)
        return;
    word->began = 0;
    if (!bytes_left)
        return;
    limit_space(RLIM_INFINITY);
    const uint64_t now = address_space();
    const uint64_t added = now > bytes_before ? now - bytes_before : 0;
    bytes_left -= added < bytes_left ? added : bytes_left - 1;
}

void byi_step(const char *who, const char *format, ...)
{
    va_list args;
    if (!word)
        return;
    byi_step_end();
    snprintf(word->who, sizeof word->who, "%s", who ? who : "");
    va_start(args, format);
    vsnprintf(word->text, sizeof word->text, format, args);
    va_end(args);
    if (bytes_left) {
        bytes_before = address_space();
        limit_space(bytes_before + bytes_left);
    }
    word->began = byi_now_ns();
}

const char *byi_step_text(void)
{
    return word ? word->text : "";
}

/* --- waiting -------------------------------------------------------------- */

/* Wait until the time `end`, or until a step has taken `step` nanoseconds. */
static bool wait_until(pid_t child, bool group, uint64_t end,
                       const struct child_word *w, uint64_t step, int *status)
{
    const bool polls = end != UINT64_MAX || step != UINT64_MAX;
    for (long ns = 100000;; ns = ns < 2000000 ? 2 * ns : ns) {
        const pid_t got = waitpid(child, status, polls ? WNOHANG : 0);
        if (got == child || (got < 0 && errno != EINTR))
            return true;
        const uint64_t now = byi_now_ns(), began = w ? w->began : 0;
        if (now > end || (began && now > began && now - began > step))
            break;
        nanosleep(&(const struct timespec){.tv_nsec = ns}, NULL);
    }
    kill(group ? -child : child, SIGKILL);
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
    return false;
}

static uint64_t as_ns(double seconds)
{
    return seconds > 0 && seconds < 1e9 ? (uint64_t)(seconds * 1e9)
                                        : UINT64_MAX;
}

uint64_t byi_child_end(double seconds)
{
    const uint64_t ns = as_ns(seconds);
    return ns == UINT64_MAX ? ns : byi_now_ns() + ns;
}

bool byi_child_wait(pid_t child, bool group, uint64_t end, int *status)
{
    return wait_until(child, group, end, NULL, UINT64_MAX, status);
}

/* --- running a function --------------------------------------------------- */

static bool write_all(int fd, const char *data, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(fd, data, n);
        if (done < 0 && errno != EINTR)
            return false;
        data += done > 0 ? done : 0;
        n -= done > 0 ? (size_t)done : 0;
    }
    return true;
}

/* Let signals end the child, whatever handlers this process has. */
static void prepare(void)
{
    static const int deadly[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < BYI_COUNT(deadly); i++)
        signal(deadly[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
}

static _Noreturn void be_child(void (*run)(void *arg, struct byi_text *out),
                               void *arg, int fd)
{
    struct byi_text out = {0};
    struct byi_guard guard; /* the parent's guard would jump to its frames */
    if (byi_guard_enter(&guard)) {
        word->exhausted = true;
        _exit(1);
    }
    prepare();
    run(arg, &out);
    word->returned = write_all(fd, out.at, out.n);
    _exit(0);
}

static void describe(struct byi_child *child, const struct child_word *w,
                     const struct byi_child_limits *limits)
{
    const int status = child->status;
    char how[128];
    if (child->late)
        snprintf(how, sizeof how, "gave no answer within %g s",
                 w->began ? limits->step_seconds : limits->seconds);
    else if (w->exhausted)
        snprintf(how, sizeof how, "ran out of memory");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "died of signal %d (%s)", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "exited with code %d", WEXITSTATUS(status));
    const char *when = w->began ? " in " : " after ";
    snprintf(child->how, sizeof child->how, "%s%s%s", how, *w->text ? when : "",
             w->text);
}

static void map_bytes(struct byi_child *child, int fd)
{
    struct stat about;
    if (!child->returned || fstat(fd, &about) != 0 || about.st_size == 0)
        return;
    void *at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    child->returned = at != MAP_FAILED;
    child->exhausted = !child->returned;
    child->bytes = child->returned ? at : NULL;
    child->n = child->returned ? (size_t)about.st_size : 0;
}

void byi_child_run(void (*run)(void *arg, struct byi_text *out), void *arg,
                   const struct byi_child_limits *limits,
                   struct byi_child *child)
{
    struct child_word *const w = byi_shared_new(sizeof *w);
    const int fd = memfd_create("result", MFD_CLOEXEC);
    struct byi_temp *listed = NULL;
    pid_t pid = -1;
    *child = (struct byi_child){0};
    fflush(NULL); /* or both processes write it */
    if (w && fd >= 0)
        pid = byi_temp_fork(false, &listed);
    if (pid == 0) {
        word = w;
        bytes_left = limits->step_bytes;
        be_child(run, arg, fd);
    }
    if (pid > 0) {
        child->started = true;
        child->late = !wait_until(pid, false, byi_child_end(limits->seconds), w,
                                  as_ns(limits->step_seconds), &child->status);
        child->returned = w->returned && !child->late && child->status == 0;
        child->exhausted = w->exhausted && !w->began;
        w->who[sizeof w->who - 1] = w->text[sizeof w->text - 1] = '\0';
        memcpy(child->who, w->who, sizeof w->who);
        memcpy(child->step, w->text, sizeof w->text);
        if (!child->returned)
            describe(child, w, limits);
        map_bytes(child, fd);
    }
    byi_temp_done(&listed);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    byi_shared_free(w, sizeof *w);
    errno = why;
}

void byi_child_free(struct byi_child *child)
{
    if (child->bytes)
        munmap((void *)(uintptr_t)child->bytes, child->n);
    *child = (struct byi_child){0};
}
