/* SPDX-License-Identifier: Apache-2.0 */
/* copies.c: finds libraries that a process should load only once. Two OpenMP
 * runtimes start two sets of threads. Two copies of oneDNN have two sets of
 * caches, and a copy may bind to symbols of the other. A library is recognised
 * by a function that it defines, so that a copy linked into a plug-in counts,
 * too. */
#include "internal.h"

#include "core/base/guard.h"
#include "core/base/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* The kinds of libraries that a process should load only once. */
static const struct {
    const char *plural;   /* of the kind, in messages */
    const char *function; /* that each such library defines */
} library_kinds[] = {
    {"OpenMP runtimes", "omp_get_max_threads"},
    {"copies of oneDNN", "dnnl_version"},
};

enum { MAX_COPIES = 8 };

/* The libraries in the process that define a function. */
struct copies {
    const char *path[MAX_COPIES]; /* as the loader names them */
    const void *base[MAX_COPIES];
    uint32_t n;
};

/* Add the library that defines `function` as seen from the library at `path`.
 */
static void add_copy(const char *path, const char *function,
                     struct copies *found)
{
    byi_loader_lock();
    void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    const void *symbol = handle ? dlsym(handle, function) : NULL;
    Dl_info info;
    bool skip = !symbol || !dladdr(symbol, &info) || !info.dli_fname;
    const void *shim = handle ? dlsym(handle, "byoc_openmp_shim") : NULL;
    Dl_info of_shim;
    if (!skip && shim && dladdr(shim, &of_shim))
        skip = of_shim.dli_fbase == info.dli_fbase; /* byoc's own threads */
    for (uint32_t i = 0; !skip && i < found->n; i++)
        skip = found->base[i] == info.dli_fbase;
    if (!skip && found->n < MAX_COPIES) {
        found->base[found->n] = info.dli_fbase;
        found->path[found->n++] = info.dli_fname;
    }
    if (handle)
        dlclose(handle);
    byi_loader_unlock();
}

/* Called while the loader holds its lock. A failed allocation must not jump out
 * of the walk, so the border here catches it, and returns 1 to end the walk. */
static int list_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
    (void)size;
    BYI_BORDER_ELSE(1);
    if (info->dlpi_name && info->dlpi_name[0] == '/')
        byi_text_addf(ctx, "%s\n", info->dlpi_name);
    return 0;
}

static void describe_copies(struct byi_text *out)
{
    struct byi_text objects = {0};
    struct copies found[BYI_COUNT(library_kinds)] = {{.n = 0}};
    byi_text_add(out, "", 0);
    byi_library_walk(list_object, &objects);
    char *rest = NULL;
    for (char *path = objects.at ? strtok_r(objects.at, "\n", &rest) : NULL;
         path; path = strtok_r(NULL, "\n", &rest))
        for (size_t k = 0; k < BYI_COUNT(library_kinds); k++)
            add_copy(path, library_kinds[k].function, &found[k]);
    for (size_t k = 0; k < BYI_COUNT(library_kinds); k++) {
        if (found[k].n < 2)
            continue;
        byi_text_addf(out, "%u %s in this process:", found[k].n,
                      library_kinds[k].plural);
        for (uint32_t i = 0; i < found[k].n; i++)
            byi_text_addf(out, "%s %s", i ? "," : "", found[k].path[i]);
        byi_text_addf(out, "; runs may be slow or wrong, try plug-ins built "
                           "for one of them\n");
    }
    byi_text_free(&objects);
}

void byoc_internal_copies(struct byi_text *out)
{
    struct byi_text text = {0};
    BYI_BORDER_ELSE();
    describe_copies(&text);
    *out = text;
}
