/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: finds the row of an operator in the tables of the files ops_*.c. */
#include "frontend_onnx/import.h"

#include <string.h>

static const struct byi_onnx_table *const tables[] = {
    &byi_onnx_element,
    &byi_onnx_window,
    &byi_onnx_patches,
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
    &byi_ml_tree_5,
    &byi_ml_svm,
    &byi_ml_map,
};

const struct byi_onnx_op *byi_onnx_find(const char *domain, const char *type,
                                        int64_t opset)
{
    const struct byi_onnx_op *best = NULL;

    for (uint32_t i = 0; i < BYI_COUNT(tables); i++) {
        const struct byi_onnx_table *table = tables[i];
        const bool same_domain = strcmp(table->domain, domain) == 0;
        for (uint32_t k = 0; same_domain && k < table->n; k++) {
            const struct byi_onnx_op *row = &table->at[k];
            /* most names differ in their first letter */
            if (*row->type == *type && strcmp(row->type, type) == 0 &&
                row->since <= opset && (!best || row->since > best->since))
                best = row;
        }
    }
    return best;
}
