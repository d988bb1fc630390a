/* SPDX-License-Identifier: Apache-2.0 */
/* artifact.c: reads an artifact as an ELF file, without running its code. Finds
 * sections by name, and checks enough that the loader can map it safely.
 */
#include "exports.h"
#include "plan.h"

#include <string.h>

#include "core/base/descriptor.h"
#include "core/base/guard.h"

/* Opening compares the hashes of sections of at most this many bytes. */
enum { MAX_CHECKED_BYTES = 64 << 20 };

/* A section of an artifact's ELF file. */
struct section {
    const char *name;
    uint64_t addr, bytes; /* its address once the file is mapped, and length */
    const char *data;     /* NULL: the file has no section of that name */
};

enum { MODEL, MANIFEST, PLAN, LEDGER, BLOBS, WEIGHTS, N_NEEDED };
/* These sections exist only in artifacts with code of fused kernels or
 * backends' C. */
enum { KERNELS = N_NEEDED, UNITS, TEXT, N_SECTIONS };
static const char *const section_names[N_SECTIONS] = {
    [MODEL] = ".byoc.model",
    [MANIFEST] = ".byoc.manifest",
    [PLAN] = ".byoc.plan",
    [LEDGER] = ".byoc.ledger",
    [BLOBS] = ".byoc.blobs",
    [WEIGHTS] = ".byoc.weights",
    [KERNELS] = ".byoc.kernels",
    [UNITS] = ".byoc.units",
    [TEXT] = ".text",
};

/* An artifact's file while it is checked. */
struct artifact_file {
    struct byi_library_file library;
    struct section sections[N_SECTIONS];
    bool unfinished; /* the file is being written and has no checksum yet */
    struct byoc_error *err;
};

static enum byoc_status refuse_file(const struct artifact_file *f,
                                    const char *fault)
{
    return byi_fail(f->err, BYOC_EPARSE,
                    "%s: not an artifact of byoc compile: %s", f->library.path,
                    fault);
}

/* --- sections ----------------------------------------------------------- */

/* What is wrong with section `s`, number k of section_names, or NULL. */
static const char *section_fault(const struct artifact_file *f, uint32_t k,
                                 const Elf64_Shdr *s)
{
    if (f->sections[k].data)
        return "occurs twice, expected it once";
    if (s->sh_type != SHT_PROGBITS)
        return "has no data of its own, expected data in the file";
    if (s->sh_flags & SHF_WRITE)
        return "is writable, expected it to be read-only";
    if (!(s->sh_flags & SHF_EXECINSTR) != (k != TEXT))
        return k == TEXT ? "has no code, expected code"
                         : "has code, expected data";
    if (s->sh_size == 0)
        return "is empty, expected at least 1 byte";
    if (!byi_elf_contains(&f->library.elf, s->sh_offset, s->sh_size))
        return "ends after the end of the file, which seems truncated, "
               "expected it inside";
    return NULL;
}

/* Keep section `s` if it is one of section_names. Fails if the section is not
 * as byoc writes it. */
static enum byoc_status take_section(struct artifact_file *f, const char *name,
                                     const Elf64_Shdr *s)
{
    for (uint32_t k = 0; k < N_SECTIONS; k++) {
        if (strcmp(name, section_names[k]) != 0)
            continue;
        const char *fault = section_fault(f, k, s);
        if (fault)
            return byi_fail(
                f->err, BYOC_EPARSE,
                "%s: section %s %s; copy or compile the artifact again",
                f->library.path, name, fault);
        f->sections[k] =
            (struct section){.name = name,
                             .addr = s->sh_addr,
                             .bytes = s->sh_size,
                             .data = f->library.elf.at + s->sh_offset};
    }
    return BYOC_OK;
}

static enum byoc_status find_sections(struct artifact_file *f)
{
    BYI_TRY(byi_library_file_open(&f->library, f->err));
    for (uint32_t i = 0; i < f->library.elf.header.e_shnum; i++) {
        const Elf64_Shdr s = byi_elf_section(&f->library.elf, i);
        BYI_TRY(take_section(f, byi_elf_name(&f->library.elf, &s), &s));
    }
    for (uint32_t k = 0; k < N_NEEDED; k++)
        if (!f->sections[k].data)
            return byi_fail(f->err, BYOC_EPARSE,
                            "%s: not an artifact of byoc compile: found no "
                            "section %s, expected one",
                            f->library.path, section_names[k]);
    return BYOC_OK;
}

/* --- descriptor and checksum ---------------------------------------------- */

static enum byoc_status check_descriptor(struct artifact_file *f)
{
    const struct section *s = f->sections;
    struct byi_descriptor d;
    if (s[MODEL].bytes != sizeof d)
        return byi_fail(f->err, BYOC_EPARSE,
                        "%s: found a descriptor of %llu bytes, expected %zu; "
                        "compile the model again",
                        f->library.path, (unsigned long long)s[MODEL].bytes,
                        sizeof d);
    memcpy(&d, s[MODEL].data, sizeof d);
    if (memcmp(d.magic, BYI_DESCRIPTOR_MAGIC, sizeof d.magic) != 0)
        return refuse_file(f, "found a descriptor without its magic number, "
                              "expected \"BYOCMDL\" first");
    if (d.version != BYI_ARTIFACT_VERSION)
        return byi_fail(f->err, BYOC_EINCOMPATIBLE,
                        "%s: found artifact version %u, expected %d; compile "
                        "the model again",
                        f->library.path, d.version, BYI_ARTIFACT_VERSION);
    const struct {
        int64_t place;
        uint64_t bytes;
    } described[N_NEEDED] = {
        [MANIFEST] = {d.manifest, d.manifest_bytes},
        [PLAN] = {d.plan, d.plan_bytes},
        [LEDGER] = {d.ledger, d.ledger_bytes},
        [BLOBS] = {d.blobs, d.blobs_bytes},
        [WEIGHTS] = {d.weights, d.weights_bytes},
    };
    for (uint32_t k = MANIFEST; k < N_NEEDED; k++)
        if ((uint64_t)described[k].place != s[k].addr - s[MODEL].addr ||
            described[k].bytes != s[k].bytes - 1)
            return byi_fail(f->err, BYOC_EPARSE,
                            "%s: found section %s of %llu bytes at offset %llu "
                            "from the descriptor, which says %llu bytes at "
                            "offset %lld; compile the model again",
                            f->library.path, section_names[k],
                            (unsigned long long)(s[k].bytes - 1),
                            (unsigned long long)(s[k].addr - s[MODEL].addr),
                            (unsigned long long)described[k].bytes,
                            (long long)described[k].place);
    if (s[WEIGHTS].addr % BYI_ALIGN != 0)
        return refuse_file(f, "found weights at an address that is not a "
                              "multiple of 64, expected an aligned one");
    for (uint32_t k = MANIFEST; k < N_NEEDED; k++)
        /* linkers drop empty sections, so each has an extra byte at its end */
        f->sections[k].bytes--;
    return BYOC_OK;
}

/* The checksum at the end also covers the loader's tables, relocations and
 * code, which no section's hash covers. Nothing else checks these, so a file
 * without a checksum is refused. */
static enum byoc_status check_sum(struct artifact_file *f)
{
    if (f->unfinished)
        return BYOC_OK;
    const char *sum = f->library.elf.at + f->library.elf.n - BYI_SUM_BYTES;
    if (f->library.elf.n < BYI_SUM_BYTES ||
        memcmp(sum, BYI_SUM_MAGIC, strlen(BYI_SUM_MAGIC)) != 0)
        return byi_fail(f->err, BYOC_EPARSE,
                        "%s: found no checksum at its end, expected one; is "
                        "the file truncated? Copy or compile it again",
                        f->library.path);
    const char *weights = f->sections[WEIGHTS].data;
    const char *after = weights + f->sections[WEIGHTS].bytes;
    struct byi_sha256 s;
    char hex[65];
    byi_sha256_init(&s);
    byi_sha256_add(&s, f->library.elf.at,
                   (size_t)(weights - f->library.elf.at));
    if (after < sum)
        byi_sha256_add(&s, after, (size_t)(sum - after));
    byi_sha256_hex(&s, hex);
    if (memcmp(hex, sum + strlen(BYI_SUM_MAGIC), 64) == 0)
        return BYOC_OK;
    return byi_fail(f->err, BYOC_EPARSE,
                    "%s: damaged: the checksum at its end is %.16s..., but its "
                    "bytes have %.16s...; copy or compile it again",
                    f->library.path, sum + strlen(BYI_SUM_MAGIC), hex);
}

static void fill_image(const struct artifact_file *f, struct byi_artifact *a)
{
    const struct section *s = f->sections;
    a->descriptor = (const void *)s[MODEL].data;
    if (s[KERNELS].data && s[TEXT].data) {
        a->code = (int64_t)(s[KERNELS].addr - s[MODEL].addr);
        a->code_bytes = s[KERNELS].bytes;
    }
    if (s[UNITS].data && s[TEXT].data) {
        a->units = (int64_t)(s[UNITS].addr - s[MODEL].addr);
        a->units_bytes = s[UNITS].bytes;
    }
    if (s[TEXT].data) {
        a->text = (int64_t)(s[TEXT].addr - s[MODEL].addr);
        a->text_bytes = s[TEXT].bytes;
    }
    a->image = (struct byi_image){
        .manifest = s[MANIFEST].data,
        .manifest_bytes = s[MANIFEST].bytes,
        .plan = s[PLAN].data,
        .plan_bytes = s[PLAN].bytes,
        .ledger = s[LEDGER].bytes ? s[LEDGER].data : NULL,
        .ledger_bytes = s[LEDGER].bytes,
        .blobs = s[BLOBS].data,
        .blobs_bytes = s[BLOBS].bytes,
        .weights = s[WEIGHTS].bytes ? s[WEIGHTS].data : NULL,
        .weights_bytes = s[WEIGHTS].bytes,
    };
}

/* --- hashes ------------------------------------------------------------- */

static enum byoc_status check_hash(const char *section, const void *data,
                                   size_t n, const char *expected,
                                   struct byoc_error *err)
{
    char hex[65];
    byi_sha256_hex_of(data, n, hex);
    if (expected && strcmp(hex, expected) == 0)
        return BYOC_OK;
    return byi_fail(err, BYOC_EPARSE,
                    "section %s hashes to %.16s..., but the manifest says "
                    "%.16s...; copy or compile the artifact again",
                    section, hex, expected ? expected : "nothing");
}

/* Compare the sections of at most `limit` bytes with the hashes in the
 * manifest; the weights only if `limit` is UINT64_MAX. */
static enum byoc_status check_hashes(const struct byi_artifact *a,
                                     uint64_t limit, struct byoc_error *err)
{
    const struct byi_image *image = &a->image;
    struct byi_image_manifest manifest;
    BYI_BORDER(err);
    struct byi_arena *arena = byi_arena_new();
    enum byoc_status status = byi_manifest_read(
        image->manifest, image->manifest_bytes, arena, &manifest, err);
    const struct {
        const char *name, *data, *hash;
        uint64_t n;
    } texts[] = {
        {"plan", image->plan, manifest.plan_hash, image->plan_bytes},
        {"ledger", image->ledger, manifest.ledger_hash, image->ledger_bytes},
        {"blobs", image->blobs, manifest.blobs_hash, image->blobs_bytes},
    };
    for (uint32_t i = 0; i < BYI_COUNT(texts) && status == BYOC_OK; i++)
        if (texts[i].n <= limit)
            status = check_hash(texts[i].name, texts[i].data,
                                (size_t)texts[i].n, texts[i].hash, err);
    char hex[65];
    if (status == BYOC_OK && limit == UINT64_MAX) {
        byoc_internal_weights_hash(image, hex);
        if (!manifest.weights_hash || strcmp(hex, manifest.weights_hash) != 0)
            status = byi_fail(
                err, BYOC_EPARSE,
                "section weights hashes to %.16s..., but the manifest says "
                "%.16s...; copy or compile the artifact again",
                hex, manifest.weights_hash ? manifest.weights_hash : "nothing");
    }
    byi_arena_free(&arena);
    return status;
}

/* --- opening and closing -------------------------------------------------- */

static enum byoc_status read_artifact(struct artifact_file *f,
                                      struct byi_artifact *a)
{
    BYI_TRY(find_sections(f));
    BYI_TRY(check_descriptor(f));
    BYI_TRY(check_sum(f));
    fill_image(f, a);
    if (check_hashes(a, MAX_CHECKED_BYTES, f->err) != BYOC_OK)
        return byi_prefix(f->err, "%s", f->library.path);
    return BYOC_OK;
}

static enum byoc_status open_file(const char *path, const char *name,
                                  bool unfinished, uint16_t machine,
                                  struct byi_artifact *a,
                                  struct byoc_error *err)
{
    struct byoc_error local;
    struct artifact_file f = {.library = {.path = name,
                                          .what = "an artifact of byoc compile",
                                          .machine = machine},
                              .unfinished = unfinished,
                              .err = err ? err : &local};
    size_t n;
    const void *data;
    *a = (struct byi_artifact){0};
    BYI_TRY(byi_map_file(path, &data, &n, err));
    a->map = data;
    a->map_bytes = n;
    f.library.elf.at = data;
    f.library.elf.n = n;
    enum byoc_status status = read_artifact(&f, a);
    if (status != BYOC_OK)
        byoc_internal_artifact_close(a);
    return status;
}

enum byoc_status byoc_internal_artifact_open(const char *path,
                                             struct byi_artifact *a,
                                             struct byoc_error *err)
{
    return open_file(path, path, false, 0, a, err);
}

enum byoc_status byi_artifact_open(const char *path, const char *name,
                                   struct byi_artifact *a,
                                   struct byoc_error *err)
{
    return open_file(path, name, false, 0, a, err);
}

enum byoc_status byoc_internal_artifact_open_unfinished(const char *path,
                                                        uint16_t machine,
                                                        struct byi_artifact *a,
                                                        struct byoc_error *err)
{
    return open_file(path, path, true, machine, a, err);
}

void byoc_internal_artifact_close(struct byi_artifact *a)
{
    byi_unmap(a->map, a->map_bytes);
    *a = (struct byi_artifact){0};
}

enum byoc_status byoc_internal_artifact_verify(const struct byi_artifact *a,
                                               struct byoc_error *err)
{
    return check_hashes(a, UINT64_MAX, err);
}
