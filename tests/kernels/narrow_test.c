/* SPDX-License-Identifier: Apache-2.0 */
/* narrow_test.c: tests conversions of float16 and bfloat16 against core/base,
 * bit by bit. Tests copies of such elements, and pools of all types, against
 * plain loops. Uses every instruction set of the machine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/moves.h"

#include <cmocka.h>

#include "isas.h"
#include "random.h"

static float wide_of(bool bf16, uint16_t x)
{
    return bf16 ? byi_bf16_to_f32(x) : byi_f16_to_f32(x);
}

static uint16_t narrow_of(bool bf16, float x)
{
    return bf16 ? byi_f32_to_bf16(x) : byi_f32_to_f16(x);
}

/* --- conversions ---------------------------------------------------------- */

enum { N_PATTERNS = 1 << 16 };

/* Compare the float32 number of a 16-bit pattern with the expected one. The
 * bits of NaNs may differ: the instructions make a signalling NaN quiet. */
static void check_wide(uint16_t from, float found, float expected)
{
    if (isnan(expected) ? !isnan(found) || signbit(found) != signbit(expected)
                        : memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%s: 0x%04x is %a, expected %a", byi_f32_kernels()->name, from,
                 (double)found, (double)expected);
}

static void all_bit_patterns(void)
{
    const struct byi_f32_kernels *k = byi_f32_kernels();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        uint16_t *patterns = malloc(N_PATTERNS * sizeof *patterns);
        uint16_t *back = malloc(N_PATTERNS * sizeof *back);
        float *wide = malloc(N_PATTERNS * sizeof *wide);
        for (int i = 0; i < N_PATTERNS; i++)
            patterns[i] = (uint16_t)i;
        k->widen[bf16](patterns, wide, N_PATTERNS);
        k->narrow[bf16](wide, back, N_PATTERNS);
        for (int i = 0; i < N_PATTERNS; i++) {
            const float expected = wide_of(bf16, patterns[i]);
            check_wide(patterns[i], wide[i], expected);
            assert_int_equal(back[i], narrow_of(bf16, expected));
        }
        /* any length; elements after it do not change */
        for (int n = 0; n < 40; n++) {
            float prefix[48];
            for (int i = 0; i < 48; i++)
                prefix[i] = -7;
            k->widen[bf16](patterns + 1000, prefix, n);
            for (int i = 0; i < 48; i++)
                assert_true(prefix[i] ==
                            (i < n ? wide_of(bf16, (uint16_t)(1000 + i)) : -7));
            memset(back, 0xab, 48 * sizeof *back);
            k->narrow[bf16](wide + 1000, back, n);
            for (int i = 0; i < 48; i++)
                assert_int_equal(back[i], i < n ? 1000 + i : 0xabab);
        }
        free(patterns);
        free(back);
        free(wide);
    }
}

/* Round numbers halfway between two narrow numbers, and slightly larger and
 * smaller ones. */
static void rounding(void)
{
    const struct byi_f32_kernels *k = byi_f32_kernels();
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (uint32_t high = 0; high < N_PATTERNS; high += 16) {
            float x[64];
            uint16_t y[64];
            for (uint32_t i = 0; i < 64; i++) {
                static const uint32_t low[] = {0x0000, 0x7fff, 0x8000, 0x8001};
                const uint32_t bits = (high + i / 4) << 16 | low[i % 4];
                const uint32_t finer =
                    bf16 ? bits : (bits & ~0x3fffu) | (draw(4) << 11);
                memcpy(&x[i], &finer, sizeof *x);
            }
            for (int i = 0; i < 64 && !bf16; i++) {
                uint32_t bits;
                memcpy(&bits, &x[i], sizeof bits);
                bits += (i % 3 == 0) - (uint32_t)(i % 3 == 1);
                memcpy(&x[i], &bits, sizeof bits);
            }
            k->narrow[bf16](x, y, 64);
            for (int i = 0; i < 64; i++)
                if (y[i] != narrow_of(bf16, x[i]))
                    fail_msg("%s: %a is 0x%04x, expected 0x%04x", k->name,
                             (double)x[i], y[i], narrow_of(bf16, x[i]));
        }
}

static void test_conversions(void **state)
{
    (void)state;
    seed = 1;
    with_each_f32_kernels(all_bit_patterns);
    with_each_f32_kernels(rounding);
}

/* --- copies --------------------------------------------------------------- */

static void test_copies(void **state)
{
    (void)state;
    seed = 2;
    for (int round = 0; round < 2000; round++) {
        struct byi_f32_move m = {.rank = draw(5)};
        uint32_t order[2][4] = {{0, 1, 2, 3}, {0, 1, 2, 3}};
        int64_t gap = 1, elements = 1;
        for (uint32_t i = 0; i < m.rank; i++) {
            m.dims[i] = 1 + draw(draw(3) ? 12 : 70);
            elements *= m.dims[i];
        }
        for (int side = 0; side < 2; side++)
            for (uint32_t i = m.rank; i > 1; i--) {
                const uint32_t j = draw(i), x = order[side][i - 1];
                order[side][i - 1] = order[side][j];
                order[side][j] = x;
            }
        int64_t from = 1, to = 1;
        for (uint32_t i = m.rank; i-- > 0;) {
            m.from[order[0][i]] = from;
            m.to[order[1][i]] = to;
            from *= m.dims[order[0][i]];
            to *= m.dims[order[1][i]];
            if (draw(6) == 0 && gap == 1)
                from += gap = 1 + draw(5);
        }
        uint16_t *x = malloc((size_t)from * sizeof *x);
        uint16_t *y = calloc((size_t)elements, sizeof *y);
        for (int64_t i = 0; i < from; i++)
            x[i] = (uint16_t)(i * 40503);
        struct byi_f32_move plan = m;
        byi_f32_move_plan(&plan);
        byi_f32_move_run(&plan, x, y, 1 + (int)draw(3));
        for (int64_t i = 0; i < elements; i++) {
            int64_t rest = i, at_x = 0, at_y = 0;
            for (uint32_t a = 0; a < m.rank; rest /= m.dims[a++]) {
                at_x += rest % m.dims[a] * m.from[a];
                at_y += rest % m.dims[a] * m.to[a];
            }
            assert_int_equal(y[at_y], x[at_x]);
        }
        free(x);
        free(y);
    }
}

/* --- pools ---------------------------------------------------------------- */

static bool is_bytes(uint32_t type)
{
    return type == BYI_F32_U8 || type == BYI_F32_I8;
}

static bool draw_pool(struct byi_f32_pool *p)
{
    *p = (struct byi_f32_pool){.kernels = byi_f32_kernels(),
                               .type = draw(BYI_F32_POOL_TYPES),
                               .mean = draw(2),
                               .scale = 1,
                               .padded = draw(2),
                               .images = 1 + draw(2),
                               .channels = 1 + draw(200)};
    if (p->mean && is_bytes(p->type)) {
        p->zero = (float)draw(256) - (p->type == BYI_F32_I8 ? 128 : 0);
        p->scale = 0.0173f;
    }
    for (int i = 0; i < BYI_F32_AXES; i++) {
        p->in[i] = 1 + draw(i ? 12 : 3);
        p->size[i] = 1 + draw(3);
        p->stride[i] = 1 + draw(3);
        p->dilation[i] = 1 + draw(2);
        p->pad[i] = p->dilation[i] > 1 ? 0 : draw((uint32_t)p->size[i]);
        const int64_t reach = (p->size[i] - 1) * p->dilation[i] + 1;
        if (p->in[i] + p->pad[i] < reach)
            return false;
        p->out[i] = (p->in[i] + p->pad[i] - reach) / p->stride[i] + 1;
    }
    return true;
}

static float element_of(uint32_t type, const void *x, int64_t i)
{
    return type == BYI_F32_WIDE ? ((const float *)x)[i]
           : type == BYI_F32_U8 ? ((const uint8_t *)x)[i]
           : type == BYI_F32_I8
               ? ((const int8_t *)x)[i]
               : wide_of(type == BYI_F32_BF16, ((const uint16_t *)x)[i]);
}

static void set_element(uint32_t type, void *x, int64_t i, float v)
{
    if (type == BYI_F32_WIDE)
        ((float *)x)[i] = v;
    else if (is_bytes(type))
        ((uint8_t *)x)[i] = (uint8_t)(int32_t)v;
    else
        ((uint16_t *)x)[i] = narrow_of(type == BYI_F32_BF16, v);
}

/* Channel c of output `at`, not rounded to the type. */
static float pool_at(const struct byi_f32_pool *p, const void *x, int64_t at,
                     int64_t c)
{
    const int64_t o[] = {at / p->out[2] / p->out[1] % p->out[0],
                         at / p->out[2] % p->out[1], at % p->out[2]};
    const int64_t image = at / byi_f32_product_of(p->out);
    float y = 0;
    int64_t n = 0;
    for (int64_t t = 0; t < byi_f32_product_of(p->size); t++) {
        const int64_t tap[] = {t / p->size[2] / p->size[1],
                               t / p->size[2] % p->size[1], t % p->size[2]};
        int64_t from = image;
        bool inside = true;
        for (int i = 0; i < BYI_F32_AXES; i++) {
            const int64_t in =
                o[i] * p->stride[i] - p->pad[i] + tap[i] * p->dilation[i];
            inside &= in >= 0 && in < p->in[i];
            from = from * p->in[i] + in;
        }
        if (!inside)
            continue;
        const float v = element_of(p->type, x, from * p->channels + c);
        if (p->mean)
            y += v - p->zero;
        else if (n == 0 || v > y || isnan(v))
            y = v;
        n++;
    }
    if (p->mean)
        y *= p->scale / (float)(p->padded ? byi_f32_product_of(p->size) : n);
    return y;
}

static void pools(void)
{
    for (int round = 0; round < 300; round++) {
        struct byi_f32_pool p;
        if (!draw_pool(&p))
            continue;
        const int64_t in = p.images * byi_f32_product_of(p.in) * p.channels;
        const int64_t out = p.images * byi_f32_product_of(p.out);
        const bool bytes = is_bytes(p.type);
        const uint32_t to = bytes && p.mean ? BYI_F32_WIDE : p.type;
        void *x = malloc((size_t)in * sizeof(float));
        void *y = malloc((size_t)(out * p.channels) * sizeof(float));
        for (int64_t i = 0; i < in; i++)
            set_element(p.type, x, i,
                        bytes ? (float)draw(256)
                              : (float)draw(2001) / 100 - 10);
        for (uint32_t i = bytes ? 0 : draw(3); i > 0; i--)
            set_element(p.type, x, draw((uint32_t)in),
                        copysignf(draw(2)   ? NAN
                                  : draw(2) ? INFINITY
                                            : 1e-7f,
                                  draw(2) ? 1 : -1));
        const int threads = 1 + (int)draw(3);
        void *scratch = malloc(byi_f32_pool_scratch(&p, threads));
        byi_f32_pool_run(&p, x, y, scratch, threads);
        for (int64_t i = 0; i < out * p.channels; i++) {
            float rounded;
            set_element(to, &rounded, 0,
                        pool_at(&p, x, i / p.channels, i % p.channels));
            const float expected = element_of(to, &rounded, 0);
            const float found = element_of(to, y, i);
            assert_true(isnan(expected) ? isnan(found) : found == expected);
        }
        free(x);
        free(y);
        free(scratch);
    }
}

static void test_pools(void **state)
{
    (void)state;
    seed = 3;
    with_each_f32_kernels(pools);
}

/* --- interleaved rows ----------------------------------------------------- */

static void test_interleaving(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= 3; n++)
        for (int64_t columns = 0; columns <= 40; columns++) {
            uint16_t x[3][40], y[3 * 40 + 1];
            const uint16_t *rows[] = {x[0], x[1], x[2]};
            for (uint32_t i = 0; i < 3 * 40; i++)
                x[i / 40][i % 40] = (uint16_t)(i + 1);
            y[n * columns] = 0xabcd;
            byi_halves_interleave(rows, n, columns, y);
            for (int64_t i = 0; i < n * columns; i++)
                assert_int_equal(y[i], x[i % n][i / n]);
            assert_int_equal(y[n * columns], 0xabcd);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conversions),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_interleaving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
