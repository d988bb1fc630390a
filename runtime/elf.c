/* SPDX-License-Identifier: Apache-2.0 */
/* elf.c: reads a shared library's file before the loader maps it. */
#include "elf.h"

#include <string.h>

#include "core/base/machine.h"

enum { MAX_SECTIONS = 1024 };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { OUR_ORDER = ELFDATA2LSB };
#else
enum { OUR_ORDER = ELFDATA2MSB };
#endif

static enum byoc_status refuse_file(const struct byi_elf *elf, const char *why,
                                    struct byoc_error *err)
{
    return byi_fail(err, BYOC_EPARSE, "%s: not %s: %s", elf->path, elf->what,
                    why);
}

bool byi_elf_contains(const struct byi_elf *elf, uint64_t at, uint64_t bytes)
{
    return at <= elf->n && bytes <= elf->n - at;
}

static Elf64_Shdr read_section(const struct byi_elf *elf, uint32_t i)
{
    Elf64_Shdr s;
    memcpy(&s, elf->at + elf->header.e_shoff + (uint64_t)i * sizeof s,
           sizeof s);
    return s;
}

enum byoc_status byi_elf_open(struct byi_elf *elf, struct byoc_error *err)
{
    Elf64_Ehdr *h = &elf->header;
    if (!byi_elf_contains(elf, 0, sizeof *h) ||
        memcmp(elf->at, ELFMAG, SELFMAG) != 0)
        return refuse_file(
            elf, "it is not a shared library; compile a model first", err);
    memcpy(h, elf->at, sizeof *h);
    if (h->e_ident[EI_CLASS] != ELFCLASS64 ||
        h->e_ident[EI_DATA] != OUR_ORDER || h->e_type != ET_DYN)
        return refuse_file(
            elf, "it is not a 64-bit shared library of this byte order", err);
    const uint16_t machine =
        elf->machine ? elf->machine : byi_machine_host()->elf;
    if (machine != EM_NONE && h->e_machine != machine)
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: made for another processor (ELF machine %u, "
                        "expected %u); build or compile it for this one",
                        elf->path, h->e_machine, machine);
    if (h->e_shentsize != sizeof(Elf64_Shdr) || h->e_shnum == 0 ||
        h->e_shnum > MAX_SECTIONS || h->e_shstrndx >= h->e_shnum)
        return refuse_file(elf, "its section table is damaged", err);
    if (!byi_elf_contains(elf, h->e_shoff,
                          (uint64_t)h->e_shnum * sizeof(Elf64_Shdr)))
        return refuse_file(
            elf, "its section table lies outside the file; is it truncated?",
            err);
    elf->names = read_section(elf, h->e_shstrndx);
    if (elf->names.sh_type != SHT_STRTAB ||
        !byi_elf_contains(elf, elf->names.sh_offset, elf->names.sh_size))
        return refuse_file(elf, "its section names are damaged", err);
    return BYOC_OK;
}

/* The string at an offset of a string table; NULL if it does not end inside the
 * table. */
static const char *string_at(const struct byi_elf *elf, const Elf64_Shdr *table,
                             uint64_t at)
{
    if (at >= table->sh_size)
        return NULL;
    const char *text = elf->at + table->sh_offset + at;
    return memchr(text, '\0', table->sh_size - at) ? text : NULL;
}

enum byoc_status byi_elf_section(const struct byi_elf *elf, uint32_t i,
                                 struct byi_elf_section *section,
                                 struct byoc_error *err)
{
    section->header = read_section(elf, i);
    section->name = string_at(elf, &elf->names, section->header.sh_name);
    if (!section->name)
        return refuse_file(elf, "its section names are damaged", err);
    return BYOC_OK;
}

static enum byoc_status take_symbol(const struct byi_elf *elf,
                                    const Elf64_Sym *s,
                                    struct byi_elf_symbol *symbol,
                                    struct byoc_error *err)
{
    *symbol = (struct byi_elf_symbol){.found = true, .bytes = s->st_size};
    if (s->st_shndx >= elf->header.e_shnum)
        return BYOC_OK;
    const Elf64_Shdr home = read_section(elf, s->st_shndx);
    const uint64_t at = s->st_value - home.sh_addr;
    if (home.sh_type != SHT_PROGBITS || (home.sh_flags & SHF_EXECINSTR))
        return BYOC_OK;
    if (at > home.sh_size || s->st_size > home.sh_size - at ||
        !byi_elf_contains(elf, home.sh_offset, home.sh_size))
        return refuse_file(elf, "a symbol lies outside its section", err);
    symbol->data = elf->at + home.sh_offset + at;
    return BYOC_OK;
}

static enum byoc_status search_table(const struct byi_elf *elf,
                                     const Elf64_Shdr *table, const char *name,
                                     struct byi_elf_symbol *symbol,
                                     struct byoc_error *err)
{
    if (table->sh_link >= elf->header.e_shnum ||
        !byi_elf_contains(elf, table->sh_offset, table->sh_size))
        return refuse_file(elf, "its table of symbols is damaged", err);
    const Elf64_Shdr names = read_section(elf, table->sh_link);
    if (names.sh_type != SHT_STRTAB ||
        !byi_elf_contains(elf, names.sh_offset, names.sh_size))
        return refuse_file(elf, "its symbols' names are damaged", err);
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, elf->at + table->sh_offset + i * sizeof s, sizeof s);
        const char *own = string_at(elf, &names, s.st_name);
        if (own && s.st_shndx != SHN_UNDEF && strcmp(own, name) == 0)
            return take_symbol(elf, &s, symbol, err);
    }
    return BYOC_OK;
}

enum byoc_status byi_elf_find(const struct byi_elf *elf, const char *name,
                              struct byi_elf_symbol *symbol,
                              struct byoc_error *err)
{
    *symbol = (struct byi_elf_symbol){0};
    for (uint32_t i = 0; i < elf->header.e_shnum && !symbol->found; i++) {
        const Elf64_Shdr s = read_section(elf, i);
        if (s.sh_type == SHT_DYNSYM)
            BYI_TRY(search_table(elf, &s, name, symbol, err));
    }
    return BYOC_OK;
}
