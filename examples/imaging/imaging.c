/* SPDX-License-Identifier: Apache-2.0 */
/* imaging.c: a library with one custom operator, ONNX's ImageDecoder, which
 * uses libjpeg-turbo, libpng and other libraries (docs/custom.md).
 */
#include <byoc/custom.h>

#include "imaging.h"

#include <stdio.h>
#include <string.h>

enum { MAX_SIDE = 1 << 15, MAX_PIXELS = 1 << 27 };

static const struct format *const formats[] = {
    &format_jpeg, &format_png, &format_bmp, &format_pnm,
#ifdef HAVE_TIFF
    &format_tiff,
#endif
#ifdef HAVE_WEBP
    &format_webp,
#endif
#ifdef HAVE_JP2
    &format_jp2,
#endif
};

/* The format that can read the file's size, or NULL; also NULL if the size
 * exceeds the limits. */
static const struct format *find_format(struct encoded file, int64_t *width,
                                        int64_t *height)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (formats[i]->size(file, width, height) && *width > 0 &&
            *height > 0 && *width <= MAX_SIDE && *height <= MAX_SIDE &&
            *width * *height <= MAX_PIXELS)
            return formats[i];
    return NULL;
}

/* Whether the attribute pixel_format has this value. */
static bool has_pixel_format(const struct byoc_operator_call *call,
                             const char *pixel_format)
{
    return strcmp(call->attrs[0].strings[0], pixel_format) == 0;
}

/* Set the shape to (height, width, channels). Height and width are 0 if the
 * file cannot be read, and unknown if its bytes are not known yet. */
static struct byoc_fail *decoder_shape(const struct byoc_host *host,
                                       const struct byoc_operator_call *call)
{
    const struct byoc_view *file = &call->inputs[0];
    struct byoc_result *image = &call->results[0];
    char text[120];
    if (file->dtype != BYOC_U8)
        return host->fail(host->ctx, BYOC_FAIL_INVALID,
                          "input 0: found another type, expected uint8");
    if (file->rank != 1) {
        snprintf(text, sizeof text,
                 "input 0: found rank %u, expected the bytes of a file as a "
                 "vector",
                 file->rank);
        return host->fail(host->ctx, BYOC_FAIL_INVALID, text);
    }
    if (!has_pixel_format(call, "RGB") && !has_pixel_format(call, "BGR") &&
        !has_pixel_format(call, "Grayscale")) {
        snprintf(text, sizeof text,
                 "pixel_format: found %.40s, expected RGB, BGR or Grayscale",
                 call->attrs[0].strings[0]);
        return host->fail(host->ctx, BYOC_FAIL_INVALID, text);
    }
    image->dtype = BYOC_U8;
    image->rank = 3;
    image->dims[0] = image->dims[1] = BYOC_SIZE_UNKNOWN;
    image->dims[2] = has_pixel_format(call, "Grayscale") ? 1 : 3;
    if (!file->data)
        return NULL;
    const struct encoded bytes = {file->data, file->bytes};
    if (!find_format(bytes, &image->dims[1], &image->dims[0]))
        image->dims[0] = image->dims[1] = 0;
    return NULL;
}

static void swap_channels(uint8_t *rgb, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++) {
        const uint8_t r = rgb[3 * i];
        rgb[3 * i] = rgb[3 * i + 2];
        rgb[3 * i + 2] = r;
    }
}

/* Compute the luma of ITU-R 601-2 with 16 fractional bits, as PIL does. */
static void to_gray(const uint8_t *rgb, uint8_t *gray, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++)
        gray[i] = (uint8_t)((rgb[3 * i] * 19595u + rgb[3 * i + 1] * 38470u +
                             rgb[3 * i + 2] * 7471u + 0x8000u) >>
                            16);
}

/* Decode the file; if that fails, the image becomes empty. */
static struct byoc_fail *decoder_run(const struct byoc_host *host,
                                     const struct byoc_operator_call *call)
{
    const struct encoded bytes = {call->inputs[0].data, call->inputs[0].bytes};
    struct byoc_result *image = &call->results[0];
    const int64_t pixels = image->dims[0] * image->dims[1];
    int64_t width, height;
    const struct format *format =
        pixels ? find_format(bytes, &width, &height) : NULL;
    if (!format)
        return NULL;
    const bool gray = has_pixel_format(call, "Grayscale");
    uint8_t *rgb =
        gray ? host->acquire(host->ctx, 3 * (uint64_t)pixels) : image->data;
    if (!rgb)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE,
                          "out of memory for the pixels");
    if (!format->read(bytes, width, height, rgb))
        image->dims[0] = image->dims[1] = 0;
    else if (gray)
        to_gray(rgb, image->data, pixels);
    else if (has_pixel_format(call, "BGR"))
        swap_channels(rgb, pixels);
    if (gray)
        host->release(host->ctx, rgb);
    return NULL;
}

static const struct byoc_attr_row decoder_attrs[] = {
    {"pixel_format", BYOC_ATTR_STRING, 0, "\"RGB\""},
};

static const struct byoc_operator decoder = {
    .struct_size = sizeof decoder,
    .since = 20,
    .domain = "ai.onnx",
    .name = "ImageDecoder",
    .min_inputs = 1,
    .max_inputs = 1,
    .min_results = 1,
    .max_results = 1,
    .n_attrs = 1,
    .attrs = decoder_attrs,
    .shape = decoder_shape,
    .run = decoder_run,
};

static const struct byoc_operator *const operators[] = {&decoder};

BYOC_OPERATORS_DEFINE("imaging", "1.0", operators)
