#!/usr/bin/env python3
"""Writes models of well-known architectures with seeded weights: the operators and shapes that PyTorch's exporter gives
for them, without PyTorch. make_models.py [name ...]; all of them without a name. They go where scripts/models keeps its
models; what this script made already stays.

Weights are lively: activations keep an order of 1 from layer to layer, so that an error anywhere shows at the output."""
import hashlib
import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Net:
    """A graph under construction. Values are names; every method returns the name of its output."""

    def __init__(self, name, seed):
        self.name, self.rng = name, np.random.default_rng(seed)
        self.nodes, self.weights, self.count = [], [], {}

    def op(self, op, *inputs, **attributes):
        k = self.count[op] = self.count.get(op, -1) + 1
        out = "{}_{}".format(op.lower(), k)
        self.nodes.append(helper.make_node(op, list(inputs), [out], name="node_" + out, **attributes))
        return out

    def const(self, array, hint="val"):
        k = self.count["const"] = self.count.get("const", -1) + 1
        name = "{}_{}".format(hint, k)
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def normal(self, shape, std, mean=0.0, hint="weight"):
        return self.const((self.rng.standard_normal(shape, dtype=np.float32) * np.float32(std) + np.float32(mean)), hint)

    def conv(self, x, cin, cout, k=1, stride=1, groups=1, gain=2.0):
        w = self.normal((cout, cin // groups, k, k), np.sqrt(gain / (cin // groups * k * k)))
        b = self.normal((cout,), 0.1, hint="bias")
        return self.op("Conv", x, w, b, group=groups, pads=[k // 2] * 4, strides=[stride] * 2, dilations=[1, 1],
                       kernel_shape=[k, k], auto_pad="NOTSET")

    def linear(self, x, cin, cout, gain=1.0):
        """MatMul and Add, as the exporter writes a Linear on a tensor of rank 3."""
        y = self.op("MatMul", x, self.normal((cin, cout), np.sqrt(gain / cin)))
        return self.op("Add", y, self.normal((cout,), 0.1, hint="bias"))

    def gemm(self, x, cin, cout):
        return self.op("Gemm", x, self.normal((cout, cin), np.sqrt(1.0 / cin)), self.normal((cout,), 0.1, hint="bias"),
                       alpha=1.0, beta=1.0, transA=0, transB=1)

    def layer_norm(self, x, width):
        return self.op("LayerNormalization", x, self.normal((width,), 0.1, 1.0), self.normal((width,), 0.1, hint="bias"),
                       axis=-1, epsilon=1e-12, stash_type=1)

    def model(self, inputs, output, shape):
        self.nodes[-1].output[0] = output  # the last node gives the output
        info = [helper.make_tensor_value_info(n, t, s) for n, t, s in inputs]
        out = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, self.name, info, [out], self.weights)
        m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10, producer_name="make_models")
        onnx.checker.check_model(m)
        return m


def resnet50():
    n = Net("resnet50_seeded", 50)
    x = n.op("Relu", n.conv("x", 3, 64, 7, 2))
    x = n.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], dilations=[1, 1], ceil_mode=0,
             storage_order=0, auto_pad="NOTSET")
    cin = 64
    for stage, (width, blocks) in enumerate([(64, 3), (128, 4), (256, 6), (512, 3)]):
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            y = n.op("Relu", n.conv(x, cin, width))
            y = n.op("Relu", n.conv(y, width, width, 3, stride))
            y = n.conv(y, width, 4 * width, gain=0.2)
            if block == 0:
                x = n.conv(x, cin, 4 * width, 1, stride, gain=1.0)
            x = n.op("Relu", n.op("Add", y, x))
            cin = 4 * width
    x = n.op("ReduceMean", x, n.const(np.array([-1, -2], np.int64)), keepdims=1, noop_with_empty_axes=0)
    x = n.op("Reshape", x, n.const(np.array([1, 2048], np.int64)), allowzero=1)
    n.gemm(x, 2048, 1000)
    return n.model([("x", TensorProto.FLOAT, [1, 3, 224, 224])], "linear", [1, 1000])


def mobilenet_v3_large():
    n = Net("mobilenet_v3_large_seeded", 3)
    x = n.op("HardSwish", n.conv("x", 3, 16, 3, 2))
    cin = 16
    # kernel, expanded, out, squeeze-excitation channels, hard-swish, stride: Howard et al. 2019, table 1
    rows = [(3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 24, 0, 2), (5, 120, 40, 32, 0, 1),
            (5, 120, 40, 32, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1),
            (3, 480, 112, 120, 1, 1), (3, 672, 112, 168, 1, 1), (5, 672, 160, 168, 1, 2), (5, 960, 160, 240, 1, 1),
            (5, 960, 160, 240, 1, 1)]
    axes = n.const(np.array([-1, -2], np.int64))
    for k, wide, cout, squeeze, swish, stride in rows:
        act = "HardSwish" if swish else "Relu"
        y = n.op(act, n.conv(x, cin, wide)) if wide != cin else x
        y = n.op(act, n.conv(y, wide, wide, k, stride, wide))
        if squeeze:
            s = n.op("ReduceMean", y, axes, keepdims=1, noop_with_empty_axes=0)
            s = n.op("Relu", n.conv(s, wide, squeeze))
            s = n.op("HardSigmoid", n.conv(s, squeeze, wide), alpha=1.0 / 6, beta=0.5)
            y = n.op("Mul", s, y)
        y = n.conv(y, wide, cout, gain=1.4)
        x = n.op("Add", y, x) if stride == 1 and cin == cout else y
        cin = cout
    x = n.op("HardSwish", n.conv(x, 160, 960))
    x = n.op("ReduceMean", x, axes, keepdims=1, noop_with_empty_axes=0)
    x = n.op("Reshape", x, n.const(np.array([1, 960], np.int64)), allowzero=1)
    x = n.op("HardSwish", n.gemm(x, 960, 1280))
    n.gemm(x, 1280, 1000)
    return n.model([("x", TensorProto.FLOAT, [1, 3, 224, 224])], "linear", [1, 1000])


def bert_base_layers(layers=2, seq=128, hidden=768, heads=12, vocab=30522):
    """BERT-base's embeddings and its first layers; the mask's construction as the exporter of PyTorch 2 writes it."""
    n = Net("bert_base_layers", 12)
    depth = hidden // heads
    ints = lambda *v: n.const(np.array(v, np.int64))  # noqa: E731
    scalar = lambda v: n.const(np.array(v, np.float32))  # noqa: E731
    positions = n.const(np.arange(seq, dtype=np.int64)[None])
    types = n.op("GatherElements", n.const(np.zeros((1, 512), np.int64)), positions, axis=1)
    x = n.op("Add", n.op("Gather", n.normal((vocab, hidden), 1.0), "input_ids", axis=0),
             n.op("Gather", n.normal((2, hidden), 0.3), types, axis=0))
    x = n.op("Add", x, n.op("Gather", n.normal((512, hidden), 0.3), positions, axis=0))
    x = n.layer_norm(x, hidden)
    index = np.stack([np.zeros((1, 1, 1, seq), np.int64), np.arange(seq, dtype=np.int64).reshape(1, 1, 1, seq)], -1)
    mask = n.op("GatherND", n.op("Cast", "attention_mask", to=TensorProto.BOOL), n.const(index), batch_dims=0)
    mask = n.op("And", n.const(np.ones((1, 1, seq, 1), bool)), mask)
    zero, low, scale = scalar(0.0), scalar(np.finfo(np.float32).min), scalar(depth ** -0.25)
    root2, one, half = scalar(np.sqrt(2.0)), scalar(1.0), scalar(0.5)
    split, merge = ints(1, seq, -1, depth), ints(1, seq, -1)
    rows, columns = ints(-1, seq, depth), ints(1, heads, depth, seq)
    for _ in range(layers):
        q, k, v = [n.op("Transpose", n.op("Reshape", n.linear(x, hidden, hidden), split, allowzero=1), perm=[0, 2, 1, 3])
                   for _ in range(3)]
        k = n.op("Reshape", n.op("Transpose", n.op("Reshape", k, rows, allowzero=0), perm=[0, 2, 1]), columns, allowzero=0)
        q, k = n.op("Mul", q, scale), n.op("Mul", k, scale)
        bias = n.op("Where", mask, zero, low)
        p = n.op("Softmax", n.op("Add", n.op("MatMul", q, k), bias), axis=-1)
        p = n.op("Where", n.op("IsNaN", p), zero, p)
        a = n.op("Reshape", n.op("Transpose", n.op("MatMul", p, v), perm=[0, 2, 1, 3]), merge, allowzero=1)
        x = n.layer_norm(n.op("Add", n.linear(a, hidden, hidden), x), hidden)
        y = n.linear(x, hidden, 4 * hidden)
        y = n.op("Mul", y, n.op("Mul", half, n.op("Add", n.op("Erf", n.op("Div", y, root2)), one)))
        x = n.layer_norm(n.op("Add", n.linear(y, 4 * hidden, hidden), x), hidden)
    return n.model([("input_ids", TensorProto.INT64, [1, seq]), ("attention_mask", TensorProto.INT64, [1, seq])],
                   "last_hidden_state", [1, seq, hidden])


MODELS = {"resnet50_seeded": resnet50, "mobilenet_v3_large_seeded": mobilenet_v3_large, "bert_base_layers": bert_base_layers}


def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError:
        return None


def main(names):
    with open(os.path.abspath(__file__), "rb") as f:  # a change of this script makes its models stale
        mark = "{} onnx {}".format(hashlib.sha256(f.read()).hexdigest(), onnx.__version__)
    folder = os.environ.get("RUTTER_MODELS") or os.path.join(ROOT, ".cache", "models")
    os.makedirs(folder, exist_ok=True)
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        sys.exit("make_models.py: no model named {}; there are {}".format(", ".join(unknown), ", ".join(MODELS)))
    for name in names or MODELS:
        path = os.path.join(folder, name + ".onnx")
        if not os.path.exists(path) or read(path + ".made") != mark:
            onnx.save(MODELS[name](), path + ".part")
            os.replace(path + ".part", path)
            with open(path + ".made", "w") as f:
                f.write(mark)
        print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
