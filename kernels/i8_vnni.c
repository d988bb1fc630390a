/* SPDX-License-Identifier: Apache-2.0 */
/* i8_vnni.c: the 8-bit kernels for AVX-512 with VNNI, and the same kernels with
 * blocks: of bfloat16 for AVX-512's BF16, of all types on AMX's tiles. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,avx512bw")
#pragma GCC target("avx512vnni,fma,prefer-vector-width=512")
#pragma GCC target("avx512bf16")
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
#define STRIP_FORM BYI_I8_BYTES
#define STRIP_CHANNELS 64
#define STRIP_FLOATS false
#include "i8.inc"

#include "i8_amx.inc"
#include "i8_bf16.inc"

const struct byi_i8_kernels byi_i8_bf16 = {
#include "i8_table.inc"
    .block = bfloat16_block,
    .block_names = {NULL, "blocks:avx512_bf16"},
};

const struct byi_i8_kernels byi_i8_amx = {
#include "i8_table.inc"
    .block = block,
    .block_names = {"i8:avx512_amx", "tiles:avx512_amx"},
    .block_bytes = true,
    .split = split,
};
#endif
