/* SPDX-License-Identifier: Apache-2.0 */
/* exports.c: reads a shared library's file before the loader maps it. */
#include "exports.h"

#include <string.h>

#include "core/base/machine.h"

static enum byoc_status refuse_file(const struct byi_library_file *file,
                                    const char *why, struct byoc_error *err)
{
    return byi_fail(err, BYOC_EPARSE, "%s: not %s: %s", file->path, file->what,
                    why);
}

enum byoc_status byi_library_file_open(struct byi_library_file *file,
                                       struct byoc_error *err)
{
    const uint16_t machine =
        file->machine ? file->machine : byi_machine_host()->elf;
    const bool fits = byi_elf_read(&file->elf, ET_DYN);
    const Elf64_Ehdr *h = &file->elf.header;
    if (h->e_ident[EI_CLASS] == ELFCLASS32)
        return refuse_file(
            file, "it is a 32-bit file, expected a 64-bit shared library", err);
    if (h->e_type != ET_DYN)
        return refuse_file(
            file,
            "it is not a shared library; compile a model, or link a plug-in",
            err);
    if (machine != EM_NONE && h->e_machine != machine)
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: made for another processor (ELF machine %u, "
                        "expected %u); build or compile it for this one",
                        file->path, h->e_machine, machine);
    return fits ? BYOC_OK
                : refuse_file(file,
                              "its section table is damaged; is the file "
                              "truncated?",
                              err);
}

static enum byoc_status take_symbol(const struct byi_library_file *file,
                                    const Elf64_Sym *s,
                                    struct byi_exported_symbol *symbol,
                                    struct byoc_error *err)
{
    const Elf64_Shdr section = byi_elf_section(&file->elf, s->st_shndx);
    const uint64_t at = s->st_value - section.sh_addr;
    *symbol = (struct byi_exported_symbol){.found = true, .bytes = s->st_size};
    if (section.sh_type != SHT_PROGBITS || (section.sh_flags & SHF_EXECINSTR))
        return BYOC_OK;
    if (at > section.sh_size || s->st_size > section.sh_size - at ||
        !byi_elf_contains(&file->elf, section.sh_offset, section.sh_size))
        return refuse_file(file,
                           "a symbol lies outside its section, expected it "
                           "inside; is the file truncated?",
                           err);
    symbol->data = file->elf.at + section.sh_offset + at;
    return BYOC_OK;
}

static enum byoc_status search_table(const struct byi_library_file *file,
                                     const Elf64_Shdr *table, const char *name,
                                     struct byi_exported_symbol *symbol,
                                     struct byoc_error *err)
{
    const struct byi_elf *elf = &file->elf;
    if (!byi_elf_contains(elf, table->sh_offset, table->sh_size) ||
        !byi_elf_string(elf, table->sh_link, 0))
        return refuse_file(file,
                           "its table of symbols lies outside the file, "
                           "expected it inside; is the file truncated?",
                           err);
    for (uint64_t i = 0; i < table->sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym s;
        memcpy(&s, elf->at + table->sh_offset + i * sizeof s, sizeof s);
        const char *symbol_name =
            byi_elf_string(elf, table->sh_link, s.st_name);
        if (symbol_name && s.st_shndx != SHN_UNDEF &&
            strcmp(symbol_name, name) == 0)
            return take_symbol(file, &s, symbol, err);
    }
    return BYOC_OK;
}

enum byoc_status byi_library_file_find(const struct byi_library_file *file,
                                       const char *name,
                                       struct byi_exported_symbol *symbol,
                                       struct byoc_error *err)
{
    *symbol = (struct byi_exported_symbol){0};
    for (uint32_t i = 0; i < file->elf.header.e_shnum && !symbol->found; i++) {
        const Elf64_Shdr s = byi_elf_section(&file->elf, i);
        if (s.sh_type == SHT_DYNSYM)
            BYI_TRY(search_table(file, &s, name, symbol, err));
    }
    return BYOC_OK;
}
