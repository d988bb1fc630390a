/* SPDX-License-Identifier: Apache-2.0 */
/* external.c: finds tensor data in other files.
 *
 * Models are untrusted and may name any file. The file must lie inside the
 * model's folder after links are resolved, and the range inside the file. See
 * "External data" in ONNX's docs/ExternalData.md.
 */
#include "frontend_onnx/import.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A mapped file, for unmap_file(). */
struct file_mapping {
    const void *at;
    size_t n;
};

static void unmap_file(void *arg)
{
    const struct file_mapping *file_mapping = arg;

    byi_unmap(file_mapping->at, file_mapping->n);
}

enum byoc_status byi_onnx_map(const char *path, struct byi_arena *arena,
                              const uint8_t **data, size_t *n,
                              struct byoc_error *err)
{
    struct file_mapping *file_mapping =
        byi_arena_alloc(arena, sizeof *file_mapping);

    BYI_TRY(byi_map_file(path, &file_mapping->at, n, err));
    file_mapping->n = *n;
    byi_arena_defer(arena, unmap_file, file_mapping);
    *data = file_mapping->at;
    return BYOC_OK;
}

static const char *find_entry(const Onnx__TensorProto *proto, const char *key)
{
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const Onnx__StringStringEntryProto *e = proto->external_data[i];
        if (e->key && e->value && strcmp(e->key, key) == 0)
            return e->value;
    }
    return NULL;
}

static bool read_number(const char *text, uint64_t *value)
{
    char *end = NULL;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    const unsigned long long number = strtoull(text, &end, 10);
    *value = number;
    return errno == 0 && *end == '\0';
}

/* Whether the path is relative and has no component "..". */
static bool is_safe_location(const char *location)
{
    if (*location == '\0' || *location == '/')
        return false;
    for (const char *at = location; at;) {
        const char *slash = strchr(at, '/');
        const size_t n = slash ? (size_t)(slash - at) : strlen(at);
        if (n == 2 && memcmp(at, "..", 2) == 0)
            return false;
        at = slash ? slash + 1 : NULL;
    }
    return true;
}

static bool is_in_folder(const char *path, const char *folder)
{
    const size_t n = strlen(folder);

    if (strcmp(folder, "/") == 0)
        return true;
    return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* Map a file at its first use; later uses share the mapping. */
static enum byoc_status map_once(struct byi_onnx_file *file, const char *path,
                                 const struct byi_external **found,
                                 struct byoc_error *err)
{
    for (uint32_t i = 0; i < file->external.n; i++)
        if (strcmp(file->external.at[i].path, path) == 0) {
            *found = &file->external.at[i];
            return BYOC_OK;
        }
    struct byi_external new_file = {.path = byi_arena_str(file->arena, path)};
    BYI_TRY(byi_onnx_map(path, file->arena, &new_file.at, &new_file.n, err));
    BYI_PUSH(&file->external, new_file);
    *found = &file->external.at[file->external.n - 1];
    return BYOC_OK;
}

static enum byoc_status open_external(struct byi_onnx_file *file,
                                      const char *name, const char *location,
                                      const struct byi_external **found,
                                      struct byoc_error *err)
{
    if (!location)
        return byi_fail(err, BYOC_EPARSE,
                        "tensor '%s': found external data without a location, "
                        "expected the path of a file in the model's folder",
                        name);
    if (!is_safe_location(location))
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "tensor '%s': found external data at '%s', expected a "
                        "relative path without '..', inside the model's folder",
                        name, location);
    if (!file->folder)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "tensor '%s': found external data at '%s' for a model "
                        "in memory, expected all data inside the model",
                        name, location);
    const char *path =
        byi_arena_printf(file->arena, "%s/%s", file->folder, location);
    char *resolved = realpath(path, NULL);
    if (!resolved)
        return byi_fail(err, byi_io_status(errno),
                        "tensor '%s': cannot open its external data '%s': %s, "
                        "expected a file in the model's folder",
                        name, location, strerror(errno));
    enum byoc_status status = BYOC_OK;
    if (!is_in_folder(resolved, file->folder))
        status = byi_fail(err, BYOC_EUNSUPPORTED,
                          "tensor '%s': found external data '%s' that is a "
                          "link out of the model's folder, expected a file in "
                          "it; put the file itself there",
                          name, location);
    else if ((status = map_once(file, resolved, found, err)) != BYOC_OK)
        byi_prefix(err, "tensor '%s'", name);
    free(resolved);
    return status;
}

/* Set *value to the number that the external data have as entry `key`; without
 * this entry it is unchanged. */
static enum byoc_status read_entry(const Onnx__TensorProto *proto,
                                   const char *key, uint64_t *value,
                                   struct byoc_error *err)
{
    const char *text = find_entry(proto, key);
    return !text || read_number(text, value)
               ? BYOC_OK
               : byi_fail(err, BYOC_EPARSE,
                          "tensor '%s': its external data has %s '%s', "
                          "expected a number",
                          proto->name ? proto->name : "", key, text);
}

enum byoc_status byi_onnx_external(struct byi_onnx_file *file,
                                   const Onnx__TensorProto *proto,
                                   uint64_t bytes, struct byi_range *range,
                                   struct byoc_error *err)
{
    const char *name = proto->name ? proto->name : "";
    const struct byi_external *found = NULL;
    uint64_t offset = 0, length = bytes;

    BYI_TRY(
        open_external(file, name, find_entry(proto, "location"), &found, err));
    BYI_TRY(read_entry(proto, "offset", &offset, err));
    BYI_TRY(read_entry(proto, "length", &length, err));
    if (length != bytes)
        return byi_fail(
            err, BYOC_EPARSE,
            "tensor '%s': its external data is %llu bytes long, expected %llu",
            name, (unsigned long long)length, (unsigned long long)bytes);
    if (offset > found->n || length > found->n - offset)
        return byi_fail(err, BYOC_EPARSE,
                        "tensor '%s': its external data is %llu bytes at "
                        "offset %llu, expected them inside a file of %zu bytes",
                        name, (unsigned long long)length,
                        (unsigned long long)offset, found->n);
    static const uint8_t nothing[1];
    range->at = length ? found->at + offset : nothing;
    range->n = (size_t)length;
    return BYOC_OK;
}
