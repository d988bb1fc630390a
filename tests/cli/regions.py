#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Test the models of `byoc check --dump-regions`: regions.py BYOC

The ONNX checker accepts them, their nodes, names, weights and types are those of
the model, and byoc reads them back with the same results on native kernels, which
run the nodes of each function. Exits with 77 without onnx and NumPy.
"""
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError as why:
    print(f"note: {why} (python3-onnx)")
    sys.exit(77)

BYOC = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
DIGITS = os.path.join(HERE, "../../examples/digits/digits.onnx")
os.environ["BYOC_PLUGIN_PATH"] = os.path.dirname(BYOC)
FLOAT = TensorProto.FLOAT
passed = failed = 0


def same(what, found, expected):
    global passed, failed
    if found == expected:
        passed += 1
    else:
        failed += 1
        print(f"FAILED: {what}: found {found}, expected {expected}")


def node(op, inputs, outputs, name=None, domain=None, **attributes):
    return helper.make_node(op, inputs.split(), outputs.split(), name=name or outputs,
                            domain=domain, **attributes)


def value(name, *shape, dtype=FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def weights(**shapes):
    rng = np.random.default_rng(1)
    return [numpy_helper.from_array(
        rng.standard_normal(shape).astype(np.float32) / 8, name)
        for name, shape in shapes.items()]


def save(path, nodes, inputs, outputs, initializers=(), functions=(), domains=()):
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", 13)] + [helper.make_opsetid(d, 1) for d in domains]
    model = helper.make_model(graph, opset_imports=opsets, functions=list(functions))
    model.ir_version = 8
    onnx.save(model, path)
    return path


def byoc(*args, code=0):
    result = subprocess.run([BYOC, *args], capture_output=True, text=True)
    same(f"{' '.join(args)}: exit code", result.returncode, code)
    if result.returncode != code:
        print(result.stderr)
    return result.stderr if code else result.stdout


def outputs(model):
    with tempfile.TemporaryDirectory() as folder:
        byoc("run", model, "--native", "--seed", "3", "-o", folder)
        return [open(os.path.join(folder, name), "rb").read()
                for name in sorted(os.listdir(folder))]


def graphs(graph):
    """The graph, and the graphs that its nodes have as attributes."""
    yield graph
    for n in graph.node:
        for a in n.attribute:
            if a.HasField("g"):
                yield from graphs(a.g)


def is_region(n):
    return n.domain.startswith("byoc.")


def view(path, *options, full=True):
    """Write the model with regions as functions, compare it with the original, and
    return it."""
    out = path.removesuffix(".onnx") + "-regions.onnx"
    byoc("check", path, "--dump-regions", out, *options)
    old, new = onnx.load(path), onnx.load(out)
    onnx.checker.check_model(new, full_check=full)
    everything = [n for g in graphs(new.graph) for n in g.node]
    inner = [n for f in new.functions if f.domain.startswith("byoc.")
             for n in f.node]
    inner += [n for m in inner for a in m.attribute if a.HasField("g")
              for g in graphs(a.g) for n in g.node]
    same(f"{path}: the nodes",
         sorted(n.name + n.op_type for n in everything + inner if not is_region(n)),
         sorted(n.name + n.op_type for g in graphs(old.graph) for n in g.node))
    same(f"{path}: a function for each call",
         sorted((n.domain, n.op_type) for n in everything + inner if is_region(n)),
         sorted((f.domain, f.name) for f in new.functions
                if f.domain.startswith("byoc.")))
    same(f"{path}: the weights", list(new.graph.initializer),
         list(old.graph.initializer))
    same(f"{path}: inputs and outputs", [list(new.graph.input), list(new.graph.output)],
         [list(old.graph.input), list(old.graph.output)])
    same(f"{path}: results", outputs(out), outputs(path))
    return new


def calls(graph):
    return [n.op_type for n in graph.node]


def value_infos(function):
    """FunctionProto.value_info, which this onnx may not know, as name: type."""
    graph = onnx.GraphProto()
    data = function.SerializeToString()
    at = 0
    while at < len(data):  # all fields of a function are strings and messages
        tag, at = data[at], at + 1
        n, shift = 0, 0
        while True:
            byte, at = data[at], at + 1
            n, shift = n | (byte & 127) << shift, shift + 7
            if byte < 128:
                break
        if tag == 12 << 3 | 2:
            graph.value_info.add().ParseFromString(data[at:at + n])
        at += n
    return {v.name: (v.type.tensor_type.elem_type, [d.dim_value or d.dim_param
                     for d in v.type.tensor_type.shape.dim]) for v in graph.value_info}


def digits_model():
    """The digits model: with a native node between two regions, all in one region,
    and all native."""
    new = view("digits.onnx", "--exclude", "MaxPool")
    same("digits: nodes", calls(new.graph), ["dnnl_0", "MaxPool", "dnnl_1"])
    same("digits: domains", [(s.domain, s.version) for s in new.opset_import],
         [("", 13), ("byoc.dnnl", 1)])
    for f in new.functions:
        same("digits: opsets of a function", list(f.opset_import),
             list(new.opset_import))
    first = value_infos(new.functions[0])
    same("digits: a type inside", first.get("/0/Conv_output_0"), (FLOAT, [64, 32, 8, 8]))
    same("digits: types between", {v.name: [d.dim_value for d in
         v.type.tensor_type.shape.dim] for v in new.graph.value_info},
         {"/3/Relu_output_0": [64, 32, 8, 8], "/4/MaxPool_output_0": [64, 32, 4, 4]})
    same("digits: all in one region", calls(view("digits.onnx").graph), ["dnnl_0"])
    same("digits: no region", calls(view("digits.onnx", "--native").graph),
         calls(onnx.load("digits.onnx").graph))
    # a view of a view: functions of functions
    byoc("check", "digits-regions.onnx", "--dump-regions", "again.onnx")
    again = onnx.load("again.onnx")
    onnx.checker.check_model(again)
    same("digits: a view of a view", outputs("again.onnx"), outputs("digits.onnx"))


def native_node_between_regions():
    """The native Mod reads a value of one region, and another region reads its
    result. byoc removes the Identity between them and folds the constant."""
    save("path.onnx",
         [node("Conv", "x w", "a", pads=[1, 1, 1, 1]), node("Relu", "a", "b"),
          node("Identity", "b", "i"), node("Mod", "i two", "m", fmod=1),
          node("Constant", "", "c", value_floats=[2.0]), node("Mul", "b c", "d"),
          node("Add", "d m", "e"), node("Conv", "e w", "y", pads=[1, 1, 1, 1])],
         [value("x", 1, 4, 8, 8)], [value("y", 1, 4, 8, 8)],
         weights(w=(4, 4, 3, 3), two=(1,)))
    new = view("path.onnx")
    same("path: Mod stays", "Mod" in calls(new.graph), True)
    for n in new.graph.node:
        same(f"path: {n.op_type} reads what comes before", set(n.input) <= {
            "x", "w", "two", *(o for m in new.graph.node for o in m.output)}, True)


def out_of_order():
    """byoc accepts a file whose nodes are in another order; the copy is in order."""
    save("order.onnx", [node("Relu", "a", "b"), node("Conv", "x w", "a"),
                        node("NonZero", "b", "y")],
         [value("x", 1, 4, 8, 8)], [value("y", 4, None, dtype=TensorProto.INT64)],
         weights(w=(4, 4, 3, 3)))
    same("order: nodes", calls(view("order.onnx", full=False).graph),
         ["dnnl_0", "NonZero"])


def nested_graphs():
    """Regions of branches are functions that are called there."""
    def branch(name, op):
        return helper.make_graph(
            [node("Conv", "a w", name + "c"), node(op, name + "c", name)], name, [],
            [value(name, 1, 4, None, None)])
    save("branches.onnx",
         [node("Conv", "x w", "a"), node("ReduceSum", "x", "s", keepdims=0),
          node("Greater", "s zero", "g"),
          node("If", "g", "y", then_branch=branch("t", "Relu"),
               else_branch=branch("f", "Sigmoid"))],
         [value("x", 1, 4, 8, 8)], [value("y", 1, 4, None, None)],
         weights(w=(4, 4, 3, 3)) + [numpy_helper.from_array(np.float32(0), "zero")])
    new = view("branches.onnx")
    chosen = [a.g for n in new.graph.node if n.op_type == "If" for a in n.attribute]
    same("branches: a region in each", [is_region(g.node[0]) for g in chosen],
         [True, True])


def functions_of_the_model():
    """A call of a model's function is in a region if all nodes of the function are;
    other calls stay in the graph."""
    block = helper.make_function(
        "own", "Block", ["v", "k"], ["r"], [node("Conv", "v k", "c"),
                                            node("Relu", "c", "r")],
        [helper.make_opsetid("", 13)])
    mixed = helper.make_function(
        "own", "Mixed", ["v", "k"], ["r"], [node("Conv", "v k", "c"),
                                            node("Mod", "c c", "r", fmod=1)],
        [helper.make_opsetid("", 13)])
    save("own.onnx",
         [node("Block", "x w", "a", domain="own"), node("Mixed", "a w", "y",
                                                        domain="own")],
         [value("x", 1, 4, 8, 8)], [value("y", 1, 4, 4, 4)],
         weights(w=(4, 4, 3, 3)), [block, mixed], ["own"])
    new = view("own.onnx", full=False)
    same("functions: calls", [n.op_type for n in new.graph.node][-1], "Mixed")
    same("functions: in a region", [[n.op_type for n in f.node]
         for f in new.functions if f.domain == "byoc.dnnl"], [["Block"]])


def refused():
    """Requests that byoc refuses, and a model with external weights."""
    for words, args in (
            ("only an ONNX model", [os.path.join(
                HERE, "../partition/annotate_by_hand.ir"), "--dump-regions", "n.onnx"]),
            ("found the model as the output", ["digits.onnx", "--dump-regions",
                                                "digits.onnx"]),
            ("cannot create", ["digits.onnx", "--dump-regions", "none/n.onnx"]),
            ("--dump-regions", ["digits.onnx", "--dump-regions"]),
            ("found --advise with --html", ["digits.onnx", "--advise", "--dump-regions",
                                      "n.onnx"])):
        message = byoc("check", *args, code=2)
        same(f"{args}: {words}", words in message, True)
    same("nothing is written", os.path.exists("n.onnx"), False)
    model = onnx.load("digits.onnx")
    os.makedirs("external")
    onnx.save(model, "external/m.onnx", save_as_external_data=True, location="m.bin",
              size_threshold=0)
    message = byoc("check", "external/m.onnx", "--dump-regions", "m.onnx", code=2)
    same("external weights", "write the copy to the model's folder" in message, True)
    byoc("check", "external/m.onnx", "--dump-regions", "external/n.onnx")
    same("external weights: results", outputs("external/n.onnx"),
         outputs("digits.onnx"))


with tempfile.TemporaryDirectory() as work:
    digits = onnx.load(DIGITS)
    os.chdir(work)
    onnx.save(digits, "digits.onnx")
    for test in (digits_model, native_node_between_regions, out_of_order, nested_graphs,
                 functions_of_the_model, refused):
        test()
    os.chdir("/")
print(f"{passed} passed, {failed} failed")
sys.exit(1 if failed or passed < 60 else 0)
