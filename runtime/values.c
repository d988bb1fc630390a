/* SPDX-License-Identifier: Apache-2.0 */
/* values.c: checks callers' tensors, and converts sequences and optionals. A
 * caller's tree becomes an object that borrows the tensors; a result becomes a
 * tree that the state owns. Such a tree is as deep as the model's signature. */
#include "state.h"

#include "core/base/guard.h"

#include <string.h>

/* --- callers' tensors ----------------------------------------------------- */

static bool is_dense(const DLTensor *view)
{
    int64_t step = 1;
    for (int d = view->ndim - 1; view->strides && d >= 0; d--) {
        if (view->shape[d] != 1 && view->strides[d] != step)
            return false;
        step *= view->shape[d];
    }
    return true;
}

/* Fail with the rank, or the first axis and its symbol, in which the view's
 * shape differs from the declaration `io`. */
static enum byoc_status fail_shape(const DLTensor *view, const char *what,
                                   const struct byoc_io *io,
                                   struct byoc_error *err)
{
    char found[320], expected[640], size[32] = "0 or more";
    if (io->rank == UINT32_MAX && (view->ndim < 0 || view->ndim > BYI_MAX_RANK))
        return byi_fail(err, BYOC_ETYPE,
                        "%s \"%s\" has rank %d, expected 0 to %d", what,
                        io->name, view->ndim, BYI_MAX_RANK);
    if (io->rank == UINT32_MAX)
        return byi_fail(err, BYOC_ETYPE,
                        "%s \"%s\" has shape %s, expected sizes of 0 or more",
                        what, io->name,
                        byi_dims_text(found, sizeof found, (uint32_t)view->ndim,
                                      view->shape));
    byi_shape_text(expected, sizeof expected, io->rank, io->dims,
                   io->dim_names);
    const char *legend = strchr(expected, '?') ? " (?: any size)" : "";
    if (view->ndim < 0 || (uint32_t)view->ndim != io->rank)
        return byi_fail(err, BYOC_ETYPE,
                        "%s \"%s\" has rank %d, expected shape %s%s", what,
                        io->name, view->ndim, expected, legend);
    uint32_t d = 0;
    while (io->dims[d] < 0 ? view->shape[d] >= 0
                           : view->shape[d] == io->dims[d])
        d++;
    const char *name = io->dim_names[d];
    if (io->dims[d] >= 0)
        snprintf(size, sizeof size, "%lld", (long long)io->dims[d]);
    return byi_fail(err, BYOC_ETYPE,
                    "%s \"%s\": axis %u%s%.60s%s is %lld, expected %s; found "
                    "shape %s, expected %s%s",
                    what, io->name, d, name ? " (" : "", name ? name : "",
                    name ? ")" : "", (long long)view->shape[d], size,
                    byi_dims_text(found, sizeof found, io->rank, view->shape),
                    expected, legend);
}

static const char *strides_text(const DLTensor *view, char text[320])
{
    return view->strides
               ? byi_dims_text(text, 320, (uint32_t)view->ndim, view->strides)
               : "NULL";
}

static enum byoc_status check_layout(const DLTensor *view, const char *what,
                                     const struct byoc_io *io, uint32_t axis,
                                     struct byi_row_planes *planes,
                                     struct byoc_error *err)
{
    char strides[320];
    if (planes)
        *planes = (struct byi_row_planes){0};
    if (planes && axis < (uint32_t)view->ndim) {
        if (byi_row_planes_read(view, axis, planes))
            return BYOC_OK;
        return byi_fail(
            err, BYOC_EINVAL,
            "%s \"%s\": found strides %s, expected dense, row-major "
            "strides from axis %u on, along which it grows, and "
            "strides before it that leave room for %lld rows",
            what, io->name, strides_text(view, strides), axis,
            (long long)view->shape[axis]);
    }
    return is_dense(view)
               ? BYOC_OK
               : byi_fail(err, BYOC_EINVAL,
                          "%s \"%s\": found strides %s, which are not dense "
                          "and row-major, expected dense data; %s",
                          what, io->name, strides_text(view, strides),
                          strcmp(what, "output") == 0 ? "give other memory"
                                                      : "copy it first");
}

static enum byoc_status fail_dtype(const DLTensor *view, const char *what,
                                   const struct byoc_io *io,
                                   struct byoc_error *err)
{
    const DLDataType expected = byoc_dtype_dlpack(io->dtype),
                     actual = view->dtype;
    const char *name = byoc_dtype_name(byi_dtype_of_dlpack(actual));
    if (name)
        return byi_fail(err, BYOC_ETYPE, "%s \"%s\": found %s, expected %s",
                        what, io->name, name, byoc_dtype_name(io->dtype));
    return byi_fail(err, BYOC_ETYPE,
                    "%s \"%s\": found DLPack type {%u, %u, %u}, expected %s, "
                    "which is {%u, %u, 1}",
                    what, io->name, actual.code, actual.bits, actual.lanes,
                    byoc_dtype_name(io->dtype), expected.code, expected.bits);
}

enum byoc_status byi_check_view(const DLTensor *view, const char *what,
                                const struct byoc_io *io, struct byi_tensor *t,
                                uint32_t axis, struct byi_row_planes *planes,
                                struct byoc_error *err)
{
    DLDataType expected = byoc_dtype_dlpack(io->dtype);
    char shape[320];
    if (view->device.device_type != kDLCPU)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\" is on DLPack device %d, expected CPU memory",
                        what, io->name, (int)view->device.device_type);
    if (view->dtype.code != expected.code ||
        view->dtype.bits != expected.bits || view->dtype.lanes != 1)
        return fail_dtype(view, what, io, err);
    if (view->ndim > 0 && !view->shape)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\": shape is NULL, expected %d sizes", what,
                        io->name, (int)view->ndim);
    bool any_shape = io->rank == UINT32_MAX && view->ndim <= BYI_MAX_RANK;
    bool fits =
        view->ndim >= 0 && (any_shape || (uint32_t)view->ndim == io->rank);
    for (int d = 0; fits && d < view->ndim; d++) {
        fits = any_shape || io->dims[d] < 0 ? view->shape[d] >= 0
                                            : view->shape[d] == io->dims[d];
        t->dims[d] = view->shape[d];
    }
    if (!fits)
        return fail_shape(view, what, io, err);
    t->dtype = io->dtype;
    t->rank = (uint32_t)view->ndim;
    if (byi_tensor_bytes(t) > (UINT64_C(1) << 44))
        return byi_fail(err, BYOC_ELIMIT,
                        "%s \"%s\" has shape %s, expected at most 16 TiB", what,
                        io->name,
                        byi_dims_text(shape, sizeof shape, t->rank, t->dims));
    BYI_TRY(check_layout(view, what, io, axis, planes, err));
    t->data = view->data ? (char *)view->data + view->byte_offset : NULL;
    if (!t->data && byi_tensor_bytes(t) > 0)
        return byi_fail(err, BYOC_EINVAL,
                        "%s \"%s\": data is NULL, expected %llu bytes", what,
                        io->name, (unsigned long long)byi_tensor_bytes(t));
    if ((uintptr_t)t->data % byi_dtype_bytes(io->dtype) != 0)
        return byi_fail(
            err, BYOC_EINVAL,
            "%s \"%s\": found data that is not aligned, expected an address "
            "that is a multiple of %u, the bytes of an element",
            what, io->name, byi_dtype_bytes(io->dtype));
    return BYOC_OK;
}

/* The state owns the strings of all outputs, even of outputs in the caller's
 * memory. So the strings of inputs and constants are copied, but not those that
 * kernels have created in the state. */
enum byoc_status byi_copy_strings(struct byoc_state *s,
                                  const struct byi_tensor *t, void *data,
                                  struct byoc_error *err)
{
    const char *failed = t->dtype == BYOC_STRING
                             ? byi_store_copies(&s->strings, data,
                                                byi_elements(t->rank, t->dims))
                             : NULL;
    if (failed)
        return byi_fail(err, BYOC_ENOMEM,
                        "out of memory for a string of %zu bytes",
                        strlen(failed));
    return BYOC_OK;
}

static const char *const kind_names[] = {
    [BYOC_TENSOR] = "a tensor",
    [BYOC_SEQUENCE] = "a sequence",
    [BYOC_OPTIONAL] = "an optional",
};

static enum byoc_status check_kind(const struct byoc_value *value,
                                   const struct byoc_io *io, const char *name,
                                   struct byoc_error *err)
{
    if (value->kind == io->kind && io->kind == BYOC_OPTIONAL && value->n > 1)
        return byi_fail(err, BYOC_ETYPE,
                        "input \"%s\": found an optional of %u values, "
                        "expected one or none",
                        name, value->n);
    if (value->kind == io->kind)
        return BYOC_OK;
    return byi_fail(
        err, BYOC_ETYPE, "input \"%s\": found %s, expected %s", name,
        (unsigned)value->kind < BYI_COUNT(kind_names) ? kind_names[value->kind]
                                                      : "an unknown kind",
        kind_names[io->kind]);
}

static enum byoc_status read_tensor(const struct byoc_value *value,
                                    const struct byoc_io *io, const char *name,
                                    struct byi_item *item,
                                    struct byoc_error *err)
{
    struct byoc_io declaration = *io;
    declaration.name = name;
    BYI_TRY(byi_check_view(&value->tensor, "element of input", &declaration,
                           &item->t, UINT32_MAX, NULL, err));
    const char *const *at = item->t.data;
    const int64_t n = byi_elements(item->t.rank, item->t.dims);
    for (int64_t i = 0; io->dtype == BYOC_STRING && i < n; i++)
        if (!at[i])
            return byi_fail(err, BYOC_EINVAL,
                            "element of input \"%s\": string %lld is NULL, "
                            "expected text",
                            name, (long long)i);
    return BYOC_OK;
}

/* Recursion is as deep as the signature, which the manifest's reader bounds. */
static enum byoc_status read_value(struct byoc_state *s,
                                   const struct byoc_value *value,
                                   const struct byoc_io *io, const char *name,
                                   struct byi_object **object,
                                   struct byoc_error *err)
{
    BYI_TRY(check_kind(value, io, name, err));
    if (value->n && !value->elements)
        return byi_fail(err, BYOC_EINVAL,
                        "input \"%s\": elements is NULL, expected %u values",
                        name, value->n);
    if (value->n > BYI_PLAN_MAX_ITEMS)
        return byi_fail(err, BYOC_ELIMIT,
                        "input \"%s\": found %u values, expected at most %d",
                        name, value->n, BYI_PLAN_MAX_ITEMS);
    BYI_TRY(byi_object_new(s, value->n, object, err));
    for (uint32_t i = 0; i < value->n; i++) {
        struct byi_item *item = &(*object)->at[i];
        if (io->element->kind != BYOC_TENSOR)
            BYI_TRY(read_value(s, &value->elements[i], io->element, name,
                               &item->object, err));
        else {
            BYI_TRY(check_kind(&value->elements[i], io->element, name, err));
            BYI_TRY(
                read_tensor(&value->elements[i], io->element, name, item, err));
        }
    }
    return BYOC_OK;
}

enum byoc_status byi_value_check(const struct byoc_value *value,
                                 const struct byoc_io *io,
                                 struct byoc_error *err)
{
    return check_kind(value, io, io->name, err);
}

enum byoc_status byi_value_read(struct byoc_state *s,
                                const struct byoc_value *value,
                                const struct byoc_io *io,
                                struct byi_object **object,
                                struct byoc_error *err)
{
    return read_value(s, value, io, io->name, object, err);
}

/* Set *value to a result, whose data stays valid until the next run. The data
 * stays in the item's block; strings, and data without a block, are copied. */
static enum byoc_status write_tensor(struct byoc_state *s,
                                     const struct byi_item *item,
                                     struct byoc_value *value,
                                     struct byoc_error *err)
{
    const struct byi_tensor *t = &item->t;
    void *data = t->data;
    if (!item->block || t->dtype == BYOC_STRING) {
        uint32_t block;
        BYI_TRY(byi_pool_take(&s->pool, byi_tensor_bytes(t), &block, err));
        data = s->pool.at[block].at;
        memcpy(data, t->data, byi_tensor_bytes(t));
    }
    BYI_TRY(byi_copy_strings(s, t, data, err));
    struct byi_tensor *result = byi_arena_copy(s->value_trees, t, sizeof *t);
    result->data = data;
    *value = (struct byoc_value){.kind = BYOC_TENSOR,
                                 .tensor = byi_tensor_dlpack(result)};
    return BYOC_OK;
}

enum byoc_status byi_value_write(struct byoc_state *s,
                                 const struct byi_object *object,
                                 const struct byoc_io *io,
                                 struct byoc_value *value,
                                 struct byoc_error *err)
{
    if (!s->value_trees)
        byi_keep(s->value_trees = byi_arena_new());
    struct byoc_value *elements =
        byi_arena_calloc(s->value_trees, object->n + 1u, sizeof *elements);
    for (uint32_t i = 0; i < object->n; i++) {
        const struct byi_item *item = &object->at[i];
        if (item->object)
            BYI_TRY(byi_value_write(s, item->object, io->element, &elements[i],
                                    err));
        else
            BYI_TRY(write_tensor(s, item, &elements[i], err));
    }
    *value = (struct byoc_value){
        .kind = io->kind, .n = object->n, .elements = elements};
    return BYOC_OK;
}
