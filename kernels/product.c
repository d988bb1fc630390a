/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/product.c: multiplies matrices that are not packed
 * (kernels/product.h). */
#include "kernels/product.h"
#include "kernels/inline.h"

#include <math.h>
#include <string.h>

enum {
    DEPTH = 512,     /* most rows of B that are packed at once */
    FEW_ROWS = 128,  /* rows of B that stay in the first-level cache */
    SHORT_ROW = 128, /* C is prefetched if it has more columns than this */
    BLOCK = 1 << 16  /* most elements of B that are packed at once */
};

/* Floats of a thread's scratch: a block of B, then rows of A. */
enum { ROW = DEPTH + BYI_F32_PANEL, SCRATCH = BLOCK + BYI_F32_ROWS * ROW };

uint64_t byi_f32_product_scratch(int threads)
{
    return (uint64_t)threads * SCRATCH * sizeof(float);
}

/* The division of a product into tasks, each of which computes some rows and
 * columns of a batch. */
struct product_tasks {
    const struct byi_f32_product *p;
    int64_t depth;         /* rows of a packed block of B       */
    int64_t tiles;         /* tiles of rows in A */
    int64_t task_tiles;    /* tiles of rows of a task */
    int64_t task_width;    /* columns of a task */
    int64_t rows, columns; /* tasks of a batch along rows and along columns */
    bool copies;           /* rows of A are copied first        */
    bool in_place;         /* whole panels of B are read unpacked */
};

static struct product_tasks divide_product(const struct byi_f32_product *p,
                                           int threads)
{
    struct product_tasks t = {.p = p, .depth = byi_min(p->k, DEPTH)};
    const int64_t unit = p->kernels->panels * BYI_F32_PANEL;
    t.tiles = byi_ceil_div(p->m, p->kernels->rows);
    t.task_tiles = t.tiles;
    t.task_width = byi_min(BLOCK / byi_max(t.depth, 1) / unit, 16) * unit;
    t.task_width = byi_min(t.task_width, byi_ceil_div(p->n, unit) * unit);
    for (;;) {
        t.rows = byi_ceil_div(t.tiles, t.task_tiles);
        t.columns = byi_ceil_div(p->n, t.task_width);
        if (threads == 1 || p->batches * t.rows * t.columns >= 2 * threads)
            break;
        if (t.task_width > unit &&
            t.task_width > t.task_tiles * p->kernels->rows)
            t.task_width = byi_ceil_div(t.task_width / 2, unit) * unit;
        else if (t.task_tiles > 1)
            t.task_tiles = byi_ceil_div(t.task_tiles, 2);
        else
            break;
    }
    /* packing does not pay if B has few rows, or few tiles read it */
    t.in_place =
        p->b_cs == 1 && (p->k <= FEW_ROWS || p->m <= 2 * p->kernels->rows);
    /* rows a multiple of half a page apart map to one or two sets of the
     * first-level cache */
    t.copies = p->a_cs != 1 ||
               (p->a_rs % 512 == 0 && t.depth >= 256 && t.task_width > unit);
    return t;
}

/* Pack columns [first, first + n) of rows [k, k + depth) of B as panels. */
static void pack_block(const struct product_tasks *t, const float *b, int64_t k,
                       int64_t depth, int64_t first, int64_t n, float *to)
{
    const struct byi_f32_product *p = t->p;
    b += k * p->b_rs + first * p->b_cs;
    for (int64_t j = 0; j < n;
         j += BYI_F32_PANEL, to += depth * BYI_F32_PANEL) {
        const int64_t columns = byi_min(BYI_F32_PANEL, n - j);
        if (columns < BYI_F32_PANEL)
            memset(to, 0, (size_t)(depth * BYI_F32_PANEL) * sizeof *to);
        byi_f32_gather(p->kernels, b + j * p->b_cs, p->b_cs, p->b_rs, columns,
                       depth, to, BYI_F32_PANEL);
    }
}

/* Find pointers to n rows of A, from row `first` and column k on; copies the
 * rows if necessary. */
static void find_rows(const struct product_tasks *t, const float *a, int64_t k,
                      int64_t depth, int64_t first, int64_t n, float *scratch,
                      const float **rows)
{
    const struct byi_f32_product *p = t->p;
    a += first * p->a_rs + k * p->a_cs;
    for (int64_t i = 0; i < n; i++) {
        rows[i] = t->copies ? scratch + i * ROW : a + i * p->a_rs;
        if (t->copies && p->a_cs == 1)
            memcpy(scratch + i * ROW, a + i * p->a_rs,
                   (size_t)depth * sizeof *scratch);
    }
    if (p->a_cs != 1)
        byi_f32_gather(p->kernels, a, p->a_cs, p->a_rs, depth, n, scratch, ROW);
}

/* The columns of a task, packed and in B. */
struct task_columns {
    const float *packed, *b;
    int64_t n, depth;
    int64_t whole; /* number of columns that are read in place */
};

/* Multiply the rows of a tile by all columns of the task. The part of C that
 * the next tile writes is prefetched while this tile is computed. */
static void run_row(const struct product_tasks *t, const float *const *x,
                    int rows, const struct task_columns *columns, bool add,
                    float *c)
{
    const struct byi_f32_product *p = t->p;
    const int64_t unit = p->kernels->panels * BYI_F32_PANEL;
    for (int64_t j = 0; j < columns->n; j += unit) {
        const bool packed = j >= columns->whole;
        struct byi_f32_tile tile = {
            .x = x,
            .n_pieces = 1,
            .length = columns->depth,
            .weights =
                packed ? columns->packed + (j - columns->whole) * columns->depth
                       : columns->b + j,
            .next = packed ? columns->depth * BYI_F32_PANEL : BYI_F32_PANEL,
            .ld = packed ? 0 : p->b_rs,
            .add = add ? c + j : NULL,
            .ldadd = p->ldc,
            .low = -INFINITY,
            .high = INFINITY,
            .y = c + j,
            .ldy = p->ldc,
        };
        if (columns->n > SHORT_ROW && j + unit < columns->n)
            byi_f32_prefetch(c + j + unit, p->ldc, rows, unit, true);
        byi_f32_tile_run(p->kernels, &tile, rows,
                         byi_min(unit, columns->n - j));
    }
}

static void finish(const struct byi_f32_product *p,
                   const struct byi_f32_part *part)
{
    if (p->finish)
        p->finish(p->ctx, part);
}

static void run_task(const struct product_tasks *t, int64_t task,
                     float *scratch)
{
    const struct byi_f32_product *p = t->p;
    const int64_t batch_tasks = t->rows * t->columns;
    const struct byi_f32_matrices at = p->at(p->ctx, task / batch_tasks);
    const int64_t first = task % t->columns * t->task_width;
    const int64_t n = byi_min(t->task_width, p->n - first);
    const int64_t tile = task / t->columns % t->rows * t->task_tiles;
    const int64_t stop = byi_min(tile + t->task_tiles, t->tiles);
    const float *rows[BYI_F32_ROWS];
    for (int64_t k = 0, depth; k < p->k; k += depth) {
        depth = byi_min(t->depth, p->k - k);
        const struct task_columns columns = {
            .packed = scratch,
            .b = at.b + k * p->b_rs + first,
            .n = n,
            .depth = depth,
            .whole =
                t->in_place ? n - n % (p->kernels->panels * BYI_F32_PANEL) : 0};
        pack_block(t, at.b, k, depth, first + columns.whole, n - columns.whole,
                   scratch);
        for (int64_t i = tile; i < stop; i++) {
            const int64_t row = p->m * i / t->tiles;
            const int64_t count = p->m * (i + 1) / t->tiles - row;
            find_rows(t, at.a, k, depth, row, count, scratch + BLOCK, rows);
            run_row(t, rows, (int)count, &columns, k > 0,
                    at.c + row * p->ldc + first);
        }
    }
    const int64_t row = p->m * tile / t->tiles;
    finish(p, &(struct byi_f32_part){.batch = task / batch_tasks,
                                     .row = row,
                                     .column = first,
                                     .rows = p->m * stop / t->tiles - row,
                                     .columns = n});
}

/* --- few rows, or one column ---------------------------------------------- */

enum {
    FEW_DOTS = 8,    /* most rows of A, if B's columns are contiguous */
    FEW_VECTORS = 4, /* most rows of A, if B's rows are contiguous */
    DOT_CHUNK = 64,  /* columns of a task, if B's columns are contiguous */
    CHUNK = 512      /* the same, if B's rows are contiguous */
};

/* A product that reads B once, unpacked: most of a tile would be empty. If C is
 * one dense column, it is computed as the row C^T = B^T A^T (`swaps`), which
 * has the same elements in the same memory. */
struct thin_product {
    const struct byi_f32_product *p;
    bool swaps;
    bool dots; /* B's columns are contiguous */
    int64_t m, n;
    int64_t a_rs, a_cs, b_rs, b_cs, ldc;
};

/* Describe the product as a thin one; false if it has too many rows. */
static bool read_thin(const struct byi_f32_product *p, struct thin_product *t)
{
    *t = (struct thin_product){p,       false,   false,   p->m,    p->n,
                               p->a_rs, p->a_cs, p->b_rs, p->b_cs, p->ldc};
    if (!p->whole) {
        t->dots = true;
        return p->m == 1 && p->a_cs == 1 && p->b_rs == 1;
    }
    if (p->n == 1 && p->ldc == 1)
        *t = (struct thin_product){p,       true,    false,   1,       p->m,
                                   p->b_cs, p->b_rs, p->a_cs, p->a_rs, p->m};
    t->dots = t->m <= FEW_DOTS && t->b_rs == 1;
    return t->a_cs == 1 && (t->dots || (t->m <= FEW_VECTORS && t->b_cs == 1));
}

/* Compute columns [first, first + n) of a batch. */
static void run_chunk(const struct thin_product *t, int64_t batch,
                      int64_t first, int64_t n)
{
    const struct byi_f32_product *p = t->p;
    const struct byi_f32_matrices at = p->at(p->ctx, batch);
    const float *a = t->swaps ? at.b : at.a, *b = t->swaps ? at.a : at.b;
    for (int64_t i = 0; i < t->m; i++) {
        const struct byi_f32_vector v = {.x = a + i * t->a_rs,
                                         .weights = b + first * t->b_cs,
                                         .n = p->k,
                                         .row_stride = t->b_rs,
                                         .column_stride = t->b_cs,
                                         .y = at.c + i * t->ldc + first,
                                         .columns = n};
        p->kernels->vector[BYI_F32_WIDE][!t->dots](&v);
    }
    struct byi_f32_part part = {
        .batch = batch, .column = first, .rows = t->m, .columns = n};
    if (t->swaps)
        part = (struct byi_f32_part){
            .batch = batch, .row = first, .rows = n, .columns = 1};
    finish(p, &part);
}

/* The chunks have the same size for any number of threads. */
static void run_thin(const struct thin_product *t, int threads)
{
    const int64_t chunk = t->dots ? DOT_CHUNK : CHUNK;
    const int64_t chunks = byi_ceil_div(t->n, chunk);
    const int64_t tasks = t->p->batches * chunks;
    const int64_t most = (t->p->batches * t->m * t->n * t->p->k >> 15) + 1;
    const int team = (int)byi_min(threads, byi_min(most, tasks));
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int64_t task = 0; task < tasks; task++) {
        const int64_t first = task % chunks * chunk;
        run_chunk(t, task / chunks, first, byi_min(chunk, t->n - first));
    }
}

/* Write the result for k = 0, which is zero. */
static void clear_result(const struct byi_f32_product *p)
{
    for (int64_t batch = 0; batch < p->batches; batch++) {
        for (int64_t i = 0; i < p->m; i++)
            memset(p->at(p->ctx, batch).c + i * p->ldc, 0,
                   (size_t)p->n * sizeof(float));
        finish(p, &(struct byi_f32_part){
                      .batch = batch, .rows = p->m, .columns = p->n});
    }
}

void byi_f32_product_run(const struct byi_f32_product *p, int threads,
                         void *scratch)
{
    if (p->m == 0 || p->n == 0 || p->batches == 0)
        return;
    if (p->k == 0) {
        clear_result(p);
        return;
    }
    struct thin_product thin;
    if (read_thin(p, &thin)) {
        run_thin(&thin, threads);
        return;
    }
    const int64_t most = (p->batches * p->m * p->n * p->k >> 17) + 1;
    const int team = (int)byi_min(threads, most);
    const struct product_tasks t = divide_product(p, team);
    const int64_t tasks = p->batches * t.rows * t.columns;
#pragma omp parallel for num_threads(team) if (team > 1) schedule(static)
    for (int i = 0; i < team; i++)
        for (int64_t at = tasks * i / team; at < tasks * (i + 1) / team; at++)
            run_task(&t, at, (float *)scratch + (int64_t)i * SCRATCH);
}
