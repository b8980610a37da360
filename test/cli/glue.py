"""GLUE files with texts of all kinds, and a tokenizer of our own from BERT's description, on Python's Unicode tables. The label of each
line is a sum over its tokens that the model computes too: they agree only if all tokens do."""
import json
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


def letters_of_bytes():
    """GPT-2's: bytes that are printable stand for themselves, the others for the characters after U+00FF, in turn."""
    own = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in own]
    return {**{b: chr(b) for b in own}, **{b: chr(256 + i) for i, b in enumerate(rest)}}


LETTERS = letters_of_bytes()


def kind(c):
    return "L" if category(c)[0] == "L" else "N" if category(c)[0] == "N" else " " if c.isspace() else "o"


def pair_words(text):
    """'s|'t|'re|'ve|'m|'ll|'d| ?letters| ?numbers| ?others|blanks but the last before a word|blanks"""
    out, i = [], 0
    while i < len(text):
        ending = next((e for e in ("'s", "'t", "'re", "'ve", "'m", "'ll", "'d") if text.startswith(e, i)), None)
        start = i + 1 if text[i] == " " and i + 1 < len(text) else i
        if ending:
            end = i + len(ending)
        elif kind(text[start]) != " ":
            end = start + 1
            while end < len(text) and kind(text[end]) == kind(text[start]):
                end += 1
        else:
            end = i + 1
            while end < len(text) and kind(text[end]) == " ":
                end += 1
            if end < len(text) and end - i > 1:
                end -= 1
        out.append(text[i:end])
        i = end
    return out


def pairs(text, vocab, merges):
    ids = []
    for word in pair_words(text):
        parts = [LETTERS[b] for b in word.encode()]
        while len(parts) > 1:
            best = min(zip(parts, parts[1:]), key=lambda p: merges.get(p, 1e9))
            if best not in merges:
                break
            joined, i = [], 0
            while i < len(parts):
                both = tuple(parts[i : i + 2]) == best
                joined.append("".join(parts[i : i + 1 + both]))
                i += 1 + both
            parts = joined
        ids += [vocab.get(p, vocab["<unk>"]) for p in parts]
    return ids


def learn(texts, r):
    """A list of merges from the pairs that are most frequent, and the pieces; a letter is left out, so that it is unknown."""
    words = [[LETTERS[b] for b in w.encode()] for t in texts for w in pair_words(t)]
    merges = []
    for _ in range(60):
        count = {}
        for w in words:
            for p in zip(w, w[1:]):
                count[p] = count.get(p, 0) + 1
        best = max(count, key=lambda p: (count[p], p))
        merges.append(best)
        for w in words:
            i = 0
            while i + 1 < len(w):
                if (w[i], w[i + 1]) == best:
                    w[i : i + 2] = ["".join(best)]
                i += 1
    pieces = ["<s>", "<pad>", "</s>", "<unk>"] + [c for b, c in LETTERS.items() if b != ord("f")] + ["".join(p) for p in merges]
    return {p: i for i, p in enumerate(dict.fromkeys(pieces))}, {p: i for i, p in enumerate(merges)}


def sample(a, b, vocab):
    a, b = list(a), list(b) if b is not None else None
    roberta = "</s>" in vocab
    begin, end = ("<s>", "</s>") if roberta else ("[CLS]", "[SEP]")
    while len(a) + (len(b) + 3 + roberta if b is not None else 2) > LENGTH:
        (a if b is None or len(a) > len(b) else b).pop()
    ids = [vocab[begin]] + a + [vocab[end]]
    types = [0] * len(ids)
    if b is not None:
        ids += [vocab[end]] * roberta + b + [vocab[end]]
        types += [0 if roberta else 1] * (len(b) + 1 + roberta)
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
    rows, texts = [], []
    for _ in range(120):
        a, b = ("".join(r.choice(letters) for _ in range(r.randint(1, 30))) for _ in range(2))
        texts.append((a, b))
        ids, mask, types = sample(tokens(a, vocab, True), tokens(b, vocab, True), vocab)
        value = sum((k + 1) * (i + 100 * m + 1000 * t) for k, (i, m, t) in enumerate(zip(ids, mask, types)))
        rows.append(["x"] * 7 + [a, b, str(value)])
    os.makedirs(folder + "/STS-B", exist_ok=True)
    with open(folder + "/STS-B/dev.tsv", "w") as f:
        f.write("\t".join(["head"] * 10) + "\n" + "".join("\t".join(row) + "\n" for row in rows))
    with open(folder + "/MRPC/dev.tsv", "w") as f:
        f.write("q\ta\tb\ts1\ts2\n1\t2\t3\tthe one\tthe other\n0\t2\t3\n")
    # the same for RoBERTa, with numbers, endings and capitals
    texts = [(a + r.choice([" it's", " 12 3", "I'll  ", "\u00a0x", " f"]), r.choice(["", "They've "]) + b) for a, b in texts]
    vocab, merges = learn([t for both in texts for t in both], r)
    os.makedirs(folder + "/roberta/STS-B")
    with open(folder + "/roberta/vocab.json", "w") as f:
        json.dump(vocab, f)
    with open(folder + "/roberta/merges.txt", "w") as f:
        f.write("#version: 0.2\n" + "".join("%s %s\n" % p for p in merges))
    with open(folder + "/roberta/STS-B/train.tsv", "w") as f:
        f.write("\t".join(["head"] * 10) + "\n")
        for a, b in texts:
            ids, mask, types = sample(pairs(a, vocab, merges), pairs(b, vocab, merges), vocab)
            value = sum((k + 1) * (i + 100 * m + 1000 * t) for k, (i, m, t) in enumerate(zip(ids, mask, types)))
            f.write("\t".join(["x"] * 7 + [a, b, str(value)]) + "\n")
    model(folder + "/named.onnx", ["ids", "my_mask", "segments"])
    model(folder + "/positions.onnx", ["a", "b", "c"])


if __name__ == "__main__":
    main(sys.argv[1])
