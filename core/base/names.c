/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: names as they come, each once, found by hash. */
#include "base.h"

#include <string.h>

static uint32_t *find_slot(const struct byi_name_table *names, const char *name)
{
    uint64_t i = byi_hash(0, name, strlen(name));
    for (;; i++) {
        uint32_t *slot = &names->slots[i % names->n_slots];
        if (!*slot || strcmp(names->at[*slot - 1], name) == 0)
            return slot;
    }
}

static void grow(struct byi_name_table *names, struct byi_arena *arena)
{
    const char **before = names->at;
    names->n_slots = names->n_slots ? 2 * names->n_slots : 64;
    names->slots = byi_arena_calloc(arena, names->n_slots, sizeof(uint32_t));
    names->at = byi_arena_calloc(arena, names->n_slots / 2, sizeof *names->at);
    for (uint32_t i = 0; i < names->n; i++) {
        names->at[i] = before[i];
        *find_slot(names, before[i]) = i + 1;
    }
}

uint32_t byi_name_number(struct byi_name_table *names, struct byi_arena *arena,
                         const char *name)
{
    if (2 * names->n >= names->n_slots)
        grow(names, arena);
    uint32_t *slot = find_slot(names, name);
    if (!*slot) {
        names->at[names->n++] = byi_arena_str(arena, name);
        *slot = names->n;
    }
    return *slot - 1;
}
