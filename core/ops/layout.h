/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: memory layouts by name, in Relay's notation. An upper-case letter
 * is an axis; a number and a lower-case letter are a block of that axis. "NCHW"
 * is (N, C, H, W), and "NCHW16c" is (N, C/16, H, W, 16).
 */
#ifndef BYI_LAYOUT_H
#define BYI_LAYOUT_H

#include "ops.h"

enum { BYI_MAX_BLOCK = 64 }; /* elements in a block */

/* A layout's axes, outermost first. */
struct byi_layout {
    uint32_t n; /* axes of the tensor, including blocks */
    struct {
        char letter;   /* upper case, also for blocks          */
        int64_t block; /* elements of a block; 0: a whole axis */
    } at[BYI_MAX_RANK];
};

/* Parse a layout's name. Returns NULL, or a static text of the error. Errors
 * are a name without letters, a character that is neither a digit nor an
 * upper-case letter, a letter that occurs twice, more than BYI_MAX_RANK axes, a
 * block without a lower-case letter after it or its axis before it, two blocks
 * of an axis, and a block of 0 or more than BYI_MAX_BLOCK elements. */
const char *byi_layout_parse(const char *text, struct byi_layout *layout);
/* The index of the axis `letter`; -1 if the layout does not have it. */
int byi_layout_find(const struct byi_layout *l, char letter);
/* The elements of that axis's block; 1 if the axis has no block. */
int64_t byi_layout_block(const struct byi_layout *l, char letter);
/* Whether the layout has no blocks. */
bool byi_layout_is_plain(const struct byi_layout *l);
/* Set axes[i] to the axis of `from` that becomes axis i of `to`, as for
 * `transpose`. Returns false if a layout has blocks or their letters differ. */
bool byi_layout_permutation(const struct byi_layout *from,
                            const struct byi_layout *to,
                            int64_t axes[BYI_MAX_RANK]);
enum { BYI_LAYOUT_WHY = 128 }; /* bytes of a reason of byi_layout_dims */
/* Convert `dims`, of a tensor in layout `from`, to its dims in layout `to`. A
 * symbolic dim can move, but its blocks cannot change. Returns false, with the
 * reason for a message in `why`, if the letters differ, a block does not divide
 * its axis, the blocks of a symbolic dim would change, neither of two block
 * sizes divides the other, or the elements of an axis exceed int64_t. */
bool byi_layout_dims(const struct byi_layout *from, const struct byi_layout *to,
                     const int64_t *dims, int64_t out[BYI_MAX_RANK],
                     char why[BYI_LAYOUT_WHY]);

/* The layouts that operators accept. `first` is the plain one with channels
 * first ("NCHW", "OIHW"). */

/* Data: `first`, channels last ("NHWC"), or blocks of channels ("NCHW16c"). */
bool byi_layout_is_data(const struct byi_layout *l, const char *first);
/* Weights: the axes of `first` in any order that keeps the spatial axes
 * adjacent and in their order, with blocks of O and I after them. */
bool byi_layout_is_kernel(const struct byi_layout *l, const char *first);
/* Whether all attributes that name a layout or a channel axis have their
 * defaults. For rewrites that support only the default layouts. */
bool byi_layout_is_default(const struct byi_op *op,
                           const struct byi_attrs *attrs);

#endif
