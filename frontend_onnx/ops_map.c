/* SPDX-License-Identifier: Apache-2.0 */
/* ops_map.c: converts operators on maps of ai.onnx.ml. Two tensors represent a
 * map: the values under the map's own name, the keys as "NAME.keys".
 *
 * A map input becomes two inputs of the same length. ZipMap's result is a
 * sequence of maps that all have the class labels as keys. It becomes the
 * matrix of scores, one row per map. The labels are another output. Between
 * nodes a map is a tuple of values and keys.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* Returns part 0 of a map, its values, or part 1, its keys. */
static byi_id part_of(struct byi_import *o, byi_id map, uint32_t part)
{
    if (byi_import_ok(o) && o->f->nodes.at[map].kind == BYI_MAKE_TUPLE)
        return o->f->nodes.at[map].args[part];
    return byi_import_get(o, map, part);
}

byi_id byi_import_map_values(struct byi_import *o, byi_id map)
{
    return part_of(o, map, 0);
}

byi_id byi_import_map_keys(struct byi_import *o, byi_id map)
{
    return part_of(o, map, 1);
}

/* --- inputs and outputs --------------------------------------------------- */

const char *byi_import_keys_name(struct byi_import *o, const char *name)
{
    return byi_arena_printf(o->m->arena, "%s.keys", name);
}

/* Returns the dtype of the map's values; BYOC_NONE if they are not tensors. */
static enum byoc_dtype value_type(const Onnx__TypeProto__Map *map)
{
    const Onnx__TypeProto *type = map->value_type;

    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
        !type->tensor_type->has_elem_type)
        return BYOC_NONE;
    return (enum byoc_dtype)type->tensor_type->elem_type;
}

bool byi_import_map_input(struct byi_import *o, const char *name,
                          const Onnx__TypeProto *type, byi_id *id)
{
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_MAP_TYPE)
        return false;
    const Onnx__TypeProto__Map *map = type->map_type;
    const enum byoc_dtype value = value_type(map);
    const enum byoc_dtype key =
        map->has_key_type ? (enum byoc_dtype)map->key_type : BYOC_NONE;

    if (!byoc_dtype_name(value) || !byoc_dtype_name(key))
        return false;
    const int64_t n = byi_symbol_new(o->m);
    const byi_id parts[] = {
        byi_add_param(o->m, o->f, byi_arena_str(o->m->arena, name),
                      byi_type_tensor(o->m->arena, value, 1, &n)),
        byi_add_param(o->m, o->f, byi_import_keys_name(o, name),
                      byi_type_tensor(o->m->arena, key, 1, &n)),
    };
    *id = byi_add_tuple(o->m, o->f, parts, 2, byi_sources_none());
    return true;
}

bool byi_import_is_map(const struct byi_import *o, byi_id id)
{
    return o->f->nodes.at[id].type->kind == BYI_TUPLE;
}

/* --- operators ------------------------------------------------------------ */

/* Returns the operand, and fails unless it is a map. */
static byi_id read_map(struct byi_import *o)
{
    const byi_id map = byi_import_in(o, 0);

    if (byi_import_ok(o) && !byi_import_is_map(o, map))
        byi_import_fail(o, BYOC_ETYPE, "its input is not a map, expected one");
    return map;
}

static void convert_zip_map(struct byi_import *o)
{
    uint32_t n = 0;
    const byi_id labels = byi_ml_labels(o, "classlabels_int64s", &n);
    const byi_id scores =
        byi_ml_matrix(o, 0, byi_import_dtype(o, byi_import_in(o, 0)));
    const int64_t columns = byi_import_dim(o, scores, 1);

    if (byi_import_ok(o) && columns >= 0 && columns != n)
        byi_import_fail(o, BYOC_ETYPE,
                        "found %u labels, expected %lld, one for each score", n,
                        (long long)columns);
    if (byi_import_ok(o))
        o->out[0] = byi_add_tuple(o->m, o->f, (byi_id[]){scores, labels}, 2,
                                  o->sources);
}

/* Emit the value of an absent key, 0 or `text`, as a scalar (rank 0) or a
 * vector of one element (rank 1). */
static byi_id emit_absent_value(struct byi_import *o, enum byoc_dtype dtype,
                                const char *text, uint32_t rank)
{
    const struct byi_tensor t = {.data = &text, .dtype = BYOC_STRING};
    const byi_id value = dtype == BYOC_STRING ? byi_import_const(o, &t, false)
                                              : byi_import_scalar(o, dtype, 0);

    return byi_import_add_axes(o, value, 0, rank);
}

/* Add the vocabulary attribute for keys of that type as a vector. */
static byi_id read_vocabulary(struct byi_import *o, bool are_strings)
{
    uint32_t n = 0;

    if (are_strings) {
        const char *const *words =
            byi_import_strings(o, "string_vocabulary", &n);
        if (n)
            return byi_import_array(o, BYOC_STRING, n, words);
    } else {
        const int64_t *words = byi_import_ints(o, "int64_vocabulary", &n);
        if (n)
            return byi_import_vector(o, n, words);
    }
    byi_import_fail(
        o, BYOC_EPARSE,
        "found no vocabulary of the keys' type, expected %s_vocabulary",
        are_strings ? "string" : "int64");
    return BYI_NO_ID;
}

/* Emit the value of each word of the vocabulary, as one row. The default value
 * (0 or "") follows the values; a word that is not a key selects it. */
static void convert_dict_vectorizer(struct byi_import *o)
{
    const byi_id map = read_map(o);
    const byi_id values = byi_import_map_values(o, map),
                 keys = byi_import_map_keys(o, map);
    const bool are_strings = byi_import_dtype(o, keys) == BYOC_STRING;
    const byi_id words = read_vocabulary(o, are_strings);

    const byi_id column = byi_import_add_axes(o, words, 1, 1);
    const byi_id matches = byi_import_cast(
        o, byi_import_call(o, BYI_OP_EQUAL, column, keys), BYOC_I32);
    const byi_id always = byi_import_cast(
        o, byi_import_call(o, BYI_OP_EQUAL, column, column), BYOC_I32);
    const byi_id at = byi_import_emit(
        o, BYI_OP_ARGMAX, ARGS(byi_import_concat(o, matches, always, 1)),
        ATTRS(AN_INT("axis", 1), A_BOOL("keepdims", false)));
    const byi_id candidates = byi_import_concat(
        o, values, emit_absent_value(o, byi_import_dtype(o, values), "", 1), 0);

    o->out[0] = byi_import_add_axes(o, byi_ml_take(o, candidates, at), 0, 1);
}

/* Emit the values, sorted by their keys. */
static byi_id sort_by_key(struct byi_import *o, byi_id keys, byi_id values)
{
    const byi_id n = byi_import_shape_of(o, keys);
    const byi_id order =
        byi_import_emit(o, BYI_OP_TOPK, ARGS(keys, n),
                        ATTRS(AN_INT("axis", 0), A_BOOL("largest", false)));

    return byi_ml_take(o, values, byi_import_get(o, order, 1));
}

/* Emit a vector of max_map elements, of which element i is the value of key i.
 */
static byi_id scatter_by_key(struct byi_import *o, byi_id keys, byi_id values)
{
    const int64_t n = byi_import_int(o, "max_map", 1);

    if (n < 1 || n > UINT32_MAX) {
        byi_import_fail(o, BYOC_EPARSE,
                        "max_map is %lld, expected 1 to 2^32 - 1",
                        (long long)n);
        return BYI_NO_ID;
    }
    const byi_id absent = byi_import_call(
        o, BYI_OP_BROADCAST_TO,
        emit_absent_value(o, byi_import_dtype(o, values), "0.f", 0),
        byi_import_vector(o, 1, &n));
    return byi_import_emit(o, BYI_OP_SCATTER_ELEMENTS,
                           ARGS(absent, keys, values),
                           ATTRS(AN_INT("axis", 0)));
}

static void convert_cast_map(struct byi_import *o)
{
    static const struct {
        const char *name;
        enum byoc_dtype dtype;
    } types[] = {{"TO_FLOAT", BYOC_F32},
                 {"TO_STRING", BYOC_STRING},
                 {"TO_INT64", BYOC_I64}};
    const char *to = byi_import_string(o, "cast_to", "TO_FLOAT");
    const char *form = byi_import_string(o, "map_form", "DENSE");
    const byi_id map = read_map(o);
    const byi_id keys = byi_import_map_keys(o, map);
    enum byoc_dtype dtype = BYOC_NONE;

    for (uint32_t i = 0; i < BYI_COUNT(types); i++)
        if (strcmp(to, types[i].name) == 0)
            dtype = types[i].dtype;
    if (dtype == BYOC_NONE) {
        byi_import_fail(
            o, BYOC_EPARSE,
            "cast_to is '%s', expected TO_FLOAT, TO_STRING or TO_INT64", to);
        return;
    }
    const byi_id values =
        byi_import_cast(o, byi_import_map_values(o, map), dtype);
    if (strcmp(form, "SPARSE") == 0) {
        o->out[0] =
            byi_import_add_axes(o, scatter_by_key(o, keys, values), 0, 1);
        return;
    }
    byi_import_int(o, "max_map", 1);
    if (strcmp(form, "DENSE") != 0)
        byi_import_fail(o, BYOC_EPARSE,
                        "map_form is '%s', expected DENSE or SPARSE", form);
    o->out[0] = byi_import_add_axes(o, sort_by_key(o, keys, values), 0, 1);
}

/* clang-format off */
BYI_ONNX_ROWS(ml_map, BYI_ML,
    {"CastMap", 1, 1, 1, convert_cast_map, BYI_OP_NONE},
    {"DictVectorizer", 1, 1, 1, convert_dict_vectorizer, BYI_OP_NONE},
    {"ZipMap", 1, 1, 1, convert_zip_map, BYI_OP_NONE})
/* clang-format on */
