/* SPDX-License-Identifier: Apache-2.0 */
/* compile/find_vendors.h: the vendors of a compile. */
#ifndef BYI_FIND_VENDORS_H
#define BYI_FIND_VENDORS_H

#include <byoc/byoc.h>

#include "code.h"

#include "partition/partition.h"
#include "runtime/internal.h"

struct byi_sketch; /* a vendor that is only patterns */

/* A vendor that takes nothing: its isolated plug-in fell. */
struct byi_fallen {
    const char *name, *why;
};

/* Zero-initialise. Ends before `arena`. */
struct byi_found {
    struct byi_vendors vendors;
    struct byi_sizes sizes; /* of symbolic dims, that the user gave */
    struct byi_warm warm;   /* sizes that the model is to be ready for */
    BYI_VEC(struct byi_plugin *) plugins;
    BYI_VEC(struct byi_sketch *) sketches;
    struct byoc_host sketch_host;
    enum byoc_codegen codegen;
    struct byi_codes *codes;         /* what they write in C */
    bool isolated;                   /* the plug-ins are     */
    const struct byi_fallen *fallen; /* before: they take nothing */
    uint32_t n_fallen;
    struct byi_arena *arena;
};

/* Those that `params` asks for, in its order: patterns, then plug-ins.
 * Errors: BYOC_EBACKEND (one that was named is not there), BYOC_EINVAL (a
 * pattern). What was found is freed either way by byi_found_free. */
enum byoc_status byi_find_vendors(struct byi_found *found,
                                  struct byi_arena *arena,
                                  const struct byoc_compile_params *params,
                                  struct byoc_error *err);
/* warm.c: set found->warm and the sizes that vendors are asked for, from texts
 * as "batch=1,2,8,sequence=16"; in `arena`. Errors: BYOC_EINVAL. */
enum byoc_status byi_find_warm(struct byi_found *found,
                               const struct byi_module *m,
                               const char *const *warm, struct byi_arena *arena,
                               struct byoc_error *err);
void byi_found_free(struct byi_found *found);
/* Whether this vendor is to answer in C, or may: --codegen. */
bool byi_found_writes_c(const struct byi_found *found,
                        const struct byoc_backend *backend);
/* Why the plug-in of this compile with that index fell; NULL: it did not. */
const char *byi_found_fall(const struct byi_found *found, uint32_t plugin);
/* The vendor that it is; NULL: it was not asked for. */
struct byi_vendor *byi_found_vendor(const struct byi_found *found,
                                    uint32_t plugin);
/* The plug-in of that name; NULL when none was loaded. */
struct byi_plugin *byi_found_plugin(const struct byi_found *found,
                                    const char *name);

#endif
