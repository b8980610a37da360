"""
fettle makes ONNX models small and fast without breaking them.

    import fettle
    r = fettle.tune("model.onnx", calib=x[:200], eval=(x, y), tolerance=0.01)
    print(r)
    r.save("model.int8.onnx")

A model is a path, bytes or an onnx.ModelProto. Data is a path, an array, a mapping of input names to arrays, (inputs, labels),
or what gives batches of these, such as a torch DataLoader. Arrays are read in place. Functions of yours (evaluators,
metrics, strategies) may raise: the call ends and the exception is yours; so does Ctrl-C, and the run can be resumed.
"""

from ._calls import (
    bench,
    diff,
    evaluate,
    history,
    inspect,
    quantize,
    recipes,
    recover,
    report,
    resume,
    search,
    sensitivity,
    strategies,
    tune,
)
from ._lib import Error, InvalidError, RuntimeFailure, Stopped, SystemFailure, UnsupportedError, lib as _lib_, text as _text
from ._members import Param, PlanScore, Search, metric, strategy
from ._results import Measure, Model, Quantized, Score, Timing, Trial, Tuned

__version__ = _text(_lib_.fettle_version())
runtime_version = _text(_lib_.fettle_runtime_version())

__all__ = [
    "Error",
    "InvalidError",
    "Measure",
    "Model",
    "Param",
    "PlanScore",
    "Quantized",
    "RuntimeFailure",
    "Score",
    "Search",
    "Stopped",
    "SystemFailure",
    "Timing",
    "Trial",
    "Tuned",
    "UnsupportedError",
    "bench",
    "diff",
    "evaluate",
    "history",
    "inspect",
    "metric",
    "quantize",
    "recipes",
    "recover",
    "report",
    "resume",
    "search",
    "sensitivity",
    "strategies",
    "strategy",
    "tune",
]
