/* plugin_path.c: where plug-ins are looked for: the caller's list, else
 * BYOC_PLUGIN_PATH, else beside libbyoc_runtime.so. Entries are absolute: the
 * current directory never decides which code runs.
 */
#include "internal.h"

#include "core/guard.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PREFIX "libbyoc_backend_"
#define SUFFIX ".so"

static int is_plugin(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name), p = strlen(PREFIX), s = strlen(SUFFIX);
    return n > p + s && strncmp(name, PREFIX, p) == 0 &&
           strcmp(name + n - s, SUFFIX) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* not the locale's order */
}

struct listing {
    struct dirent **entries;
    int n;
};

static void end_listing(void *data)
{
    struct listing *list = data;
    for (int i = 0; i < list->n; i++)
        free(list->entries[i]);
    free(list->entries);
    byi_vec_free(list);
}

/* Add the plug-ins of a folder; `only`: none but this vendor's. */
static void add_folder(const char *folder, const char *only,
                       struct byi_text *paths)
{
    struct listing *list = byi_own(1, sizeof *list, end_listing);
    list->n = scandir(folder, &list->entries, is_plugin, by_name);
    if (list->n < 0 && errno == ENOMEM)
        byi_oom(0);
    for (int i = 0; i < list->n; i++) {
        const char *name = list->entries[i]->d_name;
        size_t len = strlen(name) - strlen(PREFIX) - strlen(SUFFIX);
        bool wanted = !only || (strlen(only) == len &&
                                memcmp(name + strlen(PREFIX), only, len) == 0);
        if (wanted)
            byi_text_addf(paths, "%s/%s\n", folder, name);
    }
    end_listing(list);
}

static void add_entry(const char *path, const char *only,
                      struct byi_text *paths)
{
    struct stat st;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        add_folder(path, only, paths);
    else
        byi_text_addf(paths, "%s\n", path); /* opening says what is wrong */
}

static enum byoc_status add_list(const char *list, const char *only,
                                 struct byi_text *paths, struct byoc_error *err)
{
    while (*list) {
        size_t n = strcspn(list, ":");
        char path[4096];
        if (n >= sizeof path || (n > 0 && list[0] != '/'))
            return byi_fail(err, BYOC_EINVAL,
                            "\"%.*s\" in the list of plug-ins is not an "
                            "absolute path of at most %zu bytes",
                            n < 200 ? (int)n : 200, list, sizeof path - 1);
        memcpy(path, list, n);
        path[n] = '\0';
        if (n > 0)
            add_entry(path, only, paths);
        list += n + (list[n] == ':');
    }
    return BYOC_OK;
}

static enum byoc_status list_for(const char *plugins, const char *only,
                                 struct byi_text *paths, struct byoc_error *err)
{
    if (!plugins)
        plugins = getenv("BYOC_PLUGIN_PATH");
    if (plugins && *plugins)
        return add_list(plugins, only, paths, err);
    char folder[4096];
    if (!byi_library_folder(folder, sizeof folder - sizeof "/byoc"))
        return BYOC_OK;
    add_folder(folder, only, paths);
    strcat(folder, "/byoc");
    add_folder(folder, only, paths);
    return BYOC_OK;
}

static enum byoc_status list_paths(const char *plugins, const char *only,
                                   struct byi_text *paths,
                                   struct byoc_error *err)
{
    struct byi_text made = {0};
    BYI_BORDER(err);
    const enum byoc_status status = list_for(plugins, only, &made, err);
    *paths = made;
    return status;
}

enum byoc_status byoc_internal_plugin_list(const char *plugins,
                                           struct byi_text *paths,
                                           struct byoc_error *err)
{
    return list_paths(plugins, NULL, paths, err);
}

/* Open the paths in turn until one is the vendor's. What went wrong with the
 * last one that did not open is the message if none is. */
static enum byoc_status open_one_of(char *paths, const char *name,
                                    uint32_t threads,
                                    struct byi_plugin **plugin,
                                    struct byoc_error *err)
{
    struct byoc_error why = {.status = BYOC_OK};
    for (char *rest, *path = strtok_r(paths, "\n", &rest); path;
         path = strtok_r(NULL, "\n", &rest)) {
        struct byoc_error one;
        if (byoc_internal_plugin_open(path, threads, plugin, &one) != BYOC_OK) {
            why = one;
            if (one.status == BYOC_ENOMEM)
                break;
            continue;
        }
        if (strcmp((*plugin)->backend->name, name) == 0)
            return BYOC_OK;
        byoc_internal_plugin_close(plugin);
    }
    if (why.status != BYOC_OK)
        return byi_fail(err, why.status, "%s", why.text);
    return byi_fail(err, BYOC_EIO,
                    "no plug-in \"%s\": looked for " PREFIX "%s" SUFFIX
                    " in the plug-in folders; set BYOC_PLUGIN_PATH or name "
                    "its file",
                    name, name);
}

enum byoc_status byoc_internal_plugin_find(const char *plugins,
                                           const char *name, uint32_t threads,
                                           struct byi_plugin **plugin,
                                           struct byoc_error *err)
{
    struct byi_text paths = {0};
    *plugin = NULL;
    enum byoc_status status = list_paths(plugins, name, &paths, err);
    char none[] = "";
    if (status == BYOC_OK)
        status =
            open_one_of(paths.at ? paths.at : none, name, threads, plugin, err);
    byi_text_free(&paths);
    return status;
}
