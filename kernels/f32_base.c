/* SPDX-License-Identifier: Apache-2.0 */
/* f32_base.c: the float32 kernels for every CPU that the build supports. */
#define TABLE byi_f32_base
#define W 4
#if defined(__aarch64__) /* 32 vector registers, and FMA */
#define NAME "neon"
#define MR 6
#else
#define NAME "base"
#define MR 2
#endif
#define PANELS 1
#include "f32.inc"
