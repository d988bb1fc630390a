/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: the symbol table, a hash table from ONNX value names to values and
 * initialisers. Names are borrowed from the unpacked model. The table is never
 * iterated: output must not depend on hashes.
 */
#include "frontend_onnx/import.h"

#include <assert.h>
#include <string.h>

struct byi_names byi_names_new(struct byi_arena *arena, size_t n)
{
    uint32_t slots = 16;

    while (slots / 2 < n)
        slots *= 2;
    return (struct byi_names){
        .at = byi_arena_calloc(arena, slots, sizeof(struct byi_name)),
        .mask = slots - 1,
    };
}

static struct byi_name *slot(const struct byi_names *names, const char *text)
{
    uint32_t i = (uint32_t)byi_hash(0, text, strlen(text)) & names->mask;

    while (names->at[i].text && strcmp(names->at[i].text, text) != 0)
        i = (i + 1) & names->mask;
    return &names->at[i];
}

struct byi_name *byi_names_find(const struct byi_names *names, const char *text)
{
    struct byi_name *found = slot(names, text);

    return found->text ? found : NULL;
}

struct byi_name *byi_names_add(struct byi_names *names, const char *text)
{
    struct byi_name *entry = slot(names, text);

    if (entry->text)
        return NULL;
    *entry = (struct byi_name){
        .text = text,
        .id = BYI_NO_ID,
        .initializer = UINT32_MAX,
    };
    return entry;
}

bool byi_names_bind(struct byi_names *names, const char *text, byi_id id)
{
    struct byi_name *entry = byi_names_find(names, text);

    if (!entry)
        entry = byi_names_add(names, text);
    else if (entry->id != BYI_NO_ID || entry->initializer == UINT32_MAX)
        return false;
    if (id != BYI_NO_ID)
        entry->id = id;
    return true;
}
