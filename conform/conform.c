/* SPDX-License-Identifier: Apache-2.0 */
/* conform.c: `byoc conform`: lists the cases for a plug-in, runs them, and
 * prints the results (card.c).
 */
#include "conform.h"

#include <byoc/byoc.h>

#include "groups.h"

#include "core/base/clock.h"

#include <stdlib.h>
#include <string.h>

enum {
    CASES = 28,   /* default number of graphs for each row */
    SECONDS = 20, /* default time limit of a case */
    MAX_HANGS = 3 /* after this many hangs, no more cases run */
};

/* --- the plug-in's description, which a child reads ----------------------- */

static struct byi_listing *listing; /* in shared memory */

/* A case that fills in `listing`. */
static void list_rows(struct byi_kit *kit, const struct byi_kit_case *c)
{
    const struct byoc_backend *b = byi_kit_backend(kit);
    size_t at = 0;
    (void)c;
    snprintf(listing->name, sizeof listing->name, "%s", b->name);
    snprintf(listing->version, sizeof listing->version, "%s", b->version);
    snprintf(listing->compat, sizeof listing->compat, "%s", b->compat);
    listing->compiles = b->compile != NULL;
    listing->writes_c = kit->codegen == BYOC_CODEGEN_C ||
                        (b->flags & BYOC_BACKEND_WRITES_C) != 0;
    for (uint32_t i = 0; i < b->n_patterns; i++) {
        const size_t n = strlen(b->patterns[i].name) + 1;
        if (at + n > sizeof listing->rows)
            break;
        memcpy(listing->rows + at, b->patterns[i].name, n);
        at += n;
        listing->n_rows++;
    }
}

/* --- the cases ------------------------------------------------------------ */

/* Cases of the whole library. */
static const struct {
    const char *name;
    byi_kit_case_fn *run;
} library_cases[] = {
    {"entry/open", byi_kit_try_open},
    {"entry/query", byi_kit_try_query},
    {"entry/old-host", byi_kit_try_old_host},
    {"entry/new-host", byi_kit_try_new_host},
    {"entry/why", byi_kit_try_reason_buffer},
    {"entry/compat", byi_kit_try_compat},
    {"library/reload", byi_kit_try_reload},
    {"library/unload", byi_kit_try_unload},
};

/* Groups of cases of one row. */
static const struct {
    const char *group;
    byi_kit_case_fn *run;
    bool per_graph; /* a case for each generated graph; otherwise one case */
} row_groups[] = {
    {"table", byi_kit_try_row, false},
    {"numerics", byi_kit_try_numerics, true},
    {"states", byi_kit_try_states, false},
    {"cancel", byi_kit_try_cancel, false},
    {"threads", byi_kit_try_threads, false},
    {"memory", byi_kit_try_memory, false},
    {"heap", byi_kit_try_heap, false},
    {"blob", byi_kit_try_blob, false},
    {"manners", byi_kit_try_manners, false},
};

/* Groups of cases whose graphs have several random rows; `number` selects the
 * random graph. */
static const struct {
    const char *group;
    byi_kit_case_fn *run;
} graph_groups[] = {
    {"regions", byi_kit_try_region},
    {"chains", byi_kit_try_chains},
};

/* Whether `only`, from --only, is the case's name or a prefix that ends at a
 * slash; NULL selects all. */
static bool is_wanted(const char *name, const char *only)
{
    const size_t n = only ? strlen(only) : 0;
    return !only || (strncmp(name, only, n) == 0 &&
                     (!name[n] || name[n] == '/' || (n && only[n - 1] == '/')));
}

static void add_case(struct byi_card *card, const char *only,
                     struct byi_kit_case test)
{
    if (!is_wanted(test.name, only))
        return;
    const struct byi_card_entry entry = {.test = test};
    BYI_PUSH(&card->entries, entry);
}

static void add_row(struct byi_card *card, const char *row,
                    const struct byoc_conform_params *params)
{
    const uint32_t n = params->cases ? params->cases : CASES;
    for (size_t i = 0; i < BYI_COUNT(row_groups); i++) {
        for (uint32_t k = 0; k < (row_groups[i].per_graph ? n : 1); k++) {
            const char *name =
                row_groups[i].per_graph
                    ? byi_arena_printf(card->arena, "%s/%s/%u",
                                       row_groups[i].group, row, k)
                    : byi_arena_printf(card->arena, "%s/%s",
                                       row_groups[i].group, row);
            add_case(card, params->only,
                     (struct byi_kit_case){name, row_groups[i].run, row, k});
        }
    }
}

/* The context of add_suite_case. */
struct suite {
    struct byi_card *card;
    const char *only;
};

static void add_suite_case(void *ctx, const char *name, const char *folder)
{
    const struct suite *s = ctx;
    struct byi_arena *arena = s->card->arena;
    if (is_wanted(name, s->only))
        add_case(s->card, s->only,
                 (struct byi_kit_case){byi_arena_str(arena, name),
                                       byi_kit_try_suite,
                                       byi_arena_str(arena, folder), 0});
}

/* Add ONNX's own cases, or one that says that they are missing. */
static void add_suite(struct byi_card *card,
                      const struct byoc_conform_params *params)
{
    struct suite s = {.card = card, .only = params->only};
    const char *data = secure_getenv("ONNX_TESTDATA");
    data = data ? data : "/usr/share/libonnx-testdata/data";
    if (params->no_onnx || byi_suite_list(data, add_suite_case, &s) > 0 ||
        !is_wanted("onnx", params->only))
        return;
    struct byi_card_entry skipped = {
        .test = {"onnx", byi_kit_try_suite, NULL, 0},
        .verdict = {.outcome = BYI_UNTESTED}};
    snprintf(skipped.verdict.text, sizeof skipped.verdict.text,
             "found no case in %.400s, expected the files of libonnx-testdata",
             data);
    BYI_PUSH(&card->entries, skipped);
}

static void add_cases(struct byi_card *card,
                      const struct byoc_conform_params *params)
{
    for (size_t i = 0; i < BYI_COUNT(library_cases); i++)
        add_case(card, params->only,
                 (struct byi_kit_case){library_cases[i].name,
                                       library_cases[i].run, NULL, 0});
    const char *row = card->listing->rows;
    for (uint32_t i = 0; i < card->listing->n_rows; i++) {
        add_row(card, row, params);
        row += strlen(row) + 1;
    }
    const uint32_t n = params->cases ? params->cases : CASES;
    for (size_t k = 0; card->listing->n_rows && k < BYI_COUNT(graph_groups);
         k++)
        for (uint32_t i = 0; i < n; i++)
            add_case(card, params->only,
                     (struct byi_kit_case){
                         byi_arena_printf(card->arena, "%s/%u",
                                          graph_groups[k].group, i),
                         graph_groups[k].run, NULL, i});
    add_suite(card, params);
}

/* Add the case that --only names, if its number is larger than the numbers of
 * the usual cases: numerics/ROW/1000, regions/1000. */
static void add_named(struct byi_card *card,
                      const struct byoc_conform_params *params)
{
    const char *slash = strrchr(params->only, '/');
    const char *row = card->listing->rows;
    if (!slash || !slash[1] ||
        slash[1 + strspn(slash + 1, "0123456789")] != '\0')
        return;
    const uint32_t number = (uint32_t)strtoul(slash + 1, NULL, 10);
    for (size_t i = 0; i < BYI_COUNT(graph_groups); i++) {
        const size_t n = strlen(graph_groups[i].group);
        if (strncmp(params->only, graph_groups[i].group, n) == 0 &&
            params->only + n == slash)
            add_case(card, params->only,
                     (struct byi_kit_case){params->only, graph_groups[i].run,
                                           NULL, number});
    }
    for (uint32_t i = 0; i < card->listing->n_rows; i++) {
        const char *group = byi_arena_printf(card->arena, "numerics/%s/", row);
        if (strncmp(params->only, group, strlen(group)) == 0)
            add_case(card, params->only,
                     (struct byi_kit_case){params->only, byi_kit_try_numerics,
                                           row, number});
        row += strlen(row) + 1;
    }
}

/* --- running them --------------------------------------------------------- */

/* Whether to skip a case of chains, after `spent_ns` nanoseconds in earlier
 * ones; if so, sets its verdict. By default all cases of chains together get
 * the time limit of one case, and the first of them always runs. With --cases,
 * all run.
 */
static bool is_late(const struct byi_kit *kit, struct byi_card_entry *e,
                    const struct byoc_conform_params *params, uint64_t spent_ns)
{
    if (params->cases || e->test.run != byi_kit_try_chains ||
        (double)spent_ns < kit->seconds * 1e9)
        return false;
    e->verdict.outcome = BYI_UNTESTED;
    snprintf(e->verdict.text, sizeof e->verdict.text,
             "not tried: earlier chains took %.0f seconds; --cases N runs all "
             "N cases",
             (double)spent_ns * 1e-9);
    return true;
}

static void run_cases(struct byi_kit *kit, struct byi_card *card,
                      const struct byoc_conform_params *params)
{
    uint32_t hangs = 0;
    uint64_t chain_ns = 0;
    for (uint32_t i = 0; i < card->entries.n; i++) {
        struct byi_card_entry *e = &card->entries.at[i];
        if (params->progress)
            params->progress(params->progress_ctx, e->test.name, i,
                             card->entries.n);
        if (*e->verdict.text)
            continue; /* not run: add_suite has set its verdict */
        if (hangs >= MAX_HANGS) {
            e->verdict.outcome = BYI_UNTESTED;
            snprintf(e->verdict.text, sizeof e->verdict.text,
                     "not tried: %u earlier cases hang", hangs);
            continue;
        }
        if (is_late(kit, e, params, chain_ns))
            continue;
        const uint64_t begin = byi_now_ns();
        byi_kit_run_case(kit, &e->test, &e->verdict);
        if (e->test.run == byi_kit_try_chains)
            chain_ns += byi_now_ns() - begin;
        hangs += e->verdict.outcome == BYI_FAILED &&
                 e->verdict.rule == BYI_RULE_HANG;
    }
}

/* Add the only case of a plug-in that cannot be opened, with its verdict. */
static void add_opening(struct byi_card *card,
                        const struct byi_verdict *verdict)
{
    const struct byi_card_entry entry = {
        .test = {"entry/open", byi_kit_try_open, NULL, 0}, .verdict = *verdict};
    BYI_PUSH(&card->entries, entry);
}

static enum byoc_status check_params(const char *plugin,
                                     const struct byoc_conform_params *params,
                                     struct byoc_error *err)
{
    BYI_TRY(byi_reserved_check(params->reserved, err));
    if (plugin[0] != '/')
        return byi_fail(err, BYOC_EINVAL,
                        "plug-in: found %s, expected an absolute path", plugin);
    if (params->codegen > BYOC_CODEGEN_C)
        return byi_fail(err, BYOC_EINVAL,
                        "codegen: found %d, expected BYOC_CODEGEN_AUTO or "
                        "BYOC_CODEGEN_C; leave it 0 for the default",
                        (int)params->codegen);
    return BYOC_OK;
}

/* Open the plug-in, list the cases and run them. */
static enum byoc_status fill_card(struct byi_kit *kit, struct byi_card *card,
                                  const struct byoc_conform_params *params,
                                  struct byoc_error *err)
{
    const struct byi_kit_case open = {"entry/open", list_rows, NULL, 0};
    struct byi_verdict verdict;
    listing = card->listing;
    if (!listing)
        return byi_fail(err, BYOC_ENOMEM, "out of memory for the list of rows");
    byi_kit_run_case(kit, &open, &verdict);
    if (verdict.outcome == BYI_FAILED)
        add_opening(card, &verdict);
    else
        add_cases(card, params);
    if (!card->entries.n && params->only)
        add_named(card, params);
    if (!card->entries.n)
        return byi_fail(err, BYOC_EINVAL,
                        "only '%s': found no case of this name, expected one "
                        "that --json lists without --only",
                        params->only ? params->only : "");
    if (verdict.outcome != BYI_FAILED)
        run_cases(kit, card, params);
    return BYOC_OK;
}

enum byoc_status byoc_conform(const char *plugin,
                              const struct byoc_conform_params *params,
                              int json, int *failed, char **text,
                              struct byoc_error *err)
{
    struct byoc_conform_params full_params;
    *text = NULL;
    BYI_TRY(byi_params_read(&full_params,
                            BYI_PARAMS_SIZE(byoc_conform_params, progress_ctx),
                            params, err));
    params = &full_params;
    BYI_TRY(check_params(plugin, params, err));
    struct byi_kit kit = {.path = plugin,
                          .seed = params->seed ? params->seed : 1,
                          .seconds =
                              params->seconds > 0 ? params->seconds : SECONDS,
                          .codegen = params->codegen};
    struct byi_card card = {.arena = byi_arena_new(),
                            .path = plugin,
                            .seed = kit.seed,
                            .options = params->options,
                            .listing = byi_shared_new(sizeof *listing)};
    const enum byoc_status status = fill_card(&kit, &card, params, err);
    if (status == BYOC_OK) {
        *failed = (int)byi_card_failed(&card);
        struct byi_text out = {0};
        (json ? byi_card_json : byi_card_text)(&card, &out);
        *text = out.at; /* freed by byoc_string_free */
    }
    byi_vec_free(card.entries.at);
    byi_shared_free(card.listing, sizeof *listing);
    byi_arena_free(&card.arena);
    return status;
}
