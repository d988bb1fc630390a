/* SPDX-License-Identifier: Apache-2.0 */
/* ops_svm.c: converts support vector machines of ai.onnx.ml to operators on
 * float64; results are cast to float32.
 *
 * With V support vectors s, the kernel values K (rows, V) are a function of x
 * s^T or of |x - s|^2. A regressor computes K coefficients + rho. A classifier
 * of C classes is one-vs-one. It has a score for each of the C (C - 1) / 2
 * pairs of classes, K W^T + rho. Row (i, j) of W has the coefficients of the
 * support vectors of i and j, and 0 elsewhere. The label is the class with most
 * votes. Pair probabilities, if the model has them, are combined into class
 * probabilities by pairwise coupling (ml.pairwise_coupling). A model without
 * support vectors is linear: x coefficients^T + rho.
 */
#include "frontend_onnx/import.h"

#include <string.h>

/* The input and the attributes of a support vector machine. */
struct svm {
    byi_id x; /* (rows, features), float64 */
    uint32_t n_vectors;
    uint32_t n_coefficients, n_rho;
    const double *coefficients, *rho;
};

/* Add a constant (rows, cols) of float64. */
static byi_id add_matrix(struct byi_import *o, uint32_t rows, uint32_t cols,
                         const double *values)
{
    const struct byi_tensor t = {.data = (void *)(uintptr_t)values,
                                 .dtype = BYOC_F64,
                                 .rank = 2,
                                 .dims = {rows, cols}};

    return byi_import_const(o, &t, false);
}

/* --- kernels -------------------------------------------------------------- */

/* The radial basis kernel exp(factor |x - s|^2), (rows, vectors). The square
 * |x - s|^2 = x^2 - 2 x s + s^2 is at least 0, but rounding can make the sum
 * negative; it is then replaced by 0. */
static const char radial[] =
    "fn (%x, %vectors, %products) {"
    "  %xx = reduce_sum_square(%x, axis=[1], keepdims=true);"
    "  %ss = reduce_sum_square(%vectors, axis=[1], keepdims=false);"
    "  %distance = subtract(add(%xx, %ss), multiply(%products, 2));"
    "  exp(multiply(maximum(%distance, 0), factor))"
    "}";

/* Emit the kernel of x and each support vector, (rows, vectors). BYI_NO_ID on
 * error. */
static byi_id emit_kernel(struct byi_import *o, byi_id x, byi_id vectors)
{
    const char *kind = byi_import_string(o, "kernel_type", "LINEAR");
    uint32_t n = 0;
    const double *params = byi_import_floats(o, "kernel_params", &n);
    const byi_id products = byi_import_call(o, BYI_OP_NN_DENSE, x, vectors);

    if (strcmp(kind, "LINEAR") == 0)
        return products;
    if (n != 3) {
        byi_import_fail(
            o, BYOC_EPARSE,
            "kernel_params has %u entries, expected gamma, coef0 and degree",
            n);
        return BYI_NO_ID;
    }
    if (strcmp(kind, "RBF") == 0)
        return byi_import_template(o, radial, ARGS(x, vectors, products),
                                   ATTRS(A_FLOAT("factor", -params[0])));
    const byi_id line = byi_import_call_scalar(
        o, BYI_OP_ADD, byi_import_scale(o, products, params[0]), params[1]);
    if (strcmp(kind, "POLY") == 0)
        return byi_import_call_scalar(o, BYI_OP_POWER, line, params[2]);
    /* in float32, whose rounding is that of the result; float64 would call the
     * C library for each element */
    if (strcmp(kind, "SIGMOID") == 0)
        return byi_import_cast(
            o,
            byi_import_call(o, BYI_OP_TANH, byi_import_cast(o, line, BYOC_F32)),
            BYOC_F64);
    byi_import_refuse(
        o, "kernel_type is '%s', expected LINEAR, RBF, POLY or SIGMOID", kind);
    return BYI_NO_ID;
}

/* --- shared by regressors and classifiers --------------------------------- */

static void read_svm(struct byi_import *o, struct svm *s)
{
    s->x = byi_ml_matrix(o, 0, BYOC_F64);
    s->coefficients = byi_import_floats(o, "coefficients", &s->n_coefficients);
    s->rho = byi_import_floats(o, "rho", &s->n_rho);
    if (byi_import_ok(o) && s->n_rho == 0)
        byi_import_fail(
            o, BYOC_EPARSE,
            "found no numbers in attribute 'rho', expected at least one");
}

/* Emit the kernel of s->x and each of the s->n_vectors > 0 support vectors,
 * which must have equal size: (rows, vectors). BYI_NO_ID on error. */
static byi_id emit_vector_kernels(struct byi_import *o, const struct svm *s)
{
    uint32_t n = 0;
    const double *values = byi_import_floats(o, "support_vectors", &n);

    if (n == 0 || n % s->n_vectors) {
        byi_import_fail(o, BYOC_EPARSE,
                        "support_vectors has %u entries, expected a positive "
                        "multiple of %u, the number of support vectors",
                        n, s->n_vectors);
        return BYI_NO_ID;
    }
    return emit_kernel(o, s->x,
                       add_matrix(o, s->n_vectors, n / s->n_vectors, values));
}

/* Emit x coefficients^T + rho[0], for a model without support vectors, whose
 * coefficients are `rows` > 0 vectors. The kernel attributes are read, because
 * an unread attribute is an error, but have no effect. BYI_NO_ID on error. */
static byi_id emit_linear(struct byi_import *o, const struct svm *s,
                          uint32_t rows)
{
    byi_import_string(o, "kernel_type", "");
    byi_import_attr(o, "kernel_params",
                    ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    if (s->n_coefficients == 0 || s->n_coefficients % rows) {
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u coefficients, expected a positive multiple "
                        "of %u, the number of results",
                        s->n_coefficients, rows);
        return BYI_NO_ID;
    }
    const byi_id weights =
        add_matrix(o, rows, s->n_coefficients / rows, s->coefficients);
    return byi_import_call_scalar(
        o, BYI_OP_ADD, byi_import_call(o, BYI_OP_NN_DENSE, s->x, weights),
        s->rho[0]);
}

/* --- regressors ----------------------------------------------------------- */

static void convert_svm_regressor(struct byi_import *o)
{
    const int64_t n = byi_import_int(o, "n_supports", 0);
    const bool one_class = byi_import_int(o, "one_class", 0) != 0;
    struct svm s = {.n_vectors = n > 0 && n <= UINT32_MAX ? (uint32_t)n : 0};
    byi_id y;

    /* ignored: the output is a single number, not a distribution */
    byi_import_string(o, "post_transform", "NONE");
    read_svm(o, &s);
    if (!byi_import_ok(o))
        return;
    if (s.n_vectors == 0) {
        y = emit_linear(o, &s, 1);
    } else if (s.n_coefficients != s.n_vectors) {
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u coefficients, expected %u, one for each "
                        "support vector",
                        s.n_coefficients, s.n_vectors);
        return;
    } else {
        const byi_id weights = add_matrix(o, 1, s.n_vectors, s.coefficients);
        y = byi_import_call(o, BYI_OP_NN_DENSE, emit_vector_kernels(o, &s),
                            weights);
        y = byi_import_call_scalar(o, BYI_OP_ADD, y, s.rho[0]);
    }
    if (one_class) /* y > 0 ? 1 : -1 */
        y = byi_import_template(o,
                                "fn (%y, %one) {"
                                "  where(greater(%y, 0), %one, -1)"
                                "}",
                                ARGS(y, byi_import_scalar(o, BYOC_F64, 1)),
                                NO_ATTRS);
    o->out[0] = byi_import_cast(o, y, BYOC_F32);
}

/* --- classifiers ---------------------------------------------------------- */

/* The pairs (i, j), i < j, of classes. */
struct class_pairs {
    uint32_t n_classes;
    uint32_t n;            /* pairs */
    const int64_t *counts; /* for each class: its number of support vectors */
};

/* Add the constant W (see the top of this file). The attribute `coefficients`
 * is (classes - 1, vectors). Row (i, j) of W takes the coefficients of class
 * i's vectors from row j - 1 of the attribute, and those of class j's vectors
 * from row i. */
static byi_id add_pair_weights(struct byi_import *o, const struct svm *s,
                               const struct class_pairs *p)
{
    double *w = byi_arena_calloc(o->scratch, (size_t)p->n * s->n_vectors + 1,
                                 sizeof *w);
    double *row = w;
    int64_t at_i = 0;

    for (uint32_t i = 0; i < p->n_classes; at_i += p->counts[i++]) {
        int64_t at_j = at_i + p->counts[i];
        for (uint32_t j = i + 1; j < p->n_classes; at_j += p->counts[j++]) {
            const double *of_i = s->coefficients + (j - 1) * s->n_vectors;
            const double *of_j = s->coefficients + i * s->n_vectors;
            memcpy(row + at_i, of_i + at_i, (size_t)p->counts[i] * sizeof *row);
            memcpy(row + at_j, of_j + at_j, (size_t)p->counts[j] * sizeof *row);
            row += s->n_vectors;
        }
    }
    return add_matrix(o, p->n, s->n_vectors, w);
}

/* Emit the votes for each class: pair (i, j) votes for i if its score is above
 * 0, otherwise for j. Starting from all votes for the classes j (`start`), each
 * score above 0 moves one vote from j to i (`moves`). */
static byi_id emit_votes(struct byi_import *o, const struct class_pairs *p,
                         byi_id scores)
{
    double *moves = byi_arena_calloc(
        o->scratch, (size_t)p->n * p->n_classes + 1, sizeof *moves);
    double *start =
        byi_arena_calloc(o->scratch, (size_t)p->n_classes + 1, sizeof *start);
    uint32_t pair = 0;

    for (uint32_t i = 0; i < p->n_classes; i++)
        for (uint32_t j = i + 1; j < p->n_classes; j++, pair++) {
            moves[(size_t)i * p->n + pair] = 1;
            moves[(size_t)j * p->n + pair] = -1;
            start[j] += 1;
        }
    const byi_id won = byi_import_cast(
        o, byi_import_call_scalar(o, BYI_OP_GREATER, scores, 0), BYOC_F64);
    const byi_id bias = byi_import_array(o, BYOC_F64, p->n_classes, start);
    return byi_import_call(
        o, BYI_OP_ADD,
        byi_import_call(o, BYI_OP_NN_DENSE, won,
                        add_matrix(o, p->n_classes, p->n, moves)),
        bias);
}

/* Emit the class probabilities from the scores of the n pairs: Platt scaling,
 * 1 / (1 + exp(a score + b)) of each pair, then pairwise coupling. BYI_NO_ID
 * on error. */
static byi_id emit_probabilities(struct byi_import *o, uint32_t n,
                                 byi_id scores)
{
    uint32_t n_a = 0, n_b = 0;
    const double *a = byi_import_floats(o, "prob_a", &n_a);
    const double *b = byi_import_floats(o, "prob_b", &n_b);

    if (n_a != n || n_b != n) {
        byi_import_fail(o, BYOC_EPARSE,
                        "prob_a has %u entries and prob_b %u, expected %u", n_a,
                        n_b, n);
        return BYI_NO_ID;
    }
    return byi_import_template(
        o,
        "fn (%scores, %a, %b) {"
        "  %line = add(multiply(%scores, %a), %b);"
        "  ml.pairwise_coupling(sigmoid(negative(%line)))"
        "}",
        ARGS(scores, byi_import_array(o, BYOC_F64, n, a),
             byi_import_array(o, BYOC_F64, n, b)),
        NO_ATTRS);
}

/* Emit the scores of two classes, (rows, 2), from the score of their pair. */
static byi_id emit_two_scores(struct byi_import *o, byi_id score,
                              const char *transform)
{
    if (strcmp(transform, "NONE") == 0)
        return byi_ml_two_columns(o, byi_import_call(o, BYI_OP_NEGATIVE, score),
                                  score);
    if (strcmp(transform, "PROBIT") == 0)
        byi_import_refuse(o, "found PROBIT of one score for two classes, "
                             "expected another post_transform");
    if (strcmp(transform, "LOGISTIC") == 0)
        score = byi_ml_post_transform(o, score, transform);
    return byi_ml_two_columns(o, byi_ml_complement(o, score), score);
}

/* Read the number of support vectors of each class, and check the sizes of
 * attributes rho and coefficients. The caller has set p->n_classes; this sets
 * the other members of p, and s->n_vectors, which is not 0. Returns false after
 * an error. */
static bool read_pairs(struct byi_import *o, struct svm *s,
                       struct class_pairs *p)
{
    uint32_t n = 0;
    uint64_t sum = 0;

    p->counts = byi_import_ints(o, "vectors_per_class", &n);
    for (uint32_t i = 0; i < n; i++) {
        if (p->counts[i] < 0 || p->counts[i] > INT32_MAX) {
            byi_import_fail(o, BYOC_EPARSE,
                            "vectors_per_class[%u] is %lld, expected 0 to %d",
                            i, (long long)p->counts[i], INT32_MAX);
            return false;
        }
        sum += (uint64_t)p->counts[i];
    }
    p->n = p->n_classes * (p->n_classes - 1) / 2;
    s->n_vectors = (uint32_t)sum;
    if (n != p->n_classes || n < 2)
        byi_import_fail(o, BYOC_EPARSE,
                        "vectors_per_class has %u entries, expected %u, one "
                        "for each label, and at least 2",
                        n, p->n_classes);
    else if (s->n_rho != p->n)
        byi_import_fail(o, BYOC_EPARSE,
                        "rho has %u entries, expected %u, one for each pair of "
                        "classes",
                        s->n_rho, p->n);
    else if (sum == 0 || sum > INT32_MAX)
        byi_import_fail(o, BYOC_EPARSE,
                        "the sum of vectors_per_class is %llu, expected 1 to "
                        "%d",
                        (unsigned long long)sum, INT32_MAX);
    else if (s->n_coefficients != (n - 1) * sum)
        byi_import_fail(o, BYOC_EPARSE,
                        "found %u coefficients for %llu support vectors, "
                        "expected %u for each",
                        s->n_coefficients, (unsigned long long)sum, n - 1);
    return byi_import_ok(o);
}

/* Emit the results of a classifier without support vectors, which has one row
 * of coefficients for each of the n classes. */
static void classify_linear(struct byi_import *o, const struct svm *s,
                            byi_id labels, uint32_t n, const char *transform)
{
    const byi_id scores = emit_linear(o, s, n);

    o->out[0] = byi_ml_take(o, labels, byi_ml_argmax(o, scores));
    o->out[1] = byi_import_cast(o, byi_ml_post_transform(o, scores, transform),
                                BYOC_F32);
}

static void convert_svm_classifier(struct byi_import *o)
{
    const char *transform = byi_import_string(o, "post_transform", "NONE");
    struct svm s = {0};
    struct class_pairs p = {0};
    const byi_id labels = byi_ml_labels(o, "classlabels_ints", &p.n_classes);

    read_svm(o, &s);
    if (!byi_import_ok(o))
        return;
    if (!byi_import_has_attr(o, "vectors_per_class")) {
        classify_linear(o, &s, labels, p.n_classes, transform);
        return;
    }
    if (!read_pairs(o, &s, &p))
        return;
    const byi_id bias = byi_import_array(o, BYOC_F64, p.n, s.rho);
    const byi_id scores = byi_import_call(
        o, BYI_OP_ADD,
        byi_import_call(o, BYI_OP_NN_DENSE, emit_vector_kernels(o, &s),
                        add_pair_weights(o, &s, &p)),
        bias);
    const bool coupled = byi_import_has_attr(o, "prob_a");
    byi_id y = coupled ? emit_probabilities(o, p.n, scores) : scores;
    y = p.n == 1 && !coupled ? emit_two_scores(o, y, transform)
                             : byi_ml_post_transform(o, y, transform);
    o->out[0] =
        byi_ml_take(o, labels, byi_ml_argmax(o, emit_votes(o, &p, scores)));
    o->out[1] = byi_import_cast(o, y, BYOC_F32);
}

/* clang-format off */
BYI_ONNX_ROWS(ml_svm, BYI_ML,
    {"SVMClassifier", 1, 1, 1, convert_svm_classifier, BYI_OP_NONE},
    {"SVMRegressor", 1, 1, 1, convert_svm_regressor, BYI_OP_NONE})
/* clang-format on */
