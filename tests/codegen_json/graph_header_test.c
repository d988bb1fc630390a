/* SPDX-License-Identifier: Apache-2.0 */
/* graph_header_test.c: tests that byoc/graph.h returns a region's values, steps
 * and kernels as in its text, with complete attributes. It returns the reader's
 * errors (read_test has more of them), refuses missing constants, and does not
 * crash if any byte of the text is changed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#undef fail /* a member of struct byoc_host */

#include <byoc/graph.h>

#include "region/graph.h"

#include <stdio.h>
#include <stdlib.h>

/* Two kernels: a convolution with relu, and a row that returns a tuple of a
 * split's results. ' stands for ". */
static const char good[] =
    "{'format':'byoc-graph','version':1,'symbol':'kit_0','nodes':["
    "{'op':'input','name':'x','out':[{'dtype':'float32','shape':[1,3,8,8]}]},"
    "{'op':'const','data':0,'out':[{'dtype':'float32','shape':[4,3,3,3]}]},"
    "{'op':'kernel','pattern':'kit.conv',"
    "'operands':{'src':[0,0],'weights':[1,0]},"
    "'name':'nn.conv2d','args':['src','weights'],"
    "'attrs':{'strides':[2,2],'padding':[1,1,1,1],'groups':1},"
    "'type':{'dtype':'float32','shape':[1,4,4,4]},"
    "'post_ops':[{'name':'clip','args':[0],'attrs':{'a_min':'-inf','a_max':6},"
    "'type':{'dtype':'float32','shape':[1,4,4,4]}}],"
    "'out':[{'dtype':'float32','shape':[1,4,4,4]}],'source':['Conv','Clip']},"
    "{'op':'kernel','pattern':'kit.pair','operands':{'src':[2,0]},"
    "'name':'split','args':['src'],'attrs':{'sizes':[2,2],'axis':1},"
    "'type':[{'dtype':'float32','shape':[1,2,4,4]},"
    "{'dtype':'float32','shape':[1,2,4,4]}],"
    "'post_ops':[{'name':'tuple','args':[[0,1],'src'],'attrs':{},"
    "'type':[{'dtype':'float32','shape':[1,2,4,4]},"
    "{'dtype':'float32','shape':[1,4,4,4]}]}],"
    "'out':[{'dtype':'float32','shape':[1,2,4,4]},"
    "{'dtype':'float32','shape':[1,4,4,4]}],'source':[]}],"
    "'inputs':[0],'outputs':[[3,0],[3,1],[0,0]]}";

/* --- a host --------------------------------------------------------------- */

struct byoc_fail {
    uint32_t code;
    char text[256];
};

static int n_blocks; /* that acquire() returned and release() did not get */

static void *acquire(void *ctx, uint64_t bytes)
{
    (void)ctx;
    n_blocks++;
    return aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
}

static void release(void *ctx, void *memory)
{
    (void)ctx;
    n_blocks -= memory != NULL;
    free(memory);
}

static struct byoc_fail *make_fail(void *ctx, uint32_t code, const char *text)
{
    static struct byoc_fail last;
    (void)ctx;
    last.code = code;
    snprintf(last.text, sizeof last.text, "%s", text);
    return &last;
}

static const struct byoc_host host = {.struct_size = sizeof host,
                                      .abi = BYOC_BACKEND_ABI,
                                      .acquire = acquire,
                                      .release = release,
                                      .fail = make_fail,
                                      .graph_open = byi_graph_open,
                                      .graph_close = byi_graph_close};

static float weights[4 * 3 * 3 * 3];

static struct byoc_fail *read_bytes(const char *text, size_t n,
                                    struct byoc_graph **g)
{
    static const int64_t dims[] = {4, 3, 3, 3};
    const struct byoc_view view = {.dtype = 1,
                                   .rank = 4,
                                   .dims = dims,
                                   .data = weights,
                                   .bytes = sizeof weights};
    /* in memory of exactly n bytes, so that a sanitizer reports a read past it
     */
    char *copy = malloc(n);
    memcpy(copy, text, n);
    for (size_t i = 0; i < n; i++)
        copy[i] = copy[i] == '\'' ? '"' : copy[i];
    const struct byoc_region region = {.struct_size = sizeof region,
                                       .n_consts = 1,
                                       .json = copy,
                                       .json_bytes = n,
                                       .consts = &view};
    *g = NULL;
    struct byoc_fail *why = byoc_graph_read(&host, &region, g);
    free(copy);
    return why;
}

/* Read the text `good` with the first `from` replaced by `to`. */
static struct byoc_fail *read_with(const char *from, const char *to,
                                   struct byoc_graph **g)
{
    char text[4096];
    const char *at = strstr(good, from);
    assert_non_null(at);
    int n = snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to,
                     at + strlen(from));
    return read_bytes(text, (size_t)n, g);
}

/* --- tests ---------------------------------------------------------------- */

static void returns_values_steps_and_kernels(void **unused)
{
    (void)unused;
    struct byoc_graph *g;
    assert_null(read_with("kit_0", "kit_0", &g));
    assert_string_equal(g->symbol, "kit_0");
    assert_int_equal(g->n_kernels, 2);
    assert_int_equal(g->n_steps, 3); /* a tuple is not a step */
    const struct byoc_graph_kernel *k = &g->kernels[0];
    assert_string_equal(k->pattern, "kit.conv");
    assert_string_equal(k->source, "Conv,Clip");
    assert_int_equal(k->n_steps, 2);
    const struct byoc_graph_value *w = byoc_graph_operand(g, k, "weights");
    assert_int_equal(w->kind, BYOC_GRAPH_CONST);
    assert_ptr_equal(w->data, weights);
    assert_null(byoc_graph_operand(g, k, "bias"));
    const struct byoc_graph_step *clip = &g->steps[k->first + 1];
    assert_string_equal(clip->name, "clip");
    assert_int_equal(clip->args[0], g->steps[k->first].outs[0]);
    assert_int_equal(k->outs[0], clip->outs[0]);
    const struct byoc_graph_value *v = &g->values[clip->outs[0]];
    assert_int_equal(v->rank, 4);
    assert_int_equal(v->dims[1], 4);
    assert_int_equal(v->bytes, 256);
    byoc_graph_free(&host, g);
    assert_int_equal(n_blocks, 0);
}

static void tuples_are_their_fields(void **unused)
{
    (void)unused;
    struct byoc_graph *g;
    assert_null(read_with("kit_0", "kit_0", &g));
    const struct byoc_graph_kernel *pair = &g->kernels[1];
    const struct byoc_graph_step *split = &g->steps[pair->first];
    assert_int_equal(pair->n_steps, 1);
    assert_int_equal(pair->n_outs, 2);
    assert_int_equal(pair->outs[0], split->outs[1]);
    assert_int_equal(pair->outs[1], g->kernels[0].outs[0]);
    assert_int_equal(g->n_outputs, 3);
    assert_int_equal(g->outputs[0], split->outs[1]);
    assert_int_equal(g->values[g->outputs[2]].kind, BYOC_GRAPH_INPUT);
    byoc_graph_free(&host, g);
}

static void results_do_not_overlap(void **unused)
{
    (void)unused;
    struct byoc_graph *g;
    assert_null(read_with("kit_0", "kit_0", &g));
    char *memory = acquire(NULL, g->bytes), *last = memory;
    char in[1];
    const struct byoc_view view = {.data = in};
    const struct byoc_run_args args = {.n_inputs = 1, .inputs = &view};
    assert_ptr_equal(byoc_graph_data(g, g->inputs[0], memory, &args), in);
    for (uint32_t i = 0; i < g->n_values; i++) {
        if (g->values[i].kind != BYOC_GRAPH_RESULT)
            continue;
        char *at = byoc_graph_data(g, i, memory, &args);
        assert_true(at >= last && ((uintptr_t)at & 63) == 0);
        last = at + g->values[i].bytes + 64;
        assert_true(last <= memory + g->bytes);
    }
    release(NULL, memory);
    byoc_graph_free(&host, g);
}

static void attributes_have_kinds(void **unused)
{
    (void)unused;
    struct byoc_graph *g;
    int64_t two[2] = {0};
    assert_null(read_with("kit_0", "kit_0", &g));
    const struct byoc_graph_step *s = &g->steps[0];
    assert_int_equal(byoc_graph_ints(s, "strides", two, 2), 2);
    assert_int_equal(two[1], 2);
    assert_int_equal(byoc_graph_ints(s, "strides", two, 1), 2);
    assert_int_equal(byoc_graph_ints(s, "dilation", two, 2), 2); /* default */
    assert_int_equal(two[0], 1);
    assert_int_equal(byoc_graph_ints(s, "groups", two, 2), 1);
    assert_int_equal(byoc_graph_ints(s, "data_layout", two, 2), 0);
    assert_int_equal(byoc_graph_ints(s, "sizes", two, 2), 0);
    assert_int_equal(byoc_graph_int(s, "groups", 7), 1);
    assert_int_equal(byoc_graph_int(s, "sizes", 7), 7);
    assert_string_equal(byoc_graph_string(s, "data_layout", ""), "NCHW");
    assert_string_equal(byoc_graph_string(s, "groups", "none"), "none");
    s = &g->steps[1];
    assert_true(byoc_graph_float(s, "a_min", 0) < -1e300);
    assert_true(byoc_graph_float(s, "a_max", 0) == 6);
    assert_true(byoc_graph_float(s, "a_mean", 3) == 3);
    assert_int_equal(byoc_graph_int(s, "a_max", 7), 7); /* it is a float */
    byoc_graph_free(&host, g);
}

static void refuses_invalid_text(void **unused)
{
    (void)unused;
    static const struct {
        const char *from, *to, *why;
        enum byoc_fail_code code;
    } cases[] = {
        {"byoc-graph", "byoc-plan", "expected \"byoc-graph\"",
         BYOC_FAIL_INVALID},
        {"'version':1", "'version':2", "version: found 2",
         BYOC_FAIL_INCOMPATIBLE},
        {"[[3,0]", "[[3,0]}", "malformed JSON", BYOC_FAIL_INVALID},
        {"[0,0]]}", "[0,0]]} x", "malformed JSON", BYOC_FAIL_INVALID},
        {"'op':'input'", "'op':'output'", "nodes[0].op", BYOC_FAIL_INVALID},
        {"float32", "string", "nodes[2]: nn.conv2d: data has type string",
         BYOC_FAIL_INVALID},
        {"[1,3,8,8]", "[1,1,1,1,1,1,1,1,1,1,1,1,1]", "nodes[0].out[0].shape",
         BYOC_FAIL_RESOURCE},
        {"[1,3,8,8]", "[1,3,9,9]", "nodes[2].type: found float32 (1, 4, 4, 4)",
         BYOC_FAIL_INVALID},
        {"'data':0", "'data':1", "nodes[1].data: found constant 1",
         BYOC_FAIL_INVALID},
        {"'data':0,'out':[{'dtype':'float32'",
         "'data':0,'out':[{'dtype':'int32'",
         "nodes[2]: nn.conv2d: weights has type int32", BYOC_FAIL_INVALID},
        {"[4,3,3,3]", "[4,3,3,4]",
         "nodes[1].data: found constant 0 of 432 bytes", BYOC_FAIL_INVALID},
        {"'src':[0,0]", "'src':[2,0]", "nodes[2].operands.src",
         BYOC_FAIL_INVALID},
        {"['src',", "['dst',", "nodes[2].args[0]", BYOC_FAIL_INVALID},
        {"'groups':1", "'group':1", "nodes[2].attrs.group: found",
         BYOC_FAIL_INVALID},
        {"[[0,1],'src']", "[0,'src']",
         "post_ops[0]: tuple: operand 0 is a tuple", BYOC_FAIL_INVALID},
        {"'inputs':[0]", "'inputs':[1]", "inputs[0]: found node 1",
         BYOC_FAIL_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct byoc_graph *g;
        struct byoc_fail *f = read_with(cases[i].from, cases[i].to, &g);
        if (!f)
            print_error("%s in place of %s is accepted\n", cases[i].to,
                        cases[i].from);
        assert_non_null(f);
        assert_int_equal(f->code, cases[i].code);
        if (!strstr(f->text, cases[i].why))
            assert_string_equal(f->text, cases[i].why);
        assert_null(g);
        assert_int_equal(n_blocks, 0);
    }
}

static void refuses_older_hosts(void **unused)
{
    (void)unused;
    struct byoc_host old = host;
    const struct byoc_region region = {.struct_size = sizeof region};
    struct byoc_graph *g;
    old.struct_size = offsetof(struct byoc_host, graph_open);
    struct byoc_fail *f = byoc_graph_read(&old, &region, &g);
    assert_int_equal(f->code, BYOC_FAIL_INCOMPATIBLE);
    assert_null(g);
    byoc_graph_free(&old, g);
}

static void changed_bytes_do_not_crash(void **unused)
{
    (void)unused;
    static const char other[] = "0123456789-.,:[]{}'ex\\ ";
    char text[sizeof good];
    for (size_t i = 0; i < 20 * strlen(good); i++) {
        struct byoc_graph *g;
        memcpy(text, good, sizeof good);
        text[i / 20] = other[i * 7 % (sizeof other - 1)];
        if (!read_bytes(text, strlen(good), &g))
            byoc_graph_free(&host, g);
        assert_int_equal(n_blocks, 0);
    }
    for (size_t n = 1; n < strlen(good); n++) {
        struct byoc_graph *g;
        assert_non_null(read_bytes(good, n, &g));
    }
}

static void layouts_are_orders_of_axes(void **state)
{
    (void)state;
    uint32_t axes[BYOC_GRAPH_RANK];
    assert_int_equal(byoc_graph_axis("NHWC", 'C'), 3);
    assert_int_equal(byoc_graph_axis("NHWC", 'D'), -1);
    assert_int_equal(byoc_graph_axis("NCHW16c", 'C'), -1);
    assert_int_equal(byoc_graph_axes("HWIO", "OIHW", axes), 4);
    assert_int_equal(axes[0], 3);
    assert_int_equal(axes[1], 2);
    assert_int_equal(axes[2], 0);
    assert_int_equal(axes[3], 1);
    assert_int_equal(byoc_graph_axes("NCHW16c", "NCHW", axes), 0);
    assert_int_equal(byoc_graph_axes("NCHW", "NCHW16c", axes), 0);
    assert_int_equal(byoc_graph_axes("NCHW", "NCDW", axes), 0);
    assert_int_equal(byoc_graph_axes("NCHW", "NCCW", axes), 0);
    assert_int_equal(byoc_graph_axes("NCHW", "NCW", axes), 0);
    assert_int_equal(
        byoc_graph_axes("NCDHWNCDHWNCDHW", "NCDHWNCDHWNCDHW", axes), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_values_steps_and_kernels),
        cmocka_unit_test(tuples_are_their_fields),
        cmocka_unit_test(results_do_not_overlap),
        cmocka_unit_test(attributes_have_kinds),
        cmocka_unit_test(refuses_invalid_text),
        cmocka_unit_test(refuses_older_hosts),
        cmocka_unit_test(changed_bytes_do_not_crash),
        cmocka_unit_test(layouts_are_orders_of_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
