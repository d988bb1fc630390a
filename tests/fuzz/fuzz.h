/* tests/fuzz/fuzz.h: mutated input for every reader. mutate.c runs mutants in
 * children and counts, bytes.c, tokens.c and onnx.c make them, kinds.c feeds
 * them to the code under test, seeds.c makes the inputs that a compile gives.
 */
#ifndef BYI_FUZZ_H
#define BYI_FUZZ_H

#include "core/base.h"

/* --- random numbers: splitmix64 (Steele, Lea, Flood 2014) ---------------- */

struct fuzz_rng {
    uint64_t state;
};

static inline uint64_t fuzz_next(struct fuzz_rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0 .. n-1; 0 when n is 0. */
static inline uint64_t fuzz_below(struct fuzz_rng *rng, uint64_t n)
{
    return n ? fuzz_next(rng) % n : 0;
}

/* --- bytes.c, tokens.c, onnx.c: mutations of `bytes`, in place ------------ */

/* Numbers at which code breaks, small ones more often. */
int64_t fuzz_number(struct fuzz_rng *rng);
void fuzz_bytes(struct fuzz_rng *rng, struct byi_text *bytes);
/* Words, numbers, strings, punctuation and lines: of JSON and the text form. */
void fuzz_tokens(struct fuzz_rng *rng, struct byi_text *bytes);
/* Fields of a model, so that the file stays a file; false: it is none. */
bool fuzz_onnx(struct fuzz_rng *rng, struct byi_text *bytes);

/* --- kinds.c ---------------------------------------------------------------
 */

/* A mutant on its way. */
struct fuzz_case {
    const char *kind, *file; /* file: of the seed input           */
    const struct byi_text *original;
    struct byi_text bytes; /* the mutant                        */
    struct fuzz_rng rng;   /* for choices of the one who feeds  */
    const char *temp;      /* a folder for files of this child  */
    const char *seeds;     /* the folder of seeds.c             */
    bool compare;          /* hold results against the plain ones */
    bool taken;            /* out: it was read, or ran          */
    char why[1024];
};

/* One kind of input: the files it starts from and who reads it. */
struct fuzz_kind {
    const char *name;
    const char *const *suffixes; /* of its files, ending in NULL     */
    void (*mutate)(struct fuzz_rng *rng, struct byi_text *bytes);
    /* Feed it; false: wrong, and `why` says how. */
    bool (*feed)(struct fuzz_case *c);
};

extern const struct fuzz_kind fuzz_kinds[];
extern const uint32_t fuzz_n_kinds;

/* --- run.c: compile, load and run what is small enough to ------------------
 */

/* Compile the model at `path`, run it; false: wrong, and c->why says how. */
bool fuzz_compile_and_run(struct fuzz_case *c, const char *path);
/* The same for a model that is loaded: it may refuse, not misbehave. */
bool fuzz_run(struct fuzz_case *c, const struct byoc_model *model);
/* A failure must have a status that is not a bug of byoc's, and one sentence.
 * False: it has not. */
bool fuzz_refused(struct fuzz_case *c, const char *what,
                  const struct byoc_error *err);

/* --- region.c ---------------------------------------------------------------
 */

/* A region: read, probe, load and run it on oneDNN. */
bool fuzz_region(struct fuzz_case *c);

/* --- seeds.c -----------------------------------------------------------------
 */

/* Compile a few models and leave NAME.so and its parts in `folder`: NAME.plan,
 * NAME.manifest, NAME.ledger, NAME.0.region and so on. */
bool fuzz_make_seeds(const char *folder);

/* files */
bool fuzz_read(const char *path, struct byi_text *bytes);
bool fuzz_write(const char *path, const void *bytes, size_t n);
bool fuzz_ends_in(const char *path, const char *suffix);

#endif
