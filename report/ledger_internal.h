/* SPDX-License-Identifier: Apache-2.0 */
/* report/ledger_internal.h: the representation of a ledger, for the files that
 * implement it. ledger_open.c and ledger.c record, ledger_reads.c finds the
 * nodes that each node reads, ledger_json.c writes.
 */
#ifndef BYI_LEDGER_INTERNAL_H
#define BYI_LEDGER_INTERNAL_H

#include "core/base/index.h"
#include "ledger.h"

/* One attempt for a node. Strings are interned, so equal ones are one pointer.
 */
struct byi_attempt {
    enum byi_reason reason;
    uint32_t next; /* 1 + the node's next attempt in the pool; 0: the last */
    const char *backend, *pattern, *detail; /* or NULL */
};

/* Microseconds; 0 or less: not measured. */
struct byi_times {
    double backend, native;
};

/* One model node. */
struct byi_ledger_entry {
    uint32_t first, last; /* attempts: 1 + index in the pool; 0: none */
    const char *impl;     /* or NULL */
    struct byi_times times;
    const char *attributes; /* or NULL */
    const char *const *outputs;
    uint32_t n_outputs;
    /* after closing */
    enum byi_reason where; /* OFFLOADED, NATIVE, FOLDED, REMOVED */
    const char *pattern;   /* of the composite; NULL: not offloaded */
    uint32_t region;       /* 1 + index; 0: none */
    double flops;
};

/* A region, kept or reverted. */
struct byi_region_entry {
    const char *name, *backend;
    bool kept;              /* in the final module; false: reverted or split */
    enum byi_reason reason; /* if it was reverted or split */
    const char *detail;     /* or NULL */
    uint32_t n_nodes;
    const uint32_t *nodes; /* sources; of a kept region: after closing */
    double flops;
    uint32_t n_inputs, n_outputs; /* 0: it was never a function */
};

/* n sets of numbers: set i is at[first[i]] .. at[first[i + 1] - 1]. */
struct byi_number_sets {
    uint32_t n;
    const uint32_t *first, *at;
};

/* A string, once for all its uses. */
struct byi_interned_text {
    const char *text;
    struct byi_times times; /* of the region of this name */
};

/* Interned strings. */
struct byi_texts {
    BYI_VEC(struct byi_interned_text) list;
    struct byi_index index; /* from a hash of the text to its index in `list` */
};

/* All memory but the vectors and texts.index is in `arena`. */
struct byi_ledger {
    struct byi_arena *arena;
    struct byi_texts texts;
    struct byi_ledger_facts facts;
    struct byi_number_sets reads; /* of each source: the sources it reads */
    BYI_VEC(struct byi_attempt) attempts; /* the pool of all nodes' attempts */
    BYI_VEC(struct byi_ledger_entry) entries; /* indexed by source */
    BYI_VEC(struct byi_region_entry) regions;
    BYI_VEC(struct byi_gate) gates;
    BYI_VEC(struct byi_ledger_weight) weights;
    struct byi_ledger_precision precision;
    struct byi_placement_times measured; /* chosen NULL: not measured */
    struct byi_coverage coverage;
    const struct byi_source *sources; /* the module's, copied */
};

/* The times of the region of that name, added if new. The pointer is valid
 * until the next string is interned. */
struct byi_times *byi_ledger_times_of(struct byi_ledger *ledger,
                                      const char *region);
/* The entry of a source, added if new. The pointer is valid until the next
 * entry is added. */
struct byi_ledger_entry *byi_ledger_entry_of(struct byi_ledger *ledger,
                                             uint32_t source);
/* The string, interned; NULL for NULL. */
const char *byi_ledger_intern(struct byi_ledger *ledger, const char *text);
/* ledger_reads.c: for each source of m the sources that it reads; in `arena`.
 */
struct byi_number_sets byi_sources_reads(const struct byi_module *m,
                                         struct byi_arena *arena);

#endif
