#!/usr/bin/python3
"""Writes a model of GPT-2's shape with random weights: past_key_values in, present out, embedding and head tied.

    bench/gpt2.py OUT.onnx [--layers 12] [--width 768] [--heads 12] [--vocab 50257] [--context 1024] [--hidden 4]
                           [--external] [--seed 1] [--data OUT.npz --samples 16 --tokens 64]

12 layers of width 768 are the 124 M parameters of GPT-2. Weights go to OUT.onnx.data when they are over 2 GB (or with
--external), tensor by tensor, so that a model of any size needs the memory of its largest tensor. --data also writes
token numbers to calibrate and evaluate with.
"""
import argparse
import os

import numpy as np
import onnx
from onnx import TensorProto, helper

F32, I64 = TensorProto.FLOAT, TensorProto.INT64


class Writer:
    """Nodes, and weights that go to a file as they are made."""

    def __init__(self, path, external, seed):
        self.path, self.nodes, self.weights, self.rng = path, [], [], np.random.default_rng(seed)
        self.bytes, self.parameters = 0, 0
        self.data = open(path + ".data", "wb") if external else None

    def put(self, name, array):
        t = TensorProto(name=name, data_type=I64 if array.dtype == np.int64 else F32, dims=array.shape)
        self.parameters += array.size
        if self.data and array.nbytes >= 1024:
            self.data.write(b"\0" * (-self.bytes % 4096))
            self.bytes += -self.bytes % 4096
            t.data_location = TensorProto.EXTERNAL
            for key, value in (("location", os.path.basename(self.path) + ".data"), ("offset", self.bytes),
                               ("length", array.nbytes)):
                t.external_data.add(key=key, value=str(value))
            self.data.write(memoryview(array).cast("B"))
            self.bytes += array.nbytes
        else:
            t.raw_data = array.tobytes()
        self.weights.append(t)
        return name

    def random(self, name, *shape, scale=0.02):
        array = self.rng.standard_normal(shape, dtype=np.float32)
        array *= np.float32(scale)
        return self.put(name, array)

    def ints(self, name, *values):
        return self.put(name, np.array(values, np.int64))

    def op(self, kind, inputs, name, **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name


def mask(w):
    """What is added to scores: 0 where a token may look, a large negative number where not."""
    w.put("zero", np.array(0, np.int64))
    w.put("one", np.array(1, np.int64))
    tokens = w.op("Gather", [w.op("Shape", ["input_ids"], "ids_shape"), "one"], "tokens", axis=0)
    total = w.op("Gather", [w.op("Shape", ["attention_mask"], "mask_shape"), "one"], "total", axis=0)
    past = w.op("Sub", [total, tokens], "past")
    rows = w.op("Unsqueeze", [w.op("Range", [past, total, "one"], "rows"), w.ints("axis1", 1)], "rows_column")
    columns = w.op("Range", ["zero", total, "one"], "columns")
    later = w.op("Cast", [w.op("Greater", [columns, rows], "later")], "later_f", to=F32)
    seen = w.op("Cast", [w.op("Unsqueeze", ["attention_mask", w.ints("axes12", 1, 2)], "mask4")], "seen_f", to=F32)
    hidden = w.op("Sub", [w.put("one_f", np.array(1, np.float32)), seen], "hidden_f")
    return w.op("Mul", [w.op("Add", [later, hidden], "blocked"), w.put("low", np.array(-1e9, np.float32))], "bias4")


def norm(w, x, name, width):
    scale = w.put(name + ".weight", np.ones(width, np.float32))
    return w.op("LayerNormalization", [x, scale, w.put(name + ".bias", np.zeros(width, np.float32))], name, axis=-1,
                epsilon=1e-5)


def linear(w, x, name, rows, columns, scale=0.02):
    y = w.op("MatMul", [x, w.random(name + ".weight", rows, columns, scale=scale)], name + ".matmul")
    return w.op("Add", [y, w.random(name + ".bias", columns)], name)


def heads(w, x, name):
    return w.op("Transpose", [w.op("Reshape", [x, "split_shape"], name + ".split")], name, perm=[0, 2, 1, 3])


def block(w, x, i, a):
    n, width = f"h.{i}", a.width
    y = linear(w, norm(w, x, n + ".ln_1", width), n + ".attn.c_attn", width, 3 * width)
    q, k, v = (f"{n}.{part}" for part in "qkv")
    w.nodes.append(helper.make_node("Split", [y], [q, k, v], name=n + ".qkv", axis=-1))
    q = heads(w, q, n + ".query")
    k = w.op("Concat", [f"past_key_values.{i}.key", heads(w, k, n + ".key")], f"present.{i}.key", axis=2)
    v = w.op("Concat", [f"past_key_values.{i}.value", heads(w, v, n + ".value")], f"present.{i}.value", axis=2)
    score = w.op("MatMul", [q, w.op("Transpose", [k], n + ".keys", perm=[0, 1, 3, 2])], n + ".scores")
    score = w.op("Add", [w.op("Div", [score, "root"], n + ".scaled"), "bias4"], n + ".masked")
    y = w.op("MatMul", [w.op("Softmax", [score], n + ".shares", axis=-1), v], n + ".mixed")
    y = w.op("Reshape", [w.op("Transpose", [y], n + ".joined", perm=[0, 2, 1, 3]), "join_shape"], n + ".attention")
    x = w.op("Add", [x, linear(w, y, n + ".attn.c_proj", width, width, 0.02 / np.sqrt(2 * a.layers))], n + ".residual")
    y = linear(w, norm(w, x, n + ".ln_2", width), n + ".mlp.c_fc", width, a.hidden * width)
    half = w.op("Mul", [y, "half"], n + ".half")
    erf = w.op("Erf", [w.op("Div", [y, "root2"], n + ".over_root2")], n + ".erf")
    y = w.op("Mul", [half, w.op("Add", [erf, "one_f"], n + ".erf1")], n + ".gelu")
    y = linear(w, y, n + ".mlp.c_proj", a.hidden * width, width, 0.02 / np.sqrt(2 * a.layers))
    return w.op("Add", [x, y], n)


def build(a):
    size = a.width // a.heads
    parameters = a.layers * (4 + 2 * a.hidden) * a.width ** 2 + (a.vocab + a.context) * a.width
    w = Writer(a.out, a.external or 4 * parameters > 1.9e9, a.seed)
    w.random("wte.weight", a.vocab, a.width)
    w.random("wpe.weight", a.context, a.width, scale=0.01)
    w.put("root", np.array(np.sqrt(size), np.float32))
    w.put("root2", np.array(np.sqrt(2), np.float32))
    w.put("half", np.array(0.5, np.float32))
    w.ints("split_shape", 0, 0, a.heads, size)
    w.ints("join_shape", 0, 0, a.width)
    mask(w)
    x = w.op("Add", [w.op("Gather", ["wte.weight", "input_ids"], "wte", axis=0),
                     w.op("Gather", ["wpe.weight", "position_ids"], "wpe", axis=0)], "embedded")
    for i in range(a.layers):
        x = block(w, x, i, a)
    x = norm(w, x, "ln_f", a.width)
    w.op("MatMul", [x, w.op("Transpose", ["wte.weight"], "lm_head.weight", perm=[1, 0])], "logits")
    if w.data:
        w.data.close()

    def value(name, kind, *shape):
        return helper.make_tensor_value_info(name, kind, shape)

    caches = [f"{i}.{part}" for i in range(a.layers) for part in ("key", "value")]
    inputs = [value("input_ids", I64, "batch", "sequence"), value("attention_mask", I64, "batch", "total"),
              value("position_ids", I64, "batch", "sequence")]
    inputs += [value(f"past_key_values.{c}", F32, "batch", a.heads, "past", size) for c in caches]
    outputs = [value("logits", F32, "batch", "sequence", a.vocab)]
    outputs += [value(f"present.{c}", F32, "batch", a.heads, "total", size) for c in caches]
    graph = helper.make_graph(w.nodes, "gpt2", inputs, outputs)
    graph.initializer.extend(w.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8,
                              producer_name="fettle bench/gpt2.py")
    onnx.save(model, a.out)
    return w


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    for name, default, what in (("layers", 12, ""), ("width", 768, ""), ("heads", 12, ""), ("vocab", 50257, ""),
                                ("context", 1024, "the longest text, in tokens"),
                                ("hidden", 4, "width of the MLP, in widths"), ("seed", 1, ""),
                                ("samples", 16, "of --data"), ("tokens", 64, "of each sample of --data")):
        p.add_argument("--" + name, type=int, default=default, help=f"{what} ({default})".strip())
    p.add_argument("--external", action="store_true", help="weights beside the model, whatever its size")
    p.add_argument("--data", help="also write token numbers to this .npz")
    a = p.parse_args()
    if a.width % a.heads:
        p.error(f"--width {a.width}: need a multiple of --heads {a.heads}")
    w = build(a)
    print(f"{a.out}: {w.parameters / 1e6:.1f} M parameters, {4 * w.parameters / 1e9:.2f} GB"
          + (f", weights in {a.out}.data" if w.data else ""))
    if a.data:
        np.savez(a.data, input_ids=np.random.default_rng(a.seed + 1).integers(0, a.vocab, (a.samples, a.tokens)))


if __name__ == "__main__":
    main()
