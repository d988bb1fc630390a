/* SPDX-License-Identifier: Apache-2.0 */
/* order.c: finds the order in which a graph's nodes are converted. It is the
 * order of the file if that is topological, as the standard demands. Otherwise
 * a depth-first search puts the producers of a node's values before it.
 */
#include "frontend_onnx/import.h"

/* The edges of a graph, and the order found. Nodes are indices in the file:
 * node i reads the outputs of nodes reads[first[i]] .. reads[first[i + 1] - 1].
 */
struct node_order {
    struct byi_names producers; /* for each output name: its node */
    size_t *reads, *first;
    uint32_t n_reads, cap;
    size_t *sorted; /* the order; NULL: the order of the file */
    size_t n_sorted;
};

/* Add the producer of the value, if it is a node of this graph. */
static void add_read(struct node_order *order, const char *name)
{
    const struct byi_name *producer = byi_names_find(&order->producers, name);

    if (!producer)
        return;
    if (order->n_reads == order->cap)
        order->reads =
            byi_arena_grow(order->producers.index.arena, order->reads,
                           &order->cap, sizeof *order->reads);
    order->reads[order->n_reads++] = producer->index;
}

/* Add the producers of the values that the node and its subgraphs read. A name
 * that a subgraph defines has no producer here or, if an outer node has the
 * same name, adds a harmless edge. */
static void collect_reads(struct node_order *order, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++)
        add_read(order, node->input[i]);
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__GraphProto *graph = node->attribute[a]->g;
        for (size_t i = 0; graph && i < graph->n_node; i++)
            collect_reads(order, graph->node[i]);
        for (size_t i = 0; graph && i < graph->n_output; i++)
            add_read(order, byi_text_or(graph->output[i]->name, ""));
    }
}

/* Fill producers, reads and first. Returns whether each node reads only nodes
 * before it. */
static bool read_edges(struct node_order *order, const Onnx__GraphProto *graph)
{
    bool is_sorted = true;

    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t k = 0; k < graph->node[i]->n_output; k++) {
            const char *name = graph->node[i]->output[k];
            struct byi_name *producer =
                *name ? byi_names_add(&order->producers, name) : NULL;
            if (producer) /* import.c reports a second producer */
                producer->index = (uint32_t)i;
        }
    for (size_t i = 0; i < graph->n_node; i++) {
        order->first[i] = order->n_reads;
        collect_reads(order, graph->node[i]);
        for (size_t k = order->first[i]; k < order->n_reads; k++)
            is_sorted = is_sorted && order->reads[k] < i;
    }
    order->first[graph->n_node] = order->n_reads;
    return is_sorted;
}

/* Append the nodes that `root` needs, then root: a depth-first search in
 * postorder. next[i] is the index of node i's next unvisited edge; `stack` has
 * room for all nodes. In a cycle one node comes too early; its conversion
 * fails. */
static void visit(struct node_order *order, size_t root, size_t *next,
                  bool *seen, size_t *stack)
{
    size_t depth = 0;

    seen[root] = true;
    stack[depth++] = root;
    while (depth > 0) {
        const size_t node = stack[depth - 1];
        if (next[node] == order->first[node + 1]) {
            order->sorted[order->n_sorted++] = node;
            depth--;
            continue;
        }
        const size_t producer = order->reads[next[node]++];
        if (!seen[producer]) {
            seen[producer] = true;
            stack[depth++] = producer;
        }
    }
}

const size_t *byi_import_order(struct byi_arena *arena,
                               const Onnx__GraphProto *graph)
{
    const size_t n = graph->n_node;
    struct node_order order = {.producers = byi_names_new(arena)};

    order.first = byi_arena_calloc(arena, n + 1, sizeof *order.first);
    if (!read_edges(&order, graph)) {
        size_t *next = byi_arena_calloc(arena, n + 1, sizeof *next);
        bool *seen = byi_arena_calloc(arena, n + 1, sizeof *seen);
        size_t *stack = byi_arena_calloc(arena, n + 1, sizeof *stack);
        order.sorted = byi_arena_calloc(arena, n + 1, sizeof *order.sorted);
        for (size_t i = 0; i < n; i++)
            next[i] = order.first[i];
        for (size_t i = 0; i < n; i++)
            if (!seen[i])
                visit(&order, i, next, seen, stack);
    }
    return order.sorted;
}
