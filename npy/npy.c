/* SPDX-License-Identifier: Apache-2.0 */
/* npy.c: reads and writes numpy's array files (NEP 1, "A Simple File Format for
 * NumPy Arrays"). Also reads the stored members of .npz archives (PKWARE
 * APPNOTE, 4.3: local headers and the central directory). All reads are
 * bounds-checked.
 */
#include "npy.h"

#include <string.h>

/* numpy's type strings of the runtime's types, without the byte order, which
 * may be '|', '<' or '='. */
static const struct {
    const char *descr;
    enum byoc_dtype dtype;
} descrs[] = {
    {"f4", BYOC_F32}, {"f8", BYOC_F64},   {"f2", BYOC_F16}, {"i1", BYOC_I8},
    {"i2", BYOC_I16}, {"i4", BYOC_I32},   {"i8", BYOC_I64}, {"u1", BYOC_U8},
    {"u2", BYOC_U16}, {"u4", BYOC_U32},   {"u8", BYOC_U64}, {"b1", BYOC_BOOL},
    {"c8", BYOC_C64}, {"c16", BYOC_C128},
};

/* The text of the value of `key`, which is in quotes, in the header's
 * dictionary; NULL if the dictionary does not have the key. */
static const char *find_key(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (!at)
        return NULL;
    at = strchr(at + strlen(key), ':');
    while (at && (*++at == ' ' || *at == '\t'))
        ;
    return at;
}

static enum byoc_status read_descr(const char *header, const char *path,
                                   enum byoc_dtype *dtype,
                                   struct byoc_error *err)
{
    const char *at = find_key(header, "'descr'");
    if (!at || *at != '\'' || !at[1] || !strchr("<|=", at[1]))
        return byi_fail(
            err, BYOC_EUNSUPPORTED,
            "%s: found the descr %.*s, expected a little-endian type such as "
            "'<f4'; save it as float32 or another plain type",
            path, at ? (int)byi_min((int64_t)strcspn(at, ","), 24) : 4,
            at ? at : "none");
    at += 2;
    size_t n = strcspn(at, "'"), width;
    bool wide;
    if (byi_npy_is_text(at, &width, &wide)) {
        *dtype = BYOC_STRING;
        return BYOC_OK;
    }
    for (size_t i = 0; i < BYI_COUNT(descrs); i++)
        if (strlen(descrs[i].descr) == n && !memcmp(at, descrs[i].descr, n)) {
            *dtype = descrs[i].dtype;
            return BYOC_OK;
        }
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "%s: found the type '%.*s', expected a number, bool or "
                    "text; save it as float32 or another plain type",
                    path, (int)(n > 20 ? 20 : n), at);
}

static enum byoc_status read_shape(const char *header, const char *path,
                                   struct byi_tensor *t, struct byoc_error *err)
{
    const char *at = find_key(header, "'shape'");
    if (!at || *at++ != '(')
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found no shape in the header, expected a tuple of "
                        "sizes; save it with numpy.save",
                        path);
    for (t->rank = 0; *at && *at != ')';) {
        if (*at == ' ' || *at == ',') {
            at++;
            continue;
        }
        int64_t dim = 0;
        const char *start = at;
        for (; byi_is_digit(*at) && dim < (INT64_C(1) << 40); at++)
            dim = dim * 10 + (*at - '0');
        if (at == start)
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found '%.20s' in the shape, expected a number "
                            "or ')'",
                            path, at);
        if (dim >= (INT64_C(1) << 40))
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found size %lld or more in the shape, "
                            "expected less than 2^40",
                            path, (long long)dim);
        if (t->rank == BYI_MAX_RANK)
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found more than %d sizes in the shape, "
                            "expected at most as many",
                            path, BYI_MAX_RANK);
        t->dims[t->rank++] = dim;
    }
    const char *order = find_key(header, "'fortran_order'");
    if (t->rank > 1 && order && strncmp(order, "True", 4) == 0)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found an array in Fortran order, expected C "
                        "order; save numpy.ascontiguousarray of it",
                        path);
    return BYOC_OK;
}

/* Find the header of a .npy file of n bytes: its first byte and its length. */
static enum byoc_status find_header(const uint8_t *bytes, size_t n,
                                    const char *path, size_t *first,
                                    uint64_t *length, struct byoc_error *err)
{
    if (n < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: not a .npy file: found %zu bytes, expected "
                        "\\x93NUMPY and a header at the start; save it with "
                        "numpy.save",
                        path, n);
    *first = bytes[6] == 1 ? 10 : 12;
    *length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] != 1 && n >= 12)
        *length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    if (n < *first || *length > n - *first)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: found a file of %zu bytes, expected the header's %llu bytes "
            "after byte %zu; the file is cut off, save it again",
            path, n, (unsigned long long)*length, *first);
    if (*length > 65536)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found a header of %llu bytes, expected at most "
                        "65536 bytes",
                        path, (unsigned long long)*length);
    return BYOC_OK;
}

static enum byoc_status parse_npy(const uint8_t *bytes, size_t n,
                                  const char *path, struct byi_arena *arena,
                                  struct byi_tensor *t, struct byoc_error *err)
{
    size_t first = 0;
    uint64_t length = 0;
    BYI_TRY(find_header(bytes, n, path, &first, &length, err));
    const char *header =
        byi_arena_strn(arena, (const char *)bytes + first, (size_t)length);
    BYI_TRY(read_descr(header, path, &t->dtype, err));
    BYI_TRY(read_shape(header, path, t, err));
    uint64_t bytes_needed = byi_tensor_bytes(t),
             bytes_left = n - first - length;
    size_t width;
    bool wide;
    if (t->dtype == BYOC_STRING &&
        byi_npy_is_text(find_key(header, "'descr'") + 2, &width, &wide))
        return byi_npy_read_text(bytes + first + length, bytes_left, width,
                                 wide, path, arena, t, err);
    if (bytes_needed != bytes_left)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: found %llu bytes of data, expected %llu for its shape", path,
            (unsigned long long)bytes_left, (unsigned long long)bytes_needed);
    t->data = byi_acquire(bytes_needed ? bytes_needed : 1);
    if (!t->data)
        return byi_fail(err, BYOC_ENOMEM, "%s: out of memory for %llu bytes",
                        path, (unsigned long long)bytes_needed);
    byi_arena_defer(arena, byi_release, t->data);
    memcpy(t->data, bytes + first + length, bytes_needed);
    return BYOC_OK;
}

enum byoc_status byi_npy_read(const char *path, struct byi_arena *arena,
                              struct byi_tensor *tensor, struct byoc_error *err)
{
    const void *bytes;
    size_t n;
    BYI_TRY(byi_map_file(path, &bytes, &n, err));
    enum byoc_status status = parse_npy(bytes, n, path, arena, tensor, err);
    byi_unmap(bytes, n);
    return status;
}

enum byoc_status byi_npy_write(const char *path,
                               const struct byi_tensor *tensor,
                               struct byoc_error *err)
{
    const char *descr = tensor->dtype == BYOC_BF16 ? "u2" : NULL;
    if (byi_narrow_bits(tensor->dtype)) /* a byte for each element */
        descr =
            tensor->dtype == BYOC_I4 || tensor->dtype == BYOC_I2 ? "i1" : "u1";
    for (size_t i = 0; i < BYI_COUNT(descrs); i++)
        if (descrs[i].dtype == tensor->dtype)
            descr = descrs[i].descr;
    char strings[16];
    uint32_t width = 0;
    if (tensor->dtype == BYOC_STRING) {
        width = byi_npy_text_width(tensor);
        snprintf(strings, sizeof strings, "U%u", width);
        descr = strings;
    }
    if (!descr)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found an array of %s, expected a number, bool or "
                        "text, as numpy has them",
                        path, byoc_dtype_name(tensor->dtype));
    struct byi_text header = {0};
    byi_text_addf(&header,
                  "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  descr[1] == '1' && !descr[2] ? '|' : '<', descr);
    for (uint32_t i = 0; i < tensor->rank; i++)
        byi_text_addf(&header, "%lld,%s", (long long)tensor->dims[i],
                      i + 1 < tensor->rank ? " " : "");
    byi_text_addf(&header, "), }");
    while ((10 + header.n + 1) % 64 != 0)
        byi_text_add(&header, " ", 1);
    byi_text_add(&header, "\n", 1);
    const uint8_t head[10] = {0x93,
                              'N',
                              'U',
                              'M',
                              'P',
                              'Y',
                              1,
                              0,
                              (uint8_t)(header.n & 0xff),
                              (uint8_t)(header.n >> 8)};
    struct byi_file file;
    enum byoc_status status = byi_file_create(path, &file, err);
    if (status == BYOC_OK) {
        fwrite(head, 1, sizeof head, file.stream);
        fwrite(header.at, 1, header.n, file.stream);
        if (width)
            byi_npy_write_text(tensor, width, file.stream);
        else
            fwrite(tensor->data, 1, byi_tensor_bytes(tensor), file.stream);
        status = byi_file_commit(&file, err);
    }
    byi_text_free(&header);
    return status;
}

/* --- .npz ----------------------------------------------------------------- */

static uint64_t read_little_endian(const uint8_t *at, int n)
{
    uint64_t value = 0;
    for (int i = n; i-- > 0;)
        value = value << 8 | at[i];
    return value;
}

/* Find the end record of the central directory, from the end of the file. */
static const uint8_t *find_end(const uint8_t *bytes, size_t n)
{
    for (size_t i = 22; i <= n && i < 22 + 65536; i++)
        if (memcmp(bytes + n - i, "PK\5\6", 4) == 0)
            return bytes + n - i;
    return NULL;
}

static enum byoc_status read_member(const uint8_t *bytes, size_t n,
                                    const uint8_t *entry, const char *path,
                                    struct byi_arena *arena,
                                    struct byi_tensor *tensor,
                                    struct byoc_error *err)
{
    uint64_t size = read_little_endian(entry + 20, 4),
             at = read_little_endian(entry + 42, 4);
    if (read_little_endian(entry + 10, 2) != 0)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found compressed members, expected stored ones; "
                        "save it with numpy.savez instead of savez_compressed",
                        path);
    if (size == UINT32_MAX || at == UINT32_MAX)
        return byi_fail(err, BYOC_EUNSUPPORTED,
                        "%s: found an archive above 4 GiB, expected a smaller "
                        "one; save the array as .npy",
                        path);
    if (at + 30 > n || memcmp(bytes + at, "PK\3\4", 4) != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found a broken archive, expected a member at byte "
                        "%llu of %zu; save it again",
                        path, (unsigned long long)at, n);
    uint64_t data = at + 30 + read_little_endian(bytes + at + 26, 2) +
                    read_little_endian(bytes + at + 28, 2);
    if (data > n || size > n - data)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: found a broken archive of %zu bytes, expected %llu "
            "from byte %llu on; save it again",
            path, n, (unsigned long long)size, (unsigned long long)data);
    return parse_npy(bytes + data, (size_t)size, path, arena, tensor, err);
}

static enum byoc_status parse_npz(const uint8_t *bytes, size_t n,
                                  const char *path, const char *name,
                                  struct byi_arena *arena,
                                  struct byi_tensor *tensor,
                                  struct byoc_error *err)
{
    const uint8_t *end = n >= 22 ? find_end(bytes, n) : NULL;
    if (!end)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found no directory of a zip archive, expected a "
                        "file that numpy.savez writes",
                        path);
    uint64_t at = read_little_endian(end + 16, 4),
             count = read_little_endian(end + 10, 2);
    for (uint64_t i = 0; i < count && at + 46 <= n; i++) {
        const uint8_t *entry = bytes + at;
        uint64_t length = read_little_endian(entry + 28, 2);
        if (memcmp(entry, "PK\1\2", 4) != 0 || length > n - at - 46)
            break;
        if (length == strlen(name) + 4 &&
            memcmp(entry + 46, name, length - 4) == 0 &&
            memcmp(entry + 46 + length - 4, ".npy", 4) == 0)
            return read_member(bytes, n, entry, path, arena, tensor, err);
        at += 46 + length + read_little_endian(entry + 30, 2) +
              read_little_endian(entry + 32, 2);
    }
    return byi_fail(err, BYOC_EINVAL,
                    "%s: found no array called '%s', expected one for each of "
                    "the model's input names",
                    path, name);
}

enum byoc_status byi_npz_read(const char *path, const char *name,
                              struct byi_arena *arena,
                              struct byi_tensor *tensor, struct byoc_error *err)
{
    const void *bytes;
    size_t n;
    BYI_TRY(byi_map_file(path, &bytes, &n, err));
    enum byoc_status status =
        parse_npz(bytes, n, path, name, arena, tensor, err);
    byi_unmap(bytes, n);
    return status;
}
