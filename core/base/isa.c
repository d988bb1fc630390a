/* SPDX-License-Identifier: Apache-2.0 */
/* isa.c: the instruction sets that the CPU has and the environment allows. */
#include "isa.h"

#include "descriptor.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

static const char *const isa_names[] = {
#define ISA(id, name) [BYI_ISA_##id] = (name),
    BYI_ISAS(ISA)
#undef ISA
};

const char *byi_isa_name(enum byi_isa isa)
{
    return isa_names[isa];
}

#if defined(__x86_64__)
/* Features that the __builtin_cpu_supports of some compilers does not support.
 */
enum {
    HAS_F16C = 1,
    HAS_AVX_VNNI = 2,
    HAS_AMX = 4,
    HAS_BF16 = 8,
    IS_READ = 16
};

/* Read once: a hypervisor takes microseconds to answer cpuid. */
static unsigned read_features(void)
{
    static atomic_uint cached;
    unsigned features = atomic_load_explicit(&cached, memory_order_relaxed);
    uint32_t a, b, c, d;
    if (features)
        return features;
    features = IS_READ;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1))
        features |= HAS_F16C;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1))
        features |= HAS_AVX_VNNI;
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1))
        features |= HAS_BF16;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 3) == 3 &&
        (d >> 22 & 1))
        features |= HAS_AMX; /* AMX-TILE, AMX-INT8, AMX-BF16 */
    atomic_store_explicit(&cached, features, memory_order_relaxed);
    return features;
}

static bool has_f16c(void)
{
    return read_features() & HAS_F16C;
}

static bool has_avx_vnni(void)
{
    return read_features() & HAS_AVX_VNNI;
}

static bool has_bf16(void)
{
    return read_features() & HAS_BF16;
}

/* Whether this process may use tiles. Linux enlarges the state of its threads
 * only on request (Documentation/arch/x86/xstate.rst). It refuses if the
 * alternate signal stack of a thread is too small for it. The answer does not
 * change. */
static bool has_amx(void)
{
    enum { REQUEST = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XTILEDATA */
    enum { UNKNOWN = 0, REFUSED, GRANTED };
    static atomic_int cached;
    int answer = atomic_load_explicit(&cached, memory_order_relaxed);
    if (!(read_features() & HAS_AMX))
        return false;
    if (answer == UNKNOWN) {
        answer =
            syscall(SYS_arch_prctl, REQUEST, TILES) == 0 ? GRANTED : REFUSED;
        atomic_store_explicit(&cached, answer, memory_order_relaxed);
    }
    return answer == GRANTED;
}
#endif

bool byi_isa_runs(enum byi_isa isa)
{
#if defined(__x86_64__)
    const bool avx512 = __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl") &&
                        __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("fma") && has_f16c();
    switch (isa) {
    case BYI_ISA_SSE2:
        return true;
    case BYI_ISA_SSE42:
        return __builtin_cpu_supports("sse4.2");
    case BYI_ISA_AVX2:
        return __builtin_cpu_supports("avx2") &&
               __builtin_cpu_supports("fma") && has_f16c();
    case BYI_ISA_AVX_VNNI:
        return byi_isa_runs(BYI_ISA_AVX2) && has_avx_vnni();
    case BYI_ISA_AVX512:
        return avx512;
    case BYI_ISA_VNNI:
        return avx512 && __builtin_cpu_supports("avx512vnni");
    case BYI_ISA_BF16:
        return byi_isa_runs(BYI_ISA_VNNI) && has_bf16();
    case BYI_ISA_AMX:
        return byi_isa_runs(BYI_ISA_BF16) && has_amx();
    default:
        return false;
    }
#else
    return isa == BYI_ISA_BASE;
#endif
}

bool byi_isa_halves_512(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amdfam19h") != 0;
#else
    return false;
#endif
}

/* The instruction set called `name`; BYI_N_ISAS if the name is unknown. */
static uint32_t find_isa(const char *name)
{
    uint32_t i = 0;
    while (i < BYI_N_ISAS && strcmp(name, isa_names[i]) != 0)
        i++;
    return i;
}

enum byi_isa byi_isa_widest(void)
{
    const char *max_isa = getenv("BYOC_MAX_ISA");
    const uint32_t limit = max_isa ? find_isa(max_isa) : BYI_N_ISAS;
    uint32_t isa = limit < BYI_N_ISAS ? limit : BYI_N_ISAS - 1;
    while (isa > 0 && !byi_isa_runs((enum byi_isa)isa))
        isa--;
    return (enum byi_isa)isa;
}

enum byoc_status byi_isa_check(struct byoc_error *err)
{
    const char *max_isa = getenv("BYOC_MAX_ISA");
    if (!max_isa || !*max_isa || find_isa(max_isa) < BYI_N_ISAS)
        return BYOC_OK;
    char list[128] = "";
    for (uint32_t i = 0; i < BYI_N_ISAS; i++) {
        strcat(list, i ? ", " : "");
        strcat(list, isa_names[i]);
    }
    return byi_fail(err, BYOC_EINVAL,
                    "BYOC_MAX_ISA: found \"%s\", expected one of %s; or unset "
                    "the variable",
                    max_isa, list);
}

static const struct {
    enum byi_isa isa;
    const char *name;
} code_levels[] = {
#define LEVEL(id, name, options) {BYI_ISA_##id, name},
    BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
};

uint32_t byi_code_levels(uint32_t n)
{
    while (n > 0 && code_levels[n - 1].isa > byi_isa_widest())
        n--;
    return n;
}

const char *byi_code_level_name(uint32_t level)
{
    return code_levels[level].name;
}
