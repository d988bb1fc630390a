/* SPDX-License-Identifier: Apache-2.0 */
/* proto.c: writes messages of onnx.proto that describe types, tensors and
 * attributes of ONNX Runtime. Field numbers are from onnx.proto.
 */
#include "onnxruntime/provider.h"

#include <stdlib.h>
#include <string.h>

/* Wire types of Protocol Buffers. */
enum { VARINT = 0, BYTES = 2, FIXED32 = 5 };

/* Fields of an AttributeProto. */
enum {
    ATTRIBUTE_NAME = 1,
    ATTRIBUTE_F = 2,
    ATTRIBUTE_I = 3,
    ATTRIBUTE_S = 4,
    ATTRIBUTE_T = 5,
    ATTRIBUTE_FLOATS = 7,
    ATTRIBUTE_INTS = 8,
    ATTRIBUTE_STRINGS = 9,
    ATTRIBUTE_TYPE = 20
};
enum { NODE_ATTRIBUTE = 5, RAW_DATA = 9 };

void byi_ep_put(struct byi_ep_bytes *out, const void *data, size_t n)
{
    while (out->cap - out->n < n)
        out->at = byi_arena_grow(out->arena, out->at, &out->cap, 1);
    if (n > 0)
        memcpy(out->at + out->n, data, n);
    out->n += (uint32_t)n;
}

static void put_varint(struct byi_ep_bytes *out, uint64_t value)
{
    char bytes[10];
    size_t n = 0;
    while (value > 127) {
        bytes[n++] = (char)(value | 128);
        value >>= 7;
    }
    bytes[n++] = (char)value;
    byi_ep_put(out, bytes, n);
}

void byi_ep_put_int(struct byi_ep_bytes *out, unsigned field, uint64_t value)
{
    put_varint(out, field << 3 | VARINT);
    put_varint(out, value);
}

void byi_ep_put_head(struct byi_ep_bytes *out, unsigned field, size_t n)
{
    put_varint(out, field << 3 | BYTES);
    put_varint(out, n);
}

void byi_ep_put_bytes(struct byi_ep_bytes *out, unsigned field,
                      const void *data, size_t n)
{
    byi_ep_put_head(out, field, n);
    byi_ep_put(out, data, n);
}

void byi_ep_put_string(struct byi_ep_bytes *out, unsigned field,
                       const char *text)
{
    byi_ep_put_bytes(out, field, text, strlen(text));
}

static void put_float(struct byi_ep_bytes *out, unsigned field, float value)
{
    put_varint(out, field << 3 | FIXED32);
    byi_ep_put(out, &value, sizeof value);
}

/* Append `message` as a field. */
static void put_message(struct byi_ep_bytes *out, unsigned field,
                        struct byi_ep_bytes *message)
{
    byi_ep_put_bytes(out, field, message->at, message->n);
}

/* --- types ---------------------------------------------------------------- */

enum byoc_dtype byi_ep_dtype(ONNXTensorElementDataType type)
{
    /* ONNX Runtime 1.24 added uint2 and int2 before float8e8m0 */
    static const enum byoc_dtype newest[] = {BYOC_U2, BYOC_I2, BYOC_F8E8M0};
    if ((int)type >= 24 && (int)type <= 26)
        return newest[(int)type - 24];
    return (int)type >= 1 && (int)type <= BYOC_F4E2M1 ? (enum byoc_dtype)type
                                                      : BYOC_NONE;
}

enum byoc_status byi_ep_read_rank(const OrtApi *ort,
                                  const OrtTensorTypeAndShapeInfo *info,
                                  int32_t *rank, struct byoc_error *err)
{
    size_t n, count = 1;
    BYI_ORT(ort, GetDimensionsCount(info, &n));
    if (n == 0) /* a scalar has one element, an unknown shape has 0 */
        BYI_ORT(ort, GetTensorShapeElementCount(info, &count));
    *rank = count == 0 ? -1 : (int32_t)n;
    return BYOC_OK;
}

/* Append the fields of a TypeProto.Tensor; no shape if the rank is unknown. */
static enum byoc_status put_tensor_type(const OrtApi *ort,
                                        const OrtTensorTypeAndShapeInfo *info,
                                        struct byi_ep_bytes *out,
                                        struct byoc_error *err)
{
    ONNXTensorElementDataType type;
    int32_t inferred_rank;
    BYI_ORT(ort, GetTensorElementType(info, &type));
    BYI_TRY(byi_ep_read_rank(ort, info, &inferred_rank, err));
    byi_ep_put_int(out, 1, byi_ep_dtype(type));
    if (inferred_rank < 0)
        return BYOC_OK;
    const size_t rank = (size_t)inferred_rank;
    int64_t *dims = byi_arena_calloc(out->arena, rank + 1, sizeof *dims);
    const char **names = byi_arena_calloc(out->arena, rank + 1, sizeof *names);
    BYI_ORT(ort, GetDimensions(info, dims, rank));
    BYI_ORT(ort, GetSymbolicDimensions(info, names, rank));
    struct byi_ep_bytes shape = {.arena = out->arena};
    for (size_t i = 0; i < rank; i++) {
        struct byi_ep_bytes dim = {.arena = out->arena};
        if (dims[i] >= 0)
            byi_ep_put_int(&dim, 1, (uint64_t)dims[i]);
        else if (names[i] && *names[i])
            byi_ep_put_string(&dim, 2, names[i]);
        put_message(&shape, 1, &dim);
    }
    put_message(out, 2, &shape);
    return BYOC_OK;
}

/* Set *element to the type of the elements of a sequence or optional, which the
 * caller releases. */
static enum byoc_status get_element_type(const OrtApi *ort,
                                         const OrtTypeInfo *info, ONNXType kind,
                                         OrtTypeInfo **element,
                                         struct byoc_error *err)
{
    const OrtSequenceTypeInfo *sequence;
    const OrtOptionalTypeInfo *optional;
    if (kind == ONNX_TYPE_SEQUENCE) {
        BYI_ORT(ort, CastTypeInfoToSequenceTypeInfo(info, &sequence));
        BYI_ORT(ort, GetSequenceElementType(sequence, element));
    } else {
        BYI_ORT(ort, CastTypeInfoToOptionalTypeInfo(info, &optional));
        BYI_ORT(ort, GetOptionalContainedTypeInfo(optional, element));
    }
    return BYOC_OK;
}

/* Append the fields of a TypeProto. A sequence or an optional contains the type
 * of its elements. */
static enum byoc_status put_type(const OrtApi *ort, const OrtTypeInfo *info,
                                 struct byi_ep_bytes *out, unsigned depth,
                                 struct byoc_error *err)
{
    enum { TENSOR = 1, SEQUENCE = 4, OPTIONAL = 9, MAX_DEPTH = 8 };
    ONNXType kind;
    struct byi_ep_bytes inner = {.arena = out->arena};
    struct byi_ep_bytes element = {.arena = out->arena};
    BYI_ORT(ort, GetOnnxTypeFromTypeInfo(info, &kind));
    if (kind == ONNX_TYPE_TENSOR) {
        const OrtTensorTypeAndShapeInfo *tensor;
        BYI_ORT(ort, CastTypeInfoToTensorInfo(info, &tensor));
        BYI_TRY(put_tensor_type(ort, tensor, &inner, err));
        put_message(out, TENSOR, &inner);
        return BYOC_OK;
    }
    if (kind != ONNX_TYPE_SEQUENCE && kind != ONNX_TYPE_OPTIONAL)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found a value of ONNX Runtime's type %d, expected a "
                        "tensor, sequence or optional",
                        (int)kind);
    if (depth == MAX_DEPTH)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "found sequences and optionals inside each other more "
                        "than %d deep, expected at most %d",
                        MAX_DEPTH, MAX_DEPTH);
    OrtTypeInfo *element_type;
    BYI_TRY(get_element_type(ort, info, kind, &element_type, err));
    const enum byoc_status status =
        put_type(ort, element_type, &element, depth + 1, err);
    ort->ReleaseTypeInfo(element_type);
    BYI_TRY(status);
    put_message(&inner, 1, &element);
    put_message(out, kind == ONNX_TYPE_SEQUENCE ? SEQUENCE : OPTIONAL, &inner);
    return BYOC_OK;
}

enum byoc_status byi_ep_put_value(const OrtApi *ort, struct byi_ep_bytes *out,
                                  unsigned field, const OrtValueInfo *info,
                                  const char *name, struct byoc_error *err)
{
    struct byi_ep_bytes value = {.arena = out->arena};
    struct byi_ep_bytes type = {.arena = out->arena};
    const OrtTypeInfo *type_info;
    BYI_ORT(ort, GetValueInfoTypeInfo(info, &type_info));
    byi_ep_put_string(&value, 1, name);
    if (type_info) {
        BYI_TRY(put_type(ort, type_info, &type, 0, err));
        put_message(&value, 2, &type);
    }
    put_message(out, field, &value);
    return BYOC_OK;
}

/* --- tensors -------------------------------------------------------------- */

enum byoc_status byi_ep_read_strings(const OrtApi *ort, const OrtValue *value,
                                     size_t n, struct byi_arena *arena,
                                     const char **at, struct byoc_error *err)
{
    size_t total;
    BYI_ORT(ort, GetStringTensorDataLength(value, &total));
    char *content = byi_arena_alloc(arena, total + 1);
    char *text = byi_arena_alloc(arena, total + n + 1);
    size_t *starts = byi_arena_calloc(arena, n + 1, sizeof *starts);
    BYI_ORT(ort, GetStringTensorContent(value, content, total, starts, n));
    starts[n] = total;
    for (size_t i = 0; i < n; i++) {
        const size_t length = starts[i + 1] - starts[i];
        at[i] = memcpy(text, content + starts[i], length);
        text[length] = '\0';
        text += length + 1;
    }
    return BYOC_OK;
}

static enum byoc_status put_strings(const OrtApi *ort, const OrtValue *value,
                                    size_t n, struct byi_ep_bytes *out,
                                    struct byoc_error *err)
{
    enum { STRING_DATA = 6 };
    const char **at = byi_arena_calloc(out->arena, n + 1, sizeof *at);
    BYI_TRY(byi_ep_read_strings(ort, value, n, out->arena, at, err));
    for (size_t i = 0; i < n; i++)
        byi_ep_put_string(out, STRING_DATA, at[i]);
    return BYOC_OK;
}

/* Append dims and data_type; sets *count to the number of elements, and
 * *type. */
static enum byoc_status put_shape(const OrtApi *ort,
                                  const OrtTensorTypeAndShapeInfo *info,
                                  struct byi_ep_bytes *out, size_t *count,
                                  enum byoc_dtype *type, struct byoc_error *err)
{
    ONNXTensorElementDataType element;
    size_t rank;
    BYI_ORT(ort, GetTensorElementType(info, &element));
    BYI_ORT(ort, GetDimensionsCount(info, &rank));
    BYI_ORT(ort, GetTensorShapeElementCount(info, count));
    int64_t *dims = byi_arena_calloc(out->arena, rank + 1, sizeof *dims);
    BYI_ORT(ort, GetDimensions(info, dims, rank));
    for (size_t i = 0; i < rank; i++)
        byi_ep_put_int(out, 1, (uint64_t)dims[i]);
    *type = byi_ep_dtype(element);
    byi_ep_put_int(out, 2, *type);
    return BYOC_OK;
}

enum byoc_status byi_ep_put_tensor(const OrtApi *ort, const OrtValue *value,
                                   const char *name, struct byi_ep_bytes *out,
                                   const void **data, size_t *bytes,
                                   struct byoc_error *err)
{
    OrtTensorTypeAndShapeInfo *info;
    enum byoc_dtype type;
    size_t count;
    *data = NULL;
    *bytes = 0;
    BYI_ORT(ort, GetTensorTypeAndShape(value, &info));
    const enum byoc_status status =
        put_shape(ort, info, out, &count, &type, err);
    ort->ReleaseTensorTypeAndShapeInfo(info);
    BYI_TRY(status);
    byi_ep_put_string(out, 8, name);
    if (type == BYOC_STRING)
        return put_strings(ort, value, count, out, err);
    BYI_ORT(ort, GetTensorSizeInBytes(value, bytes));
    if (*bytes > 0)
        BYI_ORT(ort, GetTensorData(value, data));
    return BYOC_OK;
}

/* --- attributes ----------------------------------------------------------- */

/* Read the value of an attribute as bytes, in `arena`. */
static enum byoc_status read_attribute(const OrtApi *ort, const OrtOpAttr *attr,
                                       OrtOpAttrType type,
                                       struct byi_arena *arena, char **data,
                                       size_t *n, struct byoc_error *err)
{
    size_t size = 0;
    OrtStatus *status = ort->ReadOpAttr(attr, type, NULL, 0, &size);
    if (status) /* the buffer is too small; `size` is the required size */
        ort->ReleaseStatus(status);
    *data = byi_arena_calloc(arena, size + 1, 1);
    if (size > 0)
        BYI_ORT(ort, ReadOpAttr(attr, type, *data, size, &size));
    *n = size;
    return BYOC_OK;
}

static void put_ints(struct byi_ep_bytes *out, unsigned field, const char *data,
                     size_t n)
{
    for (size_t i = 0; i + sizeof(int64_t) <= n; i += sizeof(int64_t)) {
        int64_t value;
        memcpy(&value, data + i, sizeof value);
        byi_ep_put_int(out, field, (uint64_t)value);
    }
}

static void put_floats(struct byi_ep_bytes *out, unsigned field,
                       const char *data, size_t n)
{
    for (size_t i = 0; i + sizeof(float) <= n; i += sizeof(float)) {
        float value;
        memcpy(&value, data + i, sizeof value);
        put_float(out, field, value);
    }
}

/* Append a field for each string in `data`, in which each string ends in a NUL.
 */
static void put_texts(struct byi_ep_bytes *out, unsigned field,
                      const char *data, size_t n)
{
    for (size_t i = 0, length; i < n; i += length + 1) {
        length = strnlen(data + i, n - i);
        byi_ep_put_bytes(out, field, data + i, length);
    }
}

static void put_text(struct byi_ep_bytes *out, unsigned field, const char *data,
                     size_t n)
{
    byi_ep_put_bytes(out, field, data, n);
}

/* For each OrtOpAttrType: the AttributeProto's type, its field, and the
 * function that writes the value. */
static const struct byi_ep_attribute {
    unsigned type, field;
    void (*put)(struct byi_ep_bytes *out, unsigned field, const char *data,
                size_t n);
} attributes[] = {
    [ORT_OP_ATTR_INT] = {2, ATTRIBUTE_I, put_ints},
    [ORT_OP_ATTR_INTS] = {7, ATTRIBUTE_INTS, put_ints},
    [ORT_OP_ATTR_FLOAT] = {1, ATTRIBUTE_F, put_floats},
    [ORT_OP_ATTR_FLOATS] = {6, ATTRIBUTE_FLOATS, put_floats},
    [ORT_OP_ATTR_STRING] = {3, ATTRIBUTE_S, put_text},
    [ORT_OP_ATTR_STRINGS] = {8, ATTRIBUTE_STRINGS, put_texts},
};

static enum byoc_status put_tensor(const OrtApi *ort, const OrtOpAttr *attr,
                                   struct byi_ep_bytes *out,
                                   struct byoc_error *err)
{
    OrtValue *value = NULL;
    struct byi_ep_bytes tensor = {.arena = out->arena};
    const void *data;
    size_t bytes;
    BYI_ORT(ort, OpAttr_GetTensorAttributeAsOrtValue(attr, &value));
    const enum byoc_status status =
        byi_ep_put_tensor(ort, value, "", &tensor, &data, &bytes, err);
    if (status == BYOC_OK && data)
        byi_ep_put_bytes(&tensor, RAW_DATA, data, bytes);
    ort->ReleaseValue(value);
    BYI_TRY(status);
    byi_ep_put_int(out, ATTRIBUTE_TYPE, 4);
    put_message(out, ATTRIBUTE_T, &tensor);
    return BYOC_OK;
}

static enum byoc_status put_attribute(const OrtApi *ort, const OrtOpAttr *attr,
                                      struct byi_ep_bytes *out,
                                      const char **refusal,
                                      struct byoc_error *err)
{
    struct byi_ep_bytes message = {.arena = out->arena};
    OrtOpAttrType type;
    const char *name;
    char *data;
    size_t n;
    BYI_ORT(ort, OpAttr_GetType(attr, &type));
    BYI_ORT(ort, OpAttr_GetName(attr, &name));
    if (type == ORT_OP_ATTR_GRAPH)
        return BYOC_OK;
    byi_ep_put_string(&message, ATTRIBUTE_NAME, name);
    if (type == ORT_OP_ATTR_TENSOR) {
        BYI_TRY(put_tensor(ort, attr, &message, err));
    } else if ((size_t)type < BYI_COUNT(attributes) && attributes[type].put) {
        BYI_TRY(read_attribute(ort, attr, type, out->arena, &data, &n, err));
        byi_ep_put_int(&message, ATTRIBUTE_TYPE, attributes[type].type);
        attributes[type].put(&message, attributes[type].field, data, n);
    } else {
        *refusal = "it has an attribute of a type that a provider cannot "
                   "read through ONNX Runtime's ABI";
    }
    put_message(out, NODE_ATTRIBUTE, &message);
    return BYOC_OK;
}

enum byoc_status byi_ep_put_attributes(const OrtApi *ort, const OrtNode *node,
                                       struct byi_ep_bytes *out,
                                       const char **refusal,
                                       struct byoc_error *err)
{
    size_t n;
    BYI_ORT(ort, Node_GetNumAttributes(node, &n));
    const OrtOpAttr **attrs =
        byi_arena_calloc(out->arena, n + 1, sizeof *attrs);
    BYI_ORT(ort, Node_GetAttributes(node, attrs, n));
    for (size_t i = 0; i < n; i++)
        BYI_TRY(put_attribute(ort, attrs[i], out, refusal, err));
    return BYOC_OK;
}
