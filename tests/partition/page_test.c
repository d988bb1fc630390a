/* SPDX-License-Identifier: Apache-2.0 */
/* page_test.c: tests a ledger as a page and as a graph for Graphviz: both
 * contain each node once, and names are escaped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cjson/cJSON.h>

#include "report/page.h"

static void add_node(struct byi_text *out, const char *name, const char *rest)
{
    byi_text_addf(out, "{\"name\": ");
    byi_json_quote(out, name);
    byi_text_addf(out, ", %s, \"flops\": 1, \"tried\": []}", rest);
}

/* Write a ledger of model `a` with three nodes, called `a`, `b` and "". */
static void ledger_of(struct byi_text *out, const char *a, const char *b)
{
    byi_text_addf(out, "{\"format\": \"byoc-ledger\", \"version\": 4, "
                       "\"model\": ");
    byi_json_quote(out, a);
    byi_text_addf(
        out, ", \"threads\": 2, \"cpu\": \"x\", \"backends\": ["
             "{\"name\": \"dnnl\", \"version\": \"1\", \"nodes\": 2, "
             "\"flops\": 2, \"regions\": 1}, "
             "{\"name\": \"native\", \"version\": \"1\", \"nodes\": 1, "
             "\"flops\": 1, \"regions\": 0}], "
             "\"summary\": {\"nodes\": 3, \"offloaded\": 2, \"native\": 1, "
             "\"folded\": 0, \"removed\": 0, \"regions\": 1, \"flops\": 3, "
             "\"flops_offloaded\": 2}, \"gates\": [], \"regions\": ["
             "{\"name\": \"dnnl_0\", \"backend\": \"dnnl\", \"outcome\": "
             "\"kept\", \"nodes\": [0, 2], \"flops\": 2, \"inputs\": 1, "
             "\"outputs\": 1}, "
             "{\"name\": \"dnnl_1\", \"backend\": \"dnnl\", \"outcome\": "
             "\"reverted\", \"reason\": \"region-too-small\", \"nodes\": "
             "[1], \"flops\": 1, \"inputs\": 1, \"outputs\": 1}], "
             "\"nodes\": [");
    add_node(out, a,
             "\"op\": \"Conv\", \"where\": \"dnnl\", \"reason\": "
             "\"offloaded\", \"region\": \"dnnl_0\", \"inputs\": []");
    byi_text_addf(out, ", ");
    add_node(out, b,
             "\"op\": \"Add\", \"where\": \"native\", \"reason\": "
             "\"predicate\", \"inputs\": [0]");
    byi_text_addf(out, ", ");
    add_node(out, "",
             "\"op\": \"Relu\", \"where\": \"dnnl\", \"reason\": "
             "\"offloaded\", \"region\": \"dnnl_0\", \"inputs\": [0, 1]");
    byi_text_addf(out, "]}");
}

static bool is_utf8(const char *text, size_t n)
{
    struct byi_text same = {0};
    byi_utf8_add(&same, text, n);
    const bool ok = same.n == n && memcmp(same.at, text, n) == 0;
    byi_text_free(&same);
    return ok;
}

static uint32_t count(const char *text, const char *what)
{
    uint32_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The JSON between the page's head and tail. */
static cJSON *json_of(const struct byi_text *page)
{
    const size_t head = strlen(byi_page_head), tail = strlen(byi_page_tail);
    assert_true(page->n > head + tail);
    assert_memory_equal(page->at, byi_page_head, head);
    assert_string_equal(page->at + page->n - tail, byi_page_tail);
    const char *json = page->at + head;
    const size_t n = page->n - head - tail;
    assert_null(memchr(json, '<', n));
    assert_true(is_utf8(json, n));
    cJSON *root = cJSON_ParseWithLength(json, n);
    assert_non_null(root);
    return root;
}

static const cJSON *node_of(const cJSON *page, int i)
{
    const cJSON *ledger = cJSON_GetObjectItem(page, "ledger");
    return cJSON_GetArrayItem(cJSON_GetObjectItem(ledger, "nodes"), i);
}

/* The page contains a name as `expected`. */
static void check_name(const char *name, const char *expected)
{
    struct byi_text ledger = {0}, page = {0};
    struct byoc_error err;
    ledger_of(&ledger, name, name);
    if (byi_ledger_write_page(ledger.at, ledger.n, NULL, &page, &err) !=
        BYOC_OK)
        fail_msg("%s", err.text);
    cJSON *json = json_of(&page);
    assert_string_equal(
        cJSON_GetObjectItem(node_of(json, 0), "name")->valuestring, expected);
    assert_non_null(
        cJSON_GetObjectItem(cJSON_GetObjectItem(json, "reasons"), "offloaded"));
    cJSON_Delete(json);
    byi_text_free(&page);
    byi_text_free(&ledger);
}

static void names_in_the_page(void **state)
{
    (void)state;
    check_name("conv1", "conv1");
    check_name("</script><script>alert(1)</script>",
               "</script><script>alert(1)</script>");
    check_name("<!--", "<!--");
    check_name("a\"b\\c\n\t\x01", "a\"b\\c\n\t\x01");
    check_name("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
               "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80");
    /* invalid UTF-8: a continuation byte alone, an overlong form, a surrogate,
     * a number beyond the last character, a truncated character */
    check_name("a\x80z", "a\xef\xbf\xbdz");
    check_name("\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd");
    check_name("\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_name("\xf4\x90\x80\x80",
               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_name("\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd");
    check_name("\xe2\x82<", "\xef\xbf\xbd\xef\xbf\xbd<");
}

/* The page fetches nothing, and no text ends its script early. */
static void page_fetches_nothing(void **state)
{
    (void)state;
    assert_int_equal(count(byi_page_head, "<script"), 1);
    assert_int_equal(count(byi_page_tail, "<script"), 1);
    assert_int_equal(count(byi_page_tail, "</script"), 2);
    assert_int_equal(count(byi_page_head, "default-src 'none'"), 1);
    for (int i = 0; i < 2; i++) {
        const char *part = i ? byi_page_tail : byi_page_head;
        static const char *const fetches[] = {"http:", "https:", "@import",
                                              "src=",  "url(",   "fetch(",
                                              "<link", "import "};
        for (size_t k = 0; k < BYI_COUNT(fetches); k++)
            if (strstr(part, fetches[k]))
                fail_msg(
                    "found '%s' in the page, expected nothing that is fetched",
                    fetches[k]);
        assert_null(strchr(part, '@') ? strstr(part, "@LEDGER@") : NULL);
        assert_null(strstr(part, "@SCRIPT@"));
        assert_null(strstr(part, "@STYLE@"));
    }
}

/* --- Graphviz ------------------------------------------------------------- */

/* Quotes are balanced on each line, and escapes are whole. */
static void check_quotes(const char *text)
{
    bool inside = false;
    for (const char *c = text; *c; c++) {
        if (inside && *c == '\\') {
            assert_true(c[1] == '"' || c[1] == '\\' || c[1] == 'n');
            c++;
        } else if (*c == '"') {
            inside = !inside;
        } else if (*c == '\n') {
            assert_false(inside);
        } else {
            assert_true((unsigned char)*c >= ' ');
        }
    }
    assert_false(inside);
}

static void dot_of(struct byi_text *out, const char *a, const char *b)
{
    struct byi_text ledger = {0};
    struct byoc_error err;
    ledger_of(&ledger, a, b);
    if (byi_ledger_write_dot(ledger.at, ledger.n, out, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_text_free(&ledger);
    check_quotes(out->at);
    assert_true(is_utf8(out->at, out->n));
}

static void dot_has_every_node_and_edge(void **state)
{
    struct byi_text dot = {0};
    (void)state;
    dot_of(&dot, "first", "second");
    assert_int_equal(count(dot.at, " n0 [label=\"Conv\\nfirst\""), 1);
    assert_int_equal(count(dot.at, " n1 [label=\"Add\\nsecond\""), 1);
    assert_int_equal(count(dot.at, " n2 [label=\"Relu\\n\""), 1);
    assert_int_equal(count(dot.at, " [label="), 3);
    assert_int_equal(count(dot.at, " -> "), 3);
    assert_int_equal(count(dot.at, "n0 -> n1;"), 1);
    assert_int_equal(count(dot.at, "n0 -> n2;"), 1);
    assert_int_equal(count(dot.at, "n1 -> n2;"), 1);
    /* one region was kept, and the native node is outside */
    assert_int_equal(count(dot.at, "subgraph cluster_"), 1);
    const char *end = strstr(dot.at, "  }\n");
    assert_non_null(end);
    assert_true(strstr(dot.at, " n0 [") < end);
    assert_true(strstr(dot.at, " n2 [") < end);
    assert_true(strstr(dot.at, " n1 [") > end);
    byi_text_free(&dot);
}

static void names_in_dot(void **state)
{
    struct byi_text dot = {0};
    char name[400];
    (void)state;
    dot_of(&dot, "a\"b\\N\n\x80", "</script>");
    assert_int_equal(count(dot.at, "Conv\\na\\\"b\\\\N \xef\xbf\xbd\""), 1);
    byi_text_free(&dot);
    /* a long name is cut at the first byte of a character */
    for (size_t i = 0; i + 3 < sizeof name; i += 3)
        memcpy(name + i, "\xe2\x82\xac", 4);
    dot_of(&dot, name, "tail");
    assert_int_equal(count(dot.at, "Conv\\n...\xe2\x82\xac"), 1);
    assert_null(strstr(dot.at, "\xef\xbf\xbd"));
    byi_text_free(&dot);
}

/* --- texts that are not ledgers ------------------------------------------- */

static void other_texts_are_refused(void **state)
{
    static const struct {
        const char *json, *words;
        enum byoc_status status;
    } rows[] = {
        {"", "malformed", BYOC_EPARSE},
        {"{\"format\": \"byoc-ledger\"", "malformed", BYOC_EPARSE},
        {"[]", "not a ledger", BYOC_EPARSE},
        {"{\"format\": \"byoc-plan\", \"version\": 2}", "not a ledger",
         BYOC_EPARSE},
        {"{\"format\": \"byoc-ledger\"}", "version: found nothing",
         BYOC_EPARSE},
        {"{\"format\": \"byoc-ledger\", \"version\": 1}",
         "version 1, expected 4", BYOC_EINCOMPATIBLE},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        for (int writer = 0; writer < 3; writer++) {
            struct byi_text out = {0}, good = {0};
            struct byoc_error err;
            const char *json = rows[i].json;
            const struct byi_page more = {.against = json};
            ledger_of(&good, "a", "b");
            assert_int_equal(
                writer == 0 ? byi_ledger_write_page(json, strlen(json), NULL,
                                                    &out, &err)
                : writer == 1
                    ? byi_ledger_write_dot(json, strlen(json), &out, &err)
                    : byi_ledger_write_page(good.at, good.n, &more, &out, &err),
                rows[i].status);
            byi_text_free(&good);
            if (!strstr(err.text, rows[i].words))
                fail_msg("found '%s', expected '%s'", err.text, rows[i].words);
            assert_int_equal(out.n, 0);
            byi_text_free(&out);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_in_the_page),
        cmocka_unit_test(page_fetches_nothing),
        cmocka_unit_test(dot_has_every_node_and_edge),
        cmocka_unit_test(names_in_dot),
        cmocka_unit_test(other_texts_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
