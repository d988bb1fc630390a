/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c: `byoc backends`: lists the plug-ins and whether each can be
 * used; `--lint` checks every row of their pattern tables, or the rows of
 * `--pattern`.
 */
#include "cli.h"

#include "runtime/internal.h"

#include <string.h>

/* The plug-ins that were printed so far. */
struct plugin_count {
    uint32_t usable, rejected;
    struct byi_text *json; /* the list so far, for --json */
};

/* Print a plug-in, and count it. `why`: why it cannot be used; NULL: it can. */
static void print_backend(void *ctx, const char *path, const char *name,
                          const char *version, const char *why)
{
    struct plugin_count *count = ctx;
    if (why) {
        bool has_path = strncmp(why, path, strlen(path)) == 0;
        printf("rejected  %s%s%s\n", has_path ? "" : path, has_path ? "" : ": ",
               why);
        count->rejected++;
    } else {
        printf("%-9s %s (%s)\n", name, path, version);
        count->usable++;
    }
}

/* Append a member to an object; if `value` is NULL, the member is null. */
static void put_member(struct byi_text *json, const char *name,
                       const char *value)
{
    byi_text_addf(json, "\"%s\": ", name);
    if (value)
        byi_json_quote(json, value);
    else
        byi_text_addf(json, "null");
}

/* Like print_backend, but append it to the JSON. */
static void add_backend(void *ctx, const char *path, const char *name,
                        const char *version, const char *why)
{
    struct plugin_count *count = ctx;
    struct byi_text *json = count->json;
    byi_text_addf(json, "%s\n    {",
                  count->usable + count->rejected ? "," : "");
    put_member(json, "path", path);
    byi_text_addf(json, ", ");
    put_member(json, "name", name);
    byi_text_addf(json, ", ");
    put_member(json, "version", version);
    byi_text_addf(json, ", \"usable\": %s, ", why ? "false" : "true");
    put_member(json, "why", why);
    byi_text_addf(json, "}");
    if (why)
        count->rejected++;
    else
        count->usable++;
}

/* Print the native kernels and the warnings, after the plug-ins. `duplicates`:
 * one warning a line, about each library that the process has twice. */
static void print_native_and_warnings(const struct byi_text *duplicates)
{
    printf("native    in libbyoc_runtime.so (byoc %s), always there\n",
           byoc_version());
    for (const char *line = duplicates->at; line && *line;
         line = strchr(line, '\n') + 1)
        printf("warning   %.*s\n", (int)strcspn(line, "\n"), line);
}

static void print_json(const struct byi_text *plugins,
                       const struct byi_text *duplicates)
{
    struct byi_text json = {0};
    byi_text_addf(&json, "{\"plugins\": [%s\n  ],\n  ",
                  plugins->at ? plugins->at : "");
    put_member(&json, "native", byoc_version());
    byi_text_addf(&json, ",\n  ");
    put_member(&json, "warnings", duplicates->n ? duplicates->at : NULL);
    printf("%s}\n", json.at);
    byi_text_free(&json);
}

/* Print every plug-in, whether it can be used, and warnings about libraries of
 * which the process has two copies. Returns the exit code. */
static int list_backends(const char *plugins, bool as_json)
{
    struct byi_text json = {0}, duplicates = {0};
    struct plugin_count count = {.json = &json};
    byoc_backends_list(plugins, as_json ? add_backend : print_backend, &count);
    byoc_internal_copies(&duplicates);
    if (as_json)
        print_json(&json, &duplicates);
    else
        print_native_and_warnings(&duplicates);
    byi_text_free(&json);
    byi_text_free(&duplicates);
    return count.rejected ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}

/* --- lint ----------------------------------------------------------------- */

enum { MAX_MODELS = 256 };

/* A row of a plug-in's table. */
struct backend_row {
    const char *name;
    const char *finding; /* the fault of the row; NULL: none */
    uint32_t matches;    /* number of matches in the models */
};

/* The findings of --lint. */
struct lint {
    struct byi_arena *arena;
    BYI_VEC(struct backend_row) rows;
};

static void add_row(void *ctx, const char *name, const char *finding)
{
    struct lint *lint = ctx;
    struct backend_row row = {.name = byi_arena_str(lint->arena, name)};
    if (finding)
        row.finding = byi_arena_str(lint->arena, finding);
    BYI_PUSH(&lint->rows, row);
}

/* Count the composites of each row in the text of a partitioned model. */
static void count_matches(struct lint *lint, const char *ir)
{
    static const char opening[] = "Composite=\"";
    while ((ir = strstr(ir, opening))) {
        ir += strlen(opening);
        const size_t n = strcspn(ir, "\"");
        for (uint32_t i = 0; i < lint->rows.n; i++) {
            struct backend_row *row = &lint->rows.at[i];
            row->matches +=
                strlen(row->name) == n && memcmp(row->name, ir, n) == 0;
        }
    }
}

/* Compile a model, and count the matches in it. Returns the exit code. */
static int match_model(struct lint *lint, const char *path,
                       const struct byi_model_options *o)
{
    struct byoc_compiled *compiled = NULL;
    struct byoc_error err;
    int gate;
    if (byi_compile_model(path, o, &compiled, &gate, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_backends, &err);
    count_matches(lint, byoc_compiled_ir(compiled));
    byoc_compiled_free(&compiled);
    return BYI_EXIT_OK;
}

/* Print a verdict on each row. Returns the exit code. */
static int print_rows(const struct lint *lint, uint32_t n_models)
{
    uint32_t findings = 0;
    for (uint32_t i = 0; i < lint->rows.n; i++) {
        const struct backend_row *row = &lint->rows.at[i];
        const bool unused = n_models > 0 && row->matches == 0;
        findings += row->finding || unused;
        if (row->finding)
            printf("%-24s %s\n", row->name, row->finding);
        else if (unused)
            printf("%-24s no model matches it\n", row->name);
        else if (n_models > 0)
            printf("%-24s %u match%s\n", row->name, row->matches,
                   row->matches == 1 ? "" : "es");
        else
            printf("%-24s ok\n", row->name);
    }
    printf("%u row%s, %u with findings\n", lint->rows.n,
           byi_plural(lint->rows.n), findings);
    return findings ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}

/* Check the rows, then count their matches in the models. Compiles no model if
 * a row is broken, since a broken row makes every compile fail. An unreachable
 * row is a finding, but not broken. */
static int run_lint(const struct byi_model_options *o,
                    const char *const *models, uint32_t n_models)
{
    struct lint lint = {.arena = byi_arena_new()};
    struct byoc_error err;
    bool broken = false;
    int code = BYI_EXIT_OK;
    if (byoc_patterns_lint(o->compile.plugins, o->compile.patterns, add_row,
                           &lint, &err))
        code = byi_cli_print_error(&byi_command_backends, &err);
    for (uint32_t i = 0; i < lint.rows.n; i++)
        broken = broken || (lint.rows.at[i].finding &&
                            strncmp(lint.rows.at[i].finding, "unreachable",
                                    strlen("unreachable")) != 0);
    if (broken)
        n_models = 0;
    for (uint32_t i = 0; i < n_models && code == BYI_EXIT_OK; i++)
        code = match_model(&lint, models[i], o);
    if (code == BYI_EXIT_OK)
        code = print_rows(&lint, n_models);
    byi_vec_free(lint.rows.at);
    byi_arena_free(&lint.arena);
    return code;
}

static int run(int argc, char **argv)
{
    struct byi_model_options o = {.command = &byi_command_backends};
    bool lint = false, json = false;
    const char *models[MAX_MODELS];
    const struct byi_option options[] = {
        {"plugin", 0, BYI_OPTION_PATHS, &o.compile.plugins, "PATH[:PATH]",
         "more plug-ins or folders; \"only\": no default folders"},
        {"json", 0, BYI_OPTION_FLAG, &json, NULL, "print JSON"},
        {"lint", 0, BYI_OPTION_FLAG, &lint, NULL,
         "check the plug-ins' pattern rows, and whether each matches in the "
         "models"},
        {"pattern", 0, BYI_OPTION_LIST, &o.compile.patterns, "NAME=PATTERN",
         "check these rows instead"},
    };
    uint32_t n;
    int code =
        byi_parse_options(&byi_command_backends, options, BYI_COUNT(options),
                          argc, argv, 0, MAX_MODELS, models, &n);
    if (code >= 0)
        return code;
    if (!lint && (n || o.compile.patterns)) {
        fprintf(stderr,
                "byoc backends: %s: found no --lint, expected --lint with "
                "models or --pattern\n",
                n ? models[0] : "--pattern");
        return BYI_EXIT_USAGE;
    }
    o.native = o.compile.patterns;
    if (lint)
        return run_lint(&o, models, n);
    return list_backends(o.compile.plugins, json);
}

const struct byi_command byi_command_backends = {
    .name = "backends",
    .usage = "[--lint [MODEL...]] [OPTIONS]",
    .summary = "list the plug-ins, with a verdict on each",
    .example = "byoc backends\n"
               "byoc backends --lint\n",
    .steps = BYI_COMPILES,
    .run = run,
};
