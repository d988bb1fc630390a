/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/parts.h: parts of a model and what they take, natively and by each
 * vendor: timed once, known again by all that the time depends on.
 */
#ifndef BYI_PARTS_H
#define BYI_PARTS_H

#include "core/base/index.h"
#include "cost_table.h"
#include "measure.h"

#include "partition/cost.h"

/* A part, and what it takes by label: 0 native, 1 + v the vendor v. */
struct byi_part {
    struct byi_piece piece;
    uint64_t labels; /* bit l: label l is of interest */
    uint64_t tried;  /* and was looked for            */
    double *us;      /* NAN: not known; INFINITY: cannot run it */
    char key[65];
};

/* Zero-initialise, then set what is above the line. */
struct byi_parts {
    struct byi_module *work; /* whose pieces they are */
    struct byi_vendors *vendors;
    const struct byi_pass_context *ctx; /* what the user asked of passes */
    struct byi_meter meter;
    struct byi_arena *arena;
    double ends; /* when there is no more time, as of byi_meter_now */
    void (*progress)(void *ctx, const char *what, uint32_t done, uint32_t of);
    void *progress_ctx;
    /* ------------------------------------------------------------------- */
    uint32_t n_labels;
    BYI_VEC(struct byi_part) list;
    struct byi_cost_table table;
    struct byi_sha256 base;  /* what every time depends on */
    uint32_t n_timed;        /* that were not in the table */
    struct byi_index by_key; /* of the list */
    uint32_t done, of;
};

/* With the table at `path`, as byi_cost_table_open. */
enum byoc_status byi_parts_open(struct byi_parts *parts, const char *path,
                                struct byi_text *note, struct byoc_error *err);
void byi_parts_close(struct byi_parts *parts);
/* "native", or the vendor's name. */
const char *byi_parts_label(const struct byi_parts *parts, uint32_t label);
/* The part that is this piece, by index; one that looks the same to a clock is
 * it. `labels` are of interest. */
uint32_t byi_parts_add(struct byi_parts *parts, const struct byi_piece *piece,
                       uint64_t labels);
/* Get the times of all parts, from the table or, while there is time, by
 * running them, each once: what a vendor takes of it by the vendor and the rest
 * natively, as a model of its own, borders included. A vendor that takes
 * nothing of a part takes as long as native does. */
enum byoc_status byi_parts_time(struct byi_parts *parts,
                                struct byoc_error *err);
/* Native and every vendor of interest are known. */
bool byi_part_known(const struct byi_parts *parts, const struct byi_part *p);
/* Vendors' names and versions: what their times depend on. */
void byi_parts_sign_vendor(const struct byi_parts *parts, uint32_t label,
                           struct byi_sha256 *s);

#endif
