/* SPDX-License-Identifier: Apache-2.0 */
/* report_read.c: reads a ledger's JSON, and checks it, since it may be
 * untrusted.
 */
#include "report.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <string.h>

/* Limits of the lists of a ledger, of a node's attempts and of its outputs. */
enum { MAX_NODES = 1 << 23, MAX_ATTEMPTS = 1 << 16, MAX_OUTPUTS = 1 << 16 };

/* Read a string; if it is optional and absent, "". */
static enum byoc_status get_text(const struct byi_json *object, const char *key,
                                 bool required, const char **out,
                                 struct byoc_error *err)
{
    struct byi_json item;
    *out = "";
    BYI_TRY(byi_json_opt(object, key, &item, err));
    if (!item.at && !required)
        return BYOC_OK;
    return byi_json_string(object, key, out, err);
}

static enum byoc_status get_number(const struct byi_json *object,
                                   const char *key, double *out,
                                   struct byoc_error *err)
{
    struct byi_json item;
    BYI_TRY(byi_json_get(object, key, &item, err));
    if (!cJSON_IsNumber(item.at))
        return byi_json_mismatch(&item, "a number that is not negative", err);
    if (!isfinite(item.at->valuedouble) || item.at->valuedouble < 0)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found %g, expected a finite number that is not "
                        "negative",
                        item.path, item.at->valuedouble);
    *out = item.at->valuedouble;
    return BYOC_OK;
}

/* Read a time in microseconds; -1 if it is absent. */
static enum byoc_status get_time(const struct byi_json *object, const char *key,
                                 double *out, struct byoc_error *err)
{
    struct byi_json item;
    *out = -1;
    BYI_TRY(byi_json_opt(object, key, &item, err));
    return item.at ? get_number(object, key, out, err) : BYOC_OK;
}

static enum byoc_status get_count(const struct byi_json *object,
                                  const char *key, uint32_t *out,
                                  struct byoc_error *err)
{
    int64_t value;
    BYI_TRY(byi_json_int(object, key, 0, UINT32_MAX, &value, err));
    *out = (uint32_t)value;
    return BYOC_OK;
}

/* Read a list of node indices. */
static enum byoc_status get_indices(struct byi_report *r,
                                    const struct byi_json *object,
                                    const char *key, const uint32_t **out,
                                    uint32_t *n, struct byoc_error *err)
{
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_array(object, key, r->n_nodes, &list, n, err));
    uint32_t *at = byi_arena_calloc(r->arena, *n, sizeof *at);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        int64_t index;
        BYI_TRY(
            byi_json_as_int(&item, 0, (int64_t)r->n_nodes - 1, &index, err));
        at[i] = (uint32_t)index;
    }
    *out = at;
    return BYOC_OK;
}

static enum byoc_status read_attempts(struct byi_report *r,
                                      const struct byi_json *object,
                                      struct byi_report_node *node,
                                      struct byoc_error *err)
{
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_array(object, "tried", MAX_ATTEMPTS, &list,
                           &node->n_attempts, err));
    struct byi_report_attempt *at =
        byi_arena_calloc(r->arena, node->n_attempts, sizeof *at);
    node->attempts = at;
    node->detail = byi_reason_text(BYI_REASON_NO_BACKEND);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        BYI_TRY(get_text(&item, "reason", true, &at[i].reason, err));
        BYI_TRY(get_text(&item, "backend", false, &at[i].backend, err));
        BYI_TRY(get_text(&item, "pattern", false, &at[i].pattern, err));
        BYI_TRY(get_text(&item, "detail", true, &at[i].detail, err));
        if (strcmp(at[i].reason, node->reason) == 0)
            node->detail = at[i].detail;
    }
    return BYOC_OK;
}

static enum byoc_status read_outputs(struct byi_report *r,
                                     const struct byi_json *object,
                                     struct byi_report_node *node,
                                     struct byoc_error *err)
{
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_opt(object, "outputs", &list, err));
    if (!list.at)
        return BYOC_OK;
    BYI_TRY(byi_json_array(object, "outputs", MAX_OUTPUTS, &list,
                           &node->n_outputs, err));
    const char **at = byi_arena_calloc(r->arena, node->n_outputs, sizeof *at);
    node->outputs = at;
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++) {
        if (!cJSON_IsString(item.at))
            return byi_json_mismatch(&item, "a type as a string", err);
        at[i] = item.at->valuestring;
    }
    return BYOC_OK;
}

static enum byoc_status read_node(struct byi_report *r,
                                  const struct byi_json *item, uint32_t i,
                                  struct byoc_error *err)
{
    struct byi_report_node *node = &r->nodes[i];
    BYI_TRY(get_text(item, "name", true, &node->name, err));
    BYI_TRY(get_text(item, "op", true, &node->op, err));
    BYI_TRY(get_text(item, "attributes", false, &node->attributes, err));
    BYI_TRY(read_outputs(r, item, node, err));
    BYI_TRY(get_text(item, "where", true, &node->where, err));
    BYI_TRY(get_text(item, "reason", true, &node->reason, err));
    BYI_TRY(get_text(item, "region", false, &node->region, err));
    BYI_TRY(get_text(item, "pattern", false, &node->pattern, err));
    BYI_TRY(get_text(item, "impl", false, &node->impl, err));
    BYI_TRY(get_number(item, "flops", &node->flops, err));
    BYI_TRY(get_time(item, "backend_us", &node->backend_us, err));
    BYI_TRY(get_time(item, "native_us", &node->native_us, err));
    BYI_TRY(
        get_indices(r, item, "inputs", &node->inputs, &node->n_inputs, err));
    return read_attempts(r, item, node, err);
}

static enum byoc_status read_region(struct byi_report *r,
                                    const struct byi_json *item, uint32_t i,
                                    struct byoc_error *err)
{
    struct byi_report_region *region = &r->regions[i];
    struct byi_json outputs;
    BYI_TRY(get_text(item, "name", true, &region->name, err));
    BYI_TRY(get_text(item, "backend", true, &region->backend, err));
    BYI_TRY(get_text(item, "outcome", true, &region->outcome, err));
    BYI_TRY(get_text(item, "reason", false, &region->reason, err));
    BYI_TRY(get_text(item, "detail", false, &region->detail, err));
    BYI_TRY(get_number(item, "flops", &region->flops, err));
    BYI_TRY(get_time(item, "backend_us", &region->backend_us, err));
    BYI_TRY(get_time(item, "native_us", &region->native_us, err));
    BYI_TRY(byi_json_opt(item, "outputs", &outputs, err));
    if (outputs.at) {
        BYI_TRY(get_count(item, "inputs", &region->n_inputs, err));
        BYI_TRY(get_count(item, "outputs", &region->n_outputs, err));
    }
    region->kept = strcmp(region->outcome, "kept") == 0;
    return get_indices(r, item, "nodes", &region->nodes, &region->n_nodes, err);
}

static enum byoc_status read_backend(struct byi_report *r,
                                     const struct byi_json *item, uint32_t i,
                                     struct byoc_error *err)
{
    struct byi_report_backend *backend = &r->backends[i];
    BYI_TRY(get_text(item, "name", true, &backend->name, err));
    BYI_TRY(get_text(item, "version", false, &backend->version, err));
    BYI_TRY(get_count(item, "nodes", &backend->n_nodes, err));
    BYI_TRY(get_count(item, "regions", &backend->n_regions, err));
    return get_number(item, "flops", &backend->flops, err);
}

static enum byoc_status read_gate(struct byi_report *r,
                                  const struct byi_json *item, uint32_t i,
                                  struct byoc_error *err)
{
    struct byi_gate *gate = &r->gates[i];
    struct byi_json passed;
    BYI_TRY(get_text(item, "gate", true, &gate->name, err));
    BYI_TRY(get_number(item, "wanted", &gate->wanted, err));
    BYI_TRY(get_number(item, "found", &gate->found, err));
    BYI_TRY(byi_json_get(item, "passed", &passed, err));
    gate->passed = cJSON_IsTrue(passed.at);
    return gate->passed || cJSON_IsFalse(passed.at)
               ? BYOC_OK
               : byi_json_mismatch(&passed, "true or false", err);
}

static enum byoc_status read_weight(struct byi_report *r,
                                    const struct byi_json *item, uint32_t i,
                                    struct byoc_error *err)
{
    struct byi_report_weight *w = &r->weights[i];
    BYI_TRY(get_text(item, "to", true, &w->to, err));
    BYI_TRY(get_text(item, "kept", false, &w->kept, err));
    BYI_TRY(get_number(item, "bytes", &w->bytes, err));
    if (!*w->kept) {
        BYI_TRY(get_number(item, "narrow", &w->narrow, err));
        BYI_TRY(get_number(item, "largest", &w->largest, err));
        BYI_TRY(get_number(item, "rms", &w->rms, err));
    }
    return get_indices(r, item, "nodes", &w->nodes, &w->n_nodes, err);
}

/* Read a list of the ledger into an array at *at, of items of `size` bytes. */
static enum byoc_status read_list(
    struct byi_report *r, const char *key, void **at, size_t size, uint32_t *n,
    enum byoc_status (*read)(struct byi_report *, const struct byi_json *,
                             uint32_t, struct byoc_error *),
    struct byoc_error *err)
{
    const struct byi_json root = byi_json_root(r->root);
    struct byi_json list, item = {0};
    BYI_TRY(byi_json_array(&root, key, MAX_NODES, &list, n, err));
    *at = byi_arena_calloc(r->arena, *n, size);
    for (uint32_t i = 0; byi_json_next(&list, &item, i); i++)
        BYI_TRY(read(r, &item, i, err));
    return BYOC_OK;
}

static enum byoc_status read_summary(struct byi_report *r,
                                     struct byoc_error *err)
{
    const struct byi_json root = byi_json_root(r->root);
    struct byi_coverage *c = &r->coverage;
    struct byi_json summary;
    BYI_TRY(byi_json_get(&root, "summary", &summary, err));
    BYI_TRY(get_count(&summary, "nodes", &c->nodes, err));
    BYI_TRY(get_count(&summary, "offloaded", &c->offloaded, err));
    BYI_TRY(get_count(&summary, "native", &c->native, err));
    BYI_TRY(get_count(&summary, "folded", &c->folded, err));
    BYI_TRY(get_count(&summary, "removed", &c->removed, err));
    BYI_TRY(get_count(&summary, "regions", &c->regions, err));
    BYI_TRY(get_number(&summary, "flops", &c->flops, err));
    BYI_TRY(get_number(&summary, "flops_offloaded", &c->flops_offloaded, err));
    return get_text(&summary, "sizes", false, &c->sizes, err);
}

static enum byoc_status read_measured(struct byi_report *r,
                                      struct byoc_error *err)
{
    const struct byi_json root = byi_json_root(r->root);
    struct byi_placement_times *m = &r->measured;
    struct byi_json measured;
    BYI_TRY(byi_json_opt(&root, "measured", &measured, err));
    if (!measured.at)
        return BYOC_OK;
    BYI_TRY(get_number(&measured, "native_us", &m->native_us, err));
    BYI_TRY(get_number(&measured, "greedy_us", &m->greedy_us, err));
    BYI_TRY(get_number(&measured, "measured_us", &m->measured_us, err));
    return byi_json_string(&measured, "chosen", &m->chosen, err);
}

static enum byoc_status check_format(const struct byi_json *root,
                                     struct byoc_error *err)
{
    const char *format = "";
    struct byi_json item;
    int64_t version;
    if (cJSON_IsObject(root->at))
        BYI_TRY(byi_json_opt(root, "format", &item, err));
    if (cJSON_IsObject(root->at) && cJSON_IsString(item.at))
        format = item.at->valuestring;
    if (strcmp(format, "byoc-ledger") != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "not a ledger: found no \"format\": \"byoc-ledger\"; "
                        "`byoc check --json` and `--report` write one");
    BYI_TRY(byi_json_int(root, "version", 0, INT32_MAX, &version, err));
    if (version != BYI_LEDGER_VERSION)
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "found ledger version %d, expected %d; compile the "
                        "model again",
                        (int)version, BYI_LEDGER_VERSION);
    return BYOC_OK;
}

static enum byoc_status read_precision(struct byi_report *r,
                                       struct byoc_error *err)
{
    const struct byi_json root = byi_json_root(r->root);
    struct byi_report_precision *p = &r->precision;
    struct byi_json item;
    BYI_TRY(byi_json_opt(&root, "precision", &item, err));
    if (!item.at)
        return BYOC_OK;
    BYI_TRY(get_text(&item, "to", true, &p->to, err));
    BYI_TRY(get_count(&item, "narrow", &p->narrow, err));
    return get_count(&item, "float32", &p->float32, err);
}

static enum byoc_status read_all(struct byi_report *r, struct byoc_error *err)
{
    const struct byi_json root = byi_json_root(r->root);
    struct byi_json nodes, weights;
    BYI_TRY(check_format(&root, err));
    BYI_TRY(get_text(&root, "model", true, &r->model, err));
    BYI_TRY(get_text(&root, "cpu", true, &r->cpu, err));
    BYI_TRY(get_count(&root, "threads", &r->threads, err));
    BYI_TRY(read_summary(r, err));
    BYI_TRY(read_measured(r, err));
    BYI_TRY(read_list(r, "backends", (void **)&r->backends, sizeof *r->backends,
                      &r->n_backends, read_backend, err));
    BYI_TRY(read_list(r, "gates", (void **)&r->gates, sizeof *r->gates,
                      &r->n_gates, read_gate, err));
    BYI_TRY(
        byi_json_array(&root, "nodes", MAX_NODES, &nodes, &r->n_nodes,
                       err)); /* indices in `inputs` must be below n_nodes */
    BYI_TRY(read_list(r, "nodes", (void **)&r->nodes, sizeof *r->nodes,
                      &r->n_nodes, read_node, err));
    BYI_TRY(byi_json_opt(&root, "weights", &weights, err));
    if (weights.at) /* absent unless the compile was to narrow weights */
        BYI_TRY(read_list(r, "weights", (void **)&r->weights,
                          sizeof *r->weights, &r->n_weights, read_weight, err));
    BYI_TRY(read_precision(r, err));
    return read_list(r, "regions", (void **)&r->regions, sizeof *r->regions,
                     &r->n_regions, read_region, err);
}

enum byoc_status byi_report_read(const char *json, size_t n,
                                 struct byi_report *r, struct byoc_error *err)
{
    *r = (struct byi_report){0};
    BYI_TRY(byi_json_parse(json, n, 1u << 30, &r->root, err));
    r->arena = byi_arena_new();
    enum byoc_status status = read_all(r, err);
    if (status != BYOC_OK)
        byi_report_free(r);
    return status;
}

void byi_report_free(struct byi_report *r)
{
    if (r->arena)
        byi_arena_free(&r->arena);
    byi_json_free(&r->root);
    *r = (struct byi_report){0};
}

bool byi_report_is_offloaded(const struct byi_report_node *node)
{
    return strcmp(node->reason, byi_reason_code(BYI_REASON_OFFLOADED)) == 0;
}

bool byi_report_is_native(const struct byi_report_node *node)
{
    return strcmp(node->where, byi_reason_code(BYI_REASON_NATIVE)) == 0;
}

double byi_report_flops_share(const struct byi_report *r)
{
    const struct byi_coverage *c = &r->coverage;
    return c->flops > 0 ? 100 * c->flops_offloaded / c->flops : 0;
}
