/* SPDX-License-Identifier: Apache-2.0 */
/* f32_base.c: the kernels for any CPU that the compiler builds for. */
#define TABLE byi_f32_base
#define NAME "base"
#define W 4
#define MR 2
#define PANELS 1
#include "f32.inc"
