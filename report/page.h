/* SPDX-License-Identifier: Apache-2.0 */
/* report/page.h: a ledger's JSON as pictures: a page for browsers, a graph
 * for Graphviz (docs/page.md).
 */
#ifndef BYI_PAGE_H
#define BYI_PAGE_H

#include "core/base/base.h"

/* Errors of both: those of byi_report_read. */

/* page.c: the ledger as one HTML page that needs nothing else. */
enum byoc_status byi_ledger_page(const char *json, size_t n,
                                 struct byi_text *out, struct byoc_error *err);
/* dot.c: the ledger as text for Graphviz, a cluster for each region. */
enum byoc_status byi_ledger_dot(const char *json, size_t n,
                                struct byi_text *out, struct byoc_error *err);

/* page/: the page, before and after the ledger; made by CMake. */
extern const char byi_page_head[], byi_page_tail[];

#endif
