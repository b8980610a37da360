"""Metrics by scikit-learn and SciPy: data, a model and a configuration for each, and the value that is right. GLUE's tasks go all the way:
a task's file, tokens, a small model, its metric."""
import os
import random
import sys

import numpy
import onnx
import scipy.stats
import sklearn.metrics as sk
from onnx import TensorProto, helper

import glue

folder = sys.argv[1]
rng = numpy.random.default_rng(8)
N = 150


def softmax(x):
    e = numpy.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def save(path, nodes, ins, outs, init=()):
    g = helper.make_graph(nodes, "g", ins, outs, init)
    onnx.save(helper.make_model(g, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


def case(name, metric, out, y, want):
    """A model that puts out what it is given."""
    os.makedirs(os.path.join(folder, name))
    numpy.savez(os.path.join(folder, name, "data.npz"), x=out, y=y)
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", *out.shape[1:]])
    save(os.path.join(folder, name, "model.onnx"), [helper.make_node("Identity", ["x"], ["o"])], [info("x")], [info("o")])
    with open(os.path.join(folder, name, "c.yaml"), "w") as f:
        f.write("evaluation: {accuracy: {metric: {%s}, dataloader: {dataset: {Npz: {root: data.npz}}}}}\n" % metric)
    print(name, float(want), sep="\t")


logits = rng.normal(size=(N, 5)).astype("f")
classes = numpy.where(rng.random(N) < 0.6, logits.argmax(1), rng.integers(0, 4, N))  # class 4 is rare
answers = logits.argmax(1)
scores = numpy.round(rng.random(N), 1).astype("f")  # with ties
truth = (rng.random(N) < scores).astype("i8")
two = rng.normal(size=(N, 2)).astype("f")
a, b = rng.normal(size=(N, 3)).astype("f"), rng.normal(size=(N, 3)).astype("f")
b[: N // 2] += a[: N // 2]
case("r2", "R2: {compare_label: true}", a[:, 0], b[:, 0], sk.r2_score(b[:, 0], a[:, 0]))
case("r2_all", "R2: {compare_label: true}", a, b, sk.r2_score(b.ravel(), a.ravel()))
case("mse", "MSE: {compare_label: true}", a, b, sk.mean_squared_error(b, a))
case("mae", "MAE: {compare_label: true}", a, b, sk.mean_absolute_error(b, a))
case("rmse", "RMSE: {compare_label: true}", a, b, sk.mean_squared_error(b.ravel(), a.ravel()) ** 0.5)
case("pearson", "pearson:", a[:, 0], b[:, 0], scipy.stats.pearsonr(a[:, 0], b[:, 0])[0])
case("spearman", "spearman:", scores, b[:, 0], scipy.stats.spearmanr(scores, b[:, 0])[0])
case("auc", "auc:", scores, truth, sk.roc_auc_score(truth, scores))
case("roc", "ROC: {task: dlrm}", two, truth, sk.roc_auc_score(truth, two[:, 1] - two[:, 0]))
case("accuracy", "Accuracy: {}", logits, classes, sk.accuracy_score(classes, answers))
case("top3", "topk: 3", logits, classes, sk.top_k_accuracy_score(classes, logits, k=3, labels=range(5)))
case("f1", "F1: {}", logits, classes, sk.f1_score(classes, answers, average="macro"))
case("f1_micro", "F1: {average: micro}", logits, classes, sk.f1_score(classes, answers, average="micro"))
case("f1_binary", "F1: {average: binary}", two, truth, sk.f1_score(truth, two.argmax(1)))
case("mcc", "mcc:", logits, classes, sk.matthews_corrcoef(classes, answers))
case("miou", "mIOU: {num_classes: 5}", logits, classes, sk.jaccard_score(classes, answers, average="macro"))
case("cross_entropy", "cross_entropy:", logits, classes, sk.log_loss(classes, softmax(logits.astype("d")), labels=range(5)))
# weighted, of which lower is better for one
case("mixed", "multi_metrics: {R2: {compare_label: true}, MSE: {compare_label: true}, weight: '0.75 0.25', higher_is_better: [true, false]}", a, b,
     0.75 * sk.r2_score(b.ravel(), a.ravel()) - 0.25 * sk.mean_squared_error(b, a))

# task: columns, places of the sentences and of the label, classes (None: a number), has it a head, file, metric
corr = lambda y, p: (scipy.stats.pearsonr(p, y)[0] + scipy.stats.spearmanr(p, y)[0]) / 2
TASKS = {
    "mrpc": (5, (3, 4), 0, 2, True, "dev.tsv", sk.accuracy_score),
    "cola": (4, (3,), 1, 2, False, "dev.tsv", sk.matthews_corrcoef),
    "sst-2": (2, (0,), 1, 2, True, "dev.tsv", sk.accuracy_score),
    "sts-b": (10, (7, 8), 9, None, True, "dev.tsv", corr),
    "qqp": (6, (3, 4), 5, 2, True, "dev.tsv", sk.accuracy_score),
    "mnli": (16, (8, 9), 15, ["contradiction", "entailment", "neutral"], True, "dev_matched.tsv", sk.accuracy_score),
    "qnli": (4, (1, 2), 3, ["entailment", "not_entailment"], True, "dev.tsv", sk.accuracy_score),
    "rte": (4, (1, 2), 3, ["entailment", "not_entailment"], True, "dev.tsv", sk.accuracy_score),
    "wnli": (4, (1, 2), 3, 2, True, "dev.tsv", sk.accuracy_score),
}


def glue_case(task, roberta):
    columns, places, at, names, head, file, metric = TASKS[task]
    r = random.Random(task)
    name = task + ("_roberta" if roberta else "")
    path = os.path.join(folder, name)
    os.makedirs(path)
    lines = [["".join(r.choice("the an red in. ,'AB") for _ in range(r.randint(2, 20))).strip() or "a" for _ in places] for _ in range(60)]
    if roberta:
        vocab, merges = glue.learn([t for l in lines for t in l], r)
        cut = lambda t: glue.pairs(t, vocab, merges)
        with open(path + "/merges.txt", "w") as f:
            f.write("".join("%s %s\n" % p for p in merges))
    else:
        vocab = {p: i for i, p in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"thearndi.,'b", "##e", "##h", "##n", "##d", "red", "the"])}
        cut = lambda t: glue.tokens(t, vocab, True)
    with open(path + ("/vocab.json" if roberta else "/vocab.txt"), "w") as f:
        glue.json.dump(vocab, f) if roberta else f.write("\n".join(vocab) + "\n")
    outputs = 1 if names is None else len(names) if isinstance(names, list) else names
    table = rng.normal(size=(len(vocab), outputs)).astype("f")
    values = []
    for l in lines:
        ids, mask, _ = glue.sample(cut(l[0]), cut(l[1]) if len(l) > 1 else None, vocab)
        values.append((table[ids].astype("d") * numpy.array(mask)[:, None]).sum(0))
    values = numpy.array(values)
    if names is None:
        labels = numpy.round(values[:, 0] + rng.normal(size=60), 2)
        texts, said = labels, values[:, 0]
    else:
        said = values.argmax(1)
        labels = numpy.where(rng.random(60) < 0.7, said, rng.integers(0, outputs, 60))
        order = [names[0], names[2], names[1]] if roberta and isinstance(names, list) and outputs == 3 else names
        texts = [order[l] if isinstance(names, list) else l for l in labels]
    with open(os.path.join(path, file), "w") as f:
        f.write("\t".join(["head"] * columns) + "\n" if head else "")
        for l, text in zip(lines, texts):
            row = ["x"] * columns
            for place, sentence in zip(places, l):
                row[place] = sentence
            row[at] = str(text)
            f.write("\t".join(row) + "\n")
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.INT64, ["n", glue.LENGTH])
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["e"]), helper.make_node("Cast", ["attention_mask"], ["m"], to=1),
             helper.make_node("Unsqueeze", ["m", "two"], ["m1"]), helper.make_node("Mul", ["e", "m1"], ["w"]),
             helper.make_node("ReduceSum", ["w", "one"], ["y"], keepdims=0)]
    init = [helper.make_tensor("table", TensorProto.FLOAT, table.shape, table.ravel()), helper.make_tensor("one", TensorProto.INT64, [1], [1]),
            helper.make_tensor("two", TensorProto.INT64, [1], [2])]
    save(path + "/model.onnx", nodes, [info("input_ids"), info("attention_mask")],
         [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", outputs])], init)
    with open(path + "/c.yaml", "w") as f:
        f.write("evaluation: {accuracy: {metric: {GLUE: {task: %s}}, dataloader: {dataset: {GLUE: {data_dir: ., model_name_or_path: ., max_seq_length: %d, "
                "task: %s, model_type: %s}}}}}\n" % (task, glue.LENGTH, task, "roberta" if roberta else "bert"))
    print(name, float(metric(labels, said)), sep="\t")


# the fp32 model has no error against itself: what may be lost is a share of the error of zeros
w, x = rng.normal(size=(8, 6)).astype("f"), rng.normal(size=(40, 8)).astype("f")
y = x.astype("d") @ w
numpy.savez(folder + "/relative.npz", x=x)
save(folder + "/relative.onnx", [helper.make_node("MatMul", ["x", "w"], ["y"])], [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 8])],
     [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 6])], [helper.make_tensor("w", TensorProto.FLOAT, w.shape, w.ravel())])
for name, zeros in (("MSE", (y ** 2).mean()), ("MAE", abs(y).mean()), ("RMSE", (y ** 2).mean() ** 0.5)):
    with open(folder + "/relative_%s.yaml" % name, "w") as f:
        f.write("evaluation: {accuracy: {metric: {%s: {compare_label: false}}}}\ntuning: {accuracy_criterion: {relative: 0.25}}\n" % name)
    print(name, 0.25 * zeros, file=open(folder + "/relative", "a"))

for t in TASKS:
    glue_case(t, False)
for t in ("mrpc", "mnli", "sts-b", "cola"):
    glue_case(t, True)
