/* SPDX-License-Identifier: Apache-2.0 */
/* tests/codegen_json/read_test.c: tests that the region reader accepts valid
 * text, and names the place of an error. Each case replaces one part of a valid
 * text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "region/graph.h"

#define F32(shape) "{\"dtype\":\"float32\",\"shape\":" shape "}"

static const char good[] =
    "{\"format\":\"byoc-graph\",\"version\":1,\"symbol\":\"dnnl_0\",\"nodes\":["
    "{\"op\":\"input\",\"name\":\"x\",\"out\":[" F32(
        "[1,3,8,8]") "]},"
                     "{\"op\":\"const\",\"data\":0,\"out\":[" F32(
                         "[4,3,3,3]") "]},"
                                      "{\"op\":\"kernel\",\"pattern\":\"dnnl."
                                      "conv\","
                                      "\"operands\":{\"src\":[0,0],\"weights\":"
                                      "[1,0]},"
                                      "\"name\":\"nn.conv2d\",\"args\":["
                                      "\"src\",\"weights\"],"
                                      "\"attrs\":{\"strides\":[2,2],"
                                      "\"padding\":[1,1,1,1]},"
                                      "\"type\":" F32(
                                          "[1,4,4,4]") ","
                                                       "\"post_ops\":[{"
                                                       "\"name\":\"nn.relu\","
                                                       "\"args\":[0],\"attrs\":"
                                                       "{},"
                                                       "\"type\":" F32(
                                                           "[1,4,4,4]") "}],"
                                                                        "\"out"
                                                                        "\":"
                                                                        "[" F32(
                                                                            "[1"
                                                                            ",4"
                                                                            ",4"
                                                                            ",4"
                                                                            "]") "],\"source\":[\"Conv_0\"]}],"
                                                                                 "\"inputs\":[0],\"outputs\":[[2,0]]}";

/* The text `good` with the first `from` replaced by `to`, to be freed. */
static char *replace_part(const char *from, const char *to)
{
    const char *at = strstr(good, from);
    assert_non_null(at);
    char *text = malloc(sizeof good + strlen(to));
    const size_t head = (size_t)(at - good);
    memcpy(text, good, head);
    strcpy(text + head, to);
    strcat(text, at + strlen(from));
    return text;
}

/* Check that this text is refused with a message that contains `part`. */
static void refuse(const char *from, const char *to, const char *part)
{
    struct byi_graph *graph = NULL;
    struct byoc_error err = {0};
    char *text = replace_part(from, to);
    const enum byoc_status status =
        byi_graph_read(text, strlen(text), &graph, &err);
    free(text);
    assert_null(graph);
    if (status == BYOC_OK || !strstr(err.text, part))
        fail_msg("found '%s', expected '%s' in it", err.text, part);
}

static void test_valid_region(void **state)
{
    (void)state;
    struct byi_graph *g = NULL;
    struct byoc_error err = {0};
    assert_int_equal(byi_graph_read(good, strlen(good), &g, &err), BYOC_OK);
    assert_string_equal(g->symbol, "dnnl_0");
    assert_int_equal(g->n_nodes, 3);
    assert_int_equal(g->n_consts, 1);
    const struct byi_graph_node *k = &g->nodes[2];
    assert_int_equal(k->n_steps, 2);
    assert_int_equal(k->steps[0].op->id, BYI_OP_NN_CONV2D);
    assert_int_equal(byi_attr_int(k->steps[0].attrs, "groups"), 1);
    assert_true(k->steps[1].args[0].is_step);
    assert_string_equal(k->operands[1].name, "weights");
    assert_int_equal(k->operands[1].ref.node, 1);
    assert_string_equal(k->sources[0], "Conv_0");
    byi_graph_free(&g);
    byi_graph_free(&g);
}

static void test_invalid_region(void **state)
{
    (void)state;
    refuse("byoc-graph", "byoc-graf", "format");
    refuse("\"version\":1", "\"version\":2", "version: found 2, expected 1");
    refuse("\"symbol\":", "\"color\":1,\"symbol\":", "color");
    refuse("\"op\":\"input\"", "\"op\":\"output\"", "nodes[0].op");
    refuse("\"data\":0", "\"data\":-1", "nodes[1].data");
    refuse("[1,3,8,8]", "[1,3,8,\"N\"]", "nodes[0].out[0].shape[3]");
    refuse("\"dtype\":\"float32\"", "\"dtype\":\"float31\"", "float31");
    refuse("\"weights\":[1,0]", "\"weights\":[2,0]", "operands.weights");
    refuse("\"weights\":[1,0]", "\"weights\":[1,1]", "operands.weights");
    refuse("\"weights\":[1,0]", "\"src\":[1,0]", "src");
    refuse("nn.conv2d", "nn.conv9d", "nodes[2].name");
    refuse("[\"src\",\"weights\"]", "[\"src\",\"bias\"]", "nodes[2].args[1]");
    refuse("[\"src\",\"weights\"]", "[\"src\",0]", "nodes[2].args[1]");
    refuse("[\"src\",\"weights\"]", "[\"src\"]", "nn.conv2d");
    refuse("\"strides\":[2,2]", "\"strides\":[2]", "strides");
    refuse("\"strides\":[2,2]", "\"stride\":[2,2]", "nodes[2].attrs.stride");
    refuse("\"strides\":[2,2]", "\"strides\":[1,1]", "nodes[2]");
    refuse("\"source\":[\"Conv_0\"]", "\"source\":[],\"exact\":1",
           "nodes[2].exact");
    refuse("\"args\":[0]", "\"args\":[1]", "post_ops[0].args[0]");
    refuse("\"args\":[0]", "\"args\":[[0]]", "post_ops[0].args[0]");
    refuse("\"args\":[0]", "\"args\":[[1,0]]", "post_ops[0].args[0][0]");
    refuse("\"args\":[0]", "\"args\":[[0,0]]", "is not a tuple");
    refuse("[\"src\",\"weights\"]", "[\"src\",[0,0]]", "nodes[2].args[1]");
    refuse("\"out\":[" F32("[1,4,4,4]"), "\"out\":[" F32("[1,4,4,5]"), "out");
    refuse("\"inputs\":[0]", "\"inputs\":[]", "inputs");
    refuse("\"inputs\":[0]", "\"inputs\":[0,0]", "inputs[1]");
    refuse("\"outputs\":[[2,0]]", "\"outputs\":[[3,0]]", "outputs[0]");
    refuse("\"outputs\":[[2,0]]", "\"outputs\":[2]", "outputs[0]");
}

/* clang-format off */
#define RELU "\"nn.relu\",\"args\":[0],\"attrs\":{},\"type\":" F32("[1,4,4,4]") "}],\"out\":["
#define TUPLE(args, type) "\"tuple\",\"args\":" args ",\"attrs\":{},\"type\":" type "}],\"out\":["
#define TWO F32("[1,4,4,4]") "," F32("[1,3,8,8]")
/* clang-format on */

/* A step that makes a tuple: the kernel has its fields as results. */
static void test_tuple(void **state)
{
    (void)state;
    struct byi_graph *g = NULL;
    struct byoc_error err = {0};
    char *text = replace_part(RELU F32("[1,4,4,4]"),
                              TUPLE("[0,\"src\"]", "[" TWO "]") TWO);
    if (byi_graph_read(text, strlen(text), &g, &err))
        fail_msg("%s", err.text);
    assert_int_equal(g->nodes[2].n_out, 2);
    assert_string_equal(g->nodes[2].steps[1].op->name, "tuple");
    assert_int_equal(g->nodes[2].steps[1].op->id, BYI_OP_NONE);
    byi_graph_free(&g);
    free(text);
    refuse(RELU, TUPLE("[0]", F32("[1,4,4,4]")),
           "post_ops[0].type: found float32 (1, 4, 4, 4), expected a tuple");
    refuse(RELU, TUPLE("[0]", "[" F32("[1,4,4,5]") "]"),
           "post_ops[0].type[0]: found float32 (1, 4, 4, 5), expected float32 "
           "(1, 4, 4, 4)");
    refuse(RELU, TUPLE("[0]", "[" F32("[1,4,4,4]") "," F32("[1]") "]"),
           "post_ops[0].type: found 2 fields, expected 1");
    refuse(RELU, TUPLE("[1]", "[" F32("[1,4,4,4]") "]"), "post_ops[0].args[0]");
}

/* clang-format off */
#define STEP(name, args) "{\"name\":\"" name "\",\"args\":" args ",\"attrs\":{},\"type\":" F32("[4]")
#define BRANCH(steps, result) "{\"steps\":[" steps "],\"result\":" result "}"
#define IF(then, otherwise) STEP("if", "[\"c\"]") ",\"then\":" then ",\"else\":" otherwise "}"
#define RELU_OF(arg) STEP("nn.relu", "[" arg "]") "}"
/* clang-format on */

/* A kernel of exp, followed by the steps `posts`. */
static enum byoc_status read_posts(const char *posts, struct byi_graph **g,
                                   struct byoc_error *err)
{
    char text[8192];
    snprintf(
        text, sizeof text,
        "{\"format\":\"byoc-graph\",\"version\":1,\"symbol\":\"a_0\","
        "\"nodes\":[{\"op\":\"input\",\"name\":\"c\",\"out\":[{\"dtype\":"
        "\"bool\",\"shape\":[]}]},{\"op\":\"input\",\"name\":\"x\","
        "\"out\":[" F32(
            "[4]") "]},{\"op\":\"kernel\",\"pattern\":"
                   "\"a.if\",\"operands\":{\"c\":[0,0],\"x\":[1,0]},"
                   "\"name\":\"exp\",\"args\":[\"x\"],\"attrs\":{},"
                   "\"type\":" F32("[4]") ",\"post_ops\":[%s],\"out\":[" F32(
                       "[4]") "],"
                              "\"source\":[]}],\"inputs\":[0,1],\"outputs\":[["
                              "2,0]]}",
        posts);
    return byi_graph_read(text, strlen(text), g, err);
}

static void refuse_posts(const char *posts, const char *part)
{
    struct byi_graph *g = NULL;
    struct byoc_error err = {0};
    if (read_posts(posts, &g, &err) == BYOC_OK || !strstr(err.text, part))
        fail_msg("%s: found '%s', expected '%s' in it", posts, err.text, part);
    assert_null(g);
}

/* Steps are numbered in the order in which they begin; an `if` returns the
 * results of its branches. */
static void test_if(void **state)
{
    (void)state;
    struct byi_graph *g = NULL;
    struct byoc_error err = {0};
    if (read_posts(IF(BRANCH(RELU_OF("0") "," RELU_OF("2"), "3"),
                      BRANCH(IF(BRANCH("", "\"x\""), BRANCH(RELU_OF("0"), "5")),
                             "4")) "," RELU_OF("1"),
                   &g, &err))
        fail_msg("%s", err.text);
    const struct byi_graph_node *k = &g->nodes[2];
    assert_int_equal(k->n_steps, 7);
    assert_int_equal(k->last, 6);
    assert_string_equal(k->steps[1].op->name, "if");
    assert_int_equal(k->steps[1].n_args, 3);
    assert_int_equal(k->steps[1].args[1].index, 3);
    assert_int_equal(k->steps[1].args[2].index, 4);
    assert_int_equal(k->steps[1].branch[0].first, 2);
    assert_int_equal(k->steps[1].branch[0].n, 2);
    assert_int_equal(k->steps[1].branch[1].first, 4);
    assert_int_equal(k->steps[1].branch[1].n, 2);
    assert_false(k->steps[4].args[1].is_step);
    byi_graph_free(&g);
}

static void test_invalid_if(void **state)
{
    (void)state;
    const char *branch = BRANCH("", "\"x\"");
    struct byi_text text = {0};
    refuse_posts(STEP("if", "[\"c\"]") "}", "post_ops[0].then");
    refuse_posts(STEP("nn.relu", "[0]") ",\"then\":1}", "post_ops[0].then");
    refuse_posts(STEP("if", "[]") ",\"then\":1,\"else\":1}", "condition");
    refuse_posts(STEP("if", "[\"c\",0]") ",\"then\":1,\"else\":1}",
                 "post_ops[0].args: found 2");
    refuse_posts(STEP("if", "[\"x\"]") ",\"then\":" BRANCH(
                     "", "0") ",\"else\":" BRANCH("", "0") "}",
                 "expected one bool");
    refuse_posts(IF("[]", BRANCH("", "0")), "post_ops[0].then");
    refuse_posts(IF("{\"steps\":[]}", BRANCH("", "0")),
                 "post_ops[0].then.result");
    refuse_posts(IF("{\"steps\":[],\"result\":0,\"a\":0}", BRANCH("", "0")),
                 "post_ops[0].then.a");
    refuse_posts(IF(BRANCH("", "\"c\""), BRANCH("", "0")),
                 "found branches with results bool () and float32 (4,)");
    refuse_posts(IF(BRANCH("", "1"), BRANCH("", "0")), "then.result");
    refuse_posts(IF(BRANCH("", "7"), BRANCH("", "0")), "then.result");
    refuse_posts(IF(BRANCH(RELU_OF("0"), "2"), BRANCH("", "2")),
                 "else.result: step 2 cannot be read here");
    refuse_posts(IF(BRANCH(RELU_OF("1"), "2"), BRANCH("", "0")),
                 "then.steps[0].args[0]: step 1 cannot be read here");
    refuse_posts(IF(BRANCH(RELU_OF("[1,0]"), "2"), BRANCH("", "0")),
                 "step 1 cannot be read here");
    refuse_posts(
        IF(BRANCH(RELU_OF("0"), "2"), BRANCH("", "0")) "," RELU_OF("2"),
        "post_ops[1].args[0]: step 2");
    /* eight nested ones are accepted, nine are refused */
    for (uint32_t i = 0; i < 9; i++) {
        struct byi_text next = {0};
        byi_text_addf(&next,
                      STEP("if", "[\"c\"]") ",\"then\":%s,\"else\":"
                                            "{\"steps\":[%s],\"result\":%s}}",
                      branch, text.n ? text.at : "", i ? "\"x\"" : "0");
        byi_text_free(&text);
        text = next;
        struct byi_graph *g = NULL;
        struct byoc_error err = {0};
        if (i < 8 && read_posts(text.at, &g, &err) != BYOC_OK)
            fail_msg("%s", err.text);
        byi_graph_free(&g);
    }
    refuse_posts(text.at, "expected at most");
    byi_text_free(&text);
}

/* Every prefix of a valid text is refused. */
static void test_prefixes(void **state)
{
    (void)state;
    for (size_t n = 0; n + 1 < sizeof good; n++) {
        struct byi_graph *g = NULL;
        struct byoc_error err = {0};
        assert_int_not_equal(byi_graph_read(good, n, &g, &err), BYOC_OK);
        assert_true(err.text[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid_region),
        cmocka_unit_test(test_invalid_region),
        cmocka_unit_test(test_tuple),
        cmocka_unit_test(test_if),
        cmocka_unit_test(test_invalid_if),
        cmocka_unit_test(test_prefixes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
