/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c: computes the hash of weights: SHA-256 of the hexadecimal SHA-256
 * digests of their pieces of 4 MiB. Weights are by far the largest part of a
 * model, so pieces are hashed in parallel. The hash is the same whether the
 * weights are in one section or in the importer's spans. */
#include "internal.h"
#include "workers.h"

enum { PIECE_BYTES = 4 << 20, BATCH = 32 };

/* Add the bytes [begin, end) of the weights; bytes between spans are zeros. */
static void add_range(struct byi_sha256 *s, const struct byi_image *image,
                      uint64_t begin, uint64_t end)
{
    static const char zeros[4096];
    if (image->weights) {
        byi_sha256_add(s, (const char *)image->weights + begin,
                       (size_t)(end - begin));
        return;
    }
    uint32_t lo = 0, hi = image->n_spans;
    while (lo < hi) { /* the first span that ends after begin */
        uint32_t mid = lo + (hi - lo) / 2;
        if (image->spans[mid].offset + image->spans[mid].bytes <= begin)
            lo = mid + 1;
        else
            hi = mid;
    }
    while (begin < end) {
        const struct byi_weights_span *span =
            lo < image->n_spans ? &image->spans[lo] : NULL;
        uint64_t n = end - begin;
        if (span && span->offset <= begin) {
            uint64_t at = begin - span->offset;
            n = n < span->bytes - at ? n : span->bytes - at;
            byi_sha256_add(s, (const char *)span->data + at, (size_t)n);
            lo += (uint32_t)(at + n == span->bytes);
            begin += n;
            continue;
        }
        if (span && span->offset - begin < n)
            n = span->offset - begin;
        n = n < sizeof zeros ? n : sizeof zeros;
        byi_sha256_add(s, zeros, (size_t)n);
        begin += n;
    }
}

/* Pieces that are hashed in parallel. */
struct batch {
    const struct byi_image *image;
    uint64_t first; /* number of the first piece */
    char digests[BATCH][65];
};

static void hash_piece(void *arg, uint32_t i)
{
    struct batch *b = arg;
    struct byi_sha256 piece;
    const uint64_t begin = (b->first + i) * PIECE_BYTES;
    uint64_t end = begin + PIECE_BYTES;
    if (end > b->image->weights_bytes)
        end = b->image->weights_bytes;
    byi_sha256_init(&piece);
    add_range(&piece, b->image, begin, end);
    byi_sha256_hex(&piece, b->digests[i]);
}

void byoc_internal_weights_hash(const struct byi_image *image, char hex[65])
{
    struct byi_sha256 weights_hash;
    byi_sha256_init(&weights_hash);
    const uint64_t pieces =
        (image->weights_bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    struct batch b = {.image = image};
    for (; b.first < pieces; b.first += BATCH) {
        const uint64_t rest = pieces - b.first;
        const uint32_t n = rest < BATCH ? (uint32_t)rest : BATCH;
        byi_parallel_for(n, hash_piece, &b);
        for (uint32_t i = 0; i < n; i++)
            byi_sha256_add(&weights_hash, b.digests[i], 64);
    }
    byi_sha256_hex(&weights_hash, hex);
}
