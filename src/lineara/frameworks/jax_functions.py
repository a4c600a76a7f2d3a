"""Functions of ours in JAX, and JAX's as operations here.

A call of ours is one primitive of JAX's, whose derivative ahead and whose transpose are calls of
the same primitive: of the function that gives tangents, and of the one that gives cotangents.  So
JAX's transformations nest in any order.  Within a program of JAX's the call is the program of the
function, where XLA takes it, and a call back to Python elsewhere.
"""

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.foreign_arrays import is_foreign
from lineara.cotangent.interop import library
from lineara.errors import LinearaError, StagingError, TypeMismatchError
from lineara.facts.hints import Leaf, Tree
from lineara.facts.pickled import transformation
from lineara.facts.types import ArrayType, show_type, type_of
from lineara.frameworks.flat_calls import FlatCall, is_number, moves, pulled, pushed
from lineara.rules import external
from lineara.staging.capture import trace
from lineara.staging.capture.jit import jit
from lineara.staging.tracing import VARIABLE
from lineara.trees import flatten, map_leaves, unflatten

Types = Sequence[ArrayType]


def _jax(asked: str, module: str = "jax") -> Any:
    return library(asked, module, "jax")


@transformation
def to_jax(f: Callable[..., Any]) -> Callable[..., Any]:
    """f, a function of NumPy's arrays, as a function of JAX's arrays that JAX transforms.

    JAX's arrays may stand anywhere in the arguments; f sees NumPy's, and what it returns comes as
    JAX's, in its containers.  `jax.grad`, `jvp`, `vjp`, `jacfwd`, `jacrev`, `hessian`, `jit` and
    `vmap` apply, nested in any order; vmap calls f for one lane after the other.  In `jax.jit` f is
    a part of XLA's program, as with `lineara.jit(f, engine="jax")`; what may raise an exception, or
    what XLA does not take, is called back.  The types of the
    results are those of the program that f is for arguments of such types, as `lineara.trace` finds
    it.  Where JAX is configured for 32 bits (`jax_enable_x64` is off) results of float64 are
    rounded to float32, and a UserWarning says so.

    Raises StagingError where f has no program, ImportError where JAX is not installed.

    >>> loss = to_jax(lambda x: np.sum(np.sin(x)))
    """

    def call(*args: Any, **kwargs: Any) -> Any:
        jax = _jax("to_jax")
        flat = FlatCall(f, args, kwargs, lambda v: isinstance(v, jax.Array))
        return flat.tree(_primitive().bind(*flat.arrays, call=_Called(flat)))

    return call


class _Called:
    """A function of a list of arrays, as JAX sees it."""

    def __init__(self, g: Callable[..., Sequence[Any]]) -> None:
        self.g = g
        self.known: dict[tuple[ArrayType, ...], Types] = {}

    def types(self, given: Types) -> Types:
        """The types of the results, for arguments of these types."""
        key = tuple(given)
        if key not in self.known:
            self.known[key] = self.found(given)
        return self.known[key]

    def found(self, given: Types) -> Types:
        """The types of the results, by the program that the function is."""
        try:
            staged = trace(self.g, *[np.ones(t.shape, t.dtype) for t in given])
        except LinearaError as error:
            raise StagingError(
                "to_jax: JAX asks for the types of the results before the function runs, and it "
                f"has no program that would tell them: {error.message}"
            ) from error
        variables: Any = iter(zip(staged.definition.text.results, staged.results.weak, strict=True))
        types: list[Any] = []
        for c in staged.results.constants:
            t, weak = next(variables) if c is VARIABLE else (type_of(c), type(c) is float)
            types.append(ArrayType(t.shape, _precision(t.dtype, given)) if weak else t)
        return types

    def run(self, arrays: Sequence[Any], narrow: Callable[[np.dtype], np.dtype]) -> list[Any]:
        """The results, in the precisions that JAX takes."""
        given = [np.asarray(a) for a in arrays]
        types = [type_of(a) for a in given]
        results = []
        for y in self.g(*given):
            weak = type(y) in (float, complex)
            dtype = _precision(type_of(y).dtype, types) if weak else type_of(y).dtype
            results.append(np.asarray(y, narrow(dtype)))
        return results


class _Pushed(_Called):
    """The function (arrays, tangents of some) -> tangents of the results."""

    def __init__(self, of: _Called, count: int, moving: Sequence[int]) -> None:
        super().__init__(pushed(of.g, count, moving))
        self.of, self.count, self.moving = of, count, moving

    def found(self, given: Types) -> Types:
        """Those of the results that move."""
        return [t for t in self.of.types(given[: self.count]) if t.dtype.kind in "fc"]


class _Pulled(_Called):
    """The function (arrays, cotangents of the results) -> cotangents of some.

    JAX transposes complex numbers where Lineara takes adjoints.
    """

    def __init__(self, of: _Called, count: int, moving: Sequence[int]) -> None:
        pull = pulled(of.g, count, moving)

        def transposed(*given: Any) -> list[Any]:
            bars = [np.conj(w) for w in given[count:]]
            return [np.conj(x) for x in pull(*given[:count], *bars)]

        super().__init__(transposed)
        self.of, self.count, self.moving = of, count, moving

    def found(self, given: Types) -> Types:
        """Those of the arrays that move."""
        return [given[i] for i in self.moving]


def _precision(dtype: np.dtype, given: Types) -> np.dtype:
    """The dtype of a number of Python's, which takes the precision of what it meets."""
    kinds = [np.real(np.empty(0, t.dtype)).dtype for t in given if t.dtype.kind in "fc"]
    return np.result_type(*kinds, 1j if dtype.kind == "c" else 0.0) if kinds else dtype


@functools.cache
def _primitive() -> Any:
    """JAX's primitive for calls of ours, and its rules."""
    core, dtypes = _jax("to_jax", "jax.extend.core"), _jax("to_jax", "jax.dtypes")
    ad, batching = (_jax("to_jax", f"jax.interpreters.{n}") for n in ("ad", "batching"))
    mlir, jax = _jax("to_jax", "jax.interpreters.mlir"), _jax("to_jax")
    p = core.Primitive("lineara_call")
    p.multiple_results = True

    def narrow(dtype: np.dtype) -> np.dtype:
        into = np.dtype(dtypes.canonicalize_dtype(dtype))
        if dtype.kind in "fc" and into != dtype:
            warnings.warn(
                f"to_jax: the function gives {dtype}, and JAX is configured for 32 bits, so this "
                f'is rounded to {into}; jax.config.update("jax_enable_x64", True) keeps it',
                stacklevel=2,
            )
        return into

    def given(avals: Sequence[Any]) -> Types:
        return [ArrayType(tuple(a.shape), np.dtype(a.dtype)) for a in avals]

    def evaluated(*arrays: Any, call: _Called) -> list[Any]:
        return [jax.numpy.asarray(y) for y in call.run(arrays, narrow)]

    def abstract(*avals: Any, call: _Called) -> list[Any]:
        types = call.types(given(avals))
        return [jax.core.ShapedArray(t.shape, narrow(t.dtype)) for t in types]

    def lowered(*arrays: Any, call: _Called) -> list[Any]:
        types = [t._replace(dtype=narrow(t.dtype)) for t in call.types(given(arrays))]
        try:
            results = jit(call.g, engine="jax")(*arrays)
        except LinearaError:  # XLA does not take it, or could not raise what it may raise
            back = _jax("to_jax", "lineara.engines.xla.callbacks")
            return back.call(lambda *xs: call.run(xs, narrow), types, arrays)
        return [jax.numpy.asarray(y, t.dtype) for y, t in zip(results, types, strict=True)]

    def jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: _Called) -> Any:
        ys = p.bind(*primals, call=call)
        moving = [i for i, t in enumerate(tangents) if type(t) is not ad.Zero]
        push = _Pushed(call, len(primals), moving)
        dots = iter(p.bind(*primals, *[tangents[i] for i in moving], call=push))
        return ys, [next(dots) if _floats(y) else _still(y) for y in ys]

    def transpose(bars: Sequence[Any], *args: Any, call: Any) -> list[Any]:
        primals, linear = args[: call.count], args[call.count :]
        back = _Pulled if isinstance(call, _Pushed) else _Pushed
        cs = [ad.instantiate_zeros(w) for w in bars]
        xs = p.bind(*primals, *cs, call=back(call.of, call.count, call.moving))
        wanted = [x if ad.is_undefined_primal(v) else None for x, v in zip(xs, linear, strict=True)]
        return [None] * call.count + wanted

    def lanes(args: Sequence[Any], axes: Sequence[Any], *, call: _Called) -> Any:
        moved = [
            a if d is None else jax.numpy.moveaxis(a, d, 0) for a, d in zip(args, axes, strict=True)
        ]
        mapped = [i for i, d in enumerate(axes) if d is not None]

        def lane(rows: Sequence[Any]) -> Any:
            at = dict(zip(mapped, rows, strict=True))
            return p.bind(*[at.get(i, a) for i, a in enumerate(moved)], call=call)

        ys = jax.lax.map(lane, [moved[i] for i in mapped])
        return ys, [0] * len(ys)

    def _still(y: Any) -> Any:
        return ad.Zero(jax.typeof(y).to_tangent_aval())

    p.def_impl(evaluated)
    p.def_abstract_eval(abstract)
    mlir.register_lowering(p, mlir.lower_fun(lowered, multiple_results=True))
    ad.primitive_jvps[p], ad.primitive_transposes[p] = jvp, transpose
    batching.primitive_batchers[p] = lanes
    return p


def _floats(y: Any) -> bool:
    return y.dtype.kind in "fc"


# --- JAX's functions here -------------------------------------------------------------------------


def from_jax(f: Callable[..., Any]) -> external:
    """A function of JAX's arrays as one operation on NumPy's.

    Its arguments are arrays and numbers, also in containers, which f gets as JAX's arrays, and its
    result comes as NumPy's.  JAX gives its derivative, in both modes.  What f holds itself is
    constant.  Where JAX is configured for 32 bits (`jax_enable_x64` is off) arguments of float64
    are rounded to float32, and a UserWarning says so.

    It is a `lineara.external`: of real numbers, of one order, and outside of programs.  Raises
    TypeMismatchError for complex numbers, NoRuleError for a second derivative, StagingError in a
    trace, ImportError where JAX is not installed.

    >>> sin = from_jax(lambda x: x * x)
    """
    there = _Jax(f)
    rule = external(there.value, jvp=there.jvp, vjp=there.vjp, check=False)
    functools.update_wrapper(rule, f, updated=())
    return rule


class _Jax:
    """A function of JAX's on NumPy's arrays, with JAX's derivatives."""

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise TypeMismatchError(f"from_jax: takes a function, but was given {show_type(f)}")
        self.f = f

    def value(self, *args: Any, **kwargs: Any) -> Any:
        """The result, as arrays."""
        return map_leaves(_array, self.f(*_arrays(args), **kwargs))

    def _of_moving(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Any, list[Any], list[int]]:
        """f of the floating leaves of its arguments, with what moves of its result beside."""
        leaves, structure = flatten(_arrays(args))
        places = [i for i, v in enumerate(leaves) if _kind(v) == "f"]

        def of_moving(*moved: Any) -> Any:
            at = dict(zip(places, moved, strict=True))
            return self.f(
                *unflatten(structure, [at.get(i, v) for i, v in enumerate(leaves)]), **kwargs
            )

        return of_moving, leaves, places

    def vjp(self, args: tuple[Any, ...], y_bar: Tree, **kwargs: Any) -> tuple[Any, ...]:
        """The cotangents of the arguments."""
        jax = _jax("from_jax")
        of_moving, leaves, places = self._of_moving(args, kwargs)

        floats: list[bool] = []

        def numbers(*moved: Any) -> list[Any]:
            ys = flatten(of_moving(*moved))[0]
            floats[:] = [_kind(y) == "f" for y in ys]
            return [y for y, k in zip(ys, floats, strict=True) if k]

        ys, pull = jax.vjp(numbers, *[leaves[i] for i in places])
        bars = [w for w, k in zip(flatten(y_bar)[0], floats, strict=True) if k]
        cs = [jax.numpy.asarray(np.asarray(w, y.dtype)) for w, y in zip(bars, ys, strict=True)]
        back = dict(zip(places, pull(cs), strict=True))
        structure = flatten(args)[1]
        return unflatten(
            structure, [_array(back[i]) if i in back else None for i in range(len(leaves))]
        )

    def jvp(self, args: tuple[Any, ...], tangents: tuple[Any, ...], **kwargs: Any) -> Any:
        """The tangent of the result."""
        jax = _jax("from_jax")
        of_moving, leaves, places = self._of_moving(args, kwargs)
        dots = flatten(tangents)[0]
        along = [jax.numpy.asarray(np.asarray(dots[i], leaves[i].dtype)) for i in places]
        return map_leaves(_array, jax.jvp(of_moving, [leaves[i] for i in places], along)[1])


def _arrays(tree: Tree) -> Any:
    """Numbers and arrays as JAX's arrays, in their containers."""
    jax = _jax("from_jax")

    def array(v: Any) -> Any:
        if not is_number(v):
            return v
        a = jax.numpy.asarray(v)
        if isinstance(v, np.ndarray | np.generic) and moves(v) and a.dtype != v.dtype:
            warnings.warn(
                f"from_jax: an argument is of {v.dtype}, and JAX is configured for 32 bits, so it "
                f'is rounded to {a.dtype}; jax.config.update("jax_enable_x64", True) keeps it',
                stacklevel=2,
            )
        return a

    return map_leaves(array, tree)


def _kind(v: Leaf) -> str:
    return getattr(getattr(v, "dtype", None), "kind", "")


def _array(v: Any) -> Any:
    """An array of JAX's as NumPy's; without axes, its number."""
    return np.array(v)[()] if is_foreign(type(v)) else v


__all__ = ["from_jax", "to_jax"]
