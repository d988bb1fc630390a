/* SPDX-License-Identifier: Apache-2.0 */
/* elf.h: reads ELF64 files in memory (System V gABI, "Object Files"). All
 * offsets are checked against the size of the file. */
#ifndef BYI_ELF_H
#define BYI_ELF_H

#include "base.h"

#include <elf.h>

/* A file of n bytes at `at`. */
struct byi_elf {
    const char *at;
    uint64_t n;
    Elf64_Ehdr header; /* byi_elf_read sets it; all zero: not ELF */
};

/* Read the header. Returns false unless it is an ELF64 file of this type and of
 * this machine's byte order, with a section table and names of sections. */
bool byi_elf_read(struct byi_elf *elf, uint16_t type);
/* Whether the file has `bytes` bytes at offset `at`. */
bool byi_elf_contains(const struct byi_elf *elf, uint64_t at, uint64_t bytes);
/* Section header i; all zero if there is none. */
Elf64_Shdr byi_elf_section(const struct byi_elf *elf, uint32_t i);
/* The string at offset `at` of the string table in section `table`; NULL if the
 * table is damaged or ends before `at`. */
const char *byi_elf_string(const struct byi_elf *elf, uint32_t table,
                           uint64_t at);
/* The name of a section; "" if its offset is outside of the names. */
const char *byi_elf_name(const struct byi_elf *elf, const Elf64_Shdr *section);

#endif
