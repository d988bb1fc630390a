/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/codegen_c.h: generates C for fused groups, compiles it and the C of
 * backends, and links the artifact.
 */
#ifndef BYI_CODEGEN_C_H
#define BYI_CODEGEN_C_H

#include "codegen_json/codegen_json.h"
#include "core/base/descriptor.h"
#include "core/ir/ir.h"
#include "runtime/internal.h"

/* --- kernels.c ------------------------------------------------------------ */

/* The C of a module's fused groups. */
struct byi_kernels {
    struct byi_arena *arena;
    struct byi_text source;              /* one C file */
    BYI_VEC(struct byi_plan_fused) list; /* its kernels */
    uint32_t *kernel_of;                 /* as in struct byi_plan_code */
};
/* Whether C can be generated for node `id`, so that a group may contain it. A
 * callback for struct byi_pass_context. In group.c. */
bool byi_kernels_accept(const struct byi_func *f, byi_id id);
/* Whether to generate a kernel that computes only node `id`. This is a call
 * that byi_grid_accepts accepts, or image.resize of float32 with static shapes.
 * It must resize one axis or two adjacent ones, with tables below a limit. A
 * callback for struct byi_pass_context. In image.c. */
bool byi_kernels_accept_alone(const struct byi_module *m,
                              const struct byi_func *f, byi_id id);
/* Generate a kernel for each group (Primitive=1, without captures, called
 * directly) of at least two operators besides views, or whose result
 * byi_kernels_accept_alone accepts. Leaves out groups that a native kernel runs
 * with an epilogue, and groups for which only slow C, or none, can be
 * generated. For the latter, the source has a comment with the reason. Without
 * kernels, *kernels is all zero. Otherwise free it with byi_kernels_free. */
void byi_kernels_write(const struct byi_module *m, struct byi_kernels *kernels);
void byi_kernels_free(struct byi_kernels *kernels);

/* --- unit.c --------------------------------------------------------------- */

/* The C that a backend generated for a region: one translation unit, compiled
 * for each instruction set of the fused kernels. Zero-initialise, then set the
 * fields above the line. Free it with byi_c_unit_free, even after an error. */
struct byi_c_unit {
    const char *symbol; /* the function that it must define; not copied */
    struct byi_text source;
    /* ------------------------------------------------------------------- */
    struct byi_text objects[BYI_N_CODE_LEVELS];
    /* all objects linked as a library, which exports one function for each; see
     * byi_c_unit_name */
    struct byi_text library;
};
/* Compile and link with `cc` (NULL: as byi_cc_open). Errors: BYOC_EUNSUPPORTED,
 * with a sentence about the source (it does not compile, defines external
 * symbols besides `symbol`, needs other libraries than C's and math, exceeds a
 * limit); BYOC_EIO, BYOC_ENOMEM. Threads: safe. */
enum byoc_status byi_c_unit_compile(struct byi_c_unit *unit, const char *cc,
                                    struct byoc_error *err);
void byi_c_unit_free(struct byi_c_unit *unit);
/* Set buf, of n bytes, to the function's name in the object for an instruction
 * set, the `level`-th of BYI_CODE_LEVELS. Returns buf. */
char *byi_c_unit_name(const char *symbol, uint32_t level, char *buf, size_t n);

/* --- object.c: checks an object file -------------------------------------- */

/* Check that function `name` is the only external symbol that the object
 * defines, and that it has only the sections of C functions and variables.
 * Errors: BYOC_EUNSUPPORTED. */
enum byoc_status byi_object_check(const struct byi_text *object,
                                  const char *name, struct byoc_error *err);

/* --- artifact.c ----------------------------------------------------------- */

/* Write `image` as the shared library `path`. `cc` links assembler source with
 * one section per member. NULL means $CC, then "cc"; for another machine its
 * cross compiler. The weights are appended directly from memory. The write is
 * atomic (a temporary file, then rename) and reproducible: the same image gives
 * the same bytes. docs/artifact.md lists the sections. Errors: BYOC_EIO (the
 * file cannot be written, or the compiler is missing or fails, with its
 * message), BYOC_EPARSE (the manifest does not match the other members),
 * BYOC_EINVAL (the manifest has no valid symbol), BYOC_ENOMEM. */
enum byoc_status byi_artifact_write(const char *path,
                                    const struct byi_image *image,
                                    const char *cc, struct byoc_error *err);

/* --- append.c ------------------------------------------------------------- */

/* Append the weights to `path` as a segment. The file must have been linked
 * from the assembler source that artifact.c writes. Errors: BYOC_EIO. */
enum byoc_status byi_artifact_append(const char *path,
                                     const struct byi_image *image,
                                     struct byoc_error *err);

#endif
