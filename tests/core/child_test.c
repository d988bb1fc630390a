/* SPDX-License-Identifier: Apache-2.0 */
/* child_test.c: tests child processes: the parent gets their output, and a
 * report of how they ended and in which step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/base/child.h"
#include "core/base/temp.h"

static const struct byi_child_limits no_limits;

/* The sanitizers' allocators end the process when malloc() would return NULL.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

/* Allocate memory; a compiler cannot remove this call. */
static void *allocate(size_t bytes)
{
    void *volatile at = malloc(bytes);
    return at;
}

static void greet(void *arg, struct byi_text *out)
{
    byi_text_addf(out, "hello %s", (const char *)arg);
}

static void write_much(void *arg, struct byi_text *out)
{
    for (uint32_t i = 0; i < *(uint32_t *)arg; i++)
        byi_text_add(out, (const char *)&i, sizeof i);
}

static void bytes_come_back(void **state)
{
    (void)state;
    char world[] = "world";
    uint32_t n = 3000000;
    struct byi_child child;
    byi_child_run(greet, world, &no_limits, &child);
    assert_true(child.started && child.returned && !child.timed_out);
    assert_int_equal(child.n, strlen("hello world"));
    assert_memory_equal(child.bytes, "hello world", child.n);
    assert_string_equal(child.how, "");
    byi_child_free(&child);
    assert_null(child.bytes);

    byi_child_run(write_much, &n, &no_limits, &child);
    assert_int_equal(child.n, n * sizeof n);
    uint32_t last;
    memcpy(&last, child.bytes + child.n - sizeof last, sizeof last);
    assert_int_equal(last, n - 1);
    byi_child_free(&child);

    n = 0;
    byi_child_run(write_much, &n, &no_limits, &child);
    assert_true(child.returned && child.n == 0 && !child.bytes);
    byi_child_free(&child);
}

/* End the child before it returns its output; the letter at arg selects how. */
static void end_somehow(void *arg, struct byi_text *out)
{
    byi_text_addf(out, "lost");
    switch (*(const char *)arg) {
    case 's':
        byi_child_step("me", "step %d", 3);
        raise(SIGSEGV);
        break;
    case 'a':
        byi_child_step("me", "step()");
        byi_child_step_end();
        abort();
    case 'e':
        _exit(7);
    case '0':
        byi_child_step("you", "exit()");
        _exit(0);
    case 'h':
        byi_child_step("me", "sleep()");
        sleep(100);
        break;
    case 'H':
        sleep(100);
        break;
    case 'm':
        byi_child_step("me", "malloc()");
        while (allocate(1 << 20))
            ;
        _exit(3);
    default:
        break;
    }
}

static void expect_end(const char *what, const struct byi_child_limits *limits,
                       const char *plugin, const char *how)
{
    struct byi_child child;
    byi_child_run(end_somehow, (void *)(uintptr_t)what, limits, &child);
    assert_true(child.started);
    assert_false(child.returned);
    assert_null(child.bytes);
    assert_string_equal(child.plugin, plugin);
    assert_string_equal(child.how, how);
    byi_child_free(&child);
}

static void ends_are_reported(void **state)
{
    (void)state;
    const struct byi_child_limits step = {.step_seconds = 0.2};
    const struct byi_child_limits total = {.seconds = 0.2};
    const struct byi_child_limits memory = {.seconds = 60,
                                            .step_bytes = 64 << 20};
    expect_end("s", &no_limits, "me",
               "crashed with signal 11 (Segmentation fault) in step 3");
    expect_end("a", &no_limits, "me",
               "crashed with signal 6 (Aborted) after step()");
    expect_end("e", &no_limits, "", "exited with code 7");
    expect_end("0", &no_limits, "you", "exited with code 0 in exit()");
    expect_end("h", &step, "me", "timed out after 0.2 s in sleep()");
    expect_end("H", &total, "", "timed out after 0.2 s");
    if (!SANITIZED)
        expect_end("m", &memory, "me", "exited with code 3 in malloc()");
}

/* The memory that a step takes counts against later steps; outside of steps
 * there is no limit. */
static void allocate_twice(void *arg, struct byi_text *out)
{
    enum { BYTES = 40 << 20 };
    for (int i = 0; i < 2; i++) {
        if (*(bool *)arg)
            byi_child_step("me", "malloc()");
        byi_text_addf(out, "%d", allocate(BYTES) != NULL);
        byi_child_step_end();
        byi_text_addf(out, "%d", allocate(BYTES) != NULL);
    }
}

static void steps_share_one_memory_limit(void **state)
{
    (void)state;
    if (SANITIZED)
        skip();
    const struct byi_child_limits limits = {.step_bytes = 64 << 20};
    struct byi_child child;
    for (int steps = 0; steps < 2; steps++) {
        bool arg = steps;
        byi_child_run(allocate_twice, &arg, &limits, &child);
        assert_int_equal(child.n, 4);
        assert_memory_equal(child.bytes, steps ? "1101" : "1111", 4);
        byi_child_free(&child);
    }
}

/* Steps have no effect outside of a child. */
static void parents_have_no_steps(void **state)
{
    (void)state;
    byi_child_step("me", "nothing");
    assert_string_equal(byi_child_step_text(), "");
    byi_child_step_end();
}

static void waits_end_in_time(void **state)
{
    (void)state;
    for (int group = 0; group < 2; group++) {
        struct byi_temp *entry;
        int status = 0;
        pid_t child = byi_temp_fork(group, &entry);
        if (child == 0)
            _exit(5);
        const struct byi_child_time forever = byi_child_time(0);
        assert_true(byi_child_wait(child, group, &forever, &status));
        assert_int_equal(WEXITSTATUS(status), 5);
        byi_temp_done(&entry);
        child = byi_temp_fork(group, &entry);
        if (child == 0) {
            sleep(100);
            _exit(0);
        }
        const struct byi_child_time timeout = byi_child_time(0.1);
        assert_false(byi_child_wait(child, group, &timeout, &status));
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        byi_temp_done(&entry);
    }
}

/* --- limits under other load --------------------------------------------- */

enum { BUSY = 8 };

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Compute until this process has used so many seconds of CPU time. `out` is
 * NULL in a busy process, which has no steps. */
static void compute(void *seconds, struct byi_text *out)
{
    if (out)
        byi_child_step("me", "compute()");
    while (cpu_seconds() < *(double *)seconds)
        ;
    byi_child_step_end();
    if (out)
        byi_text_addf(out, "done");
}

/* Start busy processes on the one processor that this process may use. */
static void start_load(pid_t busy[BUSY])
{
    double seconds = 10;
    for (int i = 0; i < BUSY; i++) {
        busy[i] = fork();
        if (busy[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            compute(&seconds, NULL);
            _exit(0);
        }
    }
}

/* A child that gets a ninth of a processor may take nine times as long. */
static void waiting_for_a_processor_is_not_counted(void **state)
{
    (void)state;
    cpu_set_t before, one_cpu;
    pid_t busy[BUSY];
    double seconds = 0.05;
    const struct byi_child_limits total = {.seconds = 0.15};
    const struct byi_child_limits step = {.step_seconds = 0.15};
    if (access("/proc/self/schedstat", R_OK) != 0 ||
        sched_getaffinity(0, sizeof before, &before) != 0)
        skip();
    CPU_ZERO(&one_cpu);
    CPU_SET((size_t)sched_getcpu(), &one_cpu);
    assert_int_equal(sched_setaffinity(0, sizeof one_cpu, &one_cpu), 0);
    start_load(busy);
    struct byi_child child[2];
    byi_child_run(compute, &seconds, &total, &child[0]);
    byi_child_run(compute, &seconds, &step, &child[1]);
    for (int i = 0; i < BUSY; i++) {
        kill(busy[i], SIGKILL);
        waitpid(busy[i], NULL, 0);
    }
    sched_setaffinity(0, sizeof before, &before);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(child[i].how, "");
        assert_true(child[i].returned && !child[i].timed_out);
        byi_child_free(&child[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(ends_are_reported),
        cmocka_unit_test(steps_share_one_memory_limit),
        cmocka_unit_test(parents_have_no_steps),
        cmocka_unit_test(waits_end_in_time),
        cmocka_unit_test(waiting_for_a_processor_is_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
