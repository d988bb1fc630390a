/* SPDX-License-Identifier: Apache-2.0 */
/* compile/passes.h: finds passes by name, and lists the passes of a compile. */
#ifndef BYI_PASSES_H
#define BYI_PASSES_H

#include "core/ir/ir.h"

/* Returns the pass of that name, or NULL. */
const struct byi_pass *byi_pass_find(const char *name);
/* The same; if there is none, set *err to BYOC_EINVAL with the most similar
 * name, and return NULL. `option` is where the name was given. */
const struct byi_pass *byi_pass_named(const char *option, const char *name,
                                      struct byoc_error *err);
/* Returns all passes, ending in NULL: built-in passes, then passes of users.
 * The array grows at its end and never moves. */
const struct byi_pass *const *byi_passes_known(void);
/* Register the passes of a library (byoc/pass.h). Skips a library that is
 * registered already. Any thread may call it. Errors: the loader's;
 * BYOC_EBACKEND (no entry function byoc_passes, another ABI version), and the
 * errors of byoc_pass_register. */
enum byoc_status byi_passes_load(const char *path, struct byoc_error *err);
/* Returns the passes of a compile, ending in NULL: clean-up, partitioning,
 * fusion. */
const struct byi_pass *const *byi_passes_pipeline(void);

/* Add the passes named in `text` to `list`: "A,B,[C,[D,E]]". Brackets make a
 * sequence, in `arena`; its members run only if the level and --disable-pass
 * allow it. The caller frees list->passes.at with byi_vec_free, after errors,
 * too. Errors: BYOC_EINVAL (a name that no pass has, brackets that do not
 * match). */
struct byi_pass_list {
    BYI_VEC(const struct byi_pass *) passes;
};
enum byoc_status byi_passes_parse(const char *text, struct byi_arena *arena,
                                  struct byi_pass_list *list,
                                  struct byoc_error *err);
/* Add `pass`, its members and the passes that it needs to `list`, in the order
 * in which they start, each once. `stop_after`: a pass's name, or NULL.
 * Returns false if `stop_after` was among them: the run ends after it, so the
 * caller adds no further passes. */
bool byi_passes_add_all(struct byi_pass_list *list, const struct byi_pass *pass,
                        const char *stop_after);

#endif
