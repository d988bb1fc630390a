/* SPDX-License-Identifier: Apache-2.0 */
/* codegen_c/image.h: kernels of single operators: image.resize and
 * image.grid_sample.
 */
#ifndef BYI_IMAGE_H
#define BYI_IMAGE_H

#include "group.h"

/* Whether there is C for node `id` alone: float32 with static shapes, resized
 * along one axis or two adjacent ones, with tables below a limit. */
bool byi_image_takes(const struct byi_module *m, const struct byi_func *f,
                     byi_id id);
/* The same for a call of image.grid_sample whose grid is constant. */
bool byi_grid_takes(const struct byi_module *m, const struct byi_func *f,
                    const struct byi_node *node);
void byi_grid_print(const struct byi_module *m, const struct byi_func *f,
                    const struct byi_node *node, struct byi_text *out);
/* Append the body of the kernel for f, whose result byi_image_takes. */
void byi_image_print(const struct byi_module *m, const struct byi_func *f,
                     struct byi_text *out);

#endif
