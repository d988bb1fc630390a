/* SPDX-License-Identifier: Apache-2.0 */
/* tf_idf.c: text.tf_idf: counts the n-grams of rows. The n-grams of the pool
 * are in a hash table with open addressing, which is built at load. Items are
 * compared as words (byi_words_of()), which are computed once for each element
 * of x. */
#include "kernel.h"

/* An n-gram of the pool; `size` is 0 in a free slot. */
struct ngram_slot {
    uint64_t hash;
    uint32_t first, size; /* its items in the pool */
    int64_t index;        /* of its count in a row of the result */
    float weight;         /* what an occurrence adds */
};

/* The hash table, followed in memory by the words of the pool's items. */
struct ngram_table {
    const struct ngram_slot *slots;
    uint64_t mask; /* number of slots - 1; at least half of them are free */
    const uint64_t *words;
    const char *const *texts; /* the items if they are strings, or NULL */
};

/* The items of the pool as a tensor. */
static struct byi_tensor pool_items(const struct byi_call *call)
{
    const struct byi_attr *ints = byi_attr_find(call->attrs, "pool_int64s");
    const struct byi_attr *texts = byi_attr_find(call->attrs, "pool_strings");
    const struct byi_attr *a = texts->n ? texts : ints;

    return (struct byi_tensor){
        .dtype = texts->n ? BYOC_STRING : BYOC_I64,
        .rank = 1,
        .dims = {a->n},
        .data = texts->n ? (void *)(uintptr_t)a->strings
                         : (void *)(uintptr_t)a->ints,
    };
}

static uint64_t slot_count(const struct byi_call *call)
{
    const uint32_t grams = byi_attr_find(call->attrs, "ngram_indexes")->n;
    uint64_t slots = 2;

    while (slots < 2 * (uint64_t)grams)
        slots *= 2;
    return slots;
}

static struct ngram_table table_at(const struct byi_call *call,
                                   const void *memory)
{
    const struct byi_tensor items = pool_items(call);
    const uint64_t n = slot_count(call);
    const struct ngram_slot *slots = memory;

    return (struct ngram_table){slots, n - 1,
                                (const uint64_t *)(const void *)(slots + n),
                                items.dtype == BYOC_STRING ? items.data : NULL};
}

/* The hash of `size` items, `step` apart. */
static uint64_t hash_items(const uint64_t *words, int64_t step, uint32_t size)
{
    uint64_t h = size;

    for (uint32_t i = 0; i < size; i++, words += step) {
        h = (h ^ *words) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 32;
    }
    return h;
}

/* Put n-gram number `gram` into the table. Of equal n-grams the first is found
 * first. */
static void put_gram(const struct byi_call *call, const struct ngram_table *t,
                     struct ngram_slot *slots, uint32_t gram, uint32_t first,
                     uint32_t size)
{
    uint32_t n;
    const int64_t *indexes = byi_attr_ints(call->attrs, "ngram_indexes", &n);
    const double *weights = byi_attr_floats(call->attrs, "weights", &n);
    const bool weighted =
        gram < n && strcmp(byi_attr_string(call->attrs, "mode"), "TF") != 0;
    const uint64_t hash = hash_items(t->words + first, 1, size);
    uint64_t at = hash & t->mask;

    while (slots[at].size)
        at = (at + 1) & t->mask;
    slots[at] = (struct ngram_slot){hash, first, size, indexes[gram],
                                    weighted ? (float)weights[gram] : 1};
}

/* The n-grams of one item come first in the pool; those of n items begin at
 * counts[n - 1]. */
static void fill_table(const struct byi_call *call, void *memory)
{
    const struct byi_attr *counts = byi_attr_find(call->attrs, "ngram_counts");
    const struct byi_tensor items = pool_items(call);
    const struct ngram_table t = table_at(call, memory);
    struct ngram_slot *slots = memory;
    uint32_t gram = 0;

    memset(slots, 0, (t.mask + 1) * sizeof *slots);
    byi_words_of(&items, 0, items.dims[0],
                 (uint64_t *)(void *)(slots + t.mask + 1));
    for (uint32_t size = 1; size <= counts->n; size++) {
        const int64_t end =
            size < counts->n ? counts->ints[size] : items.dims[0];
        for (int64_t at = counts->ints[size - 1]; at + size <= end; at += size)
            put_gram(call, &t, slots, gram++, (uint32_t)at, size);
    }
}

uint64_t byi_tf_idf_pack(const struct byi_call *call, void *to)
{
    if (to)
        fill_table(call, to);
    return slot_count(call) * sizeof(struct ngram_slot) +
           (uint64_t)pool_items(call).dims[0] * sizeof(uint64_t);
}

/* Items of a row of x: words, and texts if they are strings. */
struct ngram_row {
    const uint64_t *words;
    const char *const *texts;
    int64_t n;
};

static bool is_gram(const struct ngram_table *t, const struct ngram_slot *slot,
                    const struct ngram_row *row, int64_t at, int64_t step)
{
    for (uint32_t k = 0; k < slot->size; k++, at += step) {
        const uint64_t word = row->words[at];
        if (t->words[slot->first + k] != word)
            return false;
        if (t->texts && !byi_word_is_text(word) &&
            strcmp(t->texts[slot->first + k], row->texts[at]) != 0)
            return false;
    }
    return true;
}

/* The n-gram that consists of `size` items of the row from `at` on, `step`
 * apart; NULL if the pool does not have it. */
static const struct ngram_slot *find_gram(const struct ngram_table *t,
                                          const struct ngram_row *row,
                                          int64_t at, int64_t step,
                                          uint32_t size)
{
    const uint64_t hash = hash_items(row->words + at, step, size);
    const struct ngram_slot *slot;

    for (uint64_t i = hash;; i++) {
        slot = &t->slots[i & t->mask];
        if (!slot->size)
            return NULL;
        if (slot->hash == hash && slot->size == size &&
            is_gram(t, slot, row, at, step))
            return slot;
    }
}

/* Count the n-grams of one row, with up to `skips` items between neighbouring
 * items of an n-gram. Single items need no skips. */
static void count_grams(const struct byi_call *call,
                        const struct ngram_table *t,
                        const struct ngram_row *row, float *y)
{
    const int64_t least = byi_attr_int(call->attrs, "min_gram_length");
    const int64_t most = byi_attr_int(call->attrs, "max_gram_length");
    const int64_t skips = byi_attr_int(call->attrs, "max_skip_count");
    const bool once = strcmp(byi_attr_string(call->attrs, "mode"), "IDF") == 0;

    for (int64_t size = least; size <= most; size++)
        for (int64_t step = 1; step <= (size == 1 ? 1 : skips + 1); step++) {
            if ((size - 1) > (row->n - 1) / step)
                break;
            for (int64_t i = 0; i + (size - 1) * step < row->n; i++) {
                const struct ngram_slot *gram =
                    find_gram(t, row, i, step, (uint32_t)size);
                if (gram && once)
                    y[gram->index] = gram->weight;
                else if (gram)
                    y[gram->index] += gram->weight;
            }
        }
}

/* x (n) or (rows, n): y (outputs) or (rows, outputs) */
static enum byoc_status tf_idf_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    const int64_t n = x->dims[x->rank - 1];
    const int64_t outputs = call->out->dims[call->out->rank - 1];
    const char *const *texts = x->dtype == BYOC_STRING ? x->data : NULL;
    uint64_t *words = call->scratch;
    float *y = call->out->data;
    const int team = byi_team(call, rows * (n * 16 + outputs));

    (void)err;
    if (!call->packed)
        fill_table(call, words + byi_count(x));
    const struct ngram_table t =
        table_at(call, call->packed ? call->packed : words + byi_count(x));
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t r = 0; r < rows; r++) {
        const struct ngram_row row = {words + r * n,
                                      texts ? texts + r * n : NULL, n};
        byi_words_of(x, r * n, n, words + r * n);
        memset(y + r * outputs, 0, (size_t)outputs * sizeof *y);
        count_grams(call, &t, &row, y + r * outputs);
    }
    return BYOC_OK;
}

/* The words of x, and the table unless it is packed. */
static uint64_t tf_idf_scratch(const struct byi_call *call)
{
    return (uint64_t)byi_count(call->in) * sizeof(uint64_t) +
           (call->packed ? 0 : byi_tf_idf_pack(call, NULL));
}

BYI_KERNEL_ROWS(tf_idf, {BYI_OP_TEXT_TF_IDF, {tf_idf_run, tf_idf_scratch}})
