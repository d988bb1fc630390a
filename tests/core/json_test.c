/* SPDX-License-Identifier: Apache-2.0 */
/* json_test.c: tests reading JSON with bounds and paths, and printing it.
 * Errors are compared by their whole message. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "core/base/json_write.h"
#include "core/ops/ops.h"

#include <cmocka.h>

static struct byoc_error err;

static enum byoc_status parse(const char *text, struct cJSON **root)
{
    err = (struct byoc_error){0};
    return byi_json_parse(text, strlen(text), 1 << 20, root, &err);
}

static void check_refused(const char *text, enum byoc_status status,
                          const char *expected)
{
    struct cJSON *root = NULL;

    assert_int_equal(parse(text, &root), status);
    assert_null(root);
    assert_string_equal(err.text, expected);
}

static void test_parse_refuses(void **state)
{
    struct cJSON *root = NULL;
    char deep[300] = {0};

    (void)state;
    check_refused(
        "", BYOC_EPARSE,
        "malformed JSON at byte 0 of 0, expected one complete JSON value");
    check_refused(
        "{\"a\": 1} x", BYOC_EPARSE,
        "malformed JSON at byte 8 of 10, expected one complete JSON value");
    check_refused(
        "[1, 2", BYOC_EPARSE,
        "malformed JSON at byte 5 of 5, expected one complete JSON value");
    check_refused("\"a\\u0000b\"", BYOC_EPARSE,
                  "malformed JSON: found a NUL in the string at byte 0, "
                  "expected text");
    check_refused("[\"\\\\\\u0000\"]", BYOC_EPARSE,
                  "malformed JSON: found a NUL in the string at byte 1, "
                  "expected text");
    check_refused(
        "\"abc", BYOC_EPARSE,
        "malformed JSON at byte 1 of 4, expected one complete JSON value");
    check_refused(
        "\"abc\\", BYOC_EPARSE,
        "malformed JSON at byte 1 of 5, expected one complete JSON value");
    memset(deep, '[', 65);
    check_refused(
        deep, BYOC_ELIMIT,
        "found too deeply nested JSON at byte 64, expected at most 64 levels");
    assert_int_equal(byi_json_parse("[1\0]", 4, 9, &root, &err), BYOC_EPARSE);
    assert_int_equal(byi_json_parse("[1]", 3, 2, &root, &err), BYOC_ELIMIT);
    assert_string_equal(err.text, "found 3 bytes of JSON, expected at most 2");
}

static void test_parse_accepts(void **state)
{
    struct cJSON *root = NULL;
    char deep[129];

    (void)state;
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    deep[128] = '\0';
    assert_int_equal(parse(deep, &root), BYOC_OK);
    byi_json_free(&root);
    assert_null(root);
    byi_json_free(&root);
    assert_int_equal(parse(" {\"a\": \"[[\\\"{\"} \n", &root), BYOC_OK);
    byi_json_free(&root);
    assert_int_equal(parse("[\"\\\\\", \"\\\\\\\"\", [\"\"]]", &root), BYOC_OK);
    byi_json_free(&root);
    /* an escaped backslash, and not an escaped NUL */
    assert_int_equal(parse("[\"\\\\u0000\"]", &root), BYOC_OK);
    byi_json_free(&root);
    /* no NUL after the text: the sanitizer detects reads */
    for (size_t n = 0; n < 18; n++) {
        char *text = malloc(n ? n : 1);
        memcpy(text, "{\"a\": [1, -2e3, 4]}", n);
        assert_int_equal(byi_json_parse(text, n, 99, &root, NULL), BYOC_EPARSE);
        free(text);
    }
}

/* A string of nothing but escaped quotes, or of backslashes without an end: its
 * time is linear. */
static void test_parse_escapes(void **state)
{
    enum { PAIRS = 400000 };
    struct cJSON *root = NULL;
    char *text = malloc(2 * PAIRS + 3);

    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i <= 2 * PAIRS; i++)
        text[i] = i % 2 ? '\\' : '"';
    memcpy(text + 2 * PAIRS + 1, "\"", 2);
    assert_int_equal(parse(text, &root), BYOC_OK);
    assert_int_equal(strlen(root->valuestring), PAIRS);
    byi_json_free(&root);
    memset(text + 1, '\\', 2 * PAIRS);
    text[2 * PAIRS + 1] = '\0';
    assert_int_equal(parse(text, &root), BYOC_EPARSE);
    free(text);
}

static const char *const document =
    "{\"name\": \"x\", \"flag\": true, \"none\": null, \"half\": 0.5,"
    " \"big\": 9007199254740994, \"nodes\": [{\"index\": 7}, 3, \"s\"]}";

static enum byoc_status print_element(void *out, uint32_t index,
                                      const struct byi_json *item,
                                      const struct byi_json_items inner[2])
{
    char path[32];
    snprintf(path, sizeof path, "items[%u]", index);
    assert_string_equal(item->path, path);
    assert_true(inner[0].n == 0);
    byi_json_print_item(item->at, 1, out);
    return BYOC_OK;
}

/* Print the first member "items" of a document, parsed at once or element by
 * element. Returns false if the document is refused. */
static bool print_items(const char *text, bool at_once, struct byi_text *out)
{
    static const char *const keys[2] = {"items"};
    struct byi_json_items items[2];
    struct cJSON *tree = NULL;
    const size_t n = strlen(text);
    out->n = 0;
    if (byi_json_parse_around(text, n, 999, at_once ? NULL : keys, items, &tree,
                              &err) != BYOC_OK)
        return false;
    const struct byi_json root = byi_json_root(tree);
    struct byi_json list, item = {0};
    uint32_t count;
    enum byoc_status status = BYOC_OK;
    if (byi_json_array(&root, "items", 9, &list, &count, NULL) == BYOC_OK)
        for (uint32_t i = 0; byi_json_next(&list, &item, i); i++)
            byi_json_print_item(item.at, 1, out);
    if (items[0].n && status == BYOC_OK)
        status =
            byi_json_each(&root, &items[0], NULL, print_element, out, &err);
    byi_json_free(&tree);
    return status == BYOC_OK;
}

/* Parsing around an array succeeds for the same texts as a full parse, and
 * gives the same: for a document, and for each with one byte changed or cut at
 * one byte. */
static void test_elements_one_by_one(void **state)
{
    static const char original[] =
        "{\"x\":[0],\"items\": [1, {\"items\":[2,\"a,]\\\"\"]} ,[3,[]],\"\" ] "
        ",\"y\":{\"items\":[4]}}";
    static const char bytes[] = "[]{},:\"\\ 1";
    char text[sizeof original];
    struct byi_text printed = {0}, by_element = {0};
    uint32_t accepted = 0, refused = 0;
    (void)state;
    for (size_t at = 0; at < sizeof original; at++)
        for (size_t b = 0; b < sizeof bytes; b++) { /* the last one cuts */
            memcpy(text, original, sizeof text);
            text[at] = at + 1 < sizeof original ? bytes[b] : '\0';
            const bool good = print_items(text, true, &printed);
            if (print_items(text, false, &by_element) != good)
                fail_msg("%s: found %s, expected %s", text,
                         good ? "an error" : "no error", good ? "none" : "one");
            if (good && (printed.n != by_element.n ||
                         memcmp(printed.at, by_element.at, printed.n)))
                fail_msg("%s: %s, expected %s", text, by_element.at,
                         printed.at);
            *(good ? &accepted : &refused) += 1;
        }
    assert_true(accepted > 100 && refused > 300);
    byi_text_free(&printed);
    byi_text_free(&by_element);
}

/* Malformed elements, and too many of them, are refused. */
static void test_malformed_elements(void **state)
{
    static const char *const keys[2] = {"items", "more"};
    static const char text[] = "{\"more\": [], \"items\": [1, 2 3]}";
    struct byi_json_items items[2];
    struct cJSON *tree = NULL;
    struct byi_text out = {0};
    uint32_t n = 7;
    (void)state;
    assert_int_equal(byi_json_parse_around(text, sizeof text - 1, 99, keys,
                                           items, &tree, &err),
                     BYOC_OK);
    const struct byi_json root = byi_json_root(tree);
    assert_int_equal(byi_json_count(&root, &items[1], "more", 0, &n, &err),
                     BYOC_OK);
    assert_int_equal(n, 0);
    assert_int_equal(byi_json_count(&root, &items[0], "items", 1, &n, &err),
                     BYOC_ELIMIT);
    assert_string_equal(err.text, "items: found 2 items, expected at most 1");
    assert_int_equal(
        byi_json_each(&root, &items[0], NULL, print_element, &out, &err),
        BYOC_EPARSE);
    assert_string_equal(err.text,
                        "items[1]: malformed JSON at byte 2 of 4, expected "
                        "one complete JSON value");
    byi_json_free(&tree);
    byi_text_free(&out);
}

/* Messages give places in the whole text, as if it were parsed at once. */
static void test_places_in_messages(void **state)
{
    static const char *const keys[2] = {"items", "more"};
    static const char *const texts[] = {
        "{x, \"items\": [1, 2], \"more\": [3]}",
        "{\"items\": [1, 2], x, \"more\": [3]}",
        "{\"more\": [3], \"items\": [1, 2], x}",
        "{\"items\": [1, 2], \"x\": \"\\u0000\"}",
    };
    struct byi_json_items items[2];
    struct byoc_error parse_err;
    struct cJSON *tree = NULL;
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(texts); i++) {
        const size_t n = strlen(texts[i]);
        assert_int_equal(byi_json_parse(texts[i], n, 99, &tree, &parse_err),
                         BYOC_EPARSE);
        assert_int_equal(
            byi_json_parse_around(texts[i], n, 99, keys, items, &tree, &err),
            BYOC_EPARSE);
        assert_string_equal(err.text, parse_err.text);
        assert_null(tree);
    }
}

static void test_members(void **state)
{
    struct cJSON *tree = NULL;
    struct byi_json root, item;
    const char *text = NULL;
    int64_t i = 0;

    (void)state;
    assert_int_equal(parse(document, &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_string(&root, "name", &text, &err), BYOC_OK);
    assert_string_equal(text, "x");
    assert_int_equal(byi_json_opt(&root, "absent", &item, &err), BYOC_OK);
    assert_null(item.at);
    assert_int_equal(byi_json_opt(&root, "none", &item, &err), BYOC_OK);
    assert_non_null(item.at);
    assert_int_equal(byi_json_get(&root, "absent", &item, &err), BYOC_EPARSE);
    assert_string_equal(err.text, "absent: found nothing, expected a value");
    assert_int_equal(byi_json_get(&root, "Name", &item, &err), BYOC_EPARSE);
    assert_int_equal(byi_json_int(&root, "name", 0, 9, &i, &err), BYOC_EPARSE);
    assert_string_equal(err.text, "name: found a string, expected an integer");
    assert_int_equal(byi_json_int(&root, "half", 0, 9, &i, &err), BYOC_EPARSE);
    assert_string_equal(err.text,
                        "half: found 0.5, expected an integer from 0 to 9");
    assert_int_equal(byi_json_int(&root, "big", 0, INT64_MAX, &i, &err),
                     BYOC_EPARSE);
    byi_json_free(&tree);
}

static void test_arrays(void **state)
{
    struct cJSON *tree = NULL;
    struct byi_json root, nodes, item = {0}, deeper;
    const char *text = NULL;
    uint32_t n = 0, i = 0;
    int64_t index = 0;

    (void)state;
    assert_int_equal(parse(document, &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_array(&root, "nodes", 2, &nodes, &n, &err),
                     BYOC_ELIMIT);
    assert_string_equal(err.text,
                        "nodes: found too many items, expected at most 2");
    assert_int_equal(byi_json_array(&root, "name", 2, &nodes, &n, &err),
                     BYOC_EPARSE);
    assert_int_equal(byi_json_array(&root, "nodes", 3, &nodes, &n, &err),
                     BYOC_OK);
    assert_int_equal(n, 3);
    assert_true(byi_json_next(&nodes, &item, i++));
    assert_string_equal(item.path, "nodes[0]");
    assert_int_equal(byi_json_int(&item, "index", 0, 5, &index, &err),
                     BYOC_EPARSE);
    assert_string_equal(
        err.text, "nodes[0].index: found 7, expected an integer from 0 to 5");
    assert_true(byi_json_next(&nodes, &item, i++));
    assert_int_equal(byi_json_as_int(&item, 3, 3, &index, &err), BYOC_OK);
    assert_int_equal(index, 3);
    assert_int_equal(byi_json_get(&item, "x", &deeper, &err), BYOC_EPARSE);
    assert_string_equal(err.text,
                        "nodes[1]: found a number, expected an object");
    assert_true(byi_json_next(&nodes, &item, i++));
    assert_int_equal(byi_json_as_string(&item, &text, &err), BYOC_OK);
    assert_false(byi_json_next(&nodes, &item, i++));
    byi_json_free(&tree);
}

static void test_unknown_and_repeated_members(void **state)
{
    static const char *const keys[] = {"a", "b"};
    struct cJSON *tree = NULL;
    struct byi_json root;

    (void)state;
    assert_int_equal(parse("{\"b\": 1}", &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_only(&root, keys, 2, &err), BYOC_OK);
    byi_json_free(&tree);
    assert_int_equal(parse("{\"b\": 1, \"c\\n\": 2}", &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_only(&root, keys, 2, &err), BYOC_EPARSE);
    assert_string_equal(err.text,
                        "c?: found an unknown member, expected one of a, b");
    byi_json_free(&tree);
    assert_int_equal(parse("{\"b\": 1, \"b\": 2}", &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_only(&root, keys, 2, &err), BYOC_EPARSE);
    assert_string_equal(err.text, "b: found twice, expected once");
    byi_json_free(&tree);
    assert_int_equal(parse("[]", &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_equal(byi_json_only(&root, keys, 2, &err), BYOC_EPARSE);
    assert_string_equal(err.text,
                        "the document: found an array, expected an object");
    byi_json_free(&tree);
}

/* Paths are cut, never overrun. */
static void test_long_paths(void **state)
{
    struct cJSON *tree = NULL;
    struct byi_json at;
    char key[400];

    (void)state;
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    assert_int_equal(parse("{\"a\": 1}", &tree), BYOC_OK);
    at = byi_json_root(tree);
    for (int i = 0; i < 4; i++) {
        at.at = tree;
        assert_int_equal(byi_json_opt(&at, key, &at, &err), BYOC_OK);
        assert_true(strlen(at.path) < sizeof at.path);
    }
    assert_string_equal(at.path + 156, "...");
    byi_json_free(&tree);
    assert_int_equal(parse("[1]", &tree), BYOC_OK);
    const struct byi_json list = byi_json_root(tree);
    at.at = NULL;
    assert_true(byi_json_next(&list, &at, UINT32_MAX));
    assert_string_equal(at.path, "[4294967295]");
    byi_json_free(&tree);
}

static void test_attrs_both_ways(void **state)
{
    const int64_t values[] = {INT64_MAX, -5};
    const struct byi_attr attrs_list[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT, .f = 0.1},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT, .f = NAN}};
    const struct byi_attr sizes[] = {
        {.name = "sizes", .kind = BYI_ATTR_INTS, .n = 2, .ints = values}};
    const struct {
        enum byi_op_id op;
        const struct byi_attr *attrs_list;
        uint32_t n;
    } cases[] = {{BYI_OP_CLIP, attrs_list, 2},
                 {BYI_OP_SPLIT, sizes, 1},
                 {BYI_OP_RESIZE, NULL, 0},
                 {BYI_OP_FULL, NULL, 0},
                 {BYI_OP_ADD, NULL, 0}};
    struct byi_arena *arena = byi_arena_new();

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++) {
        const struct byi_attrs *attrs = NULL, *back = NULL;
        struct cJSON *tree = NULL, *again = NULL;
        struct byi_text text = {0};
        struct byi_json root;
        assert_int_equal(byi_attrs_make(arena, byi_op(cases[i].op),
                                        cases[i].attrs_list, cases[i].n, &attrs,
                                        &err),
                         BYOC_OK);
        tree = byi_attrs_to_json(arena, attrs);
        byi_json_print(tree, &text);
        assert_int_equal(parse(text.at, &again), BYOC_OK);
        root = byi_json_root(again);
        assert_int_equal(
            byi_attrs_from_json(&root, arena, byi_op(cases[i].op), &back, &err),
            BYOC_OK);
        assert_true(byi_attrs_equal(attrs, back));
        byi_json_free(&again);
        byi_text_free(&text);
    }
    byi_arena_free(&arena);
}

static void check_attrs_refused(enum byi_op_id op, const char *text,
                                const char *expected)
{
    struct byi_arena *arena = byi_arena_new();
    const struct byi_attrs *attrs = NULL;
    struct cJSON *tree = NULL;
    struct byi_json root;

    assert_int_equal(parse(text, &tree), BYOC_OK);
    root = byi_json_root(tree);
    assert_int_not_equal(
        byi_attrs_from_json(&root, arena, byi_op(op), &attrs, &err), BYOC_OK);
    assert_string_equal(err.text, expected);
    byi_json_free(&tree);
    byi_arena_free(&arena);
}

static void test_attrs_refused(void **state)
{
    (void)state;
    check_attrs_refused(
        BYI_OP_NN_CONV2D, "{\"stride\": [1, 1]}",
        "stride: found an attribute that nn.conv2d does not have, "
        "expected strides, padding, dilation, groups, data_layout, "
        "kernel_layout");
    check_attrs_refused(BYI_OP_NN_CONV2D, "{\"strides\": [1, 1.5]}",
                        "strides[1]: found 1.5, expected an integer from "
                        "-9223372036854775808 to 9223372036854775807");
    check_attrs_refused(BYI_OP_NN_CONV2D, "{\"strides\": 1}",
                        "strides: found a number, expected an array");
    check_attrs_refused(
        BYI_OP_NN_CONV2D, "{\"groups\": \"1x\"}",
        "groups: found a string, expected an integer or a string of its "
        "decimal digits");
    check_attrs_refused(
        BYI_OP_CAST, "{\"dtype\": \"float\"}",
        "dtype: found a string, expected the name of a dtype, such as "
        "\"float32\"");
    check_attrs_refused(
        BYI_OP_CLIP, "{\"a_min\": \"infinity\"}",
        "a_min: found a string, expected a number, \"inf\", \"-inf\" "
        "or \"nan\"");
    check_attrs_refused(
        BYI_OP_CLIP, "{\"a_min\": 1, \"a_min\": 2}",
        "the document: clip: attribute a_min is given twice, expected it once");
    check_attrs_refused(
        BYI_OP_CAST, "{}",
        "the document: cast: attribute dtype is missing, expected a "
        "dtype");
    check_attrs_refused(BYI_OP_ADD, "3",
                        "the document: found a number, expected an object");
    check_attrs_refused(BYI_OP_NN_RNN, "{\"activations\": [1]}",
                        "activations[0]: found a number, expected a string");
    struct byi_text attributes = {0};
    for (int i = 0; i < 65; i++)
        byi_text_addf(&attributes, "%s\"a_min\": 1", i ? ", " : "{");
    byi_text_addf(&attributes, "}");
    check_attrs_refused(
        BYI_OP_CLIP, attributes.at,
        "the document: found more than 64 attributes, expected each "
        "attribute of clip at most once");
    byi_text_free(&attributes);
}

static const char *symbol_name(void *ctx, int64_t dim)
{
    assert_int_equal(dim, -1);
    return ctx;
}

static void test_json_of_type(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    const int64_t dims[] = {-1, 3};
    char name[] = "N";
    struct cJSON *tree = byi_json_of_type(
        arena, byi_type_tensor(arena, BYOC_U8, 2, dims), symbol_name, name);
    struct byi_text text = {0};

    (void)state;
    byi_json_print(tree, &text);
    assert_string_equal(text.at, "{\n  \"dtype\": \"uint8\",\n"
                                 "  \"shape\": [\"N\", 3]\n}\n");
    byi_text_free(&text);
    byi_arena_free(&arena);
}

static void check_print(const char *text, const char *expected)
{
    struct cJSON *tree = NULL;
    struct byi_text out = {0};

    assert_int_equal(parse(text, &tree), BYOC_OK);
    byi_json_print(tree, &out);
    assert_string_equal(out.at, expected);
    byi_text_free(&out);
    byi_json_free(&tree);
}

static void test_print(void **state)
{
    (void)state;
    check_print("[ ]", "[]\n");
    check_print("{}", "{}\n");
    check_print("[1,2.50, -0.0, 1e3, 1e300, 123456789012]",
                "[1, 2.5, -0, 1000, 1e+300, 123456789012]\n");
    check_print("[\"a\\\"\\\\\\n\\u0001\xc3\xa9\", true, false, null]",
                "[\"a\\\"\\\\\\n\\u0001\xc3\xa9\", true, false, null]\n");
    check_print("{\"a\": [[], [1]], \"b\": {\"c\": {}}}",
                "{\n  \"a\": [\n    [],\n    [1]\n  ],\n"
                "  \"b\": {\n    \"c\": {}\n  }\n}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_refuses),
        cmocka_unit_test(test_parse_accepts),
        cmocka_unit_test(test_parse_escapes),
        cmocka_unit_test(test_elements_one_by_one),
        cmocka_unit_test(test_malformed_elements),
        cmocka_unit_test(test_places_in_messages),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_unknown_and_repeated_members),
        cmocka_unit_test(test_long_paths),
        cmocka_unit_test(test_attrs_both_ways),
        cmocka_unit_test(test_attrs_refused),
        cmocka_unit_test(test_json_of_type),
        cmocka_unit_test(test_print),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
