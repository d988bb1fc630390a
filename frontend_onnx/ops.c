/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the tables of supported operators, and the converter for operators
 * that map one to one: same operands, attributes of the same name.
 */
#include "frontend_onnx/import.h"

#include <string.h>

static const struct byi_onnx_table *const tables[] = {
    &byi_onnx_element,
    &byi_onnx_window,
    &byi_onnx_linear,
    &byi_onnx_norm,
    &byi_onnx_reduce,
    &byi_onnx_shape,
    &byi_onnx_index,
    &byi_onnx_make,
    &byi_onnx_image,
    &byi_onnx_quant,
    &byi_onnx_loss,
    &byi_onnx_sequence,
    &byi_onnx_control,
    &byi_onnx_signal,
    &byi_onnx_random,
    &byi_onnx_text,
    &byi_onnx_list,
    &byi_onnx_attention,
    &byi_onnx_rotary,
    &byi_microsoft_element,
    &byi_microsoft_window,
    &byi_microsoft_linear,
    &byi_microsoft_norm,
    &byi_microsoft_quant,
    &byi_microsoft_attention,
    &byi_microsoft_grouped,
    &byi_microsoft_rotary,
    &byi_ml_linear,
    &byi_ml_tree,
    &byi_ml_svm,
    &byi_ml_map,
};

const struct byi_onnx_op *byi_onnx_find(const char *domain, const char *type,
                                        int64_t opset)
{
    const struct byi_onnx_op *best = NULL;

    for (uint32_t i = 0; i < BYI_COUNT(tables); i++)
        for (uint32_t k = 0; k < tables[i]->n; k++) {
            if (strcmp(tables[i]->domain, domain) != 0)
                break;
            const struct byi_onnx_op *row = &tables[i]->at[k];
            if (strcmp(row->type, type) == 0 && row->since <= opset &&
                (!best || row->since > best->since))
                best = row;
        }
    return best;
}

/* Read the node's attribute that `def` declares; false: absent. */
static bool same_attr(struct byi_import *o, const struct byi_attr_def *def,
                      struct byi_attr *a)
{
    *a = (struct byi_attr){.name = def->name, .kind = def->kind};
    if (!byi_o_has(o, def->name))
        return false;
    switch (def->kind) {
    case BYI_ATTR_BOOL:
        a->i = byi_o_int(o, def->name, 0) != 0;
        return true;
    case BYI_ATTR_INT:
        a->i = byi_o_int(o, def->name, 0);
        return true;
    case BYI_ATTR_FLOAT:
        a->f = byi_o_float(o, def->name, 0);
        return true;
    case BYI_ATTR_STRING:
        a->s = byi_o_string(o, def->name, "");
        return true;
    case BYI_ATTR_DTYPE:
        a->i = byi_o_dtype_attr(o, def->name);
        return true;
    case BYI_ATTR_INTS:
        a->ints = byi_o_ints(o, def->name, &a->n);
        return true;
    case BYI_ATTR_FLOATS:
        a->floats = byi_o_floats(o, def->name, &a->n);
        return true;
    case BYI_ATTR_STRINGS:
        a->strings = byi_o_strings(o, def->name, &a->n);
        return true;
    }
    return false;
}

void byi_o_convert_same(struct byi_import *o)
{
    const struct byi_op *op = byi_op(o->row->op);
    struct byi_attr *attrs =
        byi_arena_calloc(o->scratch, op->n_attrs + 1, sizeof *attrs);
    uint32_t n = 0, n_in = o->n_in;

    while (n_in > 0 && o->in[n_in - 1] == BYI_NO_ID)
        n_in--; /* trailing inputs may be omitted by an empty name */
    for (uint32_t i = 0; i < n_in; i++)
        if (o->in[i] == BYI_NO_ID) {
            byi_o_refuse(o, "input %u is omitted", i);
            return;
        }
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (same_attr(o, &op->attrs[i], &attrs[n]))
            n++;
    o->out[0] = byi_o_emit(o, o->row->op, n_in, o->in, n, attrs);
}
