"""Functions of the module that call SciPy's LAPACK and BLAS, for one matrix each.

    lu.n                a becomes the factors of a, p the rows that were exchanged; gives whether a
                        pivot is zero or not finite
    lusolve.n.m         b becomes the solution for these factors
    potrf.n, trsm.n.m   the lower Cholesky factor, and the solution for one triangle
    tangent.n           s becomes the tangent of a Cholesky factor, or what its adjoint gives

A matrix in C order is the transpose of one in Fortran order, so the transposes are factored and
none is copied for its order.
"""

from collections.abc import Callable, Iterable, Sequence

from lineara.engines.native import numbers as nm
from lineara.engines.native import symbols
from lineara.engines.native.alone import alone
from lineara.engines.native.emit import Emitter
from lineara.engines.native.factors import Function

BLOCK = 64
"""Rows up to which the tangent of a Cholesky factor is made of whole matrices."""
INFINITY = "0x7FF0000000000000"


class OfMatrix(Function):
    """A function of the module that calls routines of LAPACK and of BLAS."""

    after: list[str]

    def __init__(
        self, em: Emitter, name: str, parameters: Sequence[str], flag: bool, n: int = 0
    ) -> None:
        super().__init__(f"lineara.{name}", parameters, flag)
        self.em = em
        before, self.after = alone(em, n * n)
        self.lines += before
        self.attribute = "noinline "  # what a routine takes is more than the call of a function

    def routine(self, name: str, *given: int | float | str) -> None:
        """Call a routine on addresses, and on numbers and letters, which are constants."""
        family = "lapack" if name in OF_LAPACK else "blas"
        address = getattr(symbols, family)(name)
        if address is None:
            raise nm.Refused(f"SciPy has no {name}")
        self.em.addresses[f"{family}.{name}"] = address
        f = self.em.outside(f"{family}.{name}", f"void ({', '.join(['ptr'] * len(given))})")
        self.line(f"call void {f}({', '.join([f'ptr {self.place_of(x)}' for x in given])})")

    def place_of(self, x: int | float | str) -> str:
        """The address of an argument."""
        if isinstance(x, str) and x.startswith("%"):
            return x
        kind, value = ("i8", ord(x)) if isinstance(x, str) else ("i32", x)
        kind = "double" if isinstance(x, float) else kind
        name = f"lineara.{kind}.{x}"
        self.em.helpers[name] = f'@"{name}" = private unnamed_addr constant {kind} {value}'
        return f'@"{name}"'

    def element(self, base: str, n: int, i: int, j: int) -> str:
        """The address of an element that is known, of a matrix with n columns."""
        if not (i or j):
            return base
        return self.let(f"getelementptr inbounds double, ptr {base}, i64 {i * n + j}")

    def integers(self, n: int) -> str:
        """The address of n of Fortran's integers."""
        return self.let(f"alloca [{n} x i32]")

    def integer(self, base: str, i: str) -> str:
        """The address of one of them."""
        return self.let(f"getelementptr inbounds i32, ptr {base}, i64 {i}")

    def on_diagonal(self, n: int, test: Callable[[str], str]) -> None:
        """Note where a number of a's diagonal is what it must not be."""
        with self.loop("0", str(n)) as i:
            self.note(test(self.load(self.place("%a", n, i, i))))

    def ordinary(self, n: int) -> None:
        """Note where a number of a's diagonal is zero or not finite."""

        def odd(x: str) -> str:
            size = self.let(f'call double @"llvm.fabs.f64"(double {x})')
            some = self.let(f"fcmp one double {size}, 0.0")
            finite = self.let(f"fcmp olt double {size}, {INFINITY}")
            return self.let(f"xor i1 {self.let(f'and i1 {some}, {finite}')}, true")

        self.on_diagonal(n, odd)

    def zero_on_diagonal(self, n: int) -> None:
        """Note where a number of a's diagonal is zero."""
        self.on_diagonal(n, lambda x: self.let(f"fcmp oeq double {x}, 0.0"))

    def whole(self) -> str:
        """The function's text."""
        self.lines += self.after
        return super().whole()

    # --- in C order: a matrix is the transpose of what Fortran sees ------------------------------

    def divided(
        self, left: bool, lower: bool, turned: bool, a: str, b: str, sizes: tuple[int, int],
        widths: tuple[int, int], unit: bool = False, by: str = "dtrsm",
    ) -> None:  # fmt: skip
        """B of m x n becomes op(A)^-1 B, or B op(A)^-1; by `dtrmm` op(A) B.

        The widths are how far apart rows of A and of B begin.
        """
        flags = "LR"[left], "LU"[lower], "NT"[turned], "NU"[unit]
        self.routine(by, *flags, *sizes[::-1], 1.0, a, widths[0], b, widths[1])

    def added(
        self, c: str, factor: float, a: str, b: str, turned: tuple[bool, bool],
        sizes: tuple[int, int, int], width: int,
    ) -> None:  # fmt: skip
        """C of m x n becomes C + factor · op(A) op(B), with sums over k."""
        m, n, k = sizes
        first, second = "NT"[turned[1]], "NT"[turned[0]]
        given = first, second, n, m, k, factor, b, width, a, width, 1.0, c, width
        self.routine("dgemm", *given)

    def each_pair(self, k: int, c: str, width: int, change: Callable[..., Iterable[str]]) -> None:
        """c[i, j] and c[j, i] for j < i become what `change` makes of them."""
        with self.loop("0", str(k)) as i, self.loop("0", i) as j:
            places = [self.place(c, width, i, j), self.place(c, width, j, i)]
            new = change(*map(self.load, places))
            for place, x in zip(places, new, strict=True):
                self.line(f"store double {x}, ptr {place}")

    def symmetric(self, k: int, c: str, width: int) -> None:
        """c becomes its symmetric part."""

        def mean(x: str, y: str) -> list[str]:
            total = self.let(f"fadd double {x}, {y}")
            return [self.let(f"fmul double {total}, 0.5")] * 2

        self.each_pair(k, c, width, mean)

    def lower(self, k: int, c: str, width: int, halved: bool = False) -> None:
        """c becomes its lower triangle, with half of its diagonal if `halved`."""
        self.each_pair(k, c, width, lambda x, y: [x, "0.0"])
        if halved:
            with self.loop("0", str(k)) as i:
                place = self.place(c, width, i, i)
                half = self.let(f"fmul double {self.load(place)}, 0.5")
                self.line(f"store double {half}, ptr {place}")


OF_LAPACK = ("dgetrf", "dgetri", "dpotrf")


# --- functions of the module ----------------------------------------------------------------------


def lu(em: Emitter, n: int) -> Function:
    """Factors of the transpose of a, and the rows that were exchanged."""
    f = OfMatrix(em, f"lu.{n}", "ap", True, n)
    pivots, info = f.integers(n), f.integers(1)
    f.routine("dgetrf", n, n, "%a", n, pivots, info)
    with f.loop("0", str(n)) as i:
        row = f.let(f"sext i32 {f.let(f'load i32, ptr {f.integer(pivots, i)}')} to i64")
        f.line(f"store i64 {f.let(f'sub nsw i64 {row}, 1')}, ptr {f.pivot(i)}")
    f.ordinary(n)
    return f


def read(em: Emitter, n: int) -> Function:
    """p becomes the exchanged rows of factors that are a value: they are its last row."""
    f = OfMatrix(em, f"read.{n}", "ap", True)
    with f.loop("0", str(n)) as i:
        row = f.let(f"fptosi double {f.load(f.place('%a', n, str(n), i))} to i64")
        f.line(f"store i64 {row}, ptr {f.pivot(i)}")
    f.ordinary(n)
    return f


def written(em: Emitter, n: int) -> Function:
    """Factors as a value: the exchanged rows below the factors."""
    f = OfMatrix(em, f"written.{n}", "ap", False)
    with f.loop("0", str(n)) as i:
        row = f.let(f"load i64, ptr {f.pivot(i)}")
        x = f.let(f"sitofp i64 {row} to double")
        f.line(f"store double {x}, ptr {f.place('%a', n, str(n), i)}")
    return f


def lu_solve(em: Emitter, n: int, m: int, adjoint: bool) -> Function:
    """The solution for the factors L U of the exchanged rows of A^T; of A^T if `adjoint`."""
    f = OfMatrix(em, f"lusolve.{n}.{m}.{adjoint}", "apb", False, n)

    def exchanged(downwards: bool) -> None:
        with f.loop("0", str(n)) as t:
            k = f.let(f"sub nsw i64 {n - 1}, {t}") if downwards else t
            f.exchanged("%b", m, k, f.let(f"load i64, ptr {f.pivot(k)}"))

    if adjoint:
        exchanged(False)
    for upper in (adjoint, not adjoint):  # in C order L lies above, with a diagonal of ones
        if m == 1:
            flags = "UL"[upper], "TN"[adjoint], "NU"[upper]
            f.routine("dtrsv", *flags, n, "%a", n, "%b", 1)
        else:
            f.divided(True, not upper, adjoint, "%a", "%b", (n, m), (n, m), upper)
    if not adjoint:
        exchanged(True)
    return f


def inverse(em: Emitter, n: int) -> Function:
    """Factors of the transpose of a become the inverse of a; w is memory to work in."""
    f = OfMatrix(em, f"inverse.{n}", "apw", False, n)
    pivots, info = f.integers(n), f.integers(1)
    with f.loop("0", str(n)) as i:
        row = f.let(f"add nsw i64 {f.let(f'load i64, ptr {f.pivot(i)}')}, 1")
        f.line(f"store i32 {f.let(f'trunc i64 {row} to i32')}, ptr {f.integer(pivots, i)}")
    f.routine("dgetri", n, "%a", n, pivots, "%w", n * 64, info)
    return f


def determinant(em: Emitter, n: int, what: str) -> Function:
    """From factors: y becomes the determinant, its sign, or the logarithm of its size.

    As NumPy has it, a `det` is made of its logarithm, and a `product` of the numbers themselves.
    """
    f = OfMatrix(em, f"{what}.{n}", "apy", False)
    sign, size = f.let("alloca double"), f.let("alloca double")
    f.line(f"store double 1.0, ptr {sign}")
    f.line(f"store double {'1.0' if what == 'product' else '0.0'}, ptr {size}")
    log, exp = [em.outside(f"c.{name}", "double (double)") for name in ("log", "exp")]
    one = 'call double @"llvm.copysign.f64"(double 1.0, double'
    with f.loop("0", str(n)) as i:
        x = f.load(f.place("%a", n, i, i))
        same = f.let(f"icmp eq i64 {f.let(f'load i64, ptr {f.pivot(i)}')}, {i}")
        turned = f.let(f"select i1 {same}, double {x}, double {f.let(f'fneg double {x}')}")
        now = f.let(f"fmul double {f.load(sign)}, {f.let(f'{one} {turned})')}")
        f.line(f"store double {now}, ptr {sign}")
        absolute = f.let(f'call double @"llvm.fabs.f64"(double {x})')
        if what == "product":
            y = f.let(f"fmul double {f.load(size)}, {absolute}")
            f.line(f"store double {y}, ptr {size}")
        elif what != "detsign":
            term = f.let(f"call double {log}(double {absolute})")
            f.line(f"store double {f.let(f'fadd double {f.load(size)}, {term}')}, ptr {size}")
    y = f.load(size if what == "logabsdet" else sign)
    if what in ("det", "product"):
        absolute = f.load(size)
        absolute = f.let(f"call double {exp}(double {absolute})") if what == "det" else absolute
        y = f.let(f"fmul double {y}, {absolute}")
    f.line(f"store double {y}, ptr %y")
    return f


def potrf(em: Emitter, n: int) -> Function:
    """a becomes its lower Cholesky factor; gives whether there is none."""
    f = OfMatrix(em, f"potrf.{n}", "a", True, n)
    f.routine("dpotrf", "U", n, "%a", n, f.integers(1))
    f.lower(n, "%a", n)
    f.on_diagonal(n, lambda x: f.let(f"fcmp ule double {x}, 0.0"))
    f.ordinary(n)
    return f


def trsm(em: Emitter, n: int, m: int, lower: bool, adjoint: bool) -> Function:
    """b becomes the solution for one triangle; gives whether a number of the diagonal is zero."""
    f = OfMatrix(em, f"trsm.{n}.{m}.{lower}.{adjoint}", "ab", True, n)
    f.zero_on_diagonal(n)
    if m == 1:
        f.routine("dtrsv", "LU"[lower], "TN"[adjoint], "N", n, "%a", n, "%b", 1)
    else:
        f.divided(True, lower, adjoint, "%a", "%b", (n, m), (n, m))
    return f


def tangent(em: Emitter, n: int, adjoint: bool) -> Function:
    """s becomes X with X L^T + L X^T = S; or what the adjoint of that map makes of it."""
    f = OfMatrix(em, f"tangent.{n}.{adjoint}", "as", True, n)
    f.zero_on_diagonal(n)
    if not adjoint:  # which reads one triangle alone
        f.symmetric(n, "%s", n)
    (_adjoint if adjoint else _tangent)(f, n, 0, n, 3)
    return f


def _tangent(f: OfMatrix, n: int, at: int, k: int, more: int) -> None:
    """One block on the diagonal, of k rows; in halves, as `ops.lapack` has it  [Murray 2016]."""
    low, s = f.element("%a", n, at, at), f.element("%s", n, at, at)
    if k <= BLOCK or not more:
        f.divided(True, True, False, low, s, (k, k), (n, n))
        f.divided(False, True, True, low, s, (k, k), (n, n))
        f.lower(k, s, n, halved=True)
        f.divided(True, True, False, low, s, (k, k), (n, n), by="dtrmm")
        return
    h, rest = k // 2, k - k // 2
    below = [f.element(x, n, at + h, at) for x in ("%a", "%s")]
    last = f.element("%s", n, at + h, at + h)
    _tangent(f, n, at, h, more - 1)
    f.added(below[1], -1.0, below[0], s, (False, True), (rest, h, h), n)
    f.divided(False, True, True, low, below[1], (rest, h), (n, n))
    f.added(last, -1.0, below[1], below[0], (False, True), (rest, rest, h), n)
    f.added(last, -1.0, below[0], below[1], (False, True), (rest, rest, h), n)
    _tangent(f, n, at + h, rest, more - 1)
    f.lower(k, s, n)  # the block around reads all of it


def _adjoint(f: OfMatrix, n: int, at: int, k: int, more: int) -> None:
    """The adjoint of that, its steps in reverse order; the result is symmetric."""
    low, c = f.element("%a", n, at, at), f.element("%s", n, at, at)
    if k <= BLOCK or not more:
        f.divided(True, True, True, low, c, (k, k), (n, n), by="dtrmm")
        f.lower(k, c, n, halved=True)
        f.divided(True, True, True, low, c, (k, k), (n, n))
        f.divided(False, True, False, low, c, (k, k), (n, n))
        f.symmetric(k, c, n)
        return
    h, rest = k // 2, k - k // 2
    below = [f.element(x, n, at + h, at) for x in ("%a", "%s")]
    last = f.element("%s", n, at + h, at + h)
    _adjoint(f, n, at + h, rest, more - 1)
    f.added(below[1], -2.0, last, below[0], (False, False), (rest, h, rest), n)
    f.divided(False, True, False, low, below[1], (rest, h), (n, n))
    f.added(c, -1.0, below[1], below[0], (True, False), (h, h, rest), n)
    _adjoint(f, n, at, h, more - 1)
    with f.loop("0", str(rest)) as i, f.loop("0", str(h)) as j:
        place = f.place(below[1], n, i, j)
        half = f.let(f"fmul double {f.load(place)}, 0.5")
        f.line(f"store double {half}, ptr {place}")
        beside = f.place(f.element("%s", n, at, at + h), n, j, i)
        f.line(f"store double {half}, ptr {beside}")


def scaled(em: Emitter, n: int) -> Function:
    """The numbers of y times the one at a."""
    f = OfMatrix(em, f"scaled.{n}", "ay", False)
    by = f.load("%a")
    with f.loop("0", str(n)) as i:
        place = f.place("%y", 0, "0", i)
        f.line(f"store double {f.let(f'fmul double {f.load(place)}, {by}')}, ptr {place}")
    return f


__all__ = [
    "OfMatrix", "determinant", "inverse", "lu", "lu_solve", "potrf", "read", "scaled", "tangent",
    "trsm", "written",
]  # fmt: skip
