/* SPDX-License-Identifier: Apache-2.0 */
/* base.h: the types and functions that the compiler and the runtime share,
 * below operators: status, memory, element types, tensors and their types,
 * bounded JSON, files.
 */
#ifndef BYI_BASE_H
#define BYI_BASE_H

#include <assert.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <byoc/runtime.h>

#define BYI_COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline int64_t byi_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t byi_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The number in [low, high] that is nearest to x. */
static inline int64_t byi_clamp(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

/* Whether c is an ASCII digit, in any locale. */
static inline bool byi_is_digit(int c)
{
    return c >= '0' && c <= '9';
}

/* Whether c is an ASCII letter, in any locale. */
static inline bool byi_is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t byi_ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* The axis counted from the front; a negative `axis` counts from the end. */
static inline uint32_t byi_axis(int64_t axis, uint32_t rank)
{
    int64_t at = axis < 0 ? axis + (int64_t)rank : axis;
    assert(at >= 0 && (at < (int64_t)rank || rank == 0));
    return (uint32_t)at;
}

/* The comparison for qsort() that sorts doubles in ascending order. */
static inline int byi_compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether `id` is one of n ids. */
static inline bool byi_has_id(const uint32_t *ids, uint32_t n, uint32_t id)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

/* Bytes of a struct up to and including its member `last`. */
#define BYI_UP_TO(type, last) (offsetof(type, last) + sizeof(((type *)0)->last))
#define BYI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Format the arguments after `fmt`, the last named parameter, into the array
 * `text`. */
#define BYI_FORMAT(text, fmt)                                                  \
    do {                                                                       \
        va_list args;                                                          \
        va_start(args, fmt);                                                   \
        vsnprintf(text, sizeof text, fmt, args);                               \
        va_end(args);                                                          \
    } while (0)

enum {
    BYI_MAX_RANK = 12,  /* oneDNN's limit; models use fewer */
    BYI_ALIGN = 64,     /* bytes, of every buffer and constant */
    BYI_MAX_ARGS = 4096 /* operands of one node */
};

/* Bytes rounded up to a multiple of BYI_ALIGN. */
static inline uint64_t byi_align_bytes(uint64_t bytes)
{
    return (bytes + BYI_ALIGN - 1) / BYI_ALIGN * BYI_ALIGN;
}

/* Reserve `bytes`, rounded up to BYI_ALIGN, after the first *used bytes of
 * `base`, which is aligned to BYI_ALIGN, and add them to *used. Returns the
 * address of the reserved bytes; NULL if `base` is NULL, for a caller that
 * computes only the size. */
static inline void *byi_take_bytes(char *base, uint64_t *used, uint64_t bytes)
{
    void *at = base ? base + *used : NULL;
    *used += byi_align_bytes(bytes);
    return at;
}

/* --- base.c: status ---------------------------------------------------- */

/* Record a failure in err (may be NULL) and return `status`. The message is cut
 * to the size of err->text, and its control characters become '?'. */
enum byoc_status byi_fail(struct byoc_error *err, enum byoc_status status,
                          const char *fmt, ...) BYI_PRINTF(3, 4);
/* The status of a failed system call by its errno: BYOC_ENOMEM or BYOC_EIO. */
enum byoc_status byi_io_status(int error);
/* Record that `bytes` bytes of `what` cannot be allocated; returns BYOC_ENOMEM.
 */
enum byoc_status byi_fail_memory(struct byoc_error *err, uint64_t bytes,
                                 const char *what);
/* Put "PREFIX: " before the text that err already holds. Returns err's status,
 * or the status of this thread's last failure if err is NULL. */
enum byoc_status byi_prefix(struct byoc_error *err, const char *fmt, ...)
    BYI_PRINTF(2, 3);

/* --- params.c: structs of callers, of any size ---------------------------- */

/* The sizes of a struct with the member struct_size, in this build. */
struct byi_params_size {
    const char *name;
    uint32_t bytes;  /* the size of the whole struct */
    uint32_t first;  /* its size before struct_size was introduced */
    uint32_t offset; /* of struct_size */
};
/* `last`: the last member before struct_size was introduced. */
#define BYI_PARAMS_SIZE(type, last)                                            \
    &(const struct byi_params_size)                                            \
    {                                                                          \
#type, (uint32_t)sizeof(struct type),                                  \
            (uint32_t)BYI_UP_TO(struct type, last),                            \
            (uint32_t)offsetof(struct type, struct_size)                       \
    }
/* Set *params from a caller's struct, which may be smaller or larger than the
 * struct of this build. Members after its end become zero; all do if `input` is
 * NULL. The struct_size of *params becomes that of this build. Errors:
 * BYOC_EINVAL (a size that no version had, or a member that this build does not
 * have is set). */
enum byoc_status byi_params_read(void *params,
                                 const struct byi_params_size *known,
                                 const void *input, struct byoc_error *err);
/* Fails with BYOC_EINVAL if a reserved member is not 0. */
enum byoc_status byi_reserved_check(uint32_t value, struct byoc_error *err);
/* Check the value of an enum, the member `name` of a struct. Errors:
 * BYOC_EINVAL, the value is above `last`. */
enum byoc_status byi_enum_check(const char *name, uint32_t value, uint32_t last,
                                struct byoc_error *err);
/* byi_params_read for byoc_load_params; also checks the members' values.
 * Errors: BYOC_EINVAL. */
enum byoc_status byi_load_params_read(struct byoc_load_params *params,
                                      const struct byoc_load_params *input,
                                      struct byoc_error *err);

/* --- decimal.c: numbers as text ------------------------------------------- */

/* strtod in the "C" locale, independent of the process's locale. */
double byi_strtod(const char *text, char **end);
/* The shortest decimal that reads back as value, or as (float)value if
 * `single`, in the "C" locale. "inf", "-inf" or "nan" if it is not finite.
 * Numbers below 1e15 have all digits before the point: 200, not 2e+02. Returns
 * buf. */
char *byi_float_text(char buf[32], double value, bool single);
/* Write a finite number with the fewest digits, of at least `least`, that read
 * back as in byi_float_text(), in the form of printf's %g. Returns the length.
 */
size_t byi_decimal_text(char text[32], double value, bool single, int least);

/* A number for a message, as a user would write it: 0.1, even if it is stored
 * as a float. Valid in the enclosing block. */
#define BYI_FLOAT_TEXT(value)                                                  \
    byi_float_text((char[32]){0}, value, byi_is_single(value))
/* Whether a float can represent `value` exactly. */
bool byi_is_single(double value);

/* Return from the function if expr fails. */
#define BYI_TRY(expr)                                                          \
    do {                                                                       \
        enum byoc_status byi_status_ = (expr);                                 \
        if (byi_status_ != BYOC_OK)                                            \
            return byi_status_;                                                \
    } while (0)

#define byi_unreachable() __builtin_unreachable()

/* --- arena.c: memory --------------------------------------------------- */

/* Memory that is freed all at once. It is zeroed and aligned to 16 bytes. If an
 * allocation fails, byi_oom is called, which jumps to the innermost guard
 * (guard.h); no function of an arena returns NULL. Threads: one at a time for
 * each arena. */
struct byi_arena;
struct byi_arena *byi_arena_new(void);
/* Free the arena and set *arena to NULL; *arena may be NULL. */
void byi_arena_free(struct byi_arena **arena);
/* Free everything, as byi_arena_free does, but keep memory for reuse: at most
 * the largest amount that was in use at once. Takes time proportional to the
 * memory used. */
void byi_arena_reset(struct byi_arena *arena);
/* The bytes of all blocks of the arena, spare ones included. */
size_t byi_arena_bytes(const struct byi_arena *arena);
void *byi_arena_alloc(struct byi_arena *arena, size_t bytes);
void *byi_arena_calloc(struct byi_arena *arena, size_t n, size_t size);
/* Memory for the elements of tensors, aligned to BYI_ALIGN. */
void *byi_arena_data(struct byi_arena *arena, uint64_t bytes);
void *byi_arena_copy(struct byi_arena *arena, const void *src, size_t bytes);
/* Copy the array `at` of *cap elements of `size` bytes into an array with twice
 * the capacity (32 if *cap is 0). Sets *cap to the new capacity. The new
 * elements are zero. */
void *byi_arena_grow(struct byi_arena *arena, const void *at, uint32_t *cap,
                     size_t size);
/* Strings in the arena, with a NUL: a copy of `text`, a copy of its first n
 * bytes, and formatted text. */
char *byi_arena_str(struct byi_arena *arena, const char *text);
char *byi_arena_strn(struct byi_arena *arena, const char *text, size_t n);
char *byi_arena_printf(struct byi_arena *arena, const char *fmt, ...)
    BYI_PRINTF(2, 3);
/* Let byi_arena_free and byi_arena_reset call fn(arg), for a mapping or handle
 * that must be valid as long as the arena. The last registered is called first.
 * If an allocation fails, fn(arg) is called at once, before the jump to the
 * guard.
 */
void byi_arena_defer(struct byi_arena *arena, void (*fn)(void *), void *arg);

/* Allocate memory aligned to BYI_ALIGN, with undefined content; NULL if the
 * allocation fails. byi_release frees it; byi_release(NULL) does nothing. */
void *byi_acquire(uint64_t bytes);
void byi_release(void *memory);
/* calloc() and realloc() of n elements of `size` bytes, also for 0 bytes; NULL
 * if the allocation fails or n * size overflows. Free the memory with free().
 */
void *byi_alloc(size_t n, size_t size); /* zeroed */
void *byi_realloc(void *old, size_t n, size_t size);
/* Called if an allocation fails; does not return. The default jumps to the
 * innermost guard, or aborts without one. */
extern void (*byi_oom)(size_t bytes);

/* An array on the heap that grows; a zeroed struct is an empty one. BYI_PUSH
 * appends an item, byi_vec_free(vec.at) frees the array. If an allocation
 * fails, control jumps to the innermost guard (guard.h). */
#define BYI_VEC(T)                                                             \
    struct {                                                                   \
        T *at;                                                                 \
        uint32_t n, cap;                                                       \
    }
/* Make room for at least `need` elements of `size` bytes: *at and *cap change.
 */
void byi_vec_grow(void **at, uint32_t *cap, uint32_t need, size_t size);
#define BYI_PUSH(vec, item)                                                    \
    do {                                                                       \
        if ((vec)->n == (vec)->cap)                                            \
            byi_vec_grow((void **)&(vec)->at, &(vec)->cap, (vec)->n + 1,       \
                         sizeof *(vec)->at);                                   \
        (vec)->at[(vec)->n++] = (item);                                        \
    } while (0)
void byi_vec_free(void *at);

/* Text on the heap that grows; a zeroed struct is an empty one. It is
 * NUL-terminated once something was added. If an allocation fails, control
 * jumps to the innermost guard (guard.h). byi_text_free frees and empties it.
 */
struct byi_text {
    char *at;
    size_t n, cap;
};
/* Append n bytes, formatted text, a string, or a number in decimal. */
void byi_text_add(struct byi_text *text, const char *bytes, size_t n);
void byi_text_addf(struct byi_text *text, const char *fmt, ...)
    BYI_PRINTF(2, 3);
void byi_text_put(struct byi_text *text, const char *string);
void byi_text_int(struct byi_text *text, int64_t value);
void byi_text_free(struct byi_text *text);
/* The ending of a noun after the number n: "" if n is 1, otherwise "s". */
static inline const char *byi_plural(double n)
{
    return n == 1 ? "" : "s";
}

/* --- dtype.c ------------------------------------------------------------ */

/* Bytes of an element in memory: for a string, the size of its pointer; 0 for
 * BYOC_NONE and unknown types. */
uint32_t byi_dtype_bytes(enum byoc_dtype dtype);
/* The dtype of that name ("float32"), or BYOC_NONE. */
enum byoc_dtype byi_dtype_of_name(const char *name, size_t n);
/* The dtype of a DLPack type, or BYOC_NONE. Never bool, which has the DLPack
 * type of uint8. */
enum byoc_dtype byi_dtype_of_dlpack(DLDataType type);
/* These return false for the narrow types (see narrow.c). */
bool byi_dtype_is_float(enum byoc_dtype dtype);  /* f16, bf16, f32, f64  */
bool byi_dtype_is_half(enum byoc_dtype dtype);   /* f16, bf16            */
bool byi_dtype_is_wide(enum byoc_dtype dtype);   /* f32, f64             */
bool byi_dtype_is_int(enum byoc_dtype dtype);    /* signed and unsigned  */
bool byi_dtype_is_signed(enum byoc_dtype dtype); /* floats included      */
/* Set the least and the largest value of an integer type, narrow ones included,
 * whose values int64_t can hold. Returns false for other types. */
bool byi_dtype_range(enum byoc_dtype dtype, int64_t *min, int64_t *max);
float byi_f16_to_f32(uint16_t bits);
uint16_t byi_f32_to_f16(float value); /* nearest even */
float byi_bf16_to_f32(uint16_t bits);
uint16_t byi_f32_to_bf16(float value); /* nearest even */
/* The same for `dtype`, float16 or bfloat16. */
float byi_half_to_f32(uint16_t bits, enum byoc_dtype dtype);
uint16_t byi_f32_to_half(float value, enum byoc_dtype dtype);
/* Returns element i of float32 numbers that may be unaligned, as in a mapped
 * model file. */
static inline float byi_float_at(const void *at, int64_t i)
{
    float x;
    memcpy(&x, (const char *)at + i * (int64_t)sizeof x, sizeof x);
    return x;
}

/* --- narrow.c ------------------------------------------------------------- */

enum { BYI_LAST_DTYPE = BYOC_I2 };

/* The narrow types are the float8 and float4 types and the integers of 2 and 4
 * bits. Each element takes a byte in memory. */

/* The number of bits of a narrow type; 0 for other types. */
uint32_t byi_narrow_bits(enum byoc_dtype dtype);
/* Whether the type is a narrow float. */
bool byi_narrow_is_float(enum byoc_dtype dtype);
/* The value of the element `code` of a narrow float. */
float byi_narrow_to_f32(enum byoc_dtype dtype, uint8_t code);
/* Convert `value` to an element: a float rounds to the nearest, ties to even,
 * and float8e8m0 as `mode` says; an integer keeps the low bits. A float that is
 * too large becomes the largest number if `saturate` or if the type is float4,
 * otherwise infinity or NaN. */
enum byi_rounding { BYI_ROUND_NEAREST, BYI_ROUND_UP, BYI_ROUND_DOWN };
uint8_t byi_f32_to_narrow(enum byoc_dtype dtype, float value, bool saturate,
                          enum byi_rounding mode);
/* The number of bytes into which ONNX packs n elements of a narrow type, the
 * first element in the low bits of the first byte. */
uint64_t byi_narrow_packed_bytes(enum byoc_dtype dtype, uint64_t n);
/* Unpack n elements into one byte each. */
void byi_narrow_unpack(enum byoc_dtype dtype, const uint8_t *packed, uint64_t n,
                       uint8_t *codes);

/* --- string.c ------------------------------------------------------------- */

/* Append n strings to `out`, one after the other, each with its NUL. */
void byi_strings_pack(const char *const *at, int64_t n, struct byi_text *out);
/* The inverse: set at[0..n-1] to the strings, which point into `bytes`. Returns
 * false if `bytes` are not exactly n strings. */
bool byi_strings_unpack(const char *bytes, uint64_t n_bytes, int64_t n,
                        const char **at);

enum byi_case { BYI_CASE_KEEP, BYI_CASE_LOWER, BYI_CASE_UPPER };

/* The locale `name` for the case of letters; C.UTF-8 if `name` is "" or the
 * system does not have it. 0 if the system has neither: letters then keep their
 * case. The caller calls freelocale. */
locale_t byi_string_locale(const char *name);
/* Write `text` (UTF-8; other bytes are copied) with its letters in another
 * case, and a NUL, to `out`, unless that is NULL. Returns the length without
 * the NUL. */
size_t byi_string_case(const char *text, enum byi_case to, locale_t locale,
                       char *out);
/* The next part of a string that is split at delimiters, or at white space if
 * `delimiter` is "". The part starts at *from, which is set to the start of the
 * part after it, or to NULL. `last`: the part is the rest of the string.
 * Returns NULL if there is no part. */
const char *byi_string_next_part(const char **from, const char *delimiter,
                                 bool last, size_t *length);
/* Whether the strings are equal or, with any_case, equal except for case. */
bool byi_string_equal(const char *a, const char *b, bool any_case,
                      locale_t locale);

/* --- tensor.c ----------------------------------------------------------- */

/* A dense row-major tensor; data is not owned. Strings are an array of
 * `const char *`. Rank 0 is a scalar with one element. */
struct byi_tensor {
    void *data;
    enum byoc_dtype dtype;
    uint32_t rank;
    int64_t dims[BYI_MAX_RANK];
};

/* The number of elements in the axes [begin, end) of a tensor whose dims have
 * been checked. */
static inline int64_t byi_span(const struct byi_tensor *t, uint32_t begin,
                               uint32_t end)
{
    int64_t n = 1;
    for (uint32_t i = begin; i < end; i++)
        n *= t->dims[i];
    return n;
}

/* The same in all axes. */
static inline int64_t byi_count(const struct byi_tensor *t)
{
    return byi_span(t, 0, t->rank);
}

/* Product of dims; 1 for rank 0; -1 if it overflows or a dim is negative. */
int64_t byi_elements(uint32_t rank, const int64_t *dims);
/* Bytes of a dense tensor; UINT64_MAX if byi_elements is -1. */
uint64_t byi_tensor_bytes(const struct byi_tensor *t);
/* Whether the dims `a`, of rank ra, equal the dims `b`, of rank rb. */
bool byi_dims_equal(uint32_t ra, const int64_t *a, uint32_t rb,
                    const int64_t *b);
/* Element i as int64 or double, for any real dtype and bool. byi_tensor_int
 * truncates and saturates floats. */
int64_t byi_tensor_int(const struct byi_tensor *t, int64_t i);
double byi_tensor_float(const struct byi_tensor *t, int64_t i);
/* Set element i of a tensor of any real dtype or bool. Floats are rounded to
 * nearest even, integers are truncated and saturated, and a bool is true if
 * `value` differs from 0. */
void byi_tensor_set(struct byi_tensor *t, int64_t i, double value);
/* Set elements [from, from + n) of `out` to those of x times `by`. The two
 * tensors have the same float type; float32 is rounded once. */
void byi_tensor_scale(const struct byi_tensor *x, struct byi_tensor *out,
                      int64_t from, int64_t n, double by);
/* The tensor for DLPack, which borrows its data and dims. */
DLTensor byi_tensor_dlpack(struct byi_tensor *t);
/* "(1, 3, 224, 224)", cut to n bytes, for messages. Returns buf. */
char *byi_dims_text(char *buf, size_t n, uint32_t rank, const int64_t *dims);
/* The same with symbols, "(batch, 3, ?)": names[i] is the name of dim i if that
 * is symbolic, or NULL for "?"; `names` may be NULL. */
char *byi_shape_text(char *buf, size_t n, uint32_t rank, const int64_t *dims,
                     const char *const *names);

/* --- type.c ------------------------------------------------------------- */

/* A dim is a number >= 0, or a symbol: -1 - its index in the symbol table. */
#define BYI_IS_SYMBOL(dim) ((dim) < 0)

/* In the element type of a list: a dim that may differ between the elements. */
#define BYI_ANY_DIM INT64_MIN

enum byi_type_kind {
    BYI_TENSOR,
    BYI_TUPLE,
    BYI_FUNC,
    BYI_SEQ,      /* a list of values of one type, fields[0] */
    BYI_OPTIONAL, /* a value of type fields[0], or none      */
    /* only as fields[0] of a list: tensors of dtype of any rank */
    BYI_ANY_TENSOR,
    /* only as fields[0] of a list: the list is empty, and only its dtype is
     * known */
    BYI_NO_TENSOR
};

/* Immutable; lives in an arena; compare with byi_type_equal. */
struct byi_type {
    enum byi_type_kind kind;
    enum byoc_dtype dtype; /* tensor             */
    uint32_t rank;         /* tensor             */
    const int64_t *dims;   /* tensor             */
    uint32_t n_fields;     /* tuple: fields; function: params; list: 1 */
    const struct byi_type *const *fields;
    const struct byi_type *result; /* function */
};

/* New types in the arena; dims, fields and params are copied. */
const struct byi_type *byi_type_tensor(struct byi_arena *arena,
                                       enum byoc_dtype dtype, uint32_t rank,
                                       const int64_t *dims);
const struct byi_type *byi_type_tuple(struct byi_arena *arena, uint32_t n,
                                      const struct byi_type *const *fields);
const struct byi_type *byi_type_func(struct byi_arena *arena, uint32_t n,
                                     const struct byi_type *const *params,
                                     const struct byi_type *result);
/* The type of a sequence or optional (`kind`) of `element`, which is a
 * sequence, BYI_ANY_TENSOR, BYI_NO_TENSOR, or a tensor type, whose symbols
 * become BYI_ANY_DIM. */
const struct byi_type *byi_type_list(struct byi_arena *arena,
                                     enum byi_type_kind kind,
                                     const struct byi_type *element);
/* The type BYI_ANY_TENSOR or BYI_NO_TENSOR of a dtype. */
const struct byi_type *byi_type_of_any(struct byi_arena *arena,
                                       enum byi_type_kind kind,
                                       enum byoc_dtype dtype);
/* Whether the type is a sequence or an optional; a "list" is either of them. */
static inline bool byi_type_is_list(const struct byi_type *type)
{
    return type->kind == BYI_SEQ || type->kind == BYI_OPTIONAL;
}
/* "a sequence" and so on, for messages. */
const char *byi_type_kind_text(enum byi_type_kind kind);
/* "float32 (1, ?)" or "a sequence of float32 (1, ?)" in buf, cut to n bytes;
 * for tuples and functions, the static text of their kind. For messages. */
const char *byi_type_text(char *buf, size_t n, const struct byi_type *type);
/* Whether values of sequence or optional `from` are values of `to`. */
bool byi_type_accepts(const struct byi_type *to, const struct byi_type *from);
/* The most specific sequence or optional that accepts both types; NULL if no
 * type accepts both, or if they nest deeper than 16. */
const struct byi_type *byi_type_join(struct byi_arena *arena,
                                     const struct byi_type *a,
                                     const struct byi_type *b);
bool byi_type_equal(const struct byi_type *a, const struct byi_type *b);
/* Whether both are tensor types that are equal except for dims that are symbols
 * in `of`. */
bool byi_type_refines(const struct byi_type *type, const struct byi_type *of);
/* Whether both are tensor types that are equal except for dims that are symbols
 * in either. */
bool byi_type_may_equal(const struct byi_type *a, const struct byi_type *b);
/* Whether the tensor has this tensor type, in which a symbol is any size. */
bool byi_tensor_fits(const struct byi_tensor *t, const struct byi_type *type);
/* A tensor of this tensor type, without data. */
struct byi_tensor byi_tensor_of(const struct byi_type *type);
/* Whether it is a tensor type without symbols. */
bool byi_type_is_static(const struct byi_type *type);
/* Whether it is a static tensor type, or a tuple of static tensor types. */
bool byi_type_has_static_sizes(const struct byi_type *type);
/* tensor.c: bytes of a static tensor type; UINT64_MAX otherwise. */
uint64_t byi_type_bytes(const struct byi_type *type);

/* --- json.c: cJSON with bounds and paths -------------------------------- */

struct cJSON;

/* A value being read, and its path, such as "nodes[3].attrs.strides". The tree
 * owns the value. */
struct byi_json {
    const struct cJSON *at; /* NULL: an absent member */
    char path[160];
};

/* Parse text of at most max_bytes; the tree is freed with byi_json_free.
 * Errors: BYOC_EPARSE (malformed, or text after the value), BYOC_ELIMIT (too
 * long, or nesting above 64), BYOC_ENOMEM. */
enum byoc_status byi_json_parse(const char *text, size_t n, size_t max_bytes,
                                struct cJSON **root, struct byoc_error *err);
/* Free the tree and set *root to NULL; *root may be NULL. */
void byi_json_free(struct cJSON **root);
/* The tree's root as a value, with an empty path. */
struct byi_json byi_json_root(const struct cJSON *root);

/* The elements of a long array, as text: a tree of them would take ten times
 * the memory. */
struct byi_json_items {
    const char *key;  /* of the array, as the caller passed it */
    const char *text; /* the elements and their commas, without a NUL */
    size_t bytes;     /* of `text` */
    uint32_t n;       /* elements */
};

/* Parse an object without the elements of the arrays keys[0], and keys[1] if it
 * is not NULL. The tree has empty arrays there, and `items` refers to `text`.
 * items[k].n is 0 if the object has no array keys[k]. If `keys` is NULL, the
 * tree has everything. Errors: as for byi_json_parse; if the allocation of the
 * shortened text fails, control jumps to the innermost guard. */
enum byoc_status byi_json_parse_around(const char *text, size_t n,
                                       size_t max_bytes,
                                       const char *const keys[2],
                                       struct byi_json_items items[2],
                                       struct cJSON **root,
                                       struct byoc_error *err);
/* Set *n to the number of elements of the object's member `key`, which
 * byi_json_parse_around stored in `items`. Errors: BYOC_ELIMIT (above max), and
 * BYOC_EPARSE. */
enum byoc_status byi_json_count(const struct byi_json *object,
                                const struct byi_json_items *items,
                                const char *key, uint32_t max, uint32_t *n,
                                struct byoc_error *err);
/* Read element `index`. `inner` has the elements of the item's own long arrays
 * (see byi_json_each). `item` and `inner` are valid during the call. A status
 * other than BYOC_OK ends byi_json_each, which returns it. */
typedef enum byoc_status byi_json_read(void *ctx, uint32_t index,
                                       const struct byi_json *item,
                                       const struct byi_json_items inner[2]);
/* Parse each element of `items`, an array of `object`, with
 * byi_json_parse_around, and read it. `keys` are those of the long arrays in an
 * element; NULL: parse elements completely. Errors: as for
 * byi_json_parse_around, with the element's path, and those of `read`. */
enum byoc_status byi_json_each(const struct byi_json *object,
                               const struct byi_json_items *items,
                               const char *const keys[2], byi_json_read *read,
                               void *ctx, struct byoc_error *err);

/* The next functions read a JSON value; the tree owns the result. Errors:
 * BYOC_EPARSE, with the path, the value found and the expected kind. */

/* Member `key` of an object. */
enum byoc_status byi_json_get(const struct byi_json *object, const char *key,
                              struct byi_json *out, struct byoc_error *err);
/* The same, but out->at is NULL if the member is absent. */
enum byoc_status byi_json_opt(const struct byi_json *object, const char *key,
                              struct byi_json *out, struct byoc_error *err);
/* A boolean member; false if it is absent. */
enum byoc_status byi_json_flag(const struct byi_json *object, const char *key,
                               bool *out, struct byoc_error *err);
/* An integer member from min to max; a string member, which the tree owns. */
enum byoc_status byi_json_int(const struct byi_json *object, const char *key,
                              int64_t min, int64_t max, int64_t *out,
                              struct byoc_error *err);
enum byoc_status byi_json_string(const struct byi_json *object, const char *key,
                                 const char **out, struct byoc_error *err);
/* Read a member that is an array of at most max items; *n is their number.
 * Errors: also BYOC_ELIMIT, more items. */
enum byoc_status byi_json_array(const struct byi_json *object, const char *key,
                                uint32_t max, struct byi_json *out, uint32_t *n,
                                struct byoc_error *err);
/* Walk an array in linear time: start with *item = {0} and index 0, and count
 * `index` up, which becomes part of the item's path. Returns false at the end.
 */
bool byi_json_next(const struct byi_json *array, struct byi_json *item,
                   uint32_t index);
/* Read the item itself as a number or a string. */
enum byoc_status byi_json_as_int(const struct byi_json *item, int64_t min,
                                 int64_t max, int64_t *out,
                                 struct byoc_error *err);
enum byoc_status byi_json_as_string(const struct byi_json *item,
                                    const char **out, struct byoc_error *err);
/* Fail with the item's path, the kind of value found there, and the expected
 * one. */
enum byoc_status byi_json_mismatch(const struct byi_json *item,
                                   const char *expected,
                                   struct byoc_error *err);
/* Member `at` of `object`, with its path. */
struct byi_json byi_json_member(const struct byi_json *object,
                                const struct cJSON *at);
/* The item's path, for messages: "the document" for the root. */
const char *byi_json_path(const struct byi_json *item);
/* Fail if the object has a member that is not one of keys[0..n-1], or has one
 * of them twice. n <= 64. */
enum byoc_status byi_json_only(const struct byi_json *object,
                               const char *const *keys, uint32_t n,
                               struct byoc_error *err);
/* Check the members "format" and "version" of an artifact's document. Errors:
 * BYOC_EPARSE; BYOC_EINCOMPATIBLE, another version. */
enum byoc_status byi_json_version(const struct byi_json *root,
                                  const char *format, int version,
                                  struct byoc_error *err);
/* json_print.c: append the tree and a newline; equal trees give equal text. */
void byi_json_print(const struct cJSON *root, struct byi_text *out);
/* byi_json_print for a member at this depth, without its key and without a
 * newline, for documents that are written piece by piece. */
void byi_json_print_item(const struct cJSON *item, uint32_t depth,
                         struct byi_text *out);
/* The same on one line. */
void byi_json_print_line(const struct cJSON *item, struct byi_text *out);
/* quote.c: add `text` as a JSON string, quotes included. */
void byi_json_quote(struct byi_text *out, const char *text);
/* Add n bytes as UTF-8: U+FFFD for each that belongs to no character. */
void byi_utf8_add(struct byi_text *out, const char *text, size_t n);
/* The number of bytes at the end of `text` that are an incomplete character. */
size_t byi_utf8_partial(const char *text, size_t n);

enum byi_printable {
    /* escapes are \xHH for each byte; newlines and tabs are kept */
    BYI_PRINTABLE_TEXT,
    BYI_PRINTABLE_LINE, /* newlines and tabs are escaped, too */
    BYI_PRINTABLE_JSON  /* escapes are \uHHHH; newlines and tabs are kept */
};
/* Add n bytes for people to read: control characters, bytes that are not
 * UTF-8, and characters that reorder or hide text become escapes. */
void byi_printable_add(struct byi_text *out, const char *text, size_t n,
                       enum byi_printable how);

/* --- nearest.c ---------------------------------------------------------- */

/* The Levenshtein distance of two names: the least number of bytes to insert,
 * delete or replace. Returns `limit` if the distance is at least `limit`, or if
 * a name has more than 128 bytes. */
uint32_t byi_edit_distance(const char *a, const char *b, bool ignores_case,
                           uint32_t limit);

/* The name nearest to `name` by Levenshtein distance, at most 2, or 1 if `name`
 * has fewer than 3 bytes; NULL if all are farther. */
const char *byi_nearest(const char *name, const char *const *names, uint32_t n);

/* --- place.c ------------------------------------------------------------ */

/* The lifetime of a value: it is live from step `first` to step `last`. */
struct byi_lifetime {
    uint32_t first, last;
    uint64_t bytes;
    uint64_t at; /* out: its offset, a multiple of BYI_ALIGN */
};
/* Choose offsets for n values, whose lifetimes are ascending by `first`. Values
 * that are live at the same time do not overlap. Rounds their sizes up to
 * BYI_ALIGN, and returns the bytes that all values together need. */
uint64_t byi_assign_offsets(struct byi_lifetime *lifetimes, uint32_t n);

/* --- hash.c, sha256.c --------------------------------------------------- */

/* SHA-256 (FIPS 180-4): init once, add any number of times, then hex once,
 * which writes 64 lower-case hex digits and a NUL. */
struct byi_sha256 {
    uint32_t h[8];
    uint64_t n;        /* bytes added */
    uint8_t block[64]; /* the last n % 64 bytes, not yet hashed */
};
void byi_sha256_init(struct byi_sha256 *s);
void byi_sha256_add(struct byi_sha256 *s, const void *data, size_t n);
void byi_sha256_hex(struct byi_sha256 *s, char hex[65]);
/* The three functions in one call, for n bytes. */
void byi_sha256_hex_of(const void *data, size_t n, char hex[65]);
/* A fast 64-bit hash for tables in memory. Not for files: its results depend on
 * the machine's byte order. */
uint64_t byi_hash(uint64_t seed, const void *data, size_t n);
uint64_t byi_hash_text(const char *text); /* with seed 0 */

/* --- file.c ------------------------------------------------------------- */

/* Whether the path ends in `suffix`. */
bool byi_path_ends_in(const char *path, const char *suffix);

/* Map a regular file for reading; *data is NULL if it is empty. Unmap with
 * byi_unmap. Errors: BYOC_EIO, BYOC_ENOMEM. */
enum byoc_status byi_map_file(const char *path, const void **data, size_t *n,
                              struct byoc_error *err);
void byi_unmap(const void *data, size_t n);
/* The destination of an output. */
struct byi_destination {
    char *path; /* of the file to create or replace; links are resolved */
    /* the output goes to a character device, FIFO or standard stream, not to a
     * new file that is renamed */
    bool written_directly;
    int fd;        /* write to this descriptor; -1: to `path` */
    unsigned mode; /* of the existing file; 0: none */
};
/* Find where to write an output for `path`. Errors: BYOC_EIO, the path is
 * something that must not be overwritten: a folder, a block device, a socket or
 * a dangling link; BYOC_ENOMEM. The caller frees *destination with
 * byi_destination_free.
 */
enum byoc_status byi_destination_find(const char *path,
                                      struct byi_destination *destination,
                                      struct byoc_error *err);
void byi_destination_free(struct byi_destination *destination);

/* A file that is written under another name, and renamed into place by
 * byi_file_commit or removed by byi_file_abort. Other programs never see a
 * half-written file, and a renamed one has reached the disk. Character devices,
 * FIFOs and standard streams are written directly. byi_file_commit and
 * byi_file_abort free *file, also on errors. */
struct byi_file {
    FILE *stream;
    struct byi_file_resources *resources; /* private to file.c */
};
/* Errors: BYOC_EIO, BYOC_ENOMEM. */
enum byoc_status byi_file_create(const char *path, struct byi_file *file,
                                 struct byoc_error *err);
/* Errors: BYOC_EIO, also if an earlier write to file->stream failed. */
enum byoc_status byi_file_commit(struct byi_file *file, struct byoc_error *err);
void byi_file_abort(struct byi_file *file);
/* Create the folder unless it exists. Errors: BYOC_EIO. */
enum byoc_status byi_folder_create(const char *path, struct byoc_error *err);
/* Create a file, write the n bytes and commit it. Errors: BYOC_EIO,
 * BYOC_ENOMEM. */
enum byoc_status byi_file_write(const char *path, const void *data, size_t n,
                                struct byoc_error *err);
/* Like byi_file_commit, for a file that was created next to the destination. It
 * is renamed, or copied if the destination is a device, FIFO or standard
 * stream. The caller removes `file` unless it was renamed. Errors: BYOC_EIO,
 * BYOC_ENOMEM.
 */
enum byoc_status byi_file_place(const char *file,
                                const struct byi_destination *destination,
                                struct byoc_error *err);

#endif
