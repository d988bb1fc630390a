/* SPDX-License-Identifier: Apache-2.0 */
/* graph.h: a region as read from JSON ("byoc-graph", described in
 * docs/json.md). Backends get it from the host as the structs of
 * byoc/backend.h (lend.c); codegen_json/codegen_json.h declares the writer.
 */
#ifndef BYI_GRAPH_H
#define BYI_GRAPH_H

#include <byoc/backend.h>

#include "core/ops/ops.h"

#define BYI_GRAPH_VERSION 1

enum {
    BYI_GRAPH_MAX_BYTES = 256 << 20,
    BYI_GRAPH_MAX_NODES = 4 << 20,
    BYI_GRAPH_MAX_STEPS = 4096, /* of one kernel */
    BYI_GRAPH_MAX_OUTPUTS = 4096,
    BYI_GRAPH_MAX_IFS = 8 /* nested `if`s */
};

enum byi_graph_node_kind { BYI_GRAPH_INPUT, BYI_GRAPH_CONST, BYI_GRAPH_KERNEL };

/* A value: output `output` of node `node`. */
struct byi_graph_ref {
    uint32_t node, output;
};

/* An operand of a kernel, by its name in the pattern. */
struct byi_graph_operand {
    const char *name; /* "src", "weights"; "other0" in a repeated step */
    struct byi_graph_ref ref;
};

/* An operand of a step: the result of an earlier step, or operand `index` of
 * the kernel. A tuple is read through its fields. */
struct byi_graph_arg {
    bool is_step, is_field;
    uint32_t index;
    uint32_t field;
};

/* The steps in a branch of an `if`, including those in nested branches. */
struct byi_graph_branch {
    uint32_t first, n;
};

/* One operator of a kernel. Step 0 is the kernel's own operator; the ones
 * after it are the post_ops, in the model's order. The steps of an `if`'s
 * branches follow it; only steps of the same branch read them. */
struct byi_graph_step {
    /* from the operator table, or one with id BYI_OP_NONE: "tuple", or "if",
     * whose operands are the condition and the results of the two branches */
    const struct byi_op *op;
    const struct byi_attrs *attrs; /* complete */
    uint32_t n_args;
    const struct byi_graph_arg *args;
    const struct byi_type *type;       /* of the result: a tensor or a tuple */
    struct byi_graph_branch branch[2]; /* "if": then and else */
};

/* A node: an input, a constant or a kernel. */
struct byi_graph_node {
    enum byi_graph_node_kind kind;
    const char *name;                  /* input: its name                   */
    uint32_t data;                     /* const: index of the constant      */
    uint32_t n_out;                    /* 1 for input and const             */
    const struct byi_type *const *out; /* tensor types */
    /* kernel */
    const char *pattern; /* "dnnl.conv" */
    bool exact;          /* use no algorithm that rounds more than the
                          * operators' definitions do */
    uint32_t n_operands;
    const struct byi_graph_operand *operands;
    uint32_t n_steps;
    const struct byi_graph_step *steps;
    uint32_t last;      /* the step whose result is the kernel's */
    uint32_t n_sources; /* names of the model's nodes */
    const char *const *sources;
};

/* A region, in its own arena. Nodes come after their operands. */
struct byi_graph {
    struct byi_arena *arena;
    const char *symbol; /* "dnnl_0" */
    uint32_t n_nodes;
    const struct byi_graph_node *nodes;
    uint32_t n_inputs, n_outputs, n_consts;
    const uint32_t *inputs; /* node indices, in order */
    const struct byi_graph_ref *outputs;
    uint32_t n_symbols;
    const char *const *symbols; /* dim -1 - i has the name symbols[i] */
};

/* Read and check a region: counts, order (so no cycles), references, operator
 * names, arity, attributes, every step's type against its operator's type rule.
 * *graph keeps nothing of `json`; free it with byi_graph_free. Errors, which
 * leave *graph unchanged: BYOC_EPARSE, BYOC_ETYPE, BYOC_ELIMIT and
 * BYOC_EINCOMPATIBLE (another version); they name the path:
 * "nodes[3].attrs.strides: ...". */
enum byoc_status byi_graph_read(const char *json, size_t n,
                                struct byi_graph **graph,
                                struct byoc_error *err);
/* The same for a region whose dims may be names, as in an artifact, before the
 * host replaces them with numbers. */
enum byoc_status byi_graph_read_varying(const char *json, size_t n,
                                        struct byi_graph **graph,
                                        struct byoc_error *err);
/* Free the graph and set *graph to NULL; *graph may be NULL. */
void byi_graph_free(struct byi_graph **graph);

/* lend.c: graph_open and graph_close of struct byoc_host. The constants of
 * `region` must outlive *graph. On failure *graph is NULL, and the caller owns
 * the failure. */
struct byoc_fail *byi_graph_open(const struct byoc_host *host,
                                 const struct byoc_region *region,
                                 struct byoc_graph **graph);
void byi_graph_close(struct byoc_graph *graph);

#endif
