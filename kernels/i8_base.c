/* SPDX-License-Identifier: Apache-2.0 */
/* i8_base.c: the 8-bit kernels for every CPU that the build supports. */
#define TABLE byi_i8_base
#if defined(__aarch64__)
#define NAME "neon"
#else
#define NAME "base"
#endif
#define W 4
#define MR 2
#define PANELS 1
#include "i8.inc"
