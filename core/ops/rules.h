/* SPDX-License-Identifier: Apache-2.0 */
/* rules.h: helpers of the type rules: checks whose errors name what was found
 * and expected, arithmetic on dims that may be symbols, known values.
 */
#ifndef BYI_RULES_H
#define BYI_RULES_H

#include "ops.h"

/* Sets of element types, as masks. */
#define BYI_BIT(dtype) (1u << (unsigned)(dtype))
enum {
    BYI_RULE = 0, /* the type rule checks the types */
    BYI_FLOATS = BYI_BIT(BYOC_F16) | BYI_BIT(BYOC_BF16) | BYI_BIT(BYOC_F32) |
                 BYI_BIT(BYOC_F64),
    BYI_SIGNED_INTS = BYI_BIT(BYOC_I8) | BYI_BIT(BYOC_I16) | BYI_BIT(BYOC_I32) |
                      BYI_BIT(BYOC_I64),
    BYI_UNSIGNED_INTS = BYI_BIT(BYOC_U8) | BYI_BIT(BYOC_U16) |
                        BYI_BIT(BYOC_U32) | BYI_BIT(BYOC_U64),
    BYI_INTS = BYI_SIGNED_INTS | BYI_UNSIGNED_INTS,
    BYI_SIGNED = BYI_FLOATS | BYI_SIGNED_INTS,
    BYI_NUMERIC = BYI_FLOATS | BYI_INTS,
    BYI_BOOLEAN = BYI_BIT(BYOC_BOOL),
    BYI_STRINGS = BYI_BIT(BYOC_STRING),
    BYI_VALUES = BYI_NUMERIC | BYI_BOOLEAN,
    BYI_INDEX = BYI_BIT(BYOC_I32) | BYI_BIT(BYOC_I64),
    BYI_COMPARABLE = BYI_VALUES | BYI_BIT(BYOC_STRING),
    /* integers of 2 and 4 bits; floats of 4 and 8 bits */
    BYI_NARROW_INTS = BYI_BIT(BYOC_U4) | BYI_BIT(BYOC_I4) | BYI_BIT(BYOC_U2) |
                      BYI_BIT(BYOC_I2),
    BYI_NARROW_FLOATS = BYI_BIT(BYOC_F8E4M3FN) | BYI_BIT(BYOC_F8E4M3FNUZ) |
                        BYI_BIT(BYOC_F8E5M2) | BYI_BIT(BYOC_F8E5M2FNUZ) |
                        BYI_BIT(BYOC_F4E2M1) | BYI_BIT(BYOC_F8E8M0),
    BYI_NARROW = BYI_NARROW_INTS | BYI_NARROW_FLOATS,
    BYI_ANY = BYI_VALUES | BYI_BIT(BYOC_STRING) | BYI_BIT(BYOC_C64) |
              BYI_BIT(BYOC_C128) | BYI_NARROW
};

/* Larger tensors are refused: even one of bytes would take more than 1 TiB. The
 * limit keeps the product of a tensor's dims within int64. */
#define BYI_MAX_ELEMENTS ((int64_t)1 << 40)

/* --- rules.c ------------------------------------------------------------ */

/* Fail with BYOC_ETYPE and "OP: TEXT", as do all the checks below. */
enum byoc_status byi_rule_fail(const struct byi_infer *t, const char *fmt, ...)
    BYI_PRINTF(2, 3);
/* A new symbol. */
int64_t byi_rule_new_symbol(const struct byi_infer *t);
/* Make `type` the result. */
enum byoc_status byi_rule_result(struct byi_infer *t,
                                 const struct byi_type *type);
/* Make a tensor type the result, after checking the limits of rank and size. */
enum byoc_status byi_rule_tensor(struct byi_infer *t, enum byoc_dtype dtype,
                                 uint32_t rank, const int64_t *dims);
/* The type of a tensor in a tuple. */
struct byi_rule_field {
    enum byoc_dtype dtype;
    uint32_t rank;
    const int64_t *dims;
};
/* Make a tuple of n <= BYI_MAX_RANK tensors the result. */
enum byoc_status byi_rule_tensors(struct byi_infer *t, uint32_t n,
                                  const struct byi_rule_field *fields);
/* Make the type of operand 0 the result, but with the element type `dtype`. */
enum byoc_status byi_rule_like(struct byi_infer *t, enum byoc_dtype dtype);

/* In the checks of operand i, `name` is its name in messages. */

/* Check that operand i has one of the element types `mask`. */
enum byoc_status byi_want_dtype(const struct byi_infer *t, uint32_t i,
                                unsigned mask, const char *name);
/* Check that operand i has this rank, or at least this rank. */
enum byoc_status byi_want_rank(const struct byi_infer *t, uint32_t i,
                               uint32_t rank, const char *name);
enum byoc_status byi_want_min_rank(const struct byi_infer *t, uint32_t i,
                                   uint32_t rank, const char *name);
/* Check that operand i has the element type of operand j. */
enum byoc_status byi_want_same_dtype(const struct byi_infer *t, uint32_t i,
                                     uint32_t j, const char *name);
/* Check that operand i holds one element: it has rank 0, or rank 1 and size 1.
 */
enum byoc_status byi_want_scalar(const struct byi_infer *t, uint32_t i,
                                 const char *name);
/* Check that operand i is a vector of `n` elements (< 0: any number), int32 or
 * int64. */
enum byoc_status byi_want_ints(const struct byi_infer *t, uint32_t i, int64_t n,
                               const char *name);
/* Check that operand i is a vector with `n` elements (n may be a symbol) and
 * the element type of operand 0. */
enum byoc_status byi_want_channels(const struct byi_infer *t, uint32_t i,
                                   int64_t n, const char *name);
/* Check that attribute `name` lists exactly n integers in min .. max; *list
 * becomes the attribute's list. */
enum byoc_status byi_want_list(const struct byi_infer *t, const char *name,
                               uint32_t n, int64_t min, int64_t max,
                               const int64_t **list);
/* Check that attribute `name` is one of the words, which are separated by '|'.
 */
enum byoc_status byi_want_word(const struct byi_infer *t, const char *name,
                               const char *words);
/* Check that `axis` is in -rank .. rank-1, and convert it to 0 .. rank-1. */
enum byoc_status byi_want_axis(const struct byi_infer *t, int64_t axis,
                               uint32_t rank, uint32_t *out);
/* Read the axes of attribute `name`, each once, as flags. */
enum byoc_status byi_want_axes(const struct byi_infer *t, const char *name,
                               uint32_t rank, bool flags[BYI_MAX_RANK],
                               uint32_t *n);
/* Read the n axes of a list, each once, as flags; `name` is the list's name in
 * messages. */
enum byoc_status byi_want_axis_list(const struct byi_infer *t, const char *name,
                                    const int64_t *axes, uint32_t n,
                                    uint32_t rank, bool flags[BYI_MAX_RANK]);
/* Read operand 1, a vector of axes of a tensor; *n is their number, from its
 * type. The values are in `axes` if they are known (else *known is false). */
enum byoc_status byi_want_axis_operand(const struct byi_infer *t,
                                       int64_t axes[BYI_MAX_RANK], uint32_t *n,
                                       bool *known);

/* The known value of operand i, or NULL. */
const struct byi_tensor *byi_known_value(const struct byi_infer *t, uint32_t i);
/* Read the value of operand i, an integer scalar or vector, into values[]; *n
 * is the number of its elements. Returns false if the value is unknown or has
 * more than `max` elements. */
bool byi_known_ints(const struct byi_infer *t, uint32_t i, uint32_t max,
                    int64_t *values, uint32_t *n);

/* Whether two dims can be equal. */
bool byi_dims_agree(int64_t a, int64_t b);
/* The more specific of two dims that can be equal: a number rather than a
 * symbol. */
int64_t byi_dim_unify(int64_t a, int64_t b);
/* The sum and the product of two dims. The result is a new symbol if it is
 * unknown, and BYI_MAX_ELEMENTS + 1 if it exceeds BYI_MAX_ELEMENTS;
 * byi_rule_tensor refuses such a dim. */
int64_t byi_dim_add(const struct byi_infer *t, int64_t a, int64_t b);
int64_t byi_dim_mul(const struct byi_infer *t, int64_t a, int64_t b);
/* The product of n dims. */
int64_t byi_dim_product(const struct byi_infer *t, uint32_t n,
                        const int64_t *dims);
/* Broadcast shape a, of rank ra, with shape b, of rank rb, by numpy's rule, and
 * set *rank and dims to the result; dims may be a. */
enum byoc_status byi_dims_broadcast(const struct byi_infer *t, uint32_t ra,
                                    const int64_t *a, uint32_t rb,
                                    const int64_t *b, uint32_t *rank,
                                    int64_t *dims);

/* --- rules_nn.c, rules_matmul.c ------------------------------------------ */

/* The result of nn.conv with n spatial axes, or of nn.matmul, from the dims of
 * the first two operands of any element types. The result has the element type
 * of the first. */
enum byoc_status byi_infer_conv(struct byi_infer *t, uint32_t n);
enum byoc_status byi_infer_matmul(struct byi_infer *t);

/* --- rules_*.c: every rule of the operator table ------------------------ */

#define OP(id, name, min_in, max_in, n_out, kind, cost, layout, types, values, \
           traits, bound, attrs, rule, doc)                                    \
    enum byoc_status byi_rule_##rule(struct byi_infer *t);
#include "ops.def"
#undef OP

#endif
