/* SPDX-License-Identifier: Apache-2.0 */
/* nonzero.c: finds the elements of a tensor that are not zero. */
#include "core/base/nonzero.h"

#include <string.h>

/* Set set[i] to 1 if element i of the 64 at x has a bit of `mask`, else 0.
 * fold(bits) is zero only if `bits` is; HALVES folds 64 bits to 32, since SSE2
 * cannot compare 64-bit integers. */
#define MARK(size, type, fold)                                                 \
    static void mark_##size(const char *restrict x, uint64_t mask,             \
                            uint8_t *restrict set)                             \
    {                                                                          \
        for (int i = 0; i < 64; i++) {                                         \
            type bits;                                                         \
            memcpy(&bits, x + i * size, size);                                 \
            bits &= (type)mask;                                                \
            set[i] = fold(bits) != 0;                                          \
        }                                                                      \
    }
#define WHOLE(bits) (bits)
#define HALVES(bits) ((uint32_t)((bits) | (bits) >> 32))
MARK(1, uint8_t, WHOLE)
MARK(2, uint16_t, WHOLE)
MARK(4, uint32_t, WHOLE)
MARK(8, uint64_t, HALVES)

struct byi_nonzero byi_nonzero_begin(const struct byi_tensor *t)
{
    const size_t size = byi_dtype_bytes(t->dtype);
    const uint64_t sign = (uint64_t)1 << (8 * size - 1);
    const bool is_float = byi_dtype_is_float(t->dtype);
    return (struct byi_nonzero){t->data, byi_elements(t->rank, t->dims), size,
                                is_float ? sign - 1 : sign | (sign - 1)};
}

uint64_t byi_nonzero_next(struct byi_nonzero *reader)
{
    const size_t size = reader->size;
    const char *x = reader->x;
    char last[64 * sizeof(uint64_t)];
    if (reader->n < 64) {
        memset(last, 0, 64 * size);
        x = memcpy(last, x, (size_t)reader->n * size);
    }
    uint8_t set[64];
    (size == 1   ? mark_1
     : size == 2 ? mark_2
     : size == 4 ? mark_4
                 : mark_8)(x, reader->mask, set);
    uint64_t bits = 0;
    for (int i = 0; i < 64; i += 8) {
        uint64_t eight; /* bytes of 0 or 1; the product gathers their bits */
        memcpy(&eight, set + i, 8);
        bits |= (eight * 0x0102040810204080u >> 56) << i;
    }
    reader->x += 64 * size;
    reader->n -= 64;
    return bits;
}

int64_t byi_nonzero_count(const struct byi_tensor *t)
{
    struct byi_nonzero reader = byi_nonzero_begin(t);
    int64_t count = 0;
    while (reader.n > 0)
        count += __builtin_popcountll(byi_nonzero_next(&reader));
    return count;
}
