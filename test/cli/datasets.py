"""Writes the files of INC's datasets from their published formats, and says what is in them: TFRecord with a checksum of its own,
protobuf by hand, RecordIO, IDX and CIFAR's batches."""
import gzip
import io
import json
import os
import pickle
import random
import struct
import sys

import numpy
import onnx
from onnx import TensorProto, helper


def crc32c(data):
    """Bit by bit, from the polynomial."""
    c = 0xFFFFFFFF
    for byte in data:
        c ^= byte
        for _ in range(8):
            c = c >> 1 ^ (0x82F63B78 if c & 1 else 0)
    return c ^ 0xFFFFFFFF


assert crc32c(b"123456789") == 0xE3069283  # the check value of the catalogue of CRCs


def masked(data):
    c = crc32c(data)
    return struct.pack("<I", ((c >> 15 | c << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def tfrecord(records):
    out = b""
    for r in records:
        n = struct.pack("<Q", len(r))
        out += n + masked(n) + r + masked(r)
    return out


def varint(x):
    x &= (1 << 64) - 1
    out = b""
    while x > 127:
        out += bytes([x & 127 | 128])
        x >>= 7
    return out + bytes([x])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def feature(v, packed=True):
    if isinstance(v[0], (bytes, str)):
        return field(1, b"".join(field(1, x.encode() if isinstance(x, str) else x) for x in v))
    if isinstance(v[0], float):
        raw = [struct.pack("<f", x) for x in v]
        return field(2, field(1, b"".join(raw)) if packed else b"".join(varint(1 << 3 | 5) + x for x in raw))
    raw = [varint(x) for x in v]
    return field(3, field(1, b"".join(raw)) if packed else b"".join(varint(1 << 3) + x for x in raw))


def example(features, packed=True):
    entries = b"".join(field(1, field(1, k.encode()) + field(2, feature(v, packed))) for k, v in features.items())
    return field(1, entries)


def png(pixels):
    """8-bit PNG of [h, w] or [h, w, 3], which loses nothing."""
    import zlib
    h, w = pixels.shape[:2]
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + pixels[i].tobytes() for i in range(h))
    head = struct.pack(">IIBBBBB", w, h, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def recordio(records, most=1 << 29):
    """As dmlc does it: data is cut where it holds the magic number (at multiples of four)."""
    magic = struct.pack("<I", 0xCED7230A)
    out = b""
    for r in records:
        parts, start = [], 0
        for i in range(0, len(r) - 3, 4):
            if r[i : i + 4] == magic:
                parts.append(r[start:i])
                start = i + 4
        parts.append(r[start:])
        for k, p in enumerate(parts):
            flag = 0 if len(parts) == 1 else 1 if k == 0 else 3 if k == len(parts) - 1 else 2
            out += magic + struct.pack("<I", flag << 29 | len(p)) + p + b"\0" * (-len(p) % 4)
    return out


def model(path, dtype, shape, classes):
    """Scores class k by the sum of |mean - 10 k|, so that answers follow from the pixels."""
    h = helper
    nodes = [h.make_node("Cast", ["x"], ["f"], to=1),
             h.make_node("ReduceMean", ["f"], ["m"], axes=list(range(1, len(shape) + 1)), keepdims=0),
             h.make_node("Unsqueeze", ["m", "one"], ["m1"]), h.make_node("Sub", ["m1", "steps"], ["d"]),
             h.make_node("Abs", ["d"], ["a"]), h.make_node("Neg", ["a"], ["y"])]
    steps = numpy.arange(classes, dtype="f")[None] * 10
    init = [h.make_tensor("one", TensorProto.INT64, [1], [1]), h.make_tensor("steps", TensorProto.FLOAT, steps.shape, steps.ravel())]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", dtype, ["n", *shape])],
                     [h.make_tensor_value_info("y", TensorProto.FLOAT, ["n", classes])], init)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), path)


def python2(batch):
    """A map as cPickle of Python 2 writes it: protocol 2, texts as bytes, each thing numbered."""
    memo = iter(range(1, 255))
    q = lambda: b"q" + bytes([next(memo)])
    text = lambda s: b"U" + bytes([len(s)]) + s + q()
    number = lambda x: b"K" + bytes([x]) if x < 256 else b"M" + struct.pack("<H", x) if x < 65536 else b"J" + struct.pack("<i", x)
    out = b"\x80\x02}" + q() + b"("
    for key, v in batch.items():
        out += text(key.encode())
        if isinstance(v, list):
            out += b"]" + q() + b"(" + b"".join(map(number, v)) + b"e"
            continue
        out += b"cnumpy.core.multiarray\n_reconstruct\n" + q() + b"cnumpy\nndarray\n" + q() + number(0) + b"\x85" + q() + text(b"b")
        out += b"\x87" + q() + b"R" + q() + b"(" + number(1) + number(v.shape[0]) + number(v.shape[1]) + b"\x86" + q()
        out += b"cnumpy\ndtype\n" + q() + text(b"u1") + number(0) + number(1) + b"\x87" + q() + b"R" + q() + b"(" + number(3) + text(b"|")
        out += b"NNN" + 2 * (b"J" + struct.pack("<i", -1)) + number(0) + b"t" + q() + b"b\x89T" + struct.pack("<I", v.nbytes) + v.tobytes()
        out += b"t" + q() + b"b"
    return out + b"u."


def arrays(folder, r):
    """COCO's form: an array for each image but the last, of which one has no object, and a model that finds every object but one."""
    images, notes = [], []
    for i in range(6):
        images.append({"id": 10 + i, "file_name": "%d.jpg" % i, "height": 20, "width": 40})
        if i == 5:
            continue
        x, y = r.randrange(10), r.randrange(5)
        if i < 4:
            notes.append({"id": i, "image_id": 10 + i, "category_id": 3, "bbox": [x, y, 12, 8], "area": 96, "iscrowd": 0})
        box = [y / 20, x / 40, (y + 8) / 20, (x + 12) / 40]
        a = numpy.array([[box + [0.9 - i / 10, 4 if i == 3 else 3]]], "f")
        put(folder, "coconpy/npy/%d.jpg.npy" % i, npy(numpy.asfortranarray(a) if i == 1 else a))
    put(folder, "coconpy/a.json", json.dumps({"images": images, "annotations": notes, "categories": [{"id": 3, "name": "cat"}, {"id": 4, "name": "dog"}]}).encode())
    h = helper
    nodes = [h.make_node("Split", ["x", "parts"], ["b", "s", "c"], axis=3)] + [
        h.make_node("Reshape", [a, b], [o]) for a, b, o in (("b", "four", "boxes"), ("s", "one", "scores"), ("c", "one", "classes"))]
    init = [h.make_tensor("parts", TensorProto.INT64, [3], [4, 1, 1]), h.make_tensor("four", TensorProto.INT64, [3], [-1, 1, 4]),
            h.make_tensor("one", TensorProto.INT64, [2], [-1, 1])]
    g = h.make_graph(nodes, "g", [h.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1, 1, 6])],
                     [h.make_tensor_value_info(o, TensorProto.FLOAT, ["n", *d]) for o, d in (("boxes", (1, 4)), ("scores", (1,)), ("classes", (1,)))], init)
    onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), folder + "/found.onnx")


def npy(a):
    b = io.BytesIO()
    numpy.save(b, a)
    return b.getvalue()


def styles(folder, r):
    """Two folders of images; the model puts out what it is given, and an .npz has what Pillow makes of them, in the order of pairs."""
    try:
        from PIL import Image
    except ImportError:
        return
    made = {}
    for kind, sizes in (("content", [(50, 30), (12, 90)]), ("style", [(33, 33), (64, 17), (20, 20)])):
        os.makedirs(folder + "/styles/" + kind)
        for i, size in enumerate(sizes):
            a = numpy.frombuffer(r.randbytes(3 * size[0] * size[1]), "u1").reshape(size[1], size[0], 3)
            a = a // 255 if kind == "style" and i == 2 else a
            Image.fromarray(a).save(folder + "/styles/%s/%d.png" % (kind, i))
            small = numpy.asarray(Image.fromarray(a).resize((24, 16), Image.BICUBIC))
            made[kind, i] = (small / 255 if small.max() > 1 else small).astype("f")
    pairs = [numpy.stack([made["content", i], made["style", k]]) for i in range(2) for k in range(3)]
    numpy.savez(folder + "/styles/want.npz", a=numpy.stack([p[0] for p in pairs]), b=numpy.stack([p[1] for p in pairs]))
    h = helper
    for name, ins in (("own", ("c", "s")), ("want", ("a", "b"))):
        nodes = [h.make_node("Sub", list(ins), ["d"]), h.make_node("Abs", ["d"], ["e"]), h.make_node("Mul", ["e", ins[0]], ["f"]),
                 h.make_node("ReduceSum", ["f", "axes"], ["y"], keepdims=0)]
        g = h.make_graph(nodes, "g", [h.make_tensor_value_info(i, TensorProto.FLOAT, ["n", 16, 24, 3]) for i in ins],
                         [h.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])], [h.make_tensor("axes", TensorProto.INT64, [3], [1, 2, 3])])
        onnx.save(h.make_model(g, opset_imports=[h.make_opsetid("", 13)], ir_version=8), folder + "/%s.onnx" % name)


def put(folder, name, data):
    os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
    with open(os.path.join(folder, name), "wb") as f:
        f.write(data)


def main(folder):
    r = random.Random(5)
    n = 17
    labels = [r.randrange(25) for _ in range(n)]
    # the image's mean is 10 times its label for most: the share of these is the accuracy
    right = [r.random() < 0.7 for _ in range(n)]
    value = [10 * (l if ok else (l + 3) % 25) for l, ok in zip(labels, right)]
    # values alternate one above and one below; their place differs, so that rows and columns matter to nobody
    rgb = [numpy.full((8, 6, 3), v, "u1") for v in value]
    share = sum(right) / n

    # shards, read in turn; some packed, some not
    shards = [[], [], []]
    for i in range(n):
        shards[i % 3].append(example({"image/encoded": [png(rgb[i])], "image/class/label": [labels[i]],
                                      "image/class/text": ["x"], "image/empty": [0]}, packed=i % 2 == 0))
    for k, s in enumerate(shards):
        data = tfrecord(s)
        put(folder, "imagenet/validation-0000%d-of-00003" % k, data)
        put(folder, "zipped/validation-0000%d-of-00003" % k, gzip.compress(data))
        bad = bytearray(data)
        bad[len(tfrecord(s[:2])) + 60] ^= 1
        put(folder, "damaged/validation-0000%d-of-00003" % k, bytes(bad) if k == 1 else data)
        put(folder, "short/validation-0000%d-of-00003" % k, data[:-1] if k == 2 else data)
    put(folder, "one.tfrecord", tfrecord(sum(shards, [])))
    where = len(tfrecord(shards[1][:2]))

    # numbers by name
    put(folder, "numbers.tfrecord", tfrecord(example({"x": [float(v)] * 4, "label": [l], "word": ["w"]}) for v, l in zip(value, labels)))
    # RecordIO: one label in the head, or several after it; one image whose file holds the magic number
    head = lambda l: struct.pack("<IfQQ", 0, l, 7, 0)
    records = [head(l) + png(p) for l, p in zip(labels, rgb)]
    magic = struct.pack("<I", 0xCED7230A)
    tail = b"\0" * (-len(records[3]) % 4) + magic + b"abc" + magic  # after IEND, where decoders look no more
    records[3] += tail
    put(folder, "images.rec", recordio(records))
    put(folder, "broken.rec", recordio(records)[:-9])
    # MNIST and CIFAR
    mnist = numpy.stack([numpy.full((28, 28), v, "u1") for v in value])
    put(folder, "mnist/MNIST/raw/t10k-images-idx3-ubyte.gz", gzip.compress(struct.pack(">IIII", 0x803, n, 28, 28) + mnist.tobytes()))
    put(folder, "mnist/MNIST/raw/t10k-labels-idx1-ubyte", struct.pack(">II", 0x801, n) + bytes(labels))
    planes = [numpy.full((3, 32, 32), v, "u1") for v in value]
    put(folder, "cifar/test_batch.bin", b"".join(bytes([l]) + p.tobytes() for l, p in zip(labels, planes)))
    put(folder, "cifar/cifar-100-binary/test.bin", b"".join(bytes([99, l]) + p.tobytes() for l, p in zip(labels, planes)))

    # Keras's file, and CIFAR's as Python pickles them: by this Python, and as Python 2 wrote those that are published
    numpy.savez(folder + "/keras.npz", x_test=mnist, y_test=numpy.array(labels, "u1"), x_train=mnist[:1], y_train=numpy.zeros(1, "u1"))
    os.makedirs(folder + "/keras")
    os.rename(folder + "/keras.npz", folder + "/keras/mnist.npz")
    rows = numpy.stack(planes).reshape(n, -1)
    for protocol in (3, 4):
        names = [b"%d.png" % i for i in range(n)]
        batch = {"filenames": names, "labels": labels, "data": rows, "batch_label": "x", "more": [1.5, -1, 70000, 2 ** 40, None, True, ()]}
        put(folder, "pickled%d/test_batch" % protocol, pickle.dumps(batch, protocol))
    put(folder, "python2/cifar-100-python/test", python2({"fine_labels": labels, "coarse_labels": [0] * n, "data": rows}))
    bad = bytearray(pickle.dumps({"labels": labels, "data": rows}, 4))
    put(folder, "cut/test_batch", bytes(bad[:5000]))
    put(folder, "evil/test_batch", b"\x80\x02cposix\nsystem\nU\x04exit\x85R.")
    put(folder, "other/test_batch", pickle.dumps({"labels": labels[1:], "data": rows}, 4))
    # class folders below val; COCO's images as arrays
    for i in range(n):
        put(folder, "classes/val/%02d/%d.png" % (labels[i], i), png(rgb[i]))
    for c in range(25):
        os.makedirs(folder + "/classes/val/%02d" % c, exist_ok=True)
    arrays(folder, r)
    styles(folder, r)

    model(folder + "/rgb.onnx", TensorProto.UINT8, [8, 6, 3], 25)
    model(folder + "/grey.onnx", TensorProto.UINT8, [28, 28, 1], 25)
    model(folder + "/cifar.onnx", TensorProto.UINT8, [32, 32, 3], 25)
    model(folder + "/numbers.onnx", TensorProto.FLOAT, [4], 25)
    model(folder + "/made.onnx", TensorProto.FLOAT, [100, 4], 25)
    print(json.dumps({"n": n, "share": share, "where": where}))


main(sys.argv[1])
