/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h: random programs of the whole language, and checks of each. Its
 * text must parse to the same program, no pass may change its results, and the
 * runtime must compute the interpreter's results.
 */
#ifndef BYI_TESTS_PROGRAMS_H
#define BYI_TESTS_PROGRAMS_H

#include "core/ir/ir.h"

/* --- make.c ------------------------------------------------------ */

/* The program of a seed: @main, the functions that it uses, and some others.
 * `size` is the approximate number of statements of @main. The same numbers
 * give the same program. The caller frees it. */
struct byi_module *program_make(uint64_t seed, uint32_t size);

/* --- jitter.c ---------------------------------------------------- */

/* Perturb the module: multiply every float constant, and every float result of
 * an operator, by random factors within 2^-20 of 1, and make argmax and argmin
 * break ties the other way. The differences between the results of perturbed
 * copies give the tolerance of the comparisons. */
void program_jitter(struct byi_module *m, uint64_t seed);

/* --- backends.c ----------------------------------------------------------- */

/* Static backends for some operators; NULL if their tables do not compile. */
struct byi_backends *program_backends(void);

/* --- stages.c ---------------------------------------------------- */

enum { PROGRAM_MAX_STAGES = 64, PROGRAM_MAX_RESULTS = 64 };

/* The source of a program: a text, or a seed. */
struct program {
    /* name of the text, for messages; NULL: the program comes from `seed` */
    const char *file;
    const char *text; /* NULL: generate the program from `seed` and `size` */
    size_t n;
    const char *side; /* path of the text's constants, or NULL */
    uint64_t seed;
    uint32_t size;
};

struct program_case;

/* A stage: what is done with each program, and its counts. */
struct program_stage {
    const char *name;
    /* the pass that `check` runs; NULL: the default pipeline, or `check` runs
     * no pass of its own */
    const struct byi_pass *pass;
    enum byoc_status (*check)(struct program_case *c,
                              const struct program_stage *stage,
                              struct byoc_error *err);
    uint64_t every; /* run on every `every`-th program; 0: never */
    uint64_t runs, failed, skipped;
    uint64_t sampled, changed; /* programs compared before and after, and those
                                * that the stage changed */
    double seconds;
};

/* Set the stages: "text", every known pass, "pipeline", "plan", "executor",
 * "artifact". Returns how many there are. */
uint32_t program_stages(struct program_stage stages[PROGRAM_MAX_STAGES]);

/* Build the module of a program, which the caller frees. Returns the parser's
 * errors. */
enum byoc_status program_build(const struct program *p, struct byi_module **m,
                               struct byoc_error *err);

/* Counts of program_check(). A result is bounded if the tolerance of each of
 * its elements is finite. */
struct program_totals {
    uint64_t programs, nodes, results, bounded;
    uint64_t ended_in_error; /* programs that end in an error when run */
};
typedef void (*program_failed_fn)(void *ctx, const struct program *p,
                                  const struct program_stage *stage,
                                  const struct byoc_error *err);
/* Run the stages on the program, and call failed(ctx, ...) for each that fails.
 * If the interpreter cannot run the program, no stage runs, and failed() gets a
 * placeholder stage named "first run", whose `pass` and `check` are NULL.
 * Returns how many fail. Adds to the counts of `stages` and `totals`. */
uint32_t program_check(const struct program *p, struct program_stage *stages,
                       uint32_t n, struct program_totals *totals,
                       program_failed_fn failed, void *ctx);

/* The current step, which a report of a crash prints. */
extern char program_place[128];

/* Append the text of the module after the stage's pass; if it failed, the error
 * as a comment first. */
void program_print_after(const struct program *p,
                         const struct program_stage *stage,
                         struct byi_text *out);

#endif
