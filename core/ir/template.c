/* SPDX-License-Identifier: Apache-2.0 */
/* template.c: parses a template and emits its nodes in one pass. */
#include "template.h"

#include <string.h>

#include "lex.h"

enum { MAX_NAMES = 48, MAX_ARGS = 16, MAX_ATTRS = 8, MAX_LIST = 16 };

/* A name that the template defines or has as input: n bytes at `at`. */
struct template_name {
    const char *at;
    size_t n;
    byi_id value;
};

/* The state of parsing a template. */
struct template_reader {
    struct byi_lexer lex;
    const struct byi_emitter *to;
    const struct byi_template_inputs *inputs;
    struct byi_arena *scratch;
    struct byoc_error *err;
    struct template_name names[MAX_NAMES];
    uint32_t n_names;
    bool has_failed; /* a node was not emitted: parse the rest, emit nothing */
};

/* An operand: a value, or a number, which gets the type of the others. */
struct template_operand {
    byi_id value;
    bool is_number;
    double number;
};

static enum byoc_status parse_expression(struct template_reader *r,
                                         struct template_operand *x);

/* --- names ---------------------------------------------------------------- */

static enum byoc_status bind_name(struct template_reader *r, const char *at,
                                  size_t n, byi_id value)
{
    if (r->n_names == MAX_NAMES)
        return byi_lex_fail(&r->lex, &r->lex.tok, r->err,
                            "found too many names, expected at most %d",
                            MAX_NAMES);
    r->names[r->n_names++] = (struct template_name){at, n, value};
    return BYOC_OK;
}

/* Find the newest value of the name at the current token. */
static enum byoc_status find_value(struct template_reader *r, byi_id *value)
{
    const struct byi_token *tok = &r->lex.tok;
    for (uint32_t i = r->n_names; i-- > 0;)
        if (r->names[i].n == tok->n &&
            memcmp(r->names[i].at, tok->at, tok->n) == 0) {
            *value = r->names[i].value;
            byi_lex_next(&r->lex);
            return BYOC_OK;
        }
    return byi_lex_expected(&r->lex, "the name of a value", r->err);
}

static enum byoc_status find_attr(struct template_reader *r,
                                  struct byi_attr *attr)
{
    const struct byi_token *tok = &r->lex.tok;
    for (uint32_t i = 0; i < r->inputs->n_attrs; i++) {
        const char *name = r->inputs->attrs[i].name;
        if (strlen(name) == tok->n && memcmp(name, tok->at, tok->n) == 0) {
            *attr = r->inputs->attrs[i];
            byi_lex_next(&r->lex);
            return BYOC_OK;
        }
    }
    return byi_lex_expected(&r->lex, "an operator or a given attribute",
                            r->err);
}

static enum byoc_dtype dtype_of(const struct template_reader *r, byi_id value)
{
    return value == BYI_NO_ID ? BYOC_NONE
                              : r->to->f->nodes.at[value].type->dtype;
}

/* --- constants ------------------------------------------------------------ */

static byi_id add_constant(struct template_reader *r, enum byoc_dtype dtype,
                           uint32_t rank, int64_t n, const void *data)
{
    const struct byi_type *type =
        byi_type_tensor(r->to->m->arena, dtype, rank, &n);
    return byi_add_const(r->to->m, r->to->f,
                         byi_const_add(r->to->m, type, data, false), NULL);
}

static enum byoc_status add_number(struct template_reader *r,
                                   enum byoc_dtype dtype, double value,
                                   byi_id *id)
{
    int64_t storage = 0;
    struct byi_tensor t = {.data = &storage, .dtype = dtype};
    if (!byi_dtype_is_float(dtype) && !byi_dtype_is_int(dtype) &&
        dtype != BYOC_BOOL)
        return byi_fail(r->err, BYOC_EUNSUPPORTED,
                        "found operands of type %s, expected numbers",
                        byoc_dtype_name(dtype) ? byoc_dtype_name(dtype)
                                               : "none");
    byi_tensor_set(&t, 0, value);
    *id = add_constant(r, dtype, 0, 0, &storage);
    return BYOC_OK;
}

static byi_id add_vector(struct template_reader *r, const struct byi_attr *list)
{
    return add_constant(r, BYOC_I64, 1, list->n, list->ints);
}

/* --- attributes and lists ------------------------------------------------- */

/* Parse a list, from its '[' on. */
static enum byoc_status parse_list(struct template_reader *r,
                                   struct byi_attr *attr)
{
    int64_t *ints = byi_arena_calloc(r->scratch, MAX_LIST, sizeof *ints);
    attr->kind = BYI_ATTR_INTS;
    attr->n = 0;
    attr->ints = ints;
    byi_lex_next(&r->lex);
    while (!byi_lex_is(&r->lex, ']')) {
        struct byi_attr entry = {0};
        BYI_TRY(
            byi_lex_is(&r->lex, BYI_TOK_IDENT)
                ? find_attr(r, &entry)
                : byi_lex_attr(&r->lex, "a value", r->scratch, &entry, r->err));
        if (entry.kind != BYI_ATTR_INT || attr->n == MAX_LIST)
            return byi_lex_expected(&r->lex, "a list of integers", r->err);
        ints[attr->n++] = entry.i;
        if (!byi_lex_accept(&r->lex, ','))
            break;
    }
    return byi_lex_expect(&r->lex, ']', "',' or ']'", r->err);
}

static enum byoc_status parse_attribute(struct template_reader *r,
                                        struct byi_attr *attr)
{
    const struct byi_token *tok = &r->lex.tok;
    const char *name = byi_lex_text(r->scratch, tok);
    byi_id value;
    byi_lex_next(&r->lex); /* the name */
    byi_lex_next(&r->lex); /* '=' */
    if (byi_lex_is(&r->lex, '[')) {
        BYI_TRY(parse_list(r, attr));
    } else if (byi_lex_is(&r->lex, BYI_TOK_LOCAL)) {
        BYI_TRY(find_value(r, &value));
        attr->kind = BYI_ATTR_DTYPE;
        attr->i = dtype_of(r, value);
    } else if (byi_lex_is(&r->lex, BYI_TOK_IDENT) &&
               !byi_lex_is_number(&r->lex) &&
               !byi_lex_is_word(&r->lex, "true") &&
               !byi_lex_is_word(&r->lex, "false")) {
        BYI_TRY(find_attr(r, attr));
    } else {
        BYI_TRY(byi_lex_attr(&r->lex, "a value", r->scratch, attr, r->err));
        if (attr->kind == BYI_ATTR_STRING && strcmp(name, "dtype") == 0) {
            attr->kind = BYI_ATTR_DTYPE;
            attr->i = byi_dtype_of_name(attr->s, strlen(attr->s));
        }
    }
    attr->name = name;
    return BYOC_OK;
}

/* --- calls ---------------------------------------------------------------- */

static bool is_typed(const struct template_reader *r,
                     const struct template_operand *x)
{
    const enum byoc_dtype dtype = dtype_of(r, x->value);
    return dtype != BYOC_NONE && dtype != BYOC_BOOL;
}

/* Drop omitted operands at the end, and turn numbers into constants of the type
 * of the first operand that is not bool, or bool if all others are. */
static enum byoc_status complete_operands(struct template_reader *r,
                                          const struct byi_op *op,
                                          const struct template_operand *in,
                                          uint32_t *n, byi_id *args)
{
    enum byoc_dtype dtype = BYOC_NONE;
    while (*n > op->min_in && !in[*n - 1].is_number &&
           in[*n - 1].value == BYI_NO_ID)
        --*n;
    for (uint32_t i = *n; i-- > 0;)
        if (!in[i].is_number && (dtype == BYOC_NONE || is_typed(r, &in[i])))
            dtype = dtype_of(r, in[i].value);
    for (uint32_t i = 0; i < *n && !r->has_failed; i++) {
        args[i] = in[i].value;
        if (in[i].is_number)
            BYI_TRY(add_number(r, dtype, in[i].number, &args[i]));
    }
    return BYOC_OK;
}

/* Parse a call, from after its '(' on, and emit it. `fixed`: its attributes;
 * NULL: those in the text. */
static enum byoc_status parse_call(struct template_reader *r,
                                   const struct byi_op *op,
                                   const struct byi_attrs *fixed,
                                   struct template_operand *x)
{
    struct template_operand in[MAX_ARGS];
    struct byi_attr attrs[MAX_ATTRS] = {{0}};
    byi_id args[MAX_ARGS];
    uint32_t n = 0, n_attrs = 0;
    while (!byi_lex_is(&r->lex, ')')) {
        const bool named = byi_lex_is(&r->lex, BYI_TOK_IDENT) &&
                           byi_lex_peek(&r->lex).kind == '=';
        if (!named && n == MAX_ARGS)
            return byi_lex_fail(&r->lex, &r->lex.tok, r->err,
                                "found another operand, expected at most %d",
                                MAX_ARGS);
        if (named && n_attrs == MAX_ATTRS)
            return byi_lex_fail(&r->lex, &r->lex.tok, r->err,
                                "found another attribute, expected at most %d",
                                MAX_ATTRS);
        BYI_TRY(named ? parse_attribute(r, &attrs[n_attrs++])
                      : parse_expression(r, &in[n++]));
        if (!byi_lex_accept(&r->lex, ','))
            break;
    }
    BYI_TRY(byi_lex_expect(&r->lex, ')', "',' or ')'", r->err));
    BYI_TRY(complete_operands(r, op, in, &n, args));
    *x = (struct template_operand){.value = BYI_NO_ID};
    if (r->has_failed)
        return BYOC_OK;
    x->value =
        r->to->call(r->to->ctx, op->id, args, n, fixed ? fixed->at : attrs,
                    fixed ? fixed->n : n_attrs);
    r->has_failed = r->has_failed || x->value == BYI_NO_ID;
    return BYOC_OK;
}

/* --- expressions ---------------------------------------------------------- */

/* Parse a number, or the name of an attribute that the caller gave. */
static enum byoc_status parse_scalar(struct template_reader *r,
                                     struct template_operand *x)
{
    const struct byi_token tok = r->lex.tok;
    const size_t digits = byi_lex_digits(&tok);
    struct byi_attr attr = {0};
    if (tok.kind == BYI_TOK_NUMBER && tok.n == digits + 3 &&
        memcmp(tok.at + digits, "i64", 3) == 0) {
        const double value = byi_strtod(byi_lex_text(r->scratch, &tok), NULL);
        byi_lex_next(&r->lex);
        *x = (struct template_operand){0};
        return add_number(r, BYOC_I64, value, &x->value);
    }
    BYI_TRY(byi_lex_is_number(&r->lex)
                ? byi_lex_attr(&r->lex, "a value", r->scratch, &attr, r->err)
                : find_attr(r, &attr));
    *x = (struct template_operand){
        .value = BYI_NO_ID,
        .is_number = true,
        .number = attr.kind == BYI_ATTR_FLOAT ? attr.f : (double)attr.i};
    if (attr.kind == BYI_ATTR_INTS)
        *x = (struct template_operand){.value = add_vector(r, &attr)};
    return BYOC_OK;
}

static enum byoc_status parse_primary(struct template_reader *r,
                                      struct template_operand *x)
{
    const struct byi_token tok = r->lex.tok;
    struct byi_attr attr = {0};
    if (byi_lex_is(&r->lex, BYI_TOK_LOCAL)) {
        *x = (struct template_operand){0};
        return find_value(r, &x->value);
    }
    if (byi_lex_is(&r->lex, '[')) {
        BYI_TRY(parse_list(r, &attr));
        *x = (struct template_operand){.value = add_vector(r, &attr)};
        return BYOC_OK;
    }
    if (!byi_lex_is(&r->lex, BYI_TOK_IDENT) ||
        byi_lex_peek(&r->lex).kind != '(')
        return parse_scalar(r, x);
    const struct byi_node *again =
        byi_lex_is_word(&r->lex, "again") ? r->inputs->again : NULL;
    const struct byi_op *op =
        again ? byi_op(again->op) : byi_op_of_name(tok.at, tok.n);
    if (!op)
        return byi_lex_expected(&r->lex, "an operator", r->err);
    byi_lex_next(&r->lex);
    byi_lex_next(&r->lex);
    return parse_call(r, op, again ? again->attrs : NULL, x);
}

/* Recurses as deep as the template nests calls. */
static enum byoc_status parse_expression(struct template_reader *r,
                                         struct template_operand *x)
{
    BYI_TRY(parse_primary(r, x));
    while (byi_lex_accept(&r->lex, '.')) {
        int64_t index = 0;
        BYI_TRY(byi_lex_int(&r->lex, 0, UINT32_MAX, "a field's number", &index,
                            r->err));
        if (!r->has_failed)
            BYI_TRY(byi_add_get(r->to->m, r->to->f, x->value, (uint32_t)index,
                                r->to->sources, &x->value, r->err));
    }
    return BYOC_OK;
}

/* --- templates ------------------------------------------------------------ */

/* Parse fn (%a, %b) { */
static enum byoc_status parse_signature(struct template_reader *r)
{
    const struct byi_template_inputs *inputs = r->inputs;
    uint32_t n = 0;
    if (!byi_lex_accept_word(&r->lex, "fn") || !byi_lex_accept(&r->lex, '('))
        return byi_lex_expected(&r->lex, "'fn ('", r->err);
    while (byi_lex_is(&r->lex, BYI_TOK_LOCAL)) {
        BYI_TRY(
            bind_name(r, r->lex.tok.at, r->lex.tok.n,
                      n < inputs->n_values ? inputs->values[n] : BYI_NO_ID));
        n++;
        byi_lex_next(&r->lex);
        if (!byi_lex_accept(&r->lex, ','))
            break;
    }
    if (n != inputs->n_values)
        return byi_fail(r->err, BYOC_EINVAL,
                        "the template has %u parameters, expected %u", n,
                        inputs->n_values);
    BYI_TRY(byi_lex_expect(&r->lex, ')', "',' or ')'", r->err));
    return byi_lex_expect(&r->lex, '{', "'{'", r->err);
}

static enum byoc_status parse_statements(struct template_reader *r)
{
    while (byi_lex_is(&r->lex, BYI_TOK_LOCAL) &&
           byi_lex_peek(&r->lex).kind == '=') {
        const struct byi_token name = r->lex.tok;
        struct template_operand x;
        byi_lex_next(&r->lex);
        byi_lex_next(&r->lex);
        BYI_TRY(parse_expression(r, &x));
        BYI_TRY(byi_lex_expect(&r->lex, ';', "';'", r->err));
        BYI_TRY(bind_name(r, name.at, name.n, x.value));
    }
    return BYOC_OK;
}

static enum byoc_status read_results(struct template_reader *r, uint32_t n,
                                     byi_id *results)
{
    const bool is_tuple = byi_lex_accept(&r->lex, '(');
    uint32_t found = 0;
    do {
        struct template_operand x;
        BYI_TRY(parse_expression(r, &x));
        if (x.is_number)
            return byi_lex_expected(&r->lex, "a value before this", r->err);
        if (found < n)
            results[found] = r->has_failed ? BYI_NO_ID : x.value;
        found++;
    } while (is_tuple && byi_lex_accept(&r->lex, ','));
    if (found != n)
        return byi_fail(r->err, BYOC_EINVAL,
                        "the template has %u results, expected %u", found, n);
    return is_tuple ? byi_lex_expect(&r->lex, ')', "',' or ')'", r->err)
                    : BYOC_OK;
}

enum byoc_status byi_template(const struct byi_emitter *to, const char *text,
                              const struct byi_template_inputs *inputs,
                              struct byi_arena *scratch, uint32_t n,
                              byi_id *results, struct byoc_error *err)
{
    struct template_reader r = {
        .to = to, .inputs = inputs, .scratch = scratch, .err = err};
    for (uint32_t i = 0; i < n; i++)
        results[i] = BYI_NO_ID;
    byi_lex_init(&r.lex, "template", text, strlen(text));
    if (inputs->names)
        for (uint32_t i = 0; i < inputs->n_values; i++)
            BYI_TRY(bind_name(&r, inputs->names[i], strlen(inputs->names[i]),
                              inputs->values[i]));
    else
        BYI_TRY(parse_signature(&r));
    BYI_TRY(parse_statements(&r));
    BYI_TRY(read_results(&r, n, results));
    if (!inputs->names)
        BYI_TRY(byi_lex_expect(&r.lex, '}', "'}'", err));
    return byi_lex_is(&r.lex, BYI_TOK_END)
               ? BYOC_OK
               : byi_lex_expected(&r.lex, "the end of the template", err);
}
