/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.c: copies the model's description of itself, the fields of
 * ModelProto (see onnx.proto), into the module's metadata.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* The metadata so far. */
struct entry_list {
    struct byi_arena *arena;
    BYI_VEC(struct byoc_metadata) entries;
};

/* Returns the text in valid UTF-8; invalid bytes are replaced. */
static const char *clean_utf8(struct byi_arena *arena, const char *bytes)
{
    struct byi_text clean = {0};

    byi_utf8_add(&clean, bytes, strlen(bytes));
    const char *copy = byi_arena_str(arena, clean.n ? clean.at : "");
    byi_text_free(&clean);
    return copy;
}

static void add_entry(struct entry_list *list, const char *key,
                      const char *value)
{
    const struct byoc_metadata entry = {clean_utf8(list->arena, key),
                                        clean_utf8(list->arena, value)};
    BYI_PUSH(&list->entries, entry);
}

/* Add an entry unless the value is NULL or empty. */
static void add_text(struct entry_list *list, const char *key,
                     const char *value)
{
    if (value && *value)
        add_entry(list, key, value);
}

static void add_number(struct entry_list *list, const char *key, int64_t value)
{
    add_text(list, key,
             byi_arena_printf(list->arena, "%lld", (long long)value));
}

void byi_onnx_metadata(const Onnx__ModelProto *model, struct byi_module *m)
{
    struct entry_list list = {.arena = m->arena};

    add_text(&list, "producer_name", model->producer_name);
    add_text(&list, "producer_version", model->producer_version);
    add_text(&list, "domain", model->domain);
    if (model->has_model_version)
        add_number(&list, "model_version", model->model_version);
    add_text(&list, "doc_string", model->doc_string);
    add_number(&list, "ir_version", model->ir_version);
    add_text(&list, "graph_name", model->graph->name);
    for (size_t i = 0; i < model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *opset = model->opset_import[i];
        add_number(&list,
                   byi_arena_printf(m->arena, "opset.%s",
                                    opset->domain ? opset->domain : ""),
                   opset->version);
    }
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *e = model->metadata_props[i];
        add_entry(&list,
                  byi_arena_printf(m->arena, "custom.%s", e->key ? e->key : ""),
                  e->value ? e->value : "");
    }
    m->metadata = byi_arena_copy(m->arena, list.entries.at,
                                 list.entries.n * sizeof *list.entries.at);
    m->n_metadata = list.entries.n;
    byi_vec_free(list.entries.at);
}
