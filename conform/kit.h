/* SPDX-License-Identifier: Apache-2.0 */
/* conform/kit.h: declares what the files of the conformance kit share. A case
 * is a function that runs in a child process (child.c), where it opens the
 * plug-in, and writes its verdict to shared memory. The kit therefore continues
 * after a plug-in crashes or hangs.
 */
#ifndef BYI_KIT_H
#define BYI_KIT_H

#include <byoc/byoc.h>

#include "generate.h"

#include "compile/code.h"
#include "core/base/child.h"
#include "core/ir/ir.h"
#include "partition/partition.h"
#include "runtime/internal.h"

enum { BYI_KIT_MAX_IO = BYI_MATCH_MAX_OPERANDS };

/* The rules that a plug-in must keep (rules.def). */
enum byi_conform_rule {
#define RULE(id, name, text) BYI_RULE_##id,
#include "rules.def"
    BYI_N_RULES
};
/* The exit code of a case in which valgrind found an error. */
enum { BYI_VALGRIND_CODE = 99 };

/* A row of rules.def: the rule's name in scorecards, and its text. */
struct byi_rule_row {
    const char *name, *text;
};
extern const struct byi_rule_row byi_kit_rules[BYI_N_RULES]; /* child.c */

/* The outcome of a case. */
enum byi_outcome {
    BYI_PASSED,
    BYI_FAILED,
    BYI_REFUSED, /* the plug-in refused the generated graphs, with a reason */
    BYI_UNTESTED /* no graph could be generated, or the case was skipped */
};

/* The result of a case, in memory that the kit shares with the case's process.
 */
struct byi_verdict {
    enum byi_outcome outcome;
    enum byi_conform_rule rule;
    bool done;          /* the case ran to its end */
    char text[1400];    /* the error, the reason of a refusal, or a note */
    char printed[400];  /* the first line that the process printed */
    char program[4000]; /* of a case with several rows: the graph as text */
    double seconds;     /* duration of the case */
    /* of a case of chains: how many it tried to generate, and how many ran */
    uint32_t n_chains, n_ran;
};

/* The plug-in under test, and the options of the test. */
struct byi_kit {
    const char *path; /* of the plug-in */
    uint64_t seed;
    double seconds; /* time limit of one case */
    enum byoc_codegen codegen;
    struct byi_codes codes;      /* the C from compile(); used in a child */
    struct byi_verdict *verdict; /* in shared memory; used in a child */
};

struct byi_kit_case;
/* A function that runs a case. */
typedef void byi_kit_case_fn(struct byi_kit *kit, const struct byi_kit_case *c);

/* A case: a function, and what it tests. */
struct byi_kit_case {
    const char *name;
    byi_kit_case_fn *run;
    const char *row; /* a row's name, or the folder of ONNX's case; or NULL */
    uint32_t number; /* of the random graph */
};

/* --- child.c ------------------------------------------------------------ */

/* Run the case in a child process, and set *verdict to its result. */
void byi_kit_run_case(struct byi_kit *kit, const struct byi_kit_case *c,
                      struct byi_verdict *verdict);
/* In a child: end the case with this verdict, and exit. */
_Noreturn void byi_kit_end(struct byi_kit *kit, enum byi_outcome outcome,
                           enum byi_conform_rule rule, const char *format, ...)
    BYI_PRINTF(4, 5);
#define byi_kit_failed(kit, rule, ...)                                         \
    byi_kit_end(kit, BYI_FAILED, rule, __VA_ARGS__)

/* --- zones.c: guarded memory, in a child --------------------------------- */

/* The access that a plug-in has to a zone. */
enum byi_zone_access { BYI_LENT_READ, BYI_LENT_WRITE, BYI_LENT_GONE };

/* Guarded memory of `bytes` bytes, which ends at most align - 1 bytes before an
 * inaccessible page (align 0: directly before it). An access past its end, a
 * write to read-only memory, or an access to a zone that is GONE ends the case
 * with a message. `what` names the zone in messages, as in "input 0"; it is
 * copied. The zone lives until the process ends or, once GONE, until thousands
 * of others are created after it. */
struct byi_zone;
struct byi_zone *byi_zone_new(struct byi_kit *kit, uint64_t bytes,
                              uint64_t align, const char *what);
/* The address of the zone's first byte. */
void *byi_zone_data(const struct byi_zone *zone);
/* Change the access to the zone. GONE also discards its contents. */
void byi_zone_lend(struct byi_zone *zone, enum byi_zone_access access);
/* End the case if the bytes around the zone's data have changed. */
void byi_zone_check(struct byi_kit *kit, const struct byi_zone *zone);
/* Check the zone whose byi_zone_data is `data`, and make it inaccessible;
 * does nothing if no zone has this data. */
void byi_zone_free(struct byi_kit *kit, const void *data);
/* Install the handler of faults. */
void byi_zones_watch(struct byi_kit *kit);

/* --- host.c: the host that plug-ins see, in a child ----------------------- */

/* The host's services, which record every live block and failure. */
const struct byoc_host *byi_kit_host(struct byi_kit *kit);
/* Use one thread from now on, since the work is too small for more. Call it
 * before the plug-in is opened. */
void byi_host_serial(void);
/* The host's records. */
struct byi_host_records {
    uint32_t acquired; /* calls of acquire() so far */
    uint32_t live;     /* blocks that are not released */
    uint64_t bytes;    /* of these blocks */
    uint32_t fails;    /* failures that are not freed */
};
struct byi_host_records byi_host_records(void);
/* Make acquire() return NULL from its n-th call after this one, counted from 0;
 * UINT32_MAX: never. */
void byi_host_exhaust(uint32_t n);
/* End the case if there are more live blocks or failures than in `before`.
 * `after` names the last call in the message. */
void byi_host_check_balance(struct byi_kit *kit,
                            const struct byi_host_records *before,
                            const char *after);
/* The text and code of a failure, which this frees. The text is static memory,
 * until the next call. */
const char *byi_kit_read_and_free_fail(struct byoc_fail *fail, uint32_t *code);

/* --- sample.c: random graphs that the plug-in accepts --------------------- */

/* Open the plug-in, or return the open one; ends the case if that fails. */
const struct byoc_backend *byi_kit_backend(struct byi_kit *kit);

/* A composite, or a region of several, that the plug-in accepted. Free it with
 * byi_sample_free. */
struct byi_sample {
    struct byi_module *m;
    uint32_t func; /* of the composite or region, in m */
    bool joined;   /* a region of several: the backend may refuse to build it */
    uint32_t n_in, n_out;
    const struct byi_type *in[BYI_KIT_MAX_IO], *out[BYI_KIT_MAX_IO];
    struct byi_text json;       /* the region, as the plug-in receives it */
    uint32_t *consts, n_consts; /* indices of the module's constants */
    struct byi_arena *arena;
};
/* Generate graph `number` of the row, which the backend accepts as a whole
 * under that row's name. Ends the case if the backend accepts no graph in many
 * tries. */
void byi_sample_make(struct byi_kit *kit, const char *row, uint32_t number,
                     struct byi_sample *sample);
/* Like byi_sample_make, for the first number whose graph the backend accepts;
 * ends the case if there is none. */
void byi_sample_make_first(struct byi_kit *kit, const char *row,
                           struct byi_sample *sample);

/* Make a sample of a region of several kernels, from random rows. Ends the case
 * if none can be generated. */
void byi_sample_region(struct byi_kit *kit, uint32_t number,
                       struct byi_sample *sample);

/* The seed of sample `number` of a row or of another kind `what`: a hash of the
 * kit's seed, `what` and `number`. */
uint64_t byi_kit_seed(const struct byi_kit *kit, const char *what,
                      uint64_t number);

/* Make a sample of the largest region of chain `number`, of 1 to
 * BYI_GENERATE_MAX_ROWS random rows. Returns false if no chain could be
 * generated. */
bool byi_sample_chain(struct byi_kit *kit, uint64_t number,
                      struct byi_sample *sample);
/* Free the members of *sample, but not *sample itself. */
void byi_sample_free(struct byi_sample *sample);

/* --- session.c: calls the plug-in, from compile() to unload() ------------- */

/* A sample that the plug-in has built. */
struct byi_session {
    const struct byi_sample *sample;
    struct byi_code *code; /* of the C from compile(); NULL: it returned none */
    void *compiled;        /* the result of load() */
    struct byi_zone *consts[BYI_KIT_MAX_IO]; /* NULL: not copied yet */
};
/* The arguments of one call of the plug-in that receives a region, in zones. */
struct byi_lent_region {
    struct byoc_region *region;
    struct byi_zone *zones[BYI_KIT_MAX_IO * 2 + 4];
    uint32_t n; /* number of zones */
};
/* Copy the sample's region to zones: its text (or blob), the symbol that
 * compile() must define, and the function that its C was compiled to. The last
 * two may be NULL. Constants stay accessible until unload(), so `session` keeps
 * them. */
struct byi_lent_region byi_session_lend(struct byi_kit *kit,
                                        struct byi_session *session,
                                        const void *text, uint64_t bytes,
                                        const char *symbol, byi_unit_fn code);
/* Make these zones inaccessible, after the call. */
void byi_session_take_back(struct byi_lent_region *lent);
/* Set *blob to the result of compile() for the sample's region, or to the
 * region's text if the backend has no compile(). Free it with
 * byi_kit_blob_free. Returns the failure of compile(), or NULL. */
struct byoc_fail *byi_kit_compile(struct byi_kit *kit, struct byi_session *s,
                                  struct byoc_blob *blob);
/* Release the blob's memory to the host, and set blob->data to NULL. */
void byi_kit_blob_free(struct byi_kit *kit, struct byoc_blob *blob);
/* Call compile() and load(). Ends the case if they fail. */
void byi_session_open(struct byi_kit *kit, const struct byi_sample *sample,
                      struct byi_session *s);
/* Like byi_session_open, but if the plug-in refuses a region of several
 * kernels, which is allowed, returns false and sets *why to the reason. */
bool byi_session_try(struct byi_kit *kit, const struct byi_sample *sample,
                     struct byi_session *s, const char **why);
/* Call unload(), and make the constants inaccessible. */
void byi_session_close(struct byi_kit *kit, struct byi_session *s);
/* Call load() with this blob. Returns its failure, or NULL. */
struct byoc_fail *byi_kit_load(struct byi_kit *kit, struct byi_session *s,
                               const struct byoc_blob *blob);
/* Set *state to the state that the backend's run() requires: memory of
 * state_bytes() bytes, the result of state_new(), or NULL. Free it with
 * byi_kit_state_close. Returns the failure of state_new(), or NULL. */
struct byoc_fail *byi_kit_state_new(struct byi_kit *kit, struct byi_session *s,
                                    void **state);
/* Return the state that byi_kit_state_new sets; end the case if that fails. */
void *byi_kit_state_open(struct byi_kit *kit, struct byi_session *s);
/* Free a state, as the plug-in requires it: with state_free(), or as memory of
 * the kit. */
void byi_kit_state_close(struct byi_kit *kit, struct byi_session *s,
                         void *state);

/* Return scratch memory for a run, with arbitrary contents; NULL if the backend
 * has no scratch_bytes(). End the case if that function fails. */
void *byi_kit_scratch_open(struct byi_kit *kit, struct byi_session *s);
void byi_kit_scratch_close(struct byi_kit *kit, void *scratch);

/* Random inputs, and the results of native kernels. `slack` is twice the
 * largest change of each result element when inputs are perturbed by 32 units
 * of their precision, and results of operators within their error bounds. The
 * tolerance includes it, since a difference of close numbers, or a division by
 * a small one, amplifies earlier errors. */
struct byi_expected {
    struct byi_tensor in[BYI_KIT_MAX_IO], out[BYI_KIT_MAX_IO];
    double *slack[BYI_KIT_MAX_IO];
    const volatile uint32_t *cancel; /* for the run's arguments; or NULL */
};
/* Set *expected for random inputs of this seed; its memory is in `arena`. Ends
 * the case if native kernels cannot run the sample. */
void byi_kit_expect(struct byi_kit *kit, const struct byi_sample *sample,
                    uint64_t seed, struct byi_arena *arena,
                    struct byi_expected *expected);
/* Run on guarded memory, aligned to `align` bytes (0: to elements). Returns the
 * failure of run(), or NULL; then found[] are copies of the results, in
 * `arena`.
 */
struct byoc_fail *byi_kit_run(struct byi_kit *kit, struct byi_session *s,
                              void *state, const struct byi_expected *expected,
                              uint64_t align, struct byi_arena *arena,
                              struct byi_tensor *found);
/* End the case if results differ from the expected ones. */
void byi_kit_compare(struct byi_kit *kit, const struct byi_sample *sample,
                     const struct byi_expected *expected,
                     const struct byi_tensor *found);
/* Run on random inputs of this seed; end the case if results differ from the
 * results of native kernels. */
void byi_kit_run_checked(struct byi_kit *kit, struct byi_session *s,
                         void *state, uint64_t seed, uint64_t align);

/* --- bounds.c ------------------------------------------------------------- */

/* The epsilon of a float type: the difference between 1 and the next number.
 * For other types the epsilon of float32. */
double byi_kit_epsilon(enum byoc_dtype dtype);
/* The tolerance for an output of `dtype` of function `func`, relative to the
 * native kernels: |found - expected| <= relative (|expected| + max |expected|)
 * + absolute + slack. If the function is not continuous, `share` of the
 * elements may exceed it: they may jump to the next value. */
struct byi_precision {
    double relative, absolute;
    double share;
};
struct byi_precision byi_precision_of(const struct byi_module *m, uint32_t func,
                                      enum byoc_dtype dtype);
/* How byi_kit_perturb perturbs numbers. */
struct byi_perturbation {
    uint64_t state;  /* of byi_draw */
    bool mirrored;   /* perturb each number in the opposite direction */
    bool zeros;      /* numbers within the bound of zero become 0 or -0 */
    bool fractional; /* perturb by a random fraction of the bound */
    /* set by byi_kit_perturb: results may differ between implementations, as
     * the results of a cast from NaN to an integer */
    bool undefined;
};
/* Whether the next number is perturbed upwards; random. */
bool byi_perturbation_draw_up(struct byi_perturbation *perturbation);
/* Perturb the operands or results of a call within the operator's error bound.
 * A byi_perturb_fn; `perturbation` is a struct byi_perturbation. */
void byi_kit_perturb(void *perturbation, const struct byi_func *f,
                     const struct byi_node *node, struct byi_tensor *operands,
                     struct byi_tensor *results, uint32_t n_results);
/* Compare an output with the expected one. Returns BYOC_EINTERNAL and the
 * largest difference if too many elements exceed the tolerance. An expected NaN
 * matches any number. */
enum byoc_status byi_kit_compare_output(const struct byi_tensor *found,
                                        const struct byi_tensor *expected,
                                        const double *slack,
                                        const struct byi_precision *bound,
                                        struct byoc_error *err);

#endif
