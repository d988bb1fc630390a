/* SPDX-License-Identifier: Apache-2.0 */
/* onnx_sparse_test.c: tests sparse initializers and constants, which become
 * dense.
 */
#include "models.h"

enum {
    I64 = ONNX__TENSOR_PROTO__DATA_TYPE__INT64,
    GRAPH = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH,
};

/* A sparse tensor of dims, with the values 0, 1, ... n - 1 at the indices. Each
 * value has per_value of them; if that is 0, one index, of the flat tensor. */
static Onnx__SparseTensorProto *sparse(struct build *b, const char *name,
                                       uint32_t rank, const int64_t *dims,
                                       int64_t n, uint32_t per_value,
                                       const int64_t *indices)
{
    static const Onnx__SparseTensorProto proto =
        ONNX__SPARSE_TENSOR_PROTO__INIT;
    Onnx__SparseTensorProto *s = byi_arena_copy(b->arena, &proto, sizeof proto);
    const int64_t index_dims[] = {n, per_value};

    s->values = floats(b, name, 1, &n);
    b->graph->n_initializer--; /* floats() added it as a dense initializer */
    s->indices = tensor(b, "", I64, per_value ? 2 : 1, index_dims);
    raw(b, s->indices, indices,
        (size_t)(n * (per_value ? per_value : 1)) * sizeof *indices);
    s->n_dims = rank;
    s->dims = byi_arena_copy(b->arena, dims, rank * sizeof *dims);
    return s;
}

static void initializer(struct build *b, Onnx__SparseTensorProto *s)
{
    b->graph->sparse_initializer =
        list_add(b->arena, b->graph->sparse_initializer,
                 &b->graph->n_sparse_initializer, s);
}

static const int64_t two_three[] = {2, 3};

static void indices_as_list(void **state)
{
    struct build b = begin(13);
    (void)state;

    input(&b, "x", "2 3");
    floats(&b, "d", 1, (const int64_t[]){3});
    initializer(
        &b, sparse(&b, "w", 2, two_three, 3, 0, (const int64_t[]){0, 4, 5}));
    node(&b, "Add", "x w", "t");
    node(&b, "Add", "t d", "y");
    output(&b, "y");
    EXPECT(&b, "Tensor[(2, 3), float32] {0.0, 0.0, 0.0, 0.0, 1.0, 2.0}",
           "[0.0, 1.0, 2.0]");
}

static void indices_as_matrix(void **state)
{
    struct build b = begin(13);
    (void)state;

    initializer(
        &b, sparse(&b, "w", 2, two_three, 2, 2, (const int64_t[]){1, 0, 0, 2}));
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    EXPECT(&b, "Tensor[(2, 3), float32] {0.0, 0.0, 1.0, 0.0, 0.0, 0.0}");
}

static void sparse_constant(void **state)
{
    struct build b = begin(13);
    (void)state;

    Onnx__AttributeProto *a =
        attr(&b, node(&b, "Constant", "", "y"), "sparse_value",
             ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR);
    a->sparse_tensor =
        sparse(&b, "", 2, two_three, 2, 0, (const int64_t[]){3, 5});
    output(&b, "y");
    EXPECT(&b, "Tensor[(2, 3), float32] {0.0, 0.0, 0.0, 0.0, 0.0, 1.0}");
    b = begin(13);
    attr(&b, node(&b, "Constant", "", "y"), "sparse_value",
         ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR);
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "attribute 'sparse_value' is without a value");
}

static void refused(void **state)
{
    const int64_t vast[] = {1 << 20, 1 << 20}, negative[] = {2, -3};
    const struct {
        const int64_t *dims;
        int64_t n;
        uint32_t per_value;
        int64_t indices[4];
        enum byoc_status status;
        const char *text;
    } bad[] = {
        {two_three, 2, 0, {0, 6}, BYOC_EPARSE, "value 1 has indices outside"},
        {two_three, 1, 0, {-1}, BYOC_EPARSE, "value 0 has indices outside"},
        {two_three, 1, 2, {1, 3}, BYOC_EPARSE, "value 0 has indices outside"},
        {two_three, 1, 2, {-1, 0}, BYOC_EPARSE, "value 0 has indices outside"},
        {two_three, 1, 3, {0}, BYOC_EPARSE, "expected int64 and (1) or (1, 2)"},
        {vast,
         1,
         0,
         {0},
         BYOC_ELIMIT,
         "at least one value for each 4096 elements"},
        {negative, 1, 0, {0}, BYOC_EPARSE, "expected sizes of 0 or more"},
    };
    (void)state;

    for (size_t i = 0; i < BYI_COUNT(bad); i++) {
        struct build b = begin(13);
        initializer(&b, sparse(&b, "w", 2, bad[i].dims, bad[i].n,
                               bad[i].per_value, bad[i].indices));
        node(&b, "Identity", "w", "y");
        output(&b, "y");
        refuse(&b, bad[i].status, bad[i].text);
    }
    struct build b = begin(13);
    Onnx__SparseTensorProto *s =
        sparse(&b, "w", 2, two_three, 1, 0, bad[0].indices);
    s->indices = NULL;
    initializer(&b, s);
    node(&b, "Identity", "w", "y");
    output(&b, "y");
    refuse(&b, BYOC_EPARSE, "sparse tensor 'w' has no indices, expected");
}

/* The body of a branch has names of its own. */
static void in_a_branch(void **state)
{
    struct build b = begin(13), inner = begin(13);
    (void)state;

    b.graph->input =
        list_add(b.arena, b.graph->input, &b.graph->n_input,
                 value(&b, "p", ONNX__TENSOR_PROTO__DATA_TYPE__BOOL, ""));
    initializer(&inner,
                sparse(&inner, "w", 2, two_three, 1, 0, (const int64_t[]){1}));
    node(&inner, "Exp", "w", "a");
    output(&inner, "a");
    Onnx__NodeProto *n = node(&b, "If", "p", "y");
    attr(&b, n, "then_branch", GRAPH)->g = inner.graph;
    attr(&b, n, "else_branch", GRAPH)->g = inner.graph;
    output(&b, "y");
    EXPECT(&b, "exp(");
    end(&inner);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_as_list), cmocka_unit_test(indices_as_matrix),
        cmocka_unit_test(sparse_constant), cmocka_unit_test(refused),
        cmocka_unit_test(in_a_branch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
