"""libfettle: where it is, its functions, one call."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from pathlib import Path
from types import TracebackType
from typing import Any, Callable, Optional, Type

OK, STOP, INVALID, UNSUPPORTED, SYSTEM, BACKEND = range(6)


class Error(Exception):
    """What fettle says when a call fails: the object, the value and the rule."""


class InvalidError(Error, ValueError):
    """The input or a setting is wrong."""


class UnsupportedError(Error):
    """The input is fine, but not something fettle handles."""


class SystemFailure(Error, OSError):
    """A file, the disk, memory or a process failed."""


class RuntimeFailure(Error, RuntimeError):
    """ONNX Runtime failed."""


class Stopped(Error):
    """The call was told to stop."""


_errors = {STOP: Stopped, INVALID: InvalidError, UNSUPPORTED: UnsupportedError, SYSTEM: SystemFailure, BACKEND: RuntimeFailure}


def raise_for(status: int, message: str) -> None:
    if status:
        raise _errors.get(status, Error)(message)


PROGRESS = CFUNCTYPE(c_bool, c_void_p, c_char_p, c_size_t, c_size_t)
ON_TRIAL = CFUNCTYPE(None, c_void_p, c_void_p)
EVALUATE = CFUNCTYPE(c_double, c_void_p, c_char_p)


class Tensor(Structure):
    """struct fettle_tensor"""

    _fields_ = [("dtype", c_int), ("rank", c_int), ("dims", POINTER(c_int64)), ("data", c_void_p)]


SAMPLE = CFUNCTYPE(c_double, c_void_p, POINTER(Tensor), c_size_t, POINTER(Tensor))
TRAVERSE = CFUNCTYPE(c_int, c_void_p, c_void_p)
NEXT = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)


class Metric(Structure):
    """struct fettle_metric"""

    _fields_ = [("size", c_size_t), ("name", c_char_p), ("higher_is_better", c_bool), ("sample", SAMPLE), ("self", c_void_p)]


class Strategy(Structure):
    """struct fettle_strategy"""

    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("summary", c_char_p),
        ("traverse", TRAVERSE),
        ("next", NEXT),
        ("self", c_void_p),
    ]


class Param(Structure):
    """struct fettle_param"""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("name", c_char_p),
        ("n_options", c_size_t),
        ("first", c_size_t),
        ("type", c_char_p),
        ("block", c_int),
        ("fp32", c_int),
        ("modes", POINTER(c_int)),
        ("compute", c_bool),
        ("gain", c_double),
    ]


class PlanScore(Structure):
    """struct fettle_plan_score"""

    _fields_ = [
        ("size", c_size_t),
        ("failed", c_bool),
        ("met", c_bool),
        ("accuracy", c_double),
        ("loss", c_double),
        ("objective", c_double),
    ]


class TrialInfo(Structure):
    """The first members of struct fettle_trial."""

    _fields_ = [("size", c_size_t), ("number", c_size_t), ("stage", c_char_p), ("failed", c_bool), ("met", c_bool)]


class ProgressInfo(Structure):
    """struct fettle_progress_info"""

    _fields_ = [
        ("size", c_size_t),
        ("trial", POINTER(TrialInfo)),
        ("max_trials", c_size_t),
        ("baseline", c_double),
        ("target", c_double),
        ("higher_is_better", c_bool),
        ("best", c_size_t),
        ("best_accuracy", c_double),
        ("best_met", c_bool),
        ("best_early", c_bool),
        ("seconds_used", c_double),
        ("seconds_left", c_double),
    ]


# name: result, arguments; as in fettle.h
_functions: dict[str, tuple[Any, list[Any]]] = {
    "fettle_new": (c_void_p, []),
    "fettle_free": (None, [c_void_p]),
    "fettle_message": (c_char_p, [c_void_p]),
    "fettle_version": (c_char_p, []),
    "fettle_runtime_version": (c_char_p, []),
    "fettle_cpu": (c_char_p, [POINTER(c_bool)]),
    "fettle_on_progress": (None, [c_void_p, PROGRESS, c_void_p]),
    "fettle_on_trial": (None, [c_void_p, ON_TRIAL, c_void_p]),
    "fettle_call_json": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(c_void_p)]),
    "fettle_model_bytes": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "fettle_callback_failed": (None, [c_char_p]),
    "fettle_data_new": (c_void_p, []),
    "fettle_data_add": (c_int, [c_void_p, c_void_p, c_char_p, c_int, c_int, POINTER(c_int64), c_void_p]),
    "fettle_data_free": (None, [c_void_p]),
    "fettle_register_metric": (c_int, [c_void_p, POINTER(Metric)]),
    "fettle_register_strategy": (c_int, [c_void_p, POINTER(Strategy)]),
    "fettle_search_n_params": (c_size_t, [c_void_p]),
    "fettle_search_n_ops": (c_size_t, [c_void_p]),
    "fettle_search_param": (POINTER(Param), [c_void_p, c_size_t]),
    "fettle_search_try": (c_int, [c_void_p, c_char_p, POINTER(PlanScore)]),
    "fettle_search_best": (c_bool, [c_void_p, c_void_p, POINTER(PlanScore)]),
    "fettle_search_n_trials": (c_size_t, [c_void_p]),
    "fettle_search_trials_left": (c_size_t, [c_void_p]),
    "fettle_search_seed": (c_uint64, [c_void_p]),
    "fettle_search_stage": (None, [c_void_p, c_char_p]),
    "fettle_search_rank_ops": (
        c_int,
        [c_void_p, c_char_p, c_int, POINTER(c_size_t), POINTER(c_double), POINTER(c_size_t)],
    ),
    "fettle_search_fail": (c_int, [c_void_p, c_int, c_char_p]),
}


def _bundled() -> Optional[Path]:
    """A wheel brings the library and what it needs, listed so that each comes after those it needs."""
    folder = Path(__file__).parent / "lib"
    listed = folder / "ORDER"
    if not listed.exists():
        return None
    names = listed.read_text().split()
    for name in names[:-1]:
        ctypes.CDLL(str(folder / name))
    return folder / names[-1]


def _load() -> ctypes.CDLL:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    asked = os.environ.get("FETTLE_LIBRARY")
    path = asked or str(_bundled() or "libfettle.so.0")
    try:
        lib = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError(
            f"cannot load {path}: {e}; install fettle ('make install', or its Debian package), "
            "or set FETTLE_LIBRARY to the path of libfettle.so"
        ) from None
    for name, (result, arguments) in _functions.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


lib = _load()
_libc = ctypes.CDLL(None)
_libc.free.argtypes = [c_void_p]


def text(p: Optional[bytes]) -> str:
    return p.decode(errors="replace") if p else ""


class Handle:
    """A handle of the library for one call. What Python functions raise in it is raised again after the call."""

    def __init__(self) -> None:
        self.p = lib.fettle_new()
        self.raised: Optional[BaseException] = None
        self._kept: list[Any] = []  # callbacks, which must live as long as the handle

    def __enter__(self) -> "Handle":
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], e: Optional[BaseException], tb: Optional[TracebackType]) -> None:
        lib.fettle_free(self.p)
        self.p = None

    def keep(self, thing: Any) -> Any:
        self._kept.append(thing)
        return thing

    def check(self, status: int) -> None:
        raise_for(status, text(lib.fettle_message(self.p)))

    def guard(self, function: Callable[..., Any], failed: Any) -> Callable[..., Any]:
        """The function as the library may call it: nothing is raised through C; the first exception is kept."""

        def guarded(*args: Any) -> Any:
            if self.raised:
                return failed
            try:
                return function(*args)
            except BaseException as e:  # KeyboardInterrupt too
                self.raised = e
                lib.fettle_callback_failed(f"{type(e).__name__}: {e}".encode())
                return failed

        return guarded

    def on_progress(self, call: Callable[[str, int, int], None]) -> None:
        """Also how Ctrl-C gets in: Python handles signals when it runs."""

        def progress(_: Any, phase: bytes, done: int, total: int) -> bool:
            call(text(phase), done, total)
            return True

        lib.fettle_on_progress(self.p, self.keep(PROGRESS(self.guard(progress, False))), None)

    def on_trial(self, call: Callable[[ProgressInfo], None]) -> None:
        def trial(_: Any, info: int) -> None:
            call(ProgressInfo.from_address(info))

        lib.fettle_on_trial(self.p, self.keep(ON_TRIAL(self.guard(trial, None))), None)

    def call(self, command: str, options: dict[str, Any]) -> Any:
        """The command's result, as with --json."""
        given = {k: v for k, v in options.items() if v is not None}
        out = c_void_p()
        sys.stdout.flush()
        status = lib.fettle_call_json(self.p, command.encode(), json.dumps(given).encode(), ctypes.byref(out))
        if self.raised:
            if out:
                _libc.free(out)
            raise self.raised
        self.check(status)
        try:
            return json.loads(ctypes.string_at(out.value or 0))
        finally:
            _libc.free(out)

    def model_bytes(self) -> Optional[bytes]:
        size = c_size_t()
        p = lib.fettle_model_bytes(self.p, ctypes.byref(size))
        return ctypes.string_at(p, size.value) if p else None


def address(function: Any) -> int:
    """Of a ctypes function, as fettle_call_json() takes it."""
    return ctypes.cast(function, c_void_p).value or 0
