/* SPDX-License-Identifier: Apache-2.0 */
/* candidates_test.c: tests candidates of placement: cutting them out of a
 * function, and MergeComposite with a given placement.
 */
#include "partition/cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct byoc_pattern rows_a[] = {
    {"a.add_relu", "nn.relu(add(%x, %y))", NULL},
    {"a.add", "add(%x, %y)", NULL},
    {"a.relu", "nn.relu(%x)", NULL},
    {"a.split", "split(%x)", NULL},
};
static const struct byoc_pattern rows_b[] = {
    {"b.relu_exp", "exp(nn.relu(%x))", NULL},
    {"b.add", "add(%x, %y)", NULL},
    {"b.relu", "nn.relu(%x)", NULL},
};

/* A module, its backends and their candidates. */
struct setup {
    struct byi_module *m;
    struct byi_arena *arena;
    struct byoc_host host;
    struct byoc_backend apis[2];
    struct byi_backends backends;
    struct byi_pass_context ctx;
    struct byi_candidates candidates;
};

static void open_setup(struct setup *s, const char *text, uint32_t n_backends)
{
    struct byoc_error err;
    *s = (struct setup){.arena = byi_arena_new()};
    const struct byoc_backend *list[] = {&s->apis[0], &s->apis[1]};
    const struct byoc_host *hosts[] = {&s->host, &s->host};
    byi_match_host(&s->host);
    for (uint32_t v = 0; v < 2; v++)
        s->apis[v] = (struct byoc_backend){
            .struct_size = sizeof(struct byoc_backend),
            .name = v ? "b" : "a",
            .version = "1",
            .compat = "",
            .patterns = v ? rows_b : rows_a,
            .n_patterns = v ? BYI_COUNT(rows_b) : BYI_COUNT(rows_a)};
    if (byi_parse_module(text, strlen(text), "text", NULL, &s->m, &err) ||
        byi_backends_init(&s->backends, list, hosts, n_backends, &err))
        fail_msg("%s", err.text);
    s->ctx = (struct byi_pass_context){
        .entries = {byi_backends_entry(&s->backends)}};
}

static void find_candidates(struct setup *s)
{
    struct byoc_error err;
    if (byi_candidates_find(s->m, &s->ctx, s->arena, &s->candidates, &err))
        fail_msg("%s", err.text);
}

static void close_setup(struct setup *s)
{
    byi_candidates_free(&s->candidates);
    byi_backends_free(&s->backends);
    byi_module_free(&s->m);
    byi_arena_free(&s->arena);
}

#define T "Tensor[(2, 4), float32]"
#define MAIN "def @main(%x: " T ", %y: " T ") "

/* Check the names of a candidate's operators, and which backends can run it. */
static void check_candidate(const struct setup *s, uint32_t index,
                            const char *ops, uint64_t backends)
{
    const struct byi_candidate *candidate = &s->candidates.list.at[index];
    struct byi_text text = {0};
    for (uint32_t i = 0; i < candidate->n; i++) {
        const struct byi_node *node =
            &s->m->funcs.at[candidate->func]->nodes.at[candidate->at[i]];
        byi_text_addf(&text, "%s%s", i ? " " : "",
                      node->kind == BYI_GET ? "get" : byi_op(node->op)->name);
    }
    assert_string_equal(text.at, ops);
    assert_int_equal(candidate->backends, backends);
    byi_text_free(&text);
}

static void a_composite_is_a_candidate(void **state)
{
    (void)state;
    struct setup s;
    open_setup(&s,
               MAIN "-> " T " {\n"
                    "  %0 = nn.relu(add(%x, %y));\n"
                    "  %1 = exp(%0);\n"
                    "  add(%1, %0)\n"
                    "}\n",
               1);
    find_candidates(&s);
    assert_int_equal(s.candidates.list.n, 2);
    check_candidate(&s, 0, "add nn.relu", 1);
    check_candidate(&s, 1, "add", 1);
    close_setup(&s);
}

static void overlapping_composites_are_one_candidate(void **state)
{
    (void)state;
    struct setup s;
    open_setup(&s,
               MAIN "-> " T " {\n"
                    "  %0 = exp(nn.relu(add(%x, %y)));\n"
                    "  nn.relu(%0)\n"
                    "}\n",
               2);
    find_candidates(&s);
    assert_int_equal(s.candidates.list.n, 2);
    check_candidate(&s, 0, "add nn.relu exp",
                    3); /* a: add_relu; b: add, relu_exp */
    check_candidate(&s, 1, "nn.relu", 3);
    close_setup(&s);
}

static void fields_go_with_their_tuple(void **state)
{
    (void)state;
    struct setup s;
    open_setup(&s,
               MAIN "-> Tensor[(1, 4), float32] {\n"
                    "  %0 = split(%x, sizes=[1, 1], axis=0);\n"
                    "  %1 = %0.0;\n"
                    "  add(%1, %0.1)\n"
                    "}\n",
               1);
    find_candidates(&s);
    assert_int_equal(s.candidates.list.n, 2);
    check_candidate(&s, 0, "split get get", 1);
    check_candidate(&s, 1, "add", 1);
    close_setup(&s);
}

static void finding_candidates_changes_nothing(void **state)
{
    (void)state;
    struct setup s;
    struct byi_text before = {0}, after = {0};
    open_setup(&s, MAIN "-> " T " { nn.relu(add(%x, %y)) }\n", 2);
    byi_print_module(s.m, &before, NULL);
    find_candidates(&s);
    byi_print_module(s.m, &after, NULL);
    assert_string_equal(before.at, after.at);
    byi_text_free(&before);
    byi_text_free(&after);
    close_setup(&s);
}

/* --- subgraphs ------------------------------------------------------------ */

static void a_subgraph_is_a_function(void **state)
{
    (void)state;
    struct setup s;
    struct byoc_error err;
    struct byi_text text = {0};
    open_setup(&s,
               MAIN
               "-> (" T ", " T ") {\n"
               "  %0 = exp(%x);\n"
               "  %1 = add(%0, Tensor[(4), float32] {1.0, 2.0, 3.0, 4.0});\n"
               "  %2 = nn.relu(%1);\n"
               "  (%2, %1)\n"
               "}\n",
               1);
    find_candidates(&s);
    /* %1 is a result, so that no candidate contains %1 and %2 */
    assert_int_equal(s.candidates.list.n, 2);
    const byi_id both[] = {s.candidates.list.at[0].at[0],
                           s.candidates.list.at[1].at[0]};
    const struct byi_subgraph subgraph = {s.candidates.list.at[0].func, 2,
                                          both};
    struct byi_module *to = byi_module_new();
    if (byi_subgraph_add(s.m, &subgraph, to, "main", &err) ||
        byi_verify(to, &err))
        fail_msg("%s", err.text);
    byi_print_module(to, &text, NULL);
    assert_non_null(strstr(text.at, "add(%i"));
    assert_non_null(strstr(text.at, "[1.0, 2.0, 3.0, 4.0]"));
    assert_non_null(strstr(text.at, "-> (" T ", " T ")"));
    assert_null(strstr(text.at, "exp"));
    byi_text_free(&text);
    byi_module_free(&to);
    close_setup(&s);
}

/* The signature of the only candidate. */
static void signature_of(const char *text, char hex[65])
{
    struct setup s;
    struct byi_sha256 sum;
    open_setup(&s, text, 1);
    find_candidates(&s);
    assert_int_equal(s.candidates.list.n, 1);
    const struct byi_candidate *candidate = &s.candidates.list.at[0];
    const struct byi_subgraph subgraph = {candidate->func, candidate->n,
                                          candidate->at};
    byi_sha256_init(&sum);
    byi_subgraph_hash(s.m, &subgraph, &sum);
    byi_sha256_hex(&sum, hex);
    close_setup(&s);
}

static void signatures_of_equal_work_are_equal(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool same;
    } rows[] = {
        {MAIN "-> " T " { add(%x, %y) }", true},
        {MAIN "-> " T " { exp(add(exp(%y), %x)) }", true},
        {MAIN "-> " T " { add(%x, %x) }", false},
        {MAIN "-> " T " { add(%x, Tensor[(4), float32] {1.0, 2.0, 3.0, 4.0}) }",
         false},
        {"def @main(%x: Tensor[(2, 5), float32], %y: Tensor[(2, 5), float32])"
         " -> Tensor[(2, 5), float32] { add(%x, %y) }",
         false},
        {"def @main(%x: Tensor[(2, 4), float64], %y: Tensor[(2, 4), float64])"
         " -> Tensor[(2, 4), float64] { add(%x, %y) }",
         false},
        {MAIN "-> " T " { nn.relu(add(%x, %y)) }", false},
    };
    char first[65], hex[65];
    signature_of(rows[0].text, first);
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        signature_of(rows[i].text, hex);
        if ((strcmp(hex, first) == 0) != rows[i].same)
            fail_msg("%s: found %s signature, expected %s one", rows[i].text,
                     rows[i].same ? "another" : "the same",
                     rows[i].same ? "the same" : "another");
    }
}

static void small_values_and_attributes_count(void **state)
{
    (void)state;
    char a[65], b[65];
    signature_of(MAIN "-> " T
                      " { add(%x, Tensor[(4), float32] {1.0, 2.0, 3.0, 4.0}) }",
                 a);
    signature_of(MAIN "-> " T
                      " { add(%x, Tensor[(4), float32] {1.0, 2.0, 3.0, 5.0}) }",
                 b);
    assert_string_not_equal(a, b);
    signature_of(MAIN "{ split(%x, sizes=[1, 1], axis=0) }", a);
    signature_of(MAIN "{ split(%x, sizes=[2, 2], axis=1) }", b);
    assert_string_not_equal(a, b);
}

/* --- assignments ---------------------------------------------------------- */

static byi_id find_op(const struct byi_module *m, enum byi_op_id op)
{
    const struct byi_func *f = m->funcs.at[byi_module_entry(m)];
    byi_id id = 0;
    while (id < f->nodes.n &&
           (f->nodes.at[id].kind != BYI_CALL_OP || f->nodes.at[id].op != op))
        id++;
    assert_true(id < f->nodes.n);
    return id;
}

/* Node ids change when the first backend's composites are made. */
static void composites_follow_the_assignment(void **state)
{
    (void)state;
    struct setup s;
    struct byoc_error err;
    struct byi_text text = {0};
    open_setup(&s,
               MAIN "-> " T " {\n"
                    "  %0 = add(%x, %y) #[\"Add_0\": \"Add\"];\n"
                    "  %1 = nn.relu(%0) #[\"Relu_1\": \"Relu\"];\n"
                    "  exp(%1)\n"
                    "}\n",
               2);
    const uint32_t entry = byi_module_entry(s.m);
    struct byi_ledger *ledger = byi_ledger_new();
    struct byi_assignment *a = byi_assignment_new(s.m, s.arena);
    byi_assign(a, entry, find_op(s.m, BYI_OP_ADD), "a", "a takes 1 us");
    byi_assign(a, entry, find_op(s.m, BYI_OP_NN_RELU), "b", "b takes 2 us");
    byi_assign(a, entry, find_op(s.m, BYI_OP_EXP), NULL, "native takes 3 us");
    s.backends.assignment = a;
    byi_context_put(&s.ctx, byi_ledger_entry(ledger));
    const struct byi_pass *passes[] = {&byi_pass_merge_composite};
    if (byi_run_passes(s.m, passes, 1, &s.ctx, &err))
        fail_msg("%s", err.text);
    byi_print_module(s.m, &text, NULL);
    assert_non_null(strstr(text.at, "Composite=\"a.add\""));
    assert_non_null(strstr(text.at, "Composite=\"b.relu\""));
    assert_null(strstr(text.at, "relu_exp"));
    assert_null(strstr(text.at, "add_relu"));
    byi_text_free(&text);
    byi_ledger_close(ledger, s.m, NULL);
    byi_ledger_write_json(ledger, &text);
    assert_non_null(strstr(text.at, "\"cheaper-elsewhere\""));
    assert_non_null(strstr(text.at, "b takes 2 us"));
    byi_text_free(&text);
    byi_ledger_free(&ledger);
    close_setup(&s);
}

static void nodes_without_assignment_are_free(void **state)
{
    (void)state;
    struct setup s;
    open_setup(&s, MAIN "-> " T " { add(%x, %y) }\n", 1);
    const byi_id add = find_op(s.m, BYI_OP_ADD);
    const uint32_t entry = byi_module_entry(s.m);
    struct byi_assignment *a = byi_assignment_new(s.m, s.arena);
    assert_null(byi_assignment_refusal(NULL, entry, add, "a"));
    assert_null(byi_assignment_refusal(a, entry, add, "a"));
    byi_assign(a, entry, add, "b", "why");
    assert_string_equal(byi_assignment_refusal(a, entry, add, "a"), "why");
    assert_null(byi_assignment_refusal(a, entry, add, "b"));
    struct byi_assignment *copy = byi_assignment_copy(a, s.arena);
    byi_assign(copy, entry, add, NULL, "native");
    assert_string_equal(byi_assignment_refusal(copy, entry, add, "b"),
                        "native");
    assert_null(byi_assignment_refusal(a, entry, add, "b"));
    close_setup(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_composite_is_a_candidate),
        cmocka_unit_test(overlapping_composites_are_one_candidate),
        cmocka_unit_test(fields_go_with_their_tuple),
        cmocka_unit_test(finding_candidates_changes_nothing),
        cmocka_unit_test(a_subgraph_is_a_function),
        cmocka_unit_test(signatures_of_equal_work_are_equal),
        cmocka_unit_test(small_values_and_attributes_count),
        cmocka_unit_test(composites_follow_the_assignment),
        cmocka_unit_test(nodes_without_assignment_are_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
