"""Models with several outputs, and data of many kinds: inputs.py FOLDER."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FLOAT = TensorProto.FLOAT
rng = np.random.default_rng(3)
d = sys.argv[1] + "/"
N = 120


def write(name, nodes, inputs, outputs, weights):
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info(n, FLOAT, s) for n, s in inputs],
                              [helper.make_tensor_value_info(n, FLOAT, s) for n, s in outputs],
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
