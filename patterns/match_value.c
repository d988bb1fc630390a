/* SPDX-License-Identifier: Apache-2.0 */
/* match_value.c: numbers the values of a match. The operators in branches of an
 * `if` are in separate functions. A match treats them as if they were in the
 * outer function. The nodes of an opened branch get new value numbers, and its
 * captures are the outer values.
 */
#include "patterns.h"

const struct byi_branch *byi_match_branch(const struct byi_match *match,
                                          byi_id value)
{
    if (value < match->f->nodes.n)
        return NULL;
    uint32_t i = match->n_branches - 1;
    while (match->branches[i].first > value)
        i--;
    return &match->branches[i];
}

const struct byi_node *byi_match_node(const struct byi_match *match,
                                      byi_id value)
{
    const struct byi_branch *in = byi_match_branch(match, value);
    return in ? &in->f->nodes.at[value - in->first]
              : &match->f->nodes.at[value];
}

/* Node `id` of a branch as a value; a capture is the outer value. */
static byi_id value_of(const struct byi_match *match,
                       const struct byi_branch *in, byi_id id)
{
    while (in) {
        const struct byi_node *node = &in->f->nodes.at[id];
        if (node->kind != BYI_PARAM)
            return in->first + id;
        id = byi_match_node(match, in->fn)->args[node->index];
        in = byi_match_branch(match, in->fn);
    }
    return id;
}

const struct byi_branch *byi_match_branch_of(const struct byi_match *match,
                                             byi_id owner, uint32_t arg)
{
    for (uint32_t i = 0; i < match->n_branches; i++)
        if (match->branches[i].owner == owner && match->branches[i].arg == arg)
            return &match->branches[i];
    return NULL;
}

byi_id byi_match_arg(const struct byi_match *match, byi_id value, uint32_t i)
{
    const struct byi_node *node = byi_match_node(match, value);
    if (node->kind != BYI_IF || i == 0)
        return value_of(match, byi_match_branch(match, value), node->args[i]);
    const struct byi_branch *in = byi_match_branch_of(match, value, i);
    return value_of(match, in, in->f->result);
}

static byi_id next_value(const struct byi_match *match)
{
    if (match->n_branches == 0)
        return match->f->nodes.n;
    const struct byi_branch *last = &match->branches[match->n_branches - 1];
    return last->first + last->f->nodes.n;
}

static bool open_branch(struct byi_match *match, byi_id owner, uint32_t arg)
{
    const struct byi_branch *outer = byi_match_branch(match, owner);
    const byi_id at = byi_match_node(match, owner)->args[arg];
    const byi_id fn = outer ? outer->first + at : at;
    const struct byi_node *node = byi_match_node(match, fn);
    if (node->kind != BYI_FN)
        return false;
    const struct byi_func *f = match->m->funcs.at[node->index];
    const byi_id first = next_value(match);
    if (f->params.n != node->n_args || byi_is_closed(f) ||
        f->nodes.n > BYI_NO_ID - 1 - first ||
        match->n_branches == BYI_MATCH_MAX_BRANCHES)
        return false;
    match->branches[match->n_branches++] =
        (struct byi_branch){.func = node->index,
                            .f = f,
                            .first = first,
                            .owner = owner,
                            .fn = fn,
                            .arg = arg};
    return true;
}

bool byi_match_open(struct byi_match *match, byi_id value)
{
    for (uint32_t arg = 1; arg <= 2; arg++)
        if (!byi_match_branch_of(match, value, arg) &&
            !open_branch(match, value, arg))
            return false;
    return true;
}

bool byi_match_is_same(const struct byi_match *match, byi_id a, byi_id b)
{
    if (a == b || (!byi_match_branch(match, a) && !byi_match_branch(match, b)))
        return a == b;
    const struct byi_node *x = byi_match_node(match, a);
    const struct byi_node *y = byi_match_node(match, b);
    return x->kind == BYI_CONST && y->kind == BYI_CONST && x->index == y->index;
}

static uint32_t depth_of(const struct byi_match *match, byi_id value)
{
    const struct byi_branch *in = byi_match_branch(match, value);
    uint32_t depth = 0;
    for (; in; in = byi_match_branch(match, in->owner))
        depth++;
    return depth;
}

static byi_id owner_of(const struct byi_match *match, byi_id value)
{
    return byi_match_branch(match, value)->owner;
}

bool byi_match_comes_before(const struct byi_match *match, byi_id a, byi_id b)
{
    byi_id x = a, y = b;
    uint32_t nx = depth_of(match, x), ny = depth_of(match, y);
    for (; nx > ny; nx--)
        x = owner_of(match, x);
    for (; ny > nx; ny--)
        y = owner_of(match, y);
    while (byi_match_branch(match, x) != byi_match_branch(match, y)) {
        x = owner_of(match, x);
        y = owner_of(match, y);
    }
    if (x != y)
        return x < y;
    if (x == a || y == b) /* one is an `if` around the other, or a == b */
        return x != a;
    return a < b; /* in the two branches of one `if` */
}

bool byi_match_within(const struct byi_match *match, byi_id value,
                      const struct byi_branch *branch)
{
    const struct byi_branch *in = byi_match_branch(match, value);
    while (in && in != branch)
        in = byi_match_branch(match, in->owner);
    return in == branch;
}
