/* SPDX-License-Identifier: Apache-2.0 */
/* owned.h: memory that a guard can release; for arena.c. */
#ifndef BYI_OWNED_H
#define BYI_OWNED_H

#include "guard.h"

/* Allocate memory that belongs to the innermost guard until it is freed or
 * kept. Resized memory keeps its guard and its first `end`, which is as for
 * byi_own. Returns NULL if the allocation fails, and leaves `old` unchanged.
 */
void *byi_owned_resize(void *old, size_t bytes, void (*end)(void *data));
void byi_owned_free(void *memory);

#endif
