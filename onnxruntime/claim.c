/* SPDX-License-Identifier: Apache-2.0 */
/* claim.c: decides which nodes byoc runs (OrtEp's GetCapability). It divides
 * the nodes into groups, and compiles each group. When a group does not
 * compile, a binary search finds the node that makes it fail. That node is left
 * to ONNX Runtime, and the others are grouped again.
 *
 *     all nodes supported -> groups -> each compiles? -> claimed
 *             ^                            | no
 *             +--- exclude the node, and nodes of its operator that fail alone
 *
 * ONNX Runtime calls this for the bodies of an If, Loop or Scan before it calls
 * it for the graph of that node. Nodes of a body are claimed only if byoc
 * cannot run the whole node.
 */
#include "onnxruntime/provider.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ROUNDS = 256 }; /* how often the nodes are grouped */

/* The state of one call of GetCapability. */
struct byi_ep_claim {
    struct byi_ep *ep;
    struct byi_ep_graph g;
    bool *supported;
    const char **reasons; /* for each node: why it is not supported */
    int32_t *group;       /* for each node: its group, or BYI_EP_NONE */
    uint32_t n_groups;
    bool *within; /* for each node: it is in the current group */
};

static void exclude(struct byi_ep_claim *c, uint32_t node, const char *why)
{
    c->supported[node] = false;
    c->reasons[node] = byi_arena_str(c->g.arena, why);
}

/* --- inputs and outputs of groups ----------------------------------------- */

/* Whether the node reads value v, as an input or (unless `explicit_only`) in
 * its bodies. */
static bool reads_value(const struct byi_ep_node *node, uint32_t v,
                        bool explicit_only)
{
    for (uint32_t k = 0; k < (explicit_only ? node->n_explicit : node->n_in);
         k++)
        if (node->in[k] == v)
            return true;
    return false;
}

/* Exclude the nodes of the current group that read v. Returns whether there are
 * any. */
static bool exclude_readers(struct byi_ep_claim *c, uint32_t v, const char *why)
{
    bool any = false;
    for (uint32_t i = 0; i < c->g.n_nodes; i++)
        if (c->within[i] && reads_value(&c->g.nodes[i], v, false)) {
            exclude(c, i, why);
            any = true;
        }
    return any;
}

/* Whether no node of the current group has v as an input, so that only bodies
 * of its nodes read v. */
static bool is_captured(const struct byi_ep_claim *c, uint32_t v)
{
    for (uint32_t i = 0; i < c->g.n_nodes; i++)
        if (c->within[i] && reads_value(&c->g.nodes[i], v, true))
            return false;
    return true;
}

/* Whether ONNX Runtime has inferred the rank of v, which byoc needs for an
 * input. */
static bool has_known_rank(const struct byi_ep_claim *c, uint32_t v)
{
    return c->g.values[v].rank > 0 ||
           (c->g.values[v].rank == 0 && c->ep->factory->knows_scalars);
}

/* Exclude the nodes of the current group that read an input or write an output
 * of the group's model that a fused node cannot have. Returns whether there are
 * any. */
static bool exclude_at_boundary(struct byi_ep_claim *c,
                                const struct byi_ep_model *model)
{
    static const char no_exchange[] =
        "it reads or writes a value that a fused node cannot have as an input "
        "or output: a sequence, an optional, or a tensor whose elements have "
        "fewer than 8 bits or a type that byoc does not have";
    static const char captured[] =
        "its bodies read a value from outside, which ONNX Runtime before 1.30 "
        "does not pass to a fused node";
    static const char no_rank[] =
        "it reads a value whose rank ONNX Runtime has not inferred; byoc needs "
        "the rank of each input before the run. (ONNX Runtime before 1.24 "
        "does not report that a value is a scalar.)";
    bool any = false;
    for (uint32_t i = 0; i < model->n_in; i++) {
        if (!c->g.values[model->in[i]].is_tensor)
            any |= exclude_readers(c, model->in[i], no_exchange);
        else if (!has_known_rank(c, model->in[i]))
            any |= exclude_readers(c, model->in[i], no_rank);
        else if (!c->ep->factory->fuses_in_bodies &&
                 is_captured(c, model->in[i]))
            any |= exclude_readers(c, model->in[i], captured);
    }
    for (uint32_t i = 0; i < model->n_out; i++)
        if (!c->g.values[model->out[i]].is_tensor) {
            exclude(c, (uint32_t)c->g.values[model->out[i]].producer,
                    no_exchange);
            any = true;
        }
    return any;
}

/* --- the node that makes a group fail ------------------------------------- */

/* A test of the model of the nodes whose within[node] is true. */
typedef enum byoc_status byi_ep_test(struct byi_ep_claim *c, const bool *within,
                                     struct byoc_error *err);

static enum byoc_status test_import(struct byi_ep_claim *c, const bool *within,
                                    struct byoc_error *err)
{
    struct byi_ep_model model;
    BYI_TRY(byi_ep_write_subset(&c->g, within, &model, err));
    return byi_ep_import(c->ep, &model, err);
}

static enum byoc_status test_build(struct byi_ep_claim *c, const bool *within,
                                   struct byoc_error *err)
{
    struct byi_ep_build *build = NULL;
    struct byi_ep_model model;
    BYI_TRY(byi_ep_write_subset(&c->g, within, &model, err));
    const enum byoc_status status =
        byi_ep_build_new(c->ep, &model, &build, err);
    byi_ep_build_free(&build);
    return status;
}

/* Whether the import of a model that has only this node fails. */
static bool fails_alone(struct byi_ep_claim *c, uint32_t node,
                        struct byoc_error *err)
{
    bool *only_node =
        byi_arena_calloc(c->g.arena, c->g.n_nodes, sizeof *only_node);
    only_node[node] = true;
    return test_import(c, only_node, err) != BYOC_OK;
}

/* Find the node that makes the current group fail the test, by binary search
 * over its nodes in order: the model of the nodes before this one passes, the
 * model that also has this one fails. On entry *err is the failure of the
 * group, on return the failure of the model up to this node. */
static uint32_t find_failing_node(struct byi_ep_claim *c, byi_ep_test *test,
                                  struct byoc_error *err)
{
    uint32_t *nodes = byi_arena_calloc(c->g.arena, c->g.n_nodes, sizeof *nodes);
    bool *subset = byi_arena_calloc(c->g.arena, c->g.n_nodes, sizeof *subset);
    uint32_t n = 0, passes = 0, fails;
    for (uint32_t i = 0; i < c->g.n_nodes; i++)
        if (c->within[i])
            nodes[n++] = i;
    for (fails = n; fails - passes > 1;) {
        const uint32_t middle = passes + (fails - passes) / 2;
        struct byoc_error failure;
        memset(subset, 0, c->g.n_nodes * sizeof *subset);
        for (uint32_t i = 0; i < middle; i++)
            subset[nodes[i]] = true;
        if (test(c, subset, &failure) == BYOC_OK) {
            passes = middle;
        } else {
            fails = middle;
            *err = failure;
        }
    }
    return nodes[fails - 1];
}

/* Exclude the node that makes the current group fail and, if it fails alone,
 * later nodes of the same operator that fail alone. *err as for
 * find_failing_node. */
static void exclude_failing_node(struct byi_ep_claim *c, struct byoc_error *err)
{
    struct byoc_error failure;
    byi_ep_test *test = test_import(c, c->within, &failure) == BYOC_OK
                            ? test_build
                            : test_import;
    if (test == test_import)
        *err = failure;
    const uint32_t failing = find_failing_node(c, test, err);
    const struct byi_ep_node *node = &c->g.nodes[failing];
    exclude(c, failing, err->text);
    if (!fails_alone(c, failing, &failure))
        return;
    for (uint32_t i = failing + 1; i < c->g.n_nodes; i++)
        if (c->supported[i] && strcmp(c->g.nodes[i].op, node->op) == 0 &&
            strcmp(c->g.nodes[i].domain, node->domain) == 0 &&
            fails_alone(c, i, &failure))
            exclude(c, i, failure.text);
}

/* --- groups --------------------------------------------------------------- */

/* The result of building the model with this digest; NULL: not built yet. */
static const struct byi_ep_build *find_build(const struct byi_ep *ep,
                                             const char *digest)
{
    const struct byi_ep_build *build = ep->builds;
    while (build && strcmp(build->digest, digest) != 0)
        build = build->next;
    return build;
}

/* Make this group the current one. */
static void select_group(struct byi_ep_claim *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->g.n_nodes; i++)
        c->within[i] = c->group[i] == (int32_t)group;
}

/* Divide the supported nodes into groups, and build one group after the other.
 * If a group cannot be claimed, exclude nodes of it, set *again, and stop.
 * Errors: BYOC_ENOMEM, and errors that no node causes. */
static enum byoc_status build_groups(struct byi_ep_claim *c, bool *again,
                                     struct byoc_error *err)
{
    c->n_groups = byi_ep_find_groups(&c->g, c->supported, c->group);
    *again = false;
    for (uint32_t k = 0; k < c->n_groups && !*again; k++) {
        struct byi_ep_build *build = NULL;
        struct byi_ep_model model;
        char digest[65];
        select_group(c, k);
        BYI_TRY(byi_ep_write_subset(&c->g, c->within, &model, err));
        if (exclude_at_boundary(c, &model)) {
            *again = true;
            break;
        }
        byi_ep_model_digest(&model, c->ep->options.artifact_key, false, digest);
        if (find_build(c->ep, digest))
            continue;
        const enum byoc_status status =
            byi_ep_build_new(c->ep, &model, &build, err);
        if (status == BYOC_ENOMEM)
            return status;
        if (status == BYOC_OK) {
            byi_keep(build);
            build->next = c->ep->builds;
            c->ep->builds = build;
        } else {
            exclude_failing_node(c, err);
            *again = true;
        }
    }
    return BYOC_OK;
}

static enum byoc_status claim_groups(struct byi_ep_claim *c,
                                     OrtEpGraphSupportInfo *info,
                                     struct byoc_error *err)
{
    const OrtNodeFusionOptions options = {.ort_version_supported =
                                              ORT_API_VERSION,
                                          .drop_constant_initializers = true};
    const OrtNode **nodes =
        byi_arena_calloc(c->g.arena, c->g.n_nodes, sizeof *nodes);
    for (uint32_t k = 0; k < c->n_groups; k++) {
        uint32_t n = 0;
        select_group(c, k);
        for (uint32_t i = 0; i < c->g.n_nodes; i++)
            if (c->within[i])
                nodes[n++] = c->g.nodes[i].node;
        BYI_TRY(byi_ep_status(c->ep->ort,
                              c->ep->api->EpGraphSupportInfo_AddNodesToFuse(
                                  info, nodes, n, &options),
                              err));
    }
    return BYOC_OK;
}

/* --- the report ----------------------------------------------------------- */

static void log_claim(const struct byi_ep_claim *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->g.n_nodes; i++) {
        n += c->supported[i];
        if (!c->supported[i])
            byi_ep_log(c->ep, ORT_LOGGING_LEVEL_INFO,
                       "byoc: node %s (%s) is left to ONNX Runtime: %s",
                       c->g.nodes[i].name, c->g.nodes[i].op, c->reasons[i]);
    }
    byi_ep_log(c->ep, ORT_LOGGING_LEVEL_INFO,
               "byoc: runs %u of %u nodes, in %u groups", n, c->g.n_nodes,
               c->n_groups);
}

/* Recommend the option initializers=constant if runs may replace initializers.
 */
static void log_replaceable(const struct byi_ep_claim *c)
{
    uint32_t n = 0;
    for (uint32_t v = 0; v < c->g.names.n; v++)
        n += c->g.values[v].is_input && !c->g.values[v].constant;
    if (n > 0)
        byi_ep_log(c->ep, ORT_LOGGING_LEVEL_WARNING,
                   "byoc: %u initializers are also inputs of the model, so "
                   "that each run may replace them; byoc reads them in each "
                   "run, and runs slower; if no run replaces them, set the "
                   "option initializers=constant",
                   n);
}

static void put_nodes(const struct byi_ep_claim *c, struct byi_text *out)
{
    byi_text_put(out, "{\n  \"nodes\": [");
    for (uint32_t i = 0; i < c->g.n_nodes; i++) {
        byi_text_put(out, i ? ",\n    {\"name\": " : "\n    {\"name\": ");
        byi_json_quote(out, c->g.nodes[i].name);
        byi_text_put(out, ", \"operator\": ");
        byi_json_quote(out, c->g.nodes[i].op);
        if (c->supported[i]) {
            byi_text_addf(out, ", \"group\": %d}", (int)c->group[i]);
        } else {
            byi_text_put(out, ", \"reason\": ");
            byi_json_quote(out, c->reasons[i]);
            byi_text_put(out, "}");
        }
    }
    byi_text_put(out, "\n  ]\n}\n");
}

/* Write REPORT/graph-N.json: every node with its group, or the reason why it is
 * left to ONNX Runtime. N counts the graphs of the session, bodies first. */
static enum byoc_status write_claim(const struct byi_ep_claim *c,
                                    struct byoc_error *err)
{
    struct byi_ep *ep = c->ep;
    struct byi_text text = {0};
    if (!ep->options.report_dir)
        return BYOC_OK;
    const char *path =
        byi_arena_printf(c->g.arena, "%s/graph-%u.json", ep->options.report_dir,
                         ep->n_reports++);
    put_nodes(c, &text);
    const enum byoc_status status = byi_file_write(path, text.at, text.n, err);
    byi_text_free(&text);
    return status;
}

/* --- GetCapability -------------------------------------------------------- */

/* Whether ONNX Runtime can run fused nodes in the bodies of this operator. It
 * inlines the bodies of functions, such as SequenceMap, after nodes were
 * claimed, and then refuses fused nodes in them. */
static bool may_have_fused(const char *op)
{
    return strcmp(op, "If") == 0 || strcmp(op, "Loop") == 0 ||
           strcmp(op, "Scan") == 0;
}

/* Set *answer to whether `graph` is a body. This is for older versions of ONNX
 * Runtime. 1.23 cannot load a model with fused nodes in bodies, since fused
 * nodes of several graphs get the same name. It also has no function that
 * returns the node of a body. Only the main graph has the model's name. */
static enum byoc_status is_body(const OrtApi *ort, const OrtGraph *graph,
                                bool *answer, struct byoc_error *err)
{
    OrtModelMetadata *metadata;
    OrtAllocator *allocator;
    char *main_name = NULL;
    const char *name;
    BYI_ORT(ort, Graph_GetName(graph, &name));
    BYI_ORT(ort, GetAllocatorWithDefaultOptions(&allocator));
    BYI_ORT(ort, Graph_GetModelMetadata(graph, &metadata));
    OrtStatus *status =
        ort->ModelMetadataGetGraphName(metadata, allocator, &main_name);
    ort->ReleaseModelMetadata(metadata);
    BYI_TRY(byi_ep_status(ort, status, err));
    *answer = strcmp(name, main_name) != 0;
    BYI_ORT(ort, AllocatorFree(allocator, main_name));
    return BYOC_OK;
}

/* Set *answer to whether byoc may be able to run the only node of c->g, with
 * its bodies, in a larger group. It may be able to even if the import of the
 * node fails because types or ranks do not match, for example in two branches.
 * In a larger group, other nodes may determine the condition, or the ranks of
 * the node's inputs. */
static enum byoc_status may_run_whole(struct byi_ep_claim *c, bool *answer,
                                      struct byoc_error *err)
{
    struct byi_ep_model model;
    struct byoc_error why;
    *answer = false;
    if (c->g.nodes[0].refusal)
        return BYOC_OK;
    BYI_TRY(byi_ep_write_subset(&c->g, c->within, &model, err));
    for (uint32_t i = 0; i < model.n_in; i++)
        if (c->g.values[model.in[i]].is_tensor &&
            !has_known_rank(c, model.in[i])) {
            *answer = true;
            return BYOC_OK;
        }
    if (exclude_at_boundary(c, &model))
        return BYOC_OK;
    const enum byoc_status status = byi_ep_import(c->ep, &model, &why);
    *answer = status == BYOC_OK || status == BYOC_ETYPE;
    return BYOC_OK;
}

/* Set *answer to whether `graph` is a body in which no node may be claimed.
 * Either byoc may run the whole node that it belongs to, or ONNX Runtime cannot
 * fuse nodes there. The opsets are read from the body, since the graph of its
 * node is not accessible. */
static enum byoc_status must_skip(struct byi_ep *ep, const OrtGraph *graph,
                                  struct byi_arena *arena, bool *answer,
                                  struct byoc_error *err)
{
    const OrtApi *ort = ep->ort;
    const OrtNode *parent = NULL;
    if (!ep->factory->fuses_in_bodies)
        return is_body(ort, graph, answer, err);
    *answer = false;
    BYI_ORT(ort, Graph_GetParentNode(graph, &parent));
    if (!parent)
        return BYOC_OK;
    bool within = true, supported = true;
    const char *reason = NULL;
    struct byi_ep_claim c = {.ep = ep,
                             .g.arena = arena,
                             .g.constant_inputs = ep->options.constant_inputs,
                             .supported = &supported,
                             .reasons = &reason,
                             .within = &within};
    BYI_TRY(byi_ep_graph_read(ort, graph, &parent, 1, &c.g, err));
    *answer = !may_have_fused(c.g.nodes[0].op);
    return *answer ? BYOC_OK : may_run_whole(&c, answer, err);
}

/* Mark all nodes as supported, except nodes that another provider has claimed
 * or that the ABI cannot describe. */
static enum byoc_status mark_supported(struct byi_ep_claim *c,
                                       struct byoc_error *err)
{
    const OrtApi *ort = c->ep->ort;
    for (uint32_t i = 0; i < c->g.n_nodes; i++) {
        const char *provider = NULL;
        BYI_ORT(ort, Node_GetEpName(c->g.nodes[i].node, &provider));
        c->supported[i] = true;
        if (provider && *provider)
            exclude(c, i, "another provider has claimed it");
        else if (c->g.nodes[i].refusal)
            exclude(c, i, c->g.nodes[i].refusal);
    }
    return BYOC_OK;
}

/* Find the groups of the graph that compile, and claim them. */
static enum byoc_status claim_nodes(struct byi_ep_claim *c,
                                    const OrtGraph *graph,
                                    OrtEpGraphSupportInfo *info,
                                    struct byoc_error *err)
{
    bool skip, again = true;
    BYI_TRY(must_skip(c->ep, graph, c->g.arena, &skip, err));
    if (skip)
        return BYOC_OK;
    BYI_TRY(byi_ep_graph_read(c->ep->ort, graph, NULL, 0, &c->g, err));
    const uint32_t n = c->g.n_nodes;
    if (n == 0)
        return BYOC_OK;
    c->supported = byi_arena_calloc(c->g.arena, n, sizeof *c->supported);
    c->reasons = byi_arena_calloc(c->g.arena, n, sizeof *c->reasons);
    c->group = byi_arena_calloc(c->g.arena, n, sizeof *c->group);
    c->within = byi_arena_calloc(c->g.arena, n, sizeof *c->within);
    BYI_TRY(mark_supported(c, err));
    for (uint32_t round = 0; again && round < MAX_ROUNDS; round++)
        BYI_TRY(build_groups(c, &again, err));
    if (again) {
        for (uint32_t i = 0; i < n; i++)
            if (c->supported[i])
                exclude(c, i,
                        "256 groups of this graph could not be claimed, and no "
                        "more are tried");
        c->n_groups = byi_ep_find_groups(&c->g, c->supported, c->group);
    }
    log_claim(c);
    log_replaceable(c);
    BYI_TRY(write_claim(c, err));
    return claim_groups(c, info, err);
}

/* Run claim_nodes within a guard. */
static enum byoc_status claim_guarded(struct byi_ep *ep, const OrtGraph *graph,
                                      OrtEpGraphSupportInfo *info,
                                      struct byoc_error *err)
{
    BYI_BORDER(err);
    struct byi_ep_claim c = {.ep = ep,
                             .g.arena = byi_arena_new(),
                             .g.constant_inputs = ep->options.constant_inputs};
    const enum byoc_status status = claim_nodes(&c, graph, info, err);
    byi_arena_free(&c.g.arena);
    return status;
}

OrtStatus *ORT_API_CALL byi_ep_claim(OrtEp *base, const OrtGraph *graph,
                                     OrtEpGraphSupportInfo *info)
{
    struct byi_ep *ep = (struct byi_ep *)base;
    struct byoc_error err = {0};
    const enum byoc_status status = claim_guarded(ep, graph, info, &err);
    return byi_ep_fail(ep->ort, status, &err);
}
