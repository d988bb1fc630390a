/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/lookup.c: looks up bytes in a table. A byte shuffle looks up 16
 * entries, so a table of 256 takes 16 shuffles. With AVX-512 VBMI it takes two
 * permutations of 128 entries each. */
#include "kernels/lookup.h"

#include "core/base/base.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static void look_up_plain(const uint8_t *restrict x, const uint8_t *table,
                          uint8_t *restrict y, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

static bool always(void)
{
    return true;
}

#if defined(__x86_64__)

/* Entries [16 k, 16 k + 16) of the table are the results for bytes whose upper
 * half is k. For these, x ^ 16 k is below 16, and adding 0x70 leaves bit 7
 * clear. For all other bytes the saturated sum has bit 7 set, and the shuffle
 * gives 0. `repeat` copies 16 entries to each 16 bytes of a vector. */
#define DEFINE_LOOK_UP(name, target_, WIDTH, vec, load, store, splat, repeat,  \
                       xor_, add, shuffle, or_)                                \
    __attribute__((target(target_))) static void name(                         \
        const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n)         \
    {                                                                          \
        vec entries[16];                                                       \
        int64_t i = 0;                                                         \
        for (int k = 0; k < 16; k++)                                           \
            entries[k] =                                                       \
                repeat(_mm_loadu_si128((const void *)(table + 16 * k)));       \
        for (; i + (WIDTH) <= n; i += (WIDTH)) {                               \
            const vec at = load((const void *)(x + i));                        \
            vec result = splat(0);                                             \
            for (int k = 0; k < 16; k++) {                                     \
                const vec in =                                                 \
                    add(xor_(at, splat((char)(16 * k))), splat(0x70));         \
                result = or_(result, shuffle(entries[k], in));                 \
            }                                                                  \
            store((void *)(y + i), result);                                    \
        }                                                                      \
        look_up_plain(x + i, table, y + i, n - i);                             \
    }
#define IDENTITY(v) (v)
DEFINE_LOOK_UP(look_up_ssse3, "ssse3", 16, __m128i, _mm_loadu_si128,
               _mm_storeu_si128, _mm_set1_epi8, IDENTITY, _mm_xor_si128,
               _mm_adds_epu8, _mm_shuffle_epi8, _mm_or_si128)
DEFINE_LOOK_UP(look_up_avx2, "avx2", 32, __m256i, _mm256_loadu_si256,
               _mm256_storeu_si256, _mm256_set1_epi8,
               _mm256_broadcastsi128_si256, _mm256_xor_si256, _mm256_adds_epu8,
               _mm256_shuffle_epi8, _mm256_or_si256)
DEFINE_LOOK_UP(look_up_avx512, "avx512f,avx512bw", 64, __m512i,
               _mm512_loadu_si512, _mm512_storeu_si512, _mm512_set1_epi8,
               _mm512_broadcast_i32x4, _mm512_xor_si512, _mm512_adds_epu8,
               _mm512_shuffle_epi8, _mm512_or_si512)

/* Bits 0 to 6 look up in each half of the table; bit 7 selects the half. */
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) static void look_up_vbmi(
    const uint8_t *x, const uint8_t *table, uint8_t *y, int64_t n)
{
    __m512i quarter[4];
    for (int k = 0; k < 4; k++)
        quarter[k] = _mm512_loadu_si512(table + 64 * k);
    for (int64_t i = 0; i < n; i += 64) {
        const __mmask64 mask =
            n - i < 64 ? (UINT64_C(1) << (n - i)) - 1 : UINT64_MAX;
        const __m512i at = _mm512_maskz_loadu_epi8(mask, x + i);
        const __m512i low =
            _mm512_permutex2var_epi8(quarter[0], at, quarter[1]);
        const __m512i high =
            _mm512_permutex2var_epi8(quarter[2], at, quarter[3]);
        _mm512_mask_storeu_epi8(
            y + i, mask,
            _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
    }
}

static bool has_vbmi(void)
{
    return __builtin_cpu_supports("avx512vbmi");
}
#endif

const struct byi_lookup byi_lookups[] = {
/* widest first */
#if defined(__x86_64__)
    {BYI_ISA_AVX512, has_vbmi, look_up_vbmi},
    {BYI_ISA_AVX512, always, look_up_avx512},
    {BYI_ISA_AVX2, always, look_up_avx2},
    {BYI_ISA_SSE42, always, look_up_ssse3},
#endif
    {(enum byi_isa)0, always, look_up_plain},
};
const uint32_t byi_n_lookups = BYI_COUNT(byi_lookups);

const struct byi_lookup *byi_lookup_of(enum byi_isa widest)
{
    uint32_t i = 0;
    while (byi_lookups[i].isa > widest || !byi_lookups[i].runs())
        i++;
    return &byi_lookups[i];
}
