/* SPDX-License-Identifier: Apache-2.0 */
/* MergeComposite: replace each match of a backend's pattern by a call of a
 * composite, a function literal that the backend has agreed to build.
 * requires: types                          breaks: nothing
 *
 *   %0 = nn.conv2d(%x, const[w]);          %0 = fn (%src, Composite="v.conv") {
 *   nn.relu(%0)                     ==>      %0 = nn.conv2d(%src, const[w]);
 *                                            nn.relu(%0)
 *                                          };
 *                                          %0(%x)
 *
 * Patterns are tried in the table's order, each at the unclaimed nodes from
 * the outputs back, so that the longest chain matches first. The predicate and
 * the probe are called during matching: if they refuse, another match may
 * claim the nodes.
 */
#include "composite.h"
#include "cost.h"
#include "merger.h"

#include "core/base/child.h"

#include <string.h>

/* Marks in `claimed` every node of a function that a match claimed as a branch.
 */
#define BRANCH UINT32_MAX

static void note_match(struct byi_merger *g, const struct byi_match *match,
                       enum byi_reason reason, const char *detail)
{
    if (g->ledger)
        byi_ledger_note(g->ledger, g->f->nodes.at[match->root].sources, reason,
                        g->backend->name, match->pattern->row->name, detail);
}

static bool is_inner_get(const struct byi_merger *g,
                         const struct byi_match *match, byi_id id)
{
    const struct byi_node *node = &g->f->nodes.at[id];
    return node->kind == BYI_GET && node->args[0] != match->root &&
           byi_has_id(match->ops, match->n_ops, node->args[0]);
}

/* Whether `id` is a branch that only an `if` of the match reads. */
static bool is_inner_fn(const struct byi_merger *g,
                        const struct byi_match *match, byi_id id)
{
    const uint32_t end = g->uses.first[id + 1];
    if (g->f->nodes.at[id].kind != BYI_FN || id == g->f->result)
        return false;
    for (uint32_t u = g->uses.first[id]; u < end; u++)
        if (!byi_has_id(match->ops, match->n_ops, g->uses.at[u]) ||
            g->f->nodes.at[g->uses.at[u]].kind != BYI_IF)
            return false;
    return g->uses.first[id] < end;
}

/* Whether `id` is read only by operators of the match, or by fields and
 * branches that are private to it. */
static bool is_private(const struct byi_merger *g,
                       const struct byi_match *match, byi_id id)
{
    if (id == g->f->result)
        return false;
    for (uint32_t u = g->uses.first[id]; u < g->uses.first[id + 1]; u++) {
        const byi_id reader = g->uses.at[u];
        if (!byi_has_id(match->ops, match->n_ops, reader) &&
            !is_inner_fn(g, match, reader) &&
            !(is_inner_get(g, match, reader) && is_private(g, match, reader)))
            return false;
    }
    return true;
}

static struct byi_merger *merger_of(const struct byi_merger *g,
                                    const struct byi_branch *branch)
{
    return branch->func < g->n_mergers ? g->mergers[branch->func] : NULL;
}

/* Check operator `op`, which is inside a branch of the match. Another match may
 * have claimed it if the branch is also read as a value. Returns NULL or the
 * reason. */
static const char *why_branch_not_closed(const struct byi_merger *g,
                                         const struct byi_match *match,
                                         byi_id op)
{
    const struct byi_branch *branch = byi_match_branch(match, op);
    const struct byi_merger *inner = merger_of(g, branch);
    if (inner && inner->claimed[op - branch->first])
        return "another match has claimed an operator inside";
    return NULL;
}

static const char *why_if_not_closed(const struct byi_merger *g,
                                     const struct byi_match *match, byi_id id)
{
    const struct byi_node *node = &g->f->nodes.at[id];
    for (uint32_t a = 1; node->kind == BYI_IF && a <= 2; a++)
        if (!is_inner_fn(g, match, node->args[a]))
            return "an outside node also reads a branch inside";
    return NULL;
}

/* Check that no outside node reads an inner value and that no inner node is
 * claimed. Then every path out of the match starts at its root, so no path
 * leaves the match and returns. Returns NULL or the reason. */
static const char *why_not_closed(const struct byi_merger *g,
                                  const struct byi_match *match)
{
    for (uint32_t i = 0; i < match->n_ops; i++) {
        byi_id id = match->ops[i];
        const char *fault = id < g->f->nodes.n
                                ? why_if_not_closed(g, match, id)
                                : why_branch_not_closed(g, match, id);
        if (fault)
            return fault;
        if (id >= g->f->nodes.n)
            continue;
        if (g->claimed[id])
            return "another match has claimed an operator inside";
        if (id != match->root && !is_private(g, match, id))
            return "an outside node also reads an operator inside";
    }
    return NULL;
}

/* --- claiming a match ----------------------------------------------------- */

static const struct byi_sources *join_sources(const struct byi_merger *g,
                                              const struct byi_match *match)
{
    BYI_VEC(uint32_t) ids = {0};
    for (uint32_t i = 0; i < match->n_ops; i++) {
        const struct byi_sources *sources =
            byi_match_node(match, match->ops[i])->sources;
        for (uint32_t k = 0; k < sources->n; k++)
            BYI_PUSH(&ids, sources->at[k]);
    }
    const struct byi_sources *joined = byi_sources_of(g->m, ids.at, ids.n);
    byi_vec_free(ids.at);
    return joined;
}

/* Count a literal of the merger's function as claimed. With the last one, claim
 * the nodes inside the function. */
static void claim_literal(struct byi_merger *inner)
{
    if (!inner || --inner->n_fns > 0)
        return;
    for (byi_id id = 0; id < inner->f->nodes.n; id++)
        inner->claimed[id] = BRANCH;
}

/* Claim the branches of an `if`, and recursively of any `if` inside. */
static void claim_branches(struct byi_merger *g, const struct byi_match *match,
                           byi_id id)
{
    const struct byi_node *node = byi_match_node(match, id);
    const struct byi_branch *outer_branch = byi_match_branch(match, id);
    const struct byi_merger *inner =
        outer_branch ? merger_of(g, outer_branch) : NULL;
    if (node->kind != BYI_IF || (inner && inner->claimed[0] != BRANCH))
        return;
    for (uint32_t a = 1; a <= 2; a++) {
        if (!outer_branch)
            g->claimed[node->args[a]] = g->matches.n;
        if (a == 1 || node->args[1] != node->args[2])
            claim_literal(merger_of(g, byi_match_branch_of(match, id, a)));
    }
}

static void claim_match(struct byi_merger *g, const struct byi_match *match,
                        uint32_t func)
{
    byi_id *args = byi_arena_calloc(g->scratch, match->n_bound, sizeof *args);
    uint32_t n = 0;
    for (uint32_t i = 0; i < match->n_bound; i++)
        if (!byi_composite_embeds(match, i))
            args[n++] = match->bound[i].value;
    const struct byi_accepted_match accepted = {.func = func,
                                                .n_args = n,
                                                .args = args,
                                                .sources =
                                                    join_sources(g, match)};
    BYI_PUSH(&g->matches, accepted);
    for (uint32_t i = match->n_ops;
         i-- > 0;) { /* an `if` before its branches */
        const byi_id id = match->ops[i];
        claim_branches(g, match, id);
        if (id >= g->f->nodes.n)
            continue;
        g->claimed[id] = g->matches.n;
        for (uint32_t u = g->uses.first[id]; u < g->uses.first[id + 1]; u++)
            if (is_inner_get(g, match, g->uses.at[u]))
                g->claimed[g->uses.at[u]] = g->matches.n;
    }
}

/* Returns the types of a composite's parameters with the sizes of a round; NULL
 * if a value of the match has no shape then. */
static const struct byi_type *const *param_types(const struct byi_merger *g,
                                                 const struct byi_match *match,
                                                 uint32_t round)
{
    uint32_t n = 0;
    const struct byi_type **types =
        byi_arena_calloc(g->scratch, match->n_bound, sizeof *types);
    for (uint32_t i = 0; i < match->n_bound; i++)
        if (!byi_composite_embeds(match, i)) {
            types[n] =
                byi_merger_sample(g, match, match->bound[i].value, round);
            if (!types[n++])
                return NULL;
        }
    for (uint32_t i = 0; i < match->n_ops; i++)
        if (!byi_merger_sample(g, match, match->ops[i], round))
            return NULL;
    return types;
}

/* Whether an operand or result of the match has a symbolic dim. */
static bool has_symbolic_dims(const struct byi_match *match)
{
    for (uint32_t i = 0; i < match->n_bound; i++)
        if (!byi_type_has_static_sizes(
                byi_match_node(match, match->bound[i].value)->type))
            return true;
    for (uint32_t i = 0; i < match->n_ops; i++)
        if (!byi_type_has_static_sizes(
                byi_match_node(match, match->ops[i])->type))
            return true;
    return false;
}

/* Whether a value of the match with a symbolic dim is empty in this round. */
static bool has_empty_value(const struct byi_merger *g,
                            const struct byi_match *match, uint32_t round)
{
    for (uint32_t i = 0; i < match->n_bound + match->n_ops; i++) {
        const byi_id value = i < match->n_bound
                                 ? match->bound[i].value
                                 : match->ops[i - match->n_bound];
        const struct byi_type *type = byi_merger_sample(g, match, value, round);
        if (!byi_type_has_static_sizes(byi_match_node(match, value)->type) &&
            type && type->kind == BYI_TENSOR &&
            byi_elements(type->rank, type->dims) == 0)
            return true;
    }
    return false;
}

/* Probe the match with the sizes of several rounds. A round counts if it
 * determines the match's shapes and its operators accept them. Rounds in which
 * a value is empty, such as the second part of a split of n = 1, are probed
 * only if no other round counts. Sets probed->refused if a probe refuses, or if
 * no round counts. */
static enum byoc_status probe_samples(struct byi_merger *g,
                                      const struct byi_match *match,
                                      uint32_t func, const uint32_t *no_consts,
                                      struct byi_probe_result *probed)
{
    bool has_round = false, reference = false;
    const uint32_t rounds = byi_samples_rounds(g->samples);
    *probed = (struct byi_probe_result){.impl = ""};
    for (uint32_t k = 0; k < 2 * rounds && !(has_round && k >= rounds); k++) {
        const uint32_t r = k % rounds;
        const struct byi_type *const *types = param_types(g, match, r);
        if (!types || has_empty_value(g, match, r) != (k >= rounds))
            continue;
        BYI_TRY(byi_probe(g->backends, g->backend, g->m, func, no_consts, types,
                          probed, g->err));
        if (probed->misfit)
            continue;
        has_round = true;
        if (probed->refused) {
            probed->refused = byi_arena_printf(g->scratch, "for %s: %s",
                                               byi_sample_text(g->samples, r),
                                               probed->refused);
            return BYOC_OK;
        }
        reference = reference || probed->reference;
    }
    probed->reference = reference;
    if (!has_round)
        probed->refused = "none of the tried sizes determines all its shapes";
    return BYOC_OK;
}

static enum byoc_status probe_match(struct byi_merger *g,
                                    const struct byi_match *match,
                                    uint32_t func,
                                    struct byi_probe_result *probed)
{
    uint32_t no_consts[BYI_MATCH_MAX_OPERANDS];
    memset(no_consts, 0xff, sizeof no_consts);
    if (has_symbolic_dims(match))
        return probe_samples(g, match, func, no_consts, probed);
    return byi_probe(g->backends, g->backend, g->m, func, no_consts, NULL,
                     probed, g->err);
}

/* The callback of byi_match: claim the match, unless it is refused. */
static bool accept_match(const struct byi_match *match, void *ctx)
{
    struct byi_merger *g = ctx;
    if (g->status != BYOC_OK)
        return false;
    const char *fault = why_not_closed(g, match);
    if (fault) {
        note_match(g, match, BYI_REASON_NOT_CLOSED, fault);
        return false;
    }
    enum byi_reason reason;
    const char *why = byi_merger_refusal(g, match, &reason);
    if (why) {
        note_match(g, match, reason, why);
        return false;
    }
    uint32_t func;
    struct byi_probe_result probed;
    g->status = byi_composite_build(g->m, match, g->scratch, &func, g->err);
    if (g->status != BYOC_OK)
        return false;
    g->m->funcs.at[func]->attr.exact = g->backends->exact;
    g->status = probe_match(g, match, func, &probed);
    if (g->status != BYOC_OK)
        return false;
    if (!probed.refused && probed.reference && g->backends->forbid_ref) {
        note_match(g, match, BYI_REASON_REFERENCE, probed.impl);
    } else if (probed.refused) {
        note_match(g, match, BYI_REASON_PROBE, probed.refused);
    } else {
        claim_match(g, match, func);
        if (g->ledger)
            byi_ledger_set_impl(g->ledger,
                                g->matches.at[g->matches.n - 1].sources,
                                probed.impl);
        return true;
    }
    g->m->funcs.at[func]->dead = true;
    return false;
}

/* --- matching ------------------------------------------------------------- */

/* Match one pattern at all unclaimed nodes, from the outputs back. */
static void match_row(struct byi_merger *g, const struct byi_pattern *row)
{
    const uint32_t *distances = NULL;
    uint64_t budget = byi_match_budget(g->f);
    bool may_match = false;
    for (uint32_t root = 0; root < BYI_ROOT_NONE; root++)
        may_match = may_match || (g->occurs[root] && row->roots[root]);
    if (may_match)
        distances = byi_match_distances(g->f, row, g->scratch);
    for (byi_id id = g->f->nodes.n;
         may_match && id-- > 0 && g->status == BYOC_OK;) {
        uint32_t n_matches = 0;
        if (!row->roots[g->roots[id]] || g->claimed[id] ||
            (distances && distances[id] == BYI_NO_DISTANCE))
            continue;
        byi_match(g->m, g->f, row, id, distances, &budget, accept_match, g,
                  &n_matches);
        g->matched[id] = g->matched[id] || n_matches > 0;
    }
}

/* Returns the node and its operands: "add(nn.conv2d, const)". */
static const char *describe_call(const struct byi_merger *g,
                                 const struct byi_node *node)
{
    enum { MAX_SHOWN = 8 };
    struct byi_text text = {0};
    byi_text_addf(&text, "%s(", byi_composite_op_name(node));
    for (uint32_t i = 0; i < node->n_args && i < MAX_SHOWN; i++) {
        const struct byi_node *arg = &g->f->nodes.at[node->args[i]];
        byi_text_addf(&text, "%s%s", i ? ", " : "",
                      arg->kind == BYI_CONST     ? "const"
                      : arg->kind == BYI_CALL_OP ? byi_composite_op_name(arg)
                                                 : "_");
    }
    byi_text_addf(&text, "%s)", node->n_args > MAX_SHOWN ? ", ..." : "");
    const char *call = byi_arena_str(g->scratch, text.at);
    byi_text_free(&text);
    return call;
}

/* Returns why no pattern fits the node. The text names the IR operator, since
 * passes may have replaced the model's. */
static const char *describe_unmatched(const struct byi_merger *g,
                                      const struct byi_node *node)
{
    const char *op = byi_composite_op_name(node);
    if (!g->backend->table->inside[node->op])
        return byi_arena_printf(g->scratch, "runs as %s, which no pattern has",
                                op);
    if (node->n_args > BYI_MATCH_MAX_OPERANDS)
        return byi_arena_printf(
            g->scratch, "%s of %u operands, expected at most %u in a pattern",
            op, node->n_args, (unsigned)BYI_MATCH_MAX_OPERANDS);
    return byi_arena_printf(g->scratch, "found %s; no pattern with %s fits",
                            describe_call(g, node), op);
}

/* Record the reason for nodes at which no pattern fits. */
static void note_unmatched(struct byi_merger *g)
{
    const struct byi_pattern_table *table = g->backend->table;
    for (byi_id id = g->f->nodes.n; id-- > 0 && g->ledger;) {
        const struct byi_node *node = &g->f->nodes.at[id];
        if (node->kind == BYI_CALL_OP && !g->claimed[id] && !g->matched[id])
            byi_ledger_note(
                g->ledger, node->sources,
                table->inside[node->op] ? BYI_REASON_PATTERN_MISMATCH
                                        : BYI_REASON_NO_PATTERN,
                g->backend->name, NULL, describe_unmatched(g, node));
    }
}

/* Record for each operator that the backend is excluded from the compile. */
static void note_excluded(const struct byi_merger *g)
{
    for (byi_id id = 0; id < g->f->nodes.n && g->ledger; id++) {
        const struct byi_node *node = &g->f->nodes.at[id];
        if (node->kind == BYI_CALL_OP)
            byi_ledger_note(g->ledger, node->sources,
                            g->backend->excluded_reason, g->backend->name, NULL,
                            g->backend->excluded);
    }
}

static void init_merger(struct byi_merger *g)
{
    const uint32_t n = g->f->nodes.n;
    g->uses = byi_uses_of(g->f, g->scratch);
    g->claimed = byi_arena_calloc(g->scratch, n, sizeof *g->claimed);
    g->roots = byi_arena_calloc(g->scratch, n, sizeof *g->roots);
    g->matched = byi_arena_calloc(g->scratch, n, sizeof *g->matched);
    g->in_epilogue = byi_arena_calloc(g->scratch, n, sizeof *g->in_epilogue);
    for (byi_id id = 0; id < n; id++) {
        g->roots[id] = (uint16_t)byi_root_of(&g->f->nodes.at[id]);
        g->occurs[g->roots[id]] = true;
    }
    byi_merger_mark_epilogues(g);
}

/* Find and claim the backend's matches in the functions of n mergers: try the
 * patterns in the table's order. */
static enum byoc_status find_matches(const struct byi_backend *backend,
                                     struct byi_merger *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        init_merger(list[i]);
    for (uint32_t i = 0; i < n && backend->excluded; i++)
        note_excluded(list[i]);
    if (backend->excluded)
        return BYOC_OK;
    for (uint32_t row = 0; row < backend->table->n; row++)
        for (uint32_t i = 0; i < n; i++) {
            match_row(list[i], &backend->table->at[row]);
            BYI_TRY(list[i]->status);
        }
    for (uint32_t i = 0; i < n; i++)
        note_unmatched(list[i]);
    return BYOC_OK;
}

/* --- rebuilding the function ---------------------------------------------- */

/* Whether the node was claimed and no other node of its match reads it. */
static bool is_root(const struct byi_merger *g, byi_id id)
{
    uint32_t accepted = g->claimed[id];
    if (!accepted)
        return false;
    for (uint32_t u = g->uses.first[id]; u < g->uses.first[id + 1]; u++)
        if (g->claimed[g->uses.at[u]] == accepted)
            return false;
    return true;
}

static enum byoc_status emit_call(struct byi_merger *g,
                                  struct byi_func *new_func, byi_id *map,
                                  byi_id root)
{
    const struct byi_accepted_match *accepted =
        &g->matches.at[g->claimed[root] - 1];
    byi_id *args = byi_arena_calloc(g->scratch, accepted->n_args, sizeof *args);
    for (uint32_t i = 0; i < accepted->n_args; i++)
        args[i] = map[accepted->args[i]];
    byi_id fn = byi_add_fn(g->m, new_func, accepted->func, NULL, 0, NULL);
    return byi_add_apply(g->m, new_func, fn, args, accepted->n_args,
                         accepted->sources, &map[root], g->err);
}

static enum byoc_status rebuild(struct byi_merger *g)
{
    const struct byi_func *f = g->f;
    byi_id *map = byi_arena_calloc(g->scratch, f->nodes.n, sizeof *map);
    struct byi_func *new_func = byi_func_like(g->m, f, map);
    for (byi_id id = 0; id < f->nodes.n; id++) {
        if (f->nodes.at[id].kind == BYI_PARAM)
            continue;
        if (!g->claimed[id])
            BYI_TRY(byi_add_copy(g->m, new_func, f, id, map, &map[id], g->err));
        else if (is_root(g, id))
            BYI_TRY(emit_call(g, new_func, map, id));
    }
    new_func->result = map[f->result];
    byi_assignment_move(g->backends->assignment, g->func, f->nodes.n, map,
                        new_func->nodes.n);
    byi_func_replace(g->m, g->func, new_func);
    return BYOC_OK;
}

enum byoc_status byi_find_composites(struct byi_module *m, uint32_t func,
                                     struct byi_pass_context *ctx,
                                     const struct byi_backend *backend,
                                     struct byi_arena *arena,
                                     const uint32_t **claimed,
                                     struct byoc_error *err)
{
    struct byi_merger g = {.m = m,
                           .f = m->funcs.at[func],
                           .func = func,
                           .ctx = ctx,
                           .ledger = byi_ledger_of(ctx),
                           .backends = byi_backends_of(ctx),
                           .scratch = arena,
                           .err = err,
                           .backend = backend,
                           .samples = byi_samples_new(m, ctx, arena)};
    struct byi_merger *const list[] = {&g};
    find_matches(backend, list, 1);
    for (uint32_t i = 0; i < g.matches.n; i++)
        m->funcs.at[g.matches.at[i].func]->dead = true;
    byi_vec_free(g.matches.at);
    *claimed = g.claimed;
    return g.status;
}

/* Whether a match has claimed the function as a branch of its `if`. */
static bool is_branch(const struct byi_merger *g)
{
    return g->f->nodes.n > 0 && g->claimed[0] == BRANCH;
}

static enum byoc_status rebuild_all(struct byi_merger *const *list, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_branch(list[i]))
            list[i]->f->dead = true;
        else if (list[i]->matches.n)
            BYI_TRY(rebuild(list[i]));
    }
    return BYOC_OK;
}

/* Count the literals of each function, except those in its own body. */
static void count_fns(struct byi_merger *const *mergers, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (byi_id id = 0; mergers[i] && id < mergers[i]->f->nodes.n; id++) {
            const struct byi_node *node = &mergers[i]->f->nodes.at[id];
            if (node->kind == BYI_FN && node->index != i &&
                mergers[node->index])
                mergers[node->index]->n_fns++;
        }
}

static enum byoc_status merge_for_backend(struct byi_module *m,
                                          const struct byi_backend *backend,
                                          struct byi_pass_context *ctx,
                                          struct byi_arena *scratch,
                                          struct byoc_error *err)
{
    const uint32_t n_mergers = m->funcs.n; /* skip composites made here */
    struct byi_merger **mergers =
        byi_arena_calloc(scratch, n_mergers, sizeof *mergers);
    struct byi_merger **list =
        byi_arena_calloc(scratch, n_mergers, sizeof *list);
    const struct byi_samples *samples = byi_samples_new(m, ctx, scratch);
    uint32_t n = 0;
    for (uint32_t i = 0; i < n_mergers; i++) {
        struct byi_func *f = m->funcs.at[i];
        if (f->dead || f->attr.compiler || f->attr.composite || f->attr.inner)
            continue;
        list[n] = mergers[i] = byi_arena_calloc(scratch, 1, sizeof **mergers);
        *list[n++] = (struct byi_merger){.m = m,
                                         .f = f,
                                         .func = i,
                                         .ctx = ctx,
                                         .ledger = byi_ledger_of(ctx),
                                         .backends = byi_backends_of(ctx),
                                         .scratch = scratch,
                                         .err = err,
                                         .backend = backend,
                                         .samples = samples,
                                         .mergers = mergers,
                                         .n_mergers = n_mergers};
    }
    count_fns(mergers, n_mergers);
    enum byoc_status status = find_matches(backend, list, n);
    if (status == BYOC_OK)
        status = rebuild_all(list, n);
    for (uint32_t i = 0; i < n; i++)
        byi_vec_free(list[i]->matches.at);
    return status;
}

static enum byoc_status merge_composite(struct byi_module *m,
                                        struct byi_pass_context *ctx,
                                        struct byi_arena *scratch,
                                        struct byoc_error *err)
{
    struct byi_backends *backends = byi_backends_of(ctx);

    for (uint32_t i = 0; backends && i < backends->n; i++)
        BYI_TRY(merge_for_backend(m, &backends->at[i], ctx, scratch, err));
    if (backends)
        backends->assignment = NULL; /* it is for this module only */
    return BYOC_OK;
}

const struct byi_pass byi_pass_merge_composite = {
    .name = "MergeComposite",
    .summary = "make composites of matches of a backend's rows",
    .run_module = merge_composite,
};
