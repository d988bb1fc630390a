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

enum byoc_status compare_tensors(const struct byi_tensor *found,
                                 const struct byi_tensor *expected, double rtol,
                                 double atol, struct byoc_error *err)
{
    char da[128], db[128];
    if (found->dtype != expected->dtype ||
        !byi_dims_equal(found->rank, found->dims, expected->rank,
                        expected->dims))
        return byi_fail(
            err, BYOC_ETYPE, "found %s %s, expected %s %s",
            byoc_dtype_name(found->dtype),
            byi_dims_text(da, sizeof da, found->rank, found->dims),
            byoc_dtype_name(expected->dtype),
            byi_dims_text(db, sizeof db, expected->rank, expected->dims));
    const int64_t n = byi_elements(found->rank, found->dims);
    for (int64_t i = 0; i < n; i++)
        if (!is_close(byi_tensor_float(found, i), byi_tensor_float(expected, i),
                      rtol, atol))
            return byi_fail(err, BYOC_EINTERNAL,
                            "element %lld is %.9g, expected %.9g", (long long)i,
                            byi_tensor_float(found, i),
                            byi_tensor_float(expected, i));
    return BYOC_OK;
}
