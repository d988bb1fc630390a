/* SPDX-License-Identifier: Apache-2.0 */
/* page.c: writes a ledger as an HTML page. CMake joins the page's parts from
 * page/; this file inserts the ledger as JSON, escaped so that no name in it
 * can end the script element.
 */
#include "page.h"

#include "report.h"

#include <string.h>

/* Add JSON to a script element: as valid UTF-8, with '<', which occurs only in
 * JSON strings, escaped. */
static void add_json(struct byi_text *out, const char *json, size_t n)
{
    while (n) {
        const char *less = memchr(json, '<', n);
        const size_t n_before = less ? (size_t)(less - json) : n;
        byi_utf8_add(out, json, n_before);
        if (less)
            byi_text_addf(out, "\\u003c");
        json += n_before + (less != NULL);
        n -= n_before + (less != NULL);
    }
}

/* Add the meaning of each reason's code. */
static void add_reasons(struct byi_text *out)
{
    for (int i = 0; i < BYI_N_REASONS; i++) {
        byi_text_addf(out, "%s", i ? ", " : "");
        byi_json_quote(out, byi_reason_code((enum byi_reason)i));
        byi_text_addf(out, ": ");
        byi_json_quote(out, byi_reason_text((enum byi_reason)i));
    }
}

static enum byoc_status check_ledger(const char *json, size_t n,
                                     struct byoc_error *err)
{
    struct byi_report report;
    BYI_TRY(byi_report_read(json, n, &report, err));
    byi_report_free(&report);
    return BYOC_OK;
}

/* Add a member to the page's data; nothing if `json` is NULL. */
static void add_member(struct byi_text *out, const char *name, const char *json)
{
    if (!json)
        return;
    byi_text_addf(out, ", \"%s\": ", name);
    add_json(out, json, strlen(json));
}

enum byoc_status byi_ledger_write_page(const char *json, size_t n,
                                       const struct byi_page *page,
                                       struct byi_text *out,
                                       struct byoc_error *err)
{
    BYI_TRY(check_ledger(json, n, err));
    if (page && page->against) {
        const enum byoc_status status =
            check_ledger(page->against, strlen(page->against), err);
        if (status != BYOC_OK)
            return byi_prefix(err, "the old ledger");
    }
    byi_text_add(out, byi_page_head, strlen(byi_page_head));
    byi_text_addf(out, "{\"byoc\": \"%s\", \"reasons\": {", BYI_VERSION);
    add_reasons(out);
    byi_text_addf(out, "}, \"ledger\": ");
    add_json(out, json, n);
    if (page) {
        add_member(out, "against", page->against);
        add_member(out, "profile", page->profile);
    }
    byi_text_addf(out, "}\n");
    byi_text_add(out, byi_page_tail, strlen(byi_page_tail));
    return BYOC_OK;
}
