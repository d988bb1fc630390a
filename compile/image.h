/* SPDX-License-Identifier: Apache-2.0 */
/* compile/image.h: a partitioned module as the image that the runtime opens. */
#ifndef BYI_IMAGE_H
#define BYI_IMAGE_H

#include "find_vendors.h"

#include "codegen_c/codegen_c.h"
#include "codegen_json/codegen_json.h"

/* One vendor function, compiled. */
struct byi_built_region {
    uint32_t func;
    struct byi_text blob;
    uint32_t *consts;
    uint32_t n_consts;
    bool varies;            /* inputs' dims have names: the blob is its JSON */
    const char *symbol;     /* of the C that compile() answered; or NULL */
    struct byi_code *code;  /* the C, compiled; the blob is its text     */
    const char *fault;      /* why the vendor cannot build it; NULL: it can */
    enum byi_reason reason; /* of a fault */
};

/* All that a run needs of a module, in memory. Zero-initialise. The weights
 * stay where the module has them: it must outlive what is loaded from here. */
struct byi_built {
    BYI_VEC(struct byi_built_region) regions; /* in the module's order */
    struct byi_text blobs, manifest;
    struct byi_plan plan;
    const struct byi_span *spans;
    byi_unit_fn *functions;            /* by region, in the arena */
    const struct byi_c_unit **sources; /* of regions in C         */
    uint32_t n_sources;
};

/* Build it anew; what `built` held is dropped. A vendor's own compiler is
 * called where it has one, C that it answers is compiled, and a region that it
 * refuses, or whose C is not right, has a fault, and no blob but its JSON; a
 * vendor that is only patterns has none. `kernels`: the
 * fused groups that have code; NULL: none. What is kept goes to `arena`.
 * Errors: those of byi_region_write and byi_plan_write. */
enum byoc_status byi_build(const struct byi_module *m,
                           const struct byi_found *found,
                           const struct byi_kernels *kernels,
                           struct byi_arena *arena, struct byi_built *built,
                           struct byoc_error *err);
void byi_built_free(struct byi_built *built);
/* Map the code of its regions in C, for a model in this process. Errors: as
 * byi_code_map. */
enum byoc_status byi_built_map(struct byi_built *built, struct byoc_error *err);
/* Load the region and drop it again; sets its fault. */
enum byoc_status byi_load_region(const struct byi_module *m,
                                 const struct byi_found *found,
                                 struct byi_arena *arena,
                                 struct byi_built_region *r,
                                 struct byoc_error *err);
/* Whether its plug-in builds and loads function `func` of the module, alone:
 * *why is why not, in `arena`, or NULL. Where dims have names, for one size. */
enum byoc_status byi_try_region(const struct byi_module *m, uint32_t func,
                                const struct byi_found *found,
                                struct byi_arena *arena, const char **why,
                                struct byoc_error *err);
/* What is built, as the runtime takes it; without ledger and code. Borrowed. */
struct byi_image byi_built_image(const struct byi_built *built);
/* The plan for an artifact, whose fused groups have code, of regions that are
 * built; free with byi_plan_free. */
enum byoc_status byi_built_plan(const struct byi_module *m,
                                const struct byi_built *built,
                                const struct byi_kernels *kernels,
                                struct byi_arena *arena, struct byi_plan *plan,
                                struct byoc_error *err);
/* The manifest of `image`, with the vendors that got something, in the order
 * of the module's targets. `hashes`: as an artifact has them. */
enum byoc_status byi_built_manifest(const struct byi_module *m,
                                    const struct byi_found *found,
                                    const struct byi_image *image, bool hashes,
                                    struct byi_arena *arena,
                                    struct byi_text *text,
                                    struct byoc_error *err);

#endif
