/* SPDX-License-Identifier: Apache-2.0 */
/* lint.c: finds errors in a table of rows without a model. These are rows that
 * do not compile, rows with the name of an earlier one, and rows that are
 * unreachable because an earlier one always matches.
 */
#include "patterns.h"

#include <string.h>

/* A place of a pattern: a node, and the step that a '^' in it belongs to. */
struct pattern_place {
    const struct byi_pattern *p;
    uint32_t at, chain; /* chain: BYI_NO_NAME outside of steps */
};

enum { MAX_PAIRS = 512 };

/* Pairs of places that are being compared. A pair that is reached again counts
 * as covered, since every cycle through a step goes down one operator. */
struct cover {
    struct pattern_place pairs[MAX_PAIRS][2];
    uint32_t n;
    /* for each chain: the enclosing one */
    uint32_t outer[2][BYI_PATTERN_MAX_NODES];
};

static bool covers(struct cover *c, struct pattern_place a,
                   struct pattern_place b);

static const struct byi_pat *node_at(struct pattern_place place)
{
    return &place.p->nodes[place.at];
}

static struct pattern_place child_place(struct pattern_place place, uint32_t i)
{
    place.at = node_at(place)->args[i];
    return place;
}

/* The step of a chain. Records the chain that encloses it, for chain_of_hole().
 */
static struct pattern_place step_of(struct cover *c, int side,
                                    struct pattern_place chain)
{
    struct pattern_place step = child_place(chain, 1);
    c->outer[side][chain.at] = chain.chain;
    step.chain = chain.at;
    return step;
}

/* The chain whose step contains the hole. */
static struct pattern_place chain_of_hole(const struct cover *c, int side,
                                          struct pattern_place hole)
{
    const uint32_t chain = hole.chain;
    hole.chain = c->outer[side][chain];
    hole.at = chain;
    return hole;
}

/* Whether each value of `some` is one of `all`. */
static bool values_among(const struct byi_pat_test *some,
                         const struct byi_pat_test *all)
{
    for (uint32_t i = 0; i < some->n; i++) {
        bool found = false;
        for (uint32_t k = 0; k < all->n && !found; k++)
            found = byi_attr_value_equal(&some->values[i], &all->values[k]);
        if (!found)
            return false;
    }
    return true;
}

/* Whether every attribute that passes test b passes test a: a test passes if
 * one of its comparisons holds, or, with "!=", if all hold. */
static bool test_covers(const struct byi_pat_test *a,
                        const struct byi_pat_test *b)
{
    return strcmp(a->name, b->name) == 0 && a->cmp == b->cmp &&
           (a->cmp == BYI_NE ? values_among(a, b) : values_among(b, a));
}

/* Whether each test of a covers a test of b, and a has all operators of b. */
static bool op_covers(const struct byi_pat *a, const struct byi_pat *b)
{
    for (uint32_t i = 0; i < b->n_ops; i++) {
        bool found = false;
        for (uint32_t k = 0; k < a->n_ops; k++)
            found = found || a->ops[k] == b->ops[i];
        if (!found)
            return false;
    }
    for (uint32_t i = 0; i < a->n_tests; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->n_tests; k++)
            found = found || test_covers(&a->tests[i], &b->tests[k]);
        if (!found)
            return false;
    }
    return true;
}

static bool args_cover(struct cover *c, struct pattern_place a,
                       struct pattern_place b)
{
    const struct byi_pat *x = node_at(a), *y = node_at(b);
    if (x->has_rest ? y->n_args < x->n_args
                    : y->has_rest || y->n_args != x->n_args)
        return false;
    for (uint32_t i = 0; i < x->n_args; i++)
        if (!covers(c, child_place(a, i), child_place(b, i)))
            return false;
    return true;
}

/* Whether a matches everything that the single place b matches. */
static bool fits_one(struct cover *c, struct pattern_place a,
                     struct pattern_place b)
{
    const struct byi_pat *x = node_at(a), *y = node_at(b);
    switch (x->kind) {
    case BYI_PAT_ANY:
        /* a value with several results is not an operand */
        return y->kind != BYI_PAT_TUPLE && y->kind != BYI_PAT_IF &&
               (y->kind != BYI_PAT_OP || byi_op(y->ops[0])->n_out == 1);
    case BYI_PAT_CONST:
        return y->kind == BYI_PAT_CONST &&
               (!x->has_value || (y->has_value && x->value == y->value));
    case BYI_PAT_OP:
        return y->kind == BYI_PAT_OP && op_covers(x, y) && args_cover(c, a, b);
    case BYI_PAT_TUPLE:
    case BYI_PAT_IF:
        return y->kind == x->kind && args_cover(c, a, b);
    case BYI_PAT_GET:
        return y->kind == BYI_PAT_GET && x->index == y->index &&
               covers(c, child_place(a, 0), child_place(b, 0));
    case BYI_PAT_TYPE:
        return y->kind == BYI_PAT_TYPE &&
               byi_pat_type_equal(node_at(a)->type, node_at(b)->type) &&
               covers(c, child_place(a, 0), child_place(b, 0));
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < x->n_args; i++)
            if (covers(c, child_place(a, i), b))
                return true;
        return false;
    case BYI_PAT_CHAIN:
        return (x->min == 0 && covers(c, child_place(a, 0), b)) ||
               covers(c, step_of(c, 0, a), b);
    case BYI_PAT_HOLE: {
        const struct pattern_place chain = chain_of_hole(c, 0, a);
        return covers(c, child_place(chain, 0), b) ||
               (node_at(chain)->max > 1 && covers(c, step_of(c, 0, chain), b));
    }
    default:
        return false;
    }
}

/* Whether a matches everything that b matches. Returns false if that cannot be
 * decided. */
static bool covers(struct cover *c, struct pattern_place a,
                   struct pattern_place b)
{
    const struct byi_pat *x = node_at(a), *y = node_at(b);
    for (uint32_t i = 0; i < c->n; i++)
        if (memcmp(&c->pairs[i][0], &a, sizeof a) == 0 &&
            memcmp(&c->pairs[i][1], &b, sizeof b) == 0)
            return true;
    if (c->n == MAX_PAIRS)
        return false;
    c->pairs[c->n][0] = a;
    c->pairs[c->n++][1] = b;
    const uint32_t n = c->n;
    bool is_covered = true;
    switch (y->kind) {
    case BYI_PAT_ALT:
        for (uint32_t i = 0; i < y->n_args; i++)
            is_covered = is_covered && covers(c, a, child_place(b, i));
        break;
    case BYI_PAT_CHAIN:
        is_covered = (y->min > 0 || covers(c, a, child_place(b, 0))) &&
                     covers(c, a, step_of(c, 1, b));
        break;
    case BYI_PAT_HOLE: {
        const struct pattern_place chain = chain_of_hole(c, 1, b);
        is_covered =
            covers(c, a, child_place(chain, 0)) &&
            (node_at(chain)->max == 1 || covers(c, a, step_of(c, 1, chain)));
        break;
    }
    case BYI_PAT_TYPE:
        is_covered = (x->kind == BYI_PAT_TYPE && fits_one(c, a, b)) ||
                     covers(c, a, child_place(b, 0));
        break;
    default:
        is_covered = fits_one(c, a, b);
    }
    if (!is_covered)
        c->n = n - 1;
    return is_covered;
}

/* Whether covers() can compare the pattern. It cannot if a name must have the
 * same value in several places, an operator is in two places, or there are
 * counted steps, steps with '~' or groups. If `unique_leaves`, a leaf must not
 * be in two places either.
 */
static bool is_comparable(const struct byi_pattern *p, bool unique_leaves)
{
    uint32_t readers[BYI_PATTERN_MAX_NODES] = {0};
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const struct byi_pat *pat = &p->nodes[i];
        for (uint32_t k = 0; k < pat->n_args; k++)
            readers[pat->args[k]]++;
        if (pat->kind == BYI_PAT_GROUP || pat->kind == BYI_PAT_ONCE ||
            pat->forks || pat->min > 1 ||
            (pat->max > 1 && pat->max < BYI_PATTERN_MAX_REPEAT))
            return false;
    }
    for (uint32_t i = 0; i < p->n_nodes; i++) {
        const bool leaf = p->nodes[i].kind <= BYI_PAT_CONST;
        if (readers[i] > 1 && p->nodes[i].kind != BYI_PAT_HOLE &&
            (unique_leaves || !leaf))
            return false;
    }
    return true;
}

/* Whether row a matches at this place of b, or at one below it that is in every
 * match. */
static bool row_matches(struct cover *c, struct pattern_place a,
                        struct pattern_place b)
{
    const struct byi_pat *y = node_at(b);
    if (y->kind <= BYI_PAT_CONST || y->kind == BYI_PAT_HOLE)
        return false;
    c->n = 0;
    if (covers(c, a, b))
        return true;
    if (y->kind == BYI_PAT_ALT)
        return false;
    if (y->kind == BYI_PAT_IF) /* an operand may be in another function */
        return row_matches(c, a, child_place(b, 0));
    if (y->kind == BYI_PAT_CHAIN)
        return row_matches(c, a, child_place(b, 0)) ||
               (y->min > 0 && row_matches(c, a, step_of(c, 1, b)));
    for (uint32_t i = 0; i < y->n_args; i++)
        if (row_matches(c, a, child_place(b, i)))
            return true;
    return false;
}

/* Whether row a, which comes first and is always accepted, claims an operator
 * of every match of b. */
static bool shadows(const struct byi_pattern *a, const struct byi_pattern *b)
{
    struct cover c = {.n = 0};
    return !a->row->accept && is_comparable(a, true) &&
           is_comparable(b, false) &&
           row_matches(&c, (struct pattern_place){a, a->root, BYI_NO_NAME},
                       (struct pattern_place){b, b->root, BYI_NO_NAME});
}

/* The error without its prefix, which names row 0 of a table of one row. */
static const char *bare_message(const struct byoc_error *err)
{
    const char *behind = strstr(err->text, "): ");
    return behind ? behind + 3 : err->text;
}

void byi_patterns_lint(const struct byoc_pattern *rows, uint32_t n,
                       struct byi_arena *arena, const char **findings)
{
    struct byi_pattern_table **tables =
        byi_arena_calloc(arena, n, sizeof *tables);
    for (uint32_t i = 0; i < n; i++) {
        struct byoc_error err;
        struct byi_text text = {0};
        if (byi_patterns_compile(&rows[i], 1, &tables[i], &err) != BYOC_OK)
            byi_text_addf(&text, "%s", bare_message(&err));
        for (uint32_t k = 0; k < i && !text.n; k++) {
            if (strcmp(rows[k].name, rows[i].name) == 0)
                byi_text_addf(
                    &text,
                    "found the name of row %u again, expected unique names", k);
            else if (tables[k] && shadows(tables[k]->at, tables[i]->at))
                byi_text_addf(&text,
                              "unreachable: row %u (%s) has no predicate and "
                              "claims an operator of every match",
                              k, rows[k].name);
        }
        findings[i] = text.n ? byi_arena_str(arena, text.at) : NULL;
        byi_text_free(&text);
    }
    for (uint32_t i = 0; i < n; i++)
        byi_patterns_free(&tables[i]);
}
