"""Metrics and strategies written in Python."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Callable, Optional, Sequence, Union, overload

import numpy as np

from . import _lib
from ._data import NUMPY, Array
from ._lib import Handle, lib, text

Sample = Callable[[list[Array], Optional[Array]], float]


@dataclass(frozen=True)
class MetricMember:
    """What @metric made: a metric for metric=."""

    name: str
    higher_is_better: bool
    sample: Sample

    def __call__(self, outputs: list[Array], label: Optional[Array]) -> float:
        return self.sample(outputs, label)


@dataclass(frozen=True)
class StrategyMember:
    """What @strategy made: a strategy for strategy=."""

    name: str
    summary: str
    traverse: "Callable[[Search], None]"


_metrics: dict[str, MetricMember] = {}
_strategies: dict[str, StrategyMember] = {}


def _array(t: _lib.Tensor) -> Array:
    """A view of the library's tensor: valid during the call only."""
    dtype = NUMPY[t.dtype]
    shape = tuple(t.dims[i] for i in range(t.rank))
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    a: Array = np.frombuffer(memoryview((ctypes.c_char * size).from_address(t.data)), dtype).reshape(shape)
    a.flags.writeable = False
    return a


@overload
def metric(sample: Sample) -> MetricMember: ...
@overload
def metric(
    sample: None = None, *, name: Optional[str] = None, higher_is_better: bool = True
) -> Callable[[Sample], MetricMember]: ...
def metric(
    sample: Optional[Sample] = None, *, name: Optional[str] = None, higher_is_better: bool = True
) -> Union[MetricMember, Callable[[Sample], MetricMember]]:
    """
    Makes a function a metric: the mean of what it returns for each sample, from the model's outputs for that sample (without
    the batch dimension) and its label (None: the data has none).

        @fettle.metric
        def close(outputs, label):
            return abs(outputs[0] - label).max() < 0.1

        fettle.tune("m.onnx", calib=x, eval=(x, y), metric=close)
    """

    def make(function: Sample) -> MetricMember:
        member = MetricMember(name or str(getattr(function, "__name__", "metric")), higher_is_better, function)
        _metrics[member.name.lower()] = member
        return member

    return make(sample) if sample else make


@overload
def strategy(traverse: "Callable[[Search], None]") -> StrategyMember: ...
@overload
def strategy(traverse: None = None, *, name: Optional[str] = None) -> "Callable[[Callable[[Search], None]], StrategyMember]": ...
def strategy(
    traverse: "Optional[Callable[[Search], None]]" = None, *, name: Optional[str] = None
) -> "Union[StrategyMember, Callable[[Callable[[Search], None]], StrategyMember]]":
    """
    Makes a function a strategy: it tries plans and looks at their scores, and returns when it has nothing more to try. When
    the budget is spent or the goal is reached, try_plan() does not return.

        @fettle.strategy
        def one_by_one(search):
            plan = search.default()
            search.try_plan(plan)
            for op in search.rank_ops(plan):
                plan[op] = search.params[op].fp32
                search.try_plan(plan)

        fettle.tune("m.onnx", calib=x, eval=(x, y), strategy=one_by_one)
    """

    def make(function: "Callable[[Search], None]") -> StrategyMember:
        member = StrategyMember(
            name or str(getattr(function, "__name__", "strategy")),
            (function.__doc__ or "").strip().split("\n")[0],
            function,
        )
        _strategies[member.name.lower()] = member
        return member

    return make(traverse) if traverse else make


@dataclass(frozen=True)
class Param:
    """A parameter of the space: an op's options, a recipe's, or the number of calibration samples."""

    kind: str  #: op, recipe, samples
    name: str
    n_options: int
    first: int  #: the default
    type: str  #: of an op
    block: int  #: transformer block, or -1
    fp32: int  #: the option that leaves an op in fp32, or -1
    modes: tuple[str, ...]  #: of an op's options: fp32, static, dynamic, wide
    compute: bool
    gain: float  #: share of the model's time that int8 saves, as far as known


@dataclass(frozen=True)
class PlanScore:
    failed: bool
    met: bool
    accuracy: float
    loss: float
    objective: float


class _Ended(Exception):
    def __init__(self, status: int) -> None:
        self.status = status


_KINDS = ("op", "recipe", "samples")
_MODES = ("fp32", "static", "dynamic", "wide")
_RANKS = ("output_error", "impact", "impact_back", "hessian")


class Search:
    """What a strategy may ask. A plan is a list: the number of the option chosen for each parameter."""

    def __init__(self, p: int) -> None:
        self._p = p
        self.params: list[Param] = [self._param(i) for i in range(lib.fettle_search_n_params(p))]
        self.n_ops: int = lib.fettle_search_n_ops(p)  #: the first so many parameters

    def _param(self, i: int) -> Param:
        c = lib.fettle_search_param(self._p, i).contents
        modes = tuple(_MODES[c.modes[k]] for k in range(c.n_options)) if c.kind == 0 else ()
        return Param(
            _KINDS[c.kind], text(c.name), c.n_options, c.first, text(c.type), c.block, c.fp32, modes, c.compute, c.gain
        )

    def _plan(self, plan: Sequence[int]) -> bytes:
        if len(plan) != len(self.params):
            raise ValueError(f"cannot try a plan of {len(plan)} choices: the space has {len(self.params)} parameters")
        for choice, param in zip(plan, self.params):
            if not 0 <= choice < param.n_options:
                raise ValueError(f"cannot choose option {choice} of '{param.name}': it has {param.n_options}")
        return bytes(plan)

    @staticmethod
    def _score(c: _lib.PlanScore) -> PlanScore:
        return PlanScore(c.failed, c.met, c.accuracy, c.loss, c.objective)

    def default(self) -> list[int]:
        """The plan to begin with: everything quantized as by default."""
        return [p.first for p in self.params]

    def try_plan(self, plan: Sequence[int]) -> PlanScore:
        """One trial. A plan that was tried before costs nothing."""
        score = _lib.PlanScore(size=ctypes.sizeof(_lib.PlanScore))
        status = lib.fettle_search_try(self._p, self._plan(plan), ctypes.byref(score))
        if status:
            raise _Ended(status)
        return self._score(score)

    def best(self) -> Optional[tuple[list[int], PlanScore]]:
        """The best so far: by the objective if the target is met, else by the loss."""
        plan = (ctypes.c_ubyte * len(self.params))()
        score = _lib.PlanScore(size=ctypes.sizeof(_lib.PlanScore))
        if not lib.fettle_search_best(self._p, plan, ctypes.byref(score)):
            return None
        return list(plan), self._score(score)

    def rank_ops(self, plan: Sequence[int], by: str = "impact") -> list[int]:
        """The ops that the rank covers under this plan, the most harmful first. by: output_error, impact, impact_back, hessian."""
        if by not in _RANKS:
            raise ValueError(f"cannot rank by '{by}', need one of {', '.join(_RANKS)}")
        ops = (ctypes.c_size_t * max(self.n_ops, 1))()
        n = ctypes.c_size_t()
        status = lib.fettle_search_rank_ops(self._p, self._plan(plan), _RANKS.index(by), ops, None, ctypes.byref(n))
        if status:
            raise _Ended(status)
        return list(ops[: n.value])

    def stage(self, name: str) -> None:
        """Names what the following trials belong to, for the history."""
        lib.fettle_search_stage(self._p, name.encode())

    @property
    def n_trials(self) -> int:
        return int(lib.fettle_search_n_trials(self._p))

    @property
    def trials_left(self) -> Optional[int]:
        """None: there is no limit."""
        n = int(lib.fettle_search_trials_left(self._p))
        return None if n == ctypes.c_size_t(-1).value else n

    @property
    def seed(self) -> int:
        return int(lib.fettle_search_seed(self._p))


def _register_metric(h: Handle, m: MetricMember) -> None:
    def sample(_: Any, outputs: Any, n: int, label: Any) -> float:
        return float(m.sample([_array(outputs[i]) for i in range(n)], _array(label[0]) if label else None))

    c = _lib.Metric(
        ctypes.sizeof(_lib.Metric), m.name.encode(), m.higher_is_better, _lib.SAMPLE(h.guard(sample, float("nan"))), None
    )
    h.check(lib.fettle_register_metric(h.p, ctypes.byref(h.keep(c))))


def _register_strategy(h: Handle, s: StrategyMember) -> None:
    def traverse(search: int, _: Any) -> int:
        try:
            s.traverse(Search(search))
        except _Ended as e:
            return e.status
        return _lib.OK

    c = _lib.Strategy(
        ctypes.sizeof(_lib.Strategy),
        s.name.encode(),
        s.summary.encode(),
        _lib.TRAVERSE(h.guard(traverse, _lib.INVALID)),
        ctypes.cast(0, _lib.NEXT),
        None,
    )
    h.check(lib.fettle_register_strategy(h.p, ctypes.byref(h.keep(c))))


def register(h: Handle) -> None:
    """Makes all members known to a handle."""
    for m in _metrics.values():
        _register_metric(h, m)
    for s in _strategies.values():
        _register_strategy(h, s)
