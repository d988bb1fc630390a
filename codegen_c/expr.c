/* SPDX-License-Identifier: Apache-2.0 */
/* expr.c: prints the C expression of one element: the formulas of unary.def and
 * binary.def as text, by operator and element type. Native kernels compile the
 * same formulas and the prelude's functions, so results are equal bit by bit.
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

/* C's types of elements; `low` and `high` are their limits as C expressions. */
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

/* The formulas of elementwise operators as C expressions (core/ops/unary.def,
 * core/ops/binary.def). */
static const struct {
    enum byi_op_id op;
    unsigned class; /* of the first operand */
    const char *text;
} formulas[] = {
#define UNARY_TEST(id, expr) {BYI_OP_##id, FLOATS, #expr},
#define UNARY_BOOL(id, expr) {BYI_OP_##id, BOOL, #expr},
#define UNARY(id, wide, single)                                                \
    {BYI_OP_##id, F64, #wide}, {BYI_OP_##id, F32, #single},
#define UNARY_FLOAT32(id, wide, single) {BYI_OP_##id, F32, #single},
#define UNARY_CHOICE(id, wide, single, other)                                  \
    {BYI_OP_##id, F32, "p0 != 0 ? " #single " : " #other},
#define UNARY_SIGNED(id, expr) {BYI_OP_##id, SIGNED, "(T)(" #expr ")"},
#define UNARY_UNSIGNED(id, expr) {BYI_OP_##id, UNSIGNED, "(T)(" #expr ")"},
#include "core/ops/unary.def"
#define BINARY_GENERATED(id, class, expr) {BYI_OP_##id, class, #expr},
#define BINARY(id, floats, of_signed, of_unsigned)                             \
    {BYI_OP_##id, FLOATS, #floats},                                            \
        {BYI_OP_##id, SIGNED, "(T)(" #of_signed ")"},                          \
        {BYI_OP_##id, UNSIGNED, "(T)(" #of_unsigned ")"},
#define BINARY_INTS(id, of_signed, of_unsigned)                                \
    {BYI_OP_##id, SIGNED, "(T)(" #of_signed ")"},                              \
        {BYI_OP_##id, UNSIGNED, "(T)(" #of_unsigned ")"},
#define BINARY_BOOL(id, expr) {BYI_OP_##id, BOOL, #expr},
#define BINARY_COMPARE(id, expr) {BYI_OP_##id, NUMBERS, #expr},
#define BINARY_EQUALITY(id, numbers, bools, strings)                           \
    {BYI_OP_##id, NUMBERS, #numbers}, {BYI_OP_##id, BOOL, #bools},
#include "core/ops/binary.def"
    /* as the native loops: adding 1.5 * 2^23 and subtracting it again rounds
     * half to even, and NaN gives the lowest value */
    {BYI_OP_QUANTIZE, F32,
     "({ float v = a / b;"
     " v = v > -131072.0f ? v : -131072.0f;"
     " v = v < 131072.0f ? v : 131072.0f;"
     " v = ((v + 12582912.0f) - 12582912.0f) + (float)c;"
     " v = v > (float)LOW ? v : (float)LOW;"
     " v = v < (float)HIGH ? v : (float)HIGH;"
     " (T)(int32_t)v; })"},
    {BYI_OP_DEQUANTIZE, INTS, "((float)(int32_t)a - (float)c) * b"},
};

/* Make it a compile error that an elementwise operator has a row in neither
 * unary.def nor binary.def. */
enum {
#define UNARY(id, wide, single) HAS_##id,
#define UNARY_FLOAT32(id, wide, single) HAS_##id,
#define UNARY_CHOICE(id, wide, single, other) HAS_##id,
#define UNARY_BOUNDED(id, wide, single, most) HAS_##id,
#define UNARY_TEST(id, expr) HAS_##id,
#define UNARY_BOOL(id, expr) HAS_##id,
#define UNARY_BY_HAND(id) HAS_##id,
#include "core/ops/unary.def"
#define BINARY(id, floats, of_signed, of_unsigned) HAS_##id,
#define BINARY_INTS(id, of_signed, of_unsigned) HAS_##id,
#define BINARY_BOOL(id, expr) HAS_##id,
#define BINARY_COMPARE(id, expr) HAS_##id,
#define BINARY_EQUALITY(id, numbers, bools, strings) HAS_##id,
#define BINARY_BY_HAND(id) HAS_##id,
#include "core/ops/binary.def"
    HAS_ALL = 0
#define HAS_ELEMWISE(id) +HAS_##id
#define HAS_BROADCAST(id) +HAS_##id
#define HAS_INJECTIVE(id)
#define HAS_REDUCE(id)
#define HAS_OUT_FUSABLE(id)
#define HAS_OPAQUE(id)
#define OP(id, name, min_in, max_in, n_out, kind, ...) HAS_##kind(id)
#include "core/ops/ops.def"
#undef OP
};

/* clang-format off */
/* The reductions; see struct byi_reduction for the notation. Sums of float32 add
 * blocks in float, and the sums of blocks in double. */
static const struct {
    enum byi_op_id op;
    unsigned class;
    struct byi_reduction reduction;
} reductions[] = {
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

/* The class of an element type; 0: generated C does not support it. */
static unsigned class_of(enum byoc_dtype dtype)
{
    return dtype < BYI_COUNT(c_types) ? c_types[dtype].class : 0;
}

const char *byi_c_type(enum byoc_dtype dtype)
{
    return dtype < BYI_COUNT(c_types) ? c_types[dtype].name : NULL;
}

bool byi_reduction_find(enum byi_op_id op, enum byoc_dtype dtype,
                        struct byi_reduction *reduction)
{
    for (size_t i = 0; i < BYI_COUNT(reductions); i++) {
        if (reductions[i].op != op || !(reductions[i].class & class_of(dtype)))
            continue;
        *reduction = reductions[i].reduction;
        if (!reduction->type) {
            reduction->type = c_types[dtype].name;
            reduction->start =
                op == BYI_OP_MAX ? c_types[dtype].low : c_types[dtype].high;
        }
        return true;
    }
    return false;
}

static const char *find_formula(const struct byi_node *node,
                                enum byoc_dtype operand)
{
    for (size_t i = 0; i < BYI_COUNT(formulas); i++)
        if (formulas[i].op == node->op &&
            (formulas[i].class & class_of(operand)))
            return formulas[i].text;
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

/* Print attribute `i` as a number of the node's element type. */
static void print_attr(const struct byi_node *node, uint32_t i,
                       struct byi_text *out)
{
    const bool single = node->type->dtype == BYOC_F32;
    const double v = byi_attr_number(&node->attrs->at[i]);
    print_float(single ? (double)(float)v : v, single, out);
}

/* --- formulas as text --------------------------------------------------- */

static bool is_name_char(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* In a formula, x is operand 0; a, b and c are operands 0 to 2; p0 to p9 are
 * attributes; T is the result's C type, LOW and HIGH are its limits. Other
 * names are copied. */
static void expand_name(const char *name, size_t n, const struct byi_node *node,
                        const char *const *args, struct byi_text *out)
{
    if (n == 1 && *name == 'x')
        byi_text_addf(out, "%s", args[0]);
    else if (n == 1 && *name >= 'a' && *name <= 'c')
        byi_text_addf(out, "%s", args[*name - 'a']);
    else if (n == 1 && *name == 'T')
        byi_text_addf(out, "%s", byi_c_type(node->type->dtype));
    else if (n == 3 && strncmp(name, "LOW", n) == 0)
        byi_text_addf(out, "%s", c_types[node->type->dtype].low);
    else if (n == 4 && strncmp(name, "HIGH", n) == 0)
        byi_text_addf(out, "%s", c_types[node->type->dtype].high);
    else if (n == 2 && *name == 'p')
        print_attr(node, (uint32_t)(name[1] - '0'), out);
    else
        byi_text_add(out, name, n);
}

static void expand_formula(const char *formula, const struct byi_node *node,
                           const char *const *args, struct byi_text *out)
{
    for (size_t n; *formula; formula += n) {
        for (n = 0; is_name_char(formula[n]);)
            n++;
        if (n)
            expand_name(formula, n, node, args, out);
        else
            byi_text_add(out, formula, n = 1);
    }
}

void byi_reduction_print(const char *text,
                         const struct byi_reduction_names *names,
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

/* The text of a cast. As in the native kernels, integers wrap, and floats are
 * converted to 64-bit integers first. */
static const char *cast_formula(enum byoc_dtype from, enum byoc_dtype to)
{
    if (to == BYOC_BOOL)
        return "x != 0";
    if (!(class_of(from) & FLOATS) || (class_of(to) & FLOATS))
        return "(T)x";
    return to == BYOC_U64 ? "double_to_uint64((double)x)"
                          : "(T)double_to_int64((double)x)";
}

/* Whether the formulas of qnn.quantize and qnn.dequantize support these types:
 * float32, which represents all numbers of the other type. */
static bool quantises_floats(enum byi_op_id op, enum byoc_dtype from,
                             enum byoc_dtype to)
{
    const enum byoc_dtype integer = op == BYI_OP_QUANTIZE ? to : from;
    return (op == BYI_OP_QUANTIZE ? from : to) == BYOC_F32 &&
           (class_of(integer) & INTS) && byoc_dtype_size(integer) <= 2;
}

/* The text of a node's expression; NULL: there is none. */
static const char *formula_of(const struct byi_node *node,
                              enum byoc_dtype operand)
{
    if (!class_of(operand) || !class_of(node->type->dtype))
        return NULL;
    if (node->op == BYI_OP_CAST)
        return cast_formula(operand, node->type->dtype);
    if ((node->op == BYI_OP_QUANTIZE || node->op == BYI_OP_DEQUANTIZE) &&
        !quantises_floats(node->op, operand, node->type->dtype))
        return NULL;
    return find_formula(node, operand);
}

bool byi_expr_has(const struct byi_node *node, enum byoc_dtype operand)
{
    return node->type->kind == BYI_TENSOR && formula_of(node, operand) != NULL;
}

bool byi_expr_calls(const struct byi_node *node, enum byoc_dtype operand)
{
    return strstr(formula_of(node, operand), "_of(") != NULL;
}

void byi_expr_print(const struct byi_node *node, enum byoc_dtype operand,
                    const char *const *args, struct byi_text *out)
{
    expand_formula(formula_of(node, operand), node, args, out);
}
