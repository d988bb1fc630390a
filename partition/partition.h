/* partition/partition.h: which vendor gets which part of a module, and why.
 * The four passes of BYOC, the vendors they ask, the ledger they write.
 */
#ifndef BYI_PARTITION_H
#define BYI_PARTITION_H

#include <byoc/backend.h>

#include "core/core.h"
#include "ledger.h"
#include "patterns/patterns.h"

extern const struct byi_pass byi_pass_alter_op_layout;  /* alter_op_layout.c */
extern const struct byi_pass byi_pass_merge_composite;  /* merge_composite.c */
extern const struct byi_pass byi_pass_annotate_target;  /* annotate_target.c */
extern const struct byi_pass byi_pass_merge_regions;    /* merge_regions.c */
extern const struct byi_pass byi_pass_partition_graph;  /* partition_graph.c */

/* The body of the composite that node `call` of f calls; NULL when it calls
 * none. Composites that capture values are nobody's: they are left alone. */
const struct byi_func *byi_composite_of(const struct byi_module *m,
                                        const struct byi_func *f,
                                        const struct byi_node *call);

/* --- vendors.c: loaded backends as the compiler sees them ---------------- */

struct byi_vendor {
    const char *name;
    const struct byoc_backend *backend;
    const struct byoc_host *host;
    struct byi_pattern_table *table;   /* compiled from backend->patterns */
};

/* What partitioning may use and do, in order of preference. */
struct byi_vendors {
    uint32_t n;
    struct byi_vendor *at;
    bool forbid_ref;                 /* refuse reference implementations */
    uint32_t min_region_nodes;       /* 0: no limit */
    const char *const *exclude;      /* node names or operators, NULL-ended */
    struct byi_probe_cache *cache;
};

/* What a vendor's probe said of a composite. Strings live as long as the
 * struct byi_vendors. */
struct byi_probed {
    const char *refused; /* why not; NULL: it can be built */
    const char *impl;    /* the implementation it chose, "" when not said */
    bool reference;      /* that is a slow reference implementation */
};

enum byoc_status byi_vendors_init(struct byi_vendors *v,
                                  const struct byoc_backend *const *backends,
                                  const struct byoc_host *const *hosts,
                                  uint32_t n, struct byoc_error *err);
void byi_vendors_free(struct byi_vendors *v);
/* Ask whether the vendor can build a composite (a nested function with
 * Composite) whose i-th parameter is the module's constant const_args[i], or
 * computed where that is BYI_NO_ID. Answers are kept by signature. */
enum byoc_status byi_probe(struct byi_vendors *v,
                           const struct byi_vendor *vendor,
                           const struct byi_module *m, uint32_t func,
                           const uint32_t *const_args,
                           struct byi_probed *probed, struct byoc_error *err);

/* The layouts a vendor would like for a composite of one operator; empty: as
 * they are. */
struct byi_wish {
    char data[24], kernel[24];
};
enum byoc_status byi_wish_of(const struct byi_vendor *vendor,
                             const struct byi_module *m, uint32_t func,
                             struct byi_wish *wish, struct byoc_error *err);

#endif
