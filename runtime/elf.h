/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/elf.h: shared libraries read as ELF64 files (System V gABI, "Object
 * Files"), without running any of them; everything is bounds-checked.
 */
#ifndef BYI_RUNTIME_ELF_H
#define BYI_RUNTIME_ELF_H

#include "core/base/base.h"

#include <elf.h>

/* A library in memory. `what` it should be, for messages: "a plug-in". */
struct byi_elf {
    const char *path, *what;
    const char *at;
    uint64_t n;
    Elf64_Ehdr header;
    Elf64_Shdr names;
};

/* A section; its bytes lie in the file unless it is SHT_NOBITS. */
struct byi_elf_section {
    const char *name;
    Elf64_Shdr header;
};

/* Set elf->path, what, at and n first. A 64-bit shared library for this
 * machine, with a table of sections and their names. Errors: BYOC_EPARSE,
 * BYOC_EINCOMPATIBLE (another machine). */
enum byoc_status byi_elf_open(struct byi_elf *elf, struct byoc_error *err);
/* Section i, below header.e_shnum. */
enum byoc_status byi_elf_section(const struct byi_elf *elf, uint32_t i,
                                 struct byi_elf_section *section,
                                 struct byoc_error *err);
/* Does the file have `bytes` bytes at `at`? */
bool byi_elf_inside(const struct byi_elf *elf, uint64_t at, uint64_t bytes);

/* What the library exports as `name`; *data NULL where it is not constant
 * data. Not found: *found is false. */
struct byi_elf_symbol {
    bool found;
    const char *data;
    uint64_t bytes;
};
enum byoc_status byi_elf_find(const struct byi_elf *elf, const char *name,
                              struct byi_elf_symbol *symbol,
                              struct byoc_error *err);

#endif
