/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: maps, checks and unpacks a model file.
 *
 * protobuf-c copies every byte string, which would hold a large model in memory
 * twice. The importer therefore first walks the wire format (wire.c) and checks
 * it. It cuts out the raw data of large initializers, whose ranges in the
 * mapping it records. protobuf-c unpacks the small message that remains.
 */
#include "frontend_onnx/import.h"
#include "core/base/guard.h"
#include "frontend_onnx/wire.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum {
    RAW_LIMIT = 16384 /* raw data of at least this many bytes is cut out */
};

/* Limits protobuf-c's memory for a message of n bytes to UNPACK_BASE +
 * UNPACK_FACTOR n. Without a limit a 1 MB message could take 100 MB, since an
 * empty node of two bytes becomes a struct. */
#define UNPACK_BASE ((size_t)64 << 20)
#define UNPACK_FACTOR 32

/* --- cutting out large weights -------------------------------------------- */

/* Copy a TensorProto without its raw data, if that is large. */
static void cut_tensor(struct byi_wire_reader w, struct byi_text *out,
                       struct byi_range *raw)
{
    struct byi_field f;

    while (w.at < w.end && byi_wire_read(&w, &f)) {
        const bool is_raw =
            f.number == BYI_FIELD_RAW_DATA && f.wire_type == BYI_WIRE_BYTES;
        if (is_raw && f.n >= RAW_LIMIT) {
            *raw = (struct byi_range){f.data, f.n};
            continue;
        }
        if (is_raw) /* the field occurs again: the last occurrence counts */
            *raw = (struct byi_range){0};
        byi_wire_copy(out, &f);
    }
}

static void cut_graph(struct byi_wire_reader w, struct byi_text *out,
                      struct byi_onnx_file *file)
{
    struct byi_text tensor = {0};
    struct byi_field f;

    while (w.at < w.end && byi_wire_read(&w, &f)) {
        if (f.number != BYI_FIELD_INITIALIZER ||
            f.wire_type != BYI_WIRE_BYTES) {
            byi_wire_copy(out, &f);
            continue;
        }
        struct byi_range raw = {0};
        tensor.n = 0;
        cut_tensor((struct byi_wire_reader){f.data, f.data + f.n}, &tensor,
                   &raw);
        byi_wire_add(out, BYI_FIELD_INITIALIZER, &tensor);
        BYI_PUSH(&file->raw, raw);
    }
    byi_text_free(&tensor);
}

static void cut_model(const uint8_t *data, size_t n, struct byi_text *out,
                      struct byi_onnx_file *file)
{
    struct byi_text graph = {0};
    struct byi_wire_reader w = {data, data + n};
    struct byi_field f;

    while (w.at < w.end && byi_wire_read(&w, &f)) {
        if (f.number != BYI_FIELD_GRAPH || f.wire_type != BYI_WIRE_BYTES) {
            byi_wire_copy(out, &f);
            continue;
        }
        /* protobuf-c merges a second graph field with the first, and appends
         * its initializers, as file->raw does */
        graph.n = 0;
        cut_graph((struct byi_wire_reader){f.data, f.data + f.n}, &graph, file);
        byi_wire_add(out, BYI_FIELD_GRAPH, &graph);
    }
    byi_text_free(&graph);
}

/* --- unpacking ------------------------------------------------------------ */

/* The memory that unpacking a message may still allocate, in bytes. */
struct unpack_budget {
    size_t remaining;
    bool exceeded;      /* an allocation was larger than `remaining` */
    bool out_of_memory; /* malloc failed within the budget */
};

/* Allocate from the budget. On NULL protobuf-c frees everything and fails. The
 * guard owns the allocations until free_message. */
static void *budget_alloc(void *arg, size_t n)
{
    struct unpack_budget *unpack_budget = arg;
    void *memory = NULL;

    if (n > unpack_budget->remaining) {
        unpack_budget->exceeded = true;
        return NULL;
    }
    unpack_budget->remaining -= n;
    memory = byi_own_try(n ? n : 1, 1, NULL);
    unpack_budget->out_of_memory = unpack_budget->out_of_memory || !memory;
    return memory;
}

static void budget_free(void *unpack_budget, void *memory)
{
    (void)unpack_budget;
    byi_vec_free(memory);
}

/* Unpack a message, which the caller frees with free_message. Returns NULL and
 * an error, which begins with `path`, if it is malformed or needs more than the
 * budget. */
static ProtobufCMessage *unpack_message(const ProtobufCMessageDescriptor *type,
                                        const void *data, size_t n,
                                        const char *path,
                                        struct byoc_error *err)
{
    struct unpack_budget unpack_budget = {.remaining = UNPACK_BASE};
    ProtobufCAllocator allocator = {.alloc = budget_alloc,
                                    .free = budget_free,
                                    .allocator_data = &unpack_budget};
    ProtobufCMessage *message = NULL;

    unpack_budget.exceeded = n > (SIZE_MAX - UNPACK_BASE) / UNPACK_FACTOR;
    if (!unpack_budget.exceeded) {
        unpack_budget.remaining += n * UNPACK_FACTOR;
        message = protobuf_c_message_unpack(type, &allocator, n, data);
    }
    if (!message && unpack_budget.out_of_memory)
        byi_oom(n);
    if (!message && unpack_budget.exceeded)
        byi_fail(err, BYOC_EPARSE,
                 "%s: found far more entries than %zu bytes of a %s usually "
                 "have, expected fewer",
                 path, n, type->short_name);
    else if (!message)
        byi_fail(err, BYOC_EPARSE,
                 "%s: found a field of another type, expected a valid %s", path,
                 type->short_name);
    return message;
}

static void free_message(ProtobufCMessage *message)
{
    struct unpack_budget unpack_budget = {0};
    ProtobufCAllocator allocator = {.alloc = budget_alloc,
                                    .free = budget_free,
                                    .allocator_data = &unpack_budget};

    if (message)
        protobuf_c_message_free_unpacked(message, &allocator);
}

/* --- files ---------------------------------------------------------------- */

/* Returns the resolved folder of `path`, in the arena; NULL if it does not
 * exist. */
static const char *folder_of(const char *path, struct byi_arena *arena)
{
    const char *slash = strrchr(path, '/');
    const char *folder =
        !slash ? "." : byi_arena_strn(arena, path, (size_t)(slash - path) + 1);
    char resolved[PATH_MAX];

    return realpath(folder, resolved) ? byi_arena_str(arena, resolved) : NULL;
}

/* Unpack n bytes that live as long as file->arena. */
static enum byoc_status open_bytes(const char *path, const uint8_t *data,
                                   size_t n, struct byi_onnx_file *file,
                                   struct byoc_error *err)
{
    struct byi_text without_weights = {0};

    if (!n)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found an empty file, expected an ONNX model",
                        path);
    if (n >= 4 && memcmp(data, "\177ELF", 4) == 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found a shared library, expected an ONNX model; "
                        "to run an artifact, use byoc_model_load() or "
                        "`byoc run`",
                        path);
    BYI_TRY(byi_wire_check(data, n, &onnx__model_proto__descriptor, path, err));
    file->folder = folder_of(path, file->arena);
    cut_model(data, n, &without_weights, file);
    file->model = (Onnx__ModelProto *)unpack_message(
        &onnx__model_proto__descriptor, without_weights.at, without_weights.n,
        path, err);
    byi_text_free(&without_weights);
    if (!file->model)
        return BYOC_EPARSE;
    if (!file->model->graph || !file->model->has_ir_version)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: not an ONNX model: found no %s, expected one",
                        path, file->model->graph ? "ir_version" : "graph");
    assert(file->model->graph->n_initializer == file->raw.n);
    return BYOC_OK;
}

enum byoc_status byi_onnx_open(const char *path, struct byi_arena *arena,
                               struct byi_onnx_file *file,
                               struct byoc_error *err)
{
    const uint8_t *data = NULL;
    size_t n = 0;

    *file = (struct byi_onnx_file){.arena = arena};
    BYI_TRY(byi_onnx_map(path, arena, &data, &n, err));
    return open_bytes(path, data, n, file, err);
}

enum byoc_status byi_onnx_open_memory(const void *data, uint64_t bytes,
                                      const char *path, struct byi_arena *arena,
                                      struct byi_onnx_file *file,
                                      struct byoc_error *err)
{
    void *copy = byi_acquire(bytes);

    *file = (struct byi_onnx_file){.arena = arena};
    if (!copy)
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory for %llu bytes",
                        path, (unsigned long long)bytes);
    byi_arena_defer(arena, byi_release, copy);
    if (bytes)
        memcpy(copy, data, (size_t)bytes);
    BYI_TRY(open_bytes(path, copy, (size_t)bytes, file, err));
    /* a path without a folder is a label: external data must not be read from
     * the current folder */
    if (!strchr(path, '/'))
        file->folder = NULL;
    return BYOC_OK;
}

enum byoc_status byi_onnx_attribute(struct byi_onnx_file *file,
                                    const uint8_t *data, size_t n,
                                    Onnx__AttributeProto **attribute,
                                    struct byoc_error *err)
{
    static const char place[] = "an attribute of a function";
    struct byi_wire_reader w = {data, data + n};
    ProtobufCMessage *message = NULL;

    if (!byi_wire_skip_varint(&w)) /* the length, which n implies */
        return byi_fail(err, BYOC_EPARSE, "%s: found no length, expected one",
                        place);
    n = (size_t)(w.end - w.at);
    BYI_TRY(byi_wire_check(w.at, n, &onnx__attribute_proto__descriptor, place,
                           err));
    message =
        unpack_message(&onnx__attribute_proto__descriptor, w.at, n, place, err);
    if (!message)
        return BYOC_EPARSE;
    BYI_PUSH(&file->separate, message);
    *attribute = (Onnx__AttributeProto *)message;
    return BYOC_OK;
}

void byi_onnx_close(struct byi_onnx_file *file)
{
    free_message((ProtobufCMessage *)file->model);
    for (uint32_t i = 0; i < file->separate.n; i++)
        free_message(file->separate.at[i]);
    byi_vec_free(file->separate.at);
    file->separate.at = NULL;
    file->separate.n = 0;
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
    const uint8_t *data = NULL;
    size_t n = 0;

    BYI_TRY(byi_onnx_map(path, arena, &data, &n, err));
    return byi_onnx_tensor_bytes(data, n, path, arena, tensor, name, err);
}

enum byoc_status byi_onnx_tensor_bytes(
    const uint8_t *data, size_t n, const char *path, struct byi_arena *arena,
    struct byi_tensor *tensor, const char **name, struct byoc_error *err)
{
    struct byi_onnx_file file = {.arena = arena,
                                 .folder = folder_of(path, arena)};

    BYI_TRY(
        byi_wire_check(data, n, &onnx__tensor_proto__descriptor, path, err));
    Onnx__TensorProto *proto = (Onnx__TensorProto *)unpack_message(
        &onnx__tensor_proto__descriptor, data, n, path, err);
    if (!proto)
        return BYOC_EPARSE;
    enum byoc_status status = byi_onnx_decode(&file, proto, NULL, tensor, err);
    if (status == BYOC_OK && name)
        *name = byi_arena_str(arena, proto->name ? proto->name : "");
    else if (status != BYOC_OK)
        byi_prefix(err, "%s", path);
    free_message((ProtobufCMessage *)proto);
    byi_vec_free(file.external.at);
    return status;
}
