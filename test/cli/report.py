"""Compares what 'fettle report' wrote with the history that it is made of: report.py FOLDER"""

import csv
import json
import re
import sys

folder = sys.argv[1]
history = json.load(open(f"{folder}/h.json"))
report = json.load(open(f"{folder}/r.json"))
html = open(f"{folder}/r.html", encoding="utf-8").read()
(run,) = report["runs"]

# the page has the same data, and asks for nothing from elsewhere
(embedded,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
assert len(json.loads(embedded)["runs"][0]["trials"]) == len(history["trials"])
assert not re.search(r'(src|href)="(?!#)', html), "the page refers to another file"

assert run["met"] == history["met"] and run["best"] == history["best"]
assert run["result"] == json.load(open(f"{folder}/tuned.json"))
assert run["higher_is_better"] and run["criterion"] == "relative" and run["seed"] == 9527
assert abs(run["target"] - run["baseline"]) < 1e-12, "a tolerance of 0 wants the baseline"

digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
plans = run["plans"]
for ours, theirs in zip(run["trials"], history["trials"]):
    for key in "trial", "stage", "accuracy", "accuracy_low", "latency_ms", "size_bytes", "met", "failed", "changed", "pareto":
        assert ours[key] == theirs[key], (key, ours[key], theirs[key])
    for i, name in enumerate(plans["ops"]):
        a, b = ours["plan"][2 * i : 2 * i + 2]
        words = plans["options"][64 * digits.index(a) + digits.index(b)]
        option = theirs["plan"]["ops"][name]
        assert words.startswith(option["mode"]), (name, words, option)
        for side in "activation", "weight":
            for key, value in option.get(side, {}).items():
                if isinstance(value, str):
                    assert value in words, (name, words, value)
    rest = dict(theirs["plan"])
    del rest["ops"], rest["fettle_plan"]
    assert plans["rests"][ours["rest"]] == rest

rows = list(csv.DictReader(open(f"{folder}/r.csv", newline="")))
assert len(rows) == len(history["trials"])
for row, trial in zip(rows, history["trials"]):
    assert int(row["trial"]) == trial["trial"] and row["stage"] == trial["stage"] and row["changed"] == trial["changed"]
    assert (row["met"] == "true") == trial["met"]
    for key in "accuracy", "accuracy_low", "accuracy_high", "loss", "latency_ms", "size_bytes", "seconds":
        want = trial[key]
        assert row[key] == "" if want is None else abs(float(row[key]) - want) <= 1e-9 * abs(want), (key, row[key], want)

text = open(f"{folder}/r.md").read()
lines = [line for line in text.splitlines() if re.match(r"\| \d+ \|", line)]
assert len(lines) == len(history["trials"]), "a row of Markdown per trial"
assert f"{history['baseline']:.5g}" in text
print("all the same")

# ---- the model taken apart, against inspect, sensitivity, ONNX Runtime and the written model ----

inspected = json.load(open(f"{folder}/inspect.json"))
sensitivity = json.load(open(f"{folder}/sensitivity.json"))
assert not run.get("missing"), run.get("missing")
graph = run["graph"]
assert [o["name"] for o in graph["ops"]] == [o["name"] for o in inspected["ops"]]
counts = {}
for op in graph["ops"]:
    if "is" in op:
        counts[op["is"]] = counts.get(op["is"], 0) + 1
assert counts == run["result"]["best"]["ops"], (counts, run["result"]["best"]["ops"])
assert all(a < b for a, b in graph["edges"]), "edges go forward"

theirs = {o["name"]: o for o in sensitivity["ops"]}
ours = {o["name"]: o for o in run["sensitivity"]["ops"]}
assert ours.keys() == theirs.keys()
for name in ours:
    # the run chose other samples to calibrate on, by its seed
    for key, limit in ("model_sqnr_db", 2), ("sqnr_db", 2), ("weight_share", 0.2), ("clipping_share", 0.2):
        assert abs(ours[name][key] - theirs[name][key]) < limit, (name, key, ours[name], theirs[name])
    # quantizing one op less leaves an error that is a number, and not always larger
    assert ours[name]["without_sqnr_db"] > 0
assert max(o["without_sqnr_db"] for o in ours.values()) > run["sensitivity"]["all_sqnr_db"], "no op's fallback helps"
assert {r["op"] for r in run["profile"]["before"]} & {"Conv", "Gemm", "Conv (depthwise)"} and run["profile"]["after"]

import onnx
from onnx import numpy_helper

# conversions: as many as ONNX Runtime itself leaves, without those of constants
optimised = onnx.load(f"{folder}/optimised.onnx").graph
constants = {i.name for i in optimised.initializer}
kinds = "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"
left = sorted(n.op_type for n in optimised.node if n.op_type in kinds and n.input[0] not in constants)
assert sorted(kind for _, kind in graph["conversions"]) == left, (graph["conversions"], left)

# the lines in histograms are the ranges of the model's own QuantizeLinear
best = onnx.load(f"{folder}/a b/best_model.onnx").graph
tensors = {i.name: numpy_helper.to_array(i) for i in best.initializer}
pairs = {n.input[0]: (float(tensors[n.input[1]]), int(tensors[n.input[2]])) for n in best.node if n.op_type == "QuantizeLinear" and n.input[0] not in tensors}
drawn = run["histograms"]["values"]
assert drawn and set(pairs) <= set(drawn), (set(pairs) - set(drawn))
for name, (scale, zero) in pairs.items():
    v = drawn[name]
    assert abs(v["scale"] - scale) <= 1e-6 * scale and v["zero"] == zero, (name, v, scale, zero)
    first = 0 if v["dtype"].startswith("u") else -128
    assert abs(v["low"] - (first - zero) * scale) <= 1e-5 * abs(255 * scale) and abs(v["high"] - v["low"] - 255 * scale) <= 1e-5 * 255 * scale
# of a value that a recipe has scaled only the range is known
assert 2 * sum("before" in v and v["before"]["most"] > 0 for v in drawn.values()) >= len(drawn)
assert run["histograms"]["weights"], "no weights are drawn"
print("the model's parts, too")
