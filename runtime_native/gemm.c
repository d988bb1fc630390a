/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.c: the float32 matrix product behind dense, matmul, convolution and
 * transposed convolution. C is cut into tiles; each tile is one task, which
 * packs its panels of A and B into its thread's scratch and runs the
 * instruction set's micro-kernel over them (Goto, van de Geijn, "Anatomy of
 * High-Performance Matrix Multiplication", 2008). Tasks share no buffers, so
 * there are no barriers.
 */
#include "kernel.h"

enum {
    DEPTH = BYI_GEMM_DEPTH, /* a panel of B fits the L1 cache              */
    WIDTH = 512,            /* columns of a tile, at most                  */
    PACKED = 200 * 1024     /* floats packed per thread: fits the L2 cache */
};

struct tiling {
    int64_t mc, nc, kc;
    int64_t m_tiles, n_tiles;
};

static int64_t round_up(int64_t n, int64_t to)
{
    return byi_ceil_div(n, to) * to;
}

static struct tiling cut(int64_t batches, int64_t m, int64_t n, int64_t k,
                         uint32_t threads)
{
    const struct byi_simd *simd = byi_simd();
    struct tiling t;
    t.kc = byi_max(byi_min(k, DEPTH), 1);
    t.nc = byi_min(round_up(n, simd->nr), round_up(WIDTH, simd->nr));
    t.mc = byi_min(round_up(m, simd->mr),
                   (PACKED / t.kc - t.nc) / simd->mr * simd->mr);
    for (;;) {
        t.m_tiles = byi_ceil_div(m, t.mc);
        t.n_tiles = byi_ceil_div(n, t.nc);
        if (threads == 1 || t.m_tiles * t.n_tiles * batches >= 3 * threads)
            return t;
        if (t.nc > 2 * simd->nr && t.nc >= t.mc)
            t.nc = round_up(t.nc / 2, simd->nr);
        else if (t.mc > 2 * simd->mr)
            t.mc = round_up(t.mc / 2, simd->mr);
        else
            return t;
    }
}

static uint64_t floats_per_thread(const struct tiling *t)
{
    return byi_align_bytes((uint64_t)(t->mc + t->nc) * (uint64_t)t->kc *
                           sizeof(float)) /
           sizeof(float);
}

uint64_t byi_gemm_scratch(int64_t m, int64_t n, int64_t k, uint32_t threads)
{
    if (m == 0 || n == 0)
        return 0;
    /* the largest tiles: cut() shrinks them only to get more tasks */
    struct tiling t = cut(1, m, n, k, 1);
    return floats_per_thread(&t) * sizeof(float) * threads;
}

uint64_t byi_gemm_scratch_most(uint32_t threads)
{
    return byi_align_bytes(PACKED * sizeof(float)) * threads;
}

typedef float quad __attribute__((vector_size(16)));
typedef int lanes __attribute__((vector_size(16)));
#define SHUFFLE(a, b, ...) BYI_SHUFFLE(lanes, a, b, __VA_ARGS__)
/* lane numbers: interleave two rows; combine their halves */
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#define FIRST 0, 1, 4, 5
#define SECOND 2, 3, 6, 7
typedef float quad_any __attribute__((vector_size(16), aligned(4), may_alias));

/* to[c pitch + r] = from[r][c] for four rows: reads along the rows, which are
 * long, and writes columns, which stay in the cache. */
static void transpose_four(const float *const from[4], int64_t columns,
                           float *to, int64_t pitch)
{
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
        const quad a = *(const quad_any *)(from[0] + c);
        const quad b = *(const quad_any *)(from[1] + c);
        const quad d = *(const quad_any *)(from[2] + c);
        const quad e = *(const quad_any *)(from[3] + c);
        const quad ab0 = SHUFFLE(a, b, LOW);
        const quad ab1 = SHUFFLE(a, b, HIGH);
        const quad de0 = SHUFFLE(d, e, LOW);
        const quad de1 = SHUFFLE(d, e, HIGH);
        float *dst = to + c * pitch;
        *(quad_any *)dst = SHUFFLE(ab0, de0, FIRST);
        *(quad_any *)(dst + pitch) = SHUFFLE(ab0, de0, SECOND);
        *(quad_any *)(dst + 2 * pitch) = SHUFFLE(ab1, de1, FIRST);
        *(quad_any *)(dst + 3 * pitch) = SHUFFLE(ab1, de1, SECOND);
    }
    for (; c < columns; c++)
        for (int64_t i = 0; i < 4; i++)
            to[c * pitch + i] = from[i][c];
}

/* The same for two rows. */
static void transpose_two(const float *a, const float *b, int64_t columns,
                          float *to, int64_t pitch)
{
    int64_t c = 0;
    for (; c + 4 <= columns; c += 4) {
        const quad x = *(const quad_any *)(a + c);
        const quad y = *(const quad_any *)(b + c);
        const quad pairs[] = {SHUFFLE(x, y, LOW), SHUFFLE(x, y, HIGH)};
        for (int64_t i = 0; i < 4; i++)
            memcpy(to + (c + i) * pitch, (const float *)pairs + 2 * i,
                   2 * sizeof *to);
    }
    for (; c < columns; c++) {
        to[c * pitch] = a[c];
        to[c * pitch + 1] = b[c];
    }
}

void byi_pack_rows(const float *const *from, int64_t pitch, int64_t n,
                   float *to)
{
    int64_t r = 0;
    for (; r + 4 <= pitch; r += 4)
        transpose_four(from + r, n, to + r, pitch);
    for (; r + 2 <= pitch; r += 2)
        transpose_two(from[r], from[r + 1], n, to + r, pitch);
    for (; r < pitch; r++)
        for (int64_t c = 0; c < n; c++)
            to[c * pitch + r] = from[r][c];
}

void byi_transpose(const float *from, int64_t stride, int64_t rows,
                   int64_t columns, float *to, int64_t pitch)
{
    const struct byi_simd *simd = byi_simd();
    if (rows >= simd->lanes && columns >= simd->lanes) {
        simd->transpose(from, stride, rows, columns, to, pitch);
        return;
    }
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
        const float *at = from + r * stride;
        const float *four[] = {at, at + stride, at + 2 * stride,
                               at + 3 * stride};
        transpose_four(four, columns, to + r, pitch);
    }
    for (; r + 2 <= rows; r += 2)
        transpose_two(from + r * stride, from + (r + 1) * stride, columns,
                      to + r, pitch);
    for (; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            to[c * pitch + r] = from[r * stride + c];
}

/* to[j pitch + i] = from[i rs + j cs] for i < n, j < k; zero for n <= i <
 * pitch. Packs both A (pitch mr) and B (pitch nr). */
static void pack(const float *from, int64_t rs, int64_t cs, int64_t n,
                 int64_t k, float *to, int64_t pitch)
{
    if (cs == 1)
        byi_transpose(from, rs, n, k, to, pitch);
    else if (rs == 1)
        for (int64_t j = 0; j < k; j++)
            memcpy(to + j * pitch, from + j * cs, (size_t)n * sizeof(float));
    else
        for (int64_t j = 0; j < k; j++)
            for (int64_t i = 0; i < n; i++)
                to[j * pitch + i] = from[i * rs + j * cs];
    for (int64_t j = 0; n < pitch && j < k; j++)
        memset(to + j * pitch + n, 0, (size_t)(pitch - n) * sizeof(float));
}

void byi_pack_matrix(const struct byi_matrix *b, int64_t k0, int64_t kc,
                     int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    pack(b->at + k0 * b->rs + n0 * b->cs, b->cs, b->rs, nc, kc, dst, nr);
}

uint64_t byi_gemm_pack(const struct byi_matrix *b, int64_t k, int64_t n,
                       float *to)
{
    const int64_t nr = byi_simd()->nr, wide = round_up(n, nr);
    for (int64_t k0 = 0; to && k0 < k; k0 += DEPTH)
        for (int64_t n0 = 0; n0 < n; n0 += nr) {
            const int64_t kc = byi_min(DEPTH, k - k0);
            byi_pack_matrix(b, k0, kc, n0, byi_min(nr, n - n0), nr,
                            to + wide * k0 + n0 * kc);
        }
    return (uint64_t)(wide * k) * sizeof(float);
}

/* One tile of C: mc rows and nc columns at (m0, n0). */
static void run_tile(const struct byi_gemm *g, const struct tiling *t,
                     int64_t batch, int64_t m0, int64_t n0, float *scratch)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t mr = simd->mr, nr = simd->nr;
    const int64_t mc = byi_min(t->mc, g->m - m0);
    const int64_t nc = byi_min(t->nc, g->n - n0);
    const struct byi_matrix a =
        g->pack_a ? (struct byi_matrix){0} : g->a(g->ctx, batch);
    float *c = g->c(g->ctx, batch) + m0 * g->ldc + n0;
    float *packed_a = scratch, *packed_b = scratch + t->mc * t->kc;

    for (int64_t k0 = 0; k0 < g->k; k0 += t->kc) {
        const int64_t kc = byi_min(t->kc, g->k - k0);
        const float *b = g->packed_b
                             ? g->packed_b + round_up(g->n, nr) * k0 + n0 * kc
                             : packed_b;
        for (int64_t n = 0; n < nc && !g->packed_b; n += nr)
            g->pack_b(g->ctx, batch, k0, kc, n0 + n, byi_min(nr, nc - n), nr,
                      packed_b + n * kc);
        for (int64_t m = 0; m < mc && g->pack_a; m += mr)
            g->pack_a(g->ctx, batch, k0, kc, m0 + m, byi_min(mr, mc - m), mr,
                      packed_a + m * kc);
        for (int64_t m = 0; m < mc && !g->pack_a; m += mr)
            pack(a.at + (m0 + m) * a.rs + k0 * a.cs, a.rs, a.cs,
                 byi_min(mr, mc - m), kc, packed_a + m * kc, mr);
        for (int64_t n = 0; n < nc; n += nr)
            for (int64_t m = 0; m < mc; m += mr)
                simd->gemm(kc, packed_a + m * kc, b + n * kc, NULL,
                           c + m * g->ldc + n, g->ldc, byi_min(mr, mc - m),
                           byi_min(nr, nc - n), k0 > 0);
    }
}

/* The product for k = 0: zeros. */
static void clear(const struct byi_gemm *g)
{
    for (int64_t batch = 0; batch < g->batches; batch++)
        for (int64_t i = 0; i < g->m; i++)
            memset(g->c(g->ctx, batch) + i * g->ldc, 0,
                   (size_t)g->n * sizeof(float));
}

void byi_gemm_run(const struct byi_gemm *g, uint32_t threads, void *scratch)
{
    if (g->m == 0 || g->n == 0 || g->batches == 0)
        return;
    if (g->k == 0) {
        clear(g);
        return;
    }
    uint32_t team = g->batches * g->m * g->n * g->k < 1 << 17 ? 1 : threads;
    const struct tiling t = cut(g->batches, g->m, g->n, g->k, team);
    const int64_t tasks = g->batches * t.m_tiles * t.n_tiles;
    const uint64_t each = floats_per_thread(&t);
#pragma omp parallel num_threads(team) if (team > 1)
    {
        const int64_t lane = byi_lane();
        float *mine = (float *)scratch + (uint64_t)lane * each;
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t task = 0; task < tasks; task++) {
            int64_t batch = task / (t.m_tiles * t.n_tiles);
            int64_t n = task / t.m_tiles % t.n_tiles;
            int64_t m = task % t.m_tiles;
            run_tile(g, &t, batch, m * t.mc, n * t.nc, mine);
        }
    }
}
