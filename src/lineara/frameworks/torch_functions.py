"""Functions of ours that torch differentiates, and functions of torch's as operations here.

The memory of tensors is shared with NumPy.  In torch's backward a call's pullback runs; where torch
asks for a graph of that, to differentiate it again, it is a function of torch's itself, made in the
same way.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.foreign_arrays import as_numpy
from lineara.cotangent.interop import library
from lineara.errors import TypeMismatchError
from lineara.facts.hints import Namespace, Tree
from lineara.facts.pickled import transformation
from lineara.facts.types import show_type
from lineara.frameworks.flat_calls import (
    Flat,
    FlatCall,
    cotangents,
    linearized,
    moves,
    pulled,
    pushed,
)
from lineara.rules import external
from lineara.trees import flatten, map_leaves, unflatten


@transformation
def to_torch(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, a function of NumPy's arrays, as a function of torch's tensors that torch differentiates.

    Tensors may stand anywhere in the arguments, as in the dict of a module's parameters; f sees
    NumPy's arrays of the same memory, and what it returns comes as tensors, in its containers.
    Backward, backward of a backward (`create_graph=True`), and forward mode of torch's follow.
    Where no gradient is asked for f runs as it is.  Python's numbers in a result get the dtype of
    the floating tensors.  f must not write into its arguments, which are read-only.

    Raises TypeMismatchError for tensors that NumPy does not read, as those on another device;
    ImportError where torch is not installed.

    >>> loss = to_torch(lambda x: np.sum(np.sin(x)))
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        torch = _torch("to_torch")
        flat = FlatCall(f, args, kwargs, lambda v: isinstance(v, torch.Tensor))
        return flat.tree(_applied(flat, flat.arrays))

    return call


def _applied(g: Flat, tensors: Sequence[Any]) -> list[Any]:
    """The numbers that a function of arrays gives, as tensors."""
    torch = _torch("to_torch")
    if not tensors:
        return [_tensor(torch, y, []) for y in g()]
    return [*_function().apply(_Run(torch, g, torch.is_grad_enabled()), *tensors)]


class _Run:
    """One run of a function of arrays: what torch's function keeps for its derivative."""

    def __init__(self, torch: Namespace, g: Flat, graph: bool) -> None:
        self.torch, self.g, self.graph = torch, g, graph
        self.L: Any = None
        self.moving: list[int] = []
        self.floats: list[bool] = []  # of the results, whether they have derivatives

    def value(self, tensors: Sequence[Any]) -> tuple[Any, ...]:
        """The results, as tensors; the linear map, if torch will ask for it."""
        arrays = [_read_only(_memory(t)) for t in tensors]
        self.moving = [i for i, t in enumerate(tensors) if self.graph and t.requires_grad]
        if self.moving:
            ys, self.L = linearized(self.g, arrays, self.moving)
        else:
            ys = self.g(*arrays)
        return tuple([_tensor(self.torch, y, arrays) for y in ys])

    def back(
        self, tensors: Sequence[Any], bars: Sequence[Any], wanted: Sequence[bool]
    ) -> list[Any]:
        """The cotangents of all tensors that are wanted; None for the others."""
        moving = [i for i, w in enumerate(wanted) if w]
        given = [w for w, floats in zip(bars, self.floats, strict=True) if floats]
        if self.L is None or self.torch.is_grad_enabled():  # torch asks for a graph of it
            back = _applied(pulled(self.g, len(tensors), moving), [*tensors, *given])
            at = dict(zip(moving, back, strict=True))
        else:
            arrays = [_memory(w) for w in given]
            back = [_tensor(self.torch, x, []) for x in cotangents(self.L, arrays)]
            at = dict(zip(self.moving, back, strict=True))
        return [at.get(i) for i in range(len(tensors))]

    def ahead(self, tensors: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, ...]:
        """The tangents of the results."""
        moving = [i for i, t in enumerate(tangents) if t is not None]
        push = pushed(self.g, len(tensors), moving)
        dots = iter(_applied(push, [*tensors, *[tangents[i] for i in moving]]))
        return tuple([next(dots) if floats else None for floats in self.floats])

    def lanes(self, size: int, axes: Sequence[int | None], tensors: Sequence[Any]) -> Any:
        """The results over lanes, one after the other, and their axes."""
        split = [None if a is None else t.unbind(a) for t, a in zip(tensors, axes, strict=True)]
        rows = [
            _applied(
                self.g, [t if s is None else s[i] for t, s in zip(tensors, split, strict=True)]
            )
            for i in range(size)
        ]
        columns = [*zip(*rows, strict=True)]
        return tuple(map(self.torch.stack, columns)), (0,) * len(columns)


@functools.cache
def _function() -> Any:
    """The class of torch's that calls a function of arrays."""
    torch = _torch("to_torch")

    class LinearaFunction(torch.autograd.Function):
        """A function of arrays of Lineara's."""

        @staticmethod
        def forward(run: _Run, *tensors: Any) -> Any:
            """The results."""
            return run.value(tensors)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
            """What the derivative is to see."""
            ctx.run, *tensors = inputs
            ctx.save_for_backward(*tensors)
            ctx.save_for_forward(*tensors)
            floats = ctx.run.floats = [*map(_floats, output)]
            ctx.mark_non_differentiable(*[y for y, k in zip(output, floats, strict=True) if not k])

        @staticmethod
        def backward(ctx: Any, *bars: Any) -> Any:
            """The cotangents."""
            return None, *ctx.run.back(ctx.saved_tensors, bars, ctx.needs_input_grad[1:])

        @staticmethod
        def jvp(ctx: Any, _: object, *tangents: Any) -> Any:
            """The tangents of the results."""
            return ctx.run.ahead(ctx.saved_tensors, tangents)

        @staticmethod
        def vmap(info: Any, axes: tuple[Any, ...], run: _Run, *tensors: Any) -> Any:
            """The results over lanes."""
            return run.lanes(info.batch_size, axes[1:], tensors)

    return LinearaFunction


def _memory(t: Any) -> np.ndarray:
    """The memory of a tensor as NumPy's; of what waits to be conjugated or negated, a copy."""
    return as_numpy(t.detach().resolve_conj().resolve_neg())


def _read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


def _tensor(torch: Namespace, y: Any, arrays: Sequence[np.ndarray]) -> Any:
    """A number or an array as a tensor of its own memory."""
    if type(y) in (float, complex):  # Python's, which takes the precision of what it meets
        kinds = [np.real(a).dtype for a in arrays if moves(a)]
        y = np.asarray(y, np.result_type(*kinds, type(y)(0)) if kinds else None)
    y = np.asarray(y)
    own = y.flags.writeable and y.flags.c_contiguous and y.dtype.isnative
    if not own or any([np.may_share_memory(y, a) for a in arrays]):
        y = np.array(y, y.dtype.newbyteorder("="), order="C")
    return torch.from_numpy(y)


def from_torch(f: Callable[..., Any]) -> external:
    """A function of torch's tensors, or a module, as one operation on NumPy's arrays.

    Its arguments are arrays and numbers, also in containers, which f gets as tensors, and its
    result comes as arrays.  Torch gives its derivative, in both modes.  What f holds itself, as the
    parameters of a module, is constant; to move them give them as an argument:
    `from_torch(lambda p, x: torch.func.functional_call(module, p, (x,)))`.

    It is a `lineara.external`: of real numbers, of one order, and outside of programs.  Raises
    TypeMismatchError for complex numbers, NoRuleError for a second derivative, StagingError in a
    trace, ImportError where torch is not installed.
    Where f draws random numbers, as dropout does, value and derivative are of other draws.

    >>> sin = from_torch(lambda x: x.sin())
    """
    there = _Torch(f)
    rule = external(there.value, jvp=there.jvp, vjp=there.vjp, check=False)
    functools.update_wrapper(rule, f, updated=())
    return rule


class _Torch:
    """A function of torch's on NumPy's arrays, with torch's derivatives."""

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeMismatchError(f"from_torch: takes a function, but was given {show_type(f)}")
        self.f = f

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """The result, as arrays."""
        torch = _torch("from_torch")
        with torch.no_grad():
            out = self.f(*_tensors(torch, args), **kwargs)
        return map_leaves(lambda t: _array(t) if isinstance(t, torch.Tensor) else t, out)

    def vjp(self, args: tuple[Any, ...], y_bar: Tree, **kwargs: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        torch = _torch("from_torch")
        leaves, structure = flatten(_tensors(torch, args))
        moved = [v for v in leaves if isinstance(v, torch.Tensor) and _floats(v)]
        with torch.enable_grad():
            for v in moved:
                v.requires_grad_()
            ys = flatten(self.f(*unflatten(structure, leaves), **kwargs))[0]
        bars = flatten(_tensors(torch, y_bar))[0]
        pairs = [
            (y, w)
            for y, w in zip(ys, bars, strict=True)
            if w is not None and getattr(y, "requires_grad", False)
        ]
        if not pairs:
            return (None,) * len(args)
        back = iter(
            torch.autograd.grad(
                [y for y, _ in pairs], moved, [w.to(y.dtype) for y, w in pairs],
                allow_unused=True, materialize_grads=True,
            )
        )  # fmt: skip
        still = [v if not isinstance(v, torch.Tensor) or not _floats(v) else None for v in leaves]
        return unflatten(structure, [_array(next(back)) if v is None else None for v in still])

    def jvp(self, args: tuple[Any, ...], tangents: tuple[Any, ...], **kwargs: Any) -> Any:
        """The tangent of the result."""
        torch = _torch("from_torch")
        leaves, structure = flatten(_tensors(torch, args))
        dots = flatten(_tensors(torch, tangents))[0]
        places = [i for i, t in enumerate(dots) if isinstance(t, torch.Tensor)]
        shape = []

        def of_moving(*moved: Any) -> Any:
            at = dict(zip(places, moved, strict=True))
            given = unflatten(structure, [at.get(i, v) for i, v in enumerate(leaves)])
            ys, form = flatten(self.f(*given, **kwargs))
            shape.append(form)
            return tuple(ys)

        along = tuple([dots[i].to(leaves[i].dtype) for i in places])
        y_dots = torch.func.jvp(of_moving, tuple([leaves[i] for i in places]), along)[1]
        return unflatten(shape[0], [_array(d) for d in y_dots])


def _torch(asked: str) -> Any:
    return library(asked, "torch", "torch")


def _floats(t: Any) -> bool:
    """Whether a tensor has a derivative."""
    return t.is_floating_point() or t.is_complex()


def _tensors(torch: Namespace, tree: Tree) -> Any:
    """Numbers and arrays as tensors, in their containers."""

    def tensor(v: Any) -> Any:
        number = isinstance(v, float | complex) or hasattr(v, "dtype")
        return _tensor(torch, np.asarray(v), []) if number else v

    return map_leaves(tensor, tree)


def _array(t: Any) -> Any:
    """A tensor as an array of its own; without axes, its number."""
    return np.array(_memory(t))[()]


__all__ = ["from_torch", "to_torch"]
