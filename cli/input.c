/* SPDX-License-Identifier: Apache-2.0 */
/* input.c: detects the kind of an input file by its content, such as an
 * artifact, a plug-in or a tensor. Messages then say how to use the file.
 */
#include "cli.h"

#include "core/base/elf.h"
#include "runtime/internal.h"

#include <string.h>

/* A kind of file that is not a model. */
struct input_kind {
    const char *magic;  /* its first bytes; NULL: detected in another way */
    size_t magic_bytes; /* their number */
    size_t offset;      /* where they begin in the file */
    const char *found;  /* a name for messages */
    const char *advice; /* what to do with such a file */
};

#define MAGIC(text) text, sizeof text - 1
static const struct input_kind magic_kinds[] = {
    {MAGIC("\x93NUMPY"), 0, "a NumPy array",
     "pass an input with `byoc run MODEL --input NAME=FILE`"},
    {MAGIC("PK\3\4"), 0, "a zip archive, such as an .npz or PyTorch's .pt",
     "pass inputs with `byoc run MODEL --npz FILE`; export PyTorch models "
     "with torch.onnx.export"},
    {MAGIC("\x89HDF"), 0, "an HDF5 file, such as a Keras model",
     "convert the model to ONNX with tf2onnx"},
    {MAGIC("TFL3"), 4, "a TensorFlow Lite model",
     "convert it to ONNX with tf2onnx"},
    {MAGIC("\x1f\x8b"), 0, "a file compressed with gzip",
     "decompress it with gunzip"},
    {MAGIC("version https://git-lfs"), 0, "a Git LFS pointer, not the file",
     "fetch the file with `git lfs pull`"},
    {MAGIC("<"), 0, "HTML or XML",
     "if you downloaded it, use the link to the file itself"},
    {MAGIC("{"), 0, "JSON, such as a ledger",
     "`byoc report show FILE` prints a ledger"},
};
static const struct input_kind tensor_kind = {
    NULL, 0, 0, "an ONNX tensor",
    "pass an input with `byoc run MODEL --input NAME=FILE`"};
static const struct input_kind artifact_kind = {
    NULL, 0, 0, "an artifact, which is compiled already",
    "`byoc inspect FILE` prints its ledger, `byoc run FILE` runs it"};
static const struct input_kind plugin_kind = {
    NULL, 0, 0, "a backend's plug-in",
    "`byoc backends --plugin FILE` lists it, `byoc conform FILE` tests it"};
static const struct input_kind library_kind = {
    NULL, 0, 0, "a shared library that byoc did not make",
    "compile a model with `byoc compile MODEL -o MODEL.so`"};
static const struct input_kind truncated_kind = {
    NULL, 0, 0, "a truncated shared library", "copy or compile it again"};
static const struct input_kind empty_kind = {NULL, 0, 0, "an empty file",
                                             "copy or compile it again"};
static const struct input_kind other_kind = {
    NULL, 0, 0, "a file that is not a shared library",
    "compile a model with `byoc compile FILE -o MODEL.so`"};

static bool is_elf(const char *data, size_t n)
{
    return n >= 4 && memcmp(data, "\177ELF", 4) == 0;
}

/* Whether the file is a TensorProto, not a ModelProto (onnx.proto). Field 1 is
 * a varint in both, unless a TensorProto packs it as a list. Field 2 is a
 * varint in a TensorProto only. */
static bool is_tensor(const unsigned char *at, size_t n)
{
    size_t i = 0;
    while (i < n && at[i] == 0x08) {
        for (i++; i < n && at[i] & 0x80; i++)
            ;
        i++;
    }
    return i < n && (at[i] == 0x10 || (i == 0 && at[i] == 0x0a));
}

/* Whether the file ends before its section table does. */
static bool is_truncated(const char *data, size_t n)
{
    Elf64_Ehdr header;
    if (n < sizeof header)
        return true;
    memcpy(&header, data, sizeof header);
    const struct byi_elf elf = {.at = data, .n = n};
    return header.e_ident[EI_CLASS] == ELFCLASS64 &&
           !byi_elf_contains(&elf, header.e_shoff,
                             (uint64_t)header.e_shnum * sizeof(Elf64_Shdr));
}

static const struct input_kind *kind_of_elf(const char *path, const char *data,
                                            size_t n)
{
    struct byi_artifact a;
    if (is_truncated(data, n))
        return &truncated_kind;
    if (byoc_internal_artifact_open(path, &a, NULL) == BYOC_OK) {
        byoc_internal_artifact_close(&a);
        return &artifact_kind;
    }
    return byoc_internal_is_plugin(path) ? &plugin_kind : &library_kind;
}

/* The kind of a file that cannot be a model; NULL if it may be one. */
static const struct input_kind *kind_of(const char *path, const char *data,
                                        size_t n)
{
    if (is_elf(data, n))
        return kind_of_elf(path, data, n);
    for (size_t i = 0; i < BYI_COUNT(magic_kinds); i++)
        if (magic_kinds[i].offset + magic_kinds[i].magic_bytes <= n &&
            memcmp(data + magic_kinds[i].offset, magic_kinds[i].magic,
                   magic_kinds[i].magic_bytes) == 0)
            return &magic_kinds[i];
    return n && is_tensor((const unsigned char *)data, n) ? &tensor_kind : NULL;
}

bool byi_is_artifact(const char *path)
{
    const void *data;
    size_t n;
    if (byi_map_file(path, &data, &n, NULL) != BYOC_OK)
        return byi_path_ends_in(path, ".so");
    const bool found = is_elf(data, n) || byi_path_ends_in(path, ".so");
    byi_unmap(data, n);
    return found;
}

enum byoc_status byi_expect_model(const char *path, struct byoc_error *err)
{
    const void *data;
    size_t n;
    if (byi_map_file(path, &data, &n, NULL) != BYOC_OK)
        return BYOC_OK; /* reading it gives the error */
    const struct input_kind *kind = kind_of(path, data, n);
    byi_unmap(data, n);
    return kind ? byi_fail(err, BYOC_EINVAL,
                           "%s: found %s, expected a model in ONNX or the text "
                           "form; %s",
                           path, kind->found, kind->advice)
                : BYOC_OK;
}

enum byoc_status byi_explain_artifact(const char *path, enum byoc_status status,
                                      struct byoc_error *err)
{
    const void *data;
    size_t n;
    if (status != BYOC_EPARSE || byi_map_file(path, &data, &n, NULL) != BYOC_OK)
        return status;
    const struct input_kind *kind = n ? kind_of(path, data, n) : &empty_kind;
    const bool has_model =
        is_elf(data, n) && memmem(data, n, ".byoc.model", 11);
    byi_unmap(data, n);
    if (has_model || kind == &artifact_kind)
        return status; /* a damaged artifact: keep the message */
    kind = kind ? kind : &other_kind;
    return byi_fail(err, status,
                    "%s: not an artifact of byoc compile: found %s; %s", path,
                    kind->found, kind->advice);
}
