/* dnnl.c: the rows of dnnl.def as patterns, and their predicates. Part of the
 * plug-in: it sees what any vendor sees, byoc/backend.h. A row says what may
 * stand together; whether oneDNN really builds it well, with these shapes, the
 * probe finds out.
 */
#include "dnnl.h"

#include <string.h>

#define NAME(op, name, ...) name
#define ELTWISE BYI_DN_ELTWISE(NAME, "|")
#define BINARY BYI_DN_BINARY(NAME, "|")

/* Post-ops: what oneDNN applies to a result on its way out, in any order. */
#define NONE ""
#define POSTS                                                                  \
    " [" ELTWISE "(^) | " BINARY "(^, %other) | subtract|divide(%other, ^)"    \
    " | multiply(^, ^) | power(^, const %other) | nn.prelu(^, const %other)]*"

enum { F32 = 1 };

static const char *check_float(const struct byoc_host *host,
                               const struct byoc_match *m, uint32_t op)
{
    uint32_t dtype, rank;
    const int64_t *dims;
    if (!host->match_op_type(m, op, &dtype, &rank, &dims))
        return NULL; /* a tuple: the probe sees its fields */
    if (dtype != F32)
        return "found a result that is not float32; oneDNN is given float32 "
               "only";
    return NULL;
}

/* One operator by itself. */
static const char *accept_float(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    return check_float(host, m, 0);
}

/* Post-ops work on the result in place: its shape must not change. */
static const char *accept_chain(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    uint32_t n = host->match_n_ops(m), dtype[2], rank[2];
    const int64_t *dims[2];
    for (uint32_t i = 0; i < n; i++) {
        const char *why = check_float(host, m, i);
        if (why)
            return why;
    }
    if (host->match_op_type(m, 0, &dtype[0], &rank[0], &dims[0]) &&
        host->match_op_type(m, n - 1, &dtype[1], &rank[1], &dims[1]) &&
        (rank[0] != rank[1] ||
         memcmp(dims[0], dims[1], rank[0] * sizeof *dims[0]) != 0))
        return "a post-op broadcasts the result to a larger shape; oneDNN's "
               "post-ops keep the shape";
    return NULL;
}

#define ROW(name, operators, operands, posts, accept, build)                   \
    {name, operators operands posts, accept},
const struct byoc_pattern byi_dnnl_patterns[] = {
#include "dnnl.def"
};
const uint32_t byi_dnnl_n_patterns =
    sizeof byi_dnnl_patterns / sizeof byi_dnnl_patterns[0];
