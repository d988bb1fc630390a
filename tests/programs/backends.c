/* SPDX-License-Identifier: Apache-2.0 */
/* backends.c: two backends that consist of patterns only, so that partitioning
 * makes regions. The regions run their native twins.
 */
#include "programs.h"

#include "partition/partition.h"

static const struct byoc_pattern rows_a[] = {
    {.name = "a.conv",
     .pattern = "nn.conv2d(%x, const %w) [add(^, const %b)]? [nn.relu(^)]?"},
    {.name = "a.dense", .pattern = "nn.dense(%x, const %w) [add(^, %b)]?"},
    {.name = "a.point",
     .pattern = "add|multiply(%a, %b) [nn.relu(^) | add(^, %o)]*"},
    {.name = "a.parts", .pattern = "split(%a)"},
};

static const struct byoc_pattern rows_b[] = {
    {.name = "b.square", .pattern = "multiply(%x, %x)"},
    {.name = "b.relu", .pattern = "nn.relu|abs|tanh(%a)"},
    {.name = "b.join", .pattern = "concatenate(%a...)"},
    {.name = "b.pool", .pattern = "nn.max_pool2d|nn.avg_pool2d(%x)"},
};

static struct byoc_backend make_backend(const char *name,
                                        const struct byoc_pattern *rows,
                                        uint32_t n)
{
    return (struct byoc_backend){.struct_size = sizeof(struct byoc_backend),
                                 .name = name,
                                 .version = "",
                                 .compat = "",
                                 .patterns = rows,
                                 .n_patterns = n};
}

struct byi_backends *program_backends(void)
{
    static struct byi_backends backends;
    static struct byoc_host host;
    static struct byoc_backend apis[2];
    const struct byoc_backend *list[] = {&apis[0], &apis[1]};
    const struct byoc_host *hosts[] = {&host, &host};
    struct byoc_error err;
    if (backends.n)
        return &backends;
    byi_match_host(&host);
    apis[0] = make_backend("a", rows_a, BYI_COUNT(rows_a));
    apis[1] = make_backend("b", rows_b, BYI_COUNT(rows_b));
    if (byi_backends_init(&backends, list, hosts, 2, &err) != BYOC_OK) {
        fprintf(stderr, "programs: %s\n", err.text);
        return NULL;
    }
    return &backends;
}
