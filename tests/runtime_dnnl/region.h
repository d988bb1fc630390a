/* SPDX-License-Identifier: Apache-2.0 */
/* tests/runtime_dnnl/region.h: writes small regions as JSON, runs them with the
 * plug-in, and compares the results with those of the native kernels. These
 * execute the same JSON step by step.
 */
#ifndef BYI_TEST_REGION_H
#define BYI_TEST_REGION_H

#include <byoc/backend.h>

#include "region/graph.h"
#include "runtime_dnnl/table.h"
#include "runtime_native/native.h"

enum { MAX_REGION_NODES = 256, MAX_REGION_ARGS = 64 };

/* A region that is being written. Arrays are by node. */
struct region {
    struct byi_arena *arena;
    struct byi_text nodes;
    uint32_t n_nodes;
    const struct byi_type *type[MAX_REGION_NODES];   /* of output 0           */
    struct byi_tensor data[MAX_REGION_NODES];        /* of inputs and consts  */
    const struct byi_type *fields[MAX_REGION_NODES]; /* a tuple's type      */
    uint32_t inputs[MAX_REGION_NODES], n_inputs;
    uint32_t consts[MAX_REGION_NODES], n_consts;
    uint64_t seed;
    /* the kernel being written */
    const char *op; /* of step 0 */
    struct byi_text operands, posts;
    uint32_t n_steps, n_operands;
    const struct byi_type *last; /* the result of the last step */
    char *first;                 /* the text of step 0 */
};

/* Each test has its own copy (region.inc), and uses some of it. */
#pragma GCC diagnostic ignored "-Wunused-function"

/* Begin an empty region; region_close() frees it with its data. */
static void region_open(struct region *g);
static void region_close(struct region *g);
/* Add an input or a constant, and return its node; dims end with -1. Data is
 * random in -1 .. 1, or positive for region_positive; region_ints adds a
 * constant vector of n int64. */
static uint32_t region_input(struct region *g, ...);
static uint32_t region_const(struct region *g, ...);
static uint32_t region_positive(struct region *g, ...);
static uint32_t region_ints(struct region *g, uint32_t n,
                            const int64_t *values);
static uint32_t region_typed_input(struct region *g, enum byoc_dtype dtype,
                                   ...);
/* Begin a kernel with its own operator on nodes ids[0..n-1]. */
static void region_kernel(struct region *g, const char *op, const char *attrs,
                          uint32_t n, const uint32_t *ids);
/* Add a post-op on the kernel's result so far and node `other`, as the second
 * operand or, if `swapped`, the first one; UINT32_MAX: a post-op of one
 * operand.
 */
static void region_post(struct region *g, const char *op, const char *attrs,
                        uint32_t other, bool swapped);
/* End the kernel. Returns its node. */
static uint32_t region_end(struct region *g);

/* End the region's text, and return it. Its outputs are output 0 of the given
 * nodes, or all outputs of a tuple. */
static char *region_json(struct region *g, uint32_t n, const uint32_t *outputs);

/* The record of a run, for assertions. */
struct region_report {
    char trace[8192]; /* "name:impl\n" per primitive */
    uint32_t n_steps, n_reorders;
};
/* Load the region, run it twice, and compare its results with those of the
 * native kernels within `tolerance` (absolute, and relative to the larger
 * values). Keeps the region, so that regions_as_c() can compare JSON with C.
 * Returns NULL, or the error in a static buffer. */
static const char *region_check(struct region *g, uint32_t n,
                                const uint32_t *outputs, double tolerance,
                                struct region_report *report);
/* Probe the region. Returns NULL if the plug-in accepts it, otherwise the
 * reason in a static buffer. */
static const char *region_probe(struct region *g, uint32_t n,
                                const uint32_t *outputs,
                                struct byoc_probe *probe);
/* The host of these tests, the plug-in's backend, and the text of a failure
 * that this host made. */
static const struct byoc_host *region_host(void);
static const struct byoc_backend *region_backend(void);
static const char *region_fail_text(const struct byoc_fail *fail);

#endif
