/* SPDX-License-Identifier: Apache-2.0 */
/* peak.c: measures the machine's peak rates: multiply-adds on registers, and
 * reading of memory. Profiles and benchmarks compare kernels with these rates.
 */
#include "internal.h"
#include "workers.h"

#include "core/base/clock.h"
#include "core/base/isa.h"

#include <string.h>

static volatile float sink; /* keeps the compiler from dropping the loops */

/* The shortest time, in seconds, of `rounds` runs of fn on all threads. */
static double least_time(int rounds, uint32_t threads,
                         void (*fn)(void *, uint32_t), void *arg)
{
    double least = 1e9;
    for (int i = 0; i < rounds; i++) {
        const double began = byi_now();
        byi_parallel_for(threads, fn, arg);
        const double time = byi_now() - began;
        least = time < least ? time : least;
    }
    return least;
}

/* --- multiply-adds -------------------------------------------------------- */

enum { PRODUCTS = 24 * 10000 }; /* multiply-adds of one lane in one run */

/* Define a function that computes `n_sums` independent sums of products in
 * registers of `lanes` floats. */
#define PEAK(name, lanes, n_sums, options)                                     \
    typedef float name##_vec __attribute__((vector_size(4 * (lanes))));        \
    __attribute__((noinline)) options static float name(float x)               \
    {                                                                          \
        name##_vec sum[n_sums], a = x - (name##_vec){0};                       \
        for (int i = 0; i < (n_sums); i++)                                     \
            sum[i] = a + (float)i;                                             \
        for (int r = 0; r < PRODUCTS / (n_sums); r++) {                        \
            _Pragma("GCC unroll 24") for (int i = 0; i < (n_sums); i++)        \
                sum[i] = sum[i] * a + a;                                       \
        }                                                                      \
        for (int i = 1; i < (n_sums); i++)                                     \
            sum[0] += sum[i];                                                  \
        return sum[0][0];                                                      \
    }
PEAK(peak_base_12, 4, 12, )
PEAK(peak_base_8, 4, 8, )

enum {
    FLOATS_PER_LINE = 16, /* floats of a cache line */
    LINES_PER_STEP =
        4, /* cache lines that one iteration reads, of all streams */
};

/* Define a function that reads n streams of `lines` cache lines at the same
 * time, in vectors of `lanes` floats. */
#define READ(name, lanes, n, options)                                          \
    typedef float name##_vec __attribute__((vector_size(4 * (lanes))));        \
    __attribute__((noinline)) options static float name(const float *x,        \
                                                        uint64_t lines)        \
    {                                                                          \
        const uint64_t size = FLOATS_PER_LINE / (lanes);                       \
        const name##_vec *at = (const name##_vec *)x;                          \
        name##_vec sum[LINES_PER_STEP] = {0};                                  \
        for (uint64_t i = 0; i < lines; i += LINES_PER_STEP / (n))             \
            _Pragma("GCC unroll 4") for (uint64_t k = 0; k < LINES_PER_STEP;   \
                                         k++)                                  \
            {                                                                  \
                const uint64_t line = k % (n)*lines + i + k / (n);             \
                _Pragma("GCC unroll 4") for (uint64_t j = 0; j < size; j++)    \
                    sum[k] += at[line * size + j];                             \
            }                                                                  \
        return (sum[0] + sum[1] + sum[2] + sum[3])[0];                         \
    }
READ(read_base_1, 4, 1, )
READ(read_base_4, 4, 4, )
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,fma")))
PEAK(peak_avx2_12, 8, 12, AVX2)
PEAK(peak_avx2_8, 8, 8, AVX2)
PEAK(peak_avx512_12, 16, 12, AVX512)
PEAK(peak_avx512_24, 16, 24, AVX512)
READ(read_avx2_1, 8, 1, AVX2)
READ(read_avx2_4, 8, 4, AVX2)
READ(read_avx512_1, 16, 1, AVX512)
READ(read_avx512_4, 16, 4, AVX512)
#endif

/* The loops of an instruction set. A single loop may stay below the peak, so
 * each rate has two. On Zen 4 a loop with twelve sums reached 0.82 of the peak
 * of multiply-adds, and four streams 0.93 of the rate of one. */
struct loops {
    int lanes;                /* floats of a vector */
    float (*run[2])(float x); /* multiply-adds, from PEAK */
    struct reader {           /* from READ */
        float (*read)(const float *at, uint64_t lines);
        uint64_t streams;
    } readers[2];
};

static struct loops widest_loops(void)
{
#if defined(__x86_64__)
    const enum byi_isa isa = byi_isa_widest();
    if (isa >= BYI_ISA_AVX512)
        return (struct loops){16,
                              {peak_avx512_24, peak_avx512_12},
                              {{read_avx512_1, 1}, {read_avx512_4, 4}}};
    if (isa >= BYI_ISA_AVX2)
        return (struct loops){8,
                              {peak_avx2_12, peak_avx2_8},
                              {{read_avx2_1, 1}, {read_avx2_4, 4}}};
#endif
    return (struct loops){
        4, {peak_base_12, peak_base_8}, {{read_base_1, 1}, {read_base_4, 4}}};
}

static void multiply_add(void *arg, uint32_t i)
{
    static volatile float x = 0.5f;
    float (*const *run)(float) = arg;
    (void)i;
    sink = (*run)(x);
}

double byoc_internal_peak_flops(uint32_t threads)
{
    const struct loops loops = widest_loops();
    double least = 1e9;
    for (size_t i = 0; i < BYI_COUNT(loops.run); i++) {
        const double time =
            least_time(40, threads, multiply_add, (void *)&loops.run[i]);
        least = time < least ? time : least;
    }
    return 2.0 * loops.lanes * PRODUCTS * threads / least;
}

/* --- memory --------------------------------------------------------------- */

/* The memory that is read. */
struct memory {
    float *at;
    uint64_t lines; /* of a thread; a multiple of LINES_PER_STEP */
    const struct reader *reader;
};

static void read_part(void *arg, uint32_t i)
{
    const struct memory *m = arg;
    sink = m->reader->read(m->at + i * m->lines * FLOATS_PER_LINE,
                           m->lines / m->reader->streams);
}

/* Each thread writes its own part first, so that the kernel places the pages
 * near that thread. */
static void write_part(void *arg, uint32_t i)
{
    const struct memory *m = arg;
    const uint64_t n = m->lines * FLOATS_PER_LINE;
    memset(m->at + i * n, 0, n * sizeof *m->at);
}

double byoc_internal_peak_read(uint64_t bytes, uint32_t threads)
{
    enum { ROUNDS = 10 };
    const struct loops loops = widest_loops();
    const uint64_t piece =
        (uint64_t)LINES_PER_STEP * FLOATS_PER_LINE * sizeof(float) * threads;
    const uint64_t n = bytes / piece + 1;
    struct memory m = {.at = byi_memory_allocate(NULL, n * piece),
                       .lines = n * LINES_PER_STEP};
    double least = 1e9;
    if (!m.at)
        return 0;
    byi_parallel_for(threads, write_part, &m);
    for (size_t i = 0; i < BYI_COUNT(loops.readers); i++) {
        m.reader = &loops.readers[i];
        const double time = least_time(ROUNDS, threads, read_part, &m);
        least = time < least ? time : least;
    }
    byi_memory_release(NULL, m.at);
    return (double)(n * piece) / least;
}
