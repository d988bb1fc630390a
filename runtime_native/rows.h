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

#define BYI_FAMILIES(FAMILY)                                                   \
    FAMILY(unary)                                                              \
    FAMILY(binary)                                                             \
    FAMILY(cast)                                                               \
    FAMILY(reduce)                                                             \
    FAMILY(arg)                                                                \
    FAMILY(matmul)                                                             \
    FAMILY(sparse)                                                             \
    FAMILY(recurrent)                                                          \
    FAMILY(attention)                                                          \
    FAMILY(linear)                                                             \
    FAMILY(conv)                                                               \
    FAMILY(conv_transpose)                                                     \
    FAMILY(pool)                                                               \
    FAMILY(norm)                                                               \
    FAMILY(softmax)                                                            \
    FAMILY(quantize)                                                           \
    FAMILY(lookup)                                                             \
    FAMILY(map)                                                                \
    FAMILY(qnn_blocks)                                                         \
    FAMILY(qnn_conv)                                                           \
    FAMILY(qnn_matmul)                                                         \
    FAMILY(coupling)                                                           \
    FAMILY(custom)                                                             \
    FAMILY(einsum)                                                             \
    FAMILY(det)                                                                \
    FAMILY(dft)                                                                \
    FAMILY(idct)                                                               \
    FAMILY(movement)                                                           \
    FAMILY(relayout)                                                           \
    FAMILY(pad)                                                                \
    FAMILY(cache)                                                              \
    FAMILY(index)                                                              \
    FAMILY(fill)                                                               \
    FAMILY(select)                                                             \
    FAMILY(nonzero)                                                            \
    FAMILY(cumsum)                                                             \
    FAMILY(resize)                                                             \
    FAMILY(sample)                                                             \
    FAMILY(nms)                                                                \
    FAMILY(random)                                                             \
    FAMILY(text)                                                               \
    FAMILY(text_parts)                                                         \
    FAMILY(tree)

#define BYI_FAMILY_EXTERN(name)                                                \
    extern const struct byi_kernel_rows byi_rows_##name;
BYI_FAMILIES(BYI_FAMILY_EXTERN)

#endif
