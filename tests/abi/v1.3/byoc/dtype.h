/* SPDX-License-Identifier: Apache-2.0 */
/* byoc/dtype.h: element types, for hosts and backends. */
#ifndef BYOC_DTYPE_H
#define BYOC_DTYPE_H

/* Numbered as ONNX's TensorProto.DataType. */
enum byoc_dtype {
    BYOC_NONE = 0, /* no element type; ONNX's UNDEFINED */
    BYOC_F32 = 1,
    BYOC_U8 = 2,
    BYOC_I8 = 3,
    BYOC_U16 = 4,
    BYOC_I16 = 5,
    BYOC_I32 = 6,
    BYOC_I64 = 7,
    BYOC_STRING = 8,
    BYOC_BOOL = 9,
    BYOC_F16 = 10,
    BYOC_F64 = 11,
    BYOC_U32 = 12,
    BYOC_U64 = 13,
    BYOC_C64 = 14,
    BYOC_C128 = 15,
    BYOC_BF16 = 16,
    /* each takes a byte in memory, even if it has fewer bits */
    BYOC_F8E4M3FN = 17,
    BYOC_F8E4M3FNUZ = 18,
    BYOC_F8E5M2 = 19,
    BYOC_F8E5M2FNUZ = 20,
    BYOC_U4 = 21,
    BYOC_I4 = 22, /* sign-extended */
    BYOC_F4E2M1 = 23,
    BYOC_F8E8M0 = 24,
    BYOC_U2 = 25,
    BYOC_I2 = 26 /* sign-extended */
};

/* DTYPE(dtype, name, bytes), in the order of the numbers: names as in regions
 * and in the text form; 0 bytes: an element has no fixed size. */
/* clang-format off */
#define BYOC_DTYPES(DTYPE) \
    DTYPE(BYOC_F32, "float32", 4) \
    DTYPE(BYOC_U8, "uint8", 1) \
    DTYPE(BYOC_I8, "int8", 1) \
    DTYPE(BYOC_U16, "uint16", 2) \
    DTYPE(BYOC_I16, "int16", 2) \
    DTYPE(BYOC_I32, "int32", 4) \
    DTYPE(BYOC_I64, "int64", 8) \
    DTYPE(BYOC_STRING, "string", 0) \
    DTYPE(BYOC_BOOL, "bool", 1) \
    DTYPE(BYOC_F16, "float16", 2) \
    DTYPE(BYOC_F64, "float64", 8) \
    DTYPE(BYOC_U32, "uint32", 4) \
    DTYPE(BYOC_U64, "uint64", 8) \
    DTYPE(BYOC_C64, "complex64", 8) \
    DTYPE(BYOC_C128, "complex128", 16) \
    DTYPE(BYOC_BF16, "bfloat16", 2) \
    DTYPE(BYOC_F8E4M3FN, "float8e4m3fn", 1) \
    DTYPE(BYOC_F8E4M3FNUZ, "float8e4m3fnuz", 1) \
    DTYPE(BYOC_F8E5M2, "float8e5m2", 1) \
    DTYPE(BYOC_F8E5M2FNUZ, "float8e5m2fnuz", 1) \
    DTYPE(BYOC_U4, "uint4", 1) \
    DTYPE(BYOC_I4, "int4", 1) \
    DTYPE(BYOC_F4E2M1, "float4e2m1", 1) \
    DTYPE(BYOC_F8E8M0, "float8e8m0", 1) \
    DTYPE(BYOC_U2, "uint2", 1) \
    DTYPE(BYOC_I2, "int2", 1)
/* clang-format on */

#endif
