/* SPDX-License-Identifier: Apache-2.0 */
/* native.c: compares native kernels with oneDNN, one operator at a time, for
 * each instruction set. Both run in turns, limited to the same instruction set,
 * except that oneDNN, which has nothing below SSE4.1, uses that for SSE2.
 * Operators that only move memory are compared with a copy of as many bytes.
 *
 *     native [--threads N] [--rounds N] [--isa NAME] [PREFIX...]
 *
 * PREFIX selects the cases whose name begins with it. Prints the native time
 * divided by the other time, as a median over the rounds: above 1, native
 * kernels are slower; "-": no region of oneDNN runs the case. With one thread
 * this is CPU time, which other load disturbs least. oneDNN's convolutions are
 * channels-last, as in byoc's regions; native ones have ONNX's layout. --isa
 * measures one instruction set; otherwise all that the CPU runs are measured,
 * except SSE4.2, whose kernels are those of SSE2 but for table lookups. Exits
 * with 2 for wrong arguments, or if a case cannot be compiled or run.
 */
#include "turns.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/isa.h"

enum { MAX_CASES = 128, MAX_ROUNDS = 1000 };

/* An operator of one shape. */
struct bench_case {
    char name[64];
    char *text;    /* the module */
    char *backend; /* the module for oneDNN; NULL: `text` */
    bool moves;    /* compared with a copy, not with oneDNN */
};

/* Medians: seconds of a run, and native / other. `other` is oneDNN or the copy;
 * all are 0 if oneDNN cannot run the case. */
struct native_result {
    double native, other, ratio;
};

static struct bench_case cases[MAX_CASES];
static uint32_t n_cases, n_threads = 1, n_rounds = 15;

/* --- cases ---------------------------------------------------------------- */

static char *vprint(const char *format, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, format, args) < 0)
        abort();
    return text;
}

__attribute__((format(printf, 1, 2))) static char *print(const char *format,
                                                         ...)
{
    va_list args;
    va_start(args, format);
    char *text = vprint(format, args);
    va_end(args);
    return text;
}

static void add_case(const char *name, bool moves, char *text, char *backend)
{
    if (n_cases == MAX_CASES)
        abort();
    struct bench_case *c = &cases[n_cases++];
    snprintf(c->name, sizeof c->name, "%s", name);
    c->text = text;
    c->backend = backend;
    c->moves = moves;
}

static void add_products(void)
{
    static const int dense[][3] = {
        /* m, k, n */
        {1, 784, 1024},   {1, 2048, 1000}, {4, 1024, 1024},
        {16, 1024, 1024}, {128, 768, 768}, {128, 768, 3072},
        {128, 3072, 768}, {197, 768, 768}, {1024, 1024, 1024}};
    static const int batches[][4] = {
        {12, 128, 64, 128}, {12, 128, 128, 64}, {12, 197, 64, 197}};
    char name[64];
    for (size_t i = 0; i < BYI_COUNT(dense); i++) {
        const int m = dense[i][0], k = dense[i][1], n = dense[i][2];
        snprintf(name, sizeof name, "dense %dx%dx%d", m, k, n);
        add_case(name, false,
                 print("def @main(%%x: Tensor[(%d, %d), float32]) {\n"
                       "  nn.dense(%%x, random[(%d, %d), float32, seed=1])\n"
                       "}\n",
                       m, k, n, k),
                 NULL);
    }
    for (size_t i = 0; i < BYI_COUNT(batches); i++) {
        const int *b = batches[i];
        snprintf(name, sizeof name, "matmul %dx%dx%dx%d", b[0], b[1], b[2],
                 b[3]);
        add_case(name, false,
                 print("def @main(%%x: Tensor[(%d, %d, %d), float32], %%y: "
                       "Tensor[(%d, %d, %d), float32]) {\n"
                       "  nn.matmul(%%x, %%y)\n}\n",
                       b[0], b[1], b[2], b[0], b[2], b[3]),
                 NULL);
    }
}

/* Add a convolution of a square image with padding of half the window. */
static void add_conv(int kernel, int in, int out, int size, int stride,
                     int groups)
{
    const int pad = kernel / 2;
    char name[64];
    snprintf(name, sizeof name, "conv%d %dx%d->%d%s%s", kernel, in, size, out,
             stride > 1 ? " stride 2" : "",
             groups == 1    ? ""
             : groups == in ? " depthwise"
                            : " groups");
    char *attrs = print("strides=[%d, %d], padding=[%d, %d, %d, %d], groups=%d",
                        stride, stride, pad, pad, pad, pad, groups);
    char *text = print(
        "def @main(%%x: Tensor[(1, %d, %d, %d), float32]) {\n"
        "  nn.conv2d(%%x, random[(%d, %d, %d, %d), float32, seed=1], %s)\n}\n",
        in, size, size, out, in / groups, kernel, kernel, attrs);
    char *backend =
        print("def @main(%%x: Tensor[(1, %d, %d, %d), float32]) {\n"
              "  nn.conv2d(%%x, random[(%d, %d, %d, %d), float32, seed=1], %s, "
              "data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}\n",
              size, size, in, kernel, kernel, in / groups, out, attrs);
    free(attrs);
    add_case(name, false, text, backend);
}

static void add_convs(void)
{
    static const int shapes[][6] = {
        /* window, in, out, size, stride, groups */
        {7, 3, 64, 224, 2, 1},     {3, 3, 32, 224, 2, 1},
        {3, 64, 64, 56, 1, 1},     {3, 128, 128, 28, 1, 1},
        {3, 256, 256, 14, 1, 1},   {3, 512, 512, 7, 1, 1},
        {3, 64, 128, 56, 2, 1},    {3, 16, 64, 55, 1, 1},
        {5, 64, 32, 28, 1, 1},     {1, 64, 256, 56, 1, 1},
        {1, 256, 64, 56, 1, 1},    {1, 512, 128, 28, 1, 1},
        {1, 1024, 256, 14, 1, 1},  {1, 512, 2048, 7, 1, 1},
        {1, 256, 512, 56, 2, 1},   {1, 24, 144, 56, 1, 1},
        {3, 32, 32, 112, 1, 32},   {3, 144, 144, 56, 1, 144},
        {3, 96, 96, 112, 2, 96},   {3, 384, 384, 14, 1, 384},
        {5, 240, 240, 14, 1, 240}, {3, 960, 960, 7, 1, 960},
        {3, 128, 128, 56, 1, 32}};
    for (size_t i = 0; i < BYI_COUNT(shapes); i++) {
        const int *s = shapes[i];
        add_conv(s[0], s[1], s[2], s[3], s[4], s[5]);
    }
}

/* The text of a product between dequantize and quantize, which both sides
 * compute with integers. */
static char *print_quantized(const char *dims, const char *product,
                             const char *weights, const char *attrs)
{
    return print("def @main(%%x: Tensor[(%s), uint8]) {\n"
                 "  %%0 = qnn.dequantize(%%x, 0.02f, 0u8);\n"
                 "  %%1 = qnn.dequantize(random[(%s), int8, seed=1], 0.004f, "
                 "0i8);\n"
                 "  %%2 = %s(%%0, %%1%s);\n"
                 "  qnn.quantize(%%2, 0.1f, 128u8)\n}\n",
                 dims, weights, product, attrs);
}

static void add_bytes_conv(int kernel, int in, int out, int size, int stride,
                           int groups)
{
    const int pad = kernel / 2;
    char name[64];
    snprintf(name, sizeof name, "8-bit conv%d %dx%d->%d%s%s", kernel, in, size,
             out, stride > 1 ? " stride 2" : "",
             groups == in ? " depthwise" : "");
    char *dims = print("1, %d, %d, %d", in, size, size);
    char *weights = print("%d, %d, %d, %d", out, in / groups, kernel, kernel);
    char *attrs = print(", strides=[%d, %d], padding=[%d, %d, %d, %d], "
                        "groups=%d",
                        stride, stride, pad, pad, pad, pad, groups);
    add_case(name, false, print_quantized(dims, "nn.conv2d", weights, attrs),
             NULL);
    free(attrs);
    free(weights);
    free(dims);
}

static void add_bytes(void)
{
    static const int shapes[][6] = {
        /* window, in, out, size, stride, groups */
        {3, 64, 64, 56, 1, 1},    {3, 256, 256, 14, 1, 1},
        {3, 512, 512, 7, 1, 1},   {1, 256, 64, 56, 1, 1},
        {1, 1024, 256, 14, 1, 1}, {1, 24, 144, 56, 1, 1},
        {3, 32, 32, 112, 1, 32},  {3, 384, 384, 14, 1, 384}};
    for (size_t i = 0; i < BYI_COUNT(shapes); i++) {
        const int *s = shapes[i];
        add_bytes_conv(s[0], s[1], s[2], s[3], s[4], s[5]);
    }
    add_case("8-bit dense 1x2048x1000", false,
             print_quantized("1, 2048", "nn.dense", "1000, 2048", ""), NULL);
    add_case("8-bit dense 128x768x768", false,
             print_quantized("128, 768", "nn.dense", "768, 768", ""), NULL);
}

/* A case as the texts of its parameters and its body. */
struct native_row {
    const char *name, *inputs, *body;
};

/* the type of a parameter; a constant of random numbers; a pool's input and
 * body */
#define F(dims) "Tensor[(" dims "), float32]"
#define R(dims, seed) "random[(" dims "), float32, seed=" seed "]"
#define POOL(op, dims, attrs) "%x: " F(dims), "nn." op "_pool2d(%x, " attrs ")"

/* clang-format off */
static const struct native_row against_backend[] = {
    {"max_pool 3x3 stride 2", POOL("max", "1, 64, 112, 112", "pool_size=[3, 3], strides=[2, 2], padding=[1, 1, 1, 1]")},
    {"max_pool 2x2 stride 2", POOL("max", "1, 64, 224, 224", "pool_size=[2, 2], strides=[2, 2]")},
    {"max_pool 3x3", POOL("max", "1, 256, 28, 28", "pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1]")},
    {"avg_pool 2x2 stride 2", POOL("avg", "1, 128, 56, 56", "pool_size=[2, 2], strides=[2, 2]")},
    {"avg_pool 3x3", POOL("avg", "1, 192, 35, 35", "pool_size=[3, 3], strides=[1, 1], padding=[1, 1, 1, 1]")},
    {"global_avg_pool", "%x: " F("1, 2048, 7, 7"), "nn.global_avg_pool2d(%x)"},
    {"softmax rows", "%x: " F("12, 128, 128"), "nn.softmax(%x)"},
    {"softmax axis 1", "%x: " F("1, 21, 128, 128"), "nn.softmax(%x, axis=1)"},
    {"layer_norm 128x768", "%x: " F("128, 768"), "nn.layer_norm(%x, " R("768", "1") ", " R("768", "2") ")"},
    {"instance_norm", "%x: " F("1, 64, 112, 112"), "nn.instance_norm(%x, " R("64", "1") ", " R("64", "2") ")"},
    {"lrn", "%x: " F("1, 96, 55, 55"), "nn.lrn(%x)"},
    {"sum rows", "%x: " F("1024, 1024"), "sum(%x, axis=[1])"},
    {"sum columns", "%x: " F("1024, 1024"), "sum(%x, axis=[0])"},
    {"max rows", "%x: " F("1024, 1024"), "max(%x, axis=[1])"},
    {"mean of planes", "%x: " F("1, 256, 56, 56"), "mean(%x, axis=[2, 3])"},
    {"lstm 128, 32 steps", "%x: " F("32, 1, 128"), "nn.lstm(%x, " R("1, 512, 128", "1") ", " R("1, 512, 128", "2") ", " R("1, 1024", "3") ").0"},
    {"lstm 512, batch 8", "%x: " F("16, 8, 512"), "nn.lstm(%x, " R("1, 2048, 512", "1") ", " R("1, 2048, 512", "2") ", " R("1, 4096", "3") ").0"},
    {"gru 256, 64 steps", "%x: " F("64, 1, 256"), "nn.gru(%x, " R("1, 768, 256", "1") ", " R("1, 768, 256", "2") ", " R("1, 1536", "3") ").0"},
};
static const struct native_row against_copy[] = {
    {"transpose NCHW NHWC", "%x: " F("1, 64, 112, 112"), "transpose(%x, axes=[0, 2, 3, 1])"},
    {"transpose NHWC NCHW", "%x: " F("1, 112, 112, 64"), "transpose(%x, axes=[0, 3, 1, 2])"},
    {"transpose heads", "%x: " F("1, 128, 12, 64"), "transpose(%x, axes=[0, 2, 1, 3])"},
    {"transpose 1024x1024", "%x: " F("1024, 1024"), "transpose(%x)"},
    {"transpose shuffle", "%x: " F("1, 2, 58, 28, 28"), "transpose(%x, axes=[0, 2, 1, 3, 4])"},
    {"concatenate channels", "%x: " F("1, 64, 56, 56") ", %y: " F("1, 192, 56, 56"), "concatenate(%x, %y, axis=1)"},
    {"concatenate last", "%x: " F("4096, 48") ", %y: " F("4096, 16"), "concatenate(%x, %y, axis=1)"},
    {"slice rows", "%x: " F("1, 256, 56, 56"), "strided_slice(%x, [64], [192], [1], [1])"},
    {"slice step 2", "%x: " F("1, 64, 112, 112"), "strided_slice(%x, [0, 0], [112, 112], [2, 3], [2, 2])"},
    {"pad", "%x: " F("1, 64, 56, 56"), "nn.pad(%x, [0, 0, 1, 1, 0, 0, 1, 1], 0.0f)"},
    {"take rows", "%x: " F("30522, 128") ", %i: Tensor[(512), int64]", "take(%x, %i)"},
    {"broadcast_to", "%x: " F("1, 64, 1, 1"), "broadcast_to(%x, [1, 64, 112, 112])"},
    {"depth_to_space", "%x: " F("1, 64, 112, 112"), "nn.depth_to_space(%x, block_size=2)"},
};
/* clang-format on */

static void add_rows(const struct native_row *rows, size_t n, bool moves)
{
    for (size_t i = 0; i < n; i++)
        add_case(
            rows[i].name, moves,
            print("def @main(%s) {\n  %s\n}\n", rows[i].inputs, rows[i].body),
            NULL);
}

/* --- measuring ------------------------------------------------------------ */

static bool open_side(const char *text, bool native, struct bench_side *side)
{
    static const char *const none[] = {NULL}, *const dnnl[] = {"dnnl", NULL};
    const struct byoc_compile_params params = {.backends = native ? none : dnnl,
                                               .require_offload_nodes =
                                                   native ? 0 : 100,
                                               .threads = n_threads};
    return bench_open_text(text, native ? "native" : "backend", &params,
                           n_threads, side);
}

/* Buffers for a copy of as many bytes as the results have. */
struct native_copy {
    char *x, *y;
    size_t n;
};

static struct native_copy make_copy(struct bench_side *side)
{
    struct native_copy c = {.n = 0};
    bench_run(side);
    for (uint32_t o = 0; o < byoc_model_n_outputs(side->model); o++) {
        size_t n = side->out[o].dtype.bits / 8u;
        for (int d = 0; d < side->out[o].ndim; d++)
            n *= (size_t)side->out[o].shape[d];
        c.n += n;
    }
    c.x = aligned_alloc(4096, (c.n + 4096) / 4096 * 4096);
    c.y = aligned_alloc(4096, (c.n + 4096) / 4096 * 4096);
    memset(c.x, 1, c.n);
    memset(c.y, 1, c.n);
    return c;
}

static double run_copy(const struct native_copy *c)
{
    const uint32_t team = c->n > 1 << 18 ? n_threads : 1;
    const size_t part = (c->n / team + 63) / 64 * 64;
    const double start = bench_now();
#pragma omp parallel for num_threads(team) if (team > 1)
    for (uint32_t t = 0; t < team; t++)
        if (t * part < c->n)
            memcpy(c->y + t * part, c->x + t * part,
                   t * part + part < c->n ? part : c->n - t * part);
    __asm__ volatile("" ::: "memory");
    return bench_now() - start;
}

static double run_other(struct bench_side *backend,
                        const struct native_copy *copy)
{
    return copy ? run_copy(copy) : bench_run(backend);
}

/* Time both sides in turns. A round takes the least time of several runs of one
 * side, since a run may be disturbed. */
static struct native_result measure(struct bench_side *native,
                                    struct bench_side *backend,
                                    const struct native_copy *copy)
{
    static double native_times[MAX_ROUNDS], other_times[MAX_ROUNDS],
        ratios[MAX_ROUNDS];
    double first = 0;
    for (int i = 0; i < 3; i++)
        first = bench_run(native) + run_other(backend, copy);
    int repeat = (int)(2e-3 / first) + 1;
    for (uint32_t round = 0; round < n_rounds; round++) {
        native_times[round] = other_times[round] = 1e9;
        for (int i = 0; i < repeat; i++) {
            const double t = bench_run(native);
            native_times[round] =
                t < native_times[round] ? t : native_times[round];
        }
        for (int i = 0; i < repeat; i++) {
            const double t = run_other(backend, copy);
            other_times[round] =
                t < other_times[round] ? t : other_times[round];
        }
        ratios[round] = native_times[round] / other_times[round];
    }
    return (struct native_result){.native =
                                      bench_median(native_times, n_rounds),
                                  .other = bench_median(other_times, n_rounds),
                                  .ratio = bench_median(ratios, n_rounds)};
}

static struct native_result run_case(const struct bench_case *c)
{
    struct bench_side native, backend;
    struct native_result r = {0};
    open_side(c->text, true, &native);
    if (c->moves) {
        const struct native_copy copy = make_copy(&native);
        r = measure(&native, NULL, &copy);
        free(copy.x);
        free(copy.y);
    } else if (open_side(c->backend ? c->backend : c->text, false, &backend)) {
        r = measure(&native, &backend, NULL);
        bench_close(&backend);
    }
    bench_close(&native);
    return r;
}

/* Run the chosen cases in a child process that is limited to `isa`. It writes
 * the results, in order, to a pipe. */
static void run_cases(enum byi_isa isa, const bool *chosen,
                      struct native_result *results)
{
    static const struct {
        const char *name, *backend;
    } names[] = {{"sse2", "SSE41"},
                 {"sse4.2", "SSE41"},
                 {"avx2", "AVX2"},
                 {"avx_vnni", "AVX2_VNNI"},
                 {"avx512", "AVX512_CORE"},
                 {"avx512_vnni", "AVX512_CORE_VNNI"},
                 {"avx512_bf16", "AVX512_CORE_BF16"},
                 {"avx512_amx", "AVX512_CORE_AMX"}};
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) {
        perror("native: pipe");
        exit(2);
    }
    const pid_t child = fork();
    if (child < 0)
        perror("native: fork");
    if (child == 0) {
        setenv("BYOC_MAX_ISA", byi_isa_name(isa), 1);
        for (size_t i = 0; i < BYI_COUNT(names); i++)
            if (strcmp(names[i].name, byi_isa_name(isa)) == 0)
                setenv("ONEDNN_MAX_CPU_ISA", names[i].backend, 1);
        for (uint32_t i = 0; i < n_cases; i++) {
            if (!chosen[i])
                continue;
            const struct native_result r = run_case(&cases[i]);
            if (write(pipe_ends[1], &r, sizeof r) != sizeof r) {
                perror("native: write to the pipe");
                exit(2);
            }
        }
        bench_folder_remove();
        exit(0);
    }
    close(pipe_ends[1]);
    for (uint32_t i = 0; i < n_cases; i++) {
        if (!chosen[i] ||
            read(pipe_ends[0], &results[i], sizeof *results) == sizeof *results)
            continue;
        fprintf(stderr,
                "native: %s: found no result of the process for %s, expected "
                "the time; see its message above, or else it was killed\n",
                cases[i].name, byi_isa_name(isa));
        exit(2);
    }
    close(pipe_ends[0]);
    waitpid(child, NULL, 0);
}

/* Set isas[] to whether to measure each instruction set: `only`, or if it is
 * NULL all that the CPU runs except SSE4.2. Returns false, after a message, if
 * none is left. */
static bool choose_isas(const char *only, bool *isas)
{
    bool any = false;
    for (int i = 0; i < BYI_N_ISAS; i++) {
        const char *name = byi_isa_name((enum byi_isa)i);
        isas[i] =
            byi_isa_runs((enum byi_isa)i) &&
            (only ? strcmp(only, name) == 0 : strcmp(name, "sse4.2") != 0);
        any |= isas[i];
    }
    if (any)
        return true;
    fprintf(stderr, "native: found --isa %s, expected one of", only);
    for (int i = 0; i < BYI_N_ISAS; i++)
        if (byi_isa_runs((enum byi_isa)i))
            fprintf(stderr, " %s", byi_isa_name((enum byi_isa)i));
    fprintf(stderr, ", which this CPU runs\n");
    return false;
}

/* Print a row for each chosen case. */
static void print_rows(const bool *chosen, const bool *isas,
                       struct native_result results[BYI_N_ISAS][MAX_CASES])
{
    for (uint32_t c = 0; c < n_cases; c++) {
        const struct native_result *last = NULL;
        if (!chosen[c])
            continue;
        printf("%-30s", cases[c].name);
        for (int i = 0; i < BYI_N_ISAS; i++) {
            if (!isas[i])
                continue;
            last = &results[i][c];
            if (last->other > 0)
                printf(" %11.2f", last->ratio);
            else
                printf(" %11s", "-");
        }
        if (last && last->other > 0)
            printf(" %10.1f %10.1f", 1e6 * last->native, 1e6 * last->other);
        printf("\n");
    }
}

int main(int argc, char **argv)
{
    static struct native_result results[BYI_N_ISAS][MAX_CASES];
    bool chosen[MAX_CASES], isas[BYI_N_ISAS];
    const char *only_isa = NULL;
    int at = 1;
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "--threads") == 0)
            n_threads = (uint32_t)atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--rounds") == 0)
            n_rounds = (uint32_t)atoi(argv[at + 1]);
        else if (strcmp(argv[at], "--isa") == 0)
            only_isa = argv[at + 1];
        else
            break;
    }
    if ((at < argc && argv[at][0] == '-') || n_threads == 0 || n_rounds == 0 ||
        n_rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: native [--threads N] [--rounds N] [--isa NAME] "
                        "[PREFIX...]\n");
        return 2;
    }
    if (n_threads == 1)
        bench_clock = CLOCK_THREAD_CPUTIME_ID;
    add_products();
    add_convs();
    add_bytes();
    add_rows(against_backend, BYI_COUNT(against_backend), false);
    add_rows(against_copy, BYI_COUNT(against_copy), true);
    for (uint32_t i = 0; i < n_cases; i++) {
        chosen[i] = at == argc;
        for (int a = at; a < argc; a++)
            chosen[i] |= strncmp(cases[i].name, argv[a], strlen(argv[a])) == 0;
    }
    if (!choose_isas(only_isa, isas))
        return 2;
    printf("%-30s", "native / oneDNN or a copy");
    for (int i = 0; i < BYI_N_ISAS; i++)
        if (isas[i])
            printf(" %11s", byi_isa_name((enum byi_isa)i));
    printf(" %10s %10s\n", "native us", "other us");
    fflush(stdout);
    for (int i = 0; i < BYI_N_ISAS; i++)
        if (isas[i])
            run_cases((enum byi_isa)i, chosen, results[i]);
    print_rows(chosen, isas, results);
    return 0;
}
