/* SPDX-License-Identifier: Apache-2.0 */
/* reader.h: the state and functions that the readers of region JSON share. */
#ifndef BYI_REGION_READER_H
#define BYI_REGION_READER_H

#include "core/base/names.h"
#include "region/graph.h"

/* The state of a reader; everything is in `arena`. */
struct region_reader {
    struct byi_arena *arena;
    struct byi_graph *graph;
    struct byi_graph_node *nodes;
    uint32_t n_read;              /* nodes read so far */
    struct byi_graph_step *steps; /* of the current kernel */
    bool *visible; /* for each step: the current step may read it */
    uint32_t n_steps;
    uint32_t depth; /* number of `if`s around the current step */
    bool varying;   /* dims may be names */
    struct byi_name_table symbols;
    int64_t
        n_new_symbols; /* number of symbols for unknown dims of type rules */
    struct byoc_error *err;
};

/* Read member "type" of a step: a tensor or, for a tuple, a list of tensors.
 * Errors: BYOC_EPARSE, BYOC_ELIMIT (tensors of 2^63 elements or 2^64 bytes). */
enum byoc_status byi_region_type(struct region_reader *r,
                                 const struct byi_json *object,
                                 const struct byi_type **type);
/* Read member "out" of a node, the types of its results; sets n_out and out.
 * Errors: as above. */
enum byoc_status byi_region_outs(struct region_reader *r,
                                 const struct byi_json *object,
                                 struct byi_graph_node *node);

#endif
