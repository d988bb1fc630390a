/* SPDX-License-Identifier: Apache-2.0 */
/* simd_base.c: the vector loops for every CPU that the build supports. */
/* lets the compiler compute both sides of ?: */
#pragma GCC optimize("no-trapping-math")
#define TABLE byi_simd_base
#if defined(__x86_64__)
#define TABLE_ISA BYI_ISA_SSE2
#else
#define TABLE_ISA BYI_ISA_BASE
#endif
#define W 4
#include "loops.inc"
