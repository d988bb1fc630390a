/* SPDX-License-Identifier: Apache-2.0 */
/* move.h: functions for the kernels that move data. These kernels depend on the
 * size of an element but not on its type. They treat a string as a pointer. */
#ifndef BYI_MOVE_H
#define BYI_MOVE_H

#include "kernel.h"

/* --- view.c ------------------------------------------------------------- */

/* A strided source, in the order of a dense result: axis i has dims[i] steps of
 * strides[i] elements, which may be 0 or negative. Its rank is at most twice
 * the tensor's, since tile and the block operators split axes. */
struct byi_view {
    uint32_t rank;
    int64_t dims[2 * BYI_MAX_RANK];
    int64_t strides[2 * BYI_MAX_RANK];
};

/* Set strides[] to the strides of a dense tensor. */
void byi_dense_strides(uint32_t rank, const int64_t *dims, int64_t *strides);
/* Copy the elements of the view, `size` bytes each, to dst contiguously; src is
 * the view's first element. */
void byi_view_copy(const struct byi_call *call, const struct byi_view *view,
                   const void *src, void *dst, size_t size);
/* memcpy, split over threads if it is long. */
void byi_copy_bytes(const struct byi_call *call, void *dst, const void *src,
                    size_t bytes);
/* Set n elements of `size` bytes at dst to *value. */
void byi_fill(void *dst, const void *value, int64_t n, size_t size);
/* Like byi_transpose() (kernel.h), for elements of 1 or 2 bytes. Fast only if
 * the source stays in the cache, since it does not copy in blocks. */
void byi_transpose_small(size_t size, const void *from, int64_t stride,
                         int64_t rows, int64_t columns, void *to,
                         int64_t pitch);

/* nonzero.c: lower the result's dim to the number of selected elements. Fails
 * if there are more than the dim's bound. */
enum byoc_status byi_lower_dim(const struct byi_call *call, uint32_t axis,
                               int64_t found, struct byoc_error *err);

/* index.c: dst[k] = src[at[k]] for n elements of `size` bytes */
void byi_gather_elements(char *dst, const char *src, const int64_t *at,
                         int64_t n, size_t size);

/* Copy one element, with a single move for the common sizes. */
static inline void byi_copy_element(char *dst, const char *src, size_t size)
{
    switch (size) {
    case 1:
        *dst = *src;
        break;
    case 2:
        memcpy(dst, src, 2);
        break;
    case 4:
        memcpy(dst, src, 4);
        break;
    case 8:
        memcpy(dst, src, 8);
        break;
    default:
        memcpy(dst, src, size);
        break;
    }
}

/* Copy n elements; a single one of a common size without a call of memcpy. */
static inline void byi_copy_elements(char *dst, const char *src, int64_t n,
                                     size_t size)
{
    if (n == 1)
        byi_copy_element(dst, src, size);
    else if (n > 0)
        memcpy(dst, src, (size_t)n * size);
}

/* Element i of an int32 or int64 tensor. */
static inline int64_t byi_index_at(const struct byi_tensor *t, int64_t i)
{
    if (t->dtype == BYOC_I64) {
        int64_t value;
        memcpy(&value, (const char *)t->data + i * 8, 8);
        return value;
    }
    int32_t value;
    memcpy(&value, (const char *)t->data + i * 4, 4);
    return value;
}

/* Check that all indices are in -size .. size - 1. Errors: BYOC_EINVAL. */
enum byoc_status byi_check_indices(const struct byi_call *call,
                                   const struct byi_tensor *indices,
                                   int64_t size, struct byoc_error *err);

/* Convert an index that, if negative, counts from the end to one that counts
 * from the front. */
static inline int64_t byi_wrap(int64_t index, int64_t size)
{
    return index < 0 ? index + size : index;
}

/* Restore the order of the binary heap heap[0, n), in which only the element
 * `at` may be out of place, by moving it down. first(a, b) returns whether the
 * element *a must be above *b. */
#define BYI_SIFT_DOWN(heap, n, at, first)                                      \
    do {                                                                       \
        const __typeof__(*(heap)) moved_ = (heap)[at];                         \
        int64_t hole_ = (at);                                                  \
        for (int64_t child_; (child_ = 2 * hole_ + 1) < (n); hole_ = child_) { \
            if (child_ + 1 < (n) &&                                            \
                first(&(heap)[child_ + 1], &(heap)[child_]))                   \
                child_++;                                                      \
            if (!first(&(heap)[child_], &moved_))                              \
                break;                                                         \
            (heap)[hole_] = (heap)[child_];                                    \
        }                                                                      \
        (heap)[hole_] = moved_;                                                \
    } while (0)

/* Advance the coordinates `at` to the next position in row-major order, and
 * update *offset, the sum of at[i] * strides[i]. */
static inline void byi_advance_position(uint32_t rank, const int64_t *dims,
                                        const int64_t *strides, int64_t *at,
                                        int64_t *offset)
{
    for (uint32_t i = rank; i-- > 0;) {
        *offset += strides[i];
        if (++at[i] < dims[i])
            return;
        *offset -= dims[i] * strides[i];
        at[i] = 0;
    }
}

/* Set the coordinates `at` to those of position `n`; returns its offset. */
static inline int64_t byi_seek(uint32_t rank, const int64_t *dims,
                               const int64_t *strides, int64_t n, int64_t *at)
{
    int64_t offset = 0;
    for (uint32_t i = rank; i-- > 0;) {
        at[i] = n % dims[i];
        n /= dims[i];
        offset += at[i] * strides[i];
    }
    return offset;
}

#endif
