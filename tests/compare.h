/* SPDX-License-Identifier: Apache-2.0 */
/* tests/compare.h: compares results with expected ones.
 */
#ifndef BYI_TESTS_COMPARE_H
#define BYI_TESTS_COMPARE_H

#include "core/base/base.h"

/* Are a and b the same but for |a - b| <= atol + rtol |b|? NaN is NaN. Says
 * the first difference in err. */
enum byoc_status compare_tensors(const struct byi_tensor *a,
                                 const struct byi_tensor *b, double rtol,
                                 double atol, struct byoc_error *err);

#endif
