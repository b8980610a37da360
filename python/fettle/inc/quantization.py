"""quantization.fit() as Intel Neural Compressor 2.x has it, for ONNX models."""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any, Callable, Optional, Union

from .. import _calls
from .._data import Data
from .._results import Model, Path_, Quantized, Tuned
from .config import PostTrainingQuantConfig, options
from .metric import Metric


def _onnx() -> Any:
    """The onnx package, which is needed only where a script asks for a ModelProto."""
    return importlib.import_module("onnx")


class QuantizedModel:
    """What fit() returns: the model, and fettle's own result in `result`."""

    def __init__(self, result: Union[Quantized, Tuned]) -> None:
        self.result = result

    def save(self, root: Path_) -> None:
        """Into a file of that name, or into best_model.onnx of that folder."""
        path = Path(root)
        Model.save(self.result, path / "best_model.onnx" if path.is_dir() else path)

    @property
    def model(self) -> Any:
        """The onnx.ModelProto."""
        return _onnx().load_from_string(self.result.model_bytes)


def _as_evaluator(eval_func: Callable[[Any], Any]) -> Callable[[str], float]:
    """INC hands its evaluator an onnx.ModelProto; without the onnx package ours gets the path."""

    def evaluate(path: str) -> float:
        try:
            onnx = _onnx()
        except ImportError:
            return float(eval_func(path))
        return float(eval_func(onnx.load(path)))

    return evaluate


def fit(
    model: Any,
    conf: PostTrainingQuantConfig,
    calib_dataloader: Optional[Data] = None,
    calib_func: Optional[Callable[[Any], Any]] = None,
    eval_func: Optional[Callable[[Any], Any]] = None,
    eval_dataloader: Optional[Data] = None,
    eval_metric: Union[None, str, Metric] = None,
    **kwargs: Any,
) -> QuantizedModel:
    """
    Quantizes, or with eval_func or eval_metric tunes. Always returns a model: if the target is missed the best that was
    seen, with a warning.
    """
    if calib_func is not None:
        warnings.warn("calib_func has no effect: fettle calibrates on calib_dataloader", stacklevel=2)
    for name in kwargs:
        warnings.warn(f"{name} has no effect", stacklevel=2)
    model = getattr(model, "model", model)
    common: dict[str, Any] = {"calib": calib_dataloader}
    if conf.calibration_sampling_size:
        common["samples"] = max(conf.calibration_sampling_size)
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "conf.yaml")
        text = conf.as_yaml()
        tunes = eval_func is not None or eval_metric is not None
        if not tunes:
            del text["tuning"]
        elif len(conf.calibration_sampling_size) > 1:
            del common["samples"]  # a dimension of the search
        if conf.reduce_range is not None and not tunes:
            common["reduce_range"] = "on" if conf.reduce_range else "off"
        elif conf.reduce_range is not None:
            warnings.warn("reduce_range has no effect on a search: weights get 7 bits where this CPU needs it", stacklevel=2)
        with open(config, "w", encoding="utf-8") as f:
            json.dump(text, f)  # which is YAML
        if not tunes:
            return QuantizedModel(_calls.quantize(model, config=config, **common))
        tuned = _calls.tune(
            model,
            config=config,
            eval=eval_dataloader,
            evaluate=_as_evaluator(eval_func) if eval_func else None,
            metric=str(eval_metric) if eval_metric is not None and eval_func is None else None,
            workspace=options.workspace,
            seed=options.random_seed,
            **common,
        )
    if not tuned.met:
        warnings.warn(f"{tuned._verdict()}", stacklevel=2)
    print(tuned, file=sys.stderr)
    return QuantizedModel(tuned)
