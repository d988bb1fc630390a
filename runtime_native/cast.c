/* SPDX-License-Identifier: Apache-2.0 */
/* cast.c: casts between all numeric types and bool, and to and from strings.
 * Integers wrap. A float is truncated to 64 bits, of which an integer type
 * keeps the low bits. Values outside of int64 (for uint64 also outside of
 * uint64), infinities and NaN become INT64_MIN first. Common CPUs do the same;
 * here it is done without undefined behaviour. A float becomes a string with
 * the least precision, from 6 digits on, that reads back as the same number.
 * Types of 2, 4 and 8 bits (narrow.c) go through float32. */
#include <errno.h>
#include <locale.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernel.h"

/* elements that are cast at a time: through float32, and directly */
enum { BLOCK = 512, DIRECT_BLOCK = 16384 };

typedef void (*loop_fn)(const void *x, void *y, int64_t n);

/* --- numbers ------------------------------------------------------------ */

#if defined(__x86_64__)
/* The instruction gives INT64_MIN for values that do not fit. */
static inline int64_t double_to_int64(double v)
{
    return _mm_cvttsd_si64(_mm_set_sd(v));
}

static inline int64_t float_to_int64(float v)
{
    return _mm_cvttss_si64(_mm_set_ss(v));
}
#else
static inline int64_t double_to_int64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

static inline int64_t float_to_int64(float v)
{
    return double_to_int64((double)v);
}
#endif
#define TO_INT64(v)                                                            \
    _Generic((v), float : float_to_int64, double : double_to_int64)(v)

static inline uint64_t to_uint64(double v)
{
    return v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v
                                     : (uint64_t)double_to_int64(v);
}

#define LOOP(from, from_type, to, to_type, convert)                            \
    static void from##_to_##to(const void *vx, void *vy, int64_t n)            \
    {                                                                          \
        const from_type *x = vx;                                               \
        to_type *y = vy;                                                       \
        for (int64_t i = 0; i < n; i++)                                        \
            y[i] = convert;                                                    \
    }

/* Convert floats with the loops of struct byi_simd; one by one if a number is
 * too large for them. */
#define FROM_FLOAT_FAST(from, from_type, to, to_type, convert)                 \
    static void from##_to_##to(const void *vx, void *vy, int64_t n)            \
    {                                                                          \
        const from_type *x = vx;                                               \
        to_type *y = vy;                                                       \
        bool (*const convert_all)(const void *, void *, int64_t) =             \
            byi_simd()->to_int[BYOC_##from == BYOC_F64][BYOC_##to];            \
        if (convert_all && convert_all(x, y, n))                               \
            return;                                                            \
        for (int64_t i = 0; i < n; i++)                                        \
            y[i] = convert;                                                    \
    }
#define TO_INTS(id, type)                                                      \
    FROM_FLOAT_FAST(id, type, U8, uint8_t, (uint8_t)TO_INT64(x[i]))            \
    FROM_FLOAT_FAST(id, type, I8, int8_t, (int8_t)TO_INT64(x[i]))              \
    FROM_FLOAT_FAST(id, type, U16, uint16_t, (uint16_t)TO_INT64(x[i]))         \
    FROM_FLOAT_FAST(id, type, I16, int16_t, (int16_t)TO_INT64(x[i]))           \
    FROM_FLOAT_FAST(id, type, U32, uint32_t, (uint32_t)TO_INT64(x[i]))         \
    FROM_FLOAT_FAST(id, type, I32, int32_t, (int32_t)TO_INT64(x[i]))           \
    FROM_FLOAT_FAST(id, type, BOOL, uint8_t, x[i] != 0)
BYI_EACH_FLOAT(TO_INTS)

#define FROM_FLOAT(id, type)                                                   \
    LOOP(id, type, F32, float, (float)x[i])                                    \
    LOOP(id, type, F64, double, (double)x[i])                                  \
    LOOP(id, type, U64, uint64_t, to_uint64((double)x[i]))                     \
    LOOP(id, type, I64, int64_t, TO_INT64(x[i]))

#define FROM_INT(id, type)                                                     \
    LOOP(id, type, F32, float, (float)x[i])                                    \
    LOOP(id, type, F64, double, (double)x[i])                                  \
    LOOP(id, type, U8, uint8_t, (uint8_t)x[i])                                 \
    LOOP(id, type, I8, int8_t, (int8_t)x[i])                                   \
    LOOP(id, type, U16, uint16_t, (uint16_t)x[i])                              \
    LOOP(id, type, I16, int16_t, (int16_t)x[i])                                \
    LOOP(id, type, U32, uint32_t, (uint32_t)x[i])                              \
    LOOP(id, type, I32, int32_t, (int32_t)x[i])                                \
    LOOP(id, type, U64, uint64_t, (uint64_t)x[i])                              \
    LOOP(id, type, I64, int64_t, (int64_t)x[i])

BYI_EACH_FLOAT(FROM_FLOAT)
BYI_EACH_INT(FROM_INT)
FROM_INT(BOOL, uint8_t)

/* SSE2 cannot compare 64 bits. */
#define IS_NOT_ZERO(id, type)                                                  \
    LOOP(id, type, BOOL, uint8_t,                                              \
         sizeof(type) < 8                                                      \
             ? x[i] != 0                                                       \
             : ((uint32_t)x[i] | (uint32_t)((uint64_t)x[i] >> 32)) != 0)
BYI_EACH_INT(IS_NOT_ZERO)
IS_NOT_ZERO(BOOL, uint8_t)

#define EACH_TARGET(from)                                                      \
    [BYOC_##from] = {                                                          \
        [BYOC_F32] = from##_to_F32,   [BYOC_F64] = from##_to_F64,              \
        [BYOC_U8] = from##_to_U8,     [BYOC_I8] = from##_to_I8,                \
        [BYOC_U16] = from##_to_U16,   [BYOC_I16] = from##_to_I16,              \
        [BYOC_U32] = from##_to_U32,   [BYOC_I32] = from##_to_I32,              \
        [BYOC_U64] = from##_to_U64,   [BYOC_I64] = from##_to_I64,              \
        [BYOC_BOOL] = from##_to_BOOL,                                          \
    },

static const loop_fn loops[BYI_DTYPES][BYI_DTYPES] = {
#define TARGETS(id, type) EACH_TARGET(id)
    BYI_EACH_FLOAT(TARGETS) BYI_EACH_INT(TARGETS) EACH_TARGET(BOOL)};

/* The parameters of rounding a float to a narrow type. */
struct narrowing {
    bool saturate;
    enum byi_rounding mode;
};

/* Whether a cast between the two types copies the bits: both are integers of
 * the same size. */
static bool is_copy(enum byoc_dtype from, enum byoc_dtype to)
{
    return byi_dtype_is_int(from) && byi_dtype_is_int(to) &&
           byoc_dtype_size(from) == byoc_dtype_size(to);
}

/* Cast elements [at, at + n) of x to y; n <= BLOCK unless a loop casts
 * directly. float16, bfloat16 and narrow types are cast through float32. */
static void cast_block(const struct byi_tensor *x, struct byi_tensor *y,
                       int64_t at, int64_t n, const struct narrowing *narrowing)
{
    enum byoc_dtype from = x->dtype, to = y->dtype;
    float wide[BLOCK], narrow[BLOCK];
    const void *src =
        (const char *)x->data + (size_t)at * byoc_dtype_size(from);
    char *dst = (char *)y->data + (size_t)at * byoc_dtype_size(to);
    if (from == BYOC_F32 && byi_dtype_is_half(to)) {
        byi_narrow(to, src, dst, n);
        return;
    }
    if (byi_dtype_is_half(from) && to == BYOC_F32) {
        byi_widen(from, src, (float *)(void *)dst, n);
        return;
    }
    if (byi_dtype_is_half(from)) {
        byi_widen(from, src, wide, n);
        src = wide;
        from = BYOC_F32;
    } else if (byi_narrow_bits(from)) {
        for (int64_t i = 0; i < n; i++)
            wide[i] = byi_narrow_to_f32(from, ((const uint8_t *)src)[i]);
        src = wide;
        from = BYOC_F32;
    }
    if (byi_narrow_bits(to)) {
        loops[from][BYOC_F32](src, narrow, n);
        for (int64_t i = 0; i < n; i++)
            dst[i] = (char)byi_f32_to_narrow(to, narrow[i], narrowing->saturate,
                                             narrowing->mode);
        return;
    }
    if (!byi_dtype_is_half(to)) {
        if (is_copy(from, to))
            memcpy(dst, src, (size_t)n * byoc_dtype_size(to));
        else
            loops[from][to](src, dst, n);
        return;
    }
    loops[from][BYOC_F32](src, narrow, n);
    byi_narrow(to, narrow, dst, n);
}

static bool is_number(enum byoc_dtype dtype)
{
    return byi_dtype_is_half(dtype) || byi_narrow_bits(dtype) ||
           loops[dtype][BYOC_F32];
}

/* --- strings ------------------------------------------------------------ */

/* Parse a whole string as a number: a 64-bit integer, or a number that strtod
 * accepts in the C locale ("1e-5", "inf", "NaN"). */
static enum byoc_status read_number(const char *text, locale_t c,
                                    struct byi_tensor *y, int64_t i,
                                    const struct narrowing *narrowing,
                                    struct byoc_error *err)
{
    char *end = NULL;
    errno = 0;
    const long long integer = text ? strtoll(text, &end, 10) : 0;
    if (text && *text && !*end && !errno && !byi_dtype_is_float(y->dtype)) {
        const int64_t value = integer;
        struct byi_tensor element = {.data = (void *)(uintptr_t)&value,
                                     .dtype = BYOC_I64};
        struct byi_tensor to = *y;
        to.data = (char *)y->data + (size_t)i * byoc_dtype_size(y->dtype);
        cast_block(&element, &to, 0, 1, narrowing);
        return BYOC_OK;
    }
    const double value = text ? strtod_l(text, &end, c) : 0;
    if (!text || !*text || *end)
        return byi_fail(
            err, BYOC_EINVAL,
            "cast: found \"%.40s\" as element %lld, expected a number",
            text ? text : "", (long long)i);
    struct byi_tensor element = {.data = (void *)(uintptr_t)&value,
                                 .dtype = BYOC_F64};
    struct byi_tensor to = *y;
    to.data = (char *)y->data + (size_t)i * byoc_dtype_size(y->dtype);
    cast_block(&element, &to, 0, 1, narrowing);
    return BYOC_OK;
}

static enum byoc_status cast_strings(const struct byi_call *call,
                                     const struct narrowing *narrowing,
                                     struct byoc_error *err)
{
    const char *const *text = call->in->data;
    const int64_t n = byi_count(call->in);
    if (call->out->dtype == BYOC_STRING) {
        if (n)
            memcpy(call->out->data, text, (size_t)n * sizeof *text);
        return BYOC_OK;
    }
    if (!is_number(call->out->dtype))
        return byi_bad_dtype(call, call->out->dtype, "a numeric type or bool",
                             err);
    /* glibc returns its static C locale here and allocates nothing */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0)
        return byi_fail(err, BYOC_ENOMEM,
                        "cast: out of memory for the C locale");
    enum byoc_status status = BYOC_OK;
    for (int64_t i = 0; i < n && status == BYOC_OK; i++)
        status = read_number(text[i], c, call->out, i, narrowing, err);
    freelocale(c);
    return status;
}

/* Write an integer of this sign and magnitude as decimal text. Returns its
 * length. */
static size_t write_integer(bool negative, uint64_t magnitude, char text[32])
{
    char digits[32], *at = digits + sizeof digits;
    do
        *--at = (char)('0' + magnitude % 10);
    while (magnitude /= 10);
    if (negative)
        *--at = '-';
    const size_t length = (size_t)(digits + sizeof digits - at);
    memcpy(text, at, length);
    return length;
}

/* Write element i of x as text of at most 31 bytes, without a terminating NUL.
 * Returns its length. */
static size_t write_number(const struct byi_tensor *x, int64_t i, char text[32])
{
    if (x->dtype == BYOC_U64) {
        uint64_t wide;
        memcpy(&wide, (const char *)x->data + i * 8, 8);
        return write_integer(false, wide, text);
    }
    if (!byi_dtype_is_float(x->dtype) && !byi_narrow_is_float(x->dtype)) {
        const int64_t value = byi_tensor_int(x, i);
        return write_integer(
            value < 0, value < 0 ? -(uint64_t)value : (uint64_t)value, text);
    }
    const double value = byi_tensor_float(x, i);
    if (isfinite(value))
        return byi_decimal_text(text, value, x->dtype != BYOC_F64, 6);
    strcpy(text, isnan(value) ? "NaN" : value < 0 ? "-INF" : "INF");
    return strlen(text);
}

static enum byoc_status cast_to_strings(const struct byi_call *call,
                                        struct byoc_error *err)
{
    const int64_t n = byi_count(call->in);
    char text[32], **y = call->out->data;
    if (!call->strings)
        return byi_no_store(call, err);
    for (int64_t i = 0; i < n; i++) {
        const size_t length = write_number(call->in, i, text);
        y[i] = byi_store_string(call->strings, length);
        if (!y[i])
            return byi_no_store(call, err);
        memcpy(y[i], text, length);
    }
    return BYOC_OK;
}

/* --- the kernel --------------------------------------------------------- */

static enum byoc_status cast_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const char *mode = byi_attr_string(call->attrs, "round_mode");
    const struct narrowing narrowing = {
        .saturate = byi_attr_int(call->attrs, "saturate") != 0,
        .mode = *mode == 'u'   ? BYI_ROUND_UP
                : *mode == 'd' ? BYI_ROUND_DOWN
                               : BYI_ROUND_NEAREST};
    if (x->dtype == BYOC_STRING)
        return cast_strings(call, &narrowing, err);
    if (call->out->dtype == BYOC_STRING && is_number(x->dtype))
        return cast_to_strings(call, err);
    if (!is_number(x->dtype) || !is_number(call->out->dtype))
        return byi_bad_dtype(call,
                             is_number(x->dtype) ? call->out->dtype : x->dtype,
                             "a numeric type or bool", err);
    const int64_t n = byi_count(x);
    const int team = byi_team(call, n);
    const int64_t most =
        loops[x->dtype][call->out->dtype] ? DIRECT_BLOCK : BLOCK;
#pragma omp parallel for num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += most)
        cast_block(x, call->out, at, byi_min(most, n - at), &narrowing);
    return BYOC_OK;
}

BYI_KERNEL_ROWS(cast, {BYI_OP_CAST, {cast_run, NULL}})
