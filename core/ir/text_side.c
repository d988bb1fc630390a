/* SPDX-License-Identifier: Apache-2.0 */
/* text_side.c: writes and reads the side file: large constants of a text, by
 * digest. A record is a header of 128 bytes and the data, padded to multiples
 * of 64 bytes, so that mapped data is aligned (docs/text.md, "The side file").
 * Little endian.
 */
#include "core/base/index.h"
#include "text.h"

#include <assert.h>
#include <string.h>

#define MAGIC "byoc-consts 1\n"

/* The header of a record, as in the file. The digest covers the members from
 * dtype on, then the data. */
struct side_header {
    char digest[16];
    uint32_t dtype, rank;
    int64_t dims[BYI_MAX_RANK]; /* unused ones are 0 */
    uint64_t bytes;
};
static_assert(sizeof(struct side_header) == 2 * BYI_ALIGN,
              "the file format has headers of 128 bytes");

/* A record; `data` follows its header in the file. */
struct side_entry {
    struct side_header header;
    const void *data;
};

/* The file `path`, mapped to the n bytes at `map`. */
struct byi_side {
    struct byi_arena *arena;
    const char *path;
    BYI_VEC(struct side_entry) entries;
    struct byi_index by_digest;
    const void *map;
    size_t n;
};

static struct side_header header_of(const struct byi_const *c)
{
    struct side_header r = {
        .dtype = c->type->dtype,
        .rank = c->type->rank,
        .bytes = c->bytes,
    };

    for (uint32_t i = 0; i < r.rank; i++)
        r.dims[i] = c->type->dims[i];
    return r;
}

static void digest_of(const struct side_header *r, const void *data,
                      char digest[17])
{
    struct byi_sha256 sha;
    char hex[65];

    byi_sha256_init(&sha);
    byi_sha256_add(&sha, &r->dtype,
                   sizeof *r - offsetof(struct side_header, dtype));
    if (r->bytes)
        byi_sha256_add(&sha, data, r->bytes);
    byi_sha256_hex(&sha, hex);
    memcpy(digest, hex, 16);
    digest[16] = '\0';
}

void byi_const_digest(const struct byi_const *c, char digest[17])
{
    struct side_header r = header_of(c);

    digest_of(&r, c->data, digest);
}

/* --- writing ------------------------------------------------------------ */

/* Write zeros up to the next multiple of BYI_ALIGN bytes. */
static void pad(FILE *file, uint64_t written)
{
    static const char zeros[BYI_ALIGN];

    fwrite(zeros, 1, (size_t)(-written % BYI_ALIGN), file);
}

void byi_side_begin(FILE *file)
{
    fwrite(MAGIC, 1, sizeof MAGIC - 1, file);
    pad(file, sizeof MAGIC - 1);
}

void byi_side_write(FILE *file, const char *digest, const struct byi_const *c)
{
    struct side_header r = header_of(c);

    memcpy(r.digest, digest, sizeof r.digest);
    fwrite(&r, sizeof r, 1, file);
    fwrite(c->data, 1, (size_t)c->bytes, file);
    pad(file, c->bytes);
}

/* --- reading ------------------------------------------------------------ */

static uint64_t hash_digest(const char *digest)
{
    return byi_hash(0, digest, sizeof((struct side_header *)0)->digest);
}

static const struct side_entry *find_entry(const struct byi_side *side,
                                           const char *digest)
{
    BYI_INDEX_EACH (&side->by_digest, hash_digest(digest), i)
        if (memcmp(side->entries.at[i].header.digest, digest,
                   sizeof side->entries.at[i].header.digest) == 0)
            return &side->entries.at[i];
    return NULL;
}

/* Read the record at byte `at` into *entry; fails unless it is complete and its
 * size matches its dims. */
static enum byoc_status read_record(const struct byi_side *side, size_t at,
                                    struct side_entry *entry,
                                    struct byoc_error *err)
{
    struct side_header *r = &entry->header;
    struct byi_tensor t = {0};

    if (side->n - at < sizeof *r)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: the record at byte %zu is cut off: found %zu "
            "bytes, expected %zu; write it again with `byoc opt --consts`",
            side->path, at, side->n - at, sizeof *r);
    memcpy(r, (const char *)side->map + at, sizeof *r);
    if (r->rank > BYI_MAX_RANK || r->dtype > BYI_LAST_DTYPE ||
        byoc_dtype_size((enum byoc_dtype)r->dtype) == 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: the record at byte %zu has rank %u and dtype %u, "
                        "expected a rank up to %d and a known dtype; write it "
                        "again with `byoc opt --consts`",
                        side->path, at, r->rank, r->dtype, BYI_MAX_RANK);
    t.dtype = (enum byoc_dtype)r->dtype;
    t.rank = r->rank;
    memcpy(t.dims, r->dims, sizeof t.dims);
    if (r->bytes != byi_tensor_bytes(&t))
        return byi_fail(err, BYOC_EPARSE,
                        "%s: the record at byte %zu has %llu bytes of data, "
                        "expected %llu for its dtype and dims; write it again "
                        "with `byoc opt --consts`",
                        side->path, at, (unsigned long long)r->bytes,
                        (unsigned long long)byi_tensor_bytes(&t));
    if (r->bytes > side->n - at - sizeof *r)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: the data of the record at byte %zu is cut off: "
                        "found %zu bytes, expected %llu; write it again with "
                        "`byoc opt --consts`",
                        side->path, at, side->n - at - sizeof *r,
                        (unsigned long long)r->bytes);
    entry->data = (const char *)side->map + at + sizeof *r;
    return BYOC_OK;
}

static enum byoc_status read_records(struct byi_side *side,
                                     struct byoc_error *err)
{
    size_t at = BYI_ALIGN;

    if (side->n < BYI_ALIGN || memcmp(side->map, MAGIC, sizeof MAGIC - 1) != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found no line 'byoc-consts 1' at its start, "
                        "expected a side file of constants; write it with "
                        "`byoc opt --consts`",
                        side->path);
    while (at < side->n) {
        struct side_entry entry;
        BYI_TRY(read_record(side, at, &entry, err));
        BYI_PUSH(&side->entries, entry);
        at += sizeof(struct side_header);
        at += (size_t)(entry.header.bytes + (-entry.header.bytes % BYI_ALIGN));
    }
    return BYOC_OK;
}

static void close_side(void *arg)
{
    struct byi_side *side = arg;

    byi_vec_free(side->entries.at);
    byi_unmap(side->map, side->n);
}

enum byoc_status byi_side_open(const char *path, struct byi_arena *arena,
                               struct byi_side **side, struct byoc_error *err)
{
    struct byi_side *s = byi_arena_alloc(arena, sizeof *s);

    s->arena = arena;
    s->path = byi_arena_str(arena, path);
    BYI_TRY(byi_map_file(path, &s->map, &s->n, err));
    byi_arena_defer(arena, close_side, s);
    BYI_TRY(read_records(s, err));
    s->by_digest.arena = arena;
    for (uint32_t i = 0; i < s->entries.n; i++)
        byi_index_add(&s->by_digest,
                      hash_digest(s->entries.at[i].header.digest), i);
    *side = s;
    return BYOC_OK;
}

enum byoc_status byi_side_find(const struct byi_side *side, const char *digest,
                               bool *found, struct byi_const *c,
                               struct byoc_error *err)
{
    const struct side_entry *entry = find_entry(side, digest);
    char actual[17];

    *found = entry != NULL;
    if (!*found)
        return BYOC_OK;
    digest_of(&entry->header, entry->data, actual);
    if (memcmp(actual, digest, 16) != 0)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: constant %.16s is damaged: found data with digest "
            "%s, expected its own; write it again with `byoc opt --consts`",
            side->path, digest, actual);
    *c = (struct byi_const){
        .type =
            byi_type_tensor(side->arena, (enum byoc_dtype)entry->header.dtype,
                            entry->header.rank, entry->header.dims),
        .data = entry->data,
        .bytes = entry->header.bytes,
    };
    return BYOC_OK;
}
