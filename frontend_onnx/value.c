/* SPDX-License-Identifier: Apache-2.0 */
/* value.c: reads files of sequences and optionals, as in ONNX test data
 * (onnx-data.proto). Both messages have their elements in the same fields:
 * tensors in field 3, sequences in 5, optionals in 7.
 */
#include "frontend_onnx/import.h"
#include "frontend_onnx/wire.h"

/* Returns the number of the field for elements of this kind. */
static uint64_t element_field(const struct byoc_io *element)
{
    return element->kind == BYOC_TENSOR     ? 3
           : element->kind == BYOC_SEQUENCE ? 5
                                            : 7;
}

static enum byoc_status read_tensor(const struct byi_field *f, const char *path,
                                    struct byi_arena *arena,
                                    struct byoc_value *value,
                                    struct byoc_error *err)
{
    struct byi_tensor *t = byi_arena_alloc(arena, sizeof *t);

    BYI_TRY(byi_onnx_tensor_bytes(f->data, f->n, path, arena, t, NULL, err));
    *value = (struct byoc_value){.kind = BYOC_TENSOR,
                                 .tensor = byi_tensor_dlpack(t)};
    return BYOC_OK;
}

/* Read the message of a sequence or optional of type `io` to *value, whose
 * elements the arena owns. Recursion is bounded by the nesting of io. */
static enum byoc_status read_list(const uint8_t *data, size_t n,
                                  const struct byoc_io *io, const char *path,
                                  struct byi_arena *arena,
                                  struct byoc_value *value,
                                  struct byoc_error *err)
{
    const uint64_t number = element_field(io->element);
    struct byi_wire_reader w = {data, data + n};
    struct byi_field f;
    uint32_t count = 0, i = 0;

    while (w.at < w.end) {
        if (!byi_wire_read(&w, &f))
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found a malformed field, expected those of a "
                            "SequenceProto or OptionalProto",
                            path);
        if (f.number >= 3 &&
            (f.number != number || f.wire_type != BYI_WIRE_BYTES))
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found an element in field %u, expected %u for "
                            "the type of the model's input or output",
                            path, (unsigned)f.number, (unsigned)number);
        count += f.number == number;
    }
    if (io->kind == BYOC_OPTIONAL && count > 1)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found an optional of %u elements, expected at "
                        "most 1",
                        path, count);
    struct byoc_value *elements =
        byi_arena_calloc(arena, count + 1u, sizeof *elements);
    w = (struct byi_wire_reader){data, data + n};
    while (byi_wire_read(&w, &f)) {
        if (f.number != number)
            continue;
        if (io->element->kind == BYOC_TENSOR)
            BYI_TRY(read_tensor(&f, path, arena, &elements[i++], err));
        else
            BYI_TRY(read_list(f.data, f.n, io->element, path, arena,
                              &elements[i++], err));
    }
    *value =
        (struct byoc_value){.kind = io->kind, .n = count, .elements = elements};
    return BYOC_OK;
}

enum byoc_status byi_onnx_value(const char *path, const struct byoc_io *io,
                                struct byi_arena *arena,
                                struct byoc_value *value,
                                struct byoc_error *err)
{
    const uint8_t *data = NULL;
    size_t n = 0;

    BYI_TRY(byi_onnx_map(path, arena, &data, &n, err));
    return read_list(data, n, io, path, arena, value, err);
}
