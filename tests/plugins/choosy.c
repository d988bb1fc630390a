/* SPDX-License-Identifier: Apache-2.0 */
/* choosy.c: the backend of ref.c with many refusals. Its load() refuses regions
 * of more than four kernels, regions with two kernels "ref.add_relu", and a
 * "ref.relu" of 13 numbers even alone. Its probe refuses additions of 11
 * numbers, and reports that "ref.multiply" of 7 is slow. It counts the calls.
 * With CHOOSY_COMPILES its compile() refuses instead of load(). Its blob of a
 * "ref.multiply" of 15 numbers has no data, that of 16 numbers has no bytes.
 */
#define REF_IS_A_PART
#include "ref.c"

__attribute__((visibility("default"))) unsigned choosy_probes(void);
__attribute__((visibility("default"))) unsigned choosy_loads(void);

static unsigned n_probes, n_loads;

unsigned choosy_probes(void)
{
    return n_probes;
}

unsigned choosy_loads(void)
{
    return n_loads;
}

/* The first dim of a node's result. */
static long size_of(const cJSON *node)
{
    const cJSON *type = cJSON_GetArrayItem(cJSON_GetObjectItem(node, "out"), 0);
    const cJSON *dim =
        cJSON_GetArrayItem(cJSON_GetObjectItem(type, "shape"), 0);
    return dim ? (long)dim->valuedouble : 0;
}

/* The row of a kernel; "" if the node is not a kernel. */
static const char *row_of(const cJSON *node)
{
    const cJSON *op = cJSON_GetObjectItem(node, "op");
    const cJSON *row = cJSON_GetObjectItem(node, "pattern");
    return strcmp(op->valuestring, "kernel") ? "" : row->valuestring;
}

/* The reason to refuse a region, or NULL. */
static const char *reason_to_refuse(const cJSON *root)
{
    const cJSON *node;
    int kernels = 0, add_relus = 0;
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(root, "nodes"))
    {
        const char *row = row_of(node);
        kernels += *row != '\0';
        add_relus += !strcmp(row, "ref.add_relu");
        if (!strcmp(row, "ref.relu") && size_of(node) == 13)
            return "a ref.relu of 13 numbers";
    }
    if (kernels > 4)
        return "more than four kernels";
    return add_relus > 1 ? "two kernels ref.add_relu" : NULL;
}

static struct byoc_fail *check_region(const struct byoc_host *host,
                                      const struct byoc_region *region)
{
    cJSON *root = cJSON_ParseWithLength(region->json, region->json_bytes);
    const char *why = root ? reason_to_refuse(root) : "no JSON";
    cJSON_Delete(root);
    n_loads++;
    return why ? host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, why) : NULL;
}

static struct byoc_fail *choosy_probe(const struct byoc_host *host,
                                      const struct byoc_region *graph,
                                      struct byoc_probe *result)
{
    struct byoc_fail *fail = probe(host, graph, result);
    cJSON *root = cJSON_ParseWithLength(graph->json, graph->json_bytes);
    const cJSON *node;
    int adds = 0;
    n_probes++;
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(root, "nodes"))
    {
        const char *row = row_of(node);
        adds += strstr(row, "add") && size_of(node) == 11;
        if (strcmp(row, "ref.multiply") || size_of(node) != 7)
            continue;
        result->reference = 1;
        snprintf(result->impl, sizeof result->impl, "ref:slow");
    }
    cJSON_Delete(root);
    return fail || !adds ? fail
                         : host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED,
                                      "11 numbers and an addition");
}

#ifdef CHOOSY_COMPILES
/* Whether the region has a ref.multiply of n numbers. */
static int multiplies(const struct byoc_region *region, long n)
{
    cJSON *root = cJSON_ParseWithLength(region->json, region->json_bytes);
    const cJSON *node;
    int found = 0;
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(root, "nodes"))
    {
        found += !strcmp(row_of(node), "ref.multiply") && size_of(node) == n;
    }
    cJSON_Delete(root);
    return found;
}

static struct byoc_fail *choosy_compile(const struct byoc_host *host,
                                        const struct byoc_region *region,
                                        struct byoc_blob *blob)
{
    struct byoc_fail *fail = check_region(host, region);
    if (fail)
        return fail;
    blob->bytes = multiplies(region, 16) ? 0 : region->json_bytes;
    if (multiplies(region, 15))
        return NULL;
    blob->data = host->acquire(host->ctx, region->json_bytes);
    if (!blob->data)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    memcpy(blob->data, region->json, region->json_bytes);
    return NULL;
}
#else
static struct byoc_fail *choosy_load(const struct byoc_host *host,
                                     const struct byoc_region *region,
                                     void **compiled)
{
    struct byoc_fail *fail = check_region(host, region);
    return fail ? fail : load(host, region, compiled);
}
#endif

static const struct byoc_backend *query_choosy(const struct byoc_host *host,
                                               char *why, uint32_t why_bytes)
{
    static struct byoc_backend choosy;
    choosy = *query(host, why, why_bytes);
    choosy.probe = choosy_probe;
#ifdef CHOOSY_COMPILES
    choosy.compile = choosy_compile;
#else
    choosy.load = choosy_load;
#endif
    return &choosy;
}

BYOC_BACKEND_DEFINE(query_choosy)
