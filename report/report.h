/* SPDX-License-Identifier: Apache-2.0 */
/* report/report.h: a ledger read back from its JSON, for people and for
 * comparing: what a compile prints, what `byoc report` says of a file and what
 * `byoc inspect` says of an artifact come from the same bytes.
 */
#ifndef BYI_REPORT_H
#define BYI_REPORT_H

#include "ledger.h"

/* Strings are "" where the JSON has none, times negative. */
struct byi_report_try {
    const char *reason, *vendor, *pattern, *detail;
};
struct byi_report_node {
    const char *name, *op, *where, *reason, *region, *pattern, *impl;
    const char *detail; /* of the attempt that gave it its reason */
    double flops, vendor_us, native_us;
    uint32_t n_inputs, n_tried;
    const uint32_t *inputs;
    const struct byi_report_try *tried;
};
struct byi_report_region {
    const char *name, *vendor, *outcome, *reason, *detail;
    bool kept;
    double flops, vendor_us, native_us;
    uint32_t n_inputs, n_outputs, n_nodes;
    const uint32_t *nodes;
};
struct byi_report_vendor {
    const char *name, *version;
    uint32_t n_nodes, n_regions;
    double flops;
};

struct byi_report {
    struct byi_arena *arena;
    struct cJSON *root; /* has the strings */
    const char *model, *cpu;
    uint32_t threads;
    struct byi_coverage coverage;
    struct byi_measured measured; /* chosen NULL: it was not */
    uint32_t n_vendors, n_gates, n_regions, n_nodes;
    struct byi_report_vendor *vendors; /* native is the last */
    struct byi_gate *gates;
    struct byi_report_region *regions;
    struct byi_report_node *nodes;
};

/* Errors: BYOC_EPARSE (no ledger, or a damaged one: the path, what was found
 * and expected), BYOC_EINCOMPATIBLE (of another version), BYOC_ELIMIT.
 * On failure nothing is held. */
enum byoc_status byi_report_read(const char *json, size_t n,
                                 struct byi_report *r, struct byoc_error *err);
void byi_report_free(struct byi_report *r);

bool byi_report_offloaded(const struct byi_report_node *node);
bool byi_report_native(const struct byi_report_node *node);
/* Percent of the floating-point operations that vendors run; 0 where there are
 * none. */
double byi_report_flops_share(const struct byi_report *r);

/* "1.50 GFLOP" */
void byi_report_flops(struct byi_text *out, double flops);
/* "99.99%": of a whole, only the whole is 100% and only nothing 0%. */
void byi_report_share(struct byi_text *out, double part, double whole);

/* report.c: the totals, regions, implementations, what stayed and why; with
 * every_node each node instead of groups. */
void byi_report_text(const struct byi_report *r, bool every_node,
                     struct byi_text *out);
/* What stayed native, on one line: the `most` groups with the most work. */
void byi_report_reasons(const struct byi_report *r, uint32_t most,
                        struct byi_text *out);
/* report_explain.c: all that is known about a node. BYOC_EINVAL when the model
 * has none of that name: err names those that are called alike. */
enum byoc_status byi_report_explain(const struct byi_report *r,
                                    const char *node, struct byi_text *out,
                                    struct byoc_error *err);

/* report_diff.c: what changed from one ledger to another. Returns whether less
 * is offloaded: of the floating-point operations, or of the operators that run
 * in both models, by more than `tolerance` percent points. */
bool byi_report_diff(const struct byi_report *old, const struct byi_report *new,
                     double tolerance, bool json, struct byi_text *out);

#endif
