/* SPDX-License-Identifier: Apache-2.0 */
/* warm.c: reads the sizes of symbolic dims of inputs that --warm gives, such as
 * "batch=1,2,8,sequence=16": a list for each dim. All combinations of the
 * lists' sizes are sets of sizes. Partitioning probes backends with these
 * sizes, and the runtime prepares a specialisation for each set when it loads
 * the artifact.
 */
#include "find_backends.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SETS = 1024, MAX_DIMS = 64 };

/* The state of byi_find_warm. */
struct warm_reader {
    struct byi_found_backends *found;
    struct byi_arena *arena;
    const char *text;                     /* value of the current --warm */
    struct byi_size_list lists[MAX_DIMS]; /* the n lists of this text */
    uint32_t n;
    BYI_VEC(int64_t) sizes; /* of the last list, whose end is not read yet */
    BYI_VEC(struct byi_warm_set) sets;
    struct byoc_error *err;
};

static enum byoc_status fail_option(struct warm_reader *r, const char *what)
{
    return byi_fail(r->err, BYOC_EINVAL,
                    "warm '%s': %s, expected NAME=SIZE,..., such as "
                    "batch=1,2,8",
                    r->text, what);
}

/* Copy r->sizes to the last list, which is complete. */
static void close_list(struct warm_reader *r)
{
    if (r->n > 0) {
        struct byi_size_list *list = &r->lists[r->n - 1];
        list->n = r->sizes.n;
        list->at = byi_arena_copy(r->arena, r->sizes.at,
                                  r->sizes.n * sizeof *r->sizes.at);
    }
    r->sizes.n = 0;
}

/* Read an item between commas: "batch=1" begins a list, "2" continues it. */
static enum byoc_status read_item(struct warm_reader *r, const char *item)
{
    const char *number = strrchr(item, '='); /* a name may have a '=' */
    char *end;
    if (number) {
        close_list(r);
        if (number == item)
            return fail_option(r, "found a dim without a name");
        if (r->n == MAX_DIMS)
            return fail_option(r, "found more than 64 dims");
        r->lists[r->n++] = (struct byi_size_list){
            .name = byi_arena_strn(r->arena, item, (size_t)(number - item))};
    }
    if (r->n == 0)
        return fail_option(r, "found a size without a dim");
    number = number ? number + 1 : item;
    errno = 0;
    const long long size = strtoll(number, &end, 10);
    if (end == number || *end || errno || size < 0)
        return fail_option(r, "found a size that is not a number of 0 or more");
    BYI_PUSH(&r->sizes, size);
    return BYOC_OK;
}

/* Add a set for every combination of the lists' sizes. */
static enum byoc_status add_sets(struct warm_reader *r)
{
    uint64_t n = 1;
    for (uint32_t i = 0; i < r->n; i++)
        n = n <= MAX_SETS ? n * r->lists[i].n : n;
    if (r->sets.n + n > MAX_SETS)
        return fail_option(r, "found more than 1024 combinations");
    for (uint32_t k = 0; k < n; k++) {
        struct byoc_dim *dims = byi_arena_calloc(r->arena, r->n, sizeof *dims);
        uint32_t rest = k;
        for (uint32_t i = r->n; i-- > 0;) {
            dims[i].name = r->lists[i].name;
            dims[i].size = r->lists[i].at[rest % r->lists[i].n];
            rest /= r->lists[i].n;
        }
        const struct byi_warm_set set = {r->n, dims};
        BYI_PUSH(&r->sets, set);
    }
    return BYOC_OK;
}

/* The length of the item at the beginning of `text`: up to a comma behind a
 * number, since a name may have commas. */
static size_t item_length(const char *text)
{
    const size_t digits = strspn(text, "0123456789");
    const size_t first = strcspn(text, ",");
    if (digits == first)
        return first;
    const size_t name = strcspn(text, "=");
    return text[name] ? name + strcspn(text + name, ",") : first;
}

static enum byoc_status read_option(struct warm_reader *r)
{
    r->n = r->sizes.n = 0;
    for (const char *at = r->text; *at; at += *at == ',') {
        const size_t n = item_length(at);
        BYI_TRY(read_item(r, byi_arena_strn(r->arena, at, n)));
        at += n;
    }
    close_list(r);
    if (r->n == 0)
        return fail_option(r, "found no dims");
    return add_sets(r);
}

/* --- checks against the model --------------------------------------------- */

/* Whether the shape of an input has the symbol `name`. */
static bool is_input_symbol(const struct byi_module *m, const char *name)
{
    const struct byi_func *f = m->funcs.at[byi_module_entry(m)];
    for (uint32_t p = 0; p < f->params.n; p++) {
        const struct byi_type *type = f->nodes.at[f->params.at[p]].type;
        for (uint32_t d = 0; type->kind == BYI_TENSOR && d < type->rank; d++)
            if (BYI_IS_SYMBOL(type->dims[d]) &&
                strcmp(byi_symbol_name(m, type->dims[d]), name) == 0)
                return true;
    }
    return false;
}

static bool has_dim(const struct byi_warm_set *set, const char *name)
{
    for (uint32_t i = 0; i < set->n; i++)
        if (strcmp(set->dims[i].name, name) == 0)
            return true;
    return false;
}

/* Fail because no input has the dim `name`. */
static enum byoc_status report_unknown_dim(struct warm_reader *r,
                                           const struct byi_module *m,
                                           const char *name)
{
    struct byi_text list = {0};
    for (uint32_t i = 0; i < m->symbols.n; i++)
        if (is_input_symbol(m, m->symbols.at[i]))
            byi_text_addf(&list, "%s'%s'", list.n ? ", " : ": ",
                          m->symbols.at[i]);
    const enum byoc_status status =
        byi_fail(r->err, BYOC_EINVAL,
                 "warm: found '%s', expected a symbolic dim of an input%s",
                 name, list.n ? list.at : "; no input has one");
    byi_text_free(&list);
    return status;
}

/* Check that each set has every symbol of the inputs, and no others. */
static enum byoc_status check_sets(struct warm_reader *r,
                                   const struct byi_module *m)
{
    for (uint32_t s = 0; s < r->sets.n; s++) {
        const struct byi_warm_set *set = &r->sets.at[s];
        for (uint32_t i = 0; i < set->n; i++)
            if (!is_input_symbol(m, set->dims[i].name))
                return report_unknown_dim(r, m, set->dims[i].name);
        for (uint32_t i = 0; i < m->symbols.n; i++)
            if (is_input_symbol(m, m->symbols.at[i]) &&
                !has_dim(set, m->symbols.at[i]))
                return byi_fail(
                    r->err, BYOC_EINVAL,
                    "warm: found no size for the dim '%s', expected one "
                    "for every symbolic dim, as in %s=1,%s=1",
                    m->symbols.at[i], set->dims[0].name, m->symbols.at[i]);
    }
    return BYOC_OK;
}

/* Set found->sizes: for each dim its size in every set. */
static void list_sizes(struct warm_reader *r)
{
    struct byi_size_list *lists =
        byi_arena_calloc(r->arena, MAX_DIMS, sizeof *lists);
    const uint32_t n = r->sets.n ? r->sets.at[0].n : 0;
    for (uint32_t i = 0; i < n; i++) {
        int64_t *at = byi_arena_calloc(r->arena, r->sets.n, sizeof *at);
        lists[i].name = r->sets.at[0].dims[i].name;
        for (uint32_t s = 0; s < r->sets.n; s++)
            for (uint32_t d = 0; d < r->sets.at[s].n; d++)
                if (strcmp(r->sets.at[s].dims[d].name, lists[i].name) == 0)
                    at[lists[i].n++] = r->sets.at[s].dims[d].size;
        lists[i].at = at;
    }
    r->found->sizes = (struct byi_sizes){n, lists};
}

enum byoc_status byi_find_warm(struct byi_found_backends *found,
                               const struct byi_module *m,
                               const char *const *warm, struct byi_arena *arena,
                               struct byoc_error *err)
{
    struct warm_reader r = {.found = found, .arena = arena, .err = err};
    enum byoc_status status = BYOC_OK;
    for (; warm && *warm && status == BYOC_OK; warm++) {
        r.text = *warm;
        status = read_option(&r);
    }
    if (status == BYOC_OK)
        status = check_sets(&r, m);
    if (status == BYOC_OK) {
        list_sizes(&r);
        found->warm.n = r.sets.n;
        found->warm.at =
            byi_arena_copy(arena, r.sets.at, r.sets.n * sizeof *r.sets.at);
    }
    byi_vec_free(r.sizes.at);
    byi_vec_free(r.sets.at);
    return status;
}
