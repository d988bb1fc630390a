/* SPDX-License-Identifier: Apache-2.0 */
/* layout.c: memory layouts by name: parses them, and converts dims between
 * them.
 */
#include "layout.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

/* Parse a block, "16c", and advance *text. Returns NULL, or the error. */
static const char *read_block(const char **text, struct byi_layout *l)
{
    int64_t size = 0;
    for (; byi_is_digit(**text); (*text)++)
        if (size <= BYI_MAX_BLOCK)
            size = size * 10 + (**text - '0');
    if (size < 1)
        return "a block has 0 elements, expected 1 to 64";
    if (size > BYI_MAX_BLOCK)
        return "a block has more than 64 elements, expected 1 to 64";
    const char c = **text;
    if (c < 'a' || c > 'z')
        return "found a block size without an axis, expected a lower-case axis "
               "letter after it";
    const char letter = (char)(c - 'a' + 'A');
    if (byi_layout_find(l, letter) < 0)
        return "a block's axis is not named before it, expected its upper-case "
               "letter first";
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].letter == letter && l->at[i].block)
            return "an axis has two blocks, expected at most one";
    (*text)++;
    l->at[l->n].letter = letter;
    l->at[l->n++].block = size;
    return NULL;
}

const char *byi_layout_parse(const char *text, struct byi_layout *l)
{
    *l = (struct byi_layout){0};
    while (*text) {
        if (l->n == BYI_MAX_RANK)
            return "the layout has more than 12 axes, expected 1 to 12";
        if (byi_is_digit(*text)) {
            const char *why = read_block(&text, l);
            if (why)
                return why;
            continue;
        }
        if (!is_upper(*text))
            return "an axis is not an upper-case letter, expected one";
        if (byi_layout_find(l, *text) >= 0)
            return "two axes have the same letter, expected different ones";
        l->at[l->n++].letter = *text++;
    }
    return l->n ? NULL : "the layout has no axes, expected 1 to 12";
}

int byi_layout_find(const struct byi_layout *l, char letter)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].letter == letter && !l->at[i].block)
            return (int)i;
    return -1;
}

int64_t byi_layout_block(const struct byi_layout *l, char letter)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].letter == letter && l->at[i].block)
            return l->at[i].block;
    return 1;
}

bool byi_layout_is_plain(const struct byi_layout *l)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->at[i].block)
            return false;
    return true;
}

static bool same_letters(const struct byi_layout *a, const struct byi_layout *b)
{
    uint32_t only_a = 0, only_b = 0;
    for (uint32_t i = 0; i < a->n; i++)
        only_a += byi_layout_find(b, a->at[i].letter) < 0;
    for (uint32_t i = 0; i < b->n; i++)
        only_b += byi_layout_find(a, b->at[i].letter) < 0;
    return only_a == 0 && only_b == 0;
}

bool byi_layout_permutation(const struct byi_layout *from,
                            const struct byi_layout *to,
                            int64_t axes[BYI_MAX_RANK])
{
    if (!byi_layout_is_plain(from) || !byi_layout_is_plain(to) ||
        !same_letters(from, to))
        return false;
    for (uint32_t i = 0; i < to->n; i++)
        axes[i] = byi_layout_find(from, to->at[i].letter);
    return true;
}

/* Write the reason why dims cannot be converted. Returns false. */
static BYI_PRINTF(2, 3) bool refuse(char why[BYI_LAYOUT_WHY], const char *fmt,
                                    ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, BYI_LAYOUT_WHY, fmt, args);
    va_end(args);
    return false;
}

/* Convert the dim of axis `letter` in blocks of `from` elements to blocks of
 * `to` elements. Returns false with the reason in `why`. */
static bool convert_dim(char letter, int64_t dim, int64_t from, int64_t to,
                        int64_t *out, char why[BYI_LAYOUT_WHY])
{
    *out = dim;
    if (from == to)
        return true;
    if (from % to && to % from)
        return refuse(why,
                      "axis %c has blocks of %lld, expected blocks whose size "
                      "divides %lld or is a multiple of it",
                      letter, (long long)from, (long long)to);
    if (BYI_IS_SYMBOL(dim))
        return refuse(why,
                      "axis %c has a symbolic size, expected a known one, "
                      "which blocks of %lld need",
                      letter, (long long)(from > to ? from : to));
    if (__builtin_mul_overflow(dim, from, out))
        return refuse(why,
                      "axis %c has %lld blocks of %lld, expected at most "
                      "2^63 - 1 elements",
                      letter, (long long)dim, (long long)from);
    if (*out % to)
        return refuse(why,
                      "axis %c has %lld elements, expected a multiple of the "
                      "block, %lld",
                      letter, (long long)*out, (long long)to);
    *out /= to;
    return true;
}

bool byi_layout_dims(const struct byi_layout *from, const struct byi_layout *to,
                     const int64_t *dims, int64_t out[BYI_MAX_RANK],
                     char why[BYI_LAYOUT_WHY])
{
    if (!same_letters(from, to))
        return refuse(why, "found layouts with different axes, expected the "
                           "same axes in both");
    for (uint32_t i = 0; i < to->n; i++) {
        const char letter = to->at[i].letter;
        if (to->at[i].block)
            out[i] = to->at[i].block;
        else if (!convert_dim(letter, dims[byi_layout_find(from, letter)],
                              byi_layout_block(from, letter),
                              byi_layout_block(to, letter), &out[i], why))
            return false;
    }
    return true;
}

/* --- the layouts that operators accept ------------------------------------ */

bool byi_layout_is_data(const struct byi_layout *l, const char *first)
{
    const uint32_t n = (uint32_t)strlen(first);
    /* channels first, then perhaps blocked: NCHW, NCHW16c; channels last: NHWC
     */
    bool channels_first = l->n >= n, channels_last = l->n == n;
    for (uint32_t i = 0; i < n && i < l->n; i++) {
        const char letter = l->at[i].letter;
        const char in_last = i == 0 ? first[0] : i + 1 < n ? first[i + 1] : 'C';
        channels_first &= letter == first[i] && !l->at[i].block;
        channels_last &= letter == in_last && !l->at[i].block;
    }
    if (l->n == n + 1)
        return channels_first && l->at[n].letter == 'C' && l->at[n].block;
    return l->n == n && (channels_first || channels_last);
}

bool byi_layout_is_kernel(const struct byi_layout *l, const char *first)
{
    const uint32_t n = (uint32_t)strlen(first);
    for (uint32_t i = 0; i < l->n; i++)
        if (i < n ? l->at[i].block != 0 : l->at[i].block == 0)
            return false;
    for (uint32_t i = 0; i < n; i++)
        if (byi_layout_find(l, first[i]) < 0)
            return false;
    for (uint32_t i = n; i < l->n; i++)
        if (l->at[i].letter != 'O' && l->at[i].letter != 'I')
            return false;
    /* spatial axes, those from first[2] on, must be adjacent and in order */
    for (uint32_t i = 3; i < n; i++)
        if (byi_layout_find(l, first[i]) !=
            byi_layout_find(l, first[i - 1]) + 1)
            return false;
    return true;
}

static bool is_default(const struct byi_attr_def *def,
                       const struct byi_attr *attr)
{
    /* the table has the default in quotes */
    const size_t n = strlen(attr->s);
    return strlen(def->default_text) == n + 2 &&
           strncmp(def->default_text + 1, attr->s, n) == 0;
}

bool byi_layout_is_default(const struct byi_op *op,
                           const struct byi_attrs *attrs)
{
    if (op->id == BYI_OP_NN_BATCH_NORM)
        return byi_attr_int(attrs, "axis") == 1;
    for (uint32_t i = 0; i < op->n_attrs; i++) {
        const struct byi_attr_def *def = &op->attrs[i];
        const size_t n = strlen(def->name);
        if (def->kind == BYI_ATTR_STRING && def->default_text && n >= 6 &&
            strcmp(def->name + n - 6, "layout") == 0 &&
            !is_default(def, byi_attr_find(attrs, def->name)))
            return false;
    }
    return true;
}
