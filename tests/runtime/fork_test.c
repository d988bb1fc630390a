/* SPDX-License-Identifier: Apache-2.0 */
/* fork_test.c: tests a backend that forks within a parallel region, on the
 * caller's thread and on a worker's, while the other thread computes. The
 * parent's run must be right. The child has only one of the two threads, and
 * must not wait for the other.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/plan.h"
#include "tests/fixture.h"

#define REF PLUGIN_DIR "/libbyoc_backend_ref.so"

enum { PARTS = 2, SECONDS = 20 };
/* exit codes of the child: it could run again, could not, or its interrupted
 * run ended with another status than expected */
enum { ENDED = 7, NOT_AGAIN = 8, OTHER_STATUS = 9 };

static const char model_text[] =
    "def @r0(%a: Tensor[(64), float32], %b: Tensor[(64), float32],"
    " Compiler=\"ref\", global_symbol=\"r0\") {\n"
    "  %f = fn (%a: Tensor[(64), float32], %b: Tensor[(64), float32],"
    " Composite=\"ref.add\") { add(%a, %b) };\n"
    "  %f(%a, %b)\n"
    "}\n"
    "def @main(%x: Tensor[(64), float32], %y: Tensor[(64), float32]) {\n"
    "  %0 = @r0(%x, %y);\n"
    "  exp(%0)\n"
    "}\n";

static _Atomic bool begun[PARTS], forked;
static _Atomic pid_t child;
static uint32_t forking; /* the part that forks */
static bool in_child;

static void end_child(void)
{
    _exit(ENDED);
}

/* Wait until `*word` is true, at most SECONDS. */
static void wait_until(const _Atomic bool *word)
{
    for (int ms = 0; !*word && ms < 1000 * SECONDS; ms++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

/* End this process after SECONDS. Unblocks SIGALRM in this thread, since
 * workers block all signals. */
static void end_if_stuck(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(SECONDS);
}

/* Parts 0 and 1 are the caller's and the worker's; when both have begun, one
 * of them forks, and the other one still computes. */
static void fork_in_part(uint32_t part)
{
    if (part >= PARTS || forked || in_child)
        return;
    begun[part] = true;
    wait_until(&begun[!part]);
    if (part != forking) {
        wait_until(&forked);
        return;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        in_child = true;
        end_if_stuck();
        if (part != 0)
            atexit(end_child);
        return;
    }
    child = pid;
    forked = true;
}

/* Run a model on the backend, and fork in this part of its loop. */
static void check_fork_in(uint32_t part)
{
    struct byoc_error err;
    struct fixture x;
    struct byoc_model *model = NULL;
    struct byoc_state *s = NULL;
    int status = -1;
    void (**hook)(uint32_t) = NULL;
    const struct byoc_load_params params = {
        .plugins = PLUGIN_DIR, .threads = PARTS, .wait = BYOC_WAIT_SPIN};
    if (fixture_open(&x, model_text, &err) != BYOC_OK ||
        byoc_internal_model_open(&x.image, &params, &model, &err) != BYOC_OK ||
        byoc_state_new(model, &s, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (byoc_model_threads(model, NULL) < PARTS)
        skip();
    void *plugin = dlopen(REF, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    *(void **)&hook = dlsym(plugin, "ref_before_part");
    assert_non_null(hook);
    forking = part;
    begun[0] = begun[1] = forked = false;
    *hook = fork_in_part;
    enum byoc_status run_status = fixture_run(&x, s, 1, false, &err);
    *hook = NULL;
    if (in_child) {
        if (run_status != BYOC_ECANCELLED || !strstr(err.text, "forked"))
            _exit(OTHER_STATUS);
        for (uint64_t seed = 2; seed < 5; seed++)
            if (fixture_run(&x, s, seed, false, &err) != BYOC_OK)
                _exit(NOT_AGAIN);
        _exit(ENDED);
    }
    if (run_status != BYOC_OK)
        fail_msg("in the parent: %s", err.text);
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), ENDED);
    assert_int_equal(fixture_run(&x, s, 9, false, &err), BYOC_OK);
    dlclose(plugin);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_fork_in_caller(void **state)
{
    (void)state;
    if (getenv("BYOC_EMULATED")) {
        print_message("skipped: qemu lets no forked child make threads\n");
        skip();
    }
    check_fork_in(0);
}

static void test_fork_in_worker(void **state)
{
    (void)state;
    check_fork_in(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fork_in_caller),
                                       cmocka_unit_test(test_fork_in_worker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
