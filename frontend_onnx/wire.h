/* SPDX-License-Identifier: Apache-2.0 */
/* frontend_onnx/wire.h: protobuf messages as bytes, for what is better done
 * without unpacking them: leaving large weights where they are, changing a
 * message without losing what its description does not name.
 */
#ifndef BYI_WIRE_H
#define BYI_WIRE_H

#include "core/base/base.h"

#include "onnx.pb-c.h"

/* Fields that are looked for, by their numbers in onnx.proto. Descriptions
 * before ONNX 1.16 lack the metadata of nodes. */
enum {
    BYI_FIELD_GRAPH = 7,           /* ModelProto.graph             */
    BYI_FIELD_MODEL_NOTE = 14,     /* ModelProto.metadata_props    */
    BYI_FIELD_FUNCTION = 25,       /* ModelProto.functions         */
    BYI_FIELD_NODE = 1,            /* GraphProto.node              */
    BYI_FIELD_INITIALIZER = 5,     /* GraphProto.initializer       */
    BYI_FIELD_OP_TYPE = 4,         /* NodeProto.op_type            */
    BYI_FIELD_ATTRIBUTE = 5,       /* NodeProto.attribute          */
    BYI_FIELD_ATTRIBUTE_GRAPH = 6, /* AttributeProto.g           */
    BYI_FIELD_NODE_NOTE = 9,       /* NodeProto.metadata_props     */
    BYI_FIELD_RAW_DATA = 9,        /* TensorProto.raw_data         */
    BYI_FIELD_DATA_LOCATION = 14,  /* TensorProto.data_location   */
    BYI_FIELD_KEY = 1,             /* StringStringEntryProto.key   */
    BYI_FIELD_VALUE = 2            /* StringStringEntryProto.value */
};

/* What is left to read. */
struct byi_wire {
    const uint8_t *at, *end;
};

struct byi_field {
    const uint8_t *start; /* of its tag */
    uint64_t number;
    unsigned kind; /* 0 varint, 1 64 bits, 2 bytes, 5 32 bits */
    const uint8_t *data;
    size_t n;
};

/* Skip a number; false where there is none. */
bool byi_wire_skip_varint(struct byi_wire *w);
/* The next field; false where none starts. */
bool byi_wire_read(struct byi_wire *w, struct byi_field *f);

/* Check lengths and nesting of a whole message, without recursion: what
 * passes is safe to give to protobuf-c, which recurses. */
enum byoc_status byi_wire_check(const uint8_t *data, size_t n,
                                const ProtobufCMessageDescriptor *type,
                                const char *path, struct byoc_error *err);
/* The same, and each field of the message and of those in it goes to `see`. */
enum byoc_status byi_wire_walk(const uint8_t *data, size_t n,
                               const ProtobufCMessageDescriptor *type,
                               const char *path,
                               void (*see)(void *ctx,
                                           const ProtobufCMessageDescriptor *in,
                                           const struct byi_field *f),
                               void *ctx, struct byoc_error *err);

/* Add the tag and length of a field that holds n bytes; such a field and its
 * bytes; a field as it was read. */
void byi_wire_head(struct byi_text *out, unsigned number, size_t n);
void byi_wire_add(struct byi_text *out, unsigned number,
                  const struct byi_text *message);
void byi_wire_copy(struct byi_text *out, const struct byi_field *f);

#endif
