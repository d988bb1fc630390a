/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: runs a function in a child process with limits, and waits for
 * children. The child records its current step in shared memory, so that the
 * parent can report where it crashed or hung.
 */
#ifndef BYI_CHILD_H
#define BYI_CHILD_H

#include <sys/types.h>

#include "base.h"

/* Zeroed memory that this process and its children share; NULL on failure.
 */
void *byi_shared_new(size_t bytes);
void byi_shared_free(void *memory, size_t bytes);

/* A limit on the time of a child, from now on; 0 seconds: none. Time in which
 * the child is ready and waits for a processor does not count: a busy machine
 * does not make a child hang. */
struct byi_child_time {
    uint64_t began; /* a time of byi_now_ns */
    uint64_t limit; /* nanoseconds; UINT64_MAX: none */
};
struct byi_child_time byi_child_time(double seconds);
/* Wait for a child; *status is as for waitpid(). `group`: the child leads a
 * process group, which is killed with it. Returns false if the child exceeded
 * its time and was killed. */
bool byi_child_wait(pid_t child, bool group, const struct byi_child_time *time,
                    int *status);

/* --- running a function --------------------------------------------------- */

/* A member that is 0 sets no limit. Times are as for byi_child_time. */
struct byi_child_limits {
    double seconds;      /* for the whole child */
    double step_seconds; /* for each step */
    uint64_t step_bytes; /* of address space that all steps together may add */
};

/* How a child ended. */
struct byi_child {
    bool started;   /* false: no child was created, see errno */
    bool timed_out; /* the child exceeded a time limit and was killed */
    bool returned;  /* the function returned; `bytes` has its output */
    /* the child ran out of memory outside of a step, or its output cannot be
     * mapped */
    bool out_of_memory;
    int status;        /* from waitpid */
    char step[256];    /* the text of the last step; "": none */
    char plugin[4096]; /* the plug-in whose code the last step ran; "": none */
    /* if it did not return: "crashed with signal 6 (Aborted) in probe()" */
    char how[400];
    const char *bytes; /* the output, n bytes; NULL if it is empty */
    size_t n;
};

/* Run the function in a child process and wait until it ends; *child says how.
 * The child writes no core file, and is killed if this process ends. The caller
 * calls byi_child_free(child). */
void byi_child_run(void (*run)(void *arg, struct byi_text *out), void *arg,
                   const struct byi_child_limits *limits,
                   struct byi_child *child);
void byi_child_free(struct byi_child *child);

/* --- steps ---------------------------------------------------------------- */

/* In a child: begin a step, which lasts until the next one or
 * byi_child_step_end. `plugin` names the plug-in whose code it runs, or is
 * NULL. The text of the step is formatted as by printf and cut to 255 bytes.
 * Elsewhere these have no effect, except after byi_child_record_steps. */
void byi_child_step(const char *plugin, const char *format, ...)
    BYI_PRINTF(2, 3);
void byi_child_step_end(void);
/* In a child: the text of the last step; "" before the first, and outside of a
 * child. */
const char *byi_child_step_text(void);
/* Record the steps of this process, too, for the function below. */
void byi_child_record_steps(void);
/* Get the plug-in and the text of the current step. Returns the time of
 * byi_now_ns when it began; 0 outside of a step that runs a plug-in's code. May
 * be called in a signal handler. */
uint64_t byi_child_step_now(const char **plugin, const char **text);

#endif
