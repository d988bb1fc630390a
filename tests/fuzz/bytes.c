/* bytes.c: mutations that know nothing of what the bytes mean. */
#include "fuzz.h"

#include <string.h>

int64_t fuzz_number(struct fuzz_rng *rng)
{
    /* clang-format off */
    static const int64_t numbers[] = {
        0, 1, 2, 3, 4, 5, 7, 8, 13, 16, 64, -1,
        -2, 12, 127, 128, 255, 256, 1000, -128, 32767, 65535, 65536,
        1 << 20, INT32_MAX, INT32_MIN, 1u << 31, UINT32_MAX,
        (int64_t)1 << 32, (int64_t)1 << 53, (int64_t)1 << 62,
        INT64_MAX, INT64_MIN, INT64_MAX - 1,
    };
    /* clang-format on */
    /* half the time one of the first row: those leave things valid */
    uint64_t n = fuzz_next(rng) & 1 ? 12 : BYI_COUNT(numbers);
    return numbers[fuzz_below(rng, n)];
}

static void splice(struct byi_text *t, size_t at, size_t gone, const void *with,
                   size_t n)
{
    struct byi_text fresh = {0};
    byi_text_add(&fresh, t->at, at);
    byi_text_add(&fresh, with, n);
    byi_text_add(&fresh, t->at + at + gone, t->n - at - gone);
    byi_text_free(t);
    *t = fresh;
}

/* Lengths are mostly short. */
static size_t length(struct fuzz_rng *rng, size_t most)
{
    size_t n = 1 + fuzz_below(rng, fuzz_below(rng, 4) ? 16 : 512);
    return n < most ? n : most;
}

static void overwrite_number(struct fuzz_rng *rng, struct byi_text *t,
                             size_t at)
{
    int64_t number = fuzz_number(rng);
    size_t width = (size_t)1 << fuzz_below(rng, 4);
    if (width > t->n - at)
        width = t->n - at;
    memcpy(t->at + at, &number, width); /* little-endian here or not */
}

static void edit(struct fuzz_rng *rng, struct byi_text *t)
{
    size_t at = fuzz_below(rng, t->n), from = fuzz_below(rng, t->n);
    size_t n = length(rng, t->n - at);
    char noise[512];
    switch (fuzz_below(rng, 10)) {
    case 0:
    case 1:
        t->at[at] = (char)(t->at[at] ^ (1 << fuzz_below(rng, 8)));
        return;
    case 2:
        t->at[at] = (char)fuzz_next(rng);
        return;
    case 3:
    case 4:
        overwrite_number(rng, t, at);
        return;
    case 5:
        splice(t, at, n, NULL, 0);
        return;
    case 6:
        for (size_t i = 0; i < n; i++)
            noise[i] = (char)fuzz_next(rng);
        splice(t, at, 0, noise, n);
        return;
    case 7: /* a copy of what is elsewhere, in place of this or before it */
        if (n > t->n - from)
            n = t->n - from;
        memcpy(noise, t->at + from, n);
        splice(t, at, fuzz_next(rng) & 1 ? n < t->n - at ? n : 0 : 0, noise, n);
        return;
    case 8:
        t->n = at;
        return;
    default: /* varints of protobuf: make one go on, or end */
        t->at[at] = (char)(t->at[at] ^ 0x80);
    }
}

void fuzz_bytes(struct fuzz_rng *rng, struct byi_text *bytes)
{
    do {
        if (bytes->n)
            edit(rng, bytes);
    } while (fuzz_below(rng, 3));
}
