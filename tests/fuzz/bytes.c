/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.c: mutates bytes without knowledge of their format. */
#include "cover.h"

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
    /* half the time one of the first row: small numbers often keep inputs valid
     */
    uint64_t n = fuzz_next(rng) & 1 ? 12 : BYI_COUNT(numbers);
    return numbers[fuzz_below(rng, n)];
}

void fuzz_splice(struct byi_text *t, size_t at, size_t n_removed,
                 const char *inserted, size_t n)
{
    struct byi_text result = {0};
    byi_text_add(&result, t->at, at);
    byi_text_add(&result, inserted ? inserted : "", n);
    byi_text_add(&result, t->at + at + n_removed, t->n - at - n_removed);
    byi_text_free(t);
    *t = result;
}

/* A random length up to `limit`, mostly a short one. */
static size_t random_length(struct fuzz_rng *rng, size_t limit)
{
    size_t n = 1 + fuzz_below(rng, fuzz_below(rng, 4) ? 16 : 512);
    return n < limit ? n : limit;
}

static void overwrite_number(struct fuzz_rng *rng, struct byi_text *t,
                             size_t at)
{
    int64_t number = fuzz_number(rng);
    size_t width = (size_t)1 << fuzz_below(rng, 4);
    if (width > t->n - at)
        width = t->n - at;
    memcpy(t->at + at, &number, width); /* in the byte order of this machine */
}

/* Find the n bytes of `what` in the text, starting at a random position;
 * SIZE_MAX if they do not occur. */
static size_t find(struct fuzz_rng *rng, const struct byi_text *t,
                   const char *what, size_t n)
{
    const size_t from = fuzz_below(rng, t->n);
    const char *at = memmem(t->at + from, t->n - from, what, n);
    at = at ? at : memmem(t->at, t->n, what, n);
    return at ? (size_t)(at - t->at) : SIZE_MAX;
}

/* Replace a number that a comparison found, as bytes or as decimal digits, by
 * the number that the comparison wanted. */
static void follow_hint(struct fuzz_rng *rng, struct byi_text *t)
{
    struct fuzz_hint hint;
    char found[32], wanted[32];
    if (!fuzz_pick_hint(rng, &hint))
        return;
    if (fuzz_next(rng) & 1) {
        const int n =
            snprintf(found, sizeof found, "%lld", (long long)hint.found);
        const int m =
            snprintf(wanted, sizeof wanted, "%lld", (long long)hint.wanted);
        const size_t at = find(rng, t, found, (size_t)n);
        if (at != SIZE_MAX)
            fuzz_splice(t, at, (size_t)n, wanted, (size_t)m);
        return;
    }
    const size_t width = (size_t)1 << fuzz_below(rng, 4);
    memcpy(found, &hint.found, sizeof hint.found);
    const size_t at = find(rng, t, found, width);
    if (at != SIZE_MAX)
        memcpy(t->at + at, &hint.wanted, width);
}

/* Copy a piece of the other input over a piece of this one, or before it. */
static void take_piece(struct fuzz_rng *rng, struct byi_text *t,
                       const struct byi_text *other)
{
    const size_t from = fuzz_below(rng, other->n), at = fuzz_below(rng, t->n);
    const size_t n = random_length(rng, other->n - from);
    const size_t n_removed = n < t->n - at && fuzz_next(rng) & 1 ? n : 0;
    struct byi_text piece = {0}; /* the other one may be the same memory */
    byi_text_add(&piece, other->at + from, n);
    fuzz_splice(t, at, n_removed, piece.at, n);
    byi_text_free(&piece);
}

/* Apply one random mutation to the text, which must not be empty. */
static void edit(struct fuzz_rng *rng, struct byi_text *t,
                 const struct byi_text *other)
{
    size_t at = fuzz_below(rng, t->n), from = fuzz_below(rng, t->n);
    size_t n = random_length(rng, t->n - at);
    char piece[512];
    switch (fuzz_below(rng, 14)) {
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
        fuzz_splice(t, at, n, NULL, 0);
        return;
    case 6:
        for (size_t i = 0; i < n; i++)
            piece[i] = (char)fuzz_next(rng);
        fuzz_splice(t, at, 0, piece, n);
        return;
    case 7: /* a copy of other bytes of the input, in place of these or before
               them */
        if (n > t->n - from)
            n = t->n - from;
        memcpy(piece, t->at + from, n);
        fuzz_splice(t, at, fuzz_next(rng) & 1 ? n < t->n - at ? n : 0 : 0,
                    piece, n);
        return;
    case 8:
        t->n = at;
        return;
    case 9:
        if (other->n)
            take_piece(rng, t, other);
        return;
    case 10:
    case 11:
    case 12:
        follow_hint(rng, t);
        return;
    default: /* the continuation bit of a protobuf varint */
        t->at[at] = (char)(t->at[at] ^ 0x80);
    }
}

void fuzz_bytes(struct fuzz_rng *rng, struct byi_text *bytes,
                const struct byi_text *other)
{
    do {
        if (bytes->n)
            edit(rng, bytes, other);
    } while (fuzz_below(rng, 3));
}
