/* SPDX-License-Identifier: Apache-2.0 */
/* rows.h: lists the families of native kernels. Each kernel file NAME.c ends
 * with
 *
 *     BYI_KERNEL_ROWS(NAME, {BYI_OP_ABS, {abs_run, NULL}})
 *
 * and has an entry in the list below, which table.c searches.
 */
#ifndef BYI_ROWS_H
#define BYI_ROWS_H

#include "native.h"

/* The n kernels of a family. */
struct byi_kernel_rows {
    const struct byi_kernel_row *at;
    uint32_t n;
};

#define BYI_KERNEL_ROWS(name, ...)                                             \
    static const struct byi_kernel_row rows[] = {__VA_ARGS__};                 \
    const struct byi_kernel_rows byi_rows_##name = {rows, BYI_COUNT(rows)};

/* The operator's kernel; NULL if the family has none. */
static inline const struct byi_kernel *byi_kernel_in(
    const struct byi_kernel_rows *rows, enum byi_op_id op)
{
    for (uint32_t i = 0; i < rows->n; i++)
        if (rows->at[i].op == op)
            return &rows->at[i].kernel;
    return NULL;
}

/* clang-format off */
#define BYI_FAMILIES(X)                                                        \
    X(unary) X(binary) X(cast) X(reduce) X(arg) X(matmul) X(sparse)            \
    X(recurrent) X(attention) X(linear) X(conv) X(conv_transpose) X(pool)      \
    X(norm) X(softmax) X(quantize) X(lookup) X(map) X(qnn_blocks)              \
    X(qnn_conv) X(qnn_matmul) X(coupling) X(custom) X(einsum) X(det) X(dft)    \
    X(idct) X(movement) X(relayout) X(pad) X(cache) X(index) X(fill)           \
    X(select) X(nonzero) X(cumsum) X(resize) X(sample) X(nms) X(random)        \
    X(text) X(text_parts) X(tf_idf) X(tree)
/* clang-format on */

#define BYI_FAMILY_EXTERN(name)                                                \
    extern const struct byi_kernel_rows byi_rows_##name;
BYI_FAMILIES(BYI_FAMILY_EXTERN)

#endif
