/* SPDX-License-Identifier: Apache-2.0 */
/* opgen.c: implements the helpers of op generators. They draw random sizes,
 * plan the types of operands, and set attributes, all within the limits of the
 * pattern.
 */
#include "opgen.h"

#include <string.h>

enum { MAX_ELEMENTS = 1 << 15 /* of a planned tensor */ };

uint32_t byi_opgen_draw_below(struct byi_opgen *d, uint32_t n)
{
    return byi_draw_below(d->state, n);
}

bool byi_opgen_draw_chance(struct byi_opgen *d, uint32_t percent)
{
    return byi_opgen_draw_below(d, 100) < percent;
}

/* --- sizes ---------------------------------------------------------------- */

int64_t byi_opgen_draw_size(struct byi_opgen *d)
{
    static const int64_t small[] = {1, 2, 3, 4, 5, 6, 8};
    static const int64_t odd[] = {3, 5, 7, 11, 13};
    static const int64_t large[] = {15, 16, 17, 24, 31, 32, 33, 48, 65};
    switch (d->emphasis) {
    case BYI_EMPHASIS_ONES:
        return byi_opgen_draw_chance(d, 65)
                   ? 1
                   : small[byi_opgen_draw_below(d, BYI_COUNT(small))];
    case BYI_EMPHASIS_ODD:
        return odd[byi_opgen_draw_below(d, BYI_COUNT(odd))];
    case BYI_EMPHASIS_LARGE:
        return large[byi_opgen_draw_below(d, BYI_COUNT(large))];
    default:
        return small[byi_opgen_draw_below(d, BYI_COUNT(small))];
    }
}

static uint32_t draw_rank(struct byi_opgen *d)
{
    static const uint32_t usual[] = {1, 2, 2, 3, 3, 4, 4, 4, 5};
    static const uint32_t rare[] = {0, 1, 5, 6, 7};
    return d->emphasis == BYI_EMPHASIS_RANK
               ? rare[byi_opgen_draw_below(d, BYI_COUNT(rare))]
               : usual[byi_opgen_draw_below(d, BYI_COUNT(usual))];
}

bool byi_opgen_fits(uint32_t rank, const int64_t *dims)
{
    const int64_t n = byi_elements(rank, dims);
    return n >= 0 && n <= MAX_ELEMENTS;
}

/* A random size that the pattern allows. */
static int64_t fit_dim(struct byi_opgen *d, const struct byi_pat_dim *dim)
{
    const int64_t size = byi_opgen_draw_size(d);
    if (dim->any)
        return size;
    switch (dim->cmp) {
    case BYI_EQ:
        return dim->value;
    case BYI_GT:
        return dim->value + size;
    case BYI_GE:
        return dim->value + size - 1;
    case BYI_LT:
        return size < dim->value ? size : dim->value - 1;
    case BYI_LE:
        return size < dim->value ? size : dim->value;
    default:
        return size == dim->value ? size + 1 : size;
    }
}

/* A random rank that the pattern allows. */
static uint32_t fit_rank(struct byi_opgen *d,
                         const struct byi_pat_type *required)
{
    uint32_t rank = draw_rank(d);
    if (required && required->has_dims)
        return required->n_dims +
               (required->has_rest ? byi_opgen_draw_below(d, 3) : 0);
    if (required && !required->rank.any) {
        const struct byi_pat_dim *r = &required->rank;
        const int64_t v = r->value;
        if (r->cmp == BYI_EQ || (r->cmp == BYI_GE && rank < v) ||
            (r->cmp == BYI_LE && rank > v))
            rank = (uint32_t)v;
    }
    return rank;
}

enum byoc_dtype byi_opgen_fit_dtype(struct byi_opgen *d,
                                    const struct byi_pat_type *required,
                                    enum byoc_dtype dtype)
{
    if (!required || !required->n_dtypes)
        return dtype;
    for (uint32_t i = 0; i < required->n_dtypes; i++)
        if (required->dtypes[i] == dtype)
            return dtype;
    return required->dtypes[byi_opgen_draw_below(d, required->n_dtypes)];
}

/* Draw a random shape of `rank` axes (UINT32_MAX: any rank that the pattern
 * allows) with sizes that the pattern allows. Returns false if the rank or the
 * number of elements is too large. */
static bool draw_shape(struct byi_opgen *d, struct byi_slot *s, uint32_t rank)
{
    const struct byi_pat_type *required = s->required;
    s->rank = rank == UINT32_MAX ? fit_rank(d, required) : rank;
    if (s->rank > BYI_MAX_RANK)
        return false;
    for (uint32_t tries = 0; tries < 8; tries++) {
        for (uint32_t i = 0; i < s->rank; i++) {
            const struct byi_pat_dim *dim = NULL;
            if (required && required->has_dims && i < required->n_dims &&
                (!required->has_rest || i < required->rest))
                dim = &required->dims[i];
            s->dims[i] = dim ? fit_dim(d, dim) : byi_opgen_draw_size(d);
        }
        if (byi_opgen_fits(s->rank, s->dims))
            break;
    }
    if (required && !required->size.any && required->size.cmp == BYI_EQ &&
        required->size.value == 1)
        for (uint32_t i = 0; i < s->rank; i++)
            s->dims[i] = 1;
    else if (d->needs_zero && s->rank)
        s->dims[byi_opgen_draw_below(d, s->rank)] = 0;
    d->needs_zero = d->needs_zero && !s->rank;
    return byi_opgen_fits(s->rank, s->dims);
}

/* --- slots ---------------------------------------------------------------- */

bool byi_opgen_is_known(const struct byi_opgen *d, uint32_t i)
{
    return d->operands[i].type != NULL;
}

uint32_t byi_opgen_rank_of(const struct byi_opgen *d, uint32_t i)
{
    return byi_opgen_is_known(d, i) ? d->operands[i].type->rank
                                    : d->operands[i].rank;
}

const int64_t *byi_opgen_dims_of(const struct byi_opgen *d, uint32_t i)
{
    return byi_opgen_is_known(d, i) ? d->operands[i].type->dims
                                    : d->operands[i].dims;
}

enum byoc_dtype byi_opgen_dtype_of(const struct byi_opgen *d, uint32_t i)
{
    return byi_opgen_is_known(d, i) ? d->operands[i].type->dtype
                                    : d->operands[i].dtype;
}

void byi_opgen_set_dims(struct byi_opgen *d, uint32_t i, enum byoc_dtype dtype,
                        uint32_t rank, const int64_t *dims)
{
    struct byi_slot *s = &d->operands[i];
    if (s->type || i >= d->n)
        return;
    s->dtype = byi_opgen_fit_dtype(d, s->required, dtype);
    s->rank = rank;
    memcpy(s->dims, dims, rank * sizeof *dims);
}

void byi_opgen_set_ints(struct byi_opgen *d, uint32_t i, const int64_t *values,
                        uint32_t n)
{
    struct byi_slot *s = &d->operands[i];
    if (s->type || i >= d->n || n > BYI_MAX_INTS)
        return;
    *s = (struct byi_slot){.required = s->required,
                           .dtype = BYOC_I64,
                           .rank = 1,
                           .dims = {n},
                           .constant = true,
                           .n = n};
    memcpy(s->ints, values, n * sizeof *values);
}

bool byi_opgen_plan_random(struct byi_opgen *d, uint32_t i, uint32_t rank)
{
    struct byi_slot *s = &d->operands[i];
    if (s->type)
        return rank == UINT32_MAX || s->type->rank == rank;
    s->dtype = byi_opgen_fit_dtype(d, s->required, d->dtype);
    return draw_shape(d, s, rank);
}

/* --- attributes ----------------------------------------------------------- */

const struct byi_pat_test *byi_opgen_pinned(const struct byi_opgen *d,
                                            const char *name)
{
    for (uint32_t i = 0; i < d->pat->n_tests; i++)
        if (d->pat->tests[i].cmp == BYI_EQ &&
            strcmp(d->pat->tests[i].name, name) == 0)
            return &d->pat->tests[i];
    return NULL;
}

bool byi_opgen_has_attr(const struct byi_opgen *d, const char *name)
{
    for (uint32_t i = 0; i < d->n_attrs; i++)
        if (strcmp(d->attrs[i].name, name) == 0)
            return true;
    return false;
}

static void add_attr(struct byi_opgen *d, struct byi_attr attr)
{
    if (d->n_attrs < BYI_MAX_OPGEN_ATTRS && !byi_opgen_has_attr(d, attr.name))
        d->attrs[d->n_attrs++] = attr;
}

/* Give an attribute of one value: one of those that the pattern requires,
 * otherwise `value`, which has only the member of its kind. Returns the value,
 * which is not given if the operator has no such attribute. */
static struct byi_attr give_one(struct byi_opgen *d, struct byi_attr value)
{
    const struct byi_pat_test *pin = byi_opgen_pinned(d, value.name);
    const struct byi_attr_def *def = byi_op_attr(d->op, value.name);
    if (!def)
        return value;
    if (pin && pin->values[0].kind != BYI_ATTR_INTS) {
        value = pin->values[byi_opgen_draw_below(d, pin->n)];
        if (def->kind == BYI_ATTR_FLOAT && value.kind == BYI_ATTR_INT)
            value.f = (double)value.i;
    }
    value.name = def->name;
    value.kind = def->kind;
    add_attr(d, value);
    return value;
}

int64_t byi_opgen_give_int(struct byi_opgen *d, const char *name, int64_t value)
{
    return give_one(d, (struct byi_attr){.name = name, .i = value}).i;
}

double byi_opgen_give_float(struct byi_opgen *d, const char *name, double value)
{
    return give_one(d, (struct byi_attr){.name = name, .f = value}).f;
}

const char *byi_opgen_give_string(struct byi_opgen *d, const char *name,
                                  const char *value)
{
    return give_one(d, (struct byi_attr){.name = name, .s = value}).s;
}

void byi_opgen_give_ints(struct byi_opgen *d, const char *name, int64_t *values,
                         uint32_t n)
{
    const struct byi_pat_test *pin = byi_opgen_pinned(d, name);
    const struct byi_attr_def *def = byi_op_attr(d->op, name);
    if (!def)
        return;
    if (pin) {
        const struct byi_attr *v =
            &pin->values[byi_opgen_draw_below(d, pin->n)];
        for (uint32_t i = 0; i < n; i++)
            if (v->kind != BYI_ATTR_INTS)
                values[i] = v->i;
            else if (i < v->n && v->ints[i] != BYI_PAT_ANY_INT)
                values[i] = v->ints[i];
    }
    add_attr(d, (struct byi_attr){.name = def->name,
                                  .kind = BYI_ATTR_INTS,
                                  .n = n,
                                  .ints = byi_arena_copy(d->arena, values,
                                                         n * sizeof *values)});
}

/* Set a list to the list of the pattern's test, or to the test's single value.
 */
static void give_pinned_list(struct byi_opgen *d,
                             const struct byi_attr_def *def)
{
    const struct byi_pat_test *pin = byi_opgen_pinned(d, def->name);
    struct byi_attr list = pin->values[byi_opgen_draw_below(d, pin->n)];
    const bool is_single = list.kind != def->kind;
    if (is_single)
        list.n = 1;
    if (def->kind == BYI_ATTR_INTS) {
        int64_t *ints = byi_arena_calloc(d->arena, list.n + 1u, sizeof *ints);
        for (uint32_t i = 0; i < list.n; i++)
            ints[i] = is_single                         ? list.i
                      : list.ints[i] == BYI_PAT_ANY_INT ? 1
                                                        : list.ints[i];
        list.ints = ints;
    } else if (def->kind == BYI_ATTR_FLOATS && is_single) {
        double *f = byi_arena_alloc(d->arena, sizeof *f);
        *f = list.kind == BYI_ATTR_INT ? (double)list.i : list.f;
        list.floats = f;
    } else if (is_single) {
        const char **text = byi_arena_alloc(d->arena, sizeof *text);
        *text = list.s;
        list.strings = text;
    }
    list.name = def->name;
    list.kind = def->kind;
    add_attr(d, list);
}

void byi_opgen_give_pinned(struct byi_opgen *d, const struct byi_attr_def *def)
{
    switch (def->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        byi_opgen_give_int(d, def->name, 0);
        break;
    case BYI_ATTR_FLOAT:
        byi_opgen_give_float(d, def->name, 0);
        break;
    case BYI_ATTR_STRING:
        byi_opgen_give_string(d, def->name, "");
        break;
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        give_pinned_list(d, def);
        break;
    }
}

const char *byi_opgen_draw_word(struct byi_opgen *d, const char *words)
{
    uint32_t n = 1;
    for (const char *p = words; *p; p++)
        n += *p == '|';
    for (uint32_t skip = byi_opgen_draw_below(d, n); skip > 0; skip--)
        words = strchr(words, '|') + 1;
    return byi_arena_strn(d->arena, words, strcspn(words, "|"));
}
