/* SPDX-License-Identifier: Apache-2.0 */
/* report.c: `byoc report`: prints a ledger, or the differences between two.
 */
#include "cli.h"

#include "runtime/internal.h"

#include <string.h>

/* The options of `byoc report`. */
struct report_options {
    struct byi_ledger_view view;
    double tolerance;             /* percentage points; see --tolerance */
    struct byi_pictures pictures; /* of a comparison */
};

static enum byoc_status explain(const char *ledger, const char *const *nodes,
                                struct byoc_error *err)
{
    for (uint32_t i = 0; nodes[i]; i++) {
        char *text;
        BYI_TRY(byoc_ledger_explain(ledger, nodes[i], &text, err));
        printf("%s%s", i ? "\n" : "", text);
        byoc_string_free(text);
    }
    return BYOC_OK;
}

int byi_print_ledger(const struct byi_command *command, const char *path,
                     const char *ledger, const struct byi_ledger_view *view)
{
    struct byoc_error err;
    char *text = NULL;
    enum byoc_status status = BYOC_OK;
    if (view->explain && (view->json || view->all_nodes))
        status = byi_fail(&err, BYOC_EINVAL,
                          "found --explain with --json or --all, expected it "
                          "alone; leave out one of them");
    else if (view->explain)
        status = explain(ledger, view->explain, &err);
    else if (!view->json)
        status = byoc_ledger_text(ledger, view->all_nodes, &text, &err);
    if (status != BYOC_OK) {
        byi_prefix(&err, "%s", path);
        return byi_cli_print_error(command, &err);
    }
    if (!view->explain)
        fputs(view->json ? ledger : text, stdout);
    byoc_string_free(text);
    return BYI_EXIT_OK;
}

/* Append the ledger of an artifact. */
static enum byoc_status read_artifact(const char *path, struct byi_text *ledger,
                                      struct byoc_error *err)
{
    struct byi_artifact a;
    BYI_TRY(byoc_internal_artifact_open(path, &a, err));
    byi_text_add(ledger, a.image.ledger, a.image.ledger_bytes);
    const bool found = a.image.ledger_bytes > 0;
    byoc_internal_artifact_close(&a);
    return found ? BYOC_OK
                 : byi_fail(err, BYOC_EINVAL,
                            "%s: found no ledger in the artifact, expected "
                            "one; compile the model again",
                            path);
}

enum byoc_status byi_read_ledger(const char *path, struct byi_text *ledger,
                                 struct byoc_error *err)
{
    enum { MAX_BYTES = 1 << 30 };
    const void *data;
    size_t n;
    BYI_TRY(byi_map_file(path, &data, &n, err));
    const bool is_elf = n >= 4 && memcmp(data, "\177ELF", 4) == 0;
    if (!is_elf && n <= MAX_BYTES)
        byi_text_add(ledger, n ? data : "", n);
    byi_unmap(data, n);
    if (is_elf)
        return read_artifact(path, ledger, err);
    if (n > MAX_BYTES)
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found %zu bytes, expected a ledger of at most %d",
                        path, n, MAX_BYTES);
    return BYOC_OK;
}

static int show_ledger(const struct report_options *params, const char *path)
{
    struct byi_text ledger = {0};
    struct byoc_error err;
    char *text = NULL;
    enum byoc_status status = byi_read_ledger(path, &ledger, &err);
    if (status == BYOC_OK && params->view.json) {
        /* only check that this is a ledger: its JSON is printed unchanged */
        status = byoc_ledger_text(ledger.at, false, &text, &err);
        if (status != BYOC_OK)
            byi_prefix(&err, "%s", path);
    }
    const int code = status == BYOC_OK
                         ? byi_print_ledger(&byi_command_report, path,
                                            ledger.at, &params->view)
                         : byi_cli_print_error(&byi_command_report, &err);
    byoc_string_free(text);
    byi_text_free(&ledger);
    return code;
}

static enum byoc_status diff(const struct report_options *params,
                             const char *old_path, const char *new_path,
                             int *worse, char **text, struct byoc_error *err)
{
    struct byi_text old = {0}, new = {0};
    enum byoc_status status = byi_read_ledger(old_path, &old, err);
    if (status == BYOC_OK)
        status = byi_read_ledger(new_path, &new, err);
    if (status == BYOC_OK) {
        status = byoc_ledger_diff(old.at, new.at, params->tolerance,
                                  params->view.json, worse, text, err);
        if (status != BYOC_OK)
            byi_prefix(err, "%s, %s", old_path, new_path);
    }
    if (status == BYOC_OK && params->pictures.html) {
        struct byi_pictures pictures = params->pictures;
        pictures.against = old_path;
        status = byi_write_pictures(&pictures, new_path, new.at, err);
        if (status != BYOC_OK)
            byoc_string_free(*text);
    }
    byi_text_free(&old);
    byi_text_free(&new);
    return status;
}

static int compare(const struct report_options *params, const char *old_path,
                   const char *new_path)
{
    struct byoc_error err;
    char *text = NULL;
    int worse = 0;
    if (diff(params, old_path, new_path, &worse, &text, &err) != BYOC_OK)
        return byi_cli_print_error(&byi_command_report, &err);
    fputs(text, stdout);
    byoc_string_free(text);
    return worse ? BYI_EXIT_VERDICT : BYI_EXIT_OK;
}

/* The first given option that applies only to the other form of the command;
 * NULL: none. */
static const char *find_misplaced(const struct report_options *params,
                                  bool is_diff)
{
    if (!is_diff)
        return params->tolerance > 0   ? "--tolerance"
               : params->pictures.html ? "--html"
                                       : NULL;
    return params->view.explain     ? "--explain"
           : params->view.all_nodes ? "--all"
                                    : NULL;
}

static int run(int argc, char **argv)
{
    struct report_options params = {0};
    const struct byi_option options[] = {
        {"json", 0, BYI_OPTION_FLAG, &params.view.json, NULL, "print JSON"},
        {"all", 'a', BYI_OPTION_FLAG, &params.view.all_nodes, NULL,
         "show: print every node"},
        {"explain", 0, BYI_OPTION_LIST, &params.view.explain, "NODE",
         "show: print everything about one node"},
        {"tolerance", 0, BYI_OPTION_PERCENT, &params.tolerance, "POINTS",
         "diff: exit with 1 only if a share shrinks by more (default: 0)"},
        {"html", 0, BYI_OPTION_TEXT, &params.pictures.html, "FILE",
         "diff: write a page with both graphs side by side"},
    };
    const char *args[3];
    uint32_t n;
    int code =
        byi_parse_options(&byi_command_report, options, BYI_COUNT(options),
                          argc, argv, 2, 3, args, &n);
    if (code >= 0)
        return code;
    const bool is_show = n == 2 && strcmp(args[0], "show") == 0;
    const bool is_diff = n == 3 && strcmp(args[0], "diff") == 0;
    const char *misplaced = find_misplaced(&params, is_diff);
    if (misplaced && (is_show || is_diff)) {
        fprintf(stderr, "byoc report: found %s, expected it with `report %s`\n",
                misplaced, is_show ? "diff" : "show");
        return BYI_EXIT_USAGE;
    }
    if (is_show)
        return show_ledger(&params, args[1]);
    if (is_diff)
        return compare(&params, args[1], args[2]);
    fprintf(stderr,
            "byoc report: found '%s' with %u file%s, expected %s; `byoc report "
            "--help` says more\n",
            args[0], n - 1, n == 2 ? "" : "s", byi_command_report.usage);
    return BYI_EXIT_USAGE;
}

const struct byi_command byi_command_report = {
    .name = "report",
    .usage = "show LEDGER | diff OLD NEW [OPTIONS]",
    .summary = "print or compare ledgers: files of --report, or artifacts",
    .first = "show|diff",
    .example = "byoc check digits.onnx --report old.json\n"
               "byoc check digits.onnx --report new.json --min-region-nodes 1\n"
               "byoc report diff old.json new.json\n"
               "byoc report show new.json --all\n",
    .run = run,
};
