/* SPDX-License-Identifier: Apache-2.0 */
/* ledger_check.c: checks the invariants of a ledger. */
#include "ledger_check.h"

#include "schema.h"

#include "core/base/base.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Sums over the nodes. */
struct totals {
    double offloaded, native, folded, removed, flops, flops_offloaded;
};

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

static const char *text(const cJSON *object, const char *key)
{
    const cJSON *item = member(object, key);
    return cJSON_IsString(item) ? item->valuestring : "";
}

static double number(const cJSON *object, const char *key)
{
    const cJSON *item = member(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * (1 + fabs(a) + fabs(b));
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Whether every node has a name, and no two have the same. */
static bool are_names_unique(const cJSON *nodes)
{
    const int n = cJSON_GetArraySize(nodes);
    const char **names = calloc((size_t)n + 1, sizeof *names);
    const cJSON *node;
    int i = 0;
    bool unique = true;
    cJSON_ArrayForEach(node, nodes) names[i++] = text(node, "name");
    qsort(names, (size_t)n, sizeof *names, compare_texts);
    for (i = 0; i < n; i++)
        unique =
            unique && *names[i] && (!i || strcmp(names[i - 1], names[i]) != 0);
    free(names);
    return unique;
}

/* Whether the list has ascending numbers below the limit. */
static bool is_ascending(const cJSON *list, int limit)
{
    double last = -1;
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (item->valuedouble <= last || item->valuedouble >= limit)
            return false;
        last = item->valuedouble;
    }
    return true;
}

/* Returns what is wrong with a node, or NULL. Adds the node to the totals. */
static const char *check_node(const cJSON *node, int n, const cJSON *regions,
                              struct totals *t)
{
    const char *reason = text(node, "reason"), *where = text(node, "where");
    const bool offloaded = strcmp(reason, "offloaded") == 0;
    const cJSON *attempt;
    bool has_attempt = false; /* with the node's reason */
    t->offloaded += offloaded;
    t->native += strcmp(where, "native") == 0;
    t->folded += strcmp(where, "folded") == 0;
    t->removed += strcmp(where, "removed") == 0;
    t->flops += number(node, "flops");
    t->flops_offloaded += offloaded ? number(node, "flops") : 0;
    if (!is_ascending(member(node, "inputs"), n))
        return "inputs are not ascending indices";
    if (offloaded != (*text(node, "region") != '\0') ||
        offloaded != (*text(node, "pattern") != '\0'))
        return "only an offloaded node may have a region and a pattern";
    cJSON_ArrayForEach(attempt, member(node, "tried")) has_attempt =
        has_attempt || strcmp(text(attempt, "reason"), reason) == 0;
    if (strcmp(where, "native") == 0 && !has_attempt &&
        strcmp(reason, "no-backend") != 0)
        return "no attempt has the node's reason";
    if (offloaded) {
        const cJSON *region;
        cJSON_ArrayForEach(
            region,
            regions) if (!strcmp(text(region, "name"), text(node, "region")) &&
                         !strcmp(text(region, "backend"), where) &&
                         !strcmp(text(region, "outcome"), "kept")) return NULL;
        return "the node's region is not a kept one";
    }
    return NULL;
}

/* Check that a kept region lists exactly the nodes that name it. */
static const char *check_region(const cJSON *region, const cJSON *nodes)
{
    const cJSON *list = member(region, "nodes"), *node, *next = list->child;
    const bool is_kept = strcmp(text(region, "outcome"), "kept") == 0;
    double i = 0;
    if (!is_ascending(list, cJSON_GetArraySize(nodes)))
        return "a region's nodes are not ascending indices";
    cJSON_ArrayForEach(node, nodes)
    {
        const bool inside = next && next->valuedouble == i;
        next = inside ? next->next : next;
        i++;
        if (is_kept &&
            inside != (strcmp(text(node, "region"), text(region, "name")) == 0))
            return "a region and its nodes disagree";
    }
    return NULL;
}

static const char *check_totals(const cJSON *root, const struct totals *t)
{
    const cJSON *s = member(root, "summary"), *backend, *region;
    double nodes = 0, flops = 0, regions = 0, n_kept = 0;
    if (number(s, "nodes") != cJSON_GetArraySize(member(root, "nodes")) ||
        number(s, "offloaded") != t->offloaded ||
        number(s, "operators") != t->offloaded + t->native ||
        number(s, "native") != t->native || number(s, "folded") != t->folded ||
        number(s, "removed") != t->removed ||
        number(s, "nodes") != t->offloaded + t->native + t->folded + t->removed)
        return "the summary's nodes do not add up";
    cJSON_ArrayForEach(backend, member(root, "backends"))
    {
        nodes += number(backend, "nodes");
        flops += number(backend, "flops");
        regions += number(backend, "regions");
    }
    cJSON_ArrayForEach(region, member(root, "regions")) n_kept +=
        strcmp(text(region, "outcome"), "kept") == 0;
    if (nodes != t->offloaded + t->native)
        return "the backends' nodes do not add up";
    if (!is_near(flops, number(s, "flops")))
        return "the backends' operations do not add up";
    if (regions != n_kept || regions != number(s, "regions"))
        return "the backends' regions do not add up";
    return NULL;
}

static const char *check(const cJSON *root, char *why, size_t n)
{
    const cJSON *nodes = member(root, "nodes"), *item;
    const cJSON *regions = member(root, "regions");
    struct totals t = {0};
    cJSON *schema = schema_read("byoc-ledger.schema.json");
    const bool fits = schema && schema_fits(schema, root, why, n);
    cJSON_Delete(schema);
    if (!fits)
        return schema ? why : "docs/byoc-ledger.schema.json cannot be read";
    if (!are_names_unique(nodes))
        return "a name is empty, or two nodes have it";
    cJSON_ArrayForEach(item, nodes)
    {
        const char *wrong =
            check_node(item, cJSON_GetArraySize(nodes), regions, &t);
        if (wrong) {
            snprintf(why, n, "%s: %s", text(item, "name"), wrong);
            return why;
        }
    }
    cJSON_ArrayForEach(item, regions)
    {
        const char *wrong = check_region(item, nodes);
        if (wrong)
            return wrong;
    }
    return check_totals(root, &t);
}

const char *ledger_check(const char *json, char *why, size_t n)
{
    cJSON *root = cJSON_Parse(json);
    const char *wrong = root ? check(root, why, n) : "it is not JSON";
    cJSON_Delete(root);
    return wrong;
}
