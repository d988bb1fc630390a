/* SPDX-License-Identifier: Apache-2.0 */
/* select.c: kernels that select elements by comparing them (topk, unique). They
 * compare 64-bit keys, so that one loop handles every type; NaN is the largest
 * number and equals itself, and -0 equals 0. */
#include "move.h"

/* Returns the sort key of a float whose encoding is `value`, `bits` wide; `inf`
 * is the encoding of infinity. */
static uint64_t key_of_float(uint64_t value, uint32_t bits, uint64_t inf)
{
    const uint64_t sign = (uint64_t)1 << (bits - 1);
    const uint64_t magnitude = value & (sign - 1);
    if (magnitude > inf)
        return UINT64_MAX; /* NaN */
    /* all ones if negative: a branch would be mispredicted */
    const uint64_t negative = 0 - (value >> (bits - 1));
    return sign + ((magnitude ^ negative) - negative);
}

static uint64_t load(const char *at, size_t size)
{
    uint8_t value8;
    uint16_t value16;
    uint32_t value32;
    uint64_t value64;
    switch (size) {
    case 1:
        memcpy(&value8, at, 1);
        return value8;
    case 2:
        memcpy(&value16, at, 2);
        return value16;
    case 4:
        memcpy(&value32, at, 4);
        return value32;
    default:
        memcpy(&value64, at, 8);
        return value64;
    }
}

/* How to compute keys from elements of a type. */
struct key_format {
    enum byoc_dtype dtype;
    size_t size; /* bytes of an element */
    bool is_float;
    uint64_t flip; /* sign bit of a signed integer, else 0; XORed so that keys
                    * compare as unsigned numbers */
    uint64_t inf;  /* for floats: the encoding of infinity */
};

static struct key_format key_format_of(enum byoc_dtype dtype)
{
    struct key_format k = {.dtype = dtype, .size = byi_dtype_bytes(dtype)};
    k.is_float = byi_dtype_is_float(dtype);
    if (k.is_float)
        k.inf = dtype == BYOC_F16    ? 0x7c00
                : dtype == BYOC_BF16 ? 0x7f80
                : dtype == BYOC_F32  ? 0x7f800000
                                     : 0x7ff0000000000000;
    else if (byi_dtype_is_signed(dtype))
        k.flip = (uint64_t)1 << (8 * k.size - 1);
    return k;
}

static uint64_t key_at(const struct key_format *k, const char *data, int64_t i)
{
    const uint64_t value = load(data + i * (int64_t)k->size, k->size);
    if (k->is_float)
        return key_of_float(value, (uint32_t)(8 * k->size), k->inf);
    return value ^ k->flip;
}

/* An element's key, and its index. */
struct keyed_index {
    uint64_t key;
    int64_t index;
};

enum { RADIX = 256 };

/* Sort `from` to `to` by byte `digit` of the keys, keeping the order of equal
 * digits. `count` has the number of elements with each digit. The same pass
 * counts byte `next` of the keys in next_count: a pass of its own would be slow
 * if many elements share a counter, whose increments wait for each other. */
static void sort_digit(const struct keyed_index *from, struct keyed_index *to,
                       int64_t n, int digit, int64_t *count, int next,
                       int64_t *next_count)
{
    int64_t at = 0;
    for (int i = 0; i < RADIX; i++) {
        const int64_t first = at;
        at += count[i];
        count[i] = first;
    }
    memset(next_count, 0, RADIX * sizeof *next_count);
    for (int64_t i = 0; i < n; i++) {
        const struct keyed_index item = from[i];
        next_count[item.key >> 8 * next & 255]++;
        to[count[item.key >> 8 * digit & 255]++] = item;
    }
}

/* Sort n > 0 elements by keys of `size` bytes, with a stable LSD radix sort
 * that skips digits which are equal in all keys. Returns the one of `from` and
 * `to` that has the result. */
static struct keyed_index *sort_keys(struct keyed_index *from,
                                     struct keyed_index *to, int64_t n,
                                     size_t size)
{
    struct keyed_index *at[2] = {from, to};
    int64_t counts[2][RADIX] = {{0}};
    int digits[sizeof(uint64_t) + 1], n_digits = 0;
    uint64_t varying = 0;
    for (int64_t i = 0; i < n; i++)
        varying |= from[i].key ^ from[0].key;
    for (int digit = 0; digit < (int)size; digit++)
        if (varying >> 8 * digit & 255)
            digits[n_digits++] = digit;
    digits[n_digits] = 0; /* counted after the last digit, and not used */
    for (int64_t i = 0; n_digits && i < n; i++)
        counts[0][from[i].key >> 8 * digits[0] & 255]++;
    for (int d = 0; d < n_digits; d++)
        sort_digit(at[d % 2], at[(d + 1) % 2], n, digits[d], counts[d % 2],
                   digits[d + 1], counts[(d + 1) % 2]);
    return at[n_digits % 2];
}

/* --- topk --------------------------------------------------------------- */

/* Whether a comes after b in the result: a has the smaller key, or the same key
 * and the larger index. */
static bool after(const struct keyed_index *a, const struct keyed_index *b)
{
    return a->key != b->key ? a->key < b->key : a->index > b->index;
}

/* Add c to a heap of i elements, or replace the worst of k, which is first. */
static void add_to_heap(struct keyed_index *heap, int64_t i, int64_t k,
                        const struct keyed_index c)
{
    if (i < k) {
        heap[i] = c;
        for (int64_t at = i == k - 1 ? k / 2 : 0; at-- > 0;)
            BYI_SIFT_DOWN(heap, k, at, after);
    } else if (after(&heap[0], &c)) {
        heap[0] = c;
        BYI_SIFT_DOWN(heap, k, 0, after);
    }
}

/* Select k of n elements in a heap, then sort it. */
static void select_best(const struct key_format *format, const char *data,
                        int64_t n, bool largest, struct keyed_index *best,
                        int64_t k)
{
    int64_t (*const skip)(const void *, int64_t, int64_t, int64_t) =
        n > 32 ? byi_simd()->skip[!largest][format->dtype] : NULL;
    for (int64_t i = 0; i < n; i++) {
        if (i >= k && skip)
            i = skip(data, i, n, best[0].index);
        if (i >= n)
            break;
        const uint64_t key = key_at(format, data, i);
        add_to_heap(best, i, k, (struct keyed_index){largest ? key : ~key, i});
    }
    for (int64_t last = k - 1; last > 0; last--) {
        const struct keyed_index end = best[0];
        best[0] = best[last];
        best[last] = end;
        BYI_SIFT_DOWN(best, last, 0, after);
    }
}

/* Sort all n elements in the order of the result. Returns the one of `from` and
 * `to` that has the result. */
static struct keyed_index *sort_all(const struct key_format *format,
                                    const char *data, int64_t n, bool largest,
                                    struct keyed_index *from,
                                    struct keyed_index *to)
{
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_at(format, data, i);
        from[i] = (struct keyed_index){largest ? ~key : key, i};
    }
    return sort_keys(from, to, n, format->size);
}

/* A call of topk: selects k of n elements in each line of x (outer, n, inner),
 * to y (outer, k, inner). If inner > 1, TOPK_LINES lines at a time are copied
 * to contiguous memory first. */
struct topk {
    const struct byi_call *call;
    struct key_format format;
    bool largest;
    int64_t lines, n, k, inner;
};

enum {
    TOPK_LINES = BYI_TOP_LINES,
    TOPK_ROWS = 64 /* elements of each line whose keys are computed together */
};

static struct topk read_topk(const struct byi_call *call)
{
    const struct byi_tensor *x = call->in, *y = call->out;
    const uint32_t axis = byi_attr_axis(call->attrs, x->rank);
    return (struct topk){
        .call = call,
        .format = key_format_of(x->dtype),
        .largest = byi_attr_int(call->attrs, "largest") != 0,
        .lines = byi_span(x, 0, axis) * byi_span(x, axis + 1, x->rank),
        .n = x->dims[axis],
        .k = y->dims[axis],
        .inner = byi_span(x, axis + 1, x->rank),
    };
}

/* Whether sorting all elements is faster than a heap of k. */
static bool sorts(const struct topk *t)
{
    return t->n >= 64 && t->k >= t->n / 8;
}

/* Whether to select from TOPK_LINES lines at once, each in a lane, which
 * compares each element with up to k keys. If lines are long and contiguous,
 * selecting from one line at a time skips most elements faster. */
static bool in_lanes(const struct topk *t)
{
    if (t->lines < TOPK_LINES / 2 || t->n > INT32_MAX)
        return false;
    return (t->inner > 1 && t->k <= 8) || (t->n <= 512 && t->n * t->k <= 16384);
}

/* Bytes of the keys and of the indices of the best of TOPK_LINES lines. */
static uint64_t lanes_bytes(const struct topk *t)
{
    return TOPK_LINES * (uint64_t)t->k * sizeof(int64_t);
}

static uint64_t selection_bytes(const struct topk *t)
{
    if (in_lanes(t))
        return 2 * lanes_bytes(t);

    const int64_t candidates = sorts(t) ? 2 * t->n : t->k;
    return byi_align_bytes((uint64_t)candidates * sizeof(struct keyed_index));
}

/* Bytes of scratch of a thread. */
static uint64_t topk_bytes(const struct topk *t)
{
    const uint64_t lines = t->inner > 1 && !in_lanes(t) ? TOPK_LINES : 0;
    return selection_bytes(t) +
           byi_align_bytes(lines * (uint64_t)t->n * t->format.size);
}

static uint64_t topk_scratch(const struct byi_call *call)
{
    const struct topk t = read_topk(call);
    return topk_bytes(&t) * call->threads;
}

/* Compute one line, whose elements are contiguous at src. Its results start at
 * element `to` and are t->inner apart. */
static void topk_line(const struct topk *t, const char *src, int64_t to,
                      struct keyed_index *heap)
{
    const int64_t size = (int64_t)t->format.size;
    int64_t *index = t->call->out[1].data;
    char *values = t->call->out->data;
    if (sorts(t))
        heap = sort_all(&t->format, src, t->n, t->largest, heap, heap + t->n);
    else
        select_best(&t->format, src, t->n, t->largest, heap, t->k);
    for (int64_t j = 0; j < t->k; j++, to += t->inner) {
        byi_copy_element(values + to * size, src + heap[j].index * size,
                         t->format.size);
        index[to] = heap[j].index;
    }
}

/* Compute lines [from, from + lines) of one outer index. */
static void topk_lines(const struct topk *t, int64_t outer, int64_t from,
                       int64_t lines, char *scratch)
{
    const int64_t size = (int64_t)t->format.size;
    struct keyed_index *heap = (void *)scratch;
    char *buffer = scratch + selection_bytes(t);
    const char *src = (const char *)t->call->in->data +
                      (outer * t->n * t->inner + from) * size;
    if (t->inner > 1)
        byi_transpose(t->format.size, src, t->inner, t->n, lines, buffer, t->n);
    for (int64_t l = 0; l < lines; l++)
        topk_line(t, t->inner > 1 ? buffer + l * t->n * size : src,
                  outer * t->k * t->inner + from + l, heap);
}

/* Whether the only result of each line is the one that argmax or argmin finds.
 * argmin finds a NaN, which topk finds last. */
static bool is_extreme(const struct topk *t)
{
    return t->k == 1 && !byi_dtype_is_half(t->format.dtype) &&
           (t->largest || !t->format.is_float);
}

static void run_extreme(const struct topk *t)
{
    const struct byi_tensor *x = t->call->in;
    const struct byi_index_search p = {
        .dtype = t->format.dtype,
        .outer = byi_count(x) / (t->n * t->inner),
        .n = t->n,
        .inner = t->inner,
        .largest = t->largest,
        .x = x->data,
    };
    int64_t *index = t->call->out[1].data, at[TOPK_LINES];
    char *values = t->call->out->data;
    byi_index_search_run(&p, byi_team(t->call, byi_count(x)), index);
    for (int64_t i = 0; i < p.outer * t->inner; i += TOPK_LINES) {
        const int64_t count = byi_min(TOPK_LINES, p.outer * t->inner - i);
        for (int64_t l = 0, line = i; l < count; l++, line++)
            at[l] = t->inner == 1
                        ? line * t->n + index[line]
                        : (line / t->inner * t->n + index[line]) * t->inner +
                              line % t->inner;
        byi_gather_elements(values + i * (int64_t)t->format.size, x->data, at,
                            count, t->format.size);
    }
}

/* --- topk of TOPK_LINES lines at once ----------------------------------- */

/* Set to[] to the keys of n elements, as byi_simd's `keys` does, also of bools.
 */
static void load_keys(const struct topk *t, const char *src, int64_t n,
                      void *to)
{
    const int32_t flip = t->largest ? 0 : -1;
    int32_t *keys = to;
    if (byi_simd()->keys[t->format.dtype]) {
        byi_simd()->keys[t->format.dtype](src, n, !t->largest, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        keys[i] = (int32_t)key_at(&t->format, src, i) ^ flip;
}

/* Set keys (rows, TOPK_LINES) to those of elements `row` and following of lines
 * [line, line + lines); `size` is that of a key. The keys of adjacent elements
 * are computed together. */
static void load_lanes(const struct topk *t, int64_t line, int64_t lines,
                       int64_t row, int64_t rows, size_t size, char *keys)
{
    _Alignas(64) char line_keys[TOPK_LINES * TOPK_ROWS * sizeof(int64_t)];
    const int64_t width = (int64_t)size, inner = t->inner;
    for (int64_t l = 0, count = 1; l < lines; l += count) {
        const int64_t at = (line + l) % inner;
        const char *src =
            (const char *)t->call->in->data +
            ((line + l - at) * t->n + row * inner) * (int64_t)t->format.size;
        count = byi_min(lines - l, inner - at);
        if (inner == 1)
            load_keys(t, src, rows, line_keys + l * rows * width);
        else if (inner < TOPK_LINES)
            load_keys(t, src, rows * inner, line_keys);
        for (int64_t r = 0; inner > 1 && r < rows; r++) {
            char *to = keys + (r * TOPK_LINES + l) * width;
            if (inner < TOPK_LINES)
                memcpy(to, line_keys + (r * inner + at) * width,
                       (size_t)(count * width));
            else
                load_keys(t, src + (r * inner + at) * (int64_t)t->format.size,
                          count, to);
        }
    }
    if (inner == 1)
        byi_transpose(size, line_keys, rows, lines, rows, keys, TOPK_LINES);
}

/* Write the results of lane `lane`, whose indices are at index[]. */
static void store_lane(const struct topk *t, int64_t line, int64_t lane,
                       size_t size, const char *index)
{
    const int64_t element = (int64_t)t->format.size;
    const int64_t outer = line / t->inner, inner = line % t->inner;
    const char *src = t->call->in->data;
    char *values = t->call->out->data;
    int64_t *indices = t->call->out[1].data;
    for (int64_t j = 0; j < t->k; j++) {
        const int64_t at = j * TOPK_LINES + lane;
        const int64_t i = size == sizeof(int64_t)
                              ? ((const int64_t *)(const void *)index)[at]
                              : ((const int32_t *)(const void *)index)[at];
        const int64_t from = (outer * t->n + i) * t->inner + inner;
        const int64_t to = (outer * t->k + j) * t->inner + inner;
        byi_copy_element(values + to * element, src + from * element,
                         t->format.size);
        indices[to] = i;
    }
}

/* Select from lines [line, line + lines). */
static void select_lanes(const struct topk *t, int64_t line, int64_t lines,
                         char *best)
{
    _Alignas(64) char keys[TOPK_LINES * TOPK_ROWS * sizeof(int64_t)];
    const size_t size = t->format.size == 8 ? sizeof(int64_t) : sizeof(int32_t);
    char *index = best + lanes_bytes(t);
    memset(keys, 0, sizeof keys); /* also of the lanes without a line */
    for (int64_t row = 0; row < t->n; row += TOPK_ROWS) {
        const int64_t rows = byi_min(TOPK_ROWS, t->n - row);
        load_lanes(t, line, lines, row, rows, size, keys);
        byi_simd()->top[size == sizeof(int64_t)](keys, rows, row, t->k, best,
                                                 index);
    }
    for (int64_t l = 0; l < lines; l++)
        store_lane(t, line + l, l, size, index);
}

/* Compute task i of those that topk_run() describes. */
static void topk_task(const struct topk *t, int64_t i, char *scratch)
{
    const int64_t blocks = byi_ceil_div(t->inner, TOPK_LINES);
    const int64_t from = in_lanes(t) ? i * TOPK_LINES : i % blocks * TOPK_LINES;
    if (in_lanes(t))
        select_lanes(t, from, byi_min(TOPK_LINES, t->lines - from), scratch);
    else
        topk_lines(t, i / blocks, from, byi_min(TOPK_LINES, t->inner - from),
                   scratch);
}

/* A task has TOPK_LINES adjacent lines: of one outer index, unless they are
 * selected from in lanes. */
static enum byoc_status topk_run(const struct byi_call *call,
                                 struct byoc_error *err)
{
    (void)err;
    const struct topk t = read_topk(call);
    if (t.k == 0 || t.inner == 0 || byi_count(call->in) == 0)
        return BYOC_OK;
    if (t.n == 1) {
        const size_t lines = (size_t)t.lines;
        memcpy(call->out->data, call->in->data, lines * t.format.size);
        memset(call->out[1].data, 0, lines * sizeof(int64_t));
        return BYOC_OK;
    }
    if (is_extreme(&t)) {
        run_extreme(&t);
        return BYOC_OK;
    }
    const int64_t tasks =
        in_lanes(&t) ? byi_ceil_div(t.lines, TOPK_LINES)
                     : t.lines / t.inner * byi_ceil_div(t.inner, TOPK_LINES);
    const int64_t weight = sorts(&t) ? 32 : 8; /* operations per element */
    const int64_t team =
        byi_min(tasks, byi_team(call, weight * byi_count(call->in)));
#pragma omp parallel for num_threads((int)team) if (team > 1)
    for (int64_t p = 0; p < team; p++) {
        char *scratch = (char *)call->scratch + (uint64_t)p * topk_bytes(&t);
        for (int64_t i = tasks * p / team; i < tasks * (p + 1) / team; i++)
            topk_task(&t, i, scratch);
    }
    return BYOC_OK;
}

/* --- unique ------------------------------------------------------------- */

/* Slices along the middle axis of x (outer, n, inner). */
struct unique_slices {
    struct key_format format;
    bool strings;
    const char *x;
    int64_t outer, n, inner;
};

static int compare_elements(const struct unique_slices *s, int64_t a, int64_t b)
{
    if (s->strings) {
        const char *const *at = (const char *const *)(const void *)s->x;
        return strcmp(at[a], at[b]);
    }
    const uint64_t ka = key_at(&s->format, s->x, a);
    const uint64_t kb = key_at(&s->format, s->x, b);
    return ka == kb ? 0 : ka < kb ? -1 : 1;
}

/* Compare slices a and b element by element; returns a number below, equal to
 * or above 0. */
static int compare_slices(const struct unique_slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            const int64_t row = o * s->n;
            const int order = compare_elements(s, (row + a) * s->inner + i,
                                               (row + b) * s->inner + i);
            if (order)
                return order;
        }
    return 0;
}

static uint64_t hash_slice(const struct unique_slices *s, int64_t slice)
{
    const char *const *texts = (const char *const *)(const void *)s->x;
    uint64_t hash = 0;
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            const int64_t at = (o * s->n + slice) * s->inner + i;
            const uint64_t key = s->strings ? byi_hash_text(texts[at])
                                            : key_at(&s->format, s->x, at);
            hash = byi_hash(hash, &key, sizeof key);
        }
    return hash;
}

static bool has_keys(const struct unique_slices *s)
{
    return s->outer * s->inner == 1 && !s->strings;
}

/* Sort the elements; `buffer` has 2 n elements. */
static const struct keyed_index *sort_elements(const struct unique_slices *s,
                                               struct keyed_index *buffer)
{
    for (int64_t i = 0; i < s->n; i++)
        buffer[i] = (struct keyed_index){key_at(&s->format, s->x, i), i};
    return s->n == 0 ? buffer
                     : sort_keys(buffer, buffer + s->n, s->n, s->format.size);
}

/* Heapsort of the n distinct slices order[]. */
static void sort_slices(const struct unique_slices *s, int64_t *order,
                        int64_t n)
{
#define COMES_LATER(a, b) (compare_slices(s, *(b), *(a)) < 0)
    for (int64_t at = n / 2; at-- > 0;)
        BYI_SIFT_DOWN(order, n, at, COMES_LATER);
    for (int64_t last = n - 1; last > 0; last--) {
        const int64_t end = order[0];
        order[0] = order[last];
        order[last] = end;
        BYI_SIFT_DOWN(order, last, 0, COMES_LATER);
    }
#undef COMES_LATER
}

/* The number of slots of the hash table of n slices, at least half of which
 * stay free. */
static int64_t unique_slots(int64_t n)
{
    int64_t slots = 2;
    while (slots < 2 * n)
        slots *= 2;
    return slots;
}

/* Set first[i] as number_slices() does, and order[] to the distinct slices, in
 * the order in which they occur; returns their number. `hashes` has n elements,
 * `slots` those of a hash table with open addressing. */
static int64_t find_distinct(const struct unique_slices *s, int64_t *order,
                             int64_t *first, uint64_t *hashes, int64_t *slots)
{
    const uint64_t mask = (uint64_t)unique_slots(s->n) - 1;
    int64_t count = 0;
    memset(slots, 0, (mask + 1) * sizeof *slots);
    for (int64_t i = 0; i < s->n; i++) {
        const uint64_t hash = hashes[i] = hash_slice(s, i);
        int64_t *slot = &slots[hash & mask]; /* 1 + the slice, 0 if free */
        while (*slot && (hashes[*slot - 1] != hash ||
                         compare_slices(s, *slot - 1, i) != 0))
            slot = slot == slots + mask ? slots : slot + 1;
        if (!*slot) {
            *slot = i + 1;
            order[count++] = i;
        }
        first[i] = *slot - 1;
    }
    return count;
}

/* number_slices() for elements that have keys. */
static int64_t number_elements(const struct unique_slices *s, bool sorted,
                               int64_t *first, int64_t *position)
{
    const struct keyed_index *keyed =
        sort_elements(s, (struct keyed_index *)(void *)(position + s->n));
    int64_t count = 0, before = 0;
    for (int64_t i = 0; i < s->n; i++) {
        const bool same = i > 0 && keyed[i].key == keyed[i - 1].key;
        before = same ? before : keyed[i].index;
        first[keyed[i].index] = before;
        if (!same)
            position[before] = count++;
    }
    if (!sorted)
        for (int64_t i = count = 0; i < s->n; i++)
            if (first[i] == i)
                position[i] = count++;
    return count;
}

/* Set first[i] to the index of the first slice that equals slice i, and
 * position[first[i]] to the position of that slice in the result. Memory of
 * unique_scratch() follows `position`. Returns the number of distinct slices.
 */
static int64_t number_slices(const struct unique_slices *s, bool sorted,
                             int64_t *order, int64_t *first, int64_t *position)
{
    if (has_keys(s))
        return number_elements(s, sorted, first, position);
    const int64_t count =
        find_distinct(s, order, first, (uint64_t *)position, position + s->n);
    if (sorted)
        sort_slices(s, order, count);
    for (int64_t i = 0; i < count; i++)
        position[order[i]] = i;
    return count;
}

static bool is_flat(const struct byi_call *call)
{
    return byi_attr_int(call->attrs, "flat") != 0;
}

static uint64_t unique_scratch(const struct byi_call *call)
{
    const int64_t n = call->out[2].dims[0];
    const int64_t slots = unique_slots(n) * (int64_t)sizeof(int64_t);
    const int64_t keys = 2 * n * (int64_t)sizeof(struct keyed_index);
    return (uint64_t)(3 * n * (int64_t)sizeof(int64_t) + byi_max(slots, keys));
}

static enum byoc_status unique_run(const struct byi_call *call,
                                   struct byoc_error *err)
{
    const struct byi_tensor *x = call->in;
    const uint32_t axis =
        is_flat(call) ? 0 : byi_attr_axis(call->attrs, x->rank);
    const struct unique_slices s = {
        .format = key_format_of(x->dtype),
        .strings = x->dtype == BYOC_STRING,
        .x = x->data,
        .outer = is_flat(call) ? 1 : byi_span(x, 0, axis),
        .n = is_flat(call) ? byi_count(x) : x->dims[axis],
        .inner = is_flat(call) ? 1 : byi_span(x, axis + 1, x->rank),
    };
    int64_t *order = call->scratch, *first = order + s.n,
            *position = first + s.n;
    int64_t *indices = call->out[1].data, *inverse = call->out[2].data;
    int64_t *counts = call->out[3].data;
    const int64_t count = number_slices(
        &s, byi_attr_int(call->attrs, "sorted") != 0, order, first, position);
    const int64_t slice_bytes = s.inner * (int64_t)s.format.size;
    BYI_TRY(byi_lower_dim(call, axis, count, err));
    call->out[1].dims[0] = call->out[3].dims[0] = count;
    for (int64_t i = 0; i < s.n; i++) {
        const int64_t to = inverse[i] = position[first[i]];
        if (first[i] == i) {
            indices[to] = i;
            counts[to] = 0;
            for (int64_t o = 0; o < s.outer; o++)
                memcpy((char *)call->out->data + (o * count + to) * slice_bytes,
                       s.x + (o * s.n + i) * slice_bytes, (size_t)slice_bytes);
        }
        counts[to]++;
    }
    return BYOC_OK;
}

BYI_KERNEL_ROWS(select, {BYI_OP_TOPK, {topk_run, topk_scratch}},
                {BYI_OP_UNIQUE, {unique_run, unique_scratch}})
