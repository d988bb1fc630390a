/* SPDX-License-Identifier: Apache-2.0 */
/* list_type.c: reads the types of sequences and optionals from JSON. */
#include "plan.h"

#include <string.h>

enum byi_type_kind byi_list_kind(const char *dtype)
{
    return strcmp(dtype, "sequence") == 0   ? BYI_SEQ
           : strcmp(dtype, "optional") == 0 ? BYI_OPTIONAL
                                            : BYI_TENSOR;
}

/* Read a type such as {"dtype": "float32", "shape": [2, -1]}, where -1 is any
 * size. The shape may also be "any", or "none" for a list without elements. */
static enum byoc_status read_element(const struct byi_json *at,
                                     struct byi_arena *arena,
                                     const struct byi_type **type,
                                     struct byoc_error *err)
{
    struct byi_json shape, item = {0};
    int64_t dims[BYI_MAX_RANK];
    const char *text;
    uint32_t rank;
    BYI_TRY(byi_json_string(at, "dtype", &text, err));
    const enum byoc_dtype dtype = byi_dtype_of_name(text, strlen(text));
    if (dtype == BYOC_NONE)
        return byi_fail(err, BYOC_EPARSE,
                        "%s.dtype: found \"%.40s\", expected an element type",
                        at->path, text);
    if (byi_json_string(at, "shape", &text, NULL) == BYOC_OK) {
        const bool any = strcmp(text, "any") == 0;
        *type =
            byi_type_of_any(arena, any ? BYI_ANY_TENSOR : BYI_NO_TENSOR, dtype);
        return any || strcmp(text, "none") == 0
                   ? BYOC_OK
                   : byi_fail(err, BYOC_EPARSE,
                              "%s.shape: found \"%.40s\", expected sizes, "
                              "\"any\" or \"none\"",
                              at->path, text);
    }
    BYI_TRY(byi_json_array(at, "shape", BYI_MAX_RANK, &shape, &rank, err));
    for (uint32_t i = 0; byi_json_next(&shape, &item, i); i++) {
        BYI_TRY(byi_json_as_int(&item, -1, INT64_C(1) << 40, &dims[i], err));
        dims[i] = dims[i] < 0 ? BYI_ANY_DIM : dims[i];
    }
    *type = byi_type_tensor(arena, dtype, rank, dims);
    return BYOC_OK;
}

enum byoc_status byi_list_type_read(const struct byi_json *at,
                                    struct byi_arena *arena,
                                    const struct byi_type **type,
                                    struct byoc_error *err)
{
    enum { MAX_NESTED = 4 }; /* lists around the type of an element */
    enum byi_type_kind kinds[MAX_NESTED];
    struct byi_json current = *at, of;
    const char *dtype;
    uint32_t n = 0;
    for (;;) {
        BYI_TRY(byi_json_string(&current, "dtype", &dtype, err));
        const enum byi_type_kind kind = byi_list_kind(dtype);
        if (kind == BYI_TENSOR)
            break;
        if (n == MAX_NESTED)
            return byi_fail(err, BYOC_ELIMIT,
                            "%s: found a type inside %d sequences and "
                            "optionals, expected a tensor there",
                            current.path, MAX_NESTED);
        kinds[n++] = kind;
        BYI_TRY(byi_json_get(&current, "of", &of, err));
        current = of;
    }
    BYI_TRY(read_element(&current, arena, type, err));
    while (n-- > 0)
        *type = byi_type_list(arena, kinds[n], *type);
    return BYOC_OK;
}
