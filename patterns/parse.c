/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c: parses rows of patterns (docs/patterns.md) to a table. The nodes of
 * a row (struct byi_pat) are unique: equal parts share a node.
 */
#include "parse.h"

#include <stddef.h>
#include <string.h>

enum { MAX_DEPTH = 48 };

/* The state of the parser for one row. */
struct parser {
    struct byi_arena *arena;
    struct byi_lexer lex;
    struct byoc_error *err;
    struct byi_pattern *p; /* the pattern being built; owns the arrays below */
    bool repeated[BYI_PATTERN_MAX_NODES];
    bool defined[BYI_PATTERN_MAX_NODES]; /* names that `with` has defined   */
    bool list[BYI_PATTERN_MAX_NODES];    /* names with '...' */
    /* for each name: 1 + its node; 0: none; BYI_NO_NAME: it is a constant */
    uint32_t leaf[BYI_PATTERN_MAX_NODES];
    /* for each name: the value of in_repeat where the name first occurs */
    uint32_t first_repeat[BYI_PATTERN_MAX_NODES];
    uint32_t depth;
    uint32_t in_if;     /* nesting depth of ifs */
    uint32_t in_step;   /* nesting depth of steps */
    uint32_t in_repeat; /* the enclosing repeated step, from 1; 0: none */
    uint32_t n_repeats; /* repeated steps so far                        */
    /* compile_row clears only the members above: each element of these is
     * written before it is read. */
    struct byi_pat nodes[BYI_PATTERN_MAX_NODES];
    const char *names[BYI_PATTERN_MAX_NODES];
    uint32_t defs[BYI_PATTERN_MAX_NODES];
};

static enum byoc_status parse_pattern(struct parser *p, uint32_t *out);

static enum byoc_status check_capacity(struct parser *p)
{
    if (p->p->n_nodes < BYI_PATTERN_MAX_NODES)
        return BYOC_OK;
    return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                        "found a pattern of too many parts, expected at most "
                        "%d; split it into several rows",
                        BYI_PATTERN_MAX_NODES);
}

static bool same_dim(const struct byi_pat_dim *a, const struct byi_pat_dim *b)
{
    return a->any ? b->any
                  : !b->any && a->cmp == b->cmp && a->value == b->value;
}

bool byi_pat_type_equal(const struct byi_pat_type *a,
                        const struct byi_pat_type *b)
{
    if (a->n_dtypes != b->n_dtypes || a->has_dims != b->has_dims ||
        a->has_rest != b->has_rest || a->n_dims != b->n_dims ||
        a->rest != b->rest || !same_dim(&a->rank, &b->rank) ||
        !same_dim(&a->size, &b->size))
        return false;
    for (uint32_t i = 0; i < a->n_dtypes; i++)
        if (a->dtypes[i] != b->dtypes[i])
            return false;
    for (uint32_t i = 0; i < a->n_dims; i++)
        if (!same_dim(&a->dims[i], &b->dims[i]))
            return false;
    return true;
}

static bool same_test(const struct byi_pat_test *a,
                      const struct byi_pat_test *b)
{
    if (strcmp(a->name, b->name) != 0 || a->cmp != b->cmp || a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!byi_attr_value_equal(&a->values[i], &b->values[i]))
            return false;
    return true;
}

static bool same_lists(const struct byi_pat *a, const struct byi_pat *b)
{
    if (a->n_ops != b->n_ops || a->n_args != b->n_args ||
        a->n_tests != b->n_tests)
        return false;
    for (uint32_t i = 0; i < a->n_ops; i++)
        if (a->ops[i] != b->ops[i])
            return false;
    for (uint32_t i = 0; i < a->n_args; i++)
        if (a->args[i] != b->args[i])
            return false;
    for (uint32_t i = 0; i < a->n_tests; i++)
        if (!same_test(&a->tests[i], &b->tests[i]))
            return false;
    return true;
}

/* Operands are compared by their index, which equal operands share. */
static bool same_pat(const struct byi_pat *a, const struct byi_pat *b)
{
    return a->kind == b->kind && a->name == b->name &&
           a->inverse == b->inverse && a->index == b->index &&
           a->has_rest == b->has_rest && a->rest == b->rest &&
           a->min == b->min && a->max == b->max && a->forks == b->forks &&
           a->has_value == b->has_value && a->value == b->value &&
           same_lists(a, b) &&
           (!a->type || byi_pat_type_equal(a->type, b->type));
}

/* Add a node, or find an equal one. */
static enum byoc_status add_pat(struct parser *p, struct byi_pat pat,
                                uint32_t *out)
{
    BYI_TRY(check_capacity(p));
    *out = 0;
    while (*out < p->p->n_nodes && !same_pat(&p->nodes[*out], &pat))
        ++*out;
    if (*out == p->p->n_nodes)
        p->nodes[p->p->n_nodes++] = pat;
    return BYOC_OK;
}

static const uint32_t *copy_args(struct parser *p, const uint32_t *args,
                                 uint32_t n)
{
    return byi_arena_copy(p->arena, args, n * sizeof *args);
}

/* Returns the index of a name; adds the name if it is new. */
static uint32_t intern_name(struct parser *p, const char *text)
{
    uint32_t name = 0;
    while (name < p->p->n_names && strcmp(p->names[name], text) != 0)
        name++;
    if (name == p->p->n_names) {
        p->names[p->p->n_names++] = text;
        p->first_repeat[name] = p->in_repeat;
        p->repeated[name] = p->in_repeat > 0;
    }
    return name;
}

static enum byoc_status parse_name(struct parser *p, uint32_t *name)
{
    if (!byi_lex_is(&p->lex, BYI_TOK_LOCAL))
        return byi_lex_expected(&p->lex, "an operand such as %src", p->err);
    const char *text = byi_lex_text(p->arena, &p->lex.tok);
    if (strlen(text) > 15)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found an operand's name of %zu characters, "
                            "expected at most 15",
                            strlen(text));
    if (strcmp(text, BYI_CONST_NAME) == 0)
        return byi_lex_fail(
            &p->lex, &p->lex.tok, p->err,
            "found the name %%%s, which is reserved for constants without a "
            "name, expected a name that is not reserved",
            text);
    *name = intern_name(p, text);
    if (p->first_repeat[*name] && p->first_repeat[*name] != p->in_repeat)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found %%%s inside and outside of a repeated step, "
                            "expected a name for each of the two",
                            text);
    if (p->defined[*name])
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "%%%s is already defined, expected definitions "
                            "that use it before its own",
                            text);
    byi_lex_next(&p->lex);
    return BYOC_OK;
}

static enum byoc_status parse_any(struct parser *p, uint32_t *out)
{
    struct byi_pat pat = {.kind = BYI_PAT_ANY};
    BYI_TRY(check_capacity(p)); /* for the name, too */
    BYI_TRY(parse_name(p, &pat.name));
    BYI_TRY(add_pat(p, pat, out));
    p->leaf[pat.name] = 1 + *out;
    return BYOC_OK;
}

/* const %name   const %name = 0.5   const 0.5 */
static enum byoc_status parse_const(struct parser *p, uint32_t *out)
{
    struct byi_pat pat = {.kind = BYI_PAT_CONST};
    BYI_TRY(check_capacity(p));
    pat.has_value = byi_lex_is_number(&p->lex);
    if (pat.has_value) {
        pat.name = intern_name(p, BYI_CONST_NAME);
        p->p->nameless = pat.name;
        p->repeated[pat.name] = p->list[pat.name] = true;
        p->first_repeat[pat.name] = 0;
    } else {
        BYI_TRY(parse_name(p, &pat.name));
        pat.has_value = byi_lex_accept(&p->lex, '=');
        p->leaf[pat.name] = BYI_NO_NAME; /* no definition may follow */
    }
    if (pat.has_value) {
        bool is_float;
        int64_t i = 0;
        BYI_TRY(byi_lex_number(&p->lex, "a number", &is_float, &i, &pat.value,
                               p->err));
    }
    return add_pat(p, pat, out);
}

/* p | q | ...; a single choice is just p. */
static enum byoc_status parse_choices(struct parser *p, uint32_t *out,
                                      uint32_t *n)
{
    uint32_t choices[BYI_PATTERN_MAX_NODES];
    *n = 0;
    do {
        if (*n == BYI_PATTERN_MAX_NODES)
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "found too many choices, expected at most %d",
                                BYI_PATTERN_MAX_NODES);
        BYI_TRY(parse_pattern(p, &choices[*n]));
        *n += 1;
    } while (byi_lex_accept(&p->lex, '|'));
    *out = choices[0];
    if (*n == 1)
        return BYOC_OK;
    const struct byi_pat pat = {
        .kind = BYI_PAT_ALT, .n_args = *n, .args = copy_args(p, choices, *n)};
    return add_pat(p, pat, out);
}

static const char end_of_choices[] = "'|' or the end of the choices";

/* (p | q), or a tuple: (p, q)  (p,) */
static enum byoc_status parse_parens(struct parser *p, uint32_t *out)
{
    uint32_t fields[BYI_PATTERN_MAX_ARGS], n;
    BYI_TRY(parse_choices(p, out, &n));
    if (n > 1 || !byi_lex_accept(&p->lex, ','))
        return byi_lex_expect(&p->lex, ')', end_of_choices, p->err);
    fields[0] = *out;
    while (!byi_lex_is(&p->lex, ')')) {
        if (n == BYI_PATTERN_MAX_ARGS)
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "found a tuple of too many fields, expected "
                                "at most %d",
                                BYI_PATTERN_MAX_ARGS);
        BYI_TRY(parse_pattern(p, &fields[n++]));
        if (!byi_lex_accept(&p->lex, ','))
            break;
    }
    BYI_TRY(byi_lex_expect(&p->lex, ')', "',' or ')'", p->err));
    const struct byi_pat pat = {
        .kind = BYI_PAT_TUPLE, .n_args = n, .args = copy_args(p, fields, n)};
    return add_pat(p, pat, out);
}

static enum byoc_status parse_ops(struct parser *p, struct byi_pat *pat)
{
    enum byi_op_id ops[BYI_N_OPS];
    do {
        const struct byi_token tok = p->lex.tok;
        if (tok.kind != BYI_TOK_IDENT)
            return byi_lex_expected(&p->lex, "an operator", p->err);
        const struct byi_op *op = byi_op_of_name(tok.at, tok.n);
        if (!op)
            return byi_lex_fail(&p->lex, &tok, p->err,
                                "unknown operator '%.*s', expected one such "
                                "as nn.relu",
                                (int)tok.n, tok.at);
        if (pat->n_ops == BYI_N_OPS)
            return byi_lex_fail(&p->lex, &tok, p->err,
                                "found too many operators, expected at most "
                                "%d; list each operator once",
                                BYI_N_OPS);
        ops[pat->n_ops++] = op->id;
        byi_lex_next(&p->lex);
    } while (byi_lex_accept(&p->lex, '|'));
    pat->ops = byi_arena_copy(p->arena, ops, pat->n_ops * sizeof *ops);
    return BYOC_OK;
}

/* Whether the next tokens are "%name...". */
static bool is_at_rest(const struct parser *p)
{
    struct byi_lexer ahead = p->lex;
    byi_lex_next(&ahead);
    return p->lex.tok.kind == BYI_TOK_LOCAL && byi_lex_accept(&ahead, '.') &&
           byi_lex_is(&ahead, '.');
}

/* "%name..." as the last operand matches all further operands. */
static enum byoc_status parse_rest(struct parser *p, struct byi_pat *pat)
{
    const struct byi_token at = p->lex.tok;
    BYI_TRY(check_capacity(p));
    BYI_TRY(parse_name(p, &pat->rest));
    for (int i = 0; i < 3; i++)
        BYI_TRY(byi_lex_expect(&p->lex, '.', "'...'", p->err));
    if (p->in_step)
        return byi_lex_fail(&p->lex, &at, p->err,
                            "found '...' inside a step, expected operands "
                            "that are written out");
    pat->has_rest = true;
    p->list[pat->rest] = p->repeated[pat->rest] = true;
    return BYOC_OK;
}

/* The character that marks an operand that is subtracted ('-', in add) or
 * divided by ('/', in multiply); 0: the operator has none. */
static int inverse_mark(const struct byi_pat *pat)
{
    const enum byi_op_id op = pat->n_ops == 1 ? pat->ops[0] : BYI_OP_NONE;
    return op == BYI_OP_MULTIPLY ? '/' : op == BYI_OP_ADD ? '-' : 0;
}

static enum byoc_status parse_arg(struct parser *p, struct byi_pat *pat,
                                  uint32_t *arg)
{
    const int mark = inverse_mark(pat);
    if (is_at_rest(p))
        return parse_rest(p, pat);
    if (mark && byi_lex_accept(&p->lex, mark))
        pat->inverse |= 1u << pat->n_args;
    BYI_TRY(parse_pattern(p, arg));
    pat->n_args++;
    return BYOC_OK;
}

static enum byoc_status parse_args(struct parser *p, struct byi_pat *pat)
{
    uint32_t args[BYI_PATTERN_MAX_ARGS];
    BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and operands", p->err));
    if (byi_lex_accept(&p->lex, ')'))
        return BYOC_OK;
    do {
        if (pat->has_rest)
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "found an operand after one with '...', "
                                "expected that one last");
        if (pat->n_args == BYI_PATTERN_MAX_ARGS && !is_at_rest(p))
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "found another operand, expected at most %d",
                                BYI_PATTERN_MAX_ARGS);
        BYI_TRY(parse_arg(p, pat, &args[pat->n_args]));
    } while (byi_lex_accept(&p->lex, ','));
    pat->args = copy_args(p, args, pat->n_args);
    return byi_lex_expect(&p->lex, ')', "',' or ')'", p->err);
}

/* Check the number of operands for every operator of the set. */
static enum byoc_status check_arity(struct parser *p, const struct byi_pat *pat,
                                    const struct byi_token *at)
{
    for (uint32_t i = 0; i < pat->n_ops; i++) {
        const struct byi_op *op = byi_op(pat->ops[i]);
        if (pat->n_args <= op->max_in &&
            (pat->n_args >= op->min_in || pat->has_rest))
            continue;
        char upper[16] = "";
        if (op->max_in > op->min_in)
            snprintf(upper, sizeof upper, " to %u", op->max_in);
        return byi_lex_fail(&p->lex, at, p->err,
                            "%s: found %u operands, expected %u%s", op->name,
                            pat->n_args, op->min_in, upper);
    }
    return BYOC_OK;
}

static enum byoc_status parse_op(struct parser *p, uint32_t *out)
{
    const struct byi_token at = p->lex.tok;
    struct byi_pat pat = {.kind = BYI_PAT_OP};
    BYI_TRY(parse_ops(p, &pat));
    BYI_TRY(parse_args(p, &pat));
    if (pat.inverse || (inverse_mark(&pat) && pat.n_args > 2 && !pat.has_rest))
        pat.kind = BYI_PAT_GROUP;
    else
        BYI_TRY(check_arity(p, &pat, &at));
    if (pat.kind == BYI_PAT_GROUP && (pat.n_args < 2 || pat.has_rest))
        return byi_lex_fail(&p->lex, &at, p->err,
                            "%s: found %u operands, expected 2 or more that "
                            "are written out",
                            byi_op(pat.ops[0])->name, pat.n_args);
    BYI_TRY(byi_parse_tests(&p->lex, p->arena, &pat, p->err));
    return add_pat(p, pat, out);
}

/* if (p) { q } else { r } */
static enum byoc_status parse_if(struct parser *p, uint32_t *out)
{
    struct byi_lexer *lex = &p->lex;
    uint32_t args[3];
    if (p->in_if == BYI_PATTERN_MAX_IFS)
        return byi_lex_fail(lex, &lex->tok, p->err,
                            "found too deeply nested 'if's, expected at most "
                            "%d levels",
                            BYI_PATTERN_MAX_IFS);
    p->in_if++;
    BYI_TRY(byi_lex_expect(lex, '(', "'(' and a condition", p->err));
    BYI_TRY(parse_pattern(p, &args[0]));
    BYI_TRY(byi_lex_expect(lex, ')', "')'", p->err));
    BYI_TRY(byi_lex_expect(lex, '{', "'{' and a pattern", p->err));
    BYI_TRY(parse_pattern(p, &args[1]));
    BYI_TRY(byi_lex_expect(lex, '}', "'}'", p->err));
    if (!byi_lex_accept_word(lex, "else"))
        return byi_lex_expected(lex, "'else'", p->err);
    BYI_TRY(byi_lex_expect(lex, '{', "'{' and a pattern", p->err));
    BYI_TRY(parse_pattern(p, &args[2]));
    BYI_TRY(byi_lex_expect(lex, '}', "'}'", p->err));
    p->in_if--;
    const struct byi_pat pat = {
        .kind = BYI_PAT_IF, .n_args = 3, .args = copy_args(p, args, 3)};
    return add_pat(p, pat, out);
}

static enum byoc_status parse_primary(struct parser *p, uint32_t *out)
{
    const struct byi_token at = p->lex.tok;
    if (at.kind == BYI_TOK_LOCAL)
        return parse_any(p, out);
    if (byi_lex_accept_word(&p->lex, "const"))
        return parse_const(p, out);
    if (byi_lex_accept_word(&p->lex, "if"))
        return parse_if(p, out);
    if (byi_lex_accept(&p->lex, '('))
        return parse_parens(p, out);
    if (byi_lex_accept(&p->lex, '^')) {
        if (!p->in_step)
            return byi_lex_fail(&p->lex, &at, p->err,
                                "'^' stands for the value before a step, "
                                "expected it in a step");
        return add_pat(p, (struct byi_pat){.kind = BYI_PAT_HOLE}, out);
    }
    return parse_op(p, out);
}

/* --- steps ---------------------------------------------------------------- */

/* Whether a step adds an operator for every choice that may match. */
static bool adds_operator(const struct parser *p, uint32_t at)
{
    const struct byi_pat *pat = &p->nodes[at];
    switch (pat->kind) {
    case BYI_PAT_OP:
    case BYI_PAT_GROUP:
    case BYI_PAT_IF:
        return true;
    case BYI_PAT_CHAIN:
    case BYI_PAT_TYPE:
        return adds_operator(p, pat->args[0]);
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++)
            if (!adds_operator(p, pat->args[i]))
                return false;
        return true;
    default:
        return false;
    }
}

/* Whether a step has a '^' in every choice that may match. */
static bool has_hole(const struct parser *p, uint32_t at)
{
    const struct byi_pat *pat = &p->nodes[at];
    const uint32_t n = pat->kind == BYI_PAT_CHAIN ? 1 : pat->n_args;
    uint32_t found = 0;
    if (pat->kind == BYI_PAT_HOLE)
        return true;
    for (uint32_t i = 0; i < n; i++)
        found += has_hole(p, pat->args[i]);
    return pat->kind == BYI_PAT_ALT ? found == n : found > 0;
}

/* Read the quantifier of a step: nothing, ?, *, ~, {2}, {2, 4} */
static enum byoc_status parse_quantifier(struct byi_lexer *lex,
                                         struct byi_pat *pat,
                                         struct byoc_error *err)
{
    int64_t min, max;
    pat->min = pat->max = 1;
    pat->forks = byi_lex_accept(lex, '~');
    if (pat->forks || byi_lex_accept(lex, '*')) {
        pat->min = 0;
        pat->max = BYI_PATTERN_MAX_REPEAT;
    } else if (byi_lex_accept(lex, '?')) {
        pat->min = 0;
    } else if (byi_lex_accept(lex, '{')) {
        BYI_TRY(byi_lex_int(lex, 0, BYI_PATTERN_MAX_REPEAT,
                            "the number of repetitions", &min, err));
        max = min;
        if (byi_lex_accept(lex, ','))
            BYI_TRY(byi_lex_int(lex, min ? min : 1, BYI_PATTERN_MAX_REPEAT,
                                "the largest number of repetitions", &max,
                                err));
        if (max == 0)
            return byi_lex_fail(
                lex, &lex->tok, err,
                "found a step that occurs 0 times, expected at least 1");
        pat->min = (uint32_t)min;
        pat->max = (uint32_t)max;
        return byi_lex_expect(lex, '}', "',' or '}'", err);
    }
    return BYOC_OK;
}

/* Look ahead to the quantifier of a step, since names inside depend on it. */
static enum byoc_status look_for_quantifier(const struct parser *p,
                                            struct byi_pat *pat)
{
    struct byi_lexer ahead = p->lex;
    for (uint32_t open = 1; open && ahead.tok.kind > 0; byi_lex_next(&ahead)) {
        if (ahead.tok.kind == BYI_TOK_BAD)
            break;
        open += ahead.tok.kind == '[';
        open -= ahead.tok.kind == ']';
    }
    return parse_quantifier(&ahead, pat, p->err);
}

/* base [step]  base [step]?  base [step]*  base [step]~ */
static enum byoc_status parse_step(struct parser *p, uint32_t *out)
{
    uint32_t args[2] = {*out, 0}, n;
    struct byi_pat pat = {.kind = BYI_PAT_CHAIN};
    BYI_TRY(look_for_quantifier(p, &pat));
    const bool repeats = pat.max > 1;
    if (repeats && p->in_repeat)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found a repeated step inside another, expected "
                            "a step without '*', '~' or a count");
    const uint32_t outer = p->in_repeat;
    p->in_step++;
    if (repeats)
        p->in_repeat = ++p->n_repeats;
    BYI_TRY(parse_choices(p, &args[1], &n));
    BYI_TRY(byi_lex_expect(&p->lex, ']', end_of_choices, p->err));
    p->in_repeat = outer;
    p->in_step--;
    BYI_TRY(parse_quantifier(&p->lex, &pat, p->err));
    if (!adds_operator(p, args[1]))
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found a step that may add no operator, expected "
                            "an operator in each choice");
    if (!has_hole(p, args[1]))
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found a step without '^', expected '^' for the "
                            "value before the step in each choice");
    if (pat.forks) {
        const struct byi_pat once = {.kind = BYI_PAT_ONCE,
                                     .name = BYI_NO_NAME,
                                     .n_args = 1,
                                     .args = copy_args(p, args, 1)};
        BYI_TRY(add_pat(p, once, &args[0]));
    }
    pat.n_args = 2;
    pat.args = copy_args(p, args, 2);
    return add_pat(p, pat, out);
}

static enum byoc_status parse_field(struct parser *p, uint32_t *out)
{
    int64_t index;
    byi_lex_next(&p->lex);
    BYI_TRY(byi_lex_int(&p->lex, 0, BYI_MAX_ARGS, "a field", &index, p->err));
    const struct byi_pat pat = {.kind = BYI_PAT_GET,
                                .index = (uint32_t)index,
                                .n_args = 1,
                                .args = copy_args(p, out, 1)};
    return add_pat(p, pat, out);
}

static enum byoc_status parse_type(struct parser *p, uint32_t *out)
{
    struct byi_pat pat = {
        .kind = BYI_PAT_TYPE, .n_args = 1, .args = copy_args(p, out, 1)};
    BYI_TRY(byi_parse_pat_type(&p->lex, p->arena, &pat.type, p->err));
    return add_pat(p, pat, out);
}

/* Read a primary and its suffixes. */
static enum byoc_status parse_pattern(struct parser *p, uint32_t *out)
{
    if (++p->depth > MAX_DEPTH)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "found a too deeply nested pattern, expected at "
                            "most %d levels",
                            MAX_DEPTH);
    BYI_TRY(parse_primary(p, out));
    for (;;) {
        if (byi_lex_is(&p->lex, '.') &&
            byi_lex_peek(&p->lex).kind == BYI_TOK_NUMBER)
            BYI_TRY(parse_field(p, out));
        else if (byi_lex_accept(&p->lex, '['))
            BYI_TRY(parse_step(p, out));
        else if (byi_lex_accept(&p->lex, ':'))
            BYI_TRY(parse_type(p, out));
        else
            break;
    }
    p->depth--;
    return BYOC_OK;
}

/* Read "with %e = exp(%x), %f = ...", if it is there: definitions of names that
 * the pattern uses. */
static enum byoc_status parse_defs(struct parser *p)
{
    if (!byi_lex_accept_word(&p->lex, "with"))
        return BYOC_OK;
    do {
        const struct byi_token at = p->lex.tok;
        uint32_t name, body;
        BYI_TRY(check_capacity(p));
        BYI_TRY(parse_name(p, &name));
        const uint32_t leaf = p->leaf[name];
        if (leaf == 0 || leaf == BYI_NO_NAME || p->list[name] ||
            p->repeated[name])
            return byi_lex_fail(&p->lex, &at, p->err,
                                "%%%s cannot be defined, expected an operand "
                                "that was used, outside of repeated steps",
                                p->names[name]);
        BYI_TRY(byi_lex_expect(&p->lex, '=', "'='", p->err));
        p->defined[name] = true;
        BYI_TRY(parse_pattern(p, &body));
        p->nodes[leaf - 1] = (struct byi_pat){.kind = BYI_PAT_ONCE,
                                              .name = name,
                                              .n_args = 1,
                                              .args = copy_args(p, &body, 1)};
        p->defs[p->p->n_defs++] = leaf - 1;
    } while (byi_lex_accept(&p->lex, ','));
    return BYOC_OK;
}

/* --- a table -------------------------------------------------------------- */

/* Whether `name` is the name `repeated` with a number after it: %x1 could also
 * be the second value of a repeated %x. */
static bool is_number_of(const char *name, const char *repeated)
{
    const size_t n = strlen(repeated);
    return strncmp(name, repeated, n) == 0 && name[n] &&
           name[n + strspn(name + n, "0123456789")] == '\0';
}

static enum byoc_status check_names(const struct parser *p, uint32_t index,
                                    const char *row)
{
    for (uint32_t i = 0; i < p->p->n_names; i++) {
        if (p->list[i] && p->leaf[i])
            return byi_fail(p->err, BYOC_EINVAL,
                            "row %u (%s): %%%s is written both with '...' and "
                            "without, expected only one of the two",
                            index, row, p->names[i]);
        for (uint32_t k = 0; k < p->p->n_names; k++)
            if (p->repeated[k] && is_number_of(p->names[i], p->names[k]))
                return byi_fail(
                    p->err, BYOC_EINVAL,
                    "row %u (%s): found %%%s, which could be one of the "
                    "repeated %%%s, expected a name without a number",
                    index, row, p->names[i], p->names[k]);
    }
    return BYOC_OK;
}

/* Copy nodes and names from the parser, which has room for the longest pattern,
 * to the pattern. */
static void copy_parts(const struct parser *p)
{
    struct byi_pattern *out = p->p;
    out->nodes =
        byi_arena_copy(p->arena, p->nodes, out->n_nodes * sizeof *p->nodes);
    out->names =
        byi_arena_copy(p->arena, p->names, out->n_names * sizeof *p->names);
    out->repeated = byi_arena_copy(p->arena, p->repeated,
                                   out->n_names * sizeof *p->repeated);
    out->defs =
        byi_arena_copy(p->arena, p->defs, out->n_defs * sizeof *p->defs);
}

/* Compile a row to *out, in `arena`. This sets all of *p but its last arrays,
 * so that one parser can compile many rows. */
static enum byoc_status compile_row(struct parser *p, struct byi_arena *arena,
                                    uint32_t index,
                                    const struct byoc_pattern *row,
                                    struct byi_pattern *out,
                                    struct byoc_error *err)
{
    memset(p, 0, offsetof(struct parser, nodes));
    p->arena = arena;
    p->err = err;
    p->p = out;
    *out = (struct byi_pattern){.row = row, .nameless = BYI_NO_NAME};
    byi_lex_init(&p->lex, NULL, row->pattern, strlen(row->pattern));
    enum byoc_status status = parse_pattern(p, &out->root);
    if (status == BYOC_OK)
        status = parse_defs(p);
    if (status == BYOC_OK && !byi_lex_is(&p->lex, BYI_TOK_END))
        status = byi_lex_expected(&p->lex, "the end of the pattern", err);
    if (status != BYOC_OK) {
        byi_prefix(err, "row %u (%s)", index, row->name);
        return status;
    }
    BYI_TRY(check_names(p, index, row->name));
    copy_parts(p);
    if (!byi_pat_mark_roots(out, out->root, out->roots))
        return byi_fail(err, BYOC_EINVAL,
                        "row %u (%s): found a root that can be an operand, "
                        "expected an operator",
                        index, row->name);
    return BYOC_OK;
}

enum byoc_status byi_patterns_compile_in(struct byi_arena *arena,
                                         const struct byoc_pattern *rows,
                                         uint32_t n,
                                         struct byi_pattern_table **table,
                                         struct byoc_error *err)
{
    struct byi_arena *scratch = byi_arena_new();
    struct parser *p = byi_arena_alloc(scratch, sizeof *p);
    struct byi_pattern_table *t = byi_arena_alloc(arena, sizeof *t);
    struct byi_pattern *at = byi_arena_calloc(arena, n, sizeof *at);
    enum byoc_status status = BYOC_OK;
    for (uint32_t i = 0; i < n && status == BYOC_OK; i++) {
        status = compile_row(p, arena, i, &rows[i], &at[i], err);
        for (uint32_t k = 0; status == BYOC_OK && k < at[i].n_nodes; k++)
            byi_pat_mark_ops(&at[i].nodes[k], t->inside);
    }
    byi_arena_free(&scratch);
    t->n = n;
    t->at = at;
    *table = status == BYOC_OK ? t : NULL;
    return status;
}

enum byoc_status byi_patterns_compile(const struct byoc_pattern *rows,
                                      uint32_t n,
                                      struct byi_pattern_table **table,
                                      struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    const enum byoc_status status =
        byi_patterns_compile_in(arena, rows, n, table, err);
    if (status == BYOC_OK)
        (*table)->arena = arena;
    else
        byi_arena_free(&arena);
    return status;
}

void byi_patterns_free(struct byi_pattern_table **table)
{
    if (!*table)
        return;
    struct byi_arena *arena = (*table)->arena;
    *table = NULL;
    byi_arena_free(&arena);
}
