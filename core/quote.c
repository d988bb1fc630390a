/* quote.c: a JSON string from a C string (RFC 8259, section 7). Bytes above
 * 0x7f pass as they are: names are UTF-8 or are not our business.
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
