/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: runs a case in a child process. Its verdict is in shared memory, so
 * that the parent can read it even if the case crashes or hangs.
 */
#include "kit.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"

const struct byi_rule_row byi_kit_rules[BYI_N_RULES] = {
#define RULE(id, name, text) [BYI_RULE_##id] = {name, text},
#include "rules.def"
};

/* --- in the child --------------------------------------------------------- */

void byi_kit_end(struct byi_kit *kit, enum byi_outcome outcome,
                 enum byi_conform_rule rule, const char *format, ...)
{
    struct byi_verdict *v = kit->verdict;
    va_list args;
    va_start(args, format);
    vsnprintf(v->text, sizeof v->text, format, args);
    va_end(args);
    v->outcome = outcome;
    v->rule = rule;
    v->done = true;
    _exit(0);
}

/* A case to run in a child process. */
struct case_run {
    struct byi_kit *kit;
    const struct byi_kit_case *test;
    struct byi_verdict *verdict; /* in shared memory */
    int output_fd; /* descriptor of the file that receives its output */
};

static void run_in_child(void *arg, struct byi_text *out)
{
    const struct case_run *run = arg;
    (void)out; /* not used: the verdict is in shared memory */
    if (run->output_fd >= 0) {
        dup2(run->output_fd, STDOUT_FILENO);
        dup2(run->output_fd, STDERR_FILENO);
    }
    run->kit->verdict = run->verdict;
    byi_child_step(NULL, "the case's beginning");
    run->test->run(run->kit, run->test);
    byi_kit_end(run->kit, BYI_PASSED, 0, "%s", "");
}

/* --- in the parent -------------------------------------------------------- */

/* Set the verdict of a case whose process did not set it. */
static void fail(struct byi_verdict *v, enum byi_conform_rule rule,
                 const char *format, ...) BYI_PRINTF(3, 4);
static void fail(struct byi_verdict *v, enum byi_conform_rule rule,
                 const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(v->text, sizeof v->text, format, args);
    va_end(args);
    v->outcome = BYI_FAILED;
    v->rule = rule;
    v->done = true;
}

/* Set v->printed to the first line that the case printed, without leading
 * blanks and the '=' of valgrind. */
static void read_printed(int fd, struct byi_verdict *v)
{
    ssize_t n = fd < 0 ? 0 : pread(fd, v->printed, sizeof v->printed - 1, 0);
    v->printed[n > 0 ? n : 0] = '\0';
    char *line = v->printed + strspn(v->printed, "\n= ");
    line[strcspn(line, "\n")] = '\0';
    memmove(v->printed, line, strlen(line) + 1);
}

/* Complete the verdict of a case whose process ended without one. */
static void fill_verdict(struct byi_verdict *v, const struct byi_child *child,
                         double seconds)
{
    const int status = child->status;
    if (!child->started)
        fail(v, BYI_RULE_CRASH, "cannot start a process for the case: %s",
             strerror(errno));
    else if (child->timed_out)
        fail(v, BYI_RULE_HANG, "still in %s after %s seconds", child->step,
             BYI_FLOAT_TEXT(seconds));
    else if (WIFSIGNALED(status))
        fail(v, BYI_RULE_CRASH, "SIG%s in %s", sigabbrev_np(WTERMSIG(status)),
             child->step);
    else if (WEXITSTATUS(status) == BYI_VALGRIND_CODE)
        fail(v, BYI_RULE_VALGRIND,
             "valgrind found errors, the last at or before %s", child->step);
    else if (WEXITSTATUS(status) != 0)
        fail(v, BYI_RULE_CRASH, "the process ended with exit code %d in %s",
             WEXITSTATUS(status), child->step);
    else if (!v->done)
        fail(v, BYI_RULE_CRASH, "the process was ended by exit() in %s",
             child->step);
}

void byi_kit_run_case(struct byi_kit *kit, const struct byi_kit_case *c,
                      struct byi_verdict *verdict)
{
    const struct byi_child_limits limits = {.seconds = kit->seconds};
    const uint64_t begin = byi_now_ns();
    struct case_run run = {kit, c, byi_shared_new(sizeof *verdict),
                           memfd_create("printed", MFD_CLOEXEC)};
    struct byi_verdict *v = run.verdict;
    struct byi_child child = {0};
    *verdict = (struct byi_verdict){0};
    if (!v) {
        fail(verdict, BYI_RULE_CRASH, "out of memory for the verdict");
    } else {
        byi_child_run(run_in_child, &run, &limits, &child);
        fill_verdict(v, &child, kit->seconds);
        read_printed(run.output_fd, v);
        if (v->outcome != BYI_FAILED && *v->printed)
            fail(v, BYI_RULE_PRINTS, "printed '%.200s'", v->printed);
        *verdict = *v;
        verdict->seconds = 1e-9 * (double)(byi_now_ns() - begin);
    }
    byi_child_free(&child);
    if (run.output_fd >= 0)
        close(run.output_fd);
    byi_shared_free(v, sizeof *v);
}
