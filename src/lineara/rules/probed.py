"""A function as an argument that is differentiated as a function: its gradient is a bag of probes.

    F(f) = f(2) * f(3)        gives        the functional u ↦ f(3) u(2) + f(2) u(3)

Each call of f adds P(x) to its result: zero, and the derivative along u is u(x).  Where the call
lies inside another differentiation, P has derivatives in x too.  There are two operations, and they
are closed under derivatives and transposes, to any order:

    P(x; d1..dn)       along u:  the n-th derivative of u at x, once along each d
    Q(x; d1..dn; k)    along u:  v ↦ <k, the derivative n + 1 of u at x along d1..dn and v>

        P along x_dot:  P(x; d.., x_dot)           transposed in x:   k ↦ Q(x; d..; k)
        Q along x_dot:  Q(x; d.., x_dot; k)        transposed in x:   q ↦ Q(x; d.., q; k)
                                                   transposed in k:   q ↦ P(x; d.., q)

Derivatives commute, so in each d they are transposed as in x, without that d.  At the level that
differentiates f, a cotangent k of P is the probe (x; d.. |> k), and q of Q is (x; d.., q |> k).
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.containers.points import ATTRIBUTE, Chart, release_within
from lineara.cotangent.batched import Batched
from lineara.cotangent.dead_lanes import unmasked
from lineara.errors import LinearityError, StagingError, StructureError, TypeMismatchError
from lineara.facts.hints import Leaf, Value
from lineara.facts.primitive import Joint, op
from lineara.facts.types import show_type
from lineara.python.captured_values import captured
from lineara.python.function_probes import ONE, Bag, Direction, Probe, Probes, paired, point
from lineara.python.user_code import overlay, seen
from lineara.rules.call_as_operation import (
    Form,
    Whole,
    moves,
    name_of,
    opened,
    settled,
    spread,
    still,
)
from lineara.tape.level import Level
from lineara.tape.linearize import linearize
from lineara.tape.node import Scalar, Traced
from lineara.trees import flatten, unflatten
from lineara.trees.flat import Structure

Whole("probe")


class probed:
    """`f` as an argument whose gradient is a bag of probes, and not of what it captured.

    Wherever a differentiated argument is a function, or holds one, `probed(f)` asks how much each
    of its values counts, whatever f is: a closure, a ufunc, a method. The cotangent is `Probes`: a
    sum of probes (x, k), the gradient k of the result with respect to f(x), at every x where f was
    called. A tangent is a function like f. Called, it is f.

    TypeMismatchError where it is called with keywords, gets functions that move, or returns a
    function.

    >>> import lineara, math
    >>> g = lineara.grad(lambda f: f(2.0) * f(3.0))(probed(lambda x: x * x))
    >>> g
    Probes([(2.0, 9.0), (3.0, 4.0)])
    >>> g @ math.exp == lineara.jvp(
    ...     lambda f: f(2.0) * f(3.0), (probed(lambda x: x * x),), (math.exp,))[1]
    True
    """

    token: object
    f: Callable[..., Any]

    __lineara_leaf__ = True

    def __init__(self, f: Callable[..., Any], token: object = None) -> None:
        if not callable(f):
            raise TypeMismatchError(f"probed: takes a function, but was given {show_type(f)}")
        functools.update_wrapper(self, f, updated=())
        self.f, self.token = f, token

    def __repr__(self) -> str:
        return f"probed({name_of(self.f)})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """f, with the change that a change of f makes."""
        y = self.f(*args, **kwargs)
        if not watched(self):
            return y
        if kwargs:
            raise TypeMismatchError(
                f"{self!r} was called with the keyword{'s' * (len(kwargs) > 1)} "
                f"{', '.join(kwargs)}; a probe is at positional arguments, so give them by position"
            )
        return _changed(self, args, y)


def watched(value: probed) -> bool:
    """Whether this is a function that is being differentiated as a function."""
    return isinstance(value, probed) and isinstance(value.token, Traced)


def _changed(f: probed, args: tuple[Any, ...], y: Value) -> Any:
    """y = f(*args), with the change that a change of f makes."""
    results, structure = flatten(y)
    places = [i for i, v in enumerate(results) if moves(settled(v))]
    for v in results:
        if callable(v) and not moves(settled(v)):
            raise TypeMismatchError(
                f"{f!r} returned {show_type(v)}, a function: its own calls would not be seen; "
                "probe a function of all the arguments"
            )
    if not places:
        return y
    call = _Call(f, args, [still(results[i]) for i in places], places, structure)
    for i, p in zip(places, Change(call, 0, False).at(f.token, call.moving), strict=True):
        results[i] = results[i] + p
    return unflatten(structure, results)


def _within(leaf: Leaf) -> list[Any]:
    """A leaf, the number in one with a unit or labels, and what it captured if it is a function."""
    numbers = [leaf, *(flatten(captured(leaf))[0] if callable(leaf) else ())]
    release_within(leaf, lambda x: numbers.append(x) or x)
    return numbers


class _Call:
    """What is fixed in a call of the function: everything but its moving numbers."""

    zeros: list[Any]
    structure: Structure
    places: list[int]
    leaves: list[Any]
    form: Form

    def __init__(
        self,
        f: probed,
        args: tuple[Any, ...],
        zeros: list[Any],
        places: list[int],
        structure: Structure,
    ) -> None:
        self.name: str = repr(f)
        self.zeros, self.places, self.structure = zeros, places, structure
        self.leaves, self.form = opened(args)
        self.inside: list[int] = [i for i, v in enumerate(self.leaves) if moves(v)]
        for i, v in enumerate(self.leaves):
            if i not in self.inside:
                self.refuse(v)

    @property
    def moving(self) -> list[Any]:
        """The numbers of the arguments that may move."""
        return [self.leaves[i] for i in self.inside]

    def refuse(self, v: object) -> None:
        """What a probe has no directions for must not move."""
        for leaf in flatten(v)[0]:
            if any([isinstance(x, Traced) or watched(x) for x in _within(leaf)]):
                raise TypeMismatchError(
                    f"{self.name} was called with {show_type(leaf)}, in which something moves; a "
                    "probe is at numbers, arrays and containers of them"
                )

    def args(self, moving: Sequence[Any], others: bool = True) -> tuple[Any, ...]:
        """Arguments with these numbers; of a direction, None is what does not move."""
        full = list(self.leaves) if others else [None] * len(self.leaves)
        for i, v in zip(self.inside, moving, strict=True):
            full[i] = v
        arguments = self.form.arguments(full)
        if others:
            return tuple(arguments)
        whole = [i for i, s in enumerate(self.form.structures) if s is None]
        return tuple([None if i in whole and a is None else a for i, a in enumerate(arguments)])

    def result(self, moving: Sequence[Any]) -> Any:
        """A cotangent of the result."""
        full: list[Any] = [None] * self.structure.leaf_count
        for i, v in zip(self.places, moving, strict=True):
            full[i] = v
        return unflatten(self.structure, full)

    def results(self, y: Value) -> list[Any]:
        """The numbers of a tangent of the result."""
        numbers, structure = flatten(y)
        if structure != self.structure:
            raise TypeMismatchError(
                f"the direction of {self.name} gave {structure}, but the function gives "
                f"{self.structure}; a tangent of a function is a function like it"
            )
        return [numbers[i] for i in self.places]


class Change:
    """P or, `pulled`, Q; the leaves are the token, x, the `order` directions, and k for Q."""

    pulled: bool
    order: int
    call: _Call

    def __init__(self, call: _Call, order: int, pulled: bool) -> None:
        self.call, self.order, self.pulled = call, order, pulled
        self.__name__: str = call.name

    def at(self, token: object, x: Sequence[Any], *rest: Sequence[Any]) -> list[Any]:
        """The operation applied: numbers like those of the result, for Q of the arguments."""
        leaves = [token, *x, *[v for part in rest for v in part]]
        form = Form((None,) * len(leaves))
        return list(op("probe")(*leaves, rule=self, form=form, options={}))

    @property
    def zeros(self) -> list[Any]:
        """Zeros like what it gives."""
        if self.pulled:
            return [still(v) for v in self.call.moving]
        return [_copied(z) for z in self.call.zeros]

    def parts(self, leaves: Sequence[Any]) -> list[list[Any]]:
        """The leaves as x, the directions, and k."""
        width = len(self.call.inside)
        starts = [1 + width * i for i in range(self.order + 2)]
        parts = [list(leaves[a : a + width]) for a in starts[:-1]]
        return [*parts, list(leaves[starts[-1] :])] if self.pulled else parts

    def run(self, args: Sequence[Any], options: dict[str, Any]) -> Any:
        """Zeros: only a change of the function makes a change."""
        return self.zeros

    def trace(
        self,
        level: Level,
        values: list[Any],
        active: list[int],
        form: Form,
        options: dict[str, Any],
    ) -> tuple[Any, Joint]:
        """The value below, and its derivative: at its own level in f, at inner ones in the rest."""
        token, parts = values[0], self.parts(values)
        if 0 in active:
            others = [None] * (len(active) - 1)
            return self.zeros, Joint(
                lambda tangents: self.along(tangents[0], parts),
                lambda bars: [self.told(bars, parts), *others],
            )

        def forward(tangents: Sequence[Any]) -> list[Any]:
            at = dict(zip(active, tangents, strict=True))
            return self.forward(token, parts, self.parts([at.get(i) for i in range(len(values))]))

        def back(bars: Sequence[Any]) -> list[Any]:
            wanted = [any(i in active for i in part) for part in self.parts(range(len(values)))]
            bars_of_parts = self.back(token, parts, bars, wanted)
            flat = [None, *[v for part in bars_of_parts for v in part]]
            return [flat[i] for i in active]

        return self.at(token, *parts), Joint(
            lambda tangents: spread(forward, tangents), lambda bars: spread(back, bars)
        )

    # --- in f ---------------------------------------------------------------------------------

    def along(self, u: Direction, parts: list[list[Any]]) -> list[Any]:
        """The derivative along a function."""
        if u is None:
            return [None] * len(self.zeros)
        if not isinstance(u, Direction):
            raise no_basis(self.call.name)
        call, (x, *rest) = self.call, parts
        if not self.pulled:
            return call.results(u.derivative(call.args(x), self.directions(rest)))
        *along, k = rest
        bar, directions = call.result(k), self.directions(along)

        def number(*moving: Any) -> Any:
            return paired(bar, u.derivative(call.args(moving), directions))

        _, L, _ = linearize(number, tuple(x), {}, range(len(x)), False, _as_it_is, "probes")
        derivatives = L.T @ 1.0
        return [derivatives] if len(x) == 1 else list(derivatives)

    def told(self, bars: Sequence[Any], parts: list[list[Any]]) -> Bag | None:
        """The probe that a cotangent is."""
        if all([b is None for b in bars]):
            return None
        if any([isinstance(b, Batched) for b in bars]):
            raise no_basis(self.call.name)
        call, (x, *rest) = self.call, parts
        (k, along) = (rest[-1], rest[:-1]) if self.pulled else (None, rest)
        vectors = spread(lambda vectors: vectors, _filled(bars, self.zeros))
        flat = [_own(unmasked(v)) for v in vectors]
        if k is None:
            k = flat
        else:
            along = [*along, flat]
        return Bag((Probe(point(call.args(x)), call.result(k), self.directions(along)),))

    def directions(self, along: Sequence[Sequence[Any]]) -> tuple[Any, ...]:
        """The directions as the user sees them."""
        return tuple([point(self.call.args(d, others=False)) for d in along])

    # --- in everything else -------------------------------------------------------------------

    def forward(self, token: Scalar, parts: list[list[Any]], dots: list[list[Any]]) -> list[Any]:
        """The derivative in x, in each direction, and in k."""
        x, *rest = parts
        x_dot, *rest_dots = dots
        terms: list[list[Any]] = []
        if any([t is not None for t in x_dot]):
            along = [*rest[: self.order], _filled(x_dot, x), *rest[self.order :]]
            terms.append(Change(self.call, self.order + 1, self.pulled).at(token, x, *along))
        for i, dot in enumerate(rest_dots):
            if any([t is not None for t in dot]):
                moved = [*rest[:i], _filled(dot, rest[i]), *rest[i + 1 :]]
                terms.append(self.at(token, x, *moved))
        if not terms:
            return [None] * len(self.zeros)
        return [functools.reduce(_plus, column) for column in zip(*terms, strict=True)]

    def back(
        self, token: Scalar, parts: list[list[Any]], bars: Sequence[Any], wanted: list[bool]
    ) -> list[list[Any]]:
        """The transposes: for x, for each direction, and for k."""
        x, *rest = parts
        bars_of_parts: list[list[Any]] = [[None] * len(part) for part in parts]
        if all([b is None for b in bars]):
            return bars_of_parts
        w = _filled(bars, self.zeros)
        along = rest[: self.order]
        k = rest[-1] if self.pulled else w
        for i in range(self.order + 1):
            if wanted[i]:  # x, or without one direction: derivatives commute
                left = along if i == 0 else [*along[: i - 1], *along[i:]]
                left = [*left, w] if self.pulled else left
                bars_of_parts[i] = Change(self.call, len(left), True).at(token, x, *left, k)
        if self.pulled and wanted[-1]:
            bars_of_parts[-1] = Change(self.call, self.order + 1, False).at(token, x, *along, w)
        return bars_of_parts

    # --- where there are no numbers -----------------------------------------------------------

    def trace_linear(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """A function of the user's is not linear in its argument."""
        raise LinearityError(
            f"{self.call.name} was called with a linear value, which has a type but no number; "
            "nothing says that the function is linear"
        )

    def trace_staged(
        self, level: Level, leaves: Sequence[Any], form: Form, options: dict[str, Any]
    ) -> Any:
        """A program has no probes."""
        raise StagingError(
            f"{self.call.name} was called in a traced program, where it has no derivative; call it "
            "outside of trace, cond, scan and the like, or differentiate in what it captured"
        )


def _as_it_is(f: Callable[..., Any]) -> Any:
    return f


def _own(v: Value) -> Any:
    """A number of NumPy's as one of Python's; the user's own array."""
    if isinstance(v, np.float64 | np.complex128) or (isinstance(v, np.ndarray) and not v.shape):
        return v.item()
    return _copied(v)


def _copied(z: Value) -> Any:
    return z.copy() if isinstance(z, np.ndarray) else z


def _filled(vectors: Sequence[Any], like: Sequence[Any]) -> list[Any]:
    return [still(v) if t is None else t for t, v in zip(vectors, like, strict=True)]


def _plus(a: Value, b: Value) -> Any:
    return b if a is None else a if b is None else a + b


def no_basis(name: str) -> TypeMismatchError:
    """The error of a matrix of derivatives in a function."""
    return TypeMismatchError(
        f"the functions like {name} have no basis, so there is no matrix of derivatives; take grad "
        "of one number, vjp with one cotangent, or jvp along one function"
    )


class Opaque:
    """The manifold of probed functions: a token stands for the function on the tape."""

    is_whole = True
    point: type | None = probed

    def coordinates(self, p: probed) -> Any:
        """The token: a number, zero, whose vectors are formal."""
        return 0.0

    def lifted(self, p: probed, v: Scalar) -> Any:
        """The function whose calls are noted."""
        return probed(p if watched(p) else seen(p.f), v)

    def outgoing(self, r: probed, still: probed) -> Any:
        """The token of a function that is a result."""
        return 0.0 if r.token is None else r.token

    def released(self, r: probed, release: Callable[[Any], Any]) -> Any:
        """The function without a level."""
        token = None if r.token is None else release(r.token)
        if isinstance(token, Traced):
            return probed(r.f, token)
        return r.f if isinstance(r.f, probed) else probed(overlay().original(r.f))

    def vector(self, tree: Any, chart: Chart) -> Any:
        """Probes, or a function."""
        if chart.dual:
            return self.covector(None, tree, None)
        return tree.function() if isinstance(tree, Direction) else _zero_function

    def covector(self, p: probed | None, tree: Value, unit: object) -> Probes:
        """Probes: a gradient with respect to the function."""
        del p, unit
        return tree.read() if isinstance(tree, Bag) else Probes()

    def components(self, vector: object, chart: Chart, asked: str) -> Any:
        """The formal vector."""
        if chart.dual:
            if not isinstance(vector, Probes):
                raise StructureError(
                    f"{asked}: a cotangent of a probed function is Probes, but was given "
                    f"{show_type(vector)}"
                )
            return Bag(vector.probes[::-1])
        if not callable(vector):
            raise StructureError(
                f"{asked}: a tangent of a probed function is a function like it, but was given "
                f"{show_type(vector)}"
            )
        return Direction(((ONE, vector),))


def _zero_function(*args: Any) -> float:
    """The direction in which nothing changes."""
    return 0.0


setattr(probed, ATTRIBUTE, Opaque())
