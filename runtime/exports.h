/* SPDX-License-Identifier: Apache-2.0 */
/* exports.h: reads the file of a shared library, without running its code. */
#ifndef BYI_RUNTIME_EXPORTS_H
#define BYI_RUNTIME_EXPORTS_H

#include "core/base/elf.h"

/* A library's file. `what` is the expected kind of file, for messages: "a
 * plug-in". */
struct byi_library_file {
    const char *path, *what;
    uint16_t machine; /* expected ELF machine; 0: the machine of this program */
    struct byi_elf elf;
};

/* Check that file->elf.at is a 64-bit shared library for this machine, and read
 * its header. The caller sets all members except the header first. Errors:
 * BYOC_EPARSE, BYOC_EINCOMPATIBLE (another machine). */
enum byoc_status byi_library_file_open(struct byi_library_file *file,
                                       struct byoc_error *err);

/* A symbol: whether the library exports it, and its bytes in the file if it is
 * constant data; otherwise `data` is NULL. */
struct byi_exported_symbol {
    bool found;
    const char *data;
    uint64_t bytes;
};
/* Find a symbol of this name that the library defines in its dynamic symbol
 * table. If there is none, symbol->found is false. Errors: BYOC_EPARSE
 * (damaged). */
enum byoc_status byi_library_file_find(const struct byi_library_file *file,
                                       const char *name,
                                       struct byi_exported_symbol *symbol,
                                       struct byoc_error *err);

#endif
