/* SPDX-License-Identifier: Apache-2.0 */
/* match_fits.c: tests whether one node fits a node of a pattern: type,
 * operator, attributes, value.
 */
#include "patterns.h"

#include <math.h>
#include <string.h>

/* --- types ---------------------------------------------------------------- */

static bool holds(enum byi_cmp cmp, double a, double b)
{
    switch (cmp) {
    case BYI_EQ:
        return a == b;
    case BYI_NE:
        return a != b;
    case BYI_LT:
        return a < b;
    case BYI_LE:
        return a <= b;
    case BYI_GT:
        return a > b;
    default:
        return a >= b;
    }
}

static bool dim_fits(const struct byi_pat_dim *test, int64_t found)
{
    return test->any ||
           (found >= 0 && holds(test->cmp, (double)found, (double)test->value));
}

static bool dims_fit(const struct byi_pat_type *test,
                     const struct byi_type *type)
{
    if (type->rank < test->n_dims ||
        (type->rank > test->n_dims && !test->has_rest))
        return false;
    const uint32_t n_skipped = type->rank - test->n_dims;
    for (uint32_t i = 0; i < test->n_dims; i++) {
        const uint32_t at =
            test->has_rest && i >= test->rest ? i + n_skipped : i;
        if (!dim_fits(&test->dims[i], type->dims[at]))
            return false;
    }
    return true;
}

bool byi_match_type_fits(const struct byi_pat_type *test,
                         const struct byi_type *type)
{
    bool has_dtype = test->n_dtypes == 0;
    if (type->kind != BYI_TENSOR)
        return false;
    for (uint32_t i = 0; i < test->n_dtypes; i++)
        has_dtype = has_dtype || test->dtypes[i] == type->dtype;
    return has_dtype && dim_fits(&test->rank, type->rank) &&
           (test->size.any ||
            dim_fits(&test->size, byi_elements(type->rank, type->dims))) &&
           (!test->has_dims || dims_fit(test, type));
}

/* --- operators ------------------------------------------------------------ */

/* Compare in float32, in which ONNX stores attributes. */
static bool number_fits(enum byi_cmp cmp, double found, double expected)
{
    return holds(cmp, (double)(float)found, (double)(float)expected);
}

static bool ints_fit(const struct byi_attr *attr,
                     const struct byi_attr *expected)
{
    if (attr->n != expected->n)
        return false;
    for (uint32_t i = 0; i < expected->n; i++)
        if (expected->ints[i] != BYI_PAT_ANY_INT &&
            expected->ints[i] != attr->ints[i])
            return false;
    return true;
}

static bool floats_fit(const struct byi_attr *attr,
                       const struct byi_attr *expected)
{
    if (attr->n != expected->n)
        return false;
    for (uint32_t i = 0; i < expected->n; i++)
        if (!number_fits(BYI_EQ, attr->floats[i], expected->floats[i]))
            return false;
    return true;
}

/* Whether the comparison `cmp` with `expected` holds for the value, or for
 * every item of the list. */
static bool value_fits(const struct byi_attr *attr, enum byi_cmp cmp,
                       const struct byi_attr *expected)
{
    bool fits = true;
    switch (attr->kind) {
    case BYI_ATTR_INT:
    case BYI_ATTR_BOOL:
    case BYI_ATTR_DTYPE:
        return holds(cmp, (double)attr->i, (double)expected->i);
    case BYI_ATTR_FLOAT:
        return number_fits(cmp, attr->f, expected->f);
    case BYI_ATTR_STRING:
        return strcmp(attr->s, expected->s) == 0;
    case BYI_ATTR_INTS:
        if (expected->kind == BYI_ATTR_INTS)
            return ints_fit(attr, expected);
        for (uint32_t i = 0; i < attr->n; i++)
            fits =
                fits && holds(cmp, (double)attr->ints[i], (double)expected->i);
        return fits;
    case BYI_ATTR_FLOATS:
        if (expected->kind == BYI_ATTR_FLOATS)
            return floats_fit(attr, expected);
        for (uint32_t i = 0; i < attr->n; i++)
            fits = fits && number_fits(cmp, attr->floats[i], expected->f);
        return fits;
    case BYI_ATTR_STRINGS:
        if (expected->kind == BYI_ATTR_STRINGS)
            return byi_attr_value_equal(attr, expected);
        for (uint32_t i = 0; i < attr->n; i++)
            fits = fits && strcmp(attr->strings[i], expected->s) == 0;
        return fits;
    }
    byi_unreachable();
}

static bool test_fits(const struct byi_attr *attr,
                      const struct byi_pat_test *test)
{
    const bool negated = test->cmp == BYI_NE;
    for (uint32_t i = 0; i < test->n; i++)
        if (value_fits(attr, negated ? BYI_EQ : test->cmp, &test->values[i]))
            return !negated;
    return negated;
}

bool byi_match_op_fits(const struct byi_pat *pat, const struct byi_node *node)
{
    if (node->kind != BYI_CALL_OP ||
        (pat->has_rest ? node->n_args < pat->n_args
                       : node->n_args != pat->n_args))
        return false;
    bool is_listed = false;
    for (uint32_t i = 0; i < pat->n_ops && !is_listed; i++)
        is_listed = pat->ops[i] == node->op;
    if (!is_listed)
        return false;
    for (uint32_t i = 0; i < pat->n_tests; i++) {
        const struct byi_attr *attr =
            byi_attr_find(node->attrs, pat->tests[i].name);
        if (!attr || !test_fits(attr, &pat->tests[i]))
            return false;
    }
    return true;
}

/* --- values --------------------------------------------------------------- */

bool byi_match_value_fits(const struct byi_module *m,
                          const struct byi_node *node, double expected)
{
    const struct byi_const *c = &m->consts.at[node->index];
    struct byi_tensor t = {.dtype = c->type->dtype,
                           .rank = c->type->rank,
                           .data = (void *)(uintptr_t)c->data};
    double tolerance = 1e-4; /* authors of models type few digits */
    memcpy(t.dims, c->type->dims, t.rank * sizeof *t.dims);
    if (byi_elements(t.rank, t.dims) != 1 ||
        (!byi_dtype_is_float(t.dtype) && !byi_dtype_is_int(t.dtype)))
        return false;
    if (t.dtype == BYOC_F16)
        tolerance = 1e-3; /* one step of the type, 2^-10 */
    if (t.dtype == BYOC_BF16)
        tolerance = 8e-3; /* 2^-7 */
    const double found = byi_tensor_float(&t, 0);
    return found == expected ||
           fabs(found - expected) <= tolerance * fabs(expected);
}
