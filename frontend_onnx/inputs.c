/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c: makes the model's inputs parameters of @main, with the dims, shapes
 * and values that the user fixed: "N=1", "x=1x3x224x224", "x=0.5".
 */
#include "frontend_onnx/import.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* --- the user's parameters ------------------------------------------------ */

/* Read a number, and move *text past it. Returns false if there is no number,
 * or if it is too large. */
static bool read_dim(const char **text, int64_t *dim)
{
    char *end = NULL;

    if (!isdigit((unsigned char)**text))
        return false;
    errno = 0;
    *dim = strtoll(*text, &end, 10);
    *text = end;
    return errno == 0;
}

/* Read a shape such as "1x3x224x224"; "" is the shape of a scalar. False if the
 * text is malformed or the rank too large. */
static bool read_shape(const char *text, uint32_t *rank, int64_t *dims)
{
    *rank = 0;
    if (*text == '\0')
        return true;
    while (*rank < BYI_MAX_RANK && read_dim(&text, &dims[*rank])) {
        ++*rank;
        if (*text == '\0')
            return true;
        if (*text++ != 'x')
            return false;
    }
    return false;
}

/* A list of "name=value", with an index by name. */
struct param_list {
    const char *const *at;
    uint32_t n;
    bool *used; /* whether the model has an input or a dim of that name */
    struct byi_names names; /* of the entries, by index in the list */
};

/* What the user fixed, and the sizes of symbolic dims that follow from it. */
struct user_params {
    struct param_list dims, shapes, values;
    /* the symbolic dims of inputs whose shape is fixed; the index of a name is
     * that of its size in `sizes` */
    struct byi_names symbols;
    int64_t *sizes;
    uint32_t cap; /* of `sizes` */
};

/* Returns a list with an index in scratch. Of two entries with one name the
 * first counts. */
static struct param_list read_list(struct byi_import *o,
                                   const char *const *params)
{
    struct param_list list = {.at = params, .names = byi_names_new(o->scratch)};

    for (; params && params[list.n]; list.n++) {
        const char *text = params[list.n], *equal = strrchr(text, '=');
        struct byi_name *name =
            equal ? byi_names_add(&list.names,
                                  byi_arena_strn(o->scratch, text,
                                                 (size_t)(equal - text)))
                  : NULL;
        if (name)
            name->index = list.n;
    }
    list.used = byi_arena_calloc(o->scratch, list.n + 1, sizeof(bool));
    return list;
}

/* Returns the value of `name` in the list, or NULL. */
static const char *find_value(const struct param_list *list, const char *name)
{
    const struct byi_name *found = byi_names_find(&list->names, name);

    return found ? strrchr(list->at[found->index], '=') + 1 : NULL;
}

/* Like find_value, and marks the value as used. */
static const char *use_value(const struct param_list *list, const char *name)
{
    const struct byi_name *found = byi_names_find(&list->names, name);

    if (found)
        list->used[found->index] = true;
    return find_value(list, name);
}

/* Append a quoted name to a list: each name once, at most MAX_SHOWN. */
static void list_name(struct byi_text *list, uint32_t *n, const char *name)
{
    enum { MAX_SHOWN = 8 };
    struct byi_text quoted = {0};

    byi_text_addf(&quoted, "'%s'", name);
    if (*name && !(list->n && strstr(list->at, quoted.at)) &&
        ++*n <= MAX_SHOWN + 1)
        byi_text_addf(list, "%s%s", *n > 1 ? ", " : ": ",
                      *n > MAX_SHOWN ? "and more" : quoted.at);
    byi_text_free(&quoted);
}

/* The name of a symbolic dim; "" if it has none. Some exporters name every
 * unknown dim "?", which does not make their sizes equal. */
static const char *param_of_dim(const Onnx__TensorShapeProto__Dimension *d)
{
    const bool named =
        d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
    return named && strcmp(d->dim_param, "?") != 0 ? d->dim_param : "";
}

static const Onnx__TensorShapeProto *shape_of_input(
    const Onnx__ValueInfoProto *info)
{
    return info->type &&
                   info->type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE
               ? info->type->tensor_type->shape
               : NULL;
}

/* Whether an input is a weight, listed as an input before IR version 4. */
static bool is_weight(const struct byi_import *o, const char *input)
{
    const struct byi_name *known = byi_names_find(&o->scope->names, input);

    return known && known->index != UINT32_MAX;
}

/* Note the sizes that the user's shape of an input gives its symbolic dims; the
 * first input that has a dim counts. */
static void note_sizes(struct byi_import *o, struct user_params *user,
                       const Onnx__ValueInfoProto *info)
{
    const char *input = byi_text_or(info->name, "");
    const char *text = find_value(&user->shapes, input);
    const Onnx__TensorShapeProto *shape = shape_of_input(info);
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank;

    if (!text || !shape || is_weight(o, input) ||
        !read_shape(text, &rank, dims))
        return;
    for (uint32_t i = 0; i < rank && i < shape->n_dim; i++) {
        const char *param = param_of_dim(shape->dim[i]);
        struct byi_name *symbol =
            *param ? byi_names_add(&user->symbols, param) : NULL;
        if (!symbol)
            continue;
        symbol->index = user->symbols.n - 1;
        if (symbol->index == user->cap)
            user->sizes = byi_arena_grow(o->scratch, user->sizes, &user->cap,
                                         sizeof *user->sizes);
        user->sizes[symbol->index] = dims[i];
    }
}

/* Returns ": 'x', 'y'": the inputs that the user can name or, if `dims`, their
 * symbolic dims. */
static const char *list_inputs(struct byi_import *o, bool dims)
{
    const Onnx__GraphProto *graph = o->file->model->graph;
    struct byi_text list = {0};
    uint32_t n = 0;

    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__ValueInfoProto *info = graph->input[i];
        const char *input = byi_text_or(info->name, "");
        const Onnx__TensorShapeProto *shape = shape_of_input(info);
        if (is_weight(o, input))
            continue;
        if (!dims)
            list_name(&list, &n, input);
        for (size_t k = 0; dims && shape && k < shape->n_dim; k++)
            list_name(&list, &n, param_of_dim(shape->dim[k]));
    }
    const char *text =
        n ? byi_arena_str(o->scratch, list.at) : "; the model has none";
    byi_text_free(&list);
    return text;
}

static enum byoc_status check_used(struct byi_import *o,
                                   const struct user_params *user)
{
    const struct {
        const struct param_list *params;
        const char *parameter, *expected;
        bool dims;
    } lists[] = {
        {&user->dims, "dim",
         "NAME=NUMBER, where NAME is a symbolic dim of the model's inputs",
         true},
        {&user->shapes, "shape",
         "NAME=1x3x224x224, where NAME is an input of the model", false},
        {&user->values, "value",
         "NAME=NUMBER, where NAME is an input of the model", false},
    };

    for (size_t k = 0; k < BYI_COUNT(lists); k++)
        for (uint32_t i = 0; i < lists[k].params->n; i++)
            if (!lists[k].params->used[i])
                return byi_fail(
                    &o->err, BYOC_EINVAL, "%s: found '%s', expected %s%s",
                    lists[k].parameter, lists[k].params->at[i],
                    lists[k].expected, list_inputs(o, lists[k].dims));
    return BYOC_OK;
}

/* --- inputs --------------------------------------------------------------- */

/* Set *size to the size that the user gives a symbolic dim: in the list of
 * dims, or in the shape of any input that has it; otherwise to -1. */
static enum byoc_status find_size(struct byi_import *o, const char *param,
                                  const struct user_params *user, int64_t *size)
{
    const char *fixed = use_value(&user->dims, param), *end = fixed;
    const struct byi_name *symbol = byi_names_find(&user->symbols, param);

    *size = !fixed && symbol ? user->sizes[symbol->index] : -1;
    if (fixed && (!read_dim(&end, size) || *end != '\0'))
        return byi_fail(&o->err, BYOC_EINVAL,
                        "dim '%s': found '%s', expected a number of 0 or "
                        "more",
                        param, fixed);
    return BYOC_OK;
}

static enum byoc_status read_dims(struct byi_import *o,
                                  const Onnx__TensorShapeProto *shape,
                                  const struct user_params *user, int64_t *dims)
{
    for (size_t i = 0; i < shape->n_dim; i++) {
        const Onnx__TensorShapeProto__Dimension *d = shape->dim[i];
        const char *param = param_of_dim(d);
        dims[i] = -1;
        if (d->value_case ==
            ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
            dims[i] = d->dim_value;
        if (*param)
            BYI_TRY(find_size(o, param, user, &dims[i]));
        if (dims[i] < 0) /* unnamed dims include exporters' -1 */
            dims[i] = *param ? byi_symbol(o->m, param) : byi_symbol_new(o->m);
    }
    return BYOC_OK;
}

/* Check that the shape the user gives `input` has the size of each symbolic dim
 * that the user gives elsewhere. */
static enum byoc_status check_sizes(struct byi_import *o, const char *input,
                                    const Onnx__TensorShapeProto *shape,
                                    const struct user_params *user,
                                    const int64_t *dims)
{
    for (size_t i = 0; i < shape->n_dim; i++) {
        const char *param = param_of_dim(shape->dim[i]);
        int64_t size = dims[i];
        if (*param)
            BYI_TRY(find_size(o, param, user, &size));
        if (size != dims[i])
            return byi_fail(&o->err, BYOC_EINVAL,
                            "shape of '%s': axis %zu is %lld, expected %lld, "
                            "which another dim or shape gives '%s'",
                            input, i, (long long)dims[i], (long long)size,
                            param);
    }
    return BYOC_OK;
}

static enum byoc_status read_input_dims(struct byi_import *o, const char *input,
                                        const Onnx__TensorShapeProto *shape,
                                        const struct user_params *user,
                                        uint32_t *rank, int64_t *dims)
{
    const char *user_shape = use_value(&user->shapes, input);

    if (user_shape && !read_shape(user_shape, rank, dims))
        return byi_fail(&o->err, BYOC_EINVAL,
                        "shape of '%s': found '%s', expected at most %d "
                        "numbers separated by 'x'",
                        input, user_shape, BYI_MAX_RANK);
    if (user_shape && shape && shape->n_dim != *rank)
        return byi_fail(&o->err, BYOC_EINVAL,
                        "shape of '%s': found rank %u, expected %zu, the rank "
                        "of the model's input",
                        input, *rank, shape->n_dim);
    if (user_shape)
        return shape ? check_sizes(o, input, shape, user, dims) : BYOC_OK;
    if (!shape)
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "input '%s': found no shape, expected one; give it "
                        "with --shape, such as %s=1x3x224x224",
                        input, input);
    if (shape->n_dim > BYI_MAX_RANK)
        return byi_fail(&o->err, BYOC_ELIMIT,
                        "input '%s' has rank %zu, expected at most %d", input,
                        shape->n_dim, BYI_MAX_RANK);
    *rank = (uint32_t)shape->n_dim;
    return read_dims(o, shape, user, dims);
}

/* Fill t with the number in `text`. Returns false if the text is not a number,
 * or not an integer and the type is one. */
static bool read_value(const char *text, struct byi_tensor *t)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    char *end = NULL;

    errno = 0;
    const double value = strtod(text, &end);
    if (*text == '\0' || *end || errno ||
        (byi_dtype_is_int(t->dtype) && value != (double)(int64_t)value))
        return false;
    for (int64_t i = 0; i < n; i++)
        byi_tensor_set(t, i, value);
    return true;
}

/* Make an input with a fixed value: a constant whose elements all have it. */
static byi_id make_fixed_input(struct byi_import *o, const char *input,
                               const struct byi_type *type, const char *text)
{
    struct byi_tensor t = {0};

    if (byi_type_is_static(type) &&
        !byi_consts_can_grow(o->m, byi_type_bytes(type))) {
        o->status = byi_fail(&o->err, BYOC_ELIMIT,
                             "value of '%s': found a constant of %llu bytes, "
                             "expected at most %llu, which are left of the "
                             "limit on constants; give the input a smaller "
                             "shape, or do not fix its value",
                             input, (unsigned long long)byi_type_bytes(type),
                             (unsigned long long)byi_consts_left(o->m));
        return BYI_NO_ID;
    }
    if (!byi_type_is_static(type) || byoc_dtype_size(type->dtype) == 0 ||
        byoc_dtype_size(type->dtype) > 8 || !byi_const_alloc(o->m, type, &t)) {
        o->status = byi_fail(&o->err, BYOC_EINVAL,
                             "value of '%s': found %s elements with %s dims, "
                             "expected numbers with known dims; fix dims with "
                             "--dim or --shape",
                             input, byoc_dtype_name(type->dtype),
                             byi_type_is_static(type) ? "known" : "symbolic");
        return BYI_NO_ID;
    }
    if (!read_value(text, &t)) {
        o->status = byi_fail(&o->err, BYOC_EINVAL,
                             "value of '%s': found '%s', expected a number "
                             "that fits %s",
                             input, text, byoc_dtype_name(type->dtype));
        return BYI_NO_ID;
    }
    return byi_add_const(o->m, o->f, byi_const_add(o->m, type, t.data, true),
                         byi_sources_none());
}

/* Returns the type of an element of a list, with the dims that the file
 * declares, if any; NULL for an unknown dtype. */
static const struct byi_type *element_type(struct byi_import *o,
                                           const Onnx__TypeProto__Tensor *t)
{
    const enum byoc_dtype dtype = (enum byoc_dtype)t->elem_type;
    int64_t dims[BYI_MAX_RANK];

    if (!t->has_elem_type || !byoc_dtype_name(dtype))
        return NULL;
    if (!t->shape || t->shape->n_dim > BYI_MAX_RANK)
        return byi_type_of_any(o->m->arena, BYI_ANY_TENSOR, dtype);
    for (size_t d = 0; d < t->shape->n_dim; d++) {
        const Onnx__TensorShapeProto__Dimension *dim = t->shape->dim[d];
        dims[d] = BYI_ANY_DIM;
        if (dim->value_case ==
                ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE &&
            dim->dim_value >= 0)
            dims[d] = dim->dim_value;
    }
    return byi_type_tensor(o->m->arena, dtype, (uint32_t)t->shape->n_dim, dims);
}

/* Returns the type of a sequence or optional of tensors; NULL for another type.
 */
static const struct byi_type *list_type(struct byi_import *o,
                                        const Onnx__TypeProto *type)
{
    enum { NESTED = 3 };
    enum byi_type_kind kinds[NESTED];
    uint32_t n = 0;

    for (; type && n < NESTED; n++) {
        if (type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
            kinds[n] = BYI_SEQ;
            type = type->sequence_type->elem_type;
        } else if (type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
            kinds[n] = BYI_OPTIONAL;
            type = type->optional_type->elem_type;
        } else {
            break;
        }
    }
    if (n == 0 || !type ||
        type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return NULL;
    const struct byi_type *list = element_type(o, type->tensor_type);
    while (list && n-- > 0)
        list = byi_type_list(o->m->arena, kinds[n], list);
    return list;
}

/* Refuse an input of an unsupported type; the message names the type and the
 * first operator that reads the input. */
static enum byoc_status refuse_input(struct byi_import *o, const char *name,
                                     const Onnx__TypeProto *type)
{
    static const char *const kinds[] = {
        [ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE] = "a sequence",
        [ONNX__TYPE_PROTO__VALUE_MAP_TYPE] = "a map",
        [ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE] = "an optional",
        [ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE] = "a sparse tensor",
    };
    const Onnx__GraphProto *graph = o->file->model->graph;
    const unsigned value_case = type ? (unsigned)type->value_case : 0;
    const char *kind = value_case < BYI_COUNT(kinds) && kinds[value_case]
                           ? kinds[value_case]
                           : "untyped";

    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_input; k++)
            if (strcmp(graph->node[i]->input[k], name) == 0)
                return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                                "input '%s' of operator %s is %s, expected a "
                                "tensor, or a sequence or optional of tensors",
                                name, byi_text_or(graph->node[i]->op_type, "?"),
                                kind);
    return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                    "input '%s' is %s, expected a tensor, or a sequence or "
                    "optional of tensors",
                    name, kind);
}

static enum byoc_status add_input(struct byi_import *o,
                                  const Onnx__ValueInfoProto *info,
                                  const struct user_params *user)
{
    const char *name = byi_text_or(info->name, "");
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = 0;

    if (is_weight(o, name))
        return BYOC_OK;
    if (*name == '\0')
        return byi_fail(&o->err, BYOC_EPARSE,
                        "found an input without a name, expected a name");
    struct byi_name *entry = byi_names_add(&o->scope->names, name);
    if (!entry)
        return byi_fail(&o->err, BYOC_EPARSE,
                        "input '%s': the name is already defined, expected a "
                        "new one",
                        name);
    const struct byi_type *list = list_type(o, info->type);
    if (list) {
        entry->id =
            byi_add_param(o->m, o->f, byi_arena_str(o->m->arena, name), list);
        return BYOC_OK;
    }
    if (byi_import_map_input(o, name, info->type, &entry->id)) {
        if (byi_names_add(&o->scope->names, byi_import_keys_name(o, name)))
            return BYOC_OK;
        return byi_fail(&o->err, BYOC_EPARSE,
                        "input '%s' is a map, but the name of its keys, '%s', "
                        "is already defined, expected it to be free",
                        name, byi_import_keys_name(o, name));
    }
    if (!info->type ||
        info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return refuse_input(o, name, info->type);
    const Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    const enum byoc_dtype dtype = (enum byoc_dtype)tensor->elem_type;
    if (!tensor->has_elem_type || !byoc_dtype_name(dtype))
        return byi_fail(&o->err, BYOC_EUNSUPPORTED,
                        "input '%s' has the unknown element type %d, expected "
                        "a TensorProto.DataType",
                        name, tensor->elem_type);
    BYI_TRY(read_input_dims(o, name, tensor->shape, user, &rank, dims));
    const struct byi_type *type =
        byi_type_tensor(o->m->arena, dtype, rank, dims);
    const char *value = use_value(&user->values, name);
    entry->id = value ? make_fixed_input(o, name, type, value)
                      : byi_add_param(o->m, o->f,
                                      byi_arena_str(o->m->arena, name), type);
    return o->status;
}

/* Make symbols of the dims that the model calls "?0", "?1" and so on, so that
 * unnamed dims get other names. */
static void reserve_names(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file->model->graph;

    for (size_t i = 0; i < graph->n_input; i++) {
        const Onnx__TensorShapeProto *shape = shape_of_input(graph->input[i]);
        for (size_t k = 0; shape && k < shape->n_dim; k++)
            if (param_of_dim(shape->dim[k])[0] == '?')
                byi_symbol(o->m, param_of_dim(shape->dim[k]));
    }
}

enum byoc_status byi_onnx_add_inputs(struct byi_import *o)
{
    const Onnx__GraphProto *graph = o->file->model->graph;
    struct user_params user = {.dims = read_list(o, o->params->dims),
                               .shapes = read_list(o, o->params->shapes),
                               .values = read_list(o, o->params->values),
                               .symbols = byi_names_new(o->scratch)};

    reserve_names(o);
    for (size_t i = 0; user.shapes.n && i < graph->n_input; i++)
        note_sizes(o, &user, graph->input[i]);
    for (size_t i = 0; i < graph->n_input; i++)
        BYI_TRY(add_input(o, graph->input[i], &user));
    return check_used(o, &user);
}
