/* SPDX-License-Identifier: Apache-2.0 */
/* cost_table.c: stores measured times as JSON, under a hash of everything that
 * they depend on. */
#include "cost_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    VERSION = 1,
    MAX_ENTRIES = 50000,
    MAX_BYTES = 64 << 20,
};

/* --- in memory ------------------------------------------------------------ */

static struct byi_cost_entry *find_entry(const struct byi_cost_table *t,
                                         const char *key)
{
    BYI_INDEX_EACH (&t->by_key, byi_hash_text(key), i)
        if (strcmp(t->list.at[i].key, key) == 0)
            return &t->list.at[i];
    return NULL;
}

static void put_entry(struct byi_cost_table *t, const char *key, int64_t ns,
                      const char *description)
{
    if (!find_entry(t, key)) {
        struct byi_cost_entry new_entry = {.ns = 0};
        snprintf(new_entry.key, sizeof new_entry.key, "%s", key);
        byi_index_add(&t->by_key, byi_hash_text(new_entry.key), t->list.n);
        BYI_PUSH(&t->list, new_entry);
    }
    struct byi_cost_entry *e = find_entry(t, key);
    e->ns = ns;
    e->description = byi_arena_str(t->arena, description);
}

bool byi_cost_get(const struct byi_cost_table *t, const char *key, double *us)
{
    const struct byi_cost_entry *e = find_entry(t, key);
    if (!e)
        return false;
    const int64_t ns = e->ns;
    *us = ns < 0 ? (double)INFINITY : (double)ns / 1e3;
    return true;
}

void byi_cost_put(struct byi_cost_table *t, const char *key, double us,
                  const char *description)
{
    put_entry(t, key, isfinite(us) ? (int64_t)llround(us * 1e3) : -1,
              description);
    t->changed = true;
}

/* --- reading -------------------------------------------------------------- */

static enum byoc_status read_entry(struct byi_cost_table *t,
                                   const struct byi_json *item,
                                   struct byoc_error *err)
{
    const char *key, *description;
    int64_t ns;
    BYI_TRY(byi_json_string(item, "key", &key, err));
    BYI_TRY(byi_json_int(item, "ns", -1, INT64_C(1) << 52, &ns, err));
    BYI_TRY(byi_json_string(item, "of", &description, err));
    if (strlen(key) != 64 || strspn(key, "0123456789abcdef") != 64)
        return byi_fail(err, BYOC_EPARSE,
                        "%s.key: found \"%.80s\", expected 64 hex digits",
                        item->path, key);
    put_entry(t, key, ns, description);
    return BYOC_OK;
}

static enum byoc_status read_root(struct byi_cost_table *t,
                                  const struct byi_json *root,
                                  struct byoc_error *err)
{
    const char *format;
    int64_t version;
    struct byi_json costs, item = {0};
    uint32_t n;
    BYI_TRY(byi_json_string(root, "format", &format, err));
    if (strcmp(format, "byoc-costs") != 0)
        return byi_fail(err, BYOC_EPARSE,
                        "format: found \"%.40s\", expected \"byoc-costs\"",
                        format);
    BYI_TRY(byi_json_int(root, "version", VERSION, VERSION, &version, err));
    BYI_TRY(byi_json_array(root, "costs", MAX_ENTRIES, &costs, &n, err));
    for (uint32_t i = 0; byi_json_next(&costs, &item, i); i++)
        BYI_TRY(read_entry(t, &item, err));
    return BYOC_OK;
}

static void clear_table(struct byi_cost_table *t)
{
    t->list.n = 0;
    byi_index_free(&t->by_key);
}

/* Read all entries of a file, or none. */
static enum byoc_status read_file(struct byi_cost_table *t,
                                  struct byoc_error *err)
{
    const void *data;
    size_t n;
    struct cJSON *json = NULL;
    BYI_TRY(byi_map_file(t->path, &data, &n, err));
    enum byoc_status status =
        byi_json_parse(data ? data : "", n, MAX_BYTES, &json, err);
    if (status == BYOC_OK) {
        const struct byi_json root = byi_json_root(json);
        status = read_root(t, &root, err);
    }
    byi_json_free(&json);
    byi_unmap(data, n);
    if (status != BYOC_OK)
        clear_table(t);
    return status;
}

/* Returns the default path of the table, or NULL if no environment variable
 * gives a folder. Relative folders are ignored. */
static const char *default_path(struct byi_arena *arena)
{
    static const char *const places[][2] = {{"BYOC_CACHE_DIR", ""},
                                            {"XDG_CACHE_HOME", "/byoc"},
                                            {"HOME", "/.cache/byoc"}};
    for (size_t i = 0; i < BYI_COUNT(places); i++) {
        const char *folder = secure_getenv(places[i][0]);
        if (folder && folder[0] == '/')
            return byi_arena_printf(arena, "%s%s/costs.json", folder,
                                    places[i][1]);
    }
    return NULL;
}

void byi_cost_table_open(struct byi_cost_table *t, const char *path,
                         struct byi_text *note)
{
    struct byoc_error err;
    t->arena = byi_arena_new();
    t->path = path ? byi_arena_str(t->arena, path) : default_path(t->arena);
    if (!t->path) {
        byi_text_addf(note, "measured times are not kept: found no folder for "
                            "the cost table; give --cost-table, or set "
                            "BYOC_CACHE_DIR\n");
        return;
    }
    if (access(t->path, F_OK) != 0)
        return;
    if (read_file(t, &err) != BYOC_OK)
        byi_text_addf(note,
                      "cost table %s is not used and will be replaced: %s\n",
                      t->path, err.text);
}

/* --- writing -------------------------------------------------------------- */

static enum byoc_status make_folders(const struct byi_cost_table *t,
                                     struct byoc_error *err)
{
    char *path = byi_arena_str(t->arena, t->path);
    for (char *c = path + 1; *c; c++)
        if (*c == '/') {
            *c = '\0';
            BYI_TRY(byi_folder_create(path, err));
            *c = '/';
        }
    return BYOC_OK;
}

static void print_entry(struct byi_text *text, const struct byi_cost_entry *e,
                        const char *comma)
{
    byi_text_addf(text, "%s\n{\"key\": \"%s\", \"ns\": %lld, \"of\": ", comma,
                  e->key, (long long)e->ns);
    byi_json_quote(text, e->description);
    byi_text_addf(text, "}");
}

static enum byoc_status write_file(const struct byi_cost_table *t,
                                   struct byoc_error *err)
{
    struct byi_text text = {0};
    const uint32_t first =
        t->list.n > MAX_ENTRIES ? t->list.n - MAX_ENTRIES : 0;
    byi_text_addf(&text,
                  "{\"format\": \"byoc-costs\", \"version\": %d, \"costs\": [",
                  VERSION);
    for (uint32_t i = first; i < t->list.n; i++)
        print_entry(&text, &t->list.at[i], i == first ? "" : ",");
    byi_text_addf(&text, "\n]}\n");
    const enum byoc_status status =
        byi_file_write(t->path, text.at, text.n, err);
    byi_text_free(&text);
    return status;
}

enum byoc_status byi_cost_table_save(struct byi_cost_table *t,
                                     struct byoc_error *err)
{
    struct byi_cost_table merged = {.arena = t->arena, .path = t->path};
    struct byoc_error unused;
    if (!t->path || !t->changed)
        return BYOC_OK;
    BYI_TRY(make_folders(t, err));
    if (access(t->path, F_OK) == 0)
        (void)read_file(&merged, &unused); /* a damaged file is replaced */
    for (uint32_t i = 0; i < t->list.n; i++)
        put_entry(&merged, t->list.at[i].key, t->list.at[i].ns,
                  t->list.at[i].description);
    enum byoc_status status = write_file(&merged, err);
    byi_vec_free(merged.list.at);
    byi_index_free(&merged.by_key);
    t->changed = status != BYOC_OK;
    return status;
}

void byi_cost_table_close(struct byi_cost_table *t)
{
    byi_vec_free(t->list.at);
    byi_index_free(&t->by_key);
    if (t->arena)
        byi_arena_free(&t->arena);
    *t = (struct byi_cost_table){0};
}
