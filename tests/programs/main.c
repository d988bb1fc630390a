/* SPDX-License-Identifier: Apache-2.0 */
/* main.c: the command `programs`, whose usage is below. Exits with 0 if all
 * programs pass, 1 if one fails, 2 for usage. A crash or a hang also prints its
 * seed.
 */
#include "programs.h"
#include "tests/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 20, MAX_FAILURES = 20, SECONDS = 60, MAX_JOBS = 64 };

static const char usage[] =
    "usage: programs [OPTIONS] [FILE.ir...]\n"
    "  --count N      how many programs (default 1; 0 if files are given)\n"
    "  --seed N       seed of the first program (default 1)\n"
    "  --jobs N       number of processes (default 1)\n"
    "  --size N       approximate number of statements of @main (default 20)\n"
    "  --pass NAME    only this stage: text, a pass, pipeline, plan, "
    "executor,\n"
    "                 artifact\n"
    "  --artifact N   compile one program of N to a .so (default 0: "
    "none)\n"
    "  --seeds FILE   also the programs in the file, a line SEED SIZE for "
    "each\n"
    "  --dump         print the programs; with --pass, also after the stage\n"
    "  --totals       print the table of all stages\n";

/* The command line; the usage above describes it. */
struct options {
    uint64_t count, seed;
    uint32_t size, jobs;
    const char *pass, *seeds;
    bool dump, totals;
};

/* The work of a process, and its counts so far. */
struct run {
    struct options o;
    struct program_stage stages[PROGRAM_MAX_STAGES];
    uint32_t n;
    struct program_totals totals;
    uint64_t failures;
    uint64_t next, end; /* seeds still to check */
};

static void report_crash(int number)
{
    const size_t n = strnlen(program_place, sizeof program_place);
    static const char text[] = "programs: crashed at ";
    ssize_t wrote = write(STDERR_FILENO, text, sizeof text - 1);
    wrote = write(STDERR_FILENO, program_place, n);
    (void)wrote;
    _exit(128 + number);
}

static void report_failure(void *ctx, const struct program *p,
                           const struct program_stage *stage,
                           const struct byoc_error *err)
{
    struct run *run = ctx;
    run->failures++;
    fprintf(stderr, "%s: %s\n  ", stage->name, err->text);
    if (p->file)
        fprintf(stderr, "programs %s", p->file);
    else
        fprintf(stderr, "programs --seed %llu --size %u",
                (unsigned long long)p->seed, p->size);
    if (stage->check)
        fprintf(stderr, " --pass %s", stage->name);
    fputs(" --dump\n", stderr);
}

static void dump(struct run *run, const struct program *p)
{
    struct byi_module *m = NULL;
    struct byi_text text = {0};
    struct byoc_error err;
    if (program_build(p, &m, &err) != BYOC_OK)
        return;
    byi_print_module(m, &text, NULL);
    byi_module_free(&m);
    if (run->n == 1 &&
        (run->stages[0].pass || strcmp(run->stages[0].name, "pipeline") == 0)) {
        byi_text_addf(&text, "\n// after %s:\n", run->stages[0].name);
        program_print_after(p, &run->stages[0], &text);
    }
    fputs(text.at, stdout);
    fflush(stdout);
    byi_text_free(&text);
}

static void check(struct run *run, const struct program *p)
{
    if (run->o.dump)
        dump(run, p);
    watch_process(SECONDS);
    program_check(p, run->stages, run->n, &run->totals, report_failure, run);
}

/* --- where programs come from ------------------------------------ */

static int check_file(struct run *run, const char *path)
{
    struct byoc_error err;
    struct byi_text side = {0};
    struct program p = {.file = path};
    const void *text;
    if (byi_map_file(path, &text, &p.n, &err) != BYOC_OK) {
        fprintf(stderr, "programs: %s\n", err.text);
        return 2;
    }
    const size_t stem = strlen(path) > 3 ? strlen(path) - 3 : 0;
    byi_text_add(&side, path, stem);
    byi_text_addf(&side, ".consts");
    p.text = text ? text : "";
    p.side = side.at;
    check(run, &p);
    byi_text_free(&side);
    byi_unmap(text, p.n);
    return 0;
}

static int check_list(struct run *run, const char *path)
{
    char line[256];
    FILE *list = fopen(path, "r");
    if (!list) {
        fprintf(stderr, "programs: cannot read %s: %s\n", path,
                strerror(errno));
        return 2;
    }
    while (fgets(line, sizeof line, list)) {
        unsigned long long seed;
        unsigned size;
        if (sscanf(line, "%llu %u", &seed, &size) == 2)
            check(run, &(struct program){.seed = seed, .size = size});
    }
    fclose(list);
    return 0;
}

static void check_seeds(struct run *run)
{
    while (run->next < run->end && run->failures < MAX_FAILURES) {
        const uint64_t seed = run->next++;
        check(run, &(struct program){.seed = seed, .size = run->o.size});
    }
}

/* --- several processes ------------------------------------------- */

static void add_counts(struct run *to, const struct run *from)
{
    to->failures += from->failures;
    to->totals.programs += from->totals.programs;
    to->totals.nodes += from->totals.nodes;
    to->totals.results += from->totals.results;
    to->totals.bounded += from->totals.bounded;
    to->totals.ended_in_error += from->totals.ended_in_error;
    for (uint32_t i = 0; i < to->n; i++) {
        struct program_stage *a = &to->stages[i];
        const struct program_stage *b = &from->stages[i];
        a->runs += b->runs;
        a->failed += b->failed;
        a->skipped += b->skipped;
        a->sampled += b->sampled;
        a->changed += b->changed;
        a->seconds += b->seconds;
    }
}

static pid_t start(struct run *job)
{
    fflush(NULL);
    const pid_t pid = fork();
    if (pid != 0)
        return pid;
    check_seeds(job);
    exit(0);
}

/* Check in several processes. Each counts its seeds in shared memory, so that
 * after a crash another process continues with the next seed. */
static int check_in_jobs(struct run *run)
{
    const uint32_t n = run->o.jobs;
    const uint64_t first = run->next, count = run->end - first;
    struct run *jobs = mmap(NULL, n * sizeof *jobs, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED)
        return 2;
    pid_t pids[MAX_JOBS];
    for (uint32_t i = 0; i < n; i++) {
        jobs[i] = *run;
        jobs[i].next = first + count * i / n;
        jobs[i].end = first + count * (i + 1) / n;
        pids[i] = start(&jobs[i]);
    }
    for (uint32_t i = 0; i < n;) {
        int status;
        if (pids[i] < 0 || waitpid(pids[i], &status, 0) < 0)
            return 2;
        const bool crashed = status != 0;
        jobs[i].failures += crashed;
        if (crashed && jobs[i].next < jobs[i].end)
            pids[i] = start(&jobs[i]);
        else
            add_counts(run, &jobs[i++]);
    }
    munmap(jobs, n * sizeof *jobs);
    return 0;
}

/* --- totals ------------------------------------------------------ */

static void print_totals(const struct run *run)
{
    const struct program_totals *t = &run->totals;
    printf("%llu programs (%llu end in an error), %llu nodes, %llu results "
           "(%llu compared closely), %llu failures\n",
           (unsigned long long)t->programs,
           (unsigned long long)t->ended_in_error, (unsigned long long)t->nodes,
           (unsigned long long)t->results, (unsigned long long)t->bounded,
           (unsigned long long)run->failures);
    if (!run->o.totals)
        return;
    printf("%-28s %9s %8s %8s %9s %9s\n", "stage", "runs", "failed", "refused",
           "changed", "ms each");
    for (uint32_t i = 0; i < run->n; i++) {
        const struct program_stage *s = &run->stages[i];
        char changed[16] = "-";
        if (s->sampled)
            snprintf(changed, sizeof changed, "%.0f%%",
                     100.0 * (double)s->changed / (double)s->sampled);
        printf("%-28s %9llu %8llu %8llu %9s %9.3f\n", s->name,
               (unsigned long long)s->runs, (unsigned long long)s->failed,
               (unsigned long long)s->skipped, changed,
               s->runs ? 1e3 * s->seconds / (double)s->runs : 0.0);
    }
}

/* --- options ----------------------------------------------------- */

static bool keep_stage(struct run *run, const char *name)
{
    for (uint32_t i = 0; i < run->n; i++)
        if (strcmp(run->stages[i].name, name) == 0) {
            run->stages[0] = run->stages[i];
            run->stages[0].every = 1;
            run->n = 1;
            return true;
        }
    return false;
}

static int refuse(const char *argument)
{
    fprintf(stderr, "programs: found '%s', expected an option and its value:\n",
            argument);
    return -1;
}

/* Read options from argv, and move the names of files to argv[1] and on.
 * Returns 1 + their number, or, after a message on stderr, -1. */
static int read_options(struct run *run, int argc, char **argv)
{
    struct options *o = &run->o;
    uint64_t artifact = 0;
    int n = 1;
    *o = (struct options){
        .seed = 1, .size = SIZE, .jobs = 1, .count = UINT64_MAX};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--dump") == 0) {
            o->dump = true;
        } else if (strcmp(argv[i], "--totals") == 0) {
            o->totals = true;
        } else if (strncmp(argv[i], "--", 2) != 0) {
            argv[n++] = argv[i];
        } else if (!value) {
            return refuse(argv[i]);
        } else {
            const uint64_t number = strtoull(value, NULL, 10);
            if (strcmp(argv[i], "--count") == 0)
                o->count = number;
            else if (strcmp(argv[i], "--seed") == 0)
                o->seed = number;
            else if (strcmp(argv[i], "--jobs") == 0 && number > 0 &&
                     number <= MAX_JOBS)
                o->jobs = (uint32_t)number;
            else if (strcmp(argv[i], "--size") == 0)
                o->size = (uint32_t)number;
            else if (strcmp(argv[i], "--artifact") == 0)
                artifact = number;
            else if (strcmp(argv[i], "--pass") == 0)
                o->pass = value;
            else if (strcmp(argv[i], "--seeds") == 0)
                o->seeds = value;
            else
                return refuse(argv[i]);
            i++;
        }
    }
    if (o->count == UINT64_MAX)
        o->count = n == 1 && !o->seeds;
    run->next = o->seed;
    run->end = o->seed + o->count;
    run->n = program_stages(run->stages);
    run->stages[run->n - 1].every = artifact;
    return !o->pass || keep_stage(run, o->pass) ? n : refuse(o->pass);
}

int main(int argc, char **argv)
{
    static struct run run;
    static const int fatal_signals[] = {SIGSEGV, SIGABRT, SIGBUS,
                                        SIGFPE,  SIGALRM, SIGXCPU};
    int n = read_options(&run, argc, argv), code = 0;
    if (n < 0) {
        fputs(usage, stderr);
        return 2;
    }
    setenv("BYOC_NUM_THREADS", "1",
           0); /* tensors are small, so --jobs uses CPUs better */
    for (size_t i = 0; i < BYI_COUNT(fatal_signals); i++)
        signal(fatal_signals[i], report_crash);
    if (run.o.jobs > 1)
        code = check_in_jobs(&run);
    else
        check_seeds(&run);
    for (int i = 1; i < n && code == 0; i++)
        code = check_file(&run, argv[i]);
    if (code == 0 && run.o.seeds)
        code = check_list(&run, run.o.seeds);
    print_totals(&run);
    return code ? code : run.failures > 0;
}
