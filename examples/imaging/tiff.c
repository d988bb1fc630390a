/* SPDX-License-Identifier: Apache-2.0 */
/* tiff.c: reads TIFF images with libtiff, which gets the bytes of a file from
 * callbacks.
 */
#include "imaging.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

struct tiff_reader {
    struct encoded file;
    size_t offset; /* of the next byte to read */
};

static tmsize_t read_some(thandle_t handle, void *to, tmsize_t n)
{
    struct tiff_reader *r = handle;
    const size_t remaining = r->file.bytes - r->offset;
    const size_t n_read = (size_t)n < remaining ? (size_t)n : remaining;
    memcpy(to, r->file.data + r->offset, n_read);
    r->offset += n_read;
    return (tmsize_t)n_read;
}

static tmsize_t write_none(thandle_t handle, void *from, tmsize_t n)
{
    (void)handle;
    (void)from;
    (void)n;
    return -1;
}

static toff_t seek(thandle_t handle, toff_t offset, int whence)
{
    struct tiff_reader *r = handle;
    const toff_t base = whence == SEEK_SET   ? 0
                        : whence == SEEK_CUR ? r->offset
                                             : r->file.bytes;
    if (base + offset > r->file.bytes)
        return (toff_t)-1;
    r->offset = (size_t)(base + offset);
    return r->offset;
}

static int stay_open(thandle_t handle)
{
    (void)handle;
    return 0;
}

static toff_t bytes_of(thandle_t handle)
{
    const struct tiff_reader *r = handle;
    return r->file.bytes;
}

/* An error handler that prints nothing: 1 tells libtiff not to print either. */
static int say_nothing(TIFF *tiff, void *arg, const char *where,
                       const char *format, va_list args)
{
    (void)tiff, (void)arg, (void)where, (void)format, (void)args;
    return 1;
}

/* Open the file of `r`, which must live until TIFFClose(). Returns NULL if it
 * is not a TIFF file that libtiff can open, or if memory runs out. */
static TIFF *tiff_open(struct tiff_reader *r)
{
    if (r->file.bytes < 8 || (memcmp(r->file.data, "II*\0", 4) != 0 &&
                              memcmp(r->file.data, "MM\0*", 4) != 0))
        return NULL;
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options)
        return NULL;
    TIFFOpenOptionsSetErrorHandlerExtR(options, say_nothing, NULL);
    TIFFOpenOptionsSetWarningHandlerExtR(options, say_nothing, NULL);
    TIFF *tiff =
        TIFFClientOpenExt("image", "rm", r, read_some, write_none, seek,
                          stay_open, bytes_of, NULL, NULL, options);
    TIFFOpenOptionsFree(options);
    return tiff;
}

static bool tiff_size(struct encoded file, int64_t *width, int64_t *height)
{
    struct tiff_reader r = {.file = file};
    uint32_t w = 0, h = 0;
    TIFF *tiff = tiff_open(&r);
    if (!tiff)
        return false;
    const bool found = TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &w) &&
                       TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &h);
    TIFFClose(tiff);
    *width = w;
    *height = h;
    return found;
}

static bool tiff_read(struct encoded file, int64_t width, int64_t height,
                      uint8_t *rgb)
{
    struct tiff_reader r = {.file = file};
    TIFF *tiff = tiff_open(&r);
    uint32_t *pixels = malloc((size_t)(width * height) * sizeof *pixels);
    const bool good =
        tiff && pixels &&
        TIFFReadRGBAImageOriented(tiff, (uint32_t)width, (uint32_t)height,
                                  pixels, ORIENTATION_TOPLEFT, 1);
    for (int64_t i = 0; good && i < width * height; i++) {
        rgb[3 * i] = (uint8_t)TIFFGetR(pixels[i]);
        rgb[3 * i + 1] = (uint8_t)TIFFGetG(pixels[i]);
        rgb[3 * i + 2] = (uint8_t)TIFFGetB(pixels[i]);
    }
    free(pixels);
    if (tiff)
        TIFFClose(tiff);
    return good;
}

const struct format format_tiff = {tiff_size, tiff_read};
