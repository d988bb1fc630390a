/* SPDX-License-Identifier: Apache-2.0 */
/* mincut.c: minimum cut by blocking flows (Dinic 1970), without recursion, in
 * memory linear in the network.
 */
#include "cost.h"

#include <string.h>

/* Arcs come in pairs: i ^ 1 is the reverse of i. */
struct flow_arc {
    uint32_t to, next; /* next: 1 + the next arc out of the same node */
    int64_t left;      /* residual capacity */
};

struct byi_network {
    uint32_t n;      /* nodes; the source is n, the sink n + 1 */
    uint32_t *first; /* of each node: 1 + its first arc */
    uint32_t *level, *at, *queue;
    int64_t paid; /* cost that is due for either side */
    BYI_VEC(struct flow_arc) arcs;
};

struct byi_network *byi_network_new(struct byi_arena *arena, uint32_t n)
{
    struct byi_network *net = byi_arena_alloc(arena, sizeof *net);
    net->n = n;
    net->first = byi_arena_calloc(arena, n + 2u, sizeof *net->first);
    net->level = byi_arena_calloc(arena, n + 2u, sizeof *net->level);
    net->at = byi_arena_calloc(arena, n + 2u, sizeof *net->at);
    net->queue = byi_arena_calloc(arena, n + 2u, sizeof *net->queue);
    return net;
}

void byi_network_free(struct byi_network **net)
{
    if (*net)
        byi_vec_free((*net)->arcs.at);
    *net = NULL;
}

static void add_arc(struct byi_network *net, uint32_t from, uint32_t to,
                    int64_t capacity)
{
    const struct flow_arc arc = {to, net->first[from], capacity};
    BYI_PUSH(&net->arcs, arc);
    net->first[from] = net->arcs.n;
}

void byi_network_join(struct byi_network *net, uint32_t a, uint32_t b,
                      int64_t there, int64_t back)
{
    add_arc(net, a, b, there);
    add_arc(net, b, a, back);
}

void byi_network_side(struct byi_network *net, uint32_t node, int64_t source,
                      int64_t sink)
{
    const int64_t both = source < sink ? source : sink;
    net->paid += both;
    if (source > both)
        byi_network_join(net, node, net->n + 1, source - both, 0);
    if (sink > both)
        byi_network_join(net, net->n, node, sink - both, 0);
}

/* Breadth-first levels from the source, starting at 1; 0: not reached. */
static bool find_levels(struct byi_network *net)
{
    uint32_t n = 0;
    memset(net->level, 0, (net->n + 2u) * sizeof *net->level);
    net->level[net->n] = 1;
    net->queue[n++] = net->n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t from = net->queue[i];
        for (uint32_t a = net->first[from]; a; a = net->arcs.at[a - 1].next) {
            const struct flow_arc *arc = &net->arcs.at[a - 1];
            if (arc->left == 0 || net->level[arc->to])
                continue;
            net->level[arc->to] = net->level[from] + 1;
            net->queue[n++] = arc->to;
        }
    }
    return net->level[net->n + 1] != 0;
}

/* Saturate the path in net->queue (arcs, 1 + index), which reaches the sink.
 * Returns the length of the path before its first saturated arc. */
static uint32_t use_path(struct byi_network *net, uint32_t n)
{
    int64_t flow = INT64_MAX;
    uint32_t full = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct flow_arc *arc = &net->arcs.at[net->queue[i] - 1];
        flow = arc->left < flow ? arc->left : flow;
    }
    for (uint32_t i = n; i-- > 0;) {
        const uint32_t a = net->queue[i] - 1;
        net->arcs.at[a].left -= flow;
        net->arcs.at[a ^ 1].left += flow;
        if (net->arcs.at[a].left == 0)
            full = i;
    }
    return full;
}

/* Find a blocking flow: saturate every path along ascending levels. */
static void block(struct byi_network *net)
{
    uint32_t n = 0, from = net->n;
    memcpy(net->at, net->first, (net->n + 2u) * sizeof *net->at);
    for (;;) {
        if (from == net->n + 1) {
            n = use_path(net, n);
            from = net->arcs.at[(net->queue[n] - 1) ^ 1].to;
        }
        uint32_t a = net->at[from];
        for (; a; a = net->arcs.at[a - 1].next) {
            const struct flow_arc *arc = &net->arcs.at[a - 1];
            if (arc->left > 0 && net->level[arc->to] == net->level[from] + 1)
                break;
        }
        net->at[from] = a;
        if (a) {
            net->queue[n++] = a;
            from = net->arcs.at[a - 1].to;
            continue;
        }
        if (n == 0)
            return;
        net->level[from] = 0; /* a dead end */
        from = net->arcs.at[(net->queue[--n] - 1) ^ 1].to;
    }
}

/* The flow into the sink, all of whose own arcs are reverse arcs. */
static int64_t flow_of(const struct byi_network *net)
{
    int64_t flow = 0;
    for (uint32_t a = net->first[net->n + 1]; a; a = net->arcs.at[a - 1].next)
        flow += net->arcs.at[a - 1].left;
    return flow;
}

int64_t byi_network_cut(struct byi_network *net, bool *source_side)
{
    while (find_levels(net))
        block(net);
    for (uint32_t i = 0; i < net->n; i++)
        source_side[i] = net->level[i] != 0;
    return net->paid + flow_of(net);
}
