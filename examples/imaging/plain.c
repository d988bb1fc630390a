/* SPDX-License-Identifier: Apache-2.0 */
/* plain.c: reads formats without compression: Windows bitmaps of 24 and 32
 * bits, and portable anymaps (P5, P6) of 8 bits.
 */
#include "imaging.h"

#include <string.h>

/* --- bitmaps -------------------------------------------------------------- */

/* The header has 54 bytes. The rows follow, each padded to a multiple of 4
 * bytes, from the last to the first, or from the first on if the height in the
 * header is negative. The bytes of a pixel are B, G, R, or B, G, R and an
 * unused byte. */

static uint32_t u32(const uint8_t *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
           (uint32_t)at[3] << 24;
}

/* Read the header: width, height, offset of the pixels (*begin), bytes of a
 * pixel (*pixel). Returns false if the bitmap is not supported or is truncated.
 */
static bool bmp_head(struct encoded file, int64_t *width, int64_t *height,
                     size_t *begin, size_t *pixel)
{
    if (file.n < 54 || memcmp(file.at, "BM", 2) != 0 || u32(file.at + 30) != 0)
        return false;
    const int32_t h = (int32_t)u32(file.at + 22);
    *begin = u32(file.at + 10);
    *width = (int32_t)u32(file.at + 18);
    *height = h < 0 ? -(int64_t)h : h;
    *pixel = file.at[28] / 8u;
    if ((*pixel != 3 && *pixel != 4) || *width <= 0 || *width > 1 << 15 ||
        *height > 1 << 15)
        return false;
    const size_t pitch = ((size_t)*width * *pixel + 3) / 4 * 4;
    return *begin <= file.n && pitch * (size_t)*height <= file.n - *begin;
}

static bool bmp_size(struct encoded file, int64_t *width, int64_t *height)
{
    size_t begin, pixel;
    return bmp_head(file, width, height, &begin, &pixel);
}

static bool bmp_read(struct encoded file, int64_t width, int64_t height,
                     uint8_t *rgb)
{
    size_t begin, pixel;
    if (!bmp_head(file, &width, &height, &begin, &pixel))
        return false;
    const size_t pitch = ((size_t)width * pixel + 3) / 4 * 4;
    const bool downwards = (int32_t)u32(file.at + 22) < 0;
    for (int64_t y = 0; y < height; y++) {
        const int64_t from = downwards ? y : height - 1 - y;
        const uint8_t *row = file.at + begin + pitch * (size_t)from;
        for (int64_t x = 0; x < width; x++, row += pixel)
            for (int c = 0; c < 3; c++)
                *rgb++ = row[2 - c];
    }
    return true;
}

const struct format format_bmp = {bmp_size, bmp_read};

/* --- anymaps -------------------------------------------------------------- */

/* "P5 WIDTH HEIGHT 255" (gray) or "P6 ..." (R, G, B), a white-space character,
 * then the pixels. */

/* The next number of the header, after white space and comments; -1: none. */
static int64_t pnm_number(struct encoded file, size_t *at)
{
    int64_t value = -1;
    while (*at < file.n &&
           (strchr(" \t\r\n", file.at[*at]) || file.at[*at] == '#')) {
        if (file.at[*at] == '#')
            while (*at < file.n && file.at[*at] != '\n')
                (*at)++;
        else
            (*at)++;
    }
    for (; *at < file.n && file.at[*at] >= '0' && file.at[*at] <= '9' &&
           value < 1 << 20;
         (*at)++)
        value = (value < 0 ? 0 : value * 10) + file.at[*at] - '0';
    return value;
}

static bool pnm_head(struct encoded file, int64_t *width, int64_t *height,
                     size_t *begin)
{
    if (file.n < 2 || file.at[0] != 'P' ||
        (file.at[1] != '5' && file.at[1] != '6'))
        return false;
    *begin = 2;
    *width = pnm_number(file, begin);
    *height = pnm_number(file, begin);
    if (pnm_number(file, begin) != 255 || *width <= 0 || *height <= 0 ||
        *begin >= file.n)
        return false;
    (*begin)++;
    return *width * *height * (file.at[1] == '6' ? 3 : 1) <=
           (int64_t)(file.n - *begin);
}

static bool pnm_size(struct encoded file, int64_t *width, int64_t *height)
{
    size_t begin;
    return pnm_head(file, width, height, &begin);
}

static bool pnm_read(struct encoded file, int64_t width, int64_t height,
                     uint8_t *rgb)
{
    size_t begin;
    if (!pnm_head(file, &width, &height, &begin))
        return false;
    const int step = file.at[1] == '6' ? 1 : 3; /* gray: repeat each value */
    for (int64_t i = 0; i < 3 * width * height; i++)
        rgb[i] = file.at[begin + (size_t)(i / step)];
    return true;
}

const struct format format_pnm = {pnm_size, pnm_read};
