"""Value, forward and reverse of one expression, in Lineara, autograd and torch, interleaved."""

import importlib
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..check import agree
from ..peers import installed
from ..timing import Effort, Timing, measure, reason
from .lines import constants, values

EFFORT = Effort(rounds=2, seconds=0.04)


@dataclass(frozen=True)
class Cost:
    """The least CPU seconds of each call of one expression; what did not run says why."""

    family: str
    text: str
    seconds: dict[str, float]
    failed: dict[str, str]

    def ratio(self, over: str, under: str) -> float | None:
        """One call beside another."""
        if over in self.seconds and under in self.seconds:
            return self.seconds[over] / self.seconds[under]
        return None


class Bench:
    """The values once, and every expression as a function of those that it names."""

    def __init__(self) -> None:
        if installed("autograd"):
            importlib.import_module("autograd.scipy.stats")
            importlib.import_module("autograd.scipy.signal")
        import scipy
        import scipy.integrate
        import scipy.interpolate
        import scipy.linalg
        import scipy.ndimage
        import scipy.signal
        import scipy.sparse.linalg
        import scipy.special
        import scipy.stats

        self.values, self.constants = values(), constants()
        splines = ("CubicSpline", "interp1d", "RegularGridInterpolator")
        self.space = {"np": np, "scipy": scipy, **self.constants}
        self.space |= {name: getattr(scipy.interpolate, name) for name in splines}
        self.random = np.random.default_rng(4)

    def names(self, text: str) -> list[str]:
        """The values that an expression is a function of."""
        return [n for n in self.values if re.search(rf"(?<![\w.]){n}(?![\w=])", text)]

    def function(self, text: str, module: Any, space: dict[str, Any]) -> Callable[..., Any]:
        """The expression as a loss: its results, weighted by the last argument and added."""

        def loss(y: Any, weights: tuple) -> Any:
            y = tuple(y) if isinstance(y, tuple | list) else (y,)
            total = 0.0
            for part, weight in zip(y, weights, strict=True):
                total = total + module.dot(weight, module.ravel(module.real(part)))
            return total

        names = ", ".join([*self.names(text), "weights"])
        return eval(f"lambda {names}: loss({text}, weights)", space | {"loss": loss})

    def cost(self, family: str, text: str, torch_text: str | None) -> Cost:
        """Measure one expression."""
        import lineara

        names = self.names(text)
        args = tuple(self.values[n] for n in names)
        y = eval(text, self.space | self.values)
        y = tuple(y) if isinstance(y, tuple | list) else (y,)
        weights = tuple(self.random.standard_normal(np.size(part)) for part in y)
        tangents = tuple(self._like(a) for a in args)
        f = self.function(text, np, self.space)
        gradient = lineara.grad(f, argnums=tuple(range(len(args))))
        calls: dict[str, Callable[[], Any]] = {
            "value": lambda: f(*args, weights),
            "forward": lambda: lineara.jvp(lambda *a: f(*a, weights), args, tangents),
            "reverse": lambda: gradient(*args, weights),
        }
        failed: dict[str, str] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = calls["reverse"]()
            for name, build in (("autograd", self._autograd), ("torch", self._torch)):
                try:
                    more = build(torch_text or text, args, weights)
                    differs = agree(_real(found), _real(more[name]()), 1e-6)
                    if differs:
                        failed[name] = f"another gradient: {differs}"
                    else:
                        calls |= more
                except Exception as error:
                    failed[name] = reason(error)
            outcomes = measure(calls, lambda _: False, EFFORT)
        failed |= {k: v for k, v in outcomes.items() if isinstance(v, str)}
        seconds = {k: v.seconds for k, v in outcomes.items() if isinstance(v, Timing)}
        return Cost(family, text, seconds, failed)

    def _like(self, a: Any) -> Any:
        """A direction: numbers of the shape and dtype of a value."""
        if isinstance(a, float):
            return float(self.random.standard_normal())
        return self.random.standard_normal(a.shape).astype(a.dtype)

    def _autograd(self, text: str, args: tuple, weights: tuple) -> dict:
        if not installed("autograd"):
            raise ImportError("not installed")
        import autograd
        import autograd.numpy
        import autograd.scipy
        import autograd.scipy.linalg
        import autograd.scipy.signal
        import autograd.scipy.special
        import autograd.scipy.stats

        space = {"np": autograd.numpy, "scipy": autograd.scipy, **self.constants}
        f = self.function(text, autograd.numpy, space)
        gradient = autograd.grad(f, argnum=tuple(range(len(args))))
        return {"autograd": lambda: gradient(*args, weights)}

    def _torch(self, text: str, args: tuple, weights: tuple) -> dict:
        if not installed("torch"):
            raise ImportError("not installed")
        import torch

        if not text.startswith("torch."):
            text = re.sub(r"\bscipy\.special\.", "torch.special.", text)
            text = re.sub(r"\bnp\.", "torch.", text).replace("axis=", "dim=")
        arrays = {k: v for k, v in self.constants.items() if isinstance(v, np.ndarray)}
        space = {k: torch.from_numpy(v) for k, v in arrays.items()} | {"torch": torch}
        f = self.function(text, torch, space)
        plain = [torch.from_numpy(a) if isinstance(a, np.ndarray) else a for a in args]
        held = tuple(torch.from_numpy(w) for w in weights)

        def value() -> Any:
            with torch.no_grad():
                return f(*plain, held)

        def call() -> Any:
            leaves = [p.detach().requires_grad_() if torch.is_tensor(p) else p for p in plain]
            f(*leaves, held).backward()
            return tuple(leaf.grad for leaf in leaves if torch.is_tensor(leaf))

        return {"torch": call, "torch value": value}


def _real(gradient: Any) -> tuple:
    """Gradients by arrays as a tuple of real numbers; numbers of Python's are left out."""
    parts = gradient if isinstance(gradient, tuple) else (gradient,)
    found = [g.detach().numpy() if hasattr(g, "detach") else g for g in parts]
    return tuple(np.real(g) for g in found if isinstance(g, np.ndarray))
