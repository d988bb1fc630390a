/* SPDX-License-Identifier: Apache-2.0 */
/* jp2.c: reads JPEG 2000 images of 8 bits per component with OpenJPEG, which
 * gets the bytes of a file from callbacks.
 */
#include "imaging.h"

#include <string.h>

#include <openjpeg.h>

struct jp2_reader {
    struct encoded file;
    size_t offset; /* of the next byte to read */
};

static OPJ_SIZE_T read_some(void *to, OPJ_SIZE_T n, void *arg)
{
    struct jp2_reader *r = arg;
    const size_t remaining = r->file.bytes - r->offset;
    const size_t n_read = n < remaining ? n : remaining;
    if (!n_read)
        return (OPJ_SIZE_T)-1;
    memcpy(to, r->file.data + r->offset, n_read);
    r->offset += n_read;
    return n_read;
}

static OPJ_BOOL seek(OPJ_OFF_T offset, void *arg)
{
    struct jp2_reader *r = arg;
    if (offset < 0 || (size_t)offset > r->file.bytes)
        return OPJ_FALSE;
    r->offset = (size_t)offset;
    return OPJ_TRUE;
}

static OPJ_OFF_T skip(OPJ_OFF_T n, void *arg)
{
    struct jp2_reader *r = arg;
    return seek((OPJ_OFF_T)r->offset + n, arg) ? n : -1;
}

/* Read an image's header and, if `with_pixels`, its pixels. Returns NULL if
 * they cannot be read; otherwise the caller destroys the image. */
static opj_image_t *read_image(struct encoded file, bool with_pixels)
{
    static const uint8_t box[] = {0, 0, 0, 12, 'j', 'P', ' ', ' '};
    struct jp2_reader r = {.file = file};
    opj_dparameters_t params;
    opj_image_t *image = NULL;
    if (file.bytes < 12 || memcmp(file.data, box, sizeof box) != 0)
        return NULL;
    opj_codec_t *codec = opj_create_decompress(OPJ_CODEC_JP2);
    opj_stream_t *stream = opj_stream_default_create(OPJ_TRUE);
    opj_set_default_decoder_parameters(&params);
    if (codec && stream) {
        opj_stream_set_user_data(stream, &r, NULL);
        opj_stream_set_user_data_length(stream, file.bytes);
        opj_stream_set_read_function(stream, read_some);
        opj_stream_set_seek_function(stream, seek);
        opj_stream_set_skip_function(stream, skip);
    }
    if (!codec || !stream || !opj_setup_decoder(codec, &params) ||
        !opj_read_header(stream, codec, &image) ||
        (with_pixels && !opj_decode(codec, stream, image))) {
        opj_image_destroy(image);
        image = NULL;
    }
    opj_stream_destroy(stream);
    opj_destroy_codec(codec);
    return image;
}

static bool jp2_size(struct encoded file, int64_t *width, int64_t *height)
{
    opj_image_t *image = read_image(file, false);
    if (!image)
        return false;
    *width = (int64_t)image->x1 - image->x0;
    *height = (int64_t)image->y1 - image->y0;
    opj_image_destroy(image);
    return true;
}

static bool jp2_read(struct encoded file, int64_t width, int64_t height,
                     uint8_t *rgb)
{
    opj_image_t *image = read_image(file, true);
    bool good = image && image->numcomps >= 1;
    for (int c = 0; good && c < 3; c++) {
        const opj_image_comp_t *from =
            &image->comps[image->numcomps >= 3 ? c : 0];
        good = from->data && from->w == width && from->h == height &&
               from->prec == 8;
        for (int64_t i = 0; good && i < width * height; i++)
            rgb[3 * i + c] = (uint8_t)(from->data[i] + (from->sgnd ? 128 : 0));
    }
    if (image)
        opj_image_destroy(image);
    return good;
}

const struct format format_jp2 = {jp2_size, jp2_read};
