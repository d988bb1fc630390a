/* mutate.c: feed mutated files to everything that reads files.
 *
 *   mutate [--count N] [--from N]        every kind, files of this tree
 *   mutate --kind K [--count N] [FILE...]
 *   mutate --kind K --seed S FILE        one mutant, as a failure prints it
 *   ... --write PATH                     leave that mutant at PATH as well
 *   ... --compare                        hold results of models against
 *                                        those without passes and vendors
 *   mutate --corpus DIR                  files as they are, for ctest
 *
 * Mutants run in children, a batch each, so that a crash, a hang or a leak is
 * known by its seed. Ends with "N passed, N failed".
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

enum {
    BATCH = 100,
    MAX_SECONDS = 10,      /* of the processor, one mutant */
    MAX_WALL_SECONDS = 60, /* waiting counts too           */
    EXIT_WRONG = 91,
    EXIT_LEAK = 92
};

/* Of the sanitizers; absent in other builds. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
    return "max_allocation_size_mb=1024:allocator_may_return_null=1:"
           "detect_leaks=1:intercept_tls_get_addr=0:detect_stack_use_after_"
           "return=0:"
           "quarantine_size_mb=64";
}

const char *__ubsan_default_options(void)
{
    return "print_stacktrace=1";
}

struct files {
    BYI_VEC(char *) list;
};

/* What parent and child share: where the child is. */
struct progress {
    volatile uint64_t at;       /* which mutant                  */
    volatile uint64_t taken;    /* mutants that were still good  */
    volatile bool done;         /* all mutants; leaks come next  */
    volatile int64_t cpu, wall; /* milliseconds, when it started */
    char why[1024];
};

struct job {
    const struct fuzz_kind *kind;
    const struct files *files;
    bool compare;  /* results as well             */
    bool verbatim; /* as the files are, once each */
    const char *temp, *seeds, *write;
    struct progress *progress;
    uint64_t passed, failed;
};

static int64_t milliseconds(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* --- files
 * --------------------------------------------------------------------- */

static void add_files(struct files *files, const char *pattern)
{
    glob_t found;
    if (glob(pattern, 0, NULL, &found) != 0)
        return;
    for (size_t i = 0; i < found.gl_pathc; i++)
        BYI_PUSH(&files->list, strdup(found.gl_pathv[i]));
    globfree(&found);
}

static void free_files(struct files *files)
{
    for (uint32_t i = 0; i < files->list.n; i++)
        free(files->list.at[i]);
    byi_vec_free(files->list.at);
    *files = (struct files){0};
}

static bool of_kind(const struct fuzz_kind *kind, const char *path)
{
    for (const char *const *s = kind->suffixes; *s; s++)
        if (fuzz_ends_in(path, *s))
            return true;
    return false;
}

/* The files that mutants of a kind start from. */
static struct files default_files(const struct fuzz_kind *kind,
                                  const char *seeds)
{
    static const char *const folders[] = {
        TEST_DIR "/../examples/digits/*",
        TEST_DIR "/fuzz/seeds/*",
        TEST_DIR "/fuzz/corpus/*",
        TEST_DIR "/*/*.ir",
        "/usr/share/libonnx-testdata/data/node/*/model.onnx",
        "/usr/share/libonnx-testdata/data/simple/*/model.onnx",
        "/usr/share/libonnx-testdata/data/pytorch-*/*/model.onnx",
        "/usr/share/libonnx-testdata/data/node/test_[a-c]*/*/input_0.pb",
        NULL};
    struct files all = {0}, mine = {0};
    struct stat st;
    char pattern[512];
    for (const char *const *f = folders; *f; f++)
        add_files(&all, *f);
    snprintf(pattern, sizeof pattern, "%s/*", seeds);
    add_files(&all, pattern);
    for (uint32_t i = 0; i < all.list.n; i++)
        if (of_kind(kind, all.list.at[i]) && stat(all.list.at[i], &st) == 0 &&
            st.st_size < 300000)
            BYI_PUSH(&mine.list, strdup(all.list.at[i]));
    free_files(&all);
    return mine;
}

/* --- the child
 * -------------------------------------------------------------------- */

/* Seed `at` of the job: which file, how it is changed, what follows. */
static bool one(const struct job *job, uint64_t at)
{
    struct byi_text original = {0};
    struct fuzz_case c = {.kind = job->kind->name,
                          .file = job->files->list.at[at % job->files->list.n],
                          .rng = {at * 0x2545f4914f6cdd1du},
                          .original = &original,
                          .compare = job->compare,
                          .temp = job->temp,
                          .seeds = job->seeds};
    bool good = fuzz_read(c.file, &original);
    if (!good)
        snprintf(c.why, sizeof c.why, "cannot read it");
    byi_text_add(&c.bytes, original.at ? original.at : "", original.n);
    if (good && !job->verbatim)
        job->kind->mutate(&c.rng, &c.bytes);
    /* an exact allocation: reading one byte further is seen */
    char *exact = malloc(c.bytes.n ? c.bytes.n : 1);
    if (exact && c.bytes.at && c.bytes.n)
        memcpy(exact, c.bytes.at, c.bytes.n);
    size_t bytes = c.bytes.n;
    if (good && job->write)
        good = fuzz_write(job->write, c.bytes.at, bytes);
    byi_text_free(&c.bytes);
    c.bytes = (struct byi_text){.at = exact, .n = bytes, .cap = bytes};
    /* as it is: what is chosen at random is chosen often enough */
    for (uint64_t i = 0; i < (job->verbatim ? 12 : 1) && good; i++) {
        c.rng.state += i;
        good = job->kind->feed(&c);
    }
    snprintf(job->progress->why, sizeof job->progress->why, "%s", c.why);
    job->progress->taken += c.taken;
    free(exact);
    byi_text_free(&original);
    return good;
}

static void child(const struct job *job, uint64_t from, uint64_t to,
                  const char *log)
{
    struct progress *p = job->progress;
    const struct rlimit no_core = {0, 0};
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    setrlimit(RLIMIT_CORE, &no_core);
    if (fd >= 0)
        dup2(fd, 2);
    for (uint64_t at = from; at < to; at++) {
        p->at = at;
        p->cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
        p->wall = milliseconds(CLOCK_MONOTONIC);
        if (!one(job, at))
            _exit(EXIT_WRONG);
        p->why[0] = '\0';
    }
    p->wall = milliseconds(CLOCK_MONOTONIC);
    p->cpu = milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    p->done = true;
    if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
        _exit(EXIT_LEAK);
    _exit(0);
}

/* --- the parent
 * --------------------------------------------------------------------- */

static bool too_long(pid_t pid, const struct progress *p)
{
    clockid_t clock;
    if (milliseconds(CLOCK_MONOTONIC) - p->wall > MAX_WALL_SECONDS * 1000)
        return true;
    return clock_getcpuclockid(pid, &clock) == 0 &&
           milliseconds(clock) - p->cpu > MAX_SECONDS * 1000;
}

/* Wait for the child; true when it had to be ended. */
static bool wait_for(pid_t pid, const struct progress *p, int *status)
{
    bool ended = false;
    while (waitpid(pid, status, WNOHANG) == 0) {
        const struct timespec nap = {.tv_nsec = 5000000};
        nanosleep(&nap, NULL);
        if (!ended && too_long(pid, p)) {
            ended = true;
            kill(pid, SIGKILL);
        }
    }
    return ended;
}

/* The lines of a sanitizer's report that tell what happened. */
static void print_log(const char *log)
{
    char line[512];
    int frames = 0;
    FILE *f = fopen(log, "r");
    if (!f)
        return;
    while (fgets(line, sizeof line, f)) {
        bool frame = strstr(line, "    #") != NULL;
        if (strstr(line, "ERROR:") || strstr(line, "runtime error") ||
            strstr(line, "Assertion") || strstr(line, "SUMMARY") ||
            strstr(line, "fatal") || strstr(line, "Tracer") ||
            strstr(line, "memory") || (frame && frames < 14)) {
            frames += frame;
            printf("    %s", line);
        }
    }
    fclose(f);
}

static void report(struct job *job, uint64_t at, const char *what,
                   const char *log)
{
    const char *file = job->files->list.at[at % job->files->list.n];
    job->failed++;
    printf("FAILED %s: %s %s\n", file, what, job->progress->why);
    print_log(log);
    size_t n = strlen(job->seeds);
    if (strncmp(file, job->seeds, n) == 0)
        file += n - strlen("seeds"); /* these are made anew each time */
    if (job->verbatim)
        printf("  again: mutate --kind %s --as-is %s\n", job->kind->name, file);
    else
        printf("  again: mutate --kind %s --seed %llu %s\n", job->kind->name,
               (unsigned long long)at, file);
    fflush(stdout);
}

/* Run from..to in a child; returns how many were done for, one at least. */
static uint64_t batch(struct job *job, uint64_t from, uint64_t to)
{
    char log[512], what[64];
    int status = 0;
    struct progress *p = job->progress;
    snprintf(log, sizeof log, "%s/log", job->temp);
    p->at = from;
    p->why[0] = '\0';
    p->cpu = 0;
    p->done = false;
    p->wall = milliseconds(CLOCK_MONOTONIC);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        child(job, from, to, log);
    if (pid < 0) {
        printf("cannot fork: %s\n", strerror(errno));
        job->failed += to - from;
        return to - from;
    }
    bool ended = wait_for(pid, p, &status);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        job->passed += to - from;
        return to - from;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_LEAK &&
        to - from > 1) { /* whose? */
        uint64_t half = (to - from) / 2;
        for (uint64_t n = 0; n < half;)
            n += batch(job, from + n, from + half);
        for (uint64_t n = half; n < to - from;)
            n += batch(job, from + n, to);
        return to - from;
    }
    if (p->done && WIFEXITED(status) && WEXITSTATUS(status) != EXIT_LEAK) {
        /* GCC 12's leak checker crashes now and then, in itself */
        printf("note: no leak check after seed %llu: the checker failed\n",
               (unsigned long long)(to - 1));
        job->passed += to - from;
        return to - from;
    }
    job->passed += p->at - from;
    snprintf(what, sizeof what, "%s %d:",
             ended                 ? "takes too long, killed by"
             : WIFSIGNALED(status) ? "killed by signal"
                                   : "exit code",
             WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_WRONG)
        snprintf(what, sizeof what, "wrong:");
    report(job, p->at, what, log);
    return p->at - from + 1;
}

static void run_job(struct job *job, uint64_t from, uint64_t to)
{
    while (from < to)
        from += batch(job, from, to - from < BATCH ? to : from + BATCH);
}

/* --- the command
 * ------------------------------------------------------------------------ */

struct options {
    const char *kind, *corpus, *write;
    uint64_t from, count;
    bool as_is, compare;
    struct files files;
};

static int usage(void)
{
    fprintf(stderr,
            "usage: mutate [--kind KIND] [--from N] [--count N] [--compare] "
            "[FILE...]\n"
            "       mutate --kind KIND --seed N [--write PATH] FILE\n"
            "       mutate --kind KIND --as-is FILE...\n"
            "       mutate --corpus DIR\n"
            "kinds:");
    for (uint32_t i = 0; i < fuzz_n_kinds; i++)
        fprintf(stderr, " %s", fuzz_kinds[i].name);
    fprintf(stderr, "\n");
    return 2;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (strncmp(arg, "--", 2) != 0) {
            BYI_PUSH(&o->files.list, strdup(arg));
            continue;
        }
        if (strcmp(arg, "--compare") == 0) {
            o->compare = true;
            continue;
        }
        if (strcmp(arg, "--as-is") == 0) {
            o->as_is = true;
            continue;
        }
        if (++i == argc)
            return false;
        if (strcmp(arg, "--kind") == 0)
            o->kind = argv[i];
        else if (strcmp(arg, "--corpus") == 0)
            o->corpus = argv[i];
        else if (strcmp(arg, "--write") == 0)
            o->write = argv[i];
        else if (strcmp(arg, "--from") == 0)
            o->from = strtoull(argv[i], NULL, 10);
        else if (strcmp(arg, "--count") == 0)
            o->count = strtoull(argv[i], NULL, 10);
        else if (strcmp(arg, "--seed") == 0)
            o->from = strtoull(argv[i], NULL, 10), o->count = 1;
        else
            return false;
    }
    bool known = !o->kind;
    for (uint32_t i = 0; i < fuzz_n_kinds && o->kind; i++)
        known = known || strcmp(fuzz_kinds[i].name, o->kind) == 0;
    return known;
}

/* The seeds of a compile, made in a child: the parent never starts threads,
 * for those do not survive a fork. */
static bool make_seeds(const char *folder)
{
    int status = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        bool good = fuzz_make_seeds(folder);
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A file called seeds/NAME is one of those. */
static void find_seeds(struct files *files, const char *seeds)
{
    char path[512];
    for (uint32_t i = 0; i < files->list.n; i++) {
        char *file = files->list.at[i];
        if (strncmp(file, "seeds/", 6) != 0 || access(file, R_OK) == 0)
            continue;
        snprintf(path, sizeof path, "%s%s", seeds, file + 5);
        files->list.at[i] = strdup(path);
        free(file);
    }
}

static void run_kind(const struct options *o, struct job *job)
{
    struct files files = {0};
    char pattern[512];
    job->files = &o->files;
    job->verbatim = o->as_is || o->corpus;
    job->write = o->write;
    job->compare = o->compare;
    if (o->corpus) {
        for (const char *const *s = job->kind->suffixes; *s; s++) {
            snprintf(pattern, sizeof pattern, "%s/*%s", o->corpus, *s);
            add_files(&files, pattern);
        }
        job->files = &files;
    } else if (!o->files.list.n) {
        files = default_files(job->kind, job->seeds);
        job->files = &files;
    }
    uint64_t n = job->files->list.n, failed = job->failed;
    job->progress->taken = 0;
    if (n && job->verbatim)
        run_job(job, 0, n);
    else if (n)
        run_job(job, o->from, o->from + o->count);
    else if (!o->corpus)
        printf("%s: no files to start from\n", job->kind->name);
    if (n)
        printf("%s: from %llu files, %llu good, %llu failed\n", job->kind->name,
               (unsigned long long)n, (unsigned long long)job->progress->taken,
               (unsigned long long)(job->failed - failed));
    free_files(&files);
}

static void remove_folder(const char *folder)
{
    struct files files = {0};
    char pattern[512];
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    add_files(&files, pattern);
    for (uint32_t i = 0; i < files.list.n; i++)
        unlink(files.list.at[i]);
    free_files(&files);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    struct options o = {.count = 300};
    if (!parse(argc, argv, &o))
        return usage();
    setenv("BYOC_NUM_THREADS", "1", 0);
    char temp[] = "/tmp/byoc-mutate-XXXXXX", seeds[64];
    struct progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!mkdtemp(temp) || progress == MAP_FAILED)
        return 2;
    snprintf(seeds, sizeof seeds, "%s/seeds", temp);
    struct job job = {.temp = temp, .seeds = seeds, .progress = progress};
    bool seeded = mkdir(seeds, 0700) == 0 && make_seeds(seeds);
    if (!seeded) {
        printf("cannot make the seeds at %s\n", seeds);
        job.failed++;
    }
    find_seeds(&o.files, seeds);
    for (uint32_t i = 0; i < fuzz_n_kinds && seeded; i++) {
        job.kind = &fuzz_kinds[i];
        if (!o.kind || strcmp(o.kind, job.kind->name) == 0)
            run_kind(&o, &job);
    }
    remove_folder(seeds);
    remove_folder(temp);
    munmap(progress, sizeof *progress);
    free_files(&o.files);
    printf("%llu passed, %llu failed\n", (unsigned long long)job.passed,
           (unsigned long long)job.failed);
    return job.failed ? 1 : 0;
}
