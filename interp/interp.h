/* SPDX-License-Identifier: Apache-2.0 */
/* interp.h: a naive interpreter of the IR, with which tests and the conformance
 * kit compare everything else. Runs node by node on the native kernels, and
 * keeps calls on an explicit stack.
 */
#ifndef BYI_INTERP_H
#define BYI_INTERP_H

#include "core/ir/ir.h"

/* Run function `func` of m. `in` has one tensor for each parameter, of its
 * type; tuples, sequences and functions cannot be given. The result is in out[0
 * .. *n_out-1]: a tensor, or the fields of a tuple in order, nested tuples
 * included. Results may point into `arena`, to constants of m or to the data of
 * `in`: they are valid while all three are. Errors: those of type rules and
 * kernels, which name the function and the node; BYOC_EINVAL for another number
 * of inputs; BYOC_ELIMIT for more than max_out results, more than 100,000
 * nested calls, a result of more than 4 GiB, or an operator with more than 512
 * operands or 16 results. */
enum byoc_status byi_interp_run(const struct byi_module *m, uint32_t func,
                                const struct byi_tensor *in, uint32_t n_in,
                                struct byi_arena *arena, struct byi_tensor *out,
                                uint32_t max_out, uint32_t *n_out,
                                struct byoc_error *err);

/* Perturbs a call of an operator. The interpreter calls this before the call,
 * with NULL for the results, and after the call, with its results. Float
 * operands are copies, which it may change; it must not change the others. */
typedef void (*byi_perturb_fn)(void *ctx, const struct byi_func *f,
                               const struct byi_node *node,
                               struct byi_tensor *operands,
                               struct byi_tensor *results, uint32_t n_results);
/* The same, but calls perturb(perturb_ctx, ...) around each call of an
 * operator. */
enum byoc_status byi_interp_perturbed(const struct byi_module *m, uint32_t func,
                                      const struct byi_tensor *in,
                                      uint32_t n_in, struct byi_arena *arena,
                                      byi_perturb_fn perturb, void *perturb_ctx,
                                      struct byi_tensor *out, uint32_t max_out,
                                      uint32_t *n_out, struct byoc_error *err);

/* Set *out to a tensor of the type, in `arena`, with numbers that depend on
 * `seed` only: floats from -2 to 2; integers, and elements of narrow types,
 * from 0 to 3; bools 0 or 1. Symbol i is replaced by the size 2 + i % 3.
 * Returns false if the type is not a tensor, or has strings. */
bool byi_interp_random(const struct byi_type *type, uint64_t seed,
                       struct byi_arena *arena, struct byi_tensor *out);

#endif
