/* SPDX-License-Identifier: Apache-2.0 */
/* parse_types.c: parses types, attribute values and annotations of the text
 * form.
 */
#include "parse.h"

#include <string.h>

/* --- types -------------------------------------------------------------- */

/* Parse a dim. `in_list`: of the element type of a Seq or an Optional, in which
 * dims have no names, and '?' is any size. */
static enum byoc_status parse_dim(struct byi_parser *p, bool in_list,
                                  int64_t *dim)
{
    const struct byi_token *tok = &p->lex.tok;

    if (in_list && byi_lex_accept(&p->lex, '?')) {
        *dim = BYI_ANY_DIM;
        return BYOC_OK;
    }
    if (in_list)
        return byi_lex_int(&p->lex, 0, INT64_MAX, "a size or '?'", dim, p->err);
    if (tok->kind == BYI_TOK_IDENT || tok->kind == BYI_TOK_STRING) {
        *dim = byi_symbol(p->m, byi_lex_text(p->scratch, tok));
        byi_lex_next(&p->lex);
        return BYOC_OK;
    }
    return byi_lex_int(&p->lex, 0, INT64_MAX,
                       "a size or the name of a symbolic dim", dim, p->err);
}

static enum byoc_status parse_dims(struct byi_parser *p, bool in_list,
                                   uint32_t *rank, int64_t *dims)
{
    BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and the sizes", p->err));
    while (!byi_lex_is(&p->lex, ')')) {
        if (*rank == BYI_MAX_RANK)
            return byi_parse_limit(p, &p->lex.tok, "axes", BYI_MAX_RANK);
        BYI_TRY(parse_dim(p, in_list, &dims[*rank]));
        ++*rank;
        if (!byi_lex_accept(&p->lex, ','))
            break;
    }
    return byi_lex_expect(&p->lex, ')', "',' or ')' after a size", p->err);
}

static enum byoc_status parse_dtype(struct byi_parser *p,
                                    enum byoc_dtype *dtype)
{
    const struct byi_token *tok = &p->lex.tok;

    *dtype = BYOC_NONE;
    if (tok->kind == BYI_TOK_IDENT)
        *dtype = byi_dtype_of_name(tok->at, tok->n);
    if (*dtype == BYOC_NONE)
        return byi_lex_expected(&p->lex, "an element type such as float32",
                                p->err);
    byi_lex_next(&p->lex);
    return BYOC_OK;
}

static enum byoc_status parse_shape(struct byi_parser *p, bool in_list,
                                    const struct byi_type **type)
{
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank = 0;
    enum byoc_dtype dtype;

    BYI_TRY(byi_lex_expect(&p->lex, '[', "'[' and a shape", p->err));
    BYI_TRY(parse_dims(p, in_list, &rank, dims));
    BYI_TRY(byi_lex_expect(&p->lex, ',', "',' and an element type", p->err));
    BYI_TRY(parse_dtype(p, &dtype));
    *type = byi_type_tensor(p->m->arena, dtype, rank, dims);
    return BYOC_OK;
}

enum byoc_status byi_parse_shape(struct byi_parser *p,
                                 const struct byi_type **type)
{
    return parse_shape(p, false, type);
}

/* A type that is being read; its fields so far are fields[base..]. */
enum type_nesting { IN_TUPLE, IN_PARAMS, IN_RESULT, IN_SEQ, IN_OPTIONAL };
struct open_type {
    enum type_nesting kind;
    bool comma; /* a ',' followed the last field */
    uint32_t base;
};

/* The types that are being read, outermost first, and their fields. */
struct types {
    BYI_VEC(struct open_type) open;
    BYI_VEC(const struct byi_type *) fields;
};

static enum byoc_status open_type(struct byi_parser *p, struct types *t,
                                  enum type_nesting kind)
{
    if (t->open.n >= BYI_TEXT_MAX_TYPE_DEPTH)
        return byi_parse_limit(p, &p->lex.tok, "nested types",
                               BYI_TEXT_MAX_TYPE_DEPTH);
    BYI_PUSH(&t->open, ((struct open_type){
                           .kind = kind,
                           .base = t->fields.n,
                       }));
    return BYOC_OK;
}

/* Whether the type that is read now is the element type of a Seq or Optional.
 */
static bool reads_element(const struct types *t)
{
    const struct open_type *top = t->open.n ? &t->open.at[t->open.n - 1] : NULL;

    return top && (top->kind == IN_SEQ || top->kind == IN_OPTIONAL);
}

/* Parse the rest of an element's type after "Tensor": [(2, ?), float32], [any,
 * float32] or [none, float32]. */
static enum byoc_status parse_element_type(struct byi_parser *p,
                                           const struct byi_type **type)
{
    const struct byi_token open = byi_lex_peek(&p->lex);
    enum byi_type_kind kind = BYI_TENSOR;
    enum byoc_dtype dtype;

    if (open.kind == BYI_TOK_IDENT && open.n == 3 &&
        memcmp(open.at, "any", 3) == 0)
        kind = BYI_ANY_TENSOR;
    if (open.kind == BYI_TOK_IDENT && open.n == 4 &&
        memcmp(open.at, "none", 4) == 0)
        kind = BYI_NO_TENSOR;
    if (kind == BYI_TENSOR)
        return parse_shape(p, true, type);
    BYI_TRY(byi_lex_expect(&p->lex, '[', "'[' and a shape", p->err));
    byi_lex_next(&p->lex);
    BYI_TRY(byi_lex_expect(&p->lex, ',', "',' and an element type", p->err));
    BYI_TRY(parse_dtype(p, &dtype));
    *type = byi_type_of_any(p->m->arena, kind, dtype);
    return BYOC_OK;
}

/* Read a type up to its end, or up to its first field: then *type is NULL. */
static enum byoc_status start_type(struct byi_parser *p, struct types *t,
                                   const struct byi_type **type)
{
    *type = NULL;
    if (t->open.n > 0 && t->open.at[t->open.n - 1].kind != IN_RESULT &&
        !reads_element(t) && byi_lex_is(&p->lex, ')'))
        return BYOC_OK; /* no field, or no further one */
    if (byi_lex_accept_word(&p->lex, "Tensor")) {
        BYI_TRY(reads_element(t) ? parse_element_type(p, type)
                                 : byi_parse_shape(p, type));
        return byi_lex_expect(&p->lex, ']', "']' after an element type",
                              p->err);
    }
    for (int kind = IN_SEQ; kind <= IN_OPTIONAL; kind++)
        if (byi_lex_accept_word(&p->lex, kind == IN_SEQ ? "Seq" : "Optional")) {
            BYI_TRY(byi_lex_expect(&p->lex, '[', "'[' and a type", p->err));
            return open_type(p, t, (enum type_nesting)kind);
        }
    if (reads_element(t))
        return byi_lex_expected(&p->lex, "a tensor's or a sequence's type",
                                p->err);
    if (byi_lex_accept_word(&p->lex, "fn")) {
        BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and the parameters' types",
                               p->err));
        return open_type(p, t, IN_PARAMS);
    }
    if (byi_lex_accept(&p->lex, '('))
        return open_type(p, t, IN_TUPLE);
    return byi_lex_expected(&p->lex,
                            "a type: Tensor[(sizes), element type], "
                            "Seq[T], Optional[T], (T, U) or fn (T) -> U",
                            p->err);
}

/* Close the innermost open type at its ')'. *type is the type; NULL: it is a
 * function's, whose result comes next. */
static enum byoc_status close_type(struct byi_parser *p, struct types *t,
                                   const struct byi_type **type)
{
    struct open_type *o = &t->open.at[t->open.n - 1];
    uint32_t n = t->fields.n - o->base;

    *type = NULL;
    BYI_TRY(byi_lex_expect(&p->lex, ')', "',' or ')' after a type", p->err));
    if (o->kind == IN_PARAMS) {
        o->kind = IN_RESULT;
        return byi_lex_expect(&p->lex, BYI_TOK_ARROW,
                              "'->' and the result's type", p->err);
    }
    if (n == 1 && !o->comma)
        *type = t->fields.at[o->base];
    else
        *type = byi_type_tuple(p->m->arena, n, t->fields.at + o->base);
    t->fields.n = o->base;
    t->open.n--;
    return BYOC_OK;
}

/* Add a complete type to the enclosing one; *type is the enclosing type if it
 * is complete now, otherwise NULL. */
static enum byoc_status take_type(struct byi_parser *p, struct types *t,
                                  const struct byi_type **type)
{
    struct open_type *o = &t->open.at[t->open.n - 1];

    if (reads_element(t)) {
        *type = byi_type_list(
            p->m->arena, o->kind == IN_SEQ ? BYI_SEQ : BYI_OPTIONAL, *type);
        t->open.n--;
        return byi_lex_expect(&p->lex, ']', "']' after an element's type",
                              p->err);
    }
    if (o->kind == IN_RESULT) {
        *type = byi_type_func(p->m->arena, t->fields.n - o->base,
                              t->fields.at + o->base, *type);
        t->fields.n = o->base;
        t->open.n--;
        return BYOC_OK;
    }
    if (t->fields.n >= BYI_TEXT_MAX_TYPE_SIZE)
        return byi_parse_limit(p, &p->lex.tok, "fields in one type",
                               BYI_TEXT_MAX_TYPE_SIZE);
    BYI_PUSH(&t->fields, *type);
    *type = NULL;
    o->comma = byi_lex_accept(&p->lex, ',');
    return BYOC_OK;
}

static enum byoc_status parse_type(struct byi_parser *p, struct types *t,
                                   const struct byi_type **type)
{
    for (;;) {
        BYI_TRY(start_type(p, t, type));
        for (;;) {
            const struct open_type *o = NULL;
            if (*type && t->open.n == 0)
                return BYOC_OK;
            if (*type)
                BYI_TRY(take_type(p, t, type));
            if (*type)
                continue;
            o = &t->open.at[t->open.n - 1];
            if (o->kind == IN_RESULT || reads_element(t) ||
                (!byi_lex_is(&p->lex, ')') &&
                 (o->comma || t->fields.n == o->base)))
                break; /* another field, or the result, comes next */
            BYI_TRY(close_type(p, t, type));
            if (!*type)
                break; /* the result comes next */
        }
    }
}

enum byoc_status byi_parse_type(struct byi_parser *p,
                                const struct byi_type **type)
{
    struct types t = {0};
    enum byoc_status status = parse_type(p, &t, type);

    byi_vec_free(t.open.at);
    byi_vec_free(t.fields.at);
    return status;
}

/* --- attributes --------------------------------------------------------- */

/* A list attribute that is being read; its entries determine its kind. */
struct parsed_list {
    BYI_VEC(int64_t) ints;
    BYI_VEC(double) floats;
    BYI_VEC(const char *) strings;
    bool is_float;
};

static enum byoc_status parse_entry(struct byi_parser *p,
                                    struct parsed_list *list)
{
    bool is_float = false;
    int64_t i = 0;
    double f = 0;

    if (byi_lex_is(&p->lex, BYI_TOK_STRING) && list->floats.n == 0) {
        BYI_PUSH(&list->strings, byi_lex_text(p->m->arena, &p->lex.tok));
        byi_lex_next(&p->lex);
        return BYOC_OK;
    }
    if (list->strings.n > 0)
        return byi_lex_expected(&p->lex, "another string of the list", p->err);
    BYI_TRY(
        byi_lex_number(&p->lex, "a number or ']'", &is_float, &i, &f, p->err));
    list->is_float = list->is_float || is_float;
    BYI_PUSH(&list->ints, i);
    BYI_PUSH(&list->floats, f);
    return BYOC_OK;
}

static enum byoc_status parse_entries(struct byi_parser *p,
                                      struct parsed_list *list)
{
    byi_lex_next(&p->lex); /* the '[' */
    while (!byi_lex_is(&p->lex, ']')) {
        if (list->ints.n + list->strings.n >= BYI_TEXT_MAX_LIST)
            return byi_parse_limit(p, &p->lex.tok, "entries in a list",
                                   BYI_TEXT_MAX_LIST);
        BYI_TRY(parse_entry(p, list));
        if (!byi_lex_accept(&p->lex, ','))
            break;
    }
    return byi_lex_expect(&p->lex, ']', "',' or ']' in a list", p->err);
}

static void set_list(struct byi_parser *p, const struct parsed_list *list,
                     struct byi_attr *attr)
{
    struct byi_arena *arena = p->m->arena;

    attr->n = list->strings.n ? list->strings.n : list->ints.n;
    if (list->strings.n) {
        attr->kind = BYI_ATTR_STRINGS;
        attr->strings = byi_arena_copy(arena, list->strings.at,
                                       attr->n * sizeof *attr->strings);
    } else if (list->is_float) {
        attr->kind = BYI_ATTR_FLOATS;
        attr->floats = byi_arena_copy(arena, list->floats.at,
                                      attr->n * sizeof *attr->floats);
    } else {
        attr->kind = BYI_ATTR_INTS;
        attr->ints =
            byi_arena_copy(arena, list->ints.at, attr->n * sizeof *attr->ints);
    }
}

static enum byoc_status parse_list(struct byi_parser *p, struct byi_attr *attr)
{
    struct parsed_list list = {0};
    enum byoc_status status = parse_entries(p, &list);

    if (status == BYOC_OK)
        set_list(p, &list, attr);
    byi_vec_free(list.ints.at);
    byi_vec_free(list.floats.at);
    byi_vec_free(list.strings.at);
    return status;
}

enum byoc_status byi_parse_attr_value(struct byi_parser *p,
                                      struct byi_attr *attr)
{
    return byi_lex_is(&p->lex, '[')
               ? parse_list(p, attr)
               : byi_lex_attr(&p->lex,
                              "a value: a number, true, false, a string or a "
                              "list",
                              p->m->arena, attr, p->err);
}

/* --- annotations -------------------------------------------------------- */

/* Parse the rest after "@[": a backend's name, a region's number, or both:
 * dnnl.2 */
static enum byoc_status parse_backend(struct byi_parser *p,
                                      struct byi_parse_annotations *notes)
{
    const struct byi_token *tok = &p->lex.tok;
    bool named = false;
    int64_t region = 0;

    byi_lex_next(&p->lex); /* the "@[" */
    named = tok->kind == BYI_TOK_IDENT || tok->kind == BYI_TOK_STRING;
    if (named) {
        struct byoc_error why;
        if (byi_backend_add(p->m, byi_lex_text(p->scratch, tok),
                            &notes->backend, &why) != BYOC_OK)
            return byi_lex_fail(&p->lex, tok, p->err, "%s", why.text);
        byi_lex_next(&p->lex);
    }
    if (byi_lex_accept(&p->lex, '.'))
        BYI_TRY(byi_lex_int(&p->lex, 1, UINT32_MAX, "the number of a region",
                            &region, p->err));
    else if (!named)
        return byi_lex_expected(&p->lex, "the name of a backend", p->err);
    notes->region = (uint32_t)region;
    return byi_lex_expect(&p->lex, ']', "']' after a backend or region",
                          p->err);
}

static enum byoc_status parse_source(struct byi_parser *p, uint32_t *source)
{
    struct byi_token tok = p->lex.tok;
    const char *op = "";
    struct byi_parsed_name *name = NULL;
    uint32_t index = 0;

    if (tok.kind != BYI_TOK_STRING || tok.n == 0)
        return byi_lex_expected(&p->lex, "the name of a model's node", p->err);
    index = byi_parse_name(p, &tok);
    name = &p->names.at[index];
    byi_lex_next(&p->lex);
    if (byi_lex_accept(&p->lex, ':')) {
        if (!byi_lex_is(&p->lex, BYI_TOK_STRING))
            return byi_lex_expected(&p->lex, "the name of that node's operator",
                                    p->err);
        op = byi_lex_text(p->m->arena, &p->lex.tok);
        byi_lex_next(&p->lex);
    }
    if (!name->source)
        name->source = byi_source_new(p->m, name->text, op) + 1;
    else if (op[0])
        p->m->sources.at[name->source - 1].op = op;
    *source = name->source - 1;
    return BYOC_OK;
}

typedef BYI_VEC(uint32_t) source_list;

static enum byoc_status read_sources(struct byi_parser *p, source_list *list)
{
    byi_lex_next(&p->lex); /* the "#[" */
    do {
        uint32_t source = 0;
        BYI_TRY(parse_source(p, &source));
        BYI_PUSH(list, source);
    } while (byi_lex_accept(&p->lex, ','));
    return byi_lex_expect(&p->lex, ']', "',' or ']' after a source", p->err);
}

static enum byoc_status parse_sources(struct byi_parser *p,
                                      struct byi_parse_annotations *notes)
{
    source_list list = {0};
    enum byoc_status status = read_sources(p, &list);

    if (status == BYOC_OK)
        notes->sources = byi_sources_of(p->m, list.at, list.n);
    byi_vec_free(list.at);
    return status;
}

enum byoc_status byi_parse_annotations(struct byi_parser *p,
                                       struct byi_parse_annotations *notes)
{
    *notes = (struct byi_parse_annotations){0};
    for (;; notes->any = true) {
        bool backend = byi_lex_is(&p->lex, BYI_TOK_BACKEND);
        bool sources = byi_lex_is(&p->lex, BYI_TOK_SOURCES);
        if ((backend && (notes->backend || notes->region)) ||
            (sources && notes->sources))
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "found a second annotation %s, expected one",
                                backend ? "@[...]" : "#[...]");
        if (backend)
            BYI_TRY(parse_backend(p, notes));
        else if (sources)
            BYI_TRY(parse_sources(p, notes));
        else
            return BYOC_OK;
    }
}
