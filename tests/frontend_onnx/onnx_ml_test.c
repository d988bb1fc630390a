/* onnx_ml_test.c: operators of ai.onnx.ml: what trees become, and what is no
 * tree; their numbers: cases_test.c.
 */
#include "models.h"

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

static struct build begin_ml(void)
{
    struct build b = begin(17);
    static const Onnx__OperatorSetIdProto id =
        ONNX__OPERATOR_SET_ID_PROTO__INIT;
    Onnx__OperatorSetIdProto *set = byi_arena_copy(b.arena, &id, sizeof id);

    set->domain = byi_arena_str(b.arena, "ai.onnx.ml");
    set->has_version = 1;
    set->version = 3;
    b.model->opset_import =
        list_add(b.arena, b.model->opset_import, &b.model->n_opset_import, set);
    return b;
}

static Onnx__NodeProto *ml(struct build *b, const char *op, const char *in,
                           const char *out)
{
    Onnx__NodeProto *n = node(b, op, in, out);

    n->domain = byi_arena_str(b->arena, "ai.onnx.ml");
    return n;
}

static void attr_floats(struct build *b, Onnx__NodeProto *n, const char *name,
                        size_t count, const float *v)
{
    Onnx__AttributeProto *a = attr(b, n, name, TYPE(FLOATS));

    a->n_floats = count;
    a->floats = byi_arena_copy(b->arena, v, count * sizeof *v);
}

static void attr_strings(struct build *b, Onnx__NodeProto *n, const char *name,
                         const char *text)
{
    Onnx__AttributeProto *a = attr(b, n, name, TYPE(STRINGS));
    size_t count = 0;
    char **words = names(b, text, &count);

    a->n_strings = count;
    a->strings = byi_arena_calloc(b->arena, count + 1, sizeof *a->strings);
    for (size_t i = 0; i < count; i++) {
        a->strings[i].len = strlen(words[i]);
        a->strings[i].data = (uint8_t *)words[i];
    }
}

/* One tree of five nodes: 0 turns to 1, a leaf, or 2, which turns to 3 or 4,
 * leaves. */
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
    Onnx__NodeProto *n = ml(b, "TreeEnsembleRegressor", "x", "y");

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

/* A node that turns by > has its children swapped: its false child, node 2, is
 * next, and node 1, the true one, comes last. */
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

static void no_trees(void **state)
{
    struct tree wrong[6];
    static const char *const why[] = {
        "tree 0 has two nodes 1",
        "node 2 of tree 0 has a child or a feature that is not there",
        "node 1 of tree 0 has two parents",
        "0 of 5 nodes are in trees",
        "a weight is of target 2, expected 0 to 1",
        "a node of mode 'BRANCH_MEMBER'",
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
    for (uint32_t i = 0; i < BYI_COUNT(wrong); i++) {
        struct build b = begin_ml();
        input(&b, "x", "N 3");
        add_tree(&b, &wrong[i]);
        output(&b, "y");
        refuse(&b, i == 5 ? BYOC_EUNSUPPORTED : BYOC_EPARSE, why[i]);
    }
}

static void refused(void **state)
{
    static const struct {
        const char *op, *why;
        enum byoc_status status;
    } cases[] = {
        {"ZipMap", "options={'zipmap': False}", BYOC_EUNSUPPORTED},
        {"LinearClassifier", "it has no class labels", BYOC_EPARSE},
        {"LinearRegressor", "0 coefficients do not make 1 rows", BYOC_EPARSE},
        {"TreeEnsembleRegressor", "found 0 nodes", BYOC_EPARSE},
        {"LabelEncoder", "not as many keys as values", BYOC_EPARSE},
        {"Imputer", "no imputed values of x's type, float32", BYOC_EPARSE},
    };
    (void)state;

    for (uint32_t i = 0; i < BYI_COUNT(cases); i++) {
        struct build b = begin_ml();
        input(&b, "x", "2 3");
        ml(&b, cases[i].op, "x", "y z");
        output(&b, "y");
        refuse(&b, cases[i].status, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_depth_first),
        cmocka_unit_test(no_trees),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
