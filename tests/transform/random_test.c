/* random_test.c: random functions, computed before and after every pass. The
 * operators, shapes and constants are those that the rules look for, so that
 * nearly every rule fires, in surroundings nobody thought of.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/interp.h"
#include "transform/transform.h"

enum { N_FUNCTIONS = 1500, N_STEPS = 24, MAX_IO = N_STEPS + 2 };

struct maker {
    struct byi_module *m;
    struct byi_func *f;
    uint64_t state;
    BYI_VEC(byi_id) values; /* float tensors */
};

static uint32_t pick(struct maker *r, uint32_t n)
{
    r->state = r->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(r->state >> 33) % n;
}

static byi_id pick_value(struct maker *r)
{
    const uint32_t n = r->values.n, recent = n < 6 ? n : 6;
    return r->values.at[pick(r, 3) ? n - 1 - pick(r, recent) : pick(r, n)];
}

/* A float constant: often one number all over, often a telling one. */
static byi_id make_const(struct maker *r, uint32_t rank, const int64_t *dims)
{
    static const float telling[] = {0,  1,     0.5f,        2,
                                    3,  6,     1.0f / 6,    0.70710678f,
                                    -1, 1e-5f, 1.41421356f, 0.044715f};
    float data[64];
    const int64_t n = byi_elements(rank, dims);
    const bool splat = pick(r, 3) > 0;
    assert_true(n <= 64);
    for (int64_t i = 0; i < n; i++)
        data[i] =
            i > 0 && splat ? data[0] : telling[pick(r, BYI_COUNT(telling))];
    const struct byi_type *type =
        byi_type_tensor(r->m->arena, BYOC_F32, rank, dims);
    return byi_add_const(r->m, r->f, byi_const_add(r->m, type, data, false),
                         NULL);
}

static byi_id make_operand(struct maker *r)
{
    static const struct {
        uint32_t rank;
        int64_t dims[4];
    } shapes[] = {{0, {0}},          {1, {1}},       {1, {4}},   {3, {2, 1, 1}},
                  {4, {1, 2, 1, 1}}, {3, {1, 1, 1}}, {2, {4, 4}}};
    const uint32_t i = pick(r, BYI_COUNT(shapes));
    return make_const(r, shapes[i].rank, shapes[i].dims);
}

static byi_id make_ints(struct maker *r, const int64_t *values, uint32_t n)
{
    const int64_t dim = (int64_t)n;
    const struct byi_type *type =
        byi_type_tensor(r->m->arena, BYOC_I64, 1, &dim);
    return byi_add_const(r->m, r->f, byi_const_add(r->m, type, values, false),
                         NULL);
}

/* Append a call if its types fit. */
static void try_call(struct maker *r, enum byi_op_id op, const byi_id *args,
                     uint32_t n, const struct byi_attr *attrs, uint32_t n_attrs)
{
    char name[24];
    snprintf(name, sizeof name, "n%u", r->f->nodes.n);
    byi_id id;
    if (byi_add_call(r->m, r->f, op, args, n, attrs, n_attrs,
                     byi_sources_one(r->m, byi_source_new(r->m, name, "Op")),
                     &id, NULL) == BYOC_OK &&
        byi_elements(r->f->nodes.at[id].type->rank,
                     r->f->nodes.at[id].type->dims) <= 4096)
        BYI_PUSH(&r->values, id);
}

static void add_unary(struct maker *r)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_NEGATIVE, BYI_OP_ABS,  BYI_OP_NN_RELU, BYI_OP_SIGMOID,
        BYI_OP_ERF,      BYI_OP_TANH, BYI_OP_EXP,     BYI_OP_COPY};
    const byi_id x = pick_value(r);
    try_call(r, ops[pick(r, BYI_COUNT(ops))], &x, 1, NULL, 0);
}

static void add_binary(struct maker *r)
{
    static const enum byi_op_id ops[] = {
        BYI_OP_ADD,      BYI_OP_ADD,      BYI_OP_MULTIPLY,
        BYI_OP_MULTIPLY, BYI_OP_DIVIDE,   BYI_OP_MAXIMUM,
        BYI_OP_MINIMUM,  BYI_OP_SUBTRACT, BYI_OP_SUBTRACT};
    const enum byi_op_id op = ops[pick(r, BYI_COUNT(ops))];
    /* A value near 0 as a divisor would turn rounding into anything. */
    const bool by_const = op == BYI_OP_DIVIDE || pick(r, 3);
    byi_id args[2] = {pick_value(r), BYI_NO_ID};
    args[1] = by_const ? make_operand(r) : pick_value(r);
    if (pick(r, 4) == 0 && op != BYI_OP_DIVIDE) {
        const byi_id first = args[0];
        args[0] = args[1];
        args[1] = first;
    }
    try_call(r, op, args, 2, NULL, 0);
}

static void add_clip(struct maker *r)
{
    static const double bounds[] = {-INFINITY, 0, 1, 6, INFINITY};
    const byi_id x = pick_value(r);
    const struct byi_attr attrs[] = {
        {.name = "a_min", .kind = BYI_ATTR_FLOAT, .f = bounds[pick(r, 3)]},
        {.name = "a_max", .kind = BYI_ATTR_FLOAT, .f = bounds[2 + pick(r, 3)]},
    };
    try_call(r, BYI_OP_CLIP, &x, 1, attrs, 2);
}

static void add_reduce(struct maker *r)
{
    static const enum byi_op_id ops[] = {BYI_OP_MEAN, BYI_OP_SUM, BYI_OP_MAX};
    static const int64_t axes[] = {2, 3};
    const byi_id x = pick_value(r);
    const bool last = pick(r, 2);
    const struct byi_attr attrs[] = {
        {.name = "axis",
         .kind = BYI_ATTR_INTS,
         .n = last ? 1 : 2,
         .ints = last ? axes + 1 : axes},
        {.name = "keepdims", .kind = BYI_ATTR_BOOL, .i = pick(r, 4) > 0},
    };
    try_call(r, ops[pick(r, BYI_COUNT(ops))], &x, 1, attrs, 2);
}

static void add_conv(struct maker *r)
{
    const int64_t dims[] = {2, 2, 1, 1};
    const byi_id args[2] = {pick_value(r), make_const(r, 4, dims)};
    try_call(r, pick(r, 3) ? BYI_OP_NN_CONV2D : BYI_OP_NN_CONV2D_TRANSPOSE,
             args, 2, NULL, 0);
}

/* A convolution in groups, one that shrinks nothing, or its transpose. */
static void add_groups(struct maker *r)
{
    const int64_t dims[] = {2, 1, 3, 3}, padding[] = {1, 1, 1, 1};
    const byi_id args[2] = {pick_value(r), make_const(r, 4, dims)};
    const struct byi_attr attrs[] = {
        {.name = "groups", .kind = BYI_ATTR_INT, .i = 2},
        {.name = "padding", .kind = BYI_ATTR_INTS, .n = 4, .ints = padding},
    };
    try_call(r, pick(r, 3) ? BYI_OP_NN_CONV2D : BYI_OP_NN_CONV2D_TRANSPOSE,
             args, 2, attrs, 2);
}

/* Windows, concatenations and slopes: what scales pass through. */
static void add_window(struct maker *r)
{
    static const int64_t size[] = {3, 3}, padding[] = {1, 1, 1, 1};
    const struct byi_attr window[] = {
        {.name = "pool_size", .kind = BYI_ATTR_INTS, .n = 2, .ints = size},
        {.name = "padding", .kind = BYI_ATTR_INTS, .n = 4, .ints = padding},
    };
    const struct byi_attr axis = {
        .name = "axis", .kind = BYI_ATTR_INT, .i = 1 + pick(r, 3)};
    const byi_id args[] = {pick_value(r), pick_value(r)};
    switch (pick(r, 5)) {
    case 0:
        try_call(r, BYI_OP_NN_AVG_POOL2D, args, 1, window, 2);
        break;
    case 1:
        try_call(r, BYI_OP_NN_MAX_POOL2D, args, 1, window, 2);
        break;
    case 2:
        try_call(r, BYI_OP_NN_LEAKY_RELU, args, 1, NULL, 0);
        break;
    default:
        try_call(r, BYI_OP_CONCATENATE, args, 2, &axis, 1);
    }
}

static void add_matmul(struct maker *r)
{
    const int64_t dims[] = {4, 4};
    const byi_id args[2] = {pick_value(r), make_const(r, 2, dims)};
    try_call(r, BYI_OP_NN_MATMUL, args, 2, NULL, 0);
}

static void add_norm(struct maker *r)
{
    const int64_t two = 2;
    const float var[] = {0.5f, 2.0f};
    const struct byi_type *type =
        byi_type_tensor(r->m->arena, BYOC_F32, 1, &two);
    byi_id args[5] = {pick_value(r)};
    for (uint32_t i = 1; i < 4; i++)
        args[i] = make_const(r, 1, &two);
    args[4] =
        byi_add_const(r->m, r->f, byi_const_add(r->m, type, var, false), NULL);
    try_call(r, BYI_OP_NN_BATCH_NORM, args, 5, NULL, 0);
}

static void add_movement(struct maker *r)
{
    static const int64_t shapes[][4] = {
        {1, 2, 4, 4}, {1, 4, 4, 2}, {1, 8, 2, 2}, {2, 1, 4, 4}};
    static const int64_t orders[][4] = {
        {0, 1, 2, 3}, {0, 1, 3, 2}, {0, 3, 1, 2}, {0, 2, 3, 1}};
    static const int64_t pads[] = {0, 0, 1, 0, 0, 0, 0, 1};
    const byi_id x = pick_value(r);
    const struct byi_attr axes = {.name = "axes",
                                  .kind = BYI_ATTR_INTS,
                                  .n = 4,
                                  .ints = orders[pick(r, 4)]};
    const uint32_t what = pick(r, 5);
    if (what < 2)
        try_call(r, BYI_OP_TRANSPOSE, &x, 1, &axes, 1);
    else if (what < 4)
        try_call(r, BYI_OP_RESHAPE,
                 (byi_id[]){x, make_ints(r, shapes[pick(r, 4)], 4)}, 2, NULL,
                 0);
    else
        try_call(r, BYI_OP_NN_PAD,
                 (byi_id[]){x, make_ints(r, pads, 8), make_const(r, 0, NULL)},
                 3, NULL, 0);
}

static void make_function(struct maker *r)
{
    static void (*const steps[])(struct maker *) = {
        add_unary, add_binary,   add_binary, add_binary,
        add_clip,  add_reduce,   add_conv,   add_matmul,
        add_norm,  add_movement, add_groups, add_window};
    const int64_t dims[] = {1, 2, 4, 4};
    const struct byi_type *type =
        byi_type_tensor(r->m->arena, BYOC_F32, 4, dims);
    const uint32_t index = byi_func_new(r->m, "main");
    r->f = r->m->funcs.at[index];
    BYI_PUSH(&r->values, byi_add_param(r->m, r->f, "x", type));
    BYI_PUSH(&r->values, byi_add_param(r->m, r->f, "y", type));
    for (uint32_t i = 0; i < N_STEPS; i++)
        steps[pick(r, BYI_COUNT(steps))](r);
    const uint32_t n = r->values.n;
    const byi_id results[] = {r->values.at[n - 1], r->values.at[n - 2],
                              r->values.at[pick(r, n)]};
    r->f->result = byi_add_tuple(r->m, r->f, results, 3, NULL);
}

static void compute(const struct byi_module *m, struct byi_arena *arena,
                    struct byi_tensor *out, uint32_t *n)
{
    struct byoc_error err = {0};
    struct byi_tensor in[2];
    const struct byi_func *f = m->funcs.at[0];
    for (uint32_t i = 0; i < 2; i++)
        assert_true(interp_random(f->nodes.at[f->params.at[i]].type, 7 + i,
                                  arena, &in[i]));
    if (interp_run(m, 0, in, 2, arena, out, MAX_IO, n, &err))
        fail_msg("%s", err.text);
}

/* The largest number of all that the function computes, results or not. */
static double find_largest(struct maker *r, struct byi_arena *arena)
{
    struct byi_tensor all[MAX_IO];
    uint32_t n;
    double largest = 0;
    const byi_id result = r->f->result;
    r->f->result = byi_add_tuple(r->m, r->f, r->values.at, r->values.n, NULL);
    compute(r->m, arena, all, &n);
    r->f->result = result;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t elements = byi_elements(all[i].rank, all[i].dims);
        for (int64_t k = 0; k < elements; k++) {
            const double v = fabs(byi_tensor_float(&all[i], k));
            largest = v <= largest ? largest : isnan(v) ? INFINITY : v;
        }
    }
    return largest;
}

static void check_seed(uint64_t seed, const struct byi_pass *const *passes,
                       uint32_t n_passes, uint32_t *compared)
{
    struct byoc_error err = {0};
    struct byi_tensor before[MAX_IO], after[MAX_IO];
    struct byi_arena *arena = byi_arena_new();
    struct maker r = {.m = byi_module_new(), .state = seed};
    uint32_t n_before, n_after;
    make_function(&r);
    const double largest = find_largest(&r, arena);
    compute(r.m, arena, before, &n_before);
    struct byi_pass_context ctx = {
        .opt_level = 3, .verify = true, .eval = interp_eval};
    if (byi_run_passes(r.m, passes, n_passes, &ctx, &err))
        fail_msg("seed %llu: %s", (unsigned long long)seed, err.text);
    compute(r.m, arena, after, &n_after);
    assert_int_equal(n_before, n_after);
    /* Rounding may grow to anything where large numbers cancel. */
    for (uint32_t i = 0; largest < 1e3 && i < n_before; i++) {
        ++*compared;
        if (interp_compare(&after[i], &before[i], 1e-3, 1e-4 * largest + 1e-5,
                           &err))
            fail_msg("seed %llu, %s: result %u: %s", (unsigned long long)seed,
                     passes[n_passes - 1]->name, i, err.text);
    }
    byi_vec_free(r.values.at);
    byi_module_free(&r.m);
    byi_arena_free(&arena);
}

static const struct byi_pass *const all[] = {
    &byi_pass_fold_constant,
    &byi_pass_canonicalize_ops,
    &byi_pass_simplify_expr,
    &byi_pass_eliminate_common_subexpr,
    &byi_pass_recompose,
    &byi_pass_simplify_inference,
    &byi_pass_canonicalize_ops,
    &byi_pass_backward_fold_scale_axis,
    &byi_pass_forward_fold_scale_axis,
    &byi_pass_dead_code_elimination,
    &byi_pass_fuse_ops,
};

static void each_pass_keeps_results(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (uint64_t seed = 1; seed <= N_FUNCTIONS; seed++)
        check_seed(seed, &all[seed % BYI_COUNT(all)], 1, &compared);
    assert_true(compared > N_FUNCTIONS);
}

static void all_passes_keep_results(void **state)
{
    (void)state;
    uint32_t compared = 0;
    for (uint64_t seed = 1; seed <= N_FUNCTIONS; seed++)
        check_seed(seed * 977, all, BYI_COUNT(all), &compared);
    assert_true(compared > N_FUNCTIONS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_pass_keeps_results),
        cmocka_unit_test(all_passes_keep_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
