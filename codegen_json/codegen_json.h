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

/* Append function `func` (Compiler set; its body calls composites) to `json` as
 * a region. *consts lists the constants that it reads (module constant indices,
 * in the order of the JSON's "data" numbers), allocated in `arena`, also
 * after an error. Errors: BYOC_EINVAL, for a node that a region or composite
 * cannot contain. */
enum byoc_status byi_region_write(const struct byi_module *m, uint32_t func,
                                  struct byi_arena *arena,
                                  struct byi_text *json, uint32_t **consts,
                                  uint32_t *n_consts, struct byoc_error *err);
/* Append a single composite (a nested function with Composite and Operands) as
 * a region of one kernel, as for a probe. Parameter i is an input, or a
 * constant if const_args[i] (module constant index) is not BYI_NO_ID. Otherwise
 * as byi_region_write. */
enum byoc_status byi_composite_write(const struct byi_module *m, uint32_t func,
                                     const uint32_t *const_args,
                                     struct byi_arena *arena,
                                     struct byi_text *json, uint32_t **consts,
                                     uint32_t *n_consts,
                                     struct byoc_error *err);

/* --- plan.c, plan_funcs.c ------------------------------------------------ */

/* A constant of the artifact: the module's constant and its offset in the
 * weights section. */
struct byi_placed_const {
    uint32_t constant;
    uint64_t offset; /* multiple of BYI_ALIGN */
    uint64_t bytes;  /* as stored: strings are packed */
    /* the narrower type in which float32 elements are stored: float16, bfloat16
     * or int8; BYOC_NONE: the constant's own type */
    enum byoc_dtype stored;
    uint32_t axis; /* if int8: each index of this axis has its own scale */
};

/* A region of a plan: the size of its blob, the constants that byi_region_write
 * lists, and the name of its C function. The name is NULL if it was not
 * compiled to C. */
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

/* A fused kernel: the C function that computes a fused group. */
struct byi_plan_fused {
    const char *symbol; /* the C function's name */
    uint32_t func;      /* the group's module function, its native twin */
};
/* The n fused kernels. kernel_of[f], by module function, is 1 + the kernel of
 * group f, or 0. */
struct byi_plan_code {
    uint32_t n;
    const struct byi_plan_fused *at;
    const uint32_t *kernel_of;
};

/* The inputs of a plan besides the module. regions[i] belongs to the i-th live
 * function with Compiler set, in module order. Their blobs follow one another
 * without gaps. Calls of groups with a kernel in `code` (NULL: none) are steps,
 * other groups are inlined. `exact`: as in struct byoc_compile_params. `store`:
 * BYOC_F16 or BYOC_BF16: a float32 constant of 1024 elements or more is stored
 * in this type if that changes none of its values; BYOC_NONE: never. If int8
 * codes with a scale for each row reproduce the constant, it is stored as these
 * for every value of `store`. */
struct byi_plan_params {
    const struct byi_plan_region *regions;
    uint32_t n_regions;
    const struct byi_plan_code *code;
    bool exact;
    enum byoc_dtype store;
};

/* The plan of a partitioned module. It has the entry function, the functions
 * that it calls, and the native twins of regions and kernels, with composites
 * inlined. It also has the offsets of each function's temporaries and of the
 * constants. `params` may be NULL: no regions and no kernels. Errors:
 * BYOC_EUNSUPPORTED, if an input or result of the model is a function;
 * BYOC_ELIMIT, for too many steps; BYOC_EINVAL, if the module has no entry
 * function or another number of regions. Free with byi_plan_free. */
struct byi_plan {
    struct byi_text json;
    BYI_VEC(struct byi_placed_const) consts; /* in ascending order of offsets */
    uint64_t weights_bytes;
};
enum byoc_status byi_plan_write(const struct byi_module *m,
                                const struct byi_plan_params *params,
                                struct byi_plan *plan, struct byoc_error *err);
void byi_plan_free(struct byi_plan *plan);
/* The data of the plan's constants in the module's memory: the weights of an
 * image, plan->consts.n spans in `arena`. Only strings and narrowed constants
 * are copied. */
const struct byi_weights_span *byi_plan_spans(const struct byi_module *m,
                                              const struct byi_plan *plan,
                                              struct byi_arena *arena);

/* --- manifest.c --------------------------------------------------------- */

/* A plug-in that the model uses, as the manifest records it. */
struct byi_manifest_backend {
    const char *name, *version, *compat;
    bool operators; /* the model calls custom operators of this plug-in */
};
/* The input of byi_manifest_write besides the module and the image. */
struct byi_manifest {
    const char *name; /* of the model, for people to read */
    const struct byi_manifest_backend *backends;
    uint32_t n_backends;
    struct byi_warm warm; /* sizes to prepare when the model is loaded */
    bool hashes; /* false: for an image that is never written to a file */
};

/* Append the manifest of a model (docs/artifact.md): signature of the entry
 * function, backends, hashes of the image's other members, and the symbol. The
 * symbol contains a hash of the text before it. It has no times or paths, so
 * the same model gives the same text. Errors: BYOC_EINVAL, if the module has no
 * entry function. */
enum byoc_status byi_manifest_write(const struct byi_module *m,
                                    const struct byi_manifest *manifest,
                                    const struct byi_image *image,
                                    struct byi_text *json,
                                    struct byoc_error *err);

#endif
