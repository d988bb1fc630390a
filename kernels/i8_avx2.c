/* SPDX-License-Identifier: Apache-2.0 */
/* i8_avx2.c: the 8-bit kernels for AVX2. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#define TABLE byi_i8_avx2
#define NAME "avx2"
#define W 8
#define MR 6
#define PANELS 1
#include "i8_strip_pairs.inc"
#define STRIPS strip_pairs
#define STRIP_FORM BYI_I8_PAIRS
#define STRIP_CHANNELS 16
#define STRIP_FLOATS true
#include "i8.inc"
#endif
