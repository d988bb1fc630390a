/* SPDX-License-Identifier: Apache-2.0 */
/* exec_test.c: tests plans and their execution on native kernels, compared with
 * the interpreter: fixed and varying shapes, views, calls, several threads.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/state.h"
#include "tests/fixture.h"
#include "tests/folder.h"

static struct byoc_model *open_model(struct fixture *x, const char *ir)
{
    struct byoc_error err;
    struct byoc_model *model = NULL;
    if (fixture_open(x, ir, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    if (byoc_internal_model_open(&x->image, NULL, &model, &err) != BYOC_OK)
        fail_msg("%s\n%s", err.text, x->plan.json.at);
    assert_string_equal(byoc_model_warnings(model), "");
    return model;
}

/* Run a state three times, with and without memory for the outputs, and compare
 * the results. */
static void check(const char *ir)
{
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(&x, ir);
    struct byoc_state *state = NULL;
    assert_int_equal(byoc_state_new(model, &state, &err), BYOC_OK);
    for (uint64_t seed = 0; seed < 3; seed++)
        if (fixture_run(&x, state, seed * 100, seed != 1, &err) != BYOC_OK)
            fail_msg("seed %d: %s\n%s", (int)seed, err.text, x.plan.json.at);
    byoc_state_free(&state);
    byoc_model_free(&model);
    fixture_close(&x);
}

static const char chain[] =
    "def @main(%x: Tensor[(2, 8), float32]) {\n"
    "  %0 = nn.relu(%x);\n"
    "  %1 = add(%0, Tensor[(8), float32] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, "
    "8.0});\n"
    "  %2 = multiply(%1, %0);\n"
    "  %3 = reshape(%2, Tensor[(2), int64] {4, 4});\n"
    "  %4 = tanh(%3);\n"
    "  %5 = transpose(%4, axes=[1, 0]);\n"
    "  nn.softmax(%5)\n"
    "}\n";

static void test_fixed(void **state)
{
    (void)state;
    check(chain);
}

static void test_view_as_output(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(2, 6), float32]) {\n"
          "  %0 = exp(%x);\n"
          "  %1 = reshape(%0, Tensor[(2), int64] {3, 4});\n"
          "  %2 = nn.relu(%1);\n"
          "  (%1, %0, %2, %0)\n"
          "}\n");
}

static void test_output_is_input(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(2, 3), float32], %n: Tensor[(N), float32]) {\n"
          "  %0 = expand_dims(%x, axis=[0]);\n"
          "  %1 = copy(%n);\n"
          "  (%x, %0, Tensor[(2), float32] {1.0, 2.0}, %n, %1)\n"
          "}\n");
}

static void test_tuples(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(4, 6), float32]) {\n"
          "  %0 = split(%x, sizes=[1, 2, 3], axis=1);\n"
          "  %1 = (%0.2, %0.0);\n"
          "  %2 = concatenate(%1.1, %0.1, %1.0, axis=1);\n"
          "  (%2, %0.1)\n"
          "}\n");
}

static void test_empty(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(0, 3), float32]) {\n"
          "  %0 = nn.relu(%x);\n"
          "  %1 = concatenate(%0, %x, axis=0);\n"
          "  (%1, %0)\n"
          "}\n");
}

static void test_dynamic(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(N, 4), float32], %y: Tensor[(N, 4), float32])"
          " {\n"
          "  %0 = add(%x, %y);\n"
          "  %1 = shape_of(%0);\n"
          "  %2 = nn.relu(%0);\n"
          "  %3 = reshape(%2, Tensor[(1), int64] {-1});\n"
          "  %4 = reshape(%3, %1);\n"
          "  %5 = multiply(%4, %x);\n"
          "  %6 = sum(%5, axis=[0]);\n"
          "  (%5, %6, %3, %1)\n"
          "}\n");
}

/* Groups that are one step: a product, whose rows vary, and a convolution with
 * their epilogues. */
static void test_epilogues(void **state)
{
    (void)state;
    check(
        "def @main(%x: Tensor[(N, 4), float32], %r: Tensor[(N, 3), float32],\n"
        "          %y: Tensor[(1, 6, 5, 2), float32]) {\n"
        "  %w = Tensor[(4, 3), float32] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0,\n"
        "    8.0, 9.0, 1.0, 2.0, 3.0};\n"
        "  %b = Tensor[(3), float32] {1.0, -2.0, 3.0};\n"
        "  %f = fn (%p0: Tensor[(N, 4), float32], %p1: Tensor[(4, 3),\n"
        "           float32], %p2: Tensor[(3), float32], %p3: Tensor[(N, 3),\n"
        "           float32], Primitive=1) {\n"
        "    %0 = nn.matmul(%p0, %p1);\n"
        "    %1 = add(%0, %p2);\n"
        "    %2 = multiply(%1, Tensor[(1), float32] {0.5});\n"
        "    %3 = tanh(%2);\n"
        "    subtract(%3, %p3)\n"
        "  };\n"
        "  %0 = %f(%x, %w, %b, %r);\n"
        "  %v = Tensor[(1, 1, 2, 3), float32] {1.0, 2.0, 3.0, 4.0, 5.0, 6.0};\n"
        "  %g = fn (%p0: Tensor[(1, 6, 5, 2), float32], %p1: Tensor[(1, 1, 2,\n"
        "           3), float32], %p2: Tensor[(3), float32], Primitive=1) {\n"
        "    %0 = nn.conv2d(%p0, %p1, data_layout=\"NHWC\",\n"
        "                   kernel_layout=\"HWIO\");\n"
        "    %1 = add(%p2, %0);\n"
        "    nn.relu(%1)\n"
        "  };\n"
        "  %1 = %g(%y, %v, %b);\n"
        "  (%0, %1)\n"
        "}\n");
}

static DLTensor string_view(const char **at, int64_t *dims)
{
    return (DLTensor){.data = at,
                      .device = {kDLCPU, 0},
                      .ndim = 1,
                      .dtype = byoc_dtype_dlpack(BYOC_STRING),
                      .shape = dims};
}

/* Strings come from the caller, from the weights and from kernels. Those of an
 * output belong to the state, even if the caller owns the array of pointers. */
static void test_strings(void **state)
{
    struct fixture x;
    struct byoc_error err;
    struct byoc_state *s = NULL;
    (void)state;
    struct byoc_model *model = open_model(
        &x, "def @main(%a: Tensor[(N), string], %b: Tensor[(2), float32]) {\n"
            "  %0 = concatenate(%a, Tensor[(2), string] {\"\", \"const\"});\n"
            "  %1 = cast(%b, dtype=\"string\");\n"
            "  (%0, %1, %a)\n"
            "}\n");
    char text[] = "given";
    const char *words[] = {text, "two"}, *numbers_text[2];
    int64_t n = 2;
    float numbers[] = {0.5f, -3};
    DLTensor in[2] = {string_view(words, &n), string_view(numbers_text, &n)};
    DLTensor out[3] = {{0}};
    in[1].data = numbers;
    in[1].dtype = byoc_dtype_dlpack(BYOC_F32);
    out[1] = string_view(numbers_text, &n);
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    for (int run = 0; run < 2; run++) {
        out[0].data = out[2].data = NULL;
        assert_int_equal(byoc_run(s, in, 2, out, 3, &err), BYOC_OK);
        memset(text, 'x', (size_t)run); /* none is kept from the first run */
        const char *const *joined = out[0].data, *const *same = out[2].data;
        assert_string_equal(joined[0], "given");
        assert_string_equal(joined[2], "");
        assert_string_equal(joined[3], "const");
        assert_string_equal(same[1], "two");
        assert_string_equal(numbers_text[0], "0.5");
        assert_string_equal(numbers_text[1], "-3");
    }
    words[1] = NULL;
    assert_int_equal(byoc_run(s, in, 2, out, 3, &err), BYOC_EINVAL);
    assert_string_equal(err.text, "input \"a\": element 1 is NULL, expected a "
                                  "string");
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* A loop that inserts, erases and concatenates; sequences as inputs and
 * outputs.
 */
static void test_lists(void **state)
{
    struct fixture x;
    struct byoc_error err;
    struct byoc_state *s = NULL;
    (void)state;
    struct byoc_model *model = open_model(
        &x,
        "def @grow(%i: Tensor[(), int64], %s: Seq[Tensor[(?), float32]],\n"
        "          %x: Tensor[(N), float32]) -> Seq[Tensor[(?), float32]] {\n"
        "  %0 = less(%i, 3);\n"
        "  if (%0) {\n"
        "    %1 = sequence.insert(%s, %x, 0);\n"
        "    %2 = add(%i, 1);\n"
        "    %3 = concatenate(%x, %x);\n"
        "    @grow(%2, %1, %3)\n"
        "  } else {\n"
        "    %s\n"
        "  }\n"
        "}\n"
        "def @main(%s: Seq[Tensor[(?), float32]], %x: Tensor[(N), float32],\n"
        "          %o: Optional[Tensor[(2), float32]]) {\n"
        "  %0 = @grow(0, %s, %x);\n"
        "  %1 = sequence.concatenate(%0, axis=0);\n"
        "  %2 = sequence.erase(%0);\n"
        "  %3 = optional.has(%o);\n"
        "  %4 = sequence.split(%x, 2, axis=0);\n"
        "  %5 = sequence.erase(sequence.erase(%4));\n"
        "  %6 = sequence.concatenate(%5, axis=1, new_axis=true,\n"
        "                            allow_empty=true);\n"
        "  (%0, %1, %2, %3, %s, %4, %6)\n"
        "}\n");
    float a[] = {1, 2}, b[] = {3}, c[] = {4, 5, 6};
    int64_t sizes[] = {2, 1, 3};
    struct byoc_value elements[] = {{.tensor = string_view(NULL, &sizes[0])},
                                    {.tensor = string_view(NULL, &sizes[1])}};
    struct byoc_value in[3] = {
        {.kind = BYOC_SEQUENCE, .n = 2, .elements = elements},
        {.tensor = string_view(NULL, &sizes[2])},
        {.kind = BYOC_OPTIONAL}};
    struct byoc_value out[7];
    elements[0].tensor.data = a;
    elements[1].tensor.data = b;
    in[1].tensor.data = c;
    elements[0].tensor.dtype = elements[1].tensor.dtype = in[1].tensor.dtype =
        byoc_dtype_dlpack(BYOC_F32);
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    for (int run = 0; run < 3; run++) {
        memset(out, 0, sizeof out);
        if (byoc_run_values(s, in, 3, out, 7, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        assert_int_equal(out[0].n, 5); /* 12, 6, 3, 2 and 1 numbers */
        assert_int_equal(out[0].elements[0].tensor.shape[0], 12);
        assert_true(((float *)out[0].elements[2].tensor.data)[2] == 6);
        assert_true(((float *)out[0].elements[4].tensor.data)[0] == 3);
        assert_int_equal(out[1].tensor.shape[0], 24);
        assert_true(((float *)out[1].tensor.data)[21] == 1);
        assert_int_equal(out[2].n, 4);
        assert_int_equal(*(uint8_t *)out[3].tensor.data, 0);
        assert_int_equal(out[4].n, 2); /* the caller's tensor is unchanged */
        assert_int_equal(out[5].n, 2);
        assert_int_equal(out[5].elements[1].tensor.shape[0], 1);
        assert_int_equal(out[6].tensor.ndim, 2);
        assert_int_equal(out[6].tensor.shape[0] + out[6].tensor.shape[1], 0);
    }
    DLTensor views[7] = {{0}};
    assert_int_equal(byoc_run(s, views, 3, views, 7, &err), BYOC_EINVAL);
    assert_non_null(strstr(err.text, "byoc_run_values"));
    in[2].kind = BYOC_SEQUENCE;
    assert_int_equal(byoc_run_values(s, in, 3, out, 7, &err), BYOC_ETYPE);
    assert_string_equal(err.text,
                        "input \"o\": found a sequence, expected an optional");
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* Positions out of range, shapes that do not fit, and empty sequences and
 * optionals are refused. */
static void test_lists_refused(void **state)
{
    static const struct {
        const char *body, *word; /* of the message; NULL: the run succeeds */
    } rows[] = {
        {"sequence.at(%s, %p)", "found position 7, expected -2 to 1"},
        {"sequence.erase(%s, %p)", "found position 7"},
        {"sequence.insert(%s, %x, %p)", "expected -2 to 2"},
        {"sequence.split(%x, %p, axis=0)", NULL},
        {"sequence.concatenate(sequence.make(%x, %y), axis=1)",
         "found shape (3, 5) of element 1, expected one that fits"},
        {"sequence.concatenate(sequence.erase(sequence.erase(%s)), axis=0)",
         "found an empty sequence"},
        {"optional.get(optional.none(dtype=\"float32\", sequence=true))",
         "found an empty optional"},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        char ir[600];
        struct fixture x;
        struct byoc_error err;
        struct byoc_state *s = NULL;
        float two[6] = {0}, three[15] = {0};
        int64_t dims[] = {2, 3, 3, 5}, position = 7;
        snprintf(ir, sizeof ir,
                 "def @main(%%x: Tensor[(2, 3), float32], "
                 "%%y: Tensor[(N, M), float32], %%p: Tensor[(), int64]) {\n"
                 "  %%s = sequence.make(%%x, %%x);\n  %s\n}\n",
                 rows[i].body);
        struct byoc_model *model = open_model(&x, ir);
        struct byoc_value in[3] = {{.tensor = string_view(NULL, dims)},
                                   {.tensor = string_view(NULL, dims + 2)},
                                   {.tensor = string_view(NULL, dims)}};
        struct byoc_value out[1] = {{.kind = BYOC_TENSOR}};
        in[0].tensor.data = two;
        in[1].tensor.data = three;
        in[2].tensor.data = &position;
        in[0].tensor.ndim = in[1].tensor.ndim = 2;
        in[2].tensor.ndim = 0;
        in[0].tensor.dtype = in[1].tensor.dtype = byoc_dtype_dlpack(BYOC_F32);
        in[2].tensor.dtype = byoc_dtype_dlpack(BYOC_I64);
        assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
        const enum byoc_status status = byoc_run_values(s, in, 3, out, 1, &err);
        assert_int_equal(status, rows[i].word ? BYOC_EINVAL : BYOC_OK);
        if (rows[i].word && !strstr(err.text, rows[i].word))
            fail_msg("found \"%s\", expected \"%s\" in it", err.text,
                     rows[i].word);
        byoc_state_free(&s);
        byoc_model_free(&model);
        fixture_close(&x);
    }
}

/* Each run of a state draws new numbers, each call its own; a new state starts
 * over. */
static void test_random(void **state)
{
    struct fixture x;
    struct byoc_error err;
    (void)state;
    struct byoc_model *model = open_model(
        &x, "def @main() {\n"
            "  %0 = random.uniform(Tensor[(1), int64] {4}, seed=1.0);\n"
            "  %1 = random.uniform(Tensor[(1), int64] {4}, seed=2.0);\n"
            "  (%0, %1)\n"
            "}\n");
    float runs[3][2][4];
    for (int state_number = 0; state_number < 2; state_number++) {
        struct byoc_state *s = NULL;
        assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
        for (int run = 0; run < 2 - state_number; run++) {
            DLTensor out[2] = {0};
            assert_int_equal(byoc_run(s, NULL, 0, out, 2, &err), BYOC_OK);
            for (int i = 0; i < 2; i++)
                memcpy(runs[2 * state_number + run][i], out[i].data,
                       sizeof runs[0][0]);
        }
        byoc_state_free(&s);
    }
    assert_memory_equal(runs[0], runs[2], sizeof runs[0]);
    assert_memory_not_equal(runs[0][0], runs[1][0], sizeof runs[0][0]);
    assert_memory_not_equal(runs[0][0], runs[0][1], sizeof runs[0][0]);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_data_dependent(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(3, 5), float32]) {\n"
          "  %0 = nn.relu(%x);\n"
          "  %1 = nonzero(%0);\n"
          "  %2 = transpose(%1, axes=[1, 0]);\n"
          "  %3 = gather_nd(%x, %2);\n"
          "  (%3, %2)\n"
          "}\n");
}

static void test_calls(void **state)
{
    (void)state;
    check("def @inner(%a: Tensor[(2, 3), float32]) {\n"
          "  %0 = nn.relu(%a);\n"
          "  (%0, %a)\n"
          "}\n"
          "def @outer(%a: Tensor[(2, 3), float32]) {\n"
          "  %0 = @inner(%a);\n"
          "  %1 = @inner(%0.0);\n"
          "  add(%1.0, %0.1)\n"
          "}\n"
          "def @main(%x: Tensor[(2, 3), float32]) {\n"
          "  %0 = @outer(%x);\n"
          "  %1 = @outer(%0);\n"
          "  add(%0, %1)\n"
          "}\n");
}

static void test_dynamic_calls(void **state)
{
    (void)state;
    check("def @f(%a: Tensor[(N), float32]) {\n"
          "  %0 = nn.relu(%a);\n"
          "  %1 = exp(%0);\n"
          "  (%1, %a, %1)\n"
          "}\n"
          "def @main(%x: Tensor[(N), float32]) {\n"
          "  %0 = @f(%x);\n"
          "  %1 = @f(%0.0);\n"
          "  (%1.0, %1.1, %1.2, %0.1)\n"
          "}\n");
}

static void test_literals(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(2, 3), float32]) {\n"
          "  %f = fn (%a: Tensor[(2, 3), float32]) {\n"
          "    %0 = nn.relu(%a);\n"
          "    add(%0, %x)\n"
          "  };\n"
          "  %1 = %f(%x);\n"
          "  %f(%1)\n"
          "}\n");
}

static void test_if(void **state)
{
    (void)state;
    check("def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(N), float32]) {\n"
          "  %0 = sum(%x, keepdims=false);\n"
          "  %1 = greater(%0, 0.0f);\n"
          "  %2 = exp(%x);\n"
          "  %3 = if (%1) {\n"
          "    %4 = nn.relu(%2);\n"
          "    (%4, %y)\n"
          "  } else {\n"
          "    %5 = if (%1) {\n"
          "      tanh(%x)\n"
          "    } else {\n"
          "      add(%2, %x)\n"
          "    };\n"
          "    %6 = exp(%y);\n"
          "    (%5, %6)\n"
          "  };\n"
          "  %7 = tanh(%3.1);\n"
          "  (%3.0, %7, %3.1)\n"
          "}\n");
}

/* --- refusals ------------------------------------------------------------ */

static void refuse(const char *ir, enum byoc_status status, const char *word)
{
    struct fixture x;
    struct byoc_error err;
    assert_int_equal(fixture_open(&x, ir, &err), status);
    if (!strstr(err.text, word))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, word);
}

static void test_functions_as_values_refused(void **state)
{
    (void)state;
    refuse("def @main(%f: fn () -> Tensor[(2), float32]) {\n"
           "  %f()\n"
           "}\n",
           BYOC_EUNSUPPORTED, "an input that is a function");
    refuse("def @main(%x: Tensor[(2), float32]) {\n"
           "  (%x, fn () { %x })\n"
           "}\n",
           BYOC_EUNSUPPORTED, "result 1: found a function");
}

static void run_fails(struct byoc_state *s, const DLTensor *in, uint32_t n_in,
                      DLTensor *out, uint32_t n_out, enum byoc_status status,
                      const char *word)
{
    struct byoc_error err;
    assert_int_equal(byoc_run(s, in, n_in, out, n_out, &err), status);
    if (!strstr(err.text, word))
        fail_msg("found \"%s\", expected \"%s\" in it", err.text, word);
}

/* A run without end fails with an error and leaks nothing, and the state can
 * run again. */
static void expect_limit(const char *ir, uint32_t depth, uint64_t calls,
                         const char *word)
{
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(&x, ir);
    struct byoc_state *s = NULL;
    int64_t n = 1;
    const DLTensor in = {.data = &n,
                         .device = {kDLCPU, 0},
                         .dtype = byoc_dtype_dlpack(BYOC_I64)};
    DLTensor out = {0};
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    s->max_depth = depth;
    s->max_calls = calls;
    run_fails(s, &in, 1, &out, 1, BYOC_ELIMIT, word);
    n = 0;
    out.data = NULL;
    assert_int_equal(byoc_run(s, &in, 1, &out, 1, &err), BYOC_OK);
    assert_int_equal(*(int64_t *)out.data, 0);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

#define I64 "Tensor[(), int64]"

/* A thread that cancels the runs of a state until `done` is set. */
struct canceller {
    struct byoc_state *state;
    int done;
};

/* Run repeatedly, since a run first clears the results of the previous one. */
static void *keep_cancelling(void *arg)
{
    struct canceller *c = arg;
    const struct timespec pause = {.tv_nsec = 2000000};
    while (!__atomic_load_n(&c->done, __ATOMIC_ACQUIRE)) {
        byoc_state_cancel(c->state);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* A loop whose count comes from data, here 2^40, ends when it is cancelled. */
static void test_cancel_long_loop(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(
        &x, "def @f(%n: " I64 ") -> " I64 " {\n"
            "  if (less(%n, 1)) { %n } else { @f(subtract(%n, 1)) }\n"
            "}\n"
            "def @main(%n: " I64 ") { @f(%n) }\n");
    struct canceller c = {0};
    pthread_t thread;
    int64_t n = INT64_C(1) << 40;
    const DLTensor in = {.data = &n,
                         .device = {kDLCPU, 0},
                         .dtype = byoc_dtype_dlpack(BYOC_I64)};
    DLTensor out = {0};
    assert_int_equal(byoc_state_new(model, &c.state, &err), BYOC_OK);
    assert_int_equal(pthread_create(&thread, NULL, keep_cancelling, &c), 0);
    run_fails(c.state, &in, 1, &out, 1, BYOC_ECANCELLED, "cancelled in @");
    __atomic_store_n(&c.done, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    n = 3;
    assert_int_equal(byoc_run(c.state, &in, 1, &out, 1, &err), BYOC_OK);
    assert_int_equal(*(int64_t *)out.data, 0);
    byoc_state_free(&c.state);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_endless_recursion(void **state)
{
    (void)state;
    expect_limit("def @f(%n: " I64 ") -> " I64 " {\n"
                 "  if (equal(%n, 0)) { %n } else { add(@f(add(%n, 1)), 1) }\n"
                 "}\n"
                 "def @main(%n: " I64 ") { @f(%n) }\n",
                 5000, 1 << 20,
                 "@f.3: found too many nested calls, expected at most 5000");
    expect_limit("def @f(%n: " I64 ") -> " I64 " {\n"
                 "  if (equal(%n, 0)) { %n } else { @f(add(%n, 1)) }\n"
                 "}\n"
                 "def @main(%n: " I64 ") { @f(%n) }\n",
                 5000, 20000,
                 "found too many calls in one run, expected at most 20000");
    expect_limit("def @f(%g: fn (" I64 ") -> " I64 ", %n: " I64 ") -> " I64
                 " {\n"
                 "  if (equal(%n, 0)) { %n } else {\n"
                 "    %h = fn (%x: " I64 ") { %g(add(%x, 1)) };\n"
                 "    add(@f(%h, %h(%n)), 1)\n"
                 "  }\n"
                 "}\n"
                 "def @main(%n: " I64 ") { @f(fn (%x: " I64 ") { %x }, %n) }\n",
                 5000, 1 << 24, "look for a recursion");
}

/* Tail calls need no frames: a loop by recursion may be longer than the 200
 * calls for which there is room. */
static void test_tail_calls(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(
        &x, "def @f(%n: " I64 ", %v: Tensor[(N), int64], %g: fn (" I64
            ") -> " I64 ") -> Tensor[(M), int64] {\n"
            "  if (equal(%n, 0)) { %v } else {\n"
            "    %w: Tensor[(K), int64] = concatenate(\n"
            "      strided_slice(%v, [1], [100], [0], [1]),\n"
            "      expand_dims(%g(%n), axis=[0]), axis=0);\n"
            "    @f(subtract(%n, 1), %w, %g)\n"
            "  }\n"
            "}\n"
            "def @main(%n: " I64 ") {\n"
            "  %k = add(%n, 7);\n"
            "  @f(9000, [1, 2, 3, 4], fn (%x: " I64 ") { add(%x, %k) })\n"
            "}\n");
    struct byoc_state *s = NULL;
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    s->max_depth = 200;
    for (uint64_t seed = 0; seed < 3; seed++)
        if (fixture_run(&x, s, seed, false, &err) != BYOC_OK)
            fail_msg("%s\n%s", err.text, x.plan.json.at);
    assert_true(s->pool.bytes < 1 << 20);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* A result that grows by a row in each iteration, as Scan's do. Outgrown blocks
 * are used again, so that memory stays in proportion to the result. */
static void test_growing_rows(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(
        &x, "def @f(%n: " I64 ", %v: Tensor[(N, 64), float32], %r: "
            "Tensor[(1, 64), float32]) -> Tensor[(M, 64), float32] {\n"
            "  if (equal(%n, 0)) { %v } else {\n"
            "    %w: Tensor[(K, 64), float32] = concatenate(%v, %r, axis=0);\n"
            "    @f(subtract(%n, 1), %w, %r)\n"
            "  }\n"
            "}\n"
            "def @main(%r: Tensor[(1, 64), float32]) {\n"
            "  @f(2000, %r, %r)\n"
            "}\n");
    const uint64_t result = 2001 * 64 * sizeof(float);
    struct byoc_state *s = NULL;
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    for (uint64_t seed = 0; seed < 3; seed++) {
        if (fixture_run(&x, s, seed, false, &err) != BYOC_OK)
            fail_msg("%s\n%s", err.text, x.plan.json.at);
        assert_true(s->pool.most_used >= result);
        assert_true(s->pool.most_used < 3 * result);
        assert_true(s->pool.bytes < 6 * result);
    }
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* Rows are appended twice to one value: the second append must not overwrite
 * the rows of the first. Also a value that is appended to itself, and an axis
 * along which the first operand is not the beginning of the result. */
static void test_appended_twice(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(
        &x,
        "def @f(%n: " I64 ", %v: Tensor[(N, 3), float32], %r: "
        "Tensor[(1, 3), float32]) -> Tensor[(M, 3), float32] {\n"
        "  if (equal(%n, 0)) { %v } else {\n"
        "    %a: Tensor[(A, 3), float32] = concatenate(%v, %r, axis=0);\n"
        "    %b: Tensor[(B, 3), float32] =\n"
        "        concatenate(%v, negative(%r), axis=-2);\n"
        "    %c: Tensor[(C, 3), float32] = concatenate(%a, %b, axis=0);\n"
        "    %p: Tensor[(P, 3), float32] =\n"
        "        strided_slice(%c, [0], [1], [0], [1]);\n"
        "    %d: Tensor[(C, 6), float32] = concatenate(%c, %c, axis=1);\n"
        "    %e: Tensor[(E, 3), float32] = reshape(%d, [-1, 3]);\n"
        "    @f(subtract(%n, 1),\n"
        "        concatenate(concatenate(%p, %p, axis=0), %e, axis=0), %r)\n"
        "  }\n"
        "}\n"
        "def @main(%r: Tensor[(1, 3), float32], "
        "%v: Tensor[(N, 3), float32]) {\n"
        "  @f(4, %v, %r)\n"
        "}\n");
    struct byoc_state *s = NULL;
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    for (uint64_t seed = 0; seed < 4; seed++)
        if (fixture_run(&x, s, seed, false, &err) != BYOC_OK)
            fail_msg("%s\n%s", err.text, x.plan.json.at);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_wrong_views(void **unused)
{
    (void)unused;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(
        &x, "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(N), float32],"
            " %z: Tensor[(N), float32]) {\n"
            "  %0 = nn.relu(%x);\n"
            "  %1 = add(%y, %z);\n"
            "  (%0, %1)\n"
            "}\n");
    struct byoc_state *s = NULL;
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    float a[8] = {1, -1, 2, -2, 3, -3}, b[4] = {1}, c[4] = {2}, o[6], p[4];
    int64_t shape[2] = {2, 3}, n3[1] = {3}, n2[1] = {2}, dense[2] = {3, 1};
    int64_t columns[2] = {1, 2};
    DLDataType f32 = byoc_dtype_dlpack(BYOC_F32);
    DLDevice cpu = {kDLCPU, 0};
    const DLTensor ok[3] = {
        {.data = a,
         .device = cpu,
         .ndim = 2,
         .dtype = f32,
         .shape = shape,
         .strides = dense},
        {.data = b, .device = cpu, .ndim = 1, .dtype = f32, .shape = n3},
        {.data = c, .device = cpu, .ndim = 1, .dtype = f32, .shape = n3}};
    const DLTensor out_ok[2] = {
        {.data = o, .device = cpu, .ndim = 2, .dtype = f32, .shape = shape},
        {.data = p, .device = cpu, .ndim = 1, .dtype = f32, .shape = n3}};
    DLTensor in[3], out[2];
#define RESET() (memcpy(in, ok, sizeof in), memcpy(out, out_ok, sizeof out))
    RESET();
    assert_int_equal(byoc_run(s, in, 3, out, 2, &err), BYOC_OK);
    assert_true(o[0] == 1 && o[1] == 0 && p[0] == 3);
    run_fails(s, in, 2, out, 2, BYOC_EINVAL, "found 2 inputs and 2 outputs");
    in[0].dtype = byoc_dtype_dlpack(BYOC_F64);
    run_fails(s, in, 3, out, 2, BYOC_ETYPE, "input \"x\": found float64");
    RESET(), in[0].ndim = 1;
    run_fails(s, in, 3, out, 2, BYOC_ETYPE, "rank 1, expected shape (2, 3)");
    RESET(), in[0].strides = columns;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL,
              "found strides (1, 2), which are not dense");
    RESET(), in[0].data = NULL;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL, "data is NULL");
    RESET(), in[0].shape = NULL;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL, "shape is NULL, expected 2 sizes");
    RESET(), in[0].byte_offset = 2;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL, "found data that is not aligned");
    RESET(), in[0].device.device_type = kDLCUDA;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL,
              "is on DLPack device 2, expected CPU memory");
    RESET(), in[2].shape = n2;
    run_fails(s, in, 3, out, 2, BYOC_ETYPE,
              "axis 0 (N) is 2, expected 3, the size of axis 0 of input");
    RESET(), out[0].data = a;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL, "overlaps input");
    RESET(), out[1].data = o;
    run_fails(s, in, 3, out, 2, BYOC_EINVAL, "overlaps output");
    RESET(), out[1].shape = n2;
    run_fails(s, in, 3, out, 2, BYOC_ETYPE,
              "output 1 of @main: found memory of shape (2,)");
    RESET(); /* a failed run leaves the state usable */
    assert_int_equal(byoc_run(s, in, 3, out, 2, &err), BYOC_OK);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

/* --- threads, memory, trace ----------------------------------------------- */

/* The work of a thread: runs of one state of the model. */
struct job {
    struct fixture *x;
    const struct byoc_model *model;
    uint64_t seed;
    struct byoc_error err;
    enum byoc_status status;
};

static void *run_often(void *arg)
{
    struct job *j = arg;
    struct byoc_state *s = NULL;
    j->status = byoc_state_new(j->model, &s, &j->err);
    for (uint64_t i = 0; i < 50 && j->status == BYOC_OK; i++)
        j->status = fixture_run(j->x, s, j->seed + i, i % 2, &j->err);
    byoc_state_free(&s);
    return NULL;
}

static void test_two_threads(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_model *model = open_model(&x, chain);
    struct job jobs[2];
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++) {
        jobs[i] = (struct job){.x = &x, .model = model, .seed = 1000 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &jobs[i]),
                         0);
    }
    for (size_t i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        if (jobs[i].status != BYOC_OK)
            fail_msg("%s", jobs[i].err.text);
    }
    byoc_model_free(&model);
    fixture_close(&x);
}

/* Temporaries that are never alive together share memory. */
static void test_arena(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_model *model =
        open_model(&x, "def @main(%x: Tensor[(256), float32]) {\n"
                       "  %0 = exp(%x);\n  %1 = tanh(%0);\n  %2 = exp(%1);\n"
                       "  %3 = tanh(%2);\n  %4 = exp(%3);\n  tanh(%4)\n}\n");
    assert_int_equal(model->plan->funcs[0].arena, 2 * 1024);
    byoc_model_free(&model);
    fixture_close(&x);
}

static void test_trace(void **state)
{
    (void)state;
    struct fixture x;
    struct byoc_error err;
    struct byoc_model *model = open_model(&x, chain);
    struct byoc_state *s = NULL;
    char path[TEST_PATH + 16];
    snprintf(path, sizeof path, "%s/trace", make_test_folder(NULL));
    assert_int_equal(byoc_state_new(model, &s, &err), BYOC_OK);
    assert_int_equal(byoc_state_trace(s, path, &err), BYOC_OK);
    assert_int_equal(fixture_run(&x, s, 1, true, &err), BYOC_OK);
    assert_int_equal(byoc_state_trace(s, NULL, &err), BYOC_OK);
    const void *text;
    size_t n;
    struct cJSON *json = NULL;
    assert_int_equal(byi_map_file(path, &text, &n, &err), BYOC_OK);
    assert_int_equal(byi_json_parse(text, n, 1 << 20, &json, &err), BYOC_OK);
    assert_non_null(memmem(text, n, "nn.softmax", 10));
    byi_json_free(&json);
    byi_unmap(text, n);
    remove(path);
    byoc_state_free(&s);
    byoc_model_free(&model);
    fixture_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fixed),
        cmocka_unit_test(test_view_as_output),
        cmocka_unit_test(test_output_is_input),
        cmocka_unit_test(test_tuples),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_dynamic),
        cmocka_unit_test(test_epilogues),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_lists_refused),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_data_dependent),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_dynamic_calls),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_functions_as_values_refused),
        cmocka_unit_test(test_endless_recursion),
        cmocka_unit_test(test_cancel_long_loop),
        cmocka_unit_test(test_tail_calls),
        cmocka_unit_test(test_wrong_views),
        cmocka_unit_test(test_two_threads),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_growing_rows),
        cmocka_unit_test(test_appended_twice),
        cmocka_unit_test(test_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
