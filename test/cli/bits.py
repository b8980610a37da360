"""A model whose last bits depend on how the runtime divides the work among threads, and data without labels for it. usage: bits.py FOLDER"""
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = sys.argv[1]
rng = np.random.RandomState(0)
nodes, weights, value, channels = [], [], "x", 3
for i, out in enumerate((12, 13, 7)):
    weights.append(numpy_helper.from_array((rng.randn(out, channels, 3, 3) / (3 * channels**0.5)).astype(np.float32), f"w{i}"))
    nodes.append(helper.make_node("Conv", [value, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]))
    nodes.append(helper.make_node("Softplus", [f"c{i}"], [f"s{i}"]))
    value, channels = f"s{i}", out
graph = helper.make_graph(nodes, "bits", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 23, 19])],
                          [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["n", 7, 23, 19])], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), f"{folder}/bits.onnx")
np.savez(f"{folder}/bits.npz", x=rng.randn(80, 3, 23, 19).astype(np.float32))
