/* dnnl.c: what oneDNN takes, as rows. Part of the plug-in: it sees what any
 * vendor sees, byoc/backend.h. A row says what may stand together; whether
 * oneDNN really builds it well, with these shapes, the probe finds out.
 */
#include "dnnl.h"

#include <string.h>

/* Post-ops: what oneDNN applies to a result on its way out, in any order. */
#define ELTWISE                                                                \
    "nn.relu|nn.leaky_relu|nn.elu|clip|sigmoid|tanh|nn.gelu|nn.silu"           \
    "|nn.hard_swish|nn.hard_sigmoid|nn.mish|nn.softplus|abs|sqrt|exp|round"
#define BINARY "add|subtract|multiply|divide|maximum|minimum"
#define POST_OPS " [" ELTWISE "(^) | " BINARY "(^, %other)]*"

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
    if (rank > 5)
        return "found more than 5 axes; oneDNN's kernels take up to 5";
    return NULL;
}

/* One operator by itself. */
static const char *accept_op(const struct byoc_host *host,
                             const struct byoc_match *m)
{
    return check_float(host, m, 0);
}

/* Post-ops work on the result in place: its shape must not change, and other
 * operands must be float32. */
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

/* clang-format off */
const struct byoc_pattern byi_dnnl_patterns[] = {
    /* compute, with what can ride on it */
    {"dnnl.conv", "nn.conv1d|nn.conv2d|nn.conv3d(%src, const %weights)" POST_OPS, accept_chain},
    {"dnnl.deconv", "nn.conv1d_transpose|nn.conv2d_transpose|nn.conv3d_transpose(%src, const %weights)" POST_OPS, accept_chain},
    {"dnnl.dense", "nn.dense(%src, %weights)" POST_OPS, accept_chain},
    {"dnnl.matmul", "nn.matmul(%src, %weights)" POST_OPS, accept_chain},
    /* windows and norms */
    {"dnnl.pool", "nn.max_pool1d|nn.max_pool2d|nn.max_pool3d|nn.avg_pool1d|nn.avg_pool2d|nn.avg_pool3d(%src)", accept_op},
    {"dnnl.global_pool", "nn.global_avg_pool1d|nn.global_avg_pool2d|nn.global_avg_pool3d|nn.global_max_pool1d|nn.global_max_pool2d|nn.global_max_pool3d(%src)", accept_op},
    {"dnnl.softmax", "nn.softmax|nn.log_softmax(%src)", accept_op},
    {"dnnl.layer_norm", "nn.layer_norm(%src, const %gamma, const %beta)", accept_op},
    {"dnnl.batch_norm", "nn.batch_norm(%src, const %gamma, const %beta, const %mean, const %var)", accept_op},
    {"dnnl.lrn", "nn.lrn(%src)", accept_op},
    {"dnnl.resize", "image.resize(%src, const %sizes)", accept_op},
    {"dnnl.reduce", "mean|sum|max|min|prod(%src)", accept_op},
    /* element by element */
    {"dnnl.binary", BINARY "(%src, %with)" POST_OPS, accept_chain},
    {"dnnl.prelu", "nn.prelu(%src, const %slope)", accept_op},
    {"dnnl.eltwise", ELTWISE "(%src)", accept_op},
    /* views and copies that would split a region where they stay outside */
    {"dnnl.concat", "concatenate(%src...)", accept_op},
    {"dnnl.reshape", "reshape(%src, const %shape)", accept_op},
    {"dnnl.view", "nn.flatten|squeeze|expand_dims|copy(%src)", accept_op},
    {"dnnl.transpose", "transpose|layout_transform(%src)", accept_op},
    {"dnnl.depth_to_space", "nn.depth_to_space(%src)", accept_op},
    {"dnnl.split", "split(%src)", accept_op},
    {"dnnl.slice", "strided_slice(%src, const %begin, const %end, const %axes, const %strides)", accept_op},
};
/* clang-format on */
const uint32_t byi_dnnl_n_patterns =
    sizeof byi_dnnl_patterns / sizeof byi_dnnl_patterns[0];
