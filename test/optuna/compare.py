#!/usr/bin/env python3
"""Compares our tpe and gp with Optuna's TPESampler on the functions of functions.py.

    compare.py PROGRAM            PROGRAM prints our results (test/optuna/results.c)
    compare.py --record FILE      runs Optuna on all seeds, which takes half an hour, and writes FILE

Optuna is slow, so its results are on record in recorded.json. A comparison runs it again on one seed, to
see that the record is still what it does; then it compares medians over all seeds. Exit codes:
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


def record(path, seeds):
    results = {}
    for name, function, n, options in FUNCTIONS:
        for mode, multivariate in MODES.items():
            results[name + " " + mode] = [
                run_optuna(function, n, options, multivariate, seed, BUDGETS[-1]) for seed in seeds
            ]
            print(name, mode, results[name + " " + mode], flush=True)
    with open(path, "w") as f:
        f.write('{"version": "%s", "results": {\n' % optuna.__version__)
        f.write(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in results.items()) + "\n}}\n")


if __name__ == "__main__" and sys.argv[1] == "--record":
    record(sys.argv[2], range(*map(int, sys.argv[3:5])) if len(sys.argv) > 3 else range(SEEDS))
