/* SPDX-License-Identifier: Apache-2.0 */
/* strings_test.c: tests kernels on strings. */
#include "kernels.h"

static struct byi_string_store store;

static struct byi_tensor strings(uint32_t rank, const int64_t *dims,
                                 const char *const *at)
{
    struct byi_tensor t = empty_tensor(BYOC_STRING, rank, dims);
    memcpy(t.data, at, (size_t)byi_count(&t) * sizeof *at);
    return t;
}

static enum byoc_status run_with_store(struct eval *e)
{
    char scratch[1 << 12] __attribute__((aligned(64)));
    const struct byi_kernel *kernel = byi_kernel_of(e->op->id);
    const struct byi_call call = {.op = e->op,
                                  .attrs = e->attrs,
                                  .n_in = e->n_in,
                                  .n_out = e->n_out,
                                  .in = e->in,
                                  .out = e->out,
                                  .scratch = scratch,
                                  .threads = 1,
                                  .strings = &store};
    assert_true(!kernel->scratch || kernel->scratch(&call) <= sizeof scratch);
    return kernel->run(&call, &err);
}

static void expect_strings(const struct byi_tensor *t, int64_t n,
                           const char *const *expected)
{
    const char *const *at = t->data;
    assert_int_equal(byi_count(t), n);
    for (int64_t i = 0; i < n; i++)
        assert_string_equal(at[i], expected[i]);
}

#define STRINGS(key, ...)                                                      \
    {                                                                          \
        .name = key, .kind = BYI_ATTR_STRINGS,                                 \
        .n = BYI_COUNT(((const char *const[]){__VA_ARGS__})),                  \
        .strings = (const char *const[])                                       \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }

/* A tensor of numbers. */
static struct byi_tensor numbers(enum byoc_dtype dtype, uint32_t rank,
                                 const int64_t *dims, const double *at)
{
    struct byi_tensor t = empty_tensor(dtype, rank, dims);
    set(&t, at);
    return t;
}

/* Of equal keys, the first one is used. */
static void test_map_strings(void **state)
{
    const char *const x[] = {"b", "", "a", "zz", "b"};
    const char *const keys[] = {"a", "b", "b", "", "c"};
    (void)state;
    const struct byi_tensor in[] = {
        strings(1, DIMS(5), x), strings(1, DIMS(5), keys),
        numbers(BYOC_I64, 1, DIMS(5), (double[]){10, 11, 12, 13, 14}),
        numbers(BYOC_I64, 0, NULL, (double[]){-1})};
    struct eval e = prepare(BYI_OP_ML_MAP, NULL, 0, in, 4);
    assert_true(e.typed);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect(&e.out[0], (double[]){11, 13, 10, -1, 11});
    finish(&e);
}

/* Strings that are longer than a word, and share its bytes. */
static void test_map_long_strings(void **state)
{
    const char *const x[] = {"1234567", "12345678", "123456789", "12345678x"};
    const char *const keys[] = {"12345678", "1234567", "123456789"};
    (void)state;
    const struct byi_tensor in[] = {
        strings(1, DIMS(4), x), strings(1, DIMS(3), keys),
        numbers(BYOC_I64, 1, DIMS(3), (double[]){10, 11, 12}),
        numbers(BYOC_I64, 0, NULL, (double[]){-1})};
    struct eval e = prepare(BYI_OP_ML_MAP, NULL, 0, in, 4);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect(&e.out[0], (double[]){11, 10, 12, -1});
    finish(&e);
}

/* NaN can be a key, and -0 equals 0. */
static void test_map_floats(void **state)
{
    const double nan = (double)NAN;
    const char *const values[] = {"zero", "nan", "one"};
    const char *const other[] = {"other"};
    (void)state;
    const struct byi_tensor in[] = {
        numbers(BYOC_F32, 1, DIMS(5), (double[]){-0.0, nan, 1, 1.5, -nan}),
        numbers(BYOC_F32, 1, DIMS(3), (double[]){0, nan, 1}),
        strings(1, DIMS(3), values), strings(0, NULL, other)};
    struct eval e = prepare(BYI_OP_ML_MAP, NULL, 0, in, 4);
    assert_true(e.typed);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 5,
                   (const char *[]){"zero", "nan", "one", "other", "nan"});
    finish(&e);
}

static void test_normalize(void **state)
{
    const char *const x[] = {"monday", "T\xc3\xbcr", "Monday", "b"};
    (void)state;
    store.limit = 1 << 20;
    const struct byi_attr upper[] = {STRING("case", "UPPER"),
                                     STRINGS("stopwords", "monday")};
    struct byi_tensor in = strings(2, DIMS(1, 4), x);
    struct eval e = prepare(BYI_OP_TEXT_NORMALIZE, upper, 2, &in, 1);
    assert_true(e.typed);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 2, (const char *[]){"T\xc3\x9cR", "B"});
    finish(&e);
    const struct byi_attr exact[] = {STRING("case", "LOWER"),
                                     BOOL("case_sensitive", 1),
                                     STRINGS("stopwords", "monday")};
    in = strings(1, DIMS(4), x);
    e = prepare(BYI_OP_TEXT_NORMALIZE, exact, 3, &in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 3, (const char *[]){"t\xc3\xbcr", "monday", "b"});
    finish(&e);
    const struct byi_attr all_words[] = {
        STRINGS("stopwords", "MONDAY", "t\xc3\x9cr", "B")};
    in = strings(1, DIMS(4), x);
    e = prepare(BYI_OP_TEXT_NORMALIZE, all_words, 1, &in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 1, (const char *[]){""});
    finish(&e);
    byi_store_free(&store);
}

/* The store fails when its memory limit is reached. */
static void test_store_limit(void **state)
{
    const struct byi_attr upper[] = {STRING("case", "UPPER")};
    const char *const x[] = {"monday"};
    (void)state;
    struct byi_tensor in = strings(1, DIMS(1), x);
    struct eval e = prepare(BYI_OP_TEXT_NORMALIZE, upper, 1, &in, 1);
    store.limit = 30;
    assert_int_equal(run_with_store(&e), BYOC_ENOMEM);
    assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
    finish(&e);
    byi_store_free(&store);
}

/* The bigrams of the example in ONNX's specification, and unigrams. The last
 * two bigrams have indices in another order than the pool: weights belong to
 * the grams, not to the indices. */
static void test_tf_idf(void **state)
{
    static const int64_t counts[] = {0, 4}, indexes[] = {0, 1, 2, 3, 4, 6, 5};
    static const int64_t pool[] = {2, 3, 5, 4, 5, 6, 7, 8, 6, 7};
    const double x[] = {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8};
    const struct {
        const char *mode;
        int64_t min_length, skips;
        double y[7];
    } rows[] = {
        {"TF", 2, 0, {0, 0, 0, 0, 1, 1, 1}},
        {"TF", 2, 5, {0, 0, 0, 0, 1, 1, 3}},
        {"TF", 1, 5, {0, 3, 1, 0, 1, 1, 3}},
        {"IDF", 1, 5, {0, 2, 3, 0, 5, 7, 6}},
        {"TFIDF", 1, 5, {0, 6, 3, 0, 5, 7, 18}},
    };
    static const double weights[] = {1, 2, 3, 4, 5, 6, 7};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_attr attrs[] = {
            STRING("mode", rows[i].mode),
            INT("min_gram_length", rows[i].min_length),
            INT("max_gram_length", 2),
            INT("max_skip_count", rows[i].skips),
            INTS("ngram_counts", 2, counts),
            INTS("ngram_indexes", 7, indexes),
            INTS("pool_int64s", 10, pool),
            {.name = "weights",
             .kind = BYI_ATTR_FLOATS,
             .n = 7,
             .floats = weights},
        };
        struct byi_tensor in = TENSOR(BYOC_I32, 12);
        set(&in, x);
        struct eval e = prepare(BYI_OP_TEXT_TF_IDF, attrs, 8, &in, 1);
        assert_true(e.typed);
        assert_int_equal(run_with_store(&e), BYOC_OK);
        expect(&e.out[0], rows[i].y);
        finish(&e);
    }
}

static void test_concatenate(void **state)
{
    const char *const a[] = {"x", ""}, *const b[] = {"1", "2", "\xc3\xa4"};
    (void)state;
    store.limit = 1 << 20;
    struct byi_tensor in[] = {strings(2, DIMS(2, 1), a),
                              strings(1, DIMS(3), b)};
    struct eval e = prepare(BYI_OP_TEXT_CONCATENATE, NULL, 0, in, 2);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(
        &e.out[0], 6,
        (const char *[]){"x1", "x2", "x\xc3\xa4", "1", "2", "\xc3\xa4"});
    store.limit = 30;
    byi_store_free(&store);
    assert_int_equal(run_with_store(&e), BYOC_ENOMEM);
    assert_int_equal(run_fast(&e, 1), BYOC_EUNSUPPORTED);
    finish(&e);
    byi_store_free(&store);
}

/* Strings of every length from 0 to 20 are followed by one of every length:
 * more results than are stored at once. */
static void test_concatenate_lengths(void **state)
{
    enum { LENGTHS = 21 };
    static const char letters[] = "abcdefghijklmnopqrst";
    const char *x[LENGTHS];
    (void)state;
    store.limit = 1 << 20;
    for (int n = 0; n < LENGTHS; n++)
        x[n] = letters + LENGTHS - 1 - n;
    const struct byi_tensor in[] = {strings(2, DIMS(LENGTHS, 1), x),
                                    strings(1, DIMS(LENGTHS), x)};
    struct eval e = prepare(BYI_OP_TEXT_CONCATENATE, NULL, 0, in, 2);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    const char *const *found = e.out[0].data;
    for (int i = 0; i < LENGTHS * LENGTHS; i++) {
        char expected[2 * LENGTHS];
        snprintf(expected, sizeof expected, "%s%s", x[i / LENGTHS],
                 x[i % LENGTHS]);
        assert_string_equal(found[i], expected);
    }
    finish(&e);
}

/* The parts are those of Python's str.split. */
static void test_split(void **state)
{
    static const struct {
        const char *delimiter;
        int64_t maxsplit, n;
        const char *parts[6];
        double counts[2];
    } rows[] = {
        {"", 9, 6, {"a", "b", "c", "d", "", ""}, {3, 1}},
        {"", 1, 4, {"a", "b  c ", "d", ""}, {2, 1}},
        {" ", 1, 4, {"", "a b  c ", "d", ""}, {2, 1}},
        {"  ", 9, 4, {" a b", "c ", "d", ""}, {2, 1}},
        {"d", 0, 2, {" a b  c ", "d"}, {1, 1}},
    };
    const char *const x[] = {" a b  c ", "d"}, *const blanks[] = {"", "  "};
    (void)state;
    store.limit = 1 << 20;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_attr attrs[] = {STRING("delimiter", rows[i].delimiter),
                                         INT("maxsplit", rows[i].maxsplit)};
        struct byi_tensor in = strings(1, DIMS(2), x);
        struct eval e = prepare(BYI_OP_TEXT_SPLIT, attrs, 2, &in, 1);
        assert_int_equal(run_with_store(&e), BYOC_OK);
        expect_strings(&e.out[0], rows[i].n, rows[i].parts);
        expect(&e.out[1], rows[i].counts);
        finish(&e);
    }
    struct byi_tensor in = strings(1, DIMS(2), blanks);
    struct eval e = prepare(BYI_OP_TEXT_SPLIT, NULL, 0, &in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    assert_int_equal(e.out[0].dims[1], 0);
    expect(&e.out[1], (const double[]){0, 0});
    finish(&e);
    byi_store_free(&store);
}

static void test_matches(void **state)
{
    static const struct {
        const char *pattern;
        double y[4];
    } rows[] = {
        {"a|ab", {1, 1, 0, 0}},
        {".", {1, 0, 1, 0}},
        {"a*$", {1, 0, 0, 0}},
        {"[[:alpha:]]\\n?", {1, 0, 0, 1}},
    };
    const char *const x[] = {"a", "ab", "\xc3\xa4", "a\n"};
    const struct byi_attr invalid[] = {STRING("pattern", "(a")};
    (void)state;
    for (size_t i = 0; i < BYI_COUNT(rows); i++) {
        const struct byi_attr attrs[] = {STRING("pattern", rows[i].pattern)};
        struct byi_tensor in = strings(1, DIMS(4), x);
        struct eval e = prepare(BYI_OP_TEXT_MATCHES, attrs, 1, &in, 1);
        assert_int_equal(run_with_store(&e), BYOC_OK);
        expect(&e.out[0], rows[i].y);
        finish(&e);
    }
    struct byi_tensor in = strings(1, DIMS(4), x);
    struct eval e = prepare(BYI_OP_TEXT_MATCHES, invalid, 1, &in, 1);
    assert_int_equal(run_with_store(&e), BYOC_EINVAL);
    assert_non_null(strstr(err.text, "pattern '(a': "));
    finish(&e);
}

/* A string for which the compiled pattern's stack is too small, and more
 * patterns than are kept. */
static void test_many_matches(void **state)
{
    enum { LONG = 1 << 17 };
    static char text[LONG + 1];
    const char *const x[] = {text, "b1"};
    char pattern[32] = "(?:(a)|(b))*";
    (void)state;
    memset(text, 'a', LONG);
    for (int i = -1; i < 200; i++) {
        if (i >= 0)
            snprintf(pattern, sizeof pattern, "(a|b)*%d", i % 100);
        const struct byi_attr attrs[] = {STRING("pattern", pattern)};
        struct byi_tensor in = strings(1, DIMS(2), x);
        if (i >= 0)
            text[1] = '\0';
        struct eval e = prepare(BYI_OP_TEXT_MATCHES, attrs, 1, &in, 1);
        assert_int_equal(run_with_store(&e), BYOC_OK);
        expect(&e.out[0], (const double[]){i < 0, i % 100 == 1});
        finish(&e);
    }
}

/* A pattern with which a string can match in too many ways for PCRE2. */
static void test_match_limit(void **state)
{
    static const char *const x[] = {
        "ab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabc"};
    static const struct byi_attr attrs[] = {STRING("pattern", "(a|a)*b")};
    struct byi_tensor in = strings(1, DIMS(2), x);
    struct eval e = prepare(BYI_OP_TEXT_MATCHES, attrs, 1, &in, 1);
    (void)state;
    assert_int_equal(run_with_store(&e), BYOC_ELIMIT);
    assert_non_null(strstr(err.text, "element 1: match limit exceeded"));
    finish(&e);
}

static char *store_text(const char *text)
{
    char *at = byi_store_string(&store, strlen(text));
    return at ? strcpy(at, text) : NULL;
}

/* A second run of as many strings allocates no memory. */
static void test_store(void **state)
{
    (void)state;
    store.limit = 1 << 20;
    for (int run = 0; run < 4; run++) {
        char *first = store_text("first");
        for (int i = 0; i < 20000; i++)
            assert_non_null(store_text("text"));
        assert_string_equal(first, "first");
        assert_true(store.bytes < 400000);
        byi_store_reset(&store);
    }
    assert_true(store.bytes > 100000);
    const uint64_t bytes = store.bytes;
    for (int i = 0; i < 20000; i++)
        assert_non_null(store_text("text"));
    assert_int_equal(store.bytes, bytes);
    int n = 0;
    while (store_text("text"))
        n++;
    assert_true(n > 100000 && store.bytes <= store.limit);
    byi_store_free(&store);
}

static void test_equal_and_unique(void **state)
{
    const char *const a[] = {"b", "a", "b", ""}, *const b[] = {"b"};
    const struct byi_attr flat[] = {BOOL("flat", 1)};
    (void)state;
    store.limit = 1 << 20;
    struct byi_tensor in[] = {strings(1, DIMS(4), a), strings(1, DIMS(1), b)};
    struct eval e = prepare(BYI_OP_EQUAL, NULL, 0, in, 2);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect(&e.out[0], (const double[]){1, 0, 1, 0});
    finish(&e);
    in[0] = strings(1, DIMS(4), a);
    e = prepare(BYI_OP_UNIQUE, flat, 1, in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 3, (const char *[]){"", "a", "b"});
    expect(&e.out[3], (const double[]){1, 1, 2});
    e.out[0].dims[0] = e.out[1].dims[0] = e.out[3].dims[0] =
        4; /* the number that was allocated, for finish() */
    finish(&e);
}

/* Elements outside the triangle are empty strings; resizing repeats elements.
 */
static void test_trilu_and_resize(void **state)
{
    const char *const x[] = {"a", "b", "c", "d"};
    const double scales[] = {1, 2};
    (void)state;
    store.limit = 1 << 20;
    struct byi_tensor in[] = {strings(2, DIMS(2, 2), x), TENSOR(BYOC_F32, 2)};
    struct eval e = prepare(BYI_OP_TRILU, NULL, 0, in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 4, (const char *[]){"a", "b", "", "d"});
    finish(&e);
    set(&in[1], scales);
    in[0] = strings(2, DIMS(2, 2), x);
    e = prepare(BYI_OP_RESIZE, NULL, 0, in, 2);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 8,
                   (const char *[]){"a", "a", "b", "b", "c", "c", "d", "d"});
    finish(&e);
}

/* A number as a string, and back. */
static void test_cast(void **state)
{
    static const double x[] = {0.1,
                               -2.5,
                               100,
                               1e-7,
                               16777216,
                               (double)INFINITY,
                               -(double)INFINITY,
                               (double)NAN};
    static const char *const text[] = {"0.1",      "-2.5", "100",  "1e-07",
                                       "16777216", "INF",  "-INF", "NaN"};
    const struct byi_attr to_text[] = {DTYPE("dtype", BYOC_STRING)};
    const struct byi_attr to_float[] = {DTYPE("dtype", BYOC_F32)};
    (void)state;
    store.limit = 1 << 20;
    struct byi_tensor in = TENSOR(BYOC_F32, 8);
    set(&in, x);
    struct eval e = prepare(BYI_OP_CAST, to_text, 1, &in, 1);
    assert_int_equal(run_with_store(&e), BYOC_OK);
    expect_strings(&e.out[0], 8, text);
    struct byi_tensor texts = strings(1, DIMS(8), e.out[0].data);
    struct eval back = prepare(BYI_OP_CAST, to_float, 1, &texts, 1);
    assert_int_equal(run_with_store(&back), BYOC_OK);
    assert_near(&back.out[0], &e.in[0], 0, "back");
    finish(&back);
    finish(&e);
    byi_store_free(&store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_map_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_map_long_strings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_map_floats, setup, teardown),
        cmocka_unit_test_setup_teardown(test_normalize, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tf_idf, setup, teardown),
        cmocka_unit_test_setup_teardown(test_concatenate, setup, teardown),
        cmocka_unit_test_setup_teardown(test_concatenate_lengths, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_split, setup, teardown),
        cmocka_unit_test_setup_teardown(test_matches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_matches, setup, teardown),
        cmocka_unit_test_setup_teardown(test_match_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store, setup, teardown),
        cmocka_unit_test_setup_teardown(test_equal_and_unique, setup, teardown),
        cmocka_unit_test_setup_teardown(test_trilu_and_resize, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cast, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
