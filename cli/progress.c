/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: prints the current step to stderr once byoc has worked for two
 * seconds. On a terminal, it replaces one line; elsewhere it prints lines at
 * growing intervals. A thread prints, so that the time advances during steps
 * that report no progress. BYOC_PROGRESS=0 and --quiet switch it off.
 */
#include "cli.h"

#include "core/base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SECONDS 2.0      /* seconds before the first line */
#define REFRESH_SECONDS 0.2    /* between updates of the line on a terminal */
#define MAX_PAUSE_SECONDS 60.0 /* most seconds between lines elsewhere */

/* The progress line. All but `thread` is guarded by `lock`. */
static struct progress_state {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool terminal;     /* stderr is a terminal */
    bool started;      /* the thread runs its function */
    bool ending;       /* the thread must end */
    bool shown;        /* the terminal's last line is the progress line */
    double start_time; /* by byi_now() */
    double due;        /* seconds from `start_time` to the next line */
    const char *command;
    char step[100]; /* "": not known */
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether the thread runs. False in a child of fork(), which has no such thread
 * and where the lock may be held. */
static atomic_bool running;

static void write_line(const char *line, size_t n)
{
    while (n > 0) {
        const ssize_t done = write(STDERR_FILENO, line, n);
        if (done <= 0)
            return; /* a failed write of progress is not an error */
        line += done;
        n -= (size_t)done;
    }
}

static void print_line(struct progress_state *r, double seconds)
{
    char line[160];
    int n = snprintf(line, sizeof line, "%sbyoc %s: %s%s%.0f s%s",
                     r->terminal ? "\r\033[K" : "", r->command, r->step,
                     r->step[0] ? ", " : "", seconds, r->terminal ? "" : "\n");
    write_line(line, (size_t)n);
    r->shown = r->terminal;
}

/* The thread: print a line whenever one is due. */
static void *print_lines(void *arg)
{
    struct progress_state *r = arg;
    pthread_mutex_lock(&r->lock);
    r->started = true;
    pthread_cond_signal(&r->changed);
    while (!r->ending) {
        const double wake = r->start_time + r->due;
        const struct timespec until = {
            .tv_sec = (time_t)wake,
            .tv_nsec = (long)((wake - (double)(time_t)wake) * 1e9)};
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
        const double seconds = byi_now() - r->start_time;
        if (r->ending || seconds < r->due)
            continue;
        print_line(r, seconds);
        const double pause =
            seconds < MAX_PAUSE_SECONDS ? seconds : MAX_PAUSE_SECONDS;
        r->due = seconds + (r->terminal ? REFRESH_SECONDS : pause);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Create the thread, and wait until it runs. The sanitizers' runtime takes a
 * lock while a thread starts. A child that is forked meanwhile inherits the
 * locked lock, and waits for it forever. */
static bool start_thread(struct progress_state *r)
{
    if (pthread_create(&r->thread, NULL, print_lines, r) != 0)
        return false;
    pthread_mutex_lock(&r->lock);
    while (!r->started)
        pthread_cond_wait(&r->changed, &r->lock);
    pthread_mutex_unlock(&r->lock);
    return true;
}

/* A handler for fork(): the child has no thread. */
static void stop_in_child(void)
{
    atomic_store(&running, false);
}

void byi_progress_begin(const char *command)
{
    const char *setting = getenv("BYOC_PROGRESS");
    pthread_condattr_t monotonic;
    sigset_t all_signals, old_mask;
    if (setting && strcmp(setting, "0") == 0)
        return;
    progress.command = command;
    progress.terminal = isatty(STDERR_FILENO);
    progress.start_time = byi_now();
    progress.due = FIRST_SECONDS;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&progress.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_atfork(NULL, NULL, stop_in_child);
    sigfillset(&all_signals); /* the calling thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all_signals, &old_mask);
    atomic_store(&running, start_thread(&progress));
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
}

void byi_progress_step(const char *what, uint32_t done, uint32_t total)
{
    if (!atomic_load(&running))
        return;
    pthread_mutex_lock(&progress.lock);
    if (total)
        snprintf(progress.step, sizeof progress.step, "%.60s, %u of %u", what,
                 done, total);
    else
        snprintf(progress.step, sizeof progress.step, "%.90s", what);
    for (char *c = progress.step; *c; c++) /* names come from plug-ins */
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    pthread_mutex_unlock(&progress.lock);
}

/* Call with the lock held, or when the thread has ended, or in a handler. */
static void erase_line(void)
{
    static const char erase[] = "\r\033[K";
    if (progress.shown)
        write_line(erase, sizeof erase - 1);
    progress.shown = false;
}

void byi_progress_clear(void)
{
    if (!atomic_load(&running))
        return;
    pthread_mutex_lock(&progress.lock);
    erase_line();
    pthread_mutex_unlock(&progress.lock);
}

void byi_progress_forget(void)
{
    if (atomic_load(&running)) /* without the lock, which may be held */
        erase_line();
}

void byi_progress_end(void)
{
    if (!atomic_exchange(&running, false))
        return;
    pthread_mutex_lock(&progress.lock);
    progress.ending = true;
    pthread_cond_signal(&progress.changed);
    pthread_mutex_unlock(&progress.lock);
    pthread_join(progress.thread, NULL);
    erase_line();
}
