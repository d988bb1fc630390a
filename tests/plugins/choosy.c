/* choosy.c: the vendor of ref.c, but hard to please: its probe takes every
 * composite, and its load refuses regions of more than four kernels, a kernel
 * "ref.add_relu" behind another one, and a "ref.relu" of 13 numbers even
 * alone. It counts what it is asked. With CHOOSY_COMPILES it refuses in a
 * compile() of its own, before any load.
 */
#define byoc_backend_query_v1 ref_query
#include "ref.c"
#undef byoc_backend_query_v1

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

/* Why not; NULL: gladly. */
static const char *dislike(const cJSON *root)
{
    const cJSON *node;
    int kernels = 0, add_relus = 0;
    cJSON_ArrayForEach(node, cJSON_GetObjectItem(root, "nodes"))
    {
        const cJSON *op = cJSON_GetObjectItem(node, "op");
        const cJSON *name = cJSON_GetObjectItem(node, "pattern");
        const cJSON *type =
            cJSON_GetArrayItem(cJSON_GetObjectItem(node, "out"), 0);
        const cJSON *dim =
            cJSON_GetArrayItem(cJSON_GetObjectItem(type, "shape"), 0);
        if (strcmp(op->valuestring, "kernel") != 0)
            continue;
        kernels++;
        add_relus += !strcmp(name->valuestring, "ref.add_relu");
        if (!strcmp(name->valuestring, "ref.relu") && dim &&
            (long)dim->valuedouble == 13)
            return "a ref.relu of 13 numbers, which brings bad luck";
    }
    if (kernels > 4)
        return "more than four kernels";
    return add_relus > 1 ? "two of ref.add_relu do not get along" : NULL;
}

static struct byoc_fail *judge(const struct byoc_host *host,
                               const struct byoc_region *region)
{
    cJSON *root = cJSON_ParseWithLength(region->json, region->json_bytes);
    const char *why = root ? dislike(root) : "no JSON";
    cJSON_Delete(root);
    n_loads++;
    return why ? host->fail(host->ctx, BYOC_FAIL_UNSUPPORTED, why) : NULL;
}

static struct byoc_fail *choosy_probe(const struct byoc_host *host,
                                      const struct byoc_region *graph,
                                      struct byoc_probe *result)
{
    n_probes++;
    return probe(host, graph, result);
}

#ifdef CHOOSY_COMPILES
static struct byoc_fail *choosy_compile(const struct byoc_host *host,
                                        const struct byoc_region *region,
                                        struct byoc_blob *blob)
{
    struct byoc_fail *fail = judge(host, region);
    if (fail)
        return fail;
    blob->data = host->acquire(host->ctx, region->json_bytes);
    if (!blob->data)
        return host->fail(host->ctx, BYOC_FAIL_RESOURCE, "out of memory");
    memcpy(blob->data, region->json, region->json_bytes);
    blob->bytes = region->json_bytes;
    return NULL;
}
#else
static struct byoc_fail *choosy_load(const struct byoc_host *host,
                                     const struct byoc_region *region,
                                     void **compiled)
{
    struct byoc_fail *fail = judge(host, region);
    return fail ? fail : load(host, region, compiled);
}
#endif

__attribute__((visibility("default"))) const struct byoc_backend *
byoc_backend_query_v1(const struct byoc_host *host, char *why,
                      uint32_t why_bytes);

const struct byoc_backend *byoc_backend_query_v1(const struct byoc_host *host,
                                                 char *why, uint32_t why_bytes)
{
    static struct byoc_backend choosy;
    if (!ref_query(host, why, why_bytes))
        return NULL;
    choosy = backend;
    choosy.probe = choosy_probe;
#ifdef CHOOSY_COMPILES
    choosy.compile = choosy_compile;
#else
    choosy.load = choosy_load;
#endif
    return &choosy;
}
