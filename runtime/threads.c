/* SPDX-License-Identifier: Apache-2.0 */
/* threads.c: decides the number of threads of a run and gives the reason. It is
 * the number that the caller or the environment requests, otherwise the number
 * of CPUs that this process may use. Either is limited to those CPUs and to the
 * cgroup's CPU quota, since the kernel would throttle more threads
 * (Documentation/scheduler/sched-bwc.rst and admin-guide/cgroup-v2.rst). */
#include "internal.h"
#include "workers.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 4096 };

/* Parse a whole number from 1 to MAX_THREADS; 0 if `text` is anything else. */
static uint32_t parse_count(const char *text)
{
    char *end;
    errno = 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || errno || n < 1 || n > MAX_THREADS)
        return 0;
    return (uint32_t)n;
}

/* The CPUs that a quota of time in each period allows: quota / period, rounded
 * up; 0: no limit. */
static uint32_t divide_quota(double quota, double period)
{
    if (!(quota > 0) || !(period > 0))
        return 0;
    double cpus = quota / period;
    if (cpus >= MAX_THREADS)
        return 0;
    uint32_t whole = (uint32_t)cpus;
    return whole + ((double)whole < cpus);
}

/* quota_v2 and quota_v1: the CPU quota of one cgroup folder of version 2 or 1,
 * in CPUs, rounded up; 0: no limit. */
static uint64_t quota_v2(const char *folder)
{
    char path[4200], line[128];
    double quota, period;
    snprintf(path, sizeof path, "%s/cpu.max", folder);
    if (!byi_cgroup_read_line(path, line, sizeof line) ||
        sscanf(line, "%lf %lf", &quota, &period) != 2)
        return 0; /* "max 100000": no limit */
    return divide_quota(quota, period);
}

static uint64_t quota_v1(const char *folder)
{
    char path[4200], line[128];
    snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", folder);
    if (!byi_cgroup_read_line(path, line, sizeof line))
        return 0;
    double quota = strtod(line, NULL);
    snprintf(path, sizeof path, "%s/cpu.cfs_period_us", folder);
    if (!byi_cgroup_read_line(path, line, sizeof line))
        return 0;
    return divide_quota(quota, strtod(line, NULL));
}

/* The lowest CPU quota of the process's cgroups, in CPUs; 0: no limit. */
static uint32_t cgroup_quota(const char *self, const char *root)
{
    static const struct byi_cgroup_limit quota = {"cpu", quota_v1, quota_v2};
    return (uint32_t)byi_cgroup_least(self, root, &quota);
}

/* Set *threads to the number of threads that the caller or the environment
 * requests, 0 if neither does, and *source to the source of the request. */
static enum byoc_status read_request(const struct byi_thread_facts *facts,
                                     uint32_t *threads, const char **source,
                                     struct byoc_error *err)
{
    if (facts->option > MAX_THREADS)
        return byi_fail(err, BYOC_EINVAL,
                        "threads is %u, expected 1 to %d, or 0 for the default",
                        facts->option, MAX_THREADS);
    *threads = facts->option;
    *source = "requested by the caller";
    if (*threads)
        return BYOC_OK;
    if (facts->byoc_env) {
        *threads = parse_count(facts->byoc_env);
        *source = "BYOC_NUM_THREADS";
        if (*threads == 0)
            return byi_fail(err, BYOC_EINVAL,
                            "BYOC_NUM_THREADS is \"%.40s\", expected a number "
                            "from 1 to %d; unset it to use all CPUs",
                            facts->byoc_env, MAX_THREADS);
        return BYOC_OK;
    }
    /* "4,2" has a number for each nesting level: take the first */
    char first[32] = "";
    if (facts->omp_env)
        snprintf(first, sizeof first, "%.*s", (int)strcspn(facts->omp_env, ","),
                 facts->omp_env);
    *threads = facts->omp_env ? parse_count(first) : 0;
    *source = "OMP_NUM_THREADS";
    return BYOC_OK;
}

enum byoc_status byi_threads_from(const struct byi_thread_facts *facts,
                                  uint32_t *threads, char *why, size_t n,
                                  struct byoc_error *err)
{
    const uint32_t cpus = facts->affinity ? facts->affinity : 1;
    uint32_t requested = 0, quota = 0;
    const char *source = "";
    BYI_TRY(read_request(facts, &requested, &source, err));
    if (requested != 1) /* no limit is below 1, and reading the limit
                       takes a tenth of the time to load a small model */
        quota = cgroup_quota(facts->cgroup_self, facts->cgroup_root);
    const uint32_t max_threads = quota && quota < cpus ? quota : cpus;
    *threads = requested && requested < max_threads ? requested : max_threads;
    char limit_text[100];
    if (max_threads < cpus)
        snprintf(limit_text, sizeof limit_text,
                 "the cgroup's CPU quota, of %u CPUs this process may use",
                 cpus);
    else
        snprintf(limit_text, sizeof limit_text,
                 "the CPUs this process may use");
    if (requested && requested <= max_threads)
        snprintf(why, n, "%u: %s", *threads, source);
    else if (requested)
        snprintf(why, n, "%u: %s; %u: %s", *threads, limit_text, requested,
                 source);
    else
        snprintf(why, n, "%u: %s", *threads, limit_text);
    return BYOC_OK;
}

static uint32_t count_affinity(void)
{
    /* the kernel's mask may be longer than cpu_set_t: grow until it fits */
    for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            return 1;
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        bool fits = sched_getaffinity(0, bytes, set) == 0;
        int n = fits ? CPU_COUNT_S(bytes, set) : 0;
        CPU_FREE(set);
        if (fits)
            return n > 0 ? (uint32_t)n : 1;
        if (errno != EINVAL)
            return 1;
    }
    return 1;
}

enum byoc_status byi_threads_decide(uint32_t option, uint32_t *threads,
                                    char *why, size_t n, struct byoc_error *err)
{
    struct byi_thread_facts facts = {
        .option = option,
        .byoc_env = getenv("BYOC_NUM_THREADS"),
        .omp_env = getenv("OMP_NUM_THREADS"),
        .affinity = count_affinity(),
        .cgroup_self = "/proc/self/cgroup",
        .cgroup_root = "/sys/fs/cgroup",
    };
    return byi_threads_from(&facts, threads, why, n, err);
}

enum byoc_status byi_wait_decide(enum byoc_wait wait, uint64_t *spin_ns,
                                 bool *adapts, struct byoc_error *err)
{
    static const struct {
        const char *name;
        uint64_t spin_ns;
    } policies[] = {
        [BYOC_WAIT_DEFAULT] = {"", BYI_SPIN_NS},
        [BYOC_WAIT_BRIEF] = {"brief", BYI_SPIN_NS},
        [BYOC_WAIT_SLEEP] = {"sleep", 0},
        [BYOC_WAIT_SPIN] = {"spin", 10000000},
    };
    const char *name = getenv("BYOC_WAIT_POLICY");
    if ((unsigned)wait >= BYI_COUNT(policies))
        return byi_fail(err, BYOC_EINVAL,
                        "wait is %u, expected one of enum byoc_wait",
                        (unsigned)wait);
    uint32_t i = (uint32_t)wait;
    if (i == BYOC_WAIT_DEFAULT && name)
        for (i = 0; i < BYI_COUNT(policies); i++)
            if (strcmp(policies[i].name, name) == 0)
                break;
    if (i == BYI_COUNT(policies))
        return byi_fail(err, BYOC_EINVAL,
                        "BYOC_WAIT_POLICY is \"%.40s\", expected \"brief\", "
                        "\"sleep\" or \"spin\"",
                        name);
    *spin_ns = policies[i].spin_ns;
    *adapts = policies[i].spin_ns == BYI_SPIN_NS;
    return BYOC_OK;
}

enum byoc_status byoc_internal_threads(uint32_t option, uint32_t *threads,
                                       struct byoc_error *err)
{
    char why[256];
    return byi_threads_decide(option, threads, why, sizeof why, err);
}
