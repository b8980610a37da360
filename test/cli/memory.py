"""memory.py make FOLDER: three models, and samples for them. wide.onnx is large and makes little of it, both.onnx makes more; deep.onnx is small, but
all values of one sample together are not.
memory.py peak COMMAND ARGS...: runs it and prints its peak memory in bytes, as the kernel counts it.
"""
import os
import subprocess
import sys
import time


def save(folder, name, nodes, weights, shape):
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"] + shape)
    y = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    inits = [numpy_helper.from_array(w, n) for n, w in weights.items()]
    model = helper.make_model(helper.make_graph(nodes, name, [x], [y], inits), opset_imports=[helper.make_opsetid("", 17)],
                              ir_version=8)
    onnx.save(model, f"{folder}/{name}.onnx")
    np.savez(f"{folder}/{name}.npz", x=np.random.default_rng(2).standard_normal([16] + shape, dtype="f4"))


def make(folder):
    import numpy as np
    from onnx import helper

    rng = np.random.default_rng(1)
    nodes, weights = [], {}
    for i in range(10):
        weights[f"w{i}"] = rng.standard_normal((1600, 1600), dtype="f4") / 40
        nodes += [helper.make_node("MatMul", [f"h{i}" if i else "x", f"w{i}"], [f"m{i}"]),
                  helper.make_node("Relu", [f"m{i}"], [f"h{i + 1}"])]
    save(folder, "wide", nodes, weights, [1600])

    # the same, and values of 164 MB that a batch of 16 samples needs for a while
    weights |= {"axis": np.array([2]), "shape": np.array([1, 1600, 1600])}
    nodes += [helper.make_node("Unsqueeze", ["h10", "axis"], ["u"]), helper.make_node("Expand", ["u", "shape"], ["e"]),
              helper.make_node("Sigmoid", ["e"], ["s"]), helper.make_node("ReduceMean", ["s"], ["r"], axes=[2])]
    save(folder, "both", nodes, weights, [1600])

    nodes, weights = [], {}
    for i in range(8):
        weights[f"w{i}"] = rng.standard_normal((32, 32 if i else 3, 1, 1), dtype="f4") / 6
        nodes += [helper.make_node("Conv", [f"h{i}" if i else "x", f"w{i}"], [f"c{i}"]),
                  helper.make_node("Sigmoid", [f"c{i}"], [f"h{i + 1}"])]
    save(folder, "deep", nodes, weights, [3, 256, 256])


def high_water(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        return 0


def peak(command):
    most = 0
    # not what wait4() says: that includes this program, before the other took its place
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as p:
        while p.poll() is None:
            most = max(most, high_water(p.pid))
            time.sleep(0.002)
    if p.returncode:
        sys.exit(f"{command[0]} {command[1]} failed: {p.returncode}")
    print(most)


if sys.argv[1] == "make":
    make(sys.argv[2])
elif not os.path.exists("/proc/self/status"):
    sys.exit(77)
else:
    peak(sys.argv[2:])
