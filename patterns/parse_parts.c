/* SPDX-License-Identifier: Apache-2.0 */
/* parse_parts.c: parses the tests in a pattern: tests of attributes in braces,
 * and tests of types after a colon.
 */
#include "parse.h"

#include <string.h>

enum { MAX_TESTS = 16, MAX_VALUES = 32 };

const char *const byi_cmp_text[BYI_N_CMPS] = {
    [BYI_EQ] = "=",  [BYI_NE] = "!=", [BYI_LT] = "<",
    [BYI_LE] = "<=", [BYI_GT] = ">",  [BYI_GE] = ">=",
};

/* = != < <= > >= */
static enum byoc_status parse_cmp(struct byi_lexer *lex, enum byi_cmp *cmp,
                                  struct byoc_error *err)
{
    if (byi_lex_accept(lex, '=')) {
        *cmp = BYI_EQ;
    } else if (byi_lex_accept(lex, '!')) {
        *cmp = BYI_NE;
        return byi_lex_expect(lex, '=', "'!='", err);
    } else if (byi_lex_accept(lex, '<')) {
        *cmp = byi_lex_accept(lex, '=') ? BYI_LE : BYI_LT;
    } else if (byi_lex_accept(lex, '>')) {
        *cmp = byi_lex_accept(lex, '=') ? BYI_GE : BYI_GT;
    } else {
        return byi_lex_expected(lex, "'=', '!=', '<', '<=', '>' or '>='", err);
    }
    return BYOC_OK;
}

static enum byoc_status parse_dtype(struct byi_lexer *lex,
                                    enum byoc_dtype *dtype,
                                    struct byoc_error *err)
{
    *dtype = byi_dtype_of_name(lex->tok.at, lex->tok.n);
    if (lex->tok.kind != BYI_TOK_IDENT || !*dtype)
        return byi_lex_expected(lex, "a dtype such as float32", err);
    byi_lex_next(lex);
    return BYOC_OK;
}

/* --- attributes ----------------------------------------------------------- */

/* Read a list after its '[': [1, _, 3]: integers; [0.5, 1]: floats, since one
 * item is a float; ["a", "b"]. */
static enum byoc_status parse_list(struct byi_lexer *lex,
                                   struct byi_arena *arena,
                                   struct byi_attr *value,
                                   struct byoc_error *err)
{
    struct byi_attr items[MAX_VALUES];
    uint32_t n = 0;
    enum byi_attr_kind kind = BYI_ATTR_INT;
    const struct byi_token at = lex->tok;
    if (!byi_lex_accept(lex, ']')) {
        do {
            const struct byi_token item = lex->tok;
            if (n == MAX_VALUES)
                return byi_lex_fail(lex, &item, err,
                                    "found a list of too many items, expected "
                                    "at most %d",
                                    MAX_VALUES);
            items[n] = (struct byi_attr){.kind = BYI_ATTR_INT};
            if (byi_lex_accept_word(lex, "_"))
                items[n].i = BYI_PAT_ANY_INT;
            else
                BYI_TRY(byi_lex_attr(lex,
                                     "a number, a string, true, false or '['",
                                     arena, &items[n], err));
            if (items[n].kind == BYI_ATTR_BOOL ||
                (n > 0 && (items[n].kind == BYI_ATTR_STRING) !=
                              (kind == BYI_ATTR_STRING)))
                return byi_lex_fail(lex, &item, err,
                                    "found items of several kinds in a list, "
                                    "expected only numbers or only strings");
            if (items[n].kind != BYI_ATTR_INT)
                kind = items[n].kind;
            n++;
        } while (byi_lex_accept(lex, ','));
        BYI_TRY(byi_lex_expect(lex, ']', "',' or ']'", err));
    }
    value->n = n;
    if (kind == BYI_ATTR_STRING) {
        const char **strings = byi_arena_calloc(arena, n, sizeof *strings);
        for (uint32_t i = 0; i < n; i++)
            strings[i] = items[i].s;
        value->kind = BYI_ATTR_STRINGS;
        value->strings = strings;
    } else if (kind == BYI_ATTR_FLOAT) {
        double *floats = byi_arena_calloc(arena, n, sizeof *floats);
        for (uint32_t i = 0; i < n; i++) {
            floats[i] =
                items[i].kind == BYI_ATTR_INT ? (double)items[i].i : items[i].f;
            if (items[i].kind == BYI_ATTR_INT && items[i].i == BYI_PAT_ANY_INT)
                return byi_lex_fail(lex, &at, err,
                                    "found '_' in a list of floats, expected "
                                    "it in lists of integers only");
        }
        value->kind = BYI_ATTR_FLOATS;
        value->floats = floats;
    } else {
        int64_t *ints = byi_arena_calloc(arena, n, sizeof *ints);
        for (uint32_t i = 0; i < n; i++)
            ints[i] = items[i].i;
        value->kind = BYI_ATTR_INTS;
        value->ints = ints;
    }
    return BYOC_OK;
}

static void ints_to_floats(struct byi_arena *arena, struct byi_attr *value)
{
    double *floats = byi_arena_calloc(arena, value->n, sizeof *floats);
    for (uint32_t i = 0; i < value->n; i++)
        floats[i] = (double)value->ints[i];
    value->kind = BYI_ATTR_FLOATS;
    value->floats = floats;
}

/* Convert a literal for an attribute of `kind`: an integer can be a float, a
 * string can be a dtype. Returns false if that is impossible. */
static bool convert_value(struct byi_arena *arena, enum byi_attr_kind kind,
                          struct byi_attr *value)
{
    const bool floats = kind == BYI_ATTR_FLOAT || kind == BYI_ATTR_FLOATS;
    if (value->kind == kind)
        return true;
    if (floats && value->kind == BYI_ATTR_INT) {
        value->kind = BYI_ATTR_FLOAT;
        value->f = (double)value->i;
    } else if (kind == BYI_ATTR_FLOATS && value->kind == BYI_ATTR_INTS) {
        ints_to_floats(arena, value);
    } else if (kind == BYI_ATTR_DTYPE && value->kind == BYI_ATTR_STRING) {
        const int64_t dtype = byi_dtype_of_name(value->s, strlen(value->s));
        if (dtype == BYOC_NONE)
            return false;
        value->kind = BYI_ATTR_DTYPE;
        value->i = dtype;
    }
    switch (kind) {
    case BYI_ATTR_INTS:
        return value->kind == BYI_ATTR_INT;
    case BYI_ATTR_FLOATS:
        return value->kind == BYI_ATTR_FLOAT || value->kind == BYI_ATTR_FLOATS;
    case BYI_ATTR_STRINGS:
        return value->kind == BYI_ATTR_STRING;
    default:
        return value->kind == kind;
    }
}

/* Whether the text is a name such as "imaging.ImageDecoder@20". Custom
 * operators always have such names, so another text would match nothing. */
static bool is_custom_name(const char *text)
{
    const char *dot = strchr(text, '.'), *version = strrchr(text, '@');

    return dot && dot > text && version && version > dot + 1 && version[1] &&
           strspn(version + 1, "0123456789") == strlen(version + 1);
}

static enum byoc_status check_custom_name(const struct byi_lexer *lex,
                                          const struct byi_token *at,
                                          const struct byi_pat_test *test,
                                          const struct byi_attr *values,
                                          struct byoc_error *err)
{
    for (uint32_t k = 0; k < test->n; k++)
        if (!is_custom_name(values[k].s))
            return byi_lex_fail(lex, at, err,
                                "'%.100s' does not name an operator of a "
                                "plug-in, expected PLUGIN.OPERATOR@SINCE, as "
                                "in \"imaging.ImageDecoder@20\"",
                                values[k].s);
    return BYOC_OK;
}

/* Check that every operator of the set has the attribute, with one kind for
 * all, and convert the values to that kind. */
static enum byoc_status check_test(const struct byi_lexer *lex,
                                   struct byi_arena *arena,
                                   const struct byi_pat *pat,
                                   const struct byi_token *at,
                                   const struct byi_pat_test *test,
                                   struct byi_attr *values,
                                   struct byoc_error *err)
{
    char names[256];
    for (uint32_t i = 0; i < pat->n_ops; i++) {
        const struct byi_op *op = byi_op(pat->ops[i]);
        const struct byi_attr_def *def = byi_op_attr(op, test->name);
        if (!def)
            return byi_lex_fail(
                lex, at, err, "%s has no attribute '%s', expected %s", op->name,
                test->name, byi_op_attrs_text(names, sizeof names, op));
        for (uint32_t k = 0; k < test->n; k++)
            if (!convert_value(arena, def->kind, &values[k]))
                return byi_lex_fail(
                    lex, at, err,
                    "%s: found '%s' compared with %s, expected %s", op->name,
                    test->name, byi_attr_kind_text(values[k].kind),
                    byi_attr_kind_text(def->kind));
        if (test->cmp >= BYI_LT && test->n > 1)
            return byi_lex_fail(lex, at, err,
                                "'%s' %s: found %u values, expected one number",
                                test->name, byi_cmp_text[test->cmp], test->n);
        if (test->cmp >= BYI_LT && values[0].kind != BYI_ATTR_INT &&
            values[0].kind != BYI_ATTR_FLOAT)
            return byi_lex_fail(lex, at, err,
                                "'%s' %s: found %s, expected one number",
                                test->name, byi_cmp_text[test->cmp],
                                byi_attr_kind_text(values[0].kind));
        if (pat->ops[i] == BYI_OP_CUSTOM && strcmp(test->name, "op") == 0)
            BYI_TRY(check_custom_name(lex, at, test, values, err));
    }
    return BYOC_OK;
}

static enum byoc_status parse_test(struct byi_lexer *lex,
                                   struct byi_arena *arena,
                                   const struct byi_pat *pat,
                                   struct byi_pat_test *test,
                                   struct byoc_error *err)
{
    struct byi_attr values[MAX_VALUES];
    const struct byi_token at = lex->tok;
    *test = (struct byi_pat_test){.name = byi_lex_text(arena, &at)};
    byi_lex_next(lex);
    BYI_TRY(parse_cmp(lex, &test->cmp, err));
    do {
        if (test->n == MAX_VALUES)
            return byi_lex_fail(lex, &lex->tok, err,
                                "found too many values, expected at most %d",
                                MAX_VALUES);
        struct byi_attr *value = &values[test->n++];
        *value = (struct byi_attr){0};
        if (byi_lex_accept(lex, '['))
            BYI_TRY(parse_list(lex, arena, value, err));
        else
            BYI_TRY(byi_lex_attr(lex, "a number, a string, true, false or '['",
                                 arena, value, err));
    } while (byi_lex_accept(lex, '|'));
    BYI_TRY(check_test(lex, arena, pat, &at, test, values, err));
    test->values = byi_arena_copy(arena, values, test->n * sizeof *values);
    return BYOC_OK;
}

enum byoc_status byi_parse_tests(struct byi_lexer *lex, struct byi_arena *arena,
                                 struct byi_pat *pat, struct byoc_error *err)
{
    struct byi_pat_test tests[MAX_TESTS];
    if (!byi_lex_accept(lex, '{'))
        return BYOC_OK;
    do {
        if (!byi_lex_is(lex, BYI_TOK_IDENT))
            return byi_lex_expected(lex, "an attribute", err);
        if (pat->n_tests == MAX_TESTS)
            return byi_lex_fail(lex, &lex->tok, err,
                                "found too many tests of attributes, expected "
                                "at most %d",
                                MAX_TESTS);
        BYI_TRY(parse_test(lex, arena, pat, &tests[pat->n_tests], err));
        pat->n_tests++;
    } while (byi_lex_accept(lex, ','));
    pat->tests = byi_arena_copy(arena, tests, pat->n_tests * sizeof *tests);
    return byi_lex_expect(lex, '}', "',' or '}'", err);
}

/* --- types ---------------------------------------------------------------- */

static bool is_dtype(const struct byi_token *tok)
{
    return tok->kind == BYI_TOK_IDENT &&
           byi_dtype_of_name(tok->at, tok->n) != 0;
}

/* float32|float16: a '|' without a dtype after it belongs to the enclosing
 * pattern. */
static enum byoc_status parse_dtypes(struct byi_lexer *lex,
                                     struct byi_arena *arena,
                                     struct byi_pat_type *type,
                                     struct byoc_error *err)
{
    enum byoc_dtype dtypes[MAX_VALUES];
    for (;;) {
        if (type->n_dtypes == MAX_VALUES)
            return byi_lex_fail(lex, &lex->tok, err,
                                "found too many dtypes, expected at most %d",
                                MAX_VALUES);
        BYI_TRY(parse_dtype(lex, &dtypes[type->n_dtypes++], err));
        const struct byi_token next = byi_lex_peek(lex);
        if (!byi_lex_is(lex, '|') || !is_dtype(&next))
            break;
        byi_lex_next(lex);
    }
    type->dtypes =
        byi_arena_copy(arena, dtypes, type->n_dtypes * sizeof *dtypes);
    return BYOC_OK;
}

/* _, 64, >=2 */
static enum byoc_status parse_dim(struct byi_lexer *lex,
                                  struct byi_pat_dim *dim,
                                  struct byoc_error *err)
{
    *dim = (struct byi_pat_dim){.any = byi_lex_accept_word(lex, "_")};
    if (dim->any)
        return BYOC_OK;
    if (byi_lex_is(lex, '<') || byi_lex_is(lex, '>') || byi_lex_is(lex, '!'))
        BYI_TRY(parse_cmp(lex, &dim->cmp, err));
    return byi_lex_int(lex, 0, INT64_MAX, "a dim, '_' or '...'", &dim->value,
                       err);
}

static enum byoc_status parse_dims(struct byi_lexer *lex,
                                   struct byi_arena *arena,
                                   struct byi_pat_type *type,
                                   struct byoc_error *err)
{
    struct byi_pat_dim dims[BYI_MAX_RANK];
    type->has_dims = true;
    if (byi_lex_accept(lex, ')'))
        return BYOC_OK;
    do {
        if (byi_lex_is(lex, '.') && !type->has_rest) {
            for (int i = 0; i < 3; i++)
                BYI_TRY(byi_lex_expect(lex, '.', "'...'", err));
            type->has_rest = true;
            type->rest = type->n_dims;
            continue;
        }
        if (type->n_dims == BYI_MAX_RANK)
            return byi_lex_fail(lex, &lex->tok, err,
                                "found too many dims, expected at most %d",
                                BYI_MAX_RANK);
        BYI_TRY(parse_dim(lex, &dims[type->n_dims], err));
        type->n_dims++;
    } while (byi_lex_accept(lex, ','));
    type->dims = byi_arena_copy(arena, dims, type->n_dims * sizeof *dims);
    return byi_lex_expect(lex, ')', "',' or ')'", err);
}

/* rank<=5, size=1 */
static enum byoc_status parse_count(struct byi_lexer *lex,
                                    struct byi_pat_dim *count,
                                    struct byoc_error *err)
{
    *count = (struct byi_pat_dim){0};
    byi_lex_next(lex);
    BYI_TRY(parse_cmp(lex, &count->cmp, err));
    return byi_lex_int(lex, 0, INT64_MAX, "a number", &count->value, err);
}

enum byoc_status byi_parse_pat_type(struct byi_lexer *lex,
                                    struct byi_arena *arena,
                                    const struct byi_pat_type **out,
                                    struct byoc_error *err)
{
    struct byi_pat_type *type = byi_arena_alloc(arena, sizeof *type);
    *out = type;
    type->rank.any = type->size.any = true;
    if (!byi_lex_accept_word(lex, "Tensor"))
        return parse_dtypes(lex, arena, type, err);
    BYI_TRY(byi_lex_expect(lex, '[', "'[' after Tensor", err));
    do {
        if (!type->has_dims && byi_lex_accept(lex, '('))
            BYI_TRY(parse_dims(lex, arena, type, err));
        else if (byi_lex_is_word(lex, "rank") && type->rank.any)
            BYI_TRY(parse_count(lex, &type->rank, err));
        else if (byi_lex_is_word(lex, "size") && type->size.any)
            BYI_TRY(parse_count(lex, &type->size, err));
        else if (!byi_lex_accept_word(lex, "_"))
            BYI_TRY(type->n_dtypes
                        ? byi_lex_expected(lex, "'(', rank or size", err)
                        : parse_dtypes(lex, arena, type, err));
    } while (byi_lex_accept(lex, ','));
    return byi_lex_expect(lex, ']', "',' or ']'", err);
}
