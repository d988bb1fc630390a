/* SPDX-License-Identifier: Apache-2.0 */
/* uncompressed.c: reads formats without compression: Windows bitmaps of 24 and
 * 32 bits, and portable anymaps (P5, P6) of 8 bits.
 */
#include "imaging.h"

#include <string.h>

/* --- bitmaps -------------------------------------------------------------- */

/* The header has 54 bytes. The rows follow, each padded to a multiple of 4
 * bytes. They go from the last to the first, or from the first on if the height
 * in the header is negative. The bytes of a pixel are B, G, R, or B, G, R and
 * an unused byte. */

static uint32_t read_u32(const uint8_t *at)
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
    if (file.bytes < 54 || memcmp(file.data, "BM", 2) != 0 ||
        read_u32(file.data + 30) != 0)
        return false;
    const int32_t h = (int32_t)read_u32(file.data + 22);
    *begin = read_u32(file.data + 10);
    *width = (int32_t)read_u32(file.data + 18);
    *height = h < 0 ? -(int64_t)h : h;
    *pixel = file.data[28] / 8u;
    if ((*pixel != 3 && *pixel != 4) || *width <= 0 || *width > 1 << 15 ||
        *height > 1 << 15)
        return false;
    const size_t pitch = ((size_t)*width * *pixel + 3) / 4 * 4;
    return *begin <= file.bytes &&
           pitch * (size_t)*height <= file.bytes - *begin;
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
    const bool downwards = (int32_t)read_u32(file.data + 22) < 0;
    for (int64_t y = 0; y < height; y++) {
        const int64_t from = downwards ? y : height - 1 - y;
        const uint8_t *row = file.data + begin + pitch * (size_t)from;
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

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The next number of the header, after white space and comments; -1: none. */
static int64_t pnm_number(struct encoded file, size_t *at)
{
    int64_t value = -1;
    while (*at < file.bytes &&
           (is_space(file.data[*at]) || file.data[*at] == '#')) {
        if (file.data[*at] == '#')
            while (*at < file.bytes && file.data[*at] != '\n')
                (*at)++;
        else
            (*at)++;
    }
    for (; *at < file.bytes && file.data[*at] >= '0' && file.data[*at] <= '9' &&
           value < 1 << 20;
         (*at)++)
        value = (value < 0 ? 0 : value * 10) + file.data[*at] - '0';
    return value;
}

/* Read the header: width, height, offset of the pixels (*begin). Returns false
 * if the anymap is not supported or is truncated. */
static bool pnm_head(struct encoded file, int64_t *width, int64_t *height,
                     size_t *begin)
{
    if (file.bytes < 2 || file.data[0] != 'P' ||
        (file.data[1] != '5' && file.data[1] != '6'))
        return false;
    *begin = 2;
    *width = pnm_number(file, begin);
    *height = pnm_number(file, begin);
    if (pnm_number(file, begin) != 255 || *width <= 0 || *height <= 0 ||
        *begin >= file.bytes || !is_space(file.data[*begin]))
        return false;
    (*begin)++;
    return *width * *height * (file.data[1] == '6' ? 3 : 1) <=
           (int64_t)(file.bytes - *begin);
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
    const int step = file.data[1] == '6' ? 1 : 3; /* gray: repeat each value */
    for (int64_t i = 0; i < 3 * width * height; i++)
        rgb[i] = file.data[begin + (size_t)(i / step)];
    return true;
}

const struct format format_pnm = {pnm_size, pnm_read};
