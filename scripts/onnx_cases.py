# SPDX-License-Identifier: Apache-2.0
"""For scripts/onnx-types: operands and attributes of each operator of ONNX, and
tensors of each element type."""
import re

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper

NUMBERS = {"float": T.FLOAT, "double": T.DOUBLE, "float16": T.FLOAT16,
           "bfloat16": T.BFLOAT16, "int8": T.INT8, "int16": T.INT16,
           "int32": T.INT32, "int64": T.INT64, "uint8": T.UINT8,
           "uint16": T.UINT16, "uint32": T.UINT32, "uint64": T.UINT64,
           "bool": T.BOOL, "string": T.STRING, "complex64": T.COMPLEX64,
           "complex128": T.COMPLEX128}
# types of 2, 4 and 8 bits: a .npy file has a byte for each element
NARROW = {name: getattr(T, name.upper()) for name in (
    "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "float8e8m0", "float4e2m1", "int4", "uint4", "int2", "uint2")
          if hasattr(T, name.upper())}
NUMBERS.update(NARROW)
NAMES = {number: name for name, number in NUMBERS.items()}
# NumPy's type for each element type; bfloat16 as its bits
ARRAYS = {T.FLOAT: "f4", T.DOUBLE: "f8", T.FLOAT16: "f2", T.BFLOAT16: "u2",
          T.INT8: "i1", T.INT16: "i2", T.INT32: "i4", T.INT64: "i8",
          T.UINT8: "u1", T.UINT16: "u2", T.UINT32: "u4", T.UINT64: "u8",
          T.BOOL: "?", T.COMPLEX64: "c8", T.COMPLEX128: "c16"}
NOT_REAL = (T.STRING, T.COMPLEX64, T.COMPLEX128)
HALVES = (T.FLOAT16, T.BFLOAT16)
NARROW_FLOATS = tuple(n for name, n in NARROW.items() if "float" in name)
NARROW_INTS = tuple(n for name, n in NARROW.items() if "int" in name)
# the type of a parameter while another one is varied: the first that it allows
USUAL = ("float", "int64", "uint8", "string", "bool")


class Known:
    """An operand that is an initializer."""

    def __init__(self, values):
        self.values = np.array(values)


def ramp(*dims):
    """Small whole numbers that differ from position to position."""
    n = int(np.prod(dims))
    return np.array(([1, 2, 0, 1, 3, 2, 1] * (n // 7 + 1))[:n],
                    np.float64).reshape(dims)


def element(text):
    """The number of the element type in tensor(x), seq(tensor(x)), ...; of a
    map, that of its values."""
    return NUMBERS[re.search(r"(?:tensor\(|, )(\w+)\)", text).group(1)]


def proto(values, number, name):
    """A TensorProto with these values and the element type `number`."""
    values = np.asarray(values)
    if number == T.STRING:
        texts = [("%g" % float(x)).encode() for x in values.ravel()]
        return h.make_tensor(name, number, values.shape, texts)
    if number in NARROW.values():
        return numpy_helper.from_array(
            values.astype(h.tensor_dtype_to_np_dtype(number)), name)
    if number == T.BFLOAT16:
        bits = np.asarray(values, np.float32).view(np.uint32) >> 16
        raw = bits.astype(np.uint16)
    else:
        raw = values.astype(ARRAYS[number])
    return h.make_tensor(name, number, values.shape, raw.tobytes(), raw=True)


# --- operands and attributes of each operator -----------------------------------
# name: a function of the version that returns the operands (an array of numbers,
# Known, a list of arrays for a sequence, or None if omitted) and the attributes. An
# attribute may be a function that makes it from the types of the node's type
# parameters; "TENSOR" stands for a tensor of the tested type. Operators that are not
# listed get ramp(2, 3) for every required operand.

def axes_of(v, since):
    """Axis 1, as an attribute before version `since`, as an operand from it on."""
    return ([], {"axes": [1]}) if v < since else ([Known([1])], {})


def reduction(v, since=18):
    operands, attrs = axes_of(v, since)
    return [ramp(2, 3)] + operands, dict(attrs, keepdims=0)


def recurrent(gates, states):
    """For RNN, GRU and LSTM: cells with this many gates and initial states."""
    def make(v):
        # x, weights, recurrent, bias, lengths, initial states
        return ([ramp(3, 2, 4) / 2, ramp(1, gates * 2, 4) / 4,
                 ramp(1, gates * 2, 2) / 4, ramp(1, gates * 4) / 4,
                 np.array([3, 2])] + [ramp(1, 2, 2) / 4] * states,
                {"hidden_size": 2})
    return make


def slices(v):
    if v < 10:
        return [ramp(4, 5)], {"starts": [1, 0], "ends": [3, 4], "axes": [0, 1]}
    return [ramp(4, 5), Known([1, 4]), Known([3, 0]), Known([0, 1]),
            Known([1, -2])], {}


def upsample(v):
    if v < 7:
        return [ramp(1, 1, 2, 3)], {"height_scale": 2.0, "width_scale": 2.0}
    if v < 9:
        return [ramp(1, 1, 2, 3)], {"scales": [1.0, 1.0, 2.0, 2.0]}
    return [ramp(1, 1, 2, 3), Known([1.0, 1.0, 2.0, 2.0])], {}


def resize(v):
    scales = Known([1.0, 1.0, 2.0, 2.0])
    if v < 11:
        return [ramp(1, 1, 2, 3), scales], {}
    return [ramp(1, 1, 2, 3), Known([0.0] * 4 + [1.0] * 4), scales], {}


def pads(v):
    if v < 2:
        return [ramp(2, 3)], {"paddings": [0, 1, 1, 0]}
    if v < 11:
        return [ramp(2, 3)], {"pads": [0, 1, 1, 0]}
    return [ramp(2, 3), Known([0, 1, 1, 0]), ramp()], {}


def clip(v):
    if v < 11:
        return [ramp(2, 3)], {"min": 1.0, "max": 2.0}
    return [ramp(2, 3), np.array(1), np.array(2)], {}


def batch_norm(v):
    channel = ramp(3) + 1
    attrs = {"is_test": 1} if v < 7 else {}
    if v < 6:
        attrs["consumed_inputs"] = [0, 0, 0, 1, 1]
    return [ramp(2, 3, 4)] + [channel] * 4, attrs


def dropout(v):
    if v < 7:
        return [ramp(2, 3)], {"is_test": 1}
    if v < 12:
        return [ramp(2, 3)], {}
    return [ramp(2, 3), np.array(0.0), np.array(True)], {}


def top_k(v):
    if v < 10:
        return [ramp(2, 5)], {"k": 2}
    return [ramp(2, 5), Known([2])], {}


def splits(v):
    if v < 13:
        return [ramp(2, 6)], {"axis": 1, "split": [2, 4]}
    return [ramp(2, 6), Known([2, 4])], {"axis": 1}


def squeeze(v):
    operands, attrs = axes_of(v, 13)
    return [ramp(2, 1, 3)] + operands, attrs


def reshape(v):
    if v < 5:
        return [ramp(2, 3)], {"shape": [3, -1]}
    return [ramp(2, 3), Known([3, -1])], {}


def tile(v):
    if v < 6:
        return [ramp(2, 3), Known(2), Known(1)], {}
    return [ramp(2, 3), Known([2, 1])], {}


def gemm(v):
    return [ramp(2, 3), ramp(3, 4), ramp(4)], {"broadcast": 1} if v < 7 else {}


def binary(v):
    return [ramp(2, 3), ramp(3) + 1], {"broadcast": 1} if v < 7 else {}


def pool(v):
    return [ramp(1, 2, 4, 4)], {"kernel_shape": [2, 2], "strides": [2, 2]}


def lp_pool(v):
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    return [ramp(1, 2, 4, 4)], dict(attrs, p=2.0) if v < 2 else attrs


def conv(v):
    return [ramp(1, 2, 4, 4), ramp(3, 2, 2, 2), ramp(3)], {}


def conv_transpose(v):
    return [ramp(1, 2, 3, 3), ramp(2, 3, 2, 2), ramp(3)], {}


def quantized(*shapes):
    """For QLinear operators: two operands and the result with scales and zero
    points; shapes of the operands, and () for the result."""
    def make(v):
        operands = []
        for i, dims in enumerate(shapes):
            if i < 2:
                operands.append(ramp(*dims))
            operands += [np.array(0.5), np.array(1)]
        return operands, {}
    return make


def constant(v):
    return [], {"value": "TENSOR"}


def roi_align(v):
    return [ramp(1, 1, 4, 4), np.array([[0, 0, 3, 3.0]]), np.array([0])], {}


def nll(v):
    return [ramp(2, 3), np.array([1, 2]), ramp(3) + 1], {}


def ngrams(v):
    return [ramp(2, 3)], {
        "max_gram_length": 1, "max_skip_count": 0, "min_gram_length": 1,
        "mode": "TF", "ngram_counts": [0], "ngram_indexes": [0, 1],
        "pool_int64s": [1, 2]}


def tree_ensemble_ml(prefix):
    """For tree ensembles: one tree; `prefix`: "target" or "class"."""
    def make(v):
        return [ramp(4, 3)], {
            "nodes_treeids": [0, 0, 0], "nodes_nodeids": [0, 1, 2],
            "nodes_featureids": [0, 0, 0], "nodes_values": [1.0, 0.0, 0.0],
            "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
            "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0],
            prefix + "_treeids": [0, 0], prefix + "_nodeids": [1, 2],
            prefix + "_ids": [0, 1], prefix + "_weights": [1.0, 2.0],
            **({"n_targets": 2} if prefix == "target" else
               {"classlabels_int64s": [3, 5]})}
    return make


def group_norm(v):
    channels = 2 if v < 21 else 4
    return [ramp(1, 4, 2, 2), ramp(channels), ramp(channels)], {"num_groups": 2}


def attention(v):
    mask = ramp(3, 3) % 2 > 0
    return [ramp(1, 2, 3, 4) / 2, ramp(1, 2, 3, 4) / 2, ramp(1, 2, 3, 4),
            mask], {}


def rotary(v):
    return [ramp(1, 2, 3, 4), ramp(5, 2) / 2, ramp(5, 2) / 4,
            np.array([[4, 0, 1]])], {}


def tree_ensemble(v):
    return [ramp(4, 3)], {
        "tree_roots": [0], "nodes_featureids": [0],
        "nodes_modes": lambda types: proto([0], T.UINT8, "modes"),
        "nodes_splits": lambda types: proto([1.0], element(types["T"]), "splits"),
        "nodes_truenodeids": [0], "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1], "nodes_falseleafs": [1],
        "leaf_targetids": [0, 1], "n_targets": 2,
        "leaf_weights": lambda types: proto([1.0, 2.0], element(types["T"]),
                                            "weights")}


def producers(text, name):
    """Nodes without operands that make a value of the type `text`."""
    number = element(text)
    nodes = [h.make_node("Constant", [], [name + "t"],
                         value=proto(ramp(2, 3), number, "value"))]
    inner = name + "t"
    if "seq(" in text:
        nodes.append(h.make_node("SequenceConstruct", [inner], [name + "s"]))
        inner = name + "s"
    if text.startswith("optional("):
        nodes.append(h.make_node("Optional", [inner], [name + "o"]))
        inner = name + "o"
    return nodes + [h.make_node("Identity", [inner], [name])]


def bare(names):
    """Inputs or outputs of a body, without types."""
    infos = [h.make_tensor_value_info(n, T.FLOAT, None) for n in names]
    for info in infos:
        info.type.Clear()
    return infos


def branch(types):
    return h.make_graph(producers(types["V"], "b"), "branch", [], bare(["b"]))


def loop_body(types):
    nodes = [h.make_node("Identity", ["c"], ["c_out"]),
             h.make_node("Identity", ["v"], ["v_out"])]
    return h.make_graph(nodes, "body", bare(["i", "c", "v"]),
                        bare(["c_out", "v_out"]))


def scan_body(types):
    nodes = [h.make_node("Identity", ["s"], ["s_out"]),
             h.make_node("Identity", ["x"], ["row"])]
    return h.make_graph(nodes, "body", bare(["s", "x"]),
                        bare(["s_out", "row"]))


def scan(v):
    state, rows = ramp(3), ramp(2, 3)
    attrs = {"body": scan_body, "num_scan_inputs": 1}
    if v < 9:
        return [None, state.reshape(1, 3), rows.reshape(1, 2, 3)], attrs
    return [state, rows], attrs


def map_body(types):
    return h.make_graph([h.make_node("Identity", ["x"], ["y"])], "body",
                        bare(["x"]), bare(["y"]))


CASES = {
    "If": lambda v: ([np.array(True)], {"then_branch": branch,
                                        "else_branch": branch}),
    "Loop": lambda v: ([np.array(2), np.array(True), ramp(2, 3)],
                       {"body": loop_body}),
    "Scan": scan,
    "SequenceMap": lambda v: ([[ramp(2, 3), ramp(2, 1)]],
                              {"body": map_body}),
    "ArrayFeatureExtractor": lambda v: ([ramp(2, 3), Known([2, 0])], {}),
    "AffineGrid": lambda v: ([ramp(1, 2, 3), Known([1, 1, 2, 3])], {}),
    "Attention": attention,
    "AveragePool": pool, "BatchNormalization": batch_norm,
    "BitShift": lambda v: ([ramp(2, 3), ramp(3)], {"direction": "LEFT"}),
    "BlackmanWindow": lambda v: ([Known(4)], {}),
    "CastMap": lambda v: ([np.array([2, 1])], {}),
    "DictVectorizer": lambda v: ([np.array([2, 1])], {
        "string_vocabulary": ["1", "2"], "int64_vocabulary": [1, 2]}),
    "Cast": lambda v: ([ramp(2, 3)], {"to": "FLOAT" if v < 6 else T.FLOAT}),
    "CategoryMapper": lambda v: ([ramp(2, 3)], {
        "cats_int64s": [1, 2], "cats_strings": ["1", "2"]}),
    "CenterCropPad": lambda v: ([ramp(4, 5), Known([2, 7])], {}),
    "Clip": clip,
    "Col2Im": lambda v: ([ramp(1, 4, 9), Known([4, 4]), Known([2, 2])], {}),
    "Compress": lambda v: ([ramp(2, 3), np.array([True, False, True])],
                           {"axis": 1}),
    "Concat": lambda v: ([ramp(2, 3), ramp(2, 1)], {"axis": 1}),
    "ConcatFromSequence": lambda v: ([[ramp(2, 3), ramp(2, 1)]], {"axis": 1}),
    "Constant": constant,
    "ConstantOfShape": lambda v: ([Known([2, 3])], {"value": "TENSOR"}),
    "Conv": conv,
    "ConvInteger": lambda v: (conv(v)[0][:2] + [np.array(1), np.array(1)], {}),
    "ConvTranspose": conv_transpose,
    "CumSum": lambda v: ([ramp(2, 3), Known(1)], {}),
    "DFT": lambda v: ([ramp(1, 4, 1), Known(4)], {"axis": 1}),
    "DeformConv": lambda v: ([ramp(1, 1, 3, 3), ramp(1, 1, 2, 2),
                              ramp(1, 8, 2, 2) % 2, ramp(1)], {}),
    "DepthToSpace": lambda v: ([ramp(1, 4, 2, 3)], {"blocksize": 2}),
    "DequantizeLinear": lambda v: ([ramp(2, 3), np.array(0.5), np.array(0)],
                                   {}),
    "Det": lambda v: ([ramp(2, 3, 3)], {}),
    "Dropout": dropout,
    "Einsum": lambda v: ([ramp(2, 3), ramp(3, 4)], {"equation": "ij,jk->ik"}),
    "Expand": lambda v: ([ramp(2, 1), Known([2, 3])], {}),
    "FeatureVectorizer": lambda v: ([ramp(2, 3), ramp(2, 1)],
                                    {"inputdimensions": [3, 1]}),
    "GRU": recurrent(3, 1),
    "Gather": lambda v: ([ramp(4, 3), np.array([1, 3])], {}),
    "GatherElements": lambda v: ([ramp(2, 3), np.array([[0, 1, 0]])], {}),
    "GatherND": lambda v: ([ramp(2, 3), np.array([[0, 1], [1, 2]])], {}),
    "Gemm": gemm,
    "GlobalAveragePool": lambda v: ([ramp(1, 2, 3, 3)], {}),
    "GlobalLpPool": lambda v: ([ramp(1, 2, 3, 3)], {}),
    "GlobalMaxPool": lambda v: ([ramp(1, 2, 3, 3)], {}),
    "GridSample": lambda v: ([ramp(1, 1, 3, 3), ramp(1, 2, 2, 2) % 2], {}),
    "GroupNormalization": group_norm,
    "HammingWindow": lambda v: ([Known(4)], {}),
    "HannWindow": lambda v: ([Known(4)], {}),
    "Imputer": lambda v: ([ramp(2, 3)], {
        "imputed_value_floats": [5.0], "imputed_value_int64s": [5],
        "replaced_value_float": 0.0, "replaced_value_int64": 0}),
    "InstanceNormalization": lambda v: ([ramp(2, 3, 4), ramp(3), ramp(3)], {}),
    "LRN": lambda v: ([ramp(1, 3, 2, 2)], {"size": 3}),
    "LSTM": recurrent(4, 2),
    "LabelEncoder": lambda v: ([ramp(2, 3)], {}),
    "LayerNormalization": lambda v: ([ramp(2, 3), ramp(3), ramp(3)], {}),
    "LinearClassifier": lambda v: ([ramp(2, 3)], {
        "coefficients": [1.0] * 6, "classlabels_ints": [3, 5]}),
    "LinearRegressor": lambda v: ([ramp(2, 3)], {"coefficients": [1.0] * 3}),
    "LpPool": lp_pool,
    "MatMul": lambda v: ([ramp(2, 3), ramp(3, 4)], {}),
    "MatMulInteger": lambda v: ([ramp(2, 3), ramp(3, 4), np.array(1),
                                 np.array(1)], {}),
    "Max": lambda v: ([ramp(2, 3), ramp(3)[::-1] if v >= 8 else ramp(2, 3)],
                      {}),
    "MaxPool": pool,
    "MaxRoiPool": lambda v: ([ramp(1, 1, 4, 4), np.array([[0, 0, 0, 3, 3.0]])],
                             {"pooled_shape": [2, 2]}),
    "MaxUnpool": lambda v: ([ramp(1, 1, 2, 2), np.array([[[[0, 3], [8, 11]]]])],
                            {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "MeanVarianceNormalization": lambda v: ([ramp(2, 3, 2, 2)], {}),
    "MelWeightMatrix": lambda v: ([Known(3), Known(16), Known(8192),
                                   Known(0.0), Known(4096.0)], {}),
    "Mod": lambda v: ([ramp(2, 3), ramp(3) + 1], {"fmod": 1}),
    "Multinomial": lambda v: ([ramp(2, 3)], {}),
    "NegativeLogLikelihoodLoss": nll, "SoftmaxCrossEntropyLoss": nll,
    "NonMaxSuppression": lambda v: ([ramp(1, 3, 4), ramp(1, 1, 3), Known([2]),
                                     Known([0.5]), Known([0.5])], {}),
    "OneHot": lambda v: ([ramp(2, 3), np.array(4), np.array([0, 1])], {}),
    "OneHotEncoder": lambda v: ([ramp(2, 3)], {"cats_int64s": [0, 1, 2, 3]}),
    "PRelu": lambda v: ([ramp(2, 3), ramp(3) if v >= 7 else ramp(1)], {}),
    "Pad": pads,
    "QLinearConv": quantized((1, 2, 4, 4), (3, 2, 2, 2), ()),
    "QLinearMatMul": quantized((2, 3), (3, 4), ()),
    "QuantizeLinear": lambda v: ([ramp(2, 3), np.array(2), np.array(1)], {}),
    "RMSNormalization": lambda v: ([ramp(2, 3), ramp(3)], {}),
    "RNN": recurrent(1, 1),
    "RandomNormal": lambda v: ([], {"shape": [2, 3]}),
    "RandomUniform": lambda v: ([], {"shape": [2, 3]}),
    "Range": lambda v: ([np.array(1), np.array(9), np.array(2)], {}),
    "ReduceSum": lambda v: reduction(v, 13),
    "Reshape": reshape, "Resize": resize,
    "ReverseSequence": lambda v: ([ramp(3, 2), np.array([2, 3])], {}),
    "RoiAlign": roi_align,
    "RegexFullMatch": lambda v: ([ramp(2, 3)], {"pattern": "[12]"}),
    "RotaryEmbedding": rotary,
    "STFT": lambda v: ([ramp(1, 8, 1), Known(2), ramp(4), Known(4)], {}),
    "Scaler": lambda v: ([ramp(2, 3)], {"offset": [1.0] * 3,
                                        "scale": [2.0] * 3}),
    "Scatter": lambda v: ([ramp(2, 3), np.array([[1, 0, 1]]), ramp(1, 3)], {}),
    "ScatterElements": lambda v: ([ramp(2, 3), np.array([[1, 0, 1]]),
                                   ramp(1, 3)], {}),
    "ScatterND": lambda v: ([ramp(2, 3), np.array([[1]]), ramp(1, 3)], {}),
    "SequenceAt": lambda v: ([[ramp(2, 3), ramp(2, 1)], np.array(1)], {}),
    "SequenceErase": lambda v: ([[ramp(2, 3), ramp(2, 1)], np.array(1)], {}),
    "SequenceInsert": lambda v: ([[ramp(2, 3), ramp(2, 1)], ramp(1, 2),
                                  np.array(1)], {}),
    "SequenceLength": lambda v: ([[ramp(2, 3), ramp(2, 1)]], {}),
    "Slice": slices,
    "SpaceToDepth": lambda v: ([ramp(1, 1, 2, 4)], {"blocksize": 2}),
    "Split": splits,
    "SplitToSequence": lambda v: ([ramp(2, 6), np.array(2)], {"axis": 1}),
    "Squeeze": squeeze,
    "StringConcat": lambda v: ([ramp(2, 3), ramp(3)], {}),
    "StringNormalizer": lambda v: ([ramp(3)], {
        "case_change_action": "LOWER", "stopwords": ["1"]}),
    "SVMClassifier": lambda v: ([ramp(2, 3)], {
        "classlabels_ints": [3, 5], "coefficients": [1.0, -1.0],
        "kernel_type": "LINEAR", "kernel_params": [0.0, 0.0, 0.0],
        "rho": [0.5], "support_vectors": [1.0] * 6,
        "vectors_per_class": [1, 1]}),
    "SVMRegressor": lambda v: ([ramp(2, 3)], {
        "coefficients": [1.0, -1.0], "kernel_type": "LINEAR", "n_supports": 2,
        "kernel_params": [0.0, 0.0, 0.0], "rho": [0.5],
        "support_vectors": [1.0] * 6}),
    "TensorScatter": lambda v: ([ramp(1, 2, 4, 3), ramp(1, 2, 1, 3),
                                 np.array([2])], {}),
    "TfIdfVectorizer": ngrams, "Tile": tile, "TopK": top_k,
    "TreeEnsemble": tree_ensemble,
    "TreeEnsembleClassifier": tree_ensemble_ml("class"),
    "TreeEnsembleRegressor": tree_ensemble_ml("target"),
    "Trilu": lambda v: ([ramp(3, 3), np.array(1)], {}),
    "Unsqueeze": squeeze, "Upsample": upsample,
    "Where": lambda v: ([np.array([True, False, True]), ramp(2, 3), ramp(3)],
                        {}),
    "ZipMap": lambda v: ([ramp(2, 3)], {"classlabels_int64s": [1, 2, 3]}),
}
for name in ("Add", "Sub", "Mul", "Div", "And", "Or", "Xor", "Equal", "Greater",
             "Less", "Pow"):
    CASES[name] = binary
for name in ("Min", "Sum", "Mean"):
    CASES[name] = CASES["Max"]
for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod",
             "SumSquare"):
    CASES["Reduce" + name] = reduction

# attributes that are used or required if a type parameter has a certain type
WITH_TYPE = {
    ("Cast", "T2"): lambda v, t: {"to": t if v >= 6 else
                                  T.DataType.Name(t)},
    ("Resize", "T1"): lambda v, t: (
        {"coordinate_transformation_mode": "tf_crop_and_resize"}
        if t not in NOT_REAL and v > 10 else {}),
    ("CastMap", "T2"): lambda v, t: {
        "cast_to": {T.FLOAT: "TO_FLOAT", T.STRING: "TO_STRING",
                    T.INT64: "TO_INT64"}[t]},
    ("DequantizeLinear", "T3"): lambda v, t: {"output_dtype": t},
    ("EyeLike", "T2"): lambda v, t: {"dtype": t},
    ("Bernoulli", "T2"): lambda v, t: {"dtype": t},
    ("Multinomial", "T2"): lambda v, t: {"dtype": t},
    ("RandomNormal", "T"): lambda v, t: {"dtype": t},
    ("RandomUniform", "T"): lambda v, t: {"dtype": t},
    ("RandomNormalLike", "T2"): lambda v, t: {"dtype": t},
    ("RandomUniformLike", "T2"): lambda v, t: {"dtype": t},
    ("BlackmanWindow", "T2"): lambda v, t: {"output_datatype": t},
    ("HammingWindow", "T2"): lambda v, t: {"output_datatype": t},
    ("HannWindow", "T2"): lambda v, t: {"output_datatype": t},
    ("MelWeightMatrix", "T3"): lambda v, t: {"output_datatype": t},
    ("SequenceEmpty", "S"): lambda v, t: {"dtype": t},
    ("TfIdfVectorizer", "T"): lambda v, t: (
        {"pool_strings": ["1", "2"], "pool_int64s": None}
        if t == T.STRING else {}),
    ("OneHotEncoder", "T"): lambda v, t: (
        {"cats_strings": ["0", "1", "2", "3"], "cats_int64s": None}
        if t == T.STRING else {}),
}
