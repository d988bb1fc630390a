/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/cost_table.h: the times measured on a machine, kept in a file between
 * compiles (docs/cost.md).
 */
#ifndef BYI_COST_TABLE_H
#define BYI_COST_TABLE_H

#include "core/base/index.h"
#include "core/ops/ops.h"

/* A measured time. */
struct byi_cost_entry {
    char key[65];            /* SHA-256 of all that the time depends on */
    int64_t ns;              /* of one run; -1: cannot run */
    const char *description; /* of the timed workload, for people */
};

/* Zero-initialise, open with byi_cost_table_open, and close. */
struct byi_cost_table {
    struct byi_arena *arena; /* owns the path and the descriptions */
    const char *path;        /* NULL: the table is not saved */
    BYI_VEC(struct byi_cost_entry) list;
    struct byi_index by_key; /* from a hash of the key to its index in `list` */
    bool changed;            /* differs from the file */
};
/* Read the table at `path`; NULL: $BYOC_CACHE_DIR/costs.json, otherwise
 * $XDG_CACHE_HOME/byoc/costs.json, otherwise ~/.cache/byoc/costs.json;
 * variables that are not absolute paths are ignored. If there is no file, the
 * table is empty. A file that cannot be read, is damaged, or is not a cost
 * table of this version is not used, and saving replaces it. A line is added to
 * `note` for such a file, and if no folder for the table is known.
 */
void byi_cost_table_open(struct byi_cost_table *t, const char *path,
                         struct byi_text *note);
/* Set *us to the time of an entry in microseconds, or to INFINITY if the entry
 * records that the workload cannot run. Returns false if no entry has this
 * key. */
bool byi_cost_get(const struct byi_cost_table *t, const char *key, double *us);
/* Add or replace an entry; key and description are copied. `us` is in
 * microseconds; INFINITY: it cannot run. The time is rounded to nanoseconds, as
 * in the file, so that a later compile decides from the same numbers. */
void byi_cost_put(struct byi_cost_table *t, const char *key, double us,
                  const char *description);
/* If the table changed, write it, with the entries that other compiles have
 * written since; drops the oldest entries beyond a limit. Replaces the file
 * atomically and makes missing folders. Does nothing without a path. Errors:
 * BYOC_EIO. */
enum byoc_status byi_cost_table_save(struct byi_cost_table *t,
                                     struct byoc_error *err);
/* Free what the table owns, without saving, and zero it. */
void byi_cost_table_close(struct byi_cost_table *t);

#endif
