/* SPDX-License-Identifier: Apache-2.0 */
/* tests/fuzz/fuzz.h: a coverage-guided fuzzer for everything that reads bytes
 * from outside.
 *
 *     readers.c   the table: every reader, its inputs, its mutator
 *     fuzz.c      the command; child.c runs inputs in child processes,
 *                 corpus.c keeps inputs that reach new code, cover.c records
 *                 the code that they reach, minimise.c makes inputs small
 *     bytes.c, tokens.c, trees.c, onnx.c, sections.c   mutators
 *     feed_*.c, region.c, run.c   feed an input to the code under test
 *     seeds.c     writes the seeds that are not files of the tree
 *     libfuzzer.c the same table for clang's libFuzzer
 */
#ifndef BYI_FUZZ_H
#define BYI_FUZZ_H

#include "core/base/base.h"

/* --- random numbers: splitmix64 (Steele, Lea, Flood 2014) ---------------- */

/* The state of a sequence of random numbers; any value is a valid seed. */
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

/* A random number from 0 to n - 1; 0 if n is 0. */
static inline uint64_t fuzz_below(struct fuzz_rng *rng, uint64_t n)
{
    return n ? fuzz_next(rng) % n : 0;
}

/* --- mutators: change `bytes` in place ------------------------------------
 * `other` is another input of the same reader, to take parts from; it may be
 * the same one, and is never changed. */

/* A number that code often fails to handle, such as a limit of a type; more
 * often a small one. */
int64_t fuzz_number(struct fuzz_rng *rng);
/* Replace the `n_removed` bytes from bytes->at[at] on with the n bytes at
 * `inserted`, which may be NULL if n is 0. */
void fuzz_splice(struct byi_text *bytes, size_t at, size_t n_removed,
                 const char *inserted, size_t n);
/* Mutate bytes without knowledge of their format. */
void fuzz_bytes(struct fuzz_rng *rng, struct byi_text *bytes,
                const struct byi_text *other);
/* Mutate words, numbers, strings, punctuation and lines of JSON and the text
 * form; now and then whole subtrees. */
void fuzz_tokens(struct fuzz_rng *rng, struct byi_text *bytes,
                 const struct byi_text *other);
/* Mutate text within brackets: items between commas are dropped, doubled,
 * swapped, and copied from elsewhere. Returns false if there are no brackets.
 */
bool fuzz_tree(struct fuzz_rng *rng, struct byi_text *bytes,
               const struct byi_text *other);
/* Mutate fields of an ONNX model, so that the file stays a protobuf message. */
void fuzz_onnx(struct fuzz_rng *rng, struct byi_text *bytes,
               const struct byi_text *other);
/* Mutate an artifact: its bytes, or the content of a section, with hashes and
 * sum corrected. */
void fuzz_sections(struct fuzz_rng *rng, struct byi_text *bytes,
                   const struct byi_text *other);

/* --- readers.c ------------------------------------------------------------ */

/* An input, and where it comes from. */
struct fuzz_case {
    const char *reader;
    const char *origin; /* the seed that it came from: "digits" */
    const char *bytes;
    size_t n;
    struct fuzz_rng rng; /* for choices of the feed */
    const char *temp;    /* a folder for files of this child  */
    const char *seeds;   /* the folder of seeds.c             */
    bool compare;   /* compare results with those of a run without passes */
    bool accepted;  /* set if the reader accepted it     */
    char why[1024]; /* the reason of a failure           */
};

/* A reader of bytes from outside. */
struct fuzz_reader {
    const char *name;
    const char *reads;        /* its kind of input, printed by --list    */
    const char *suffix;       /* of its inputs                           */
    bool needs_written_seeds; /* needs seeds from seeds.c */
    void (*mutate)(struct fuzz_rng *rng, struct byi_text *bytes,
                   const struct byi_text *other);
    /* Feed it an input. Returns false with the reason in `why` on an error. */
    bool (*feed)(struct fuzz_case *c);
};

extern const struct fuzz_reader fuzz_readers[];
extern const uint32_t fuzz_n_readers;
const struct fuzz_reader *fuzz_find_reader(const char *name); /* or NULL */

/* --- feed_*.c, region.c, run.c: feed readers, and check invariants -------
 * Each function returns false, with the reason in c->why, if an invariant does
 * not hold. */

bool fuzz_feed_onnx(struct fuzz_case *c);
bool fuzz_feed_onnx_run(struct fuzz_case *c);
bool fuzz_feed_text(struct fuzz_case *c);
bool fuzz_feed_text_run(struct fuzz_case *c);
bool fuzz_feed_consts(struct fuzz_case *c);
bool fuzz_feed_pattern(struct fuzz_case *c);
bool fuzz_feed_passes(struct fuzz_case *c);
bool fuzz_feed_params(struct fuzz_case *c);
bool fuzz_feed_json(struct fuzz_case *c);
bool fuzz_feed_attributes(struct fuzz_case *c);
bool fuzz_feed_region(struct fuzz_case *c);
bool fuzz_feed_region_run(struct fuzz_case *c);
bool fuzz_feed_artifact(struct fuzz_case *c);
bool fuzz_feed_plan(struct fuzz_case *c);
bool fuzz_feed_manifest(struct fuzz_case *c);
bool fuzz_feed_plugin(struct fuzz_case *c);
bool fuzz_feed_ledger(struct fuzz_case *c);
bool fuzz_feed_costs(struct fuzz_case *c);
bool fuzz_feed_npy(struct fuzz_case *c);
bool fuzz_feed_npz(struct fuzz_case *c);
bool fuzz_feed_tensor(struct fuzz_case *c);
bool fuzz_feed_value(struct fuzz_case *c);
bool fuzz_feed_cgroup(struct fuzz_case *c);

/* Set c->why to the two texts, one after the other. Returns false. */
bool fuzz_wrong(struct fuzz_case *c, const char *what, const char *detail);
/* Check a failure: its status must not be an internal error, and its text must
 * be one sentence. Returns false, with c->why, if it is not. */
bool fuzz_refused(struct fuzz_case *c, const char *what,
                  const struct byoc_error *err);
/* Write the input to a file of this child. The returned path is valid until the
 * next call. */
const char *fuzz_as_file(struct fuzz_case *c, const char *name);
/* Compile the model at `path`, and run it. Returns false with the reason in
 * c->why on an error. */
bool fuzz_compile_and_run(struct fuzz_case *c, const char *path);
/* Run a loaded model, which may refuse with an error. Returns false with the
 * reason in c->why if it violates a condition. */
bool fuzz_run(struct fuzz_case *c, const struct byoc_model *model);

/* --- seeds.c -------------------------------------------------------------- */

/* Write inputs into `folder`: artifacts of a few models and their parts
 * (NAME.so, NAME.plan, NAME.manifest, NAME.ledger, NAME.0.region and so on), a
 * text for each row of oneDNN's patterns, and small files of other kinds. */
bool fuzz_make_seeds(const char *folder);

/* Append a file to `bytes`; write a file. Both return false on failure. */
bool fuzz_read(const char *path, struct byi_text *bytes);
bool fuzz_write(const char *path, const void *bytes, size_t n);

#endif
