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
