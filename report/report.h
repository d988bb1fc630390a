/* SPDX-License-Identifier: Apache-2.0 */
/* report/report.h: a ledger read back from its JSON, for printing and
 * comparing. A compile's report, `byoc report` on a file and `byoc inspect` on
 * an artifact all read the same bytes.
 */
#ifndef BYI_REPORT_H
#define BYI_REPORT_H

#include "ledger.h"

/* In these structs, absent strings are "", and absent times are negative.
 * Strings and arrays live until byi_report_free. Numbers of nodes are indices
 * of byi_report.nodes. */
/* An attempt to offload a node. */
struct byi_report_attempt {
    const char *reason, *backend, *pattern, *detail;
};
/* A node of the model. */
struct byi_report_node {
    const char *name, *op, *where, *reason, *region, *pattern, *impl;
    const char *attributes;
    const char *const *outputs; /* types in the text form; "": unknown */
    uint32_t n_outputs;
    const char *detail; /* of the attempt that set its reason */
    double flops, backend_us, native_us;
    uint32_t n_inputs, n_attempts;
    const uint32_t *inputs; /* the nodes that it reads */
    const struct byi_report_attempt *attempts;
};
/* A region: kept, split into others, or reverted. */
struct byi_report_region {
    /* outcome: "kept", "split" or "reverted"; reason and detail: if not kept */
    const char *name, *backend, *outcome, *reason, *detail;
    bool kept; /* the outcome is "kept" */
    double flops, backend_us, native_us;
    uint32_t n_inputs, n_outputs; /* 0: it was never a function */
    uint32_t n_nodes;
    const uint32_t *nodes;
};
/* A backend, or "native", with the nodes that run on it. */
struct byi_report_backend {
    const char *name, *version;
    uint32_t n_nodes, n_regions;
    double flops;
};

/* As struct byi_ledger_weight; `kept` is "" if the weights were narrowed. */
struct byi_report_weight {
    const char *to, *kept;
    double bytes, narrow, largest, rms;
    uint32_t n_nodes;
    const uint32_t *nodes;
};

/* As struct byi_ledger_precision; `to` NULL: operators keep their types. */
struct byi_report_precision {
    const char *to;
    uint32_t narrow, float32;
};

/* A ledger. */
struct byi_report {
    struct byi_arena *arena;
    struct cJSON *root; /* owns the strings */
    const char *model, *cpu;
    uint32_t threads;
    struct byi_coverage coverage;
    struct byi_placement_times measured; /* chosen NULL: not measured */
    uint32_t n_backends, n_gates, n_regions, n_nodes, n_weights;
    struct byi_report_backend *backends; /* native comes last */
    struct byi_gate *gates;
    struct byi_report_region *regions;
    struct byi_report_weight *weights;
    struct byi_report_precision precision;
    struct byi_report_node *nodes;
};

/* Read a ledger's JSON of n bytes, which is not kept. Free *r with
 * byi_report_free; on failure there is nothing to free. Errors:
 * BYOC_EPARSE (not a valid ledger; the message has the path, the value found
 * and the one expected), BYOC_EINCOMPATIBLE (another version), BYOC_ELIMIT. */
enum byoc_status byi_report_read(const char *json, size_t n,
                                 struct byi_report *r, struct byoc_error *err);
/* Free the members of *r and zero them. */
void byi_report_free(struct byi_report *r);

/* Whether the node runs on a backend, or on a native kernel. */
bool byi_report_is_offloaded(const struct byi_report_node *node);
bool byi_report_is_native(const struct byi_report_node *node);
/* Percentage of the floating-point operations that is offloaded; 0 if there are
 * none. */
double byi_report_flops_share(const struct byi_report *r);

/* Append a number of floating-point operations, such as "1.50 GFLOP". */
void byi_report_add_flops(struct byi_text *out, double flops);
/* Append a percentage, such as "99.99%": 100% only if `part` is the whole, and
 * 0% only if it is 0. */
void byi_report_add_share(struct byi_text *out, double part, double whole);

/* report.c: append totals, regions, implementations, native operators and
 * reasons; with every_node each node instead of groups. */
void byi_report_add_text(const struct byi_report *r, bool every_node,
                         struct byi_text *out);
/* Append, without a newline, the three groups of native operators with the most
 * work, and their reasons; nothing if no operator is native. */
void byi_report_add_reasons(const struct byi_report *r, struct byi_text *out);
/* report_explain.c: append everything about one node. Errors: BYOC_EINVAL (the
 * model has no node of that name; the message suggests similar names). */
enum byoc_status byi_report_add_node(const struct byi_report *r,
                                     const char *node, struct byi_text *out,
                                     struct byoc_error *err);

/* report_diff.c: append the changes between two ledgers, as JSON or as text.
 * Returns whether the offloaded share fell by more than `tolerance` percentage
 * points, measured in floating-point operations, or in operators that run in
 * both models. */
bool byi_report_add_diff(const struct byi_report *old,
                         const struct byi_report *new, double tolerance,
                         bool json, struct byi_text *out);

#endif
