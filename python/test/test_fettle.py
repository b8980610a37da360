"""The package as users call it, on the bundled example; results are compared with the command and with plain numpy."""

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import fettle

EXAMPLES = Path(__file__).parents[2] / "examples"
MODEL = str(EXAMPLES / "fashion.onnx")
CALIB = np.load(EXAMPLES / "fashion_calib.npz")["x"]
EVAL = dict(np.load(EXAMPLES / "fashion_eval.npz"))
X, Y = EVAL["x"][:400], EVAL["y"][:400]
COMMAND = os.environ.get("FETTLE_COMMAND", "fettle")


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    return fettle.tune(
        MODEL, calib=CALIB[:100], eval=(X, Y), tolerance=0.05, threads=1, workspace=tmp_path_factory.mktemp("w") / "run"
    )


def top1(model):
    return fettle.evaluate(model, (X, Y), metric="top1", threads=1).value


def test_tune(tuned, tmp_path):
    assert tuned.met and tuned.stop == "accuracy_met" and tuned.baseline.accuracy == pytest.approx(top1(MODEL), abs=1e-9)
    assert tuned.best.accuracy >= tuned.target == pytest.approx(0.95 * tuned.baseline.accuracy)
    assert tuned.best.size_bytes < tuned.baseline.size_bytes and tuned.best.int8_share > 0.5
    path = tuned.save(tmp_path / "m.onnx")
    assert Path(path).read_bytes() == tuned.model_bytes
    assert top1(path) == pytest.approx(tuned.best.accuracy, abs=1e-9)  # the file is what was measured
    assert [t.trial for t in tuned.trials] == list(range(1, tuned.json["trials"] + 1))
    assert tuned.trials[tuned.best.trial - 1].met
    assert fettle.recover(tuned.workspace).model_bytes == tuned.model_bytes
    assert "target met" in str(tuned) and "<table>" in tuned._repr_html_()


def test_report(tuned, tmp_path):
    page = Path(tuned.report(tmp_path / "r.html", sensitivity=False)).read_text()
    assert page.startswith("<!doctype html>") and tuned.workspace in page
    run = json.loads(fettle.report(tuned.workspace, format="json", calib=CALIB[:100], eval=(X, Y)))["runs"][0]
    assert run["result"] == tuned.json and len(run["trials"]) == len(tuned.trials)
    assert {o["name"] for o in run["sensitivity"]["ops"]} <= {o["name"] for o in run["graph"]["ops"]}
    # without the arrays, what needs them is named
    run = json.loads(fettle.report([tuned.workspace], format="json"))["runs"][0]
    assert "graph" in run and "sensitivity" not in run and "program" in run["missing"]["sensitivity"]
    assert fettle.report(tuned.workspace, format="csv").count("\r\n") == len(tuned.trials) + 1


def test_diff(tuned, tmp_path):
    path = tuned.save(tmp_path / "m.onnx")
    d = fettle.diff(MODEL, path, data=EXAMPLES / "fashion_eval.npz", samples=16)
    assert d["samples"] == 16 and d["differ"] > 0 and d["size_b_bytes"] == os.path.getsize(path)
    assert fettle.diff(path, path)["differ"] == 0


def test_same_as_the_command(tmp_path):
    """Arrays in memory give the model that the command makes from the same file."""
    out = tmp_path / "c.onnx"
    subprocess.run(
        [COMMAND, "quantize", MODEL, "--calib", EXAMPLES / "fashion_calib.npz", "-o", out, "--threads", "1", "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert fettle.quantize(MODEL, calib=CALIB, threads=1).model_bytes == out.read_bytes()


def batches(x, n=8):
    for i in range(0, len(x), n):
        yield x[i : i + n]


class Reader:
    """As onnxruntime's CalibrationDataReader."""

    def __init__(self, x):
        self.left = batches(x)

    def get_next(self):
        b = next(self.left, None)
        return None if b is None else {"x": b}


class TorchLike:
    """A tensor that needs detach() before it can be read."""

    def __init__(self, a):
        self.a = a

    def __array__(self):
        raise RuntimeError("call detach() first")

    def detach(self):
        return self

    def cpu(self):
        return self.a


@pytest.mark.parametrize(
    "data",
    [
        lambda x: x,
        lambda x: {"x": x},
        lambda x: (x, np.zeros(len(x))),
        lambda x: batches(x),
        lambda x: [(b, np.zeros(len(b))) for b in batches(x)],
        lambda x: [{"x": b} for b in batches(x)],
        lambda x: Reader(x),
        lambda x: np.asfortranarray(x),
        lambda x: TorchLike(x),
        lambda x: [[TorchLike(b), None] for b in batches(x)],
    ],
)
def test_data(data):
    """However the samples are given, they are the same samples."""
    given = fettle.quantize(MODEL, calib=data(CALIB[:64]), threads=1).model_bytes
    assert given == fettle.quantize(MODEL, calib=CALIB[:64], threads=1).model_bytes


def test_endless_loader():
    def forever():
        while True:
            yield CALIB[:10]

    assert fettle.quantize(MODEL, calib=forever(), samples=20).json["calib_samples"] == 20


def test_models():
    data = Path(MODEL).read_bytes()

    class Proto:
        def SerializeToString(self):
            return data

    for model in (MODEL, Path(MODEL), data, Proto()):
        assert top1(model) == top1(MODEL)


def test_metric_in_python():
    @fettle.metric
    def right(outputs, label):
        assert outputs[0].shape == (10,) and not outputs[0].flags.writeable
        return outputs[0].argmax() == label

    assert fettle.evaluate(MODEL, (X, Y), metric=right).value == pytest.approx(top1(MODEL), abs=1e-9)
    assert fettle.evaluate(MODEL, (X, Y), metric="right").value == pytest.approx(top1(MODEL), abs=1e-9)


def test_strategy_in_python(tmp_path):
    seen = []

    @fettle.strategy
    def ends_up(search):
        """Puts the worst op back."""
        plan = search.default()
        first = search.try_plan(plan)
        worst = search.rank_ops(plan)[0]
        plan[worst] = search.params[worst].fp32
        seen.extend([first, search.try_plan(plan), search.best(), search.params[worst]])
        with pytest.raises(ValueError, match="it has"):
            search.try_plan([99] * len(search.params))

    r = fettle.tune(
        MODEL, calib=CALIB, eval=(X, Y), strategy=ends_up, quant_level="1", tolerance=0, workspace=tmp_path / "w", threads=1
    )
    assert [t.accuracy for t in r.trials] == [seen[0].accuracy, seen[1].accuracy]
    assert seen[2][1].accuracy == max(seen[0].accuracy, seen[1].accuracy) == r.best.accuracy
    assert seen[3].kind == "op" and seen[3].modes[seen[3].fp32] == "fp32"


def test_evaluator(tmp_path):
    paths = []

    def score(path):
        paths.append(path)
        return fettle.evaluate(path, (X[:100], Y[:100]), metric="top1").value

    r = fettle.tune(MODEL, calib=CALIB, evaluate=score, tolerance=0.2, workspace=tmp_path / "w")
    assert r.met and len(paths) >= 2 and r.baseline.accuracy == score(MODEL)


def test_exceptions_pass(tmp_path):
    def score(path):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fettle.tune(MODEL, calib=CALIB, evaluate=score, workspace=tmp_path / "w")


def test_interrupt_and_resume(tmp_path):
    """Ctrl-C ends the call where it is; the run continues from its workspace."""
    calls = []

    def score(path):
        calls.append(path)
        if len(calls) == 4:  # twice the baseline, then trials
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)
        return 0.5 if len(calls) > 2 else 1.0

    kw = {"calib": CALIB, "workspace": tmp_path / "w", "strategy": "random", "max_trials": 3, "quant_level": "1"}
    with pytest.raises(KeyboardInterrupt):
        fettle.tune(MODEL, evaluate=score, **kw)
    r = fettle.resume(tmp_path / "w", calib=CALIB, evaluate=lambda path: 0.5)
    assert r.json["trials"] == 3 and not r.met and r.stop == "max_trials"


@pytest.mark.parametrize(
    "call, said",
    [
        (lambda: fettle.quantize("none.onnx", calib=CALIB), "none.onnx"),
        (lambda: fettle.quantize(MODEL, calib=CALIB, algorithmm="kl"), "did you mean 'algorithm'"),
        (lambda: fettle.quantize(MODEL, calib=3), "type int"),
        (lambda: fettle.quantize(3, calib=CALIB), "type int"),
        (lambda: fettle.quantize(MODEL, calib=np.array(["a"])), "need one of float32"),
        (lambda: fettle.quantize(MODEL, calib=iter([])), "no batch"),
        (lambda: fettle.quantize(MODEL, calib={"x": CALIB[:3], "y": np.zeros(2)}), "'x' 3, 'y' 2"),
        (lambda: fettle.quantize(MODEL, calib=[CALIB[:2], CALIB[:2], {"z": CALIB[:2]}]), "another x"),
        (lambda: fettle.evaluate(MODEL, (X, Y), metric="top0"), "top0"),
    ],
)
def test_errors(call, said):
    with pytest.raises(fettle.Error, match=said):
        call()


def test_progress():
    seen = []
    fettle.evaluate(MODEL, (X, Y), progress=lambda phase, done, total: seen.append((phase, done, total)))
    assert seen and seen[-1][2] == len(X)


def test_bench_sensitivity_inspect(tuned, tmp_path):
    fast = tuned.save(tmp_path / "m.onnx")
    timings = fettle.bench([MODEL, fast], seconds=0.1, threads=1)
    assert [t.model for t in timings] == [MODEL, fast] and timings[0].speedup == 1 and timings[1].latency_ms > 0
    costs = fettle.sensitivity(MODEL, calib=CALIB[:32])
    assert costs == sorted(costs, key=lambda c: c["model_sqnr_db"])
    assert {op["name"] for op in fettle.inspect(MODEL)["ops"]} >= {c["name"] for c in costs}
    assert "basic" in fettle.strategies() and any(r["name"] == "cle" for r in fettle.recipes())
    assert len(fettle.history(tuned.workspace)["trials"]) == len(tuned.trials)


def test_threads(tmp_path):
    """Calls may run side by side in threads."""
    scores = {}

    def work(i):
        scores[i] = top1(MODEL)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(set(scores.values())) == 1 and len(scores) == 3


def test_structs_as_in_the_header(tmp_path):
    """The structs that Python mirrors lie as the C compiler lays them out."""
    from fettle import _lib

    names = {
        "fettle_metric": _lib.Metric, "fettle_strategy": _lib.Strategy, "fettle_param": _lib.Param,
        "fettle_plan_score": _lib.PlanScore, "fettle_trial": _lib.TrialInfo, "fettle_progress_info": _lib.ProgressInfo,
        "fettle_tensor": _lib.Tensor,
    }  # fmt: skip
    lines = [
        f'printf("%zu ", offsetof(struct {c}, {field[0]}));' for c, py in names.items() for field in py._fields_
    ]  # fmt: skip
    source = tmp_path / "o.c"
    source.write_text(f'#include "fettle.h"\n#include <stdio.h>\nint main(void) {{ {"".join(lines)} return 0; }}')
    include = Path(__file__).parents[2] / "include"
    subprocess.run(["cc", f"-I{include}", source, "-o", tmp_path / "o"], check=True)
    offsets = [int(v) for v in subprocess.check_output([tmp_path / "o"]).split()]
    assert offsets == [getattr(py, field[0]).offset for py in names.values() for field in py._fields_]


def test_typed():
    try:
        subprocess.run([sys.executable, "-m", "mypy", "--version"], check=True, capture_output=True)
    except subprocess.CalledProcessError:
        pytest.skip("needs Debian's mypy")
    folder = Path(fettle.__file__).parent
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", os.devnull, folder], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_python_39():
    files = sorted(Path(fettle.__file__).parent.rglob("*.py"))
    assert len(files) > 10
    for file in files:
        text = file.read_text()
        tree = ast.parse(text, str(file), feature_version=(3, 9))
        if any(isinstance(n, ast.FunctionDef) for n in ast.walk(tree)):
            assert "from __future__ import annotations" in text, f"{file}: annotations are evaluated"


def test_json_is_the_commands(tuned):
    shown = json.loads(
        subprocess.check_output([COMMAND, "history", tuned.workspace, "--json"], stderr=subprocess.DEVNULL).decode()
    )
    assert shown == fettle.history(tuned.workspace)
