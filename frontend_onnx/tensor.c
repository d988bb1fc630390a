/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: decodes a TensorProto to a byi_tensor, from any of its encodings.
 *
 * Sizes are checked against the bytes or entries of the message before anything
 * is allocated, so a message can request at most a small multiple of its own
 * size.
 */
#include "frontend_onnx/import.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "raw_data is little-endian and used as it is");

/* In bytes. Mapped raw data of at least this size is used in place even if it
 * is not aligned to BYI_ALIGN. Smaller unaligned data, and all unmapped data,
 * is copied. */
enum { MIN_BORROWED = 16384 };

/* Data of a tensor without elements: never NULL, never read. */
static alignas(BYI_ALIGN) uint8_t empty[BYI_ALIGN];

static const char *tensor_name(const Onnx__TensorProto *proto)
{
    return proto->name && *proto->name ? proto->name : "(unnamed)";
}

/* Decode all members but t->data. */
static enum byoc_status decode_header(const Onnx__TensorProto *proto,
                                      struct byi_tensor *t,
                                      struct byoc_error *err)
{
    const char *name = tensor_name(proto);
    char text[160];

    if (proto->segment)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "tensor '%s' is stored in segments, expected all of "
                        "its data in one TensorProto",
                        name);
    if (proto->n_dims > BYI_MAX_RANK)
        return byi_fail(err, BYOC_ELIMIT,
                        "tensor '%s' has rank %zu, expected at most %d", name,
                        proto->n_dims, BYI_MAX_RANK);
    t->dtype = (enum byoc_dtype)proto->data_type;
    if (!proto->has_data_type)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "tensor '%s' has no element type (data_type), expected "
                        "one of TensorProto.DataType",
                        name);
    if (!byoc_dtype_name(t->dtype))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "tensor '%s' has the unknown element type %d, expected "
                        "one of TensorProto.DataType",
                        name, proto->data_type);
    t->rank = (uint32_t)proto->n_dims;
    if (t->rank)
        memcpy(t->dims, proto->dims, t->rank * sizeof *t->dims);
    byi_dims_text(text, sizeof text, t->rank, t->dims);
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->dims[i] < 0)
            return byi_fail(err, BYOC_EPARSE,
                            "tensor '%s' has dims %s, expected sizes of 0 or "
                            "more",
                            name, text);
    if (byi_elements(t->rank, t->dims) < 0 ||
        (t->dtype != BYOC_STRING && byi_tensor_bytes(t) == UINT64_MAX))
        return byi_fail(err, BYOC_EPARSE,
                        "tensor '%s' has dims %s, expected a product that "
                        "fits in 64 bits",
                        name, text);
    return BYOC_OK;
}

/* Records that `field` has a wrong number of entries. Returns BYOC_EPARSE. */
static enum byoc_status fail_count(const Onnx__TensorProto *proto,
                                   const struct byi_tensor *t,
                                   const char *field, uint64_t found,
                                   uint64_t expected, struct byoc_error *err)
{
    char text[160];

    return byi_fail(err, BYOC_EPARSE,
                    "tensor '%s': found %llu %s, expected %llu for %s of "
                    "dims %s",
                    tensor_name(proto), (unsigned long long)found, field,
                    (unsigned long long)expected, byoc_dtype_name(t->dtype),
                    byi_dims_text(text, sizeof text, t->rank, t->dims));
}

/* Whether a byte of the file holds several elements: they have fewer than 8
 * bits. */
static bool is_packed(const struct byi_tensor *t)
{
    const uint32_t bits = byi_narrow_bits(t->dtype);

    return bits != 0 && bits < 8;
}

/* Returns the size of the tensor's raw_data in bytes. */
static uint64_t stored_bytes(const struct byi_tensor *t)
{
    return is_packed(t)
               ? byi_narrow_packed_bytes(
                     t->dtype, (uint64_t)byi_elements(t->rank, t->dims))
               : byi_tensor_bytes(t);
}

/* Set t->data to raw data. Packed data is unpacked to the file's arena. Other
 * data is used in place if it is mapped and large or aligned, and otherwise
 * copied to the arena. */
static enum byoc_status decode_raw(struct byi_onnx_file *file,
                                   const Onnx__TensorProto *proto,
                                   struct byi_range raw, bool mapped,
                                   struct byi_tensor *t, struct byoc_error *err)
{
    const uint64_t bytes = stored_bytes(t);

    if (t->dtype == BYOC_STRING)
        return byi_fail(err, BYOC_EPARSE,
                        "tensor '%s': found strings in raw_data, expected them "
                        "in string_data",
                        tensor_name(proto));
    if (raw.n != bytes)
        return fail_count(proto, t, "bytes", raw.n, bytes, err);
    for (size_t i = 0; t->dtype == BYOC_BOOL && i < raw.n; i++)
        if (raw.at[i] > 1)
            return byi_fail(
                err, BYOC_EPARSE,
                "tensor '%s': element %zu is %u, expected 0 or 1 for bool",
                tensor_name(proto), i, raw.at[i]);
    if (is_packed(t)) {
        t->data = byi_arena_data(file->arena, byi_tensor_bytes(t));
        byi_narrow_unpack(t->dtype, raw.at, byi_tensor_bytes(t), t->data);
        return BYOC_OK;
    }
    const bool is_aligned = (uintptr_t)raw.at % BYI_ALIGN == 0;
    if (mapped && (is_aligned || bytes >= MIN_BORROWED)) {
        t->data =
            (void *)(uintptr_t)raw.at; /* constants are never written to */
        return BYOC_OK;
    }
    t->data = byi_arena_data(file->arena, bytes);
    if (bytes)
        memcpy(t->data, raw.at, (size_t)bytes);
    return BYOC_OK;
}

/* The dtypes that int32_data may hold, and their ranges. Floats of 8 and 16
 * bits are bit patterns. */
static const struct {
    enum byoc_dtype dtype;
    int32_t min, max;
} int32_ranges[] = {
    {BYOC_I32, INT32_MIN, INT32_MAX}, {BYOC_I16, INT16_MIN, INT16_MAX},
    {BYOC_I8, INT8_MIN, INT8_MAX},    {BYOC_U16, 0, UINT16_MAX},
    {BYOC_U8, 0, UINT8_MAX},          {BYOC_BOOL, 0, 1},
    {BYOC_F16, 0, UINT16_MAX},        {BYOC_BF16, 0, UINT16_MAX},
    {BYOC_F8E4M3FN, 0, UINT8_MAX},    {BYOC_F8E4M3FNUZ, 0, UINT8_MAX},
    {BYOC_F8E5M2, 0, UINT8_MAX},      {BYOC_F8E5M2FNUZ, 0, UINT8_MAX},
    {BYOC_F8E8M0, 0, UINT8_MAX},
};

static void store_int(void *data, uint32_t size, uint64_t i, int32_t value)
{
    uint8_t *at = (uint8_t *)data + i * size;

    memcpy(at, &value, size); /* little-endian: the low bytes come first */
}

static enum byoc_status decode_int32(struct byi_onnx_file *file,
                                     const Onnx__TensorProto *proto,
                                     struct byi_tensor *t, uint64_t n,
                                     struct byoc_error *err)
{
    size_t row = 0;

    while (row < BYI_COUNT(int32_ranges) && int32_ranges[row].dtype != t->dtype)
        row++;
    assert(row < BYI_COUNT(int32_ranges));
    if (proto->n_int32_data != n)
        return fail_count(proto, t, "entries in int32_data",
                          proto->n_int32_data, n, err);
    t->data = byi_arena_data(file->arena, byi_tensor_bytes(t));
    for (uint64_t i = 0; i < n; i++) {
        const int32_t value = proto->int32_data[i];
        if (value < int32_ranges[row].min || value > int32_ranges[row].max)
            return byi_fail(err, BYOC_EPARSE,
                            "tensor '%s': element %llu is %d, which does not "
                            "fit %s, expected %d to %d",
                            tensor_name(proto), (unsigned long long)i, value,
                            byoc_dtype_name(t->dtype), int32_ranges[row].min,
                            int32_ranges[row].max);
        store_int(t->data, byoc_dtype_size(t->dtype), i, value);
    }
    return BYOC_OK;
}

/* Decode elements of less than 8 bits: each entry of int32_data is a byte of
 * packed elements. */
static enum byoc_status decode_packed(struct byi_onnx_file *file,
                                      const Onnx__TensorProto *proto,
                                      struct byi_tensor *t, uint64_t n,
                                      struct byoc_error *err)
{
    const uint64_t bytes = stored_bytes(t);

    if (proto->n_int32_data != bytes)
        return fail_count(proto, t, "entries in int32_data",
                          proto->n_int32_data, bytes, err);
    uint8_t *packed = byi_arena_alloc(file->arena, bytes);
    for (uint64_t i = 0; i < bytes; i++)
        packed[i] = (uint8_t)proto->int32_data[i];
    t->data = byi_arena_data(file->arena, n);
    byi_narrow_unpack(t->dtype, packed, n, t->data);
    return BYOC_OK;
}

static enum byoc_status decode_uint64(struct byi_onnx_file *file,
                                      const Onnx__TensorProto *proto,
                                      struct byi_tensor *t, uint64_t n,
                                      struct byoc_error *err)
{
    if (proto->n_uint64_data != n)
        return fail_count(proto, t, "entries in uint64_data",
                          proto->n_uint64_data, n, err);
    t->data = byi_arena_data(file->arena, byi_tensor_bytes(t));
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t value = proto->uint64_data[i];
        if (t->dtype == BYOC_U32 && value > UINT32_MAX)
            return byi_fail(err, BYOC_EPARSE,
                            "tensor '%s': element %llu is %llu, which does "
                            "not fit uint32, expected at most 4294967295",
                            tensor_name(proto), (unsigned long long)i,
                            (unsigned long long)value);
        if (t->dtype == BYOC_U32)
            ((uint32_t *)t->data)[i] = (uint32_t)value;
        else
            ((uint64_t *)t->data)[i] = value;
    }
    return BYOC_OK;
}

static enum byoc_status decode_strings(struct byi_onnx_file *file,
                                       const Onnx__TensorProto *proto,
                                       struct byi_tensor *t, uint64_t n,
                                       struct byoc_error *err)
{
    if (proto->n_string_data != n)
        return fail_count(proto, t, "entries in string_data",
                          proto->n_string_data, n, err);
    const char **strings = byi_arena_data(file->arena, n * sizeof *strings);
    for (uint64_t i = 0; i < n; i++)
        if (proto->string_data[i].len > 0 && /* an empty one has no data */
            memchr(proto->string_data[i].data, '\0', proto->string_data[i].len))
            return byi_fail(err, BYOC_EUNSUPPORTED,
                            "tensor '%s': string %llu contains a NUL "
                            "character, expected text without NUL",
                            tensor_name(proto), (unsigned long long)i);
    for (uint64_t i = 0; i < n; i++)
        strings[i] = byi_arena_strn(file->arena,
                                    (const char *)proto->string_data[i].data,
                                    proto->string_data[i].len);
    t->data = strings;
    return BYOC_OK;
}

/* Copy int64_data, float_data or double_data, whose entries have the format of
 * the tensor's elements. A complex element is two entries. */
static enum byoc_status decode_same_format(struct byi_onnx_file *file,
                                           const Onnx__TensorProto *proto,
                                           struct byi_tensor *t, uint64_t n,
                                           struct byoc_error *err)
{
    const bool is_complex = t->dtype == BYOC_C64 || t->dtype == BYOC_C128;
    const uint64_t expected = is_complex ? 2 * n : n;
    const void *from = proto->int64_data;
    const char *field = "entries in int64_data";
    uint64_t found = proto->n_int64_data;

    if (t->dtype == BYOC_F32 || t->dtype == BYOC_C64) {
        from = proto->float_data;
        field = "entries in float_data";
        found = proto->n_float_data;
    } else if (t->dtype == BYOC_F64 || t->dtype == BYOC_C128) {
        from = proto->double_data;
        field = "entries in double_data";
        found = proto->n_double_data;
    }
    if (found != expected)
        return fail_count(proto, t, field, found, expected, err);
    t->data = byi_arena_data(file->arena, byi_tensor_bytes(t));
    memcpy(t->data, from, (size_t)byi_tensor_bytes(t));
    return BYOC_OK;
}

enum byoc_status byi_onnx_decode(struct byi_onnx_file *file,
                                 const Onnx__TensorProto *proto,
                                 const struct byi_range *raw,
                                 struct byi_tensor *t, struct byoc_error *err)
{
    BYI_TRY(decode_header(proto, t, err));
    const uint64_t n = (uint64_t)byi_elements(t->rank, t->dims);

    if (proto->has_data_location &&
        proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        struct byi_range range = {0};
        BYI_TRY(byi_onnx_external(file, proto, stored_bytes(t), &range, err));
        return decode_raw(file, proto, range, true, t, err);
    }
    if (raw && raw->at)
        return decode_raw(file, proto, *raw, true, t, err);
    if (proto->has_raw_data && proto->raw_data.len) {
        const struct byi_range unpacked = {proto->raw_data.data,
                                           proto->raw_data.len};
        return decode_raw(file, proto, unpacked, false, t, err);
    }
    if (n == 0) {
        t->data = empty;
        return BYOC_OK;
    }
    switch (t->dtype) {
    case BYOC_STRING:
        return decode_strings(file, proto, t, n, err);
    case BYOC_U32:
    case BYOC_U64:
        return decode_uint64(file, proto, t, n, err);
    case BYOC_F32:
    case BYOC_F64:
    case BYOC_C64:
    case BYOC_C128:
    case BYOC_I64:
        return decode_same_format(file, proto, t, n, err);
    case BYOC_U4:
    case BYOC_I4:
    case BYOC_F4E2M1:
    case BYOC_U2:
    case BYOC_I2:
        return decode_packed(file, proto, t, n, err);
    default:
        return decode_int32(file, proto, t, n, err);
    }
}
