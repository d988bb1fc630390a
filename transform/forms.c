/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c: arithmetic on forms, the storage orders of axes. Forms are interned,
 * so that plans compare them as numbers.
 */
#include "relayout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void byi_forms_free(struct byi_forms *forms)
{
    byi_vec_free(forms->all.at);
    byi_index_free(&forms->index);
    *forms = (struct byi_forms){0};
}

static bool is_identity(const struct byi_form *form)
{
    for (uint32_t i = 0; i < form->rank; i++)
        if (form->at[i] != i)
            return false;
    return form->block == 0;
}

static bool same_form(const struct byi_form *a, const struct byi_form *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

byi_form_id byi_form_intern(struct byi_forms *forms,
                            const struct byi_form *form)
{
    if (is_identity(form))
        return 0;
    if (forms->all.n == 0)
        BYI_PUSH(&forms->all, ((struct byi_form){0})); /* "as it is" */
    const uint64_t hash = byi_hash(0, form, sizeof *form);
    BYI_INDEX_EACH (&forms->index, hash, i)
        if (same_form(&forms->all.at[i], form))
            return i;
    byi_index_add(&forms->index, hash, forms->all.n);
    BYI_PUSH(&forms->all, *form);
    return forms->all.n - 1;
}

struct byi_form byi_form_at(const struct byi_forms *forms, byi_form_id id,
                            uint32_t rank)
{
    struct byi_form form = {.rank = (uint8_t)rank};
    if (id)
        return forms->all.at[id];
    for (uint32_t i = 0; i < rank; i++)
        form.at[i] = (uint8_t)i;
    return form;
}

byi_form_id byi_form_compose(struct byi_forms *forms, byi_form_id a,
                             byi_form_id b, uint32_t rank)
{
    if (!a || !b)
        return a ? a : b;
    const struct byi_form x = byi_form_at(forms, a, rank);
    struct byi_form y = byi_form_at(forms, b, rank);
    assert(x.rank == y.rank && x.block == 0);
    for (uint32_t i = 0; i < y.rank; i++)
        y.at[i] = x.at[y.at[i]];
    if (y.block)
        y.block_axis = x.at[y.block_axis];
    return byi_form_intern(forms, &y);
}

byi_form_id byi_form_inverse(struct byi_forms *forms, byi_form_id id,
                             uint32_t rank)
{
    const struct byi_form x = byi_form_at(forms, id, rank);
    struct byi_form y = {.rank = x.rank};
    for (uint32_t i = 0; i < x.rank; i++)
        y.at[x.at[i]] = (uint8_t)i;
    return byi_form_intern(forms, &y);
}

byi_form_id byi_form_drop(struct byi_forms *forms, byi_form_id id,
                          uint32_t rank, uint32_t mask)
{
    if (!id)
        return 0;
    const struct byi_form x = byi_form_at(forms, id, rank);
    struct byi_form y = {.block = x.block};
    uint8_t renamed[BYI_MAX_RANK] = {0};
    uint32_t n = 0;
    for (uint32_t axis = 0; axis < x.rank; axis++)
        renamed[axis] = (uint8_t)(mask >> axis & 1 ? n : n++);
    for (uint32_t i = 0; i < x.rank; i++)
        if (!(mask >> x.at[i] & 1))
            y.at[y.rank++] = renamed[x.at[i]];
    y.block_axis = x.block ? renamed[x.block_axis] : 0;
    return byi_form_intern(forms, &y);
}

byi_form_id byi_form_insert(struct byi_forms *forms, byi_form_id id,
                            uint32_t rank, uint32_t mask)
{
    if (!id)
        return 0;
    const uint32_t less = rank - (uint32_t)__builtin_popcount(mask);
    const struct byi_form x = byi_form_at(forms, id, less);
    struct byi_form y = {.rank = (uint8_t)rank, .block = x.block};
    uint8_t renamed[BYI_MAX_RANK] = {0};
    uint32_t n = 0, from = 0;
    for (uint32_t axis = 0; axis < rank; axis++)
        if (!(mask >> axis & 1))
            renamed[n++] = (uint8_t)axis;
    for (uint32_t i = 0; i < rank; i++)
        y.at[i] = mask >> i & 1 ? (uint8_t)i : renamed[x.at[from++]];
    y.block_axis = x.block ? renamed[x.block_axis] : 0;
    return byi_form_intern(forms, &y);
}

byi_form_id byi_form_ungroup(struct byi_forms *forms, byi_form_id id,
                             uint32_t rank, uint32_t begins)
{
    if (!id)
        return 0;
    const struct byi_form x =
        byi_form_at(forms, id, (uint32_t)__builtin_popcount(begins));
    struct byi_form y = {0};
    for (uint32_t k = 0; k < x.rank; k++) {
        uint32_t group = 0;
        for (uint32_t axis = 0; axis < rank; axis++) {
            group += begins >> axis & 1; /* from 1 on */
            if (group == x.at[k] + 1u)
                y.at[y.rank++] = (uint8_t)axis;
        }
    }
    return byi_form_intern(forms, &y);
}

byi_form_id byi_form_group(struct byi_forms *forms, byi_form_id id,
                           uint32_t rank, uint32_t begins)
{
    if (!id)
        return 0;
    const struct byi_form x = byi_form_at(forms, id, rank);
    uint8_t group_of[BYI_MAX_RANK] = {0};
    struct byi_form y = {0};
    uint32_t group = 0;
    for (uint32_t axis = 0; axis < rank; axis++) {
        group += begins >> axis & 1;
        group_of[axis] = (uint8_t)(group - 1);
    }
    for (uint32_t i = 0; i < rank; i++)
        if (begins >> x.at[i] & 1)
            y.at[y.rank++] = group_of[x.at[i]];
    return byi_form_intern(forms, &y);
}

uint32_t byi_form_place(const struct byi_form *form, uint32_t axis)
{
    for (uint32_t i = 0; i < form->rank; i++)
        if (form->at[i] == axis)
            return i;
    assert(!"every axis is stored");
    byi_unreachable();
}

bool byi_form_fits(const struct byi_form *form, const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR || type->rank != form->rank)
        return false;
    if (form->block == 0)
        return true;
    const int64_t dim = type->dims[form->block_axis];
    return form->rank < BYI_MAX_RANK && !BYI_IS_SYMBOL(dim) &&
           (dim == 1 || (dim > 0 && dim % form->block == 0));
}

/* The dims in storage order; returns their number. */
static uint32_t stored_dims(const struct byi_form *form,
                            const struct byi_type *type,
                            int64_t dims[BYI_MAX_RANK])
{
    for (uint32_t i = 0; i < form->rank; i++)
        dims[i] = type->dims[form->at[i]];
    if (form->block == 0)
        return form->rank;
    int64_t *outer = &dims[byi_form_place(form, form->block_axis)];
    const bool one = *outer == 1;
    *outer = one ? 1 : *outer / form->block;
    dims[form->rank] = one ? 1 : form->block;
    return form->rank + 1u;
}

const struct byi_type *byi_form_type(struct byi_arena *arena,
                                     const struct byi_form *form,
                                     const struct byi_type *type)
{
    int64_t dims[BYI_MAX_RANK];
    const uint32_t rank = stored_dims(form, type, dims);
    return byi_type_tensor(arena, type->dtype, rank, dims);
}

/* The axes with more than one element in storage order; a blocked axis appears
 * twice. Returns their number. */
static uint32_t real_axes(const struct byi_form *form,
                          const struct byi_type *type,
                          uint32_t axes[BYI_MAX_RANK + 1])
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < form->rank; i++) {
        const int64_t dim = type->dims[form->at[i]];
        const bool split = form->block && form->at[i] == form->block_axis;
        if (dim != 1 && !(split && dim == form->block))
            axes[n++] = form->at[i];
    }
    if (form->block && type->dims[form->block_axis] != 1)
        if (n == 0 || axes[n - 1] != form->block_axis)
            axes[n++] = form->block_axis;
    return n;
}

bool byi_form_same_order(const struct byi_form *a, const struct byi_form *b,
                         const struct byi_type *type)
{
    uint32_t x[BYI_MAX_RANK + 1], y[BYI_MAX_RANK + 1];
    if (a->block && b->block && a->block != b->block &&
        type->dims[a->block_axis] != 1)
        return false;
    const uint32_t n = real_axes(a, type, x);
    return n == real_axes(b, type, y) && memcmp(x, y, n * sizeof *x) == 0;
}

char *byi_form_name(const struct byi_form *form, const char *plain,
                    char buf[BYI_FORM_NAME])
{
    const char *letters = plain ? plain : "ABCDEFGHIJKL";
    uint32_t n = 0;
    assert(strlen(letters) >= form->rank);
    for (; n < form->rank; n++)
        buf[n] = letters[form->at[n]];
    buf[n] = '\0';
    if (form->block)
        snprintf(buf + n, BYI_FORM_NAME - n, "%u%c", form->block,
                 letters[form->block_axis] - 'A' + 'a');
    return buf;
}
