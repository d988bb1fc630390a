/* SPDX-License-Identifier: Apache-2.0 */
/* imaging.h: the image formats that the operator ImageDecoder in imaging.c
 * reads. */
#ifndef IMAGING_H
#define IMAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file in memory. */
struct encoded {
    const uint8_t *data;
    size_t bytes;
};

/* A format. Both functions return false if they cannot read the file. If size()
 * returns false, imaging.c tries the next format. read() gets the width and
 * height that size() has set. Any thread may call them. */
struct format {
    bool (*size)(struct encoded file, int64_t *width, int64_t *height);
    /* decode to rgb[height][width][3], which the caller allocates */
    bool (*read)(struct encoded file, int64_t width, int64_t height,
                 uint8_t *rgb);
};

extern const struct format format_jpeg, format_png; /* jpeg.c, png.c */
extern const struct format format_bmp, format_pnm;  /* uncompressed.c */
extern const struct format format_tiff, format_webp, format_jp2;

#endif
