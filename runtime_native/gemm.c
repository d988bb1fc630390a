/* gemm.c: the float32 matrix product behind dense, matmul, convolution and
 * its transpose. C is cut into tiles; each tile is one task, which packs the
 * parts of A and B it needs into its thread's scratch and lets the
 * instruction set's micro-kernel run over them (Goto, van de Geijn, "Anatomy
 * of High-Performance Matrix Multiplication", 2008). Tasks share nothing, so
 * there are no barriers.
 */
#include "kernel.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum {
    DEPTH = 256,        /* k in one go: a panel of B fits the L1 cache */
    WIDTH = 512,        /* most columns of a tile                      */
    PACKED = 200 * 1024 /* floats packed per thread: fits the L2 cache */
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
    return byi_lines((uint64_t)(t->mc + t->nc) * (uint64_t)t->kc *
                     sizeof(float)) /
           sizeof(float);
}

uint64_t byi_gemm_scratch(int64_t m, int64_t n, int64_t k, uint32_t threads)
{
    if (m == 0 || n == 0)
        return 0;
    /* the largest tiles: cut() only shrinks them for more tasks */
    struct tiling t = cut(1, m, n, k, 1);
    return floats_per_thread(&t) * sizeof(float) * threads;
}

uint64_t byi_gemm_scratch_most(uint32_t threads)
{
    return byi_lines(PACKED * sizeof(float)) * threads;
}

/* Rows [0, mc) of A and columns [0, kc) to dst[k mr + row], zero beyond. */
static void pack_a(const struct byi_matrix *a, int64_t mc, int64_t kc,
                   int64_t mr, float *dst)
{
    for (int64_t i = 0; i < mc; i++) {
        const float *row = a->at + i * a->rs;
        for (int64_t k = 0; k < kc; k++)
            dst[k * mr + i] = row[k * a->cs];
    }
    for (int64_t i = mc; i < mr; i++)
        for (int64_t k = 0; k < kc; k++)
            dst[k * mr + i] = 0;
}

void byi_pack_matrix(const struct byi_matrix *b, int64_t k0, int64_t kc,
                     int64_t n0, int64_t nc, int64_t nr, float *dst)
{
    const float *from = b->at + k0 * b->rs + n0 * b->cs;
    for (int64_t k = 0; k < kc; k++) {
        const float *row = from + k * b->rs;
        float *to = dst + k * nr;
        if (b->cs == 1)
            memcpy(to, row, (size_t)nc * sizeof(float));
        else
            for (int64_t n = 0; n < nc; n++)
                to[n] = row[n * b->cs];
        if (nc < nr)
            memset(to + nc, 0, (size_t)(nr - nc) * sizeof(float));
    }
}

/* One tile of C, of mc rows and nc columns at (m0, n0). */
static void run_tile(const struct byi_gemm *g, const struct tiling *t,
                     int64_t batch, int64_t m0, int64_t n0, float *scratch)
{
    const struct byi_simd *simd = byi_simd();
    const int64_t mr = simd->mr, nr = simd->nr;
    const int64_t mc = byi_min(t->mc, g->m - m0);
    const int64_t nc = byi_min(t->nc, g->n - n0);
    struct byi_matrix a = g->a(g->ctx, batch);
    float *c = g->c(g->ctx, batch) + m0 * g->ldc + n0;
    float *packed_a = scratch, *packed_b = scratch + t->mc * t->kc;

    for (int64_t k0 = 0; k0 < g->k; k0 += t->kc) {
        const int64_t kc = byi_min(t->kc, g->k - k0);
        for (int64_t n = 0; n < nc; n += nr)
            g->pack_b(g->ctx, batch, k0, kc, n0 + n, byi_min(nr, nc - n), nr,
                      packed_b + n * kc);
        for (int64_t m = 0; m < mc; m += mr) {
            struct byi_matrix rows = {
                .at = a.at + (m0 + m) * a.rs + k0 * a.cs,
                .rs = a.rs,
                .cs = a.cs,
            };
            pack_a(&rows, byi_min(mr, mc - m), kc, mr, packed_a + m * kc);
        }
        for (int64_t n = 0; n < nc; n += nr)
            for (int64_t m = 0; m < mc; m += mr)
                simd->gemm(kc, packed_a + m * kc, packed_b + n * kc,
                           c + m * g->ldc + n, g->ldc, byi_min(mr, mc - m),
                           byi_min(nr, nc - n), k0 > 0);
    }
}

/* A sum over nothing. */
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
        int64_t lane = 0;
#ifdef _OPENMP
        lane = omp_get_thread_num();
#endif
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
