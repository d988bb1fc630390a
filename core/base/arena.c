/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: arenas, aligned memory, and vectors and texts that grow. If an
 * allocation fails, arenas, vectors and texts jump to the innermost guard
 * (guard.h, guard.c); byi_acquire, byi_alloc and byi_realloc return NULL.
 */
#include "guard.h"
#include "owned.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_BLOCK = 4096, LAST_BLOCK = 8 << 20, ARENA_ALIGN = 16 };
enum { LINE = 160 }; /* bytes; most formatted texts are shorter */
enum {
    PAGE = 1 << 16,    /* bytes; a multiple of every page size */
    SMALL_PAGE = 4096, /* bytes; the smallest page size */
    HUGE_PAGE = 2 << 20
};

/* A block of memory, with `size` bytes of data. */
struct block {
    struct block *next;
    size_t size;
    _Alignas(ARENA_ALIGN) char data[];
};

/* A call of fn(arg) when the arena is freed. */
struct deferred_call {
    struct deferred_call *next;
    void (*fn)(void *);
    void *arg;
};

struct byi_arena {
    struct block *blocks; /* the first one has free space */
    struct block *spare;  /* kept by byi_arena_reset, zeroed */
    size_t peak_bytes;    /* the most that was in use before a reset */
    char *at, *end;       /* the free space of the first block */
    size_t next_size; /* bytes of the next block, unless a request is larger */
    struct deferred_call *deferred_calls;
};

static void call_oom(size_t bytes)
{
    byi_oom(bytes);
    abort(); /* byi_oom must not return */
}

static void end_arena(void *arena)
{
    struct byi_arena *a = arena;

    byi_arena_free(&a);
}

struct byi_arena *byi_arena_new(void)
{
    struct byi_arena *arena = byi_owned_resize(NULL, sizeof *arena, end_arena);

    if (!arena)
        call_oom(sizeof *arena);
    *arena = (struct byi_arena){.next_size = FIRST_BLOCK};
    return arena;
}

static void free_blocks(struct block **blocks)
{
    while (*blocks) {
        struct block *b = *blocks;
        *blocks = b->next;
        free(b);
    }
}

static void run_deferred(struct byi_arena *arena)
{
    for (struct deferred_call *d = arena->deferred_calls; d; d = d->next)
        d->fn(d->arg);
    arena->deferred_calls = NULL;
}

void byi_arena_free(struct byi_arena **arena)
{
    struct byi_arena *a = *arena;

    if (!a)
        return;
    run_deferred(a);
    free_blocks(&a->blocks);
    free_blocks(&a->spare);
    byi_owned_free(a);
    *arena = NULL;
}

/* Page faults and TLB misses dominate walks over large graphs and weights, so
 * ask for huge pages for memory of 2 MiB or more. The system may ignore this.
 */
static void prefer_huge_pages(void *at, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const uintptr_t begin = ((uintptr_t)at + PAGE - 1) / PAGE * PAGE;
    const uintptr_t end = ((uintptr_t)at + bytes) / PAGE * PAGE;

    if (bytes >= HUGE_PAGE)
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
#else
    (void)at;
    (void)bytes;
#endif
}

static struct block *block_new(size_t size)
{
    struct block *b = NULL;

    if (size <= SIZE_MAX - sizeof *b)
        b = calloc(1, sizeof *b + size);
    if (!b)
        return NULL;
    prefer_huge_pages(b, size);
    b->size = size;
    return b;
}

static size_t count_bytes(const struct block *b)
{
    size_t bytes = 0;

    for (; b; b = b->next)
        bytes += b->size;
    return bytes;
}

size_t byi_arena_bytes(const struct byi_arena *arena)
{
    return count_bytes(arena->blocks) + count_bytes(arena->spare);
}

void byi_arena_reset(struct byi_arena *arena)
{
    const size_t used = count_bytes(arena->blocks);

    run_deferred(arena);
    arena->next_size = FIRST_BLOCK; /* so that the same blocks fit again */
#ifdef __SANITIZE_ADDRESS__
    /* so that the sanitizer reports uses after a reset */
    free_blocks(&arena->blocks);
#endif
    arena->peak_bytes = used > arena->peak_bytes ? used : arena->peak_bytes;
    if (count_bytes(arena->spare) + used > arena->peak_bytes)
        free_blocks(&arena->spare);
    for (struct block *b = arena->blocks, *next = NULL; b; b = next) {
        bool filling = b == arena->blocks && arena->end == b->data + b->size;
        next = b->next;
        memset(b->data, 0, filling ? (size_t)(arena->at - b->data) : b->size);
        b->next = arena->spare;
        arena->spare = b;
    }
    arena->blocks = NULL;
    arena->at = arena->end = NULL;
}

/* Take the smallest spare block that is large enough and at most about four
 * times as large, otherwise a new one. Returns NULL if the allocation fails. */
static struct block *take_block(struct byi_arena *arena, size_t size)
{
    struct block **best = NULL, *b = NULL;

    for (struct block **at = &arena->spare; *at; at = &(*at)->next)
        if ((*at)->size >= size && (*at)->size / 4 <= size &&
            (!best || (*at)->size < (*best)->size))
            best = at;
    if (!best)
        return block_new(size);
    b = *best;
    *best = b->next;
    b->next = NULL;
    return b;
}

/* Memory from another block; NULL if the allocation fails. A large request gets
 * a separate block, listed after the block with free space. */
static void *alloc_slow(struct byi_arena *arena, size_t bytes)
{
    bool large = bytes > arena->next_size / 4;
    struct block *b = take_block(arena, large ? bytes : arena->next_size);

    if (!b)
        return NULL;
    if (large && arena->blocks) {
        b->next = arena->blocks->next;
        arena->blocks->next = b;
        return b->data;
    }
    b->next = arena->blocks;
    arena->blocks = b;
    arena->at = b->data + bytes;
    arena->end = b->data + b->size;
    if (arena->next_size < LAST_BLOCK)
        arena->next_size *= 2;
    return b->data;
}

static void *try_alloc(struct byi_arena *arena, size_t bytes)
{
    char *at = arena->at;

    if (bytes > SIZE_MAX - ARENA_ALIGN)
        return NULL;
    bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (bytes == 0)
        bytes = ARENA_ALIGN;
    if (bytes > (size_t)(arena->end - at))
        return alloc_slow(arena, bytes);
    arena->at = at + bytes;
    return at;
}

void *byi_arena_alloc(struct byi_arena *arena, size_t bytes)
{
    void *at = try_alloc(arena, bytes);

    if (!at)
        call_oom(bytes);
    return at;
}

void *byi_arena_calloc(struct byi_arena *arena, size_t n, size_t size)
{
    size_t bytes = 0;

    if (__builtin_mul_overflow(n, size, &bytes))
        call_oom(SIZE_MAX);
    return byi_arena_alloc(arena, bytes);
}

void *byi_arena_data(struct byi_arena *arena, uint64_t bytes)
{
    if (bytes > SIZE_MAX - BYI_ALIGN)
        call_oom(SIZE_MAX);
    char *at = byi_arena_alloc(arena, (size_t)bytes + BYI_ALIGN);
    return at + (-(uintptr_t)at & (BYI_ALIGN - 1));
}

void *byi_arena_copy(struct byi_arena *arena, const void *src, size_t bytes)
{
    void *copy = byi_arena_alloc(arena, bytes);

    if (bytes)
        memcpy(copy, src, bytes);
    return copy;
}

void *byi_arena_grow(struct byi_arena *arena, const void *at, uint32_t *cap,
                     size_t size)
{
    const uint32_t capacity = *cap ? 2 * *cap : 32;
    void *grown = byi_arena_calloc(arena, capacity, size);

    assert(capacity > *cap);
    if (*cap)
        memcpy(grown, at, *cap * size);
    *cap = capacity;
    return grown;
}

char *byi_arena_strn(struct byi_arena *arena, const char *text, size_t n)
{
    char *copy = NULL;

    if (n == SIZE_MAX)
        call_oom(n);
    copy = byi_arena_alloc(arena, n + 1);
    if (n)
        memcpy(copy, text, n);
    return copy;
}

char *byi_arena_str(struct byi_arena *arena, const char *text)
{
    return byi_arena_strn(arena, text, strlen(text));
}

char *byi_arena_printf(struct byi_arena *arena, const char *fmt, ...)
{
    va_list args, copy;
    char *text;
    int n;

    va_start(args, fmt);
    va_copy(copy, args);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    assert(n >= 0);
    text = byi_arena_alloc(arena, (size_t)n + 1);
    vsnprintf(text, (size_t)n + 1, fmt, copy);
    va_end(copy);
    return text;
}

void byi_arena_defer(struct byi_arena *arena, void (*fn)(void *), void *arg)
{
    struct deferred_call *d = try_alloc(arena, sizeof *d);

    if (!d) {
        fn(arg);
        call_oom(sizeof *d);
    }
    *d = (struct deferred_call){
        .next = arena->deferred_calls, .fn = fn, .arg = arg};
    arena->deferred_calls = d;
}

void *byi_acquire(uint64_t bytes)
{
    if (bytes > SIZE_MAX - HUGE_PAGE)
        return NULL;
    if (bytes == 0)
        bytes = 1;
    /* huge pages begin at multiples of their size; the size that aligned_alloc
     * gets must be a multiple of the alignment */
    const uint64_t align = bytes >= HUGE_PAGE ? HUGE_PAGE
                           : bytes >= PAGE    ? SMALL_PAGE
                                              : BYI_ALIGN;
    void *at = aligned_alloc((size_t)align, (bytes + align - 1) & ~(align - 1));
    /* leave the last part in small pages: a huge page at the end would occupy
     * memory beyond the block */
    if (at)
        prefer_huge_pages(at, (size_t)bytes / HUGE_PAGE * HUGE_PAGE);
    return at;
}

void byi_release(void *memory)
{
    free(memory);
}

void *byi_alloc(size_t n, size_t size)
{
    return calloc(n ? n : 1, size ? size : 1);
}

void *byi_realloc(void *old, size_t n, size_t size)
{
    size_t bytes = 0;

    if (__builtin_mul_overflow(n, size, &bytes))
        return NULL;
    return realloc(old, bytes ? bytes : 1);
}

/* A model has a function for each composite, most of which have few nodes, so
 * vectors begin small. */
void byi_vec_grow(void **at, uint32_t *cap, uint32_t need, size_t size)
{
    uint32_t n = *cap < 2 ? 2 : *cap;
    size_t bytes = 0;
    void *grown = NULL;

    if (need == 0) /* the count wrapped around */
        call_oom(SIZE_MAX);
    while (n < need)
        n = n > UINT32_MAX / 2 ? UINT32_MAX : n * 2;
    if (!__builtin_mul_overflow(n, size, &bytes))
        grown = byi_owned_resize(*at, bytes, NULL);
    if (!grown)
        call_oom(bytes);
    prefer_huge_pages(grown, bytes);
    *at = grown;
    *cap = n;
}

void byi_vec_free(void *at)
{
    byi_owned_free(at);
}

static void text_reserve(struct byi_text *text, size_t bytes)
{
    size_t need = 0, cap = text->cap < 64 ? 64 : text->cap;
    char *grown = NULL;

    if (__builtin_add_overflow(text->n, bytes, &need) || need == SIZE_MAX)
        call_oom(SIZE_MAX);
    need++; /* NUL */
    if (need <= text->cap)
        return;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? need : cap * 2;
    grown = byi_owned_resize(text->at, cap, NULL);
    if (!grown)
        call_oom(cap);
    text->at = grown;
    text->cap = cap;
}

void byi_text_add(struct byi_text *text, const char *bytes, size_t n)
{
    text_reserve(text, n);
    if (n)
        memcpy(text->at + text->n, bytes, n);
    text->n += n;
    text->at[text->n] = '\0';
}

void byi_text_addf(struct byi_text *text, const char *fmt, ...)
{
    va_list args, copy;
    int n;

    text_reserve(text, LINE); /* usually enough, then one call formats it */
    va_start(args, fmt);
    va_copy(copy, args);
    n = vsnprintf(text->at + text->n, LINE + 1, fmt, args);
    va_end(args);
    assert(n >= 0);
    if (n > LINE) {
        text_reserve(text, (size_t)n);
        vsnprintf(text->at + text->n, (size_t)n + 1, fmt, copy);
    }
    va_end(copy);
    text->n += (size_t)n;
}

void byi_text_put(struct byi_text *text, const char *string)
{
    byi_text_add(text, string, strlen(string));
}

void byi_text_int(struct byi_text *text, int64_t value)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--at = '-';
    byi_text_add(text, at, (size_t)(digits + sizeof digits - at));
}

void byi_text_free(struct byi_text *text)
{
    byi_owned_free(text->at);
    *text = (struct byi_text){0};
}
