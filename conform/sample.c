/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c: generates random graphs and partitions them, with the plug-in's
 * patterns, predicates and probe as in a compile, until the plug-in accepts
 * one.
 */
#include "kit.h"

#include "codegen_json/codegen_json.h"
#include "runtime_native/native.h"

#include <string.h>

enum {
    MAX_DRAWN = 400,  /* graphs tried for a sample */
    MAX_REFUSED = 6,  /* of them, how many the plug-in may refuse */
    MAX_NUMBERS = 24, /* samples tried by byi_sample_make_first */
    MAX_ROWS = 4096   /* rows of a plug-in that are wrapped */
};

static const struct byoc_backend *plugin_backend;
/* a copy of `plugin_backend` with wrapped predicates and probe */
static struct byoc_backend wrapped;
static struct byoc_pattern wrapped_rows[MAX_ROWS];
static struct byi_kit *current_kit;
static char last_reason[1024]; /* the reason of the last refusal */
static uint32_t refusals;      /* number of refusals so far */

const struct byoc_backend *byi_kit_backend(struct byi_kit *kit)
{
    struct byi_plugin *plugin;
    struct byoc_error err;
    if (plugin_backend)
        return plugin_backend;
    byi_child_step(NULL, "opening the library");
    if (byoc_internal_plugin_open(kit->path, 2, &plugin, &err) != BYOC_OK)
        byi_kit_failed(kit, BYI_RULE_OPENS, "%s", err.text);
    byi_child_step(NULL, "the kit");
    return plugin_backend = plugin->backend;
}

/* --- wrapped predicates and probe ----------------------------------------- */

static void note_refusal(const char *why)
{
    refusals++;
    snprintf(last_reason, sizeof last_reason, "%s", why);
}

/* Call the row's own predicate twice, and fail the case if the results differ.
 * Returns its result. */
static const char *accept(const struct byoc_host *host,
                          const struct byoc_match *m)
{
    const struct byi_match *match = (const void *)m;
    const struct byoc_pattern *row =
        &plugin_backend->patterns[match->pattern->row - wrapped_rows];
    if (!row->accept)
        return NULL;
    char first_text[sizeof last_reason] = "";
    byi_child_step(NULL, "accept() of %s", row->name);
    const char *first = row->accept(host, m);
    if (first)
        snprintf(first_text, sizeof first_text, "%s", first);
    const char *again = row->accept(host, m);
    if (!first != !again || (again && strcmp(first_text, again) != 0))
        byi_kit_failed(
            current_kit, BYI_RULE_PURE,
            "accept() of %s returned '%.300s' at first, and '%.300s' when "
            "it was called again",
            row->name, first ? first_text : "yes", again ? again : "yes");
    if (again && !*again)
        byi_kit_failed(current_kit, BYI_RULE_REASON,
                       "accept() of %s refused without a reason", row->name);
    if (again)
        note_refusal(again);
    byi_child_step(NULL, "the kit");
    return again;
}

/* Call the plug-in's probe(), and check its result. */
static struct byoc_fail *probe(const struct byoc_host *host,
                               const struct byoc_region *graph,
                               struct byoc_probe *result)
{
    const struct byi_host_records before = byi_host_records();
    byi_child_step(NULL, "probe()");
    struct byoc_fail *fail = plugin_backend->probe(host, graph, result);
    if (fail) {
        if (!*host->fail_text(fail))
            byi_kit_failed(current_kit, BYI_RULE_REASON,
                           "probe() refused without a reason");
        if (host->fail_code(fail) == BYOC_FAIL_INTERNAL ||
            host->fail_code(fail) == BYOC_FAIL_INVALID)
            byi_kit_failed(current_kit, BYI_RULE_REASON,
                           "probe() failed with code %s, expected UNSUPPORTED "
                           "for a refusal: %.600s",
                           host->fail_code(fail) == BYOC_FAIL_INTERNAL
                               ? "INTERNAL"
                               : "INVALID",
                           host->fail_text(fail));
        note_refusal(host->fail_text(fail));
    } else if (!memchr(result->impl, '\0', sizeof result->impl)) {
        byi_kit_failed(current_kit, BYI_RULE_REASON,
                       "probe() set an impl that does not end in NUL");
    }
    struct byi_host_records after = before;
    after.fails += fail != NULL;
    byi_host_check_balance(current_kit, &after, "probe()");
    byi_child_step(NULL, "the kit");
    return fail;
}

/* --- the wrapped table ---------------------------------------------------- */

/* The plug-in's backend, with wrapped predicates and probe. */
static struct byi_backends *open_backends(struct byi_kit *kit)
{
    static struct byi_backends backends;
    struct byoc_error err;
    const struct byoc_backend *b = byi_kit_backend(kit);
    if (backends.n)
        return &backends;
    current_kit = kit;
    wrapped = *b;
    for (uint32_t i = 0; i < b->n_patterns && i < MAX_ROWS; i++) {
        wrapped_rows[i] = b->patterns[i];
        wrapped_rows[i].accept = accept;
    }
    wrapped.patterns = wrapped_rows;
    wrapped.probe = b->probe ? probe : NULL;
    const struct byoc_backend *list[] = {&wrapped};
    const struct byoc_host *hosts[] = {byi_kit_host(kit)};
    if (byi_backends_init(&backends, list, hosts, 1, &err) != BYOC_OK)
        byi_kit_failed(kit, BYI_RULE_ROW, "%s", err.text);
    return &backends;
}

static const struct byi_pattern *find_row(struct byi_kit *kit,
                                          const struct byi_backends *backends,
                                          const char *name)
{
    const struct byi_pattern_table *table = backends->at[0].table;
    for (uint32_t i = 0; i < table->n; i++)
        if (strcmp(table->at[i].row->name, name) == 0)
            return &table->at[i];
    byi_kit_end(kit, BYI_UNTESTED, 0,
                "the plug-in's table: found no row %s among its %u rows", name,
                table->n);
}

static uint32_t count_nodes(const struct byi_func *f, enum byi_node_kind kind)
{
    uint32_t n = 0;
    for (byi_id id = 0; id < f->nodes.n; id++)
        n += f->nodes.at[id].kind == kind;
    return n;
}

/* Set *func to the only composite of m. Returns false if there are several, or
 * it does not cover the n_ops operators of @main. */
static bool find_composite(const struct byi_module *m, uint32_t n_ops,
                           uint32_t *func)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->funcs.n; i++)
        if (!m->funcs.at[i]->dead && m->funcs.at[i]->attr.composite) {
            *func = i;
            n++;
        }
    return n == 1 && count_nodes(m->funcs.at[*func], BYI_CALL_OP) == n_ops;
}

/* --- samples -------------------------------------------------------------- */

uint64_t byi_kit_seed(const struct byi_kit *kit, const char *what,
                      uint64_t number)
{
    return byi_hash(byi_hash(kit->seed, &number, sizeof number), what,
                    strlen(what));
}

/* Set the types of inputs and outputs. Returns false if there are too many. */
static bool set_types(struct byi_sample *s)
{
    const struct byi_func *f = s->m->funcs.at[s->func];
    const struct byi_type *type = f->nodes.at[f->result].type;
    const bool tuple = type->kind == BYI_TUPLE;
    s->n_in = f->params.n;
    s->n_out = tuple ? type->n_fields : 1;
    if (s->n_in > BYI_KIT_MAX_IO || s->n_out > BYI_KIT_MAX_IO)
        return false;
    for (uint32_t i = 0; i < s->n_in; i++)
        s->in[i] = f->nodes.at[f->params.at[i]].type;
    for (uint32_t i = 0; i < s->n_out; i++)
        s->out[i] = tuple ? type->fields[i] : type;
    return true;
}

/* Write the composite as a region for the plug-in. */
static bool write_sample(struct byi_sample *s, struct byoc_error *err)
{
    uint32_t none[BYI_KIT_MAX_IO];
    memset(none, 0xff, sizeof none);
    s->arena = byi_arena_new();
    return set_types(s) &&
           byi_composite_write(s->m, s->func, none, s->arena, &s->json,
                               &s->consts, &s->n_consts, err) == BYOC_OK &&
           s->n_consts <= BYI_KIT_MAX_IO;
}

/* How the plug-in's rows match a random graph. */
enum match_outcome {
    MATCHED,   /* the row matches all of it: it is the sample */
    UNMATCHED, /* no row matches all of it, or an error occurred */
    REFUSED,   /* the plug-in refused a match */
    OTHER_ROW  /* another row matches it */
};

/* Merge composites in m, which becomes s->m, and write the sample if `row`
 * matches all of it. */
static enum match_outcome match_graph(struct byi_backends *backends,
                                      struct byi_module *m, const char *row,
                                      struct byi_sample *s,
                                      struct byoc_error *err)
{
    static const struct byi_pass *const passes[] = {&byi_pass_merge_composite};
    struct byi_pass_context ctx = {.opt_level = 2,
                                   .eval = byi_kernel_eval,
                                   .entries = {byi_backends_entry(backends)}};
    const uint32_t before = refusals;
    const uint32_t n_ops =
        count_nodes(m->funcs.at[byi_func_find(m, "main")], BYI_CALL_OP);
    s->m = m;
    if (byi_run_passes(s->m, passes, 1, &ctx, err) != BYOC_OK)
        return UNMATCHED;
    if (!find_composite(s->m, n_ops, &s->func))
        return refusals > before ? REFUSED : UNMATCHED;
    const char *name = s->m->funcs.at[s->func]->attr.composite;
    if (strcmp(name, row) != 0) {
        byi_fail(err, BYOC_EINVAL, "row %s matches it", name);
        return refusals > before ? REFUSED : OTHER_ROW;
    }
    return write_sample(s, err) ? MATCHED : UNMATCHED;
}

/* End the case with the reason why the row has no sample. */
static _Noreturn void give_up(struct byi_kit *kit, const char *row,
                              uint32_t n_refused, uint32_t n_other_row,
                              const struct byoc_error *err)
{
    if (n_refused)
        byi_kit_end(kit, BYI_REFUSED, 0, "%s", last_reason);
    byi_kit_end(kit, BYI_UNTESTED, 0, "no graph could be made for %s: %s%s",
                row, n_other_row ? "another row comes first: " : "", err->text);
}

/* Try to generate graph `number`. If that fails, returns false, and sets the
 * numbers of refused graphs and of graphs that other rows match. */
static bool try_sample(struct byi_kit *kit, const char *row, uint32_t number,
                       struct byi_sample *s, uint32_t *n_refused,
                       uint32_t *n_other_row, struct byoc_error *err)
{
    struct byi_backends *backends = open_backends(kit);
    const struct byi_pattern *pattern = find_row(kit, backends, row);
    const uint64_t base = byi_kit_seed(kit, row, number);
    *n_refused = *n_other_row = 0;
    for (uint32_t i = 0; i < MAX_DRAWN && *n_refused < MAX_REFUSED; i++) {
        struct byi_module *m;
        *s = (struct byi_sample){0};
        if (byi_generate(&pattern, 1, BYI_TOPOLOGY_NET, number % BYI_N_EMPHASES,
                         base + i, &m, err) != BYOC_OK) {
            if (err->status == BYOC_EUNSUPPORTED)
                break;
            continue;
        }
        const enum match_outcome outcome =
            match_graph(backends, m, row, s, err);
        if (outcome == MATCHED)
            return true;
        *n_refused += outcome == REFUSED;
        *n_other_row += outcome == OTHER_ROW;
        byi_sample_free(s);
    }
    return false;
}

void byi_sample_make(struct byi_kit *kit, const char *row, uint32_t number,
                     struct byi_sample *sample)
{
    struct byoc_error err = {.text = ""};
    uint32_t n_refused, n_other_row;
    if (!try_sample(kit, row, number, sample, &n_refused, &n_other_row, &err))
        give_up(kit, row, n_refused, n_other_row, &err);
}

void byi_sample_make_first(struct byi_kit *kit, const char *row,
                           struct byi_sample *sample)
{
    struct byoc_error err = {.text = ""};
    uint32_t n_refused = 0, n_other_row = 0, n_refused_total = 0;
    for (uint32_t i = 0; i < MAX_NUMBERS; i++) {
        if (try_sample(kit, row, i, sample, &n_refused, &n_other_row, &err))
            return;
        n_refused_total += n_refused;
    }
    give_up(kit, row, n_refused_total, n_other_row, &err);
}

/* --- regions of several kernels ------------------------------------------- */

/* Set s->func to the largest region with more than `max_kernels` kernels.
 * Returns false if there is none. */
static bool find_region(struct byi_sample *s, uint32_t max_kernels)
{
    const uint32_t before = max_kernels;
    for (uint32_t i = 0; i < s->m->funcs.n; i++) {
        const struct byi_func *f = s->m->funcs.at[i];
        const uint32_t n = count_nodes(f, BYI_CALL); /* kernels (composites) */
        if (f->dead || !f->attr.compiler || n <= max_kernels)
            continue;
        max_kernels = n;
        s->func = i;
    }
    return max_kernels > before;
}

/* Record the sample's module in the verdict, partition it, and write its
 * largest region. Returns false if the region has fewer than `least` kernels,
 * or on errors. */
static bool partition(struct byi_backends *backends, struct byi_sample *s,
                      uint32_t least, struct byoc_error *err)
{
    static const struct byi_pass *const passes[] = {
        &byi_pass_merge_composite, &byi_pass_annotate_target,
        &byi_pass_merge_regions, &byi_pass_partition_graph};
    struct byi_pass_context ctx = {.opt_level = 2,
                                   .eval = byi_kernel_eval,
                                   .entries = {byi_backends_entry(backends)}};
    struct byi_text program = {0};
    byi_print_module(s->m, &program, NULL);
    snprintf(current_kit->verdict->program,
             sizeof current_kit->verdict->program, "%s", program.at);
    byi_text_free(&program);
    if (byi_run_passes(s->m, passes, BYI_COUNT(passes), &ctx, err) != BYOC_OK ||
        !find_region(s, least - 1))
        return false;
    s->arena = byi_arena_new();
    return set_types(s) &&
           byi_region_write(s->m, s->func, s->arena, &s->json, &s->consts,
                            &s->n_consts, err) == BYOC_OK &&
           s->n_consts <= BYI_KIT_MAX_IO;
}

void byi_sample_region(struct byi_kit *kit, uint32_t number,
                       struct byi_sample *s)
{
    enum { MAX_TRIES = 200 };
    struct byi_backends *backends = open_backends(kit);
    const struct byi_pattern_table *table = backends->at[0].table;
    uint64_t state = byi_kit_seed(kit, "region", number);
    struct byoc_error err = {.text = ""};
    for (uint32_t i = 0; i < MAX_TRIES; i++) {
        const struct byi_pattern *list[BYI_GENERATE_MAX_ROWS];
        const uint32_t n =
            2 + byi_draw_below(&state, BYI_GENERATE_MAX_ROWS - 1);
        for (uint32_t k = 0; k < n; k++)
            list[k] = &table->at[byi_draw_below(&state, table->n)];
        *s = (struct byi_sample){.joined = true};
        if (byi_generate(list, n, BYI_TOPOLOGY_NET, number % BYI_EMPHASIS_ZERO,
                         byi_draw(&state), &s->m, &err) != BYOC_OK)
            continue;
        if (partition(backends, s, 2, &err))
            return;
        byi_sample_free(s);
    }
    byi_kit_end(kit, BYI_UNTESTED, 0,
                "no region of several kernels could be made: %s", err.text);
}

/* --- chains --------------------------------------------------------------- */

/* Whether the row contains an operator that moves elements. Chains have more of
 * these rows, since the next kernels must handle the strides of their results.
 */
static bool is_move(const struct byi_pattern *row)
{
    static const enum byi_op_id moves[] = {
        BYI_OP_RESHAPE,     BYI_OP_SQUEEZE,       BYI_OP_EXPAND_DIMS,
        BYI_OP_FLATTEN,     BYI_OP_TRANSPOSE,     BYI_OP_SPLIT,
        BYI_OP_CONCATENATE, BYI_OP_STRIDED_SLICE,
    };
    for (uint32_t i = 0; i < row->n_nodes; i++)
        for (size_t k = 0; k < BYI_COUNT(moves); k++)
            if (row->nodes[i].kind == BYI_PAT_OP &&
                row->nodes[i].ops[0] == moves[k])
                return true;
    return false;
}

/* A random row; with a probability of 40%, preferably one that moves elements.
 */
static const struct byi_pattern *draw_row(const struct byi_pattern_table *table,
                                          uint64_t *state)
{
    enum { MAX_TRIES = 6 };
    const bool move = byi_draw_below(state, 100) < 40;
    const struct byi_pattern *row;
    uint32_t tries = 0;
    do
        row = &table->at[byi_draw_below(state, table->n)];
    while (move && !is_move(row) && tries++ < MAX_TRIES);
    return row;
}

bool byi_sample_chain(struct byi_kit *kit, uint64_t number,
                      struct byi_sample *s)
{
    static const enum byi_emphasis emphases[] = {
        BYI_EMPHASIS_SMALL, BYI_EMPHASIS_ONES, BYI_EMPHASIS_ONES,
        BYI_EMPHASIS_ODD,   BYI_EMPHASIS_ZERO, BYI_EMPHASIS_RANK};
    enum { MAX_TRIES = 60 };
    struct byi_backends *backends = open_backends(kit);
    uint64_t state = byi_kit_seed(kit, "chain", number);
    struct byoc_error err;
    const uint32_t n = 1 + byi_draw_below(&state, BYI_GENERATE_MAX_ROWS);
    const enum byi_emphasis emphasis =
        emphases[byi_draw_below(&state, BYI_COUNT(emphases))];
    for (uint32_t i = 0; i < MAX_TRIES; i++) {
        const struct byi_pattern *list[BYI_GENERATE_MAX_ROWS];
        for (uint32_t k = 0; k < n; k++)
            list[k] = draw_row(backends->at[0].table, &state);
        *s = (struct byi_sample){.joined = true};
        if (byi_generate(list, n, BYI_TOPOLOGY_CHAIN, emphasis,
                         byi_draw(&state), &s->m, &err) != BYOC_OK)
            continue;
        if (partition(backends, s, 1, &err))
            return true;
        byi_sample_free(s);
    }
    return false;
}

void byi_sample_free(struct byi_sample *s)
{
    byi_text_free(&s->json);
    byi_arena_free(&s->arena);
    byi_module_free(&s->m);
}
