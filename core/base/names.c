/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/names.h"

#include <string.h>

enum { FIRST_NAMES = 32 };

static void grow(struct byi_name_table *names, struct byi_arena *arena)
{
    const char **before = names->at;
    names->cap = names->cap ? 2 * names->cap : FIRST_NAMES;
    names->at = byi_arena_calloc(arena, names->cap, sizeof *names->at);
    if (names->n)
        memcpy(names->at, before, names->n * sizeof *before);
}

uint32_t byi_name_number(struct byi_name_table *names, struct byi_arena *arena,
                         const char *name)
{
    const uint64_t hash = byi_hash(0, name, strlen(name));
    BYI_INDEX_EACH (&names->index, hash, i)
        if (strcmp(names->at[i], name) == 0)
            return i;
    if (names->n == names->cap)
        grow(names, arena);
    names->index.arena = arena;
    byi_index_add(&names->index, hash, names->n);
    names->at[names->n] = byi_arena_str(arena, name);
    return names->n++;
}
