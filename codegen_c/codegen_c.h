/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/codegen_c.h: what is handed to the C compiler of the machine. */
#ifndef BYI_CODEGEN_C_H
#define BYI_CODEGEN_C_H

#include "codegen_json/codegen_json.h"
#include "core/base/descriptor.h"
#include "core/ir/ir.h"
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

/* --- unit.c --------------------------------------------------------------- */

/* The C that a vendor wrote for a region: one translation unit, compiled for
 * every instruction set that fused kernels are compiled for. Zero-initialise,
 * then set what is above the line. */
struct byi_c_unit {
    const char *symbol; /* the function it has to define                     */
    struct byi_text source;
    /* ------------------------------------------------------------------- */
    struct byi_text objects[BYI_N_CODE_LEVELS];
    struct byi_text library; /* all of them, linked: exports the function once
                                for each, as byi_c_unit_name says             */
};
/* Compile and link. Errors: BYOC_EUNSUPPORTED, one sentence with what is wrong
 * with the source: it does not compile, has external symbols other than the one
 * asked for, needs what is not in the C and math libraries, is too long or
 * takes too long; BYOC_EIO, BYOC_ENOMEM. Threads: safe. */
enum byoc_status byi_c_unit_compile(struct byi_c_unit *unit, const char *cc,
                                    struct byoc_error *err);
void byi_c_unit_free(struct byi_c_unit *unit);
/* What the function is called once it is compiled for a level. Returns buf. */
char *byi_c_unit_name(const char *symbol, uint32_t level, char *buf, size_t n);

/* --- object.c: what an object file defines -------------------------------- */

/* Is a function of that name the only symbol that others can see, and is there
 * nothing in the object but code and data? Errors: BYOC_EUNSUPPORTED. */
enum byoc_status byi_object_check(const struct byi_text *object,
                                  const char *name, struct byoc_error *err);

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
