/* SPDX-License-Identifier: Apache-2.0 */
/* parse_names.c: manages the parser's names, scopes and captures. Names are
 * found by hash; entering and leaving a scope takes time proportional to its
 * bindings. A value of an outer function becomes a parameter of every function
 * in between.
 */
#include "parse.h"
#include "core/base/guard.h"

#include <string.h>

enum byoc_status byi_parse_limit(struct byi_parser *p,
                                 const struct byi_token *tok, const char *what,
                                 uint64_t limit)
{
    byi_fail(p->err, BYOC_ELIMIT, "found too many %s, expected at most %llu",
             what, (unsigned long long)limit);
    return byi_lex_place(&p->lex, tok, p->err);
}

/* --- tables ------------------------------------------------------------- */

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    const uint64_t key[2] = {a, b};

    return byi_hash(0, key, sizeof key);
}

static uint32_t pair_find(const struct byi_parse_pairs *t, uint64_t a,
                          uint64_t b)
{
    BYI_INDEX_EACH (&t->index, hash_pair(a, b), i)
        if (t->pairs.at[i].a == a && t->pairs.at[i].b == b)
            return t->pairs.at[i].value;
    return 0;
}

/* Add a pair that is not in the table. */
static void pair_add(struct byi_parse_pairs *t, uint64_t a, uint64_t b,
                     uint32_t value)
{
    byi_index_add(&t->index, hash_pair(a, b), t->pairs.n);
    BYI_PUSH(&t->pairs, ((struct byi_parse_pair){a, b, value}));
}

static uint32_t find_or_add_name(struct byi_parser *p, const char *text)
{
    const uint64_t hash = byi_hash_text(text);

    BYI_INDEX_EACH (&p->names_by_text, hash, i)
        if (strcmp(p->names.at[i].text, text) == 0)
            return i;
    byi_index_add(&p->names_by_text, hash, p->names.n);
    BYI_PUSH(&p->names, ((struct byi_parsed_name){
                            .text = byi_arena_str(p->scratch, text),
                        }));
    return p->names.n - 1;
}

/* The number of a name such as "0" or "27"; UINT32_MAX for "007" and others
 * that the printer does not write. */
static uint32_t number_of(const struct byi_token *tok)
{
    uint32_t number = 0;

    if (tok->quoted || tok->n == 0 || tok->n > 7 ||
        (tok->at[0] == '0' && tok->n > 1))
        return UINT32_MAX;
    for (size_t i = 0; i < tok->n; i++) {
        if (tok->at[i] < '0' || tok->at[i] > '9')
            return UINT32_MAX;
        number = number * 10 + (uint32_t)(tok->at[i] - '0');
    }
    return number < BYI_TEXT_MAX_NODES ? number : UINT32_MAX;
}

/* Numbers count up, so their names are found by index, not by hash. */
static uint32_t name_of_number(struct byi_parser *p, uint32_t number)
{
    while (p->numbers.n <= number)
        BYI_PUSH(&p->numbers, 0);
    if (p->numbers.at[number] == 0) {
        BYI_PUSH(&p->names, ((struct byi_parsed_name){.text = NULL}));
        p->numbers.at[number] = p->names.n;
    }
    return p->numbers.at[number] - 1;
}

/* %0 is a number from the printer, %"0" a name of the model. The printer does
 * not write %007, so this is a name, too. Its text gets a byte in front, so
 * that it differs from %"007". */
uint32_t byi_parse_name(struct byi_parser *p, const struct byi_token *tok)
{
    char short_text[64] = "\1";
    size_t mark = !tok->quoted && byi_is_digit(tok->at[0]);
    uint32_t number = number_of(tok);

    if (number != UINT32_MAX)
        return name_of_number(p, number);
    if (tok->quoted)
        return find_or_add_name(p, byi_lex_text(p->scratch, tok));
    char *text = short_text;
    if (tok->n >= sizeof short_text - 1) {
        text = byi_arena_alloc(p->scratch, mark + tok->n + 1);
        text[0] = short_text[0];
    }
    memcpy(text + mark, tok->at, tok->n);
    text[mark + tok->n] = '\0';
    return find_or_add_name(p, text);
}

/* --- scopes ------------------------------------------------------------- */

void byi_parse_bind(struct byi_parser *p, uint32_t name, byi_id value)
{
    BYI_PUSH(&p->bindings, ((struct byi_parse_binding){
                               .name = name,
                               .before = p->names.at[name].binding,
                               .depth = p->scopes.n - 1,
                               .value = value,
                           }));
    p->names.at[name].binding = p->bindings.n;
}

enum byoc_status byi_parse_enter(struct byi_parser *p, uint32_t func,
                                 const struct byi_token *tok, uint32_t self)
{
    struct byi_func *f = p->m->funcs.at[func];
    struct byi_parse_scope scope = {
        .func = func,
        .f = f,
        .n_declared = f->params.n,
        .bindings = p->bindings.n,
        .self = BYI_NO_ID,
    };

    if (p->scopes.n >= BYI_TEXT_MAX_DEPTH)
        return byi_parse_limit(p, tok, "nested functions and branches",
                               BYI_TEXT_MAX_DEPTH);
    if (p->scopes.n) {
        const struct byi_func *outer = p->scopes.at[p->scopes.n - 1].f;
        f->attr.inner = outer->attr.composite || outer->attr.inner;
    }
    BYI_PUSH(&p->scopes, scope);
    if (self != BYI_NO_ID)
        byi_parse_bind(p, self, BYI_NO_ID);
    for (uint32_t i = 0; i < f->params.n; i++)
        byi_parse_bind(p, find_or_add_name(p, f->param_names.at[i]),
                       f->params.at[i]);
    return BYOC_OK;
}

/* The parameter of scope `depth` that captures `value` of the enclosing scope.
 */
static enum byoc_status capture_value(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      uint32_t depth, byi_id value,
                                      byi_id *param)
{
    struct byi_parse_scope *s = &p->scopes.at[depth];
    const struct byi_func *outer = p->scopes.at[depth - 1].f;
    uint32_t known = pair_find(&p->captures, s->func, value);
    char name[16];

    if (known) {
        *param = known - 1;
        return BYOC_OK;
    }
    if (s->captures.n >= BYI_MAX_ARGS)
        return byi_parse_limit(p, tok, "captured values in one function",
                               BYI_MAX_ARGS);
    snprintf(name, sizeof name, "c%u", s->captures.n);
    *param = byi_add_param(p->m, s->f, name, outer->nodes.at[value].type);
    BYI_TRY(byi_parse_count_node(p, tok, &s->f->nodes.at[*param]));
    BYI_PUSH(&s->captures, value);
    pair_add(&p->captures, s->func, value, *param + 1);
    return BYOC_OK;
}

/* A function that refers to itself: its body has one literal of itself, which
 * gets its captures in byi_parse_leave, when they are all known. */
static enum byoc_status refer_to_self(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      uint32_t depth, byi_id *value)
{
    struct byi_parse_scope *s = &p->scopes.at[depth];
    int n = tok->n > 60 ? 60 : (int)tok->n;

    if (s->self == BYI_NO_ID) {
        if (!byi_func_type(p->m, s->func))
            return byi_lex_fail(&p->lex, tok, p->err,
                                "%%%.*s is used inside of its own definition, "
                                "expected it to declare its result: "
                                "%%%.*s = fn (...) -> TYPE",
                                n, tok->at, n, tok->at);
        s->self = byi_add_fn(p->m, s->f, s->func, NULL, 0, NULL);
        BYI_TRY(byi_parse_count_node(p, tok, &s->f->nodes.at[s->self]));
    }
    *value = s->self;
    return BYOC_OK;
}

enum byoc_status byi_parse_resolve(struct byi_parser *p,
                                   const struct byi_token *tok, byi_id *value)
{
    uint32_t index = byi_parse_name(p, tok);
    const struct byi_parsed_name *name = &p->names.at[index];
    const struct byi_parse_binding *b = NULL;

    if (!name->binding)
        return byi_lex_fail(&p->lex, tok, p->err,
                            "%%%.*s is not defined here, expected a "
                            "parameter or an earlier name",
                            tok->n > 60 ? 60 : (int)tok->n, tok->at);
    b = &p->bindings.at[name->binding - 1];
    *value = b->value;
    if (b->value == BYI_NO_ID)
        BYI_TRY(refer_to_self(p, tok, b->depth, value));
    for (uint32_t d = b->depth + 1; d < p->scopes.n; d++)
        BYI_TRY(capture_value(p, tok, d, *value, value));
    return BYOC_OK;
}

/* An alias such as %a = %outer captures a value that may have no reader. The
 * printed function would not mention it, so drop captures without readers from
 * the lists, and mark their nodes for move_captures. */
static void drop_unread_captures(struct byi_parse_scope *s)
{
    struct byi_func *f = s->f;
    bool *is_read = byi_own(f->nodes.n, sizeof *is_read, NULL);
    uint32_t n = s->n_declared;

    for (byi_id id = 0; id < f->nodes.n; id++)
        for (uint32_t i = 0; i < f->nodes.at[id].n_args; i++)
            is_read[f->nodes.at[id].args[i]] = true;
    is_read[f->result] = true;
    for (uint32_t i = s->n_declared; i < f->params.n; i++) {
        const byi_id param = f->params.at[i];
        f->nodes.at[param].index = is_read[param] ? n : BYI_NO_ID;
        if (!is_read[param])
            continue;
        s->captures.at[n - s->n_declared] = s->captures.at[i - s->n_declared];
        n++;
    }
    s->captures.n = n - s->n_declared;
    f->params.n = f->param_names.n = n;
    byi_vec_free(is_read);
}

/* Captures were added in the order of their uses. Move them after the
 * function's own parameters, so that parameters come first in every function.
 * s->self is the new place of the function's literal of itself. */
static void move_captures(struct byi_parse_scope *s)
{
    struct byi_func *f = s->f;
    uint32_t n = f->nodes.n, rest = f->params.n;
    struct byi_node *nodes = byi_own(n, sizeof *nodes, NULL);
    byi_id *to = byi_own(n, sizeof *to, NULL);

    for (byi_id id = 0; id < n; id++) {
        const struct byi_node *node = &f->nodes.at[id];
        if (node->kind == BYI_PARAM && node->index == BYI_NO_ID)
            continue;
        to[id] = node->kind == BYI_PARAM ? node->index : rest++;
        nodes[to[id]] = *node;
        for (uint32_t i = 0; i < node->n_args; i++) {
            byi_id *arg = (byi_id *)(uintptr_t)&node->args[i];
            *arg = to[*arg];
        }
    }
    for (uint32_t i = s->n_declared; i < f->params.n; i++)
        f->params.at[i] = i;
    f->result = to[f->result];
    if (s->self != BYI_NO_ID)
        s->self = to[s->self];
    f->nodes.n = rest;
    memcpy(f->nodes.at, nodes, rest * sizeof *nodes);
    byi_vec_free(nodes);
    byi_vec_free(to);
}

/* Give the function's literal of itself the function's captures. */
static void capture_again(struct byi_module *m, struct byi_func *f, byi_id self)
{
    struct byi_node *node = &f->nodes.at[self];
    byi_id *args = byi_args_new(m, f->n_captures);

    for (uint32_t i = 0; i < f->n_captures; i++)
        args[i] = f->params.at[f->params.n - f->n_captures + i];
    node->n_args = f->n_captures;
    node->args = args;
}

void byi_parse_leave(struct byi_parser *p, byi_id **captures, uint32_t *n)
{
    struct byi_parse_scope *s = &p->scopes.at[p->scopes.n - 1];

    while (p->bindings.n > s->bindings) {
        const struct byi_parse_binding *b = &p->bindings.at[--p->bindings.n];
        p->names.at[b->name].binding = b->before;
    }
    if (s->captures.n) {
        drop_unread_captures(s);
        move_captures(s);
    }
    s->f->n_captures = s->captures.n;
    if (s->captures.n && s->self != BYI_NO_ID)
        capture_again(p->m, s->f, s->self);
    *captures = s->captures.at;
    *n = s->captures.n;
    p->scopes.n--;
}

/* --- limits ------------------------------------------------------------- */

/* The number of tensors and tuples in a type, and its depth; packed as size <<
 * 8 | depth, saturated. */
static uint32_t type_size(struct byi_parser *p, const struct byi_type *type,
                          uint32_t levels)
{
    uint64_t size = 1, depth = 0;
    uint32_t known = 0;

    if (type->kind == BYI_TENSOR)
        return 1 << 8;
    known = pair_find(&p->sizes, (uintptr_t)type, 0);
    if (known)
        return known;
    for (uint32_t i = 0; i <= type->n_fields; i++) {
        const struct byi_type *field =
            i < type->n_fields ? type->fields[i] : type->result;
        uint32_t s = UINT32_MAX;
        if (!field)
            continue;
        if (levels < BYI_TEXT_MAX_TYPE_DEPTH)
            s = type_size(p, field, levels + 1);
        size += s >> 8;
        depth = depth > (s & 255) + 1 ? depth : (s & 255) + 1;
    }
    if (size > BYI_TEXT_MAX_TYPE_SIZE)
        size = BYI_TEXT_MAX_TYPE_SIZE + 1;
    if (depth > BYI_TEXT_MAX_TYPE_DEPTH)
        depth = BYI_TEXT_MAX_TYPE_DEPTH + 1;
    p->types_size += type->n_fields + 1;
    pair_add(&p->sizes, (uintptr_t)type, 0, (uint32_t)(size << 8 | depth));
    return (uint32_t)(size << 8 | depth);
}

static enum byoc_status check_type(struct byi_parser *p,
                                   const struct byi_token *tok,
                                   const struct byi_type *type, uint32_t *size)
{
    uint32_t s = type_size(p, type, 0);

    if ((s & 255) > BYI_TEXT_MAX_TYPE_DEPTH)
        return byi_parse_limit(p, tok, "nested types", BYI_TEXT_MAX_TYPE_DEPTH);
    if (s >> 8 > BYI_TEXT_MAX_TYPE_SIZE)
        return byi_parse_limit(p, tok, "fields in one type",
                               BYI_TEXT_MAX_TYPE_SIZE);
    if (p->types_size > BYI_TEXT_MAX_TYPES_SIZE)
        return byi_parse_limit(p, tok, "fields in all types",
                               BYI_TEXT_MAX_TYPES_SIZE);
    *size = s >> 8;
    return BYOC_OK;
}

enum byoc_status byi_parse_count_node(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      const struct byi_node *node)
{
    uint32_t size = 0;

    if (++p->n_nodes > BYI_TEXT_MAX_NODES)
        return byi_parse_limit(p, tok, "nodes", BYI_TEXT_MAX_NODES);
    if (node->type->kind == BYI_TENSOR)
        return BYOC_OK;
    return check_type(p, tok, node->type, &size);
}

enum byoc_status byi_parse_count_type(struct byi_parser *p,
                                      const struct byi_token *tok,
                                      const struct byi_type *type)
{
    uint32_t size = 0;

    BYI_TRY(check_type(p, tok, type, &size));
    p->types_size += size;
    return BYOC_OK;
}
