/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c: SHA-256 (FIPS 180-4), for digests in files. Uses the processor's
 * SHA instructions if it has them, since weights are hundreds of megabytes.
 */
#include "sha256.h"

#include <stdatomic.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

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

/* Round t (step 3). The eight variables stay in place, and their roles rotate:
 * v[(i - t) mod 8] is the i-th of a..h. */
static inline void do_round(uint32_t v[8], unsigned t, uint32_t input)
{
    uint32_t a = v[(0 - t) & 7], b = v[(1 - t) & 7], c = v[(2 - t) & 7];
    uint32_t e = v[(4 - t) & 7], f = v[(5 - t) & 7], g = v[(6 - t) & 7];
    uint32_t s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
    uint32_t s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
    uint32_t t1 = v[(7 - t) & 7] + s1 + (g ^ (e & (f ^ g))) + input;

    v[(3 - t) & 7] += t1;
    v[(7 - t) & 7] = t1 + s0 + ((a & b) | (c & (a | b)));
}

void byi_sha256_plain(uint32_t h[8], const uint8_t *blocks, size_t n)
{
    uint32_t w[64], v[8];

    for (; n > 0; n--, blocks += 64) {
        schedule(w, blocks);
        memcpy(v, h, sizeof v);
        for (unsigned t = 0; t < 64; t += 8)
#pragma GCC unroll 8 /* constant roles: the variables stay in registers */
            for (unsigned i = 0; i < 8; i++)
                do_round(v, i, round_constants[t + i] + w[t + i]);
        for (int i = 0; i < 8; i++)
            h[i] += v[i];
    }
}

#if defined(__x86_64__)
/* Computes four rounds per iteration. The instructions expect the state as the
 * vectors ABEF and CDGH (highest lane first), and the schedule four words at a
 * time: Intel's "New Instructions Supporting the Secure Hash Algorithm", 2013.
 */
__attribute__((target("sha,sse4.1"))) static void compress_sha_ni(
    uint32_t h[8], const uint8_t *blocks, size_t n)
{
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i cdab = _mm_shuffle_epi32(_mm_loadu_si128((const void *)h), 0xb1);
    __m128i efgh =
        _mm_shuffle_epi32(_mm_loadu_si128((const void *)(h + 4)), 0x1b);
    __m128i abef = _mm_alignr_epi8(cdab, efgh, 8);
    __m128i cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
    __m128i w[4], feba, dchg;

    for (; n > 0; n--, blocks += 64) {
        __m128i abef_before = abef, cdgh_before = cdgh;
        for (unsigned i = 0; i < 4; i++)
            w[i] = _mm_shuffle_epi8(
                _mm_loadu_si128((const void *)(blocks + 16 * i)), swap);
        for (unsigned i = 0; i < 16; i++) {
            __m128i k =
                _mm_loadu_si128((const void *)(round_constants + 4 * i));
            __m128i last = w[(i + 3) & 3];
            if (i >= 4)
                w[i & 3] = _mm_sha256msg2_epu32(
                    _mm_add_epi32(
                        _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                        _mm_alignr_epi8(last, w[(i + 2) & 3], 4)),
                    last);
            k = _mm_add_epi32(k, w[i & 3]);
            cdgh = _mm_sha256rnds2_epu32(cdgh, abef, k);
            abef =
                _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(k, 0x0e));
        }
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    feba = _mm_shuffle_epi32(abef, 0x1b);
    dchg = _mm_shuffle_epi32(cdgh, 0xb1);
    _mm_storeu_si128((void *)h, _mm_blend_epi16(feba, dchg, 0xf0));
    _mm_storeu_si128((void *)(h + 4), _mm_alignr_epi8(dchg, feba, 8));
}

static bool has_sha_ni(void)
{
    static atomic_int known; /* 0: unknown, else 1 + the answer */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    unsigned a = 0, b = 0, c = 0, d = 0;

    if (answer == 0) {
        bool sha = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
        answer = 1 + (sha && __builtin_cpu_supports("sse4.1"));
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}
#endif

static void compress(uint32_t h[8], const uint8_t *blocks, size_t n)
{
#if defined(__x86_64__)
    if (has_sha_ni()) {
        compress_sha_ni(h, blocks, n);
        return;
    }
#endif
    byi_sha256_plain(h, blocks, n);
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
    size_t n_buffered = s->n % sizeof s->block;

    s->n += n;
    if (n_buffered > 0) {
        size_t room = sizeof s->block - n_buffered, take = n < room ? n : room;
        if (take > 0)
            memcpy(s->block + n_buffered, at, take);
        if (take < room)
            return;
        compress(s->h, s->block, 1);
        at += take;
        n -= take;
    }
    compress(s->h, at, n / sizeof s->block);
    if (n % sizeof s->block)
        memcpy(s->block, at + n / sizeof s->block * sizeof s->block,
               n % sizeof s->block);
}

void byi_sha256_hex(struct byi_sha256 *s, char hex[65])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = s->n * 8;
    size_t n_buffered = s->n % 64;
    uint8_t length[8];

    for (int i = 0; i < 8; i++)
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    byi_sha256_add(s, padding,
                   n_buffered < 56 ? 56 - n_buffered : 120 - n_buffered);
    byi_sha256_add(s, length, sizeof length);
    for (int i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", s->h[i]);
}

void byi_sha256_hex_of(const void *data, size_t n, char hex[65])
{
    struct byi_sha256 s;
    byi_sha256_init(&s);
    byi_sha256_add(&s, data, n);
    byi_sha256_hex(&s, hex);
}
