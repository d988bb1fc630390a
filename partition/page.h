/* partition/page.h: a ledger's JSON as pictures: a page for browsers, a graph
 * for Graphviz (docs/page.md).
 */
#ifndef BYI_PAGE_H
#define BYI_PAGE_H

#include "core/base.h"

/* Parse a ledger. Fails with BYOC_EPARSE where the text is none, or of a
 * version that does not say what a picture needs. Free with byi_json_free. */
enum byoc_status byi_ledger_parse(const char *json, size_t n,
                                  struct cJSON **root, struct byoc_error *err);

/* page.c: the ledger as one HTML page that needs nothing else. */
enum byoc_status byi_ledger_page(const char *json, size_t n,
                                 struct byi_text *out, struct byoc_error *err);
/* dot.c: the ledger as text for Graphviz, a cluster for each region. */
enum byoc_status byi_ledger_dot(const char *json, size_t n,
                                struct byi_text *out, struct byoc_error *err);

/* page/: the page, before and after the ledger; made by CMake. */
extern const char byi_page_head[], byi_page_tail[];

#endif
