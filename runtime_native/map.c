/* SPDX-License-Identifier: Apache-2.0 */
/* map.c: ml.map: values[i] for the first i with keys[i] = x, or the default
 * value if x is not a key. Keys are in a hash table with open addressing. The
 * table is built at load if the keys are constant, otherwise in each run.
 * Numbers are compared as 64-bit words, so that NaN equals itself; -0 is
 * converted to 0. */
#include "kernels/inline.h"

#include "move.h"

enum { BLOCK = 256 }; /* elements of x that a task looks up */

/* A slot of the table: the word of a key, and the number of the key, counted
 * from 1. In a free slot the number is 0. */
struct map_slot {
    uint64_t word;
    uint64_t number;
};

/* The hash table of the keys. */
struct map_table {
    const struct byi_tensor *keys;
    const struct map_slot *slots;
    uint64_t mask; /* number of slots - 1; at least half of them are free */
};

static uint64_t word_of_double(double x)
{
    uint64_t word;
    x = x == 0 ? 0 : isnan(x) ? (double)NAN : x;
    memcpy(&word, &x, sizeof word);
    return word;
}

/* A string of less than 8 bytes is its own word. The word of another one is a
 * hash with a top byte that is not 0. */
static uint64_t word_of_text(const char *text)
{
    uint64_t word = 0;
    for (int i = 0; i < 8; i++) {
        if (!text[i])
            return word;
        word |= (uint64_t)(unsigned char)text[i] << 8 * i;
    }
    return byi_hash_text(text) | UINT64_C(1) << 56;
}

void byi_words_of(const struct byi_tensor *t, int64_t begin, int64_t n,
                  uint64_t *words)
{
#define EACH(id, type, word_of)                                                \
    case BYOC_##id: {                                                          \
        const type *x = (const type *)t->data + begin;                         \
        for (int64_t i = 0; i < n; i++)                                        \
            words[i] = word_of(x[i]);                                          \
        break;                                                                 \
    }
#define EACH_INT(id, type) EACH(id, type, (uint64_t))
    switch (t->dtype) {
        BYI_EACH_INT(EACH_INT)
        EACH_INT(BOOL, uint8_t)
        EACH(F32, float, word_of_double)
        EACH(F64, double, word_of_double)
        EACH(STRING, char *const, word_of_text)
    default:
        byi_unreachable();
    }
}

/* The slot at which the search for a word begins. A single product would depend
 * on few bits of it: words of whole numbers and of simple fractions are
 * regular, as those of type double end in many zeros. */
static uint64_t first_slot(uint64_t word, uint64_t mask)
{
    const uint64_t golden = UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t mixed = (word ^ word >> 32) * golden;
    return ((mixed ^ mixed >> 29) * golden) >> 32 & mask;
}

static bool is_key(const struct map_table *t, const struct map_slot *slot,
                   uint64_t word, const char *const *text)
{
    const char *const *keys = t->keys->data;
    return slot->word == word && (!text || byi_word_is_text(word) ||
                                  strcmp(keys[slot->number - 1], *text) == 0);
}

/* The slot of the key, or a free slot. `text` is the key if it is a string,
 * otherwise NULL. */
static uint64_t find_slot(const struct map_table *t, uint64_t word,
                          const char *const *text)
{
    uint64_t at = first_slot(word, t->mask);
    while (t->slots[at].number && !is_key(t, &t->slots[at], word, text))
        at = (at + 1) & t->mask;
    return at;
}

static uint64_t slot_count(const struct byi_tensor *keys)
{
    const uint64_t n = (uint64_t)byi_count(keys);
    uint64_t slots = 2;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

static void fill_table(const struct byi_tensor *keys, struct map_slot *slots)
{
    const struct map_table t = {keys, slots, slot_count(keys) - 1};
    const char *const *texts = keys->dtype == BYOC_STRING ? keys->data : NULL;
    memset(slots, 0, (t.mask + 1) * sizeof *slots);
    for (int64_t i = 0; i < byi_count(keys); i++) {
        uint64_t word;
        byi_words_of(keys, i, 1, &word);
        struct map_slot *slot =
            &slots[find_slot(&t, word, texts ? &texts[i] : NULL)];
        if (!slot->number) /* the first of equal keys is used */
            *slot = (struct map_slot){word, (uint64_t)i + 1};
    }
}

uint64_t byi_map_pack(const struct byi_call *call, void *to)
{
    if (to)
        fill_table(&call->in[1], to);
    return slot_count(&call->in[1]) * sizeof(struct map_slot);
}

/* Set numbers[] to the numbers of the keys that n strings are, or 0. */
static void find_texts(const struct map_table *t, const char *const *texts,
                       const uint64_t *words, int64_t n, uint64_t *numbers)
{
    for (int64_t i = 0; i < n; i++)
        numbers[i] = t->slots[find_slot(t, words[i], &texts[i])].number;
}

/* The same for words of numbers. Nearly all searches end in one of the first
 * two slots, which are compared without branches, since the CPU could not
 * predict them. A free slot has number 0, which is also the result for a word
 * that equals the slot's. */
static void find_words(const struct map_table *t, const uint64_t *words,
                       int64_t n, uint64_t *numbers)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = first_slot(words[i], t->mask);
        const struct map_slot *first = &t->slots[at];
        const struct map_slot *next = &t->slots[(at + 1) & t->mask];
        const uint64_t in_first = 0 - (uint64_t)(first->word == words[i]);
        const uint64_t in_next = 0 - (uint64_t)(next->word == words[i]);
        const uint64_t ends = in_first | (0 - (uint64_t)(first->number == 0));
        numbers[i] =
            (first->number & in_first) | (next->number & in_next & ~ends);
        if (!(ends | in_next) && next->number)
            numbers[i] = t->slots[find_slot(t, words[i], NULL)].number;
    }
}

/* y[i] = values[numbers[i] - 1], or the default value where that is 0. The
 * address is chosen without a branch, which the CPU could not predict. */
BYI_ALWAYS_INLINE void copy_values(const char *values,
                                   const char *default_value,
                                   const uint64_t *numbers, int64_t n,
                                   size_t size, char *y)
{
    for (int64_t i = 0; i < n; i++) {
        const uintptr_t found = 0 - (uintptr_t)(numbers[i] != 0);
        const uintptr_t value = (uintptr_t)values + (numbers[i] - 1) * size;
        const uintptr_t from =
            (value & found) | ((uintptr_t)default_value & ~found);
        byi_copy_element(y + i * (int64_t)size, (const char *)from, size);
    }
}

static void map_block(const struct byi_call *call, const struct map_table *t,
                      int64_t begin, int64_t n)
{
    const struct byi_tensor *x = &call->in[0];
    const size_t size = byi_dtype_bytes(call->out->dtype);
    const char *values = call->in[2].data, *default_value = call->in[3].data;
    char *y = (char *)call->out->data + begin * (int64_t)size;
    uint64_t words[BLOCK], numbers[BLOCK];

    byi_words_of(x, begin, n, words);
    if (x->dtype == BYOC_STRING)
        find_texts(t, (const char *const *)x->data + begin, words, n, numbers);
    else
        find_words(t, words, n, numbers);
    if (size == 8)
        copy_values(values, default_value, numbers, n, 8, y);
    else if (size == 4)
        copy_values(values, default_value, numbers, n, 4, y);
    else
        copy_values(values, default_value, numbers, n, size, y);
}

static enum byoc_status map_run(const struct byi_call *call,
                                struct byoc_error *err)
{
    const int64_t n = byi_count(call->in);
    const int team = byi_team(call, n * 4);
    struct map_table t = {&call->in[1], call->packed,
                          slot_count(&call->in[1]) - 1};
    (void)err;
    if (!t.slots) {
        fill_table(t.keys, call->scratch);
        t.slots = call->scratch;
    }
#pragma omp parallel for schedule(static) num_threads(team) if (team > 1)
    for (int64_t at = 0; at < n; at += BLOCK)
        map_block(call, &t, at, byi_min(BLOCK, n - at));
    return BYOC_OK;
}

static uint64_t map_scratch(const struct byi_call *call)
{
    return call->packed ? 0 : byi_map_pack(call, NULL);
}

BYI_KERNEL_ROWS(map, {BYI_OP_ML_MAP, {map_run, map_scratch}})
