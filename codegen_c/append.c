/* SPDX-License-Identifier: Apache-2.0 */
/* append.c: appends the weights to the linked file as a separate segment, so
 * that they are written once, and neither assembler nor linker reads them. The
 * file is linked with a note and a weights section of one byte. The functions
 * here replace the note's program header by the header of the segment, and
 * change the weights section's header to describe the segment. (System V gABI,
 * "Program Loading": loadable segments ascend by address. File offset and
 * address are congruent modulo the alignment.)
 */
#include "codegen_c.h"

#include <errno.h>
#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/elf.h"

/* The linker's output, to which the weights are appended. */
struct linked_file {
    const char *path;
    const struct byi_image *image;
    struct byi_elf elf; /* its content, mapped */
    FILE *out;          /* the same file, open for writing */
    struct byoc_error *err;
};

/* Fail because the linker's output is not as expected. */
static enum byoc_status reject(const struct linked_file *l, const char *found,
                               const char *expected)
{
    return byi_fail(l->err, BYOC_EIO,
                    "%s: found %s in the linker's output, expected %s; try "
                    "another linker with CC",
                    l->path, found, expected);
}

/* Write n bytes at offset `at` of the file. */
static enum byoc_status write_at(const struct linked_file *l, uint64_t at,
                                 const void *data, uint64_t n)
{
    if (fseeko(l->out, (off_t)at, SEEK_SET) == 0 &&
        (n == 0 || fwrite(data, 1, n, l->out) == n))
        return BYOC_OK;
    return byi_fail(l->err, byi_io_status(errno), "%s: cannot write: %s",
                    l->path, strerror(errno));
}

static Elf64_Phdr read_segment(const struct linked_file *l, uint32_t i)
{
    Elf64_Phdr p;
    memcpy(&p, l->elf.at + l->elf.header.e_phoff + i * sizeof p, sizeof p);
    return p;
}

static enum byoc_status read_header(struct linked_file *l)
{
    const Elf64_Ehdr *h = &l->elf.header;
    if (!byi_elf_read(&l->elf, ET_DYN) ||
        h->e_phentsize != sizeof(Elf64_Phdr) ||
        !byi_elf_contains(&l->elf, h->e_phoff, h->e_phnum * sizeof(Elf64_Phdr)))
        return reject(l, "another header",
                      "an ELF64 header with tables in the file");
    return BYOC_OK;
}

/* The index of the section of that name; e_shnum if there is none. */
static uint32_t find_section(const struct linked_file *l, const char *name)
{
    for (uint32_t i = 0; i < l->elf.header.e_shnum; i++) {
        const Elf64_Shdr s = byi_elf_section(&l->elf, i);
        if (strcmp(byi_elf_name(&l->elf, &s), name) == 0)
            return i;
    }
    return l->elf.header.e_shnum;
}

/* Replace the note's program header by one that loads the weights. */
static enum byoc_status place_segment(struct linked_file *l,
                                      Elf64_Phdr *weights)
{
    uint32_t note = l->elf.header.e_phnum;
    uint64_t align = BYI_ALIGN, end = 0;
    for (uint32_t i = 0; i < l->elf.header.e_phnum; i++) {
        Elf64_Phdr p = read_segment(l, i);
        if (p.p_type == PT_NOTE)
            note = i;
        if (p.p_type != PT_LOAD)
            continue;
        align = p.p_align > align ? p.p_align : align;
        end = p.p_vaddr + p.p_memsz > end ? p.p_vaddr + p.p_memsz : end;
    }
    if (note == l->elf.header.e_phnum)
        return reject(l, "no segment for the note", "a PT_NOTE segment");
    uint64_t bytes = l->image->weights_bytes + 1;
    *weights = (Elf64_Phdr){
        .p_type = PT_LOAD,
        .p_flags = PF_R,
        .p_offset = (l->elf.n + align - 1) / align * align,
        .p_vaddr = (end + align - 1) / align * align,
        .p_filesz = bytes,
        .p_memsz = bytes,
        .p_align = align,
    };
    weights->p_paddr = weights->p_vaddr;
    return write_at(l, l->elf.header.e_phoff + note * sizeof *weights, weights,
                    sizeof *weights);
}

/* Let the weights section and the descriptor refer to the segment. */
static enum byoc_status move_section(struct linked_file *l,
                                     const Elf64_Phdr *weights)
{
    uint32_t i = find_section(l, ".byoc.weights");
    uint32_t k = find_section(l, ".byoc.model");
    if (i == l->elf.header.e_shnum || k == l->elf.header.e_shnum)
        return reject(l, "not all sections", ".byoc.weights and .byoc.model");
    Elf64_Shdr s = byi_elf_section(&l->elf, i),
               model = byi_elf_section(&l->elf, k);
    s.sh_offset = weights->p_offset;
    s.sh_addr = weights->p_vaddr;
    s.sh_size = weights->p_filesz;
    BYI_TRY(write_at(l, l->elf.header.e_shoff + i * sizeof s, &s, sizeof s));
    struct byi_descriptor d;
    if (model.sh_size != sizeof d ||
        !byi_elf_contains(&l->elf, model.sh_offset, sizeof d))
        return reject(l, "a section .byoc.model of another size",
                      "the size of a descriptor");
    memcpy(&d, l->elf.at + model.sh_offset, sizeof d);
    d.weights = (int64_t)(weights->p_vaddr - model.sh_addr);
    d.weights_bytes = l->image->weights_bytes;
    return write_at(l, model.sh_offset, &d, sizeof d);
}

/* Write the weights directly from their spans; gaps in the file read as zeros.
 */
static enum byoc_status write_weights(struct linked_file *l, uint64_t at)
{
    const struct byi_image *image = l->image;
    const struct byi_weights_span one_span = {image->weights,
                                              image->weights_bytes, 0};
    const struct byi_weights_span *spans =
        image->weights ? &one_span : image->spans;
    uint32_t n = image->weights ? 1 : image->n_spans;
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(
            write_at(l, at + spans[i].offset, spans[i].data, spans[i].bytes));
    return write_at(l, at + image->weights_bytes, "", 1);
}

static enum byoc_status append_weights(struct linked_file *l)
{
    Elf64_Phdr weights;
    BYI_TRY(read_header(l));
    BYI_TRY(place_segment(l, &weights));
    BYI_TRY(move_section(l, &weights));
    return write_weights(l, weights.p_offset);
}

enum byoc_status byi_artifact_append(const char *path,
                                     const struct byi_image *image,
                                     struct byoc_error *err)
{
    struct linked_file l = {.path = path, .image = image, .err = err};
    const void *data;
    size_t n;
    BYI_TRY(byi_map_file(path, &data, &n, err));
    l.elf = (struct byi_elf){.at = data, .n = n};
    l.out = fopen(path, "r+be");
    enum byoc_status status =
        l.out ? append_weights(&l)
              : byi_fail(err, byi_io_status(errno), "%s: cannot open: %s", path,
                         strerror(errno));
    if (l.out && fclose(l.out) != 0 && status == BYOC_OK)
        status = byi_fail(err, byi_io_status(errno), "%s: cannot write: %s",
                          path, strerror(errno));
    byi_unmap(data, n);
    return status;
}
