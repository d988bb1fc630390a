/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c: mutates bracketed text: JSON, the text form, patterns, lists of
 * passes. An item is the text between commas (or semicolons) in one pair of
 * brackets. Whole items are dropped, doubled, swapped and replaced, so that the
 * text mostly still parses.
 */
#include "fuzz.h"

#include <ctype.h>
#include <string.h>

/* An item of a text. */
struct item {
    size_t at, n;  /* without white space around it  */
    size_t value;  /* after "key":, otherwise the same as `at` */
    size_t parent; /* where its bracket opens        */
};

/* The items of a text. */
struct items {
    BYI_VEC(struct item) list;
};

enum { MAX_DEPTH = 256 };

/* The state of scan(), with the current item of each open bracket. */
struct scan {
    const struct byi_text *t;
    struct items *items;
    /* of each open bracket: its place, and those where the current item and the
     * value in it begin */
    size_t opened[MAX_DEPTH], begun[MAX_DEPTH], value[MAX_DEPTH];
    uint32_t depth;
};

/* End the item of the innermost bracket before `end`, and add it to the list.
 */
static void close_item(struct scan *s, size_t end)
{
    const char *text = s->t->at;
    size_t at = s->begun[s->depth - 1], value = s->value[s->depth - 1];
    while (at < end && isspace((unsigned char)text[at]))
        at++;
    while (end > at && isspace((unsigned char)text[end - 1]))
        end--;
    while (value < end && isspace((unsigned char)text[value]))
        value++;
    const struct item item = {at, end - at, value > at ? value : at,
                              s->opened[s->depth - 1]};
    if (end > at)
        BYI_PUSH(&s->items->list, item);
}

static void begin_item(struct scan *s, size_t at)
{
    s->begun[s->depth - 1] = s->value[s->depth - 1] = at;
}

/* The end of the string that begins at `at`. */
static size_t skip_string(const struct byi_text *t, size_t at)
{
    for (at++; at < t->n && t->at[at] != '"'; at++)
        at += t->at[at] == '\\';
    return at < t->n ? at : t->n - 1;
}

static struct items scan(const struct byi_text *t)
{
    struct items items = {0};
    struct scan s = {.t = t, .items = &items};
    for (size_t i = 0; i < t->n; i++) {
        const char c = t->at[i];
        if (c == '"') {
            i = skip_string(t, i);
        } else if (c && strchr("([{", c) && s.depth < MAX_DEPTH) {
            s.opened[s.depth++] = i;
            begin_item(&s, i + 1);
        } else if (c && strchr(")]}", c) && s.depth) {
            close_item(&s, i);
            s.depth--;
        } else if ((c == ',' || c == ';') && s.depth) {
            close_item(&s, i);
            begin_item(&s, i + 1);
        } else if ((c == ':' || c == '=') && s.depth) {
            s.value[s.depth - 1] = i + 1;
        }
    }
    return items;
}

static void drop(struct byi_text *t, const struct item *item)
{
    size_t at = item->at, n = item->n;
    if (at + n < t->n && strchr(",;", t->at[at + n]) && t->at[at + n])
        n++;
    else if (at > 0 && strchr(",;", t->at[at - 1]) && t->at[at - 1])
        at--, n++;
    fuzz_splice(t, at, n, NULL, 0);
}

static void swap(struct byi_text *t, const struct item *a, const struct item *b)
{
    if (a->at > b->at) {
        const struct item *c = a;
        a = b;
        b = c;
    }
    if (a->at + a->n > b->at)
        return; /* one is inside the other, or they are the same */
    struct byi_text result = {0};
    byi_text_add(&result, t->at, a->at);
    byi_text_add(&result, t->at + b->at, b->n);
    byi_text_add(&result, t->at + a->at + a->n, b->at - a->at - a->n);
    byi_text_add(&result, t->at + a->at, a->n);
    byi_text_add(&result, t->at + b->at + b->n, t->n - b->at - b->n);
    byi_text_free(t);
    *t = result;
}

/* An item of the same bracket, or any. */
static const struct item *pick_second(struct fuzz_rng *rng,
                                      const struct items *items,
                                      const struct item *first)
{
    for (int i = 0; i < 12; i++) {
        const struct item *b = &items->list.at[fuzz_below(rng, items->list.n)];
        if (b->parent == first->parent)
            return b;
    }
    return &items->list.at[fuzz_below(rng, items->list.n)];
}

/* Replace the value of an item by that of an item of `from` (what = 0), replace
 * the whole item (1), or insert before it (2). */
static void copy_item(struct byi_text *t, const struct item *item,
                      const struct byi_text *from, const struct item *source,
                      uint64_t what)
{
    struct byi_text piece = {0};
    const size_t skip = what == 0 ? source->value - source->at : 0;
    byi_text_add(&piece, from->at + source->at + skip, source->n - skip);
    if (what == 2)
        byi_text_add(&piece, ", ", 2);
    const size_t at = what == 0 ? item->value : item->at;
    fuzz_splice(t, at, what == 2 ? 0 : item->at + item->n - at, piece.at,
                piece.n);
    byi_text_free(&piece);
}

static void put_scalar(struct fuzz_rng *rng, struct byi_text *t,
                       const struct item *item)
{
    static const char *const scalars[] = {"null", "true", "\"\"",  "[]", "{}",
                                          "-1",   "0",    "1e999", "()", "1.5"};
    char number[32];
    const char *text = scalars[fuzz_below(rng, BYI_COUNT(scalars))];
    if (fuzz_next(rng) & 1) {
        snprintf(number, sizeof number, "%lld", (long long)fuzz_number(rng));
        text = number;
    }
    fuzz_splice(t, item->value, item->at + item->n - item->value, text,
                strlen(text));
}

static void edit(struct fuzz_rng *rng, struct byi_text *t,
                 const struct items *own_items, const struct byi_text *from,
                 const struct items *other_items)
{
    const struct item *a =
        &own_items->list.at[fuzz_below(rng, own_items->list.n)];
    const struct item *b =
        &other_items->list.at[fuzz_below(rng, other_items->list.n)];
    switch (fuzz_below(rng, 8)) {
    case 0:
        drop(t, a);
        return;
    case 1:
        copy_item(t, a, t, a, 2);
        return;
    case 2:
        swap(t, a, pick_second(rng, own_items, a));
        return;
    case 3:
        put_scalar(rng, t, a);
        return;
    case 4:
        copy_item(t, a, t, pick_second(rng, own_items, a), 0);
        return;
    default:
        copy_item(t, a, from, b, fuzz_below(rng, 3));
    }
}

bool fuzz_tree(struct fuzz_rng *rng, struct byi_text *bytes,
               const struct byi_text *other)
{
    struct items own_items = scan(bytes), other_items = scan(other);
    const bool good = own_items.list.n && other_items.list.n;
    if (good)
        edit(rng, bytes, &own_items, other, &other_items);
    byi_vec_free(own_items.list.at);
    byi_vec_free(other_items.list.at);
    return good;
}
