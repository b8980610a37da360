"""The dataloader of Intel Neural Compressor: batches of a dataset that gives (input, label)."""

from __future__ import annotations

from typing import Any, Iterator

import numpy as np


def _stack(items: list[Any]) -> Any:
    first = items[0]
    if isinstance(first, (tuple, list)):
        return tuple(_stack([i[k] for i in items]) for k in range(len(first)))
    if isinstance(first, dict):
        return {k: _stack([i[k] for i in items]) for k in first}
    return np.stack([np.asarray(i) for i in items])


class DataLoader:
    """DataLoader(framework="onnxruntime", dataset=dataset, batch_size=8)"""

    def __init__(self, framework: str = "onnxruntime", dataset: Any = None, batch_size: int = 1, **_: Any) -> None:
        self.framework = framework
        self.dataset = dataset
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[Any]:
        batch: list[Any] = []
        items = self.dataset if hasattr(self.dataset, "__iter__") else (self.dataset[i] for i in range(len(self.dataset)))
        for item in items:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield _stack(batch)
                batch = []
        if batch:
            yield _stack(batch)
