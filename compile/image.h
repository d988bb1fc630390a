/* SPDX-License-Identifier: Apache-2.0 */
/* compile/image.h: builds the image that the runtime opens from a partitioned
 * module. */
#ifndef BYI_IMAGE_H
#define BYI_IMAGE_H

#include "find_backends.h"

#include "codegen_c/codegen_c.h"
#include "codegen_json/codegen_json.h"

/* A kernel of a loaded region, as its backend's describe() lists it. */
struct byi_built_step {
    const char *impl;    /* the backend's name of the implementation */
    const char *sources; /* names of the model's nodes, joined with commas */
    struct byi_built_step *next;
};

/* A region, and the result of building it. */
struct byi_built_region {
    uint32_t func;        /* index of its function in the module */
    struct byi_text blob; /* after byi_built_model_make, in struct
                             byi_built_model's `blobs` */
    uint32_t *consts;     /* indices of its constants in the module */
    uint32_t n_consts;
    /* its inputs have symbolic dims: the blob is its JSON */
    bool varies;
    /* the function in the C that compile() returned; or NULL */
    const char *symbol;
    struct byi_code *code;  /* this C, compiled; the blob is its text    */
    const char *fault;      /* why the backend cannot build it, or NULL  */
    enum byi_reason reason; /* the ledger's reason for the fault         */
    struct byi_built_step *steps; /* a list; NULL: not described */
};

/* Everything that a run needs, in memory. Zero-initialise. The weights stay in
 * the module, which must outlive models loaded from here. */
struct byi_built_model {
    bool exact; /* as in struct byoc_compile_params */
    BYI_VEC(struct byi_built_region) regions; /* in the module's order */
    void *packed; /* memory of the blobs, which begin at an aligned address */
    char *blobs;
    size_t blobs_bytes;
    struct byi_text manifest;
    struct byi_plan plan;
    const struct byi_weights_span *spans; /* of plan.consts, in the arena */
    byi_unit_fn *functions;               /* indexed by region, in the arena */
    const struct byi_c_unit **sources;    /* of regions in C         */
    uint32_t n_sources;
};

/* Replace the content of *built by the image of the module. Calls the backends'
 * compile(), and compiles C that they return. A region that its backend
 * refuses, or whose C is invalid, has a fault, and its JSON as blob. Regions of
 * backends without compile(), or without a plug-in, also have their JSON as
 * blob. `kernels`: the fused groups that have code; NULL: none. Results are in
 * `arena`, or freed by byi_built_model_free, which must be called even after an
 * error. Errors: the errors of byi_region_write, byi_plan_write,
 * byi_built_model_map and byi_manifest_write. */
enum byoc_status byi_built_model_make(const struct byi_module *m,
                                      const struct byi_found_backends *found,
                                      const struct byi_kernels *kernels,
                                      struct byi_arena *arena,
                                      struct byi_built_model *built,
                                      struct byoc_error *err);
/* Free what *built owns, and zero it; it may be zero already. */
void byi_built_model_free(struct byi_built_model *built);
/* Map the code of the regions in C, and set built->functions, for a model in
 * this process. Errors: those of byi_code_map. */
enum byoc_status byi_built_model_map(struct byi_built_model *built,
                                     struct byoc_error *err);
/* Set r->steps to the steps that `describe(ctx, say, to)` passes to say(), in
 * `arena`. Errors: BYOC_ENOMEM. */
enum byoc_status byi_describe_region(
    struct byi_built_region *r, struct byi_arena *arena,
    void (*describe)(const void *ctx, byoc_trace_fn say, void *to),
    const void *ctx, struct byoc_error *err);
/* Load the region, set its steps and unload it; if the backend refuses to load
 * it, set its fault. Errors: BYOC_ENOMEM, and the errors of byi_code_map. */
enum byoc_status byi_load_region(const struct byi_module *m,
                                 const struct byi_found_backends *found,
                                 struct byi_arena *arena,
                                 struct byi_built_region *r,
                                 struct byoc_error *err);
/* Try whether the plug-in of region `func` builds and loads this region alone:
 * *why becomes NULL, or the reason why not, in `arena`. Tries symbolic dims at
 * one size. Errors: BYOC_ENOMEM, and the errors of byi_region_write and
 * byi_code_map. */
enum byoc_status byi_try_region(const struct byi_module *m, uint32_t func,
                                const struct byi_found_backends *found,
                                struct byi_arena *arena, const char **why,
                                struct byoc_error *err);
/* Returns the image for the runtime, without ledger and code. Its pointers are
 * valid until `built` changes or is freed. */
struct byi_image byi_built_model_image(const struct byi_built_model *built);
/* Make the plan for an artifact, in which fused groups have code and regions
 * are built; free it with byi_plan_free. `store`: see struct byi_plan_params.
 * Errors: those of byi_plan_write. */
enum byoc_status byi_built_model_plan(
    const struct byi_module *m, const struct byi_built_model *built,
    const struct byi_kernels *kernels, enum byoc_dtype store,
    struct byi_arena *arena, struct byi_plan *plan, struct byoc_error *err);
/* Append the manifest of `image` to `text`. It lists the backends that have
 * regions, in the order of the module's backends, then other plug-ins whose
 * operators the module calls. `hashes`: include hashes, as in an artifact.
 * Errors: BYOC_EINVAL (the module has no entry function). */
enum byoc_status byi_built_model_manifest(
    const struct byi_module *m, const struct byi_found_backends *found,
    const struct byi_image *image, bool hashes, struct byi_arena *arena,
    struct byi_text *text, struct byoc_error *err);

#endif
