/* quote.c: a JSON string from a C string (RFC 8259, section 7). Bytes above
 * 0x7f pass as they are: names are UTF-8 or are not our business; whose
 * business they are, a viewer's, gets UTF-8 (RFC 3629).
 */
#include "base.h"

#include <string.h>

void byi_json_quote(struct byi_text *out, const char *text)
{
    byi_text_add(out, "\"", 1);
    for (const char *s = text; *s;) {
        const char *plain = s;
        while ((unsigned char)*s >= 0x20 && *s != '"' && *s != '\\')
            s++;
        byi_text_add(out, plain, (size_t)(s - plain));
        if (*s == '\0')
            break;
        if (*s == '"' || *s == '\\')
            byi_text_addf(out, "\\%c", *s);
        else
            byi_text_addf(out, "\\u%04x", (unsigned)(unsigned char)*s);
        s++;
    }
    byi_text_add(out, "\"", 1);
}

/* The bytes of the character at `text`, 0 where there is none. */
static size_t character(const unsigned char *text, size_t n)
{
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
    size_t plain = 0;
    for (size_t i = 0; i < n;) {
        size_t k = character((const unsigned char *)text + i, n - i);
        if (k) {
            i += k;
            continue;
        }
        byi_text_add(out, text + plain, i - plain);
        byi_text_addf(out, "\xef\xbf\xbd");
        plain = ++i;
    }
    byi_text_add(out, text + plain, n - plain);
}
