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

/* Define a function that computes `chains` independent sums of products in
 * registers. */
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
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,fma")))
PEAK(peak_avx2_12, 8, 12, AVX2)
PEAK(peak_avx2_8, 8, 8, AVX2)
PEAK(peak_avx512_12, 16, 12, AVX512)
PEAK(peak_avx512_24, 16, 24, AVX512)
#endif

/* The two loops of an instruction set, with different numbers of independent
 * sums, since a single loop may stay below the peak: on Zen 4 a loop with
 * twelve sums reached 0.82 of it. */
struct loops {
    int lanes;
    float (*run[2])(float x);
};

static struct loops widest_loops(void)
{
#if defined(__x86_64__)
    const enum byi_isa isa = byi_isa_widest();
    if (isa >= BYI_ISA_AVX512)
        return (struct loops){16, {peak_avx512_24, peak_avx512_12}};
    if (isa >= BYI_ISA_AVX2)
        return (struct loops){8, {peak_avx2_12, peak_avx2_8}};
#endif
    return (struct loops){4, {peak_base_12, peak_base_8}};
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

enum { LINE = 16, STREAMS = 4 }; /* in floats; per thread */

/* The memory that is read. Each thread reads STREAMS streams of `lines` lines.
 */
struct memory {
    float *at;
    uint64_t lines;
};

static void read_part(void *arg, uint32_t i)
{
    typedef float vec __attribute__((vector_size(LINE * sizeof(float))));
    const struct memory *m = arg;
    const vec *at = (const vec *)m->at + i * STREAMS * m->lines;
    vec sum[STREAMS] = {0};
    for (uint64_t n = 0; n < m->lines; n++)
        for (uint64_t k = 0; k < STREAMS; k++)
            sum[k] += at[k * m->lines + n];
    for (int k = 1; k < STREAMS; k++)
        sum[0] += sum[k];
    sink = sum[0][0];
}

/* Each thread writes its own part first, so that the kernel places the pages
 * near that thread. */
static void write_part(void *arg, uint32_t i)
{
    const struct memory *m = arg;
    const uint64_t n = STREAMS * m->lines * LINE;
    memset(m->at + i * n, 0, n * sizeof *m->at);
}

double byoc_internal_peak_read(uint64_t bytes, uint32_t threads)
{
    enum { ROUNDS = 20 };
    const uint64_t piece = (uint64_t)STREAMS * LINE * sizeof(float) * threads;
    struct memory m = {.lines = bytes / piece + 1};
    m.at = byi_memory_allocate(NULL, m.lines * piece);
    if (!m.at)
        return 0;
    byi_parallel_for(threads, write_part, &m);
    const double least = least_time(ROUNDS, threads, read_part, &m);
    byi_memory_release(NULL, m.at);
    return (double)(m.lines * piece) / least;
}
