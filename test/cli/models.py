"""Small models of kinds that strangers have, with data: models.py FOLDER writes KIND.onnx and KIND.npz there."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
rng = np.random.default_rng(7)


def weight(name, *shape):
    return numpy_helper.from_array((0.3 * rng.standard_normal(shape)).astype(np.float32), name)


def write(folder, kind, nodes, inputs, outputs, inits, data, opset=13):
    graph = helper.make_graph(nodes, kind, inputs, outputs, inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    model.ir_version = 7
    save(model, f"{folder}/{kind}.onnx")
    np.savez(f"{folder}/{kind}.npz", **data)


def embedding(folder):
    """A residual connection around the first block adds rows of a table to what a MatMul makes."""
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], "rows"),
        helper.make_node("MatMul", ["e", "w1"], ["h"], "first"),
        helper.make_node("Add", ["e", "h"], ["r"], "residual"),
        helper.make_node("Mul", ["r", "r"], ["s"], "square"),
        helper.make_node("MatMul", ["s", "w2"], ["y"], "second"),
    ]
    write(folder, "embedding", nodes, [helper.make_tensor_value_info("ids", INT64, ["n", 6])],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 6, 5])],
          [weight("table", 20, 16), weight("w1", 16, 16), weight("w2", 16, 5)],
          {"ids": rng.integers(0, 20, (24, 6))})


def residual(folder):
    """Convolutions in two branches that meet, a pool and a Gemm. Every weight has a size of its own."""
    nodes = [
        helper.make_node("Conv", ["x", "w0"], ["a"], "stem", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["b", "w1"], ["c"], "expand"),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "w2"], ["e"], "project", pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["b", "e"], ["f"], "join"),
        helper.make_node("Conv", ["f", "w3"], ["g"], "last", strides=[2, 2]),
        helper.make_node("Relu", ["g"], ["h"]),
        helper.make_node("GlobalAveragePool", ["h"], ["i"]),  # without a name, as some exporters leave it
        helper.make_node("Flatten", ["i"], ["j"]),
        helper.make_node("Gemm", ["j", "w4", "b4"], ["y"], "head"),
    ]
    write(folder, "residual", nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 10, 10])],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 5])],
          [weight("w0", 8, 3, 3, 3), weight("w1", 24, 8, 1, 1), weight("w2", 8, 24, 3, 3), weight("w3", 16, 8, 3, 3),
           weight("w4", 16, 5), weight("b4", 5)],
          {"x": rng.standard_normal((24, 3, 10, 10)).astype(np.float32)})


def mlp(folder):
    """Matrices with biases, one after the other."""
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], "one"),
        helper.make_node("Add", ["a", "b0"], ["b"], "bias"),
        helper.make_node("Relu", ["b"], ["c"]),
        helper.make_node("MatMul", ["c", "w1"], ["d"], "two"),
        helper.make_node("Relu", ["d"], ["e"]),
        helper.make_node("MatMul", ["e", "w2"], ["y"], "three"),
    ]
    write(folder, "mlp", nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 12])],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 7])],
          [weight("w0", 12, 40), weight("b0", 40), weight("w1", 40, 24), weight("w2", 24, 7)],
          {"x": rng.standard_normal((24, 12)).astype(np.float32)})


if __name__ == "__main__":
    for make in (embedding, residual, mlp):
        make(sys.argv[1])
