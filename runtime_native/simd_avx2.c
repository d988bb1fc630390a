/* SPDX-License-Identifier: Apache-2.0 */
/* simd_avx2.c: the vector loops for AVX2 and FMA. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
/* lets the compiler compute both sides of ?: */
#pragma GCC optimize("no-trapping-math")
#define TABLE byi_simd_avx2
#define TABLE_ISA BYI_ISA_AVX2
#define W 8
#include "loops.inc"
#endif
