/* SPDX-License-Identifier: Apache-2.0 */
/* recompose_gate.c: recognises activations that are x times a gate, or only the
 * gate. Exporters order the arithmetic in many ways, so this pass does not
 * match syntax. It evaluates the root as a polynomial in x and the gate g, and
 * the gate's operand as one in x. Then it compares the coefficients with a
 * table.
 *
 *   gelu        x/2 + x g/2    g = erf(x / sqrt 2)
 *   gelu, tanh  x/2 + x g/2    g = tanh(sqrt(2/pi) (x + 0.044715 x^3))
 *   hard_swish  x g/6          g = clip(x + 3, 0, 6)
 *   hard_sigmoid  g/6          g = clip(x + 3, 0, 6)
 *   silu        x g            g = sigmoid(x)
 */
#include <math.h>

#include "recompose.h"

/* The nodes between a match's operands and its root. The replacement of the
 * root removes them, so they must not have other readers. */
struct gate_inner {
    byi_id ids[32];
    uint32_t n;
};

/* Add an inner node once; false if there are too many. */
static bool gate_inner_add(struct gate_inner *inner, byi_id id)
{
    if (byi_has_id(inner->ids, inner->n, id))
        return true;
    if (inner->n == BYI_COUNT(inner->ids))
        return false;
    inner->ids[inner->n++] = id;
    return true;
}

enum {
    MAX_DEPTH = 10, /* of nested operators               */
    MAX_STEPS = 64, /* operators read for one polynomial */
    MAX_FOUND = 12, /* candidates for the gate, and for x */
    DEGREE = 3      /* largest power of x                */
};
#define TOLERANCE 1e-3 /* relative, of a coefficient */

/* Coefficients of x^i g^j. */
struct poly {
    double c[DEGREE + 1][2];
};

/* The reading of a node as a polynomial. */
struct poly_reading {
    struct byi_rewrite *rw;
    byi_id root, x, g; /* g: BYI_NO_ID if the polynomial is in x only */
    int steps;
    struct gate_inner inner;
};

/* Set *out to a + sign * b. Returns true, like the other operations on success.
 */
static bool add_scaled(const struct poly *a, const struct poly *b, double sign,
                       struct poly *out)
{
    for (int i = 0; i <= DEGREE; i++)
        for (int j = 0; j < 2; j++)
            out->c[i][j] = a->c[i][j] + sign * b->c[i][j];
    return true;
}

/* Set *out to a * b. Returns false if a power of x or g would be too large. */
static bool multiply(const struct poly *a, const struct poly *b,
                     struct poly *out)
{
    struct poly sum = {0};
    for (int i = 0; i <= DEGREE; i++)
        for (int j = 0; j < 2; j++)
            for (int k = 0; a->c[i][j] != 0.0 && k <= DEGREE; k++)
                for (int l = 0; l < 2; l++) {
                    if (b->c[k][l] == 0.0)
                        continue;
                    if (i + k > DEGREE || j + l > 1)
                        return false;
                    sum.c[i + k][j + l] += a->c[i][j] * b->c[k][l];
                }
    *out = sum;
    return true;
}

/* Set *out to a / b. Returns false unless b is a constant other than 0. */
static bool divide(const struct poly *a, struct poly b, struct poly *out)
{
    const double by = b.c[0][0];
    b.c[0][0] = 0.0;
    for (int i = 0; i <= DEGREE; i++)
        if (b.c[i][0] != 0.0 || b.c[i][1] != 0.0)
            return false;
    b.c[0][0] = 1.0 / by;
    return by != 0.0 && multiply(a, &b, out);
}

/* Set *out to a to the power of e. Returns false unless e is 2 or 3. */
static bool raise(const struct poly *a, const struct poly *e, struct poly *out)
{
    const double n = e->c[0][0];
    if (n != 2.0 && n != 3.0)
        return false;
    struct poly square;
    if (!multiply(a, a, &square))
        return false;
    *out = square;
    return n == 2.0 || multiply(&square, a, out);
}

/* Read node id as a polynomial. The recursion is bounded by MAX_DEPTH and
 * MAX_STEPS for any graph. */
static bool read_poly(struct poly_reading *r, byi_id id, int depth,
                      struct poly *out)
{
    double number;
    *out = (struct poly){0};
    if (id == r->x || id == r->g)
        return out->c[id == r->x][id != r->x] = 1.0, true;
    if (byi_rw_splat(r->rw, id, &number))
        return out->c[0][0] = number, true;
    const struct byi_node *node = byi_rw_node(r->rw, id);
    if (node->kind != BYI_CALL_OP || depth == 0 || ++r->steps > MAX_STEPS)
        return false;
    if (id != r->root && !gate_inner_add(&r->inner, id))
        return false;
    struct poly a, b = {0};
    if (node->n_args < 1 || node->n_args > 2 ||
        !read_poly(r, node->args[0], depth - 1, &a) ||
        (node->n_args == 2 && !read_poly(r, node->args[1], depth - 1, &b)))
        return false;
    switch (node->op) {
    case BYI_OP_ADD:
        return add_scaled(&a, &b, 1.0, out);
    case BYI_OP_SUBTRACT:
        return add_scaled(&a, &b, -1.0, out);
    case BYI_OP_NEGATIVE:
        return add_scaled(&b, &a, -1.0, out);
    case BYI_OP_MULTIPLY:
        return multiply(&a, &b, out);
    case BYI_OP_DIVIDE:
        return divide(&a, b, out);
    case BYI_OP_POWER:
        return byi_rw_splat(r->rw, node->args[1], &number) &&
               raise(&a, &b, out);
    default:
        return false;
    }
}

/* One activation: the operator of its gate, the operand of the gate as
 * coefficients of x^0 .. x^3, the root's coefficients of x, g and x g. `first`
 * and `second` are the attributes of the gate, if it has two. */
struct gate {
    enum byi_op_id op;
    double first, second;
    double operand[DEGREE + 1];
    double x, g, xg;
    enum byi_op_id result;
    const char *approximate; /* attribute of nn.gelu */
};

#define TANH_1 0.79788456080286536 /* sqrt(2/pi) */
#define TANH_3 0.03567740813630120 /* sqrt(2/pi) 0.044715 */
#define SIXTH (1.0 / 6.0)

/* clang-format off */
static const struct gate gates[] = {
    {BYI_OP_ERF, 0, 0, {0, M_SQRT1_2}, 0.5, 0, 0.5, BYI_OP_NN_GELU, "none"},
    {BYI_OP_TANH, 0, 0, {0, TANH_1, 0, TANH_3}, 0.5, 0, 0.5, BYI_OP_NN_GELU, "tanh"},
    {BYI_OP_CLIP, 0, 6, {3, 1}, 0, 0, SIXTH, BYI_OP_NN_HARD_SWISH, NULL},
    {BYI_OP_CLIP, 0, 1, {0.5, SIXTH}, 0, 0, 1, BYI_OP_NN_HARD_SWISH, NULL},
    {BYI_OP_NN_HARD_SIGMOID, SIXTH, 0.5, {0, 1}, 0, 0, 1, BYI_OP_NN_HARD_SWISH, NULL},
    {BYI_OP_CLIP, 0, 6, {3, 1}, 0, SIXTH, 0, BYI_OP_NN_HARD_SIGMOID, NULL},
    {BYI_OP_SIGMOID, 0, 0, {0, 1}, 0, 0, 1, BYI_OP_NN_SILU, NULL},
};
/* clang-format on */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= TOLERANCE * fabs(b);
}

static bool is_gate(const struct byi_rewrite *rw, byi_id id,
                    const struct gate *row)
{
    const struct byi_attrs *attrs = byi_rw_node(rw, id)->attrs;
    if (!byi_rw_is(rw, id, row->op))
        return false;
    return attrs->n < 2 || (is_near(attrs->at[0].f, row->first) &&
                            is_near(attrs->at[1].f, row->second));
}

static bool has_coefficients(const struct poly *p, const double x0[DEGREE + 1],
                             double g, double xg)
{
    for (int i = 0; i <= DEGREE; i++) {
        const double with_g = i == 0 ? g : i == 1 ? xg : 0.0;
        if (!is_near(p->c[i][0], x0[i]) || !is_near(p->c[i][1], with_g))
            return false;
    }
    return true;
}

/* Find the nodes that `from` reads through arithmetic, breadth first, `from`
 * included. Returns their number, at most MAX_FOUND; a node may occur twice. */
static uint32_t arithmetic_below(const struct byi_rewrite *rw, byi_id from,
                                 byi_id found[MAX_FOUND])
{
    uint32_t n = 0;
    found[n++] = from;
    for (uint32_t i = 0; i < n; i++) {
        const struct byi_node *node = byi_rw_node(rw, found[i]);
        if (node->kind != BYI_CALL_OP ||
            (node->op != BYI_OP_ADD && node->op != BYI_OP_SUBTRACT &&
             node->op != BYI_OP_NEGATIVE && node->op != BYI_OP_MULTIPLY &&
             node->op != BYI_OP_DIVIDE && node->op != BYI_OP_POWER))
            continue;
        for (uint32_t k = 0; k < node->n_args && n < MAX_FOUND; k++)
            if (byi_rw_node(rw, node->args[k])->kind != BYI_CONST)
                found[n++] = node->args[k];
    }
    return n;
}

static byi_id emit_gate(struct byi_rewrite *rw, const struct gate *row,
                        byi_id x)
{
    const struct byi_attr gelu = {
        .name = "approximate", .kind = BYI_ATTR_STRING, .s = row->approximate};
    const struct byi_attr sixth[] = {
        {.name = "alpha", .kind = BYI_ATTR_FLOAT, .f = SIXTH},
        {.name = "beta", .kind = BYI_ATTR_FLOAT, .f = 0.5},
    };
    if (row->result == BYI_OP_NN_GELU)
        return byi_rw_call(rw, row->result, &x, 1, &gelu, 1);
    if (row->result == BYI_OP_NN_HARD_SIGMOID)
        return byi_rw_call(rw, row->result, &x, 1, sixth, 2);
    return byi_rw_op1(rw, row->result, x);
}

/* Whether `root` is the activation `row` of x with the gate g, and no node
 * between them has another reader. */
static bool match_gate(struct byi_rewrite *rw, byi_id root, byi_id g, byi_id x,
                       const struct gate *row)
{
    struct poly_reading r = {.rw = rw, .root = root, .x = x, .g = BYI_NO_ID};
    const double linear[DEGREE + 1] = {0, row->x};
    struct poly p;
    if (x == g || !read_poly(&r, byi_rw_arg(rw, g, 0), MAX_DEPTH, &p) ||
        !has_coefficients(&p, row->operand, 0, 0))
        return false;
    r.g = g;
    return read_poly(&r, root, MAX_DEPTH, &p) &&
           has_coefficients(&p, linear, row->g, row->xg) &&
           gate_inner_add(&r.inner, g) &&
           byi_rw_has_only_inner_readers(rw, root, r.inner.ids, r.inner.n);
}

byi_id byi_recompose_gate(struct byi_rewrite *rw, byi_id at)
{
    byi_id below[MAX_FOUND], xs[MAX_FOUND];
    const uint32_t n = arithmetic_below(rw, at, below);
    for (uint32_t i = 1; i < n; i++)
        for (size_t k = 0; k < BYI_COUNT(gates); k++) {
            if (!is_gate(rw, below[i], &gates[k]))
                continue;
            const uint32_t n_xs =
                arithmetic_below(rw, byi_rw_arg(rw, below[i], 0), xs);
            for (uint32_t j = 0; j < n_xs; j++)
                if (match_gate(rw, at, below[i], xs[j], &gates[k]))
                    return emit_gate(rw, &gates[k], xs[j]);
        }
    return BYI_NO_ID;
}
