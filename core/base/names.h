/* SPDX-License-Identifier: Apache-2.0 */
/* names.h: interns names: each gets an index, in the order of first occurrence.
 */
#ifndef BYI_NAMES_H
#define BYI_NAMES_H

#include "core/base/index.h"

/* The interned names. A zeroed struct is an empty table. */
struct byi_name_table {
    const char **at;
    uint32_t n, cap;
    struct byi_index index;
};

/* Returns the index of `name`, adding it if it is new. Pass the same arena in
 * every call: it owns the copies. */
uint32_t byi_name_intern(struct byi_name_table *names, struct byi_arena *arena,
                         const char *name);

/* Returns the index of `name`, or UINT32_MAX if the table does not have it. */
uint32_t byi_name_find(const struct byi_name_table *names, const char *name);

#endif
