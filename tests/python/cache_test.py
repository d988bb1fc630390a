# SPDX-License-Identifier: Apache-2.0
"""Tests GroupQueryAttention with its caches in one buffer: the past and the present are
bound to the same rows of an array, and a run writes only its new rows."""

import unittest

import models

try:
    import numpy as np
    from onnx import TensorProto, helper
except ImportError:
    models.skip("NumPy or onnx is not installed")

import byoc

HEADS, SHARED, WIDTH = 4, 2, 8
models.folder()


def model_of(present="M"):
    """A model of one GroupQueryAttention. Inputs: q, k, v (B, S, ...) and caches
    (B, 2, M, 8); outputs: y and caches (B, 2, present, 8)."""
    value, f32, i32 = helper.make_tensor_value_info, TensorProto.FLOAT, TensorProto.INT32
    cache = ["B", SHARED, "M", WIDTH]
    inputs = [value(n, f32, ["B", "S", h * WIDTH]) for n, h in
              (("q", HEADS), ("k", SHARED), ("v", SHARED))]
    inputs += [value(n, f32, cache) for n in ("past_key", "past_value")]
    inputs += [value("last", i32, ["B"]), value("all", i32, [])]
    outputs = [value("y", f32, ["B", "S", HEADS * WIDTH])]
    cache[2] = present
    outputs += [value(n, f32, cache) for n in ("present_key", "present_value")]
    node = helper.make_node(
        "GroupQueryAttention", [i.name for i in inputs], [o.name for o in outputs],
        domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED)
    graph = helper.make_graph([node], "g", inputs, outputs)
    return byoc.compile(helper.make_model(graph, opset_imports=[
        helper.make_opsetid("", 17),
        helper.make_opsetid("com.microsoft", 1)]).SerializeToString())


def attention(q, k, v):
    """The last rows of q (b, s, 32) attend to all rows of k and v (b, n, 16)."""
    b, s, n = q.shape[0], q.shape[1], k.shape[1]
    q = q.reshape(b, s, HEADS, WIDTH).transpose(0, 2, 1, 3)
    k, v = (np.repeat(x.reshape(b, n, SHARED, WIDTH).transpose(0, 2, 1, 3),
                      HEADS // SHARED, 1) for x in (k, v))
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(WIDTH)
    scores += np.where(np.arange(n) > n - s + np.arange(s)[:, None], -np.inf, 0)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    y = weights / weights.sum(-1, keepdims=True) @ v
    return y.transpose(0, 2, 1, 3).reshape(b, s, HEADS * WIDTH)


class InPlace(unittest.TestCase):
    def test_steps_in_one_buffer(self):
        model = model_of()
        self.assertEqual({o: i for o, (i, _) in model.in_place.items()},
                         {"present_key": "past_key", "present_value": "past_value"})
        random = np.random.default_rng(1)
        for b in 1, 3:
            keys, values = (np.full((b, SHARED, 9, WIDTH), 77, np.float32)
                            for _ in range(2))
            whole = [np.zeros((b, 0, h * WIDTH), np.float32)
                     for h in (HEADS, SHARED, SHARED)]
            for new in 4, 1, 1, 2, 1:
                step = [random.standard_normal((b, new, x.shape[2]), np.float32)
                        for x in whole]
                whole = [np.concatenate(x, 1) for x in zip(whole, step)]
                n = whole[0].shape[1]
                y = model.run(None, dict(
                    zip("qkv", step), past_key=keys, past_value=values,
                    last=np.full(b, n - 1, np.int32), all=np.array(n, np.int32)),
                    out={"present_key": keys, "present_value": values})[0]
                np.testing.assert_allclose(
                    y, attention(step[0], *whole[1:]), rtol=1e-4, atol=1e-5)
                for cache, all_rows in zip((keys, values), whole[1:]):
                    np.testing.assert_array_equal(
                        cache[:, :, :n], all_rows.reshape(
                            b, n, SHARED, WIDTH).transpose(0, 2, 1, 3))
                    self.assertTrue((cache[:, :, n:] == 77).all())

    def test_full_buffer(self):
        """A tenth row does not fit in nine."""
        cache = np.zeros((1, SHARED, 9, WIDTH), np.float32)
        feeds = {n: np.ones((1, 1, h * WIDTH), np.float32)
                 for n, h in (("q", HEADS), ("k", SHARED), ("v", SHARED))}
        with self.assertRaisesRegex(byoc.Error, "total is 10, expected at most 9"):
            model_of().run(None, dict(
                feeds, past_key=cache, past_value=cache,
                last=np.array([9], np.int32), all=np.array(10, np.int32)))

    def test_present_longer_than_past(self):
        """A present of another length, with strides and in memory of its own."""
        model = model_of("T")
        self.assertEqual(dict(model.in_place), {"present_key": ("past_key", 2),
                                                "present_value": ("past_value", 2)})
        random = np.random.default_rng(2)
        for b in 1, 2:
            buffers = [np.full((b, SHARED, 12, WIDTH), 77, np.float32) for _ in range(2)]
            whole = [np.zeros((b, 0, h * WIDTH), np.float32)
                     for h in (HEADS, SHARED, SHARED)]
            for new in 3, 1, 1, 2:
                step = [random.standard_normal((b, new, x.shape[2]), np.float32)
                        for x in whole]
                old = whole[0].shape[1]
                whole = [np.concatenate(x, 1) for x in zip(whole, step)]
                n = old + new
                feeds = dict(
                    zip("qkv", step), past_key=buffers[0][:, :, :old],
                    past_value=buffers[1][:, :, :old],
                    last=np.full(b, n - 1, np.int32), all=np.array(n, np.int32))
                copied = model.run(None, feeds)
                y = model.run(None, feeds, out={
                    "present_key": buffers[0][:, :, :n],
                    "present_value": buffers[1][:, :, :n]})[0]
                np.testing.assert_allclose(
                    y, attention(step[0], *whole[1:]), rtol=1e-4, atol=1e-5)
                np.testing.assert_array_equal(y, copied[0])
                for cache, dense in zip(buffers, copied[1:]):
                    np.testing.assert_array_equal(cache[:, :, :n], dense)
                    self.assertTrue((cache[:, :, n:] == 77).all())

    def test_sequences_of_two_lengths(self):
        """Sequences of two lengths: zeros follow the shorter one's new row."""
        past = np.ones((2, SHARED, 4, WIDTH), np.float32)
        feeds = {n: np.full((2, 1, h * WIDTH), 2, np.float32)
                 for n, h in (("q", HEADS), ("k", SHARED), ("v", SHARED))}
        present = model_of("T").run(["present_key"], dict(
            feeds, past_key=past, past_value=past,
            last=np.array([4, 1], np.int32), all=np.array(5, np.int32)))[0]
        self.assertEqual(present[0, 0, :, 0].tolist(), [1, 1, 1, 1, 2])
        self.assertEqual(present[1, 0, :, 0].tolist(), [1, 2, 0, 0, 0])


unittest.main()
