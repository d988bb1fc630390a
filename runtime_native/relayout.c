/* SPDX-License-Identifier: Apache-2.0 */
/* relayout.c: computes the offsets of elements in layouts, and implements
 * layout_transform, which copies a tensor from one layout to another. */
#include "move.h"

void byi_image_read(const struct byi_tensor *t, const char *layout,
                    struct byi_image_layout *image)
{
    struct byi_layout l;
    byi_layout_parse(layout, &l);
    const int c = byi_layout_find(&l, 'C');
    *image = (struct byi_image_layout){
        .n = t->dims[0],
        .c = t->dims[c] * byi_layout_block(&l, 'C'),
        .block = byi_layout_block(&l, 'C'),
        .count = 1,
        .space = t->dims + (c == 1 ? 2 : 1),
        .spatial = l.n - 2 - !byi_layout_is_plain(&l),
        .last = c != 1,
    };
    if (image->last)
        image->block = byi_max(image->c, 1);
    for (uint32_t i = 0; i < image->spatial; i++)
        image->count *= image->space[i];
}

void byi_filter_read(const struct byi_tensor *t, const char *layout,
                     struct byi_filter *w)
{
    struct byi_layout l;
    int64_t strides[BYI_MAX_RANK];
    byi_layout_parse(layout, &l);
    byi_dense_strides(t->rank, t->dims, strides);
    *w = (struct byi_filter){.at_o.block = 1, .at_i.block = 1};
    for (uint32_t i = 0; i < l.n; i++) {
        const char letter = l.at[i].letter;
        if (letter != 'O' && letter != 'I') {
            /* the axes of the window are contiguous and in order, so the
             * stride of the last one is the stride of the taps */
            w->space = w->space ? w->space : t->dims + i;
            w->tap = strides[i];
        } else if (letter == 'O') {
            *(l.at[i].block ? &w->at_o.inner : &w->at_o.outer) = strides[i];
            w->at_o.block = l.at[i].block ? l.at[i].block : 1;
        } else {
            *(l.at[i].block ? &w->at_i.inner : &w->at_i.outer) = strides[i];
            w->at_i.block = l.at[i].block ? l.at[i].block : 1;
        }
    }
    w->o = t->dims[byi_layout_find(&l, 'O')] * w->at_o.block;
    w->i = t->dims[byi_layout_find(&l, 'I')] * w->at_i.block;
}

/* --- copies --------------------------------------------------------------- */

/* An axis in a layout: `dim` blocks of `block` elements, with the strides
 * between blocks (outer) and within a block (inner). */
struct axis_strides {
    int64_t dim, block, outer, inner;
};

static struct axis_strides strides_of(const struct byi_tensor *t,
                                      const struct byi_layout *l, char letter)
{
    int64_t strides[BYI_MAX_RANK];
    byi_dense_strides(t->rank, t->dims, strides);
    const int at = byi_layout_find(l, letter);
    struct axis_strides s = {
        .dim = t->dims[at], .block = 1, .outer = strides[at], .inner = 0};
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].letter == letter && l->at[i].block) {
            s.block = l->at[i].block;
            s.inner = strides[i];
        }
    return s;
}

static void add_axis(struct byi_view *v, int64_t dim, int64_t stride)
{
    v->dims[v->rank] = dim;
    v->strides[v->rank++] = stride;
}

/* Copy t from layout `from` to layout `to`. One of an axis's block sizes in the
 * two layouts divides the other, so each axis of the result is one axis of the
 * source or two. */
static void relayout(const struct byi_call *call, const struct byi_tensor *t,
                     const struct byi_layout *from, const struct byi_layout *to,
                     void *dst)
{
    struct byi_view v = {0};
    if (byi_count(t) == 0)
        return;
    for (uint32_t i = 0; i < to->n; i++) {
        const char letter = to->at[i].letter;
        const struct axis_strides s = strides_of(t, from, letter);
        const int64_t block = byi_layout_block(to, letter);
        if (to->at[i].block && block <= s.block) {
            add_axis(&v, block, s.inner);
        } else if (to->at[i].block) {
            add_axis(&v, block / s.block, s.outer);
            add_axis(&v, s.block, s.inner);
        } else if (block >= s.block) {
            add_axis(&v, s.dim * s.block / block, block / s.block * s.outer);
        } else {
            add_axis(&v, s.dim, s.outer);
            add_axis(&v, s.block / block, block * s.inner);
        }
    }
    byi_view_copy(call, &v, t->data, dst, byi_dtype_bytes(t->dtype));
}

void byi_relayout_named(const struct byi_call *call, const struct byi_tensor *t,
                        const char *from, const char *to, void *dst)
{
    struct byi_layout source, target;
    byi_layout_parse(from, &source);
    byi_layout_parse(to, &target);
    relayout(call, t, &source, &target, dst);
}

static enum byoc_status relayout_run(const struct byi_call *call,
                                     struct byoc_error *err)
{
    (void)err;
    byi_relayout_named(
        call, call->in, byi_attr_string(call->attrs, "src_layout"),
        byi_attr_string(call->attrs, "dst_layout"), call->out->data);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(relayout, {BYI_OP_LAYOUT_TRANSFORM, {relayout_run, NULL}})
