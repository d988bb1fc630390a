/* codegen_c/codegen_c.h: what is handed to the C compiler of the machine. */
#ifndef BYI_CODEGEN_C_H
#define BYI_CODEGEN_C_H

#include "codegen_json/codegen_json.h"
#include "core/core.h"
#include "runtime/internal.h"

/* --- kernels.c ------------------------------------------------------------ */

/* The fused groups of a module as C. */
struct byi_kernels {
    struct byi_arena *arena;
    struct byi_text source;
    BYI_VEC(struct byi_plan_fused) list;
    uint32_t *of; /* as in struct byi_plan_code */
};
/* Whether a group may hold node `id` of f: there is C for its operator on these
 * types. For struct byi_pass_context. */
bool byi_kernels_take(const struct byi_func *f, byi_id id);
/* Whether node `id` is worth a function of its own. Same. */
bool byi_kernels_take_alone(const struct byi_module *m,
                            const struct byi_func *f, byi_id id);
/* A function for each group (Primitive=1, without captures, called where it
 * stands) that C is good at. Without any, *kernels is all zero. */
void byi_kernels_write(const struct byi_module *m, struct byi_kernels *kernels);
void byi_kernels_free(struct byi_kernels *kernels);

/* --- artifact.c ----------------------------------------------------------- */

/* Write `image` as the shared library `path`: assembler source with one
 * section per member, linked by `cc` (NULL: $CC, then "cc"), the weights
 * behind it from where they lie in memory. Written aside and renamed; same
 * image, same bytes. docs/artifact.md has the sections.
 * Errors: BYOC_EIO (cannot write; no compiler; its message), BYOC_EPARSE (the
 * manifest does not go with the rest). */
enum byoc_status byi_artifact_write(const char *path,
                                    const struct byi_image *image,
                                    const char *cc, struct byoc_error *err);

/* --- append.c ------------------------------------------------------------- */

/* Put the weights behind the linked file `path`, as a segment. */
enum byoc_status byi_artifact_append(const char *path,
                                     const struct byi_image *image,
                                     struct byoc_error *err);

#endif
