/* SPDX-License-Identifier: Apache-2.0 */
/* text.h: shared by the printer, the parser and the verifier: limits, values as
 * text, and the side file of large constants (docs/text.md).
 */
#ifndef BYI_TEXT_H
#define BYI_TEXT_H

#include "ir.h"

/* The printer's limit of the elements of a constant that is printed inline. */
enum { BYI_TEXT_INLINE = 16 };

/* Limits of the parser, far above the needs of models. Each bounds the memory
 * or time that a hostile text can cost. */
enum {
    BYI_TEXT_MAX_NODES = 4 << 20, /* of a module                           */
    BYI_TEXT_MAX_FUNCS = 1 << 20,
    BYI_TEXT_MAX_DEPTH = 256, /* nested functions and branches */
    BYI_TEXT_MAX_TYPE_DEPTH = 64,
    BYI_TEXT_MAX_TYPE_SIZE = 65536,     /* tensors and tuples in one type     */
    BYI_TEXT_MAX_TYPES_SIZE = 16 << 20, /* of all types together          */
    BYI_TEXT_MAX_LIST = 1 << 20,        /* entries of one list attribute      */
    BYI_TEXT_MAX_RANDOM = 256 << 20     /* bytes of all random[...] together  */
};

/* --- text_value.c ------------------------------------------------------- */

/* Append a type, or a name after its sigil ('%' or '@'), quoted if needed. */
void byi_text_type(const struct byi_module *m, const struct byi_type *type,
                   struct byi_text *out);
void byi_text_name(struct byi_text *out, char sigil, const char *name);
/* Print the value of an attribute. */
void byi_text_attr(struct byi_text *out, const struct byi_attr *attr);
/* The string attributes of functions, with their members of struct byi_func. */
enum { BYI_N_FUNC_ATTRS = 5 };
extern const struct byi_func_attr {
    const char *name;
    size_t offset;
} byi_func_attrs[BYI_N_FUNC_ATTRS];
/* The attributes of functions that are 0 or 1. */
enum { BYI_N_FUNC_FLAGS = 3 };
extern const struct byi_func_attr byi_func_flags[BYI_N_FUNC_FLAGS];
/* Append a constant as a literal. If it is too large and not of strings, add
 * nothing and return false. */
bool byi_text_const(const struct byi_const *c, struct byi_text *out);
/* The suffix of a scalar literal, such as "f" or "i32"; "" for int64, NULL for
 * dtypes without one. */
const char *byi_text_suffix(enum byoc_dtype dtype);
/* The type as text for a message, shortened with "..." to fit. Returns buf. */
char *byi_text_type_buf(const struct byi_module *m, const struct byi_type *type,
                        char *buf, size_t n);

/* --- text_side.c: the side file ----------------------------------------- */

/* The name of a constant: 16 hex digits of the SHA-256 of its dtype, dims and
 * bytes, and NUL. */
void byi_const_digest(const struct byi_const *c, char digest[17]);
/* Write the file's header, then each constant. Errors are in ferror(file). */
void byi_side_begin(FILE *file);
void byi_side_write(FILE *file, const char *digest, const struct byi_const *c);

/* Constants of a mapped side file by digest. */
struct byi_side;
/* Map the file and check every record. It stays mapped as long as `arena`.
 * Errors: BYOC_EIO, BYOC_ENOMEM, BYOC_EPARSE (not a valid side file). */
enum byoc_status byi_side_open(const char *path, struct byi_arena *arena,
                               struct byi_side **side, struct byoc_error *err);
/* The constant of that digest (16 characters), with its type in the arena of
 * byi_side_open; *found is false if there is none. Fails if its bytes have
 * another digest. */
enum byoc_status byi_side_find(const struct byi_side *side, const char *digest,
                               bool *found, struct byi_const *c,
                               struct byoc_error *err);

#endif
