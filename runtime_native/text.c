/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: kernels that normalise strings and count n-grams, and the store of
 * the strings that kernels create. */
#include <locale.h>
#include <stdlib.h>

#include "kernel.h"

/* --- memory --------------------------------------------------------------- */

/* A block of memory of a store; the newest is the first of the list. */
struct byi_string_chunk {
    struct byi_string_chunk *next;
    size_t used, size;
    char at[];
};

enum { MIN_CHUNK = 16 << 10, MAX_CHUNK = 4 << 20 }; /* bytes of a chunk */

char *byi_store_string(struct byi_string_store *store, size_t n)
{
    struct byi_string_chunk *chunk = store->chunks;

    if (!chunk || chunk->size - chunk->used <= n) {
        /* chunks double in size up to a limit, so that many strings need few
         * chunks */
        const size_t next = !chunk                        ? MIN_CHUNK
                            : chunk->size < MAX_CHUNK / 2 ? 2 * chunk->size
                                                          : MAX_CHUNK;
        const uint64_t room = store->limit - store->bytes;
        const size_t size =
            n < next && next + sizeof *chunk <= room ? next : n + 1;
        const uint64_t bytes = sizeof *chunk + (uint64_t)size;
        if (n >= SIZE_MAX / 2 || bytes > room)
            return NULL;
        chunk = byi_alloc(1, (size_t)bytes);
        if (!chunk)
            return NULL;
        chunk->size = size;
        chunk->next = store->chunks;
        store->chunks = chunk;
        store->bytes += bytes;
    }
    char *at = chunk->at + chunk->used;
    chunk->used += n + 1;
    at[n] = '\0';
    return at;
}

static bool is_in_chunk(const struct byi_string_chunk *chunk, const char *text)
{
    return (uintptr_t)text - (uintptr_t)chunk->at < chunk->used;
}

bool byi_store_owns(const struct byi_string_store *store, const char *text,
                    const struct byi_string_chunk **last)
{
    if (*last && is_in_chunk(*last, text))
        return true;
    for (const struct byi_string_chunk *chunk = store->chunks; chunk;
         chunk = chunk->next)
        if (is_in_chunk(chunk, text)) {
            *last = chunk;
            return true;
        }
    return false;
}

static void free_chunks(struct byi_string_chunk *chunk)
{
    while (chunk) {
        struct byi_string_chunk *next = chunk->next;
        free(chunk);
        chunk = next;
    }
}

void byi_store_reset(struct byi_string_store *store)
{
    struct byi_string_chunk *newest = store->chunks;
    if (!newest)
        return;
    free_chunks(newest->next);
    newest->next = NULL;
    newest->used = 0;
    store->bytes = sizeof *newest + (uint64_t)newest->size;
}

void byi_store_free(struct byi_string_store *store)
{
    free_chunks(store->chunks);
    store->chunks = NULL;
    store->bytes = 0;
}

enum byoc_status byi_no_store(const struct byi_call *call,
                              struct byoc_error *err)
{
    if (call->strings)
        return byi_fail(err, BYOC_ENOMEM,
                        "%s: out of memory for strings: %llu bytes are in use, "
                        "expected at most %llu",
                        call->op->name,
                        (unsigned long long)call->strings->bytes,
                        (unsigned long long)call->strings->limit);
    return byi_fail(
        err, BYOC_EUNSUPPORTED,
        "%s: found_size a call outside of a run; the operator creates "
        "strings, so it cannot be folded",
        call->op->name);
}

/* --- text.normalize ------------------------------------------------------- */

/* x (n) or (1, n): removes stop words and changes the case of the other
 * strings. If all strings are removed, the result is one empty string. */
static enum byoc_status normalize_run(const struct byi_call *call,
                                      struct byoc_error *err)
{
    static const char *const cases[] = {"NONE", "LOWER", "UPPER"};
    const char *const *x = call->in->data, **y = call->out->data;
    const char *case_name = byi_attr_string(call->attrs, "case");
    const char *name = byi_attr_string(call->attrs, "locale");
    const struct byi_attr *stop = byi_attr_find(call->attrs, "stopwords");
    const bool any_case = !byi_attr_int(call->attrs, "case_sensitive");
    const int64_t n = byi_count(call->in), capacity = byi_count(call->out);
    const locale_t locale = byi_string_locale(name);
    enum byi_case to = BYI_CASE_KEEP;
    int64_t n_results = 0;
    bool stored = true;

    for (int i = 0; i < 3; i++)
        if (strcmp(cases[i], case_name) == 0)
            to = (enum byi_case)i;
    for (int64_t i = 0; i < n && n_results < capacity && stored; i++) {
        bool drop = false;
        for (uint32_t k = 0; k < stop->n && !drop; k++)
            drop = byi_string_equal(x[i], stop->strings[k], any_case, locale);
        if (drop)
            continue;
        y[n_results] = x[i];
        if (to != BYI_CASE_KEEP && call->strings) {
            const size_t length = byi_string_case(x[i], to, locale, NULL);
            char *text = byi_store_string(call->strings, length);
            if (text)
                byi_string_case(x[i], to, locale, text);
            y[n_results] = text;
        }
        stored = y[n_results++] && (to == BYI_CASE_KEEP || call->strings);
    }
    if (locale)
        freelocale(locale);
    for (; n_results < capacity; n_results++)
        y[n_results] = "";
    return stored ? BYOC_OK : byi_no_store(call, err);
}

/* --- text.tf_idf ---------------------------------------------------------- */

/* The n-gram pool, with a hash table with open addressing: a slot has 1 + the
 * number of the n-gram, or 0 if it is free. */
struct ngram_pool {
    const struct byi_attr *counts, *ints, *strings;
    const int64_t *indexes;
    uint32_t *slots, n_slots, n_grams;
};

/* One item of an n-gram: a number or a string. */
struct ngram_item {
    const char *text; /* NULL: a number */
    int64_t number;
};

static struct ngram_item pool_item(const struct ngram_pool *p, uint32_t i)
{
    if (p->strings->n)
        return (struct ngram_item){.text = p->strings->strings[i]};
    return (struct ngram_item){.number = p->ints->ints[i]};
}

static struct ngram_item x_item(const struct byi_tensor *x, int64_t i)
{
    if (x->dtype == BYOC_STRING)
        return (struct ngram_item){.text = ((const char *const *)x->data)[i]};
    return (struct ngram_item){.number = byi_tensor_int(x, i)};
}

static uint64_t hash_item(uint64_t h, struct ngram_item item)
{
    return item.text ? byi_hash(h, item.text, strlen(item.text))
                     : byi_hash(h, &item.number, sizeof item.number);
}

static bool same_item(struct ngram_item a, struct ngram_item b)
{
    return a.text ? strcmp(a.text, b.text) == 0 : a.number == b.number;
}

/* The index of the first item of n-gram `gram`; sets *size to its number of
 * items. The n-grams of one item come first; those of n items begin at
 * counts[n - 1]. */
static uint32_t gram_at(const struct ngram_pool *p, uint32_t gram,
                        uint32_t *size)
{
    const uint32_t n_items = p->strings->n ? p->strings->n : p->ints->n;

    for (uint32_t n = 1; n <= p->counts->n; n++) {
        const uint32_t begin = (uint32_t)p->counts->ints[n - 1];
        const uint32_t end =
            n < p->counts->n ? (uint32_t)p->counts->ints[n] : n_items;
        if (gram < (end - begin) / n) {
            *size = n;
            return begin + gram * n;
        }
        gram -= (end - begin) / n;
    }
    byi_unreachable();
}

static void fill_pool(struct ngram_pool *p)
{
    memset(p->slots, 0, p->n_slots * sizeof *p->slots);
    for (uint32_t g = 0; g < p->n_grams; g++) {
        uint32_t size, first = gram_at(p, g, &size);
        uint64_t h = size;
        for (uint32_t k = 0; k < size; k++)
            h = hash_item(h, pool_item(p, first + k));
        while (p->slots[h % p->n_slots])
            h++;
        p->slots[h % p->n_slots] = g + 1;
    }
}

/* 1 + the number of the n-gram that consists of `size` items of x, from `at` on
 * and `step` apart; 0 if the pool does not have it. */
static uint32_t find_gram(const struct ngram_pool *p,
                          const struct byi_tensor *x, int64_t at, int64_t step,
                          uint32_t size)
{
    uint64_t h = size;

    for (uint32_t k = 0; k < size; k++)
        h = hash_item(h, x_item(x, at + k * step));
    for (; p->slots[h % p->n_slots]; h++) {
        uint32_t found_size,
            first = gram_at(p, p->slots[h % p->n_slots] - 1, &found_size);
        bool same = found_size == size;
        for (uint32_t k = 0; same && k < size; k++)
            same = same_item(pool_item(p, first + k), x_item(x, at + k * step));
        if (same)
            return p->slots[h % p->n_slots];
    }
    return 0;
}

static uint32_t pool_slots(const struct byi_call *call)
{
    return 2 * byi_attr_find(call->attrs, "ngram_indexes")->n + 1;
}

static struct ngram_pool read_pool(const struct byi_call *call)
{
    const struct byi_attrs *attrs = call->attrs;
    struct ngram_pool p = {.counts = byi_attr_find(attrs, "ngram_counts"),
                           .ints = byi_attr_find(attrs, "pool_int64s"),
                           .strings = byi_attr_find(attrs, "pool_strings"),
                           .slots = call->scratch,
                           .n_slots = pool_slots(call)};

    p.indexes = byi_attr_ints(attrs, "ngram_indexes", &p.n_grams);
    fill_pool(&p);
    return p;
}

/* Count one occurrence of n-gram `gram` in *y, its element of the result. */
static void count_gram(const struct byi_call *call, uint32_t gram, float *y)
{
    const char *mode = byi_attr_string(call->attrs, "mode");
    uint32_t n;
    const double *weights = byi_attr_floats(call->attrs, "weights", &n);
    const float weight = gram < n ? (float)weights[gram] : 1;

    if (strcmp(mode, "TF") == 0)
        *y += 1;
    else if (strcmp(mode, "IDF") == 0)
        *y = weight;
    else
        *y += weight;
}

/* Count the n-grams of one row, with up to `skips` items between neighbouring
 * items of an n-gram. Single items need no skips. */
static void count_grams(const struct byi_call *call, const struct ngram_pool *p,
                        int64_t first, int64_t n, float *y)
{
    const int64_t least = byi_attr_int(call->attrs, "min_gram_length");
    const int64_t most = byi_attr_int(call->attrs, "max_gram_length");
    const int64_t skips = byi_attr_int(call->attrs, "max_skip_count");

    for (int64_t size = least; size <= most; size++)
        for (int64_t step = 1; step <= (size == 1 ? 1 : skips + 1); step++) {
            if ((size - 1) > (n - 1) / step)
                break;
            for (int64_t i = 0; i + (size - 1) * step < n; i++) {
                const uint32_t gram =
                    find_gram(p, call->in, first + i, step, (uint32_t)size);
                if (gram)
                    count_gram(call, gram - 1, &y[p->indexes[gram - 1]]);
            }
        }
}

/* x (n) or (rows, n): y (outputs) or (rows, outputs) */
static enum byoc_status tf_idf_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const struct ngram_pool p = read_pool(call);
    const int64_t rows = x->rank == 2 ? x->dims[0] : 1;
    const int64_t n = x->dims[x->rank - 1];
    const int64_t outputs = call->out->dims[call->out->rank - 1];
    float *y = call->out->data;

    (void)err;
    memset(y, 0, (size_t)(rows * outputs) * sizeof *y);
    for (int64_t r = 0; r < rows; r++, y += outputs)
        count_grams(call, &p, r * n, n, y);
    return BYOC_OK;
}

static uint64_t tf_idf_scratch(const struct byi_call *call)
{
    return pool_slots(call) * sizeof(uint32_t);
}

BYI_KERNEL_ROWS(text, {BYI_OP_TEXT_NORMALIZE, {normalize_run, NULL}},
                {BYI_OP_TEXT_TF_IDF, {tf_idf_run, tf_idf_scratch}})
