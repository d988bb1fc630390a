/* SPDX-License-Identifier: Apache-2.0 */
/* compile/code.h: the C that backends generate for regions. Each source is
 * compiled once per compile, and mapped if its region is tried or runs in this
 * process.
 */
#ifndef BYI_CODE_H
#define BYI_CODE_H

#include "codegen_c/codegen_c.h"

/* The C of one region. */
struct byi_code {
    struct byi_c_unit unit;
    const char *fault; /* why it is refused; NULL: it is accepted */
    struct byi_memory_library library; /* the mapped code */
    byi_unit_fn function; /* for this CPU; NULL: not mapped, or no version */
};

/* The C of all regions of a compile. Zero-initialise, then set the compiler
 * (NULL: $CC, then cc) and the arena. */
struct byi_codes {
    const char *cc;
    struct byi_arena *arena;
    BYI_VEC(struct byi_code *) list;
};
/* Returns, in `arena`, a name for the C function of region `func`: unique in
 * the module, and different from all names of the C library. */
const char *byi_code_symbol(const struct byi_module *m, uint32_t func,
                            struct byi_arena *arena);
/* Returns the code of this source of n bytes, which is compiled on first use;
 * never NULL. If the compiler refuses it, its `fault` is set. Lives as long as
 * `codes`. */
struct byi_code *byi_code_get(struct byi_codes *codes, const char *symbol,
                              const void *source, size_t n);
/* Map the code and set its function. Does nothing if the code is mapped
 * already, was refused, or has no version for this CPU. Errors: BYOC_EIO,
 * BYOC_EBACKEND. */
enum byoc_status byi_code_map(struct byi_code *code, struct byoc_error *err);
/* Unmap and free all code; the arena belongs to the caller. */
void byi_codes_free(struct byi_codes *codes);

#endif
