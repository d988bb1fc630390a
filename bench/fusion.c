/* SPDX-License-Identifier: Apache-2.0 */
/* fusion.c: compares fused with unfused native code: chains of elementwise
 * operators with broadcasting, with and without a reduction at the end, and
 * whole models. Compiles each with and without FuseOps, and runs the two in
 * turns. Also prints the bandwidth of a fused chain, and the bandwidth of plain
 * loops that read and write as many bytes with as many threads. --keep-c writes
 * the C of the fused models to DIR.
 *
 *     fusion [--threads N] [--keep-c DIR] [MODEL...]
 *
 * Exits with 2 for wrong arguments, or if a model cannot be compiled or run.
 */
#include "turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "core/base/base.h"

enum { ROUNDS = 31 };

static uint32_t n_threads;

/* --- the bandwidth of the machine ----------------------------------------- */

typedef uint64_t words8 __attribute__((vector_size(64), aligned(4), may_alias));
enum { PIECE_BYTES = 32 << 10 };

#if defined(__x86_64__)
__attribute__((target_clones("default", "avx2", "avx512f")))
#endif
static uint64_t
read_piece(const char *x)
{
    const words8 *from = (const void *)x;
    uint64_t all = 0;
    words8 any[8] = {{0}}; /* keeps the loads alive */
    for (int i = 0; i < PIECE_BYTES / 64; i += 8)
        for (int k = 0; k < 8; k++)
            any[k] |= from[i + k];
    for (int k = 0; k < 8; k++)
        all |= any[k][0] | any[k][3] | any[k][7];
    return all;
}

/* The number of threads that read or copy n bytes: one if the data fit in a
 * cache, since waking other threads takes longer. */
static uint32_t team_for(size_t n)
{
    return n > 1 << 18 ? n_threads : 1;
}

static uint64_t read_all(const char *x, size_t n)
{
    uint64_t all = 0;
#pragma omp parallel for num_threads(team_for(n)) reduction(| : all)
    for (size_t at = 0; at < n / PIECE_BYTES; at++)
        all |= read_piece(x + at * PIECE_BYTES);
    return all;
}

/* Copy in large pieces, for which glibc's memcpy uses non-temporal stores. */
static void copy_all(char *y, const char *x, size_t n)
{
    const uint32_t team = team_for(n);
    const size_t thread_bytes = n / team / 4096 * 4096;
#pragma omp parallel for num_threads(team)
    for (uint32_t t = 0; t < team; t++)
        memcpy(y + t * thread_bytes, x + t * thread_bytes,
               t + 1 < team ? thread_bytes : n - t * thread_bytes);
}

/* --- two models, in turns ------------------------------------------------- */

static void compile(const char *path, bool fuse, const char *keep_c,
                    struct bench_side *side)
{
    static const char *const none[] = {NULL};
    static const char *const without[] = {"FuseOps", NULL};
    const struct byoc_compile_params params = {.backends = none,
                                               .disable = fuse ? NULL : without,
                                               .keep_c = fuse ? keep_c : NULL};
    bench_open(path, fuse ? "fused" : "unfused", &params, n_threads, side);
}

/* Medians. fused, unfused and move: seconds of a run; ratio: unfused / fused;
 * share: move / fused; difference: between the outputs (bench_difference). */
struct fusion_result {
    double fused, unfused, move, ratio, share, difference;
};

/* Compile the model with and without fusion, and time both and `move` in
 * turns. `move` reads and writes as many bytes as a fused run; NULL for a
 * model whose number of bytes is unknown. */
static struct fusion_result measure(const char *path, const char *keep_c,
                                    void (*move)(void *), void *ctx)
{
    static struct bench_side sides[2];
    static double times[2][ROUNDS];
    double ratios[ROUNDS], move_times[ROUNDS], shares[ROUNDS];
    for (int i = 0; i < 2; i++)
        compile(path, i == 0, keep_c, &sides[i]);
    double one_run = 0;
    for (int i = 0; i < 4; i++)
        one_run = bench_run(&sides[i % 2]);
    const int repeat = one_run > 2e-3 ? 1 : (int)(2e-3 / one_run) + 1;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 2; i++) {
            times[i][round] = 0;
            for (int k = 0; k < repeat; k++)
                times[i][round] += bench_run(&sides[i]) / repeat;
        }
        ratios[round] = times[1][round] / times[0][round];
        const double start = bench_now();
        for (int k = 0; k < repeat && move; k++)
            move(ctx);
        move_times[round] = (bench_now() - start) / repeat;
        shares[round] = move_times[round] / times[0][round];
    }
    const struct fusion_result r = {.fused = bench_median(times[0], ROUNDS),
                                    .unfused = bench_median(times[1], ROUNDS),
                                    .move = bench_median(move_times, ROUNDS),
                                    .ratio = bench_median(ratios, ROUNDS),
                                    .share = bench_median(shares, ROUNDS),
                                    .difference =
                                        bench_difference(&sides[0], &sides[1])};
    bench_close(&sides[0]);
    bench_close(&sides[1]);
    return r;
}

/* --- chains --------------------------------------------------------------- */

/* The operators of a chain, in order, as formats: fprintf replaces %s by the
 * previous result, and prints %%b and %%s as the names of the parameters %b, a
 * row, and %s, a column. */
static const char *const steps[] = {"add(%s, %%b)",      "nn.relu(%s)",
                                    "multiply(%s, %%s)", "subtract(%s, %%b)",
                                    "abs(%s)",           "maximum(%s, %%s)",
                                    "negative(%s)",      "add(%s, %%s)"};

static void write_chain(const char *path, int n, int64_t rows, int64_t cols,
                        bool reduce)
{
    FILE *f = fopen(path, "w");
    char last[16] = "%x";
    fprintf(f,
            "def @main(%%x: Tensor[(%lld, %lld), float32], %%b: "
            "Tensor[(%lld), float32], %%s: Tensor[(%lld, 1), float32]) -> "
            "Tensor[(%lld, %lld), float32] {\n",
            (long long)rows, (long long)cols, (long long)cols, (long long)rows,
            (long long)rows, (long long)(reduce ? 1 : cols));
    for (int i = 0; i < n - reduce; i++) {
        fprintf(f, "  %%%d = ", i);
        fprintf(f, steps[i], last);
        fprintf(f, ";\n");
        snprintf(last, sizeof last, "%%%d", i);
    }
    if (reduce) {
        fprintf(f, "  %%%d = sum(%s, axis=[1]);\n", n, last);
        snprintf(last, sizeof last, "%%%d", n);
    }
    fprintf(f, "  %s\n}\n", last);
    fclose(f);
}

/* The memory that move_bytes() copies from x to y, or only reads. */
struct traffic {
    char *x, *y;
    size_t n;
    bool writes;
    volatile uint64_t sink;
};

static void move_bytes(void *ctx)
{
    struct traffic *t = ctx;
    if (t->writes)
        copy_all(t->y, t->x, t->n);
    else
        t->sink = read_all(t->x, t->n);
}

static void bench_chain(int n, int64_t rows, int64_t cols, bool reduce,
                        const char *keep_c)
{
    char path[64];
    const size_t bytes = (size_t)(rows * cols) * sizeof(float);
    struct traffic t = {.n = bytes, .writes = !reduce};
    snprintf(path, sizeof path, "%s/chain.ir", bench_folder());
    write_chain(path, n, rows, cols, reduce);
    t.x = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    t.y = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    memset(t.x, 1, bytes);
    memset(t.y, 1, bytes);
    const struct fusion_result r = measure(path, keep_c, move_bytes, &t);
    const double gigabytes = (double)bytes * (reduce ? 1 : 2) * 1e-9;
    printf("%d %-11s %10lld %10.1f %10.1f %7.2f %8.1f %8.1f %5.0f%%  %.0e\n", n,
           reduce ? "with sum" : "elementwise", (long long)(rows * cols),
           1e6 * r.fused, 1e6 * r.unfused, r.ratio, gigabytes / r.fused,
           gigabytes / r.move, 100 * r.share, r.difference);
    fflush(stdout);
    free(t.x);
    free(t.y);
    unlink(path);
}

static void bench_chains(const char *keep_c)
{
    static const int64_t shapes[][2] = {
        {100, 100}, {1000, 1000}, {10000, 1000}};
    printf("chains of n operators, %u threads, medians of %d rounds; GB/s "
           "count the bytes that a fused chain must move\n",
           n_threads, ROUNDS);
    printf("n kind          elements   fused us unfused us   ratio     GB/s  "
           "machine share  difference\n");
    for (size_t i = 0; i < BYI_COUNT(shapes); i++)
        for (int reduce = 0; reduce < 2; reduce++)
            for (int n = 2; n <= 8; n += n < 4 ? 1 : 2)
                bench_chain(n, shapes[i][0], shapes[i][1], reduce != 0, keep_c);
}

static void bench_model(const char *path, const char *keep_c)
{
    const struct fusion_result r = measure(path, keep_c, NULL, NULL);
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    printf("%-32s %10.2f %10.2f %7.2f  %.0e\n", name, 1e3 * r.fused,
           1e3 * r.unfused, r.ratio, r.difference);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *keep_c = NULL;
    int i = 1;
    n_threads = (uint32_t)get_nprocs();
    for (; i + 1 < argc && argv[i][0] == '-'; i += 2) {
        if (strcmp(argv[i], "--threads") == 0)
            n_threads = (uint32_t)atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--keep-c") == 0)
            keep_c = argv[i + 1];
        else
            break;
    }
    if ((i < argc && argv[i][0] == '-') || n_threads == 0) {
        fprintf(stderr, "usage: fusion [--threads N] [--keep-c DIR] "
                        "[MODEL...]\n");
        return 2;
    }
    if (i == argc)
        bench_chains(keep_c);
    else
        printf("%-32s %10s %10s %7s  difference\n", "model", "fused ms",
               "unfused ms", "ratio");
    for (; i < argc; i++)
        bench_model(argv[i], keep_c);
    bench_folder_remove();
    return 0;
}
