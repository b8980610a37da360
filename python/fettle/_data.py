"""What users have their data in, as arrays that the library reads in place."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from ._lib import Handle, InvalidError, lib

Array = npt.NDArray[Any]
#: A path; an array; a mapping of input names to arrays; (inputs, labels); or anything that gives batches of these.
Data = Union[str, "os.PathLike[str]", Array, Mapping[str, Any], Sequence[Any], Iterable[Any]]

# by ONNX's numbers
DTYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13,
}  # fmt: skip
NUMPY = {number: np.dtype(name) for name, number in DTYPES.items()}


def is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike))


def as_array(value: Any) -> Array:
    """Of numpy, torch, tensorflow, lists and numbers; as it is where it can be read in place."""
    if hasattr(value, "detach"):  # torch: cut off from gradients, in this memory
        value = value.detach().cpu()
    a = np.ascontiguousarray(value)
    if np.ndim(value) == 0:
        a = a.reshape(())
    if a.dtype.name not in DTYPES:
        raise InvalidError(f"cannot use data of type {a.dtype}, need one of {', '.join(DTYPES)}")
    return a


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") or hasattr(value, "detach")


def _is_pair(data: Any) -> bool:
    """(inputs, labels)"""
    return isinstance(data, (tuple, list)) and len(data) == 2 and (_is_array(data[0]) or isinstance(data[0], Mapping))


class _Names:
    """The model's inputs, asked for only where data does not name them."""

    def __init__(self, names: Callable[[], list[str]]) -> None:
        self._ask = names
        self._names: Optional[list[str]] = None

    def of(self, n: int) -> list[str]:
        if self._names is None:
            self._names = self._ask()
        if n > len(self._names):
            raise InvalidError(f"cannot feed {n} arrays: the model has {len(self._names)} inputs")
        return self._names[:n]


def _inputs(x: Any, names: _Names) -> dict[str, Array]:
    if isinstance(x, Mapping) or hasattr(x, "keys"):
        return {str(k): as_array(x[k]) for k in x.keys()}
    if isinstance(x, (tuple, list)) and x and all(_is_array(v) for v in x):
        return dict(zip(names.of(len(x)), map(as_array, x))) if len(x) > 1 else {"x": as_array(x[0])}
    return {"x": as_array(x)}


def _batch(item: Any, names: _Names) -> dict[str, Array]:
    """One batch, as loaders give it: inputs, or (inputs, labels)."""
    if isinstance(item, (tuple, list)) and len(item) == 2:
        fields = _inputs(item[0], names)
        if item[1] is not None:
            fields["y"] = as_array(item[1])
        return fields
    return _inputs(item, names)


def _with_samples(fields: dict[str, Array]) -> int:
    """How many samples there are: the first dimension of all."""
    counts = {k: (v.shape[0] if v.ndim else 0) for k, v in fields.items()}
    if len(set(counts.values())) != 1 or 0 in counts.values():
        said = ", ".join(f"'{k}' {v}" for k, v in counts.items())
        raise InvalidError(f"cannot use the data: its arrays hold different numbers of samples, or none ({said})")
    return next(iter(counts.values()))


def _join(batches: list[dict[str, Array]]) -> dict[str, Array]:
    first = batches[0]
    for b in batches:
        if b.keys() != first.keys():
            raise InvalidError(f"cannot use the data: a batch has {', '.join(b)}, another {', '.join(first)}")
    return {k: np.ascontiguousarray(np.concatenate([b[k] for b in batches])) for k in first}


def collect(data: Any, names: Callable[[], list[str]], limit: Optional[int] = None) -> dict[str, Array]:
    """
    The data as named arrays. Arrays are taken as they are. What gives batches (torch's and TensorFlow's loaders, a list of
    batches, ONNX Runtime's CalibrationDataReader) is read to its end, or until it has given `limit` samples.
    """
    asked = _Names(names)
    if isinstance(data, Mapping) or _is_array(data):
        fields = _inputs(data, asked)
    elif _is_pair(data):
        fields = _batch(data, asked)
    else:
        batches: list[dict[str, Array]] = []
        n = 0
        source = iter(data.get_next, None) if hasattr(data, "get_next") else data
        try:
            iterator = iter(source)
        except TypeError:
            raise InvalidError(
                f"cannot use data of type {type(data).__name__}: need a path, an array, a mapping of names to arrays, "
                "(inputs, labels), or what gives batches of these"
            ) from None
        for item in iterator:
            batches.append(_batch(item, asked))
            n += _with_samples(batches[-1])
            if limit and n >= limit:
                break
        if not batches:
            raise InvalidError("cannot use the data: it gives no batch")
        fields = _join(batches)
    _with_samples(fields)
    return fields


class Arrays:
    """Named arrays as the library's struct fettle_data, which borrows them."""

    def __init__(self, handle: Handle, fields: Mapping[str, Array]) -> None:
        self.p = lib.fettle_data_new()
        self._kept = dict(fields)
        for name, a in self._kept.items():
            dims = (ctypes.c_int64 * max(a.ndim, 1))(*a.shape)
            handle.check(
                lib.fettle_data_add(handle.p, self.p, name.encode(), DTYPES[a.dtype.name], a.ndim, dims, a.ctypes.data)
            )

    def free(self) -> None:
        lib.fettle_data_free(self.p)
        self.p = None
