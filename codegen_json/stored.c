/* SPDX-License-Identifier: Apache-2.0 */
/* stored.c: decides how the weights of an artifact store constants. Strings
 * follow one another; float32 elements have fewer bits if these reproduce every
 * element bit for bit.
 */
#include "plan.h"

#include <string.h>

#include "core/base/row_codes.h"

/* float32 constants with fewer elements are stored unchanged */
enum { MIN_ELEMENTS = 1024 };

/* The size in bytes of a constant whose type does not change; strings are
 * packed.
 */
static uint64_t plain_bytes(const struct byi_const *c)
{
    const char *const *strings = c->data;
    uint64_t bytes = 0;
    if (c->type->dtype != BYOC_STRING)
        return c->bytes;
    for (uint64_t i = 0; i < c->bytes / sizeof *strings; i++)
        bytes += strlen(strings[i]) + 1;
    return bytes;
}

/* --- 16 bits -------------------------------------------------------------- */

/* Whether the narrower type `store` has all values of a float32 constant. */
static bool has_values(const struct byi_const *c, enum byoc_dtype store)
{
    for (uint64_t i = 0; i < c->bytes / sizeof(float); i++) {
        const float x = byi_float_at(c->data, (int64_t)i);
        const float widened = byi_half_to_f32(byi_f32_to_half(x, store), store);
        if (memcmp(&x, &widened, sizeof x) != 0)
            return false;
    }
    return true;
}

static const void *narrow_copy(const struct byi_const *c, enum byoc_dtype dtype,
                               struct byi_arena *arena)
{
    const uint64_t n = c->bytes / sizeof(float);
    uint16_t *to = byi_arena_alloc(arena, n * sizeof *to);
    for (uint64_t i = 0; i < n; i++)
        to[i] = byi_f32_to_half(byi_float_at(c->data, (int64_t)i), dtype);
    return to;
}

/* --- 8 bits --------------------------------------------------------------- */

/* View a constant as a matrix with a row for each index of `axis`, which is 0,
 * or 1 if the constant has rank 2. Returns false for another axis, rows that
 * are too short, and unaligned data. */
static bool read_matrix(const struct byi_const *c, uint32_t axis, int64_t *rows,
                        int64_t *columns)
{
    enum { MIN_COLUMNS = 4 }; /* since each row has a scale */
    const struct byi_type *type = c->type;
    if (type->rank < 2 || (axis > 0 && type->rank != 2) ||
        (uintptr_t)c->data % sizeof(float) != 0)
        return false;
    *rows = type->dims[axis];
    *columns = (int64_t)(c->bytes / sizeof(float)) / *rows;
    return *columns >= MIN_COLUMNS;
}

/* Find int8 codes with a scale for each index of `axis` that reproduce the
 * constant: *bytes bytes at *codes, in `arena`. Returns false if there are
 * none.
 */
static bool find_codes(const struct byi_const *c, uint32_t axis,
                       struct byi_arena *arena, const void **codes,
                       uint64_t *bytes)
{
    int64_t rows, columns;
    if (!read_matrix(c, axis, &rows, &columns))
        return false;
    *bytes = byi_row_codes_bytes(rows, columns);
    void *out = byi_arena_calloc(arena, *bytes, 1);
    *codes = out;
    return byi_row_codes_find(
        c->data, rows, columns, axis > 0,
        byi_arena_alloc(arena, (size_t)columns * sizeof(int16_t)), out);
}

/* --- the choice ----------------------------------------------------------- */

void byi_stored_find(const struct byi_const *c, enum byoc_dtype store,
                     struct byi_placed_const *placed)
{
    const void *codes;
    placed->bytes = plain_bytes(c);
    if (c->type->dtype != BYOC_F32 || c->bytes / sizeof(float) < MIN_ELEMENTS)
        return;
    struct byi_arena *scratch = byi_arena_new();
    for (uint32_t axis = 0; axis < 2 && !placed->stored; axis++)
        if (find_codes(c, axis, scratch, &codes, &placed->bytes)) {
            placed->stored = BYOC_I8;
            placed->axis = axis;
        }
    byi_arena_free(&scratch);
    if (placed->stored)
        return;
    placed->bytes = c->bytes;
    if (store && has_values(c, store)) {
        placed->stored = store;
        placed->bytes = c->bytes / 2;
    }
}

const void *byi_stored_data(const struct byi_const *c,
                            const struct byi_placed_const *placed,
                            struct byi_arena *arena)
{
    const void *codes = NULL;
    uint64_t bytes;
    if (placed->stored == BYOC_I8) {
        find_codes(c, placed->axis, arena, &codes, &bytes);
        return codes;
    }
    if (placed->stored)
        return narrow_copy(c, placed->stored, arena);
    if (c->type->dtype != BYOC_STRING)
        return c->data;
    struct byi_text packed = {0};
    byi_strings_pack(c->data, byi_elements(c->type->rank, c->type->dims),
                     &packed);
    const void *data = byi_arena_copy(arena, packed.at, packed.n);
    byi_text_free(&packed);
    return data;
}
