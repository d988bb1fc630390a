/* SPDX-License-Identifier: Apache-2.0 */
/* kernels_test.c: tests generated C against the native kernels. A module of
 * many small groups is compiled into an artifact, and run with every
 * instruction set of this CPU. Each group's result is compared with the
 * interpreter's, which runs the native kernels operator by operator.
 */
#include "codegen_c/codegen_c.h"
#include "tests/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/descriptor.h"
#include "core/ops/rules.h"
#include "interp/interp.h"
#include "tests/fixture.h"
#include "tests/folder.h"
#include "tests/share.h"

enum { MAX_INPUTS = 512, MAX_OUTPUTS = 1024 };

/* --- a module of groups as text ------------------------------------------ */

/* The text of a module whose main calls many groups. */
struct module_text {
    struct byi_text params; /* of main */
    struct byi_text body;
    struct byi_text results, types; /* of the groups */
    uint32_t n;                     /* number of groups */
    uint32_t n_ids;                 /* the next %id */
};

/* Add a group with these parameters ("%p0: TYPE, ..."), result type and body to
 * main, and a call of it with `args`, parameters of main ("%x, ..."). */
static void add_group(struct module_text *b, const char *params,
                      const char *args, const char *type, const char *body)
{
    const uint32_t id = b->n_ids;
    b->n_ids += 2;
    byi_text_addf(&b->body, "  %%%u = fn(%s, Primitive=1) -> %s {\n%s\n  };\n",
                  id, params, type, body);
    byi_text_addf(&b->body, "  %%%u = %%%u(%s);\n", id + 1, id, args);
    byi_text_addf(&b->results, "%s%%%u", b->n ? ", " : "", id + 1);
    byi_text_addf(&b->types, "%s%s", b->n ? ", " : "", type);
    b->n++;
}

/* The text of the module, which the caller frees. Frees the parts of *b. */
static char *finish_text(struct module_text *b)
{
    struct byi_text t = {0};
    byi_text_addf(&t, "def @main(%s) -> (%s) {\n%s  (%s)\n}\n", b->params.at,
                  b->types.at, b->body.at, b->results.at);
    byi_text_free(&b->params);
    byi_text_free(&b->body);
    byi_text_free(&b->results);
    byi_text_free(&b->types);
    return t.at;
}

/* --- inputs --------------------------------------------------------------- */

static uint64_t draw(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static double draw_float(uint64_t *state, bool with_special)
{
    static const double special[] = {0.0,   -0.0,      0.5,      -0.5,  1.5,
                                     2.5,   -1e30,     1e30,     1e-40, -87.0,
                                     100.0, -INFINITY, INFINITY, NAN};
    if (with_special && draw(state) % 4 == 0)
        return special[draw(state) % BYI_COUNT(special)];
    return (double)draw(state) / (1u << 31) * 8 - 4;
}

static int64_t draw_int(uint64_t *state, bool with_special)
{
    static const int64_t special[] = {INT64_MIN, INT64_MAX, -1,  0,  1,
                                      -128,      127,       255, 64, 7};
    if (with_special && draw(state) % 4 == 0)
        return special[draw(state) % BYI_COUNT(special)];
    return (int64_t)(draw(state) % 40) - 20;
}

/* Fill a tensor with random values; `with_special`: also with infinities, NaN,
 * the largest integers and so on. */
static void fill(struct byi_tensor *t, uint64_t seed, bool with_special)
{
    const int64_t n = byi_elements(t->rank, t->dims);
    const uint32_t size = byoc_dtype_size(t->dtype);
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; i < n; i++) {
        char *at = (char *)t->data + i * size;
        if (t->dtype == BYOC_BOOL) {
            *at = (char)(draw(&state) % 2);
        } else if (byi_dtype_is_float(t->dtype)) {
            byi_tensor_set(t, i, draw_float(&state, with_special));
        } else {
            const int64_t v = draw_int(&state, with_special);
            memcpy(at, &v, size); /* the low bytes */
        }
    }
}

/* --- an artifact, and its runs ------------------------------------------- */

/* An artifact and the module that it was compiled from. */
struct setup {
    struct fixture x;
    struct byi_kernels kernels;
    struct byi_plan plan;
    struct byi_text manifest;
    char folder[TEST_PATH], path[TEST_PATH + 16];
};

static void set_up(struct setup *s, char *text)
{
    struct byoc_error err;
    *s = (struct setup){0};
    assert_non_null(make_inner_folder(s->folder));
    snprintf(s->path, sizeof s->path, "%s/model.so", s->folder);
    if (fixture_open(&s->x, text, &err) != BYOC_OK)
        fail_msg("%s in\n%s", err.text, text);
    byi_vec_free(text);
    byi_kernels_write(s->x.m, &s->kernels);
}

static void write_artifact(struct setup *s)
{
    struct byoc_error err;
    const struct byi_plan_code code = {s->kernels.list.n, s->kernels.list.at,
                                       s->kernels.kernel_of};
    const struct byi_plan_params params = {.code = code.n ? &code : NULL};
    const struct byi_manifest what = {.name = "test", .hashes = true};
    assert_int_equal(byi_plan_write(s->x.m, &params, &s->plan, &err), BYOC_OK);
    struct byi_image image = s->x.image;
    image.plan = s->plan.json.at;
    image.plan_bytes = s->plan.json.n;
    image.weights_bytes = s->plan.weights_bytes;
    image.spans = byi_plan_spans(s->x.m, &s->plan, s->x.arena);
    image.n_spans = s->plan.consts.n;
    image.source = s->kernels.source.at;
    image.source_bytes = s->kernels.source.n;
    image.n_kernels = s->kernels.list.n;
    assert_int_equal(
        byi_manifest_write(s->x.m, &what, &image, &s->manifest, &err), BYOC_OK);
    image.manifest = s->manifest.at;
    image.manifest_bytes = s->manifest.n;
    if (byi_artifact_write(s->path, &image, "cc -Werror", &err) != BYOC_OK)
        fail_msg("%s", err.text);
}

static void tear_down(struct setup *s)
{
    unlink(s->path);
    rmdir(s->folder);
    byi_plan_free(&s->plan);
    byi_text_free(&s->manifest);
    byi_kernels_free(&s->kernels);
    fixture_close(&s->x);
}

static void compare_outputs(const struct setup *s, const DLTensor *found,
                            const struct byi_tensor *expected, uint32_t n,
                            double tolerance)
{
    struct byoc_error err;
    for (uint32_t i = 0; i < n; i++) {
        struct byi_tensor t = expected[i];
        t.data = found[i].data;
        if (compare_tensors(&t, &expected[i], tolerance, tolerance, &err) ==
            BYOC_OK)
            continue;
        const struct byi_func *f =
            s->x.m->funcs.at[byi_func_find(s->x.m, "main")];
        const byi_id id = f->nodes.at[f->result].args[i];
        const uint32_t group = f->nodes.at[f->nodes.at[id].args[0]].index;
        const uint32_t k = s->kernels.kernel_of[group];
        fail_msg("group %u (%s): %s\n%s", i,
                 k ? s->kernels.list.at[k - 1].symbol : "no kernel", err.text,
                 s->kernels.source.at);
    }
}

/* Run the artifact as on a CPU whose widest instruction set is `isa`. */
static void run_at(struct setup *s, const char *isa, uint32_t threads,
                   const DLTensor *in, uint32_t n_in,
                   const struct byi_tensor *expected, uint32_t n_out,
                   double tolerance)
{
    static DLTensor out[MAX_OUTPUTS];
    struct byoc_error err;
    struct byoc_model *model = NULL;
    struct byoc_state *state = NULL;
    const struct byoc_load_params params = {.threads = threads};
    setenv("BYOC_MAX_ISA", isa, 1);
    if (byoc_model_load(s->path, &params, &model, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    assert_int_equal(byoc_state_new(model, &state, &err), BYOC_OK);
    memset(out, 0, sizeof out);
    if (byoc_run(state, in, n_in, out, n_out, &err) != BYOC_OK)
        fail_msg("%s: %s", isa, err.text);
    compare_outputs(s, out, expected, n_out, tolerance);
    byoc_state_free(&state);
    byoc_model_free(&model);
}

static void run_all(struct setup *s, uint64_t seed, bool with_special,
                    double tolerance)
{
    static const char *const names[] = {
#define LEVEL(id, name, options) name,
        BYI_CODE_LEVELS(LEVEL)
#undef LEVEL
    };
    static struct byi_tensor in[MAX_INPUTS], expected[MAX_OUTPUTS];
    DLTensor views[MAX_INPUTS];
    struct byoc_error err;
    const uint32_t main = byi_func_find(s->x.m, "main");
    const struct byi_func *f = s->x.m->funcs.at[main];
    uint32_t n_out;
    assert_true(f->params.n <= MAX_INPUTS);
    for (uint32_t i = 0; i < f->params.n; i++) {
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type,
                                      seed + i, s->x.arena, &in[i]));
        fill(&in[i], seed + i, with_special);
        views[i] = view_of(&in[i]);
    }
    if (byi_interp_run(s->x.m, main, in, f->params.n, s->x.arena, expected,
                       MAX_OUTPUTS, &n_out, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < BYI_COUNT(names); i++)
        run_at(s, names[i], 1 + (uint32_t)(seed + i) % 3, views, f->params.n,
               expected, n_out, tolerance);
}

/* --- every operator ------------------------------------------------------- */

static const char *const types[] = {"float32", "float64", "int8",  "int16",
                                    "int32",   "int64",   "uint8", "uint16",
                                    "uint32",  "uint64",  "bool"};
/* Sets of types: bit i stands for types[i]. */
enum {
    F32 = 1,
    FLOATS = 3,
    INTS = 0x3fc,
    NUMBERS = 0x3ff,
    BOOL = 0x400,
    SIGNED = 0x3c,
    ALL = 0x7ff
};

/* Second operands of (3, 5, 17): each way to broadcast. */
static const char *const shapes[] = {"(3, 5, 17)", "(17)", "(5, 1)",
                                     "(3, 1, 17)", "()"};

/* Every operator that has a formula in unary.def or binary.def. */
static const struct {
    enum byi_op_id op;
    unsigned types; /* the set of operand types */
} rows[] = {
#define UNARY(id, wide, single) {BYI_OP_##id, FLOATS},
#define UNARY_FLOAT32(id, wide, single) {BYI_OP_##id, F32},
#define UNARY_CHOICE(id, wide, single, other) {BYI_OP_##id, F32},
#define UNARY_SIGNED(id, form) {BYI_OP_##id, SIGNED},
#define UNARY_UNSIGNED(id, form) {BYI_OP_##id, INTS & ~SIGNED},
#define UNARY_TEST(id, form) {BYI_OP_##id, FLOATS},
#define UNARY_BOOL(id, form) {BYI_OP_##id, BOOL},
#include "core/ops/unary.def"
#define BINARY(id, floats, of_signed, of_unsigned) {BYI_OP_##id, NUMBERS},
#define BINARY_INTS(id, of_signed, of_unsigned) {BYI_OP_##id, INTS},
#define BINARY_BOOL(id, form) {BYI_OP_##id, BOOL},
#define BINARY_COMPARE(id, form) {BYI_OP_##id, NUMBERS},
#define BINARY_EQUALITY(id, numbers, bools, strings) {BYI_OP_##id, ALL},
#include "core/ops/binary.def"
};

/* Calls with attributes, or with operands of several types. */
static const struct {
    enum byi_op_id op;
    unsigned types;
    const char *call;
} calls[] = {
    {BYI_OP_CLIP, F32, "clip(%p0, a_min=-1.5, a_max=2.5)"},
    {BYI_OP_NN_LEAKY_RELU, FLOATS, "nn.leaky_relu(%p0, alpha=0.3)"},
    {BYI_OP_NN_ELU, F32, "nn.elu(%p0, alpha=0.7)"},
    {BYI_OP_NN_CELU, F32, "nn.celu(%p0, alpha=0.7)"},
    {BYI_OP_NN_GELU, F32, "nn.gelu(%p0, approximate=\"tanh\")"},
    {BYI_OP_NN_SHRINK, FLOATS, "nn.shrink(%p0, bias=0.25)"},
    {BYI_OP_WHERE, ALL, "where(%p2, %p0, %p1)"},
};

/* Main's parameters: %x_TYPE, and %b_TYPE_K for each shape. */
static void add_inputs(struct module_text *b)
{
    for (size_t t = 0; t < BYI_COUNT(types); t++) {
        byi_text_addf(&b->params, "%s%%x_%s: Tensor[(3, 5, 17), %s]",
                      t ? ", " : "", types[t], types[t]);
        for (size_t k = 0; k < BYI_COUNT(shapes); k++)
            byi_text_addf(&b->params, ", %%b_%s_%zu: Tensor[%s, %s]", types[t],
                          k, shapes[k], types[t]);
    }
}

/* A group of `call` and an operator without effect, since a single operator is
 * not a group. */
static void add_call(struct module_text *b, const char *call, const char *type,
                     const char *result, size_t shape)
{
    char params[400], args[200], body[400], result_type[100];
    snprintf(params, sizeof params,
             "%%p0: Tensor[(3, 5, 17), %s], %%p1: Tensor[%s, %s], "
             "%%p2: Tensor[(17), bool]",
             type, shapes[shape], type);
    snprintf(args, sizeof args, "%%x_%s, %%b_%s_%zu, %%b_bool_1", type, type,
             shape);
    snprintf(result_type, sizeof result_type, "Tensor[(3, 5, 17), %s]", result);
    snprintf(body, sizeof body, "    %%0 = %s;\n    %s", call,
             strcmp(result, "bool") == 0 ? "logical_not(%0)"
                                         : "maximum(%0, %0)");
    add_group(b, params, args, result_type, body);
}

/* Add a group of the call for each type of the set. `i`, the call's index,
 * varies the shape of the second operand. */
static void add_calls(struct module_text *b, enum byi_op_id op,
                      unsigned type_set, const char *call, size_t i)
{
    const byi_rule_fn rule = byi_op(op)->rule;
    const bool test = rule == byi_rule_compare || rule == byi_rule_to_bool;
    for (size_t t = 0; t < BYI_COUNT(types); t++)
        if (type_set >> t & 1)
            add_call(b, call, types[t], test ? "bool" : types[t],
                     (i + t) % BYI_COUNT(shapes));
}

static void test_operators(void **state)
{
    struct module_text b = {0};
    struct setup s;
    (void)state;
    add_inputs(&b);
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_op *op = byi_op(rows[i].op);
        char call[100];
        snprintf(call, sizeof call, "%s(%%p0%s)", op->name,
                 op->min_in > 1 ? ", %p1" : "");
        add_calls(&b, op->id, rows[i].types, call, i);
    }
    for (size_t i = 0; i < BYI_COUNT(calls); i++)
        add_calls(&b, calls[i].op, calls[i].types, calls[i].call, i);
    const uint32_t n = b.n;
    set_up(&s, finish_text(&b));
    assert_int_equal(s.kernels.list.n, n); /* C for every one of them */
    write_artifact(&s);
    run_all(&s, 1, false, 1e-6);
    run_all(&s, 2, true, 1e-6);
    tear_down(&s);
}

static void test_casts(void **state)
{
    struct module_text b = {0};
    struct setup s;
    (void)state;
    add_inputs(&b);
    for (size_t from = 0; from < BYI_COUNT(types); from++)
        for (size_t to = 0; to < BYI_COUNT(types); to++) {
            char call[64];
            snprintf(call, sizeof call, "cast(%%p0, dtype=\"%s\")", types[to]);
            add_call(&b, call, types[from], types[to], 0);
        }
    set_up(&s, finish_text(&b));
    write_artifact(&s);
    run_all(&s, 3, true, 0);
    tear_down(&s);
}

/* Add groups that quantise to an integer type and back, with constants and with
 * computed scales, and one that adds quantised operands of two shapes. */
static void add_quantised(struct module_text *b, const char *type)
{
    char params[300], args[100], result[64], body[400];
    snprintf(result, sizeof result, "Tensor[(3, 5, 17), %s]", type);
    snprintf(params, sizeof params,
             "%%p0: Tensor[(3, 5, 17), float32], %%p1: Tensor[(), float32], "
             "%%p2: Tensor[(), %s]",
             type);
    snprintf(args, sizeof args, "%%x_float32, %%b_float32_4, %%b_%s_4", type);
    snprintf(body, sizeof body,
             "    %%0 = qnn.quantize(%%p0, 0.0625f, cast(3, dtype=\"%s\"));\n"
             "    %%1 = qnn.quantize(%%p0, %%p1, %%p2);\n"
             "    bitwise_xor(%%0, %%1)",
             type);
    add_group(b, params, args, result, body);
    snprintf(params, sizeof params,
             "%%p0: Tensor[(3, 5, 17), %s], %%p1: Tensor[(5, 1), %s]", type,
             type);
    snprintf(args, sizeof args, "%%x_%s, %%b_%s_2", type, type);
    snprintf(body, sizeof body,
             "    %%0 = qnn.dequantize(%%p0, 0.1f, cast(3, dtype=\"%s\"));\n"
             "    %%1 = qnn.dequantize(%%p1, 0.3f, cast(7, dtype=\"%s\"));\n"
             "    %%2 = add(%%0, %%1);\n"
             "    qnn.quantize(%%2, 0.2f, cast(9, dtype=\"%s\"))",
             type, type, type);
    add_group(b, params, args, result, body);
}

static void test_quantised(void **state)
{
    static const char *const narrow[] = {"int8", "int16", "uint8", "uint16"};
    struct module_text b = {0};
    struct setup s;
    (void)state;
    add_inputs(&b);
    for (size_t t = 0; t < BYI_COUNT(narrow); t++)
        add_quantised(&b, narrow[t]);
    const uint32_t n = b.n;
    set_up(&s, finish_text(&b));
    assert_int_equal(s.kernels.list.n, n);
    write_artifact(&s);
    run_all(&s, 4, false, 0);
    run_all(&s, 5, true, 0);
    tear_down(&s);
}

/* --- random groups -------------------------------------------------------- */

/* The shape of a step's result. */
struct shape {
    uint32_t rank;
    int64_t dims[6];
};

/* The state of writing a random group. */
struct random {
    uint64_t state;
    struct module_text *b;
    struct byi_text body, params, args;
    uint32_t n_nodes, n_params;
    const char *type;
};

static uint32_t roll(struct random *r, uint32_t n)
{
    return (uint32_t)(draw(&r->state) % n);
}

static void shape_text(const struct shape *s, char *out, size_t n)
{
    size_t k = (size_t)snprintf(out, n, "(");
    for (uint32_t i = 0; i < s->rank; i++)
        k += (size_t)snprintf(out + k, n - k, "%s%lld", i ? ", " : "",
                              (long long)s->dims[i]);
    snprintf(out + k, n - k, ")");
}

static int64_t count(const struct shape *s)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < s->rank; i++)
        n *= s->dims[i];
    return n;
}

/* Add a parameter to the group and to main. */
static void add_param(struct random *r, const struct shape *s, char *name,
                      size_t n)
{
    char dims[80];
    const uint32_t id = r->b->n * 100 + r->n_params;
    shape_text(s, dims, sizeof dims);
    snprintf(name, n, "%%p%u", r->n_params);
    byi_text_addf(&r->params, "%s%s: Tensor[%s, %s]", r->n_params ? ", " : "",
                  name, dims, r->type);
    byi_text_addf(&r->args, "%s%%x%u", r->n_params ? ", " : "", id);
    byi_text_addf(&r->b->params, "%s%%x%u: Tensor[%s, %s]",
                  r->b->params.n ? ", " : "", id, dims, r->type);
    r->n_params++;
}

/* Adds the call of an operator that reads `last`, a value of shape *s, and sets
 * *s to the result's shape. `axis` is an axis of `last`; 0 if it is a scalar.
 */
typedef void add_call_fn(struct random *r, struct shape *s, const char *last,
                         uint32_t axis);

static void add_unary(struct random *r, struct shape *s, const char *last,
                      uint32_t axis)
{
    static const char *const ops[] = {"abs", "negative", "nn.relu", "sign"};
    (void)s, (void)axis;
    byi_text_addf(&r->body, "%s(%s);\n", ops[roll(r, 4)], last);
}

/* An operator of `last` and a new parameter, which is broadcast to its shape.
 */
static void add_binary(struct random *r, struct shape *s, const char *last,
                       uint32_t axis)
{
    static const char *const ops[] = {"add", "subtract", "maximum", "minimum",
                                      "multiply"};
    struct shape t = *s;
    char other[32];
    (void)axis;
    t.rank = roll(r, s->rank + 1);
    for (uint32_t i = 0; i < t.rank; i++)
        t.dims[i] = roll(r, 3) ? s->dims[s->rank - t.rank + i] : 1;
    add_param(r, &t, other, sizeof other);
    byi_text_addf(&r->body, "%s(%s, %s);\n", ops[roll(r, 5)], last, other);
}

/* The sum of `last` and a scalar constant. */
static void add_scalar(struct random *r, struct shape *s, const char *last,
                       uint32_t axis)
{
    (void)s, (void)axis;
    byi_text_addf(&r->body, "add(%s, cast(2, dtype=\"%s\"));\n", last, r->type);
}

/* A rotation of the axes. */
static void add_transpose(struct random *r, struct shape *s, const char *last,
                          uint32_t axis)
{
    struct shape t = *s;
    byi_text_addf(&r->body, "transpose(%s, axes=[", last);
    for (uint32_t i = 0; i < s->rank; i++) {
        t.dims[i] = s->dims[(i + axis) % s->rank];
        byi_text_addf(&r->body, "%s%u", i ? ", " : "", (i + axis) % s->rank);
    }
    byi_text_addf(&r->body, "]);\n");
    *s = t;
}

/* Two axes become one, or one becomes two. */
static void add_reshape(struct random *r, struct shape *s, const char *last,
                        uint32_t axis)
{
    struct shape t = *s;
    char to[200];
    if (s->rank > 1 && axis + 1 < s->rank) {
        t.rank--;
        t.dims[axis] *= s->dims[axis + 1];
        for (uint32_t i = axis + 1; i < t.rank; i++)
            t.dims[i] = s->dims[i + 1];
    } else if (s->rank < 6 && s->rank > 0 && s->dims[axis] % 2 == 0) {
        for (uint32_t i = s->rank; i > axis + 1; i--)
            t.dims[i] = s->dims[i - 1];
        t.rank++;
        t.dims[axis] /= 2;
        t.dims[axis + 1] = 2;
    }
    shape_text(&t, to, sizeof to);
    to[strlen(to) - 1] = '\0';
    byi_text_addf(&r->body, "reshape(%s, [%s]);\n", last, to + 1);
    *s = t;
}

/* A reduction of one axis; in half of the cases, also an operator that reads
 * its result and `last`, so that the shape stays the same. */
static void add_reduction(struct random *r, struct shape *s, const char *last,
                          uint32_t axis)
{
    static const char *const ops[] = {"sum", "max", "min", "mean"};
    if (s->rank == 0) {
        byi_text_addf(&r->body, "abs(%s);\n", last);
        return;
    }
    byi_text_addf(&r->body, "%s(%s, axis=[%u]);\n", ops[roll(r, 4)], last,
                  axis);
    if (roll(r, 2)) {
        byi_text_addf(&r->body, "    %%%u = maximum(%s, %%%u);\n",
                      r->n_nodes + 1, last, r->n_nodes);
        r->n_nodes++;
    } else {
        s->dims[axis] = 1;
    }
}

/* Every other element, from the second or from the last on. */
static void add_slice(struct random *r, struct shape *s, const char *last,
                      uint32_t axis)
{
    if (s->rank == 0 || s->dims[axis] <= 2) {
        add_reduction(r, s, last, axis);
        return;
    }
    const bool back = roll(r, 2);
    byi_text_addf(&r->body, "strided_slice(%s, [%d], [%d], [%u], [%d]);\n",
                  last, back ? -1 : 1, back ? -99999 : 99999, axis,
                  back ? -2 : 2);
    s->dims[axis] = back ? (s->dims[axis] + 1) / 2 : s->dims[axis] / 2;
}

static void add_pad(struct random *r, struct shape *s, const char *last,
                    uint32_t axis)
{
    byi_text_addf(&r->body, "nn.pad(%s, [", last);
    for (uint32_t i = 0; i < 2 * s->rank; i++)
        byi_text_addf(&r->body, "%s%u", i ? ", " : "",
                      i % s->rank == axis ? 1 + i / s->rank : 0);
    byi_text_addf(&r->body, "], cast(3, dtype=\"%s\"));\n", r->type);
    if (s->rank > 0)
        s->dims[axis] += 3;
}

/* A concatenation of `last` and a new parameter or itself, in either order. */
static void add_concatenate(struct random *r, struct shape *s, const char *last,
                            uint32_t axis)
{
    struct shape t = *s;
    char other[32];
    if (s->rank == 0) {
        add_pad(r, s, last, axis);
        return;
    }
    const bool other_first = roll(r, 2), with_itself = roll(r, 4) == 0;
    t.dims[axis] = with_itself ? s->dims[axis] : 1 + roll(r, 9);
    snprintf(other, sizeof other, "%s", last);
    if (!with_itself)
        add_param(r, &t, other, sizeof other);
    byi_text_addf(&r->body, "concatenate(%s, %s, axis=%u);\n",
                  other_first ? other : last, other_first ? last : other, axis);
    s->dims[axis] += t.dims[axis];
}

static void add_tile(struct random *r, struct shape *s, const char *last,
                     uint32_t axis)
{
    byi_text_addf(&r->body, "tile(%s, [", last);
    for (uint32_t i = 0; i < s->rank; i++)
        byi_text_addf(&r->body, "%s%u", i ? ", " : "", i == axis ? 2 : 1);
    byi_text_addf(&r->body, "]);\n");
    if (s->rank > 0)
        s->dims[axis] *= 2;
}

/* nn.depth_to_space with blocks of 2 x 2, in layout NCHW or NHWC. */
static void add_depth_to_space(struct random *r, struct shape *s,
                               const char *last, uint32_t axis)
{
    const bool nhwc = roll(r, 2), crd = roll(r, 2);
    const uint32_t channels = nhwc ? 3 : 1, height = nhwc ? 1 : 2;
    if (s->rank != 4 || s->dims[channels] % 4 != 0) {
        add_reshape(r, s, last, axis);
        return;
    }
    byi_text_addf(&r->body,
                  "nn.depth_to_space(%s, block_size=2, mode=\"%s\", "
                  "layout=\"%s\");\n",
                  last, crd ? "CRD" : "DCR", nhwc ? "NHWC" : "NCHW");
    s->dims[channels] /= 4;
    s->dims[height] *= 2;
    s->dims[height + 1] *= 2;
}

/* A split into two parts, of which one is read. */
static void add_split(struct random *r, struct shape *s, const char *last,
                      uint32_t axis)
{
    if (s->rank == 0 || s->dims[axis] < 2) {
        add_tile(r, s, last, axis);
        return;
    }
    const int64_t first = 1 + roll(r, (uint32_t)s->dims[axis] - 1);
    const bool second = roll(r, 2);
    byi_text_addf(&r->body,
                  "split(%s, sizes=[%lld, %lld], axis=%u);\n"
                  "    %%%u = %%%u.%d;\n",
                  last, (long long)first, (long long)(s->dims[axis] - first),
                  axis, r->n_nodes + 1, r->n_nodes, second);
    r->n_nodes++;
    s->dims[axis] = second ? s->dims[axis] - first : first;
}

/* Add a random step that reads `last`, of shape *s. Sets `last` to the name of
 * its result and *s to its shape. */
static void add_step(struct random *r, struct shape *s, char *last, size_t n)
{
    static add_call_fn *const steps[] = {
        add_unary,          add_binary,      add_binary, add_scalar,
        add_transpose,      add_reshape,     add_slice,  add_reduction,
        add_reduction,      add_concatenate, add_pad,    add_tile,
        add_depth_to_space, add_split};
    byi_text_addf(&r->body, "    %%%u = ", r->n_nodes);
    const uint32_t axis = s->rank ? roll(r, s->rank) : 0;
    steps[roll(r, BYI_COUNT(steps))](r, s, last, axis);
    snprintf(last, n, "%%%u", r->n_nodes++);
}

static void add_random(struct module_text *b, uint64_t seed)
{
    struct random r = {.state = seed * 77 + 5, .b = b};
    struct shape s = {.rank = 1 + roll(&r, 4)};
    char last[32], dims[80], type[120];
    r.type = types[roll(&r, 3) ? 0 : roll(&r, 6)];
    for (uint32_t i = 0; i < s.rank; i++)
        s.dims[i] = roll(&r, 8) ? 1 + roll(&r, 12) : 40 + roll(&r, 40);
    if (roll(&r, 16) == 0 && s.rank > 1)
        s.dims[roll(&r, s.rank)] = 2000;
    add_param(&r, &s, last, sizeof last);
    for (uint32_t n = 2 + roll(&r, 6); n-- > 0;)
        add_step(&r, &s, last, sizeof last);
    byi_text_addf(&r.body, "    nn.relu(%s)", last);
    shape_text(&s, dims, sizeof dims);
    assert_true(count(&s) > 0);
    snprintf(type, sizeof type, "Tensor[%s, %s]", dims, r.type);
    add_group(b, r.params.at, r.args.at, type, r.body.at);
    byi_text_free(&r.body);
    byi_text_free(&r.params);
    byi_text_free(&r.args);
}

/* The environment variable KERNELS_SEED is the first seed, KERNELS_ROUNDS the
 * number of modules. */
static void test_random(void **state)
{
    enum { GROUPS = 40 };
    const uint64_t first = number_from("KERNELS_SEED", 1);
    const uint64_t rounds = number_from("KERNELS_ROUNDS", 1);
    (void)state;
    for (uint64_t round = first; round < first + rounds; round++) {
        struct module_text b = {0};
        struct setup s;
        for (uint64_t i = 0; i < GROUPS; i++)
            add_random(&b, round * GROUPS + i);
        set_up(&s, finish_text(&b));
        assert_true(s.kernels.list.n > GROUPS / 2);
        write_artifact(&s);
        run_all(&s, round, false, 1e-4);
        tear_down(&s);
    }
}

/* --- the forms of loops --------------------------------------------------- */

/* A group, and a part of its C. */
struct form {
    const char *params, *type, *body; /* parameters are %p0, %p1, ... */
    const char *has;                  /* text that the C must contain */
};

static const struct form forms[] = {
    {"%p0: Tensor[(300, 210), float32], %p1: Tensor[(300), float32]",
     "Tensor[(210, 300), float32]",
     "    %0 = transpose(%p0, axes=[1, 0]);\n    add(%0, %p1)", "b0_end"},
    {"%p0: Tensor[(4, 300, 70), float32]", "Tensor[(4, 70, 300), float32]",
     "    %0 = transpose(%p0, axes=[0, 2, 1]);\n    nn.relu(%0)", "b1_end"},
    {"%p0: Tensor[(500, 300), float32], %p1: Tensor[(300), float32]",
     "Tensor[(300), float32]",
     "    %0 = multiply(%p0, %p1);\n"
     "    %1 = max(%0, axis=[0], keepdims=false);\n    abs(%1)",
     "_sum[32]"},
    {"%p0: Tensor[(7, 50, 3, 40), float32]", "Tensor[(7, 1, 1, 40), float32]",
     "    %0 = abs(%p0);\n    sum(%0, axis=[1, 2])", "_sum[32]"},
    {"%p0: Tensor[(600, 500), float32]", "Tensor[(), float32]",
     "    %0 = abs(%p0);\n    sum(%0, keepdims=false)", "_sum_parts["},
    {"%p0: Tensor[(600, 500), float32]", "Tensor[(1, 1), float32]",
     "    %0 = nn.relu(%p0);\n    max(%0)", "_nans["},
    {"%p0: Tensor[(3, 100000), float32]", "Tensor[(3, 1), float32]",
     "    %0 = exp(%p0);\n    mean(%0, axis=[1])", "_parts["},
    {"%p0: Tensor[(1100, 2100), float32], %p1: Tensor[(2100), float32]",
     "Tensor[(1100, 2100), float32]",
     "    %0 = add(%p0, %p1);\n    nn.relu(%0)", "stream_out(y"},
    {"%p0: Tensor[(40, 3000), float32]", "Tensor[(40, 3000), float32]",
     "    %0 = mean(%p0, axis=[1]);\n    %1 = subtract(%p0, %0);\n"
     "    %2 = multiply(%1, %1);\n    %3 = mean(%2, axis=[1]);\n"
     "    %4 = rsqrt(%3);\n    multiply(%1, %4)",
     "num_threads(threads < "},
    {"%p0: Tensor[(2, 12, 5, 5), float32], %p1: Tensor[(1, 3, 1, 1), float32]",
     "Tensor[(2, 3, 10, 10), float32]",
     "    %0 = nn.depth_to_space(%p0, block_size=2);\n    add(%0, %p1)", ""},
    {"%p0: Tensor[(2, 12, 5, 5), float32], %p1: Tensor[(1, 3, 1, 1), float32]",
     "Tensor[(2, 3, 10, 10), float32]",
     "    %0 = nn.depth_to_space(%p0, block_size=2, mode=\"CRD\");\n"
     "    add(%0, %p1)",
     ""},
    {"%p0: Tensor[(2, 5, 6, 12), float32], %p1: Tensor[(3), float32]",
     "Tensor[(2, 10, 12, 3), float32]",
     "    %0 = nn.depth_to_space(%p0, block_size=2, layout=\"NHWC\");\n"
     "    add(%0, %p1)",
     ""},
    {"%p0: Tensor[(2, 5, 6, 12), float32], %p1: Tensor[(3), float32]",
     "Tensor[(2, 10, 12, 3), float32]",
     "    %0 = nn.depth_to_space(%p0, block_size=2, mode=\"CRD\", "
     "layout=\"NHWC\");\n    add(%0, %p1)",
     ""},
    {"%p0: Tensor[(1, 6, 4, 4), float32], %p1: Tensor[(1, 6, 4, 4), float32]",
     "Tensor[(1, 12, 4, 4), float32]",
     "    %0 = abs(%p0);\n    %1 = concatenate(%0, %p1, axis=1);\n"
     "    %2 = reshape(%1, [1, 2, 6, 4, 4]);\n"
     "    %3 = transpose(%2, axes=[0, 2, 1, 3, 4]);\n"
     "    reshape(%3, [1, 12, 4, 4])",
     "* 32 + i1 + 16"},
    {"%p0: Tensor[(9, 10), float32]", "Tensor[(9, 5), float32]",
     "    %0 = split(%p0, sizes=[5, 5], axis=1);\n    %1 = %0.0;\n"
     "    %2 = %0.1;\n    add(%1, %2)",
     "+ 5]"},
};

/* Groups of one image operator, which get C if the sizes are known. */
static const struct form images[] = {
    {"%p0: Tensor[(2, 3, 20, 37), float32]", "Tensor[(2, 3, 40, 74), float32]",
     "    image.resize(%p0, [2, 3, 40, 74], mode=\"linear\")", ".fits = 24"},
    {"%p0: Tensor[(1, 2, 9, 5), float32]", "Tensor[(1, 2, 31, 12), float32]",
     "    image.resize(%p0, [1, 2, 31, 12], mode=\"cubic\", "
     "coordinate_transformation_mode=\"align_corners\")",
     ".high_first = 0"},
    {"%p0: Tensor[(1, 2, 50, 61), float32]", "Tensor[(1, 2, 11, 9), float32]",
     "    image.resize(%p0, [1, 2, 11, 9], mode=\"linear\", antialias=true)",
     ".stride_t = 1"},
    {"%p0: Tensor[(1, 2, 70, 71), float32]", "Tensor[(1, 2, 11, 9), float32]",
     "    image.resize(%p0, [1, 2, 11, 9], mode=\"cubic\", antialias=true, "
     "exclude_outside=true)",
     ".stride_t = 1"},
    {"%p0: Tensor[(3, 7, 40), float32]", "Tensor[(3, 14, 100), float32]",
     "    image.resize(%p0, [3, 14, 100])", ".first = high_first"},
    {"%p0: Tensor[(2, 7, 9, 3), float32]", "Tensor[(2, 13, 5, 3), float32]",
     "    image.resize(%p0, [2, 13, 5, 3], mode=\"linear\")", ".inner = 3"},
    {"%p0: Tensor[(2, 7, 9), float32]", "Tensor[(2, 7, 40), float32]",
     "    image.resize(%p0, [2, 7, 40], mode=\"cubic\")", ".high = {.in = 1,"},
    {"%p0: Tensor[(2, 7, 9), float32]", "Tensor[(2, 3, 9), float32]",
     "    image.resize(%p0, [2, 3, 9], mode=\"linear\")", ".wide = {.in = 1,"},
    {"%p0: Tensor[(2, 3, 6, 7), float32]", "Tensor[(2, 3, 4, 5), float32]",
     "    image.grid_sample(%p0, random[(2, 4, 5, 2), float32, seed=3])",
     "POINTS = 4"},
    {"%p0: Tensor[(1, 2, 6, 7), float32]", "Tensor[(1, 2, 9, 21), float32]",
     "    image.grid_sample(%p0, random[(1, 9, 21, 2), float32, seed=3], "
     "mode=\"bicubic\", padding_mode=\"reflection\")",
     "POINTS = 16"},
    {"%p0: Tensor[(1, 2, 6, 7), float32]", "Tensor[(1, 2, 30, 33), float32]",
     "    image.grid_sample(%p0, random[(1, 30, 33, 2), float32, seed=3], "
     "mode=\"nearest\", padding_mode=\"border\", align_corners=true)",
     "POINTS = 1,"},
};

/* Main calls each form with inputs of its own: %p0 of form 3 is %f3_p0. */
static void add_form(struct module_text *b, const struct form *form, uint32_t i)
{
    struct byi_text args = {0};
    const char *at = form->params;
    for (uint32_t k = 0; at; k++) {
        const char *type = strchr(at, ':'), *end = strstr(at, ", %");
        byi_text_addf(&b->params, "%s%%f%u_p%u%.*s", b->params.n ? ", " : "", i,
                      k, (int)(end ? end - type : (long)strlen(type)), type);
        byi_text_addf(&args, "%s%%f%u_p%u", k ? ", " : "", i, k);
        at = end ? end + 2 : NULL;
    }
    add_group(b, form->params, args.at, form->type, form->body);
    byi_text_free(&args);
}

/* Check that a second build has the bytes of the first. */
static void check_same_bytes(struct setup *s)
{
    struct byoc_error err;
    const void *first, *second;
    size_t n, k;
    assert_int_equal(byi_map_file(s->path, &first, &n, &err), BYOC_OK);
    byi_plan_free(&s->plan);
    byi_text_free(&s->manifest);
    s->manifest = (struct byi_text){0};
    write_artifact(s); /* renamed into place: the first one stays mapped */
    assert_int_equal(byi_map_file(s->path, &second, &k, &err), BYOC_OK);
    assert_int_equal(n, k);
    assert_memory_equal(first, second, n);
    byi_unmap(first, n);
    byi_unmap(second, k);
}

/* Write an artifact with a group of each form. Checks that each group becomes
 * a kernel whose C contains the form's `has`. */
static void set_up_forms(struct setup *s, const struct form *list, uint32_t n)
{
    struct module_text b = {0};
    for (uint32_t i = 0; i < n; i++)
        add_form(&b, &list[i], i);
    set_up(s, finish_text(&b));
    assert_int_equal(s->kernels.list.n, n);
    for (uint32_t i = 0; i < n; i++) {
        char name[128];
        snprintf(name, sizeof name, "static void %s(",
                 s->kernels.list.at[i].symbol);
        const char *code = strstr(s->kernels.source.at, name);
        const char *end = strstr(code, "\n}\n");
        const char *has = strstr(code, list[i].has);
        if (!has || has > end)
            fail_msg("found no \"%s\" in\n%.*s", list[i].has, (int)(end - code),
                     code);
    }
    write_artifact(s);
}

static void test_forms(void **state)
{
    struct setup s;
    (void)state;
    set_up_forms(&s, forms, BYI_COUNT(forms));
    check_same_bytes(&s);
    run_all(&s, 5, false, 1e-5);
    run_all(&s, 6, true, 1e-5);
    tear_down(&s);
}

static void test_images(void **state)
{
    struct setup s;
    (void)state;
    set_up_forms(&s, images, BYI_COUNT(images));
    check_same_bytes(&s);
    run_all(&s, 7, false, 1e-5);
    tear_down(&s);
}

/* Groups without C run operator by operator: alone, and in one artifact with a
 * group that has C. */
static void test_refused(void **state)
{
    (void)state;
    for (uint32_t with_c = 0; with_c < 2; with_c++) {
        struct module_text b = {0};
        struct setup s;
        /* indices are from -20 to 19: see draw_int() */
        byi_text_addf(&b.params, "%%x: Tensor[(20, 6), float32], "
                                 "%%i: Tensor[(3), int64]");
        add_group(&b, "%p0: Tensor[(20, 6), float32], %p1: Tensor[(3), int64]",
                  "%x, %i", "Tensor[(3, 6), float32]",
                  "    %0 = take(%p0, %p1);\n    nn.relu(%0)");
        add_group(&b, "%p0: Tensor[(20, 6), float32]", "%x",
                  "Tensor[(20, 6), float32]",
                  "    %0 = sin(%p0);\n    nn.relu(%0)");
        if (with_c)
            add_group(&b, "%p0: Tensor[(20, 6), float32]", "%x",
                      "Tensor[(20, 6), float32]",
                      "    %0 = abs(%p0);\n    nn.relu(%0)");
        set_up(&s, finish_text(&b));
        assert_int_equal(s.kernels.list.n, with_c);
        assert_int_equal(s.kernels.source.at != NULL, with_c);
        write_artifact(&s);
        run_all(&s, 8, false, 1e-6);
        tear_down(&s);
    }
}

/* --- plans with kernels --------------------------------------------------- */

static const char fused_ir[] =
    "def @main(%x: Tensor[(2, 4), float32], %n: Tensor[(N), float32])"
    " -> (Tensor[(2, 4), float32], Tensor[(N), float32]) {\n"
    "  %f = fn(%p0: Tensor[(2, 4), float32], Primitive=1)"
    " -> Tensor[(2, 4), float32] {\n"
    "    %0 = abs(%p0);\n    nn.relu(%0)\n  };\n"
    "  %0 = %f(%x);\n  %1 = abs(%n);\n  (%0, %1)\n}\n";

/* Load the plan, with the first `from` replaced by `to`, without compiled
 * kernels. */
static enum byoc_status open_edited(struct setup *s, const char *from,
                                    const char *to, struct byoc_model **model,
                                    struct byoc_error *err)
{
    const struct byi_plan_code code = {s->kernels.list.n, s->kernels.list.at,
                                       s->kernels.kernel_of};
    const struct byi_plan_params params = {.code = &code};
    struct byi_plan plan;
    struct byi_text text = {0};
    assert_int_equal(byi_plan_write(s->x.m, &params, &plan, err), BYOC_OK);
    const char *at = strstr(plan.json.at, from);
    if (!at)
        fail_msg("found no \"%s\" in\n%s", from, plan.json.at);
    byi_text_add(&text, plan.json.at, (size_t)(at - plan.json.at));
    byi_text_addf(&text, "%s%s", to, at + strlen(from));
    struct byi_image image = s->x.image;
    image.plan = text.at;
    image.plan_bytes = text.n;
    const enum byoc_status status =
        byoc_internal_model_open(&image, NULL, model, err);
    byi_text_free(&text);
    byi_plan_free(&plan);
    return status;
}

/* Without code, as on a CPU that has none of the compiled instruction sets, the
 * twin runs. */
static void test_twin(void **state)
{
    struct byoc_error err;
    struct byoc_model *model;
    struct byoc_state *run;
    struct setup s;
    (void)state;
    struct byi_text text = {0};
    byi_text_addf(&text, "%s", fused_ir);
    set_up(&s, text.at);
    assert_int_equal(
        open_edited(&s, "\"kernel\": 0", "\"kernel\": 0", &model, &err),
        BYOC_OK);
    assert_int_equal(byoc_state_new(model, &run, &err), BYOC_OK);
    if (fixture_run(&s.x, run, 1, true, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byoc_state_free(&run);
    byoc_model_free(&model);
    tear_down(&s);
}

static void test_plan_faults(void **state)
{
    static const struct {
        const char *from, *to, *message; /* the error must contain it */
    } faults[] = {
        {"\"kernel\": 0", "\"kernel\": 1", "kernel: found index 1"},
        {"\"kernel\": 0", "\"kernel\": -1", "kernel: found -1"},
        {"\"kernel\": 0, \"in\": [0]", "\"kernel\": 0, \"in\": [0, 0]",
         "steps[0]: found 2 operands, expected 1"},
        {"\"kernel\": 0, \"in\": [0]", "\"kernel\": 0, \"in\": []",
         "steps[0]: found 0 operands"},
        {"\"kernel\": 0, \"in\": [0]", "\"kernel\": 0, \"in\": [1]",
         "in[0]: found float32 (?,) as the type of value 1"},
        {"\"kernel\": 0, \"in\": [0]", "\"kernel\": 0, \"in\": [99]",
         "in[0]: found index 99"},
        {"\"twin\": 1", "\"twin\": 0",
         "found 1 operands and 1 results, expected 2 and 2 for function 0"},
        {"\"twin\": 1", "\"twin\": 7", "twin: found index 7"},
        {"\"symbol\": \"fused", "\"blob\": \"fused",
         "kernels[0].blob: found an unknown member"},
        {"\"kernels\": [", "\"kernels\": [7, ", "kernels[0]: found a number"},
        {"\"kernels\": [", "\"kernals\": [",
         "kernals: found an unknown member"},
    };
    struct byoc_error err;
    struct byoc_model *model;
    struct setup s;
    struct byi_text text = {0};
    (void)state;
    byi_text_addf(&text, "%s", fused_ir);
    set_up(&s, text.at);
    for (size_t i = 0; i < BYI_COUNT(faults); i++)
        if (open_edited(&s, faults[i].from, faults[i].to, &model, &err) ==
                BYOC_OK ||
            !strstr(err.text, faults[i].message))
            fail_msg("%s -> %s: found \"%s\", expected \"%s\" in it",
                     faults[i].from, faults[i].to, err.text, faults[i].message);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),   cmocka_unit_test(test_casts),
        cmocka_unit_test(test_quantised),   cmocka_unit_test(test_random),
        cmocka_unit_test(test_forms),       cmocka_unit_test(test_images),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_twin),
        cmocka_unit_test(test_plan_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
