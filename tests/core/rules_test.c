/* SPDX-License-Identifier: Apache-2.0 */
/* rules_test.c: tests the type rule of every operator, as a table. A row is an
 * operator, its attributes (JSON), its operands and the result:
 *     "f32[A,3] i64[2]=4,-1"    types, and the values that are known
 * A letter is a symbolic dim, "?" a new one; a result that begins with '!' is
 * an error whose text contains the rest. Lists are "seq(f32[2,*])", of any rank
 * "seq(f32[..])", empty ones "seq(f32[-])"; optionals are "opt(...)".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/ops/ops.h"

#include <cmocka.h>

enum { MAX_IN = 8, MAX_VALUES = 32, FIRST_NEW = -1000 };

struct row {
    const char *op, *attrs, *in, *out;
};

/* clang-format off */
static const struct row element_rows[] = {
    {"nn.relu", "{}", "f32[A,3]", "f32[A,3]"},
    {"exp", "{}", "i32[2]", "!exp: x has type int32, expected a floating-point type"},
    {"negative", "{}", "u8[2]", "!x has type uint8, expected a signed numeric type"},
    {"copy", "{}", "str[2]", "str[2]"},
    {"logical_not", "{}", "bool[2]", "bool[2]"},
    {"logical_not", "{}", "f32[2]", "!expected bool"},
    {"isnan", "{}", "f16[2,A]", "bool[2,A]"},
    {"cast", "{\"dtype\": \"int64\"}", "f32[4]", "i64[4]"},
    {"cast", "{\"dtype\": \"complex64\"}", "f32[4]", "!dtype is complex64"},
    {"bitcast", "{\"dtype\": \"int32\"}", "f32[A,4]", "i32[A,4]"},
    {"bitcast", "{\"dtype\": \"uint16\"}", "f32[4]", "!dtype is uint16, expected as many bits as float32 has"},
    {"bitcast", "{\"dtype\": \"uint8\"}", "bool[4]", "!x has type bool"},
    {"bitcast", "{\"dtype\": \"bool\"}", "u8[4]", "!dtype is bool, expected a number of 8 bits or more"},
    {"cumsum", "{\"product\": true}", "f16[4,5]", "f16[4,5]"},
    {"nn.gelu", "{\"approximate\": \"maybe\"}", "f32[4]", "!approximate is \"maybe\", expected one of none|tanh"},
    {"trilu", "{}", "f32[4]", "!x has rank 1, expected at least 2"},
    {"trilu", "{}", "bool[4,5]", "bool[4,5]"},
    {"trilu", "{}", "str[4,A]", "str[4,A]"},
    {"cumsum", "{\"axis\": -2}", "i64[4,5]", "i64[4,5]"},
    {"cumsum", "{\"axis\": 2}", "i64[4,5]", "!axis 2 is out of range for rank 2, expected -2 to 1"},
    {"nn.mean_variance_norm", "{\"axis\": [0, -4]}", "f32[1,2,3,4]", "!names axis 0 twice"},
    {"nn.lrn", "{\"size\": 0}", "f32[1,2,3]", "!size is 0"},
    {"reverse_sequence", "{}", "f32[4,3,2] i64[3]", "f32[4,3,2]"},
    {"reverse_sequence", "{}", "f32[4,3,2] i64[4]", "!lengths has 4 elements, expected 3"},
    {"reverse_sequence", "{\"time_axis\": 1}", "f32[4,3] i64[3]", "!batch_axis is 1 and time_axis 1"},
    {"add", "{}", "f32[A,1,3] f32[4,1]", "f32[A,4,3]"},
    {"add", "{}", "f32[A] f32[A]", "f32[A]"},
    {"add", "{}", "f32[A] f32[B]", "f32[?]"},
    {"add", "{}", "f32[A] f32[7]", "f32[7]"},
    {"add", "{}", "f32[A] f32[0]", "f32[0]"},
    {"add", "{}", "f32[] f32[2]", "f32[2]"},
    {"add", "{}", "f32[2,3] f32[2]", "!shapes (2, 3) and (2,) do not broadcast at axis 1"},
    {"add", "{}", "f32[2] f64[2]", "!b has type float64, expected float32"},
    {"add", "{}", "bool[2] bool[2]", "!a has type bool"},
    {"add", "{}", "f32[2]", "!found 1 operands, expected 2 to 2"},
    {"power", "{}", "f32[2] i64[1]", "f32[2]"},
    {"power", "{}", "f32[2] bool[1]", "!b has type bool"},
    {"left_shift", "{}", "u8[2] u8[2]", "u8[2]"},
    {"left_shift", "{}", "f32[2] f32[2]", "!a has type float32, expected an integer type"},
    {"bitwise_and", "{}", "u8[2] u8[1]", "u8[2]"},
    {"bitwise_or", "{}", "f32[2] f32[2]", "!a has type float32, expected an integer type"},
    {"bitwise_xor", "{}", "i64[A] i64[]", "i64[A]"},
    {"cast", "{\"dtype\": \"int4\"}", "f32[2]", "i4[2]"},
    {"cast", "{\"dtype\": \"float8e8m0\", \"round_mode\": \"away\"}", "f32[2]", "!round_mode is \"away\""},
    {"qnn.dequantize", "{\"axis\": 1, \"block_size\": 2}", "i8[2,5] f32[2,3] i8[2,3]", "f32[2,5]"},
    {"qnn.dequantize", "{\"axis\": 1, \"block_size\": 2}", "i8[2,5] f32[2,2] i8[2,2]", "!scale has 2 elements along axis 1, expected 3"},
    {"qnn.dequantize", "{\"axis\": 1, \"block_size\": 2}", "i8[2,5] f32[2,3] i8[2,2]", "!zero point has 2 elements along axis 1, expected 3"},
    {"qnn.quantize", "{\"block_size\": 2}", "f32[2,5] f32[5] i8[5]", "!scale has rank 1, expected 2"},
    {"qnn.quantize", "{\"block_size\": -1}", "f32[2] f32[] i8[]", "!block_size is -1"},
    {"logical_and", "{}", "bool[2] bool[1]", "bool[2]"},
    {"equal", "{}", "bool[2] bool[2]", "bool[2]"},
    {"less", "{}", "f32[2,1] f32[3]", "bool[2,3]"},
    {"less", "{}", "bool[2] bool[2]", "!a has type bool"},
    {"nn.prelu", "{}", "f32[1,3,A] f32[3,1]", "f32[1,3,A]"},
    {"nn.prelu", "{}", "f32[1,3,4] f32[2,1]", "!slope has shape (2, 1)"},
    {"nn.prelu", "{}", "f32[1] f32[3]", "!slope has shape (3,)"},
    {"where", "{}", "bool[2,1] f32[3] f32[1]", "f32[2,3]"},
    {"where", "{}", "bool[A] f32[1] f32[B]", "f32[?]"},
    {"where", "{}", "f32[2] f32[2] f32[2]", "!condition has type float32, expected bool"},
    {"where", "{}", "bool[2] f32[2] i32[2]", "!b has type int32, expected float32"},
    {"add", "{}", "f32[1048576,1,1048576] f32[2,1]", "!more than 2^40 elements"},
    {"add", "{}", "f32[1048576,2097152] f32[1]", "!operand 0, (1048576, 2097152), has more than 2^40 elements"},
    {"add", "{}", "f32[0,9223372036854775807] f32[1]", "!operand 0, (0, 9223372036854775807), has more than 2^40"},
    {"dyn.cumsum", "{}", "i64[4,A] i64[]", "i64[4,A]"},
    {"dyn.cumsum", "{}", "i64[4,A] i64[2]", "!axis has shape (2,), expected a scalar"},
    {"dyn.trilu", "{}", "bool[4,A] i64[1]", "bool[4,A]"},
    {"dyn.trilu", "{}", "f32[4,5] f32[]", "!k has type float32, expected int32 or int64"},
    {"dyn.reduce", "{\"function\": \"sum\"}", "f32[2,A] i64[1]", "f32[?,?]"},
    {"dyn.reduce", "{\"function\": \"sum\"}", "f32[2,A] i64[1]=-1", "f32[2,1]"},
    {"dyn.reduce", "{\"function\": \"max\", \"keepdims\": false}", "f32[2,A,4] i64[2]", "f32[?]"},
    {"dyn.reduce", "{\"function\": \"max\", \"keepdims\": false}", "f32[2,A,4] i64[2]=0,-1", "f32[A]"},
    {"dyn.reduce", "{\"function\": \"sum\"}", "f32[2,A] i64[0]", "f32[1,1]"},
    {"dyn.reduce", "{\"function\": \"sum\", \"noop_empty\": true}", "f32[2,A] i64[0]", "f32[2,A]"},
    {"dyn.reduce", "{\"function\": \"sum\"}", "f32[2,3] i64[N]", "f32[?,?]"},
    {"dyn.reduce", "{\"function\": \"sum\", \"keepdims\": false}", "f32[2,3] i64[N]", "!the number of axes is not known"},
    {"dyn.reduce", "{\"function\": \"sum\"}", "f32[2,3] i64[3]", "!found 3 axes, expected at most 2, the rank of x"},
    {"dyn.reduce", "{\"function\": \"argmax\"}", "f32[2,3] i64[1]", "!function is \"argmax\""},
    {"sum", "{}", "f32[2,3]", "f32[1,1]"},
    {"sum", "{\"keepdims\": false}", "f32[2,3]", "f32[]"},
    {"sum", "{\"noop_empty\": true}", "f32[2,A]", "f32[2,A]"},
    {"mean", "{\"axis\": [-1], \"keepdims\": false}", "f32[A,3]", "f32[A]"},
    {"mean", "{\"axis\": [2]}", "f32[A,3]", "!axis 2 is out of range"},
    {"max", "{}", "bool[2]", "!x has type bool"},
    {"argmax", "{\"axis\": 1}", "f32[A,3]", "i64[A,1]"},
    {"argmin", "{\"axis\": -1, \"keepdims\": false}", "f32[A,3]", "i64[A]"},
    {"argmax", "{\"axis\": 1}", "f32[A,0]", "!axis 1 has no elements"},
    {"nn.softmax", "{}", "f32[2,A]", "f32[2,A]"},
    {"nn.softmax", "{\"axis\": 2}", "f32[2,3]", "!axis 2 is out of range"},
    {"nn.lp_normalize", "{\"p\": 3}", "f32[2]", "!p is 3, expected 1 or 2"},
    {"qnn.quantize", "{}", "f32[2,3] f32[] u8[]", "u8[2,3]"},
    {"qnn.quantize", "{}", "f32[2,3] f32[3] i8[3]", "i8[2,3]"},
    {"qnn.quantize", "{}", "f32[2,3] f32[2] i8[2]", "!scale has 2 elements, expected 1 or 3, the elements of x along axis 1"},
    {"qnn.quantize", "{}", "f32[2,3] f32[3] i8[]", "!scale has shape (3,) and zero point"},
    {"qnn.lookup", "{}", "i8[2,3] u8[256]", "u8[2,3]"},
    {"qnn.lookup", "{}", "i8[2,3] u8[255]", "!table has 255 entries, expected 256"},
    {"qnn.lookup", "{}", "f32[2,3] u8[256]", "!x has type float32"},
    {"qnn.dequantize", "{\"axis\": 0}", "i8[2,3] f16[2] i8[2]", "f16[2,3]"},
    {"qnn.dequantize", "{}", "i8[2,3] f32[] u8[]", "!zero point has type uint8, expected int8"},
};

static const struct row nn_rows[] = {
    {"nn.conv2d", "{\"padding\": [1, 1, 1, 1]}", "f32[A,3,8,8] f32[16,3,3,3]", "f32[A,16,8,8]"},
    {"nn.conv2d", "{\"strides\": [2, 2], \"padding\": [3, 3, 3, 3]}", "f32[1,3,224,224] f32[64,3,7,7]", "f32[1,64,112,112]"},
    {"nn.conv2d", "{\"padding\": [1, 0, 1, 0]}", "f32[1,3,H,W] f32[4,3,3,3]", "f32[1,4,H,?]"},
    {"nn.conv2d", "{\"groups\": 4}", "f32[1,8,5,5] f32[4,2,1,1]", "f32[1,4,5,5]"},
    {"nn.conv2d", "{}", "f32[1,4,5,5] f32[4,3,1,1]", "!nn.conv2d: weights have 3 input channels, data has 4 in 1 groups"},
    {"nn.conv2d", "{\"groups\": 3}", "f32[1,6,5,5] f32[4,2,1,1]", "!weights have 4 output channels, expected a multiple of 3 groups"},
    {"nn.conv2d", "{\"groups\": 0}", "f32[1,6,5,5] f32[4,2,1,1]", "!groups is 0"},
    {"nn.conv2d", "{}", "f32[1,3,2,2] f32[4,3,3,3]", "f32[1,4,0,0]"},
    {"nn.conv2d", "{\"padding\": [1, 1, 1, 1]}", "f32[1,3,0,2] f32[4,3,3,3]", "f32[1,4,0,2]"},
    {"nn.conv2d", "{}", "f32[1,3,1,2] f32[4,3,3,3]", "!a window of 3 with dilation 1 does not fit in 1"},
    {"nn.conv2d", "{\"strides\": [2, 2]}", "f32[1,3,1,1] f32[4,3,3,3]", "f32[1,4,0,0]"},
    {"nn.conv2d", "{\"strides\": [2, 2]}", "f32[1,3,0,1] f32[4,3,3,3]", "!does not fit in 0"},
    {"nn.conv2d", "{\"strides\": [0, 1]}", "f32[1,3,8,8] f32[4,3,3,3]", "!strides[0] is 0"},
    {"nn.conv2d", "{\"padding\": [1, 1]}", "f32[1,3,8,8] f32[4,3,3,3]", "!padding has 2 entries, expected 4"},
    {"nn.conv2d", "{\"dilation\": [2147483647, 1]}", "f32[1,3,8,8] f32[4,3,3,3]", "!does not fit"},
    {"nn.conv2d", "{}", "f32[1,3,8] f32[4,3,3]", "!data has rank 3, expected 4"},
    {"nn.conv1d", "{\"dilation\": [2]}", "f32[1,3,8] f32[4,3,3]", "f32[1,4,4]"},
    {"nn.conv3d", "{}", "f32[1,1,4,4,4] f32[2,1,2,2,2]", "f32[1,2,3,3,3]"},
    {"qnn.conv2d", "{\"padding\": [1, 1, 1, 1]}", "u8[A,3,8,8] i8[16,3,3,3] u8[] i8[]", "i32[A,16,8,8]"},
    {"qnn.conv2d", "{\"groups\": 2}", "i8[1,4,H,W] u8[6,2,1,1] i8[1] u8[6] i32[6]", "i32[1,6,H,W]"},
    {"qnn.conv1d", "{}", "u8[1,3,8] i8[4,3,3] u8[] i8[] i32[] f32[4]", "f32[1,4,6]"},
    {"qnn.conv3d", "{\"a_min\": 0, \"a_max\": 100}", "u8[1,1,4,4,4] i8[2,1,2,2,2] u8[] i8[] i32[2] f32[] i8[1]", "i8[1,2,3,3,3]"},
    {"qnn.conv2d", "{}", "f32[1,3,8,8] i8[4,3,3,3] f32[] i8[]", "!data has type float32"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] f32[4,3,3,3] u8[] f32[]", "!weights has type float32"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] i8[] i8[]", "!zero point of data has type int8, expected uint8"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[3] i8[]", "!zero point of data has shape (3,), expected a scalar"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[3]", "!zero point of weights has 3 elements, expected 1 or 4"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[1,4]", "!zero point of weights has rank 2, expected 0 or 1"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[] f32[4]", "!bias has type float32, expected int32"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[] i32[4] f64[4]", "!scale has type float64, expected float32"},
    {"qnn.conv2d", "{}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[] i32[4] f32[4] i32[]", "!zero point has type int32"},
    {"qnn.conv2d", "{\"a_min\": 0}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[]", "!expected a zero point of the result"},
    {"qnn.conv2d", "{\"a_min\": 9, \"a_max\": 8}", "u8[1,3,8,8] i8[4,3,3,3] u8[] i8[] i32[] f32[] u8[]", "!a_min is 9 and a_max 8"},
    {"qnn.conv2d", "{}", "u8[1,4,8,8] i8[4,3,3,3] u8[] i8[]", "!weights have 3 input channels, data has 4"},
    {"qnn.conv2d", "{\"data_layout\": \"NHWC\"}", "u8[1,8,8,3] i8[4,3,3,3] u8[] i8[]", "!data_layout is NHWC and kernel_layout OIHW"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[A,3,40] u8[5,3,8] f32[5,3] u8[5,3]", "f32[A,3,5]"},
    {"qnn.dense_blocks", "{\"bits\": 8, \"block_size\": 16}", "f16[40] u8[5,3,16] f16[5,3] u8[5,3]", "f16[5]"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[2,A] u8[5,3,8] f32[5,3] u8[5,3]", "f32[2,5]"},
    {"qnn.dense_blocks", "{\"bits\": 8, \"block_size\": 16}", "f16[2,40] u8[5,3,16] f16[5,3] u8[]", "f16[2,5]"},
    {"qnn.dense_blocks", "{\"bits\": 3, \"block_size\": 16}", "f32[2,40] u8[5,3,8] f32[5,3] u8[5,3]", "!bits is 3, expected 4 or 8"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 12}", "f32[2,40] u8[5,3,8] f32[5,3] u8[5,3]", "!block_size is 12, expected a positive multiple of 8"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[2,40] u8[5,3,16] f32[5,3] u8[5,3]", "!codes have 16 bytes per block, expected 8"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[2,40] u8[5,2,8] f32[5,2] u8[5,2]", "!codes have 2 blocks, expected 3 for 40 columns of x"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[2,40] u8[5,3,8] f32[5,2] u8[5,3]", "!scale is (5, 2), expected (5, 3)"},
    {"qnn.dense_blocks", "{\"bits\": 4, \"block_size\": 16}", "f32[2,40] u8[5,3,8] f16[5,3] u8[5,3]", "!scale has type float16, expected float32"},
    {"qnn.matmul", "{}", "u8[A,4,6] i8[6,5] u8[] i8[5]", "i32[A,4,5]"},
    {"qnn.matmul", "{\"transpose_b\": true}", "u8[4,6] u8[5,6] u8[] u8[] i32[5] f32[] u8[]", "u8[4,5]"},
    {"qnn.matmul", "{}", "u8[4,6] i8[6] u8[] i8[1] i32[1] f32[1]", "f32[4]"},
    {"qnn.matmul", "{}", "u8[4,6] i8[7,5] u8[] i8[]", "!a has 6 columns and b 7 rows"},
    {"qnn.matmul", "{}", "u8[4,6] i8[6,5] u8[] i8[] i32[4]", "!bias has 4 elements, expected 1 or 5"},
    {"nn.conv2d_transpose", "{\"strides\": [2, 2]}", "f32[1,8,4,4] f32[8,3,2,2]", "f32[1,3,8,8]"},
    {"nn.conv2d_transpose", "{\"strides\": [3, 2], \"output_padding\": [1, 1], \"groups\": 2}", "f32[1,8,3,3] f32[8,3,3,3]", "f32[1,6,10,8]"},
    {"nn.conv2d_transpose", "{\"padding\": [1, 1, 1, 1]}", "f32[1,8,H,W] f32[8,3,3,3]", "f32[1,3,H,W]"},
    {"nn.conv2d_transpose", "{}", "f32[1,7,3,3] f32[8,3,3,3]", "!weights have 8 input channels, expected 7, as data has"},
    {"nn.conv1d_transpose", "{\"padding\": [9, 9]}", "f32[1,1,3] f32[1,1,3]", "!use less padding"},
    {"nn.conv1d_transpose", "{\"strides\": [2147483647]}", "f32[1,1,1099511627776] f32[1,1,3]", "!more than 2^40"},
    {"nn.max_pool2d", "{\"pool_size\": [2, 2], \"strides\": [2, 2]}", "f32[1,3,7,7]", "f32[1,3,3,3]"},
    {"nn.max_pool2d", "{\"pool_size\": [2, 2], \"strides\": [2, 2], \"ceil_mode\": true}", "f32[1,3,7,7]", "f32[1,3,4,4]"},
    {"nn.max_pool1d", "{\"pool_size\": [3], \"strides\": [2]}", "f32[1,3,2]", "f32[1,3,0]"},
    {"nn.max_pool1d", "{\"pool_size\": [3], \"strides\": [2], \"ceil_mode\": true}", "f32[1,3,2]", "f32[1,3,1]"},
    {"nn.max_pool1d", "{\"pool_size\": [4], \"strides\": [2], \"ceil_mode\": true}", "f32[1,3,2]", "f32[1,3,0]"},
    {"nn.max_pool1d", "{\"pool_size\": [5], \"strides\": [2], \"ceil_mode\": true}", "f32[1,3,2]", "f32[1,3,0]"},
    {"nn.max_pool1d", "{\"pool_size\": [6], \"strides\": [2], \"ceil_mode\": true}", "f32[1,3,2]", "!does not fit in 2"},
    {"nn.avg_pool1d", "{\"pool_size\": [1], \"strides\": [3], \"padding\": [0, 1], \"ceil_mode\": true}", "f32[1,3,3]", "f32[1,3,1]"},
    {"nn.avg_pool2d", "{\"pool_size\": [2]}", "f32[1,3,7,7]", "!pool_size has 1 entries, expected 2"},
    {"nn.lp_pool", "{\"pool_size\": [2], \"strides\": [1], \"padding\": [0, 0], \"dilation\": [1], \"p\": 0}", "f32[1,3,7]", "!p is 0"},
    {"nn.lp_pool", "{\"pool_size\": [2], \"strides\": [1], \"padding\": [0, 0], \"dilation\": [1]}", "f32[1,3,7]", "f32[1,3,6]"},
    {"nn.max_pool_indices", "{\"pool_size\": [2], \"strides\": [2], \"padding\": [0, 0], \"dilation\": [1]}", "f32[A,3,8]", "f32[A,3,4] i64[A,3,4]"},
    {"nn.global_avg_pool2d", "{}", "f32[A,3,H,W]", "f32[A,3,1,1]"},
    {"nn.conv2d", "{\"data_layout\": \"NHWC\", \"kernel_layout\": \"HWIO\", \"padding\": [1, 1, 1, 1]}", "f32[A,8,9,3] f32[3,3,3,16]", "f32[A,8,9,16]"},
    {"nn.conv2d", "{\"data_layout\": \"NHWC\", \"kernel_layout\": \"OHWI\", \"strides\": [2, 1]}", "f32[1,H,9,3] f32[16,2,3,3]", "f32[1,?,7,16]"},
    {"nn.conv2d", "{\"data_layout\": \"NHWC\"}", "f32[1,8,8,6] f32[4,3,1,1]", "!weights have 3 input channels, data has 6 in 1 groups"},
    {"nn.conv2d", "{\"data_layout\": \"NHWC\", \"kernel_layout\": \"HWIO\", \"groups\": 6}", "f32[1,8,8,6] f32[3,2,1,12]", "f32[1,6,7,12]"},
    {"nn.conv2d", "{\"data_layout\": \"NCHW16c\", \"kernel_layout\": \"OIHW16i16o\"}", "f32[1,2,5,5,16] f32[4,2,3,3,16,16]", "f32[1,4,3,3,16]"},
    {"nn.conv2d", "{\"data_layout\": \"NCHW8c\", \"kernel_layout\": \"OIHW1i8o\", \"groups\": 16}", "f32[A,2,5,5,8] f32[2,1,3,3,1,8]", "f32[A,2,3,3,8]"},
    {"nn.conv2d", "{\"data_layout\": \"NCHW16c\"}", "f32[1,2,5,5,16] f32[24,32,3,3]", "!the result: axis C has 24 elements, expected a multiple of the block, 16"},
    {"nn.conv2d", "{\"data_layout\": \"NCHW16c\"}", "f32[1,2,5,5,8] f32[16,32,3,3]", "!data has 8 elements on axis 4, expected 16 as data_layout is NCHW16c"},
    {"nn.conv2d", "{\"data_layout\": \"NCHW16c\"}", "f32[1,32,5,5] f32[16,32,3,3]", "!data has rank 4, expected 5"},
    {"nn.conv2d", "{\"data_layout\": \"NHCW\"}", "f32[1,3,8,8] f32[4,3,3,3]", "!data_layout is NHCW, expected NCHW, NHWC or blocks of channels as in NCHW16c"},
    {"nn.conv2d", "{\"data_layout\": \"NHWC8c\"}", "f32[1,3,8,8] f32[4,3,3,3]", "!data_layout is NHWC8c, expected NCHW"},
    {"nn.conv2d", "{\"kernel_layout\": \"HIWO\"}", "f32[1,3,8,8] f32[4,3,3,3]", "!kernel_layout is HIWO, expected O, I and HW in any order (OIHW, HWIO, OHWI), and blocks behind them as in OIHW16i16o"},
    {"nn.conv2d", "{\"kernel_layout\": \"OIHW4h\"}", "f32[1,3,8,8] f32[4,3,3,3]", "!kernel_layout is OIHW4h"},
    {"nn.conv1d", "{\"data_layout\": \"NWC\", \"kernel_layout\": \"WIO\"}", "f32[1,8,3] f32[3,3,4]", "f32[1,6,4]"},
    {"nn.conv3d", "{\"data_layout\": \"NDHWC\", \"kernel_layout\": \"DHWIO\"}", "f32[1,4,5,6,1] f32[2,2,2,1,2]", "f32[1,3,4,5,2]"},
    {"nn.conv2d_transpose", "{\"data_layout\": \"NHWC\", \"kernel_layout\": \"HWIO\", \"strides\": [2, 2], \"groups\": 2}", "f32[1,4,4,8] f32[2,2,8,3]", "f32[1,8,8,6]"},
    {"nn.conv2d_transpose", "{\"kernel_layout\": \"OIHW\"}", "f32[1,8,4,4] f32[3,8,2,2]", "f32[1,3,5,5]"},
    {"nn.conv2d_transpose", "{\"kernel_layout\": \"OIHW\"}", "f32[1,8,4,4] f32[8,3,2,2]", "!weights have 3 input channels, expected 8, as data has"},
    {"nn.conv1d_transpose", "{\"data_layout\": \"NCW4c\"}", "f32[1,1,3,4] f32[4,6,3]", "!the result: axis C has 6 elements, expected a multiple of the block, 4"},
    {"nn.max_pool2d", "{\"pool_size\": [2, 2], \"strides\": [2, 2], \"layout\": \"NHWC\"}", "f32[A,8,H,3]", "f32[A,4,?,3]"},
    {"nn.avg_pool2d", "{\"pool_size\": [2, 2], \"layout\": \"NCHW8c\"}", "f32[1,2,8,8,8]", "f32[1,2,7,7,8]"},
    {"nn.avg_pool1d", "{\"pool_size\": [2], \"layout\": \"WNC\"}", "f32[1,2,8]", "!layout is WNC, expected NCW, NWC or blocks"},
    {"nn.global_avg_pool2d", "{\"layout\": \"NHWC\"}", "f32[A,H,W,3]", "f32[A,1,1,3]"},
    {"nn.global_max_pool2d", "{\"layout\": \"NCHW4c\"}", "f32[1,2,5,6,4]", "f32[1,2,1,1,4]"},
    {"nn.global_max_pool1d", "{\"layout\": \"NHWC\"}", "f32[1,2,5]", "!layout is NHWC, expected NCW, NWC"},
    {"nn.batch_norm", "{\"axis\": -1}", "f32[A,4,4,3] f32[3] f32[3] f32[3] f32[3]", "f32[A,4,4,3]"},
    {"nn.batch_norm", "{\"axis\": 3}", "f32[A,3,4,4] f32[3] f32[3] f32[3] f32[3]", "!gamma has 3 elements"},
    {"nn.batch_norm", "{\"axis\": 4}", "f32[A,3,4,4] f32[3] f32[3] f32[3] f32[3]", "!axis 4 is out of range"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NHWC\"}", "f32[A,3,H,5]", "f32[A,H,5,3]"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NCHW16c\"}", "u8[A,32,H,W]", "u8[A,2,H,W,16]"},
    {"layout_transform", "{\"src_layout\": \"NCHW16c\", \"dst_layout\": \"NHWC\"}", "f32[A,2,4,5,16]", "f32[A,4,5,32]"},
    {"layout_transform", "{\"src_layout\": \"NCHW4c\", \"dst_layout\": \"NCHW8c\"}", "f32[1,6,4,5,4]", "f32[1,3,4,5,8]"},
    {"layout_transform", "{\"src_layout\": \"OIHW\", \"dst_layout\": \"OIHW16i16o\"}", "f32[32,16,3,3]", "f32[2,1,3,3,16,16]"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NCHW16c\"}", "f32[1,24,4,5]", "!NCHW to NCHW16c: axis C has 24 elements, expected a multiple of the block, 16"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NCHW16c\"}", "f32[1,C,4,5]", "!NCHW to NCHW16c: axis C has a symbolic size, expected a known one"},
    {"layout_transform", "{\"src_layout\": \"NCHW8c\", \"dst_layout\": \"NCHW12c\"}", "f32[1,3,4,5,8]", "!NCHW8c to NCHW12c: axis C has blocks of 8, expected blocks whose size divides 12"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NCW\"}", "f32[1,3,4,5]", "!found layouts with different axes"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"nchw\"}", "f32[1,3,4,5]", "!dst_layout is nchw: an axis is not an upper-case letter, expected one; use a layout such as NCHW"},
    {"layout_transform", "{\"src_layout\": \"NCHW\", \"dst_layout\": \"NHWC\"}", "f32[1,3,4]", "!x has rank 3, expected 4"},
    {"nn.depth_to_space", "{\"block_size\": 2, \"layout\": \"NHWC\"}", "f32[A,2,3,8]", "f32[A,4,6,2]"},
    {"nn.depth_to_space", "{\"block_size\": 2, \"layout\": \"NHWC\"}", "f32[1,2,2,6]", "!axis 3 has size 6, expected a multiple of 4"},
    {"nn.depth_to_space", "{\"block_size\": 2, \"layout\": \"NCHW4c\"}", "f32[1,2,2,2,4]", "!layout is NCHW4c, expected NCHW or NHWC"},
    {"nn.space_to_depth", "{\"block_size\": 2, \"layout\": \"NHWC\"}", "f32[1,4,6,2]", "f32[1,2,3,8]"},
    {"nn.global_avg_pool2d", "{}", "f32[A,3,H]", "!data has rank 3, expected 4"},
    {"nn.global_lp_pool", "{}", "f32[A,3,H]", "f32[A,3,1]"},
    {"nn.batch_norm", "{}", "f32[1,3,4] f32[3] f32[3] f32[3] f32[3]", "f32[1,3,4]"},
    {"nn.batch_norm", "{}", "f32[1,3,4] f32[3] f32[3] f32[4] f32[3]", "!mean has 4 elements, expected 3, the channels of data"},
    {"nn.layer_norm", "{}", "f32[A,2,3] f32[3] f32[3]", "f32[A,2,3]"},
    {"nn.layer_norm", "{\"axis\": 1}", "f32[A,2,3] f32[2,3]", "f32[A,2,3]"},
    {"nn.layer_norm", "{\"axis\": 1}", "f32[A,2,3] f32[3,2]", "!gamma has 3 elements on axis 0, expected 2, as x has on axis 1"},
    {"nn.instance_norm", "{}", "f32[1,2,3] f32[2] f32[3]", "!beta has 3 elements"},
    {"nn.group_norm", "{\"num_groups\": 3}", "f32[1,4,3] f32[4] f32[4]", "!num_groups is 3, expected a divisor of 4"},
    {"nn.group_norm", "{\"num_groups\": 0}", "f32[1,C,3] f32[C] f32[C]", "!num_groups is 0, expected 1 or more"},
    {"nn.rnn", "{}", "f32[T,N,5] f32[1,4,5] f32[1,4,4]", "f32[T,1,N,4] f32[1,N,4]"},
    {"nn.gru", "{\"direction\": \"bidirectional\"}", "f32[T,N,5] f32[2,12,5] f32[2,12,4] f32[2,24]", "f32[T,2,N,4] f32[2,N,4]"},
    {"nn.lstm", "{}", "f32[7,N,5] f32[1,16,5] f32[1,16,4] f32[0] i32[3] f32[0] f32[1,N,4] f32[1,12]", "f32[7,1,3,4] f32[1,3,4] f32[1,3,4]"},
    {"nn.lstm", "{\"batch_first\": true, \"direction\": \"reverse\"}", "f16[3,T,5] f16[1,16,5] f16[1,16,4] f16[1,32] i32[0] f16[3,1,4]", "f16[3,T,1,4] f16[3,1,4] f16[3,1,4]"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,16,6] f32[1,16,4]", "!weights has 6 elements on axis 2, expected 5"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,12,5] f32[1,12,4]", "!weights has 12 elements on axis 1, expected 16"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,16,5] f32[2,16,4]", "!recurrent has 2 elements on axis 0, expected 1"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,16,5] f32[1,16,4] f32[1,16]", "!bias has 16 elements on axis 1, expected 32"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,16,5] f32[1,16,4] f32[0] i64[3]", "!lengths has type int64, expected int32"},
    {"nn.lstm", "{}", "f32[7,3,5] f32[1,16,5] f32[1,16,4] f32[0] i32[4]", "!lengths has 4 elements, expected 3"},
    {"nn.lstm", "{\"batch_first\": true}", "f32[3,7,5] f32[1,16,5] f32[1,16,4] f32[0] i32[0] f32[1,3,4]", "!initial_h has 1 elements on axis 0, expected 3"},
    {"nn.lstm", "{}", "f32[7,3,5] f64[1,16,5] f32[1,16,4]", "!weights has type float64, expected float32"},
    {"nn.lstm", "{}", "f32[3,5] f32[1,16,5] f32[1,16,4]", "!x has rank 2, expected 3"},
    {"nn.lstm", "{\"direction\": \"both\"}", "f32[7,3,5] f32[1,16,5] f32[1,16,4]", "!direction is \"both\", expected forward, reverse or bidirectional"},
    {"nn.gru", "{\"activations\": [\"tanh\"]}", "f32[7,3,5] f32[1,12,5] f32[1,12,4]", "!activations has 1 entries, expected none or 2"},
    {"nn.gru", "{\"activations\": [\"tanh\", \"sine\"]}", "f32[7,3,5] f32[1,12,5] f32[1,12,4]", "!activations[1] is \"sine\", expected sigmoid, tanh"},
    {"nn.rnn", "{\"activation_beta\": [1.0, 2.0]}", "f32[7,3,5] f32[1,4,5] f32[1,4,4]", "!activation_beta has 2 entries, expected none or 1"},
    {"nn.rnn", "{\"clip\": 0.0}", "f32[7,3,5] f32[1,4,5] f32[1,4,4]", "!clip is 0, expected more than 0"},
    {"nn.attention", "{}", "f32[B,6,S,8] f32[B,6,T,8] f32[B,6,T,5]", "f32[B,6,S,5]"},
    {"nn.attention", "{\"transpose_k\": false}", "f16[B,2,3,S,8] f16[B,2,1,8,T] f16[B,2,1,T,8] f16[S,T]", "f16[B,2,3,S,8]"},
    {"nn.attention", "{}", "f32[6,S,8] f32[6,T,8] f32[6,T,5] f32[A,T]", "f32[6,?,5]"},
    {"nn.attention", "{}", "f32[4,8] f32[3,8] f32[3,8] f32[2,2,1,3]", "f32[2,2,4,8]"},
    {"nn.attention", "{}", "f32[4,8] f32[3,8] f32[2,8]", "!found 3 keys and 2 values, expected the same number"},
    {"nn.attention", "{}", "f32[4,8] f32[3,7] f32[3,8]", "!q has 8 columns and k keys of 7 elements, expected the same"},
    {"nn.attention", "{}", "f32[4,8] f32[3,8] f32[3,8] f32[5,3]", "!shapes (4, 3) and (5, 3) do not broadcast"},
    {"nn.attention", "{}", "f32[8] f32[3,8] f32[3,8]", "!q has rank 1, expected at least 2"},
    {"nn.attention", "{}", "f32[4,8] f32[1,1,1,1,1,1,1,3,8] f32[3,8]", "!k has rank 9, expected at most 8"},
    {"nn.attention", "{\"cap\": 50, \"zero_nan\": true}", "f32[4,8] f32[3,8] f32[3,8] f32[2,1,3] f32[4,3]", "f32[2,4,8]"},
    {"nn.attention", "{\"cap\": 50}", "f16[4,8] f16[3,8] f16[3,8]", "!operands with a cap have type float16, expected float32"},
    {"nn.attention", "{}", "f32[4,8] f32[3,8] f32[3,8] f32[4,3] f32[3]", "!mask has rank 1, expected at least 2"},
    {"nn.attention", "{\"scale\": 0}", "f32[4,8] f32[3,8] f32[3,8]", "!scale is 0, expected a number other than 0"},
    {"nn.attention", "{}", "f64[4,8] f64[3,8] f64[3,8]", "!q has type float64"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[B,T,12] f32[B,T,6] f32[B,T,10]", "f32[B,T,20] f32[B,2,3,5]"},
    {"nn.linear_attention", "{\"heads\": 2, \"kv_heads\": 6}", "f32[B,T,6] f32[B,T,9] f32[2,T,30] f32[0] f32[B,T,18] f32[B,7,1]", "f32[2,7,30] f32[2,6,3,5]"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[B,T,12] f32[B,T,6] f32[B,T,10] f32[1,2,3,5] f32[B,T,2] f32[B,T,2]", "f32[1,T,20] f32[1,2,3,5]"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 3}", "f32[1,1,12] f32[1,1,6] f32[1,1,10]", "!heads is 4 and kv_heads 3, expected positive numbers"},
    {"nn.linear_attention", "{\"heads\": 0, \"kv_heads\": 3}", "f32[1,1,12] f32[1,1,6] f32[1,1,10]", "!heads is 0 and kv_heads 3, expected positive numbers"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,10] f32[1,1,6] f32[1,1,10]", "!query has width 10, expected a multiple of 4"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,0] f32[1,1,6] f32[1,1,10]", "!query has width 0, expected at least 4"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,8] f32[1,1,10]", "!key has width 8, expected a multiple of 3"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,9] f32[1,1,10]", "!key has 3 heads of size 3, expected a divisor of the 2 heads of value"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,0] f32[1,1,10]", "!key has 0 heads of size 3, expected a divisor"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f32[1,1,5]", "!value has width 5, expected a multiple of 2"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f32[1,1,A]", "!value has a symbolic width, expected a number"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,2,6] f32[1,1,10]", "!key has 2 elements on axis 1, expected 1"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f16[1,1,10]", "!value has type float16, expected float32"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f32[1,1,10] f32[1,4,3,5]", "!past has 4 elements on axis 1, expected 2"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f32[1,1,10] f32[0] f32[1,1,4]", "!decay has 4 elements on axis 2, expected 2"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,1,12] f32[1,1,6] f32[1,1,10] f32[0] f32[0] f32[1,1,6]", "!beta has 6 elements on axis 2, expected 2"},
    {"nn.linear_attention", "{\"heads\": 4, \"kv_heads\": 2}", "f32[1,12] f32[1,1,6] f32[1,1,10]", "!query has rank 2, expected 3"},
    {"nn.pad", "{}", "f32[A,3] i64[4]=0,1,0,2 f32[]", "f32[A,6]"},
    {"nn.pad", "{}", "f32[A,3] i64[4]=1,0,0,0 f32[]", "f32[?,3]"},
    {"nn.pad", "{}", "f32[2,3] i64[4] f32[]", "f32[?,?]"},
    {"nn.pad", "{}", "f32[2,3] i64[4]=-1,0,-1,0 f32[]", "f32[0,3]"},
    {"nn.pad", "{}", "f32[2,3] i64[4]=-1,0,-2,0 f32[]", "!crops more than the 2 elements of axis 0"},
    {"nn.pad", "{\"mode\": \"reflect\"}", "f32[2,3] i64[4]=2,0,0,0 f32[]", "!padding of 2 in mode reflect"},
    {"nn.pad", "{\"mode\": \"reflect\"}", "f32[4] i64[2]=-2,2 f32[]", "!padding of 2 in mode reflect needs more than the 2 elements"},
    {"nn.pad", "{\"mode\": \"edge\"}", "f32[0] i64[2]=2,0 f32[]", "!padding of 2 in mode edge"},
    {"nn.pad", "{\"mode\": \"wrap\"}", "f32[4] i64[2]=-4,2 f32[]", "!padding of 2 in mode wrap needs more than the 0 elements"},
    {"nn.pad", "{\"mode\": \"wrap\"}", "f32[4] i64[2]=-3,2 f32[]", "f32[3]"},
    {"nn.pad", "{}", "f32[2] i64[2]=9223372036854775807,1 f32[]", "!padding of 9223372036854775807 and 1 on axis 0, expected -2^40 to 2^40"},
    {"nn.pad", "{}", "f32[2] i64[3]=1,1,1 f32[]", "!pads has 3 elements, expected 2"},
    {"signal.idct8", "{\"axes\": [-1, -2]}", "f32[A,8,8]", "f32[A,8,8]"},
    {"signal.idct8", "{\"axes\": [-2]}", "f16[8,3]", "f16[8,3]"},
    {"signal.idct8", "{\"axes\": []}", "f32[8,8]", "!axes is empty"},
    {"signal.idct8", "{\"axes\": [0]}", "f32[8,8,8]", "!axis 0 is not one of the last two"},
    {"signal.idct8", "{\"axes\": [1, -1]}", "f32[8,8]", "!axis 1 is given twice"},
    {"signal.idct8", "{\"axes\": [-1]}", "f32[8,7]", "!axis 1 has size 7, expected 8"},
    {"signal.idct8", "{\"axes\": [2]}", "f32[8,8]", "!axis 2"},
    {"signal.idct8", "{\"axes\": [-1]}", "i32[8,8]", "!x has type int32"},
    {"nn.sparse_dense", "{}", "f32[4,5,7] f32[3,7]", "f32[4,5,3]"},
    {"nn.sparse_dense", "{}", "f32[A,7] f32[3,7]", "f32[A,3]"},
    {"nn.sparse_dense", "{}", "f32[4,7] f32[3,8]", "!weights have 8 input features, expected 7, as data has"},
    {"nn.sparse_dense", "{}", "i32[4,7] i32[3,7]", "!data has type int32"},
    {"nn.sparse_conv2d", "{\"padding\": [1, 1, 1, 1]}", "f32[1,3,8,8] f32[4,3,3,3]", "f32[1,4,8,8]"},
    {"nn.sparse_conv2d", "{}", "f32[1,3,8,8] f32[4,2,3,3]", "!weights have 2 input channels"},
    {"nn.dense", "{}", "f32[A,4] f32[8,4]", "f32[A,8]"},
    {"nn.dense", "{}", "f32[A,4] f32[4,8]", "!weights have 8 input features, expected 4, as data has"},
    {"nn.matmul", "{}", "f32[A,2,3] f32[3,4]", "f32[A,2,4]"},
    {"nn.matmul", "{}", "f32[3] f32[3]", "f32[]"},
    {"nn.matmul", "{}", "f32[3] f32[5,3,4]", "f32[5,4]"},
    {"nn.matmul", "{}", "f32[5,2,3] f32[3]", "f32[5,2]"},
    {"nn.matmul", "{\"transpose_b\": true}", "f32[1,2,3] f32[7,4,3]", "f32[7,2,4]"},
    {"nn.matmul", "{\"transpose_a\": true}", "f32[3,2] f32[3,4]", "f32[2,4]"},
    {"nn.matmul", "{\"transpose_a\": true}", "f32[3] f32[3,4]", "!a is a vector"},
    {"nn.matmul", "{}", "f32[2,3] f32[4,5]", "!a has 3 columns and b 4 rows"},
    {"nn.matmul", "{}", "f32[2,2,3] f32[3,3,5]", "!do not broadcast"},
    {"nn.matmul", "{}", "f32[] f32[3]", "!a has rank 0"},
    {"dft", "{}", "f32[2,8,1]", "f32[2,8,2]"},
    {"dft", "{\"onesided\": true}", "f32[2,A,1]", "f32[2,?,2]"},
    {"dft", "{\"onesided\": true}", "f32[2,A,1] i64[]=9", "f32[2,5,2]"},
    {"dft", "{\"axis\": -2}", "f64[2,8,A,2] i64[]", "f64[2,8,?,2]"},
    {"dft", "{}", "f32[2,8,1] i64[]=0", "!length is 0, expected 1 to 2^40"},
    {"dft", "{}", "f32[2,0,1]", "!dft: axis 1 has size 0, expected 1 or more"},
    {"dft", "{\"axis\": 2}", "f32[2,8,1]", "!axis 2 is the last, which holds real and imaginary parts"},
    {"dft", "{\"onesided\": true}", "f32[2,8,2]", "!onesided is true for complex numbers"},
    {"dft", "{}", "f32[2,8,3]", "!the last axis of x has size 3"},
    {"inverse", "{}", "f32[A,3,3]", "f32[A,3,3]"},
    {"inverse", "{}", "f32[3,4]", "!matrices are 3 by 4"},
    {"inverse", "{}", "f32[3]", "!x has rank 1, expected at least 2"},
    {"det", "{}", "f32[A,3,3]", "f32[A]"},
    {"det", "{}", "f32[3,4]", "!matrices are 3 by 4"},
    {"ml.pairwise_coupling", "{}", "f64[N,3]", "f64[N,3]"},
    {"ml.pairwise_coupling", "{}", "f32[4,1]", "f32[4,2]"},
    {"ml.pairwise_coupling", "{}", "f32[4,4]", "!x has 4 columns, expected one for each pair"},
    {"ml.pairwise_coupling", "{}", "f32[4,0]", "!x has 0 columns"},
    {"ml.pairwise_coupling", "{}", "f32[4,A]", "!columns, expected one for each pair"},
    {"ml.pairwise_coupling", "{}", "i64[4,3]", "!x has type int64"},
    {"ml.pairwise_coupling", "{}", "f32[3]", "!x has rank 1, expected 2"},
    {"ml.map", "{}", "i64[N,4] i64[3] f32[3] f32[]", "f32[N,4]"},
    {"ml.map", "{}", "str[2] str[3] i64[3] i64[]", "i64[2]"},
    {"ml.map", "{}", "f16[2] f16[3] i64[3] i64[]", "!x has type float16"},
    {"ml.map", "{}", "i64[2] i32[3] i64[3] i64[]", "!keys"},
    {"ml.map", "{}", "i64[2] i64[3] i64[2] i64[]", "!values has 2 elements, expected 3"},
    {"ml.map", "{}", "i64[2] i64[3] i64[3] f32[]", "!otherwise"},
    {"ml.map", "{}", "i64[2] i64[3] i64[3] i64[1]", "!otherwise"},
    {"ml.tree_ensemble", "{\"targets\": 3}", "f32[N,4] i32[2] i32[9,2] f32[9] u8[0] i32[7] f32[7]", "f32[N,3]"},
    {"ml.tree_ensemble", "{\"targets\": 1, \"aggregate\": \"max\"}", "f64[5,4] i32[2] i32[9,2] f64[9] u8[9] i32[7] f64[7]", "f64[5,1]"},
    {"ml.tree_ensemble", "{\"targets\": 1}", "i64[5,4] i32[2] i32[9,2] f64[9] u8[0] i32[7] f64[7]", "!x has type int64"},
    {"ml.tree_ensemble", "{\"targets\": 1}", "f32[5,4] i32[2] i32[9,2] f64[9] u8[0] i32[7] f32[7]", "!thresholds"},
    {"ml.tree_ensemble", "{\"targets\": 1}", "f32[5,4] i32[2] i32[9,3] f32[9] u8[0] i32[7] f32[7]", "!splits have 3 columns"},
    {"ml.tree_ensemble", "{\"targets\": 1}", "f32[5,4] i32[2] i32[9,2] f32[9] u8[8] i32[7] f32[7]", "!modes has 8 elements, expected 9"},
    {"ml.tree_ensemble", "{\"targets\": 1}", "f32[5,4] i32[2] i32[9,2] f32[9] u8[0] i32[7] f32[6]", "!weights has 6 elements, expected 7"},
    {"ml.tree_ensemble", "{\"targets\": 0}", "f32[5,4] i32[2] i32[9,2] f32[9] u8[0] i32[7] f32[7]", "!targets is 0"},
    {"einsum", "{\"equation\": \"bij, bjk -> bik\"}", "f32[A,2,3] f32[A,3,4]", "f32[A,2,4]"},
    {"einsum", "{\"equation\": \"ij,jk\"}", "f32[2,3] f32[3,4]", "f32[2,4]"},
    {"einsum", "{\"equation\": \"ii\"}", "f32[3,3]", "f32[]"},
    {"einsum", "{\"equation\": \"...ij,...jk->...ik\"}", "f32[5,1,2,3] f32[7,3,4]", "f32[5,7,2,4]"},
    {"einsum", "{\"equation\": \"ij,jk\"}", "f32[2,3] f32[4,4]", "!'j' is 3 and 4"},
    {"einsum", "{\"equation\": \"ij->ijk\"}", "f32[2,3]", "!'k' of the result is in no operand"},
    {"einsum", "{\"equation\": \"ij->ii\"}", "f32[2,3]", "!'i' of the result is repeated"},
    {"einsum", "{\"equation\": \"ij,jk\"}", "f32[2,3]", "!more than 1 terms"},
    {"einsum", "{\"equation\": \"ij\"}", "f32[2,3] f32[2,3]", "!fewer than 2 terms"},
    {"einsum", "{\"equation\": \"ij,jk\"}", "f32[2,3] i32[3,4]", "!operand 1 has type int32, expected float32"},
    {"einsum", "{\"equation\": \"...abcdef,ghijklm->abcdefghijklm\"}", "f32[2,1,1,1,1,1,1] f32[1,1,1,1,1,1,1]", "!the result has rank 13, expected at most 12"},
    {"einsum", "{\"equation\": \"i1\"}", "f32[2,3]", "!equation has '1'"},
    {"einsum", "{\"equation\": \"ijk\"}", "f32[2,3]", "!term 0 has 3 letters, expected 2, the rank of the operand"},
};

static const struct row shape_rows[] = {
    {"reshape", "{}", "f32[2,3,4] i64[2]=6,-1", "f32[6,4]"},
    {"reshape", "{}", "f32[A,3,4] i64[2]=0,-1", "f32[A,12]"},
    {"reshape", "{}", "f32[A,3,4] i64[2]=-1,12", "f32[A,12]"},
    {"reshape", "{}", "f32[A,3,4] i64[2]=-1,6", "f32[?,6]"},
    {"reshape", "{}", "f32[A,B,4] i64[3]=0,-1,2", "f32[A,?,2]"},
    {"reshape", "{}", "f32[A,B,4] i64[3]=0,-1,4", "f32[A,B,4]"},
    {"reshape", "{}", "f32[0,3,4] i64[2]=0,-1", "f32[0,12]"},
    {"reshape", "{\"allowzero\": true}", "f32[0,3] i64[2]=3,0", "f32[3,0]"},
    {"reshape", "{\"allowzero\": true}", "f32[0,3] i64[2]=0,-1", "!does not fit shape (0, -1)"},
    {"reshape", "{}", "f32[2,3] i64[2]", "f32[?,?]"},
    {"reshape", "{}", "f32[2,3] i64[A]", "!length of shape is symbolic"},
    {"reshape", "{}", "f32[2,3] i64[0]=", "!does not fit shape ()"},
    {"reshape", "{}", "f32[1] i64[0]=", "f32[]"},
    {"reshape", "{}", "f32[2,3] i64[2]=4,2", "!x of shape (2, 3) does not fit shape (4, 2)"},
    {"reshape", "{}", "f32[2,3] i64[2]=4,-1", "!does not fit"},
    {"reshape", "{}", "f32[2,3] i64[2]=-1,-1", "!shape[1] is -1"},
    {"reshape", "{}", "f32[2,3] i64[3]=2,3,0", "!shape[2] is 0 and x has rank 2"},
    {"reshape", "{}", "f32[2] i64[2]=4611686018427387904,4", "!does not fit"},
    {"reshape", "{}", "f32[0,5] i64[2]=4611686018427387904,4", "!does not fit"},
    {"reshape", "{}", "f32[0,5] i64[2]=0,7", "f32[0,7]"},
    {"reshape", "{}", "f32[2,5] i64[2]=0,7", "!does not fit"},
    {"reshape", "{}", "f32[2,0,5] i64[3]=4,0,3", "f32[4,0,3]"},
    {"reshape", "{}", "f32[0,5] i64[2]=0,4611686018427387904", "!more than 2^40 elements, counting a size of 0 as 1"},
    {"reshape", "{\"allowzero\": true}", "f32[0,5] i64[2]=4611686018427387904,0", "!more than 2^40 elements, counting a size of 0 as 1"},
    {"reshape", "{}", "f32[A] i64[3]=4611686018427387904,4,-1", "!more than 2^40 elements, expected"},
    {"reshape", "{}", "f32[2] f32[2]=1,2", "!shape has type float32, expected int32 or int64"},
    {"squeeze", "{}", "f32[1,A,1,3]", "f32[A,3]"},
    {"squeeze", "{\"axis\": [-1, 0]}", "f32[1,2,A]", "f32[2]"},
    {"squeeze", "{\"axis\": [1], \"exact\": true}", "f32[A,1,3]", "f32[A,3]"},
    {"squeeze", "{\"exact\": true}", "f32[A,3]", "f32[A,3]"},
    {"squeeze", "{\"axis\": [1], \"exact\": true}", "f32[1,1,3]", "!axis 0 has size 1: Squeeze without axes would remove it"},
    {"squeeze", "{\"axis\": [1]}", "f32[1,2]", "!axis 1 has size 2, expected 1"},
    {"dyn.squeeze", "{}", "f32[1,A,2] i64[1]", "f32[?,?]"},
    {"dyn.squeeze", "{}", "f32[1,A,2] i64[2]=0,-2", "f32[2]"},
    {"dyn.squeeze", "{}", "f32[1,2] i64[1]=1", "!axis 1 has size 2, expected 1"},
    {"dyn.squeeze", "{}", "f32[1,2] f32[1]", "!axes has type float32"},
    {"dyn.expand_dims", "{}", "f32[A] i64[2]", "f32[?,?,?]"},
    {"dyn.expand_dims", "{}", "f32[A] i64[2]=-1,0", "f32[1,A,1]"},
    {"dyn.expand_dims", "{}", "f32[A] i64[2]=0,-3", "!axes names axis 0 twice"},
    {"dyn.expand_dims", "{}", "f32[A] i64[13]", "!found 13 axes, expected at most"},
    {"expand_dims", "{\"axis\": [0, -1]}", "f32[A]", "f32[1,A,1]"},
    {"expand_dims", "{\"axis\": [3]}", "f32[A]", "!axis 3 is out of range for rank 2"},
    {"expand_dims", "{\"axis\": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]}", "f32[A]", "!the result has rank 13"},
    {"nn.flatten", "{}", "f32[A,3,4]", "f32[A,12]"},
    {"nn.flatten", "{\"axis\": 0}", "f32[3,4]", "f32[1,12]"},
    {"nn.flatten", "{\"axis\": 2}", "f32[A,B]", "f32[?,1]"},
    {"nn.flatten", "{\"axis\": 3}", "f32[3,4]", "!axis 3 is out of range for rank 2, expected -2 to 2"},
    {"transpose", "{}", "f32[A,3,4]", "f32[4,3,A]"},
    {"transpose", "{\"axes\": [0, -1, 1]}", "f32[A,3,4]", "f32[A,4,3]"},
    {"transpose", "{\"axes\": [0, 1]}", "f32[A,3,4]", "!axes has 2 entries, expected 3 or none"},
    {"transpose", "{\"axes\": [0, 0]}", "f32[3,4]", "!names axis 0 twice"},
    {"broadcast_to", "{}", "f32[3,1] i64[3]=2,1,4", "f32[2,3,4]"},
    {"broadcast_to", "{}", "f32[A] i64[1]=1", "f32[A]"},
    {"broadcast_to", "{}", "f32[3] i64[2]", "f32[?,3]"},
    {"broadcast_to", "{}", "f32[3] i64[1]=2", "!do not broadcast"},
    {"broadcast_to", "{}", "f32[3] i64[1]=-1", "!shape[0] is -1"},
    {"tile", "{}", "f32[A,3] i64[2]=1,2", "f32[A,6]"},
    {"tile", "{}", "f32[A,3] i64[2]=2,0", "f32[?,0]"},
    {"tile", "{}", "f32[2,3] i64[2]=1,-1", "!repeats[1] is -1"},
    {"tile", "{}", "f32[2,3] i64[1]=1", "!repeats has 1 elements, expected 2"},
    {"tile", "{}", "f32[2] i64[1]=9223372036854775807", "!more than 2^40"},
    {"nn.depth_to_space", "{\"block_size\": 2}", "f32[A,8,H,3]", "f32[A,2,?,6]"},
    {"nn.depth_to_space", "{\"block_size\": 3}", "f32[1,8,2,2]", "!axis 1 has size 8, expected a multiple of 9"},
    {"nn.depth_to_space", "{\"block_size\": 2, \"mode\": \"X\"}", "f32[1,8,2,2]", "!mode is \"X\""},
    {"nn.space_to_depth", "{\"block_size\": 2}", "f32[1,2,4,6]", "f32[1,8,2,3]"},
    {"nn.space_to_depth", "{\"block_size\": 0}", "f32[1,2,4,6]", "!block_size is 0"},
    {"shape_of", "{}", "f32[A,3,4]", "i64[3]"},
    {"shape_of", "{\"start\": -2, \"end\": 2}", "f32[A,3,4]", "i64[1]"},
    {"shape_of", "{\"start\": 5}", "f32[A,3,4]", "i64[0]"},
    {"size_of", "{}", "f32[A,3]", "i64[]"},
    {"full", "{\"dtype\": \"int8\"}", "i64[2]=2,3", "i8[2,3]"},
    {"full", "{}", "i64[2]", "f32[?,?]"},
    {"full", "{}", "i64[1]=-2", "!shape[0] is -2"},
    {"full", "{}", "i64[2]=1099511627776,2", "!more than 2^40"},
    {"arange", "{}", "i64[]=0 i64[]=10 i64[]=3", "i64[4]"},
    {"arange", "{}", "i64[]=10 i64[]=0 i64[]=-3", "i64[4]"},
    {"arange", "{}", "i64[]=0 i64[]=-5 i64[]=1", "i64[0]"},
    {"arange", "{}", "f32[]=1 f32[]=5 f32[]=2", "f32[2]"},
    {"arange", "{}", "i64[] i64[]=5 i64[]=2", "i64[?]"},
    {"arange", "{}", "i64[]=0 i64[]=5 i64[]=0", "!delta is 0, expected another number"},
    {"arange", "{}", "f32[]=0 f32[]=5 f32[]=0", "!delta is 0, expected another number"},
    {"arange", "{}", "i64[]=-9223372036854775807 i64[]=9223372036854775807 i64[]=1", "!by 1, expected at most 2^40 elements"},
    {"arange", "{}", "i64[2] i64[] i64[]", "!start has shape (2,), expected a scalar"},
    {"arange_like", "{\"axis\": 0}", "f32[A,3]", "i64[A]"},
    {"arange_like", "{\"axis\": -1}", "f32[A,3]", "i64[3]"},
    {"arange_like", "{\"axis\": 2}", "f32[A,3]", "!axis 2 is out of range for rank 2, expected -2 to 1"},
    {"eye_like", "{\"dtype\": \"float32\"}", "i32[A,3]", "f32[A,3]"},
    {"eye_like", "{\"dtype\": \"float32\"}", "i32[3]", "!x has rank 1, expected 2"},
};

static const struct row movement_rows[] = {
    {"concatenate", "{\"axis\": 1}", "f32[A,2] f32[3,4] f32[A,1]", "f32[3,7]"},
    {"concatenate", "{}", "f32[A,2] f32[3,2]", "f32[?,2]"},
    {"concatenate", "{}", "f32[2,2] f32[3,3]", "!operand 1 has size 3 on axis 1, expected 2"},
    {"concatenate", "{}", "f32[2] i32[2]", "!operand 1 has type int32"},
    {"concatenate", "{}", "f32[] f32[]", "!axis 0 is out of range for rank 0"},
    {"split", "{\"sizes\": [1, 2], \"axis\": -1}", "f32[A,3]", "f32[A,1] f32[A,2]"},
    {"dyn.split", "{\"axis\": 1}", "f32[A,3] i64[2]", "f32[A,?] f32[A,?]"},
    {"dyn.split", "{\"axis\": 1}", "f32[A,3] i64[2]=0,3", "f32[A,0] f32[A,3]"},
    {"dyn.split", "{}", "f32[3] i64[2]=2,2", "!sizes sum to 4, expected 3, the size of axis 0"},
    {"dyn.split", "{}", "f32[3] i64[N]", "!the number of parts is not known"},
    {"unique", "{\"axis\": -1}", "f32[A,3]", "f32[A,?] i64[?] i64[3] i64[?]"},
    {"unique", "{\"flat\": true}", "bool[4,3]", "bool[?] i64[?] i64[12] i64[?]"},
    {"unique", "{\"flat\": true}", "f32[2]=1,1", "f32[?] i64[?] i64[2] i64[?]"},
    {"unique", "{\"axis\": 2}", "f32[A,3]", "!axis 2 is out of range for rank 2"},
    {"split", "{\"sizes\": [3]}", "f32[A]", "f32[3]"},
    {"split", "{\"sizes\": [1, 1]}", "f32[3]", "!sizes sum to 2, expected 3, the size of axis 0"},
    {"split", "{\"sizes\": [4, -1]}", "f32[3]", "!sizes[1] is -1"},
    {"split", "{\"sizes\": []}", "f32[3]", "!sizes has 0 entries"},
    {"strided_slice", "{}", "f32[5,6] i64[1]=1 i64[1]=4 i64[1]=0 i64[1]=2", "f32[2,6]"},
    {"strided_slice", "{}", "f32[5,A] i64[1]=0 i64[1]=9223372036854775807 i64[1]=1 i64[1]=1", "f32[5,A]"},
    {"strided_slice", "{}", "f32[5,A] i64[1]=1 i64[1]=9223372036854775807 i64[1]=-1 i64[1]=1", "f32[5,?]"},
    {"strided_slice", "{}", "f32[5] i64[1]=-1 i64[1]=-9223372036854775808 i64[1]=0 i64[1]=-1", "f32[5]"},
    {"strided_slice", "{}", "f32[5] i64[1]=4 i64[1]=0 i64[1]=0 i64[1]=-9223372036854775808", "f32[1]"},
    {"strided_slice", "{}", "f32[0] i64[1]=0 i64[1]=9 i64[1]=0 i64[1]=-1", "f32[0]"},
    {"strided_slice", "{}", "f32[5] i64[1]=3 i64[1]=1 i64[1]=0 i64[1]=1", "f32[0]"},
    {"strided_slice", "{}", "f32[5,6] i64[1] i64[1]=4 i64[1]=0 i64[1]=1", "f32[?,6]"},
    {"strided_slice", "{}", "f32[5,6] i64[1]=0 i64[1]=4 i64[1] i64[1]=1", "f32[?,?]"},
    {"strided_slice", "{}", "f32[5] i64[1]=0 i64[1]=4 i64[1]=0 i64[1]=0", "!strides[0] is 0"},
    {"strided_slice", "{}", "f32[5] i64[1]=0 i64[1]=4 i64[1]=1 i64[1]=1", "!axis 1 is out of range"},
    {"strided_slice", "{}", "f32[5,5] i64[2]=0,0 i64[2]=4,4 i64[2]=0,-2 i64[2]=1,1", "!axis 0 twice"},
    {"strided_slice", "{}", "f32[5] i64[2]=0,0 i64[2]=4,4 i64[2]=0,0 i64[2]=1,1", "!found 2 axes, expected at most 1, the rank of x"},
    {"take", "{\"axis\": 1}", "f32[A,3,4] i64[B,2]", "f32[A,B,2,4]"},
    {"take", "{}", "f32[3] i32[]", "f32[]"},
    {"take", "{}", "f32[3] f32[1]", "!indices has type float32"},
    {"take", "{}", "f32[1,1,1,1,1,1,1] i64[1,1,1,1,1,1,1]", "!the result has rank 13"},
    {"gather", "{\"axis\": 1}", "f32[3,4] i64[2,9]", "f32[2,9]"},
    {"gather", "{\"axis\": 1}", "f32[3,4] i64[5,1]", "!indices have size 5 on axis 0, expected at most 3, as x has"},
    {"gather", "{}", "f32[3,4] i64[5]", "!indices has rank 1, expected 2"},
    {"gather_nd", "{}", "f32[2,3,4] i64[A,2]", "f32[A,4]"},
    {"gather_nd", "{\"batch_dims\": 1}", "f32[2,3,4] i64[2,1]", "f32[2,4]"},
    {"gather_nd", "{\"batch_dims\": 1}", "f32[2,3,4] i64[3,1]", "!batch axis 0 has size 2 in x and 3"},
    {"gather_nd", "{}", "f32[2,3] i64[1,3]", "!positions of 3 axes, expected 1 to 2"},
    {"gather_nd", "{}", "f32[2,3] i64[1,A]", "!last dim of indices is not known"},
    {"gather_nd", "{\"batch_dims\": -1}", "f32[2,3] i64[1,1]", "!batch_dims is -1"},
    {"scatter_elements", "{}", "f32[3,A] i64[1,2] f32[1,2]", "f32[3,A]"},
    {"scatter_elements", "{}", "f32[3,4] i64[1,2] f32[1,3]", "!updates have size 3 on axis 1, expected 2"},
    {"scatter_elements", "{\"reduction\": \"sub\"}", "f32[3] i64[1] f32[1]", "!reduction is \"sub\""},
    {"scatter_elements", "{\"reduction\": \"add\"}", "bool[3] i64[1] bool[1]", "!x has type bool"},
    {"scatter_nd", "{}", "f32[4,5] i64[2,1] f32[2,5]", "f32[4,5]"},
    {"scatter_nd", "{}", "f32[4,5] i64[2,1] f32[2,4]", "!updates have size 4 on axis 1, expected 5"},
    {"nn.cache_append", "{}", "f32[2,3,5,4] f32[2,3,1,4] i64[2] i64[]=9", "f32[2,3,9,4]"},
    {"nn.cache_append", "{}", "f16[2,3,5,4] f16[2,3,1,4] i64[2] i64[]=3", "f16[2,3,5,4]"},
    {"nn.cache_append", "{\"grows\": false}", "f32[A,3,B,4] f32[A,3,C,4] i64[A] i64[]", "f32[A,3,B,4]"},
    {"nn.cache_append", "{\"grows\": false}", "f32[2,3,5,4] f32[2,3,1,4] i64[2] i64[]=6", "!total is 6, expected at most 5"},
    {"nn.cache_append", "{}", "f32[2,3,5,4] f32[2,2,1,4] i64[2] i64[]=6", "!axis 1 of new is 2, expected 3"},
    {"nn.cache_append", "{}", "f32[2,3,5,4] f16[2,3,1,4] i64[2] i64[]=6", "!new has type float16"},
    {"nn.cache_append", "{}", "f32[2,3,5,4] f32[2,3,1,4] i64[3] i64[]=6", "!lengths has 3 elements, expected 2"},
    {"nn.cache_append", "{}", "f32[2,3,5,4] f32[2,3,1,4] i64[2] f32[]", "!total has type float32"},
    {"scatter_nd", "{}", "f32[4,5] i64[2,1] i32[2,5]", "!updates has type int32"},
    {"one_hot", "{}", "i64[A] i64[]=5 f32[2]", "f32[A,5]"},
    {"one_hot", "{\"axis\": 0}", "i64[A,3] i64[] f32[2]", "f32[?,A,3]"},
    {"one_hot", "{}", "i64[A] i64[]=-5 f32[2]", "!depth is -5"},
    {"one_hot", "{}", "i64[A] i64[]=2000000000001 f32[2]", "!depth is 2000000000001, "},
    {"one_hot", "{}", "i64[A] i64[]=5 f32[3]", "!values have 3 elements"},
    {"topk", "{}", "f32[A,9] i64[1]=4", "f32[A,4] i64[A,4]"},
    {"topk", "{\"axis\": 0}", "f32[A,9] i64[]", "f32[?,9] i64[?,9]"},
    {"topk", "{}", "f32[A,3] i64[1]=4", "!k is 4, expected 0 to the 3 elements of axis 1"},
    {"nonzero", "{}", "f32[3,3]", "i64[2,?]"},
    {"nonzero", "{}", "f32[4]=1,0,2,0", "i64[1,2]"},
    {"compress", "{\"axis\": 1}", "f32[3,4] bool[3]=1,0,1", "f32[3,2]"},
    {"compress", "{\"flat\": true}", "f32[3,4] bool[12]", "f32[?]"},
    {"compress", "{\"axis\": 1}", "f32[3,4] bool[5]", "!condition has 5 elements, expected at most 4, as x has"},
    {"compress", "{}", "f32[3,4] i64[3]", "!condition has type int64, expected bool"},
};

static const struct row vision_rows[] = {
    {"dyn.resize", "{}", "f32[4,4] i64[2]=3,5 f32[4]", "f32[3,5]"},
    {"dyn.resize", "{}", "f32[4,4] f32[2]=2,2 f32[4]", "f32[?,?]"},
    {"dyn.resize", "{}", "f32[4,4] f32[2]=2,2 f32[4]=0,0,1,0", "f32[8,0]"},
    {"dyn.resize", "{}", "f32[4,4] i64[2]=3,5 f32[2]", "!roi has 2 entries, expected 4"},
    {"dyn.resize", "{\"coordinate_transformation_mode\": \"half_pixel\"}", "f32[4] i64[1]=3 f32[2]", "!coordinate_transformation_mode is \"half_pixel\""},
    {"image.resize", "{}", "f32[1,3,4,4] f32[4]=1,1,2,2", "f32[1,3,8,8]"},
    {"image.resize", "{}", "f32[A,3,4,H] f32[4]=1,1,2,2", "f32[A,3,8,?]"},
    {"image.resize", "{}", "f32[1,3,4,4] i64[4]=1,3,5,6", "f32[1,3,5,6]"},
    {"image.resize", "{}", "f32[1,3,4,4] i64[4]", "f32[?,?,?,?]"},
    {"image.resize", "{}", "bool[4] f32[1]=2", "bool[8]"},
    {"image.resize", "{}", "str[4] f32[1]=2", "str[8]"},
    {"image.resize", "{\"mode\": \"linear\"}", "str[4] f32[1]=2", "!x has type string"},
    {"image.resize", "{\"coordinate_transformation_mode\": \"tf_crop_and_resize\", \"roi\": [0.5, 1.0]}", "str[4] f32[1]=2", "!x has type string"},
    {"image.resize", "{}", "f32[4] f32[1]=0", "!scales[0] is 0"},
    {"image.resize", "{}", "f32[4] f32[1]=1000000000000", "!at most 2^40"},
    {"image.resize", "{}", "f32[4] i64[1]=-1", "!sizes[0] is -1"},
    {"image.resize", "{}", "f32[0] i64[1]=3", "!axis 0 is empty"},
    {"image.resize", "{}", "f32[4,4] f32[1]=2", "!have 1 elements, expected 2"},
    {"image.resize", "{\"mode\": \"area\"}", "f32[4] f32[1]=2", "!mode is \"area\""},
    {"image.resize", "{\"coordinate_transformation_mode\": \"tf_crop_and_resize\"}", "f32[4] f32[1]=2", "!roi has 0 entries, expected 2"},
    {"image.resize", "{\"coordinate_transformation_mode\": \"tf_crop_and_resize\", \"roi\": [0.5, 1.0]}", "f32[4] f32[1]=2", "f32[4]"},
    {"image.grid_sample", "{}", "f32[A,3,4,4] f32[2,5,6,2]", "f32[2,3,5,6]"},
    {"image.grid_sample", "{}", "f32[1,3,4,4] f32[1,5,6,3]", "!grid has 3 coordinates"},
    {"image.grid_sample", "{}", "f32[A,3,4,4,5] f32[2,5,6,7,3]", "f32[2,3,5,6,7]"},
    {"image.grid_sample", "{}", "f32[1,3,4,4,5] f32[2,5,6,7,2]", "!grid has 2 coordinates, expected 3"},
    {"image.grid_sample", "{}", "f32[1,3,4] f32[1,4,1]", "!x has rank 3, expected 4 or 5"},
    {"image.grid_sample", "{\"mode\": \"bicubic\"}", "f32[1,3,4,4,5] f32[1,5,6,7,3]", "!mode is \"bicubic\""},
    {"image.grid_sample", "{}", "f32[1,3,4,4] f32[2,5,6,2]", "!grid has batch size 2, expected 1, as x"},
    {"vision.roi_pool", "{\"pooled_size\": [2, 3]}", "f32[1,8,4,4] f32[A,5]", "f32[A,8,2,3]"},
    {"vision.roi_pool", "{\"pooled_size\": [2, 3]}", "f32[1,8,4,4] f32[A,4]", "!rois have 4 numbers, expected 5"},
    {"vision.roi_pool", "{\"pooled_size\": [2]}", "f32[1,8,4,4] f32[A,5]", "!pooled_size"},
    {"text.normalize", "{}", "str[A]", "str[?]"},
    {"text.normalize", "{}", "str[1,4]", "str[1,?]"},
    {"text.normalize", "{}", "str[2,4]", "!x has shape (2, 4), expected (n,) or (1, n)"},
    {"text.normalize", "{}", "f32[4]", "!x has type float32, expected string"},
    {"text.normalize", "{\"case\": \"title\"}", "str[4]", "!expected one of NONE|LOWER|UPPER"},
    {"text.concatenate", "{}", "str[A,1] str[3]", "str[A,3]"},
    {"text.concatenate", "{}", "str[2] f32[2]", "!b has type float32, expected string"},
    {"text.concatenate", "{}", "str[2] str[3]", "!shapes (2,) and (3,) do not broadcast"},
    {"text.split", "{}", "str[2,A]", "str[2,A,?] i64[2,A]"},
    {"text.split", "{\"maxsplit\": -1}", "str[2]", "!maxsplit is -1, expected 0 or more"},
    {"text.split", "{}", "i32[2]", "!x has type int32, expected string"},
    {"text.matches", "{\"pattern\": \"a\"}", "str[A]", "bool[A]"},
    {"text.matches", "{\"pattern\": \"a\"}", "f32[A]", "!x has type float32, expected string"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [0, 4], \"pool_int64s\": [5, 6, 7]}", "i64[A,9]", "f32[A,5]"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [0, 4], \"pool_int64s\": [5, 6, 7]}", "i32[9]", "f32[5]"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [0, 4], \"pool_int64s\": [5, 6, 7]}", "str[9]", "!x has type string and pool_int64s has 3 entries"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 2], \"ngram_indexes\": [0, 4], \"pool_int64s\": [5, 6, 7]}", "i32[9]", "!ngram_counts[1] is 2 and the next entry or end 3"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 3, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [0, 4], \"pool_int64s\": [5, 6, 7]}", "i32[9]", "!min_gram_length is 1 and max_gram_length 3, expected 1 to 2"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [0], \"pool_int64s\": [5, 6, 7]}", "i32[9]", "!found 1 ngram_indexes, expected one for each of the 2 n-grams"},
    {"text.tf_idf", "{\"mode\": \"TF\", \"min_gram_length\": 1, \"max_gram_length\": 2, \"max_skip_count\": 0, \"ngram_counts\": [0, 1], \"ngram_indexes\": [], \"pool_int64s\": [5, 6, 7]}", "i32[9]", "!found 0 ngram_indexes, expected 1 or more"},
    {"equal", "{}", "str[2] str[1]", "bool[2]"},
    {"random.uniform", "{\"dtype\": \"float16\"}", "i64[2]=4,3", "f16[4,3]"},
    {"random.normal", "{}", "i64[2]", "f32[?,?]"},
    {"random.normal", "{\"dtype\": \"int32\"}", "i64[2]=4,3", "!dtype is int32, expected a floating-point type"},
    {"random.multinomial", "{\"sample_size\": 7}", "f32[A,4]", "i32[A,7]"},
    {"random.multinomial", "{\"sample_size\": 0}", "f32[A,4]", "!sample_size is 0"},
    {"random.multinomial", "{\"dtype\": \"float32\"}", "f32[A,4]", "!dtype is float32, expected int32 or int64"},
    {"random.multinomial", "{}", "f32[A,0]", "!logits has 0 classes"},
    {"vision.roi_align", "{\"output_height\": 2, \"output_width\": 3}", "f32[1,8,4,4] f32[A,4] i64[A]", "f32[A,8,2,3]"},
    {"vision.roi_align", "{}", "f32[1,8,4,4] f32[5,4] i64[4]", "!batch indices has 4 elements, expected 5"},
    {"vision.roi_align", "{\"output_height\": 0}", "f32[1,8,4,4] f32[5,4] i64[5]", "!output is 0 by 1"},
    {"vision.roi_align", "{\"output_height\": 2199023255552}", "f32[1,8,4,4] f32[5,4] i64[5]", "!more than 2^40"},
    {"vision.non_max_suppression", "{}", "f32[1,6,4] f32[1,1,6] i64[1]=3", "i64[?,3]"},
    {"vision.non_max_suppression", "{}", "f32[1,2,4]=0,0,1,1,0,0,2,2 f32[1,1,2]=1,2 i64[1]=3", "i64[?,3]"},
    {"vision.non_max_suppression", "{}", "f32[1,6,4] f32[1,1,6]", "i64[0,3]"},
    {"vision.non_max_suppression", "{}", "f32[1,6,4] f32[1,1,5] i64[1]", "!scores are for 5 boxes, expected 6"},
    {"vision.non_max_suppression", "{}", "f32[1,6,3] f32[1,1,6] i64[1]", "!boxes have 3 coordinates"},
};

static const struct row list_rows[] = {
    {"custom", "{\"op\": \"ops.Mix@1\"}", "f32[2]", "!no open plug-in has this operator"},
    {"sequence.make", "{}", "", "seq(f32[-])"},
    {"sequence.make", "{\"dtype\": \"int64\"}", "", "seq(i64[-])"},
    {"sequence.make", "{}", "i64[2,3] i64[2,3]", "seq(i64[2,3])"},
    {"sequence.make", "{}", "f32[2,3] f32[2,A]", "seq(f32[2,*])"},
    {"sequence.make", "{}", "f32[2,3] f32[2]", "seq(f32[..])"},
    {"sequence.make", "{}", "f32[2] i64[2]", "!operand 1 has type int64, expected float32, as the sequence's elements"},
    {"sequence.make", "{}", "seq(f32[2])", "!operand 0 is a sequence, expected a tensor"},
    {"sequence.insert", "{}", "seq(f32[-]) f32[2,A]", "seq(f32[2,*])"},
    {"sequence.insert", "{}", "seq(f32[2,3]) f32[2,4] i32[]", "seq(f32[2,*])"},
    {"sequence.insert", "{}", "seq(f32[2,3]) f32[2] i64[1]", "seq(f32[..])"},
    {"sequence.insert", "{}", "seq(f32[2,3]) str[2]", "!operand 1 has type string, expected float32, as the sequence's elements"},
    {"sequence.insert", "{}", "f32[2,3] f32[2]", "!operand 0 is a tensor, expected a sequence"},
    {"sequence.insert", "{}", "seq(f32[2]) f32[2] f32[]", "!position has type float32"},
    {"sequence.erase", "{}", "seq(str[2])", "seq(str[2])"},
    {"sequence.erase", "{}", "seq(str[2]) i64[]", "seq(str[2])"},
    {"sequence.erase", "{}", "seq(str[2]) i64[2]", "!position has shape (2,), expected a scalar"},
    {"sequence.erase", "{}", "opt(str[2])", "!operand 0 is an optional, expected a sequence"},
    {"sequence.at", "{}", "seq(f32[2,*]) i64[]", "f32[2,?]"},
    {"sequence.at", "{}", "seq(f32[..]) i64[]", "!the rank of operand 0's elements is not known"},
    {"sequence.at", "{}", "seq(f32[2]) seq(i64[])", "!operand 1 is a sequence, expected a tensor"},
    {"sequence.length", "{}", "seq(f32[..])", "i64[]"},
    {"sequence.length", "{}", "f32[2]", "!operand 0 is a tensor, expected a sequence"},
    {"sequence.split", "{}", "f32[A,3]", "seq(f32[1,3])"},
    {"sequence.split", "{\"axis\": -1, \"keepdims\": false}", "f32[2,3]", "seq(f32[2])"},
    {"sequence.split", "{\"axis\": 1, \"keepdims\": false}", "f32[2,3] i64[2]", "seq(f32[2,*])"},
    {"sequence.split", "{\"axis\": 2}", "f32[2,3]", "!axis 2 is out of range"},
    {"sequence.split", "{}", "f32[]", "!x has rank 0, expected at least 1"},
    {"sequence.split", "{}", "f32[2,3] i64[1,2]", "!sizes have rank 2, expected 0 or 1"},
    {"sequence.split", "{}", "f32[2,3] f32[2]", "!sizes has type float32"},
    {"sequence.concatenate", "{\"axis\": 0}", "seq(f32[2,3])", "f32[?,3]"},
    {"sequence.concatenate", "{\"axis\": -1, \"new_axis\": true}", "seq(f32[2,*])", "f32[2,?,?]"},
    {"sequence.concatenate", "{\"axis\": 0, \"allow_empty\": true}", "seq(f32[2,3])", "f32[?,3]"},
    {"sequence.concatenate", "{\"axis\": 2}", "seq(f32[2,3])", "!axis 2 is out of range for rank 2"},
    {"sequence.concatenate", "{\"axis\": 0}", "seq(f32[-])", "!the rank of operand 0's elements is not known"},
    {"sequence.concatenate", "{\"axis\": 0, \"new_axis\": true}", "seq(seq(f32[2]))", "!an element of operand 0 is a sequence, expected a tensor"},
    {"optional.make", "{}", "f32[2,A]", "opt(f32[2,*])"},
    {"optional.make", "{}", "seq(f32[..])", "opt(seq(f32[..]))"},
    {"optional.make", "{}", "opt(f32[2])", "!operand 0 is an optional, expected a tensor or a sequence"},
    {"optional.none", "{\"dtype\": \"bool\"}", "", "opt(bool[-])"},
    {"optional.none", "{\"dtype\": \"bool\", \"sequence\": true}", "", "opt(seq(bool[-]))"},
    {"optional.has", "{}", "opt(seq(f32[2]))", "bool[]"},
    {"optional.has", "{}", "seq(f32[2])", "!operand 0 is a sequence, expected an optional"},
    {"optional.get", "{}", "opt(f32[2,*])", "f32[2,?]"},
    {"optional.get", "{}", "opt(seq(f32[..]))", "seq(f32[..])"},
    {"optional.get", "{}", "opt(f32[-])", "!the rank of operand 0's elements is not known"},
};
/* clang-format on */

static const struct {
    const char *name;
    enum byoc_dtype dtype;
} dtypes[] = {
    {"i4", BYOC_I4},     {"f32", BYOC_F32},    {"f16", BYOC_F16},
    {"f64", BYOC_F64},   {"i8", BYOC_I8},      {"u8", BYOC_U8},
    {"i32", BYOC_I32},   {"i64", BYOC_I64},    {"u64", BYOC_U64},
    {"bool", BYOC_BOOL}, {"str", BYOC_STRING},
};

/* The operands of a row. */
struct operands {
    struct byi_arena *arena;
    uint32_t n;
    const struct byi_type *types[MAX_IN];
    const struct byi_tensor *values[MAX_IN];
    int64_t symbol;
};

static enum byoc_dtype read_dtype(const char **at)
{
    for (size_t i = 0; i < BYI_COUNT(dtypes); i++) {
        const size_t n = strlen(dtypes[i].name);
        if (strncmp(*at, dtypes[i].name, n) == 0 && (*at)[n] == '[') {
            *at += n + 1;
            return dtypes[i].dtype;
        }
    }
    fail_msg("found '%s', expected a type", *at);
    return BYOC_NONE;
}

/* An int64 is written exactly, which byi_tensor_set cannot. */
static void set_value(struct byi_tensor *t, int64_t i, int64_t value)
{
    if (t->dtype == BYOC_I64)
        ((int64_t *)t->data)[i] = value;
    else
        byi_tensor_set(t, i, (double)value);
}

/* Read dims such as "2,A,3]" into t. Returns the kind of the type. */
static enum byi_type_kind read_dims(const char **at, struct byi_tensor *t)
{
    enum byi_type_kind kind = BYI_TENSOR;
    for (; **at != ']'; *at += **at == ',') {
        char *end = NULL;
        if (strncmp(*at, "..", 2) == 0)
            kind = BYI_ANY_TENSOR, *at += 2;
        else if (**at == '-')
            kind = BYI_NO_TENSOR, *at += 1;
        else if (**at == '*')
            t->dims[t->rank++] = BYI_ANY_DIM, *at += 1;
        else if (**at >= 'A' && **at <= 'Z')
            t->dims[t->rank++] = -1 - (*(*at)++ - 'A');
        else
            t->dims[t->rank++] = strtoll(*at, &end, 10), *at = end;
    }
    *at += 1;
    return kind;
}

static const struct byi_type *read_type(struct operands *o, const char **at,
                                        struct byi_tensor *t)
{
    enum byi_type_kind lists[4], kind;
    uint32_t n = 0;
    for (; strncmp(*at, "seq(", 4) == 0 || strncmp(*at, "opt(", 4) == 0;
         *at += 4)
        lists[n++] = **at == 's' ? BYI_SEQ : BYI_OPTIONAL;
    t->dtype = read_dtype(at);
    kind = read_dims(at, t);
    const struct byi_type *type =
        kind == BYI_TENSOR
            ? byi_type_tensor(o->arena, t->dtype, t->rank, t->dims)
            : byi_type_of_any(o->arena, kind, t->dtype);
    for (; n; n--, ++*at)
        type = byi_type_list(o->arena, lists[n - 1], type);
    return type;
}

static const char *read_operand(struct operands *o, const char *at)
{
    struct byi_tensor *t = byi_arena_calloc(o->arena, 1, sizeof *t);
    o->types[o->n] = read_type(o, &at, t);
    if (*at == '=') {
        at++;
        t->data = byi_arena_calloc(o->arena, MAX_VALUES, sizeof(int64_t));
        for (int64_t i = 0; *at && *at != ' '; i++) {
            char *end = NULL;
            assert_true(i < MAX_VALUES);
            set_value(t, i, strtoll(at, &end, 10));
            at = end + (*end == ',');
        }
        o->values[o->n] = t;
    }
    o->n++;
    return at + (*at == ' ');
}

static int64_t new_symbol(void *ctx)
{
    struct operands *o = ctx;
    return o->symbol--;
}

static void print_dim(struct byi_text *text, int64_t dim)
{
    if (dim == BYI_ANY_DIM)
        byi_text_add(text, "*", 1);
    else if (dim <= FIRST_NEW)
        byi_text_add(text, "?", 1);
    else if (dim < 0)
        byi_text_addf(text, "%c", (char)('A' - 1 - dim));
    else
        byi_text_addf(text, "%lld", (long long)dim);
}

static void print_tensor(struct byi_text *text, const struct byi_type *type)
{
    for (size_t i = 0; i < BYI_COUNT(dtypes); i++)
        if (dtypes[i].dtype == type->dtype)
            byi_text_addf(text, "%s[", dtypes[i].name);
    if (type->kind == BYI_ANY_TENSOR)
        byi_text_addf(text, "..");
    else if (type->kind == BYI_NO_TENSOR)
        byi_text_addf(text, "-");
    for (uint32_t i = 0; i < type->rank; i++) {
        if (i)
            byi_text_add(text, ",", 1);
        print_dim(text, type->dims[i]);
    }
    byi_text_add(text, "]", 1);
}

static void print_type(struct byi_text *text, const struct byi_type *type)
{
    if (byi_type_is_list(type)) {
        byi_text_addf(text, "%s", type->kind == BYI_SEQ ? "seq(" : "opt(");
        print_type(text, type->fields[0]);
        byi_text_add(text, ")", 1);
    } else if (type->kind == BYI_TUPLE) {
        for (uint32_t i = 0; i < type->n_fields; i++) {
            if (i)
                byi_text_add(text, " ", 1);
            print_type(text, type->fields[i]);
        }
    } else {
        print_tensor(text, type);
    }
}

static enum byoc_status infer(const struct row *row, struct operands *o,
                              const struct byi_type **out,
                              struct byoc_error *err)
{
    struct cJSON *json = NULL;
    const struct byi_attrs *attrs = NULL;
    const struct byi_op *op = byi_op_of_name(row->op, strlen(row->op));
    assert_non_null(op);
    if (byi_json_parse(row->attrs, strlen(row->attrs), 4096, &json, err))
        fail_msg("%s %s: %s", row->op, row->attrs, err->text);
    const struct byi_json root = byi_json_root(json);
    if (byi_attrs_from_json(&root, o->arena, op, &attrs, err))
        fail_msg("%s %s: %s", row->op, row->attrs, err->text);
    byi_json_free(&json);
    for (const char *at = row->in; *at;)
        at = read_operand(o, at);
    struct byi_infer t = {
        .arena = o->arena,
        .op = op,
        .attrs = attrs,
        .n_in = o->n,
        .in = o->types,
        .value = o->values,
        .new_symbol = new_symbol,
        .symbol_ctx = o,
        .err = err,
    };
    return byi_infer_type(&t, out);
}

/* Return whether the rule gives the row's result. Prints a difference instead
 * of failing, so that the other rows of a table are checked too. */
static bool check_row(const struct row *row)
{
    struct operands o = {.arena = byi_arena_new(), .symbol = FIRST_NEW};
    struct byoc_error err = {BYOC_OK, ""};
    const struct byi_type *out = NULL;
    const enum byoc_status status = infer(row, &o, &out, &err);
    struct byi_text text = {0};
    if (status == BYOC_OK)
        print_type(&text, out);
    else
        byi_text_addf(&text, "!%s", err.text);
    const bool negative = row->out[0] == '!';
    const bool right =
        negative ? status == BYOC_ETYPE && strstr(err.text, row->out + 1) &&
                       strncmp(err.text, row->op, strlen(row->op)) == 0
                 : strcmp(text.at, row->out) == 0;
    if (!right)
        print_error("%s(%s) %s: found %s, expected %s\n", row->op, row->in,
                    row->attrs, text.at, row->out);
    byi_text_free(&text);
    byi_arena_free(&o.arena);
    return right;
}

#define TEST(name)                                                             \
    static void test_##name(void **state)                                      \
    {                                                                          \
        (void)state;                                                           \
        bool right = true;                                                     \
        for (size_t i = 0; i < BYI_COUNT(name##_rows); i++)                    \
            right = check_row(&name##_rows[i]) && right;                       \
        assert_true(right);                                                    \
    }
TEST(element)
TEST(nn)
TEST(shape)
TEST(movement)
TEST(vision)
TEST(list)

/* Check that every type rule is in the tables. */
static void test_every_rule(void **state)
{
    (void)state;
    static const struct {
        const struct row *at;
        size_t n;
    } tables[] = {
        {element_rows, BYI_COUNT(element_rows)},
        {nn_rows, BYI_COUNT(nn_rows)},
        {shape_rows, BYI_COUNT(shape_rows)},
        {movement_rows, BYI_COUNT(movement_rows)},
        {vision_rows, BYI_COUNT(vision_rows)},
        {list_rows, BYI_COUNT(list_rows)},
    };
    for (uint32_t id = 1; id < BYI_N_OPS; id++) {
        const struct byi_op *op = byi_op((enum byi_op_id)id);
        bool has_row = false;
        for (size_t k = 0; k < BYI_COUNT(tables) && !has_row; k++)
            for (size_t i = 0; i < tables[k].n && !has_row; i++) {
                const char *name = tables[k].at[i].op;
                has_row = byi_op_of_name(name, strlen(name))->rule == op->rule;
            }
        if (!has_row)
            fail_msg("found no row for the type rule of %s; add one to a table",
                     op->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_element),    cmocka_unit_test(test_nn),
        cmocka_unit_test(test_shape),      cmocka_unit_test(test_movement),
        cmocka_unit_test(test_vision),     cmocka_unit_test(test_list),
        cmocka_unit_test(test_every_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
