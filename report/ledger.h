/* SPDX-License-Identifier: Apache-2.0 */
/* report/ledger.h: a record of where every model node runs, and why
 * (docs/ledger.md). It is opened on the module as imported, filled in while the
 * passes decide, and closed with the final module. Then it is written as JSON,
 * which all readers use.
 *
 * A ledger belongs to one thread. Strings are copied and interned.
 */
#ifndef BYI_LEDGER_H
#define BYI_LEDGER_H

#include "core/ir/ir.h"

/* REASON(id, "code", "meaning"): why a node is where it is. Codes are stable:
 * rows are only added. */
enum byi_reason {
#define REASON(id, code, text) BYI_REASON_##id,
#include "reasons.def"
#undef REASON
    BYI_N_REASONS
};
/* The code and the meaning of a reason, from reasons.def; static. */
const char *byi_reason_code(enum byi_reason reason);
const char *byi_reason_text(enum byi_reason reason);
/* The stage at which an attempt with this reason ended. A native node has the
 * reason of its attempt with the latest stage; of several such attempts, of the
 * last. */
uint32_t byi_reason_stage(enum byi_reason reason);

struct byi_ledger;
/* The ledger of a compile's context; NULL if the compile keeps none. */
BYI_CONTEXT_ENTRY(ledger)
/* Create an empty ledger. Free it with byi_ledger_free. */
struct byi_ledger *byi_ledger_new(void);
/* Free *ledger and null it; *ledger may be NULL. */
void byi_ledger_free(struct byi_ledger **ledger);

/* A backend that takes part. */
struct byi_ledger_backend {
    const char *name, *version;
};

/* Facts about the whole compile; NULL if a fact is not known. */
struct byi_ledger_facts {
    const char *model;  /* the file's name, without folders */
    const char *cpu;    /* "x86_64 avx512" */
    const char *native; /* the version of the native kernels */
    uint32_t threads;   /* of a run */
    uint32_t n_backends;
    const struct byi_ledger_backend *backends; /* in order of preference */
};
/* Record the facts, which are copied. */
void byi_ledger_set_facts(struct byi_ledger *ledger,
                          const struct byi_ledger_facts *facts);
/* Record the nodes that each model node reads, its attributes and the types of
 * its outputs, from the module as imported, before any pass. */
void byi_ledger_open(struct byi_ledger *ledger, const struct byi_module *m);

/* --- while passes decide -------------------------------------------------- */

/* Record for every source of a node an attempt and its outcome. `backend`,
 * `pattern` and `detail` (what was found and expected) may be NULL. Repeated
 * attempts are recorded once. */
void byi_ledger_note(struct byi_ledger *ledger, const struct byi_sources *s,
                     enum byi_reason reason, const char *backend,
                     const char *pattern, const char *detail);
/* Record the implementation that a backend chose for these sources, in place of
 * an earlier one. */
void byi_ledger_set_impl(struct byi_ledger *ledger, const struct byi_sources *s,
                         const char *impl);

/* A region that was reverted, whole or in part. */
struct byi_ledger_region {
    const char *name, *backend; /* "dnnl_0", "dnnl" */
    enum byi_reason reason;
    const char *detail;                /* or NULL */
    const struct byi_sources *sources; /* of the reverted nodes */
    double flops;
    uint32_t n_inputs, n_outputs; /* 0: it was never a function */
};
/* Record a reverted region and, for each of its nodes, an attempt with its
 * reason. Kept regions are read from the module when the ledger is closed. */
void byi_ledger_add_region(struct byi_ledger *ledger,
                           const struct byi_ledger_region *region);
struct byi_samples;
/* Record that function `func`, the region of a backend, is reverted as a whole:
 * as byi_ledger_add_region does. Call it before the module changes. `samples`:
 * as in byi_func_flops. */
void byi_ledger_revert(struct byi_ledger *ledger, const struct byi_module *m,
                       const struct byi_samples *samples, uint32_t func,
                       enum byi_reason reason, const char *detail);
/* Record the measured times of a region, by name, or of the nodes with these
 * sources, which share them equally. In microseconds; 0 or less: not measured.
 */
void byi_ledger_set_region_times(struct byi_ledger *ledger, const char *region,
                                 double backend_us, double native_us);
void byi_ledger_set_node_times(struct byi_ledger *ledger,
                               const struct byi_sources *s, double backend_us,
                               double native_us);

/* Times of the whole model: all native, greedily partitioned, and placed by
 * measured costs. `chosen` is the one in use: "native", "greedy" or "measured".
 */
struct byi_placement_times {
    double native_us, greedy_us, measured_us;
    const char *chosen;
};
/* Record the times, which are copied; `chosen` must be valid as long as the
 * ledger. */
void byi_ledger_set_measured(struct byi_ledger *ledger,
                             const struct byi_placement_times *measured);

/* Floating-point operations of a function with its composites; a multiply-add
 * counts as two. Symbolic dims have the last valid sizes of `samples`
 * (byi_sample_last_type), which may be NULL; a call with an unknown dim counts
 * as 0. */
double byi_func_flops(const struct byi_module *m,
                      const struct byi_samples *samples, uint32_t func);

/* What ToMixedPrecision did with the operators that have a float32 result. */
struct byi_ledger_precision {
    const char *to;   /* "bf16"; static; NULL: it did not run */
    uint32_t narrow;  /* operators that compute in 16 bits */
    uint32_t float32; /* operators that still compute in float32 */
};
void byi_ledger_set_precision(struct byi_ledger *ledger,
                              const struct byi_ledger_precision *precision);

/* A large weight that NarrowWeights was to narrow. Errors are of the narrowed
 * weights w': max |w - w'| / max |w|, and sqrt(sum (w - w')^2 / sum w^2). */
struct byi_ledger_weight {
    const char *to; /* its element type after narrowing: "int8" */
    const struct byi_sources *sources;
    uint64_t bytes, narrow; /* its size in float32, and narrowed */
    double largest, rms;    /* the two errors; undefined if `kept` is set */
    const char *kept;       /* why it stays float32; NULL: it was narrowed */
};
/* The strings and sources of *weight must be valid as long as the ledger. */
void byi_ledger_add_weight(struct byi_ledger *ledger,
                           const struct byi_ledger_weight *weight);

/* --- afterwards ----------------------------------------------------------- */

/* Read from the final module where every model node ended up. Call this once,
 * after all attempts and reverted regions are recorded. `samples`: as in
 * byi_func_flops. */
void byi_ledger_close(struct byi_ledger *ledger, const struct byi_module *m,
                      const struct byi_samples *samples);

/* The totals of a closed ledger, in model nodes, regions and floating-point
 * operations. */
struct byi_coverage {
    uint32_t nodes;                              /* of the model */
    uint32_t offloaded, native, folded, removed; /* nodes by placement */
    uint32_t regions;                            /* kept ones */
    double flops, flops_offloaded; /* of all operators; of the offloaded */
    const char *sizes; /* "batch=64": of symbolic dims; "" if all are fixed */
};
/* The number of operators that a run executes, the denominator of the offloaded
 * share on the command line, in the JSON, on the page and in gates.
 */
uint32_t byi_coverage_operators(const struct byi_coverage *coverage);
/* The totals, which are valid as long as the ledger. */
const struct byi_coverage *byi_ledger_coverage(const struct byi_ledger *ledger);

/* A gate that the user set, and its result. Call byi_ledger_add_gate after
 * byi_ledger_close; `name` must be valid as long as the ledger. */
struct byi_gate {
    const char *name;     /* "require-offload", as the option is called */
    double wanted, found; /* percent */
    bool passed;
};
void byi_ledger_add_gate(struct byi_ledger *ledger,
                         const struct byi_gate *gate);

/* The version of the JSON, which docs/ledger.md describes. */
enum { BYI_LEDGER_VERSION = 4 };
/* Append a closed ledger to `out` as JSON. */
void byi_ledger_write_json(struct byi_ledger *ledger, struct byi_text *out);

#endif
