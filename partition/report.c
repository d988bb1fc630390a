/* report.c: a ledger for people, read back from its JSON, so that the report
 * of a compile and of an artifact are one thing.
 */
#include "partition.h"

#include <cjson/cJSON.h>

#include <string.h>

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static void print_flops(struct byi_text *out, double flops)
{
    static const struct {
        double from;
        const char *unit;
    } units[] = {{1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {0, "kFLOP"}};
    size_t i = 0;
    while (i + 1 < BYI_COUNT(units) && flops < units[i].from)
        i++;
    byi_text_addf(out, "%.2f %s",
                  flops / (units[i].from > 0 ? units[i].from : 1e3),
                  units[i].unit);
}

static void print_summary(const cJSON *summary, struct byi_text *out)
{
    double flops = number(summary, "flops");
    double share =
        flops > 0 ? 100 * number(summary, "flops_offloaded") / flops : 0;
    byi_text_addf(out,
                  "%.0f nodes: %.0f offloaded in %.0f region%s, %.0f "
                  "native, %.0f folded, %.0f removed\n",
                  number(summary, "nodes"), number(summary, "offloaded"),
                  number(summary, "regions"),
                  number(summary, "regions") == 1 ? "" : "s",
                  number(summary, "native"), number(summary, "folded"),
                  number(summary, "removed"));
    byi_text_addf(out, "%.2f%% of ", share);
    print_flops(out, flops);
    byi_text_addf(out, " offloaded\n");
}

/* What the attempt found that gave the node its reason: the last such. */
static const char *detail_of(const cJSON *node)
{
    const cJSON *tried = cJSON_GetObjectItemCaseSensitive(node, "tried");
    const cJSON *found = NULL, *attempt;
    cJSON_ArrayForEach(attempt, tried)
    {
        if (strcmp(text(attempt, "reason"), text(node, "reason")) == 0)
            found = attempt;
    }
    return found ? text(found, "detail")
                 : byi_reason_text(BYI_REASON_NO_VENDOR);
}

static void print_node(const cJSON *node, struct byi_text *out)
{
    const char *where = text(node, "where");
    byi_text_addf(out, "  %-10s %-20s %s", where, text(node, "op"),
                  text(node, "name"));
    if (*text(node, "pattern"))
        byi_text_addf(out, "  [%s %s %s]", text(node, "region"),
                      text(node, "pattern"), text(node, "impl"));
    else if (strcmp(where, "native") == 0)
        byi_text_addf(out, "  [%s: %s]", text(node, "reason"), detail_of(node));
    byi_text_addf(out, "\n");
}

/* Nodes that stay native for the same reason, as one line. */
struct line {
    const char *op, *reason, *detail, *first;
    uint32_t n;
};

static void group(const cJSON *nodes, struct byi_text *out)
{
    BYI_VEC(struct line) lines = {0};
    const cJSON *node;
    cJSON_ArrayForEach(node, nodes)
    {
        if (strcmp(text(node, "where"), "native") != 0)
            continue;
        const struct line line = {.op = text(node, "op"),
                                  .reason = text(node, "reason"),
                                  .detail = detail_of(node),
                                  .first = text(node, "name"),
                                  .n = 1};
        uint32_t i = 0;
        while (i < lines.n && (strcmp(lines.at[i].op, line.op) ||
                               strcmp(lines.at[i].reason, line.reason) ||
                               strcmp(lines.at[i].detail, line.detail)))
            i++;
        if (i < lines.n)
            lines.at[i].n++;
        else
            BYI_PUSH(&lines, line);
    }
    if (lines.n)
        byi_text_addf(out, "native:\n");
    for (uint32_t i = 0; i < lines.n; i++)
        byi_text_addf(out, "  %4u x %-20s %s: %s (first: %s)\n", lines.at[i].n,
                      lines.at[i].op, lines.at[i].reason, lines.at[i].detail,
                      lines.at[i].first);
    byi_vec_free(lines.at);
}

void byi_ledger_report(const char *json, size_t n, bool every_node,
                       struct byi_text *out)
{
    cJSON *root = NULL;
    struct byoc_error err;
    if (byi_json_parse(json, n, 1u << 30, &root, &err) != BYOC_OK) {
        byi_text_addf(out, "the ledger cannot be read: %s\n", err.text);
        return;
    }
    const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(root, "nodes");
    print_summary(cJSON_GetObjectItemCaseSensitive(root, "summary"), out);
    if (every_node) {
        const cJSON *node;
        cJSON_ArrayForEach(node, nodes) print_node(node, out);
    } else {
        group(nodes, out);
    }
    byi_json_free(&root);
}
