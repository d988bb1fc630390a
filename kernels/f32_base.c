/* SPDX-License-Identifier: Apache-2.0 */
/* f32_base.c: the kernels for any CPU that the compiler builds for. */
#define TABLE byi_f32_base
#define W 4
#if defined(__aarch64__) /* 32 registers, and sums of products */
#define NAME "neon"
#define MR 6
#else
#define NAME "base"
#define MR 2
#endif
#define PANELS 1
#include "f32.inc"
