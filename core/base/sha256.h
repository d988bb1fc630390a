/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.h: the portable implementation of SHA-256, for the test that compares
 * it with the one that uses the CPU's instructions. All other code calls the
 * functions of base.h, which choose one of the two. */
#ifndef BYI_SHA256_H
#define BYI_SHA256_H

#include "base.h"

/* Add n blocks of 64 bytes to the state, without special instructions. */
void byi_sha256_plain(uint32_t h[8], const uint8_t *blocks, size_t n);

#endif
