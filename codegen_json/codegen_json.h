/* codegen_json/codegen_json.h: a partitioned module becomes JSON: each vendor
 * function a region ("byoc-graph"), the rest a plan ("byoc-plan"). Both are
 * described in docs/json.md.
 */
#ifndef BYI_CODEGEN_JSON_H
#define BYI_CODEGEN_JSON_H

#include "core/core.h"

/* --- write.c ------------------------------------------------------------ */

/* Function `func` (Compiler set; its body calls composites) as a region.
 * Constants it reads are listed in *consts (module constant indices, in the
 * order of the JSON's "data" numbers), allocated in `arena`. */
enum byoc_status byi_region_write(const struct byi_module *m, uint32_t func,
                                  struct byi_arena *arena,
                                  struct byi_text *json, uint32_t **consts,
                                  uint32_t *n_consts, struct byoc_error *err);
/* A single composite (a nested function with Composite and Operands) as a
 * region of one kernel, its parameters being inputs, or constants where
 * const_args[i] (module constant index) is not BYI_NO_ID: what a probe sees. */
enum byoc_status byi_composite_write(const struct byi_module *m, uint32_t func,
                                     const uint32_t *const_args,
                                     struct byi_arena *arena,
                                     struct byi_text *json, uint32_t **consts,
                                     uint32_t *n_consts,
                                     struct byoc_error *err);

/* --- plan.c ------------------------------------------------------------- */

/* One constant of the artifact: the module's constant and its place in the
 * weights section. */
struct byi_placed {
    uint32_t constant;
    uint64_t offset; /* multiple of BYI_ALIGN */
};

/* The plan of a partitioned module: main and what it calls, each vendor
 * function's native twin (its composites taken apart), a liveness-based
 * memory plan per function, the constants' places. blob_bytes[i] is the size
 * of the blob of the i-th vendor function, in module order. */
struct byi_plan {
    struct byi_text json;
    BYI_VEC(struct byi_placed) consts;
    uint64_t weights_bytes;
};
enum byoc_status byi_plan_write(const struct byi_module *m,
                                const uint64_t *blob_bytes,
                                struct byi_plan *plan, struct byoc_error *err);

#endif
