/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c: finds why MergeComposite refuses a match: the user's options, a
 * placement by cost, sizes that are known only at run time, work that native
 * kernels save, or the backend's predicate.
 */
#include "composite.h"
#include "merger.h"

#include "core/base/child.h"
#include "core/ops/epilogue.h"
#include "transform/fuse_groups.h"

#include <string.h>

/* Whether the list names the node, by operator or by model node. */
static bool is_named(const struct byi_merger *g, const char *const *list,
                     const struct byi_node *node)
{
    for (; list && *list; list++) {
        if (strcmp(*list, byi_composite_op_name(node)) == 0)
            return true;
        for (uint32_t i = 0; i < node->sources->n; i++) {
            const struct byi_source *s =
                &g->m->sources.at[node->sources->at[i]];
            if (!strcmp(*list, s->name) || !strcmp(*list, s->op))
                return true;
        }
    }
    return false;
}

/* Backends compute nn.leaky_relu with alpha 0 as nn.relu. */
static bool may_hide_nan(const struct byi_node *node)
{
    return node->kind == BYI_CALL_OP &&
           (byi_op_has(node->op, BYI_TRAIT_HIDES_NAN) ||
            (node->op == BYI_OP_NN_LEAKY_RELU &&
             byi_attr_float(node->attrs, "alpha") == 0));
}

static bool has_other_than_tensors(const struct byi_node *node)
{
    for (uint32_t i = 0;
         node->type->kind == BYI_TUPLE && i < node->type->n_fields; i++)
        if (node->type->fields[i]->kind != BYI_TENSOR)
            return true;
    return false;
}

const struct byi_type *byi_merger_sample(const struct byi_merger *g,
                                         const struct byi_match *match,
                                         byi_id value, uint32_t round)
{
    const struct byi_type *type = byi_match_node(match, value)->type;
    if (byi_type_has_static_sizes(type))
        return type;
    return value < g->f->nodes.n
               ? byi_sample_type(g->samples, round, g->func, value)
               : NULL;
}

static bool is_sampled(const struct byi_merger *g,
                       const struct byi_match *match, byi_id value)
{
    if (byi_type_has_static_sizes(byi_match_node(match, value)->type))
        return true;
    for (uint32_t r = 0; r < byi_samples_rounds(g->samples); r++)
        if (byi_merger_sample(g, match, value, r))
            return true;
    return false;
}

/* Returns the message for a tensor whose shape is unknown for all sizes that
 * were tried. */
static const char *describe_dynamic(const struct byi_merger *g,
                                    const char *what)
{
    const char *fault = g->samples ? byi_sample_fault(g->samples) : NULL;
    if (!fault)
        return byi_arena_printf(
            g->scratch, "%s has a size that is known only at run time", what);
    return byi_arena_printf(
        g->scratch,
        "%s has no size for %s or the other tried sizes: %s; give sizes that "
        "fit the model with --warm NAME=N",
        what, byi_sample_text(g->samples, 0), fault);
}

/* Returns why the assignment places an operator of the match elsewhere, or NULL
 * if it does not. */
static const char *assignment_refusal(const struct byi_merger *g,
                                      const struct byi_match *match, byi_id op)
{
    const struct byi_branch *branch = byi_match_branch(match, op);
    return byi_assignment_refusal(
        g->backends->assignment, branch ? branch->func : g->func,
        branch ? op - branch->first : op, g->backend->name);
}

/* Whether node `id` is a result of the entry. */
static bool is_result(const struct byi_merger *g, byi_id id)
{
    const struct byi_node *result = &g->f->nodes.at[g->f->result];
    bool found = g->f->result == id;
    if (g->func != byi_module_entry(g->m))
        return false;
    for (uint32_t i = 0; result->kind == BYI_MAKE_TUPLE && i < result->n_args;
         i++)
        found = found || result->args[i] == id;
    return found;
}

/* Whether node `id` of the entry is a result that appends rows to an input of
 * varying length. The runtime may append in place (byoc_model_in_place). */
static bool extends_input(const struct byi_merger *g,
                          const struct byi_match *match, byi_id id)
{
    const struct byi_node *node = byi_match_node(match, id);
    if (byi_match_branch(match, id) || !is_result(g, id) ||
        node->kind != BYI_CALL_OP || node->op != BYI_OP_CONCATENATE ||
        node->n_args != 2)
        return false;
    const struct byi_node *input = &g->f->nodes.at[node->args[0]];
    return input->kind == BYI_PARAM && input->type->kind == BYI_TENSOR &&
           BYI_IS_SYMBOL(input->type->dims[byi_attr_axis(node->attrs,
                                                         input->type->rank)]);
}

/* Whether the match only enlarges an image to a result of the entry, which no
 * other node reads. */
static bool enlarges_result(const struct byi_merger *g,
                            const struct byi_match *match)
{
    const byi_id id = match->ops[0];
    const struct byi_node *node = byi_match_node(match, id);
    if (match->n_ops != 1 || byi_match_branch(match, id) ||
        node->kind != BYI_CALL_OP || node->op != BYI_OP_RESIZE ||
        !is_result(g, id) ||
        g->uses.first[id + 1] - g->uses.first[id] != (g->f->result != id))
        return false;
    const struct byi_node *image = &g->f->nodes.at[node->args[0]];
    const struct byi_type *from = image->type, *to = node->type;
    return image->kind != BYI_PARAM && byi_type_has_static_sizes(from) &&
           byi_type_has_static_sizes(to) &&
           byi_elements(to->rank, to->dims) >
               byi_elements(from->rank, from->dims);
}

/* Whether the native kernel of a product applies all operators of the match. */
static bool is_epilogue(const struct byi_merger *g,
                        const struct byi_match *match)
{
    for (uint32_t i = 0; i < match->n_ops; i++)
        if (byi_match_branch(match, match->ops[i]) ||
            !g->in_epilogue[match->ops[i]])
            return false;
    return true;
}

const char *byi_merger_refusal(const struct byi_merger *g,
                               const struct byi_match *match,
                               enum byi_reason *reason)
{
    const struct byi_backends *backends = g->backends;
    for (uint32_t i = 0; i < match->n_ops; i++) {
        const struct byi_node *node = byi_match_node(match, match->ops[i]);
        *reason = BYI_REASON_EXCLUDED;
        if (is_named(g, backends->exclude, node))
            return "named by --exclude";
        if (backends->keep_nan && may_hide_nan(node))
            return "it may give a number for NaN, which --keep-nan forbids";
        *reason = BYI_REASON_NOT_NAMED;
        if (backends->only && *backends->only && node->kind == BYI_CALL_OP &&
            !is_named(g, backends->only, node))
            return "not named by --only";
        *reason = BYI_REASON_CHEAPER;
        const char *elsewhere = assignment_refusal(g, match, match->ops[i]);
        if (elsewhere)
            return elsewhere;
        *reason = BYI_REASON_PATTERN_MISMATCH;
        if (has_other_than_tensors(node))
            return "a field of its result is not a tensor; results of "
                   "composites must be tensors";
        *reason = BYI_REASON_DYNAMIC;
        if (extends_input(g, match, match->ops[i]))
            return "it appends rows to an input, which native kernels do in "
                   "the input's memory";
        if (!is_sampled(g, match, match->ops[i]))
            return describe_dynamic(g, "a result");
    }
    *reason = BYI_REASON_CHEAPER;
    if (is_epilogue(g, match))
        return "the native kernel of the preceding 8-bit product applies it";
    if (enlarges_result(g, match))
        return "it enlarges an image to an output of the model; if it is "
               "native, less data leaves the region";
    for (uint32_t i = 0; i < match->n_bound; i++) {
        const struct byi_type *type =
            byi_match_node(match, match->bound[i].value)->type;
        *reason = BYI_REASON_PATTERN_MISMATCH;
        if (type->kind != BYI_TENSOR)
            return "an operand is not a tensor; composites take tensors only";
        *reason = BYI_REASON_DYNAMIC;
        if (!is_sampled(g, match, match->bound[i].value))
            return describe_dynamic(g, "an operand");
    }
    *reason = BYI_REASON_PREDICATE;
    if (!match->pattern->row->accept)
        return NULL;
    byi_child_step(g->backend->name, "accept() of %s",
                   match->pattern->row->name);
    const char *why = match->pattern->row->accept(
        g->backend->host, (const struct byoc_match *)(const void *)match);
    byi_child_step_end();
    return why;
}

void byi_merger_mark_epilogues(struct byi_merger *g)
{
    if (g->backend->table->inside[BYI_OP_QNN_MATMUL])
        return;
    for (byi_id id = 0; id < g->f->nodes.n; id++) {
        byi_id last = id;
        if (g->f->nodes.at[id].kind != BYI_CALL_OP ||
            g->f->nodes.at[id].op != BYI_OP_QNN_MATMUL ||
            !byi_fuse_has_epilogue(g->f, id))
            continue;
        for (uint32_t n = 0; n < BYI_EPILOGUE_OPS; n++) {
            last = byi_fuse_next_in_epilogue(g->f, &g->uses, id, last);
            if (last == BYI_NO_ID)
                break;
            g->in_epilogue[last] = true;
        }
    }
}
