/* SPDX-License-Identifier: Apache-2.0 */
/* match.c: matches patterns by backtracking. The solver keeps a list of goals
 * (pattern node, value), solves them one by one, and backtracks if a choice
 * fails. Choices are alternatives, operand order, and how often a step repeats.
 * Its depth is bounded by the pattern and its repetitions, never by the graph.
 */
#include "patterns.h"

#include <assert.h>
#include <string.h>

/* A repetition of a step, for the '^' in it. */
struct match_frame {
    uint32_t chain; /* the CHAIN's index */
    uint32_t count; /* steps taken so far, from the root inwards */
    byi_id at;      /* the value of this step */
    const struct match_frame *outer; /* the frame that contains the chain */
};

/* A node of the pattern that `value` must match. */
struct goal {
    uint32_t pat;
    byi_id value;
    /* GROUP: the operands that `value` is made of, a bit each; 0: all */
    uint32_t set;
    bool inverse; /* GROUP: `value` is subtracted, or is a divisor */
    const struct match_frame *frame;
    const struct goal *next;
};

/* A binding. depth: its place among those of one name, smaller for those nearer
 * to the root; 0 if the name has one value. */
struct pattern_binding {
    uint32_t name, depth;
    byi_id value;
};

/* What the search has fixed: node `pat` of the pattern, an ONCE or a chain with
 * '~', has the value `value`. If pat >= BYI_PATTERN_MAX_NODES: the name of
 * index pat - BYI_PATTERN_MAX_NODES, written with '...', has `value` values. */
struct known_value {
    uint32_t pat;
    byi_id value;
};

/* The state of a search. */
struct solver {
    const struct byi_module *m;
    const struct byi_pattern *p;
    byi_match_fn take; /* the caller's function, which accepts a match */
    void *ctx;
    uint32_t tried;  /* matches passed to `take` */
    uint32_t budget; /* goals that the search may still solve */
    bool base_only;  /* match only the bases of chains, without steps */
    uint32_t n_ops, n_bound, n_known;
    byi_id ops[BYI_MATCH_MAX_OPS];
    uint32_t roles[BYI_MATCH_MAX_OPS]; /* the pattern node of each operator */
    struct pattern_binding bound[BYI_MATCH_MAX_OPERANDS];
    struct known_value known[BYI_MATCH_MAX_OPS];
    const uint32_t *distances; /* from byi_match_distances, or NULL */
    struct byi_match *match;
};

/* The most goals of one search, and the goals that every search gets even when
 * those shared by all searches are used up. Searches in models take 60 on
 * average; in a hostile graph they could take any number. */
enum { MAX_GOALS = 100000, MIN_GOALS = 128 };

static bool solve(struct solver *s, const struct goal *goal);

static const struct byi_node *node_of(const struct solver *s, byi_id value)
{
    return byi_match_node(s->match, value);
}

static byi_id arg_of(const struct solver *s, byi_id value, uint32_t i)
{
    return byi_match_arg(s->match, value, i);
}

/* List the operators in the order of byi_match_comes_before, each once. A node
 * may match one node of the pattern several times (a diamond). Returns false if
 * a node matches two different ones. */
static bool collect_ops(const struct solver *s, struct byi_match *match)
{
    uint32_t roles[BYI_MATCH_MAX_OPS];
    match->n_ops = 0;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        uint32_t k = match->n_ops;
        while (k > 0 &&
               byi_match_comes_before(match, s->ops[i], match->ops[k - 1]))
            k--;
        if (k > 0 && match->ops[k - 1] == s->ops[i]) {
            if (roles[k - 1] != s->roles[i])
                return false;
            continue;
        }
        const size_t n_after = match->n_ops++ - k;
        memmove(&match->ops[k + 1], &match->ops[k],
                n_after * sizeof *match->ops);
        memmove(&roles[k + 1], &roles[k], n_after * sizeof *roles);
        match->ops[k] = s->ops[i];
        roles[k] = s->roles[i];
    }
    return true;
}

/* Whether all operands are outside, not results of operators of the match. */
static bool operands_are_outside(const struct solver *s,
                                 const struct byi_match *match)
{
    for (uint32_t i = 0; i < s->n_bound; i++) {
        const byi_id value = s->bound[i].value;
        if (byi_has_id(match->ops, match->n_ops, value) ||
            (byi_match_node(match, value)->kind == BYI_GET &&
             byi_has_id(match->ops, match->n_ops,
                        byi_match_arg(match, value, 0))))
            return false;
    }
    return true;
}

/* The order of bindings: those outside of repetitions first, then repetitions
 * from the inside (deepest) out; each in the order of the names. */
static bool comes_before(const struct pattern_binding *a,
                         const struct pattern_binding *b)
{
    if (!a->depth != !b->depth)
        return !a->depth;
    if (a->depth != b->depth)
        return a->depth > b->depth;
    return a->name < b->name;
}

/* Set the match's operands, sorted, with numbers after repeated names. */
static void name_bindings(struct solver *s)
{
    struct byi_match *match = s->match;
    struct pattern_binding sorted[BYI_MATCH_MAX_OPERANDS];
    uint32_t counts[BYI_PATTERN_MAX_NODES] = {0};
    for (uint32_t i = 0; i < s->n_bound; i++) {
        uint32_t k = i;
        for (; k > 0 && comes_before(&s->bound[i], &sorted[k - 1]); k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = s->bound[i];
    }
    for (uint32_t i = 0; i < s->n_bound; i++) {
        const char *name = s->p->names[sorted[i].name];
        if (s->p->repeated[sorted[i].name])
            snprintf(match->names[i], sizeof match->names[i], "%.16s%u", name,
                     counts[sorted[i].name]++);
        else
            snprintf(match->names[i], sizeof match->names[i], "%.20s", name);
        match->bound[i] = (struct byi_bound_operand){.name = match->names[i],
                                                     .value = sorted[i].value};
    }
    match->n_bound = s->n_bound;
}

/* The value of `pat` if it is known; otherwise BYI_NO_ID. */
static byi_id known_value(const struct solver *s, uint32_t pat)
{
    for (uint32_t i = 0; i < s->n_known; i++)
        if (s->known[i].pat == pat)
            return s->known[i].value;
    return BYI_NO_ID;
}

/* List the operators that `with` names. */
static void name_ops(const struct solver *s, struct byi_match *match)
{
    match->n_named = 0;
    for (uint32_t i = 0; i < s->n_known; i++) {
        if (s->known[i].pat >= s->p->n_nodes)
            continue;
        const struct byi_pat *pat = &s->p->nodes[s->known[i].pat];
        if (pat->kind == BYI_PAT_ONCE && pat->name != BYI_NO_NAME)
            match->named[match->n_named++] = (struct byi_named_operator){
                .name = s->p->names[pat->name], .value = s->known[i].value};
    }
}

/* All goals are solved: complete the match, and offer it to the caller. */
static bool finish_match(struct solver *s)
{
    struct byi_match *match = s->match;
    if (!collect_ops(s, match) || !operands_are_outside(s, match))
        return false;
    name_bindings(s);
    name_ops(s, match);
    match->texts->n = 0;
    s->tried++;
    return s->take(match, s->ctx);
}

static bool solve_next(struct solver *s, const struct goal *goal)
{
    return goal->next ? solve(s, goal->next) : finish_match(s);
}

/* --- leaves and types ----------------------------------------------------- */

/* The depth of the frame's repetition of a step; repetitions never nest. In a
 * function, a reader has a larger id than its operands, so that a smaller depth
 * is nearer to the root. */
static uint32_t depth_of(const struct solver *s,
                         const struct match_frame *frame)
{
    while (frame && s->p->nodes[frame->chain].max == 1)
        frame = frame->outer;
    return frame ? ~frame->at : 0;
}

/* A value inside a branch is not an operand, unless it is a constant. */
static bool is_operand(const struct solver *s, byi_id value)
{
    return !byi_match_branch(s->match, value) ||
           node_of(s, value)->kind == BYI_CONST;
}

static bool solve_leaf(struct solver *s, const struct goal *goal,
                       const struct byi_pat *pat)
{
    const struct byi_node *node = node_of(s, goal->value);
    if (!is_operand(s, goal->value) ||
        (pat->kind == BYI_PAT_CONST &&
         (node->kind != BYI_CONST ||
          (pat->has_value && !byi_match_value_fits(s->m, node, pat->value)))))
        return false;
    uint32_t depth = 0;
    if (pat->kind == BYI_PAT_CONST && s->p->nameless == pat->name)
        depth = ~goal->value; /* each constant is a separate operand */
    else if (s->p->repeated[pat->name])
        depth = depth_of(s, goal->frame);
    for (uint32_t i = 0; i < s->n_bound; i++)
        if (s->bound[i].name == pat->name && s->bound[i].depth == depth)
            return byi_match_is_same(s->match, s->bound[i].value,
                                     goal->value) &&
                   solve_next(s, goal);
    if (s->n_bound == BYI_MATCH_MAX_OPERANDS ||
        byi_has_id(s->ops, s->n_ops, goal->value))
        return false;
    s->bound[s->n_bound++] = (struct pattern_binding){
        .name = pat->name, .depth = depth, .value = goal->value};
    if (solve_next(s, goal))
        return true;
    s->n_bound--;
    return false;
}

/* --- operators ------------------------------------------------------------ */

static bool is_leaf(const struct solver *s, uint32_t pat)
{
    const enum byi_pat_kind kind = s->p->nodes[pat].kind;
    return kind == BYI_PAT_ANY || kind == BYI_PAT_CONST;
}

/* Push goals for the operands and go on. Operands that only bind a name are
 * solved first, since they fail at once. `swap` exchanges the two operands of a
 * commutative operator. */
static bool solve_args(struct solver *s, const struct goal *goal,
                       const struct byi_pat *pat, bool swap)
{
    struct goal goals[BYI_PATTERN_MAX_ARGS];
    const struct goal *next = goal->next;
    assert(pat->n_args <= BYI_COUNT(goals));
    for (uint32_t k = 2 * pat->n_args; k-- > 0;) {
        const uint32_t i = k % pat->n_args;
        const uint32_t from = swap ? 1 - i : i;
        if (is_leaf(s, pat->args[i]) != (k < pat->n_args))
            continue;
        goals[i] = (struct goal){.pat = pat->args[i],
                                 .value = arg_of(s, goal->value, from),
                                 .frame = goal->frame,
                                 .next = next};
        next = &goals[i];
    }
    return next ? solve(s, next) : finish_match(s);
}

/* Bind the operands after the ones written out; a name that is bound already
 * must have the same number of equal values. */
static bool bind_rest(struct solver *s, const struct byi_pat *pat, byi_id value)
{
    const uint32_t n = node_of(s, value)->n_args - pat->n_args;
    const uint32_t key = BYI_PATTERN_MAX_NODES + pat->rest;
    const byi_id count = known_value(s, key);
    if (count != BYI_NO_ID && count != n)
        return false;
    if (count == n) {
        bool same = true;
        for (uint32_t i = 0; i < s->n_bound; i++)
            if (s->bound[i].name == pat->rest)
                same = same && byi_match_is_same(
                                   s->match, s->bound[i].value,
                                   arg_of(s, value,
                                          pat->n_args + n - s->bound[i].depth));
        return same;
    }
    if (n > BYI_MATCH_MAX_OPERANDS - s->n_bound ||
        s->n_known == BYI_COUNT(s->known))
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!is_operand(s, arg_of(s, value, pat->n_args + i)))
            return false;
    s->known[s->n_known++] = (struct known_value){.pat = key, .value = n};
    for (uint32_t i = 0; i < n; i++)
        s->bound[s->n_bound++] = (struct pattern_binding){
            .name = pat->rest,
            .depth = n - i,
            .value = arg_of(s, value, pat->n_args + i)};
    return true;
}

/* Add the operator to the match. Returns false if the match has too many, or if
 * the operator's value is bound as an operand, which must be outside. */
static bool push_op(struct solver *s, const struct goal *goal)
{
    if (s->n_ops == BYI_MATCH_MAX_OPS)
        return false;
    for (uint32_t i = 0; i < s->n_bound; i++)
        if (s->bound[i].value == goal->value)
            return false;
    s->roles[s->n_ops] = goal->pat;
    s->ops[s->n_ops++] = goal->value;
    return true;
}

static bool solve_op(struct solver *s, const struct goal *goal,
                     const struct byi_pat *pat)
{
    const struct byi_node *node = node_of(s, goal->value);
    const uint32_t n_bound = s->n_bound, n_known = s->n_known;
    if (!byi_match_op_fits(pat, node))
        return false;
    /* read now: `take` may add nodes to the function, which moves this one */
    const bool swaps = pat->n_args == 2 && node->args[0] != node->args[1] &&
                       byi_op_has(node->op, BYI_TRAIT_COMMUTES);
    if (pat->has_rest && !bind_rest(s, pat, goal->value))
        return false;
    if (push_op(s, goal)) {
        if (solve_args(s, goal, pat, false) ||
            (swaps && solve_args(s, goal, pat, true)))
            return true;
        s->n_ops--;
    }
    s->n_bound = n_bound;
    s->n_known = n_known;
    return false;
}

static bool solve_tuple(struct solver *s, const struct goal *goal,
                        const struct byi_pat *pat)
{
    const struct byi_node *node = node_of(s, goal->value);
    if (node->kind != BYI_MAKE_TUPLE || node->n_args != pat->n_args ||
        !push_op(s, goal))
        return false;
    if (solve_args(s, goal, pat, false))
        return true;
    s->n_ops--;
    return false;
}

/* Match the condition and the results of the branches, which are ordinary
 * values. */
static bool solve_if(struct solver *s, const struct goal *goal,
                     const struct byi_pat *pat)
{
    if (node_of(s, goal->value)->kind != BYI_IF ||
        !byi_match_open(s->match, goal->value) || !push_op(s, goal))
        return false;
    if (solve_args(s, goal, pat, false))
        return true;
    s->n_ops--;
    return false;
}

/* --- operands grouped in any way ------------------------------------------ */

/* The operators of a group: add or multiply (`op`), its inverse for two
 * operands, and its inverse for one. */
struct group_ops {
    enum byi_op_id op, inverse, unary;
};

static struct group_ops group_ops(const struct byi_pat *pat)
{
    static const struct group_ops sums = {BYI_OP_ADD, BYI_OP_SUBTRACT,
                                          BYI_OP_NEGATIVE};
    static const struct group_ops products = {BYI_OP_MULTIPLY, BYI_OP_DIVIDE,
                                              BYI_OP_RECIPROCAL};
    return pat->ops[0] == BYI_OP_ADD ? sums : products;
}

/* Match the goal's value with one of the pattern's operands. */
static bool solve_member(struct solver *s, const struct goal *goal,
                         const struct byi_pat *pat, uint32_t set)
{
    for (uint32_t i = 0; i < pat->n_args; i++) {
        const uint32_t bit = 1u << (pat->n_args - 1 - i);
        if (set != bit || (pat->inverse >> i & 1) != goal->inverse)
            continue;
        const struct goal member = {.pat = pat->args[i],
                                    .value = goal->value,
                                    .frame = goal->frame,
                                    .next = goal->next};
        return solve(s, &member);
    }
    return false;
}

/* Match the two operands of the goal's value, for every way to split the set;
 * sets with the pattern's first operands come first. */
static bool solve_split(struct solver *s, const struct goal *goal,
                        const struct byi_node *node, uint32_t set, bool flip)
{
    const bool same = node->args[0] == node->args[1] && !flip;
    for (uint32_t subset = (set - 1) & set; subset;
         subset = (subset - 1) & set) {
        struct goal right = *goal, first = *goal;
        if (same && subset < (set ^ subset))
            /* the remaining splits repeat these with the operands exchanged */
            break;
        right.value = arg_of(s, goal->value, 1);
        right.set = set ^ subset;
        right.inverse = goal->inverse != flip;
        first.value = arg_of(s, goal->value, 0);
        first.set = subset;
        first.next = &right;
        if (solve(s, &first))
            return true;
    }
    return false;
}

/* Operand i is bit n-1-i of a set, so that larger numbers are sets with earlier
 * operands. */
static bool solve_group(struct solver *s, const struct goal *goal,
                        const struct byi_pat *pat)
{
    const struct byi_node *node = node_of(s, goal->value);
    const struct group_ops ops = group_ops(pat);
    const uint32_t full_set = (1u << pat->n_args) - 1;
    const uint32_t set = goal->set ? goal->set : full_set;
    bool found = false;
    if ((set & (set - 1)) == 0 && solve_member(s, goal, pat, set))
        return true;
    if (node->kind != BYI_CALL_OP || !push_op(s, goal))
        return false;
    if (node->op == ops.unary && pat->inverse) {
        struct goal inner = *goal;
        inner.set = set;
        inner.inverse = !goal->inverse;
        inner.value = arg_of(s, goal->value, 0);
        found = solve(s, &inner);
    } else if (node->op == ops.op ||
               (node->op == ops.inverse && pat->inverse)) {
        found = solve_split(s, goal, node, set, node->op == ops.inverse);
    }
    if (!found)
        s->n_ops--;
    return found;
}

/* --- steps, and values matched once --------------------------------------- */

static bool is_known(const struct solver *s, uint32_t pat, byi_id value)
{
    for (uint32_t i = 0; i < s->n_known; i++)
        if (s->known[i].pat == pat && s->known[i].value == value)
            return true;
    return false;
}

/* Solve `goal` after recording that node `pat` has the goal's value. */
static bool solve_known(struct solver *s, const struct goal *goal, uint32_t pat)
{
    if (s->n_known == BYI_COUNT(s->known))
        return false;
    s->known[s->n_known++] =
        (struct known_value){.pat = pat, .value = goal->value};
    if (solve(s, goal))
        return true;
    s->n_known--;
    return false;
}

static bool solve_once(struct solver *s, const struct goal *goal,
                       const struct byi_pat *pat)
{
    const byi_id value = known_value(s, goal->pat);
    if (value != BYI_NO_ID)
        return value == goal->value && solve_next(s, goal);
    struct goal inner = *goal;
    inner.pat = pat->args[0];
    return solve_known(s, &inner, goal->pat);
}

/* Add another step before those that the chain has so far. A value that is
 * already on the path of a '~' step is not visited again. */
static bool solve_step(struct solver *s, const struct goal *goal,
                       uint32_t chain, uint32_t count,
                       const struct match_frame *outer)
{
    const struct byi_pat *pat = &s->p->nodes[chain];
    const struct match_frame frame = {
        .chain = chain, .count = count + 1, .at = goal->value, .outer = outer};
    const struct goal step = {.pat = pat->args[1],
                              .value = goal->value,
                              .frame = &frame,
                              .next = goal->next};
    if (!pat->forks)
        return solve(s, &step);
    if (is_known(s, chain, goal->value))
        return solve_next(s, goal);
    return known_value(s, pat->args[0]) != goal->value &&
           solve_known(s, &step, chain);
}

static bool solve_chain(struct solver *s, const struct goal *goal,
                        uint32_t chain, uint32_t count,
                        const struct match_frame *outer)
{
    const struct byi_pat *pat = &s->p->nodes[chain];
    if (s->distances && chain == s->p->root &&
        !byi_match_branch(s->match, goal->value) &&
        s->distances[goal->value] > pat->max - count)
        return false;
    if (count < pat->max && !s->base_only &&
        solve_step(s, goal, chain, count, outer))
        return true;
    if (count < pat->min)
        return false;
    const struct goal base = {.pat = pat->args[0],
                              .value = goal->value,
                              .frame = outer,
                              .next = goal->next};
    return solve(s, &base);
}

static bool solve_field(struct solver *s, const struct goal *goal,
                        const struct byi_pat *pat)
{
    const struct byi_node *node = node_of(s, goal->value);
    if (node->kind != BYI_GET || node->index != pat->index)
        return false;
    struct goal tuple = *goal;
    tuple.pat = pat->args[0];
    tuple.value = arg_of(s, goal->value, 0);
    return solve(s, &tuple);
}

static bool solve(struct solver *s, const struct goal *goal)
{
    const struct byi_pat *pat = &s->p->nodes[goal->pat];
    struct goal inner = *goal;
    if (s->budget == 0)
        return false;
    s->budget--;
    switch (pat->kind) {
    case BYI_PAT_ANY:
    case BYI_PAT_CONST:
        return solve_leaf(s, goal, pat);
    case BYI_PAT_OP:
        return solve_op(s, goal, pat);
    case BYI_PAT_GROUP:
        return solve_group(s, goal, pat);
    case BYI_PAT_TUPLE:
        return solve_tuple(s, goal, pat);
    case BYI_PAT_IF:
        return solve_if(s, goal, pat);
    case BYI_PAT_GET:
        return solve_field(s, goal, pat);
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++) {
            inner.pat = pat->args[i];
            if (solve(s, &inner))
                return true;
        }
        return false;
    case BYI_PAT_CHAIN:
        return solve_chain(s, goal, goal->pat, 0, goal->frame);
    case BYI_PAT_HOLE: {
        const struct match_frame *frame = goal->frame;
        return solve_chain(s, goal, frame->chain, frame->count, frame->outer);
    }
    case BYI_PAT_TYPE:
        inner.pat = pat->args[0];
        return byi_match_type_fits(pat->type, node_of(s, goal->value)->type) &&
               solve(s, &inner);
    case BYI_PAT_ONCE:
        return solve_once(s, goal, pat);
    }
    byi_unreachable();
}

bool byi_match(const struct byi_module *m, const struct byi_func *f,
               const struct byi_pattern *pattern, byi_id root,
               const uint32_t *distances, uint64_t *budget, byi_match_fn take,
               void *ctx, uint32_t *tried)
{
    const uint64_t limit = !budget || *budget > MAX_GOALS ? MAX_GOALS : *budget;
    const uint32_t goals = limit > MIN_GOALS ? (uint32_t)limit : MIN_GOALS;
    struct byi_match_texts texts;
    struct byi_match match; /* large: sets only members that a search reads */
    struct solver s;
    match.m = m;
    match.f = f;
    match.pattern = pattern;
    match.root = root;
    match.texts = &texts;
    match.n_branches = match.n_ops = match.n_bound = match.n_named = 0;
    s.m = m;
    s.p = pattern;
    s.take = take;
    s.ctx = ctx;
    s.tried = s.n_ops = s.n_bound = s.n_known = 0;
    s.budget = goals;
    s.base_only = false;
    s.distances = distances;
    s.match = &match;
    struct goal goal = {.pat = pattern->root, .value = root};
    bool found = solve(&s, &goal);
    const uint32_t used = goals - s.budget;
    if (s.budget == 0 && !found) {
        s.budget = MIN_GOALS;
        s.base_only = true;
        found = solve(&s, &goal);
    }
    *tried = s.tried;
    if (budget)
        *budget -= used < *budget ? used : *budget;
    return found;
}

uint64_t byi_match_budget(const struct byi_func *f)
{
    return MAX_GOALS + (uint64_t)MIN_GOALS * f->nodes.n;
}
