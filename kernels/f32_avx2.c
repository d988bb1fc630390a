/* SPDX-License-Identifier: Apache-2.0 */
/* f32_avx2.c: the float32 kernels for AVX2 with FMA. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")
#define TABLE byi_f32_avx2
#define NAME "avx2"
#define W 8
#define MR 6
#define PANELS 1
#include "f32.inc"
#endif
