/* SPDX-License-Identifier: Apache-2.0 */
/* ops_attention.c: converts attention operators of ai.onnx and com.microsoft to
 * matrix products, sums and softmax (ops_flex.c has FlexAttention). With b
 * sequences, n heads, s queries, t keys, h elements of a head:
 *
 *   scores = nn.matmul(q, k, transpose_b=true) scale + bias + mask
 *   result = nn.matmul(nn.softmax(scores), v)
 *
 * Scores are (b, n, s, t), results (b, n, s, h). In grouped-query attention g
 * query heads share a key head: both are (b, n / g, g, s, ...), and keys
 * broadcast over g.
 *
 * Masks are additive: 0 where a query attends to a key, and elsewhere
 * mask_filter_value, or in the causal mask the lowest float; in ai.onnx's
 * Attention always -infinity.
 */
#include "frontend_onnx/attention.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- heads ---------------------------------------------------------------- */

byi_id byi_transpose_heads(struct byi_import *o, byi_id x)
{
    return byi_import_template(
        o, "fn (%x) { transpose(%x, axes=[0, 2, 1, 3]) }", ARGS(x), NO_ATTRS);
}

byi_id byi_unflatten_heads(struct byi_import *o, byi_id x, int64_t heads)
{
    const int64_t width = byi_import_dim(o, x, 2);
    const bool known = !BYI_IS_SYMBOL(width);

    if (byi_import_ok(o) && byi_import_rank(o, x) != 3)
        byi_import_fail(o, BYOC_ETYPE,
                        "found queries, keys or values of rank %u, expected 3",
                        byi_import_rank(o, x));
    if (byi_import_ok(o) && known && width % heads)
        byi_import_fail(o, BYOC_ETYPE,
                        "found queries, keys or values of width %lld, expected "
                        "a multiple of %lld, the number of heads",
                        (long long)width, (long long)heads);
    return byi_import_reshape_to(o, x,
                                 INTS(0, 0, heads, known ? width / heads : -1));
}

/* Emit x (b, s, n h) as (b, n, s, h). */
static byi_id split_heads(struct byi_import *o, byi_id x, int64_t heads)
{
    return byi_transpose_heads(o, byi_unflatten_heads(o, x, heads));
}

/* Emit x (b, n, s, h) or (b, n / g, g, s, h) as (b, s, n h). */
static byi_id join_heads(struct byi_import *o, byi_id x)
{
    const bool grouped = byi_import_rank(o, x) == 5;
    int64_t width = 1;

    x = grouped ? byi_import_template(
                      o, "fn (%x) { transpose(%x, axes=[0, 3, 1, 2, 4]) }",
                      ARGS(x), NO_ATTRS)
                : byi_transpose_heads(o, x);
    for (uint32_t i = 2; i < byi_import_rank(o, x) && width > 0; i++)
        width = BYI_IS_SYMBOL(byi_import_dim(o, x, i))
                    ? -1
                    : width * byi_import_dim(o, x, i);
    return byi_import_reshape_to(o, x, INTS(0, 0, width));
}

byi_id byi_group_heads(struct byi_import *o, const struct byi_attention *a,
                       byi_id x, uint32_t axis)
{
    const uint32_t rank = byi_import_rank(o, x);
    int64_t shape[BYI_MAX_RANK] = {0};
    bool has_symbol = false; /* a reshape may have one -1 */
    uint32_t n = 0;

    for (uint32_t i = 0; i < rank; i++, n++)
        if (i == axis) {
            shape[n++] = a->kv_heads;
            shape[n] = a->heads / a->kv_heads;
        } else if (i > axis) {
            const int64_t dim = has_symbol
                                    ? byi_import_known_dim(o, x, i, "heads")
                                    : byi_import_dim(o, x, i);
            shape[n] = BYI_IS_SYMBOL(dim) ? -1 : dim;
            has_symbol |= BYI_IS_SYMBOL(dim);
        }
    return byi_import_reshape_to(o, x, n, shape);
}

/* Other dims may be symbolic, so heads move to the last axis while they are
 * split. A symbolic axis of heads may be 1 at run time, so it is broadcast. */
byi_id byi_group_scores(struct byi_import *o, const struct byi_attention *a,
                        byi_id x)
{

    if (x == BYI_NO_ID || byi_import_rank(o, a->q) == 4)
        return x;
    if (byi_import_dim(o, x, 1) == 1)
        return byi_import_add_axes(o, x, 2, 1);
    if (BYI_IS_SYMBOL(byi_import_dim(o, x, 1)))
        x = byi_import_call(o, BYI_OP_BROADCAST_TO, x,
                            byi_import_vector(o, INTS(1, a->heads, 1, 1)));
    x = byi_import_template(o, "fn (%x) { transpose(%x, axes=[0, 2, 3, 1]) }",
                            ARGS(x), NO_ATTRS);
    return byi_import_template(
        o, "fn (%x) { transpose(%x, axes=[0, 3, 4, 1, 2]) }",
        ARGS(byi_group_heads(o, a, x, 3)), NO_ATTRS);
}

byi_id byi_join_groups(struct byi_import *o, const struct byi_attention *a,
                       byi_id x)
{
    static const char text[] =
        "fn (%x) {"
        "  %heads_last = transpose(%x, axes=[0, 3, 4, 1, 2]);"
        "  transpose(reshape(%heads_last, [0, 0, 0, heads]),"
        "            axes=[0, 3, 1, 2])"
        "}";

    return byi_import_rank(o, x) != 5
               ? x
               : byi_import_template(o, text, ARGS(x),
                                     ATTRS(AN_INT("heads", a->heads)));
}

/* Take x at `index` of the axis, which is removed. */
static byi_id take_index(struct byi_import *o, byi_id x, int64_t axis,
                         double index)
{
    return byi_import_take(o, x, byi_import_scalar(o, BYOC_I64, index), axis);
}

void byi_split_qkv(struct byi_import *o, byi_id x, const int64_t sizes[3],
                   byi_id parts[3])
{
    const byi_id tuple = byi_import_emit(
        o, BYI_OP_SPLIT, ARGS(x),
        ATTRS(SOME_INTS("sizes", 3, sizes),
              AN_INT("axis", (int64_t)byi_import_rank(o, x) - 1)));

    for (uint32_t i = 0; i < 3; i++)
        parts[i] = byi_import_get(o, tuple, i);
}

/* --- masks ---------------------------------------------------------------- */

byi_id byi_attention_mask(struct byi_import *o, const struct byi_attention *a,
                          byi_id allowed, double filter, uint32_t first,
                          uint32_t n)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, a->q);

    return byi_import_add_axes(
        o,
        byi_import_call(o, BYI_OP_WHERE, allowed,
                        byi_import_scalar(o, dtype, 0),
                        byi_import_scalar(o, dtype, filter)),
        first, n);
}

/* Emit the additive mask that allows keys start[b] .. end[b] - 1 for sequence
 * b; without a start, from key 0. */
static byi_id range_mask(struct byi_import *o, const struct byi_attention *a,
                         byi_id start, byi_id end)
{
    static const char before[] =
        "fn (%keys, %end) { less(%keys, expand_dims(%end, axis=[1])) }";
    static const char between[] =
        "fn (%keys, %end, %start) {"
        "  logical_and(less(%keys, expand_dims(%end, axis=[1])),"
        "              greater_equal(%keys, expand_dims(%start, axis=[1])))"
        "}";
    const byi_id n = byi_import_length(o, a->k, 2);
    const byi_id keys = byi_import_cast(o, byi_import_arange(o, BYI_NO_ID, n),
                                        byi_import_dtype(o, end));
    const byi_id allowed =
        start == BYI_NO_ID
            ? byi_import_template(o, before, ARGS(keys, end), NO_ATTRS)
            : byi_import_template(o, between, ARGS(keys, end, start), NO_ATTRS);

    return byi_attention_mask(o, a, allowed, a->filter, 1,
                              byi_import_rank(o, a->q) - 2);
}

/* Emit the additive mask for a mask of rank 1: (b) ends, or (2 b) ends, then
 * starts. */
static byi_id index_mask(struct byi_import *o, const struct byi_attention *a,
                         byi_id mask)
{
    const int64_t n = byi_import_dim(o, mask, 0),
                  batch = byi_import_dim(o, a->q, 0);
    const int64_t halves[] = {batch, batch};

    if (n == batch)
        return range_mask(o, a, BYI_NO_ID, mask);
    if (BYI_IS_SYMBOL(n) || BYI_IS_SYMBOL(batch)) {
        byi_import_refuse(
            o, "found a mask of rank 1 and a batch, one of symbolic size, "
               "expected known sizes; fix them with --dim or --shape");
        return BYI_NO_ID;
    }
    if (n != 2 * batch) {
        byi_import_refuse(o,
                          "found a mask of %lld elements for %lld sequences, "
                          "expected one or two for each",
                          (long long)n, (long long)batch);
        return BYI_NO_ID;
    }
    const byi_id ends_and_starts = byi_import_emit(
        o, BYI_OP_SPLIT, ARGS(mask), ATTRS(SOME_INTS("sizes", 2, halves)));
    const byi_id end = byi_import_get(o, ends_and_starts, 0);
    return range_mask(o, a, byi_import_get(o, ends_and_starts, 1), end);
}

/* Emit the additive mask for the node's input: (b), (2 b), (b, t) or
 * (b, s, t). */
static byi_id read_mask(struct byi_import *o, const struct byi_attention *a,
                        byi_id mask)
{
    const uint32_t rank = byi_import_rank(o, mask);

    if (mask == BYI_NO_ID)
        return BYI_NO_ID;
    if (rank == 1)
        return index_mask(o, a, mask);
    if (rank != 2 && rank != 3) {
        byi_import_refuse(o, "found a mask of rank %u, expected 1, 2 or 3",
                          rank);
        return BYI_NO_ID;
    }
    const byi_id zero = byi_import_scalar(o, byi_import_dtype(o, mask), 0);
    return byi_attention_mask(o, a,
                              byi_import_call(o, BYI_OP_GREATER, mask, zero),
                              a->filter, 1, 4 - rank);
}

double byi_attention_lowest(struct byi_import *o, const struct byi_attention *a)
{
    if (a->standard)
        return -INFINITY;
    return byi_import_dtype(o, a->q) == BYOC_F64 ? -DBL_MAX : -(double)FLT_MAX;
}

/* Emit the mask with which query i attends to the past keys and to the new keys
 * 0 .. i. */
static byi_id causal_mask(struct byi_import *o, const struct byi_attention *a)
{
    const byi_id n_keys = byi_import_length(o, a->k, 2);
    const byi_id past = byi_import_call(o, BYI_OP_SUBTRACT, n_keys,
                                        byi_import_length(o, a->new_k, 2));
    const byi_id end = byi_import_call(
        o, BYI_OP_ADD, past,
        byi_import_length(o, a->q, (int64_t)byi_import_rank(o, a->q) - 2));
    const byi_id rows =
        byi_import_add_axes(o, byi_import_arange(o, past, end), 1, 1);
    const byi_id keys = byi_import_arange(o, BYI_NO_ID, n_keys);

    return byi_attention_mask(o, a,
                              byi_import_call(o, BYI_OP_LESS_EQUAL, keys, rows),
                              byi_attention_lowest(o, a), 0, 2);
}

/* --- attention ------------------------------------------------------------ */

static byi_id add_optional(struct byi_import *o, byi_id x, byi_id y)
{
    return y == BYI_NO_ID ? x : byi_import_call(o, BYI_OP_ADD, x, y);
}

/* Emit softcap tanh(x scale / softcap), or x scale if the softcap is 0. */
static byi_id emit_softcap(struct byi_import *o, byi_id x, double scale,
                           double softcap)
{
    if (softcap == 0.0)
        return byi_import_scale(o, x, scale);
    return byi_import_scale(
        o,
        byi_import_call(o, BYI_OP_TANH,
                        byi_import_scale(o, x, scale / softcap)),
        softcap);
}

/* Emit the sum of bias, mask and causal mask, to be added to the scores.
 * Returns BYI_NO_ID if there are none. */
static byi_id sum_masks(struct byi_import *o, const struct byi_attention *a)
{
    byi_id total = a->bias;

    if (a->mask != BYI_NO_ID)
        total = total == BYI_NO_ID ? a->mask : add_optional(o, a->mask, total);
    if (!a->causal)
        return total;
    const byi_id causal = causal_mask(o, a);
    return total == BYI_NO_ID ? causal : add_optional(o, total, causal);
}

/* Emit x where the query may attend to at least one key, otherwise 0. */
static byi_id zero_masked_rows(struct byi_import *o, byi_id x, byi_id masks)
{
    return byi_import_template(
        o,
        "fn (%x, %masks) {"
        "  %most = max(%masks, axis=[-1], keepdims=true);"
        "  where(greater(%most, -inf), %x, 0)"
        "}",
        ARGS(x, masks), NO_ATTRS);
}

/* Emit the scores of queries and keys k plus the masks `total`. Sets stages 0
 * to 2: the scores after scaling, after the soft cap, after the masks. */
static byi_id emit_scores(struct byi_import *o, const struct byi_attention *a,
                          byi_id k, byi_id total, byi_id stages[4])
{
    const int64_t width = byi_import_dim(o, a->q, byi_import_rank(o, a->q) - 1);
    const double scale = a->scale != 0.0 ? a->scale : 1.0 / sqrt((double)width);
    byi_id x = byi_import_emit(o, BYI_OP_NN_MATMUL, ARGS(a->q, k),
                               ATTRS(A_BOOL("transpose_b", true)));

    stages[0] = byi_import_scale(o, x, scale);
    stages[1] = emit_softcap(o, x, scale, a->softcap);
    stages[2] = add_optional(o, stages[1], total);
    return stages[2];
}

void byi_attention_widen(struct byi_import *o, struct byi_attention *a)
{
    byi_id *const operands[] = {&a->q, &a->k, &a->v, &a->bias, &a->sink};

    a->dtype = byi_import_dtype(o, a->q);
    for (uint32_t i = 0; i < BYI_COUNT(operands); i++)
        if (*operands[i] != BYI_NO_ID && byi_dtype_is_half(a->dtype))
            *operands[i] = byi_import_cast(o, *operands[i], BYOC_F32);
}

/* Emit the factor by which a sink, one more term of each row's softmax, scales
 * the rows of x: with S the sum of e^score, S / (S + e^sink) = sigmoid(log S -
 * sink). */
static byi_id sink_factor(struct byi_import *o, byi_id x, byi_id sink)
{
    return byi_import_template(
        o,
        "fn (%x, %sink) {"
        "  %sum = reduce_log_sum_exp(%x, axis=[-1], keepdims=true);"
        "  sigmoid(subtract(%sum, %sink))"
        "}",
        ARGS(x, sink), NO_ATTRS);
}

/* Emit softmax(q k scale + bias + mask) v, with heads as in q. stages: NULL, or
 * receives the scores after scaling, after the soft cap, after bias and mask,
 * and after softmax. */
static byi_id attention_heads(struct byi_import *o,
                              const struct byi_attention *a, byi_id stages[4])
{
    const uint32_t rank = byi_import_rank(o, a->q);
    const bool shared = rank == 5;

    if (a->scale == 0.0 && byi_import_ok(o) &&
        BYI_IS_SYMBOL(byi_import_dim(o, a->q, rank - 1)))
        byi_import_refuse(o, "found heads of symbolic size, expected a known "
                             "size or attribute scale");
    if (!byi_import_ok(o))
        return BYI_NO_ID;
    const byi_id k = shared ? byi_import_add_axes(o, a->k, 2, 1) : a->k;
    const byi_id v = shared ? byi_import_add_axes(o, a->v, 2, 1) : a->v;
    byi_id ignored_stages[4];
    if (!stages)
        stages = ignored_stages;
    const byi_id total = sum_masks(o, a),
                 x = emit_scores(o, a, k, total, stages);
    stages[3] = byi_import_call(o, BYI_OP_NN_SOFTMAX, x);
    byi_id y = byi_import_call(o, BYI_OP_NN_MATMUL, stages[3], v);
    if (a->standard && (a->mask != BYI_NO_ID || a->bias != BYI_NO_ID)) {
        y = zero_masked_rows(o, y, total);
        stages[3] = zero_masked_rows(o, stages[3], total);
    }
    if (a->sink != BYI_NO_ID)
        y = byi_import_call(o, BYI_OP_MULTIPLY, y, sink_factor(o, x, a->sink));
    return byi_import_cast(o, y, a->dtype);
}

byi_id byi_attention_emit(struct byi_import *o, const struct byi_attention *a)
{
    return join_heads(o, attention_heads(o, a, NULL));
}

struct byi_attention byi_attention_read(struct byi_import *o)
{
    struct byi_attention a = {
        .heads = byi_import_int(o, "num_heads", 0),
        .bias = BYI_NO_ID,
        .new_k = BYI_NO_ID,
        .mask = BYI_NO_ID,
        .sink = BYI_NO_ID,
        .filter = byi_import_float(o, "mask_filter_value", -10000),
        .scale = byi_import_float(o, "scale", 0),
        .causal = byi_import_int(o, "unidirectional", 0) != 0};

    if (a.heads < 1 || a.heads > BYI_MAX_ARGS)
        byi_import_fail(o, BYOC_EPARSE, "num_heads is %lld, expected 1 to %d",
                        (long long)a.heads, BYI_MAX_ARGS);
    return a;
}

/* Prepend the past keys and values, if any, to the node's. */
static void add_past(struct byi_import *o, struct byi_attention *a,
                     byi_id past_k, byi_id past_v)
{
    a->new_k = a->k;
    a->k = byi_import_concat(o, past_k, a->k, 2);
    a->v = byi_import_concat(o, past_v, a->v, 2);
}

/* Convert the node with data x and weights (width of x, widths of q + k + v).
 * Input 2 is the bias of that product, `bias` the bias of the scores. `past` is
 * (2, b, n, past keys, h). mask, past and bias may be BYI_NO_ID. */
static void attend_to_self(struct byi_import *o, byi_id x, byi_id weights,
                           byi_id mask, byi_id past, byi_id bias)
{
    struct byi_attention a = byi_attention_read(o);
    const int64_t third = byi_import_known_dim(o, weights, 1, "weights") / 3;
    int64_t sizes[3] = {third, third, third};
    uint32_t n = 0;
    const int64_t *hidden_sizes = byi_import_ints(o, "qkv_hidden_sizes", &n);
    byi_id parts[3];

    if (byi_import_int(o, "do_rotary", 0) ||
        byi_import_int(o, "rotary_embedding_dim", 0))
        byi_import_refuse(o, "found rotary embeddings, expected none");
    if (byi_import_int(o, "past_present_share_buffer", 0))
        byi_import_refuse(o,
                          "found past and present in one buffer, expected two");
    if (hidden_sizes && n != 3)
        byi_import_fail(o, BYOC_EPARSE,
                        "qkv_hidden_sizes has %u entries, expected 3", n);
    if (hidden_sizes && byi_import_ok(o))
        memcpy(sizes, hidden_sizes, sizeof sizes);
    byi_split_qkv(o,
                  add_optional(o,
                               byi_import_call(o, BYI_OP_NN_MATMUL, x, weights),
                               byi_import_in(o, 2)),
                  sizes, parts);
    a.q = split_heads(o, parts[0], a.heads);
    a.k = split_heads(o, parts[1], a.heads);
    a.v = split_heads(o, parts[2], a.heads);
    const byi_id past_v = past == BYI_NO_ID ? past : take_index(o, past, 0, 1);
    add_past(o, &a, past == BYI_NO_ID ? past : take_index(o, past, 0, 0),
             past_v);
    a.bias = bias;
    if (byi_import_wants_output(o, 1)) {
        const byi_id v = byi_import_add_axes(o, a.v, 0, 1);
        o->out[1] =
            byi_import_concat(o, byi_import_add_axes(o, a.k, 0, 1), v, 0);
    }
    byi_attention_widen(o, &a);
    a.mask = read_mask(o, &a, mask);
    o->out[0] = byi_attention_emit(o, &a);
}

static void convert_attention(struct byi_import *o)
{
    if (byi_import_in(o, 6) != BYI_NO_ID)
        byi_import_refuse(o,
                          "found past and present in one buffer, expected two");
    attend_to_self(o, byi_import_in(o, 0), byi_import_in(o, 1),
                   byi_import_in(o, 3), byi_import_in(o, 4),
                   byi_import_in(o, 5));
}

/* Dequantise the 8-bit input i to float32. Inputs `scale` and `zero` hold one
 * number, or one for each column. */
static byi_id dequantize_input(struct byi_import *o, uint32_t i, uint32_t scale,
                               uint32_t zero)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, byi_import_in(o, i));
    const byi_id zero_point = byi_import_in(o, zero);
    const bool columns = byi_import_rank(o, byi_import_in(o, scale)) == 1 &&
                         byi_import_dim(o, byi_import_in(o, scale), 0) != 1;
    const byi_id factor =
        columns ? byi_import_in(o, scale)
                : byi_import_as_scalar(o, byi_import_in(o, scale));
    byi_id x = byi_import_cast(o, byi_import_in(o, i), BYOC_F32);

    if (zero_point != BYI_NO_ID) {
        const bool per_column = byi_import_rank(o, zero_point) == 1 &&
                                byi_import_dim(o, zero_point, 0) != 1;
        x = byi_import_call(
            o, BYI_OP_SUBTRACT, x,
            byi_import_cast(o,
                            per_column ? zero_point
                                       : byi_import_as_scalar(o, zero_point),
                            BYOC_F32));
    }
    if (dtype != BYOC_U8 && dtype != BYOC_I8 && byi_import_ok(o))
        byi_import_fail(o, BYOC_ETYPE,
                        "input %u has type %s, expected uint8 or int8", i,
                        byoc_dtype_name(dtype));
    return byi_import_call(o, BYI_OP_MULTIPLY, x, factor);
}

/* QAttention: x and weights of 8 bits, bias, scale of x, of the weights, mask,
 * zero point of x, of the weights, past. */
static void convert_quantized_attention(struct byi_import *o)
{
    const byi_id weights = dequantize_input(o, 1, 4, 7);
    attend_to_self(o, dequantize_input(o, 0, 3, 6), weights,
                   byi_import_in(o, 5), byi_import_in(o, 8), BYI_NO_ID);
}

/* Read q, k and v and add their parts of the bias. The query is (b, s, n h),
 * key and value are (b, t, n h); or the query packs all three as (b, s, n, 3,
 * h); or the key packs k and v as (b, t, n, 2, h); or k and v are (b, n, t, h).
 */
static void read_operands(struct byi_import *o, struct byi_attention *a)
{
    const byi_id q = byi_import_in(o, 0), k = byi_import_in(o, 1),
                 v = byi_import_in(o, 2);
    const byi_id bias = byi_import_in(o, 3);
    const uint32_t rank = k == BYI_NO_ID ? 0 : byi_import_rank(o, k);
    byi_id parts[3] = {BYI_NO_ID, BYI_NO_ID, BYI_NO_ID};

    if (bias != BYI_NO_ID && rank == 0)
        byi_import_refuse(o, "found a bias and a packed query, expected a "
                             "query, key and value of rank 3");
    else if (bias != BYI_NO_ID && rank != 3)
        byi_import_refuse(
            o, "found a bias and a key of rank %u, expected a key of rank 3",
            rank);
    if (rank == 0 && byi_import_ok(o) && byi_import_rank(o, q) != 5)
        byi_import_fail(o, BYOC_EPARSE,
                        "found no key and a query of rank %u, expected a "
                        "packed query of rank 5",
                        byi_import_rank(o, q));
    if (bias != BYI_NO_ID && byi_import_ok(o)) {
        const int64_t sizes[] = {byi_import_known_dim(o, q, 2, "queries"),
                                 byi_import_known_dim(o, k, 2, "keys"),
                                 byi_import_known_dim(o, v, 2, "values")};
        byi_split_qkv(o, bias, sizes, parts);
    }
    if (rank == 0) {
        a->q = byi_transpose_heads(o, take_index(o, q, 3, 0));
        a->k = byi_transpose_heads(o, take_index(o, q, 3, 1));
        a->v = byi_transpose_heads(o, take_index(o, q, 3, 2));
        return;
    }
    a->q = split_heads(o, add_optional(o, q, parts[0]), a->heads);
    if (rank == 5) {
        a->k = byi_transpose_heads(o, take_index(o, k, 3, 0));
        a->v = byi_transpose_heads(o, take_index(o, k, 3, 1));
        return;
    }
    a->k =
        rank == 4 ? k : split_heads(o, add_optional(o, k, parts[1]), a->heads);
    a->v =
        rank == 4 ? v : split_heads(o, add_optional(o, v, parts[2]), a->heads);
}

/* MultiHeadAttention: query, key, value, bias, mask of keys, bias of the
 * scores, keys and values of the past. */
static void convert_multi_head(struct byi_import *o)
{
    struct byi_attention a = byi_attention_read(o);

    if (byi_import_in(o, 8) != BYI_NO_ID)
        byi_import_refuse(o,
                          "found past and present in one buffer, expected two");
    if (byi_import_in(o, 9) != BYI_NO_ID)
        byi_import_refuse(o, "found input cache_indirection, expected none");
    read_operands(o, &a);
    add_past(o, &a, byi_import_in(o, 6), byi_import_in(o, 7));
    a.bias = byi_import_in(o, 5);
    if (byi_import_wants_output(o, 1))
        o->out[1] = a.k;
    if (byi_import_wants_output(o, 2))
        o->out[2] = a.v;
    byi_attention_widen(o, &a);
    a.mask = read_mask(o, &a, byi_import_in(o, 4));
    o->out[0] = byi_attention_emit(o, &a);
}

/* --- ai.onnx -------------------------------------------------------------- */

/* Returns input i, (b, s, n h) or (b, n, s, h), as (b, n, s, h). *heads is the
 * attribute, and becomes n if the input has its own axis of heads. */
static byi_id standard_operand(struct byi_import *o, uint32_t i, int64_t *heads)
{
    const byi_id x = byi_import_in(o, i);

    if (byi_import_rank(o, x) == 3 && *heads > 0)
        return split_heads(o, x, *heads);
    if (byi_import_ok(o) && byi_import_rank(o, x) != 4)
        byi_import_fail(o, BYOC_ETYPE,
                        "input %u has rank %u, expected 4, or 3 with the "
                        "number of heads as an attribute",
                        i, byi_import_rank(o, x));
    *heads = byi_import_known_dim(o, x, 1, "the axis of heads");
    return x;
}

/* Emit the additive mask (b or 1, n or 1, s, t) of input attn_mask, which
 * broadcasts to these dims, with its heads grouped as in a->q. attn_mask may
 * cover only the first keys; the others are masked. If a number of keys is
 * symbolic, it covers all. */
static byi_id standard_mask(struct byi_import *o, const struct byi_attention *a)
{
    const enum byoc_dtype dtype = byi_import_dtype(o, a->q);
    byi_id mask = byi_import_in(o, 3);
    const uint32_t rank = byi_import_rank(o, mask);
    const int64_t keys = byi_import_dim(o, a->k, 2);
    const int64_t mask_keys = rank ? byi_import_dim(o, mask, rank - 1) : 1;
    int64_t pads[8] = {0};

    if (mask == BYI_NO_ID || !byi_import_ok(o))
        return mask;
    if (rank < 2 || rank > 4) {
        byi_import_fail(o, BYOC_ETYPE, "attn_mask has rank %u, expected 2 to 4",
                        rank);
        return BYI_NO_ID;
    }
    mask = byi_import_dtype(o, mask) == BYOC_BOOL
               ? byi_attention_mask(o, a, mask, a->filter, 0, 4 - rank)
               : byi_import_cast(o, byi_import_add_axes(o, mask, 0, 4 - rank),
                                 dtype);
    if (!BYI_IS_SYMBOL(mask_keys) && !BYI_IS_SYMBOL(keys) && mask_keys != 1 &&
        mask_keys < keys) {
        pads[7] = keys - mask_keys;
        mask = byi_import_call(o, BYI_OP_NN_PAD, mask,
                               byi_import_vector(o, 8, pads),
                               byi_import_scalar(o, dtype, -INFINITY));
    }
    return byi_group_scores(o, a, mask);
}

void byi_check_heads(struct byi_import *o, const struct byi_attention *a,
                     int64_t values)
{
    if (byi_import_ok(o) && (a->heads < 1 || a->kv_heads < 1 ||
                             a->heads % a->kv_heads || values != a->kv_heads))
        byi_import_fail(
            o, BYOC_ETYPE,
            "found %lld heads of queries, %lld of keys and %lld of "
            "values, expected known numbers, as many of values as of keys, "
            "and a multiple of them of queries",
            (long long)a->heads, (long long)a->kv_heads, (long long)values);
}

static void read_standard(struct byi_import *o, struct byi_attention *a)
{
    const int64_t precision = byi_import_int(o, "softmax_precision", BYOC_F32);

    a->q = standard_operand(o, 0, &a->heads);
    a->k = standard_operand(o, 1, &a->kv_heads);
    int64_t heads = a->kv_heads;
    a->v = standard_operand(o, 2, &heads);
    if (precision == BYOC_F64 && byi_import_dtype(o, a->q) != BYOC_F64)
        byi_import_refuse(o, "softmax_precision is float64, expected at most "
                             "float32 for queries of another type");
    byi_check_heads(o, a, heads);
}

/* Attention: query, key, value, mask, past keys and values. From opset 24 on,
 * also the number of keys of each sequence, if k and v are padded. The soft cap
 * comes before the mask, as in the standard since its correction in 1.21
 * (github.com/onnx/onnx/pull/7867). Values of another type are cast to the type
 * of queries and keys, which is also the type of the result. */
static void convert_standard(struct byi_import *o)
{
    struct byi_attention a = {.heads = byi_import_int(o, "q_num_heads", 0),
                              .kv_heads = byi_import_int(o, "kv_num_heads", 0),
                              .bias = BYI_NO_ID,
                              .mask = BYI_NO_ID,
                              .sink = BYI_NO_ID,
                              .filter = -INFINITY,
                              .scale = byi_import_float(o, "scale", 0),
                              .softcap = byi_import_float(o, "softcap", 0),
                              .causal = byi_import_int(o, "is_causal", 0) != 0,
                              .standard = true};
    const bool flat = byi_import_rank(o, byi_import_in(o, 0)) == 3;
    const int64_t mode = byi_import_int(o, "qk_matmul_output_mode", 0);
    const byi_id lengths = byi_import_in(o, 6);
    byi_id stages[4];

    read_standard(o, &a);
    if (mode < 0 || mode > 3)
        byi_import_fail(o, BYOC_EPARSE,
                        "qk_matmul_output_mode is %lld, expected 0 to 3",
                        (long long)mode);
    add_past(o, &a, byi_import_in(o, 4), byi_import_in(o, 5));
    if (byi_import_wants_output(o, 1))
        o->out[1] = a.k;
    if (byi_import_wants_output(o, 2))
        o->out[2] = a.v;
    if (!byi_import_ok(o))
        return;
    byi_attention_widen(o, &a);
    a.v = byi_import_cast(o, a.v, byi_import_dtype(o, a.q));
    if (a.heads != a.kv_heads)
        a.q = byi_group_heads(o, &a, a.q, 1);
    a.mask = standard_mask(o, &a);
    if (lengths != BYI_NO_ID)
        a.bias = range_mask(o, &a, BYI_NO_ID, lengths);
    const byi_id y = attention_heads(o, &a, stages);
    o->out[0] = flat ? join_heads(o, y) : byi_join_groups(o, &a, y);
    if (byi_import_wants_output(o, 3) && byi_import_ok(o))
        o->out[3] =
            byi_import_cast(o, byi_join_groups(o, &a, stages[mode]), a.dtype);
}

/* clang-format off */
BYI_ONNX_ROWS(onnx_attention, BYI_ONNX,
    {"Attention", 23, 3, 6, convert_standard, BYI_OP_NONE},
    {"Attention", 24, 3, 7, convert_standard, BYI_OP_NONE})
BYI_ONNX_ROWS(microsoft_attention, BYI_MICROSOFT,
    {"Attention", 1, 2, 7, convert_attention, BYI_OP_NONE},
    {"MultiHeadAttention", 1, 1, 10, convert_multi_head, BYI_OP_NONE},
    {"QAttention", 1, 5, 9, convert_quantized_attention, BYI_OP_NONE})
/* clang-format on */
