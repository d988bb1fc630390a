/* weights.c: the hash of weights. They are by far the largest part of a model,
 * so their pieces are hashed side by side, and it does not matter whether they
 * lie in one section or where the importer left them.
 */
#include "internal.h"

#include <string.h>

enum { PIECE = 4 << 20 };

/* Add the bytes [begin, end) of the weights. */
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
        const struct byi_span *span =
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

void byoc_internal_weights_hash(const struct byi_image *image, char hex[65])
{
    struct byi_sha256 all;
    byi_sha256_init(&all);
    int64_t pieces = (int64_t)((image->weights_bytes + PIECE - 1) / PIECE);
#pragma omp parallel for ordered schedule(static, 1)
    for (int64_t i = 0; i < pieces; i++) {
        struct byi_sha256 one;
        char digest[65];
        uint64_t begin = (uint64_t)i * PIECE;
        uint64_t end = begin + PIECE;
        if (end > image->weights_bytes)
            end = image->weights_bytes;
        byi_sha256_init(&one);
        add_range(&one, image, begin, end);
        byi_sha256_hex(&one, digest);
#pragma omp ordered
        byi_sha256_add(&all, digest, 64);
    }
    byi_sha256_hex(&all, hex);
}
