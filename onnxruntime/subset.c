/* SPDX-License-Identifier: Apache-2.0 */
/* subset.c: writes a subset of a graph's nodes as an ONNX model, and divides a
 * graph into groups of supported nodes. Inputs and outputs of a model are in
 * the order in which its nodes read and write them. So the same nodes make the
 * same bytes in GetCapability and in Compile.
 */
#include "onnxruntime/provider.h"

#include <string.h>

enum {
    /* constants of at least this many bytes are not copied into messages */
    LARGE_CONSTANT = 4096,
    MODEL_GRAPH = 7,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    RAW_DATA = 9
};

static void add_span(struct byi_ep_model *model, struct byi_arena *arena,
                     const void *data, size_t n, bool foreign)
{
    if (n == 0)
        return;
    if (model->n_spans == model->cap_spans)
        model->spans = byi_arena_grow(arena, model->spans, &model->cap_spans,
                                      sizeof *model->spans);
    model->spans[model->n_spans++] = (struct byi_ep_span){data, n, foreign};
    model->bytes += n;
}

/* --- inputs and outputs --------------------------------------------------- */

/* Return, for each value of the graph, whether a node outside of the subset
 * reads it; in the graph's arena. */
static bool *find_needed(const struct byi_ep_graph *g, const bool *within)
{
    bool *needed = byi_arena_calloc(g->arena, g->names.n + 1, sizeof *needed);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; !within[i] && k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] != UINT32_MAX)
                needed[g->nodes[i].in[k]] = true;
    return needed;
}

/* Set model->in and model->out to the values that cross the boundary of the
 * subset, and constants[] to the constants that it reads. Returns the number of
 * constants. */
static uint32_t find_boundary(const struct byi_ep_graph *g, const bool *within,
                              struct byi_ep_model *model, uint32_t *constants)
{
    const bool *needed = find_needed(g, within);
    bool *seen = byi_arena_calloc(g->arena, g->names.n + 1, sizeof *seen);
    uint32_t n = 0;
    model->in = byi_arena_calloc(g->arena, g->names.n + 1, sizeof *model->in);
    model->out = byi_arena_calloc(g->arena, g->names.n + 1, sizeof *model->out);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        const struct byi_ep_node *node = &g->nodes[i];
        for (uint32_t k = 0; within[i] && k < node->n_in; k++) {
            const uint32_t v = node->in[k];
            if (v == UINT32_MAX || seen[v])
                continue;
            seen[v] = true;
            const int32_t from = g->values[v].producer;
            if (g->values[v].constant)
                constants[n++] = v;
            else if (from == BYI_EP_NONE || !within[from])
                model->in[model->n_in++] = v;
        }
        for (uint32_t k = 0; within[i] && k < node->n_out; k++) {
            const uint32_t v = node->out[k];
            if (v != UINT32_MAX && (needed[v] || g->values[v].is_output))
                model->out[model->n_out++] = v;
        }
    }
    return n;
}

static enum byoc_status put_boundary(const struct byi_ep_graph *g,
                                     unsigned field, const uint32_t *values,
                                     uint32_t n, struct byi_ep_bytes *out,
                                     struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_ep_value *v = &g->values[values[i]];
        BYI_TRY(byi_ep_put_value(g->ort, out, field, v->info, v->name, err));
    }
    return BYOC_OK;
}

/* --- the model ------------------------------------------------------------ */

/* Add constants: the bytes of small ones to `graph`, large ones to `large` as
 * spans of ONNX Runtime's memory. */
static enum byoc_status put_constants(const struct byi_ep_graph *g,
                                      const uint32_t *constants, uint32_t n,
                                      struct byi_ep_bytes *graph,
                                      struct byi_ep_model *large,
                                      struct byoc_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_ep_value *v = &g->values[constants[i]];
        struct byi_ep_bytes tensor = {.arena = g->arena};
        struct byi_ep_bytes head = {.arena = g->arena};
        const void *data;
        size_t bytes;
        BYI_TRY(byi_ep_put_tensor(g->ort, v->constant, v->name, &tensor, &data,
                                  &bytes, err));
        if (bytes < LARGE_CONSTANT) {
            if (data)
                byi_ep_put_bytes(&tensor, RAW_DATA, data, bytes);
            byi_ep_put_bytes(graph, GRAPH_INITIALIZER, tensor.at, tensor.n);
            continue;
        }
        byi_ep_put_head(&tensor, RAW_DATA, bytes);
        byi_ep_put_head(&head, GRAPH_INITIALIZER, tensor.n + bytes);
        byi_ep_put(&head, tensor.at, tensor.n);
        add_span(large, g->arena, head.at, head.n, false);
        add_span(large, g->arena, data, bytes, true);
    }
    return BYOC_OK;
}

enum byoc_status byi_ep_write_subset(const struct byi_ep_graph *g,
                                     const bool *within,
                                     struct byi_ep_model *model,
                                     struct byoc_error *err)
{
    struct byi_ep_bytes graph = {.arena = g->arena}, head = graph;
    struct byi_ep_model large = {0};
    uint32_t *constants =
        byi_arena_calloc(g->arena, g->names.n + 1, sizeof *constants);
    *model = (struct byi_ep_model){0};
    const uint32_t n = find_boundary(g, within, model, constants);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        if (within[i])
            byi_ep_put_bytes(&graph, GRAPH_NODE, g->nodes[i].proto,
                             g->nodes[i].n_proto);
    byi_ep_put_string(&graph, GRAPH_NAME, "part");
    BYI_TRY(put_boundary(g, GRAPH_INPUT, model->in, model->n_in, &graph, err));
    BYI_TRY(
        put_boundary(g, GRAPH_OUTPUT, model->out, model->n_out, &graph, err));
    BYI_TRY(put_constants(g, constants, n, &graph, &large, err));
    byi_ep_put(&head, g->model_header.at, g->model_header.n);
    byi_ep_put_head(&head, MODEL_GRAPH, graph.n + large.bytes);
    add_span(model, g->arena, head.at, head.n, false);
    add_span(model, g->arena, graph.at, graph.n, false);
    for (uint32_t i = 0; i < large.n_spans; i++)
        add_span(model, g->arena, large.spans[i].data, large.spans[i].n,
                 large.spans[i].foreign);
    return BYOC_OK;
}

void byi_ep_model_digest(const struct byi_ep_model *model, const char *salt,
                         bool whole, char hex[65])
{
    struct byi_sha256 s;
    byi_sha256_init(&s);
    byi_sha256_add(&s, salt, strlen(salt) + 1);
    for (uint32_t i = 0; i < model->n_spans; i++) {
        const struct byi_ep_span *span = &model->spans[i];
        if (whole || !span->foreign)
            byi_sha256_add(&s, span->data, span->n);
        else
            byi_sha256_add(&s, &span->data, sizeof span->data);
    }
    byi_sha256_hex(&s, hex);
}

/* --- groups --------------------------------------------------------------- */

/* The state of byi_ep_find_groups: Kahn's topological sort, with rounds that
 * take either supported or unsupported nodes. A round takes ready nodes of its
 * kind until none is left; the next round takes the other kind. The supported
 * nodes of a round form a group. Every node on a path between two of them was
 * ready before the round ended, so it is in the group, too. */
struct byi_ep_rounds {
    const struct byi_ep_graph *g;
    uint32_t *waits; /* for each node: number of its reads of results that are
                      * not computed yet */
    /* nodes that read value v, one entry for each read, are
     * users[first[v]] ... users[first[v + 1] - 1] */
    uint32_t *users, *first;
    BYI_VEC(uint32_t) ready[2]; /* [1]: supported nodes */
};

/* Set waits, users and first. */
static void find_users(struct byi_ep_rounds *t)
{
    const struct byi_ep_graph *g = t->g;
    const uint32_t n = g->names.n;
    size_t reads = 0;
    t->first = byi_arena_calloc(g->arena, n + 2, sizeof *t->first);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++)
            if (g->nodes[i].in[k] != UINT32_MAX) {
                t->first[g->nodes[i].in[k] + 1]++;
                reads++;
            }
    for (uint32_t v = 0; v < n; v++)
        t->first[v + 1] += t->first[v];
    t->users = byi_arena_calloc(g->arena, reads + 1, sizeof *t->users);
    uint32_t *at = byi_arena_calloc(g->arena, n + 1, sizeof *at);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        for (uint32_t k = 0; k < g->nodes[i].n_in; k++) {
            const uint32_t v = g->nodes[i].in[k];
            if (v == UINT32_MAX)
                continue;
            t->users[t->first[v] + at[v]++] = i;
            t->waits[i] += g->values[v].producer != BYI_EP_NONE;
        }
}

/* Take node i: make the readers of its results ready that wait for no other
 * result. */
static void finish_node(struct byi_ep_rounds *t, uint32_t i,
                        const bool *supported)
{
    const struct byi_ep_node *node = &t->g->nodes[i];
    for (uint32_t k = 0; k < node->n_out; k++) {
        const uint32_t v = node->out[k];
        if (v == UINT32_MAX)
            continue;
        for (uint32_t u = t->first[v]; u < t->first[v + 1]; u++)
            if (--t->waits[t->users[u]] == 0)
                BYI_PUSH(&t->ready[supported[t->users[u]]], t->users[u]);
    }
}

uint32_t byi_ep_find_groups(const struct byi_ep_graph *g, const bool *supported,
                            int32_t *group)
{
    struct byi_ep_rounds t = {.g = g};
    uint32_t n = 0, at[2] = {0, 0};
    t.waits = byi_arena_calloc(g->arena, g->n_nodes + 1, sizeof *t.waits);
    find_users(&t);
    for (uint32_t i = 0; i < g->n_nodes; i++) {
        group[i] = BYI_EP_NONE;
        if (t.waits[i] == 0)
            BYI_PUSH(&t.ready[supported[i]], i);
    }
    while (at[0] < t.ready[0].n || at[1] < t.ready[1].n) {
        const bool has_group = at[1] < t.ready[1].n;
        for (; at[1] < t.ready[1].n; at[1]++) {
            group[t.ready[1].at[at[1]]] = (int32_t)n;
            finish_node(&t, t.ready[1].at[at[1]], supported);
        }
        n += has_group;
        for (; at[0] < t.ready[0].n; at[0]++)
            finish_node(&t, t.ready[0].at[at[0]], supported);
    }
    byi_vec_free(t.ready[0].at);
    byi_vec_free(t.ready[1].at);
    return n;
}
