/* SPDX-License-Identifier: Apache-2.0 */
/* simd.c: selects the table of float32 loops for the CPU. */
#include <stdatomic.h>

#include "kernel.h"
#include "native.h"

extern const struct byi_simd byi_simd_base;
#if defined(__x86_64__)
extern const struct byi_simd byi_simd_avx2, byi_simd_avx512, byi_simd_vnni;
#endif

static const struct byi_simd *const tables[] = {
/* widest first */
#if defined(__x86_64__)
    &byi_simd_vnni,
    &byi_simd_avx512,
    &byi_simd_avx2,
#endif
    &byi_simd_base,
};

static _Atomic(const struct byi_simd *) used;

const struct byi_simd *byi_simd(void)
{
    const struct byi_simd *table =
        atomic_load_explicit(&used, memory_order_relaxed);
    if (table)
        return table;
    const enum byi_isa widest = byi_isa_widest();
    uint32_t i = 0;
    while (tables[i]->isa > widest)
        i++;
    atomic_store_explicit(&used, tables[i], memory_order_relaxed);
    return tables[i];
}

bool byi_simd_use(enum byi_isa isa)
{
    for (uint32_t i = 0; i < BYI_COUNT(tables); i++)
        if (tables[i]->isa == isa && byi_isa_runs(isa)) {
            atomic_store_explicit(&used, tables[i], memory_order_relaxed);
            return true;
        }
    return false;
}

const char *byoc_internal_cpu(void)
{
#define ISA(id, name) [BYI_ISA_##id] = BYI_CPU " " name,
#if defined(__x86_64__)
#define BYI_CPU "x86_64"
#elif defined(__aarch64__)
#define BYI_CPU "aarch64"
#elif defined(__riscv) && __riscv_xlen == 64
#define BYI_CPU "riscv64"
#else
#define BYI_CPU "unknown"
#endif
    static const char *const cpus[] = {BYI_ISAS(ISA)};
#undef ISA
    return cpus[byi_simd()->isa];
}
