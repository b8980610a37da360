#!/usr/bin/env python3
"""Compares our samplers with Optuna's on the functions of mixed.py.

    compare_mixed.py PROGRAM          PROGRAM prints our results (test/optuna/results_mixed.c)
    compare_mixed.py --record FILE    runs Optuna on all seeds, which takes long, and writes FILE

The record is recorded_mixed.json; a comparison runs Optuna again on one seed and two functions to see that its results fit
among the recorded ones (--quick leaves that out; the figures themselves differ from CPU to CPU). A result is the best feasible value; of several objectives, the share of the
hypervolume that is missed. Of those of Optuna that go by one name the better counts. Both sides are random, and two
that are equally good have the higher median half of the time: ours fails when its results are higher by a rank-sum
test at 1 %, and is marked ~ where only its median is. Optuna's QMC needs SciPy; without that its record is believed.
Exit codes: 0 ours are nowhere worse, 1 they are, 77 skipped: Optuna is missing, or another version than was recorded.
"""
import json
import math
import os
import statistics
import subprocess
import sys
import warnings

from compare import fits
from mixed import FUNCTIONS, REFERENCE, missed_volume

SEEDS = {"tpe": 21}  # it is slow
MORE_SEEDS = 63
BUDGETS = (50, 200)
NOTHING = 1e9  # no point was feasible
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "recorded_mixed.json")


def skip(why):
    print("SKIPPED:", why)
    sys.exit(77)


try:
    import optuna
except ImportError:
    skip("no Optuna; apt-get install python3-optuna")
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.CRITICAL)


def violations(trial):
    return trial.user_attrs["violations"]


# ours: theirs by the same name
MAKERS = {
    "random": {"random": lambda seed, c: optuna.samplers.RandomSampler(seed=seed)},
    "tpe": {
        "tpe univariate": lambda seed, c: optuna.samplers.TPESampler(seed=seed, constraints_func=c),
        "tpe multivariate": lambda seed, c: optuna.samplers.TPESampler(
            seed=seed, multivariate=True, group=True, constraints_func=c
        ),
    },
    "cmaes": {
        "cmaes": lambda seed, c: optuna.samplers.CmaEsSampler(seed=seed, warn_independent_sampling=False),
        "cmaes ipop": lambda seed, c: optuna.samplers.CmaEsSampler(
            seed=seed, restart_strategy="ipop", warn_independent_sampling=False
        ),
    },
    "nsga2": {"nsga2": lambda seed, c: optuna.samplers.NSGAIISampler(seed=seed, constraints_func=c)},
    "qmc": {
        "qmc": lambda seed, c: optuna.samplers.QMCSampler(
            seed=seed, qmc_type="sobol", scramble=True, warn_independent_sampling=False
        )
    },
}
MAKERS["gp"] = MAKERS["tpe"]  # Optuna 3.1 has none


def applies(sampler, name):
    _, _, objectives, constraints = FUNCTIONS[name]
    if objectives > 1:
        return sampler in ("nsga2", "random")
    return not constraints or sampler in ("tpe", "gp", "nsga2", "random")


def suggest(trial, space):
    x = []
    for i, (kind, low, high, log, when) in enumerate(space):
        if when and (x[when[0]] is None or x[when[0]] not in when[1]):
            x.append(None)
        elif kind == "float":
            x.append(trial.suggest_float("x%d" % i, low, high, log=log))
        elif kind == "int":
            x.append(trial.suggest_int("x%d" % i, low, high, log=log))
        else:
            x.append(trial.suggest_categorical("x%d" % i, list(range(high + 1))))
    return x


def worth(name, results):
    """Of (value…, violation…) after each of BUDGETS."""
    objectives = FUNCTIONS[name][2]
    worths = []
    for budget in BUDGETS:
        feasible = [r[:objectives] for r in results[:budget] if all(v <= 0 for v in r[objectives:])]
        if objectives > 1:
            worths.append(missed_volume(feasible, REFERENCE[name]))
        else:
            worths.append(min((v for v, in feasible), default=NOTHING))
    return worths[: sum(b <= len(results) for b in BUDGETS)]


def run_optuna(name, make, seed, trials):
    function, space, objectives, constraints = FUNCTIONS[name]
    results = []

    def objective(trial):
        r = function(suggest(trial, space))
        r = r if isinstance(r, tuple) else (r,)
        results.append(r)
        trial.set_user_attr("violations", r[objectives:])
        return r[:objectives]

    sampler = make(seed, violations if constraints else None)
    study = optuna.create_study(sampler=sampler, directions=["minimize"] * objectives)
    study.optimize(objective, n_trials=trials)
    return worth(name, results)


def theirs():
    for sampler, makers in MAKERS.items():
        if sampler == "gp":
            continue
        for their_name, make in makers.items():
            for name in FUNCTIONS:
                if applies(sampler, name):
                    yield name, their_name, make, SEEDS.get(sampler, MORE_SEEDS)


def write_record(path):
    results = {}
    for name, their_name, make, seeds in theirs():
        key = name + " " + their_name
        results[key] = [[float("%.9g" % v) for v in run_optuna(name, make, s, BUDGETS[-1])] for s in range(seeds)]
        print(key, [statistics.median(r[i] for r in results[key]) for i in range(len(BUDGETS))], flush=True)
        with open(path, "w") as f:
            f.write('{"version": "%s", "results": {\n' % optuna.__version__)
            f.write(",\n".join("%s: %s" % (json.dumps(k), json.dumps(v)) for k, v in results.items()) + "\n}}\n")


def check_record(recorded):
    """Whether what Optuna finds on the first seed fits the record; 50 trials and two functions are enough."""
    for name, their_name, make, _ in theirs():
        if name not in ("training", "zdt1"):
            continue
        try:
            (now,) = run_optuna(name, make, 0, BUDGETS[0])
        except ImportError:
            print("not run again, for want of SciPy: %s on %s" % (their_name, name))
            continue
        then = [r[0] for r in recorded[name + " " + their_name]]
        if not fits(now, then):
            sys.exit("FAILED: Optuna's %s now finds %s on %s, on record are %s to %s"
                     % (their_name, now, name, min(then), max(then)))


def check_point(name, numbers):
    function, space, objectives, constraints = FUNCTIONS[name]
    results, point = numbers[: objectives + constraints], numbers[objectives + constraints :]
    value = function([None if math.isnan(x) else x for x in point])
    value = value if isinstance(value, tuple) else (value,)
    if not all(math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) for a, b in zip(value, results)):
        sys.exit("FAILED: %s is %s in C, %s in Python" % (name, results, value))


def our_results(lines):
    """Worths by (function, sampler), after checking that both sides mean the same functions."""
    worths = {}
    for line in lines:
        kind, name, *rest = line.split()
        if kind == "point":
            check_point(name, [float(x) for x in rest])
            continue
        width = FUNCTIONS[name][2] + FUNCTIONS[name][3]
        numbers = [float(x) for x in rest[2:]]
        results = [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]
        worths.setdefault((name, rest[0]), []).append(worth(name, results))
    return worths


def chance_worse(ours, theirs):
    """How likely the rank sum of ours is as high as it is, if both come from one distribution (normal; ties)."""
    both = sorted(ours + theirs)
    rank = {v: both.index(v) + (both.count(v) + 1) / 2 for v in set(both)}
    n, m = len(ours), len(theirs)
    u = sum(rank[v] for v in ours) - n * (n + 1) / 2
    ties = sum(both.count(v) ** 3 - both.count(v) for v in set(both))
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    return 0.5 * math.erfc((u - n * m / 2 - 0.5) / math.sqrt(2 * variance)) if variance else 1


def compare(lines):
    with open(RECORD) as f:
        record = json.load(f)
    if record["version"] != optuna.__version__:
        skip("Optuna %s, recorded were results of %s" % (optuna.__version__, record["version"]))
    if "--quick" not in sys.argv:
        check_record(record["results"])
    ours = our_results(lines)
    worse = 0
    print("%-28s %14s %14s" % ("median after", "Optuna", "ours"))
    for (name, sampler), runs in sorted(ours.items()):
        if not applies(sampler, name):
            continue
        for i in range(len(runs[0])):
            sides = [[r[i] for r in record["results"][name + " " + s]] for s in MAKERS[sampler]]
            best = min(sides, key=statistics.median)
            mine = [r[i] for r in runs]
            mark = "~" if statistics.median(mine) > statistics.median(best) else ""
            if chance_worse([float("%.9g" % v) for v in mine], best) < 0.01:
                mark = "!"
                worse += 1
            row = (sampler, name, BUDGETS[i], statistics.median(best), statistics.median(mine), mark)
            print("%-8s %-15s %3d %14.6g %14.6g %s" % row)
    if worse:
        sys.exit("FAILED: %d, marked !, are worse than the better of Optuna's" % worse)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--record":
        write_record(sys.argv[2])
    elif len(sys.argv) >= 2:
        command = [a for a in sys.argv[1:] if a != "--quick"]
        compare(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines())
    else:
        sys.exit(__doc__)
