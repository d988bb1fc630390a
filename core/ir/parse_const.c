/* SPDX-License-Identifier: Apache-2.0 */
/* parse_const.c: parses constants of the text form: scalars, vectors, typed
 * literals, constants of the side file, and random ones for tests.
 */
#include "parse.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool byi_parse_is_at_literal(const struct byi_parser *p)
{
    static const char *const words[] = {"Tensor", "const", "random", "true",
                                        "false",  "inf",   "nan"};

    if (byi_lex_is(&p->lex, BYI_TOK_NUMBER) ||
        byi_lex_is(&p->lex, BYI_TOK_STRING) || byi_lex_is(&p->lex, '['))
        return true;
    for (size_t i = 0; i < BYI_COUNT(words); i++)
        if (byi_lex_is_word(&p->lex, words[i]))
            return true;
    return false;
}

/* --- elements ----------------------------------------------------------- */

static enum byoc_status fail_element(struct byi_parser *p,
                                     enum byoc_dtype dtype)
{
    char what[64];

    snprintf(what, sizeof what, "a value of type %s", byoc_dtype_name(dtype));
    return byi_lex_expected(&p->lex, what, p->err);
}

/* Little endian: the low bytes are the value in a narrower type. */
static void put_bytes(struct byi_text *data, const void *value, size_t size)
{
    byi_text_add(data, value, size);
}

static enum byoc_status put_int(struct byi_parser *p, const char *text,
                                enum byoc_dtype dtype, struct byi_text *data)
{
    int64_t value = 0, min, max;
    uint64_t unsigned_value = 0;
    char *end = NULL;

    errno = 0;
    if (dtype == BYOC_U64) {
        unsigned_value = strtoull(text, &end, 10);
        if (*end || errno || text[0] == '-')
            return fail_element(p, dtype);
        put_bytes(data, &unsigned_value, sizeof unsigned_value);
        return BYOC_OK;
    }
    value = strtoll(text, &end, 10);
    if (*end || errno)
        return fail_element(p, dtype);
    if (byi_dtype_range(dtype, &min, &max) && (value < min || value > max))
        return fail_element(p, dtype);
    put_bytes(data, &value, byoc_dtype_size(dtype));
    return BYOC_OK;
}

static void put_float(double value, enum byoc_dtype dtype,
                      struct byi_text *data)
{
    char bytes[sizeof(double)];
    struct byi_tensor t = {.data = bytes, .dtype = dtype};

    if (dtype == BYOC_C64 || dtype == BYOC_C128)
        t.dtype = dtype == BYOC_C64 ? BYOC_F32 : BYOC_F64;
    byi_tensor_set(&t, 0, value);
    put_bytes(data, bytes, byoc_dtype_size(t.dtype));
}

/* Whether elements are written as floats: real ones or the parts of complex
 * ones. */
static bool is_written_as_float(enum byoc_dtype dtype)
{
    return byi_dtype_is_float(dtype) || byi_narrow_is_float(dtype) ||
           dtype == BYOC_C64 || dtype == BYOC_C128;
}

/* Append the number at the current token, without its suffix, as an element. */
static enum byoc_status put_number(struct byi_parser *p, enum byoc_dtype dtype,
                                   struct byi_text *data)
{
    const struct byi_token *tok = &p->lex.tok;
    size_t n = tok->kind == BYI_TOK_NUMBER ? byi_lex_digits(tok) : tok->n;
    char text[128];

    if (!byi_lex_is_number(&p->lex) || n >= sizeof text)
        return fail_element(p, dtype);
    memcpy(text, tok->at, n);
    text[n] = '\0';
    if (!is_written_as_float(dtype))
        return put_int(p, text, dtype, data);
    put_float(byi_strtod(text, NULL), dtype, data);
    return BYOC_OK;
}

/* Append the element at the current token, and advance. */
static enum byoc_status put_element(struct byi_parser *p, enum byoc_dtype dtype,
                                    struct byi_text *data)
{
    const struct byi_token *tok = &p->lex.tok;
    bool is_true = byi_lex_is_word(&p->lex, "true");

    if (dtype == BYOC_STRING) {
        const char *text = NULL;
        if (tok->kind != BYI_TOK_STRING)
            return fail_element(p, dtype);
        text = byi_lex_text(p->scratch, tok);
        put_bytes(data, &text, sizeof text);
    } else if (dtype == BYOC_BOOL) {
        if (!is_true && !byi_lex_is_word(&p->lex, "false"))
            return fail_element(p, dtype);
        put_bytes(data, &is_true, 1);
    } else {
        if (tok->kind == BYI_TOK_NUMBER && byi_lex_digits(tok) != tok->n)
            return fail_element(p, dtype);
        BYI_TRY(put_number(p, dtype, data));
    }
    byi_lex_next(&p->lex);
    return BYOC_OK;
}

static void add_constant(struct byi_parser *p, const struct byi_type *type,
                         const struct byi_text *data, uint32_t *constant)
{
    static const char nothing[1];

    *constant =
        byi_const_add_model(p->m, type, data->at ? data->at : nothing, false);
}

/* --- scalars and vectors ------------------------------------------------ */

static enum byoc_dtype dtype_of_suffix(const char *at, size_t n, bool is_float)
{
    if (n == 0)
        return is_float ? BYOC_F32 : BYOC_I64;
    for (int d = BYOC_NONE; d <= BYI_LAST_DTYPE; d++) {
        const char *suffix = byi_text_suffix((enum byoc_dtype)d);
        if (suffix && strlen(suffix) == n && memcmp(suffix, at, n) == 0)
            return (enum byoc_dtype)d;
    }
    return BYOC_NONE;
}

/* Whether this number is a float if no type is given. */
static bool looks_float(const struct byi_token *tok)
{
    size_t n = tok->kind == BYI_TOK_NUMBER ? byi_lex_digits(tok) : tok->n;

    for (size_t i = 0; i < n; i++)
        if (tok->at[i] == '.' || tok->at[i] == 'e' || tok->at[i] == 'E' ||
            tok->at[i] == 'n') /* inf, nan */
            return true;
    return false;
}

static enum byoc_status scalar_dtype(struct byi_parser *p,
                                     enum byoc_dtype *dtype)
{
    const struct byi_token *tok = &p->lex.tok;
    size_t n = 0;

    if (tok->kind == BYI_TOK_STRING) {
        *dtype = BYOC_STRING;
        return BYOC_OK;
    }
    if (byi_lex_is_word(&p->lex, "true") || byi_lex_is_word(&p->lex, "false")) {
        *dtype = BYOC_BOOL;
        return BYOC_OK;
    }
    n = tok->kind == BYI_TOK_NUMBER ? byi_lex_digits(tok) : tok->n;
    *dtype = dtype_of_suffix(tok->at + n, tok->n - n, looks_float(tok));
    if (*dtype == BYOC_NONE)
        return byi_lex_expected(
            &p->lex, "a number, plain or with a suffix such as f, i32, u8, f64",
            p->err);
    return BYOC_OK;
}

static enum byoc_status parse_scalar(struct byi_parser *p,
                                     struct byi_text *data,
                                     const struct byi_type **type)
{
    enum byoc_dtype dtype = BYOC_NONE;

    BYI_TRY(scalar_dtype(p, &dtype));
    *type = byi_type_tensor(p->m->arena, dtype, 0, NULL);
    if (dtype == BYOC_BOOL || dtype == BYOC_STRING)
        return put_element(p, dtype, data);
    BYI_TRY(put_number(p, dtype, data));
    byi_lex_next(&p->lex);
    return BYOC_OK;
}

/* The element type of the vector that starts here: float32 if any number is
 * written as a float. Looks ahead, once per vector. */
static enum byoc_dtype vector_dtype(const struct byi_parser *p)
{
    struct byi_lexer ahead = p->lex;

    if (byi_lex_is(&ahead, BYI_TOK_STRING))
        return BYOC_STRING;
    if (byi_lex_is_word(&ahead, "true") || byi_lex_is_word(&ahead, "false"))
        return BYOC_BOOL;
    for (; byi_lex_is_number(&ahead); byi_lex_next(&ahead)) {
        if (looks_float(&ahead.tok))
            return BYOC_F32;
        byi_lex_next(&ahead);
        if (!byi_lex_is(&ahead, ','))
            break;
    }
    return BYOC_I64;
}

static enum byoc_status parse_elements(struct byi_parser *p, int end,
                                       enum byoc_dtype dtype, int64_t *n,
                                       struct byi_text *data)
{
    char what[] = "',' or ' ' after an element";

    for (*n = 0; !byi_lex_is(&p->lex, end); ++*n) {
        if (*n >= INT32_MAX)
            return byi_parse_limit(p, &p->lex.tok, "elements", INT32_MAX);
        BYI_TRY(put_element(p, dtype, data));
        if (!byi_lex_accept(&p->lex, ',')) {
            ++*n;
            break;
        }
    }
    what[8] = (char)end;
    return byi_lex_expect(&p->lex, end, what, p->err);
}

static enum byoc_status parse_vector(struct byi_parser *p,
                                     struct byi_text *data,
                                     const struct byi_type **type)
{
    enum byoc_dtype dtype = BYOC_NONE;
    int64_t n = 0;

    byi_lex_next(&p->lex); /* the '[' */
    dtype = vector_dtype(p);
    BYI_TRY(parse_elements(p, ']', dtype, &n, data));
    *type = byi_type_tensor(p->m->arena, dtype, 1, &n);
    return BYOC_OK;
}

/* --- typed literals ----------------------------------------------------- */

static enum byoc_status check_sizes(struct byi_parser *p,
                                    const struct byi_token *tok,
                                    const struct byi_type *type)
{
    char dims[120];

    for (uint32_t i = 0; i < type->rank; i++)
        if (BYI_IS_SYMBOL(type->dims[i]))
            return byi_lex_fail(&p->lex, tok, p->err,
                                "found the symbol %s in a constant's shape, "
                                "expected numbers",
                                byi_symbol_name(p->m, type->dims[i]));
    if (byi_type_bytes(type) == UINT64_MAX)
        return byi_lex_fail(
            &p->lex, tok, p->err,
            "found shape %s of a constant, expected one whose "
            "bytes fit into 64 bits",
            byi_dims_text(dims, sizeof dims, type->rank, type->dims));
    return BYOC_OK;
}

/* Parse a literal after "Tensor": [(2, 2), float32] {1.0, 2.0, 3.0, 4.0} */
static enum byoc_status parse_tensor(struct byi_parser *p,
                                     struct byi_text *data,
                                     const struct byi_type **type)
{
    struct byi_token tok = p->lex.tok;
    int64_t n = 0, expected = 0;

    BYI_TRY(byi_parse_shape(p, type));
    BYI_TRY(check_sizes(p, &tok, *type));
    BYI_TRY(byi_lex_expect(&p->lex, ']', "']' after an element type", p->err));
    BYI_TRY(byi_lex_expect(&p->lex, '{', "'{' and the elements", p->err));
    BYI_TRY(parse_elements(p, '}', (*type)->dtype, &n, data));
    expected = byi_elements((*type)->rank, (*type)->dims);
    if ((*type)->dtype == BYOC_C64 || (*type)->dtype == BYOC_C128)
        expected = expected > INT32_MAX ? expected : 2 * expected;
    if (n != expected)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found %lld elements, expected %lld", (long long)n,
                            (long long)expected);
    return BYOC_OK;
}

/* --- constants of the side file ----------------------------------------- */

static bool is_digest(const struct byi_token *tok)
{
    if (tok->kind != BYI_TOK_STRING || tok->n != 16)
        return false;
    for (size_t i = 0; i < tok->n; i++)
        if (!strchr("0123456789abcdef", tok->at[i]) || tok->at[i] == '\0')
            return false;
    return true;
}

/* Parse a constant after "const": ["0123456789abcdef"] */
static enum byoc_status parse_digest(struct byi_parser *p, uint32_t *constant)
{
    struct byi_token tok;
    struct byi_const c = {0};
    bool found = false;

    BYI_TRY(byi_lex_expect(&p->lex, '[', "'[' and a digest", p->err));
    tok = p->lex.tok;
    if (!is_digest(&tok))
        return byi_lex_expected(&p->lex, "a digest: \"16 hex digits\"", p->err);
    byi_lex_next(&p->lex);
    if (!p->side_path)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "the constant %.16s is in a side file, and none is "
                            "given, expected the one that was written with "
                            "this text",
                            tok.at);
    if (!p->side &&
        byi_side_open(p->side_path, p->m->arena, &p->side, p->err)) {
        byi_prefix(
            p->err,
            "the constant %.16s is in a side file, which --consts writes",
            tok.at);
        return byi_lex_place(&p->lex, &tok, p->err);
    }
    if (byi_side_find(p->side, tok.at, &found, &c, p->err))
        return byi_lex_place(&p->lex, &tok, p->err);
    if (!found)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "the constant %.16s is not in the side file %s, "
                            "expected the one that was written with this text",
                            tok.at, p->side_path);
    *constant = byi_const_add_model(p->m, c.type, c.data, true);
    return byi_lex_expect(&p->lex, ']', "']' after a digest", p->err);
}

/* --- random constants --------------------------------------------------- */

/* Steele, Lea, Flood: Fast splittable pseudorandom number generators (2014):
 * element i depends only on the seed and i. */
static uint64_t splitmix(uint64_t seed, uint64_t i)
{
    uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Floats: multiples of 2^-23 in [-1, 1); integers: [-64, 64), unsigned ones [0,
 * 128); bool: both values. */
static void fill_random(void *data, const struct byi_type *type, int64_t seed)
{
    int64_t n = byi_elements(type->rank, type->dims);
    struct byi_tensor t = {.data = data, .dtype = type->dtype};

    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = splitmix((uint64_t)seed, (uint64_t)i);
        double value = (double)(bits >> 57);
        if (byi_dtype_is_float(t.dtype))
            value = (double)(bits >> 40) * 0x1p-23 - 1;
        else if (t.dtype == BYOC_BOOL)
            value = (double)(bits >> 63);
        else if (byi_dtype_is_signed(t.dtype))
            value -= 64;
        byi_tensor_set(&t, i, value);
    }
}

/* Parse a constant after "random": [(64, 3, 7, 7), float32, seed=7] */
static enum byoc_status parse_random(struct byi_parser *p, uint32_t *constant)
{
    struct byi_token tok = p->lex.tok;
    const struct byi_type *type = NULL;
    int64_t seed = 0;
    void *data = NULL;

    BYI_TRY(byi_parse_shape(p, &type));
    BYI_TRY(byi_lex_expect(&p->lex, ',', "',' and seed=NUMBER", p->err));
    if (!byi_lex_accept_word(&p->lex, "seed"))
        return byi_lex_expected(&p->lex, "seed=NUMBER", p->err);
    BYI_TRY(byi_lex_expect(&p->lex, '=', "'=' after seed", p->err));
    BYI_TRY(byi_lex_int(&p->lex, 0, INT64_MAX, "a seed", &seed, p->err));
    BYI_TRY(byi_lex_expect(&p->lex, ']', "']' after a seed", p->err));
    BYI_TRY(check_sizes(p, &tok, type));
    if (!byi_dtype_is_float(type->dtype) && !byi_dtype_is_int(type->dtype) &&
        type->dtype != BYOC_BOOL)
        return byi_lex_fail(&p->lex, &tok, p->err,
                            "found random %s, expected numbers or bool",
                            byoc_dtype_name(type->dtype));
    if (byi_type_bytes(type) > BYI_TEXT_MAX_RANDOM - p->random_bytes)
        return byi_parse_limit(p, &tok, "bytes of random constants",
                               BYI_TEXT_MAX_RANDOM);
    p->random_bytes += byi_type_bytes(type);
    data = byi_arena_data(p->m->arena, byi_type_bytes(type));
    fill_random(data, type, seed);
    *constant = byi_const_add_model(p->m, type, data, true);
    return BYOC_OK;
}

enum byoc_status byi_parse_literal(struct byi_parser *p, uint32_t *constant)
{
    const struct byi_type *type = NULL;
    struct byi_text data = {0};
    enum byoc_status status = BYOC_OK;

    if (byi_lex_accept_word(&p->lex, "const"))
        return parse_digest(p, constant);
    if (byi_lex_accept_word(&p->lex, "random"))
        return parse_random(p, constant);
    if (byi_lex_is(&p->lex, '['))
        status = parse_vector(p, &data, &type);
    else if (byi_lex_accept_word(&p->lex, "Tensor"))
        status = parse_tensor(p, &data, &type);
    else
        status = parse_scalar(p, &data, &type);
    if (status == BYOC_OK)
        add_constant(p, type, &data, constant);
    byi_text_free(&data);
    return status;
}
