/* SPDX-License-Identifier: Apache-2.0 */
/* attrs.c: attributes of operators: looks them up, and adds the defaults that
 * the operator's table declares. The table has the defaults as text, which is
 * parsed here, so that table, parser and docs agree.
 */
#include "ops.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [BYI_ATTR_INT] = "an integer",
    [BYI_ATTR_FLOAT] = "a float",
    [BYI_ATTR_BOOL] = "true or false",
    [BYI_ATTR_STRING] = "a string",
    [BYI_ATTR_DTYPE] = "a dtype",
    [BYI_ATTR_INTS] = "a list of integers",
    [BYI_ATTR_FLOATS] = "a list of floats",
    [BYI_ATTR_STRINGS] = "a list of strings",
};

const char *byi_attr_kind_text(enum byi_attr_kind kind)
{
    return kind_names[kind];
}

const struct byi_attr *byi_attr_find(const struct byi_attrs *attrs,
                                     const char *name)
{
    for (uint32_t i = 0; i < attrs->n; i++)
        if (strcmp(attrs->at[i].name, name) == 0)
            return &attrs->at[i];
    return NULL;
}

int64_t byi_attr_int(const struct byi_attrs *attrs, const char *name)
{
    const struct byi_attr *a = byi_attr_find(attrs, name);

    assert(a && (a->kind == BYI_ATTR_INT || a->kind == BYI_ATTR_BOOL ||
                 a->kind == BYI_ATTR_DTYPE));
    return a->i;
}

uint32_t byi_attr_axis(const struct byi_attrs *attrs, uint32_t rank)
{
    return byi_axis(byi_attr_int(attrs, "axis"), rank);
}

double byi_attr_float(const struct byi_attrs *attrs, const char *name)
{
    const struct byi_attr *a = byi_attr_find(attrs, name);

    assert(a && a->kind == BYI_ATTR_FLOAT);
    return a->f;
}

const char *byi_attr_string(const struct byi_attrs *attrs, const char *name)
{
    const struct byi_attr *a = byi_attr_find(attrs, name);

    assert(a && a->kind == BYI_ATTR_STRING);
    return a->s;
}

const int64_t *byi_attr_ints(const struct byi_attrs *attrs, const char *name,
                             uint32_t *n)
{
    const struct byi_attr *a = byi_attr_find(attrs, name);

    assert(a && a->kind == BYI_ATTR_INTS);
    *n = a->n;
    return a->ints;
}

const double *byi_attr_floats(const struct byi_attrs *attrs, const char *name,
                              uint32_t *n)
{
    const struct byi_attr *a = byi_attr_find(attrs, name);

    assert(a && a->kind == BYI_ATTR_FLOATS);
    *n = a->n;
    return a->floats;
}

double byi_attr_number(const struct byi_attr *attr)
{
    switch (attr->kind) {
    case BYI_ATTR_FLOAT:
        return attr->f;
    case BYI_ATTR_STRING:
        return strcmp(attr->s, "tanh") == 0;
    default:
        return (double)attr->i;
    }
}

static bool strings_equal(const struct byi_attr *a, const struct byi_attr *b)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (strcmp(a->strings[i], b->strings[i]) != 0)
            return false;
    return true;
}

static bool bytes_equal(const void *a, const void *b, size_t n)
{
    return n == 0 || memcmp(a, b, n) == 0;
}

bool byi_attr_equal(const struct byi_attr *a, const struct byi_attr *b)
{
    return a == b ||
           (strcmp(a->name, b->name) == 0 && byi_attr_value_equal(a, b));
}

bool byi_attr_value_equal(const struct byi_attr *a, const struct byi_attr *b)
{
    if (a->kind != b->kind)
        return false;
    switch (a->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        return a->i == b->i;
    case BYI_ATTR_FLOAT:
        return memcmp(&a->f, &b->f, sizeof a->f) == 0;
    case BYI_ATTR_STRING:
        return strcmp(a->s, b->s) == 0;
    case BYI_ATTR_INTS:
        return a->n == b->n &&
               bytes_equal(a->ints, b->ints, a->n * sizeof *a->ints);
    case BYI_ATTR_FLOATS:
        return a->n == b->n &&
               bytes_equal(a->floats, b->floats, a->n * sizeof *a->floats);
    case BYI_ATTR_STRINGS:
        return a->n == b->n && strings_equal(a, b);
    }
    byi_unreachable();
}

bool byi_attrs_equal(const struct byi_attrs *a, const struct byi_attrs *b)
{
    if (a == b)
        return true;
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!byi_attr_equal(&a->at[i], &b->at[i]))
            return false;
    return true;
}

/* --- defaults ----------------------------------------------------------- */

/* Count the entries of a list in the table's notation, such as "[1, 2]" or
 * "[]".
 */
static uint32_t count_list(const char *text)
{
    uint32_t n = 1;

    assert(text[0] == '[');
    if (text[1] == ']')
        return 0;
    for (; *text; text++)
        n += *text == ',';
    return n;
}

static void parse_ints(struct byi_arena *arena, const char *text,
                       struct byi_attr *attr)
{
    int64_t *at = NULL;
    char *end = NULL;

    attr->n = count_list(text);
    at = byi_arena_calloc(arena, attr->n, sizeof *at);
    for (uint32_t i = 0; i < attr->n; i++, text = end)
        at[i] = strtoll(text + 1, &end, 10);
    attr->ints = at;
}

static void parse_floats(struct byi_arena *arena, const char *text,
                         struct byi_attr *attr)
{
    double *at = NULL;
    char *end = NULL;

    attr->n = count_list(text);
    at = byi_arena_calloc(arena, attr->n, sizeof *at);
    for (uint32_t i = 0; i < attr->n; i++, text = end)
        at[i] = byi_strtod(text + 1, &end);
    attr->floats = at;
}

static void parse_default(struct byi_arena *arena,
                          const struct byi_attr_def *def, struct byi_attr *attr)
{
    const char *text = def->default_text;

    switch (def->kind) {
    case BYI_ATTR_INT:
        attr->i = strtoll(text, NULL, 10);
        break;
    case BYI_ATTR_FLOAT:
        attr->f = byi_strtod(text, NULL);
        break;
    case BYI_ATTR_BOOL:
        attr->i = strcmp(text, "true") == 0;
        break;
    case BYI_ATTR_STRING:
        assert(text[0] == '"');
        attr->s = byi_arena_strn(arena, text + 1, strlen(text) - 2);
        break;
    case BYI_ATTR_DTYPE:
        attr->i = byi_dtype_of_name(text, strlen(text));
        assert(attr->i != BYOC_NONE);
        break;
    case BYI_ATTR_INTS:
        parse_ints(arena, text, attr);
        break;
    case BYI_ATTR_FLOATS:
        parse_floats(arena, text, attr);
        break;
    case BYI_ATTR_STRINGS:
        assert(strcmp(text, "[]") == 0);
        attr->strings = byi_arena_alloc(arena, 0);
        break;
    }
}

/* --- the attributes of a call --------------------------------------------- */

static bool is_list(enum byi_attr_kind kind)
{
    return kind == BYI_ATTR_INTS || kind == BYI_ATTR_FLOATS ||
           kind == BYI_ATTR_STRINGS;
}

static const char *const *copy_strings(struct byi_arena *arena,
                                       const struct byi_attr *from)
{
    const char **at = byi_arena_calloc(arena, from->n, sizeof *at);

    for (uint32_t i = 0; i < from->n; i++)
        at[i] = byi_arena_str(arena, from->strings[i]);
    return at;
}

static const double *widen_ints(struct byi_arena *arena,
                                const struct byi_attr *from)
{
    double *at = byi_arena_calloc(arena, from->n, sizeof *at);

    for (uint32_t i = 0; i < from->n; i++)
        at[i] = (double)from->ints[i];
    return at;
}

/* Copy `from`, converted to the kind of attr; false if that is impossible. */
static bool convert_attr(struct byi_arena *arena, const struct byi_attr *from,
                         struct byi_attr *attr)
{
    attr->n = is_list(from->kind) ? from->n : 0;
    if (is_list(from->kind) && is_list(attr->kind) && from->n == 0) {
        attr->ints = byi_arena_alloc(arena, 0); /* [] is a list of any kind */
        return true;
    }
    if (attr->kind == BYI_ATTR_FLOAT && from->kind == BYI_ATTR_INT) {
        attr->f = (double)from->i;
        return true;
    }
    if (attr->kind == BYI_ATTR_FLOATS && from->kind == BYI_ATTR_INTS) {
        attr->floats = widen_ints(arena, from);
        return true;
    }
    if (attr->kind != from->kind)
        return false;
    if (from->kind == BYI_ATTR_FLOAT)
        attr->f = from->f;
    else if (from->kind == BYI_ATTR_STRING)
        attr->s = byi_arena_str(arena, from->s);
    else if (from->kind == BYI_ATTR_INTS)
        attr->ints =
            byi_arena_copy(arena, from->ints, from->n * sizeof *from->ints);
    else if (from->kind == BYI_ATTR_FLOATS)
        attr->floats =
            byi_arena_copy(arena, from->floats, from->n * sizeof *from->floats);
    else if (from->kind == BYI_ATTR_STRINGS)
        attr->strings = copy_strings(arena, from);
    else
        attr->i = from->i;
    return true;
}

static enum byoc_status check_value(const struct byi_op *op,
                                    const struct byi_attr *attr,
                                    struct byoc_error *err)
{
    if (attr->kind == BYI_ATTR_DTYPE &&
        (attr->i < 0 || attr->i > BYI_LAST_DTYPE ||
         !byoc_dtype_name((enum byoc_dtype)attr->i)))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: attribute %s is %lld, expected a dtype", op->name,
                        attr->name, (long long)attr->i);
    return BYOC_OK;
}

const char *byi_op_attrs_text(char *buf, size_t n, const struct byi_op *op)
{
    size_t used = 0;

    snprintf(buf, n, "no attributes");
    for (uint32_t i = 0; i < op->n_attrs && used < n; i++)
        used += (size_t)snprintf(buf + used, n - used, "%s%s", i ? ", " : "",
                                 op->attrs[i].name);
    return buf;
}

/* Put a copy of `from` at the position that the table gives it. */
static enum byoc_status place_attr(struct byi_arena *arena,
                                   const struct byi_op *op,
                                   const struct byi_attr *from,
                                   struct byi_attr *at, bool *seen,
                                   struct byoc_error *err)
{
    char names[400];

    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const struct byi_attr_def *def = &op->attrs[i];
        if (strcmp(def->name, from->name) != 0)
            continue;
        if (seen[i])
            return byi_fail(err, BYOC_EINVAL,
                            "%s: attribute %s is given twice, expected it once",
                            op->name, def->name);
        seen[i] = true;
        at[i].kind = def->kind;
        at[i].name = def->name;
        if (!convert_attr(arena, from, &at[i]))
            return byi_fail(err, BYOC_EINVAL,
                            "%s: attribute %s is %s, expected %s", op->name,
                            def->name, kind_names[from->kind],
                            kind_names[def->kind]);
        return check_value(op, &at[i], err);
    }
    return byi_fail(err, BYOC_EINVAL, "%s: found attribute %s, expected %s",
                    op->name, from->name,
                    byi_op_attrs_text(names, sizeof names, op));
}

enum byoc_status byi_attrs_make(struct byi_arena *arena,
                                const struct byi_op *op,
                                const struct byi_attr *list, uint32_t n,
                                const struct byi_attrs **attrs,
                                struct byoc_error *err)
{
    static const struct byi_attrs none = {0};
    enum { MAX_ATTRS = 32 };
    bool seen[MAX_ATTRS] = {0};
    struct byi_attr *at = NULL;
    struct byi_attrs *result = NULL;

    assert(op->n_attrs <= MAX_ATTRS);
    if (op->n_attrs > 0)
        at = byi_arena_calloc(arena, op->n_attrs, sizeof *at);
    for (uint32_t i = 0; i < n; i++)
        BYI_TRY(place_attr(arena, op, &list[i], at, seen, err));
    if (op->n_attrs == 0) {
        *attrs = &none;
        return BYOC_OK;
    }
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const struct byi_attr_def *def = &op->attrs[i];
        if (seen[i])
            continue;
        if (!def->default_text)
            return byi_fail(err, BYOC_EINVAL,
                            "%s: attribute %s is missing, expected %s",
                            op->name, def->name, kind_names[def->kind]);
        at[i].name = def->name;
        at[i].kind = def->kind;
        parse_default(arena, def, &at[i]);
    }
    result = byi_arena_alloc(arena, sizeof *result);
    *result = (struct byi_attrs){.n = op->n_attrs, .at = at};
    *attrs = result;
    return BYOC_OK;
}
