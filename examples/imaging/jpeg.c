/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg.c: reads JPEG images with libjpeg-turbo. Its error handler must not
 * return, so it leaves with longjmp().
 */
#include "imaging.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct failing {
    struct jpeg_error_mgr base;
    jmp_buf at;
};

static void leave(j_common_ptr info)
{
    struct failing *failing = (void *)info->err;
    longjmp(failing->at, 1);
}

static void say_nothing(j_common_ptr info)
{
    (void)info;
}

static void begin(struct jpeg_decompress_struct *info, struct failing *failing,
                  struct encoded file)
{
    info->err = jpeg_std_error(&failing->base);
    failing->base.error_exit = leave;
    failing->base.output_message = say_nothing;
    jpeg_create_decompress(info);
    jpeg_mem_src(info, file.at, (unsigned long)file.n);
    jpeg_read_header(info, TRUE);
}

static bool jpeg_size(struct encoded file, int64_t *width, int64_t *height)
{
    struct jpeg_decompress_struct info = {0};
    struct failing failing;
    if (file.n < 4 || file.at[0] != 0xff || file.at[1] != 0xd8)
        return false;
    if (setjmp(failing.at)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    begin(&info, &failing, file);
    *width = info.image_width;
    *height = info.image_height;
    jpeg_destroy_decompress(&info);
    return true;
}

static bool jpeg_read(struct encoded file, int64_t width, int64_t height,
                      uint8_t *rgb)
{
    struct jpeg_decompress_struct info = {0};
    struct failing failing;
    if (setjmp(failing.at)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    begin(&info, &failing, file);
    info.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info);
    while (info.output_scanline < (JDIMENSION)height) {
        JSAMPROW row = rgb + 3 * width * info.output_scanline;
        jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
    jpeg_destroy_decompress(&info);
    return true;
}

const struct format format_jpeg = {jpeg_size, jpeg_read};
