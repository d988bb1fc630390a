/* SPDX-License-Identifier: Apache-2.0 */
/* tensor.c: dense tensors: sizes, and single elements as numbers, for operands
 * such as shapes and for messages. Kernels read elements in their own loops.
 */
#include "base.h"

#include <assert.h>
#include <math.h>
#include <string.h>

int64_t byi_elements(uint32_t rank, const int64_t *dims)
{
    int64_t n = 1;
    bool overflow = false, empty = false;

    for (uint32_t i = 0; i < rank; i++) {
        if (dims[i] < 0)
            return -1;
        if (dims[i] == 0)
            empty = true;
        else if (__builtin_mul_overflow(n, dims[i], &n))
            overflow = true;
    }
    if (empty)
        return 0;
    return overflow ? -1 : n;
}

/* The bytes of `n` elements; UINT64_MAX if n is -1 or their number overflows.
 */
static uint64_t bytes_of(enum byoc_dtype dtype, int64_t n)
{
    uint64_t size = byi_dtype_bytes(dtype), bytes = 0;

    if (n < 0 || __builtin_mul_overflow((uint64_t)n, size, &bytes))
        return UINT64_MAX;
    return bytes;
}

uint64_t byi_tensor_bytes(const struct byi_tensor *t)
{
    return bytes_of(t->dtype, byi_elements(t->rank, t->dims));
}

uint64_t byi_type_bytes(const struct byi_type *type)
{
    if (type->kind != BYI_TENSOR)
        return UINT64_MAX;
    return bytes_of(type->dtype, byi_elements(type->rank, type->dims));
}

bool byi_dims_equal(uint32_t ra, const int64_t *a, uint32_t rb,
                    const int64_t *b)
{
    return ra == rb && (ra == 0 || memcmp(a, b, ra * sizeof *a) == 0);
}

/* The value truncated to an int64, saturated, 0 for NaN: C's conversion of a
 * value out of range is undefined. */
static int64_t int_of(double value)
{
    if (isnan(value))
        return 0;
    if (value >= 0x1p63)
        return INT64_MAX;
    if (value <= -0x1p63)
        return INT64_MIN;
    return (int64_t)value;
}

/* Element i of data as T. It may be unaligned, since model files are mapped. */
#define LOAD(T)                                                                \
    __extension__({                                                            \
        T value_;                                                              \
        memcpy(&value_, (const char *)t->data + (size_t)i * sizeof(T),         \
               sizeof(T));                                                     \
        value_;                                                                \
    })

int64_t byi_tensor_int(const struct byi_tensor *t, int64_t i)
{
    uint64_t large;

    assert(i >= 0);
    switch (t->dtype) {
    case BYOC_I64:
        return LOAD(int64_t);
    case BYOC_I32:
        return LOAD(int32_t);
    case BYOC_I16:
        return LOAD(int16_t);
    case BYOC_I8:
        return LOAD(int8_t);
    case BYOC_BOOL:
        return LOAD(uint8_t) != 0;
    case BYOC_U8:
        return LOAD(uint8_t);
    case BYOC_U16:
        return LOAD(uint16_t);
    case BYOC_U32:
        return LOAD(uint32_t);
    case BYOC_U64:
        large = LOAD(uint64_t);
        return large > INT64_MAX ? INT64_MAX : (int64_t)large;
    default:
        return int_of(byi_tensor_float(t, i));
    }
}

double byi_tensor_float(const struct byi_tensor *t, int64_t i)
{
    assert(i >= 0);
    switch (t->dtype) {
    case BYOC_F32:
        return LOAD(float);
    case BYOC_F64:
        return LOAD(double);
    case BYOC_F16:
        return byi_f16_to_f32(LOAD(uint16_t));
    case BYOC_BF16:
        return byi_bf16_to_f32(LOAD(uint16_t));
    case BYOC_U64:
        return (double)LOAD(uint64_t);
    case BYOC_F8E4M3FN:
    case BYOC_F8E4M3FNUZ:
    case BYOC_F8E5M2:
    case BYOC_F8E5M2FNUZ:
    case BYOC_F4E2M1:
    case BYOC_F8E8M0:
    case BYOC_U4:
    case BYOC_I4:
    case BYOC_U2:
    case BYOC_I2:
        return byi_narrow_to_f32(t->dtype, LOAD(uint8_t));
    case BYOC_NONE:
    case BYOC_STRING:
    case BYOC_C64:
    case BYOC_C128:
        return NAN;
    default:
        return (double)byi_tensor_int(t, i);
    }
}

static uint64_t unsigned_of(double value)
{
    if (!(value > 0))
        return 0;
    return value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

#define STORE(T, expr)                                                         \
    do {                                                                       \
        T value_ = (T)(expr);                                                  \
        memcpy((char *)t->data + (size_t)i * sizeof(T), &value_, sizeof(T));   \
    } while (0)

static void set_int(struct byi_tensor *t, int64_t i, int64_t value)
{
    const uint32_t size = byoc_dtype_size(t->dtype);
    int64_t min = 0, max = 0;
    const bool is_int = byi_dtype_range(t->dtype, &min, &max);
    assert(is_int);
    (void)is_int;
    value = value < min ? min : value > max ? max : value;
    /* little-endian: the low bytes come first */
    memcpy((char *)t->data + (size_t)i * size, &value, size);
}

void byi_tensor_set(struct byi_tensor *t, int64_t i, double value)
{
    assert(i >= 0);
    switch (t->dtype) {
    case BYOC_F32:
        STORE(float, value);
        break;
    case BYOC_F64:
        STORE(double, value);
        break;
    case BYOC_F16:
        STORE(uint16_t, byi_f32_to_f16((float)value));
        break;
    case BYOC_BF16:
        STORE(uint16_t, byi_f32_to_bf16((float)value));
        break;
    case BYOC_BOOL:
        STORE(uint8_t, value != 0);
        break;
    case BYOC_U64:
        STORE(uint64_t, unsigned_of(value));
        break;
    case BYOC_F8E4M3FN:
    case BYOC_F8E4M3FNUZ:
    case BYOC_F8E5M2:
    case BYOC_F8E5M2FNUZ:
    case BYOC_F4E2M1:
    case BYOC_F8E8M0: /* infinity stays infinity if the type has it */
        STORE(uint8_t, byi_f32_to_narrow(t->dtype, (float)value,
                                         isfinite(value), BYI_ROUND_NEAREST));
        break;
    default:
        set_int(t, i, int_of(value));
    }
}

char *byi_shape_text(char *buf, size_t n, uint32_t rank, const int64_t *dims,
                     const char *const *names)
{
    size_t used = 0;

    if (n == 0)
        return buf;
    used = (size_t)snprintf(buf, n, "(");
    for (uint32_t i = 0; i < rank && used < n; i++) {
        const char *sep = i ? ", " : "";
        if (BYI_IS_SYMBOL(dims[i]))
            used += (size_t)snprintf(buf + used, n - used, "%s%.40s", sep,
                                     names && names[i] ? names[i] : "?");
        else
            used += (size_t)snprintf(buf + used, n - used, "%s%lld", sep,
                                     (long long)dims[i]);
    }
    if (used < n)
        snprintf(buf + used, n - used, rank == 1 ? ",)" : ")");
    return buf;
}

void byi_tensor_scale(const struct byi_tensor *x, struct byi_tensor *out,
                      int64_t from, int64_t n, double by)
{
    if (x->dtype == BYOC_F32) {
        const float *src = (const float *)x->data + from;
        float *dst = (float *)out->data + from;
        for (int64_t i = 0; i < n; i++)
            dst[i] = (float)(src[i] * by);
        return;
    }
    for (int64_t i = from; i < from + n; i++)
        byi_tensor_set(out, i, byi_tensor_float(x, i) * by);
}

DLTensor byi_tensor_dlpack(struct byi_tensor *t)
{
    return (DLTensor){.data = t->data,
                      .device = {kDLCPU, 0},
                      .ndim = (int)t->rank,
                      .dtype = byoc_dtype_dlpack(t->dtype),
                      .shape = t->dims};
}

char *byi_dims_text(char *buf, size_t n, uint32_t rank, const int64_t *dims)
{
    return byi_shape_text(buf, n, rank, dims, NULL);
}
