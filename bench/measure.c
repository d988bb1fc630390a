/* SPDX-License-Identifier: Apache-2.0 */
/* measure.c: runs each measurement in a separate process, and prints medians
 * as a table.
 */
#include "measure.h"

#include "core/base/base.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

const uint32_t bench_sizes[BENCH_SIZES] = {1000, 10000, 100000, 1000000};

/* --- memory: from /proc/self/status ------------------------------ */

/* Read a field in bytes; 0 if it is missing. */
static uint64_t read_memory(const char *field)
{
    char line[256];
    uint64_t kilobytes = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, field, strlen(field)) == 0)
            kilobytes = strtoull(line + strlen(field), NULL, 10);
    if (f)
        fclose(f);
    return kilobytes * 1024;
}

/* Reset VmHWM, the peak of resident memory (proc(5)). */
static void reset_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    if (!f)
        return;
    fputs("5", f);
    fclose(f);
}

/* Evict the caches and touch free pages: use and free more memory than the
 * caches hold and than a step can use. A graph of 1e6 nodes does not fit in the
 * caches, so smaller graphs must not start with warm caches either. And if a
 * virtual machine has returned free pages to its host, the first touch of a
 * page takes ten times as long as the work on it. */
static void prepare_memory(uint64_t nodes)
{
    enum { BYTES_PER_NODE = 1024, CACHES = 384 << 20 /* bytes */ };
    const uint64_t needed = nodes * BYTES_PER_NODE;
    const uint64_t bytes = needed > CACHES ? needed : CACHES;
    char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return;
    madvise(at, bytes, MADV_HUGEPAGE);
    memset(at, 1, bytes);
    munmap(at, bytes);
}

/* --- one step ---------------------------------------------------- */

/* The CPU time of this process in seconds, which other processes do not affect.
 */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench_start bench_begin(uint64_t nodes)
{
    struct bench_start start = {0};
    prepare_memory(nodes);
    reset_peak();
    start.resident = read_memory("VmRSS:");
    start.seconds = now();
    return start;
}

void bench_end(const struct bench_start *start, struct bench_step *step)
{
    step->seconds = now() - start->seconds;
    const uint64_t peak = read_memory("VmHWM:");
    step->bytes = peak > start->resident ? peak - start->resident : 0;
}

/* --- one measurement --------------------------------------------- */

static struct bench_result measure_once(bench_work work, const void *arg,
                                        uint32_t shape, uint32_t size)
{
    struct bench_result *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct bench_result result;
    int status = 0;
    if (shared == MAP_FAILED) {
        perror("bench: cannot map memory for a measurement");
        exit(1);
    }
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        work(arg, shape, size, shared);
        _exit(0);
    }
    const int error = errno;
    if (pid > 0)
        waitpid(pid, &status, 0);
    result = *shared;
    if (pid < 0 || status != 0)
        result.failed = true;
    if (pid < 0)
        snprintf(result.why, sizeof result.why, "cannot start a process: %s",
                 strerror(error));
    else if (WIFSIGNALED(status))
        snprintf(result.why, sizeof result.why, "crashed with signal %d",
                 WTERMSIG(status));
    else if (status != 0)
        snprintf(result.why, sizeof result.why, "exited with code %d",
                 WEXITSTATUS(status));
    munmap(shared, sizeof *shared);
    return result;
}

static int compare_steps(const void *a, const void *b)
{
    const double x = ((const struct bench_step *)a)->seconds;
    const double y = ((const struct bench_step *)b)->seconds;
    return (x > y) - (x < y);
}

struct bench_result bench_measure(bench_work work, const void *arg,
                                  uint32_t shape, uint32_t size, uint32_t n)
{
    enum { RUNS_OF_SMALL = 11, RUNS_OF_LARGE = 5, MAX_SMALL = 10000 };
    const uint32_t times = size > MAX_SMALL ? RUNS_OF_LARGE : RUNS_OF_SMALL;
    struct bench_result runs[RUNS_OF_SMALL], median;
    for (uint32_t i = 0; i < times; i++) {
        runs[i] = measure_once(work, arg, shape, size);
        if (runs[i].failed)
            return runs[i];
    }
    median = runs[0];
    for (uint32_t s = 0; s < n; s++) {
        struct bench_step steps[RUNS_OF_SMALL];
        for (uint32_t i = 0; i < times; i++)
            steps[i] = runs[i].steps[s];
        qsort(steps, times, sizeof *steps, compare_steps);
        median.steps[s] = steps[times / 2];
    }
    return median;
}

/* --- the table --------------------------------------------------- */

void bench_head(const char *title)
{
    printf("%s, nanoseconds per node at\n%-28s %8s %8s %8s %8s %6s %8s %8s\n",
           title, "", "1e3", "1e4", "1e5", "1e6", "ratio", "bytes/n", "s");
}

void bench_row(const char *name, uint32_t max,
               const struct bench_result runs[BENCH_SIZES], uint32_t step)
{
    double per_node[BENCH_SIZES] = {0};
    const struct bench_step *last = NULL;
    printf("%-28s", name);
    for (uint32_t i = 0; i < BENCH_SIZES && bench_sizes[i] <= max; i++) {
        if (runs[i].failed) {
            printf("  %s\n", runs[i].why);
            return;
        }
        last = &runs[i].steps[step];
        per_node[i] = 1e9 * last->seconds / (double)last->nodes;
        printf(" %8.1f", per_node[i]);
    }
    if (per_node[3] > 0)
        printf(" %6.2f%s", per_node[3] / per_node[1],
               per_node[3] > 2.0 * per_node[1] ? "!" : " ");
    if (last)
        printf(" %8.0f %8.3f", (double)last->bytes / (double)last->nodes,
               last->seconds);
    printf("\n");
    fflush(stdout);
}
