/* SPDX-License-Identifier: Apache-2.0 */
/* generate_test.c: tests that the graphs of a row have every attribute that its
 * pattern requires, for every seed that gives a graph.
 */
#include "conform/generate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 60 };

/* The text of the row's graph for a seed must contain `words`. */
static void check(const char *pattern, const char *const *words)
{
    const struct byoc_pattern row = {.name = "test.row", .pattern = pattern};
    struct byi_pattern_table *table = NULL;
    struct byoc_error err;
    unsigned n_graphs = 0;
    if (byi_patterns_compile(&row, 1, &table, &err) != BYOC_OK)
        fail_msg("%s", err.text);
    const struct byi_pattern *rows[] = {&table->at[0]};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct byi_module *m;
        struct byi_text text = {0};
        if (byi_generate(rows, 1, BYI_TOPOLOGY_NET, BYI_EMPHASIS_SMALL, seed,
                         &m, &err) != BYOC_OK)
            continue;
        n_graphs++;
        byi_print_module(m, &text, NULL);
        for (const char *const *word = words; *word; word++)
            if (!strstr(text.at, *word))
                fail_msg("%s, seed %d: found no %s in\n%s", pattern, (int)seed,
                         *word, text.at);
        byi_text_free(&text);
        byi_module_free(&m);
    }
    byi_patterns_free(&table);
    assert_true(n_graphs >= SEEDS / 10);
}

static void test_required_attributes(void **state)
{
    (void)state;
    check("nn.leaky_relu(%x){alpha=0.375}",
          (const char *const[]){"alpha=0.375", NULL});
    check("nn.hard_sigmoid(%x){alpha=0.25, beta=0.75}",
          (const char *const[]){"alpha=0.25", "beta=0.75", NULL});
    check("nn.gelu(%x){approximate=\"tanh\"}",
          (const char *const[]){"approximate=\"tanh\"", NULL});
    check("eye_like(%x){dtype=\"float64\"}",
          (const char *const[]){"dtype=\"float64\"", NULL});
    check("argmax(%x){keepdims=false}",
          (const char *const[]){"keepdims=false", NULL});
    check("nn.depth_to_space(%x){block_size=3}",
          (const char *const[]){"block_size=3", NULL});
    check("nn.max_pool2d(%x){pool_size=[3, 2]}",
          (const char *const[]){"pool_size=[3, 2]", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_required_attributes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
