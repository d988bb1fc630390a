/* SPDX-License-Identifier: Apache-2.0 */
/* tuner/workloads.h: workloads, which are candidates or regions of a model, and
 * their times on native kernels and on each backend. A time is measured once
 * and kept under a hash of everything that it depends on.
 */
#ifndef BYI_WORKLOADS_H
#define BYI_WORKLOADS_H

#include "core/base/index.h"
#include "cost_table.h"
#include "measure.h"

#include "partition/cost.h"

/* A workload, and its time by label: 0 is native, 1 + v is backend v. */
struct byi_workload {
    struct byi_subgraph subgraph;
    uint64_t labels;    /* bit l: label l is of interest */
    uint64_t looked_up; /* bit l: its time was looked up in the table */
    double *us;   /* indexed by label; NAN: unknown; INFINITY: it cannot run */
    char key[65]; /* hash of the subgraph, in hex digits */
};

/* Whether the workload's time with this label is of interest. */
static inline bool byi_workload_wants(const struct byi_workload *workload,
                                      uint32_t label)
{
    return workload->labels >> label & 1;
}

/* Zero-initialise, then set the members above the line. */
struct byi_workloads {
    struct byi_module *work; /* the module with the subgraphs' nodes */
    struct byi_backends *backends;
    const struct byi_pass_context *ctx; /* the user's options of passes  */
    struct byi_meter meter;
    struct byi_arena *arena;
    double deadline; /* the time of byi_now at which measuring stops */
    /* as in struct byi_cost_partition */
    void (*progress)(void *ctx, const char *activity, uint32_t done,
                     uint32_t total);
    void *progress_ctx;
    /* ------------------------------------------------------------------- */
    uint32_t n_labels;
    BYI_VEC(struct byi_workload) list;
    struct byi_cost_table table;
    struct byi_sha256 base;  /* hash of everything that all times depend on */
    uint32_t n_timed;        /* workloads that were not in the table */
    uint32_t n_undecided;    /* of these, how many have no clear winner */
    struct byi_index by_key; /* from a hash of the key to its index in `list` */
    uint32_t n_done, n_total; /* workloads timed, and to be timed so far */
};

/* Open a list of workloads with the cost table at `path` (byi_cost_table_open).
 * Errors: those of byoc_internal_threads. Close the list also on an error. */
enum byoc_status byi_workloads_open(struct byi_workloads *workloads,
                                    const char *path, struct byi_text *note,
                                    struct byoc_error *err);
/* Free the list and the table; the other members belong to the caller. */
void byi_workloads_close(struct byi_workloads *workloads);
/* Returns "native", or the backend's name. */
const char *byi_workloads_label(const struct byi_workloads *workloads,
                                uint32_t label);
/* Add a subgraph, whose node list is borrowed. Returns the index of its
 * workload, which subgraphs with equal operators and types share. `labels`: the
 * labels whose times are of interest, as bits. */
uint32_t byi_workloads_add(struct byi_workloads *workloads,
                           const struct byi_subgraph *subgraph,
                           uint64_t labels);
/* Get the times of all workloads from the table or, until the deadline, by
 * running each workload as a separate model. The backend runs the nodes that it
 * takes, native kernels the rest. A time includes the cost of the workload's
 * borders. A backend that takes no node of a workload has the native time.
 * Errors: those of passes. */
enum byoc_status byi_workloads_time(struct byi_workloads *workloads,
                                    struct byoc_error *err);
/* Whether the times with all labels of interest are known. */
bool byi_workload_is_known(const struct byi_workloads *workloads,
                           const struct byi_workload *workload);
/* Hash into `s` all properties of the label's backend that its times depend on:
 * name, versions, and restrictions on kernels. `label` is not 0. */
void byi_workloads_hash_backend(const struct byi_workloads *workloads,
                                uint32_t label, struct byi_sha256 *s);

#endif
