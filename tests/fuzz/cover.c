/* SPDX-License-Identifier: Apache-2.0 */
/* cover.c: records the edges that instrumented code passes and the numbers that
 * it compares, and gives them to the fuzzer. This file must not be instrumented
 * itself: the fuzzer's program is not made by byi_objects() of CMakeLists.txt,
 * which instruments.
 */
#include "cover.h"

#include <string.h>

enum { HINT_BITS = 10, N_HINTS = 1 << HINT_BITS };

static uint8_t counts[FUZZ_MAP];
static uint32_t touched[FUZZ_MAP];
static uint32_t n_touched;
static uint32_t previous;
static bool covered;
static struct fuzz_hint hints[N_HINTS]; /* by the address of the comparison */

static uint32_t hash_pc(uintptr_t pc, int bits)
{
    return (uint32_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - bits));
}

/* --- functions that instrumented code calls ------------------------------- */

#define HOOK __attribute__((visibility("default")))
#define CALLER ((uintptr_t)__builtin_return_address(0))

HOOK void __sanitizer_cov_trace_pc(void);
HOOK void __sanitizer_cov_trace_pc(void)
{
    const uint32_t here = hash_pc(CALLER, FUZZ_MAP_BITS);
    const uint32_t edge = here ^ previous;
    previous = here >> 1;
    if (counts[edge] == 0 && n_touched < FUZZ_MAP)
        touched[n_touched++] = edge;
    counts[edge] = (uint8_t)(counts[edge] + (counts[edge] < 255));
    covered = true;
}

static void record_comparison(uintptr_t pc, uint64_t a, uint64_t b)
{
    if (a != b)
        hints[hash_pc(pc, HINT_BITS)] = (struct fuzz_hint){a, b};
}

/* Comparisons of signed numbers arrive as unsigned ones of their width. They
 * are sign-extended, so that a hint contains -1 and not the largest unsigned
 * number. */
#define COMPARE(name, type, wide)                                              \
    HOOK void name(type a, type b);                                            \
    HOOK void name(type a, type b)                                             \
    {                                                                          \
        record_comparison(CALLER, (uint64_t)(wide)a, (uint64_t)(wide)b);       \
    }
COMPARE(__sanitizer_cov_trace_cmp1, uint8_t, int8_t)
COMPARE(__sanitizer_cov_trace_cmp2, uint16_t, int16_t)
COMPARE(__sanitizer_cov_trace_cmp4, uint32_t, int32_t)
COMPARE(__sanitizer_cov_trace_cmp8, uint64_t, int64_t)
/* the first operand is the constant */
COMPARE(__sanitizer_cov_trace_const_cmp1, uint8_t, int8_t)
COMPARE(__sanitizer_cov_trace_const_cmp2, uint16_t, int16_t)
COMPARE(__sanitizer_cov_trace_const_cmp4, uint32_t, int32_t)
COMPARE(__sanitizer_cov_trace_const_cmp8, uint64_t, int64_t)

#define IGNORE(name, type)                                                     \
    HOOK void name(type a, type b);                                            \
    HOOK void name(type a, type b)                                             \
    {                                                                          \
        (void)a, (void)b;                                                      \
    }
IGNORE(__sanitizer_cov_trace_cmpf, float)
IGNORE(__sanitizer_cov_trace_cmpd, double)

/* cases_at: the number of cases, their width in bits, then their values. */
HOOK void __sanitizer_cov_trace_switch(uint64_t value, void *cases_at);
HOOK void __sanitizer_cov_trace_switch(uint64_t value, void *cases_at)
{
    const uint64_t *cases = cases_at;
    for (uint64_t i = 0; i < cases[0] && i < 16; i++)
        record_comparison(CALLER + i, value, cases[2 + i]);
}

/* --- functions that the fuzzer calls -------------------------------------- */

bool fuzz_covered(void)
{
    return covered;
}

void fuzz_cover_reset(void)
{
    for (uint32_t i = 0; i < n_touched; i++)
        counts[touched[i]] = 0;
    n_touched = 0;
    previous = 0;
}

/* The bit for the range of an edge's hit count. */
static uint8_t bucket(uint8_t count)
{
    static const uint8_t from[] = {1, 2, 3, 4, 8, 16, 32, 128};
    uint32_t i = BYI_COUNT(from) - 1;
    while (count < from[i])
        i--;
    return (uint8_t)(1 << i);
}

uint32_t fuzz_cover_merge(uint8_t seen[FUZZ_MAP], uint64_t *edges)
{
    uint32_t n_new = 0;
    for (uint32_t i = 0; i < n_touched; i++) {
        const uint32_t edge = touched[i];
        const uint8_t bit = bucket(counts[edge]);
        *edges += seen[edge] == 0;
        n_new += (seen[edge] & bit) == 0;
        seen[edge] |= bit;
    }
    return n_new;
}

bool fuzz_pick_hint(struct fuzz_rng *rng, struct fuzz_hint *hint)
{
    for (int i = 0; i < 16; i++) {
        *hint = hints[fuzz_below(rng, N_HINTS)];
        if (hint->found == hint->wanted)
            continue;
        if (fuzz_next(rng) & 1) { /* either may be the input's */
            const uint64_t found = hint->found;
            hint->found = hint->wanted;
            hint->wanted = found;
        }
        return true;
    }
    return false;
}
