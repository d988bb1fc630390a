/* SPDX-License-Identifier: Apache-2.0 */
/* child.c: a case in a process of its own. What it comes to lies in memory that
 * both processes see, so that a case that crashes or hangs has said up to then
 * what was going on.
 */
#include "kit.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/temp.h"

const struct byi_rule_row byi_kit_rules[BYI_N_RULES] = {
#define RULE(id, name, text) [BYI_RULE_##id] = {name, text},
#include "rules.def"
};

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

/* --- in the child ---------------------------------------------------------
 */

void byi_kit_place(struct byi_kit *kit, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(kit->verdict->place, sizeof kit->verdict->place, format, args);
    va_end(args);
}

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

static _Noreturn void be_child(struct byi_kit *kit,
                               const struct byi_kit_case *c,
                               struct byi_verdict *v)
{
    setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
    kit->verdict = v;
    byi_kit_place(kit, "the case's beginning");
    c->run(kit, c);
    byi_kit_end(kit, BYI_PASSED, 0, "%s", "");
}

/* --- in the parent --------------------------------------------------------
 */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* Wait for the child, at most so long; false: it was still running, and is
 * gone now. */
static bool wait_for(pid_t child, double seconds, int *status)
{
    const double end = now() + seconds;
    for (long ns = 100000;; ns = ns < 2000000 ? 2 * ns : ns) {
        const pid_t got = waitpid(child, status, WNOHANG);
        if (got == child)
            return true;
        if ((got < 0 && errno != EINTR) || now() > end)
            break;
        nanosleep(&(const struct timespec){.tv_nsec = ns}, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, status, 0);
    return false;
}

/* The first line of what was printed. */
static void read_said(int fd, struct byi_verdict *v)
{
    ssize_t n = fd < 0 ? 0 : pread(fd, v->said, sizeof v->said - 1, 0);
    v->said[n > 0 ? n : 0] = '\0';
    char *line = v->said + strspn(v->said, "\n= ");
    line[strcspn(line, "\n")] = '\0';
    memmove(v->said, line, strlen(line) + 1);
}

static void judge(struct byi_verdict *v, int status)
{
    if (WIFSIGNALED(status)) {
        const int number = WTERMSIG(status);
        fail(v, BYI_RULE_CRASH, "SIG%s in %s", sigabbrev_np(number), v->place);
    } else if (WEXITSTATUS(status) == BYI_VALGRIND_CODE) {
        fail(v, BYI_RULE_VALGRIND,
             "valgrind found errors, the last at or before %s", v->place);
    } else if (WEXITSTATUS(status) != 0) {
        fail(v, BYI_RULE_CRASH, "the process ended with exit code %d in %s",
             WEXITSTATUS(status), v->place);
    } else if (!v->done) {
        fail(v, BYI_RULE_CRASH, "the process was ended by exit() in %s",
             v->place);
    }
}

void byi_run_case(struct byi_kit *kit, const struct byi_kit_case *c,
                  struct byi_verdict *verdict)
{
    struct byi_verdict *v = byi_shared_new(sizeof *v);
    const double begin = now();
    int status = 0;
    *verdict = (struct byi_verdict){0};
    if (!v) {
        fail(verdict, BYI_RULE_CRASH, "no memory for a case");
        return;
    }
    fflush(NULL);
    const int printed = memfd_create("printed", MFD_CLOEXEC);
    struct byi_temp *listed;
    const pid_t child = byi_temp_fork(false, &listed);
    if (child == 0) {
        if (printed >= 0) {
            dup2(printed, STDOUT_FILENO);
            dup2(printed, STDERR_FILENO);
        }
        be_child(kit, c, v);
    }
    if (child < 0) {
        fail(v, BYI_RULE_CRASH, "no process for a case: %s", strerror(errno));
    } else if (wait_for(child, kit->seconds, &status)) {
        judge(v, status);
    } else {
        fail(v, BYI_RULE_HANG, "still in %s after %g seconds", v->place,
             kit->seconds);
    }
    byi_temp_done(&listed);
    read_said(printed, v);
    if (printed >= 0)
        close(printed);
    if (v->outcome != BYI_FAILED && *v->said)
        fail(v, BYI_RULE_PRINTS, "printed '%.200s'", v->said);
    *verdict = *v;
    verdict->seconds = now() - begin;
    byi_shared_free(v, sizeof *v);
}
