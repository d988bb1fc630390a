/* SPDX-License-Identifier: Apache-2.0 */
/* patterns_test.c: tests the pattern language: the parser's errors, the
 * matcher's bindings and order; and random rows, which must never crash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patterns/patterns.h"
#include "runtime_dnnl/patterns.h"
#include "tests/print_pattern.h"
#include "tests/xorshift.h"

static enum byoc_status compile(const char *pattern,
                                struct byi_pattern_table **table,
                                struct byoc_error *err)
{
    static struct byoc_pattern row;
    row = (struct byoc_pattern){.name = "t.row", .pattern = pattern};
    return byi_patterns_compile(&row, 1, table, err);
}

/* --- the parser ----------------------------------------------------------- */

static const struct {
    const char *pattern, *message;
} bad[] = {
    {"", "column 1: found the end of the text, expected an operator"},
    {"nn.rleu(%x)", "column 1: unknown operator 'nn.rleu'"},
    {"nn.relu|nn.rleu(%x)", "column 9: unknown operator 'nn.rleu'"},
    {"nn.relu(nn.rleu(%x))", "column 9: unknown operator 'nn.rleu'"},
    {"nn.relu(%x, %y)", "column 1: nn.relu: found 2 operands, expected 1"},
    {"nn.relu()", "nn.relu: found 0 operands, expected 1"},
    {"nn.relu|add(%x)", "add: found 1 operands, expected 2"},
    {"nn.layer_norm(%x)", "nn.layer_norm: found 1 operands, expected 2 to 3"},
    {"nn.relu(%a, %b, %c, %d...)", "nn.relu: found 3 operands, expected 1"},
    {"concatenate(%a,%b,%c,%d,%e,%f,%g,%h,%i)",
     "found another operand, expected at most 8"},
    {"concatenate(%a..., %b)", "found an operand after one with '...'"},
    {"concatenate(const %a...)", "column 21: found '.', expected ',' or ')'"},
    {"concatenate(nn.relu(%a)...)", "column 24: found '.', expected"},
    {"concatenate(%a..)", "column 17: found ')', expected '...'"},
    {"concatenate(%a, %a...)", "%a is written both with '...' and without"},
    {"concatenate(%a1, %a...)", "%a1, which could be one of the repeated %a"},
    {"nn.relu(%x) [add(^, %o)]* [add(^, %o0)]", "%o0, which could be one of"},
    {"nn.relu(%x", "found the end of the text, expected ',' or ')'"},
    {"nn.relu %x", "expected '(' and operands"},
    {"nn.relu(%x) nn.relu(%y)", "expected the end of the pattern"},
    {"nn.relu(%x))", "column 12: found ')', expected the end of the pattern"},
    {"nn.relu(^)", "column 9: '^' stands for the value before a step"},
    {"add(^, %x) [nn.relu(^)]?", "column 5: '^' stands for"},
    {"nn.relu(%x) [%y]?", "found a step that may add no operator"},
    {"nn.relu(%x) [^]*", "found a step that may add no operator"},
    {"nn.relu(%x) [nn.relu(^) | ^]*", "found a step that may add no operator"},
    {"nn.relu(%x) [nn.relu(^) | %y]", "found a step that may add no operator"},
    {"nn.relu(%x) [nn.relu(^)", "'|' or the end of the choices"},
    {"nn.relu(%x) [concatenate(^, %y...)]", "found '...' inside a step"},
    {"nn.relu(%x) [add(^, %o)]* [add(^, %o)]",
     "%o inside and outside of a repeated step"},
    {"nn.relu(%x) [add(^, (nn.relu(%o) [exp(^)]*))]*",
     "found a repeated step inside another"},
    {"%x", "row 0 (t.row): found a root that can be an operand, expected an "
           "operator"},
    {"const %x", "found a root that can be an operand"},
    {"(nn.relu(%x) | %y)", "found a root that can be an operand"},
    {"split(%x).0", "found a root that can be an operand"},
    {"nn.relu(%a_name_that_is_far_too_long)",
     "found an operand's name of 27 characters, expected at most 15"},
    {"nn.relu(const nn.relu(%x))", "expected an operand such as %src"},
    {"nn.relu(3)", "column 9: found '3', expected an operator"},
    {"nn.relu(x)", "unknown operator 'x'"},
    {"if %c { nn.relu(%x) } else { %x }", "expected '(' and a condition"},
    {"if (%c { nn.relu(%x) } else { %x }", "expected ')'"},
    {"if (%c) nn.relu(%x)", "expected '{' and a pattern"},
    {"if (%c) { nn.relu(%x) }", "expected 'else'"},
    {"if (%c) { nn.relu(%x) } else nn.relu(%x)", "expected '{' and a pattern"},
    {"if (%c) { %x } else { nn.relu(%x), %x }", "expected '}'"},
    {"if (%c) { } else { %x }", "expected an operator"},
    {"if (%c) { ^ } else { nn.relu(%x) }", "'^' stands for"},
    {"nn.leaky_relu(%x){}", "expected an attribute"},
    {"nn.leaky_relu(%x){alpha}", "expected '='"},
    {"nn.leaky_relu(%x){alpha=}", "expected a number, a string"},
    {"nn.leaky_relu(%x){alpha=1", "expected ',' or '}'"},
    {"nn.leaky_relu(%x){beta=1}",
     "nn.leaky_relu has no attribute 'beta', expected alpha"},
    {"nn.leaky_relu(%x){alpha=\"1\"}",
     "nn.leaky_relu: found 'alpha' compared with a string, expected a float"},
    {"nn.softmax(%x){axis=1.5}", "compared with a float, expected an integer"},
    {"nn.relu|nn.softmax(%x){axis=1}", "nn.relu has no attribute 'axis'"},
    {"nn.conv2d(%x, %w){strides=1.5}",
     "compared with a float, expected a list of integers"},
    /* attributes: comparisons, choices, lists */
    {"nn.softmax(%x){axis!1}", "column 21: found '1', expected '!='"},
    {"nn.softmax(%x){axis~1}", "expected '=', '!=', '<', '<=', '>' or '>='"},
    {"nn.softmax(%x){axis<1|2}", "found 2 values, expected one number"},
    {"nn.gelu(%x){approximate<\"none\"}", "expected one number"},
    {"nn.gelu(%x){approximate=\"none\"|}", "expected a number, a string"},
    {"nn.gelu(%x){approximate=[\"none\"]}",
     "compared with a list of strings, expected a string"},
    {"nn.conv2d(%x, %w){strides=[1, 1}", "found '}', expected ',' or ']'"},
    {"nn.conv2d(%x, %w){strides=[1, \"1\"]}", "expected only numbers or only"},
    {"nn.conv2d(%x, %w){strides=[true]}", "expected only numbers or only"},
    {"nn.conv2d(%x, %w){strides=[_, 0.5]}", "found '_' in a list of floats"},
    {"nn.conv2d(%x, %w){strides<=[1, 1]}", "expected one number"},
    {"cast(%x){dtype=\"float31\"}", "compared with a string, expected a dtype"},
    {"custom(%x){op=\"a.B\"}",
     "'a.B' does not name an operator of a plug-in, expected"},
    {"custom(%x){op=\"a.B@1\"|\"a.B@x\"}",
     "'a.B@x' does not name an operator of"},
    {"custom(%x){op!=\"B@1\"}", "'B@1' does not name an operator of a plug-in"},
    /* types */
    {"nn.relu(%x: float31)",
     "column 13: found 'float31', expected a dtype such as float32"},
    {"nn.relu(%x: )", "expected a dtype such as float32"},
    {"nn.relu(%x: Tensor)", "expected '[' after Tensor"},
    {"nn.relu(%x: Tensor[(1, 2])", "expected ',' or ')'"},
    {"nn.relu(%x: Tensor[(-1)])", "column 21: found"},
    {"nn.relu(%x: Tensor[(x)])", "expected a dim, '_' or '...'"},
    {"nn.relu(%x: Tensor[(..., 1, ...)])", "expected a dim, '_' or '...'"},
    {"nn.relu(%x: Tensor[(..)])", "found ')', expected '...'"},
    {"nn.relu(%x: Tensor[(1), (1)])", "expected a dtype"},
    {"nn.relu(%x: Tensor[float32, (1), float32])",
     "expected '(', rank or size"},
    {"nn.relu(%x: Tensor[rank])", "expected '=', '!='"},
    {"nn.relu(%x: Tensor[rank<=x])", "expected a number"},
    {"nn.relu(%x: Tensor[(1,1,1,1,1,1,1,1,1,1,1,1,1)])",
     "found too many dims, expected at most 12"},
    /* constants */
    {"add(%x, const)", "found ')', expected an operand such as %src"},
    {"add(%x, const 0.5f)", "column 15:"},
    {"add(%x, const %c = )", "expected a number"},
    {"add(%const, %x)", "is reserved for constants without a name"},
    {"add(%const0, const 1)",
     "%const0, which could be one of the repeated %const"},
    /* operands in any grouping */
    {"add(- %x)", "add: found 1 operands, expected 2 or more"},
    {"add(%x, - %y...)", "column 13: found '.', expected ',' or ')'"},
    {"add(%x, / %y)", "found '/', expected an operator"},
    {"multiply(%x, - %y)", "found '-', expected an operator"},
    {"subtract(%x, %y, %z)", "subtract: found 3 operands, expected 2"},
    {"add|multiply(%x, %y, %z)", "add: found 3 operands, expected 2"},
    {"add(%x, %y, - %z, %r...)", "2 or more that are written out"},
    /* tuples */
    {"(nn.relu(%x), exp(%x)", "expected ',' or ')'"},
    {"(nn.relu(%x) | exp(%x), %y)", "found ',', expected '|' or the end"},
    {"()", "found ')', expected an operator"},
    /* steps */
    {"nn.relu(%x) [exp(%y)]?", "found a step without '^', expected '^' for"},
    {"nn.relu(%x) [exp(^) | exp(%y)]", "found a step without '^'"},
    {"nn.relu(%x) [exp(%y) [abs(^)]]", "found a step without '^'"},
    {"nn.relu(%x) [exp(^)]{0}",
     "found a step that occurs 0 times, expected at least 1"},
    {"nn.relu(%x) [exp(^)]{3,2}", "column 24: found 2, expected the largest"},
    {"nn.relu(%x) [exp(^)]{1,33}", "column 24: found 33"},
    {"nn.relu(%x) [exp(^)]{1", "expected ',' or '}'"},
    {"nn.relu(%x) [exp(^)]{x}", "expected the number of repetitions"},
    {"nn.relu(%x) [exp(^) [abs(^)]~]{2}",
     "found a repeated step inside another"},
    /* definitions */
    {"nn.relu(%e) with", "expected an operand such as %src"},
    {"nn.relu(%e) with %f = exp(%x)", "%f cannot be defined"},
    {"nn.relu(const %e) with %e = exp(%x)", "%e cannot be defined"},
    {"concatenate(%e...) with %e = exp(%x)", "%e cannot be defined"},
    {"nn.relu(%x) [add(^, %e)]* with %e = exp(%x)",
     "inside and outside of a repeated step"},
    {"nn.relu(%e) with %e exp(%x)", "expected '='"},
    {"nn.relu(%e) with %e = exp(%e)", "%e is already defined"},
    {"add(%e, %f) with %e = exp(%x), %f = abs(%e)",
     "column 41: %e is already defined, expected definitions that use it "
     "before its own"},
    {"nn.relu(%e) with %e = exp(%x), %e = abs(%x)", "already defined"},
    {"nn.relu(%e) with %e = exp(^)", "'^' stands for the value before a step"},
    {"%e with %e = %x", "found a root that can be an operand"},
    {"nn.relu(%x) \x01", "column 13:"},
    {"nn.relu(%\"x)", "column 9:"},
};

static void refuses_bad_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(bad); i++) {
        struct byi_pattern_table *table = NULL;
        struct byoc_error err = {0};
        if (compile(bad[i].pattern, &table, &err) == BYOC_OK)
            fail_msg("'%s': found no error, expected \"%s\"", bad[i].pattern,
                     bad[i].message);
        if (!strstr(err.text, bad[i].message))
            fail_msg("'%s': found \"%s\", expected \"%s\"", bad[i].pattern,
                     err.text, bad[i].message);
        assert_null(table);
    }
}

static char *repeat(const char *before, const char *middle, uint32_t n,
                    const char *after)
{
    const size_t length = strlen(middle);
    char *text = malloc(strlen(before) + n * length + strlen(after) + 1);
    assert_non_null(text);
    char *at = text + sprintf(text, "%s", before);
    for (uint32_t i = 0; i < n; i++, at += length)
        memcpy(at, middle, length);
    strcpy(at, after);
    return text;
}

static void fails_with(char *pattern, const char *message)
{
    struct byi_pattern_table *table = NULL;
    struct byoc_error err = {0};
    assert_int_not_equal(compile(pattern, &table, &err), BYOC_OK);
    if (!strstr(err.text, message))
        fail_msg("found \"%s\", expected \"%s\"", err.text, message);
    free(pattern);
}

static void has_limits(void **state)
{
    (void)state;
    struct byi_pattern_table *table = NULL;
    fails_with(repeat("", "nn.relu(", 48, "%x"), "expected at most 48 levels");
    fails_with(repeat("", "(", 100000, ""), "expected at most 48 levels");
    fails_with(repeat("", "if (%c) { %x } else { ", 9, "%x"),
               "found too deeply nested 'if's, expected at most 8 levels");
    fails_with(repeat("(nn.relu(%x)", "|nn.relu(%x)", 300, ")"),
               "found too many choices, expected at most 256");
    fails_with(repeat("nn.relu(%x)", "[nn.relu(^)]?", 300, ""),
               "found a pattern of too many parts, expected at most 256; ");
    fails_with(repeat("nn.relu", "|nn.relu", 1000, "(%x)"),
               "found too many operators, expected at most ");
    fails_with(repeat("clip(%x){a_min=0", ",a_min=0", 16, "}"),
               "found too many tests of attributes, expected at most 16");
    char *deep = repeat("", "nn.relu(", 47, "%x");
    char *text = repeat(deep, ")", 47, "");
    assert_int_equal(compile(text, &table, NULL), BYOC_OK);
    byi_patterns_free(&table);
    free(text);
    free(deep);
    /* more names than there is room for: none is written past the end */
    char names[4096] = "((";
    for (int i = 0; i < 300; i++)
        sprintf(names + strlen(names), "%s%%n%d",
                i == 150 ? ") | ("
                : i      ? "|"
                         : "",
                i);
    fails_with(repeat(names, ")", 2, ""), "found a pattern of too many parts");
}

static void indexes_roots(void **state)
{
    (void)state;
    const struct byoc_pattern rows[] = {
        {.name = "t.a", .pattern = "add(%x, %y) [nn.relu(^) | exp(^)]?"},
        {.name = "t.b", .pattern = "(exp(%x) | add(%x, %y)) [tanh(^)]"},
        /* exp has one operand, so %y... matches none */
        {.name = "t.c", .pattern = "add|exp(abs(%x), %y...)"},
        {.name = "t.d", .pattern = "multiply(%x, / %y)"},
        {.name = "t.e", .pattern = "(abs(%x), exp(%x))"},
        {.name = "t.f", .pattern = "%r: float32 with %r = sinh(%x)"},
    };
    struct byi_pattern_table *table = NULL;
    struct byoc_error err;
    if (byi_patterns_compile(rows, 6, &table, &err))
        fail_msg("%s", err.text);
    const struct byi_pattern *at = table->at;
    assert_true(at[0].roots[BYI_OP_ADD]);
    assert_true(at[0].roots[BYI_OP_NN_RELU]);
    assert_false(at[0].roots[BYI_OP_TANH]);
    assert_true(at[1].roots[BYI_OP_TANH]); /* not optional */
    assert_false(at[1].roots[BYI_OP_ADD]);
    assert_true(at[2].roots[BYI_OP_EXP]);
    assert_false(at[2].roots[BYI_OP_ABS]);
    assert_true(at[3].roots[BYI_OP_DIVIDE]);
    assert_true(at[3].roots[BYI_OP_RECIPROCAL]);
    assert_false(at[3].roots[BYI_OP_SUBTRACT]);
    assert_true(at[4].roots[BYI_ROOT_TUPLE]);
    assert_false(at[4].roots[BYI_ROOT_NONE]);
    assert_true(at[5].roots[BYI_OP_SINH]);
    assert_true(table->inside[BYI_OP_ABS]);
    assert_false(table->inside[BYI_OP_SIN]);
    byi_patterns_free(&table);
    assert_null(table);
    byi_patterns_free(&table);
}

/* --- the matcher ---------------------------------------------------------- */

/* Every way that the matcher has tried, as text: "operators | name=value ...";
 * `refuse` ways are refused before one is accepted. */
struct seen {
    struct byi_text text;
    uint32_t refuse;
};

static void add_value(struct byi_text *text, const struct byi_match *match,
                      byi_id id)
{
    const struct byi_node *node = &match->f->nodes.at[id];
    if (node->kind == BYI_PARAM)
        byi_text_addf(text, "%s", match->f->param_names.at[node->index]);
    else if (node->kind == BYI_CONST)
        byi_text_addf(text, "const");
    else if (node->kind == BYI_CALL_OP)
        byi_text_addf(text, "%s", byi_op(node->op)->name);
    else
        byi_text_addf(text, "?");
}

static const char *op_name(const struct byi_node *node)
{
    return node->kind == BYI_CALL_OP ? byi_op(node->op)->name : "tuple";
}

static bool record_match(const struct byi_match *match, void *ctx)
{
    struct seen *seen = ctx;
    if (seen->text.n)
        byi_text_addf(&seen->text, "; ");
    for (uint32_t i = 0; i < match->n_ops; i++)
        byi_text_addf(&seen->text, "%s ",
                      op_name(&match->f->nodes.at[match->ops[i]]));
    byi_text_addf(&seen->text, "|");
    for (uint32_t i = 0; i < match->n_bound; i++) {
        byi_text_addf(&seen->text, " %s=", match->bound[i].name);
        add_value(&seen->text, match, match->bound[i].value);
    }
    for (uint32_t i = 0; i < match->n_named; i++) {
        byi_text_addf(&seen->text, " %s:", match->named[i].name);
        add_value(&seen->text, match, match->named[i].value);
    }
    if (match->ops[match->n_ops - 1] != match->root)
        byi_text_addf(&seen->text, " (the root is not the last)");
    return seen->refuse == 0 || seen->refuse-- == 0;
}

struct matching {
    const char *pattern, *body; /* of f(%x, %y, %z: 4 floats) */
    uint32_t refuse;
    const char *seen;
};

/* clang-format off */
static const struct matching matchings[] = {
    /* names in the order of the text, for any order of the graph */
    {"add(nn.relu(%b), %a)", "add(nn.relu(%x), %y)", 0, "nn.relu add | b=x a=y"},
    {"add(nn.relu(%b), %a)", "add(%y, nn.relu(%x))", 0, "nn.relu add | b=x a=y"},
    {"subtract(%b, %a)", "subtract(%x, %y)", 0, "subtract | b=x a=y"},
    {"subtract(nn.relu(%b), %a)", "subtract(%y, nn.relu(%x))", 0, ""},
    /* both orders are tried, the one written first */
    {"add(%a, %b)", "add(%x, %y)", 0, "add | a=x b=y"},
    {"add(%a, %b)", "add(%x, %y)", 9, "add | a=x b=y; add | a=y b=x"},
    {"add(%a, %b)", "add(%x, %x)", 9, "add | a=x b=x"},
    {"maximum(%a, const %b)", "maximum(1f, %x)", 0, "maximum | a=x b=const"},
    {"divide(%a, const %b)", "divide(1f, %x)", 0, ""},
    {"add(multiply(%a, %b), %c)", "add(multiply(%x, %y), %z)", 9,
     "multiply add | a=x b=y c=z; multiply add | a=y b=x c=z"},
    /* constants */
    {"add(%a, const %b)", "add(%x, %y)", 9, ""},
    {"add(%a, %b)", "add(%x, 2f)", 0, "add | a=x b=const"},
    /* one name is one value */
    {"add(%a, %a)", "add(%x, %x)", 0, "add | a=x"},
    {"add(%a, %a)", "add(%x, %y)", 9, ""},
    {"add(exp(%a), %a)", "add(%x, exp(%x))", 0, "exp add | a=x"},
    /* alternatives in order, with their own names */
    {"exp((nn.relu(%a) | abs(%b)))", "exp(abs(%x))", 0, "abs exp | b=x"},
    {"exp((nn.relu(%a) | %b))", "exp(nn.relu(%x))", 9,
     "nn.relu exp | a=x; exp | b=nn.relu"},
    {"nn.relu|abs(%a)", "abs(%x)", 0, "abs | a=x"},
    {"add((nn.relu(%a) | %b), %c)", "add(nn.relu(%x), %y)", 0, "nn.relu add | a=x c=y"},
    {"add((nn.relu(%a)), %c)", "add(nn.relu(%x), %y)", 0, "nn.relu add | a=x c=y"},
    {"add(exp|tanh(%a), exp|tanh(%b))", "add(tanh(%x), exp(%y))", 0,
     "tanh exp add | a=x b=y"},
    /* diamonds */
    {"add(exp(%a), exp(%a))", "add(%e, %e)", 0, "exp add | a=x"},
    {"add(exp(%a), exp(%a))", "add(exp(%x), exp(%x))", 0, "exp exp add | a=x"},
    {"add(exp(%a), exp(%b))", "add(%e, %e)", 9, ""},
    {"add(exp(%a), %b)", "add(%e, %e)", 9, ""},
    /* steps: the longest chain first, then its rest */
    {"exp(%a) [nn.relu(^)]?", "nn.relu(exp(%x))", 0, "exp nn.relu | a=x"},
    {"exp(%a) [nn.relu(^)]?", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a) [nn.relu(^)]", "exp(%x)", 0, ""},
    {"exp(%a) [nn.relu(^)] [abs(^)]", "abs(nn.relu(exp(%x)))", 0, "exp nn.relu abs | a=x"},
    {"exp(%a) [nn.relu(^)]? [abs(^)]?", "abs(exp(%x))", 0, "exp abs | a=x"},
    {"exp(%a) [nn.relu(^)]? [abs(^)]?", "nn.relu(abs(exp(%x)))", 0, ""},
    {"exp(%a) [nn.relu(^)]*", "nn.relu(nn.relu(nn.relu(exp(%x))))", 0,
     "exp nn.relu nn.relu nn.relu | a=x"},
    {"exp(%a) [exp(^)]*", "exp(exp(%x))", 9, "exp exp | a=x; exp | a=exp"},
    {"exp(%a) [exp(^)]?", "exp(exp(exp(%x)))", 1, "exp exp | a=exp; exp | a=exp"},
    /* operands of a repeated step, numbered from the inside out */
    {"exp(%a) [add|subtract(^, %o)]*", "subtract(add(exp(%x), %y), %z)", 0,
     "exp add subtract | a=x o0=y o1=z"},
    {"exp(%a) [add(^, %o) | multiply(^, %p)]*", "multiply(add(multiply(exp(%x), %x), %y), %z)", 0,
     "exp multiply add multiply | a=x p0=x o0=y p1=z"},
    {"exp(%a) [nn.relu(^) | add(^, %o)]*", "add(nn.relu(add(exp(%x), %y)), %z)", 0,
     "exp add nn.relu add | a=x o0=y o1=z"},
    {"exp(%a) [add(^, %o)]*", "add(exp(%x), exp(%y))", 9,
     "exp add | a=x o0=exp; exp add | a=y o0=exp"},
    {"exp(%a) [add(^, %a)]*", "add(add(exp(%x), %x), %x)", 0, "exp add add | a=x"},
    {"exp(%a) [add(^, %a)]*", "add(add(exp(%x), %y), %x)", 9, ""},
    {"exp(%a) [nn.relu(^) [add(^, %o)]?]*", "add(nn.relu(add(nn.relu(exp(%x)), %y)), %z)", 0,
     "exp nn.relu add nn.relu add | a=x o0=y o1=z"},
    {"exp(%a) [multiply(^, sigmoid(^))]*", "multiply(%e, sigmoid(%e))", 0, "exp sigmoid multiply | a=x"},
    /* the rest */
    {"concatenate(%a...)", "concatenate(%x, %y, %z)", 0, "concatenate | a0=x a1=y a2=z"},
    {"concatenate(%f, %a...)", "concatenate(%x, %y, %z)", 0, "concatenate | f=x a0=y a1=z"},
    {"concatenate(%f, %a...)", "concatenate(%x)", 0, "concatenate | f=x"},
    {"concatenate(%f, %g, %a...)", "concatenate(%x)", 0, ""},
    {"concatenate(%f, %g)", "concatenate(%x, %y, %z)", 0, ""},
    {"concatenate(exp(%a), %r...)", "concatenate(exp(%x), %y, exp(%z))", 0,
     "exp concatenate | a=x r0=y r1=exp"},
    {"subtract(concatenate(%a...), concatenate(%a...))",
     "subtract(concatenate(%x, %y), concatenate(%x, %y))", 0, "concatenate concatenate subtract | a0=x a1=y"},
    {"subtract(concatenate(%a...), concatenate(%a...))",
     "subtract(concatenate(%x, %y), concatenate(%x, %z))", 0, ""},
    /* fields of tuples */
    {"exp(split(%a).1)", "exp(split(%x, sizes=[2, 2]).1)", 0, "split exp | a=x"},
    {"exp(split(%a).0)", "exp(split(%x, sizes=[2, 2]).1)", 0, ""},
    {"add(split(%a).0, split(%a).1)", "add(%s.1, %s.0)", 0, "split add | a=x"},
    {"add(split(%a).0, %b)", "add(%s.0, %s.1)", 9, ""},
    {"exp(%a.0)", "exp(split(%x, sizes=[2, 2]).0)", 0, "exp | a=split"},
    /* attributes */
    {"nn.leaky_relu(%a){alpha=0.5}", "nn.leaky_relu(%x, alpha=0.5)", 0, "nn.leaky_relu | a=x"},
    {"nn.leaky_relu(%a){alpha=0.5}", "nn.leaky_relu(%x)", 0, ""},
    {"nn.elu(%a){alpha=1}", "nn.elu(%x)", 0, "nn.elu | a=x"},
    {"nn.gelu(%a){approximate=\"none\"}", "nn.gelu(%x)", 0, "nn.gelu | a=x"},
    {"nn.gelu(%a){approximate=\"tanh\"}", "nn.gelu(%x)", 0, ""},
    {"sum(%a){keepdims=false}", "sum(%x, keepdims=false)", 0, "sum | a=x"},
    {"sum(%a){keepdims=false}", "sum(%x)", 0, ""},
    {"cumsum(%a){reverse=true, exclusive=false}", "cumsum(%x, reverse=true)", 0, "cumsum | a=x"},
    {"cumsum(%a){reverse=true, exclusive=true}", "cumsum(%x, reverse=true)", 0, ""},
    {"nn.leaky_relu(%a){alpha>0.2, alpha<=0.5}", "nn.leaky_relu(%x, alpha=0.5)", 0, "nn.leaky_relu | a=x"},
    {"nn.leaky_relu(%a){alpha>0.2, alpha<0.5}", "nn.leaky_relu(%x, alpha=0.5)", 0, ""},
    {"nn.leaky_relu(%a){alpha=0.1}", "nn.leaky_relu(%x, alpha=0.10000000149011612)", 0, "nn.leaky_relu | a=x"},
    {"nn.leaky_relu(%a){alpha=0.1}", "nn.leaky_relu(%x, alpha=0.1001)", 0, ""},
    {"nn.gelu(%a){approximate=\"none\"|\"tanh\"}", "nn.gelu(%x, approximate=\"tanh\")", 0, "nn.gelu | a=x"},
    {"nn.gelu(%a){approximate!=\"none\"}", "nn.gelu(%x)", 0, ""},
    {"nn.softmax(%a){axis=-1|0}", "nn.softmax(%x, axis=0)", 0, "nn.softmax | a=x"},
    {"nn.softmax(%a){axis!=-1|0}", "nn.softmax(%x, axis=0)", 0, ""},
    {"nn.softmax(%a){axis>=0, axis<=3}", "nn.softmax(%x, axis=0)", 0, "nn.softmax | a=x"},
    {"nn.softmax(%a){axis>=1}", "nn.softmax(%x, axis=0)", 0, ""},
    {"exp(split(%a){sizes=[_, 2]}.1)", "exp(%s.1)", 0, "split exp | a=x"},
    {"exp(split(%a){sizes=[_, 3]}.1)", "exp(%s.1)", 0, ""},
    {"exp(split(%a){sizes=[2, _, _]}.1)", "exp(%s.1)", 0, ""},
    {"exp(split(%a){sizes=[1,3]|[2,2]}.1)", "exp(%s.1)", 0, "split exp | a=x"},
    {"exp(split(%a){sizes<=2}.1)", "exp(%s.1)", 0, "split exp | a=x"},
    {"exp(split(%a){sizes>2}.1)", "exp(%s.1)", 0, ""},
    {"cast(%a){dtype=\"float64\"}", "cast(%x, dtype=\"float64\")", 0, "cast | a=x"},
    {"cast(%a){dtype=\"float16\"|\"int8\"}", "cast(%x, dtype=\"float64\")", 0, ""},
    /* types */
    {"exp(%a: float32)", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: float64|float16)", "exp(%x)", 0, ""},
    {"exp((%a: float64 | %b: float16|float32 | %c))", "exp(%x)", 9, "exp | b=x; exp | c=x"},
    {"exp(%a): Tensor[(4), float32]", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[(_)])", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[(_, _)])", "exp(%x)", 0, ""},
    {"exp(%a: Tensor[(>=5)])", "exp(%x)", 0, ""},
    {"exp(%a: Tensor[(<=4)])", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[(...)])", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[(..., 4)])", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[(4, ..., 4)])", "exp(%x)", 0, ""},
    {"exp(%a: Tensor[(2, ..., 2, 1)])", "exp(expand_dims(reshape(%x, [2, 2]), axis=[2]))", 0, "exp | a=expand_dims"},
    {"exp(%a: Tensor[(2, ..., 1)])", "exp(expand_dims(reshape(%x, [2, 2]), axis=[2]))", 0, "exp | a=expand_dims"},
    {"exp(%a: Tensor[rank<=2, float32])", "exp(%x)", 0, "exp | a=x"},
    {"exp(%a: Tensor[rank>=2])", "exp(%x)", 0, ""},
    {"exp(%a: Tensor[size=4])", "exp(%x)", 0, "exp | a=x"},
    {"add(%a, const %c: Tensor[size=1])", "add(%x, [1.0, 2.0, 3.0, 4.0])", 9, ""},
    {"exp(split(%a): float32)", "exp(%x)", 0, ""},
    {"exp(split(%a).0: Tensor[(2)])", "exp(%s.0)", 0, "split exp | a=x"},
    /* values */
    {"multiply(%a, const 0.5)", "multiply(%x, 0.5f)", 0, "multiply | a=x const0=const"},
    {"multiply(%a, const 0.5)", "multiply(%x, 0.5002f)", 0, ""},
    {"multiply(%a, const 0.70710678)", "multiply(0.70709f, %x)", 0, "multiply | a=x const0=const"},
    {"multiply(%a, const %half = 0.5)", "multiply(%x, [0.5])", 0, "multiply | a=x half=const"},
    {"multiply(%a, const 0.5)", "multiply(%x, [0.5, 0.5, 0.5, 0.5])", 0, ""},
    {"multiply(%a, const 0.5)", "multiply(%x, %y)", 9, ""},
    {"add(%a, const 0)", "add(%x, 0.00001f)", 0, ""},
    {"add(exp(multiply(%a, const 2)), abs(multiply(%a, const 2)))", "add(exp(%d), abs(%d))", 0,
     "multiply exp abs add | a=x const0=const"},
    {"add(multiply(%a, const 2), const 3)", "add(multiply(%x, 2f), 3f)", 0,
     "multiply add | a=x const0=const const1=const"},
    /* grouped in any way, in any order */
    {"add(%a, exp(%b), abs(%c))", "add(add(%x, exp(%y)), abs(%z))", 0, "exp add abs add | a=x b=y c=z"},
    {"add(%a, exp(%b), abs(%c))", "add(%x, add(exp(%y), abs(%z)))", 0, "exp abs add add | a=x b=y c=z"},
    {"add(%a, exp(%b), abs(%c))", "add(add(abs(%z), exp(%y)), %x)", 0, "abs exp add add | a=x b=y c=z"},
    {"add(%a, exp(%b), abs(%c))", "add(exp(%y), abs(%z))", 0, ""},
    {"add(%a, %b, %c)", "add(add(%x, %y), %z)", 9,
     "add add | a=x b=y c=z; add add | a=y b=x c=z; add add | a=x b=z c=y; "
     "add add | a=y b=z c=x; add add | a=z b=x c=y; add add | a=z b=y c=x"},
    {"add(%a, %b, %c)", "subtract(add(%x, %y), %z)", 9, ""},
    {"multiply(%a, / %b)", "divide(%x, %y)", 9, "divide | a=x b=y"},
    {"multiply(%a, / %b)", "multiply(reciprocal(%y), %x)", 0, "reciprocal multiply | a=x b=y"},
    {"multiply(%a, / %b)", "multiply(%x, %y)", 9, ""},
    {"multiply(exp(%a), %b, / %c)", "divide(multiply(%y, exp(%x)), %z)", 0, "exp multiply divide | a=x b=y c=z"},
    {"multiply(exp(%a), %b, / %c)", "multiply(%y, divide(exp(%x), %z))", 0, "exp divide multiply | a=x b=y c=z"},
    {"multiply(exp(%a), %b, / %c)", "divide(exp(%x), divide(%z, %y))", 0, "exp divide divide | a=x b=y c=z"},
    {"multiply(exp(%a), %b, / %c)", "divide(%z, multiply(%y, exp(%x)))", 9, ""},
    {"add(exp(%a), - %b)", "add(exp(%x), negative(%y))", 0, "exp negative add | a=x b=y"},
    {"add(exp(%a), - %b)", "subtract(exp(%x), %y)", 0, "exp subtract | a=x b=y"},
    {"add(exp(%a), - %b)", "subtract(%y, exp(%x))", 0, ""},
    {"add(- exp(%a), - %b)", "negative(add(exp(%x), %y))", 0, "exp add negative | a=x b=y"},
    /* tuples */
    {"(nn.relu(%a), exp(%a))", "(nn.relu(%x), exp(%x))", 0, "nn.relu exp tuple | a=x"},
    {"(nn.relu(%a), exp(%a))", "(nn.relu(%x), exp(%y))", 0, ""},
    {"(nn.relu(%a), exp(%b))", "(nn.relu(%x), exp(%y), %z)", 0, ""},
    {"(nn.relu(%a),)", "(nn.relu(%x),)", 0, "nn.relu tuple | a=x"},
    {"exp((abs(%a), %b).0)", "exp((abs(%x), %y).0)", 0, "abs tuple exp | a=x b=y"},
    /* how often a step occurs */
    {"exp(%a) [nn.relu(^)]{2}", "nn.relu(nn.relu(exp(%x)))", 0, "exp nn.relu nn.relu | a=x"},
    {"exp(%a) [nn.relu(^)]{2}", "nn.relu(exp(%x))", 0, ""},
    {"exp(%a) [nn.relu(^)]{1, 2}", "nn.relu(nn.relu(nn.relu(exp(%x))))", 0, ""},
    {"exp(%a) [add(^, %o)]{1, 2}", "add(add(exp(%x), %y), %z)", 0, "exp add add | a=x o0=y o1=z"},
    {"exp(%a) [add(^, %o)]{0, 1}", "add(exp(%x), %y)", 0, "exp add | a=x o=y"},
    /* names for inner nodes */
    {"add(nn.relu(%q), tanh(%q)) with %q = exp(%a)", "add(nn.relu(%e), tanh(%e))", 0,
     "exp nn.relu tanh add | a=x q:exp"},
    {"add(nn.relu(%q), tanh(%q)) with %q = exp(%a)", "add(nn.relu(%e), tanh(exp(%x)))", 0, ""},
    {"add(nn.relu(%q), %r) with %q = exp(%r), %r = abs(%a)", "add(nn.relu(exp(%d)), %d)", 0, ""},
    {"add(nn.relu(%q), %r) with %q = exp(%r), %r = multiply(%a, const 2)", "add(nn.relu(exp(%d)), %d)", 0,
     "multiply exp nn.relu add | a=x const0=const q:exp r:multiply"},
    /* dominator paths */
    {"exp(%a) [nn.relu(^) | abs(^)]~ [add(^, ^)]", "add(nn.relu(%e), abs(nn.relu(%e)))", 0,
     "exp nn.relu nn.relu abs add | a=x"},
    {"exp(%a) [nn.relu(^) | abs(^)]~ [add(^, ^)]", "add(%e, %e)", 0, "exp add | a=x"},
    {"exp(%a) [nn.relu(^) | abs(^)]~ [add(^, ^)]", "add(nn.relu(%e), abs(exp(%x)))", 0, ""},
    {"exp(%a) [nn.relu(^) | abs(^)]~ [add(^, ^)]", "add(nn.relu(%e), tanh(%e))", 0, ""},
    {"exp(%a) [nn.relu(^) | abs(^)]~ [add(^, ^)]", "add(nn.relu(%e), abs(%y))", 0, ""},
    {"exp(%a) [add(^, ^) | multiply(^, %o)]~ [tanh(^)]", "tanh(add(multiply(%e, %y), multiply(%z, %e)))", 0,
     "exp multiply multiply add tanh | a=x o0=y o1=z"},
};
/* clang-format on */

static struct byi_module *parse_body(const char *body)
{
    char text[1024];
    struct byi_module *m = NULL;
    struct byoc_error err;
    snprintf(text, sizeof text,
             "def @main(%%x: Tensor[(4), float32], %%y: Tensor[(4), float32], "
             "%%z: Tensor[(4), float32]) {\n"
             "  %%e = exp(%%x);\n  %%s = split(%%x, sizes=[2, 2]);\n"
             "  %%d = multiply(%%x, 2f);\n"
             "  %s\n}\n",
             body);
    if (byi_parse_module(text, strlen(text), "test", NULL, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static void check_matching(const struct matching *expected)
{
    struct byi_pattern_table *table = NULL;
    struct byoc_error err;
    if (compile(expected->pattern, &table, &err))
        fail_msg("'%s': %s", expected->pattern, err.text);
    struct byi_module *m = parse_body(expected->body);
    const struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    struct seen seen = {.refuse = expected->refuse};
    uint32_t tried = 0;
    const bool matched = byi_match(m, f, &table->at[0], f->result, NULL, NULL,
                                   record_match, &seen, &tried);
    const char *text = seen.text.n ? seen.text.at : "";
    if (strcmp(text, expected->seen) != 0)
        fail_msg("'%s' at %s: found \"%s\", expected \"%s\"", expected->pattern,
                 expected->body, text, expected->seen);
    assert_int_equal(matched, tried > 0 && tried > expected->refuse);
    byi_text_free(&seen.text);
    byi_module_free(&m);
    byi_patterns_free(&table);
}

static void binds_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(matchings); i++)
        check_matching(&matchings[i]);
}

/* Add nodes, so that the array of the function's nodes moves, and refuse. */
static bool add_nodes(const struct byi_match *match, void *ctx)
{
    struct byi_func *f = ctx;
    (void)match;
    for (uint32_t i = f->nodes.cap; i > 0; i--)
        BYI_PUSH(&f->nodes, ((struct byi_node){.kind = BYI_CONST}));
    return false;
}

static void survives_new_nodes(void **state)
{
    struct byi_pattern_table *table = NULL;
    struct byoc_error err;
    uint32_t tried = 0;
    (void)state;
    assert_int_equal(compile("add(%a, %b)", &table, &err), BYOC_OK);
    struct byi_module *m = parse_body("add(%x, %y)");
    struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    assert_false(byi_match(m, f, &table->at[0], f->result, NULL, NULL,
                           add_nodes, f, &tried));
    assert_int_equal(tried, 2); /* both orders */
    byi_module_free(&m);
    byi_patterns_free(&table);
}

/* Messages stay unchanged while others are made, until the buffer is full. */
static void check_messages(const struct byoc_host *host,
                           const struct byoc_match *m)
{
    const char *first = host->match_say(m, "found %s, expected %u axes",
                                        host->match_show(m, "src"), 2u);
    size_t said = 0;
    for (int i = 0; i < 100; i++)
        said += strlen(host->match_say(m, "%0100d", i));
    assert_in_range(said, 500, BYI_MATCH_MAX_TEXT);
    assert_string_equal(host->match_say(m, "more"), "");
    assert_string_equal(host->match_show(m, "src"), "");
    assert_string_equal(first, "found Tensor[(4), float32], expected 2 axes");
}

/* Check that the printed text of a compiled row compiles to the same row. */
static void check_printing(const char *pattern)
{
    struct byi_pattern_table *a = NULL, *b = NULL;
    struct byi_text first = {0}, second = {0};
    struct byoc_error err;
    if (compile(pattern, &a, &err))
        fail_msg("'%s': %s", pattern, err.text);
    print_pattern(&a->at[0], &first);
    if (compile(first.at, &b, &err))
        fail_msg("'%s', printed of '%s': %s", first.at, pattern, err.text);
    print_pattern(&b->at[0], &second);
    if (strcmp(first.at, second.at) != 0 ||
        a->at[0].n_nodes != b->at[0].n_nodes)
        fail_msg(
            "'%s', printed, compiled and printed: found '%s', expected '%s'",
            pattern, second.at, first.at);
    byi_text_free(&first);
    byi_text_free(&second);
    byi_patterns_free(&a);
    byi_patterns_free(&b);
}

static void prints_what_it_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(matchings); i++)
        check_printing(matchings[i].pattern);
    for (uint32_t i = 0; i < byi_dnnl_n_patterns; i++)
        check_printing(byi_dnnl_patterns[i].pattern);
}

/* Predicates query a match by name or by operator. */
static bool query_match(const struct byi_match *match, void *ctx)
{
    struct byoc_host host = {0};
    const struct byoc_match *m = (const void *)match;
    uint32_t dtype, rank, n;
    const int64_t *dims, *ints;
    uint64_t bytes;
    double f;
    byi_match_host(&host);
    *(bool *)ctx = true;
    assert_int_equal(host.match_n_ops(m), 3);
    assert_string_equal(host.match_op(m, 0), "split");
    assert_string_equal(host.match_op(m, 1), "nn.leaky_relu");
    assert_null(host.match_op(m, 3));
    assert_true(host.match_type(m, "src", &dtype, &rank, &dims));
    assert_int_equal(dtype, BYOC_F32);
    assert_int_equal(rank, 1);
    assert_int_equal(dims[0], 4);
    assert_true(host.match_type(m, NULL, &dtype, &rank, &dims));
    assert_int_equal(dims[0], 2);
    assert_false(host.match_type(m, "scr", &dtype, &rank, &dims));
    assert_false(host.match_op_type(m, 0, &dtype, &rank, &dims));
    assert_true(host.match_op_type(m, 2, &dtype, &rank, &dims));
    assert_false(host.match_op_type(m, 3, &dtype, &rank, &dims));
    assert_non_null(host.match_const(m, "scale", &bytes));
    assert_int_equal(bytes, 4);
    assert_null(host.match_const(m, "src", &bytes));
    assert_null(host.match_const(m, "none", &bytes));
    assert_true(host.match_ints(m, 0, "sizes", &ints, &n));
    assert_int_equal(n, 2);
    assert_true(host.match_ints(m, 0, "axis", &ints, &n));
    assert_int_equal(n, 1);
    assert_false(host.match_ints(m, 1, "alpha", &ints, &n));
    assert_false(host.match_ints(m, 9, "alpha", &ints, &n));
    assert_true(host.match_float(m, 1, "alpha", &f));
    assert_true(f > 0.24 && f < 0.26);
    assert_false(host.match_float(m, 0, "axis", &f));
    assert_null(host.match_string(m, 1, "alpha"));
    assert_string_equal(host.match_show(m, "src"), "Tensor[(4), float32]");
    assert_string_equal(host.match_show(m, NULL), "Tensor[(2), float32]");
    assert_string_equal(host.match_show(m, "scr"), "nothing");
    assert_string_equal(host.match_show_op(m, 0),
                        "(Tensor[(2), float32], Tensor[(2), float32])");
    assert_string_equal(host.match_show_op(m, 3), "nothing");
    assert_int_equal(host.match_find(m, "act"), 1);
    assert_int_equal(host.match_find(m, "src"), UINT32_MAX);
    check_messages(&host, m);
    return true;
}

static void answers_predicates(void **state)
{
    (void)state;
    struct byi_pattern_table *table = NULL;
    uint32_t tried;
    bool asked = false;
    assert_int_equal(compile("multiply(%act, const %scale) with "
                             "%act = nn.leaky_relu(split(%src).0)",
                             &table, NULL),
                     BYOC_OK);
    struct byi_module *m =
        parse_body("multiply(2f, nn.leaky_relu(%s.0, alpha=0.25))");
    const struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    assert_true(byi_match(m, f, &table->at[0], f->result, NULL, NULL,
                          query_match, &asked, &tried));
    assert_true(asked);
    byi_module_free(&m);
    byi_patterns_free(&table);
}

/* --- random rows ---------------------------------------------------------- */

static const char *random_row(void)
{
    const uint32_t i =
        draw(byi_dnnl_n_patterns + (uint32_t)BYI_COUNT(matchings));
    return i < byi_dnnl_n_patterns ? byi_dnnl_patterns[i].pattern
                                   : matchings[i - byi_dnnl_n_patterns].pattern;
}

/* Make a row with some bytes changed, or the head of one row and the tail of
 * another, or random characters. */
static void make_row(char *row, size_t size)
{
    static const char tokens[] = "()[]{}|*?^.,%=\"abx0123 -";
    if (draw(8) == 0) {
        const uint32_t n = draw(60);
        for (uint32_t i = 0; i < n; i++)
            row[i] = (char)(1 + draw(255));
        row[n] = '\0';
        return;
    }
    const char *a = random_row(), *b = random_row();
    const uint32_t head = draw((uint32_t)strlen(a) + 1);
    const uint32_t tail = draw((uint32_t)strlen(b) + 1);
    const bool whole = draw(2) == 0;
    snprintf(row, size, "%.*s%s", whole ? (int)strlen(a) : (int)head, a,
             whole ? "" : b + tail);
    for (uint32_t i = draw(4); i > 0 && *row; i--)
        row[draw((uint32_t)strlen(row))] =
            tokens[draw((uint32_t)sizeof tokens - 1)];
}

static bool refuse(const struct byi_match *match, void *ctx)
{
    (void)ctx;
    assert_true(match->n_ops > 0);
    assert_int_equal(match->ops[match->n_ops - 1], match->root);
    return false;
}

static void survives_random_rows(void **state)
{
    (void)state;
    const char *text = getenv("BYOC_FUZZ_ROWS");
    const uint32_t n = text ? (uint32_t)strtoul(text, NULL, 10) : 20000;
    struct byi_module *m =
        parse_body("%0 = add(multiply(%s.0, sigmoid(%s.1)), 1.0);"
                   "%1 = concatenate(%0, nn.relu(nn.relu(%0)), %0);"
                   "%2 = exp(add(add(%1, %1), %1));"
                   "multiply(%2, sigmoid(%2))");
    const struct byi_func *f = m->funcs.at[byi_func_find(m, "main")];
    uint32_t good = 0;
    rng = 0x9e3779b97f4a7c15u;
    for (uint32_t i = 0; i < n; i++) {
        char row[2048];
        struct byi_pattern_table *table = NULL;
        struct byoc_error err = {0};
        make_row(row, sizeof row);
        if (compile(row, &table, &err) != BYOC_OK) {
            assert_true(err.text[0] != '\0');
            continue;
        }
        good++;
        for (byi_id id = 0; id < f->nodes.n; id++) {
            uint32_t tried;
            if (f->nodes.at[id].kind == BYI_CALL_OP)
                byi_match(m, f, &table->at[0], id, NULL, NULL, refuse, NULL,
                          &tried);
        }
        byi_patterns_free(&table);
    }
    byi_module_free(&m);
    print_message("%u of %u random rows were patterns\n", good, n);
    assert_true(good > n / 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refuses_bad_rows),
        cmocka_unit_test(has_limits),
        cmocka_unit_test(indexes_roots),
        cmocka_unit_test(binds_by_name),
        cmocka_unit_test(survives_new_nodes),
        cmocka_unit_test(prints_what_it_read),
        cmocka_unit_test(answers_predicates),
        cmocka_unit_test(survives_random_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
