/* SPDX-License-Identifier: Apache-2.0 */
/* partition/partition.h: which vendor gets which part of a module, and why.
 * The four passes of BYOC, the vendors they ask, the ledger they write.
 */
#ifndef BYI_PARTITION_H
#define BYI_PARTITION_H

#include <byoc/backend.h>

#include "core/ir/ir.h"
#include "core/ir/samples.h"
#include "patterns/patterns.h"
#include "report/ledger.h"

extern const struct byi_pass byi_pass_alter_op_layout; /* alter_op_layout.c */
extern const struct byi_pass byi_pass_assign_by_cost;  /* assign_by_cost.c */
extern const struct byi_pass byi_pass_merge_composite; /* merge_composite.c */
extern const struct byi_pass byi_pass_annotate_target; /* annotate_target.c */
extern const struct byi_pass byi_pass_merge_regions;   /* merge_regions.c */
extern const struct byi_pass byi_pass_partition_graph; /* partition_graph.c */

/* The body of the composite that node `call` of f calls; NULL when it calls
 * none. Composites that capture values are nobody's: they are left alone. */
const struct byi_func *byi_composite_of(const struct byi_module *m,
                                        const struct byi_func *f,
                                        const struct byi_node *call);

/* Make functions of the marked regions of function `func`, whatever the limits
 * say; composites outside of regions become plain operators. */
enum byoc_status byi_partition_function(struct byi_module *m, uint32_t func,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err);

/* join_regions.c: join regions 1 .. n of f, of one vendor each, where no path
 * leads from one to the other through anybody else: all there are of so many
 * that follow one another by number. Numbers must follow every path. Returns
 * for each the region that it is part of; in `scratch`. */
enum { BYI_JOINED_TOGETHER = 512 };
const uint32_t *byi_join_regions(const struct byi_func *f, uint32_t n,
                                 const uint32_t *target,
                                 struct byi_arena *scratch);

/* limits.c: marks of regions that only move data, or that the context's limits
 * do not allow, are taken back and noted. Every function's marks are
 * MergeRegions': numbers from 1 to at most its nodes. */
void byi_limit_regions(struct byi_module *m, struct byi_pass_context *ctx,
                       struct byi_arena *scratch);

/* --- vendors.c: loaded backends as the compiler sees them ---------------- */

struct byi_vendor {
    const char *name;
    const struct byoc_backend *backend;
    const struct byoc_host *host;
    struct byi_pattern_table *table; /* compiled from backend->patterns */
    const char *out;                 /* why it takes no part; NULL: it does */
    enum byi_reason out_reason;
};

/* Which regions are worth having. Zero fields are no limits. */
struct byi_limits {
    uint32_t min_nodes; /* of the model */
    double min_flops;
    uint32_t max_regions; /* of the module: those with the most flops stay */
};

/* What partitioning may use and do, in order of preference. */
struct byi_vendors {
    uint32_t n;
    struct byi_vendor *at;
    bool forbid_ref; /* refuse reference implementations */
    struct byi_limits limits;
    const char *const *exclude; /* node names or operators, NULL-ended */
    const char *const *only;    /* the same; empty or NULL: all */
    struct byi_probe_cache *cache;
    struct byi_assignment *assignment; /* by cost; NULL: any vendor may take
                                          any node                          */
    /* Decides the assignment, when partitioning starts; NULL: nobody does. */
    enum byoc_status (*decide)(void *decide_ctx, struct byi_module *m,
                               struct byi_pass_context *ctx,
                               struct byoc_error *err);
    void *decide_ctx;
};
BYI_CONTEXT_ENTRY(vendors)

/* Constants of the module as a vendor is lent them: views[0 .. n-1] of
 * consts[0 .. n-1], in `arena`; the data stays the module's. */
struct byoc_view *byi_const_views(const struct byi_module *m,
                                  const uint32_t *consts, uint32_t n,
                                  struct byi_arena *arena);

/* What a vendor's probe said of a composite. Strings live as long as the
 * struct byi_vendors. */
struct byi_probed {
    const char *refused; /* why not; NULL: it can be built */
    const char *impl;    /* the implementation it chose, "" when not said */
    bool reference;      /* that is a slow reference implementation */
};

enum byoc_status byi_vendors_init(struct byi_vendors *v,
                                  const struct byoc_backend *const *backends,
                                  const struct byoc_host *const *hosts,
                                  uint32_t n, struct byoc_error *err);
void byi_vendors_free(struct byi_vendors *v);
/* Ask whether the vendor can build a composite (a nested function with
 * Composite) whose i-th parameter is the module's constant const_args[i], or
 * computed where that is BYI_NO_ID. types[i], where `types` is not NULL, is the
 * i-th parameter's type in place of its own, whose dims have names. Answers are
 * kept by signature. */
enum byoc_status byi_probe(struct byi_vendors *v,
                           const struct byi_vendor *vendor,
                           const struct byi_module *m, uint32_t func,
                           const uint32_t *const_args,
                           const struct byi_type *const *types,
                           struct byi_probed *probed, struct byoc_error *err);

/* The layouts a vendor would like for a composite of one operator; empty: as
 * they are. */
struct byi_wish {
    char data[24], kernel[24];
};
enum byoc_status byi_wish_of(const struct byi_vendor *vendor,
                             const struct byi_module *m, uint32_t func,
                             struct byi_wish *wish, struct byoc_error *err);

/* --- give_back.c: regions that cannot stay as they are ------------------- */

/* Node `id` of f, marked with a vendor, goes back to native kernels. */
void byi_give_back_node(const struct byi_module *m, struct byi_func *f,
                        byi_id id, struct byi_ledger *ledger,
                        enum byi_reason reason, const char *detail);

/* What becomes of a node of a vendor's function. */
struct byi_fate {
    uint32_t part;      /* the region it goes to, from 1; 0: native kernels */
    const char *detail; /* of a call that goes back: why                    */
};
/* What becomes of a vendor's function, and why. */
struct byi_giving {
    uint32_t func;
    enum byi_reason reason;
    const char *detail;
    const struct byi_fate *fate; /* by node of func; NULL: all go back. Calls of
                                    one part and the fields they give are
                                    convex: no path leaves and comes back  */
};
/* Take vendors' functions apart where they are called, note it in the context's
 * ledger, and partition their callers anew, with the limits in force. Strings
 * are copied. What went back is plain operators, not fused. */
enum byoc_status byi_give_back(struct byi_module *m,
                               const struct byi_giving *list, uint32_t n,
                               struct byi_pass_context *ctx,
                               struct byoc_error *err);

/* Asked of function `func`, a vendor's: can its vendor build it as one region?
 * *why: why not, or NULL; it outlives the question. */
struct byi_builds {
    enum byoc_status (*ask)(void *ctx, const struct byi_module *m,
                            uint32_t func, const char **why,
                            struct byoc_error *err);
    void *ctx;
};
/* Which parts of giving->func can be built, though the whole cannot, because
 * of giving->detail: runs of its composites, each as long as it can be, found
 * by at most 128 tries. Sets giving->fate, in `arena`: what cannot be built
 * even alone goes back. It stays NULL where there is nothing to split, or where
 * the whole can be built after all, so that the fault lies elsewhere. The
 * module is as it was. */
enum byoc_status byi_split_region(struct byi_module *m, struct byi_builds can,
                                  struct byi_arena *arena,
                                  struct byi_giving *giving,
                                  struct byoc_error *err);

#endif
