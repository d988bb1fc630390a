/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c: the C of one element, by operator and element type. A row's text has
 * $a $b $c for the operands, %0 %1 for the attributes as numbers, @ for the
 * result's C type and # for its bits. What a row says is what the operator's
 * native kernel does, to the bit: integers wrap, a division by zero gives 0,
 * NaN wins in maximum and minimum; functions are those of the prelude, which
 * the kernels share.
 */
#include "group.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* Classes of operand types. */
enum {
    F32 = 1,
    F64 = 2,
    SIGNED = 4,
    UNSIGNED = 8,
    BOOL = 16,
    FLOATS = F32 | F64,
    INTS = SIGNED | UNSIGNED,
    NUMBERS = FLOATS | INTS,
    ANY = NUMBERS | BOOL
};

static const struct {
    const char *name;
    unsigned class;
    const char *low, *high;
} c_types[] = {
    [BYOC_F32] = {"float", F32, "-INFINITY", "INFINITY"},
    [BYOC_F64] = {"double", F64, "-INFINITY", "INFINITY"},
    [BYOC_I8] = {"int8_t", SIGNED, "INT8_MIN", "INT8_MAX"},
    [BYOC_I16] = {"int16_t", SIGNED, "INT16_MIN", "INT16_MAX"},
    [BYOC_I32] = {"int32_t", SIGNED, "INT32_MIN", "INT32_MAX"},
    [BYOC_I64] = {"int64_t", SIGNED, "INT64_MIN", "INT64_MAX"},
    [BYOC_U8] = {"uint8_t", UNSIGNED, "0", "UINT8_MAX"},
    [BYOC_U16] = {"uint16_t", UNSIGNED, "0", "UINT16_MAX"},
    [BYOC_U32] = {"uint32_t", UNSIGNED, "0", "UINT32_MAX"},
    [BYOC_U64] = {"uint64_t", UNSIGNED, "0", "UINT64_MAX"},
    [BYOC_BOOL] = {"uint8_t", BOOL, "0", "1"},
};

/* clang-format off */
static const struct {
    enum byi_op_id op;
    unsigned class; /* of the first operand */
    const char *text;
} rows[] = {
    {BYI_OP_ABS, F32, "fabsf($a)"},
    {BYI_OP_ABS, F64, "fabs($a)"},
    {BYI_OP_ABS, SIGNED, "(@)($a < 0 ? 0 - (uint64_t)$a : (uint64_t)$a)"},
    {BYI_OP_ABS, UNSIGNED, "$a"},
    {BYI_OP_NEGATIVE, FLOATS, "-$a"},
    {BYI_OP_NEGATIVE, SIGNED, "(@)(0 - (uint64_t)$a)"},
    {BYI_OP_EXP, F32, "exp_of($a)"},
    {BYI_OP_LOG, F32, "log_of($a)"},
    {BYI_OP_SQRT, F32, "sqrtf($a)"},
    {BYI_OP_SQRT, F64, "sqrt($a)"},
    {BYI_OP_RSQRT, F32, "1.0f / sqrtf($a)"},
    {BYI_OP_RSQRT, F64, "1.0 / sqrt($a)"},
    {BYI_OP_RECIPROCAL, FLOATS, "1 / $a"},
    {BYI_OP_ERF, F32, "erf_of($a)"},
    {BYI_OP_TANH, F32, "tanh_of($a)"},
    {BYI_OP_SIGMOID, F32, "sigmoid_of($a)"},
    {BYI_OP_CEIL, F32, "ceilf($a)"},
    {BYI_OP_CEIL, F64, "ceil($a)"},
    {BYI_OP_FLOOR, F32, "floorf($a)"},
    {BYI_OP_FLOOR, F64, "floor($a)"},
    {BYI_OP_ROUND, F32, "rintf($a)"},
    {BYI_OP_ROUND, F64, "rint($a)"},
    {BYI_OP_SIGN, FLOATS, "$a > 0 ? 1 : $a < 0 ? -1 : $a"},
    {BYI_OP_SIGN, SIGNED, "(@)(($a > 0) - ($a < 0))"},
    {BYI_OP_SIGN, UNSIGNED, "(@)($a > 0)"},
    {BYI_OP_ISNAN, FLOATS, "(@)($a != $a)"},
    {BYI_OP_LOGICAL_NOT, BOOL, "!$a"},
    {BYI_OP_CLIP, F32, "clamp($a, %0, %1)"},
    {BYI_OP_NN_RELU, FLOATS, "$a < 0 ? 0 : $a"},
    {BYI_OP_NN_RELU, SIGNED, "(@)($a < 0 ? 0 : $a)"},
    {BYI_OP_NN_RELU, UNSIGNED, "$a"},
    {BYI_OP_NN_LEAKY_RELU, FLOATS, "$a < 0 ? %0 * $a : $a"},
    {BYI_OP_NN_ELU, F32, "$a < 0.0f ? %0 * expm1_of($a < 0.0f ? $a : 0.0f) : $a"},
    {BYI_OP_NN_SELU, F32, "$a > 0.0f ? %1 * $a : %1 * %0 * expm1_of($a > 0.0f ? 0.0f : $a)"},
    {BYI_OP_NN_CELU, F32, "$a < 0.0f ? %0 * expm1_of(($a < 0.0f ? $a : 0.0f) / %0) : $a"},
    {BYI_OP_NN_SILU, F32, "$a * sigmoid_of($a)"},
    {BYI_OP_NN_HARD_SIGMOID, F32, "clamp(mad(%0, $a, %1), 0.0f, 1.0f)"},
    {BYI_OP_NN_HARD_SWISH, F32, "$a * clamp(mad($a, 1.0f / 6.0f, 0.5f), 0.0f, 1.0f)"},
    {BYI_OP_NN_MISH, F32, "mish_of($a)"},
    {BYI_OP_NN_SOFTPLUS, F32, "softplus_of($a)"},
    {BYI_OP_NN_SOFTSIGN, F32, "$a / (1.0f + fabsf($a))"},
    {BYI_OP_NN_SOFTSIGN, F64, "$a / (1.0 + fabs($a))"},
    {BYI_OP_NN_THRESHOLDED_RELU, FLOATS, "$a > %0 ? $a : $a != $a ? $a : 0"},
    {BYI_OP_NN_SHRINK, FLOATS, "$a < -%0 ? $a + %1 : $a > %0 ? $a - %1 : $a != $a ? $a : 0"},

    {BYI_OP_ADD, FLOATS, "$a + $b"},
    {BYI_OP_ADD, INTS, "(@)((uint64_t)$a + (uint64_t)$b)"},
    {BYI_OP_SUBTRACT, FLOATS, "$a - $b"},
    {BYI_OP_SUBTRACT, INTS, "(@)((uint64_t)$a - (uint64_t)$b)"},
    {BYI_OP_MULTIPLY, FLOATS, "$a * $b"},
    {BYI_OP_MULTIPLY, INTS, "(@)((uint64_t)$a * (uint64_t)$b)"},
    {BYI_OP_DIVIDE, FLOATS, "$a / $b"},
    {BYI_OP_DIVIDE, SIGNED, "(@)($b == 0 ? 0 : $b == -1 ? (@)(0 - (uint64_t)$a) : $a / $b)"},
    {BYI_OP_DIVIDE, UNSIGNED, "(@)($b == 0 ? 0 : $a / $b)"},
    {BYI_OP_MAXIMUM, FLOATS, "$a > $b ? $a : $a != $a ? $a : $b"},
    {BYI_OP_MAXIMUM, INTS, "$a > $b ? $a : $b"},
    {BYI_OP_MINIMUM, FLOATS, "$a < $b ? $a : $a != $a ? $a : $b"},
    {BYI_OP_MINIMUM, INTS, "$a < $b ? $a : $b"},
    {BYI_OP_NN_PRELU, FLOATS, "$a < 0 ? $a * $b : $a"},
    {BYI_OP_NN_PRELU, SIGNED, "(@)($a < 0 ? (uint64_t)$a * (uint64_t)$b : (uint64_t)$a)"},
    {BYI_OP_LEFT_SHIFT, INTS, "(@)((uint64_t)$b < # ? (uint64_t)$a << $b : 0)"},
    {BYI_OP_RIGHT_SHIFT, SIGNED, "(@)((uint64_t)$b < # ? $a >> $b : $a < 0 ? -1 : 0)"},
    {BYI_OP_RIGHT_SHIFT, UNSIGNED, "(@)((uint64_t)$b < # ? $a >> $b : 0)"},
    {BYI_OP_EQUAL, NUMBERS, "$a == $b"},
    {BYI_OP_EQUAL, BOOL, "!$a == !$b"},
    {BYI_OP_NOT_EQUAL, NUMBERS, "$a != $b"},
    {BYI_OP_NOT_EQUAL, BOOL, "!$a != !$b"},
    {BYI_OP_LESS, NUMBERS, "$a < $b"},
    {BYI_OP_LESS_EQUAL, NUMBERS, "$a <= $b"},
    {BYI_OP_GREATER, NUMBERS, "$a > $b"},
    {BYI_OP_GREATER_EQUAL, NUMBERS, "$a >= $b"},
    {BYI_OP_LOGICAL_AND, BOOL, "$a && $b"},
    {BYI_OP_LOGICAL_OR, BOOL, "$a || $b"},
    {BYI_OP_LOGICAL_XOR, BOOL, "!$a != !$b"},
    {BYI_OP_WHERE, BOOL, "$a ? $b : $c"},
};

/* Sums of float32 go by blocks of floats, added up in double; others in the
 * type of `acc`. $s: the accumulator, $v: the element, $w: $s's type, #: the
 * number of elements. */
static const struct {
    enum byi_op_id op;
    unsigned class;
    struct byi_fold fold;
} folds[] = {
    {BYI_OP_SUM, F32, {"double", "0", "$s += $v", "+", "(@)$s", true}},
    {BYI_OP_SUM, F64, {"double", "0", "$s += $v", "+", "$s", false}},
    {BYI_OP_SUM, INTS, {"uint64_t", "0", "$s += (uint64_t)$v", "+", "(@)$s", false}},
    {BYI_OP_MEAN, F32, {"double", "0", "$s += $v", "+", "(@)($s / #)", true}},
    {BYI_OP_MEAN, F64, {"double", "0", "$s += $v", "+", "$s / #", false}},
    {BYI_OP_MEAN, SIGNED, {"uint64_t", "0", "$s += (uint64_t)$v", "+", "(@)((int64_t)$s / #)", false}},
    {BYI_OP_MEAN, UNSIGNED, {"uint64_t", "0", "$s += (uint64_t)$v", "+", "(@)($s / #)", false}},
    {BYI_OP_PROD, FLOATS, {"double", "1", "$s *= $v", "*", "(@)$s", false}},
    {BYI_OP_PROD, INTS, {"uint64_t", "1", "$s *= (uint64_t)$v", "*", "(@)$s", false}},
    {BYI_OP_L1, F32, {"double", "0", "$s += fabsf($v)", "+", "(@)$s", true}},
    {BYI_OP_L1, F64, {"double", "0", "$s += fabs($v)", "+", "$s", false}},
    {BYI_OP_L2, F32, {"double", "0", "$s += ($w)$v * $v", "+", "(@)sqrt($s)", true}},
    {BYI_OP_L2, F64, {"double", "0", "$s += $v * $v", "+", "sqrt($s)", false}},
    {BYI_OP_SUM_SQUARE, F32, {"double", "0", "$s += ($w)$v * $v", "+", "(@)$s", true}},
    {BYI_OP_SUM_SQUARE, F64, {"double", "0", "$s += $v * $v", "+", "$s", false}},
    {BYI_OP_SUM_SQUARE, INTS, {"uint64_t", "0", "$s += (uint64_t)$v * (uint64_t)$v", "+", "(@)$s", false}},
    {BYI_OP_MAX, FLOATS, {NULL, NULL, "$s = $v > $s || $v != $v ? $v : $s", "max", "$s", false}},
    {BYI_OP_MIN, FLOATS, {NULL, NULL, "$s = $v < $s || $v != $v ? $v : $s", "min", "$s", false}},
    {BYI_OP_MAX, INTS, {NULL, NULL, "$s = $v > $s ? $v : $s", "max", "$s", false}},
    {BYI_OP_MIN, INTS, {NULL, NULL, "$s = $v < $s ? $v : $s", "min", "$s", false}},
};
/* clang-format on */

static unsigned class_of(enum byoc_dtype dtype)
{
    return dtype < BYI_COUNT(c_types) ? c_types[dtype].class : 0;
}

const char *byi_c_type(enum byoc_dtype dtype)
{
    return dtype < BYI_COUNT(c_types) ? c_types[dtype].name : NULL;
}

bool byi_fold_of(enum byi_op_id op, enum byoc_dtype dtype,
                 struct byi_fold *fold)
{
    for (size_t i = 0; i < BYI_COUNT(folds); i++) {
        if (folds[i].op != op || !(folds[i].class & class_of(dtype)))
            continue;
        *fold = folds[i].fold;
        if (!fold->type) {
            fold->type = c_types[dtype].name;
            fold->start =
                op == BYI_OP_MAX ? c_types[dtype].low : c_types[dtype].high;
        }
        return true;
    }
    return false;
}

static const char *find_row(const struct byi_node *node,
                            enum byoc_dtype operand)
{
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        if (rows[i].op == node->op && (rows[i].class & class_of(operand)))
            return rows[i].text;
    return NULL;
}

/* --- numbers ------------------------------------------------------------ */

static void print_float(double v, bool single, struct byi_text *out)
{
    char text[40];
    if (isnan(v)) {
        byi_text_addf(out,
                      single ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")");
        return;
    }
    if (isinf(v)) {
        byi_text_addf(out, "%s(%s)INFINITY", v < 0 ? "-" : "",
                      single ? "float" : "double");
        return;
    }
    snprintf(text, sizeof text, single ? "%.9g" : "%.17g", fabs(v));
    byi_text_addf(out, signbit(v) ? "(-%s%s%s)" : "%s%s%s", text,
                  strpbrk(text, ".e") ? "" : ".0", single ? "f" : "");
}

static void print_int(enum byoc_dtype dtype, int64_t v, struct byi_text *out)
{
    if (class_of(dtype) & UNSIGNED)
        byi_text_addf(out, "(%s)%lluu", byi_c_type(dtype),
                      (unsigned long long)v);
    else if (v == INT64_MIN)
        byi_text_addf(out, "INT64_MIN");
    else
        byi_text_addf(out, "(%s)%s%lld%s", byi_c_type(dtype), v < 0 ? "(" : "",
                      (long long)v, v < 0 ? ")" : "");
}

void byi_expr_literal(const struct byi_tensor *t, struct byi_text *out)
{
    if (class_of(t->dtype) & FLOATS)
        print_float(byi_tensor_float(t, 0), t->dtype == BYOC_F32, out);
    else
        print_int(t->dtype, byi_tensor_int(t, 0), out);
}

/* Attribute `i` as a number of the type. */
static void print_attr(const struct byi_node *node, uint32_t i,
                       struct byi_text *out)
{
    const struct byi_attr *a = &node->attrs->at[i];
    const bool single = node->type->dtype == BYOC_F32;
    const double v = a->kind == BYI_ATTR_FLOAT ? a->f : (double)a->i;
    print_float(single ? (double)(float)v : v, single, out);
}

/* --- rows as text ------------------------------------------------------- */

static void expand(const char *row, const struct byi_node *node,
                   const char *const *args, struct byi_text *out)
{
    const enum byoc_dtype to = node->type->dtype;
    for (const char *c = row; *c; c++) {
        if (*c == '$')
            byi_text_addf(out, "%s", args[*++c - 'a']);
        else if (*c == '%')
            print_attr(node, (uint32_t)(*++c - '0'), out);
        else if (*c == '@')
            byi_text_addf(out, "%s", byi_c_type(to));
        else if (*c == '#')
            byi_text_addf(out, "%u", 8 * byoc_dtype_size(to));
        else
            byi_text_add(out, c, 1);
    }
}

void byi_fold_print(const char *text, const struct byi_fold_names *names,
                    struct byi_text *out)
{
    for (const char *c = text; *c; c++) {
        if (*c == '$')
            c++, byi_text_addf(out, "%s",
                               *c == 's'   ? names->sum
                               : *c == 'v' ? names->value
                                           : names->sum_type);
        else if (*c == '@')
            byi_text_addf(out, "%s", names->type);
        else if (*c == '#')
            byi_text_addf(out, "%lld", (long long)names->count);
        else
            byi_text_add(out, c, 1);
    }
}

/* As the native cast: integers wrap, floats truncate by way of 64 bits. */
static const char *cast_row(enum byoc_dtype from, enum byoc_dtype to)
{
    if (to == BYOC_BOOL)
        return "$a != 0";
    if (!(class_of(from) & FLOATS) || (class_of(to) & FLOATS))
        return "(@)$a";
    return to == BYOC_U64 ? "natural_of((double)$a)"
                          : "(@)whole_of((double)$a)";
}

static const char *gelu_row(const struct byi_node *node)
{
    return strcmp(byi_attr_string(node->attrs, "approximate"), "tanh") == 0
               ? "gelu_tanh_of($a)"
               : "gelu_erf_of($a)";
}

static const char *row_of(const struct byi_node *node, enum byoc_dtype operand)
{
    if (!class_of(operand) || !class_of(node->type->dtype))
        return NULL;
    if (node->op == BYI_OP_CAST)
        return cast_row(operand, node->type->dtype);
    if (node->op == BYI_OP_NN_GELU)
        return operand == BYOC_F32 ? gelu_row(node) : NULL;
    return find_row(node, operand);
}

bool byi_expr_has(const struct byi_node *node, enum byoc_dtype operand)
{
    return node->type->kind == BYI_TENSOR && row_of(node, operand) != NULL;
}

bool byi_expr_calls(const struct byi_node *node, enum byoc_dtype operand)
{
    return strstr(row_of(node, operand), "_of(") != NULL;
}

void byi_expr_print(const struct byi_node *node, enum byoc_dtype operand,
                    const char *const *args, struct byi_text *out)
{
    expand(row_of(node, operand), node, args, out);
}
