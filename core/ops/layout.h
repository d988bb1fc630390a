/* SPDX-License-Identifier: Apache-2.0 */
/* layout.h: memory layouts by name, in Relay's notation. An upper-case
 * letter is an axis; a number and a lower-case letter are a block of that
 * axis: "NCHW" is (N, C, H, W), and "NCHW16c" is (N, C/16, H, W, 16).
 */
#ifndef BYI_LAYOUT_H
#define BYI_LAYOUT_H

#include "ops.h"

enum { BYI_MAX_BLOCK = 64 }; /* elements in a block */

struct byi_layout {
    uint32_t n; /* axes of the tensor, blocks among them */
    struct {
        char letter;   /* upper case, for blocks too           */
        int64_t block; /* elements of a block; 0: a whole axis */
    } at[BYI_MAX_RANK];
};

/* Read a layout's name. NULL, or what is wrong with it: no letters, a letter
 * twice, a block without its axis, before it or beyond BYI_MAX_BLOCK, more
 * than BYI_MAX_RANK axes. */
const char *byi_layout_parse(const char *text, struct byi_layout *layout);
/* Where the axis of `letter` is, -1: nowhere; elements of its block, 1: it has
 * none. */
int byi_layout_find(const struct byi_layout *l, char letter);
int64_t byi_layout_block(const struct byi_layout *l, char letter);
/* No blocks at all. */
bool byi_layout_is_plain(const struct byi_layout *l);
/* axes[i]: the axis of `from` that is axis i of `to`, as `transpose` takes
 * them. False when one of them has blocks or they have other letters. */
bool byi_layout_permutation(const struct byi_layout *from,
                            const struct byi_layout *to,
                            int64_t axes[BYI_MAX_RANK]);
/* The dims of a tensor in layout `to` that has `dims` in `from`; a symbol
 * moves, but has no blocks. NULL, or what is wrong: other letters, an axis
 * that its block does not divide, a symbol that would be divided, blocks of
 * which neither divides the other. */
const char *byi_layout_dims(const struct byi_layout *from,
                            const struct byi_layout *to, const int64_t *dims,
                            int64_t out[BYI_MAX_RANK]);

/* The layouts an operator takes. `first` is the plain one with channels first
 * ("NCHW", "OIHW"). */

/* Data: `first`, or with the channels last ("NHWC"), or in blocks of them
 * ("NCHW16c"). */
bool byi_layout_is_data(const struct byi_layout *l, const char *first);
/* Weights: `first`'s axes in any order that keeps the spatial ones together
 * and in theirs, and blocks of O and I behind them. */
bool byi_layout_is_kernel(const struct byi_layout *l, const char *first);
/* Do all attributes that name a layout, and a channel axis, have their
 * defaults? What rewrites need that know only those. */
bool byi_layout_is_default(const struct byi_op *op,
                           const struct byi_attrs *attrs);

#endif
