/* SPDX-License-Identifier: Apache-2.0 */
/* owned.h: memory that a guard knows of; for arena.c. */
#ifndef BYI_OWNED_H
#define BYI_OWNED_H

#include "guard.h"

/* Memory that belongs to the innermost guard until it is freed or kept; what is
 * resized stays where it belongs. NULL: there is none, and `old` is as it was.
 */
void *byi_owned_resize(void *old, size_t bytes, void (*end)(void *data));
void byi_owned_free(void *memory);

#endif
