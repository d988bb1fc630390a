/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c: reads, checks and writes protobuf's wire format.
 * See https://protobuf.dev/programming-guides/encoding
 */
#include "frontend_onnx/wire.h"

#include <limits.h>

enum {
    /* of messages; a level of subgraphs takes three: node, attribute, graph */
    MAX_NESTING = 48
};

/* Returns false if the varint is cut off or longer than 10 bytes. */
static bool read_varint(struct byi_wire_reader *w, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        const uint8_t byte = *w->at++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

bool byi_wire_skip_varint(struct byi_wire_reader *w)
{
    uint64_t value;

    return read_varint(w, &value);
}

bool byi_wire_read(struct byi_wire_reader *w, struct byi_field *f)
{
    uint64_t tag, n;

    f->start = w->at;
    if (!read_varint(w, &tag))
        return false;
    f->number = tag >> 3;
    f->wire_type = (unsigned)(tag & 7);
    f->data = w->at;
    if (f->number == 0)
        return false;
    switch (f->wire_type) {
    case BYI_WIRE_VARINT:
        if (!read_varint(w, &n))
            return false;
        f->n = (size_t)(w->at - f->data);
        return true;
    case BYI_WIRE_64_BITS:
        n = 8;
        break;
    case BYI_WIRE_BYTES:
        if (!read_varint(w, &n))
            return false;
        f->data = w->at;
        break;
    case BYI_WIRE_32_BITS:
        n = 4;
        break;
    default: /* groups (3, 4) are deprecated and onnx.proto has none; 6 and 7
              * are invalid */
        return false;
    }
    if (n > (uint64_t)(w->end - w->at))
        return false;
    w->at += n;
    f->n = (size_t)n;
    return true;
}

enum byoc_status byi_wire_walk(
    const uint8_t *data, size_t n, const ProtobufCMessageDescriptor *type,
    const char *path,
    void (*visit)(void *ctx, const ProtobufCMessageDescriptor *in,
                  const struct byi_field *f),
    void *ctx, struct byoc_error *err)
{
    struct {
        const uint8_t *end;
        const ProtobufCMessageDescriptor *type;
    } stack[MAX_NESTING];
    uint32_t depth = 0;
    struct byi_wire_reader w = {data, data + n};

    stack[depth].end = w.end;
    stack[depth++].type = type;
    while (depth) {
        if (w.at == stack[depth - 1].end) {
            depth--;
            continue;
        }
        struct byi_field f;
        w.end = stack[depth - 1].end;
        const size_t offset = (size_t)(w.at - data);
        if (!byi_wire_read(&w, &f))
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found an invalid field at byte %zu of %zu, "
                            "expected a complete %s; if the file was "
                            "truncated, copy or export it again",
                            path, offset, n, type->short_name);
        if (visit)
            visit(ctx, stack[depth - 1].type, &f);
        const ProtobufCFieldDescriptor *field = NULL;
        if (f.wire_type == BYI_WIRE_BYTES && f.number <= UINT_MAX)
            field = protobuf_c_message_descriptor_get_field(
                stack[depth - 1].type, (unsigned)f.number);
        if (!field || field->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (depth == MAX_NESTING)
            return byi_fail(err, BYOC_ELIMIT,
                            "%s: found too deeply nested messages at byte %zu "
                            "of %zu, expected at most %d levels; simplify the "
                            "graph's subgraphs",
                            path, offset, n, MAX_NESTING);
        w.at = f.data;
        stack[depth].end = f.data + f.n;
        stack[depth++].type = field->descriptor;
    }
    return BYOC_OK;
}

enum byoc_status byi_wire_check(const uint8_t *data, size_t n,
                                const ProtobufCMessageDescriptor *type,
                                const char *path, struct byoc_error *err)
{
    return byi_wire_walk(data, n, type, path, NULL, NULL, err);
}

/* --- writing -------------------------------------------------------------- */

static void add_varint(struct byi_text *out, uint64_t value)
{
    uint8_t bytes[10];
    size_t n = 0;

    do {
        bytes[n] = (uint8_t)(value & 0x7f);
        value >>= 7;
        if (value)
            bytes[n] |= 0x80;
        n++;
    } while (value);
    byi_text_add(out, (const char *)bytes, n);
}

void byi_wire_head(struct byi_text *out, unsigned number, size_t n)
{
    add_varint(out, (uint64_t)number << 3 | BYI_WIRE_BYTES);
    add_varint(out, n);
}

void byi_wire_add(struct byi_text *out, unsigned number,
                  const struct byi_text *message)
{
    byi_wire_head(out, number, message->n);
    if (message->n)
        byi_text_add(out, message->at, message->n);
}

void byi_wire_copy(struct byi_text *out, const struct byi_field *f)
{
    const size_t n = (size_t)(f->data + f->n - f->start);

    byi_text_add(out, (const char *)f->start, n);
}
