/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h: random programs of the whole language, and the checks on each: it
 * prints and parses to itself, no pass changes its results, and the runtime
 * gives the interpreter's results.
 */
#ifndef BYI_TESTS_PROGRAMS_H
#define BYI_TESTS_PROGRAMS_H

#include "core/ir/ir.h"

/* --- make.c ------------------------------------------------------ */

/* The program of a seed: @main and what it uses, and some that it does not.
 * `size` is how many statements @main has, about. Same numbers, same program.
 */
struct byi_module *program_make(uint64_t seed, uint32_t size);

/* --- jitter.c ---------------------------------------------------- */

/* Multiply floats all over the module by almost one: the changes of the results
 * show how exactly they can be expected. */
void program_jitter(struct byi_module *m, uint64_t seed);

/* --- backends.c ----------------------------------------------------------- */

/* Backends for some operators, static; NULL if their tables are wrong. */
struct byi_backends *program_backends(void);

/* --- stages.c ---------------------------------------------------- */

enum { PROGRAM_MAX_STAGES = 64, PROGRAM_MAX_RESULTS = 64 };

/* Where a program comes from: a text, or a seed. */
struct program {
    const char *file; /* the text's name, NULL: of the seed */
    const char *text;
    size_t n;
    const char *side; /* path of the text's constants, or NULL */
    uint64_t seed;
    uint32_t size;
};

struct program_case;

/* What is done with a program, and how often it was. */
struct program_stage {
    const char *name;
    const struct byi_pass *pass; /* NULL: `check` describes the stage */
    enum byoc_status (*check)(struct program_case *c,
                              const struct program_stage *stage,
                              struct byoc_error *err);
    uint64_t every; /* of how many programs it sees one; 0: none */
    uint64_t runs, failed, skipped;
    uint64_t sampled, changed; /* of those sampled, how many did it change */
    double seconds;
};

/* "text", "plan", every known pass, "pipeline", "artifact". Returns how many.
 */
uint32_t program_stages(struct program_stage stages[PROGRAM_MAX_STAGES]);

/* The module of a program, anew. Errors: those of the parser. */
enum byoc_status program_build(const struct program *p, struct byi_module **m,
                               struct byoc_error *err);

/* Run the stages on the program; failed(ctx, ...) is called for each that
 * fails. Returns how many did. Counts in the stages, and the results compared
 * and those of them that may differ by little only. */
struct program_totals {
    uint64_t programs, nodes, results, sharp;
    uint64_t stuck; /* programs that end in an error when run */
};
typedef void (*program_failed_fn)(void *ctx, const struct program *p,
                                  const struct program_stage *stage,
                                  const struct byoc_error *err);
uint32_t program_check(const struct program *p, struct program_stage *stages,
                       uint32_t n, struct program_totals *totals,
                       program_failed_fn failed, void *ctx);

/* The current step, for reports of where the process died. */
extern char program_place[128];

/* The printed module after the stage's pass, and the passes that ran. */
void program_print_after(const struct program *p,
                         const struct program_stage *stage,
                         struct byi_text *out);

#endif
