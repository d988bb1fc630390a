/* SPDX-License-Identifier: Apache-2.0 */
/* i8_avx512.c: the 8-bit kernels for AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("fma,prefer-vector-width=512")
#define TABLE byi_i8_avx512
#define NAME "avx512"
#define W 16
#define MR 14
#define PANELS 2
#include "i8_strip_pairs.inc"
#define STRIPS strip_pairs
#define STRIP_FORM BYI_I8_PAIRS
#define STRIP_CHANNELS 16
#define STRIP_FLOATS true
#include "i8.inc"
#endif
