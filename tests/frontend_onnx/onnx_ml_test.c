/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_ml_test.c: tests importing operators of ai.onnx.ml: the operators of the
 * IR that trees, support vectors and maps become, and invalid models.
 * cases_test.c tests the results of valid ones. */
#include "models.h"

static struct build begin_ml(void)
{
    struct build b = begin(17);

    import_opset(&b, "ai.onnx.ml", 3);
    return b;
}

static Onnx__NodeProto *add_ml_node(struct build *b, const char *op,
                                    const char *in, const char *out)
{
    Onnx__NodeProto *n = node(b, op, in, out);

    n->domain = byi_arena_str(b->arena, "ai.onnx.ml");
    return n;
}

/* A tree of five nodes: node 0 branches to leaf 1 or to node 2, which branches
 * to leaves 3 and 4. */
struct tree {
    const char *modes;
    int64_t nodes[5], features[5], yes[5], no[5], targets[3];
};

static const struct tree good = {
    .modes = "BRANCH_GT LEAF BRANCH_LEQ LEAF LEAF",
    .nodes = {0, 1, 2, 3, 4},
    .features = {1, 0, 0, 0, 0},
    .yes = {1, 0, 3, 0, 0},
    .no = {2, 0, 4, 0, 0},
    .targets = {0, 1, 0},
};

static Onnx__NodeProto *add_tree(struct build *b, const struct tree *t)
{
    static const int64_t zeros[5], leaves[] = {1, 3, 4};
    static const float values[] = {0.5f, 0, 1.5f, 0, 0}, weights[] = {1, 2, 3};
    Onnx__NodeProto *n = add_ml_node(b, "TreeEnsembleRegressor", "x", "y");

    attr_ints(b, n, "nodes_treeids", 5, zeros);
    attr_ints(b, n, "nodes_nodeids", 5, t->nodes);
    attr_ints(b, n, "nodes_featureids", 5, t->features);
    attr_ints(b, n, "nodes_truenodeids", 5, t->yes);
    attr_ints(b, n, "nodes_falsenodeids", 5, t->no);
    attr_strings(b, n, "nodes_modes", t->modes);
    attr_floats(b, n, "nodes_values", 5, values);
    attr_ints(b, n, "target_treeids", 3, zeros);
    attr_ints(b, n, "target_nodeids", 3, leaves);
    attr_ints(b, n, "target_ids", 3, t->targets);
    attr_floats(b, n, "target_weights", 3, weights);
    attr_int(b, n, "n_targets", 2);
    return n;
}

/* The children of a node that compares by > are swapped: its false child, node
 * 2, comes next, and its true child, node 1, comes last. */
static void trees_depth_first(void **state)
{
    struct build b = begin_ml();
    (void)state;

    input(&b, "x", "N 3");
    add_tree(&b, &good);
    output(&b, "y");
    EXPECT(&b, "-> Tensor[(N, 2), float32]", "ml.tree_ensemble(%x, ", "{0}, ",
           "{1, 4, 0, 3, -2, 0, -2, 1, -2, 2}, [0.5, 1.5, 0.0",
           "{4, 0, 0, 0, 0}, ", "{1, 0, 0}, [2.0, 3.0, 1.0], targets=2)");
}

static void invalid_trees(void **state)
{
    struct tree wrong[7];
    static const char *const why[] = {
        "tree 0 has two nodes with number 1",
        "node 2 of tree 0 has child 7, expected a node of the tree",
        "node 1 of tree 0 has two parents",
        "found 0 of 5 nodes on a path from a root",
        "found a weight for target 2, expected 0 to 1",
        "a node of mode 'BRANCH_MEMBER'",
        "node 2 of tree 0 has feature -1, expected 0 to",
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(wrong); i++)
        wrong[i] = good;
    wrong[0].nodes[4] = 1;
    wrong[1].yes[2] = 7;
    wrong[2].yes[2] = 1;
    wrong[3].modes = "BRANCH_GT BRANCH_GT BRANCH_LEQ BRANCH_GT BRANCH_GT";
    wrong[4].targets[1] = 2;
    wrong[5].modes = "BRANCH_MEMBER LEAF BRANCH_LEQ LEAF LEAF";
    wrong[6].features[2] = -1;
    for (uint32_t i = 0; i < BYI_COUNT(wrong); i++) {
        struct build b = begin_ml();
        input(&b, "x", "N 3");
        add_tree(&b, &wrong[i]);
        output(&b, "y");
        refuse(&b, i == 5 ? BYOC_EUNSUPPORTED : BYOC_EPARSE, why[i]);
    }
}

static void empty_nodes(void **state)
{
    static const struct {
        const char *op, *why;
        enum byoc_status status;
    } cases[] = {
        {"ZipMap", "found no class labels", BYOC_EPARSE},
        {"CastMap", "its input is not a map", BYOC_ETYPE},
        {"DictVectorizer", "its input is not a map", BYOC_ETYPE},
        {"SVMRegressor", "found no numbers in attribute 'rho'", BYOC_EPARSE},
        {"SVMClassifier", "found no class labels", BYOC_EPARSE},
        {"LinearClassifier", "found no class labels", BYOC_EPARSE},
        {"LinearRegressor",
         "found 0 coefficients, expected a positive multiple of 1",
         BYOC_EPARSE},
        {"TreeEnsembleRegressor", "found 0 nodes", BYOC_EPARSE},
        {"LabelEncoder", "found no keys", BYOC_EPARSE},
        {"Imputer",
         "no imputed values, expected imputed_value_floats for x of type "
         "float32",
         BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_ml();
        input(&b, "x", "2 3");
        add_ml_node(&b, cases[i].op, "x", "y z");
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

static void features_of_rank_3(void **state)
{
    struct build b = begin_ml();
    (void)state;

    input(&b, "x", "2 3");
    input(&b, "w", "2 3 4");
    attr_ints(&b, add_ml_node(&b, "FeatureVectorizer", "x w", "y"),
              "inputdimensions", 2, (const int64_t[]){3, 4});
    output(&b, "y");
    refuse(&b, BYOC_ETYPE, "input 1 has rank 3, expected 1 or 2");
}

/* --- support vectors ------------------------------------------------------ */

static Onnx__NodeProto *add_svm_classifier(struct build *b,
                                           size_t n_coefficients, size_t n_rho,
                                           const int64_t counts[2])
{
    static const float numbers[8] = {1, -1, 0.5f, 2};
    static const int64_t labels[] = {3, 5};

    input(b, "x", "N 2");
    Onnx__NodeProto *n = add_ml_node(b, "SVMClassifier", "x", "y z");
    attr_floats(b, n, "coefficients", n_coefficients, numbers);
    attr_floats(b, n, "rho", n_rho, numbers);
    attr_floats(b, n, "support_vectors", 4, numbers);
    attr_ints(b, n, "vectors_per_class", 2, counts);
    attr_ints(b, n, "classlabels_ints", 2, labels);
    output(b, "y");
    output(b, "z");
    return n;
}

static void support_vectors(void **state)
{
    struct build b = begin_ml();
    Onnx__NodeProto *n = add_svm_classifier(&b, 2, 1, (const int64_t[]){1, 1});
    (void)state;

    attr_string(&b, n, "kernel_type", "RBF");
    attr_floats(&b, n, "kernel_params", 3, (const float[]){0.5f, 0, 0});
    attr_floats(&b, n, "prob_a", 1, (const float[]){-2});
    attr_floats(&b, n, "prob_b", 1, (const float[]){0.25f});
    EXPECT(&b, "-> (Tensor[(N), int64], Tensor[(N, 2), float32])",
           "cast(%x, dtype=\"float64\")", "nn.dense(", "exp(", "{1.0, -1.0}",
           "ml.pairwise_coupling(", "argmax(");
}

static void invalid_support_vectors(void **state)
{
    static const struct {
        size_t coefficients, rho;
        int64_t counts[2];
        const char *kernel, *why;
        enum byoc_status status;
    } cases[] = {
        {2, 1, {1, 1}, "POLY", "kernel_params has 0 entries", BYOC_EPARSE},
        {2, 1, {1, 1}, "CUBIC", "kernel_params has 0 entries", BYOC_EPARSE},
        {2,
         1,
         {2, 1},
         "LINEAR",
         "found 2 coefficients for 3 support vectors, expected 1 for each",
         BYOC_EPARSE},
        {2, 2, {1, 1}, "LINEAR", "rho has 2 entries, expected 1", BYOC_EPARSE},
        {3,
         1,
         {2, 1},
         "LINEAR",
         "support_vectors has 4 entries, expected a positive multiple of 3",
         BYOC_EPARSE},
        {2,
         1,
         {-1, 3},
         "LINEAR",
         "vectors_per_class[0] is -1, expected 0 to 2147483647",
         BYOC_EPARSE},
        {0,
         1,
         {0, 0},
         "LINEAR",
         "the sum of vectors_per_class is 0, expected 1 to 2147483647",
         BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_ml();
        attr_string(&b,
                    add_svm_classifier(&b, cases[i].coefficients, cases[i].rho,
                                       cases[i].counts),
                    "kernel_type", cases[i].kernel);
        refuse(&b, cases[i].status, cases[i].why);
    }
}

/* --- maps ----------------------------------------------------------------- */

static void map_input(struct build *b, const char *name, int key,
                      int value_type)
{
    static const Onnx__TypeProto type = ONNX__TYPE_PROTO__INIT;
    static const Onnx__TypeProto__Map map = ONNX__TYPE_PROTO__MAP__INIT;
    Onnx__ValueInfoProto *v = value(b, name, value_type, "");
    Onnx__TypeProto *t = byi_arena_copy(b->arena, &type, sizeof type);

    t->value_case = ONNX__TYPE_PROTO__VALUE_MAP_TYPE;
    t->map_type = byi_arena_copy(b->arena, &map, sizeof map);
    t->map_type->has_key_type = 1;
    t->map_type->key_type = key;
    t->map_type->value_type = v->type;
    v->type = t;
    b->graph->input =
        list_add(b->arena, b->graph->input, &b->graph->n_input, v);
}

static void maps(void **state)
{
    struct build b = begin_ml();
    (void)state;

    map_input(&b, "m", ONNX__TENSOR_PROTO__DATA_TYPE__STRING,
              ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    attr_strings(&b, add_ml_node(&b, "DictVectorizer", "m", "x"),
                 "string_vocabulary", "a b");
    attr_ints(&b, add_ml_node(&b, "ZipMap", "x", "z"), "classlabels_int64s", 2,
              (const int64_t[]){4, 8});
    output(&b, "z");
    EXPECT(&b, "%m: Tensor[(", "), float32]", "keys", "), string]",
           "-> (Tensor[(1, 2), float32], Tensor[(2), int64])", "equal(",
           "argmax(", "[4, 8]");
}

static void invalid_maps(void **state)
{
    static const struct {
        int key;
        const char *op, *why;
        enum byoc_status status;
    } cases[] = {
        {ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "DictVectorizer",
         "found no vocabulary of the keys' type", BYOC_EPARSE},
        {ONNX__TENSOR_PROTO__DATA_TYPE__INT64, "Abs", "tuple", BYOC_ETYPE},
        {99, "CastMap", "is a map, expected a tensor", BYOC_EUNSUPPORTED},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_ml();
        map_input(&b, "m", cases[i].key, ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
        if (strcmp(cases[i].op, "Abs") == 0)
            node(&b, "Abs", "m", "y");
        else
            add_ml_node(&b, cases[i].op, "m", "y");
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

static void map_keys_name_taken(void **state)
{
    struct build b = begin_ml();
    (void)state;

    input(&b, "m.keys", "2");
    map_input(&b, "m", ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
              ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    add_ml_node(&b, "CastMap", "m", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE,
           "input 'm' is a map, but the name of its keys, 'm.keys', is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_depth_first),
        cmocka_unit_test(invalid_trees),
        cmocka_unit_test(empty_nodes),
        cmocka_unit_test(features_of_rank_3),
        cmocka_unit_test(support_vectors),
        cmocka_unit_test(invalid_support_vectors),
        cmocka_unit_test(maps),
        cmocka_unit_test(invalid_maps),
        cmocka_unit_test(map_keys_name_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
