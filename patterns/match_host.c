/* SPDX-License-Identifier: Apache-2.0 */
/* match_host.c: the match_* services of struct byoc_host: a backend's predicate
 * uses them to query a match and to write messages.
 */
#include "patterns.h"

#include "core/ir/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct byi_match *as_match(const struct byoc_match *m)
{
    return (const struct byi_match *)(const void *)m;
}

/* Store a tensor's type. Returns 0 if the type is a tuple's. */
static int get_type(const struct byi_type *type, uint32_t *dtype,
                    uint32_t *rank, const int64_t **dims)
{
    if (type->kind != BYI_TENSOR)
        return 0;
    *dtype = (uint32_t)type->dtype;
    *rank = type->rank;
    *dims = type->dims;
    return 1;
}

static const struct byi_bound_operand *find_bound(const struct byi_match *match,
                                                  const char *name)
{
    for (uint32_t i = 0; i < match->n_bound; i++)
        if (strcmp(match->bound[i].name, name) == 0)
            return &match->bound[i];
    return NULL;
}

/* The value of operand `name`, or of the root if `name` is NULL; NULL if the
 * match has no such operand. */
static const struct byi_node *find_value(const struct byi_match *match,
                                         const char *name)
{
    if (!name)
        return byi_match_node(match, match->root);
    const struct byi_bound_operand *bound = find_bound(match, name);
    return bound ? byi_match_node(match, bound->value) : NULL;
}

static int match_type(const struct byoc_match *m, const char *name,
                      uint32_t *dtype, uint32_t *rank, const int64_t **dims)
{
    const struct byi_node *node = find_value(as_match(m), name);
    return node ? get_type(node->type, dtype, rank, dims) : 0;
}

static const void *match_const(const struct byoc_match *m, const char *name,
                               uint64_t *bytes)
{
    const struct byi_match *match = as_match(m);
    const struct byi_bound_operand *bound = find_bound(match, name);
    if (!bound)
        return NULL;
    const struct byi_node *node = byi_match_node(match, bound->value);
    if (node->kind != BYI_CONST)
        return NULL;
    *bytes = match->m->consts.at[node->index].bytes;
    return match->m->consts.at[node->index].data;
}

static uint32_t match_n_ops(const struct byoc_match *m)
{
    return as_match(m)->n_ops;
}

static const struct byi_node *match_node(const struct byoc_match *m, uint32_t i)
{
    const struct byi_match *match = as_match(m);
    return i < match->n_ops ? byi_match_node(match, match->ops[i]) : NULL;
}

static const char *match_op(const struct byoc_match *m, uint32_t i)
{
    const struct byi_node *node = match_node(m, i);
    if (!node)
        return NULL;
    if (node->kind == BYI_IF)
        return "if";
    return node->kind == BYI_CALL_OP ? byi_op(node->op)->name : "tuple";
}

static int match_op_type(const struct byoc_match *m, uint32_t i,
                         uint32_t *dtype, uint32_t *rank, const int64_t **dims)
{
    const struct byi_node *node = match_node(m, i);
    return node ? get_type(node->type, dtype, rank, dims) : 0;
}

static const struct byi_attr *match_attr(const struct byoc_match *m, uint32_t i,
                                         const char *name)
{
    const struct byi_node *node = match_node(m, i);
    return node ? byi_attr_find(node->attrs, name) : NULL;
}

static int match_ints(const struct byoc_match *m, uint32_t i, const char *name,
                      const int64_t **values, uint32_t *n)
{
    const struct byi_attr *attr = match_attr(m, i, name);
    if (!attr)
        return 0;
    switch (attr->kind) {
    case BYI_ATTR_INTS:
        *values = attr->ints;
        *n = attr->n;
        return 1;
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        *values = &attr->i;
        *n = 1;
        return 1;
    default:
        return 0;
    }
}

static int match_floats(const struct byoc_match *m, uint32_t i,
                        const char *name, const double **values, uint32_t *n)
{
    const struct byi_attr *attr = match_attr(m, i, name);
    const bool is_single = attr && attr->kind == BYI_ATTR_FLOAT;
    if (!is_single && (!attr || attr->kind != BYI_ATTR_FLOATS))
        return 0;
    *values = is_single ? &attr->f : attr->floats;
    *n = is_single ? 1 : attr->n;
    return 1;
}

static int match_strings(const struct byoc_match *m, uint32_t i,
                         const char *name, const char *const **values,
                         uint32_t *n)
{
    const struct byi_attr *attr = match_attr(m, i, name);
    const bool is_single = attr && attr->kind == BYI_ATTR_STRING;
    if (!is_single && (!attr || attr->kind != BYI_ATTR_STRINGS))
        return 0;
    *values = is_single ? &attr->s : attr->strings;
    *n = is_single ? 1 : attr->n;
    return 1;
}

static int match_float(const struct byoc_match *m, uint32_t i, const char *name,
                       double *value)
{
    const struct byi_attr *attr = match_attr(m, i, name);
    if (!attr || attr->kind != BYI_ATTR_FLOAT)
        return 0;
    *value = attr->f;
    return 1;
}

static const char *match_string(const struct byoc_match *m, uint32_t i,
                                const char *name)
{
    const struct byi_attr *attr = match_attr(m, i, name);
    return attr && attr->kind == BYI_ATTR_STRING ? attr->s : NULL;
}

/* --- messages ------------------------------------------------------------- */

/* The memory that is left for text in the match. */
static char *remaining_text(const struct byi_match *match, size_t *n)
{
    *n = sizeof match->texts->at - match->texts->n;
    return match->texts->at + match->texts->n;
}

/* Keep the text that the caller wrote to the memory of remaining_text(). */
static const char *keep_text(const struct byi_match *match, char *text)
{
    match->texts->n += strlen(text) + 1;
    if (match->texts->n >= sizeof match->texts->at)
        /* the memory is full: its last byte, a NUL, is the text of all later
         * calls, "" */
        match->texts->n = sizeof match->texts->at - 1;
    return text;
}

static const char *match_say(const struct byoc_match *m, const char *format,
                             ...)
{
    size_t n;
    char *text = remaining_text(as_match(m), &n);
    va_list list;
    va_start(list, format);
    vsnprintf(text, n, format, list);
    va_end(list);
    return keep_text(as_match(m), text);
}

static const char *show_node(const struct byi_match *match,
                             const struct byi_node *node)
{
    size_t n;
    char *text = remaining_text(match, &n);
    if (!node)
        return "nothing";
    byi_text_type_buf(match->m, node->type, text, n < 160 ? n : 160);
    return keep_text(match, text);
}

static const char *match_show(const struct byoc_match *m, const char *name)
{
    return show_node(as_match(m), find_value(as_match(m), name));
}

static const char *match_show_op(const struct byoc_match *m, uint32_t i)
{
    return show_node(as_match(m), match_node(m, i));
}

static uint32_t match_find(const struct byoc_match *m, const char *name)
{
    const struct byi_match *match = as_match(m);
    for (uint32_t i = 0; i < match->n_named; i++) {
        if (strcmp(match->named[i].name, name) != 0)
            continue;
        for (uint32_t k = 0; k < match->n_ops; k++)
            if (match->ops[k] == match->named[i].value)
                return k;
    }
    return UINT32_MAX;
}

void byi_match_host(struct byoc_host *host)
{
    host->match_type = match_type;
    host->match_const = match_const;
    host->match_n_ops = match_n_ops;
    host->match_op = match_op;
    host->match_op_type = match_op_type;
    host->match_ints = match_ints;
    host->match_floats = match_floats;
    host->match_strings = match_strings;
    host->match_float = match_float;
    host->match_string = match_string;
    host->match_say = match_say;
    host->match_show = match_show;
    host->match_show_op = match_show_op;
    host->match_find = match_find;
}
