/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_json/codegen_json.h: writes a partitioned module as JSON: each region
 * ("byoc-graph"), and a plan for the rest ("byoc-plan"). docs/json.md and
 * docs/plan.md describe them.
 */
#ifndef BYI_CODEGEN_JSON_H
#define BYI_CODEGEN_JSON_H

#include "core/ir/ir.h"
#include "runtime/internal.h"

/* --- write.c ------------------------------------------------------------ */

/* Write function `func` (Compiler set; its body calls composites) as a region.
 * *consts lists the constants that it reads (module constant indices, in the
 * order of the JSON's "data" numbers), allocated in `arena`. Errors:
 * BYOC_EINVAL, for a node that a region or composite cannot contain. */
enum byoc_status byi_region_write(const struct byi_module *m, uint32_t func,
                                  struct byi_arena *arena,
                                  struct byi_text *json, uint32_t **consts,
                                  uint32_t *n_consts, struct byoc_error *err);
/* Write a single composite (a nested function with Composite and Operands) as a
 * region of one kernel, as for a probe. Its parameters are inputs, or constants
 * if const_args[i] (module constant index) is not BYI_NO_ID. Errors:
 * BYOC_EINVAL. */
enum byoc_status byi_composite_write(const struct byi_module *m, uint32_t func,
                                     const uint32_t *const_args,
                                     struct byi_arena *arena,
                                     struct byi_text *json, uint32_t **consts,
                                     uint32_t *n_consts,
                                     struct byoc_error *err);

/* --- plan.c, plan_funcs.c ------------------------------------------------ */

/* A constant of the artifact: the module's constant and its offset in the
 * weights section. */
struct byi_placed {
    uint32_t constant;
    uint64_t offset;        /* multiple of BYI_ALIGN */
    uint64_t bytes;         /* as stored: strings are packed */
    enum byoc_dtype stored; /* of float32 elements that are stored as float16,
                               bfloat16 or int8; else BYOC_NONE */
    /* of int8: the axis along which each index has its own scale */
    uint32_t axis;
};

/* A region of a plan: the size of its blob, the constants that it reads, as
 * listed by byi_region_write, and the name of the C function that it was
 * compiled to, or NULL. */
struct byi_plan_region {
    uint64_t blob_bytes;
    const uint32_t *consts;
    uint32_t n_consts;
    const char *code;
};

/* epilogue.c: the node of a fused group whose native kernel applies the group's
 * other nodes as its epilogue (core/ops/epilogue.h); BYI_NO_ID: the group is
 * not of this kind. */
byi_id byi_epilogue_head(const struct byi_func *group);

/* The fused groups that are compiled to C, one kernel for each. of[f], by
 * module function, is 1 + the kernel of group f, or 0. */
struct byi_plan_fused {
    const char *symbol;
    uint32_t func; /* its native twin */
};
struct byi_plan_code {
    uint32_t n;
    const struct byi_plan_fused *at;
    const uint32_t *of;
};

/* The inputs of a plan besides the module. regions[i] belongs to the i-th live
 * function with Compiler set, in module order; their blobs follow one another
 * without gaps. Calls of groups with a kernel in `code` (NULL: none) are steps,
 * other groups are inlined. `exact`: as in struct byoc_compile_params. `store`:
 * BYOC_F16 or BYOC_BF16: a float32 constant of 1024 elements or more is stored
 * in this type if the type has all its values; BYOC_NONE: never. If int8 codes
 * with a scale for each row reproduce the constant, it is stored in these, for
 * any `store`. */
struct byi_plan_params {
    const struct byi_plan_region *regions;
    uint32_t n_regions;
    const struct byi_plan_code *code;
    bool exact;
    enum byoc_dtype store;
};

/* The plan of a partitioned module: main and the functions that it calls, each
 * region's native twin (with its composites inlined), a liveness-based memory
 * plan per function, the constants' offsets. `params` may be NULL: no regions
 * and no kernels. Errors: BYOC_EUNSUPPORTED, if an input or result of
 * the model is a function; BYOC_ELIMIT, for too many steps; BYOC_EINVAL, if the
 * module has no entry function or another number of regions. Free with
 * byi_plan_free. */
struct byi_plan {
    struct byi_text json;
    BYI_VEC(struct byi_placed) consts; /* ascending, disjoint offsets */
    uint64_t weights_bytes;
};
enum byoc_status byi_plan_write(const struct byi_module *m,
                                const struct byi_plan_params *params,
                                struct byi_plan *plan, struct byoc_error *err);
void byi_plan_free(struct byi_plan *plan);
/* The data of the plan's constants in the module's memory: the weights of an
 * image, plan->consts.n spans in `arena`. Only strings and narrowed constants
 * are copied. */
const struct byi_span *byi_plan_spans(const struct byi_module *m,
                                      const struct byi_plan *plan,
                                      struct byi_arena *arena);

/* --- manifest.c --------------------------------------------------------- */

struct byi_manifest_backend {
    const char *name, *version, *compat;
    bool operators; /* the model calls operators of this plug-in */
};
struct byi_manifest {
    const char *name; /* of the model, for people */
    const struct byi_manifest_backend *backends;
    uint32_t n_backends;
    struct byi_warm warm; /* sizes to prepare when the model is loaded */
    bool hashes; /* false: for an image that is never written to a file */
};

/* Write the manifest of a model (docs/artifact.md): signature of `main`,
 * backends, hashes of the image's other members, and the symbol, which contains
 * the hash of all of these. It has no times or paths, so the same model gives
 * the same text. Errors: BYOC_EINVAL, if the module has no entry function. */
enum byoc_status byi_manifest_write(const struct byi_module *m,
                                    const struct byi_manifest *what,
                                    const struct byi_image *image,
                                    struct byi_text *json,
                                    struct byoc_error *err);

#endif
