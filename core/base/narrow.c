/* SPDX-License-Identifier: Apache-2.0 */
/* narrow.c: the element types of 2, 4 and 8 bits that came after bfloat16 (OCP
 * Microscaling Formats 1.0; Micikevicius et al., "FP8 Formats for Deep
 * Learning", 2022). In memory each element takes one byte.
 */
#include "base.h"

#include <math.h>

/* A float has a sign, an exponent and a mantissa. The code `largest` stands for
 * the largest number; codes above it are NaN, except that the next one is
 * infinity if has_infinity. In formats without negative zero (fnuz), the code
 * of -0 is the only NaN. float4 has neither infinity nor NaN; NaN becomes -0.
 */
struct narrow_row {
    uint8_t bits, mantissa; /* the bits of an element, and of its mantissa */
    uint8_t bias, largest;
    bool has_infinity, has_one_zero, is_integer, has_sign;
};

static const struct narrow_row rows[] = {
    [BYOC_F8E4M3FN] = {8, 3, 7, 0x7e, false, false, false, true},
    [BYOC_F8E4M3FNUZ] = {8, 3, 8, 0x7f, false, true, false, true},
    [BYOC_F8E5M2] = {8, 2, 15, 0x7b, true, false, false, true},
    [BYOC_F8E5M2FNUZ] = {8, 2, 16, 0x7f, false, true, false, true},
    [BYOC_F4E2M1] = {4, 1, 1, 0x7, false, false, false, true},
    [BYOC_F8E8M0] = {8, 0, 127, 0xfe, false, false, false, false},
    [BYOC_U4] = {.bits = 4, .is_integer = true},
    [BYOC_I4] = {.bits = 4, .is_integer = true, .has_sign = true},
    [BYOC_U2] = {.bits = 2, .is_integer = true},
    [BYOC_I2] = {.bits = 2, .is_integer = true, .has_sign = true},
};

uint32_t byi_narrow_bits(enum byoc_dtype dtype)
{
    return (size_t)dtype < BYI_COUNT(rows) ? rows[dtype].bits : 0;
}

bool byi_narrow_is_float(enum byoc_dtype dtype)
{
    return byi_narrow_bits(dtype) != 0 && !rows[dtype].is_integer;
}

/* The low bits, sign-extended if the type is a signed integer. */
static uint8_t wrap(const struct narrow_row *r, int64_t value)
{
    const int64_t size = (int64_t)1 << r->bits, low = value & (size - 1);

    return (uint8_t)(r->is_integer && r->has_sign && low >= size / 2
                         ? low - size
                         : low);
}

/* The number that a code without its sign bit stands for. */
static float magnitude(const struct narrow_row *r, uint32_t code)
{
    const int exponent = (int)(code >> r->mantissa);
    const float fraction =
        ldexpf((float)(code & ((1u << r->mantissa) - 1)), -(int)r->mantissa);

    if (!r->has_sign) /* float8e8m0 has no zero */
        return ldexpf(1, exponent - r->bias);
    return exponent ? ldexpf(1 + fraction, exponent - r->bias)
                    : ldexpf(fraction, 1 - r->bias);
}

float byi_narrow_to_f32(enum byoc_dtype dtype, uint8_t code)
{
    const struct narrow_row *r = &rows[dtype];
    const uint32_t sign_bit = r->has_sign ? 1u << (r->bits - 1) : 256;
    const uint32_t low = code & (sign_bit - 1);
    const bool negative = (code & sign_bit) != 0;

    if (r->is_integer)
        return r->has_sign ? (float)(int8_t)code : (float)code;
    if (r->has_one_zero && code == sign_bit)
        return NAN;
    if (low > r->largest)
        return !r->has_infinity || low > r->largest + 1u ? NAN
               : negative                                ? -INFINITY
                                                         : INFINITY;
    return negative ? -magnitude(r, low) : magnitude(r, low);
}

/* The largest code whose number is at most `value`. */
static uint32_t code_below(const struct narrow_row *r, float value)
{
    uint32_t low = 0, high = r->largest;

    while (low < high) {
        const uint32_t middle = (low + high + 1) / 2;
        if (magnitude(r, middle) <= value)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* The code of a number that is not negative; largest + 1 if it is too large. */
static uint32_t round_code(const struct narrow_row *r, float value,
                           enum byi_rounding mode)
{
    const uint32_t code = code_below(r, value);
    const float below = magnitude(r, code);
    /* the distance to the next number; that number may exceed float32 */
    const float spacing = r->mantissa == 0    ? below
                          : code < r->largest ? magnitude(r, code + 1) - below
                                              : below - magnitude(r, code - 1);
    const float rest = value - below, gap = spacing - rest;

    if (rest <= 0 || (!r->has_sign && mode == BYI_ROUND_DOWN))
        return code;
    if (!r->has_sign) /* in float8e8m0, ties round up */
        return code + (mode == BYI_ROUND_UP || rest >= gap);
    return code + (rest > gap || (rest == gap && code % 2));
}

uint8_t byi_f32_to_narrow(enum byoc_dtype dtype, float value, bool saturate,
                          enum byi_rounding mode)
{
    const struct narrow_row *r = &rows[dtype];
    const uint32_t sign_bit = r->has_sign ? 1u << (r->bits - 1) : 0;
    const uint32_t sign = signbit(value) ? sign_bit : 0;
    const uint32_t nan_code = r->has_one_zero || r->bits == 4 ? sign_bit
                              : r->has_sign ? sign | (sign_bit - 1)
                                            : 0xff;

    if (r->is_integer)
        return wrap(r,
                    value >= -0x1p62f && value <= 0x1p62f ? (int64_t)value : 0);
    if (isnan(value) || (!r->has_sign && isinf(value)))
        return (uint8_t)nan_code;
    /* infinity becomes a finite number above all codes, since round_code()
     * subtracts, and infinity minus infinity is NaN */
    uint32_t code = round_code(r, fminf(fabsf(value), 0x1p127f * 1.5f), mode);
    if (code > r->largest) {
        if (saturate || r->bits == 4)
            code = r->largest;
        else if (!r->has_infinity)
            return (uint8_t)nan_code;
    }
    return (uint8_t)(code == 0 && r->has_one_zero ? 0 : code | sign);
}

uint64_t byi_narrow_packed_bytes(enum byoc_dtype dtype, uint64_t n)
{
    const uint64_t each = 8 / byi_narrow_bits(dtype);

    return n / each + (n % each != 0);
}

void byi_narrow_unpack(enum byoc_dtype dtype, const uint8_t *packed, uint64_t n,
                       uint8_t *codes)
{
    const struct narrow_row *r = &rows[dtype];
    const uint64_t each = 8 / r->bits;

    for (uint64_t i = 0; i < n; i++)
        codes[i] = wrap(r, packed[i / each] >> i % each * r->bits);
}
