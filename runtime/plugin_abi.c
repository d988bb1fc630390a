/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_abi.c: checks, before any code of a plug-in runs, that it was built
 * with a compatible byoc/backend.h: reads byoc_backend_descriptor_v1 from its
 * file. The sizes and offsets of members, as computed by the compilers of
 * plug-in and host, must be equal if both have the member. Either may have more
 * members than the other. */
#include "exports.h"
#include "internal.h"

#include <stdio.h>
#include <string.h>

static const struct byoc_descriptor host_descriptor = BYOC_DESCRIPTOR;

/* --- places of structs and members ---------------------------------------- */

/* The list of places in the descriptor of the plug-in or the host: the offset
 * and size of each struct and member, `stride` bytes apart. */
struct field_places {
    const char *at;
    uint32_t n, stride;
};

/* Memory for the description of the first difference. */
struct finding {
    char *text;
    size_t n;
};

static struct byoc_place place_at(const struct field_places *list, uint32_t i)
{
    struct byoc_place p;
    memcpy(&p, list->at + (size_t)i * list->stride, sizeof p);
    p.name[sizeof p.name - 1] = '\0';
    return p;
}

/* Find the place of the struct or member named by the first `length` bytes of
 * `name`. The search begins at index `from` and wraps around, since both lists
 * usually have the same order. */
static bool find_place(const struct field_places *list, uint32_t from,
                       const char *name, size_t length,
                       struct byoc_place *found)
{
    for (uint32_t k = 0; k < list->n; k++) {
        const uint32_t i = (from % list->n + k) % list->n;
        const char *at = list->at + (size_t)i * list->stride +
                         offsetof(struct byoc_place, name);
        if (length < sizeof found->name && memcmp(at, name, length) == 0 &&
            (length == sizeof found->name - 1 || !at[length])) {
            *found = place_at(list, i);
            return true;
        }
    }
    return false;
}

/* Whether the struct of this name begins with struct_size, so that later
 * versions may add members. */
static bool may_grow(const char *name)
{
    const struct field_places list = {(const char *)host_descriptor.places,
                                      host_descriptor.n_places,
                                      host_descriptor.place_size};
    char first[80];
    struct byoc_place p;
    const int n = snprintf(first, sizeof first, "%s.struct_size", name);
    return find_place(&list, 0, first, (size_t)n, &p);
}

/* Whether a member differs between the plug-in (`there`) and this host
 * (`here`); describes the difference. */
static bool member_differs(const struct byoc_place *there,
                           const struct byoc_place *here,
                           const struct finding *f)
{
    const int n = (int)strcspn(here->name, ".");
    const char *member = here->name + n + 1;
    if (there->offset != here->offset)
        snprintf(f->text, f->n,
                 "struct %.*s: member '%s' at offset %u, here %u", n,
                 here->name, member, there->offset, here->offset);
    else if (there->size != here->size)
        snprintf(f->text, f->n, "struct %.*s: member '%s' of %u bytes, here %u",
                 n, here->name, member, there->size, here->size);
    return there->offset != here->offset || there->size != here->size;
}

/* Whether a member that only one header has lies before the end of the other
 * header's struct; describes the difference. `side`, "here" or "there", is the
 * header that has the member. */
static bool member_is_missing(const struct byoc_place *member,
                              const struct field_places *other,
                              const char *side, const struct finding *f)
{
    const size_t n = strcspn(member->name, ".");
    struct byoc_place container;
    if (!find_place(other, 0, member->name, n, &container) ||
        member->offset >= container.size)
        return false;
    snprintf(f->text, f->n, "struct %.*s: member '%s' at offset %u is only %s",
             (int)n, member->name, member->name + n + 1, member->offset, side);
    return true;
}

/* Whether entry i of `mine` differs from the entry of this name in `theirs`, or
 * is missing there although it must not be; describes the difference. */
static bool place_differs(const struct field_places *theirs,
                          const struct field_places *mine, uint32_t i,
                          const struct finding *f)
{
    const struct byoc_place here = place_at(mine, i);
    struct byoc_place there;
    const bool both =
        find_place(theirs, i, here.name, strlen(here.name), &there);
    if (strchr(here.name, '.'))
        return both ? member_differs(&there, &here, f)
                    : member_is_missing(&here, theirs, "here", f);
    if (!both || there.size == here.size || may_grow(here.name))
        return false;
    snprintf(f->text, f->n,
             "struct %s: %u bytes, here %u, and its size is fixed", here.name,
             there.size, here.size);
    return true;
}

/* Whether the lists of places differ; describes the first difference, in the
 * order of this host's header. */
static bool places_differ(const struct field_places *theirs,
                          const struct field_places *mine,
                          const struct finding *f)
{
    for (uint32_t i = 0; i < mine->n; i++)
        if (place_differs(theirs, mine, i, f))
            return true;
    for (uint32_t i = 0; i < theirs->n; i++) {
        const struct byoc_place there = place_at(theirs, i);
        struct byoc_place here;
        if (strchr(there.name, '.') &&
            !find_place(mine, i, there.name, strlen(there.name), &here) &&
            member_is_missing(&there, mine, "there", f))
            return true;
    }
    return false;
}

/* --- the descriptor ------------------------------------------------------- */

static enum byoc_status check_version(const char *path,
                                      const struct byoc_descriptor *d,
                                      struct byoc_error *err)
{
    const uint32_t host_abi = BYOC_BACKEND_ABI;
    const bool same_major = d->abi >> 16 == host_abi >> 16;
    if (same_major && d->needs <= host_abi)
        return BYOC_OK;
    const uint32_t version = same_major ? d->needs : d->abi;
    return byi_fail(err, BYOC_EINCOMPATIBLE,
                    "%s: %s version %u.%u of byoc/backend.h, but this byoc "
                    "has version %u.%u; %s",
                    path, same_major ? "needs" : "built with", version >> 16,
                    version & 0xffff, host_abi >> 16, host_abi & 0xffff,
                    version > host_abi ? "try a newer byoc" : "build it again");
}

/* Compare the sanitizers. A plug-in without a sanitizer runs in any host. */
static enum byoc_status check_tags(const char *path, uint32_t tags,
                                   struct byoc_error *err)
{
    static const char *const names[] = {
        [0] = "no sanitizer",
        [BYOC_TAG_ADDRESS] = "the address sanitizer",
        [BYOC_TAG_THREAD] = "the thread sanitizer",
        [BYOC_TAG_MEMORY] = "the memory sanitizer",
    };
    if (tags == 0 || tags == host_descriptor.tags)
        return BYOC_OK;
    return byi_fail(err, BYOC_EINCOMPATIBLE,
                    "%s: built with %s, but this byoc with %s; build both with "
                    "the same sanitizer",
                    path,
                    tags < BYI_COUNT(names) && names[tags] ? names[tags]
                                                           : "a sanitizer",
                    names[host_descriptor.tags]);
}

static enum byoc_status check_places(const char *path,
                                     const struct field_places *theirs,
                                     struct byoc_error *err)
{
    const struct field_places mine = {(const char *)host_descriptor.places,
                                      host_descriptor.n_places,
                                      host_descriptor.place_size};
    char text[256];
    const struct finding finding = {text, sizeof text};
    if (!places_differ(theirs, &mine, &finding))
        return BYOC_OK;
    return byi_fail(err, BYOC_EINCOMPATIBLE,
                    "%s: its structs differ from this byoc/backend.h: %s; "
                    "build it with this header",
                    path, text);
}

/* Check the descriptor. In other versions its fixed part and each place may be
 * longer. */
static enum byoc_status check_descriptor(
    const char *path, const struct byi_exported_symbol *symbol,
    struct byoc_error *err)
{
    enum { MAX_PLACES = 1 << 16 };
    struct byoc_descriptor d = {.n_places = 0};
    const size_t head = offsetof(struct byoc_descriptor, places);
    if (symbol->data && symbol->bytes >= head)
        memcpy(&d, symbol->data, head);
    if (memcmp(d.magic, BYOC_BACKEND_MAGIC, sizeof d.magic) != 0 ||
        d.struct_size < head || d.struct_size > symbol->bytes ||
        d.place_size < sizeof(struct byoc_place) || d.n_places > MAX_PLACES ||
        (uint64_t)d.n_places * d.place_size > symbol->bytes - d.struct_size)
        return byi_fail(err, BYOC_EPARSE,
                        "%s: its " BYOC_BACKEND_DESCRIPTOR " is damaged, "
                        "expected that of BYOC_BACKEND_DEFINE",
                        path);
    const struct field_places theirs = {symbol->data + d.struct_size,
                                        d.n_places, d.place_size};
    BYI_TRY(check_version(path, &d, err));
    BYI_TRY(check_tags(path, d.tags, err));
    return check_places(path, &theirs, err);
}

static enum byoc_status check_symbols(const struct byi_library_file *file,
                                      uint32_t *abi, struct byoc_error *err)
{
    struct byi_exported_symbol query, descriptor;
    BYI_TRY(byi_library_file_find(file, BYOC_BACKEND_QUERY, &query, err));
    if (!query.found)
        return byi_fail(err, BYOC_EBACKEND,
                        "%s: does not export " BYOC_BACKEND_QUERY
                        "(), so it is not a plug-in; a backend ends with "
                        "BYOC_BACKEND_DEFINE(query)",
                        file->path);
    BYI_TRY(
        byi_library_file_find(file, BYOC_BACKEND_DESCRIPTOR, &descriptor, err));
    if (!descriptor.found)
        return byi_fail(err, BYOC_EINCOMPATIBLE,
                        "%s: does not export " BYOC_BACKEND_DESCRIPTOR
                        ": built with a byoc/backend.h of before 1.0, or "
                        "without BYOC_BACKEND_DEFINE; build it again",
                        file->path);
    BYI_TRY(check_descriptor(file->path, &descriptor, err));
    memcpy(abi, descriptor.data + offsetof(struct byoc_descriptor, abi),
           sizeof *abi);
    *abi = *abi < BYOC_BACKEND_ABI ? *abi : BYOC_BACKEND_ABI;
    return BYOC_OK;
}

enum byoc_status byi_plugin_agree(const char *path, uint32_t *abi,
                                  struct byoc_error *err)
{
    struct byi_library_file file = {.path = path, .what = "a plug-in"};
    const void *data;
    size_t n;
    BYI_TRY(byi_map_file(path, &data, &n, err));
    file.elf.at = data;
    file.elf.n = n;
    enum byoc_status status = byi_library_file_open(&file, err);
    if (status == BYOC_OK)
        status = check_symbols(&file, abi, err);
    byi_unmap(data, n);
    return status;
}

bool byoc_internal_is_plugin(const char *path)
{
    uint32_t abi;
    const enum byoc_status status = byi_plugin_agree(path, &abi, NULL);
    return status == BYOC_OK || status == BYOC_EINCOMPATIBLE;
}
