/* SPDX-License-Identifier: Apache-2.0 */
/* rules_text.c: type rules of operators on strings. */
#include "rules.h"

#include <locale.h>
#include <string.h>

/* Count the strings of x that are not stop words; at least 1, since ONNX's
 * result is one empty string if all are. */
static int64_t count_remaining(const struct byi_infer *t,
                               const struct byi_tensor *x)
{
    const struct byi_attr *stop = byi_attr_find(t->attrs, "stopwords");
    const bool any_case = !byi_attr_int(t->attrs, "case_sensitive");
    const locale_t locale =
        byi_string_locale(byi_attr_string(t->attrs, "locale"));
    const char *const *at = x->data;
    int64_t n = byi_elements(x->rank, x->dims), remaining = 0;

    for (int64_t i = 0; i < n; i++) {
        bool drop = false;
        for (uint32_t k = 0; k < stop->n && !drop; k++)
            drop = byi_string_equal(at[i], stop->strings[k], any_case, locale);
        remaining += !drop;
    }
    if (locale)
        freelocale(locale);
    return remaining ? remaining : 1;
}

enum byoc_status byi_rule_text_normalize(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const struct byi_tensor *known = byi_known_value(t, 0);
    int64_t dims[] = {1, 1};
    BYI_TRY(byi_want_word(t, "case", "NONE|LOWER|UPPER"));
    if (x->rank != 1 && (x->rank != 2 || !byi_dims_agree(x->dims[0], 1))) {
        char text[160];
        return byi_rule_fail(
            t, "x has shape %s, expected (n,) or (1, n)",
            byi_dims_text(text, sizeof text, x->rank, x->dims));
    }
    dims[x->rank - 1] =
        known ? count_remaining(t, known) : byi_rule_new_symbol(t);
    return byi_rule_tensor(t, BYOC_STRING, x->rank, dims);
}

enum byoc_status byi_rule_text_concatenate(struct byi_infer *t)
{
    const struct byi_type *a = t->in[0], *b = t->in[1];
    int64_t dims[BYI_MAX_RANK];
    uint32_t rank;
    BYI_TRY(byi_want_dtype(t, 0, BYI_BIT(BYOC_STRING), "a"));
    BYI_TRY(byi_want_same_dtype(t, 1, 0, "b"));
    BYI_TRY(
        byi_dims_broadcast(t, a->rank, a->dims, b->rank, b->dims, &rank, dims));
    return byi_rule_tensor(t, BYOC_STRING, rank, dims);
}

/* The largest number of parts that a string of x is split into. */
static int64_t count_parts(const struct byi_infer *t,
                           const struct byi_tensor *x)
{
    const char *delimiter = byi_attr_string(t->attrs, "delimiter");
    const int64_t max_splits = byi_attr_int(t->attrs, "maxsplit");
    const int64_t n = byi_elements(x->rank, x->dims);
    int64_t longest = 0;

    for (int64_t i = 0; i < n; i++) {
        const char *at = ((const char *const *)x->data)[i];
        size_t length;
        int64_t parts = 0;
        while (
            byi_string_next_part(&at, delimiter, parts == max_splits, &length))
            parts++;
        longest = parts > longest ? parts : longest;
    }
    return longest;
}

enum byoc_status byi_rule_text_split(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const struct byi_tensor *known = byi_known_value(t, 0);
    int64_t dims[BYI_MAX_RANK + 1];
    if (byi_attr_int(t->attrs, "maxsplit") < 0)
        return byi_rule_fail(t, "maxsplit is %lld, expected 0 or more",
                             (long long)byi_attr_int(t->attrs, "maxsplit"));
    memcpy(dims, x->dims, x->rank * sizeof *dims);
    dims[x->rank] = known ? count_parts(t, known) : byi_rule_new_symbol(t);
    return byi_rule_tensors(
        t, 2,
        (struct byi_rule_field[]){{BYOC_STRING, x->rank + 1, dims},
                                  {BYOC_I64, x->rank, x->dims}});
}

enum byoc_status byi_rule_text_matches(struct byi_infer *t)
{
    return byi_rule_like(t, BYOC_BOOL);
}

/* Check ngram_counts, whose entry i is the index in the pool where the n-grams
 * of i + 1 items begin, and count the n-grams. */
static enum byoc_status check_pool(const struct byi_infer *t, uint32_t pool,
                                   uint32_t *grams)
{
    uint32_t n;
    const int64_t *counts = byi_attr_ints(t->attrs, "ngram_counts", &n);
    *grams = 0;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t end = i + 1 < n ? counts[i + 1] : pool;
        if (counts[i] < 0 || end > pool || counts[i] > end ||
            (end - counts[i]) % (i + 1) != 0)
            return byi_rule_fail(
                t,
                "ngram_counts[%u] is %lld and the next entry or end %lld, "
                "expected whole %u-grams in a pool of %u items",
                i, (long long)counts[i], (long long)end, i + 1, pool);
        *grams += (uint32_t)((end - counts[i]) / (i + 1));
    }
    return BYOC_OK;
}

static enum byoc_status check_grams(const struct byi_infer *t)
{
    const int64_t min_length = byi_attr_int(t->attrs, "min_gram_length");
    const int64_t max_length = byi_attr_int(t->attrs, "max_gram_length");
    const int64_t skips = byi_attr_int(t->attrs, "max_skip_count");
    uint32_t n;
    byi_attr_ints(t->attrs, "ngram_counts", &n);
    if (min_length < 1 || max_length < min_length || max_length > n)
        return byi_rule_fail(t,
                             "min_gram_length is %lld and max_gram_length "
                             "%lld, expected 1 to %u, the length of "
                             "ngram_counts, in this order",
                             (long long)min_length, (long long)max_length, n);
    if (skips < 0 || skips > INT32_MAX)
        return byi_rule_fail(t,
                             "max_skip_count is %lld, expected 0 to 2^31 - 1",
                             (long long)skips);
    return BYOC_OK;
}

enum byoc_status byi_rule_text_tf_idf(struct byi_infer *t)
{
    const struct byi_type *x = t->in[0];
    const uint32_t ints = byi_attr_find(t->attrs, "pool_int64s")->n;
    const uint32_t strings = byi_attr_find(t->attrs, "pool_strings")->n;
    uint32_t grams, n, n_weights;
    const int64_t *indexes = byi_attr_ints(t->attrs, "ngram_indexes", &n);
    int64_t max_index = -1;
    byi_attr_floats(t->attrs, "weights", &n_weights);
    BYI_TRY(byi_want_dtype(t, 0, BYI_INDEX | BYI_BIT(BYOC_STRING), "x"));
    BYI_TRY(byi_want_word(t, "mode", "TF|IDF|TFIDF"));
    if (x->rank < 1 || x->rank > 2)
        return byi_rule_fail(t, "x has rank %u, expected 1 or 2", x->rank);
    if ((x->dtype == BYOC_STRING ? ints : strings) != 0)
        return byi_rule_fail(
            t, "x has type %s and %s has %u entries, expected none",
            byoc_dtype_name(x->dtype),
            x->dtype == BYOC_STRING ? "pool_int64s" : "pool_strings",
            x->dtype == BYOC_STRING ? ints : strings);
    BYI_TRY(check_pool(t, strings ? strings : ints, &grams));
    BYI_TRY(check_grams(t));
    for (uint32_t i = 0; i < n; i++) {
        if (indexes[i] < 0 || indexes[i] > INT32_MAX)
            return byi_rule_fail(
                t, "ngram_indexes[%u] is %lld, expected 0 to 2^31 - 1", i,
                (long long)indexes[i]);
        max_index = indexes[i] > max_index ? indexes[i] : max_index;
    }
    if (n == 0)
        return byi_rule_fail(t, "found 0 ngram_indexes, expected 1 or more");
    if (n != grams)
        return byi_rule_fail(t,
                             "found %u ngram_indexes, expected one for each of "
                             "the %u n-grams in the pool",
                             n, grams);
    if (n_weights && n_weights != n)
        return byi_rule_fail(t,
                             "found %u weights, expected none, or one for each "
                             "of the %u n-grams in the pool",
                             n_weights, grams);
    const int64_t dims[] = {x->dims[0], max_index + 1};
    return byi_rule_tensor(t, BYOC_F32, x->rank, dims + (x->rank == 1));
}
