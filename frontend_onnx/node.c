/* SPDX-License-Identifier: Apache-2.0 */
/* node.c: the helper functions of converters: failures, attributes, operands
 * and constants of the current node (see struct byi_import).
 */
#include "frontend_onnx/import.h"

#include <stdlib.h>
#include <string.h>

/* --- failures ------------------------------------------------------------- */

bool byi_import_ok(const struct byi_import *o)
{
    return o->status == BYOC_OK;
}

void byi_import_refuse(struct byi_import *o, const char *why, ...)
{
    char text[400];

    if (!byi_import_ok(o))
        return;
    BYI_FORMAT(text, why);
    o->status =
        byi_fail(&o->err, BYOC_EUNSUPPORTED,
                 "node %.200s: operator %.100s (domain %.100s, opset %lld) is "
                 "not supported: %s",
                 o->name, o->node->op_type ? o->node->op_type : "(none)",
                 byi_onnx_domain(o->node->domain), (long long)o->opset, text);
}

void byi_import_fail(struct byi_import *o, enum byoc_status status,
                     const char *why, ...)
{
    char text[sizeof o->err.text];

    if (!byi_import_ok(o))
        return;
    BYI_FORMAT(text, why);
    o->status = byi_fail(&o->err, status, "node %.200s (%.100s): %s", o->name,
                         o->node->op_type ? o->node->op_type : "(none)", text);
}

bool byi_import_wants_output(const struct byi_import *o, uint32_t i)
{
    return i < o->n_out && *o->node->output[i] != '\0';
}

/* --- attributes ----------------------------------------------------------- */

static const char *const kinds[] = {
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT] = "a float",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT] = "an int",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING] = "a string",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR] = "a tensor",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH] = "a graph",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS] = "floats",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS] = "ints",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS] = "strings",
    [ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR] = "a sparse tensor",
};

/* Whether the attribute has the field for `type`. */
static bool has_field(const Onnx__AttributeProto *a, int type)
{
    switch (type) {
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT:
        return a->has_f;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT:
        return a->has_i;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING:
        return a->has_s;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR:
        return a->t != NULL;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH:
        return a->g != NULL;
    case ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR:
        return a->sparse_tensor != NULL;
    default: /* an empty list has no field */
        return true;
    }
}

/* Returns how messages describe an attribute without a value of type
 * `expected`. */
static const char *kind_of(const Onnx__AttributeProto *a, int expected)
{
    const unsigned type = a->has_type ? (unsigned)a->type : 0;

    if ((int)type == expected)
        return "without a value";
    return type < BYI_COUNT(kinds) && kinds[type] ? kinds[type]
                                                  : "of another type";
}

const Onnx__AttributeProto *byi_import_attr(struct byi_import *o,
                                            const char *name, int type)
{
    for (size_t i = 0; byi_import_ok(o) && i < o->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = o->node->attribute[i];
        if (!a->name || strcmp(a->name, name) != 0)
            continue;
        o->seen |= UINT64_C(1) << i;
        if (has_field(a, type) && (!a->has_type || (int)a->type == type))
            return a;
        byi_import_fail(o, BYOC_EPARSE, "attribute '%s' is %s, expected %s",
                        name, kind_of(a, type), kinds[type]);
    }
    return NULL;
}

bool byi_import_has_attr(struct byi_import *o, const char *name)
{
    for (size_t i = 0; byi_import_ok(o) && i < o->node->n_attribute; i++) {
        const Onnx__AttributeProto *a = o->node->attribute[i];
        if (a->name && strcmp(a->name, name) == 0)
            return true;
    }
    return false;
}

int64_t byi_import_int(struct byi_import *o, const char *name,
                       int64_t default_value)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);

    return a ? a->i : default_value;
}

/* Returns the shortest decimal that rounds to this float: 0.01, not
 * 0.00999999978, so that an explicit default equals the implicit one. */
static double shortest_double(float value)
{
    char text[32];

    for (int digits = 6; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            return strtod(text, NULL);
    }
    return (double)value;
}

double byi_import_float(struct byi_import *o, const char *name,
                        double default_value)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);

    return a ? shortest_double(a->f) : default_value;
}

const char *byi_import_string(struct byi_import *o, const char *name,
                              const char *default_value)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);

    if (!a)
        return default_value;
    return byi_arena_strn(o->scratch, (const char *)a->s.data, a->s.len);
}

const Onnx__GraphProto *byi_import_graph(struct byi_import *o, const char *name)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH);

    if (!a)
        byi_import_fail(o, BYOC_EPARSE, "found no graph '%s', expected one",
                        name);
    return a ? a->g : NULL;
}

const int64_t *byi_import_ints(struct byi_import *o, const char *name,
                               uint32_t *n)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);

    *n = 0;
    if (!a)
        return NULL;
    if (a->n_ints > UINT32_MAX) {
        byi_import_fail(o, BYOC_ELIMIT,
                        "attribute '%s' has %zu entries, expected at most %u",
                        name, a->n_ints, UINT32_MAX);
        return NULL;
    }
    *n = (uint32_t)a->n_ints;
    return a->ints;
}

void byi_import_int_list(struct byi_import *o, const char *name, uint32_t n,
                         int64_t default_value, int64_t *list)
{
    uint32_t found = 0;
    const int64_t *entries = byi_import_ints(o, name, &found);

    if (entries && found != n)
        byi_import_fail(o, BYOC_ETYPE,
                        "attribute '%s' has %u entries, expected %u", name,
                        found, n);
    for (uint32_t i = 0; i < n; i++)
        list[i] = entries && found == n ? entries[i] : default_value;
}

const double *byi_import_floats(struct byi_import *o, const char *name,
                                uint32_t *n)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);

    *n = 0;
    if (!a || a->n_floats > UINT32_MAX)
        return NULL;
    double *values =
        byi_arena_calloc(o->scratch, a->n_floats + 1, sizeof *values);
    for (size_t i = 0; i < a->n_floats; i++)
        values[i] = shortest_double(a->floats[i]);
    *n = (uint32_t)a->n_floats;
    return values;
}

const char *const *byi_import_strings(struct byi_import *o, const char *name,
                                      uint32_t *n)
{
    const Onnx__AttributeProto *a = byi_import_attr(
        o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);

    *n = 0;
    if (!a || a->n_strings > UINT32_MAX)
        return NULL;
    const char **texts =
        byi_arena_calloc(o->scratch, a->n_strings + 1, sizeof *texts);
    for (size_t i = 0; i < a->n_strings; i++)
        texts[i] = byi_arena_strn(o->scratch, (const char *)a->strings[i].data,
                                  a->strings[i].len);
    *n = (uint32_t)a->n_strings;
    return texts;
}

bool byi_import_tensor(struct byi_import *o, const char *name,
                       struct byi_tensor *t)
{
    const Onnx__AttributeProto *a =
        byi_import_attr(o, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR);

    if (a && byi_import_ok(o))
        o->status = byi_onnx_decode(o->file, a->t, NULL, t, &o->err);
    return a && byi_import_ok(o);
}

enum byoc_dtype byi_import_dtype_attr(struct byi_import *o, const char *name,
                                      enum byoc_dtype default_value)
{
    const int64_t value = byi_import_int(o, name, BYOC_NONE);

    if (value < 0 || value > BYI_LAST_DTYPE)
        byi_import_refuse(
            o, "attribute '%s' is %lld, expected a known element type", name,
            (long long)value);
    return byi_import_ok(o) && value != BYOC_NONE ? (enum byoc_dtype)value
                                                  : default_value;
}

/* --- operands and their types --------------------------------------------- */

byi_id byi_import_in(const struct byi_import *o, uint32_t i)
{
    return byi_import_ok(o) && i < o->n_in ? o->in[i] : BYI_NO_ID;
}

static const struct byi_type *type_of(const struct byi_import *o, byi_id id)
{
    if (!byi_import_ok(o) || id == BYI_NO_ID)
        return NULL;
    const struct byi_type *type = o->f->nodes.at[id].type;
    return type->kind == BYI_TENSOR ? type : NULL;
}

uint32_t byi_import_rank(const struct byi_import *o, byi_id id)
{
    const struct byi_type *type = type_of(o, id);

    return type ? type->rank : 0;
}

enum byoc_dtype byi_import_dtype(const struct byi_import *o, byi_id id)
{
    const struct byi_type *type = type_of(o, id);

    return type ? type->dtype : BYOC_NONE;
}

int64_t byi_import_dim(const struct byi_import *o, byi_id id, uint32_t axis)
{
    const struct byi_type *type = type_of(o, id);

    return type && axis < type->rank ? type->dims[axis] : -1;
}

uint32_t byi_import_axis(struct byi_import *o, int64_t axis, uint32_t rank)
{
    if (axis < -(int64_t)rank || axis >= (int64_t)rank) {
        byi_import_fail(
            o, BYOC_ETYPE,
            "axis %lld is out of range for rank %u, expected %lld to %lld",
            (long long)axis, rank, -(long long)rank, (long long)rank - 1);
        return 0;
    }
    return byi_axis(axis, rank);
}

const int64_t *byi_import_axes(struct byi_import *o, const int64_t *axes,
                               uint32_t n, uint32_t rank)
{
    int64_t *result = byi_arena_calloc(o->scratch, n + 1, sizeof *result);

    for (uint32_t i = 0; i < n; i++)
        result[i] = byi_import_axis(o, axes[i], rank);
    return result;
}

/* --- constants ------------------------------------------------------------ */

byi_id byi_import_const_of(struct byi_import *o, const struct byi_tensor *t,
                           bool borrow, const struct byi_sources *sources)
{
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const struct byi_type *type =
        byi_type_tensor(o->m->arena, t->dtype, t->rank, t->dims);
    const uint32_t index = byi_const_add_model(o->m, type, t->data, borrow);
    return byi_add_const(o->m, o->f, index, sources);
}

byi_id byi_import_const(struct byi_import *o, const struct byi_tensor *t,
                        bool borrow)
{
    return byi_import_const_of(o, t, borrow, byi_sources_none());
}

byi_id byi_import_array(struct byi_import *o, enum byoc_dtype dtype, uint32_t n,
                        const void *elements)
{
    int64_t none = 0;
    const struct byi_tensor t = {
        .data = n ? (void *)(uintptr_t)elements : &none,
        .dtype = dtype,
        .rank = 1,
        .dims = {n},
    };

    return byi_import_const(o, &t, false);
}

byi_id byi_import_vector(struct byi_import *o, uint32_t n,
                         const int64_t *values)
{
    return byi_import_array(o, BYOC_I64, n, values);
}

byi_id byi_import_series(struct byi_import *o, uint32_t n, int64_t first,
                         int64_t step)
{
    int64_t *values =
        byi_arena_calloc(o->scratch, (size_t)n + 1, sizeof *values);

    for (uint32_t i = 0; i < n; i++)
        values[i] = first + i * step;
    return byi_import_vector(o, n, values);
}

byi_id byi_import_scalar(struct byi_import *o, enum byoc_dtype dtype,
                         double value)
{
    const char *nothing = "";
    int64_t storage[2] = {0};
    struct byi_tensor t = {.data = storage, .dtype = dtype};
    const bool number = byi_dtype_is_float(dtype) || byi_dtype_is_int(dtype) ||
                        dtype == BYOC_BOOL || byi_narrow_bits(dtype);
    const uint64_t bytes = byoc_dtype_size(dtype);

    if (!byi_import_ok(o))
        return BYI_NO_ID;
    if (dtype == BYOC_STRING) { /* the zero of strings is "" */
        t.data = &nothing;
        return byi_import_const(o, &t, false);
    }
    if (number) {
        byi_tensor_set(&t, 0, value);
        return byi_import_const(o, &t, false);
    }
    if (bytes > 0 && bytes <= sizeof storage && value == 0.0)
        return byi_import_const(o, &t, false); /* a complex 0 */
    byi_import_refuse(o, "element type %s, expected numbers, bool or string",
                      byoc_dtype_name(dtype) ? byoc_dtype_name(dtype) : "none");
    return BYI_NO_ID;
}

bool byi_import_const_view(const struct byi_import *o, byi_id id,
                           struct byi_tensor *t)
{
    return byi_import_ok(o) && id != BYI_NO_ID &&
           byi_const_view(o->m, o->f, id, t);
}

bool byi_import_is_const(const struct byi_import *o, uint32_t i)
{
    struct byi_tensor t = {0};

    return byi_import_const_view(o, byi_import_in(o, i), &t);
}

/* View input i. Fails and returns false unless it is a constant scalar or
 * vector of numbers. */
static bool view_const_input(struct byi_import *o, uint32_t i, const char *what,
                             struct byi_tensor *t)
{
    if (!byi_import_const_view(o, byi_import_in(o, i), t)) {
        byi_import_refuse(o, "input '%s' is computed, expected a constant",
                          what);
        return false;
    }
    if (t->rank > 1 || t->dtype == BYOC_C64 || t->dtype == BYOC_C128) {
        byi_import_fail(o, BYOC_ETYPE,
                        "input '%s' has rank %u and type %s, expected a scalar "
                        "or vector of numbers",
                        what, t->rank, byoc_dtype_name(t->dtype));
        return false;
    }
    return true;
}

int64_t byi_import_known_dim(struct byi_import *o, byi_id id, uint32_t axis,
                             const char *what)
{
    const int64_t dim = byi_import_dim(o, id, axis);

    if (byi_import_ok(o) && BYI_IS_SYMBOL(dim))
        byi_import_refuse(o,
                          "found %s of symbolic size, expected a known size; "
                          "fix it with --dim or --shape",
                          what);
    return dim;
}

const int64_t *byi_import_const_ints(struct byi_import *o, uint32_t i,
                                     const char *what, uint32_t *n)
{
    struct byi_tensor t = {0};

    *n = 0;
    if (!view_const_input(o, i, what, &t))
        return NULL;
    const int64_t elements = byi_elements(t.rank, t.dims);
    if (elements > BYI_MAX_ARGS) {
        byi_import_fail(o, BYOC_ELIMIT,
                        "input '%s' has %lld elements, expected at most %d",
                        what, (long long)elements, BYI_MAX_ARGS);
        return NULL;
    }
    int64_t *values =
        byi_arena_calloc(o->scratch, (size_t)elements + 1, sizeof *values);
    for (int64_t k = 0; k < elements; k++)
        values[k] = byi_tensor_int(&t, k);
    *n = (uint32_t)elements;
    return values;
}

int64_t byi_import_const_int(struct byi_import *o, uint32_t i, const char *what)
{
    uint32_t n = 0;
    const int64_t *values = byi_import_const_ints(o, i, what, &n);

    if (byi_import_ok(o) && n != 1)
        byi_import_fail(o, BYOC_ETYPE,
                        "input '%s' has %u elements, expected one", what, n);
    return byi_import_ok(o) ? values[0] : 0;
}
