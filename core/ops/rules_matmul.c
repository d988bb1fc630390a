/* SPDX-License-Identifier: Apache-2.0 */
/* rules_matmul.c: type rules of matrix products: dense, matmul, attention,
 * einsum, det, inverse. */
#include "rules.h"

#include <string.h>

enum byoc_status byi_rule_dense(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *w = t->in[1];
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "data"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "weights"));
    BYI_TRY(byi_want_rank(t, 0, 2, "data"));
    BYI_TRY(byi_want_rank(t, 1, 2, "weights"));
    if (!byi_dims_agree(x->dims[1], w->dims[1]))
        return byi_rule_fail(
            t, "weights have %lld input features, expected %lld, as data has",
            (long long)w->dims[1], (long long)x->dims[1]);
    const int64_t dims[] = {x->dims[0], w->dims[0]};
    return byi_rule_tensor(t, x->dtype, 2, dims);
}

enum byoc_status byi_rule_sparse_dense(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0], *w = t->in[1];
    int64_t dims[BYI_MAX_RANK];
    BYI_TRY(byi_want_dtype(t, 0, BYI_FLOATS, "data"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "weights"));
    BYI_TRY(byi_want_min_rank(t, 0, 1, "data"));
    BYI_TRY(byi_want_rank(t, 1, 2, "weights"));
    if (!byi_dims_agree(x->dims[x->rank - 1], w->dims[1]))
        return byi_rule_fail(
            t, "weights have %lld input features, expected %lld, as data has",
            (long long)w->dims[1], (long long)x->dims[x->rank - 1]);
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank - 1] = w->dims[0];
    return byi_rule_tensor(t, x->dtype, x->rank, dims);
}

/* An operand of matmul as a stack of matrices: a vector on the left is a row,
 * on the right a column (numpy.matmul). */
struct matrix {
    int64_t rows, cols;
    uint32_t n_batch; /* axes before those of the matrix */
    bool is_vector;
};

static enum byoc_status read_matrix(const struct byi_infer *t, uint32_t i,
                                    bool transpose, struct matrix *m)
{
    const struct byi_type *in = t->in[i];
    BYI_TRY(byi_want_min_rank(t, i, 1, i ? "b" : "a"));
    m->is_vector = in->rank == 1;
    if (m->is_vector) {
        if (transpose)
            return byi_rule_fail(
                t, "%s is a vector, expected at least rank 2 to transpose",
                i ? "b" : "a");
        m->n_batch = 0;
        m->rows = i ? in->dims[0] : 1;
        m->cols = i ? 1 : in->dims[0];
        return BYOC_OK;
    }
    m->n_batch = in->rank - 2;
    m->rows = in->dims[in->rank - (transpose ? 1 : 2)];
    m->cols = in->dims[in->rank - (transpose ? 2 : 1)];
    return BYOC_OK;
}

enum byoc_status byi_infer_matmul(struct byi_infer *t)
{
    struct matrix a, b;
    int64_t dims[BYI_MAX_RANK + 2];
    uint32_t rank;
    BYI_TRY(read_matrix(t, 0, byi_attr_int(t->attrs, "transpose_a") != 0, &a));
    BYI_TRY(read_matrix(t, 1, byi_attr_int(t->attrs, "transpose_b") != 0, &b));
    if (!byi_dims_agree(a.cols, b.rows))
        return byi_rule_fail(
            t, "a has %lld columns and b %lld rows, expected the same",
            (long long)a.cols, (long long)b.rows);
    BYI_TRY(byi_dims_broadcast(t, a.n_batch, t->in[0]->dims, b.n_batch,
                               t->in[1]->dims, &rank, dims));
    if (!a.is_vector)
        dims[rank++] = a.rows;
    if (!b.is_vector)
        dims[rank++] = b.cols;
    return byi_rule_tensor(t, t->in[0]->dtype, rank, dims);
}

enum byoc_status byi_rule_matmul(struct byi_infer *t)
{
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "a"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "b"));
    return byi_infer_matmul(t);
}

enum byoc_status byi_rule_attention(struct byi_infer *t)
{
    enum { MAX_OPERAND_RANK = 8, TYPES = BYI_FLOATS & ~BYI_BIT(BYOC_F64) };
    static const char *const names[] = {"q", "k", "v", "mask"};
    const uint32_t mask = BYI_COUNT(names) - 1;
    struct matrix q, k, v;
    int64_t dims[BYI_MAX_RANK + 2];
    uint32_t rank;
    BYI_TRY(byi_want_dtype(t, 0, TYPES, "q"));
    for (uint32_t i = 0; i < t->n_in; i++) {
        const char *name = names[i < mask ? i : mask];
        BYI_TRY(byi_want_same_dtype(t, i, 0, name));
        BYI_TRY(byi_want_min_rank(t, i, 2, name));
        if (t->in[i]->rank > MAX_OPERAND_RANK)
            return byi_rule_fail(t, "%s has rank %u, expected at most %d", name,
                                 t->in[i]->rank, MAX_OPERAND_RANK);
    }
    if (byi_attr_float(t->attrs, "scale") == 0)
        return byi_rule_fail(t, "scale is 0, expected a number other than 0");
    if (byi_attr_float(t->attrs, "cap") != 0 && t->in[0]->dtype != BYOC_F32)
        return byi_rule_fail(
            t, "operands with a cap have type %s, expected float32",
            byoc_dtype_name(t->in[0]->dtype));
    BYI_TRY(read_matrix(t, 0, false, &q));
    BYI_TRY(read_matrix(t, 1, byi_attr_int(t->attrs, "transpose_k") != 0, &k));
    BYI_TRY(read_matrix(t, 2, false, &v));
    if (!byi_dims_agree(q.cols, k.rows))
        return byi_rule_fail(t,
                             "q has %lld columns and k keys of %lld elements, "
                             "expected the same",
                             (long long)q.cols, (long long)k.rows);
    BYI_TRY(byi_dims_broadcast(t, q.n_batch, t->in[0]->dims, k.n_batch,
                               t->in[1]->dims, &rank, dims));
    dims[rank++] = q.rows;
    dims[rank++] = k.cols;
    for (uint32_t i = mask; i < t->n_in; i++)
        BYI_TRY(byi_dims_broadcast(t, rank, dims, t->in[i]->rank,
                                   t->in[i]->dims, &rank, dims));
    if (!byi_dims_agree(dims[rank - 1], v.rows))
        return byi_rule_fail(
            t, "found %lld keys and %lld values, expected the same number",
            (long long)dims[rank - 1], (long long)v.rows);
    const int64_t rows = dims[rank - 2];
    BYI_TRY(byi_dims_broadcast(t, rank - 2, dims, v.n_batch, t->in[2]->dims,
                               &rank, dims));
    dims[rank++] = rows;
    dims[rank++] = v.cols;
    return byi_rule_tensor(t, t->in[0]->dtype, rank, dims);
}

/* Check that x is a square matrix, or a stack of them. */
static enum byoc_status want_square(const struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    BYI_TRY(byi_want_min_rank(t, 0, 2, "x"));
    const int64_t rows = x->dims[x->rank - 2], cols = x->dims[x->rank - 1];
    if (!byi_dims_agree(rows, cols))
        return byi_rule_fail(t,
                             "matrices are %lld by %lld, expected square ones",
                             (long long)rows, (long long)cols);
    return BYOC_OK;
}

enum byoc_status byi_rule_det(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    BYI_TRY(want_square(t));
    return byi_rule_tensor(t, x->dtype, x->rank - 2, x->dims);
}

enum byoc_status byi_rule_inverse(struct byi_infer *t)
{
    BYI_TRY(want_square(t));
    return byi_rule_result(t, t->in[0]);
}

/* --- einsum ------------------------------------------------------------- */

/* The state of parsing an equation. Letters have their own dims; the axes under
 * "..." are broadcast among the operands. */
struct equation {
    int64_t dim[128];           /* indexed by letter; valid if seen > 0 */
    uint32_t seen[128];         /* for each letter: how often it occurs */
    int64_t dots[BYI_MAX_RANK]; /* the n_dots dims under "..." */
    uint32_t n_dots;
};

/* Count the letters of a term, and set *dots if it has "...". */
static enum byoc_status count_letters(const struct byi_infer *t, const char *at,
                                      const char *end, uint32_t *letters,
                                      bool *dots)
{
    *letters = 0;
    *dots = false;
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (byi_is_letter(*at)) {
            ++*letters;
        } else if (end - at >= 3 && memcmp(at, "...", 3) == 0 && !*dots) {
            *dots = true;
            at += 2;
        } else {
            return byi_rule_fail(t,
                                 "equation has '%c', expected letters and "
                                 "one \"...\" in a term",
                                 *at > ' ' && *at < 127 ? *at : '?');
        }
    }
    return BYOC_OK;
}

/* Give the dims of operand i to the letters of its term. */
static enum byoc_status bind_term(const struct byi_infer *t, uint32_t i,
                                  const char *at, const char *end,
                                  struct equation *e)
{
    const struct byi_type *in = t->in[i];
    uint32_t letters, axis = 0;
    bool dots;
    BYI_TRY(count_letters(t, at, end, &letters, &dots));
    if (dots ? letters > in->rank : letters != in->rank)
        return byi_rule_fail(
            t, "term %u has %u letters, expected %s%u, the rank of the operand",
            i, letters, dots ? "at most " : "", in->rank);
    for (; at < end; at++) {
        if (*at == ' ')
            continue;
        if (*at == '.') {
            const uint32_t n = in->rank - letters;
            BYI_TRY(byi_dims_broadcast(t, e->n_dots, e->dots, n,
                                       in->dims + axis, &e->n_dots, e->dots));
            axis += n;
            at += 2;
            continue;
        }
        const unsigned char letter = (unsigned char)*at;
        const int64_t dim = in->dims[axis++];
        const int64_t old = e->seen[letter] ? e->dim[letter] : dim;
        if (!byi_dims_agree(old, dim) && old != 1 && dim != 1)
            return byi_rule_fail(t, "'%c' is %lld and %lld, expected one size",
                                 letter, (long long)old, (long long)dim);
        e->dim[letter] = old == 1   ? dim
                         : dim == 1 ? old
                                    : byi_dim_unify(old, dim);
        e->seen[letter]++;
    }
    return BYOC_OK;
}

/* The result of an equation without "->": "...", then the letters that occur
 * once, in alphabetical order. */
static uint32_t implicit_result(const struct equation *e, int64_t *dims)
{
    uint32_t rank = e->n_dots;
    memcpy(dims, e->dots, e->n_dots * sizeof *dims);
    for (uint32_t c = 0; c < 128; c++)
        if (e->seen[c] == 1 && rank <= BYI_MAX_RANK)
            dims[rank++] = e->dim[c];
    return rank;
}

static enum byoc_status explicit_result(const struct byi_infer *t,
                                        const char *at,
                                        const struct equation *e, int64_t *dims,
                                        uint32_t *rank)
{
    bool used[128] = {false}, dots;
    const char *end = at + strlen(at);
    uint32_t letters;
    BYI_TRY(count_letters(t, at, end, &letters, &dots));
    const uint32_t n = letters + (dots ? e->n_dots : 0);
    if (n > BYI_MAX_RANK)
        return byi_rule_fail(t, "the result has rank %u, expected at most %d",
                             n, BYI_MAX_RANK);
    for (*rank = 0; at < end; at++) {
        const unsigned char c = (unsigned char)*at;
        if (c == ' ')
            continue;
        if (c == '.') {
            memcpy(dims + *rank, e->dots, e->n_dots * sizeof *dims);
            *rank += e->n_dots;
            at += 2;
            continue;
        }
        if (!e->seen[c] || used[c])
            return byi_rule_fail(t,
                                 "'%c' of the result is %s, expected a "
                                 "letter of an operand, once",
                                 c, used[c] ? "repeated" : "in no operand");
        used[c] = true;
        dims[(*rank)++] = e->dim[c];
    }
    return BYOC_OK;
}

enum byoc_status byi_rule_einsum(struct byi_infer *t)
{
    const char *at = byi_attr_string(t->attrs, "equation");
    const char *arrow = strstr(at, "->");
    const char *end = arrow ? arrow : at + strlen(at);
    struct equation e = {.n_dots = 0};
    int64_t dims[BYI_MAX_RANK + 1];
    uint32_t rank = 0;
    BYI_TRY(byi_want_dtype(t, 0, BYI_NUMERIC, "operand 0"));
    for (uint32_t i = 0; i < t->n_in; i++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        if ((i + 1 == t->n_in) != (comma == NULL))
            return byi_rule_fail(t,
                                 "equation has %s than %u terms, expected "
                                 "one for each operand",
                                 comma ? "more" : "fewer", t->n_in);
        char name[24];
        snprintf(name, sizeof name, "operand %u", i);
        BYI_TRY(byi_want_same_dtype(t, i, 0, name));
        BYI_TRY(bind_term(t, i, at, stop, &e));
        at = comma ? comma + 1 : end;
    }
    if (arrow)
        BYI_TRY(explicit_result(t, arrow + 2, &e, dims, &rank));
    else
        rank = implicit_result(&e, dims);
    return byi_rule_tensor(t, t->in[0]->dtype, rank, dims);
}
