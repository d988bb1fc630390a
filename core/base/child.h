/* SPDX-License-Identifier: Apache-2.0 */
/* child.h: a function in a child process with limits, and the wait for a child.
 * The child tells its parent which step it is in, through memory that both see,
 * so that the parent can say where a child crashed or hung.
 */
#ifndef BYI_CHILD_H
#define BYI_CHILD_H

#include <sys/types.h>

#include "base.h"

/* Memory that this process and its children share; zeroed. NULL: there is none.
 */
void *byi_shared_new(size_t bytes);
void byi_shared_free(void *memory, size_t bytes);

/* The time on the clock of byi_now_ns in so many seconds; of 0: never. */
uint64_t byi_child_end(double seconds);
/* Wait until a child ends, at most until `end`. `group`: it leads a process
 * group. False: it was still running, and was killed. */
bool byi_child_wait(pid_t child, bool group, uint64_t end, int *status);

/* --- running a function --------------------------------------------------- */

/* Zero members are no limits. */
struct byi_child_limits {
    double seconds;      /* of all of it */
    double step_seconds; /* of one step */
    uint64_t step_bytes; /* of address space that all steps add */
};

/* What became of a child. */
struct byi_child {
    bool started;   /* false: errno says why */
    bool late;      /* it was killed at a time limit */
    bool returned;  /* the function returned, and `bytes` is what it wrote */
    bool exhausted; /* it ran out of memory outside of its steps */
    int status;     /* as waitpid has it, unless it was late */
    char step[256]; /* the text of the last one; "": there was none */
    char who[4096]; /* whose it was */
    char how[400];  /* not returned: "died of signal 6 (Aborted) in probe()" */
    const char *bytes;
    size_t n;
};

/* Run the function in a child, which ends when it returns; wait for it. The
 * child makes no core file, and ends when this process does. The caller frees
 * the result. */
void byi_child_run(void (*run)(void *arg, struct byi_text *out), void *arg,
                   const struct byi_child_limits *limits,
                   struct byi_child *child);
void byi_child_free(struct byi_child *child);

/* --- steps ---------------------------------------------------------------- */

/* In a child: begin a step, until the next one or byi_step_end. `who` is whose
 * code it runs, or NULL; the rest is as for printf. In other processes these
 * have no effect. */
void byi_step(const char *who, const char *format, ...) BYI_PRINTF(2, 3);
void byi_step_end(void);
/* In a child: the text of the last step. */
const char *byi_step_text(void);

#endif
