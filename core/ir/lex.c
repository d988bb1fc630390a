/* SPDX-License-Identifier: Apache-2.0 */
/* lex.c: the lexer of the text form. It reads one token at a time, and copies
 * nothing until a name or a string is requested. Blanks and both kinds of
 * comments separate tokens.
 */
#include "lex.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool is_word_start(int c)
{
    return byi_is_letter(c) || c == '_';
}

static bool is_word(int c)
{
    return is_word_start(c) || byi_is_digit(c);
}

/* The byte k positions after the next one; -1 after the end. */
static int byte_ahead(const struct byi_lexer *lex, size_t k)
{
    return k < lex->n - lex->next ? (unsigned char)lex->text[lex->next + k]
                                  : -1;
}

static void set_bad(struct byi_lexer *lex, const char *what)
{
    lex->tok.kind = BYI_TOK_BAD;
    lex->tok.at = what;
    lex->tok.n = strlen(what);
}

static void begin_line(struct byi_lexer *lex)
{
    lex->line++;
    lex->line_start = lex->next;
}

/* Skip a comment that starts here; false if it has no end. */
static bool skip_block(struct byi_lexer *lex)
{
    lex->next += 2;
    while (lex->next < lex->n) {
        if (byte_ahead(lex, 0) == '*' && byte_ahead(lex, 1) == '/') {
            lex->next += 2;
            return true;
        }
        if (lex->text[lex->next++] == '\n')
            begin_line(lex);
    }
    return false;
}

static bool skip_blanks(struct byi_lexer *lex)
{
    for (;;) {
        int c = byte_ahead(lex, 0);
        if (c == '/' && byte_ahead(lex, 1) == '/') {
            while (lex->next < lex->n && byte_ahead(lex, 0) != '\n')
                lex->next++;
        } else if (c == '/' && byte_ahead(lex, 1) == '*') {
            struct byi_token *tok = &lex->tok;
            tok->line = lex->line;
            tok->col = (uint32_t)(lex->next - lex->line_start + 1);
            if (!skip_block(lex))
                return false;
        } else if (c == '\n') {
            lex->next++;
            begin_line(lex);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            lex->next++;
        } else {
            return true;
        }
    }
}

/* Read a quoted text at the next byte; tok is the text between the quotes. */
static void read_quoted(struct byi_lexer *lex, int kind)
{
    size_t start = ++lex->next;

    while (lex->next < lex->n) {
        int c = byte_ahead(lex, 0);
        if (c == '"') {
            lex->tok.kind = kind;
            lex->tok.quoted = true;
            lex->tok.at = lex->text + start;
            lex->tok.n = lex->next++ - start;
            return;
        }
        if (c < ' ' || c == 0x7f) {
            set_bad(lex, c == '\n' ? "a string without its closing '\"'"
                                   : "a control character in a string");
            return;
        }
        lex->next += c == '\\' && lex->next + 1 < lex->n ? 2 : 1;
    }
    set_bad(lex, "a string without its closing '\"'");
}

/* Read words joined by dots. A dot belongs to them only before another word, so
 * that the ".0" of a projection is a separate token. */
static void read_ident(struct byi_lexer *lex)
{
    size_t start = lex->next;

    while (is_word(byte_ahead(lex, 0)) ||
           (byte_ahead(lex, 0) == '.' && is_word_start(byte_ahead(lex, 1))))
        lex->next++;
    lex->tok.kind = BYI_TOK_IDENT;
    lex->tok.at = lex->text + start;
    lex->tok.n = lex->next - start;
}

static void read_name(struct byi_lexer *lex, int kind, const char *what)
{
    size_t start = ++lex->next;

    if (byte_ahead(lex, 0) == '"') {
        read_quoted(lex, kind);
        return;
    }
    while (is_word(byte_ahead(lex, 0)))
        lex->next++;
    lex->tok.kind = kind;
    lex->tok.at = lex->text + start;
    lex->tok.n = lex->next - start;
    if (lex->tok.n == 0)
        set_bad(lex, what);
}

static void skip_digits(struct byi_lexer *lex)
{
    while (byi_is_digit(byte_ahead(lex, 0)))
        lex->next++;
}

/* If `index`, the number is the index of a field, as in %t.0.1: read only its
 * digits. */
static void read_number(struct byi_lexer *lex, bool index)
{
    size_t start = lex->next;

    lex->tok.kind = BYI_TOK_NUMBER;
    lex->tok.at = lex->text + start;
    lex->next += byte_ahead(lex, 0) == '-';
    skip_digits(lex);
    if (!index && byte_ahead(lex, 0) == '.' &&
        byi_is_digit(byte_ahead(lex, 1))) {
        lex->next++;
        skip_digits(lex);
    }
    if (!index && (byte_ahead(lex, 0) == 'e' || byte_ahead(lex, 0) == 'E')) {
        size_t sign = byte_ahead(lex, 1) == '-' || byte_ahead(lex, 1) == '+';
        if (byi_is_digit(byte_ahead(lex, 1 + sign))) {
            lex->next += 1 + sign;
            skip_digits(lex);
        }
    }
    while (is_word(byte_ahead(lex, 0))) /* the suffix */
        lex->next++;
    lex->tok.n = lex->next - start;
}

static bool is_at_minus_inf(const struct byi_lexer *lex)
{
    return byte_ahead(lex, 0) == '-' && byte_ahead(lex, 1) == 'i' &&
           byte_ahead(lex, 2) == 'n' && byte_ahead(lex, 3) == 'f' &&
           !is_word(byte_ahead(lex, 4));
}

static void read_fixed(struct byi_lexer *lex, int kind, size_t n)
{
    lex->tok.kind = kind;
    lex->tok.at = lex->text + lex->next;
    lex->tok.n = n;
    lex->next += n;
}

/* Read a token that starts with punctuation. */
static void read_mark(struct byi_lexer *lex)
{
    int c = byte_ahead(lex, 0), next = byte_ahead(lex, 1);

    if (c == '-' && next == '>')
        read_fixed(lex, BYI_TOK_ARROW, 2);
    else if (c == '@' && next == '[')
        read_fixed(lex, BYI_TOK_BACKEND, 2);
    else if (c == '#' && next == '[')
        read_fixed(lex, BYI_TOK_SOURCES, 2);
    else if (c == '%')
        read_name(lex, BYI_TOK_LOCAL, "'%' without a name");
    else if (c == '@')
        read_name(lex, BYI_TOK_GLOBAL, "'@' without a name");
    else if (c == '"')
        read_quoted(lex, BYI_TOK_STRING);
    else if (c > ' ' && c < 0x7f)
        read_fixed(lex, c, 1);
    else
        set_bad(lex,
                c == 0 ? "a NUL byte" : "a byte that is not printable ASCII");
}

void byi_lex_next(struct byi_lexer *lex)
{
    bool after_dot = lex->tok.kind == '.';
    int c;

    if (lex->tok.kind == BYI_TOK_BAD)
        return;
    if (!skip_blanks(lex)) {
        set_bad(lex, "a comment without its closing '*/'");
        return;
    }
    lex->tok = (struct byi_token){
        .at = "",
        .line = lex->line,
        .col = (uint32_t)(lex->next - lex->line_start + 1),
    };
    c = byte_ahead(lex, 0);
    if (c < 0)
        return;
    if (is_word_start(c))
        read_ident(lex);
    else if (byi_is_digit(c) || (c == '-' && byi_is_digit(byte_ahead(lex, 1))))
        read_number(lex, after_dot);
    else if (is_at_minus_inf(lex))
        read_fixed(lex, BYI_TOK_NUMBER, 4);
    else if (c == '?' && byi_is_digit(byte_ahead(lex, 1))) {
        size_t n = 1;
        while (byi_is_digit(byte_ahead(lex, n)))
            n++;
        read_fixed(lex, BYI_TOK_IDENT, n);
    } else
        read_mark(lex);
}

void byi_lex_init(struct byi_lexer *lex, const char *file, const char *text,
                  size_t n)
{
    *lex = (struct byi_lexer){.file = file, .text = text, .n = n, .line = 1};
    byi_lex_next(lex);
}

struct byi_token byi_lex_peek(const struct byi_lexer *lex)
{
    struct byi_lexer copy = *lex;

    byi_lex_next(&copy);
    return copy.tok;
}

/* --- queries ------------------------------------------------------------ */

bool byi_lex_is(const struct byi_lexer *lex, int kind)
{
    return lex->tok.kind == kind;
}

bool byi_lex_is_word(const struct byi_lexer *lex, const char *word)
{
    size_t n = strlen(word);

    return lex->tok.kind == BYI_TOK_IDENT && lex->tok.n == n &&
           memcmp(lex->tok.at, word, n) == 0;
}

bool byi_lex_accept(struct byi_lexer *lex, int kind)
{
    bool accepted = byi_lex_is(lex, kind);

    if (accepted)
        byi_lex_next(lex);
    return accepted;
}

bool byi_lex_accept_word(struct byi_lexer *lex, const char *word)
{
    bool accepted = byi_lex_is_word(lex, word);

    if (accepted)
        byi_lex_next(lex);
    return accepted;
}

enum byoc_status byi_lex_expect(struct byi_lexer *lex, int kind,
                                const char *what, struct byoc_error *err)
{
    if (byi_lex_accept(lex, kind))
        return BYOC_OK;
    return byi_lex_expected(lex, what, err);
}

/* --- messages ----------------------------------------------------------- */

enum byoc_status byi_lex_fail(const struct byi_lexer *lex,
                              const struct byi_token *tok,
                              struct byoc_error *err, const char *fmt, ...)
{
    char text[sizeof err->text];

    BYI_FORMAT(text, fmt);
    byi_fail(err, BYOC_EPARSE, "%s", text);
    return byi_lex_place(lex, tok, err);
}

enum byoc_status byi_lex_place(const struct byi_lexer *lex,
                               const struct byi_token *tok,
                               struct byoc_error *err)
{
    if (!lex->file)
        return byi_prefix(err, "column %u", tok->col);
    return byi_prefix(err, "%s:%u:%u: error", lex->file, tok->line, tok->col);
}

enum byoc_status byi_lex_expected(const struct byi_lexer *lex, const char *what,
                                  struct byoc_error *err)
{
    const struct byi_token *tok = &lex->tok;
    const char *sigil = tok->kind == BYI_TOK_LOCAL    ? "%"
                        : tok->kind == BYI_TOK_GLOBAL ? "@"
                                                      : "";
    const char *quote = tok->quoted ? "\"" : "";
    int n = tok->n > 60 ? 60 : (int)tok->n;

    if (tok->kind == BYI_TOK_END)
        return byi_lex_fail(lex, tok, err,
                            "found the end of the text, expected %s", what);
    if (tok->kind == BYI_TOK_BAD)
        return byi_lex_fail(lex, tok, err, "found %s, expected %s", tok->at,
                            what);
    return byi_lex_fail(lex, tok, err, "found '%s%s%.*s%s%s', expected %s",
                        sigil, quote, n, tok->at,
                        (size_t)n < tok->n ? "..." : "", quote, what);
}

/* --- values ------------------------------------------------------------- */

size_t byi_lex_digits(const struct byi_token *tok)
{
    size_t i = tok->n > 0 && tok->at[0] == '-';

    if (i < tok->n && tok->at[i] == 'i') /* -inf */
        return tok->n;
    while (i < tok->n && byi_is_digit(tok->at[i]))
        i++;
    if (i < tok->n && tok->at[i] == '.')
        do
            i++;
        while (i < tok->n && byi_is_digit(tok->at[i]));
    if (i < tok->n && (tok->at[i] == 'e' || tok->at[i] == 'E')) {
        size_t k = i + 1;
        k += k < tok->n && (tok->at[k] == '-' || tok->at[k] == '+');
        if (k < tok->n && byi_is_digit(tok->at[k]))
            for (i = k; i < tok->n && byi_is_digit(tok->at[i]);)
                i++;
    }
    return i;
}

bool byi_lex_is_number(const struct byi_lexer *lex)
{
    return byi_lex_is(lex, BYI_TOK_NUMBER) || byi_lex_is_word(lex, "inf") ||
           byi_lex_is_word(lex, "nan");
}

static bool has_point(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] == '.' || text[i] == 'e' || text[i] == 'E' ||
            text[i] == 'n')
            return true;
    return false;
}

enum byoc_status byi_lex_number(struct byi_lexer *lex, const char *what,
                                bool *is_float, int64_t *i, double *f,
                                struct byoc_error *err)
{
    const struct byi_token *tok = &lex->tok;
    char text[128];

    if (!byi_lex_is_number(lex))
        return byi_lex_expected(lex, what, err);
    if (tok->n >= sizeof text)
        return byi_lex_fail(lex, tok, err,
                            "found a number of %zu characters, "
                            "expected at most %zu",
                            tok->n, sizeof text - 1);
    if (tok->kind == BYI_TOK_NUMBER && byi_lex_digits(tok) != tok->n)
        return byi_lex_expected(lex, what, err);
    memcpy(text, tok->at, tok->n);
    text[tok->n] = '\0';
    *is_float = has_point(text, tok->n);
    *f = byi_strtod(text, NULL);
    if (!*is_float) {
        errno = 0;
        *i = strtoll(text, NULL, 10);
        if (errno == ERANGE)
            return byi_lex_fail(
                lex, tok, err,
                "found %s, expected a number that fits into 64 bits", text);
    }
    byi_lex_next(lex);
    return BYOC_OK;
}

enum byoc_status byi_lex_attr(struct byi_lexer *lex, const char *what,
                              struct byi_arena *arena, struct byi_attr *attr,
                              struct byoc_error *err)
{
    const bool is_true = byi_lex_is_word(lex, "true");
    bool is_float = false;
    int64_t i = 0;
    double f = 0;

    if (byi_lex_is(lex, BYI_TOK_STRING)) {
        attr->kind = BYI_ATTR_STRING;
        attr->s = byi_lex_text(arena, &lex->tok);
        byi_lex_next(lex);
        return BYOC_OK;
    }
    if (is_true || byi_lex_is_word(lex, "false")) {
        attr->kind = BYI_ATTR_BOOL;
        attr->i = is_true;
        byi_lex_next(lex);
        return BYOC_OK;
    }
    BYI_TRY(byi_lex_number(lex, what, &is_float, &i, &f, err));
    attr->kind = is_float ? BYI_ATTR_FLOAT : BYI_ATTR_INT;
    if (is_float)
        attr->f = f;
    else
        attr->i = i;
    return BYOC_OK;
}

enum byoc_status byi_lex_int(struct byi_lexer *lex, int64_t min, int64_t max,
                             const char *what, int64_t *value,
                             struct byoc_error *err)
{
    struct byi_token tok = lex->tok;
    bool is_float = false;
    double f = 0;

    BYI_TRY(byi_lex_number(lex, what, &is_float, value, &f, err));
    if (is_float)
        return byi_lex_fail(lex, &tok, err, "found '%.*s', expected %s",
                            (int)tok.n, tok.at, what);
    if (*value < min || *value > max)
        return byi_lex_fail(
            lex, &tok, err, "found %lld, expected %s (%lld to %lld)",
            (long long)*value, what, (long long)min, (long long)max);
    return BYOC_OK;
}

/* --- quoting ------------------------------------------------------------ */

static int hex_value(int c)
{
    if (byi_is_digit(c))
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* An escape stands for its second character, except \n, \t, \r and \xHH. */
char *byi_lex_text(struct byi_arena *arena, const struct byi_token *tok)
{
    char *text = byi_arena_alloc(arena, tok->n + 1), *to = text;

    for (size_t i = 0; i < tok->n; i++) {
        int hi, lo;
        char c = tok->at[i];
        if (c != '\\' || !tok->quoted || i + 1 == tok->n) {
            *to++ = c;
            continue;
        }
        c = tok->at[++i];
        if (c == 'x' && i + 2 < tok->n) {
            hi = hex_value(tok->at[i + 1]);
            lo = hex_value(tok->at[i + 2]);
            if (hi >= 0 && lo >= 0 && (hi || lo)) {
                c = (char)(hi * 16 + lo);
                i += 2;
            }
        } else if (c == 'n') {
            c = '\n';
        } else if (c == 't') {
            c = '\t';
        } else if (c == 'r') {
            c = '\r';
        }
        *to++ = c;
    }
    *to = '\0';
    return text;
}

void byi_lex_quote(struct byi_text *out, const char *text)
{
    byi_text_add(out, "\"", 1);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            byi_text_addf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            byi_text_addf(out, "\\x%02x", c);
        else
            byi_text_add(out, text, 1);
    }
    byi_text_add(out, "\"", 1);
}

bool byi_lex_is_bare_name(const char *text)
{
    if (!is_word_start((unsigned char)*text))
        return false;
    for (; *text; text++)
        if (!is_word((unsigned char)*text))
            return false;
    return true;
}
