/* SPDX-License-Identifier: Apache-2.0 */
/* report/ledger.h: what a compile notes about every node of the model:
 * where it went and why (docs/ledger.md). Opened on the module as imported,
 * noted into while the passes decide, closed over the final module, written as
 * JSON, which is what everyone reads.
 *
 * A ledger belongs to one thread. Strings are copied, each once.
 */
#ifndef BYI_LEDGER_H
#define BYI_LEDGER_H

#include "core/ir/ir.h"

/* REASON(id, "code", "what it means"): why a node is where it is. Codes are
 * stable: rows are only ever added. */
enum byi_reason {
#define REASON(id, code, text) BYI_REASON_##id,
#include "reasons.def"
#undef REASON
    BYI_N_REASONS
};
const char *byi_reason_code(enum byi_reason reason);
const char *byi_reason_text(enum byi_reason reason);
/* How far an attempt that ended in this reason got: of a node's attempts the
 * one that got furthest says why it stayed; of equals, the last. */
uint32_t byi_reason_stage(enum byi_reason reason);

struct byi_ledger;
BYI_CONTEXT_ENTRY(ledger)
struct byi_ledger *byi_ledger_new(void);
void byi_ledger_free(struct byi_ledger **ledger);

/* A vendor that is asked. */
struct byi_ledger_vendor {
    const char *name, *version;
};

/* What holds for the whole compile. */
struct byi_ledger_facts {
    const char *model;  /* the file's name, without folders            */
    const char *cpu;    /* "x86_64 avx512"                             */
    const char *native; /* the version of the native kernels          */
    uint32_t threads;   /* that a run has                              */
    uint32_t n_vendors;
    const struct byi_ledger_vendor *vendors; /* in order of preference */
};
void byi_ledger_facts(struct byi_ledger *ledger,
                      const struct byi_ledger_facts *facts);
/* Which model nodes each model node reads: of the module as imported, before
 * any pass. */
void byi_ledger_open(struct byi_ledger *ledger, const struct byi_module *m);

/* --- while passes decide -------------------------------------------------- */

/* Note for every source of a node that it was tried and what came of it.
 * `vendor`, `pattern` and `detail` (what was found and wanted) may be NULL.
 * What was noted before is not noted twice. */
void byi_ledger_note(struct byi_ledger *ledger, const struct byi_sources *s,
                     enum byi_reason reason, const char *vendor,
                     const char *pattern, const char *detail);
/* The implementation a vendor's probe chose for these sources. */
void byi_ledger_impl(struct byi_ledger *ledger, const struct byi_sources *s,
                     const char *impl);

/* A region that was not kept, whole or in part. */
struct byi_ledger_region {
    const char *name, *vendor; /* "dnnl_0", "dnnl"                     */
    enum byi_reason reason;
    const char *detail; /* or NULL                              */
    const struct byi_sources *sources; /* what was given back          */
    double flops;
    uint32_t n_inputs, n_outputs; /* 0: it never became a function   */
};
/* Note a region that was given back, and for each of its nodes an attempt with
 * its reason. Regions that are kept need no note: they are in the module when
 * the ledger is closed. */
void byi_ledger_region(struct byi_ledger *ledger,
                       const struct byi_ledger_region *region);
/* The same for a vendor's function of the module, all of it, before it is
 * changed. */
struct byi_samples;
void byi_ledger_give_back(struct byi_ledger *ledger, const struct byi_module *m,
                          const struct byi_samples *samples, uint32_t func,
                          enum byi_reason reason, const char *detail);
/* Microseconds that were measured of a region, by its name, and of the nodes
 * with these sources, who share them; negative: not measured. */
void byi_ledger_region_times(struct byi_ledger *ledger, const char *region,
                             double vendor_us, double native_us);
void byi_ledger_node_times(struct byi_ledger *ledger,
                           const struct byi_sources *s, double vendor_us,
                           double native_us);

/* The whole model, timed side by side: all native, greedily partitioned, and
 * as measured parts suggest; `chosen` says which was taken: "native", "greedy",
 * "measured". */
struct byi_measured {
    double native_us, greedy_us, measured_us;
    const char *chosen;
};
void byi_ledger_measured(struct byi_ledger *ledger,
                         const struct byi_measured *measured);

/* Floating-point operations of one call of an operator, and of a function and
 * the composites in it; two for a multiply-add. Dims that vary have the size
 * they have in `samples` (byi_sample_usual), which may be NULL; 0 where a dim
 * is unknown. */
double byi_node_flops(const struct byi_module *m,
                      const struct byi_samples *samples, uint32_t func,
                      byi_id id);
double byi_func_flops(const struct byi_module *m,
                      const struct byi_samples *samples, uint32_t func);

/* --- afterwards ----------------------------------------------------------- */

/* Where every model node ended up, read from the final module. Once. */
void byi_ledger_close(struct byi_ledger *ledger, const struct byi_module *m,
                      const struct byi_samples *samples);

/* The totals of a closed ledger. */
struct byi_coverage {
    uint32_t nodes; /* of the model */
    uint32_t offloaded, native, folded, removed;
    uint32_t regions;
    double flops, flops_offloaded;
    const char *sizes; /* "batch=64": for these, where some vary; or "" */
};
/* The operators that a run has to execute: those that are offloaded are counted
 * as a part of them, on the command line, in the JSON, on the page, by gates.
 */
uint32_t byi_coverage_operators(const struct byi_coverage *coverage);
const struct byi_coverage *byi_ledger_coverage(const struct byi_ledger *ledger);

/* A gate that was asked for, and what it found, after closing. */
struct byi_gate {
    const char *name; /* "require-offload", as the option is called */
    double wanted, found;
    bool passed;
};
void byi_ledger_gate(struct byi_ledger *ledger, const struct byi_gate *gate);

/* A closed ledger as JSON. */
void byi_ledger_json(struct byi_ledger *ledger, struct byi_text *out);

#endif
