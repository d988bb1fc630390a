/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_text.c: implements the public functions that print and compare
 * ledgers.
 */
#include <byoc/byoc.h>

#include "core/base/guard.h"
#include "report/report.h"

#include <string.h>

enum byoc_status byoc_ledger_text(const char *ledger_json, int every_node,
                                  char **text, struct byoc_error *err)
{
    struct byi_report r;
    struct byi_text out = {0};
    *text = NULL;
    BYI_BORDER(err);
    BYI_TRY(byi_report_read(ledger_json, strlen(ledger_json), &r, err));
    byi_report_add_text(&r, every_node != 0, &out);
    byi_report_free(&r);
    *text = out.at;
    return BYOC_OK;
}

enum byoc_status byoc_ledger_explain(const char *ledger_json, const char *node,
                                     char **text, struct byoc_error *err)
{
    struct byi_report r;
    struct byi_text name = {0}, out = {0};
    *text = NULL;
    BYI_BORDER(err);
    BYI_TRY(byi_report_read(ledger_json, strlen(ledger_json), &r, err));
    byi_utf8_add(&name, node, strlen(node)); /* as the ledger has it */
    const enum byoc_status status =
        byi_report_add_node(&r, name.n ? name.at : "", &out, err);
    byi_text_free(&name);
    byi_report_free(&r);
    *text = out.at;
    return status;
}

enum byoc_status byoc_ledger_diff(const char *old_json, const char *new_json,
                                  double tolerance, int json, int *worse,
                                  char **text, struct byoc_error *err)
{
    struct byi_report old, new;
    struct byi_text out = {0};
    *text = NULL;
    *worse = 0;
    BYI_BORDER(err);
    enum byoc_status status =
        byi_report_read(old_json, strlen(old_json), &old, err);
    if (status != BYOC_OK) {
        byi_prefix(err, "the old ledger");
        return status;
    }
    status = byi_report_read(new_json, strlen(new_json), &new, err);
    if (status == BYOC_OK)
        *worse = byi_report_add_diff(&old, &new, tolerance, json != 0, &out);
    else
        byi_prefix(err, "the new ledger");
    if (status == BYOC_OK)
        byi_report_free(&new);
    byi_report_free(&old);
    *text = out.at;
    return status;
}

void byoc_string_free(char *text)
{
    byi_vec_free(text);
}
