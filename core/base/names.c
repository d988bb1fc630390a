/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: interns names (names.h). */
#include "core/base/names.h"

#include <string.h>

uint32_t byi_name_find(const struct byi_name_table *names, const char *name)
{
    BYI_INDEX_EACH (&names->index, byi_hash_text(name), i)
        if (strcmp(names->at[i], name) == 0)
            return i;
    return UINT32_MAX;
}

uint32_t byi_name_intern(struct byi_name_table *names, struct byi_arena *arena,
                         const char *name)
{
    const uint64_t hash = byi_hash_text(name);
    const uint32_t index = byi_name_find(names, name);
    if (index != UINT32_MAX)
        return index;
    if (names->n == names->cap)
        names->at =
            byi_arena_grow(arena, names->at, &names->cap, sizeof *names->at);
    names->index.arena = arena;
    byi_index_add(&names->index, hash, names->n);
    names->at[names->n] = byi_arena_str(arena, name);
    return names->n++;
}
