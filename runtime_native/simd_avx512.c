/* SPDX-License-Identifier: Apache-2.0 */
/* simd_avx512.c: the vector loops for AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("fma,prefer-vector-width=512")
/* lets the compiler compute both sides of ?: */
#pragma GCC optimize("no-trapping-math")
#define TABLE byi_simd_avx512
#define TABLE_ISA BYI_ISA_AVX512
#define W 16
#include "loops.inc"
#endif
