"""A SQuAD file with texts of all kinds, its features, logits for them, and the scores of the answers: by BERT's published procedure and
the official script's definitions, with glue.py's tokenizer. Prints exact match and F1."""
import collections
import json
import random
import re
import string
import sys

import numpy
import onnx
from onnx import TensorProto, helper

from glue import tokens, words

LENGTH, STRIDE = 160, 128


def features(doc, question, vocab):
    """(tokens before the context, pieces [from, to) of the context) and for each piece its word"""
    pieces, word_of = [], []
    for i, word in enumerate(doc):
        new = tokens(word, vocab, True)
        pieces += new
        word_of += [i] * len(new)
    query = tokens(question, vocab, True)[:64]
    room = LENGTH - len(query) - 3
    spans, at = [], 0
    while at < len(pieces):
        n = min(len(pieces) - at, room)
        spans.append((at, n))
        if at + n == len(pieces):
            break
        at += min(n, STRIDE)
    return len(query) + 2, spans, pieces, word_of


def is_best_place(spans, k, piece):
    scores = []
    for at, n in spans:
        scores.append(min(piece - at, at + n - 1 - piece) + 0.01 * n if at <= piece < at + n else -1)
    return scores.index(max(scores)) == k


def final_text(pred, orig):
    tok = " ".join(words(orig, True))
    at = tok.find(pred)
    if at < 0:
        return orig
    solid_tok = [i for i, c in enumerate(tok) if c != " "]
    solid_orig = [i for i, c in enumerate(orig) if c != " "]
    if len(solid_tok) != len(solid_orig):
        return orig
    a, b = solid_tok.index(at), solid_tok.index(at + len(pred) - 1)
    return orig[solid_orig[a]:solid_orig[b] + 1]


def normal(text):
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", text).split()


def f1(a, b):
    a, b = normal(a), normal(b)
    same = sum((collections.Counter(a) & collections.Counter(b)).values())
    if not same:
        return 0
    p, r = same / len(a), same / len(b)
    return 2 * p * r / (p + r)


def main(folder):
    r = random.Random(7)
    vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "an", "##s", "##ing", "red", "blue", "river", "in", "of", "1900", "paris"]
    for c in "abcdefghijklmnopqrstuvwxyz0123456789.,-'()$%ß€":
        vocab += [c, "##" + c]
    open(folder + "/vocab.txt", "w").write("\n".join(vocab) + "\n")
    names = vocab
    vocab = {}
    for i, p in enumerate(names):
        vocab[p] = i # of two equal lines the last counts
    some = ["the", "River", "rivers", "red", "Blue", "a", "an", "of", "in", "1900", "$12.50", "(Paris)", "Zürich,", "it's", "naïve", "x-y",
            "The", "漢", "A.", "Straße", "don't", "1,000", "pqr", "under_score", "50%"]
    data, all_start, all_end, all_ids, predictions, wanted = [], [], [], [], [], []
    for article in range(3):
        paragraphs = []
        for _ in range(3):
            doc = [r.choice(some) for _ in range(r.choice([20, 90, 200]))]
            context = "".join(w + r.choice([" ", "  ", "\n", " \t"]) for w in doc)
            qas = []
            for q in range(3):
                question = " ".join(r.choice(some) for _ in range(r.choice([3, 9, 40])))
                answers = []
                for _ in range(r.randint(1, 3)):
                    at = r.randrange(len(doc))
                    answers.append({"text": " ".join(doc[at:at + r.randint(1, 4)]), "answer_start": 0})
                qas.append({"id": "%d-%d" % (article, len(predictions)), "question": question, "answers": answers})
                head, spans, pieces, word_of = features(doc, question, vocab)
                best = None
                for k, (at, n) in enumerate(spans):
                    # mostly a gold answer, else noise; ties and values out of place included
                    start = [round(r.gauss(0, 2), 1) for _ in range(LENGTH)]
                    end = [round(r.gauss(0, 2), 1) for _ in range(LENGTH)]
                    gold = r.choice(answers)["text"].split()
                    for p in range(at, at + n):
                        i = word_of[p]
                        if doc[i:i + len(gold)] == gold and (p == 0 or word_of[p - 1] != i):
                            last = max(x for x in range(len(word_of)) if word_of[x] == i + len(gold) - 1)
                            if last < at + n and r.random() < 0.7:
                                start[head + p - at] += 7
                                end[head + last - at] += 7
                            break
                    ids = tokens(question, vocab, True)[:64]
                    ids = [vocab["[CLS]"]] + ids + [vocab["[SEP]"]] + pieces[at:at + n] + [vocab["[SEP]"]]
                    all_ids.append(ids + [0] * (LENGTH - len(ids)))
                    all_start.append(start)
                    all_end.append(end)
                    top = lambda v: sorted(range(LENGTH), key=lambda i: v[i], reverse=True)[:20]
                    for i in top(start):
                        for j in top(end):
                            if not (head <= i <= j < head + n and j - i < 30 and is_best_place(spans, k, at + i - head)):
                                continue
                            score = numpy.float32(start[i]).astype("d") + numpy.float32(end[j]).astype("d")
                            if best is None or score > best[0]:
                                best = (score, at + i - head, at + j - head)
                if best is None:
                    text = "empty"
                else:
                    tok = " ".join(names[p] for p in pieces[best[1]:best[2] + 1]).replace(" ##", "").replace("##", "")
                    text = final_text(tok, " ".join(doc[word_of[best[1]]:word_of[best[2]] + 1]))
                predictions.append(text)
                wanted.append([a["text"] for a in answers])
            paragraphs.append({"context": context, "qas": qas})
        data.append({"title": "t", "paragraphs": paragraphs})
    json.dump({"version": "1.1", "data": data}, open(folder + "/dev.json", "w"), ensure_ascii=bool(article % 2))
    s, e = numpy.array(all_start, "f"), numpy.array(all_end, "f")
    n = len(s)
    numpy.savez(folder + "/data.npz", s=s, e=e, ids=numpy.arange(n) + 10**9)
    order = numpy.random.RandomState(1).permutation(n)
    numpy.savez(folder + "/mixed.npz", s=s[order], e=e[order], ids=order, y=order)
    f = lambda name, shape, t=TensorProto.FLOAT: helper.make_tensor_value_info(name, t, shape)
    ins = [f("ids", ["n"], TensorProto.INT64), f("s", ["n", LENGTH]), f("e", ["n", LENGTH])]
    nodes = [helper.make_node("Identity", [a], [b]) for a, b in (("ids", "unique_ids"), ("e", "unstack:1"), ("s", "unstack:0"))]
    outs = [f("unique_ids", ["n"], TensorProto.INT64), f("unstack:0", ["n", LENGTH]), f("unstack:1", ["n", LENGTH])]
    save = lambda g, name: onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), folder + name)
    save(helper.make_graph(nodes, "g", ins, outs), "/three.onnx")
    save(helper.make_graph(nodes, "g", ins, [outs[2], outs[1], outs[0]]), "/swapped.onnx")
    nodes = [helper.make_node("Unsqueeze", [x, "ax"], [x + "2"]) for x in "se"] + [helper.make_node("Concat", ["s2", "e2"], ["logits"], axis=2)]
    ax = helper.make_tensor("ax", TensorProto.INT64, [1], [2])
    save(helper.make_graph(nodes, "g", ins[1:], [f("logits", ["n", LENGTH, 2])], [ax]), "/one.onnx")
    em = sum(any(normal(p) == normal(x) for x in w) for p, w in zip(predictions, wanted))
    print(100 * em / len(wanted), 100 * sum(max(f1(p, x) for x in w) for p, w in zip(predictions, wanted)) / len(wanted), n)
    numpy.save(folder + "/features.npy", numpy.array(all_ids))


main(sys.argv[1])
