"""Small models of kinds that strangers have, with data: models.py FOLDER writes KIND.onnx and KIND.npz there."""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

FLOAT, HALF, INT64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64
rng = np.random.default_rng(7)


def weight(name, *shape):
    return numpy_helper.from_array((0.3 * rng.standard_normal(shape)).astype(np.float32), name)


def write(folder, kind, nodes, inputs, outputs, inits, data, microsoft=False):
    graph = helper.make_graph(nodes, kind, inputs, outputs, inits)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)] +
                              [helper.make_opsetid("com.microsoft", 1)] * microsoft)
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
    """Convolutions in two branches that meet, a pool and a Gemm.

    Every weight has a size of its own, and channels are multiples of 16: the runtime pads others, by how wide the CPU's vectors are.
    """
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
          [weight("w0", 16, 3, 3, 3), weight("w1", 48, 16, 1, 1), weight("w2", 16, 48, 3, 3), weight("w3", 32, 16, 3, 3),
           weight("w4", 32, 5), weight("b4", 5)],
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


CNN = [
    helper.make_node("Conv", ["x", "w0"], ["a"], "conv"),
    helper.make_node("Relu", ["a"], ["b"]),
    helper.make_node("Flatten", ["b"], ["c"]),
    helper.make_node("Gemm", ["c", "w1"], ["y"], "fc", transB=1),
]


def cnn_data(dtype=np.float32):
    return {"x": rng.standard_normal((24, 3, 8, 8)).astype(dtype), "y": rng.integers(0, 5, 24)}


def init_inputs(folder):
    """Initializers are inputs too, as IR version 3 wanted it."""
    inits = [weight("w0", 8, 3, 3, 3), weight("w1", 5, 288)]
    write(folder, "init_inputs", CNN,
          [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 8, 8])] +
          [helper.make_tensor_value_info(i.name, FLOAT, i.dims) for i in inits],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 5])], inits, cnn_data())


def halves(folder):
    """float16 throughout, inputs and outputs included."""
    inits = [weight("w0", 8, 3, 3, 3), weight("w1", 5, 288)]
    inits = [numpy_helper.from_array(numpy_helper.to_array(i).astype(np.float16), i.name) for i in inits]
    write(folder, "halves", CNN, [helper.make_tensor_value_info("x", HALF, ["n", 3, 8, 8])],
          [helper.make_tensor_value_info("y", HALF, ["n", 5])], inits, cnn_data(np.float16))


def halves_inside(folder):
    """float16 between float32 inputs and outputs, as converters write it: the first Cast comes last in the file."""
    half = numpy_helper.from_array(np.array(0.5, np.float16))
    nodes = [
        helper.make_node("Conv", ["h", "w0"], ["a"], "conv"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Conv", ["h", "w1"], ["c"], "other"),
        helper.make_node("Constant", [], ["k"], value=half),
        helper.make_node("Mul", ["c", "k"], ["d"]),
        helper.make_node("Concat", ["b", "d"], ["e"], "join", axis=1),
        helper.make_node("Cast", ["e"], ["features"], to=FLOAT),
        helper.make_node("Transpose", ["e"], ["f"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["f", "shape"], ["g"]),
        helper.make_node("MatMul", ["g", "w2"], ["i"], "fc"),
        helper.make_node("Softmax", ["i"], ["j"], axis=-1),
        helper.make_node("Cast", ["j"], ["y"], to=FLOAT),
        helper.make_node("Cast", ["x"], ["h"], to=HALF),
    ]
    inits = [weight("w0", 8, 3, 3, 3), weight("w1", 4, 3, 3, 3), weight("w2", 432, 5)]
    inits = [numpy_helper.from_array(numpy_helper.to_array(i).astype(np.float16), i.name) for i in inits]
    write(folder, "halves_inside", nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 3, 8, 8])],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 5]), helper.make_tensor_value_info("features", FLOAT, ["n", 12, 6, 6])],
          inits + [numpy_helper.from_array(np.array([-1, 432]), "shape")], {"x": cnn_data()["x"]})


def branch(name, hidden):
    """Part of an If: an LSTM between two matrices, with weights of its own."""
    p = name + "_"
    nodes = [
        helper.make_node("MatMul", ["frames", p + "in"], [p + "p"]),
        helper.make_node("LSTM", [p + "p", p + "W", p + "R"], [p + "y", p + "h"], hidden_size=hidden),
        helper.make_node("Squeeze", [p + "h", p + "axis"], [p + "s"]),
        helper.make_node("MatMul", [p + "s", p + "out"], [p + "o"]),
    ]
    return helper.make_graph(nodes, name, [], [helper.make_tensor_value_info(p + "o", FLOAT, None)],
                             [weight(p + "in", 16, 12), weight(p + "W", 1, 4 * hidden, 12),
                              weight(p + "R", 1, 4 * hidden, hidden), weight(p + "out", hidden, 1),
                              numpy_helper.from_array(np.array([0]), p + "axis")])


def voice(folder, kind="voice", stem=()):
    """A voice activity detector: which LSTM hears the audio depends on the sampling rate, which is a single number."""
    nodes = list(stem) + [
        helper.make_node("Transpose", ["stem" if stem else "audio"], ["frames"], perm=[1, 0, 2]),
        helper.make_node("Equal", ["rate", "wide"], ["is_wide"]),
        helper.make_node("If", ["is_wide"], ["o"], "by_rate", then_branch=branch("wideband", 8),
                         else_branch=branch("narrow", 6)),
        helper.make_node("Sigmoid", ["o"], ["speech"]),
    ]
    write(folder, kind, nodes,
          [helper.make_tensor_value_info("audio", FLOAT, ["n", 10, 16]), helper.make_tensor_value_info("rate", INT64, [])],
          [helper.make_tensor_value_info("speech", FLOAT, None)],
          [numpy_helper.from_array(np.array(16000), "wide")] + ([weight("stem_w", 16, 16)] if stem else []),
          {"audio": rng.standard_normal((24, 10, 16)).astype(np.float32), "rate": np.array([16000, 8000] * 12)})


def voice_stem(folder):
    """The same behind a MatMul in the main graph."""
    voice(folder, "voice_stem", [helper.make_node("MatMul", ["audio", "stem_w"], ["stem"], "front")])


def loop(folder):
    """An LSTM in a Loop."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["go_on"]),
         helper.make_node("LSTM", ["state", "lW", "lR"], ["made"], hidden_size=12),
         helper.make_node("Squeeze", ["made", "one"], ["next"])],
        "body",
        [helper.make_tensor_value_info("i", INT64, []), helper.make_tensor_value_info("go", TensorProto.BOOL, []),
         helper.make_tensor_value_info("state", FLOAT, None)],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), helper.make_tensor_value_info("next", FLOAT, None)],
        [weight("lW", 1, 48, 12), weight("lR", 1, 48, 12), numpy_helper.from_array(np.array([1]), "one")])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], "front"),
        helper.make_node("Transpose", ["h"], ["first"], perm=[1, 0, 2]),
        helper.make_node("Loop", ["times", "", "first"], ["z"], "rounds", body=body),
        helper.make_node("Transpose", ["z"], ["y"], perm=[1, 0, 2]),
    ]
    write(folder, "loop", nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 6, 10])],
          [helper.make_tensor_value_info("y", FLOAT, None)],
          [weight("w", 10, 12), numpy_helper.from_array(np.array(3), "times")],
          {"x": rng.standard_normal((24, 6, 10)).astype(np.float32)})


def nbits(folder):
    """4-bit weights, and (mixed) a float matrix behind them."""
    packed = numpy_helper.from_array(rng.integers(0, 255, (16, 1, 16)).astype(np.uint8), "packed")
    first = helper.make_node("MatMulNBits", ["x", "packed", "scales"], ["h"], "packed", domain="com.microsoft", K=32, N=16,
                             bits=4, block_size=32)
    data = {"x": rng.standard_normal((24, 32)).astype(np.float32)}
    x = helper.make_tensor_value_info("x", FLOAT, ["n", 32])
    write(folder, "nbits", [first], [x], [helper.make_tensor_value_info("h", FLOAT, ["n", 16])],
          [packed, weight("scales", 16)], data, microsoft=True)
    write(folder, "nbits_mixed", [first, helper.make_node("MatMul", ["h", "w"], ["y"], "float")], [x],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 4])], [packed, weight("scales", 16), weight("w", 16, 4)], data,
          microsoft=True)


def index(folder):
    """What a convolution makes is at least 5 or so, and becomes an index: with values around 0 there is no such row."""
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["c"], "first", pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"], "relu"),
        helper.make_node("Conv", ["r", "w2", "b2"], ["d"], "second", pads=[1, 1, 1, 1]),
        helper.make_node("GlobalAveragePool", ["d"], ["p"], "pool"),
        helper.make_node("Sub", ["p", "two"], ["s"], "sub"),
        helper.make_node("Sqrt", ["s"], ["q"], "root"),
        helper.make_node("Cast", ["q"], ["i"], "index", to=INT64),
        helper.make_node("Gather", ["table", "i"], ["t"], "look up"),
        helper.make_node("Add", ["t", "q"], ["y"], "add"),
    ]
    two = numpy_helper.from_array(np.array(2, np.float32), "two")
    bias = numpy_helper.from_array(np.full(32, 9, np.float32), "b2")
    small = numpy_helper.from_array((0.02 * rng.standard_normal((32, 32, 3, 3))).astype(np.float32), "w2")
    write(folder, "index", nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 16, 16, 16])],
          [helper.make_tensor_value_info("y", FLOAT, ["n", 32, 1, 1])],
          [weight("w1", 32, 16, 3, 3), small, bias, two, weight("table", 8)],
          {"x": rng.random((24, 16, 16, 16)).astype(np.float32)})


if __name__ == "__main__":
    for make in (embedding, residual, mlp, init_inputs, halves, halves_inside, voice, voice_stem, loop, nbits, index):
        make(sys.argv[1])
