#!/usr/bin/env python3
"""Compares our tpe and gp with Optuna's TPESampler on the functions of functions.py.

    compare.py PROGRAM            PROGRAM prints our results (test/optuna/results.c)
    compare.py --record FILE      runs Optuna on all seeds, which takes half an hour, and writes FILE

Optuna is slow, so its results are on record in recorded.json. A comparison runs it again on one seed, to
see that its result fits among the recorded ones (not the same figure: the last digits of its sums differ
from CPU to CPU, and so its path); then it compares our medians with the better of Optuna's univariate (its
default) and multivariate ones. gp is slower than tpe and gets 100 trials only, which must
do for Optuna's 200: the best value cannot rise with more. Exit codes:
0 ours are nowhere worse, 1 they are, 77 skipped: Optuna is missing, or another version than was recorded.
"""
import json
import os
import statistics
import subprocess
import sys
import warnings

from functions import FUNCTIONS

SEEDS = 21
BUDGETS = (50, 200)
SAMPLERS = ("tpe", "gp")
TRIALS = {"tpe": 200, "gp": 100}  # what results.c gives each
MODES = {"univariate": False, "multivariate": True}
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded.json")


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


try:
    import optuna
except ImportError:
    skip("no Optuna; apt-get install python3-optuna")
warnings.simplefilter("ignore")  # multivariate is "experimental"
optuna.logging.set_verbosity(optuna.logging.ERROR)


def run_optuna(function, n, options, multivariate, seed, trials):
    """The best value after each of BUDGETS that fits in trials."""
    sampler = optuna.samplers.TPESampler(seed=seed, multivariate=multivariate)
    study = optuna.create_study(sampler=sampler)
    choices = list(range(options))
    study.optimize(lambda t: function([t.suggest_categorical("x%d" % i, choices) for i in range(n)]), n_trials=trials)
    values = [t.value for t in study.trials]
    return [min(values[:budget]) for budget in BUDGETS if budget <= trials]


def write_record(path):
    results = {}
    for name, function, n, options in FUNCTIONS:
        for mode, multivariate in MODES.items():
            results[name + " " + mode] = [
                run_optuna(function, n, options, multivariate, seed, BUDGETS[-1]) for seed in range(SEEDS)
            ]
            print(name, mode, results[name + " " + mode], flush=True)
    with open(path, "w") as f:
        f.write('{"version": "%s", "results": {\n' % optuna.__version__)
        f.write(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in results.items()) + "\n}}\n")


def fits(now, recorded):
    """Whether a result is among the recorded ones, or no further from them than they are spread."""
    spread = max(recorded) - min(recorded)
    return min(recorded) - spread <= now <= max(recorded) + spread


def check_record(recorded):
    """Whether what Optuna finds on the first seed fits the record; 50 trials are enough."""
    for name, function, n, options in FUNCTIONS:
        for mode, multivariate in MODES.items():
            (now,) = run_optuna(function, n, options, multivariate, 0, BUDGETS[0])
            then = [r[0] for r in recorded[name + " " + mode]]
            if not fits(now, then):
                sys.exit("FAILED: Optuna's %s TPE now finds %s on %s, on record are %s to %s"
                         % (mode, now, name, min(then), max(then)))


def our_results(program):
    """Best values by (function, sampler, trials), after checking that both sides mean the same functions."""
    functions = {name: function for name, function, _, _ in FUNCTIONS}
    best = {}
    for line in subprocess.run([program], check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines():
        kind, name, *rest = line.split()
        if kind == "point":
            value, *point = map(int, rest)
            if functions[name](point) != value:
                sys.exit("FAILED: %s is %d in C, %d in Python" % (name, value, functions[name](point)))
        else:
            sampler, _, trials, value = rest
            best.setdefault((name, sampler, int(trials)), []).append(int(value))
    return best


def compare(program):
    with open(RECORD) as f:
        record = json.load(f)
    if record["version"] != optuna.__version__:
        skip("Optuna %s, recorded were results of %s" % (optuna.__version__, record["version"]))
    check_record(record["results"])
    ours = our_results(program)
    worse = 0
    print("%-20s %12s %12s %12s %12s" % (("median after", "univariate", "multivariate") + SAMPLERS))
    for name, *_ in FUNCTIONS:
        for i, budget in enumerate(BUDGETS):
            theirs = [statistics.median(r[i] for r in record["results"][name + " " + mode]) for mode in MODES]
            line = "%-16s %3d %12d %12d" % (name, budget, *theirs)
            for sampler in SAMPLERS:
                values = ours[name, sampler, min(budget, TRIALS[sampler])]
                median = statistics.median(values)
                line += " %12d%s" % (median, "!" if median > min(theirs) else "")
                worse += len(values) < 20 or median > min(theirs)
            print(line)
    print("gp has %d trials in the rows of %d." % (TRIALS["gp"], BUDGETS[-1]))
    if worse:
        sys.exit("FAILED: %d medians, marked !, are worse than the better of Optuna's" % worse)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        write_record(sys.argv[2])
    elif len(sys.argv) == 2:
        compare(sys.argv[1])
    else:
        sys.exit(__doc__)
