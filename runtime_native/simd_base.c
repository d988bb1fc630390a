/* simd_base.c: the float32 loops for any CPU the compiler builds for. */
#pragma GCC optimize("no-trapping-math") /* speculate both sides of ?: */
#define TABLE byi_simd_base
#define NAME "base"
#define W 4
#define MR 6
#define NV 2
#include "loops.inc"

