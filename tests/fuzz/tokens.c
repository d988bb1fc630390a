/* SPDX-License-Identifier: Apache-2.0 */
/* tokens.c: mutates text by whole tokens: swaps, omits and replaces them. */
#include "fuzz.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* A token of a text. */
struct token {
    size_t at, n; /* its first byte in the text, and its bytes */
};

/* The tokens of a text. */
struct tokens {
    BYI_VEC(struct token) list;
};

/* The bytes of the token at the beginning of the n > 0 bytes of text. */
static size_t token_length(const char *text, size_t n)
{
    size_t k = 1;
    unsigned char first = (unsigned char)text[0];
    if (isalpha(first) || first == '_' || first == '%' || first == '@')
        while (k < n &&
               (isalnum((unsigned char)text[k]) || strchr("_.", text[k])) &&
               text[k])
            k++;
    else if (isdigit(first) || first == '-')
        while (k < n && text[k] &&
               (isxdigit((unsigned char)text[k]) || strchr(".+-x", text[k])))
            k++;
    else if (first == '"')
        for (; k < n && text[k - (k > 1)] != '\n'; k++)
            if (text[k] == '"') {
                k++;
                break;
            }
    return k;
}

/* Find all tokens except white space. The caller frees list.at. */
static struct tokens scan(const struct byi_text *t)
{
    struct tokens tokens = {0};
    for (size_t at = 0; at < t->n;) {
        size_t n = token_length(t->at + at, t->n - at);
        struct token token = {at, n};
        if (!isspace((unsigned char)t->at[at]))
            BYI_PUSH(&tokens.list, token);
        at += n;
    }
    return tokens;
}

/* Write to `out` what replaces a token: nothing, the token twice, a token of
 * `from`, whose tokens are `all`, a text of `fragments`, or another number. */
static void replace(struct fuzz_rng *rng, const struct byi_text *t,
                    const struct byi_text *from, const struct tokens *all,
                    const struct token *token, struct byi_text *out)
{
    static const char *const fragments[] = {
        "\"\"",  "null", "true",   "{}", "[]",          "-0",
        "1e999", "0.5",  "NaN",    "-1", "[",           "]",
        "{",     "}",    "(",      ")",  ",",           "%x",
        "@main", "\"",   "//",     "\\", "\"\\u0000\"", "float32",
        "int64", "bool", "string", "?",  "1e-5",        "inf",
    };
    const struct token *other = &all->list.at[fuzz_below(rng, all->list.n)];
    unsigned char first = (unsigned char)t->at[token->at];
    bool number = isdigit(first) || first == '-';
    switch (fuzz_below(rng, number ? 8 : 5)) {
    case 0: /* nothing */
        return;
    case 1: /* twice */
        byi_text_add(out, t->at + token->at, token->n);
        byi_text_add(out, t->at + token->at, token->n);
        return;
    case 2:
    case 3:
        byi_text_add(out, from->at + other->at, other->n);
        return;
    case 4: {
        const char *text = fragments[fuzz_below(rng, BYI_COUNT(fragments))];
        byi_text_add(out, text, strlen(text));
        return;
    }
    default:
        byi_text_addf(out, "%lld", (long long)fuzz_number(rng));
    }
}

/* The classes of tokens that may replace one another: numbers, strings, words,
 * and, for every other first character, the tokens that begin with it. */
static int class_of(const struct byi_text *t, const struct token *token)
{
    unsigned char first = (unsigned char)t->at[token->at];
    if (isdigit(first) || (first == '-' && token->n > 1))
        return 0;
    return first == '"' ? 1 : isalpha(first) ? 2 : first;
}

/* Replace a token by one of the same class, so that the text mostly still
 * parses.
 */
static void replace_by_class(struct fuzz_rng *rng, const struct byi_text *t,
                             const struct byi_text *from,
                             const struct tokens *all,
                             const struct token *token, struct byi_text *out)
{
    int class = class_of(t, token);
    if (class == 0 && fuzz_below(rng, 2)) {
        long long value = strtoll(t->at + token->at, NULL, 10);
        if (value < INT32_MAX && value > INT32_MIN) {
            const long long near[] = {
                value + 1, value - 1, value * 2, value / 2, -value, 0, 1, 2};
            value = near[fuzz_below(rng, BYI_COUNT(near))];
        }
        byi_text_addf(out, "%lld", value);
        return;
    }
    for (int i = 0; i < 20; i++) {
        const struct token *other = &all->list.at[fuzz_below(rng, all->list.n)];
        if (class_of(from, other) != class)
            continue;
        byi_text_add(out, from->at + other->at, other->n);
        return;
    }
    byi_text_add(out, t->at + token->at, token->n);
}

/* Replace a random token of the text, sometimes by one of `other`. */
static void edit_token(struct fuzz_rng *rng, struct byi_text *t,
                       const struct byi_text *other, bool by_class)
{
    struct tokens tokens = scan(t), others = {0};
    struct byi_text result = {0};
    if (tokens.list.n) {
        const struct token *token =
            &tokens.list.at[fuzz_below(rng, tokens.list.n)];
        byi_text_add(&result, t->at, token->at);
        const struct byi_text *from = t;
        if (fuzz_below(rng, 3) == 0) {
            others = scan(other);
            from = others.list.n ? other : t;
        }
        (by_class ? replace_by_class : replace)(
            rng, t, from, from == t ? &tokens : &others, token, &result);
        byi_text_add(&result, t->at + token->at + token->n,
                     t->n - token->at - token->n);
        byi_text_free(t);
        *t = result;
    }
    byi_vec_free(tokens.list.at);
    byi_vec_free(others.list.at);
}

/* Remove a line, or repeat it. JSON is one line, so ',' ends a line too. */
static void edit_line(struct fuzz_rng *rng, struct byi_text *t)
{
    size_t at = fuzz_below(rng, t->n), end;
    while (at > 0 && !strchr("\n,", t->at[at - 1]))
        at--;
    for (end = at; end < t->n && !strchr("\n,", t->at[end]);)
        end++;
    end += end < t->n;
    struct byi_text result = {0};
    bool twice = fuzz_next(rng) & 1;
    byi_text_add(&result, t->at, twice ? end : at);
    byi_text_add(&result, t->at + (twice ? at : end),
                 t->n - (twice ? at : end));
    byi_text_free(t);
    *t = result;
}

void fuzz_tokens(struct fuzz_rng *rng, struct byi_text *bytes,
                 const struct byi_text *other)
{
    const uint64_t pick = fuzz_below(rng, 8);
    if (pick == 0) {
        fuzz_bytes(rng, bytes, other);
        return;
    }
    bool by_class = fuzz_below(rng, 3) != 0;
    do {
        if (pick < 4 && fuzz_tree(rng, bytes, other))
            continue;
        if (bytes->n && !by_class && fuzz_below(rng, 6) == 0)
            edit_line(rng, bytes);
        else if (bytes->n)
            edit_token(rng, bytes, other, by_class);
    } while (fuzz_below(rng, 2));
}
