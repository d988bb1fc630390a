/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.h: the characters of UTF-8. */
#ifndef BYI_UTF8_H
#define BYI_UTF8_H

#include <stddef.h>

/* U+FFFD, which replaces bytes that belong to no character. */
#define BYI_UTF8_REPLACEMENT "\xef\xbf\xbd"

/* The number of bytes of the character at `text`; 0 if the first of these n
 * bytes begins none. */
size_t byi_utf8_character(const char *text, size_t n);

#endif
