/* SPDX-License-Identifier: Apache-2.0 */
/* tests/compare.h: passes tensors to a run, and compares its results with
 * expected ones.
 */
#ifndef BYI_TESTS_COMPARE_H
#define BYI_TESTS_COMPARE_H

#include <byoc/runtime.h>

#include "core/base/base.h"

/* The tensor as an argument of byoc_run(); it points to the dims and data of
 * *t. */
DLTensor view_of(struct byi_tensor *t);

/* Check that |found - expected| <= atol + rtol |expected| for all elements; NaN
 * equals NaN. Returns BYOC_ETYPE if types or shapes differ, BYOC_EINTERNAL if
 * an element does, with the first difference in *err. */
enum byoc_status compare_tensors(const struct byi_tensor *found,
                                 const struct byi_tensor *expected, double rtol,
                                 double atol, struct byoc_error *err);

#endif
