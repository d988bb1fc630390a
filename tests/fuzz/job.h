/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/job.h: shared by the fuzzer's own files. The parent process never
 * runs code under test. It forks children that do, one after the other.
 * Everything that must outlive a crash is in memory that both share.
 */
#ifndef BYI_FUZZ_JOB_H
#define BYI_FUZZ_JOB_H

#include <time.h>

#include "cover.h"

enum {
    FUZZ_MAX_INPUT = 1 << 20, /* bytes */
    FUZZ_MAX_ITEMS = 1 << 18,
    FUZZ_POOL = 1 << 30,     /* bytes of the corpus, mostly untouched pages */
    FUZZ_JOURNAL = 64 << 20, /* bytes of the inputs of one batch            */
    FUZZ_EXIT_WRONG = 91     /* exit code of a child after a wrong result   */
};

/* An input in one of the pools: n bytes at offset `at` of the pool's bytes. */
struct fuzz_item {
    uint64_t at;
    uint32_t n, origin;
};

/* Inputs whose bytes follow one another: `used` of `capacity` bytes. */
struct fuzz_pool {
    uint64_t used, capacity;
    uint32_t n;
    struct fuzz_item items[FUZZ_MAX_ITEMS];
};

/* Memory that the parent shares with its children. */
struct fuzz_shared {
    /* the progress of the child */
    volatile bool done;         /* the child has run its inputs           */
    volatile bool mutating;     /* the child makes the next input         */
    volatile int64_t cpu, wall; /* milliseconds, when the input started   */
    char why[1024];
    /* the input that runs */
    uint32_t n, origin;
    char input[FUZZ_MAX_INPUT];
    /* totals of a reader */
    uint64_t execs, accepted, edges;
    uint8_t seen[FUZZ_MAP];
    /* the corpus: first the seeds, then inputs that reached new coverage */
    struct fuzz_pool corpus;
    uint32_t n_seeds, n_tried; /* seeds, and those that have run         */
    /* items that are mutated, and those of them that the reader accepted */
    uint32_t n_kept, n_kept_accepted;
    uint32_t kept[FUZZ_MAX_ITEMS];
    uint32_t kept_accepted[FUZZ_MAX_ITEMS];
    struct fuzz_pool journal; /* inputs of this batch                   */
    char corpus_bytes[FUZZ_POOL];
    char journal_bytes[FUZZ_JOURNAL];
};

/* The names of seeds. */
struct fuzz_origins {
    BYI_VEC(char *) list;
};

/* What the command is to do, with one reader at a time. */
struct fuzz_job {
    const struct fuzz_reader *reader;
    struct fuzz_shared *shared;
    struct fuzz_origins origins; /* names of seeds, by number             */
    const char *temp, *seeds;    /* folders: files of children; from seeds.c */
    const char *out;             /* a folder for findings, corpora        */
    bool compare;
    bool leaks; /* look for leaks                        */
    uint64_t seed, count;
    uint64_t variant; /* selects the feed's random choices for an input */
    int64_t deadline; /* milliseconds; INT64_MAX: none         */
};

/* --- corpus.c ------------------------------------------------------------- */

/* The number of the origin of a file: its name up to the first '.' or '-'. */
uint32_t fuzz_origin(struct fuzz_job *job, const char *path);
/* Add an input to a pool, whose bytes are at `bytes`. Returns false if the pool
 * is full. */
bool fuzz_pool_add(struct fuzz_pool *pool, char *bytes, const char *input,
                   uint32_t n, uint32_t origin);
/* Forget the last reader's corpus and coverage. */
void fuzz_corpus_clear(struct fuzz_job *job);
/* Add a file to the corpus as a seed. Returns false if it cannot be read, or is
 * too large. */
bool fuzz_corpus_read(struct fuzz_job *job, const char *path);
/* Fuzz until the batch is full or the job is over: the work of a child. */
void fuzz_batch(struct fuzz_job *job, void *unused);
/* Run one input. Returns true if it reached new coverage. Ends the child if the
 * feed function finds that the reader violates a condition. */
bool fuzz_run_input(struct fuzz_job *job, const char *bytes, uint32_t n,
                    uint32_t origin);

/* --- child.c -------------------------------------------------------------- */

/* How a child ended. It is bad if an input crashed, took too long, leaked, or
 * violated a condition of its feed function. */
struct fuzz_verdict {
    bool bad, leaked;
    char key[160];   /* the same for inputs that show the same defect */
    char what[1400]; /* a line for people                             */
};

/* The time of this clock in milliseconds. */
int64_t fuzz_milliseconds(clockid_t clock);
/* Do `work` in a child. The verdict is good if the work ends without a failure
 * and leaks nothing. */
struct fuzz_verdict fuzz_in_child(struct fuzz_job *job,
                                  void (*work)(struct fuzz_job *, void *),
                                  void *ctx);
/* Run this input alone, in a child. */
struct fuzz_verdict fuzz_probe(struct fuzz_job *job, const char *bytes,
                               uint32_t n, uint32_t origin);
/* Print the sanitizer's report on the last bad child to stdout. */
void fuzz_print_log(const struct fuzz_job *job);

/* --- minimise.c ----------------------------------------------------------- */

/* Minimise the input `bytes` in place, as long as a child reports a defect with
 * this key. The same input gives the same result. */
void fuzz_minimise(struct fuzz_job *job, struct byi_text *bytes,
                   uint32_t origin, const char *key);
/* Select the smallest seeds of the corpus that together reach the coverage of
 * all seeds. */
void fuzz_distil(struct fuzz_job *job, void *unused);

#endif
