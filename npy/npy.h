/* SPDX-License-Identifier: Apache-2.0 */
/* npy.h: reads and writes numpy's .npy arrays, and reads .npz archives. */
#ifndef BYI_NPY_H
#define BYI_NPY_H

#include "core/base/base.h"

/* Read an array (NEP 1; versions 1 to 3, little-endian, C order or Fortran
 * order up to rank 1; no objects). The data is valid as long as `arena`.
 * Errors: BYOC_EIO, BYOC_EPARSE (malformed), BYOC_EUNSUPPORTED (another type or
 * order), BYOC_ENOMEM. */
enum byoc_status byi_npy_read(const char *path, struct byi_arena *arena,
                              struct byi_tensor *tensor,
                              struct byoc_error *err);
/* Write an array to a temporary file, and rename it. bfloat16 is written as
 * uint16, and types of 8 bits or fewer as bytes, with the same bits. Errors:
 * BYOC_EIO, BYOC_EUNSUPPORTED (a type that numpy does not have). */
enum byoc_status byi_npy_write(const char *path,
                               const struct byi_tensor *tensor,
                               struct byoc_error *err);
/* Read the array called `name` ("x" for the member x.npy) from an .npz that
 * numpy.savez wrote (members stored, not deflated). Errors: as byi_npy_read;
 * BYOC_EINVAL if there is no such array. */
enum byoc_status byi_npz_read(const char *path, const char *name,
                              struct byi_arena *arena,
                              struct byi_tensor *tensor,
                              struct byoc_error *err);

/* --- npy_text.c: strings -------------------------------------------------- */

/* Whether a descr describes strings. `descr` is without the byte order, but
 * with the closing quote: "U5'". *width: the bytes of each string; *wide: they
 * are code points of 32 bits. */
bool byi_npy_is_text(const char *descr, size_t *width, bool *wide);
/* Read the strings of an array whose shape is in *t into t->data, in `arena`;
 * `path` is for messages. Errors: BYOC_EPARSE (the bytes are not that many
 * strings; more than 2^24 strings of 0 bytes). */
enum byoc_status byi_npy_read_text(const uint8_t *bytes, uint64_t n_bytes,
                                   size_t width, bool wide, const char *path,
                                   struct byi_arena *arena,
                                   struct byi_tensor *t,
                                   struct byoc_error *err);
/* The number of code points of the longest string of a tensor, at least 1. */
uint32_t byi_npy_text_width(const struct byi_tensor *t);
/* Write all strings, each padded with zeros to `width` code points. Errors are
 * in ferror(stream). */
void byi_npy_write_text(const struct byi_tensor *t, uint32_t width,
                        FILE *stream);

#endif
