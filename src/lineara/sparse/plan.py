"""A plan: the pattern and the colours of a Jacobian, found once, and its values by one program.

Where f is a sequence of operations that lanes follow, the results of the program are the entries
(`sparse/entries.py`).  Else it has the seeds among its arguments and the products as its results,
and each entry is looked up in them.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lineara.api.arguments import positions_of
from lineara.colouring import Compression, bidirectional, by_substitution, csr_of, symmetric
from lineara.engines import takes
from lineara.errors import LinearaError, ShapeError, StructureError, TypeMismatchError
from lineara.facts.pickled import Making, Remade
from lineara.facts.primitive import op
from lineara.facts.registry import follows
from lineara.facts.types import type_of
from lineara.linear_map import LinearMap
from lineara.python.user_code import method, restored, seen, seen_eagerly
from lineara.sparse.entries import entries
from lineara.sparse.patterns import ALL, Pattern, pattern_of
from lineara.sparse.picture import as_svg, as_text
from lineara.staging.capture import trace
from lineara.staging.capture.jit import DEFAULT, jit
from lineara.staging.vmap import vmap
from lineara.tape.linearize import linearize
from lineara.trees import flatten, unflatten

FAST = "native"  # the engine that compiles at once; where it takes no such program, DEFAULT
UNROLLED = 4  # products that stand one by one in a program; more are lanes
SMALL = 2_000  # columns up to which the loops of a colouring are not compiled

follows("lineara.colouring.greedy", "distant star acyclic", "call it on arrays of whole numbers")


@functools.cache
def _jitted(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return jit(f)


def compiled(f: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    """A loop of a colouring, as machine code where the matrix is large."""

    def run(*arrays: np.ndarray) -> np.ndarray:
        return f(*arrays) if max(map(len, arrays)) < SMALL else _jitted(f)(*arrays)

    return run


def sparse_plan(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] = 0,
    argnames: str | Sequence[str] | None = None,
    hessian: bool = False,
    pattern: Any = None,
    compile: bool = True,
    colouring: str = "star",
) -> "SparsePlan":
    """A plan for many Jacobians of f, at arguments of the types of these: `plan(*args)` is one.

    A Jacobian is a `scipy.sparse` array in compressed rows: its rows are the numbers of the result,
    its columns those of the arguments at `argnums`, or of the parameters `argnames`, in the order
    of their leaves.  With `hessian` it is the matrix of second derivatives of f, which returns one
    number.

    The pattern is that of `lineara.sparsity`, and the plan captures f as it is now: what it reaches
    and is not given is constant from here on.  A `pattern` of one's own, and one that holds at this
    point only, is tested by one more product in every call: StructureError where it lacks an entry.
    Without `compile`, or where f has no program, f runs as it is in every call.

    A Hessian's products have the colours of a "star" `colouring`, so that each entry is read at one
    place.  An "acyclic" one has fewer colours, and entries that follow from each other by
    subtraction, which loses digits: the first call tells whether too many.

    Raises what `sparsity` raises, ShapeError for a pattern of another shape, and TypeMismatchError
    for another `colouring`, or one of what is no Hessian.

    >>> import numpy as np
    >>> plan = sparse_plan(lambda x: x[1:] * x[:-1], np.zeros(4))
    >>> plan.holds, plan.colours
    ('all arguments of these types', (2, 0))
    >>> plan(np.array([1.0, 2.0, 3.0, 4.0])).toarray()
    array([[2., 1., 0., 0.],
           [0., 3., 2., 0.],
           [0., 0., 4., 3.]])
    """
    argnums = positions_of(f, argnums, argnames, "sparse_plan")
    places = tuple([i % len(args) for i in ((argnums,) if isinstance(argnums, int) else argnums)])
    derived = Gradient(f, places) if hessian else f
    known = pattern_of(derived, args, places, "sparse_plan")
    if pattern is not None:
        matrix = csr_of(pattern, known.matrix.shape, "sparse_plan")
        known = known._replace(matrix=matrix, holds="nothing but what was given", straight=False)
    compression = _colouring(colouring, hessian)(known.matrix, compiled)
    return SparsePlan(derived, args, places, known, compression, compile)


SYMMETRIC = {"star": symmetric, "acyclic": by_substitution}


def _colouring(name: str, hessian: bool) -> Callable[..., Compression]:
    """What finds the colours."""
    if name not in SYMMETRIC:
        raise TypeMismatchError(
            f"sparse_plan: colouring={name!r} is not known; a Hessian has a star colouring or an "
            "acyclic one"
        )
    if not hessian and name != "star":
        raise TypeMismatchError(
            f"sparse_plan: colouring={name!r} is one of a symmetric matrix; give hessian=True, or "
            "leave it out"
        )
    return SYMMETRIC[name] if hessian else bidirectional


class Gradient(Remade):
    """The gradient of f with respect to some arguments, as a tuple of them."""

    def __init__(
        self, f: Callable[..., Any], places: tuple[int, ...], see: Callable[..., Any] = seen
    ) -> None:
        self.f: Callable[..., Any] = f
        self.places: tuple[int, ...] = places
        self.see: Callable[..., Any] = see

    def eager(self) -> "Gradient":
        """The same, of which every operation is recorded in a trace too."""
        return Gradient(self.f, self.places, seen_eagerly)

    def made_by(self) -> Making:
        """The function, and where it moves."""
        return Making(Gradient, (self.f, self.places, self.see), {})

    def __call__(self, *args: Any) -> Any:
        """The gradient."""
        moving = [args[i] for i in self.places]
        f = _of_moving(self.f, args, self.places)
        y, L, _ = linearize(
            self.see(f), tuple(moving), {}, None, False, method, "hessian", restored
        )
        if type_of(y).shape:
            raise ShapeError(
                "sparse_plan: a Hessian is one of a function that returns a number, and this one "
                f"returns {type_of(y)}"
            )
        return 1.0 @ L


def _of_moving(
    f: Callable[..., Any], args: tuple[Any, ...], places: Sequence[int]
) -> Callable[..., Any]:
    def of_moving(*moving: Any) -> Any:
        at = dict(zip(places, moving, strict=True))
        return f(*[at.get(i, a) for i, a in enumerate(args)])

    return of_moving


def _program(f: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """A function as a program, with the engine that runs it."""
    program = trace(f, *args)
    text = program.definition
    engine = FAST if takes(FAST, text.program, text.name) else DEFAULT
    program.definition = text._replace(engine=engine)
    program.inputs = [np.array(v) for v in program.inputs]
    return program


class SparsePlan(Remade):
    """The pattern and the colours of a Jacobian, and a program of its products.

    plan(*args)      the Jacobian, a `scipy.sparse` array in compressed rows
    plan.pattern     the pattern, a boolean one
    plan.colours     how many products, and transposed products, show all entries
    plan.by_entry    whether its program computes entries and not products
    plan.holds       for which arguments the pattern holds
    plan.why_eager   what keeps f from being a program; empty where nothing does
    print(plan)      the pattern as a picture, each entry as its colour; `plan.svg()` the same

    It pickles where f does, and is captured again where it is unpickled.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        args: tuple[Any, ...],
        places: tuple[int, ...],
        known: Pattern,
        compression: Compression,
        compile: bool,
    ) -> None:
        self.f: Callable[..., Any] = f
        self.places: tuple[int, ...] = places
        self.compile: bool = compile
        self.example: tuple[Any, ...] = tuple([_copied(a) for a in args])
        self.known: Pattern = known
        self.compression: Compression = compression
        self.why_eager: str = "compile=False" if not compile else ""
        self.tested: bool = False
        self._prepare()

    def _prepare(self) -> None:
        """Capture the program of the entries, or else of the products."""
        self.probes: bool = self.known.holds != ALL
        forward, back = self.compression.seeds
        if self.probes:
            forward = np.concatenate([forward, self.compression.probe[None]])
        self.seeds: tuple[np.ndarray, np.ndarray] = forward, back
        self.program: Any = None
        self.by_entry: bool = False
        self.plain: bool = all([isinstance(a, np.ndarray) for a in self.example])
        if not self.compile:
            return
        if self.known.straight:
            try:
                self.program = _program(self.entries, self.example)
                self.by_entry = True
                return
            except Exception:  # f as it is does not say which entries it has: products do
                pass
        try:
            self.program = _program(self.products, (*self.example, *self.seeds))
        except LinearaError as e:
            self.why_eager = str(e).splitlines()[0]

    @property
    def pattern(self) -> Any:
        """The pattern: a boolean array in compressed rows."""
        return self.compression.pattern

    @property
    def colours(self) -> tuple[int, int]:
        """How many products, and how many transposed ones."""
        return self.compression.counts

    @property
    def holds(self) -> str:
        """For which arguments the pattern holds."""
        return self.known.holds

    def linear_map(self, args: tuple[Any, ...]) -> LinearMap[Any, Any]:
        """The derivative at a point, of the eager engine."""
        return linearize(
            seen(self.f), args, {}, self.places, False, method, "sparse_plan", restored
        )[1]

    def entries(self, *args: Any) -> Any:
        """The entries of the derivative, from a tape of all operations of f."""
        f = self.f.eager() if isinstance(self.f, Gradient) else self.f
        moving = tuple([args[i] for i in self.places])
        f = _of_moving(f, args, self.places)
        _, L, _ = linearize(
            seen_eagerly(f), moving, {}, None, False, method, "sparse_plan", restored
        )
        return entries(L, self.pattern)

    def products(self, *args: Any) -> tuple[Any, Any]:
        """The products of the derivative with the seeds, which come last."""
        *given, forward, back = args
        moving = tuple([given[i] for i in self.places])
        f = _of_moving(self.f, tuple(given), self.places)
        _, L, _ = linearize(seen(f), moving, {}, None, False, method, "sparse_plan", restored)
        ys, ws = (
            _mapped(by, seeds, space.types, space.tree)
            for by, seeds, space in (
                (lambda v: L @ v, forward, L.domain),
                (lambda w: w @ L, back, L.codomain),
            )
        )
        return ys, ws

    def __call__(self, *args: Any) -> Any:
        """The Jacobian, or the Hessian, at these arguments."""
        if len(args) != len(self.example):
            raise TypeMismatchError(
                f"sparse_plan: the plan is for {len(self.example)} arguments, not {len(args)}"
            )
        self._check(args)
        if self.program is None:
            return self.linear_map(args).compressed(self.compression)
        plain = self.plain and all(map(_alike, args, self.example))
        call = self.program.called if plain else lambda given: self.program(*given)  # type: ignore[misc]
        if self.by_entry:
            matrix = self.compression.filled(call(args))
        else:
            ys, ws = call((*args, *self.seeds))
            matrix = self.compression.matrix(ys[: len(ys) - self.probes], ws)
            if self.probes:
                self.compression.test(matrix, ys[-1])
        if not (self.probes or self.tested):  # once, against the eager engine without patterns
            self.compression.test(matrix, self.linear_map(args).on_vector(self.compression.probe))
            self.tested = True
        return matrix

    def _check(self, args: tuple[Any, ...]) -> None:
        """Refuse whole numbers that are others than those the pattern was found for."""
        if not self.known.fixed:
            return
        leaves = [leaf for a in args for leaf in flatten(a)[0]]
        for i, held in self.known.fixed.items():
            if i >= len(leaves) or not np.array_equal(leaves[i], held):
                raise StructureError(
                    "sparse_plan: the pattern depends on whole numbers or flags among the "
                    "arguments, and these are others; make a plan for them"
                )

    def made_by(self) -> Making:
        """The function, to be captured anew, and what was found out of it."""
        data = self.f, self.example, self.places, self.known, self.compression, self.compile
        return Making(_read_plan, data, {})

    def __repr__(self) -> str:
        m, n = self.pattern.shape
        k, back = self.colours
        return (
            f"SparsePlan({m} x {n}, {self.pattern.nnz} entries, {k} products and {back} transposed "
            f"ones, for {self.holds})"
        )

    def __str__(self) -> str:
        return f"{self!r}\n{as_text(self.compression)}"

    def svg(self) -> str:
        """The pattern as a picture, each entry in the colour of the product that shows it."""
        return as_svg(self.compression)

    _repr_html_ = svg


def _read_plan(
    f: Callable[..., Any], args: tuple[Any, ...], places: tuple[int, ...], *rest: Any
) -> Any:
    """A plan that was pickled, or an error where it is not one of this function."""
    plan = SparsePlan(f, args, places, *rest)
    anew = pattern_of(f, args, places, "sparse_plan").matrix
    if plan.known.holds == ALL and (anew > plan.pattern).nnz:
        raise StructureError(
            "sparse_plan: the function is another one than where the plan was pickled: its "
            "Jacobian has more entries; make the plan again"
        )
    return plan


def _mapped(
    by: Callable[[Any], Any], seeds: Any, types: Sequence[Any], tree: Callable[[list[Any]], Any]
) -> Any:
    """A linear map on the rows of a matrix, as rows."""

    def one(vector: Any) -> Any:
        parts, start = [], 0
        for t in types:
            part = vector[start : start + t.size]
            parts.append(op("reshape")(part, shape=t.shape))
            start += t.size
        rows = [op("reshape")(y, shape=(type_of(y).size,)) for y in flatten(by(tree(parts)))[0]]
        return rows[0] if len(rows) == 1 else op("concat")(*rows, axis=0)

    count = type_of(seeds).shape[0]
    if not count:
        return np.zeros((0, 0))
    if count > UNROLLED:
        return vmap(one)(seeds)
    return op("stack")(*[one(seeds[i]) for i in range(count)])


def _copied(tree: Any) -> Any:
    leaves, structure = flatten(tree)
    return unflatten(structure, [v.copy() if isinstance(v, np.ndarray) else v for v in leaves])


def _alike(a: Any, b: Any) -> bool:
    return isinstance(a, np.ndarray) and a.shape == b.shape and a.dtype == b.dtype
