/* SPDX-License-Identifier: Apache-2.0 */
/* compile/code.h: the C that vendors write, where their compile() may answer in
 * C: compiled once for a compile, and mapped to be tried and run from memory.
 */
#ifndef BYI_CODE_H
#define BYI_CODE_H

#include "codegen_c/codegen_c.h"

/* The C of one region. */
struct byi_code {
    struct byi_c_unit unit;
    const char *fault; /* why it is not taken; NULL: it is */
    struct byi_memory_library library;
    byi_unit_fn function; /* of this machine; NULL: none, or not mapped */
};

/* Zero-initialise; set the compiler, NULL: $CC, then cc. */
struct byi_codes {
    const char *cc;
    struct byi_arena *arena;
    BYI_VEC(struct byi_code *) list;
};
/* The function that region `func` of the module may become: unique in it, and
 * no name of the C library. In `arena`. */
const char *byi_code_symbol(const struct byi_module *m, uint32_t func,
                            struct byi_arena *arena);
/* The code of this source, compiled when it is new. Lives as long as `codes`.
 */
struct byi_code *byi_code_get(struct byi_codes *codes, const char *symbol,
                              const void *source, size_t n);
/* Map it, where it is not yet, so that it has its function. Errors: BYOC_EIO,
 * BYOC_EBACKEND. */
enum byoc_status byi_code_map(struct byi_code *code, struct byoc_error *err);
void byi_codes_free(struct byi_codes *codes);

#endif
