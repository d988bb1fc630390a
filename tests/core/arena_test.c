/* SPDX-License-Identifier: Apache-2.0 */
/* arena_test.c: tests memory, growing arrays and texts, status, dtypes,
 * tensors. */
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/base.h"
#include "tests/folder.h"

#include <cmocka.h>

static void test_arena_is_zeroed_and_aligned(void **state)
{
    struct byi_arena *arena = byi_arena_new();

    (void)state;
    for (size_t i = 1; i < 3000; i++) {
        unsigned char *at = byi_arena_alloc(arena, i * 7);
        assert_int_equal((uintptr_t)at % 16, 0);
        for (size_t j = 0; j < i * 7; j += 64)
            assert_int_equal(at[j], 0);
        memset(at, 0xff, i * 7);
    }
    byi_arena_free(&arena);
    assert_null(arena);
    byi_arena_free(&arena);
}

static void test_large_blocks_leave_the_small_block_open(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    char *a = byi_arena_alloc(arena, 16), *b = NULL;

    (void)state;
    byi_arena_alloc(arena, 10 << 20);
    b = byi_arena_alloc(arena, 16);
    assert_ptr_equal(b, a + 16);
    assert_non_null(byi_arena_alloc(arena, 0));
    byi_arena_free(&arena);
}

static void test_strings(void **state)
{
    struct byi_arena *arena = byi_arena_new();

    (void)state;
    assert_string_equal(byi_arena_str(arena, "abc"), "abc");
    assert_string_equal(byi_arena_strn(arena, "abc", 2), "ab");
    assert_string_equal(byi_arena_strn(arena, NULL, 0), "");
    assert_string_equal(byi_arena_printf(arena, "%d-%s", 7, "x"), "7-x");
    byi_arena_free(&arena);
}

static int order[3], n_called;

static void note(void *arg)
{
    order[n_called++] = *(int *)arg;
}

static void test_defer_calls_last_first(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    int ids[3] = {0, 1, 2};

    (void)state;
    for (int i = 0; i < 3; i++)
        byi_arena_defer(arena, note, &ids[i]);
    byi_arena_free(&arena);
    assert_int_equal(n_called, 3);
    assert_int_equal(order[0], 2);
    assert_int_equal(order[2], 0);
}

static jmp_buf before_hook; /* where the hook jumps */
static size_t hook_bytes;

/* The hook for failed allocations: record the size, and jump. */
static void leave(size_t bytes)
{
    hook_bytes = bytes;
    longjmp(before_hook, 1);
}

/* After a reset, blocks that the test has written are zeroed again: small and
 * large ones, in varying orders. */
static void test_reset_gives_zeroed_memory(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    int one = 1;

    (void)state;
    n_called = 0;
    for (size_t round = 1; round < 40; round++) {
        byi_arena_defer(arena, note, &one);
        for (size_t i = 0; i < 200; i++) {
            size_t n = (i * 7919 * round) % (i % 50 ? 3000 : 3000000);
            unsigned char *at = byi_arena_alloc(arena, n);
            assert_int_equal((uintptr_t)at % 16, 0);
            for (size_t k = 0; k < n; k++)
                if (at[k])
                    fail_msg(
                        "round %zu, byte %zu of %zu: found %#x, expected 0",
                        round, k, n, at[k]);
            memset(at, 0xff, n);
        }
        byi_arena_reset(arena);
        assert_int_equal(n_called, 1);
        n_called = 0;
    }
    byi_arena_reset(arena); /* of an empty arena */
    byi_arena_free(&arena);
}

static void test_equal_use_takes_equal_memory(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    size_t first = 0;

    (void)state;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 100; i++)
            byi_arena_alloc(arena, 100);
        first = round ? first : byi_arena_bytes(arena);
        assert_int_equal(byi_arena_bytes(arena), first);
        byi_arena_reset(arena);
    }
    byi_arena_free(&arena);
}

static void test_exhaustion_calls_the_hook(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    void (*before)(size_t) = byi_oom;

    (void)state;
    byi_oom = leave;
    if (setjmp(before_hook) == 0) {
        byi_arena_calloc(arena, SIZE_MAX / 2, 3);
        fail();
    }
    assert_true(hook_bytes == SIZE_MAX);
    if (setjmp(before_hook) == 0) {
        byi_arena_alloc(arena, SIZE_MAX - 3);
        fail();
    }
    byi_oom = before;
    byi_arena_free(&arena);
}

static void test_heap(void **state)
{
    void *memory = byi_acquire(1);
    uint64_t *zero = byi_alloc(4, 8);

    (void)state;
    assert_int_equal((uintptr_t)memory % BYI_ALIGN, 0);
    byi_release(memory);
    byi_release(NULL);
    memory = byi_acquire(0);
    assert_non_null(memory);
    byi_release(memory);
    assert_null(byi_acquire(UINT64_MAX));
    assert_null(byi_realloc(NULL, SIZE_MAX / 2, 4));
    assert_true(zero[0] == 0 && zero[3] == 0);
    free(zero);
}

/* The bytes of memory that the process occupies. */
static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long total, resident;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &total, &resident), 2);
    fclose(f);
    return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Memory a little larger than a huge page (2 MiB) does not occupy two. */
static void test_large_memory_occupies_its_size(void **state)
{
    enum { N = 16, BYTES = (2 << 20) + 8192 };
    const uint64_t before = resident_bytes();
    char *blocks[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        blocks[i] = byi_acquire(BYTES);
        assert_non_null(blocks[i]);
        memset(blocks[i], 1, BYTES);
    }
    /* the sanitizers' shadow memory comes on top */
    assert_in_range(resident_bytes() - before, N * BYTES / 2,
                    N * BYTES / 2 * 3);
    for (int i = 0; i < N; i++)
        byi_release(blocks[i]);
}

static void test_vec_and_text(void **state)
{
    BYI_VEC(int) v = {0};
    struct byi_text text = {0};

    (void)state;
    for (int i = 0; i < 1000; i++)
        BYI_PUSH(&v, i);
    assert_int_equal(v.n, 1000);
    assert_int_equal(v.at[999], 999);
    byi_vec_free(v.at);
    byi_text_add(&text, "", 0);
    assert_string_equal(text.at, "");
    for (int i = 0; i < 100; i++)
        byi_text_addf(&text, "%d,", i);
    assert_int_equal(text.n, strlen(text.at));
    assert_memory_equal(text.at + text.n - 3, "99,", 4);
    byi_text_free(&text);
    assert_null(text.at);
}

static void test_messages(void **state)
{
    struct byoc_error err = {0};
    char lengthy[3000];

    (void)state;
    assert_int_equal(byi_fail(&err, BYOC_ETYPE, "found %d", 3), BYOC_ETYPE);
    assert_int_equal(byi_prefix(&err, "line %d", 7), BYOC_ETYPE);
    assert_string_equal(err.text, "line 7: found 3");
    byi_fail(&err, BYOC_EIO, "again: %s", err.text);
    assert_string_equal(err.text, "again: line 7: found 3");
    assert_int_equal(byi_fail(NULL, BYOC_EPARSE, "x"), BYOC_EPARSE);
    assert_int_equal(byi_prefix(NULL, "y"), BYOC_EPARSE);
    memset(lengthy, 'a', sizeof lengthy - 1);
    lengthy[sizeof lengthy - 1] = '\0';
    byi_fail(&err, BYOC_EIO, "%s", lengthy);
    byi_prefix(&err, "file");
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_memory_equal(err.text, "file: aaa", 9);
    byi_prefix(&err, "%s", lengthy);
    assert_int_equal(strlen(err.text), sizeof err.text - 1);
    assert_string_equal(byoc_status_text(BYOC_EPARSE), "malformed input");
    assert_non_null(byoc_status_text((enum byoc_status)99));
}

static void test_float_text(void **state)
{
    char buf[32];

    (void)state;
    static const struct {
        double value;
        bool single;
        const char *text;
    } rows[] = {
        {0.1, false, "0.1"},
        {-1e-05, false, "-1e-05"},
        {3, false, "3"},
        {-0.0, false, "-0"},
        {200, false, "200"},
        {-200.5, false, "-200.5"},
        {999999999999999, false, "999999999999999"},
        {1e15, false, "1e+15"},
        {0.1f, true, "0.1"},
        {0.1f, false, "0.10000000149011612"},
        {0x1p41f, true, "2199023255552"},
        {-INFINITY, false, "-inf"},
        {NAN, false, "nan"},
    };
    for (size_t i = 0; i < BYI_COUNT(rows); i++)
        assert_string_equal(byi_float_text(buf, rows[i].value, rows[i].single),
                            rows[i].text);
    assert_string_equal(BYI_FLOAT_TEXT(0.1f), "0.1");
    assert_string_equal(BYI_FLOAT_TEXT(0.1), "0.1");
    assert_string_equal(BYI_FLOAT_TEXT(16777217), "16777217");
    assert_true(byi_strtod("1.5x", NULL) == 1.5);
}

/* The least number of digits from which the number is read back, found with
 * printf. */
static void print_shortest(double value, bool single, int least, char text[400])
{
    for (int digits = least; digits <= 17; digits++) {
        snprintf(text, 400, "%.*g", digits, value);
        const double parsed = strtod(text, NULL);
        if (single ? (float)parsed == (float)value : parsed == value)
            return;
    }
}

/* Numbers of all exponents and of common ones, integers, halves and powers of
 * two have the digits that printf gives them. */
static void test_decimal_text(void **state)
{
    uint64_t r = 88172645463325252u;
    char expected[400], text[32];
    (void)state;
    for (int i = 0; i < 60000; i++) {
        const bool single = i & 1;
        const int least = 1 + i % 11;
        double value;
        r ^= r << 13, r ^= r >> 7, r ^= r << 17;
        memcpy(&value, &r, sizeof value);
        const double kinds[] = {
            value, (double)(r >> 40) / 1000 - 3000, (double)(r >> (r & 63)),
            ((double)(r % 1000003) + 0.5) * pow(10, (double)(i % 20) - 12),
            ldexp(1, (int)((r >> 40) % 2098) - 1074)};
        value = kinds[i % 5];
        value = single ? (double)(float)value : value;
        if (!isfinite(value))
            continue;
        print_shortest(value, single, least, expected);
        assert_int_equal(byi_decimal_text(text, value, single, least),
                         strlen(expected));
        assert_string_equal(text, expected);
    }
}

static void test_dtypes(void **state)
{
    (void)state;
    for (enum byoc_dtype d = BYOC_F32; d <= BYOC_BF16; d++) {
        const char *name = byoc_dtype_name(d);
        assert_int_equal(byi_dtype_of_name(name, strlen(name)), d);
        if (d != BYOC_BOOL)
            assert_int_equal(byi_dtype_of_dlpack(byoc_dtype_dlpack(d)), d);
    }
    assert_int_equal(byi_dtype_of_dlpack(byoc_dtype_dlpack(BYOC_BOOL)),
                     BYOC_U8);
    assert_null(byoc_dtype_name(BYOC_NONE));
    assert_null(byoc_dtype_name((enum byoc_dtype)27));
    assert_null(byoc_dtype_name((enum byoc_dtype)(-1)));
    assert_int_equal(byoc_dtype_size(BYOC_C128), 16);
    assert_int_equal(byoc_dtype_size(BYOC_STRING), 0);
    assert_int_equal(byi_dtype_of_name("float3", 6), BYOC_NONE);
    assert_int_equal(byi_dtype_of_dlpack((DLDataType){kDLFloat, 32, 4}),
                     BYOC_NONE);
}

/* Every float16 and bfloat16 is exact in float32; a float32 half-way between
 * two of them is rounded to the even one. */
static void test_half_conversions(void **state)
{
    (void)state;
    for (uint32_t h = 0; h <= 0xffff; h++) {
        uint16_t bits = (uint16_t)h;
        bool nan = (h & 0x7fff) > 0x7c00;
        uint16_t back = byi_f32_to_f16(byi_f16_to_f32(bits));
        assert_int_equal(back, nan ? (h | 0x200) : h);
        back = byi_f32_to_bf16(byi_bf16_to_f32(bits));
        nan = (h & 0x7fff) > 0x7f80;
        assert_int_equal(back, nan ? (h | 0x40) : h);
    }
    assert_int_equal(byi_f32_to_f16(1 + 0x1p-11f), 0x3c00);
    assert_int_equal(byi_f32_to_f16(1 + 3 * 0x1p-11f), 0x3c02);
    assert_int_equal(byi_f32_to_f16(65519.0f), 0x7bff);
    assert_int_equal(byi_f32_to_f16(65520.0f), 0x7c00);
    assert_int_equal(byi_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(byi_f32_to_f16(-0x1.8p-25f), 0x8001);
    assert_int_equal(byi_f32_to_bf16(1 + 0x1p-8f), 0x3f80);
    assert_int_equal(byi_f32_to_bf16(1 + 3 * 0x1p-8f), 0x3f82);
    assert_int_equal(byi_f32_to_bf16(3.4e38f), 0x7f80);
}

/* Every number of a narrow type is exact in float. */
static void test_narrow_round_trip(void **state)
{
    (void)state;
    for (int t = BYOC_F8E4M3FN; t <= BYI_LAST_DTYPE; t++) {
        const enum byoc_dtype dtype = (enum byoc_dtype)t;
        const uint32_t bits = byi_narrow_bits(dtype);
        for (uint32_t code = 0; code < 1u << bits; code++) {
            uint8_t packed[] = {(uint8_t)code}, unpacked;
            byi_narrow_unpack(dtype, packed, 1, &unpacked);
            const float value = byi_narrow_to_f32(dtype, unpacked);
            const uint8_t back =
                byi_f32_to_narrow(dtype, value, false, BYI_ROUND_UP);
            if (isnan(value))
                assert_true(isnan(byi_narrow_to_f32(dtype, back)));
            else
                assert_int_equal(back, unpacked);
        }
    }
    assert_int_equal(byi_narrow_bits(BYOC_BF16), 0);
    assert_false(byi_narrow_is_float(BYOC_I4));
}

/* Values from the tables of the formats; then values between them and out of
 * range. */
static void test_narrow_values(void **state)
{
    static const struct {
        enum byoc_dtype dtype;
        float value;
        bool saturate;
        uint8_t code;
    } cases[] = {
        {BYOC_F8E4M3FN, 448, true, 0x7e},
        {BYOC_F8E4M3FN, 0x1p-9f, true, 0x01},
        {BYOC_F8E4M3FN, 0x1p-10f, true, 0x00}, /* halfway: to even */
        {BYOC_F8E4M3FN, -0x1.8p-9f, true, 0x82},
        {BYOC_F8E4M3FN, 464, false, 0x7e},
        {BYOC_F8E4M3FN, 465, false, 0x7f},
        {BYOC_F8E4M3FN, 465, true, 0x7e},
        {BYOC_F8E4M3FN, -INFINITY, true, 0xfe},
        {BYOC_F8E4M3FN, -INFINITY, false, 0xff},
        {BYOC_F8E4M3FNUZ, 240, true, 0x7f},
        {BYOC_F8E4M3FNUZ, 1e6f, false, 0x80},
        {BYOC_F8E4M3FNUZ, -0.0f, true, 0x00},
        {BYOC_F8E5M2, 57344, true, 0x7b},
        {BYOC_F8E5M2, 61440, false, 0x7c},
        {BYOC_F8E5M2, 61439, false, 0x7b},
        {BYOC_F8E5M2, INFINITY, true, 0x7b},
        {BYOC_F8E5M2, -1.125f, true, 0xbc},
        {BYOC_F8E5M2FNUZ, 57344, true, 0x7f},
        {BYOC_F8E5M2FNUZ, NAN, true, 0x80},
        {BYOC_F4E2M1, 1.25f, true, 0x2},
        {BYOC_F4E2M1, -5.1f, true, 0xf},
        {BYOC_F4E2M1, 1e6f, false, 0x7},
        {BYOC_F4E2M1, NAN, false, 0x8},
        {BYOC_I4, -8.9f, true, 0xf8},
        {BYOC_I4, 9, true, 0xf9},
        {BYOC_U2, 7, true, 3},
        {BYOC_I2, -1, true, 0xff},
    };
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(cases); i++)
        assert_int_equal(byi_f32_to_narrow(cases[i].dtype, cases[i].value,
                                           cases[i].saturate, BYI_ROUND_UP),
                         cases[i].code);
    assert_int_equal(byi_f32_to_narrow(BYOC_F8E8M0, 1.25f, true, BYI_ROUND_UP),
                     128);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 1.75f, true, BYI_ROUND_DOWN), 127);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 1.25f, true, BYI_ROUND_NEAREST), 127);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 1.5f, true, BYI_ROUND_NEAREST), 128);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, INFINITY, true, BYI_ROUND_UP), 255);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 0x1.4p127f, false, BYI_ROUND_NEAREST),
        254);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 0x1.cp127f, false, BYI_ROUND_NEAREST),
        255);
    assert_int_equal(
        byi_f32_to_narrow(BYOC_F8E8M0, 0x1.cp127f, true, BYI_ROUND_NEAREST),
        254);
}

static void test_packing(void **state)
{
    const uint8_t packed[] = {0xe4, 0x01};
    uint8_t codes[5];
    (void)state;
    assert_int_equal(byi_narrow_packed_bytes(BYOC_U4, 5), 3);
    assert_int_equal(byi_narrow_packed_bytes(BYOC_I2, 5), 2);
    assert_int_equal(byi_narrow_packed_bytes(BYOC_F8E5M2, 5), 5);
    byi_narrow_unpack(BYOC_U2, packed, 5, codes);
    assert_memory_equal(codes, ((const uint8_t[]){0, 1, 2, 3, 1}), 5);
    byi_narrow_unpack(BYOC_I4, packed, 3, codes);
    assert_memory_equal(codes, ((const uint8_t[]){4, 0xfe, 1}), 3);
}

static void test_elements(void **state)
{
    const int64_t dims[] = {2, 3, 4}, empty[] = {INT64_MAX, INT64_MAX, 0};
    const int64_t huge[] = {INT64_MAX, 2}, symbol[] = {2, -1};
    struct byi_tensor t = {.dtype = BYOC_F64, .rank = 2, .dims = {INT64_MAX}};

    (void)state;
    assert_int_equal(byi_elements(3, dims), 24);
    assert_int_equal(byi_elements(0, NULL), 1);
    assert_int_equal(byi_elements(3, empty), 0);
    assert_int_equal(byi_elements(2, huge), -1);
    assert_int_equal(byi_elements(2, symbol), -1);
    t.dims[1] = 1;
    assert_true(byi_tensor_bytes(&t) == UINT64_MAX);
    t.dims[0] = 5;
    assert_int_equal(byi_tensor_bytes(&t), 40);
    assert_false(byi_dims_equal(2, dims, 3, dims));
    assert_true(byi_dims_equal(0, NULL, 0, NULL));
}

static void test_elements_as_numbers(void **state)
{
    static const enum byoc_dtype numeric[] = {
        BYOC_F32, BYOC_U8,  BYOC_I8,  BYOC_U16, BYOC_I16, BYOC_I32,
        BYOC_I64, BYOC_F16, BYOC_F64, BYOC_U32, BYOC_U64, BYOC_BF16};
    uint64_t data[2] = {0};
    struct byi_tensor t = {.data = data, .rank = 1, .dims = {2}};

    (void)state;
    for (size_t i = 0; i < BYI_COUNT(numeric); i++) {
        t.dtype = numeric[i];
        byi_tensor_set(&t, 1, 100);
        assert_int_equal(byi_tensor_int(&t, 1), 100);
        assert_true(byi_tensor_float(&t, 1) == 100);
        byi_tensor_set(&t, 1, 1e30);
        byi_tensor_int(&t, 1); /* clamped, not undefined */
        byi_tensor_set(&t, 1, NAN);
    }
    t.dtype = BYOC_I8;
    byi_tensor_set(&t, 0, -1000);
    assert_int_equal(byi_tensor_int(&t, 0), -128);
    t.dtype = BYOC_BOOL;
    byi_tensor_set(&t, 0, 0.5);
    assert_int_equal(byi_tensor_int(&t, 0), 1);
    t.dtype = BYOC_F64;
    byi_tensor_set(&t, 0, -INFINITY);
    assert_true(byi_tensor_int(&t, 0) == INT64_MIN);
}

static void test_dims_text(void **state)
{
    const int64_t dims[] = {1, -1, 224};
    char buf[64], small[8];

    (void)state;
    assert_string_equal(byi_dims_text(buf, sizeof buf, 3, dims), "(1, ?, 224)");
    assert_string_equal(byi_dims_text(buf, sizeof buf, 1, dims), "(1,)");
    assert_string_equal(byi_dims_text(buf, sizeof buf, 0, dims), "()");
    static const char *const names[] = {"unread", "N", NULL};
    assert_string_equal(byi_shape_text(buf, sizeof buf, 3, dims, names),
                        "(1, N, 224)");
    assert_string_equal(byi_shape_text(buf, sizeof buf, 2, dims + 1, names + 2),
                        "(?, 224)");
    byi_dims_text(small, sizeof small, 3, dims);
    assert_true(strlen(small) < sizeof small);
}

static void test_types(void **state)
{
    struct byi_arena *arena = byi_arena_new();
    const int64_t dims[] = {1, 2}, symbol[] = {1, -1};
    const struct byi_type *a = byi_type_tensor(arena, BYOC_F32, 2, dims);
    const struct byi_type *b = byi_type_tensor(arena, BYOC_F32, 2, dims);
    const struct byi_type *c = byi_type_tensor(arena, BYOC_F32, 2, symbol);
    const struct byi_type *pair[] = {a, c}, *same[] = {b, c};
    const struct byi_type *t = byi_type_tuple(arena, 2, pair);
    const struct byi_type *u = byi_type_tuple(arena, 2, same);

    (void)state;
    assert_true(byi_type_equal(a, b));
    assert_false(byi_type_equal(a, c));
    assert_true(byi_type_equal(t, u));
    assert_false(byi_type_equal(t, a));
    assert_false(byi_type_equal(t, byi_type_tuple(arena, 1, pair)));
    assert_true(byi_type_equal(byi_type_func(arena, 2, pair, a),
                               byi_type_func(arena, 2, same, b)));
    assert_false(byi_type_equal(byi_type_func(arena, 2, pair, a),
                                byi_type_func(arena, 2, same, c)));
    assert_true(byi_type_is_static(a) && !byi_type_is_static(c));
    assert_int_equal(byi_type_bytes(a), 8);
    assert_true(byi_type_bytes(c) == UINT64_MAX);
    /* two types of 100 nested pairs, whose fields share types: 2^100 leaves */
    for (int i = 0; i < 100; i++) {
        const struct byi_type *tt[] = {t, t}, *uu[] = {u, u};
        t = byi_type_tuple(arena, 2, tt);
        u = byi_type_tuple(arena, 2, uu);
    }
    assert_true(byi_type_equal(t, u));
    byi_arena_free(&arena);
}

static void test_files(void **state)
{
    char folder[TEST_PATH], path[TEST_PATH + 8];
    struct byi_file file;
    struct byoc_error err = {0};
    const void *data = NULL;
    size_t n = 0;

    (void)state;
    assert_non_null(make_inner_folder(folder));
    snprintf(path, sizeof path, "%s/x", folder);
    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_EIO);
    assert_int_equal(byi_map_file(folder, &data, &n, &err), BYOC_EIO);
    assert_non_null(strstr(err.text, "expected a file"));
    assert_int_equal(byi_file_create(path, &file, &err), BYOC_OK);
    fputs("hello", file.stream);
    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_EIO);
    byi_file_abort(&file);
    assert_int_equal(byi_file_create(path, &file, &err), BYOC_OK);
    fputs("hello", file.stream);
    assert_int_equal(byi_file_commit(&file, &err), BYOC_OK);
    assert_int_equal(byi_map_file(path, &data, &n, &err), BYOC_OK);
    assert_int_equal(n, 5);
    assert_memory_equal(data, "hello", 5);
    byi_unmap(data, n);
    byi_unmap(NULL, 0);
    assert_int_equal(remove(path), 0);
    assert_int_equal(remove(folder), 0); /* nothing else was left in it */
    assert_int_equal(byi_file_create(path, &file, &err), BYOC_EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arena_is_zeroed_and_aligned),
        cmocka_unit_test(test_large_blocks_leave_the_small_block_open),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_defer_calls_last_first),
        cmocka_unit_test(test_reset_gives_zeroed_memory),
        cmocka_unit_test(test_equal_use_takes_equal_memory),
        cmocka_unit_test(test_exhaustion_calls_the_hook),
        cmocka_unit_test(test_heap),
        cmocka_unit_test(test_large_memory_occupies_its_size),
        cmocka_unit_test(test_vec_and_text),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_float_text),
        cmocka_unit_test(test_decimal_text),
        cmocka_unit_test(test_dtypes),
        cmocka_unit_test(test_half_conversions),
        cmocka_unit_test(test_narrow_round_trip),
        cmocka_unit_test(test_narrow_values),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_elements_as_numbers),
        cmocka_unit_test(test_dims_text),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
