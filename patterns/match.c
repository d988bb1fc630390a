/* match.c: finds where a pattern fits. The solver keeps a list of goals
 * (pattern node, value) and takes them one by one, going back where a choice
 * fails: alternatives, operand order, how often a step repeats. Its depth is
 * bounded by the pattern and its repetitions, never by the graph.
 */
#include "patterns.h"

#include <assert.h>
#include <string.h>

/* A step that is being repeated: what '^' continues with. */
struct frame {
    uint32_t chain;            /* the CHAIN's index */
    uint32_t count;            /* steps taken so far, from the root inwards */
    const struct frame *outer; /* frame in which the chain itself stands */
};

struct goal {
    uint32_t pat;
    byi_id value;
    const struct frame *frame;
    const struct goal *next;
};

/* A binding; depth: which repetition, counted from the root. */
struct binding {
    uint32_t name, depth;
    bool repeated;
    byi_id value;
};

struct solver {
    const struct byi_module *m;
    const struct byi_func *f;
    const struct byi_pattern *p;
    byi_match_fn take;
    void *ctx;
    uint32_t tried, budget;
    uint32_t n_ops, n_bound;
    byi_id ops[BYI_MATCH_MAX_OPS];
    uint32_t roles[BYI_MATCH_MAX_OPS]; /* the pattern node of each operator */
    struct binding bound[BYI_MATCH_MAX_OPERANDS];
    struct byi_match *match;
};

static bool solve(struct solver *s, const struct goal *goal);

static bool is_commutative(enum byi_op_id op)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_ADD,         BYI_OP_MULTIPLY,   BYI_OP_MAXIMUM,
        BYI_OP_MINIMUM,     BYI_OP_EQUAL,      BYI_OP_NOT_EQUAL,
        BYI_OP_LOGICAL_AND, BYI_OP_LOGICAL_OR, BYI_OP_LOGICAL_XOR,
    };
    for (size_t i = 0; i < BYI_COUNT(ops); i++)
        if (ops[i] == op)
            return true;
    return false;
}

/* Do two nodes of a pattern say the same? Depth is the pattern's. */
static bool same_role(const struct byi_pattern *p, uint32_t a, uint32_t b)
{
    const struct byi_pat *x = &p->nodes[a], *y = &p->nodes[b];
    if (a == b)
        return true;
    if (x->kind != y->kind || x->name != y->name || x->n_ops != y->n_ops ||
        x->n_args != y->n_args || x->index != y->index ||
        x->has_rest != y->has_rest || x->rest != y->rest || x->min != y->min ||
        x->max != y->max || x->n_attrs != y->n_attrs)
        return false;
    for (uint32_t i = 0; i < x->n_ops; i++)
        if (x->ops[i] != y->ops[i])
            return false;
    for (uint32_t i = 0; i < x->n_attrs; i++)
        if (strcmp(x->attrs[i].name, y->attrs[i].name) != 0 ||
            !byi_attr_equal(&x->attrs[i], &y->attrs[i]))
            return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!same_role(p, x->args[i], y->args[i]))
            return false;
    return true;
}

/* The operators, ascending and each once: a node may stand in several places
 * of the pattern when all of them say the same (a diamond), else no match. */
static bool collect_ops(const struct solver *s, struct byi_match *match)
{
    uint32_t roles[BYI_MATCH_MAX_OPS];
    match->n_ops = 0;
    for (uint32_t i = 0; i < s->n_ops; i++) {
        uint32_t k = match->n_ops;
        while (k > 0 && match->ops[k - 1] > s->ops[i])
            k--;
        if (k > 0 && match->ops[k - 1] == s->ops[i]) {
            if (!same_role(s->p, roles[k - 1], s->roles[i]))
                return false;
            continue;
        }
        const size_t behind = match->n_ops++ - k;
        memmove(&match->ops[k + 1], &match->ops[k],
                behind * sizeof *match->ops);
        memmove(&roles[k + 1], &roles[k], behind * sizeof *roles);
        match->ops[k] = s->ops[i];
        roles[k] = s->roles[i];
    }
    return true;
}

static bool has_op(const struct byi_match *match, byi_id id)
{
    for (uint32_t i = 0; i < match->n_ops; i++)
        if (match->ops[i] == id)
            return true;
    return false;
}

/* Operands come from outside: none is made by an operator of the match. */
static bool operands_outside(const struct solver *s,
                             const struct byi_match *match)
{
    for (uint32_t i = 0; i < s->n_bound; i++) {
        const struct byi_node *node = &s->f->nodes.at[s->bound[i].value];
        if (has_op(match, s->bound[i].value) ||
            (node->kind == BYI_GET && has_op(match, node->args[0])))
            return false;
    }
    return true;
}

/* Bindings in the order of names; repetitions from the inside (deepest) out. */
static bool comes_before(const struct binding *a, const struct binding *b)
{
    if (a->repeated != b->repeated)
        return !a->repeated;
    if (a->repeated && a->depth != b->depth)
        return a->depth > b->depth;
    return a->name < b->name;
}

static void name_bindings(struct solver *s)
{
    struct byi_match *match = s->match;
    struct binding sorted[BYI_MATCH_MAX_OPERANDS];
    uint32_t counts[BYI_PATTERN_MAX_NODES] = {0};
    for (uint32_t i = 0; i < s->n_bound; i++) {
        uint32_t k = i;
        for (; k > 0 && comes_before(&s->bound[i], &sorted[k - 1]); k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = s->bound[i];
    }
    for (uint32_t i = 0; i < s->n_bound; i++) {
        const char *name = s->p->names[sorted[i].name];
        if (sorted[i].repeated)
            snprintf(match->names[i], sizeof match->names[i], "%.16s%u", name,
                     counts[sorted[i].name]++);
        else
            snprintf(match->names[i], sizeof match->names[i], "%.20s", name);
        match->bound[i] = (struct byi_bound){.name = match->names[i],
                                             .value = sorted[i].value};
    }
    match->n_bound = s->n_bound;
}

static bool finish(struct solver *s)
{
    struct byi_match *match = s->match;
    if (!collect_ops(s, match) || !operands_outside(s, match))
        return false;
    name_bindings(s);
    match->said->n = 0;
    s->tried++;
    return s->take(match, s->ctx);
}

static bool solve_next(struct solver *s, const struct goal *goal)
{
    return goal->next ? solve(s, goal->next) : finish(s);
}

/* Which repetition of a '*' step the frame is in; these never nest. */
static uint32_t depth_of(const struct solver *s, const struct frame *frame)
{
    while (frame && s->p->nodes[frame->chain].max == 1)
        frame = frame->outer;
    return frame ? frame->count : 0;
}

static bool solve_leaf(struct solver *s, const struct goal *goal,
                       const struct byi_pat *pat)
{
    const struct byi_node *node = &s->f->nodes.at[goal->value];
    if (pat->kind == BYI_PAT_CONST && node->kind != BYI_CONST)
        return false;
    bool repeated = s->p->repeated[pat->name];
    uint32_t depth = repeated ? depth_of(s, goal->frame) : 0;
    for (uint32_t i = 0; i < s->n_bound; i++)
        if (s->bound[i].name == pat->name && s->bound[i].depth == depth)
            return s->bound[i].value == goal->value && solve_next(s, goal);
    if (s->n_bound == BYI_MATCH_MAX_OPERANDS)
        return false;
    s->bound[s->n_bound++] = (struct binding){.name = pat->name,
                                              .depth = depth,
                                              .repeated = repeated,
                                              .value = goal->value};
    if (solve_next(s, goal))
        return true;
    s->n_bound--;
    return false;
}

static bool op_fits(const struct byi_pat *pat, const struct byi_node *node)
{
    if (node->kind != BYI_CALL_OP ||
        (pat->has_rest ? node->n_args < pat->n_args
                       : node->n_args != pat->n_args))
        return false;
    bool known = false;
    for (uint32_t i = 0; i < pat->n_ops && !known; i++)
        known = pat->ops[i] == node->op;
    if (!known)
        return false;
    for (uint32_t i = 0; i < pat->n_attrs; i++) {
        const struct byi_attr *attr =
            byi_attr_find(node->attrs, pat->attrs[i].name);
        if (!attr || !byi_attr_equal(attr, &pat->attrs[i]))
            return false;
    }
    return true;
}

/* Goals for the operands from the last to the first, then go on. `swap` gives
 * the two operands of a commutative operator in the other order. */
static bool solve_args(struct solver *s, const struct goal *goal,
                       const struct byi_pat *pat, const struct byi_node *node,
                       bool swap)
{
    struct goal goals[BYI_PATTERN_MAX_ARGS];
    const struct goal *next = goal->next;
    assert(pat->n_args <= BYI_COUNT(goals));
    for (uint32_t i = pat->n_args; i-- > 0;) {
        uint32_t from = swap ? 1 - i : i;
        goals[i] = (struct goal){.pat = pat->args[i],
                                 .value = node->args[from],
                                 .frame = goal->frame,
                                 .next = next};
        next = &goals[i];
    }
    return next ? solve(s, next) : finish(s);
}

/* Bind the operands after the ones written out; a name that is bound already
 * must have the same ones. */
static bool bind_rest(struct solver *s, const struct byi_pat *pat,
                      const struct byi_node *node)
{
    const uint32_t n = node->n_args - pat->n_args, n_bound = s->n_bound;
    uint32_t same = 0, bound = 0;
    for (uint32_t i = 0; i < n_bound; i++) {
        if (s->bound[i].name != pat->rest)
            continue;
        bound++;
        same +=
            s->bound[i].depth <= n &&
            s->bound[i].value == node->args[node->n_args - s->bound[i].depth];
    }
    if (bound)
        return bound == n && same == n;
    if (n > BYI_MATCH_MAX_OPERANDS - n_bound)
        return false;
    for (uint32_t i = 0; i < n; i++)
        s->bound[s->n_bound++] =
            (struct binding){.name = pat->rest,
                             .depth = n - i,
                             .repeated = true,
                             .value = node->args[pat->n_args + i]};
    return true;
}

static bool solve_op(struct solver *s, const struct goal *goal,
                     const struct byi_pat *pat)
{
    const struct byi_node *node = &s->f->nodes.at[goal->value];
    if (!op_fits(pat, node) || s->n_ops == BYI_MATCH_MAX_OPS)
        return false;
    uint32_t n_bound = s->n_bound;
    if (pat->has_rest && !bind_rest(s, pat, node))
        return false;
    s->roles[s->n_ops] = goal->pat;
    s->ops[s->n_ops++] = goal->value;
    if (solve_args(s, goal, pat, node, false))
        return true;
    if (pat->n_args == 2 && node->args[0] != node->args[1] &&
        is_commutative(node->op) && solve_args(s, goal, pat, node, true))
        return true;
    s->n_ops--;
    s->n_bound = n_bound;
    return false;
}

static bool solve_chain(struct solver *s, const struct goal *goal,
                        uint32_t chain, uint32_t count,
                        const struct frame *outer)
{
    const struct byi_pat *pat = &s->p->nodes[chain];
    if (count < pat->max) {
        struct frame frame = {
            .chain = chain, .count = count + 1, .outer = outer};
        struct goal step = {.pat = pat->args[1],
                            .value = goal->value,
                            .frame = &frame,
                            .next = goal->next};
        if (solve(s, &step))
            return true;
    }
    if (count < pat->min)
        return false;
    struct goal base = {.pat = pat->args[0],
                        .value = goal->value,
                        .frame = outer,
                        .next = goal->next};
    return solve(s, &base);
}

static bool solve(struct solver *s, const struct goal *goal)
{
    const struct byi_pat *pat = &s->p->nodes[goal->pat];
    if (s->budget == 0)
        return false;
    s->budget--;
    switch (pat->kind) {
    case BYI_PAT_ANY:
    case BYI_PAT_CONST:
        return solve_leaf(s, goal, pat);
    case BYI_PAT_OP:
        return solve_op(s, goal, pat);
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < pat->n_args; i++) {
            struct goal choice = *goal;
            choice.pat = pat->args[i];
            if (solve(s, &choice))
                return true;
        }
        return false;
    case BYI_PAT_GET: {
        const struct byi_node *node = &s->f->nodes.at[goal->value];
        if (node->kind != BYI_GET || node->index != pat->index)
            return false;
        struct goal tuple = *goal;
        tuple.pat = pat->args[0];
        tuple.value = node->args[0];
        return solve(s, &tuple);
    }
    case BYI_PAT_CHAIN:
        return solve_chain(s, goal, goal->pat, 0, goal->frame);
    case BYI_PAT_HOLE: {
        const struct frame *frame = goal->frame;
        return solve_chain(s, goal, frame->chain, frame->count, frame->outer);
    }
    }
    byi_unreachable();
}

bool byi_match(const struct byi_module *m, const struct byi_func *f,
               const struct byi_pattern *pattern, byi_id root,
               byi_match_fn take, void *ctx, uint32_t *tried)
{
    struct byi_said said;
    struct byi_match match = {
        .m = m, .f = f, .pattern = pattern, .root = root, .said = &said};
    struct solver s = {.m = m,
                       .f = f,
                       .p = pattern,
                       .take = take,
                       .ctx = ctx,
                       .budget = 100000,
                       .match = &match};
    struct goal goal = {.pat = pattern->root, .value = root};
    bool taken = solve(&s, &goal);
    *tried = s.tried;
    return taken;
}
