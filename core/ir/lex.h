/* SPDX-License-Identifier: Apache-2.0 */
/* lex.h: the lexer of the text form (docs/text.md) and of the pattern language
 * (patterns/).
 */
#ifndef BYI_LEX_H
#define BYI_LEX_H

#include "core/base/base.h"
#include "core/ops/ops.h"

/* A token's kind: one of these, or the character itself for punctuation. */
enum {
    BYI_TOK_END = 0,     /* the end of the text                         */
    BYI_TOK_IDENT = 256, /* add, nn.conv2d, float32; ?0                 */
    BYI_TOK_LOCAL,       /* %x, %0, %"any name"                         */
    BYI_TOK_GLOBAL,      /* @main, @"any name"                          */
    BYI_TOK_NUMBER,      /* 3, -1.5e-3, 2i32, 1.5f, -inf                */
    BYI_TOK_STRING,      /* "any text"                                  */
    BYI_TOK_ARROW,       /* ->                                          */
    BYI_TOK_BACKEND,     /* @[                                          */
    BYI_TOK_SOURCES,     /* #[                                          */
    BYI_TOK_BAD          /* not a token of the language; `at` describes it */
};

/* at[0..n-1] is the token's text in the input: of names without the sigil; of
 * quoted text without the quotes, with escapes not yet replaced. */
struct byi_token {
    int kind;
    bool quoted;
    const char *at;
    size_t n;
    uint32_t line, col; /* from 1; columns are bytes */
};

/* A position in a text. A copy of it is a bookmark. */
struct byi_lexer {
    const char *file; /* for messages; NULL: they give only the column */
    const char *text;
    size_t n;                /* bytes of the text */
    size_t next, line_start; /* offsets of the next byte, and of its line */
    uint32_t line;
    struct byi_token tok; /* the current token */
};

/* Start at the first token. The text must outlive the lexer; it need not end
 * in NUL. */
void byi_lex_init(struct byi_lexer *lex, const char *file, const char *text,
                  size_t n);
/* Go to the next token. The lexer stays at the end, and at a bad token. */
void byi_lex_next(struct byi_lexer *lex);
/* The token after the current one. */
struct byi_token byi_lex_peek(const struct byi_lexer *lex);

/* Whether the current token has that kind, or is that identifier. */
bool byi_lex_is(const struct byi_lexer *lex, int kind);
bool byi_lex_is_word(const struct byi_lexer *lex, const char *word);
/* If the current token is of that kind, or that identifier, advance and return
 * true. */
bool byi_lex_accept(struct byi_lexer *lex, int kind);
bool byi_lex_accept_word(struct byi_lexer *lex, const char *word);
/* Advance if the current token is of that kind. Otherwise fail with BYOC_EPARSE
 * and a message that shows it; `what` describes the expected token: "')' after
 * the operands". */
enum byoc_status byi_lex_expect(struct byi_lexer *lex, int kind,
                                const char *what, struct byoc_error *err);

/* Fail with BYOC_EPARSE and "FILE:LINE:COL: error: ..." at `tok`. */
enum byoc_status byi_lex_fail(const struct byi_lexer *lex,
                              const struct byi_token *tok,
                              struct byoc_error *err, const char *fmt, ...)
    BYI_PRINTF(4, 5);
/* Fail with BYOC_EPARSE and "... found X, expected WHAT" at the current token.
 */
enum byoc_status byi_lex_expected(const struct byi_lexer *lex, const char *what,
                                  struct byoc_error *err);
/* Prefix the message in err with the position of `tok`; returns its status. */
enum byoc_status byi_lex_place(const struct byi_lexer *lex,
                               const struct byi_token *tok,
                               struct byoc_error *err);

/* Read an integer without suffix from min to max, and advance. `what` describes
 * it in messages. */
enum byoc_status byi_lex_int(struct byi_lexer *lex, int64_t min, int64_t max,
                             const char *what, int64_t *value,
                             struct byoc_error *err);
/* Read a number without suffix, inf or nan, and advance. *is_float: the number
 * has a point or an exponent, or is not finite; then only *f is set, otherwise
 * both. */
enum byoc_status byi_lex_number(struct byi_lexer *lex, const char *what,
                                bool *is_float, int64_t *i, double *f,
                                struct byoc_error *err);
/* Read a string, true, false or a number as the value of an attribute, and
 * advance. The string is in the arena. */
enum byoc_status byi_lex_attr(struct byi_lexer *lex, const char *what,
                              struct byi_arena *arena, struct byi_attr *attr,
                              struct byoc_error *err);
/* The length of a number token without its suffix (f, i32). */
size_t byi_lex_digits(const struct byi_token *tok);
/* Whether the current token is a number, inf or nan. */
bool byi_lex_is_number(const struct byi_lexer *lex);
/* The text of a name or string token with escapes replaced, NUL-terminated, in
 * the arena. */
char *byi_lex_text(struct byi_arena *arena, const struct byi_token *tok);
/* The inverse: append `text` as a string with quotes. */
void byi_lex_quote(struct byi_text *out, const char *text);
/* Whether `text` is a name that needs no quotes after % or @. */
bool byi_lex_is_bare_name(const char *text);

#endif
