/* SPDX-License-Identifier: Apache-2.0 */
/* partition_fuzz_test.c: partitions random functions with random tables:
 * results stay the same, and a second run changes only reverted regions.
 * BYOC_FUZZ_GRAPHS sets the number of functions (default 2000), BYOC_FUZZ_SEED
 * the first seed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "interp/interp.h"
#include "partition/partition.h"
#include "transform/transform.h"
#include "tests/compare.h"
#include "tests/share.h"
#include "tests/xorshift.h"

enum { MAX_IO = 16, MAX_ROWS = 8, MAX_VALUES = 32 };

static const struct byi_pass *const passes[] = {
    &byi_pass_dead_code_elimination, &byi_pass_merge_composite,
    &byi_pass_annotate_target,       &byi_pass_merge_regions,
    &byi_pass_partition_graph,       &byi_pass_dead_code_elimination,
};

static const char *const patterns[] = {
    "add|multiply(%a, %b) [nn.relu(^) | add(^, %o)]*",
    "nn.relu|abs(%a)",
    "split(%a)",
    "concatenate(%a...)",
    "nn.relu(split(%s).0)",
    "multiply(split(%s).0, nn.relu(split(%s).1))",
    "nn.relu(%a) [multiply(^, abs(^))]?",
    "multiply(%x, %x)",
    "add(nn.relu(%x), abs(nn.relu(%x)))",
    "add(%a, const %c)",
    "concatenate((nn.relu(%a) | %b), %c)",
};

/* --- a random function of values with 4 floats ---------------------------- */

/* The text of a random function. */
struct maker {
    struct byi_text text;
    uint32_t n;     /* values %v0 to %v(n - 1) */
    uint32_t tuple; /* number of the last tuple %t, plus 1; 0: none */
};

static uint32_t near_value(const struct maker *k)
{
    const uint32_t reach = 1 + draw(k->n);
    return k->n - 1 - draw(reach);
}

static void add_statement(struct maker *k)
{
    static const char *const unary[] = {"nn.relu", "abs", "sin", "nn.relu"};
    static const char *const binary[] = {"add", "multiply", "subtract"};
    const uint32_t a = near_value(k), b = near_value(k), id = k->n;
    switch (draw(8)) {
    case 0:
    case 1:
    case 2:
        byi_text_addf(&k->text, "  %%v%u = %s(%%v%u);\n", id, unary[draw(4)],
                      a);
        break;
    case 3:
    case 4:
        byi_text_addf(&k->text, "  %%v%u = %s(%%v%u, %%v%u);\n", id,
                      binary[draw(3)], a, b);
        break;
    case 5:
        byi_text_addf(&k->text, "  %%v%u = add(%%v%u, 0.5);\n", id, a);
        break;
    case 6:
        byi_text_addf(&k->text,
                      "  %%t%u = split(%%v%u, sizes=[2, 2]);\n"
                      "  %%v%u = concatenate(%s(%%t%u.%u), %%t%u.%u);\n",
                      id, a, id, unary[draw(4)], id, draw(2), id, draw(2));
        k->tuple = id + 1;
        break;
    default:
        byi_text_addf(&k->text,
                      "  %%v%u = if (less(max(%%v%u, keepdims=false), 1.0)) "
                      "{ nn.relu(%s(%%v%u)) } else { add(%%v%u, %%v%u) };\n",
                      id, a, unary[draw(4)], b, a, b);
    }
    k->n++;
}

static void make_function(struct maker *k)
{
    const uint32_t n = 3 + draw(MAX_VALUES - 4), n_results = 1 + draw(3);
    byi_text_addf(&k->text, "def @main(%%v0: Tensor[(4), float32], "
                            "%%v1: Tensor[(4), float32]) {\n");
    k->n = 2;
    while (k->n < n)
        add_statement(k);
    byi_text_addf(&k->text, "  (%%v%u,", k->n - 1);
    for (uint32_t i = 0; i < n_results; i++)
        byi_text_addf(&k->text, " %%v%u,", draw(k->n));
    if (k->tuple && draw(2))
        byi_text_addf(&k->text, " %%t%u,", k->tuple - 1);
    byi_text_addf(&k->text, ")\n}\n");
}

/* --- one or two backends with random tables ------------------------------- */

struct tables {
    struct byi_arena *arena;
    struct byoc_host host;
    struct byoc_backend apis[2];
    struct byi_backends backends;
};

static void make_tables(struct tables *t)
{
    const struct byoc_backend *backends[2];
    const struct byoc_host *hosts[2] = {&t->host, &t->host};
    const uint32_t n = 1 + draw(2);
    struct byoc_error err;
    byi_match_host(&t->host);
    for (uint32_t v = 0; v < n; v++) {
        struct byoc_pattern *rows =
            byi_arena_calloc(t->arena, MAX_ROWS, sizeof *rows);
        const char *backend = v ? "b" : "a";
        const uint32_t n_rows = 1 + draw(MAX_ROWS);
        for (uint32_t i = 0; i < n_rows; i++)
            rows[i] = (struct byoc_pattern){
                .name = byi_arena_printf(t->arena, "%s.row%u", backend, i),
                .pattern = patterns[draw((uint32_t)BYI_COUNT(patterns))]};
        t->apis[v] =
            (struct byoc_backend){.struct_size = sizeof(struct byoc_backend),
                                  .name = backend,
                                  .version = "",
                                  .compat = "",
                                  .patterns = rows,
                                  .n_patterns = n_rows};
        backends[v] = &t->apis[v];
    }
    if (byi_backends_init(&t->backends, backends, hosts, n, &err))
        fail_msg("%s", err.text);
    t->backends.limits.min_nodes = draw(4) ? 0 : 2;
}

/* --- before and after ----------------------------------------------------- */

static uint32_t run_main(const struct byi_module *m, struct byi_arena *arena,
                         struct byi_tensor out[MAX_IO])
{
    struct byi_tensor in[2];
    struct byoc_error err = {0};
    const uint32_t func = byi_func_find(m, "main");
    const struct byi_func *f = m->funcs.at[func];
    uint32_t n = 0;
    for (uint32_t i = 0; i < 2; i++)
        assert_true(byi_interp_random(f->nodes.at[f->params.at[i]].type, i + 1,
                                      arena, &in[i]));
    if (byi_interp_run(m, func, in, 2, arena, out, MAX_IO, &n, &err))
        fail_msg("%s", err.text);
    return n;
}

static void partition(struct byi_module *m, struct byi_pass_context *ctx,
                      const char *source, struct byi_text *text)
{
    struct byoc_error err = {0};
    if (byi_run_passes(m, passes, (uint32_t)BYI_COUNT(passes), ctx, &err))
        fail_msg("%s\n%s", err.text, source);
    byi_print_module(m, text, NULL);
}

static void check_seed(uint64_t seed)
{
    struct maker k = {0};
    struct tables t = {.arena = byi_arena_new()};
    struct byi_module *m = NULL;
    struct byoc_error err = {0};
    struct byi_tensor before[MAX_IO], after[MAX_IO];
    struct byi_text once = {0}, twice = {0};
    rng = seed * 0x9e3779b97f4a7c15u;
    make_function(&k);
    make_tables(&t);
    if (byi_parse_module(k.text.at, k.text.n, "random", NULL, &m, &err))
        fail_msg("%s\n%s", err.text, k.text.at);
    struct byi_pass_context ctx = {
        .opt_level = 2,
        .verify = true,
        .entries = {byi_backends_entry(&t.backends)}};
    const uint32_t n = run_main(m, t.arena, before);
    partition(m, &ctx, k.text.at, &once);
    assert_int_equal(run_main(m, t.arena, after), n);
    for (uint32_t i = 0; i < n; i++)
        if (compare_tensors(&after[i], &before[i], 1e-5, 1e-6, &err))
            fail_msg("seed %llu, result %u: %s\n%s\n%s",
                     (unsigned long long)seed, i, err.text, k.text.at, once.at);
    partition(m, &ctx, k.text.at, &twice);
    /* nodes reverted for their size are matched again, without the others */
    if (!t.backends.limits.min_nodes && strcmp(once.at, twice.at) != 0)
        fail_msg("seed %llu: the second run changed\n%s\nto\n%s",
                 (unsigned long long)seed, once.at, twice.at);
    byi_text_free(&once);
    byi_text_free(&twice);
    byi_text_free(&k.text);
    byi_module_free(&m);
    byi_backends_free(&t.backends);
    byi_arena_free(&t.arena);
}

static void partitioning_changes_no_result(void **state)
{
    (void)state;
    const uint64_t n = number_from("BYOC_FUZZ_GRAPHS", 2000);
    const uint64_t first = number_from("BYOC_FUZZ_SEED", 1);
    for (uint64_t seed = first; seed < first + n; seed++)
        check_seed(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partitioning_changes_no_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
