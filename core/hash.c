/* hash.c: SHA-256 (FIPS 180-4) for digests that are written down, and a fast
 * hash for tables in memory.
 */
#include "base.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* The message schedule of one block (section 6.2.2, step 1). */
static void schedule(uint32_t w[64], const uint8_t *block)
{
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        uint32_t x = w[t - 15], y = w[t - 2];
        uint32_t s0 = rotate(x, 7) ^ rotate(x, 18) ^ x >> 3;
        uint32_t s1 = rotate(y, 17) ^ rotate(y, 19) ^ y >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

static void compress(uint32_t h[8], const uint8_t *block)
{
    uint32_t w[64], v[8];

    schedule(w, block);
    memcpy(v, h, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t a = v[0], e = v[4];
        uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
        uint32_t choice = (e & v[5]) ^ (~e & v[6]);
        uint32_t t1 = v[7] + s1 + choice + round_constants[t] + w[t];
        uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
        uint32_t majority = (a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void byi_sha256_init(struct byi_sha256 *s)
{
    *s = (struct byi_sha256){
        .h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
              0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
    };
}

void byi_sha256_add(struct byi_sha256 *s, const void *data, size_t n)
{
    const uint8_t *at = data;
    size_t held = s->n % sizeof s->block;

    s->n += n;
    if (held > 0) {
        size_t room = sizeof s->block - held, take = n < room ? n : room;
        if (take > 0)
            memcpy(s->block + held, at, take);
        if (take < room)
            return;
        compress(s->h, s->block);
        at += take;
        n -= take;
    }
    for (; n >= sizeof s->block; n -= sizeof s->block) {
        compress(s->h, at);
        at += sizeof s->block;
    }
    if (n > 0)
        memcpy(s->block, at, n);
}

void byi_sha256_hex(struct byi_sha256 *s, char hex[65])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = s->n * 8;
    size_t held = s->n % 64;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    byi_sha256_add(s, padding, held < 56 ? 56 - held : 120 - held);
    byi_sha256_add(s, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}

static uint64_t mix(uint64_t h, uint64_t word)
{
    h = (h ^ word) * 0x9e3779b97f4a7c15; /* 2^64 / golden ratio, odd */
    return h ^ h >> 32;
}

/* Every bit of h into every bit of the result: MurmurHash3's fmix64. */
static uint64_t finish(uint64_t h)
{
    h = (h ^ h >> 33) * 0xff51afd7ed558ccd;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53;
    return h ^ h >> 33;
}

/* FNV-1a's loop over words of eight bytes, each step invertible, so that only
 * the end has to spread the bits. Four lanes, so that the multiplications of
 * large constants overlap. */
uint64_t byi_hash(uint64_t seed, const void *data, size_t n)
{
    const char *at = data;
    uint64_t lane[4] = {seed, ~seed, seed + 1, seed - 1};
    uint64_t word[4] = {0}, h = 0;

    for (size_t left = n / 32; left > 0; left--, at += 32) {
        memcpy(word, at, 32);
        for (int i = 0; i < 4; i++)
            lane[i] = mix(lane[i], word[i]);
    }
    memset(word, 0, sizeof word);
    if (n % 32)
        memcpy(word, at, n % 32);
    h = mix(seed ^ 0xcbf29ce484222325, n);
    for (size_t i = 0; i < 4; i++) {
        if (n >= 32)
            h = mix(h, lane[i]);
        if (n % 32 > 8 * i)
            h = mix(h, word[i]);
    }
    return finish(h);
}
