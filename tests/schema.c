/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c: a small validator of JSON Schema. It is recursive, since the
 * schemas of docs/ are shallow.
 */
#include "schema.h"

#include <cjson/cJSON.h>

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of schema_fits. */
struct check {
    const cJSON *root; /* of the schema, for references */
    char path[256];    /* of the value being checked */
    char *why;
    size_t why_bytes;
};

static bool fits(struct check *c, const cJSON *schema, const cJSON *value);

/* Write why the value is invalid. Returns false. */
static bool refuse(struct check *c, const char *rule, const char *what)
{
    snprintf(c->why, c->why_bytes, "%s: %s %s",
             *c->path ? c->path : "the document", rule, what);
    return false;
}

/* Whether a member or element of the value fits; `step` leads to it. */
static bool fits_below(struct check *c, const cJSON *schema, const cJSON *value,
                       const char *step)
{
    const size_t n = strlen(c->path);
    snprintf(c->path + n, sizeof c->path - n, "%s%s",
             n && *step != '[' ? "." : "", step);
    const bool valid = fits(c, schema, value);
    c->path[n] = '\0';
    return valid;
}

static const cJSON *member(const cJSON *object, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(object, key);
}

/* --- keywords: each returns whether the value is valid -------------------- */

static bool is_type(const char *type, const cJSON *v)
{
    return !strcmp(type, "object")    ? cJSON_IsObject(v)
           : !strcmp(type, "array")   ? cJSON_IsArray(v)
           : !strcmp(type, "string")  ? cJSON_IsString(v)
           : !strcmp(type, "boolean") ? cJSON_IsBool(v)
           : !strcmp(type, "number")  ? cJSON_IsNumber(v)
           : !strcmp(type, "integer")
               ? cJSON_IsNumber(v) && v->valuedouble == floor(v->valuedouble)
               : false;
}

static bool check_type(struct check *c, const cJSON *rule, const cJSON *schema,
                       const cJSON *v)
{
    (void)schema;
    return is_type(rule->valuestring, v) ||
           refuse(c, "expected", rule->valuestring);
}

static bool check_const(struct check *c, const cJSON *rule, const cJSON *schema,
                        const cJSON *v)
{
    (void)schema;
    return cJSON_Compare(rule, v, true) || refuse(c, "is not the constant", "");
}

static bool check_enum(struct check *c, const cJSON *rule, const cJSON *schema,
                       const cJSON *v)
{
    const cJSON *allowed;
    (void)schema;
    cJSON_ArrayForEach(allowed,
                       rule) if (cJSON_Compare(allowed, v, true)) return true;
    return refuse(c, "expected one of the schema's values, found",
                  cJSON_IsString(v) ? v->valuestring : "another type");
}

static bool check_ref(struct check *c, const cJSON *rule, const cJSON *schema,
                      const cJSON *v)
{
    static const char defs[] = "#/$defs/";
    (void)schema;
    const cJSON *to =
        strncmp(rule->valuestring, defs, strlen(defs)) == 0
            ? member(member(c->root, "$defs"), rule->valuestring + strlen(defs))
            : NULL;
    return to ? fits(c, to, v) : refuse(c, "refers to", rule->valuestring);
}

/* If the value fits none of the schemas, `why` says why it does not fit the
 * last one. */
static bool check_one_of(struct check *c, const cJSON *rule,
                         const cJSON *schema, const cJSON *v)
{
    const cJSON *choice;
    uint32_t n = 0;
    (void)schema;
    cJSON_ArrayForEach(choice, rule) n += fits(c, choice, v);
    return n == 1 || (n > 1 ? refuse(c, "fits several of", "oneOf") : false);
}

static bool check_required(struct check *c, const cJSON *rule,
                           const cJSON *schema, const cJSON *v)
{
    const cJSON *key;
    (void)schema;
    cJSON_ArrayForEach(
        key,
        rule) if (cJSON_IsObject(v) &&
                  !member(v, key->valuestring)) return refuse(c, "lacks",
                                                              key->valuestring);
    return true;
}

static bool check_properties(struct check *c, const cJSON *rule,
                             const cJSON *schema, const cJSON *v)
{
    const cJSON *item;
    (void)schema;
    if (!cJSON_IsObject(v))
        return true;
    cJSON_ArrayForEach(item, v)
    {
        const cJSON *below = member(rule, item->string);
        if (below && !fits_below(c, below, item, item->string))
            return false;
    }
    return true;
}

static bool check_additional(struct check *c, const cJSON *rule,
                             const cJSON *schema, const cJSON *v)
{
    const cJSON *item;
    if (!cJSON_IsObject(v))
        return true;
    cJSON_ArrayForEach(item, v)
    {
        if (member(member(schema, "properties"), item->string))
            continue;
        if (cJSON_IsFalse(rule))
            return refuse(c, "may not have", item->string);
        if (!fits_below(c, rule, item, item->string))
            return false;
    }
    return true;
}

static bool check_items(struct check *c, const cJSON *rule, const cJSON *schema,
                        const cJSON *v)
{
    const cJSON *item;
    uint32_t i = 0;
    (void)schema;
    if (!cJSON_IsArray(v))
        return true;
    cJSON_ArrayForEach(item, v)
    {
        char step[16];
        snprintf(step, sizeof step, "[%u]", i++);
        if (!fits_below(c, rule, item, step))
            return false;
    }
    return true;
}

static bool check_unique(struct check *c, const cJSON *rule,
                         const cJSON *schema, const cJSON *v)
{
    (void)schema;
    for (const cJSON *a = v->child; a && cJSON_IsTrue(rule); a = a->next)
        for (const cJSON *b = a->next; b; b = b->next)
            if (cJSON_Compare(a, b, true))
                return refuse(c, "has twice", "an item");
    return true;
}

static bool check_size(struct check *c, const cJSON *rule, const cJSON *schema,
                       const cJSON *v)
{
    const int n = cJSON_GetArraySize(v); /* of an object: its members */
    const bool is_minimum = strncmp(rule->string, "min", 3) == 0;
    (void)schema;
    if (!cJSON_IsArray(v) && !cJSON_IsObject(v))
        return true;
    return (is_minimum ? n >= rule->valuedouble : n <= rule->valuedouble) ||
           refuse(c, "has a size that violates", rule->string);
}

static bool check_range(struct check *c, const cJSON *rule, const cJSON *schema,
                        const cJSON *v)
{
    const bool is_minimum = strncmp(rule->string, "min", 3) == 0;
    (void)schema;
    if (!cJSON_IsNumber(v))
        return true;
    return (is_minimum ? v->valuedouble >= rule->valuedouble
                       : v->valuedouble <= rule->valuedouble) ||
           refuse(c, "is a number that violates", rule->string);
}

static const struct {
    const char *key;
    bool (*check)(struct check *, const cJSON *rule, const cJSON *schema,
                  const cJSON *value); /* NULL: no constraint on the value */
} keywords[] = {
    {"$schema", NULL},
    {"$defs", NULL},
    {"title", NULL},
    {"description", NULL},
    {"type", check_type},
    {"const", check_const},
    {"enum", check_enum},
    {"$ref", check_ref},
    {"oneOf", check_one_of},
    {"required", check_required},
    {"properties", check_properties},
    {"additionalProperties", check_additional},
    {"items", check_items},
    {"uniqueItems", check_unique},
    {"minItems", check_size},
    {"maxItems", check_size},
    {"maxProperties", check_size},
    {"minimum", check_range},
    {"maximum", check_range},
};

static bool fits(struct check *c, const cJSON *schema, const cJSON *value)
{
    const size_t n = sizeof keywords / sizeof *keywords;
    const cJSON *rule;
    cJSON_ArrayForEach(rule, schema)
    {
        size_t i = 0;
        while (i < n && strcmp(keywords[i].key, rule->string) != 0)
            i++;
        if (i == n)
            return refuse(c,
                          "the schema has an unknown keyword:", rule->string);
        if (keywords[i].check && !keywords[i].check(c, rule, schema, value))
            return false;
    }
    return true;
}

bool schema_fits(const cJSON *schema, const cJSON *value, char *why, size_t n)
{
    struct check c = {.root = schema, .why = why, .why_bytes = n};
    if (n)
        *why = '\0';
    return fits(&c, schema, value);
}

cJSON *schema_read(const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/../docs/%s", TEST_DIR, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    char *text = calloc(1, 1 << 20);
    const size_t n_bytes = fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    cJSON *schema = n_bytes ? cJSON_Parse(text) : NULL;
    free(text);
    return schema;
}
