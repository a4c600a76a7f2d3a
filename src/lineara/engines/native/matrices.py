"""Primitives of matrices, and of stacks of them: for each matrix a function of the module.

Small ones have the code's own functions (factors.py), others and stacks call LAPACK (lapack.py).
What has no solution is called back, where NumPy raises its error; so is everything in exact code,
since NumPy calls the LAPACK that came with it and not SciPy's.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from lineara.engines.native import factors, lapack
from lineara.engines.native import numbers as nm
from lineara.engines.native.emit import Emitter
from lineara.engines.native.factors import Function, Slow, called, unless
from lineara.engines.native.strided import Plain, steps_in, type_of
from lineara.facts.types import ArrayType
from lineara.linear_a import syntax as ir

LARGEST = 20_000
"""Rows up to which the exchanged rows lie on the stack."""


def solved(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """X with A X = B, or with the transpose of A; the factors may be an argument."""
    n, m = t.shape[-2:]
    solution = lapack.lu_solve(em, n, m, bool(e.params.get("adjoint")))

    def one(of: Sequence[str], y: str, a: str, p: str) -> str:
        moved(em, of[1], y, n * m)
        bad, a = factored(em, n, of[2:] or of[0], a, p)
        called(em, solution, [a, p, y])
        return bad

    return for_each(em, args, t, t.shape[:-2], factoring(n), one, slow)


def factoring(n: int) -> list[tuple[tuple[int, ...], type]]:
    """Memory for factors: for a matrix, and for the rows that were exchanged."""
    return [((n, n), float), ((n,), int)]


def factored(em: Emitter, n: int, of: str | Sequence[str], a: str, p: str) -> tuple[str, str]:
    """Whether factors are no good, and where they are: those that there are, or those of a."""
    if not isinstance(of, str):
        return called(em, lapack.read(em, n), [of[0], p]), of[0]
    moved(em, of, a, n * n)
    return called(em, lapack.lu(em, n), [a, p]), a


def moved(em: Emitter, source: str, into: str, n: int) -> None:
    """Copy numbers."""
    move = em.outside("llvm.memmove.p0.p0.i64", "void (ptr, ptr, i64, i1)")
    em.line(f"call void {move}(ptr {into}, ptr {source}, i64 {8 * n}, i1 false)")


def inverted(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The inverse; times the determinant, if that is asked for."""
    n, size = t.shape[-1], em.at_entry("alloca double")

    def one(of: Sequence[str], y: str, w: str, p: str) -> str:
        moved(em, (of[1:] or of)[0], y, n * n)
        bad = called(
            em, lapack.read(em, n) if of[1:] else lapack.lu(em, n), [(of[1:] or [y])[0], p]
        )
        if e.name == "adjugate":
            called(em, lapack.determinant(em, n, "product" if of[1:] else "det"), [y, p, size])
        called(em, lapack.inverse(em, n), [y, p, w])
        if e.name == "adjugate":
            called(em, lapack.scaled(em, n * n), [size, y])
        return bad

    work = [((n, 64), float), ((n,), int)]
    return for_each(em, args, t, t.shape[:-2], work, one, slow)


def determined(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The determinant, its sign, or the logarithm of its size."""
    n = type_of(args[0]).shape[-1]

    def one(of: Sequence[str], y: str, a: str, p: str) -> str:
        bad, a = factored(em, n, of[1:] or of[0], a, p)
        what = "product" if e.name == "det" and of[1:] else e.name
        called(em, lapack.determinant(em, n, what), [a, p, y])
        return bad

    return for_each(em, args, t, t.shape, factoring(n), one, slow)


def of_factors(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The factors as a value."""
    n = t.shape[-1]

    def one(of: Sequence[str], y: str, p: str) -> str:
        moved(em, of[0], y, n * n)
        called(em, lapack.lu(em, n), [y, p])
        called(em, lapack.written(em, n), [y, p])
        return "false"

    return for_each(em, args, t, t.shape[:-2], factoring(n)[1:], one, slow)


def changed(em: Emitter, args: list[Plain], t: ArrayType, slow: Slow, of: Function) -> nm.Held:
    """What a function makes in place of the last argument, with the addresses of the others."""

    def one(given: Sequence[str], y: str) -> str:
        moved(em, given[-1], y, t.shape[-2] * t.shape[-1])
        return called(em, of, [*given[:-1], y])

    return for_each(em, args, t, t.shape[:-2], [], one, slow)


def of_triangle(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """X with A X = B for one triangle of A."""
    n, m = t.shape[-2:]
    lower, adjoint = bool(e.params["lower"]), bool(e.params.get("adjoint"))
    return changed(em, args, t, slow, lapack.trsm(em, n, m, lower, adjoint))


def rooted(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """The Cholesky factor."""
    return changed(em, args, t, slow, lapack.potrf(em, t.shape[-1]))


def tangent_of_root(
    em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow
) -> nm.Held:
    """The tangent of a Cholesky factor, or what its adjoint makes of a cotangent."""
    return changed(
        em, args, t, slow, lapack.tangent(em, t.shape[-1], bool(e.params.get("adjoint")))
    )


def for_each(
    em: Emitter,
    args: list[Plain],
    t: ArrayType,
    lead: Sequence[int],
    work: Sequence[tuple[tuple[int, ...], type]],
    one: Callable[..., str],
    slow: Slow,
) -> nm.Held:
    """What `one` makes of each matrix of stacks; if something is no good, Python makes it all.

    `one` has the addresses of the operands, of the result and of memory to work in; it gives the
    register of whether something is no good.
    """
    held: list[nm.Held] = [*args]
    with em.kept(held):
        given = em.in_order(args)
        held += given
        held.append(y := em.array(t))
        spaces = []
        for shape, dtype in work:
            spaces.append(em.array(ArrayType(shape, np.dtype(dtype))))
            held.append(spaces[-1])
        bad = em.at_entry("alloca i1")
        em.line(f"store i1 false, ptr {bad}")
        places = [*given, y]
        steps = [lead_steps(x, lead) for x in given] + [nm.strides_of(t.shape)[: len(lead)]]
        with em.nest(lead, *steps) as at:
            assert all([isinstance(x, nm.Arr) for x in places]), "they have axes"
            of = [em.address(x, i) for x, i in zip(places, at, strict=True) if type(x) is nm.Arr]
            odd = one(of[:-1], of[-1], *map(em.address, spaces))
            before = em.let(f"load i1, ptr {bad}")
            em.line(f"store i1 {em.let(f'or i1 {before}, {odd}')}, ptr {bad}")
        with unless(em, em.let(f"load i1, ptr {bad}"), y, held, partial(stored, em, t, slow)):
            pass
        return y if t.shape else em.load(y)


def stored(em: Emitter, t: ArrayType, slow: Slow) -> nm.Held:
    """What Python makes, in memory."""
    value = slow()
    if not isinstance(value, nm.Num):
        return value
    y = em.array(t)
    em.store(value, y)
    return y


def lead_steps(x: nm.Held, lead: Sequence[int]) -> list[int]:
    """How far apart matrices of a stack are, broadcast to other axes."""
    assert isinstance(x, nm.Arr), "it has axes"
    steps = steps_in(x, max(x.type.ndim, len(lead) + 2))
    return steps[: len(lead)]


def of_matrices(em: Emitter, e: ir.Prim, args: list[Plain], t: ArrayType, slow: Slow) -> nm.Held:
    """One matrix that is small by the code's own functions, others and stacks by LAPACK."""
    small = factors.OF_MATRICES.get(e.name)
    y = None if small is None else small(em, e, args, t, slow)
    types = [type_of(x) for x in args]
    if y is not None or any([k.ndim < 2 or nm.kind_of(k) != "f64" for k in types]):
        return y
    if not all([k.size for k in [t, *types]]) or max(types[0].shape[-2:]) > LARGEST:
        return None
    return OF_MATRICES[e.name](em, e, args, t, slow)


OF_MATRICES = {
    **dict.fromkeys(("solve", "linear_solve"), solved),
    **dict.fromkeys(("inv", "adjugate"), inverted),
    **dict.fromkeys(("det", "detsign", "logabsdet"), determined),
    **dict.fromkeys(("triangular_solve", "linear_triangular"), of_triangle),
    **dict.fromkeys(("linear_cholesky", "tangent_of_cholesky"), tangent_of_root),
    "cholesky": rooted,
    "lu_factors": of_factors,
}

__all__ = ["OF_MATRICES", "of_matrices"]
