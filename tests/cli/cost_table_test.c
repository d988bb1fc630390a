/* SPDX-License-Identifier: Apache-2.0 */
/* cost_table_test.c: tests the file of measured times: times are kept, merged
 * and bounded, and a malformed file is ignored.
 */
#include "tuner/cost_table.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const char path[] = BUILD_DIR "/cost_table_test/folder/costs.json";

/* The i-th of some valid keys, in a static buffer. */
static const char *key(uint32_t i)
{
    static char text[65];
    snprintf(text, sizeof text, "%064x", i);
    return text;
}

/* Open the table, and expect this note; NULL: none. */
static void open_table(struct byi_cost_table *t, const char *note)
{
    struct byi_text notes = {0};
    *t = (struct byi_cost_table){0};
    byi_cost_table_open(t, path, &notes);
    if (!note)
        assert_null(notes.at);
    else if (!notes.at || !strstr(notes.at, note) || !strstr(notes.at, path))
        fail_msg("found the note \"%s\", expected \"%s\"",
                 notes.at ? notes.at : "", note);
    byi_text_free(&notes);
}

static void save(struct byi_cost_table *t)
{
    struct byoc_error err;
    if (byi_cost_table_save(t, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    byi_cost_table_close(t);
}

static void saved_times_are_read_back(void **state)
{
    (void)state;
    struct byi_cost_table t;
    double us;
    unlink(path);
    open_table(&t, NULL);
    assert_false(byi_cost_get(&t, key(1), &us));
    byi_cost_put(&t, key(1), 12.3456, "native: \"quoted\"\n");
    byi_cost_put(&t, key(2), (double)INFINITY, "cannot run");
    byi_cost_put(&t, key(1), 1.23456789, "measured again");
    save(&t);
    open_table(&t, NULL);
    assert_true(byi_cost_get(&t, key(1), &us));
    assert_float_equal(us, 1.235, 1e-12);
    assert_true(byi_cost_get(&t, key(2), &us));
    assert_true(isinf(us));
    assert_int_equal(t.list.n, 2);
    byi_cost_table_close(&t);
}

static void entries_of_a_concurrent_writer_are_kept(void **state)
{
    (void)state;
    struct byi_cost_table a, b;
    double us;
    unlink(path);
    open_table(&a, NULL);
    open_table(&b, NULL);
    byi_cost_put(&a, key(1), 1, "a");
    byi_cost_put(&b, key(2), 2, "b");
    save(&a);
    save(&b);
    open_table(&a, NULL);
    assert_true(byi_cost_get(&a, key(1), &us) && us == 1);
    assert_true(byi_cost_get(&a, key(2), &us) && us == 2);
    byi_cost_table_close(&a);
}

static void oldest_entries_are_dropped(void **state)
{
    (void)state;
    enum { MAX_ENTRIES = 50000, N = MAX_ENTRIES + 10 };
    struct byi_cost_table t;
    double us;
    unlink(path);
    open_table(&t, NULL);
    for (uint32_t i = 0; i < N; i++)
        byi_cost_put(&t, key(i), i, "");
    save(&t);
    open_table(&t, NULL);
    assert_int_equal(t.list.n, MAX_ENTRIES);
    assert_false(byi_cost_get(&t, key(9), &us));
    assert_true(byi_cost_get(&t, key(10), &us) && us == 10);
    assert_true(byi_cost_get(&t, key(N - 1), &us) && us == N - 1);
    byi_cost_table_close(&t);
}

static void a_damaged_file_is_ignored_and_replaced(void **state)
{
    (void)state;
#define HEAD "{\"format\": \"byoc-costs\", \"version\": 1, \"costs\": ["
#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    static const struct {
        const char *text, *note;
    } files[] = {
        {"", "is not used"},
        {"{", "is not used"},
        {"[]", "is not used"},
        {"\x7f"
         "ELF",
         "is not used"},
        {"{\"format\": \"byoc-ledger\"}", "expected \"byoc-costs\""},
        {"{\"format\": \"byoc-costs\", \"version\": 2, \"costs\": []}",
         "version"},
        {"{\"format\": \"byoc-costs\", \"version\": 1}", "costs"},
        {HEAD "{\"key\": \"" KEY "\", \"ns\": 5, \"of\": \"x\"}",
         "is not used"},
        {HEAD "{\"key\": \"" KEY "\", \"ns\": 5, \"of\": \"x\"}, 3]}",
         "costs[1]"},
        {HEAD "{\"key\": \"" KEY "\", \"ns\": -2, \"of\": \"x\"}]}",
         "costs[0].ns"},
        {HEAD "{\"key\": \"" KEY "\", \"ns\": 1e300, \"of\": \"x\"}]}",
         "costs[0].ns"},
        {HEAD "{\"key\": \"" KEY "\", \"ns\": 5}]}", "costs[0].of"},
        {HEAD "{\"key\": \"abc\", \"ns\": 5, \"of\": \"x\"}]}",
         "expected 64 hex digits"},
        {HEAD "{\"ns\": 5, \"of\": \"x\"}]}", "costs[0].key"},
    };
    for (size_t i = 0; i < BYI_COUNT(files); i++) {
        struct byi_cost_table t;
        double us;
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(files[i].text, f);
        fclose(f);
        open_table(&t, files[i].note);
        assert_int_equal(t.list.n, 0);
        byi_cost_put(&t, key(7), 7, "new");
        save(&t);
        open_table(&t, NULL);
        assert_true(byi_cost_get(&t, key(7), &us) && us == 7);
        assert_int_equal(t.list.n, 1);
        byi_cost_table_close(&t);
    }
}

static void a_place_that_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    struct byi_cost_table t = {0};
    struct byi_text notes = {0};
    struct byoc_error err;
    byi_cost_table_open(&t, "/dev/null/costs.json", &notes);
    byi_cost_put(&t, key(1), 1, "");
    assert_int_equal(byi_cost_table_save(&t, &err), BYOC_EIO);
    assert_non_null(strstr(err.text, "/dev/null: cannot create the folder"));
    byi_cost_table_close(&t);
    byi_text_free(&notes);
}

static void the_default_follows_the_environment(void **state)
{
    (void)state;
    static const struct {
        const char *cache, *xdg, *home, *path;
    } rows[] = {
        {"/a", "/b", "/c", "/a/costs.json"},
        {NULL, "/b", "/c", "/b/byoc/costs.json"},
        {NULL, "", "/c", "/c/.cache/byoc/costs.json"},
        {"relative", NULL, "/c", "/c/.cache/byoc/costs.json"},
        {NULL, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const char *const names[] = {"BYOC_CACHE_DIR", "XDG_CACHE_HOME",
                                     "HOME"};
        const char *const values[] = {rows[i].cache, rows[i].xdg, rows[i].home};
        for (uint32_t k = 0; k < 3; k++)
            if (values[k])
                setenv(names[k], values[k], 1);
            else
                unsetenv(names[k]);
        struct byi_cost_table t = {0};
        struct byi_text notes = {0};
        byi_cost_table_open(&t, NULL, &notes);
        if (rows[i].path)
            assert_string_equal(t.path, rows[i].path);
        else
            assert_true(!t.path && strstr(notes.at, "--cost-table"));
        byi_text_free(&notes);
        byi_cost_table_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_times_are_read_back),
        cmocka_unit_test(entries_of_a_concurrent_writer_are_kept),
        cmocka_unit_test(oldest_entries_are_dropped),
        cmocka_unit_test(a_damaged_file_is_ignored_and_replaced),
        cmocka_unit_test(a_place_that_cannot_be_written_is_an_error),
        cmocka_unit_test(the_default_follows_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
