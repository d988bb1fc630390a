/* SPDX-License-Identifier: Apache-2.0 */
/* layer_case.h: one case of layer_random_test.c: random tensors followed by
 * canaries, random post-ops, the run of a primitive and the comparison with
 * plain loops.
 */
#ifndef BYI_TEST_LAYER_CASE_H
#define BYI_TEST_LAYER_CASE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime_dnnl/build.h"

/* The state of the random numbers, and oneDNN, which the test opens. */
static uint64_t seed;
static const struct byi_dnnl *lib;

/* A random number from 0 to n - 1. */
static uint32_t pick(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % n);
}

/* A random number from low to high, both included. */
static int64_t pick_between(int64_t low, int64_t high)
{
    return low + pick((uint32_t)(high - low + 1));
}

/* A random number from -1 to 1. */
static float random_unit(void)
{
    return (float)pick(2001) / 1000.0f - 1.0f;
}

/* --- tensors ------------------------------------------------------------- */

enum { CANARY_ELEMENTS = 32 };

/* A float32 tensor of n elements, followed by canaries. */
struct tensor {
    struct byi_desc desc;
    float *data;
    int64_t n;
};

/* A dense layout; `last`: with the channels, axis 1, last in memory. */
static struct byi_desc dense_desc(uint32_t rank, const int64_t *dims, bool last)
{
    struct byi_desc d = {
        .kind = BYI_DESC_STRIDED, .dtype = BYOC_F32, .rank = rank};
    int64_t stride = 1;
    memcpy(d.dims, dims, rank * sizeof dims[0]);
    last = last && rank > 2;
    if (last) {
        d.strides[1] = 1;
        stride = dims[1];
    }
    for (uint32_t i = rank; i-- > 0;) {
        if (last && i == 1)
            continue;
        d.strides[i] = stride;
        stride *= dims[i];
    }
    return d;
}

/* A dense layout with the axes in random order. */
static struct byi_desc shuffled_desc(uint32_t rank, const int64_t *dims)
{
    uint32_t order[BYI_MAX_RANK] = {0};
    for (uint32_t i = 1; i < rank; i++) {
        const uint32_t k = pick(i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    return byi_dn_dense(BYOC_F32, rank, dims, order);
}

/* Set the strides of axes of size 1, which have no meaning, to random numbers,
 * as views may. */
static void randomize_unit_strides(struct byi_desc *d)
{
    for (uint32_t i = 0; i < d->rank; i++)
        if (d->dims[i] == 1 && pick(2))
            d->strides[i] =
                pick(2) ? pick_between(1, 9)
                        : d->strides[pick(d->rank)] * pick_between(1, 3);
}

/* A tensor of random numbers in this layout; byi_release() frees its data. */
static struct tensor make_tensor(struct byi_desc desc)
{
    struct tensor t = {.desc = desc, .n = byi_elements(desc.rank, desc.dims)};
    randomize_unit_strides(&t.desc);
    t.data = byi_acquire((uint64_t)(t.n + CANARY_ELEMENTS) * sizeof(float));
    for (int64_t i = 0; i < t.n; i++)
        t.data[i] = random_unit();
    for (int64_t i = t.n; i < t.n + CANARY_ELEMENTS; i++)
        t.data[i] = 12345.0f;
    return t;
}

/* The same in a random layout: row-major or with channels last. */
static struct tensor random_tensor(uint32_t rank, const int64_t *dims)
{
    return make_tensor(dense_desc(rank, dims, pick(4) != 0));
}

/* The element of logical index i (row-major), dims of `like` broadcast to the
 * tensor's. */
static float *element_at(const struct tensor *t, const struct byi_desc *like,
                         int64_t i)
{
    int64_t offset = 0;
    const uint32_t lead = like->rank - t->desc.rank;
    for (uint32_t a = like->rank; a-- > 0;) {
        const int64_t x = i % like->dims[a];
        i /= like->dims[a];
        if (a >= lead && t->desc.dims[a - lead] > 1)
            offset += x * t->desc.strides[a - lead];
    }
    return &t->data[offset];
}

/* Whether the canaries after the tensor are unchanged. */
static bool is_intact(const struct tensor *t)
{
    for (int64_t i = t->n; i < t->n + CANARY_ELEMENTS; i++)
        if (t->data[i] != 12345.0f)
            return false;
    return true;
}

/* --- a case -------------------------------------------------------------- */

enum { MAX_TENSORS = 12 };

/* A primitive with its arguments and the expected result. */
struct layer_case {
    struct byi_posts posts; /* of post */
    struct byi_post post[BYI_MAX_POSTS];
    struct tensor operands[3]; /* operands of binary post-ops */
    struct byi_prim *prim;
    /* n arguments of the primitive: enum byi_arg, and their data */
    uint32_t n;
    int args[MAX_TENSORS];
    void *data[MAX_TENSORS];
    void *memory[MAX_TENSORS]; /* to free at the end */
    uint32_t n_memory;
    struct tensor dst;
    double *expected; /* in logical order */
    double tolerance;
    struct byoc_error err;
};

/* Add an argument (enum byi_arg). */
static void add_arg(struct layer_case *w, int arg, void *data)
{
    w->args[w->n] = arg;
    w->data[w->n++] = data;
}

/* Let close_case() free the memory. */
static void free_at_end(struct layer_case *w, void *memory)
{
    w->memory[w->n_memory++] = memory;
}

/* Add a tensor as an argument, and let close_case() free it. Returns it. */
static struct tensor add_tensor(struct layer_case *w, int arg, struct tensor t)
{
    free_at_end(w, t.data);
    add_arg(w, arg, t.data);
    return t;
}

/* The result of a post-op for one number; of a binary one for two. */
static double apply_elt(const struct byi_post *p, double x)
{
    const double a = (double)p->alpha, b = (double)p->beta;
    switch ((enum byi_elt)p->alg) {
    case BYI_ELT_RELU:
        return x < 0 ? a * x : x;
    case BYI_ELT_TANH:
        return tanh(x);
    case BYI_ELT_CLIP:
        return fmin(fmax(x, a), b);
    case BYI_ELT_LINEAR:
        return a * x + b;
    case BYI_ELT_ABS:
        return fabs(x);
    case BYI_ELT_SIGMOID:
        return 1 / (1 + exp(-x));
    case BYI_ELT_ELU:
        return x < 0 ? a * (exp(x) - 1) : x;
    case BYI_ELT_SWISH:
        return x / (1 + exp(-a * x));
    case BYI_ELT_HARDSWISH:
        return x * fmin(fmax(x / 6 + 0.5, 0), 1);
    case BYI_ELT_GELU_ERF:
        return 0.5 * x * (1 + erf(x / sqrt(2)));
    default:
        break;
    }
    abort();
}

static double apply_bin(enum byi_bin alg, double x, double y)
{
    switch (alg) {
    case BYI_BIN_ADD:
        return x + y;
    case BYI_BIN_SUB:
        return x - y;
    case BYI_BIN_MUL:
        return x * y;
    case BYI_BIN_DIV:
        return x / y;
    case BYI_BIN_MAX:
        return fmax(x, y);
    case BYI_BIN_MIN:
        return fmin(x, y);
    default:
        break;
    }
    abort();
}

/* Draw 0 to 3 post-ops on dst, with operands of every broadcast shape. */
static void random_posts(struct layer_case *w, const struct byi_desc *dst)
{
    static const enum byi_elt elts[] = {
        BYI_ELT_RELU,    BYI_ELT_TANH,    BYI_ELT_CLIP,  BYI_ELT_LINEAR,
        BYI_ELT_ABS,     BYI_ELT_ELU,     BYI_ELT_SWISH, BYI_ELT_HARDSWISH,
        BYI_ELT_SIGMOID, BYI_ELT_GELU_ERF};
    bool has_sum = false, has_slopes = false;
    w->posts = (struct byi_posts){.n = pick(4), .at = w->post};
    for (uint32_t i = 0; i < w->posts.n; i++) {
        struct byi_post *p = &w->post[i];
        const uint32_t kind = pick(has_sum ? 3 : 4);
        if (!has_slopes && dst->rank > 1 && pick(6) == 0) {
            const uint32_t axis = pick(dst->rank);
            int64_t dims[BYI_MAX_RANK];
            for (uint32_t a = 0; a < dst->rank; a++)
                dims[a] = a == axis ? dst->dims[a] : 1;
            p->kind = BYI_POST_PRELU;
            w->operands[i] = make_tensor(dense_desc(dst->rank, dims, false));
            free_at_end(w, w->operands[i].data);
            p->desc = w->operands[i].desc;
            has_slopes = true;
        } else if (kind == 3) {
            p->kind = BYI_POST_SUM;
            has_sum = true;
        } else if (kind < 2) {
            p->kind = BYI_POST_ELT;
            p->alg = (int)elts[pick(BYI_COUNT(elts))];
            p->alpha = p->alg == BYI_ELT_CLIP ? -0.5f : random_unit();
            p->beta = p->alg == BYI_ELT_CLIP ? 0.75f : random_unit();
        } else {
            int64_t dims[BYI_MAX_RANK];
            const uint32_t mode = pick(4);
            for (uint32_t a = 0; a < dst->rank; a++)
                dims[a] = mode == 0              ? 1
                          : mode == 1 && a != 1  ? 1
                          : mode == 2 && pick(2) ? 1
                                                 : dst->dims[a];
            p->kind = BYI_POST_BIN;
            p->alg = (int)pick(BYI_N_BINS);
            if (p->alg == BYI_BIN_DIV)
                p->alg = BYI_BIN_MUL;
            w->operands[i] = make_tensor(byi_dn_dense_like(dst, dims));
            free_at_end(w, w->operands[i].data);
            p->desc = w->operands[i].desc;
        }
    }
}

/* Apply the post-ops to the expected results. */
static void apply_posts(struct layer_case *w)
{
    for (int64_t i = 0; i < w->dst.n; i++) {
        double x = w->expected[i];
        for (uint32_t k = 0; k < w->posts.n; k++) {
            const struct byi_post *p = &w->posts.at[k];
            if (p->kind == BYI_POST_ELT)
                x = apply_elt(p, x);
            else if (p->kind == BYI_POST_SUM)
                x += (double)*element_at(&w->dst, &w->dst.desc, i);
            else if (p->kind == BYI_POST_PRELU)
                x = x > 0 ? x
                          : x * (double)*element_at(&w->operands[k],
                                                    &w->dst.desc, i);
            else
                x = apply_bin(
                    (enum byi_bin)p->alg, x,
                    (double)*element_at(&w->operands[k], &w->dst.desc, i));
        }
        w->expected[i] = x;
    }
}

/* A description for messages, such as "dst (2, 3, 4) + sum + bin 2 (1, 3, 1)",
 * in a static buffer. */
static const char *describe(const struct layer_case *w)
{
    static char text[600];
    char dims[120];
    const struct byi_desc *dst = &w->dst.desc;
    size_t n = (size_t)snprintf(
        text, sizeof text, "dst %s",
        byi_dims_text(dims, sizeof dims, dst->rank, dst->dims));
    for (uint32_t k = 0; k < w->posts.n; k++) {
        static const char *const kinds[] = {[BYI_POST_SUM] = "sum",
                                            [BYI_POST_ELT] = "elt",
                                            [BYI_POST_BIN] = "bin",
                                            [BYI_POST_PRELU] = "prelu"};
        const struct byi_post *p = &w->posts.at[k];
        byi_dims_text(dims, sizeof dims, p->desc.rank, p->desc.dims);
        n += (size_t)snprintf(text + n, sizeof text - n, " + %s %d %s",
                              kinds[p->kind], p->alg, p->desc.rank ? dims : "");
    }
    return text;
}

/* The number of cases for which oneDNN would use a reference kernel on much
 * data. The builder refuses those (byi_prim_check), so they do not run here.
 */
static uint32_t n_references;

/* Add the arguments of post-ops, run the primitive, and compare. Returns NULL,
 * or what is wrong. */
static const char *run_and_compare(struct layer_case *w)
{
    static char text[1000];
    if (byi_prim_is_ref(w->prim) && w->dst.n > BYI_REF_TERMS) {
        n_references++;
        return NULL;
    }
    for (uint32_t k = 0; k < w->posts.n; k++)
        if (w->operands[k].data)
            add_arg(w,
                    (int)k + (w->posts.at[k].kind == BYI_POST_PRELU
                                  ? BYI_ARG_SLOPE
                                  : BYI_ARG_POST),
                    w->operands[k].data);
    add_arg(w, BYI_ARG_DST, w->dst.data);
    apply_posts(w);
    void *scratch = byi_acquire(byi_prim_scratch(w->prim) + 64);
    struct byi_bound_call *call = NULL;
    enum byoc_status status = byi_prim_build(w->prim, &w->err);
    if (status == BYOC_OK)
        status = byi_bound_new(lib, w->prim, w->n, w->args, w->data, scratch,
                               &call, &w->err);
    if (status == BYOC_OK)
        status = byi_bound_run(call, &w->err);
    byi_bound_free(&call);
    byi_release(scratch);
    if (status != BYOC_OK)
        return w->err.text;
    if (!is_intact(&w->dst))
        return "wrote past the end of dst";
    for (int64_t i = 0; i < w->dst.n; i++) {
        const double x = (double)*element_at(&w->dst, &w->dst.desc, i);
        if (fabs(x - w->expected[i]) <=
            w->tolerance * fmax(1, fabs(w->expected[i])))
            continue;
        snprintf(text, sizeof text,
                 "%s: element %lld is %.9g, expected %.9g; %s",
                 byi_prim_impl(w->prim), (long long)i, x, w->expected[i],
                 describe(w));
        return text;
    }
    return NULL;
}

/* Free everything that the case owns. */
static void close_case(struct layer_case *w)
{
    byi_prim_free(&w->prim);
    for (uint32_t i = 0; i < w->n_memory; i++)
        byi_release(w->memory[i]);
    byi_release(w->dst.data);
    byi_release(w->expected);
}

/* Make the result's tensor in this layout, and room for the expected results.
 */
static void open_dst(struct layer_case *w, struct byi_desc desc)
{
    w->dst = make_tensor(desc);
    w->expected = byi_alloc((size_t)w->dst.n, sizeof *w->expected);
    w->tolerance = 1e-4;
}

/* Add a copy of the weights in the primitive's layout. */
static void add_packed(struct layer_case *w, const struct tensor *weights)
{
    struct byi_prim *reorder = NULL;
    free_at_end(w, weights->data);
    if (byi_prim_needs(w->prim, BYI_ARG_WEIGHTS, &weights->desc)) {
        add_arg(w, BYI_ARG_WEIGHTS, weights->data);
        return;
    }
    assert_int_equal(byi_pack_new(lib, &weights->desc, w->prim, BYI_ARG_WEIGHTS,
                                  &reorder, &w->err),
                     BYOC_OK);
    void *packed = byi_acquire(byi_prim_bytes(w->prim, BYI_ARG_WEIGHTS) + 64);
    void *scratch = byi_acquire(byi_prim_scratch(reorder) + 64);
    struct byi_bound_call *call = NULL;
    assert_int_equal(byi_prim_build(reorder, &w->err), BYOC_OK);
    assert_int_equal(byi_bound_new(lib, reorder, 2,
                                   (int[]){BYI_ARG_SRC, BYI_ARG_DST},
                                   (void *[]){weights->data, packed}, scratch,
                                   &call, &w->err),
                     BYOC_OK);
    assert_int_equal(byi_bound_run(call, &w->err), BYOC_OK);
    byi_bound_free(&call);
    byi_prim_free(&reorder);
    byi_release(scratch);
    free_at_end(w, packed);
    add_arg(w, BYI_ARG_WEIGHTS, packed);
}

#endif
