/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/image.h: generates C for two operators on images, each as a kernel
 * of its own: image.resize (image.c) and image.grid_sample (grid.c).
 */
#ifndef BYI_CODEGEN_C_IMAGE_H
#define BYI_CODEGEN_C_IMAGE_H

#include "group.h"

/* Whether these kernels support the type of an image: float32, of static shape
 * and not empty. */
static inline bool byi_is_image_type(const struct byi_type *type)
{
    return type->kind == BYI_TENSOR && type->dtype == BYOC_F32 &&
           byi_type_is_static(type) && byi_type_bytes(type) > 0;
}

/* Whether there is C for this call of image.grid_sample: float32 with static
 * shapes, and a constant grid with tables below a limit. */
bool byi_grid_accepts(const struct byi_module *m, const struct byi_func *f,
                      const struct byi_node *node);
/* Append the body of the kernel for a call that byi_grid_accepts accepts. */
void byi_grid_print(const struct byi_module *m, const struct byi_func *f,
                    const struct byi_node *node, struct byi_text *out);
/* Append the body of the kernel for f, whose result is a node that
 * byi_kernels_accept_alone accepts. */
void byi_image_op_print(const struct byi_module *m, const struct byi_func *f,
                        struct byi_text *out);

#endif
