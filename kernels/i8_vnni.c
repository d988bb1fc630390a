/* SPDX-License-Identifier: Apache-2.0 */
/* i8_vnni.c: the 8-bit kernels for AVX-512 with VNNI, and the same kernels for
 * AMX, with blocks on AMX's tiles. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("avx512vnni,fma,prefer-vector-width=512")
#pragma GCC target("amx-tile,amx-int8,amx-bf16")
#define TABLE byi_i8_vnni
#define NAME "avx512_vnni"
#define W 16
#define MR 14
#define PANELS 2
#define LANES 2
#include "i8_strip.inc"
#define LANES 4
#include "i8_strip.inc"
#define STRIPS strip32_run, strip64_run
#include "i8.inc"

#include "i8_amx.inc"

const struct byi_i8_kernels byi_i8_amx = {
#include "i8_table.inc"
    .block = block,
    .block_name = "i8:avx512_amx",
    .split = split,
};
#endif
