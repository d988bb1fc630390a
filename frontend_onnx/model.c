/* model.c: from a file to an unpacked model.
 *
 * protobuf-c copies every byte string, which would hold a large model twice.
 * So the wire format is walked first: it is checked (lengths, nesting), and
 * the raw data of large initialisers is cut out, noting where in the mapping
 * it stays. What is left, a small message, goes to protobuf-c.
 * Wire format: https://protobuf.dev/programming-guides/encoding
 */
#include "frontend_onnx/import.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_NESTING = 48,      /* of messages; deep subgraphs use about 4 a level */
    RAW_LIMIT = 16384,     /* bytes of raw data that are worth leaving out    */
    FIELD_GRAPH = 7,       /* ModelProto.graph                                */
    FIELD_INITIALIZER = 5, /* GraphProto.initializer                        */
    FIELD_RAW_DATA = 9     /* TensorProto.raw_data                            */
};

/* protobuf-c may need this much memory for a message of n bytes: a two-byte
 * empty node becomes a struct, so without a bound 1 MB could ask for 100. */
#define UNPACK_BASE ((size_t)64 << 20)
#define UNPACK_FACTOR 32

/* --- the wire format ------------------------------------------------------ */

struct wire {
    const uint8_t *at, *end;
};

struct field {
    const uint8_t *start; /* of its tag */
    uint64_t number;
    unsigned kind; /* 0 varint, 1 64 bits, 2 bytes, 5 32 bits */
    const uint8_t *data;
    size_t n;
};

static bool read_varint(struct wire *w, uint64_t *value)
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

static bool read_field(struct wire *w, struct field *f)
{
    uint64_t tag, n;

    f->start = w->at;
    if (!read_varint(w, &tag))
        return false;
    f->number = tag >> 3;
    f->kind = (unsigned)(tag & 7);
    f->data = w->at;
    switch (f->kind) {
    case 0:
        if (!read_varint(w, &n))
            return false;
        f->n = (size_t)(w->at - f->data);
        return true;
    case 1:
        n = 8;
        break;
    case 2:
        if (!read_varint(w, &n))
            return false;
        f->data = w->at;
        break;
    case 5:
        n = 4;
        break;
    default: /* groups were dropped from the format before ONNX existed */
        return false;
    }
    if (f->number == 0 || n > (uint64_t)(w->end - w->at))
        return false;
    w->at += n;
    f->n = (size_t)n;
    return true;
}

/* Check lengths and nesting of a whole message, without recursion: what
 * passes is safe to give to protobuf-c, which recurses. */
static enum byoc_status check_wire(const uint8_t *data, size_t n,
                                   const ProtobufCMessageDescriptor *type,
                                   const char *path, struct byoc_error *err)
{
    struct {
        const uint8_t *end;
        const ProtobufCMessageDescriptor *type;
    } stack[MAX_NESTING];
    uint32_t depth = 0;
    struct wire w = {data, data + n};

    stack[depth].end = w.end;
    stack[depth++].type = type;
    while (depth) {
        if (w.at == stack[depth - 1].end) {
            depth--;
            continue;
        }
        struct field f;
        w.end = stack[depth - 1].end;
        const size_t offset = (size_t)(w.at - data);
        if (!read_field(&w, &f))
            return byi_fail(err, BYOC_EPARSE,
                            "%s: not a complete %s: byte %zu of %zu starts no "
                            "valid field; if the file was truncated, copy or "
                            "export it again",
                            path, type->short_name, offset, n);
        const ProtobufCFieldDescriptor *known = NULL;
        if (f.kind == 2 && f.number <= UINT_MAX)
            known = protobuf_c_message_descriptor_get_field(
                stack[depth - 1].type, (unsigned)f.number);
        if (!known || known->type != PROTOBUF_C_TYPE_MESSAGE)
            continue;
        if (depth == MAX_NESTING)
            return byi_fail(err, BYOC_ELIMIT,
                            "%s: messages are nested deeper than %d (at byte "
                            "%zu)",
                            path, MAX_NESTING, offset);
        w.at = f.data;
        stack[depth].end = f.data + f.n;
        stack[depth++].type = known->descriptor;
    }
    return BYOC_OK;
}

/* --- leaving large weights out --------------------------------------------
 */

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

static void add_message(struct byi_text *out, unsigned number,
                        const struct byi_text *message)
{
    add_varint(out, (uint64_t)number << 3 | 2);
    add_varint(out, message->n);
    if (message->n)
        byi_text_add(out, message->at, message->n);
}

static void add_field(struct byi_text *out, const struct field *f)
{
    const size_t n = (size_t)(f->data + f->n - f->start);

    byi_text_add(out, (const char *)f->start, n);
}

/* A TensorProto without its raw data, if that is large. */
static void cut_tensor(struct wire w, struct byi_text *out,
                       struct byi_range *raw)
{
    struct field f;

    while (w.at < w.end && read_field(&w, &f)) {
        const bool is_raw = f.number == FIELD_RAW_DATA && f.kind == 2;
        if (is_raw && f.n >= RAW_LIMIT) {
            *raw = (struct byi_range){f.data, f.n};
            continue;
        }
        if (is_raw) /* of several, the last one counts */
            *raw = (struct byi_range){0};
        add_field(out, &f);
    }
}

static void cut_graph(struct wire w, struct byi_text *out,
                      struct byi_onnx_file *file)
{
    struct byi_text tensor = {0};
    struct field f;

    while (w.at < w.end && read_field(&w, &f)) {
        if (f.number != FIELD_INITIALIZER || f.kind != 2) {
            add_field(out, &f);
            continue;
        }
        struct byi_range raw = {0};
        tensor.n = 0;
        cut_tensor((struct wire){f.data, f.data + f.n}, &tensor, &raw);
        add_message(out, FIELD_INITIALIZER, &tensor);
        BYI_PUSH(&file->raw, raw);
    }
    byi_text_free(&tensor);
}

static void cut_model(const uint8_t *data, size_t n, struct byi_text *out,
                      struct byi_onnx_file *file)
{
    struct byi_text graph = {0};
    struct wire w = {data, data + n};
    struct field f;

    while (w.at < w.end && read_field(&w, &f)) {
        if (f.number != FIELD_GRAPH || f.kind != 2) {
            add_field(out, &f);
            continue;
        }
        /* a second graph field would be merged with the first: the order of
         * initialisers, and so file->raw, stays right */
        graph.n = 0;
        cut_graph((struct wire){f.data, f.data + f.n}, &graph, file);
        add_message(out, FIELD_GRAPH, &graph);
    }
    byi_text_free(&graph);
}

/* --- unpacking ------------------------------------------------------------ */

/* Counts down: protobuf-c frees everything and gives NULL at exhaustion. */
static void *budget_alloc(void *budget, size_t n)
{
    size_t *left = budget;

    if (n > *left)
        return NULL;
    *left -= n;
    return malloc(n ? n : 1);
}

static void budget_free(void *budget, void *memory)
{
    (void)budget;
    free(memory);
}

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *type,
                                const void *data, size_t n)
{
    size_t budget = UNPACK_BASE;
    ProtobufCAllocator allocator = {
        .alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};

    if (n > (SIZE_MAX - UNPACK_BASE) / UNPACK_FACTOR)
        return NULL;
    budget += n * UNPACK_FACTOR;
    return protobuf_c_message_unpack(type, &allocator, n, data);
}

static void free_message(ProtobufCMessage *message)
{
    size_t budget = 0;
    ProtobufCAllocator allocator = {
        .alloc = budget_alloc, .free = budget_free, .allocator_data = &budget};

    if (message)
        protobuf_c_message_free_unpacked(message, &allocator);
}

/* --- files ---------------------------------------------------------------- */

struct mapping {
    const void *at;
    size_t n;
};

static void unmap(void *arg)
{
    const struct mapping *mapping = arg;

    byi_unmap(mapping->at, mapping->n);
}

enum byoc_status byi_onnx_map(const char *path, struct byi_arena *arena,
                              const uint8_t **data, size_t *n,
                              struct byoc_error *err)
{
    const void *at = NULL;

    BYI_TRY(byi_map_file(path, &at, n, err));
    struct mapping *mapping = byi_arena_alloc(arena, sizeof *mapping);
    *mapping = (struct mapping){at, *n};
    byi_arena_defer(arena, unmap, mapping);
    *data = at;
    return BYOC_OK;
}

/* The resolved folder of `path`, in the arena; NULL when there is none. */
static const char *folder_of(const char *path, struct byi_arena *arena)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        !slash ? "." : byi_arena_strn(arena, path, (size_t)(slash - path) + 1);
    char *resolved = realpath(folder, NULL);
    const char *kept = resolved ? byi_arena_str(arena, resolved) : NULL;

    free(resolved);
    return kept;
}

enum byoc_status byi_onnx_open(const char *path, struct byi_arena *arena,
                               struct byi_onnx_file *file,
                               struct byoc_error *err)
{
    const uint8_t *data = NULL;
    size_t n = 0;
    struct byi_text small = {0};

    *file = (struct byi_onnx_file){.arena = arena};
    BYI_TRY(byi_onnx_map(path, arena, &data, &n, err));
    if (!n)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found an empty file, expected an ONNX model",
                        path);
    BYI_TRY(check_wire(data, n, &onnx__model_proto__descriptor, path, err));
    file->folder = folder_of(path, arena);
    cut_model(data, n, &small, file);
    file->model = (Onnx__ModelProto *)unpack(&onnx__model_proto__descriptor,
                                             small.at, small.n);
    byi_text_free(&small);
    if (!file->model)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: not an ONNX model: a field has the wrong type, "
                        "or far more entries than its size suggests",
                        path);
    if (!file->model->graph || !file->model->has_ir_version)
        return byi_fail(err, BYOC_EPARSE, "%s: not an ONNX model: it has no %s",
                        path, file->model->graph ? "ir_version" : "graph");
    assert(file->model->graph->n_initializer == file->raw.n);
    return BYOC_OK;
}

void byi_onnx_close(struct byi_onnx_file *file)
{
    free_message((ProtobufCMessage *)file->model);
    byi_vec_free(file->raw.at);
    byi_vec_free(file->external.at);
    file->model = NULL;
    file->raw.at = NULL;
    file->external.at = NULL;
}

enum byoc_status byi_onnx_tensor(const char *path, struct byi_arena *arena,
                                 struct byi_tensor *tensor, const char **name,
                                 struct byoc_error *err)
{
    struct byi_onnx_file file = {.arena = arena,
                                 .folder = folder_of(path, arena)};
    const uint8_t *data = NULL;
    size_t n = 0;

    BYI_TRY(byi_onnx_map(path, arena, &data, &n, err));
    BYI_TRY(check_wire(data, n, &onnx__tensor_proto__descriptor, path, err));
    Onnx__TensorProto *proto =
        (Onnx__TensorProto *)unpack(&onnx__tensor_proto__descriptor, data, n);
    if (!proto)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: not a TensorProto: a field has the wrong type",
                        path);
    enum byoc_status status = byi_onnx_decode(&file, proto, NULL, tensor, err);
    if (status == BYOC_OK && name)
        *name = byi_arena_str(arena, proto->name ? proto->name : "");
    else if (status != BYOC_OK)
        byi_prefix(err, "%s", path);
    free_message((ProtobufCMessage *)proto);
    byi_vec_free(file.external.at);
    return status;
}
