/* SPDX-License-Identifier: Apache-2.0 */
/* text_test.c: tests the text form: printed text parses to the same module,
 * errors name position and cause, and no text breaks the parser.
 */
#include "core/ir/ir.h"
#include "tests/folder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct byi_module *parse(const char *text)
{
    struct byi_module *m = NULL;
    struct byoc_error err;

    if (byi_parse_module(text, strlen(text), "t.ir", NULL, &m, &err))
        fail_msg("%s", err.text);
    return m;
}

static char *print(const struct byi_module *m, FILE *side)
{
    struct byi_text text = {0};

    byi_print_module(m, &text, side);
    return text.at;
}

/* --- equality of modules ------------------------------------------------ */

static void same_const(const struct byi_const *c, const struct byi_const *d)
{
    assert_true(byi_type_equal(c->type, d->type));
    if (c->type->dtype != BYOC_STRING && c->bytes)
        assert_memory_equal(c->data, d->data, c->bytes);
}

/* Whether the text form prints a node only where it is read, and so does not
 * keep its position among the nodes. */
static bool is_inline(const struct byi_module *m, const struct byi_func *f,
                      byi_id id)
{
    const struct byi_node *node = &f->nodes.at[id];

    return node->kind == BYI_CONST || node->kind == BYI_GLOBAL ||
           (node->kind == BYI_FN && m->funcs.at[node->index] == f);
}

static void same_annotations(const struct byi_module *a,
                             const struct byi_node *x,
                             const struct byi_module *b,
                             const struct byi_node *y)
{
    assert_int_equal(x->region, y->region);
    assert_int_equal(x->let, y->let);
    assert_int_equal(x->backend == 0, y->backend == 0);
    if (x->backend)
        assert_string_equal(a->backends.at[x->backend - 1],
                            b->backends.at[y->backend - 1]);
    assert_int_equal(x->sources->n, y->sources->n);
    for (uint32_t i = 0; i < x->sources->n; i++) {
        const struct byi_source *s = &a->sources.at[x->sources->at[i]];
        const struct byi_source *t = &b->sources.at[y->sources->at[i]];
        assert_string_equal(s->name, t->name);
        assert_string_equal(s->op, t->op);
    }
}

static void same_node(const struct byi_module *a, const struct byi_node *x,
                      const struct byi_module *b, const struct byi_node *y)
{
    assert_int_equal(x->kind, y->kind);
    assert_int_equal(x->n_args, y->n_args);
    if (x->kind == BYI_CONST)
        same_const(&a->consts.at[x->index], &b->consts.at[y->index]);
    else
        assert_int_equal(x->index, y->index);
    assert_int_equal(x->op, y->op);
    if (x->kind == BYI_CALL_OP)
        assert_true(byi_attrs_equal(x->attrs, y->attrs));
    same_annotations(a, x, b, y);
}

static void same_func(const struct byi_module *a, const struct byi_func *f,
                      const struct byi_module *b, const struct byi_func *g)
{
    byi_id *map = calloc(f->nodes.n, sizeof *map), next = 0;

    assert_int_equal(f->params.n, g->params.n);
    assert_int_equal(f->n_captures, g->n_captures);
    assert_int_equal(f->attr.primitive, g->attr.primitive);
    assert_int_equal(f->attr.inlined, g->attr.inlined);
    for (uint32_t k = 0; k < f->params.n; k++)
        assert_string_equal(f->param_names.at[k], g->param_names.at[k]);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        const struct byi_node *x = &f->nodes.at[id], *y = NULL;
        if (is_inline(a, f, id))
            continue;
        while (is_inline(b, g, next))
            next++;
        y = &g->nodes.at[next];
        same_node(a, x, b, y);
        for (uint32_t i = 0; i < x->n_args; i++) {
            if (is_inline(a, f, x->args[i]))
                same_node(a, &f->nodes.at[x->args[i]], b,
                          &g->nodes.at[y->args[i]]);
            else
                assert_int_equal(map[x->args[i]], y->args[i]);
        }
        map[id] = next++;
    }
    if (!is_inline(a, f, f->result))
        assert_int_equal(map[f->result], g->result);
    free(map);
}

static void same_module(const struct byi_module *a, const struct byi_module *b)
{
    assert_int_equal(a->funcs.n, b->funcs.n);
    for (uint32_t i = 0; i < a->funcs.n; i++) {
        const struct byi_func *f = a->funcs.at[i], *g = b->funcs.at[i];
        assert_int_equal(f->name == NULL, g->name == NULL);
        if (f->name)
            assert_string_equal(f->name, g->name);
        same_func(a, f, b, g);
    }
}

static FILE *open_side(char path[TEST_PATH + 8])
{
    snprintf(path, TEST_PATH + 8, "%s/side", make_test_folder(NULL));
    FILE *side = fopen(path, "w+b");
    assert_non_null(side);
    return side;
}

/* print(parse(text)) is a fixed point, and reads back as the same module. */
static void round_trip(const char *text)
{
    char path[TEST_PATH + 8];
    FILE *side = open_side(path);
    struct byi_module *a = parse(text), *b = NULL;
    struct byoc_error err;
    char *once = print(a, side), *twice = NULL;

    fclose(side);
    if (byi_parse_module(once, strlen(once), "again", path, &b, &err))
        fail_msg("%s\n%s", err.text, once);
    twice = print(b, NULL);
    assert_string_equal(once, twice);
    same_module(a, b);
    byi_vec_free(once);
    byi_vec_free(twice);
    byi_module_free(&a);
    byi_module_free(&b);
}

#define T4 "Tensor[(4), float32]"
#define MAIN(body) "def @main(%x: " T4 ") -> " T4 " {\n  " body "\n}\n"

static const char *const forms[] = {
    MAIN("%x"),
    MAIN("nn.relu(%x)"),
    MAIN("let %y = abs(%x); add(%y, %y)"),
    MAIN("let %y = abs(%x); %y"),
    MAIN("%f = fn (%y: " T4 ", Inline=1) { abs(%y) };\n"
         "%g = fn (%y: " T4 ", Primitive=1, Inline=1) { abs(%y) };\n"
         "%f(%g(%x))"),
    MAIN("let %f = fn () { let %y = abs(%x); %y }; let %k = 1.0f;\n"
         "let %r = if (true) { %f() } else { add(%x, %k) }; %r"),
    MAIN("%0 = abs(%x); %0 = exp(%0); // shadowed\n nn.relu(%0)"),
    MAIN("%0 = abs(%x); %1 = exp(%x); %0"),
    MAIN("nn.leaky_relu((((%x))), alpha=0.25)"),
    MAIN("%t = (%x, abs(%x), (%x,), ()); %t.2.0"),
    MAIN("add(%x, [1.0, -0.0, inf, 1e-45])"),
    MAIN("cast(cast(%x, dtype=\"int8\"), dtype=\"float32\")"),
    MAIN("%c = less(max(%x, keepdims=false), 1.5f);\n"
         "if (%c) { abs(%x) } else { let %y = exp(%x); add(%x, %y) }"),
    MAIN("%y = abs(%x);\n"
         "%f = fn (%x: " T4 ") -> " T4 " { multiply(%x, %y) };\n"
         "%f(%f(%x))"),
    MAIN("%y = %x; %f = fn (%a: " T4 ") { fn () { add(%a, %y) } };\n"
         "%f(%x)()"),
    MAIN("let %f = fn (%a: " T4 ") -> " T4 " {\n"
         "if (less(max(%a, keepdims=false), 1.5f)) { let %b = abs(%a); "
         "%f(%b) } else { %a } }; %f(%x)"),
    MAIN("%k = abs(%x); %f = fn (%a: " T4 ") -> " T4 " { %g = %f;\n"
         "%h = fn (%x: " T4 ") -> " T4 " { add(%h(%f(%x)), %k) };\n"
         "(%g, add(%h(%g(%a)), %x)).1 }; %f(%x)"),
    MAIN("%f = abs(%x); %f = fn (%f: " T4 ") { nn.relu(%f) }; %f(%x)"),
    MAIN("%f = fn () -> " T4 " { %f() };\n"
         "if (true) { %f() } else { %x }"),
    MAIN("%f = fn (%src: " T4 ", Composite=\"v.op\", PartitionedFromPattern="
         "\"add_relu\", Operands=\"b,a\") -> " T4 " {\n"
         "let %a = 1.0f; let %b = 2.0f; add(add(%src, %b), %a) }; %f(%x)"),
    MAIN("nn.relu(%x) @[v.3] #[\"n1\": \"Relu\", \"n2\"]"),
    MAIN("%0 = abs(%x) #[\"b\"]; %1 = exp(%0) @[v] #[\"a\", \"b\"];\n"
         "%2 = 1.0f #[\"c\": \"Constant\"]; add(%1, %2) @[.7]"),
    MAIN("@f(@g(%x))") "def @f(%x: " T4 ") -> " T4 " { @g(%x) }\n"
                       "def @g(%x: " T4 ", Compiler=\"v\", Primitive=1, "
                       "global_symbol=\"v_0\") -> " T4 " { abs(%x) }",
    MAIN("%g = @f; %g(%g(%x))") "def @f(%x: " T4 ") -> " T4
                                " { if (true) { %x } else { @f(%x) } }",
    "def @main(%x: Tensor[(N, \"a b\"), float32], Outputs=[\"y\"]) {\n"
    "  nonzero(%x)\n}",
    "def @main(%x: Tensor[(N), float32]) -> Tensor[(1, ?3), int64] {\n"
    "  %0 = nonzero(%x); nonzero(%x)\n}",
    "def @main(%x: Tensor[(N), float32], %c: Tensor[(), bool]) {\n"
    "  if (%c) { nonzero(%x) } else { nonzero(abs(%x)) }\n}",
    "def @main(%\"in.0\": " T4 ", %\"0\": " T4 ") {\n"
    "  %0 = add(%\"0\", %\"in.0\"); add(%0, %\"0\")\n}",
    "def @main(%f: fn (" T4 ", (Tensor[(), bool],)) -> " T4 ", %x: " T4
    ") { %f(%x, (true,)) }",
    "def @main() { (1, 2i32, -3i8, 255u8, 4i16, 5u16, 6u32, true, false,\n"
    "  18446744073709551615u64, 1.5f, 0.1f64, 2.5f16, 3.0bf16, nan, inf,\n"
    "  [1, 2, 3], Tensor[(2, 2), int32] {1, 2, 3, 4}, \"text\",\n"
    "  Tensor[(0), int64] {}, Tensor[(), float64] {-inf},\n"
    "  Tensor[(1), complex64] {1.0, -2.0},\n"
    "  Tensor[(2), string] {\"a\\\"b\", \"\\x01\"}) }",
    "def @main() { nn.conv2d(random[(1, 3, 8, 8), float32, seed=1],\n"
    "  random[(4, 3, 3, 3), float32, seed=2], strides=[2, 2]) }",
    "def @main() { (random[(99), int8, seed=1], random[(99), bool, seed=1],"
    " random[(99), uint8, seed=3], random[(99), float16, seed=3]) }",
};

static void test_round_trip(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(forms); i++)
        round_trip(forms[i]);
}

static void test_printed_lines(void **state)
{
    static const char text[] =
        "def @main(%x: Tensor[(1, 3, 8, 8), float32]) -> "
        "Tensor[(1, 4, 6, 6), float32] {\n"
        "  let %0 = nn.conv2d(%x, const[\"e81f9d48983a76dd\"]) @[v];\n"
        "  %1 = max(%0, keepdims=false);\n"
        "  let %2 = less(%1, 1.5f);\n"
        "  if (%2) {\n"
        "    nn.relu(%0)\n"
        "  } else {\n"
        "    %3 = exp(%0);\n"
        "    add(%0, %3)\n"
        "  }\n"
        "}\n";
    struct byi_module *m =
        parse("def @main(%x: Tensor[(1, 3, 8, 8), float32]) { let %c = "
              "nn.conv2d(%x, random[(4, 3, 3, 3), float32, seed=7], "
              "strides=[1, 1], groups=1) @[v]; let %p = less(max(%c, "
              "keepdims=false), 1.5f); if (%p) { nn.relu(%c) } else { add(%c, "
              "exp(%c)) } }");
    char *found = print(m, NULL);

    (void)state;
    assert_string_equal(found, text);
    byi_vec_free(found);
    byi_module_free(&m);
}

/* --- errors ------------------------------------------------------------- */

static const struct {
    const char *text, *message;
    enum byoc_status status;
} error_cases[] = {
    {"", NULL, BYOC_OK}, /* an empty module */
    {"deg @f", "t.ir:1:1: error: found 'deg', expected 'def @name",
     BYOC_EPARSE},
    {MAIN("%y"), "t.ir:2:3: error: %y is not defined here", BYOC_EPARSE},
    {MAIN("nn.rulu(%x)"), "t.ir:2:3: error: unknown operator 'nn.rulu'",
     BYOC_EPARSE},
    {MAIN("add(%x)"), "t.ir:2:3: error: add: ", BYOC_ETYPE},
    {MAIN("add(%x, [1.0, 2.0])"), "t.ir:2:3: error: add: ", BYOC_ETYPE},
    {MAIN("nn.relu(%x, beta=1)"), "found attribute beta", BYOC_EINVAL},
    {MAIN("nn.elu(%x, alpha=1.0, alpha=2.0)"), "given twice", BYOC_EINVAL},
    {MAIN("cast(%x, dtype=\"float33\")"), "t.ir:2:18: error: found 'float33'",
     BYOC_EPARSE},
    {MAIN("%x.0"), "t.ir:2:5: error: projection .0: found float32 (4,)",
     BYOC_ETYPE},
    {MAIN("%x(%x)"), "expected a function", BYOC_ETYPE},
    {MAIN("nn.relu(%x"), "t.ir:3:1: error: found '}', expected ',' or ')'",
     BYOC_EPARSE},
    {MAIN("%0 = nn.relu(%x)"), "expected ';' after a value", BYOC_EPARSE},
    {MAIN("if (true) { %x }"), "expected 'else'", BYOC_EPARSE},
    {MAIN("if (1) { %x } else { %x }"), "the condition is int64", BYOC_ETYPE},
    {MAIN("@f(%x)"), "t.ir:2:3: error: @f is not defined", BYOC_EPARSE},
    {MAIN("@f(%x)") "def @f(%x: " T4 ") { %x }",
     "@f is used before the end of its definition", BYOC_EPARSE},
    {"def @f(%x: " T4 ") { @f(%x) }", "declare its result", BYOC_EPARSE},
    {MAIN("%f = fn (%a: " T4 ") { %f(%a) }; %f(%x)"),
     "t.ir:2:40: error: %f is used inside of its own definition, expected it "
     "to declare its result: %f = fn (...) -> TYPE",
     BYOC_EPARSE},
    {MAIN("%f = fn (%a: " T4 ") -> " T4 " { %f(%a, %a) }; %f(%x)"),
     "call: found 2 arguments, expected 1", BYOC_ETYPE},
    {MAIN("%f = (fn (%a: " T4 ") -> " T4 " { %f(%a) }); %f(%x)"),
     "%f is not defined here", BYOC_EPARSE},
    {MAIN("(fn (%a: " T4 ") -> " T4 " { %f(%a) })(%x)"),
     "%f is not defined here", BYOC_EPARSE},
    {MAIN("sum(%x)"),
     "the function's result is Tensor[(1), float32], "
     "expected Tensor[(4), float32], as declared",
     BYOC_ETYPE},
    {MAIN("%0: Tensor[(5), float32] = %x; %x"), "the value is", BYOC_ETYPE},
    {MAIN("%x") MAIN("%x"), "second definition of @main", BYOC_EPARSE},
    {"def @f(%a: " T4 ", %a: " T4 ") { %a }", "second parameter %a",
     BYOC_EPARSE},
    {"def @f(%0: " T4 ") { %0 }", "%\"0\" is one", BYOC_EPARSE},
    {"def @f(%x: " T4 ", Foo=\"a\") { %x }", "unknown attribute Foo",
     BYOC_EPARSE},
    {"def @f(%x: " T4 ", Outputs=[\"a\", \"b\"]) { %x }",
     "@f: it has 2 names for its results, expected 1", BYOC_ETYPE},
    {"def @f(%x: Tensor[(4), flot]) { %x }", "expected an element type",
     BYOC_EPARSE},
    {"def @f(%x: Tensor[(1,1,1,1,1,1,1,1,1,1,1,1,1), int8]) { %x }",
     "found too many axes, expected at most 12", BYOC_ELIMIT},
    {MAIN("%x @[v]"), "annotation of a name", BYOC_EPARSE},
    {MAIN("abs(%x) @[v] @[w]"), "second annotation", BYOC_EPARSE},
    {MAIN("const[\"0123456789abcdef\"]"),
     "the constant 0123456789abcdef is in a side file", BYOC_EPARSE},
    {MAIN("const[\"xyz\"]"), "expected a digest", BYOC_EPARSE},
    {MAIN("300u8"), "a value of type uint8", BYOC_EPARSE},
    {MAIN("1x7"), "with a suffix", BYOC_EPARSE},
    {MAIN("Tensor[(2), int32] {1}"), "found 1 elements, expected 2",
     BYOC_EPARSE},
    {MAIN("Tensor[(N), int32] {1}"), "the symbol N", BYOC_EPARSE},
    {MAIN("random[(100000, 100000), float32, seed=1]"), "random constants",
     BYOC_ELIMIT},
    {MAIN("\"abc"), "without its closing", BYOC_EPARSE},
    {MAIN("%x /* end"), "comment without its closing", BYOC_EPARSE},
    {MAIN("%x \xff"), "not printable ASCII", BYOC_EPARSE},
    {"def @f(%x: " T4, "found the end of the text", BYOC_EPARSE},
};

static void test_errors(void **state)
{
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(error_cases); i++) {
        struct byi_module *m = NULL;
        struct byoc_error err = {0};
        enum byoc_status status =
            byi_parse_module(error_cases[i].text, strlen(error_cases[i].text),
                             "t.ir", NULL, &m, &err);
        if (status != error_cases[i].status ||
            (error_cases[i].message &&
             !strstr(err.text, error_cases[i].message)))
            fail_msg("%s\n  found %d %s\n  expected %d %s", error_cases[i].text,
                     status, err.text, error_cases[i].status,
                     error_cases[i].message);
        assert_int_equal(m == NULL, status != BYOC_OK);
        byi_module_free(&m);
    }
}

/* --- large inputs ------------------------------------------------------- */

static void repeat(struct byi_text *text, const char *what, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        byi_text_add(text, what, strlen(what));
}

/* Parse a body of n times `open`, %x and n times `close`. */
static void check_nested(const char *open, const char *close, uint32_t n,
                         enum byoc_status expected, const char *message)
{
    struct byi_text text = {0};
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    enum byoc_status status;

    byi_text_addf(&text, "def @main(%%x: " T4 ") { ");
    repeat(&text, open, n);
    byi_text_addf(&text, "%%x");
    repeat(&text, close, n);
    byi_text_addf(&text, " }");
    status = byi_parse_module(text.at, text.n, "t.ir", NULL, &m, &err);
    assert_int_equal(status, expected);
    if (message && !strstr(err.text, message))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, message);
    byi_module_free(&m);
    byi_text_free(&text);
}

/* Check that a parameter's type of n times `open`, T4 and n times `close` is
 * refused. */
static void check_types_refused(const char *open, const char *close, uint32_t n,
                                const char *message)
{
    struct byi_text text = {0};
    struct byi_module *m = NULL;
    struct byoc_error err = {0};

    byi_text_addf(&text, "def @main(%%x: ");
    repeat(&text, open, n);
    byi_text_addf(&text, T4);
    repeat(&text, close, n);
    byi_text_addf(&text, ") { 1 }");
    assert_int_equal(byi_parse_module(text.at, text.n, "t.ir", NULL, &m, &err),
                     BYOC_ELIMIT);
    if (!strstr(err.text, message))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, message);
    byi_text_free(&text);
}

static void test_depth(void **state)
{
    (void)state;
    check_nested("(", ")", 100000, BYOC_OK, NULL);
    check_nested("abs(", ")", 100000, BYOC_OK, NULL);
    check_nested("(", "", 100000, BYOC_EPARSE, NULL);
    check_nested("(", ")", 2000000, BYOC_ELIMIT, "too many open brackets");
    check_nested("(", ",)", 100, BYOC_ELIMIT, "nested types");
    check_nested("fn () { ", " }", 300, BYOC_ELIMIT,
                 "nested functions and branches");
    check_nested("if (true) { ", " } else { %x }", 200, BYOC_OK, NULL);
    check_nested("if (true) { ", " } else { %x }", 100000, BYOC_ELIMIT,
                 "nested functions and branches");
    check_nested("fn () -> " T4 " { ", " }", 100000, BYOC_ELIMIT,
                 "nested functions and branches");
    check_nested("let %f = fn () -> " T4 " { %f(); ", " }; %f()", 100000,
                 BYOC_EPARSE, "expected '}'");
    check_nested("let %f = fn () -> " T4 " { let %g = %f; ", " }; %f()", 100000,
                 BYOC_ELIMIT, "nested functions and branches");
    check_nested("let %f = fn () -> " T4 " { let %g = %f; ", " }; %f()", 200,
                 BYOC_OK, NULL);
    check_nested("let %x = abs(%x);", "", 1000000, BYOC_OK, NULL);
    check_types_refused("(", ",)", 1000000, "nested types");
    check_types_refused("fn () -> ", "", 1000000, "nested types");
    check_types_refused("fn (", ") -> " T4, 100000, "nested types");
    check_nested("let %x = (%x, %x);", "", 60, BYOC_ELIMIT, "fields");
}

/* Parse n bytes. Either there is an error with a message, or the printed module
 * parses to the same text. */
static void parse_or_refuse(const char *text, size_t n)
{
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    char *once = NULL;

    if (byi_parse_module(text, n, "t.ir", NULL, &m, &err)) {
        assert_true(err.text[0] != '\0');
        return;
    }
    once = print(m, NULL);
    byi_module_free(&m);
    if (!strstr(once, "const[\"")) {
        char *twice = NULL;
        if (byi_parse_module(once, strlen(once), "again", NULL, &m, &err))
            fail_msg("%.*s\n--\n%s\n%s", (int)n, text, once, err.text);
        twice = print(m, NULL);
        assert_string_equal(once, twice);
        byi_vec_free(twice);
        byi_module_free(&m);
    }
    byi_vec_free(once);
}

static void test_mutations(void **state)
{
    static const char bytes[] = "%@(){}[]<>,;:=.-\"0149xNfe#?/* \n\\";
    uint64_t random = 1;

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(forms); i++) {
        size_t n = strlen(forms[i]);
        char *copy = strdup(forms[i]);
        for (size_t k = 0; k < n; k++) {
            parse_or_refuse(forms[i], k);
            for (int times = 0; times < 3; times++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                copy[k] = bytes[(random >> 33) % (sizeof bytes - 1)];
                parse_or_refuse(copy, n);
                copy[k] = forms[i][k];
            }
        }
        free(copy);
    }
}

/* --- the side file ------------------------------------------------------ */

static enum byoc_status parse_side(const char *text, const char *path,
                                   struct byoc_error *err)
{
    struct byi_module *m = NULL;
    enum byoc_status status =
        byi_parse_module(text, strlen(text), "t.ir", path, &m, err);

    byi_module_free(&m);
    return status;
}

static void test_side_file(void **state)
{
    char path[TEST_PATH + 8];
    FILE *side = open_side(path);
    struct byi_module *m =
        parse("def @main() { (random[(40), float32, seed=1], "
              "random[(20), int64, seed=2], random[(4, 10), float32, "
              "seed=1]) }");
    char *text = print(m, side);
    struct byoc_error err = {0};
    long size = ftell(side);

    (void)state;
    byi_module_free(&m);
    fflush(side);
    assert_int_equal(size % BYI_ALIGN, 0);
    assert_int_equal(parse_side(text, path, &err), BYOC_OK);
    assert_int_equal(parse_side(text, "/nonexistent/side", &err), BYOC_EIO);
    for (long n = size - 1; n >= 0; n -= 13) { /* cut off */
        assert_int_equal(ftruncate(fileno(side), n), 0);
        if (parse_side(text, path, &err) == BYOC_OK)
            assert_true(n > size - BYI_ALIGN); /* only padding is missing */
    }
    rewind(side);
    m = parse("def @main() { random[(40), float32, seed=1] }");
    byi_vec_free(print(m, side));
    byi_module_free(&m);
    fflush(side);
    assert_int_equal(parse_side(text, path, &err), BYOC_EPARSE);
    assert_non_null(strstr(err.text, "is not in the side file"));
    for (long at = 0; at < 64 + 128 + 160; at += 7) { /* a byte changed */
        int byte;
        fseek(side, at, SEEK_SET);
        byte = fgetc(side);
        fseek(side, at, SEEK_SET);
        fputc(byte ^ 0x41, side);
        fflush(side);
        assert_int_not_equal(parse_side(text, path, &err), BYOC_OK);
        fseek(side, at, SEEK_SET);
        fputc(byte, side);
    }
    fclose(side);
    byi_vec_free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_printed_lines),
        cmocka_unit_test(test_errors),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_side_file),  cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
