/* SPDX-License-Identifier: Apache-2.0 */
/* i8_avx_vnni.c: the 8-bit kernels for AVX2 with AVX-VNNI, for CPUs without
 * AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,avxvnni")
#define TABLE byi_i8_avx_vnni
#define NAME "avx_vnni"
#define W 8
#define MR 6
#define PANELS 1
#include "i8.inc"
#endif
