/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/wire.h: reads and writes protobuf's wire format without
 * unpacking. Large weights stay in the mapping. An edited message keeps the
 * fields that its descriptor does not have.
 */
#ifndef BYI_WIRE_H
#define BYI_WIRE_H

#include "core/base/base.h"

#include "onnx.pb-c.h"

/* Field numbers of onnx.proto. NodeProto.metadata_props exists only since ONNX
 * 1.16. */
enum {
    BYI_FIELD_GRAPH = 7,           /* ModelProto.graph             */
    BYI_FIELD_MODEL_METADATA = 14, /* ModelProto.metadata_props    */
    BYI_FIELD_FUNCTION = 25,       /* ModelProto.functions         */
    BYI_FIELD_NODE = 1,            /* GraphProto.node              */
    BYI_FIELD_INITIALIZER = 5,     /* GraphProto.initializer       */
    BYI_FIELD_OP_TYPE = 4,         /* NodeProto.op_type            */
    BYI_FIELD_ATTRIBUTE = 5,       /* NodeProto.attribute          */
    BYI_FIELD_ATTRIBUTE_GRAPH = 6, /* AttributeProto.g           */
    BYI_FIELD_NODE_METADATA = 9,   /* NodeProto.metadata_props     */
    BYI_FIELD_RAW_DATA = 9,        /* TensorProto.raw_data         */
    BYI_FIELD_DATA_LOCATION = 14,  /* TensorProto.data_location   */
    BYI_FIELD_KEY = 1,             /* StringStringEntryProto.key   */
    BYI_FIELD_VALUE = 2            /* StringStringEntryProto.value */
};

/* The bytes that are still to be read: from `at` to before `end`. */
struct byi_wire_reader {
    const uint8_t *at, *end;
};

/* The types of values in protobuf's wire format. BYTES are strings, messages
 * and packed lists; groups, 3 and 4, are not in ONNX. */
enum byi_wire_type {
    BYI_WIRE_VARINT = 0,
    BYI_WIRE_64_BITS = 1,
    BYI_WIRE_BYTES = 2,
    BYI_WIRE_32_BITS = 5
};

/* A field of a message, in place. */
struct byi_field {
    const uint8_t *start; /* of its tag */
    uint64_t number;
    unsigned wire_type;  /* enum byi_wire_type, or another number below 8 */
    const uint8_t *data; /* the value, n bytes without a length */
    size_t n;
};

/* Skip a varint. Returns false if it is malformed or cut off. */
bool byi_wire_skip_varint(struct byi_wire_reader *w);
/* Read the next field. Returns false at the end, or if the field is malformed.
 */
bool byi_wire_read(struct byi_wire_reader *w, struct byi_field *f);

/* Check lengths and nesting of a whole message, without recursion: protobuf-c,
 * which recurses, can then unpack it safely. Errors, which name `path`:
 * BYOC_EPARSE, BYOC_ELIMIT. */
enum byoc_status byi_wire_check(const uint8_t *data, size_t n,
                                const ProtobufCMessageDescriptor *type,
                                const char *path, struct byoc_error *err);
/* Like byi_wire_check; also call `visit`, unless it is NULL, for each field of
 * the message and of its nested messages. `in` is the type of the message that
 * contains f. */
enum byoc_status byi_wire_walk(
    const uint8_t *data, size_t n, const ProtobufCMessageDescriptor *type,
    const char *path,
    void (*visit)(void *ctx, const ProtobufCMessageDescriptor *in,
                  const struct byi_field *f),
    void *ctx, struct byoc_error *err);

/* annotate.c: check the message of the model at `from`, and that a copy of it
 * may be written to `to`. This must be another file, in the same folder if
 * weights are external. Errors: BYOC_EPARSE, BYOC_ELIMIT, BYOC_EINVAL. */
enum byoc_status byi_onnx_check_copy(const char *from, const char *to,
                                     const uint8_t *data, size_t n,
                                     struct byoc_error *err);

/* Append the tag and length of field `number`, whose n bytes the caller
 * appends. */
void byi_wire_head(struct byi_text *out, unsigned number, size_t n);
/* Append a field with the bytes of `message`. */
void byi_wire_add(struct byi_text *out, unsigned number,
                  const struct byi_text *message);
/* Append a copy of the field. */
void byi_wire_copy(struct byi_text *out, const struct byi_field *f);

#endif
