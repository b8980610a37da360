"""A line that shows how far a call is, on a terminal or in a notebook."""

from __future__ import annotations

import math
import sys
import time
from typing import Callable, Optional, TextIO, Union

from ._lib import Handle, ProgressInfo

#: True, False, None (where someone is looking), or a function of phase, done and total (0: unknown)
Progress = Union[bool, None, Callable[[str, int, int], None]]

_EVERY = 0.1  # seconds
_AFTER = 0.5
_WIDTH = 20


def _watched(stream: TextIO) -> bool:
    shell = sys.modules.get("IPython")
    return stream.isatty() or bool(shell and shell.get_ipython() and hasattr(shell.get_ipython(), "kernel"))


class Line:
    """Written over itself; gone when the call is over."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.started = time.monotonic()
        self.drawn = 0.0
        self.width = 0
        self.trials = ""

    def progress(self, phase: str, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.started < _AFTER or now - self.drawn < _EVERY:
            return
        self.drawn = now
        bar = ""
        if total:
            full = min(_WIDTH, _WIDTH * done // total)
            bar = f" [{'#' * full}{'.' * (_WIDTH - full)}] {done}/{total}"
        self._draw(f"{phase}{bar}{self.trials}")

    def trial(self, info: ProgressInfo) -> None:
        left = info.seconds_left
        self.trials = f"  trial {info.trial.contents.number}"
        if info.best:
            self.trials += f", best {info.best_accuracy:.4f}{' met' if info.best_met else ''}"
        if math.isfinite(left):
            self.trials += f", {left:.0f} s left"

    def _draw(self, text: str) -> None:
        self.stream.write("\r" + text.ljust(self.width))
        self.stream.flush()
        self.width = len(text)

    def close(self) -> None:
        if self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()


def watch(handle: Handle, progress: Progress) -> Optional[Line]:
    """Begins to show; close() what it returns."""
    if callable(progress):
        handle.on_progress(progress)
        return None
    if progress is False or (progress is None and not _watched(sys.stderr)):
        handle.on_progress(lambda phase, done, total: None)  # so that Ctrl-C gets in
        return None
    line = Line(sys.stderr)
    handle.on_progress(line.progress)
    handle.on_trial(line.trial)
    return line
