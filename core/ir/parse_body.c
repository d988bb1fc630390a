/* SPDX-License-Identifier: Apache-2.0 */
/* parse_body.c: parses bodies of functions: statements and expressions. A stack
 * of frames holds the open constructs, from the body of the definition inwards.
 * The loop in parse_frames() either starts an expression or, after a value was
 * read, passes the value to the innermost frame.
 */
#include "parse.h"

#include <string.h>

enum { MAX_FRAMES = 1 << 20 };

enum frame_kind {
    IN_DEF,  /* the body of a definition                               */
    IN_FN,   /* of a function literal                                  */
    IN_THEN, /* of a branch; the frame below is its IN_IF              */
    IN_ELSE,
    IN_IF,    /* if ( ... ): waits for the condition, then the branches */
    IN_PAREN, /* ( ... ): one value, or a tuple                         */
    IN_OP,    /* add( ... )                                             */
    IN_CALL   /* %f( ... )                                              */
};

/* A construct that is open: a body, an `if`, or a list of operands. */
struct parse_frame {
    enum frame_kind kind;
    struct byi_token tok; /* where the construct started */
    uint32_t base;        /* its operands so far are items[base..] */
    /* bodies: the current statement binds its value to `name` */
    bool has_name;
    bool let; /* the statement begins with let */
    uint32_t name;
    const struct byi_type *type;   /* the statement declares it, or NULL */
    const struct byi_type *result; /* bodies: the declared type, or NULL */
    const struct byi_op *op;       /* IN_OP */
    byi_id callee;                 /* IN_CALL */
    byi_id cond, then;             /* IN_IF; BYI_NO_ID: not read yet */
};

/* The state of the parser in the body of one definition, with all functions
 * nested in it. */
struct body {
    struct byi_parser *p;
    BYI_VEC(struct parse_frame) frames;
    BYI_VEC(byi_id) items;          /* operands of all open constructs */
    BYI_VEC(struct byi_attr) attrs; /* of the operator that is being read */
    bool has_value; /* a value was read; false: an expression starts here */
    bool is_new;    /* the value is a node of this expression */
    byi_id value;
    uint32_t symbols; /* number of symbols before that node */
};

static struct parse_frame *top_frame(struct body *b)
{
    return &b->frames.at[b->frames.n - 1];
}

static struct byi_func *current_func(struct body *b)
{
    return b->p->scopes.at[b->p->scopes.n - 1].f;
}

static bool is_body(const struct parse_frame *frame)
{
    return frame->kind <= IN_ELSE;
}

static enum byoc_status open_frame(struct body *b, struct parse_frame frame)
{
    if (b->frames.n >= MAX_FRAMES)
        return byi_parse_limit(b->p, &frame.tok, "open brackets", MAX_FRAMES);
    frame.base = b->items.n;
    BYI_PUSH(&b->frames, frame);
    b->has_value = false;
    return BYOC_OK;
}

/* Make the appended node `id` the current value. */
static enum byoc_status set_value(struct body *b, const struct byi_token *tok,
                                  byi_id id)
{
    b->value = id;
    b->has_value = true;
    b->is_new = true;
    return byi_parse_count_node(b->p, tok, &current_func(b)->nodes.at[id]);
}

/* --- building ----------------------------------------------------------- */

static enum byoc_status build_op(struct body *b,
                                 const struct parse_frame *frame, uint32_t n)
{
    struct byi_parser *p = b->p;
    byi_id id = BYI_NO_ID;

    if (byi_add_call(p->m, current_func(b), frame->op->id,
                     b->items.at + frame->base, n, b->attrs.at, b->attrs.n,
                     NULL, &id, p->err))
        return byi_lex_place(&p->lex, &frame->tok, p->err);
    return set_value(b, &frame->tok, id);
}

static enum byoc_status build_call(struct body *b,
                                   const struct parse_frame *frame, uint32_t n)
{
    struct byi_parser *p = b->p;
    byi_id id = BYI_NO_ID;

    if (byi_add_apply(p->m, current_func(b), frame->callee,
                      b->items.at + frame->base, n, NULL, &id, p->err))
        return byi_lex_place(&p->lex, &frame->tok, p->err);
    return set_value(b, &frame->tok, id);
}

static enum byoc_status build_tuple(struct body *b,
                                    const struct parse_frame *frame, uint32_t n)
{
    return set_value(b, &frame->tok,
                     byi_add_tuple(b->p->m, current_func(b),
                                   b->items.at + frame->base, n, NULL));
}

/* After the ')': build the node of the innermost frame. */
static enum byoc_status build_node(struct body *b)
{
    struct parse_frame frame = *top_frame(b);
    uint32_t n = b->items.n - frame.base;

    if (n > BYI_MAX_ARGS)
        return byi_parse_limit(b->p, &frame.tok, "operands", BYI_MAX_ARGS);
    b->symbols = b->p->m->symbols.n;
    b->frames.n--;
    b->items.n = frame.base;
    if (frame.kind == IN_OP)
        return build_op(b, &frame, n);
    if (frame.kind == IN_CALL)
        return build_call(b, &frame, n);
    return build_tuple(b, &frame, n);
}

/* --- operators and calls ------------------------------------------------ */

/* An element type is written as a string; the operator's table says which
 * strings are types. */
static enum byoc_status fix_dtype(struct byi_parser *p, const struct byi_op *op,
                                  const struct byi_token *tok,
                                  struct byi_attr *attr)
{
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        enum byoc_dtype dtype = BYOC_NONE;
        if (op->attrs[i].kind != BYI_ATTR_DTYPE ||
            attr->kind != BYI_ATTR_STRING ||
            strcmp(op->attrs[i].name, attr->name) != 0)
            continue;
        dtype = byi_dtype_of_name(attr->s, strlen(attr->s));
        if (dtype == BYOC_NONE)
            return byi_lex_fail(&p->lex, tok, p->err,
                                "found '%.60s', expected an element type such "
                                "as \"float32\"",
                                attr->s);
        attr->kind = BYI_ATTR_DTYPE;
        attr->i = dtype;
    }
    return BYOC_OK;
}

static enum byoc_status parse_attrs(struct body *b)
{
    struct byi_parser *p = b->p;
    const struct byi_op *op = top_frame(b)->op;

    b->attrs.n = 0;
    while (byi_lex_is(&p->lex, BYI_TOK_IDENT)) {
        struct byi_attr attr = {0};
        struct byi_token tok = p->lex.tok;
        if (b->attrs.n > op->n_attrs)
            break; /* an attribute is given twice: byi_attrs_make reports it */
        attr.name = byi_lex_text(p->scratch, &tok);
        byi_lex_next(&p->lex);
        BYI_TRY(byi_lex_expect(&p->lex, '=', "'=' and an attribute's value",
                               p->err));
        tok = p->lex.tok;
        BYI_TRY(byi_parse_attr_value(p, &attr));
        BYI_TRY(fix_dtype(p, op, &tok, &attr));
        BYI_PUSH(&b->attrs, attr);
        if (!byi_lex_accept(&p->lex, ','))
            break;
    }
    if (b->attrs.n > op->n_attrs)
        return build_node(b);
    BYI_TRY(
        byi_lex_expect(&p->lex, ')', "',' or ')' after an attribute", p->err));
    return build_node(b);
}

/* Called where an operand may start. If the operands end here, or attributes
 * follow, read up to the ')', build the node, and set *no_operand. */
static enum byoc_status start_operand(struct body *b, bool *no_operand)
{
    struct byi_parser *p = b->p;

    *no_operand = true;
    b->attrs.n = 0;
    if (byi_lex_accept(&p->lex, ')'))
        return build_node(b);
    if (top_frame(b)->kind == IN_OP && byi_lex_is(&p->lex, BYI_TOK_IDENT) &&
        byi_lex_peek(&p->lex).kind == '=')
        return parse_attrs(b);
    *no_operand = false;
    return BYOC_OK;
}

static enum byoc_status take_operand(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame *frame = top_frame(b);
    bool more = false, no_operand = false;

    BYI_PUSH(&b->items, b->value);
    more = byi_lex_accept(&p->lex, ',');
    if (!more && !byi_lex_is(&p->lex, ')'))
        return byi_lex_expected(&p->lex, "',' or ')' after a value", p->err);
    if (frame->kind == IN_PAREN && !more &&
        b->items.n == frame->base + 1) { /* parentheses around a value */
        byi_lex_next(&p->lex);
        b->items.n = frame->base;
        b->frames.n--;
        return BYOC_OK;
    }
    b->has_value = false;
    return start_operand(b, &no_operand);
}

/* --- names, globals, literals ------------------------------------------- */

static enum byoc_status use_global(struct body *b)
{
    struct byi_parser *p = b->p;
    struct byi_token tok = p->lex.tok;
    const char *name = byi_lex_text(p->scratch, &tok);
    uint32_t index = byi_func_find(p->m, name);

    if (index == UINT32_MAX)
        return byi_lex_fail(
            &p->lex, &tok, p->err,
            "@%.60s is not defined, expected a function of this text", name);
    if (!byi_func_type(p->m, index))
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "@%.60s is used before the end of its definition, "
                            "expected it to declare its result: "
                            "def @%.60s(...) -> TYPE",
                            name, name);
    byi_lex_next(&p->lex);
    b->symbols = p->m->symbols.n;
    return set_value(b, &tok, byi_add_global(p->m, current_func(b), index));
}

static enum byoc_status use_literal(struct body *b)
{
    struct byi_parser *p = b->p;
    struct byi_token tok = p->lex.tok;
    uint32_t constant = 0;

    BYI_TRY(byi_parse_literal(p, &constant));
    b->symbols = p->m->symbols.n;
    return set_value(b, &tok,
                     byi_add_const(p->m, current_func(b), constant, NULL));
}

static enum byoc_status fail_unknown_op(struct byi_parser *p,
                                        const struct byi_token *tok)
{
    const char *names[BYI_N_OPS];
    uint32_t n = 0;

    for (int id = BYI_OP_NONE + 1; id < BYI_N_OPS; id++)
        names[n++] = byi_op((enum byi_op_id)id)->name;
    const char *name =
        byi_arena_printf(p->scratch, "%.*s", (int)tok->n, tok->at);
    const char *nearest = byi_nearest(name, names, n);
    return byi_lex_fail(&p->lex, tok, p->err,
                        "unknown operator '%.60s', expected one such as %s",
                        name, nearest ? nearest : "nn.relu");
}

static enum byoc_status start_op(struct body *b)
{
    struct byi_parser *p = b->p;
    struct byi_token tok = p->lex.tok;
    struct parse_frame frame = {.kind = IN_OP, .tok = tok};
    bool no_operand = false;

    if (byi_lex_peek(&p->lex).kind != '(')
        return byi_lex_expected(&p->lex, "a value", p->err);
    frame.op = byi_op_of_name(tok.at, tok.n);
    if (!frame.op)
        return fail_unknown_op(p, &tok);
    byi_lex_next(&p->lex);
    byi_lex_next(&p->lex);
    BYI_TRY(open_frame(b, frame));
    return start_operand(b, &no_operand);
}

/* --- functions and branches --------------------------------------------- */

/* Enter the body of function `index`. `self`: the index of the name that stands
 * for the function in its own body, or BYI_NO_ID. */
static enum byoc_status open_body(struct body *b, struct parse_frame frame,
                                  uint32_t index, uint32_t self)
{
    BYI_TRY(byi_parse_enter(b->p, index, &frame.tok, self));
    return open_frame(b, frame);
}

static enum byoc_status new_func(struct body *b, const struct byi_token *tok,
                                 uint32_t *index)
{
    struct byi_parser *p = b->p;

    if (++p->n_funcs > BYI_TEXT_MAX_FUNCS)
        return byi_parse_limit(p, tok, "functions", BYI_TEXT_MAX_FUNCS);
    *index = byi_func_new(p->m, NULL);
    return BYOC_OK;
}

static enum byoc_status start_fn(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame frame = {.kind = IN_FN, .tok = p->lex.tok};
    const struct parse_frame *outer = top_frame(b);
    uint32_t index = 0, self = BYI_NO_ID;

    if (is_body(outer) && outer->has_name)
        self = outer->name;
    byi_lex_next(&p->lex); /* fn */
    BYI_TRY(new_func(b, &frame.tok, &index));
    BYI_TRY(byi_parse_signature(p, p->m->funcs.at[index], &frame.result));
    if (frame.result)
        byi_parse_declare(p, p->m->funcs.at[index], frame.result);
    BYI_TRY(
        byi_lex_expect(&p->lex, '{', "'{' and the function's body", p->err));
    return open_body(b, frame, index, self);
}

static enum byoc_status start_if(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame frame = {.kind = IN_IF, .tok = p->lex.tok};

    frame.cond = frame.then = BYI_NO_ID;
    byi_lex_next(&p->lex); /* if */
    BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and a condition", p->err));
    return open_frame(b, frame);
}

static enum byoc_status start_branch(struct body *b, enum frame_kind kind)
{
    struct byi_parser *p = b->p;
    struct parse_frame frame = {.kind = kind, .tok = p->lex.tok};
    uint32_t index = 0;

    BYI_TRY(byi_lex_expect(&p->lex, '{', "'{' and a branch", p->err));
    BYI_TRY(new_func(b, &frame.tok, &index));
    return open_body(b, frame, index, BYI_NO_ID);
}

/* Give the IF frame its condition, first branch or second branch. */
static enum byoc_status take_if(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame *frame = top_frame(b);
    struct byi_token tok = frame->tok;
    byi_id id = BYI_NO_ID;

    if (frame->cond == BYI_NO_ID) {
        frame->cond = b->value;
        BYI_TRY(byi_lex_expect(&p->lex, ')', "')' after a condition", p->err));
        return start_branch(b, IN_THEN);
    }
    if (frame->then == BYI_NO_ID) {
        frame->then = b->value;
        if (!byi_lex_accept_word(&p->lex, "else"))
            return byi_lex_expected(&p->lex, "'else' and the other branch",
                                    p->err);
        return start_branch(b, IN_ELSE);
    }
    b->symbols = p->m->symbols.n;
    if (byi_add_if(p->m, current_func(b), frame->cond, frame->then, b->value,
                   NULL, &id, p->err))
        return byi_lex_place(&p->lex, &tok, p->err);
    b->frames.n--;
    return set_value(b, &tok, id);
}

/* --- statements --------------------------------------------------------- */

/* Check that the value has the declared type; symbols that the value introduced
 * get the declared names. */
static enum byoc_status check_declared(struct body *b,
                                       const struct byi_token *tok,
                                       const struct byi_type *type,
                                       const char *what)
{
    struct byi_node *node = &current_func(b)->nodes.at[b->value];
    uint32_t symbols = b->is_new ? b->symbols : b->p->m->symbols.n;
    char found[300], expected[300];

    if (!byi_type_fits(type, node->type, -1 - (int64_t)symbols)) {
        byi_text_type_buf(b->p->m, node->type, found, sizeof found);
        byi_text_type_buf(b->p->m, type, expected, sizeof expected);
        byi_fail(b->p->err, BYOC_ETYPE, "%s is %s, expected %s, as declared",
                 what, found, expected);
        return byi_lex_place(&b->p->lex, tok, b->p->err);
    }
    if (b->is_new)
        node->type = type;
    return BYOC_OK;
}

static enum byoc_status parse_annotations(struct body *b)
{
    struct byi_parser *p = b->p;
    struct byi_token tok = p->lex.tok;
    struct byi_node *node = &current_func(b)->nodes.at[b->value];
    struct byi_parse_annotations notes;

    BYI_TRY(byi_parse_annotations(p, &notes));
    if (!notes.any)
        return BYOC_OK;
    if (!b->is_new)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found an annotation of a name, expected it where "
                            "the value is computed");
    byi_node_mark(node, notes.backend, notes.region);
    if (notes.sources)
        node->sources = notes.sources;
    return BYOC_OK;
}

/* Read `let %x`, `%x =`, `%x: T =`, or nothing, if the result follows. */
static enum byoc_status start_statement(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame *frame = top_frame(b);
    bool let = byi_lex_accept_word(&p->lex, "let");
    int next = 0;

    frame->let = let;
    frame->has_name = false;
    frame->type = NULL;
    if (!let && !byi_lex_is(&p->lex, BYI_TOK_LOCAL))
        return BYOC_OK;
    next = byi_lex_peek(&p->lex).kind;
    if (!let && next != '=' && next != ':')
        return BYOC_OK;
    if (!byi_lex_is(&p->lex, BYI_TOK_LOCAL))
        return byi_lex_expected(&p->lex, "a name such as %x", p->err);
    frame->has_name = true;
    frame->name = byi_parse_name(p, &p->lex.tok);
    byi_lex_next(&p->lex);
    if (byi_lex_accept(&p->lex, ':'))
        BYI_TRY(byi_parse_type(p, &frame->type));
    return byi_lex_expect(&p->lex, '=', "'=' and a value", p->err);
}

/* After the result of a body and its '}': complete the function. A nested
 * function becomes a value of the enclosing one. */
static enum byoc_status close_body(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame frame = *top_frame(b);
    uint32_t index = p->scopes.at[p->scopes.n - 1].func, n = 0;
    struct byi_token tok = frame.tok;
    byi_id *captures = NULL;
    enum byoc_status status = BYOC_OK;

    if (frame.result)
        BYI_TRY(check_declared(b, &tok, frame.result, "the function's result"));
    current_func(b)->result = b->value;
    byi_parse_leave(p, &captures, &n);
    b->frames.n--;
    if (frame.kind != IN_DEF) {
        b->symbols = p->m->symbols.n;
        status = set_value(
            b, &tok,
            byi_add_fn(p->m, current_func(b), index, captures, n, NULL));
    }
    byi_vec_free(captures);
    BYI_TRY(status);
    return byi_parse_count_type(p, &tok, byi_func_type(p->m, index));
}

/* Handle a statement whose value is complete. */
static enum byoc_status take_statement(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame *frame = top_frame(b);

    BYI_TRY(parse_annotations(b));
    if (!frame->has_name) {
        BYI_TRY(byi_lex_expect(&p->lex, '}',
                               "'}' after the result, or '%name =' in front of "
                               "the value",
                               p->err));
        return close_body(b);
    }
    if (frame->type)
        BYI_TRY(check_declared(b, &frame->tok, frame->type, "the value"));
    BYI_TRY(byi_lex_expect(&p->lex, ';', "';' after a value", p->err));
    if (frame->let && b->is_new)
        current_func(b)->nodes.at[b->value].let = true;
    byi_parse_bind(p, frame->name, b->value);
    b->has_value = false;
    return BYOC_OK;
}

/* --- the loop ----------------------------------------------------------- */

static enum byoc_status start_expression(struct body *b)
{
    struct byi_parser *p = b->p;
    struct parse_frame paren = {.kind = IN_PAREN};

    if (is_body(top_frame(b)))
        BYI_TRY(start_statement(b));
    if (byi_lex_is(&p->lex, BYI_TOK_LOCAL)) {
        struct byi_token tok = p->lex.tok;
        byi_lex_next(&p->lex);
        b->has_value = true;
        b->is_new = false;
        return byi_parse_resolve(p, &tok, &b->value);
    }
    if (byi_lex_is(&p->lex, BYI_TOK_GLOBAL))
        return use_global(b);
    if (byi_parse_is_at_literal(p))
        return use_literal(b);
    if (byi_lex_is_word(&p->lex, "if"))
        return start_if(b);
    if (byi_lex_is_word(&p->lex, "fn"))
        return start_fn(b);
    if (byi_lex_is(&p->lex, BYI_TOK_IDENT))
        return start_op(b);
    if (!byi_lex_is(&p->lex, '('))
        return byi_lex_expected(&p->lex, "a value", p->err);
    paren.tok = p->lex.tok;
    byi_lex_next(&p->lex);
    BYI_TRY(open_frame(b, paren));
    return byi_lex_accept(&p->lex, ')') ? build_node(b) : BYOC_OK;
}

/* After a value: read .0 or a call, or pass the value to the innermost frame.
 */
static enum byoc_status continue_expression(struct body *b)
{
    struct byi_parser *p = b->p;
    struct byi_token tok = p->lex.tok;
    struct parse_frame call = {.kind = IN_CALL, .tok = tok, .callee = b->value};
    int64_t field = 0;
    byi_id id = BYI_NO_ID;
    bool no_operand = false;

    if (byi_lex_accept(&p->lex, '.')) {
        BYI_TRY(byi_lex_int(&p->lex, 0, UINT32_MAX, "a field's number", &field,
                            p->err));
        b->symbols = p->m->symbols.n;
        if (byi_add_get(p->m, current_func(b), b->value, (uint32_t)field, NULL,
                        &id, p->err))
            return byi_lex_place(&p->lex, &tok, p->err);
        return set_value(b, &tok, id);
    }
    if (byi_lex_accept(&p->lex, '(')) {
        BYI_TRY(open_frame(b, call));
        return start_operand(b, &no_operand);
    }
    if (is_body(top_frame(b)))
        return take_statement(b);
    return top_frame(b)->kind == IN_IF ? take_if(b) : take_operand(b);
}

static enum byoc_status parse_frames(struct body *b)
{
    while (b->frames.n > 0) {
        /* A branch is passed to its `if` immediately: nothing may follow it. */
        enum byoc_status status;
        if (!b->has_value)
            status = start_expression(b);
        else if (top_frame(b)->kind == IN_IF && top_frame(b)->cond != BYI_NO_ID)
            status = take_if(b);
        else
            status = continue_expression(b);
        if (status != BYOC_OK)
            return status;
    }
    return BYOC_OK;
}

enum byoc_status byi_parse_body(struct byi_parser *p, uint32_t index,
                                const struct byi_type *result)
{
    struct body b = {.p = p};
    struct parse_frame frame = {
        .kind = IN_DEF,
        .tok = p->lex.tok,
        .result = result,
    };
    enum byoc_status status = open_body(&b, frame, index, BYI_NO_ID);

    if (status == BYOC_OK)
        status = parse_frames(&b);
    byi_vec_free(b.frames.at);
    byi_vec_free(b.items.at);
    byi_vec_free(b.attrs.at);
    return status;
}
