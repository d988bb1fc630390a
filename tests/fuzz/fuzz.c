/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.c: the command; `fuzz --help` is its manual. */
#include "job.h"

#include <dlfcn.h>
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/folder.h"

enum {
    MAX_FINDINGS = 60, /* of a reader; then the next reader is fuzzed        */
    MAX_SEED = 65536,  /* bytes; larger files are not used, except artifacts */
    VARIANTS = 12,     /* runs of a file by --as-is, see fuzz_job.variant    */
    MAX_LEAKS = 5      /* of a reader; then the search for leaks stops       */
};

static const char help[] =
    "fuzz: coverage-guided fuzzing of everything that reads bytes from "
    "outside\n"
    "\n"
    "  fuzz [READER...] [--count N | --minutes N] [--seed N] [--out DIR]\n"
    "      mutate inputs; all readers without a name. 2000 inputs each "
    "without\n"
    "      a limit. Inputs that fail are written to DIR/READER/findings, "
    "inputs\n"
    "      that reach new code to DIR/READER/corpus, which the next run "
    "reads.\n"
    "      --compare      compare results of models with those without passes\n"
    "      --no-leaks     do not look for leaks\n"
    "  fuzz READER --as-is FILE...\n"
    "      run files as they are\n"
    "  fuzz READER --minimise FILE\n"
    "      reduce a file that fails, and write it to FILE.min\n"
    "  fuzz READER --distil DIR\n"
    "      delete the files whose coverage smaller files reach as well\n"
    "  fuzz --corpus DIR\n"
    "      run every file of DIR as it is, by each reader of its suffix\n"
    "  fuzz --list\n"
    "      the readers\n";

/* --- files ---------------------------------------------------------------- */

/* Paths of files, which belong to the list. */
struct files {
    BYI_VEC(char *) list;
};

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

static bool ends_in(const char *path, const char *suffix)
{
    const size_t n = strlen(path), k = strlen(suffix);
    return n >= k && strcmp(path + n - k, suffix) == 0;
}

/* Read the reader's seeds: the files in these folders that have its suffix. */
static void read_seeds(struct fuzz_job *job)
{
    static const char *const folders[] = {
        TEST_DIR "/../examples/digits/*",
        TEST_DIR "/fuzz/seeds/*",
        TEST_DIR "/fuzz/corpus/*",
        TEST_DIR "/*/*.ir",
        TEST_DIR "/transform/*/*.ir",
        "/usr/share/libonnx-testdata/data/node/*/model.onnx",
        "/usr/share/libonnx-testdata/data/simple/*/model.onnx",
        "/usr/share/libonnx-testdata/data/pytorch-*/*/model.onnx",
        "/usr/share/libonnx-testdata/data/node/test_[a-c]*/*/input_0.pb",
        "/usr/share/libonnx-testdata/data/node/*seq*/*/*put_0.pb",
        "/usr/share/libonnx-testdata/data/node/*opt*/*/*put_0.pb"};
    struct files files = {0};
    struct stat st;
    char pattern[512];
    for (size_t i = 0; i < BYI_COUNT(folders); i++)
        add_files(&files, folders[i]);
    snprintf(pattern, sizeof pattern, "%s/*", job->seeds);
    add_files(&files, pattern);
    if (job->out) {
        snprintf(pattern, sizeof pattern, "%s/%s/corpus/*", job->out,
                 job->reader->name);
        add_files(&files, pattern);
    }
    fuzz_corpus_clear(job);
    for (uint32_t i = 0; i < files.list.n; i++)
        if (ends_in(files.list.at[i], job->reader->suffix) &&
            stat(files.list.at[i], &st) == 0 &&
            (st.st_size <= MAX_SEED || strcmp(job->reader->suffix, ".so") == 0))
            fuzz_corpus_read(job, files.list.at[i]);
    free_files(&files);
}

/* Make the seeds in a child, since the parent must not start threads, which do
 * not survive a fork. */
static bool make_seeds(const char *folder)
{
    int status = 0;
    fflush(stdout);
    const pid_t pid = fork();
    if (pid == 0) {
        const bool good = fuzz_make_seeds(folder);
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* Make the path OUT/READER/FOLDER/ORIGIN-NUMBER.SUFFIX, and its folders.
 * Returns false without --out. */
static bool make_output_path(const struct fuzz_job *job, const char *folder,
                             uint32_t origin, uint64_t number, char path[1024])
{
    if (!job->out)
        return false;
    mkdir(job->out, 0777);
    snprintf(path, 1024, "%s/%s", job->out, job->reader->name);
    mkdir(path, 0777);
    snprintf(path, 1024, "%s/%s/%s", job->out, job->reader->name, folder);
    mkdir(path, 0777);
    snprintf(path, 1024, "%s/%s/%s/%s-%016llx%s", job->out, job->reader->name,
             folder, job->origins.list.at[origin], (unsigned long long)number,
             job->reader->suffix);
    return true;
}

/* --- findings ------------------------------------------------------------- */

/* A defect, by its key, and how often it was found. */
struct finding {
    char key[160];
    uint64_t count;
};

/* The defects of a reader. */
struct findings {
    BYI_VEC(struct finding) list;
    uint32_t n_leaks;
};

static void report(struct fuzz_job *job, struct findings *f,
                   const struct fuzz_verdict *v)
{
    const struct fuzz_shared *s = job->shared;
    char path[1024] = "";
    for (uint32_t i = 0; i < f->list.n; i++)
        if (strcmp(f->list.at[i].key, v->key) == 0) {
            f->list.at[i].count++;
            return;
        }
    struct finding finding = {.count = 1};
    snprintf(finding.key, sizeof finding.key, "%s", v->key);
    BYI_PUSH(&f->list, finding);
    f->n_leaks += v->leaked;
    if (make_output_path(job, "findings", s->origin,
                         byi_hash(0, v->key, strlen(v->key)), path) &&
        !fuzz_write(path, s->input, s->n))
        printf("cannot write %s: %s\n", path, strerror(errno));
    printf("FAILED %s, from %s, input %llu: %s\n", job->reader->name,
           job->origins.list.at[s->origin], (unsigned long long)s->execs,
           v->what);
    fuzz_print_log(job);
    if (path[0])
        printf("  again: fuzz %s --as-is %s\n", job->reader->name, path);
    fflush(stdout);
}

/* Inputs of the journal, among which find_leak() searches by bisection. */
struct range {
    uint32_t from, to;
};

static void run_range(struct fuzz_job *job, void *ctx)
{
    const struct range *r = ctx;
    const struct fuzz_shared *s = job->shared;
    for (uint32_t i = r->from; i < r->to; i++) {
        const struct fuzz_item *item = &s->journal.items[i];
        fuzz_run_input(job, s->journal_bytes + item->at, item->n, item->origin);
    }
}

static void find_leak(struct fuzz_job *job, struct findings *f)
{
    struct fuzz_shared *s = job->shared;
    struct range r = {0, s->journal.n};
    const uint64_t accepted = s->accepted;
    while (r.to - r.from > 1) {
        struct range half = {r.from, r.from + (r.to - r.from) / 2};
        const struct fuzz_verdict v = fuzz_in_child(job, run_range, &half);
        if (v.leaked)
            r.to = half.to;
        else
            r.from = half.to;
    }
    const struct fuzz_verdict v = fuzz_in_child(job, run_range, &r);
    s->accepted = accepted;
    if (v.leaked)
        report(job, f, &v);
    else
        printf("note: a batch of %s leaked, and no input of it alone does\n",
               job->reader->name);
    if (!v.leaked || f->n_leaks >= MAX_LEAKS)
        job->leaks = false;
}

/* --- one reader ----------------------------------------------------------- */

static void write_corpus(const struct fuzz_job *job)
{
    const struct fuzz_shared *s = job->shared;
    char path[1024];
    for (uint32_t i = 0; i < s->n_kept; i++) {
        const struct fuzz_item *item = &s->corpus.items[s->kept[i]];
        const char *bytes = s->corpus_bytes + item->at;
        if (s->kept[i] >= s->n_seeds &&
            make_output_path(job, "corpus", item->origin,
                             byi_hash(0, bytes, item->n), path))
            fuzz_write(path, bytes, item->n);
    }
}

/* The CPU time of all children that have ended. */
static double cpu_seconds(void)
{
    struct rusage u = {0};
    getrusage(RUSAGE_CHILDREN, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* The rate is per second of CPU time, which other processes do not lengthen. */
static void print_totals(const struct fuzz_job *job, const struct findings *f,
                         double start_seconds)
{
    const struct fuzz_shared *s = job->shared;
    const double seconds = cpu_seconds() - start_seconds + 1e-3;
    printf("%-11s %9llu inputs %8.1f s of CPU %7.0f/s %5.1f%% accepted %7llu "
           "edges %6u kept %3u findings\n",
           job->reader->name, (unsigned long long)s->execs, seconds,
           (double)s->execs / seconds,
           s->execs ? 100.0 * (double)s->accepted / (double)s->execs : 0.0,
           (unsigned long long)s->edges, s->n_kept, f->list.n);
    fflush(stdout);
}

/* Fuzz a reader. Returns true if it has no finding. */
static bool fuzz_reader(struct fuzz_job *job)
{
    struct findings f = {0};
    const struct fuzz_shared *s = job->shared;
    const bool leaks = job->leaks;
    const double start_seconds = cpu_seconds();
    int64_t printed_at = fuzz_milliseconds(CLOCK_MONOTONIC);
    read_seeds(job);
    if (!s->n_seeds) {
        printf("%s: no inputs to start from\n", job->reader->name);
        return false;
    }
    while (s->execs < job->count && f.list.n < MAX_FINDINGS &&
           fuzz_milliseconds(CLOCK_MONOTONIC) < job->deadline) {
        const struct fuzz_verdict v = fuzz_in_child(job, fuzz_batch, NULL);
        if (v.bad && v.leaked)
            find_leak(job, &f);
        else if (v.bad)
            report(job, &f, &v);
        if (fuzz_milliseconds(CLOCK_MONOTONIC) - printed_at > 60000) {
            printed_at = fuzz_milliseconds(CLOCK_MONOTONIC);
            print_totals(job, &f, start_seconds);
        }
    }
    print_totals(job, &f, start_seconds);
    for (uint32_t i = 0; i < f.list.n; i++)
        printf("  %8llu times: %s\n", (unsigned long long)f.list.at[i].count,
               f.list.at[i].key);
    write_corpus(job);
    const bool good = f.list.n == 0;
    byi_vec_free(f.list.at);
    job->leaks = leaks;
    return good;
}

/* --- files as they are ---------------------------------------------------- */

static void run_variants(struct fuzz_job *job, void *ctx)
{
    const struct byi_text *bytes = ctx;
    for (job->variant = 0; job->variant < VARIANTS; job->variant++)
        fuzz_run_input(job, bytes->at, (uint32_t)bytes->n, job->shared->origin);
}

static bool run_file(struct fuzz_job *job, const char *path)
{
    struct byi_text bytes = {0};
    if (!fuzz_read(path, &bytes) || bytes.n > FUZZ_MAX_INPUT) {
        printf("FAILED cannot read %s\n", path);
        return false;
    }
    job->shared->origin = fuzz_origin(job, path);
    const struct fuzz_verdict v = fuzz_in_child(job, run_variants, &bytes);
    if (v.bad) {
        printf("FAILED %s: %s: %s\n", job->reader->name, path, v.what);
        fuzz_print_log(job);
    }
    byi_text_free(&bytes);
    return !v.bad;
}

static bool minimise(struct fuzz_job *job, const char *path)
{
    struct byi_text bytes = {0};
    char to[1024];
    if (!fuzz_read(path, &bytes) || bytes.n > FUZZ_MAX_INPUT) {
        printf("cannot read %s\n", path);
        return false;
    }
    const uint32_t origin = fuzz_origin(job, path);
    const size_t n_before = bytes.n;
    const struct fuzz_verdict v =
        fuzz_probe(job, bytes.at, (uint32_t)bytes.n, origin);
    if (v.bad)
        fuzz_minimise(job, &bytes, origin, v.key);
    snprintf(to, sizeof to, "%s.min", path);
    const bool good = v.bad && fuzz_write(to, bytes.at, bytes.n);
    if (good)
        printf("%s: %zu bytes of %zu: %s\n", to, bytes.n, n_before, v.what);
    else if (v.bad)
        printf("cannot write %s: %s\n", to, strerror(errno));
    else
        printf("%s: found an input that passes, expected one that fails\n",
               path);
    byi_text_free(&bytes);
    return good;
}

static bool distil(struct fuzz_job *job, const char *folder)
{
    struct fuzz_shared *s = job->shared;
    struct files files = {0};
    char pattern[1024];
    snprintf(pattern, sizeof pattern, "%s/*%s", folder, job->reader->suffix);
    add_files(&files, pattern);
    fuzz_corpus_clear(job);
    bool good = files.list.n > 0;
    for (uint32_t i = 0; i < files.list.n && good; i++)
        good = fuzz_corpus_read(job, files.list.at[i]);
    if (good)
        good = !fuzz_in_child(job, fuzz_distil, NULL).bad && s->n_kept > 0;
    bool *keep = calloc(files.list.n + 1, sizeof *keep);
    for (uint32_t i = 0; i < s->n_kept && good && keep; i++)
        keep[s->kept[i]] = true;
    for (uint32_t i = 0; i < files.list.n && good && keep; i++)
        if (!keep[i])
            unlink(files.list.at[i]);
    printf("%s: %u of %u files kept\n", folder, good ? s->n_kept : files.list.n,
           files.list.n);
    free(keep);
    free_files(&files);
    return good;
}

/* --- the command ---------------------------------------------------------- */

enum mode { FUZZ, AS_IS, MINIMISE, DISTIL, CORPUS, LIST };

/* The command line. count 0 and minutes 0: no limit was given. */
struct options {
    enum mode mode;
    uint64_t seed, count;
    double minutes;
    const char *out, *corpus;
    bool compare, no_leaks;
    BYI_VEC(const struct fuzz_reader *) readers;
    BYI_VEC(const char *) files;
};

static bool parse_option(struct options *o, const char *name, const char *value)
{
    static const struct {
        const char *name;
        enum mode mode;
    } modes[] = {{"--as-is", AS_IS},
                 {"--minimise", MINIMISE},
                 {"--distil", DISTIL},
                 {"--list", LIST}};
    for (size_t i = 0; i < BYI_COUNT(modes); i++)
        if (strcmp(name, modes[i].name) == 0) {
            o->mode = modes[i].mode;
            return true;
        }
    if (!value)
        return false;
    if (strcmp(name, "--corpus") == 0)
        o->corpus = value, o->mode = CORPUS;
    else if (strcmp(name, "--count") == 0)
        o->count = strtoull(value, NULL, 10);
    else if (strcmp(name, "--minutes") == 0)
        o->minutes = strtod(value, NULL);
    else if (strcmp(name, "--seed") == 0)
        o->seed = strtoull(value, NULL, 10);
    else if (strcmp(name, "--out") == 0)
        o->out = value;
    else
        return false;
    return true;
}

static bool takes_value(const char *name)
{
    static const char *const names[] = {"--corpus", "--count", "--minutes",
                                        "--seed", "--out"};
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static bool parse(int argc, char **argv, struct options *o)
{
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        const struct fuzz_reader *reader = fuzz_find_reader(arg);
        if (strcmp(arg, "--compare") == 0) {
            o->compare = true;
        } else if (strcmp(arg, "--no-leaks") == 0) {
            o->no_leaks = true;
        } else if (strncmp(arg, "--", 2) == 0) {
            if (!parse_option(o, arg, i + 1 < argc ? argv[i + 1] : NULL))
                return false;
            i += takes_value(arg);
        } else if (reader) {
            BYI_PUSH(&o->readers, reader);
        } else if (o->mode != FUZZ) {
            BYI_PUSH(&o->files, arg);
        } else {
            fprintf(stderr, "fuzz: no reader is called '%s'; see --list\n",
                    arg);
            return false;
        }
    }
    const bool needs_files =
        o->mode == AS_IS || o->mode == MINIMISE || o->mode == DISTIL;
    return !needs_files || (o->readers.n == 1 && o->files.n > 0);
}

/* Run the files as they are, minimise them, or distil the folders. Returns how
 * many failed. */
static uint32_t run_files(const struct options *o, struct fuzz_job *job)
{
    static bool (*const runs[])(struct fuzz_job *, const char *) = {
        [AS_IS] = run_file, [MINIMISE] = minimise, [DISTIL] = distil};
    uint32_t n_failed = 0;
    job->reader = o->readers.at[0];
    for (uint32_t i = 0; i < o->files.n; i++)
        n_failed += !runs[o->mode](job, o->files.at[i]);
    if (o->mode == AS_IS)
        printf("%u passed, %u failed\n", o->files.n - n_failed, n_failed);
    return n_failed;
}

static uint32_t run_corpus(const struct options *o, struct fuzz_job *job)
{
    uint32_t n_failed = 0, n_passed = 0;
    for (uint32_t i = 0; i < fuzz_n_readers; i++) {
        struct files files = {0};
        char pattern[1024];
        job->reader = &fuzz_readers[i];
        snprintf(pattern, sizeof pattern, "%s/*%s", o->corpus,
                 job->reader->suffix);
        add_files(&files, pattern);
        for (uint32_t k = 0; k < files.list.n; k++)
            *(run_file(job, files.list.at[k]) ? &n_passed : &n_failed) += 1;
        free_files(&files);
    }
    printf("%u passed, %u failed\n", n_passed, n_failed);
    return n_failed + (n_passed == 0);
}

static uint32_t run_readers(const struct options *o, struct fuzz_job *job)
{
    uint32_t n_failed = 0;
    const uint32_t n = o->readers.n ? o->readers.n : fuzz_n_readers;
    for (uint32_t i = 0; i < n; i++) {
        job->reader = o->readers.n ? o->readers.at[i] : &fuzz_readers[i];
        job->count = o->count ? o->count : o->minutes > 0 ? UINT64_MAX : 2000;
        job->deadline = INT64_MAX;
        if (o->minutes > 0)
            job->deadline = fuzz_milliseconds(CLOCK_MONOTONIC) +
                            (int64_t)(o->minutes * 60000);
        n_failed += !fuzz_reader(job);
    }
    printf("%u readers passed, %u failed\n", n - n_failed, n_failed);
    return n_failed;
}

static bool needs_seeds(const struct options *o)
{
    for (uint32_t i = 0; i < o->readers.n; i++)
        if (o->readers.at[i]->needs_written_seeds)
            return true;
    return o->readers.n == 0;
}

static uint32_t run(const struct options *o, struct fuzz_job *job)
{
    if (needs_seeds(o) && !make_seeds(job->seeds)) {
        printf("FAILED: cannot make the seeds in %s\n", job->seeds);
        return 1;
    }
    /* loaded here, so that it has the same address in every child, which
     * coverage depends on */
    if (!dlopen(BUILD_DIR "/libbyoc_backend_dnnl.so", RTLD_NOW | RTLD_LOCAL)) {
        printf("FAILED: no plug-in: %s\n", dlerror());
        return 1;
    }
    if (o->mode == FUZZ)
        return run_readers(o, job);
    return o->mode == CORPUS ? run_corpus(o, job) : run_files(o, job);
}

/* Restart without randomised addresses, so that a seed gives the same run. If
 * that is not allowed, coverage differs a little from run to run. */
static void fix_addresses(char **argv)
{
    const int flags = personality(0xffffffff);
    if (flags == -1 || (flags & ADDR_NO_RANDOMIZE) ||
        personality((unsigned long)flags | ADDR_NO_RANDOMIZE) == -1)
        return;
    execv("/proc/self/exe", argv);
}

static int list_readers(void)
{
    for (uint32_t i = 0; i < fuzz_n_readers; i++)
        printf("%-11s %-12s %s\n", fuzz_readers[i].name, fuzz_readers[i].suffix,
               fuzz_readers[i].reads);
    return 0;
}

int main(int argc, char **argv)
{
    struct options o = {.seed = 1};
    char seeds[300];
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        printf("%s", help);
        return 0;
    }
    if (!parse(argc, argv, &o)) {
        fprintf(stderr, "%s", help);
        return 2;
    }
    if (o.mode == LIST)
        return list_readers();
    fix_addresses(argv);
    setenv("BYOC_NUM_THREADS", "1", 0);
    const char *temp =
        make_test_folder(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : NULL);
    struct fuzz_shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!temp || shared == MAP_FAILED)
        return 2;
    snprintf(seeds, sizeof seeds, "%s/seeds", temp);
    struct fuzz_job job = {.shared = shared,
                           .temp = temp,
                           .seeds = seeds,
                           .out = o.out,
                           .compare = o.compare,
                           .leaks = !o.no_leaks,
                           .seed = o.seed};
    const uint32_t n_failed = mkdir(seeds, 0700) == 0 ? run(&o, &job) : 1;
    munmap(shared, sizeof *shared);
    for (uint32_t i = 0; i < job.origins.list.n; i++)
        free(job.origins.list.at[i]);
    byi_vec_free(job.origins.list.at);
    byi_vec_free(o.readers.at);
    byi_vec_free(o.files.at);
    return n_failed ? 1 : 0;
}
