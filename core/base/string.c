/* SPDX-License-Identifier: Apache-2.0 */
/* string.c: packs, splits and compares the strings in tensors, and changes
 * their case. Each string is a pointer to bytes that end in a NUL, read as
 * UTF-8. In a file they are stored one after the other, each with its NUL.
 */
#include "base.h"

#include <string.h>
#include <wctype.h>

void byi_strings_pack(const char *const *at, int64_t n, struct byi_text *out)
{
    for (int64_t i = 0; i < n; i++)
        byi_text_add(out, at[i], strlen(at[i]) + 1);
}

bool byi_strings_unpack(const char *bytes, uint64_t n_bytes, int64_t n,
                        const char **at)
{
    const char *end = bytes + n_bytes;

    for (int64_t i = 0; i < n; i++) {
        const char *nul = memchr(bytes, '\0', (size_t)(end - bytes));
        if (!nul)
            return false;
        at[i] = bytes;
        bytes = nul + 1;
    }
    return bytes == end;
}

/* --- upper and lower case ------------------------------------------------- */

/* The character at text, and its length *n; -1 for a byte that is not UTF-8. */
static int32_t character_at(const char *text, int *n)
{
    const uint8_t *at = (const uint8_t *)text;
    const int n_more = at[0] < 0x80             ? 0
                       : (at[0] & 0xe0) == 0xc0 ? 1
                       : (at[0] & 0xf0) == 0xe0 ? 2
                       : (at[0] & 0xf8) == 0xf0 ? 3
                                                : -1;
    int32_t c = n_more > 0 ? at[0] & (0x3f >> n_more) : at[0];

    *n = 1;
    for (int i = 1; i <= n_more; i++) {
        if ((at[i] & 0xc0) != 0x80) /* also true for the NUL */
            return -1;
        c = c << 6 | (at[i] & 0x3f);
    }
    if (n_more < 0)
        return -1;
    *n = n_more + 1;
    return c;
}

static size_t put_character(int32_t c, char to[4])
{
    if (c < 0x80) {
        to[0] = (char)c;
        return 1;
    }
    const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)((0xf00 >> n & 0xff) | c);
    return n;
}

locale_t byi_string_locale(const char *name)
{
    locale_t c =
        *name ? newlocale(LC_CTYPE_MASK, name, (locale_t)0) : (locale_t)0;

    return c ? c : newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
}

static int32_t in_case(int32_t c, enum byi_case to, locale_t locale)
{
    if (to == BYI_CASE_KEEP || !locale)
        return c;
    if (to == BYI_CASE_UPPER)
        return (int32_t)towupper_l((wint_t)c, locale);
    return (int32_t)towlower_l((wint_t)c, locale);
}

size_t byi_string_case(const char *text, enum byi_case to, locale_t locale,
                       char *out)
{
    size_t length = 0;
    char bytes[4];
    int n = 0;

    for (; *text; text += n) {
        const int32_t c = character_at(text, &n);
        size_t k = 1;
        bytes[0] = *text;
        if (c >= 0)
            k = put_character(in_case(c, to, locale), bytes);
        if (out)
            memcpy(out + length, bytes, k);
        length += k;
    }
    if (out)
        out[length] = '\0';
    return length;
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Words are short, so that loops take less time than calls of strcspn. */
static const char *end_of_word(const char *at)
{
    while (*at && !is_space(*at))
        at++;
    return at;
}

const char *byi_string_next_part(const char **from, const char *delimiter,
                                 bool last, size_t *length)
{
    const bool words = delimiter[0] == '\0';
    const char *at = *from;

    while (at && words && is_space(*at))
        at++;
    if (!at || (words && *at == '\0'))
        return NULL;
    const char *end = last    ? NULL
                      : words ? end_of_word(at)
                              : strstr(at, delimiter);
    if (!end)
        end = at + strlen(at);
    *length = (size_t)(end - at);
    *from = *end == '\0' ? NULL : end + (words ? 0 : strlen(delimiter));
    return at;
}

/* To upper case, then to lower case, for letters with two lower-case forms. */
static int32_t fold_case(int32_t c, locale_t locale)
{
    return in_case(in_case(c, BYI_CASE_UPPER, locale), BYI_CASE_LOWER, locale);
}

bool byi_string_equal(const char *a, const char *b, bool any_case,
                      locale_t locale)
{
    int n = 0, k = 0;

    if (!any_case)
        return strcmp(a, b) == 0;
    for (; *a && *b; a += n, b += k) {
        const int32_t c = character_at(a, &n), d = character_at(b, &k);
        if (c < 0 || d < 0 ? c != d || *a != *b
                           : fold_case(c, locale) != fold_case(d, locale))
            return false;
    }
    return *a == *b;
}
