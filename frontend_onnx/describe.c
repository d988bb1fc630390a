/* SPDX-License-Identifier: Apache-2.0 */
/* describe.c: writes a node's attributes and types as text, for the ledger and
 * the HTML page (docs/page.md).
 */
#include "core/ir/text.h"
#include "frontend_onnx/import.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_ELEMENTS = 16,   /* list elements that are shown */
    MAX_STRING = 60,     /* string bytes that are shown */
    MAX_ATTRIBUTES = 400 /* bytes; attributes after these are omitted */
};

static void add_string(struct byi_text *out, const void *bytes, size_t n)
{
    byi_text_put(out, "\"");
    byi_utf8_add(out, bytes, n < MAX_STRING ? n : MAX_STRING);
    byi_text_put(out, n <= MAX_STRING ? "\"" : "...\"");
}

static void add_float(struct byi_text *out, float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)value);
    byi_text_put(out, byi_float_text(text, strtod(text, NULL), false));
}

/* Append element i of a list. */
static void add_element(struct byi_text *out, const Onnx__AttributeProto *a,
                        size_t i)
{
    if (a->n_ints)
        byi_text_int(out, a->ints[i]);
    else if (a->n_floats)
        add_float(out, a->floats[i]);
    else
        add_string(out, a->strings[i].data, a->strings[i].len);
}

static void add_list(struct byi_text *out, const Onnx__AttributeProto *a)
{
    const size_t n = a->n_ints     ? a->n_ints
                     : a->n_floats ? a->n_floats
                                   : a->n_strings;
    byi_text_put(out, "[");
    for (size_t i = 0; i < n && i < MAX_ELEMENTS; i++) {
        byi_text_put(out, i ? ", " : "");
        add_element(out, a, i);
    }
    byi_text_put(out, n > MAX_ELEMENTS ? ", ...]" : "]");
}

static void add_value(struct byi_text *out, const Onnx__AttributeProto *a)
{
    const char *dtype =
        a->t ? byoc_dtype_name((enum byoc_dtype)a->t->data_type) : NULL;
    if (a->has_i)
        byi_text_int(out, a->i);
    else if (a->has_f)
        add_float(out, a->f);
    else if (a->has_s)
        add_string(out, a->s.data, a->s.len);
    else if (a->t)
        byi_text_addf(out, "a tensor of %s",
                      dtype ? dtype : "unknown element type");
    else if (a->g || a->n_graphs)
        byi_text_put(out, "a graph");
    else if (a->n_tensors)
        byi_text_put(out, "tensors");
    else
        add_list(out, a);
}

/* Returns "name=value, ..." in the module's arena; NULL if the node has none.
 */
static const char *attributes_text(struct byi_import *o)
{
    const Onnx__NodeProto *node = o->node;
    struct byi_text text = {0};
    for (size_t i = 0; i < node->n_attribute; i++) {
        const char *name = byi_text_or(node->attribute[i]->name, "");
        byi_text_put(&text, i ? ", " : "");
        if (text.n > MAX_ATTRIBUTES) {
            byi_text_put(&text, "...");
            break;
        }
        byi_utf8_add(&text, name, strlen(name));
        byi_text_put(&text, "=");
        add_value(&text, node->attribute[i]);
    }
    const char *copy = text.n ? byi_arena_str(o->m->arena, text.at) : NULL;
    byi_text_free(&text);
    return copy;
}

static const char *type_text(struct byi_import *o, byi_id id)
{
    struct byi_text text = {0};
    if (id == BYI_NO_ID)
        return "";
    byi_text_type(o->m, o->f->nodes.at[id].type, &text);
    const char *copy = byi_arena_str(o->m->arena, text.at);
    byi_text_free(&text);
    return copy;
}

void byi_import_describe(struct byi_import *o, uint32_t source)
{
    if (!byi_import_ok(o))
        return;
    const char **outputs =
        byi_arena_calloc(o->m->arena, o->n_out, sizeof *outputs);
    for (uint32_t i = 0; i < o->n_out; i++)
        outputs[i] = *o->node->output[i] ? type_text(o, o->out[i]) : "";
    struct byi_source *s = &o->m->sources.at[source];
    s->attributes = attributes_text(o);
    s->outputs = outputs;
    s->n_outputs = o->n_out;
}
