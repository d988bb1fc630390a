/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: finds the row of an operator in the tables of the files ops_*.c. */
#include "frontend_onnx/import.h"

#include <string.h>

#define TABLE(name) &byi_##name,
static const struct byi_onnx_table *const tables[] = {BYI_ONNX_TABLES(TABLE)};

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
