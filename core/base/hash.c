/* SPDX-License-Identifier: Apache-2.0 */
/* hash.c: the fast hash for tables in memory, and for the seeds of conform's
 * samples. No artifact contains its results.
 */
#include "base.h"

#include <string.h>

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15; /* 2^64 / golden ratio, odd */
    return h ^ h >> 32;
}

/* Let every bit of h affect every bit of the result: MurmurHash3's fmix64. */
static uint64_t finish(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
}

/* A loop like FNV-1a's, with words of eight bytes in place of bytes. Each step
 * is invertible, so only the end has to spread the bits. Four streams of words
 * are hashed independently, so that their multiplications overlap. */
uint64_t byi_hash(uint64_t seed, const void *data, size_t n)
{
    const char *at = data;
    uint64_t stream[4] = {seed, ~seed, seed + 1, seed - 1};
    uint64_t word[4] = {0}, h = 0;

    for (size_t blocks = n / 32; blocks > 0; blocks--, at += 32) {
        memcpy(word, at, 32);
        for (int i = 0; i < 4; i++)
            stream[i] = mix(stream[i], word[i]);
    }
    memset(word, 0, sizeof word);
    if (n % 32)
        memcpy(word, at, n % 32);
    h = mix(seed ^ 0xcbf29ce484222325, n);
    for (size_t i = 0; i < 4; i++) {
        if (n >= 32)
            h = mix(h, stream[i]);
        if (n % 32 > 8 * i)
            h = mix(h, word[i]);
    }
    return finish(h);
}

uint64_t byi_hash_text(const char *text)
{
    return byi_hash(0, text, strlen(text));
}
