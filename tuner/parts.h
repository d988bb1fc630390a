/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/parts.h: parts of a model, which are candidates or regions, and their
 * times on native kernels and on each backend. A time is measured once and kept
 * under a hash of everything that it depends on.
 */
#ifndef BYI_PARTS_H
#define BYI_PARTS_H

#include "core/base/index.h"
#include "cost_table.h"
#include "measure.h"

#include "partition/cost.h"

/* A part, and its time by label: 0 is native, 1 + v is backend v. */
struct byi_part {
    struct byi_piece piece;
    uint64_t labels; /* bit l: label l is of interest */
    uint64_t tried;  /* bit l: its time was looked up */
    double *us;      /* by label; NAN: unknown; INFINITY: it cannot run */
    char key[65];    /* hash of the piece, in hex digits */
};

/* Whether the part's time with this label is of interest. */
static inline bool byi_part_wants(const struct byi_part *part, uint32_t label)
{
    return part->labels >> label & 1;
}

/* Zero-initialise, then set the members above the line. */
struct byi_parts {
    struct byi_module *work; /* the module with the pieces' nodes */
    struct byi_backends *backends;
    const struct byi_pass_context *ctx; /* the user's options of passes  */
    struct byi_meter meter;
    struct byi_arena *arena;
    double ends; /* deadline, by byi_now */
    void (*progress)(void *ctx, const char *what, uint32_t done, uint32_t of);
    void *progress_ctx; /* progress may be NULL */
    /* ------------------------------------------------------------------- */
    uint32_t n_labels;
    BYI_VEC(struct byi_part) list;
    struct byi_cost_table table;
    struct byi_sha256 base;  /* hash of everything all times depend on */
    uint32_t n_timed;        /* parts that were not in the table */
    uint32_t n_undecided;    /* of these, parts whose times show no winner */
    struct byi_index by_key; /* of the list */
    uint32_t done, of;       /* parts timed, and to be timed, for progress */
};

/* Open a list of parts with the cost table at `path` (byi_cost_table_open).
 * Errors: those of byoc_internal_threads. Close the list also on an error. */
enum byoc_status byi_parts_open(struct byi_parts *parts, const char *path,
                                struct byi_text *note, struct byoc_error *err);
void byi_parts_close(struct byi_parts *parts);
/* "native", or the backend's name. */
const char *byi_parts_label(const struct byi_parts *parts, uint32_t label);
/* Add a piece, whose node list is borrowed; returns the index of its part,
 * which pieces with equal operators and types share. `labels`: the labels whose
 * times are of interest, as bits. */
uint32_t byi_parts_add(struct byi_parts *parts, const struct byi_piece *piece,
                       uint64_t labels);
/* Get the times of all parts from the table or, until the deadline, by running
 * each part as a separate model, which includes the cost of its borders: the
 * backend runs the nodes that it takes, native kernels the rest. A backend that
 * takes no node of a part has the native time. */
enum byoc_status byi_parts_time(struct byi_parts *parts,
                                struct byoc_error *err);
/* Whether the times with all labels of interest are known. */
bool byi_part_known(const struct byi_parts *parts, const struct byi_part *p);
/* Add to hash `s` everything of the label's backend that its times depend on:
 * name, versions, and restrictions on kernels. `label` is not 0. */
void byi_parts_sign_backend(const struct byi_parts *parts, uint32_t label,
                            struct byi_sha256 *s);

#endif
