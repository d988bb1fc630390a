# SPDX-License-Identifier: Apache-2.0
"""random_operators.py: draws cases of single operators for each-operator.

DRAWS has the operators, in groups; the function of a group, draw_NAME, draws
shapes, attributes and operands for an element type. A case depends only on the
seed, its number and the rows of DRAWS, so that a run of one case repeats it.
"""
import numpy as np

TYPES = {"f": np.float32, "d": np.float64, "h": np.float16, "b": np.uint8,
         "c": np.int8, "w": np.int32, "i": np.int64, "u": np.uint32,
         "r": np.int16, "t": np.uint16, "v": np.uint64, "?": np.bool_}
# sizes of axes, by kind: small, odd, those of layers, long, extreme
SIZES = ((1, 2, 3, 4, 5, 7, 8), (9, 13, 17, 24, 31, 33, 49, 63, 65),
         (64, 80, 96, 128, 192, 197, 256, 300, 384, 500, 512, 768, 1000),
         (1024, 2047, 3000, 4096, 10000, 50000), (1, 3, 7, 17, 1000, 100003))
MIN_ELEMENTS, MAX_ELEMENTS = 1000, 1 << 20  # elements of a tensor


class Draw:
    def __init__(self, seed, number):
        self.random = np.random.RandomState([seed, number])

    def pick(self, choices):
        return choices[self.random.randint(len(choices))]

    def chance(self, percent):
        return self.random.randint(100) < percent

    def shape(self, min_rank=1, max_rank=4):
        """Sizes of min_rank to max_rank axes. If max_rank is 4 and min_rank at most
        2, a quarter of the shapes may have up to 6 axes."""
        if max_rank == 4 and min_rank < 3 and self.chance(25):
            max_rank = 6
        while True:
            dims = [self.pick(self.pick(SIZES)) for _ in
                    range(self.random.randint(min_rank, max_rank + 1))]
            if MIN_ELEMENTS <= np.prod(dims) <= MAX_ELEMENTS:
                return dims

    def axis(self, dims):
        return int(self.random.randint(len(dims)))

    def axes(self, dims):
        """Some axes, at least one."""
        n = 1 if self.chance(60) else self.random.randint(1, len(dims) + 1)
        return np.sort(self.random.permutation(len(dims))[:n])

    def ints(self, below, *dims):
        return self.random.randint(0, max(1, below), dims).astype(np.int64)

    def tensor(self, dims, letter, positive=False):
        if letter in "fdh":
            x = self.random.randn(*dims)
            return (abs(x) + 0.1 if positive else x).astype(TYPES[letter])
        x = self.random.randint(1, 100 if letter != "?" else 3, dims)
        return (x - 1 if letter == "?" else x).astype(TYPES[letter])


# Each draw_ function returns inputs, constants, and a dictionary: attributes, and
# "outputs", "opset" and "domain" as each-operator's case() has them.

def draw_unary(d, op, letter):
    if op == "Clip":
        return [d.tensor(d.shape(), letter)], [
            np.array(n, TYPES[letter]) for n in (-1, 1)], {}
    return [d.tensor(d.shape(), letter, op in ("Log", "Sqrt"))], [], {}


def draw_cast(d, op, letter):
    return [d.tensor(d.shape(), letter)], [], {
        "to": d.pick((1, 2, 3, 6, 7, 9, 10, 11))}


def broadcast(d, dims):
    """The shape of an operand that broadcasts to dims."""
    form = d.pick(("same", "same", "some", "last", "one", "column", "axis"))
    keep = {"same": lambda i: True, "some": lambda i: d.chance(50),
            "column": lambda i: i < len(dims) - 1}
    if form == "axis":
        axis = d.axis(dims)
        keep[form] = lambda i: i == axis
    if form in keep:
        return [n if keep[form](i) else 1 for i, n in enumerate(dims)]
    return dims[-1:] if form == "last" else [1]


def draw_both(d, op, letter):
    """Two operands that broadcast each other."""
    dims = d.shape(2)
    one = [1 if d.chance(40) else n for n in dims]
    other = [n if m == 1 or d.chance(60) else 1 for n, m in zip(dims, one)]
    return [d.tensor(one, letter), d.tensor(other, letter)], [], {}


def draw_binary(d, op, letter):
    dims = d.shape()
    pair = [d.tensor(dims, letter),
            d.tensor(broadcast(d, dims), letter, op == "Pow")]
    if op == "Pow":
        pair[0] = abs(pair[0])
    keep = op in ("Pow", "PRelu", "BitShift") or d.chance(70)
    attrs = {"direction": d.pick(("LEFT", "RIGHT"))} if op == "BitShift" else {}
    return pair if keep else pair[::-1], [], attrs


draw_rare_type = draw_binary  # element types that models seldom use


def draw_variadic(d, op, letter):
    dims = d.shape()
    return [d.tensor(s, letter) for s in [dims] + [
        broadcast(d, dims) for _ in range(d.pick((1, 2, 2, 5)))]], [], {}


def draw_where(d, op, letter):
    dims = d.shape()
    x = [d.tensor(s, t) for s, t in ((broadcast(d, dims), "?"), (dims, letter),
                                     (broadcast(d, dims), letter))]
    return x, [], {}


def draw_quantize(d, op, letter):
    x = d.tensor(d.shape(), "f" if op == "QuantizeLinear" else letter)
    zero = np.array(3, TYPES[letter])
    if d.chance(50):
        return [x], [np.array(0.1, np.float32), zero], {}
    axis = d.axis(x.shape)
    return [x], [d.tensor([x.shape[axis]], "f", True),
                 np.full(x.shape[axis], zero)], {"axis": axis}


def draw_reduce(d, op, letter):
    x = d.tensor(d.shape(), letter, op == "ReduceLogSum")
    return [x], [d.axes(x.shape)], {"keepdims": d.pick((0, 1))}


def draw_softmax(d, op, letter):
    dims = d.shape()
    return [d.tensor(dims, letter)], [], {"axis": d.axis(dims)}


draw_arg = draw_softmax


def draw_cumsum(d, op, letter):
    dims = d.shape()
    return [d.tensor(dims, letter)], [np.array(d.axis(dims))], {
        "reverse": d.pick((0, 0, 1)), "exclusive": d.pick((0, 0, 1))}


def draw_topk(d, op, letter):
    dims = d.shape()
    axis = d.axis(dims)
    n = dims[axis]
    k = min(n, d.pick((1, 3, 5, 10, 100, max(1, n // 2), n)))
    return [d.tensor(dims, letter)], [np.array([k])], {
        "outputs": 2, "axis": axis, "largest": d.pick((0, 1, 1))}


def draw_normalization(d, op, letter):
    dims = d.shape(2)
    axis = d.pick((len(dims) - 1, len(dims) - 1, d.axis(dims)))
    scale = [d.tensor(dims[axis:], letter)]
    if op == "LayerNormalization":
        return [d.tensor(dims, letter)], scale * d.pick((1, 2)), {"axis": axis}
    if op == "RMSNormalization":
        return [d.tensor(dims, letter)], scale, {"axis": axis, "opset": 23}
    # LpNormalization, MeanVarianceNormalization
    if op == "LpNormalization":
        return [d.tensor(dims, letter)], [], {"axis": axis,
                                              "p": d.pick((1, 2))}
    return [d.tensor(dims, letter)], [], {
        "axes": [int(a) for a in d.axes(dims)]}


def draw_channel_normalization(d, op, letter):
    dims = d.shape(3)
    parts = [n for n in (1, 2, 4, 8, 32) if dims[1] % n == 0]
    scale = [d.tensor([dims[1]], letter) for _ in range(2)]
    if op == "BatchNormalization":
        scale += [scale[0], abs(scale[1]) + TYPES[letter](0.1)]
    attrs = {"num_groups": d.pick(parts), "opset": 21}
    return [d.tensor(dims, letter)], scale, attrs if op[0] == "G" else {}


def draw_transpose(d, op, letter):
    dims = d.shape(2)
    return [d.tensor(dims, letter)], [], {
        "perm": [int(a) for a in d.random.permutation(len(dims))]}


def draw_concat(d, op, letter):
    dims = d.shape()
    axis, x = d.axis(dims), []
    for _ in range(d.pick((2, 3, 12))):
        dims[axis] = max(1, dims[axis] // d.pick((1, 1, 2)))
        x.append(d.tensor(dims, letter))
    return x, [], {"axis": axis}


def draw_split(d, op, letter):
    dims = d.shape()
    axis = d.axis(dims)
    n = d.pick([n for n in (1, 2, 3, 4, 7, 12) if n <= dims[axis]])
    sizes = np.diff(np.linspace(0, dims[axis], n + 1).astype(np.int64))
    return [d.tensor(dims, letter)], [sizes], {"outputs": n, "axis": axis}


def draw_slice(d, op, letter):
    dims = d.shape()
    step = np.array([d.pick((1, 1, 1, 2, 3, -1)) for _ in dims])
    first = np.array([n // 8 if d.chance(50) else 0 for n in dims])
    end = np.array(dims)
    return [d.tensor(dims, letter)], [
        np.where(step < 0, end - 1, first), np.where(step < 0, -1 - end, end),
        np.arange(len(dims)), step], {}


def draw_pad(d, op, letter):
    dims = d.shape()
    pads = [d.pick((0, 0, 1, 2, 3)) if n > 3 else 0 for n in dims * 2]
    return [d.tensor(dims, letter)], [np.array(pads)], {
        "mode": d.pick(("constant", "reflect", "edge"))}


def draw_repeat(d, op, letter):
    dims = d.shape()
    if op == "Tile":
        times = np.array([d.pick((1, 1, 2, 3)) for _ in dims])
        if np.prod(dims) * np.prod(times) > 4 * MAX_ELEMENTS:
            return draw_repeat(d, op, letter)
        return [d.tensor(dims, letter)], [times], {}
    return [d.tensor(broadcast(d, dims), letter)], [np.array(dims)], {}


def draw_gather(d, op, letter):
    dims = d.shape()
    axis = d.axis(dims)
    if op == "GatherND":
        at = np.stack([d.ints(n, dims[0], 5) for n in dims[:axis + 1]], -1)
        return [d.tensor(dims, letter), at], [], {}
    x = d.tensor(dims, letter)
    max_indices = max(1, min(1000, MAX_ELEMENTS * dims[axis] // x.size))
    if op == "Gather":
        return [x, d.ints(dims[axis], d.pick((1, 7, max_indices)))], [], {
            "axis": axis}
    dims = [n if i == axis or d.chance(70) else -(-n // 2)
            for i, n in enumerate(dims)]
    return [x, d.ints(x.shape[axis], *dims)], [], {"axis": axis}


def draw_scatter(d, op, letter):
    (x, at), _, attrs = draw_gather(
        d, op.replace("Scatter", "Gather"), letter)
    rest = at.shape if attrs else at.shape[:-1] + x.shape[at.shape[-1]:]
    if np.prod(rest) > 4 * MAX_ELEMENTS:
        return draw_scatter(d, op, letter)
    attrs["reduction"] = d.pick(("none", "none", "add", "max", "min", "mul"))
    return [x, at, d.tensor(rest, letter)], [], attrs


def draw_other(d, op, letter):
    dims = d.shape(2)
    x = d.tensor(dims, letter)
    if op == "OneHot":
        n = d.pick((2, 10, 50))
        at = d.ints(n, *dims)[..., :max(1, MAX_ELEMENTS // n // x.size * dims[-1])]
        return [at], [np.array(n), np.array([0, 1], TYPES[letter])], {
            "axis": d.pick((-1, 0))}
    if op == "ReverseSequence":
        return [x], [d.ints(dims[0], dims[1]) + 1], {
            "time_axis": 0, "batch_axis": 1}
    if op == "Compress":
        axis = d.axis(dims)
        return [x], [d.random.rand(dims[axis]) > 0.5], {"axis": axis}
    if op == "NonZero":
        return [x * (x > d.pick((0, 1)))], [], {}
    if op == "Trilu":
        return [x], [np.array(d.pick((0, 0, 1, -3, 20)))], {
            "upper": d.pick((0, 1))}
    if op == "Unique":
        x = d.ints(d.pick((2, 99, 1 << 40)), *dims).astype(TYPES[letter])
        return [x], [], {"outputs": 4, "sorted": d.pick((0, 1))}
    if op == "Einsum":
        n = d.pick((3, 16, 40))
        return [x, d.tensor([dims[-1], n], letter)], [], {
            "equation": "...j,jk->" + d.pick(("...k", "k..."))}
    return [x], [], {}


def image(d, letter):
    while True:
        dims = [d.pick((1, 1, 2, 4)), d.pick((1, 3, 16, 17, 32, 64, 256)),
                d.pick((7, 13, 14, 28, 33, 56, 112)),
                d.pick((7, 13, 14, 28, 33, 56, 112))]
        if np.prod(dims) <= MAX_ELEMENTS:
            return d.tensor(dims, letter)


def draw_pool(d, op, letter):
    x = image(d, letter)
    if op.startswith("Global"):
        return [x], [], {}
    n = d.pick((2, 3, 3, 5))
    attrs = {"p": d.pick((1, 2))} if op == "LpPool" else {}
    if op == "MaxPool" and d.chance(20):
        attrs = {"dilations": [2, 2]}
    if op == "AveragePool":
        attrs = {"count_include_pad": d.pick((0, 1))}
    return [x], [], {"kernel_shape": [n, n if d.chance(80) else 1],
                     "pads": [d.pick((0, n // 2)), 0] * 2,
                     "strides": [d.pick((1, 2, 3, n)), d.pick((1, 2, 3, n))],
                     **attrs}


def draw_space(d, op, letter):
    x = image(d, letter)
    b, (n, c, h, w) = d.pick((2, 2, 4)), x.shape
    dims = [n, max(1, c // 4) * b * b, h, w] if op[0] == "D" else [
        n, c, h // b * b, w // b * b]
    return [d.tensor(dims, letter)], [], {"blocksize": b}


def draw_resize(d, op, letter):
    x = image(d, letter)
    scale = d.pick(((2, 2), (1.5, 1.3), (0.5, 0.7), (3, 1), (0.3, 0.3)))
    mode = d.pick(("nearest", "linear", "cubic"))
    attrs = {"antialias": 1} if mode != "nearest" and d.chance(20) else {}
    return [x], [None, np.array([1, 1, *scale], np.float32)], {
        "mode": mode, "coordinate_transformation_mode": d.pick(
            ("half_pixel", "half_pixel", "align_corners", "asymmetric")),
        **attrs}


def draw_conv(d, op, letter):
    x = image(d, letter)
    c, k = x.shape[1], d.pick((1, 3, 3, 5))
    out, group = d.pick(((8, 1), (32, 1), (64, 1), (c, c)))
    attrs = {"strides": [d.pick((1, 1, 2))] * 2, "group": group,
            "pads": [k // 2] * 4}
    return [x], [d.tensor([out, c // group, k, k], letter)], attrs


def draw_matmul(d, op, letter):
    m, n, k = [d.pick((1, 1, 3, 8, 17, 31, 64, 100, 256, 768))
               for _ in range(3)]
    while m * n * k < MIN_ELEMENTS:
        m *= 5
    if op == "Gemm":
        return [d.tensor([m, k], letter)], [
            d.tensor([n, k], letter), d.tensor([n], letter)], {"transB": 1}
    if op == "MatMulInteger":
        return [d.tensor([m, k], letter)], [d.tensor([k, n], letter)], {}
    b = d.pick((1, 1, 4, 12))
    x = d.tensor([b, m, k], letter)
    return ([x, d.tensor([b, k, n], letter)], [], {}) if d.chance(50) else (
        [x], [d.tensor([k, n], letter)], {})


def draw_roi(d, op, letter):
    x, n = image(d, letter), d.pick((1, 20, 100))
    rois = abs(d.tensor([n, 4], "f")) * np.float32(x.shape[2] / 2)
    rois[:, 2:] += rois[:, :2]
    if op == "RoiAlign":
        return [x], [rois, np.zeros(n, np.int64)], {
            "opset": 16, "output_height": 7, "output_width": d.pick((1, 7, 14)),
            "sampling_ratio": d.pick((0, 1, 2)), "mode": d.pick(("avg", "max"))}
    rois = np.concatenate([np.zeros([n, 1], np.float32), rois], 1)
    return [x], [np.round(rois)], {"pooled_shape": [7, 7]}


def draw_random(d, op, letter):
    """Operators that draw numbers themselves."""
    if op == "Multinomial":
        return [d.tensor([d.pick((1, 100)), d.pick((3, 1000))], letter)], [], {
            "sample_size": d.pick((1, 100)), "seed": 1.0}
    return [abs(d.tensor(d.shape(), letter)) % 1], [], {"seed": 1.0}


def words(d, *dims):
    """Strings with at most 99 distinct values."""
    return np.array(["w%d" % k for k in d.ints(99, *dims).flat],
                    object).reshape(dims)


def draw_grams(d, letter, n):
    """Counts of pairs and single items; the letter f stands for strings."""
    rows = d.pick((1, 10))
    # ONNX Runtime refuses a pool with two equal n-grams
    pairs = d.random.choice(99 * 99, 200, replace=False)
    pool = list(range(99)) + [int(k) for pair in pairs
                              for k in divmod(pair, 99)]
    texts = letter == "f"
    x = words(d, rows, n // rows) if texts else d.ints(120, rows, n // rows)
    return [x], [], {
        "mode": d.pick(("TF", "TFIDF")), "min_gram_length": 1,
        "max_gram_length": 2, "max_skip_count": d.pick((0, 2)),
        "ngram_counts": [0, 99], "ngram_indexes": list(range(299)),
        "weights": [0.5] * 299,
        **({"pool_strings": ["w%d" % k for k in pool]} if texts else
           {"pool_int64s": pool})}


def draw_texts(d, op, letter):
    """Operators on strings."""
    n = d.pick((17, 1000, 20000))
    x, known = words(d, n), ["w%d" % k for k in range(99)]
    ml = {"domain": "ai.onnx.ml"}
    return {
        "Cast": lambda: ([d.tensor([n], letter)], [], {"to": 8}),
        "Concat": lambda: ([x, words(d, n)], [], {"axis": 0}),
        "Equal": lambda: ([x, words(d, d.pick((1, n)))], [], {}),
        "Expand": lambda: ([x[:, None].copy()], [np.array([n, 7])], {}),
        "Gather": lambda: ([x, d.ints(n, 1000)], [], {}),
        "LabelEncoder": lambda: ([x], [], {
            "keys_strings": known, "values_int64s": list(range(99)), **ml}),
        "OneHotEncoder": lambda: ([x], [], {"cats_strings": known, **ml}),
        "TfIdfVectorizer": lambda: draw_grams(d, letter, n),
        "Transpose": lambda: ([words(d, 7, n)], [], {"perm": [1, 0]}),
        "Unique": lambda: ([x], [], {"outputs": 4}),
        "Where": lambda: ([d.tensor([n], "?"), x, words(d, n)], [], {}),
    }[op]()


def draw_features(d, op, letter):
    """Operators of ai.onnx.ml on rows of features."""
    dims = d.shape(2, 2)
    if op == "LabelEncoder":
        n = d.pick((5, 64, 5000))  # keys
        keys = d.random.permutation(2 * n)[:n].astype(np.float32) / 4
        x = keys[d.ints(n, *dims)]
        if d.chance(50):  # half of the elements are no keys
            x += 7 * d.ints(2, *dims)
        return [x.astype(TYPES[letter])], [], {
            "domain": "ai.onnx.ml", "keys_floats": keys.tolist(),
            "values_floats": [float(k) for k in range(n)]}
    n, targets = dims[1], d.pick((1, 3, 10))
    some = [float(k) for k in d.random.randn(max(dims[1] * targets, targets))]
    linear = {"coefficients": some, "intercepts": some[:targets]}
    attrs = {
        "Binarizer": {"threshold": 0.5},
        "Imputer": {"imputed_value_floats": some[:n],
                    "replaced_value_float": 0.0},
        "LinearClassifier": {"classlabels_ints": list(range(targets)),
                             "outputs": 2, **linear},
        "LinearRegressor": {"targets": targets, **linear},
        "Normalizer": {"norm": d.pick(("L1", "L2", "MAX"))},
        "Scaler": {"scale": some[:n], "offset": some[:n]},
    }[op]
    return [d.tensor(dims, letter)], [], {"domain": "ai.onnx.ml", **attrs}


def draw_contrib(d, op, letter):
    """Operators of com.microsoft."""
    dims = d.shape(3, 3)
    x, n = d.tensor(dims, letter), dims[-1]
    rows = [d.tensor([n], letter) for _ in range(3)]
    attrs = {"domain": "com.microsoft"}
    if op == "QuickGelu":
        return [x], [], attrs
    if op in ("FastGelu", "BiasGelu"):
        return [x], rows[:1], attrs
    if op == "SkipLayerNormalization":
        return [x, d.tensor(dims, letter)], rows[:d.pick((1, 2, 3))], attrs
    if op == "SkipSimplifiedLayerNormalization":
        return [x, d.tensor(dims, letter)], rows[:1], attrs
    attrs["transB"] = d.pick((0, 1)) # FusedMatMul
    y = [dims[0], 17, n] if attrs["transB"] else [dims[0], n, 17]
    return [x, d.tensor(y, letter)], [], {"alpha": 0.5, **attrs}


def draw_rare_contrib(d, op, letter):
    """Operators of com.microsoft that few models have."""
    attrs = {"domain": "com.microsoft"}
    if op == "Inverse":
        n = d.pick((3, 4, 32))
        return [d.tensor([d.pick((1, 100, 1000)), n, n], letter)], [], attrs
    if op == "GridSample":
        x = image(d, letter)
        at = d.random.rand(x.shape[0], 28, 28, 2) * 2 - 1
        return [x, at.astype(TYPES[letter])], [], attrs
    if op == "Trilu":
        return [d.tensor(d.shape(2), letter)], [], attrs
    if op == "MatMulBnb4":
        k, n = d.pick((64, 256, 768)), d.pick((64, 100, 768))
        codes = d.random.randint(0, 256, k * n // 2).astype(np.uint8)
        return [d.tensor([d.pick((1, 17)), k], letter)], [
            codes, d.tensor([k * n // 64], letter, True)], {
                "K": k, "N": n, "block_size": 64, "quant_type": 1, **attrs}
    # DynamicQuantizeLSTM
    size, width = d.pick((32, 128, 256)), d.pick((32, 128))
    w, r = [d.random.randint(0, 256, (1, n, 4 * size)).astype(np.uint8)
            for n in (width, size)]
    scale = np.full([1], 0.01, np.float32)
    zero = np.full([1], 128, np.uint8)
    return [d.tensor([d.pick((1, 17, 64)), d.pick((1, 4)), width], "f")], [
        w, r, None, None, None, None, None, scale, zero, scale, zero], {
            "hidden_size": size, **attrs}


def draw_bytes(d, op, letter):
    """Operators of com.microsoft on quantised tensors."""
    attrs = {"domain": "com.microsoft"}
    scale, zero = np.array(0.05, np.float32), np.array(3, TYPES[letter])
    if op.endswith("Pool"):
        rest = {} if "Global" in op else {
            "kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}
        return [image(d, letter)], [scale, zero] * 2, {
            "channels_last": 0, **rest, **attrs}
    if op == "QGemm":
        m, n, k = [d.pick((1, 17, 64, 256, 768)) for _ in range(3)]
        return [d.tensor([m, k], letter)], [
            scale, zero, d.tensor([k, n], letter), scale, zero, None, scale,
            zero], attrs
    dims = d.shape()
    if op in ("QLinearAdd", "QLinearMul"):
        return [d.tensor(dims, letter)], [
            scale, zero, d.tensor(broadcast(d, dims), letter), scale, zero,
            scale, zero], attrs
    return [d.tensor(dims, letter)], [scale, zero] * 2, attrs


def draw_heads(d, op, letter):
    """Operators of transformers since opset 23."""
    batch, heads, time = d.pick((1, 1, 4)), d.pick((2, 8, 12)), d.pick(
        (1, 17, 64, 128))
    size = d.pick((32, 64, 80))
    dims = [batch, heads, time, size]
    if op == "RotaryEmbedding":
        return [d.tensor(dims, letter)] + [
            d.tensor([batch, time, size // 2], letter) for _ in range(2)], [], {
                "opset": 23, "interleaved": d.pick((0, 1))}
    keys = [batch, d.pick((heads, heads // 2)), d.pick((time, 200)), size]
    return [d.tensor(dims, letter), d.tensor(keys, letter),
            d.tensor(keys, letter)], [], {"opset": 23,
                                          "is_causal": d.pick((0, 1))}


# group: operators with the letters of their element types
DRAWS = {
    "unary": ("Relu Exp Tanh Erf Sigmoid Log Sqrt Sin Gelu HardSwish Softplus "
              "Floor Mish Neg:fwi Abs:fwi Not:? Clip:f Sign:fwi Round:fd "
              "Ceil:fd Reciprocal:fd Cos:f Tan:f Atan:f Sinh:f Asinh:f "
              "LeakyRelu:f Elu:f Selu:f Celu:f Softsign:f HardSigmoid:f "
              "ThresholdedRelu:f IsNaN:fd IsInf:fd BitwiseNot:wi", "fh"),
    "cast": ("Cast", "fhbwi?d"),
    "binary": ("Add:fhdwi Sub:fwi Mul:fhwi Div:fwi Pow Max:fwi Min:fwi Mod:wi "
               "Equal:fwi? Less:fwi Greater:fi And:? Or:? Xor:? PRelu "
               "LessOrEqual:fd BitwiseAnd:wi BitwiseXor:wi BitShift:u", "f"),
    "variadic": ("Sum:fd Mean:f Max:fwi Min:fd", "f"),
    "where": ("Where", "fbwid"),
    "quantize": ("QuantizeLinear DequantizeLinear", "bc"),
    "reduce": ("ReduceSum:ffhwid ReduceMean:ffhwid ReduceMax:ffhwibcd "
               "ReduceMin:ffhwibcd ReduceProd:fwi ReduceL1:fw ReduceL2:fd "
               "ReduceSumSquare:fwd ReduceLogSum ReduceLogSumExp", "f"),
    "softmax": ("Softmax LogSoftmax Hardmax:f", "fffhd"),
    "arg": ("ArgMax:ffwibc ArgMin:ffwi", "f"),
    "cumsum": ("CumSum", "ffwid"),
    "topk": ("TopK", "ffwidb"),
    "normalization": ("LayerNormalization:ffh RMSNormalization LpNormalization "
              "MeanVarianceNormalization", "f"),
    "channel_normalization": ("InstanceNormalization GroupNormalization BatchNormalization",
                 "f"),
    "transpose": ("Transpose", "fhbi"),
    "concat": ("Concat", "fhbi"),
    "split": ("Split", "fhi"),
    "slice": ("Slice", "fbi"),
    "pad": ("Pad", "fi"),
    "repeat": ("Tile Expand", "fbi"),
    "gather": ("Gather GatherElements GatherND", "fbi"),
    "scatter": ("ScatterElements ScatterND", "fidw"),
    "other": ("OneHot:fi ReverseSequence Compress:fi NonZero:fi Trilu:fi "
              "Unique:fib Einsum:fd", "f"),
    "pool": ("MaxPool:ffbcd AveragePool LpPool GlobalAveragePool "
             "GlobalMaxPool", "f"),
    "space": ("DepthToSpace SpaceToDepth", "f"),
    "resize": ("Resize", "f"),
    "conv": ("Conv", "f"),
    "matmul": ("MatMul:ffhdwi Gemm:ffd MatMulInteger:bc", "f"),
    "contrib": ("FastGelu BiasGelu QuickGelu SkipLayerNormalization "
                "SkipSimplifiedLayerNormalization FusedMatMul", "f"),
    "rare_contrib": ("Inverse:fd Trilu:fi GridSample MatMulBnb4 "
                     "DynamicQuantizeLSTM", "f"),
    "bytes": ("QLinearGlobalAveragePool QLinearAveragePool QGemm QLinearAdd "
              "QLinearMul QLinearSigmoid QLinearLeakyRelu", "bc"),
    "heads": ("Attention RotaryEmbedding", "f"),
    "rare_type": ("Add:bcrtv Mul:bctv Sub:dhb Div:dhbc Max:dhbc Min:hb Less:bd "
               "Equal:bd Greater:dw Mod:bc Pow:d PRelu:dh BitShift:bv "
               "BitwiseOr:bcr", "f"),
    "both": ("Add:fhdwi Sub:fdwi Mul:fdwi Div:fdwi Max:fdwi Pow Equal:fwi? "
             "Less:fwid And:? BitwiseAnd:wi Mod:wi", "f"),
    "roi": ("RoiAlign MaxRoiPool", "f"),
    "random": ("Bernoulli Multinomial RandomNormalLike RandomUniformLike", "f"),
    "texts": ("Cast Concat Equal Expand Gather LabelEncoder OneHotEncoder "
              "TfIdfVectorizer Transpose Unique Where", "fi"),
    "features": ("Binarizer Imputer LabelEncoder LinearClassifier LinearRegressor "
                 "Normalizer Scaler", "f"),
}


def operators(names, types=""):
    """(group, operator, letters) for each operator that `names`, of operators
    and groups, names; for all operators if there are none. `types` are letters
    that replace those of operators on float32."""
    rows = []
    for group, (row, default_letters) in DRAWS.items():
        for entry in row.split():
            op, _, letters = entry.partition(":")
            if not names or op in names or group in names:
                letters = letters or default_letters
                if not types or "f" in letters:
                    rows.append((group, op, types or letters))
    return rows


def draw(seed, number, rows):
    """A case, as each-operator's case() makes it."""
    d = Draw(seed, number)
    group, op, letters = d.pick(rows)
    inputs, constants, attrs = globals()["draw_" + group](
        d, op, d.pick(letters))
    rest = [attrs.pop(name, value) for name, value in
            (("outputs", 1), ("opset", 20), ("domain", ""))]
    return (op, inputs, constants, *rest, attrs)
