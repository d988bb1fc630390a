/* SPDX-License-Identifier: Apache-2.0 */
/* threads_test.c: tests the number of threads for given options, environments,
 * affinity masks and cgroup files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/internal.h"
#include "tests/folder.h"

static char root[TEST_PATH], self[TEST_PATH + 8];

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", root, name);
    assert_int_equal(mkdir(path, 0700), 0);
}

/* Return the number of threads. `word` must occur in the reason for it. */
static uint32_t decide(struct byi_thread_facts facts, const char *word)
{
    struct byoc_error err;
    uint32_t threads = 0;
    char why[256] = "";
    facts.cgroup_self = self;
    facts.cgroup_root = root;
    if (byi_threads_from(&facts, &threads, why, sizeof why, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (!strstr(why, word))
        fail_msg("found \"%s\", expected \"%s\" in it", why, word);
    return threads;
}

#define FACTS(...) ((struct byi_thread_facts){__VA_ARGS__})

static void test_precedence(void **state)
{
    (void)state;
    write_file("self", "");
    assert_int_equal(decide(FACTS(.option = 3, .byoc_env = "5", .omp_env = "7",
                                  .affinity = 9),
                            "caller"),
                     3);
    assert_int_equal(
        decide(FACTS(.byoc_env = "5", .omp_env = "7", .affinity = 9),
               "BYOC_NUM_THREADS"),
        5);
    assert_int_equal(
        decide(FACTS(.omp_env = "7,2", .affinity = 9), "OMP_NUM_THREADS"), 7);
    assert_int_equal(decide(FACTS(.omp_env = "many", .affinity = 9), "CPUs"),
                     9);
    assert_int_equal(decide(FACTS(.affinity = 0), "CPUs"), 1);
}

static void test_malformed_variable(void **state)
{
    (void)state;
    static const char *const bad[] = {"",   "0",   "-1",   "two",
                                      "4x", "4,2", "5000", " "};
    for (size_t i = 0; i < BYI_COUNT(bad); i++) {
        struct byi_thread_facts facts = {.byoc_env = bad[i],
                                         .affinity = 4,
                                         .cgroup_self = self,
                                         .cgroup_root = root};
        struct byoc_error err;
        uint32_t threads;
        char why[64];
        assert_int_equal(
            byi_threads_from(&facts, &threads, why, sizeof why, &err),
            BYOC_EINVAL);
        assert_non_null(strstr(err.text, "BYOC_NUM_THREADS"));
    }
}

static void test_cgroup_v2(void **state)
{
    (void)state;
    write_file("self", "0::/a/b\n");
    write_file("a/b/cpu.max", "max 100000\n");
    assert_int_equal(decide(FACTS(.affinity = 8), "CPUs"), 8);
    write_file("a/cpu.max", "250000 100000\n"); /* the parent's counts too */
    assert_int_equal(decide(FACTS(.affinity = 8), "quota"), 3);
    write_file("a/b/cpu.max", "50000 100000\n");
    assert_int_equal(decide(FACTS(.affinity = 8), "quota"), 1);
    assert_int_equal(decide(FACTS(.affinity = 1), "may use"), 1);
    assert_int_equal(decide(FACTS(.option = 4, .affinity = 8), "quota"), 1);
    write_file("a/b/cpu.max", "nonsense\n");
    write_file("a/cpu.max", "");
    assert_int_equal(decide(FACTS(.affinity = 8), "CPUs"), 8);
}

static void test_cgroup_v1(void **state)
{
    (void)state;
    write_file("self", "5:memory:/x\n4:cpu,cpuacct:/gone\n");
    write_file("cpu/cpu.cfs_quota_us", "200000\n");
    write_file("cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(decide(FACTS(.affinity = 8), "quota"), 2);
    write_file("cpu/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(decide(FACTS(.affinity = 8), "CPUs"), 8);
}

static void test_memory_limit(void **state)
{
    const uint64_t machine = byi_memory_limit_from("/nowhere", root);
    (void)state;
    assert_true(machine > 1 << 20);
    write_file("self", "0::/a/b\n");
    write_file("a/b/memory.max", "max\n");
    assert_int_equal(byi_memory_limit_from(self, root), machine);
    write_file("a/b/memory.max", "1048576\n");
    assert_int_equal(byi_memory_limit_from(self, root), 1048576);
    write_file("a/memory.max", "524288\n"); /* the parent's counts too */
    assert_int_equal(byi_memory_limit_from(self, root), 524288);
    write_file("self", "5:memory:/x\n4:cpu,cpuacct:/gone\n");
    write_file("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(byi_memory_limit_from(self, root), machine);
    write_file("memory/memory.limit_in_bytes", "2097152\n");
    assert_int_equal(byi_memory_limit_from(self, root), 2097152);
}

static void test_this_process(void **state)
{
    (void)state;
    struct byoc_error err;
    uint32_t threads = 0;
    char why[256];
    cpu_set_t mask, one;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    CPU_ZERO(&one);
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &mask))
            CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(byi_threads_decide(6, &threads, why, sizeof why, &err),
                     BYOC_OK);
    assert_int_equal(threads, 1);
    assert_non_null(strstr(why, "6: requested by the caller"));
    assert_int_equal(sched_setaffinity(0, sizeof mask, &mask), 0);
    assert_int_equal(byi_threads_decide(5000, &threads, why, sizeof why, &err),
                     BYOC_EINVAL);
    unsetenv("BYOC_NUM_THREADS");
    assert_int_equal(byi_threads_decide(0, &threads, why, sizeof why, &err),
                     BYOC_OK);
    assert_true(threads >= 1);
}

static int make_tree(void **state)
{
    (void)state;
    if (!make_inner_folder(root))
        return -1;
    snprintf(self, sizeof self, "%s/self", root);
    make_dir("a");
    make_dir("a/b");
    make_dir("cpu");
    make_dir("memory");
    make_dir("memory/x");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),
        cmocka_unit_test(test_malformed_variable),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_cgroup_v2),
        cmocka_unit_test(test_cgroup_v1),
        cmocka_unit_test(test_this_process),
    };
    return cmocka_run_group_tests(tests, make_tree, NULL);
}
