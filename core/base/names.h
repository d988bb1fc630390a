/* SPDX-License-Identifier: Apache-2.0 */
/* names.h: numbers names in the order in which they first occur. */
#ifndef BYI_NAMES_H
#define BYI_NAMES_H

#include "core/base/index.h"

/* A zeroed struct is an empty table. Everything is in one arena. */
struct byi_name_table {
    const char **at;
    uint32_t n, cap;
    struct byi_index index;
};

/* The number of `name`; a new name gets the next number, and is copied to the
 * arena, which must be the same in all calls. */
uint32_t byi_name_number(struct byi_name_table *names, struct byi_arena *arena,
                         const char *name);

/* The number of `name`; UINT32_MAX if the table does not have it. */
uint32_t byi_name_find(const struct byi_name_table *names, const char *name);

#endif
