"""
onnxruntime.quantization's calls: a script runs with its import changed.

    from fettle.ort import CalibrationDataReader, QuantType, quantize_static    # was: from onnxruntime.quantization import ...
    quantize_static("m.onnx", "m.int8.onnx", Reader())

What the script does not say is as fettle has it, not as onnxruntime has it: uint8 activations, weights per channel.
"""

from __future__ import annotations

import abc
import enum
import warnings
from typing import Any, Iterable, Mapping, Optional, Sequence

from . import _calls
from ._calls import ModelLike
from ._lib import InvalidError
from ._results import Path_, Quantized


class QuantType(enum.Enum):
    QInt8 = "int8"
    QUInt8 = "uint8"
    QInt16 = "int16"
    QUInt16 = "uint16"


class QuantFormat(enum.Enum):
    QOperator = "qoperator"
    QDQ = "qdq"


class CalibrationMethod(enum.Enum):
    MinMax = "minmax"
    Entropy = "kl"
    Percentile = "percentile"


class CalibrationDataReader(abc.ABC):
    """Gives batches as {input: array}, None at the end."""

    @abc.abstractmethod
    def get_next(self) -> Optional[Mapping[str, Any]]: ...

    def __iter__(self) -> "CalibrationDataReader":
        return self

    def __next__(self) -> Mapping[str, Any]:
        batch = self.get_next()
        if batch is None:
            raise StopIteration
        return batch


# extra_options: the recipe or the setting that each is
_RECIPES = {
    "SmoothQuant": "smooth_quant",
    "AddQDQPairToWeight": "add_qdq_pair_to_weight",
    "DedicatedQDQPair": "dedicated_qdq_pair",
}
_SCHEMES = {"ActivationSymmetric": "activation_scheme", "WeightSymmetric": "weight_scheme"}
_ALL = 1 << 30  # a reader's samples are all used


def _extra(extra: Optional[Mapping[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    recipes: dict[str, Any] = {}
    for name, value in (extra or {}).items():
        if name in _SCHEMES:
            out[_SCHEMES[name]] = "sym" if value else "asym"
        elif name in _RECIPES:
            recipes.setdefault(_RECIPES[name], bool(value))
        elif name == "SmoothQuantAlpha":
            recipes["smooth_quant"] = float(value)
        elif name == "CalibMovingAverage":
            out["algorithm"] = "moving_average" if value else "minmax"
        elif value:
            warnings.warn(f"extra_options: {name} has no effect", stacklevel=3)
    if recipes:
        out["recipes"] = recipes
    return out


def _kept(
    model: ModelLike, types: Optional[Sequence[str]], nodes: Optional[Sequence[str]], exclude: Optional[Iterable[str]]
) -> Optional[str]:
    """What stays in fp32, as fettle has it."""
    keep = list(exclude or [])
    if types or nodes:
        for op in _calls.inspect(model)["ops"]:
            if (types and op["type"] not in types) or (nodes and op["name"] not in nodes):
                keep.append(op["name"])
    for name in keep:
        if "," in name:
            raise InvalidError(f"cannot leave op '{name}' in fp32: its name has a comma")
    return ",".join(keep) or None


def quantize_static(
    model_input: ModelLike,
    model_output: Path_,
    calibration_data_reader: Any,
    quant_format: QuantFormat = QuantFormat.QDQ,
    op_types_to_quantize: Optional[Sequence[str]] = None,
    per_channel: Optional[bool] = None,
    reduce_range: Optional[bool] = None,
    activation_type: Optional[QuantType] = None,
    weight_type: Optional[QuantType] = None,
    nodes_to_quantize: Optional[Sequence[str]] = None,
    nodes_to_exclude: Optional[Iterable[str]] = None,
    use_external_data_format: bool = False,
    calibrate_method: CalibrationMethod = CalibrationMethod.MinMax,
    extra_options: Optional[Mapping[str, Any]] = None,
) -> Quantized:
    """Quantizes a model with the ranges that calibration gives, and writes it."""
    options: dict[str, Any] = {"algorithm": calibrate_method.value, **_extra(extra_options)}
    return _calls.quantize(
        model_input,
        output=model_output,
        calib=calibration_data_reader,
        samples=_ALL,
        format=quant_format.value,
        keep_fp32=_kept(model_input, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude),
        granularity=None if per_channel is None else "per_channel" if per_channel else "per_tensor",
        reduce_range=None if reduce_range is None else "on" if reduce_range else "off",
        activation_type=activation_type.value if activation_type else None,
        weight_type=weight_type.value if weight_type else None,
        **options,
    )


def quantize_dynamic(
    model_input: ModelLike,
    model_output: Path_,
    op_types_to_quantize: Optional[Sequence[str]] = None,
    per_channel: Optional[bool] = None,
    reduce_range: Optional[bool] = None,
    weight_type: Optional[QuantType] = None,
    nodes_to_quantize: Optional[Sequence[str]] = None,
    nodes_to_exclude: Optional[Iterable[str]] = None,
    use_external_data_format: bool = False,
    extra_options: Optional[Mapping[str, Any]] = None,
) -> Quantized:
    """Quantizes the weights; activations are quantized as the model runs."""
    return _calls.quantize(
        model_input,
        output=model_output,
        approach="dynamic",
        keep_fp32=_kept(model_input, op_types_to_quantize, nodes_to_quantize, nodes_to_exclude),
        granularity=None if per_channel is None else "per_channel" if per_channel else "per_tensor",
        reduce_range=None if reduce_range is None else "on" if reduce_range else "off",
        weight_type=weight_type.value if weight_type else None,
        **_extra(extra_options),
    )
