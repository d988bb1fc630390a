/* SPDX-License-Identifier: Apache-2.0 */
/* ops_grouped.c: converts com.microsoft's GroupQueryAttention: several query
 * heads share one head of keys and values (Ainslie et al., "GQA: Training
 * Generalized Multi-Query Transformer Models from Multi-Head Checkpoints",
 * 2023). Keys and values stay in a cache from run to run.
 */
#include "frontend_onnx/attention.h"

#include <string.h>

/* GroupQueryAttention's inputs. */
enum {
    QUERY,
    KEY,
    VALUE,
    PAST_KEY,
    PAST_VALUE,
    LAST_KEY, /* seqlens_k (b): index of each sequence's last key */
    ALL_KEYS, /* total_sequence_length: keys of the longest one   */
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

/* A GroupQueryAttention that is imported. */
struct grouped_attention {
    struct byi_attention a;
    byi_id past;       /* (b): past keys of each sequence        */
    byi_id positions;  /* (b, s): position of each query         */
    byi_id total;      /* keys of the longest sequence, a scalar */
    bool preallocated; /* the caches have room for all keys      */
};

static void check_grouped(struct byi_import *o)
{
    if (byi_import_int(o, "sliding_window_cache", 0))
        byi_import_refuse(o, "found a cache that keeps only the window, "
                             "expected sliding_window_cache 0");
    if (byi_import_int(o, "qk_output", 0) || byi_import_wants_output(o, 3))
        byi_import_refuse(
            o, "found the scores as an output, expected qk_output 0");
    if (byi_import_in(o, KEY_SCALE) != BYI_NO_ID ||
        byi_import_in(o, VALUE_SCALE) != BYI_NO_ID ||
        strcmp(byi_import_string(o, "k_quant_type", "NONE"), "NONE") != 0 ||
        strcmp(byi_import_string(o, "v_quant_type", "NONE"), "NONE") != 0 ||
        byi_import_int(o, "kv_cache_bit_width", 0))
        byi_import_refuse(o, "found a quantised cache, expected floats");
    if (byi_import_in(o, QUERY_NORM) != BYI_NO_ID ||
        byi_import_in(o, KEY_NORM) != BYI_NO_ID)
        byi_import_refuse(o, "found normalised queries and keys, expected "
                             "these inputs to be omitted");
    byi_import_float(o, "qk_norm_epsilon", 0);
    if (byi_import_in(o, LAST_KEY) == BYI_NO_ID ||
        byi_import_in(o, ALL_KEYS) == BYI_NO_ID)
        byi_import_fail(o, BYOC_EPARSE, "input %s is omitted, expected a value",
                        byi_import_in(o, LAST_KEY) == BYI_NO_ID
                            ? "seqlens_k"
                            : "total_sequence_length");
    if ((byi_import_in(o, PAST_KEY) == BYI_NO_ID) !=
        (byi_import_in(o, PAST_VALUE) == BYI_NO_ID))
        byi_import_fail(
            o, BYOC_EPARSE,
            "found one of past_key and past_value, expected both or neither");
    if ((byi_import_in(o, KEY) == BYI_NO_ID) !=
        (byi_import_in(o, VALUE) == BYI_NO_ID))
        byi_import_fail(o, BYOC_EPARSE,
                        "found one of key and value, expected both or neither");
}

/* Read queries, keys and values as (b, s, heads, h), from three inputs or one
 * packed input. */
static void read_grouped(struct byi_import *o, struct grouped_attention *g)
{
    struct byi_attention *a = &g->a;
    const int64_t heads = a->heads + 2 * g->a.kv_heads;
    const int64_t width = byi_import_dim(o, byi_import_in(o, QUERY), 2);
    byi_id parts[] = {byi_import_in(o, QUERY), byi_import_in(o, KEY),
                      byi_import_in(o, VALUE)};

    if (parts[1] == BYI_NO_ID)
        byi_import_known_dim(o, parts[0], 2, "a packed query");
    if (parts[1] == BYI_NO_ID && byi_import_ok(o)) {
        const int64_t h = width / heads;
        const int64_t sizes[] = {a->heads * h, g->a.kv_heads * h,
                                 g->a.kv_heads * h};
        if (width % heads)
            byi_import_fail(
                o, BYOC_ETYPE,
                "a packed query of width %lld does not split into %lld "
                "heads of queries, keys and values, expected a multiple",
                (long long)width, (long long)heads);
        else
            byi_split_qkv(o, parts[0], sizes, parts);
    }
    a->q = byi_unflatten_heads(o, parts[0], a->heads);
    a->k = byi_unflatten_heads(o, parts[1], g->a.kv_heads);
    a->v = byi_unflatten_heads(o, parts[2], g->a.kv_heads);
}

/* Set g->past, g->positions and g->total. The past of a sequence is its number
 * of keys without the new ones, which come last. A sequence that has fewer keys
 * than the node has new ones (a shorter prompt, padded) has no past. */
static void read_lengths(struct byi_import *o, struct grouped_attention *g)
{
    const byi_id zero = byi_import_scalar(o, BYOC_I64, 0);

    g->past = byi_import_template(
        o,
        "fn (%last, %keys) {"
        "  %all = add(cast(%last, dtype=%keys), 1);"
        "  maximum(subtract(%all, %keys), 0)"
        "}",
        ARGS(byi_import_in(o, LAST_KEY), byi_import_length(o, g->a.k, 1)),
        NO_ATTRS);
    g->positions = byi_import_template(
        o, "fn (%past, %own) { add(expand_dims(%past, axis=[1]), %own) }",
        ARGS(g->past,
             byi_import_arange(o, zero, byi_import_length(o, g->a.q, 1))),
        NO_ATTRS);
    g->total = byi_import_as_scalar(
        o, byi_import_cast(o, byi_import_in(o, ALL_KEYS), BYOC_I64));
}

static void rotate_grouped(struct byi_import *o, struct grouped_attention *g)
{
    const bool interleaved = byi_import_int(o, "rotary_interleaved", 0) != 0;
    const bool has_positions = byi_import_in(o, POSITIONS) != BYI_NO_ID;
    byi_id tables[] = {byi_import_in(o, COSINES), byi_import_in(o, SINES)};

    if (!byi_import_int(o, "do_rotary", 0) || !byi_import_ok(o))
        return;
    for (uint32_t i = 0; i < 2; i++)
        if (tables[i] == BYI_NO_ID || byi_import_rank(o, tables[i]) != 2) {
            byi_import_fail(
                o, BYOC_EPARSE, "do_rotary is 1, and %s %s, expected a matrix",
                i ? "sin_cache" : "cos_cache",
                tables[i] == BYI_NO_ID ? "is omitted" : "does not have rank 2");
            return;
        }
    const int64_t head = byi_import_known_dim(o, g->a.q, 3, "heads");
    const int64_t rotated =
        2 * byi_import_known_dim(o, tables[0], 1, "cos_cache");
    if (byi_import_ok(o) && (rotated < 2 || head < rotated)) {
        byi_import_fail(o, BYOC_ETYPE,
                        "found heads of %lld elements, expected at least %lld, "
                        "two for each column of cos_cache",
                        (long long)head, (long long)rotated);
        return;
    }
    for (uint32_t i = 0; i < 2 && byi_import_ok(o); i++)
        tables[i] = byi_rotary_rows(
            o, tables[i],
            has_positions ? byi_import_in(o, POSITIONS) : g->positions, false);
    g->a.q = byi_rotary_apply(o, g->a.q, tables, interleaved);
    g->a.k = byi_rotary_apply(o, g->a.k, tables, interleaved);
}

/* Returns the declared size of axis 2 of the graph's input or output `name`.
 * Returns NULL if the model declares no shape for it, or a rank other than 4.
 */
static const Onnx__TensorShapeProto__Dimension *declared_length(
    Onnx__ValueInfoProto *const *list, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        const Onnx__TypeProto *type = list[i]->type;
        if (!list[i]->name || strcmp(list[i]->name, name) != 0 || !type ||
            type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE ||
            !type->tensor_type->shape || type->tensor_type->shape->n_dim != 4)
            continue;
        return type->tensor_type->shape->dim[2];
    }
    return NULL;
}

/* Whether the model declares that output `out` is as long as input `past`, by
 * the same number or name. Then the cache is a buffer with room for all keys.
 */
static bool is_preallocated(const struct byi_import *o, uint32_t past,
                            uint32_t out)
{
    const Onnx__GraphProto *graph = o->scope->graph;
    const Onnx__TensorShapeProto__Dimension *a, *b;

    if (o->expansion || !byi_import_wants_output(o, out))
        return false;
    a = declared_length(graph->input, graph->n_input, o->node->input[past]);
    b = declared_length(graph->output, graph->n_output, o->node->output[out]);
    if (!a || !b || a->value_case != b->value_case)
        return false;
    if (a->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return a->dim_value == b->dim_value;
    return a->value_case ==
               ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
           *a->dim_param && strcmp(a->dim_param, b->dim_param) == 0;
}

/* Append the new keys or values to the cache in input `old`, (b, kv_heads, t,
 * h). The result may be in the memory of the old cache. */
static byi_id append_to_cache(struct byi_import *o,
                              const struct grouped_attention *g, uint32_t old,
                              byi_id new)
{
    return byi_import_emit(o, BYI_OP_NN_CACHE_APPEND,
                           ARGS(byi_import_in(o, old), new, g->past, g->total),
                           ATTRS(A_BOOL("grows", !g->preallocated)));
}

/* Emit the keys or values in a cache, without the room for more. */
static byi_id emit_cache_content(struct byi_import *o,
                                 const struct grouped_attention *g,
                                 byi_id cache)
{
    return byi_import_template(
        o,
        "fn (%cache, %all) {"
        "  strided_slice(%cache, [0], expand_dims(%all, axis=[0]), [2], [1])"
        "}",
        ARGS(cache, g->total), NO_ATTRS);
}

/* Append keys and values to the cache, and attend to the cache. */
static void cache_grouped(struct byi_import *o, struct grouped_attention *g)
{
    struct byi_attention *a = &g->a;

    a->k = byi_transpose_heads(o, a->k);
    a->v = byi_transpose_heads(o, a->v);
    const bool has_past =
        byi_import_in(o, PAST_KEY) != BYI_NO_ID && byi_import_ok(o);
    if (has_past) {
        g->preallocated = is_preallocated(o, PAST_KEY, 1) &&
                          is_preallocated(o, PAST_VALUE, 2);
        a->k = append_to_cache(o, g, PAST_KEY, a->k);
        a->v = append_to_cache(o, g, PAST_VALUE, a->v);
    }
    if (byi_import_wants_output(o, 1))
        o->out[1] = a->k;
    if (byi_import_wants_output(o, 2))
        o->out[2] = a->v;
    if (has_past) {
        a->k = emit_cache_content(o, g, a->k);
        a->v = emit_cache_content(o, g, a->v);
    }
}

/* Emit an additive mask that excludes the keys after the sequence's last key,
 * the keys after the query if the node is causal, and the keys before the
 * sliding window. */
static byi_id grouped_mask(struct byi_import *o,
                           const struct grouped_attention *g)
{
    const int64_t window = byi_import_int(o, "local_window_size", -1);
    const bool causal = byi_import_int(o, "causal", 1) != 0;
    const byi_id n_keys = byi_import_length(o, g->a.k, 2);
    const byi_id keys =
        byi_import_arange(o, byi_import_scalar(o, BYOC_I64, 0), n_keys);
    const byi_id rows = byi_import_add_axes(o, g->positions, 2, 1);
    byi_id end = byi_import_add_axes(
        o, byi_import_cast(o, byi_import_in(o, LAST_KEY), BYOC_I64), 1, 2);

    if (window == 0 || window < -1 || (window > 0 && !causal))
        byi_import_fail(o, BYOC_EPARSE,
                        "local_window_size is %lld%s, expected -1 or, with "
                        "causal, at least 1",
                        (long long)window, causal ? "" : " without causal");
    if (causal)
        end = byi_import_call(o, BYI_OP_MINIMUM, rows, end);
    byi_id allowed = byi_import_call(o, BYI_OP_LESS_EQUAL, keys, end);
    if (window > 0) {
        static const char inside[] =
            "fn (%allowed, %keys, %end) {"
            "  logical_and(%allowed, greater(%keys, subtract(%end, window)))"
            "}";
        allowed = byi_import_template(o, inside, ARGS(allowed, keys, end),
                                      ATTRS(AN_INT("window", window)));
    }
    return byi_attention_mask(o, &g->a, allowed, byi_attention_lowest(o, &g->a),
                              1, byi_import_rank(o, g->a.q) == 5 ? 2 : 1);
}

/* Emit the sink's score of each head: an input, or 0 with smooth_softmax.
 * Returns BYI_NO_ID if the node has no sink. */
static byi_id grouped_sink(struct byi_import *o,
                           const struct grouped_attention *g)
{
    const bool smooth = byi_import_int(o, "smooth_softmax", 0) > 0;
    const byi_id sink = byi_import_in(o, SINK);

    if (sink == BYI_NO_ID)
        return smooth ? byi_import_scalar(o, byi_import_dtype(o, g->a.q), 0)
                      : BYI_NO_ID;
    return byi_import_rank(o, g->a.q) == 4
               ? byi_import_add_axes(o, sink, 1, 2)
               : byi_import_add_axes(o, byi_group_heads(o, &g->a, sink, 0), 2,
                                     2);
}

/* Emit queries (b, s, n, h) as (b, n, s, h), or as (b, n / g, g, s, h). */
static byi_id grouped_queries(struct byi_import *o,
                              const struct grouped_attention *g)
{
    if (g->a.kv_heads == g->a.heads)
        return byi_transpose_heads(o, g->a.q);
    return byi_import_template(
        o, "fn (%x) { transpose(%x, axes=[0, 2, 3, 1, 4]) }",
        ARGS(byi_group_heads(o, &g->a, g->a.q, 2)), NO_ATTRS);
}

static void convert_grouped(struct byi_import *o)
{
    struct grouped_attention g = {.a = byi_attention_read(o)};

    g.a.kv_heads = byi_import_int(o, "kv_num_heads", 0);
    g.a.softcap = byi_import_float(o, "softcap", 0);
    check_grouped(o);
    if (byi_import_ok(o) && (g.a.kv_heads < 1 || g.a.heads % g.a.kv_heads))
        byi_import_fail(
            o, BYOC_EPARSE,
            "num_heads is %lld, expected a multiple of kv_num_heads, %lld",
            (long long)g.a.heads, (long long)g.a.kv_heads);
    if (!byi_import_ok(o))
        return;
    read_grouped(o, &g);
    read_lengths(o, &g);
    rotate_grouped(o, &g);
    cache_grouped(o, &g);
    g.a.q = grouped_queries(o, &g);
    g.a.bias = byi_group_scores(o, &g.a, byi_import_in(o, BIAS));
    g.a.sink = grouped_sink(o, &g);
    byi_attention_widen(o, &g.a);
    g.a.mask = grouped_mask(o, &g);
    o->out[0] = byi_attention_emit(o, &g.a);
}

/* clang-format off */
BYI_ONNX_ROWS(microsoft_grouped, BYI_MICROSOFT,
    {"GroupQueryAttention", 1, 1, 16, convert_grouped, BYI_OP_NONE})
/* clang-format on */
