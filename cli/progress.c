/* SPDX-License-Identifier: Apache-2.0 */
/* progress.c: prints the current step to stderr once byoc has worked for
 * two seconds: on a terminal as one line that is replaced, elsewhere as lines
 * at growing intervals. A thread prints, so that the time advances during steps
 * that report no progress. BYOC_PROGRESS=0 and --quiet switch it off.
 */
#include "cli.h"
#include "load.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FIRST 2.0    /* seconds before the first line */
#define REFRESH 0.2  /* seconds between updates of the line on a terminal */
#define LONGEST 60.0 /* most seconds between lines elsewhere */

static struct progress_report {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool terminal;
    bool ending;
    bool shown;        /* the terminal's last line is the progress line */
    double began, due; /* due: seconds from `began` to the next line */
    const char *command;
    char step[100]; /* "": not known */
} report = {.lock = PTHREAD_MUTEX_INITIALIZER};

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

static void print_line(struct progress_report *r, double seconds)
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
    struct progress_report *r = arg;
    pthread_mutex_lock(&r->lock);
    while (!r->ending) {
        const double wake = r->began + r->due;
        const struct timespec until = {
            .tv_sec = (time_t)wake,
            .tv_nsec = (long)((wake - (double)(time_t)wake) * 1e9)};
        pthread_cond_timedwait(&r->changed, &r->lock, &until);
        const double seconds = byi_now() - r->began;
        if (r->ending || seconds < r->due)
            continue;
        print_line(r, seconds);
        const double pause = seconds < LONGEST ? seconds : LONGEST;
        r->due = seconds + (r->terminal ? REFRESH : pause);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

static void stop_in_child(void)
{
    atomic_store(&running, false);
}

void byi_progress_begin(const char *command)
{
    const char *wanted = getenv("BYOC_PROGRESS");
    pthread_condattr_t monotonic;
    sigset_t all, before;
    if (wanted && strcmp(wanted, "0") == 0)
        return;
    report.command = command;
    report.terminal = isatty(STDERR_FILENO);
    report.began = byi_now();
    report.due = FIRST;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&report.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_atfork(NULL, NULL, stop_in_child);
    sigfillset(&all); /* the calling thread handles signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&report.thread, NULL, print_lines, &report) == 0)
        atomic_store(&running, true);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void byi_progress_step(const char *what, uint32_t done, uint32_t of)
{
    if (!atomic_load(&running))
        return;
    pthread_mutex_lock(&report.lock);
    if (of)
        snprintf(report.step, sizeof report.step, "%.60s, %u of %u", what, done,
                 of);
    else
        snprintf(report.step, sizeof report.step, "%.90s", what);
    for (char *c = report.step; *c; c++) /* names come from plug-ins */
        *c = *c < ' ' || *c > '~' ? '?' : *c;
    pthread_mutex_unlock(&report.lock);
}

/* Call with the lock held, or when the thread has ended. */
static void erase_line(void)
{
    static const char erase[] = "\r\033[K";
    if (report.shown)
        write_line(erase, sizeof erase - 1);
    report.shown = false;
}

void byi_progress_clear(void)
{
    if (!atomic_load(&running))
        return;
    pthread_mutex_lock(&report.lock);
    erase_line();
    pthread_mutex_unlock(&report.lock);
}

void byi_progress_end(void)
{
    if (!atomic_exchange(&running, false))
        return;
    pthread_mutex_lock(&report.lock);
    report.ending = true;
    pthread_cond_signal(&report.changed);
    pthread_mutex_unlock(&report.lock);
    pthread_join(report.thread, NULL);
    erase_line();
}
