/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/cost_table.h: what was measured on a machine, kept in a file between
 * compiles (docs/cost.md).
 */
#ifndef BYI_COST_TABLE_H
#define BYI_COST_TABLE_H

#include "core/base/index.h"
#include "core/ops/ops.h"

struct byi_cost_entry {
    char key[65];   /* SHA-256 of all that the time depends on */
    int64_t ns;     /* of one run; -1: it cannot run           */
    const char *of; /* for people */
};

/* Zero-initialise. */
struct byi_cost_table {
    struct byi_arena *arena;
    const char *path; /* NULL: nothing is kept */
    BYI_VEC(struct byi_cost_entry) list;
    struct byi_index by_key;
    bool changed;
};
/* Read the table at `path`; NULL: costs.json in $BYOC_CACHE_DIR, else in byoc/
 * of $XDG_CACHE_HOME, else of ~/.cache. No file is an empty table. One that
 * cannot be read, is no cost table, of another version or damaged is not used:
 * `note` says so, and saving replaces it. */
void byi_cost_table_open(struct byi_cost_table *t, const char *path,
                         struct byi_text *note);
/* Microseconds; INFINITY where it cannot run. False: never measured. */
bool byi_cost_get(const struct byi_cost_table *t, const char *key, double *us);
/* Set an entry. What byi_cost_get gives back is a whole number of nanoseconds,
 * so that a later compile decides from the same numbers. */
void byi_cost_put(struct byi_cost_table *t, const char *key, double us,
                  const char *of);
/* Write it if it changed, together with what other compiles have written in the
 * meantime; the oldest entries go when there are too many. A reader sees the
 * old file or the new one. Folders are made. Errors: BYOC_EIO. */
enum byoc_status byi_cost_table_save(struct byi_cost_table *t,
                                     struct byoc_error *err);
void byi_cost_table_close(struct byi_cost_table *t);

#endif
