/* SPDX-License-Identifier: Apache-2.0 */
/* compile/find_backends.h: finds and opens the backends of a compile. */
#ifndef BYI_FIND_BACKENDS_H
#define BYI_FIND_BACKENDS_H

#include <byoc/byoc.h>

#include "code.h"

#include "core/base/machine.h"

#include "partition/partition.h"
#include "runtime/internal.h"

struct byi_pattern_backend; /* a backend that consists only of patterns */

/* A backend that is excluded because a process that called it crashed or hung.
 */
struct byi_crashed_backend {
    /* its name, or the path of a plug-in that failed to open */
    const char *plugin;
    const char *why;
};

enum { BYI_ISOLATE_SECONDS = 10 }; /* default limit for a call */

/* The result of compile() for a region in another process. */
struct byi_answer {
    const char *region;
    const char *symbol; /* NULL: it is not C */
    const void *data;
    uint64_t bytes;
};

/* The backends of a compile. Zero-initialise. byi_found_backends_free must be
 * called before `arena` is freed. */
struct byi_found_backends {
    /* the machine that the artifact is for */
    const struct byi_machine *machine;
    struct byi_backends backends;
    struct byi_sizes sizes; /* of symbolic dims, from the user */
    struct byi_warm warm;   /* sizes for which to prepare specialisations */
    BYI_VEC(struct byi_plugin *) plugins;
    BYI_VEC(struct byi_pattern_backend *) pattern_backends;
    struct byoc_host pattern_host;
    enum byoc_codegen codegen;
    struct byi_codes *codes; /* the C that the backends generate */
    bool isolated;           /* the backends run in another process */
    /* excluded, since they crashed or hung in earlier attempts */
    const struct byi_crashed_backend *crashed;
    uint32_t n_crashed;
    const struct byi_answer *answers; /* used instead of calls; NULL: none */
    uint32_t n_answers;
    struct byi_arena *arena;
};

/* Find the backends of `params`. First come the backends of its patterns, then
 * the plug-ins of the backends that it names, in its order. If its list of
 * backends is NULL, all plug-ins follow. Errors: BYOC_EBACKEND (a named backend
 * is missing, or a plug-in of the user cannot be opened), BYOC_EINVAL (a
 * malformed pattern, an unknown machine), BYOC_ENOMEM. The caller calls
 * byi_found_backends_free even after an error. */
enum byoc_status byi_find_backends(struct byi_found_backends *found,
                                   struct byi_arena *arena,
                                   const struct byoc_compile_params *params,
                                   struct byoc_error *err);
/* Close the plug-ins and free what *found owns, except `arena`. */
void byi_found_backends_free(struct byi_found_backends *found);
/* warm.c: set found->warm and found->sizes from the texts of --warm, such as
 * "batch=1,2,8,sequence=16"; in `arena`. Errors: BYOC_EINVAL (malformed text, a
 * name that is not a symbolic dim of an input, a missing dim, too many
 * combinations). */
enum byoc_status byi_find_warm(struct byi_found_backends *found,
                               const struct byi_module *m,
                               const char *const *warm, struct byi_arena *arena,
                               struct byoc_error *err);
/* Whether this backend generates C: it has compile(), and --codegen is c, or is
 * auto and the backend generates only C. */
bool byi_backend_writes_c(const struct byi_found_backends *found,
                          const struct byoc_backend *backend);
/* Add a line for each backend that was excluded because it failed, or because
 * it does not run on the machine of the artifact. */
void byi_warn_excluded_backends(const struct byi_found_backends *found,
                                struct byi_text *lines);
/* Returns the operator `type` of a domain at this version of the domain, in the
 * first plug-in that has it; *plugin becomes the name of this plug-in's
 * backend. Returns NULL if there is none; *plugin is then undefined. */
const struct byoc_operator *byi_find_custom_operator(
    const struct byi_found_backends *found, const char *domain,
    const char *type, int64_t version, const char **plugin);
/* Returns the plug-in of the backend of that name, or NULL. A plug-in that
 * crashed while it was opened has no library. */
struct byi_plugin *byi_plugin_of_backend(const struct byi_found_backends *found,
                                         const char *name);

#endif
