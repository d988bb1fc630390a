/* SPDX-License-Identifier: Apache-2.0 */
/* json.c: reading and writing JSON (RFC 8259) through cJSON. The readers check
 * kind and range and name the path of what does not fit. cJSON keeps numbers
 * as doubles, so integers are exact up to 2^53 and larger ones refused; its
 * arrays are linked lists, so they are walked, never indexed.
 */
#include "guard.h"
#include "json_write.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

enum { MAX_DEPTH = 64, MAX_LIST = 65536 };
static const double exact = 9007199254740992.0; /* 2^53 */

/* --- parsing ------------------------------------------------------------ */

static size_t skip_string(const char *text, size_t n, size_t i)
{
    for (i++; i < n && text[i] != '"'; i++)
        if (text[i] == '\\')
            i++;
    return i;
}

/* What cJSON would take but must not be: deep nesting, which it recurses on,
 * and \u0000, which would end a string early. */
static enum byoc_status scan(const char *text, size_t n, struct byoc_error *err)
{
    uint32_t depth = 0;

    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\0')
            return byi_fail(err, BYOC_EPARSE,
                            "malformed JSON: a NUL at byte %zu", i);
        if (c == '"') {
            size_t end = skip_string(text, n, i);
            size_t len = end < n ? end - i : n - i;
            if (memmem(text + i, len, "\\u0000", 6) ||
                memchr(text + i, '\0', len))
                return byi_fail(err, BYOC_EPARSE,
                                "malformed JSON: a NUL in the string at byte "
                                "%zu",
                                i);
            i = end;
        } else if (c == '[' || c == '{') {
            if (++depth > MAX_DEPTH)
                return byi_fail(err, BYOC_ELIMIT,
                                "JSON nests deeper than %d at byte %zu",
                                MAX_DEPTH, i);
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return BYOC_OK;
}

static bool only_space(const char *text)
{
    return text[strspn(text, " \t\r\n")] == '\0';
}

static enum byoc_status no_memory(size_t n, struct byoc_error *err)
{
    return byi_fail(err, BYOC_ENOMEM, "no memory for %zu bytes of JSON", n);
}

static void end_tree(void *data)
{
    cJSON *root = data;

    cJSON_Delete(root->child);
    cJSON_free(root->valuestring);
    byi_vec_free(root);
}

/* The tree, its root in memory that a guard frees with all the others. */
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

enum byoc_status byi_json_parse(const char *text, size_t n, size_t max_bytes,
                                struct cJSON **root, struct byoc_error *err)
{
    const char *end = NULL;
    char *copy = NULL;
    cJSON *tree = NULL;
    bool whole = false, exhausted = false;
    enum byoc_status status = BYOC_OK;

    *root = NULL;
    if (n > max_bytes)
        return byi_fail(err, BYOC_ELIMIT,
                        "found %zu bytes of JSON, expected at most %zu", n,
                        max_bytes);
    BYI_TRY(scan(text, n, err));
    /* Older cJSON reads one byte past a text that has no NUL. */
    copy = byi_alloc(n + 1, 1);
    if (!copy)
        return no_memory(n, err);
    if (n)
        memcpy(copy, text, n);
    errno = 0; /* cJSON gives NULL for both; POSIX's malloc sets errno */
    tree = cJSON_ParseWithLengthOpts(copy, n + 1, &end, 0);
    exhausted = !tree && errno == ENOMEM;
    whole = tree && only_space(end);
    if (whole)
        *root = own_tree(tree);
    else
        cJSON_Delete(tree);
    if (exhausted || (whole && !*root))
        status = no_memory(n, err);
    else if (!whole)
        status = byi_fail(err, BYOC_EPARSE, "malformed JSON at byte %zu of %zu",
                          end ? (size_t)(end - copy) : (size_t)0, n);
    free(copy);
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

/* `path` of what lies below `base`; keys come from outside, so what is no
 * printable ASCII becomes '?'. A path that is too long ends in "...". */
static void join_path(char path[160], const char *base, const char *key)
{
    char joined[320];
    size_t n = strlen(base);

    memcpy(joined, base, n);
    snprintf(joined + n, sizeof joined - n, "%s%.120s",
             n && key[0] != '[' ? "." : "", key);
    for (char *c = joined; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    if (strlen(joined) > 159)
        memcpy(joined + 156, "...", 4);
    memcpy(path, joined, strlen(joined) + 1);
}

static const char *path_of(const struct byi_json *json)
{
    return json->path[0] ? json->path : "the document";
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

static enum byoc_status mismatch(const struct byi_json *item,
                                 const char *expected, struct byoc_error *err)
{
    return byi_fail(err, BYOC_EPARSE, "%s: found %s, expected %s",
                    path_of(item), kind_of(item->at), expected);
}

/* --- members ------------------------------------------------------------ */

enum byoc_status byi_json_opt(const struct byi_json *object, const char *key,
                              struct byi_json *out, struct byoc_error *err)
{
    if (!cJSON_IsObject(object->at))
        return mismatch(object, "an object", err);
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

enum byoc_status byi_json_as_int(const struct byi_json *item, int64_t min,
                                 int64_t max, int64_t *out,
                                 struct byoc_error *err)
{
    double value = 0;
    char found[32];

    if (!cJSON_IsNumber(item->at))
        return mismatch(item, "an integer", err);
    value = item->at->valuedouble;
    if (!(fabs(value) <= exact) || value != floor(value) ||
        (int64_t)value < min || (int64_t)value > max)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: found %s, expected an integer from %lld to %lld",
                        path_of(item), byi_float_text(found, value),
                        (long long)min, (long long)max);
    *out = (int64_t)value;
    return BYOC_OK;
}

enum byoc_status byi_json_as_string(const struct byi_json *item,
                                    const char **out, struct byoc_error *err)
{
    if (!cJSON_IsString(item->at))
        return mismatch(item, "a string", err);
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
        return mismatch(out, "an array", err);
    cJSON_ArrayForEach(item, out->at) if (count++ == max) return byi_fail(
        err, BYOC_ELIMIT, "%s: found more than %u items, which is the limit",
        out->path, max);
    *n = count;
    return BYOC_OK;
}

bool byi_json_next(const struct byi_json *array, struct byi_json *item,
                   uint32_t index)
{
    char key[16];

    item->at = item->at ? item->at->next : array->at->child;
    if (!item->at)
        return false;
    snprintf(key, sizeof key, "[%u]", index);
    join_path(item->path, array->path, key);
    return true;
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
    char path[160];
    uint64_t seen = 0;

    assert(n <= 64);
    if (!cJSON_IsObject(object->at))
        return mismatch(object, "an object", err);
    cJSON_ArrayForEach(item, object->at)
    {
        uint32_t i = find_key(keys, n, item->string);
        bool again = i < n && (seen >> i & 1);
        if (i < n && !again) {
            seen |= (uint64_t)1 << i;
            continue;
        }
        join_path(path, object->path, item->string);
        return byi_fail(err, BYOC_EPARSE,
                        again ? "%s: found twice, expected once"
                              : "%s: found a member that is not known here",
                        path);
    }
    return BYOC_OK;
}

/* --- attributes, read --------------------------------------------------- */

static enum byoc_status read_float(const struct byi_json *item, double *out,
                                   struct byoc_error *err)
{
    static const char *const names[] = {"inf", "-inf", "nan"};
    static const double values[] = {INFINITY, -INFINITY, NAN};

    if (cJSON_IsNumber(item->at) && isfinite(item->at->valuedouble)) {
        *out = item->at->valuedouble;
        return BYOC_OK;
    }
    for (size_t i = 0; cJSON_IsString(item->at) && i < 3; i++)
        if (strcmp(item->at->valuestring, names[i]) == 0) {
            *out = values[i];
            return BYOC_OK;
        }
    return mismatch(item, "a number, \"inf\", \"-inf\" or \"nan\"", err);
}

/* A number, or the decimal digits of one beyond 2^53 as a string. */
static enum byoc_status read_int(const struct byi_json *item, int64_t *out,
                                 struct byoc_error *err)
{
    const char *text = NULL;
    char again[32];
    long long value = 0;

    if (!cJSON_IsString(item->at))
        return byi_json_as_int(item, INT64_MIN, INT64_MAX, out, err);
    text = item->at->valuestring;
    value = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", value);
    if (strcmp(text, again) != 0)
        return mismatch(item, "an integer", err);
    *out = value;
    return BYOC_OK;
}

static enum byoc_status read_dtype(const struct byi_json *item, int64_t *out,
                                   struct byoc_error *err)
{
    const char *name = NULL;

    BYI_TRY(byi_json_as_string(item, &name, err));
    *out = byi_dtype_of_name(name, strlen(name));
    if (*out == BYOC_NONE)
        return mismatch(item, "the name of a dtype, such as \"float32\"", err);
    return BYOC_OK;
}

static enum byoc_status read_list(const struct byi_json *list,
                                  struct byi_arena *arena,
                                  struct byi_attr *attr, struct byoc_error *err)
{
    struct byi_json item = {0};
    uint32_t n = 0;
    int64_t *ints = NULL;
    double *floats = NULL;
    const char **strings = NULL;

    if (!cJSON_IsArray(list->at))
        return mismatch(list, "an array", err);
    n = (uint32_t)cJSON_GetArraySize(list->at);
    if (n > MAX_LIST)
        return byi_fail(err, BYOC_ELIMIT,
                        "%s: found %u items, expected at most %d",
                        path_of(list), n, MAX_LIST);
    attr->n = n;
    attr->ints = ints = byi_arena_calloc(arena, n, sizeof *ints);
    if (attr->kind == BYI_ATTR_FLOATS)
        attr->floats = floats = byi_arena_calloc(arena, n, sizeof *floats);
    if (attr->kind == BYI_ATTR_STRINGS)
        attr->strings = strings = byi_arena_calloc(arena, n, sizeof *strings);
    for (uint32_t i = 0; byi_json_next(list, &item, i); i++) {
        if (floats)
            BYI_TRY(read_float(&item, &floats[i], err));
        else if (strings)
            BYI_TRY(byi_json_as_string(&item, &strings[i], err));
        else
            BYI_TRY(read_int(&item, &ints[i], err));
    }
    return BYOC_OK;
}

/* attr->kind says what is wanted. */
static enum byoc_status read_attr(const struct byi_json *item,
                                  struct byi_arena *arena,
                                  struct byi_attr *attr, struct byoc_error *err)
{
    switch (attr->kind) {
    case BYI_ATTR_INT:
        return read_int(item, &attr->i, err);
    case BYI_ATTR_FLOAT:
        return read_float(item, &attr->f, err);
    case BYI_ATTR_BOOL:
        if (!cJSON_IsBool(item->at))
            return mismatch(item, "true or false", err);
        attr->i = cJSON_IsTrue(item->at);
        return BYOC_OK;
    case BYI_ATTR_STRING:
        return byi_json_as_string(item, &attr->s, err);
    case BYI_ATTR_DTYPE:
        return read_dtype(item, &attr->i, err);
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        return read_list(item, arena, attr, err);
    }
    byi_unreachable();
}

enum byoc_status byi_json_attrs(const struct byi_json *object,
                                struct byi_arena *arena,
                                const struct byi_op *op,
                                const struct byi_attrs **attrs,
                                struct byoc_error *err)
{
    enum { MOST = 64 };
    struct byi_attr given[MOST];
    const cJSON *member = NULL;
    uint32_t n = 0;

    if (!cJSON_IsObject(object->at))
        return mismatch(object, "an object", err);
    cJSON_ArrayForEach(member, object->at)
    {
        struct byi_json item = {.at = member};
        const struct byi_attr_def *def = byi_op_attr(op, member->string);
        join_path(item.path, object->path, member->string);
        if (!def || n == MOST)
            return byi_fail(err, BYOC_EPARSE,
                            "%s: found an attribute that %s does not have",
                            item.path, op->name);
        given[n] = (struct byi_attr){.name = def->name, .kind = def->kind};
        BYI_TRY(read_attr(&item, arena, &given[n++], err));
    }
    if (byi_attrs_make(arena, op, given, n, attrs, err) != BYOC_OK)
        return byi_prefix(err, "%s", path_of(object));
    return BYOC_OK;
}

/* --- writing: nodes in an arena ------------------------------------------ */

static cJSON *new_node(struct byi_arena *arena, int type)
{
    cJSON *node = byi_arena_calloc(arena, 1, sizeof *node);

    node->type = type;
    return node;
}

struct cJSON *byi_json_object(struct byi_arena *arena)
{
    return new_node(arena, cJSON_Object);
}

struct cJSON *byi_json_list(struct byi_arena *arena)
{
    return new_node(arena, cJSON_Array);
}

struct cJSON *byi_json_text(struct byi_arena *arena, const char *text)
{
    cJSON *node = new_node(arena, cJSON_String);

    node->valuestring = byi_arena_str(arena, text);
    return node;
}

struct cJSON *byi_json_number(struct byi_arena *arena, double value)
{
    cJSON *node = new_node(arena, cJSON_Number);

    node->valuedouble = value;
    return node;
}

struct cJSON *byi_json_bool(struct byi_arena *arena, bool value)
{
    return new_node(arena, value ? cJSON_True : cJSON_False);
}

struct cJSON *byi_json_append(struct cJSON *list, struct cJSON *item)
{
    if (!list->child) {
        list->child = item->prev = item;
        return item;
    }
    item->prev = list->child->prev; /* of the first one: the last */
    item->prev->next = item;
    list->child->prev = item;
    return item;
}

struct cJSON *byi_json_add(struct cJSON *object, const char *key,
                           struct cJSON *item)
{
    item->string = (char *)(uintptr_t)key;
    return byi_json_append(object, item);
}

void byi_json_replace(struct cJSON *object, const char *key,
                      const struct cJSON *item)
{
    cJSON *old = cJSON_GetObjectItemCaseSensitive(object, key);

    if (!old)
        return;
    if (!(old->type & cJSON_IsReference)) {
        cJSON_Delete(old->child);
        cJSON_free(old->valuestring);
    }
    old->child = item->child;
    old->valuestring = item->valuestring;
    old->valuedouble = item->valuedouble;
    old->type = item->type | cJSON_IsReference; /* it owns none of these */
}

static cJSON *write_float(struct byi_arena *arena, double value)
{
    char text[32];

    if (isfinite(value))
        return byi_json_number(arena, value);
    return byi_json_text(arena, byi_float_text(text, value));
}

static cJSON *write_int(struct byi_arena *arena, int64_t value)
{
    char text[32];

    if (fabs((double)value) <= exact)
        return byi_json_number(arena, (double)value);
    snprintf(text, sizeof text, "%lld", (long long)value);
    return byi_json_text(arena, text);
}

static cJSON *write_list(struct byi_arena *arena, const struct byi_attr *attr)
{
    cJSON *list = byi_json_list(arena);

    for (uint32_t i = 0; i < attr->n; i++) {
        if (attr->kind == BYI_ATTR_INTS)
            byi_json_append(list, write_int(arena, attr->ints[i]));
        else if (attr->kind == BYI_ATTR_FLOATS)
            byi_json_append(list, write_float(arena, attr->floats[i]));
        else
            byi_json_append(list, byi_json_text(arena, attr->strings[i]));
    }
    return list;
}

static cJSON *write_attr(struct byi_arena *arena, const struct byi_attr *attr)
{
    switch (attr->kind) {
    case BYI_ATTR_INT:
        return write_int(arena, attr->i);
    case BYI_ATTR_FLOAT:
        return write_float(arena, attr->f);
    case BYI_ATTR_BOOL:
        return byi_json_bool(arena, attr->i != 0);
    case BYI_ATTR_STRING:
        return byi_json_text(arena, attr->s);
    case BYI_ATTR_DTYPE:
        return byi_json_text(arena, byoc_dtype_name((enum byoc_dtype)attr->i));
    case BYI_ATTR_INTS:
    case BYI_ATTR_FLOATS:
    case BYI_ATTR_STRINGS:
        return write_list(arena, attr);
    }
    byi_unreachable();
}

struct cJSON *byi_json_of_attrs(struct byi_arena *arena,
                                const struct byi_attrs *attrs)
{
    cJSON *object = byi_json_object(arena);

    for (uint32_t i = 0; i < attrs->n; i++)
        byi_json_add(object, attrs->at[i].name,
                     write_attr(arena, &attrs->at[i]));
    return object;
}

struct cJSON *byi_json_of_type(struct byi_arena *arena,
                               const struct byi_type *type,
                               const char *(*symbol)(void *, int64_t),
                               void *ctx)
{
    cJSON *object = byi_json_object(arena);
    cJSON *shape = byi_json_list(arena);

    assert(type->kind == BYI_TENSOR);
    byi_json_add(object, "dtype",
                 byi_json_text(arena, byoc_dtype_name(type->dtype)));
    byi_json_add(object, "shape", shape);
    for (uint32_t i = 0; i < type->rank; i++) {
        int64_t dim = type->dims[i];
        byi_json_append(shape, BYI_IS_SYMBOL(dim)
                                   ? byi_json_text(arena, symbol(ctx, dim))
                                   : write_int(arena, dim));
    }
    return object;
}
