"""Models with several outputs, and data of many kinds: inputs.py FOLDER."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FLOAT = TensorProto.FLOAT
rng = np.random.default_rng(3)
d = sys.argv[1] + "/"
N = 120


def write(name, nodes, inputs, outputs, weights):
    """An input or output is (name, shape), of floats, or (name, shape, type)."""
    def info(name, shape, kind=FLOAT):
        return helper.make_tensor_value_info(name, kind, shape)
    graph = helper.make_graph(nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs],
                              [numpy_helper.from_array(w, n) for n, w in weights.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    model.ir_version = 7
    save(model, d + name + ".onnx")


def matrix(*shape):
    return rng.standard_normal(shape).astype(np.float32)


# what is to be scored comes second; two outputs have six columns
w = {"wb": matrix(8, 4), "wl": matrix(8, 6), "wo": matrix(8, 6), "ws": matrix(8, 1)}
write("heads", [helper.make_node("MatMul", ["x", k], [o], o) for k, o in
                (("wb", "boxes"), ("wl", "logits"), ("wo", "others"), ("ws", "score"))],
      [("x", ["n", 8])], [("boxes", ["n", 4]), ("logits", ["n", 6]), ("others", ["n", 6]), ("score", ["n", 1])], w)
write("two", [helper.make_node("MatMul", ["x", k], [o], o) for k, o in (("wb", "boxes"), ("wl", "logits"))],
      [("x", ["n", 8])], [("boxes", ["n", 4]), ("logits", ["n", 6])], w)
x = matrix(N, 8)
y = (x @ w["wl"]).argmax(1)
np.savez(d + "classes.npz", x=x, y=y)
np.savez(d + "classes_f.npz", x=x, y=y.astype(np.float32))
np.savez(d + "calib.npz", x=matrix(40, 8))
np.savez(d + "fresh.npz", x=(f := matrix(60, 8)), y=(f @ w["wl"]).argmax(1))
np.savez(d + "one_hot.npz", x=x, y=np.eye(6, dtype=np.float32)[y])
np.savez(d + "boxes.npz", x=x, y=x @ w["wb"])
np.savez(d + "binary.npz", x=x, y=(x @ w["ws"] > 0).astype(np.int64)[:, 0])
np.savez(d + "real.npz", x=x, y=(x @ w["ws"])[:, 0])
np.savez(d + "odd.npz", x=x, y=matrix(N, 5))
np.savez(d + "unlabelled.npz", x=x)
np.savez(d + "copy.npz", x=x[:50], y=y[:50])
np.savez(d + "more.npz", x=x, y=y, ids=np.array([f"image {i}" for i in range(N)]), mean=np.float32(0.5),
         table=matrix(3, 3), empty=np.zeros((0, 4), np.float32))
np.savez(d + "short.npz", x=x, y=y[:-1])

# one class per pixel
w = {"wp": matrix(3, 2, 1, 1)}
write("pixels", [helper.make_node("Conv", ["x", "wp"], ["map"], "map")], [("x", ["n", 2, 4, 5])], [("map", ["n", 3, 4, 5])],
      w)
x = matrix(N, 2, 4, 5)
y = np.einsum("nchw,kc->nkhw", x, w["wp"][:, :, 0, 0]).argmax(1)
y[:, 0, 0] = 255
np.savez(d + "pixels.npz", x=x, y=y)

# trained on 0 to 1: what is beyond that is cut off
w = {"low": np.float32(0), "high": np.float32(1), "w": matrix(8, 6)}
write("clipped", [helper.make_node("Clip", ["x", "low", "high"], ["c"], "clip"),
                  helper.make_node("MatMul", ["c", "w"], ["logits"], "head")],
      [("x", ["n", 8])], [("logits", ["n", 6])], w)
x = rng.random((N, 8)).astype(np.float32)
y = (x @ w["w"]).argmax(1)
np.savez(d + "right.npz", x=x, y=y)
always = int((np.ones(8, np.float32) @ w["w"]).argmax())
np.savez(d + "bytes.npz", x=(1 + 254 * x).astype(np.uint8), y=np.where(np.arange(N) % 6 == 0, always, (always + 1 + np.arange(N) % 5) % 6))

# what is found in a sample, which may be nothing: another number of rows each time
w = {"wb": matrix(8, 8), "ws": matrix(8, 2), "cut": np.array([1, 2, 4]), "flat": np.array([1, 1, 2]),
     "most": np.array([9]), "overlap": np.array([0.5], np.float32), "least": np.array([0], np.float32)}
write("found", [helper.make_node("MatMul", ["x", "wb"], ["b"], "b"), helper.make_node("Reshape", ["b", "cut"], ["boxes"], "boxes"),
                helper.make_node("MatMul", ["x", "ws"], ["s"], "s"), helper.make_node("Reshape", ["s", "flat"], ["scores"], "scores"),
                helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["found"], "nms")],
      [("x", [1, 8])], [("boxes", [1, 2, 4]), ("scores", [1, 1, 2]), ("found", ["k", 3], TensorProto.INT64)], w)

# what an RNN remembers has its rows elsewhere; class numbers are no scores
w = {"wi": matrix(1, 12, 8), "wr": matrix(1, 12, 3), "one": np.array([1])}
write("memory", [helper.make_node("Unsqueeze", ["x", "zero"], ["steps"], "steps"),
                 helper.make_node("LSTM", ["steps", "wi", "wr"], ["y", "h"], "lstm", hidden_size=3),
                 helper.make_node("Squeeze", ["y", "axes"], ["scores"], "scores"),
                 helper.make_node("ArgMax", ["scores"], ["tag"], "tag", axis=1, keepdims=0)],
      [("x", ["n", 8])], [("scores", ["n", 3]), ("h", [1, "n", 3]), ("tag", ["n"], TensorProto.INT64)],
      {**w, "zero": np.array([0]), "axes": np.array([0, 1])})

# an output without a dimension for samples: all of it belongs to the one sample
expected = []
for name in "squeezed", "squeezed_other":
    w = {"w": matrix(8, 12) if name == "squeezed" else np.hstack([w["w"][:, :4], matrix(8, 8)]), "cut": np.array([3, 4])}
    write(name, [helper.make_node("MatMul", ["x", "w"], ["m"], "m"), helper.make_node("Reshape", ["m", "cut"], ["points"], "points")],
          [("x", [1, 8])], [("points", [3, 4])], w)
    expected.append(np.load(d + "unlabelled.npz")["x"] @ w["w"])
a, b = expected
print(f"{np.mean((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)):.6f}"[:5])

# inputs of open size: a Conv whose work grows with it, beside a Gemm whose does not; on a single step it does not run
w = {"wc": matrix(8, 1, 9), "wg": matrix(8, 64)}
write("open", [helper.make_node("Conv", ["x", "wc"], ["c"], "conv"), helper.make_node("GlobalAveragePool", ["c"], ["p"], "pool"),
               helper.make_node("Flatten", ["p"], ["f"], "flat"), helper.make_node("Gemm", ["f", "wg"], ["y"], "gemm")],
      [("x", ["n", 1, "t"])], [("y", ["n", 64])], w)
np.savez(d + "open.npz", x=matrix(40, 1, 72))
