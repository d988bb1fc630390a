/* SPDX-License-Identifier: Apache-2.0 */
/* cases_ml.c: random calls of ai.onnx.ml's operators. Numbers are multiples of
 * 1/2, so that many equal a threshold or category exactly.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#define ONE_OF(d, list) (list)[draw_int(d, 0, BYI_COUNT(list) - 1)]

enum { MAX_NODES = 64, MAX_LEAVES = 160 };

static bool is_op(const char *name)
{
    return strcmp(op_now->op, name) == 0;
}

/* A multiple of 1/2 from -4 to 4. */
static float draw_half(struct draw *d)
{
    return (float)draw_int(d, -8, 8) / 2;
}

static void attr_halves(struct draw *d, const char *name, int64_t n)
{
    float values[MAX_NODES];

    for (int64_t i = 0; i < n; i++)
        values[i] = draw_half(d);
    draw_attr_floats(d, name, (size_t)n, values);
}

/* Set the labels of n classes: words, or distinct integers in the attribute
 * `ints`. */
static void attr_labels(struct draw *d, const char *ints, int64_t n)
{
    static const char *const words[] = {"no", "yes", "maybe", "", "a", "b"};
    static const int64_t numbers[] = {7, 3, 5, -1, 0, 2};

    if (draw_chance(d, 30))
        draw_attr_words(d, "classlabels_strings", (size_t)n, words);
    else
        draw_attr_ints(d, ints, (size_t)n, numbers);
}

/* Draw the operand x: 1 to 9 rows of `width` features, of the case's type.
 * Returns width. */
static int64_t rows_of(struct draw *d, int64_t width)
{
    const int64_t dims[] = {draw_int(d, 1, 9), width};
    struct byi_tensor *t = draw_operand(d, d->dtype, 2, dims, ORDINARY);

    for (int64_t i = 0; i < byi_elements(2, dims); i++)
        byi_tensor_set(t, i,
                       byi_dtype_is_float(t->dtype)
                           ? (double)draw_half(d)
                           : (double)draw_int(d, -4, 4));
    return width;
}

/* --- numbers -------------------------------------------------------------- */

static void binarizer(struct draw *d)
{
    rows_of(d, draw_int(d, 1, 6));
    draw_attr_float(d, "threshold", draw_half(d));
}

static void scaler(struct draw *d)
{
    const int64_t width = rows_of(d, draw_int(d, 1, 6));

    attr_halves(d, "offset", draw_chance(d, 50) ? 1 : width);
    attr_halves(d, "scale", draw_chance(d, 50) ? 1 : width);
}

static void normalizer(struct draw *d)
{
    static const char *const norms[] = {"MAX", "L1", "L2"};

    rows_of(d, draw_int(d, 1, 6));
    draw_attr_string(d, "norm", ONE_OF(d, norms));
}

static void imputer(struct draw *d)
{
    const int64_t width = rows_of(d, draw_int(d, 1, 6));
    const int64_t n = draw_chance(d, 50) ? 1 : width;
    struct byi_tensor *x = &d->in[0];
    const bool nan = draw_chance(d, 40);
    int64_t values[6];

    if (!byi_dtype_is_float(d->dtype)) {
        for (int64_t i = 0; i < n; i++)
            values[i] = draw_int(d, -99, 99);
        draw_attr_ints(d, "imputed_value_int64s", (size_t)n, values);
        draw_attr_int(d, "replaced_value_int64", draw_int(d, -2, 2));
        return;
    }
    if (nan)
        byi_tensor_set(x, 0, (double)NAN);
    attr_halves(d, "imputed_value_floats", n);
    draw_attr_float(d, "replaced_value_float", nan ? NAN : draw_half(d));
}

/* --- features and categories ---------------------------------------------- */

static void array_feature(struct draw *d)
{
    const int64_t dims[] = {draw_int(d, 1, 5), draw_int(d, 1, 7)};
    const int64_t n = draw_int(d, 1, 5);
    int64_t columns[5];

    draw_operand(d, d->dtype, 2, dims, ORDINARY);
    for (int64_t i = 0; i < n; i++)
        columns[i] = draw_int(d, 0, dims[1] - 1);
    draw_ints(d, BYOC_I64, n, columns, draw_chance(d, 50));
}

static void feature_vectorizer(struct draw *d)
{
    const int64_t rows = draw_int(d, 1, 5), n = draw_int(d, 1, 4);
    int64_t widths[4];

    for (int64_t i = 0; i < n; i++) {
        widths[i] = draw_int(d, 1, 5);
        draw_operand(d, d->dtype, 2, (int64_t[]){rows, widths[i]}, ORDINARY);
    }
    draw_attr_ints(d, "inputdimensions", (size_t)n, widths);
}

static const char *const some_words[] = {"a", "The", "10", ""};
static const int64_t some_numbers[] = {2, -1, 0, 3};

static void one_hot(struct draw *d)
{
    const size_t n = (size_t)draw_int(d, 1, 4);

    if (d->dtype == BYOC_STRING) {
        draw_operand(d, d->dtype, 2, (int64_t[]){3, draw_int(d, 1, 5)},
                     ORDINARY);
        draw_attr_words(d, "cats_strings", n, some_words);
    } else {
        rows_of(d, draw_int(d, 1, 5));
        draw_attr_ints(d, "cats_int64s", n, some_numbers);
    }
    draw_attr_int(d, "zeros", 1);
}

static void category_mapper(struct draw *d)
{
    if (d->dtype == BYOC_STRING)
        draw_operand(d, d->dtype, 2, (int64_t[]){3, draw_int(d, 1, 5)},
                     ORDINARY);
    else
        rows_of(d, draw_int(d, 1, 5));
    draw_attr_words(d, "cats_strings", 4, some_words);
    draw_attr_ints(d, "cats_int64s", 4, some_numbers);
    draw_attr_int(d, "default_int64", -7);
    draw_attr_string(d, "default_string", "none");
}

/* From words, numbers or floats to one of the others. */
static void label_encoder(struct draw *d)
{
    float some_floats[] = {0.5f, -1.5f, 2, 0};
    const size_t n = (size_t)draw_int(d, 1, 4);

    if (d->dtype == BYOC_STRING)
        draw_operand(d, d->dtype, 1, (int64_t[]){9}, ORDINARY);
    else
        rows_of(d, draw_int(d, 1, 5));
    if (d->dtype == BYOC_F32 && draw_chance(d, 50)) {
        byi_tensor_set(&d->in[0], 0, (double)NAN);
        some_floats[draw_int(d, 0, 3)] = NAN;
    }
    if (d->dtype == BYOC_STRING)
        draw_attr_words(d, "keys_strings", n, some_words);
    else if (d->dtype == BYOC_I64)
        draw_attr_ints(d, "keys_int64s", n, some_numbers);
    else
        draw_attr_floats(d, "keys_floats", n, some_floats);
    if (d->dtype == BYOC_I64) {
        draw_attr_words(d, "values_strings", n, some_words);
        draw_attr_string(d, "default_string", "none");
    } else if (d->dtype == BYOC_STRING && draw_chance(d, 50)) {
        draw_attr_floats(d, "values_floats", n, some_floats);
        draw_attr_float(d, "default_float", -7);
    } else {
        draw_attr_ints(d, "values_int64s", n, some_numbers);
        draw_attr_int(d, "default_int64", -7);
    }
}

/* --- models --------------------------------------------------------------- */

static const char *const transforms[] = {"NONE", "LOGISTIC", "SOFTMAX",
                                         "SOFTMAX_ZERO"};

static void linear(struct draw *d)
{
    const bool classes = is_op("LinearClassifier");
    const int64_t width = rows_of(d, draw_int(d, 1, 6));
    const int64_t n = draw_int(d, 1, 5);
    const char *transform = ONE_OF(d, transforms);

    attr_halves(d, "coefficients", n * width);
    if (classes || draw_chance(d, 60))
        attr_halves(d, "intercepts", n);
    draw_attr_string(d, "post_transform",
                     classes || n > 1 ? transform : "NONE");
    if (classes)
        attr_labels(d, "classlabels_ints", n > 1 ? n : 2);
    else
        draw_attr_int(d, "targets", n);
}

static const char *const kernels[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};

static void svm_kernel(struct draw *d, int64_t vectors, int64_t width)
{
    attr_halves(d, "support_vectors", vectors * width);
    draw_attr_string(d, "kernel_type", ONE_OF(d, kernels));
    draw_attr_floats(d, "kernel_params", 3,
                     (float[]){0.25f, 0.5f, (float)draw_int(d, 1, 3)});
}

static void svm_regressor(struct draw *d)
{
    const int64_t width = rows_of(d, draw_int(d, 1, 4));
    const int64_t vectors = draw_int(d, 1, 5);

    svm_kernel(d, vectors, width);
    attr_halves(d, "coefficients", vectors);
    attr_halves(d, "rho", 1);
    draw_attr_int(d, "n_supports", vectors);
    draw_attr_int(d, "one_class", draw_int(d, 0, 1));
}

static void svm_classifier(struct draw *d)
{
    const int64_t width = rows_of(d, draw_int(d, 1, 4));
    const int64_t classes = draw_int(d, 2, 4);
    int64_t each[4], vectors = 0;

    for (int64_t i = 0; i < classes; i++)
        vectors += each[i] = draw_int(d, 1, 3);
    svm_kernel(d, vectors, width);
    attr_halves(d, "coefficients", (classes - 1) * vectors);
    attr_halves(d, "rho", classes * (classes - 1) / 2);
    draw_attr_ints(d, "vectors_per_class", (size_t)classes, each);
    attr_labels(d, "classlabels_ints", classes);
}

/* Nodes of trees as they are written, one list for each of their members. */
struct forest {
    size_t n, leaves;
    int64_t tree[MAX_NODES], id[MAX_NODES], feature[MAX_NODES], yes[MAX_NODES],
        no[MAX_NODES];
    int64_t missing[MAX_NODES];
    float value[MAX_NODES];
    const char *mode[MAX_NODES];
    int64_t leaf_tree[MAX_LEAVES], leaf_id[MAX_LEAVES];
    int64_t leaf_class[MAX_LEAVES];
    float weight[MAX_LEAVES];
};

static const char *const comparisons[] = {"BRANCH_LEQ", "BRANCH_LT",
                                          "BRANCH_GTE", "BRANCH_GT",
                                          "BRANCH_EQ",  "BRANCH_NEQ"};

/* Draw the number that leaf `id` of the tree adds to a class. */
static void add_leaf(struct draw *d, struct forest *f, int64_t tree, int64_t id,
                     int64_t class)
{
    f->leaf_tree[f->leaves] = tree;
    f->leaf_id[f->leaves] = id;
    f->leaf_class[f->leaves] = class;
    f->weight[f->leaves++] = draw_half(d);
}

/* A complete tree: node i has children 2 i + 1 and 2 i + 2; its leaves add to
 * every class, or to one of them. */
static void grow(struct draw *d, struct forest *f, int64_t tree, int64_t width,
                 int64_t classes, bool every)
{
    const int64_t depth = draw_int(d, 0, 3);
    const int64_t inner = (INT64_C(1) << depth) - 1, n_nodes = 2 * inner + 1;
    const char *mode = ONE_OF(d, comparisons);

    for (int64_t i = 0; i < n_nodes; i++) {
        const size_t k = f->n++;
        f->tree[k] = tree;
        f->id[k] = i;
        f->feature[k] = draw_int(d, 0, width - 1);
        f->value[k] = draw_half(d);
        f->mode[k] = i < inner ? mode : "LEAF";
        f->yes[k] = i < inner ? 2 * i + 1 : 0;
        f->no[k] = i < inner ? 2 * i + 2 : 0;
        f->missing[k] = draw_int(d, 0, 1);
        if (i < inner)
            continue;
        for (int64_t c = 0; c < classes && every; c++)
            add_leaf(d, f, tree, i, c);
        if (!every)
            add_leaf(d, f, tree, i, draw_int(d, 0, classes - 1));
    }
}

static void attr_forest(struct draw *d, const struct forest *f, bool classes)
{
    const char *const names[2][4] = {
        {"target_treeids", "target_nodeids", "target_ids", "target_weights"},
        {"class_treeids", "class_nodeids", "class_ids", "class_weights"}};

    draw_attr_ints(d, "nodes_treeids", f->n, f->tree);
    draw_attr_ints(d, "nodes_nodeids", f->n, f->id);
    draw_attr_ints(d, "nodes_featureids", f->n, f->feature);
    draw_attr_ints(d, "nodes_truenodeids", f->n, f->yes);
    draw_attr_ints(d, "nodes_falsenodeids", f->n, f->no);
    draw_attr_ints(d, "nodes_missing_value_tracks_true", f->n, f->missing);
    draw_attr_floats(d, "nodes_values", f->n, f->value);
    draw_attr_words(d, "nodes_modes", f->n, f->mode);
    draw_attr_ints(d, names[classes][0], f->leaves, f->leaf_tree);
    draw_attr_ints(d, names[classes][1], f->leaves, f->leaf_id);
    draw_attr_ints(d, names[classes][2], f->leaves, f->leaf_class);
    draw_attr_floats(d, names[classes][3], f->leaves, f->weight);
}

/* Draws three classes or more, and, with base values, leaves for all classes:
 * otherwise ONNX Runtime differs (docs/operators.md). */
static void trees(struct draw *d)
{
    static const char *const sums[] = {"SUM", "AVERAGE", "MIN", "MAX"};
    const bool classes = is_op("TreeEnsembleClassifier");
    const int64_t width = rows_of(d, draw_int(d, 1, 6));
    const int64_t n = draw_int(d, classes ? 3 : 1, 5);
    const int64_t count = draw_int(d, 1, 4);
    const bool has_base_values = draw_chance(d, 50);
    struct forest f = {0};

    if (byi_dtype_is_float(d->dtype) && draw_chance(d, 30))
        byi_tensor_set(&d->in[0], 0, (double)NAN);
    for (int64_t i = 0; i < count; i++)
        grow(d, &f, i, width, n, has_base_values);
    attr_forest(d, &f, classes);
    if (has_base_values)
        attr_halves(d, "base_values", n);
    if (classes) {
        attr_labels(d, "classlabels_int64s", n);
        draw_attr_string(d, "post_transform", ONE_OF(d, transforms));
    } else {
        draw_attr_int(d, "n_targets", n);
        draw_attr_string(d, "aggregate_function", ONE_OF(d, sums));
    }
}

/* Inner nodes, leaves and sets of TreeEnsemble, version 5. */
struct forest_5 {
    size_t n, leaves, members;
    int64_t feature[MAX_NODES], missing[MAX_NODES];
    int64_t child[2][MAX_NODES],
        is_leaf[2][MAX_NODES]; /* of true, and of false */
    double split[MAX_NODES], mode[MAX_NODES];
    int64_t target[MAX_LEAVES];
    double weight[MAX_LEAVES], member[4 * MAX_NODES];
};

enum { IN_SET = 6 };

/* A complete tree: inner node i has children 2 i + 1 and 2 i + 2. Numbers of
 * sets are small positive integers, since ONNX Runtime gets others wrong. */
static void grow_5(struct draw *d, struct forest_5 *f, int64_t width,
                   int64_t targets, int64_t inner)
{
    const int64_t root = (int64_t)f->n;

    for (int64_t i = 0; i < inner; i++) {
        const size_t k = f->n++;
        f->feature[k] = draw_int(d, 0, width - 1);
        f->missing[k] = draw_int(d, 0, 1);
        f->mode[k] = (double)draw_int(d, 0, IN_SET);
        f->split[k] = (double)draw_half(d);
        for (int64_t m = draw_int(d, 1, 3); f->mode[k] == IN_SET && m-- > 0;)
            f->member[f->members++] = (double)draw_int(d, 1, 4);
        if (f->mode[k] == IN_SET)
            f->member[f->members++] = (double)NAN;
        for (int64_t side = 0; side < 2; side++) {
            const bool leaf = 2 * i + 1 >= inner;
            f->is_leaf[side][k] = leaf;
            f->child[side][k] =
                leaf ? (int64_t)f->leaves : root + 2 * i + 1 + side;
            if (!leaf)
                continue;
            f->target[f->leaves] = draw_int(d, 0, targets - 1);
            f->weight[f->leaves++] = (double)draw_half(d);
        }
    }
}

static void attr_forest_5(struct draw *d, const struct forest_5 *f)
{
    draw_attr_ints(d, "nodes_featureids", f->n, f->feature);
    draw_attr_ints(d, "nodes_truenodeids", f->n, f->child[0]);
    draw_attr_ints(d, "nodes_falsenodeids", f->n, f->child[1]);
    draw_attr_ints(d, "nodes_trueleafs", f->n, f->is_leaf[0]);
    draw_attr_ints(d, "nodes_falseleafs", f->n, f->is_leaf[1]);
    if (draw_chance(d, 50))
        draw_attr_ints(d, "nodes_missing_value_tracks_true", f->n, f->missing);
    draw_attr_vector(d, "nodes_modes", BYOC_U8, (int64_t)f->n, f->mode);
    draw_attr_vector(d, "nodes_splits", d->dtype, (int64_t)f->n, f->split);
    if (f->members)
        draw_attr_vector(d, "membership_values", d->dtype, (int64_t)f->members,
                         f->member);
    draw_attr_ints(d, "leaf_targetids", f->leaves, f->target);
    draw_attr_vector(d, "leaf_weights", d->dtype, (int64_t)f->leaves,
                     f->weight);
}

static void trees_5(struct draw *d)
{
    const int64_t width = rows_of(d, draw_int(d, 1, 6));
    const int64_t targets = draw_int(d, 1, 4), count = draw_int(d, 1, 4);
    /* transforms 1 and 2 have each other's place in ONNX Runtime */
    static const int64_t transforms_5[] = {0, 3};
    struct forest_5 f = {0};
    int64_t roots[4];

    for (int64_t i = 0; i < byi_elements(2, d->in[0].dims); i++)
        byi_tensor_set(&d->in[0], i, (double)draw_int(d, -3, 5));
    if (draw_chance(d, 30))
        byi_tensor_set(&d->in[0], 0, (double)NAN);
    for (int64_t i = 0; i < count; i++) {
        roots[i] = (int64_t)f.n;
        grow_5(d, &f, width, targets, (INT64_C(1) << draw_int(d, 1, 3)) - 1);
    }
    attr_forest_5(d, &f);
    draw_attr_ints(d, "tree_roots", (size_t)count, roots);
    draw_attr_int(d, "n_targets", targets);
    draw_attr_int(d, "aggregate_function", draw_int(d, 0, 3));
    draw_attr_int(d, "post_transform",
                  targets > 1 ? ONE_OF(d, transforms_5) : 0);
}

#define ML "ai.onnx.ml"
/* clang-format off */
static const struct op_case rows[] = {
    {"ArrayFeatureExtractor", 1, "fis", array_feature, ORDINARY, 1, 0, ML, false},
    {"Binarizer", 1, "f", binarizer, ORDINARY, 1, 0, ML, false},
    {"CategoryMapper", 1, "Is", category_mapper, ORDINARY, 1, 0, ML, true},
    {"FeatureVectorizer", 1, "fi", feature_vectorizer, ORDINARY, 1, 0, ML, false},
    {"Imputer", 1, "fi", imputer, ORDINARY, 1, 0, ML, false},
    {"LabelEncoder", 2, "FIs", label_encoder, ORDINARY, 1, 0, ML, true},
    {"LabelEncoder", 4, "FIs", label_encoder, ORDINARY, 1, 0, ML, true},
    {"LinearClassifier", 1, "fi", linear, ORDINARY, 2, 1e-4, ML, true},
    {"LinearRegressor", 1, "f", linear, ORDINARY, 1, 1e-4, ML, false},
    {"Normalizer", 1, "fi", normalizer, ORDINARY, 1, 1e-5, ML, false},
    {"OneHotEncoder", 1, "fis", one_hot, ORDINARY, 1, 0, ML, false},
    {"SVMClassifier", 1, "fi", svm_classifier, ORDINARY, 2, 1e-3, ML, true},
    {"SVMRegressor", 1, "f", svm_regressor, ORDINARY, 1, 1e-3, ML, false},
    {"Scaler", 1, "fi", scaler, ORDINARY, 1, 1e-6, ML, false},
    {"TreeEnsemble", 5, "f", trees_5, ORDINARY, 1, 1e-4, ML, false},
    {"TreeEnsembleClassifier", 1, "fi", trees, ORDINARY, 2, 1e-4, ML, true},
    {"TreeEnsembleRegressor", 1, "f", trees, ORDINARY, 1, 1e-4, ML, false},
};
/* clang-format on */

const struct op_table op_cases_ml = {rows, BYI_COUNT(rows)};
