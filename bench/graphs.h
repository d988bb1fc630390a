/* SPDX-License-Identifier: Apache-2.0 */
/* graphs.h: generates modules of any size for measuring passes. */
#ifndef BENCH_GRAPHS_H
#define BENCH_GRAPHS_H

#include "core/ir/ir.h"

/* The name of a shape of graphs: 0, 1, ...; NULL after the last one. */
const char *bench_shape(uint32_t shape);
/* Generate a module with about `nodes` nodes, for a shape that bench_shape()
 * names. The caller frees the module. A failure ends the program with status 1.
 */
struct byi_module *bench_graph(uint32_t shape, uint32_t nodes);
/* The number of nodes in all functions of a module. */
uint64_t bench_count(const struct byi_module *m);

#endif
