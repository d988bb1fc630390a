/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_dnnl/patterns.c: turns the rows of patterns.def into patterns, and
 * defines their predicates. Like any backend, it uses byoc/backend.h only. A
 * row says which operators may form a composite; the probe finds out
 * whether oneDNN supports it well for the actual shapes. */
#include "patterns.h"

#include <stdbool.h>
#include <string.h>

#define NAME(op, name, ...) name
#define ELTWISE BYI_DN_ELTWISE(NAME, "|")
#define BINARY BYI_DN_BINARY(NAME, "|")
#define COMMA ,
#define REFUSAL(id, text) [id] = text
#define ID(id, text) id
enum { BYI_DN_REFUSALS(ID, COMMA) };

/* Post-ops: operators that oneDNN applies to a result before storing it. */
#define NONE ""
#define POSTS                                                                  \
    " [" ELTWISE "(^) | " BINARY "(^, %other) | subtract|divide(%other, ^)"    \
    " | multiply(^, ^) | power(^, const %other) | nn.prelu(^, const %other)]*"

/* The operators of attention after the product of queries and keys: scales and
 * masks of the scores, their softmax, and the product with the values. */
#define ATTENDS                                                                \
    " [multiply|add(^, %other) | divide|subtract(^, %other) | tanh(^)]*"       \
    " [nn.softmax(^)] [where(isnan(^), const %zero = 0, ^)]?"                  \
    " [nn.matmul(^, %values) | nn.matmul(%values, ^)]"

static const char *const refusals[] = {BYI_DN_REFUSALS(REFUSAL, COMMA)};

/* Accepts a match if its source and the results of its operators have one of n
 * types. Results of isnan and results that are tuples are not checked.
 * refusals[refusal] is the message for an operator and its type if that is not
 * one of the n. */
static const char *accept_types(const struct byoc_host *host,
                                const struct byoc_match *m,
                                const uint32_t *types, uint32_t n, int refusal)
{
    uint32_t dtype, rank, at = n;
    const int64_t *dims;
    for (uint32_t i = 0; i < host->match_n_ops(m); i++) {
        if (!host->match_op_type(m, i, &dtype, &rank, &dims) ||
            strcmp(host->match_op(m, i), "isnan") == 0) /* of attention */
            continue;
        for (at = 0; at < n && types[at] != dtype;)
            at++;
        if (at == n)
            return host->match_say(m, refusals[refusal], host->match_op(m, i),
                                   host->match_show_op(m, i));
    }
    if (!host->match_type(m, "src", &dtype, &rank, &dims))
        return NULL;
    for (at = 0; at < n && types[at] != dtype;)
        at++;
    return at < n ? NULL
                  : host->match_say(m, refusals[refusal], host->match_op(m, 0),
                                    host->match_show(m, "src"));
}

static const char *accept_float(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    static const uint32_t types[] = {BYOC_F32, BYOC_F16, BYOC_BF16};
    return accept_types(host, m, types, sizeof types / sizeof *types, GIVES);
}

static const char *accept_float32(const struct byoc_host *host,
                                  const struct byoc_match *m)
{
    static const uint32_t types[] = {BYOC_F32};
    return accept_types(host, m, types, 1, TAKES_WIDE);
}

/* Whether a and b are the same shape. If `varies`, a symbolic size, which is
 * below 0, counts as equal to any size. */
static bool is_same_shape(uint32_t rank, const int64_t *a, const int64_t *b,
                          bool varies)
{
    for (uint32_t i = 0; i < rank; i++)
        if (a[i] != b[i] && !(varies && (a[i] < 0 || b[i] < 0)))
            return false;
    return true;
}

/* Accepts a match if the results of its first n operators have the same shape,
 * since post-ops change the first operator's result in place. */
static const char *accept_same_shape(const struct byoc_host *host,
                                     const struct byoc_match *m, uint32_t n,
                                     bool varies)
{
    uint32_t dtype, rank[2];
    const int64_t *dims[2];
    if (!host->match_op_type(m, 0, &dtype, &rank[0], &dims[0]))
        return NULL;
    for (uint32_t i = 1; i < n; i++)
        if (host->match_op_type(m, i, &dtype, &rank[1], &dims[1]) &&
            (rank[0] != rank[1] ||
             !is_same_shape(rank[0], dims[0], dims[1], varies)))
            return host->match_say(m, refusals[RESHAPES], host->match_op(m, i),
                                   host->match_show_op(m, i),
                                   host->match_op(m, 0),
                                   host->match_show_op(m, 0));
    return NULL;
}

static const char *accept_chain(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    const char *why = accept_float(host, m);
    return why ? why : accept_same_shape(host, m, host->match_n_ops(m), false);
}

/* The last operator, the product with the values, may have another shape. The
 * size of a mask often follows from arithmetic with shapes, and is known only
 * when the region is built for the sizes of a run. */
static const char *accept_attention(const struct byoc_host *host,
                                    const struct byoc_match *m)
{
    const char *why = accept_float(host, m);
    return why ? why
               : accept_same_shape(host, m, host->match_n_ops(m) - 1, true);
}

/* Accepts a match that only moves data. */
static const char *accept_moves(const struct byoc_host *host,
                                const struct byoc_match *m)
{
    static const uint32_t types[] = {BYOC_F32, BYOC_F16, BYOC_BF16, BYOC_I8,
                                     BYOC_U8};
    return accept_types(host, m, types, sizeof types / sizeof *types, MOVES);
}

/* Accepts a match that moves data, or moves floats and has post-ops. */
static const char *accept_moves_chain(const struct byoc_host *host,
                                      const struct byoc_match *m)
{
    return host->match_n_ops(m) == 1 ? accept_moves(host, m)
                                     : accept_chain(host, m);
}

/* Accepts a match that pools floats, or only takes a maximum of 8-bit data. */
static const char *accept_pool(const struct byoc_host *host,
                               const struct byoc_match *m)
{
    return strncmp(host->match_op(m, 0), "nn.max", 6) == 0
               ? accept_moves_chain(host, m)
               : accept_chain(host, m);
}

/* Accepts a match between 8-bit integers and float32 with a single scale. */
static const char *accept_quantize(const struct byoc_host *host,
                                   const struct byoc_match *m)
{
    uint32_t from, to, dtype, rank;
    const int64_t *dims;
    int64_t n = 1;
    if (!host->match_type(m, "src", &from, &rank, &dims) ||
        !host->match_op_type(m, 0, &to, &rank, &dims) ||
        !((from == BYOC_F32 && (to == BYOC_U8 || to == BYOC_I8)) ||
          (to == BYOC_F32 && (from == BYOC_U8 || from == BYOC_I8))))
        return host->match_say(m, refusals[BITS], host->match_op(m, 0),
                               host->match_show_op(m, 0),
                               host->match_show(m, "src"));
    host->match_type(m, "scale", &dtype, &rank, &dims);
    for (uint32_t i = 0; i < rank; i++)
        n *= dims[i];
    if (n != 1)
        return host->match_say(m, refusals[SCALES], host->match_op(m, 0),
                               host->match_show(m, "scale"));
    return NULL;
}

#define ROW(name, operators, operands, posts, accept, build)                   \
    {name, operators operands posts, accept},
const struct byoc_pattern byi_dnnl_patterns[] = {
#include "patterns.def"
};
const uint32_t byi_dnnl_n_patterns =
    sizeof byi_dnnl_patterns / sizeof byi_dnnl_patterns[0];
