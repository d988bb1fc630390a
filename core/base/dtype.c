/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c: properties of element types, and conversions to and from the two
 * 16-bit float formats: IEEE 754 binary16 and bfloat16 (the upper half of a
 * binary32).
 */
#include "base.h"

#include <string.h>

/* An element type: its name, and the bytes of an element. */
struct dtype_row {
    const char *name;
    uint32_t bytes;
};

static const struct dtype_row rows[] = {
#define DTYPE(dtype, name, bytes) [dtype] = {name, bytes},
    BYOC_DTYPES(DTYPE)
#undef DTYPE
};

const char *byoc_dtype_name(enum byoc_dtype dtype)
{
    size_t i = (size_t)dtype;

    return i < BYI_COUNT(rows) ? rows[i].name : NULL;
}

uint32_t byoc_dtype_size(enum byoc_dtype dtype)
{
    size_t i = (size_t)dtype;

    return i < BYI_COUNT(rows) ? rows[i].bytes : 0;
}

uint32_t byi_dtype_bytes(enum byoc_dtype dtype)
{
    return dtype == BYOC_STRING ? (uint32_t)sizeof(char *)
                                : byoc_dtype_size(dtype);
}

static uint8_t dlpack_code(enum byoc_dtype dtype)
{
    if (dtype == BYOC_BF16)
        return kDLBfloat;
    if (dtype == BYOC_C64 || dtype == BYOC_C128)
        return kDLComplex;
    if (byi_narrow_is_float(dtype)) /* as DLPack 1.1 numbers them */
        return (uint8_t[]){10, 11, 12, 13, 0, 0, 17, 14}[dtype - BYOC_F8E4M3FN];
    if (dtype == BYOC_STRING)
        return kDLOpaqueHandle;
    if (byi_dtype_is_float(dtype))
        return kDLFloat;
    return byi_dtype_is_signed(dtype) || dtype == BYOC_I4 || dtype == BYOC_I2
               ? kDLInt
               : kDLUInt;
}

DLDataType byoc_dtype_dlpack(enum byoc_dtype dtype)
{
    const uint32_t narrow = byi_narrow_bits(dtype);
    const uint32_t bits = narrow ? narrow : byi_dtype_bytes(dtype) * 8;

    if (!byoc_dtype_name(dtype))
        return (DLDataType){0};
    return (DLDataType){
        .code = dlpack_code(dtype), .bits = (uint8_t)bits, .lanes = 1};
}

enum byoc_dtype byi_dtype_of_name(const char *name, size_t n)
{
    for (size_t i = 1; i < BYI_COUNT(rows); i++)
        if (strlen(rows[i].name) == n && memcmp(rows[i].name, name, n) == 0)
            return (enum byoc_dtype)i;
    return BYOC_NONE;
}

enum byoc_dtype byi_dtype_of_dlpack(DLDataType type)
{
    for (size_t i = 1; i < BYI_COUNT(rows); i++) {
        DLDataType t = byoc_dtype_dlpack((enum byoc_dtype)i);
        if (t.code == type.code && t.bits == type.bits && t.lanes == type.lanes)
            return (enum byoc_dtype)i; /* bool has the type of uint8 */
    }
    return BYOC_NONE;
}

bool byi_dtype_is_half(enum byoc_dtype dtype)
{
    return dtype == BYOC_F16 || dtype == BYOC_BF16;
}

bool byi_dtype_is_wide(enum byoc_dtype dtype)
{
    return dtype == BYOC_F32 || dtype == BYOC_F64;
}

bool byi_dtype_is_float(enum byoc_dtype dtype)
{
    return byi_dtype_is_wide(dtype) || byi_dtype_is_half(dtype);
}

static bool is_signed_int(enum byoc_dtype dtype)
{
    return dtype == BYOC_I8 || dtype == BYOC_I16 || dtype == BYOC_I32 ||
           dtype == BYOC_I64;
}

bool byi_dtype_is_int(enum byoc_dtype dtype)
{
    return is_signed_int(dtype) || dtype == BYOC_U8 || dtype == BYOC_U16 ||
           dtype == BYOC_U32 || dtype == BYOC_U64;
}

bool byi_dtype_is_signed(enum byoc_dtype dtype)
{
    return is_signed_int(dtype) || byi_dtype_is_float(dtype);
}

bool byi_dtype_range(enum byoc_dtype dtype, int64_t *min, int64_t *max)
{
    static const struct {
        enum byoc_dtype dtype;
        int64_t min, max;
    } ranges[] = {
        {BYOC_I8, INT8_MIN, INT8_MAX},
        {BYOC_U8, 0, UINT8_MAX},
        {BYOC_I16, INT16_MIN, INT16_MAX},
        {BYOC_U16, 0, UINT16_MAX},
        {BYOC_I32, INT32_MIN, INT32_MAX},
        {BYOC_U32, 0, UINT32_MAX},
        {BYOC_I64, INT64_MIN, INT64_MAX},
        {BYOC_U4, 0, 15},
        {BYOC_I4, -8, 7},
        {BYOC_U2, 0, 3},
        {BYOC_I2, -2, 1},
    };
    for (size_t i = 0; i < BYI_COUNT(ranges); i++)
        if (ranges[i].dtype == dtype) {
            *min = ranges[i].min;
            *max = ranges[i].max;
            return true;
        }
    return false;
}

static float float_of(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return bits;
}

float byi_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 0x1f, mantissa = bits & 0x3ff;

    if (exponent == 0x1f) /* infinity or NaN */
        return float_of(sign | 0x7f800000 | mantissa << 13);
    if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24 */
        float f = (float)mantissa * 0x1p-24f;
        return sign ? -f : f;
    }
    return float_of(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t byi_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value), sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;

    if (magnitude > 0x7f800000) /* NaN: keep its top bits, stay quiet */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x477ff000) /* rounds above 65504 */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) {
        /* Subnormal: adding 0.5 leaves |x| / 2^-24, rounded by the FPU, in
         * the low bits of the sum. */
        uint32_t sum = bits_of(float_of(magnitude) + 0.5f);
        return (uint16_t)(sign | (sum - bits_of(0.5f)));
    }
    magnitude += 0xfff + (magnitude >> 13 & 1); /* ties round to even */
    return (uint16_t)(sign | ((magnitude >> 13) - (112 << 10)));
}

float byi_bf16_to_f32(uint16_t bits)
{
    return float_of((uint32_t)bits << 16);
}

uint16_t byi_f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);

    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float byi_half_to_f32(uint16_t bits, enum byoc_dtype dtype)
{
    return dtype == BYOC_F16 ? byi_f16_to_f32(bits) : byi_bf16_to_f32(bits);
}

uint16_t byi_f32_to_half(float value, enum byoc_dtype dtype)
{
    return dtype == BYOC_F16 ? byi_f32_to_f16(value) : byi_f32_to_bf16(value);
}
