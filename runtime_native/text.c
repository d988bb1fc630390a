/* SPDX-License-Identifier: Apache-2.0 */
/* text.c: the kernel that normalises strings, and the store of the strings that
 * kernels create. */
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

/* Whether the store owns `text`. `*last` is the chunk of the last text that it
 * owns, which is searched first; NULL at the beginning. */
static bool store_owns(const struct byi_string_store *store, const char *text,
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

/* The copy of a short string in the chunk, if it has the bytes; otherwise NULL.
 * A loop is faster for short strings than strlen() and memcpy(). */
static char *copy_short(struct byi_string_chunk *chunk, const char *text)
{
    enum { SHORT = 16 };

    if (!chunk || chunk->size - chunk->used < SHORT)
        return NULL;
    char *to = chunk->at + chunk->used;
    for (size_t i = 0; i < SHORT; i++)
        if (!(to[i] = text[i])) {
            chunk->used += i + 1;
            return to;
        }
    return NULL;
}

const char *byi_store_copies(struct byi_string_store *store, const char **at,
                             int64_t n)
{
    const struct byi_string_chunk *last = NULL;
    uintptr_t begin = 0, end = 0; /* of the addresses of all chunks */

    for (const struct byi_string_chunk *chunk = store->chunks; chunk;
         chunk = chunk->next) {
        const uintptr_t from = (uintptr_t)chunk->at, to = from + chunk->used;
        begin = from < to && (from < begin || begin == end) ? from : begin;
        end = from < to && to > end ? to : end;
    }
    for (int64_t i = 0; i < n; i++) {
        const char *text = at[i];
        if ((uintptr_t)text - begin < end - begin &&
            store_owns(store, text, &last))
            continue;
        char *copy = copy_short(store->chunks, text);
        if (!copy) {
            const size_t length = strlen(text);
            copy = byi_store_string(store, length);
            if (!copy)
                return text;
            memcpy(copy, text, length);
        }
        at[i] = copy;
    }
    return NULL;
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
    return byi_fail(err, BYOC_EUNSUPPORTED,
                    "%s: found a call outside of a run; the operator creates "
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

BYI_KERNEL_ROWS(text, {BYI_OP_TEXT_NORMALIZE, {normalize_run, NULL}})
