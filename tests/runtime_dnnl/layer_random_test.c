/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/layer_random_test.c: compares the oneDNN layer with plain
 * loops for random descriptors. The results of descriptors that the checks
 * accept must be right, and the same for any number of threads.
 *
 *   layer_random_test [CASES [SEED [FIRST]]]   cases per family, 100 by
 *                                              default, from number FIRST on
 *
 * Under ctest the environment's BYOC_RANDOM_CASES gives CASES. A failure
 * prints its family, case and seed.
 */
#include <dlfcn.h>

#include "core/base/openmp.h"
#include "layer_case.h"
#include "runtime_dnnl/prim_fast.h"

static uint32_t n_cases = 100, first_case;
static uint64_t first_seed = 1;

/* --- families ------------------------------------------------------------ */

/* Each function returns NULL if the result is right or the case is not
 * supported. Sets *has_run if the case ran. */

/* The operands of a convolution, and channels of a group. */
struct conv_loop {
    const struct byi_dnnl_conv *p;
    const struct tensor *src, *weights, *bias;
    int64_t groups, per_in, per_out;
};

static int64_t volume(const int64_t *dims, uint32_t n)
{
    return byi_elements(n, dims);
}

/* Split the linear position x into coordinates in a shape `dims`. */
static void split(int64_t x, uint32_t n, const int64_t *dims, int64_t *out)
{
    for (uint32_t i = n; i-- > 0;) {
        out[i] = x % dims[i];
        x /= dims[i];
    }
}

/* Add src(n, c, in) w(g, o, i, k) to dst(n, o, out) for all taps; for a
 * transposed convolution dst and src are exchanged. */
static void convolve(const struct conv_loop *c, double *expected)
{
    const struct byi_dnnl_window *w = &c->p->window;
    const struct byi_desc *data = c->p->deconv ? &c->p->dst : &c->p->src;
    const struct byi_desc *positions = c->p->deconv ? &c->p->src : &c->p->dst;
    const int64_t n_positions = volume(positions->dims + 2, w->n);
    const int64_t n_data = volume(data->dims + 2, w->n);
    const int64_t n_taps = volume(w->kernel, w->n);
    const int64_t n_out = c->per_out * c->groups, n_in = c->per_in * c->groups;
    for (int64_t f = 0; f < n_positions; f++) {
        for (int64_t t = 0; t < n_taps; t++) {
            int64_t pos[3], tap[3], m = 0;
            bool inside = true;
            split(f, w->n, positions->dims + 2, pos);
            split(t, w->n, w->kernel, tap);
            for (uint32_t a = 0; a < w->n; a++) {
                const int64_t x = pos[a] * w->stride[a] - w->begin[a] +
                                  tap[a] * w->dilation[a];
                inside &= x >= 0 && x < data->dims[2 + a];
                m = m * data->dims[2 + a] + x;
            }
            if (!inside)
                continue;
            const int64_t in = c->p->deconv ? f : m, out = c->p->deconv ? m : f;
            const int64_t in_n = c->p->deconv ? n_positions : n_data;
            const int64_t out_n = c->p->deconv ? n_data : n_positions;
            for (int64_t n = 0; n < c->p->src.dims[0]; n++)
                for (int64_t o = 0; o < n_out; o++)
                    for (int64_t i = 0; i < c->per_in; i++) {
                        const int64_t g = o / c->per_out;
                        const int64_t wi = (o * c->per_in + i) * n_taps + t;
                        expected[(n * n_out + o) * out_n + out] +=
                            (double)*element_at(
                                c->src, &c->p->src,
                                (n * n_in + g * c->per_in + i) * in_n + in) *
                            (double)*element_at(c->weights, &c->weights->desc,
                                                wi);
                    }
        }
    }
}

static void random_window(struct byi_dnnl_conv *p, int64_t *data,
                          int64_t *positions)
{
    struct byi_dnnl_window *w = &p->window;
    w->n = pick_between(1, 4) == 1 ? 3 : (uint32_t)pick_between(1, 2);
    for (uint32_t a = 0; a < w->n; a++) {
        w->kernel[a] = pick_between(1, w->n > 2 ? 3 : 5);
        w->stride[a] = pick_between(1, 3);
        w->dilation[a] = pick(4) ? 1 : pick_between(1, 3);
        const int64_t reach = (w->kernel[a] - 1) * w->dilation[a] + 1;
        w->begin[a] = pick_between(0, reach - 1);
        w->end[a] = pick_between(0, reach - 1);
        int64_t extent = pick_between(1, w->n > 2 ? 7 : 13);
        while (extent + w->begin[a] + w->end[a] < reach)
            extent++;
        positions[a] =
            (extent + w->begin[a] + w->end[a] - reach) / w->stride[a] + 1;
        data[a] = extent;
        w->end[a] =
            (positions[a] - 1) * w->stride[a] + reach - extent - w->begin[a];
    }
}

/* A long line, and a small stride and window. */
static void random_line(struct byi_dnnl_conv *p, int64_t *data,
                        int64_t *positions)
{
    struct byi_dnnl_window *w = &p->window;
    w->n = 1;
    w->kernel[0] = pick_between(1, 9);
    w->stride[0] = pick_between(1, 2);
    w->dilation[0] = 1;
    w->begin[0] = w->end[0] = pick_between(0, w->kernel[0] - 1);
    data[0] = pick_between(20, 500);
    positions[0] =
        (data[0] + w->begin[0] + w->end[0] - w->kernel[0]) / w->stride[0] + 1;
    w->end[0] = (positions[0] - 1) * w->stride[0] + w->kernel[0] - data[0] -
                w->begin[0];
}

/* If `line`, along one long axis. */
static const char *run_convolution(struct layer_case *w, bool deconv, bool line,
                                   bool *has_run)
{
    struct byi_dnnl_conv p = {.deconv = deconv};
    int64_t data[BYI_MAX_RANK] = {0}, positions[BYI_MAX_RANK] = {0};
    int64_t weights[BYI_MAX_RANK];
    (line ? random_line : random_window)(&p, data + 2, positions + 2);
    struct conv_loop c = {.p = &p};
    c.groups = pick(3) ? 1 : pick_between(2, 9);
    const int64_t most = c.groups > 1 ? 5 : line ? 12 : 40;
    c.per_in = pick(4) ? pick_between(1, most) : 1;
    c.per_out = pick(4) ? pick_between(1, most) : 1;
    if (c.groups > 1 && !pick(3)) /* groups that byoc's kernels compute */
        c.per_in = c.per_out = 4 << pick_between(0, 2);
    data[0] = positions[0] = pick_between(1, 3);
    (deconv ? positions : data)[1] = c.per_in * c.groups;
    (deconv ? data : positions)[1] = c.per_out * c.groups;
    const uint32_t rank = p.window.n + 2;
    uint32_t n = 0;
    if (c.groups > 1)
        weights[n++] = c.groups;
    weights[n++] = c.per_out;
    weights[n++] = c.per_in;
    memcpy(weights + n, p.window.kernel, p.window.n * sizeof weights[0]);
    n += p.window.n;
    const struct tensor src = add_tensor(
        w, BYI_ARG_SRC,
        make_tensor(dense_desc(rank, deconv ? positions : data, true)));
    const struct tensor wt = make_tensor(dense_desc(n, weights, false));
    open_dst(w, dense_desc(rank, deconv ? data : positions, true));
    p.src = src.desc;
    p.dst = w->dst.desc;
    p.weights = wt.desc;
    p.weights.kind = BYI_DESC_ANY;
    c.src = &src;
    c.weights = &wt;
    const int64_t n_out = p.dst.dims[1];
    struct tensor bias = {0};
    if (pick(2)) {
        bias = add_tensor(w, BYI_ARG_BIAS,
                          make_tensor(dense_desc(1, &n_out, false)));
        p.bias = bias.desc;
    }
    random_posts(w, &p.dst);
    if (byi_prim_new_conv(lib, &p, &w->posts, &w->prim, &w->err)) {
        free_at_end(w, wt.data);
        return NULL;
    }
    add_packed(w, &wt);
    *has_run = true;
    const int64_t plane = volume(p.dst.dims + 2, p.window.n);
    for (int64_t i = 0; bias.data && i < w->dst.n; i++)
        w->expected[i] = (double)bias.data[i / plane % n_out];
    convolve(&c, w->expected);
    return run_and_compare(w);
}

static const char *run_conv(struct layer_case *w, bool *has_run)
{
    return run_convolution(w, false, false, has_run);
}

static const char *run_line_conv(struct layer_case *w, bool *has_run)
{
    return run_convolution(w, false, true, has_run);
}

static const char *run_deconv(struct layer_case *w, bool *has_run)
{
    return run_convolution(w, true, false, has_run);
}

enum { MAX_RANK = 7 };

/* Sizes of a product: m x k by k x n, and the rank with batch axes. */
struct product_sizes {
    uint32_t rank;
    int64_t m, n, k;
};

static struct product_sizes small_product(void)
{
    struct product_sizes s;
    s.rank =
        (uint32_t)(pick(4) ? pick_between(2, 4) : pick_between(5, MAX_RANK));
    const int64_t most = s.rank > 4 ? 6 : 40;
    s.m = pick_between(1, most);
    s.k = pick_between(1, most);
    s.n = pick_between(1, most);
    return s;
}

/* A product with long sums. */
static struct product_sizes deep_product(void)
{
    enum { TERMS = 1 << 23 };
    struct product_sizes s;
    s.rank = (uint32_t)pick_between(2, 3);
    s.k = pick_between(16, 16 << pick_between(0, 8));
    s.m = pick_between(1, byi_max(byi_min(TERMS / s.k, 200), 1));
    s.n = pick_between(1, byi_max(byi_min(TERMS / s.k / s.m, 300), 1));
    return s;
}

/* If `shuffles`, the axes of the source are stored in random order. */
static const char *run_product(struct layer_case *w,
                               const struct product_sizes *sizes, bool shuffles,
                               bool *has_run)
{
    const uint32_t rank = sizes->rank;
    const int64_t m = sizes->m, n = sizes->n, k = sizes->k;
    int64_t a[MAX_RANK], b[MAX_RANK], d[MAX_RANK];
    for (uint32_t i = 0; i + 2 < rank; i++) {
        d[i] = pick_between(1, 3);
        a[i] = pick(4) ? d[i] : 1;
        b[i] = pick(4) || a[i] != d[i] ? d[i] : 1;
    }
    a[rank - 2] = d[rank - 2] = m;
    a[rank - 1] = b[rank - 2] = k;
    b[rank - 1] = d[rank - 1] = n;
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC,
                   make_tensor(shuffles ? shuffled_desc(rank, a)
                                        : dense_desc(rank, a, false)));
    struct tensor wt = make_tensor(dense_desc(rank, b, false));
    if (pick(2)) { /* transposed */
        wt.desc.strides[rank - 2] = 1;
        wt.desc.strides[rank - 1] = k;
    }
    open_dst(w, dense_desc(rank, d, false));
    struct byi_dnnl_matmul p = {
        .src = src.desc, .weights = wt.desc, .dst = w->dst.desc};
    if (pick(2))
        p.weights.kind = BYI_DESC_ANY;
    struct tensor bias = {0};
    if (pick(2) && n > 1) {
        int64_t dims[MAX_RANK] = {1, 1, 1, 1, 1, 1, 1};
        dims[rank - 1] = n;
        bias = add_tensor(w, BYI_ARG_BIAS,
                          make_tensor(dense_desc(rank, dims, false)));
        p.bias = bias.desc;
    }
    random_posts(w, &p.dst);
    if (byi_prim_new_matmul(lib, &p, &w->posts, &w->prim, &w->err)) {
        free_at_end(w, wt.data);
        return NULL;
    }
    add_packed(w, &wt);
    *has_run = true;
    for (int64_t i = 0; i < w->dst.n; i++) {
        const int64_t col = i % n, row = i / n;
        struct byi_desc left = p.dst, right = p.dst;
        left.dims[rank - 1] = k;
        right.dims[rank - 2] = k;
        double sum = bias.data ? (double)bias.data[col] : 0;
        const float *x = element_at(&src, &left, row * k);
        const float *y = element_at(&wt, &right, row / m * k * n + col);
        for (int64_t t = 0; t < k; t++)
            sum += (double)x[t * src.desc.strides[rank - 1]] *
                   (double)y[t * wt.desc.strides[rank - 2]];
        w->expected[i] = sum;
    }
    return run_and_compare(w);
}

static const char *run_matmul(struct layer_case *w, bool *has_run)
{
    const struct product_sizes sizes = small_product();
    return run_product(w, &sizes, false, has_run);
}

static const char *run_deep_matmul(struct layer_case *w, bool *has_run)
{
    const struct product_sizes sizes = deep_product();
    return run_product(w, &sizes, false, has_run);
}

static const char *run_shuffled_matmul(struct layer_case *w, bool *has_run)
{
    const struct product_sizes sizes = small_product();
    return run_product(w, &sizes, true, has_run);
}

static const char *run_pool(struct layer_case *w, bool *has_run)
{
    struct byi_dnnl_conv shape = {0};
    int64_t data[BYI_MAX_RANK], positions[BYI_MAX_RANK];
    random_window(&shape, data + 2, positions + 2);
    data[0] = positions[0] = pick_between(1, 3);
    data[1] = positions[1] = pick_between(1, pick(2) ? 4 : 40);
    const uint32_t rank = shape.window.n + 2;
    const bool last = pick(3) != 0;
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, make_tensor(dense_desc(rank, data, last)));
    open_dst(w, dense_desc(rank, positions, last));
    const struct byi_dnnl_pool p = {.kind = (enum byi_pool_kind)pick(3),
                                    .window = shape.window,
                                    .src = src.desc,
                                    .dst = w->dst.desc};
    random_posts(w, &p.dst);
    if (byi_prim_new_pool(lib, &p, &w->posts, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    const struct byi_dnnl_window *win = &p.window;
    const int64_t n_taps = volume(win->kernel, win->n);
    const int64_t plane = volume(positions + 2, win->n);
    for (int64_t i = 0; i < w->dst.n; i++) {
        int64_t pos[3], tap[3], count = 0;
        double sum = 0, maximum = -INFINITY;
        split(i % plane, win->n, positions + 2, pos);
        for (int64_t t = 0; t < n_taps; t++) {
            int64_t m = i / plane;
            bool inside = true;
            split(t, win->n, win->kernel, tap);
            for (uint32_t a = 0; a < win->n; a++) {
                const int64_t x = pos[a] * win->stride[a] - win->begin[a] +
                                  tap[a] * win->dilation[a];
                inside &= x >= 0 && x < data[2 + a];
                m = m * data[2 + a] + x;
            }
            if (!inside)
                continue;
            const double x = (double)*element_at(&src, &src.desc, m);
            sum += x;
            maximum = fmax(maximum, x);
            count++;
        }
        w->expected[i] = p.kind == BYI_POOL_MAX   ? maximum
                         : p.kind == BYI_POOL_AVG ? sum / (double)count
                                                  : sum / (double)n_taps;
        /* the whole window is in the padding: the result is not specified */
        if (count == 0)
            return NULL;
    }
    return run_and_compare(w);
}

static const char *run_binary(struct layer_case *w, bool *has_run)
{
    const uint32_t rank = (uint32_t)pick_between(1, 5);
    int64_t dims[5], src1_dims[5];
    const uint32_t mode = pick(3);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = pick(3) ? pick_between(1, 9) : 1;
        src1_dims[i] = mode == 0 || (mode == 1 && pick(2)) ? dims[i] : 1;
    }
    const uint32_t layout = pick(3);
    const struct byi_desc src_desc =
        layout < 2 ? dense_desc(rank, dims, layout) : shuffled_desc(rank, dims);
    const struct tensor a = add_tensor(w, BYI_ARG_SRC, make_tensor(src_desc));
    struct tensor b = make_tensor(layout < 2 || pick(2)
                                      ? byi_dn_dense_like(&src_desc, src1_dims)
                                      : shuffled_desc(rank, src1_dims));
    b = add_tensor(w, BYI_ARG_SRC1, b);
    open_dst(w, a.desc);
    const struct byi_dnnl_binary p = {.alg = (enum byi_bin)pick(BYI_N_BINS),
                                      .src = a.desc,
                                      .src1 = b.desc,
                                      .dst = w->dst.desc};
    if (p.alg == BYI_BIN_DIV)
        for (int64_t i = 0; i < b.n; i++)
            b.data[i] = fabsf(b.data[i]) + 0.5f;
    random_posts(w, &p.dst);
    if (byi_prim_new_binary(lib, &p, &w->posts, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t i = 0; i < w->dst.n; i++)
        w->expected[i] = apply_bin(p.alg, (double)*element_at(&a, &a.desc, i),
                                   (double)*element_at(&b, &a.desc, i));
    return run_and_compare(w);
}

static const char *run_prelu(struct layer_case *w, bool *has_run)
{
    const uint32_t rank = (uint32_t)pick_between(2, 5), mode = pick(4);
    int64_t dims[5], slopes[5];
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = pick(5) ? pick_between(1, 9) : 1;
        slopes[i] = mode == 0 || (mode < 3 && i == 1) ? dims[i] : 1;
    }
    const uint32_t layout = pick(6);
    const struct byi_desc src_desc =
        layout < 2 ? dense_desc(rank, dims, layout) : shuffled_desc(rank, dims);
    const struct tensor src = add_tensor(w, BYI_ARG_SRC, make_tensor(src_desc));
    const struct tensor slope = add_tensor(
        w, BYI_ARG_WEIGHTS, make_tensor(byi_dn_dense_like(&src_desc, slopes)));
    open_dst(w, src.desc);
    const struct byi_dnnl_prelu p = {.src = src.desc, .weights = slope.desc};
    if (byi_prim_new_prelu(lib, &p, NULL, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t i = 0; i < w->dst.n; i++) {
        const double x = (double)*element_at(&src, &src.desc, i);
        w->expected[i] =
            x > 0 ? x : x * (double)*element_at(&slope, &src.desc, i);
    }
    return run_and_compare(w);
}

static const char *run_softmax(struct layer_case *w, bool *has_run)
{
    const int64_t dims[2] = {pick_between(1, 30), pick_between(1, 70)};
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, make_tensor(dense_desc(2, dims, false)));
    open_dst(w, src.desc);
    const struct byi_dnnl_softmax p = {
        .log = pick(2) != 0, .axis = 1, .src = src.desc};
    if (byi_prim_new_softmax(lib, &p, NULL, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t r = 0; r < dims[0]; r++) {
        double sum = 0;
        for (int64_t i = 0; i < dims[1]; i++)
            sum += exp((double)src.data[r * dims[1] + i]);
        for (int64_t i = 0; i < dims[1]; i++) {
            const double x = (double)src.data[r * dims[1] + i];
            w->expected[r * dims[1] + i] = p.log ? x - log(sum) : exp(x) / sum;
        }
    }
    return run_and_compare(w);
}

static const char *run_layer_norm(struct layer_case *w, bool *has_run)
{
    const int64_t dims[2] = {pick_between(1, 30), pick_between(2, 70)};
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, make_tensor(dense_desc(2, dims, false)));
    struct tensor scale = {0}, shift = {0};
    struct byi_dnnl_layer_norm p = {.epsilon = 1e-5f, .src = src.desc};
    if (pick(3)) {
        scale = add_tensor(w, BYI_ARG_SCALE,
                           make_tensor(dense_desc(1, &dims[1], false)));
        p.scale = true;
    }
    if (pick(3)) {
        shift = add_tensor(w, BYI_ARG_SHIFT,
                           make_tensor(dense_desc(1, &dims[1], false)));
        p.shift = true;
    }
    open_dst(w, src.desc);
    random_posts(w, &src.desc);
    if (byi_prim_new_layer_norm(lib, &p, &w->posts, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t r = 0; r < dims[0]; r++) {
        const float *x = src.data + r * dims[1];
        double mean = 0, var = 0;
        for (int64_t i = 0; i < dims[1]; i++)
            mean += (double)x[i] / (double)dims[1];
        for (int64_t i = 0; i < dims[1]; i++)
            var +=
                ((double)x[i] - mean) * ((double)x[i] - mean) / (double)dims[1];
        for (int64_t i = 0; i < dims[1]; i++)
            w->expected[r * dims[1] + i] =
                ((double)x[i] - mean) / sqrt(var + 1e-5) *
                    (scale.data ? (double)scale.data[i] : 1) +
                (shift.data ? (double)shift.data[i] : 0);
    }
    w->tolerance = 1e-3; /* the difference of two close numbers loses digits */
    return run_and_compare(w);
}

static const char *run_batch_norm(struct layer_case *w, bool *has_run)
{
    const uint32_t rank = (uint32_t)pick_between(2, 5);
    int64_t dims[5];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = pick_between(1, i == 1 ? 40 : 7);
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, make_tensor(dense_desc(rank, dims, true)));
    static const int args[] = {BYI_ARG_SCALE, BYI_ARG_SHIFT, BYI_ARG_MEAN,
                               BYI_ARG_VARIANCE};
    struct tensor v[4];
    for (uint32_t i = 0; i < 4; i++)
        v[i] =
            add_tensor(w, args[i], make_tensor(dense_desc(1, &dims[1], false)));
    for (int64_t i = 0; i < dims[1]; i++)
        v[3].data[i] = fabsf(v[3].data[i]) + 0.1f;
    open_dst(w, src.desc);
    const struct byi_dnnl_batch_norm p = {.epsilon = 1e-5f, .src = src.desc};
    if (pick(2)) {
        w->post[0] =
            (struct byi_post){.kind = BYI_POST_ELT, .alg = BYI_ELT_RELU};
        w->posts = (struct byi_posts){.n = 1, .at = w->post};
    }
    if (byi_prim_new_batch_norm(lib, &p, &w->posts, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    const int64_t plane = volume(dims + 2, rank - 2);
    for (int64_t i = 0; i < w->dst.n; i++) {
        const int64_t c = i / plane % dims[1];
        w->expected[i] =
            ((double)*element_at(&src, &src.desc, i) - (double)v[2].data[c]) /
                sqrt((double)v[3].data[c] + 1e-5) * (double)v[0].data[c] +
            (double)v[1].data[c];
    }
    return run_and_compare(w);
}

static const char *run_reduce(struct layer_case *w, bool *has_run)
{
    /* only byoc's kernels reduce an axis other than the last one */
    const uint32_t rank = 2 + (uint32_t)pick(2);
    int64_t dims[3] = {pick_between(1, 50), pick_between(1, 50),
                       pick_between(1, 70)};
    /* byoc's kernels compute long sums, since oneDNN's lose digits */
    if ((rank == 2 || dims[2] >= 16) && pick(4) == 0) {
        dims[0] = pick_between(1, 3);
        dims[1] = pick_between(400, 9000);
    }
    const int64_t dst_dims[3] = {dims[0], 1, dims[2]};
    const int64_t inner = rank == 3 ? dims[2] : 1;
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, make_tensor(dense_desc(rank, dims, false)));
    open_dst(w, dense_desc(rank, dst_dims, false));
    const struct byi_dnnl_reduce p = {.kind = (enum byi_reduce_kind)pick(2),
                                      .src = src.desc,
                                      .dst = w->dst.desc};
    struct byi_dn_fast fast; /* takes no post-ops */
    if (!byi_dn_fast_reduce(&p, &fast))
        random_posts(w, &w->dst.desc);
    if (byi_prim_new_reduce(lib, &p, &w->posts, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t r = 0; r < dims[0] * inner; r++) {
        double sum = 0;
        for (int64_t i = 0; i < dims[1]; i++) {
            const int64_t row = r / inner * dims[1] + i;
            sum += (double)src.data[row * inner + r % inner];
        }
        w->expected[r] = p.kind == BYI_REDUCE_SUM ? sum : sum / (double)dims[1];
    }
    return run_and_compare(w);
}

/* A tensor in the axis order of `like`, or a slice of a larger one. */
static struct tensor slice_like(const struct byi_desc *like,
                                const int64_t *dims)
{
    const uint32_t axis = pick(like->rank);
    int64_t src_desc[BYI_MAX_RANK];
    memcpy(src_desc, dims, like->rank * sizeof *src_desc);
    src_desc[axis] += pick(2) ? pick_between(1, 3) : 0;
    struct tensor t = make_tensor(byi_dn_dense_like(like, src_desc));
    t.desc.dims[axis] = dims[axis];
    return t;
}

/* Sources of any sizes along an axis, or sources of size 1 along it whose
 * elements alternate in the result's memory. */
static const char *run_concat(struct layer_case *w, bool *has_run)
{
    const uint32_t rank = (uint32_t)pick_between(1, 5), axis = pick(rank);
    const bool alternates = pick(2);
    const uint32_t n = alternates ? 2 + pick(3) : 2 + pick(5);
    int64_t dims[5], sizes[6], total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += sizes[i] = alternates ? 1 : pick_between(1, 7);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i == axis ? total : pick_between(1, pick(4) ? 7 : 40);
    uint32_t order[5] = {0}, k = 0;
    for (uint32_t i = 0; i < rank; i++)
        if (i != axis)
            order[k++] = i;
    order[k] = axis;
    const struct byi_desc dst = alternates
                                    ? byi_dn_dense(BYOC_F32, rank, dims, order)
                                    : shuffled_desc(rank, dims);
    struct tensor src[6];
    struct byi_desc descs[6];
    for (uint32_t i = 0; i < n; i++) {
        dims[axis] = sizes[i];
        src[i] = add_tensor(w, BYI_ARG_MULTI + (int)i, slice_like(&dst, dims));
        descs[i] = src[i].desc;
    }
    open_dst(w, dst);
    const struct byi_dnnl_concat p = {
        .axis = axis, .n = n, .src = descs, .dst = w->dst.desc};
    if (byi_prim_new_concat(lib, &p, NULL, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    int64_t inner = 1;
    for (uint32_t i = axis + 1; i < rank; i++)
        inner *= dims[i];
    for (int64_t i = 0; i < w->dst.n; i++) {
        int64_t x = i / inner % total;
        uint32_t from = 0;
        while (x >= sizes[from])
            x -= sizes[from++];
        const int64_t outer = i / inner / total;
        w->expected[i] =
            (double)*element_at(&src[from], &descs[from],
                                (outer * sizes[from] + x) * inner + i % inner);
    }
    return run_and_compare(w);
}

static const char *run_reorder(struct layer_case *w, bool *has_run)
{
    const uint32_t rank = (uint32_t)pick_between(1, 6);
    int64_t dims[6];
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = pick_between(1, 7);
    const struct tensor src =
        add_tensor(w, BYI_ARG_SRC, random_tensor(rank, dims));
    open_dst(w, dense_desc(rank, dims, pick(2) != 0));
    const struct byi_dnnl_reorder p = {.src = src.desc, .dst = w->dst.desc};
    if (byi_prim_new_reorder(lib, &p, NULL, &w->prim, &w->err))
        return NULL;
    *has_run = true;
    for (int64_t i = 0; i < w->dst.n; i++)
        w->expected[i] = (double)*element_at(&src, &src.desc, i);
    return run_and_compare(w);
}

/* --- the loop ------------------------------------------------------------ */

typedef const char *(*family_fn)(struct layer_case *w, bool *has_run);

/* Descriptors that oneDNN got wrong, by seed and case. */
static const struct {
    family_fn run;
    uint64_t seed;
    uint32_t number;
} known_faults[] = {
    {run_matmul, 1, 895}, /* 3.12 with AVX2 */
    {run_matmul, 2, 740},
    {run_matmul, 3, 2862},
    {run_matmul, 5, 13}, /* 3.12 without the check for PReLU on 6 axes */
    /* 3.12 without the check for scattered sources: with AVX-512, AVX2, both */
    {run_shuffled_matmul, 1, 759},
    {run_shuffled_matmul, 1, 1289},
    {run_shuffled_matmul, 2, 562},
};

/* Run the calling thread's parallel regions with as many threads as `host` has:
 * byoc's, and those of oneDNN, which is bound to another OpenMP library here.
 */
static void use_threads(const struct byi_omp_host *host)
{
    void (*const set)(int) =
        (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    byi_omp_use(host);
    if (set)
        set((int)host->threads);
}

/* Run the case with 1, 2 and 3 threads. */
static const char *run_case(family_fn run, uint64_t from, uint32_t number,
                            bool *has_run)
{
    static char text[1000];
    struct layer_case *first = NULL;
    const char *why = NULL;
    const uint32_t references = n_references;
    for (int threads = 1; threads <= 3 && !why; threads++) {
        struct layer_case *w = byi_alloc(1, sizeof *w);
        *has_run = false;
        const struct byi_omp_host host = {byi_omp_default_host.parallel_for,
                                          byi_omp_default_host.ctx,
                                          (uint32_t)threads};
        use_threads(&host);
        seed = from * 1000003u + number;
        why = run(w, has_run);
        byi_omp_use(NULL);
        if (why)
            snprintf(text, sizeof text, "%d threads: %s", threads, why);
        if (!first) {
            first = w;
            continue;
        }
        /* byoc's kernels do not replace oneDNN's along three axes */
        const bool varies = *has_run && w->dst.desc.rank == 5 &&
                            strstr(byi_prim_impl(w->prim), "gemm:jit");
        if (!why && *has_run && !varies &&
            memcmp(first->dst.data, w->dst.data,
                   (size_t)w->dst.n * sizeof *w->dst.data) != 0) {
            snprintf(text, sizeof text,
                     "%s: found other results with %d threads than with one; "
                     "%s",
                     byi_prim_impl(w->prim), threads, describe(w));
            why = text;
        }
        close_case(w);
        byi_release(w);
    }
    close_case(first);
    byi_release(first);
    if (n_references > references) /* one case, three runs */
        n_references = references + 1;
    return why ? text : NULL;
}

static void run_family(const char *name, family_fn run)
{
    uint32_t n_ran = 0;
    n_references = 0;
    for (uint32_t i = first_case; i < n_cases; i++) {
        bool has_run = false;
        const char *why = run_case(run, first_seed, i, &has_run);
        n_ran += has_run;
        if (why)
            fail_msg("%s, case %u, seed %llu: %s", name, i,
                     (unsigned long long)first_seed, why);
    }
    for (size_t i = 0; i < BYI_COUNT(known_faults); i++) {
        bool has_run = false;
        const char *why = known_faults[i].run == run
                              ? run_case(run, known_faults[i].seed,
                                         known_faults[i].number, &has_run)
                              : NULL;
        if (why)
            fail_msg("%s, known case %zu: %s", name, i, why);
    }
    print_message("%s: %u of %u ran, %u large ones refused as reference\n",
                  name, n_ran - n_references, n_cases - first_case,
                  n_references);
    assert_true(n_ran >= (n_cases - first_case) / 8);
}

#define FAMILY(name)                                                           \
    static void test_##name(void **state)                                      \
    {                                                                          \
        (void)state;                                                           \
        run_family(#name, run_##name);                                         \
    }
FAMILY(conv)
FAMILY(line_conv)
FAMILY(deconv)
FAMILY(matmul)
FAMILY(deep_matmul)
FAMILY(shuffled_matmul)
FAMILY(pool)
FAMILY(binary)
FAMILY(prelu)
FAMILY(softmax)
FAMILY(layer_norm)
FAMILY(batch_norm)
FAMILY(reduce)
FAMILY(concat)
FAMILY(reorder)

int main(int argc, char **argv)
{
    const char *cases = argc > 1 ? argv[1] : getenv("BYOC_RANDOM_CASES");
    if (cases)
        n_cases = (uint32_t)strtoul(cases, NULL, 10);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    if (argc > 3)
        first_case = (uint32_t)strtoul(argv[3], NULL, 10);
    struct byoc_error err;
    lib = byi_dnnl_open(&err);
    if (!lib) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_line_conv),
        cmocka_unit_test(test_deconv),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_deep_matmul),
        cmocka_unit_test(test_shuffled_matmul),
        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_prelu),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layer_norm),
        cmocka_unit_test(test_batch_norm),
        cmocka_unit_test(test_reduce),
        cmocka_unit_test(test_concat),
        cmocka_unit_test(test_reorder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
