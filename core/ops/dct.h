/* SPDX-License-Identifier: Apache-2.0 */
/* dct.h: the discrete cosine transform of 8 points (DCT-II, orthonormal),
 * as a matrix: row u has frequency u, cos((2 i + 1) u pi / 16) / 2 at position
 * i, and sqrt(1/8) for u = 0. Its inverse is its transpose.
 */
#ifndef BYI_DCT_H
#define BYI_DCT_H

enum { BYI_DCT = 8 };

/* cos(k pi / 16) / 2 */
#define C1 0.49039264020161522
#define C2 0.46193976625564337
#define C3 0.41573480615127262
#define C4 0.35355339059327379
#define C5 0.27778511650980114
#define C6 0.19134171618254492
#define C7 0.09754516100806417
static const double byi_dct[BYI_DCT][BYI_DCT] = {
    {C4, C4, C4, C4, C4, C4, C4, C4},     {C1, C3, C5, C7, -C7, -C5, -C3, -C1},
    {C2, C6, -C6, -C2, -C2, -C6, C6, C2}, {C3, -C7, -C1, -C5, C5, C1, C7, -C3},
    {C4, -C4, -C4, C4, C4, -C4, -C4, C4}, {C5, -C1, C7, C3, -C3, -C7, C1, -C5},
    {C6, -C2, C2, -C6, -C6, C2, -C2, C6}, {C7, -C5, C3, -C1, C1, -C3, C5, -C7},
};
#undef C1
#undef C2
#undef C3
#undef C4
#undef C5
#undef C6
#undef C7

#endif
