/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: checks the symbols and sections of an object file (System V gABI,
 * "Symbol Table"). It is compiled from a backend's C, which may contain any
 * assembler directive.
 */
#include "codegen_c.h"

#include <string.h>

#include "core/base/elf.h"

/* An object file that is checked before it is used. */
struct object_file {
    struct byi_elf elf;
    const char *name; /* of the function that it must define */
    bool found;       /* it defines this function */
    struct byoc_error *err;
};

/* Fail: the bytes are not a relocatable ELF64 object. */
static enum byoc_status reject(const struct object_file *o)
{
    return byi_fail(o->err, BYOC_EUNSUPPORTED,
                    "found %llu bytes from the compiler that are not a "
                    "relocatable ELF64 object, expected one",
                    (unsigned long long)o->elf.n);
}

/* --- sections ------------------------------------------------------------- */

/* Accept the sections of C functions and variables. Other allocated sections
 * could run code at load time, or replace sections of the artifact. */
static enum byoc_status check_section(const struct object_file *o, uint32_t i)
{
    static const char *const allowed[] = {".text", ".rodata",   ".data",
                                          ".bss",  ".eh_frame", ".note.gnu"};
    const Elf64_Shdr s = byi_elf_section(&o->elf, i);
    const char *name = byi_elf_name(&o->elf, &s);
    bool fits = !(s.sh_flags & SHF_ALLOC);
    for (size_t k = 0; k < BYI_COUNT(allowed) && !fits; k++) {
        const size_t n = strlen(allowed[k]);
        fits =
            strncmp(name, allowed[k], n) == 0 && (!name[n] || name[n] == '.');
    }
    if (fits)
        return BYOC_OK;
    return byi_fail(o->err, BYOC_EUNSUPPORTED,
                    "it has a section %.60s, expected only the sections of C "
                    "functions and variables",
                    name);
}

/* --- symbols -------------------------------------------------------------- */

static enum byoc_status check_symbol(struct object_file *o, const Elf64_Sym *s,
                                     uint32_t strings)
{
    const char *name = byi_elf_string(&o->elf, strings, s->st_name);
    const Elf64_Shdr section = byi_elf_section(&o->elf, s->st_shndx);
    if (ELF64_ST_BIND(s->st_info) == STB_LOCAL || s->st_shndx == SHN_UNDEF)
        return BYOC_OK;
    if (!name)
        return reject(o);
    if (strcmp(name, o->name) != 0)
        return byi_fail(o->err, BYOC_EUNSUPPORTED,
                        "it defines %.200s with external linkage, expected "
                        "only the requested function",
                        name);
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
        !(section.sh_flags & SHF_EXECINSTR))
        return byi_fail(o->err, BYOC_EUNSUPPORTED,
                        "it defines %.200s, which is not a function, expected "
                        "the requested function",
                        name);
    o->found = true;
    return BYOC_OK;
}

static enum byoc_status check_symbols(struct object_file *o, uint32_t i)
{
    const Elf64_Shdr table = byi_elf_section(&o->elf, i);
    Elf64_Sym s;
    if (!byi_elf_contains(&o->elf, table.sh_offset, table.sh_size))
        return reject(o);
    for (uint64_t at = 0; at + sizeof s <= table.sh_size; at += sizeof s) {
        memcpy(&s, o->elf.at + table.sh_offset + at, sizeof s);
        BYI_TRY(check_symbol(o, &s, table.sh_link));
    }
    return BYOC_OK;
}

enum byoc_status byi_object_check(const struct byi_text *object,
                                  const char *name, struct byoc_error *err)
{
    struct object_file o = {
        .elf = {.at = object->at, .n = object->n}, .name = name, .err = err};
    if (!byi_elf_read(&o.elf, ET_REL))
        return reject(&o);
    for (uint32_t i = 0; i < o.elf.header.e_shnum; i++) {
        BYI_TRY(check_section(&o, i));
        if (byi_elf_section(&o.elf, i).sh_type == SHT_SYMTAB)
            BYI_TRY(check_symbols(&o, i));
    }
    return o.found ? BYOC_OK
                   : byi_fail(err, BYOC_EUNSUPPORTED,
                              "it does not define %.200s with external "
                              "linkage, expected the requested function",
                              name);
}
