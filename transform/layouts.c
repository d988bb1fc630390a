/* SPDX-License-Identifier: Apache-2.0 */
/* layouts.c: composes, inverts and changes layouts, the storage orders of axes
 * (relayout.h). Layouts are interned, so that plans compare them as numbers.
 */
#include "relayout.h"

#include <assert.h>
#include <string.h>

void byi_rl_layouts_free(struct byi_rl_layouts *layouts)
{
    byi_vec_free(layouts->list.at);
    byi_index_free(&layouts->index);
    *layouts = (struct byi_rl_layouts){0};
}

static bool is_identity(const struct byi_rl_layout *layout)
{
    for (uint32_t i = 0; i < layout->rank; i++)
        if (layout->at[i] != i)
            return false;
    return layout->block == 0;
}

static bool is_same_layout(const struct byi_rl_layout *a,
                           const struct byi_rl_layout *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

byi_rl_layout_id byi_rl_layout_intern(struct byi_rl_layouts *layouts,
                                      const struct byi_rl_layout *layout)
{
    if (is_identity(layout))
        return 0;
    if (layouts->list.n == 0)
        /* index 0: the identity */
        BYI_PUSH(&layouts->list, ((struct byi_rl_layout){0}));
    const uint64_t hash = byi_hash(0, layout, sizeof *layout);
    BYI_INDEX_EACH (&layouts->index, hash, i)
        if (is_same_layout(&layouts->list.at[i], layout))
            return i;
    byi_index_add(&layouts->index, hash, layouts->list.n);
    BYI_PUSH(&layouts->list, *layout);
    return layouts->list.n - 1;
}

struct byi_rl_layout byi_rl_layout_at(const struct byi_rl_layouts *layouts,
                                      byi_rl_layout_id id, uint32_t rank)
{
    struct byi_rl_layout layout = {.rank = (uint8_t)rank};
    if (id)
        return layouts->list.at[id];
    for (uint32_t i = 0; i < rank; i++)
        layout.at[i] = (uint8_t)i;
    return layout;
}

byi_rl_layout_id byi_rl_layout_compose(struct byi_rl_layouts *layouts,
                                       byi_rl_layout_id a, byi_rl_layout_id b,
                                       uint32_t rank)
{
    if (!a || !b)
        return a ? a : b;
    const struct byi_rl_layout x = byi_rl_layout_at(layouts, a, rank);
    struct byi_rl_layout y = byi_rl_layout_at(layouts, b, rank);
    assert(x.rank == y.rank && x.block == 0);
    for (uint32_t i = 0; i < y.rank; i++)
        y.at[i] = x.at[y.at[i]];
    if (y.block)
        y.block_axis = x.at[y.block_axis];
    return byi_rl_layout_intern(layouts, &y);
}

byi_rl_layout_id byi_rl_layout_inverse(struct byi_rl_layouts *layouts,
                                       byi_rl_layout_id id, uint32_t rank)
{
    const struct byi_rl_layout x = byi_rl_layout_at(layouts, id, rank);
    struct byi_rl_layout y = {.rank = x.rank};
    for (uint32_t i = 0; i < x.rank; i++)
        y.at[x.at[i]] = (uint8_t)i;
    return byi_rl_layout_intern(layouts, &y);
}

/* --- other axes ----------------------------------------------------------- */

/* Returns the layout of a tensor whose axes in `mask` are removed. */
static struct byi_rl_layout drop_axes(const struct byi_rl_layout *x,
                                      uint32_t mask)
{
    struct byi_rl_layout y = {.block = x->block};
    uint8_t renamed[BYI_MAX_RANK] = {0};
    uint32_t n = 0;
    for (uint32_t axis = 0; axis < x->rank; axis++)
        renamed[axis] = (uint8_t)(mask >> axis & 1 ? n : n++);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!(mask >> x->at[i] & 1))
            y.at[y.rank++] = renamed[x->at[i]];
    y.block_axis = x->block ? renamed[x->block_axis] : 0;
    return y;
}

/* Returns the layout of a tensor of the given rank, after the axes in `mask`
 * are inserted. New axis i is stored at position i. */
static struct byi_rl_layout insert_axes(const struct byi_rl_layout *x,
                                        uint32_t rank, uint32_t mask)
{
    struct byi_rl_layout y = {.rank = (uint8_t)rank, .block = x->block};
    uint8_t renamed[BYI_MAX_RANK] = {0};
    uint32_t n = 0, from = 0;
    for (uint32_t axis = 0; axis < rank; axis++)
        if (!(mask >> axis & 1))
            renamed[n++] = (uint8_t)axis;
    for (uint32_t i = 0; i < rank; i++)
        y.at[i] = mask >> i & 1 ? (uint8_t)i : renamed[x->at[from++]];
    y.block_axis = x->block ? renamed[x->block_axis] : 0;
    return y;
}

/* Returns the layout of a tensor of the given rank after each axis of x becomes
 * a group of consecutive axes. `begins` is the mask of the groups' first axes.
 * x has no block. */
static struct byi_rl_layout ungroup_axes(const struct byi_rl_layout *x,
                                         uint32_t rank, uint32_t begins)
{
    struct byi_rl_layout y = {0};
    for (uint32_t k = 0; k < x->rank; k++) {
        uint32_t group = 0;
        for (uint32_t axis = 0; axis < rank; axis++) {
            group += begins >> axis & 1; /* groups count from 1 here */
            if (group == x->at[k] + 1u)
                y.at[y.rank++] = (uint8_t)axis;
        }
    }
    return y;
}

/* Invert ungroup_axes: each group of axes of x becomes one axis. A block of x
 * is dropped. */
static struct byi_rl_layout group_axes(const struct byi_rl_layout *x,
                                       uint32_t begins)
{
    uint8_t new_axis[BYI_MAX_RANK] = {0};
    struct byi_rl_layout y = {0};
    uint32_t n = 0;
    for (uint32_t axis = 0; axis < x->rank; axis++) {
        n += begins >> axis & 1;
        new_axis[axis] = (uint8_t)(n - 1);
    }
    for (uint32_t i = 0; i < x->rank; i++)
        if (begins >> x->at[i] & 1)
            y.at[y.rank++] = new_axis[x->at[i]];
    return y;
}

byi_rl_layout_id byi_rl_layout_change(struct byi_rl_layouts *layouts,
                                      enum byi_rl_change change,
                                      byi_rl_layout_id id, uint32_t rank,
                                      uint32_t axes)
{
    const uint32_t n_axes = (uint32_t)__builtin_popcount(axes);
    if (!id)
        return 0;
    const struct byi_rl_layout x =
        byi_rl_layout_at(layouts, id,
                         change == BYI_RL_INSERT_AXES ? rank - n_axes
                         : change == BYI_RL_UNGROUP   ? n_axes
                                                      : rank);
    const struct byi_rl_layout y =
        change == BYI_RL_DROP_AXES     ? drop_axes(&x, axes)
        : change == BYI_RL_INSERT_AXES ? insert_axes(&x, rank, axes)
        : change == BYI_RL_UNGROUP     ? ungroup_axes(&x, rank, axes)
                                       : group_axes(&x, axes);
    return byi_rl_layout_intern(layouts, &y);
}

/* --- types ---------------------------------------------------------------- */

uint32_t byi_rl_layout_place(const struct byi_rl_layout *layout, uint32_t axis)
{
    for (uint32_t i = 0; i < layout->rank; i++)
        if (layout->at[i] == axis)
            return i;
    assert(!"every axis is stored");
    byi_unreachable();
}

bool byi_rl_layout_fits(const struct byi_rl_layout *layout,
                        const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR || type->rank != layout->rank)
        return false;
    if (layout->block == 0)
        return true;
    const int64_t dim = type->dims[layout->block_axis];
    return layout->rank < BYI_MAX_RANK && !BYI_IS_SYMBOL(dim) &&
           (dim == 1 || (dim > 0 && dim % layout->block == 0));
}

/* Write the dims in storage order to `dims`. Returns their number. */
static uint32_t stored_dims(const struct byi_rl_layout *layout,
                            const struct byi_type *type,
                            int64_t dims[BYI_MAX_RANK])
{
    for (uint32_t i = 0; i < layout->rank; i++)
        dims[i] = type->dims[layout->at[i]];
    if (layout->block == 0)
        return layout->rank;
    int64_t *outer = &dims[byi_rl_layout_place(layout, layout->block_axis)];
    const bool is_one = *outer == 1;
    *outer = is_one ? 1 : *outer / layout->block;
    dims[layout->rank] = is_one ? 1 : layout->block;
    return layout->rank + 1u;
}

const struct byi_type *byi_rl_layout_type(struct byi_arena *arena,
                                          const struct byi_rl_layout *layout,
                                          const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = stored_dims(layout, type, dims);
    return byi_type_tensor(arena, type->dtype, rank, dims);
}

/* Write the axes with more than one element in storage order to `axes`; a
 * blocked axis may appear twice. Returns their number. */
static uint32_t list_real_axes(const struct byi_rl_layout *layout,
                               const struct byi_type *type,
                               uint32_t axes[BYI_MAX_RANK + 1])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < layout->rank; i++) {
        const int64_t dim = type->dims[layout->at[i]];
        const bool split = layout->block && layout->at[i] == layout->block_axis;
        if (dim != 1 && !(split && dim == layout->block))
            axes[n++] = layout->at[i];
    }
    if (layout->block && type->dims[layout->block_axis] != 1)
        if (n == 0 || axes[n - 1] != layout->block_axis)
            axes[n++] = layout->block_axis;
    return n;
}

bool byi_rl_layout_same_order(const struct byi_rl_layout *a,
                              const struct byi_rl_layout *b,
                              const struct byi_type *type)
{
    uint32_t x[BYI_MAX_RANK + 1], y[BYI_MAX_RANK + 1];
    if (a->block && b->block && a->block != b->block &&
        type->dims[a->block_axis] != 1)
        return false;
    const uint32_t n = list_real_axes(a, type, x);
    return n == list_real_axes(b, type, y) && memcmp(x, y, n * sizeof *x) == 0;
}

char *byi_rl_layout_name(const struct byi_rl_layout *layout,
                         const char *axis_letters, char buf[BYI_RL_LAYOUT_NAME])
{
    const char *letters = axis_letters ? axis_letters : "ABCDEFGHIJKL";
    uint32_t n = 0;
    assert(strlen(letters) >= layout->rank);
    for (; n < layout->rank; n++)
        buf[n] = letters[layout->at[n]];
    buf[n] = '\0';
    if (layout->block)
        snprintf(buf + n, BYI_RL_LAYOUT_NAME - n, "%u%c", layout->block,
                 letters[layout->block_axis] - 'A' + 'a');
    return buf;
}
