/* SPDX-License-Identifier: Apache-2.0 */
/* simd_vnni.c: the float32 loops for AVX-512 with VNNI. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("avx512vnni,fma,prefer-vector-width=512")
#pragma GCC optimize("no-trapping-math") /* speculate both sides of ?: */
#define TABLE byi_simd_vnni
#define LEVEL BYI_ISA_VNNI
#define W 16
#define MR 14
#define NV 2
#include "loops.inc"
#endif
