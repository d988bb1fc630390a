/* SPDX-License-Identifier: Apache-2.0 */
/* npy_text.c: reads and writes strings in numpy's arrays: "S5", five bytes
 * each, and "U5", five code points of 32 bits, both padded with zeros.
 */
#include "npy.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_EMPTY = 1 << 24 }; /* strings of 0 bytes, which take no data */

static uint32_t code_at(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

static void add_code(struct byi_text *out, uint32_t c)
{
    c = c > 0x10ffff ? 0xfffd : c; /* not a character: U+FFFD */
    const int continuations = c < 0x80      ? 0
                              : c < 0x800   ? 1
                              : c < 0x10000 ? 2
                                            : 3;
    char head = (char)(continuations ? 0xf00 >> (continuations + 1) & 0xff : 0);

    head = (char)(head | (char)(c >> (6 * continuations)));
    byi_text_add(out, &head, 1);
    for (int i = continuations; i-- > 0;) {
        const char tail = (char)(0x80 | (c >> (6 * i) & 0x3f));
        byi_text_add(out, &tail, 1);
    }
}

/* Convert an element of `width` bytes to a string in `text`. */
static void read_element(const uint8_t *at, size_t width, bool wide,
                         struct byi_text *text)
{
    text->n = 0;
    byi_text_add(text, "", 0);
    if (!wide) {
        byi_text_add(text, (const char *)at, strnlen((const char *)at, width));
        return;
    }
    for (size_t i = 0; i < width && code_at(at + i); i += 4)
        add_code(text, code_at(at + i));
}

bool byi_npy_is_text(const char *descr, size_t *width, bool *wide)
{
    char *end = NULL;

    if (*descr != 'U' && *descr != 'S')
        return false;
    const long n = strtol(descr + 1, &end, 10);
    *wide = *descr == 'U';
    *width = (size_t)n * (*wide ? 4 : 1);
    return *end == '\'' && n >= 0 && n < 1 << 24;
}

enum byoc_status byi_npy_read_text(const uint8_t *bytes, uint64_t n_bytes,
                                   size_t width, bool wide, const char *path,
                                   struct byi_arena *arena,
                                   struct byi_tensor *t, struct byoc_error *err)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    struct byi_text text = {0};

    if (n < 0 || (width == 0 && n > MAX_EMPTY))
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found a shape of more than %d strings of %zu "
                        "bytes, expected a smaller shape",
                        path, MAX_EMPTY, width);
    if ((width && (uint64_t)n > n_bytes / width) ||
        (uint64_t)n * width != n_bytes)
        return byi_fail(
            err, BYOC_EPARSE,
            "%s: found %llu bytes of data, expected %lld strings of %zu bytes",
            path, (unsigned long long)n_bytes, (long long)n, width);
    const char **at = byi_arena_calloc(arena, (size_t)n + 1, sizeof *at);
    for (int64_t i = 0; i < n; i++) {
        read_element(bytes + (size_t)i * width, width, wide, &text);
        at[i] = byi_arena_strn(arena, text.n ? text.at : "", text.n);
    }
    byi_text_free(&text);
    t->data = at;
    return BYOC_OK;
}

/* Read the code point at *text, and advance; a byte that is not UTF-8 is
 * returned as it is. */
static uint32_t next_code(const char **text)
{
    const uint8_t *at = (const uint8_t *)*text;
    const int continuations = at[0] < 0xc0   ? 0
                              : at[0] < 0xe0 ? 1
                              : at[0] < 0xf0 ? 2
                                             : 3;
    uint32_t c = continuations ? at[0] & (0x3fu >> continuations) : at[0];

    for (int i = 1; i <= continuations; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            *text += 1;
            return at[0];
        }
        c = c << 6 | (at[i] & 0x3fu);
    }
    *text += continuations + 1;
    return c;
}

uint32_t byi_npy_text_width(const struct byi_tensor *t)
{
    const char *const *at = t->data;
    const int64_t n = byi_elements(t->rank, t->dims);
    uint32_t longest = 1;

    for (int64_t i = 0; i < n; i++) {
        uint32_t length = 0;
        for (const char *c = at[i]; *c; length++)
            next_code(&c);
        longest = length > longest ? length : longest;
    }
    return longest;
}

void byi_npy_write_text(const struct byi_tensor *t, uint32_t width,
                        FILE *stream)
{
    const char *const *at = t->data;
    const int64_t n = byi_elements(t->rank, t->dims);

    for (int64_t i = 0; i < n; i++) {
        const char *c = at[i];
        for (uint32_t k = 0; k < width; k++) {
            const uint32_t code = *c ? next_code(&c) : 0;
            fwrite(&code, sizeof code, 1, stream);
        }
    }
}
