/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_path.c: searches for plug-ins: in the caller's list, otherwise in
 * BYOC_PLUGIN_PATH; then, unless an entry of the list is the word "only", next
 * to libbyoc_runtime.so. Entries are absolute, so that the current directory
 * never decides which code runs. Folders from the environment and next to the
 * library are used only if no other user can write to them. */
#include "internal.h"

#include "core/base/guard.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "libbyoc_backend_"
#define SUFFIX ".so"

enum { PATH_BYTES = 4096 };

/* The state of a search, which lists the paths of candidates, one per line, in
 * the order in which they are tried. */
struct path_search {
    const char *backend;     /* the backend to search for; NULL: all */
    bool from_caller;        /* the entries come from the caller's list */
    struct byi_text *paths;  /* the candidates */
    struct byi_text *places; /* the places that were searched, for messages */
    struct byoc_error *err;
};

static int has_plugin_name(const struct dirent *entry)
{
    const char *name = entry->d_name;
    size_t n = strlen(name), p = strlen(PREFIX), s = strlen(SUFFIX);
    return n > p + s && strncmp(name, PREFIX, p) == 0 &&
           strcmp(name + n - s, SUFFIX) == 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* byte order, in any locale */
}

/* --- trusted folders ------------------------------------------------------ */

/* Whether to trust files of this owner: the current user, root, or the owner of
 * this library, whose code already runs in this process. */
static bool is_trusted(uid_t owner)
{
    char folder[PATH_BYTES];
    struct stat st;
    return owner == 0 || owner == geteuid() ||
           (byi_library_find_folder(folder, sizeof folder) &&
            stat(folder, &st) == 0 && owner == st.st_uid);
}

/* Fail if users other than the trusted ones may change this folder or file;
 * `what` names it in the message. */
static enum byoc_status check_safe(const char *path, const char *what,
                                   struct byoc_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return BYOC_OK; /* opening the plug-in reports the error */
    if (st.st_mode & S_IWOTH)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: everybody may write to this %s, so no plug-in of "
                        "it is loaded; try chmod o-w",
                        path, what);
    if (!is_trusted(st.st_uid))
        return byi_fail(err, BYOC_EINVAL,
                        "%s: user %u owns this %s, expected you or root, so no "
                        "plug-in of it is loaded; name it with --plugin",
                        path, (unsigned)st.st_uid, what);
    return BYOC_OK;
}

/* --- candidates ----------------------------------------------------------- */

static bool is_candidate(const struct path_search *w, const char *name)
{
    const size_t n = strlen(name) - strlen(PREFIX) - strlen(SUFFIX);
    return !w->backend || (strlen(w->backend) == n &&
                           memcmp(name + strlen(PREFIX), w->backend, n) == 0);
}

/* Whether an earlier folder has a candidate of this file name, which takes
 * precedence. */
static bool is_listed(const struct path_search *w, const char *name)
{
    const size_t n = strlen(name);
    const char *line = w->paths->n ? w->paths->at : "";
    for (size_t k; *line; line += k + 1) {
        k = strcspn(line, "\n");
        if (k > n && line[k - n - 1] == '/' &&
            memcmp(line + k - n, name, n) == 0)
            return true;
    }
    return false;
}

/* Count a plug-in of a folder in *n, and add it if it is a candidate. */
static enum byoc_status add_file(const struct path_search *w,
                                 const char *folder, const char *name,
                                 uint32_t *n)
{
    char path[2 * PATH_BYTES];
    ++*n;
    if (!is_candidate(w, name) || is_listed(w, name))
        return BYOC_OK;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!w->from_caller && *n == 1)
        BYI_TRY(check_safe(folder, "folder", w->err));
    if (!w->from_caller)
        BYI_TRY(check_safe(path, "file", w->err));
    byi_text_addf(w->paths, "%s\n", path);
    return BYOC_OK;
}

/* The entries of a folder, as scandir returns them; n is -1 after a failure. */
struct plugin_listing {
    struct dirent **entries;
    int n;
};

static void free_listing(void *data)
{
    struct plugin_listing *list = data;
    for (int i = 0; i < list->n; i++)
        free(list->entries[i]);
    free(list->entries);
    byi_vec_free(list);
}

/* Add the candidates of a folder. Sets *n to the number of plug-ins in it, of
 * any backend. */
static enum byoc_status add_folder(const struct path_search *w,
                                   const char *folder, uint32_t *n)
{
    struct plugin_listing *list = byi_own(1, sizeof *list, free_listing);
    enum byoc_status status = BYOC_OK;
    *n = 0;
    list->n = scandir(folder, &list->entries, has_plugin_name, compare_names);
    if (list->n < 0 && errno == ENOMEM)
        byi_oom(0);
    byi_text_addf(w->places, "%s%s", w->places->n ? ", " : "", folder);
    for (int i = 0; i < list->n && status == BYOC_OK; i++)
        status = add_file(w, folder, list->entries[i]->d_name, n);
    free_listing(list);
    return status;
}

/* Add the candidates of one entry of a list: a file, or a folder. */
static enum byoc_status add_entry(const struct path_search *w, const char *path)
{
    struct stat st = {.st_mode = 0};
    uint32_t n = 0;
    const bool found = stat(path, &st) == 0;
    if (!S_ISDIR(st.st_mode)) {
        byi_text_addf(w->places, "%s%s", w->places->n ? ", " : "", path);
        /* as in PATH, a missing folder does not end the search */
        if (!found && !w->from_caller && w->backend)
            return BYOC_OK;
        if (!w->from_caller)
            BYI_TRY(check_safe(path, "file", w->err));
        byi_text_addf(w->paths, "%s\n", path); /* opening reports the error */
        return BYOC_OK;
    }
    BYI_TRY(add_folder(w, path, &n));
    if (n || !w->from_caller)
        return BYOC_OK;
    return byi_fail(w->err, BYOC_EBACKEND,
                    "%s: found no plug-in, expected " PREFIX "NAME" SUFFIX
                    " or a folder with files of this name",
                    path);
}

/* Add the candidates of a list's entries. Sets *only_list if the list contains
 * "only". */
static enum byoc_status add_list(const struct path_search *w, const char *list,
                                 bool *only_list)
{
    static const char word[] = "only";
    while (*list) {
        const size_t n = strcspn(list, ":");
        char path[PATH_BYTES];
        if (n == strlen(word) && memcmp(list, word, n) == 0)
            *only_list = true;
        else if (n >= sizeof path || (n > 0 && list[0] != '/'))
            return byi_fail(w->err, BYOC_EINVAL,
                            "found \"%.*s\" in the list of plug-ins, expected "
                            "an absolute path of at most %zu bytes or the word "
                            "\"only\"",
                            n < 200 ? (int)n : 200, list, sizeof path - 1);
        else if (n > 0) {
            memcpy(path, list, n);
            path[n] = '\0';
            BYI_TRY(add_entry(w, path));
        }
        list += n + (list[n] == ':');
    }
    return BYOC_OK;
}

/* Add the candidates of the runtime's folder and of its subfolder byoc/. */
static enum byoc_status add_default(struct path_search *w)
{
    char folder[PATH_BYTES];
    uint32_t n;
    if (!byi_library_find_folder(folder, sizeof folder - sizeof "/byoc"))
        return BYOC_OK;
    w->from_caller = false;
    BYI_TRY(add_folder(w, folder, &n));
    strcat(folder, "/byoc");
    return add_folder(w, folder, &n);
}

/* Add the candidates of the caller's list, otherwise of BYOC_PLUGIN_PATH. Sets
 * *only_list if no other folder may be searched. */
static enum byoc_status search_list(struct path_search *w, const char *plugins,
                                    bool *only_list)
{
    w->from_caller = plugins != NULL;
    *only_list = false;
    if (!plugins)
        plugins = secure_getenv("BYOC_PLUGIN_PATH");
    return plugins ? add_list(w, plugins, only_list) : BYOC_OK;
}

/* The paths of libraries that may be plug-ins, one per line. */
struct plugin_candidates {
    struct byi_text from_list;   /* from the caller or the environment */
    struct byi_text from_folder; /* in the folder of the runtime's library */
    struct byi_text places;      /* the places that were searched */
    bool only_list;              /* the list contains "only" */
    /* the error of searching the library's folder; BYOC_OK: none */
    struct byoc_error why;
};

/* Search for candidates. If `backend` is not NULL, the candidates in the
 * library's folder are in `from_folder`, otherwise all are in `from_list`. */
static enum byoc_status collect_candidates(const char *plugins,
                                           const char *backend,
                                           struct plugin_candidates *c,
                                           struct byoc_error *err)
{
    struct plugin_candidates result = {.only_list = false};
    struct path_search w = {.backend = backend,
                            .paths = &result.from_list,
                            .places = &result.places,
                            .err = err};
    BYI_BORDER(err);
    enum byoc_status status = search_list(&w, plugins, &result.only_list);
    if (backend) {
        w.paths = &result.from_folder;
        w.err = &result.why; /* reported only if the list has no such backend */
    }
    if (status == BYOC_OK && !result.only_list) {
        const enum byoc_status folder_status = add_default(&w);
        status = backend ? status : folder_status;
    }
    *c = result;
    return status;
}

static void free_candidates(struct plugin_candidates *c)
{
    byi_text_free(&c->from_list);
    byi_text_free(&c->from_folder);
    byi_text_free(&c->places);
}

enum byoc_status byoc_internal_plugin_list(const char *plugins,
                                           struct byi_text *paths,
                                           struct byi_text *places,
                                           struct byoc_error *err)
{
    struct plugin_candidates c = {.only_list = false};
    const enum byoc_status status = collect_candidates(plugins, NULL, &c, err);
    *paths = c.from_list;
    c.from_list = (struct byi_text){0};
    if (places) {
        *places = c.places;
        c.places = (struct byi_text){0};
    }
    free_candidates(&c);
    return status;
}

/* --- by name -------------------------------------------------------------- */

/* Open the candidates in order until one is the backend `name`. If there is
 * none, *plugin stays NULL, and the error is about the last candidate that
 * could not be opened. */
static enum byoc_status open_one_of(struct byi_text *paths, const char *name,
                                    uint32_t threads,
                                    struct byi_plugin **plugin,
                                    struct byoc_error *err)
{
    struct byoc_error why = {.status = BYOC_OK};
    char none[] = "";
    for (char *rest,
         *path = strtok_r(paths->at ? paths->at : none, "\n", &rest);
         path; path = strtok_r(NULL, "\n", &rest)) {
        struct byoc_error failure;
        if (byoc_internal_plugin_open(path, threads, plugin, &failure) !=
            BYOC_OK) {
            why = failure;
            if (failure.status == BYOC_ENOMEM)
                break;
            continue;
        }
        if (strcmp((*plugin)->backend->name, name) == 0)
            return BYOC_OK;
        byoc_internal_plugin_close(plugin);
    }
    return why.status == BYOC_OK ? BYOC_OK
                                 : byi_fail(err, why.status, "%s", why.text);
}

/* Try the candidates of the list. If all of them can be opened but none is the
 * backend `name`, try the candidates in the library's folder. */
static enum byoc_status open_backend(struct plugin_candidates *c,
                                     const char *name, uint32_t threads,
                                     struct byi_plugin **plugin,
                                     struct byoc_error *err)
{
    BYI_TRY(open_one_of(&c->from_list, name, threads, plugin, err));
    if (*plugin)
        return BYOC_OK;
    if (c->why.status != BYOC_OK)
        return byi_fail(err, c->why.status, "%s", c->why.text);
    BYI_TRY(open_one_of(&c->from_folder, name, threads, plugin, err));
    if (*plugin)
        return BYOC_OK;
    return byi_fail(err, BYOC_EIO,
                    "no plug-in \"%s\": looked for " PREFIX "%s" SUFFIX
                    " in %s; set BYOC_PLUGIN_PATH or name its file",
                    name, name, c->places.n ? c->places.at : "no folder");
}

enum byoc_status byoc_internal_plugin_find(const char *plugins,
                                           const char *name, uint32_t threads,
                                           struct byi_plugin **plugin,
                                           struct byoc_error *err)
{
    struct plugin_candidates c = {.only_list = false};
    *plugin = NULL;
    enum byoc_status status = collect_candidates(plugins, name, &c, err);
    if (status == BYOC_OK)
        status = open_backend(&c, name, threads, plugin, err);
    free_candidates(&c);
    return status;
}
