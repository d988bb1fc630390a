/* ops_attention.c: com.microsoft's attention, as the products, sums and the
 * softmax that it is made of. With b sequences, n heads, s queries, t keys, h
 * elements of a head:
 *
 *   scores = nn.matmul(q, k, transpose_b=true) scale + bias + mask
 *   result = nn.matmul(nn.softmax(scores), v)
 *
 * Scores are (b, n, s, t), results (b, n, s, h). Where g heads of queries share
 * one of keys, both are (b, n / g, g, s, ...), and keys broadcast over g.
 *
 * A mask is a term of the scores: 0 where a query may look, else
 * mask_filter_value, and the smallest float where it must not look ahead.
 */
#include "frontend_onnx/import.h"

#include <float.h>
#include <math.h>
#include <string.h>

struct attention {
    int64_t heads;
    byi_id q, k, v;    /* (b, n, s or t, h), keys of the past among them;
                        * q (b, n / g, g, s, h) where heads share keys */
    byi_id own;        /* keys without those of the past */
    byi_id bias, mask; /* BYI_NO_ID: none */
    byi_id sink;       /* (n, 1, 1) or (n / g, g, 1, 1): a score of a key that
                        * has no value */
    double filter, scale;
    double softcap; /* scores stay between -softcap and softcap; 0: any */
    bool causal;
    enum byoc_dtype dtype; /* of the result */
};

/* --- heads ---------------------------------------------------------------- */

static byi_id swap_heads(struct byi_import *o, byi_id x)
{
    static const int64_t axes[] = {0, 2, 1, 3};

    return byi_o_emit(o, BYI_OP_TRANSPOSE, ARGS(x),
                      ATTRS(SOME_INTS("axes", 4, axes)));
}

/* (b, s, n h) -> (b, s, n, h) */
static byi_id show_heads(struct byi_import *o, byi_id x, int64_t heads)
{
    const int64_t width = byi_o_dim(o, x, 2);
    const bool known = !BYI_IS_SYMBOL(width);
    const int64_t shape[] = {0, 0, heads, known ? width / heads : -1};

    if (byi_o_ok(o) && (byi_o_rank(o, x) != 3 || (known && width % heads)))
        byi_o_fail(o, BYOC_ETYPE,
                   "an operand of rank %u and width %lld does not split in "
                   "%lld heads",
                   byi_o_rank(o, x), (long long)width, (long long)heads);
    return byi_o_reshape(o, x, byi_o_vector(o, 4, shape), false);
}

/* (b, s, n h) -> (b, n, s, h) */
static byi_id split_heads(struct byi_import *o, byi_id x, int64_t heads)
{
    return swap_heads(o, show_heads(o, x, heads));
}

/* (b, n, s, h), or (b, n / g, g, s, h) -> (b, s, n h) */
static byi_id join_heads(struct byi_import *o, byi_id x)
{
    static const int64_t axes[] = {0, 3, 1, 2, 4};
    const bool grouped = byi_o_rank(o, x) == 5;
    int64_t width = 1;

    x = grouped ? byi_o_emit(o, BYI_OP_TRANSPOSE, ARGS(x),
                             ATTRS(SOME_INTS("axes", 5, axes)))
                : swap_heads(o, x);
    for (uint32_t i = 2; i < byi_o_rank(o, x) && width > 0; i++)
        width =
            BYI_IS_SYMBOL(byi_o_dim(o, x, i)) ? -1 : width * byi_o_dim(o, x, i);
    const int64_t shape[] = {0, 0, width};
    return byi_o_reshape(o, x, byi_o_vector(o, 3, shape), false);
}

/* x at `index` of the axis, which goes. */
static byi_id pick(struct byi_import *o, byi_id x, int64_t axis, double index)
{
    return byi_o_emit(o, BYI_OP_TAKE, ARGS(x, byi_o_scalar(o, BYOC_I64, index)),
                      ATTRS(AN_INT("axis", axis)));
}

static byi_id join(struct byi_import *o, byi_id a, byi_id b, int64_t axis)
{
    if (a == BYI_NO_ID)
        return b;
    return byi_o_emit(o, BYI_OP_CONCATENATE, ARGS(a, b),
                      ATTRS(AN_INT("axis", axis)));
}

/* Three parts of the last axis. */
static void split_last(struct byi_import *o, byi_id x, const int64_t sizes[3],
                       byi_id parts[3])
{
    const byi_id tuple =
        byi_o_emit(o, BYI_OP_SPLIT, ARGS(x),
                   ATTRS(SOME_INTS("sizes", 3, sizes),
                         AN_INT("axis", (int64_t)byi_o_rank(o, x) - 1)));

    for (uint32_t i = 0; i < 3; i++)
        parts[i] = byi_o_get(o, tuple, i);
}

/* --- masks ---------------------------------------------------------------- */

/* The size of an axis, an int64 scalar. */
static byi_id length(struct byi_import *o, byi_id x, int64_t axis)
{
    return byi_o_as_scalar(
        o, byi_o_emit(o, BYI_OP_SHAPE_OF, ARGS(x),
                      ATTRS(AN_INT("start", axis), AN_INT("end", axis + 1))));
}

/* start, start + 1, ... end - 1 */
static byi_id count(struct byi_import *o, byi_id start, byi_id end)
{
    return byi_o_emit(o, BYI_OP_ARANGE,
                      ARGS(start, end, byi_o_scalar(o, BYOC_I64, 1)), NO_ATTRS);
}

/* allowed ? 0 : filter, as a term of the scores; `axes` are put into it. */
static byi_id term(struct byi_import *o, const struct attention *a,
                   byi_id allowed, double filter, uint32_t n,
                   const int64_t *axes)
{
    const enum byoc_dtype dtype = byi_o_dtype(o, a->q);

    return byi_o_expand(o,
                        byi_o_emit(o, BYI_OP_WHERE,
                                   ARGS(allowed, byi_o_scalar(o, dtype, 0),
                                        byi_o_scalar(o, dtype, filter)),
                                   NO_ATTRS),
                        n, axes);
}

/* Keys start[b] .. end[b] - 1 are there; no start: from the first one on. */
static byi_id range_mask(struct byi_import *o, const struct attention *a,
                         byi_id start, byi_id end)
{
    static const int64_t column[] = {1}, middle[] = {1, 2};
    const byi_id keys = byi_o_cast(
        o, count(o, byi_o_scalar(o, BYOC_I64, 0), length(o, a->k, 2)),
        byi_o_dtype(o, end));
    byi_id allowed =
        byi_o_binary(o, BYI_OP_LESS, keys, byi_o_expand(o, end, 1, column));

    if (start != BYI_NO_ID)
        allowed = byi_o_binary(o, BYI_OP_LOGICAL_AND, allowed,
                               byi_o_binary(o, BYI_OP_GREATER_EQUAL, keys,
                                            byi_o_expand(o, start, 1, column)));
    return term(o, a, allowed, a->filter, 2, middle);
}

/* A mask of one axis: (b) ends, or (2 b): ends, then starts. */
static byi_id index_mask(struct byi_import *o, const struct attention *a,
                         byi_id mask)
{
    const int64_t n = byi_o_dim(o, mask, 0), batch = byi_o_dim(o, a->q, 0);
    const int64_t halves[] = {batch, batch};

    if (n == batch)
        return range_mask(o, a, BYI_NO_ID, mask);
    if (BYI_IS_SYMBOL(n) || BYI_IS_SYMBOL(batch) || n != 2 * batch) {
        byi_o_refuse(o, "a mask of one axis that has neither one nor two "
                        "elements a sequence");
        return BYI_NO_ID;
    }
    const byi_id both = byi_o_emit(o, BYI_OP_SPLIT, ARGS(mask),
                                   ATTRS(SOME_INTS("sizes", 2, halves)));
    return range_mask(o, a, byi_o_get(o, both, 1), byi_o_get(o, both, 0));
}

/* What the node's mask adds to the scores: (b), (2 b), (b, t), (b, s, t). */
static byi_id read_mask(struct byi_import *o, const struct attention *a,
                        byi_id mask)
{
    static const int64_t middle[] = {1, 2};
    const uint32_t rank = byi_o_rank(o, mask);

    if (mask == BYI_NO_ID)
        return BYI_NO_ID;
    if (rank == 1)
        return index_mask(o, a, mask);
    if (rank != 2 && rank != 3) {
        byi_o_refuse(o, "a mask of rank %u", rank);
        return BYI_NO_ID;
    }
    const byi_id zero = byi_o_scalar(o, byi_o_dtype(o, mask), 0);
    return term(o, a, byi_o_binary(o, BYI_OP_GREATER, mask, zero), a->filter,
                4 - rank, middle);
}

/* What is added to a score that must not count. */
static double lowest(struct byi_import *o, const struct attention *a)
{
    return byi_o_dtype(o, a->q) == BYOC_F64 ? -DBL_MAX : -(double)FLT_MAX;
}

/* Query i, behind the keys of the past, looks at keys up to its own. */
static byi_id causal_mask(struct byi_import *o, const struct attention *a)
{
    static const int64_t column[] = {1}, front[] = {0, 1};
    const byi_id all = length(o, a->k, 2);
    const byi_id past =
        byi_o_binary(o, BYI_OP_SUBTRACT, all, length(o, a->own, 2));
    const byi_id end = byi_o_binary(o, BYI_OP_ADD, past, length(o, a->q, 2));
    const byi_id rows = byi_o_expand(o, count(o, past, end), 1, column);
    const byi_id keys = count(o, byi_o_scalar(o, BYOC_I64, 0), all);

    return term(o, a, byi_o_binary(o, BYI_OP_LESS_EQUAL, keys, rows),
                lowest(o, a), 2, front);
}

/* --- the whole ------------------------------------------------------------ */

static byi_id plus(struct byi_import *o, byi_id x, byi_id more)
{
    return more == BYI_NO_ID ? x : byi_o_binary(o, BYI_OP_ADD, x, more);
}

static byi_id scores(struct byi_import *o, const struct attention *a, byi_id k)
{
    const int64_t width = byi_o_dim(o, a->q, byi_o_rank(o, a->q) - 1);
    const double scale = a->scale != 0.0 ? a->scale : 1.0 / sqrt((double)width);
    byi_id x = byi_o_emit(o, BYI_OP_NN_MATMUL, ARGS(a->q, k),
                          ATTRS(A_BOOL("transpose_b", true)));

    if (a->softcap == 0.0)
        x = byi_o_scale(o, x, scale);
    else
        x = byi_o_scale(o,
                        byi_o_emit(o, BYI_OP_TANH,
                                   ARGS(byi_o_scale(o, x, scale / a->softcap)),
                                   NO_ATTRS),
                        a->softcap);
    x = plus(o, plus(o, x, a->bias), a->mask);
    return a->causal ? plus(o, x, causal_mask(o, a)) : x;
}

/* Halves are computed with in float32: a score's error is its exponential's
 * factor. Before there are masks, which are of the type of the queries. */
static void widen(struct byi_import *o, struct attention *a)
{
    byi_id *const operands[] = {&a->q, &a->k, &a->v, &a->bias, &a->sink};

    a->dtype = byi_o_dtype(o, a->q);
    for (uint32_t i = 0; i < BYI_COUNT(operands); i++)
        if (*operands[i] != BYI_NO_ID &&
            (a->dtype == BYOC_F16 || a->dtype == BYOC_BF16))
            *operands[i] = byi_o_cast(o, *operands[i], BYOC_F32);
}

/* What of each row's softmax is not the sink's: with S the sum of e^score,
 * S / (S + e^sink) = sigmoid(log S - sink). */
static byi_id beside_sink(struct byi_import *o, byi_id x, byi_id sink)
{
    static const int64_t last[] = {-1};
    const byi_id sum =
        byi_o_emit(o, BYI_OP_LOG_SUM_EXP, ARGS(x),
                   ATTRS(SOME_INTS("axis", 1, last), A_BOOL("keepdims", true)));

    return byi_o_emit(o, BYI_OP_SIGMOID,
                      ARGS(byi_o_binary(o, BYI_OP_SUBTRACT, sum, sink)),
                      NO_ATTRS);
}

static byi_id attend(struct byi_import *o, const struct attention *a)
{
    static const int64_t group[] = {2};
    const uint32_t rank = byi_o_rank(o, a->q);
    const bool shared = rank == 5;

    if (a->scale == 0.0 && byi_o_ok(o) &&
        BYI_IS_SYMBOL(byi_o_dim(o, a->q, rank - 1)))
        byi_o_refuse(o, "heads whose size varies");
    if (!byi_o_ok(o))
        return BYI_NO_ID;
    const byi_id k = shared ? byi_o_expand(o, a->k, 1, group) : a->k;
    const byi_id v = shared ? byi_o_expand(o, a->v, 1, group) : a->v;
    const byi_id x = scores(o, a, k);
    byi_id y =
        byi_o_binary(o, BYI_OP_NN_MATMUL,
                     byi_o_emit(o, BYI_OP_NN_SOFTMAX, ARGS(x), NO_ATTRS), v);
    if (a->sink != BYI_NO_ID)
        y = byi_o_binary(o, BYI_OP_MULTIPLY, y, beside_sink(o, x, a->sink));
    return byi_o_cast(o, join_heads(o, y), a->dtype);
}

/* The attributes that all kinds have. */
static struct attention read_attention(struct byi_import *o)
{
    struct attention a = {.heads = byi_o_int(o, "num_heads", 0),
                          .bias = BYI_NO_ID,
                          .own = BYI_NO_ID,
                          .mask = BYI_NO_ID,
                          .sink = BYI_NO_ID,
                          .filter = byi_o_float(o, "mask_filter_value", -10000),
                          .scale = byi_o_float(o, "scale", 0),
                          .causal = byi_o_int(o, "unidirectional", 0) != 0};

    if (a.heads < 1 || a.heads > BYI_MAX_ARGS)
        byi_o_fail(o, BYOC_EPARSE, "num_heads is %lld, expected at least 1",
                   (long long)a.heads);
    return a;
}

/* Keys and values: those of the past, then the node's own. */
static void add_past(struct byi_import *o, struct attention *a, byi_id past_k,
                     byi_id past_v)
{
    a->own = a->k;
    a->k = join(o, past_k, a->k, 2);
    a->v = join(o, past_v, a->v, 2);
}

/* Attention of x, weights (x's width, q + k + v) and their bias; inputs mask
 * and past (2, b, n, t, h); bias of the scores. */
static void attend_to_self(struct byi_import *o, byi_id x, byi_id weights,
                           byi_id mask, byi_id past, byi_id bias)
{
    static const int64_t front[] = {0};
    struct attention a = read_attention(o);
    const int64_t third = byi_o_dim(o, weights, 1) / 3;
    int64_t sizes[3] = {third, third, third};
    uint32_t n = 0;
    const int64_t *given = byi_o_ints(o, "qkv_hidden_sizes", &n);
    byi_id parts[3];

    if (byi_o_int(o, "do_rotary", 0) || byi_o_int(o, "rotary_embedding_dim", 0))
        byi_o_refuse(o, "rotary embeddings");
    if (byi_o_int(o, "past_present_share_buffer", 0))
        byi_o_refuse(o, "past and present in one buffer");
    if (given && n != 3)
        byi_o_fail(o, BYOC_EPARSE,
                   "qkv_hidden_sizes has %u entries, expected 3", n);
    if (byi_o_ok(o) && BYI_IS_SYMBOL(byi_o_dim(o, weights, 1)))
        byi_o_refuse(o, "weights whose width varies");
    if (given && byi_o_ok(o))
        memcpy(sizes, given, sizeof sizes);
    split_last(
        o,
        plus(o, byi_o_binary(o, BYI_OP_NN_MATMUL, x, weights), byi_o_in(o, 2)),
        sizes, parts);
    a.q = split_heads(o, parts[0], a.heads);
    a.k = split_heads(o, parts[1], a.heads);
    a.v = split_heads(o, parts[2], a.heads);
    add_past(o, &a, past == BYI_NO_ID ? past : pick(o, past, 0, 0),
             past == BYI_NO_ID ? past : pick(o, past, 0, 1));
    a.bias = bias;
    if (byi_o_wants(o, 1))
        o->out[1] = join(o, byi_o_expand(o, a.k, 1, front),
                         byi_o_expand(o, a.v, 1, front), 0);
    widen(o, &a);
    a.mask = read_mask(o, &a, mask);
    o->out[0] = attend(o, &a);
}

static void convert_attention(struct byi_import *o)
{
    if (byi_o_in(o, 6) != BYI_NO_ID)
        byi_o_refuse(o, "past and present in one buffer");
    attend_to_self(o, byi_o_in(o, 0), byi_o_in(o, 1), byi_o_in(o, 3),
                   byi_o_in(o, 4), byi_o_in(o, 5));
}

/* Input i, of 8 bits, as float32: scale and zero point are inputs too; these
 * have one number, or one for each column. */
static byi_id dequantized(struct byi_import *o, uint32_t i, uint32_t scale,
                          uint32_t zero)
{
    const enum byoc_dtype dtype = byi_o_dtype(o, byi_o_in(o, i));
    const byi_id given = byi_o_in(o, zero);
    const bool columns = byi_o_rank(o, byi_o_in(o, scale)) == 1 &&
                         byi_o_dim(o, byi_o_in(o, scale), 0) != 1;
    const byi_id factor =
        columns ? byi_o_in(o, scale) : byi_o_as_scalar(o, byi_o_in(o, scale));
    byi_id x = byi_o_cast(o, byi_o_in(o, i), BYOC_F32);

    if (given != BYI_NO_ID) {
        const bool each =
            byi_o_rank(o, given) == 1 && byi_o_dim(o, given, 0) != 1;
        x = byi_o_binary(
            o, BYI_OP_SUBTRACT, x,
            byi_o_cast(o, each ? given : byi_o_as_scalar(o, given), BYOC_F32));
    }
    if (dtype != BYOC_U8 && dtype != BYOC_I8 && byi_o_ok(o))
        byi_o_fail(o, BYOC_ETYPE, "input %u has type %s, expected 8 bits", i,
                   byoc_dtype_name(dtype));
    return byi_o_binary(o, BYI_OP_MULTIPLY, x, factor);
}

/* QAttention: x and weights of 8 bits, bias, scale of x, of the weights, mask,
 * zero point of x, of the weights, past. */
static void convert_quantized_attention(struct byi_import *o)
{
    attend_to_self(o, dequantized(o, 0, 3, 6), dequantized(o, 1, 4, 7),
                   byi_o_in(o, 5), byi_o_in(o, 8), BYI_NO_ID);
}

/* Queries, keys and values with their share of the bias: (b, s, n h) each; or
 * (b, s, n, 3, h) as the query; or (b, s, n, 2, h) as the key; or keys and
 * values as (b, n, t, h). */
static void read_operands(struct byi_import *o, struct attention *a)
{
    const byi_id q = byi_o_in(o, 0), k = byi_o_in(o, 1), v = byi_o_in(o, 2);
    const byi_id bias = byi_o_in(o, 3);
    const uint32_t rank = k == BYI_NO_ID ? 0 : byi_o_rank(o, k);
    byi_id parts[3] = {BYI_NO_ID, BYI_NO_ID, BYI_NO_ID};

    if (bias != BYI_NO_ID && rank != 3)
        byi_o_refuse(o, "a bias of packed operands");
    if (rank == 0 && byi_o_ok(o) && byi_o_rank(o, q) != 5)
        byi_o_fail(o, BYOC_EPARSE, "it has no key, and a query of rank %u",
                   byi_o_rank(o, q));
    if (bias != BYI_NO_ID && byi_o_ok(o)) {
        const int64_t sizes[] = {byi_o_dim(o, q, 2), byi_o_dim(o, k, 2),
                                 byi_o_dim(o, v, 2)};
        split_last(o, bias, sizes, parts);
    }
    if (rank == 0) {
        a->q = swap_heads(o, pick(o, q, 3, 0));
        a->k = swap_heads(o, pick(o, q, 3, 1));
        a->v = swap_heads(o, pick(o, q, 3, 2));
        return;
    }
    a->q = split_heads(o, plus(o, q, parts[0]), a->heads);
    if (rank == 5) {
        a->k = swap_heads(o, pick(o, k, 3, 0));
        a->v = swap_heads(o, pick(o, k, 3, 1));
        return;
    }
    a->k = rank == 4 ? k : split_heads(o, plus(o, k, parts[1]), a->heads);
    a->v = rank == 4 ? v : split_heads(o, plus(o, v, parts[2]), a->heads);
}

/* MultiHeadAttention: query, key, value, bias, mask of keys, bias of the
 * scores, keys and values of the past. */
static void convert_multi_head(struct byi_import *o)
{
    struct attention a = read_attention(o);

    if (byi_o_in(o, 8) != BYI_NO_ID || byi_o_in(o, 9) != BYI_NO_ID)
        byi_o_refuse(o, "past and present in one buffer");
    read_operands(o, &a);
    add_past(o, &a, byi_o_in(o, 6), byi_o_in(o, 7));
    a.bias = byi_o_in(o, 5);
    if (byi_o_wants(o, 1))
        o->out[1] = a.k;
    if (byi_o_wants(o, 2))
        o->out[2] = a.v;
    widen(o, &a);
    a.mask = read_mask(o, &a, byi_o_in(o, 4));
    o->out[0] = attend(o, &a);
}

/* --- rotary embeddings ---------------------------------------------------- */

/* Rows of the table for positions (b, s): (b, s, 1, width), or (b, 1, s, width)
 * where heads come first. */
static byi_id rotations(struct byi_import *o, byi_id table, byi_id at,
                        bool heads_first)
{
    const int64_t heads[] = {heads_first ? 1 : 2};

    return byi_o_expand(
        o,
        byi_o_emit(o, BYI_OP_TAKE, ARGS(table, at), ATTRS(AN_INT("axis", 0))),
        1, heads);
}

/* The positions (b, s); given as one, they are that of the first of s. */
static byi_id positions(struct byi_import *o, byi_id at, byi_id s)
{
    static const int64_t front[] = {0};

    if (byi_o_rank(o, at) >= 2)
        return at;
    at = byi_o_binary(o, BYI_OP_ADD, count(o, byi_o_scalar(o, BYOC_I64, 0), s),
                      byi_o_as_scalar(o, at));
    return byi_o_expand(o, at, 1, front);
}

/* The last axis split in two: halves, or elements in turn, as (..., 1) each. */
static void split_pairs(struct byi_import *o, byi_id x, int64_t width,
                        bool in_turn, byi_id pair[2])
{
    const int64_t halves[] = {width / 2, width / 2}, ones[] = {1, 1};
    const int64_t shape[] = {0, 0, 0, width / 2, 2};

    if (in_turn)
        x = byi_o_reshape(o, x, byi_o_vector(o, 5, shape), false);
    const byi_id tuple =
        byi_o_emit(o, BYI_OP_SPLIT, ARGS(x),
                   ATTRS(SOME_INTS("sizes", 2, in_turn ? ones : halves),
                         AN_INT("axis", in_turn ? 4 : 3)));
    for (uint32_t i = 0; i < 2; i++)
        pair[i] = byi_o_get(o, tuple, i);
}

/* Each pair (a, b) of x turned by its angle: (a cos - b sin, a sin + b cos). */
static byi_id turn_pairs(struct byi_import *o, byi_id x, const byi_id tables[2],
                         int64_t width, bool in_turn)
{
    static const int64_t last[] = {4};
    const int64_t shape[] = {0, 0, 0, width};
    byi_id pair[2], turned[2], by[2] = {tables[0], tables[1]};

    split_pairs(o, x, width, in_turn, pair);
    for (uint32_t i = 0; i < 2 && in_turn; i++)
        by[i] = byi_o_expand(o, by[i], 1, last);
    for (uint32_t i = 0; i < 2; i++)
        turned[i] =
            byi_o_binary(o, i ? BYI_OP_ADD : BYI_OP_SUBTRACT,
                         byi_o_binary(o, BYI_OP_MULTIPLY, pair[0], by[i]),
                         byi_o_binary(o, BYI_OP_MULTIPLY, pair[1], by[!i]));
    const byi_id y = join(o, turned[0], turned[1], in_turn ? 4 : 3);
    return in_turn ? byi_o_reshape(o, y, byi_o_vector(o, 4, shape), false) : y;
}

/* x, whose last axis is a head of which `width` elements turn: tables hold the
 * cosines and sines for each position. The rest of the head stays. */
static byi_id rotate(struct byi_import *o, byi_id x, const byi_id tables[2],
                     bool in_turn)
{
    const int64_t head = byi_o_dim(o, x, 3);
    const int64_t width = 2 * byi_o_dim(o, tables[0], 3);
    const int64_t sizes[] = {width, head - width};

    if (head == width)
        return turn_pairs(o, x, tables, width, in_turn);
    const byi_id parts =
        byi_o_emit(o, BYI_OP_SPLIT, ARGS(x),
                   ATTRS(SOME_INTS("sizes", 2, sizes), AN_INT("axis", 3)));
    return join(o,
                turn_pairs(o, byi_o_get(o, parts, 0), tables, width, in_turn),
                byi_o_get(o, parts, 1), 3);
}

/* RotaryEmbedding: x (b, s, n h) or (b, n, s, h), positions (1) or (b, s),
 * tables of cosines and sines (positions, width / 2). What of a head is beyond
 * the width stays. */
static void convert_rotary(struct byi_import *o)
{
    const bool heads_first = byi_o_rank(o, byi_o_in(o, 0)) == 4;
    const bool in_turn = byi_o_int(o, "interleaved", 0) != 0;
    const int64_t part = byi_o_int(o, "rotary_embedding_dim", 0);
    const int64_t heads = byi_o_int(o, "num_heads", 0);
    const int64_t width = 2 * byi_o_dim(o, byi_o_in(o, 2), 1);
    const int64_t hidden = byi_o_dim(o, byi_o_in(o, 0), heads_first ? 3 : 2);
    const int64_t head = heads_first             ? hidden
                         : part > 0 && heads > 0 ? hidden / heads
                                                 : width;
    byi_id x = byi_o_in(o, 0);

    byi_o_float(o, "scale", 1.0);
    if (byi_o_int(o, "is_packed_batching", 0))
        byi_o_refuse(o, "packed batches");
    if (byi_o_ok(o) && (width < 2 || hidden < 1 || head < width ||
                        hidden % head || (part > 0 && part != width) ||
                        (!heads_first && byi_o_rank(o, x) != 3)))
        byi_o_fail(o, BYOC_ETYPE,
                   "x of rank %u and width %lld has no heads of %lld, or more, "
                   "that tables of %lld turn",
                   byi_o_rank(o, x), (long long)hidden, (long long)head,
                   (long long)(width / 2));
    if (!byi_o_ok(o))
        return;
    if (!heads_first) {
        const int64_t shape[] = {0, 0, hidden / head, head};
        x = byi_o_reshape(o, x, byi_o_vector(o, 4, shape), false);
    }
    const byi_id at =
        positions(o, byi_o_in(o, 1), length(o, x, heads_first ? 2 : 1));
    const byi_id tables[] = {rotations(o, byi_o_in(o, 2), at, heads_first),
                             rotations(o, byi_o_in(o, 3), at, heads_first)};
    o->out[0] = byi_o_reshape(o, rotate(o, x, tables, in_turn),
                              byi_o_shape_of(o, byi_o_in(o, 0)), false);
}

/* --- heads of queries that share those of keys ---------------------------- */

/* GroupQueryAttention's inputs. */
enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LAST_KEY, /* (b): the last key of each sequence */
    ALL_KEYS, /* of the longest sequence            */
    COSINES,
    SINES,
    POSITIONS,
    BIAS,
    SINK,
    KEY_SCALE,
    VALUE_SCALE,
    QUERY_NORM,
    KEY_NORM
};

struct grouped {
    struct attention a;
    int64_t kv_heads;
    byi_id past;  /* (b): keys of each sequence that are there already */
    byi_id rows;  /* (b, s): which key each query stands at            */
    byi_id all;   /* keys of the longest sequence, a scalar            */
    byi_id moves; /* (b, kv_heads, t, 1): see cache_moves              */
};

static void refuse_of_grouped(struct byi_import *o)
{
    if (byi_o_int(o, "sliding_window_cache", 0))
        byi_o_refuse(o, "a cache that keeps only the window");
    if (byi_o_int(o, "qk_output", 0) || byi_o_wants(o, 3))
        byi_o_refuse(o, "the scores as an output");
    if (byi_o_in(o, KEY_SCALE) != BYI_NO_ID ||
        byi_o_in(o, VALUE_SCALE) != BYI_NO_ID ||
        strcmp(byi_o_string(o, "k_quant_type", "NONE"), "NONE") != 0 ||
        strcmp(byi_o_string(o, "v_quant_type", "NONE"), "NONE") != 0 ||
        byi_o_int(o, "kv_cache_bit_width", 0))
        byi_o_refuse(o, "a quantised cache");
    if (byi_o_in(o, QUERY_NORM) != BYI_NO_ID ||
        byi_o_in(o, KEY_NORM) != BYI_NO_ID)
        byi_o_refuse(o, "normalised queries and keys");
    byi_o_float(o, "qk_norm_epsilon", 0);
    if (byi_o_in(o, LAST_KEY) == BYI_NO_ID ||
        byi_o_in(o, ALL_KEYS) == BYI_NO_ID)
        byi_o_fail(o, BYOC_EPARSE,
                   "it has no seqlens_k and total_sequence_length");
    if ((byi_o_in(o, PAST_KEY) == BYI_NO_ID) !=
        (byi_o_in(o, PAST_VALUE) == BYI_NO_ID))
        byi_o_fail(o, BYOC_EPARSE,
                   "it has one of past_key and past_value, expected both or "
                   "neither");
    if ((byi_o_in(o, KEY) == BYI_NO_ID) != (byi_o_in(o, VALUE) == BYI_NO_ID))
        byi_o_fail(o, BYOC_EPARSE,
                   "it has one of key and value, expected both or neither");
}

/* Queries, keys and values, (b, s, heads, h): three inputs, or one that holds
 * all of them. */
static void read_grouped(struct byi_import *o, struct grouped *g)
{
    struct attention *a = &g->a;
    const int64_t heads = a->heads + 2 * g->kv_heads;
    const int64_t width = byi_o_dim(o, byi_o_in(o, QUERY), 2);
    byi_id parts[] = {byi_o_in(o, QUERY), byi_o_in(o, KEY), byi_o_in(o, VALUE)};

    if (parts[1] == BYI_NO_ID && byi_o_ok(o)) {
        const int64_t h = width / heads;
        const int64_t sizes[] = {a->heads * h, g->kv_heads * h,
                                 g->kv_heads * h};
        if (BYI_IS_SYMBOL(width) || width % heads)
            byi_o_fail(o, BYOC_ETYPE,
                       "a query of width %lld does not hold %lld heads of "
                       "queries, keys and values",
                       (long long)width, (long long)heads);
        else
            split_last(o, parts[0], sizes, parts);
    }
    a->q = show_heads(o, parts[0], a->heads);
    a->k = show_heads(o, parts[1], g->kv_heads);
    a->v = show_heads(o, parts[2], g->kv_heads);
}

/* How far each sequence is. The keys that come now are the last ones of it;
 * where there are fewer, as at the end of a shorter prompt, it begins here. */
static void read_lengths(struct byi_import *o, struct grouped *g)
{
    static const int64_t column[] = {1};
    const byi_id zero = byi_o_scalar(o, BYOC_I64, 0);
    const byi_id last = byi_o_cast(o, byi_o_in(o, LAST_KEY), BYOC_I64);
    const byi_id one = byi_o_scalar(o, BYOC_I64, 1);

    g->past = byi_o_binary(o, BYI_OP_MAXIMUM,
                           byi_o_binary(o, BYI_OP_SUBTRACT,
                                        byi_o_binary(o, BYI_OP_ADD, last, one),
                                        length(o, g->a.k, 1)),
                           zero);
    g->rows = byi_o_binary(o, BYI_OP_ADD, byi_o_expand(o, g->past, 1, column),
                           count(o, zero, length(o, g->a.q, 1)));
    g->all = byi_o_as_scalar(o, byi_o_cast(o, byi_o_in(o, ALL_KEYS), BYOC_I64));
}

static void rotate_grouped(struct byi_import *o, struct grouped *g)
{
    const bool in_turn = byi_o_int(o, "rotary_interleaved", 0) != 0;
    const bool given = byi_o_in(o, POSITIONS) != BYI_NO_ID;
    byi_id tables[] = {byi_o_in(o, COSINES), byi_o_in(o, SINES)};

    if (!byi_o_int(o, "do_rotary", 0) || !byi_o_ok(o))
        return;
    for (uint32_t i = 0; i < 2; i++)
        if (tables[i] == BYI_NO_ID || byi_o_rank(o, tables[i]) != 2) {
            byi_o_fail(o, BYOC_EPARSE,
                       "do_rotary is 1, but there is no table of %s of rank 2",
                       i ? "sines" : "cosines");
            return;
        }
    const int64_t head = byi_o_dim(o, g->a.q, 3);
    const int64_t width = 2 * byi_o_dim(o, tables[0], 1);
    if (BYI_IS_SYMBOL(head) || width < 2 || head < width) {
        byi_o_fail(o, BYOC_ETYPE,
                   "heads of %lld elements are not turned by tables of %lld",
                   (long long)head, (long long)(width / 2));
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        tables[i] = rotations(o, tables[i],
                              given ? byi_o_in(o, POSITIONS) : g->rows, false);
    g->a.q = rotate(o, g->a.q, tables, in_turn);
    g->a.k = rotate(o, g->a.k, tables, in_turn);
}

/* Which row of a sequence's old keys, new keys, and one of zeros becomes each
 * row of its cache: old ones, then new ones, then nothing. A cache is as long
 * as it was where there is room in it. */
static byi_id cache_moves(struct byi_import *o, const struct grouped *g)
{
    static const int64_t column[] = {1}, outer[] = {1, 3};
    const byi_id zero = byi_o_scalar(o, BYOC_I64, 0);
    const byi_id old = length(o, byi_o_in(o, PAST_KEY), 2);
    const byi_id new = length(o, g->a.k, 2);
    const byi_id at =
        count(o, zero, byi_o_binary(o, BYI_OP_MAXIMUM, old, g->all));
    const byi_id behind = byi_o_binary(o, BYI_OP_SUBTRACT, at,
                                       byi_o_expand(o, g->past, 1, column));
    const int64_t heads[] = {1, g->kv_heads, 1, 1};
    const byi_id fresh =
        byi_o_emit(o, BYI_OP_WHERE,
                   ARGS(byi_o_binary(o, BYI_OP_LESS, behind, new),
                        byi_o_binary(o, BYI_OP_ADD, behind, old),
                        byi_o_binary(o, BYI_OP_ADD, old, new)),
                   NO_ATTRS);
    const byi_id rows = byi_o_emit(
        o, BYI_OP_WHERE,
        ARGS(byi_o_binary(o, BYI_OP_LESS, behind, zero), at, fresh), NO_ATTRS);

    return byi_o_emit(
        o, BYI_OP_BROADCAST_TO,
        ARGS(byi_o_expand(o, rows, 2, outer), byi_o_vector(o, 4, heads)),
        NO_ATTRS);
}

/* The cache (b, kv_heads, t, h) after this run. */
static byi_id cached(struct byi_import *o, const struct grouped *g, byi_id old,
                     byi_id new)
{
    static const int64_t one_row[] = {0, 0, 0, 0, 0, 0, 1, 0};
    const byi_id ended =
        byi_o_emit(o, BYI_OP_NN_PAD,
                   ARGS(new, byi_o_vector(o, 8, one_row),
                        byi_o_scalar(o, byi_o_dtype(o, new), 0)),
                   NO_ATTRS);

    return byi_o_emit(o, BYI_OP_GATHER_ND,
                      ARGS(join(o, old, ended, 2), g->moves),
                      ATTRS(AN_INT("batch_dims", 2)));
}

/* The rows of a cache that any sequence has filled. */
static byi_id filled(struct byi_import *o, const struct grouped *g,
                     byi_id cache)
{
    static const int64_t zero[] = {0}, one[] = {1}, axis[] = {2};

    return byi_o_emit(o, BYI_OP_STRIDED_SLICE,
                      ARGS(cache, byi_o_vector(o, 1, zero),
                           byi_o_expand(o, g->all, 1, zero),
                           byi_o_vector(o, 1, axis), byi_o_vector(o, 1, one)),
                      NO_ATTRS);
}

/* Keys and values go to the cache and come from it. */
static void cache_grouped(struct byi_import *o, struct grouped *g)
{
    struct attention *a = &g->a;

    a->k = swap_heads(o, a->k);
    a->v = swap_heads(o, a->v);
    if (byi_o_in(o, PAST_KEY) != BYI_NO_ID && byi_o_ok(o)) {
        g->moves = cache_moves(o, g);
        a->k = cached(o, g, byi_o_in(o, PAST_KEY), a->k);
        a->v = cached(o, g, byi_o_in(o, PAST_VALUE), a->v);
    }
    if (byi_o_wants(o, 1))
        o->out[1] = a->k;
    if (byi_o_wants(o, 2))
        o->out[2] = a->v;
    if (g->moves != BYI_NO_ID) {
        a->k = filled(o, g, a->k);
        a->v = filled(o, g, a->v);
    }
}

/* The keys that each query looks at: up to its own and its sequence's last,
 * and no more than a window of them. */
static byi_id grouped_mask(struct byi_import *o, const struct grouped *g)
{
    static const int64_t columns[] = {1, 2}, last[] = {2};
    const int64_t heads[] = {1, 2};
    const int64_t window = byi_o_int(o, "local_window_size", -1);
    const bool causal = byi_o_int(o, "causal", 1) != 0;
    const byi_id keys =
        count(o, byi_o_scalar(o, BYOC_I64, 0), length(o, g->a.k, 2));
    const byi_id rows = byi_o_expand(o, g->rows, 1, last);
    byi_id end = byi_o_expand(o, byi_o_cast(o, byi_o_in(o, LAST_KEY), BYOC_I64),
                              2, columns);

    if (window == 0 || window < -1 || (window > 0 && !causal))
        byi_o_fail(o, BYOC_EPARSE,
                   "local_window_size is %lld%s, expected -1 or, with causal, "
                   "at least 1",
                   (long long)window, causal ? "" : " without causal");
    if (causal)
        end = byi_o_binary(o, BYI_OP_MINIMUM, rows, end);
    byi_id allowed = byi_o_binary(o, BYI_OP_LESS_EQUAL, keys, end);
    if (window > 0) {
        const byi_id width = byi_o_scalar(o, BYOC_I64, (double)window);
        allowed = byi_o_binary(
            o, BYI_OP_LOGICAL_AND, allowed,
            byi_o_binary(o, BYI_OP_GREATER, keys,
                         byi_o_binary(o, BYI_OP_SUBTRACT, end, width)));
    }
    return term(o, &g->a, allowed, lowest(o, &g->a),
                byi_o_rank(o, g->a.q) == 5 ? 2 : 1, heads);
}

/* x's heads, on axis `axis`, as groups of those that share keys. */
static byi_id group_heads(struct byi_import *o, const struct grouped *g,
                          byi_id x, uint32_t axis)
{
    const uint32_t rank = byi_o_rank(o, x);
    int64_t shape[BYI_MAX_RANK] = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank; i++, n++)
        if (i == axis) {
            shape[n++] = g->kv_heads;
            shape[n] = g->a.heads / g->kv_heads;
        } else if (i > axis) {
            const int64_t dim = byi_o_dim(o, x, i);
            shape[n] = BYI_IS_SYMBOL(dim) ? -1 : dim;
        }
    return byi_o_reshape(o, x, byi_o_vector(o, n, shape), false);
}

/* The bias of the scores (b, n, s, t): one head or all of them, and sizes that
 * vary among the others, so that heads come last while they are split. */
static byi_id grouped_bias(struct byi_import *o, const struct grouped *g)
{
    static const int64_t heads_last[] = {0, 2, 3, 1};
    static const int64_t back[] = {0, 3, 4, 1, 2}, one[] = {2};
    const byi_id bias = byi_o_in(o, BIAS);

    if (bias == BYI_NO_ID || byi_o_rank(o, g->a.q) == 4)
        return bias;
    if (byi_o_dim(o, bias, 1) == 1)
        return byi_o_expand(o, bias, 1, one);
    return byi_o_emit(
        o, BYI_OP_TRANSPOSE,
        ARGS(group_heads(o, g,
                         byi_o_emit(o, BYI_OP_TRANSPOSE, ARGS(bias),
                                    ATTRS(SOME_INTS("axes", 4, heads_last))),
                         3)),
        ATTRS(SOME_INTS("axes", 5, back)));
}

/* The sink's scores, one for each head: given, or 0 with smooth_softmax. */
static byi_id grouped_sink(struct byi_import *o, const struct grouped *g)
{
    static const int64_t columns[] = {1, 2}, deeper[] = {2, 3};
    const bool smooth = byi_o_int(o, "smooth_softmax", 0) > 0;
    const byi_id sink = byi_o_in(o, SINK);

    if (sink == BYI_NO_ID)
        return smooth ? byi_o_scalar(o, byi_o_dtype(o, g->a.q), 0) : BYI_NO_ID;
    return byi_o_rank(o, g->a.q) == 4
               ? byi_o_expand(o, sink, 2, columns)
               : byi_o_expand(o, group_heads(o, g, sink, 0), 2, deeper);
}

/* (b, s, n, h) -> (b, n, s, h), or (b, n / g, g, s, h) */
static byi_id grouped_queries(struct byi_import *o, const struct grouped *g)
{
    static const int64_t axes[] = {0, 2, 3, 1, 4};

    if (g->kv_heads == g->a.heads)
        return swap_heads(o, g->a.q);
    return byi_o_emit(o, BYI_OP_TRANSPOSE, ARGS(group_heads(o, g, g->a.q, 2)),
                      ATTRS(SOME_INTS("axes", 5, axes)));
}

/* GroupQueryAttention: attention with a cache of keys and values, of which
 * several heads of queries share one. */
static void convert_grouped(struct byi_import *o)
{
    struct grouped g = {.a = read_attention(o),
                        .kv_heads = byi_o_int(o, "kv_num_heads", 0),
                        .moves = BYI_NO_ID};

    g.a.softcap = byi_o_float(o, "softcap", 0);
    refuse_of_grouped(o);
    if (byi_o_ok(o) && (g.kv_heads < 1 || g.a.heads % g.kv_heads))
        byi_o_fail(o, BYOC_EPARSE,
                   "%lld heads of queries do not share %lld of keys",
                   (long long)g.a.heads, (long long)g.kv_heads);
    if (!byi_o_ok(o))
        return;
    read_grouped(o, &g);
    read_lengths(o, &g);
    rotate_grouped(o, &g);
    cache_grouped(o, &g);
    g.a.q = grouped_queries(o, &g);
    g.a.bias = grouped_bias(o, &g);
    g.a.sink = grouped_sink(o, &g);
    widen(o, &g.a);
    g.a.mask = grouped_mask(o, &g);
    o->out[0] = attend(o, &g.a);
}
/* clang-format off */
static const struct byi_onnx_op rows[] = {
    {"Attention", 1, 2, 7, convert_attention, BYI_OP_NONE},
    {"GroupQueryAttention", 1, 1, 16, convert_grouped, BYI_OP_NONE},
    {"MultiHeadAttention", 1, 1, 10, convert_multi_head, BYI_OP_NONE},
    {"QAttention", 1, 5, 9, convert_quantized_attention, BYI_OP_NONE},
    {"RotaryEmbedding", 1, 4, 4, convert_rotary, BYI_OP_NONE},
};
/* clang-format on */

const struct byi_onnx_table byi_microsoft_attention = {BYI_MICROSOFT, rows,
                                                       BYI_COUNT(rows)};
