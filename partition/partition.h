/* SPDX-License-Identifier: Apache-2.0 */
/* partition/partition.h: the passes that place a module's nodes on backends,
 * the backends that they query and the ledger that they write.
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

/* Returns the body of the composite that node `call` of f calls; NULL if it
 * calls none. A function that captures values is never a backend's composite.
 */
const struct byi_func *byi_composite_of(const struct byi_module *m,
                                        const struct byi_func *f,
                                        const struct byi_node *call);

/* Whether a backend runs a region of m; if `backend` is not NULL, this one. */
bool byi_has_region(const struct byi_module *m, const char *backend);

/* Turn the marked regions of function `func` into functions, regardless of the
 * limits; composites outside of regions become plain operators. Errors:
 * BYOC_EINVAL (marks that AnnotateTarget and MergeRegions do not make),
 * BYOC_EINTERNAL (regions that depend on each other). */
enum byoc_status byi_partition_function(struct byi_module *m, uint32_t func,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err);

/* join_regions.c: join regions 1 .. n of f, each of one backend, if no path
 * leads from one to the other through a node outside both. Exact among
 * BYI_JOIN_WINDOW consecutive regions. Numbers must ascend along every
 * path. backend[r] is the backend of region r. Returns, in `scratch`, for each
 * region the region that it now belongs to. */
enum { BYI_JOIN_WINDOW = 512 };
const uint32_t *byi_join_regions(const struct byi_func *f, uint32_t n,
                                 const uint32_t *backend,
                                 struct byi_arena *scratch);

/* limits.c: unmark, and record in the ledger, regions that only move data or
 * that the context's limits exclude. Marks must be MergeRegions': in each
 * function numbered from 1 to at most its number of nodes. */
void byi_limit_regions(struct byi_module *m, struct byi_pass_context *ctx,
                       struct byi_arena *scratch);

/* --- backends.c: loaded backends, for the compiler ------------------------ */

/* A loaded backend; its strings, `api` and `host` belong to the caller. */
struct byi_backend {
    const char *name;
    const struct byoc_backend *api;
    const struct byoc_host *host;
    struct byi_pattern_table *table; /* compiled from api->patterns */
    const char *excluded; /* why the compile excludes it; NULL: it does not */
    enum byi_reason excluded_reason;
};

/* Which regions to keep. A member that is 0 sets no limit. */
struct byi_limits {
    uint32_t min_nodes; /* of the model */
    double min_flops;
    /* of the module: the regions with the most flops stay */
    uint32_t max_regions;
};

/* The options of partitioning, and the backends in order of preference. */
struct byi_backends {
    uint32_t n;
    struct byi_backend *at;
    bool forbid_ref; /* refuse reference implementations */
    bool keep_nan;   /* refuse operators that may mask NaN */
    bool exact;      /* make composites Exact              */
    struct byi_limits limits;
    const char *const *exclude; /* node names or operators, NULL-terminated */
    const char *const *only;    /* the same; empty or NULL: all */
    struct byi_probe_cache *cache; /* the answers of earlier probes */
    /* the placement by cost; NULL: greedy, any backend may take any node */
    struct byi_assignment *assignment;
    /* Decides the assignment when partitioning starts; NULL: greedy. */
    enum byoc_status (*decide)(void *decide_ctx, struct byi_module *m,
                               struct byi_pass_context *ctx,
                               struct byoc_error *err);
    void *decide_ctx;
};
BYI_CONTEXT_ENTRY(backends)

/* Returns views of constants consts[0 .. n-1] of the module, for a call of a
 * backend. The views are in `arena`; the module owns the data. */
struct byoc_view *byi_const_views(const struct byi_module *m,
                                  const uint32_t *consts, uint32_t n,
                                  struct byi_arena *arena);

/* The answer of a backend's probe about a composite. Strings are valid as long
 * as the struct byi_backends. */
struct byi_probe_result {
    const char *refused; /* the reason; NULL: it can be built        */
    const char *impl;    /* the chosen implementation, "" if unknown */
    bool reference;      /* the implementation is a slow reference one */
    /* an operator rejects the types, so the backend was not asked */
    bool misfit;
};

/* Compile the pattern tables of n backends and set v->at, v->n and v->cache.
 * The structs that `backends` and `hosts` point to must outlive *v; the arrays
 * need not. Errors: those of byi_patterns_compile, with the backend's name;
 * then *v is freed. */
enum byoc_status byi_backends_init(struct byi_backends *v,
                                   const struct byoc_backend *const *backends,
                                   const struct byoc_host *const *hosts,
                                   uint32_t n, struct byoc_error *err);
/* Free the tables and the cache, and zero *v, which may be zero already. */
void byi_backends_free(struct byi_backends *v);
/* Ask whether the backend can build a composite (a nested function with
 * Composite). Parameter i is the module's constant const_args[i], or computed
 * if that is BYI_NO_ID. If `types` is not NULL, a types[i] that is not NULL
 * replaces the parameter's symbolic type. Answers are cached by signature. A
 * backend without probe() accepts. Errors: those of writing the composite's
 * JSON, and of types that do not fit; a refusal is not an error. */
enum byoc_status byi_probe(struct byi_backends *v,
                           const struct byi_backend *backend,
                           const struct byi_module *m, uint32_t func,
                           const uint32_t *const_args,
                           const struct byi_type *const *types,
                           struct byi_probe_result *probed,
                           struct byoc_error *err);

/* The layouts that a backend prefers for a composite of one operator. Empty:
 * the current layout. */
struct byi_layout_preference {
    char data[24], kernel[24]; /* layouts of the data and of the weights */
};
/* Ask the backend which layouts it prefers for composite `func`. A failure of
 * the backend counts as no preference. Errors: those of writing the JSON. */
enum byoc_status byi_layout_preference_of(
    const struct byi_backend *backend, const struct byi_module *m,
    uint32_t func, struct byi_layout_preference *preferred,
    struct byoc_error *err);

/* --- revert.c: reverting regions --------------------------------------- */

/* The new placement of a node of a backend's function. */
struct byi_node_revert {
    uint32_t region;    /* its new region, from 1; 0: native kernels */
    const char *detail; /* of a reverted call: why                   */
};
/* The decision about a backend's function, and its reason. */
struct byi_revert {
    uint32_t func;
    enum byi_reason reason;
    const char *detail;
    /* indexed by node of func; NULL: revert all. The calls of a new region and
     * their fields must be convex: no path leaves and returns */
    const struct byi_node_revert *nodes;
};
/* Inline backends' functions at their calls, record this in the context's
 * ledger, and partition the callers again under the current limits. Strings of
 * `list` are copied. The caller must fuse the reverted operators. Errors: those
 * of byi_add_copy and byi_partition_function. */
enum byoc_status byi_revert_regions(struct byi_module *m,
                                    const struct byi_revert *list, uint32_t n,
                                    struct byi_pass_context *ctx,
                                    struct byoc_error *err);

/* Callback: whether the backend of function `func` can build it as one region.
 * *why is the reason if not, otherwise NULL; it outlives the call. */
struct byi_build_check {
    enum byoc_status (*ask)(void *ctx, const struct byi_module *m,
                            uint32_t func, const char **why,
                            struct byoc_error *err);
    void *ctx;
};
/* Find the subregions of revert->func that can be built if the whole cannot,
 * because of revert->detail. The subregions are maximal runs of its composites,
 * found with at most 128 tries. Sets revert->nodes, in `arena`; composites that
 * cannot be built even as separate regions are reverted. Leaves it NULL if
 * there is nothing to split, or if the whole can be built after all, so that
 * the fault lies elsewhere. The module gets dead functions; all others are
 * unchanged. Errors: those of builds.ask, byi_add_moved and
 * byi_partition_function. */
enum byoc_status byi_split_region(struct byi_module *m,
                                  struct byi_build_check builds,
                                  struct byi_arena *arena,
                                  struct byi_revert *revert,
                                  struct byoc_error *err);

#endif
