/* SPDX-License-Identifier: Apache-2.0 */
/* isa.h: the instruction sets for which native kernels and generated code
 * exist, lowest first, and which of them this process uses.
 */
#ifndef BYI_ISA_H
#define BYI_ISA_H

#include "base.h"

/* ISA(id, name) */
#if defined(__x86_64__)
#define BYI_ISAS(ISA)                                                          \
    ISA(SSE2, "sse2")                                                          \
    ISA(SSE42, "sse4.2")                                                       \
    ISA(AVX2, "avx2")         /* AVX2, FMA and F16C */                         \
    ISA(AVX_VNNI, "avx_vnni") /* AVX2 and AVX-VNNI */                          \
    ISA(AVX512, "avx512")     /* F, DQ, VL, BW, FMA and F16C */                \
    ISA(VNNI, "avx512_vnni")                                                   \
    ISA(BF16, "avx512_bf16") /* VNNI and BF16 */                               \
    ISA(AMX, "avx512_amx")   /* BF16 and AMX: TILE, INT8, BF16 */
#elif defined(__aarch64__)
#define BYI_ISAS(ISA) ISA(BASE, "neon")
#else
#define BYI_ISAS(ISA) ISA(BASE, "base")
#endif
enum byi_isa {
#define ISA(id, name) BYI_ISA_##id,
    BYI_ISAS(ISA)
#undef ISA
        BYI_N_ISAS
};

/* The name in the table above, a static text. */
const char *byi_isa_name(enum byi_isa isa);
/* Whether this CPU, with this operating system, can run `isa`. */
bool byi_isa_runs(enum byi_isa isa);
/* Whether this CPU runs 512-bit instructions in two halves. (AMD's Zen 4,
 * family 19h: "Software Optimization Guide for the AMD Zen4
 * Microarchitecture".) Also true for Zen 3, of the same family, which has no
 * 512-bit instructions. */
bool byi_isa_halves_512(void);
/* The widest instruction set that the CPU runs and the environment allows:
 * BYOC_MAX_ISA=NAME allows NAME and lower ones, for comparisons and tests. An
 * unknown name has no effect. */
enum byi_isa byi_isa_widest(void);
/* Errors: BYOC_EINVAL, BYOC_MAX_ISA does not name an instruction set. */
enum byoc_status byi_isa_check(struct byoc_error *err);

#endif
