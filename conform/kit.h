/* SPDX-License-Identifier: Apache-2.0 */
/* conform/kit.h: shared by the files of the kit. A case is a function that runs
 * in a process of its own (child.c), where it opens the plug-in, and writes its
 * verdict to shared memory. The kit continues whatever the plug-in does.
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

enum byi_conform_rule {
#define RULE(id, name, text) BYI_RULE_##id,
#include "rules.def"
    BYI_N_RULES
};
/* The exit code of a case in which valgrind found something. */
enum { BYI_VALGRIND_CODE = 99 };

struct byi_rule_row {
    const char *name, *text;
};
extern const struct byi_rule_row byi_kit_rules[BYI_N_RULES]; /* child.c */

enum byi_outcome {
    BYI_PASSED,
    BYI_FAILED,
    BYI_REFUSED, /* the plug-in refused the generated graphs, with a reason */
    BYI_UNTESTED /* no graph could be generated */
};

/* The result of a case; in memory shared between the two processes. */
struct byi_verdict {
    enum byi_outcome outcome;
    enum byi_conform_rule rule;
    bool done;          /* the case ran to its end */
    char text[1400];    /* the error, or the reason */
    char said[400];     /* the output of the process */
    char program[4000]; /* for several rows: the graph as text */
    double seconds;
    uint32_t chains,
        ran; /* for a case of chains: how many there are, how many ran */
};

/* The plug-in and the options of a test. */
struct byi_kit {
    const char *path; /* of the plug-in */
    uint64_t seed;
    double seconds; /* for one case */
    enum byoc_codegen codegen;
    struct byi_codes codes;      /* the C from compile(), in a child */
    struct byi_verdict *verdict; /* in a child */
};

struct byi_kit_case {
    const char *name;
    void (*run)(struct byi_kit *kit, const struct byi_kit_case *c);
    const char *row; /* of the table, or a path; NULL: neither */
    uint32_t number;
};

/* --- child.c ------------------------------------------------------------ */

/* Run the case in a child; *verdict is its result. */
void byi_run_case(struct byi_kit *kit, const struct byi_kit_case *c,
                  struct byi_verdict *verdict);
/* In a child: the case ends here, with this verdict. Does not return. */
_Noreturn void byi_kit_end(struct byi_kit *kit, enum byi_outcome outcome,
                           enum byi_conform_rule rule, const char *format, ...)
    BYI_PRINTF(4, 5);
#define byi_kit_failed(kit, rule, ...)                                         \
    byi_kit_end(kit, BYI_FAILED, rule, __VA_ARGS__)

/* --- zones.c: memory that is watched, in a child ------------------------- */

enum byi_lent { BYI_LENT_READ, BYI_LENT_WRITE, BYI_LENT_GONE };

/* Guarded memory of `bytes` bytes, which ends at most align - 1 bytes before an
 * unmapped page. An access behind its end, a write to read-only memory, or an
 * access after it was freed ends the case with a message. `what` is copied:
 * "input 0". The zone lives as long as the process or, once freed, until
 * thousands of others were freed after it. */
struct byi_zone;
struct byi_zone *byi_zone_new(struct byi_kit *kit, uint64_t bytes,
                              uint64_t align, const char *what);
void *byi_zone_data(const struct byi_zone *zone);
void byi_zone_lend(struct byi_zone *zone, enum byi_lent how);
/* Check that the bytes around it are unchanged; otherwise the case ends. */
void byi_zone_check(struct byi_kit *kit, const struct byi_zone *zone);
/* Check the zone of this data, and free it. */
void byi_zone_free(struct byi_kit *kit, const void *data);
/* Handle faults from now on. */
void byi_zones_watch(struct byi_kit *kit);

/* --- host.c: the host that plug-ins see, in a child ----------------------- */

/* The host's services, which record every live block and failure. */
const struct byoc_host *byi_kit_host(struct byi_kit *kit);
/* Use one thread from now on, for work too small for several. Call it before
 * the plug-in is opened. */
void byi_host_serial(void);
struct byi_host_books {
    uint32_t acquired; /* calls of acquire() */
    uint32_t live;     /* blocks             */
    uint64_t bytes;    /* of these blocks */
    uint32_t fails;    /* that were not freed */
};
struct byi_host_books byi_host_books(void);
/* Let acquire() return NULL from the n-th call on, counted from 0; UINT32_MAX:
 * never. */
void byi_host_exhaust(uint32_t n);
/* End the case unless there are as many live blocks and failures as in
 * `before`. */
void byi_host_balance(struct byi_kit *kit, const struct byi_host_books *before,
                      const char *after);
/* The text and code of a failure, in static memory; frees the failure. */
const char *byi_fail_said(struct byoc_fail *fail, uint32_t *code);

/* --- sample.c: something a row takes -------------------------------------- */

/* Open the plug-in; ends the case if that fails. */
const struct byoc_backend *byi_kit_backend(struct byi_kit *kit);

struct byi_sample {
    struct byi_module *m;
    uint32_t func; /* of the composite */
    bool joined;   /* several kernels, which a backend may refuse together */
    uint32_t n_in, n_out;
    const struct byi_type *in[BYI_KIT_MAX_IO], *out[BYI_KIT_MAX_IO];
    struct byi_text json;
    uint32_t *consts, n_consts; /* of the module */
    struct byi_arena *arena;
};
/* Graph `number` of the row, which the backend accepted as a whole under that
 * row's name. Ends the case if there is none. */
void byi_sample_make(struct byi_kit *kit, const char *row, uint32_t number,
                     struct byi_sample *sample);
/* The first such graph; ends the case if there is none. */
void byi_sample_any(struct byi_kit *kit, const char *row,
                    struct byi_sample *sample);

/* A region of several kernels, of any rows; ends the case if there is none.
 */
void byi_sample_region(struct byi_kit *kit, uint32_t number,
                       struct byi_sample *sample);

/* The seed of sample `number` of a row or kind: samples of other numbers, other
 * names and other seeds of the kit have unrelated seeds. */
uint64_t byi_kit_seed(const struct byi_kit *kit, const char *what,
                      uint64_t number);

/* A chain of one to six rows, and its largest region. Returns false if none
 * could be generated; does not end the case. */
bool byi_sample_chain(struct byi_kit *kit, uint64_t number,
                      struct byi_sample *sample);
void byi_sample_free(struct byi_sample *sample);

/* --- session.c: the calls of a plug-in, in their order -------------------- */

struct byi_session {
    const struct byi_sample *sample;
    struct byi_code *code; /* if compile() returned valid C */
    void *compiled;
    struct byi_zone *consts[BYI_KIT_MAX_IO];
};
/* A region in zones, for a call of the plug-in. */
struct byi_lent_region {
    struct byoc_region *region;
    struct byi_zone *parts[BYI_KIT_MAX_IO * 2 + 4];
    uint32_t n;
};
/* The sample's region with this text (or blob), and the function that it is
 * compiled to or the name that it may use; NULL: none. Constants are created
 * once, in `session`. */
struct byi_lent_region byi_lend_region(struct byi_kit *kit,
                                       struct byi_session *session,
                                       const void *text, uint64_t bytes,
                                       const char *symbol, byi_unit_fn code);
void byi_take_back(struct byi_lent_region *lent);
/* The result of compile() for the sample's region, in host memory; the region
 * itself if the backend has no compile(). */
struct byoc_fail *byi_kit_compile(struct byi_kit *kit, struct byi_session *s,
                                  struct byoc_blob *blob);
void byi_kit_blob_free(struct byi_kit *kit, struct byoc_blob *blob);
/* compile() and load(), which must succeed; and unload(). */
void byi_session_open(struct byi_kit *kit, const struct byi_sample *sample,
                      struct byi_session *s);
/* The same, but returns false, with the reason, if a region of several kernels
 * is refused, which is allowed. */
bool byi_session_try(struct byi_kit *kit, const struct byi_sample *sample,
                     struct byi_session *s, const char **why);
void byi_session_close(struct byi_kit *kit, struct byi_session *s);
struct byoc_fail *byi_kit_load(struct byi_kit *kit, struct byi_session *s,
                               const struct byoc_blob *blob);
/* Create a state as the backend requires: memory of its state_size, the result
 * of state_new(), or NULL. And free it. */
struct byoc_fail *byi_kit_state_new(struct byi_kit *kit, struct byi_session *s,
                                    void **state);
/* The same; ends the case if it fails. */
void *byi_state_open(struct byi_kit *kit, struct byi_session *s);
void byi_state_close(struct byi_kit *kit, struct byi_session *s, void *state);

/* Inputs of a seed and the results of the native kernels. For each element also
 * how far it moves when inputs move by a few units of their precision and
 * operators' results within their bounds: a difference of close numbers, or a
 * division by a small one, amplifies earlier errors. */
struct byi_expected {
    struct byi_tensor in[BYI_KIT_MAX_IO], out[BYI_KIT_MAX_IO];
    double *slack[BYI_KIT_MAX_IO];
    const volatile uint32_t *cancel; /* of the run; NULL: none */
};
void byi_kit_expect(struct byi_kit *kit, const struct byi_sample *sample,
                    uint64_t seed, struct byi_arena *arena,
                    struct byi_expected *expected);
/* Run on guarded memory, aligned to `align` (0: to elements). `found` receives
 * the results, in `arena`. */
struct byoc_fail *byi_kit_run(struct byi_kit *kit, struct byi_session *s,
                              void *state, const struct byi_expected *expected,
                              uint64_t align, struct byi_arena *arena,
                              struct byi_tensor *found);
/* Compare results with the expected ones; ends the case if they differ. */
void byi_kit_hold(struct byi_kit *kit, const struct byi_sample *sample,
                  const struct byi_expected *expected,
                  const struct byi_tensor *found);
/* Run, and compare the results with the expected ones; ends the case if they
 * differ. */
void byi_kit_run_checked(struct byi_kit *kit, struct byi_session *s,
                         void *state, uint64_t seed, uint64_t align);

/* --- bounds.c ------------------------------------------------------------- */

/* The epsilon of a float type: the difference between 1 and the next number. */
double byi_epsilon(enum byoc_dtype dtype);
/* How far results of function `func` may be from the native kernels', for an
 * output of `dtype`: |found - want| <= relative (|want| + max |want|) +
 * absolute + slack, except for a share of elements that may jump to the next
 * value if the function is not continuous. */
struct byi_precision {
    double relative, absolute;
    double share;
};
struct byi_precision byi_precision_of(const struct byi_module *m, uint32_t func,
                                      enum byoc_dtype dtype);
/* Perturb the numbers of a call within the operator's error bound: a
 * byi_shake_fn, with a struct byi_shaking. */
struct byi_shaking {
    uint64_t state; /* of a random sequence */
    bool mirrored;  /* each step in the opposite direction */
    bool zeros;     /* numbers within the bound of zero become 0 or -0 */
    bool partly;    /* by a random part of the bound, not by all of it */
    /* out: the result may differ between implementations, for example NaN cast
     * to an integer */
    bool undefined;
};
bool byi_shaking_up(struct byi_shaking *shaking);
void byi_kit_shake(void *shaking, const struct byi_func *f,
                   const struct byi_node *node, struct byi_tensor *operands,
                   struct byi_tensor *results, uint32_t n_results);
/* The error names the largest difference. An expected NaN matches anything. */
enum byoc_status byi_kit_within(const struct byi_tensor *found,
                                const struct byi_tensor *want,
                                const double *slack,
                                const struct byi_precision *bound,
                                struct byoc_error *err);

#endif
