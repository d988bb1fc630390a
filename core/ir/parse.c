/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: the parser of the text form (docs/text.md): modules and the
 * signatures of functions. All signatures are read first, so that a body may
 * call functions that are defined later; then the bodies, in order
 * (parse_body.c).
 */
#include "parse.h"

#include <string.h>

/* --- signatures ----------------------------------------------------------- */

/* Fail because an attribute of a function has an unexpected value. */
static enum byoc_status fail_value(struct byi_parser *p,
                                   const struct byi_token *tok,
                                   const struct byi_attr *attr,
                                   const char *expected)
{
    struct byi_text found = {0};
    enum byoc_status status;

    byi_text_attr(&found, attr);
    status = byi_lex_fail(&p->lex, tok, p->err, "%s: found %.80s, expected %s",
                          attr->name, found.at, expected);
    byi_text_free(&found);
    return status;
}

static enum byoc_status set_string(struct byi_parser *p,
                                   const struct byi_token *tok, size_t offset,
                                   const struct byi_attr *attr,
                                   struct byi_func *f)
{
    const char *before = NULL;

    memcpy(&before, (const char *)f + offset, sizeof before);
    if (attr->kind != BYI_ATTR_STRING)
        return fail_value(p, tok, attr, "a string");
    if (before)
        return byi_lex_fail(&p->lex, tok, p->err,
                            "%s is given twice, expected it once", attr->name);
    memcpy((char *)f + offset, &attr->s, sizeof attr->s);
    return BYOC_OK;
}

static enum byoc_status set_flag(struct byi_parser *p,
                                 const struct byi_token *tok, size_t offset,
                                 const struct byi_attr *attr,
                                 struct byi_func *f)
{
    if (attr->kind != BYI_ATTR_INT || attr->i < 0 || attr->i > 1)
        return fail_value(p, tok, attr, "0 or 1");
    memcpy((char *)f + offset, &(bool){attr->i != 0}, sizeof(bool));
    return BYOC_OK;
}

static enum byoc_status set_attr(struct byi_parser *p,
                                 const struct byi_token *tok,
                                 const struct byi_attr *attr,
                                 struct byi_func *f)
{
    for (size_t i = 0; i < BYI_N_FUNC_ATTRS; i++)
        if (strcmp(attr->name, byi_func_attrs[i].name) == 0)
            return set_string(p, tok, byi_func_attrs[i].offset, attr, f);
    for (size_t i = 0; i < BYI_N_FUNC_FLAGS; i++)
        if (strcmp(attr->name, byi_func_flags[i].name) == 0)
            return set_flag(p, tok, byi_func_flags[i].offset, attr, f);
    if (strcmp(attr->name, "Outputs") == 0) {
        if (attr->kind != BYI_ATTR_STRINGS)
            return fail_value(p, tok, attr, "a list of strings");
        if (f->result_names.n)
            return byi_lex_fail(&p->lex, tok, p->err,
                                "Outputs is given twice, expected it once");
        for (uint32_t i = 0; i < attr->n; i++)
            BYI_PUSH(&f->result_names, attr->strings[i]);
        return BYOC_OK;
    }
    return byi_lex_fail(&p->lex, tok, p->err,
                        "unknown attribute %.60s of a function, expected "
                        "Composite, PartitionedFromPattern, Operands, "
                        "Compiler, global_symbol, Primitive, Inline, Exact "
                        "or Outputs",
                        attr->name);
}

static enum byoc_status parse_func_attr(struct byi_parser *p,
                                        struct byi_func *f)
{
    struct byi_token tok = p->lex.tok;
    struct byi_attr attr = {0};

    if (!byi_lex_is(&p->lex, BYI_TOK_IDENT))
        return byi_lex_expected(&p->lex, "a parameter, an attribute or ')'",
                                p->err);
    attr.name = byi_lex_text(p->scratch, &tok);
    byi_lex_next(&p->lex);
    BYI_TRY(
        byi_lex_expect(&p->lex, '=', "'=' and an attribute's value", p->err));
    BYI_TRY(byi_parse_attr_value(p, &attr));
    return set_attr(p, &tok, &attr, f);
}

static enum byoc_status parse_param(struct byi_parser *p, struct byi_func *f)
{
    struct byi_token tok = p->lex.tok;
    const struct byi_type *type = NULL;
    struct byi_parsed_name *name = NULL;
    byi_id id = BYI_NO_ID;

    if (!tok.quoted && byi_is_digit(tok.at[0]))
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found the number %%%.*s as a parameter, expected "
                            "a name; %%\"%.*s\" is one",
                            tok.n > 60 ? 60 : (int)tok.n, tok.at,
                            tok.n > 60 ? 60 : (int)tok.n, tok.at);
    id = byi_parse_name(p, &tok);
    name = &p->names.at[id];
    if (name->stamp == p->stamp)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found a second parameter %%%.60s, expected "
                            "another name",
                            name->text);
    name->stamp = p->stamp;
    if (f->params.n >= BYI_MAX_ARGS)
        return byi_parse_limit(p, &tok, "parameters", BYI_MAX_ARGS);
    byi_lex_next(&p->lex);
    BYI_TRY(
        byi_lex_expect(&p->lex, ':', "':' and the parameter's type", p->err));
    BYI_TRY(byi_parse_type(p, &type));
    id = byi_add_param(p->m, f, name->text, type);
    return byi_parse_count_node(p, &tok, &f->nodes.at[id]);
}

enum byoc_status byi_parse_signature(struct byi_parser *p, struct byi_func *f,
                                     const struct byi_type **result)
{
    bool attrs = false;

    p->stamp++;
    *result = NULL;
    BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and parameters", p->err));
    while (!byi_lex_is(&p->lex, ')')) {
        attrs = attrs || !byi_lex_is(&p->lex, BYI_TOK_LOCAL);
        if (attrs)
            BYI_TRY(parse_func_attr(p, f));
        else
            BYI_TRY(parse_param(p, f));
        if (!byi_lex_accept(&p->lex, ','))
            break;
    }
    BYI_TRY(byi_lex_expect(&p->lex, ')', "',' or ')'", p->err));
    if (!byi_lex_accept(&p->lex, BYI_TOK_ARROW))
        return BYOC_OK;
    BYI_TRY(byi_parse_type(p, result));
    return byi_parse_count_type(p, &p->lex.tok, *result);
}

/* --- modules ------------------------------------------------------------ */

/* A definition after its signature was read. */
struct def {
    uint32_t func;                 /* index in the module */
    const struct byi_type *result; /* as declared, or NULL */
    struct byi_lexer body;         /* after its '{' */
};

struct defs {
    BYI_VEC(struct def) list;
};

/* Skip from after a '{' to after its '}'. Records symbols such as ?0, so that
 * new ones get other numbers. */
static enum byoc_status skip_body(struct byi_parser *p)
{
    for (uint64_t depth = 1; depth > 0; byi_lex_next(&p->lex)) {
        const struct byi_token *tok = &p->lex.tok;
        if (tok->kind == BYI_TOK_END || tok->kind == BYI_TOK_BAD)
            return byi_lex_expected(&p->lex, "'}' at the end of a function",
                                    p->err);
        if (tok->kind == '{')
            depth++;
        else if (tok->kind == '}')
            depth--;
        else if (tok->kind == BYI_TOK_IDENT && tok->at[0] == '?')
            byi_symbol(p->m, byi_lex_text(p->scratch, tok));
    }
    return BYOC_OK;
}

void byi_parse_declare(struct byi_parser *p, struct byi_func *f,
                       const struct byi_type *result)
{
    const struct byi_type **params =
        byi_arena_calloc(p->scratch, f->params.n, sizeof *params);

    for (uint32_t i = 0; i < f->params.n; i++)
        params[i] = f->nodes.at[f->params.at[i]].type;
    f->type = byi_type_func(p->m->arena, f->params.n, params, result);
}

/* Parse def @name(...) -> T { ... }, but skip the body. */
static enum byoc_status parse_def(struct byi_parser *p, struct def *def)
{
    struct byi_token tok;
    const char *name = NULL;
    struct byi_func *f = NULL;

    if (!byi_lex_accept_word(&p->lex, "def"))
        return byi_lex_expected(&p->lex, "'def @name(...) { ... }'", p->err);
    tok = p->lex.tok;
    if (tok.kind != BYI_TOK_GLOBAL)
        return byi_lex_expected(&p->lex, "a function's name such as @main",
                                p->err);
    name = byi_lex_text(p->scratch, &tok);
    if (byi_func_find(p->m, name) != UINT32_MAX)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found a second definition of @%.60s, expected one",
                            name);
    if (++p->n_funcs > BYI_TEXT_MAX_FUNCS)
        return byi_parse_limit(p, &tok, "functions", BYI_TEXT_MAX_FUNCS);
    byi_lex_next(&p->lex);
    def->func = byi_func_new(p->m, name);
    f = p->m->funcs.at[def->func];
    BYI_TRY(byi_parse_signature(p, f, &def->result));
    if (def->result)
        byi_parse_declare(p, f, def->result);
    BYI_TRY(byi_lex_expect(&p->lex, '{',
                           "'->' and a type, or '{' and the function's body",
                           p->err));
    def->body = p->lex;
    return skip_body(p);
}

static enum byoc_status parse_module(struct byi_parser *p, struct defs *defs)
{
    while (!byi_lex_is(&p->lex, BYI_TOK_END)) {
        struct def def = {0};
        BYI_TRY(parse_def(p, &def));
        BYI_PUSH(&defs->list, def);
    }
    for (uint32_t i = 0; i < defs->list.n; i++) {
        const struct def *def = &defs->list.at[i];
        p->lex = def->body;
        BYI_TRY(byi_parse_body(p, def->func, def->result));
    }
    return BYOC_OK;
}

static void free_parser(struct byi_parser *p)
{
    for (uint32_t i = 0; i < p->scopes.n; i++)
        byi_vec_free(p->scopes.at[i].captures.at);
    byi_vec_free(p->scopes.at);
    byi_vec_free(p->names.at);
    byi_vec_free(p->bindings.at);
    byi_index_free(&p->names_by_text);
    byi_vec_free(p->numbers.at);
    byi_vec_free(p->captures.pairs.at);
    byi_index_free(&p->captures.index);
    byi_vec_free(p->sizes.pairs.at);
    byi_index_free(&p->sizes.index);
    byi_arena_free(&p->scratch);
}

enum byoc_status byi_parse_module(const char *text, size_t n, const char *file,
                                  const char *side, struct byi_module **module,
                                  struct byoc_error *err)
{
    struct byi_parser p = {
        .m = byi_module_new(),
        .err = err,
        .scratch = byi_arena_new(),
        .side_path = side,
    };
    struct defs defs = {0};
    enum byoc_status status;

    *module = NULL;
    byi_lex_init(&p.lex, file ? file : "text", text, n);
    status = parse_module(&p, &defs);
    byi_vec_free(defs.list.at);
    free_parser(&p);
    if (status == BYOC_OK) {
        status = byi_verify(p.m, err);
        if (status != BYOC_OK)
            byi_prefix(err, "%s: error", file ? file : "text");
    }
    if (status != BYOC_OK) {
        byi_module_free(&p.m);
        return status;
    }
    *module = p.m;
    return BYOC_OK;
}
