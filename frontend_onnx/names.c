/* SPDX-License-Identifier: Apache-2.0 */
/* names.c: hash tables of names: the symbol table, from ONNX value names to
 * values and initializers, and tables of functions and of producers. Names are
 * borrowed from the unpacked model. No table is iterated: output must not
 * depend on hashes.
 */
#include "frontend_onnx/import.h"

#include <string.h>

struct byi_names byi_names_new(struct byi_arena *arena)
{
    return (struct byi_names){.index.arena = arena};
}

struct byi_name *byi_names_find(const struct byi_names *names, const char *text)
{
    BYI_INDEX_EACH (&names->index, byi_hash_text(text), i)
        if (strcmp(names->at[i]->text, text) == 0)
            return names->at[i];
    return NULL;
}

struct byi_name *byi_names_add(struct byi_names *names, const char *text)
{
    if (byi_names_find(names, text))
        return NULL;
    if (names->n == names->cap)
        names->at = byi_arena_grow(names->index.arena, names->at, &names->cap,
                                   sizeof(*names->at));
    struct byi_name *entry = byi_arena_alloc(names->index.arena, sizeof *entry);
    *entry = (struct byi_name){
        .text = text,
        .id = BYI_NO_ID,
        .index = UINT32_MAX,
    };
    byi_index_add(&names->index, byi_hash_text(text), names->n);
    names->at[names->n++] = entry;
    return entry;
}

bool byi_names_bind(struct byi_names *names, const char *text, byi_id id)
{
    struct byi_name *entry = byi_names_find(names, text);

    if (!entry)
        entry = byi_names_add(names, text);
    else if (entry->id != BYI_NO_ID || entry->index == UINT32_MAX)
        return false;
    if (id != BYI_NO_ID)
        entry->id = id;
    return true;
}

const char *byi_text_or(const char *text, const char *default_text)
{
    return text && *text ? text : default_text;
}

const char *byi_onnx_domain(const char *text)
{
    return byi_text_or(text, BYI_ONNX);
}
