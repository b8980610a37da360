"""Transforms by Pillow and OpenCV: images, what they should become, and the YAML of the transform."""
import io
import json
import os
import random
import sys

import cv2
import numpy
import onnx
from onnx import TensorProto, helper
from PIL import Image


def image(r, h, w):
    """Smooth with some edges, so that interpolations differ."""
    y, x = numpy.mgrid[0:h, 0:w]
    planes = [127 + 90 * numpy.sin(y / r.uniform(3, 9) + r.random()) * numpy.cos(x / r.uniform(3, 9)) for _ in range(3)]
    a = numpy.stack(planes, 2)
    a[h // 3 : h // 2, w // 4 : w // 2] = [250, 10, 128]
    return numpy.clip(a, 0, 255).astype("u1")


def ratio(a, low, high, pad, fill=0):
    """INC's ResizeWithRatio."""
    h, w = a.shape[:2]
    scale = max(1, low / min(h, w))
    if round(max(h, w) * scale) > high:
        scale = high / max(h, w)
    if scale != 1:
        a = cv2.resize(a, (round(w * scale), round(h * scale)))
    if pad:
        h, w = a.shape[:2]
        t, l = (high - h) // 2, (high - w) // 2
        a = numpy.pad(a, [[t, high - h - t], [l, high - w - l], [0, 0]], constant_values=fill)
    return a


def aspect(a, height, width, scale=87.5):
    """MLPerf's, with its default interpolation."""
    h, w = a.shape[:2]
    nh, nw = int(100 * height / scale), int(100 * width / scale)
    size = (nw, int(nh * h / w)) if h > w else (int(nw * w / h), nh)
    return cv2.resize(a, size, interpolation=cv2.INTER_AREA)


def middle(a, size):
    h, w = a.shape[:2]
    t, l = (h - size) // 2, (w - size) // 2
    return a[t : t + size, l : l + size]


# name, the transforms, what they do, the largest root of the mean square of the difference
def mitchell(x):
    """Mitchell and Netravali 1988, B = C = 1/3"""
    near = (7 * x ** 3 - 12 * x ** 2 + 16 / 3) / 6
    far = (-7 / 3 * x ** 3 + 12 * x ** 2 - 20 * x + 32 / 3) / 6
    return numpy.where(x < 1, near, numpy.where(x < 2, far, 0))


def by_kernel(a, h, w, radius, f):
    """weighted sums over pixels no further than the radius, whatever the scale, the weights adding up to 1"""
    def weights(n, to):
        d = numpy.abs((numpy.arange(to)[:, None] + 0.5) * n / to - 0.5 - numpy.arange(n)[None, :])
        m = numpy.where(d <= radius, f(d), 0)
        return m / m.sum(1, keepdims=True)
    out = numpy.einsum("ya,xb,abc->yxc", weights(a.shape[0], h), weights(a.shape[1], w), a.astype("d"))
    return numpy.clip(numpy.rint(out), 0, 255)


CASES = [
    ("linear", "Resize: {size: [40, 30]}", lambda a: cv2.resize(a, (30, 40)), 0.6),
    ("larger", "Resize: {size: 90}", lambda a: cv2.resize(a, (90, 90)), 0.6),
    ("nearest", "Resize: {size: [31, 17], interpolation: nearest}", lambda a: cv2.resize(a, (17, 31), interpolation=cv2.INTER_NEAREST), 0),
    ("cubic", "Resize: {size: [41, 33], interpolation: bicubic}", lambda a: cv2.resize(a, (33, 41), interpolation=cv2.INTER_CUBIC), 0.6),
    ("lanczos", "Resize: {size: [90, 81], interpolation: lanczos3}", lambda a: numpy.asarray(Image.fromarray(a).resize((81, 90), Image.LANCZOS)), 1.0),
    ("mitchell", "Resize: {size: [41, 33], interpolation: mitchellcubic}", lambda a: by_kernel(a, 41, 33, 2, mitchell), 0.6),
    ("lanczos5", "Resize: {size: [41, 33], interpolation: lanczos5}", lambda a: by_kernel(a, 41, 33, 5, lambda x: numpy.sinc(x) * numpy.sinc(x / 5)), 0.6),
    ("gaussian", "Resize: {size: [70, 33], interpolation: gaussian}", lambda a: by_kernel(a, 70, 33, 1.5, lambda x: numpy.exp(-2 * x * x)), 0.6),
    ("area", "Resize: {size: [20, 16], interpolation: area}", lambda a: cv2.resize(a, (16, 20), interpolation=cv2.INTER_AREA), 0.6),
    ("crop", "CenterCrop: {size: 31}", lambda a: middle(a, 31), 0),
    ("aspect", "ResizeWithAspectRatio: {height: 24, width: 24}, CenterCrop: {size: 24}", lambda a: middle(aspect(a, 24, 24), 24), 0.6),
    ("ratio", "ResizeWithRatio: {min_dim: 70, max_dim: 100}", lambda a: ratio(a, 70, 100, False), 0.6),
    ("ratio less", "ResizeWithRatio: {min_dim: 70, max_dim: 50}", lambda a: ratio(a, 70, 50, False), 0.6),
    ("ratio padded", "ResizeWithRatio: {min_dim: 30, max_dim: 101, padding: true, constant_value: 7}", lambda a: ratio(a, 30, 101, True, 7), 0.6),
    ("pad", "Pad: {padding: [1, 2, 3, 4], fill: 9}", lambda a: numpy.pad(a, [[2, 4], [1, 3], [0, 0]], constant_values=9), 0),
    ("pad edge", "Pad: {padding: [5, 2], padding_mode: edge}", lambda a: cv2.copyMakeBorder(a, 2, 2, 5, 5, cv2.BORDER_REPLICATE), 0),
    ("pad reflect", "Pad: {padding: 6, padding_mode: reflect}", lambda a: cv2.copyMakeBorder(a, 6, 6, 6, 6, cv2.BORDER_REFLECT_101), 0),
    ("pad symmetric", "Pad: {padding: 6, padding_mode: symmetric}", lambda a: cv2.copyMakeBorder(a, 6, 6, 6, 6, cv2.BORDER_REFLECT), 0),
    ("quantized", "QuantizedInput: {dtype: int8, scale: 0.7}", lambda a: numpy.clip(numpy.trunc(a * 0.7), -128, 127), 0),
    ("unsigned", "QuantizedInput: {dtype: uint8, scale: 0.4}", lambda a: numpy.clip(numpy.trunc(a * 0.4 + 128), 0, 255), 0),
    ("as is", "QuantizedInput: {dtype: int8}", lambda a: a, 0),
    ("keras", "KerasRescale: {rescale: [127.5, 1]}", lambda a: a / 127.5 - 1, 1e-6),
    ("grey", "AlignImageChannel: {dim: 1}", lambda a: numpy.asarray(Image.fromarray(a).convert("L"))[:, :, None], 1.0),
    ("box", "CropToBoundingBox: {offset_height: 3, offset_width: 5, target_height: 20, target_width: 11}", lambda a: a[3:23, 5:16], 0),
    ("crop resize", "CropResize: {x: 4, y: 2, width: 30, height: 20, size: [50, 40]}", lambda a: cv2.resize(a[2:22, 4:34], (40, 50)), 0.6),
]


def pillow(a, size, how):
    """torchvision's Resize of a Pillow image: one number is the shorter side"""
    h, w = a.shape[:2]
    if isinstance(size, int):
        size = (size, int(size * w / h)) if h < w else (int(size * h / w), size)
    return numpy.asarray(Image.fromarray(a).resize(size[::-1], how))


def rounded_middle(a, size):
    t, l = (int(round((n - size) / 2)) for n in a.shape[:2])
    return a[t : t + size, l : l + size]


def jpeg(a, **more):
    b = io.BytesIO()
    Image.fromarray(a).save(b, "JPEG", **more)
    return numpy.asarray(Image.open(b))


# the same for PyTorch, where Pillow does it; to the bit
PYTORCH = [
    ("pil linear", "Resize: {size: 30}", lambda a: pillow(a, 30, Image.BILINEAR), 0),
    ("pil larger", "Resize: {size: [91, 70]}", lambda a: pillow(a, (91, 70), Image.BILINEAR), 0),
    ("pil cubic", "Resize: {size: [21, 77], interpolation: bicubic}", lambda a: pillow(a, (21, 77), Image.BICUBIC), 0),
    ("pil nearest", "Resize: {size: [31, 17], interpolation: nearest}", lambda a: pillow(a, (31, 17), Image.NEAREST), 0),
    ("pil box", "CropResize: {x: 4, y: 2, width: 30, height: 20, size: 13}", lambda a: pillow(a[2:22, 4:34], 13, Image.BILINEAR), 0),
    ("round crop", "CenterCrop: {size: 31}", lambda a: rounded_middle(a, 31), 0),
    ("round crop less", "CenterCrop: {size: 29}", lambda a: rounded_middle(a, 29), 0),
    ("jpeg", "EncodeJpeg: {}", lambda a: jpeg(a, quality=95, subsampling=2), 0),
    ("jpeg full", "EncodeJpeg: {quality: 60, chroma_downsampling: false}", lambda a: jpeg(a, quality=60, subsampling=0), 0),
    ("reshape", "Reshape: {shape: [4, -1, 3]}", lambda a: a.reshape(4, -1, 3), 0),
]


def model(path, shape, dtype):
    nodes = [helper.make_node("Cast", ["x"], ["y"], to=1)]
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", dtype, ["n", *shape])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", *shape])])
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


folder = sys.argv[1]
r = random.Random(2)
images = [image(r, 64, 48) for _ in range(4)] 
for name, yaml, run, limit in CASES + PYTORCH:
    for wide in (False, True):
        source = [numpy.ascontiguousarray(a.transpose(1, 0, 2)) if wide else a for a in images]
        want = numpy.stack([run(a) for a in source]).astype("f")
        case = os.path.join(folder, name.replace(" ", "_") + ("_wide" if wide else ""))
        os.makedirs(case)
        numpy.savez(case + "/data.npz", x=numpy.stack(source), y=want)
        dtype = {"quantized": TensorProto.INT8, "keras": TensorProto.FLOAT}.get(name, TensorProto.UINT8)
        model(case + "/model.onnx", want.shape[1:], dtype)
        with open(case + "/c.yaml", "w") as f:
            f.write("model: {framework: %s}\nevaluation: {accuracy: {metric: {MSE: {compare_label: true}}, dataloader: {dataset: {Npz: {root: data.npz}}, "
                    "transform: {%s}}}}\n" % ("pytorch" if (name, yaml, run, limit) in PYTORCH else "onnxrt_qdq", yaml))
        print(case, limit * limit, sep="\t")
