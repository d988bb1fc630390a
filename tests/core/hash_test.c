/* SPDX-License-Identifier: Apache-2.0 */
/* hash_test.c: tests SHA-256 against the examples of FIPS 180-4, with input in
 * pieces of any size; and the distribution of the hash for hash tables.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/sha256.h"

#include <cmocka.h>

static void check(const char *text, const char *expected)
{
    struct byi_sha256 s;
    char hex[65];

    byi_sha256_init(&s);
    byi_sha256_add(&s, text, strlen(text));
    byi_sha256_hex(&s, hex);
    assert_string_equal(hex, expected);
}

static void test_sha256_examples(void **state)
{
    (void)state;
    check("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852"
              "b855");
    check("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f2"
                 "0015ad");
    check("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void test_sha256_million(void **state)
{
    static char a[1000];
    struct byi_sha256 s;
    char hex[65];

    (void)state;
    memset(a, 'a', sizeof a);
    byi_sha256_init(&s);
    for (int i = 0; i < 1000; i++)
        byi_sha256_add(&s, a, sizeof a);
    byi_sha256_hex(&s, hex);
    assert_string_equal(
        hex,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_sha256_any_pieces(void **state)
{
    uint8_t data[300];
    char whole[65], pieces[65];
    struct byi_sha256 s;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 37);
    for (size_t n = 0; n < sizeof data; n += 5) {
        byi_sha256_init(&s);
        byi_sha256_add(&s, data, n);
        byi_sha256_hex(&s, whole);
        for (size_t step = 1; step < 80; step += 7) {
            byi_sha256_init(&s);
            for (size_t i = 0; i < n; i += step)
                byi_sha256_add(&s, data + i, n - i < step ? n - i : step);
            byi_sha256_hex(&s, pieces);
            assert_string_equal(whole, pieces);
        }
    }
}

/* The portable code gives the same hash as the CPU's instructions, if it has
 * them. */
static void test_sha256_plain(void **state)
{
    uint8_t data[64 * 7];
    struct byi_sha256 s;
    uint32_t h[8];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * i + 7 * i);
    for (size_t n = 0; n <= 7; n++) {
        byi_sha256_init(&s);
        memcpy(h, s.h, sizeof h);
        byi_sha256_add(&s, data, 64 * n);
        byi_sha256_plain(h, data, n);
        assert_memory_equal(h, s.h, sizeof h);
    }
}

/* Every bit of the data, the length and the seed change the hash. */
static void test_hash_depends_on_everything(void **state)
{
    uint8_t data[100] = {0};

    (void)state;
    for (size_t n = 0; n < sizeof data; n++) {
        uint64_t h = byi_hash(1, data, n);
        assert_true(h == byi_hash(1, data, n));
        assert_true(h != byi_hash(2, data, n));
        assert_true(h != byi_hash(1, data, n + 1));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
            assert_true(h != byi_hash(1, data, n));
            data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    }
    assert_true(byi_hash(0, NULL, 0) == byi_hash(0, data, 0));
}

/* Numbered names spread over the slots of a table by their low bits. */
static void test_hash_spreads(void **state)
{
    enum { N = 1 << 16 };
    uint8_t *count = calloc(N, 1);
    uint32_t max_chain = 0;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "node_%u", i);
        uint8_t c = ++count[byi_hash(0, name, (size_t)n) % N];
        max_chain = c > max_chain ? c : max_chain;
    }
    assert_true(max_chain < 16);
    free(count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256_examples),
        cmocka_unit_test(test_sha256_million),
        cmocka_unit_test(test_sha256_any_pieces),
        cmocka_unit_test(test_sha256_plain),
        cmocka_unit_test(test_hash_depends_on_everything),
        cmocka_unit_test(test_hash_spreads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
