/* SPDX-License-Identifier: Apache-2.0 */
/* ops.c: the operator table: rows from ops.def, attribute declarations here. */
#include "rules.h"

#include <pthread.h>
#include <string.h>

/* clang-format off */
#define ATTR(name, kind, fallback) {name, BYI_ATTR_##kind, fallback}
#define REQUIRED NULL

#define TABLE(id, ...) \
    static const struct byi_attr_def attrs_##id[] = {__VA_ARGS__}; \
    enum { N_ATTRS_##id = BYI_COUNT(attrs_##id) };

TABLE(isinf, ATTR("detect_negative", BOOL, "true"), ATTR("detect_positive", BOOL, "true"))
TABLE(cast, ATTR("dtype", DTYPE, REQUIRED))
TABLE(clip, ATTR("a_min", FLOAT, "-inf"), ATTR("a_max", FLOAT, "inf"))
TABLE(alpha001, ATTR("alpha", FLOAT, "0.01"))
TABLE(alpha1, ATTR("alpha", FLOAT, "1.0"))
TABLE(selu, ATTR("alpha", FLOAT, "1.6732631921768188"), ATTR("gamma", FLOAT, "1.0507010221481323"))
TABLE(gelu, ATTR("approximate", STRING, "\"none\""))
TABLE(hard_sigmoid, ATTR("alpha", FLOAT, "0.2"), ATTR("beta", FLOAT, "0.5"))
TABLE(shrink, ATTR("lambd", FLOAT, "0.5"), ATTR("bias", FLOAT, "0.0"))
TABLE(mod, ATTR("fmod", BOOL, "false"))
TABLE(reduce, ATTR("axis", INTS, "[]"), ATTR("keepdims", BOOL, "true"), ATTR("noop_empty", BOOL, "false"))
TABLE(arg, ATTR("axis", INT, "0"), ATTR("keepdims", BOOL, "true"), ATTR("select_last_index", BOOL, "false"))

#define LAYOUT(name, letters) ATTR(name, STRING, "\"" letters "\"")
#define CONV(id, one, zero2, space, ...) \
    TABLE(id, ATTR("strides", INTS, one), ATTR("padding", INTS, zero2), \
          ATTR("dilation", INTS, one), ATTR("groups", INT, "1"), \
          LAYOUT("data_layout", "NC" space), LAYOUT("kernel_layout", "OI" space), ##__VA_ARGS__)
CONV(conv1, "[1]", "[0, 0]", "W")
CONV(conv2, "[1, 1]", "[0, 0, 0, 0]", "HW")
CONV(conv3, "[1, 1, 1]", "[0, 0, 0, 0, 0, 0]", "DHW")
/* what 8-bit results are kept to */
#define KEPT ATTR("a_min", INT, "-128"), ATTR("a_max", INT, "255")
CONV(qnn_conv1, "[1]", "[0, 0]", "W", KEPT)
CONV(qnn_conv2, "[1, 1]", "[0, 0, 0, 0]", "HW", KEPT)
CONV(qnn_conv3, "[1, 1, 1]", "[0, 0, 0, 0, 0, 0]", "DHW", KEPT)
#define DECONV(id, one, zero, zero2, space) \
    TABLE(id, ATTR("strides", INTS, one), ATTR("padding", INTS, zero2), \
          ATTR("output_padding", INTS, zero), ATTR("dilation", INTS, one), ATTR("groups", INT, "1"), \
          LAYOUT("data_layout", "NC" space), LAYOUT("kernel_layout", "IO" space))
DECONV(deconv1, "[1]", "[0]", "[0, 0]", "W")
DECONV(deconv2, "[1, 1]", "[0, 0]", "[0, 0, 0, 0]", "HW")
DECONV(deconv3, "[1, 1, 1]", "[0, 0, 0]", "[0, 0, 0, 0, 0, 0]", "DHW")
#define POOL(d, one, zero2, space) \
    TABLE(max_pool##d, ATTR("pool_size", INTS, REQUIRED), ATTR("strides", INTS, one), \
          ATTR("padding", INTS, zero2), ATTR("dilation", INTS, one), ATTR("ceil_mode", BOOL, "false"), \
          LAYOUT("layout", "NC" space)) \
    TABLE(avg_pool##d, ATTR("pool_size", INTS, REQUIRED), ATTR("strides", INTS, one), \
          ATTR("padding", INTS, zero2), ATTR("dilation", INTS, one), ATTR("ceil_mode", BOOL, "false"), \
          ATTR("count_include_pad", BOOL, "false"), LAYOUT("layout", "NC" space)) \
    TABLE(global_pool##d, LAYOUT("layout", "NC" space))
POOL(1, "[1]", "[0, 0]", "W")
POOL(2, "[1, 1]", "[0, 0, 0, 0]", "HW")
POOL(3, "[1, 1, 1]", "[0, 0, 0, 0, 0, 0]", "DHW")
/* any rank: every list must be given, one entry (padding: two) an axis */
TABLE(max_pool_indices, ATTR("pool_size", INTS, REQUIRED), ATTR("strides", INTS, REQUIRED),
      ATTR("padding", INTS, REQUIRED), ATTR("dilation", INTS, REQUIRED),
      ATTR("ceil_mode", BOOL, "false"), ATTR("column_major", BOOL, "false"))
TABLE(lp_pool, ATTR("pool_size", INTS, REQUIRED), ATTR("strides", INTS, REQUIRED),
      ATTR("padding", INTS, REQUIRED), ATTR("dilation", INTS, REQUIRED),
      ATTR("ceil_mode", BOOL, "false"), ATTR("p", INT, "2"))
TABLE(p2, ATTR("p", INT, "2"))
TABLE(matmul, ATTR("transpose_a", BOOL, "false"), ATTR("transpose_b", BOOL, "false"))
TABLE(qnn_matmul, ATTR("transpose_a", BOOL, "false"), ATTR("transpose_b", BOOL, "false"), KEPT)
TABLE(axis_last, ATTR("axis", INT, "-1"))
TABLE(axis0, ATTR("axis", INT, "0"))
TABLE(axis1, ATTR("axis", INT, "1"))
TABLE(batch_norm, ATTR("axis", INT, "1"), ATTR("epsilon", FLOAT, "1e-05"))
TABLE(layer_norm, ATTR("axis", INT, "-1"), ATTR("epsilon", FLOAT, "1e-05"))
TABLE(epsilon, ATTR("epsilon", FLOAT, "1e-05"))
TABLE(group_norm, ATTR("num_groups", INT, REQUIRED), ATTR("epsilon", FLOAT, "1e-05"))
TABLE(lrn, ATTR("size", INT, "5"), ATTR("alpha", FLOAT, "0.0001"), ATTR("beta", FLOAT, "0.75"), ATTR("bias", FLOAT, "1.0"))
TABLE(lp_normalize, ATTR("axis", INT, "-1"), ATTR("p", INT, "2"))
TABLE(mvn, ATTR("axis", INTS, "[0, 2, 3]"))
/* activations empty: tanh, or sigmoid and tanh; alpha and beta empty: the
 * functions' own, else one each for every activation */
#define RECURRENT(id, ...) \
    TABLE(id, ATTR("direction", STRING, "\"forward\""), ATTR("activations", STRINGS, "[]"), \
          ATTR("activation_alpha", FLOATS, "[]"), ATTR("activation_beta", FLOATS, "[]"), \
          ATTR("clip", FLOAT, "inf"), ATTR("batch_first", BOOL, "false"), ##__VA_ARGS__)
RECURRENT(rnn)
RECURRENT(gru, ATTR("linear_before_reset", BOOL, "false"))
RECURRENT(lstm, ATTR("input_forget", BOOL, "false"))
TABLE(pad, ATTR("mode", STRING, "\"constant\""))
TABLE(shape_of, ATTR("start", INT, "0"), ATTR("end", INT, "2147483647"))
TABLE(reshape, ATTR("allowzero", BOOL, "false"))
TABLE(axes, ATTR("axis", INTS, "[]"))
TABLE(axes_required, ATTR("axis", INTS, REQUIRED))
TABLE(transpose, ATTR("axes", INTS, "[]"))
TABLE(split, ATTR("sizes", INTS, REQUIRED), ATTR("axis", INT, "0"))
TABLE(batch_dims, ATTR("batch_dims", INT, "0"))
TABLE(scatter, ATTR("axis", INT, "0"), ATTR("reduction", STRING, "\"none\""))
TABLE(scatter_nd, ATTR("reduction", STRING, "\"none\""))
TABLE(depth_to_space, ATTR("block_size", INT, REQUIRED), ATTR("mode", STRING, "\"DCR\""), LAYOUT("layout", "NCHW"))
TABLE(space_to_depth, ATTR("block_size", INT, REQUIRED), LAYOUT("layout", "NCHW"))
TABLE(layout_transform, ATTR("src_layout", STRING, REQUIRED), ATTR("dst_layout", STRING, REQUIRED))
TABLE(full, ATTR("value", FLOAT, "0.0"), ATTR("dtype", DTYPE, "float32"))
TABLE(sequence_make, ATTR("dtype", DTYPE, "float32"))
TABLE(sequence_split, ATTR("axis", INT, "0"), ATTR("keepdims", BOOL, "true"))
TABLE(sequence_concatenate, ATTR("axis", INT, REQUIRED), ATTR("new_axis", BOOL, "false"),
      ATTR("allow_empty", BOOL, "false"))
TABLE(optional_none, ATTR("dtype", DTYPE, REQUIRED), ATTR("sequence", BOOL, "false"))
TABLE(text_normalize, ATTR("case", STRING, "\"NONE\""), ATTR("case_sensitive", BOOL, "false"),
      ATTR("locale", STRING, "\"\""), ATTR("stopwords", STRINGS, "[]"))
TABLE(text_tf_idf, ATTR("mode", STRING, REQUIRED), ATTR("min_gram_length", INT, REQUIRED),
      ATTR("max_gram_length", INT, REQUIRED), ATTR("max_skip_count", INT, REQUIRED),
      ATTR("ngram_counts", INTS, REQUIRED), ATTR("ngram_indexes", INTS, REQUIRED),
      ATTR("pool_int64s", INTS, "[]"), ATTR("pool_strings", STRINGS, "[]"), ATTR("weights", FLOATS, "[]"))
TABLE(random_uniform, ATTR("low", FLOAT, "0.0"), ATTR("high", FLOAT, "1.0"), ATTR("dtype", DTYPE, "float32"), ATTR("seed", FLOAT, "0.0"))
TABLE(random_normal, ATTR("mean", FLOAT, "0.0"), ATTR("scale", FLOAT, "1.0"), ATTR("dtype", DTYPE, "float32"), ATTR("seed", FLOAT, "0.0"))
TABLE(random_multinomial, ATTR("sample_size", INT, "1"), ATTR("dtype", DTYPE, "int32"), ATTR("seed", FLOAT, "0.0"))
TABLE(eye_like, ATTR("k", INT, "0"), ATTR("dtype", DTYPE, REQUIRED))
TABLE(trilu, ATTR("k", INT, "0"), ATTR("upper", BOOL, "true"))
TABLE(cumsum, ATTR("axis", INT, "0"), ATTR("exclusive", BOOL, "false"), ATTR("reverse", BOOL, "false"))
TABLE(dyn_reduce, ATTR("function", STRING, REQUIRED), ATTR("keepdims", BOOL, "true"), ATTR("noop_empty", BOOL, "false"))
TABLE(dyn_cumsum, ATTR("exclusive", BOOL, "false"), ATTR("reverse", BOOL, "false"))
TABLE(dyn_trilu, ATTR("upper", BOOL, "true"))
TABLE(topk, ATTR("axis", INT, "-1"), ATTR("largest", BOOL, "true"), ATTR("sorted", BOOL, "true"))
TABLE(compress, ATTR("axis", INT, "0"), ATTR("flat", BOOL, "false"))
TABLE(unique, ATTR("axis", INT, "0"), ATTR("flat", BOOL, "false"), ATTR("sorted", BOOL, "true"))
TABLE(dft, ATTR("axis", INT, "1"), ATTR("inverse", BOOL, "false"), ATTR("onesided", BOOL, "false"))
TABLE(idct8, ATTR("axes", INTS, REQUIRED))
TABLE(reverse_sequence, ATTR("batch_axis", INT, "1"), ATTR("time_axis", INT, "0"))
TABLE(einsum, ATTR("equation", STRING, REQUIRED))
/* aggregate: sum, average (over all trees), min, max */
TABLE(tree_ensemble, ATTR("targets", INT, REQUIRED), ATTR("aggregate", STRING, "\"sum\""), ATTR("absent", FLOAT, "0.0"))
TABLE(nms, ATTR("center_point_box", BOOL, "false"))
/* as ONNX Resize: mode nearest, linear, cubic; nearest_mode round_prefer_floor,
 * round_prefer_ceil, floor, ceil; the coordinate modes by ONNX's names */
TABLE(resize, ATTR("mode", STRING, "\"nearest\""), ATTR("coordinate_transformation_mode", STRING, "\"half_pixel\""),
      ATTR("nearest_mode", STRING, "\"round_prefer_floor\""), ATTR("cubic_coeff_a", FLOAT, "-0.75"),
      ATTR("exclude_outside", BOOL, "false"), ATTR("extrapolation_value", FLOAT, "0.0"),
      ATTR("antialias", BOOL, "false"), ATTR("roi", FLOATS, "[]"))
TABLE(dyn_resize, ATTR("mode", STRING, "\"nearest\""), ATTR("coordinate_transformation_mode", STRING, "\"tf_crop_and_resize\""),
      ATTR("nearest_mode", STRING, "\"round_prefer_floor\""), ATTR("cubic_coeff_a", FLOAT, "-0.75"),
      ATTR("exclude_outside", BOOL, "false"), ATTR("extrapolation_value", FLOAT, "0.0"),
      ATTR("antialias", BOOL, "false"))
TABLE(grid_sample, ATTR("mode", STRING, "\"bilinear\""), ATTR("padding_mode", STRING, "\"zeros\""), ATTR("align_corners", BOOL, "false"))
TABLE(roi_align, ATTR("mode", STRING, "\"avg\""), ATTR("output_height", INT, "1"), ATTR("output_width", INT, "1"),
      ATTR("sampling_ratio", INT, "0"), ATTR("spatial_scale", FLOAT, "1.0"),
      ATTR("coordinate_transformation_mode", STRING, "\"half_pixel\""))
TABLE(roi_pool, ATTR("pooled_size", INTS, REQUIRED), ATTR("spatial_scale", FLOAT, "1.0"))
/* clang-format on */

#define attrs_none NULL
enum { N_ATTRS_none = 0 };

#define MANY BYI_MAX_ARGS
#define AT(i) (1u << (i))
#define FROM(i) (UINT32_MAX << (i))
#define COMMUTES BYI_TRAIT_COMMUTES
#define VIEW BYI_TRAIT_VIEW
#define RANDOM BYI_TRAIT_RANDOM
#define LIST BYI_TRAIT_LIST
#define FOLDS BYI_TRAIT_FOLDS
#define JUMPS BYI_TRAIT_JUMPS
#define WIDENS BYI_TRAIT_WIDENS
#define EXACT                                                                  \
    {                                                                          \
        0, 0                                                                   \
    }
#define ULPS(wide, half)                                                       \
    {                                                                          \
        wide, half                                                             \
    }

static const struct byi_op ops[BYI_N_OPS] = {
    [BYI_OP_NONE] = {.name = "none"},
#define OP(id_, name_, min_, max_, n_out_, kind_, cost_, layout_, types_,      \
           values_, traits_, bound_, table_, rule_, doc_)                      \
    [BYI_OP_##id_] = {                                                         \
        .id = BYI_OP_##id_,                                                    \
        .name = name_,                                                         \
        .min_in = min_,                                                        \
        .max_in = max_,                                                        \
        .n_out = n_out_,                                                       \
        .kind = BYI_##kind_,                                                   \
        .cost = BYI_COST_##cost_,                                              \
        .layout = BYI_LAYOUT_##layout_,                                        \
        .types = BYI_##types_,                                                 \
        .values = values_,                                                     \
        .traits = traits_,                                                     \
        .ulps = bound_,                                                        \
        .attrs = attrs_##table_,                                               \
        .rule = byi_rule_##rule_,                                              \
        .doc = doc_,                                                           \
        .n_attrs = N_ATTRS_##table_,                                           \
    },
#include "ops.def"
#undef OP
};

const struct byi_op *byi_op(enum byi_op_id id)
{
    return &ops[id];
}

bool byi_op_has(enum byi_op_id id, enum byi_op_trait trait)
{
    return (ops[id].traits & trait) != 0;
}

bool byi_op_reads_value(enum byi_op_id id, uint32_t operand)
{
    return operand < 32 && (ops[id].values >> operand & 1);
}

bool byi_op_reads_unknown(enum byi_op_id id, uint32_t n,
                          const struct byi_tensor *const *value)
{
    for (uint32_t i = 0; i < n; i++)
        if (!value[i] && byi_op_reads_value(id, i))
            return true;
    return false;
}

/* Names to rows: an open hash table, filled once, before its first use. */
enum { NAME_SLOTS = 512 };
static uint16_t name_slots[NAME_SLOTS];
static pthread_once_t names_once = PTHREAD_ONCE_INIT;
_Static_assert(BYI_N_OPS <= NAME_SLOTS / 2, "operators fit the name table");

static size_t slot_of(const char *name, size_t n)
{
    return (size_t)(byi_hash(0, name, n) % NAME_SLOTS);
}

static void fill_names(void)
{
    for (size_t i = 1; i < BYI_N_OPS; i++) {
        size_t slot = slot_of(ops[i].name, strlen(ops[i].name));
        while (name_slots[slot])
            slot = (slot + 1) % NAME_SLOTS;
        name_slots[slot] = (uint16_t)i;
    }
}

const struct byi_op *byi_op_of_name(const char *name, size_t n)
{
    pthread_once(&names_once, fill_names);
    for (size_t slot = slot_of(name, n); name_slots[slot];
         slot = (slot + 1) % NAME_SLOTS) {
        const struct byi_op *op = &ops[name_slots[slot]];
        if (strlen(op->name) == n && memcmp(op->name, name, n) == 0)
            return op;
    }
    return NULL;
}

const struct byi_attr_def *byi_op_attr(const struct byi_op *op,
                                       const char *name)
{
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return &op->attrs[i];
    return NULL;
}
