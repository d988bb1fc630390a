/* SPDX-License-Identifier: Apache-2.0 */
/* jpeg.c: reads JPEG images with libjpeg-turbo. Its error handler must not
 * return, so it leaves with longjmp().
 */
#include "imaging.h"

#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

struct error_handler {
    struct jpeg_error_mgr base;
    jmp_buf caller; /* where an error continues */
};

static void jump_to_caller(j_common_ptr info)
{
    struct error_handler *handler = (void *)info->err;
    longjmp(handler->caller, 1);
}

static void print_nothing(j_common_ptr info)
{
    (void)info;
}

/* Create a decoder, and read the file's header. */
static void begin_decoding(struct jpeg_decompress_struct *info,
                           struct error_handler *handler, struct encoded file)
{
    info->err = jpeg_std_error(&handler->base);
    handler->base.error_exit = jump_to_caller;
    handler->base.output_message = print_nothing;
    jpeg_create_decompress(info);
    jpeg_mem_src(info, file.data, (unsigned long)file.bytes);
    jpeg_read_header(info, TRUE);
}

static bool jpeg_size(struct encoded file, int64_t *width, int64_t *height)
{
    struct jpeg_decompress_struct info = {0};
    struct error_handler handler;
    if (file.bytes < 4 || file.data[0] != 0xff || file.data[1] != 0xd8)
        return false;
    if (setjmp(handler.caller)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    begin_decoding(&info, &handler, file);
    *width = info.image_width;
    *height = info.image_height;
    jpeg_destroy_decompress(&info);
    return true;
}

static bool jpeg_read(struct encoded file, int64_t width, int64_t height,
                      uint8_t *rgb)
{
    struct jpeg_decompress_struct info = {0};
    struct error_handler handler;
    if (setjmp(handler.caller)) {
        jpeg_destroy_decompress(&info);
        return false;
    }
    begin_decoding(&info, &handler, file);
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
