/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c: lists the samples of a folder, in the order of their names. */
#include "quantize/model.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The samples found so far. */
struct sample_list {
    struct byi_arena *arena;
    const char *folder;
    struct quant_sample *at;
    uint32_t n, cap;
};

/* Add a sample. `labels`: the path of its labels, which may not exist. */
static void add_sample(struct sample_list *list, const char *data,
                       const char *npz, const char *labels)
{
    if (list->n == list->cap)
        list->at =
            byi_arena_grow(list->arena, list->at, &list->cap, sizeof *list->at);
    list->at[list->n++] = (struct quant_sample){
        .data = data,
        .npz = npz,
        .labels = labels && access(labels, R_OK) == 0 ? labels : NULL};
}

/* Whether PREFIXinput_0.npy or .pb exists. */
static bool has_input(struct byi_arena *arena, const char *prefix)
{
    return access(byi_arena_printf(arena, "%sinput_0.npy", prefix), R_OK) ==
               0 ||
           access(byi_arena_printf(arena, "%sinput_0.pb", prefix), R_OK) == 0;
}

/* Add an entry of the folder if it is a sample: [NAME.]input_0.npy or .pb,
 * NAME.npz, or a folder NAME with an input_0. */
static void add_entry(struct sample_list *list, const char *name)
{
    static const char *const ends[] = {"input_0.npy", "input_0.pb"};
    const size_t n = strlen(name);
    struct byi_arena *arena = list->arena;
    for (size_t i = 0; i < BYI_COUNT(ends); i++) {
        const size_t k = strlen(ends[i]);
        if (n < k || strcmp(name + n - k, ends[i]) != 0 ||
            (n > k && name[n - k - 1] != '.'))
            continue;
        const char *prefix = byi_arena_printf(arena, "%s/%.*s", list->folder,
                                              (int)(n - k), name);
        add_sample(list, prefix, NULL,
                   byi_arena_printf(arena, "%slabels.npy", prefix));
        return;
    }
    const char *path = byi_arena_printf(arena, "%s/%s", list->folder, name);
    if (n > 4 && strcmp(name + n - 4, ".npz") == 0)
        add_sample(list, NULL, path,
                   byi_arena_printf(arena, "%.*s.labels.npy",
                                    (int)strlen(path) - 4, path));
    else if (name[0] != '.' &&
             has_input(arena, byi_arena_printf(arena, "%s/", path)))
        add_sample(list, path, NULL,
                   byi_arena_printf(arena, "%s/labels.npy", path));
}

static int compare_names(const void *a, const void *b)
{
    const struct quant_sample *x = a, *y = b;
    return strcmp(x->data ? x->data : x->npz, y->data ? y->data : y->npz);
}

enum byoc_status byi_quant_samples(const char *folder, struct byi_arena *arena,
                                   struct quant_samples *samples,
                                   struct byoc_error *err)
{
    struct sample_list list = {.arena = arena, .folder = folder};
    DIR *dir = opendir(folder);
    if (!dir)
        return byi_fail(err, byi_io_status(errno),
                        "%s: cannot open the folder: %s, expected a folder of "
                        "samples",
                        folder, strerror(errno));
    BYI_VEC(const char *) names = {0};
    for (struct dirent *entry; (entry = readdir(dir));)
        BYI_PUSH(&names, byi_arena_str(arena, entry->d_name));
    closedir(dir);
    for (uint32_t i = 0; i < names.n; i++)
        add_entry(&list, names.at[i]);
    byi_vec_free(names.at);
    if (!list.n)
        return byi_fail(err, BYOC_EINVAL,
                        "%s: found no sample, expected input_0.npy or .pb, "
                        "NAME.input_0.npy, NAME/input_0.npy, or NAME.npz",
                        folder);
    qsort(list.at, list.n, sizeof *list.at, compare_names);
    *samples = (struct quant_samples){.at = list.at, .n = list.n};
    return BYOC_OK;
}
