/* SPDX-License-Identifier: Apache-2.0 */
/* json_print.c: prints JSON, always the same text for the same tree. Members
 * keep their order; arrays and objects of scalars are on one line. Floats are
 * the shortest decimals that read back.
 */
#include "base.h"

#include <math.h>

#include <cjson/cJSON.h>

/* An object or array being printed. */
struct json_level {
    const cJSON *next; /* the member or element to print next */
    bool is_object;
    bool is_flat; /* on one line */
    bool has_begun;
};

/* The state of printing a document. */
struct json_printer {
    struct byi_text *out;
    uint32_t depth; /* of the outermost level */
    bool one_line;
    BYI_VEC(struct json_level) levels; /* instead of recursion */
};

static void put_text(struct json_printer *p, const char *text)
{
    byi_text_put(p->out, text);
}

static void put_number(struct json_printer *p, double value)
{
    char text[32];

    if (!isfinite(value))
        put_text(p, "null"); /* JSON has no NaN or infinity */
    else
        put_text(p, byi_float_text(text, value, false));
}

static void put_scalar(struct json_printer *p, const cJSON *item)
{
    if (cJSON_IsString(item))
        byi_json_quote(p->out, item->valuestring);
    else if (cJSON_IsNumber(item))
        put_number(p, item->valuedouble);
    else if (cJSON_IsRaw(item))
        put_text(p, item->valuestring);
    else
        put_text(p, cJSON_IsTrue(item)    ? "true"
                    : cJSON_IsFalse(item) ? "false"
                                          : "null");
}

static bool is_scalar(const cJSON *item)
{
    return !cJSON_IsObject(item) && !cJSON_IsArray(item);
}

static bool has_only_scalars(const cJSON *list)
{
    const cJSON *item = NULL;

    cJSON_ArrayForEach(item, list) if (!is_scalar(item)) return false;
    return true;
}

static void indent(struct json_printer *p)
{
    static const char spaces[] = "                                ";
    size_t n = 2 * ((size_t)p->depth + p->levels.n);

    put_text(p, "\n");
    for (; n > sizeof spaces - 1; n -= sizeof spaces - 1)
        put_text(p, spaces);
    byi_text_add(p->out, spaces, n);
}

static void open_level(struct json_printer *p, const cJSON *item)
{
    struct json_level level = {
        .next = item->child,
        .is_object = cJSON_IsObject(item),
        .is_flat = p->one_line || has_only_scalars(item),
    };

    put_text(p, level.is_object ? "{" : "[");
    BYI_PUSH(&p->levels, level);
    if (!level.is_flat)
        indent(p);
}

static void put_item(struct json_printer *p, const cJSON *item)
{
    if (is_scalar(item))
        put_scalar(p, item);
    else
        open_level(p, item);
}

static void close_level(struct json_printer *p)
{
    struct json_level level = p->levels.at[--p->levels.n];

    if (!level.is_flat)
        indent(p);
    put_text(p, level.is_object ? "}" : "]");
}

/* Print the next member of the innermost level, or its end. */
static void print_next(struct json_printer *p)
{
    struct json_level *level = &p->levels.at[p->levels.n - 1];
    const cJSON *item = level->next;

    if (!item) {
        close_level(p);
        return;
    }
    level->next = item->next;
    if (level->has_begun) {
        put_text(p, level->is_flat ? ", " : ",");
        if (!level->is_flat)
            indent(p);
    }
    level->has_begun = true;
    if (level->is_object) {
        byi_json_quote(p->out, item->string);
        put_text(p, ": ");
    }
    put_item(p, item); /* invalidates `level` */
}

static void print_tree(struct json_printer *p, const cJSON *item)
{
    put_item(p, item);
    while (p->levels.n > 0)
        print_next(p);
    byi_vec_free(p->levels.at);
}

void byi_json_print_item(const struct cJSON *item, uint32_t depth,
                         struct byi_text *out)
{
    struct json_printer p = {.out = out, .depth = depth};

    print_tree(&p, item);
}

void byi_json_print_line(const struct cJSON *item, struct byi_text *out)
{
    struct json_printer p = {.out = out, .one_line = true};

    print_tree(&p, item);
}

void byi_json_print(const struct cJSON *root, struct byi_text *out)
{
    byi_json_print_item(root, 0, out);
    byi_text_put(out, "\n");
}
