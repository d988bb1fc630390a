/* SPDX-License-Identifier: Apache-2.0 */
/* table_test.c: tests oneDNN's table row by row. It has programs of each of the
 * row's operators, with each post-op and each kind of operand that broadcasts,
 * constant and not. Each program must be one composite of that row, pass the
 * probe, give the results of the native kernels, and give the same bits as C.
 * Other programs must be refused by the row's predicate or builder, each with
 * its message. A row, operator, post-op or message without a program fails the
 * test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "needs.h"
#include "program.inc"
#include "samples.h"

#define COMMA ,
#define NAME_OF(op, name, ...) name

static struct {
    uint32_t programs, matched, probed, run, compared, units, refused;
} counts[MAX_ROWS];
static bool operator_seen[BYI_N_OPS], post_seen[BYI_N_OPS];
static uint32_t row;

/* Record the operators of the composite. */
static void note_ops(const struct byi_func *f)
{
    bool first = true;
    for (byi_id id = 0; id < f->nodes.n; id++) {
        if (f->nodes.at[id].kind != BYI_CALL_OP)
            continue;
        (first ? operator_seen : post_seen)[f->nodes.at[id].op] = true;
        first = false;
    }
}

/* A copy of `body` in which `dtype` replaces float32. */
static char *body_of(const char *body, const char *dtype)
{
    struct byi_text text = {0};
    for (const char *p; (p = strstr(body, "float32")); body = p + 7)
        byi_text_addf(&text, "%.*s%s", (int)(p - body), body, dtype);
    byi_text_addf(&text, "%s", body);
    return text.at;
}

/* Check a program, all of which must be one composite of the row; `dtype` is
 * the type of its floats. */
static void check_composite_as(const char *params, const char *dtype,
                               const char *float32_body)
{
    char *body = body_of(float32_body, dtype);
    char *text = program_text(params, dtype, body);
    byi_text_free(&(struct byi_text){.at = body});
    struct byi_module *plain = parse(text), *m = parse(text);
    struct byi_arena *arena = byi_arena_new();
    struct byi_tensor in[MAX_IO], expected[MAX_IO];
    struct byoc_error err;
    uint32_t n_expected, func = 0;
    counts[row].programs++;
    fill_inputs(main_of(plain), arena, in);
    if (byi_interp_run(plain, byi_func_find(plain, "main"), in,
                       main_of(plain)->params.n, arena, expected, MAX_IO,
                       &n_expected, &err))
        fail_msg("%s\n%s", err.text, text);
    probes = 0;
    merge(m, false, text);
    if (count_composites(m, &func) != 1 ||
        strcmp(m->funcs.at[func]->attr.composite, watched->name) != 0 ||
        count_ops(m->funcs.at[func]) != count_ops(main_of(plain)))
        fail_msg("found %u composites, expected one of row %s with all "
                 "operators: %s\n%s",
                 count_composites(m, &func), watched->name, refusal_text, text);
    counts[row].matched++;
    counts[row].probed += probes != 0;
    note_ops(m->funcs.at[func]);
    run_composite(m, func, in, expected, n_expected, arena, text);
    counts[row].run++;
    counts[row].compared++;
    byi_module_free(&plain);
    byi_module_free(&m);
    byi_arena_free(&arena);
    byi_text_free(&(struct byi_text){.at = text});
}

static void check_composite(const char *params, const char *body)
{
    check_composite_as(params, "float32", body);
}

static const char *const messages[] = {
#define TEXT_OF(id, text) text
    BYI_DN_REFUSALS(TEXT_OF, COMMA)};
#define ID_OF(id, text) id
enum { BYI_DN_REFUSALS(ID_OF, COMMA), N_MESSAGES };
static bool is_raised[N_MESSAGES];

/* The end of a message, after its last %s. */
static const char *end_of(uint32_t message)
{
    const char *last = messages[message];
    for (const char *p = last; (p = strstr(p, "%s")); p += 2)
        last = p + 2;
    return last;
}

/* Record the messages that predicates gave for the last program. Returns
 * whether there are any. */
static bool note_messages(void)
{
    bool any = false;
    for (uint32_t i = 0; i < N_MESSAGES; i++)
        if (strstr(refusal_text, end_of(i)))
            any = is_raised[i] = true;
    return any;
}

/* Check that the row matches a program, and that the predicate or probe refuses
 * it with a message that contains `message`. */
static void check_refused(const char *params, const char *dtype,
                          const char *body, const char *message)
{
    char *text = program_text(params, dtype, body);
    struct byi_module *m = parse(text);
    merge(m, false, text);
    if (!strstr(refusal_text, message))
        fail_msg("row %s: expected '%s', found '%s'\n%s", watched->name,
                 message, refusal_text, text);
    note_messages();
    counts[row].refused++;
    byi_module_free(&m);
    byi_text_free(&(struct byi_text){.at = text});
}

/* --- programs made from a sample ------------------------------------------ */

/* The type of the result of `call`; rank 0 if that is a tuple. */
static struct byi_tensor shape_of(const struct sample *sample)
{
    char *text = program_text(sample->params, "float32", sample->call);
    struct byi_module *m = parse(text);
    const struct byi_func *f = main_of(m);
    const struct byi_type *type = f->nodes.at[f->result].type;
    struct byi_tensor t = {.rank = type->kind == BYI_TENSOR ? type->rank : 0};
    if (t.rank)
        memcpy(t.dims, type->dims, t.rank * sizeof t.dims[0]);
    byi_module_free(&m);
    byi_text_free(&(struct byi_text){.at = text});
    return t;
}

/* Kinds of operands that broadcast to a result of shape t. */
enum operand_shape { ONE, CHANNELS, LAST, WHOLE, N_OPERAND_SHAPES };

static bool operand_dims(const struct byi_tensor *t, enum operand_shape kind,
                         char dims[100])
{
    size_t n = 0;
    dims[0] = '\0';
    if ((kind == CHANNELS && t->rank < 3) || (kind == LAST && t->rank == 0))
        return false;
    for (uint32_t i = kind == CHANNELS ? 1
                      : kind == LAST   ? t->rank - 1
                                       : 0;
         i < t->rank && kind != ONE; i++)
        n += (size_t)snprintf(
            dims + n, 100 - n, "%s%lld", n ? ", " : "",
            (long long)(kind == CHANNELS && i != 1 ? 1 : t->dims[i]));
    return true;
}

/* Check the sample with a post-op that has an operand of this kind: a parameter
 * of positive numbers or a constant. `format` has a %s for the sample's call
 * and one for the operand. */
static void check_operand(const struct sample *sample, const char *format,
                          enum operand_shape kind, const struct byi_tensor *t,
                          bool constant)
{
    char dims[100], operand[200] = "%p9", params[600], body[2000];
    if (!operand_dims(t, kind, dims))
        return;
    snprintf(params, sizeof params, "%s, %%p9: (%s)", sample->params, dims);
    if (constant && kind == ONE)
        snprintf(operand, sizeof operand, "0.75f");
    else if (constant)
        snprintf(operand, sizeof operand, "random[(%s), float32, seed=5]",
                 dims);
    snprintf(body, sizeof body, format, sample->call, operand);
    check_composite(constant ? sample->params : params, body);
}

static const char *attrs_of(const char *op)
{
    return strcmp(op, "clip") == 0            ? ", a_min=-0.5, a_max=0.75"
           : strcmp(op, "nn.leaky_relu") == 0 ? ", alpha=0.2"
           : strcmp(op, "nn.elu") == 0        ? ", alpha=0.7"
                                              : "";
}

static bool is_one_of(const char *op, const char *list)
{
    const char *at = strstr(list, op);
    return at && (at == list || at[-1] == ' ') &&
           (at[strlen(op)] == ' ' || !at[strlen(op)]);
}

/* Write `op` of the sample's call: of |call| + 1/2 for functions of positive
 * numbers, and of a number in -3 .. 1 for exp, so that results stay small. */
static void eltwise_program(const char *op, const char *call, char body[2000])
{
    if (is_one_of(op, "sqrt reciprocal"))
        snprintf(body, 2000, "%s(add(abs(%s), 0.5f))", op, call);
    else if (is_one_of(op, "exp"))
        snprintf(body, 2000, "exp(clip(%s, a_min=-3.0, a_max=1.0))", call);
    else
        snprintf(body, 2000, "%s(%s%s)", op, call, attrs_of(op));
}

static void check_eltwise(const struct sample *sample)
{
    static const char *const ops[] = {BYI_DN_ELTWISE(NAME_OF, COMMA)};
    char body[2000];
    for (size_t i = 0; i < BYI_COUNT(ops); i++) {
        eltwise_program(ops[i], sample->call, body);
        check_composite(sample->params, body);
    }
    snprintf(body, sizeof body, "nn.gelu(%s, approximate=\"tanh\")",
             sample->call);
    check_composite(sample->params, body);
}

static void check_binary(const struct sample *sample,
                         const struct byi_tensor *t)
{
    static const char *const ops[] = {BYI_DN_BINARY(NAME_OF, COMMA)};
    char format[200];
    for (size_t i = 0; i < BYI_COUNT(ops); i++)
        for (enum operand_shape kind = ONE; kind < N_OPERAND_SHAPES; kind++) {
            const bool constant = (i + kind) % 2;
            snprintf(format, sizeof format, "%s(%%s, %%s)", ops[i]);
            check_operand(sample, format, kind, t,
                          constant && strcmp(ops[i], "divide") != 0);
        }
    for (enum operand_shape kind = ONE; kind < N_OPERAND_SHAPES; kind++) {
        check_operand(sample, "nn.relu(add(%s, %s))", kind, t, true);
        check_operand(sample, "nn.prelu(%s, %s)", kind, t, true);
    }
}

/* The other ways to write a post-op, and several in the model's order. */
static void check_forms(const struct sample *sample, const struct byi_tensor *t)
{
    static const char *const unary_forms[] = {
        "power(%s, 2.0f)",
        "subtract(1.0f, %s)",
        "divide(2.0f, add(abs(%s), 1.0f))",
        "nn.hard_swish(add(multiply(nn.relu(%s), 1.5f), -0.25f))",
        "clip(clip(%s, a_min=-1.0, a_max=0.5), a_min=0.0, a_max=0.25)",
    };
    char body[2000];
    for (size_t i = 0; i < BYI_COUNT(unary_forms); i++) {
        snprintf(body, sizeof body, unary_forms[i], sample->call);
        check_composite(sample->params, body);
    }
    snprintf(body, sizeof body, "%%0 = %s;\n  multiply(%%0, %%0)",
             sample->call);
    check_composite(sample->params, body);
    check_operand(sample, "subtract(%2$s, %1$s)", WHOLE, t, false);
    check_operand(sample, "tanh(maximum(nn.silu(%s), %s))", LAST, t, true);
    check_operand(sample, "multiply(sigmoid(%s), %s)", CHANNELS, t, false);
    check_operand(sample, "nn.prelu(nn.relu(add(%s, %s)), 0.1f)", WHOLE, t,
                  false);
}

/* Check that an operand with one more axis, which makes the result larger than
 * the sample's, is refused. */
static void check_larger_result(const struct sample *sample,
                                const struct byi_tensor *t, const char *message)
{
    char params[600], body[2000];
    size_t n =
        (size_t)snprintf(params, sizeof params, "%s, %%p9: (3", sample->params);
    for (uint32_t i = 0; i < t->rank; i++)
        n += (size_t)snprintf(params + n, sizeof params - n, ", %lld",
                              (long long)t->dims[i]);
    snprintf(params + n, sizeof params - n, ")");
    snprintf(body, sizeof body, "add(%s, %%p9)", sample->call);
    check_refused(params, "float32", body, message);
}

/* --- the walk ------------------------------------------------------------- */

/* Check that the predicate refuses the sample with numbers of another type, and
 * names the type. */
static void check_type(const struct sample *sample)
{
    char *call = strdup(sample->call);
    for (char *p = call; (p = strstr(p, "float32"));)
        memcpy(p, "float64", 7);
    check_refused(sample->params, "float64", call, "float64");
    assert_true(note_messages());
    free(call);
}

/* Check the sample on float16 and bfloat16, also with a post-op. */
static void check_narrow(const struct sample *sample, bool posts)
{
    static const char *const types[] = {"float16", "bfloat16"};
    const double default_tolerance = table_tolerance;
    char body[2000];
    /* literals are float32 */
    if (strstr("dnnl.attention dnnl.recurrent dnnl.quantize dnnl.dequantize",
               sample->row) ||
        strstr(sample->call, "f)") || strstr(sample->call, "[0."))
        return;
    for (int i = 0; i < 2; i++) {
        table_tolerance = i == 0 ? 0x1p-9 : 0x1p-6;
        check_composite_as(sample->params, types[i], sample->call);
        snprintf(body, sizeof body, "nn.relu(%s)", sample->call);
        if (posts)
            check_composite_as(sample->params, types[i], body);
    }
    table_tolerance = default_tolerance;
}

static void check_sample(const struct sample *sample, bool first, bool posts)
{
    const struct byi_tensor t = shape_of(sample);
    check_composite(sample->params, sample->call);
    if (first && strcmp(sample->row, "dnnl.lookup") != 0)
        check_type(sample);
    if (strstr(sample->params, "int8")) /* no other type, and no post-ops */
        return;
    check_narrow(sample, posts);
    if (!posts)
        return;
    check_forms(sample, &t);
    if (!first)
        return;
    check_eltwise(sample);
    check_binary(sample, &t);
    check_larger_result(sample, &t, end_of(RESHAPES));
}

static void check_coverage(const struct byi_dn_row *r)
{
    static const char *const posts[] = {BYI_DN_ELTWISE(NAME_OF, COMMA),
                                        BYI_DN_BINARY(NAME_OF, COMMA), "power",
                                        "nn.prelu"};
    for (uint32_t i = 0; i < BYI_N_OPS; i++) {
        const char *name = byi_op((enum byi_op_id)i)->name;
        if (byi_dn_row_has(r, name) && !operator_seen[i])
            fail_msg("row %s: found no sample with %s; add one to samples.h",
                     r->name, name);
    }
    for (size_t i = 0; r->following == BYI_DN_POSTS && i < BYI_COUNT(posts);
         i++)
        if (!post_seen[byi_op_of_name(posts[i], strlen(posts[i]))->id])
            fail_msg("row %s: found no sample with the post-op %s; add one to "
                     "samples.h",
                     r->name, posts[i]);
    if (!counts[row].compared)
        fail_msg("row %s: found no sample; add one to samples.h", r->name);
    if (!counts[row].refused && byi_dnnl_patterns[row].accept)
        fail_msg("row %s: found no refused program; add one to samples.h",
                 r->name);
    if (counts[row].units != counts[row].run)
        fail_msg("row %s: found %u programs that ran as C, expected all %u",
                 r->name, counts[row].units, counts[row].run);
}

static void test_row(void **state)
{
    row = (uint32_t)((const struct byoc_pattern *)*state - byi_dnnl_patterns);
    const struct byi_dn_row *r = &byi_dn_rows[row];
    const bool runs = has_kernels() || (strcmp(r->name, "dnnl.conv") != 0 &&
                                        strcmp(r->name, "dnnl.deconv") != 0);
    bool first = true;
    memset(operator_seen, 0, sizeof operator_seen);
    memset(post_seen, 0, sizeof post_seen);
    open_backends(row);
    for (size_t i = 0; i < BYI_COUNT(samples); i++) {
        if (!runs || strcmp(samples[i].row, r->name) != 0)
            continue;
        check_sample(&samples[i], first, r->following == BYI_DN_POSTS);
        first = false;
    }
    for (size_t i = 0; i < BYI_COUNT(refusals); i++)
        if (strcmp(refusals[i].row, r->name) == 0)
            check_refused(refusals[i].params, "float32", refusals[i].call,
                          refusals[i].message);
    byi_backends_free(&backends);
    counts[row].units = units_check();
    if (!runs)
        needs_kernels();
    check_coverage(r);
}

static void every_message_was_raised(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < N_MESSAGES; i++)
        if (!is_raised[i])
            fail_msg("found no program refused with '%s', expected one",
                     messages[i]);
}

int main(void)
{
    struct CMUnitTest tests[MAX_ROWS + 1];
    const uint32_t n = byi_dnnl_n_patterns;
    for (uint32_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){
            .name = byi_dnnl_patterns[i].name,
            .test_func = test_row,
            .initial_state = (void *)(uintptr_t)&byi_dnnl_patterns[i]};
    tests[n] = (struct CMUnitTest)cmocka_unit_test(every_message_was_raised);
    const int failed =
        _cmocka_run_group_tests("table", tests, n + 1, NULL, NULL);
    printf("%-24s %7s %7s %7s %7s %8s %7s %7s\n", "row", "programs", "matched",
           "probed", "run", "compared", "by C", "refused");
    for (uint32_t i = 0; i < n; i++)
        printf("%-24s %7u %7u %7u %7u %8u %7u %7u\n", byi_dnnl_patterns[i].name,
               counts[i].programs, counts[i].matched, counts[i].probed,
               counts[i].run, counts[i].compared, counts[i].units,
               counts[i].refused);
    return failed;
}
