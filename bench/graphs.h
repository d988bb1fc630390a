/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h: generates modules of any size for measuring passes. */
#ifndef BENCH_GRAPHS_H
#define BENCH_GRAPHS_H

#include "core/ir/ir.h"

/* The name of shape 0, 1, ...; NULL behind the last. */
const char *bench_shape(uint32_t shape);
/* A module of about that many nodes. The caller frees it. */
struct byi_module *bench_graph(uint32_t shape, uint32_t nodes);
/* Nodes in all its functions. */
uint64_t bench_count(const struct byi_module *m);

#endif
