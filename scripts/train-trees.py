#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Train the tree ensemble in examples/trees.

The script trains gradient boosted trees of scikit-learn on its handwritten digits
(1,797 images of 8x8, shuffled with a fixed seed; the last 448 are held out), and
writes them as one TreeEnsembleClassifier. It writes the held-out images and
scikit-learn's own results beside the model.

Needs the distribution's python3-sklearn and python3-onnx. Not needed to build or
run anything: its output is in the repository.

    scripts/train-trees.py examples/trees
"""
import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier

HELD_OUT = 448


def threshold(value):
    """The largest float32 not above a threshold: x <= it means the same for every
    float32 x."""
    near = np.float32(value)
    return float(near if near <= value else np.nextafter(near, np.float32(-np.inf)))


def attributes(model):
    """The ONNX node's attributes: all nodes of all trees, and weights of leaves."""
    a = {"nodes_" + name: [] for name in (
        "treeids", "nodeids", "featureids", "values", "modes", "truenodeids",
        "falsenodeids")}
    a.update({"class_" + name: [] for name in
              ("treeids", "nodeids", "ids", "weights")})
    for number, estimator in enumerate(model.estimators_.ravel()):
        tree = estimator.tree_
        for node in range(tree.node_count):
            leaf = tree.children_left[node] < 0
            a["nodes_treeids"].append(number)
            a["nodes_nodeids"].append(node)
            a["nodes_modes"].append("LEAF" if leaf else "BRANCH_LEQ")
            a["nodes_featureids"].append(0 if leaf else int(tree.feature[node]))
            a["nodes_values"].append(
                0.0 if leaf else threshold(tree.threshold[node]))
            a["nodes_truenodeids"].append(
                0 if leaf else int(tree.children_left[node]))
            a["nodes_falsenodeids"].append(
                0 if leaf else int(tree.children_right[node]))
            if leaf:
                a["class_treeids"].append(number)
                a["class_nodeids"].append(node)
                a["class_ids"].append(number % len(model.classes_))
                a["class_weights"].append(
                    float(model.learning_rate * tree.value[node, 0, 0]))
    return a


def exported(model):
    """The ONNX model of scikit-learn's classifier."""
    prior = np.log(model.init_.class_prior_)
    node = helper.make_node(
        "TreeEnsembleClassifier", ["image"], ["label", "probability"],
        name="trees", domain="ai.onnx.ml", post_transform="SOFTMAX",
        classlabels_int64s=model.classes_.tolist(), base_values=prior.tolist(),
        **attributes(model))
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node], "trees", [value("image", TensorProto.FLOAT, ["N", 64])],
        [value("label", TensorProto.INT64, ["N"]),
         value("probability", TensorProto.FLOAT, ["N", 10])])
    return helper.make_model(
        graph, producer_name="train-trees.py", ir_version=8, opset_imports=[
            helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 3)])


def main() -> int:
    out = pathlib.Path(sys.argv[1])
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(7).permutation(len(labels))
    images, labels = images[order].astype(np.float32), labels[order]
    model = GradientBoostingClassifier(n_estimators=30, max_depth=3, learning_rate=0.3,
                                       subsample=0.7, random_state=7)
    model.fit(images[:-HELD_OUT], labels[:-HELD_OUT])
    held_out = images[-HELD_OUT:]
    print(f"held-out accuracy {model.score(held_out, labels[-HELD_OUT:]):.4f}")
    out.mkdir(parents=True, exist_ok=True)
    onnx.save(exported(model), str(out / "trees.onnx"))
    np.save(out / "input_0.npy", held_out)
    np.save(out / "output_0.npy", model.predict(held_out).astype(np.int64))
    np.save(out / "output_1.npy", model.predict_proba(held_out).astype(np.float32))
    np.save(out / "labels.npy", labels[-HELD_OUT:].astype(np.int64))
    return 0


if __name__ == "__main__":
    sys.exit(main())
