"""Sequences of tokens with labels, and what bleu, wer, cer and exact_match are of them: from their definitions, with Python's Unicode
tables. Prints lines: file of data, metric, vocabulary or -, value."""
import collections
import itertools
import math
import random
import re
import sys
import unicodedata

import numpy
import onnx
from onnx import TensorProto, helper

PUNCT = "".join(chr(c) for c in range(0x3000) if unicodedata.category(chr(c))[0] == "P")
SYMBOL = "".join(chr(c) for c in range(0x3000) if unicodedata.category(chr(c))[0] == "S")


def cut(text):
    text = text.lower()
    text = re.sub("([^\\d])([" + re.escape(PUNCT) + "])", r"\1 \2 ", text)
    text = re.sub("([" + re.escape(PUNCT) + "])([^\\d])", r" \1 \2", text)
    return re.sub("([" + re.escape(SYMBOL) + "])", r" \1 ", text).split()


def bleu(pairs):
    match, possible, got, want = [0] * 4, [0] * 4, 0, 0
    for a, b in pairs:
        got += len(a)
        want += len(b)
        for n in range(1, 5):
            ca, cb = (collections.Counter(zip(*[x[i:] for i in range(n)])) for x in (a, b))
            match[n - 1] += sum((ca & cb).values())
            possible[n - 1] += sum(ca.values())
    smooth, logs = 1, 0
    for m, p in zip(match, possible):
        if p and not m:
            smooth *= 2
            logs += math.log(1 / (smooth * p))
        elif p:
            logs += math.log(m / p)
    return 100 * math.exp(logs / 4) * (math.exp(1 - want / got) if got < want else 1)


def edits(a, b):
    d = numpy.zeros((len(a) + 1, len(b) + 1), int)
    d[:, 0], d[0, :] = range(len(a) + 1), range(len(b) + 1)
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
    return d[-1, -1]


def rate(pairs):
    return sum(edits(a, b) for a, b in pairs) / sum(len(b) for _, b in pairs)


def save(folder, name, x, y):
    numpy.savez(folder + "/" + name, x=x, y=y)


def main(folder):
    r = random.Random(3)
    out = lambda *a: print(*a)
    for name, shape, t in (("ids", ["n", "t"], TensorProto.INT64), ("scores", ["n", "t", "v"], TensorProto.FLOAT)):
        v = lambda s: helper.make_tensor_value_info(s, t, shape)
        g = helper.make_graph([helper.make_node("Identity", ["x"], ["o"])], "g", [v("x")], [v("o")])
        onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder + "/%s.onnx" % name)
    # translations: WordPieces that make texts with punctuation, numbers and symbols
    words = ["<pad>", "</s>", "The", "cat", "sat", "on", "mat", "Hello", "world", "##s", "##,", "##.", "3", "##.", "##14", "$", "##5", "“", "##”",
             "it", "##'", "##s", "€", "##-", "é", "##É", "1,000", "a.b", "x=y", "!"]
    open(folder + "/pieces.txt", "w").write("\n".join(words) + "\n")
    rows = []
    for _ in range(60):
        want = [r.randrange(2, len(words)) for _ in range(r.randint(1, 14))]
        got = [x if r.random() < 0.75 else r.randrange(2, len(words)) for x in want if r.random() < 0.9] or [2]
        rows.append((got, want))
    pad = lambda v, with_end: (v + [1] * with_end + [0] * 20)[:18]
    save(folder, "mt.npz", numpy.array([pad(a, 1) for a, _ in rows]), numpy.array([pad(b, 1) for _, b in rows]))
    out("mt.npz", "bleu:end=1/pad=0", "-", bleu(rows))
    text = lambda v: " ".join(words[i] for i in v).replace(" ##", "").replace("##", "")
    texts = [(text(a), text(b)) for a, b in rows]
    out("mt.npz", "bleu:end=1/pad=0", "pieces.txt", bleu([(cut(a), cut(b)) for a, b in texts]))
    out("mt.npz", "wer:end=1/pad=0", "pieces.txt", rate([(a.split(), b.split()) for a, b in texts]))
    out("mt.npz", "cer:end=1/pad=0", "pieces.txt", rate(texts))
    out("mt.npz", "cer:end=1/pad=0", "-", rate(rows))
    # no 4-gram matches: smoothing
    poor = [([2, 3, 4, 5, 6], [2, 3, 9, 5, 7]), ([8], [8, 9])]
    save(folder, "poor.npz", numpy.array([pad(a, 0) for a, _ in poor]), numpy.array([pad(b, 0) for _, b in poor]))
    out("poor.npz", "BLEU:pad=0", "-", bleu(poor))
    # speech: scores of characters in steps, blank 0, space 1
    chars = ["<blank>", " "] + list("abcdef")
    open(folder + "/chars.txt", "w").write("\n".join(chars) + "\n")
    x, y, pairs = numpy.random.RandomState(5).randn(50, 40, 8).astype("f"), numpy.full((50, 16), -100), []
    for i in range(50):
        want = [r.choice([1, 2, 3, 4, 5, 6, 7]) for _ in range(r.randint(1, 14))]
        y[i, : len(want)] = want
        at = 0
        for k, c in enumerate(want):
            if k and c == want[k - 1]:
                x[i, at, 0] += 9
                at += 1
            for _ in range(r.randint(1, 2)):
                x[i, at, c if r.random() < 0.95 else r.randrange(8)] += 9
                at += 1
        x[i, at:, 0] += 9
        got = [k for k, _ in itertools.groupby(x[i].argmax(1))]
        pairs.append(([int(c) for c in got if c], want))
    save(folder, "ctc.npz", x, y)
    spoken = [("".join(chars[c] for c in a), "".join(chars[c] for c in b)) for a, b in pairs]
    out("ctc.npz", "cer:blank=0", "-", rate(pairs))
    out("ctc.npz", "cer:blank=0", "chars.txt", rate(spoken))
    out("ctc.npz", "wer:blank=0/space=1", "-", rate([(a.split(), b.split()) for a, b in spoken]))
    out("ctc.npz", "wer:blank=0", "chars.txt", rate([(a.split(), b.split()) for a, b in spoken]))
    out("ctc.npz", "exact_match:blank=0", "-", sum(a == b for a, b in pairs) / len(pairs))


main(sys.argv[1])
