/* SPDX-License-Identifier: Apache-2.0 */
/* decide.c: chooses the form of a loop nest: element by element, tiled, or with
 * a reduction by columns or in parts. Also chooses the loops that run in
 * parallel, and whether stores bypass the caches. All decisions depend on
 * constants only.
 */
#include "nest.h"

enum {
    /* operands up to this size fit the first-level cache */
    FIRST_CACHE_BYTES = 32 << 10,
    /* results from this size on exceed the caches */
    MIN_STREAM_BYTES = 8 << 20,
};

bool byi_nest_has_values(const struct byi_printer *p, uint32_t nest,
                         uint32_t level, bool only_reductions)
{
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        if (value->nest == nest && value->level == level &&
            (value->kind == BYI_GROUP_REDUCE ||
             (!only_reductions && value->kind != BYI_GROUP_SCALAR &&
              value->kind != BYI_GROUP_ALIAS)))
            return true;
    }
    return false;
}

/* Count the loads with stride 1 along a loop, and the loads with another stride
 * except 0. */
static void count_loads(const struct byi_printer *p, uint32_t loop,
                        uint32_t *along, uint32_t *across)
{
    *along = *across = 0;
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        if (value->kind != BYI_GROUP_LOAD || value->offset.coef[loop] == 0)
            continue;
        *(value->offset.coef[loop] == 1 ? along : across) += 1;
    }
}

/* Whether value `v` is a load from a large operand, with a large stride along
 * this loop. */
static bool has_large_stride(const struct byi_printer *p, uint32_t v,
                             uint32_t loop)
{
    const struct byi_group_value *value = value_at(p, v);
    const int64_t c =
        value->kind == BYI_GROUP_LOAD ? value->offset.coef[loop] : 0;
    const struct byi_type *type = p->g->f->nodes.at[value->node].type;
    return (c < -4 || c > 4) && byi_type_bytes(type) > FIRST_CACHE_BYTES;
}

/* The loop to tile with the last one: a load has a large stride along the last
 * loop and stride 1 along this one. Returns 1 + its index; 0: none. */
static uint32_t find_tile(const struct byi_printer *p)
{
    uint32_t found = 0;
    for (uint32_t v = 0; v < p->g->values.n && p->n_loops > 1; v++) {
        if (value_at(p, v)->kind == BYI_GROUP_REDUCE)
            return 0;
        if (!has_large_stride(p, v, p->loops[p->n_loops - 1]))
            continue;
        for (uint32_t k = 0; k + 1 < p->n_loops; k++)
            if (value_at(p, v)->offset.coef[p->loops[k]] == 1)
                found = k + 1;
    }
    return found;
}

/* The reduction, at the innermost level, that is faster by columns, since its
 * loads have stride 1 only along the result's last loop. Returns 1 + its value;
 * 0: none. */
static uint32_t find_columns(const struct byi_printer *p)
{
    uint32_t found = 0, n = 0, along, across, loops[BYI_MAX_LOOPS];
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        n += value_at(p, v)->kind == BYI_GROUP_REDUCE;
        if (value_at(p, v)->kind == BYI_GROUP_REDUCE &&
            value_at(p, v)->nest == 0 && value_at(p, v)->level == p->n_loops)
            found = v + 1;
    }
    if (!found || n != 1 || p->n_loops == 0)
        return 0;
    uint32_t k = byi_group_nest(p->g, found, loops);
    if (k == 0)
        return 0;
    count_loads(p, loops[k - 1], &along, &across);
    if (along > 0)
        return 0;
    count_loads(p, p->loops[p->n_loops - 1], &along, &across);
    return along > 0 && across == 0 ? found : 0;
}

/* The number of iterations of the result's loops `from` to `to` - 1 together.
 */
static int64_t count_steps(const struct byi_printer *p, uint32_t from,
                           uint32_t to)
{
    int64_t n = 1;
    for (uint32_t k = from; k < to; k++)
        n *= extent_of(p, p->loops[k]);
    return n;
}

/* The number of elements reduced to one result. */
static int64_t count_reduced(const struct byi_printer *p, uint32_t v)
{
    uint32_t loops[BYI_MAX_LOOPS];
    int64_t n = 1;
    for (uint32_t k = byi_group_nest(p->g, v + 1, loops); k-- > 0;)
        n *= extent_of(p, loops[k]);
    return n;
}

/* The number of steps of the most expensive reduction, 1 without reductions.
 * Sets *reduction to its value if it has more than 1 step. */
static int64_t reduced_steps(const struct byi_printer *p, uint32_t *reduction)
{
    int64_t max_steps = 1;
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        if (value->kind != BYI_GROUP_REDUCE)
            continue;
        const uint32_t level = value->nest ? p->n_loops : value->level;
        const int64_t n = count_steps(p, 0, level) * count_reduced(p, v);
        if (n > max_steps) {
            max_steps = n;
            *reduction = v;
        }
    }
    return max_steps;
}

/* The number of threads to use at most. A step costs 1, as most are bound by
 * memory, and FUNCTION more for each call of a prelude function. */
static int64_t team_of(const struct byi_printer *p, int64_t steps)
{
    enum { FUNCTION = 3 };
    int64_t cost = 1;
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        if (value->kind == BYI_GROUP_OP &&
            byi_expr_calls(node_of(p, v), value_at(p, value->args[0])->dtype))
            cost += FUNCTION;
    }
    const int64_t team = steps * cost / BYI_SMALL_WORK;
    return team < 1 ? 1 : team > BYI_MANY ? BYI_MANY : team;
}

void byi_nest_decide(struct byi_printer *p)
{
    uint32_t reduction = 0;
    p->n_loops = byi_group_nest(p->g, 0, p->loops);
    p->columns = find_columns(p);
    const int64_t n_results = count_steps(p, 0, p->n_loops);
    const int64_t n_reduced = reduced_steps(p, &reduction);
    p->team = team_of(p, n_reduced > n_results ? n_reduced : n_results);
    if (p->team > 1 && !p->columns && n_results < 8 &&
        value_at(p, reduction)->nest == 0) {
        p->split = reduction + 1;
        p->first = p->n_loops;
        return;
    }
    if (p->n_loops == 0) {
        p->team = 1;
        return;
    }
    p->tile = p->columns ? 0 : find_tile(p);
    const uint32_t last = p->n_loops - (p->columns || p->n_loops > 1);
    while (p->first + 1 < last && extent_of(p, p->loops[p->first]) < 4 &&
           byi_nest_has_values(p, 0, p->first + 1, false))
        p->first++;
    p->parallel = 1;
    while (p->first + p->parallel < last &&
           count_steps(p, p->first, p->first + p->parallel) < BYI_MANY &&
           !byi_nest_has_values(p, 0, p->first + p->parallel, false))
        p->parallel++;
    const uint64_t bytes =
        (uint64_t)n_results * byoc_dtype_size(value_at(p, p->g->result)->dtype);
    p->streams = !p->columns && !p->tile && bytes >= MIN_STREAM_BYTES &&
                 p->n_loops > 0 &&
                 extent_of(p, p->loops[p->n_loops - 1]) >= BYI_STREAM_BLOCK &&
                 !byi_nest_has_values(p, 0, p->n_loops, true);
}

/* Whether a load has a large stride along the innermost loop of its nest, even
 * after tiling. Then a native kernel with two-dimensional tiles is faster. */
static bool reads_across(const struct byi_printer *p)
{
    for (uint32_t v = 0; v < p->g->values.n; v++) {
        const struct byi_group_value *value = value_at(p, v);
        uint32_t loops[BYI_MAX_LOOPS];
        const uint32_t n = byi_group_nest(p->g, value->nest, loops);
        const uint32_t loop = p->columns ? p->loops[p->n_loops - 1]
                              : n        ? loops[n - 1]
                                         : 0;
        if (value->kind == BYI_GROUP_LOAD && (n || p->columns) &&
            has_large_stride(p, v, loop) &&
            !(p->tile && value->offset.coef[p->loops[p->tile - 1]] == 1))
            return true;
    }
    return false;
}

const char *byi_nest_refuse(const struct byi_group *g)
{
    struct byi_printer p = {.g = g};
    byi_nest_decide(&p);
    return reads_across(&p) ? "it reads across rows" : NULL;
}
