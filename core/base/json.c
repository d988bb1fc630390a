/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: reads JSON (RFC 8259) through cJSON. The readers check kind and
 * range, and their errors name the path of the offending value. cJSON keeps
 * numbers as doubles, so integers are exact up to 2^53 and larger ones are
 * refused. Its arrays are linked lists, so they are walked, never indexed.
 */
#include "guard.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { MAX_DEPTH = 64 };
/* 2^53: a double represents all integers up to this one */
static const double max_integer = 9007199254740992.0;

/* --- parsing ------------------------------------------------------------ */

/* Returns where `c` is in text[from .. n), or n. */
static size_t find_byte(const char *text, size_t n, size_t from, char c)
{
    const char *at = memchr(text + from, c, n - from);
    return at ? (size_t)(at - text) : n;
}

/* Returns where the string that begins at text[at] ends: at its closing quote,
 * or n if that is missing. Searches no byte twice for a quote, so that the time
 * is linear even for a text of backslashes. */
static size_t string_end(const char *text, size_t n, size_t at)
{
    size_t from = at + 1, quote = at;

    while (from < n) {
        if (quote < from)
            quote = find_byte(text, n, from, '"');
        const size_t slash = find_byte(text, quote, from, '\\');
        if (slash == quote)
            return quote;
        from = slash + 2;
    }
    return n;
}

/* Whether text [from, end), inside of a string, has a NUL or \u0000. */
static bool has_nul(const char *text, size_t from, size_t end)
{
    while (from < end) {
        const size_t slash = find_byte(text, end, from, '\\');
        const size_t next = slash + 2 < end ? slash + 2 : end;
        if (memchr(text + from, '\0', next - from) ||
            (end - slash >= 6 && memcmp(text + slash, "\\u0000", 6) == 0))
            return true;
        from = next; /* an escaped backslash begins no escape */
    }
    return false;
}

/* A text without the elements of long arrays. Messages give places in the whole
 * text, of which it is a part. */
struct shortened_text {
    const char *text, *whole;
    size_t n, whole_n;                  /* bytes of `text` and of `whole` */
    const struct byi_json_items *items; /* the two removed parts; NULL: none */
};

/* Returns where byte `at` of the shortened text is in the whole text. */
static size_t place_in_whole(const struct shortened_text *s, size_t at)
{
    const struct byi_json_items *items = s->items;
    const bool swapped =
        items && items[1].text && items[1].text < items[0].text;

    for (uint32_t k = 0; items && k < 2; k++) {
        const struct byi_json_items *removed = &items[swapped ? 1 - k : k];
        if (removed->text && at >= (size_t)(removed->text - s->whole))
            at += removed->bytes;
    }
    return at;
}

/* Refuse input that cJSON accepts but byoc must not: deep nesting, since cJSON
 * recurses, and NULs, also as \u0000, which would end a string early. */
static enum byoc_status check_text(const struct shortened_text *s,
                                   struct byoc_error *err)
{
    const char *text = s->text;
    const size_t n = s->n;
    uint32_t depth = 0;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\0')
            return byi_fail(
                err, BYOC_EPARSE,
                "malformed JSON: found a NUL at byte %zu, expected text",
                place_in_whole(s, i));
        if (c == '"') {
            const size_t end = string_end(text, n, i);
            if (has_nul(text, i + 1, end))
                return byi_fail(err, BYOC_EPARSE,
                                "malformed JSON: found a NUL in the string at "
                                "byte %zu, expected text",
                                place_in_whole(s, i));
            i = end;
        } else if (c == '[' || c == '{') {
            if (++depth > MAX_DEPTH)
                return byi_fail(err, BYOC_ELIMIT,
                                "found too deeply nested JSON at byte %zu, "
                                "expected at most %d levels",
                                place_in_whole(s, i), MAX_DEPTH);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return BYOC_OK;
}

static bool is_space(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static void end_tree(void *data)
{
    cJSON *root = data;

    cJSON_Delete(root->child);
    cJSON_free(root->valuestring);
    byi_vec_free(root);
}

/* Move the tree's root to memory that a guard frees together with the tree. If
 * that cannot be allocated, deletes the tree and returns NULL. */
static cJSON *own_tree(cJSON *tree)
{
    cJSON *root = byi_own_try(1, sizeof *root, end_tree);

    if (!root) {
        cJSON_Delete(tree);
        return NULL;
    }
    *root = *tree;
    cJSON_free(tree);
    return root;
}

static enum byoc_status parse_text(const struct shortened_text *s,
                                   struct cJSON **root, struct byoc_error *err)
{
    const size_t n = s->n;
    const char *end = NULL;
    char *copy = NULL;
    cJSON *tree = NULL;
    bool is_complete = false, out_of_memory = false;
    enum byoc_status status = BYOC_OK;

    BYI_TRY(check_text(s, err));
    /* Older cJSON reads one byte past a text that has no NUL. */
    copy = byi_alloc(n + 1, 1);
    if (!copy)
        return byi_fail_memory(err, n, "JSON");
    if (n)
        memcpy(copy, s->text, n);
    /* cJSON returns NULL for malformed text and for a failed allocation; only
     * the latter sets errno (POSIX's malloc) */
    errno = 0;
    tree = cJSON_ParseWithLengthOpts(copy, n + 1, &end, 0);
    out_of_memory = !tree && errno == ENOMEM;
    is_complete = tree && is_space(end);
    if (is_complete)
        *root = own_tree(tree);
    else
        cJSON_Delete(tree);
    if (out_of_memory || (is_complete && !*root))
        status = byi_fail_memory(err, n, "JSON");
    else if (!is_complete)
        status = byi_fail(err, BYOC_EPARSE,
                          "malformed JSON at byte %zu of %zu, expected one "
                          "complete JSON value",
                          place_in_whole(s, end ? (size_t)(end - copy) : 0),
                          s->whole_n);
    free(copy);
    return status;
}

enum byoc_status byi_json_parse(const char *text, size_t n, size_t max_bytes,
                                struct cJSON **root, struct byoc_error *err)
{
    const struct shortened_text whole = {
        .text = text, .n = n, .whole = text, .whole_n = n};

    *root = NULL;
    if (n > max_bytes)
        return byi_fail(err, BYOC_ELIMIT,
                        "found %zu bytes of JSON, expected at most %zu", n,
                        max_bytes);
    return parse_text(&whole, root, err);
}

/* --- long arrays, whose elements are parsed one at a time ------------------ *
 * The text is cut apart at commas and brackets, and then each element is
 * parsed. So malformed text fails in the element that contains it. */

/* The end of the element or member that begins at `at`: the ',' after it or the
 * bracket that closes its list; n if neither follows. */
static size_t element_end(const char *text, size_t n, size_t at)
{
    static const bool ends[256] = {['"'] = true, ['['] = true, [']'] = true,
                                   ['{'] = true, ['}'] = true, [','] = true};
    uint32_t depth = 0;

    for (; at < n; at++) {
        const char c = text[at];
        if (!ends[(unsigned char)c])
            continue;
        if (c == '"') {
            at = string_end(text, n, at);
        } else if (c == '[' || c == '{') {
            depth++;
        } else if (c == ']' || c == '}' || c == ',') {
            if (depth == 0)
                return at;
            depth -= c != ',';
        }
    }
    return n;
}

static size_t skip_space(const char *text, size_t n, size_t at)
{
    while (at < n && text[at] && strchr(" \t\r\n", text[at]))
        at++;
    return at;
}

/* Returns where the bracket is if text[at .. end) begins with "key": [,
 * otherwise `end`. */
static size_t find_array(const char *text, size_t at, size_t end,
                         const char *key)
{
    const size_t k = strlen(key);

    at = skip_space(text, end, at);
    if (end - at < k + 2 || text[at] != '"' || text[at + k + 1] != '"' ||
        memcmp(text + at + 1, key, k) != 0)
        return end;
    at = skip_space(text, end, at + k + 2);
    if (at == end || text[at] != ':')
        return end;
    at = skip_space(text, end, at + 1);
    return at < end && text[at] == '[' ? at : end;
}

/* Set `items` to the elements of the array that begins at text[open]. Returns
 * where it ends. */
static size_t take_elements(const char *text, size_t n, size_t open,
                            struct byi_json_items *items)
{
    const size_t from = open + 1;
    size_t end = element_end(text, n, from);

    items->n = skip_space(text, end, from) < end;
    for (; end < n && text[end] == ','; end = element_end(text, n, end + 1))
        items->n += items->n ? 1 : 2; /* an empty first element counts, too */
    items->text = text + from;
    items->bytes = end - from;
    return end;
}

enum byoc_status byi_json_parse_around(
    const char *text, size_t n, size_t max_bytes, const char *const keys[2],
    struct byi_json_items items[2], struct cJSON **root, struct byoc_error *err)
{
    struct byi_text rest = {0};
    size_t at = skip_space(text, n, 0), copied = 0;

    items[0] = items[1] = (struct byi_json_items){0};
    if (!keys || n > max_bytes || at == n || text[at] != '{')
        return byi_json_parse(text, n, max_bytes, root, err);
    while (at < n) {
        size_t from = at + 1; /* where a member begins */
        for (uint32_t k = 0; k < 2 && keys[k]; k++) {
            const size_t open = find_array(text, from, n, keys[k]);
            if (open == n || items[k].text)
                continue;
            byi_text_add(&rest, text + copied, open + 1 - copied);
            copied = take_elements(text, n, open, &items[k]);
            items[k].key = keys[k];
            from = copied < n ? copied + 1 : n;
            break;
        }
        at = element_end(text, n, from);
    }
    byi_text_add(&rest, text + copied, n - copied);
    const struct shortened_text shortened = {.text = rest.at,
                                             .n = rest.n,
                                             .whole = text,
                                             .whole_n = n,
                                             .items = items};
    *root = NULL;
    const enum byoc_status status = parse_text(&shortened, root, err);
    byi_text_free(&rest);
    return status;
}

void byi_json_free(struct cJSON **root)
{
    if (*root)
        end_tree(*root);
    *root = NULL;
}

/* --- paths and messages ------------------------------------------------- */

struct byi_json byi_json_root(const struct cJSON *root)
{
    return (struct byi_json){.at = root};
}

/* Set `path` to the path of `key` below `base`. Keys are untrusted: bytes that
 * are not printable ASCII become '?'. A path that is too long ends in "...". */
static void join_path(char path[160], const char *base, const char *key)
{
    enum { MAX_LENGTH = 159, MAX_KEY = 120 };
    char joined[320];
    size_t n = strlen(base);

    memcpy(joined, base, n);
    if (n && key[0] != '[')
        joined[n++] = '.';
    for (size_t i = 0; i < MAX_KEY && key[i]; i++)
        joined[n++] = key[i] < ' ' || key[i] > '~' ? '?' : key[i];
    if (n > MAX_LENGTH) {
        n = MAX_LENGTH;
        memcpy(joined + n - 3, "...", 3);
    }
    memcpy(path, joined, n);
    path[n] = '\0';
}

/* Set `path` to the path of element `index` of the array at `base`. */
static void join_index(char path[160], const char *base, uint32_t index)
{
    char key[16];
    char *at = key + sizeof key;

    *--at = '\0';
    *--at = ']';
    do
        *--at = (char)('0' + index % 10);
    while (index /= 10);
    *--at = '[';
    join_path(path, base, at);
}

const char *byi_json_path(const struct byi_json *item)
{
    return item->path[0] ? item->path : "the document";
}

static const char *kind_of(const struct cJSON *item)
{
    if (!item)
        return "nothing";
    if (cJSON_IsObject(item))
        return "an object";
    if (cJSON_IsArray(item))
        return "an array";
    if (cJSON_IsString(item))
        return "a string";
    if (cJSON_IsNumber(item))
        return "a number";
    return cJSON_IsNull(item) ? "null" : "a boolean";
}

enum byoc_status byi_json_mismatch(const struct byi_json *item,
                                   const char *expected, struct byoc_error *err)
{
    return byi_fail(err, BYOC_EPARSE, "%s: found %s, expected %s",
                    byi_json_path(item), kind_of(item->at), expected);
}

struct byi_json byi_json_member(const struct byi_json *object,
                                const struct cJSON *at)
{
    struct byi_json member = {.at = at};

    join_path(member.path, object->path, at->string);
    return member;
}

/* --- members ------------------------------------------------------------ */

enum byoc_status byi_json_opt(const struct byi_json *object, const char *key,
                              struct byi_json *out, struct byoc_error *err)
{
    if (!cJSON_IsObject(object->at))
        return byi_json_mismatch(object, "an object", err);
    out->at = cJSON_GetObjectItemCaseSensitive(object->at, key);
    join_path(out->path, object->path, key); /* out may be object */
    return BYOC_OK;
}

enum byoc_status byi_json_get(const struct byi_json *object, const char *key,
                              struct byi_json *out, struct byoc_error *err)
{
    BYI_TRY(byi_json_opt(object, key, out, err));
    if (!out->at)
        return byi_fail(err, BYOC_EPARSE, "%s: found nothing, expected a value",
                        out->path);
    return BYOC_OK;
}

enum byoc_status byi_json_flag(const struct byi_json *object, const char *key,
                               bool *out, struct byoc_error *err)
{
    struct byi_json item;
    BYI_TRY(byi_json_opt(object, key, &item, err));
    if (item.at && !cJSON_IsBool(item.at))
        return byi_json_mismatch(&item, "true or false", err);
    *out = cJSON_IsTrue(item.at);
    return BYOC_OK;
}

enum byoc_status byi_json_as_int(const struct byi_json *item, int64_t min,
                                 int64_t max, int64_t *out,
                                 struct byoc_error *err)
{
    double value = 0;

    if (!cJSON_IsNumber(item->at))
        return byi_json_mismatch(item, "an integer", err);
    value = item->at->valuedouble;
    if (!(fabs(value) <= max_integer) || value != floor(value) ||
        (int64_t)value < min || (int64_t)value > max)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found %s, expected an integer from %lld to %lld",
                        byi_json_path(item), BYI_FLOAT_TEXT(value),
                        (long long)min, (long long)max);
    *out = (int64_t)value;
    return BYOC_OK;
}

enum byoc_status byi_json_as_string(const struct byi_json *item,
                                    const char **out, struct byoc_error *err)
{
    if (!cJSON_IsString(item->at))
        return byi_json_mismatch(item, "a string", err);
    *out = item->at->valuestring;
    return BYOC_OK;
}

enum byoc_status byi_json_int(const struct byi_json *object, const char *key,
                              int64_t min, int64_t max, int64_t *out,
                              struct byoc_error *err)
{
    struct byi_json item;

    BYI_TRY(byi_json_get(object, key, &item, err));
    return byi_json_as_int(&item, min, max, out, err);
}

enum byoc_status byi_json_string(const struct byi_json *object, const char *key,
                                 const char **out, struct byoc_error *err)
{
    struct byi_json item;

    BYI_TRY(byi_json_get(object, key, &item, err));
    return byi_json_as_string(&item, out, err);
}

enum byoc_status byi_json_array(const struct byi_json *object, const char *key,
                                uint32_t max, struct byi_json *out, uint32_t *n,
                                struct byoc_error *err)
{
    const cJSON *item = NULL;
    uint32_t count = 0;

    BYI_TRY(byi_json_get(object, key, out, err));
    if (!cJSON_IsArray(out->at))
        return byi_json_mismatch(out, "an array", err);
    cJSON_ArrayForEach(item, out->at) if (count++ == max) return byi_fail(
        err, BYOC_ELIMIT, "%s: found too many items, expected at most %u",
        out->path, max);
    *n = count;
    return BYOC_OK;
}

bool byi_json_next(const struct byi_json *array, struct byi_json *item,
                   uint32_t index)
{
    item->at = item->at ? item->at->next : array->at->child;
    if (!item->at)
        return false;
    join_index(item->path, array->path, index);
    return true;
}

/* "a, b, c", cut to fit. Returns buf. */
static const char *list_keys(char *buf, size_t size, const char *const *keys,
                             uint32_t n)
{
    size_t used = (size_t)snprintf(buf, size, "%s", n ? keys[0] : "none");

    for (uint32_t i = 1; i < n && used < size; i++)
        used += (size_t)snprintf(buf + used, size - used, ", %s", keys[i]);
    return buf;
}

static uint32_t find_key(const char *const *keys, uint32_t n, const char *key)
{
    uint32_t i = 0;

    while (i < n && strcmp(keys[i], key) != 0)
        i++;
    return i;
}

enum byoc_status byi_json_only(const struct byi_json *object,
                               const char *const *keys, uint32_t n,
                               struct byoc_error *err)
{
    const cJSON *item = NULL;
    char path[160], list[300];
    uint64_t seen = 0;

    assert(n <= 64);
    if (!cJSON_IsObject(object->at))
        return byi_json_mismatch(object, "an object", err);
    cJSON_ArrayForEach(item, object->at)
    {
        uint32_t i = find_key(keys, n, item->string);
        bool is_repeated = i < n && (seen >> i & 1);
        if (i < n && !is_repeated) {
            seen |= (uint64_t)1 << i;
            continue;
        }
        join_path(path, object->path, item->string);
        if (is_repeated)
            return byi_fail(err, BYOC_EPARSE, "%s: found twice, expected once",
                            path);
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found an unknown member, expected one of %s", path,
                        list_keys(list, sizeof list, keys, n));
    }
    return BYOC_OK;
}

enum byoc_status byi_json_version(const struct byi_json *root,
                                  const char *format, int version,
                                  struct byoc_error *err)
{
    const char *found = NULL;
    int64_t number;

    BYI_TRY(byi_json_string(root, "format", &found, err));
    if (strcmp(found, format) != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "format: found \"%.40s\", expected \"%s\"", found,
                        format);
    BYI_TRY(byi_json_int(root, "version", 0, INT32_MAX, &number, err));
    return number == version ? BYOC_OK
                             : byi_fail(err, BYOC_EINCOMPATIBLE,
                                        "version: found %lld, expected %d; "
                                        "compile the model again",
                                        (long long)number, version);
}

enum byoc_status byi_json_count(const struct byi_json *object,
                                const struct byi_json_items *items,
                                const char *key, uint32_t max, uint32_t *n,
                                struct byoc_error *err)
{
    struct byi_json list;

    /* `items` has the elements, and the tree has an empty array. An array whose
     * key is written with escapes stays in the tree, and is refused here. */
    BYI_TRY(byi_json_array(object, key, 0, &list, n, err));
    *n = items->n;
    return *n <= max ? BYOC_OK
                     : byi_fail(err, BYOC_ELIMIT,
                                "%s: found %u items, expected at most %u",
                                byi_json_path(&list), *n, max);
}

enum byoc_status byi_json_each(const struct byi_json *object,
                               const struct byi_json_items *items,
                               const char *const keys[2], byi_json_read *read,
                               void *ctx, struct byoc_error *err)
{
    const char *text = items->text;
    size_t rest = items->bytes;
    char path[160];
    enum byoc_status status = BYOC_OK;

    join_path(path, object->path, items->key);
    for (uint32_t i = 0; i < items->n && status == BYOC_OK; i++) {
        const size_t n = element_end(text, rest, 0);
        struct byi_json_items inner[2];
        struct byi_json item;
        cJSON *tree = NULL;
        join_index(item.path, path, i);
        status = byi_json_parse_around(text, n, n, keys, inner, &tree, err);
        item.at = tree;
        status = status == BYOC_OK ? read(ctx, i, &item, inner)
                                   : byi_prefix(err, "%s", item.path);
        byi_json_free(&tree);
        text += n < rest ? n + 1 : n;
        rest -= n < rest ? n + 1 : n;
    }
    return status;
}
