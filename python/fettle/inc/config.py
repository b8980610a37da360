"""The configuration classes of Intel Neural Compressor 2.x that tuning an ONNX model takes, under its names."""

from __future__ import annotations

import warnings
from typing import Any, Mapping, Optional, Sequence, Union

from .._lib import InvalidError

Dict = Mapping[str, Any]


class AccuracyCriterion:
    """How much accuracy may be lost."""

    def __init__(self, higher_is_better: bool = True, criterion: str = "relative", tolerable_loss: float = 0.01) -> None:
        self.higher_is_better = higher_is_better
        self.criterion = criterion
        self.tolerable_loss = tolerable_loss


class TuningCriterion:
    """How long to search, and by which strategy. objective: a name, or {"objective": [...], "weight": [...]}."""

    def __init__(
        self,
        strategy: str = "basic",
        strategy_kwargs: Optional[Dict] = None,
        timeout: float = 0,
        max_trials: int = 100,
        objective: Union[str, Sequence[str], Dict] = "performance",
    ) -> None:
        self.strategy = strategy
        self.strategy_kwargs = strategy_kwargs
        self.timeout = timeout
        self.max_trials = max_trials
        self.objective = objective


class PostTrainingQuantConfig:
    """What to quantize and how."""

    def __init__(
        self,
        device: str = "cpu",
        backend: str = "default",
        domain: str = "auto",
        recipes: Optional[Dict] = None,
        quant_format: str = "default",
        inputs: Sequence[str] = (),
        outputs: Sequence[str] = (),
        approach: str = "static",
        calibration_sampling_size: Union[int, Sequence[int]] = (100,),
        op_type_dict: Optional[Dict] = None,
        op_name_dict: Optional[Dict] = None,
        reduce_range: Optional[bool] = None,
        example_inputs: Any = None,
        excluded_precisions: Sequence[str] = (),
        quant_level: Union[str, int] = "auto",
        accuracy_criterion: Optional[AccuracyCriterion] = None,
        tuning_criterion: Optional[TuningCriterion] = None,
        diagnosis: bool = False,
        ni_workload_name: str = "quantization",
    ) -> None:
        if device not in ("cpu", "auto"):
            raise InvalidError(f"cannot quantize for device '{device}': fettle measures on the cpu, say device='cpu'")
        if backend not in ("default", "onnxrt_dnnl_ep"):
            raise InvalidError(f"cannot use backend '{backend}': fettle runs ONNX Runtime's CPU provider, leave it out")
        if diagnosis:
            warnings.warn("diagnosis has no effect: every run keeps its trials, see 'fettle history'", stacklevel=2)
        self.device, self.backend, self.domain = device, backend, domain
        self.recipes = dict(recipes or {})
        self.quant_format = quant_format
        self.inputs, self.outputs = list(inputs), list(outputs)
        self.approach = approach
        sizes = [calibration_sampling_size] if isinstance(calibration_sampling_size, int) else calibration_sampling_size
        self.calibration_sampling_size = list(sizes)
        self.op_type_dict, self.op_name_dict = op_type_dict, op_name_dict
        self.reduce_range = reduce_range
        self.excluded_precisions = list(excluded_precisions)
        self.quant_level = quant_level
        self.accuracy_criterion = accuracy_criterion or AccuracyCriterion()
        self.tuning_criterion = tuning_criterion or TuningCriterion()

    def as_yaml(self) -> dict[str, Any]:
        """As fettle's configuration has it."""
        a, t = self.accuracy_criterion, self.tuning_criterion
        quantization: dict[str, Any] = {
            "approach": self.approach,
            "calibration": {"sampling_size": self.calibration_sampling_size},
        }
        if self.quant_format != "default":
            quantization["quant_format"] = self.quant_format
        for name in ("recipes", "op_type_dict", "op_name_dict"):
            if getattr(self, name):
                quantization[name] = getattr(self, name)
        options_of_strategy = dict(t.strategy_kwargs or {})
        if callable(options_of_strategy.get("hawq_v2_loss")):
            warnings.warn("hawq_v2_loss has no effect: fettle takes cross-entropy or the squared error", stacklevel=3)
            del options_of_strategy["hawq_v2_loss"]
        tuning: dict[str, Any] = {
            "quant_level": str(self.quant_level),
            "accuracy_criterion": {
                "criterion": a.criterion,
                "tolerable_loss": a.tolerable_loss,
                "higher_is_better": a.higher_is_better,
            },
            "exit_policy": {"timeout": t.timeout, "max_trials": t.max_trials},
            "strategy": {"name": t.strategy, **options_of_strategy},
        }
        if isinstance(t.objective, str):
            tuning["objective"] = t.objective
        elif isinstance(t.objective, Mapping):
            tuning["multi_objectives"] = dict(t.objective)
        else:
            tuning["multi_objectives"] = {"objective": list(t.objective)}
        model = {k: getattr(self, k) for k in ("inputs", "outputs") if getattr(self, k)}
        return {**({"model": model} if model else {}), "quantization": quantization, "tuning": tuning}


class _Options:
    """What set_workspace() and set_random_seed() said."""

    def __init__(self) -> None:
        self.workspace: Optional[str] = None
        self.random_seed: Optional[int] = None


options = _Options()
