"""Which results of a function depend on which arguments: from its program, or from one run.

The program of a function holds for all arguments of the same types, and so does a pattern that
follows from it.  Where there is no program, the pattern follows from the linear graph of one run.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lineara.engines import dependence
from lineara.errors import LinearaError, TypeMismatchError
from lineara.facts.hints import Leaf
from lineara.facts.types import ArrayType, is_complex, type_of
from lineara.linear_a import syntax as ir
from lineara.linear_a.calls import Call
from lineara.linear_a.program import Program
from lineara.python.user_code import method, restored, seen
from lineara.staging.capture import trace
from lineara.staging.tracing import VARIABLE, Staged
from lineara.tape.linearize import linearize
from lineara.trees import flatten

LONG = 1_000  # operations; of more, every one would be followed by itself
ALL = "all arguments of these types"
HERE = "this point"


class Pattern(NamedTuple):
    """A boolean matrix, (scalars of the result, scalars of the arguments), and where it holds.

    `fixed` are the whole numbers and flags among the arguments that it was found for, by the places
    of their leaves; `why` says what kept it from holding for all arguments.  `straight`: whether it
    is that of a program without branches and loops.
    """

    matrix: Any
    holds: str
    fixed: dict[int, np.ndarray]
    why: str = ""
    straight: bool = False


def sparsity(f: Callable[..., Any], *args: Any) -> Any:
    """Which scalars of f(*args) depend on which of the arguments: a boolean `scipy.sparse` array.

    Rows are the numbers of the result, columns those of all arguments, each in the order of their
    leaves.  An entry that is missing is 0 in every Jacobian of f for arguments of these shapes and
    dtypes, whatever their values are: f is captured as a program (`lineara.trace`), branches are
    taken every way, and loops whose length is not known run until nothing is added.  Arrays of
    whole numbers and flags count by their values.  Where f has no program, the pattern is that of
    the operations done for these arguments, and a UserWarning says so.

    Raises TypeMismatchError for complex arguments, and for arguments without derivative.

    >>> import numpy as np
    >>> sparsity(lambda x: x[1:] * x[:-1], np.zeros(4)).toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    pattern = pattern_of(f, args, range(len(args)), "sparsity")
    if pattern.why:
        warnings.warn(
            f"sparsity: the pattern holds at this point only, since {pattern.why}",
            UserWarning,
            stacklevel=2,
        )
    return pattern.matrix


def pattern_of(
    f: Callable[..., Any], args: tuple[Any, ...], places: Sequence[int], name: str
) -> Pattern:
    """The pattern with respect to the arguments at these places; of the program if there is one."""
    if not callable(f):
        raise TypeMismatchError(f"{name}: takes a function, but was given {f!r}")
    for i in places:
        for leaf in flatten(args[i])[0]:
            _refuse(leaf, name)
    try:
        return of_program(trace(f, *args), args, places)
    except (LinearaError, RecursionError) as e:
        why = str(e).splitlines()[0] if str(e) else type(e).__name__
    _, L, _ = linearize(seen(f), args, {}, tuple(places), False, method, name, restored)
    return Pattern(L.pattern(), HERE, {}, why)


def _refuse(leaf: Leaf, name: str) -> None:
    floating = isinstance(leaf, float | np.floating) or (
        isinstance(leaf, np.ndarray) and leaf.dtype.kind == "f"
    )
    if not floating:
        what = type_of(leaf) if isinstance(leaf, np.ndarray) else type(leaf).__name__
        raise TypeMismatchError(
            f"{name}: a sparse matrix is one of derivatives with respect to real floating numbers, "
            f"and an argument has a leaf {what}; close over it, or name the others with argnums"
        )


def of_program(staged: Staged, args: tuple[Any, ...], places: Sequence[int]) -> Pattern:
    """The pattern of a program."""
    values: list[Any] = []
    active: list[int] = []
    fixed: dict[int, np.ndarray] = {}
    k = 0
    for i, a in enumerate(args):
        for leaf in flatten(a)[0]:
            t = staged.signature.types[k]
            if t is not None:
                whole = t.dtype.kind in "biu"
                if i in places:
                    active.append(len(values))
                elif whole:
                    fixed[k] = np.array(leaf)
                values.append(np.asarray(leaf, t.dtype) if whole else None)
            k += 1
    values += [np.array(v) if isinstance(v, np.ndarray) else v for v in staged.beside]
    ys = iter(dependence(staged.program, staged.name, values, active))
    return Pattern(_rows(staged, ys, args, places), ALL, fixed, "", _is_straight(staged.program))


def _is_straight(program: Program) -> bool:
    """Whether a program is a sequence of operations and calls, and not a long one."""
    bodies = [d.body for d in program.defs.values()]
    calls = all([isinstance(a, Call) for body in bodies for a in ir.applications(body)])
    return calls and sum([len(body.bindings) for body in bodies]) <= LONG


def _rows(staged: Staged, ys: Any, args: tuple[Any, ...], places: Sequence[int]) -> Any:
    """The sets of all results as one matrix; what is constant depends on nothing."""
    from scipy.sparse import csr_array, vstack

    from lineara.cotangent.dependence import Dependent

    n = sum(type_of(leaf).size for i in places for leaf in flatten(args[i])[0])
    blocks = []
    for c in staged.results.constants:
        y = next(ys) if c is VARIABLE else c
        t = y.type if isinstance(y, Dependent) else _type_of(y)
        if is_complex(t):
            raise TypeMismatchError(
                "sparsity: a result is complex, and sparse matrices are of real numbers; give the "
                "real and the imaginary part as two results"
            )
        empty = not isinstance(y, Dependent) or t.dtype.kind != "f"
        blocks.append(csr_array((t.size, n), dtype=bool) if empty else y.matrix)
    return vstack(blocks, format="csr") if blocks else csr_array((0, n), dtype=bool)


def _type_of(value: Any) -> ArrayType:
    return type_of(value) if hasattr(value, "dtype") or np.isscalar(value) else type_of(0.0)
