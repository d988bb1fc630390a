/* SPDX-License-Identifier: Apache-2.0 */
/* object.c: checks the symbols and sections of an object file (System V gABI,
 * "Symbol Table"), since it is compiled from a backend's C, which may contain
 * any assembler directive.
 */
#include "codegen_c.h"

#include <elf.h>
#include <string.h>

/* An object file of n bytes. */
struct object_file {
    const char *at;
    uint64_t n;
    Elf64_Ehdr header;
    const char *name; /* of the function that it must define */
    bool found;       /* it defines this function */
    struct byoc_error *err;
};

static bool is_in_file(const struct object_file *o, uint64_t at, uint64_t bytes)
{
    return at <= o->n && bytes <= o->n - at;
}

/* Fail: the bytes are not a relocatable ELF64 object. */
static enum byoc_status reject(const struct object_file *o)
{
    return byi_fail(o->err, BYOC_EUNSUPPORTED,
                    "found %llu bytes from the compiler that are not a "
                    "relocatable ELF64 object, expected one",
                    (unsigned long long)o->n);
}

/* Section header i; all zero if there is none. */
static Elf64_Shdr read_section(const struct object_file *o, uint32_t i)
{
    Elf64_Shdr s = {0};
    if (i < o->header.e_shnum)
        memcpy(&s, o->at + o->header.e_shoff + i * sizeof s, sizeof s);
    return s;
}

/* A string of the string table in section `table`; "" if it is malformed. */
static const char *read_string(const struct object_file *o, uint32_t table,
                               uint64_t at)
{
    const Elf64_Shdr s = read_section(o, table);
    if (s.sh_type != SHT_STRTAB || at >= s.sh_size ||
        !is_in_file(o, s.sh_offset, s.sh_size) ||
        o->at[s.sh_offset + s.sh_size - 1] != '\0')
        return "";
    return o->at + s.sh_offset + at;
}

static enum byoc_status read_header(struct object_file *o)
{
    if (o->n < sizeof o->header)
        return reject(o);
    memcpy(&o->header, o->at, sizeof o->header);
    const Elf64_Ehdr *h = &o->header;
    if (memcmp(h->e_ident, ELFMAG, SELFMAG) != 0 ||
        h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_type != ET_REL ||
        h->e_shentsize != sizeof(Elf64_Shdr) ||
        !is_in_file(o, h->e_shoff, h->e_shnum * sizeof(Elf64_Shdr)))
        return reject(o);
    return BYOC_OK;
}

/* --- sections ------------------------------------------------------------- */

/* Accept the sections of C functions and variables. Other allocated sections
 * could run code at load time, or replace sections of the artifact. */
static enum byoc_status check_section(const struct object_file *o, uint32_t i)
{
    static const char *const plain[] = {".text", ".rodata",   ".data",
                                        ".bss",  ".eh_frame", ".note.gnu"};
    const Elf64_Shdr s = read_section(o, i);
    const char *name = read_string(o, o->header.e_shstrndx, s.sh_name);
    bool fits = !(s.sh_flags & SHF_ALLOC);
    for (size_t k = 0; k < BYI_COUNT(plain) && !fits; k++) {
        const size_t n = strlen(plain[k]);
        fits = strncmp(name, plain[k], n) == 0 && (!name[n] || name[n] == '.');
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
    const char *name = read_string(o, strings, s->st_name);
    const Elf64_Shdr home = read_section(o, s->st_shndx);
    if (ELF64_ST_BIND(s->st_info) == STB_LOCAL || s->st_shndx == SHN_UNDEF)
        return BYOC_OK;
    if (strcmp(name, o->name) != 0)
        return byi_fail(o->err, BYOC_EUNSUPPORTED,
                        "it defines %.200s with external linkage, expected "
                        "only the requested function",
                        name);
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
        !(home.sh_flags & SHF_EXECINSTR))
        return byi_fail(o->err, BYOC_EUNSUPPORTED,
                        "it defines %.200s, which is not a function, expected "
                        "the requested function",
                        name);
    o->found = true;
    return BYOC_OK;
}

static enum byoc_status check_symbols(struct object_file *o, uint32_t i)
{
    const Elf64_Shdr table = read_section(o, i);
    Elf64_Sym s;
    if (!is_in_file(o, table.sh_offset, table.sh_size))
        return reject(o);
    for (uint64_t at = 0; at + sizeof s <= table.sh_size; at += sizeof s) {
        memcpy(&s, o->at + table.sh_offset + at, sizeof s);
        BYI_TRY(check_symbol(o, &s, table.sh_link));
    }
    return BYOC_OK;
}

enum byoc_status byi_object_check(const struct byi_text *object,
                                  const char *name, struct byoc_error *err)
{
    struct object_file o = {
        .at = object->at, .n = object->n, .name = name, .err = err};
    BYI_TRY(read_header(&o));
    for (uint32_t i = 0; i < o.header.e_shnum; i++) {
        BYI_TRY(check_section(&o, i));
        if (read_section(&o, i).sh_type == SHT_SYMTAB)
            BYI_TRY(check_symbols(&o, i));
    }
    return o.found
               ? BYOC_OK
               : byi_fail(err, BYOC_EUNSUPPORTED,
                          "it does not define the requested function %.200s "
                          "with external linkage",
                          name);
}
