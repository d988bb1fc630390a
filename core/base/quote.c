/* SPDX-License-Identifier: Apache-2.0 */
/* quote.c: prints C strings: as JSON strings (RFC 8259, section 7), with bytes
 * above 0x7f unchanged; as valid UTF-8 (RFC 3629); or for people to read.
 */
#include "base.h"
#include "utf8.h"

void byi_json_quote(struct byi_text *out, const char *text)
{
    byi_text_add(out, "\"", 1);
    for (const char *s = text; *s;) {
        const char *run = s;
        while ((unsigned char)*s >= 0x20 && *s != '"' && *s != '\\')
            s++;
        byi_text_add(out, run, (size_t)(s - run));
        if (*s == '\0')
            break;
        if (*s == '"' || *s == '\\')
            byi_text_addf(out, "\\%c", *s);
        else if (*s == '\n')
            byi_text_put(out, "\\n");
        else
            byi_text_addf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        s++;
    }
    byi_text_add(out, "\"", 1);
}

size_t byi_utf8_character(const char *bytes, size_t n)
{
    const unsigned char *text = (const unsigned char *)bytes;
    /* the ranges of the first and the second byte (RFC 3629, section 4) */
    static const struct {
        unsigned char first, last, low, high;
        size_t n;
    } rows[] = {
        {0x00, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2},
        {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
        {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        if (text[0] < rows[i].first || text[0] > rows[i].last)
            continue;
        if (rows[i].n > n || (rows[i].n > 1 && (text[1] < rows[i].low ||
                                                text[1] > rows[i].high)))
            return 0;
        for (size_t k = 2; k < rows[i].n; k++)
            if (text[k] < 0x80 || text[k] > 0xbf)
                return 0;
        return rows[i].n;
    }
    return 0;
}

void byi_utf8_add(struct byi_text *out, const char *text, size_t n)
{
    size_t begin = 0;
    for (size_t i = 0; i < n;) {
        size_t k = byi_utf8_character(text + i, n - i);
        if (k) {
            i += k;
            continue;
        }
        byi_text_add(out, text + begin, i - begin);
        byi_text_put(out, BYI_UTF8_REPLACEMENT);
        begin = ++i;
    }
    byi_text_add(out, text + begin, n - begin);
}

size_t byi_utf8_partial(const char *text, size_t n)
{
    const unsigned char *t = (const unsigned char *)text;
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        const unsigned char c = t[n - back];
        if (c < 0x80)
            return 0;
        /* a first byte, which determines the number of bytes of its character
         */
        if (c >= 0xc2)
            return back < (c < 0xe0 ? 2u : c < 0xf0 ? 3u : 4u) ? back : 0;
    }
    return 0;
}

static uint32_t code_point(const unsigned char *t, size_t n)
{
    static const unsigned char mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = t[0] & mask[n];
    for (size_t k = 1; k < n; k++)
        c = c << 6 | (t[k] & 0x3fu);
    return c;
}

/* Whether a terminal would interpret the character instead of showing it. These
 * are Unicode's categories Cc, Zl and Zp, the Bidi_Control property, and the
 * byte order mark and tags, which are invisible. */
static bool is_command(uint32_t c)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1f},     {0x7f, 0x9f},       {0x061c, 0x061c},
        {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2066, 0x2069},
        {0xfeff, 0xfeff}, {0xe0000, 0xe007f},
    };
    for (size_t i = 0; i < BYI_COUNT(ranges); i++)
        if (c >= ranges[i].first && c <= ranges[i].last)
            return true;
    return false;
}

/* Escape the character of n bytes, or a byte that belongs to no character (n is
 * 0). */
static void add_escape(struct byi_text *out, const unsigned char *t, size_t n,
                       enum byi_printable how)
{
    if (how != BYI_PRINTABLE_JSON) {
        for (size_t k = 0; k < (n ? n : 1); k++)
            byi_text_addf(out, "\\x%02x", t[k]);
        return;
    }
    const uint32_t c = n ? code_point(t, n) : 0xfffd;
    if (c < 0x10000)
        byi_text_addf(out, "\\u%04x", c);
    else
        byi_text_addf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                      0xdc00 + (c & 0x3ff));
}

void byi_printable_add(struct byi_text *out, const char *text, size_t n,
                       enum byi_printable how)
{
    const unsigned char *t = (const unsigned char *)text;
    size_t begin = 0;
    for (size_t i = 0; i < n;) {
        const size_t k = byi_utf8_character((const char *)t + i, n - i);
        const bool passes =
            (k && !is_command(code_point(t + i, k))) ||
            (how != BYI_PRINTABLE_LINE && (t[i] == '\n' || t[i] == '\t'));
        if (!passes) {
            byi_text_add(out, text + begin, i - begin);
            add_escape(out, t + i, k, how);
            begin = i + (k ? k : 1);
        }
        i += k ? k : 1;
    }
    byi_text_add(out, text + begin, n - begin);
}
