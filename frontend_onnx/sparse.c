/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c: decodes a SparseTensorProto to a dense tensor.
 *
 *   dims (2, 3), values [7, 8], indices [1, 5] or [[0, 1], [1, 2]]
 *     -> [[0, 7, 0], [0, 0, 8]]
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* A sparse tensor may decode to at most MAX_SMALL bytes, or to MAX_FACTOR times
 * the bytes of its values if that is more: a short file must not take all
 * memory. */
enum { MAX_SMALL = 16 << 20, MAX_FACTOR = 4096 };

/* A sparse tensor that is being decoded. */
struct sparse {
    const Onnx__SparseTensorProto *proto;
    const char *name;
    struct byi_tensor values, indices;
    int64_t n; /* of values */
};

static enum byoc_status decode_parts(struct byi_onnx_file *file,
                                     struct sparse *s, struct byoc_error *err)
{
    if (!s->proto->values || !s->proto->indices)
        return byi_fail(err, BYOC_EPARSE,
                        "sparse tensor '%s' has no %s, expected values and "
                        "indices",
                        s->name, s->proto->values ? "indices" : "values");
    BYI_TRY(byi_onnx_decode(file, s->proto->values, NULL, &s->values, err));
    BYI_TRY(byi_onnx_decode(file, s->proto->indices, NULL, &s->indices, err));
    if (s->values.dtype == BYOC_STRING)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "sparse tensor '%s' has strings, expected numbers",
                        s->name);
    if (s->values.rank != 1)
        return byi_fail(err, BYOC_EPARSE,
                        "sparse tensor '%s' has values of rank %u, expected 1",
                        s->name, s->values.rank);
    s->n = s->values.dims[0];
    return BYOC_OK;
}

static enum byoc_status check_dims(const struct sparse *s,
                                   const struct byi_tensor *t,
                                   struct byoc_error *err)
{
    const uint64_t bytes = byi_tensor_bytes(t);
    char text[160];

    byi_dims_text(text, sizeof text, t->rank, t->dims);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0)
            return byi_fail(err, BYOC_EPARSE,
                            "sparse tensor '%s' has dims %s, expected sizes of "
                            "0 or more",
                            s->name, text);
    if (byi_elements(t->rank, t->dims) < 0 || bytes == UINT64_MAX ||
        (bytes > MAX_SMALL &&
         bytes / MAX_FACTOR > byi_tensor_bytes(&s->values)))
        return byi_fail(err, BYOC_ELIMIT,
                        "sparse tensor '%s' has %lld values and dims %s, "
                        "expected at least one value for each %d elements; "
                        "store it as a dense tensor",
                        s->name, (long long)s->n, text, MAX_FACTOR);
    const struct byi_tensor *i = &s->indices;
    const bool is_list = i->rank == 1 && i->dims[0] == s->n;
    const bool is_matrix =
        i->rank == 2 && i->dims[0] == s->n && i->dims[1] == t->rank;
    if (i->dtype != BYOC_I64 || (!is_list && !is_matrix))
        return byi_fail(err, BYOC_EPARSE,
                        "sparse tensor '%s' has indices of type %s and dims "
                        "%s, expected int64 and (%lld) or (%lld, %u)",
                        s->name, byoc_dtype_name(i->dtype),
                        byi_dims_text(text, sizeof text, i->rank, i->dims),
                        (long long)s->n, (long long)s->n, t->rank);
    return BYOC_OK;
}

/* Returns the index in t of value k; negative if it is outside of t. */
static int64_t element_of(const struct sparse *s, const struct byi_tensor *t,
                          int64_t k)
{
    const int64_t *at = (const int64_t *)s->indices.data;
    int64_t element = 0;

    if (s->indices.rank == 1)
        return at[k] < byi_elements(t->rank, t->dims) ? at[k] : -1;
    for (uint32_t d = 0; d < t->rank; d++) {
        const int64_t i = at[k * t->rank + d];
        if (i < 0 || i >= t->dims[d])
            return -1;
        element = element * t->dims[d] + i;
    }
    return element;
}

enum byoc_status byi_onnx_decode_sparse(struct byi_onnx_file *file,
                                        const Onnx__SparseTensorProto *proto,
                                        struct byi_tensor *t,
                                        struct byoc_error *err)
{
    struct sparse s = {.proto = proto, .name = byi_onnx_sparse_name(proto)};

    if (proto->n_dims > BYI_MAX_RANK)
        return byi_fail(err, BYOC_ELIMIT,
                        "sparse tensor '%s' has rank %zu, expected at most %d",
                        s.name, proto->n_dims, BYI_MAX_RANK);
    BYI_TRY(decode_parts(file, &s, err));
    *t = (struct byi_tensor){.dtype = s.values.dtype,
                             .rank = (uint32_t)proto->n_dims};
    if (t->rank)
        memcpy(t->dims, proto->dims, t->rank * sizeof *t->dims);
    BYI_TRY(check_dims(&s, t, err));
    const uint32_t size = byoc_dtype_size(t->dtype);
    t->data = byi_arena_data(file->arena, byi_tensor_bytes(t));
    memset(t->data, 0, (size_t)byi_tensor_bytes(t));
    for (int64_t k = 0; k < s.n; k++) {
        const int64_t i = element_of(&s, t, k);
        if (i < 0)
            return byi_fail(err, BYOC_EPARSE,
                            "sparse tensor '%s': value %lld has indices "
                            "outside of the tensor, expected them inside",
                            s.name, (long long)k);
        memcpy((char *)t->data + i * size,
               (const char *)s.values.data + k * size, size);
    }
    return BYOC_OK;
}

const char *byi_onnx_sparse_name(const Onnx__SparseTensorProto *proto)
{
    return proto->values ? byi_text_or(proto->values->name, "") : "";
}
