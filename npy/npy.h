/* SPDX-License-Identifier: Apache-2.0 */
/* npy/npy.h: numpy's files: .npy arrays, .npz archives of them. */
#ifndef BYI_NPY_H
#define BYI_NPY_H

#include "core/base/base.h"

/* Read an array (NEP 1; versions 1 to 3, little-endian, C order or Fortran
 * order up to rank 1; no objects). Data in `arena`. */
enum byoc_status byi_npy_read(const char *path, struct byi_arena *arena,
                              struct byi_tensor *tensor,
                              struct byoc_error *err);
/* Write one, aside and renamed. bfloat16 is written as its uint16 bits. */
enum byoc_status byi_npy_write(const char *path,
                               const struct byi_tensor *tensor,
                               struct byoc_error *err);
/* The array called `name` ("x" for the member x.npy) in an .npz that
 * numpy.savez wrote (members stored, not deflated). */
enum byoc_status byi_npz_read(const char *path, const char *name,
                              struct byi_arena *arena,
                              struct byi_tensor *tensor,
                              struct byoc_error *err);

/* --- npy_text.c: strings -------------------------------------------------- */

/* Whether a descr, without its byte order, is of strings, such as "U5'": the
 * bytes of each, and whether they are code points. */
bool byi_npy_is_text(const char *descr, size_t *width, bool *wide);
/* The strings of an array whose shape is in *t: t->data, in `arena`. */
enum byoc_status byi_npy_read_text(const uint8_t *bytes, uint64_t n_bytes,
                                   size_t width, bool wide, const char *path,
                                   struct byi_arena *arena,
                                   struct byi_tensor *t,
                                   struct byoc_error *err);
/* Code points of the longest string, at least 1; write them all as so many. */
uint32_t byi_npy_text_width(const struct byi_tensor *t);
void byi_npy_write_text(const struct byi_tensor *t, uint32_t width,
                        FILE *stream);

#endif
