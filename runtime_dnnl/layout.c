/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/layout.c: computes layouts, which consist of dims and strides;
 * the stride of an axis of size 1 has no meaning and is ignored here.
 */
#include "runtime_dnnl/build.h"

#include <assert.h>
#include <string.h>

struct byi_desc byi_dn_dense(enum byoc_dtype dtype, uint32_t rank,
                             const int64_t *dims, const uint32_t *order)
{
    struct byi_desc d = {
        .kind = BYI_DESC_STRIDED,
        .dtype = dtype,
        .rank = rank ? rank : 1,
        .dims = {1},
        .strides = {1},
    };
    if (rank)
        memcpy(d.dims, dims, rank * sizeof dims[0]);
    int64_t stride = 1;
    for (uint32_t i = d.rank; i-- > 0;) {
        const uint32_t axis = order ? order[i] : i;
        d.strides[axis] = stride;
        stride *= d.dims[axis];
    }
    return d;
}

struct byi_desc byi_dn_channels_last(enum byoc_dtype dtype, uint32_t rank,
                                     const int64_t *dims)
{
    if (rank < 3)
        return byi_dn_dense(dtype, rank, dims, NULL);
    uint32_t order[BYI_MAX_RANK] = {0};
    for (uint32_t i = 2; i < rank; i++)
        order[i - 1] = i;
    order[rank - 1] = 1;
    return byi_dn_dense(dtype, rank, dims, order);
}

void byi_dn_order(const struct byi_desc *desc, uint32_t *order)
{
    byi_axes_sort(desc->rank, desc->strides, order);
}

bool byi_dn_is_dense(const struct byi_desc *desc)
{
    const struct byi_desc regular = byi_dn_regular(desc);
    return byi_dn_same_layout(desc, &regular);
}

bool byi_dn_is_row_major(const struct byi_desc *desc)
{
    const struct byi_desc row_major =
        byi_dn_dense(desc->dtype, desc->rank, desc->dims, NULL);
    return byi_dn_same_layout(desc, &row_major);
}

struct byi_desc byi_dn_dense_like(const struct byi_desc *like,
                                  const int64_t *dims)
{
    uint32_t order[BYI_MAX_RANK];
    byi_dn_order(like, order);
    return byi_dn_dense(like->dtype, like->rank, dims, order);
}

struct byi_desc byi_dn_regular(const struct byi_desc *desc)
{
    return byi_dn_dense_like(desc, desc->dims);
}

bool byi_dn_same_layout(const struct byi_desc *a, const struct byi_desc *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank)
        return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i] ||
            (a->dims[i] > 1 && a->strides[i] != b->strides[i]))
            return false;
    return true;
}

/* Drops axes of size 1, then matches runs of old axes with runs of new axes of
 * the same product. Each old axis of a run must be contiguous with the next
 * one. */
bool byi_dn_reshape_desc(const struct byi_desc *desc, uint32_t rank,
                         const int64_t *dims, struct byi_desc *out)
{
    int64_t old[BYI_MAX_RANK], stride[BYI_MAX_RANK];
    uint32_t n = 0;
    for (uint32_t i = 0; i < desc->rank; i++) {
        if (desc->dims[i] == 1)
            continue;
        old[n] = desc->dims[i];
        stride[n++] = desc->strides[i];
    }
    *out = byi_dn_dense(desc->dtype, rank, dims, NULL);
    uint32_t i = 0, j = 0;
    while (i < n && j < rank) {
        uint32_t ei = i + 1, ej = j + 1;
        int64_t pi = old[i], pj = dims[j];
        while (pi != pj) {
            if (pi < pj && ei < n)
                pi *= old[ei++];
            else if (pj < pi && ej < rank)
                pj *= dims[ej++];
            else
                return false;
        }
        for (uint32_t k = i; k + 1 < ei; k++)
            if (stride[k] != old[k + 1] * stride[k + 1])
                return false;
        int64_t step = stride[ei - 1];
        for (uint32_t k = ej; k-- > j;) {
            out->strides[k] = step;
            step *= dims[k];
        }
        i = ei;
        j = ej;
    }
    return i == n; /* remaining new axes have size 1 */
}

/* Find the shortest run of axes from i on that has as many elements as a run of
 * `dims` from *j on. Returns its end and sets *j to the end of the run of dims;
 * 0 if the dims do not match. */
static uint32_t find_joined_run(const struct byi_desc *desc, uint32_t i,
                                uint32_t rank, const int64_t *dims, uint32_t *j)
{
    int64_t from = 1, to = 1;
    do {
        if (from <= to && i < desc->rank)
            from *= desc->dims[i++];
        else if (*j < rank)
            to *= dims[(*j)++];
        else
            return 0;
    } while (from != to || from == 1);
    return i;
}

bool byi_dn_join_desc(const struct byi_desc *desc, uint32_t rank,
                      const int64_t *dims, struct byi_desc *out)
{
    int64_t max_stride[BYI_MAX_RANK]; /* of each run */
    uint32_t run[BYI_MAX_RANK] = {0}, order[BYI_MAX_RANK], n = 0, runs = 0;
    for (uint32_t i = 0, j = 0; i < desc->rank; runs++) {
        uint32_t end = i;
        bool ones = true;
        for (uint32_t k = i; k < desc->rank; k++)
            ones = ones && desc->dims[k] == 1;
        end = ones ? desc->rank : find_joined_run(desc, i, rank, dims, &j);
        if (end == 0)
            return false;
        max_stride[runs] = 0;
        for (; i < end; i++) {
            run[i] = runs;
            if (desc->dims[i] > 1 && desc->strides[i] > max_stride[runs])
                max_stride[runs] = desc->strides[i];
        }
    }
    while (n < desc->rank) { /* the outermost of the remaining runs */
        uint32_t best = 0;
        for (uint32_t r = 1; r < runs; r++)
            if (max_stride[r] > max_stride[best])
                best = r;
        for (uint32_t i = 0; i < desc->rank; i++)
            if (run[i] == best && max_stride[best] >= 0)
                order[n++] = i;
        max_stride[best] = -1;
    }
    *out = byi_dn_dense(desc->dtype, desc->rank, desc->dims, order);
    return true;
}

struct byi_desc byi_dn_permute_desc(const struct byi_desc *desc,
                                    const uint32_t *axes)
{
    struct byi_desc d = *desc;
    for (uint32_t i = 0; i < desc->rank; i++) {
        d.dims[i] = desc->dims[axes[i]];
        d.strides[i] = desc->strides[axes[i]];
    }
    return d;
}

struct byi_desc byi_dn_with_rank(const struct byi_desc *desc, uint32_t rank)
{
    struct byi_desc d = *desc;
    d.rank = rank;
    if (rank <= desc->rank) {
        const uint32_t n_dropped = desc->rank - rank;
        memmove(d.dims, desc->dims + n_dropped, rank * sizeof d.dims[0]);
        memmove(d.strides, desc->strides + n_dropped, rank * sizeof d.dims[0]);
        return d;
    }
    const uint32_t n_added = rank - desc->rank;
    int64_t span = 1;
    for (uint32_t i = 0; i < desc->rank; i++) {
        d.dims[n_added + i] = desc->dims[i];
        d.strides[n_added + i] = desc->strides[i];
        if (desc->dims[i] * desc->strides[i] > span)
            span = desc->dims[i] * desc->strides[i];
    }
    for (uint32_t i = 0; i < n_added; i++) {
        d.dims[i] = 1;
        d.strides[i] = span;
    }
    return d;
}

uint64_t byi_dn_desc_bytes(const struct byi_desc *desc)
{
    const int64_t n = byi_elements(desc->rank, desc->dims);
    assert(n > 0);
    return (uint64_t)n * byoc_dtype_size(desc->dtype);
}
