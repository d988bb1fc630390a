/* SPDX-License-Identifier: Apache-2.0 */
/* sections.c: mutates an artifact: changes the content of sections as text, and
 * corrects hashes and checksum, so that the code behind these checks
 * is reached too.
 */
#include "fuzz.h"

#include <string.h>

#include "core/base/elf.h"
#include "runtime/internal.h"

/* A section's content within the file. */
struct part {
    char *at;
    size_t n;
};

struct parts {
    struct part manifest, plan, ledger, blobs, weights;
};

static void take(struct part *part, struct byi_text *bytes,
                 const Elf64_Shdr *header)
{
    part->at = bytes->at + header->sh_offset;
    part->n = (size_t)header->sh_size;
}

/* Find the sections of byoc. Returns false if the mutated file is not an
 * artifact. */
static bool find_parts(struct byi_text *bytes, struct parts *p)
{
    struct byi_elf elf = {.at = bytes->at, .n = bytes->n};
    const struct {
        const char *name;
        struct part *part;
    } rows[] = {
        {".byoc.manifest", &p->manifest}, {".byoc.plan", &p->plan},
        {".byoc.ledger", &p->ledger},     {".byoc.blobs", &p->blobs},
        {".byoc.weights", &p->weights},
    };
    *p = (struct parts){0};
    if (!byi_elf_read(&elf, ET_DYN))
        return false;
    for (uint32_t i = 0; i < elf.header.e_shnum; i++) {
        const Elf64_Shdr s = byi_elf_section(&elf, i);
        for (uint32_t k = 0; k < BYI_COUNT(rows); k++)
            if (strcmp(byi_elf_name(&elf, &s), rows[k].name) == 0 &&
                byi_elf_contains(&elf, s.sh_offset, s.sh_size))
                take(rows[k].part, bytes, &s);
    }
    return p->manifest.at && p->plan.at && p->ledger.at && p->blobs.at;
}

/* Write the hash of the section into the manifest: 64 digits after the key,
 * which is after "hashes". */
static void fix_hash(const struct parts *p, const char *key,
                     const struct part *part)
{
    struct byi_sha256 s;
    char hex[65];
    const struct part *m = &p->manifest;
    char *at = memmem(m->at, m->n, "\"hashes\"", 8);
    at = at ? memmem(at, (size_t)(m->at + m->n - at), key, strlen(key)) : NULL;
    at = at ? at + strlen(key) : NULL;
    while (at && at < m->at + m->n && (*at == ':' || *at == ' ' || *at == '"'))
        at++;
    if (!at || m->at + m->n - at < 64)
        return;
    byi_sha256_init(&s);
    byi_sha256_add(&s, part->at, part->n);
    byi_sha256_hex(&s, hex);
    memcpy(at, hex, 64);
}

static void fix_sum(struct byi_text *bytes, const struct parts *p)
{
    const size_t magic = strlen(BYI_SUM_MAGIC);
    char *sum = bytes->at + bytes->n - BYI_SUM_BYTES;
    struct byi_sha256 s;
    char hex[65];
    if (bytes->n < BYI_SUM_BYTES || memcmp(sum, BYI_SUM_MAGIC, magic) != 0)
        return;
    const char *weights = p->weights.at ? p->weights.at : sum;
    const char *after = weights + p->weights.n;
    byi_sha256_init(&s);
    byi_sha256_add(&s, bytes->at, (size_t)(weights - bytes->at));
    if (after < sum)
        byi_sha256_add(&s, after, (size_t)(sum - after));
    byi_sha256_hex(&s, hex);
    memcpy(sum + magic, hex, 64);
}

/* Mutate the content of a section, padded with spaces; a mutant that is too
 * long is discarded. */
static void edit_part(struct fuzz_rng *rng, struct part *part)
{
    struct byi_text text = {0};
    byi_text_add(&text, part->at, part->n);
    fuzz_tokens(rng, &text, &text);
    if (text.n <= part->n) {
        memcpy(part->at, text.at, text.n);
        memset(part->at + text.n, ' ', part->n - text.n);
    }
    byi_text_free(&text);
}

void fuzz_sections(struct fuzz_rng *rng, struct byi_text *bytes,
                   const struct byi_text *other)
{
    struct parts p;
    if (fuzz_below(rng, 3) == 0 || !find_parts(bytes, &p)) {
        fuzz_bytes(rng, bytes, other);
        return;
    }
    struct part *const parts[] = {&p.plan, &p.plan, &p.manifest, &p.ledger,
                                  &p.blobs};
    edit_part(rng, parts[fuzz_below(rng, BYI_COUNT(parts))]);
    fix_hash(&p, "\"plan\"", &p.plan);
    fix_hash(&p, "\"ledger\"", &p.ledger);
    fix_hash(&p, "\"blobs\"", &p.blobs);
    fix_sum(bytes, &p);
}
