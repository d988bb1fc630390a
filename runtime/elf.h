/* SPDX-License-Identifier: Apache-2.0 */
/* runtime/elf.h: reads shared libraries as ELF64 files (System V gABI, "Object
 * Files"), without running their code. All offsets are checked against the size
 * of the file. */
#ifndef BYI_RUNTIME_ELF_H
#define BYI_RUNTIME_ELF_H

#include "core/base/base.h"

#include <elf.h>

/* A library's file in memory, n bytes at `at`. `what` is the expected kind of
 * file, for messages: "a plug-in". */
struct byi_elf {
    const char *path, *what;
    const char *at;
    uint64_t n;
    uint16_t machine; /* expected ELF machine; 0: the machine of this program */
    Elf64_Ehdr header; /* byi_elf_open sets this member and the next */
    Elf64_Shdr names;  /* the section with the sections' names */
};

/* A section, whose bytes are in the file unless its type is SHT_NOBITS. `name`
 * points into the file. */
struct byi_elf_section {
    const char *name;
    Elf64_Shdr header;
};

/* Check that elf->at is a 64-bit shared library for this machine, with a
 * section table and section names. The caller sets elf->path, what, at and n
 * first. Errors: BYOC_EPARSE, BYOC_EINCOMPATIBLE (another machine). */
enum byoc_status byi_elf_open(struct byi_elf *elf, struct byoc_error *err);
/* Read the header and name of section i, which is less than header.e_shnum.
 * Errors: BYOC_EPARSE (damaged). */
enum byoc_status byi_elf_section(const struct byi_elf *elf, uint32_t i,
                                 struct byi_elf_section *section,
                                 struct byoc_error *err);
/* Whether the file has `bytes` bytes at offset `at`. */
bool byi_elf_contains(const struct byi_elf *elf, uint64_t at, uint64_t bytes);

/* The result of byi_elf_find: whether the library exports the symbol, and its
 * bytes in the file if it is constant data; otherwise `data` is NULL. */
struct byi_elf_symbol {
    bool found;
    const char *data;
    uint64_t bytes;
};
/* Find a symbol of this name that the library defines in its dynamic symbol
 * table. If there is none, symbol->found is false. Errors: BYOC_EPARSE
 * (damaged). */
enum byoc_status byi_elf_find(const struct byi_elf *elf, const char *name,
                              struct byi_elf_symbol *symbol,
                              struct byoc_error *err);

#endif
