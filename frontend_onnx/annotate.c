/* SPDX-License-Identifier: Apache-2.0 */
/* annotate.c: copies a model and adds notes to the metadata of the model and of
 * its nodes.
 *
 * The file is copied as bytes, so that weights take no memory, and fields are
 * kept that this program's onnx.proto does not have. Only node messages are
 * rewritten, with their notes appended. NodeProto.metadata_props is new in ONNX
 * 1.16; older readers skip the unknown field.
 */
#include "frontend_onnx/import.h"
#include "frontend_onnx/wire.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

#define KEY_PREFIX "byoc."

/* A part of the output: n bytes of the old file, or n new bytes. */
struct output_chunk {
    const uint8_t *old; /* NULL: the bytes are new */
    size_t at, n; /* at: the offset of new bytes in annotation.new_bytes */
};

/* The state of byi_onnx_annotate. */
struct annotation {
    const char *from, *to; /* paths of the model and of the copy */
    const struct byi_onnx_notes *nodes, *model;
    uint32_t n_nodes, next;              /* the next node's number */
    bool functions;                      /* the model has functions */
    struct byi_text new_bytes;           /* all new bytes */
    BYI_VEC(struct output_chunk) chunks; /* the output, in order */
};

/* --- chunks --------------------------------------------------------------- */

static void add_field(struct annotation *a, const struct byi_field *f)
{
    const uint8_t *at = f->start;
    const size_t n = (size_t)(f->data + f->n - at);
    struct output_chunk *last =
        a->chunks.n ? &a->chunks.at[a->chunks.n - 1] : NULL;
    const struct output_chunk chunk = {.old = at, .n = n};

    if (last && last->old && last->old + last->n == at)
        last->n += n;
    else
        BYI_PUSH(&a->chunks, chunk);
}

/* Output the bytes added to a->new_bytes since `before`. */
static void add_new_chunk(struct annotation *a, size_t before)
{
    const struct output_chunk chunk = {.at = before,
                                       .n = a->new_bytes.n - before};
    BYI_PUSH(&a->chunks, chunk);
}

/* Returns the bytes of the chunks from index `from` on. */
static size_t chunk_bytes(const struct annotation *a, uint32_t from)
{
    size_t n = 0;

    for (uint32_t i = from; i < a->chunks.n; i++)
        n += a->chunks.at[i].n;
    return n;
}

/* --- notes ---------------------------------------------------------------- */

static void add_string(struct byi_text *out, unsigned number, const char *text)
{
    struct byi_text bytes = {0};

    byi_utf8_add(&bytes, text, strlen(text));
    byi_wire_add(out, number, &bytes);
    byi_text_free(&bytes);
}

static void add_notes(struct byi_text *out, unsigned number,
                      const struct byi_onnx_notes *notes)
{
    struct byi_text entry = {0};

    for (uint32_t i = 0; i < notes->n; i++) {
        entry.n = 0;
        add_string(&entry, BYI_FIELD_KEY, notes->at[i].key);
        add_string(&entry, BYI_FIELD_VALUE, notes->at[i].value);
        byi_wire_add(out, number, &entry);
    }
    byi_text_free(&entry);
}

/* Whether byoc wrote this note in an earlier run. */
static bool is_byoc_note(const struct byi_field *note)
{
    struct byi_wire_reader w = {note->data, note->data + note->n};
    const size_t n = strlen(KEY_PREFIX);
    struct byi_field f;

    while (w.at < w.end && byi_wire_read(&w, &f))
        if (f.number == BYI_FIELD_KEY && f.wire_type == BYI_WIRE_BYTES)
            return f.n >= n && memcmp(f.data, KEY_PREFIX, n) == 0;
    return false;
}

/* --- messages ------------------------------------------------------------- */

/* Check that the node has the op_type that was imported under its number. */
static enum byoc_status check_node(const struct annotation *a,
                                   const struct byi_field *node,
                                   struct byoc_error *err)
{
    struct byi_wire_reader w = {node->data, node->data + node->n};
    const char *expected =
        a->next < a->n_nodes ? a->nodes[a->next].op_type : "no further node";
    struct byi_field f, type = {0};

    while (w.at < w.end && byi_wire_read(&w, &f))
        if (f.number == BYI_FIELD_OP_TYPE && f.wire_type == BYI_WIRE_BYTES)
            type = f;
    if (a->next < a->n_nodes && type.n == strlen(expected) &&
        (!type.n || memcmp(type.data, expected, type.n) == 0))
        return BYOC_OK;
    return byi_fail(err, BYOC_EINVAL,
                    "%s: node %u is %.*s, expected %s, as in the ledger; the "
                    "file has changed since the import",
                    a->from, a->next, (int)(type.n < 64 ? type.n : 64),
                    type.n ? (const char *)type.data : "", expected);
}

/* Reserve the chunk for a message's tag and length. */
static uint32_t open_message(struct annotation *a)
{
    add_new_chunk(a, a->new_bytes.n);
    return a->chunks.n - 1;
}

static void close_message(struct annotation *a, uint32_t head, unsigned number)
{
    const size_t before = a->new_bytes.n;

    byi_wire_head(&a->new_bytes, number, chunk_bytes(a, head + 1));
    a->chunks.at[head] =
        (struct output_chunk){.at = before, .n = a->new_bytes.n - before};
}

/* The messages that contain nodes: the field with the next message inside, and
 * the field with notes (0: none). */
enum message_kind { MODEL, GRAPH, NODE, ATTRIBUTE };
static const struct {
    unsigned field, note;
    enum message_kind inside;
} messages[] = {
    [MODEL] = {BYI_FIELD_GRAPH, BYI_FIELD_MODEL_METADATA, GRAPH},
    [GRAPH] = {BYI_FIELD_NODE, 0, NODE},
    [NODE] = {BYI_FIELD_ATTRIBUTE, BYI_FIELD_NODE_METADATA, ATTRIBUTE},
    [ATTRIBUTE] = {BYI_FIELD_ATTRIBUTE_GRAPH, 0, GRAPH},
};

static enum byoc_status annotate_message(struct annotation *a,
                                         enum message_kind kind,
                                         const struct byi_field *message,
                                         struct byoc_error *err);

/* Output the n bytes of a message, with `notes`, unless NULL, in place of the
 * notes of an earlier run. */
static enum byoc_status annotate_fields(struct annotation *a,
                                        enum message_kind kind,
                                        const uint8_t *data, size_t n,
                                        const struct byi_onnx_notes *notes,
                                        struct byoc_error *err)
{
    struct byi_wire_reader w = {data, data + n};
    struct byi_field f;

    while (w.at < w.end && byi_wire_read(&w, &f)) {
        const bool is_message = f.wire_type == BYI_WIRE_BYTES;
        if (kind == MODEL && f.number == BYI_FIELD_FUNCTION)
            a->functions = true;
        if (is_message && f.number == messages[kind].field)
            BYI_TRY(annotate_message(a, messages[kind].inside, &f, err));
        else if (!is_message || f.number != messages[kind].note ||
                 !is_byoc_note(&f))
            add_field(a, &f);
    }
    if (!notes)
        return BYOC_OK;
    const size_t before = a->new_bytes.n;
    add_notes(&a->new_bytes, messages[kind].note, notes);
    add_new_chunk(a, before);
    return BYOC_OK;
}

/* Recurses once per nested message; byi_wire_walk bounds the nesting. */
static enum byoc_status annotate_message(struct annotation *a,
                                         enum message_kind kind,
                                         const struct byi_field *message,
                                         struct byoc_error *err)
{
    const struct byi_onnx_notes *notes = NULL;
    const uint32_t head = open_message(a);

    if (kind == NODE) {
        BYI_TRY(check_node(a, message, err));
        notes = &a->nodes[a->next++];
    }
    BYI_TRY(annotate_fields(a, kind, message->data, message->n, notes, err));
    close_message(a, head, (unsigned)message->number);
    return BYOC_OK;
}

static enum byoc_status annotate_model(struct annotation *a,
                                       const uint8_t *data, size_t n,
                                       struct byoc_error *err)
{
    BYI_TRY(annotate_fields(a, MODEL, data, n, a->model, err));
    /* a model with functions has more sources: those of inlined nodes follow
     * those of the graph */
    if (a->functions ? a->next > a->n_nodes : a->next != a->n_nodes)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found %u nodes, expected %u, as in the ledger; "
                        "the file has changed since the import",
                        a->from, a->next, a->n_nodes);
    if (chunk_bytes(a, 0) > INT_MAX)
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found a copy of %zu bytes, expected less than 2 "
                        "GiB, the limit of an ONNX file; export the model "
                        "with external weights",
                        a->to, chunk_bytes(a, 0));
    return BYOC_OK;
}

/* --- files ---------------------------------------------------------------- */

static void find_external(void *ctx, const ProtobufCMessageDescriptor *in,
                          const struct byi_field *f)
{
    bool *external = ctx;

    if (in == &onnx__tensor_proto__descriptor &&
        f->wire_type == BYI_WIRE_VARINT &&
        f->number == BYI_FIELD_DATA_LOCATION && f->n == 1 &&
        *f->data == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        *external = true;
}

/* Stat the folder of `path`; the file itself need not exist. */
static bool stat_folder(const char *path, struct stat *st)
{
    struct byi_text folder = {0};
    const char *slash = strrchr(path, '/');

    byi_text_add(&folder, slash ? path : ".",
                 slash ? (size_t)(slash - path) + 1 : 1);
    const bool ok = stat(folder.at, st) == 0;
    byi_text_free(&folder);
    return ok;
}

/* External weights are resolved relative to the model's folder, so the copy
 * must stay in it. */
enum byoc_status byi_onnx_check_copy(const char *from, const char *to,
                                     const uint8_t *data, size_t n,
                                     struct byoc_error *err)
{
    bool external = false;
    struct stat old, new;

    BYI_TRY(byi_wire_walk(data, n, &onnx__model_proto__descriptor, from,
                          find_external, &external, err));
    if (stat(from, &old) == 0 && stat(to, &new) == 0 &&
        old.st_dev == new.st_dev && old.st_ino == new.st_ino)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found the model as the output, expected a file "
                        "other than the model",
                        to);
    if (external && stat_folder(from, &old) && stat_folder(to, &new) &&
        (old.st_dev != new.st_dev || old.st_ino != new.st_ino))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: %s has external weights, which a copy in another "
                        "folder would not find; write the copy to the model's "
                        "folder",
                        to, from);
    return BYOC_OK;
}

static enum byoc_status write_chunks(const struct annotation *a,
                                     struct byoc_error *err)
{
    struct byi_file file;

    BYI_TRY(byi_file_create(a->to, &file, err));
    for (uint32_t i = 0; i < a->chunks.n; i++) {
        const struct output_chunk *p = &a->chunks.at[i];
        if (p->n)
            fwrite(p->old ? (const void *)p->old : a->new_bytes.at + p->at, 1,
                   p->n, file.stream);
    }
    return byi_file_commit(&file, err);
}

enum byoc_status byi_onnx_annotate(const char *from, const char *to,
                                   uint32_t n_nodes,
                                   const struct byi_onnx_notes *nodes,
                                   const struct byi_onnx_notes *model,
                                   struct byoc_error *err)
{
    struct annotation a = {.from = from,
                           .to = to,
                           .nodes = nodes,
                           .model = model,
                           .n_nodes = n_nodes};
    const void *data = NULL;
    size_t n = 0;

    BYI_TRY(byi_map_file(from, &data, &n, err));
    enum byoc_status status = byi_onnx_check_copy(from, to, data, n, err);
    if (status == BYOC_OK)
        status = annotate_model(&a, data, n, err);
    if (status == BYOC_OK)
        status = write_chunks(&a, err);
    byi_vec_free(a.chunks.at);
    byi_text_free(&a.new_bytes);
    byi_unmap(data, n);
    return status;
}
