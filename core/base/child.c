/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: runs functions in child processes with limits (child.h). */
#include "child.h"

#include <dirent.h>
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

/* Shared memory that the child writes and the parent reads. */
struct child_shared {
    _Atomic uint64_t began; /* when the current step began; 0: no step */
    bool returned, out_of_memory;
    char plugin[4096];
    char text[256];
};

/* in a child, and after byi_child_record_steps; NULL elsewhere */
static struct child_shared *shared;
/* bytes of address space that the child's steps may still add; 0: no limit */
static uint64_t bytes_left;
static uint64_t bytes_before; /* address space before the current step */

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

void byi_child_step_end(void)
{
    if (!shared || !shared->began)
        return;
    shared->began = 0;
    if (!bytes_left)
        return;
    limit_space(RLIM_INFINITY);
    const uint64_t now = address_space();
    const uint64_t added = now > bytes_before ? now - bytes_before : 0;
    /* at least 1 is left, since 0 would mean no limit */
    bytes_left -= added < bytes_left ? added : bytes_left - 1;
}

void byi_child_step(const char *plugin, const char *format, ...)
{
    va_list args;
    if (!shared)
        return;
    byi_child_step_end();
    snprintf(shared->plugin, sizeof shared->plugin, "%s", plugin ? plugin : "");
    va_start(args, format);
    vsnprintf(shared->text, sizeof shared->text, format, args);
    va_end(args);
    if (bytes_left) {
        bytes_before = address_space();
        limit_space(bytes_before + bytes_left);
    }
    shared->began = byi_now_ns();
}

const char *byi_child_step_text(void)
{
    return shared ? shared->text : "";
}

void byi_child_record_steps(void)
{
    static struct child_shared own;
    if (!shared)
        shared = &own;
}

uint64_t byi_child_step_now(const char **plugin, const char **text)
{
    const uint64_t began = shared && *shared->plugin ? shared->began : 0;
    *plugin = began ? shared->plugin : "";
    *text = began ? shared->text : "";
    return began;
}

/* --- waiting -------------------------------------------------------------- */

/* The time that counts against a child's limits: the time in which its threads
 * run, and the time in which all of them sleep. Time in which a thread is ready
 * and waits for a processor does not count, so that limits also work on a busy
 * machine. If Linux does not report CPU time, all time counts. */
struct child_clock {
    uint64_t sampled;  /* the time of the last sample */
    uint64_t ran;      /* CPU time of the child's threads at that time */
    uint64_t passed;   /* the time that counts */
    bool has_cpu_time; /* Linux reports CPU time */
};
enum { SAMPLE_NS = 20000000, MAX_TREE = 64 /* processes */ };

/* CPU time of all threads of a child and of its descendants. */
struct tree_time {
    uint64_t ran;
    bool ready; /* a thread runs or waits for a processor */
};

/* Add the CPU time of a thread to t, and note whether the thread is ready. The
 * ids of its process and of the thread are decimal text. */
static void add_thread(const char *pid, const char *tid, struct tree_time *t)
{
    char path[96], state = 0;
    unsigned long long ran;
    snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/schedstat", pid, tid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%llu", &ran) == 1)
        t->ran += ran;
    if (f)
        fclose(f);
    snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/stat", pid, tid);
    f = fopen(path, "re");
    /* the name between parentheses may hold spaces and parentheses */
    for (int c = 0, before = 0; f && c != EOF && !state; before = c)
        if ((c = getc(f)) == ' ' && before == ')')
            state = (char)getc(f);
    t->ready |= state == 'R';
    if (f)
        fclose(f);
}

/* Append the children that a thread has forked to the list of processes. */
static uint32_t add_children(const char *pid, const char *tid, char (*list)[24],
                             uint32_t n)
{
    char path[96];
    snprintf(path, sizeof path, "/proc/%.16s/task/%.16s/children", pid, tid);
    FILE *f = fopen(path, "re");
    while (f && n < MAX_TREE && fscanf(f, "%16s", list[n]) == 1)
        n++;
    if (f)
        fclose(f);
    return n;
}

static struct tree_time time_of_tree(pid_t root)
{
    char list[MAX_TREE][24], path[48];
    struct tree_time t = {0};
    uint32_t n = 1;
    snprintf(list[0], sizeof list[0], "%d", (int)root);
    for (uint32_t i = 0; i < n; i++) {
        const struct dirent *entry;
        snprintf(path, sizeof path, "/proc/%.16s/task", list[i]);
        DIR *tasks = opendir(path);
        while (tasks && (entry = readdir(tasks)))
            if (entry->d_name[0] != '.') {
                add_thread(list[i], entry->d_name, &t);
                n = add_children(list[i], entry->d_name, list, n);
            }
        if (tasks)
            closedir(tasks);
    }
    return t;
}

static struct child_clock begin_clock(const struct byi_child_time *t)
{
    struct tree_time self = {0};
    char pid[24];
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    add_thread(pid, pid, &self);
    return (struct child_clock){.sampled = t->began,
                                .has_cpu_time = self.ran > 0};
}

/* Add the time since the last sample that counts. */
static void sample_clock(struct child_clock *c, pid_t child, uint64_t now)
{
    const uint64_t wall = now - c->sampled;
    if (wall < SAMPLE_NS)
        return;
    const struct tree_time t = time_of_tree(child);
    /* the sum shrinks if a process ended, and grows by more than `wall` if
     * several threads run at once */
    const uint64_t ran = t.ran > c->ran ? t.ran - c->ran : 0;
    c->passed += c->has_cpu_time && t.ready && ran < wall ? ran : wall;
    c->ran = t.ran;
    c->sampled = now;
}

/* Wait until the child ends. Kills it and returns false if it exceeds the limit
 * t, or `step` nanoseconds in one step. `progress` says when the current step
 * began; NULL: the child has no steps. */
static bool wait_until(pid_t child, bool group, const struct byi_child_time *t,
                       const struct child_shared *progress, uint64_t step,
                       int *status)
{
    const bool polls = t->limit != UINT64_MAX || step != UINT64_MAX;
    struct child_clock clock = begin_clock(t);
    /* when the current step began, and clock.passed at that time */
    uint64_t began = 0, before = 0;
    for (long ns = 100000;; ns = ns < 2000000 ? 2 * ns : ns) {
        const uint64_t begins = progress ? progress->began : 0;
        if (polls)
            sample_clock(&clock, child, byi_now_ns());
        if (begins != began) {
            began = begins;
            before = clock.passed;
        }
        const bool late =
            clock.passed > t->limit || (began && clock.passed - before > step);
        /* waitpid() follows the time check, since a child that ended while this
         * process waited for a processor was not late */
        const pid_t ended = waitpid(child, status, polls ? WNOHANG : 0);
        if (ended == child)
            return true;
        if (ended < 0 && errno != EINTR) { /* the process ignores SIGCHLD */
            *status = 0;
            return true;
        }
        if (late)
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

struct byi_child_time byi_child_time(double seconds)
{
    return (struct byi_child_time){byi_now_ns(), as_ns(seconds)};
}

bool byi_child_wait(pid_t child, bool group, const struct byi_child_time *time,
                    int *status)
{
    return wait_until(child, group, time, NULL, UINT64_MAX, status);
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

/* Let fatal signals end the child, even if its parent handles or ignores them,
 * without a core file; kill the child if its parent ends. */
static void set_signals(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS,  SIGFPE,
                                SIGILL,  SIGABRT, SIGXFSZ};
    for (size_t i = 0; i < BYI_COUNT(fatal); i++)
        signal(fatal[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
}

static _Noreturn void run_in_child(void (*run)(void *arg, struct byi_text *out),
                                   void *arg, int fd)
{
    struct byi_text out = {0};
    struct byi_guard guard; /* the parent's guard would jump to its frames */
    if (byi_guard_enter(&guard)) {
        shared->out_of_memory = true;
        _exit(1);
    }
    set_signals();
    run(arg, &out);
    shared->returned = write_all(fd, out.at, out.n);
    _exit(0);
}

/* Set child->how to the text that says how the child ended, and in which step.
 */
static void describe_end(struct byi_child *child,
                         const struct child_shared *progress,
                         const struct byi_child_limits *limits)
{
    const int status = child->status;
    char how[128];
    if (child->timed_out)
        snprintf(how, sizeof how, "timed out after %s s",
                 BYI_FLOAT_TEXT(progress->began && limits->step_seconds > 0
                                    ? limits->step_seconds
                                    : limits->seconds));
    else if (progress->out_of_memory)
        snprintf(how, sizeof how, "ran out of memory");
    else if (WIFSIGNALED(status))
        snprintf(how, sizeof how, "crashed with signal %d (%s)",
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        snprintf(how, sizeof how, "exited with code %d", WEXITSTATUS(status));
    const char *when = progress->began ? " in " : " after ";
    snprintf(child->how, sizeof child->how, "%s%s%s", how,
             *progress->text ? when : "", progress->text);
}

static void map_bytes(struct byi_child *child, int fd)
{
    struct stat about;
    if (!child->returned || fstat(fd, &about) != 0 || about.st_size == 0)
        return;
    void *at = mmap(NULL, (size_t)about.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    child->returned = at != MAP_FAILED;
    child->out_of_memory = !child->returned;
    child->bytes = child->returned ? at : NULL;
    child->n = child->returned ? (size_t)about.st_size : 0;
}

void byi_child_run(void (*run)(void *arg, struct byi_text *out), void *arg,
                   const struct byi_child_limits *limits,
                   struct byi_child *child)
{
    struct child_shared *const progress = byi_shared_new(sizeof *progress);
    const int fd = memfd_create("result", MFD_CLOEXEC);
    struct byi_temp *entry = NULL;
    pid_t pid = -1;
    *child = (struct byi_child){0};
    fflush(NULL); /* otherwise both processes would write the buffered output */
    if (progress && fd >= 0)
        pid = byi_temp_fork(false, &entry);
    if (pid == 0) {
        shared = progress;
        bytes_left = limits->step_bytes;
        run_in_child(run, arg, fd);
    }
    if (pid > 0) {
        child->started = true;
        const struct byi_child_time time = byi_child_time(limits->seconds);
        child->timed_out =
            !wait_until(pid, false, &time, progress,
                        as_ns(limits->step_seconds), &child->status);
        child->returned =
            progress->returned && !child->timed_out && child->status == 0;
        child->out_of_memory = progress->out_of_memory && !progress->began;
        progress->plugin[sizeof progress->plugin - 1] =
            progress->text[sizeof progress->text - 1] = '\0';
        memcpy(child->plugin, progress->plugin, sizeof progress->plugin);
        memcpy(child->step, progress->text, sizeof progress->text);
        if (!child->returned)
            describe_end(child, progress, limits);
        map_bytes(child, fd);
    }
    byi_temp_done(&entry);
    const int why = errno;
    if (fd >= 0)
        close(fd);
    byi_shared_free(progress, sizeof *progress);
    errno = why;
}

void byi_child_free(struct byi_child *child)
{
    if (child->bytes)
        munmap((void *)(uintptr_t)child->bytes, child->n);
    *child = (struct byi_child){0};
}
