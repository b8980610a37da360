"""Metrics by Intel Neural Compressor's names."""

from __future__ import annotations

from typing import Any


class Metric:
    """Metric("topk", k=5): one of fettle's own metrics, as 'fettle eval --help' lists them."""

    def __init__(self, name: str = "topk", **kwargs: Any) -> None:
        self.name = name
        self.kwargs = kwargs

    def __str__(self) -> str:
        k = self.kwargs.get("k")
        return f"{self.name}:{k}" if k is not None else self.name
