/* simd.c: which of the float32 loops this CPU can run.
 */
#include "kernel.h"
#include "native.h"

static const struct byi_simd *const tables[] = {
    /* widest first */
#if defined(__x86_64__)
    &byi_simd_avx512,
    &byi_simd_avx2,
#endif
    &byi_simd_base,
};

static bool can_run(const struct byi_simd *table)
{
#if defined(__x86_64__)
    if (table == &byi_simd_avx512)
        return __builtin_cpu_supports("avx512f") &&
               __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("fma");
    if (table == &byi_simd_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return table == &byi_simd_base;
}

const struct byi_simd *byi_simd(void)
{
    for (uint32_t i = 0; i < BYI_COUNT(tables); i++)
        if (can_run(tables[i]))
            return tables[i];
    return &byi_simd_base;
}

const struct byi_simd *byi_simd_named(const char *name)
{
    for (uint32_t i = 0; i < BYI_COUNT(tables); i++)
        if (strcmp(tables[i]->name, name) == 0)
            return can_run(tables[i]) ? tables[i] : NULL;
    return NULL;
}

const char *byoc_internal_cpu(void)
{
#if defined(__x86_64__)
    const struct byi_simd *table = byi_simd();
    return table == &byi_simd_avx512 ? "x86_64 avx512"
           : table == &byi_simd_avx2 ? "x86_64 avx2"
                                     : "x86_64 sse2";
#elif defined(__aarch64__)
    return "aarch64 neon";
#elif defined(__riscv) && __riscv_xlen == 64
    return "riscv64";
#else
    return "unknown";
#endif
}
