"""The commands as functions."""

from __future__ import annotations

import ctypes
import os
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

from . import _lib, _members
from ._data import Arrays, Data, collect, is_path
from ._lib import Handle, InvalidError
from ._members import MetricMember, StrategyMember
from ._progress import Progress, watch
from ._results import Model, Path_, Quantized, Score, Timing, Tuned

#: A path, the bytes of an ONNX file, or an onnx.ModelProto.
ModelLike = Union[str, "os.PathLike[str]", bytes, Any]
Evaluate = Callable[[str], float]
_CALIB_SAMPLES = 100  # that the library takes by default


class _Call:
    """One call's options, and what they point to."""

    def __init__(self, handle: Handle) -> None:
        self.h = handle
        self.options: dict[str, Any] = {}
        self._arrays: list[Arrays] = []
        self._model: Optional[Union[str, bytes]] = None

    def set(self, **options: Any) -> None:
        self.options.update({k: v for k, v in options.items() if v is not None})

    def model(self, model: ModelLike) -> None:
        if is_path(model):
            self._model = os.fspath(model)
            self.set(model=self._model)
            return
        data = bytes(model) if isinstance(model, (bytes, bytearray, memoryview)) else None
        if data is None:
            if not hasattr(model, "SerializeToString"):
                raise InvalidError(
                    f"cannot use a model of type {type(model).__name__}: need a path, bytes or an onnx.ModelProto"
                )
            data = model.SerializeToString()
        self._model = data
        p = self.h.keep(ctypes.c_char_p(data))
        self.set(model_bytes=ctypes.cast(p, ctypes.c_void_p).value, model_size=len(data))

    def named_for(self, path: str) -> None:
        """Data is for this model, which is no option of the call."""
        self._model = path

    def input_names(self) -> list[str]:
        with Handle() as h:
            c = _Call(h)
            if self._model is None:
                raise InvalidError("cannot name the data's arrays without a model: give a mapping of names to arrays")
            c.model(self._model)
            return [i["name"] for i in h.call("inspect", c.options)["inputs"]]

    def data(self, path_name: str, array_name: str, data: Optional[Data], limit: Optional[int] = None) -> None:
        if data is None:
            return
        if is_path(data):
            self.set(**{path_name: os.fspath(data)})  # type: ignore[arg-type]
            return
        arrays = Arrays(self.h, collect(data, self.input_names, limit))
        self._arrays.append(arrays)
        self.set(**{array_name: arrays.p})

    def evaluate(self, function: Optional[Evaluate]) -> None:
        if function is None:
            return
        score = function

        def call(_: Any, path: bytes) -> float:
            return float(score(os.fsdecode(path)))

        self.set(evaluate=_lib.address(self.h.keep(_lib.EVALUATE(self.h.guard(call, float("nan"))))))

    def given(
        self, samples: Optional[int], config: Optional[Path_], settings: Optional[Mapping[str, Any]], options: dict[str, Any]
    ) -> None:
        """What calls with a configuration have in common."""
        self.set(
            samples=samples, config=_path(config), settings=None if settings is None else dict(settings), **options
        )

    def on(
        self,
        model: ModelLike,
        calib: Optional[Data],
        eval: Optional[Data],
        metric: Union[None, str, MetricMember],
        samples: Optional[int],
        eval_samples: Optional[int],
    ) -> None:
        """A model, the data to calibrate it on, and what it is scored by."""
        self.model(model)
        self.data("calib", "calib_data", calib, samples or _CALIB_SAMPLES)
        self.data("eval", "eval_data", eval, eval_samples)
        self.set(metric=_name(metric))

    def run_of(
        self,
        evaluate: Optional[Evaluate],
        output: Optional[Path_],
        tolerance: Optional[float],
        workspace: Optional[Path_],
    ) -> None:
        """What calls that make a run have in common."""
        self.evaluate(evaluate)
        self.output(output)
        self.set(tolerance=None if tolerance is None else float(tolerance), workspace=_path(workspace))

    def output(self, output: Optional[Path_]) -> None:
        """Into a file; otherwise into memory."""
        if output is None:
            self.set(to_memory=True)
        else:
            self.set(output=os.fspath(output))

    def run(self, command: str, progress: Progress) -> Any:
        _members.register(self.h)
        line = watch(self.h, progress)
        try:
            return self.h.call(command, self.options)
        finally:
            if line:
                line.close()

    def in_memory(self) -> Optional[bytes]:
        return self.h.model_bytes() if self.options.get("to_memory") else None

    def free(self) -> None:
        for a in self._arrays:
            a.free()


@contextmanager
def _call() -> Iterator[_Call]:
    with Handle() as h:
        c = _Call(h)
        try:
            yield c
        finally:
            c.free()


def _name(member: Union[None, str, MetricMember, StrategyMember]) -> Optional[str]:
    return member if member is None or isinstance(member, str) else member.name


def _path(p: Optional[Path_]) -> Optional[str]:
    return None if p is None else os.fspath(p)


def _recipes(recipes: Union[None, Sequence[str], Mapping[str, Any]]) -> Optional[list[str]]:
    """["cle"], or {"cle": True, "smooth_quant": 0.6}"""
    if recipes is None:
        return None
    if isinstance(recipes, str):
        return [recipes]
    if not isinstance(recipes, Mapping):
        return list(recipes)
    words = {True: "on", False: "off"}
    return [f"{k}={words.get(v, v) if isinstance(v, bool) else v}" for k, v in recipes.items()]


def tune(
    model: ModelLike,
    *,
    calib: Optional[Data] = None,
    eval: Optional[Data] = None,
    evaluate: Optional[Evaluate] = None,
    tolerance: Optional[float] = None,
    metric: Union[None, str, MetricMember] = None,
    strategy: Union[None, str, StrategyMember] = None,
    output: Optional[Path_] = None,
    recipes: Union[None, Sequence[str], Mapping[str, Any]] = None,
    samples: Optional[int] = None,
    workspace: Optional[Path_] = None,
    config: Optional[Path_] = None,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Progress = None,
    **options: Any,
) -> Tuned:
    """
    Searches for the fastest model within the accuracy that may be lost.

    calib, eval: a path, an array, a mapping of input names to arrays, (inputs, labels), or what gives batches of these.
    evaluate: your own evaluator, called with the path of each model, returns its accuracy; instead of eval and metric.
    tolerance: the accuracy that may be lost, 0.01 is one percent of the fp32 model's.
    output: where to write the model; without it the result keeps it in memory (save(), model_bytes).
    options: any other of the C API's struct fettle_tune_options, such as timeout=60, max_trials=20, approach="dynamic",
        criterion="absolute", objective="modelsize", threads=1, jobs="2", seed=7, keep_fp32="Gemm", lower_is_better=True.
    settings: of the configuration by their dotted names, {"tuning.exit_policy.timeout": 60}.
    """
    with _call() as c:
        c.on(model, calib, eval, metric, samples, options.get("eval_samples"))
        c.set(strategy=_name(strategy), recipes=_recipes(recipes))
        c.run_of(evaluate, output, tolerance, workspace)
        c.given(samples, config, settings, options)
        return Tuned(c.run("tune", progress), c.in_memory())


def search(
    model: ModelLike,
    *,
    calib: Optional[Data] = None,
    eval: Optional[Data] = None,
    evaluate: Optional[Evaluate] = None,
    tolerance: Optional[float] = None,
    metric: Union[None, str, MetricMember] = None,
    output: Optional[Path_] = None,
    samples: Optional[int] = None,
    workspace: Optional[Path_] = None,
    config: Optional[Path_] = None,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Progress = None,
    **options: Any,
) -> Tuned:
    """
    Searches the settings that the configuration's search_space lists for those that lose least. Arguments are as in tune();
    options are those of struct fettle_search_options, such as algo="tpe", iteration_limit=50, time_limit=60.
    """
    with _call() as c:
        c.on(model, calib, eval, metric, samples, options.get("eval_samples"))
        c.run_of(evaluate, output, tolerance, workspace)
        c.given(samples, config, settings, options)
        return Tuned(c.run("search", progress), c.in_memory())


def resume(
    workspace: Path_,
    *,
    calib: Optional[Data] = None,
    eval: Optional[Data] = None,
    evaluate: Optional[Evaluate] = None,
    output: Optional[Path_] = None,
    progress: Progress = None,
    **options: Any,
) -> Tuned:
    """
    Continues a run from its workspace. Arrays and functions that the run was given must be given again; files it knows.
    options: max_trials, timeout, jobs, cache.
    """
    with _call() as c:
        c.data("", "calib_data", calib)
        c.data("", "eval_data", eval)
        c.run_of(evaluate, output, None, workspace)
        c.set(**options)
        return Tuned(c.run("resume", progress), c.in_memory())


def quantize(
    model: ModelLike,
    *,
    calib: Optional[Data] = None,
    output: Optional[Path_] = None,
    recipes: Union[None, Sequence[str], Mapping[str, Any]] = None,
    samples: Optional[int] = None,
    config: Optional[Path_] = None,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Progress = None,
    **options: Any,
) -> Quantized:
    """
    Quantizes a model by one plan, without a search. Options are those of struct fettle_quantize_options, such as
    approach="dynamic", format="qoperator", algorithm="kl", weight_type="uint8", keep_fp32="Gemm", plan="plan.json".
    """
    with _call() as c:
        c.model(model)
        c.data("calib", "calib_data", calib, samples or _CALIB_SAMPLES)
        c.output(output)
        c.set(recipes=_recipes(recipes))
        c.given(samples, config, settings, options)
        return Quantized(c.run("quantize", progress), c.in_memory())


def evaluate(
    model: ModelLike,
    data: Optional[Data] = None,
    *,
    metric: Union[None, str, MetricMember] = None,
    reference: Optional[Path_] = None,
    progress: Progress = None,
    **options: Any,
) -> Score:
    """
    The score of a model on data. reference: a model whose outputs are the labels. Options are those of
    struct fettle_eval_options, such as samples=1000, batch=8, scores="logits", threads=1.
    """
    with _call() as c:
        c.model(model)
        c.data("data", "arrays", data, options.get("samples"))
        c.set(metric=_name(metric), reference=_path(reference), **options)
        j = c.run("eval", progress)
        value = j["value"]
        return Score(
            metric=j["metric"],
            value=float("nan") if value is None else value,
            samples=j["samples"],
            higher_is_better=j.get("higher_is_better", True),
            json=j,
        )


def bench(
    models: Union[Path_, Sequence[Path_]], *, data: Optional[Path_] = None, progress: Progress = None, **options: Any
) -> list[Timing]:
    """
    Latency and size of models in files, timed in turns; speed-ups are against the first. Options are those of
    struct fettle_bench_options, such as batch=1, seconds=1.0, threads=1, instances=1.
    """
    paths = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    nan = float("nan")
    with _call() as c:
        c.set(models=[os.fspath(p) for p in paths], data=_path(data), **options)
        return [
            Timing(
                model=m["model"],
                latency_ms=m["latency_ms"],
                p90_ms=m["p90_ms"],
                size_bytes=m["size_bytes"],
                speedup=m["speedup"],
                speedup_low=m.get("speedup_low", nan),
                speedup_high=m.get("speedup_high", nan),
            )
            for m in c.run("bench", progress)["models"]
        ]


def sensitivity(
    model: ModelLike,
    *,
    calib: Data,
    eval: Optional[Data] = None,
    metric: Union[None, str, MetricMember] = None,
    samples: Optional[int] = None,
    config: Optional[Path_] = None,
    settings: Optional[Mapping[str, Any]] = None,
    progress: Progress = None,
    **options: Any,
) -> list[dict[str, Any]]:
    """How much each op costs when it alone is quantized, and why; worst first."""
    with _call() as c:
        c.on(model, calib, eval, metric, samples, options.get("eval_samples"))
        c.given(samples, config, settings, options)
        ops: list[dict[str, Any]] = c.run("sensitivity", progress)["ops"]
        return ops


def inspect(model: ModelLike, *, progress: Progress = None, **options: Any) -> dict[str, Any]:
    """What fettle sees in a model: inputs, outputs, ops, what can be quantized and why not, the size of the space."""
    with _call() as c:
        c.model(model)
        c.set(**options)
        seen: dict[str, Any] = c.run("inspect", progress)
        return seen


def recover(
    workspace: Path_,
    *,
    trial: Optional[int] = None,
    output: Optional[Path_] = None,
    model: Optional[ModelLike] = None,
    progress: Progress = None,
) -> Model:
    """The model of a trial (the best) again, from the history of its run alone. model: the fp32 one, if it has moved."""
    with _call() as c:
        if model is not None:
            c.model(model)
        c.output(output)
        c.set(workspace=os.fspath(workspace), trial=trial)
        return Model(c.run("recover", progress), c.in_memory())


def report(
    workspaces: Union[Path_, Sequence[Path_]],
    output: Optional[Path_] = None,
    *,
    format: str = "html",
    calib: Optional[Data] = None,
    eval: Optional[Data] = None,
    analysis: bool = True,
    sensitivity: bool = True,
    progress: Progress = None,
) -> str:
    """
    A run as a page to look at, or several compared. Returns the path, or the text where there is no output.

    format: html, markdown, csv (a row per trial), json (what the page shows).
    calib, eval: what the run was given as arrays; files it knows.
    analysis: open the model, and the data, for the graph, profiles and histograms. sensitivity: and rate each op, which takes
        longest.
    """
    paths = [workspaces] if isinstance(workspaces, (str, os.PathLike)) else list(workspaces)
    with _call() as c:
        if calib is not None or eval is not None:  # whose arrays may need the names of its inputs
            c.named_for(history(paths[0])["model"])
        c.data("", "calib_data", calib)
        c.data("", "eval_data", eval)
        c.set(workspaces=[os.fspath(p) for p in paths], output=_path(output), format=format)
        c.set(no_analysis=not analysis or None, no_sensitivity=not sensitivity or None)
        made = c.run("report", progress)
        return str(made["text"] if output is None else made["output"])


def diff(a: Path_, b: Path_, *, data: Optional[Path_] = None, progress: Progress = None, **options: Any) -> dict[str, Any]:
    """
    Two models in files op by op: what differs in precision, scales and size, and on data where their values part. Options are
    those of struct fettle_diff_options: samples, threads.
    """
    with _call() as c:
        c.set(a=os.fspath(a), b=os.fspath(b), data=_path(data), **options)
        compared: dict[str, Any] = c.run("diff", progress)
        return compared


def history(workspace: Optional[Path_] = None, *, pareto: bool = False) -> Any:
    """What is recorded of a run, as 'fettle history --json' prints it; without a workspace: all runs in fettle_workspace."""
    with _call() as c:
        c.set(workspace=_path(workspace), pareto=pareto or None)
        return c.run("history", False)


def strategies() -> dict[str, str]:
    """The strategies, each with what it does."""
    with _call() as c:
        names: dict[str, str] = c.run("strategies", False)
        return names


def recipes() -> list[dict[str, Any]]:
    """The recipes, each with what it does, its default and its values."""
    with _call() as c:
        found: list[dict[str, Any]] = c.run("recipes", False)
        return found
