/* SPDX-License-Identifier: Apache-2.0 */
/* corpus.c: the corpus: seeds, and mutants that reached a new edge of the code,
 * or a new number of visits of one.
 */
#include "job.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    BATCH_MS = 4000, /* of CPU time, so that load does not add forks */
    BATCH_INPUTS = 20000,
    LARGE = 4096 /* bytes of an input */
};

uint32_t fuzz_origin(struct fuzz_job *job, const char *path)
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    const size_t n = strcspn(base, ".-");
    for (uint32_t i = 0; i < job->origins.list.n; i++)
        if (strlen(job->origins.list.at[i]) == n &&
            memcmp(job->origins.list.at[i], base, n) == 0)
            return i;
    BYI_PUSH(&job->origins.list, strndup(base, n));
    return job->origins.list.n - 1;
}

bool fuzz_pool_add(struct fuzz_pool *pool, char *bytes, const char *input,
                   uint32_t n, uint32_t origin)
{
    if (pool->n == FUZZ_MAX_ITEMS || n > pool->capacity - pool->used)
        return false;
    if (n)
        memcpy(bytes + pool->used, input, n);
    pool->items[pool->n++] = (struct fuzz_item){pool->used, n, origin};
    pool->used += n;
    return true;
}

void fuzz_corpus_clear(struct fuzz_job *job)
{
    struct fuzz_shared *s = job->shared;
    s->execs = s->accepted = s->edges = 0;
    memset(s->seen, 0, sizeof s->seen);
    s->corpus.n = s->n_seeds = s->n_tried = s->n_kept = s->n_kept_accepted = 0;
    s->corpus.used = 0;
    s->corpus.capacity = FUZZ_POOL;
}

bool fuzz_corpus_read(struct fuzz_job *job, const char *path)
{
    struct fuzz_shared *s = job->shared;
    struct byi_text text = {0};
    bool good = fuzz_read(path, &text) && text.n <= FUZZ_MAX_INPUT &&
                fuzz_pool_add(&s->corpus, s->corpus_bytes, text.at,
                              (uint32_t)text.n, fuzz_origin(job, path));
    s->n_seeds = s->corpus.n;
    byi_text_free(&text);
    return good;
}

/* --- one input ------------------------------------------------------------ */

bool fuzz_run_input(struct fuzz_job *job, const char *bytes, uint32_t n,
                    uint32_t origin)
{
    struct fuzz_shared *s = job->shared;
    /* an exact allocation, so that a sanitizer reports a read past the input */
    char *exact = malloc(n ? n : 1);
    if (!exact)
        return false;
    memcpy(exact, bytes, n);
    memcpy(s->input, bytes, n);
    s->n = n;
    s->origin = origin;
    struct fuzz_case c = {.reader = job->reader->name,
                          .origin = job->origins.list.at[origin],
                          .bytes = exact,
                          .n = n,
                          .rng = {byi_hash(job->variant, bytes, n)},
                          .temp = job->temp,
                          .seeds = job->seeds,
                          .compare = job->compare};
    s->cpu = fuzz_milliseconds(CLOCK_PROCESS_CPUTIME_ID);
    s->wall = fuzz_milliseconds(CLOCK_MONOTONIC);
    s->mutating = false;
    fuzz_cover_reset();
    const bool good = job->reader->feed(&c);
    s->mutating = true;
    const bool is_new = fuzz_cover_merge(s->seen, &s->edges) != 0;
    s->accepted += c.accepted;
    free(exact);
    if (!good) {
        snprintf(s->why, sizeof s->why, "%s", c.why);
        _exit(FUZZ_EXIT_WRONG);
    }
    return is_new;
}

/* --- a batch -------------------------------------------------------------- */

static struct byi_text view(const struct fuzz_shared *s, uint32_t item)
{
    const struct fuzz_item *at = &s->corpus.items[item];
    return (struct byi_text){.at = (char *)(s->corpus_bytes + at->at),
                             .n = at->n};
}

/* Pick one of the kept inputs; in one of three cases, one of the newest 16th.
 * Mostly it is the smallest of four, since the time of an input grows with its
 * size. In half of the cases it is an input that the reader accepted. The
 * smallest inputs are those that the reader rejects early, and their mutants
 * rarely reach later code. */
static uint32_t pick(const struct fuzz_shared *s, struct fuzz_rng *rng)
{
    const bool accepted = s->n_kept_accepted && fuzz_below(rng, 2);
    const uint32_t *list = accepted ? s->kept_accepted : s->kept;
    const uint32_t n = accepted ? s->n_kept_accepted : s->n_kept;
    const uint32_t from = fuzz_below(rng, 3) == 0 ? n - 1 - n / 16 : 0;
    const uint32_t draws = fuzz_below(rng, 8) ? 4 : 1;
    uint32_t best = list[from + fuzz_below(rng, n - from)];
    for (uint32_t i = 1; i < draws; i++) {
        const uint32_t other = list[from + fuzz_below(rng, n - from)];
        if (view(s, other).n < view(s, best).n)
            best = other;
    }
    return best;
}

/* Whether the next input is a seed as it is, not a mutant: always, unless the
 * seeds are more than an eighth of the inputs that are left; then in one of
 * three cases, so that a short run mutates too. */
static bool seed_is_next(const struct fuzz_job *job, struct fuzz_rng *rng)
{
    const struct fuzz_shared *s = job->shared;
    const uint64_t left = s->n_seeds - s->n_tried;
    if (!left)
        return false;
    return s->n_kept == 0 || left * 8 < job->count - s->execs ||
           fuzz_below(rng, 3) == 0;
}

/* Keep the input that ran last. */
static void keep(struct fuzz_shared *s, uint32_t item, bool accepted)
{
    if (s->n_kept == FUZZ_MAX_ITEMS)
        return;
    s->kept[s->n_kept++] = item;
    if (accepted)
        s->kept_accepted[s->n_kept_accepted++] = item;
}

/* Run the next seed. It is kept if it is the first one or reaches something
 * new, or always if the build has no coverage. */
static void try_seed(struct fuzz_job *job)
{
    struct fuzz_shared *s = job->shared;
    const uint32_t at = s->n_tried++;
    const uint64_t accepted = s->accepted;
    const struct fuzz_item *item = &s->corpus.items[at];
    fuzz_pool_add(&s->journal, s->journal_bytes, s->corpus_bytes + item->at,
                  item->n, item->origin);
    if (fuzz_run_input(job, s->corpus_bytes + item->at, item->n,
                       item->origin) ||
        !fuzz_covered() || s->n_kept == 0)
        keep(s, at, s->accepted > accepted);
}

static void try_mutant(struct fuzz_job *job, struct fuzz_rng *rng)
{
    struct fuzz_shared *s = job->shared;
    const uint32_t from = pick(s, rng);
    const struct byi_text parent = view(s, from);
    const struct byi_text other = view(s, pick(s, rng));
    const uint32_t origin = s->corpus.items[from].origin;
    const uint64_t accepted = s->accepted;
    struct byi_text bytes = {0};
    byi_text_add(&bytes, parent.at, parent.n);
    job->reader->mutate(rng, &bytes, &other);
    /* large inputs must not grow: they only get slower */
    const size_t max_bytes = parent.n > LARGE ? parent.n : LARGE;
    const uint32_t n = (uint32_t)(bytes.n < max_bytes ? bytes.n : max_bytes);
    fuzz_pool_add(&s->journal, s->journal_bytes, bytes.at, n, origin);
    if (fuzz_run_input(job, bytes.at ? bytes.at : "", n, origin) &&
        fuzz_pool_add(&s->corpus, s->corpus_bytes, bytes.at, n, origin))
        keep(s, s->corpus.n - 1, s->accepted > accepted);
    byi_text_free(&bytes);
}

void fuzz_batch(struct fuzz_job *job, void *unused)
{
    (void)unused;
    struct fuzz_shared *s = job->shared;
    s->journal.n = 0;
    s->journal.used = 0;
    s->journal.capacity = FUZZ_JOURNAL;
    for (uint32_t i = 0; i < BATCH_INPUTS && s->execs < job->count; i++) {
        struct fuzz_rng rng = {(job->seed << 40) + s->execs};
        s->mutating = true;
        s->execs++; /* a mutator that crashes gets another number next time */
        if (seed_is_next(job, &rng))
            try_seed(job);
        else if (s->n_kept)
            try_mutant(job, &rng);
        if (s->cpu > BATCH_MS || s->wall > job->deadline ||
            s->journal.capacity - s->journal.used < FUZZ_MAX_INPUT)
            return;
    }
}
