/* SPDX-License-Identifier: Apache-2.0 */
/* f32_avx512.c: the float32 kernels for AVX-512. */
#if defined(__x86_64__)
/* Other tunings spill pointers to the vector and mask registers of AVX-512. The
 * moves back use the ports of multiply-adds: with the generic tuning, tiles of
 * 10 to 14 rows reach 78 to 92% of the peak on Intel's CPUs. */
#pragma GCC target("tune=haswell")
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("f16c,fma,prefer-vector-width=512")
#define TABLE byi_f32_avx512
#define NAME "avx512"
#define W 16
#define MR 14
#define PANELS 2
#include "f32.inc"
#endif
