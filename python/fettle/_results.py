"""What calls return: the library's JSON with names, and the model itself."""

from __future__ import annotations

import html
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Optional, Union

from ._lib import Handle, InvalidError

Path_ = Union[str, "os.PathLike[str]"]


@dataclass(frozen=True)
class Measure:
    """A model as measured: the baseline, or the best that was found."""

    accuracy: float
    latency_ms: float
    speedup: float
    size_bytes: int
    int8_share: float
    ops: Mapping[str, int]
    trial: int
    #: between which the speed-up lies with 99 % confidence; NaN: too few runs were timed
    speedup_low: float
    speedup_high: float

    @classmethod
    def _of(cls, j: Mapping[str, Any]) -> "Measure":
        return cls(
            accuracy=_number(j["accuracy"]),
            latency_ms=_number(j["latency_ms"]),
            speedup=_number(j["speedup"]),
            size_bytes=j["size_bytes"],
            int8_share=j["int8_share"],
            ops=j["ops"],
            trial=j["trial"],
            speedup_low=_number(j.get("speedup_low")),
            speedup_high=_number(j.get("speedup_high")),
        )


@dataclass(frozen=True)
class Trial:
    """One plan that was tried."""

    trial: int
    stage: str
    changed: str
    met: bool
    failed: bool
    why: str
    #: NaN where the evaluation ended as soon as its verdict was certain: it lies within accuracy_low..accuracy_high
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    loss: float
    latency_ms: float
    size_bytes: int
    seconds: float
    pareto: bool
    plan: Mapping[str, Any]

    @classmethod
    def _of(cls, j: Mapping[str, Any]) -> "Trial":
        members: dict[str, Any] = {k: j[k] for k in cls.__dataclass_fields__}
        for name in ("accuracy", "accuracy_low", "accuracy_high", "loss", "latency_ms"):
            members[name] = _number(members[name])
        return cls(**members)


def _number(v: Optional[float]) -> float:
    return float("nan") if v is None else float(v)


@dataclass
class Model:
    """A model that a call has made: in a file, in memory, or both."""

    #: what the command prints with --json
    json: Mapping[str, Any] = field(repr=False)
    _bytes: Optional[bytes] = field(default=None, repr=False)

    @property
    def output(self) -> Optional[str]:
        """The path it was written to; None: it is in memory only."""
        return None if self._bytes is not None else self.json.get("output")

    @property
    def model_bytes(self) -> bytes:
        """The model, as onnx.load_from_string() and onnxruntime.InferenceSession take it."""
        if self._bytes is not None:
            return self._bytes
        path = Path(self.json["output"])
        if path.with_name(path.name + ".data").exists():
            raise InvalidError(f"cannot give {path} as bytes: its weights are in a file beside it")
        return path.read_bytes()

    def save(self, path: Path_) -> str:
        """Writes the model there; returns the path."""
        to = Path(path)
        beside = to.with_name(f"{to.name}.{os.getpid()}.tmp")
        try:
            if self._bytes is not None:
                beside.write_bytes(self._bytes)
            elif Path(self.json["output"] + ".data").exists():
                raise InvalidError(
                    f"cannot save {self.json['output']} elsewhere: its weights are in a file beside it, "
                    "and it names that file; move both, or say output= in the call"
                )
            else:
                shutil.copyfile(self.json["output"], beside)
            os.replace(beside, to)
        finally:
            beside.unlink(missing_ok=True)
        return str(to)

    @property
    def notes(self) -> list[str]:
        """Remarks on the call: settings without effect and the like."""
        return list(self.json.get("notes", []))

    @property
    def warnings(self) -> list[str]:
        """What casts doubt on the result."""
        return list(self.json.get("warnings", []))


@dataclass
class Quantized(Model):
    """What quantize() made."""

    @property
    def int8_share(self) -> float:
        """Of the multiply-adds, as the runtime carries them out."""
        return float(self.json["int8_share"])

    @property
    def ops(self) -> Mapping[str, int]:
        """How many ops there are by precision."""
        ops: Mapping[str, int] = self.json["ops"]
        return ops


@dataclass
class Tuned(Model):
    """What tune(), search() and resume() found."""

    _trials: Optional[list[Trial]] = field(default=None, repr=False)

    @property
    def met(self) -> bool:
        """Is the target met? If not, the model is the best that was seen."""
        return bool(self.json["met"])

    @property
    def stop(self) -> str:
        """Why the run ended: accuracy_met, max_trials, timeout, exhausted, interrupted."""
        return str(self.json["stop"])

    @property
    def faster(self) -> bool:
        """Is it faster than fp32 with 99 % confidence?"""
        return bool(self.json["faster"])

    @property
    def metric(self) -> str:
        return str(self.json["metric"])

    @property
    def target(self) -> float:
        """The accuracy that was to be reached; NaN: none was."""
        return _number(self.json["target"])

    @property
    def baseline(self) -> Measure:
        return Measure._of(self.json["baseline"])

    @property
    def best(self) -> Measure:
        return Measure._of(self.json["best"])

    @property
    def workspace(self) -> str:
        """The folder with the history of the run: for resume(), recover() and fettle's own commands."""
        return str(self.json["workspace"])

    @property
    def fp32_ops(self) -> list[Mapping[str, Any]]:
        """The ops that stayed in fp32, each with its reason."""
        return list(self.json["fp32_ops"])

    @property
    def trials(self) -> list[Trial]:
        """Every plan that was tried, from the history."""
        if self._trials is None:
            with Handle() as h:
                self._trials = [Trial._of(t) for t in h.call("history", {"workspace": self.workspace})["trials"]]
        return self._trials

    def report(self, output: Union[str, "os.PathLike[str]"], *, sensitivity: bool = True) -> str:
        """
        Writes the run as a page to look at, one HTML file, and returns its path. Where calibration data was given as arrays,
        fettle.report(r.workspace, output, calib=...) shows more.
        """
        path = os.fspath(output)
        with Handle() as h:
            h.call("report", {"workspaces": [self.workspace], "output": path, "no_sensitivity": not sensitivity})
        return path

    def _rows(self) -> list[tuple[str, str, str]]:
        b, q = self.baseline, self.best
        return [
            (self.metric, f"{b.accuracy:.4f}", f"{q.accuracy:.4f}"),
            ("latency", f"{b.latency_ms:.3f} ms", f"{q.latency_ms:.3f} ms ({q.speedup:.2f} x)"),
            ("size", f"{b.size_bytes / 1000:.0f} KB", f"{q.size_bytes / 1000:.0f} KB"),
            ("int8", f"{100 * b.int8_share:.0f} %", f"{100 * q.int8_share:.0f} %"),
        ]

    def _verdict(self) -> str:
        if self.target != self.target:
            return f"{self.json['trials']} trials, no target was set"
        said = "target met" if self.met else "target missed, this is the best that was seen"
        return f"{said}: {self.metric} {self.best.accuracy:.4f}, need {self.target:.4f}; {self.json['trials']} trials"

    def __str__(self) -> str:
        return "\n".join([self._verdict()] + [f"{n:>10}  {b:>12}  {q}" for n, b, q in self._rows()])

    def _repr_html_(self) -> str:
        cells = "".join(
            "<tr>" + "".join(f"<td style='text-align:right'>{html.escape(v)}</td>" for v in row) + "</tr>"
            for row in [("", "fp32", "best")] + self._rows()
        )
        return f"<p>{html.escape(self._verdict())}</p><table>{cells}</table>"


@dataclass(frozen=True)
class Score:
    """What evaluate() measured."""

    metric: str
    value: float
    samples: int
    higher_is_better: bool
    json: Mapping[str, Any] = field(repr=False)

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Timing:
    """A model as bench() timed it."""

    model: str
    latency_ms: float
    p90_ms: float
    size_bytes: int
    speedup: float
    speedup_low: float
    speedup_high: float
