/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c: reads ELF64 files in memory. */
#include "elf.h"

#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { OUR_ORDER = ELFDATA2LSB };
#else
enum { OUR_ORDER = ELFDATA2MSB };
#endif

bool byi_elf_contains(const struct byi_elf *elf, uint64_t at, uint64_t bytes)
{
    return at <= elf->n && bytes <= elf->n - at;
}

bool byi_elf_read(struct byi_elf *elf, uint16_t type)
{
    Elf64_Ehdr *h = &elf->header;

    if (elf->n < sizeof *h || memcmp(elf->at, ELFMAG, SELFMAG) != 0)
        return false;
    memcpy(h, elf->at, sizeof *h);
    return h->e_ident[EI_CLASS] == ELFCLASS64 &&
           h->e_ident[EI_DATA] == OUR_ORDER && h->e_type == type &&
           h->e_shentsize == sizeof(Elf64_Shdr) &&
           byi_elf_contains(elf, h->e_shoff,
                            (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)) &&
           byi_elf_string(elf, h->e_shstrndx, 0);
}

Elf64_Shdr byi_elf_section(const struct byi_elf *elf, uint32_t i)
{
    Elf64_Shdr s = {0};

    if (i < elf->header.e_shnum)
        memcpy(&s, elf->at + elf->header.e_shoff + i * sizeof s, sizeof s);
    return s;
}

const char *byi_elf_string(const struct byi_elf *elf, uint32_t table,
                           uint64_t at)
{
    const Elf64_Shdr s = byi_elf_section(elf, table);

    if (s.sh_type != SHT_STRTAB || at >= s.sh_size ||
        !byi_elf_contains(elf, s.sh_offset, s.sh_size) ||
        elf->at[s.sh_offset + s.sh_size - 1] != '\0')
        return NULL;
    return elf->at + s.sh_offset + at;
}

const char *byi_elf_name(const struct byi_elf *elf, const Elf64_Shdr *section)
{
    const char *name =
        byi_elf_string(elf, elf->header.e_shstrndx, section->sh_name);

    return name ? name : "";
}
