"""share.py FP32.onnx OPTIMISED.onnx: the share of multiply-adds in integer ops, from the graph that ONNX Runtime wrote.

Independent of fettle: multiply-adds come from the fp32 model and ONNX's shape inference, and a node of the optimised graph is
recognised by the size of its weight alone, whatever the runtime calls it and however it lays it out. So the channels of ops
that stay in fp32 must be multiples of 16, which no CPU's layout pads.
"""
import sys
from collections import defaultdict

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference

INTEGER = {"QLinearConv", "QLinearMatMul", "QGemm", "MatMulInteger", "MatMulIntegerToFloat", "ConvInteger",
           "DynamicQuantizeMatMul", "DynamicQuantizeLSTM", "QAttention"}
FLOAT = {"Conv", "FusedConv", "Gemm", "FusedGemm", "MatMul", "FusedMatMul", "LSTM"}


def constants(graph):
    """Value name -> number of elements, also through DequantizeLinear, Transpose and the runtime's reordering."""
    size = {i.name: int(np.prod(i.dims)) for i in graph.initializer}
    for n in graph.node:
        if n.op_type == "Constant":
            size[n.output[0]] = int(np.prod(n.attribute[0].t.dims))
        elif n.op_type in ("DequantizeLinear", "QuantizeLinear", "Transpose", "Identity") and n.input[0] in size:
            size[n.output[0]] = size[n.input[0]]
    return size


def weighted(graph, types):
    """Ops that multiply with a constant: (node, size of the largest constant)."""
    size = constants(graph)
    for n in graph.node:
        sizes = [size[i] for i in n.input if i in size]
        if n.op_type in types and sizes:
            yield n, max(sizes)


def multiply_adds(model):
    """Size of the weight -> multiply-adds of each op with one like it, in order."""
    graph = shape_inference.infer_shapes(model).graph
    shapes = {v.name: [d.dim_value or 1 for d in v.type.tensor_type.shape.dim]
              for v in list(graph.value_info) + list(graph.output) + list(graph.input)}
    dims = {i.name: list(i.dims) for i in graph.initializer}
    out = defaultdict(list)
    for n, size in weighted(graph, FLOAT):
        w = dims[n.input[1]]
        made = int(np.prod(shapes[n.output[0]]))
        transposed = any(a.name == "transB" and a.i for a in n.attribute)
        depth = int(np.prod(w[1:])) if n.op_type == "Conv" or transposed else w[-2]
        out[size].append(made * depth)
    return out


def share(fp32, optimised):
    macs = multiply_adds(fp32)
    total = sum(map(sum, macs.values()))
    integer = 0
    for n, size in weighted(optimised.graph, INTEGER | FLOAT):
        m = macs[size].pop(0)
        integer += m if n.op_type in INTEGER else 0
    assert not any(macs.values()), "the optimised graph lacks ops with weights of sizes %s" % [s for s in macs if macs[s]]
    return integer / total


if __name__ == "__main__":
    print("%.6f" % share(onnx.load(sys.argv[1]), onnx.load(sys.argv[2])))
