/* SPDX-License-Identifier: Apache-2.0 */
/* feed_models.c: the feed functions of models, and of texts of compile options.
 */
#include <byoc/byoc.h>

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#include "compile/passes.h"
#include "core/ir/pass.h"
#include "frontend_onnx/onnx.h"
#include "patterns/patterns.h"
#include "tests/print_pattern.h"

/* --- ONNX ----------------------------------------------------------------- */

/* Printed text must parse to the same module. */
static bool print_and_parse(struct fuzz_case *c, const struct byi_module *m)
{
    struct byi_text first = {0}, second = {0};
    struct byi_module *reparsed = NULL;
    struct byoc_error err;
    char side[512];
    snprintf(side, sizeof side, "%s/side.consts", c->temp);
    FILE *stream = fopen(side, "wb");
    byi_print_module(m, &first, stream);
    if (stream)
        fclose(stream);
    bool good = true;
    if (byi_parse_module(first.at, first.n, "printed", side, &reparsed, &err) !=
        BYOC_OK) {
        good = fuzz_wrong(c, "the printed text does not parse: ", err.text);
    } else {
        byi_print_module(reparsed, &second, NULL);
        if (strcmp(first.at, second.at) != 0)
            good = fuzz_wrong(
                c, "the printed text parses to a different module", "");
    }
    byi_module_free(&reparsed);
    byi_text_free(&first);
    byi_text_free(&second);
    return good;
}

/* Write the external data of the seeds' models to the folder of this child. */
static bool write_external(const struct fuzz_case *c)
{
    char path[512];
    static const char zeros[4096];
    snprintf(path, sizeof path, "%s/external.bin", c->temp);
    return fuzz_write(path, zeros, sizeof zeros);
}

bool fuzz_feed_onnx(struct fuzz_case *c)
{
    static const struct byi_onnx_params params;
    struct byi_module *m = NULL;
    struct byoc_error err;
    char to[512];
    const char *path = fuzz_as_file(c, "mutant.onnx");
    if (memmem(c->bytes, c->n, "external.bin", 12) && !write_external(c))
        return fuzz_wrong(c, "cannot write external data", "");
    bool good = true;
    if (byi_onnx_import(path, &params, &m, &err) != BYOC_OK) {
        good = fuzz_refused(c, "import", &err);
    } else {
        c->accepted = true;
        if (byi_verify(m, &err) != BYOC_OK)
            good = fuzz_wrong(c, "imported, but does not verify: ", err.text);
        good = good && print_and_parse(c, m);
    }
    byi_module_free(&m);
    const struct byi_onnx_note note = {"byoc.fuzz", "a note"};
    const struct byi_onnx_notes notes = {.n = 1, .at = &note};
    snprintf(to, sizeof to, "%s/noted.onnx", c->temp);
    if (good && fuzz_below(&c->rng, 8) == 0 &&
        byi_onnx_annotate(path, to, 0, NULL, &notes, &err) != BYOC_OK)
        good = fuzz_refused(c, "annotate", &err);
    return good;
}

bool fuzz_feed_onnx_run(struct fuzz_case *c)
{
    const char *path = fuzz_as_file(c, "mutant.onnx");
    if (memmem(c->bytes, c->n, "external.bin", 12) && !write_external(c))
        return fuzz_wrong(c, "cannot write external data", "");
    return fuzz_compile_and_run(c, path);
}

/* --- the text form -------------------------------------------------------- */

bool fuzz_feed_text(struct fuzz_case *c)
{
    struct byi_module *m = NULL;
    struct byoc_error err;
    if (byi_parse_module(c->bytes, c->n, "mutant", NULL, &m, &err) != BYOC_OK)
        return fuzz_refused(c, "parse", &err);
    c->accepted = true;
    bool good = true;
    if (byi_verify(m, &err) != BYOC_OK)
        good = fuzz_wrong(c, "parsed, but does not verify: ", err.text);
    good = good && print_and_parse(c, m);
    byi_module_free(&m);
    return good;
}

bool fuzz_feed_text_run(struct fuzz_case *c)
{
    return fuzz_compile_and_run(c, fuzz_as_file(c, "mutant.ir"));
}

bool fuzz_feed_consts(struct fuzz_case *c)
{
    struct byi_module *m = NULL;
    struct byi_text text = {0};
    struct byoc_error err;
    char path[512];
    snprintf(path, sizeof path, "%s/large.ir", c->seeds);
    bool good = fuzz_read(path, &text);
    if (!good)
        return fuzz_wrong(c, "cannot read ", path);
    if (byi_parse_module(text.at, text.n, "large", fuzz_as_file(c, "mutant"),
                         &m, &err) != BYOC_OK)
        good = fuzz_refused(c, "parse", &err);
    else
        c->accepted = true;
    byi_module_free(&m);
    byi_text_free(&text);
    return good;
}

/* --- patterns ------------------------------------------------------------- */

static const char *accept_all(const struct byoc_host *host,
                              const struct byoc_match *m)
{
    (void)host, (void)m;
    return NULL;
}

/* Printed text must compile to a pattern that prints the same. */
static bool check_pattern(struct fuzz_case *c, const struct byi_pattern *p)
{
    struct byi_text first = {0}, second = {0};
    struct byi_pattern_table *reparsed = NULL;
    struct byoc_error err;
    print_pattern(p, &first);
    const struct byoc_pattern row = {"fuzz.row", first.at, accept_all};
    bool good = true;
    if (byi_patterns_compile(&row, 1, &reparsed, &err) != BYOC_OK) {
        good =
            fuzz_wrong(c, "the printed pattern does not compile: ", err.text);
    } else {
        print_pattern(&reparsed->at[0], &second);
        if (strcmp(first.at, second.at) != 0)
            good = fuzz_wrong(c, "the second print differs: ", second.at);
    }
    byi_patterns_free(&reparsed);
    byi_text_free(&first);
    byi_text_free(&second);
    return good;
}

bool fuzz_feed_pattern(struct fuzz_case *c)
{
    struct byi_pattern_table *table = NULL;
    struct byi_arena *arena = byi_arena_new();
    struct byoc_error err;
    const char *text = byi_arena_strn(arena, c->bytes, c->n);
    const struct byoc_pattern rows[] = {{"fuzz.row", text, accept_all},
                                        {"fuzz.twice", text, accept_all}};
    const char *findings[BYI_COUNT(rows)];
    bool good = true;
    if (byi_patterns_compile(rows, BYI_COUNT(rows), &table, &err) != BYOC_OK) {
        good = fuzz_refused(c, "compile", &err);
    } else {
        c->accepted = true;
        good = check_pattern(c, &table->at[0]);
    }
    byi_patterns_free(&table);
    byi_patterns_lint(rows, BYI_COUNT(rows), arena, findings);
    byi_arena_free(&arena);
    return good;
}

/* --- lines of text -------------------------------------------------------- */

enum { MAX_LINES = 12 };

/* The first MAX_LINES lines of the input, ending in NULL. */
static const char **split(const struct fuzz_case *c, struct byi_arena *arena)
{
    const char **lines = byi_arena_calloc(arena, MAX_LINES + 1, sizeof *lines);
    const char *text = byi_arena_strn(arena, c->bytes, c->n);
    for (uint32_t i = 0; i < MAX_LINES && *text; i++) {
        const size_t n = strcspn(text, "\n");
        lines[i] = byi_arena_strn(arena, text, n);
        text += n + (text[n] == '\n');
    }
    return lines;
}

/* A list of passes, then options of passes, a line each. */
bool fuzz_feed_passes(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    struct byi_pass_list list = {0};
    struct byoc_error err;
    const char **lines = split(c, arena);
    bool good = true;
    if (byi_passes_parse(lines[0] ? lines[0] : "", arena, &list, &err) !=
        BYOC_OK)
        good = fuzz_refused(c, "passes", &err);
    const struct byi_pass_context ctx = {
        .options = lines[0] ? lines + 1 : lines, .known = byi_passes_known()};
    uint32_t n = 0;
    while (ctx.known[n])
        n++;
    if (good && byi_options_check(ctx.known, n, &ctx, &err) != BYOC_OK)
        good = fuzz_refused(c, "options", &err);
    else
        c->accepted = good;
    byi_vec_free(list.passes.at);
    byi_arena_free(&arena);
    return good;
}

/* The values of one of the params, in their order; NULL ends them. */
struct lists {
    const char *at[MAX_LINES + 1];
    uint32_t n;
};

/* Lines "NAME: VALUE", each of which sets one of the params. */
bool fuzz_feed_params(struct fuzz_case *c)
{
    struct byi_arena *arena = byi_arena_new();
    static const char *const names[] = {
        "dims",    "shapes",   "values",  "exclude", "only",
        "disable", "require",  "options", "passes",  "add_passes",
        "warm",    "patterns", "backends"};
    static const char *const singles[] = {"codegen", "stop_after",
                                          "partition_by", "function"};
    struct lists lists[BYI_COUNT(names)] = {0};
    const char *single[BYI_COUNT(singles)] = {0};
    const char **lines = split(c, arena);
    for (uint32_t i = 0; lines[i]; i++) {
        const size_t n = strcspn(lines[i], ":");
        const char *value = lines[i] + n + (lines[i][n] == ':');
        value += strspn(value, " ");
        for (uint32_t k = 0; k < BYI_COUNT(names); k++)
            if (strlen(names[k]) == n && memcmp(names[k], lines[i], n) == 0)
                lists[k].at[lists[k].n++] = value;
        for (uint32_t k = 0; k < BYI_COUNT(singles); k++)
            if (strlen(singles[k]) == n && memcmp(singles[k], lines[i], n) == 0)
                single[k] = value;
    }
    char model[512], costs[512];
    snprintf(model, sizeof model, "%s/external.onnx", c->seeds);
    snprintf(costs, sizeof costs, "%s/costs", c->temp);
    const struct byoc_compile_params params = {
        .dims = lists[0].at,
        .shapes = lists[1].at,
        .values = lists[2].at,
        .exclude = lists[3].at,
        .only = lists[4].at,
        .disable = lists[5].at,
        .require = lists[6].at,
        .options = lists[7].at,
        .passes = lists[8].n ? lists[8].at : NULL,
        .add_passes = lists[9].at,
        .warm = lists[10].n ? lists[10].at : NULL,
        .patterns = lists[11].at,
        .backends = lists[12].n ? lists[12].at : NULL,
        .plugins = BUILD_DIR "/libbyoc_backend_dnnl.so",
        .codegen = single[0] ? (enum byoc_codegen)atoi(single[0]) : 0,
        .stop_after = single[1],
        .partition_by = single[2] ? (enum byoc_partition)atoi(single[2]) : 0,
        .function = single[3],
        .cost_table = costs,
        .measure_seconds = 0.02,
        .threads = 1,
        .verify = 1};
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    bool good = true;
    if (byoc_compile(model, &params, &compiled, &err) != BYOC_OK)
        good = fuzz_refused(c, "compile", &err);
    else
        c->accepted = true;
    byoc_compiled_free(&compiled);
    byi_arena_free(&arena);
    return good;
}
