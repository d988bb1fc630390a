/* parse.c: a row's text becomes a tree of struct byi_pat; a table of rows an
 * index from root operators to rows. The notation is in docs/patterns.md.
 */
#include "patterns.h"

#include "core/lex.h"

#include <string.h>

enum { MAX_DEPTH = 48 };

struct parser {
    struct byi_arena *arena;
    struct byi_lexer lex;
    struct byoc_error *err;
    struct byi_pat nodes[BYI_PATTERN_MAX_NODES];
    const char *names[BYI_PATTERN_MAX_NODES];
    bool repeated[BYI_PATTERN_MAX_NODES];
    uint32_t n_nodes, n_names, depth;
    uint32_t in_step;   /* steps around the current place            */
    uint32_t in_repeat; /* the '*' step around it, from 1; 0: none   */
    uint32_t n_repeats; /* '*' steps so far                          */
    uint32_t home[BYI_PATTERN_MAX_NODES]; /* in_repeat of each name  */
};

static enum byoc_status parse_pattern(struct parser *p, uint32_t *out);

static enum byoc_status check_room(struct parser *p)
{
    if (p->n_nodes < BYI_PATTERN_MAX_NODES)
        return BYOC_OK;
    return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                        "too long a pattern (limit is %d parts)",
                        BYI_PATTERN_MAX_NODES);
}

static enum byoc_status add(struct parser *p, struct byi_pat pat, uint32_t *out)
{
    BYI_TRY(check_room(p));
    *out = p->n_nodes;
    p->nodes[p->n_nodes++] = pat;
    return BYOC_OK;
}

/* The operand's name, new or seen before. */
static enum byoc_status parse_name(struct parser *p, uint32_t *name)
{
    if (!byi_lex_is(&p->lex, BYI_TOK_LOCAL))
        return byi_lex_expected(&p->lex, "an operand such as %src", p->err);
    const char *text = byi_lex_text(p->arena, &p->lex.tok);
    if (strlen(text) > 15)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "the operand's name is longer than 15 characters");
    for (*name = 0; *name < p->n_names; (*name)++)
        if (strcmp(p->names[*name], text) == 0)
            break;
    if (*name == p->n_names) {
        p->names[p->n_names] = text;
        p->home[p->n_names] = p->in_repeat;
        p->repeated[p->n_names++] = p->in_repeat > 0;
    }
    if (p->home[*name] && p->home[*name] != p->in_repeat)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "%%%s belongs to a '*' step and stands outside of "
                            "it too; give it another name",
                            text);
    byi_lex_next(&p->lex);
    return BYOC_OK;
}

static enum byoc_status parse_leaf(struct parser *p, enum byi_pat_kind kind,
                                   uint32_t *out)
{
    struct byi_pat pat = {.kind = kind};
    BYI_TRY(check_room(p)); /* for the name, too */
    BYI_TRY(parse_name(p, &pat.name));
    return add(p, pat, out);
}

/* p | q | ... up to `close`; one choice stands for itself. */
static enum byoc_status parse_choices(struct parser *p, int close,
                                      uint32_t *out)
{
    uint32_t choices[BYI_PATTERN_MAX_NODES], n = 0;
    do {
        BYI_TRY(parse_pattern(p, &choices[n++]));
    } while (byi_lex_accept(&p->lex, '|'));
    BYI_TRY(byi_lex_expect(&p->lex, close, "'|' or the end of the choices",
                           p->err));
    if (n == 1) {
        *out = choices[0];
        return BYOC_OK;
    }
    const struct byi_pat pat = {
        .kind = BYI_PAT_ALT,
        .n_args = n,
        .args = byi_arena_copy(p->arena, choices, n * sizeof *choices)};
    return add(p, pat, out);
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
                                "unknown operator '%.*s'", (int)tok.n, tok.at);
        if (pat->n_ops == BYI_N_OPS)
            return byi_lex_fail(&p->lex, &tok, p->err, "too many operators");
        ops[pat->n_ops++] = op->id;
        byi_lex_next(&p->lex);
    } while (byi_lex_accept(&p->lex, '|'));
    pat->ops = byi_arena_copy(p->arena, ops, pat->n_ops * sizeof *ops);
    return BYOC_OK;
}

/* "%name..." as the last operand takes all that are left. */
static enum byoc_status parse_rest(struct parser *p, struct byi_pat *pat,
                                   uint32_t leaf)
{
    if (!byi_lex_accept(&p->lex, '.'))
        return BYOC_OK;
    BYI_TRY(byi_lex_expect(&p->lex, '.', "'...'", p->err));
    BYI_TRY(byi_lex_expect(&p->lex, '.', "'...'", p->err));
    if (p->nodes[leaf].kind != BYI_PAT_ANY || p->in_step)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "'...' stands after %%name, outside of steps");
    pat->has_rest = true;
    pat->rest = p->nodes[leaf].name;
    p->repeated[pat->rest] = true;
    return BYOC_OK;
}

static enum byoc_status parse_args(struct parser *p, struct byi_pat *pat)
{
    uint32_t args[BYI_PATTERN_MAX_ARGS], n = 0;
    BYI_TRY(byi_lex_expect(&p->lex, '(', "'(' and operands", p->err));
    if (byi_lex_accept(&p->lex, ')'))
        return BYOC_OK;
    do {
        if (n == BYI_PATTERN_MAX_ARGS || pat->has_rest)
            return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                                "too many operands (limit is %d, and '...' "
                                "is the last)",
                                BYI_PATTERN_MAX_ARGS);
        BYI_TRY(parse_pattern(p, &args[n]));
        BYI_TRY(parse_rest(p, pat, args[n]));
        n += !pat->has_rest;
    } while (byi_lex_accept(&p->lex, ','));
    pat->n_args = n;
    pat->args = byi_arena_copy(p->arena, args, n * sizeof *args);
    return byi_lex_expect(&p->lex, ')', "',' or ')'", p->err);
}

/* Operands as the operator has them, for every operator of the set. */
static enum byoc_status check_arity(struct parser *p, const struct byi_pat *pat,
                                    const struct byi_token *at)
{
    for (uint32_t i = 0; i < pat->n_ops; i++) {
        const struct byi_op *op = byi_op(pat->ops[i]);
        if (pat->n_args <= op->max_in &&
            (pat->n_args >= op->min_in || pat->has_rest))
            continue;
        char most[16] = "";
        if (op->max_in > op->min_in)
            snprintf(most, sizeof most, " to %u", op->max_in);
        return byi_lex_fail(&p->lex, at, p->err,
                            "%s: found %u operands, expected %u%s", op->name,
                            pat->n_args, op->min_in, most);
    }
    return BYOC_OK;
}

static enum byoc_status parse_value(struct parser *p, struct byi_attr *attr)
{
    bool is_float;
    if (byi_lex_is(&p->lex, BYI_TOK_STRING)) {
        attr->kind = BYI_ATTR_STRING;
        attr->s = byi_lex_text(p->arena, &p->lex.tok);
        byi_lex_next(&p->lex);
        return BYOC_OK;
    }
    if (byi_lex_is_word(&p->lex, "true") || byi_lex_is_word(&p->lex, "false")) {
        attr->kind = BYI_ATTR_BOOL;
        attr->i = byi_lex_is_word(&p->lex, "true");
        byi_lex_next(&p->lex);
        return BYOC_OK;
    }
    double f;
    BYI_TRY(byi_lex_number(&p->lex, "a number, a string, true or false",
                           &is_float, &attr->i, &f, p->err));
    attr->kind = BYI_ATTR_INT;
    if (is_float) {
        attr->kind = BYI_ATTR_FLOAT;
        attr->f = f;
    }
    return BYOC_OK;
}

/* {name=value, ...}: every operator of the set must declare the attribute
 * with the value's kind; an integer also fits a float. */
static enum byoc_status parse_attrs(struct parser *p, struct byi_pat *pat)
{
    struct byi_attr attrs[16];
    if (!byi_lex_accept(&p->lex, '{'))
        return BYOC_OK;
    do {
        const struct byi_token at = p->lex.tok;
        if (at.kind != BYI_TOK_IDENT || pat->n_attrs == BYI_COUNT(attrs))
            return byi_lex_expected(&p->lex, "an attribute", p->err);
        struct byi_attr *attr = &attrs[pat->n_attrs++];
        *attr = (struct byi_attr){.name = byi_lex_text(p->arena, &at)};
        byi_lex_next(&p->lex);
        BYI_TRY(byi_lex_expect(&p->lex, '=', "'='", p->err));
        BYI_TRY(parse_value(p, attr));
        for (uint32_t i = 0; i < pat->n_ops; i++) {
            const struct byi_op *op = byi_op(pat->ops[i]);
            const struct byi_attr_def *def = NULL;
            for (uint32_t a = 0; a < op->n_attrs && !def; a++)
                if (strcmp(op->attrs[a].name, attr->name) == 0)
                    def = &op->attrs[a];
            if (def && def->kind == BYI_ATTR_FLOAT &&
                attr->kind == BYI_ATTR_INT) {
                attr->kind = BYI_ATTR_FLOAT;
                attr->f = (double)attr->i;
            }
            if (!def || def->kind != attr->kind)
                return byi_lex_fail(&p->lex, &at, p->err,
                                    "%s has no attribute '%s' of this kind",
                                    op->name, attr->name);
        }
    } while (byi_lex_accept(&p->lex, ','));
    pat->attrs = byi_arena_copy(p->arena, attrs, pat->n_attrs * sizeof *attrs);
    return byi_lex_expect(&p->lex, '}', "',' or '}'", p->err);
}

static enum byoc_status parse_op(struct parser *p, uint32_t *out)
{
    const struct byi_token at = p->lex.tok;
    struct byi_pat pat = {.kind = BYI_PAT_OP};
    BYI_TRY(parse_ops(p, &pat));
    BYI_TRY(parse_args(p, &pat));
    BYI_TRY(check_arity(p, &pat, &at));
    BYI_TRY(parse_attrs(p, &pat));
    return add(p, pat, out);
}

static enum byoc_status parse_primary(struct parser *p, uint32_t *out)
{
    const struct byi_token at = p->lex.tok;
    if (at.kind == BYI_TOK_LOCAL)
        return parse_leaf(p, BYI_PAT_ANY, out);
    if (byi_lex_accept_word(&p->lex, "const"))
        return parse_leaf(p, BYI_PAT_CONST, out);
    if (byi_lex_accept(&p->lex, '('))
        return parse_choices(p, ')', out);
    if (byi_lex_accept(&p->lex, '^')) {
        if (!p->in_step)
            return byi_lex_fail(&p->lex, &at, p->err,
                                "'^' stands for what is before a step; there "
                                "is no step here");
        return add(p, (struct byi_pat){.kind = BYI_PAT_HOLE}, out);
    }
    return parse_op(p, out);
}

/* A step adds an operator, whichever choice is taken. */
static bool is_step(const struct parser *p, uint32_t at)
{
    const struct byi_pat *pat = &p->nodes[at];
    if (pat->kind == BYI_PAT_CHAIN)
        return is_step(p, pat->args[0]);
    if (pat->kind != BYI_PAT_ALT)
        return pat->kind == BYI_PAT_OP;
    for (uint32_t i = 0; i < pat->n_args; i++)
        if (!is_step(p, pat->args[i]))
            return false;
    return true;
}

/* base [step]?  base [step]*  base [step] */
static enum byoc_status parse_step(struct parser *p, uint32_t *out)
{
    uint32_t args[2] = {*out, 0};
    struct byi_pat pat = {.kind = BYI_PAT_CHAIN, .min = 1, .max = 1};
    /* Whether the step repeats stands behind it, but names inside must know:
     * look for the mark first. */
    struct byi_lexer ahead = p->lex;
    for (uint32_t open = 1; open && ahead.tok.kind > 0; byi_lex_next(&ahead)) {
        if (ahead.tok.kind == BYI_TOK_BAD)
            break;
        open += ahead.tok.kind == '[';
        open -= ahead.tok.kind == ']';
    }
    if (byi_lex_is(&ahead, '*'))
        pat.max = BYI_PATTERN_MAX_REPEAT;
    if (pat.max > 1 && p->in_repeat)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "a '*' step cannot stand inside another");
    const uint32_t outer = p->in_repeat;
    p->in_step++;
    if (pat.max > 1)
        p->in_repeat = ++p->n_repeats;
    BYI_TRY(parse_choices(p, ']', &args[1]));
    p->in_repeat = outer;
    p->in_step--;
    if (byi_lex_accept(&p->lex, '?') || byi_lex_accept(&p->lex, '*'))
        pat.min = 0;
    if (!is_step(p, args[1]))
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "a step must be an operator");
    pat.n_args = 2;
    pat.args = byi_arena_copy(p->arena, args, sizeof args);
    return add(p, pat, out);
}

static enum byoc_status parse_pattern(struct parser *p, uint32_t *out)
{
    if (++p->depth > MAX_DEPTH)
        return byi_lex_fail(&p->lex, &p->lex.tok, p->err,
                            "too deep a pattern (limit is %d)", MAX_DEPTH);
    BYI_TRY(parse_primary(p, out));
    while (byi_lex_is(&p->lex, '.') &&
           byi_lex_peek(&p->lex).kind == BYI_TOK_NUMBER) {
        int64_t index;
        byi_lex_next(&p->lex);
        BYI_TRY(
            byi_lex_int(&p->lex, 0, BYI_MAX_ARGS, "a field", &index, p->err));
        const struct byi_pat pat = {
            .kind = BYI_PAT_GET,
            .index = (uint32_t)index,
            .n_args = 1,
            .args = byi_arena_copy(p->arena, out, sizeof *out)};
        BYI_TRY(add(p, pat, out));
    }
    while (byi_lex_accept(&p->lex, '['))
        BYI_TRY(parse_step(p, out));
    p->depth--;
    return BYOC_OK;
}

/* --- a table
 * ------------------------------------------------------------------ */

/* Mark the operators that can be the root of the pattern. A row whose root
 * can be a bare operand would match everything. */
static bool mark_roots(const struct byi_pattern *p, uint32_t at, bool *roots)
{
    const struct byi_pat *pat = &p->nodes[at];
    switch (pat->kind) {
    case BYI_PAT_OP:
        for (uint32_t i = 0; i < pat->n_ops; i++)
            roots[pat->ops[i]] = true;
        return true;
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++)
            if (!mark_roots(p, pat->args[i], roots))
                return false;
        return true;
    case BYI_PAT_CHAIN:
        return mark_roots(p, pat->args[1], roots) &&
               (pat->min > 0 || mark_roots(p, pat->args[0], roots));
    default:
        return false;
    }
}

/* A name with '...' always has it: it stands for many values, or for one. */
static bool is_mixed(const struct parser *p, uint32_t name)
{
    uint32_t leaves = 0, rests = 0;
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct byi_pat *pat = &p->nodes[i];
        leaves += pat->kind <= BYI_PAT_CONST && pat->name == name;
        rests += pat->has_rest && pat->rest == name;
    }
    return rests && rests != leaves;
}

/* %x1 could also be the second one of a repeated %x. */
static bool is_number_of(const char *name, const char *repeated)
{
    const size_t n = strlen(repeated);
    return strncmp(name, repeated, n) == 0 && name[n] &&
           name[n + strspn(name + n, "0123456789")] == '\0';
}

static enum byoc_status check_names(const struct parser *p, uint32_t index,
                                    const char *row)
{
    for (uint32_t i = 0; i < p->n_names; i++) {
        if (is_mixed(p, i))
            return byi_fail(p->err, BYOC_EINVAL,
                            "row %u (%s): %%%s stands with '...' and without",
                            index, row, p->names[i]);
        for (uint32_t k = 0; k < p->n_names; k++)
            if (p->repeated[k] && is_number_of(p->names[i], p->names[k]))
                return byi_fail(p->err, BYOC_EINVAL,
                                "row %u (%s): %%%s could be one of the "
                                "repeated %%%s; give it another name",
                                index, row, p->names[i], p->names[k]);
    }
    return BYOC_OK;
}

static enum byoc_status compile_row(struct byi_arena *arena, uint32_t index,
                                    const struct byoc_pattern *row,
                                    struct byi_pattern *out, bool *roots,
                                    struct byoc_error *err)
{
    struct parser *p = byi_arena_alloc(arena, sizeof *p);
    p->arena = arena;
    p->err = err;
    byi_lex_init(&p->lex, NULL, row->pattern, strlen(row->pattern));
    enum byoc_status status = parse_pattern(p, &out->root);
    if (status == BYOC_OK && !byi_lex_is(&p->lex, BYI_TOK_END))
        status = byi_lex_expected(&p->lex, "the end of the pattern", err);
    if (status != BYOC_OK) {
        byi_prefix(err, "row %u (%s)", index, row->name);
        return status;
    }
    BYI_TRY(check_names(p, index, row->name));
    out->row = row;
    out->n_nodes = p->n_nodes;
    out->nodes = p->nodes;
    out->n_names = p->n_names;
    out->names = p->names;
    out->repeated = p->repeated;
    if (!mark_roots(out, out->root, roots))
        return byi_fail(err, BYOC_EINVAL,
                        "row %u (%s): its root must be an operator", index,
                        row->name);
    return BYOC_OK;
}

enum byoc_status byi_patterns_compile(const struct byoc_pattern *rows,
                                      uint32_t n,
                                      struct byi_pattern_table **table,
                                      struct byoc_error *err)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_pattern_table *t = byi_arena_alloc(arena, sizeof *t);
    struct byi_pattern *at = byi_arena_calloc(arena, n, sizeof *at);
    bool(*roots)[BYI_N_OPS] = byi_arena_calloc(arena, n, sizeof *roots);
    t->arena = arena;
    for (uint32_t i = 0; i < n; i++) {
        enum byoc_status status =
            compile_row(arena, i, &rows[i], &at[i], roots[i], err);
        if (status != BYOC_OK) {
            byi_arena_free(&arena);
            return status;
        }
        for (uint32_t k = 0; k < at[i].n_nodes; k++)
            for (uint32_t o = 0; o < at[i].nodes[k].n_ops; o++)
                t->inside[at[i].nodes[k].ops[o]] = true;
    }
    BYI_VEC(uint32_t) by_root = {0};
    for (uint32_t op = 0; op < BYI_N_OPS; op++) {
        t->first[op] = by_root.n;
        for (uint32_t i = 0; i < n; i++)
            if (roots[i][op])
                BYI_PUSH(&by_root, i);
    }
    t->first[BYI_N_OPS] = by_root.n;
    t->by_root =
        byi_arena_copy(arena, by_root.at, by_root.n * sizeof *by_root.at);
    byi_vec_free(by_root.at);
    t->n = n;
    t->at = at;
    *table = t;
    return BYOC_OK;
}

void byi_patterns_free(struct byi_pattern_table **table)
{
    if (!*table)
        return;
    struct byi_arena *arena = (*table)->arena;
    *table = NULL;
    byi_arena_free(&arena);
}
