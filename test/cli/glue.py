"""GLUE files with texts of all kinds, and a tokenizer of our own from BERT's description, on Python's Unicode tables. The label of each
line is a sum over its tokens that the model computes too: they agree only if all tokens do."""
import os
import random
import sys
import unicodedata

import numpy
import onnx
from onnx import TensorProto, helper

LENGTH = 24


def category(c):
    return unicodedata.category(c)


def punctuation(c):
    o = ord(c)
    return 33 <= o <= 47 or 58 <= o <= 64 or 91 <= o <= 96 or 123 <= o <= 126 or category(c).startswith("P")


def chinese(c):
    o = ord(c)
    return any(a <= o <= b for a, b in [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)])


def words(text, lower):
    clean = ""
    for c in text:
        if c in "\t\n\r" or category(c) == "Zs":
            clean += " "
        elif ord(c) in (0, 0xFFFD) or category(c) in ("Cc", "Cf"):
            continue
        else:
            clean += " %s " % c if chinese(c) else c
    out = []
    for word in clean.split():
        if lower:
            word = "".join(c for c in unicodedata.normalize("NFD", word.lower()) if category(c) != "Mn")
        part = ""
        for c in word:
            if punctuation(c):
                out += [part, c] if part else [c]
                part = ""
            else:
                part += c
        if part:
            out.append(part)
    return out


def tokens(text, vocab, lower):
    ids = []
    for word in words(text, lower):
        start, own = 0, []
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = ("##" if start else "") + word[start:end]
                if piece in vocab:
                    own.append(vocab[piece])
                    start = end
                    break
            else:
                own = [vocab["[UNK]"]]
                break
        ids += own
    return ids


def sample(a, b, vocab):
    a, b = list(a), list(b) if b is not None else None
    while len(a) + (len(b) + 3 if b is not None else 2) > LENGTH:
        (a if b is None or len(a) > len(b) else b).pop()
    ids = [vocab["[CLS]"]] + a + [vocab["[SEP]"]]
    types = [0] * len(ids)
    if b is not None:
        ids += b + [vocab["[SEP]"]]
        types += [1] * (len(b) + 1)
    mask = [1] * len(ids)
    fill = [0] * (LENGTH - len(ids))
    return ids + fill, mask + fill, types + fill


def model(path, names):
    w = numpy.arange(1, LENGTH + 1, dtype="f")
    init = [helper.make_tensor("w%d" % k, TensorProto.FLOAT, [LENGTH], w * f) for k, f in enumerate((1, 100, 1000))]
    nodes, total = [], []
    for k, name in enumerate(names):
        nodes += [helper.make_node("Cast", [name], ["f%d" % k], to=1), helper.make_node("Mul", ["f%d" % k, "w%d" % k], ["m%d" % k])]
        total.append("m%d" % k)
    nodes += [helper.make_node("Sum", total, ["s"]), helper.make_node("ReduceSum", ["s", "axes"], ["y"], keepdims=0)]
    init.append(helper.make_tensor("axes", TensorProto.INT64, [1], [1]))
    g = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(n, TensorProto.INT64, ["n", LENGTH]) for n in names],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])], init)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def main(folder):
    r = random.Random(4)
    letters = "abcdefgilmnorstu" + "éÀñçüßøłŠžÖĐœİ" + "ийЁщΛλ" + "漢字" + "-.,!?'\"«»…—¿’" + "€™°" + " \u00a0\u200b\u3000\u0301" + "   "
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    for c in "abcdefgilmnorstu" + "ßøłđœ" + "ищеλ" + "漢字" + "-.,!?'\"«»…—¿’" + "ABCŠ":
        vocab += [c, "##" + c]
    vocab += ["the", "##ing", "##er", "an", "##an", "re", "##st", "in", "##in", "tion"]
    os.makedirs(folder + "/MRPC", exist_ok=True)
    with open(folder + "/vocab.txt", "w") as f:
        f.write("\n".join(vocab) + "\n")
    vocab = {p: i for i, p in enumerate(vocab)}
    rows = []
    for _ in range(120):
        a, b = ("".join(r.choice(letters) for _ in range(r.randint(1, 30))) for _ in range(2))
        ids, mask, types = sample(tokens(a, vocab, True), tokens(b, vocab, True), vocab)
        value = sum((k + 1) * (i + 100 * m + 1000 * t) for k, (i, m, t) in enumerate(zip(ids, mask, types)))
        rows.append(["x"] * 7 + [a, b, str(value)])
    os.makedirs(folder + "/STS-B", exist_ok=True)
    with open(folder + "/STS-B/dev.tsv", "w") as f:
        f.write("\t".join(["head"] * 10) + "\n" + "".join("\t".join(row) + "\n" for row in rows))
    with open(folder + "/MRPC/dev.tsv", "w") as f:
        f.write("q\ta\tb\ts1\ts2\n1\t2\t3\tthe one\tthe other\n0\t2\t3\n")
    model(folder + "/named.onnx", ["ids", "my_mask", "segments"])
    model(folder + "/positions.onnx", ["a", "b", "c"])


if __name__ == "__main__":
    main(sys.argv[1])
