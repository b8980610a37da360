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


if __name__ == "__main__":
    for make in (embedding,):
        make(sys.argv[1])
