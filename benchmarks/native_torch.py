"""The programs of `benchmarks.native_arrays` run by torch: the same source, with torch for NumPy.

Loops that write in place are not run: torch refuses those writes.
"""

import types
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from . import native_arrays

IN_PLACE = ("determinant", "lorenz")


class _Names:
    """torch, under the names of NumPy that the programs use."""

    concatenate, cross = staticmethod(torch.cat), staticmethod(torch.linalg.cross)

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)

    @staticmethod
    def max(x: Any, axis: int | None = None) -> Any:
        """The largest element, or those along an axis."""
        return torch.amax(x) if axis is None else torch.amax(x, axis)


def call(p: native_arrays.Program) -> Callable[[], Any] | None:
    """What differentiates a program eagerly, on one thread; None if it writes in place."""
    if p.f.__name__ in IN_PLACE:
        return None
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    names, known = _Names(), vars(native_arrays)
    known = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in known.items()}
    known["np"] = names
    given = (names,) * len(p.f.__defaults__ or ())
    f: Any = types.FunctionType(p.f.__code__, known, p.f.__name__, given)
    args = [torch.tensor(a) for a in p.args]
    if p.what == "Hessian":
        hessian = torch.func.hessian(f)
        return lambda: hessian(*args)
    if p.what == "per-example gradients":
        each = torch.func.vmap(torch.func.grad(f), (None, 0, 0))
        return lambda: each(*args)
    leaves = [a.requires_grad_() for a in args]

    def gradient() -> Any:
        slopes = torch.autograd.grad(f(*leaves), leaves)
        return slopes if len(slopes) > 1 else slopes[0]

    return gradient
