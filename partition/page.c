/* page.c: a ledger as a page for browsers. The page is in page/, where CMake
 * joins its parts; here the ledger goes in, as JSON that no name in it can
 * break out of.
 */
#include "page.h"

#include "ledger.h"

#include <cjson/cJSON.h>

#include <string.h>

enum { LEDGER_VERSION = 2 };

enum byoc_status byi_ledger_parse(const char *json, size_t n, cJSON **root,
                                  struct byoc_error *err)
{
    BYI_TRY(byi_json_parse(json, n, 1u << 30, root, err));
    const cJSON *format = cJSON_GetObjectItemCaseSensitive(*root, "format");
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(*root, "version");
    enum byoc_status status = BYOC_OK;
    if (!cJSON_IsString(format) ||
        strcmp(format->valuestring, "byoc-ledger") != 0)
        status = byi_fail(err, BYOC_EPARSE,
                          "found JSON without \"format\": \"byoc-ledger\", "
                          "expected a ledger");
    else if (!cJSON_IsNumber(version) || version->valuedouble != LEDGER_VERSION)
        status = byi_fail(err, BYOC_EPARSE,
                          "found a ledger of version %.0f, expected %d; "
                          "compile the model again",
                          cJSON_IsNumber(version) ? version->valuedouble : 0,
                          LEDGER_VERSION);
    if (status != BYOC_OK)
        byi_json_free(root);
    return status;
}

/* JSON for a script element: valid UTF-8, and no '<', which JSON has in
 * strings only. */
static void add_json(struct byi_text *out, const char *json, size_t n)
{
    while (n) {
        const char *less = memchr(json, '<', n);
        const size_t plain = less ? (size_t)(less - json) : n;
        byi_utf8_add(out, json, plain);
        if (less)
            byi_text_addf(out, "\\u003c");
        json += plain + (less != NULL);
        n -= plain + (less != NULL);
    }
}

static void add_reasons(struct byi_text *out)
{
    for (int i = 0; i < BYI_N_REASONS; i++) {
        byi_text_addf(out, "%s", i ? ", " : "");
        byi_json_quote(out, byi_reason_code((enum byi_reason)i));
        byi_text_addf(out, ": ");
        byi_json_quote(out, byi_reason_text((enum byi_reason)i));
    }
}

enum byoc_status byi_ledger_page(const char *json, size_t n,
                                 struct byi_text *out, struct byoc_error *err)
{
    cJSON *root = NULL;
    BYI_TRY(byi_ledger_parse(json, n, &root, err));
    byi_json_free(&root);
    byi_text_add(out, byi_page_head, strlen(byi_page_head));
    byi_text_addf(out, "{\"byoc\": \"%s\", \"reasons\": {", BYI_VERSION);
    add_reasons(out);
    byi_text_addf(out, "}, \"ledger\": ");
    add_json(out, json, n);
    byi_text_addf(out, "}\n");
    byi_text_add(out, byi_page_tail, strlen(byi_page_tail));
    return BYOC_OK;
}
