/* SPDX-License-Identifier: Apache-2.0 */
/* simd.c: selects the table of vector loops (struct byi_simd) for the CPU. */
#include <stdatomic.h>

#include "kernel.h"
#include "native.h"

extern const struct byi_simd byi_simd_base;
#if defined(__x86_64__)
extern const struct byi_simd byi_simd_avx2, byi_simd_avx512;
#endif

static const struct simd_row {
    enum byi_isa isa;
    const struct byi_simd *table;
} rows[] = {
/* widest first; VNNI, BF16 and AMX add no float32 instructions */
#if defined(__x86_64__)
    {BYI_ISA_AMX, &byi_simd_avx512},    {BYI_ISA_BF16, &byi_simd_avx512},
    {BYI_ISA_VNNI, &byi_simd_avx512},   {BYI_ISA_AVX512, &byi_simd_avx512},
    {BYI_ISA_AVX_VNNI, &byi_simd_avx2}, {BYI_ISA_AVX2, &byi_simd_avx2},
    {BYI_ISA_SSE2, &byi_simd_base},
#else
    {BYI_ISA_BASE, &byi_simd_base},
#endif
};

static _Atomic(const struct simd_row *) chosen_row;

static const struct simd_row *current_row(void)
{
    const struct simd_row *row =
        atomic_load_explicit(&chosen_row, memory_order_relaxed);
    if (row)
        return row;
    const enum byi_isa widest = byi_isa_widest();
    row = rows;
    while (row->isa > widest)
        row++;
    atomic_store_explicit(&chosen_row, row, memory_order_relaxed);
    return row;
}

const struct byi_simd *byi_simd(void)
{
    return current_row()->table;
}

enum byi_isa byi_simd_isa(void)
{
    return current_row()->isa;
}

bool byi_simd_use(enum byi_isa isa)
{
    for (uint32_t i = 0; i < BYI_COUNT(rows); i++)
        if (rows[i].isa == isa && byi_isa_runs(isa)) {
            atomic_store_explicit(&chosen_row, &rows[i], memory_order_relaxed);
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
    return cpus[byi_simd_isa()];
}
