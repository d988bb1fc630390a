/* SPDX-License-Identifier: Apache-2.0 */
/* compare.c: compares results with expected ones.
 */
#include "tests/compare.h"

#include <math.h>

DLTensor view_of(struct byi_tensor *t)
{
    return (DLTensor){.data = t->data,
                      .device = {kDLCPU, 0},
                      .ndim = (int)t->rank,
                      .dtype = byoc_dtype_dlpack(t->dtype),
                      .shape = t->dims};
}

static bool is_close(double x, double y, double rtol, double atol)
{
    return x == y || (isnan(x) && isnan(y)) ||
           fabs(x - y) <= atol + rtol * fabs(y);
}

enum byoc_status compare_tensors(const struct byi_tensor *a,
                                 const struct byi_tensor *b, double rtol,
                                 double atol, struct byoc_error *err)
{
    char da[128], db[128];
    if (a->dtype != b->dtype ||
        !byi_dims_equal(a->rank, a->dims, b->rank, b->dims))
        return byi_fail(err, BYOC_ETYPE, "found %s %s, expected %s %s",
                        byoc_dtype_name(a->dtype),
                        byi_dims_text(da, sizeof da, a->rank, a->dims),
                        byoc_dtype_name(b->dtype),
                        byi_dims_text(db, sizeof db, b->rank, b->dims));
    const int64_t n = byi_elements(a->rank, a->dims);
    for (int64_t i = 0; i < n; i++)
        if (!is_close(byi_tensor_float(a, i), byi_tensor_float(b, i), rtol,
                      atol))
            return byi_fail(err, BYOC_EINTERNAL,
                            "element %lld is %.9g, expected %.9g", (long long)i,
                            byi_tensor_float(a, i), byi_tensor_float(b, i));
    return BYOC_OK;
}
